/* fleet/internal.h - the parts of a fleet, for the files of fleet/.
 *
 *   fleet.c      opening, looking at clusters when they are due, stopping
 *   seen.c       events: objects into the structs below
 *   write.c      texts of objects, calls to the API servers
 *   cluster.c    Clusters, control planes, MachineDeployments and MachineSets
 *   machine.c    a Machine's way from new to gone, and its health check
 *   node.c       its Node and static Pods, as the kubelet and the node controller keep them
 *   etcd.c       members: bootstrap, join, promote, leave, and what is broken about them
 *   process.c    child processes, and those of a playground that crashed
 *   pki.c        certificates
 *   fault.c      the table of faults and its annotation
 *
 * Two things are told apart everywhere: what an API server last told of an object, and what the simulated hardware
 * is. The second is ours alone; writing makes the first follow. */
#ifndef PL_FLEET_INTERNAL_H
#define PL_FLEET_INTERNAL_H

#include "fleet/fleet.h"
#include "loop/etcd.h"
#include "loop/files.h"
#include "model/objects.h"

#define CAPI "cluster.x-k8s.io/v1beta2"
#define CONTROLPLANE "controlplane.cluster.x-k8s.io/v1beta2"
#define BOOTSTRAP "bootstrap.cluster.x-k8s.io/v1beta2"
#define INFRASTRUCTURE "infrastructure.cluster.x-k8s.io/v1beta2"

#define TAINT_UNREACHABLE "node.kubernetes.io/unreachable"
#define MACHINE_FINALIZER "machine.cluster.x-k8s.io"
#define CLUSTER_FINALIZER "cluster.cluster.x-k8s.io"

enum {
    NAME_BYTES = 254, /* of an object, with its NUL */
    UID_BYTES = 40,
    FAULT_BYTES = 256,        /* of an annotation; what is longer is cut and then unknown */
    MACHINES_MAX = 128,       /* of a cluster: with as many, no more are made */
    MACHINES_SEEN_MAX = 4096, /* with those that others make */
    SETS_MAX = 16,            /* MachineDeployments and MachineSets of a cluster */
    MEMBERS_MAX = 12,         /* of an etcd, ghosts included */
    ERRANDS_MAX = 16,
    CLUSTER_BUCKETS = 1024,
    FLEET_SETTLE_MS =
        600, /* kinds are told apart from each other: what belongs together has come then */
    TEXT_BYTES_MAX = 64 * 1024 /* of an object that is written */
};

/* The static Pods, in the order of pl__static_pods. */
enum component { POD_API_SERVER, POD_CONTROLLER_MANAGER, POD_SCHEDULER, POD_ETCD };

/* --- faults (fault.c) -------------------------------------------------------------------------------- */

enum fault_flag {
    FAULT_KUBELET_DOWN = 1 << 0,
    FAULT_NODE_GONE = 1 << 1,
    FAULT_ETCD_STOP = 1 << 2,
    FAULT_ETCD_KILL = 1 << 3,
    FAULT_ETCD_NOSPACE = 1 << 4,
    FAULT_ETCD_LEARNER = 1 << 5,
    FAULT_ETCD_GHOST = 1 << 6,
    FAULT_NETWORK_CUT = 1 << 7,
    FAULT_BAD_CERTIFICATE = 1 << 8,
    FAULT_NODES_REFUSED = 1 << 9,
    FAULT_UNHEALTHY = 1 << 10,
};

struct fault_set {
    uint32_t flags;
    uint8_t pod_crash, pod_pending, pod_gone; /* bits by component */
    uint32_t slow_ms;
};

/* Adds what the annotation says that may be put there. `pod`: on which Pod, with FAULT_ON_POD. */
void pl__faults_add(struct fault_set *set, struct pl_str annotation, unsigned on,
                    enum component pod);

/* --- etcd (etcd.c) ------------------------------------------------------------------------------------ */

enum member_state {
    MEMBER_NONE,    /* the place is free */
    MEMBER_WAITS,   /* wanted; nothing is done for it yet */
    MEMBER_STARTS,  /* one of the first, its process runs, nobody has answered yet */
    MEMBER_LEARNER, /* added, its process runs, does not vote yet */
    MEMBER_VOTES,
};

struct member {
    struct ensemble *ensemble;
    enum member_state state;
    char name[NAME_BYTES]; /* of its Node */
    char host[FLEET_HOST_BYTES];
    uint64_t id; /* 0: not known yet */
    struct process *process;
    uint64_t
        restart_ms; /* not before then; a process that ends is started anew, as a kubelet does */
    bool is_first;  /* was there from the beginning: "new" in place of "existing" */
    bool is_ghost;
    char *initial_cluster; /* for its first start */

    uint32_t faults; /* of enum fault_flag, as they should be */
    bool frozen;     /* SIGSTOP was sent to the process */
    bool full;       /* the alarm is raised */
    bool bad_cert;   /* its certificate is a stranger's */
    bool suspect;    /* its process has ended by itself: is it still a member? */
    bool removed;    /* others list it no more, so it is not asked for */
};

/* A call about nobody who is still here. */
struct errand {
    enum pl_etcd_call call;
    uint64_t id;
};

struct ensemble {
    struct pl_fleet *fleet;
    char name[NAME_BYTES]; /* of its cluster, or "shared" */
    char token[17];
    char *ca_cert, *ca_key; /* PEM */
    struct pl_etcd *client;
    struct member members[MEMBERS_MAX];
    struct errand errands[ERRANDS_MAX];
    uint32_t errand_count;
    bool is_shared, has_started;
    bool busy;             /* a call is under way */
    struct member *target; /* whom it is about; NULL: everybody, or somebody who has gone */
    enum pl_etcd_call call;
    bool is_errand;    /* the call is about the first of the errands */
    bool errand_waits; /* one was refused: members come first */
    uint64_t next_call_ms;
    bool ghost_made; /* for the fault that is on now */
    bool found; /* in the directory, of a former life: whose Machine is gone is still to be seen */
};

/* With `keep`, the one that an earlier fleet had under this name, members, data and all. Else a new one, which
 * does nothing before pl__ensemble_start(). NULL with an error. */
struct ensemble *pl__ensemble_new(struct pl_fleet *fleet, const char *name, bool is_shared,
                                  struct pl_error **err);

/* Starts all members that are there together, as the first ones. Who comes later joins. */
void pl__ensemble_start(struct ensemble *e);
/* Processes end, data goes, unless the fleet stops and it is to be kept. NULL is fine. */
void pl__ensemble_free(struct ensemble *e);

/* The member of that name, made if there is room; NULL when there is none. The other one makes none. */
struct member *pl__ensemble_member(struct ensemble *e, const char *name);
struct member *pl__ensemble_find(struct ensemble *e, const char *name);

/* Its machine is gone, and with it process and data; whether others still list it is not asked. */
void pl__member_abandon(struct member *m);

/* Its etcd Pod is as well as this. */
bool pl__member_runs(const struct member *m);

/* Takes the next steps. Lowers `*due_ms` to when it wants to be called again. */
void pl__ensemble_step(struct ensemble *e, uint64_t now_ms, uint64_t *due_ms);
/* Sets client_port, such that it and the one above are free on the loopback addresses, or to 0; and host_next. With
 * `keep`, those of the last time; when they are taken, what was kept is removed: its addresses are part of it. */
void pl__etcd_port_find(struct pl_fleet *fleet);
void pl__ensemble_ghost(struct ensemble *e, bool wanted);

/* --- processes (process.c) ------------------------------------------------------------------------------ */

struct process {
    struct process *next;
    struct pl_fleet *fleet;
    uv_process_t handle;
    int pid;
    bool exited;
    struct member *member; /* NULL: nobody cares how it ends */
};

/* argv[0] is the program; its output goes to the end of `log`. NULL with an error. */
struct process *pl__process_start(struct pl_fleet *fleet, char **argv, const char *log,
                                  struct member *member, struct pl_error **err);
void pl__process_signal(struct process *p, int signal);

/* Blocks until all have ended, two seconds at most: when there is no loop any more. */
void pl__processes_kill_all(struct pl_fleet *fleet);

/* Closes the handles of those, when the fleet ends. */
void pl__processes_close(struct pl_fleet *fleet);

/* --- certificates (pki.c) --------------------------------------------------------------------------------- */

/* PEM of a new authority, of the heap: free both. 0, or -1. */
int pl__pki_authority(const char *name, int64_t now_ms, char **cert_pem, char **key_pem);

/* A certificate for servers and clients. `names` as openssl.cnf has them: "DNS:a,IP:127.0.0.1". */
int pl__pki_issue(const char *ca_cert, const char *ca_key, const char *name, const char *names,
                  int64_t now_ms, char **cert_pem, char **key_pem);

/* --- Machines (machine.c, node.c) ------------------------------------------------------------------------- */

enum machine_phase {
    MACHINE_NEW,
    MACHINE_BOOTS, /* it has infrastructure and waits for its etcd member */
    MACHINE_RUNS,
};

enum machine_leave {
    STAYS,
    AT_DRAIN_HOOK,
    DRAINS,
    AT_HOOK,
    ENDS, /* the infrastructure goes */
};

/* A condition as it was written last. */
struct shown {
    uint8_t status; /* 0: not set, 'T', 'F', 'U' */
    int64_t since_ms;
};

enum { MACHINE_CONDITIONS = 8, NODE_FAULT = POD_COUNT, WORKLOAD_FAULTS = POD_COUNT + 1 };

struct machine {
    struct machine *next;
    struct cluster *cluster;

    /* As the API server told. */
    char name[NAME_BYTES], uid[UID_BYTES], set[NAME_BYTES], config[NAME_BYTES], infra[NAME_BYTES];
    char node[NAME_BYTES]; /* status.nodeRef, or what it is going to be */
    uint64_t version;
    bool control_plane, deleting, has_finalizer;
    char *finalizers; /* of others, as they stand in a JSON list; NULL: none */
    bool hooks, drain_hooks, remediate, skip_remediation, paused;
    bool health_true, health_false, owner_false; /* HealthCheckSucceeded, OwnerRemediated */
    char fault[FAULT_BYTES];
    bool fault_full;                                   /* it was said that no more goes into it */
    char workload_fault[WORKLOAD_FAULTS][FAULT_BYTES]; /* of its Pods and its Node */
    bool node_there, pod_there[POD_COUNT];
    uint64_t node_version;
    char node_uid[UID_BYTES];
    char *taints;      /* of its Node, all but those of a lost one, as in a JSON list; NULL: none */
    bool node_tainted; /* those of a lost one are there */

    /* The hardware. */
    enum machine_phase phase;
    enum machine_leave leave;
    uint64_t since_ms; /* of phase and leave */
    int64_t drain_started_ms;
    bool ended; /* nothing is left but the object, which is going */
    bool waits; /* for a member of the shared etcd that no other Machine of its cluster has */
    struct fault_set faults;
    struct member *member; /* NULL: none, or not its own to begin with */
    bool silent, lost;     /* the kubelet says nothing; long enough for its Node to be NotReady */
    bool ill;
    uint64_t silent_ms, ill_ms, pod_missing_ms[POD_COUNT];
    bool node_made; /* once: a Node that somebody deletes does not come back by itself */

    /* What was written, so that nothing is written twice. */
    uint64_t status_hash, node_hash, node_status_hash, pod_hash[POD_COUNT];
    struct shown shown[MACHINE_CONDITIONS];
    int64_t node_changed_ms, pod_changed_ms[POD_COUNT];
    bool node_shown_lost;
    uint8_t pod_shown[POD_COUNT]; /* enum pod_state */
};

/* The next step of each. They lower `*due_ms` to when they want to be called again. */
void pl__machine_step(struct machine *m, uint64_t now_ms, uint64_t *due_ms);
void pl__node_step(struct machine *m, uint64_t now_ms, uint64_t *due_ms);
void pl__node_remove(struct machine *m);

/* What is broken about it now, all annotations together; marks that cannot stay where they are put move
 * to the Machine. */
void pl__machine_faults(struct machine *m);

/* Whether its Node is up: it runs, and its kubelet was heard. */
static inline bool pl__machine_ready(const struct machine *m)
{
    return m->phase == MACHINE_RUNS && m->node_there && !m->lost;
}

/* --- clusters (cluster.c) ------------------------------------------------------------------------------------ */

/* A MachineDeployment or a MachineSet. */
struct set {
    char name[NAME_BYTES], uid[UID_BYTES], deployment[NAME_BYTES];
    bool is_deployment, deleting, there;
    int32_t replicas;
    uint64_t version, status_hash;
    struct shown available;
};

struct cluster {
    struct pl_fleet *fleet;
    struct cluster *next_in_bucket;
    uint64_t hash; /* of the name */
    char name[NAME_BYTES], uid[UID_BYTES], kcp[NAME_BYTES], kcp_uid[UID_BYTES];
    uint64_t version, kcp_version;
    uint32_t feeds_left; /* of those that tell what was kept: it is not looked at before */
    bool there, deleting, paused, kcp_there, kcp_deleting, kcp_initialized, kcp_in_progress,
        kcp_paused;
    bool kcp_external;
    bool has_finalizer;
    char *finalizers; /* of others, as with a Machine */
    int32_t kcp_replicas;
    char fault[FAULT_BYTES];
    struct fault_set faults;
    bool ours;       /* made at the start */
    bool furnished;  /* its Secrets are there */
    bool etcd_old;   /* the etcd is that of a control plane that was deleted */
    uint32_t serial; /* of the next Machine's name */
    uint64_t due_ms;
    uint64_t empty_ms; /* before that, nothing of it may be there: the kinds are told one by one */
    uint64_t settled_ms; /* before that, what Machines there are may not be known yet */
    uint64_t status_hash, kcp_status_hash, health_status_hash;
    int64_t made_ms, initialized_ms;
    struct shown available, kcp_available;
    struct ensemble *etcd; /* NULL: external, or not begun */
    struct machine *machines;
    uint32_t machine_count;
    bool crowded; /* it was said that there are too many of them */
    bool counted; /* what follows is true: nothing has happened since */
    bool settled;
    uint32_t running;
    struct set sets[SETS_MAX];
};

/* Makes the objects of one of the first clusters. */
void pl__cluster_make(struct cluster *c);
void pl__cluster_step(struct cluster *c, uint64_t now_ms);

/* Nothing of it is left on the management side, or nothing ever came. */
bool pl__cluster_is_empty(const struct cluster *c);
void pl__cluster_free(struct cluster *c);

/* The etcd that its members belong to; NULL: external, or it cannot be made. */
struct ensemble *pl__cluster_etcd(struct cluster *c);
bool pl__cluster_has_own_etcd(const struct cluster *c);

struct cluster *pl__cluster_find(const struct pl_fleet *fleet, struct pl_str name);
struct cluster *pl__cluster_add(struct pl_fleet *fleet, struct pl_str name);
void pl__cluster_poke(struct cluster *c); /* look at it soon */
void pl__ensemble_poke(struct ensemble *e, bool everybody);
void pl__machine_free(struct machine *m);

/* --- events (seen.c) ------------------------------------------------------------------------------------------ */

/* An object as an API server has it now, or had it last. */
void pl__fleet_see(struct pl_fleet *fleet, struct pl_str cluster, struct pl_str object, bool gone);

/* --- writing (write.c) ------------------------------------------------------------------------------------------ */

/* Who writes, as managedFields shows it. */
#define BY_MACHINE "machine-controller"
#define BY_HEALTH_CHECK "machine-health-check"
#define BY_KCP "kubeadm-control-plane-scale"
#define BY_CLUSTER "cluster-controller"
#define BY_SET "machineset-controller"

/* `group_version` and the rest as in struct pl_fleet_call; `c` NULL: the management cluster. What was written is
 * seen at once. The HTTP status. */
int pl__call(struct pl_fleet *fleet, const struct cluster *c, struct pl_fleet_call call);

/* Only when the text differs from what had this hash. False: it could not be written. */
bool pl__call_changed(struct pl_fleet *fleet, const struct cluster *c, struct pl_fleet_call call,
                      uint64_t *hash);

/* So with the status of an object on the management side. */
void pl__status_apply(struct pl_fleet *fleet, const char *group_version, const char *plural,
                      const char *name, const char *manager, struct pl_buf *body, uint64_t *hash);

/* A text to fill, in the fleet's scratch memory. */
struct pl_buf pl__text(struct pl_fleet *fleet);
/* "apiVersion", "kind" and the beginning of "metadata" up to and without its end; `ns` false: in no
 * namespace. Labels and the rest of "metadata" follow. */
void pl__object_open(struct pl_buf *b, struct pl_fleet *fleet, const char *api_version,
                     const char *kind, const char *name, bool ns);
/* ,"labels":{...} of an object on the management side; `more` are further ones, each behind a comma. */
void pl__labels_add(struct pl_buf *b, struct pl_fleet *fleet, const char *cluster,
                    const char *more);
/* ,"ownerReferences":[{...}] of its controller. */
void pl__owner_add(struct pl_buf *b, const char *api_version, const char *kind, const char *name,
                   const char *uid);
/* A merge patch that sets the finalizers: those of others, and ours when it is not NULL. It is refused (409) when the
 * object has changed since `version`: then they may not be the same any more. */
struct pl_str pl__finalizers_text(struct pl_fleet *fleet, uint64_t version, const char *others,
                                  const char *ours);
/* One item of status.conditions. `status` 'T', 'F' or 'U'. */
void pl__condition_add(struct pl_buf *b, const char *type, char status, const char *reason,
                       const char *message, int64_t since_ms);
/* The same, since when it has that status. */
void pl__condition_show(struct pl_buf *b, struct shown *shown, const char *type, char status,
                        const char *reason, const char *message);

/* --- all of it (fleet.c) ------------------------------------------------------------------------------------------ */

struct pl_fleet {
    struct pl_loop *loop;
    struct pl_fleet_options options; /* strings are copies */
    struct pl_arena strings;         /* of the options */
    struct pl_arena scratch;         /* of one step */
    struct pl_arena answer;          /* of one call */
    uint32_t depth;                  /* of calls that use it */
    char *etcd;                      /* the program; NULL: none */
    char why_not[200];
    int lock;
    uint16_t client_port;
    uint32_t host_next;
    uint64_t number; /* for names that must not repeat */
    uv_timer_t timer;
    uint64_t timer_ms; /* when it fires; UINT64_MAX: not started */
    bool stepping, stopping, freeing, timer_closed;
    bool failed; /* a call, in the step that is being taken: it is to be taken again */
    struct cluster *buckets[CLUSTER_BUCKETS]; /* by hash */
    struct cluster **clusters;
    uint32_t cluster_count, cluster_capacity, cluster_next;
    uint64_t refused_hash; /* of the name of the last Cluster that there could not be */
    uint32_t made_count;   /* of the first ones, whose objects are made a few a turn */
    uint32_t made_before;  /* in a former life: they are not made again */
    uint32_t feeds_left;   /* of the management cluster, as with a cluster's */
    struct ensemble *shared;
    uint64_t shared_due_ms;
    struct process *processes;
    uint32_t process_count;
    uint64_t kill_ms; /* when stopping */
    void (*stopped)(void *user);
    void *stopped_user;
};

/* Around everything that is called from outside: when the last one leaves, scratch memory is empty again. */
void pl__fleet_enter(struct pl_fleet *fleet);
void pl__fleet_leave(struct pl_fleet *fleet);

void pl__fleet_say(struct pl_fleet *fleet, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void pl__fleet_wake(struct pl_fleet *fleet, uint64_t at_ms);
void pl__fleet_process_ended(struct pl_fleet *fleet);

/* Copies a name; what is too long is cut. */
void pl__name_set(char *room, size_t size, struct pl_str value);
#define NAME_SET(room, value) pl__name_set((room), sizeof(room), (value))

static inline void pl__due(uint64_t *due_ms, uint64_t at_ms)
{
    if (at_ms < *due_ms)
        *due_ms = at_ms;
}

#endif
