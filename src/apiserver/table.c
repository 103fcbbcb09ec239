/* Cells are made as kube-apiserver makes them: of CRDs' columns in apiextensions' tableconvertor, of
 * built-in kinds in its printers. */
#include "apiserver/table.h"

#include "base/time.h"

/* --- Accept --------------------------------------------------------------------------------------- */

static enum pl_form form_of_range(struct pl_str range)
{
    struct pl_str type = pl__str_trim(pl__str_cut(&range, ';'));
    struct pl_str as = { 0 }, group = { 0 }, version = { 0 };

    if (!pl__str_equal(type, PL_STR("application/json")) && !pl__str_equal(type, PL_STR("*/*")) &&
        !pl__str_equal(type, PL_STR("application/*")))
        return PL_FORM_NONE;
    while (range.len > 0) {
        struct pl_str value = pl__str_trim(pl__str_cut(&range, ';'));
        struct pl_str name = pl__str_trim(pl__str_cut(&value, '='));
        if (pl__str_equal(name, PL_STR("as")))
            as = pl__str_trim(value);
        else if (pl__str_equal(name, PL_STR("g")))
            group = pl__str_trim(value);
        else if (pl__str_equal(name, PL_STR("v")))
            version = pl__str_trim(value);
    }
    if (as.len == 0)
        return PL_FORM_OBJECT;
    if (!pl__str_equal(group, PL_STR("meta.k8s.io")) || !pl__str_equal(version, PL_STR("v1")))
        return PL_FORM_NONE;
    if (pl__str_equal(as, PL_STR("Table")))
        return PL_FORM_TABLE;
    if (pl__str_equal(as, PL_STR("PartialObjectMetadata")) ||
        pl__str_equal(as, PL_STR("PartialObjectMetadataList")))
        return PL_FORM_PARTIAL;
    return PL_FORM_NONE;
}

enum pl_form pl__form_of_accept(struct pl_str accept)
{
    if (pl__str_trim(accept).len == 0)
        return PL_FORM_OBJECT;
    while (accept.len > 0) {
        enum pl_form form = form_of_range(pl__str_cut(&accept, ','));
        if (form != PL_FORM_NONE)
            return form;
    }
    return PL_FORM_NONE;
}

/* --- paths ---------------------------------------------------------------------------------------- */

/* "\." inside of a key in brackets is a dot. */
static struct pl_str unescaped(struct pl_arena *a, struct pl_str s)
{
    char *text = pl__arena_alloc(a, s.len + 1);
    size_t len = 0;

    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] != '\\')
            text[len++] = s.ptr[i];
    return (struct pl_str){ text, len };
}

/* The first item whose member has the value; `filter` is what stands inside of [?( )]: @.type=="X". */
static const struct pl_tree *first_match(const struct pl_tree *list, struct pl_str filter)
{
    struct pl_str value = filter;
    struct pl_str name = pl__str_cut(&value, '=');

    if (!list || list->type != JSON_ARRAY || name.len < 2 || value.len < 3)
        return NULL;
    name.ptr += 2; /* "@." */
    name.len -= 2;
    value.ptr += 2; /* the second '=' and the quote */
    value.len -= 3;
    for (const struct pl_tree *t = list->first; t; t = t->next) {
        const struct pl_tree *member = pl__tree_get(t, name);
        if (member && member->type == JSON_STRING && pl__str_equal(member->text, value))
            return t;
    }
    return NULL;
}

static struct pl_str cut_at(struct pl_str *from, const char *end)
{
    struct pl_str part = { from->ptr, (size_t)(end - from->ptr) };

    from->ptr += part.len;
    from->len -= part.len;
    return part;
}

/* The value at a column's path; NULL: not there, or null. The paths are those of kinds.c, so one that
 * is no path is our own mistake, found by the tests. */
static const struct pl_tree *path_get(struct pl_arena *a, const struct pl_tree *t,
                                      struct pl_str path)
{
    while (path.len > 1 && t) {
        const char *close = memchr(path.ptr, ']', path.len);
        bool bracket = path.ptr[0] == '[' && close;
        path.ptr++;
        path.len--;
        if (!bracket) {
            size_t len = 0;
            while (len < path.len && path.ptr[len] != '.' && path.ptr[len] != '[')
                len++;
            t = pl__tree_get(t, cut_at(&path, path.ptr + len));
            continue;
        }
        struct pl_str inside = cut_at(&path, close);
        path.ptr++;
        path.len--;
        if (inside.len > 3 && inside.ptr[0] == '?')
            t = first_match(t, (struct pl_str){ inside.ptr + 2, inside.len - 3 });
        else if (inside.len > 2)
            t = pl__tree_get(t, unescaped(a, (struct pl_str){ inside.ptr + 1, inside.len - 2 }));
        else
            t = NULL;
    }
    return t && t->type != JSON_NULL ? t : NULL;
}

/* --- cells ---------------------------------------------------------------------------------------- */

static struct pl_tree *null_new(struct pl_arena *a)
{
    struct pl_tree *t = pl__tree_new(a, JSON_NULL);

    t->text = PL_STR("null");
    return t;
}

static struct pl_str age_text(struct pl_arena *a, const struct pl_tree *time, int64_t now_ms)
{
    struct pl_buf b;
    int64_t ms;

    if (!time || time->type != JSON_STRING || !pl__time_parse(time->text, &ms))
        return PL_STR("<unknown>");
    pl__buf_init(&b, a, 32);
    pl__age_add(&b, now_ms - ms);
    return pl__buf_str(&b);
}

static struct pl_tree *cell_of_path(struct pl_arena *a, const struct pl_column *c,
                                    const struct pl_tree *object)
{
    const struct pl_tree *value = path_get(a, object, pl__str(c->path));

    if (!value || (c->missing && value->text.len == 0))
        return c->missing ? pl__tree_str(a, pl__str(c->missing)) : null_new(a);
    if (strcmp(c->type, "integer") == 0)
        return value->type == JSON_NUMBER ? pl__tree_copy(a, value) : null_new(a);
    if (strcmp(c->type, "boolean") == 0)
        return value->type == JSON_TRUE || value->type == JSON_FALSE ? pl__tree_copy(a, value)
                                                                     : null_new(a);
    if (value->type == JSON_OBJECT || value->type == JSON_ARRAY)
        return pl__tree_str(a, pl__tree_text(a, value));
    return pl__tree_str(a, value->text);
}

static struct pl_tree *cell_of_age(struct pl_arena *a, const struct pl_column *c,
                                   const struct pl_tree *object, int64_t now_ms)
{
    const struct pl_tree *value = path_get(a, object, pl__str(c->path));

    if (!value)
        return c->missing ? pl__tree_str(a, pl__str(c->missing)) : null_new(a);
    return pl__tree_str(a, age_text(a, value, now_ms));
}

static struct pl_tree *cell_of_count(struct pl_arena *a, const struct pl_column *c,
                                     const struct pl_tree *object)
{
    struct pl_str paths = pl__str(c->path);
    size_t count = 0;

    while (paths.len > 0) {
        const struct pl_tree *t = path_get(a, object, pl__str_cut(&paths, '+'));
        count += t ? pl__tree_count(t) : 0;
    }
    return pl__tree_int(a, (int64_t)count);
}

/* What the columns of a Pod say together. */
struct pod_summary {
    int64_t ready, total, restarts;
    int64_t restarted_ms; /* 0: never */
    struct pl_str status;
};

static bool condition_true(const struct pl_tree *object, const char *type)
{
    const struct pl_tree *conditions = pl__tree_at(object, "status.conditions");

    for (const struct pl_tree *c = conditions ? conditions->first : NULL; c; c = c->next)
        if (pl__str_equal(pl__tree_get_str(c, "type"), pl__str(type)))
            return pl__str_equal(pl__tree_get_str(c, "status"), PL_STR("True"));
    return false;
}

static void restarts_add(struct pod_summary *s, const struct pl_tree *container)
{
    int64_t ms;

    s->restarts += pl__tree_get_int(container, "restartCount", 0);
    if (pl__time_parse(pl__tree_get_str(container, "lastState.terminated.finishedAt"), &ms) &&
        ms > s->restarted_ms)
        s->restarted_ms = ms;
}

/* "Error", else "Signal:9", else "ExitCode:1". */
static struct pl_str terminated_text(struct pl_arena *a, const struct pl_tree *terminated)
{
    struct pl_str reason = pl__tree_get_str(terminated, "reason");
    int64_t signal = pl__tree_get_int(terminated, "signal", 0);

    if (reason.len > 0)
        return reason;
    if (signal != 0)
        return pl__str_format(a, "Signal:%lld", (long long)signal);
    return pl__str_format(a, "ExitCode:%lld",
                          (long long)pl__tree_get_int(terminated, "exitCode", 0));
}

/* The first init container that is not through, if any; true then. Sidecars (init containers that
 * restart) are not told apart: the playground has none. */
static bool pod_initializing(struct pl_arena *a, const struct pl_tree *pod, struct pod_summary *s)
{
    const struct pl_tree *statuses = pl__tree_at(pod, "status.initContainerStatuses");
    size_t index = 0;

    for (const struct pl_tree *c = statuses ? statuses->first : NULL; c; c = c->next, index++) {
        const struct pl_tree *terminated = pl__tree_at(c, "state.terminated");
        struct pl_str waiting = pl__tree_get_str(c, "state.waiting.reason");
        restarts_add(s, c);
        if (terminated && pl__tree_get_int(terminated, "exitCode", 0) == 0)
            continue;
        if (terminated)
            s->status = pl__str_format(a, "Init:%.*s", PL_STR_ARG(terminated_text(a, terminated)));
        else if (waiting.len > 0 && !pl__str_equal(waiting, PL_STR("PodInitializing")))
            s->status = pl__str_format(a, "Init:%.*s", PL_STR_ARG(waiting));
        else
            s->status = pl__str_format(a, "Init:%zu/%zu", index,
                                       pl__tree_count(pl__tree_at(pod, "spec.initContainers")));
        return true;
    }
    return false;
}

static void pod_containers(struct pl_arena *a, const struct pl_tree *pod, struct pod_summary *s)
{
    const struct pl_tree *statuses = pl__tree_at(pod, "status.containerStatuses");
    bool said = false, running = false;

    s->restarts = s->restarted_ms = 0;
    /* kube-apiserver goes through them from the last to the first, and each overwrites what was said:
     * so the first one with something to say decides. */
    for (const struct pl_tree *c = statuses ? statuses->first : NULL; c; c = c->next) {
        const struct pl_tree *terminated = pl__tree_at(c, "state.terminated");
        struct pl_str waiting = pl__tree_get_str(c, "state.waiting.reason");
        restarts_add(s, c);
        if (waiting.len > 0 || terminated) {
            if (!said)
                s->status = waiting.len > 0 ? waiting : terminated_text(a, terminated);
            said = true;
        } else if (pl__tree_get_true(c, "ready") && pl__tree_at(c, "state.running")) {
            running = true;
            s->ready++;
        }
    }
    if (running && pl__str_equal(s->status, PL_STR("Completed")))
        s->status = condition_true(pod, "Ready") ? PL_STR("Running") : PL_STR("NotReady");
}

static struct pod_summary pod_summary(struct pl_arena *a, const struct pl_tree *pod)
{
    struct pl_str phase = pl__tree_get_str(pod, "status.phase");
    struct pl_str reason = pl__tree_get_str(pod, "status.reason");
    struct pod_summary s = { .status = reason.len > 0 ? reason : phase };

    s.total = (int64_t)pl__tree_count(pl__tree_at(pod, "spec.containers"));
    if (!pod_initializing(a, pod, &s) || condition_true(pod, "Initialized"))
        pod_containers(a, pod, &s);
    if (!pl__tree_at(pod, "metadata.deletionTimestamp"))
        return s;
    if (pl__str_equal(reason, PL_STR("NodeLost")))
        s.status = PL_STR("Unknown");
    else if (!pl__str_equal(phase, PL_STR("Succeeded")) && !pl__str_equal(phase, PL_STR("Failed")))
        s.status = PL_STR("Terminating");
    return s;
}

static struct pl_str pod_restarts_text(struct pl_arena *a, const struct pl_tree *pod,
                                       int64_t now_ms)
{
    struct pod_summary s = pod_summary(a, pod);
    struct pl_buf b;

    pl__buf_init(&b, a, 64);
    pl__buf_add_i64(&b, s.restarts);
    if (s.restarts != 0 && s.restarted_ms != 0) {
        pl__buf_add_lit(&b, " (");
        pl__age_add(&b, now_ms - s.restarted_ms);
        pl__buf_add_lit(&b, " ago)");
    }
    return pl__buf_str(&b);
}

static struct pl_str pod_gates_text(struct pl_arena *a, const struct pl_tree *pod)
{
    const struct pl_tree *gates = pl__tree_at(pod, "spec.readinessGates");
    size_t met = 0;

    if (!gates || !gates->first)
        return PL_STR("<none>");
    for (const struct pl_tree *g = gates->first; g; g = g->next)
        met += condition_true(pod, pl__str_copy(a, pl__tree_get_str(g, "conditionType")).ptr);
    return pl__str_format(a, "%zu/%zu", met, pl__tree_count(gates));
}

static struct pl_str node_status_text(struct pl_arena *a, const struct pl_tree *node)
{
    const struct pl_tree *conditions = pl__tree_at(node, "status.conditions");
    const char *ready = "Unknown";

    for (const struct pl_tree *c = conditions ? conditions->first : NULL; c; c = c->next)
        if (pl__str_equal(pl__tree_get_str(c, "type"), PL_STR("Ready")))
            ready = condition_true(node, "Ready") ? "Ready" : "NotReady";
    return pl__str_format(a, "%s%s", ready,
                          pl__tree_get_true(node, "spec.unschedulable") ? ",SchedulingDisabled"
                                                                        : "");
}

/* Of the labels node-role.kubernetes.io/ROLE and kubernetes.io/role=ROLE, sorted. */
static struct pl_str node_roles_text(struct pl_arena *a, const struct pl_tree *node)
{
    enum { ROLES_MAX = 16 };
    static const struct pl_str prefix = PL_STR_INIT("node-role.kubernetes.io/");
    const struct pl_tree *labels = pl__tree_at(node, "metadata.labels");
    struct pl_str roles[ROLES_MAX];
    size_t count = 0;
    struct pl_buf b;

    for (const struct pl_tree *l = labels ? labels->first : NULL; l && count < ROLES_MAX;
         l = l->next) {
        struct pl_str role = { 0 };
        if (pl__str_starts_with(l->key, prefix))
            role = (struct pl_str){ l->key.ptr + prefix.len, l->key.len - prefix.len };
        else if (pl__str_equal(l->key, PL_STR("kubernetes.io/role")))
            role = l->text;
        if (role.len == 0)
            continue;
        size_t at = count++;
        for (; at > 0 && pl__str_compare(role, roles[at - 1]) < 0; at--)
            roles[at] = roles[at - 1];
        roles[at] = role;
    }
    if (count == 0)
        return PL_STR("<none>");
    pl__buf_init(&b, a, 4096);
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && pl__str_equal(roles[i], roles[i - 1]))
            continue;
        if (i > 0)
            pl__buf_add_char(&b, ',');
        pl__buf_add(&b, roles[i]);
    }
    return pl__buf_str(&b);
}

/* Of the first of these paths that is there and not null. */
static const struct pl_tree *first_of(const struct pl_tree *t, const char *const *paths,
                                      size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct pl_tree *found = pl__tree_at(t, paths[i]);
        if (found && found->type != JSON_NULL && found->text.len > 0)
            return found;
    }
    return NULL;
}

/* Events have two faces, core and events.k8s.io: both are looked for. */
static struct pl_str event_first_text(struct pl_arena *a, const struct pl_tree *e, int64_t now_ms)
{
    static const char *const paths[] = { "firstTimestamp", "deprecatedFirstTimestamp",
                                         "eventTime" };

    return age_text(a, first_of(e, paths, 3), now_ms);
}

static struct pl_str event_last_text(struct pl_arena *a, const struct pl_tree *e, int64_t now_ms)
{
    static const char *const paths[] = { "series.lastObservedTime", "lastTimestamp",
                                         "deprecatedLastTimestamp" };
    const struct pl_tree *time = first_of(e, paths, 3);

    return time ? age_text(a, time, now_ms) : event_first_text(a, e, now_ms);
}

static struct pl_str event_object_text(struct pl_arena *a, const struct pl_tree *e)
{
    const struct pl_tree *object = pl__tree_at(e, "involvedObject");
    struct pl_buf b;

    if (!object)
        object = pl__tree_at(e, "regarding");
    struct pl_str kind = pl__tree_get_str(object, "kind"), name = pl__tree_get_str(object, "name");
    pl__buf_init(&b, a, 1024);
    for (size_t i = 0; i < kind.len; i++) {
        char c = kind.ptr[i];
        pl__buf_add_char(&b, c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c);
    }
    if (name.len > 0) {
        pl__buf_add_char(&b, '/');
        pl__buf_add(&b, name);
    }
    return pl__buf_str(&b);
}

static struct pl_str event_source_text(struct pl_arena *a, const struct pl_tree *e)
{
    static const char *const components[] = { "source.component", "deprecatedSource.component",
                                              "reportingComponent", "reportingController" };
    static const char *const hosts[] = { "source.host", "deprecatedSource.host",
                                         "reportingInstance" };
    const struct pl_tree *component = first_of(e, components, 4), *host = first_of(e, hosts, 3);
    struct pl_str from = component ? component->text : PL_STR("");

    if (!host)
        return from;
    return pl__str_format(a, "%.*s, %.*s", PL_STR_ARG(from), PL_STR_ARG(host->text));
}

static int64_t event_count(const struct pl_tree *e)
{
    int64_t count = pl__tree_get_int(e, "count", pl__tree_get_int(e, "deprecatedCount", 0));

    if (pl__tree_get(e, PL_STR("series")))
        count = pl__tree_get_int(e, "series.count", count);
    return count > 0 ? count : 1;
}

static struct pl_tree *cell_make(struct pl_arena *a, const struct pl_column *c,
                                 const struct pl_tree *object, int64_t now_ms)
{
    struct pod_summary pod;

    switch (c->cell) {
    case CELL_PATH:
        return cell_of_path(a, c, object);
    case CELL_NAME:
        return pl__tree_str(a, pl__tree_get_str(object, "metadata.name"));
    case CELL_AGE:
        return cell_of_age(a, c, object, now_ms);
    case CELL_COUNT:
        return cell_of_count(a, c, object);
    case CELL_POD_READY:
        pod = pod_summary(a, object);
        return pl__tree_str(
            a, pl__str_format(a, "%lld/%lld", (long long)pod.ready, (long long)pod.total));
    case CELL_POD_STATUS:
        pod = pod_summary(a, object);
        return pl__tree_str(a, pod.status);
    case CELL_POD_RESTARTS:
        return pl__tree_str(a, pod_restarts_text(a, object, now_ms));
    case CELL_POD_GATES:
        return pl__tree_str(a, pod_gates_text(a, object));
    case CELL_NODE_STATUS:
        return pl__tree_str(a, node_status_text(a, object));
    case CELL_NODE_ROLES:
        return pl__tree_str(a, node_roles_text(a, object));
    case CELL_EVENT_LAST:
        return pl__tree_str(a, event_last_text(a, object, now_ms));
    case CELL_EVENT_FIRST:
        return pl__tree_str(a, event_first_text(a, object, now_ms));
    case CELL_EVENT_OBJECT:
        return pl__tree_str(a, event_object_text(a, object));
    case CELL_EVENT_SOURCE:
        return pl__tree_str(a, event_source_text(a, object));
    case CELL_EVENT_COUNT:
        return pl__tree_int(a, event_count(object));
    }
    return null_new(a);
}

/* --- the forms ------------------------------------------------------------------------------------ */

static void set_str(struct pl_arena *a, struct pl_tree *object, struct pl_str key,
                    struct pl_str value)
{
    pl__tree_set(object, key, pl__tree_str(a, value));
}

static struct pl_tree *typed_new(struct pl_arena *a, struct pl_str kind)
{
    struct pl_tree *t = pl__tree_new(a, JSON_OBJECT);

    set_str(a, t, PL_STR("kind"), kind);
    set_str(a, t, PL_STR("apiVersion"), PL_STR("meta.k8s.io/v1"));
    return t;
}

static struct pl_tree *partial_of(struct pl_arena *a, struct pl_tree *object)
{
    struct pl_tree *partial = typed_new(a, PL_STR("PartialObjectMetadata"));
    struct pl_tree *metadata = pl__tree_remove(object, PL_STR("metadata"));

    pl__tree_set(partial, PL_STR("metadata"), metadata ? metadata : pl__tree_new(a, JSON_OBJECT));
    return partial;
}

static struct pl_tree *columns_make(struct pl_arena *a, const struct pl_kind *kind)
{
    struct pl_tree *list = pl__tree_new(a, JSON_ARRAY);

    for (const struct pl_column *c = kind->columns; c->name; c++) {
        struct pl_tree *t = pl__tree_new(a, JSON_OBJECT);
        set_str(a, t, PL_STR("name"), pl__str(c->name));
        set_str(a, t, PL_STR("type"), pl__str(c->type));
        set_str(a, t, PL_STR("format"), pl__str(c->format));
        set_str(a, t, PL_STR("description"), c->path ? pl__str(c->path) : PL_STR(""));
        pl__tree_set(t, PL_STR("priority"), pl__tree_int(a, c->priority));
        pl__tree_append(list, t);
    }
    return list;
}

/* Items of built-in lists do not say what they are, and alone they must. */
static struct pl_tree *whole_of(struct pl_arena *a, const struct pl_kind *kind,
                                struct pl_tree *object)
{
    if (pl__tree_get(object, PL_STR("kind")))
        return object;
    struct pl_tree *whole = pl__tree_new(a, JSON_OBJECT);
    set_str(a, whole, PL_STR("kind"), pl__str(kind->kind));
    set_str(a, whole, PL_STR("apiVersion"), pl__kind_api_version(a, kind));
    for (struct pl_tree *m = object->first, *next; m; m = next) {
        next = m->next;
        pl__tree_set(whole, m->key, m);
    }
    return whole;
}

static struct pl_tree *row_make(struct pl_arena *a, const struct pl_kind *kind,
                                const struct pl_form_options *o, struct pl_tree *object)
{
    struct pl_tree *row = pl__tree_new(a, JSON_OBJECT), *cells = pl__tree_new(a, JSON_ARRAY);
    struct pl_tree *shown;

    for (const struct pl_column *c = kind->columns; c->name; c++)
        pl__tree_append(cells, cell_make(a, c, object, o->now_ms));
    if (pl__str_equal(o->include_object, PL_STR("None")))
        shown = null_new(a);
    else if (pl__str_equal(o->include_object, PL_STR("Object")))
        shown = whole_of(a, kind, object);
    else
        shown = partial_of(a, object);
    pl__tree_set(row, PL_STR("cells"), cells);
    pl__tree_set(row, PL_STR("object"), shown);
    return row;
}

/* The metadata of a list goes over as it is; of an object, its version alone. */
static struct pl_tree *table_metadata(struct pl_arena *a, struct pl_tree *object, bool list)
{
    struct pl_tree *metadata;

    if (list) {
        metadata = pl__tree_remove(object, PL_STR("metadata"));
        return metadata ? metadata : pl__tree_new(a, JSON_OBJECT);
    }
    metadata = pl__tree_new(a, JSON_OBJECT);
    set_str(a, metadata, PL_STR("resourceVersion"),
            pl__tree_get_str(object, "metadata.resourceVersion"));
    return metadata;
}

static struct pl_tree *table_make(struct pl_arena *a, const struct pl_kind *kind,
                                  const struct pl_form_options *o, struct pl_tree *object,
                                  struct pl_tree *items)
{
    struct pl_tree *table = typed_new(a, PL_STR("Table")), *rows = pl__tree_new(a, JSON_ARRAY);

    pl__tree_set(table, PL_STR("metadata"), table_metadata(a, object, items != NULL));
    pl__tree_set(table, PL_STR("columnDefinitions"),
                 o->no_columns ? null_new(a) : columns_make(a, kind));
    if (!items)
        pl__tree_append(rows, row_make(a, kind, o, object));
    for (struct pl_tree *t = items ? items->first : NULL, *next; t; t = next) {
        next = t->next;
        pl__tree_append(rows, row_make(a, kind, o, t));
    }
    pl__tree_set(table, PL_STR("rows"), rows);
    return table;
}

static struct pl_tree *partial_list_make(struct pl_arena *a, struct pl_tree *object,
                                         struct pl_tree *items)
{
    struct pl_tree *list = typed_new(a, PL_STR("PartialObjectMetadataList"));
    struct pl_tree *partials = pl__tree_new(a, JSON_ARRAY);

    pl__tree_set(list, PL_STR("metadata"), table_metadata(a, object, true));
    for (struct pl_tree *t = items->first, *next; t; t = next) {
        next = t->next;
        pl__tree_append(partials, partial_of(a, t));
    }
    pl__tree_set(list, PL_STR("items"), partials);
    return list;
}

struct pl_tree *pl__form_render(struct pl_arena *a, const struct pl_kind *kind,
                                const struct pl_form_options *options, struct pl_tree *object)
{
    struct pl_tree *items = pl__tree_get(object, PL_STR("items"));

    if (items && items->type != JSON_ARRAY)
        items = NULL;
    switch (options->form) {
    case PL_FORM_TABLE:
        return table_make(a, kind, options, object, items);
    case PL_FORM_PARTIAL:
        return items ? partial_list_make(a, object, items) : partial_of(a, object);
    case PL_FORM_OBJECT:
    case PL_FORM_NONE:
        break;
    }
    return object;
}
