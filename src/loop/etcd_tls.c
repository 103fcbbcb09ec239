/* loop/etcd_tls.c - see etcd_tls.h.
 *
 * OpenSSL between two memory BIOs. It says what went wrong in three places: the result of verifying,
 * alerts (as reasons 1000 + number), and everything else; close_for() turns them into words. */
#include "loop/etcd_tls.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    ERROR_BYTES_MAX = 256,
    NAME_BYTES_MAX = 256,  /* DNS allows 253 */
    IDLE_BYTES_MAX = 4096, /* what a BIO may keep between records */
    RECORD_HANDSHAKE = 22,
    RECORD_ALERT = 21,
    ALERT_NO_APPLICATION_PROTOCOL = 120,
};

struct pl_etcd_tls {
    SSL *ssl;
    BIO *in, *out;    /* the SSL's */
    size_t in_peak;   /* the most that was in `in` at once: it keeps that much memory */
    size_t given_out; /* of `out`, since the last send */
    enum pl_etcd_tls_state state;
    enum pl_etcd_tls_failure failure;
    bool heard;      /* something has come */
    bool heard_data; /* of what goes inside */
    bool ended;      /* nothing more will come */
    char server_name[NAME_BYTES_MAX];
    char error[ERROR_BYTES_MAX];
};

/* --- why it is closed --------------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static void close_with(struct pl_etcd_tls *tls,
                                                             enum pl_etcd_tls_failure failure,
                                                             const char *format, ...)
{
    va_list args;

    if (tls->state == ETCD_TLS_CLOSED)
        return;
    tls->state = ETCD_TLS_CLOSED;
    tls->failure = failure;
    va_start(args, format);
    vsnprintf(tls->error, sizeof tls->error, format, args);
    va_end(args);
}

/* Their certificate was not taken by us. */
static void close_for_verification(struct pl_etcd_tls *tls, long result)
{
    switch (result) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        close_with(tls, ETCD_TLS_UNTRUSTED, "the server's certificate is not for %s",
                   tls->server_name);
        break;
    case X509_V_ERR_CERT_HAS_EXPIRED:
        close_with(tls, ETCD_TLS_UNTRUSTED, "the server's certificate, or its CA's, has expired");
        break;
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
        close_with(tls, ETCD_TLS_UNTRUSTED,
                   "the server's certificate is not signed by the cluster's etcd CA");
        break;
    default:
        close_with(tls, ETCD_TLS_UNTRUSTED, "the server's certificate is not good: %s",
                   X509_verify_cert_error_string(result));
        break;
    }
}

/* The server said why it ends. */
static void close_for_alert(struct pl_etcd_tls *tls, int alert)
{
    switch (alert) {
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_REVOKED:
    case SSL_AD_CERTIFICATE_EXPIRED:
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_UNKNOWN_CA:
    case SSL_AD_ACCESS_DENIED:
    case SSL_AD_CERTIFICATE_REQUIRED:
        close_with(tls, ETCD_TLS_UNTRUSTED, "the server refused our client certificate: %s",
                   SSL_alert_desc_string_long(alert));
        break;
    case ALERT_NO_APPLICATION_PROTOCOL:
        close_with(tls, ETCD_TLS_BROKEN, "the server does not speak HTTP/2");
        break;
    default:
        close_with(tls, ETCD_TLS_BROKEN, "the server ended TLS: %s",
                   SSL_alert_desc_string_long(alert));
        break;
    }
}

/* The last call of OpenSSL failed for good. */
static void close_for(struct pl_etcd_tls *tls)
{
    unsigned long error = ERR_peek_last_error();
    int reason = ERR_GET_REASON(error);
    const char *words = ERR_reason_error_string(error);

    if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED)
        close_for_verification(tls, SSL_get_verify_result(tls->ssl));
    else if (reason > SSL_AD_REASON_OFFSET && reason <= SSL_AD_REASON_OFFSET + UINT8_MAX)
        close_for_alert(tls, reason - SSL_AD_REASON_OFFSET);
    else
        close_with(tls, ETCD_TLS_BROKEN, "TLS: %s", words ? words : "failed");
    ERR_clear_error();
}

static void close_for_end(struct pl_etcd_tls *tls)
{
    if (tls->state == ETCD_TLS_HANDSHAKING)
        close_with(tls, ETCD_TLS_BROKEN, "the connection was closed during the TLS handshake");
    else if (!tls->heard_data)
        /* A reset can overtake the alert that says why. */
        close_with(tls, ETCD_TLS_BROKEN,
                   "the connection was closed right after the TLS handshake: the server may have "
                   "refused our client certificate");
    else
        close_with(tls, ETCD_TLS_BROKEN, "the connection was closed");
}

/* --- moving on ---------------------------------------------------------------------------------- */

static size_t waiting(BIO *bio)
{
    return BIO_ctrl_pending(bio);
}

/* What was given out by the last send is gone. Nothing was added since. */
static void settle(struct pl_etcd_tls *tls)
{
    if (tls->given_out)
        (void)BIO_reset(tls->out);
    tls->given_out = 0;
}

static BIO *bio_new(void)
{
    BIO *bio = BIO_new(BIO_s_mem());

    if (!bio)
        abort();
    BIO_set_mem_eof_return(bio, -1); /* empty is "not now", not the end */
    return bio;
}

/* A memory BIO never shrinks. Between calls hundreds of connections hold one each. */
static void in_trim(struct pl_etcd_tls *tls)
{
    if (tls->in_peak <= IDLE_BYTES_MAX || waiting(tls->in) > 0)
        return;
    tls->in = bio_new();
    tls->in_peak = 0;
    SSL_set0_rbio(tls->ssl, tls->in);
}

static void handshake_done(struct pl_etcd_tls *tls)
{
    const unsigned char *protocol = NULL;
    unsigned int size = 0;

    SSL_get0_alpn_selected(tls->ssl, &protocol, &size);
    if (size == 2 && memcmp(protocol, "h2", 2) == 0)
        tls->state = ETCD_TLS_OPEN;
    else
        close_with(tls, ETCD_TLS_BROKEN, "the server does not speak HTTP/2");
}

static void handshake(struct pl_etcd_tls *tls)
{
    ERR_clear_error();
    int result = SSL_do_handshake(tls->ssl);
    int error = SSL_get_error(tls->ssl, result);

    if (result == 1)
        handshake_done(tls);
    else if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE)
        close_for(tls);
}

/* The first byte tells: a handshake, or an alert instead of one. */
static bool looks_like_tls(uint8_t first)
{
    return first == RECORD_HANDSHAKE || first == RECORD_ALERT;
}

int pl__etcd_tls_receive(struct pl_etcd_tls *tls, const void *bytes, size_t size)
{
    settle(tls);
    if (tls->state == ETCD_TLS_CLOSED)
        return -1;
    if (size == 0)
        return 0;
    if (!tls->heard && !looks_like_tls(*(const uint8_t *)bytes)) {
        close_with(tls, ETCD_TLS_BROKEN, "what answers is not TLS");
        return -1;
    }
    tls->heard = true;
    if (size > ETCD_TLS_BUFFER_MAX - waiting(tls->in) ||
        BIO_write(tls->in, bytes, (int)size) != (int)size) {
        close_with(tls, ETCD_TLS_BROKEN, "more came than was read");
        return -1;
    }
    if (tls->in_peak < waiting(tls->in))
        tls->in_peak = waiting(tls->in);
    if (tls->state == ETCD_TLS_HANDSHAKING)
        handshake(tls);
    return tls->state == ETCD_TLS_CLOSED ? -1 : 0;
}

void pl__etcd_tls_receive_end(struct pl_etcd_tls *tls)
{
    settle(tls);
    tls->ended = true;
    /* What came before the end may say more than the end, and it was not read yet. */
    if (tls->state == ETCD_TLS_HANDSHAKING || (waiting(tls->in) == 0 && !SSL_has_pending(tls->ssl)))
        close_for_end(tls);
}

size_t pl__etcd_tls_read(struct pl_etcd_tls *tls, void *room, size_t size)
{
    size_t got = 0;

    settle(tls);
    if (tls->state != ETCD_TLS_OPEN)
        return 0;
    ERR_clear_error();
    int result = SSL_read_ex(tls->ssl, room, size, &got);
    int error = SSL_get_error(tls->ssl, result);
    if (waiting(tls->out) > ETCD_TLS_BUFFER_MAX) {
        /* Each change of keys that they ask for is one that we answer. */
        close_with(tls, ETCD_TLS_BROKEN, "the server makes us answer too much");
        return 0;
    }
    if (result == 1) {
        tls->heard_data = true;
        return got;
    }
    if (error == SSL_ERROR_ZERO_RETURN)
        close_with(tls, ETCD_TLS_FINE, "%s", "");
    else if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE)
        close_for(tls);
    else if (tls->ended)
        close_for_end(tls);
    else
        in_trim(tls);
    return 0;
}

size_t pl__etcd_tls_send(struct pl_etcd_tls *tls, const uint8_t **bytes)
{
    char *data = NULL;

    settle(tls);
    long size = BIO_get_mem_data(tls->out, &data);
    if (size <= 0)
        return 0;
    tls->given_out = (size_t)size;
    *bytes = (const uint8_t *)data;
    return (size_t)size;
}

int pl__etcd_tls_write(struct pl_etcd_tls *tls, const void *bytes, size_t size)
{
    size_t written = 0;

    settle(tls);
    if (tls->state != ETCD_TLS_OPEN || size > ETCD_TLS_BUFFER_MAX ||
        waiting(tls->out) > ETCD_TLS_BUFFER_MAX - size)
        return -1;
    if (size == 0)
        return 0;
    ERR_clear_error();
    if (SSL_write_ex(tls->ssl, bytes, size, &written) != 1) {
        close_for(tls);
        return -1;
    }
    return 0;
}

/* --- beginning and end -------------------------------------------------------------------------- */

/* What the certificate must carry. An IP address is not sent as a name. */
static bool server_name_set(struct pl_etcd_tls *tls, const char *name)
{
    size_t size = strlen(name) + 1;

    if (size == 1 || size > sizeof tls->server_name)
        return false;
    memcpy(tls->server_name, name, size);
    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls->ssl), name) == 1)
        return true;
    SSL_set_hostflags(tls->ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(tls->ssl, name) == 1 &&
           SSL_set_tlsext_host_name(tls->ssl, tls->server_name) == 1;
}

struct pl_etcd_tls *pl__etcd_tls_new(const struct pl_etcd_cert *cert, const char *server_name)
{
    struct pl_etcd_tls *tls = calloc(1, sizeof *tls);

    if (!tls)
        abort();
    tls->ssl = SSL_new(pl__etcd_cert_ssl_ctx(cert));
    tls->in = bio_new();
    tls->out = bio_new();
    if (!tls->ssl)
        abort();
    SSL_set_bio(tls->ssl, tls->in, tls->out);
    SSL_set_connect_state(tls->ssl);
    if (server_name_set(tls, server_name))
        handshake(tls);
    else
        close_with(tls, ETCD_TLS_BROKEN, "the name of the server is empty, or no name at all");
    ERR_clear_error();
    return tls;
}

void pl__etcd_tls_also_for(struct pl_etcd_tls *tls, const char *name)
{
    if (SSL_add1_host(tls->ssl, name) != 1)
        close_with(tls, ETCD_TLS_BROKEN, "no server can be called %s", name);
}

void pl__etcd_tls_free(struct pl_etcd_tls *tls)
{
    if (!tls)
        return;
    SSL_free(tls->ssl); /* and the BIOs */
    free(tls);
}

void pl__etcd_tls_close(struct pl_etcd_tls *tls)
{
    settle(tls);
    if (tls->state == ETCD_TLS_OPEN) {
        ERR_clear_error();
        (void)SSL_shutdown(tls->ssl);
        ERR_clear_error();
    }
    close_with(tls, ETCD_TLS_FINE, "%s", "");
}

/* --- questions ---------------------------------------------------------------------------------- */

enum pl_etcd_tls_state pl__etcd_tls_state(const struct pl_etcd_tls *tls)
{
    return tls->state;
}

enum pl_etcd_tls_failure pl__etcd_tls_failure(const struct pl_etcd_tls *tls)
{
    return tls->failure;
}

const char *pl__etcd_tls_error(const struct pl_etcd_tls *tls)
{
    return tls->error;
}
