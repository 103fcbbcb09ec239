/* What clients are told: every path gives JSON of the right kind, and both forms of discovery agree. */
#include "test.h"

#include "apiserver/discovery.h"
#include "apiserver/kinds.h"
#include "apiserver/tree.h"

#define AGGREGATED "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

static struct pl_arena arena;

static struct pl_api_answer ask(const char *method, const char *path, const char *accept)
{
    struct pl_api_request request = { .method = pl__str(method),
                                      .path = pl__str(path),
                                      .accept = pl__str(accept) };
    struct pl_api_answer answer = { 0 };

    if (!pl__discovery_handle(&request, &arena, &answer))
        answer.status = 0;
    return answer;
}

static struct pl_tree *get(const char *path, const char *accept)
{
    struct pl_api_answer answer = ask("GET", path, accept);
    struct pl_error *err = NULL;
    struct pl_tree *t = NULL;

    CHECK_INT(answer.status, 200);
    if (answer.status == 200)
        t = pl__tree_read(&arena, answer.body, &err);
    CHECK(t != NULL);
    return t;
}

static void test_paths(void)
{
    static const struct {
        const char *path, *kind;
    } cases[] = {
        { "/api", "APIVersions" },
        { "/api/", "APIVersions" },
        { "/apis", "APIGroupList" },
        { "/api/v1", "APIResourceList" },
        { "/apis/cluster.x-k8s.io", "APIGroup" },
        { "/apis/cluster.x-k8s.io/v1beta2", "APIResourceList" },
        { "/version", "" },
        { "/", "" },
        { "/openapi/v2", "" },
        { "/openapi/v3", "" },
        { "/openapi/v3/api/v1", "" },
        { "/openapi/v3/apis/events.k8s.io/v1", "" },
    };
    static const char *const unknown[] = { "/api/v2",       "/apis/apps",
                                           "/apis/apps/v1", "/apis//v1",
                                           "/openapi/v4",   "/apis/cluster.x-k8s.io/v1",
                                           "/metrics",      "/openapi/v3/api/v2",
                                           "/apis/v1" };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CASE("GET %s", cases[i].path);
        CHECK_STR(pl__tree_get_str(get(cases[i].path, ""), "kind"), cases[i].kind);
        CHECK_INT(ask("POST", cases[i].path, "").status, 405);
    }
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        CASE("GET %s is unknown", unknown[i]);
        CHECK_INT(ask("GET", unknown[i], "").status, 0);
    }
}

static void test_aggregated(void)
{
    static const struct {
        const char *accept;
        bool aggregated;
    } cases[] = {
        { AGGREGATED
          ",application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/"
          "json",
          true },
        { "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io", true },
        { "application/json;as=APIGroupDiscoveryList;v=v2beta1;g=apidiscovery.k8s.io,application/"
          "json",
          false },
        { "application/vnd.kubernetes.protobuf;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io",
          false },
        { "application/json", false },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CASE("Accept: %s", cases[i].accept);
        struct pl_api_answer answer = ask("GET", "/apis", cases[i].accept);
        CHECK_STR(answer.content_type, cases[i].aggregated ? AGGREGATED : "application/json");
        CHECK(pl__str_contains(answer.body, PL_STR("APIGroupDiscoveryList")) ==
              cases[i].aggregated);
    }
}

/* The resources of a group in the aggregated form, in the plain form, and in the table. */
static void test_agreement(void)
{
    struct pl_tree *api = get("/api", AGGREGATED), *apis = get("/apis", AGGREGATED);
    size_t resources = 0;

    for (int i = 0; i < 2; i++) {
        struct pl_tree *items = pl__tree_get(i ? apis : api, PL_STR("items"));
        for (struct pl_tree *group = items->first; group; group = group->next) {
            struct pl_str name = pl__tree_get_str(group, "metadata.name");
            struct pl_tree *version = pl__tree_item(pl__tree_get(group, PL_STR("versions")), 0);
            struct pl_str v = pl__tree_get_str(version, "version");
            struct pl_tree *listed = pl__tree_get(version, PL_STR("resources"));
            struct pl_str path =
                i ? pl__str_format(&arena, "/apis/%.*s/%.*s", PL_STR_ARG(name), PL_STR_ARG(v))
                  : PL_STR("/api/v1");
            struct pl_tree *plain = pl__tree_get(get(path.ptr, ""), PL_STR("resources"));
            CASE("group \"%.*s\"", PL_STR_ARG(name));
            size_t subresources = 0;
            for (struct pl_tree *r = listed->first; r; r = r->next) {
                CHECK(pl__kind_by_plural(name, v, pl__tree_get_str(r, "resource")) != NULL);
                subresources += pl__tree_count(pl__tree_get(r, PL_STR("subresources")));
                resources++;
            }
            CHECK_INT(pl__tree_count(plain), pl__tree_count(listed) + subresources);
        }
    }
    CASE("all kinds are told");
    CHECK_INT(resources, pl__kind_count);
}

/* kubectl looks for a PATCH of the kind that has fieldValidation, and explain for a schema of the kind. */
static void test_openapi(void)
{
    struct pl_tree *paths = pl__tree_get(get("/openapi/v3", ""), PL_STR("paths"));
    size_t operations = 0, schemas = 0, wanted = 0;

    for (struct pl_tree *p = paths->first; p; p = p->next) {
        struct pl_str url = pl__tree_get_str(p, "serverRelativeURL");
        CASE("OpenAPI of %.*s", PL_STR_ARG(p->key));
        CHECK(pl__str_starts_with(url, PL_STR("/openapi/v3/")));
        struct pl_tree *document = get(
            pl__str_format(&arena, "/openapi/v3/%.*s", PL_STR_ARG(p->key)).ptr, "application/json");
        struct pl_tree *all = pl__tree_get(document, PL_STR("paths"));
        for (struct pl_tree *o = all->first; o; o = o->next) {
            CHECK(pl__str_contains(pl__tree_text(&arena, o), PL_STR("\"fieldValidation\"")));
            CHECK(pl__tree_at(o, "patch.x-kubernetes-group-version-kind.kind") != NULL);
            operations++;
        }
        all = pl__tree_at(document, "components.schemas");
        for (struct pl_tree *s = all->first; s; s = s->next) {
            CHECK(pl__tree_get_str(s, "description").len > 0);
            schemas += pl__tree_get(s, PL_STR("x-kubernetes-group-version-kind")) != NULL;
        }
    }
    CASE("the old form, for Lists");
    CHECK_STR(
        ask("GET", "/openapi/v2", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
            .body,
        "\x0a\x03"
        "2.0\x12\x11\x0a\x08plimsoll\x12\x05" PL_VERSION);
    CASE("all kinds have a schema and their operations");
    for (size_t i = 0; i < pl__kind_count; i++)
        wanted += 1 + pl__kinds[i].status;
    CHECK_INT(operations, wanted);
    CHECK_INT(schemas, pl__kind_count);
}

static void test_reviews(void)
{
    static const struct {
        const char *path, *body;
        int status;
        const char *says;
    } cases[] = {
        { "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
          "{\"kind\":\"SelfSubjectAccessReview\",\"spec\":{\"a\":1}}", 201,
          "\"spec\":{\"a\":1},\"status\":{\"allowed\":true," },
        { "/apis/authentication.k8s.io/v1/selfsubjectreviews", "{\"kind\":\"SelfSubjectReview\"}",
          201, "\"username\":\"system:anonymous\"" },
        { "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
          "{\"kind\":\"SelfSubjectReview\"}", 400, "must be a SelfSubjectAccessReview" },
        { "/apis/authentication.k8s.io/v1/selfsubjectreviews", "{", 400,
          "must be a SelfSubjectReview" },
        { "/apis/authentication.k8s.io/v1/selfsubjectreviews", "[]", 400,
          "must be a SelfSubjectReview" },
        { "/apis/authentication.k8s.io/v1/tokenreviews", "{\"kind\":\"TokenReview\"}", 0, "" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CASE("POST %s %s", cases[i].path, cases[i].body);
        struct pl_api_request request = { .method = PL_STR("POST"),
                                          .path = pl__str(cases[i].path),
                                          .body = pl__str(cases[i].body) };
        struct pl_api_answer answer = { 0 };
        CHECK(pl__discovery_handle(&request, &arena, &answer) == (cases[i].status != 0));
        CHECK_INT(answer.status, cases[i].status);
        CHECK(cases[i].says[0] == '\0' ||
              strstr(pl__str_copy(&arena, answer.body).ptr, cases[i].says) != NULL);
    }
}

int main(void)
{
    pl__arena_init(&arena, NULL, 0);
    test_paths();
    test_aggregated();
    test_agreement();
    test_openapi();
    test_reviews();
    pl__arena_release(&arena);
    return test_end("discovery");
}
