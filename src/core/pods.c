/* core/pods.c - a Machine's four static Pods (semantics section 4). */
#include "core/pass.h"

static struct pl_str joined_reasons(struct pl_pass *p, const struct pl_pod *pod, bool waiting)
{
    struct pl_buf text;
    bool first = true;

    pl__buf_init(&text, p->arena, SIZE_MAX);
    for (uint32_t i = 0; i < pod->containers.count; i++) {
        const struct pl_container_status *c = &pod->containers.items[i];
        const struct pl_container_state *state = waiting ? &c->waiting : &c->terminated;
        if (!state->present)
            continue;
        if (!first)
            pl__buf_add_lit(&text, ", ");
        first = false;
        pl__buf_add(&text, state->reason);
    }
    return pl__buf_str(&text);
}

static enum pl_phase phase_of(struct pl_str phase)
{
    if (pl__str_equal(phase, PL_STR("Running")))
        return PHASE_RUNNING;
    if (pl__str_equal(phase, PL_STR("Pending")))
        return PHASE_PENDING;
    if (pl__str_equal(phase, PL_STR("Succeeded")) || pl__str_equal(phase, PL_STR("Failed")))
        return PHASE_ENDED;
    if (pl__str_equal(phase, PL_STR("Unknown")))
        return PHASE_UNKNOWN;
    return PHASE_OTHER;
}

static void pod_facts(const struct pl_pod *pod, struct pl_pod_facts *f)
{
    f->found = true;
    f->phase = phase_of(pod->phase);
    f->scheduled = pl__condition_is(&pod->conditions, COND_POD_SCHEDULED, PL_STATUS_TRUE);
    f->initialized = pl__condition_is(&pod->conditions, COND_INITIALIZED, PL_STATUS_TRUE);
    f->ready = pl__condition_is(&pod->conditions, COND_READY, PL_STATUS_TRUE);
    for (uint32_t i = 0; i < pod->containers.count; i++) {
        const struct pl_container_status *c = &pod->containers.items[i];
        f->waiting |= c->waiting.present;
        f->terminated |= c->terminated.present;
        f->crashed |= c->last_exit_code != 0;
    }
}

static bool is_unreachable(const struct pl_node *node)
{
    for (uint32_t i = 0; i < node->taints.count; i++) {
        const struct pl_taint *t = &node->taints.items[i];
        if (pl__str_equal(t->key, PL_STR("node.kubernetes.io/unreachable")) &&
            pl__str_equal(t->effect, PL_STR("NoExecute")))
            return true;
    }
    return false;
}

/* What holds for all four Pods of a Machine: rows 0 to 5. */
static void machine_facts(const struct pl_control_plane *cp, const struct pl_machine *m,
                          const struct pl_node *node, struct pl_pod_facts *f)
{
    f->nodes_failed = cp->workload->nodes_error.len > 0;
    f->has_node = m->node_name.len > 0;
    f->has_provider_id = m->provider_id.len > 0;
    f->deleting = m->meta.deleted_ms != 0;
    f->node_listed = node != NULL;
    if (node) {
        f->unreachable = is_unreachable(node);
        f->ready_unknown = pl__condition_is(&node->conditions, COND_READY, PL_STATUS_UNKNOWN);
    }
}

static void machine_evidence(struct pl_pass *p, struct pl_control_plane *cp,
                             const struct pl_machine *m, const struct pl_pod_facts *f,
                             struct pl_verdict *v)
{
    struct pl_str machine = pl__object_ref(p, "Machine", m->meta.namespace_, m->meta.name);
    struct pl_str node = pl__object_ref(p, "Node", (struct pl_str){ 0 }, m->node_name);

    if (f->nodes_failed) {
        pl__evidence(p, v, pl__object_ref(p, "Cluster", cp->kcp->meta.namespace_, cp->cluster_name),
                     "nodes", cp->workload->nodes_error, SOURCE_LIST);
        return;
    }
    pl__evidence(p, v, machine, "status.nodeRef.name", m->node_name, SOURCE_LIST);
    if (!f->has_node) {
        pl__evidence(p, v, machine, "spec.providerID", m->provider_id, SOURCE_LIST);
        return;
    }
    pl__evidence(p, v, node, "exists", f->node_listed ? PL_STR("true") : PL_STR("false"),
                 SOURCE_LIST);
    if (!f->node_listed)
        return;
    if (f->deleting)
        pl__evidence(p, v, machine, "metadata.deletionTimestamp", PL_STR("set"), SOURCE_LIST);
    else if (f->unreachable)
        pl__evidence(p, v, node, "spec.taints", PL_STR("node.kubernetes.io/unreachable:NoExecute"),
                     SOURCE_LIST);
    else if (f->ready_unknown)
        pl__evidence(p, v, node, "status.conditions[Ready].status", PL_STR("Unknown"), SOURCE_LIST);
}

static struct pl_str status_of(const struct pl_conditions *list, enum pl_condition_type type)
{
    const struct pl_condition *c = pl__condition_find(list, type);
    return c ? pl__str(pl_status_name((enum pl_status)c->status)) : (struct pl_str){ "", 0 };
}

static void pod_evidence(struct pl_pass *p, struct pl_str name, const struct pl_pod *pod,
                         const struct pl_pod_error *error, struct pl_verdict *v)
{
    struct pl_str object = pl__object_ref(p, "Pod", PL_STR("kube-system"), name);

    if (!p->explain)
        return;
    if (error) {
        pl__evidence(p, v, object, "error", error->text, SOURCE_LIST);
        return;
    }
    if (!pod) {
        pl__evidence(p, v, object, "exists", PL_STR("false"), SOURCE_LIST);
        return;
    }
    pl__evidence(p, v, object, "status.phase", pod->phase, SOURCE_LIST);
    if (phase_of(pod->phase) == PHASE_PENDING) {
        pl__evidence(p, v, object, "status.conditions[PodScheduled].status",
                     status_of(&pod->conditions, COND_POD_SCHEDULED), SOURCE_LIST);
        pl__evidence(p, v, object, "status.conditions[Initialized].status",
                     status_of(&pod->conditions, COND_INITIALIZED), SOURCE_LIST);
    }
    if (phase_of(pod->phase) == PHASE_RUNNING)
        pl__evidence(p, v, object, "status.conditions[Ready].status",
                     status_of(&pod->conditions, COND_READY), SOURCE_LIST);
    for (uint32_t i = 0; i < pod->containers.count; i++) {
        const struct pl_container_status *c = &pod->containers.items[i];
        if (c->waiting.present)
            pl__evidence(p, v, object, "status.containerStatuses[].state.waiting.reason",
                         c->waiting.reason, SOURCE_LIST);
        if (c->terminated.present)
            pl__evidence(p, v, object, "status.containerStatuses[].state.terminated.reason",
                         c->terminated.reason, SOURCE_LIST);
        if (c->last_exit_code)
            pl__evidence(p, v, object, "status.containerStatuses[].lastState.terminated.exitCode",
                         pl__str_format(p->arena, "%lld", (long long)c->last_exit_code),
                         SOURCE_LIST);
    }
}

/* Whether rows 0 to 5 leave it to the Pod itself. */
static bool needs_pod(const struct pl_pod_facts *f)
{
    return !f->nodes_failed && f->has_node && f->node_listed && !f->deleting && !f->unreachable &&
           !f->ready_unknown;
}

static void pod_judge(struct pl_pass *p, struct pl_control_plane *cp, struct pl_machine_state *s,
                      int component, struct pl_pod_facts f)
{
    const struct pl_machine *m = s->machine;
    const struct pl_workload *w = cp->workload;
    struct pl_verdict *v = &s->verdicts[component];
    const struct pl_pod_error *error = NULL;
    const struct pl_pod *pod = NULL;
    bool asks_pod = needs_pod(&f);

    machine_evidence(p, cp, m, &f, v);
    if (asks_pod) {
        char room[320];
        struct pl_str prefix = pl__static_pods[component];
        struct pl_str name = { room, prefix.len + m->node_name.len };

        /* A name of an object never gets this long (253); one that does names no Pod. */
        if (name.len < sizeof room) {
            memcpy(room, prefix.ptr, prefix.len);
            memcpy(room + prefix.len, m->node_name.ptr, m->node_name.len);
            error = pl__workload_pod_error(w, name);
            pod = error ? NULL : pl__workload_pod(w, name);
        }
        if (!error && !w->pods.present) {
            s->missing[component] = true;
            pl__missing_add(p, "Machine", &m->meta, v->type, pl__missing_workload(p, cp, "pods"));
            return;
        }
        f.read_failed = error != NULL;
        if (pod)
            pod_facts(pod, &f);
        if (p->explain)
            pod_evidence(p, pl__str_copy(p->arena, name), pod, error, v);
    }

    struct pl_text texts[] = {
        { "error", w->nodes_error },      { "node", m->node_name },
        { "providerID", m->provider_id }, { "infrastructure kind", m->infrastructure_kind },
        { "waiting reasons", { 0 } },     { "terminated reasons", { 0 } },
    };
    if (pod && f.waiting)
        texts[4].value = joined_reasons(p, pod, true);
    if (pod && f.terminated)
        texts[5].value = joined_reasons(p, pod, false);
    pl__verdict_judge(p, v, (enum pl_condition_type)component, &m->meta, &m->conditions,
                      &pl__pod_healthy, pl__judge(&pl__pod_healthy, pl__pod_facts(&f), p->profile),
                      texts, sizeof texts / sizeof texts[0]);
}

void pl__pods_judge(struct pl_pass *p, struct pl_control_plane *cp, struct pl_machine_state *s)
{
    const struct pl_node *node =
        s->machine->node_name.len ? pl__workload_node(cp->workload, s->machine->node_name) : NULL;
    struct pl_pod_facts f = { 0 };

    machine_facts(cp, s->machine, node, &f);
    for (int component = 0; component < POD_COUNT; component++) {
        if (component == COND_ETCD_POD && !cp->kcp->etcd_managed) {
            pl__verdict_keep_external(&s->verdicts[component], &s->machine->conditions,
                                      COND_ETCD_POD);
            continue;
        }
        pod_judge(p, cp, s, component, f);
    }
}
