/* controller/internal.h - what the files of controller/ share.
 *
 *   resources.c  which kinds are watched, and where
 *   store.c      objects of one kind, packed, by name
 *   informer.c   list and watch one kind on one server, and recover
 *   world.c      which objects belong to which cluster
 *   remote.c     one workload cluster: connecting, probing, its informers
 *   etcd.c       its etcd: when to ask, whom, and what it said
 *   queue.c      what to reconcile, and when
 *   reconcile.c  snapshot -> engine -> what to write
 *   act.c        what the plan says, one call at a time; act_replace.c, act_templates.c: of several calls
 *   replace.c    what a replacement Machine is made of
 *   election.c   who may write
 *   controller.c events in, actions out
 *
 * Everything is owned by the controller and freed with it; nothing here blocks. */
#ifndef PL_CONTROLLER_INTERNAL_H
#define PL_CONTROLLER_INTERNAL_H

#include <stdalign.h>

#include "controller/controller.h"
#include "controller/election.h"
#include "controller/replace.h"
#include "core/plan.h"

/* --- resources.c ------------------------------------------------------------------------------ */

/* A Secret, of which only kubeconfigs are kept. Starts with its metadata, as every kind but Node and
 * Pod does. */
struct pl_secret {
    struct pl_meta meta;
    struct pl_str value; /* base64 */
};

enum pl_resource_id {
    RESOURCE_CLUSTERS,
    RESOURCE_KCPS,
    RESOURCE_MACHINES,
    RESOURCE_MACHINE_DEPLOYMENTS,
    RESOURCE_MACHINE_SETS,
    RESOURCE_MACHINE_HEALTH_CHECKS,
    RESOURCE_MACHINE_POOLS,
    RESOURCE_SECRETS,
    RESOURCE_MANAGEMENT_COUNT,
    RESOURCE_NODES = RESOURCE_MANAGEMENT_COUNT,
    RESOURCE_PODS,
    RESOURCE_COUNT,
};

struct pl_resource {
    const char *plural;
    const char *kind;
    const char *group;      /* "": core */
    const char *version;    /* preferred */
    const char *fallback;   /* when that is not served; NULL: none */
    const char *selector;   /* percent-encoded label selector; NULL: none */
    const char *namespace_; /* fixed; NULL: the controller's option */
    const struct pl_shape *shape;
    int model_kind; /* enum pl_model_kind; -1: none of the model's */
    bool cluster_scoped;
    bool optional; /* a server that does not know it has none of it */
};
extern const struct pl_resource pl__resources[RESOURCE_COUNT];

/* --- store.c ---------------------------------------------------------------------------------- */

struct pl_entry;

struct pl_item {
    struct pl_item *next_in_bucket;
    uint64_t hash;
    void *object; /* packed */
    size_t object_size;
    uint32_t generation; /* of the sync that saw it last */
    struct pl_entry *entry;
    struct pl_item *next_in_entry, *previous_in_entry;
    struct pl_work *work;   /* KubeadmControlPlane, MachineDeployment: its place in the queue */
    uint64_t write_id;      /* the last write of it; over or not */
    bool shared_conditions; /* somebody else owns parts of our conditions on it */
};

struct pl_store {
    const struct pl_shape *shape;
    const struct pl_allocator *allocator;
    struct pl_item **buckets;
    uint32_t bucket_count; /* a power of two, or 0 */
    uint32_t count;
    size_t object_bytes;
};

void pl__store_init(struct pl_store *s, const struct pl_shape *shape,
                    const struct pl_allocator *allocator);
void pl__store_release(struct pl_store *s);
struct pl_item *pl__store_find(const struct pl_store *s, struct pl_str namespace_,
                               struct pl_str name);

/* Takes a packed copy of `object`, in place of an older one of that name. `*is_new` tells. */
struct pl_item *pl__store_put(struct pl_store *s, const void *object, bool *is_new);
void pl__store_remove(struct pl_store *s, struct pl_item *item);

/* Calls `visit` for each; it may remove the item it is given. */
void pl__store_each(struct pl_store *s, void (*visit)(struct pl_item *item, void *user),
                    void *user);

struct pl_str pl__object_name(const struct pl_shape *shape, const void *object);
struct pl_str pl__object_namespace(const struct pl_shape *shape, const void *object);
uint64_t pl__object_version(const struct pl_shape *shape, const void *object);

/* --- queue.c ---------------------------------------------------------------------------------- */

/* A moment in a heap of moments. What waits for one has it as its first member. */
struct pl_timer {
    uint64_t due_ms;     /* UINT64_MAX: never */
    uint32_t heap_index; /* UINT32_MAX: not in it */
};

struct pl_timers {
    struct pl_timer **heap;
    uint32_t count, capacity;
};

void pl__timers_set(struct pl_controller *c, struct pl_timers *t, struct pl_timer *timer,
                    uint64_t due_ms);
void pl__timers_remove(struct pl_timers *t, struct pl_timer *timer);
void pl__timers_release(struct pl_controller *c, struct pl_timers *t);

/* The soonest, or NULL. */
static inline struct pl_timer *pl__timers_first(const struct pl_timers *t)
{
    return t->count ? t->heap[0] : NULL;
}

/* --- informer.c ------------------------------------------------------------------------------- */

struct pl_informer;

/* Who wants to know. An object handed over lives for the call only. */
struct pl_informer_sink {
    void (*object)(void *user, struct pl_informer *i, const void *object);
    void (*gone)(void *user, struct pl_informer *i, struct pl_str namespace_, struct pl_str name);
    /* All that exists has been handed over; what has an older generation is gone. */
    void (*synced)(void *user, struct pl_informer *i);
    /* Reading failed: HTTP status (0: no answer) and text. Recovery goes on by itself. */
    void (*failed)(void *user, struct pl_informer *i, int status, struct pl_str error);
    /* `due_ms` changed. NULL: not of interest. */
    void (*due)(void *user);
};

enum pl_informer_state {
    INFORMER_STOPPED,
    INFORMER_LISTING,
    INFORMER_WATCHING, /* with `initial` set: what exists comes first, as events */
    INFORMER_WAITING,  /* for `due_ms` */
};

struct pl_informer {
    struct pl_controller *controller;
    const struct pl_resource *resource;
    const struct pl_informer_sink *sink;
    void *user;
    uint32_t server;
    enum pl_informer_state state;
    bool relist;               /* after waiting: list again, not only watch */
    bool initial;              /* between the start of a WatchList and its end mark */
    bool without_watchlist;    /* this server answered that it has none */
    bool on_fallback;          /* the fallback version is what is served */
    bool preferred;            /* the preferred version was served once: never fall back again */
    bool synced;               /* once, at least */
    uint32_t generation;       /* counts syncs */
    uint32_t failures;         /* in a row, for the backoff; forgotten after two good minutes */
    uint64_t failed_ms;        /* when the last of them was to be over */
    uint64_t failing_since_ms; /* when the first of them came */
    uint64_t request_id;
    uint64_t due_ms;
    uint64_t watch_started_ms;
    uint64_t watch_until_ms; /* the server should have ended it by then */
    uint64_t watch_events;
    char version[24]; /* the resourceVersion to go on from */
    char *page;       /* continue token of a chunked list */
    char *partial;    /* an event that has not come whole */
    size_t partial_len, partial_capacity;
};

void pl__informer_init(struct pl_informer *i, struct pl_controller *c, enum pl_resource_id resource,
                       uint32_t server, const struct pl_informer_sink *sink, void *user);
void pl__informer_start(struct pl_informer *i, struct pl_now now);
void pl__informer_stop(struct pl_informer *i); /* cancels; may be started again */
void pl__informer_release(struct pl_informer *i);
void pl__informer_bytes(struct pl_informer *i, struct pl_str bytes, struct pl_now now);
void pl__informer_answer(struct pl_informer *i, const struct pl_event *e, struct pl_now now);
void pl__informer_tick(struct pl_informer *i, struct pl_now now);
uint64_t pl__informer_due_ms(const struct pl_informer *i);

/* What exists is being read, not what changes: versions come as they are. */
bool pl__informer_syncing(const struct pl_informer *i);

/* --- world.c ---------------------------------------------------------------------------------- */

enum pl_remote_state {
    REMOTE_IDLE,       /* no kubeconfig yet, or the Cluster is not ready for it */
    REMOTE_CONNECTING, /* opened; the first probe is out */
    REMOTE_UP,
    REMOTE_DOWN,   /* waits for `due_ms` to connect again */
    REMOTE_BROKEN, /* the kubeconfig is no good; waits for another */
};

/* The etcd of a workload cluster, of one connection. */
struct pl_remote_etcd {
    struct pl_etcd_view *view; /* packed; NULL: not seen yet, or nobody to ask */
    size_t view_size;
    int64_t observed_wall_ms;
    uint64_t due_ms;    /* the next look; while a call is under way: when it is given up */
    uint64_t looked_ms; /* when the last call began; 0: never */
    uint64_t call_id, secret_id;
    uint64_t secret_due_ms;  /* the Secret is not read before */
    uint64_t secret_version; /* of what was read last; 0: nothing was */
    uint32_t secret_failures;
    uint64_t trusted_ms; /* when its CA was handed out; 0: not yet */
    bool renew;          /* TLS failed with it, or the Secret changed: to be read again */
    bool again;          /* something changed while the call is under way */
    bool nobody;         /* there was nobody to ask at the last look */
    bool held;           /* somebody waits for the first look to judge */
    char *answered_by;   /* the Node of who answered last */

    /* Acting. What is known counts only if asking for it began after the last thing that was done. */
    uint64_t seen_ms;      /* when the call began that brought the view; 0: none */
    uint64_t answered_ms;  /* when it was answered */
    uint64_t changed_ms;   /* when a Node or a Pod changed last: then etcd may have, too */
    uint64_t acted_ms;     /* when the last thing was done that changes members or Machines */
    bool awaited;          /* somebody waits for the next answer, whatever it says */
    uint64_t act_id;       /* a call that changes something is under way; 0: none */
    struct pl_work *actor; /* ... on behalf of this one */
};

/* One workload cluster. */
struct pl_remote {
    enum pl_remote_state state;
    bool requested;  /* with connect_on_request: someone asked for it */
    uint32_t server; /* 0: none open */
    int64_t last_success_wall_ms;
    uint32_t failures; /* in a row */
    uint32_t connect_failures;
    uint64_t probe_id;
    uint64_t due_ms; /* the next probe, or the next try to connect */
    uint64_t kubeconfig_hash;
    struct pl_informer nodes_informer, pods_informer;
    struct pl_store nodes, pods;
    int nodes_status, pods_status; /* of the last failed read; 0 with text: no answer */
    char *nodes_error, *pods_error, *error;
    struct pl_remote_etcd etcd;
};

/* Everything that belongs to one Cluster. */
struct pl_entry {
    struct pl_timer timer; /* first: of its workload cluster, informers included */
    struct pl_entry *next_in_bucket;
    struct pl_entry *next, *previous; /* all entries */
    uint64_t hash;
    char *namespace_;
    char *name;
    struct pl_item *items[RESOURCE_MANAGEMENT_COUNT]; /* first of each list */
    uint32_t item_count;
    uint64_t changes; /* the controller's count when it last changed */
    struct pl_remote remote;
    struct pl_controller *controller;
};

struct pl_world {
    struct pl_store stores[RESOURCE_MANAGEMENT_COUNT];
    struct pl_informer informers[RESOURCE_MANAGEMENT_COUNT];
    struct pl_entry **buckets;
    uint32_t bucket_count;
    uint32_t entry_count;
    struct pl_entry *first;
    struct pl_timers timers; /* of the entries */
    bool complete;           /* everything was read once, and everybody woken */
};

void pl__world_init(struct pl_controller *c);
void pl__world_release(struct pl_controller *c);
struct pl_entry *pl__world_find(const struct pl_world *w, struct pl_str namespace_,
                                struct pl_str name);

/* An object as the management API has it now. Versions older than the known one are ignored, unless
 * `any_version`: a server restored from a backup counts from lower numbers again. */
void pl__world_put(struct pl_controller *c, enum pl_resource_id resource, const void *object,
                   uint32_t generation, bool any_version);

/* --- remote.c --------------------------------------------------------------------------------- */

void pl__remote_init(struct pl_entry *e);
void pl__remote_release(struct pl_entry *e);

/* Ends everything that is under way there, for good. */
void pl__remote_leave(struct pl_entry *e);

/* The wall clock was set: what is remembered by it moves along. */
void pl__remote_clock_moved(struct pl_entry *e, int64_t by_ms);

/* The Cluster or its kubeconfig changed: connect, reconnect, or let go. */
void pl__remote_update(struct pl_entry *e, struct pl_now now);
void pl__remote_tick(struct pl_entry *e, struct pl_now now);
void pl__remote_probe_answer(struct pl_entry *e, const struct pl_event *event, struct pl_now now);
void pl__remote_open_failed(struct pl_entry *e, struct pl_str error, struct pl_now now);

/* Fills in what the engine wants to know of the workload cluster. */
void pl__remote_observe(const struct pl_entry *e, struct pl_arena *arena, struct pl_workload *w);

/* Whether the first look at it is still under way. */
bool pl__remote_pending(const struct pl_entry *e);

/* The next moment that something of it is due has changed. */
void pl__remote_timer_update(struct pl_entry *e);

enum { ERROR_BYTES_MAX = 1024 }; /* of a text that ends in a condition's message */

/* At most `max` bytes of it, not ending in the middle of a character. */
struct pl_str pl__text_cut(struct pl_str text, size_t max);

/* --- etcd.c ----------------------------------------------------------------------------------- */

/* A Node, a Pod, a control plane or a Machine of it changed, or the connection came up: look soon. */
void pl__remote_etcd_changed(struct pl_entry *e, struct pl_now now);
void pl__remote_etcd_tick(struct pl_entry *e, struct pl_now now);
void pl__remote_etcd_answer(struct pl_entry *e, const struct pl_event *event, struct pl_now now);
void pl__remote_etcd_secret_answer(struct pl_entry *e, const struct pl_event *event,
                                   struct pl_now now);

/* The watch told of a version of Secret <cluster>-etcd. That is all it is for: nothing of it is kept. */
void pl__remote_etcd_secret_changed(struct pl_entry *e, uint64_t version, struct pl_now now);

/* Ends what is under way and forgets what was seen: the connection is closed. */
void pl__remote_etcd_forget(struct pl_entry *e);

/* Whether the first look of this connection is still to come. */
bool pl__remote_etcd_pending(const struct pl_entry *e);

/* What was seen last, borrowed; `view` stays as it is when nothing was. */
void pl__remote_etcd_observe(const struct pl_entry *e, struct pl_etcd_view *view);

/* Whether what is known of etcd can be acted on: it is fresh, and newer than what was done last. */
bool pl__remote_etcd_fresh(const struct pl_entry *e, struct pl_now now);

/* Looks as soon as it may, and wakes everybody when the answer is there. */
void pl__remote_etcd_want(struct pl_entry *e, struct pl_now now);

/* Something was done that changes members or Machines: what is known is of the past. */
void pl__remote_etcd_acted(struct pl_entry *e, struct pl_now now);

/* Changes something: MOVE_LEADER or MEMBER_REMOVE, through the members on these Nodes. One call at a time;
 * false: another one is under way, and its end wakes everybody. The end is pl__act_etcd_answer(). */
bool pl__remote_etcd_act(struct pl_entry *e, struct pl_work *actor, enum pl_etcd_call call,
                         const struct pl_str *nodes, size_t node_count, uint64_t member_id,
                         struct pl_now now);
/* It was answered, or whoever waits for it is gone. */
void pl__remote_etcd_act_over(struct pl_entry *e, struct pl_now now);

/* How many voters can fail before quorum is lost; -1: not known. */
int pl__remote_etcd_tolerance(const struct pl_entry *e);

/* --- queue.c, the queue of objects -------------------------------------------------------------- */

/* A place in the queue for one object. */
struct pl_work {
    struct pl_timer timer; /* first: when it is wanted */
    struct pl_item *item;
    enum pl_resource_id resource;
    uint32_t in_flight; /* writes without an answer: no second reconcile meanwhile */
    bool again;         /* wanted while in flight */
    bool round_failed;  /* one of the writes in flight, or just before, failed */
    uint32_t failures;
    uint64_t retry_ms; /* after a failure: not before; 0: at once */
    double tokens;     /* rounds of writing it may still do at once */
    uint64_t tokens_ms;
    uint64_t cause_ms; /* when the first change came in that it has not seen */
    uint64_t queued_ms;
    uint32_t
        disagreements;  /* objects whose stored conditions say something else, at the last look */
    struct pl_act *act; /* mode manage: what is being done; NULL: nothing ever was */
};

/* Wanted at `due_ms`, or sooner if it already is. */
void pl__queue_add(struct pl_controller *c, struct pl_work *w, uint64_t due_ms);
void pl__queue_remove(struct pl_controller *c, struct pl_work *w);
struct pl_work *pl__queue_first(const struct pl_controller *c);

/* --- reconcile.c ------------------------------------------------------------------------------ */

/* Sends an Event about an object; what names the object, this process and the Event is filled in. */
struct pl_kevent;
void pl__event_send(struct pl_controller *c, enum pl_resource_id resource,
                    const struct pl_meta *meta, struct pl_kevent *e, uint32_t timeout_ms);

/* Something of this cluster changed: its control planes and deployments are wanted. */
void pl__wake_entry(struct pl_controller *c, struct pl_entry *e, struct pl_now now);
void pl__reconcile(struct pl_controller *c, struct pl_work *w, struct pl_now now);
void pl__write_answer(struct pl_controller *c, struct pl_work *w, const struct pl_event *e,
                      struct pl_str context, struct pl_now now);

/* Whether this object is for us to write at all. */
bool pl__may_write(const struct pl_controller *c, const struct pl_work *w, bool paused);

/* Applies all our conditions of a Machine together with OwnerRemediated False, this reason and message.
 * The answer is for WAITER_ACT. False: the Machine is not there, or not ours to write. */
bool pl__mark_apply(struct pl_controller *c, struct pl_work *w, const struct pl_report *report,
                    const struct pl_step *step);

/* The object as the server has it after a write of ours goes into the cache; a text that is none does
 * nothing. It may be the end of a struct pl_work. */
void pl__answer_cache(struct pl_controller *c, enum pl_resource_id resource, struct pl_str body);

/* --- act.c ------------------------------------------------------------------------------------ */

/* What answer is awaited. */
enum pl_act_phase {
    ACT_IDLE,
    ACT_CONFIRM,   /* the Machines, read again */
    ACT_FIND,      /* an object, for the place of something in it */
    ACT_CALL,      /* the call that the step is */
    ACT_REPLACE,   /* act_replace.c */
    ACT_TEMPLATES, /* act_templates.c */
};

enum { ACT_TOLD_MAX = 8 };

/* What is being done for one KubeadmControlPlane or MachineDeployment. Nothing of it has to survive: the next plan begins again
 * from what is stored. */
struct pl_act {
    enum pl_act_phase phase;
    enum pl_step_kind step;
    struct pl_arena arena; /* texts of the step under way */
    struct pl_str words;   /* the step for people */
    struct pl_str machine, uid;
    uint64_t version;       /* of the object that the step is about */
    uint64_t confirmed_ms;  /* when the Machines were read again; 0: not since the last step */
    uint32_t failures;      /* in a row */
    uint64_t retry_ms;      /* not before */
    uint32_t etcd_refusals; /* changes in a row that etcd did not make */
    bool api_failed;        /* the last request to the API failed, and not by being overtaken */
    struct {
        uint64_t hash, ms;
    } told[ACT_TOLD_MAX]; /* Events that need not be repeated */
    uint32_t told_next;
    struct pl_replacing *replacing;          /* in `arena` */
    struct pl_templates_reading *templating; /* in `arena` */
    struct pl_arena kept;                    /* the templates */
    bool templates_read;
    PL_LIST(struct pl_infra_template) templates;
};

/* Made when it is first needed. */
struct pl_act *pl__act_of(struct pl_controller *c, struct pl_work *w);

/* Whether the plan is wanted, and acting on it allowed by the mode. */
bool pl__acts(const struct pl_controller *c, const struct pl_work *w);
void pl__act(struct pl_controller *c, struct pl_work *w, const struct pl_report *report,
             const struct pl_plan *plan);
void pl__act_answer(struct pl_controller *c, struct pl_work *w, const struct pl_event *e);
void pl__act_etcd_answer(struct pl_controller *c, struct pl_work *w,
                         const struct pl_etcd_answer *a);
/* The object is gone, or the controller ends. */
void pl__act_release(struct pl_controller *c, struct pl_work *w);

/* Shared with act_replace.c and act_templates.c. Sends a request whose answer comes back in `phase`. */
struct pl_act_request {
    enum pl_act_phase phase;
    const char *method;
    struct pl_str path;
    const char *content_type; /* NULL: JSON */
    struct pl_str body;
};
void pl__act_send(struct pl_controller *c, struct pl_work *w, const struct pl_act_request *r);
/* A write was answered: one step of those that --stop-after-step counts. */
void pl__act_count(struct pl_controller *c);
/* The step is over: it is told, and the next plan comes at once. */
void pl__act_done(struct pl_controller *c, struct pl_work *w);
/* It is not: later again, with a delay that grows. `status` 0: no answer, or a mistake of its own. */
void pl__act_failed(struct pl_controller *c, struct pl_work *w, int status, struct pl_str why);
/* The next plan not before this long from now. */
void pl__act_later(struct pl_controller *c, struct pl_work *w, uint64_t delay_ms);
/* What the server said, as an error for people. */
struct pl_str pl__act_problem(struct pl_controller *c, const struct pl_event *e);
/* {"preconditions":{"uid":...}}, with the version if there is one. */
struct pl_str pl__delete_body(struct pl_arena *arena, struct pl_str uid, uint64_t version);

void pl__act_replace(struct pl_controller *c, struct pl_work *w);
void pl__act_replace_answer(struct pl_controller *c, struct pl_work *w, const struct pl_event *e);

/* Whether the end of a deletion first needs to know which templates are left; then they are being read, and
 * the reconcile goes on with the answer. */
bool pl__act_templates(struct pl_controller *c, struct pl_work *w);
void pl__act_templates_answer(struct pl_controller *c, struct pl_work *w, const struct pl_event *e);

/* --- controller.c ----------------------------------------------------------------------------- */

/* Who waits for an answer. */
enum pl_waiter_type {
    WAITER_NONE,
    WAITER_INFORMER,
    WAITER_PROBE,
    WAITER_WRITE,
    WAITER_EVENT,
    WAITER_ELECTION,
    WAITER_ETCD_SECRET, /* of an entry: the CA */
    WAITER_ETCD,        /* of an entry: an observation */
    WAITER_ACT,         /* of a struct pl_work: a step of acting */
    WAITER_ETCD_ACT,    /* the same, a call to etcd */
};

struct pl_request {
    enum pl_action_type type; /* ACTION_REQUEST or ACTION_WATCH */
    uint32_t server;
    const char *method;
    struct pl_str path;
    const char *content_type;
    struct pl_str body;
    uint32_t timeout_ms;
    enum pl_waiter_type waiter;
    void *owner;
    struct pl_str context; /* kept until the answer comes, and handed back with it */
};

/* Queues a request; the id is never 0. */
uint64_t pl__request(struct pl_controller *c, const struct pl_request *r);

/* A call to the etcd behind a server. Everything is copied. */
struct pl_etcd_ask {
    uint32_t server;
    enum pl_etcd_call call;
    const struct pl_etcd_endpoint *endpoints; /* in the order to try */
    size_t endpoint_count;
    uint64_t member_id;
    enum pl_waiter_type waiter;
    void *owner;
    struct pl_str context;
};

/* Queues it; the id is one like a request's. Its answer is an EVENT_ETCD, handed to whoever waits. */
uint64_t pl__etcd_request(struct pl_controller *c, const struct pl_etcd_ask *ask);

/* Hands out the CA of the etcd behind a server, PEM. The copy is wiped when it was taken. */
void pl__etcd_trust(struct pl_controller *c, uint32_t server, struct pl_str certificates,
                    struct pl_str key);

/* Whether it has no answer yet. */
bool pl__request_pending(const struct pl_controller *c, uint64_t id);

/* Its answer is not wanted any more. 0 is ignored. */
void pl__request_cancel(struct pl_controller *c, uint64_t id);

/* Whoever waits for answers on behalf of `owner` is gone; the requests run on. */
void pl__request_disown(struct pl_controller *c, const void *owner);

uint32_t pl__upstream_open(struct pl_controller *c, struct pl_str kubeconfig);
void pl__upstream_close(struct pl_controller *c, uint32_t server);
void pl__stop(struct pl_controller *c, struct pl_str error);

void pl__log(struct pl_controller *c, enum pl_log_level level, const char *message,
             const struct pl_log_pair *pairs, size_t pair_count);
#define PL_LOG(c, level, message, ...)                                            \
    pl__log((c), (level), (message), (const struct pl_log_pair[]){ __VA_ARGS__ }, \
            sizeof((const struct pl_log_pair[]){ __VA_ARGS__ }) / sizeof(struct pl_log_pair))

uint64_t pl__random(struct pl_controller *c);
/* `base_ms` doubled for each failure before, at most `max_ms`, plus up to as much again. */
uint64_t pl__backoff_ms(struct pl_controller *c, uint32_t failures, uint64_t base_ms,
                        uint64_t max_ms);

void *pl__alloc(struct pl_controller *c, size_t size);
void pl__free(struct pl_controller *c, void *p, size_t size);
char *pl__strdup(struct pl_controller *c, struct pl_str s);
void pl__strfree(struct pl_controller *c, char **s);
uint64_t pl__hash(struct pl_str a, struct pl_str b);

/* Numbers for pl_controller_metrics(). */
struct pl_counts {
    uint64_t reconciles[2][3]; /* by kind (KCP, MD) and result (success, error, requeue) */
    uint64_t writes, write_errors, writes_saved;
    uint64_t events_sent;
    uint64_t adds[2];
    uint64_t lists, watches, watch_events, relists;
    uint64_t etcd_observations, etcd_failures;
    uint64_t steps, step_errors; /* of acting */
    uint64_t cause_buckets[12], cause_count;
    double cause_sum_s;
};

struct waiter {
    uint64_t id;
    enum pl_waiter_type type;
    void *owner;
    char *context;
    size_t context_len;
};

struct pl_action_node {
    struct pl_action_node *next;
    size_t size;
    struct pl_action action;
    alignas(struct pl_etcd_endpoint) char bytes[];
};

struct pl_controller {
    struct pl_controller_options options;
    struct pl_world world;
    struct pl_timers queue; /* of struct pl_work */
    struct pl_election election;
    struct pl_counts counts;
    struct pl_arena scratch; /* one event, or one reconcile */
    struct pl_arena reading; /* what an informer decodes */
    struct waiter *waiters;  /* open addressing by id */
    uint32_t waiter_capacity, waiter_count;
    uint32_t last_server; /* the number given out last */
    struct pl_action_node *first_action, *last_action, *handed_out;
    uint64_t next_id;
    uint64_t random;
    struct pl_now now;
    int64_t wall_ahead_ms; /* of the monotonic clock */
    bool stopping;
    bool stopped;
    uint32_t writes_in_flight;
    uint64_t event_counter;
    uint64_t changes; /* of the world */
};

#endif
