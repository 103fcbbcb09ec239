/* core/remediation.c - the next remediation step of a control plane (semantics section 9, steps 1 to 9).
 *
 * Decides only. Carrying it out, and the order of writes that makes that safe, is elsewhere. */
#include "core/pass.h"

#include <assert.h>

#include "base/time.h"

enum { MIN_HEALTHY_PERIOD_S_DEFAULT = 3600 };

/* What the annotations remediation-in-progress and remediation-for carry. */
struct record {
    struct pl_str machine;
    int64_t timestamp_ms;
    int64_t retry_count;
};

static const struct pl_field record_fields[] = {
    PL_FIELD("machine", F_STR, struct record, machine),
    PL_FIELD("timestamp", F_TIME, struct record, timestamp_ms),
    PL_FIELD("retryCount", F_INT, struct record, retry_count),
};
static PL_SHAPE(record_shape, struct record, record_fields);

static bool record_read(struct pl_pass *p, struct pl_str text, struct record *r)
{
    struct pl_json j;

    pl__json_init(&j, text, PL_STR("annotation"), p->arena, 4, NULL);
    return pl__json_decode(&j, &record_shape, r) == 0 && pl__json_at_end(&j) && r->timestamp_ms;
}

/* Step 1: a Machine that is healthy again has nothing left to be remediated. */
static bool recovered(const struct pl_machine *m)
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

static struct pl_machine_state *machine_named(const struct pl_control_plane *cp, struct pl_str name)
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
    struct record record;
    bool resuming;
    struct pl_machine_state *candidate; /* for etcd leadership */
};

static void record_facts(struct pl_pass *p, const struct pl_control_plane *cp, struct decision *d,
                         struct pl_remediation_facts *f, struct pl_remediation *step)
{
    struct pl_str text = cp->kcp->meta.annotations.remediation_in_progress;
    struct record r = { 0 };

    if (text.len == 0)
        return;
    if (!record_read(p, text, &r)) {
        f->record_broken = true;
        return;
    }
    for (size_t i = 0; i < cp->machine_count; i++) {
        if (cp->machines[i].machine->meta.created_ms > r.timestamp_ms) {
            step->stale_annotation_dropped = true; /* its replacement has been made */
            return;
        }
    }
    struct pl_machine_state *named = machine_named(cp, r.machine);
    if (!named || named->machine->meta.deleted_ms) {
        f->wait_for_record = true;
    } else if (pl__machine_to_be_remediated(named->machine)) {
        d->resuming = true;
        d->pick = named;
        d->record = r;
        f->resuming = true;
    } else {
        step->stale_annotation_dropped = true; /* it recovered before it was deleted */
    }
}

/* --- steps 6 and 7 --------------------------------------------------------------------------- */

static void retry_facts(struct pl_pass *p, const struct pl_control_plane *cp, struct decision *d,
                        struct pl_remediation_facts *f)
{
    const struct pl_kcp *kcp = cp->kcp;
    struct pl_str text = d->pick->machine->meta.annotations.remediation_for;
    int64_t healthy_s =
        kcp->min_healthy_period_s < 0 ? MIN_HEALTHY_PERIOD_S_DEFAULT : kcp->min_healthy_period_s;
    int64_t retry_s = kcp->retry_period_s < 0 ? 0 : kcp->retry_period_s;
    struct record last = { 0 };

    d->record = (struct record){ .machine = d->pick->machine->meta.name,
                                 .timestamp_ms = p->snapshot->now_ms };
    if (text.len == 0)
        return;
    if (!record_read(p, text, &last)) {
        f->record_broken = true;
        return;
    }
    int64_t age_ms = p->snapshot->now_ms - last.timestamp_ms;
    if (age_ms >= healthy_s * 1000)
        return; /* it was healthy long enough: this is a new failure, not a retry */
    f->in_retry_period = age_ms < retry_s * 1000;
    f->max_retry_reached = kcp->max_retry >= 0 && last.retry_count >= kcp->max_retry;
    d->record.retry_count = last.retry_count + 1;
}

/* --- step 8 ---------------------------------------------------------------------------------- */

/* Members are read anew for this: what stands beside another error is used. */
static bool members_readable(const struct pl_workload *w)
{
    if (w->etcd.connect_error.len)
        return false;
    return w->etcd.members.present || (!w->nodes_error.len && !w->etcd.members_error.len);
}

static void quorum_facts(const struct pl_control_plane *cp, const struct decision *d,
                         struct pl_remediation_facts *f, struct pl_remediation *step)
{
    const struct pl_etcd_view *etcd = &cp->workload->etcd;
    uint32_t target = 0, healthy = 0;

    for (uint32_t i = 0; i < etcd->members.count; i++) {
        struct pl_str name = etcd->members.items[i].name;
        if (name.len && pl__str_equal(name, d->pick->machine->node_name))
            continue;
        struct pl_machine_state *host = pl__machine_on_node(cp, name);
        target++;
        healthy += host && host->verdicts[COND_ETCD_MEMBER].status == PL_STATUS_TRUE;
    }
    step->quorum_known = true;
    step->voters_after = target;
    step->healthy_after = healthy;
    step->quorum_after = target / 2 + 1;
    f->quorum_lost = healthy < step->quorum_after;
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
    f->one_machine = cp->machine_count <= 1;
    for (size_t i = 0; i < cp->machine_count; i++) {
        const struct pl_machine *m = cp->machines[i].machine;
        f->machine_deleting |= m->meta.deleted_ms != 0;
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
        else if (c && !recovered(m))
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
    struct decision d = { .pick = only ? machine_named(cp, only->meta.name) : choose(cp) };
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
