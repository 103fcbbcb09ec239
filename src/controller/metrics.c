/* controller/metrics.c - what the controller counts, as Prometheus text.
 *
 * The names that existing dashboards of controller-runtime and Cluster API read, and our own with the
 * prefix plimsoll_. */
#include "controller/internal.h"

#include "core/evaluate.h"

static void head(struct pl_buf *b, const char *name, const char *type, const char *help)
{
    pl__buf_printf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static const char *const controllers[] = { "kubeadmcontrolplane", "machinedeployment" };

static void reconcile_metrics(struct pl_controller *c, struct pl_buf *b)
{
    static const char *const results[] = { "success", "error", "requeue" };
    uint64_t depth[2] = { 0 };

    head(b, "controller_runtime_reconcile_total", "counter",
         "Total number of reconciliations per controller");
    for (int k = 0; k < 2; k++) {
        for (int r = 0; r < 3; r++)
            pl__buf_printf(
                b, "controller_runtime_reconcile_total{controller=\"%s\",result=\"%s\"} %llu\n",
                controllers[k], results[r], (unsigned long long)c->counts.reconciles[k][r]);
    }
    for (uint32_t i = 0; i < c->queue.count; i++) {
        const struct pl_work *w = (const struct pl_work *)(const void *)c->queue.heap[i];
        depth[w->resource == RESOURCE_MACHINE_DEPLOYMENTS] += w->timer.due_ms <= c->now.mono_ms;
    }
    head(b, "workqueue_depth", "gauge", "Objects that wait to be reconciled now");
    for (int k = 0; k < 2; k++)
        pl__buf_printf(b, "workqueue_depth{controller=\"%s\",name=\"%s\"} %llu\n", controllers[k],
                       controllers[k], (unsigned long long)depth[k]);
    head(b, "workqueue_adds_total", "counter", "Total number of adds handled by the work queue");
    for (int k = 0; k < 2; k++)
        pl__buf_printf(b, "workqueue_adds_total{controller=\"%s\",name=\"%s\"} %llu\n",
                       controllers[k], controllers[k], (unsigned long long)c->counts.adds[k]);
}

static void label_add(struct pl_buf *b, struct pl_str value)
{
    for (size_t i = 0; i < value.len; i++) {
        if (value.ptr[i] == '\\' || value.ptr[i] == '"')
            pl__buf_add_char(b, '\\');
        if (value.ptr[i] == '\n')
            pl__buf_add_lit(b, "\\n");
        else
            pl__buf_add_char(b, value.ptr[i]);
    }
}

/* One line for each status of a stored condition: 1 for the one it has. */
static void condition_lines(struct pl_buf *b, const char *name, const struct pl_entry *e,
                            const struct pl_meta *meta, const struct pl_condition *condition)
{
    static const enum pl_status all[] = { PL_STATUS_TRUE, PL_STATUS_FALSE, PL_STATUS_UNKNOWN };

    for (int s = 0; s < 3; s++) {
        pl__buf_printf(b, "%s{cluster_name=\"%s\",name=\"", name, e->name);
        label_add(b, meta->name);
        pl__buf_printf(b, "\",namespace=\"%s\",type=\"%s\",status=\"%s\"} %d\n", e->namespace_,
                       pl__condition_type_name((enum pl_condition_type)condition->type),
                       pl_status_name(all[s]), condition->status == all[s]);
    }
}

static void conditions_of(struct pl_buf *b, const char *name, const struct pl_entry *e,
                          const struct pl_meta *meta, const struct pl_conditions *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        condition_lines(b, name, e, meta, &list->items[i]);
}

static void condition_metrics(struct pl_controller *c, struct pl_buf *b)
{
    static const char kcp_name[] = "capi_kubeadmcontrolplane_status_condition";
    static const char md_name[] = "capi_machinedeployment_status_condition";

    head(b, kcp_name, "gauge", "The condition of a kubeadmcontrolplane");
    for (const struct pl_entry *e = c->world.first; e; e = e->next) {
        for (const struct pl_item *i = e->items[RESOURCE_KCPS]; i; i = i->next_in_entry)
            conditions_of(b, kcp_name, e, i->object,
                          &((const struct pl_kcp *)i->object)->conditions);
    }
    head(b, md_name, "gauge", "The condition of a machinedeployment");
    for (const struct pl_entry *e = c->world.first; e; e = e->next) {
        for (const struct pl_item *i = e->items[RESOURCE_MACHINE_DEPLOYMENTS]; i;
             i = i->next_in_entry)
            conditions_of(b, md_name, e, i->object,
                          &((const struct pl_machine_deployment *)i->object)->conditions);
    }
}

static void evidence_age(const struct pl_controller *c, struct pl_buf *b, const struct pl_entry *e,
                         const char *source, int64_t since_wall_ms)
{
    pl__buf_printf(b,
                   "plimsoll_evidence_age_seconds{cluster_name=\"%s\",cluster_namespace=\"%s\","
                   "source=\"%s\"} %.3f\n",
                   e->name, e->namespace_, source, (double)(c->now.wall_ms - since_wall_ms) / 1000);
}

static void remote_metrics(struct pl_controller *c, struct pl_buf *b)
{
    head(b, "capi_cluster_cache_connection_up", "gauge",
         "Whether the connection to the cluster is up");
    for (const struct pl_entry *e = c->world.first; e; e = e->next)
        pl__buf_printf(
            b,
            "capi_cluster_cache_connection_up{cluster_name=\"%s\",cluster_namespace=\"%s\"} %d\n",
            e->name, e->namespace_, e->remote.state == REMOTE_UP);
    head(b, "plimsoll_evidence_age_seconds", "gauge",
         "Seconds since the last successful probe of the cluster, and since the last answer about "
         "its etcd");
    for (const struct pl_entry *e = c->world.first; e; e = e->next) {
        if (e->remote.last_success_wall_ms)
            evidence_age(c, b, e, "probe", e->remote.last_success_wall_ms);
        if (e->remote.etcd.view)
            evidence_age(c, b, e, "etcd", e->remote.etcd.observed_wall_ms);
    }
    head(b, "plimsoll_etcd_quorum_tolerance", "gauge",
         "etcd members that can fail before the cluster has no quorum");
    for (const struct pl_entry *e = c->world.first; e; e = e->next) {
        int tolerance = pl__remote_etcd_tolerance(e);
        if (tolerance >= 0)
            pl__buf_printf(
                b,
                "plimsoll_etcd_quorum_tolerance{cluster_name=\"%s\",cluster_namespace=\"%s\"} %d\n",
                e->name, e->namespace_, tolerance);
    }
}

/* Our verdicts, judged afresh: with reason and row id, and whether what is stored says the same. */
static void verdict_metrics(struct pl_controller *c, struct pl_now now, struct pl_buf *b)
{
    struct pl_snapshot *s = PL_NEW(&c->scratch, struct pl_snapshot, 1);
    struct pl_evaluate_options options = { c->options.profile, false };
    const struct pl_report *report = NULL;
    size_t pending;

    if (pl_controller_snapshot(c, (struct pl_str){ 0 }, (struct pl_str){ 0 }, now, &c->scratch, s,
                               &pending, NULL) < 0 ||
        pl__evaluate(s, options, &c->scratch, &report, NULL) < 0)
        return;
    head(b, "plimsoll_condition", "gauge", "A condition as judged now, with the row that decided");
    for (size_t i = 0; i < report->object_count; i++) {
        const struct pl_object *o = &report->objects[i];
        if (strcmp(o->kind, "Machine") == 0)
            continue;
        for (size_t k = 0; k < o->verdict_count; k++) {
            const struct pl_verdict *v = &o->verdicts[k];
            pl__buf_printf(
                b,
                "plimsoll_condition{kind=\"%s\",namespace=\"%.*s\",name=\"%.*s\",type=\"%s\","
                "status=\"%s\",reason=\"",
                o->kind, PL_STR_ARG(o->namespace_), PL_STR_ARG(o->name), v->type,
                pl_status_name(v->status));
            label_add(b, v->reason);
            pl__buf_printf(b, "\",row=\"%s\"} 1\n", v->row);
        }
    }
}

static void own_metrics(struct pl_controller *c, struct pl_buf *b)
{
    static const char *const bounds[] = { "0.001", "0.002", "0.005", "0.01", "0.025", "0.05",
                                          "0.1",   "0.25",  "0.5",   "1",    "5",     "+Inf" };
    uint64_t sum = 0, disagreements = 0;

    for (const struct pl_entry *e = c->world.first; e; e = e->next) {
        for (const struct pl_item *i = e->items[RESOURCE_KCPS]; i; i = i->next_in_entry)
            disagreements += i->work->disagreements;
        for (const struct pl_item *i = e->items[RESOURCE_MACHINE_DEPLOYMENTS]; i;
             i = i->next_in_entry)
            disagreements += i->work->disagreements;
    }
    head(b, "plimsoll_disagreements", "gauge",
         "Objects whose stored conditions say something else than the last judgement");
    pl__buf_printf(b, "plimsoll_disagreements %llu\n", (unsigned long long)disagreements);
    head(b, "plimsoll_cause_to_condition_seconds", "histogram",
         "From the arrival of a change to the answered write of the condition it caused");
    for (int i = 0; i < 12; i++) {
        sum += c->counts.cause_buckets[i];
        pl__buf_printf(b, "plimsoll_cause_to_condition_seconds_bucket{le=\"%s\"} %llu\n", bounds[i],
                       (unsigned long long)sum);
    }
    pl__buf_printf(b,
                   "plimsoll_cause_to_condition_seconds_sum "
                   "%.6f\nplimsoll_cause_to_condition_seconds_count %llu\n",
                   c->counts.cause_sum_s, (unsigned long long)c->counts.cause_count);

    const struct {
        const char *name, *help;
        uint64_t value;
    } counters[] = {
        { "plimsoll_writes_total", "Status writes sent", c->counts.writes },
        { "plimsoll_write_errors_total", "Status writes that failed", c->counts.write_errors },
        { "plimsoll_writes_saved_total", "Objects looked at that needed no write",
          c->counts.writes_saved },
        { "plimsoll_steps_total", "Acting steps done", c->counts.steps },
        { "plimsoll_step_errors_total", "Acting steps that failed or were overtaken",
          c->counts.step_errors },
        { "plimsoll_events_total", "Kubernetes Events sent", c->counts.events_sent },
        { "plimsoll_lists_total", "Pages of lists asked for", c->counts.lists },
        { "plimsoll_watches_total", "Watches opened", c->counts.watches },
        { "plimsoll_watch_events_total", "Events that watches delivered", c->counts.watch_events },
        { "plimsoll_relists_total", "Times a kind was read anew after a failure",
          c->counts.relists },
        { "plimsoll_etcd_observations_total", "Times the etcd of a cluster was asked",
          c->counts.etcd_observations },
        { "plimsoll_etcd_observation_failures_total", "Times that gave no answer",
          c->counts.etcd_failures },
    };
    for (size_t i = 0; i < sizeof counters / sizeof counters[0]; i++) {
        head(b, counters[i].name, "counter", counters[i].help);
        pl__buf_printf(b, "%s %llu\n", counters[i].name, (unsigned long long)counters[i].value);
    }
    head(b, "plimsoll_cached_objects", "gauge", "Objects in the cache, by resource");
    for (int i = 0; i < RESOURCE_MANAGEMENT_COUNT; i++)
        pl__buf_printf(b, "plimsoll_cached_objects{resource=\"%s\"} %u\n", pl__resources[i].plural,
                       c->world.stores[i].count);
}

void pl_controller_metrics(struct pl_controller *c, struct pl_now now, struct pl_buf *out)
{
    c->now = now;
    pl__arena_reset(&c->scratch);
    reconcile_metrics(c, out);
    /* Without an election there is nobody to give way to. */
    head(out, "leader_election_master_status", "gauge", "Whether this instance leads");
    pl__buf_printf(out, "leader_election_master_status{name=\"%s\"} %d\n",
                   c->options.lease_name ? c->options.lease_name : "plimsoll",
                   pl_controller_is_leader(c));
    remote_metrics(c, out);
    condition_metrics(c, out);
    verdict_metrics(c, now, out);
    own_metrics(c, out);
}
