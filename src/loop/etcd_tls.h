/* loop/etcd_tls.h - TLS with one etcd member. Bytes in, bytes out: no socket.
 *
 * The member must show a certificate of the cluster's etcd CA that carries the expected name, take ours
 * (loop/etcd_cert.h), and speak HTTP/2. After each call that may have made bytes, send what
 * pl__etcd_tls_send() gives; after each pl__etcd_tls_receive(), read until there is nothing.
 *
 *     pl__etcd_tls_receive(tls, bytes, size);
 *     while ((got = pl__etcd_tls_read(tls, room, sizeof room)) > 0)
 *         use(room, got);
 *     if (pl__etcd_tls_state(tls) == ETCD_TLS_CLOSED)
 *         ...pl__etcd_tls_error(tls)
 *
 * With TLS 1.3 a server looks at our certificate after the handshake is over for us: a refusal is found
 * by a read, not by the handshake. A peer cannot make it hold more than ETCD_TLS_BUFFER_MAX in either
 * direction. A handshake that hangs is ended by nobody but the caller's clock. */
#ifndef PL_LOOP_ETCD_TLS_H
#define PL_LOOP_ETCD_TLS_H

#include <stddef.h>
#include <stdint.h>

#include "loop/etcd_cert.h"

enum { ETCD_TLS_BUFFER_MAX = 256 * 1024 };

enum pl_etcd_tls_state {
    ETCD_TLS_HANDSHAKING,
    ETCD_TLS_OPEN,
    ETCD_TLS_CLOSED,
};

/* What kind of fault closed it. */
enum pl_etcd_tls_failure {
    ETCD_TLS_FINE,      /* not closed, or by a proper end */
    ETCD_TLS_UNTRUSTED, /* their certificate or ours: other credentials may help */
    ETCD_TLS_BROKEN,    /* everything else */
};

struct pl_etcd_tls;

/* `server_name` is the DNS name or IP address that the member's certificate must carry; copied. The
 * handshake has begun: there are bytes to send. */
struct pl_etcd_tls *pl__etcd_tls_new(const struct pl_etcd_cert *cert, const char *server_name);
void pl__etcd_tls_free(struct pl_etcd_tls *tls);

/* A certificate that carries this DNS name instead will do, too. Before anything was received. */
void pl__etcd_tls_also_for(struct pl_etcd_tls *tls, const char *name);

/* Bytes from the member. 0, or -1: closed. */
int pl__etcd_tls_receive(struct pl_etcd_tls *tls, const void *bytes, size_t size);

/* The connection underneath has ended: there will be no more bytes. What has arrived can still be read. */
void pl__etcd_tls_receive_end(struct pl_etcd_tls *tls);

/* Bytes for the member, all there are; 0: none. Also when closed, for the alert that says why. Valid until
 * the next call of any function here that is not a question. */
size_t pl__etcd_tls_send(struct pl_etcd_tls *tls, const uint8_t **bytes);

/* Plain bytes, to be encrypted. 0, or -1: not open, or ETCD_TLS_BUFFER_MAX would wait to be sent. */
int pl__etcd_tls_write(struct pl_etcd_tls *tls, const void *bytes, size_t size);

/* Plain bytes into `room`; 0: none now, or closed. A record has at most 16 KiB. */
size_t pl__etcd_tls_read(struct pl_etcd_tls *tls, void *room, size_t size);

/* A proper end, to be sent. */
void pl__etcd_tls_close(struct pl_etcd_tls *tls);

enum pl_etcd_tls_state pl__etcd_tls_state(const struct pl_etcd_tls *tls);
enum pl_etcd_tls_failure pl__etcd_tls_failure(const struct pl_etcd_tls *tls);

/* Why it is closed, for people: the same text for the same fault. "": not closed, or a proper end. */
const char *pl__etcd_tls_error(const struct pl_etcd_tls *tls);

#endif
