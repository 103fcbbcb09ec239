/* tests/world.h - a world in a few words.
 *
 * Row cases, property tests, fuzz seeds and benchmarks all need Snapshots that differ from a healthy
 * one in a thing or two. A world starts healthy: Cluster default/alpha, KubeadmControlPlane default/cp,
 * Machines cp-0, cp-1, cp-2 (the higher, the newer) on Nodes node-0, node-1, node-2, each with its four
 * static Pods and a voting etcd member; node-0 leads. Words change it; a later word sees what earlier
 * ones did, and `machines=N` comes first. Times are relative to the world's now, 2026-11-15T02:00:00Z:
 * -20m, -400s, -2h, -3d.
 *
 *     struct world *w = world_new();
 *     if (!world_say(w, "alarm=node-1:NOSPACE nodes-error=\"dial tcp: refused\""))
 *         puts(w->error);
 *     struct pl_str text = world_text(w, JSON_COMPACT, 0);
 *     world_free(w);
 *
 * Text with blanks is quoted; \n, \t, \" and \\ mean in quotes what they mean in C.
 *
 *   the cluster      machines=N external-etcd bystander (a second cluster that is not ours) name=TEXT
 *                    no-cluster no-infrastructure no-endpoint paused topology=VERSION grace=SECONDS
 *                    control-plane-ref (the Cluster names its control plane)
 *   control plane    not-initialized no-initialized-condition initialized=STATUS initialized-at=WHEN
 *                    deleting[=WHEN] version=V max-retry=N retry-period=N min-healthy=N replicas=N
 *                    in-progress=MACHINE:WHEN:COUNT in-progress-text=RAW no-generation
 *                    stored=TYPE:STATUS:REASON[:MESSAGE]
 *   Machines         machine-deleting=M:WHEN provisioning=M no-provider-id=M created=M:WHEN unhealthy=M
 *                    healthy=M to-remediate=M owner-message=M:TEXT owner-bytes=M:N owner-status=M:STATUS
 *                    owner-at=M:WHEN remediate-annotation=M remediation-for=M:WHEN:COUNT
 *                    remediation-for-text=M:RAW draining=M:WHEN:MESSAGE no-machine=M
 *                    machine-stored=M:TYPE:STATUS:REASON[:MESSAGE] control-plane-label=M
 *   others           workers=N pools=N deployment=N (MachineDeployment md, its Machines md-0 ...)
 *                    max-in-flight=TEXT set-paused old-revision (its MachineSet is not the current one)
 *   connection       state=STATE state-error=TEXT never-probed failures=N last-probe=WHEN
 *   Nodes            nodes-error=TEXT orphan-node=N no-node=N unreachable=N ready-unknown=N
 *                    taint=N:KEY:EFFECT worker-node=N
 *   Pods             no-pod=POD pod=POD:PHASE scheduled=POD initialized-pod=POD ready=POD
 *                    waiting=POD:REASON terminated=POD:REASON crashed=POD pod-error=POD:TEXT
 *   etcd             alarm=NODE:ALARM learner=NODE no-member=NODE extra-member=NAME unnamed-member
 *                    no-members leader=NODE no-leader connect-error=TEXT members-error=TEXT
 *                    alarms-error=TEXT status-error=TEXT
 *   what is absent   missing=PART: workload connection nodes pods etcd etcd.members etcd.alarms
 */
#ifndef PL_TESTS_WORLD_H
#define PL_TESTS_WORLD_H

#include "base/json.h"

enum {
    WORLD_MACHINES_MAX = 64,
    WORLD_NODES_MAX = 32,
    WORLD_PODS_MAX = 128,
    WORLD_MEMBERS_MAX = 32,
    WORLD_ALARMS_MAX = 32,
    WORLD_CONDITIONS_MAX = 12,
    WORLD_REASONS_MAX = 4,
    WORLD_ERRORS_MAX = 8,
    WORLD_POOLS_MAX = 16,
};

#define WORLD_NOW "2026-11-15T02:00:00Z"

/* A condition as it stands in an object's status. */
struct world_condition {
    struct pl_str type, status, reason, message;
    int64_t since_ms;
    int64_t generation; /* 0: none */
};

struct world_conditions {
    struct world_condition items[WORLD_CONDITIONS_MAX];
    size_t count;
};

enum world_role { WORLD_CONTROL_PLANE, WORLD_WORKER, WORLD_DEPLOYED };

struct world_machine {
    struct pl_str name, node, provider_id;
    enum world_role role;
    int64_t created_ms, deleted_ms, drain_started_ms;
    bool control_plane_label, remediate_annotation;
    struct pl_str remediation_for;
    struct world_conditions conditions;
};

struct world_node {
    struct pl_str name;
    struct pl_str taint_key, taint_effect;
    bool ready_unknown, worker;
};

struct world_pod {
    struct pl_str name, phase, error;
    bool absent, scheduled, initialized, ready, crashed;
    struct pl_str waiting[WORLD_REASONS_MAX], terminated[WORLD_REASONS_MAX];
    size_t waiting_count, terminated_count;
};

struct world_member {
    uint64_t id;
    struct pl_str name;
    bool learner;
};

struct world_alarm {
    uint64_t member_id;
    struct pl_str alarm;
};

struct world {
    struct pl_arena arena; /* all text, and what world_text() makes */
    char error[256];       /* why world_say() failed */
    int64_t now_ms;
    struct pl_str name;
    int64_t grace_s; /* 0: not said */

    bool no_cluster, no_infrastructure, no_endpoint, paused, bystander, control_plane_ref;
    struct pl_str topology;

    bool external_etcd, not_initialized, no_generation;
    int64_t kcp_deleted_ms;
    struct pl_str version, in_progress;
    int64_t max_retry, retry_period, min_healthy, replicas; /* -1: not said */
    struct world_conditions kcp_conditions;

    struct world_machine machines[WORLD_MACHINES_MAX];
    size_t machine_count;
    size_t pool_count;
    bool has_deployment, old_revision, set_paused;
    struct pl_str max_in_flight;
    struct world_conditions md_conditions;

    bool no_workload, no_connection, no_nodes, no_pods, no_etcd, no_members, no_alarms;
    struct pl_str state, state_error;
    int64_t probed_ms; /* 0: never */
    int64_t failures;
    struct pl_str nodes_error;
    struct world_node nodes[WORLD_NODES_MAX];
    size_t node_count;
    struct world_pod pods[WORLD_PODS_MAX];
    size_t pod_count;

    struct pl_str connect_error, members_error, alarms_error;
    struct pl_str errors[WORLD_ERRORS_MAX];
    size_t error_count;
    uint64_t leader; /* 0: not said */
    struct world_member members[WORLD_MEMBERS_MAX];
    size_t member_count;
    struct world_alarm alarms[WORLD_ALARMS_MAX];
    size_t alarm_count;
};

/* A healthy world of three Machines. */
struct world *world_new(void);
void world_free(struct world *w);

/* Makes it a healthy world of three Machines again; keeps its memory. */
void world_reset(struct world *w);

/* Applies words, separated by blanks. False with `w->error` when one is not understood. */
bool world_say(struct world *w, const char *words);

/* The world as a Snapshot document. `order` 0 lists everything by name; any other number is a seed
 * that shuffles what has no order of its own: objects, Pods, workloads, conditions. Lives until the
 * world is reset or freed. */
struct pl_str world_text(struct world *w, enum pl_json_format format, uint64_t order);

/* The same, one manifest for each object, Node and Pod: no Snapshot around them. */
struct pl_str world_list(struct world *w, enum pl_json_format format);

/* Writes what was judged into the statuses, as a controller would. */
void world_store(struct world *w, const struct pl_report *report);

/* The one of that name, or NULL. */
struct world_machine *world_machine(struct world *w, struct pl_str name);
struct world_node *world_node(struct world *w, struct pl_str name);
struct world_member *world_member(struct world *w, struct pl_str name);

#endif
