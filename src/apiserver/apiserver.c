#include "apiserver/internal.h"

#include <assert.h>
#include <stdlib.h>

#include "apiserver/discovery.h"

enum { SEGMENTS_MAX = 10, SCRATCH_KEPT_BYTES_MAX = 16 * 1024 * 1024 };

/* --- small things that all files use ------------------------------------------------------------- */

/* splitmix64 */
uint64_t pl__api_random(struct pl_apiserver *s)
{
    uint64_t x = s->random += 0x9e3779b97f4a7c15;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

int64_t pl__kind_id(const struct pl_apiserver *s, const struct pl_kind *kind)
{
    if (kind->stored_as)
        kind = kind->stored_as;
    return s->kind_ids[kind - pl__kinds];
}

const struct pl_kind *pl__kind_of_id(const struct pl_apiserver *s, int64_t id)
{
    for (size_t i = 0; i < pl__kind_count; i++)
        if (s->kind_ids[i] == id && !pl__kinds[i].stored_as)
            return &pl__kinds[i];
    return NULL;
}

struct pl_store_key pl__call_key(const struct call *c)
{
    return (struct pl_store_key){
        .cluster = c->cluster->id, .kind = pl__kind_id(c->s, c->kind), .ns = c->ns, .name = c->name
    };
}

void pl__scratch_reset(struct pl_apiserver *s)
{
    if (s->scratch.held_bytes > SCRATCH_KEPT_BYTES_MAX)
        pl__arena_release(&s->scratch);
    else
        pl__arena_reset(&s->scratch);
}

/* --- clusters ------------------------------------------------------------------------------------ */

/* Where a name is, or would be. */
static size_t cluster_place(const struct pl_apiserver *s, struct pl_str name, bool *found)
{
    size_t low = 0, high = s->cluster_count;

    *found = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = pl__str_compare(s->clusters[middle]->name, name);
        if (order == 0) {
            *found = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct pl_cluster *find_cluster(const struct pl_apiserver *s, struct pl_str name)
{
    bool found;
    size_t place = cluster_place(s, name, &found);

    return found ? s->clusters[place] : NULL;
}

struct pl_cluster *pl__cluster_of_id(const struct pl_apiserver *s, int64_t id)
{
    for (size_t i = 0; i < s->cluster_count; i++)
        if (s->clusters[i]->id == id)
            return s->clusters[i];
    return NULL;
}

bool pl_apiserver_has_cluster(const struct pl_apiserver *s, struct pl_str name)
{
    return find_cluster(s, name) != NULL;
}

static int insert_cluster(void *context, int64_t id, struct pl_str name)
{
    struct pl_apiserver *s = context;
    bool found;
    size_t place = cluster_place(s, name, &found);
    struct pl_cluster *cluster = calloc(1, sizeof *cluster + name.len);

    assert(cluster && !found);
    char *copy = (char *)(cluster + 1);
    memcpy(copy, name.ptr, name.len);
    cluster->name = (struct pl_str){ copy, name.len };
    cluster->id = id;
    if (s->cluster_count == s->cluster_capacity) {
        size_t capacity = s->cluster_capacity ? s->cluster_capacity * 2 : 16;
        struct pl_cluster **grown = realloc(s->clusters, capacity * sizeof(struct pl_cluster *));
        assert(grown);
        s->clusters = grown;
        s->cluster_capacity = capacity;
    }
    memmove(&s->clusters[place + 1], &s->clusters[place],
            (s->cluster_count - place) * sizeof(struct pl_cluster *));
    s->clusters[place] = cluster;
    s->cluster_count++;
    return 0;
}

static int add_namespace(struct pl_apiserver *s, struct pl_str cluster, const char *name,
                         int64_t now_ms)
{
    struct pl_api_answer answer;
    struct pl_arena arena;

    pl__arena_init(&arena, NULL, 0);
    struct pl_api_call call = {
        .cluster = cluster,
        .verb = PL_API_CREATE,
        .group_version = "v1",
        .plural = "namespaces",
        .manager = PL_STR("kube-apiserver"),
        .body = pl__str_format(&arena,
                               "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":"
                               "{\"name\":\"%s\"}}",
                               name),
    };
    int failed = pl_apiserver_call(s, &call, now_ms, &arena, &answer);
    bool fine = !failed || answer.status == 409;
    pl__arena_release(&arena);
    return fine ? 0 : -1;
}

int pl_apiserver_cluster_add(struct pl_apiserver *s, struct pl_str name, int64_t now_ms)
{
    static const char *const namespaces[] = { "default", "kube-system", "kube-public",
                                              "kube-node-lease" };

    if (name.len == 0 || name.len > PL_API_CLUSTER_NAME_MAX)
        return -1;
    if (!find_cluster(s, name)) {
        int64_t id = pl__api_store_cluster(s->store, name);
        if (id < 0)
            return -1;
        insert_cluster(s, id, name);
    }
    for (size_t i = 0; i < sizeof namespaces / sizeof namespaces[0]; i++)
        if (add_namespace(s, name, namespaces[i], now_ms) < 0)
            return -1;
    return 0;
}

int pl_apiserver_cluster_remove(struct pl_apiserver *s, struct pl_str name)
{
    bool found;
    size_t place = cluster_place(s, name, &found);

    if (!found)
        return 0;
    struct pl_cluster *cluster = s->clusters[place];
    if (pl__api_store_begin(s->store) < 0)
        return -1;
    if (pl__api_store_drop_cluster(s->store, cluster->id) < 0 ||
        pl__api_store_commit(s->store) < 0) {
        pl__api_store_rollback(s->store);
        return -1;
    }
    pl__watch_end_all(cluster);
    pl__collect_restart(s);
    s->cluster_count--;
    memmove(&s->clusters[place], &s->clusters[place + 1],
            (s->cluster_count - place) * sizeof(struct pl_cluster *));
    free(cluster);
    return 0;
}

/* --- opening, time ------------------------------------------------------------------------------- */

static int number_kinds(struct pl_apiserver *s)
{
    struct pl_arena *a = &s->scratch;

    s->kind_ids = calloc(pl__kind_count, sizeof *s->kind_ids);
    s->schemas = calloc(pl__kind_count, sizeof *s->schemas);
    assert(s->kind_ids && s->schemas);
    for (size_t i = 0; i < pl__kind_count; i++) {
        s->kind_ids[i] = pl__api_store_kind(s->store, pl__kind_resource(a, &pl__kinds[i]));
        if (s->kind_ids[i] < 0)
            return -1;
    }
    pl__arena_reset(a);
    return 0;
}

struct pl_apiserver *pl_apiserver_open(const struct pl_apiserver_options *options,
                                       struct pl_arena *arena, struct pl_error **err)
{
    struct pl_apiserver *s = calloc(1, sizeof *s);

    assert(s);
    s->options = *options;
    if (!s->options.history_max)
        s->options.history_max = 20000;
    if (!s->options.event_ttl_s)
        s->options.event_ttl_s = 3600;
    if (!s->options.bookmark_ms)
        s->options.bookmark_ms = 60000;
    s->random = options->seed;
    s->next_watch_ms = INT64_MAX;
    s->work = true; /* a server that was killed may have left some */
    pl__arena_init(&s->scratch, NULL, 0);
    pl__arena_init(&s->schema_arena, NULL, 0);
    pl__arena_init(&s->collector.names, NULL, 0);
    s->store = pl__api_store_open(options->file, arena, err);
    if (s->store && number_kinds(s) == 0 &&
        pl__api_store_each_cluster(s->store, &s->scratch, insert_cluster, s) == 0) {
        /* uids must not repeat when a server with the same seed goes on with the same file. */
        s->random += pl__api_store_version(s->store) * 0xd1342543de82ef95;
        return s;
    }
    if (s->store)
        pl__error(arena, err, PL_IO, "%s: %s", options->file ? options->file : "database in memory",
                  pl__api_store_failure(s->store));
    pl_apiserver_close(s);
    return NULL;
}

void pl_apiserver_close(struct pl_apiserver *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->cluster_count; i++) {
        pl__watch_end_all(s->clusters[i]);
        free(s->clusters[i]);
    }
    free(s->clusters);
    free(s->kind_ids);
    free(s->schemas);
    pl__api_store_close(s->store);
    pl__arena_release(&s->scratch);
    pl__arena_release(&s->schema_arena);
    pl__arena_release(&s->collector.names);
    free(s);
}

void pl_apiserver_step(struct pl_apiserver *s, int64_t now_ms)
{
    pl__collect_step(s, now_ms);
    pl__watch_step(s, now_ms);
}

int64_t pl_apiserver_wake_at_ms(const struct pl_apiserver *s)
{
    int64_t due = pl__collect_wake_at_ms(s);

    return s->next_watch_ms < due ? s->next_watch_ms : due;
}

uint64_t pl_apiserver_version(const struct pl_apiserver *s)
{
    return pl__api_store_version(s->store);
}

void pl_apiserver_compact(struct pl_apiserver *s)
{
    while (pl__api_store_compact(s->store, pl__api_store_version(s->store), 10000) == 1)
        continue;
}

/* --- routing ------------------------------------------------------------------------------------- */

struct segments {
    struct pl_str items[SEGMENTS_MAX];
    size_t count;
};

/* False when there are too many, or one is empty or badly encoded. */
static bool split_path(struct call *c, struct segments *out)
{
    struct pl_str rest = c->request->path;

    while (rest.len) {
        if (rest.ptr[0] != '/' || out->count == SEGMENTS_MAX)
            return false;
        rest.ptr++;
        rest.len--;
        const char *slash = rest.len ? memchr(rest.ptr, '/', rest.len) : NULL;
        struct pl_str part = { rest.ptr, slash ? (size_t)(slash - rest.ptr) : rest.len };
        if (part.len == 0 || !pl__percent_decode(c->arena, part, false, &out->items[out->count++]))
            return false;
        rest.ptr += part.len;
        rest.len -= part.len;
    }
    return true;
}

static bool segment_is(const struct segments *p, size_t at, const char *text)
{
    return at < p->count && pl__str_equal(p->items[at], pl__str(text));
}

/* Kind, namespace, name and subresource of a path; false when it is not about objects. */
static bool find_target(struct call *c, const struct segments *p)
{
    bool core = segment_is(p, 0, "api");
    size_t at = core ? 2 : 3;

    if (p->count <= at || (!core && !segment_is(p, 0, "apis")))
        return false;
    struct pl_str group = core ? (struct pl_str){ "", 0 } : p->items[1];
    struct pl_str version = p->items[at - 1];
    /* A namespace itself is .../namespaces/NAME; with more behind it is what lives there. */
    bool inside = segment_is(p, at, "namespaces") && p->count > at + 2 &&
                  !(core && (segment_is(p, at + 2, "status") || segment_is(p, at + 2, "finalize")));
    if (inside) {
        c->ns = p->items[at + 1];
        at += 2;
    }
    c->shown = pl__kind_by_plural(group, version, p->items[at]);
    if (!c->shown || (inside && !c->shown->namespaced) || p->count > at + 3)
        return false;
    c->kind = c->shown->stored_as ? c->shown->stored_as : c->shown;
    if (p->count > at + 1)
        c->name = p->items[at + 1];
    if (p->count > at + 2)
        c->subresource = p->items[at + 2];
    if (c->name.len && c->kind->namespaced && !inside)
        return false;
    if (pl__str_equal(c->subresource, PL_STR("status")))
        return c->kind->status;
    if (pl__str_equal(c->subresource, PL_STR("scale")))
        return c->kind->scale;
    return c->subresource.len == 0;
}

static bool method_is(const struct call *c, const char *method)
{
    return pl__str_equal(c->request->method, pl__str(method));
}

/* Of a HEAD the front sends all but the body. A real server takes it for custom kinds only. */
static bool is_read(const struct call *c)
{
    return method_is(c, "GET") || (method_is(c, "HEAD") && c->kind->custom && !c->params.watch);
}

static int handle_collection(struct call *c)
{
    if (is_read(c))
        return c->params.watch ? pl__watch_open(c) : pl__read_list(c);
    /* What is namespaced is neither written nor deleted without a namespace. */
    if (c->kind->namespaced && c->ns.len == 0)
        return pl__fail_method(c);
    if (method_is(c, "POST"))
        return pl__write_create(c);
    if (method_is(c, "DELETE"))
        return pl__write_delete_collection(c);
    if (c->kind->custom && (method_is(c, "PUT") || method_is(c, "PATCH")))
        return pl__fail_status(c, 400, "BadRequest", "name must be provided");
    return pl__fail_method(c);
}

static int handle_object(struct call *c)
{
    if (is_read(c))
        return pl__read_get(c);
    if (method_is(c, "PUT"))
        return pl__write_update(c);
    if (method_is(c, "PATCH"))
        return pl__write_patch(c);
    if (method_is(c, "DELETE") && c->subresource.len == 0)
        return pl__write_delete(c);
    if (method_is(c, "POST") && c->subresource.len == 0 && c->kind->custom)
        return pl__write_create(c); /* the name in the path does not matter */
    return pl__fail_method(c);
}

/* Groups of a real server's own have a Status for what is not there; everything else is plain text. */
static int not_served(struct call *c, const struct segments *path)
{
    /* A custom kind's server looks for the object before it looks at the rest. */
    if (c->kind && c->kind->custom && c->subresource.len)
        return pl__fail_not_found(c);
    bool own = segment_is(path, 0, "api") ||
               (segment_is(path, 0, "apis") && (segment_is(path, 1, "coordination.k8s.io") ||
                                                segment_is(path, 1, "events.k8s.io")));

    if (!own) {
        c->answer->status = 404;
        c->answer->content_type = PL_STR("text/plain; charset=utf-8");
        c->answer->body = PL_STR("404 page not found\n");
        return -1;
    }
    return pl__fail_request(c, 404, "NotFound",
                            PL_STR("the server could not find the requested resource"));
}

static int handle(struct call *c)
{
    struct segments path = { .count = 0 };

    c->cluster = find_cluster(c->s, c->request->cluster);
    if (!c->cluster)
        return pl__fail_status(c, 404, "NotFound", "there is no cluster \"%.*s\"",
                               PL_STR_ARG(c->request->cluster));
    if (c->request->body.len > PL_API_BODY_BYTES_MAX)
        return pl__fail_status(c, 413, "RequestEntityTooLarge",
                               "Request entity too large: limit is %d", PL_API_BODY_BYTES_MAX);
    bool split = split_path(c, &path);
    if (!split || !find_target(c, &path))
        return pl__discovery_handle(c->request, c->arena, c->answer) ? 0 : not_served(c, &path);
    c->form = pl__form_of_accept(c->request->accept);
    if (c->form == PL_FORM_NONE)
        return pl__fail_status(c, 406, "NotAcceptable",
                               "only the following media types are accepted: application/json, "
                               "application/yaml, application/vnd.kubernetes.protobuf");
    if (pl__params_read(c) < 0)
        return -1;
    return c->name.len ? handle_object(c) : handle_collection(c);
}

void pl_apiserver_handle(struct pl_apiserver *s, const struct pl_api_request *request,
                         int64_t now_ms, struct pl_arena *arena, struct pl_api_answer *answer)
{
    struct call c = {
        .s = s, .request = request, .answer = answer, .arena = arena, .now_ms = now_ms
    };

    *answer = (struct pl_api_answer){ 0 };
    handle(&c);
    assert(answer->status);
}

/* --- without HTTP -------------------------------------------------------------------------------- */

static const struct {
    const char *method, *content_type;
} verbs[] = {
    [PL_API_GET] = { "GET", "" },
    [PL_API_LIST] = { "GET", "" },
    [PL_API_WATCH] = { "GET", "" },
    [PL_API_CREATE] = { "POST", "application/json" },
    [PL_API_UPDATE] = { "PUT", "application/json" },
    [PL_API_MERGE] = { "PATCH", "application/merge-patch+json" },
    [PL_API_JSON_PATCH] = { "PATCH", "application/json-patch+json" },
    [PL_API_APPLY] = { "PATCH", "application/apply-patch+yaml" },
    [PL_API_DELETE] = { "DELETE", "application/json" },
    [PL_API_DELETE_COLLECTION] = { "DELETE", "application/json" },
};

static bool names_object(enum pl_api_verb verb)
{
    return verb != PL_API_LIST && verb != PL_API_WATCH && verb != PL_API_CREATE &&
           verb != PL_API_DELETE_COLLECTION;
}

static struct pl_str path_of(const struct pl_api_call *call, struct pl_arena *arena)
{
    struct pl_buf b;

    pl__buf_init(&b, arena, 4096);
    pl__buf_printf(&b, "/%s/%s", strchr(call->group_version, '/') ? "apis" : "api",
                   call->group_version);
    if (call->ns.len)
        pl__buf_printf(&b, "/namespaces/%.*s", PL_STR_ARG(call->ns));
    pl__buf_printf(&b, "/%s", call->plural);
    if (names_object(call->verb))
        pl__buf_printf(&b, "/%.*s", PL_STR_ARG(call->name));
    if (call->subresource)
        pl__buf_printf(&b, "/%s", call->subresource);
    return pl__buf_str(&b);
}

static struct pl_str query_of(const struct pl_api_call *call, struct pl_arena *arena)
{
    struct pl_str manager = call->manager.len ? call->manager : PL_STR("plimsoll-playground");
    struct pl_buf b;

    pl__buf_init(&b, arena, 16384);
    pl__buf_printf(&b, "fieldManager=%.*s", PL_STR_ARG(manager));
    if (call->verb == PL_API_WATCH)
        pl__buf_add_lit(&b, "&watch=true");
    if (call->verb == PL_API_APPLY)
        pl__buf_add_lit(&b, "&force=true");
    if (call->query.len)
        pl__buf_printf(&b, "&%.*s", PL_STR_ARG(call->query));
    return pl__buf_str(&b);
}

int pl_apiserver_call(struct pl_apiserver *s, const struct pl_api_call *call, int64_t now_ms,
                      struct pl_arena *arena, struct pl_api_answer *answer)
{
    struct pl_api_request request = {
        .cluster = call->cluster,
        .method = pl__str(verbs[call->verb].method),
        .path = path_of(call, arena),
        .query = query_of(call, arena),
        .content_type = pl__str(verbs[call->verb].content_type),
        .body = call->body,
    };

    pl_apiserver_handle(s, &request, now_ms, arena, answer);
    return answer->status < 400 ? 0 : -1;
}
