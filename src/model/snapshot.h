/* model/snapshot.h - the world as one evaluation sees it.
 *
 * Read from a Snapshot file, or gathered from bare Kubernetes objects. After pl__snapshot_settle()
 * it is read-only, sorted and indexed; everything lives in the arena it was read into.
 *
 * "Absent" and "empty" are different answers throughout: the `present` flags tell what was never
 * observed, and nothing may be concluded from that. */
#ifndef PL_MODEL_SNAPSHOT_H
#define PL_MODEL_SNAPSHOT_H

#include "model/objects.h"

enum pl_connection_state { CONNECTION_CONNECTED, CONNECTION_DOWN, CONNECTION_FAILED };
struct pl_str pl__connection_state_name(enum pl_connection_state state); /* "NotConnected" */

struct pl_connection {
    bool present;
    uint8_t state; /* enum pl_connection_state */
    struct pl_str error;
    int64_t last_probe_success_ms; /* 0: never */
    int64_t consecutive_failures;
};

struct pl_etcd_member {
    uint64_t id;
    struct pl_str name; /* empty until the member has started for the first time */
    bool is_learner;
};

struct pl_etcd_alarm {
    uint64_t member_id;
    struct pl_str alarm; /* "NOSPACE", "CORRUPT"; "NONE" is no alarm */
};

/* What etcd said of itself, or why it did not. */
struct pl_etcd_view {
    bool present;
    int64_t observed_ms;           /* when it was read; 0: with the rest of the snapshot */
    struct pl_str connect_error;   /* no endpoint could be reached */
    struct pl_str endpoint;        /* which one answered */
    PL_LIST(struct pl_str) errors; /* what its status call reported */
    struct pl_str members_error;
    struct pl_str alarms_error;
    uint64_t leader; /* 0: not known */
    PL_LIST(struct pl_etcd_member) members;
    PL_LIST(struct pl_etcd_alarm) alarms;
};

extern const struct pl_shape pl__etcd_view_shape;

struct pl_pod_error {
    struct pl_str pod;
    struct pl_str text;
};

/* Everything observed in one workload cluster. */
struct pl_workload {
    struct pl_str cluster; /* "namespace/name" */
    struct pl_connection connection;
    struct pl_str nodes_error;
    PL_LIST(struct pl_node) nodes; /* only control plane Nodes, in the order listed */
    PL_LIST(struct pl_pod) pods;   /* only static control plane Pods, sorted by name once settled */
    PL_LIST(struct pl_pod_error) pod_errors;
    struct pl_etcd_view etcd;
};

/* The management objects, by kind. Once settled, sorted by namespace and name; Machines by
 * namespace, cluster and name. */
struct pl_objects {
    PL_LIST(struct pl_cluster) clusters;
    PL_LIST(struct pl_kcp) kcps;
    PL_LIST(struct pl_machine) machines;
    PL_LIST(struct pl_machine_deployment) machine_deployments;
    PL_LIST(struct pl_machine_set) machine_sets;
    PL_LIST(struct pl_machine_health_check) machine_health_checks;
    PL_LIST(struct pl_machine_pool) machine_pools;

    /* Control planes that are asked about but not judged: live, when a MachineDeployment is looked at. */
    PL_LIST(struct pl_kcp) other_kcps;

    /* Nodes and Pods that stood outside any workload, before they are settled into one. */
    PL_LIST(struct pl_node) loose_nodes;
    PL_LIST(struct pl_pod) loose_pods;

    size_t count;
    size_t count_max;
};

/* An infrastructure machine template that a KubeadmControlPlane controls. Live only, and only once its
 * deletion has come that far: files have no place for them. */
struct pl_infra_template {
    struct pl_str kind, name, uid;
    struct pl_str path; /* of the object, in the API */
};

struct pl_snapshot {
    struct pl_str source;
    struct pl_str name;
    int64_t now_ms;
    int64_t grace_period_s; /* 0 until settled: the default then */
    struct pl_objects objects;
    PL_LIST(struct pl_workload) workloads;
    PL_LIST(struct pl_infra_template) templates; /* of the one control plane that is looked at */
};

/* Of one control plane, and its Nodes and etcd members as well. etcd itself is at its best up to
 * seven; the bound is there so that nothing that is compared with everything can get out of hand. */
enum { CONTROL_PLANE_MACHINES_MAX = 1000 };

enum { GRACE_PERIOD_S_DEFAULT = 300, GRACE_PERIOD_S_MIN = 120 };

/* What a document is. */
enum pl_document {
    DOCUMENT_SNAPSHOT,
    DOCUMENT_WRAPPED, /* {"name", "snapshot": a Snapshot, ...}: a line of vectors */
    DOCUMENT_OBJECTS, /* a List, or one object */
};

/* Looks at the document that comes next without reading it. -1 with an error. */
int pl__document_peek(struct pl_json *j);

/* Reads it; objects are added to those already there. 0, or -1 with an error. */
int pl__document_read(struct pl_json *j, enum pl_document document, struct pl_snapshot *s);

/* Sorts, indexes and checks what was read. `now_ms` replaces the snapshot's own when not 0, and
 * `clock_ms` stands in when it has none. 0, or -1 with an error. */
int pl__snapshot_settle(struct pl_snapshot *s, struct pl_arena *arena, int64_t now_ms,
                        int64_t clock_ms, struct pl_error **err);

/* Writes it as one Snapshot document, which reads back as the same world. Only what the tables of
 * fields know is in it: no Secret, no annotation or field that we do not use. */
void pl__snapshot_write(struct pl_json_writer *w, const struct pl_snapshot *s);

/* --- questions to a settled snapshot --------------------------------------------------------- */

/* The workload of a cluster, or NULL. */
const struct pl_workload *pl__snapshot_workload(const struct pl_snapshot *s,
                                                struct pl_str namespace_, struct pl_str cluster);

/* The Cluster of that name, or NULL. */
const struct pl_cluster *pl__snapshot_cluster(const struct pl_snapshot *s, struct pl_str namespace_,
                                              struct pl_str name);

/* Machines of a cluster (by label), as a range of s->objects.machines, which is sorted by namespace, cluster
 * and name. */
struct pl_range {
    uint32_t first, end;
};
struct pl_range pl__snapshot_machines_of(const struct pl_snapshot *s, struct pl_str namespace_,
                                         struct pl_str cluster);

/* The static Pod of that name, or NULL; the error met reading it, or NULL. */
const struct pl_pod *pl__workload_pod(const struct pl_workload *w, struct pl_str name);
const struct pl_pod_error *pl__workload_pod_error(const struct pl_workload *w, struct pl_str name);

/* The control plane Node of that name, or NULL. */
const struct pl_node *pl__workload_node(const struct pl_workload *w, struct pl_str name);

#endif
