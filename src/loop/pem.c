#include "loop/pem.h"

#include <openssl/x509v3.h>

enum { PEM_BYTES_MAX = 4 * 1024 * 1024 };

BIO *pl__pem_open(struct pl_str pem)
{
    return pem.len > 0 && pem.len <= PEM_BYTES_MAX ? BIO_new_mem_buf(pem.ptr, (int)pem.len) : NULL;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the type is OpenSSL's */
int pl__pem_no_password(char *room, int size, int writing, void *user)
{
    (void)room;
    (void)size;
    (void)writing;
    (void)user;
    return -1;
}

bool pl__x509_extension_add(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;

    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer ? issuer : cert, cert, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    bool ok = extension && X509_add_ext(cert, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    return ok;
}
