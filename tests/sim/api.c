/* An object is a tree of JSON. Every change gives it the server's next resourceVersion, renders it once,
 * and adds that text to the history, from which lists, answers and watches are served. */
#include <stdlib.h>

#include "sim/sim.h"

#define INFRA_GROUP "infrastructure.cluster.x-k8s.io"

/* clang-format off */
const struct kind_info kinds[K_COUNT] = {
    [K_CLUSTER]  = { "clusters",               "Cluster",               "cluster.x-k8s.io",              "v1beta2", false },
    [K_KCP]      = { "kubeadmcontrolplanes",   "KubeadmControlPlane",   "controlplane.cluster.x-k8s.io", "v1beta2", false },
    [K_MACHINE]  = { "machines",               "Machine",               "cluster.x-k8s.io",              "v1beta2", false },
    [K_MD]       = { "machinedeployments",     "MachineDeployment",     "cluster.x-k8s.io",              "v1beta2", false },
    [K_MS]       = { "machinesets",            "MachineSet",            "cluster.x-k8s.io",              "v1beta2", false },
    [K_MHC]      = { "machinehealthchecks",    "MachineHealthCheck",    "cluster.x-k8s.io",              "v1beta2", false },
    [K_POOL]     = { "machinepools",           "MachinePool",           "cluster.x-k8s.io",              "v1beta2", false },
    [K_SECRET]   = { "secrets",                "Secret",                "",                              "v1",      false },
    [K_LEASE]    = { "leases",                 "Lease",                 "coordination.k8s.io",           "v1",      false },
    [K_CONFIG]   = { "kubeadmconfigs",         "KubeadmConfig",         "bootstrap.cluster.x-k8s.io",    "v1beta2", false },
    [K_INFRA]    = { "dockermachines",         "DockerMachine",         INFRA_GROUP,                     "v1beta2", false },
    [K_TEMPLATE] = { "dockermachinetemplates", "DockerMachineTemplate", INFRA_GROUP,                     "v1beta2", false },
    [K_NODE]     = { "nodes",                  "Node",                  "",                              "v1",      true },
    [K_POD]      = { "pods",                   "Pod",                   "",                              "v1",      false },
};
/* clang-format on */

/* --- objects ----------------------------------------------------------------------------------------- */

static struct pl_str api_version(struct pl_arena *a, enum kind kind)
{
    return kinds[kind].group[0] ? pl__str_format(a, "%s/%s", kinds[kind].group, kinds[kind].version)
                                : pl__str(kinds[kind].version);
}

struct object *object_find(struct server *s, enum kind kind, struct pl_str name)
{
    for (struct object *o = s->objects[kind]; o; o = o->next) {
        if (pl__str_equal(o->name, name))
            return o;
    }
    return NULL;
}

bool object_deleting(const struct object *o)
{
    return tree_at(o->tree, "metadata", "deletionTimestamp", NULL) != NULL;
}

static struct pl_tree *finalizers_of(const struct object *o)
{
    return tree_at(o->tree, "metadata", "finalizers", NULL);
}

static void history_add(struct object *o, const char *type)
{
    struct server *s = o->server;
    struct pl_buf b;

    o->version = ++s->version;
    pl__tree_set(tree_get(o->tree, "metadata"), PL_STR("resourceVersion"),
                 tree_format(&s->sim->arena, "\"%" PRIu64 "\"", o->version));
    pl__buf_init(&b, &s->sim->arena, SIZE_MAX);
    pl__tree_write(&b, o->tree);
    o->text = pl__buf_str(&b);
    if (s->change_count == s->change_capacity) {
        size_t capacity = s->change_capacity ? 2 * s->change_capacity : 256;
        s->history =
            pl__arena_grow(&s->sim->arena, s->history, s->change_capacity * sizeof *s->history,
                           capacity * sizeof *s->history);
        s->change_capacity = capacity;
    }
    s->history[s->change_count++] = (struct change){ o->version, o->kind, type, o->text };
    for (struct call *w = s->watches; w; w = w->next_watch) {
        if (w->kind == o->kind)
            watch_schedule(w);
    }
}

struct object *object_create(struct server *s, enum kind kind, struct pl_str name,
                             struct pl_tree *tree)
{
    struct pl_arena *a = &s->sim->arena;
    struct object *o = PL_NEW(a, struct object, 1), **at = &s->objects[kind];
    struct pl_tree *meta = pl__tree_make(a, tree, PL_STR("metadata"));

    o->server = s;
    o->kind = kind;
    o->name = pl__str_copy(a, name);
    o->uid = pl__str_format(a, "u%" PRIu64, ++s->sim->uid_serial);
    o->tree = tree;
    pl__tree_set(tree, PL_STR("apiVersion"), pl__tree_str(a, api_version(a, kind)));
    pl__tree_set(tree, PL_STR("kind"), pl__tree_str(a, pl__str(kinds[kind].name)));
    pl__tree_set(meta, PL_STR("name"), pl__tree_str(a, name));
    if (!kinds[kind].cluster_scoped && !tree_get(meta, "namespace"))
        pl__tree_set(meta, PL_STR("namespace"), pl__tree_str(a, PL_STR(NAMESPACE)));
    pl__tree_set(meta, PL_STR("uid"), pl__tree_str(a, o->uid));
    pl__tree_set(meta, PL_STR("generation"), tree_format(a, "1"));
    if (!tree_get(meta, "creationTimestamp"))
        pl__tree_set(meta, PL_STR("creationTimestamp"),
                     pl__tree_str(a, sim_time_text(s->sim, s->sim->now.wall_ms)));
    /* In the order of creation: lists are served in it. */
    while (*at)
        at = &(*at)->next;
    *at = o;
    history_add(o, "ADDED");
    if (kind == K_MACHINE)
        machine_born(s->sim, o);
    return o;
}

static void object_end(struct object *o)
{
    struct object **at = &o->server->objects[o->kind];

    while (*at != o)
        at = &(*at)->next;
    *at = o->next;
    o->gone = true;
    history_add(o, "DELETED");
    sim_log(o->server->sim, "%s %.*s is gone", kinds[o->kind].name, PL_STR_ARG(o->name));
    if (o->machine)
        machine_died(o->server->sim, o->machine);
}

void object_commit(struct object *o)
{
    if (object_deleting(o) && pl__tree_count(finalizers_of(o)) == 0)
        object_end(o);
    else
        history_add(o, "MODIFIED");
}

void object_delete(struct object *o)
{
    struct sim *sim = o->server->sim;

    if (pl__tree_count(finalizers_of(o)) == 0) {
        object_end(o);
    } else if (!object_deleting(o)) {
        struct pl_tree *meta = tree_get(o->tree, "metadata");
        pl__tree_set(meta, PL_STR("deletionTimestamp"),
                     pl__tree_str(&sim->arena, sim_time_text(sim, sim->now.wall_ms)));
        int64_t generation = tree_int(tree_get(meta, "generation"), 1) + 1;
        pl__tree_set(meta, PL_STR("generation"), tree_format(&sim->arena, "%" PRId64, generation));
        if (o->machine)
            o->machine->deleting_ms = sim->now.mono_ms;
        history_add(o, "MODIFIED");
    }
}

/* --- conditions -------------------------------------------------------------------------------------- */

static struct pl_tree *conditions_of(struct object *o)
{
    struct pl_arena *a = &o->server->sim->arena;
    struct pl_tree *status = pl__tree_make(a, o->tree, PL_STR("status"));

    if (!tree_get(status, "conditions"))
        pl__tree_set(status, PL_STR("conditions"), tree_format(a, "[]"));
    return tree_get(status, "conditions");
}

static struct pl_tree *condition_in(const struct pl_tree *list, struct pl_str type)
{
    for (struct pl_tree *c = list ? list->first : NULL; c; c = c->next) {
        if (pl__str_equal(tree_text(tree_get(c, "type")), type))
            return c;
    }
    return NULL;
}

struct pl_tree *condition_find(const struct object *o, const char *type)
{
    return condition_in(tree_at(o->tree, "status", "conditions", NULL), pl__str(type));
}

static struct owned *owned_of(struct object *o, struct pl_str type)
{
    for (int i = 0; i < o->owned_count; i++) {
        if (pl__str_equal(o->owned[i].type, type))
            return &o->owned[i];
    }
    if (o->owned_count == OWNED_MAX)
        abort();
    struct owned *made = &o->owned[o->owned_count++];
    *made = (struct owned){ .type = pl__str_copy(&o->server->sim->arena, type) };
    return made;
}

bool condition_set(struct object *o, const char *type, const char *status, const char *reason,
                   const char *message)
{
    struct sim *sim = o->server->sim;
    struct pl_arena *a = &sim->arena;
    struct pl_tree *list = conditions_of(o), *c = condition_in(list, pl__str(type));

    if (c && tree_is(tree_get(c, "status"), status) && tree_is(tree_get(c, "reason"), reason) &&
        tree_is(tree_get(c, "message"), message))
        return false;
    struct owned *owned = owned_of(o, pl__str(type));
    *owned = (struct owned){ .type = owned->type, .others = true, .others_whole = true };
    if (!c) {
        c = tree_format(a, "{}");
        pl__tree_set(c, PL_STR("type"), pl__tree_str(a, pl__str(type)));
        pl__tree_append(list, c);
    }
    if (!tree_is(tree_get(c, "status"), status))
        pl__tree_set(c, PL_STR("lastTransitionTime"),
                     pl__tree_str(a, sim_time_text(sim, sim->now.wall_ms)));
    pl__tree_set(c, PL_STR("status"), pl__tree_str(a, pl__str(status)));
    pl__tree_set(c, PL_STR("reason"), pl__tree_str(a, pl__str(reason)));
    pl__tree_set(c, PL_STR("message"), pl__tree_str(a, pl__str(message)));
    return true;
}

/* --- answers ----------------------------------------------------------------------------------------- */

static void answer(struct call *call, int status, struct pl_str body)
{
    call->status = status;
    call->answer = body;
}

static void answer_status(struct call *call, int status, const char *reason, const char *message)
{
    answer(call, status,
           pl__str_format(
               &call->server->sim->arena,
               "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
               "\"message\":\"%s\",\"reason\":\"%s\",\"code\":%d}",
               message, reason, status));
}

struct route {
    int kind; /* -1: none */
    struct pl_str group, version, name, subresource;
    bool discovery, events;
};

static struct pl_str segment(struct pl_str *rest)
{
    const char *slash = memchr(rest->ptr, '/', rest->len);
    struct pl_str s = { rest->ptr, slash ? (size_t)(slash - rest->ptr) : rest->len };

    *rest = (struct pl_str){ s.ptr + s.len + (slash != NULL), rest->len - s.len - (slash != NULL) };
    return s;
}

static struct route route_of(struct pl_str path)
{
    const char *mark = memchr(path.ptr, '?', path.len);
    struct pl_str rest = { path.ptr, mark ? (size_t)(mark - path.ptr) : path.len };
    struct route r = { .kind = -1 };

    segment(&rest); /* before the first slash */
    bool core = pl__str_equal(segment(&rest), PL_STR("api"));
    if (!core)
        r.group = segment(&rest);
    r.version = segment(&rest);
    r.discovery = rest.len == 0;
    struct pl_str plural = segment(&rest);
    if (pl__str_equal(plural, PL_STR("namespaces"))) {
        segment(&rest);
        plural = segment(&rest);
    }
    r.name = segment(&rest);
    r.subresource = segment(&rest);
    r.events = pl__str_equal(plural, PL_STR("events"));
    for (int i = 0; i < K_COUNT; i++) {
        if (pl__str_equal(plural, pl__str(kinds[i].plural)) &&
            pl__str_equal(r.group, pl__str(kinds[i].group)))
            r.kind = i;
    }
    return r;
}

static struct pl_str query(struct pl_str path, const char *key)
{
    const char *end = path.ptr + path.len, *at = memchr(path.ptr, '?', path.len);
    size_t length = strlen(key);

    while (at && ++at < end) {
        const char *next = memchr(at, '&', (size_t)(end - at));
        size_t size = (size_t)((next ? next : end) - at);
        if (size > length && memcmp(at, key, length) == 0 && at[length] == '=')
            return (struct pl_str){ at + length + 1, size - length - 1 };
        at = next;
    }
    return PL_STR("");
}

/* What a server tells about its API groups. */
static void discovery_serve(struct call *call, const struct route *r)
{
    struct pl_buf b;
    const char *version = NULL;

    pl__buf_init(&b, &call->server->sim->arena, SIZE_MAX);
    for (int i = 0; i < K_COUNT; i++) {
        if (!pl__str_equal(r->group, pl__str(kinds[i].group)) || !r->group.len)
            continue;
        version = kinds[i].version;
        if (r->version.len)
            pl__buf_printf(&b,
                           "%s{\"name\":\"%s\",\"singularName\":\"\",\"namespaced\":%s,\"kind\":"
                           "\"%s\",\"verbs\":[\"get\",\"create\",\"delete\"]}",
                           b.len ? "," : "", kinds[i].plural,
                           kinds[i].cluster_scoped ? "false" : "true", kinds[i].name);
    }
    struct pl_arena *a = &call->server->sim->arena;
    int group = (int)r->group.len;
    if (!version)
        answer(call, 404, PL_STR("404 page not found"));
    else if (r->version.len)
        answer(call, 200,
               pl__str_format(a,
                              "{\"kind\":\"APIResourceList\",\"apiVersion\":\"v1\","
                              "\"groupVersion\":\"%.*s/%s\",\"resources\":[%s]}",
                              group, r->group.ptr, version, pl__buf_str(&b).ptr));
    else
        answer(call, 200,
               pl__str_format(
                   a,
                   "{\"kind\":\"APIGroup\",\"apiVersion\":\"v1\",\"name\":\"%.*s\",\"versions\":[{"
                   "\"groupVersion\":\"%.*s/%s\",\"version\":\"%s\"}],\"preferredVersion\":{"
                   "\"groupVersion\":\"%.*s/%s\",\"version\":\"%s\"}}",
                   group, r->group.ptr, group, r->group.ptr, version, version, group, r->group.ptr,
                   version, version));
}

/* --- reading ----------------------------------------------------------------------------------------- */

static void list_serve(struct call *call, enum kind kind)
{
    struct server *s = call->server;
    struct pl_buf b;

    pl__buf_init(&b, &s->sim->arena, SIZE_MAX);
    pl__buf_printf(&b,
                   "{\"kind\":\"%sList\",\"apiVersion\":\"%s\",\"metadata\":{\"resourceVersion\":"
                   "\"%" PRIu64 "\"},\"items\":[",
                   kinds[kind].name, api_version(&s->sim->scratch, kind).ptr, s->version);
    for (const struct object *o = s->objects[kind]; o; o = o->next) {
        if (o != s->objects[kind])
            pl__buf_add_char(&b, ',');
        pl__buf_add(&b, o->text);
    }
    pl__buf_add_lit(&b, "]}");
    answer(call, 200, pl__buf_str(&b));
}

static void watch_serve(struct call *call, enum kind kind)
{
    struct server *s = call->server;
    uint64_t from = 0, seconds = 0;

    call->kind = kind;
    call->initial = query(call->path, "sendInitialEvents").len > 0;
    if (call->initial && s->without_watchlist) {
        answer_status(call, 422, "Invalid", "sendInitialEvents: Forbidden: not supported");
        return;
    }
    pl__str_to_u64(query(call->path, "timeoutSeconds"), &seconds);
    if (!call->initial && (!pl__str_to_u64(query(call->path, "resourceVersion"), &from) || !from)) {
        sim_violated(s->sim, "well-formed requests", "watch without a version: %.*s",
                     PL_STR_ARG(call->path));
        return;
    }
    call->expired = !call->initial && from < s->compacted;
    call->position = s->change_count;
    while (!call->initial && call->position > 0 && s->history[call->position - 1].version > from)
        call->position--;
    call->ends_ms = s->sim->now.mono_ms + seconds * 1000;
    call->streaming = true;
    call->next_watch = s->watches;
    s->watches = call;
}

static void line_add(struct pl_buf *b, const char *type, struct pl_str object)
{
    pl__buf_printf(b, "{\"type\":\"%s\",\"object\":", type);
    pl__buf_add(b, object);
    pl__buf_add_lit(b, "}\n");
}

static void bookmark_add(struct pl_buf *b, const struct call *call, bool end_mark)
{
    pl__buf_printf(b,
                   "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"%s\",\"metadata\":{"
                   "\"resourceVersion\":\"%" PRIu64 "\",\"creationTimestamp\":null%s}}}\n",
                   kinds[call->kind].name, call->server->version,
                   end_mark ? ",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}" : "");
}

struct pl_str api_watch_lines(struct call *call)
{
    struct server *s = call->server;
    struct pl_buf b;

    pl__buf_init(&b, &s->sim->scratch, SIZE_MAX);
    if (call->expired) {
        line_add(&b, "ERROR",
                 PL_STR("{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":"
                        "\"Failure\",\"message\":\"too old resource version\",\"reason\":"
                        "\"Expired\",\"code\":410}"));
        return pl__buf_str(&b);
    }
    if (call->initial) {
        for (const struct object *o = s->objects[call->kind]; o; o = o->next)
            line_add(&b, "ADDED", o->text);
        bookmark_add(&b, call, true);
        call->position = s->change_count;
        call->initial = false;
    }
    bool news = call->position < s->change_count;
    for (; call->position < s->change_count; call->position++) {
        const struct change *change = &s->history[call->position];
        if (change->kind == call->kind)
            line_add(&b, change->type, change->text);
    }
    if (news && prng_one_in(&s->sim->random, 20))
        bookmark_add(&b, call, false);
    return pl__buf_str(&b);
}

void api_compact(struct server *s, bool running)
{
    s->compacted = ++s->version;
    for (struct call *w = s->watches; running && w; w = w->next_watch) {
        w->expired = true;
        watch_schedule(w);
    }
}

/* --- writing ----------------------------------------------------------------------------------------- */

/* True when it was there. */
static bool condition_take(struct pl_tree *list, struct pl_str type)
{
    size_t index = 0;

    for (const struct pl_tree *c = list->first; c; c = c->next, index++)
        if (pl__str_equal(tree_text(tree_get(c, "type")), type))
            return pl__tree_take(list, index) != NULL;
    return false;
}

/* Server-Side Apply by us, with force, of status.conditions: a map by type. */
static void apply_serve(struct call *call, struct object *o, const struct pl_tree *body)
{
    struct pl_arena *a = &o->server->sim->arena;
    const struct pl_tree *wanted = tree_at(body, "status", "conditions", NULL);
    struct pl_tree *list = conditions_of(o);
    bool changed = false;

    check_applied(call, o, body);
    /* What we leave out goes, unless somebody else holds it; half of it cannot stay. */
    for (int i = 0; i < o->owned_count; i++) {
        const struct owned *owned = &o->owned[i];
        if (owned->ours && !condition_in(wanted, owned->type) && owned->others &&
            !owned->others_whole) {
            answer_status(call, 422, "Invalid", "status.conditions: Required value");
            return;
        }
    }
    for (int i = 0; i < o->owned_count; i++) {
        struct owned *owned = &o->owned[i];
        if (!owned->ours || condition_in(wanted, owned->type))
            continue;
        owned->ours = false;
        if (!owned->others)
            changed |= condition_take(list, owned->type);
    }
    for (const struct pl_tree *w = wanted ? wanted->first : NULL; w; w = w->next) {
        struct pl_str type = tree_text(tree_get(w, "type"));
        struct owned *owned = owned_of(o, type);
        struct pl_tree *c = condition_in(list, type);
        owned->ours = true;
        if (!c) {
            pl__tree_append(list, pl__tree_copy(a, w));
            changed = true;
        } else if (!pl__tree_equal(c, w)) {
            pl__patch_merge(a, c, w);
            owned->others_whole = false;
            changed = true;
        }
    }
    if (changed)
        object_commit(o);
    answer(call, 200, o->text);
}

static bool conflicts(struct call *call, const struct object *o, const struct pl_tree *meta)
{
    struct pl_str version = tree_text(tree_get(meta, "resourceVersion"));
    struct pl_str uid = tree_text(tree_get(meta, "uid"));

    if ((version.len && !pl__str_equal(version, tree_text(tree_at(o->tree, "metadata",
                                                                  "resourceVersion", NULL)))) ||
        (uid.len && !pl__str_equal(uid, o->uid))) {
        answer_status(call, 409, "Conflict", "the object has been modified");
        return true;
    }
    return false;
}

/* What is not there any more has no owner. */
static void owners_forget(struct object *o)
{
    for (int i = 0; i < o->owned_count; i++) {
        if (!condition_in(tree_at(o->tree, "status", "conditions", NULL), o->owned[i].type))
            o->owned[i] = (struct owned){ .type = o->owned[i].type };
    }
}

static void patch_serve(struct call *call, struct object *o, const struct pl_tree *body)
{
    struct sim *sim = o->server->sim;
    struct pl_tree *after = pl__tree_copy(&sim->arena, o->tree);
    bool json_patch = strcmp(call->content_type, "application/json-patch+json") == 0;

    if (json_patch) {
        struct pl_str why;
        enum pl_patch_result result = pl__patch_json(&sim->arena, &after, body, &why);
        if (result != PATCH_DONE) {
            answer_status(call, result == PATCH_FAILED ? 422 : 400, "Invalid",
                          "the server rejected our request due to an error in our request");
            return;
        }
    } else if (strcmp(call->content_type, "application/merge-patch+json") == 0) {
        if (conflicts(call, o, tree_get(body, "metadata")))
            return;
        after = pl__patch_merge(&sim->arena, after, body);
    } else {
        answer_status(call, 415, "UnsupportedMediaType",
                      "the body of the request was in an unknown format");
        return;
    }
    check_patched(call, o, o->tree, after);
    if (!pl__tree_equal(o->tree, after)) {
        o->tree = after;
        owners_forget(o);
        object_commit(o);
    }
    answer(call, 200, o->text);
}

static void put_serve(struct call *call, struct object *o, struct pl_tree *body)
{
    struct sim *sim = o->server->sim;

    if (conflicts(call, o, tree_get(body, "metadata")))
        return;
    pl__tree_set(o->tree, PL_STR("spec"), pl__tree_copy(&sim->arena, tree_get(body, "spec")));
    object_commit(o);
    answer(call, 200, o->text);
}

static void post_serve(struct call *call, enum kind kind, struct pl_tree *body)
{
    struct pl_str name = tree_text(tree_at(body, "metadata", "name", NULL));

    if (object_find(call->server, kind, name)) {
        answer_status(call, 409, "AlreadyExists", "it already exists");
        return;
    }
    check_created(call, kind, body);
    answer(call, 201, object_create(call->server, kind, name, body)->text);
}

static void delete_serve(struct call *call, struct object *o, const struct pl_tree *options)
{
    if (conflicts(call, o, tree_get(options, "preconditions")))
        return;
    check_deleted(call, o, options);
    object_delete(o);
    answer(call, 200, o->text);
}

static bool is(const char *method, const char *name)
{
    return strcmp(method, name) == 0;
}

static void write_serve(struct call *call, const struct route *r)
{
    struct sim *sim = call->server->sim;
    struct pl_tree *body =
        pl__tree_read(&sim->arena, call->body.len ? call->body : PL_STR("{}"), NULL);
    struct object *o = object_find(call->server, (enum kind)r->kind, r->name);

    if (!body) {
        sim_violated(sim, "well-formed requests", "%s %.*s: not JSON: %.*s", call->method,
                     PL_STR_ARG(call->path), PL_STR_ARG(call->body));
        answer_status(call, 400, "BadRequest", "not JSON");
    } else if (is(call->method, "POST")) {
        post_serve(call, (enum kind)r->kind, body);
    } else if (!o) {
        answer_status(call, 404, "NotFound", "not found");
    } else if (is(call->method, "DELETE")) {
        delete_serve(call, o, body);
    } else if (is(call->method, "PUT") && o->kind == K_LEASE) {
        put_serve(call, o, body);
    } else if (is(call->method, "PATCH") && call->content_type &&
               is(call->content_type, "application/apply-patch+yaml")) {
        if (!pl__str_equal(r->subresource, PL_STR("status")) ||
            !pl__str_equal(query(call->path, "fieldManager"), PL_STR("plimsoll")))
            sim_violated(sim, "no write outside our fields", "apply %.*s: %.*s",
                         PL_STR_ARG(call->path), PL_STR_ARG(call->body));
        apply_serve(call, o, body);
    } else if (is(call->method, "PATCH") && call->content_type) {
        patch_serve(call, o, body);
    } else {
        sim_violated(sim, "no write outside our fields", "%s %.*s", call->method,
                     PL_STR_ARG(call->path));
    }
}

void api_serve(struct call *call)
{
    struct server *s = call->server;
    struct route r;

    pl__arena_reset(&s->sim->scratch);
    if (pl__str_equal(call->path, PL_STR("/"))) {
        answer(call, 200, PL_STR("{\"paths\":[]}"));
        return;
    }
    r = route_of(call->path);
    if (r.discovery) {
        discovery_serve(call, &r);
    } else if (r.events && is(call->method, "POST")) {
        answer(call, 201, PL_STR("{}"));
    } else if (r.kind < 0 || !pl__str_equal(r.version, pl__str(kinds[r.kind].version))) {
        answer(call, 404, PL_STR("404 page not found"));
    } else if (s->cluster && !cluster_api_works(s->cluster)) {
        answer_status(call, 500, "InternalError", "etcdserver: request timed out");
    } else if (call->type == CALL_WATCH) {
        watch_serve(call, (enum kind)r.kind);
    } else if (is(call->method, "GET") && r.name.len) {
        struct object *o = object_find(s, (enum kind)r.kind, r.name);
        if (o)
            answer(call, 200, o->text);
        else
            answer_status(call, 404, "NotFound", "not found");
    } else if (is(call->method, "GET")) {
        list_serve(call, (enum kind)r.kind);
    } else {
        write_serve(call, &r);
    }
}
