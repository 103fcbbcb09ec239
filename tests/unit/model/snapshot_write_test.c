/* What is written reads back as the same world: for every vector and every example, in both formats,
 * the report on decode(write(snapshot)) is the report on the snapshot, evidence and all. */
#include <stdlib.h>

#include "lib/context.h"
#include "source.h"
#include "test.h"

static struct pl_context *context_new(void)
{
    return pl_context_new(&(struct pl_options){ .explain = true, .clock_ms = 1794708000000 });
}

static struct pl_str write_as(struct pl_arena *arena, const struct pl_snapshot *s,
                              enum pl_json_format format)
{
    struct pl_buf text;
    struct pl_json_writer w;

    pl__buf_init(&text, arena, SIZE_MAX / 4);
    pl__json_writer_init(&w, &text, format);
    pl__snapshot_write(&w, s);
    pl__buf_add_char(&text, '\n');
    return pl__buf_str(&text);
}

/* Reads the text and compares its report, and what it is written as. */
static void check_reads_back(struct pl_context *again, struct pl_arena *arena, struct pl_str text,
                             struct pl_str json, struct pl_str want)
{
    const struct pl_report *report = NULL;

    pl_context_clear(again);
    CHECK(pl_context_add(again, "written", text.ptr, text.len) == 0);
    if (pl_context_next(again, &report) != 1) {
        test_fail(__FILE__, __LINE__, "%s\n%.*s", pl_context_error(again), PL_STR_ARG(text));
        return;
    }
    test_str(__FILE__, __LINE__, "report", pl_report_json(again, report), want);
    test_str(__FILE__, __LINE__, "written again",
             write_as(arena, pl__context_snapshot(again), JSON_COMPACT), json);
}

static void check_file(const char *path)
{
    struct pl_context *ctx = context_new(), *again = context_new();
    char *text = source_read(path);
    const struct pl_report *report = NULL;
    struct pl_arena arena;
    size_t count = 0;
    int got;

    pl__arena_init(&arena, NULL, 0);
    CASE("%s", path)
    CHECK(text != NULL);
    if (text)
        pl_context_add(ctx, path, text, strlen(text));
    while ((got = pl_context_next(ctx, &report)) > 0) {
        const struct pl_snapshot *s = pl__context_snapshot(ctx);
        CASE("%s: %zu %.*s", path, ++count, PL_STR_ARG(report->name))
        struct pl_str want = pl_report_json(ctx, report);
        struct pl_str json = write_as(&arena, s, JSON_COMPACT);
        check_reads_back(again, &arena, json, json, want);
        check_reads_back(again, &arena, write_as(&arena, s, JSON_AS_YAML), json, want);
        pl__arena_reset(&arena);
    }
    CHECK(got == 0);
    CHECK(count > 0);
    free(text);
    pl__arena_release(&arena);
    pl_context_free(ctx);
    pl_context_free(again);
}

/* --- what is left out --------------------------------------------------------------------------- */

static const char manifest[] =
    "apiVersion: v1\n"
    "kind: Secret\n"
    "metadata: {name: prod-kubeconfig, namespace: default}\n"
    "data: {value: SGVsbG8sIHdvcmxk}\n"
    "---\n"
    "apiVersion: controlplane.cluster.x-k8s.io/v1beta1\n"
    "kind: KubeadmControlPlane\n"
    "metadata:\n"
    "  name: cp\n"
    "  namespace: default\n"
    "  annotations:\n"
    "    kubectl.kubernetes.io/last-applied-configuration: hunter2\n"
    "  managedFields: [{manager: hunter2}]\n"
    "spec:\n"
    "  replicas: 3\n"
    "  remediationStrategy: {minHealthyPeriod: 1h, retryPeriod: 10m, maxRetry: 0}\n"
    "  kubeadmConfigSpec:\n"
    "    clusterConfiguration: {etcd: {external: {endpoints: [], keyFile: hunter2}}}\n"
    "    users: [{name: root, passwd: hunter2}]\n"
    "status: {initialized: true, replicas: 0, readyReplicas: 0, v1beta2: {readyReplicas: 2}}\n";

static const char want[] =
    "{\"apiVersion\":\"plimsoll.dev/v1\",\"kind\":\"Snapshot\",\"now\":\"2026-11-15T02:00:00Z\","
    "\"remoteConditionsGracePeriodSeconds\":300,\"objects\":[{\"apiVersion\":"
    "\"controlplane.cluster.x-k8s.io/v1beta2\",\"kind\":\"KubeadmControlPlane\",\"metadata\":{"
    "\"name\":\"cp\",\"namespace\":\"default\"},\"spec\":{\"replicas\":3,\"remediation\":{"
    "\"minHealthyPeriodSeconds\":3600,\"retryPeriodSeconds\":600,\"maxRetry\":0},"
    "\"kubeadmConfigSpec\":{\"clusterConfiguration\":{\"etcd\":{\"external\":{\"endpoints\":[\"\"]}"
    "}}}},"
    "\"status\":{\"initialization\":{\"controlPlaneInitialized\":true},\"replicas\":0,"
    "\"readyReplicas\":2}}]}\n";

static void check_left_out(void)
{
    struct pl_context *ctx = context_new();
    const struct pl_report *report = NULL;
    struct pl_arena arena;

    pl__arena_init(&arena, NULL, 0);
    CASE("secrets, annotations and unknown fields are left out, v1beta1 becomes v1beta2")
    CHECK(pl_context_add(ctx, "manifest", manifest, strlen(manifest)) == 0);
    CHECK(pl_context_next(ctx, &report) == 1);
    test_str(__FILE__, __LINE__, "written",
             write_as(&arena, pl__context_snapshot(ctx), JSON_COMPACT), pl__str(want));
    pl__arena_release(&arena);
    pl_context_free(ctx);
}

/* --- etcd's own time ---------------------------------------------------------------------------- */

static void check_observed_time(void)
{
    static const char time[] = "2026-11-15T01:59:41Z";
    struct pl_context *ctx = context_new();
    char *text = source_read("examples/alarm.yaml");
    const char *etcd = text ? strstr(text, "    etcd:\n") : NULL;
    const struct pl_report *report = NULL;
    struct pl_arena arena;

    pl__arena_init(&arena, NULL, 0);
    CASE("when etcd was asked is kept, and told with what it said")
    CHECK(etcd != NULL);
    if (etcd) {
        size_t head = (size_t)(etcd - text) + strlen("    etcd:\n");
        struct pl_str with = pl__str_format(&arena, "%.*s      observedTime: \"%s\"\n%s", (int)head,
                                            text, time, text + head);
        CHECK(pl_context_add(ctx, "alarm", with.ptr, with.len) == 0);
        CHECK(pl_context_next(ctx, &report) == 1);
    }
    if (report) {
        struct pl_str json = write_as(&arena, pl__context_snapshot(ctx), JSON_COMPACT);
        CHECK(pl__str_contains(json, pl__str_format(&arena, "\"observedTime\":\"%s\"", time)));
        CHECK(pl__str_contains(pl_report_json(ctx, report),
                               pl__str_format(&arena, "\"etcd call at %s\"", time)));
    }
    free(text);
    pl__arena_release(&arena);
    pl_context_free(ctx);
}

int main(void)
{
    static const char *const files[] = {
        "tests/vectors/cluster-api/kubeadmcontrolplane.ndjson",
        "tests/vectors/cluster-api/machinedeployment.ndjson",
        "examples/alarm.yaml",
        "examples/connection-down.yaml",
        "examples/deleting.yaml",
        "examples/external-etcd.yaml",
        "examples/healthy.yaml",
        "examples/learner.yaml",
        "examples/orphan-node.yaml",
        "examples/quorum-at-risk.yaml",
        "tests/golden/inputs/v1beta1.yaml",
        "tests/golden/inputs/list.yaml",
        "tests/golden/inputs/missing-etcd.yaml",
        "tests/golden/inputs/missing-workload.yaml",
    };

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        check_file(files[i]);
    check_left_out();
    check_observed_time();
    return test_end("model/snapshot_write");
}
