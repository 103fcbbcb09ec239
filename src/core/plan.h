/* core/plan.h - what to do next for a KubeadmControlPlane (semantics sections 8 to 11).
 *
 * Pure. One settled snapshot and the judged control plane give ONE step, a single call to the API or to
 * etcd, or a wait that says for what. Nothing is remembered between two plans: each begins again from what
 * is stored, so a controller that died after any step goes on as if it had not.
 *
 * What the engine has decided (core/remediation.c, core/deletion.c) is not decided again here; this is the
 * order of writes that makes carrying it out safe, and the checks right before what cannot be undone. The
 * state diagram is in docs/internals/acting.md. */
#ifndef PL_CORE_PLAN_H
#define PL_CORE_PLAN_H

#include "core/pass.h"

/* X(enumerator, reason of the Event that tells of it). */
#define PL_STEPS(X)                                     \
    X(NONE, "")                                         \
    X(CLEAR_OWNER_REMEDIATED, "MachineRecovered")       \
    X(SET_OWNER_REMEDIATED, "RemediationDecided")       \
    X(DROP_RECORD, "RemediationRecordDropped")          \
    X(WRITE_RECORD, "RemediationStarted")               \
    X(MOVE_LEADERSHIP, "EtcdLeadershipMoved")           \
    X(REMOVE_MEMBER, "EtcdMemberRemoved")               \
    X(DELETE_MACHINE, "MachineDeleted")                 \
    X(DROP_HOOK, "PreTerminateHookDropped")             \
    X(DROP_FINALIZER, "DeletionCompleted")              \
    X(DELETE_TEMPLATE, "InfrastructureTemplateDeleted") \
    X(CREATE_REPLACEMENT, "ReplacementCreated")

enum pl_step_kind {
#define X(enumerator, reason) STEP_##enumerator,
    PL_STEPS(X)
#undef X
};
const char *pl__step_reason(enum pl_step_kind kind);

struct pl_step {
    enum pl_step_kind kind;
    const struct pl_machine *machine; /* whom it is about; NULL: nobody */
    uint64_t member_id;               /* to be removed, or to lead */
    const struct pl_str *ask;         /* Nodes whose members to ask, in the order to try */
    size_t ask_count;
    struct pl_str record;          /* WRITE_RECORD: the annotation's value */
    struct pl_str reason, message; /* SET_OWNER_REMEDIATED: False, with these */
    const struct pl_infra_template *infra_template;
    bool
        confirm; /* rests on there being no other Machines than those known: read them again first */
};

struct pl_plan {
    struct pl_next_step shown; /* for people */
    struct pl_step step;       /* for the controller; STEP_NONE: wait */
    bool wants_etcd;           /* waits for a newer observation of etcd */
};

struct pl_plans {
    bool etcd_stale;   /* in: what is known of etcd is older than what was done since */
    bool etcd_refuses; /* in: etcd has not done what it was asked for, time and again */
    const struct pl_plan *items;
    size_t count;
    const struct pl_plan *deployments; /* of MachineDeployments (core/machineset.h) */
    size_t deployment_count;
};

/* Fills a zeroed plan. */
void pl__plan_make(struct pl_pass *p, struct pl_control_plane *cp, const struct pl_plans *asked,
                   struct pl_plan *plan);

#endif
