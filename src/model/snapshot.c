#include "model/snapshot.h"

#include <stdlib.h>

#include "base/time.h"

/* --- the Snapshot format, as tables ----------------------------------------------------------- */

static int read_u64(struct pl_json *j, void *destination);
static int read_state(struct pl_json *j, void *destination);
static int read_connection(struct pl_json *j, void *destination);
static int read_etcd(struct pl_json *j, void *destination);
static int read_pod_errors(struct pl_json *j, void *destination);
static int read_grace_period(struct pl_json *j, void *destination);
static int read_objects(struct pl_json *j, void *destination);
static bool write_u64(struct pl_json_writer *w, const void *value);
static bool write_state(struct pl_json_writer *w, const void *value);
static bool write_connection(struct pl_json_writer *w, const void *value);
static bool write_etcd(struct pl_json_writer *w, const void *value);
static bool write_pod_errors(struct pl_json_writer *w, const void *value);
static bool write_grace_period(struct pl_json_writer *w, const void *value);
static bool write_objects(struct pl_json_writer *w, const void *value);

/* clang-format off */

static const struct pl_field connection_fields[] = {
    PL_FIELD_BOTH("state",                   struct pl_connection, state, read_state, write_state),
    PL_FIELD("error",                F_STR,  struct pl_connection, error),
    PL_FIELD("lastProbeSuccessTime", F_TIME, struct pl_connection, last_probe_success_ms),
    PL_FIELD("consecutiveFailures",  F_INT,  struct pl_connection, consecutive_failures),
};
static PL_SHAPE(connection_shape, struct pl_connection, connection_fields);

static const struct pl_field member_fields[] = {
    PL_FIELD_BOTH("ID",           struct pl_etcd_member, id, read_u64, write_u64),
    PL_FIELD("name",      F_STR,  struct pl_etcd_member, name),
    PL_FIELD("isLearner", F_BOOL, struct pl_etcd_member, is_learner),
};
static PL_SHAPE(member_shape, struct pl_etcd_member, member_fields);

static const struct pl_field alarm_fields[] = {
    PL_FIELD_BOTH("memberID",   struct pl_etcd_alarm, member_id, read_u64, write_u64),
    PL_FIELD("alarm", F_STR,    struct pl_etcd_alarm, alarm),
};
static PL_SHAPE(alarm_shape, struct pl_etcd_alarm, alarm_fields);

static const struct pl_field etcd_fields[] = {
    PL_FIELD("observedTime", F_TIME,    struct pl_etcd_view, observed_ms),
    PL_FIELD("connectError", F_STR,     struct pl_etcd_view, connect_error),
    PL_FIELD("endpoint",     F_STR,     struct pl_etcd_view, endpoint),
    PL_FIELD("errors",       F_STRINGS, struct pl_etcd_view, errors),
    PL_FIELD("membersError", F_STR,     struct pl_etcd_view, members_error),
    PL_FIELD("alarmsError",  F_STR,     struct pl_etcd_view, alarms_error),
    PL_FIELD_BOTH("leader",             struct pl_etcd_view, leader, read_u64, write_u64),
    PL_FIELD_SHAPE("members", F_LIST,   struct pl_etcd_view, members, &member_shape),
    PL_FIELD_SHAPE("alarms",  F_LIST,   struct pl_etcd_view, alarms,  &alarm_shape),
};
PL_SHAPE(pl__etcd_view_shape, struct pl_etcd_view, etcd_fields);

static const struct pl_field workload_fields[] = {
    PL_FIELD("cluster",    F_STR,       struct pl_workload, cluster),
    PL_FIELD_BOTH("connection",         struct pl_workload, connection, read_connection, write_connection),
    PL_FIELD("nodesError", F_STR,       struct pl_workload, nodes_error),
    PL_FIELD_SHAPE("nodes", F_LIST,     struct pl_workload, nodes, &pl__node_shape),
    PL_FIELD_SHAPE("pods",  F_LIST,     struct pl_workload, pods,  &pl__pod_shape),
    PL_FIELD_BOTH("podErrors",          struct pl_workload, pod_errors, read_pod_errors, write_pod_errors),
    PL_FIELD_BOTH("etcd",               struct pl_workload, etcd, read_etcd, write_etcd),
};
static PL_SHAPE(workload_shape, struct pl_workload, workload_fields);

static const struct pl_field snapshot_fields[] = {
    PL_FIELD("name", F_STR,  struct pl_snapshot, name),
    PL_FIELD("now",  F_TIME, struct pl_snapshot, now_ms),
    PL_FIELD_BOTH("remoteConditionsGracePeriodSeconds", struct pl_snapshot, grace_period_s, read_grace_period, write_grace_period),
    PL_FIELD_BOTH("objects",             struct pl_snapshot, objects, read_objects, write_objects),
    PL_FIELD_SHAPE("workloads", F_LIST,  struct pl_snapshot, workloads, &workload_shape),
};
static PL_SHAPE(snapshot_shape, struct pl_snapshot, snapshot_fields);

/* clang-format on */

/* A decimal string, or a bare number: member ids use all 64 bits, more than a JSON reader may
 * promise, so the API writes them as strings; people write them in YAML as they please. */
static int read_u64(struct pl_json *j, void *destination)
{
    const char *where = j->at;
    struct pl_str digits;
    int type = pl__json_peek(j);

    if (type < 0)
        return -1;
    if (type == JSON_NUMBER) {
        where = j->at;
        if (pl__json_skip(j) < 0)
            return -1;
        digits = (struct pl_str){ where, (size_t)(j->at - where) };
    } else if (pl__json_string(j, &digits) < 0) {
        return -1;
    }
    if (!pl__str_to_u64(digits, destination))
        return pl__json_error(j, where, PL_INVALID, "expected an id of up to 64 bits, in decimal");
    return 0;
}

static const struct pl_str state_names[] = {
    [CONNECTION_CONNECTED] = PL_STR_INIT("Connected"),
    [CONNECTION_DOWN] = PL_STR_INIT("NotConnected"),
    [CONNECTION_FAILED] = PL_STR_INIT("Failed"),
};

struct pl_str pl__connection_state_name(enum pl_connection_state state)
{
    return state_names[state];
}

static int read_state(struct pl_json *j, void *destination)
{
    const char *where = j->at;
    struct pl_str name;

    if (pl__json_string(j, &name) < 0)
        return -1;
    for (size_t i = 0; i < sizeof state_names / sizeof state_names[0]; i++) {
        if (pl__str_equal(name, state_names[i])) {
            *(uint8_t *)destination = (uint8_t)i;
            return 0;
        }
    }
    return pl__json_error(j, where, PL_INVALID,
                          "connection state \"%.*s\", expected Connected, NotConnected or Failed",
                          PL_STR_ARG(name));
}

static int read_connection(struct pl_json *j, void *destination)
{
    struct pl_connection *connection = destination;
    const char *where = j->at;

    connection->present = true;
    connection->state = UINT8_MAX;
    if (pl__json_decode(j, &connection_shape, connection) < 0)
        return -1;
    if (connection->state == UINT8_MAX)
        return pl__json_error(j, where, PL_INVALID,
                              "connection without state, expected Connected, "
                              "NotConnected or Failed");
    return 0;
}

static int read_etcd(struct pl_json *j, void *destination)
{
    struct pl_etcd_view *etcd = destination;

    etcd->present = true;
    return pl__json_decode(j, &pl__etcd_view_shape, etcd);
}

static int read_grace_period(struct pl_json *j, void *destination)
{
    const char *where = j->at;
    int64_t seconds;

    if (pl__json_int(j, &seconds) < 0)
        return -1;
    if (seconds < GRACE_PERIOD_S_MIN || seconds > INT32_MAX)
        return pl__json_error(j, where, PL_INVALID,
                              "grace period of %lld s, expected at least %d s (2m)",
                              (long long)seconds, GRACE_PERIOD_S_MIN);
    *(int64_t *)destination = seconds;
    return 0;
}

/* --- lists that grow while reading ------------------------------------------------------------- */

enum { LIST_CAPACITY_FIRST = 4 };

/* A zeroed slot behind the last. Capacity is not stored: it is the next power of two. */
static void *list_add(struct pl_list *list, struct pl_arena *arena, size_t item_size)
{
    size_t count = list->count;

    if (count == 0)
        list->items = pl__arena_array(arena, LIST_CAPACITY_FIRST, item_size);
    else if (count >= LIST_CAPACITY_FIRST && (count & (count - 1)) == 0)
        list->items = pl__arena_grow(arena, list->items, count * item_size, 2 * count * item_size);
    list->present = true;
    list->count++;
    return (char *)list->items + count * item_size;
}

#define LIST(list) ((struct pl_list *)(void *)(list))

static int read_pod_errors(struct pl_json *j, void *destination)
{
    struct pl_list *list = destination;
    struct pl_str pod;
    int more;

    if (pl__json_object(j) < 0)
        return -1;
    while ((more = pl__json_key(j, &pod)) > 0) {
        struct pl_pod_error *e = list_add(list, j->arena, sizeof *e);
        e->pod = pl__str_copy(j->arena, pod);
        if (pl__json_string(j, &e->text) < 0)
            return -1;
    }
    return more;
}

/* --- objects ----------------------------------------------------------------------------------- */

/* Where objects of a kind are kept. */
static struct pl_list *list_of(struct pl_objects *o, enum pl_model_kind kind)
{
    switch (kind) {
    case KIND_CLUSTER:
        return LIST(&o->clusters);
    case KIND_KCP:
        return LIST(&o->kcps);
    case KIND_MACHINE:
        return LIST(&o->machines);
    case KIND_MACHINE_DEPLOYMENT:
        return LIST(&o->machine_deployments);
    case KIND_MACHINE_SET:
        return LIST(&o->machine_sets);
    case KIND_MACHINE_HEALTH_CHECK:
        return LIST(&o->machine_health_checks);
    case KIND_MACHINE_POOL:
        return LIST(&o->machine_pools);
    case KIND_NODE:
        return LIST(&o->loose_nodes);
    case KIND_POD:
        return LIST(&o->loose_pods);
    default:
        return NULL;
    }
}

/* What an object says it is. */
struct heading {
    struct pl_str api_version;
    struct pl_str kind;
    bool has_snapshot; /* a line of vectors: {"name", "snapshot", "expect"} */
};

/* Reads on until apiVersion and kind are known, and skips what stands before them. */
static int heading_scan(struct pl_json *ahead, struct heading *h, int (*skip)(struct pl_json *))
{
    struct pl_str key;
    int more;

    if (pl__json_object(ahead) < 0)
        return -1;
    while ((more = pl__json_key(ahead, &key)) > 0) {
        bool is_version = pl__str_equal(key, PL_STR("apiVersion"));
        bool is_kind = pl__str_equal(key, PL_STR("kind"));
        int type = pl__json_peek(ahead);

        if ((is_version || is_kind) && type == JSON_STRING) {
            if (pl__json_string(ahead, is_kind ? &h->kind : &h->api_version) < 0)
                return -1;
            if (h->kind.len && h->api_version.len)
                return 0;
            continue;
        }
        h->has_snapshot |= pl__str_equal(key, PL_STR("snapshot"));
        if (type < 0 || skip(ahead) < 0)
            return -1;
    }
    return more;
}

/* Looks ahead for apiVersion and kind, wherever they stand, and leaves the reader where it was; an
 * error ends it as any other does.
 *
 * They mostly come first, but a list from the API server has its keys sorted, so that "kind" stands
 * behind all the items. The first look is a fast one: what it skips is checked when it is read. Only
 * where that finds nothing a second one checks everything, to say what is wrong and where. */
static int heading_read(struct pl_json *j, struct heading *h)
{
    struct pl_json ahead = *j;

    ahead.err = NULL;
    if (heading_scan(&ahead, h, pl__json_skip_fast) == 0 &&
        ((h->kind.len && h->api_version.len) || h->has_snapshot))
        return 0;

    *h = (struct heading){ 0 };
    ahead = *j;
    if (heading_scan(&ahead, h, pl__json_skip) == 0)
        return 0;
    j->at = ahead.at;
    j->failed = ahead.failed;
    return -1;
}

static int object_read(struct pl_json *j, struct pl_objects *o, enum pl_model_kind kind,
                       bool v1beta1)
{
    struct pl_list *list = list_of(o, kind);
    const struct pl_shape *shape = pl__kind_shape(kind);

    if (++o->count > o->count_max)
        return pl__json_error(j, j->at, PL_LIMIT, "more than %zu objects", o->count_max);
    void *object = list_add(list, j->arena, shape->size);
    if (pl__object_decode(j, kind, v1beta1, object) < 0)
        return -1;
    if (shape->keep && !shape->keep(object)) {
        memset(object, 0, shape->size);
        list->count--;
    }
    return 0;
}

static int items_read(struct pl_json *j, struct pl_objects *o, const struct heading *item_default);

/* Reads one object of any kind. `assumed` is what it is when it does not say: items of a typed list
 * from the API ("MachineList") carry no kind of their own. */
static int any_object_read(struct pl_json *j, struct pl_objects *o, const struct heading *assumed)
{
    const char *where = j->at;
    struct heading h = { 0 };
    bool v1beta1;

    if (heading_read(j, &h) < 0)
        return -1;
    if (h.kind.len == 0 && h.api_version.len == 0 && assumed)
        h = *assumed;
    if (h.kind.len == 0)
        return pl__json_error(j, where, PL_INVALID, "object without kind");

    int kind = pl__kind_find(h.api_version, h.kind, &v1beta1);
    if (kind < 0)
        return pl__json_error(j, where, PL_INVALID,
                              "%.*s of apiVersion %.*s is not supported, "
                              "expected v1beta2 or v1beta1 (Node and Pod: v1)",
                              PL_STR_ARG(h.kind), PL_STR_ARG(h.api_version));
    if (kind != KIND_OTHER)
        return object_read(j, o, (enum pl_model_kind)kind, v1beta1);

    if (!pl__str_ends_with(h.kind, PL_STR("List")) || assumed)
        return pl__json_skip(j);
    h.kind.len -= strlen("List");
    return items_read(j, o, h.kind.len ? &h : NULL);
}

/* The objects of a List: everything in it but `items` is skipped. */
static int items_read(struct pl_json *j, struct pl_objects *o, const struct heading *item_default)
{
    static const struct heading no_default = { 0 };
    struct pl_str key;
    int more;

    if (pl__json_object(j) < 0)
        return -1;
    while ((more = pl__json_key(j, &key)) > 0) {
        if (!pl__str_equal(key, PL_STR("items")) || pl__json_peek(j) != JSON_ARRAY) {
            if (pl__json_skip(j) < 0)
                return -1;
            continue;
        }
        if (pl__json_array(j) < 0)
            return -1;
        while ((more = pl__json_item(j)) > 0) {
            if (any_object_read(j, o, item_default ? item_default : &no_default) < 0)
                return -1;
        }
        if (more < 0)
            return -1;
    }
    return more;
}

static int read_objects(struct pl_json *j, void *destination)
{
    struct pl_objects *objects = destination;
    int more;

    if (pl__json_array(j) < 0)
        return -1;
    while ((more = pl__json_item(j)) > 0) {
        if (any_object_read(j, objects, NULL) < 0)
            return -1;
    }
    return more;
}

static int snapshot_read(struct pl_json *j, struct pl_snapshot *s)
{
    const char *where = j->at;

    if (pl__json_decode(j, &snapshot_shape, s) < 0)
        return -1;
    for (uint32_t i = 0; i < s->workloads.count; i++) {
        struct pl_str cluster = s->workloads.items[i].cluster;
        if (cluster.len == 0 || !memchr(cluster.ptr, '/', cluster.len))
            return pl__json_error(j, where, PL_INVALID,
                                  "workloads[%u].cluster is \"%.*s\", "
                                  "expected namespace/name",
                                  i, PL_STR_ARG(cluster));
    }
    /* In a Snapshot, Nodes and Pods count only where they say whose they are: under workloads. */
    memset(&s->objects.loose_nodes, 0, sizeof s->objects.loose_nodes);
    memset(&s->objects.loose_pods, 0, sizeof s->objects.loose_pods);
    return 0;
}

/* A line {"name": ..., "snapshot": {...}, ...}: the vectors have this form. */
static int wrapped_snapshot_read(struct pl_json *j, struct pl_snapshot *s)
{
    struct pl_str key, name = { 0 };
    int more;

    if (pl__json_object(j) < 0)
        return -1;
    while ((more = pl__json_key(j, &key)) > 0) {
        int status;
        if (pl__str_equal(key, PL_STR("name")) && pl__json_peek(j) == JSON_STRING)
            status = pl__json_string(j, &name);
        else if (pl__str_equal(key, PL_STR("snapshot")))
            status = snapshot_read(j, s);
        else
            status = pl__json_skip(j);
        if (status < 0)
            return -1;
    }
    if (name.len)
        s->name = name;
    return more;
}

int pl__document_peek(struct pl_json *j)
{
    const char *where = j->at;
    struct heading h = { 0 };

    if (pl__json_peek(j) < 0 || heading_read(j, &h) < 0)
        return -1;
    if (pl__str_equal(h.kind, PL_STR("Snapshot"))) {
        if (pl__str_equal(h.api_version, PL_STR("plimsoll.dev/v1")))
            return DOCUMENT_SNAPSHOT;
        return pl__json_error(j, where, PL_INVALID,
                              "Snapshot of apiVersion \"%.*s\", expected plimsoll.dev/v1",
                              PL_STR_ARG(h.api_version));
    }
    if (h.kind.len)
        return DOCUMENT_OBJECTS;
    if (h.has_snapshot)
        return DOCUMENT_WRAPPED;
    return pl__json_error(j, where, PL_INVALID,
                          "no kind: expected a Snapshot, a List or a Kubernetes object");
}

int pl__document_read(struct pl_json *j, enum pl_document document, struct pl_snapshot *s)
{
    switch (document) {
    case DOCUMENT_SNAPSHOT:
        return snapshot_read(j, s);
    case DOCUMENT_WRAPPED:
        return wrapped_snapshot_read(j, s);
    default:
        return any_object_read(j, &s->objects, NULL);
    }
}

/* --- writing ----------------------------------------------------------------------------------- */

static bool write_u64(struct pl_json_writer *w, const void *value)
{
    const uint64_t *number = value;

    if (w)
        pl__json_write_str(w, pl__str_format(w->out->arena, "%llu", (unsigned long long)*number));
    return *number != 0;
}

static bool write_state(struct pl_json_writer *w, const void *value)
{
    const uint8_t *state = value;

    if (w)
        pl__json_write_str(w, state_names[*state]);
    return true;
}

static bool write_connection(struct pl_json_writer *w, const void *value)
{
    const struct pl_connection *connection = value;

    if (w)
        pl__json_encode(w, &connection_shape, connection);
    return connection->present;
}

static bool write_etcd(struct pl_json_writer *w, const void *value)
{
    const struct pl_etcd_view *etcd = value;

    if (w)
        pl__json_encode(w, &pl__etcd_view_shape, etcd);
    return etcd->present;
}

static bool write_grace_period(struct pl_json_writer *w, const void *value)
{
    const int64_t *seconds = value;

    if (w)
        pl__json_write_int(w, *seconds);
    return *seconds != 0;
}

static bool write_pod_errors(struct pl_json_writer *w, const void *value)
{
    struct pl_list list;

    memcpy(&list, value, sizeof list);
    const struct pl_pod_error *errors = list.items;
    if (!w)
        return list.count > 0;
    pl__json_open_object(w);
    for (uint32_t i = 0; i < list.count; i++) {
        pl__json_write_key(w, pl__str_copy(w->out->arena, errors[i].pod).ptr);
        pl__json_write_str(w, errors[i].text);
    }
    pl__json_close_object(w);
    return true;
}

/* The management kinds, in the order in which they are written and settled. */
static const enum pl_model_kind managed[] = {
    KIND_CLUSTER,      KIND_KCP,     KIND_MACHINE_DEPLOYMENT,
    KIND_MACHINE_SET,  KIND_MACHINE, KIND_MACHINE_HEALTH_CHECK,
    KIND_MACHINE_POOL,
};
enum { MANAGED_COUNT = sizeof managed / sizeof managed[0] };

/* Objects are written in v1beta2 form, whatever they were read from. */
static void object_write(struct pl_json_writer *w, enum pl_model_kind kind, const void *object)
{
    pl__json_open_object(w);
    pl__json_write_key(w, "apiVersion");
    pl__json_write_str(w, pl__str_format(w->out->arena, "%s/v1beta2", pl__kind_group(kind)));
    pl__json_write_key(w, "kind");
    pl__json_write_str(w, pl__str(pl__kind_name(kind)));
    pl__json_encode_members(w, pl__kind_shape(kind), object);
    pl__json_close_object(w);
}

static bool write_objects(struct pl_json_writer *w, const void *value)
{
    struct pl_objects objects = *(const struct pl_objects *)value;

    if (!w)
        return true;
    pl__json_open_array(w);
    for (size_t i = 0; i < MANAGED_COUNT; i++) {
        const struct pl_list *list = list_of(&objects, managed[i]);
        size_t size = pl__kind_shape(managed[i])->size;
        for (uint32_t k = 0; k < list->count; k++)
            object_write(w, managed[i], (const char *)list->items + k * size);
    }
    pl__json_close_array(w);
    return true;
}

void pl__snapshot_write(struct pl_json_writer *w, const struct pl_snapshot *s)
{
    pl__json_open_object(w);
    pl__json_write_key(w, "apiVersion");
    pl__json_write_str(w, PL_STR("plimsoll.dev/v1"));
    pl__json_write_key(w, "kind");
    pl__json_write_str(w, PL_STR("Snapshot"));
    pl__json_encode_members(w, &snapshot_shape, s);
    pl__json_close_object(w);
}

/* --- settling ---------------------------------------------------------------------------------- */

/* All management objects start with their metadata, so one comparison serves them all. */
static int by_namespace_and_name(const void *a, const void *b)
{
    const struct pl_meta *x = a, *y = b;
    int order = pl__str_compare(x->namespace_, y->namespace_);

    return order ? order : pl__str_compare(x->name, y->name);
}

static int machine_by_cluster(const void *a, const void *b)
{
    const struct pl_machine *x = a, *y = b;
    int order = pl__str_compare(x->meta.namespace_, y->meta.namespace_);

    if (!order)
        order = pl__str_compare(x->meta.labels.cluster_name, y->meta.labels.cluster_name);
    return order ? order : pl__str_compare(x->meta.name, y->meta.name);
}

static int pod_by_name(const void *a, const void *b)
{
    return pl__str_compare(((const struct pl_pod *)a)->name, ((const struct pl_pod *)b)->name);
}

static int workload_by_cluster(const void *a, const void *b)
{
    const struct pl_workload *x = a, *y = b;
    return pl__str_compare(x->cluster, y->cluster);
}

static void sort(void *items, size_t count, size_t size, int (*compare)(const void *, const void *))
{
    if (count > 1)
        qsort(items, count, size, compare);
}

/* The first object that stands twice in a list sorted by namespace and name, or NULL. */
static const struct pl_meta *find_twice(const struct pl_list *list, size_t size)
{
    for (uint32_t i = 1; i < list->count; i++) {
        const struct pl_meta *before = (const void *)((const char *)list->items + (i - 1) * size);
        const struct pl_meta *here = (const void *)((const char *)list->items + i * size);
        if (by_namespace_and_name(before, here) == 0)
            return here;
    }
    return NULL;
}

/* The only cluster that loose Nodes and Pods can belong to, as "namespace/name"; empty: none. */
static int only_cluster(struct pl_snapshot *s, struct pl_arena *arena, struct pl_str *cluster,
                        struct pl_error **err)
{
    if (s->objects.clusters.count > 1)
        return pl__error(
            arena, err, PL_INVALID,
            "%.*s: Nodes or Pods with %u Clusters: it is not clear whose they are; give "
            "one Cluster at a time, or a Snapshot",
            PL_STR_ARG(s->source), s->objects.clusters.count);
    const struct pl_meta *meta =
        s->objects.clusters.count ? &s->objects.clusters.items[0].meta : NULL;
    if (meta) {
        *cluster = pl__str_format(arena, "%.*s/%.*s", PL_STR_ARG(meta->namespace_),
                                  PL_STR_ARG(meta->name));
        return 0;
    }
    /* Without its Cluster object a control plane still knows its cluster's name. */
    if (s->objects.kcps.count == 1) {
        meta = &s->objects.kcps.items[0].meta;
        struct pl_str name = meta->labels.cluster_name;
        for (uint32_t i = meta->owners.count; i > 0; i--) {
            if (pl__str_equal(meta->owners.items[i - 1].kind, PL_STR("Cluster")))
                name = meta->owners.items[i - 1].name;
        }
        *cluster =
            pl__str_format(arena, "%.*s/%.*s", PL_STR_ARG(meta->namespace_), PL_STR_ARG(name));
    }
    return 0;
}

/* Gives loose Nodes and Pods a workload. A Node that could be read proves that the cluster could be
 * reached at that time. */
static int loose_settle(struct pl_snapshot *s, struct pl_arena *arena, struct pl_error **err)
{
    struct pl_str cluster = { 0 };

    if (!s->objects.loose_nodes.present && !s->objects.loose_pods.present)
        return 0;
    if (only_cluster(s, arena, &cluster, err) < 0)
        return -1;
    if (cluster.len == 0)
        return 0;

    struct pl_workload *w = list_add(LIST(&s->workloads), arena, sizeof *w);
    w->cluster = cluster;
    memcpy(&w->nodes, &s->objects.loose_nodes, sizeof w->nodes);
    memcpy(&w->pods, &s->objects.loose_pods, sizeof w->pods);
    if (w->nodes.present)
        w->connection = (struct pl_connection){ .present = true,
                                                .state = CONNECTION_CONNECTED,
                                                .last_probe_success_ms = s->now_ms };
    return 0;
}

/* The Node that stands in the list twice, or NULL. The list keeps its order: messages follow it. */
static const struct pl_node *node_twice(const struct pl_workload *w)
{
    for (uint32_t i = 1; i < w->nodes.count; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (pl__str_equal(w->nodes.items[i].name, w->nodes.items[k].name))
                return &w->nodes.items[i];
        }
    }
    return NULL;
}

/* One workload: bounds, order, and nothing twice. */
static int workload_settle(const struct pl_snapshot *s, struct pl_workload *w,
                           struct pl_arena *arena, struct pl_error **err)
{
    if (w->nodes.count > CONTROL_PLANE_MACHINES_MAX ||
        w->etcd.members.count > CONTROL_PLANE_MACHINES_MAX)
        return pl__error(arena, err, PL_LIMIT,
                         "%.*s: cluster %.*s has more than %d control plane Nodes or etcd members",
                         PL_STR_ARG(s->source), PL_STR_ARG(w->cluster), CONTROL_PLANE_MACHINES_MAX);
    sort(w->pods.items, w->pods.count, sizeof *w->pods.items, pod_by_name);
    for (uint32_t i = 1; i < w->pods.count; i++) {
        if (pod_by_name(&w->pods.items[i - 1], &w->pods.items[i]) == 0)
            return pl__error(
                arena, err, PL_INVALID, "%.*s: cluster %.*s has Pod kube-system/%.*s twice",
                PL_STR_ARG(s->source), PL_STR_ARG(w->cluster), PL_STR_ARG(w->pods.items[i].name));
    }
    const struct pl_node *twice = node_twice(w);
    if (twice)
        return pl__error(arena, err, PL_INVALID, "%.*s: cluster %.*s has Node %.*s twice",
                         PL_STR_ARG(s->source), PL_STR_ARG(w->cluster), PL_STR_ARG(twice->name));
    return 0;
}

int pl__snapshot_settle(struct pl_snapshot *s, struct pl_arena *arena, int64_t now_ms,
                        int64_t clock_ms, struct pl_error **err)
{
    if (now_ms || s->now_ms == 0)
        s->now_ms = now_ms ? now_ms : clock_ms;
    if (s->now_ms == 0)
        return pl__error(arena, err, PL_INVALID,
                         "%.*s: the snapshot has no \"now\" and none was given",
                         PL_STR_ARG(s->source));
    if (s->grace_period_s == 0)
        s->grace_period_s = GRACE_PERIOD_S_DEFAULT;

    for (size_t i = 0; i < MANAGED_COUNT; i++) {
        struct pl_list *list = list_of(&s->objects, managed[i]);
        size_t size = pl__kind_shape(managed[i])->size;
        sort(list->items, list->count, size, by_namespace_and_name);
        const struct pl_meta *twice = find_twice(list, size);
        if (twice)
            return pl__error(arena, err, PL_INVALID, "%.*s: %s %.*s/%.*s is in the input twice",
                             PL_STR_ARG(s->source), pl__kind_name(managed[i]),
                             PL_STR_ARG(twice->namespace_), PL_STR_ARG(twice->name));
    }
    sort(s->objects.machines.items, s->objects.machines.count, sizeof *s->objects.machines.items,
         machine_by_cluster);

    if (loose_settle(s, arena, err) < 0)
        return -1;
    sort(s->workloads.items, s->workloads.count, sizeof *s->workloads.items, workload_by_cluster);
    for (uint32_t i = 0; i < s->workloads.count; i++) {
        struct pl_workload *w = &s->workloads.items[i];
        if (i && workload_by_cluster(w - 1, w) == 0)
            return pl__error(arena, err, PL_INVALID, "%.*s: two workloads for cluster %.*s",
                             PL_STR_ARG(s->source), PL_STR_ARG(w->cluster));
        if (workload_settle(s, w, arena, err) < 0)
            return -1;
    }
    return 0;
}

/* --- questions --------------------------------------------------------------------------------- */

/* Compares "namespace/name" with its two halves without joining them. */
static int compare_joined(struct pl_str joined, struct pl_str namespace_, struct pl_str name)
{
    struct pl_str head = { joined.ptr, joined.len < namespace_.len ? joined.len : namespace_.len };
    int order = pl__str_compare(head, namespace_);

    if (order)
        return order;
    struct pl_str tail = { joined.ptr + head.len, joined.len - head.len };
    if (tail.len == 0)
        return -1;
    if (tail.ptr[0] != '/')
        return (unsigned char)tail.ptr[0] < '/' ? -1 : 1;
    return pl__str_compare((struct pl_str){ tail.ptr + 1, tail.len - 1 }, name);
}

const struct pl_workload *pl__snapshot_workload(const struct pl_snapshot *s,
                                                struct pl_str namespace_, struct pl_str cluster)
{
    uint32_t low = 0, high = s->workloads.count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = compare_joined(s->workloads.items[middle].cluster, namespace_, cluster);
        if (order == 0)
            return &s->workloads.items[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const struct pl_cluster *pl__snapshot_cluster(const struct pl_snapshot *s, struct pl_str namespace_,
                                              struct pl_str name)
{
    struct pl_cluster wanted = { .meta = { .namespace_ = namespace_, .name = name } };

    if (s->objects.clusters.count == 0)
        return NULL;
    return bsearch(&wanted, s->objects.clusters.items, s->objects.clusters.count, sizeof wanted,
                   by_namespace_and_name);
}

/* The first machine at or behind (namespace, cluster); with `after` set, the first behind it. */
static uint32_t machine_bound(const struct pl_snapshot *s, struct pl_str namespace_,
                              struct pl_str cluster, bool after)
{
    uint32_t low = 0, high = s->objects.machines.count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct pl_meta *meta = &s->objects.machines.items[middle].meta;
        int order = pl__str_compare(meta->namespace_, namespace_);
        if (!order)
            order = pl__str_compare(meta->labels.cluster_name, cluster);
        if (order < 0 || (after && order == 0))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct pl_range pl__snapshot_machines_of(const struct pl_snapshot *s, struct pl_str namespace_,
                                         struct pl_str cluster)
{
    return (struct pl_range){ machine_bound(s, namespace_, cluster, false),
                              machine_bound(s, namespace_, cluster, true) };
}

const struct pl_pod *pl__workload_pod(const struct pl_workload *w, struct pl_str name)
{
    struct pl_pod wanted = { .name = name };

    if (w->pods.count == 0)
        return NULL;
    return bsearch(&wanted, w->pods.items, w->pods.count, sizeof wanted, pod_by_name);
}

const struct pl_pod_error *pl__workload_pod_error(const struct pl_workload *w, struct pl_str name)
{
    for (uint32_t i = 0; i < w->pod_errors.count; i++) {
        if (pl__str_equal(w->pod_errors.items[i].pod, name))
            return &w->pod_errors.items[i];
    }
    return NULL;
}

const struct pl_node *pl__workload_node(const struct pl_workload *w, struct pl_str name)
{
    for (uint32_t i = 0; i < w->nodes.count; i++) {
        if (pl__str_equal(w->nodes.items[i].name, name))
            return &w->nodes.items[i];
    }
    return NULL;
}
