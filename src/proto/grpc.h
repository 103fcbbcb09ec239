/* proto/grpc.h - unary gRPC calls over HTTP/2, by nghttp2. Bytes in, bytes out: no socket, no clock.
 *
 * Feed what the peer sent to pl__grpc_receive(), send what pl__grpc_send() gives until it gives nothing,
 * and start calls at any time. Every call ends with exactly one `done`, from within pl__grpc_receive(),
 * pl__grpc_send(), pl__grpc_lost() or pl__grpc_free() - or with none after pl__grpc_cancel(). A `done`
 * may start and cancel calls; it must not free the session, receive or send.
 *
 * A peer cannot make it hold more than the limits below, whatever it sends. Nothing is ever sent twice. */
#ifndef PL_PROTO_GRPC_H
#define PL_PROTO_GRPC_H

#include "base/error.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    GRPC_REPLY_BYTES_MAX = 1024 * 1024, /* of one reply's message */
    GRPC_HEADER_BYTES_MAX = 16 * 1024,  /* of one reply's headers and trailers */
    GRPC_REQUEST_BYTES_MAX = 64 * 1024, /* of one request's message */
    GRPC_CALLS_MAX = 16,                /* open at once */
};

/* The codes that we name; all are 0 to 16, and what a peer says beyond is GRPC_UNKNOWN. */
enum pl_grpc_code {
    GRPC_OK = 0,
    GRPC_CANCELLED = 1,
    GRPC_UNKNOWN = 2,
    GRPC_DEADLINE_EXCEEDED = 4,
    GRPC_PERMISSION_DENIED = 7,
    GRPC_RESOURCE_EXHAUSTED = 8,
    GRPC_FAILED_PRECONDITION = 9,
    GRPC_UNIMPLEMENTED = 12,
    GRPC_INTERNAL = 13,
    GRPC_UNAVAILABLE = 14,
    GRPC_UNAUTHENTICATED = 16,
};
const char *pl__grpc_code_name(int code); /* "Unavailable", as Go spells them; of 42: "?" */

struct pl_grpc_reply {
    int code;
    bool from_peer;        /* the peer said so by grpc-status; else we concluded it */
    bool unprocessed;      /* surely not looked at: REFUSED_STREAM, GOAWAY, or it never left us */
    struct pl_str message; /* grpc-message decoded, or our own words; no control characters */
    struct pl_str body;    /* with GRPC_OK: the one message */
};
typedef void pl_grpc_done_fn(void *user, const struct pl_grpc_reply *reply);

struct pl_grpc;

/* `authority` goes into every call; copied. */
struct pl_grpc *pl__grpc_new(const char *authority);

/* Ends what is open with GRPC_CANCELLED, then frees. */
void pl__grpc_free(struct pl_grpc *g);

/* 0, or -1: the connection is of no more use (pl__grpc_error() says why; open calls have ended). */
int pl__grpc_receive(struct pl_grpc *g, const void *bytes, size_t size);

/* What to send next, about a frame at a time; 0: nothing. Valid until the next call of any function
 * here that is not a question. */
size_t pl__grpc_send(struct pl_grpc *g, const uint8_t **bytes);

/* Starts a call; `message` is copied. `timeout_ms` goes out as grpc-timeout (0: none); keeping it on our
 * side is up to the caller, with pl__grpc_cancel(). The id, never 0; 0 when it cannot take one (not
 * usable, too many, too long): no `done` then. */
uint32_t pl__grpc_call(struct pl_grpc *g, const char *path, struct pl_str message,
                       uint32_t timeout_ms, pl_grpc_done_fn *done, void *user);

/* Forgets it, and tells the peer. One that has ended is left alone. */
void pl__grpc_cancel(struct pl_grpc *g, uint32_t id);

/* The connection broke: every open call ends with GRPC_UNAVAILABLE and this text; not usable then. */
void pl__grpc_lost(struct pl_grpc *g, struct pl_str reason);

/* Takes calls: no GOAWAY came, nothing broke. */
bool pl__grpc_usable(const struct pl_grpc *g);
uint32_t pl__grpc_open_calls(const struct pl_grpc *g);
const char *pl__grpc_error(const struct pl_grpc *g); /* "": none */

#endif
