#include "loop/etcd_cert.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

#include "base/secret.h"
#include "loop/pem.h"

enum {
    AUTHORITIES_MAX = 64,
    LIFE_MS = 24 * 60 * 60 * 1000,
    BACKDATED_MS = 5 * 60 * 1000, /* their clock may be behind ours */
    HASH_BYTES = 32,
};

struct pl_etcd_cert {
    SSL_CTX *ctx;
    int64_t renew_at_ms;
    uint8_t source_hash[HASH_BYTES]; /* of what it was made from */
};

/* --- what it was made from ---------------------------------------------------------------------- */

static void source_hash(struct pl_str ca_pem, struct pl_str key_pem, uint8_t hash[HASH_BYTES])
{
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    uint64_t ca_size = ca_pem.len; /* so that a byte cannot change sides */

    if (!md || EVP_DigestInit_ex(md, EVP_sha256(), NULL) != 1 ||
        EVP_DigestUpdate(md, &ca_size, sizeof ca_size) != 1 ||
        EVP_DigestUpdate(md, ca_pem.ptr, ca_pem.len) != 1 ||
        EVP_DigestUpdate(md, key_pem.ptr, key_pem.len) != 1 ||
        EVP_DigestFinal_ex(md, hash, NULL) != 1)
        abort();
    EVP_MD_CTX_free(md);
}

bool pl__etcd_cert_is_from(const struct pl_etcd_cert *cert, struct pl_str ca_pem,
                           struct pl_str key_pem)
{
    uint8_t hash[HASH_BYTES];

    source_hash(ca_pem, key_pem, hash);
    return memcmp(hash, cert->source_hash, sizeof hash) == 0;
}

/* --- the authority ------------------------------------------------------------------------------ */

struct authority {
    STACK_OF(X509) * certs; /* all of tls.crt */
    EVP_PKEY *key;
    X509 *signer; /* the one of `certs` that belongs to the key */
};

static void authority_release(struct authority *a)
{
    sk_X509_pop_free(a->certs, X509_free);
    EVP_PKEY_free(a->key); /* OpenSSL overwrites private keys */
}

static STACK_OF(X509) * certs_read(struct pl_str pem)
{
    STACK_OF(X509) *certs = sk_X509_new_null();
    BIO *bio = pl__pem_open(pem);
    X509 *cert;

    while (bio && certs && sk_X509_num(certs) < AUTHORITIES_MAX &&
           (cert = PEM_read_bio_X509(bio, NULL, pl__pem_no_password, NULL)))
        sk_X509_push(certs, cert);
    BIO_free(bio);
    ERR_clear_error();
    return certs;
}

static EVP_PKEY *key_read(struct pl_str pem)
{
    BIO *bio = pl__pem_open(pem);
    EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, pl__pem_no_password, NULL) : NULL;

    BIO_free(bio);
    ERR_clear_error();
    return key;
}

static bool has_expired(const X509 *cert, int64_t now_ms)
{
    time_t now = (time_t)(now_ms / 1000);

    return X509_cmp_time(X509_get0_notAfter(cert), &now) <= 0;
}

/* A renewed CA stands beside the old one, with the same key: the first that is still good. */
static const char *signer_find(struct authority *a, int64_t now_ms)
{
    bool expired = false;

    for (int i = 0; i < sk_X509_num(a->certs) && !a->signer; i++) {
        X509 *cert = sk_X509_value(a->certs, i);
        if (X509_check_private_key(cert, a->key) != 1)
            continue;
        if (has_expired(cert, now_ms))
            expired = true;
        else
            a->signer = cert;
    }
    ERR_clear_error();
    if (a->signer)
        return NULL;
    return expired ? "the CA in tls.crt has expired"
                   : "tls.key belongs to no certificate of tls.crt";
}

/* What is wrong with it; NULL: nothing. */
static const char *authority_read(struct authority *a, struct pl_str ca_pem, struct pl_str key_pem,
                                  int64_t now_ms)
{
    a->certs = certs_read(ca_pem);
    if (!a->certs || sk_X509_num(a->certs) == 0)
        return "there is no certificate in the PEM of tls.crt";
    a->key = key_read(key_pem);
    if (!a->key && pl__str_contains(key_pem, PL_STR("ENCRYPTED")))
        return "tls.key is encrypted, which is not supported";
    if (!a->key)
        return "there is no private key in the PEM of tls.key";
    return signer_find(a, now_ms);
}

/* --- ours --------------------------------------------------------------------------------------- */

static bool serial_set(X509 *cert)
{
    uint64_t number = 0;

    return RAND_bytes((unsigned char *)&number, sizeof number) == 1 &&
           ASN1_INTEGER_set_uint64(X509_get_serialNumber(cert), number >> 1 | 1) == 1;
}

static int64_t time_ms(const ASN1_TIME *time)
{
    struct tm tm;

    return ASN1_TIME_to_tm(time, &tm) == 1 ? (int64_t)timegm(&tm) * 1000 : 0;
}

/* Not longer than its CA. Go compares whole chains with its clock, not the two with each other, but a
 * certificate that its CA does not outlive says when a new CA is needed. */
static int64_t end_ms(const X509 *signer, int64_t now_ms)
{
    int64_t ca_end_ms = time_ms(X509_get0_notAfter(signer));
    int64_t own_end_ms = now_ms + LIFE_MS;

    return ca_end_ms < own_end_ms ? ca_end_ms : own_end_ms;
}

static bool validity_set(X509 *cert, int64_t start_ms, int64_t until_ms)
{
    return ASN1_TIME_set(X509_getm_notBefore(cert), (time_t)(start_ms / 1000)) &&
           ASN1_TIME_set(X509_getm_notAfter(cert), (time_t)(until_ms / 1000));
}

/* With several CAs of one name, it tells the server which of them signed. */
static bool issuer_set(X509 *cert, X509 *signer)
{
    return X509_set_issuer_name(cert, X509_get_subject_name(signer)) == 1 &&
           (!X509_get0_subject_key_id(signer) ||
            pl__x509_extension_add(cert, signer, NID_authority_key_identifier, "keyid"));
}

static X509 *cert_make(EVP_PKEY *key, const struct authority *a, int64_t start_ms, int64_t until_ms)
{
    static const unsigned char name[] = "cluster-api.x-k8s.io";
    X509 *cert = X509_new();

    if (cert && X509_set_version(cert, X509_VERSION_3) == 1 && serial_set(cert) &&
        validity_set(cert, start_ms, until_ms) &&
        X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_ASC, name, -1, -1,
                                   0) == 1 &&
        X509_set_pubkey(cert, key) == 1 &&
        pl__x509_extension_add(cert, NULL, NID_key_usage, "critical,digitalSignature") &&
        pl__x509_extension_add(cert, NULL, NID_ext_key_usage, "clientAuth") &&
        issuer_set(cert, a->signer) && X509_sign(cert, a->key, EVP_sha256()) > 0)
        return cert;
    X509_free(cert);
    return NULL;
}

static bool store_fill(X509_STORE *store, const struct authority *a)
{
    /* As Go does it: what stands in tls.crt is trusted, self-signed or not. */
    bool ok = X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN) == 1;

    for (int i = 0; ok && i < sk_X509_num(a->certs); i++)
        ok = X509_STORE_add_cert(store, sk_X509_value(a->certs, i)) == 1;
    return ok;
}

static bool ctx_fill(SSL_CTX *ctx, X509 *cert, EVP_PKEY *key, const struct authority *a)
{
    static const unsigned char alpn[] = { 2, 'h', '2' };

    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET);
    /* Buffers stay: giving them back with every record (loop/sparse.h) cost a third of an observation. */
    SSL_CTX_set_mode(ctx, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    /* Of TLS 1.2, what HTTP/2 allows. */
    return SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) == 1 &&
           SSL_CTX_set_cipher_list(ctx, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1 &&
           SSL_CTX_set_alpn_protos(ctx, alpn, sizeof alpn) == 0 &&
           SSL_CTX_use_certificate(ctx, cert) == 1 && SSL_CTX_use_PrivateKey(ctx, key) == 1 &&
           store_fill(SSL_CTX_get_cert_store(ctx), a);
}

static SSL_CTX *ctx_make(const struct authority *a, int64_t start_ms, int64_t until_ms)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = key ? cert_make(key, a, start_ms, until_ms) : NULL;
    SSL_CTX *ctx = cert ? SSL_CTX_new(TLS_client_method()) : NULL;

    if (ctx && !ctx_fill(ctx, cert, key, a)) {
        SSL_CTX_free(ctx);
        ctx = NULL;
    }
    X509_free(cert);
    EVP_PKEY_free(key);
    ERR_clear_error();
    return ctx;
}

int pl__etcd_cert_mint(struct pl_str ca_pem, struct pl_str key_pem, int64_t now_ms,
                       struct pl_arena *arena, struct pl_etcd_cert **out, struct pl_error **err)
{
    struct authority a = { 0 };
    const char *fault = authority_read(&a, ca_pem, key_pem, now_ms);
    int64_t start_ms = now_ms - BACKDATED_MS;
    int64_t until_ms = fault ? 0 : end_ms(a.signer, now_ms);
    SSL_CTX *ctx = fault ? NULL : ctx_make(&a, start_ms, until_ms);

    authority_release(&a);
    if (!ctx)
        return pl__error(arena, err, PL_INVALID, "etcd CA: %s",
                         fault ? fault : "no client certificate can be made with it");
    struct pl_etcd_cert *cert = calloc(1, sizeof *cert);
    if (!cert)
        abort();
    cert->ctx = ctx;
    cert->renew_at_ms = now_ms + (until_ms - now_ms) / 2;
    source_hash(ca_pem, key_pem, cert->source_hash);
    *out = cert;
    return 0;
}

void pl__etcd_cert_free(struct pl_etcd_cert *cert)
{
    if (!cert)
        return;
    SSL_CTX_free(cert->ctx);
    pl__secret_wipe(cert, sizeof *cert);
    free(cert);
}

int64_t pl__etcd_cert_renew_at_ms(const struct pl_etcd_cert *cert)
{
    return cert->renew_at_ms;
}

struct ssl_ctx_st *pl__etcd_cert_ssl_ctx(const struct pl_etcd_cert *cert)
{
    return cert->ctx;
}
