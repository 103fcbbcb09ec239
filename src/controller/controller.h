/* controller/controller.h - watch, judge, write: the controller as a daemon, a test or the simulator
 * sees it.
 *
 * It does no I/O, reads no clock and starts no thread. Tell it what happened with pl_controller_step(),
 * do what pl_controller_next_action() hands out until that is NULL, and step again with EVENT_TICK no
 * later than pl_controller_wake_at_ms(). Several controllers can live in one process.
 *
 * An action is a request to a server. Server 0 is the management cluster and always open; the others
 * are workload clusters that the controller asks to be opened with a kubeconfig. Every ACTION_REQUEST
 * and ACTION_WATCH is answered by exactly one EVENT_ANSWER with its id, a watch by any number of
 * EVENT_BYTES before that. After ACTION_CLOSE of a server, or ACTION_CANCEL of an id, answers that
 * still come are ignored. Server numbers are never used twice; requests to a server that could not be
 * opened may still be handed out and are dropped by whoever executes actions.
 *
 * The etcd of a workload cluster goes by the same server number: ACTION_ETCD_TRUST hands out its CA before
 * the first ACTION_ETCD and whenever it changes, and ACTION_CLOSE closes it as well. */
#ifndef PL_CONTROLLER_CONTROLLER_H
#define PL_CONTROLLER_CONTROLLER_H

#include "base/error.h"
#include "base/json.h"
#include "model/snapshot.h"
#include "proto/etcd.h"

/* The two clocks of one moment. Timers go by `mono_ms`, which never goes back; what is written into
 * objects goes by `wall_ms`, which may jump. */
struct pl_now {
    uint64_t mono_ms;
    int64_t wall_ms;
};

/* Each does what the one before it does, and more: nothing is written; conditions are; what the conditions
 * say is acted on. */
enum pl_mode_of_run { MODE_SHADOW, MODE_STATUS, MODE_MANAGE };

/* What a log line is made of. The controller does not log by itself: it hands lines out. */
enum pl_log_level { PL_LOG_ERROR, PL_LOG_INFO, PL_LOG_DEBUG };
struct pl_log_pair {
    const char *key;
    struct pl_str value;
};
typedef void pl_log_fn(void *user, enum pl_log_level level, const char *message,
                       const struct pl_log_pair *pairs, size_t pair_count);

struct pl_controller_options {
    enum pl_mode_of_run mode;
    enum pl_profile profile;
    const char *namespace_; /* only this one; NULL: all */
    const char
        *watch_filter; /* only objects with this value of the watch-filter label; NULL: all */
    const char *only_cluster;     /* "name" (with namespace_): reading commands; NULL: all */
    const char *cluster_selector; /* only Clusters with these labels, percent-encoded; NULL: all */
    bool connect_on_request; /* to no workload cluster before pl_controller_connect() names it */
    bool dry_run;            /* hand out no writes; log them */
    uint32_t
        stop_after_step; /* for tests: stop when so many steps of acting were answered; 0: never */
    bool reads_only;     /* keep the world up to date, reconcile nothing: for reading commands */
    uint32_t grace_period_s; /* remote conditions; 0: 300 */
    uint32_t sync_period_s;  /* every object again after this long; 0: 600 */
    uint32_t etcd_period_s;  /* etcd is asked after this long though nothing changed; 0: 30 */
    bool leader_elect;
    const char *lease_namespace, *lease_name, *identity;
    uint32_t lease_duration_ms, renew_deadline_ms, retry_period_ms; /* 0: 60 s, 40 s, 5 s */
    uint64_t seed;                                                  /* for jitter */
    pl_log_fn *log;                                                 /* NULL: no logs */
    void *log_user;
    const struct pl_allocator *allocator;
};

enum pl_action_type {
    ACTION_OPEN,    /* open `server` with the kubeconfig in `body` */
    ACTION_CLOSE,   /* close it, and everything on it */
    ACTION_REQUEST, /* one request, one answer */
    ACTION_WATCH,   /* a request whose answer streams */
    ACTION_CANCEL,  /* stop the request or etcd call with this id */
    ACTION_ETCD_TRUST, /* the CA of the etcd behind `server`: certificates in `body`, key in `key`, both PEM */
    ACTION_ETCD, /* one call to that etcd, answered by one EVENT_ETCD with its id */
    ACTION_STOP, /* leadership is lost, or startup failed for good: end the process; `error` says why */
};

struct pl_action {
    enum pl_action_type type;
    uint64_t id;
    uint32_t server;
    const char *method;
    struct pl_str path;       /* with query */
    const char *content_type; /* of the body; NULL: application/json */
    struct pl_str body;
    uint32_t timeout_ms;
    struct pl_str error;

    /* ACTION_ETCD_TRUST, ACTION_ETCD. */
    struct pl_str key;
    enum pl_etcd_call call;
    const struct pl_etcd_endpoint *endpoints; /* in the order to try */
    size_t endpoint_count;
    uint64_t member_id;
};

enum pl_event_type {
    EVENT_TICK,        /* time passed */
    EVENT_ANSWER,      /* a request ended */
    EVENT_BYTES,       /* a watch delivered */
    EVENT_OPEN_FAILED, /* `server` could not be opened: the kubeconfig is no good; `error` */
    EVENT_ETCD,     /* an ACTION_ETCD ended: `etcd`. A trust that cannot be used shows here, too */
    EVENT_SHUTDOWN, /* finish: release the lease, stop watching */
};

struct pl_event {
    enum pl_event_type type;
    uint64_t id;
    uint32_t server;
    int status;         /* HTTP; 0: no answer, see `error` */
    int retry_after_s;  /* -1: none */
    struct pl_str body; /* EVENT_ANSWER: the whole; EVENT_BYTES: a piece */
    struct pl_str error;
    const struct pl_etcd_answer *etcd; /* EVENT_ETCD */
};

/* How the text of ACTION_STOP begins after `stop_after_step`. */
#define PL_STOPPED_AFTER_STEP "stopped after a step of acting"

struct pl_controller;

struct pl_controller *pl_controller_new(const struct pl_controller_options *options,
                                        struct pl_now now);
void pl_controller_free(struct pl_controller *c);

void pl_controller_step(struct pl_controller *c, const struct pl_event *event, struct pl_now now);

/* The next thing to do outside, or NULL. Valid until the next call of step or next_action. */
const struct pl_action *pl_controller_next_action(struct pl_controller *c);

/* When to step again though nothing happened, on the monotonic clock; UINT64_MAX: never. */
uint64_t pl_controller_wake_at_ms(const struct pl_controller *c);

/* Whether all management kinds have been read once (readyz), and whether everything that was asked for
 * is done after EVENT_SHUTDOWN. */
bool pl_controller_synced(const struct pl_controller *c);
bool pl_controller_finished(const struct pl_controller *c);
bool pl_controller_is_leader(const struct pl_controller *c);

/* The world as the controller knows it, as a settled snapshot in `arena`; objects are borrowed until the
 * next step. `cluster` empty: all. Workload clusters that are still connecting are counted in
 * `*pending`. For the reading commands. */
int pl_controller_snapshot(struct pl_controller *c, struct pl_str namespace_, struct pl_str cluster,
                           struct pl_now now, struct pl_arena *arena, struct pl_snapshot *snapshot,
                           size_t *pending, struct pl_error **err);

/* The same of these clusters alone; those that are not there are left out. */
struct pl_cluster_name {
    struct pl_str namespace_, name;
};
int pl_controller_snapshot_some(struct pl_controller *c, const struct pl_cluster_name *names,
                                size_t name_count, struct pl_now now, struct pl_arena *arena,
                                struct pl_snapshot *snapshot, struct pl_error **err);

/* With `connect_on_request`: connects to this workload cluster; the namespace and the cluster empty: to
 * all there are and will be. For the reading commands, which need not bother every cluster. */
void pl_controller_connect(struct pl_controller *c, struct pl_str namespace_, struct pl_str cluster,
                           struct pl_now now);

/* Workload clusters that are connected to and not yet read for the first time, nor given up. */
size_t pl_controller_pending(const struct pl_controller *c);

/* A number that is another one after every change of what pl_controller_snapshot() gives. It may also
 * change when that does not. */
uint64_t pl_controller_changes(const struct pl_controller *c);

/* Calls `each` for every cluster that has changed after pl_controller_changes() was `since` (0: for all);
 * names are borrowed for the call. How many clusters there are. */
size_t pl_controller_each_cluster(const struct pl_controller *c, uint64_t since,
                                  void (*each)(void *user, struct pl_cluster_name name),
                                  void *user);

/* Prometheus text: everything the controller counts. */
void pl_controller_metrics(struct pl_controller *c, struct pl_now now, struct pl_buf *out);

#endif
