/* loop/pem.h - what we need of OpenSSL wherever certificates are read or made. */
#ifndef PL_LOOP_PEM_H
#define PL_LOOP_PEM_H

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdbool.h>

#include "base/str.h"

/* To read it from; NULL when it is empty or absurdly long. The bytes are not copied. */
BIO *pl__pem_open(struct pl_str pem);

/* For OpenSSL's readers, which would ask on the terminal: there is no password. */
int pl__pem_no_password(char *room, int size, int writing, void *user);

/* Adds an extension as openssl.cnf would write it; `issuer` NULL: it signs itself, or it is not needed. */
bool pl__x509_extension_add(X509 *cert, X509 *issuer, int nid, const char *value);

#endif
