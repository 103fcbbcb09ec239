/* Certificates as kubeadm and Cluster API make them: an authority per etcd, a pair per member. EC keys,
 * for RSA would cost a second of start per member. */
#include "fleet/internal.h"

#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include "loop/pem.h"

enum {
    LIFE_DAYS = 365,
    DAY_S = 24 * 60 * 60,
    BACKDATED_S = 5 * 60,
    CN_BYTES_MAX = 64, /* X.520; the whole name is among the alternative ones */
};

static char *bio_text(BIO *bio)
{
    char *bytes = NULL;
    long size = BIO_get_mem_data(bio, &bytes);
    char *copy = size > 0 ? calloc(1, (size_t)size + 1) : NULL;

    if (copy)
        memcpy(copy, bytes, (size_t)size);
    BIO_free(bio);
    return copy;
}

static char *cert_text(X509 *cert)
{
    BIO *bio = BIO_new(BIO_s_mem());

    PEM_write_bio_X509(bio, cert);
    return bio_text(bio);
}

static char *key_text(EVP_PKEY *key)
{
    BIO *bio = BIO_new(BIO_s_mem());

    PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL);
    return bio_text(bio);
}

static X509 *cert_new(EVP_PKEY *key, const char *name, int64_t now_ms)
{
    X509 *cert = X509_new();
    uint64_t serial = 0;
    time_t now_s = (time_t)(now_ms / 1000);

    if (cert && RAND_bytes((unsigned char *)&serial, sizeof serial) == 1 &&
        X509_set_version(cert, X509_VERSION_3) == 1 &&
        ASN1_INTEGER_set_uint64(X509_get_serialNumber(cert), serial >> 1 | 1) == 1 &&
        ASN1_TIME_set(X509_getm_notBefore(cert), now_s - BACKDATED_S) &&
        ASN1_TIME_set(X509_getm_notAfter(cert), now_s + (time_t)LIFE_DAYS * DAY_S) &&
        X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_ASC,
                                   (const unsigned char *)name, (int)strnlen(name, CN_BYTES_MAX),
                                   -1, 0) == 1 &&
        X509_set_pubkey(cert, key) == 1)
        return cert;
    X509_free(cert);
    return NULL;
}

static int pair_take(X509 *cert, EVP_PKEY *key, bool good, char **cert_pem, char **key_pem)
{
    *cert_pem = good ? cert_text(cert) : NULL;
    *key_pem = good ? key_text(key) : NULL;
    X509_free(cert);
    EVP_PKEY_free(key);
    ERR_clear_error();
    if (*cert_pem && *key_pem)
        return 0;
    free(*cert_pem);
    free(*key_pem);
    *cert_pem = *key_pem = NULL;
    return -1;
}

int pl__pki_authority(const char *name, int64_t now_ms, char **cert_pem, char **key_pem)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = key ? cert_new(key, name, now_ms) : NULL;
    bool good = cert && X509_set_issuer_name(cert, X509_get_subject_name(cert)) == 1 &&
                pl__x509_extension_add(cert, NULL, NID_basic_constraints, "critical,CA:TRUE") &&
                pl__x509_extension_add(cert, NULL, NID_key_usage,
                                       "critical,digitalSignature,keyCertSign") &&
                pl__x509_extension_add(cert, NULL, NID_subject_key_identifier, "hash") &&
                X509_sign(cert, key, EVP_sha256()) > 0;

    return pair_take(cert, key, good, cert_pem, key_pem);
}

int pl__pki_issue(const char *ca_cert, const char *ca_key, const char *name, const char *names,
                  int64_t now_ms, char **cert_pem, char **key_pem)
{
    BIO *cert_bio = pl__pem_open(pl__str(ca_cert)), *key_bio = pl__pem_open(pl__str(ca_key));
    X509 *signer = cert_bio ? PEM_read_bio_X509(cert_bio, NULL, pl__pem_no_password, NULL) : NULL;
    EVP_PKEY *signer_key =
        key_bio ? PEM_read_bio_PrivateKey(key_bio, NULL, pl__pem_no_password, NULL) : NULL;
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = key ? cert_new(key, name, now_ms) : NULL;
    bool good = cert && signer && signer_key &&
                X509_set_issuer_name(cert, X509_get_subject_name(signer)) == 1 &&
                pl__x509_extension_add(cert, NULL, NID_key_usage, "critical,digitalSignature") &&
                pl__x509_extension_add(cert, NULL, NID_ext_key_usage, "serverAuth,clientAuth") &&
                pl__x509_extension_add(cert, signer, NID_authority_key_identifier, "keyid") &&
                pl__x509_extension_add(cert, NULL, NID_subject_alt_name, names) &&
                X509_sign(cert, signer_key, EVP_sha256()) > 0;

    BIO_free(cert_bio);
    BIO_free(key_bio);
    X509_free(signer);
    EVP_PKEY_free(signer_key);
    return pair_take(cert, key, good, cert_pem, key_pem);
}
