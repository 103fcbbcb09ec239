/* loop/stream.h - a stream of bytes on the loop: to a Kubernetes API server, or plain TCP to anybody.
 *
 * To an API server it is libcurl that connects (CURLOPT_CONNECT_ONLY), with everything that a pl_kube knows:
 * certificates, proxy, tls-server-name, credentials that are fresh; over TLS only http/1.1 is offered. Then
 * the bytes go through curl_easy_send() and curl_easy_recv(). With Debian 12's libcurl 7.88 that means:
 *
 * - The handle has to stay in the multi: taking it out closes the connection.
 * - libcurl stops watching the socket when it is connected. We watch a copy of the descriptor, so that
 *   two watchers never meet on one number. The first curl_easy_send() marks the connection as in use;
 *   from then on libcurl does not look at it as an idle one that may be closed or reused (tried: one of
 *   125 s with new connections beside it; libcurl closes idle ones at 118 s).
 * - OpenSSL wants a write that did not fit repeated from the same address, unless told otherwise.
 * - Nothing blocks: the socket is non-blocking, and names are looked up by libcurl's own thread.
 *
 * Callbacks come from the loop, never from within a call here. */
#ifndef PL_LOOP_STREAM_H
#define PL_LOOP_STREAM_H

#include "loop/kube.h"

enum { STREAM_WAITING_BYTES_MAX = 1024 * 1024 };

struct pl_stream;

struct pl_stream_handlers {
    void (*connected)(void *user);
    void (*received)(void *user, const uint8_t *bytes, size_t size);
    /* It could not be connected, or has ended. KUBE_OK: the peer ended it properly. The last call; the
     * stream still has to be closed. `error` is for people, the same text for the same fault. */
    void (*ended)(void *user, enum pl_kube_failure failure, const char *error);
};

/* To the API server of `kube`, which must outlive the stream. */
struct pl_stream *pl__stream_open_kube(struct pl_loop *loop, struct pl_kube *kube,
                                       uint32_t timeout_ms,
                                       const struct pl_stream_handlers *handlers, void *user);

/* To a host name or an address. */
struct pl_stream *pl__stream_open_tcp(struct pl_loop *loop, const char *host, uint16_t port,
                                      uint32_t timeout_ms,
                                      const struct pl_stream_handlers *handlers, void *user);

/* Sends, now or when the peer takes it. 0, or -1 when more than STREAM_WAITING_BYTES_MAX would wait. */
int pl__stream_write(struct pl_stream *stream, const void *bytes, size_t size);

/* No callback comes after this, and the pointer is not to be used. What waits to be sent is dropped. NULL
 * is fine. */
void pl__stream_close(struct pl_stream *stream);

/* Why it would be given up now, while it is not connected: what it waits for. */
void pl__stream_late_text(const struct pl_stream *stream, char *room, size_t size);

/* So far; a read or write is a system call that moved bytes. */
struct pl_stream_counts {
    uint64_t bytes_in, bytes_out, reads, writes;
};
struct pl_stream_counts pl__stream_counts(const struct pl_stream *stream);

#endif
