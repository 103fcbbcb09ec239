/* cli/driver.h - joins the controller, which does no I/O, and the loop, which does nothing else.
 *
 * What the controller hands out is sent, what comes back is told to it, and one timer wakes it. A workload
 * cluster whose etcd is asked has a client for that as well, from the first time on. All
 * events of one turn of the loop carry the same `now`. Actions are taken in batches of bounded size and
 * time, so that a long list of them does not keep answers waiting. */
#ifndef PL_CLI_DRIVER_H
#define PL_CLI_DRIVER_H

#include "controller/controller.h"
#include "loop/etcd.h"
#include "loop/kube.h"

struct pl_driver;

struct pl_driver_options {
    struct pl_loop *loop; /* taken over, and freed with the driver; NULL: a new one is made */
    const struct pl_kube_config *config; /* of the management cluster */
    double qps, burst;                   /* towards it; a workload cluster has a limit of its own */
    struct pl_controller_options controller; /* strings in it must outlive the driver */
    struct pl_etcd_options etcd;             /* of every workload cluster; the same */
    /* At the end of every turn, when the controller has nothing more to hand out: for whoever waits
     * for a state of it. May be NULL. */
    void (*turn)(void *user);
    void *user;
};

/* A loop, a controller and the client of the management cluster; nothing is contacted before
 * pl__driver_run(). 0, or -1 when the configuration cannot work: then a loop that was given is still the
 * caller's. */
int pl__driver_new(const struct pl_driver_options *options, struct pl_arena *arena,
                   struct pl_driver **driver, struct pl_error **err);

/* Closes all connections and frees everything. NULL is fine. */
void pl__driver_free(struct pl_driver *driver);

/* Runs until pl__driver_stop(), until the controller asks to stop, or until it has finished after
 * pl__driver_shutdown(). */
void pl__driver_run(struct pl_driver *driver);
void pl__driver_stop(struct pl_driver *driver);

/* Tells the controller to finish. */
void pl__driver_shutdown(struct pl_driver *driver);

/* Why the controller asked to stop; empty when it did not. */
struct pl_str pl__driver_stop_reason(const struct pl_driver *driver);

struct pl_loop *pl__driver_loop(struct pl_driver *driver);
struct pl_controller *pl__driver_controller(struct pl_driver *driver);
struct pl_kube *pl__driver_management(struct pl_driver *driver);

/* The moment of this turn. */
struct pl_now pl__driver_now(struct pl_driver *driver);

/* When it began, in seconds since 1970. */
double pl__driver_started_s(const struct pl_driver *driver);

/* Prometheus text: requests by host, method and status, and the longest turn of the loop. */
void pl__driver_metrics(struct pl_driver *driver, struct pl_buf *out);

/* The client of a workload cluster, from the kubeconfig in its Secret. Whoever may write Secrets wrote
 * that, so it may neither name files nor start programs. 0, or -1 when it cannot be used. */
int pl__workload_open(struct pl_loop *loop, struct pl_str kubeconfig, struct pl_arena *arena,
                      struct pl_kube **kube, struct pl_error **err);

#endif
