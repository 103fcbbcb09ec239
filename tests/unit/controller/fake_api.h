/* tests/unit/controller/fake_api.h - Kubernetes API servers in memory, and a clock that waits for nobody.
 *
 * Server 0 is the management cluster, the others are workload clusters (kubeconfig "fake:<n>"). Objects
 * are texts with conditions on the side; every change gets a resourceVersion and a place in the server's
 * history, which watches read. fake_run() plays the loop around a controller: it takes its actions, lets
 * the servers act on them after `latency_ms`, hands answers and bytes back and moves the clock to the next
 * moment at which anything happens. So a minute costs what happens in it.
 *
 *     struct fake_api *api = fake_new(&(struct fake_options){ .servers = 2 });
 *     fake_healthy(api, "alpha", 1, 3, FAKE_EXTERNAL_ETCD);
 *     fake_start(api, &(struct pl_controller_options){ .mode = MODE_STATUS });
 *     fake_run(api, 1000);
 *     ... fake_find(), fake_condition(), api->patches, api->servers[1].etcd ...
 *     fake_free(api);
 *
 * It also keeps watch over the controller: a second write to an object while one is under way, a request
 * to a closed server, an action with an id used before, a second call to an etcd while one is under way or
 * an invalid apply are counted in `offences`. */
#ifndef PL_TESTS_FAKE_API_H
#define PL_TESTS_FAKE_API_H

#include "controller/internal.h"
#include "prng.h"

enum { FAKE_CONDITIONS_MAX = 16, FAKE_FAULTS_MAX = 16, FAKE_MEMBERS_MAX = 8 };

struct fake_condition {
    char type[48], status[12], reason[64];
    char *message;
    int64_t since_ms;
    int64_t generation;
    bool ours; /* applied by plimsoll, and so removed when it leaves it out */
};

struct fake_object {
    struct fake_object *next_in_bucket;
    struct fake_object *next, *previous; /* all of a server */
    int server;
    int resource; /* enum pl_resource_id */
    char namespace_[64], name[96], uid[48];
    uint64_t version;
    int64_t generation, created_ms, deleted_ms;
    char *labels, *annotations, *owners,
        *finalizers;            /* inside of the braces or brackets; NULL: none */
    char *spec, *status, *data; /* the same; status without conditions */
    struct fake_condition conditions[FAKE_CONDITIONS_MAX];
    int condition_count;
    bool was_selected;
    int patches; /* that arrived */
    int patches_under_way;
    bool left; /* was gone for a while: to the controller it is another object of that name since */
    char *last_patch; /* its body */
};

struct fake_event {
    uint64_t version;
    int resource;
    char namespace_[64];
    const char *type;
    char *text; /* the object */
};

struct fake_member {
    char name[64]; /* "": not started yet */
    uint64_t id;
    bool learner;
    uint32_t alarm; /* 0: none */
};

/* The etcd of a workload server. As it is made, its members are the server's Nodes, the first of them leads
 * and everybody answers. */
struct fake_etcd {
    struct fake_member members[FAKE_MEMBERS_MAX]; /* in place of the Nodes, when `member_count` */
    int member_count;
    bool empty;               /* an empty list of members */
    const char *status_error; /* what Status reports; NULL: nothing */
    const char *members_error, *alarms_error;
    enum pl_etcd_failure failure; /* every call ends like this */
    const char *error;
    bool mute;        /* takes calls and never answers ... */
    uint32_t slow_ms; /* ... or takes so long */
    const char *down; /* Nodes whose member does not answer: "n0 n2" */
    const char *key;  /* the CA's key that works; NULL: any */
    uint64_t leader;  /* 0: the first */

    int observations, trusts;
    char asked[512];   /* the Nodes of the last call, in order */
    char address[64];  /* of the first of them */
    uint64_t asked_ms; /* when the last call came */
    uint32_t trusted;  /* the controller's server that was handed a CA ... */
    char trusted_key[128];
};

struct fake_server {
    int index;
    uint64_t version;
    uint64_t compacted; /* what is older is gone from the history */
    struct fake_event *history;
    size_t history_count, history_capacity;
    struct fake_object **buckets;
    size_t bucket_count, object_count;
    struct fake_object *first;
    struct fake_call *watches;
    bool v1beta1;               /* serves only that */
    bool without_watchlist;     /* 422 */
    bool without_end_mark;      /* takes sendInitialEvents and does not know it */
    bool hangs;                 /* takes requests and never answers */
    bool refuses;               /* connection refused */
    bool gone_by_status;        /* an expired resourceVersion as HTTP 410, not as an event */
    int absent[RESOURCE_COUNT]; /* status in place of any answer on that kind: 404, 403, 401, 500 */
    uint64_t opened, closed;
    struct fake_etcd etcd;
};

struct fake_fault {
    int server;         /* -1: any */
    const char *method; /* NULL: any */
    const char *part;   /* of the path; NULL: any */
    int status;         /* 0: no answer */
    int retry_after_s;  /* 0: none */
    int count;          /* how often still */
    bool after;         /* the request takes effect; only the answer is lost */
};

struct fake_options {
    int servers; /* workload clusters besides the management cluster */
    uint64_t seed;
    uint32_t latency_ms;                /* of each way; with `shuffled` up to this */
    bool shuffled;                      /* random latency, random order */
    size_t piece_max;                   /* watches deliver at most so many bytes at once; 0: all */
    uint32_t answers_cancelled_percent; /* cancelled requests answer all the same */
};

/* A request that changes something besides conditions, or asks for something else than the known kinds. */
struct fake_request {
    const char *method, *path, *body;
};

struct fake_api {
    struct fake_options options;
    /* Who answers those, with a status and a text to be freed; false: nobody. NULL: there are none. */
    bool (*others)(struct fake_api *api, const struct fake_request *r, int *status, char **answer);
    /* Who carries out calls that change etcd; the answer is a good one before. NULL: there are none. */
    void (*etcd_change)(struct fake_api *api, const struct pl_action *a,
                        struct pl_etcd_answer *answer);
    void *user;
    struct fake_server *servers;
    int server_count;
    struct pl_controller *controller;
    struct pl_now now;
    struct prng random;
    struct fake_fault faults[FAKE_FAULTS_MAX];
    int fault_count;
    int chaos_percent; /* of requests that fail somehow */
    int page_size;     /* overrides the limit asked for; 0: no */

    uint64_t patches, events_posted, lists, pages, watches, relists, probes, steps;
    int patches_with_status[600];
    uint64_t events_delivered;
    int offences;
    char offence[512];
    char stop[1024]; /* the text of ACTION_STOP */
    bool stopped;
    char *last_event_body;
    uint64_t log_errors;
    char last_error_log[512];

    struct fake_call **calls; /* by id */
    size_t call_count;
    int *handles; /* the controller's servers -> ours; -1: closed */
    size_t handle_count;
    struct fake_due *heap;
    size_t heap_count, heap_capacity;
    uint64_t sequence;
    struct fake_frozen *frozen;
    struct pl_arena arena;

    struct pl_allocator allocator; /* counts */
    size_t blocks, bytes, bytes_max;
    const char *secrets[2]; /* texts that no memory may hold when it is given back */
    uint64_t nanoseconds;   /* spent in the controller */
    uint64_t step_ns_max;
};

struct fake_api *fake_new(const struct fake_options *options);
void fake_start(struct fake_api *api, const struct pl_controller_options *options);

/* Lets time pass. */
void fake_run(struct fake_api *api, uint64_t ms);
/* The wall clock jumps. */
void fake_jump(struct fake_api *api, int64_t ms);
void fake_step(struct fake_api *api, const struct pl_event *event);

/* Frees the controller; how many blocks of its memory are left is the result. */
size_t fake_end(struct fake_api *api);
/* The same at any moment: what is on its way is lost. Another controller may be started. */
size_t fake_crash(struct fake_api *api);
void fake_free(struct fake_api *api);

/* --- objects ---------------------------------------------------------------------------------- */

struct fake_object *fake_find(struct fake_api *api, int server, int resource,
                              const char *namespace_, const char *name);
struct fake_object *fake_make(struct fake_api *api, int server, int resource,
                              const char *namespace_, const char *name);
/* The object changed: a new version, and watches hear of it. */
void fake_put(struct fake_api *api, struct fake_object *o);
void fake_delete(struct fake_api *api, struct fake_object *o);
void fake_set(char **text, const char *format, ...) __attribute__((format(printf, 2, 3)));

struct fake_condition *fake_condition(struct fake_object *o, const char *type);
void fake_condition_set(struct fake_api *api, struct fake_object *o, const char *type,
                        const char *status, const char *reason, const char *message);
/* "True Healthy ..." or "-": for comparing. */
const char *fake_said(struct fake_object *o, const char *type);

enum fake_flags {
    FAKE_EXTERNAL_ETCD = 1,
    FAKE_NOT_INITIALIZED = 2,
    FAKE_NO_SECRET = 4,
    FAKE_WORKERS = 8
};

/* A whole cluster in namespace "default": Cluster, "<name>-cp", Machines "<name>-m<i>" on Nodes "n<i>" of
 * that server with their Pods, and the Secret. */
void fake_healthy(struct fake_api *api, const char *name, int server, int machines, int flags);

struct fake_object *fake_cluster(struct fake_api *api, const char *name);
struct fake_object *fake_kcp(struct fake_api *api, const char *name, const char *cluster,
                             int flags);
struct fake_object *fake_machine(struct fake_api *api, const char *name, const char *cluster,
                                 const char *kcp, const char *node);
struct fake_object *fake_worker(struct fake_api *api, const char *name, const char *cluster,
                                const char *set, const char *deployment);
struct fake_object *fake_secret(struct fake_api *api, const char *cluster, const char *kubeconfig);
/* "<cluster>-etcd", with this CA's key; managed etcd has one from the start. NULL: no tls.key. */
struct fake_object *fake_etcd_secret(struct fake_api *api, const char *cluster, const char *key);
struct fake_object *fake_node(struct fake_api *api, int server, const char *name);
/* With its phase: Running means ready; "Crash": waits after a crash. */
struct fake_object *fake_pod(struct fake_api *api, int server, const char *component,
                             const char *node, const char *phase);

/* --- faults ----------------------------------------------------------------------------------- */

void fake_fail(struct fake_api *api, struct fake_fault fault);
/* All watches of a server end: cleanly, or with an error. */
void fake_cut(struct fake_api *api, int server, const char *error);
/* Watches that run now never say anything again, and never end. */
void fake_mute(struct fake_api *api, int server);
/* Everything so far is compacted away; `running` also ends running watches with the event. */
void fake_expire(struct fake_api *api, int server, bool running);
/* The server comes back from a backup: the same objects, but versions start again from low numbers. */
void fake_restore(struct fake_api *api, int server);
/* These bytes come next on every watch of that kind. */
void fake_inject(struct fake_api *api, int server, int resource, const char *bytes);

/* --- checks ----------------------------------------------------------------------------------- */

/* Judges the true state afresh and compares with the conditions stored: how many differ. */
int fake_disagreements(struct fake_api *api, enum pl_profile profile, bool print);

#endif
