/* model/objects.h - the API objects as we read them: the fields we use, and nothing else.
 *
 * v1beta2 is the native form. v1beta1 objects are read into the same structs: after decoding,
 * pl__object_settle() moves what they keep elsewhere (conditions under status.v1beta2, the
 * readiness booleans, durations as text) to where v1beta2 has it. */
#ifndef PL_MODEL_OBJECTS_H
#define PL_MODEL_OBJECTS_H

#include "model/condition.h"

struct pl_owner_reference {
    struct pl_str kind;
    struct pl_str name;
    struct pl_str uid;
    bool controller;
};

struct pl_labels {
    struct pl_str cluster_name;    /* cluster.x-k8s.io/cluster-name */
    struct pl_str watch_filter;    /* cluster.x-k8s.io/watch-filter */
    struct pl_str deployment_name; /* cluster.x-k8s.io/deployment-name */
    bool control_plane;            /* cluster.x-k8s.io/control-plane, any value */
    bool node_control_plane;       /* node-role.kubernetes.io/control-plane, any value */
};

struct pl_annotations {
    struct pl_str remediation_in_progress; /* on a KCP: JSON */
    struct pl_str remediation_for;         /* on a Machine: JSON */
    struct pl_str revision;                /* on a MachineDeployment and its MachineSets */
    struct pl_str skip_preflight_checks;   /* on a MachineSet: names joined by commas */
    struct pl_str upgrade_step;            /* on a Cluster: the version its topology goes to next */
    bool remediate_machine;
    bool paused;
    bool kcp_cleanup_hook;     /* on a Machine: its end waits for the control plane's leave */
    bool other_terminate_hook; /* ... and for somebody else's */
};

struct pl_meta {
    struct pl_str name;
    struct pl_str namespace_;
    struct pl_str uid;
    int64_t generation;        /* 0: none */
    uint64_t resource_version; /* 0: none */
    int64_t created_ms;
    int64_t deleted_ms; /* deletionTimestamp; 0: not being deleted */
    PL_LIST(struct pl_owner_reference) owners;
    struct pl_labels labels;
    struct pl_annotations annotations;
};

struct pl_failure_domain {
    struct pl_str name;
    bool control_plane; /* may hold control plane Machines */
};
struct pl_failure_domains {
    PL_LIST(struct pl_failure_domain) list;
};

struct pl_cluster {
    struct pl_meta meta;
    struct pl_str control_plane_kind; /* spec.controlPlaneRef; empty: none */
    struct pl_str control_plane_name;
    struct pl_str endpoint_host;
    int64_t endpoint_port;
    struct pl_str topology_version; /* spec.topology.version; empty: no topology */
    bool paused;
    bool infrastructure_provisioned;
    bool v1beta1_infrastructure_ready;
    struct pl_failure_domains failure_domains; /* status.failureDomains */
    struct pl_conditions conditions;
    struct pl_conditions v1beta1_conditions;
};

/* How many Machines: wanted, there, and in which state. Each is one more than the number, so that 0
 * means "not said". */
struct pl_replicas {
    int32_t desired; /* spec.replicas */
    int32_t current;
    int32_t ready;
    int32_t available;
    int32_t up_to_date;
};

struct pl_external_etcd {
    bool present; /* once settled: etcd is external */
    PL_LIST(struct pl_str) endpoints;
};

struct pl_kcp {
    struct pl_meta meta;
    struct pl_str version;
    struct pl_str status_version; /* the lowest of its Machines; empty: none is there yet */
    int64_t min_healthy_period_s; /* -1: not set */
    int64_t retry_period_s;       /* -1: not set */
    int64_t max_retry;            /* -1: not set */
    struct pl_str v1beta1_min_healthy_period;
    struct pl_str v1beta1_retry_period;
    struct pl_external_etcd
        external;      /* spec.kubeadmConfigSpec.clusterConfiguration.etcd.external */
    bool etcd_managed; /* not external: the kubeadm control plane runs etcd */
    bool initialized;  /* status.initialization.controlPlaneInitialized */
    bool v1beta1_initialized;
    struct pl_replicas replicas;
    struct pl_conditions conditions;
    struct pl_conditions v1beta1_conditions;
};

struct pl_machine {
    struct pl_meta meta;
    struct pl_str provider_id;
    struct pl_str infrastructure_kind; /* spec.infrastructureRef.kind */
    struct pl_str failure_domain;      /* spec.failureDomain */
    struct pl_str node_name;           /* status.nodeRef.name; empty: still provisioning */
    int64_t drain_started_ms;          /* status.deletion.nodeDrainStartTime */
    struct pl_conditions conditions;
    struct pl_conditions v1beta1_conditions;
};

/* "3" or "20%", as it was written. */
struct pl_int_or_string {
    struct pl_str text; /* empty: not set */
    int64_t number;
    bool is_number;
};

struct pl_machine_deployment {
    struct pl_meta meta;
    struct pl_int_or_string max_in_flight; /* spec.remediation.maxInFlight */
    struct pl_replicas replicas;
    struct pl_conditions conditions;
    struct pl_conditions v1beta1_conditions;
};

struct pl_machine_set {
    struct pl_meta meta;
    struct pl_str version;               /* spec.template.spec.version */
    struct pl_str bootstrap_config_kind; /* spec.template.spec.bootstrap.configRef.kind */
};

struct pl_machine_health_check {
    struct pl_meta meta;
    struct pl_str cluster_name;
};

struct pl_machine_pool {
    struct pl_meta meta;
    struct pl_str cluster_name;
};

struct pl_taint {
    struct pl_str key;
    struct pl_str effect;
};

struct pl_node {
    struct pl_str name;
    uint64_t resource_version;
    struct pl_labels labels;
    PL_LIST(struct pl_taint) taints;
    struct pl_str address; /* the first InternalIP; empty: none. Not written into snapshots */
    struct pl_conditions conditions;
};

struct pl_container_state {
    struct pl_str reason;
    bool present;
};

struct pl_container_status {
    struct pl_container_state waiting;
    struct pl_container_state terminated;
    int64_t last_exit_code; /* lastState.terminated.exitCode; 0 also when there was none */
};

struct pl_pod {
    struct pl_str name;
    uint64_t resource_version;
    struct pl_str namespace_;
    struct pl_str phase;
    struct pl_conditions conditions;
    PL_LIST(struct pl_container_status) containers;
};

extern const struct pl_shape pl__meta_shape, pl__cluster_shape, pl__kcp_shape, pl__machine_shape,
    pl__machine_deployment_shape, pl__machine_set_shape, pl__machine_health_check_shape,
    pl__machine_pool_shape, pl__node_shape, pl__pod_shape;

/* What of a workload cluster is kept: Nodes with the control plane label, and the static Pods of
 * kube-system, by the start of their names (the rest of the name is the Node's). */
bool pl__node_is_control_plane(void *node);
bool pl__pod_is_static(void *pod);
extern const struct pl_str pl__static_pods[POD_COUNT];

/* The kinds of objects that are read. */
enum pl_model_kind {
    KIND_CLUSTER,
    KIND_KCP,
    KIND_MACHINE,
    KIND_MACHINE_DEPLOYMENT,
    KIND_MACHINE_SET,
    KIND_MACHINE_HEALTH_CHECK,
    KIND_MACHINE_POOL,
    KIND_NODE,
    KIND_POD,
    KIND_COUNT,
    KIND_OTHER = KIND_COUNT, /* known to nobody here: skipped */
};

const char *pl__kind_name(enum pl_model_kind kind);
const char *pl__kind_group(enum pl_model_kind kind); /* "cluster.x-k8s.io"; empty: the core group */
const struct pl_shape *pl__kind_shape(enum pl_model_kind kind);

/* Which kind it is. KIND_OTHER for what we do not read; -1 for a kind of ours in a version that we
 * cannot read. `v1beta1` is set for objects in the old form. */
int pl__kind_find(struct pl_str api_version, struct pl_str kind, bool *v1beta1);

/* Brings a freshly decoded object into v1beta2 form. 0, or -1 when a field has no sensible value;
 * `what` then names it. */
int pl__object_settle(enum pl_model_kind kind, void *object, bool v1beta1, const char **what);

/* Reads one object of that kind into a zeroed struct and settles it. 0, or -1 with an error. */
int pl__object_decode(struct pl_json *j, enum pl_model_kind kind, bool v1beta1, void *object);

/* Whether the reference names this object: by uid when both sides have one, else by name. */
bool pl__owner_is(const struct pl_owner_reference *owner, struct pl_str kind,
                  const struct pl_meta *meta);

/* The reference that has `controller: true`, or NULL. */
const struct pl_owner_reference *pl__controller_of(const struct pl_meta *meta);

#endif
