/* tests/unit/model/snapshot_test.c - what is read, what is refused, and what is said to be missing
 * (snapshot.md). Worlds are built by tests/world.h where a whole one is needed; the odd ones are
 * written out. */
#include "test.h"

#include <stdlib.h>

#include "base/time.h"
#include "model/snapshot.h"
#include "world.h"

/* JSON is laid out by hand. */
/* clang-format off */

#define CAPI "\"apiVersion\":\"cluster.x-k8s.io/v1beta2\""
#define OLD "\"apiVersion\":\"cluster.x-k8s.io/v1beta1\""
#define KCP_API "\"apiVersion\":\"controlplane.cluster.x-k8s.io/v1beta2\",\"kind\":\"KubeadmControlPlane\""
#define KCP_OLD "\"apiVersion\":\"controlplane.cluster.x-k8s.io/v1beta1\",\"kind\":\"KubeadmControlPlane\""
#define TWICE_NODE \
    "{\"metadata\":{\"name\":\"n-0\",\"labels\":{\"node-role.kubernetes.io/control-plane\":\"\"}}}"
#define TWICE_POD "{\"metadata\":{\"name\":\"etcd-n-0\",\"namespace\":\"kube-system\"}}"
#define SNAPSHOT(rest) "{\"apiVersion\":\"plimsoll.dev/v1\",\"kind\":\"Snapshot\"," rest "}"
#define NOW "\"now\":\"2026-11-15T02:00:00Z\""

static int64_t now_ms;
static struct pl_context *ctx;
static const struct pl_report *report;

static void begin(const struct pl_options *options)
{
    static const struct pl_report nothing;

    pl_context_free(ctx);
    ctx = pl_context_new(options);
    report = &nothing;
}

/* Reads and judges; what it returns is pl_context_next()'s. */
static int judge_with(const struct pl_options *options, const char *text)
{
    begin(options);
    pl_context_add(ctx, "x", text, strlen(text));
    return pl_context_next(ctx, &report);
}

/* The same with the clock at the usual time, for input that has none. */
static int judge(const char *text)
{
    return judge_with(&(struct pl_options){ .clock_ms = now_ms }, text);
}

static const struct pl_verdict *verdict(const char *object, const char *type)
{
    for (size_t i = 0; report && i < report->object_count; i++) {
        const struct pl_object *o = &report->objects[i];
        for (size_t k = 0; pl__str_equal(o->name, pl__str(object)) && k < o->verdict_count; k++) {
            if (strcmp(o->verdicts[k].type, type) == 0)
                return &o->verdicts[k];
        }
    }
    return NULL;
}

static struct pl_str row(const char *object, const char *type)
{
    const struct pl_verdict *v = verdict(object, type);
    return pl__str(v ? v->row : "none");
}

static struct pl_str message(const char *object, const char *type)
{
    const struct pl_verdict *v = verdict(object, type);
    return v ? v->message : PL_STR("none");
}

static size_t count_of(const char *kind)
{
    size_t count = 0;

    for (size_t i = 0; report && i < report->object_count; i++)
        count += strcmp(report->objects[i].kind, kind) == 0;
    return count;
}

/* Must fail, with a text that has `part` in it. */
static void refused(const char *file, int line, const char *text, const char *part)
{
    if (judge(text) != -1)
        test_fail(file, line, "it was taken");
    else if (!strstr(pl_context_error(ctx), part))
        test_fail(file, line, "got \"%s\", want \"%s\"", pl_context_error(ctx), part);
    else if (pl_context_error_code(ctx) != PL_INVALID)
        test_fail(file, line, "got code %d", (int)pl_context_error_code(ctx));
}
#define REFUSED(text, part) refused(__FILE__, __LINE__, text, part)

/* --- documents ----------------------------------------------------------------------------------- */

#define CLUSTER_META "\"metadata\":{\"namespace\":\"default\",\"name\":\"alpha\"}"
#define CLUSTER                                                                              \
    "{" CAPI ",\"kind\":\"Cluster\"," CLUSTER_META ",\"spec\":{\"controlPlaneEndpoint\":"    \
    "{\"host\":\"h\",\"port\":1}},\"status\":{\"initialization\":{\"infrastructureProvisioned\":true}}}"
#define KCP_NAMED(name, labels)                                                              \
    "{" KCP_API ",\"metadata\":{\"namespace\":\"default\",\"name\":\"" name "\"" labels "}," \
    "\"status\":{\"initialization\":{\"controlPlaneInitialized\":true},\"conditions\":[{"    \
    "\"type\":\"Initialized\",\"status\":\"True\",\"lastTransitionTime\":\"2026-11-14T00:00:00Z\"}]}}"
#define KCP KCP_NAMED("cp", ",\"labels\":{\"cluster.x-k8s.io/cluster-name\":\"alpha\"}")
#define MACHINE_META(name)                                                                   \
    "\"metadata\":{\"namespace\":\"default\",\"name\":\"" name "\",\"labels\":{"             \
    "\"cluster.x-k8s.io/cluster-name\":\"alpha\",\"cluster.x-k8s.io/control-plane\":\"\"},"  \
    "\"ownerReferences\":[{\"kind\":\"KubeadmControlPlane\",\"name\":\"cp\",\"controller\":true}]}"
#define MACHINE(name, node)                                                                  \
    "{" CAPI ",\"kind\":\"Machine\"," MACHINE_META(name) ",\"spec\":{\"providerID\":\"p\"}," \
    "\"status\":{\"nodeRef\":{\"name\":\"" node "\"}}}"
#define NODE(name)                                                                           \
    "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"" name "\","          \
    "\"labels\":{\"node-role.kubernetes.io/control-plane\":\"\"}}}"
#define POD(name)                                                                            \
    "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"" name "\","           \
    "\"namespace\":\"kube-system\"},\"status\":{\"phase\":\"Running\",\"conditions\":[{"     \
    "\"type\":\"Ready\",\"status\":\"True\"}]}}"
#define LIST(items) "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[" items "]}"
#define PODS(node) POD("kube-apiserver-" node) "," POD("kube-controller-manager-" node) "," \
    POD("kube-scheduler-" node) "," POD("etcd-" node)

static void documents_test(struct world *w)
{
    CASE("a List: Nodes and Pods are the only Cluster's, and it counts as connected")
    world_reset(w);
    struct pl_str text = world_list(w, JSON_COMPACT);
    begin(&(struct pl_options){ .clock_ms = now_ms });
    pl_context_add(ctx, "x", text.ptr, text.len);
    CHECK_INT(pl_context_next(ctx, &report), 1);
    CHECK_INT(count_of("Machine"), 3);
    CHECK_STR(row("cp", "ControlPlaneComponentsHealthy"), "ControlPlaneComponentsHealthy/10");
    CHECK(!verdict("cp", "EtcdClusterHealthy"));
    CHECK_INT(report->missing_count, 4); /* the control plane's and three Machines' */
    CHECK_INT(report->now_ms, now_ms);
    CHECK_INT(pl_context_next(ctx, &report), 0);

    CASE("a List as YAML")
    text = world_list(w, JSON_AS_YAML);
    begin(&(struct pl_options){ .clock_ms = now_ms });
    pl_context_add(ctx, "x", text.ptr, text.len);
    CHECK_INT(pl_context_next(ctx, &report), 1);
    CHECK_STR(row("cp", "ControlPlaneComponentsHealthy"), "ControlPlaneComponentsHealthy/10");

    CASE("a typed list: items have no kind of their own")
    CHECK_INT(judge(LIST(CLUSTER "," KCP) "\n{" CAPI ",\"kind\":\"MachineList\",\"metadata\":{},"
                    "\"items\":[{" MACHINE_META("cp-0") "},{" MACHINE_META("cp-1") "}]}\n"
                    "{\"apiVersion\":\"v1\",\"kind\":\"NodeList\",\"items\":[{\"metadata\":{"
                    "\"name\":\"n\",\"labels\":{\"node-role.kubernetes.io/control-plane\":\"\"}}}]}"),
              1);
    CHECK_INT(count_of("Machine"), 2);
    CHECK_STR(row("cp-0", "EtcdMemberHealthy"), "EtcdMemberHealthy/1");

    CASE("a typed list: items may say their kind")
    CHECK_INT(judge(LIST(CLUSTER "," KCP) "{" CAPI ",\"kind\":\"MachineList\",\"items\":["
                    MACHINE("cp-0", "n") "]}"), 1);
    CHECK_INT(count_of("Machine"), 1);

    CASE("a List without items, with null, with a list inside")
    CHECK_INT(judge(KCP "{\"apiVersion\":\"v1\",\"kind\":\"List\"}"), 1);
    CHECK_INT(judge(KCP "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":null}"), 1);
    CHECK_INT(judge(LIST(KCP ",{" CAPI ",\"kind\":\"MachineList\",\"items\":[1]}")), 1);
    CHECK_INT(count_of("KubeadmControlPlane"), 1);

    CASE("a List among a Snapshot's objects")
    CHECK_INT(judge(SNAPSHOT(NOW ",\"objects\":[" LIST(CLUSTER "," KCP "," MACHINE("cp-0", "n")) "]")), 1);
    CHECK_INT(count_of("Machine"), 1);

    CASE("manifests over several documents and sources are one world, judged last")
    begin(&(struct pl_options){ .clock_ms = now_ms });
    static const char first[] = CLUSTER "\n" KCP, second[] = SNAPSHOT(NOW ",\"name\":\"own\"") "\n"
                                MACHINE("cp-0", "node-0");
    pl_context_add(ctx, "first", first, sizeof first - 1);
    pl_context_add(ctx, "second", second, sizeof second - 1);
    CHECK_INT(pl_context_next(ctx, &report), 1);
    CHECK_STR(report->name, "own");
    CHECK_STR(report->source, "second");
    CHECK_INT(report->object_count, 0);
    CHECK_INT(pl_context_next(ctx, &report), 1);
    CHECK_STR(report->source, "first (and 1 more)");
    CHECK_INT(report->object_count, 2);
    CHECK_INT(pl_context_next(ctx, &report), 0);

    CASE("lines of vectors")
    static const char wrapped[] =
        "{\"name\":\"one\",\"snapshot\":" SNAPSHOT(NOW ",\"name\":\"inner\"") ",\"expect\":{\"kcp\":[]}}\n"
        "{\"expect\":null,\"snapshot\":" SNAPSHOT(NOW ",\"name\":\"two\"") "}\n";
    begin(NULL);
    pl_context_add(ctx, "x", wrapped, sizeof wrapped - 1);
    CHECK_INT(pl_context_next(ctx, &report), 1);
    CHECK_STR(report->name, "one");
    CHECK_INT(pl_context_next(ctx, &report), 1);
    CHECK_STR(report->name, "two");
    CHECK_INT(pl_context_next(ctx, &report), 0);

    CASE("earlier results stand when a later document is broken")
    begin(NULL);
    static const char broken[] = SNAPSHOT(NOW) "\n" SNAPSHOT(NOW) "\n{\"kind\":";
    pl_context_add(ctx, "x", broken, sizeof broken - 1);
    CHECK_INT(pl_context_next(ctx, &report), 1);
    CHECK_INT(pl_context_next(ctx, &report), 1);
    CHECK_INT(pl_context_next(ctx, &report), -1);
    CHECK(strstr(pl_context_error(ctx), "x:3:"));
    CHECK_INT(pl_context_next(ctx, &report), 0);

    CASE("no document at all")
    CHECK_INT(judge(""), 0);
    CHECK_INT(judge(" \n"), 0);

    CASE("what is no document")
    REFUSED("{}", "no kind");
    REFUSED("{\"apiVersion\":\"v1\"}", "no kind");
    REFUSED("[]", "x:1:1");
    REFUSED(LIST("{\"metadata\":{\"name\":\"x\"}}"), "object without kind");
    REFUSED(LIST("3"), "x:1:");
}

/* --- kinds, groups, versions --------------------------------------------------------------------- */

static void kinds_test(void)
{
    CASE("other groups have kinds of these names, too")
    CHECK_INT(judge(CLUSTER KCP "{\"apiVersion\":\"example.com/v7\",\"kind\":\"Cluster\"}"
                    "{\"apiVersion\":\"machine.openshift.io/v1beta1\",\"kind\":\"Machine\"}"
                    "{\"apiVersion\":\"infrastructure.cluster.x-k8s.io/v1beta2\",\"kind\":\"Node\"}"
                    "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"data\":[]}"
                    "{\"apiVersion\":\"controlplane.cluster.x-k8s.io/v1beta2\",\"kind\":\"Machine\"}"),
              1);
    CHECK_INT(report->object_count, 1);
    CHECK_STR(row("cp", "Remediating"), "Remediating/1");

    CASE("versions that cannot be read")
    REFUSED("{\"apiVersion\":\"cluster.x-k8s.io/v1alpha4\",\"kind\":\"Machine\"}", "v1alpha4 is not supported");
    REFUSED("{\"apiVersion\":\"cluster.x-k8s.io/v1\",\"kind\":\"Cluster\"}", "not supported");
    REFUSED("{\"apiVersion\":\"v2\",\"kind\":\"Node\"}", "not supported");
    REFUSED("{\"apiVersion\":\"plimsoll.dev/v2\",\"kind\":\"Snapshot\"}", "expected plimsoll.dev/v1");
    REFUSED("{\"kind\":\"Snapshot\"}", "expected plimsoll.dev/v1");

    CASE("objects without a name")
    REFUSED("{" CAPI ",\"kind\":\"Machine\",\"metadata\":{}}", "Machine without metadata.name");
    REFUSED("{\"apiVersion\":\"v1\",\"kind\":\"Node\"}", "Node without metadata.name");
    REFUSED("{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"\"}}", "Pod without");

    CASE("objects that stand twice")
    REFUSED(MACHINE("cp-0", "a") MACHINE("cp-0", "b"), "Machine default/cp-0 is in the input twice");
    REFUSED(LIST(CLUSTER "," CLUSTER), "Cluster default/alpha is in the input twice");
    REFUSED(SNAPSHOT(NOW ",\"objects\":[" KCP "," KCP "]"), "KubeadmControlPlane default/cp is in the");
    REFUSED(SNAPSHOT(NOW ",\"workloads\":[{\"cluster\":\"default/alpha\",\"nodes\":[" TWICE_NODE "," TWICE_NODE
                         "]}]"),
            "cluster default/alpha has Node n-0 twice");
    REFUSED(SNAPSHOT(NOW ",\"workloads\":[{\"cluster\":\"default/alpha\",\"pods\":[" TWICE_POD "," TWICE_POD
                         "]}]"),
            "cluster default/alpha has Pod kube-system/etcd-n-0 twice");

    CASE("the same name in another namespace is another")
    CHECK_INT(judge(CLUSTER KCP "{" KCP_API ",\"metadata\":{\"namespace\":\"other\",\"name\":\"cp\"}}"), 1);
    CHECK_INT(count_of("KubeadmControlPlane"), 2);

    CASE("what Machines belong to a control plane")
    CHECK_INT(judge(CLUSTER
                    "{" KCP_API ",\"metadata\":{\"namespace\":\"default\",\"name\":\"cp\",\"uid\":\"1\","
                    "\"labels\":{\"cluster.x-k8s.io/cluster-name\":\"alpha\"}}}"
                    "{" CAPI ",\"kind\":\"MachineList\",\"items\":["
                    /* no uid in the reference: by name */
                    "{" MACHINE_META("by-name") "},"
                    /* the same name, another object */
                    "{\"metadata\":{\"namespace\":\"default\",\"name\":\"other-uid\",\"labels\":{"
                    "\"cluster.x-k8s.io/cluster-name\":\"alpha\",\"cluster.x-k8s.io/control-plane\":\"\"},"
                    "\"ownerReferences\":[{\"kind\":\"KubeadmControlPlane\",\"name\":\"cp\",\"uid\":\"2\",\"controller\":true}]}},"
                    /* uid decides over the name */
                    "{\"metadata\":{\"namespace\":\"default\",\"name\":\"by-uid\",\"labels\":{"
                    "\"cluster.x-k8s.io/cluster-name\":\"alpha\",\"cluster.x-k8s.io/control-plane\":\"\"},"
                    "\"ownerReferences\":[{\"kind\":\"KubeadmControlPlane\",\"name\":\"old\",\"uid\":\"1\",\"controller\":true}]}},"
                    /* not the controller */
                    "{\"metadata\":{\"namespace\":\"default\",\"name\":\"not-controller\",\"labels\":{"
                    "\"cluster.x-k8s.io/cluster-name\":\"alpha\",\"cluster.x-k8s.io/control-plane\":\"\"},"
                    "\"ownerReferences\":[{\"kind\":\"KubeadmControlPlane\",\"name\":\"cp\",\"uid\":\"1\"}]}},"
                    /* no control plane label; another cluster */
                    "{\"metadata\":{\"namespace\":\"default\",\"name\":\"no-label\",\"labels\":{"
                    "\"cluster.x-k8s.io/cluster-name\":\"alpha\"},"
                    "\"ownerReferences\":[{\"kind\":\"KubeadmControlPlane\",\"name\":\"cp\",\"uid\":\"1\",\"controller\":true}]}},"
                    "{\"metadata\":{\"namespace\":\"default\",\"name\":\"elsewhere\",\"labels\":{"
                    "\"cluster.x-k8s.io/cluster-name\":\"beta\",\"cluster.x-k8s.io/control-plane\":\"\"},"
                    "\"ownerReferences\":[{\"kind\":\"KubeadmControlPlane\",\"name\":\"cp\",\"uid\":\"1\",\"controller\":true}]}}]}"),
              1);
    CHECK_INT(count_of("Machine"), 2);
    CHECK_STR(report->objects[1].name, "by-name");
    CHECK_STR(report->objects[2].name, "by-uid");
}

/* --- v1beta1 ------------------------------------------------------------------------------------- */

#define OLD_CLUSTER(ready)                                                                   \
    "{" OLD ",\"kind\":\"Cluster\"," CLUSTER_META ",\"spec\":{\"controlPlaneEndpoint\":"     \
    "{\"host\":\"h\",\"port\":1}},\"status\":{\"infrastructureReady\":" ready "}}"
#define OLD_KCP(spec, initialized)                                                           \
    "{" KCP_OLD ",\"metadata\":{\"namespace\":\"default\",\"name\":\"cp\",\"labels\":{"      \
    "\"cluster.x-k8s.io/cluster-name\":\"alpha\"}},\"spec\":{" spec "},\"status\":{"         \
    "\"initialized\":" initialized ",\"conditions\":[{\"type\":\"Available\",\"status\":\"False\"}," \
    "{\"type\":\"Initialized\",\"status\":\"False\",\"severity\":\"Info\"}],"                \
    "\"v1beta2\":{\"conditions\":[{\"type\":\"Initialized\",\"status\":\"True\","            \
    "\"lastTransitionTime\":\"2026-11-14T00:00:00Z\"}]}}}"
#define OLD_MACHINE(more)                                                                    \
    "{" OLD ",\"kind\":\"Machine\"," MACHINE_META("cp-0") ",\"spec\":{\"providerID\":\"p\"},"\
    "\"status\":{\"nodeRef\":{\"name\":\"node-0\"},\"conditions\":[{\"type\":"               \
    "\"HealthCheckSucceeded\",\"status\":\"True\"}],\"v1beta2\":{\"conditions\":[" more "]}}}"
#define NEEDS_REMEDIATION                                                                    \
    "{\"type\":\"HealthCheckSucceeded\",\"status\":\"False\"},"                              \
    "{\"type\":\"OwnerRemediated\",\"status\":\"False\",\"message\":\"soon\"}"

static void v1beta1_test(void)
{
    CASE("v1beta1: conditions are those under status.v1beta2, booleans are where they were")
    CHECK_INT(judge(OLD_CLUSTER("true") OLD_KCP("", "true") OLD_MACHINE(NEEDS_REMEDIATION)
                    NODE("node-0") LIST(PODS("node-0")) NODE("node-1")), 1);
    CHECK_STR(row("cp", "ControlPlaneComponentsHealthy"), "ControlPlaneComponentsHealthy/7");
    CHECK_STR(message("cp", "Remediating"), "* Machine cp-0: soon");

    CASE("v1beta1: infrastructure is not ready")
    CHECK_INT(judge(OLD_CLUSTER("false") OLD_KCP("", "true")), 1);
    CHECK_STR(row("cp", "ControlPlaneComponentsHealthy"), "Ladder/L00");

    CASE("v1beta1: not initialized")
    CHECK_INT(judge(OLD_CLUSTER("true") OLD_KCP("", "false")), 1);
    CHECK_STR(row("cp", "ControlPlaneComponentsHealthy"), "ControlPlaneComponentsHealthy/1");

    CASE("v1beta2: what v1beta1 has elsewhere does not count")
    CHECK_INT(judge("{" CAPI ",\"kind\":\"Cluster\"," CLUSTER_META ",\"status\":{\"infrastructureReady\":true}}" KCP), 1);
    CHECK_STR(row("cp", "ControlPlaneComponentsHealthy"), "Ladder/L00");

    CASE("v1beta1: remediationStrategy has durations")
    CHECK_INT(judge(OLD_CLUSTER("true")
                    OLD_KCP("\"remediationStrategy\":{\"minHealthyPeriod\":\"2h\",\"retryPeriod\":\"10m\",\"maxRetry\":3}", "false")
                    "{" OLD ",\"kind\":\"Machine\",\"metadata\":{\"namespace\":\"default\",\"name\":\"cp-0\",\"labels\":{"
                    "\"cluster.x-k8s.io/cluster-name\":\"alpha\",\"cluster.x-k8s.io/control-plane\":\"\"},"
                    "\"annotations\":{\"controlplane.cluster.x-k8s.io/remediation-for\":"
                    "\"{\\\"machine\\\":\\\"old\\\",\\\"timestamp\\\":\\\"2026-11-15T01:55:00Z\\\",\\\"retryCount\\\":1}\"},"
                    "\"ownerReferences\":[{\"kind\":\"KubeadmControlPlane\",\"name\":\"cp\",\"controller\":true}]},"
                    "\"status\":{\"v1beta2\":{\"conditions\":[" NEEDS_REMEDIATION "]}}}"), 1);
    CHECK_INT(report->remediation_count, 1);
    if (report && report->remediation_count)
        CHECK_STR(report->remediation[0].owner_remediated[0].message,
                  "KubeadmControlPlane can't remediate this machine because the operation already "
                  "failed in the latest 10m0s (RetryPeriodSeconds)");

    CASE("v1beta1: durations that are none")
    REFUSED(OLD_KCP("\"remediationStrategy\":{\"minHealthyPeriod\":\"2 hours\"}", "true"), "minHealthyPeriod");
    REFUSED(OLD_KCP("\"remediationStrategy\":{\"retryPeriod\":\"-5m\"}", "true"), "retryPeriod");

    CASE("external etcd: set at all in v1beta1, with endpoints in v1beta2")
#define EXTERNAL(endpoints) "\"kubeadmConfigSpec\":{\"clusterConfiguration\":{\"etcd\":{\"external\":{" endpoints "}}}}"
    CHECK_INT(judge(OLD_CLUSTER("true") OLD_KCP(EXTERNAL(""), "false")), 1);
    CHECK(!verdict("cp", "EtcdClusterHealthy"));
    CHECK_INT(judge(CLUSTER "{" KCP_API ",\"metadata\":{\"namespace\":\"default\",\"name\":\"cp\","
                    "\"labels\":{\"cluster.x-k8s.io/cluster-name\":\"alpha\"}},\"spec\":{" EXTERNAL("\"endpoints\":[]") "}}"), 1);
    CHECK(verdict("cp", "EtcdClusterHealthy"));
    CHECK_INT(judge(CLUSTER "{" KCP_API ",\"metadata\":{\"namespace\":\"default\",\"name\":\"cp\","
                    "\"labels\":{\"cluster.x-k8s.io/cluster-name\":\"alpha\"}},\"spec\":{" EXTERNAL("\"endpoints\":[\"a\"]") "}}"), 1);
    CHECK(!verdict("cp", "EtcdClusterHealthy"));
}

/* --- values -------------------------------------------------------------------------------------- */

#define WORKLOAD(rest) SNAPSHOT(NOW ",\"objects\":[" CLUSTER "," KCP "," MACHINE("cp-0", "node-0")   \
    "],\"workloads\":[{\"cluster\":\"default/alpha\"," rest "}]")
#define CONNECTED "\"connection\":{\"state\":\"Connected\",\"lastProbeSuccessTime\":\"2026-11-15T01:59:00Z\"}"
#define ALIVE CONNECTED ",\"nodes\":[" NODE("node-0") "],\"pods\":[" PODS("node-0") "]"

static void values_test(void)
{
    CASE("connection states")
    REFUSED(WORKLOAD("\"connection\":{\"state\":\"Up\"}"), "connection state \"Up\"");
    REFUSED(WORKLOAD("\"connection\":{}"), "connection without state");
    REFUSED(WORKLOAD("\"connection\":{\"state\":\"Connected\",\"lastProbeSuccessTime\":\"yesterday\"}"),
            "lastProbeSuccessTime");

    CASE("condition states")
    REFUSED(SNAPSHOT(NOW ",\"objects\":[{" KCP_API ",\"metadata\":{\"name\":\"cp\"},\"status\":{\"conditions\":["
                     "{\"type\":\"Initialized\",\"status\":\"Maybe\"}]}}]"), "condition status \"Maybe\"");

    CASE("the grace period")
    REFUSED(SNAPSHOT(NOW ",\"remoteConditionsGracePeriodSeconds\":119"), "grace period of 119 s");
    REFUSED(SNAPSHOT(NOW ",\"remoteConditionsGracePeriodSeconds\":\"300\""), "remoteConditionsGracePeriodSeconds");
    CHECK_INT(judge(SNAPSHOT(NOW ",\"remoteConditionsGracePeriodSeconds\":120")), 1);

    CASE("retries")
    REFUSED(SNAPSHOT(NOW ",\"objects\":[{" KCP_API ",\"metadata\":{\"name\":\"cp\"},\"spec\":{\"remediation\":"
                     "{\"maxRetry\":-1}}}]"), "maxRetry");

    CASE("a workload says whose it is, once")
    REFUSED(SNAPSHOT(NOW ",\"workloads\":[{\"cluster\":\"alpha\"}]"), "expected namespace/name");
    REFUSED(SNAPSHOT(NOW ",\"workloads\":[{}]"), "expected namespace/name");
    REFUSED(SNAPSHOT(NOW ",\"workloads\":[{\"cluster\":\"a/b\"},{\"cluster\":\"a/b\"}]"), "two workloads for cluster a/b");

    CASE("the instant: the input's, the caller's before it, the clock's for want of either")
    REFUSED(SNAPSHOT("\"now\":\"now\""), "now");
    CHECK_INT(judge_with(NULL, SNAPSHOT("\"name\":\"x\"")), -1);
    CHECK(strstr(pl_context_error(ctx), "no \"now\""));
    CHECK_INT(judge_with(&(struct pl_options){ .clock_ms = 5000 }, SNAPSHOT("\"name\":\"x\"")), 1);
    CHECK_INT(report->now_ms, 5000);
    CHECK_INT(judge_with(&(struct pl_options){ .clock_ms = 5000 }, SNAPSHOT(NOW)), 1);
    CHECK_INT(report->now_ms, now_ms);
    CHECK_INT(judge_with(&(struct pl_options){ .clock_ms = 5000, .now_ms = 7000 }, SNAPSHOT(NOW)), 1);
    CHECK_INT(report->now_ms, 7000);

    CASE("limits")
    CHECK_INT(judge_with(&(struct pl_options){ .objects_max = 2 }, WORKLOAD(ALIVE)), -1);
    CHECK_INT(pl_context_error_code(ctx), PL_LIMIT);
    CHECK_INT(judge_with(&(struct pl_options){ .depth_max = 3 }, WORKLOAD(ALIVE)), -1);
    CHECK_INT(pl_context_error_code(ctx), PL_LIMIT);
    begin(&(struct pl_options){ .bytes_max = 10 });
    CHECK_INT(pl_context_add(ctx, "x", "           ", 11), -1);
    CHECK_INT(pl_context_error_code(ctx), PL_LIMIT);
}

static void ids_test(void)
{
#define ETCD(id, alarm_id)                                                                   \
    WORKLOAD(ALIVE ",\"etcd\":{\"members\":[{\"ID\":" id ",\"name\":\"node-0\"}],"           \
             "\"alarms\":[{\"memberID\":" alarm_id ",\"alarm\":\"NOSPACE\"}]}")

    CASE("member ids use all 64 bits, as text or as numbers")
    CHECK_INT(judge(ETCD("\"18446744073709551615\"", "18446744073709551615")), 1);
    CHECK_STR(message("cp-0", "EtcdMemberHealthy"), "Etcd reports alarms: NOSPACE");
    CHECK_INT(judge(ETCD("9223372036854775809", "\"9223372036854775809\"")), 1);
    CHECK_STR(message("cp-0", "EtcdMemberHealthy"), "Etcd reports alarms: NOSPACE");

    CASE("member ids that a double cannot tell apart")
    CHECK_INT(judge(ETCD("9223372036854775809", "9223372036854775808")), 1);
    CHECK_STR(row("cp-0", "EtcdMemberHealthy"), "EtcdMemberHealthy/3");
    CHECK_STR(message("cp-0", "EtcdMemberHealthy"), "");

    CASE("a large id in YAML without quotes")
    static const char yaml[] =
        "apiVersion: plimsoll.dev/v1\nkind: Snapshot\nnow: \"2026-11-15T02:00:00Z\"\n"
        "objects: [" CLUSTER ", " KCP ", " MACHINE("cp-0", "node-0") "]\n"
        "workloads:\n- cluster: default/alpha\n"
        "  connection: {state: Connected, lastProbeSuccessTime: 2026-11-15T01:59:00Z}\n"
        "  nodes: [" NODE("node-0") "]\n  pods: []\n"
        "  etcd:\n    members: [{ID: 18446744073709551615, name: node-0}, {ID: 10276657743932975437}]\n"
        "    alarms: [{memberID: 18446744073709551615, alarm: CORRUPT}]\n";
    CHECK_INT(judge(yaml), 1);
    CHECK_STR(message("cp-0", "EtcdMemberHealthy"), "Etcd reports alarms: CORRUPT");
    CHECK_STR(message("cp", "EtcdClusterHealthy"),
              "* Machine cp-0:\n  * EtcdMemberHealthy: Etcd reports alarms: CORRUPT\n"
              "* Etcd members do not match Machines: "
              "etcd member 10276657743932975437 (Name not yet assigned) has no Machine");

    CASE("ids that are none")
    REFUSED(ETCD("18446744073709551616", "1"), "ID: expected an id of up to 64 bits");
    REFUSED(ETCD("-1", "1"), "expected an id");
    REFUSED(ETCD("1.0", "1"), "expected an id");
    REFUSED(ETCD("\"0x1\"", "1"), "expected an id");
    REFUSED(ETCD("\"\"", "1"), "expected an id");
    REFUSED(ETCD("1", "true"), "memberID");
}

/* --- loose Nodes and Pods ------------------------------------------------------------------------ */

static void loose_test(void)
{
#define SECOND_CLUSTER "{" CAPI ",\"kind\":\"Cluster\",\"metadata\":{\"namespace\":\"default\",\"name\":\"beta\"}}"
    CASE("Nodes with several Clusters: whose are they?")
    REFUSED(CLUSTER SECOND_CLUSTER NODE("node-0"), "2 Clusters");
    REFUSED(CLUSTER SECOND_CLUSTER POD("etcd-node-0"), "2 Clusters");

    CASE("several Clusters without Nodes are fine")
    CHECK_INT(judge(CLUSTER SECOND_CLUSTER KCP), 1);

    CASE("Pods alone prove no connection")
    CHECK_INT(judge(CLUSTER KCP MACHINE("cp-0", "node-0") LIST(PODS("node-0"))), 1);
    CHECK(!verdict("cp", "ControlPlaneComponentsHealthy"));
    CHECK(report->missing_count > 0);
    if (report->missing_count)
        CHECK_STR(report->missing[0].evidence, "workloads[default/alpha].connection");

    CASE("a worker's Node proves it")
    CHECK_INT(judge(CLUSTER KCP "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"w\"}}"), 1);
    CHECK_STR(row("cp", "ControlPlaneComponentsHealthy"), "ControlPlaneComponentsHealthy/11");

    CASE("without its Cluster, the only control plane tells whose they are: by label, by owner first")
    CHECK_INT(judge(KCP_NAMED("cp", ",\"deletionTimestamp\":\"2026-11-15T01:59:00Z\",\"labels\":{\"cluster.x-k8s.io/cluster-name\":\"alpha\"}")
                    MACHINE("cp-0", "node-0") NODE("node-0") LIST(PODS("node-0"))), 1);
    CHECK_STR(row("cp", "ControlPlaneComponentsHealthy"), "ControlPlaneComponentsHealthy/10");
    CHECK_INT(judge(KCP_NAMED("cp", ",\"deletionTimestamp\":\"2026-11-15T01:59:00Z\",\"ownerReferences\":[{\"kind\":\"Cluster\",\"name\":\"alpha\"}]")
                    MACHINE("cp-0", "node-0") NODE("node-0") LIST(PODS("node-0"))), 1);
    CHECK_STR(row("cp", "ControlPlaneComponentsHealthy"), "ControlPlaneComponentsHealthy/10");

    CASE("Nodes without anybody are nobody's")
    CHECK_INT(judge(NODE("node-0")), 1);
    CHECK_INT(report->object_count, 0);

    CASE("Nodes among a Snapshot's objects do not count")
    CHECK_INT(judge(SNAPSHOT(NOW ",\"objects\":[" CLUSTER "," KCP "," NODE("node-0") "]")), 1);
    CHECK(!verdict("cp", "ControlPlaneComponentsHealthy"));

    CASE("Pods of other namespaces do not count")
    CHECK_INT(judge(WORKLOAD(CONNECTED ",\"nodes\":[" NODE("node-0") "],\"pods\":[{\"apiVersion\":\"v1\",\"kind\":\"Pod\","
                    "\"metadata\":{\"name\":\"etcd-node-0\",\"namespace\":\"default\"},\"status\":{\"phase\":\"Running\"}}]")), 1);
    CHECK_STR(message("cp-0", "EtcdPodHealthy"), "Pod does not exist");
}

/* --- missing evidence ---------------------------------------------------------------------------- */

/* "object condition: evidence" a line, without what all have in common. */
static void missing_is(const char *file, int line, struct world *w, const char *words,
                       const char *want)
{
    char got[4096] = "";
    size_t len = 0;

    world_reset(w);
    if (!world_say(w, words)) {
        test_fail(file, line, "%s", w->error);
        return;
    }
    struct pl_str text = world_text(w, JSON_COMPACT, 0);
    begin(NULL);
    pl_context_add(ctx, "x", text.ptr, text.len);
    if (pl_context_next(ctx, &report) != 1) {
        test_fail(file, line, "%s", pl_context_error(ctx));
        return;
    }
    for (size_t i = 0; i < report->missing_count && len < sizeof got; i++) {
        const struct pl_missing *m = &report->missing[i];
        struct pl_str name = m->object;
        while (name.len && memchr(name.ptr, '/', name.len)) {
            name.ptr++;
            name.len--;
        }
        len += (size_t)snprintf(got + len, sizeof got - len, "%s%.*s %.*s: %.*s", i ? "\n" : "",
                                PL_STR_ARG(name), PL_STR_ARG(m->condition), PL_STR_ARG(m->evidence));
        struct pl_str condition = pl__str_copy(&w->arena, m->condition);
        if (verdict(pl__str_copy(&w->arena, name).ptr, condition.ptr))
            test_fail(file, line, "%s is missing and judged all the same", condition.ptr);
    }
    test_str(file, line, words, pl__str(got), pl__str(want));
}
#define MISSING(words, want) missing_is(__FILE__, __LINE__, w, words, want)

/* Everything of a control plane with one Machine, for want of one thing; "remediation" is for a step
 * that could not be told. */
#define PODS_FOR_WANT_OF(what)                                                           \
    "cp-0 APIServerPodHealthy: " what "\ncp-0 ControllerManagerPodHealthy: " what "\n"   \
    "cp-0 EtcdPodHealthy: " what "\ncp-0 SchedulerPodHealthy: " what
#define ALL_FOR_WANT_OF(what, remediation)                                               \
    "cp ControlPlaneComponentsHealthy: " what "\ncp EtcdClusterHealthy: " what remediation "\n" \
    "cp-0 APIServerPodHealthy: " what "\ncp-0 ControllerManagerPodHealthy: " what "\n"   \
    "cp-0 EtcdMemberHealthy: " what "\ncp-0 EtcdPodHealthy: " what "\n"                  \
    "cp-0 SchedulerPodHealthy: " what
#define W "workloads[default/alpha]"

static void missing_test(struct world *w)
{
    CASE("nothing is missing")
    MISSING("machines=1", "");
    CASE("the workloads entry")
    MISSING("machines=1 missing=workload", ALL_FOR_WANT_OF(W, "\ncp remediation: " W));
    CHECK(verdict("cp", "Deleting"));
    CHECK(verdict("cp", "Remediating"));
    CHECK_INT(report->remediation_count, 0);
    CASE("connection")
    MISSING("machines=1 missing=connection", ALL_FOR_WANT_OF(W ".connection", "\ncp remediation: " W ".connection"));
    CASE("the Cluster")
    MISSING("machines=1 missing=cluster", ALL_FOR_WANT_OF("Cluster/default/alpha", "\ncp remediation: Cluster/default/alpha"));
    CASE("the Cluster is not asked for while deleting")
    MISSING("machines=1 missing=cluster deleting", "");
    CASE("nodes")
    MISSING("machines=1 missing=nodes", ALL_FOR_WANT_OF(W ".nodes", ""));
    CASE("nodes, with an error in their place")
    MISSING("machines=1 missing=nodes nodes-error=E", "");
    CHECK_STR(row("cp", "EtcdClusterHealthy"), "EtcdClusterHealthy/2");
    CASE("pods")
    MISSING("machines=1 missing=pods", "cp ControlPlaneComponentsHealthy: " W ".pods\n" PODS_FOR_WANT_OF(W ".pods"));
    CHECK_STR(row("cp", "EtcdClusterHealthy"), "EtcdClusterHealthy/4");
    CASE("pods, but nobody has to look at them")
    MISSING("machines=1 missing=pods unreachable=node-0", "");
    CASE("pods, one of them with an error")
    MISSING("machines=1 missing=pods pod-error=etcd-node-0:E",
            "cp ControlPlaneComponentsHealthy: " W ".pods\ncp-0 APIServerPodHealthy: " W ".pods\n"
            "cp-0 ControllerManagerPodHealthy: " W ".pods\ncp-0 SchedulerPodHealthy: " W ".pods");
    CHECK_STR(row("cp-0", "EtcdPodHealthy"), "PodHealthy/6");
    CASE("etcd")
    MISSING("machines=1 missing=etcd", "cp EtcdClusterHealthy: " W ".etcd\ncp-0 EtcdMemberHealthy: " W ".etcd");
    CHECK_STR(row("cp", "ControlPlaneComponentsHealthy"), "ControlPlaneComponentsHealthy/10");
    CASE("etcd is not ours")
    MISSING("machines=1 missing=etcd external-etcd", "");
    CASE("etcd, but nobody has to ask it")
    MISSING("machines=1 missing=etcd provisioning=cp-0", "");
    CASE("etcd, and no Node to ask it through: that is an answer")
    MISSING("machines=1 missing=etcd no-node=node-0", "");
    CHECK_STR(row("cp", "EtcdClusterHealthy"), "EtcdClusterHealthy/3");
    CASE("members")
    MISSING("machines=1 missing=etcd.members",
            "cp EtcdClusterHealthy: " W ".etcd.members\ncp-0 EtcdMemberHealthy: " W ".etcd.members");
    CASE("members, with an error in their place")
    MISSING("machines=1 missing=etcd.members members-error=E", "");
    MISSING("machines=1 missing=etcd.members missing=etcd.alarms connect-error=E", "");
    MISSING("machines=1 missing=etcd.members missing=etcd.alarms status-error=E", "");
    CASE("members, and only alarms among the status errors")
    MISSING("machines=1 missing=etcd.members status-error=\"alarm:NOSPACE\"",
            "cp EtcdClusterHealthy: " W ".etcd.members\ncp-0 EtcdMemberHealthy: " W ".etcd.members");
    CASE("alarms")
    MISSING("machines=1 missing=etcd.alarms",
            "cp EtcdClusterHealthy: " W ".etcd.alarms\ncp-0 EtcdMemberHealthy: " W ".etcd.alarms");
    CASE("alarms, with an error in their place")
    MISSING("machines=1 missing=etcd.alarms alarms-error=E", "");
    MISSING("machines=1 missing=etcd.alarms members-error=E", "");
    CASE("rungs that need no workload")
    MISSING("machines=1 missing=workload no-infrastructure", "");
    MISSING("machines=1 missing=workload no-endpoint", "");
    MISSING("machines=1 missing=workload not-initialized", "");
    CHECK_STR(row("cp", "EtcdClusterHealthy"), "Ladder/L1");
    CASE("rungs that need the connection alone")
    MISSING("machines=1 missing=nodes missing=pods missing=etcd state=Failed", "");
    CASE("a remediation step that looks at what is missing")
    MISSING("machines=1 missing=nodes to-remediate=cp-0",
            ALL_FOR_WANT_OF(W ".nodes", "\ncp remediation: Machine/default/cp-0 APIServerPodHealthy"));
    CHECK_INT(report->remediation_count, 0);
    MISSING("machines=2 missing=etcd initialized=False to-remediate=cp-0", "cp remediation: " W ".etcd.members");
    CASE("a deletion step that looks at what is missing: each by its name")
    MISSING("machines=2 missing=etcd.members deleting provisioning=cp-0 provisioning=cp-1",
            "cp Deleting: " W ".etcd.members");
    CHECK_INT(report->deletion_count, 0);
    MISSING("machines=2 missing=etcd deleting provisioning=cp-0 provisioning=cp-1", "cp Deleting: " W ".etcd");
    MISSING("machines=2 missing=etcd.members deleting machine-deleting=cp-0:-1m provisioning=cp-1 no-provider-id=cp-1", "");
    CASE("a deletion step that needs nothing: one Machine, external etcd, a rung")
    MISSING("machines=1 missing=workload deleting", ALL_FOR_WANT_OF(W, ""));
    CHECK_INT(report->deletion_count, 1);
    MISSING("machines=2 missing=nodes missing=etcd deleting external-etcd missing=pods",
            "cp ControlPlaneComponentsHealthy: " W ".nodes\n"
            "cp-0 APIServerPodHealthy: " W ".nodes\ncp-0 ControllerManagerPodHealthy: " W ".nodes\n"
            "cp-0 SchedulerPodHealthy: " W ".nodes\n"
            "cp-1 APIServerPodHealthy: " W ".nodes\ncp-1 ControllerManagerPodHealthy: " W ".nodes\n"
            "cp-1 SchedulerPodHealthy: " W ".nodes");
    MISSING("machines=2 missing=nodes missing=pods missing=etcd deleting state=Failed", "");
    CHECK_INT(report->deletion_count, 1);

    CASE("null is absent, an empty list is an answer")
    CHECK_INT(judge(WORKLOAD(CONNECTED ",\"nodes\":null,\"pods\":[],\"etcd\":{\"members\":[],\"alarms\":[]}")), 1);
    CHECK(!verdict("cp", "ControlPlaneComponentsHealthy"));
    CHECK_INT(judge(WORKLOAD(CONNECTED ",\"nodes\":[],\"pods\":[],\"etcd\":{\"members\":[],\"alarms\":[]}")), 1);
    CHECK_STR(message("cp-0", "EtcdPodHealthy"), "Node node-0 does not exist");
    CHECK_INT(judge(WORKLOAD(ALIVE ",\"etcd\":{\"members\":null,\"alarms\":[]}")), 1);
    CHECK(!verdict("cp", "EtcdClusterHealthy"));
    CHECK_INT(judge(WORKLOAD(ALIVE ",\"etcd\":{\"members\":[],\"alarms\":[]}")), 1);
    CHECK_STR(row("cp", "EtcdClusterHealthy"), "EtcdClusterHealthy/7");
}

/* --- marks and bounds ---------------------------------------------------------------------------- */

static void marks_test(struct world *w)
{
    CASE("a paused Cluster marks what belongs to it")
    world_reset(w);
    world_say(w, "paused deployment=1");
    struct pl_str text = world_text(w, JSON_COMPACT, 0);
    begin(NULL);
    pl_context_add(ctx, "x", text.ptr, text.len);
    CHECK_INT(pl_context_next(ctx, &report), 1);
    for (size_t i = 0; i < report->object_count; i++)
        CHECK(report->objects[i].paused);
    CHECK_INT(report->object_count, 5);

    CASE("observedGeneration only where there is a generation")
    CHECK(verdict("cp", "Deleting")->has_observed_generation);
    CHECK_INT(verdict("cp", "Deleting")->observed_generation, 3);
    CHECK_INT(judge(CLUSTER KCP), 1);
    CHECK(!verdict("cp", "Deleting")->has_observed_generation);

    CASE("stored conditions are read; others' are dropped without harm")
    world_reset(w);
    world_say(w, "stored=Deleting:Unknown:Old:before stored=SomethingElse:True:X");
    text = world_text(w, JSON_COMPACT, 0);
    begin(NULL);
    pl_context_add(ctx, "x", text.ptr, text.len);
    CHECK_INT(pl_context_next(ctx, &report), 1);
    CHECK_INT(verdict("cp", "Deleting")->stored_status, PL_STATUS_UNKNOWN);
    CHECK_STR(verdict("cp", "Deleting")->stored_message, "before");
    CHECK(!verdict("cp", "SomethingElse"));

    CASE("more control plane Machines than can be judged")
    struct pl_arena arena;
    struct pl_buf many;
    pl__arena_init(&arena, NULL, 0);
    for (size_t count = 1000; count <= 1001; count++) {
        pl__buf_init(&many, &arena, SIZE_MAX);
        pl__buf_add(&many, pl__str(CLUSTER KCP "{" CAPI ",\"kind\":\"MachineList\",\"items\":["));
        for (size_t i = 0; i < count; i++)
            pl__buf_printf(&many, "%s{\"metadata\":{\"namespace\":\"default\",\"name\":\"cp-%zu\",\"labels\":{"
                           "\"cluster.x-k8s.io/cluster-name\":\"alpha\",\"cluster.x-k8s.io/control-plane\":\"\"},"
                           "\"ownerReferences\":[{\"kind\":\"KubeadmControlPlane\",\"name\":\"cp\",\"controller\":true}]}}",
                           i ? "," : "", i);
        pl__buf_add_lit(&many, "]}");
        begin(&(struct pl_options){ .clock_ms = now_ms });
        pl_context_add(ctx, "x", many.data, many.len);
        CHECK_INT(pl_context_next(ctx, &report), count == 1000 ? 1 : -1);
    }
    CHECK_INT(pl_context_error_code(ctx), PL_LIMIT);
    pl__arena_release(&arena);
}

int main(void)
{
    struct world *w = world_new();

    pl__time_parse(PL_STR(WORLD_NOW), &now_ms);
    documents_test(w);
    kinds_test();
    v1beta1_test();
    values_test();
    ids_test();
    loose_test();
    missing_test(w);
    marks_test(w);
    pl_context_free(ctx);
    world_free(w);
    return test_end("snapshot");
}
