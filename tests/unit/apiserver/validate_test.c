/* Custom kinds by their schema: what is refused and how it is said (as kube-apiserver 1.34 says it), what is
 * dropped, what passes. */
#include "apiserver/validate.h"

#include <stdlib.h>

#include "test.h"

static struct pl_arena arena;
static struct pl_apiserver *server;
static struct pl_api_answer answer;
static const int64_t now_ms = 1767225600000;

static const char good[] =
    "{\"apiVersion\":\"cluster.x-k8s.io/"
    "v1beta2\",\"kind\":\"Machine\",\"metadata\":{\"name\":\"m\"},"
    "\"spec\":{\"clusterName\":\"c\",\"bootstrap\":{\"dataSecretName\":\"b\"},"
    "\"infrastructureRef\":"
    "{\"apiGroup\":\"infrastructure.cluster.x-k8s.io\",\"kind\":\"DevMachine\",\"name\":\"i\"}}}";

static int call(enum pl_api_verb verb, const char *subresource, const char *body)
{
    struct pl_api_call c = { .cluster = PL_STR("management"),
                             .verb = verb,
                             .group_version = "cluster.x-k8s.io/v1beta2",
                             .plural = "machines",
                             .ns = PL_STR("default"),
                             .name = PL_STR("m"),
                             .subresource = subresource,
                             .body = pl__str(body) };

    pl_apiserver_call(server, &c, now_ms, &arena, &answer);
    return answer.status;
}

static const struct pl_tree *at(const char *path)
{
    return pl__tree_at(pl__tree_read(&arena, answer.body, NULL), path);
}

static void test_refused(void)
{
    static const struct {
        const char *subresource, *patch, *reason, *message;
    } cases[] = {
        { NULL, "{\"spec\":null}", "FieldValueRequired", "spec: Required value" },
        { NULL, "{\"spec\":\"text\"}", "FieldValueTypeInvalid",
          "spec: Invalid value: \"string\": spec in body must be of type object: \"string\"" },
        { NULL, "{\"spec\":{\"clusterName\":\"\"}}", "FieldValueInvalid",
          "spec.clusterName: Invalid value: \"\": spec.clusterName in body should be at least 1 "
          "chars "
          "long" },
        { NULL, "{\"spec\":{\"minReadySeconds\":-1}}", "FieldValueInvalid",
          "spec.minReadySeconds: Invalid value: -1: spec.minReadySeconds in body should be greater "
          "than or equal to 0" },
        { NULL, "{\"spec\":{\"minReadySeconds\":1.5}}", "FieldValueTypeInvalid",
          "must be of type integer: \"number\"" },
        { NULL, "{\"spec\":{\"deletion\":{}}}", "FieldValueInvalid",
          "spec.deletion: Invalid value: 0: spec.deletion in body should have at least 1 "
          "properties" },
        { NULL, "{\"spec\":{\"readinessGates\":[]}}", "FieldValueInvalid",
          "spec.readinessGates in body should have at least 1 items" },
        { NULL,
          "{\"spec\":{\"readinessGates\":[{\"conditionType\":\"A\"},{\"conditionType\":\"A\"}]}}",
          "FieldValueDuplicate",
          "spec.readinessGates[1]: Duplicate value: {\"conditionType\":\"A\"}" },
        { "status", "{\"status\":{\"phase\":\"Odd\"}}", "FieldValueNotSupported",
          "status.phase: Unsupported value: \"Odd\": supported values: \"Pending\", "
          "\"Provisioning\"" },
        { "status",
          "{\"status\":{\"conditions\":[{\"type\":\"A\",\"status\":\"True\",\"reason\":\"R\","
          "\"lastTransitionTime\":\"2025-03-01T10:00:00Z\"}]}}",
          "FieldValueRequired", "status.conditions[0].message: Required value" },
        { "status",
          "{\"status\":{\"conditions\":[{\"type\":\"A\",\"status\":\"True\",\"reason\":\"not one\","
          "\"message\":\"\",\"lastTransitionTime\":\"2025-03-01T10:00:00Z\"}]}}",
          "FieldValueInvalid",
          "status.conditions[0].reason in body should match "
          "'^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$'" },
        { "status",
          "{\"status\":{\"conditions\":[{\"type\":\"A\",\"status\":\"True\",\"reason\":\"R\","
          "\"message\":\"\",\"lastTransitionTime\":\"yesterday\"}]}}",
          "FieldValueInvalid", "must be of type date-time" },
    };

    CASE("what the schema refuses, and in which words")
    CHECK_INT(call(PL_API_CREATE, NULL, good), 201);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_INT(call(PL_API_MERGE, cases[i].subresource, cases[i].patch), 422);
        const struct pl_tree *first = pl__tree_item(at("details.causes"), 0);
        CHECK_STR(pl__tree_get_str(first, "reason"), cases[i].reason);
        struct pl_str message = at("message") ? at("message")->text : PL_STR("");
        if (!pl__str_contains(message, pl__str(cases[i].message)))
            test_fail(__FILE__, __LINE__, "no '%s' in '%.*s'", cases[i].message,
                      PL_STR_ARG(message));
    }
    CASE("nothing of that was stored")
    CHECK_INT(call(PL_API_GET, NULL, ""), 200);
    CHECK_INT((int)pl__tree_get_int(at("metadata"), "generation", 0), 1);
    CHECK(!at("status"));
}

static void test_pruned(void)
{
    CASE("what the schema does not know is dropped, unless it says to keep it")
    CHECK_INT(call(PL_API_MERGE, NULL,
                   "{\"outside\":1,\"spec\":{\"kept\":{\"a\":[1]},\"bootstrap\":{\"lost\":1}}}"),
              200);
    CHECK_STR(answer.warning, "unknown field \"spec.bootstrap.lost\", unknown field \"outside\"");
    CHECK(!at("outside"));
    CHECK(at("spec.kept.a"));
    CHECK(at("spec.bootstrap.dataSecretName"));
    CHECK(!at("spec.bootstrap.lost"));
    CASE("a patch of what is dropped is no new version")
    struct pl_str before = at("metadata.resourceVersion")->text;
    CHECK_INT(call(PL_API_MERGE, NULL, "{\"outside\":2}"), 200);
    CHECK(pl__str_equal(before, at("metadata.resourceVersion")->text));
}

static void test_strict(void)
{
    CASE("fieldValidation=Strict refuses what would be dropped")
    struct pl_api_call c = { .cluster = PL_STR("management"),
                             .verb = PL_API_MERGE,
                             .group_version = "cluster.x-k8s.io/v1beta2",
                             .plural = "machines",
                             .ns = PL_STR("default"),
                             .name = PL_STR("m"),
                             .query = PL_STR("fieldValidation=Strict"),
                             .body = PL_STR("{\"spec\":{\"bootstrap\":{\"lost\":1}}}") };
    CHECK(pl_apiserver_call(server, &c, now_ms, &arena, &answer) < 0);
    CHECK_INT(answer.status, 422);
    c.body = PL_STR("{\"spec\":{\"kept\":2}}");
    CHECK_INT(pl_apiserver_call(server, &c, now_ms, &arena, &answer), 0);
}

int main(void)
{
    struct pl_error *err = NULL;

    pl__arena_init(&arena, NULL, 0);
    server = pl_apiserver_open(&(struct pl_apiserver_options){ .seed = 7 }, &arena, &err);
    if (!server)
        return 1;
    pl_apiserver_cluster_add(server, PL_STR("management"), now_ms);
    test_refused();
    test_pruned();
    test_strict();
    pl_apiserver_close(server);
    pl__arena_release(&arena);
    return test_end("apiserver/validate");
}
