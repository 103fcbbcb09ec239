/* tests/unit/loop/etcd_pki.h - authorities and server certificates for the tests of etcd's TLS. */
#ifndef PL_TEST_ETCD_PKI_H
#define PL_TEST_ETCD_PKI_H

#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

#include "loop/pem.h"

struct pki_cert {
    X509 *cert;
    EVP_PKEY *key;
};

/* A certificate of `name` by `issuer` (NULL: by itself) for servers that are called
 * `alternative_names`, as openssl.cnf writes them; NULL makes it a CA. It takes the key. Times are
 * seconds from now. */
static inline struct pki_cert pki_make(EVP_PKEY *key, const struct pki_cert *issuer,
                                       const char *name, const char *alternative_names, long from,
                                       long until)
{
    struct pki_cert made = { .cert = X509_new(), .key = key };
    X509 *by = issuer ? issuer->cert : made.cert;
    static long serial = 1;

    X509_set_version(made.cert, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(made.cert), serial++);
    X509_gmtime_adj(X509_getm_notBefore(made.cert), from);
    X509_gmtime_adj(X509_getm_notAfter(made.cert), until);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(made.cert), "CN", MBSTRING_ASC,
                               (const unsigned char *)name, -1, -1, 0);
    X509_set_issuer_name(made.cert, X509_get_subject_name(by));
    X509_set_pubkey(made.cert, key);
    if (!alternative_names) {
        pl__x509_extension_add(made.cert, NULL, NID_basic_constraints,
                               "critical,CA:TRUE,pathlen:0");
        pl__x509_extension_add(made.cert, NULL, NID_key_usage, "critical,keyCertSign");
        pl__x509_extension_add(made.cert, NULL, NID_subject_key_identifier, "hash");
    } else {
        pl__x509_extension_add(made.cert, by, NID_ext_key_usage, "serverAuth,clientAuth");
        pl__x509_extension_add(made.cert, by, NID_subject_alt_name, alternative_names);
    }
    if (X509_sign(made.cert, issuer ? issuer->key : key, EVP_sha256()) <= 0)
        abort();
    return made;
}

static inline void pki_free(struct pki_cert *c)
{
    X509_free(c->cert);
    EVP_PKEY_free(c->key);
}

static inline struct pl_str pki_text(struct pl_arena *arena, BIO *bio)
{
    char *bytes = NULL;
    long size = BIO_get_mem_data(bio, &bytes);
    struct pl_str text = pl__str_copy(arena, (struct pl_str){ bytes, (size_t)size });

    BIO_free(bio);
    return text;
}

static inline struct pl_str pki_cert_pem(struct pl_arena *arena, const struct pki_cert *c)
{
    BIO *bio = BIO_new(BIO_s_mem());

    PEM_write_bio_X509(bio, c->cert);
    return pki_text(arena, bio);
}

/* PKCS#8, or with `traditional` PKCS#1 (RSA) or SEC1 (EC). */
static inline struct pl_str pki_key_pem(struct pl_arena *arena, const struct pki_cert *c,
                                        bool traditional)
{
    BIO *bio = BIO_new(BIO_s_mem());

    if (traditional)
        PEM_write_bio_PrivateKey_traditional(bio, c->key, NULL, NULL, 0, NULL, NULL);
    else
        PEM_write_bio_PrivateKey(bio, c->key, NULL, NULL, 0, NULL, NULL);
    return pki_text(arena, bio);
}

static inline struct pl_str pki_join(struct pl_arena *arena, struct pl_str a, struct pl_str b)
{
    return pl__str_format(arena, "%.*s%.*s", PL_STR_ARG(a), PL_STR_ARG(b));
}

#endif
