/* controller/world.c - which objects belong to which cluster.
 *
 * Every kind we watch names its Cluster: by label, by spec.clusterName, or by being it. An entry gathers
 * all of one cluster, so a change finds whom to wake, and a reconcile what to read, without a search. An
 * entry exists as long as anything names it. */
#include "controller/internal.h"

enum { BUCKETS_FIRST = 64 };

struct pl_entry *pl__world_find(const struct pl_world *w, struct pl_str namespace_,
                                struct pl_str name)
{
    uint64_t hash = pl__hash(namespace_, name);

    if (!w->bucket_count)
        return NULL;
    for (struct pl_entry *e = w->buckets[hash & (w->bucket_count - 1)]; e; e = e->next_in_bucket) {
        if (e->hash == hash && pl__str_equal(pl__str(e->namespace_), namespace_) &&
            pl__str_equal(pl__str(e->name), name))
            return e;
    }
    return NULL;
}

static void buckets_grow(struct pl_controller *c)
{
    struct pl_world *w = &c->world;
    uint32_t bucket_count = w->bucket_count ? 2 * w->bucket_count : BUCKETS_FIRST;
    struct pl_entry **buckets = pl__alloc(c, bucket_count * sizeof(struct pl_entry *));

    for (struct pl_entry *e = w->first; e; e = e->next) {
        e->next_in_bucket = buckets[e->hash & (bucket_count - 1)];
        buckets[e->hash & (bucket_count - 1)] = e;
    }
    if (w->buckets)
        pl__free(c, w->buckets, w->bucket_count * sizeof(struct pl_entry *));
    w->buckets = buckets;
    w->bucket_count = bucket_count;
}

static struct pl_entry *entry_new(struct pl_controller *c, struct pl_str namespace_,
                                  struct pl_str name)
{
    struct pl_world *w = &c->world;
    struct pl_entry *e = pl__alloc(c, sizeof *e);

    if (w->entry_count >= w->bucket_count)
        buckets_grow(c);
    e->controller = c;
    e->timer = (struct pl_timer){ UINT64_MAX, UINT32_MAX };
    e->hash = pl__hash(namespace_, name);
    e->namespace_ = pl__strdup(c, namespace_);
    e->name = pl__strdup(c, name);
    e->next_in_bucket = w->buckets[e->hash & (w->bucket_count - 1)];
    w->buckets[e->hash & (w->bucket_count - 1)] = e;
    e->next = w->first;
    if (w->first)
        w->first->previous = e;
    w->first = e;
    w->entry_count++;
    pl__remote_init(e);
    return e;
}

static void entry_free(struct pl_controller *c, struct pl_entry *e)
{
    struct pl_world *w = &c->world;
    struct pl_entry **at = &w->buckets[e->hash & (w->bucket_count - 1)];

    while (*at != e)
        at = &(*at)->next_in_bucket;
    *at = e->next_in_bucket;
    if (e->next)
        e->next->previous = e->previous;
    if (e->previous)
        e->previous->next = e->next;
    else
        w->first = e->next;
    w->entry_count--;
    pl__remote_release(e);
    pl__timers_remove(&w->timers, &e->timer);
    pl__strfree(c, &e->namespace_);
    pl__strfree(c, &e->name);
    pl__free(c, e, sizeof *e);
}

/* The cluster an object names; empty: none. */
static struct pl_str cluster_of(enum pl_resource_id resource, const void *object)
{
    const struct pl_meta *meta = object;

    switch (resource) {
    case RESOURCE_CLUSTERS:
        return meta->name;
    case RESOURCE_MACHINE_HEALTH_CHECKS:
        return ((const struct pl_machine_health_check *)object)->cluster_name;
    case RESOURCE_MACHINE_POOLS:
        return ((const struct pl_machine_pool *)object)->cluster_name;
    case RESOURCE_KCPS:
        for (uint32_t i = 0; i < meta->owners.count; i++) {
            if (pl__str_equal(meta->owners.items[i].kind, PL_STR("Cluster")))
                return meta->owners.items[i].name;
        }
        return meta->labels.cluster_name;
    default:
        return meta->labels.cluster_name;
    }
}

static void item_leave(struct pl_item *item, enum pl_resource_id resource)
{
    struct pl_entry *e = item->entry;

    if (!e)
        return;
    if (item->next_in_entry)
        item->next_in_entry->previous_in_entry = item->previous_in_entry;
    if (item->previous_in_entry)
        item->previous_in_entry->next_in_entry = item->next_in_entry;
    else
        e->items[resource] = item->next_in_entry;
    item->next_in_entry = item->previous_in_entry = NULL;
    item->entry = NULL;
    e->item_count--;
}

static void item_join(struct pl_item *item, enum pl_resource_id resource, struct pl_entry *e)
{
    item->entry = e;
    item->next_in_entry = e->items[resource];
    if (e->items[resource])
        e->items[resource]->previous_in_entry = item;
    e->items[resource] = item;
    e->item_count++;
}

static bool is_reconciled(enum pl_resource_id resource)
{
    return resource == RESOURCE_KCPS || resource == RESOURCE_MACHINE_DEPLOYMENTS;
}

static void work_make(struct pl_controller *c, struct pl_item *item, enum pl_resource_id resource)
{
    item->work = pl__alloc(c, sizeof *item->work);
    *item->work = (struct pl_work){
        .item = item, .resource = resource, .timer = { UINT64_MAX, UINT32_MAX }, .tokens = 1e9
    };
}

/* Whether etcd has to be asked again when this object changes. */
static bool touches_etcd(enum pl_resource_id resource, const struct pl_meta *meta)
{
    return resource == RESOURCE_KCPS ||
           (resource == RESOURCE_MACHINES && meta->labels.control_plane);
}

static void item_remove(struct pl_controller *c, enum pl_resource_id resource, struct pl_item *item)
{
    struct pl_entry *e = item->entry;
    bool etcd = touches_etcd(resource, item->object);

    if (item->work) {
        pl__queue_remove(c, item->work);
        if (item->work->in_flight)
            pl__request_disown(c, item->work);
        pl__act_release(c, item->work);
        pl__free(c, item->work, sizeof *item->work);
        item->work = NULL;
    }
    item_leave(item, resource);
    pl__store_remove(&c->world.stores[resource], item);
    if (!e)
        return;
    if (resource == RESOURCE_CLUSTERS || resource == RESOURCE_SECRETS)
        pl__remote_update(e, c->now);
    if (etcd)
        pl__remote_etcd_changed(e, c->now);
    pl__wake_entry(c, e, c->now);
    if (e->item_count == 0)
        entry_free(c, e);
}

/* Whether a Secret is named "<cluster><suffix>". */
static bool is_secret(const struct pl_secret *s, struct pl_str suffix)
{
    struct pl_str cluster = s->meta.labels.cluster_name;

    return s->meta.name.len == cluster.len + suffix.len &&
           pl__str_starts_with(s->meta.name, cluster) && pl__str_ends_with(s->meta.name, suffix);
}

static bool wanted(const struct pl_controller *c, enum pl_resource_id resource, const void *object,
                   struct pl_str cluster)
{
    if (cluster.len == 0)
        return false;
    /* Of Secrets only kubeconfigs are kept. */
    if (resource == RESOURCE_SECRETS && !is_secret(object, PL_STR("-kubeconfig")))
        return false;
    return !c->options.only_cluster || pl__str_equal(cluster, pl__str(c->options.only_cluster));
}

void pl__world_put(struct pl_controller *c, enum pl_resource_id resource, const void *object,
                   uint32_t generation, bool any_version)
{
    struct pl_store *store = &c->world.stores[resource];
    const struct pl_meta *meta = object;
    struct pl_str cluster = cluster_of(resource, object);
    struct pl_item *item = pl__store_find(store, meta->namespace_, meta->name);
    bool is_new;

    if (resource == RESOURCE_SECRETS && is_secret(object, PL_STR("-etcd"))) {
        struct pl_entry *e = pl__world_find(&c->world, meta->namespace_, cluster);
        if (e)
            pl__remote_etcd_secret_changed(e, meta->resource_version, c->now);
    }
    if (item && generation)
        item->generation = generation;
    if (item && meta->resource_version) {
        uint64_t known = ((const struct pl_meta *)item->object)->resource_version;
        if (meta->resource_version == known || (meta->resource_version < known && !any_version))
            return; /* known already, or older than what an answer to a write brought */
    }
    if (!wanted(c, resource, object, cluster)) {
        if (item)
            item_remove(c, resource, item);
        return;
    }
    item = pl__store_put(store, object, &is_new);
    if (generation)
        item->generation = generation;
    if (is_new && is_reconciled(resource))
        work_make(c, item, resource);
    struct pl_entry *e = pl__world_find(&c->world, meta->namespace_, cluster);
    if (!e)
        e = entry_new(c, meta->namespace_, cluster);
    if (item->entry != e) {
        struct pl_entry *left = item->entry;
        item_leave(item, resource);
        item_join(item, resource, e);
        if (left && touches_etcd(resource, item->object))
            pl__remote_etcd_changed(left, c->now);
        if (left)
            pl__wake_entry(c, left, c->now);
        if (left && left->item_count == 0)
            entry_free(c, left);
    }
    if (resource == RESOURCE_CLUSTERS || resource == RESOURCE_SECRETS)
        pl__remote_update(e, c->now);
    if (touches_etcd(resource, item->object))
        pl__remote_etcd_changed(e, c->now);
    pl__wake_entry(c, e, c->now);
}

/* --- the sink of the management informers ----------------------------------------------------- */

static enum pl_resource_id resource_of(const struct pl_controller *c, const struct pl_informer *i)
{
    return (enum pl_resource_id)(i - c->world.informers);
}

static void management_object(void *user, struct pl_informer *i, const void *object)
{
    struct pl_controller *c = user;
    pl__world_put(c, resource_of(c, i), object, i->generation, pl__informer_syncing(i));
}

static void management_gone(void *user, struct pl_informer *i, struct pl_str namespace_,
                            struct pl_str name)
{
    struct pl_controller *c = user;
    enum pl_resource_id resource = resource_of(c, i);
    struct pl_item *item = pl__store_find(&c->world.stores[resource], namespace_, name);

    if (item)
        item_remove(c, resource, item);
}

struct sweep {
    struct pl_controller *c;
    enum pl_resource_id resource;
    uint32_t generation;
};

static void sweep_item(struct pl_item *item, void *user)
{
    struct sweep *s = user;

    if (item->generation != s->generation)
        item_remove(s->c, s->resource, item);
}

static void management_synced(void *user, struct pl_informer *i)
{
    struct pl_controller *c = user;
    struct sweep s = { c, resource_of(c, i), i->generation };

    pl__store_each(&c->world.stores[s.resource], sweep_item, &s);
    PL_LOG(c, PL_LOG_DEBUG, "Synced", { "resource", pl__str(i->resource->plural) });
    if (pl_controller_synced(c) && !c->world.complete) {
        c->world.complete = true;
        for (struct pl_entry *e = c->world.first; e; e = e->next)
            pl__wake_entry(c, e, c->now);
    }
}

/* Before everything has been read once, an answer that asking again will not change ends the start. */
static void management_failed(void *user, struct pl_informer *i, int status, struct pl_str error)
{
    struct pl_controller *c = user;
    const char *plural = i->resource->plural;
    struct pl_arena *a = &c->scratch;

    PL_LOG(c, PL_LOG_INFO, "Reading failed, will try again", { "resource", pl__str(plural) },
           { "error", error });
    if (i->synced)
        return;
    if (status == 404)
        pl__stop(c, pl__str_format(
                        a,
                        "the API server does not know %s.%s (%s or %s): install Cluster API's "
                        "CRDs, or point --kubeconfig at the management cluster",
                        plural, i->resource->group, i->resource->version,
                        i->resource->fallback ? i->resource->fallback : "none"));
    else if (status == 403)
        pl__stop(
            c, pl__str_format(a, "missing permission: %.*s; grant it with the roles in deploy/rbac",
                              PL_STR_ARG(error)));
    else if (status == 401)
        pl__stop(c, pl__str_format(a, "the API server does not accept the credentials: %.*s",
                                   PL_STR_ARG(error)));
    else if (status == 400 && c->options.reads_only)
        pl__stop(c, pl__str_format(a, "the API server does not understand the request: %.*s",
                                   PL_STR_ARG(error)));
    /* Someone who only reads waits at a prompt: the first failure is the answer. */
    else if (status == 0 && (i->failures >= 3 || c->options.reads_only))
        pl__stop(c, pl__str_format(a, "cannot reach the management API server: %.*s",
                                   PL_STR_ARG(error)));
}

static const struct pl_informer_sink management_sink = { .object = management_object,
                                                         .gone = management_gone,
                                                         .synced = management_synced,
                                                         .failed = management_failed };

void pl__world_init(struct pl_controller *c)
{
    for (int i = 0; i < RESOURCE_MANAGEMENT_COUNT; i++) {
        pl__store_init(&c->world.stores[i], pl__resources[i].shape, c->options.allocator);
        pl__informer_init(&c->world.informers[i], c, (enum pl_resource_id)i, 0, &management_sink,
                          c);
    }
}

static void work_free(struct pl_item *item, void *user)
{
    if (!item->work)
        return;
    pl__act_release(user, item->work);
    pl__free(user, item->work, sizeof *item->work);
    item->work = NULL;
}

void pl__world_release(struct pl_controller *c)
{
    struct pl_world *w = &c->world;

    for (int i = 0; i < RESOURCE_MANAGEMENT_COUNT; i++) {
        pl__informer_release(&w->informers[i]);
        pl__store_each(&w->stores[i], work_free, c);
        pl__store_release(&w->stores[i]);
    }
    while (w->first)
        entry_free(c, w->first);
    if (w->buckets)
        pl__free(c, w->buckets, w->bucket_count * sizeof(struct pl_entry *));
    pl__timers_release(c, &w->timers);
    *w = (struct pl_world){ 0 };
}
