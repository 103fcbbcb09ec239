/* proto/portforward.h - a Kubernetes port-forward over WebSocket (v4.channel.k8s.io), one port. Bytes in,
 * bytes out: no socket, no clock, no TLS.
 *
 * The upgrade request is HTTP/1.1; the frames are wslay's. Client frames are masked, one frame a message,
 * at most 32 KiB. What the pod sends comes out of pl__portforward_read(); what the error channel says ends
 * it. A hostile server cannot make it hold more than PORTFORWARD_BUFFER_MAX each way.
 *
 *     p = pl__portforward_new(&options)          the request waits to be sent
 *     send what pl__portforward_send() gives; feed what comes to pl__portforward_receive();
 *     pl__portforward_read() after each, until it gives nothing
 *     the connection ended: pl__portforward_lost(), then pl__portforward_error() says why */
#ifndef PL_PROTO_PORTFORWARD_H
#define PL_PROTO_PORTFORWARD_H

#include "base/error.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum { PORTFORWARD_BUFFER_MAX = 1024 * 1024, PORTFORWARD_HEADERS_MAX = 16 * 1024 };

struct pl_portforward_options {
    struct pl_str host; /* Host header */
    struct pl_str
        path; /* "/prefix/api/v1/namespaces/kube-system/pods/etcd-n/portforward?ports=2379" */
    struct pl_str authorization; /* "Bearer ..."; empty: none. Wiped from memory once sent. */
    struct pl_str user_agent;
    struct pl_str headers; /* further ones, whole lines, each with CRLF behind it; empty: none */
    uint16_t port;
    void (*random)(void *user, uint8_t *bytes, size_t size); /* for the key and the masks */
    void *random_user;
};

enum pl_portforward_state {
    PORTFORWARD_UPGRADING, /* the answer to the request has not come */
    PORTFORWARD_OPEN,      /* the server took it; that the pod listens is not said by this */
    PORTFORWARD_CLOSED,    /* by them, by the error channel, or for breaking the rules */
};

struct pl_portforward;

/* The options are copied. None of their texts may have a control character in it (but `headers`). */
struct pl_portforward *pl__portforward_new(const struct pl_portforward_options *options);
void pl__portforward_free(struct pl_portforward *p);

/* Bytes from the API server. 0, or -1: closed; pl__portforward_error() says why. What the pod sent before
 * can still be read. */
int pl__portforward_receive(struct pl_portforward *p, const void *bytes, size_t size);

/* The connection to the API server has ended, whoever ended it. */
void pl__portforward_lost(struct pl_portforward *p);

/* Bytes for the API server; 0: none. Valid until the next call of any function here. */
size_t pl__portforward_send(struct pl_portforward *p, const uint8_t **bytes);

/* Bytes for the pod: framed, to be sent. 0, or -1 when not open or too much is waiting. */
int pl__portforward_write(struct pl_portforward *p, const void *bytes, size_t size);

/* Bytes from the pod; 0: none now. Valid until the next call of any function here. */
size_t pl__portforward_read(struct pl_portforward *p, const uint8_t **bytes);

/* A proper end from our side: a Close frame is left to be sent. */
void pl__portforward_close(struct pl_portforward *p);

enum pl_portforward_state pl__portforward_state(const struct pl_portforward *p);
/* The server took the upgrade; also when all that came behind it, its end among it, came with it. */
bool pl__portforward_was_open(const struct pl_portforward *p);
int pl__portforward_status(const struct pl_portforward *p); /* HTTP of a refused upgrade; 0: none */

/* Why it is closed, for people: the error channel's text, the refused upgrade's status and body, the rule
 * that was broken. "": a normal end. What a server wrote is cut short, and has no control characters. */
const char *pl__portforward_error(const struct pl_portforward *p);

#endif
