/* The fleet with made-up API servers and without etcd: everything but the processes. Times are short and real;
 * nothing is asserted about how long anything took, only that it comes. */
#include "test.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "unit/fleet/fake_api.h"
#include "fleet/internal.h"
#include "loop/files.h"

enum { WAIT_MS_MAX = 10 * 1000, QUIET_MS = 700 };

static struct pl_loop *loop;
static struct pl_fleet *fleet;
static struct fake_api fake;
static struct pl_arena arena;
static char directory[64];

static void stopped(void *user)
{
    *(bool *)user = true;
}

static void nothing(uv_timer_t *timer)
{
    (void)timer;
}

/* Turns the loop until the probe holds; false: it did not in time. */
static bool until(bool (*probe)(void))
{
    uv_timer_t tick;
    uint64_t end_ms = pl__loop_mono_ms(loop) + WAIT_MS_MAX;
    bool holds = false;

    uv_timer_init(pl__loop_uv(loop), &tick);
    uv_timer_start(&tick, nothing, 5, 5);
    while (!(holds = probe()) && pl__loop_mono_ms(loop) < end_ms) {
        fake_deliver(&fake, fleet);
        uv_run(pl__loop_uv(loop), UV_RUN_ONCE);
    }
    uv_close((uv_handle_t *)&tick, NULL);
    uv_run(pl__loop_uv(loop), UV_RUN_NOWAIT);
    return holds;
}

static uint64_t quiet_end_ms;
static bool quiet_over(void)
{
    return pl__loop_mono_ms(loop) >= quiet_end_ms;
}
static void rest(void)
{
    uv_update_time(pl__loop_uv(loop));
    quiet_end_ms = pl__loop_mono_ms(loop) + QUIET_MS;
    until(quiet_over);
}

static bool settled(void)
{
    return pl__fleet_counts(fleet).settled && fake.delivered_count == fake.event_count;
}

static struct pl_fleet_options options(uint32_t clusters, uint32_t workers)
{
    return (struct pl_fleet_options){ .directory = directory,
                                      .etcd = "",
                                      .cluster_count = clusters,
                                      .workers = workers,
                                      .boot_ms = 5,
                                      .drain_ms = 5,
                                      .silence_ms = 20,
                                      .patience_ms = 20,
                                      .api = fake_interface(&fake),
                                      .said = fake_said,
                                      .said_user = &fake };
}

static void begin(uint32_t clusters, uint32_t workers)
{
    struct pl_fleet_options o = options(clusters, workers);
    struct pl_error *err = NULL;

    fake_init(&fake);
    loop = pl__loop_new();
    if (pl__fleet_open(loop, &o, &arena, &fleet, &err) < 0) {
        printf("%s\n", pl__error_text(&arena, err).ptr);
        exit(1);
    }
    CHECK(until(settled));
}

static void finish(void)
{
    bool done = false;

    pl__fleet_stop(fleet, stopped, &done);
    for (int i = 0; i < 1000 && !done; i++)
        uv_run(pl__loop_uv(loop), UV_RUN_ONCE);
    CHECK(done);
    pl__fleet_free(fleet);
    pl__loop_free(loop);
    fake_release(&fake);
}

static struct pl_tree *machine(const char *name)
{
    return fake_get(&fake, "", "machines", name);
}

static struct pl_tree *node(const char *name)
{
    return fake_get(&fake, "demo-1", "nodes", name);
}

static struct pl_tree *pod(const char *name)
{
    return fake_get(&fake, "demo-1", "pods", name);
}

/* --- coming up ------------------------------------------------------------------------------------------- */

static void test_up(void)
{
    begin(2, 1);
    CASE("a fleet of two comes up")
    CHECK_INT(fake_count(&fake, "", "clusters"), 2);
    CHECK_INT(fake_count(&fake, "", "machines"), 8);
    CHECK_INT(fake_count(&fake, "", "devmachines"), 8);
    CHECK_INT(fake_count(&fake, "", "kubeadmconfigs"), 8);
    CHECK_INT(fake_count(&fake, "demo-2", "nodes"), 4);
    CHECK_INT(fake_count(&fake, "demo-2", "pods"), 9);
    CHECK(fake_get(&fake, "", "secrets", "demo-1-kubeconfig"));
    CHECK(!fake_get(&fake, "", "secrets", "demo-1-etcd"));

    CASE("a Machine is complete")
    struct pl_tree *m = machine("demo-1-cp-1");
    CHECK_STR(tree_text(tree_at(m, "spec", "providerID", NULL)), "dev:///demo-1-cp-1");
    CHECK_STR(tree_text(tree_at(m, "status", "nodeRef", "name", NULL)), "demo-1-cp-1");
    CHECK_STR(tree_text(tree_at(m, "status", "phase", NULL)), "Running");
    CHECK_STR(fake_condition(m, "HealthCheckSucceeded", "status"), "True");
    CHECK_STR(fake_condition(m, "NodeReady", "status"), "True");
    CHECK_STR(fake_condition(m, "Deleting", "status"), "False");

    CASE("so are its Node and Pods")
    CHECK_STR(fake_condition(node("demo-1-cp-1"), "Ready", "status"), "True");
    CHECK(tree_at(node("demo-1-cp-1"), "metadata", "labels",
                  "node-role.kubernetes.io/control-plane", NULL));
    CHECK_STR(fake_condition(pod("kube-scheduler-demo-1-cp-1"), "Ready", "status"), "True");
    CHECK(!pod("etcd-demo-1-cp-1"));

    CASE("the control plane is initialized and counted")
    struct pl_tree *kcp = fake_get(&fake, "", "kubeadmcontrolplanes", "demo-1-cp");
    CHECK_STR(fake_condition(kcp, "Initialized", "status"), "True");
    CHECK_INT(tree_int(tree_at(kcp, "status", "readyReplicas", NULL), -1), 3);
    CHECK(tree_at(kcp, "spec", "kubeadmConfigSpec", "clusterConfiguration", "etcd", "external",
                  NULL));
    CHECK_INT(tree_int(tree_at(fake_get(&fake, "", "machinedeployments", "demo-1-md"), "status",
                               "readyReplicas", NULL),
                       -1),
              1);

    CASE("without etcd it says so, and how to get it")
    CHECK(pl__fleet_without_etcd(fleet) &&
          strstr(pl__fleet_without_etcd(fleet), "apt install etcd-server"));
    CHECK_INT(pl__fleet_etcd_port(fleet), 0);

    CASE("when all is well nothing is written")
    size_t before = fake.log.len;
    rest();
    CHECK_INT(fake.log.len, before);
    finish();
}

static void test_same_twice(void)
{
    char *first;

    CASE("equal clusters get equal calls")
    /* One, and no workers: whose turn it is, and when Machines come a turn later, the clock decides. */
    begin(1, 0);
    first = strdup(pl__buf_str(&fake.log).ptr);
    finish();
    begin(1, 0);
    CHECK_STR(pl__buf_str(&fake.log), first);
    finish();
    free(first);
}

/* --- faults ------------------------------------------------------------------------------------------------- */

static bool scheduler_crashes(void)
{
    return pl__str_equal(fake_condition(pod("kube-scheduler-demo-1-cp-1"), "Ready", "status"),
                         PL_STR("False"));
}
static bool scheduler_runs(void)
{
    return pl__str_equal(fake_condition(pod("kube-scheduler-demo-1-cp-1"), "Ready", "status"),
                         PL_STR("True"));
}
static bool scheduler_gone(void)
{
    return !pod("kube-scheduler-demo-1-cp-1");
}
static bool node_lost(void)
{
    return pl__str_equal(fake_condition(node("demo-1-cp-2"), "Ready", "status"), PL_STR("Unknown"));
}
static bool node_gone(void)
{
    return !node("demo-1-cp-2");
}
static bool marked(void)
{
    return pl__str_equal(fake_condition(machine("demo-1-cp-2"), "HealthCheckSucceeded", "status"),
                         PL_STR("False")) &&
           pl__str_equal(fake_condition(machine("demo-1-cp-2"), "OwnerRemediated", "reason"),
                         PL_STR("WaitingForRemediation"));
}
static bool unmarked(void)
{
    return pl__str_equal(fake_condition(machine("demo-1-cp-2"), "HealthCheckSucceeded", "status"),
                         PL_STR("True")) &&
           fake_condition(machine("demo-1-cp-2"), "OwnerRemediated", "reason").len == 0;
}

/* "key:effect=value " of each. */
static struct pl_str taints(const char *name)
{
    const struct pl_tree *list = tree_at(node(name), "spec", "taints", NULL);
    struct pl_buf text;

    pl__buf_init(&text, &fake.arena, 1 << 16);
    for (const struct pl_tree *t = list ? list->first : NULL; t; t = t->next)
        pl__buf_printf(&text, "%.*s:%.*s=%.*s ", PL_STR_ARG(tree_text(tree_get(t, "key"))),
                       PL_STR_ARG(tree_text(tree_get(t, "effect"))),
                       PL_STR_ARG(tree_text(tree_get(t, "value"))));
    return pl__buf_str(&text);
}

static bool second_scheduler_there(void)
{
    return pod("kube-scheduler-demo-1-cp-2");
}
static bool third_scheduler_gone(void)
{
    return !pod("kube-scheduler-demo-1-cp-3");
}
static bool third_scheduler_runs(void)
{
    return pl__str_equal(fake_condition(pod("kube-scheduler-demo-1-cp-3"), "Ready", "status"),
                         PL_STR("True"));
}

static void test_faults(void)
{
    static char long_word[300];

    memset(long_word, 'w', sizeof long_word - 1);
    begin(1, 0);
    CASE("a Pod crashes, and does not any more")
    fake_fault(&fake, "demo-1", "pods", "kube-scheduler-demo-1-cp-1", "pod-crash");
    CHECK(until(scheduler_crashes));
    struct pl_tree *status =
        tree_at(pod("kube-scheduler-demo-1-cp-1"), "status", "containerStatuses", NULL);
    CHECK_STR(tree_text(tree_at(status->first, "state", "waiting", "reason", NULL)),
              "CrashLoopBackOff");
    CHECK_STR(fake_condition(pod("kube-apiserver-demo-1-cp-1"), "Ready", "status"), "True");
    fake_fault(&fake, "demo-1", "pods", "kube-scheduler-demo-1-cp-1", NULL);
    CHECK(until(scheduler_runs));

    CASE("a Pod that is gone stays gone; its fault moves to the Machine")
    fake_fault(&fake, "demo-1", "pods", "kube-scheduler-demo-1-cp-1", "pod-gone");
    CHECK(until(scheduler_gone));
    rest();
    CHECK(scheduler_gone());
    CHECK_STR(tree_text(tree_at(machine("demo-1-cp-1"), "metadata", "annotations",
                                FLEET_FAULT_ANNOTATION, NULL)),
              "pod-gone:kube-scheduler");
    fake_fault(&fake, "", "machines", "demo-1-cp-1", NULL);
    CHECK(until(scheduler_runs));

    CASE("a Pod that somebody deletes comes back: it is a mirror")
    struct pl_str uid =
        tree_text(tree_at(pod("kube-scheduler-demo-1-cp-1"), "metadata", "uid", NULL));
    fake_delete(&fake, "demo-1", "pods", "kube-scheduler-demo-1-cp-1");
    CHECK(until(scheduler_runs));
    CHECK(!pl__str_equal(
        uid, tree_text(tree_at(pod("kube-scheduler-demo-1-cp-1"), "metadata", "uid", NULL))));

    CASE("a silent kubelet: the Node is lost, the Machine unhealthy, and back")
    CHECK_STR(taints("demo-1-cp-2"), "node-role.kubernetes.io/control-plane:NoSchedule= ");
    fake_merge(&fake, "demo-1", "nodes", "demo-1-cp-2",
               "{\"spec\":{\"taints\":[{\"key\":\"mine\",\"effect\":\"NoExecute\",\"value\":"
               "\"\\\"x\\\"\"}]}}");
    fake_fault(&fake, "demo-1", "nodes", "demo-1-cp-2", "kubelet-down");
    CHECK(until(node_lost));
    CHECK_STR(taints("demo-1-cp-2"), "mine:NoExecute=\"x\" "
                                     "node.kubernetes.io/unreachable:NoSchedule= "
                                     "node.kubernetes.io/unreachable:NoExecute= ");
    CHECK(until(marked));
    CHECK_STR(fake_condition(machine("demo-1-cp-2"), "NodeReady", "status"), "Unknown");
    fake_fault(&fake, "demo-1", "nodes", "demo-1-cp-2", NULL);
    CHECK(until(unmarked));
    CHECK_STR(fake_condition(node("demo-1-cp-2"), "Ready", "status"), "True");
    CHECK_STR(taints("demo-1-cp-2"), "mine:NoExecute=\"x\" ");

    CASE("a Node that is gone by a fault comes back without it")
    fake_fault(&fake, "demo-1", "nodes", "demo-1-cp-2", "node-gone");
    CHECK(until(node_gone));
    CHECK(until(marked));
    CHECK_STR(fake_condition(machine("demo-1-cp-2"), "HealthCheckSucceeded", "reason"),
              "NodeDeleted");

    CASE("its Pods are the Node's: they come back with it, not before")
    fake_delete(&fake, "demo-1", "pods", "kube-scheduler-demo-1-cp-2");
    rest();
    CHECK(!pod("kube-scheduler-demo-1-cp-2"));
    fake_fault(&fake, "", "machines", "demo-1-cp-2", NULL);
    CHECK(until(unmarked));
    CHECK(node("demo-1-cp-2"));
    CHECK(until(second_scheduler_there));
    struct pl_tree *owner =
        tree_at(pod("kube-scheduler-demo-1-cp-2"), "metadata", "ownerReferences", NULL);
    CHECK(owner && pl__str_equal(tree_text(tree_get(owner->first, "uid")),
                                 tree_text(tree_at(node("demo-1-cp-2"), "metadata", "uid", NULL))));

    CASE("what the owner says of its remediation is not overwritten")
    fake_fault(&fake, "", "machines", "demo-1-cp-2", "unhealthy");
    CHECK(until(marked));
    fake_merge(&fake, "", "machines", "demo-1-cp-2",
               "{\"status\":{\"conditions\":[{\"type\":\"HealthCheckSucceeded\",\"status\":"
               "\"False\",\"reason\":\"X\"},{\"type\":\"OwnerRemediated\",\"status\":\"False\","
               "\"reason\":\"RemediationDeferred\"}]}}");
    rest();
    CHECK_STR(fake_condition(machine("demo-1-cp-2"), "OwnerRemediated", "reason"),
              "RemediationDeferred");
    fake_fault(&fake, "", "machines", "demo-1-cp-2", NULL);
    CHECK(until(unmarked));

    CASE("an unknown fault is named and does nothing")
    fake_fault(&fake, "", "machines", "demo-1-cp-3", "meteor");
    rest();
    CHECK(strstr(pl__buf_str(&fake.said).ptr, "there is no fault \"meteor\" for a Machine"));
    CHECK_STR(fake_condition(machine("demo-1-cp-3"), "HealthCheckSucceeded", "status"), "True");

    CASE("a fault moves beside any text, and not beside one that is too long")
    fake_fault(&fake, "", "machines", "demo-1-cp-3", "x\\\"y");
    fake_fault(&fake, "demo-1", "pods", "kube-scheduler-demo-1-cp-3", "pod-gone");
    CHECK(until(third_scheduler_gone));
    CHECK_STR(tree_text(tree_at(machine("demo-1-cp-3"), "metadata", "annotations",
                                FLEET_FAULT_ANNOTATION, NULL)),
              "x\"y,pod-gone:kube-scheduler");
    fake_fault(&fake, "", "machines", "demo-1-cp-3", NULL);
    CHECK(until(third_scheduler_runs));
    fake_fault(&fake, "", "machines", "demo-1-cp-3", long_word);
    rest();
    size_t said = fake.said.len;
    fake_merge(&fake, "", "machines", "demo-1-cp-3", "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}");
    rest();
    CHECK_INT(fake.said.len, said); /* once is enough */
    fake_fault(&fake, "demo-1", "pods", "kube-scheduler-demo-1-cp-3", "pod-gone");
    rest();
    CHECK(third_scheduler_runs()); /* its fault would go with it */
    CHECK(strstr(pl__buf_str(&fake.said).ptr, "no room for pod-gone:kube-scheduler"));
    fake_fault(&fake, "", "machines", "demo-1-cp-3", NULL);
    CHECK(until(third_scheduler_gone));
    fake_fault(&fake, "", "machines", "demo-1-cp-3", NULL);
    CHECK(until(third_scheduler_runs));

    CASE("the network of a cluster, as the front sees it")
    fake_fault(&fake, "", "clusters", "demo-1", "network-slow:1500,nodes-refused");
    rest();
    struct pl_fleet_gate gate = pl__fleet_gate(fleet, PL_STR("demo-1"));
    CHECK_INT(gate.delay_ms, 1500);
    CHECK(gate.nodes_forbidden && !gate.cut);
    CHECK(!pl__fleet_gate(fleet, PL_STR("demo-7")).nodes_forbidden);
    fake_fault(&fake, "", "clusters", "demo-1", "network-cut");
    rest();
    gate = pl__fleet_gate(fleet, PL_STR("demo-1"));
    CHECK(gate.cut && !gate.nodes_forbidden && gate.delay_ms == 0);
    fake_fault(&fake, "", "clusters", "demo-1", NULL);
    rest();
    CHECK(!pl__fleet_gate(fleet, PL_STR("demo-1")).cut);
    finish();
}

static void test_fault_words(void)
{
    static const struct {
        const char *text;
        unsigned on;
        const char *bad; /* NULL: fine */
    } cases[] = {
        { "", FAULT_ON_NODE, NULL },
        { "etcd-kill", FAULT_ON_MACHINE, NULL },
        { "etcd-kill", FAULT_ON_POD, NULL },
        { " etcd-kill , kubelet-down ", FAULT_ON_NODE, NULL },
        { "pod-crash:etcd,pod-gone:kube-scheduler", FAULT_ON_MACHINE, NULL },
        { "pod-crash:kube-proxy", FAULT_ON_MACHINE, "pod-crash:kube-proxy" },
        { "etcd-ghost", FAULT_ON_CLUSTER, NULL },
        { "etcd-ghost", FAULT_ON_MACHINE, "etcd-ghost" },
        { "kubelet-down", FAULT_ON_POD, "kubelet-down" },
        { "kubelet-down:5", FAULT_ON_NODE, "kubelet-down:5" },
        { "network-slow:5", FAULT_ON_CLUSTER, NULL },
        { "network-slow:soon", FAULT_ON_CLUSTER, "network-slow:soon" },
        { "network-slow:60001", FAULT_ON_CLUSTER, "network-slow:60001" },
        { "etcd-stop,nonsense", FAULT_ON_MACHINE, "nonsense" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pl_str word = { "", 0 };
        CASE("fault \"%s\" on %u", cases[i].text, cases[i].on)
        bool fine = pl__fleet_fault_check(pl__str(cases[i].text), cases[i].on, &word);
        CHECK_INT(fine, cases[i].bad == NULL);
        if (cases[i].bad)
            CHECK_STR(word, cases[i].bad);
    }
    CASE("every fault can be put somewhere and says what it does")
    for (size_t i = 0; i < pl__fleet_fault_count; i++) {
        const struct pl_fleet_fault *f = &pl__fleet_faults[i];
        struct fault_set set = { 0 }, none = { 0 };
        unsigned on = f->on & -f->on;
        pl__faults_add(&set, pl__str(f->name), on, POD_ETCD);
        CHECK(memcmp(&set, &none, sizeof set) != 0);
        CHECK(f->does[0] && f->undone[0]);
    }
}

/* --- Machines go ---------------------------------------------------------------------------------------------- */

static bool waits_at_hook(void)
{
    return pl__str_equal(fake_condition(machine("demo-1-cp-1"), "Deleting", "reason"),
                         PL_STR("WaitingForPreTerminateHook"));
}
static bool first_gone(void)
{
    return !machine("demo-1-cp-1");
}
static bool second_waits(void)
{
    return pl__str_equal(fake_condition(machine("demo-1-cp-2"), "Deleting", "reason"),
                         PL_STR("WaitingForPreTerminateHook"));
}
static bool one_left(void)
{
    return fake_count(&fake, "", "machines") == 1;
}
static bool replaced(void)
{
    return machine("demo-1-cp-4") && machine("demo-1-cp-5") && settled();
}

static void hook_drop(const char *name)
{
    fake_merge(&fake, "", "machines", name,
               "{\"metadata\":{\"annotations\":{\"pre-terminate.delete.hook.machine.cluster.x-k8s."
               "io/kcp-cleanup\":null}}}");
}

static void test_leaving(void)
{
    static const char *const kcp_patch =
        "{\"metadata\":{\"annotations\":{\"controlplane.cluster.x-k8s.io/"
        "remediation-in-progress\":%s}}}";
    char patch[200];

    begin(1, 0);
    CASE("a deleted Machine waits for its hook")
    snprintf(patch, sizeof patch, kcp_patch, "\"{}\"");
    fake_merge(&fake, "", "kubeadmcontrolplanes", "demo-1-cp", patch);
    fake_delete(&fake, "", "machines", "demo-1-cp-1");
    CHECK(until(waits_at_hook));
    rest();
    CHECK(waits_at_hook());
    CHECK(node("demo-1-cp-1"));
    CHECK(tree_at(node("demo-1-cp-1"), "spec", "unschedulable", NULL)); /* it was drained */
    CHECK(tree_at(machine("demo-1-cp-1"), "status", "deletion", "nodeDrainStartTime", NULL));

    CASE("without the hook it goes, with all that belongs to it")
    hook_drop("demo-1-cp-1");
    CHECK(until(first_gone));
    CHECK(!node("demo-1-cp-1"));
    CHECK_INT(fake_count(&fake, "demo-1", "pods"), 6);
    CHECK(!fake_get(&fake, "", "devmachines", "demo-1-cp-1"));
    CHECK(!fake_get(&fake, "", "kubeadmconfigs", "demo-1-cp-1"));

    CASE("nothing goes on while the Cluster is paused")
    fake_merge(&fake, "", "clusters", "demo-1", "{\"spec\":{\"paused\":true}}");
    fake_delete(&fake, "", "machines", "demo-1-cp-2");
    rest();
    CHECK_STR(fake_condition(machine("demo-1-cp-2"), "Deleting", "status"), "False");
    fake_merge(&fake, "", "clusters", "demo-1", "{\"spec\":{\"paused\":null}}");
    CHECK(until(second_waits));
    hook_drop("demo-1-cp-2");
    CHECK(until(one_left));

    CASE("while a remediation is in progress nobody else makes the replacement")
    rest();
    CHECK_INT(fake_count(&fake, "", "machines"), 1);

    CASE("else the control plane is scaled up again")
    snprintf(patch, sizeof patch, kcp_patch, "null");
    fake_merge(&fake, "", "kubeadmcontrolplanes", "demo-1-cp", patch);
    CHECK(until(replaced));
    CHECK_STR(fake_condition(node("demo-1-cp-4"), "Ready", "status"), "True");
    finish();
}

static bool kcp_deletes(void)
{
    return tree_at(fake_get(&fake, "", "kubeadmcontrolplanes", "demo-1-cp"), "metadata",
                   "deletionTimestamp", NULL);
}
static bool machines_gone(void)
{
    return fake_count(&fake, "", "machines") == 0;
}
static bool cluster_gone(void)
{
    return fake.removed_clusters == 1 && fake_count(&fake, "", "clusters") == 0;
}
static bool only_hold_left(const struct pl_tree *object)
{
    const struct pl_tree *list = tree_at(object, "metadata", "finalizers", NULL);

    return pl__tree_count(list) == 1 &&
           pl__str_equal(tree_text(list->first), PL_STR("example.com/hold"));
}
static bool worker_held(void)
{
    return only_hold_left(machine("demo-1-md-1-4")) && !node("demo-1-md-1-4") &&
           !fake_get(&fake, "", "devmachines", "demo-1-md-1-4");
}
static bool guest_has_both(void)
{
    return pl__tree_count(tree_at(machine("guest"), "metadata", "finalizers", NULL)) == 2;
}
static bool cluster_held(void)
{
    return only_hold_left(fake_get(&fake, "", "clusters", "demo-1"));
}

static int make(const char *plural, const char *text)
{
    struct pl_fleet_api api = fake_interface(&fake);
    struct pl_fleet_call call = {
        .verb = FLEET_CREATE, .plural = plural, .cluster = PL_STR(""), .body = pl__str(text)
    };
    struct pl_str body = { "", 0 };

    return api.call(&fake, &call, &arena, &body);
}

static void control_plane_remove(void)
{
    for (int i = 1; i <= 3; i++) {
        char name[32];
        snprintf(name, sizeof name, "demo-1-cp-%d", i);
        hook_drop(name);
        fake_delete(&fake, "", "machines", name);
    }
    CHECK(until(machines_gone));
    fake_merge(&fake, "", "kubeadmcontrolplanes", "demo-1-cp",
               "{\"metadata\":{\"finalizers\":null}}");
}

static void test_finalizers(void)
{
    begin(1, 1);
    CASE("a Machine that somebody else holds ends, and its object stays until that one lets go")
    fake_merge(&fake, "", "machines", "demo-1-md-1-4",
               "{\"metadata\":{\"finalizers\":[\"machine.cluster.x-k8s.io\","
               "\"example.com/hold\"]}}");
    fake_delete(&fake, "", "machines", "demo-1-md-1-4");
    CHECK(until(worker_held));
    rest();
    CHECK(worker_held());
    if (machine("demo-1-md-1-4"))
        fake_merge(&fake, "", "machines", "demo-1-md-1-4", "{\"metadata\":{\"finalizers\":null}}");
    CHECK(!machine("demo-1-md-1-4"));

    CASE("one that comes with a finalizer gets ours beside it")
    CHECK_INT(make("machines", "{\"kind\":\"Machine\",\"metadata\":{\"name\":\"guest\","
                               "\"namespace\":\"default\",\"finalizers\":[\"example.com/hold\"],"
                               "\"labels\":{\"cluster.x-k8s.io/cluster-name\":\"demo-1\"}},"
                               "\"spec\":{}}"),
              201);
    CHECK(until(guest_has_both));
    fake_delete(&fake, "", "machines", "guest");
    if (machine("guest"))
        fake_merge(&fake, "", "machines", "guest",
                   "{\"metadata\":{\"finalizers\":[\"machine.cluster.x-k8s.io\"]}}");

    CASE("so with a Cluster")
    fake_merge(&fake, "", "clusters", "demo-1",
               "{\"metadata\":{\"finalizers\":[\"example.com/hold\","
               "\"cluster.cluster.x-k8s.io\"]}}");
    fake_delete(&fake, "", "clusters", "demo-1");
    CHECK(until(kcp_deletes));
    control_plane_remove();
    CHECK(until(cluster_held));
    rest();
    size_t before = fake.log.len;
    rest();
    CHECK_INT(fake.log.len, before); /* there is nothing more to do */
    if (fake_get(&fake, "", "clusters", "demo-1"))
        fake_merge(&fake, "", "clusters", "demo-1", "{\"metadata\":{\"finalizers\":null}}");
    CHECK(until(cluster_gone));
    finish();
}

static bool second_life(void)
{
    return fake_get(&fake, "", "secrets", "demo-1-kubeconfig") && machine("demo-1-cp-6") &&
           settled();
}

static void test_control_plane_anew(void)
{
    begin(1, 0);
    CASE("a control plane that is deleted and made anew comes up like the first")
    fake_delete(&fake, "", "kubeadmcontrolplanes", "demo-1-cp");
    control_plane_remove();
    /* What it owned is the garbage collector's. */
    fake_delete(&fake, "", "secrets", "demo-1-kubeconfig");
    rest();
    CHECK_INT(make("kubeadmcontrolplanes",
                   "{\"kind\":\"KubeadmControlPlane\",\"metadata\":{\"name\":\"demo-1-cp\","
                   "\"namespace\":\"default\",\"labels\":{\"cluster.x-k8s.io/cluster-name\":"
                   "\"demo-1\"}},\"spec\":{\"replicas\":3,\"kubeadmConfigSpec\":{"
                   "\"clusterConfiguration\":{\"etcd\":{\"external\":{}}}}}}"),
              201);
    CHECK(until(second_life));
    struct pl_tree *kcp = fake_get(&fake, "", "kubeadmcontrolplanes", "demo-1-cp");
    CHECK_STR(fake_condition(kcp, "Initialized", "status"), "True");
    CHECK_INT(tree_int(tree_at(kcp, "status", "readyReplicas", NULL), -1), 3);
    finish();
}

/* --- bounds ----------------------------------------------------------------------------------------------------- */

static bool crowd_settled(void)
{
    return fake_count(&fake, "", "machines") == 103 && settled();
}
static bool only_first_known(void)
{
    return fleet->cluster_count == 1;
}
static bool nobodys_runs(void)
{
    return fake_get(&fake, "", "machines", "m") && fleet->cluster_count == 2;
}

static void test_bounds(void)
{
    char name[64];
    struct fake_object *o;

    begin(1, 100);
    CASE("more Machines than a cluster may have: none is made without end, none is forgotten")
    fleet->options.drain_ms = 300;
    for (size_t i = 0; (o = fake_nth(&fake, "", "machines", i)); i++) {
        if (!pl__str_contains(o->name, PL_STR("-md-")))
            continue;
        snprintf(name, sizeof name, "%.*s", PL_STR_ARG(o->name));
        fake_delete(&fake, "", "machines", name);
    }
    CHECK(until(crowd_settled));
    CHECK_INT(fleet->clusters[0]->machine_count, 103);
    CHECK(strstr(pl__buf_str(&fake.said).ptr, "no more are made"));
    finish();

    begin(1, 0);
    CASE("a Machine of a Cluster that is not there leaves nothing")
    CHECK_INT(make("machines", "{\"kind\":\"Machine\",\"metadata\":{\"name\":\"m\",\"namespace\":"
                               "\"default\",\"labels\":{\"cluster.x-k8s.io/cluster-name\":"
                               "\"bogus\"}},\"spec\":{}}"),
              201);
    CHECK(until(nobodys_runs));
    rest();
    fake_delete(&fake, "", "machines", "m");
    CHECK(until(only_first_known));
    CHECK_INT(fake.removed_clusters, 1);
    CHECK(settled());
    finish();
}

static bool one_worker(void)
{
    return fake_count(&fake, "", "machines") == 4 && settled();
}
static bool four_workers(void)
{
    return fake_count(&fake, "", "machines") == 7 && settled();
}

static void test_workers_and_end(void)
{
    begin(1, 2);
    CASE("a MachineDeployment is scaled up and down")
    fake_merge(&fake, "", "machinedeployments", "demo-1-md", "{\"spec\":{\"replicas\":4}}");
    CHECK(until(four_workers));
    fake_merge(&fake, "", "machinedeployments", "demo-1-md", "{\"spec\":{\"replicas\":1}}");
    CHECK(until(one_worker));
    CHECK(machine("demo-1-md-1-4")); /* the oldest one: three come before it in the cluster */

    CASE("a deleted Cluster: workers, control plane, then everything")
    fake_delete(&fake, "", "clusters", "demo-1");
    CHECK(until(kcp_deletes));
    CHECK_INT(fake_count(&fake, "", "machines"), 3);
    control_plane_remove();
    CHECK(until(cluster_gone));
    CHECK_INT(fake_count(&fake, "", "secrets"), 0);
    CHECK_INT(fake_count(&fake, "", "machinesets"), 0);
    finish();
}

static bool adopted(void)
{
    return fake_get(&fake, "", "machines", "own-cp-1") && settled() &&
           fake_count(&fake, "own", "nodes") == 1;
}

static int said_count(const char *part)
{
    int count = 0;

    for (const char *at = pl__buf_str(&fake.said).ptr; (at = strstr(at, part)); at++)
        count++;
    return count;
}

static void test_adoption(void)
{
    begin(1, 0);
    CASE("a Cluster that somebody else makes gets its Machines, too")
    CHECK_INT(make("clusters",
                   "{\"kind\":\"Cluster\",\"metadata\":{\"name\":\"own\",\"namespace\":"
                   "\"default\"},\"spec\":{\"controlPlaneRef\":{\"name\":\"own-cp\"}}}"),
              201);
    CHECK_INT(make("kubeadmcontrolplanes",
                   "{\"kind\":\"KubeadmControlPlane\",\"metadata\":{\"name\":\"own-cp\","
                   "\"namespace\":\"default\",\"labels\":{\"cluster.x-k8s.io/cluster-name\":"
                   "\"own\"}},\"spec\":{\"replicas\":1,\"kubeadmConfigSpec\":{"
                   "\"clusterConfiguration\":{\"etcd\":{\"external\":{}}}}}}"),
              201);
    CHECK(until(adopted));

    CASE("a Cluster whose name cannot be served is refused in a line, and nothing more")
    CHECK_INT(make("clusters", "{\"kind\":\"Cluster\",\"metadata\":{\"name\":\"" FAKE_REFUSED
                               "\",\"namespace\":\"default\"}}"),
              201);
    CHECK_INT(make("machines",
                   "{\"kind\":\"Machine\",\"metadata\":{\"name\":\"m\",\"namespace\":\"default\","
                   "\"labels\":{\"cluster.x-k8s.io/cluster-name\":\"" FAKE_REFUSED "\"}}}"),
              201);
    rest();
    CHECK_INT(said_count("Cluster " FAKE_REFUSED), 1);
    CHECK_INT(pl__fleet_counts(fleet).clusters, 2);

    CASE("an API server that fails is tried again, and nothing is lost")
    fake.refuse = "nodes";
    fake_fault(&fake, "demo-1", "nodes", "demo-1-cp-2", "kubelet-down");
    rest();
    CHECK(!node_lost());
    fake.refuse = NULL;
    CHECK(until(node_lost));

    CASE("lines that are no events harm nobody")
    pl__fleet_event(fleet, PL_STR(""), PL_STR("{\"type\":"));
    pl__fleet_event(fleet, PL_STR(""), PL_STR("{\"type\":\"ADDED\",\"object\":7}"));
    pl__fleet_event(fleet, PL_STR("nowhere"),
                    PL_STR("{\"type\":\"ADDED\",\"object\":{\"kind\":\"Node\"}}"));
    CHECK(until(settled));
    finish();
}

/* --- the directory ------------------------------------------------------------------------------------------- */

static pid_t sleeper(const char *argument)
{
    pid_t pid = fork();

    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", "while :; do sleep 0.05; done", argument, (char *)NULL);
        _exit(1);
    }
    for (int i = 0; i < 100; i++) { /* until it is that program */
        char path[64];
        struct pl_str command = { "", 0 };
        snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
        FILE *file = fopen(path, "r");
        char name[32] = "";
        if (file) {
            command = pl__str(fgets(name, sizeof name, file) ? name : "");
            fclose(file);
        }
        if (pl__str_equal(command, PL_STR("sh\n")))
            break;
        nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
    }
    return pid;
}

static void test_directory(void)
{
    char path[128], data[128];
    struct pl_fleet *second = NULL;
    struct pl_error *err = NULL;

    CASE("what a playground left that crashed is ended, and nobody else")
    snprintf(data, sizeof data, "--data-dir=%s/etcd/demo-1/x", directory);
    snprintf(path, sizeof path, "--data-dir=/elsewhere%s/etcd/demo-1/x", directory);
    pid_t ours = sleeper(data), others = sleeper(path);
    /* Its parent is init then; here it is us, who have to take notice of its end. */
    signal(SIGCHLD, SIG_IGN);
    begin(1, 0);
    CHECK_INT(kill(ours, 0), -1);
    CHECK_INT(kill(others, 0), 0);
    signal(SIGCHLD, SIG_DFL);
    kill(others, SIGKILL);
    waitpid(others, NULL, 0);

    CASE("one fleet a directory")
    struct pl_fleet_options o = options(1, 0);
    snprintf(data, sizeof data, "%s/etcd/demo-1", directory);
    CHECK_INT(mkdir(data, 0700), 0);
    CHECK_INT(pl__fleet_open(loop, &o, &arena, &second, &err), -1);
    CHECK(err && strstr(pl__error_text(&arena, err).ptr, "another playground runs"));
    CHECK_INT(access(data, F_OK), 0); /* what the first one has is left alone */
    finish();

    CASE("bad options are refused")
    loop = pl__loop_new();
    o.replicas = FLEET_REPLICAS_MAX + 1;
    CHECK_INT(pl__fleet_open(loop, &o, &arena, &second, &err), -1);
    o = options(FLEET_CLUSTERS_MAX + 1, 0);
    CHECK_INT(pl__fleet_open(loop, &o, &arena, &second, &err), -1);
    o = options(1, 0);
    o.directory = "/nonexistent/plimsoll";
    CHECK_INT(pl__fleet_open(loop, &o, &arena, &second, &err), -1);
    pl__loop_free(loop);
}

static void test_pki(void)
{
    char *ca = NULL, *ca_key = NULL, *cert = NULL, *key = NULL, name[66] = "";

    CASE("a certificate of our authority is one")
    CHECK_INT(pl__pki_authority("etcd-ca", pl__loop_wall_ms(), &ca, &ca_key), 0);
    CHECK_INT(
        pl__pki_issue(ca, ca_key, "n1", "DNS:n1,IP:127.64.0.1", pl__loop_wall_ms(), &cert, &key),
        0);
    CHECK(cert && strstr(cert, "BEGIN CERTIFICATE") && key && strstr(key, "PRIVATE KEY"));
    free(cert);
    free(key);
    CASE("names may be longer than the 64 bytes of a CN")
    memset(name, 'a', sizeof name - 1);
    CHECK_INT(pl__pki_issue(ca, ca_key, name, "DNS:n1", pl__loop_wall_ms(), &cert, &key), 0);
    free(cert);
    free(key);
    CASE("what is no authority issues nothing")
    CHECK_INT(pl__pki_issue("nonsense", ca_key, "n1", "DNS:n1", pl__loop_wall_ms(), &cert, &key),
              -1);
    CHECK(!cert && !key);
    free(ca);
    free(ca_key);
}

int main(void)
{
    pl__arena_init(&arena, NULL, 0);
    snprintf(directory, sizeof directory, "/tmp/plimsoll-fleet.XXXXXX");
    if (!mkdtemp(directory))
        return 1;
    test_fault_words();
    test_pki();
    test_up();
    test_same_twice();
    test_faults();
    test_leaving();
    test_finalizers();
    test_control_plane_anew();
    test_bounds();
    test_workers_and_end();
    test_adoption();
    test_directory();
    pl__folder_remove(directory);
    pl__arena_release(&arena);
    return test_end("fleet");
}
