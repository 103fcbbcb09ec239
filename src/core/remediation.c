/* core/remediation.c - the next remediation step of a control plane (semantics section 9, steps 1 to 9).
 *
 * Decides only. Carrying it out, and the order of writes that makes that safe, is elsewhere. */
#include "core/pass.h"

#include <assert.h>

#include "base/planted.h"
#include "base/time.h"

enum { MIN_HEALTHY_PERIOD_S_DEFAULT = 3600 };

static const struct pl_field record_fields[] = {
    PL_FIELD("machine", F_STR, struct pl_record, machine),
    PL_FIELD("timestamp", F_TIME, struct pl_record, timestamp_ms),
    PL_FIELD("retryCount", F_INT, struct pl_record, retry_count),
};
static PL_SHAPE(record_shape, struct pl_record, record_fields);

bool pl__record_read(struct pl_arena *arena, struct pl_str text, struct pl_record *r)
{
    struct pl_json j;

    pl__json_init(&j, text, PL_STR("annotation"), arena, 4, NULL);
    return pl__json_decode(&j, &record_shape, r) == 0 && pl__json_at_end(&j) && r->timestamp_ms;
}

/* Step 1: a Machine that is healthy again has nothing left to be remediated. */
bool pl__machine_recovered(const struct pl_machine *m)
{
    return !m->meta.deleted_ms &&
           pl__condition_is(&m->conditions, COND_HEALTH_CHECK, PL_STATUS_TRUE) &&
           pl__condition_is(&m->conditions, COND_OWNER_REMEDIATED, PL_STATUS_FALSE);
}

/* --- step 3: which one ----------------------------------------------------------------------- */

/* How badly a Machine wants replacing: the higher, the sooner. Each reason outweighs all below it. */
static uint32_t urgency(const struct pl_control_plane *cp, const struct pl_machine_state *s)
{
    static const int by_weight[] = { COND_ETCD_MEMBER, COND_ETCD_POD, COND_API_SERVER_POD,
                                     COND_CONTROLLER_MANAGER_POD, COND_SCHEDULER_POD };
    uint32_t sum = s->machine->meta.annotations.remediate_machine;

    sum = sum << 1 | (s->machine->node_name.len == 0);
    for (size_t i = 0; i < sizeof by_weight / sizeof by_weight[0]; i++) {
        bool etcd_part = by_weight[i] == COND_ETCD_MEMBER || by_weight[i] == COND_ETCD_POD;
        bool counts = cp->kcp->etcd_managed || !etcd_part;
        sum = sum << 1 | (counts && s->verdicts[by_weight[i]].status != PL_STATUS_TRUE);
    }
    return sum;
}

static struct pl_machine_state *choose(const struct pl_control_plane *cp)
{
    struct pl_machine_state *pick = NULL;

    for (size_t i = 0; i < cp->machine_count; i++) {
        struct pl_machine_state *s = &cp->machines[i];
        if (!pl__machine_to_be_remediated(s->machine))
            continue;
        /* Machines come by name, so among equals the first stays. */
        if (!pick || urgency(cp, s) > urgency(cp, pick) ||
            (urgency(cp, s) == urgency(cp, pick) &&
             s->machine->meta.created_ms < pick->machine->meta.created_ms))
            pick = s;
    }
    return pick;
}

struct pl_machine_state *pl__machine_named(const struct pl_control_plane *cp, struct pl_str name)
{
    for (size_t i = 0; i < cp->machine_count; i++) {
        if (pl__str_equal(cp->machines[i].machine->meta.name, name))
            return &cp->machines[i];
    }
    return NULL;
}

/* --- step 5: a remediation that has begun ---------------------------------------------------- */

struct decision {
    struct pl_machine_state *pick;
    struct pl_record record;
    bool resuming;
    struct pl_machine_state *candidate; /* for etcd leadership */
};

enum pl_record_state pl__record_judge(struct pl_arena *arena, const struct pl_control_plane *cp,
                                      struct pl_record *record, struct pl_machine_state **named)
{
    struct pl_str text = cp->kcp->meta.annotations.remediation_in_progress;

    if (text.len == 0)
        return RECORD_NONE;
    if (!pl__record_read(arena, text, record))
        return RECORD_BROKEN;
    for (size_t i = 0; i < cp->machine_count; i++) {
        if (cp->machines[i].machine->meta.created_ms > record->timestamp_ms)
            return RECORD_REPLACED;
    }
    *named = pl__machine_named(cp, record->machine);
    if (!*named || (*named)->machine->meta.deleted_ms)
        return RECORD_WAITS;
    return pl__machine_to_be_remediated((*named)->machine) ? RECORD_RESUME : RECORD_RECOVERED;
}

static void record_facts(struct pl_pass *p, const struct pl_control_plane *cp, struct decision *d,
                         struct pl_remediation_facts *f, struct pl_remediation *step)
{
    struct pl_machine_state *named = NULL;
    struct pl_record r = { 0 };
    enum pl_record_state state = pl__record_judge(p->arena, cp, &r, &named);

    f->record_broken = state == RECORD_BROKEN;
    f->wait_for_record = state == RECORD_WAITS;
    f->resuming = d->resuming = state == RECORD_RESUME;
    step->stale_annotation_dropped = state == RECORD_REPLACED || state == RECORD_RECOVERED;
    if (d->resuming) {
        d->pick = named;
        d->record = r;
    }
}

/* --- steps 6 and 7 --------------------------------------------------------------------------- */

/* Now; but not before any Machine was made, and after every earlier record that still has its Machine. By a
 * clock behind the API server's, or set back, the record would else look as if a replacement had come since,
 * and be dropped and written again without end; and the replacement's name is made from it. */
static int64_t record_time_ms(const struct pl_pass *p, const struct pl_control_plane *cp)
{
    int64_t ms = p->snapshot->now_ms;

    for (size_t i = 0; i < cp->machine_count; i++) {
        const struct pl_meta *meta = &cp->machines[i].machine->meta;
        struct pl_record earlier = { 0 };
        if (meta->created_ms > ms)
            ms = meta->created_ms;
        if (meta->annotations.remediation_for.len &&
            pl__record_read(p->arena, meta->annotations.remediation_for, &earlier) &&
            earlier.timestamp_ms / 1000 >= ms / 1000) /* it is written in whole seconds */
            ms = earlier.timestamp_ms + 1000;
    }
    return ms;
}

static void retry_facts(struct pl_pass *p, const struct pl_control_plane *cp, struct decision *d,
                        struct pl_remediation_facts *f)
{
    const struct pl_kcp *kcp = cp->kcp;
    struct pl_str text = d->pick->machine->meta.annotations.remediation_for;
    int64_t healthy_s =
        kcp->min_healthy_period_s < 0 ? MIN_HEALTHY_PERIOD_S_DEFAULT : kcp->min_healthy_period_s;
    int64_t retry_s = kcp->retry_period_s < 0 ? 0 : kcp->retry_period_s;
    struct pl_record last = { 0 };

    d->record = (struct pl_record){ .machine = d->pick->machine->meta.name,
                                    .timestamp_ms = record_time_ms(p, cp) };
    if (text.len == 0)
        return;
    if (!pl__record_read(p->arena, text, &last)) {
        f->record_broken = true;
        return;
    }
    int64_t age_ms = p->snapshot->now_ms - last.timestamp_ms;
    if (age_ms >= healthy_s * 1000)
        return; /* it was healthy long enough: this is a new failure, not a retry */
    f->in_retry_period = age_ms < retry_s * 1000 && !PL_PLANTED(RETRY_PERIOD_IGNORED);
    f->max_retry_reached =
        kcp->max_retry >= 0 && last.retry_count >= kcp->max_retry && !PL_PLANTED(MAX_RETRY_IGNORED);
    d->record.retry_count = PL_PLANTED(RETRIES_LOST) ? 0 : last.retry_count + 1;
}

/* --- step 8 ---------------------------------------------------------------------------------- */

/* Members are read anew for this: what stands beside another error is used. */
static bool members_readable(const struct pl_workload *w)
{
    if (w->etcd.connect_error.len)
        return false;
    return w->etcd.members.present || (!w->nodes_error.len && !w->etcd.members_error.len);
}

bool pl__member_healthy_by_machine(const struct pl_control_plane *cp,
                                   const struct pl_etcd_member *member)
{
    const struct pl_machine_state *host = pl__machine_on_node(cp, member->name);

    return host && (host->verdicts[COND_ETCD_MEMBER].status == PL_STATUS_TRUE ||
                    (PL_PLANTED(LEARNER_COUNTED) && member->is_learner));
}

struct pl_members_left pl__members_left(const struct pl_control_plane *cp,
                                        bool (*leaves)(const struct pl_etcd_member *, const void *),
                                        const void *who,
                                        bool (*healthy)(const struct pl_control_plane *,
                                                        const struct pl_etcd_member *))
{
    const struct pl_etcd_view *etcd = &cp->workload->etcd;
    struct pl_members_left left = { 0 };

    for (uint32_t i = 0; i < etcd->members.count; i++) {
        const struct pl_etcd_member *member = &etcd->members.items[i];
        if (leaves(member, who))
            continue;
        left.count++;
        left.healthy += healthy(cp, member);
    }
    left.quorum = left.count / 2 + 1;
    return left;
}

static bool is_on_node(const struct pl_etcd_member *member, const void *who)
{
    const struct pl_machine *machine = who;
    return member->name.len && pl__str_equal(member->name, machine->node_name);
}

static void quorum_facts(const struct pl_control_plane *cp, const struct decision *d,
                         struct pl_remediation_facts *f, struct pl_remediation *step)
{
    struct pl_members_left left =
        pl__members_left(cp, is_on_node, d->pick->machine, pl__member_healthy_by_machine);

    step->quorum_known = true;
    step->voters_after = left.count;
    step->healthy_after = left.healthy;
    step->quorum_after = left.quorum;
    f->quorum_lost = left.healthy < left.quorum && !PL_PLANTED(QUORUM_UNCHECKED);
}

/* The newest Machine that no health check complains of; among equals the greatest name. */
static struct pl_machine_state *leader_candidate(const struct pl_control_plane *cp)
{
    struct pl_machine_state *pick = NULL;

    for (size_t i = 0; i < cp->machine_count; i++) {
        struct pl_machine_state *s = &cp->machines[i];
        if (pl__machine_unhealthy(s->machine))
            continue;
        if (!pick || s->machine->meta.created_ms >= pick->machine->meta.created_ms)
            pick = s;
    }
    return pick;
}

static void preflight_facts(const struct pl_control_plane *cp, struct decision *d,
                            struct pl_remediation_facts *f, struct pl_remediation *step)
{
    f->initialized = cp->kcp->initialized;
    f->one_machine = cp->machine_count <= 1 && !PL_PLANTED(LAST_ONE_REMEDIATED);
    for (size_t i = 0; i < cp->machine_count; i++) {
        const struct pl_machine *m = cp->machines[i].machine;
        f->machine_deleting |= m->meta.deleted_ms != 0 && !PL_PLANTED(DELETING_IGNORED);
        f->provisioning |= m->node_name.len == 0 && !pl__machine_unhealthy(m);
    }
    if (!f->initialized || !cp->kcp->etcd_managed)
        return;
    f->members_unreadable = !members_readable(cp->workload);
    if (!f->members_unreadable)
        quorum_facts(cp, d, f, step);
    d->candidate = leader_candidate(cp);
    f->no_candidate = !d->candidate;
}

/* --- the whole step -------------------------------------------------------------------------- */

static struct pl_str period_text(struct pl_pass *p, int64_t seconds)
{
    struct pl_buf text;

    pl__buf_init(&text, p->arena, 64);
    pl__duration_add(&text, seconds);
    return pl__buf_str(&text);
}

/* Every Machine's OwnerRemediated after the step. */
static void owner_remediated_fill(struct pl_pass *p, const struct pl_control_plane *cp,
                                  const struct pl_machine_state *written,
                                  const struct pl_outcome *says, struct pl_str message,
                                  struct pl_remediation *step)
{
    struct pl_owner_remediated *all =
        PL_NEW(p->arena, struct pl_owner_remediated, cp->machine_count);
    size_t count = 0;

    for (size_t i = 0; i < cp->machine_count; i++) {
        const struct pl_machine *m = cp->machines[i].machine;
        const struct pl_condition *c = pl__condition_find(&m->conditions, COND_OWNER_REMEDIATED);
        if (&cp->machines[i] == written)
            all[count++] = (struct pl_owner_remediated){ m->meta.name, says->status,
                                                         pl__str(says->reason), message };
        else if (c && !pl__machine_recovered(m))
            all[count++] = (struct pl_owner_remediated){ m->meta.name, (enum pl_status)c->status,
                                                         c->reason, c->message };
    }
    step->owner_remediated = all;
    step->owner_remediated_count = count;
}

static void step_fill(struct pl_pass *p, struct pl_control_plane *cp, const struct decision *d,
                      const struct pl_rule *rule, const struct pl_remediation_facts *f,
                      struct pl_remediation *step)
{
    const struct pl_outcome *says = &rule->says[p->profile];
    struct pl_text texts[] = {
        { "version", cp->cluster ? cp->cluster->topology_version : (struct pl_str){ 0 } },
        { "period", period_text(p, cp->kcp->retry_period_s) },
        { "maxRetry", pl__str_format(p->arena, "%lld", (long long)cp->kcp->max_retry) },
    };
    struct pl_str message =
        pl__message_fill(p->arena, says->message, texts, sizeof texts / sizeof texts[0]);

    step->row = rule->id;
    step->guard = rule->when;
    if (d->pick)
        step->machine = d->pick->machine->meta.name;
    if (rule->action == REMEDIATION_GO) {
        assert(d->pick); /* with nothing to remediate another row decides */
        step->deleted = d->pick->machine->meta.name;
        step->requeue = true;
        step->in_progress = true;
        step->in_progress_machine = d->record.machine;
        step->in_progress_retry_count = d->record.retry_count;
        if (f->initialized && d->candidate)
            step->leadership_forwarded_to = d->candidate->machine->meta.name;
    }
    owner_remediated_fill(p, cp, rule->action == REMEDIATION_DONE ? NULL : d->pick, says, message,
                          step);
    cp->remediation =
        (struct pl_remediation_detail){ .judged = true,
                                        .action = (enum pl_remediation_action)rule->action,
                                        .pick = d->pick,
                                        .candidate = d->candidate,
                                        .record = d->record,
                                        .resuming = d->resuming,
                                        .reason = pl__str(says->reason),
                                        .message = message };
}

/* Whether what the decision would look at is there. */
static bool evidence_lacking(struct pl_pass *p, const struct pl_control_plane *cp,
                             struct pl_str *lacking)
{
    if (!cp->cluster) {
        *lacking =
            pl__str_format(p->arena, "Cluster/%.*s/%.*s", PL_STR_ARG(cp->kcp->meta.namespace_),
                           PL_STR_ARG(cp->cluster_name));
        return true;
    }
    for (size_t i = 0; i < cp->machine_count; i++) {
        for (int type = 0; type < MACHINE_COND_COUNT; type++) {
            if (!cp->machines[i].missing[type])
                continue;
            *lacking = pl__str_format(p->arena, "Machine/%.*s/%.*s %s",
                                      PL_STR_ARG(cp->kcp->meta.namespace_),
                                      PL_STR_ARG(cp->machines[i].machine->meta.name),
                                      pl__condition_type_name((enum pl_condition_type)type));
            return true;
        }
    }
    if (cp->kcp->etcd_managed && cp->kcp->initialized &&
        (!cp->workload ||
         (!cp->workload->etcd.members.present && members_readable(cp->workload)))) {
        *lacking = pl__missing_workload(p, cp, "etcd.members");
        return true;
    }
    return false;
}

bool pl__remediation_judge(struct pl_pass *p, struct pl_control_plane *cp,
                           const struct pl_machine *only, struct pl_remediation *step)
{
    struct pl_remediation_facts f = { 0 };
    struct decision d = { .pick = only ? pl__machine_named(cp, only->meta.name) : choose(cp) };
    struct pl_str lacking = { 0 };

    step->namespace_ = cp->kcp->meta.namespace_;
    step->name = cp->kcp->meta.name;
    f.nothing = !d.pick;
    if (d.pick) {
        if (evidence_lacking(p, cp, &lacking)) {
            pl__missing_add(p, "KubeadmControlPlane", &cp->kcp->meta, "remediation", lacking);
            return false;
        }
        f.pick_deleting = d.pick->machine->meta.deleted_ms != 0;
        if (!f.pick_deleting)
            record_facts(p, cp, &d, &f, step);
        f.topology_differs = cp->cluster->topology_version.len &&
                             !pl__str_equal(cp->cluster->topology_version, cp->kcp->version);
        /* The Machine's own record is read last: what stops before it must not trip over it. */
        if (!d.resuming && !f.record_broken && !f.wait_for_record && !f.topology_differs)
            retry_facts(p, cp, &d, &f);
        preflight_facts(cp, &d, &f, step);
    }
    struct pl_judgement j =
        pl__judge(&pl__kcp_remediation, pl__kcp_remediation_facts(&f), p->profile);
    step_fill(p, cp, &d, j.rule, &f, step);
    return true;
}
