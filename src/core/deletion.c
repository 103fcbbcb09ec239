/* core/deletion.c - the Deleting condition and the next step of a deletion (semantics sections 8, 10). */
#include "core/pass.h"

#include "base/planted.h"

#include <assert.h>

enum { OBJECTS_NAMED_MAX = 5, MACHINES_NAMED_MAX = 3 };

#define MINUTES(n) ((int64_t)(n)*60 * 1000)

static const int64_t stale_after_ms = MINUTES(15);
static const int64_t drain_slow_after_ms = MINUTES(5);
static const int64_t member_removal_given_up_after_ms = MINUTES(10);

/* --- what blocks it ------------------------------------------------------------------------- */

static void blockers_add(struct pl_buf *b, const char *heading, struct pl_str *names, size_t count)
{
    if (count == 0)
        return;
    pl__names_sort(names, count);
    pl__buf_add(b, pl__str(heading));
    pl__names_add(b, names, count, OBJECTS_NAMED_MAX);
}

/* Worker Machines and MachinePools that are left, as lines; empty: none. */
static struct pl_str blockers(struct pl_pass *p, const struct pl_control_plane *cp)
{
    const struct pl_objects *o = &p->snapshot->objects;
    struct pl_range range = cp->cluster_machines;
    struct pl_str *workers = PL_NEW(p->arena, struct pl_str, range.end - range.first);
    struct pl_str *pools = PL_NEW(p->arena, struct pl_str, o->machine_pools.count);
    size_t worker_count = 0, pool_count = 0;
    struct pl_buf text;

    for (uint32_t i = range.first; i < range.end; i++) {
        const struct pl_machine *m = &o->machines.items[i];
        if (!m->meta.labels.control_plane)
            workers[worker_count++] = m->meta.name;
    }
    for (uint32_t i = 0; i < o->machine_pools.count; i++) {
        const struct pl_machine_pool *pool = &o->machine_pools.items[i];
        struct pl_str cluster =
            pool->cluster_name.len ? pool->cluster_name : pool->meta.labels.cluster_name;
        if (pl__str_equal(pool->meta.namespace_, cp->kcp->meta.namespace_) &&
            pl__str_equal(cluster, cp->cluster_name))
            pools[pool_count++] = pool->meta.name;
    }
    pl__buf_init(&text, p->arena, SIZE_MAX);
    blockers_add(&text, "\n* MachinePools: ", pools, pool_count);
    blockers_add(&text, "\n* Machines: ", workers, worker_count);
    return pl__buf_str(&text);
}

/* --- Machines that take long (section 10) ---------------------------------------------------- */

static const struct {
    struct pl_str sign, cause;
} drain_causes[] = {
    { PL_STR_INIT("cannot evict pod as it would violate the pod's disruption budget."),
      PL_STR_INIT("PodDisruptionBudgets") },
    { PL_STR_INIT("deletionTimestamp set, but still not removed from the Node"),
      PL_STR_INIT("Pods not terminating") },
    { PL_STR_INIT("failed to evict Pod"), PL_STR_INIT("Pod eviction errors") },
    { PL_STR_INIT("waiting for completion"), PL_STR_INIT("Pods not completed yet") },
};
enum { DRAIN_CAUSE_COUNT = sizeof drain_causes / sizeof drain_causes[0] };

static bool drains_slowly(const struct pl_pass *p, const struct pl_machine *m,
                          struct pl_str *message)
{
    const struct pl_condition *deleting = pl__condition_find(&m->conditions, COND_DELETING);

    if (!deleting || deleting->status != PL_STATUS_TRUE ||
        !pl__str_equal(deleting->reason, PL_STR("DrainingNode")) || !m->drain_started_ms ||
        p->snapshot->now_ms - m->drain_started_ms <= drain_slow_after_ms)
        return false;
    *message = deleting->message;
    return true;
}

/* " and Machine a is in deletion since more than 15m, delay likely due to ...", or empty. */
static struct pl_str stale_note(struct pl_pass *p, const struct pl_control_plane *cp)
{
    struct pl_str *names = PL_NEW(p->arena, struct pl_str, cp->machine_count);
    size_t count = 0, cause_count = 0;
    bool causes[DRAIN_CAUSE_COUNT] = { false };
    struct pl_buf text;

    for (size_t i = 0; i < cp->machine_count; i++) {
        const struct pl_machine *m = cp->machines[i].machine;
        struct pl_str message;
        if (!m->meta.deleted_ms || p->snapshot->now_ms - m->meta.deleted_ms <= stale_after_ms)
            continue;
        names[count++] = m->meta.name;
        if (!drains_slowly(p, m, &message))
            continue;
        for (size_t c = 0; c < DRAIN_CAUSE_COUNT; c++)
            causes[c] |= pl__str_contains(message, drain_causes[c].sign);
    }
    if (count == 0)
        return (struct pl_str){ "", 0 };

    pl__buf_init(&text, p->arena, SIZE_MAX);
    pl__buf_add(&text, count == 1 ? PL_STR(" and Machine ") : PL_STR(" and Machines "));
    pl__names_sort(names, count);
    pl__names_add(&text, names, count, MACHINES_NAMED_MAX);
    pl__buf_add(&text, count == 1 ? PL_STR(" is") : PL_STR(" are"));
    pl__buf_add_lit(&text, " in deletion since more than 15m");
    for (size_t c = 0; c < DRAIN_CAUSE_COUNT; c++) {
        if (!causes[c])
            continue;
        pl__buf_add(&text, cause_count++ ? PL_STR(", ") : PL_STR(", delay likely due to "));
        pl__buf_add(&text, drain_causes[c].cause);
    }
    return pl__buf_str(&text);
}

/* --- who goes next --------------------------------------------------------------------------- */

/* Why etcd's members cannot be looked at; empty: they can. */
static struct pl_str members_error(const struct pl_control_plane *cp)
{
    const struct pl_workload *w = cp->workload;

    if (cp->rung >= RUNG_L1 && cp->rung <= RUNG_L5)
        return PL_STR("connection to the workload cluster is down");
    if (w->nodes_error.len)
        return w->nodes_error;
    return w->etcd.connect_error.len ? w->etcd.connect_error : w->etcd.members_error;
}

const struct pl_etcd_member *pl__member_of(const struct pl_control_plane *cp,
                                           const struct pl_machine *m)
{
    for (uint32_t i = 0; m->node_name.len && i < cp->workload->etcd.members.count; i++) {
        const struct pl_etcd_member *member = &cp->workload->etcd.members.items[i];
        if (pl__str_equal(member->name, m->node_name))
            return member;
    }
    return NULL;
}

bool pl__hosts_leader(const struct pl_control_plane *cp, const struct pl_machine *m)
{
    const struct pl_etcd_member *member = pl__member_of(cp, m);
    return member && cp->workload->etcd.leader && member->id == cp->workload->etcd.leader;
}

/* Newest first; the leader's host only when no other is left. */
static const struct pl_machine *next_machine(const struct pl_control_plane *cp, bool leader_known)
{
    const struct pl_machine *pick = NULL;
    bool pick_leads = false;

    for (size_t i = 0; i < cp->machine_count; i++) {
        const struct pl_machine *m = cp->machines[i].machine;
        bool leads = leader_known && pl__hosts_leader(cp, m);
        /* Machines come by name, so among equals the later one has the greater name. */
        if (!pick || (pick_leads && !leads) ||
            (pick_leads == leads && m->meta.created_ms >= pick->meta.created_ms)) {
            pick = m;
            pick_leads = leads;
        }
    }
    return pick;
}

static struct pl_str machine_count_text(struct pl_pass *p, size_t count)
{
    return pl__str_format(p->arena, "%zu Machine%s", count, count == 1 ? "" : "s");
}

static void names_of_machines(struct pl_pass *p, const struct pl_control_plane *cp,
                              struct pl_deletion *step)
{
    struct pl_str *names = PL_NEW(p->arena, struct pl_str, cp->machine_count);

    for (size_t i = 0; i < cp->machine_count; i++) {
        if (!cp->machines[i].machine->meta.deleted_ms)
            names[step->deleted_count++] = cp->machines[i].machine->meta.name;
    }
    step->deleted = names;
}

static void step_fill(struct pl_pass *p, struct pl_control_plane *cp, const struct pl_rule *rule,
                      const struct pl_machine *next, struct pl_deletion *step)
{
    cp->deletion.action = (enum pl_deletion_action)rule->action;
    cp->deletion.next = next;
    step->phase = rule->says[p->profile].reason;
    step->requeue_after_ms = rule->next == NEXT_30S ? 30000 : 0;
    if (rule->action == DELETION_DELETE_ALL)
        names_of_machines(p, cp, step);
    /* Rows that are about one Machine hold only when there is a next one. */
    assert(next ||
           (rule->action != DELETION_REMOVE_MEMBER && rule->action != DELETION_DELETE_MACHINE));
    if (rule->action == DELETION_REMOVE_MEMBER)
        step->member_removed = next->node_name;
    if (rule->action == DELETION_DELETE_MACHINE) {
        struct pl_str *name = PL_NEW(p->arena, struct pl_str, 1);
        *name = next->meta.name;
        step->deleted = name;
        step->deleted_count = 1;
    }
}

/* What the next Machine's etcd member means for the deletion. NULL, or what evidence is missing. */
static const char *member_facts(const struct pl_control_plane *cp, struct pl_deleting_facts *f,
                                const struct pl_machine **next, struct pl_str *error,
                                struct pl_deletion *step)
{
    bool wants_etcd = cp->kcp->etcd_managed && cp->machine_count > 1;
    bool initialized = cp->kcp->initialized;

    if (wants_etcd && cp->rung < 0)
        return "connection";
    if (wants_etcd && cp->rung == RUNG_PASSED &&
        !(cp->workload->nodes.present || cp->workload->nodes_error.len))
        return "nodes";
    *error = wants_etcd ? members_error(cp) : (struct pl_str){ 0 };
    if (wants_etcd && !error->len && !cp->workload->etcd.members.present)
        return cp->workload->etcd.present ? "etcd.members" : "etcd";
    *next = next_machine(cp, wants_etcd && !error->len);
    if (!wants_etcd || !initialized)
        return NULL;
    if (!error->len) {
        f->member_listed = pl__member_of(cp, *next) != NULL;
    } else if (cp->deletion.gave_up) {
        step->gave_up_on_member = true;
    } else {
        f->members_unreadable = true;
    }
    return NULL;
}

/* "DockerMachineTemplate alpha-cp" */
static struct pl_str template_label(struct pl_pass *p)
{
    const struct pl_infra_template *t = &p->snapshot->templates.items[0];

    return pl__str_format(p->arena, "%.*s %.*s", PL_STR_ARG(t->kind), PL_STR_ARG(t->name));
}

bool pl__deletion_judge(struct pl_pass *p, struct pl_control_plane *cp, struct pl_deletion *step)
{
    const struct pl_kcp *kcp = cp->kcp;
    struct pl_verdict *v = &cp->deleting;
    struct pl_deleting_facts f = { .deleting = kcp->meta.deleted_ms != 0 };
    struct pl_str object =
        pl__object_ref(p, "KubeadmControlPlane", kcp->meta.namespace_, kcp->meta.name);
    struct pl_text texts[8] = { { "objects", { 0 } } };
    const struct pl_machine *next = NULL;
    size_t deleting_count = 0;

    pl__evidence(p, v, object, "metadata.deletionTimestamp",
                 f.deleting ? PL_STR("set") : PL_STR(""), SOURCE_LIST);
    if (f.deleting) {
        struct pl_str error = { 0 };
        for (size_t i = 0; i < cp->machine_count; i++)
            deleting_count += cp->machines[i].machine->meta.deleted_ms != 0;
        texts[0].value = blockers(p, cp);
        f.workers_left = texts[0].value.len > 0;
        f.machines_left = cp->machine_count > (PL_PLANTED(FINALIZER_EARLY) ? 1 : 0);
        f.machine_deleting = deleting_count > 0;
        f.templates_left = p->snapshot->templates.count > 0;
        cp->deletion.gave_up =
            p->snapshot->now_ms - kcp->meta.deleted_ms > member_removal_given_up_after_ms;
        const char *lacking = NULL;
        if (p->profile == PL_PROFILE_TABLES && !f.workers_left && f.machines_left &&
            !f.machine_deleting)
            lacking = member_facts(cp, &f, &next, &error, step);
        if (lacking) {
            cp->deletion.lacking = pl__missing_workload(p, cp, lacking);
            pl__missing_add(p, "KubeadmControlPlane", &kcp->meta, v->type, cp->deletion.lacking);
            return false;
        }
        bool all = p->profile == PL_PROFILE_CLUSTER_API_1_12;
        texts[1] = (struct pl_text){ "count", machine_count_text(p, all ? cp->machine_count
                                                                        : deleting_count) };
        size_t remaining = cp->machine_count - deleting_count - (next ? 1 : 0);
        texts[2] = (struct pl_text){ "remaining", pl__str_format(p->arena, "%zu", remaining) };
        texts[3] = (struct pl_text){ "stale note", stale_note(p, cp) };
        texts[4] = (struct pl_text){ "error", error };
        if (next) {
            texts[5] = (struct pl_text){ "machine", next->meta.name };
            texts[6] = (struct pl_text){ "member", next->node_name };
        } else if (f.templates_left) {
            texts[5] = (struct pl_text){ "template", template_label(p) };
        }
        pl__evidence(p, v, object, "control plane Machines",
                     pl__str_format(p->arena, "%zu, of which %zu deleting", cp->machine_count,
                                    deleting_count),
                     SOURCE_LIST);
        if (f.workers_left)
            pl__evidence(p, v, object, "workers left", texts[0].value, SOURCE_LIST);
    }
    struct pl_judgement j = pl__judge(&pl__kcp_deleting, pl__kcp_deleting_facts(&f), p->profile);
    size_t text_count = next ? 7 : f.templates_left ? 6 : f.deleting ? 5 : 1;
    pl__verdict_judge(p, v, COND_DELETING, &kcp->meta, &kcp->conditions, &pl__kcp_deleting, j,
                      texts, text_count);
    if (f.deleting)
        step_fill(p, cp, j.rule, next, step);
    return f.deleting;
}
