/* proto/portserve.h - the other side of a Kubernetes port-forward over WebSocket (v4.channel.k8s.io), one port: what
 * a kubelet does. Bytes in, bytes out: no socket, no clock. proto/portforward.h is the client.
 *
 * It begins when the upgrade is done: the two messages with the port wait to be sent. Client frames must be
 * masked; each frame is a message, as the real servers take it. At most PORTSERVE_BUFFER_MAX wait each way. */
#ifndef PL_PROTO_PORTSERVE_H
#define PL_PROTO_PORTSERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

enum { PORTSERVE_BUFFER_MAX = 1024 * 1024 };

struct pl_portserve;

struct pl_portserve *pl__portserve_new(uint16_t port);
void pl__portserve_free(struct pl_portserve *p);

/* Bytes from the client. 0, or -1: it said goodbye, broke the rules, or sent more than the pod takes. Something (a
 * Close) may be left to be sent. */
int pl__portserve_receive(struct pl_portserve *p, const void *bytes, size_t size);

/* Bytes for the client; 0: none. They stay until they are dropped. */
size_t pl__portserve_send(const struct pl_portserve *p, const uint8_t **bytes);
void pl__portserve_sent(struct pl_portserve *p, size_t size);

/* Bytes for the pod; 0: none. They stay until they are dropped. */
size_t pl__portserve_read(const struct pl_portserve *p, const uint8_t **bytes);
void pl__portserve_took(struct pl_portserve *p, size_t size);

/* How many bytes of the pod may be written now. */
size_t pl__portserve_room(const struct pl_portserve *p);

/* Bytes from the pod, at most as many as there is room for. */
void pl__portserve_write(struct pl_portserve *p, const void *bytes, size_t size);

/* Why it ends, on the error channel (empty: nothing is said), and a Close; nothing is taken afterwards. */
void pl__portserve_end(struct pl_portserve *p, struct pl_str why);

#endif
