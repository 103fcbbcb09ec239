/* tests/sim/sim.h - one simulated world, decided by one 64-bit seed.
 *
 *   tree.c      JSON that can be changed
 *   api.c       API servers: the management cluster, and one for each workload cluster
 *   etcd.c      the etcd of each workload cluster, with etcd's own rules
 *   machines.c  those who live there besides us: kubelets, machine and infrastructure controllers, health
 *               checks, MachineSets
 *   process.c   the shipped controller as a process: its actions out, answers in; crash, pause, hand-over
 *   faults.c    what goes wrong, and when it stops
 *   checks.c    what must hold: safety at every write and step, liveness at the end
 *   sim.c       time, randomness, the log, and the order of it all
 *   main.c      the program: which seeds, in how many children, how failures are told
 *
 * Nothing here asks a clock or depends on an address in memory: the same seed gives the same bytes in
 * the log. Everything of one world lives in one arena. docs/internals/simulation.md tells more. */
#ifndef PL_SIM_SIM_H
#define PL_SIM_SIM_H

#include <inttypes.h>
#include <stdio.h>

#include "controller/controller.h"
#include "prng.h"
#include "sim/tree.h"

enum {
    CLUSTERS_MAX = 3,
    MEMBERS_MAX = 32,
    OWNED_MAX = 24,
    LOG_LINES = 48,
    LOG_LINE_BYTES = 400,
    PROCESSES_MAX = 64,

    /* How far what a controller knows may lag behind, at most: watches in the worst storm, a request on
     * its way, a pass that waits for its turn. Rules about what others did bind only after this. */
    LAG_MS = 90 * 1000,
    /* The election's figures, in every run. */
    LEASE_MS = 15000,
    RENEW_MS = 10000,
    RETRY_MS = 2000,
};

#define NAMESPACE "default"
#define HOOK_PREFIX "pre-terminate.delete.hook.machine.cluster.x-k8s.io"
#define OUR_HOOK HOOK_PREFIX "/kcp-cleanup"
#define IN_PROGRESS "controlplane.cluster.x-k8s.io/remediation-in-progress"
#define REMEDIATION_FOR "controlplane.cluster.x-k8s.io/remediation-for"
#define KCP_FINALIZER "kubeadm.controlplane.cluster.x-k8s.io"

struct sim;

/* --- api.c -------------------------------------------------------------------------------------- */

enum kind {
    K_CLUSTER,
    K_KCP,
    K_MACHINE,
    K_MD,
    K_MS,
    K_MHC,
    K_POOL,
    K_SECRET,
    K_LEASE,
    K_CONFIG,
    K_INFRA,
    K_TEMPLATE,
    K_NODE,
    K_POD,
    K_COUNT
};

struct kind_info {
    const char *plural, *name, *group, *version;
    bool cluster_scoped;
};
extern const struct kind_info kinds[K_COUNT];

/* Who owns a condition, as managedFields would say. */
struct owned {
    struct pl_str type;
    bool ours;
    bool others;       /* somebody else owns the entry, or a part of it */
    bool others_whole; /* ... all of it: we have not changed a field since */
};

struct object {
    struct object *next;
    struct server *server;
    enum kind kind;
    struct pl_str name, uid;
    struct pl_tree *tree;
    struct pl_str text; /* rendered */
    uint64_t version;
    bool gone;
    struct owned owned[OWNED_MAX];
    int owned_count;
    struct machine *machine; /* K_MACHINE */
};

struct change {
    uint64_t version;
    enum kind kind;
    const char *type;
    struct pl_str text;
};

struct server {
    struct sim *sim;
    struct cluster *cluster; /* NULL: the management cluster */
    int index;
    uint64_t version, compacted;
    struct object *objects[K_COUNT];
    struct change *history;
    size_t change_count, change_capacity;
    struct call *watches;
    uint64_t refuses_until_ms, hangs_until_ms;
    bool without_watchlist;
};

struct object *object_find(struct server *s, enum kind kind, struct pl_str name);
struct object *object_create(struct server *s, enum kind kind, struct pl_str name,
                             struct pl_tree *tree);
/* Its tree was changed: a new version, and the watches hear of it. Ends it when it is being deleted and no
 * finalizer is left. */
void object_commit(struct object *o);
void object_delete(struct object *o);
bool object_deleting(const struct object *o);

struct pl_tree *condition_find(const struct object *o, const char *type);
/* As some other controller does it. No commit. True when something changed. */
bool condition_set(struct object *o, const char *type, const char *status, const char *reason,
                   const char *message);

/* Carries a request out, now: the answer is in the call. */
void api_serve(struct call *call);
/* What a watch has to say, as the lines of its stream; empty: nothing new. */
struct pl_str api_watch_lines(struct call *call);
/* Everything so far is too old to go on from. */
void api_compact(struct server *s, bool running);

/* --- etcd.c ------------------------------------------------------------------------------------- */

struct member {
    uint64_t id;
    char node[64];
    bool named;     /* it has started once */
    bool learner;   /* */
    bool listed;    /* it is in the member list */
    bool up;        /* its process runs */
    bool alarm;     /* NOSPACE */
    uint64_t up_ms; /* since when */
    bool hung;      /* it takes connections and says nothing */
};

struct etcd {
    struct member members[MEMBERS_MAX];
    int member_count; /* also those that have left */
    uint64_t leader;  /* 0: none */
    uint64_t election_ms;
    uint64_t no_quorum_since_ms; /* 0: there is one */
    uint64_t pending_removal;    /* proposed without quorum: may happen yet */
    uint64_t pending_until_ms;
};

struct member *etcd_member(struct etcd *e, uint64_t id);
struct member *etcd_member_of(struct etcd *e, struct pl_str node); /* the listed one */
int etcd_voters(const struct etcd *e);
int etcd_voters_up(const struct etcd *e);
bool etcd_has_quorum(const struct etcd *e);
uint64_t etcd_add(struct sim *sim, struct cluster *cl, const char *node, bool learner);
/* Joining, as kubeadm does it. False: refused. */
bool etcd_add_learner(struct sim *sim, struct cluster *cl, const char *node);
bool etcd_promote(struct sim *sim, struct cluster *cl, const char *node);
/* Whether members run was changed: elections, quorum. Call it after every change and with time. */
void etcd_settle(struct sim *sim, struct cluster *cl);
void etcd_serve(struct call *call);

/* --- machines.c --------------------------------------------------------------------------------- */

enum phase { PHASE_NEW, PHASE_BOOT, PHASE_JOIN, PHASE_PROMOTE, PHASE_RUN };
enum leaving { STAYS, DRAINS, AT_HOOK, HOOK_GONE, VM_GONE };

struct machine {
    struct machine *next; /* of the cluster, also those that are gone */
    struct cluster *cluster;
    struct object *o; /* NULL: gone */
    char name[64], node[64];
    bool control_plane;
    enum phase phase;
    enum leaving leaving;
    uint64_t born_ms;
    uint64_t since_ms; /* of the phase */
    bool vm_up, etcd_bad, pod_bad;
    uint64_t repaired_ms; /* a fault that passes; 0: it stays */
    bool never_joins;
    bool ill;             /* what a health check would see */
    uint64_t ill_ms;      /* since when it is ill, or well again */
    bool marked;          /* the health check said so */
    uint64_t deleting_ms; /* when its deletion began; 0: it did not */
    bool deleted_by_us;
    uint64_t hook_dropped_ms;
    uint64_t gone_ms;
    int shown;         /* what its Node and Pods say, see machines.c */
    bool foreign_hook; /* somebody else's pre-terminate hook is on it */
};

struct cluster {
    char name[32], kcp[32];
    int index;
    struct server *server;
    struct etcd etcd;
    struct machine *machines;
    int machine_serial;
    int replicas, workers;
    bool external_etcd;
    int64_t max_retry, retry_period_s, min_healthy_s;
    char max_in_flight[8];
    uint64_t paused_ms, resumed_ms; /* when it was last; 0: never */
    bool paused;
    bool deleting;        /* the KCP */
    bool leaving_by_hand; /* somebody has deleted a Machine: once is enough */
    uint64_t deleting_ms;
    bool workers_leave;
};

struct machine *machine_by_name(struct cluster *cl, struct pl_str name);
struct machine *machine_by_node(struct cluster *cl, struct pl_str node);
/* An object of kind Machine came to be, by whomever. */
void machine_born(struct sim *sim, struct object *o);
void machine_died(struct sim *sim, struct machine *m);
void machine_ill(struct sim *sim, struct machine *m);
/* Whether something is wrong with it, seen or not; and how somebody puts that right. */
bool machine_is_bad(const struct machine *m);
void machine_mend(struct sim *sim, struct machine *m);
bool cluster_api_works(const struct cluster *cl);
/* Builds the clusters as the seed has it. */
void world_build(struct sim *sim);
struct cluster *cluster_of_object(struct sim *sim, const struct object *o);
int control_plane_count(const struct cluster *cl);

/* --- process.c ---------------------------------------------------------------------------------- */

/* What one process knows of one etcd, from its last observation. */
struct view {
    bool known;
    uint64_t observed_ms; /* when etcd was asked */
    bool readable;        /* members came with it */
    uint64_t ids[MEMBERS_MAX];
    int count;
    bool bad[MEMBERS_MAX]; /* learner, alarm or without a name */
    uint64_t leader;
    uint64_t wrote_ms; /* when this process last changed that etcd, or may have */
    bool trusted;
};

struct process {
    struct sim *sim;
    int index;
    char identity[16];
    struct pl_controller *controller;
    bool alive, stopping;
    uint64_t started_ms;
    uint64_t frozen_until_ms;
    uint64_t lease_sent_ms; /* when the last renewal that succeeded was sent; 0: it never led */
    struct server **handles;
    size_t handle_count;
    struct call *calls;
    struct view views[CLUSTERS_MAX];
};

enum call_type { CALL_REQUEST, CALL_WATCH, CALL_ETCD };

struct call {
    struct call *next;
    struct process *process;
    enum call_type type;
    uint64_t id;
    uint32_t handle;
    struct server *server;
    uint64_t sent_ms;
    bool executed, ended, cancelled, dropped;

    const char *method, *content_type;
    struct pl_str path, body;
    uint32_t timeout_ms;
    int status, retry_after_s;
    struct pl_str answer, error;

    /* A watch. */
    struct call *next_watch;
    enum kind kind;
    size_t position;
    uint64_t ends_ms;
    bool streaming, scheduled, initial, expired;

    /* etcd. */
    enum pl_etcd_call etcd_call;
    struct pl_etcd_endpoint *endpoints;
    size_t endpoint_count;
    uint64_t member_id;
    struct pl_etcd_answer etcd;
    struct view seen; /* what an observation showed */
};

void process_start(struct sim *sim);
void process_crash(struct process *p);
/* Tells it to end; it may take its time. */
void process_shut_down(struct process *p);
/* All watches of a server end in the middle of things. */
void watches_cut(struct server *s);
void process_step(struct process *p, const struct pl_event *event);
uint64_t process_wake_ms(const struct process *p);
void watch_schedule(struct call *call);
/* The one that leads by what it wrote, or NULL. */
struct process *process_leading(struct sim *sim);

/* --- faults.c ----------------------------------------------------------------------------------- */

struct faults {
    int request_percent;   /* of requests that fail somehow */
    int lost_percent;      /* of writes whose answer is lost */
    uint32_t latency_ms;   /* of each way, up to this */
    uint32_t watch_lag_ms; /* up to this */
    bool crashes, freezes, handovers, jumps, expiries, outages, disease, etcd_trouble, pauses,
        hands;
};

/* Sets the seed's faults going. */
void faults_start(struct sim *sim);
/* From here on nothing fails any more, and what may be mended is. */
void faults_end(struct sim *sim);
/* A Machine that is well may have been on its way out when another one's member died for good: etcd then
 * refuses the removal, and nothing but mending the dead one helps. After a while somebody does that. */
void people_help(struct sim *sim);
/* Whether this request fails. `*after`: it takes effect all the same. */
bool fault_hits(struct call *call, bool *after);

/* --- checks.c ----------------------------------------------------------------------------------- */

/* A write is about to leave a process. */
void check_handed_out(struct call *call);
/* A write arrived and changes `o` (NULL: creates it) from `before`. */
void check_patched(struct call *call, struct object *o, const struct pl_tree *before,
                   const struct pl_tree *after);
void check_applied(struct call *call, struct object *o, const struct pl_tree *conditions);
void check_deleted(struct call *call, struct object *o, const struct pl_tree *options);
void check_created(struct call *call, enum kind kind, const struct pl_tree *body);
void check_member_removed(struct call *call, struct member *m);
void check_leader_moved(struct call *call);
/* After every step. */
void check_always(struct sim *sim);
/* Whether the world is as it should be in the end; if not, `why` says what is missing. */
bool check_settled(struct sim *sim, char *why, size_t size);

/* --- sim.c -------------------------------------------------------------------------------------- */

typedef void sim_fn(struct sim *sim, void *what);

struct due {
    uint64_t at, order;
    sim_fn *run;
    void *what;
};

struct sim_options {
    uint64_t seed;
    bool trace;
    bool manage; /* act, not only report */
};

struct sim {
    struct sim_options options;
    struct prng random;
    struct pl_arena arena;
    struct pl_arena scratch; /* one request */
    struct pl_now now;
    struct server servers[1 + CLUSTERS_MAX];
    struct cluster clusters[CLUSTERS_MAX];
    int cluster_count;
    struct process *processes[PROCESSES_MAX];
    int process_count;
    enum pl_profile profile;
    struct faults faults;
    bool peace; /* the faults are over */
    int64_t jumped_ms;
    struct due *heap;
    size_t heap_count, heap_capacity;
    uint64_t sequence, steps, uid_serial;

    bool failed;
    char property[64];
    char failure[1024];
    uint64_t log_hash;
    uint64_t log_count;
    char log[LOG_LINES][LOG_LINE_BYTES];

    /* What happened, for the summary. */
    uint64_t deletions, removals, moves, replacements, settled_ms, requests;
};

/* Runs it to its end. False: a property was violated. */
bool sim_run(struct sim *sim, const struct sim_options *options);
void sim_free(struct sim *sim);

void sim_at(struct sim *sim, uint64_t at_ms, sim_fn *run, void *what);
void sim_after(struct sim *sim, uint64_t ms, sim_fn *run, void *what);
uint64_t sim_between(struct sim *sim, uint64_t low, uint64_t high);
bool sim_percent(struct sim *sim, int percent);
void sim_log(struct sim *sim, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same for what happens all the time: in the trace and in the hash, not among the last lines. */
void sim_note(struct sim *sim, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sim_violated(struct sim *sim, const char *property, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
struct pl_str sim_time_text(struct sim *sim, int64_t wall_ms);

#endif
