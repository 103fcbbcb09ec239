/* loop/server.h - an HTTP/1.1 or HTTPS server on the loop: /healthz and /metrics, and the playground's API.
 *
 * libmicrohttpd without threads. It hands each request to the handler and sends what the handler answers, at
 * once or later: a whole body, a stream that is pulled, or a socket that changes its protocol. Connections,
 * headers, bodies and waiting times are bounded, and so is what all bodies and answers hold together; a body
 * is refused unless the options allow one. */
#ifndef PL_LOOP_SERVER_H
#define PL_LOOP_SERVER_H

#include "loop/loop.h"

struct pl_server;
struct
    pl_server_call; /* one request, until its answer is given; of a stream, until the stream has ended */

struct pl_server_request {
    const char *method;
    const char *path;          /* without the query, unescaped */
    const char *target;        /* path and query as they came */
    const char *authorization; /* the header's value; NULL: none. Never log it. */
    const char *client;        /* the peer's address, for logs */
    struct pl_str body;
};

struct pl_server_options {
    const char *listen; /* ":8443", "127.0.0.1:0", "[::1]:9090"; no host: all addresses */
    bool tls;
    struct pl_str cert_pem, key_pem; /* empty: a self-signed one is made */
    uint32_t connections_max;        /* 0: 64 */
    uint32_t timeout_s;              /* a connection on which nothing happens; 0: 30 s */
    size_t body_bytes_max;           /* 0: a request with a body is answered 413 */
    /* Bodies and answers under way, of all calls together; 0: 256 MiB. A body, or the answer to a GET, that there is no
     * room for makes it 429. */
    size_t held_bytes_max;
    bool upgrades; /* pl__server_upgrade() will be used */
    /* Called for each request, with an answer due: pl__server_answer() or one of its kin, now or later. Not
     * more than a minute later: then 503 is sent and the call is gone (`gone` is called). */
    void (*handle)(void *user, struct pl_server_call *call,
                   const struct pl_server_request *request);
    /* A call that was not answered yet ended: the time is up or the server closes. NULL: do not
     * care, which is right when calls are always answered at once. */
    void (*gone)(void *user, struct pl_server_call *call);
    /* The body, with its type, for what is refused before `handle` sees it: 413 (too long) or 429 (too much
     * is held already). NULL: a line of text. */
    struct pl_str (*refusal)(void *user, int status, struct pl_arena *arena,
                             const char **content_type);
    void *user;
    uint32_t answer_timeout_ms; /* 0: 60 s */
};

/* Listens. 0, or -1 with an error such as "listen on :8443: address already in use". */
int pl__server_open(struct pl_loop *loop, const struct pl_server_options *options,
                    struct pl_arena *arena, struct pl_server **server, struct pl_error **err);

/* The port it listens on, for ":0". */
uint16_t pl__server_port(const struct pl_server *server);

/* The certificate it shows, in PEM: for clients that are to trust it. Empty without TLS. */
struct pl_str pl__server_certificate(const struct pl_server *server);

/* A header of the request, until it is answered; NULL: none. */
const char *pl__server_header(const struct pl_server_call *call, const char *name);

/* A header of the answer, before that is given. At most four; copied. */
void pl__server_answer_header(struct pl_server_call *call, const char *name, struct pl_str value);

/* Answers, once; the call is gone afterwards. The body is copied. NULL content type: text/plain. */
void pl__server_answer(struct pl_server_call *call, int status, const char *content_type,
                       struct pl_str body);

/* Closes the connection without an answer; the call is gone afterwards. */
void pl__server_drop(struct pl_server_call *call);

/* For the handler's own use with a call that it answers later. */
void pl__server_call_set(struct pl_server_call *call, void *data);
void *pl__server_call_get(const struct pl_server_call *call);

/* --- streams -------------------------------------------------------------------------------------- */

enum pl_server_stream_state {
    SERVER_STREAM_MORE, /* bytes were given */
    SERVER_STREAM_WAIT, /* none now: pl__server_stream_wake() will be called */
    SERVER_STREAM_END,
    SERVER_STREAM_CUT, /* ends it without the proper end of a chunked body */
};

struct pl_server_stream {
    /* Up to `max` bytes. Called when the client can take them: a slow one is never ahead of itself. */
    enum pl_server_stream_state (*read)(void *user, char *bytes, size_t max, size_t *count);
    /* It is over, by whoever's doing. Always called, once; the call is gone with it. */
    void (*close)(void *user);
    void *user;
};

/* Answers with a chunked body of unknown length. A client that goes away is noticed at once. */
void pl__server_stream(struct pl_server_call *call, int status, const char *content_type,
                       const struct pl_server_stream *stream);

/* There is something to read; from anywhere, also from inside of `read`. */
void pl__server_stream_wake(struct pl_server_call *call);

/* --- other protocols -------------------------------------------------------------------------------- */

/* A connection that HTTP has ended on. Its descriptor is there to be read and written, not to be closed. */
struct pl_server_socket;

struct pl_server_upgrade {
    /* 101 was sent. `early` came behind the request. */
    void (*open)(void *user, struct pl_server_socket *socket, int fd, struct pl_str early);
    /* The server closes: pl__server_socket_close() must be called before this returns. When `open` was never
     * called (the client was gone) this is, with NULL. */
    void (*closing)(void *user, struct pl_server_socket *socket);
    void *user;
};

/* Answers 101 with `Upgrade: protocol`, and the headers that were set. The call is gone afterwards. */
void pl__server_upgrade(struct pl_server_call *call, const char *protocol,
                        const struct pl_server_upgrade *upgrade);

/* Closes the connection. The descriptor must not be used, or polled, any more. */
void pl__server_socket_close(struct pl_server_socket *socket);

/* Stops listening and drops what is open. */
void pl__server_close(struct pl_server *server);

#endif
