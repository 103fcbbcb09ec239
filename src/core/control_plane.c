#include "core/control_plane.h"

/* The Cluster that owns it, else the one its label names. */
static struct pl_str cluster_name_of(const struct pl_kcp *kcp,
                                     const struct pl_owner_reference **owner)
{
    for (uint32_t i = 0; i < kcp->meta.owners.count; i++) {
        const struct pl_owner_reference *o = &kcp->meta.owners.items[i];
        if (pl__str_equal(o->kind, PL_STR("Cluster"))) {
            *owner = o;
            return o->name;
        }
    }
    return kcp->meta.labels.cluster_name;
}

static bool is_control_plane_machine(const struct pl_machine *m, const struct pl_kcp *kcp)
{
    const struct pl_owner_reference *controller = pl__controller_of(&m->meta);

    return m->meta.labels.control_plane && controller &&
           pl__owner_is(controller, PL_STR("KubeadmControlPlane"), &kcp->meta);
}

int pl__control_plane_gather(struct pl_pass *p, const struct pl_kcp *kcp,
                             struct pl_control_plane *cp, struct pl_error **err)
{
    const struct pl_snapshot *s = p->snapshot;
    const struct pl_owner_reference *owner = NULL;
    struct pl_str namespace_ = kcp->meta.namespace_;
    size_t count = 0;

    cp->kcp = kcp;
    cp->cluster_name = cluster_name_of(kcp, &owner);
    cp->cluster = pl__snapshot_cluster(s, namespace_, cp->cluster_name);
    if (cp->cluster && owner && !pl__owner_is(owner, PL_STR("Cluster"), &cp->cluster->meta))
        cp->cluster = NULL; /* another Cluster of that name */
    cp->workload = pl__snapshot_workload(s, namespace_, cp->cluster_name);
    cp->cluster_machines = pl__snapshot_machines_of(s, namespace_, cp->cluster_name);

    for (uint32_t i = cp->cluster_machines.first; i < cp->cluster_machines.end; i++)
        count += is_control_plane_machine(&s->objects.machines.items[i], kcp);
    if (count > CONTROL_PLANE_MACHINES_MAX)
        return pl__error(
            p->arena, err, PL_LIMIT,
            "%.*s: KubeadmControlPlane %.*s/%.*s has %zu Machines, at most %d can be judged",
            PL_STR_ARG(s->source), PL_STR_ARG(namespace_), PL_STR_ARG(kcp->meta.name), count,
            CONTROL_PLANE_MACHINES_MAX);

    cp->machines = PL_NEW(p->arena, struct pl_machine_state, count);
    for (uint32_t i = cp->cluster_machines.first; i < cp->cluster_machines.end; i++) {
        const struct pl_machine *m = &s->objects.machines.items[i];
        if (!is_control_plane_machine(m, kcp))
            continue;
        struct pl_machine_state *state = &cp->machines[cp->machine_count++];
        state->machine = m;
        for (int type = 0; type < MACHINE_COND_COUNT; type++)
            pl__verdict_init(&state->verdicts[type], (enum pl_condition_type)type, &m->conditions);
    }
    pl__verdict_init(&cp->etcd, COND_ETCD_CLUSTER, &kcp->conditions);
    pl__verdict_init(&cp->components, COND_COMPONENTS, &kcp->conditions);
    pl__verdict_init(&cp->deleting, COND_DELETING, &kcp->conditions);
    pl__verdict_init(&cp->remediating, COND_REMEDIATING, &kcp->conditions);
    return 0;
}

void pl__control_plane_judge(struct pl_pass *p, struct pl_control_plane *cp,
                             struct pl_deletion *deletion, bool *deletes)
{
    const struct pl_machine **machines =
        PL_NEW(p->arena, const struct pl_machine *, cp->machine_count);

    for (size_t i = 0; i < cp->machine_count; i++)
        machines[i] = cp->machines[i].machine;
    pl__health_judge(p, cp);
    pl__remediating_judge(p, &cp->remediating, &pl__kcp_remediating, pl__kcp_remediating_facts,
                          &cp->kcp->meta, &cp->kcp->conditions, machines, cp->machine_count);
    deletion->namespace_ = cp->kcp->meta.namespace_;
    deletion->name = cp->kcp->meta.name;
    *deletes = pl__deletion_judge(p, cp, deletion);
}
