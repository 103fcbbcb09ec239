/* What a real server makes of an object before it is stored, who owns which field of it, and which fault of a
 * request is told: all of it was seen on one (tests/e2e/differential.py). */
#include "unit/apiserver/ask.h"

#define MAPS "/api/v1/namespaces/default/configmaps"
#define SECRETS "/api/v1/namespaces/default/secrets"
#define EVENTS "/api/v1/namespaces/default/events"
#define DEVS "/apis/infrastructure.cluster.x-k8s.io/v1beta2/namespaces/default/devmachines"
#define PLANES "/apis/controlplane.cluster.x-k8s.io/v1beta2/namespaces/default/kubeadmcontrolplanes"
#define DEV "\"apiVersion\":\"infrastructure.cluster.x-k8s.io/v1beta2\",\"kind\":\"DevMachine\""
#define MAP "\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\""

/* Who owns what: "manager Operation subresource fields", a line each, in the order of the object. */
static struct pl_str owners(void)
{
    const struct pl_tree *list =
        pl__tree_at(pl__tree_read(&arena, answer.body, NULL), "metadata.managedFields");
    struct pl_buf b;

    pl__buf_init(&b, &arena, 65536);
    for (const struct pl_tree *m = list ? list->first : NULL; m; m = m->next) {
        struct pl_str sub = pl__tree_get_str(m, "subresource");
        pl__buf_printf(&b, "%s%.*s %.*s%s%.*s ", m == list->first ? "" : "\n",
                       PL_STR_ARG(pl__tree_get_str(m, "manager")),
                       PL_STR_ARG(pl__tree_get_str(m, "operation")), sub.len ? " " : "",
                       PL_STR_ARG(sub));
        pl__tree_write(&b, pl__tree_at(m, "fieldsV1"));
    }
    return pl__buf_str(&b);
}

#define CHECK_OWNERS(want) CHECK_STR(owners(), want)

static void test_shape(void)
{
    restart();
    CASE("built-in kinds are written as Go writes its structs")
    CHECK_INT(
        ask("POST /api/v1/nodes",
            "{\"metadata\":{\"name\":\"n\"},\"spec\":{\"unschedulable\":false,\"podCIDR\":\"\"},"
            "\"status\":{\"capacity\":{},\"conditions\":[{\"type\":\"Ready\",\"message\":\"\"}],"
            "\"nodeInfo\":{\"osImage\":\"x\"}}}"),
        201);
    CHECK_FIELD("spec", "{}");
    CHECK_FIELD("status.capacity", "<none>");
    CHECK_FIELD("status.conditions", "[{\"type\":\"Ready\",\"lastHeartbeatTime\":null,"
                                     "\"lastTransitionTime\":null,\"status\":\"\"}]");
    CHECK_FIELD("status.daemonEndpoints", "{\"kubeletEndpoint\":{\"Port\":0}}");
    CHECK_FIELD("status.nodeInfo.osImage", "x");
    CHECK_FIELD("status.nodeInfo.bootID", "");
    CHECK_INT(ask("POST " EVENTS, "{\"metadata\":{\"name\":\"e\"},\"count\":0,\"type\":\"\"}"),
              201);
    CHECK_FIELD("involvedObject", "{}");
    CHECK_FIELD("eventTime", "null");
    CHECK_FIELD("reportingInstance", "");
    CHECK_FIELD("count", "<none>");
    CHECK_FIELD("type", "<none>");
    CHECK_INT(ask("GET /apis/events.k8s.io/v1/namespaces/default/events/e", ""), 200);
    CHECK_FIELD("regarding", "{}");
    CHECK_FIELD("reportingInstance", "<none>");

    CASE("an Event stands beside its object")
    CHECK_INT(ask("POST " EVENTS, "{\"metadata\":{\"name\":\"g\"},\"involvedObject\":"
                                  "{\"namespace\":\"other\"}}"),
              422);
    CHECK_INT(ask("POST /api/v1/namespaces/kube-system/events", "{\"metadata\":{\"name\":\"g\"}}"),
              422);
    CHECK_INT(ask("POST /api/v1/namespaces/kube-system/events",
                  "{\"metadata\":{\"name\":\"g\"},\"eventTime\":\"2025-03-01T10:00:00.123456Z\"}"),
              201);

    CASE("what is always there belongs to nobody")
    CHECK_INT(ask("GET " EVENTS "/e", ""), 200);
    CHECK_OWNERS("");
    CHECK_INT(ask("POST " EVENTS, "{\"metadata\":{\"name\":\"f\"},\"eventTime\":null,"
                                  "\"reportingInstance\":\"\",\"source\":{\"component\":\"x\"}}"),
              201);
    CHECK_OWNERS("test Update {\"f:source\":{\"f:component\":{}}}");

    CASE("custom kinds keep what they were sent, but not null where the schema has a type")
    CHECK_INT(ask("POST " DEVS, "{" DEV ",\"metadata\":{\"name\":\"d\"},\"spec\":"
                                "{\"providerID\":null,\"other\":null,\"text\":\"\"}}"),
              201);
    CHECK_FIELD("spec", "{\"other\":null,\"text\":\"\"}");

    CASE("metadata has its form in every kind")
    CHECK_INT(ask("MERGE " DEVS "/d", "{\"metadata\":{\"unknown\":1,\"generation\":0,\"labels\":{},"
                                      "\"annotations\":{\"a\":\"\"},\"ownerReferences\":[]}}"),
              200);
    CHECK_FIELD("metadata.unknown", "<none>");
    CHECK_FIELD("metadata.labels", "<none>");
    CHECK_FIELD("metadata.annotations", "{\"a\":\"\"}");
    CHECK_STR(answer.warning, "unknown field \"metadata.unknown\"");
    CHECK_INT(ask("MERGE " DEVS "/d?fieldValidation=Strict", "{\"metadata\":{\"unknown\":1}}"),
              422);
    CHECK_INT(ask("JSON " DEVS "/d", "[{\"op\":\"add\",\"path\":\"/metadata/labels\",\"value\":"
                                     "{\"a\":null}}]"),
              200);
    CHECK_FIELD("metadata.labels", "{\"a\":\"\"}");
    CHECK_INT(ask("JSON " DEVS "/d", "[{\"op\":\"copy\",\"from\":\"/metadata/labels/no\",\"path\":"
                                     "\"/metadata/labels/b\"}]"),
              200);
    CHECK_FIELD("metadata.labels", "{\"a\":\"\",\"b\":\"\"}");
    CHECK_INT(ask("MERGE " DEVS "/d", "{\"metadata\":{\"finalizers\":[null]}}"), 422);
    CHECK_INT(ask("MERGE " DEVS "/d",
                  "{\"metadata\":{\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"K\","
                  "\"name\":\"n\",\"uid\":\"u\",\"extra\":1}]}}"),
              200);
    CHECK_STR(answer.warning, "unknown field \"metadata.ownerReferences[0].extra\"");
    CHECK_FIELD("metadata.ownerReferences",
                "[{\"apiVersion\":\"v1\",\"kind\":\"K\",\"name\":\"n\",\"uid\":\"u\"}]");

    CASE("Secrets and ConfigMaps")
    CHECK_INT(ask("POST " SECRETS, "{\"metadata\":{\"name\":\"s\"},\"data\":{\"a\":\"!\"}}"), 400);
    CHECK_INT(ask("POST " SECRETS, "{\"metadata\":{\"name\":\"s\"},\"data\":{\"a\":\"eA==\"}}"),
              201);
    CHECK_INT(ask("MERGE " SECRETS "/s", "{\"data\":{\"a\":\"!\"}}"), 422);
    CHECK_INT(ask("MERGE " SECRETS "/s", "{\"type\":\"other\"}"), 422);
    CHECK_INT(ask("MERGE " SECRETS "/s", "{\"immutable\":true}"), 200);
    CHECK_INT(ask("MERGE " SECRETS "/s", "{\"data\":{\"a\":\"eQ==\"}}"), 422);
    CHECK_INT(ask("MERGE " SECRETS "/s", "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}"), 200);
}

static void test_owners(void)
{
    restart();
    CASE("an object whose owners were forgotten stays without")
    CHECK_INT(ask("POST " MAPS, "{" MAP ",\"metadata\":{\"name\":\"m\"},\"data\":{\"a\":\"1\"}}"),
              201);
    CHECK_OWNERS("test Update {\"f:data\":{\".\":{},\"f:a\":{}}}");
    CHECK_INT(ask("MERGE " MAPS "/m", "{\"metadata\":{\"managedFields\":[{}]}}"), 200);
    CHECK_OWNERS("");
    CHECK_INT(ask("MERGE " MAPS "/m", "{\"data\":{\"b\":\"1\"}}"), 200);
    CHECK_OWNERS("");

    CASE("until somebody applies")
    CHECK_INT(ask("APPLY " MAPS "/m?fieldManager=x",
                  "{" MAP ",\"metadata\":{\"name\":\"m\"},\"data\":{\"b\":\"1\"}}"),
              200);
    CHECK_OWNERS("x Apply {\"f:data\":{\"f:b\":{}}}\n"
                 "before-first-apply Update {\"f:data\":{\".\":{},\"f:a\":{},\"f:b\":{}}}");
    CHECK(
        !pl__str_contains(field("metadata.managedFields"), PL_STR("\"manager\":\"x\",\"operation\":"
                                                                  "\"Apply\",\"apiVersion\":\"v1\","
                                                                  "\"time\"")));
    CHECK_INT(ask("MERGE " MAPS "/m", "{\"metadata\":{\"managedFields\":[]}}"), 200);
    CHECK_OWNERS("");

    CASE("an empty list forgets nothing in a custom kind, nor does what comes by way of status")
    CHECK_INT(ask("POST " DEVS, "{" DEV ",\"metadata\":{\"name\":\"d\"},\"spec\":{\"a\":1}}"), 201);
    CHECK_INT(ask("MERGE " DEVS "/d", "{\"metadata\":{\"managedFields\":[]}}"), 200);
    CHECK_OWNERS("test Update {\"f:spec\":{\".\":{},\"f:a\":{}}}");
    CHECK_INT(ask("MERGE " DEVS "/d/status", "{\"metadata\":{\"managedFields\":[{}]}}"), 200);
    CHECK_OWNERS("test Update {\"f:spec\":{\".\":{},\"f:a\":{}}}");
    CHECK_INT(ask("MERGE " DEVS "/d", "{\"metadata\":{\"managedFields\":[{\"manager\":\"z\","
                                      "\"operation\":\"Other\",\"apiVersion\":\"v1\","
                                      "\"fieldsType\":\"FieldsV1\"}]}}"),
              200);
    CHECK_OWNERS("test Update {\"f:spec\":{\".\":{},\"f:a\":{}}}");

    CASE("what is sent to status is owned, though metadata of custom kinds is dropped there")
    CHECK_INT(ask("MERGE " DEVS "/d/status",
                  "{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":{\"b\":1}}"),
              200);
    CHECK_FIELD("metadata.labels", "<none>");
    CHECK_OWNERS("test Update {\"f:spec\":{\".\":{},\"f:a\":{}}}\n"
                 "test Update status {\"f:metadata\":{\"f:labels\":{\".\":{},\"f:a\":{}}}}");

    CASE("references to owners are owned as a whole")
    CHECK_INT(
        ask("MERGE " DEVS "/d",
            "{\"metadata\":{\"managedFields\":[{}],\"ownerReferences\":[{\"apiVersion\":\"v1\","
            "\"kind\":\"K\",\"name\":\"n\",\"uid\":\"u\"}]}}"),
        200);
    CHECK_INT(ask("APPLY " DEVS "/d?fieldManager=x&force=true",
                  "{" DEV
                  ",\"metadata\":{\"name\":\"d\",\"ownerReferences\":[{\"apiVersion\":\"v1\","
                  "\"kind\":\"K\",\"name\":\"n\",\"uid\":\"u\",\"controller\":false}]}}"),
              200);
    CHECK_OWNERS(
        "x Apply {\"f:metadata\":{\"f:ownerReferences\":{\"k:{\\\"uid\\\":\\\"u\\\"}\":{}}}}\n"
        "before-first-apply Update {\"f:metadata\":{\"f:ownerReferences\":{}},"
        "\"f:spec\":{\".\":{},\"f:a\":{}}}");
    CHECK_FIELD("metadata.ownerReferences", "[{\"apiVersion\":\"v1\",\"kind\":\"K\",\"name\":\"n\","
                                            "\"uid\":\"u\",\"controller\":false}]");

    CASE("a list that is empty in a built-in kind is gone, and with it who owned it")
    CHECK_INT(ask("POST /api/v1/nodes", "{\"metadata\":{\"name\":\"n\"}}"), 201);
    CHECK_INT(ask("MERGE /api/v1/nodes/n/status",
                  "{\"status\":{\"conditions\":[{\"type\":\"A\",\"status\":\"B\"}]}}"),
              200);
    CHECK_INT(ask("STRATEGIC /api/v1/nodes/n/status",
                  "{\"status\":{\"conditions\":[{\"$patch\":\"delete\",\"type\":\"A\"}]}}"),
              200);
    CHECK_FIELD("status.conditions", "<none>");
    CHECK_OWNERS("");

    CASE("/scale is an owner of its own")
    CHECK_INT(ask("POST " PLANES,
                  "{\"kind\":\"KubeadmControlPlane\",\"metadata\":{\"name\":\"k\"},\"spec\":"
                  "{\"replicas\":3,\"version\":\"v1.34.0\",\"machineTemplate\":{\"spec\":{"
                  "\"infrastructureRef\":{\"apiGroup\":\"infrastructure.cluster.x-k8s.io\","
                  "\"kind\":\"DevMachineTemplate\",\"name\":\"t\"}}}}}"),
              201);
    CHECK_INT(ask("MERGE " PLANES "/k/scale?fieldManager=hpa", "{\"spec\":{\"replicas\":5}}"), 200);
    CHECK_INT(ask("GET " PLANES "/k", ""), 200);
    CHECK(pl__str_contains(owners(), PL_STR("hpa Update scale {\"f:spec\":{\"f:replicas\":{}}}")));
    CHECK_INT(ask("MERGE " PLANES "/k/scale",
                  "{\"metadata\":{\"resourceVersion\":\"1\"},\"spec\":{\"replicas\":1}}"),
              409);
    CHECK_INT(
        ask("PUT " PLANES "/k/scale", "{\"metadata\":{\"name\":\"j\"},\"spec\":{\"replicas\":1}}"),
        400);
}

/* kubectl apply, then kubectl apply --server-side: no conflict with itself. */
static void test_take_over(void)
{
    static const char last[] = "{\\\"apiVersion\\\":\\\"v1\\\",\\\"kind\\\":\\\"ConfigMap\\\","
                               "\\\"metadata\\\":{\\\"name\\\":\\\"m\\\"},\\\"data\\\":{\\\"a\\\":"
                               "\\\"1\\\",\\\"b\\\":\\\"1\\\"}}";
    static const char key[] = "kubectl.kubernetes.io/last-applied-configuration";
    static const char wanted[] =
        "{" MAP ",\"metadata\":{\"name\":\"m\"},\"data\":{\"b\":\"1\",\"a\":\"2\"}}";
    char body[1024];

    restart();
    snprintf(body, sizeof body,
             "{" MAP ",\"metadata\":{\"name\":\"m\",\"annotations\":{\"%s\":\"%s\"}},\"data\":"
             "{\"a\":\"1\",\"b\":\"1\"}}",
             key, last);
    CHECK_INT(ask("POST " MAPS "?fieldManager=kubectl-client-side-apply", body), 201);

    CASE("another manager meets a conflict, kubectl takes over what it wrote")
    CHECK_INT(ask("APPLY " MAPS "/m?fieldManager=other", wanted), 409);
    CHECK_INT(ask("APPLY " MAPS "/m?fieldManager=kubectl", wanted), 200);
    CHECK_FIELD("data", "{\"a\":\"2\",\"b\":\"1\"}");
    CHECK_HAS("\\\"data\\\":{\\\"a\\\":\\\"2\\\",\\\"b\\\":\\\"1\\\"},\\\"kind\\\"");

    CASE("but not what somebody changed since")
    CHECK_INT(ask("MERGE " MAPS "/m?fieldManager=sed", "{\"data\":{\"b\":\"7\"}}"), 200);
    CHECK_INT(ask("APPLY " MAPS "/m?fieldManager=kubectl", wanted), 409);
    CHECK_FIELD("message", "Apply failed with 1 conflict: conflict with \"sed\" using v1: .data.b");
}

static void test_checks(void)
{
    char body[512];

    restart();
    CHECK_INT(ask("POST " DEVS, "{" DEV ",\"metadata\":{\"name\":\"d\"},\"spec\":{\"a\":1}}"), 201);
    struct pl_str version = field("metadata.resourceVersion");

    CASE("the name comes before the version, the version before the uid")
    CHECK_INT(ask("MERGE " DEVS "/d", "{\"metadata\":{\"name\":\"x\",\"resourceVersion\":\"1\"}}"),
              400);
    CHECK_INT(ask("MERGE " DEVS "/d", "{\"metadata\":{\"uid\":\"x\",\"resourceVersion\":\"1\"}}"),
              409);
    CHECK_INT(ask("MERGE " DEVS "/d", "{\"metadata\":{\"uid\":\"x\"}}"), 422);
    CHECK_INT(ask("MERGE " DEVS "/d", "{\"metadata\":null}"), 400);
    CHECK_INT(ask("MERGE " DEVS "/d", "{\"metadata\":{\"labels\":5}}"), 422);

    CASE("versions that are none")
    CHECK_INT(ask("MERGE " DEVS "/d", "{\"metadata\":{\"resourceVersion\":\"x\"}}"), 500);
    CHECK_INT(ask("MERGE " DEVS "/d", "{\"metadata\":{\"resourceVersion\":\"0\"}}"), 422);
    CHECK_INT(ask("GET " DEVS "/d?resourceVersion=x", ""), 500);
    CHECK_INT(ask("GET " EVENTS "/e?resourceVersion=x", ""), 400);
    CHECK_INT(ask("GET " DEVS "?resourceVersion=x", ""), 400);
    CHECK_INT(ask("GET " DEVS "?watch=1&resourceVersion=x", ""), 500);

    CASE("a PUT is told of its name before it is told that there is nothing, and of another uid "
         "before the version")
    CHECK_INT(ask("PUT " DEVS "/none", "{" DEV ",\"metadata\":{\"name\":\"d\"}}"), 400);
    CHECK_INT(ask("PUT " DEVS "/none", "{" DEV ",\"metadata\":{\"name\":\"none\"}}"), 404);
    CHECK_INT(ask("PUT " DEVS "/d", "{" DEV ",\"metadata\":{\"name\":\"d\",\"uid\":\"x\"}}"), 409);
    CHECK_HAS("UID in precondition: x");
    CHECK_INT(ask("PUT " EVENTS "/e", "{\"metadata\":{\"name\":\"e\",\"uid\":\"x\"}}"), 409);
    snprintf(body, sizeof body,
             "{\"kind\":\"Other\",\"metadata\":{\"name\":\"d\",\"resourceVersion\":\"%.*s\"}}",
             PL_STR_ARG(version));
    CHECK_INT(ask("PUT " DEVS "/d", body), 422);

    CASE("what can be set once")
    CHECK_INT(
        ask("MERGE " DEVS "/d", "{\"metadata\":{\"deletionTimestamp\":\"2025-01-01T00:00:00Z\"}}"),
        422);
    CHECK_INT(ask("MERGE " DEVS "/d", "{\"metadata\":{\"deletionGracePeriodSeconds\":5}}"), 422);
    CHECK_INT(ask("MERGE " DEVS "/d/status", "{\"metadata\":{\"uid\":\"x\"}}"), 200);

    CASE("conflicts of an apply come before anything that its object says of itself")
    CHECK_INT(ask("APPLY " DEVS "/d?fieldManager=x",
                  "{" DEV ",\"metadata\":{\"name\":\"y\",\"uid\":\"x\"},\"spec\":{\"a\":2}}"),
              409);
    CHECK_FIELD("details.causes",
                "[{\"reason\":\"FieldManagerConflict\",\"message\":\"conflict with "
                "\\\"test\\\" using infrastructure.cluster.x-k8s.io/v1beta2\","
                "\"field\":\".spec.a\"}]");
    CHECK_INT(ask("APPLY " DEVS "/d?fieldManager=x", "{" DEV ",\"metadata\":{\"name\":\"y\"}}"),
              400);
    CHECK_INT(ask("APPLY " DEVS "/new?fieldManager=x", "{" DEV ",\"spec\":{}}"), 400);
    CHECK_INT(ask("APPLY " DEVS "/d?fieldManager=x",
                  "{" DEV ",\"metadata\":{\"name\":\"d\",\"managedFields\":[]}}"),
              400);
    CHECK_INT(ask("APPLY " DEVS "/d?fieldManager=x", "{" DEV ",\"metadata\":{\"labels\":5}}"), 500);
    CHECK_INT(ask("APPLY " DEVS "/d?fieldManager=x", "{" DEV ",\"metadata\":{\"unknown\":5}}"),
              500);

    CHECK_INT(ask("APPLY " DEVS "/new?fieldManager=x",
                  "{" DEV ",\"metadata\":{\"name\":\"new\",\"resourceVersion\":\"x\"}}"),
              500);

    CASE("an Event owns nothing")
    CHECK_INT(ask("MERGE " DEVS "/d",
                  "{\"metadata\":{\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"Event\","
                  "\"name\":\"n\",\"uid\":\"u\"}]}}"),
              422);

    CASE("a DELETE whose body is no DeleteOptions deletes nothing")
    CHECK_INT(ask("DELETE " DEVS "/d", "5"), 500);
    CHECK_INT(ask("DELETE " DEVS "/d", "{"), 500);
    CHECK_INT(ask("DELETE " DEVS "/d", "{\"kind\":\"Other\"}"), 500);
    CHECK_INT(ask("DELETE " DEVS "/d", "{\"gracePeriodSeconds\":\"x\"}"), 500);
    CHECK_INT(ask("DELETE " DEVS, "{"), 500);
    CHECK_INT(ask("GET " DEVS "/d", ""), 200);
}

/* A write that changes nothing but times is none. */
static void test_times(void)
{
    static const char labelled[] =
        "{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"status\":{\"x\":\"1\"}}";

    restart();
    CHECK_INT(ask("POST " DEVS, "{" DEV ",\"metadata\":{\"name\":\"d\"},\"spec\":{\"a\":1}}"), 201);
    CHECK_INT(ask("MERGE " DEVS "/d/status", labelled), 200);
    CASE("metadata that is dropped again and again")
    uint64_t before = pl_apiserver_version(server);
    now_ms += 5000;
    CHECK_INT(ask("MERGE " DEVS "/d/status", labelled), 200);
    CHECK_INT(pl_apiserver_version(server), before);
    CASE("an apply that changes nothing keeps the time of the last that did")
    static const char wanted[] = "{" DEV ",\"metadata\":{\"name\":\"d\"},\"spec\":{\"b\":1}}";
    CHECK_INT(ask("APPLY " DEVS "/d?fieldManager=x", wanted), 200);
    struct pl_str fields = field("metadata.managedFields");
    before = pl_apiserver_version(server);
    now_ms += 5000;
    CHECK_INT(ask("APPLY " DEVS "/d?fieldManager=x", wanted), 200);
    CHECK_INT(pl_apiserver_version(server), before);
    CHECK(pl__str_equal(field("metadata.managedFields"), fields));
}

int main(void)
{
    pl__arena_init(&arena, NULL, 0);
    start(&(struct pl_apiserver_options){ .seed = 7 });
    test_shape();
    test_owners();
    test_take_over();
    test_checks();
    test_times();
    pl_apiserver_close(server);
    pl__arena_release(&arena);
    return test_end("apiserver/owners");
}
