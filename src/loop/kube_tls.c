#include "loop/kube_tls.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

#include "base/secret.h"
#include "loop/pem.h"

enum {
    SELF_SIGNED_DAYS = 365,
    SECONDS_PER_DAY = 24 * 60 * 60,
};

static uint32_t certificate_count(struct pl_str pem)
{
    uint32_t count = 0;
    BIO *bio = pl__pem_open(pem);
    X509 *cert;

    while (bio && (cert = PEM_read_bio_X509_AUX(bio, NULL, pl__pem_no_password, NULL))) {
        count++;
        X509_free(cert);
    }
    BIO_free(bio);
    ERR_clear_error();
    return count;
}

int pl__tls_check_pair(struct pl_str cert_pem, struct pl_str key_pem, struct pl_arena *arena,
                       struct pl_error **err)
{
    BIO *cert_bio = pl__pem_open(cert_pem), *key_bio = pl__pem_open(key_pem);
    X509 *cert = cert_bio ? PEM_read_bio_X509(cert_bio, NULL, pl__pem_no_password, NULL) : NULL;
    EVP_PKEY *key =
        key_bio ? PEM_read_bio_PrivateKey(key_bio, NULL, pl__pem_no_password, NULL) : NULL;
    const char *fault = NULL;

    if (!cert)
        fault = "there is no certificate in the client certificate's PEM";
    else if (!key && pl__str_contains(key_pem, PL_STR("ENCRYPTED")))
        fault = "the key is encrypted, which is not supported";
    else if (!key)
        fault = "there is no private key in the key's PEM";
    else if (X509_check_private_key(cert, key) != 1)
        fault = "the key does not belong to the certificate";
    X509_free(cert);
    EVP_PKEY_free(key);
    BIO_free(cert_bio);
    BIO_free(key_bio);
    ERR_clear_error();
    return fault ? pl__error(arena, err, PL_INVALID, "%s", fault) : 0;
}

struct pl_kube_tls *pl__kube_tls_new(struct pl_str ca_pem, struct pl_str cert_pem,
                                     struct pl_str key_pem, struct pl_arena *arena,
                                     struct pl_error **err)
{
    struct pl_error *cause = NULL;

    if (ca_pem.len && certificate_count(ca_pem) == 0) {
        pl__error(arena, err, PL_INVALID,
                  "there is no certificate in the certificate authority's PEM");
        return NULL;
    }
    if ((cert_pem.len || key_pem.len) && pl__tls_check_pair(cert_pem, key_pem, arena, &cause) < 0) {
        pl__fail(arena, err, cause, "client certificate");
        return NULL;
    }
    struct pl_kube_tls *tls = calloc(1, sizeof *tls);
    if (!tls)
        abort();
    tls->references = 1;
    pl__arena_init(&tls->arena, &pl__secret_allocator,
                   ca_pem.len + cert_pem.len + key_pem.len + 64);
    tls->ca_pem = pl__str_copy(&tls->arena, ca_pem);
    tls->cert_pem = pl__str_copy(&tls->arena, cert_pem);
    tls->key_pem = pl__str_copy(&tls->arena, key_pem);
    return tls;
}

struct pl_kube_tls *pl__kube_tls_ref(struct pl_kube_tls *tls)
{
    tls->references++;
    return tls;
}

void pl__kube_tls_unref(struct pl_kube_tls *tls)
{
    if (!tls || --tls->references > 0)
        return;
    pl__arena_release(&tls->arena);
    free(tls);
}

/* --- a certificate of our own ------------------------------------------------------------------ */

static struct pl_str bio_text(struct pl_arena *arena, BIO *bio)
{
    char *bytes = NULL;
    long size = BIO_get_mem_data(bio, &bytes);

    return pl__str_copy(arena, (struct pl_str){ bytes, size > 0 ? (size_t)size : 0 });
}

static bool cert_fill(X509 *cert, EVP_PKEY *key)
{
    static const unsigned char name[] = "plimsoll";
    X509_NAME *subject = X509_get_subject_name(cert);
    unsigned char serial[8];

    if (RAND_bytes(serial, sizeof serial) != 1)
        return false;
    uint64_t number = 0;
    for (size_t i = 0; i < sizeof serial; i++)
        number = number << 8 | serial[i];
    return X509_set_version(cert, X509_VERSION_3) == 1 &&
           ASN1_INTEGER_set_uint64(X509_get_serialNumber(cert), number >> 1 | 1) == 1 &&
           X509_gmtime_adj(X509_getm_notBefore(cert), -SECONDS_PER_DAY) &&
           X509_gmtime_adj(X509_getm_notAfter(cert), (long)SELF_SIGNED_DAYS * SECONDS_PER_DAY) &&
           X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, name, -1, -1, 0) == 1 &&
           X509_set_issuer_name(cert, subject) == 1 && X509_set_pubkey(cert, key) == 1 &&
           pl__x509_extension_add(cert, NULL, NID_basic_constraints, "critical,CA:FALSE") &&
           pl__x509_extension_add(cert, NULL, NID_key_usage, "critical,digitalSignature") &&
           pl__x509_extension_add(cert, NULL, NID_ext_key_usage, "serverAuth") &&
           pl__x509_extension_add(cert, NULL, NID_subject_alt_name,
                                  "DNS:localhost,IP:127.0.0.1,IP:::1") &&
           X509_sign(cert, key, EVP_sha256()) > 0;
}

int pl__tls_self_signed(struct pl_arena *arena, struct pl_str *cert_pem, struct pl_str *key_pem,
                        struct pl_error **err)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();
    BIO *cert_bio = BIO_new(BIO_s_mem()), *key_bio = BIO_new(BIO_s_secmem());
    bool ok = key && cert && cert_bio && key_bio && cert_fill(cert, key) &&
              PEM_write_bio_X509(cert_bio, cert) == 1 &&
              PEM_write_bio_PrivateKey(key_bio, key, NULL, NULL, 0, NULL, NULL) == 1;

    if (ok) {
        *cert_pem = bio_text(arena, cert_bio);
        *key_pem = bio_text(arena, key_bio);
    }
    BIO_free(cert_bio);
    BIO_free(key_bio);
    X509_free(cert);
    EVP_PKEY_free(key);
    ERR_clear_error();
    return ok ? 0 : pl__error(arena, err, PL_IO, "cannot make a self-signed certificate");
}
