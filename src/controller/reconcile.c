/* controller/reconcile.c - snapshot -> engine -> what to write.
 *
 * A reconcile looks at the whole state, never at what changed. It builds a snapshot of one cluster from
 * the cache, has the engine judge it, compares with what is stored and applies what differs: for each
 * object one Server-Side Apply of *all* conditions that are ours there, for what is left out is removed.
 * While a write is under way no second reconcile of that object starts; a change that comes meanwhile is
 * looked at afterwards. */
#include "controller/internal.h"

#include "base/planted.h"
#include "controller/kevents.h"
#include "core/evaluate.h"

enum {
    FIRST_LOOK_MS = 10 * 1000,
    WRITE_TIMEOUT_MS = 30 * 1000,
    BACKOFF_BASE_MS = 1000,
    BACKOFF_MAX_MS = 60 * 1000,
    ROUNDS_BURST = 20,     /* of writing for one object at once ... */
    ROUND_PERIOD_MS = 500, /* ... then one in this time */
    CONFLICT_RETRY_MS = 10,
    BUSY_RETRY_MS = 100,
    MESSAGE_BYTES_MAX = 32768, /* maxLength of a condition's message */
    CONFLICTS_MAX = 5,         /* in a row, before they count as any failure */
    RETRY_AFTER_S_MAX = 5 * 60,
    ETCD_REFUSALS_MAX = 3, /* in a row, then the plan knows of it */
};

/* --- waking ----------------------------------------------------------------------------------- */

static void wake(struct pl_controller *c, struct pl_item *first, struct pl_now now)
{
    for (struct pl_item *item = first; item; item = item->next_in_entry) {
        struct pl_work *w = item->work;
        if (!w->cause_ms)
            w->cause_ms = now.mono_ms;
        /* After a failure its own backoff decides: events must not turn an outage into a storm. */
        if (w->in_flight)
            w->again = true;
        else
            pl__queue_add(c, w, w->retry_ms > now.mono_ms ? w->retry_ms : now.mono_ms);
    }
}

void pl__wake_entry(struct pl_controller *c, struct pl_entry *e, struct pl_now now)
{
    e->changes = ++c->changes;
    if (c->options.reads_only || !pl_controller_synced(c))
        return; /* when the first sync is complete everything is woken */
    wake(c, e->items[RESOURCE_KCPS], now);
    wake(c, e->items[RESOURCE_MACHINE_DEPLOYMENTS], now);
}

/* --- the snapshot ------------------------------------------------------------------------------ */

/* Which Machines a reconcile has to look at. */
static bool machine_wanted(const struct pl_work *w, const struct pl_machine *m)
{
    if (w->resource == RESOURCE_KCPS) {
        const struct pl_kcp *kcp = w->item->object;
        return m->meta.labels.control_plane || kcp->meta.deleted_ms; /* workers block a deletion */
    }
    const struct pl_machine_deployment *md = w->item->object;
    return !m->meta.labels.deployment_name.len ||
           pl__str_equal(m->meta.labels.deployment_name, md->meta.name);
}

static bool any(const struct pl_work *w, const struct pl_machine *m)
{
    (void)w;
    (void)m;
    return true;
}

/* Copies the objects of one kind as an array of structs; what they point at is borrowed. */
static void copy_list(const struct pl_item *first, struct pl_arena *arena, struct pl_list *list,
                      size_t size, const struct pl_work *w,
                      bool (*wanted)(const struct pl_work *, const struct pl_machine *))
{
    size_t count = 0;

    for (const struct pl_item *i = first; i; i = i->next_in_entry)
        count += wanted(w, i->object);
    char *to = pl__arena_array(arena, count, size);
    list->items = to;
    list->count = (uint32_t)count;
    list->present = true;
    for (const struct pl_item *i = first; i; i = i->next_in_entry) {
        if (!wanted(w, i->object))
            continue;
        memcpy(to, i->object, size);
        to += size;
    }
}

#define COPY(resource, field, wanted_)                                                \
    copy_list(e->items[resource], arena, (struct pl_list *)(void *)&s->objects.field, \
              sizeof *s->objects.field.items, w, wanted_)

static void snapshot_build(const struct pl_controller *c, const struct pl_work *w,
                           struct pl_arena *arena, struct pl_snapshot *s)
{
    const struct pl_entry *e = w->item->entry;

    s->source = PL_STR("live");
    s->now_ms = c->now.wall_ms;
    s->grace_period_s = c->options.grace_period_s;
    COPY(RESOURCE_CLUSTERS, clusters, any);
    COPY(RESOURCE_MACHINES, machines, machine_wanted);
    if (w->resource == RESOURCE_KCPS) {
        s->objects.kcps.items = PL_NEW(arena, struct pl_kcp, 1);
        s->objects.kcps.items[0] = *(const struct pl_kcp *)w->item->object;
        s->objects.kcps.count = 1;
        COPY(RESOURCE_MACHINE_POOLS, machine_pools, any);
        s->workloads.items = PL_NEW(arena, struct pl_workload, 1);
        s->workloads.count = 1;
        pl__remote_observe(e, arena, &s->workloads.items[0]);
        if (w->act && w->act->templates_read)
            memcpy(&s->templates, &w->act->templates, sizeof s->templates);
    } else {
        s->objects.machine_deployments.items = PL_NEW(arena, struct pl_machine_deployment, 1);
        s->objects.machine_deployments.items[0] =
            *(const struct pl_machine_deployment *)w->item->object;
        s->objects.machine_deployments.count = 1;
        COPY(RESOURCE_MACHINE_SETS, machine_sets, any);
        COPY(RESOURCE_KCPS, other_kcps, any); /* for preflight checks; not judged here */
    }
}

/* The lists of a snapshot that hold objects of the management cluster. */
struct listed {
    struct pl_list *list;
    enum pl_resource_id resource;
};
enum { LISTED_COUNT = 7 };

static void listed_fill(struct pl_snapshot *s, struct listed lists[LISTED_COUNT])
{
    lists[0] = (struct listed){ (void *)&s->objects.clusters, RESOURCE_CLUSTERS };
    lists[1] = (struct listed){ (void *)&s->objects.kcps, RESOURCE_KCPS };
    lists[2] = (struct listed){ (void *)&s->objects.machines, RESOURCE_MACHINES };
    lists[3] =
        (struct listed){ (void *)&s->objects.machine_deployments, RESOURCE_MACHINE_DEPLOYMENTS };
    lists[4] = (struct listed){ (void *)&s->objects.machine_sets, RESOURCE_MACHINE_SETS };
    lists[5] = (struct listed){ (void *)&s->objects.machine_health_checks,
                                RESOURCE_MACHINE_HEALTH_CHECKS };
    lists[6] = (struct listed){ (void *)&s->objects.machine_pools, RESOURCE_MACHINE_POOLS };
}

/* No larger than what these entries need: one of a thousand clusters is looked at by itself. */
static void listed_reserve(struct listed *listed, struct pl_entry *const *entries, size_t count,
                           struct pl_arena *arena)
{
    size_t room = 0;

    for (size_t k = 0; k < count; k++)
        for (const struct pl_item *i = entries[k]->items[listed->resource]; i; i = i->next_in_entry)
            room++;
    listed->list->items = pl__arena_array(arena, room, pl__resources[listed->resource].shape->size);
    listed->list->present = true;
}

static int snapshot_take(struct pl_controller *c, struct pl_entry *const *entries, size_t count,
                         struct pl_now now, struct pl_arena *arena, struct pl_snapshot *s,
                         size_t *pending, struct pl_error **err)
{
    struct listed lists[LISTED_COUNT];

    *s = (struct pl_snapshot){ .source = PL_STR("live"),
                               .now_ms = now.wall_ms,
                               .grace_period_s = c->options.grace_period_s };
    *pending = 0;
    listed_fill(s, lists);
    for (size_t k = 0; k < LISTED_COUNT; k++)
        listed_reserve(&lists[k], entries, count, arena);
    s->workloads.items = PL_NEW(arena, struct pl_workload, count);
    s->workloads.present = true;
    for (size_t n = 0; n < count; n++) {
        const struct pl_entry *e = entries[n];
        for (size_t k = 0; k < LISTED_COUNT; k++) {
            struct pl_list *list = lists[k].list;
            size_t size = pl__resources[lists[k].resource].shape->size;
            for (const struct pl_item *i = e->items[lists[k].resource]; i; i = i->next_in_entry)
                memcpy((char *)list->items + list->count++ * size, i->object, size);
        }
        *pending += pl__remote_pending(e) || pl__remote_etcd_pending(e);
        pl__remote_observe(e, arena, &s->workloads.items[s->workloads.count++]);
    }
    return pl__snapshot_settle(s, arena, 0, 0, err);
}

static bool entry_shows(const struct pl_controller *c, const struct pl_entry *e)
{
    return !c->options.cluster_selector || e->items[RESOURCE_CLUSTERS];
}

int pl_controller_snapshot(struct pl_controller *c, struct pl_str namespace_, struct pl_str cluster,
                           struct pl_now now, struct pl_arena *arena, struct pl_snapshot *s,
                           size_t *pending, struct pl_error **err)
{
    struct pl_entry **entries = PL_NEW(arena, struct pl_entry *, c->world.entry_count);
    size_t count = 0;

    for (struct pl_entry *e = c->world.first; e; e = e->next)
        if ((!namespace_.len || pl__str_equal(pl__str(e->namespace_), namespace_)) &&
            (!cluster.len || pl__str_equal(pl__str(e->name), cluster)) && entry_shows(c, e))
            entries[count++] = e;
    return snapshot_take(c, entries, count, now, arena, s, pending, err);
}

int pl_controller_snapshot_some(struct pl_controller *c, const struct pl_cluster_name *names,
                                size_t name_count, struct pl_now now, struct pl_arena *arena,
                                struct pl_snapshot *s, struct pl_error **err)
{
    struct pl_entry **entries = PL_NEW(arena, struct pl_entry *, name_count);
    size_t count = 0, pending;

    for (size_t i = 0; i < name_count; i++) {
        struct pl_entry *e = pl__world_find(&c->world, names[i].namespace_, names[i].name);
        if (e && entry_shows(c, e))
            entries[count++] = e;
    }
    return snapshot_take(c, entries, count, now, arena, s, &pending, err);
}

size_t pl_controller_each_cluster(const struct pl_controller *c, uint64_t since,
                                  void (*each)(void *user, struct pl_cluster_name name), void *user)
{
    size_t count = 0;

    for (const struct pl_entry *e = c->world.first; e; e = e->next) {
        if (!entry_shows(c, e))
            continue;
        count++;
        if (e->changes > since)
            each(user, (struct pl_cluster_name){ pl__str(e->namespace_), pl__str(e->name) });
    }
    return count;
}

/* --- what to write ----------------------------------------------------------------------------- */

/* Whether a condition on the object is ours to apply. External etcd's is not, by the documents; Cluster
 * API writes it on the ladder's rungs and then leaves it, so there it must not be left out either. */
static bool is_ours(const struct pl_controller *c, const struct pl_verdict *v)
{
    bool external = v->kept && strcmp(v->row, "EtcdClusterHealthy/1") == 0;

    return !external || (c->options.profile == PL_PROFILE_CLUSTER_API_1_12 &&
                         strcmp(v->type, "EtcdClusterHealthy") == 0);
}

/* Its message, no longer than the API takes. */
static struct pl_str message_of(const struct pl_verdict *v)
{
    return pl__text_cut(v->message, MESSAGE_BYTES_MAX);
}

static bool differs(const struct pl_verdict *v)
{
    return !v->kept &&
           (v->status != v->stored_status || !pl__str_equal(v->reason, v->stored_reason) ||
            !pl__str_equal(message_of(v), v->stored_message));
}

/* observedGeneration follows even when nothing else does: `kubectl wait` looks at it. */
static bool generation_behind(const struct pl_verdict *v, const struct pl_conditions *stored)
{
    for (uint32_t i = 0; i < stored->count; i++) {
        if (strcmp(pl__condition_type_name((enum pl_condition_type)stored->items[i].type),
                   v->type) == 0)
            return !v->kept && v->has_observed_generation &&
                   stored->items[i].observed_generation != v->observed_generation;
    }
    return false;
}

static const struct pl_conditions *conditions_of(enum pl_resource_id resource, const void *object)
{
    switch (resource) {
    case RESOURCE_KCPS:
        return &((const struct pl_kcp *)object)->conditions;
    case RESOURCE_MACHINES:
        return &((const struct pl_machine *)object)->conditions;
    default:
        return &((const struct pl_machine_deployment *)object)->conditions;
    }
}

static void condition_write(struct pl_json_writer *w, const struct pl_verdict *v)
{
    pl__json_open_object(w);
    pl__json_write_key(w, "type");
    pl__json_write_str(w, pl__str(v->type));
    pl__json_write_key(w, "status");
    pl__json_write_str(w, pl__str(pl_status_name(v->status)));
    pl__json_write_key(w, "reason");
    pl__json_write_str(w, v->reason);
    pl__json_write_key(w, "message");
    pl__json_write_str(w, message_of(v));
    if (v->last_transition_ms) {
        pl__json_write_key(w, "lastTransitionTime");
        pl__json_write_time(w, v->last_transition_ms);
    }
    if (v->has_observed_generation) {
        pl__json_write_key(w, "observedGeneration");
        pl__json_write_int(w, v->observed_generation);
    }
    pl__json_close_object(w);
}

static bool is_owned_type(enum pl_resource_id resource, uint8_t type)
{
    if (resource == RESOURCE_MACHINES)
        return type < MACHINE_COND_COUNT;
    return type == COND_REMEDIATING ||
           (resource == RESOURCE_KCPS &&
            (type == COND_ETCD_CLUSTER || type == COND_COMPONENTS || type == COND_DELETING));
}

static bool is_judged(const struct pl_object *o, uint8_t type)
{
    const char *name = pl__condition_type_name((enum pl_condition_type)type);

    for (size_t i = 0; i < o->verdict_count; i++) {
        if (strcmp(o->verdicts[i].type, name) == 0)
            return true;
    }
    return false;
}

/* Whether it could not be judged only because etcd has not answered yet. */
static bool awaits_etcd(const struct pl_item *item, uint8_t type)
{
    return (type == COND_ETCD_CLUSTER || type == COND_ETCD_MEMBER) && item->entry &&
           pl__remote_etcd_pending(item->entry);
}

static void stored_write(struct pl_json_writer *w, const struct pl_condition *s)
{
    condition_write(
        w, &(struct pl_verdict){ .type = pl__condition_type_name((enum pl_condition_type)s->type),
                                 .status = (enum pl_status)s->status,
                                 .reason = s->reason,
                                 .message = s->message,
                                 .last_transition_ms = s->last_transition_ms,
                                 .observed_generation = s->observed_generation,
                                 .has_observed_generation = s->observed_generation != 0 });
}

/* What is stored of ours but could not be judged is left out of the apply, and so removed. Not what waits
 * for the first answer of etcd: that stays as it is. And not where somebody else owns a part of it: then
 * the rest would not be a condition and the server refuses all of it. There it says what is true: that it
 * is not known. */
static void unjudged_write(const struct pl_controller *c, struct pl_json_writer *w,
                           const struct pl_object *o, enum pl_resource_id resource,
                           const struct pl_item *item)
{
    const struct pl_conditions *stored = conditions_of(resource, item->object);

    for (uint32_t i = 0; i < stored->count; i++) {
        const struct pl_condition *s = &stored->items[i];
        if (!is_owned_type(resource, s->type) || is_judged(o, s->type))
            continue;
        if (awaits_etcd(item, s->type)) {
            stored_write(w, s);
            continue;
        }
        if (!item->shared_conditions)
            continue;
        condition_write(w, &(struct pl_verdict){
                               .type = pl__condition_type_name((enum pl_condition_type)s->type),
                               .status = PL_STATUS_UNKNOWN,
                               .reason = PL_STR("InspectionFailed"),
                               .message = PL_STR("Please check controller logs for errors"),
                               .last_transition_ms = s->status == PL_STATUS_UNKNOWN
                                                         ? s->last_transition_ms
                                                         : c->now.wall_ms });
    }
}

/* OwnerRemediated as it is stored, if a control plane wrote it: then it is ours in mode manage, and what an
 * apply leaves out is removed. NULL: none, or still as the health check left it. */
static const struct pl_condition *our_mark(const struct pl_controller *c,
                                           enum pl_resource_id resource, const struct pl_item *item)
{
    const struct pl_condition *mark =
        resource == RESOURCE_MACHINES
            ? pl__condition_find(conditions_of(resource, item->object), COND_OWNER_REMEDIATED)
            : NULL;

    if (c->options.mode != MODE_MANAGE || !mark || mark->status != PL_STATUS_FALSE ||
        pl__str_equal(mark->reason, PL_STR("WaitingForRemediation")))
        return NULL;
    return mark;
}

/* Order in the list: Deleting last, the rest by name. `mark`: OwnerRemediated in place of what is stored. */
static void conditions_write(const struct pl_controller *c, struct pl_json_writer *w,
                             const struct pl_object *o, enum pl_resource_id resource,
                             const struct pl_item *item, const struct pl_verdict *mark)
{
    const struct pl_condition *stored = our_mark(c, resource, item);

    pl__json_write_key(w, "conditions");
    pl__json_open_array(w);
    for (int last = 0; last < 2; last++) {
        for (size_t i = 0; i < o->verdict_count; i++) {
            const struct pl_verdict *v = &o->verdicts[i];
            if (is_ours(c, v) && (strcmp(v->type, "Deleting") == 0) == last)
                condition_write(w, v);
        }
    }
    if (mark)
        condition_write(w, mark);
    else if (stored)
        stored_write(w, stored);
    unjudged_write(c, w, o, resource, item);
    pl__json_close_array(w);
}

static struct pl_str apply_body(struct pl_controller *c, const struct pl_object *o,
                                enum pl_resource_id resource, const struct pl_item *item,
                                const struct pl_verdict *mark)
{
    const struct pl_meta *meta = item->object;
    const struct pl_resource *r = &pl__resources[resource];
    struct pl_buf body;
    struct pl_json_writer w;

    pl__buf_init(&body, &c->scratch, 4 * 1024 * 1024);
    pl__json_writer_init(&w, &body, JSON_COMPACT);
    pl__json_open_object(&w);
    pl__json_write_key(&w, "apiVersion");
    pl__json_write_str(&w, pl__str_format(&c->scratch, "%s/%s", r->group, r->version));
    pl__json_write_key(&w, "kind");
    pl__json_write_str(&w, pl__str(o->kind));
    pl__json_write_key(&w, "metadata");
    pl__json_open_object(&w);
    pl__json_write_key(&w, "name");
    pl__json_write_str(&w, o->name);
    pl__json_write_key(&w, "namespace");
    pl__json_write_str(&w, o->namespace_);
    /* A mark that somebody has removed meanwhile must not come back. */
    if ((mark || our_mark(c, resource, item)) && meta->resource_version) {
        pl__json_write_key(&w, "resourceVersion");
        pl__json_write_str(
            &w, pl__str_format(&c->scratch, "%llu", (unsigned long long)meta->resource_version));
    }
    pl__json_close_object(&w);
    pl__json_write_key(&w, "status");
    pl__json_open_object(&w);
    conditions_write(c, &w, o, resource, item, mark);
    pl__json_close_object(&w);
    pl__json_close_object(&w);
    return pl__buf_str(&body);
}

static const enum pl_resource_id written_kinds[] = { RESOURCE_KCPS, RESOURCE_MACHINES,
                                                     RESOURCE_MACHINE_DEPLOYMENTS };

static enum pl_resource_id resource_of_kind(const char *kind)
{
    for (size_t i = 0; i < sizeof written_kinds / sizeof written_kinds[0]; i++) {
        if (strcmp(pl__resources[written_kinds[i]].kind, kind) == 0)
            return written_kinds[i];
    }
    return RESOURCE_COUNT;
}

/* Whether this object is for us to write at all. A control plane's Machines go with it: the filter is
 * asked of the object that is reconciled, as Cluster API does it. */
bool pl__may_write(const struct pl_controller *c, const struct pl_work *w, bool paused)
{
    const struct pl_meta *meta = w->item->object;

    if (c->options.mode == MODE_SHADOW || (paused && !PL_PLANTED(PAUSE_IGNORED)) ||
        (!pl_controller_is_leader(c) && !PL_PLANTED(LEADER_UNCHECKED)) || c->stopping || c->stopped)
        return false;
    return !c->options.watch_filter ||
           pl__str_equal(meta->labels.watch_filter, pl__str(c->options.watch_filter));
}

static struct pl_str object_label(struct pl_controller *c, const struct pl_object *o)
{
    return pl__str_format(&c->scratch, "%.*s/%.*s", PL_STR_ARG(o->namespace_), PL_STR_ARG(o->name));
}

static void transition_log(struct pl_controller *c, const struct pl_object *o,
                           const struct pl_verdict *v)
{
    PL_LOG(c, PL_LOG_INFO, "Condition changes", { o->kind, object_label(c, o) },
           { "type", pl__str(v->type) }, { "status", pl__str(pl_status_name(v->status)) },
           { "reason", v->reason }, { "row", pl__str(v->row) },
           { "stored", pl__str(pl_status_name(v->stored_status)) });
}

void pl__event_send(struct pl_controller *c, enum pl_resource_id resource,
                    const struct pl_meta *meta, struct pl_kevent *e, uint32_t timeout_ms)
{
    const struct pl_resource *r = &pl__resources[resource];

    e->api_version = pl__str_format(&c->scratch, "%s/%s", r->group, r->version).ptr;
    e->kind = r->kind;
    e->namespace_ = meta->namespace_;
    e->name = meta->name;
    e->uid = meta->uid;
    e->instance = c->options.identity;
    e->counter = ++c->event_counter;
    c->counts.events_sent++;
    pl__request(c, &(struct pl_request){ .type = ACTION_REQUEST,
                                         .method = "POST",
                                         .path = pl__kevent_path(e, &c->scratch),
                                         .body = pl__kevent_body(e, c->now, &c->scratch),
                                         .timeout_ms = timeout_ms,
                                         .waiter = WAITER_EVENT });
}

/* Kubernetes Events tell of changed verdicts on what people look at: control planes and deployments. */
static void transition_event(struct pl_controller *c, enum pl_resource_id resource,
                             const struct pl_meta *meta, const struct pl_verdict *v)
{
    bool bad = v->negative ? v->status == PL_STATUS_TRUE : v->status != PL_STATUS_TRUE;

    if (resource == RESOURCE_MACHINES || v->status == v->stored_status ||
        (v->stored_status == PL_STATUS_NONE && !bad))
        return;
    struct pl_kevent e = {
        .type = v->type,
        .before = v->stored_status,
        .after = v->status,
        .negative = v->negative,
        .reason = v->reason,
        .message = v->message,
        .row = v->row,
    };
    pl__event_send(c, resource, meta, &e, WRITE_TIMEOUT_MS);
}

/* One reconcile's writing: what flaps must not flood the API server. */
struct round {
    bool granted;
    bool refused;
    uint32_t differing;
};

/* Whether this round may write. If not, the object is looked at again when it may. */
static bool round_grant(struct pl_controller *c, struct pl_work *w, struct round *round)
{
    if (round->granted || round->refused)
        return round->granted;
    double earned = (double)(c->now.mono_ms - w->tokens_ms) / ROUND_PERIOD_MS;

    w->tokens = w->tokens + earned > ROUNDS_BURST ? ROUNDS_BURST : w->tokens + earned;
    w->tokens_ms = c->now.mono_ms;
    round->granted = w->tokens >= 1;
    round->refused = !round->granted;
    if (round->granted)
        w->tokens -= 1;
    else
        pl__queue_add(c, w, c->now.mono_ms + (uint64_t)((1 - w->tokens) * ROUND_PERIOD_MS) + 1);
    return round->granted;
}

static struct pl_str apply_path(struct pl_controller *c, const struct pl_object *o,
                                enum pl_resource_id resource)
{
    const struct pl_resource *r = &pl__resources[resource];

    return pl__str_format(
        &c->scratch, "/apis/%s/%s/namespaces/%.*s/%s/%.*s/status?fieldManager=plimsoll&force=true",
        r->group, r->version, PL_STR_ARG(o->namespace_), r->plural, PL_STR_ARG(o->name));
}

static const struct pl_object *machine_reported(const struct pl_report *report, struct pl_str name)
{
    for (size_t i = 0; i < report->object_count; i++) {
        if (strcmp(report->objects[i].kind, "Machine") == 0 &&
            pl__str_equal(report->objects[i].name, name))
            return &report->objects[i];
    }
    return NULL;
}

bool pl__mark_apply(struct pl_controller *c, struct pl_work *w, const struct pl_report *report,
                    const struct pl_step *step)
{
    const struct pl_meta *meta = &step->machine->meta;
    /* A Machine of a MachineDeployment has no other condition of ours. */
    const struct pl_object worker = { .kind = "Machine",
                                      .namespace_ = meta->namespace_,
                                      .name = meta->name,
                                      .paused = meta->annotations.paused };
    const struct pl_object *o = w->resource == RESOURCE_MACHINE_DEPLOYMENTS
                                    ? &worker
                                    : machine_reported(report, meta->name);
    const struct pl_item *item =
        pl__store_find(&c->world.stores[RESOURCE_MACHINES], meta->namespace_, meta->name);
    const struct pl_condition *stored =
        pl__condition_find(&step->machine->conditions, COND_OWNER_REMEDIATED);
    struct pl_verdict mark = { .type = pl__condition_type_name(COND_OWNER_REMEDIATED),
                               .status = PL_STATUS_FALSE,
                               .reason = step->reason,
                               .message = step->message,
                               .observed_generation = meta->generation,
                               .has_observed_generation = meta->generation != 0,
                               .last_transition_ms = stored && stored->status == PL_STATUS_FALSE
                                                         ? stored->last_transition_ms
                                                         : c->now.wall_ms };

    if (!o || !item || o->paused)
        return false;
    pl__act_send(
        c, w,
        &(struct pl_act_request){ .phase = ACT_CALL,
                                  .method = "PATCH",
                                  .path = apply_path(c, o, RESOURCE_MACHINES),
                                  .content_type = "application/apply-patch+yaml",
                                  .body = apply_body(c, o, RESOURCE_MACHINES, item, &mark) });
    return true;
}

static uint64_t apply(struct pl_controller *c, struct pl_work *w, const struct pl_object *o,
                      enum pl_resource_id resource, const struct pl_item *item)
{
    const struct pl_resource *r = &pl__resources[resource];

    c->counts.writes++;
    c->writes_in_flight++;
    if (w->in_flight++ == 0)
        w->round_failed = false;
    return pl__request(c, &(struct pl_request){ .type = ACTION_REQUEST,
                                                .method = "PATCH",
                                                .path = apply_path(c, o, resource),
                                                .content_type = "application/apply-patch+yaml",
                                                .body = apply_body(c, o, resource, item, NULL),
                                                .timeout_ms = WRITE_TIMEOUT_MS,
                                                .waiter = WAITER_WRITE,
                                                .owner = w,
                                                .context = pl__str(r->kind) });
}

/* Compares one object with what is stored and writes what differs. */
static void object_handle(struct pl_controller *c, struct pl_work *w, const struct pl_object *o,
                          struct round *round)
{
    enum pl_resource_id resource = resource_of_kind(o->kind);
    struct pl_item *item = pl__store_find(&c->world.stores[resource], o->namespace_, o->name);
    bool different = false, behind = false;

    if (!item)
        return;
    const struct pl_meta *meta = item->object;
    for (size_t i = 0; i < o->verdict_count; i++) {
        const struct pl_verdict *v = &o->verdicts[i];
        different |= is_ours(c, v) && differs(v);
        behind |= is_ours(c, v) && generation_behind(v, conditions_of(resource, item->object));
    }
    round->differing += different;
    if (!different && !behind) {
        c->counts.writes_saved++;
        return;
    }
    /* v1beta1 keeps conditions elsewhere, in a list that apply cannot merge: read-only. */
    if (!pl__may_write(c, w, o->paused) || c->world.informers[resource].on_fallback ||
        !c->world.informers[resource].preferred)
        return;
    if (c->options.dry_run) {
        PL_LOG(c, PL_LOG_INFO, "Would write conditions (dry run)", { o->kind, object_label(c, o) },
               { "body", apply_body(c, o, resource, item, NULL) });
        return;
    }
    /* A Machine that went from one control plane to another: the write of the former is under way. */
    if (pl__request_pending(c, item->write_id)) {
        pl__queue_add(c, w, c->now.mono_ms + BUSY_RETRY_MS);
        return;
    }
    if (!round_grant(c, w, round))
        return;
    for (size_t i = 0; i < o->verdict_count; i++) {
        if (is_ours(c, &o->verdicts[i]) && differs(&o->verdicts[i])) {
            transition_log(c, o, &o->verdicts[i]);
            if (w->failures == 0) /* told once, not with every try */
                transition_event(c, resource, meta, &o->verdicts[i]);
        }
    }
    item->write_id = apply(c, w, o, resource, item);
}

/* When time alone changes the answer: the end of the grace period of a connection that is down. */
static uint64_t grace_end_ms(const struct pl_controller *c, const struct pl_work *w)
{
    const struct pl_kcp *kcp = w->item->object;
    const struct pl_remote *r = &w->item->entry->remote;
    const struct pl_condition *initialized = pl__condition_find(&kcp->conditions, COND_INITIALIZED);
    int64_t since = r->last_success_wall_ms;

    if (r->state == REMOTE_UP || !initialized)
        return UINT64_MAX;
    if (initialized->last_transition_ms > since)
        since = initialized->last_transition_ms;
    int64_t left = since + (int64_t)c->options.grace_period_s * 1000 + 1 - c->now.wall_ms;
    return left > 0 ? c->now.mono_ms + (uint64_t)left : UINT64_MAX;
}

static void cause_count(struct pl_controller *c, struct pl_work *w)
{
    static const double bounds[] = { .001, .002, .005, .01, .025, .05, .1, .25, .5, 1, 5 };
    double seconds = (double)(c->now.mono_ms - w->cause_ms) / 1000;
    size_t bucket = 0;

    while (bucket < sizeof bounds / sizeof bounds[0] && seconds > bounds[bucket])
        bucket++;
    c->counts.cause_buckets[bucket]++;
    c->counts.cause_count++;
    c->counts.cause_sum_s += seconds;
}

/* The first look at a workload cluster takes a moment. Judging before it came would write Unknown, only
 * to take it back; so it is waited for, but not for long. */
static bool look_awaited(struct pl_controller *c, struct pl_work *w, struct pl_now now)
{
    const struct pl_entry *e = w->item->entry;

    if (w->resource != RESOURCE_KCPS || !w->cause_ms ||
        !(pl__remote_pending(e) || pl__remote_etcd_pending(e)) ||
        now.mono_ms - w->cause_ms >= FIRST_LOOK_MS)
        return false;
    pl__queue_add(c, w, w->cause_ms + FIRST_LOOK_MS);
    w->item->entry->remote.etcd.held = true;
    return true;
}

/* A deletion that an error of the API holds up says so, whatever phase it is in (semantics section 8). */
static const struct pl_object *with_failure(struct pl_controller *c, const struct pl_work *w,
                                            const struct pl_object *o)
{
    const struct pl_kcp *kcp = w->item->object;

    if (w->resource != RESOURCE_KCPS || !w->act || !w->act->api_failed || !kcp->meta.deleted_ms ||
        strcmp(o->kind, "KubeadmControlPlane") != 0)
        return o;
    struct pl_object *copy = PL_NEW(&c->scratch, struct pl_object, 1);
    struct pl_verdict *verdicts = PL_NEW(&c->scratch, struct pl_verdict, o->verdict_count);
    *copy = *o;
    copy->verdicts = verdicts;
    for (size_t i = 0; i < o->verdict_count; i++) {
        verdicts[i] = o->verdicts[i];
        if (strcmp(verdicts[i].type, "Deleting") != 0 || verdicts[i].status != PL_STATUS_TRUE)
            continue;
        verdicts[i].reason = PL_STR("InternalError");
        verdicts[i].message = PL_STR("Please check controller logs for errors");
    }
    return copy;
}

void pl__reconcile(struct pl_controller *c, struct pl_work *w, struct pl_now now)
{
    bool md = w->resource == RESOURCE_MACHINE_DEPLOYMENTS;
    struct pl_plans plans = { .etcd_stale = true };
    struct pl_evaluate_options options = { .profile = c->options.profile };
    struct pl_snapshot *s = PL_NEW(&c->scratch, struct pl_snapshot, 1);
    const struct pl_report *report = NULL;
    struct pl_error *error = NULL;
    struct round round = { 0 };

    if (look_awaited(c, w, now) || pl__act_templates(c, w))
        return;
    snapshot_build(c, w, &c->scratch, s);
    if (pl__acts(c, w)) {
        plans.etcd_stale = !pl__remote_etcd_fresh(w->item->entry, now);
        plans.etcd_refuses = w->act && w->act->etcd_refusals >= ETCD_REFUSALS_MAX;
        options.plans = &plans;
    }
    pl__queue_add(c, w, now.mono_ms + (uint64_t)c->options.sync_period_s * 1000);
    if (pl__snapshot_settle(s, &c->scratch, 0, 0, &error) < 0 ||
        pl__evaluate(s, options, &c->scratch, &report, &error) < 0) {
        const struct pl_meta *meta = w->item->object;
        c->counts.reconciles[md][1]++;
        PL_LOG(c, PL_LOG_ERROR, "Judging failed",
               { pl__resources[w->resource].kind,
                 pl__str_format(&c->scratch, "%.*s/%.*s", PL_STR_ARG(meta->namespace_),
                                PL_STR_ARG(meta->name)) },
               { "error", pl__error_text(&c->scratch, error) });
        return;
    }
    for (size_t i = 0; i < report->object_count; i++)
        object_handle(c, w, with_failure(c, w, &report->objects[i]), &round);
    w->disagreements = round.differing;
    if (!round.granted && !round.refused)
        w->cause_ms = 0;
    c->counts.reconciles[md][report->requeue_with_error ? 1 : 0]++;
    /* "Requeue (error)" asks to look again; what would change the answer wakes us anyway, so this is the
     * end of the grace period or the backoff, whichever is first. */
    if (report->requeue_with_error) {
        uint64_t retry = now.mono_ms + pl__backoff_ms(c, 6, BACKOFF_BASE_MS, BACKOFF_MAX_MS);
        uint64_t grace = grace_end_ms(c, w);
        pl__queue_add(c, w, grace < retry ? grace : retry);
    }
    for (size_t i = 0; i < report->deletion_count; i++) {
        if (report->deletion[i].requeue_after_ms)
            pl__queue_add(c, w, now.mono_ms + (uint64_t)report->deletion[i].requeue_after_ms);
    }
    /* First what is true is written down, then it is acted on: a write under way changes the version that
     * a step would insist on. */
    const struct pl_plan *plan = md ? plans.deployments : plans.items;
    if (plan && w->in_flight == 0 && !round.refused)
        pl__act(c, w, report, plan);
}

/* --- answers ----------------------------------------------------------------------------------- */

/* The object as the server has it after our write: the cache need not wait for the watch. But only the
 * watch says that there is an object: an answer that comes after its end must not bring it back. */
void pl__answer_cache(struct pl_controller *c, enum pl_resource_id resource, struct pl_str body)
{
    const struct pl_resource *r = &pl__resources[resource];
    struct pl_json j;

    pl__arena_reset(&c->reading);
    void *object = pl__arena_alloc(&c->reading, r->shape->size);
    pl__json_init(&j, body, PL_STR("answer"), &c->reading, 64, NULL);
    if (pl__object_decode(&j, (enum pl_model_kind)r->model_kind, false, object) < 0)
        return;
    const struct pl_meta *meta = object;
    const struct pl_item *known =
        pl__store_find(&c->world.stores[resource], meta->namespace_, meta->name);
    if (known && pl__str_equal(((const struct pl_meta *)known->object)->uid, meta->uid))
        pl__world_put(c, resource, object, 0, false);
}

/* One of a round of writes failed: all of it again, later. */
static uint64_t write_failed(struct pl_controller *c, struct pl_work *w, const struct pl_event *e,
                             struct pl_str context, struct pl_now now)
{
    if (!w->round_failed)
        w->failures++;
    w->round_failed = true;
    uint64_t delay = pl__backoff_ms(c, w->failures - 1, BACKOFF_BASE_MS, BACKOFF_MAX_MS);

    c->counts.write_errors++;
    if (e->status == 409 && w->failures < CONFLICTS_MAX)
        delay = CONFLICT_RETRY_MS;
    if (e->retry_after_s > 0) {
        uint64_t asked = (uint64_t)(e->retry_after_s < RETRY_AFTER_S_MAX ? e->retry_after_s
                                                                         : RETRY_AFTER_S_MAX) *
                         1000;
        delay = delay < asked ? asked : delay;
    }
    PL_LOG(c, e->status == 409 || e->status == 429 ? PL_LOG_DEBUG : PL_LOG_INFO,
           "Writing conditions failed, will try again", { "kind", context },
           { "status", pl__str_format(&c->scratch, "%d", e->status) },
           { "error", e->status
                          ? (struct pl_str){ e->body.ptr, e->body.len < 300 ? e->body.len : 300 }
                          : e->error });
    return now.mono_ms + delay;
}

/* The server would not take what was left of a condition: somebody else owns a part of one of ours. */
static void shared_conditions_note(struct pl_work *w, uint64_t id)
{
    struct pl_entry *e = w->item->entry;

    for (size_t i = 0; e && i < sizeof written_kinds / sizeof written_kinds[0]; i++) {
        for (struct pl_item *item = e->items[written_kinds[i]]; item; item = item->next_in_entry)
            item->shared_conditions |= item->write_id == id;
    }
}

void pl__write_answer(struct pl_controller *c, struct pl_work *w, const struct pl_event *e,
                      struct pl_str context, struct pl_now now)
{
    bool gone = e->status == 404;
    bool ok = e->status == 200 || e->status == 201 || gone;

    c->writes_in_flight--;
    w->in_flight--;
    if (e->status == 422)
        shared_conditions_note(w, e->id);
    if (!ok) {
        uint64_t retry = write_failed(c, w, e, context, now);
        w->retry_ms = retry > w->retry_ms ? retry : w->retry_ms;
        pl__queue_add(c, w, w->retry_ms);
    } else if (w->in_flight == 0 && !w->round_failed) {
        w->failures = 0;
        w->retry_ms = 0;
        if (w->cause_ms)
            cause_count(c, w);
        w->cause_ms = 0;
    }
    if (w->in_flight == 0 && w->again) {
        w->again = false;
        pl__queue_add(c, w, w->retry_ms > now.mono_ms ? w->retry_ms : now.mono_ms);
    }
    if (ok && !gone && resource_of_kind(context.ptr) != RESOURCE_COUNT)
        pl__answer_cache(c, resource_of_kind(context.ptr),
                         e->body); /* last: it may be the end of `w` */
}
