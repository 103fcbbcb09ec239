/* cli/front.h - the embedded API server on a socket: where loop/server.h, apiserver/ and the fleet's gate meet.
 *
 * The management cluster is at the root, every other cluster below /clusters/NAME. Plain HTTP, and only on
 * loopback, for clients that mean this machine and no web page (403); with a token anywhere, and then by TLS. /healthz, /livez and /readyz answer for all. A Pod's port-forward
 * leads where the options say. It also wakes the API server when that has something to do. */
#ifndef PL_CLI_FRONT_H
#define PL_CLI_FRONT_H

#include "apiserver/apiserver.h"
#include "fleet/fleet.h"
#include "loop/loop.h"

struct pl_front;

struct pl_front_options {
    struct pl_apiserver *api; /* stays open until the loop was freed */
    const char *management;   /* the name of that cluster in the API server */
    const char *listen;       /* "127.0.0.1:0" */
    struct pl_str token;      /* empty: nobody is asked for one */
    /* What stands between clients and this cluster, which is not the management cluster. NULL: nothing. */
    struct pl_fleet_gate (*gate)(void *user, struct pl_str cluster);
    /* Where a port of a Pod (of kube-system) is: NULL, or why it cannot be reached. NULL: nowhere. */
    const char *(*tunnel)(void *user, struct pl_str cluster, struct pl_str pod, uint16_t port,
                          struct pl_fleet_target *target);
    void *user;
};

/* Listens; raises the limit of open files as far as it may. 0, or -1: also for an address that is not loopback
 * without a token. */
int pl__front_open(struct pl_loop *loop, const struct pl_front_options *options,
                   struct pl_arena *arena, struct pl_front **front, struct pl_error **err);

uint16_t pl__front_port(const struct pl_front *front);

/* What clients must trust, in PEM; empty: plain HTTP. It is for "localhost", whatever the address. */
struct pl_str pl__front_certificate(const struct pl_front *front);

/* Before the loop is freed: stops listening, drops what is open. NULL is fine. */
void pl__front_close(struct pl_front *front);

/* After the loop was freed, before the API server is closed. NULL is fine. */
void pl__front_free(struct pl_front *front);

#endif
