/* The rows are those of Kubernetes' own types, as far as the playground and its clients fill them. Fields without a row
 * are taken for what most are: a text that is left out when it is empty, anything else as it was sent. */
#include "apiserver/shape.h"

#include "apiserver/patch.h"

enum form {
    FORM_TEXT,   /* always there: "" */
    FORM_NUMBER, /* always there: 0 */
    FORM_FALSE,  /* always there */
    FORM_NULL,   /* always there: null */
    FORM_STRUCT, /* always there: {} and what is always there inside of it */
    FORM_KEPT,   /* may be an empty text */
    FORM_OMIT,   /* 0 and false are left out */
    FORM_MAP,    /* of texts; left out when it is empty */
};

struct row {
    const char *path; /* items of lists are no step */
    enum form form;
};

/* clang-format off */
static const struct row metadata_rows[] = {
    { "metadata.annotations", FORM_MAP },
    { "metadata.generation", FORM_OMIT },
    { "metadata.labels", FORM_MAP },
    { "metadata.ownerReferences.apiVersion", FORM_TEXT },
    { "metadata.ownerReferences.kind", FORM_TEXT },
    { "metadata.ownerReferences.name", FORM_TEXT },
    { "metadata.ownerReferences.uid", FORM_TEXT },
    { NULL, FORM_KEPT },
};
static const struct row config_map_rows[] = {
    { "binaryData", FORM_MAP }, { "data", FORM_MAP }, { NULL, FORM_KEPT },
};
static const struct row secret_rows[] = {
    { "data", FORM_MAP }, { "stringData", FORM_MAP }, { NULL, FORM_KEPT },
};
static const struct row event_rows[] = {
    { "count", FORM_OMIT },
    { "eventTime", FORM_NULL },
    { "firstTimestamp", FORM_NULL },
    { "involvedObject", FORM_STRUCT },
    { "lastTimestamp", FORM_NULL },
    { "reportingComponent", FORM_TEXT },
    { "reportingInstance", FORM_TEXT },
    { "series.count", FORM_OMIT },
    { "series.lastObservedTime", FORM_NULL },
    { "source", FORM_STRUCT },
    { NULL, FORM_KEPT },
};
static const struct row lease_rows[] = {
    { "spec", FORM_STRUCT },
    { "spec.holderIdentity", FORM_KEPT },
    { "spec.preferredHolder", FORM_KEPT },
    { "spec.strategy", FORM_KEPT },
    { NULL, FORM_KEPT },
};
static const struct row namespace_rows[] = {
    { "spec", FORM_STRUCT },
    { "status", FORM_STRUCT },
    { "status.conditions.lastTransitionTime", FORM_NULL },
    { "status.conditions.status", FORM_TEXT },
    { "status.conditions.type", FORM_TEXT },
    { NULL, FORM_KEPT },
};
static const struct row node_rows[] = {
    { "spec", FORM_STRUCT },
    { "spec.taints.effect", FORM_TEXT },
    { "spec.taints.key", FORM_TEXT },
    { "spec.unschedulable", FORM_OMIT },
    { "status", FORM_STRUCT },
    { "status.addresses.address", FORM_TEXT },
    { "status.addresses.type", FORM_TEXT },
    { "status.allocatable", FORM_MAP },
    { "status.capacity", FORM_MAP },
    { "status.conditions.lastHeartbeatTime", FORM_NULL },
    { "status.conditions.lastTransitionTime", FORM_NULL },
    { "status.conditions.status", FORM_TEXT },
    { "status.conditions.type", FORM_TEXT },
    { "status.daemonEndpoints", FORM_STRUCT },
    { "status.daemonEndpoints.kubeletEndpoint", FORM_STRUCT },
    { "status.daemonEndpoints.kubeletEndpoint.Port", FORM_NUMBER },
    { "status.images.names", FORM_NULL },
    { "status.images.sizeBytes", FORM_OMIT },
    { "status.nodeInfo", FORM_STRUCT },
    { "status.nodeInfo.architecture", FORM_TEXT },
    { "status.nodeInfo.bootID", FORM_TEXT },
    { "status.nodeInfo.containerRuntimeVersion", FORM_TEXT },
    { "status.nodeInfo.kernelVersion", FORM_TEXT },
    { "status.nodeInfo.kubeProxyVersion", FORM_TEXT },
    { "status.nodeInfo.kubeletVersion", FORM_TEXT },
    { "status.nodeInfo.machineID", FORM_TEXT },
    { "status.nodeInfo.operatingSystem", FORM_TEXT },
    { "status.nodeInfo.osImage", FORM_TEXT },
    { "status.nodeInfo.systemUUID", FORM_TEXT },
    { NULL, FORM_KEPT },
};
#define CONTAINER(list) \
    { "spec." list ".env.name", FORM_TEXT }, \
    { "spec." list ".name", FORM_TEXT }, \
    { "spec." list ".ports.containerPort", FORM_NUMBER }, \
    { "spec." list ".ports.hostPort", FORM_OMIT }, \
    { "spec." list ".resources", FORM_STRUCT }, \
    { "spec." list ".resources.limits", FORM_MAP }, \
    { "spec." list ".resources.requests", FORM_MAP }, \
    { "spec." list ".stdin", FORM_OMIT }, \
    { "spec." list ".stdinOnce", FORM_OMIT }, \
    { "spec." list ".tty", FORM_OMIT }, \
    { "spec." list ".volumeMounts.mountPath", FORM_TEXT }, \
    { "spec." list ".volumeMounts.name", FORM_TEXT }, \
    { "spec." list ".volumeMounts.readOnly", FORM_OMIT }
#define CONTAINER_STATUS(list) \
    { "status." list ".image", FORM_TEXT }, \
    { "status." list ".imageID", FORM_TEXT }, \
    { "status." list ".lastState", FORM_STRUCT }, \
    { "status." list ".name", FORM_TEXT }, \
    { "status." list ".ready", FORM_FALSE }, \
    { "status." list ".restartCount", FORM_NUMBER }, \
    { "status." list ".state", FORM_STRUCT }
static const struct row pod_rows[] = {
    { "spec", FORM_STRUCT },
    { "spec.containers", FORM_NULL },
    CONTAINER("containers"),
    { "spec.hostIPC", FORM_OMIT },
    { "spec.hostNetwork", FORM_OMIT },
    { "spec.hostPID", FORM_OMIT },
    CONTAINER("initContainers"),
    { "spec.nodeSelector", FORM_MAP },
    { "spec.overhead", FORM_MAP },
    { "spec.preemptionPolicy", FORM_KEPT },
    { "spec.runtimeClassName", FORM_KEPT },
    { "spec.volumes.name", FORM_TEXT },
    { "status", FORM_STRUCT },
    { "status.conditions.lastProbeTime", FORM_NULL },
    { "status.conditions.lastTransitionTime", FORM_NULL },
    { "status.conditions.observedGeneration", FORM_OMIT },
    { "status.conditions.status", FORM_TEXT },
    { "status.conditions.type", FORM_TEXT },
    CONTAINER_STATUS("containerStatuses"),
    CONTAINER_STATUS("initContainerStatuses"),
    { "status.observedGeneration", FORM_OMIT },
    { NULL, FORM_KEPT },
};
static const struct row no_rows[] = { { NULL, FORM_KEPT } };

static const struct {
    const char *kind;
    const struct row *rows;
} kinds[] = {
    { "ConfigMap", config_map_rows }, { "Event", event_rows }, { "Lease", lease_rows },
    { "Namespace", namespace_rows }, { "Node", node_rows }, { "Pod", pod_rows }, { "Secret", secret_rows },
};

static const char *const metadata_names[] = {
    "annotations", "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers",
    "generateName", "generation", "labels", "managedFields", "name", "namespace", "ownerReferences",
    "resourceVersion", "selfLink", "uid",
};
static const char *const owner_names[] = {
    "apiVersion", "blockOwnerDeletion", "controller", "kind", "name", "uid",
};
/* clang-format on */

static bool is_one_of(struct pl_str name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (pl__str_equal(name, pl__str(names[i])))
            return true;
    return false;
}

bool pl__shape_knows_metadata(struct pl_str name)
{
    return is_one_of(name, metadata_names, sizeof metadata_names / sizeof metadata_names[0]);
}

bool pl__shape_knows_owner(struct pl_str name)
{
    return is_one_of(name, owner_names, sizeof owner_names / sizeof owner_names[0]);
}

struct shaping {
    struct pl_arena *arena;
    const struct row *rows;
    struct pl_rule_path path;
};

static const struct row *row_at(const struct shaping *s)
{
    if (s->path.len > sizeof s->path.text)
        return NULL;
    struct pl_str path = { s->path.text, s->path.len };
    for (const struct row *row = s->rows; row->path; row++)
        if (pl__str_equal(path, pl__str(row->path)))
            return row;
    return NULL;
}

static bool always(enum form form)
{
    return form == FORM_TEXT || form == FORM_NUMBER || form == FORM_FALSE || form == FORM_NULL ||
           form == FORM_STRUCT;
}

static bool is_zero(const struct pl_tree *value)
{
    return value->type == JSON_FALSE ||
           (value->type == JSON_NUMBER && pl__str_equal(value->text, PL_STR("0")));
}

/* Would it not be written back? */
static bool left_out(const struct pl_tree *value, const struct row *row)
{
    enum form form = row ? row->form : FORM_OMIT;

    if (value->type == JSON_NULL)
        return form != FORM_NULL;
    if (value->type == JSON_ARRAY)
        return !value->first && !(row && always(form));
    if (value->type == JSON_OBJECT)
        return !value->first && form == FORM_MAP;
    if (value->type == JSON_STRING)
        return value->text.len == 0 && form == FORM_OMIT;
    return row && form == FORM_OMIT && is_zero(value);
}

static struct pl_tree *zero(struct pl_arena *a, enum form form)
{
    switch (form) {
    case FORM_TEXT:
        return pl__tree_str(a, PL_STR(""));
    case FORM_NUMBER:
        return pl__tree_int(a, 0);
    case FORM_FALSE:
        return pl__tree_bool(a, false);
    case FORM_STRUCT:
        return pl__tree_new(a, JSON_OBJECT);
    default:
        return pl__tree_new(a, JSON_NULL);
    }
}

/* The name of a row that stands right inside of the path; empty: it does not. */
static struct pl_str step_below(const struct shaping *s, const struct row *row)
{
    struct pl_str path = pl__str(row->path);
    size_t skip = s->path.len ? s->path.len + 1 : 0;

    if (s->path.len > sizeof s->path.text || path.len <= skip ||
        (skip && (memcmp(path.ptr, s->path.text, s->path.len) != 0 || path.ptr[skip - 1] != '.')) ||
        memchr(path.ptr + skip, '.', path.len - skip))
        return (struct pl_str){ 0 };
    return (struct pl_str){ path.ptr + skip, path.len - skip };
}

static void shape_map(struct shaping *s, struct pl_tree *map)
{
    for (struct pl_tree *m = map->first, *next; m; m = next) {
        next = m->next;
        if (m->type == JSON_NULL)
            pl__tree_set(map, m->key, pl__tree_str(s->arena, PL_STR("")));
    }
}

static void shape_value(struct shaping *s, struct pl_tree *value);

static void shape_members(struct shaping *s, struct pl_tree *object)
{
    for (const struct row *row = s->rows; row->path; row++) {
        struct pl_str name = always(row->form) ? step_below(s, row) : (struct pl_str){ 0 };
        const struct pl_tree *there = pl__tree_get(object, name);
        if (name.len && (!there || there->type == JSON_NULL))
            pl__tree_set(object, name, zero(s->arena, row->form));
    }
    for (struct pl_tree *m = object->first, *next; m; m = next) {
        size_t before = pl__rule_path_push(&s->path, m->key);
        const struct row *row = row_at(s);
        next = m->next;
        if (row && row->form == FORM_MAP && m->type == JSON_OBJECT)
            shape_map(s, m);
        else
            shape_value(s, m);
        s->path.len = before;
        if (left_out(m, row))
            pl__tree_remove(object, m->key);
    }
}

static void shape_value(struct shaping *s, struct pl_tree *value)
{
    if (value->type == JSON_OBJECT)
        shape_members(s, value);
    if (value->type != JSON_ARRAY)
        return;
    for (struct pl_tree *item = value->first; item; item = item->next)
        shape_value(s, item);
}

static void drop_unknown(struct pl_tree *object, bool (*known)(struct pl_str name))
{
    for (struct pl_tree *m = object->first, *next; m; m = next) {
        next = m->next;
        if (!known(m->key))
            pl__tree_remove(object, m->key);
    }
}

static void shape_metadata(struct pl_arena *a, struct pl_tree *metadata)
{
    struct shaping s = { .arena = a, .rows = metadata_rows };
    struct pl_tree *managed;

    if (!metadata || metadata->type != JSON_OBJECT)
        return;
    const struct pl_tree *owners = pl__tree_get(metadata, PL_STR("ownerReferences"));
    struct pl_tree *finalizers = pl__tree_get(metadata, PL_STR("finalizers"));
    drop_unknown(metadata, pl__shape_knows_metadata);
    for (struct pl_tree *o = owners ? owners->first : NULL; o; o = o->next)
        drop_unknown(o, pl__shape_knows_owner);
    for (struct pl_tree *f = finalizers ? finalizers->first : NULL; f; f = f->next)
        if (f->type == JSON_NULL)
            f->type = JSON_STRING, f->text = PL_STR("");
    /* They are written by the server, or say by an empty list that they shall be forgotten. */
    managed = pl__tree_remove(metadata, PL_STR("managedFields"));
    pl__rule_path_push(&s.path, PL_STR("metadata"));
    shape_members(&s, metadata);
    if (managed && managed->type != JSON_NULL)
        pl__tree_set(metadata, PL_STR("managedFields"), managed);
}

void pl__shape(struct pl_arena *a, const struct pl_kind *kind, struct pl_tree *object)
{
    struct pl_tree *metadata = pl__tree_get(object, PL_STR("metadata"));
    struct shaping s = { .arena = a, .rows = no_rows };

    if (kind->custom) {
        shape_metadata(a, metadata);
        return;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].kind, kind->kind) == 0)
            s.rows = kinds[i].rows;
    /* metadata has rows of its own. */
    pl__tree_remove(object, PL_STR("metadata"));
    shape_members(&s, object);
    if (!metadata)
        return;
    metadata->key = PL_STR("metadata");
    pl__tree_insert(object, 0, metadata);
    shape_metadata(a, metadata);
}

struct pl_tree *pl__shape_empty(struct pl_arena *a, const struct pl_kind *kind)
{
    struct pl_tree *object = pl__tree_new(a, JSON_OBJECT);

    pl__shape(a, kind, object);
    return object;
}
