/* Tables as kubectl gets them: a line of cells for an object, and the forms of Accept. */
#include "test.h"

#include "apiserver/table.h"

static struct pl_arena arena;

enum { NOW_S = 1767225600 }; /* 2026-01-01T00:00:00Z */

static struct pl_tree *read_json(const char *text)
{
    struct pl_error *err = NULL;
    struct pl_tree *t = pl__tree_read(&arena, pl__str(text), &err);

    if (!t)
        test_fail(__FILE__, __LINE__, "%s", pl__error_text(&arena, err).ptr);
    return t;
}

static const struct pl_kind *kind_of(const struct pl_tree *object)
{
    return pl__kind_by_name(pl__tree_get_str(object, "apiVersion"),
                            pl__tree_get_str(object, "kind"));
}

static struct pl_form_options table_options(void)
{
    return (struct pl_form_options){ .form = PL_FORM_TABLE, .now_ms = NOW_S * INT64_C(1000) };
}

static void test_accept(void)
{
    static const struct {
        const char *accept;
        enum pl_form form;
    } cases[] = {
        { "", PL_FORM_OBJECT },
        { "*/*", PL_FORM_OBJECT },
        { "application/json", PL_FORM_OBJECT },
        { "application/json;stream=watch", PL_FORM_OBJECT },
        { "application/vnd.kubernetes.protobuf, application/json", PL_FORM_OBJECT },
        { "application/json;as=Table;v=v1;g=meta.k8s.io,application/json", PL_FORM_TABLE },
        { "application/json; g=meta.k8s.io ;v=v1; as=Table", PL_FORM_TABLE },
        { "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json", PL_FORM_OBJECT },
        { "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", PL_FORM_PARTIAL },
        { "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", PL_FORM_PARTIAL },
        { "application/json;as=Chair;v=v1;g=meta.k8s.io", PL_FORM_NONE },
        { "application/vnd.kubernetes.protobuf", PL_FORM_NONE },
        { "text/html", PL_FORM_NONE },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CASE("Accept: %s", cases[i].accept);
        CHECK_INT(pl__form_of_accept(pl__str(cases[i].accept)), cases[i].form);
    }
}

#define META(name) \
    "\"metadata\":{\"name\":\"" name "\",\"creationTimestamp\":\"2025-12-31T23:58:30Z\"}"

static void test_cells(void)
{
    static const struct {
        const char *object, *cells;
    } cases[] = {
        { "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\"," META(
              "a") ",\"status\":{\"phase\":\"Active\"}}",
          "[\"a\",\"Active\",\"90s\"]" },
        { "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\"," META(
              "c") ",\"data\":{\"x\":\"1\",\"y\":\"2\"},"
                   "\"binaryData\":{\"z\":\"\"}}",
          "[\"c\",3,\"90s\"]" },
        { "{\"apiVersion\":\"v1\",\"kind\":\"Secret\"," META("s") ",\"type\":\"Opaque\"}",
          "[\"s\",\"Opaque\",0,\"90s\"]" },
        { "{\"apiVersion\":\"coordination.k8s.io/"
          "v1\",\"kind\":\"Lease\",\"metadata\":{\"name\":\"l\"},\"spec\":{}}",
          "[\"l\",\"\",\"<unknown>\"]" },
        { "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n\",\"labels\":{"
          "\"node-role.kubernetes.io/worker\":\"\",\"node-role.kubernetes.io/control-plane\":\"\","
          "\"kubernetes.io/role\":\"worker\"}},\"spec\":{\"unschedulable\":true},\"status\":{"
          "\"conditions\":[{\"type\":\"Ready\",\"status\":\"Unknown\"}],"
          "\"addresses\":[{\"type\":\"InternalIP\",\"address\":\"10.0.0.1\"}],"
          "\"nodeInfo\":{\"kubeletVersion\":\"v1.34.2\"}}}",
          "[\"n\",\"NotReady,SchedulingDisabled\",\"control-plane,worker\",\"<unknown>\",\"v1.34."
          "2\","
          "\"10.0.0.1\",\"<none>\",\"<unknown>\",\"<unknown>\",\"<unknown>\"]" },
        { "{\"apiVersion\":\"v1\",\"kind\":\"Node\"," META("n") "}",
          "[\"n\",\"Unknown\",\"<none>\",\"90s\",\"\",\"<none>\",\"<none>\",\"<unknown>\",\"<"
          "unknown>\","
          "\"<unknown>\"]" },
        { "{\"apiVersion\":\"v1\",\"kind\":\"Pod\"," META(
              "p") ",\"spec\":{\"nodeName\":\"n\",\"containers\":[{},{}]},"
                   "\"status\":{\"phase\":\"Running\",\"podIP\":\"10.1.1.1\",\"containerStatuses\":"
                   "["
                   "{\"ready\":true,\"state\":{\"running\":{}}},"
                   "{\"restartCount\":4,\"state\":{\"waiting\":{\"reason\":\"CrashLoopBackOff\"}},"
                   "\"lastState\":{\"terminated\":{\"exitCode\":1,\"finishedAt\":\"2025-12-31T23:"
                   "55:00Z\"}}}]}}",
          "[\"p\",\"1/2\",\"CrashLoopBackOff\",\"4 (5m "
          "ago)\",\"90s\",\"10.1.1.1\",\"n\",\"<none>\",\"<none>\"]" },
        { "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\","
          "\"deletionTimestamp\":"
          "\"2025-12-31T23:55:00Z\"},\"status\":{\"phase\":\"Running\"}}",
          "[\"p\",\"0/"
          "0\",\"Terminating\",\"0\",\"<unknown>\",\"<none>\",\"<none>\",\"<none>\",\"<none>\"]" },
        { "{\"apiVersion\":\"v1\",\"kind\":\"Pod\"," META(
              "p") ",\"spec\":{\"initContainers\":[{},{}],\"containers\":[{}],"
                   "\"readinessGates\":[{\"conditionType\":\"x\"}]},\"status\":{\"phase\":"
                   "\"Pending\",\"initContainerStatuses\":["
                   "{\"state\":{\"terminated\":{\"exitCode\":0}}},{\"state\":{\"terminated\":{"
                   "\"exitCode\":3}}}]}}",
          "[\"p\",\"0/1\",\"Init:ExitCode:3\",\"0\",\"90s\",\"<none>\",\"<none>\",\"<none>\",\"0/"
          "1\"]" },
        { "{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"metadata\":{\"name\":\"e.1\"},\"type\":"
          "\"Warning\","
          "\"reason\":\"Sad\",\"message\":\"it "
          "broke\",\"involvedObject\":{\"kind\":\"MachineSet\",\"name\":\"m\"},"
          "\"source\":{\"component\":\"plimsoll\"},\"firstTimestamp\":\"2025-12-31T23:50:00Z\","
          "\"lastTimestamp\":\"2025-12-31T23:59:00Z\",\"count\":7}",
          "[\"60s\",\"Warning\",\"Sad\",\"machineset/m\",\"\",\"plimsoll\",\"it "
          "broke\",\"10m\",7,\"e.1\"]" },
        { "{\"apiVersion\":\"cluster.x-k8s.io/v1beta2\",\"kind\":\"Machine\"," META(
              "m") ",\"spec\":{\"clusterName\":\"c1\",\"version\":\"v1.34.2\"},\"status\":{"
                   "\"phase\":\"Running\","
                   "\"nodeRef\":{\"name\":\"n1\"},\"conditions\":[{\"type\":\"Available\","
                   "\"status\":\"False\"},"
                   "{\"type\":\"Ready\",\"status\":\"True\"}]}}",
          "[\"m\",\"c1\",\"n1\",null,\"True\",\"False\",null,null,null,null,null,\"Running\","
          "\"90s\",\"v1.34.2\"]" },
        { "{\"apiVersion\":\"controlplane.cluster.x-k8s.io/"
          "v1beta2\",\"kind\":\"KubeadmControlPlane\",\"metadata\":{"
          "\"name\":\"k\",\"labels\":{\"cluster.x-k8s.io/"
          "cluster-name\":\"c1\"}},\"spec\":{\"replicas\":3},"
          "\"status\":{\"initialization\":{\"controlPlaneInitialized\":true},\"replicas\":"
          "\"three\"}}",
          "[\"k\",\"c1\",null,3,null,null,null,null,null,true,null,null]" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pl_tree *object = read_json(cases[i].object);
        struct pl_form_options options = table_options();
        const struct pl_kind *kind = kind_of(object);
        CASE("cells %zu: %s", i, kind->kind);
        struct pl_tree *table = pl__form_render(&arena, kind, &options, object);
        struct pl_tree *row = pl__tree_item(pl__tree_get(table, PL_STR("rows")), 0);
        CHECK_STR(pl__tree_text(&arena, pl__tree_get(row, PL_STR("cells"))), cases[i].cells);
        CHECK_INT(pl__tree_count(pl__tree_get(table, PL_STR("columnDefinitions"))),
                  pl__tree_count(pl__tree_get(row, PL_STR("cells"))));
        CHECK_STR(pl__tree_get_str(row, "object.kind"), "PartialObjectMetadata");
        CHECK(!pl__tree_at(row, "object.spec") && pl__tree_at(row, "object.metadata.name"));
    }
}

static const char list[] =
    "{\"kind\":\"SecretList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"7\","
    "\"continue\":\"x\"},"
    "\"items\":[{\"metadata\":{\"name\":\"a\"},\"type\":\"t\"},{\"metadata\":{\"name\":\"b\"}}]}";

static void test_lists(void)
{
    const struct pl_kind *secret = pl__kind_by_name(PL_STR("v1"), PL_STR("Secret"));
    struct pl_form_options options = table_options();
    struct pl_tree *t;

    CASE("a list");
    t = pl__form_render(&arena, secret, &options, read_json(list));
    CHECK_STR(pl__tree_text(&arena, pl__tree_get(t, PL_STR("metadata"))),
              "{\"resourceVersion\":\"7\",\"continue\":\"x\"}");
    CHECK_INT(pl__tree_count(pl__tree_get(t, PL_STR("rows"))), 2);
    CASE("the whole object, which says what it is");
    options.include_object = PL_STR("Object");
    t = pl__form_render(&arena, secret, &options, read_json(list));
    CHECK_STR(
        pl__tree_text(&arena, pl__tree_get(pl__tree_item(pl__tree_get(t, PL_STR("rows")), 0),
                                           PL_STR("object"))),
        "{\"kind\":\"Secret\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\"},\"type\":\"t\"}");
    CASE("no object, no columns");
    options.include_object = PL_STR("None");
    options.no_columns = true;
    t = pl__form_render(&arena, secret, &options, read_json(list));
    CHECK_STR(pl__tree_text(&arena, pl__tree_item(pl__tree_get(t, PL_STR("rows")), 1)),
              "{\"cells\":[\"b\",\"\",0,\"<unknown>\"],\"object\":null}");
    CHECK_STR(pl__tree_text(&arena, pl__tree_get(t, PL_STR("columnDefinitions"))), "null");
    CASE("metadata alone");
    options = (struct pl_form_options){ .form = PL_FORM_PARTIAL };
    t = pl__form_render(&arena, secret, &options, read_json(list));
    CHECK_STR(
        pl__tree_text(&arena, t),
        "{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{"
        "\"resourceVersion\":\"7\",\"continue\":\"x\"},\"items\":[{\"kind\":"
        "\"PartialObjectMetadata\","
        "\"apiVersion\":\"meta.k8s.io/"
        "v1\",\"metadata\":{\"name\":\"a\"}},{\"kind\":\"PartialObjectMetadata\","
        "\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{\"name\":\"b\"}}]}");
    CASE("as it is");
    options.form = PL_FORM_OBJECT;
    CHECK_STR(pl__tree_text(&arena, pl__form_render(&arena, secret, &options, read_json(list))),
              list);
}

int main(void)
{
    pl__arena_init(&arena, NULL, 0);
    test_accept();
    test_cells();
    test_lists();
    pl__arena_release(&arena);
    return test_end("table");
}
