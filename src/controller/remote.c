/* controller/remote.c - one workload cluster: connecting, probing, its informers.
 *
 *          kubeconfig            first probe ok
 *   IDLE -------------> CONNECTING ----------> UP
 *     ^                   |  ^                  | 5 probes failed in a row, or the kubeconfig changed
 *     | let go            |  | due              v
 *     +------- BROKEN     +--+-------------- DOWN
 *          (kubeconfig no good)
 *
 * A probe is GET / every 10 s with 5 s to answer. Each cluster has its own requests, its own deadlines
 * and its own server, so one that hangs, refuses, resets or drips costs nobody else anything. */
#include "controller/internal.h"

#include <stdlib.h>

#include "base/base64.h"

enum {
    PROBE_PERIOD_MS = 10 * 1000,
    PROBE_TIMEOUT_MS = 5 * 1000,
    PROBE_FAILURES_MAX = 5,
    RECONNECT_MS = 30 * 1000,
    RECONNECT_MS_MAX = 5 * 60 * 1000,
    READS_FAILED_MAX = 3, /* in a row, until a first look that fails in passing is an answer ... */
    READS_STALE_MS =
        2 * 60 * 1000, /* ... and how long what was read before is good for, without the watch */
    OBJECTS_MAX =
        10 * CONTROL_PLANE_MACHINES_MAX, /* of one kind: a server cannot fill our memory */
};

/* --- its informers ---------------------------------------------------------------------------- */

static struct pl_store *store_of(struct pl_entry *e, const struct pl_informer *i)
{
    return i == &e->remote.nodes_informer ? &e->remote.nodes : &e->remote.pods;
}

void pl__remote_timer_update(struct pl_entry *e)
{
    const struct pl_remote *r = &e->remote;
    uint64_t due = r->due_ms < r->etcd.due_ms ? r->due_ms : r->etcd.due_ms;

    if (pl__informer_due_ms(&r->nodes_informer) < due)
        due = pl__informer_due_ms(&r->nodes_informer);
    if (pl__informer_due_ms(&r->pods_informer) < due)
        due = pl__informer_due_ms(&r->pods_informer);
    pl__timers_set(e->controller, &e->controller->world.timers, &e->timer, due);
}

static void informer_due(void *user)
{
    pl__remote_timer_update(user);
}

static void due_set(struct pl_entry *e, uint64_t due_ms)
{
    e->remote.due_ms = due_ms;
    pl__remote_timer_update(e);
}

static void changed(struct pl_entry *e)
{
    pl__wake_entry(e->controller, e, e->controller->now);
}

/* Nodes or Pods are others than they were; then etcd may be, too. */
static void objects_changed(struct pl_entry *e)
{
    e->remote.etcd.changed_ms = e->controller->now.mono_ms;
    pl__remote_etcd_changed(e, e->controller->now);
    changed(e);
}

static void remote_object(void *user, struct pl_informer *i, const void *object)
{
    struct pl_entry *e = user;
    struct pl_store *store = store_of(e, i);
    struct pl_item *known =
        pl__store_find(store, PL_STR(""), pl__object_name(store->shape, object));
    uint64_t version = pl__object_version(store->shape, object);
    bool is_new;

    if (known && version && version == pl__object_version(store->shape, known->object)) {
        known->generation = i->generation;
        return;
    }
    if (!known && store->count >= OBJECTS_MAX)
        return;
    pl__store_put(store, object, &is_new)->generation = i->generation;
    objects_changed(e);
}

static void remote_gone(void *user, struct pl_informer *i, struct pl_str namespace_,
                        struct pl_str name)
{
    struct pl_entry *e = user;
    struct pl_item *item = pl__store_find(store_of(e, i), PL_STR(""), name);

    (void)namespace_;
    if (!item)
        return;
    pl__store_remove(store_of(e, i), item);
    objects_changed(e);
}

struct sweep {
    struct pl_store *store;
    uint32_t generation;
};

static void sweep_item(struct pl_item *item, void *user)
{
    struct sweep *s = user;

    if (item->generation != s->generation)
        pl__store_remove(s->store, item);
}

static void remote_synced(void *user, struct pl_informer *i)
{
    struct pl_entry *e = user;
    struct sweep s = { store_of(e, i), i->generation };
    bool nodes = i == &e->remote.nodes_informer;

    pl__store_each(s.store, sweep_item, &s);
    pl__strfree(e->controller, nodes ? &e->remote.nodes_error : &e->remote.pods_error);
    objects_changed(e);
}

struct pl_str pl__text_cut(struct pl_str text, size_t max)
{
    if (text.len <= max)
        return text;
    text.len = max;
    while (text.len && ((unsigned char)text.ptr[text.len] & 0xc0) == 0x80)
        text.len--;
    return text;
}

static void remote_failed(void *user, struct pl_informer *i, int status, struct pl_str error)
{
    struct pl_entry *e = user;
    struct pl_controller *c = e->controller;
    char **kept = i == &e->remote.nodes_informer ? &e->remote.nodes_error : &e->remote.pods_error;

    *(i == &e->remote.nodes_informer ? &e->remote.nodes_status : &e->remote.pods_status) = status;
    if (i->synced && c->now.mono_ms - i->failing_since_ms >= READS_STALE_MS) {
        i->synced = false;
        i->relist = true;
    }
    error = pl__text_cut(error, ERROR_BYTES_MAX);
    pl__strfree(c, kept);
    *kept = pl__strdup(c, error.len ? error : PL_STR("no answer"));
    PL_LOG(c, PL_LOG_DEBUG, "Reading the workload cluster failed, will try again",
           { "Cluster", pl__str_format(&c->scratch, "%s/%s", e->namespace_, e->name) },
           { "resource", pl__str(i->resource->plural) }, { "error", error });
    changed(e);
}

static const struct pl_informer_sink remote_sink = { remote_object, remote_gone, remote_synced,
                                                     remote_failed, informer_due };

/* --- life ------------------------------------------------------------------------------------- */

void pl__remote_init(struct pl_entry *e)
{
    struct pl_controller *c = e->controller;

    e->remote = (struct pl_remote){ .due_ms = UINT64_MAX, .etcd.due_ms = UINT64_MAX };
    pl__store_init(&e->remote.nodes, pl__resources[RESOURCE_NODES].shape, c->options.allocator);
    pl__store_init(&e->remote.pods, pl__resources[RESOURCE_PODS].shape, c->options.allocator);
    pl__informer_init(&e->remote.nodes_informer, c, RESOURCE_NODES, 0, &remote_sink, e);
    pl__informer_init(&e->remote.pods_informer, c, RESOURCE_PODS, 0, &remote_sink, e);
}

/* Closes the connection. What was read stays: it is the last that is known. But for etcd, where a mix of
 * old and new would be dangerous: who leads, and whose member is there. */
static void disconnect(struct pl_entry *e)
{
    struct pl_remote *r = &e->remote;

    pl__request_cancel(e->controller, r->probe_id);
    r->probe_id = 0;
    pl__informer_stop(&r->nodes_informer);
    pl__informer_stop(&r->pods_informer);
    pl__remote_etcd_forget(e);
    if (r->server)
        pl__upstream_close(e->controller, r->server);
    r->server = 0;
}

/* What was read is too old to judge by: the next connection has to read it anew. */
static void distrust(struct pl_entry *e)
{
    struct pl_remote *r = &e->remote;

    r->nodes_informer.synced = r->pods_informer.synced = false;
    pl__strfree(e->controller, &r->nodes_error);
    pl__strfree(e->controller, &r->pods_error);
}

/* Forgets what was read, too: another cluster may stand behind the next kubeconfig. */
static void forget(struct pl_entry *e)
{
    struct pl_remote *r = &e->remote;

    distrust(e);
    pl__store_release(&r->nodes);
    pl__store_release(&r->pods);
    pl__strfree(e->controller, &r->error);
}

void pl__remote_leave(struct pl_entry *e)
{
    disconnect(e);
    e->remote.state = REMOTE_IDLE;
    due_set(e, UINT64_MAX);
}

void pl__remote_clock_moved(struct pl_entry *e, int64_t by_ms)
{
    if (e->remote.last_success_wall_ms)
        e->remote.last_success_wall_ms += by_ms;
    e->remote.etcd.observed_wall_ms += by_ms;
}

void pl__remote_release(struct pl_entry *e)
{
    disconnect(e);
    forget(e);
    pl__informer_release(&e->remote.nodes_informer);
    pl__informer_release(&e->remote.pods_informer);
}

static void probe_send(struct pl_entry *e)
{
    due_set(e, UINT64_MAX);
    e->remote.probe_id =
        pl__request(e->controller, &(struct pl_request){ .type = ACTION_REQUEST,
                                                         .server = e->remote.server,
                                                         .method = "GET",
                                                         .path = PL_STR("/"),
                                                         .timeout_ms = PROBE_TIMEOUT_MS,
                                                         .waiter = WAITER_PROBE,
                                                         .owner = e });
}

static const struct pl_secret *kubeconfig_of(const struct pl_entry *e)
{
    return e->items[RESOURCE_SECRETS] ? e->items[RESOURCE_SECRETS]->object : NULL;
}

static void broken(struct pl_entry *e, struct pl_str error)
{
    struct pl_controller *c = e->controller;

    disconnect(e);
    pl__strfree(c, &e->remote.error);
    e->remote.error = pl__strdup(c, error);
    e->remote.state = REMOTE_BROKEN;
    due_set(e, UINT64_MAX);
    /* Trying again is no use, so it counts as tried: what is stored must not be kept for ever. */
    if (e->remote.failures < PROBE_FAILURES_MAX)
        e->remote.failures = PROBE_FAILURES_MAX;
    PL_LOG(c, PL_LOG_ERROR, "The kubeconfig of a workload cluster cannot be used",
           { "Cluster", pl__str_format(&c->scratch, "%s/%s", e->namespace_, e->name) },
           { "error", error });
    changed(e);
}

static void connect(struct pl_entry *e)
{
    struct pl_controller *c = e->controller;
    const struct pl_secret *secret = kubeconfig_of(e);
    struct pl_remote *r = &e->remote;
    struct pl_str text = { 0 };

    if (!secret || pl__base64_decode(&c->scratch, secret->value, &text) < 0 || text.len == 0) {
        broken(e, PL_STR("Secret value is not base64"));
        return;
    }
    r->server = pl__upstream_open(c, text);
    r->nodes_informer.server = r->pods_informer.server = r->server;
    r->state = REMOTE_CONNECTING;
    probe_send(e);
}

void pl__remote_update(struct pl_entry *e, struct pl_now now)
{
    struct pl_remote *r = &e->remote;
    const struct pl_secret *secret = kubeconfig_of(e);
    const struct pl_item *item = e->items[RESOURCE_CLUSTERS];
    const struct pl_cluster *cluster = item ? item->object : NULL;
    uint64_t hash = secret ? pl__hash(secret->value, PL_STR("")) : 0;

    bool held_back = e->controller->options.connect_on_request && !r->requested;

    if (!secret || !cluster || !cluster->infrastructure_provisioned || held_back) {
        bool waits = cluster && cluster->infrastructure_provisioned && !held_back;
        if (r->state != REMOTE_IDLE) {
            disconnect(e);
            if (!secret || !cluster)
                forget(e);
            r->state = REMOTE_IDLE;
            r->kubeconfig_hash = 0;
            due_set(e, UINT64_MAX);
        }
        if (!cluster)
            r->last_success_wall_ms = r->failures = 0; /* the next of that name is another one */
        /* A kubeconfig that does not come is a connection that does not come about. */
        if (!waits)
            due_set(e, UINT64_MAX);
        else if (r->due_ms == UINT64_MAX && r->failures < PROBE_FAILURES_MAX)
            due_set(e, now.mono_ms + RECONNECT_MS);
        return;
    }
    if (r->state != REMOTE_IDLE && hash == r->kubeconfig_hash)
        return;
    /* A renewed kubeconfig is another way to the same cluster: what is known stays valid meanwhile. */
    disconnect(e);
    pl__strfree(e->controller, &r->error);
    r->kubeconfig_hash = hash;
    r->failures = r->connect_failures = 0;
    connect(e);
}

void pl__remote_open_failed(struct pl_entry *e, struct pl_str error, struct pl_now now)
{
    (void)now;
    broken(e, error);
}

static void down(struct pl_entry *e, struct pl_str error, struct pl_now now)
{
    struct pl_remote *r = &e->remote;
    struct pl_controller *c = e->controller;

    disconnect(e);
    pl__strfree(c, &r->error);
    r->error = pl__strdup(c, error);
    distrust(e);
    r->state = REMOTE_DOWN;
    due_set(e, now.mono_ms +
                   pl__backoff_ms(c, r->connect_failures, RECONNECT_MS / 2, RECONNECT_MS_MAX));
    r->connect_failures++;
    PL_LOG(c, PL_LOG_INFO, "Connection to a workload cluster is down",
           { "Cluster", pl__str_format(&c->scratch, "%s/%s", e->namespace_, e->name) },
           { "error", error });
    changed(e);
}

void pl__remote_probe_answer(struct pl_entry *e, const struct pl_event *event, struct pl_now now)
{
    struct pl_remote *r = &e->remote;
    struct pl_controller *c = e->controller;
    struct pl_str error =
        event->status ? pl__str_format(&c->scratch, "the API server answered %d", event->status)
                      : event->error;
    bool ok = event->status == 200;

    r->probe_id = 0;
    if (ok) {
        bool was_up = r->state == REMOTE_UP;
        r->last_success_wall_ms = now.wall_ms;
        r->failures = r->connect_failures = 0;
        pl__strfree(c, &r->error);
        r->state = REMOTE_UP;
        due_set(e, now.mono_ms + PROBE_PERIOD_MS);
        pl__informer_start(&r->nodes_informer, now);
        pl__informer_start(&r->pods_informer, now);
        if (!was_up) {
            PL_LOG(c, PL_LOG_INFO, "Connected to a workload cluster",
                   { "Cluster", pl__str_format(&c->scratch, "%s/%s", e->namespace_, e->name) });
            objects_changed(e);
        }
        return;
    }
    r->failures++;
    if (r->state == REMOTE_UP && r->failures < PROBE_FAILURES_MAX) {
        due_set(e, now.mono_ms + PROBE_PERIOD_MS);
        return;
    }
    down(e, error, now);
}

static void kubeconfig_missing(struct pl_entry *e, struct pl_now now)
{
    if (++e->remote.failures < PROBE_FAILURES_MAX) {
        due_set(e, now.mono_ms + RECONNECT_MS);
        return;
    }
    due_set(e, UINT64_MAX);
    changed(e);
}

void pl__remote_tick(struct pl_entry *e, struct pl_now now)
{
    struct pl_remote *r = &e->remote;

    pl__informer_tick(&r->nodes_informer, now);
    pl__informer_tick(&r->pods_informer, now);
    pl__remote_etcd_tick(e, now);
    if (now.mono_ms < r->due_ms)
        return;
    if (r->state == REMOTE_UP)
        probe_send(e);
    else if (r->state == REMOTE_DOWN)
        connect(e);
    else if (r->state == REMOTE_IDLE)
        kubeconfig_missing(e, now);
    else
        due_set(e, UINT64_MAX);
}

/* --- what the engine wants to know ------------------------------------------------------------ */

/* A first look that has neither come nor failed; a server that starts refuses a while. */
static bool unread(const struct pl_informer *i, const char *error, int status)
{
    bool passing = status == 0 || status == 429 || status >= 500;

    return !i->synced && (!error || (passing && i->failures < READS_FAILED_MAX));
}

bool pl__remote_pending(const struct pl_entry *e)
{
    const struct pl_remote *r = &e->remote;

    if (r->state == REMOTE_CONNECTING)
        return r->failures == 0;
    return r->state == REMOTE_UP && (unread(&r->nodes_informer, r->nodes_error, r->nodes_status) ||
                                     unread(&r->pods_informer, r->pods_error, r->pods_status));
}

struct copy {
    char *to;
    size_t size;
};

static void copy_item(struct pl_item *item, void *user)
{
    struct copy *c = user;

    memcpy(c->to, item->object, c->size);
    c->to += c->size;
}

/* The objects of a store as an array of structs; what they point at is borrowed. */
static void copy_all(const struct pl_store *store, struct pl_arena *arena, struct pl_list *list)
{
    size_t size = store->shape->size;
    struct copy c = { pl__arena_array(arena, store->count, size), size };
    struct pl_store walked = *store;

    list->items = c.to;
    list->count = store->count;
    list->present = true;
    pl__store_each(&walked, copy_item, &c);
}

static int by_name(const void *a, const void *b)
{
    return pl__str_compare(((const struct pl_node *)a)->name, ((const struct pl_node *)b)->name);
}

/* Reading the Pods failed as a whole: then each Pod that will be asked for could not be read. */
static void pod_errors_fill(const struct pl_entry *e, struct pl_arena *arena, struct pl_workload *w)
{
    size_t room = 0;
    struct pl_str text = pl__str(e->remote.pods_error);

    for (const struct pl_item *i = e->items[RESOURCE_MACHINES]; i; i = i->next_in_entry)
        room += POD_COUNT;
    w->pod_errors.items = PL_NEW(arena, struct pl_pod_error, room);
    w->pod_errors.present = true;
    for (const struct pl_item *i = e->items[RESOURCE_MACHINES]; i; i = i->next_in_entry) {
        const struct pl_machine *m = i->object;
        if (!m->meta.labels.control_plane || !m->node_name.len)
            continue;
        for (int pod = 0; pod < POD_COUNT; pod++)
            w->pod_errors.items[w->pod_errors.count++] = (struct pl_pod_error){
                .pod = pl__str_format(arena, "%.*s%.*s", PL_STR_ARG(pl__static_pods[pod]),
                                      PL_STR_ARG(m->node_name)),
                .text = text,
            };
    }
}

void pl__remote_observe(const struct pl_entry *e, struct pl_arena *arena, struct pl_workload *w)
{
    const struct pl_remote *r = &e->remote;
    bool reads = r->state == REMOTE_UP && !pl__remote_pending(e);

    w->cluster = pl__str_format(arena, "%s/%s", e->namespace_, e->name);
    w->connection = (struct pl_connection){ .present = true,
                                            .state = r->state == REMOTE_BROKEN ? CONNECTION_FAILED
                                                     : reads ? CONNECTION_CONNECTED
                                                             : CONNECTION_DOWN,
                                            .error = pl__str(r->error),
                                            .last_probe_success_ms = r->last_success_wall_ms,
                                            .consecutive_failures = r->failures };
    if (!reads)
        return;
    if (r->nodes_informer.synced) {
        copy_all(&r->nodes, arena, (struct pl_list *)(void *)&w->nodes);
        /* As the API lists them. Messages name Nodes in this order: it must not change by itself. */
        if (w->nodes.count > 1)
            qsort(w->nodes.items, w->nodes.count, sizeof *w->nodes.items, by_name);
    } else {
        w->nodes_error = pl__str(r->nodes_error);
    }
    if (r->pods_informer.synced)
        copy_all(&r->pods, arena, (struct pl_list *)(void *)&w->pods);
    else
        pod_errors_fill(e, arena, w);
    pl__remote_etcd_observe(e, &w->etcd);
}
