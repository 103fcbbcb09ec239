/* tables/tables.h - the tables, and the facts each of them is judged by.
 *
 * Each table's file begins with the document it follows. The structs here are what the core works
 * out beforehand; a `_facts` function turns one of them into the bits of its table. */
#ifndef PL_TABLES_TABLES_H
#define PL_TABLES_TABLES_H

#include "tables/rule.h"

/* Messages that several tables share. */
#define MSG_SEE_LOGS "Please check controller logs for errors"
#define MSG_MACHINE_DELETING "Machine is deleting"
#define MSG_WAIT_FOR_NODE "Waiting for a Node with spec.providerID <providerID> to exist"
#define MSG_WAIT_FOR_PROVIDER_ID "Waiting for <infrastructure kind> to report spec.providerID"

/* The ladder in front of both health conditions (semantics section 3). */
struct pl_ladder_facts {
    bool deleting, infrastructure_provisioned, endpoint_set, initialized;
    bool never_probed, few_failures, grace_over, down, failed;
};
extern const struct pl_table pl__ladder;
uint32_t pl__ladder_facts(const struct pl_ladder_facts *f);
enum { RUNG_L00, RUNG_L0, RUNG_L1, RUNG_L2, RUNG_L3, RUNG_L4, RUNG_L5, RUNG_PASSED, RUNG_COUNT };
/* What the Machines are told when a rung decides: their reason, by profile. NULL: nothing. */
const char *pl__ladder_pod_reason(int rung, enum pl_profile profile);
const char *pl__ladder_member_reason(int rung);

/* A static Pod of a Machine (section 4). */
enum pl_phase { PHASE_OTHER, PHASE_PENDING, PHASE_RUNNING, PHASE_ENDED, PHASE_UNKNOWN };
struct pl_pod_facts {
    bool nodes_failed, has_node, has_provider_id, node_listed, deleting, unreachable, ready_unknown;
    bool read_failed, found, scheduled, initialized, ready, waiting, terminated, crashed;
    enum pl_phase phase;
};
extern const struct pl_table pl__pod_healthy;
uint32_t pl__pod_facts(const struct pl_pod_facts *f);

/* The etcd member of a Machine (section 5). */
struct pl_member_facts {
    bool nodes_failed, deleting, has_node, has_provider_id;
    bool no_candidate, connect_failed, status_errors, members_failed, alarms_failed;
    bool found, learner, alarm;
};
extern const struct pl_table pl__member_healthy;
uint32_t pl__member_facts(const struct pl_member_facts *f);

/* ControlPlaneComponentsHealthy (section 6). */
struct pl_components_facts {
    bool nodes_failed, orphan_node, bad, unknown, good;
};
extern const struct pl_table pl__components_healthy;
uint32_t pl__components_facts(const struct pl_components_facts *f);

/* EtcdClusterHealthy (section 6). */
struct pl_etcd_facts {
    bool external, nodes_failed, bad, mismatch, orphan_node, unknown, connect_failed, good;
};
extern const struct pl_table pl__etcd_healthy;
uint32_t pl__etcd_facts(const struct pl_etcd_facts *f);

/* Remediating, of a KubeadmControlPlane and of a MachineDeployment (section 7). */
struct pl_remediating_facts {
    bool to_remediate, unhealthy, merge_failed;
};
extern const struct pl_table pl__kcp_remediating, pl__md_remediating;
uint32_t pl__kcp_remediating_facts(const struct pl_remediating_facts *f);
uint32_t pl__md_remediating_facts(const struct pl_remediating_facts *f);

/* Deleting, with the phases of the deletion (section 8). */
struct pl_deleting_facts {
    bool deleting, workers_left, machines_left, templates_left, machine_deleting;
    bool members_unreadable, member_listed;
};
enum pl_deletion_action {
    DELETION_NONE,
    DELETION_WAIT,
    DELETION_DELETE_TEMPLATES,
    DELETION_FINISH,
    DELETION_REMOVE_MEMBER,
    DELETION_DELETE_MACHINE,
    DELETION_DELETE_ALL,
};
extern const struct pl_table pl__kcp_deleting;
uint32_t pl__kcp_deleting_facts(const struct pl_deleting_facts *f);

/* The remediation step (section 9): go, or why not. */
struct pl_remediation_facts {
    bool nothing, pick_deleting, record_broken, wait_for_record, resuming, topology_differs,
        in_retry_period, max_retry_reached, initialized, one_machine, provisioning,
        machine_deleting, members_unreadable, quorum_lost, no_candidate;
};
enum pl_remediation_action { REMEDIATION_DONE, REMEDIATION_REFUSE, REMEDIATION_GO };
extern const struct pl_table pl__kcp_remediation;
uint32_t pl__kcp_remediation_facts(const struct pl_remediation_facts *f);

/* A Machine of a MachineSet that is marked for remediation (section 9, the end). */
struct pl_machine_set_facts {
    bool recovered, set_idle, old_revision, limit_unreadable, no_room, preflight_failed;
};
enum pl_machine_set_action {
    MACHINE_SET_NONE,
    MACHINE_SET_CLEAN,
    MACHINE_SET_REFUSE,
    MACHINE_SET_GO
};
extern const struct pl_table pl__machine_set_remediation;
uint32_t pl__machine_set_remediation_facts(const struct pl_machine_set_facts *f);

/* All of them, in the order in which they are printed. */
extern const struct pl_table *const pl__tables[];
extern const size_t pl__table_count;

#endif
