#include "apiserver/discovery.h"

#include "apiserver/kinds.h"
#include "apiserver/schema.h"
#include "apiserver/tree.h"

enum { DISCOVERY_BYTES_MAX = 1024 * 1024, OPENAPI_BYTES_MAX = 4 * 1024 * 1024 };

#define AGGREGATED_TYPE "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
#define META_SCHEMA "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

/* One document that is being written. */
struct page {
    struct pl_arena *arena;
    struct pl_buf buf;
    struct pl_json_writer json;
};

static void page_open(struct page *p, struct pl_arena *arena)
{
    p->arena = arena;
    pl__buf_init(&p->buf, arena, DISCOVERY_BYTES_MAX);
    pl__json_writer_init(&p->json, &p->buf, JSON_COMPACT);
    pl__json_open_object(&p->json);
}

static void page_close(struct page *p, const char *type, struct pl_api_answer *answer)
{
    pl__json_close_object(&p->json);
    answer->status = 200;
    answer->content_type = pl__str(type);
    answer->body = pl__buf_str(&p->buf);
}

static void put(struct page *p, const char *key, const char *value)
{
    pl__json_write_key(&p->json, key);
    pl__json_write_str(&p->json, pl__str(value));
}

static void put_str(struct page *p, const char *key, struct pl_str value)
{
    pl__json_write_key(&p->json, key);
    pl__json_write_str(&p->json, value);
}

static void open_object(struct page *p, const char *key)
{
    if (key)
        pl__json_write_key(&p->json, key);
    pl__json_open_object(&p->json);
}

static void open_array(struct page *p, const char *key)
{
    pl__json_write_key(&p->json, key);
    pl__json_open_array(&p->json);
}

static void put_list(struct page *p, const char *key, const char *const *values, size_t count)
{
    open_array(p, key);
    for (size_t i = 0; i < count && values[i]; i++)
        pl__json_write_str(&p->json, pl__str(values[i]));
    pl__json_close_array(&p->json);
}

/* --- what a kind can do ----------------------------------------------------------------------------- */

static const char *const verbs[] = { "create", "delete", "deletecollection", "get",
                                     "list",   "patch",  "update",           "watch" };
static const char *const namespace_verbs[] = { "create", "delete", "get",  "list",
                                               "patch",  "update", "watch" };
static const char *const status_verbs[] = { "get", "patch", "update" };
static const char *const portforward_verbs[] = { "create", "get" };

static void put_verbs(struct page *p, const struct pl_kind *k)
{
    if (pl__kind_is_core(k, "namespaces")) /* all of them at once: nobody offers that */
        put_list(p, "verbs", namespace_verbs, sizeof namespace_verbs / sizeof verbs[0]);
    else
        put_list(p, "verbs", verbs, sizeof verbs / sizeof verbs[0]);
}

static void put_names(struct page *p, const struct pl_kind *k)
{
    if (k->short_names[0])
        put_list(p, "shortNames", k->short_names, KIND_SHORT_NAMES_MAX);
    if (k->category)
        put_list(p, "categories", &k->category, 1);
}

static bool same_group(const struct pl_kind *a, const struct pl_kind *b)
{
    return strcmp(a->group, b->group) == 0;
}

/* The first kind behind `k` that is of another group; NULL: none. */
static const struct pl_kind *group_next(const struct pl_kind *k)
{
    const struct pl_kind *end = pl__kinds + pl__kind_count, *next = k;

    while (next < end && same_group(next, k))
        next++;
    return next < end ? next : NULL;
}

static const struct pl_kind *group_find(struct pl_str name)
{
    for (const struct pl_kind *k = pl__kinds; k; k = group_next(k))
        if (pl__str_equal(pl__str(k->group), name))
            return k;
    return NULL;
}

/* --- aggregated ------------------------------------------------------------------------------------ */

static void put_response_kind(struct page *p, const char *group, const char *version,
                              const char *kind)
{
    open_object(p, "responseKind");
    put(p, "group", group);
    put(p, "version", version);
    put(p, "kind", kind);
    pl__json_close_object(&p->json);
}

static void put_subresource(struct page *p, const struct pl_kind *k, const char *name,
                            const char *kind, const char *const *can, size_t can_count)
{
    open_object(p, NULL);
    put(p, "subresource", name);
    put_response_kind(p, k->group, k->version, kind);
    put_list(p, "verbs", can, can_count);
    pl__json_close_object(&p->json);
}

static void put_aggregated_resource(struct page *p, const struct pl_kind *k)
{
    open_object(p, NULL);
    put(p, "resource", k->plural);
    put_response_kind(p, k->group, k->version, k->kind);
    put(p, "scope", k->namespaced ? "Namespaced" : "Cluster");
    put(p, "singularResource", k->singular);
    put_verbs(p, k);
    put_names(p, k);
    if (k->status || pl__kind_is_core(k, "pods")) {
        open_array(p, "subresources");
        if (pl__kind_is_core(k, "pods"))
            put_subresource(p, k, "portforward", "PodPortForwardOptions", portforward_verbs,
                            sizeof portforward_verbs / sizeof verbs[0]);
        if (k->status)
            put_subresource(p, k, "status", k->kind, status_verbs,
                            sizeof status_verbs / sizeof verbs[0]);
        pl__json_close_array(&p->json);
    }
    pl__json_close_object(&p->json);
}

static void put_aggregated_group(struct page *p, const struct pl_kind *first)
{
    const struct pl_kind *end = pl__kinds + pl__kind_count;

    open_object(p, NULL);
    open_object(p, "metadata");
    if (first->group[0])
        put(p, "name", first->group);
    pl__json_write_key(&p->json, "creationTimestamp");
    pl__json_write_null(&p->json);
    pl__json_close_object(&p->json);
    open_array(p, "versions");
    open_object(p, NULL);
    put(p, "version", first->version);
    open_array(p, "resources");
    for (const struct pl_kind *k = first; k < end && same_group(k, first); k++)
        put_aggregated_resource(p, k);
    pl__json_close_array(&p->json);
    put(p, "freshness", "Current");
    pl__json_close_object(&p->json);
    pl__json_close_array(&p->json);
    pl__json_close_object(&p->json);
}

/* "/api": the core group alone; "/apis": the others. */
static void answer_aggregated(struct pl_arena *arena, bool core, struct pl_api_answer *answer)
{
    struct page p;

    page_open(&p, arena);
    put(&p, "kind", "APIGroupDiscoveryList");
    put(&p, "apiVersion", "apidiscovery.k8s.io/v2");
    open_object(&p, "metadata");
    pl__json_close_object(&p.json);
    open_array(&p, "items");
    for (const struct pl_kind *k = pl__kinds; k; k = group_next(k))
        if (core == !k->group[0])
            put_aggregated_group(&p, k);
    pl__json_close_array(&p.json);
    page_close(&p, AGGREGATED_TYPE, answer);
}

/* Does one of the ranges of Accept ask for the aggregated form? Parameters come in any order. */
static bool wants_aggregated(struct pl_str accept)
{
    while (accept.len > 0) {
        struct pl_str range = pl__str_cut(&accept, ',');
        bool json = pl__str_contains(pl__str_cut(&range, ';'), PL_STR("application/json"));
        bool as = false, group = false, version = false;
        while (range.len > 0) {
            struct pl_str parameter = pl__str_cut(&range, ';');
            as |= pl__str_ends_with(parameter, PL_STR("as=APIGroupDiscoveryList"));
            group |= pl__str_ends_with(parameter, PL_STR("g=apidiscovery.k8s.io"));
            version |= pl__str_ends_with(parameter, PL_STR("v=v2"));
        }
        if (json && as && group && version)
            return true;
    }
    return false;
}

/* --- plain ------------------------------------------------------------------------------------------ */

static void answer_versions(struct pl_arena *arena, struct pl_api_answer *answer)
{
    static const char *const versions[] = { "v1" };
    struct page p;

    page_open(&p, arena);
    put(&p, "kind", "APIVersions");
    put_list(&p, "versions", versions, 1);
    put_list(&p, "serverAddressByClientCIDRs", NULL, 0);
    page_close(&p, "application/json", answer);
}

static void put_group_version(struct page *p, const struct pl_kind *k)
{
    put_str(p, "groupVersion", pl__kind_api_version(p->arena, k));
    put(p, "version", k->version);
    pl__json_close_object(&p->json);
}

static void put_group(struct page *p, const struct pl_kind *k)
{
    put(p, "name", k->group);
    open_array(p, "versions");
    open_object(p, NULL);
    put_group_version(p, k);
    pl__json_close_array(&p->json);
    open_object(p, "preferredVersion");
    put_group_version(p, k);
}

static void answer_groups(struct pl_arena *arena, struct pl_api_answer *answer)
{
    struct page p;

    page_open(&p, arena);
    put(&p, "kind", "APIGroupList");
    put(&p, "apiVersion", "v1");
    open_array(&p, "groups");
    for (const struct pl_kind *k = pl__kinds; k; k = group_next(k)) {
        if (!k->group[0])
            continue;
        open_object(&p, NULL);
        put_group(&p, k);
        pl__json_close_object(&p.json);
    }
    pl__json_close_array(&p.json);
    page_close(&p, "application/json", answer);
}

static void answer_group(struct pl_arena *arena, const struct pl_kind *k,
                         struct pl_api_answer *answer)
{
    struct page p;

    page_open(&p, arena);
    put(&p, "kind", "APIGroup");
    put(&p, "apiVersion", "v1");
    put_group(&p, k);
    page_close(&p, "application/json", answer);
}

static void put_resource(struct page *p, const struct pl_kind *k, const char *subresource,
                         const char *kind)
{
    open_object(p, NULL);
    put_str(p, "name",
            subresource ? pl__str_format(p->arena, "%s/%s", k->plural, subresource)
                        : pl__str(k->plural));
    put(p, "singularName", subresource ? "" : k->singular);
    pl__json_write_key(&p->json, "namespaced");
    pl__json_write_bool(&p->json, k->namespaced);
    put(p, "kind", kind);
}

static void answer_resources(struct pl_arena *arena, const struct pl_kind *first,
                             struct pl_api_answer *answer)
{
    const struct pl_kind *end = pl__kinds + pl__kind_count;
    struct page p;

    page_open(&p, arena);
    put(&p, "kind", "APIResourceList");
    put(&p, "apiVersion", "v1");
    put_str(&p, "groupVersion", pl__kind_api_version(arena, first));
    open_array(&p, "resources");
    for (const struct pl_kind *k = first; k < end && same_group(k, first); k++) {
        put_resource(&p, k, NULL, k->kind);
        put_verbs(&p, k);
        put_names(&p, k);
        pl__json_close_object(&p.json);
        if (pl__kind_is_core(k, "pods")) {
            put_resource(&p, k, "portforward", "PodPortForwardOptions");
            put_list(&p, "verbs", portforward_verbs, sizeof portforward_verbs / sizeof verbs[0]);
            pl__json_close_object(&p.json);
        }
        if (k->status) {
            put_resource(&p, k, "status", k->kind);
            put_list(&p, "verbs", status_verbs, sizeof status_verbs / sizeof verbs[0]);
            pl__json_close_object(&p.json);
        }
    }
    pl__json_close_array(&p.json);
    page_close(&p, "application/json", answer);
}

static void answer_version(struct pl_arena *arena, struct pl_api_answer *answer)
{
    struct page p;

    page_open(&p, arena);
    put(&p, "major", "1");
    put(&p, "minor", "34");
    put(&p, "gitVersion", "v1.34.0+plimsoll-" PL_VERSION);
    put(&p, "gitCommit", "");
    put(&p, "gitTreeState", "clean");
    put(&p, "buildDate", "1970-01-01T00:00:00Z");
    put(&p, "goVersion", "");
    put(&p, "compiler", "");
    put(&p, "platform", "linux/amd64");
    page_close(&p, "application/json", answer);
}

static void answer_root(struct pl_arena *arena, struct pl_api_answer *answer)
{
    static const char *const fixed[] = { "/api",   "/api/v1",     "/apis",   "/healthz",
                                         "/livez", "/openapi/v3", "/readyz", "/version" };
    struct page p;

    page_open(&p, arena);
    open_array(&p, "paths");
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
        pl__json_write_str(&p.json, pl__str(fixed[i]));
    for (const struct pl_kind *k = pl__kinds; k; k = group_next(k))
        if (k->group[0])
            pl__json_write_str(&p.json, pl__str_format(arena, "/apis/%s/%s", k->group, k->version));
    pl__json_close_array(&p.json);
    page_close(&p, "application/json", answer);
}

/* --- OpenAPI ---------------------------------------------------------------------------------------- */

/* "api/v1", or "apis/group/version". */
static struct pl_str group_path(struct pl_arena *arena, const struct pl_kind *k)
{
    if (!k->group[0])
        return pl__str_format(arena, "api/%s", k->version);
    return pl__str_format(arena, "apis/%s/%s", k->group, k->version);
}

static void answer_openapi_index(struct pl_arena *arena, struct pl_api_answer *answer)
{
    struct page p;

    page_open(&p, arena);
    open_object(&p, "paths");
    for (const struct pl_kind *k = pl__kinds; k; k = group_next(k)) {
        struct pl_str path = group_path(arena, k);
        pl__json_write_key_str(&p.json, path);
        open_object(&p, NULL);
        put_str(&p, "serverRelativeURL",
                pl__str_format(arena, "/openapi/v3/%.*s?hash=" PL_VERSION, PL_STR_ARG(path)));
        pl__json_close_object(&p.json);
    }
    pl__json_close_object(&p.json);
    page_close(&p, "application/json", answer);
}

static void set(struct pl_arena *a, struct pl_tree *t, struct pl_str key, const char *value)
{
    pl__tree_set(t, key, pl__tree_str(a, pl__str(value)));
}

static struct pl_tree *group_version_kind(struct pl_arena *a, const struct pl_kind *k)
{
    struct pl_tree *t = pl__tree_new(a, JSON_OBJECT);

    set(a, t, PL_STR("group"), k->group);
    set(a, t, PL_STR("version"), k->version);
    set(a, t, PL_STR("kind"), k->kind);
    return t;
}

static struct pl_tree *query_parameter(struct pl_arena *a, const char *name)
{
    struct pl_tree *t = pl__tree_new(a, JSON_OBJECT);

    set(a, t, PL_STR("name"), name);
    set(a, t, PL_STR("in"), "query");
    set(a, pl__tree_make(a, t, PL_STR("schema")), PL_STR("type"), "string");
    return t;
}

/* What kubectl looks for: that a PATCH of the kind takes fieldValidation, so that it need not check by
 * itself. Strategic merge is not named: for kinds that have it, it knows by itself, and asks for schemas
 * with merge keys where it is told. */
static struct pl_tree *patch_operation(struct pl_arena *a, const struct pl_kind *k)
{
    static const char *const parameters[] = { "dryRun", "fieldManager", "fieldValidation",
                                              "force" };
    struct pl_tree *item = pl__tree_new(a, JSON_OBJECT);
    struct pl_tree *patch = pl__tree_make(a, item, PL_STR("patch"));
    struct pl_tree *list = pl__tree_new(a, JSON_ARRAY);

    set(a, patch, PL_STR("description"), "partially update the specified object");
    for (size_t i = 0; i < sizeof parameters / sizeof parameters[0]; i++)
        pl__tree_append(list, query_parameter(a, parameters[i]));
    pl__tree_set(patch, PL_STR("parameters"), list);
    struct pl_tree *body = pl__tree_make(a, patch, PL_STR("requestBody"));
    struct pl_tree *content = pl__tree_make(a, body, PL_STR("content"));
    pl__tree_make(a, content, PL_STR("application/apply-patch+yaml"));
    pl__tree_make(a, content, PL_STR("application/json-patch+json"));
    pl__tree_make(a, content, PL_STR("application/merge-patch+json"));
    pl__tree_make(a, patch, PL_STR("responses"));
    set(a, patch, PL_STR("x-kubernetes-action"), "patch");
    pl__tree_set(patch, PL_STR("x-kubernetes-group-version-kind"), group_version_kind(a, k));
    return item;
}

static void paths_add(struct pl_arena *a, struct pl_tree *paths, const struct pl_kind *k)
{
    struct pl_str path = pl__str_format(a, "/%.*s/%s%s/{name}", PL_STR_ARG(group_path(a, k)),
                                        k->namespaced ? "namespaces/{namespace}/" : "", k->plural);

    pl__tree_set(paths, path, patch_operation(a, k));
    if (k->status)
        pl__tree_set(paths, pl__str_format(a, "%.*s/status", PL_STR_ARG(path)),
                     patch_operation(a, k));
}

static struct pl_tree *described(struct pl_arena *a, const char *type, const char *description)
{
    struct pl_tree *t = pl__tree_new(a, JSON_OBJECT);

    set(a, t, PL_STR("description"), description);
    if (type)
        set(a, t, PL_STR("type"), type);
    return t;
}

/* As the real server publishes a CRD's schema: what every object has is described, and metadata is a
 * reference. */
static struct pl_tree *schema_published(struct pl_arena *a, const struct pl_kind *k)
{
    struct pl_tree *schema = pl__schema_of_kind(a, k);
    struct pl_tree *properties = pl__tree_make(a, schema, PL_STR("properties"));
    struct pl_tree *metadata =
        described(a, NULL, "Standard object's metadata: name, labels, owners and the like.");
    struct pl_tree *all = pl__tree_new(a, JSON_ARRAY), *reference = pl__tree_new(a, JSON_OBJECT);
    struct pl_tree *names = pl__tree_new(a, JSON_ARRAY);

    if (!pl__tree_get(schema, PL_STR("description")))
        set(a, schema, PL_STR("description"), k->description);
    pl__tree_set(properties, PL_STR("apiVersion"),
                 described(a, "string", "The versioned schema of this representation."));
    pl__tree_set(properties, PL_STR("kind"),
                 described(a, "string", "The REST resource that this object represents."));
    set(a, reference, PL_STR("$ref"), "#/components/schemas/" META_SCHEMA);
    pl__tree_append(all, reference);
    pl__tree_set(metadata, PL_STR("allOf"), all);
    pl__tree_set(properties, PL_STR("metadata"), metadata);
    pl__tree_append(names, group_version_kind(a, k));
    pl__tree_set(schema, PL_STR("x-kubernetes-group-version-kind"), names);
    return schema;
}

static void answer_openapi(struct pl_arena *a, const struct pl_kind *first,
                           struct pl_api_answer *answer)
{
    const struct pl_kind *end = pl__kinds + pl__kind_count;
    struct pl_tree *document = pl__tree_new(a, JSON_OBJECT);
    struct pl_buf buf;

    set(a, document, PL_STR("openapi"), "3.0.0");
    struct pl_tree *info = pl__tree_make(a, document, PL_STR("info"));
    set(a, info, PL_STR("title"), "plimsoll");
    set(a, info, PL_STR("version"), PL_VERSION);
    struct pl_tree *paths = pl__tree_make(a, document, PL_STR("paths"));
    struct pl_tree *components = pl__tree_make(a, document, PL_STR("components"));
    struct pl_tree *schemas = pl__tree_make(a, components, PL_STR("schemas"));
    for (const struct pl_kind *k = first; k < end && same_group(k, first); k++) {
        paths_add(a, paths, k);
        pl__tree_set(schemas, pl__str_format(a, "%s.%s.%s", k->group, k->version, k->kind),
                     schema_published(a, k));
    }
    pl__tree_set(schemas, PL_STR(META_SCHEMA),
                 pl__schema_find(a, PL_STR("meta.k8s.io"), PL_STR("ObjectMeta")));
    pl__buf_init(&buf, a, OPENAPI_BYTES_MAX);
    pl__tree_write(&buf, document);
    answer->status = 200;
    answer->content_type = PL_STR("application/json");
    answer->body = pl__buf_str(&buf);
}

/* The old form. kubectl asks for it when it applies a List, and skips what it finds no schema of; the schemas are
 * in the new form alone. It takes nothing but protobuf: {1: "2.0", 2: {1: title, 2: version}}, of a type that
 * it asks for with a "@" which Go, reading the answer, would not take. */
static void answer_openapi_v2(struct pl_arena *a, struct pl_str accept,
                              struct pl_api_answer *answer)
{
    static const char type[] = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
    struct pl_buf buf;

    answer->status = 200;
    if (!pl__str_contains(accept, PL_STR("proto-openapi.spec.v2"))) {
        answer->content_type = PL_STR("application/json");
        answer->body =
            PL_STR("{\"swagger\":\"2.0\",\"info\":{\"title\":\"plimsoll\",\"version\":\"" PL_VERSION
                   "\"},\"paths\":{}}");
        return;
    }
    pl__buf_init(&buf, a, 256);
    pl__buf_add_lit(&buf, "\x0a\x03");
    pl__buf_add_lit(&buf, "2.0\x12");
    pl__buf_add_char(&buf, (char)(2 + sizeof "plimsoll" - 1 + 2 + sizeof PL_VERSION - 1));
    pl__buf_add_lit(&buf, "\x0a\x08plimsoll\x12");
    pl__buf_add_char(&buf, (char)(sizeof PL_VERSION - 1));
    pl__buf_add_lit(&buf, PL_VERSION);
    answer->content_type = pl__str(type);
    answer->body = pl__buf_str(&buf);
}

/* --- routes ----------------------------------------------------------------------------------------- */

/* What is behind a prefix; false when the path does not start with it. */
static bool behind(struct pl_str path, struct pl_str prefix, struct pl_str *rest)
{
    if (!pl__str_starts_with(path, prefix))
        return false;
    *rest = (struct pl_str){ path.ptr + prefix.len, path.len - prefix.len };
    return true;
}

/* "api/v1" or "apis/group/version" to the first kind of the group; NULL: no such group or version. */
static const struct pl_kind *group_of_path(struct pl_str path)
{
    struct pl_str rest;

    if (pl__str_equal(path, PL_STR("api/v1")))
        return pl__kinds;
    if (!behind(path, PL_STR("apis/"), &rest))
        return NULL;
    const struct pl_kind *k = group_find(pl__str_cut(&rest, '/'));
    return k && k->group[0] && pl__str_equal(rest, pl__str(k->version)) ? k : NULL;
}

static bool route(const struct pl_api_request *request, struct pl_str path, struct pl_arena *arena,
                  struct pl_api_answer *answer)
{
    const struct pl_kind *k;
    struct pl_str rest;
    bool core = pl__str_equal(path, PL_STR("api"));

    if ((core || pl__str_equal(path, PL_STR("apis"))) && wants_aggregated(request->accept))
        answer_aggregated(arena, core, answer);
    else if (core)
        answer_versions(arena, answer);
    else if (pl__str_equal(path, PL_STR("apis")))
        answer_groups(arena, answer);
    else if (path.len == 0)
        answer_root(arena, answer);
    else if (pl__str_equal(path, PL_STR("version")))
        answer_version(arena, answer);
    else if (pl__str_equal(path, PL_STR("openapi/v2")))
        answer_openapi_v2(arena, request->accept, answer);
    else if (pl__str_equal(path, PL_STR("openapi/v3")))
        answer_openapi_index(arena, answer);
    else if (behind(path, PL_STR("openapi/v3/"), &rest) && (k = group_of_path(rest)))
        answer_openapi(arena, k, answer);
    else if ((k = group_of_path(path)))
        answer_resources(arena, k, answer);
    else if (behind(path, PL_STR("apis/"), &rest) && rest.len > 0 && (k = group_find(rest)))
        answer_group(arena, k, answer);
    else
        return false;
    return true;
}

/* --- what one may do -------------------------------------------------------------------------------- */

/* Questions that are posted and answered, and not kept. Whoever got here may do everything. */
static const struct review {
    struct pl_str path, kind, status;
} reviews[] = {
    { PL_STR_INIT("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
      PL_STR_INIT("SelfSubjectAccessReview"),
      PL_STR_INIT("{\"allowed\":true,\"reason\":\"there is no authorization here\"}") },
    { PL_STR_INIT("/apis/authentication.k8s.io/v1/selfsubjectreviews"),
      PL_STR_INIT("SelfSubjectReview"),
      PL_STR_INIT("{\"userInfo\":{\"username\":\"system:anonymous\","
                  "\"groups\":[\"system:unauthenticated\"]}}") },
};

static void review_answer(const struct review *r, struct pl_str body, struct pl_arena *arena,
                          struct pl_api_answer *answer)
{
    struct pl_error *err = NULL;
    struct pl_tree *object = pl__tree_read(arena, body, &err);

    if (!pl__str_equal(pl__tree_get_str(object, "kind"), r->kind)) {
        pl_api_answer_failure(
            answer, arena, 400, "BadRequest",
            pl__str_format(arena, "the body must be a %.*s", PL_STR_ARG(r->kind)));
        return;
    }
    pl__tree_set(object, PL_STR("status"), pl__tree_read(arena, r->status, &err));
    answer->status = 201;
    answer->content_type = PL_STR("application/json");
    answer->body = pl__tree_text(arena, object);
}

static bool review_handle(const struct pl_api_request *request, struct pl_arena *arena,
                          struct pl_api_answer *answer)
{
    if (!pl__str_equal(request->method, PL_STR("POST")))
        return false;
    for (size_t i = 0; i < sizeof reviews / sizeof reviews[0]; i++) {
        if (pl__str_equal(request->path, reviews[i].path)) {
            review_answer(&reviews[i], request->body, arena, answer);
            return true;
        }
    }
    return false;
}

bool pl__discovery_handle(const struct pl_api_request *request, struct pl_arena *arena,
                          struct pl_api_answer *answer)
{
    struct pl_str path = request->path;

    if (review_handle(request, arena, answer))
        return true;
    while (path.len > 0 && path.ptr[path.len - 1] == '/')
        path.len--;
    if (path.len > 0 && path.ptr[0] == '/') {
        path.ptr++;
        path.len--;
    }
    if (!route(request, path, arena, answer))
        return false;
    if (!pl__str_equal(request->method, PL_STR("GET")))
        pl_api_answer_failure(
            answer, arena, 405, "MethodNotAllowed",
            PL_STR("the server does not allow this method on the requested resource"));
    return true;
}
