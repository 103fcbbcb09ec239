/* core/pass.h - one evaluation on its way: what the files of core/ share.
 *
 * A pass takes one settled snapshot and makes one report. For each KubeadmControlPlane it judges the
 * Machines first, then the control plane from them, then what the next step would be. Nothing here is
 * visible outside core/. */
#ifndef PL_CORE_PASS_H
#define PL_CORE_PASS_H

#include "model/snapshot.h"
#include "tables/tables.h"

/* A list in the making. */
struct pl_growing {
    void *items;
    size_t count;
    size_t capacity;
};

struct pl_pass {
    struct pl_arena *arena;
    const struct pl_snapshot *snapshot;
    enum pl_profile profile;
    bool explain;
    int64_t etcd_observed_ms;  /* of the control plane being judged; 0: with the snapshot */
    struct pl_growing missing; /* struct pl_missing */
};

/* One control plane Machine and its five conditions, as they are judged. */
struct pl_machine_state {
    const struct pl_machine *machine;
    struct pl_verdict verdicts[MACHINE_COND_COUNT]; /* status none: not there */
    bool missing[MACHINE_COND_COUNT];               /* could not be judged */
    bool lacks_member;   /* its member condition says only that etcd has no member for it */
    bool connect_failed; /* ... or only that etcd could not be reached */
};

/* What the annotations remediation-in-progress and remediation-for carry. */
struct pl_record {
    struct pl_str machine;
    int64_t timestamp_ms;
    int64_t retry_count;
};

/* What is behind struct pl_remediation: what carrying it out needs to know. */
struct pl_remediation_detail {
    bool judged; /* the evidence was there */
    enum pl_remediation_action action;
    struct pl_machine_state *pick;      /* NULL: nothing to be remediated */
    struct pl_machine_state *candidate; /* for etcd leadership */
    struct pl_record record;            /* to be written, or, resuming, as it is stored */
    bool resuming;
    struct pl_str reason, message; /* of the pick's OwnerRemediated, unless the action is DONE */
};

/* ... and struct pl_deletion. */
struct pl_deletion_detail {
    struct pl_str lacking; /* the evidence that was missing; empty: judged */
    enum pl_deletion_action action;
    const struct pl_machine *next;
    bool gave_up; /* on etcd: the control plane has been going for more than 10 minutes */
};

/* A KubeadmControlPlane with everything that belongs to it. */
struct pl_control_plane {
    const struct pl_kcp *kcp;
    struct pl_str cluster_name;
    const struct pl_cluster *cluster;   /* NULL: not in the input */
    const struct pl_workload *workload; /* NULL: not in the input */
    struct pl_machine_state *machines;  /* sorted by name */
    size_t machine_count;
    struct pl_range cluster_machines; /* all Machines of the cluster, workers included */

    int rung;            /* of the ladder; RUNG_PASSED: none; -1: could not be told */
    bool asks_for_error; /* a rung wants the reconcile to be tried again */
    struct pl_verdict etcd, components, deleting, remediating;
    struct pl_remediation_detail remediation;
    struct pl_deletion_detail deletion;
};

/* --- evidence.c ------------------------------------------------------------------------------ */

/* How a fact came to us. */
enum pl_source { SOURCE_LIST, SOURCE_PROBE, SOURCE_CONNECTION, SOURCE_ETCD };

/* Adds a fact to a condition; does nothing unless the pass explains. */
void pl__evidence(struct pl_pass *p, struct pl_verdict *v, struct pl_str object, const char *path,
                  struct pl_str value, enum pl_source source);

/* "Kind/namespace/name". Empty unless the pass explains: only evidence wants it. */
struct pl_str pl__object_ref(struct pl_pass *p, const char *kind, struct pl_str namespace_,
                             struct pl_str name);

void *pl__growing_add(struct pl_pass *p, struct pl_growing *g, size_t item_size);

/* Notes that something could not be judged, and for want of what. */
void pl__missing_add(struct pl_pass *p, const char *kind, const struct pl_meta *meta,
                     const char *condition, struct pl_str evidence);

/* "workloads[namespace/name].part", or the whole entry when it is not there at all. */
struct pl_str pl__missing_workload(struct pl_pass *p, const struct pl_control_plane *cp,
                                   const char *part);

/* --- verdict.c ------------------------------------------------------------------------------- */

/* Fills in what is stored, so that the condition can be kept or compared. */
void pl__verdict_init(struct pl_verdict *v, enum pl_condition_type type,
                      const struct pl_conditions *stored);

/* Sets what a row says; the rules for lastTransitionTime and observedGeneration are here. */
void pl__verdict_set(struct pl_pass *p, struct pl_verdict *v, const struct pl_meta *meta,
                     enum pl_status status, struct pl_str reason, struct pl_str message);

/* Leaves it as it is stored. */
void pl__verdict_keep(struct pl_verdict *v, const struct pl_conditions *stored,
                      enum pl_condition_type type);

/* Names the row that decided, and its guard in words. */
static inline void pl__verdict_by(struct pl_verdict *v, const char *row, const char *guard)
{
    v->row = row;
    v->guard = guard;
}

/* External etcd is nobody's business here: what is stored stays (EtcdClusterHealthy/1). */
void pl__verdict_keep_external(struct pl_verdict *v, const struct pl_conditions *stored,
                               enum pl_condition_type type);

/* Applies a judgement: sets or keeps, fills the message, lists the other rows that held. */
void pl__verdict_judge(struct pl_pass *p, struct pl_verdict *v, enum pl_condition_type type,
                       const struct pl_meta *meta, const struct pl_conditions *stored,
                       const struct pl_table *table, struct pl_judgement j,
                       const struct pl_text *texts, size_t text_count);

/* The other rows of a table that held, besides the one that decided; each id once. */
void pl__verdict_also_held(struct pl_pass *p, struct pl_verdict *v, const struct pl_table *table,
                           uint32_t held, const char *const *ids);

static inline bool pl__verdict_is(const struct pl_verdict *v, enum pl_status status)
{
    return v->status == status;
}

/* --- the steps ------------------------------------------------------------------------------- */

/* ladder.c: which rung decides; -1 with missing evidence noted by the caller in `*lacking`. */
int pl__ladder_climb(struct pl_pass *p, struct pl_control_plane *cp, uint32_t *held,
                     struct pl_str *lacking);

/* health.c: the ladder, the Machines' conditions and the two health conditions. */
void pl__health_judge(struct pl_pass *p, struct pl_control_plane *cp);

/* pods.c, members.c: a Machine's conditions once the workload cluster could be read. */
void pl__pods_judge(struct pl_pass *p, struct pl_control_plane *cp, struct pl_machine_state *s);
void pl__members_judge(struct pl_pass *p, struct pl_control_plane *cp);

/* What of the etcd view is absent though nothing explains its absence ("etcd.members"); NULL: nothing. */
const char *pl__etcd_lacking(const struct pl_pass *p, const struct pl_control_plane *cp);

/* Whether etcd could be asked and said all that is needed to compare members with Machines. */
bool pl__members_compared(const struct pl_pass *p, const struct pl_control_plane *cp);

/* What the pass makes of the errors in the endpoint's status, joined by ", "; empty: none. */
struct pl_str pl__etcd_status_errors(const struct pl_pass *p, const struct pl_etcd_view *etcd);

/* The Machine whose Node has that name, or NULL. */
struct pl_machine_state *pl__machine_on_node(const struct pl_control_plane *cp, struct pl_str node);

/* A member as people see it: its name, or its id until it has one. */
struct pl_str pl__member_label(struct pl_arena *arena, const struct pl_etcd_member *member);

/* Whether some Machine is still waiting for its Node. */
bool pl__someone_provisioning(const struct pl_control_plane *cp);

/* aggregate.c: the Machines' conditions [first, end) as blocks of text, and what they add up to. */
struct pl_aggregate {
    bool bad, unknown, good;
    struct pl_str blocks;
};
struct pl_aggregate pl__aggregate(struct pl_pass *p, const struct pl_control_plane *cp, int first,
                                  int end, bool (*leave_out)(const struct pl_machine_state *));

/* merge.c: one condition over many Machines (section 7). False when the text would be too long. */
bool pl__merge_conditions(struct pl_pass *p, const struct pl_machine *const *machines, size_t count,
                          enum pl_condition_type type, struct pl_str *text);

/* remediating.c: the Remediating condition, of either kind. */
void pl__remediating_judge(struct pl_pass *p, struct pl_verdict *v, const struct pl_table *table,
                           uint32_t (*facts)(const struct pl_remediating_facts *),
                           const struct pl_meta *meta, const struct pl_conditions *stored,
                           const struct pl_machine *const *machines, size_t count);
bool pl__machine_unhealthy(const struct pl_machine *m);
bool pl__machine_to_be_remediated(const struct pl_machine *m);

/* Step 1: healthy again, and still marked. */
bool pl__machine_recovered(const struct pl_machine *m);

/* remediation.c: reads a record. False when it is none. */
bool pl__record_read(struct pl_arena *arena, struct pl_str text, struct pl_record *r);

/* The arithmetic of taking a member away: those left, those of them that are healthy, those needed. */
struct pl_members_left {
    uint32_t count, healthy, quorum;
};
struct pl_members_left pl__members_left(const struct pl_control_plane *cp,
                                        bool (*leaves)(const struct pl_etcd_member *, const void *),
                                        const void *who,
                                        bool (*healthy)(const struct pl_control_plane *,
                                                        const struct pl_etcd_member *));

/* The member named like the Machine's Node, or NULL. The workload must be there. */
const struct pl_etcd_member *pl__member_of(const struct pl_control_plane *cp,
                                           const struct pl_machine *m);
bool pl__hosts_leader(const struct pl_control_plane *cp, const struct pl_machine *m);

/* The Machine of the control plane that has this name, or NULL. */
struct pl_machine_state *pl__machine_named(const struct pl_control_plane *cp, struct pl_str name);

/* What the record on the control plane means now (step 5). */
enum pl_record_state {
    RECORD_NONE,
    RECORD_BROKEN,    /* it cannot be read */
    RECORD_REPLACED,  /* stale: some Machine is newer */
    RECORD_RECOVERED, /* stale: its Machine is not to be remediated any more */
    RECORD_RESUME,    /* its Machine is still to be remediated, and nobody has deleted it */
    RECORD_WAITS,     /* its Machine is on its way out, or gone */
};
enum pl_record_state pl__record_judge(struct pl_arena *arena, const struct pl_control_plane *cp,
                                      struct pl_record *record, struct pl_machine_state **named);

/* Whether the Machine of a member says that it is healthy. */
bool pl__member_healthy_by_machine(const struct pl_control_plane *cp,
                                   const struct pl_etcd_member *member);

/* deletion.c: the Deleting condition and the step. */
bool pl__deletion_judge(struct pl_pass *p, struct pl_control_plane *cp, struct pl_deletion *step);

/* remediation.c: the step. `only` asks about that Machine whatever marks it; NULL: the usual choice. */
bool pl__remediation_judge(struct pl_pass *p, struct pl_control_plane *cp,
                           const struct pl_machine *only, struct pl_remediation *step);

/* whatif.c: the members that etcd lists, counted. */
struct pl_quorum pl__quorum_of_members(const struct pl_control_plane *cp);

/* whatif.c: why etcd's members are not known, empty when they are; `*missing`: for want of evidence. */
struct pl_str pl__etcd_unknown(struct pl_pass *p, const struct pl_control_plane *cp, bool *missing);

/* names.c: "a, b, c, ... (N more)", of at most `max` names. */
void pl__names_add(struct pl_buf *b, const struct pl_str *names, size_t count, size_t max);
void pl__names_sort(struct pl_str *names, size_t count);

#endif
