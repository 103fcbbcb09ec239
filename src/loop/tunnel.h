/* loop/tunnel.h - a port-forward as a kubelet serves it: from a WebSocket on our server to a TCP address.
 *
 * It lives by itself, from the 101 on, until either side ends, and says so once. */
#ifndef PL_LOOP_TUNNEL_H
#define PL_LOOP_TUNNEL_H

#include "loop/server.h"

struct pl_tunnel;

struct pl_tunnel_options {
    uint16_t port;      /* that the client asked for */
    const char *refuse; /* the error channel says this, and it ends; NULL: dial */
    const char *host;   /* an IPv4 or IPv6 address, in numbers */
    uint16_t host_port;
    uint32_t delay_ms; /* before it dials */
    /* It has ended; the tunnel is gone. Also when the client left before the 101. */
    void (*closed)(void *user, struct pl_tunnel *tunnel);
    void *user;
};

/* True when the request asks for WebSocket with v4.channel.k8s.io; else `*why` says what is wrong (400). */
bool pl__tunnel_wanted(const struct pl_server_call *call, const char **why);

/* Answers such a request with 101. The options are copied. */
struct pl_tunnel *pl__tunnel_open(struct pl_loop *loop, struct pl_server_call *call,
                                  const struct pl_tunnel_options *options);

/* Cuts it, without a word to either side. `closed` is called from here. */
void pl__tunnel_cut(struct pl_tunnel *tunnel);

#endif
