/* proto/upgrade.h - what an API server answers when it is asked to switch to WebSocket (RFC 6455, 4), for
 * portforward.c: HTTP/1.1 headers, and the body of a refusal. */
#ifndef PL_PROTO_UPGRADE_H
#define PL_PROTO_UPGRADE_H

#include "base/buf.h"
#include "base/str.h"

#define UPGRADE_PROTOCOL "v4.channel.k8s.io"

/* What Sec-WebSocket-Accept must be for this Sec-WebSocket-Key of at most 80 bytes. */
struct pl_str pl__upgrade_accept(struct pl_arena *arena, struct pl_str key);

/* What the headers say that matters to us; each is true when it is as it should be. */
struct pl_upgrade_answer {
    int status; /* 0: this is not HTTP/1.x */
    bool upgrade, connection, accept, protocol;
    bool extensions; /* there are some, which nobody asked for */
    bool chunked, has_length;
    uint64_t length;
};

/* Of the status line and the headers, without the empty line behind them. */
struct pl_upgrade_answer pl__upgrade_answer_read(struct pl_str headers, struct pl_str accept);

/* Takes the chunks of a body apart, into `body`. True when the last of them was there, or when they are no
 * chunks: more bytes would change nothing. */
bool pl__upgrade_chunks_join(struct pl_str raw, struct pl_buf *body);

/* The message of a Status in JSON; else the text as it is. (The kubelet's own errors are plain text.) */
struct pl_str pl__upgrade_refusal_message(struct pl_arena *arena, struct pl_str body);

#endif
