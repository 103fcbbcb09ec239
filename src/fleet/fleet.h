/* fleet/fleet.h - the playground's simulated fleet: everybody that plimsoll leaves work to.
 *
 * It stands in for the infrastructure, bootstrap, Machine, MachineSet, MachineDeployment, Cluster and
 * MachineHealthCheck controllers, for kubelets and for the half of the KubeadmControlPlane controller that
 * makes Machines. It makes Clusters with their Secrets; a Machine that appears gets its infrastructure, a
 * Node, static Pods and an etcd process of its own that joins as kubeadm joins it; one that is deleted waits for
 * its hooks, is drained, and ends. What people break with the annotation sim.plimsoll.dev/fault stays broken
 * until the annotation is gone.
 *
 *      API server  <--- calls (struct pl_fleet_api) ---  fleet  --- processes, gRPC --->  etcd
 *                  ---- pl__fleet_event() ------------->
 *
 * It looks at the whole state again and again and takes the next step: events only say when. Clusters,
 * Machines and members are gone through in the order they came; a turn ends by the clock. Everything is
 * on one loop; what it waits for has a timer. */
#ifndef PL_FLEET_FLEET_H
#define PL_FLEET_FLEET_H

#include "base/error.h"
#include "loop/loop.h"

struct pl_fleet;

enum {
    FLEET_CLUSTERS_MAX = 5000,
    FLEET_REPLICAS_MAX = 7,
    FLEET_WORKERS_MAX = 100,
    FLEET_HOST_BYTES = 16,
};

/* --- the API servers, as the fleet sees them ------------------------------------------------------- */

enum pl_fleet_verb {
    FLEET_CREATE, /* the name is in the body */
    FLEET_MERGE,  /* JSON merge patch */
    FLEET_APPLY,  /* server-side apply, by force */
    FLEET_DELETE, /* in the background, without a grace period */
};

/* One call. The cluster that is empty is the management cluster. */
struct pl_fleet_call {
    struct pl_str cluster;
    enum pl_fleet_verb verb;
    const char *group_version; /* "v1", "cluster.x-k8s.io/v1beta2" */
    const char *plural;        /* "machines" */
    struct pl_str ns;          /* empty: not in a namespace */
    struct pl_str name;
    const char *subresource; /* "status", or NULL */
    struct pl_str manager;   /* fieldManager */
    struct pl_str body;
};

/* What the caller has to provide. Nothing of it is called once pl__fleet_stop() has begun. */
struct pl_fleet_api {
    void *user;
    /* Does it at once. The HTTP status; `*body` is the object that was written, or a Status, in the arena. It
     * must not call pl__fleet_event() from inside. */
    int (*call)(void *user, const struct pl_fleet_call *call, struct pl_arena *arena,
                struct pl_str *body);
    /* From now on what is there of this kind in this cluster, and every change, is told by pl__fleet_event(). */
    void (*watch)(void *user, struct pl_str cluster, const char *group_version, const char *plural);
    /* A workload cluster comes, before anything is written into it, or is gone. False: there can be none of that
     * name. */
    bool (*cluster_add)(void *user, struct pl_str cluster);
    void (*cluster_remove)(void *user, struct pl_str cluster);
    /* The kubeconfig that leads to it, for Secret <cluster>-kubeconfig; in the arena. */
    struct pl_str (*kubeconfig)(void *user, struct pl_str cluster, struct pl_arena *arena);
};

/* --- options ----------------------------------------------------------------------------------------- */

struct pl_fleet_options {
    const char *directory; /* exists and is ours: certificates, etcd's data and logs, process ids */
    const char
        *etcd;      /* the program; NULL: from PATH; "": none, control planes with external etcd */
    const char *ns; /* of the Clusters; NULL: "default" */
    const char *version;      /* of Kubernetes; NULL: "v1.34.2" */
    const char *watch_filter; /* label of all management objects; NULL: none */
    uint32_t
        cluster_count;  /* made at the start, as <prefix>-1, <prefix>-2, ...; others are adopted */
    const char *prefix; /* NULL: "demo" */
    uint32_t replicas;  /* 0: 3 */
    uint32_t workers;   /* Machines of each MachineDeployment; 0: no MachineDeployment */
    bool shared_etcd;   /* one etcd for all; its Nodes are cp-1, cp-2, ... in every cluster */
    /* Objects and etcd's data outlive the fleet, and the next one in this directory goes on with them: Machines that
     * ran go on running, clusters that were made once are not made again. Nothing is done before pl__fleet_told(). */
    bool keep;
    /* How long things take, milliseconds; 0: as said. */
    uint32_t boot_ms;     /* a machine to come up: 800 */
    uint32_t drain_ms;    /* a Node to be drained: 500 */
    uint32_t silence_ms;  /* a kubelet silent until its Node is NotReady: 1500 */
    uint32_t patience_ms; /* ill until the health check says so: 2500 */
    struct pl_fleet_api api;
    /* What happens, a line each, for people; NULL: nobody wants to know. */
    void (*said)(void *user, struct pl_str line);
    void *said_user;
};

/* --- its life ---------------------------------------------------------------------------------------- */

/* Ends the processes that a fleet in this directory (an absolute path) left when it was killed. How many; it may
 * take seconds. pl__fleet_open() does it by itself; this is for directories that nobody opens again. */
uint32_t pl__fleet_end_left(const char *directory);

/* Takes the directory (one fleet each), ends etcd processes that a crashed playground left there, and makes the
 * first objects from the loop. What `options` points at is copied. 0, or -1. */
int pl__fleet_open(struct pl_loop *loop, const struct pl_fleet_options *options,
                   struct pl_arena *arena, struct pl_fleet **out, struct pl_error **err);

/* Why control planes have external etcd, for people, and how to change that; NULL: they have their own. */
const char *pl__fleet_without_etcd(const struct pl_fleet *fleet);

/* Something happened to an object that is watched: one line of a watch, {"type": "ADDED", "object": {...}}.
 * BOOKMARK is skipped. An ERROR: the watch begins anew, told by ADDED of everything. */
void pl__fleet_event(struct pl_fleet *fleet, struct pl_str cluster, struct pl_str line);

/* With `keep`: everything was told that was there when api.watch() was called, for this cluster and one kind. Once for
 * each. */
void pl__fleet_told(struct pl_fleet *fleet, struct pl_str cluster);

/* Ends every process (SIGTERM, after three seconds SIGKILL) and calls `done`, from the loop. etcd's data is
 * removed, without `keep`. Then, or in place of it when the loop has ended, free it. */
void pl__fleet_stop(struct pl_fleet *fleet, void (*done)(void *user), void *user);

/* What still runs is killed and waited for. NULL is fine. */
void pl__fleet_free(struct pl_fleet *fleet);

/* --- what stands between a client and a workload cluster ----------------------------------------------- */

/* What the front asks before it answers a request to a workload cluster. */
struct pl_fleet_gate {
    bool cut;             /* close the connection without an answer */
    bool nodes_forbidden; /* 403 for lists and watches of Nodes */
    uint32_t delay_ms;    /* wait before answering */
};
struct pl_fleet_gate pl__fleet_gate(const struct pl_fleet *fleet, struct pl_str cluster);

/* Where a port-forward to this Pod and port leads. NULL, or why there is no way (what a kubelet says). */
struct pl_fleet_target {
    char host[FLEET_HOST_BYTES];
    uint16_t port;
    uint32_t delay_ms;
};
const char *pl__fleet_tunnel(const struct pl_fleet *fleet, struct pl_str cluster, struct pl_str pod,
                             uint16_t port, struct pl_fleet_target *target);

/* The port of every member on its Node's InternalIP, for "https://{address}:PORT"; 0: no etcd. */
uint16_t pl__fleet_etcd_port(const struct pl_fleet *fleet);

/* --- faults -------------------------------------------------------------------------------------------- */

#define FLEET_FAULT_ANNOTATION "sim.plimsoll.dev/fault"

/* What a fault may be put on. Nodes and Pods are in the workload cluster. */
enum { FAULT_ON_POD = 1, FAULT_ON_NODE = 2, FAULT_ON_MACHINE = 4, FAULT_ON_CLUSTER = 8 };

/* What a Machine, a Node or a Pod must have for the fault to do anything: static Pods, which workers have not; an etcd
 * member, whose Pod is the one called etcd-... */
enum { FAULT_NEEDS_PODS = 1, FAULT_NEEDS_MEMBER = 2 };

/* The annotation holds names, joined by ','. Behind ':' stands which Pod is meant (pod-...: "etcd", "kube-apiserver"
 * ..., default kube-apiserver; on a Pod, that one), or how many milliseconds (network-slow, default 2000). */
struct pl_fleet_fault {
    const char *name;
    unsigned on;
    unsigned needs;     /* FAULT_NEEDS_... */
    const char *detail; /* what may stand behind ':', for people; NULL: nothing */
    const char *does;
    const char *undone; /* what comes when the name is taken off */
};
extern const struct pl_fleet_fault pl__fleet_faults[];
extern const size_t pl__fleet_fault_count;

/* Whether all of the annotation can be put there; else `*word` is the first part that cannot. */
bool pl__fleet_fault_check(struct pl_str annotation, unsigned on, struct pl_str *word);

/* --- for those who wait for the fleet ------------------------------------------------------------------ */

struct pl_fleet_counts {
    uint32_t clusters, machines, running; /* running: with Node, and etcd where it has its own */
    uint32_t processes;                   /* of etcd */
    bool settled; /* as many Machines as are wanted, all running, nothing under way */
};
struct pl_fleet_counts pl__fleet_counts(const struct pl_fleet *fleet);

#endif
