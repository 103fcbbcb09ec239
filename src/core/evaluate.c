#include "core/evaluate.h"

#include <stdlib.h>

#include "core/control_plane.h"
#include "core/machineset.h"
#include "core/plan.h"

/* --- MachineDeployments ---------------------------------------------------------------------- */

static int by_owner(const void *a, const void *b)
{
    const struct pl_owned_machine *x = a, *y = b;

    if (x->md != y->md)
        return x->md < y->md ? -1 : 1;
    return pl__str_compare(x->machine->meta.name, y->machine->meta.name);
}

static int meta_compare(const struct pl_meta *m, struct pl_str namespace_, struct pl_str name)
{
    int order = pl__str_compare(m->namespace_, namespace_);
    return order ? order : pl__str_compare(m->name, name);
}

/* The object that controls `meta`, of that kind, in a list sorted by namespace and name; or NULL. All
 * objects start with their metadata. */
static const void *controller_in(const struct pl_meta *meta, struct pl_str kind, const void *items,
                                 uint32_t count, size_t size)
{
    const struct pl_owner_reference *owner = pl__controller_of(meta);
    uint32_t low = 0, high = count;

    if (!owner || !pl__str_equal(owner->kind, kind))
        return NULL;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct pl_meta *at = (const void *)((const char *)items + middle * size);
        int order = meta_compare(at, meta->namespace_, owner->name);
        if (order == 0)
            return pl__owner_is(owner, kind, at) ? at : NULL;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* All Machines that belong to some MachineDeployment, grouped by it, each group by name. */
static size_t owned_machines(struct pl_pass *p, struct pl_owned_machine **all)
{
    const struct pl_objects *o = &p->snapshot->objects;
    size_t count = 0;

    if (o->machine_deployments.count == 0 || o->machines.count == 0)
        return 0;
    struct pl_owned_machine *found = PL_NEW(p->arena, struct pl_owned_machine, o->machines.count);
    for (uint32_t i = 0; i < o->machines.count; i++) {
        const struct pl_machine *m = &o->machines.items[i];
        const struct pl_machine_set *ms =
            controller_in(&m->meta, PL_STR("MachineSet"), o->machine_sets.items,
                          o->machine_sets.count, sizeof *ms);
        const struct pl_machine_deployment *md =
            ms ? controller_in(&ms->meta, PL_STR("MachineDeployment"), o->machine_deployments.items,
                               o->machine_deployments.count, sizeof *md)
               : NULL;
        if (md)
            found[count++] = (struct pl_owned_machine){ md, ms, m };
    }
    if (count > 1)
        qsort(found, count, sizeof *found, by_owner);
    *all = found;
    return count;
}

/* --- the report ------------------------------------------------------------------------------ */

/* Whether a condition calls for attention. */
static bool is_finding(const struct pl_verdict *v)
{
    if (v->negative)
        return v->status == PL_STATUS_TRUE || v->status == PL_STATUS_UNKNOWN || v->message.len;
    return v->status != PL_STATUS_TRUE;
}

struct builder {
    struct pl_pass pass;
    struct pl_report *report;
    struct pl_growing objects, remediation, deletion, machine_sets, plans, deployment_plans;
    const struct pl_plans *asked; /* what is known besides the snapshot; NULL: no plans */
};

static struct pl_object *object_add(struct builder *b, const char *kind, const struct pl_meta *meta,
                                    bool paused)
{
    struct pl_object *o = pl__growing_add(&b->pass, &b->objects, sizeof *o);

    o->kind = kind;
    o->namespace_ = meta->namespace_;
    o->name = meta->name;
    o->paused = paused;
    return o;
}

/* Copies the conditions that are there into the report; `from` has them by type already. */
static void verdicts_fill(struct builder *b, struct pl_object *o,
                          const struct pl_verdict *const *from, size_t count)
{
    struct pl_verdict *to = PL_NEW(b->pass.arena, struct pl_verdict, count);

    for (size_t i = 0; i < count; i++) {
        if (from[i]->status == PL_STATUS_NONE)
            continue;
        to[o->verdict_count++] = *from[i];
        b->report->has_findings |= is_finding(from[i]);
    }
    o->verdicts = to;
}

static void control_plane_report(struct builder *b, const struct pl_control_plane *cp)
{
    bool cluster_paused = cp->cluster && cp->cluster->paused;
    const struct pl_verdict *own[] = { &cp->components, &cp->deleting, &cp->etcd,
                                       &cp->remediating };
    struct pl_object *o = object_add(b, "KubeadmControlPlane", &cp->kcp->meta,
                                     cluster_paused || cp->kcp->meta.annotations.paused);

    o->requeue_with_error = cp->asks_for_error;
    b->report->requeue_with_error |= cp->asks_for_error;
    verdicts_fill(b, o, own, sizeof own / sizeof own[0]);

    for (size_t i = 0; i < cp->machine_count; i++) {
        const struct pl_machine_state *s = &cp->machines[i];
        const struct pl_verdict *machine_own[MACHINE_COND_COUNT] = {
            &s->verdicts[COND_API_SERVER_POD], &s->verdicts[COND_CONTROLLER_MANAGER_POD],
            &s->verdicts[COND_ETCD_MEMBER],    &s->verdicts[COND_ETCD_POD],
            &s->verdicts[COND_SCHEDULER_POD],
        };
        o = object_add(b, "Machine", &s->machine->meta,
                       cluster_paused || s->machine->meta.annotations.paused);
        o->owner = cp->kcp->meta.name;
        verdicts_fill(b, o, machine_own, MACHINE_COND_COUNT);
    }
}

/* Whether it gets that far is decided here; if it does, the step. */
static void remediation_evaluate(struct builder *b, struct pl_control_plane *cp)
{
    const struct pl_meta *meta = &cp->kcp->meta;
    struct pl_remediation remediation = { 0 };

    if (meta->deleted_ms || cp->rung == RUNG_L00 || cp->rung == RUNG_L0 || cp->asks_for_error)
        return;
    if (cp->rung < 0) {
        pl__missing_add(&b->pass, "KubeadmControlPlane", meta, "remediation",
                        cp->cluster ? pl__missing_workload(&b->pass, cp, "connection")
                                    : pl__str_format(b->pass.arena, "Cluster/%.*s/%.*s",
                                                     PL_STR_ARG(meta->namespace_),
                                                     PL_STR_ARG(cp->cluster_name)));
        return;
    }
    if (pl__remediation_judge(&b->pass, cp, NULL, &remediation))
        *(struct pl_remediation *)pl__growing_add(&b->pass, &b->remediation, sizeof remediation) =
            remediation;
}

static int control_plane_evaluate(struct builder *b, const struct pl_kcp *kcp,
                                  struct pl_error **err)
{
    struct pl_control_plane cp = { 0 };
    struct pl_deletion deletion = { 0 };
    bool deletes = false;

    if (pl__control_plane_gather(&b->pass, kcp, &cp, err) < 0)
        return -1;
    pl__control_plane_judge(&b->pass, &cp, &deletion, &deletes);
    control_plane_report(b, &cp);
    if (deletes)
        *(struct pl_deletion *)pl__growing_add(&b->pass, &b->deletion, sizeof deletion) = deletion;
    remediation_evaluate(b, &cp);
    if (b->asked)
        pl__plan_make(&b->pass, &cp, b->asked,
                      pl__growing_add(&b->pass, &b->plans, sizeof(struct pl_plan)));
    return 0;
}

static void machine_sets_evaluate(struct builder *b, const struct pl_machine_deployment *md,
                                  const struct pl_cluster *cluster,
                                  const struct pl_owned_machine *machines, size_t count)
{
    const struct pl_machine_set_decision *decisions = NULL;
    size_t decided = pl__machine_sets_judge(&b->pass, md, cluster, machines, count, &decisions);

    for (size_t i = 0; i < decided; i++)
        *(struct pl_machine_set_step *)pl__growing_add(
            &b->pass, &b->machine_sets, sizeof decisions[i].shown) = decisions[i].shown;
    if (b->asked)
        pl__machine_sets_plan(
            &b->pass, md, cluster, decisions, decided,
            pl__growing_add(&b->pass, &b->deployment_plans, sizeof(struct pl_plan)));
}

static void machine_deployments_evaluate(struct builder *b)
{
    const struct pl_objects *o = &b->pass.snapshot->objects;
    struct pl_owned_machine *owned = NULL;
    size_t count = owned_machines(&b->pass, &owned), at = 0;
    const struct pl_machine **machines = PL_NEW(b->pass.arena, const struct pl_machine *, count);

    for (uint32_t i = 0; i < o->machine_deployments.count; i++) {
        const struct pl_machine_deployment *md = &o->machine_deployments.items[i];
        const struct pl_cluster *cluster = pl__snapshot_cluster(
            b->pass.snapshot, md->meta.namespace_, md->meta.labels.cluster_name);
        struct pl_verdict v;
        const struct pl_verdict *own[] = { &v };
        size_t first = at;

        for (; at < count && owned[at].md == md; at++)
            machines[at] = owned[at].machine;
        pl__verdict_init(&v, COND_REMEDIATING, &md->conditions);
        pl__remediating_judge(&b->pass, &v, &pl__md_remediating, pl__md_remediating_facts,
                              &md->meta, &md->conditions, machines + first, at - first);
        verdicts_fill(b,
                      object_add(b, "MachineDeployment", &md->meta,
                                 md->meta.annotations.paused || (cluster && cluster->paused)),
                      own, 1);
        machine_sets_evaluate(b, md, cluster, at > first ? &owned[first] : NULL, at - first);
    }
}

static int object_order(const void *a, const void *b)
{
    const struct pl_object *x = a, *y = b;
    int order = strcmp(x->kind, y->kind);

    if (!order)
        order = pl__str_compare(x->namespace_, y->namespace_);
    return order ? order : pl__str_compare(x->name, y->name);
}

static int missing_order(const void *a, const void *b)
{
    const struct pl_missing *x = a, *y = b;
    int order = pl__str_compare(x->object, y->object);

    return order ? order : pl__str_compare(x->condition, y->condition);
}

int pl__evaluate(const struct pl_snapshot *s, struct pl_evaluate_options options,
                 struct pl_arena *arena, const struct pl_report **report, struct pl_error **err)
{
    struct builder b = { .pass = { .arena = arena,
                                   .snapshot = s,
                                   .profile = options.profile,
                                   .explain = options.explain },
                         .report = PL_NEW(arena, struct pl_report, 1),
                         .asked = options.plans };
    struct pl_report *r = b.report;

    for (uint32_t i = 0; i < s->objects.kcps.count; i++) {
        if (control_plane_evaluate(&b, &s->objects.kcps.items[i], err) < 0)
            return -1;
    }
    machine_deployments_evaluate(&b);

    if (b.objects.count > 1)
        qsort(b.objects.items, b.objects.count, sizeof(struct pl_object), object_order);
    if (b.pass.missing.count > 1)
        qsort(b.pass.missing.items, b.pass.missing.count, sizeof(struct pl_missing), missing_order);
    r->source = s->source;
    r->name = s->name;
    r->profile = options.profile;
    r->now_ms = s->now_ms;
    r->objects = b.objects.items;
    r->object_count = b.objects.count;
    r->remediation = b.remediation.items;
    r->remediation_count = b.remediation.count;
    r->deletion = b.deletion.items;
    r->deletion_count = b.deletion.count;
    r->machine_sets = b.machine_sets.items;
    r->machine_set_count = b.machine_sets.count;
    r->missing = b.pass.missing.items;
    r->missing_count = b.pass.missing.count;
    if (options.plans) {
        options.plans->items = b.plans.items;
        options.plans->count = b.plans.count;
        options.plans->deployments = b.deployment_plans.items;
        options.plans->deployment_count = b.deployment_plans.count;
    }
    *report = r;
    return 0;
}
