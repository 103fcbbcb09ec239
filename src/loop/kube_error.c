#include "loop/kube_error.h"

#include <ctype.h>
#include <errno.h>
#include <openssl/x509_vfy.h>
#include <stdio.h>
#include <string.h>

const char *pl__errno_text(int reason, char *room, size_t size)
{
    snprintf(room, size, "%s", strerror(reason));
    if (!isupper((unsigned char)room[1]))
        room[0] = (char)tolower((unsigned char)room[0]);
    return room;
}

static bool detail_has(const char *detail, const char *part)
{
    return detail && strstr(detail, part) != NULL;
}

static void connect_text(CURL *easy, const struct pl_kube_peer *peer, char *text, size_t size)
{
    char reason[128];
    long os_error = 0;

    curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &os_error);
    snprintf(text, size, "connect to %s: %s", peer->host,
             os_error ? pl__errno_text((int)os_error, reason, sizeof reason) : "failed");
}

static void verify_text(CURL *easy, const struct pl_kube_peer *peer, char *text, size_t size)
{
    long result = 0;

    curl_easy_getinfo(easy, CURLINFO_SSL_VERIFYRESULT, &result);
    switch (result) {
    case X509_V_OK:              /* the chain is right, so it was the name; */
    case X509_V_ERR_UNSPECIFIED: /* libcurl looks at that first and then leaves this value */
        snprintf(text, size, "certificate of %s is not for %s", peer->host, peer->tls_name);
        return;
    case X509_V_ERR_CERT_HAS_EXPIRED:
        snprintf(text, size, "certificate of %s has expired", peer->host);
        return;
    case X509_V_ERR_CERT_NOT_YET_VALID:
        snprintf(text, size, "certificate of %s is not valid yet", peer->host);
        return;
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_CERT_UNTRUSTED:
        snprintf(text, size, "certificate of %s is not signed by %s", peer->host,
                 peer->own_ca ? "the given CA" : "a CA that this system trusts");
        return;
    default:
        snprintf(text, size, "certificate of %s: %s", peer->host,
                 X509_verify_cert_error_string(result));
        return;
    }
}

static void handshake_text(const struct pl_kube_peer *peer, const char *detail, char *text,
                           size_t size)
{
    const char *what = "failed";

    if (detail_has(detail, "wrong version number") || detail_has(detail, "packet length too long"))
        what = "failed: the server does not speak TLS";
    else if (detail_has(detail, "alert protocol version") ||
             detail_has(detail, "unsupported protocol"))
        what = "failed: the server speaks no TLS 1.2 or later";
    else if (detail_has(detail, "SSL_ERROR_SYSCALL") || detail_has(detail, "unexpected eof") ||
             detail_has(detail, "reset by peer"))
        what = "was cut by the server";
    snprintf(text, size, "TLS handshake with %s %s", peer->host, what);
}

/* With TLS 1.3 a refused client certificate shows only when the first answer is read. */
static bool certificate_refused(const char *detail)
{
    return detail_has(detail, "alert") &&
           (detail_has(detail, "certificate") || detail_has(detail, "alert unknown ca"));
}

static void cut_text(CURL *easy, CURLcode result, const struct pl_kube_peer *peer,
                     const char *detail, char *text, size_t size)
{
    long status = 0, connect_count = 0;
    curl_off_t handshaken_us = 0;

    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(easy, CURLINFO_NUM_CONNECTS, &connect_count);
    curl_easy_getinfo(easy, CURLINFO_APPCONNECT_TIME_T, &handshaken_us);
    if (status == 0 && connect_count > 0 && handshaken_us > 0 &&
        (result == CURLE_SEND_ERROR || result == CURLE_RECV_ERROR))
        snprintf(
            text, size,
            "%s cut the connection right after the TLS handshake: it may have refused our client "
            "certificate",
            peer->host);
    else if (result == CURLE_GOT_NOTHING || (status == 0 && result == CURLE_RECV_ERROR))
        snprintf(text, size, "%s closed the connection without an answer", peer->host);
    else if (result == CURLE_UNSUPPORTED_PROTOCOL || result == CURLE_WEIRD_SERVER_REPLY ||
             detail_has(detail, "HTTP/0.9"))
        snprintf(text, size, "what %s sent is not HTTP", peer->host);
    else if (result == CURLE_BAD_CONTENT_ENCODING)
        snprintf(text, size, "what %s sent is not compressed as it says", peer->host);
    else
        snprintf(text, size, "connection to %s was cut", peer->host);
}

enum pl_kube_failure pl__kube_failure(CURL *easy, CURLcode result, const char *detail,
                                      const struct pl_kube_peer *peer, char *text, size_t text_size)
{
    if (certificate_refused(detail) && result != CURLE_PEER_FAILED_VERIFICATION) {
        snprintf(text, text_size, "%s refused our client certificate", peer->host);
        return KUBE_TLS;
    }
    switch (result) {
    case CURLE_COULDNT_RESOLVE_HOST:
        snprintf(text, text_size, "%s: host name not found", peer->host);
        return KUBE_UNREACHABLE;
    case CURLE_COULDNT_RESOLVE_PROXY:
        snprintf(text, text_size, "host name of the proxy not found");
        return KUBE_UNREACHABLE;
    case CURLE_PROXY:
        snprintf(text, text_size, "the proxy did not connect us to %s", peer->host);
        return KUBE_UNREACHABLE;
    case CURLE_COULDNT_CONNECT:
        connect_text(easy, peer, text, text_size);
        return KUBE_UNREACHABLE;
    case CURLE_OPERATION_TIMEDOUT:
        pl__kube_timeout_text(easy, peer, 0, text, text_size);
        return KUBE_TIMEOUT;
    case CURLE_PEER_FAILED_VERIFICATION:
        verify_text(easy, peer, text, text_size);
        return KUBE_TLS;
    case CURLE_SSL_CONNECT_ERROR:
        handshake_text(peer, detail, text, text_size);
        return KUBE_TLS;
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_ENGINE_NOTFOUND:
    case CURLE_SSL_ENGINE_SETFAILED:
    case CURLE_SSL_SHUTDOWN_FAILED:
        snprintf(text, text_size, "TLS with %s: %s", peer->host, curl_easy_strerror(result));
        return KUBE_TLS;
    case CURLE_OUT_OF_MEMORY: /* what libcurl says when a header is larger than it cares for */
        snprintf(text, text_size, "the answer of %s has too many headers", peer->host);
        return KUBE_TOO_LARGE;
    default:
        if (detail_has(detail, "user callback function failed")) { /* the same, in HTTP/2 */
            snprintf(text, text_size, "the answer of %s has too many headers", peer->host);
            return KUBE_TOO_LARGE;
        }
        cut_text(easy, result, peer, detail, text, text_size);
        return KUBE_CUT;
    }
}

void pl__kube_timeout_text(CURL *easy, const struct pl_kube_peer *peer, uint64_t timeout_ms,
                           char *text, size_t text_size)
{
    curl_off_t connected_us = 0, sent_us = 0, elapsed_us = 0;
    const char *what = "connect to";

    if (easy) {
        curl_easy_getinfo(easy, CURLINFO_CONNECT_TIME_T, &connected_us);
        curl_easy_getinfo(easy, CURLINFO_PRETRANSFER_TIME_T, &sent_us);
        curl_easy_getinfo(easy, CURLINFO_TOTAL_TIME_T, &elapsed_us);
    }
    if (sent_us)
        what = "request to";
    else if (connected_us)
        what = "TLS handshake with";
    if (timeout_ms == 0)
        timeout_ms = (uint64_t)elapsed_us / 1000;
    snprintf(text, text_size, "%s %s: no answer within %.3g s", what, peer->host,
             (double)timeout_ms / 1000);
}
