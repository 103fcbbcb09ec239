/* The server as a client sees it: requests in, answers and streams out. */
#include "unit/apiserver/ask.h"

/* What the CRD wants of a Machine, and of a condition. */
#define SPEC(cluster)                                                                  \
    "\"spec\":{\"clusterName\":\"" cluster                                             \
    "\",\"bootstrap\":{\"dataSecretName\":\"b\"},\"infrastructureRef\":{\"apiGroup\":" \
    "\"infrastructure.cluster.x-k8s.io\",\"kind\":\"DevMachine\",\"name\":\"i\"}}"
#define CONDITION(type, status)                                                           \
    "{\"type\":\"" type "\",\"status\":\"" status "\",\"reason\":\"R\",\"message\":\"\"," \
    "\"lastTransitionTime\":\"2025-03-01T10:00:00Z\"}"

static const char machines[] = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines";

/* ask() of a Machine: "MERGE" + "/name". */
static int machine(const char *verb, const char *rest, const char *body)
{
    char what[512];

    snprintf(what, sizeof what, "%s %s%s", verb, machines, rest);
    return ask(what, body);
}

static void make_machine(const char *name, const char *metadata, const char *rest)
{
    char body[2048];

    snprintf(body, sizeof body,
             "{\"apiVersion\":\"cluster.x-k8s.io/v1beta2\",\"kind\":\"Machine\",\"metadata\":"
             "{\"name\":\"%s\"%s}," SPEC("c1") "%s}",
             name, metadata, rest);
    CHECK_INT(machine("POST", "", body), 201);
}

static void step(int times)
{
    for (int i = 0; i < times; i++)
        pl_apiserver_step(server, now_ms);
}

/* --- objects ------------------------------------------------------------------------------------- */

static void test_create(void)
{
    CASE("create sets what the server sets, drops what clients may not")
    make_machine("m1", ",\"uid\":\"x\",\"generation\":9,\"labels\":{\"a\":\"b\"}",
                 ",\"status\":{\"phase\":\"Running\"}");
    CHECK_FIELD("metadata.generation", "1");
    CHECK_FIELD("metadata.creationTimestamp", "2026-01-01T00:00:00Z");
    CHECK_FIELD("status", "<none>");
    CHECK_INT(field("metadata.uid").len, 36);
    CHECK_FIELD("metadata.namespace", "default");

    CASE("create what is there")
    CHECK_INT(machine("POST", "",
                      "{\"apiVersion\":\"cluster.x-k8s.io/v1beta2\",\"kind\":\"Machine\","
                      "\"metadata\":{\"name\":\"m1\"}," SPEC("c1") "}"),
              409);
    CHECK_FIELD("reason", "AlreadyExists");
    CHECK_FIELD("message", "machines.cluster.x-k8s.io \"m1\" already exists");
    CHECK_FIELD("details.kind", "machines");

    CASE("generateName")
    CHECK_INT(machine("POST", "",
                      "{\"apiVersion\":\"cluster.x-k8s.io/v1beta2\",\"kind\":\"Machine\","
                      "\"metadata\":{\"generateName\":\"cp-\"}," SPEC("c1") "}"),
              201);
    CHECK(field("metadata.name").len == 8);

    static const struct {
        const char *body;
        int status;
        const char *message;
    } bad[] = {
        { "{\"kind\":\"Machine\",\"metadata\":{\"name\":\"x\"}", 400, "unrecognized" },
        { "[]", 400, "unrecognized" },
        { "{\"kind\":\"Machine\",\"metadata\":{}}", 422,
          "Machine.cluster.x-k8s.io \\\"\\\" is invalid: metadata.name: Required value: name or "
          "generateName is required" },
        { "{\"kind\":\"Machine\",\"metadata\":{\"name\":\"X\"}}", 422,
          "a lowercase RFC 1123 subdomain must consist of" },
        { "{\"kind\":\"Machine\",\"metadata\":{\"name\":\"x\",\"labels\":{\"a\":\"b c\"}}}", 422,
          "metadata.labels: Invalid value: \\\"b c\\\"" },
        { "{\"kind\":\"Machine\",\"metadata\":{\"name\":\"x\",\"labels\":{\"a\":1}}}", 400,
          "metadata.labels" },
        { "{\"kind\":\"Machine\",\"metadata\":{\"name\":\"x\",\"namespace\":\"other\"}}", 400,
          "does not match the namespace" },
        { "{\"kind\":\"Machine\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"x\"}}", 400,
          "the API version in the data (v1) does not match the expected API version "
          "(cluster.x-k8s.io/v1beta2)" },
        { "{\"kind\":\"Cluster\",\"metadata\":{\"name\":\"x\"}}", 422,
          "kind: Invalid value: \\\"Cluster\\\": must be Machine" },
        { "{\"metadata\":{\"name\":\"x\"}}", 400, "Object 'Kind' is missing" },
        { "{\"kind\":\"Machine\",\"metadata\":{\"name\":\"x\",\"resourceVersion\":\"7\"}}", 500,
          "resourceVersion should not be set on objects to be created" },
        { "{\"kind\":\"Machine\",\"metadata\":{\"name\":\"x\",\"name\":\"y\"}}", 400,
          "duplicate field" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CASE("create refuses %s", bad[i].body)
        CHECK_INT(machine("POST", "", bad[i].body), bad[i].status);
        CHECK_HAS(bad[i].message);
    }

    CASE("create in a namespace that is not there")
    CHECK_INT(ask("POST /apis/cluster.x-k8s.io/v1beta2/namespaces/nope/machines",
                  "{\"kind\":\"Machine\",\"metadata\":{\"name\":\"x\"}}"),
              404);
    CHECK_FIELD("message", "namespaces \"nope\" not found");

    CASE("dry run stores nothing")
    CHECK_INT(machine("POST", "?dryRun=All",
                      "{\"kind\":\"Machine\",\"metadata\":{\"name\":\"dry\"}," SPEC("c1") "}"),
              201);
    CHECK_INT(machine("GET", "/dry", ""), 404);
    CHECK_FIELD("message", "machines.cluster.x-k8s.io \"dry\" not found");

    CASE("paths and methods")
    CHECK_INT(ask("GET /apis/nope/v1/things", ""), 404);
    CHECK_STR(answer.body, "404 page not found\n");
    CHECK_STR(answer.content_type, "text/plain; charset=utf-8");
    CHECK_INT(ask("GET /api/v1/things", ""), 404);
    CHECK_FIELD("reason", "NotFound");
    CHECK_INT(machine("PUT", "", "{}"), 400);
    CHECK_INT(machine("MERGE", "", "{}"), 400);
    CHECK_INT(ask("PUT /api/v1/nodes", "{}"), 405);
    CHECK_INT(machine("POST", "/m1", "{}"), 400);
    CHECK_INT(machine("POST", "/else",
                      "{\"kind\":\"Machine\",\"metadata\":{\"name\":\"m1\"}," SPEC("c1") "}"),
              409);
    CHECK_INT(ask("POST /api/v1/nodes/n", "{}"), 405);
    CHECK_INT(machine("HEAD", "/m1", ""), 200);
    CHECK_INT(ask("HEAD /api/v1/namespaces/default", ""), 405);
    CHECK_INT(machine("GET", "/m1/nope", ""), 404);
    CHECK_INT(ask("POST /api/v1/pods", "{}"), 405);
}

static void test_update(void)
{
    char body[1024];

    restart();
    make_machine("m1", "", "");
    struct pl_str version = field("metadata.resourceVersion");

    CASE("PUT needs a version")
    CHECK_INT(machine("PUT", "/m1",
                      "{\"apiVersion\":\"cluster.x-k8s.io/v1beta2\",\"kind\":\"Machine\","
                      "\"metadata\":{\"name\":\"m1\"}}"),
              422);
    CHECK_HAS("metadata.resourceVersion: Invalid value: 0x0: must be specified for an update");

    CASE("PUT with the version: spec changes, status does not, generation grows")
    snprintf(body, sizeof body,
             "{\"apiVersion\":\"cluster.x-k8s.io/v1beta2\",\"kind\":\"Machine\",\"metadata\":"
             "{\"name\":\"m1\",\"resourceVersion\":\"%.*s\"}," SPEC(
                 "c2") ","
                       "\"status\":{\"phase\":\"Failed\"}}",
             PL_STR_ARG(version));
    CHECK_INT(machine("PUT", "/m1", body), 200);
    CHECK_FIELD("spec.clusterName", "c2");
    CHECK_FIELD("status", "<none>");
    CHECK_FIELD("metadata.generation", "2");

    CASE("PUT with an old version")
    CHECK_INT(machine("PUT", "/m1", body), 409);
    CHECK_FIELD("reason", "Conflict");
    CHECK_FIELD("message",
                "Operation cannot be fulfilled on machines.cluster.x-k8s.io \"m1\": the object has "
                "been modified; please apply your changes to the latest version and try again");

    CASE("status takes only the status")
    CHECK_INT(machine("MERGE", "/m1/status",
                      "{\"metadata\":{\"labels\":{\"x\":\"y\"}},\"spec\":{\"clusterName\":\"c3\"},"
                      "\"status\":{\"phase\":\"Running\"}}"),
              200);
    CHECK_FIELD("status.phase", "Running");
    CHECK_FIELD("spec.clusterName", "c2");
    CHECK_FIELD("metadata.labels", "<none>");
    CHECK_FIELD("metadata.generation", "2");

    CASE("what changes nothing is not written")
    uint64_t before = pl_apiserver_version(server);
    CHECK_INT(machine("MERGE", "/m1", "{\"spec\":{\"clusterName\":\"c2\"}}"), 200);
    CHECK_INT(pl_apiserver_version(server), before);

    CASE("merge patch with a version, and names that do not fit")
    CHECK_INT(machine("MERGE", "/m1", "{\"metadata\":{\"resourceVersion\":\"1\"}}"), 409);
    CHECK_INT(machine("MERGE", "/m1", "{\"metadata\":{\"name\":\"m2\"}}"), 400);
    CHECK_INT(machine("MERGE", "/nope", "{}"), 404);
    CHECK_INT(machine("MERGE", "/m1", "[1]"), 400);
    CHECK_INT(machine("MERGE", "/m1", "{"), 400);
    CHECK_INT(machine("MERGE", "/m1?force=true", "{}"), 422);

    CASE("JSON patch")
    CHECK_INT(
        machine("JSON", "/m1",
                "[{\"op\":\"add\",\"path\":\"/metadata/annotations\",\"value\":{\"a/b\":\"c\"}},"
                "{\"op\":\"test\",\"path\":\"/metadata/annotations/a~1b\",\"value\":\"c\"}]"),
        200);
    CHECK_HAS("\"a/b\":\"c\"");
    CHECK_INT(
        machine("JSON", "/m1", "[{\"op\":\"test\",\"path\":\"/metadata/uid\",\"value\":\"no\"}]"),
        422);
    CHECK_INT(machine("JSON", "/m1", "{}"), 400);

    CASE("what is empty in metadata is not there")
    CHECK_INT(
        machine("MERGE", "/m1",
                "{\"metadata\":{\"finalizers\":[],\"labels\":{},\"annotations\":{\"a/b\":null}}}"),
        200);
    CHECK_FIELD("metadata.finalizers", "<none>");
    CHECK_FIELD("metadata.annotations", "<none>");

    CASE("strategic merge patch is for built-in kinds")
    CHECK_INT(machine("STRATEGIC", "/m1", "{}"), 415);
    CHECK_FIELD("reason", "UnsupportedMediaType");
    CHECK_INT(ask("POST /api/v1/nodes", "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\"},"
                                        "\"status\":{\"conditions\":[{\"type\":\"Ready\","
                                        "\"status\":\"True\"}]}}"),
              201);
    CHECK_INT(ask("STRATEGIC /api/v1/nodes/n1/status",
                  "{\"status\":{\"conditions\":[{\"type\":\"DiskPressure\",\"status\":\"False\"},"
                  "{\"type\":\"Ready\",\"status\":\"False\"}]}}"),
              200);
    CHECK_FIELD("status.conditions",
                "[{\"type\":\"DiskPressure\",\"status\":\"False\",\"lastHeartbeatTime\":null,"
                "\"lastTransitionTime\":null},{\"type\":\"Ready\",\"status\":\"False\","
                "\"lastHeartbeatTime\":null,\"lastTransitionTime\":null}]");

    CASE("a Node takes a PUT without a version, a Lease is made by one")
    CHECK_INT(ask("PUT /api/v1/nodes/n1", "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\"}}"),
              200);
    CHECK_HAS("{\"type\":\"DiskPressure\",\"status\":\"False\"");
    CHECK_INT(ask("PUT /apis/coordination.k8s.io/v1/namespaces/default/leases/l1",
                  "{\"kind\":\"Lease\",\"metadata\":{\"name\":\"l1\"},\"spec\":{}}"),
              201);
    CHECK_INT(machine("PUT", "/none",
                      "{\"apiVersion\":\"cluster.x-k8s.io/v1beta2\",\"kind\":\"Machine\","
                      "\"metadata\":{\"name\":\"none\",\"resourceVersion\":\"1\"}}"),
              404);

    CASE("plain text of Secrets is encoded")
    CHECK_INT(
        ask("POST /api/v1/namespaces/default/secrets",
            "{\"kind\":\"Secret\",\"metadata\":{\"name\":\"s\"},\"stringData\":{\"k\":\"hi\"}}"),
        201);
    CHECK_FIELD("data.k", "aGk=");
    CHECK_FIELD("type", "Opaque");
}

/* --- apply --------------------------------------------------------------------------------------- */

static int apply_conditions(const char *query, const char *conditions)
{
    char rest[256], body[2048];

    snprintf(rest, sizeof rest, "/m1/status?%s", query);
    snprintf(body, sizeof body,
             "{\"apiVersion\":\"cluster.x-k8s.io/v1beta2\",\"kind\":\"Machine\",\"metadata\":"
             "{\"name\":\"m1\"}%s%s%s}",
             conditions[0] ? ",\"status\":{\"conditions\":[" : "", conditions,
             conditions[0] ? "]}" : "");
    return machine("APPLY", rest, body);
}

static void test_apply(void)
{
    restart();
    make_machine("m1", "", "");
    CHECK_INT(machine("MERGE", "/m1/status?fieldManager=capi",
                      "{\"status\":{\"conditions\":[" CONDITION("Ready", "True") "]}}"),
              200);

    CASE("apply merges by key and leaves others alone")
    CHECK_INT(apply_conditions("fieldManager=plimsoll&force=true", CONDITION("Etcd", "True")), 200);
    CHECK_FIELD("status.conditions",
                "[" CONDITION("Ready", "True") "," CONDITION("Etcd", "True") "]");
    CHECK_HAS("{\"manager\":\"plimsoll\",\"operation\":\"Apply\",\"apiVersion\":"
              "\"cluster.x-k8s.io/v1beta2\",\"time\":\"2026-01-01T00:00:00Z\",\"fieldsType\":"
              "\"FieldsV1\",\"fieldsV1\":{\"f:status\":{\"f:conditions\":{\"k:{\\\"type\\\":"
              "\\\"Etcd\\\"}\":{\".\":{},\"f:lastTransitionTime\":{},\"f:message\":{},\"f:reason\":"
              "{},\"f:status\":{},\"f:type\":{}}}}},\"subresource\":\"status\"}");

    CASE("the same again writes nothing, also later")
    uint64_t before = pl_apiserver_version(server);
    now_ms += 5000;
    CHECK_INT(apply_conditions("fieldManager=plimsoll&force=true", CONDITION("Etcd", "True")), 200);
    CHECK_INT(pl_apiserver_version(server), before);

    CASE("what is left out goes")
    CHECK_INT(apply_conditions("fieldManager=plimsoll&force=true", CONDITION("Pods", "False")),
              200);
    CHECK_FIELD("status.conditions",
                "[" CONDITION("Ready", "True") "," CONDITION("Pods", "False") "]");

    CASE("a conflict, and by force")
    CHECK_INT(apply_conditions("fieldManager=plimsoll", CONDITION("Ready", "False")), 409);
    CHECK_FIELD("reason", "Conflict");
    CHECK_HAS("Apply failed with 1 conflict: conflict with \\\"capi\\\" with subresource "
              "\\\"status\\\" using cluster.x-k8s.io/v1beta2: "
              ".status.conditions[type=\\\"Ready\\\"].status");
    CHECK_HAS("\"reason\":\"FieldManagerConflict\"");
    CHECK_INT(apply_conditions("fieldManager=plimsoll&force=true", CONDITION("Ready", "False")),
              200);
    CHECK_FIELD("status.conditions", "[" CONDITION("Ready", "False") "]");

    CASE("an ordinary write takes the fields it changes")
    CHECK_INT(machine("MERGE", "/m1/status?fieldManager=other",
                      "{\"status\":{\"conditions\":[" CONDITION("Ready", "Unknown") "]}}"),
              200);
    CHECK_INT(apply_conditions("fieldManager=plimsoll", CONDITION("Ready", "False")), 409);
    CHECK_HAS("conflict with \\\"other\\\"");

    CASE("owning a value that somebody else has, too, is no conflict")
    CHECK_INT(apply_conditions("fieldManager=plimsoll", CONDITION("Ready", "Unknown")), 200);
    CHECK_INT(apply_conditions("fieldManager=plimsoll", ""), 200);
    CHECK_FIELD("status.conditions", "[" CONDITION("Ready", "Unknown") "]");

    CASE("apply creates, but not a status and not with a uid")
    CHECK_INT(
        machine("APPLY", "/m2?fieldManager=x",
                "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Machine\nmetadata:\n  name: m2\n"
                "  labels: {a: b}\nspec:\n  clusterName: c1\n  bootstrap: {dataSecretName: b}\n"
                "  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: "
                "DevMachine, name: i}\n"),
        201);
    CHECK_FIELD("metadata.labels.a", "b");
    CHECK_INT(machine("APPLY", "/m3/status?fieldManager=x",
                      "{\"apiVersion\":\"cluster.x-k8s.io/v1beta2\",\"kind\":\"Machine\"}"),
              404);
    CHECK_INT(machine("APPLY", "/m3?fieldManager=x",
                      "{\"apiVersion\":\"cluster.x-k8s.io/v1beta2\",\"kind\":\"Machine\","
                      "\"metadata\":{\"name\":\"m4\"}}"),
              400);
    CHECK_INT(machine("APPLY", "/m3?fieldManager=x",
                      "{\"apiVersion\":\"cluster.x-k8s.io/v1beta2\",\"kind\":\"Machine\","
                      "\"metadata\":{\"name\":\"m3\",\"uid\":\"u\"}}"),
              409);
    CHECK_INT(machine("APPLY", "/m2?fieldManager=x",
                      "{\"apiVersion\":\"cluster.x-k8s.io/v1beta2\",\"kind\":\"Machine\","
                      "\"metadata\":{\"name\":\"m2\",\"uid\":\"u\"}}"),
              422);

    CASE("apply gives up labels and what is empty then")
    CHECK_INT(machine("APPLY", "/m2?fieldManager=x",
                      "{\"apiVersion\":\"cluster.x-k8s.io/v1beta2\",\"kind\":\"Machine\","
                      "\"metadata\":{\"name\":\"m2\"}," SPEC("c1") "}"),
              200);
    CHECK_FIELD("metadata.labels", "<none>");
    CHECK_FIELD("spec.clusterName", "c1");

    CASE("apply refuses")
    CHECK_INT(machine("APPLY", "/m1?force=true",
                      "{\"apiVersion\":\"cluster.x-k8s.io/v1beta2\",\"kind\":\"Machine\"}"),
              422);
    CHECK_HAS("fieldManager: Required value: is required for apply patch");
    CHECK_INT(apply_conditions("fieldManager=x", CONDITION("A", "1") "," CONDITION("A", "2")), 500);
    CHECK_HAS("duplicate entries for key");
    CHECK_INT(apply_conditions("fieldManager=x", "{\"status\":\"1\"}"), 500);
    CHECK_HAS("omits key field");
    CHECK_INT(
        machine("APPLY", "/m1?fieldManager=x", "{\"apiVersion\":\"v1\",\"kind\":\"Machine\"}"),
        400);

    CASE("owners are forgotten on request")
    CHECK_INT(machine("MERGE", "/m1", "{\"metadata\":{\"managedFields\":[{}]}}"), 200);
    CHECK_FIELD("metadata.managedFields", "<none>");
}

/* --- deletion ------------------------------------------------------------------------------------ */

static void test_delete(void)
{
    char body[512];

    restart();
    CASE("delete without finalizers")
    make_machine("m1", "", "");
    CHECK_INT(machine("DELETE", "/m1", "{\"preconditions\":{\"uid\":\"no\"}}"), 409);
    CHECK_HAS(
        "Operation cannot be fulfilled on Machine.cluster.x-k8s.io \\\"m1\\\": the UID in the "
        "precondition (no) does not match the UID in record");
    CHECK_INT(machine("DELETE", "/m1?resourceVersion=1", ""), 409);
    CHECK_INT(machine("DELETE", "/m1", "{\"propagationPolicy\":\"Nope\"}"), 422);
    CHECK_INT(machine("DELETE", "/m1?dryRun=All", ""), 200);
    CHECK_INT(machine("DELETE", "/m1", ""), 200);
    CHECK_FIELD("status", "Success");
    CHECK_FIELD("details.name", "m1");
    CHECK_INT(machine("DELETE", "/m1", ""), 404);

    CASE("delete with finalizers")
    make_machine("m2", ",\"finalizers\":[\"a.b/c\"]", "");
    CHECK_INT(machine("DELETE", "/m2", ""), 200);
    CHECK_FIELD("metadata.deletionTimestamp", "2026-01-01T00:00:05Z");
    CHECK_FIELD("metadata.deletionGracePeriodSeconds", "0");
    CHECK_FIELD("metadata.generation", "2");
    uint64_t before = pl_apiserver_version(server);
    CHECK_INT(machine("DELETE", "/m2", ""), 200);
    CHECK_INT(pl_apiserver_version(server), before);
    CHECK_INT(machine("MERGE", "/m2", "{\"metadata\":{\"finalizers\":[\"a.b/c\",\"d.e/f\"]}}"),
              422);
    CHECK_HAS("no new finalizers can be added if the object is being deleted");
    CHECK_INT(machine("MERGE", "/m2", "{\"metadata\":{\"deletionTimestamp\":null}}"), 200);
    CHECK_FIELD("metadata.deletionTimestamp", "2026-01-01T00:00:05Z");
    CHECK_INT(machine("MERGE", "/m2", "{\"metadata\":{\"finalizers\":null}}"), 200);
    CHECK_INT(machine("GET", "/m2", ""), 404);

    CASE("dependents go with their last owner")
    make_machine("owner", "", "");
    struct pl_str uid = field("metadata.uid");
    snprintf(body, sizeof body,
             ",\"ownerReferences\":[{\"apiVersion\":\"cluster.x-k8s.io/v1beta2\",\"kind\":"
             "\"Machine\",\"name\":\"owner\",\"uid\":\"%.*s\",\"blockOwnerDeletion\":true}]",
             PL_STR_ARG(uid));
    make_machine("d1", body, "");
    make_machine("d2", body, "");
    step(3);
    CHECK_INT(machine("GET", "/d1", ""), 200);
    CHECK_INT(machine("DELETE", "/owner", ""), 200);
    CHECK_INT(machine("GET", "/d1", ""), 200);
    CHECK(pl_apiserver_wake_at_ms(server) <= now_ms);
    step(3);
    CHECK_INT(machine("GET", "/d1", ""), 404);
    CHECK_INT(machine("GET", "/d2", ""), 404);

    CASE("what names an owner that never was goes, too")
    make_machine("d3", body, "");
    step(3);
    CHECK_INT(machine("GET", "/d3", ""), 404);

    CASE("foreground: the owner waits")
    make_machine("owner", "", "");
    uid = field("metadata.uid");
    snprintf(body, sizeof body,
             ",\"finalizers\":[\"a.b/c\"],\"ownerReferences\":[{\"apiVersion\":"
             "\"cluster.x-k8s.io/v1beta2\",\"kind\":\"Machine\",\"name\":\"owner\",\"uid\":"
             "\"%.*s\",\"blockOwnerDeletion\":true}]",
             PL_STR_ARG(uid));
    make_machine("d1", body, "");
    CHECK_INT(machine("DELETE", "/owner", "{\"propagationPolicy\":\"Foreground\"}"), 200);
    CHECK_FIELD("metadata.finalizers", "[\"foregroundDeletion\"]");
    step(4);
    CHECK_INT(machine("GET", "/owner", ""), 200);
    CHECK_INT(machine("GET", "/d1", ""), 200);
    CHECK_FIELD("metadata.deletionTimestamp", "2026-01-01T00:00:05Z");
    CHECK_INT(machine("MERGE", "/d1", "{\"metadata\":{\"finalizers\":[]}}"), 200);
    step(4);
    CHECK_INT(machine("GET", "/owner", ""), 404);

    CASE("orphan: dependents stay, without the owner")
    make_machine("owner", "", "");
    uid = field("metadata.uid");
    snprintf(body, sizeof body,
             ",\"ownerReferences\":[{\"apiVersion\":\"cluster.x-k8s.io/v1beta2\",\"kind\":"
             "\"Machine\",\"name\":\"owner\",\"uid\":\"%.*s\"}]",
             PL_STR_ARG(uid));
    make_machine("d4", body, "");
    CHECK_INT(machine("DELETE", "/owner?propagationPolicy=Orphan", ""), 200);
    step(4);
    CHECK_INT(machine("GET", "/owner", ""), 404);
    CHECK_INT(machine("GET", "/d4", ""), 200);
    CHECK_FIELD("metadata.ownerReferences", "<none>");

    CASE("namespaces end with what is in them")
    CHECK_INT(
        ask("POST /api/v1/namespaces", "{\"kind\":\"Namespace\",\"metadata\":{\"name\":\"n\"}}"),
        201);
    CHECK_FIELD("status.phase", "Active");
    CHECK_INT(
        ask("POST /api/v1/namespaces/n/configmaps",
            "{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c\",\"finalizers\":[\"a.b/c\"]}}"),
        201);
    CHECK_INT(ask("DELETE /api/v1/namespaces/n", ""), 200);
    CHECK_FIELD("status.phase", "Terminating");
    step(3);
    CHECK_INT(ask("GET /api/v1/namespaces/n", ""), 200);
    CHECK_INT(ask("POST /api/v1/namespaces/n/configmaps",
                  "{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c2\"}}"),
              403);
    CHECK_HAS("because it is being terminated");
    CHECK_INT(
        ask("MERGE /api/v1/namespaces/n/configmaps/c", "{\"metadata\":{\"finalizers\":null}}"),
        200);
    step(3);
    CHECK_INT(ask("GET /api/v1/namespaces/n", ""), 404);
    CHECK_INT(ask("DELETE /api/v1/namespaces/default", ""), 403);

    CASE("deletecollection takes what is selected")
    make_machine("a1", ",\"labels\":{\"x\":\"1\"}", "");
    make_machine("a2", ",\"labels\":{\"x\":\"2\"}", "");
    CHECK_INT(machine("DELETE", "?labelSelector=x%3D1", ""), 200);
    CHECK_INT(machine("GET", "/a1", ""), 404);
    CHECK_INT(machine("GET", "/a2", ""), 200);
}

/* --- lists --------------------------------------------------------------------------------------- */

static int items(void)
{
    return (int)pl__tree_count(pl__tree_at(pl__tree_read(&arena, answer.body, NULL), "items"));
}

static void test_list(void)
{
    char rest[1024];

    restart();
    for (int i = 0; i < 5; i++) {
        char name[16], labels[64];
        snprintf(name, sizeof name, "m%d", i);
        snprintf(labels, sizeof labels, ",\"labels\":{\"i\":\"%d\",\"cp\":\"\"}", i);
        make_machine(name, labels, "");
    }
    static const struct {
        const char *query;
        int status, items;
    } cases[] = {
        { "", 200, 5 },
        { "?labelSelector=i%3D3", 200, 1 },
        { "?labelSelector=i!%3D3", 200, 4 },
        { "?labelSelector=i%20in%20(1,2)", 200, 2 },
        { "?labelSelector=i+notin+(1,2),cp", 200, 3 },
        { "?labelSelector=cp%3D", 200, 5 },
        { "?labelSelector=!cp", 200, 0 },
        { "?labelSelector=z!%3D1", 200, 5 },
        { "?labelSelector=i%20within%20(1)", 400, 0 },
        { "?labelSelector=i%20in%20(1", 400, 0 },
        { "?labelSelector=%3D1", 400, 0 },
        { "?fieldSelector=metadata.name%3Dm2", 200, 1 },
        { "?fieldSelector=metadata.name!%3Dm2,metadata.namespace%3Ddefault", 200, 4 },
        { "?fieldSelector=spec.clusterName%3Dc1", 400, 0 },
        { "?fieldSelector=metadata.name", 400, 0 },
        { "?limit=2&resourceVersion=0", 200, 5 },
        { "?limit=x", 400, 0 },
        { "?resourceVersion=abc", 400, 0 },
        { "?resourceVersion=999999", 504, 0 },
        { "?resourceVersionMatch=Exact", 422, 0 },
        { "?resourceVersionMatch=Exact&resourceVersion=0", 422, 0 },
        { "?sendInitialEvents=true", 422, 0 },
        { "?continue=%3D%3D", 400, 0 },
        { "?labelSelector=%zz", 400, 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CASE("list %s", cases[i].query)
        CHECK_INT(machine("GET", cases[i].query, ""), cases[i].status);
        if (cases[i].status == 200)
            CHECK_INT(items(), cases[i].items);
    }

    CASE("of Namespaces only what a real server knows as fields")
    CHECK_INT(ask("GET /api/v1/namespaces?fieldSelector=metadata.name%3Ddefault", ""), 200);
    CHECK_INT(items(), 1);
    CHECK_INT(ask("GET /api/v1/namespaces?fieldSelector=name%3Ddefault", ""), 400);
    CHECK_FIELD("message", "field label not supported: name");

    CASE("chunks show one version, whatever happens between them")
    CHECK_INT(machine("GET", "?limit=2", ""), 200);
    CHECK_INT(items(), 2);
    CHECK_FIELD("metadata.remainingItemCount", "3");
    struct pl_str version = field("metadata.resourceVersion"), token = field("metadata.continue");
    CHECK_INT(machine("DELETE", "/m3", ""), 200);
    make_machine("m9", "", "");
    CHECK_INT(machine("MERGE", "/m4", "{\"spec\":{\"clusterName\":\"new\"}}"), 200);
    snprintf(rest, sizeof rest, "?limit=9&continue=%.*s", PL_STR_ARG(token));
    CHECK_INT(machine("GET", rest, ""), 200);
    CHECK_INT(items(), 3);
    CHECK_STR(field("metadata.resourceVersion"), version.ptr);
    CHECK(!pl__str_contains(answer.body, PL_STR("\"new\"")));
    CHECK_HAS("\"m3\"");

    CASE("exactly that version, too")
    snprintf(rest, sizeof rest, "?resourceVersionMatch=Exact&resourceVersion=%.*s",
             PL_STR_ARG(version));
    CHECK_INT(machine("GET", rest, ""), 200);
    CHECK_INT(items(), 5);

    CASE("410 behind compaction, with a way to go on")
    pl_apiserver_compact(server);
    CHECK_INT(machine("GET", rest, ""), 410);
    snprintf(rest, sizeof rest, "?limit=9&continue=%.*s", PL_STR_ARG(token));
    CHECK_INT(machine("GET", rest, ""), 410);
    CHECK_FIELD("reason", "Expired");
    snprintf(rest, sizeof rest, "?limit=9&continue=%.*s", PL_STR_ARG(field("metadata.continue")));
    CHECK_INT(machine("GET", rest, ""), 200);
    CHECK_INT(items(), 3);
    CHECK_INT(machine("GET", "", ""), 200);
    CHECK_INT(items(), 5);

    CASE("items of built-in lists have no kind")
    CHECK_INT(ask("GET /api/v1/namespaces", ""), 200);
    CHECK_INT(items(), 4);
    CHECK_FIELD("kind", "NamespaceList");
    CHECK(!pl__str_contains(answer.body, PL_STR("\"kind\":\"Namespace\"")));

    CASE("clusters do not see each other")
    pl_apiserver_cluster_add(server, PL_STR("workload"), now_ms);
    struct pl_api_call call = { .cluster = PL_STR("workload"),
                                .verb = PL_API_LIST,
                                .group_version = "cluster.x-k8s.io/v1beta2",
                                .plural = "machines" };
    CHECK_INT(pl_apiserver_call(server, &call, now_ms, &arena, &answer), 0);
    CHECK_INT(items(), 0);
    call.cluster = PL_STR("nope");
    CHECK_INT(pl_apiserver_call(server, &call, now_ms, &arena, &answer), -1);
    CHECK_INT(answer.status, 404);
    pl_apiserver_cluster_remove(server, PL_STR("workload"));
    CHECK(!pl_apiserver_has_cluster(server, PL_STR("workload")));
}

/* --- watches ------------------------------------------------------------------------------------- */

static int woken;

static void count_wakes(void *context)
{
    (void)context;
    woken++;
}

static struct pl_api_watch *watch(const char *query)
{
    char rest[512];

    snprintf(rest, sizeof rest, "?watch=true&%s", query);
    CHECK_INT(machine("GET", rest, ""), 200);
    if (!answer.watch) {
        printf("no watch: %.*s\n", PL_STR_ARG(answer.body));
        exit(1);
    }
    pl_api_watch_own(answer.watch, (struct pl_api_watch_owner){ count_wakes, NULL });
    return answer.watch;
}

/* "ADDED m1" of the next event; "WAIT", "END". */
static const char *next(struct pl_api_watch *w)
{
    static char text[256];
    struct pl_str line;
    enum pl_api_watch_state state = pl_api_watch_next(w, now_ms, &arena, &line);

    if (state == PL_WATCH_WAIT)
        return "WAIT";
    if (state == PL_WATCH_END)
        return "END";
    struct pl_tree *event = pl__tree_read(&arena, line, NULL);
    struct pl_str name = pl__tree_get_str(event, "object.metadata.name");
    const struct pl_tree *end = pl__tree_at(event, "object.metadata.annotations");
    snprintf(text, sizeof text, "%.*s%s%.*s%s", PL_STR_ARG(pl__tree_get_str(event, "type")),
             name.len ? " " : "", PL_STR_ARG(name),
             end && pl__str_contains(line, PL_STR("\"k8s.io/initial-events-end\":\"true\""))
                 ? " end"
                 : "");
    return text;
}

#define CHECK_NEXT(w, want) CHECK_STR(pl__str(next(w)), want)

static void test_watch(void)
{
    char query[128];

    restart();
    make_machine("m1", ",\"labels\":{\"x\":\"1\"}", "");
    uint64_t start = pl_apiserver_version(server);

    CASE("what is there, then what happens")
    struct pl_api_watch *w = watch("");
    CHECK_NEXT(w, "ADDED m1");
    CHECK_NEXT(w, "WAIT");
    woken = 0;
    make_machine("m2", "", "");
    CHECK_INT(woken, 1);
    CHECK_NEXT(w, "ADDED m2");
    CHECK_NEXT(w, "WAIT");
    CHECK_INT(machine("MERGE", "/m1", "{\"metadata\":{\"labels\":{\"x\":\"2\"}}}"), 200);
    CHECK_INT(machine("DELETE", "/m2", ""), 200);
    CHECK_NEXT(w, "MODIFIED m1");
    CHECK_NEXT(w, "DELETED m2");
    CHECK_NEXT(w, "WAIT");
    woken = 0;
    CHECK_INT(ask("POST /api/v1/nodes", "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\"}}"), 201);
    CHECK_INT(woken, 0);
    CHECK_NEXT(w, "WAIT");

    CASE("from a version, with a selector")
    snprintf(query, sizeof query, "resourceVersion=%llu&labelSelector=x%%3D1",
             (unsigned long long)start);
    struct pl_api_watch *selected = watch(query);
    CHECK_NEXT(selected, "DELETED m1");
    CHECK_NEXT(selected, "WAIT");
    CHECK_INT(machine("MERGE", "/m1", "{\"metadata\":{\"labels\":{\"x\":\"1\"}}}"), 200);
    CHECK_NEXT(selected, "ADDED m1");
    CHECK_INT(machine("MERGE", "/m1", "{\"metadata\":{\"labels\":{\"y\":\"1\"}}}"), 200);
    CHECK_NEXT(selected, "MODIFIED m1");
    CHECK_NEXT(selected, "WAIT");
    pl_api_watch_close(selected);

    CASE("sendInitialEvents ends with a bookmark")
    struct pl_api_watch *list = watch("allowWatchBookmarks=true&sendInitialEvents=true&"
                                      "resourceVersionMatch=NotOlderThan");
    CHECK_NEXT(list, "ADDED m1");
    CHECK_NEXT(list, "BOOKMARK end");
    CHECK_NEXT(list, "WAIT");
    CHECK_INT(machine("GET", "?watch=true&sendInitialEvents=true", ""), 422);

    CASE("bookmarks when it is quiet, and the end")
    struct pl_api_watch *timed = watch("allowWatchBookmarks=true&timeoutSeconds=100");
    CHECK_NEXT(timed, "ADDED m1");
    CHECK_NEXT(timed, "BOOKMARK end");
    CHECK_NEXT(timed, "WAIT");
    CHECK(pl_apiserver_wake_at_ms(server) <= now_ms + 60000);
    now_ms += 60000;
    woken = 0;
    step(1);
    CHECK(woken > 0);
    CHECK_NEXT(timed, "BOOKMARK");
    CHECK_NEXT(timed, "WAIT");
    now_ms += 40000;
    CHECK_NEXT(timed, "BOOKMARK");
    CHECK_NEXT(timed, "END");
    pl_api_watch_close(timed);
    pl_api_watch_close(list);

    CASE("compaction: who is up to date goes on, who is behind gets 410")
    for (int i = 0; i < 3; i++) {
        snprintf(query, sizeof query, "{\"spec\":{\"clusterName\":\"v%d\"}}", i);
        CHECK_INT(machine("MERGE", "/m1", query), 200);
    }
    struct pl_api_watch *fresh = watch("resourceVersion=0");
    CHECK_NEXT(fresh, "ADDED m1");
    CHECK_NEXT(fresh, "WAIT");
    pl_apiserver_compact(server);
    CHECK_NEXT(fresh, "WAIT");
    CHECK_INT(machine("MERGE", "/m1", "{\"spec\":{\"clusterName\":\"w\"}}"), 200);
    CHECK_NEXT(fresh, "MODIFIED m1");
    pl_api_watch_close(fresh);
    struct pl_str line;
    CHECK_INT(pl_api_watch_next(w, now_ms, &arena, &line), PL_WATCH_MORE);
    CHECK(pl__str_contains(line, PL_STR("\"type\":\"ERROR\"")));
    CHECK(pl__str_contains(line, PL_STR("\"code\":410")));
    CHECK_NEXT(w, "END");
    pl_api_watch_close(w);

    CASE("bytes in any portions")
    w = watch("");
    char whole[8192], piece[7];
    size_t len = 0, count;
    while (pl_api_watch_read(w, now_ms, piece, sizeof piece, &count) == PL_WATCH_MORE &&
           len + count < sizeof whole) {
        memcpy(whole + len, piece, count);
        len += count;
    }
    CHECK(len > 100 && whole[len - 1] == '\n');
    CHECK(pl__tree_read(&arena, (struct pl_str){ whole, len - 1 }, NULL) != NULL);

    CASE("a watch ends with its cluster, and with the server")
    pl_apiserver_cluster_add(server, PL_STR("other"), now_ms);
    struct pl_api_call call = { .cluster = PL_STR("other"),
                                .verb = PL_API_WATCH,
                                .group_version = "v1",
                                .plural = "namespaces" };
    CHECK_INT(pl_apiserver_call(server, &call, now_ms, &arena, &answer), 0);
    struct pl_api_watch *other = answer.watch;
    CHECK_NEXT(other, "ADDED default");
    pl_apiserver_cluster_remove(server, PL_STR("other"));
    CHECK_NEXT(other, "ADDED kube-node-lease");
    CHECK_NEXT(other, "ADDED kube-public");
    CHECK_NEXT(other, "ADDED kube-system");
    CHECK_NEXT(other, "END");
    pl_api_watch_close(other);
    pl_api_watch_close(w);
}

/* --- the rest ------------------------------------------------------------------------------------ */

static void test_events(void)
{
    restart();
    CASE("one Event, two faces")
    CHECK_INT(ask("POST /api/v1/namespaces/default/events",
                  "{\"kind\":\"Event\",\"metadata\":{\"name\":\"e1\"},\"involvedObject\":"
                  "{\"kind\":\"Machine\",\"name\":\"m1\"},\"message\":\"hi\",\"reason\":\"R\"}"),
              201);
    CHECK_INT(ask("GET /apis/events.k8s.io/v1/namespaces/default/events/e1", ""), 200);
    CHECK_FIELD("apiVersion", "events.k8s.io/v1");
    CHECK_FIELD("note", "hi");
    CHECK_FIELD("regarding.name", "m1");
    CHECK_INT(ask("MERGE /apis/events.k8s.io/v1/namespaces/default/events/e1", "{\"note\":\"ho\"}"),
              200);
    CHECK_FIELD("note", "ho");
    CHECK_INT(
        ask("GET /api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3Dm1", ""),
        200);
    CHECK_INT(items(), 1);
    CHECK_HAS("\"message\":\"ho\"");
    CHECK_INT(
        ask("GET /api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3Dm2", ""),
        200);
    CHECK_INT(items(), 0);

    CASE("old Events go")
    step(1);
    CHECK_INT(ask("GET /api/v1/namespaces/default/events/e1", ""), 200);
    now_ms += 3700 * 1000;
    step(1);
    CHECK_INT(ask("GET /api/v1/namespaces/default/events/e1", ""), 404);
}

static void test_scale(void)
{
    restart();
    CASE("scale")
    CHECK_INT(ask("POST /apis/controlplane.cluster.x-k8s.io/v1beta2/namespaces/default/"
                  "kubeadmcontrolplanes",
                  "{\"kind\":\"KubeadmControlPlane\",\"metadata\":{\"name\":\"k\"},\"spec\":"
                  "{\"replicas\":3,\"version\":\"v1.34.0\",\"machineTemplate\":{\"spec\":{"
                  "\"infrastructureRef\":{\"apiGroup\":\"infrastructure.cluster.x-k8s.io\","
                  "\"kind\":\"DevMachineTemplate\",\"name\":\"t\"}}},\"kubeadmConfigSpec\":"
                  "{\"format\":\"cloud-config\"}}}"),
              201);
    CHECK_INT(ask("MERGE /apis/controlplane.cluster.x-k8s.io/v1beta2/namespaces/default/"
                  "kubeadmcontrolplanes/k/scale",
                  "{\"spec\":{\"replicas\":5}}"),
              200);
    CHECK_FIELD("kind", "Scale");
    CHECK_FIELD("spec.replicas", "5");
}

/* Compaction on its own keeps what is promised and no more than half as much again. */
static void test_history(void)
{
    pl_apiserver_close(server);
    start(&(struct pl_apiserver_options){ .seed = 1, .history_max = 50 });
    CASE("history is bounded")
    make_machine("m1", "", "");
    uint64_t first = pl_apiserver_version(server);
    for (int i = 0; i < 200; i++) {
        char body[64];
        snprintf(body, sizeof body, "{\"spec\":{\"clusterName\":\"c%d\"}}", i);
        CHECK_INT(machine("MERGE", "/m1", body), 200);
        step(1);
    }
    char rest[64];
    snprintf(rest, sizeof rest, "?resourceVersionMatch=Exact&resourceVersion=%llu",
             (unsigned long long)(pl_apiserver_version(server) - 50));
    CHECK_INT(machine("GET", rest, ""), 200);
    snprintf(rest, sizeof rest, "?resourceVersionMatch=Exact&resourceVersion=%llu",
             (unsigned long long)first + 50);
    CHECK_INT(machine("GET", rest, ""), 410);
}

int main(void)
{
    pl__arena_init(&arena, NULL, 0);
    start(&(struct pl_apiserver_options){ .seed = 7 });
    test_create();
    test_update();
    test_apply();
    test_delete();
    test_list();
    test_watch();
    test_events();
    test_scale();
    test_history();
    pl_apiserver_close(server);
    pl__arena_release(&arena);
    return test_end("apiserver");
}
