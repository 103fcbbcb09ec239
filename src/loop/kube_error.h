/* loop/kube_error.h - what libcurl says, for people and for programs. */
#ifndef PL_LOOP_KUBE_ERROR_H
#define PL_LOOP_KUBE_ERROR_H

#include <curl/curl.h>

#include "loop/kube.h"

/* What the message needs to know about the server. */
struct pl_kube_peer {
    const char *host;     /* "127.0.0.1:6443" */
    const char *tls_name; /* what its certificate must be for */
    bool own_ca;          /* a CA was given */
};

/* Why a transfer that ended with `result` has no answer. `detail` is libcurl's own text, looked at
 * but not shown: it may quote what the server sent. */
enum pl_kube_failure pl__kube_failure(CURL *easy, CURLcode result, const char *detail,
                                      const struct pl_kube_peer *peer, char *text,
                                      size_t text_size);

/* "connection refused": an errno as part of a sentence, in `room`. */
const char *pl__errno_text(int reason, char *room, size_t size);

/* Our own deadline passed: says what was being waited for. `easy` may be NULL. */
void pl__kube_timeout_text(CURL *easy, const struct pl_kube_peer *peer, uint64_t timeout_ms,
                           char *text, size_t text_size);

#endif
