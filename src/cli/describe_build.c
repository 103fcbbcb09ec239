/* From lists of objects to a tree: Cluster, its control plane with Machines and etcd members, its
 * workers. What is stored in an object stands in its own line; what the engine judges stands below. */
#include <stdlib.h>

#include "base/time.h"
#include "cli/describe.h"
#include "cli/report.h"
#include "core/etcd_overview.h"

static struct pl_describe_node *add(struct pl_describe *d, struct pl_describe_node *parent,
                                    struct pl_describe_node node)
{
    struct pl_describe_node *added = PL_NEW(d->scratch, struct pl_describe_node, 1);

    *added = node;
    if (parent->child_last)
        parent->child_last->next = added;
    else
        parent->child = added;
    parent->child_last = added;
    return added;
}

static struct pl_str age(struct pl_describe *d, int64_t since_ms)
{
    struct pl_buf text;

    pl__buf_init(&text, d->scratch, 64);
    if (since_ms && since_ms <= d->report->now_ms)
        pl__age_add(&text, d->report->now_ms - since_ms);
    return pl__buf_str(&text);
}

/* --- conditions ---------------------------------------------------------------------------------- */

static enum pl_color status_color(enum pl_status status)
{
    if (status == PL_STATUS_UNKNOWN)
        return COLOR_YELLOW;
    return status == PL_STATUS_TRUE ? COLOR_GREEN : COLOR_RED;
}

/* The stored condition that sums an object up: Available or Ready. */
static void take_summary(struct pl_describe *d, struct pl_describe_node *node,
                         const struct pl_conditions *conditions, enum pl_condition_type type)
{
    const struct pl_condition *c = pl__condition_find(conditions, type);

    if (!c)
        return;
    node->type = pl__str(pl__condition_type_name(type));
    node->status = pl__str(pl_status_name((enum pl_status)c->status));
    node->reason = c->reason;
    node->message = c->message;
    node->since_ms = c->last_transition_ms;
    node->since = age(d, c->last_transition_ms);
    node->color = status_color((enum pl_status)c->status);
    node->calls = c->status != PL_STATUS_TRUE;
}

static bool is_missing(const struct pl_describe *d, const struct pl_object *object)
{
    struct pl_str name = pl__str_format(d->scratch, "%s/%.*s/%.*s", object->kind,
                                        PL_STR_ARG(object->namespace_), PL_STR_ARG(object->name));

    for (size_t i = 0; i < d->report->missing_count; i++) {
        if (pl__str_equal(d->report->missing[i].object, name))
            return true;
    }
    return false;
}

/* An object that stores no such condition is summed up by what we judge of it. */
static void sum_up(struct pl_describe *d, struct pl_describe_node *node, const struct pl_object *o)
{
    enum pl_color worst = COLOR_GREEN;

    for (size_t i = 0; i < o->verdict_count; i++) {
        enum pl_color color = pl__verdict_color(&o->verdicts[i]);
        if (worst == COLOR_GREEN || color == COLOR_RED)
            worst = color;
    }
    if (worst == COLOR_GREEN && (o->verdict_count == 0 || is_missing(d, o))) {
        node->status = PL_STR("Not known");
        node->color = COLOR_YELLOW;
        return;
    }
    node->status = worst == COLOR_GREEN ? PL_STR("Healthy")
                   : worst == COLOR_RED ? PL_STR("Not healthy")
                                        : PL_STR("Unknown");
    node->color = worst;
}

/* What the engine judged, as lines below the object. */
static void add_verdicts(struct pl_describe *d, struct pl_describe_node *node)
{
    const struct pl_object *o = node->object;

    for (size_t i = 0; o && i < o->verdict_count; i++) {
        const struct pl_verdict *v = &o->verdicts[i];
        bool calls = pl__verdict_calls(v);
        node->calls |= calls;
        add(d, node,
            (struct pl_describe_node){ .name = pl__str(v->type),
                                       .is_condition = true,
                                       .optional = true,
                                       .calls = calls,
                                       .status = pl__str(pl_status_name(v->status)),
                                       .reason = v->reason,
                                       .message = v->message,
                                       .since = pl__verdict_age(d->scratch, d->report, v),
                                       .since_ms = v->last_transition_ms,
                                       .color = pl__verdict_color(v) });
    }
    if (o && node->status.len == 0)
        sum_up(d, node, o);
}

/* --- objects ------------------------------------------------------------------------------------- */

/* The order of a report's objects. */
static int by_kind_and_name(const void *a, const void *b)
{
    const struct pl_object *x = a, *y = b;
    int order = strcmp(x->kind, y->kind);

    if (!order)
        order = pl__str_compare(x->namespace_, y->namespace_);
    return order ? order : pl__str_compare(x->name, y->name);
}

static const struct pl_object *judged(const struct pl_describe *d, const char *kind,
                                      const struct pl_meta *meta)
{
    struct pl_object wanted = { .kind = kind, .namespace_ = meta->namespace_, .name = meta->name };

    if (d->report->object_count == 0)
        return NULL;
    return bsearch(&wanted, d->report->objects, d->report->object_count, sizeof wanted,
                   by_kind_and_name);
}

static struct pl_describe_node object_node(const struct pl_describe *d, const char *kind,
                                           const struct pl_meta *meta)
{
    return (struct pl_describe_node){ .kind = kind,
                                      .namespace_ = meta->namespace_,
                                      .name = meta->name,
                                      .deleted = meta->deleted_ms != 0,
                                      .object = judged(d, kind, meta) };
}

/* A Machine is one replica, in the states that its conditions say; 0: they do not. */
static int32_t one_if(const struct pl_conditions *conditions, enum pl_condition_type type)
{
    const struct pl_condition *c = pl__condition_find(conditions, type);

    return c ? 1 + (c->status == PL_STATUS_TRUE) : 0;
}

static void add_machine(struct pl_describe *d, struct pl_describe_node *parent,
                        const struct pl_machine *m)
{
    struct pl_describe_node *node = add(d, parent, object_node(d, "Machine", &m->meta));

    node->is_machine = true;
    node->replicas = (struct pl_replicas){ .current = 2,
                                           .ready = one_if(&m->conditions, COND_READY),
                                           .available = one_if(&m->conditions, COND_AVAILABLE),
                                           .up_to_date = one_if(&m->conditions, COND_UP_TO_DATE) };
    take_summary(d, node, &m->conditions, COND_READY);
    add_verdicts(d, node);
}

/* Where the status does not say how many Machines there are, they are counted. */
static void count_machines(struct pl_describe_node *node)
{
    if (node->replicas.current)
        return;
    node->replicas.current = 1;
    for (const struct pl_describe_node *child = node->child; child; child = child->next)
        node->replicas.current += child->is_machine;
}

/* --- etcd ---------------------------------------------------------------------------------------- */

static void add_member(struct pl_describe *d, struct pl_describe_node *parent,
                       const struct pl_etcd_view *etcd, const struct pl_etcd_member *m)
{
    struct pl_describe_node node = { .color = COLOR_GREEN, .status = PL_STR("Voter") };
    struct pl_str alarms = pl__etcd_alarms_of(d->scratch, etcd, m->id);

    node.calls = alarms.len > 0;
    if (node.calls)
        node.message = pl__str_format(d->scratch, "Alarms: %.*s", PL_STR_ARG(alarms));
    if (m->is_learner)
        node.status = PL_STR("Learner");
    if (m->name.len == 0)
        node.status = PL_STR("Not started");
    if (m->is_learner || m->name.len == 0)
        node.color = COLOR_YELLOW;
    if (node.calls)
        node.color = COLOR_RED;
    if (etcd->leader && etcd->leader == m->id)
        node.status = PL_STR("Leader");
    node.name = m->name.len
                    ? pl__str_format(d->scratch, "Member/%.*s", PL_STR_ARG(m->name))
                    : pl__str_format(d->scratch, "Member/%016llx", (unsigned long long)m->id);
    add(d, parent, node);
}

static struct pl_str etcd_error(const struct pl_etcd_view *etcd)
{
    if (etcd->connect_error.len)
        return etcd->connect_error;
    if (etcd->members_error.len)
        return etcd->members_error;
    return etcd->alarms_error;
}

static void add_etcd(struct pl_describe *d, struct pl_describe_node *parent,
                     const struct pl_workload *w)
{
    if (!w || !w->etcd.present)
        return;
    const struct pl_etcd_view *etcd = &w->etcd;
    struct pl_str error = etcd_error(etcd);
    uint32_t voters = 0;

    for (uint32_t i = 0; i < etcd->members.count; i++)
        voters += !etcd->members.items[i].is_learner;
    struct pl_describe_node node = {
        .name = PL_STR("Etcd"), .calls = error.len > 0, .message = error, .color = COLOR_YELLOW
    };
    if (error.len)
        node.status = PL_STR("Unknown");
    if (etcd->members.present)
        node.replicas.current = (int32_t)etcd->members.count + 1;
    if (etcd->members.present && !error.len)
        node.message = pl__str_format(d->scratch, "%u voter%s, quorum %u", voters,
                                      voters == 1 ? "" : "s", voters / 2 + 1);
    struct pl_describe_node *added = add(d, parent, node);
    for (uint32_t i = 0; i < etcd->members.count; i++)
        add_member(d, added, etcd, &etcd->members.items[i]);
}

/* --- a Cluster ----------------------------------------------------------------------------------- */

struct cluster {
    struct pl_str namespace_;
    struct pl_str name;
};

/* The Cluster that an object names; empty: none. */
static struct cluster cluster_of(const struct pl_meta *meta)
{
    for (uint32_t i = 0; i < meta->owners.count; i++) {
        if (pl__str_equal(meta->owners.items[i].kind, PL_STR("Cluster")))
            return (struct cluster){ meta->namespace_, meta->owners.items[i].name };
    }
    return (struct cluster){ meta->namespace_, meta->labels.cluster_name };
}

static bool same_cluster(struct cluster a, struct cluster b)
{
    return pl__str_equal(a.name, b.name) && pl__str_equal(a.namespace_, b.namespace_);
}

enum { NOT_KNOWN = -1 };

/* A sum is not known when one of its parts is not. */
static void sum_replicas(struct pl_replicas *sum, const struct pl_replicas *part)
{
    int32_t *to[] = { &sum->desired, &sum->current, &sum->ready, &sum->available,
                      &sum->up_to_date };
    const int32_t from[] = { part->desired, part->current, part->ready, part->available,
                             part->up_to_date };

    for (size_t i = 0; i < sizeof to / sizeof to[0]; i++) {
        if (from[i] == 0 || *to[i] == NOT_KNOWN)
            *to[i] = NOT_KNOWN;
        else
            *to[i] = *to[i] ? *to[i] + from[i] - 1 : from[i];
    }
}

static void sum_end(struct pl_replicas *sum)
{
    int32_t *all[] = { &sum->desired, &sum->current, &sum->ready, &sum->available,
                       &sum->up_to_date };

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (*all[i] == NOT_KNOWN)
            *all[i] = 0;
    }
}

static void add_control_plane(struct pl_describe *d, struct pl_describe_node *parent,
                              const struct pl_kcp *kcp, struct cluster cluster)
{
    const struct pl_objects *o = &d->snapshot->objects;
    struct pl_range range = pl__snapshot_machines_of(d->snapshot, cluster.namespace_, cluster.name);
    struct pl_describe_node *node =
        add(d, parent, object_node(d, "KubeadmControlPlane", &kcp->meta));

    node->role = "ControlPlane";
    node->replicas = kcp->replicas;
    take_summary(d, node, &kcp->conditions, COND_AVAILABLE);
    add_verdicts(d, node);
    for (uint32_t i = range.first; i < range.end; i++) {
        if (o->machines.items[i].meta.labels.control_plane)
            add_machine(d, node, &o->machines.items[i]);
    }
    count_machines(node);
    sum_replicas(&parent->replicas, &node->replicas);
    add_etcd(d, node, pl__snapshot_workload(d->snapshot, cluster.namespace_, cluster.name));
}

static void add_deployment(struct pl_describe *d, struct pl_describe_node *parent,
                           const struct pl_machine_deployment *md, struct pl_range range,
                           struct pl_replicas *sum)
{
    const struct pl_objects *o = &d->snapshot->objects;
    struct pl_describe_node *node = add(d, parent, object_node(d, "MachineDeployment", &md->meta));

    node->replicas = md->replicas;
    take_summary(d, node, &md->conditions, COND_AVAILABLE);
    add_verdicts(d, node);
    for (uint32_t i = range.first; i < range.end; i++) {
        const struct pl_meta *meta = &o->machines.items[i].meta;
        if (pl__str_equal(meta->labels.deployment_name, md->meta.name))
            add_machine(d, node, &o->machines.items[i]);
    }
    count_machines(node);
    sum_replicas(sum, &node->replicas);
}

/* Machines that belong neither to a control plane nor to a deployment that is here. */
static void add_others(struct pl_describe *d, struct pl_describe_node *parent,
                       struct pl_range range)
{
    const struct pl_objects *o = &d->snapshot->objects;
    struct pl_describe_node *others = NULL;

    for (uint32_t i = range.first; i < range.end; i++) {
        const struct pl_meta *meta = &o->machines.items[i].meta;
        bool known = meta->labels.control_plane;
        for (uint32_t k = 0; k < o->machine_deployments.count && !known; k++) {
            const struct pl_meta *md = &o->machine_deployments.items[k].meta;
            known = pl__str_equal(md->name, meta->labels.deployment_name) &&
                    pl__str_equal(md->namespace_, meta->namespace_);
        }
        if (known)
            continue;
        if (!others)
            others = add(d, parent, (struct pl_describe_node){ .name = PL_STR("Other") });
        add_machine(d, others, &o->machines.items[i]);
    }
}

static void add_workers(struct pl_describe *d, struct pl_describe_node *parent,
                        struct cluster cluster)
{
    const struct pl_objects *o = &d->snapshot->objects;
    struct pl_range range = pl__snapshot_machines_of(d->snapshot, cluster.namespace_, cluster.name);
    struct pl_describe_node workers = { .name = PL_STR("Workers") };

    for (uint32_t i = 0; i < o->machine_deployments.count; i++) {
        if (same_cluster(cluster_of(&o->machine_deployments.items[i].meta), cluster))
            add_deployment(d, &workers, &o->machine_deployments.items[i], range, &parent->replicas);
    }
    for (uint32_t i = 0; i < o->machine_pools.count; i++) {
        const struct pl_machine_pool *pool = &o->machine_pools.items[i];
        if (same_cluster((struct cluster){ pool->meta.namespace_, pool->cluster_name }, cluster))
            add(d, &workers, object_node(d, "MachinePool", &pool->meta));
    }
    add_others(d, &workers, range);
    if (workers.child)
        add(d, parent, workers);
}

/* Not being connected matters only where there is something to connect to. */
static void add_connection(struct pl_describe *d, struct pl_describe_node *parent,
                           struct cluster cluster)
{
    const struct pl_workload *w =
        pl__snapshot_workload(d->snapshot, cluster.namespace_, cluster.name);
    struct pl_describe_node node = { .name = PL_STR("WorkloadCluster"), .optional = true };

    if (!w || !w->connection.present)
        return;
    const struct pl_connection *c = &w->connection;
    node.calls = c->state != CONNECTION_CONNECTED;
    node.color = node.calls ? COLOR_RED : COLOR_GREEN;
    node.status = pl__connection_state_name((enum pl_connection_state)c->state);
    node.message = c->error;
    node.since_ms = c->last_probe_success_ms;
    if (node.calls && c->last_probe_success_ms)
        node.since = age(d, c->last_probe_success_ms);
    add(d, parent, node);
}

static void add_cluster(struct pl_describe *d, struct pl_describe_node *roots,
                        struct cluster cluster)
{
    const struct pl_objects *o = &d->snapshot->objects;
    const struct pl_cluster *c =
        pl__snapshot_cluster(d->snapshot, cluster.namespace_, cluster.name);
    struct pl_describe_node *node =
        add(d, roots,
            (struct pl_describe_node){
                .kind = "Cluster", .namespace_ = cluster.namespace_, .name = cluster.name });

    if (c) {
        node->deleted = c->meta.deleted_ms != 0;
        take_summary(d, node, &c->conditions, COND_AVAILABLE);
    } else {
        node->status = PL_STR("Not in the input");
        node->color = COLOR_YELLOW;
    }
    if (c && c->paused)
        add(d, node,
            (struct pl_describe_node){ .name = PL_STR("Paused"),
                                       .is_condition = true,
                                       .optional = true,
                                       .calls = true,
                                       .status = PL_STR("True"),
                                       .color = COLOR_YELLOW });
    add_connection(d, node, cluster);
    for (uint32_t i = 0; i < o->kcps.count; i++) {
        if (same_cluster(cluster_of(&o->kcps.items[i].meta), cluster))
            add_control_plane(d, node, &o->kcps.items[i], cluster);
    }
    add_workers(d, node, cluster);
    sum_end(&node->replicas);
}

static void maybe_add(struct pl_describe *d, struct pl_describe_node *roots, struct cluster cluster,
                      bool from_object)
{
    if (cluster.name.len == 0 || (d->cluster.len && !pl__str_equal(d->cluster, cluster.name)) ||
        (d->namespace_.len && !pl__str_equal(d->namespace_, cluster.namespace_)))
        return;
    /* One that has no object may be named several times. */
    bool is_object = pl__snapshot_cluster(d->snapshot, cluster.namespace_, cluster.name) != NULL;
    if (is_object && !from_object)
        return;
    for (const struct pl_describe_node *other = roots->child; other && !is_object;
         other = other->next) {
        if (same_cluster((struct cluster){ other->namespace_, other->name }, cluster))
            return;
    }
    add_cluster(d, roots, cluster);
}

void pl__describe_build(struct pl_describe *d)
{
    const struct pl_objects *o = &d->snapshot->objects;
    struct pl_describe_node roots = { .name = { "", 0 } };

    for (uint32_t i = 0; i < o->clusters.count; i++)
        maybe_add(d, &roots,
                  (struct cluster){ o->clusters.items[i].meta.namespace_,
                                    o->clusters.items[i].meta.name },
                  true);
    /* A dump need not have the Cluster itself. */
    for (uint32_t i = 0; i < o->kcps.count; i++)
        maybe_add(d, &roots, cluster_of(&o->kcps.items[i].meta), false);
    for (uint32_t i = 0; i < o->machine_deployments.count; i++)
        maybe_add(d, &roots, cluster_of(&o->machine_deployments.items[i].meta), false);
    d->clusters = roots.child;
}
