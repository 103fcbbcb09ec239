/* core/health.c - EtcdClusterHealthy and ControlPlaneComponentsHealthy (semantics sections 3 to 6). */
#include "core/pass.h"

#include <assert.h>

#include "base/time.h"

#define KCP "KubeadmControlPlane"

/* --- a rung decides ---------------------------------------------------------------------------- */

static struct pl_str last_probe_text(struct pl_pass *p, const struct pl_control_plane *cp)
{
    struct pl_buf text;

    if (!cp->workload || cp->workload->connection.last_probe_success_ms == 0)
        return (struct pl_str){ "", 0 };
    pl__buf_init(&text, p->arena, 64);
    pl__buf_add_lit(&text, "Last successful probe at ");
    pl__time_add(&text, cp->workload->connection.last_probe_success_ms);
    return pl__buf_str(&text);
}

static void rung_evidence(struct pl_pass *p, struct pl_control_plane *cp, struct pl_verdict *v)
{
    const struct pl_kcp *kcp = cp->kcp;
    const struct pl_connection *c = cp->workload ? &cp->workload->connection : NULL;

    if (!p->explain)
        return;
    struct pl_str cluster = pl__object_ref(p, "Cluster", kcp->meta.namespace_, cp->cluster_name);
    struct pl_str control_plane = pl__object_ref(p, KCP, kcp->meta.namespace_, kcp->meta.name);
    const struct pl_condition *initialized = pl__condition_find(&kcp->conditions, COND_INITIALIZED);
    struct pl_buf time;

    pl__buf_init(&time, p->arena, 64);
    switch (cp->rung) {
    case RUNG_L00:
        pl__evidence(p, v, cluster, "status.initialization.infrastructureProvisioned",
                     PL_STR("false"), SOURCE_LIST);
        break;
    case RUNG_L0:
        pl__evidence(p, v, cluster, "spec.controlPlaneEndpoint",
                     pl__str_format(p->arena, "%.*s:%lld", PL_STR_ARG(cp->cluster->endpoint_host),
                                    (long long)cp->cluster->endpoint_port),
                     SOURCE_LIST);
        break;
    case RUNG_L1:
        pl__evidence(p, v, control_plane, "status.initialization.controlPlaneInitialized",
                     kcp->initialized ? PL_STR("true") : PL_STR("false"), SOURCE_LIST);
        pl__evidence(p, v, control_plane, "status.conditions[Initialized].status",
                     initialized ? pl__str(pl_status_name((enum pl_status)initialized->status))
                                 : PL_STR(""),
                     SOURCE_LIST);
        break;
    default:
        assert(c); /* the later rungs are about the connection */
        pl__time_add(&time, c->last_probe_success_ms);
        pl__evidence(p, v, cluster, "connection.lastProbeSuccessTime", pl__buf_str(&time),
                     SOURCE_PROBE);
        pl__evidence(p, v, cluster, "connection.consecutiveFailures",
                     pl__str_format(p->arena, "%lld", (long long)c->consecutive_failures),
                     SOURCE_CONNECTION);
        if (cp->rung == RUNG_L3 && initialized) {
            struct pl_buf since;
            pl__buf_init(&since, p->arena, 64);
            pl__time_add(&since, initialized->last_transition_ms);
            pl__evidence(p, v, control_plane, "status.conditions[Initialized].lastTransitionTime",
                         pl__buf_str(&since), SOURCE_LIST);
        }
        if (cp->rung == RUNG_L5)
            pl__evidence(p, v, cluster, "connection.error", c->error, SOURCE_CONNECTION);
    }
}

/* One of the two conditions, and the Machines' conditions [first, end) that feed it. */
struct half {
    enum pl_condition_type type;
    const struct pl_table *table;
    struct pl_verdict *verdict;
    int first, end;
    bool owned; /* this rung may touch the control plane's condition */
};

static void rung_on_machine(struct pl_pass *p, struct pl_control_plane *cp,
                            struct pl_machine_state *s, int type, bool keep, struct pl_str message)
{
    const struct pl_rule *rule = &pl__ladder.rules[cp->rung];
    struct pl_verdict *v = &s->verdicts[type];
    const char *reason = type == COND_ETCD_MEMBER ? pl__ladder_member_reason(cp->rung)
                                                  : pl__ladder_pod_reason(cp->rung, p->profile);
    bool etcd_part = type == COND_ETCD_POD || type == COND_ETCD_MEMBER;

    if (etcd_part && !cp->kcp->etcd_managed) {
        pl__verdict_keep_external(v, &s->machine->conditions, (enum pl_condition_type)type);
        return;
    }
    rung_evidence(p, cp, v);
    pl__verdict_by(v, rule->id, rule->when);
    if (keep || !reason)
        pl__verdict_keep(v, &s->machine->conditions, (enum pl_condition_type)type);
    else
        pl__verdict_set(p, v, &s->machine->meta, rule->says[p->profile].status, pl__str(reason),
                        message);
}

static void rung_apply(struct pl_pass *p, struct pl_control_plane *cp, const struct half *h,
                       uint32_t held)
{
    const struct pl_rule *rule = &pl__ladder.rules[cp->rung];
    const struct pl_outcome *says = &rule->says[p->profile];
    struct pl_verdict *v = h->verdict;
    bool keep = rule->mode == KEEP_IF_SET && v->stored_status != PL_STATUS_NONE;
    struct pl_text texts[] = { { "last probe", last_probe_text(p, cp) } };
    struct pl_str message = pl__message_fill(p->arena, says->message, texts, 1);

    for (size_t i = 0; i < cp->machine_count; i++) {
        for (int type = h->first; type < h->end; type++)
            rung_on_machine(p, cp, &cp->machines[i], type, keep, message);
    }
    if (!h->owned) {
        pl__verdict_keep_external(v, &cp->kcp->conditions, h->type);
        return;
    }
    rung_evidence(p, cp, v);
    pl__verdict_by(v, h->table->front_ids[cp->rung], rule->when);
    if (keep)
        pl__verdict_keep(v, &cp->kcp->conditions, h->type);
    else
        pl__verdict_set(p, v, &cp->kcp->meta, says->status, pl__str(says->reason), message);
    pl__verdict_also_held(p, v, &pl__ladder, held, h->table->front_ids);
}

/* --- the workload cluster could be read -------------------------------------------------------- */

/* Control plane Nodes that no Machine points at; none counts while a Machine waits for its Node. */
static size_t orphan_nodes(struct pl_pass *p, const struct pl_control_plane *cp,
                           const struct pl_node ***orphans)
{
    const struct pl_workload *w = cp->workload;
    const struct pl_node **found = NULL;
    size_t count = 0;

    if (w->nodes_error.len || pl__someone_provisioning(cp))
        return 0;
    for (uint32_t i = 0; i < w->nodes.count; i++) {
        if (pl__machine_on_node(cp, w->nodes.items[i].name))
            continue;
        if (!found)
            found = PL_NEW(p->arena, const struct pl_node *, w->nodes.count);
        found[count++] = &w->nodes.items[i];
    }
    *orphans = found;
    return count;
}

static void orphans_add(struct pl_pass *p, struct pl_verdict *v, struct pl_buf *text,
                        const struct pl_node **orphans, size_t count, const char *bullet)
{
    for (size_t i = 0; i < count; i++) {
        if (text->len)
            pl__buf_add_char(text, '\n');
        pl__buf_add(text, pl__str(bullet));
        pl__buf_add_lit(text, "Control plane Node ");
        pl__buf_add(text, orphans[i]->name);
        pl__buf_add_lit(text, " does not have a corresponding Machine");
        pl__evidence(p, v, pl__object_ref(p, "Node", (struct pl_str){ 0 }, orphans[i]->name),
                     "metadata.labels[node-role.kubernetes.io/control-plane]", PL_STR("present"),
                     SOURCE_LIST);
    }
}

/* The Machines' conditions are the evidence for the control plane's. */
static void feeding_evidence(struct pl_pass *p, const struct pl_control_plane *cp,
                             struct pl_verdict *v, int first, int end)
{
    for (size_t i = 0; p->explain && i < cp->machine_count; i++) {
        const struct pl_machine_state *s = &cp->machines[i];
        const struct pl_meta *meta = &s->machine->meta;
        struct pl_str object = pl__object_ref(p, "Machine", meta->namespace_, meta->name);
        for (int type = first; type < end; type++) {
            const struct pl_verdict *own = &s->verdicts[type];
            if (own->status == PL_STATUS_NONE)
                continue;
            struct pl_str path =
                pl__str_format(p->arena, "status.conditions[%s].status", own->type);
            pl__evidence(p, v, object, path.ptr, pl__str(pl_status_name(own->status)), SOURCE_LIST);
        }
    }
}

static void components_judge(struct pl_pass *p, struct pl_control_plane *cp,
                             const struct pl_node **orphans, size_t orphan_count)
{
    struct pl_verdict *v = &cp->components;
    /* With external etcd a stored EtcdPodHealthy is nobody's: it neither counts nor is shown. */
    int end = cp->kcp->etcd_managed ? POD_COUNT : COND_ETCD_POD;
    struct pl_aggregate sum = pl__aggregate(p, cp, 0, end, NULL);
    struct pl_components_facts f = {
        .nodes_failed = cp->workload->nodes_error.len > 0,
        .orphan_node = orphan_count > 0,
        .bad = sum.bad,
        .unknown = sum.unknown,
        .good = sum.good,
    };
    struct pl_text texts[] = { { "error", cp->workload->nodes_error },
                               { "aggregated issues", sum.blocks } };

    feeding_evidence(p, cp, v, 0, end);
    if (orphan_count) {
        struct pl_buf text;
        pl__buf_init(&text, p->arena, SIZE_MAX);
        pl__buf_add(&text, sum.blocks);
        orphans_add(p, v, &text, orphans, orphan_count, "* ");
        texts[1].value = pl__buf_str(&text);
    }
    pl__verdict_judge(p, v, COND_COMPONENTS, &cp->kcp->meta, &cp->kcp->conditions,
                      &pl__components_healthy,
                      pl__judge(&pl__components_healthy, pl__components_facts(&f), p->profile),
                      texts, sizeof texts / sizeof texts[0]);
}

/* What members and Machines do not have in common. */
struct mismatch {
    const struct pl_etcd_member **members; /* without a Machine, in the order listed */
    size_t member_count;
    size_t machine_count; /* without a member */
};

static struct mismatch mismatch_find(struct pl_pass *p, const struct pl_control_plane *cp)
{
    const struct pl_etcd_view *etcd = &cp->workload->etcd;
    struct mismatch found = { 0 };

    if (cp->workload->nodes_error.len || !pl__members_compared(p, cp))
        return found;
    for (uint32_t i = 0; i < etcd->members.count; i++) {
        if (pl__machine_on_node(cp, etcd->members.items[i].name))
            continue;
        if (!found.members)
            found.members = PL_NEW(p->arena, const struct pl_etcd_member *, etcd->members.count);
        found.members[found.member_count++] = &etcd->members.items[i];
    }
    for (size_t i = 0; i < cp->machine_count; i++)
        found.machine_count += cp->machines[i].lacks_member;
    return found;
}

static void mismatch_evidence(struct pl_pass *p, struct pl_control_plane *cp,
                              const struct mismatch *m)
{
    for (size_t i = 0; p->explain && i < m->member_count; i++)
        pl__evidence(p, &cp->etcd,
                     pl__object_ref(p, "etcd", cp->kcp->meta.namespace_, cp->cluster_name),
                     "members[].name", pl__member_label(p->arena, m->members[i]), SOURCE_ETCD);
}

/* "Machine a has no etcd member, etcd member x has no Machine": sorted, comma-joined. */
static struct pl_str mismatch_details(struct pl_pass *p, const struct pl_control_plane *cp,
                                      const struct mismatch *m)
{
    struct pl_str *details = PL_NEW(p->arena, struct pl_str, m->machine_count + m->member_count);
    size_t count = 0;
    struct pl_buf text;

    for (size_t i = 0; i < cp->machine_count; i++) {
        if (cp->machines[i].lacks_member)
            details[count++] = pl__str_format(p->arena, "Machine %.*s has no etcd member",
                                              PL_STR_ARG(cp->machines[i].machine->meta.name));
    }
    for (size_t i = 0; i < m->member_count; i++) {
        struct pl_str label = pl__member_label(p->arena, m->members[i]);
        details[count++] =
            pl__str_format(p->arena, "etcd member %.*s has no Machine", PL_STR_ARG(label));
    }
    pl__names_sort(details, count);
    pl__buf_init(&text, p->arena, SIZE_MAX);
    pl__names_add(&text, details, count, count);
    return pl__buf_str(&text);
}

/* How the documents tell it: every row that holds contributes its text, and texts that are not blocks
 * get a bullet when there is more than one. */
static struct pl_str etcd_issues(struct pl_pass *p, struct pl_control_plane *cp,
                                 struct pl_str blocks, struct pl_str connect_error,
                                 const struct mismatch *m, const struct pl_node **orphans,
                                 size_t orphan_count)
{
    bool mismatched = m->member_count || m->machine_count;
    size_t text_count = (size_t)(blocks.len > 0) + (size_t)(connect_error.len > 0) +
                        (size_t)mismatched + orphan_count;
    const char *bullet = text_count > 1 ? "* " : "";
    struct pl_buf text;

    pl__buf_init(&text, p->arena, SIZE_MAX);
    pl__buf_add(&text, blocks);
    if (connect_error.len) {
        if (text.len)
            pl__buf_add_char(&text, '\n');
        pl__buf_add(&text, pl__str(bullet));
        pl__buf_add(&text, connect_error);
    }
    if (mismatched) {
        if (text.len)
            pl__buf_add_char(&text, '\n');
        pl__buf_add(&text, pl__str(bullet));
        pl__buf_add_lit(&text, "Etcd members do not match Machines: ");
        pl__buf_add(&text, mismatch_details(p, cp, m));
    }
    orphans_add(p, &cp->etcd, &text, orphans, orphan_count, bullet);
    return pl__buf_str(&text);
}

/* How Cluster API tells it: blocks of Machines, then findings. */
static struct pl_str etcd_aggregated_issues(struct pl_pass *p, struct pl_control_plane *cp,
                                            const struct mismatch *m,
                                            const struct pl_node **orphans, size_t orphan_count)
{
    struct pl_aggregate all = pl__aggregate(p, cp, COND_ETCD_MEMBER, MACHINE_COND_COUNT, NULL);
    struct pl_buf text;

    pl__buf_init(&text, p->arena, SIZE_MAX);
    pl__buf_add(&text, all.blocks);
    for (size_t i = 0; i < m->member_count; i++) {
        if (text.len)
            pl__buf_add_char(&text, '\n');
        pl__buf_add_lit(&text, "* Etcd member ");
        pl__buf_add(&text, pl__member_label(p->arena, m->members[i]));
        pl__buf_add_lit(&text, " does not have a corresponding Machine");
    }
    orphans_add(p, &cp->etcd, &text, orphans, orphan_count, "* ");
    return pl__buf_str(&text);
}

static bool told_by_another_row(const struct pl_machine_state *s)
{
    return s->lacks_member || s->connect_failed;
}

static void etcd_judge(struct pl_pass *p, struct pl_control_plane *cp,
                       const struct pl_node **orphans, size_t orphan_count)
{
    struct pl_verdict *v = &cp->etcd;
    struct pl_aggregate sum =
        pl__aggregate(p, cp, COND_ETCD_MEMBER, MACHINE_COND_COUNT, told_by_another_row);
    struct mismatch mismatch = mismatch_find(p, cp);
    struct pl_str connect_error = { 0 };

    for (size_t i = 0; i < cp->machine_count; i++) {
        if (cp->machines[i].connect_failed)
            connect_error = cp->machines[i].verdicts[COND_ETCD_MEMBER].message;
    }
    struct pl_etcd_facts f = {
        .external = !cp->kcp->etcd_managed,
        .nodes_failed = cp->workload->nodes_error.len > 0,
        .bad = sum.bad,
        .mismatch = mismatch.member_count || mismatch.machine_count,
        .orphan_node = orphan_count > 0,
        .unknown = sum.unknown,
        .connect_failed = connect_error.len > 0,
        .good = sum.good,
    };
    struct pl_judgement j = pl__judge(&pl__etcd_healthy, pl__etcd_facts(&f), p->profile);
    struct pl_text texts[] = { { "issues", { 0 } }, { "aggregated issues", { 0 } } };

    feeding_evidence(p, cp, v, COND_ETCD_MEMBER, MACHINE_COND_COUNT);
    mismatch_evidence(p, cp, &mismatch);
    if (f.bad || f.mismatch || f.orphan_node || f.unknown || f.connect_failed) {
        if (p->profile == PL_PROFILE_TABLES)
            texts[0].value =
                etcd_issues(p, cp, sum.blocks, connect_error, &mismatch, orphans, orphan_count);
        else
            texts[1].value = etcd_aggregated_issues(p, cp, &mismatch, orphans, orphan_count);
    }
    pl__verdict_judge(p, v, COND_ETCD_CLUSTER, &cp->kcp->meta, &cp->kcp->conditions,
                      &pl__etcd_healthy, j, texts, sizeof texts / sizeof texts[0]);
}

/* --- all of it --------------------------------------------------------------------------------- */

static bool some_missing(const struct pl_control_plane *cp, int first, int end)
{
    for (size_t i = 0; i < cp->machine_count; i++) {
        for (int type = first; type < end; type++) {
            if (cp->machines[i].missing[type])
                return true;
        }
    }
    return false;
}

/* Nothing of this half can be judged, Machines included. */
static void half_missing(struct pl_pass *p, struct pl_control_plane *cp, const struct half *h,
                         struct pl_str lacking)
{
    if (h->owned)
        pl__missing_add(p, KCP, &cp->kcp->meta, h->verdict->type, lacking);
    for (size_t i = 0; i < cp->machine_count; i++) {
        struct pl_machine_state *s = &cp->machines[i];
        for (int type = h->first; type < h->end; type++) {
            if ((type == COND_ETCD_POD || type == COND_ETCD_MEMBER) && !cp->kcp->etcd_managed)
                continue;
            s->missing[type] = true;
            pl__missing_add(p, "Machine", &s->machine->meta, s->verdicts[type].type, lacking);
        }
    }
}

/* The state of the world was read: Machines first, then the control plane from them. */
static void inspect(struct pl_pass *p, struct pl_control_plane *cp, const struct half *etcd,
                    const struct half *components)
{
    const struct pl_workload *w = cp->workload;
    const struct pl_node **orphans = NULL;

    if (!w->nodes.present && !w->nodes_error.len) {
        struct pl_str lacking = pl__missing_workload(p, cp, "nodes");
        if (cp->kcp->etcd_managed)
            half_missing(p, cp, etcd, lacking);
        half_missing(p, cp, components, lacking);
        return;
    }
    size_t orphan_count = orphan_nodes(p, cp, &orphans);

    for (size_t i = 0; i < cp->machine_count; i++)
        pl__pods_judge(p, cp, &cp->machines[i]);
    if (some_missing(cp, components->first, components->end))
        pl__missing_add(p, KCP, &cp->kcp->meta, cp->components.type,
                        pl__missing_workload(p, cp, "pods"));
    else
        components_judge(p, cp, orphans, orphan_count);

    if (!cp->kcp->etcd_managed) {
        for (size_t i = 0; i < cp->machine_count; i++)
            pl__verdict_keep_external(&cp->machines[i].verdicts[COND_ETCD_MEMBER],
                                      &cp->machines[i].machine->conditions, COND_ETCD_MEMBER);
        pl__verdict_keep_external(&cp->etcd, &cp->kcp->conditions, COND_ETCD_CLUSTER);
        return;
    }
    pl__members_judge(p, cp);
    if (some_missing(cp, etcd->first, etcd->end))
        pl__missing_add(p, KCP, &cp->kcp->meta, cp->etcd.type,
                        pl__missing_workload(p, cp, pl__etcd_lacking(p, cp)));
    else
        etcd_judge(p, cp, orphans, orphan_count);
}

void pl__health_judge(struct pl_pass *p, struct pl_control_plane *cp)
{
    bool deleting = cp->kcp->meta.deleted_ms != 0;
    /* Cluster API writes the condition on the ladder's rungs even for external etcd; the document
     * says it never does. */
    struct half etcd = {
        COND_ETCD_CLUSTER,  &pl__etcd_healthy,
        &cp->etcd,          COND_ETCD_MEMBER,
        MACHINE_COND_COUNT, cp->kcp->etcd_managed || p->profile == PL_PROFILE_CLUSTER_API_1_12
    };
    struct half components = { COND_COMPONENTS, &pl__components_healthy,
                               &cp->components, 0,
                               POD_COUNT,       true };
    struct pl_str lacking = { 0 };
    uint32_t held = 0;

    p->etcd_observed_ms = cp->workload ? cp->workload->etcd.observed_ms : 0;
    cp->rung = pl__ladder_climb(p, cp, &held, &lacking);
    if (deleting && cp->machine_count == 0) {
        /* With no Machine left there is nothing to say; what was said stays. */
        pl__verdict_keep(&cp->etcd, &cp->kcp->conditions, COND_ETCD_CLUSTER);
        pl__verdict_keep(&cp->components, &cp->kcp->conditions, COND_COMPONENTS);
        pl__verdict_by(&cp->etcd, "Deleting/2", "deleting, no control plane Machine left");
        pl__verdict_by(&cp->components, "Deleting/2", "deleting, no control plane Machine left");
        return;
    }
    if (cp->rung < 0) {
        half_missing(p, cp, &etcd, lacking);
        half_missing(p, cp, &components, lacking);
        return;
    }
    if (cp->rung == RUNG_PASSED) {
        inspect(p, cp, &etcd, &components);
        return;
    }
    rung_apply(p, cp, &etcd, held);
    rung_apply(p, cp, &components, held);
    cp->asks_for_error = pl__ladder.rules[cp->rung].next == NEXT_ERROR && !deleting;
}
