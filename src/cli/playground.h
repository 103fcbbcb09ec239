/* cli/playground.h - an API server, a simulated fleet and the way in, on one loop.
 *
 * Joins apiserver/ (no sockets), cli/front.h (its socket) and fleet/ (knows neither): the fleet's calls go
 * straight to the API server, what it watches is read from there and told to it in turns, and requests from
 * outside pass the fleet's gate, which is how networks are cut.
 *
 * Everything it makes is in one folder: kubeconfig, certificates, the data of etcd. A folder of its own
 * making is removed at the end. */
#ifndef PL_CLI_PLAYGROUND_H
#define PL_CLI_PLAYGROUND_H

#include "apiserver/apiserver.h"
#include "fleet/fleet.h"

/* What the management cluster is called, in the API server and in the kubeconfig. */
#define PLAYGROUND_MANAGEMENT "management"
#define PLAYGROUND_NAMESPACE "default"

enum { PLAYGROUND_PATH_BYTES = 512 };

struct pl_playground_options {
    const char
        *directory;      /* kept, with the database; NULL: a new one, and the database in memory */
    const char *listen;  /* "127.0.0.1:0" */
    struct pl_str token; /* asked of every client, with TLS; empty: neither, only on loopback */
    uint32_t clusters, replicas, workers;
    bool shared_etcd;
    /* What the fleet says it does, a line each. */
    void (*said)(void *user, struct pl_str line);
    void *user;
};

struct pl_playground;

/* 0, or -1; it needs closing and freeing even then. `token` and `listen` are borrowed. */
int pl__playground_open(struct pl_loop *loop, const struct pl_playground_options *options,
                        struct pl_arena *arena, struct pl_playground **playground,
                        struct pl_error **err);

struct pl_apiserver *pl__playground_api(struct pl_playground *p);
struct pl_fleet *pl__playground_fleet(struct pl_playground *p);

/* The file that leads to all its clusters: the current context is the management cluster, and each workload
 * cluster has one of its own name. */
const char *pl__playground_kubeconfig_path(const struct pl_playground *p);
const char *pl__playground_directory(const struct pl_playground *p);

/* A kubeconfig with one context, for that cluster; in the arena. */
struct pl_str pl__playground_kubeconfig(void *playground, struct pl_str cluster,
                                        struct pl_arena *arena);

/* Ends what the fleet started; `done` comes from the loop, after some seconds at most. */
void pl__playground_stop(struct pl_playground *p, void (*done)(void *user), void *user);

/* Before the loop is freed: closes the way in. After it: frees the rest and removes the folder. NULL is fine. */
void pl__playground_close(struct pl_playground *p);
void pl__playground_free(struct pl_playground *p);

#endif
