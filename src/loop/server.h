/* loop/server.h - a small HTTP or HTTPS server on the loop, for /healthz, /readyz and /metrics.
 *
 * libmicrohttpd without threads. It reads requests without bodies (one that has a body is refused),
 * hands each to the handler, and sends what the handler answers, at once or later. Connections,
 * header sizes and waiting times are bounded. */
#ifndef PL_LOOP_SERVER_H
#define PL_LOOP_SERVER_H

#include "loop/loop.h"

struct pl_server;
struct pl_server_call; /* one request that has no answer yet */

struct pl_server_request {
    const char *method;
    const char *path;          /* without the query */
    const char *authorization; /* the header's value; NULL: none. Never log it. */
    const char *client;        /* the peer's address, for logs */
};

struct pl_server_options {
    const char *listen; /* ":8443", "127.0.0.1:0", "[::1]:9090"; no host: all addresses */
    bool tls;
    struct pl_str cert_pem, key_pem; /* empty: a self-signed one is made */
    uint32_t connections_max;        /* 0: 64 */
    uint32_t timeout_s;              /* a connection on which nothing happens; 0: 30 s */
    /* Called for each request, with an answer due: pl__server_answer(), now or later. Not more than
     * a minute later: then 503 is sent and the call is gone (`gone` is called). */
    void (*handle)(void *user, struct pl_server_call *call,
                   const struct pl_server_request *request);
    /* A call that was not answered yet ended: the time is up or the server closes. NULL: do not
     * care, which is right when calls are always answered at once. */
    void (*gone)(void *user, struct pl_server_call *call);
    void *user;
    uint32_t answer_timeout_ms; /* 0: 60 s */
};

/* Listens. 0, or -1 with an error such as "listen on :8443: address already in use". */
int pl__server_open(struct pl_loop *loop, const struct pl_server_options *options,
                    struct pl_arena *arena, struct pl_server **server, struct pl_error **err);

/* The port it listens on, for ":0". */
uint16_t pl__server_port(const struct pl_server *server);

/* Answers, once; the call is gone afterwards. The body is copied. NULL content type: text/plain. */
void pl__server_answer(struct pl_server_call *call, int status, const char *content_type,
                       struct pl_str body);

/* For the handler's own use with a call that it answers later. */
void pl__server_call_set(struct pl_server_call *call, void *data);
void *pl__server_call_get(const struct pl_server_call *call);

/* Stops listening and drops what is open. */
void pl__server_close(struct pl_server *server);

#endif
