/* The controller against API servers in memory: what it writes, when, and what it does when things break. */
#include "test.h"

#include <stdlib.h>
#include <time.h>

#include "finish.h"

static const struct pl_controller_options status_mode = { .mode = MODE_STATUS };

static struct fake_api *healthy(int flags, const struct pl_controller_options *options)
{
    struct fake_api *api = fake_new(&(struct fake_options){ .servers = 2, .latency_ms = 2 });

    fake_healthy(api, "alpha", 1, 3, flags);
    fake_start(api, options);
    return api;
}

static struct fake_object *kcp(struct fake_api *api)
{
    return fake_find(api, 0, RESOURCE_KCPS, "default", "alpha-cp");
}

static struct fake_object *machine(struct fake_api *api, int i)
{
    char name[32];

    snprintf(name, sizeof name, "alpha-m%d", i);
    return fake_find(api, 0, RESOURCE_MACHINES, "default", name);
}

static struct fake_object *cluster(struct fake_api *api)
{
    return fake_find(api, 0, RESOURCE_CLUSTERS, "default", "alpha");
}

static struct pl_entry *entry(struct fake_api *api, const char *name)
{
    return pl__world_find(&api->controller->world, PL_STR("default"), pl__str(name));
}

#define SAID(object, type, text) CHECK_STR(pl__str(fake_said((object), (type))), (text))
static bool says(struct fake_object *o, const char *type, const char *start)
{
    return strncmp(fake_said(o, type), start, strlen(start)) == 0;
}

/* --- what is written ------------------------------------------------------------------------------ */

static void test_writes(void)
{
    CASE("conditions of a healthy cluster, external etcd")
    struct fake_api *api = healthy(FAKE_EXTERNAL_ETCD | FAKE_WORKERS, &status_mode);
    fake_run(api, 1000);
    SAID(kcp(api), "ControlPlaneComponentsHealthy", "True Healthy");
    SAID(kcp(api), "Remediating", "False NotRemediating");
    SAID(kcp(api), "Deleting", "False NotDeleting");
    SAID(kcp(api), "EtcdClusterHealthy", "-");
    SAID(kcp(api), "Initialized", "True Initialized");
    for (int i = 0; i < 3; i++) {
        CHECK(says(machine(api, i), "APIServerPodHealthy", "True "));
        CHECK(says(machine(api, i), "ControllerManagerPodHealthy", "True "));
        CHECK(says(machine(api, i), "SchedulerPodHealthy", "True "));
        SAID(machine(api, i), "EtcdPodHealthy", "-");
        SAID(machine(api, i), "EtcdMemberHealthy", "-");
    }
    struct fake_object *md = fake_find(api, 0, RESOURCE_MACHINE_DEPLOYMENTS, "default", "alpha-md");
    CHECK(says(md, "Remediating", "False "));
    CHECK_INT(fake_disagreements(api, PL_PROFILE_TABLES, true), 0);

    CASE("nothing is written when nothing changes")
    uint64_t patches = api->patches;
    fake_run(api, 3600 * 1000);
    CHECK_INT(api->patches, patches);

    CHECK(api->controller->counts.reconciles[0][0] >=
          6); /* but everything is looked at every 10 minutes */
    CHECK(api->controller->counts.reconciles[0][0] <= 20);

    CASE("an observedGeneration that is behind is written once, and it alone")
    kcp(api)->generation++;
    fake_put(api, kcp(api));
    fake_run(api, 1000);
    CHECK_INT(api->patches, patches + 1);
    CHECK_INT(fake_condition(kcp(api), "ControlPlaneComponentsHealthy")->generation, 2);
    CHECK(strstr(kcp(api)->last_patch, "\"Deleting\"") != NULL);
    fake_run(api, 60000);
    CHECK_INT(api->patches, patches + 1);

    CASE("a Pod crashes and comes back")
    fake_pod(api, 1, "kube-scheduler", "n1", "Crash");
    fake_run(api, 20);
    CHECK(says(machine(api, 1), "SchedulerPodHealthy", "False "));
    CHECK(says(kcp(api), "ControlPlaneComponentsHealthy", "False "));
    CHECK_INT(api->patches, patches + 3);
    fake_pod(api, 1, "kube-scheduler", "n1", "Running");
    fake_run(api, 20);
    CHECK(says(machine(api, 1), "SchedulerPodHealthy", "True "));
    SAID(kcp(api), "ControlPlaneComponentsHealthy", "True Healthy");
    CHECK_INT(api->patches, patches + 5);
    fake_run(api, 60000);
    CHECK_INT(api->patches, patches + 5);

    CASE("the echo of our own write is no change")
    uint64_t judged = api->controller->counts.reconciles[0][0];
    fake_pod(api, 1, "kube-scheduler", "n1", "Crash");
    fake_run(api, 1000);
    fake_pod(api, 1, "kube-scheduler", "n1", "Running");
    fake_run(api, 1000);
    /* Each: the change, and once more for what the two answers brought. */
    CHECK_INT(api->controller->counts.reconciles[0][0] - judged, 4);
    patches += 4;

    CASE("what somebody else writes over ours is put right")
    fake_condition_set(api, kcp(api), "ControlPlaneComponentsHealthy", "Unknown", "Meddling",
                       "by hand");
    fake_put(api, kcp(api));
    fake_run(api, 20);
    SAID(kcp(api), "ControlPlaneComponentsHealthy", "True Healthy");
    CHECK_INT(api->patches, patches + 6);
    fake_finish(api);

    CASE("shadow: nothing is written")
    api = healthy(FAKE_EXTERNAL_ETCD | FAKE_WORKERS,
                  &(struct pl_controller_options){ .mode = MODE_SHADOW });
    fake_run(api, 5000);
    fake_pod(api, 1, "kube-scheduler", "n1", "Crash");
    fake_run(api, 5000);
    CHECK_INT(api->patches + api->events_posted, 0);
    fake_finish(api);

    CASE("dry run: nothing is written")
    api = healthy(FAKE_EXTERNAL_ETCD,
                  &(struct pl_controller_options){ .mode = MODE_STATUS, .dry_run = true });
    fake_run(api, 5000);
    CHECK_INT(api->patches + api->events_posted, 0);
    fake_finish(api);

    CASE("v1beta1: read and judged, never written")
    api = fake_new(&(struct fake_options){ .servers = 1, .latency_ms = 2 });
    api->servers[0].v1beta1 = true;
    fake_healthy(api, "alpha", 1, 3, FAKE_EXTERNAL_ETCD);
    fake_start(api, &status_mode);
    fake_run(api, 3600 * 1000);
    CHECK_INT(api->patches + api->events_posted, 0);
    CHECK(entry(api, "alpha")->remote.state == REMOTE_UP);
    CHECK(api->controller->counts.reconciles[0][0] > 0);
    fake_finish(api);
}

static void test_events(void)
{
    CASE("Events tell of transitions, once")
    struct fake_api *api = healthy(FAKE_EXTERNAL_ETCD, &status_mode);
    fake_run(api, 1000);
    uint64_t posted = api->events_posted;
    fake_pod(api, 1, "kube-scheduler", "n1", "Crash");
    fake_run(api, 1000);
    CHECK_INT(api->events_posted, posted + 1);
    CHECK(strstr(api->last_event_body, "\"Warning\"") != NULL);

    CASE("... not again for each try to write")
    fake_fail(api,
              (struct fake_fault){ .server = 0, .method = "PATCH", .status = 500, .count = 8 });
    fake_pod(api, 1, "kube-scheduler", "n1", "Running");
    fake_run(api, 120000);
    CHECK_INT(api->events_posted, posted + 2);
    SAID(kcp(api), "ControlPlaneComponentsHealthy", "True Healthy");
    fake_finish(api);
}

static void test_etcd(void)
{
    CASE("managed etcd on a rung, and when it is passed")
    struct fake_api *api = healthy(FAKE_NOT_INITIALIZED, &status_mode);
    fake_run(api, 1000);
    CHECK(says(kcp(api), "EtcdClusterHealthy", "Unknown InspectionFailed"));
    CHECK(says(machine(api, 0), "EtcdMemberHealthy", "Unknown "));
    fake_set(&kcp(api)->status, "\"initialization\":{\"controlPlaneInitialized\":true}");
    fake_condition_set(api, kcp(api), "Initialized", "True", "Initialized", "");
    fake_put(api, kcp(api));
    fake_run(api, 1000);
    SAID(kcp(api), "ControlPlaneComponentsHealthy", "True Healthy");
    SAID(kcp(api), "EtcdClusterHealthy", "True EtcdClusterHealthy");
    SAID(machine(api, 0), "EtcdMemberHealthy", "True Healthy");
    fake_finish(api);

    for (int profile = 0; profile < 2; profile++) {
        CASE("external etcd on a rung, %s", pl_profile_name((enum pl_profile)profile))
        struct pl_controller_options options = { .mode = MODE_STATUS,
                                                 .profile = (enum pl_profile)profile };
        api = healthy(FAKE_EXTERNAL_ETCD | FAKE_NOT_INITIALIZED, &options);
        fake_condition_set(api, machine(api, 0), "EtcdPodHealthy", "True", "Theirs", "");
        fake_put(api, machine(api, 0));
        if (profile == 0) {
            fake_condition_set(api, kcp(api), "EtcdClusterHealthy", "True", "Theirs", "");
            fake_put(api, kcp(api));
        }
        fake_run(api, 1000);
        CHECK(says(kcp(api), "ControlPlaneComponentsHealthy", "Unknown InspectionFailed"));
        if (profile == 0) {
            SAID(kcp(api), "EtcdClusterHealthy", "True Theirs");
            CHECK(strstr(kcp(api)->last_patch, "EtcdClusterHealthy") == NULL);
        } else {
            CHECK(says(kcp(api), "EtcdClusterHealthy", "Unknown InspectionFailed"));
        }
        SAID(machine(api, 0), "EtcdPodHealthy", "True Theirs");
        CHECK(strstr(machine(api, 0)->last_patch, "Etcd") == NULL);
        fake_set(&kcp(api)->status, "\"initialization\":{\"controlPlaneInitialized\":true}");
        fake_condition_set(api, kcp(api), "Initialized", "True", "Initialized", "");
        fake_put(api, kcp(api));
        fake_run(api, 1000);
        CHECK(says(kcp(api), "ControlPlaneComponentsHealthy", "True "));
        if (profile == 0) {
            SAID(kcp(api), "EtcdClusterHealthy", "True Theirs");
            CHECK(strstr(kcp(api)->last_patch, "EtcdClusterHealthy") == NULL);
        } else {
            /* Cluster API leaves what its rung wrote. */
            CHECK(says(kcp(api), "EtcdClusterHealthy", "Unknown InspectionFailed"));
        }
        CHECK(strstr(machine(api, 0)->last_patch, "Etcd") == NULL);
        fake_finish(api);
    }
}

static void test_kept(void)
{
    CASE("kept conditions are part of every apply")
    struct fake_api *api = healthy(FAKE_EXTERNAL_ETCD, &status_mode);
    fake_run(api, 1000);
    int64_t since = fake_condition(kcp(api), "ControlPlaneComponentsHealthy")->since_ms;
    api->servers[1].refuses = true;
    fake_cut(api, 1, "reset");
    fake_run(api, 70000); /* down, within the grace period: L4 keeps */
    CHECK(entry(api, "alpha")->remote.state != REMOTE_UP);
    SAID(kcp(api), "ControlPlaneComponentsHealthy", "True Healthy");
    uint64_t patches = api->patches;
    kcp(api)->generation++; /* Deleting and Remediating follow, the kept one stays as it is */
    fake_put(api, kcp(api));
    fake_run(api, 1000);
    CHECK_INT(api->patches, patches + 1);
    SAID(kcp(api), "ControlPlaneComponentsHealthy", "True Healthy");
    CHECK_INT(fake_condition(kcp(api), "ControlPlaneComponentsHealthy")->generation, 1);
    CHECK_INT(fake_condition(kcp(api), "ControlPlaneComponentsHealthy")->since_ms, since);
    CHECK_INT(fake_condition(kcp(api), "Deleting")->generation, 2);
    fake_finish(api);
}

/* --- who is written ------------------------------------------------------------------------------- */

static void test_scope(void)
{
    CASE("a paused Cluster is not written, and is when it is not paused any more")
    struct fake_api *api = fake_new(&(struct fake_options){ .servers = 1, .latency_ms = 2 });
    fake_healthy(api, "alpha", 1, 1, FAKE_EXTERNAL_ETCD | FAKE_WORKERS);
    fake_set(&cluster(api)->spec,
             "\"paused\":true,\"controlPlaneEndpoint\":{\"host\":\"10.0.0.1\",\"port\":6443}");
    fake_put(api, cluster(api));
    fake_start(api, &status_mode);
    fake_run(api, 5000);
    CHECK_INT(api->patches, 0);
    fake_set(&cluster(api)->spec, "\"controlPlaneEndpoint\":{\"host\":\"10.0.0.1\",\"port\":6443}");
    fake_put(api, cluster(api));
    fake_run(api, 100);
    CHECK_INT(api->patches, 3);
    fake_finish(api);

    CASE("the annotation pauses one object")
    api = fake_new(&(struct fake_options){ .servers = 1, .latency_ms = 2 });
    fake_healthy(api, "alpha", 1, 2, FAKE_EXTERNAL_ETCD);
    fake_set(&machine(api, 1)->annotations, "\"cluster.x-k8s.io/paused\":\"\"");
    fake_put(api, machine(api, 1));
    fake_start(api, &status_mode);
    fake_run(api, 5000);
    CHECK_INT(machine(api, 1)->patches, 0);
    CHECK(machine(api, 0)->patches > 0);
    CHECK(kcp(api)->patches > 0);
    fake_finish(api);

    CASE("watch-filter")
    api = fake_new(&(struct fake_options){ .servers = 2, .latency_ms = 2 });
    fake_healthy(api, "alpha", 1, 1, FAKE_EXTERNAL_ETCD);
    fake_healthy(api, "beta", 2, 1, FAKE_EXTERNAL_ETCD);
    fake_set(
        &kcp(api)->labels,
        "\"cluster.x-k8s.io/cluster-name\":\"alpha\",\"cluster.x-k8s.io/watch-filter\":\"us\"");
    fake_put(api, kcp(api));
    fake_start(api, &(struct pl_controller_options){ .mode = MODE_STATUS, .watch_filter = "us" });
    fake_run(api, 5000);
    CHECK(kcp(api)->patches > 0);
    CHECK_INT(fake_find(api, 0, RESOURCE_KCPS, "default", "beta-cp")->patches, 0);
    fake_finish(api);

    CASE("no Cluster object: nothing to judge by")
    api = healthy(FAKE_EXTERNAL_ETCD, &status_mode);
    fake_delete(api, cluster(api));
    fake_run(api, 5000);
    SAID(kcp(api), "ControlPlaneComponentsHealthy", "-");
    fake_finish(api);
}

/* --- writes that fail ------------------------------------------------------------------------------ */

static void test_failures(void)
{
    CASE("a conflict is tried again soon")
    struct fake_api *api = healthy(FAKE_EXTERNAL_ETCD, &status_mode);
    fake_run(api, 1000);
    fake_fail(api,
              (struct fake_fault){ .server = 0, .method = "PATCH", .status = 409, .count = 2 });
    fake_pod(api, 1, "kube-scheduler", "n1", "Crash");
    fake_run(api, 60);
    CHECK(says(kcp(api), "ControlPlaneComponentsHealthy", "False "));
    CHECK(says(machine(api, 1), "SchedulerPodHealthy", "False "));
    fake_finish(api);

    CASE("404: the object is gone, and that is that")
    api = healthy(FAKE_EXTERNAL_ETCD, &status_mode);
    fake_run(api, 1000);
    fake_fail(api, (struct fake_fault){ .server = 0,
                                        .method = "PATCH",
                                        .part = "kubeadmcontrolplanes",
                                        .status = 404,
                                        .count = 1000 });
    uint64_t patches = api->patches;
    fake_pod(api, 1, "kube-scheduler", "n1", "Crash");
    fake_run(api, 60000);
    CHECK(api->patches - patches <= 4);
    CHECK_INT(api->controller->counts.write_errors, 0);
    fake_finish(api);

    CASE("failures back off, whatever happens meanwhile")
    api = healthy(FAKE_EXTERNAL_ETCD, &status_mode);
    fake_run(api, 1000);
    fake_fail(api, (struct fake_fault){
                       .server = 0, .method = "PATCH", .status = 500, .count = 1000000 });
    patches = api->patches;
    for (int i = 0; i < 3000; i++) {
        fake_pod(api, 1, "kube-scheduler", "n1", i % 2 ? "Running" : "Crash");
        fake_run(api, 100);
    }
    /* 300 s at 1, 2, 4 ... 60 s and jitter, of two objects each. */
    printf("    %d writes in 300 s of outage\n", (int)(api->patches - patches));
    CHECK(api->patches - patches >= 6 && api->patches - patches <= 40);
    api->faults[0].count = 0;
    fake_pod(api, 1, "kube-scheduler", "n1", "Crash");
    fake_run(api, 121000);
    CHECK(says(machine(api, 1), "SchedulerPodHealthy", "False "));
    CHECK_INT(fake_disagreements(api, PL_PROFILE_TABLES, true), 0);

    CASE("... and begin anew after a success")
    fake_fail(api,
              (struct fake_fault){ .server = 0, .method = "PATCH", .status = 503, .count = 1 });
    fake_pod(api, 1, "kube-scheduler", "n1", "Running");
    fake_run(api, 2100);
    CHECK_INT(fake_disagreements(api, PL_PROFILE_TABLES, true), 0);

    CASE("Retry-After is kept, whatever happens meanwhile")
    fake_run(api, 30000);
    fake_fail(api,
              (struct fake_fault){
                  .server = 0, .method = "PATCH", .status = 429, .retry_after_s = 30, .count = 2 });
    fake_pod(api, 1, "kube-scheduler", "n1", "Crash");
    fake_run(api, 100);
    patches = api->patches;
    for (int i = 0; i < 29; i++) {
        fake_put(api, cluster(api));
        fake_run(api, 1000);
    }
    CHECK_INT(api->patches, patches);
    fake_run(api, 2000);
    CHECK_INT(fake_disagreements(api, PL_PROFILE_TABLES, true), 0);
    fake_finish(api);

    CASE("the write took effect and its answer was lost")
    api = healthy(FAKE_EXTERNAL_ETCD, &status_mode);
    fake_run(api, 1000);
    fake_fail(api, (struct fake_fault){
                       .server = 0, .method = "PATCH", .status = 0, .after = true, .count = 2 });
    fake_pod(api, 1, "kube-scheduler", "n1", "Crash");
    patches = api->patches;
    fake_run(api, 30000);
    CHECK_INT(fake_disagreements(api, PL_PROFILE_TABLES, true), 0);
    CHECK_INT(api->patches, patches + 2);
    fake_finish(api);
}

static void test_flapping(void)
{
    CASE("a Pod that flaps does not flood the API server")
    struct fake_api *api = healthy(FAKE_EXTERNAL_ETCD, &status_mode);
    fake_run(api, 30000);
    int before = kcp(api)->patches;
    for (int i = 0; i < 3000; i++) {
        fake_pod(api, 1, "kube-scheduler", "n1", i % 2 ? "Running" : "Crash");
        fake_run(api, 20);
    }
    /* 60 s: 20 at once, then 2 in a second. */
    printf("    %d writes of one object in 60 s of flapping\n", kcp(api)->patches - before);
    CHECK(kcp(api)->patches - before <= 20 + 120 + 1);
    CHECK(kcp(api)->patches - before >= 60);
    fake_pod(api, 1, "kube-scheduler", "n1", "Crash");
    fake_run(api, 1000);
    CHECK(says(kcp(api), "ControlPlaneComponentsHealthy", "False "));
    CHECK_INT(fake_disagreements(api, PL_PROFILE_TABLES, true), 0);
    fake_finish(api);

    CASE("changes while a write is under way are looked at afterwards")
    api = fake_new(&(struct fake_options){ .servers = 1, .latency_ms = 200 });
    fake_healthy(api, "alpha", 1, 3, FAKE_EXTERNAL_ETCD);
    fake_start(api, &status_mode);
    fake_run(api, 5000);
    fake_pod(api, 1, "kube-scheduler", "n1", "Crash");
    fake_run(api, 300); /* the write is on its way */
    CHECK(kcp(api)->patches_under_way == 1);
    fake_pod(api, 1, "kube-scheduler", "n1", "Running");
    fake_pod(api, 1, "kube-scheduler", "n2", "Crash");
    fake_run(api, 2000);
    CHECK_INT(fake_disagreements(api, PL_PROFILE_TABLES, true), 0);
    CHECK(says(machine(api, 2), "SchedulerPodHealthy", "False "));
    fake_finish(api);
}

/* --- the workload side ------------------------------------------------------------------------------ */

static void test_remote(void)
{
    CASE("connects when Secret and provisioned Cluster are there")
    struct fake_api *api = fake_new(&(struct fake_options){ .servers = 2, .latency_ms = 2 });
    fake_healthy(api, "alpha", 1, 1, FAKE_EXTERNAL_ETCD | FAKE_NO_SECRET);
    fake_set(&cluster(api)->status, "\"phase\":\"Provisioning\"");
    fake_put(api, cluster(api));
    fake_start(api, &status_mode);
    fake_run(api, 1000);
    CHECK_INT(api->servers[1].opened, 0);
    CHECK(says(kcp(api), "ControlPlaneComponentsHealthy",
               "Unknown InspectionFailed Waiting for Cluster status"));
    fake_secret(api, "alpha", "fake:1");
    fake_run(api, 1000);
    CHECK_INT(api->servers[1].opened, 0);
    fake_set(&cluster(api)->status, "\"initialization\":{\"infrastructureProvisioned\":true}");
    fake_put(api, cluster(api));
    fake_run(api, 100);
    CHECK_INT(api->servers[1].opened, 1);
    SAID(kcp(api), "ControlPlaneComponentsHealthy", "True Healthy");

    CASE("probes every 10 s")
    uint64_t probes = api->probes;
    fake_run(api, 100000);
    CHECK(api->probes - probes >= 9 && api->probes - probes <= 10);

    CASE("the kubeconfig changes: another connection")
    fake_secret(api, "alpha", "fake:1 ");
    fake_run(api, 100);
    CHECK_INT(api->servers[1].opened, 2);
    CHECK_INT(api->servers[1].closed, 1);
    CHECK(entry(api, "alpha")->remote.state == REMOTE_UP);
    uint64_t patches = api->patches;
    fake_run(api, 10000);
    CHECK_INT(api->patches, patches);

    CASE("the Secret is written anew with the same content: nothing happens")
    fake_secret(api, "alpha", "fake:1 ");
    fake_run(api, 1000);
    CHECK_INT(api->servers[1].opened, 2);
    fake_finish(api);

    CASE("the Secret goes: the evidence ages, and nothing is called healthy for ever")
    api = healthy(FAKE_EXTERNAL_ETCD, &status_mode);
    fake_run(api, 5000);
    SAID(kcp(api), "ControlPlaneComponentsHealthy", "True Healthy");
    fake_delete(api, fake_find(api, 0, RESOURCE_SECRETS, "default", "alpha-kubeconfig"));
    fake_run(api, 200000);
    SAID(kcp(api), "ControlPlaneComponentsHealthy", "True Healthy");
    fake_run(api, 200000);
    CHECK(says(kcp(api), "ControlPlaneComponentsHealthy",
               "Unknown ConnectionDown Last successful probe at 2026-11-15T02"));
    fake_secret(api, "alpha", "fake:1");
    fake_run(api, 100);
    SAID(kcp(api), "ControlPlaneComponentsHealthy", "True Healthy");
    fake_finish(api);
}

static void test_down(void)
{
    CASE("five failed probes: down; then the grace period, to the millisecond")
    struct fake_api *api = healthy(FAKE_EXTERNAL_ETCD, &status_mode);
    fake_run(api, 1000);
    SAID(kcp(api), "ControlPlaneComponentsHealthy", "True Healthy");
    api->servers[1].hangs = true;
    struct pl_remote *r = &entry(api, "alpha")->remote;
    uint64_t start = api->now.mono_ms;
    while (r->state == REMOTE_UP && api->now.mono_ms < start + 200000)
        fake_run(api, 100);
    /* Four rounds of 10 s and 5 s to answer, and the rest of the first. */
    CHECK(api->now.mono_ms - start > 60000 && api->now.mono_ms - start < 76000);
    CHECK_INT(r->failures, 5);
    SAID(kcp(api), "ControlPlaneComponentsHealthy", "True Healthy"); /* L4 keeps */
    int64_t end = r->last_success_wall_ms + 300 * 1000;
    fake_run(api, (uint64_t)(end - api->now.wall_ms));
    SAID(kcp(api), "ControlPlaneComponentsHealthy", "True Healthy");
    fake_run(api, 20);
    CHECK(says(kcp(api), "ControlPlaneComponentsHealthy",
               "Unknown ConnectionDown Last successful probe at 2026-11-15T02:00:"));
    CHECK(says(machine(api, 0), "APIServerPodHealthy", "Unknown PodConnectionDown"));

    CASE("reconnects with backoff")
    uint64_t opened = api->servers[1].opened;
    fake_run(api, 3600 * 1000);
    printf("    %d tries in an hour\n", (int)(api->servers[1].opened - opened));
    CHECK(api->servers[1].opened - opened >= 5 && api->servers[1].opened - opened <= 15);
    uint64_t patches = api->patches;
    fake_run(api, 3600 * 1000);
    CHECK_INT(api->patches, patches);

    CASE("comes back with a crashed Pod: never said to be healthy in between")
    fake_pod(api, 1, "kube-scheduler", "n1", "Crash");
    api->servers[1].hangs = false;
    uint64_t events = api->events_posted;
    fake_run(api, 610 * 1000);
    CHECK(says(kcp(api), "ControlPlaneComponentsHealthy", "False "));
    CHECK_INT(api->events_posted, events + 1);
    CHECK_INT(fake_disagreements(api, PL_PROFILE_TABLES, true), 0);
    fake_finish(api);

    CASE("a probe that fails four times is no outage")
    api = healthy(FAKE_EXTERNAL_ETCD, &status_mode);
    fake_run(api, 1000);
    fake_fail(api, (struct fake_fault){
                       .server = 1, .method = "GET", .part = "/", .status = 500, .count = 4 });
    fake_run(api, 60000);
    CHECK_INT(api->servers[1].opened, 1);
    CHECK_INT(entry(api, "alpha")->remote.failures, 0);
    fake_finish(api);

    CASE("never reached: L2 until five failures, then L3")
    api = fake_new(&(struct fake_options){ .servers = 2, .latency_ms = 2 });
    fake_healthy(api, "alpha", 1, 1, FAKE_EXTERNAL_ETCD);
    api->servers[1].refuses = true;
    fake_start(api, &status_mode);
    fake_run(api, 1000);
    SAID(kcp(api), "ControlPlaneComponentsHealthy",
         "Unknown ConnectionDown Remote connection not established yet");
    fake_run(api, 1800 * 1000);
    SAID(kcp(api), "ControlPlaneComponentsHealthy", "Unknown ConnectionDown");
    fake_finish(api);
}

static void test_bad_kubeconfig(void)
{
    static const char *const bad[] = { "nonsense", "!not base64", "" };

    CASE("a bad kubeconfig and a good one right behind it")
    struct fake_api *api = healthy(FAKE_EXTERNAL_ETCD, &status_mode);
    fake_run(api, 1000);
    fake_secret(api, "alpha", "nonsense");
    fake_secret(api, "alpha", "fake:1 ");
    fake_run(api, 1000);
    CHECK(entry(api, "alpha")->remote.state == REMOTE_UP);
    fake_finish(api);

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CASE("a kubeconfig of no use: L5 (%zu)", i)
        api = healthy(FAKE_EXTERNAL_ETCD, &status_mode);
        fake_run(api, 1000);
        fake_secret(api, "alpha", bad[i]);
        fake_run(api, 1000);
        CHECK(entry(api, "alpha")->remote.state == REMOTE_BROKEN);
        SAID(kcp(api), "ControlPlaneComponentsHealthy",
             "Unknown InspectionFailed Please check controller logs for errors");
        CHECK(api->log_errors > 0);
        fake_run(api, 310000); /* the grace period is over: L3 */
        CHECK(says(kcp(api), "ControlPlaneComponentsHealthy", "Unknown ConnectionDown Last"));
        fake_secret(api, "alpha", "fake:1");
        fake_run(api, 100);
        SAID(kcp(api), "ControlPlaneComponentsHealthy", "True Healthy");
        fake_finish(api);
    }

    CASE("bad from the start, with a healthy condition from before: not kept for ever")
    api = fake_new(&(struct fake_options){ .servers = 1, .latency_ms = 2 });
    fake_healthy(api, "alpha", 1, 1, FAKE_EXTERNAL_ETCD | FAKE_NO_SECRET);
    fake_secret(api, "alpha", "bad");
    fake_condition_set(api, kcp(api), "ControlPlaneComponentsHealthy", "True", "Healthy", "");
    fake_put(api, kcp(api));
    fake_start(api, &status_mode);
    fake_run(api, 1000);
    CHECK(says(kcp(api), "ControlPlaneComponentsHealthy", "Unknown ConnectionDown"));
    fake_finish(api);

    CASE("no Secret at all, with a healthy condition from before: not kept for ever")
    api = fake_new(&(struct fake_options){ .servers = 1, .latency_ms = 2 });
    fake_healthy(api, "alpha", 1, 1, FAKE_EXTERNAL_ETCD | FAKE_NO_SECRET);
    fake_condition_set(api, kcp(api), "ControlPlaneComponentsHealthy", "True", "Healthy", "");
    fake_put(api, kcp(api));
    fake_start(api, &status_mode);
    fake_run(api, 60000);
    CHECK(says(kcp(api), "ControlPlaneComponentsHealthy", "True "));
    fake_run(api, 120000);
    CHECK(says(kcp(api), "ControlPlaneComponentsHealthy", "Unknown ConnectionDown"));
    fake_finish(api);
}

static void test_remote_reads(void)
{
    CASE("Nodes cannot be listed")
    struct fake_api *api = fake_new(&(struct fake_options){ .servers = 1, .latency_ms = 2 });
    fake_healthy(api, "alpha", 1, 1, FAKE_EXTERNAL_ETCD);
    api->servers[1].absent[RESOURCE_NODES] = 403;
    fake_start(api, &status_mode);
    fake_run(api, 5000);
    CHECK(says(kcp(api), "ControlPlaneComponentsHealthy", "Unknown InspectionFailed"));
    api->servers[1].absent[RESOURCE_NODES] = 0;
    fake_run(api, 61000);
    SAID(kcp(api), "ControlPlaneComponentsHealthy", "True Healthy");
    fake_finish(api);

    CASE("Pods cannot be listed")
    api = fake_new(&(struct fake_options){ .servers = 1, .latency_ms = 2 });
    fake_healthy(api, "alpha", 1, 1, FAKE_EXTERNAL_ETCD);
    api->servers[1].absent[RESOURCE_PODS] = 500;
    fake_start(api, &status_mode);
    fake_run(api, 8000);
    CHECK(says(machine(api, 0), "SchedulerPodHealthy", "Unknown PodInspectionFailed"));
    api->servers[1].absent[RESOURCE_PODS] = 0;
    fake_run(api, 61000);
    SAID(kcp(api), "ControlPlaneComponentsHealthy", "True Healthy");
    fake_finish(api);

    CASE("a server that starts refuses a while: that is no verdict")
    api = fake_new(&(struct fake_options){ .servers = 1, .latency_ms = 2 });
    fake_healthy(api, "alpha", 1, 1, FAKE_EXTERNAL_ETCD);
    fake_fail(api, (struct fake_fault){ .server = 1, .part = "pods", .status = 429, .count = 2 });
    fake_condition_set(api, kcp(api), "ControlPlaneComponentsHealthy", "True", "Healthy", "");
    fake_put(api, kcp(api));
    fake_start(api, &status_mode);
    for (int i = 0; i < 100; i++) {
        fake_run(api, 100);
        CHECK(says(kcp(api), "ControlPlaneComponentsHealthy", "True Healthy"));
    }
    CHECK(fake_condition(machine(api, 0), "SchedulerPodHealthy") != NULL);
    fake_finish(api);

    CASE("the right to read Pods is taken away: what was read is not good for ever")
    api = healthy(FAKE_EXTERNAL_ETCD, &status_mode);
    fake_run(api, 1000);
    api->servers[1].absent[RESOURCE_PODS] = 403;
    fake_cut(api, 1, NULL);
    fake_run(api, 20000);
    SAID(kcp(api), "ControlPlaneComponentsHealthy", "True Healthy");
    fake_run(api, 300000);
    CHECK(says(machine(api, 1), "SchedulerPodHealthy", "Unknown PodInspectionFailed"));
    api->servers[1].absent[RESOURCE_PODS] = 0;
    fake_run(api, 65000);
    SAID(kcp(api), "ControlPlaneComponentsHealthy", "True Healthy");
    fake_finish(api);

    CASE("Nodes without a Machine: named in a steady order")
    api = healthy(FAKE_EXTERNAL_ETCD, &status_mode);
    fake_run(api, 1000);
    char name[32];
    for (int i = 40; i > 0; i--) {
        snprintf(name, sizeof name, "stray%02d", i);
        fake_node(api, 1, name);
        fake_run(api, 1000);
    }
    CHECK_INT(fake_disagreements(api, PL_PROFILE_TABLES, true), 0);
    fake_finish(api);

    CASE("the workload server restarts: watches go on, nothing is written")
    api = healthy(FAKE_EXTERNAL_ETCD, &status_mode);
    fake_run(api, 1000);
    uint64_t patches = api->patches;
    for (int i = 0; i < 20; i++) {
        fake_cut(api, 1, i % 2 ? "reset" : NULL);
        fake_run(api, 3000);
    }
    fake_expire(api, 1, true);
    fake_run(api, 125000);
    CHECK_INT(api->patches, patches);
    fake_pod(api, 1, "kube-scheduler", "n1", "Crash");
    fake_run(api, 100);
    CHECK(says(kcp(api), "ControlPlaneComponentsHealthy", "False "));
    fake_finish(api);

    CASE("a server that sends Nodes without end fills no memory")
    api = healthy(FAKE_EXTERNAL_ETCD, &status_mode);
    fake_run(api, 1000);
    for (int i = 0; i < 30; i++) {
        char many[64 * 1024], *at = many;
        for (int k = 0; k < 400; k++)
            at += snprintf(
                at, 160,
                "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"x%d-%d\",\"labels\":"
                "{\"node-role.kubernetes.io/control-plane\":\"\"}}}}\n",
                i, k);
        fake_inject(api, 1, RESOURCE_NODES, many);
        fake_run(api, 100);
    }
    CHECK(entry(api, "alpha")->remote.nodes.count <= 10000);
    fake_finish(api);
}

static void test_clock(void)
{
    static const int64_t jumps[] = { 3600 * 1000, -3600 * 1000, 30 * 86400LL * 1000 };

    for (size_t i = 0; i < sizeof jumps / sizeof jumps[0]; i++) {
        CASE("the wall clock jumps by %lld s: no cluster is called down",
             (long long)jumps[i] / 1000)
        struct fake_api *api = healthy(FAKE_EXTERNAL_ETCD, &status_mode);
        fake_run(api, 5000);
        uint64_t patches = api->patches;
        fake_jump(api, jumps[i]);
        fake_put(api, cluster(api)); /* something wakes it before the next probe */
        fake_run(api, 60000);
        CHECK_INT(api->patches, patches);
        SAID(kcp(api), "ControlPlaneComponentsHealthy", "True Healthy");

        CASE("... and one that is down gets its grace period in full, by %lld s",
             (long long)jumps[i] / 1000)
        api->servers[1].hangs = true;
        struct pl_remote *r = &entry(api, "alpha")->remote;
        while (r->state == REMOTE_UP)
            fake_run(api, 100);
        int64_t ago = api->now.wall_ms - r->last_success_wall_ms;
        fake_jump(api, jumps[i] > 0 ? jumps[i] : -60000);
        fake_run(api, (uint64_t)(300000 - ago - 1000));
        /* Initialized is long ago on the new clock or lies ahead of it; only the former can end it. */
        SAID(kcp(api), "ControlPlaneComponentsHealthy", "True Healthy");
        fake_run(api, 2000);
        if (jumps[i] > 0)
            CHECK(says(kcp(api), "ControlPlaneComponentsHealthy", "Unknown ConnectionDown"));
        fake_finish(api);
    }
}

/* --- things that go while something is under way ----------------------------------------------------- */

static void test_removal(void)
{
    for (int wait = 0; wait <= 12; wait++) {
        CASE("the KCP goes while its write is under way (%d ms)", wait)
        struct fake_api *api = fake_new(&(struct fake_options){
            .servers = 1, .latency_ms = 5, .answers_cancelled_percent = 50 });
        fake_healthy(api, "alpha", 1, 2, FAKE_EXTERNAL_ETCD);
        fake_start(api, &status_mode);
        fake_run(api, 1000);
        fake_pod(api, 1, "kube-scheduler", "n1", "Crash");
        fake_run(api, (uint64_t)wait * 2);
        fake_delete(api, kcp(api));
        fake_run(api, 5000);
        CHECK_INT(api->controller->writes_in_flight, 0);
        fake_finish(api);

        CASE("a Machine goes while its write is under way: it does not come back (%d ms)", wait)
        api = fake_new(&(struct fake_options){ .servers = 1, .latency_ms = 5 });
        fake_healthy(api, "alpha", 1, 2, FAKE_EXTERNAL_ETCD);
        fake_start(api, &status_mode);
        fake_run(api, 1000);
        fake_pod(api, 1, "kube-scheduler", "n1", "Crash");
        fake_run(api, (uint64_t)wait * 2);
        fake_delete(api, machine(api, 1));
        fake_run(api, 5000);
        CHECK_INT(api->controller->world.stores[RESOURCE_MACHINES].count, 1);
        CHECK_INT(fake_disagreements(api, PL_PROFILE_TABLES, true), 0);
        fake_finish(api);

        CASE("the KCP leaves its cluster while its write is under way (%d ms)", wait)
        api = fake_new(&(struct fake_options){
            .servers = 1, .latency_ms = 20, .shuffled = true, .seed = (uint64_t)wait });
        fake_healthy(api, "alpha", 1, 2, FAKE_EXTERNAL_ETCD);
        fake_start(api, &status_mode);
        fake_run(api, 1000);
        fake_pod(api, 1, "kube-scheduler", "n1", "Crash");
        fake_run(api, (uint64_t)wait * 2);
        fake_set(&kcp(api)->labels, "\"x\":\"y\"");
        free(kcp(api)->owners);
        kcp(api)->owners = NULL;
        fake_put(api, kcp(api));
        fake_run(api, 5000);
        CHECK_INT(api->controller->writes_in_flight, 0);
        CHECK_INT(api->controller->world.stores[RESOURCE_KCPS].count, 0);
        fake_finish(api);

        CASE("all of a cluster goes while it connects (%d ms)", wait)
        api = fake_new(&(struct fake_options){
            .servers = 1, .latency_ms = 5, .answers_cancelled_percent = 50 });
        fake_healthy(api, "alpha", 1, 1, FAKE_EXTERNAL_ETCD);
        fake_start(api, &status_mode);
        fake_run(api, 10 + (uint64_t)wait * 3);
        while (api->servers[0].first)
            fake_delete(api, api->servers[0].first);
        fake_run(api, 60000);
        CHECK_INT(api->controller->world.entry_count, 0);
        CHECK_INT(api->controller->world.timers.count, 0);
        CHECK_INT(api->controller->waiter_count, RESOURCE_MANAGEMENT_COUNT);
        CHECK_INT(api->servers[1].opened, api->servers[1].closed);
        fake_finish(api);
    }

    CASE("a Cluster is deleted and made anew")
    struct fake_api *api = healthy(FAKE_EXTERNAL_ETCD, &status_mode);
    fake_run(api, 5000);
    fake_delete(api, cluster(api));
    fake_run(api, 10);
    fake_cluster(api, "alpha");
    fake_set(&kcp(api)->owners, "{\"kind\":\"Cluster\",\"name\":\"alpha\",\"uid\":\"%s\"}",
             cluster(api)->uid);
    fake_put(api, kcp(api));
    fake_run(api, 1000);
    CHECK(entry(api, "alpha")->remote.state == REMOTE_UP);
    CHECK_INT(fake_disagreements(api, PL_PROFILE_TABLES, true), 0);
    fake_finish(api);

    CASE("a Machine moves to another cluster: both are looked at")
    api = fake_new(&(struct fake_options){ .servers = 2, .latency_ms = 2 });
    fake_healthy(api, "alpha", 1, 2, FAKE_EXTERNAL_ETCD);
    fake_healthy(api, "beta", 2, 1, FAKE_EXTERNAL_ETCD);
    fake_start(api, &status_mode);
    fake_run(api, 1000);
    struct fake_object *beta = fake_find(api, 0, RESOURCE_KCPS, "default", "beta-cp");
    fake_set(&machine(api, 1)->labels,
             "\"cluster.x-k8s.io/cluster-name\":\"beta\",\"cluster.x-k8s.io/control-plane\":\"\"");
    fake_set(&machine(api, 1)->owners,
             "{\"kind\":\"KubeadmControlPlane\",\"name\":\"beta-cp\",\"uid\":\"%s\",\"controller\":"
             "true}",
             beta->uid);
    fake_put(api, machine(api, 1));
    fake_run(api, 1000);
    CHECK(
        says(kcp(api), "ControlPlaneComponentsHealthy", "False ")); /* Node n1 has no Machine now */
    CHECK_INT(fake_disagreements(api, PL_PROFILE_TABLES, true), 0);
    fake_finish(api);
}

/* --- the end ----------------------------------------------------------------------------------------- */

static void test_shutdown(void)
{
    for (int wait = 0; wait < 10; wait++) {
        CASE("shutdown finishes (%d)", wait)
        struct fake_api *api = fake_new(&(struct fake_options){ .servers = 1, .latency_ms = 5 });
        fake_healthy(api, "alpha", 1, 2, FAKE_EXTERNAL_ETCD);
        fake_start(api, &status_mode);
        fake_run(api, (uint64_t)wait * 8);
        uint64_t patches = api->patches;
        fake_step(api, &(struct pl_event){ .type = EVENT_SHUTDOWN });
        fake_run(api, 11);
        CHECK(pl_controller_finished(api->controller));
        CHECK_INT(api->patches, patches);
        uint64_t steps = api->steps;
        fake_run(api, 3600 * 1000);
        CHECK(api->steps - steps < 5);
        CHECK_INT(api->controller->waiter_count, 0);
        fake_finish(api);
    }

    CASE("freed in the middle of everything")
    for (uint64_t ms = 0; ms < 60; ms += 3) {
        struct fake_api *api =
            fake_new(&(struct fake_options){ .servers = 1, .latency_ms = 5, .piece_max = 100 });
        fake_healthy(api, "alpha", 1, 2, FAKE_EXTERNAL_ETCD);
        fake_start(api, &status_mode);
        fake_run(api, ms);
        CHECK_INT(fake_end(api), 0);
        fake_free(api);
    }
}

static void test_reading(void)
{
    CASE("a snapshot for the reading commands, and metrics")
    struct fake_api *api = healthy(FAKE_EXTERNAL_ETCD | FAKE_WORKERS,
                                   &(struct pl_controller_options){ .reads_only = true });
    fake_run(api, 1000);
    struct pl_arena arena;
    struct pl_snapshot s;
    size_t pending;
    pl__arena_init(&arena, NULL, 0);
    CHECK_INT(pl_controller_snapshot(api->controller, PL_STR(""), PL_STR(""), api->now, &arena, &s,
                                     &pending, NULL),
              0);
    CHECK_INT(pending, 0);
    CHECK_INT(s.objects.clusters.count, 1);
    CHECK_INT(s.objects.machines.count, 4);
    CHECK_INT(s.workloads.count, 1);
    CHECK_INT(s.workloads.items[0].nodes.count, 3);
    CHECK_INT(api->patches, 0);
    struct pl_buf text;
    pl__buf_init(&text, &arena, SIZE_MAX);
    pl_controller_metrics(api->controller, api->now, &text);
    CHECK(pl__str_contains(pl__buf_str(&text),
                           PL_STR("capi_cluster_cache_connection_up{cluster_name=\"alpha\"")));
    CHECK(pl__str_contains(pl__buf_str(&text), PL_STR("row=\"ControlPlaneComponentsHealthy/")));
    pl__arena_release(&arena);
    fake_finish(api);
}

static void name_note(void *user, struct pl_cluster_name name)
{
    pl__buf_printf(user, "%.*s/%.*s ", PL_STR_ARG(name.namespace_), PL_STR_ARG(name.name));
}

static void test_reading_some(void)
{
    CASE("which clusters changed, and a snapshot of some")
    struct fake_api *api = fake_new(&(struct fake_options){ .servers = 2 });
    fake_healthy(api, "alpha", 1, 3, FAKE_EXTERNAL_ETCD);
    fake_healthy(api, "beta", 2, 1, FAKE_EXTERNAL_ETCD);
    fake_start(api, &(struct pl_controller_options){ .reads_only = true });
    fake_run(api, 1000);
    struct pl_arena arena;
    struct pl_snapshot s;
    struct pl_buf text;
    pl__arena_init(&arena, NULL, 0);
    pl__buf_init(&text, &arena, 4096);
    CHECK_INT(pl_controller_each_cluster(api->controller, 0, name_note, &text), 2);
    CHECK(pl__str_contains(pl__buf_str(&text), PL_STR("default/alpha ")) &&
          pl__str_contains(pl__buf_str(&text), PL_STR("default/beta ")));
    uint64_t since = pl_controller_changes(api->controller);
    fake_put(api, fake_find(api, 0, RESOURCE_MACHINES, "default", "beta-m0"));
    fake_run(api, 100);
    pl__buf_init(&text, &arena, 4096);
    CHECK_INT(pl_controller_each_cluster(api->controller, since, name_note, &text), 2);
    CHECK_STR(pl__buf_str(&text), "default/beta ");
    const struct pl_cluster_name names[] = { { PL_STR("default"), PL_STR("gamma") },
                                             { PL_STR("default"), PL_STR("beta") } };
    CHECK_INT(pl_controller_snapshot_some(api->controller, names, 2, api->now, &arena, &s, NULL),
              0);
    CHECK_INT(s.objects.clusters.count, 1);
    CHECK_INT(s.objects.machines.count, 1);
    CHECK_INT(s.workloads.count, 1);
    pl__arena_release(&arena);
    fake_finish(api);
}

/* --- many ------------------------------------------------------------------------------------------- */

static void test_many(int clusters, bool numbers)
{
    CASE("%d clusters, one of them hangs: nobody else notices", clusters)
    struct fake_api *api = fake_new(&(struct fake_options){ .servers = clusters, .latency_ms = 1 });
    char name[32];
    for (int i = 0; i < clusters; i++) {
        snprintf(name, sizeof name, "c%d", i);
        fake_healthy(api, name, i + 1, 1, FAKE_EXTERNAL_ETCD);
    }
    api->servers[1].hangs = true;
    fake_start(api, &status_mode);
    fake_run(api, 1000);
    uint64_t sync_ns = api->nanoseconds, sync_steps = api->steps;
    int bad = 0;
    for (int i = 1; i < clusters; i++) {
        snprintf(name, sizeof name, "c%d-cp", i);
        bad += !says(fake_find(api, 0, RESOURCE_KCPS, "default", name),
                     "ControlPlaneComponentsHealthy", "True ");
    }
    CHECK_INT(bad, 0);
    size_t bytes = api->bytes;

    api->nanoseconds = api->steps = 0;
    fake_run(api, 60000);
    uint64_t idle_ns = api->nanoseconds, idle_steps = api->steps;

    api->nanoseconds = api->steps = 0;
    uint64_t late = 0;
    for (int i = 0; i < 200; i++) {
        int at = 1 + (i * 7) % (clusters > 1 ? clusters - 1 : 1);
        fake_pod(api, at + 1, "kube-scheduler", "n0", i % 2 ? "Running" : "Crash");
        fake_run(api, 10);
        snprintf(name, sizeof name, "c%d-cp", at);
        late += !says(fake_find(api, 0, RESOURCE_KCPS, "default", name),
                      "ControlPlaneComponentsHealthy", i % 2 ? "True " : "False ");
    }
    CHECK_INT(late, 0);
    uint64_t change_ns = api->nanoseconds;

    struct pl_arena arena;
    struct pl_buf text;
    struct timespec start, end;
    pl__arena_init(&arena, NULL, 0);
    pl__buf_init(&text, &arena, SIZE_MAX);
    clock_gettime(CLOCK_MONOTONIC, &start);
    pl_controller_metrics(api->controller, api->now, &text);
    clock_gettime(CLOCK_MONOTONIC, &end);
    if (numbers)
        printf("    %d clusters: metrics take %.1f ms, %zu bytes\n", clusters,
               (double)(end.tv_sec - start.tv_sec) * 1e3 +
                   (double)(end.tv_nsec - start.tv_nsec) / 1e6,
               text.len);
    pl__arena_release(&arena);
    if (numbers)
        printf("    %d clusters: sync %.1f ms (%.2f us a step), idle %.3f%% of a core (%.2f us a "
               "step), "
               "change %.1f us in all, %zu bytes a cluster, largest step %.2f ms\n",
               clusters, (double)sync_ns / 1e6, (double)sync_ns / 1e3 / (double)sync_steps,
               (double)idle_ns / 60e9 * 100, (double)idle_ns / 1e3 / (double)idle_steps,
               (double)change_ns / 1e3 / 200, bytes / (size_t)clusters,
               (double)api->step_ns_max / 1e6);
    fake_finish(api);
}

/* --- chance ----------------------------------------------------------------------------------------- */

static void mutate(struct fake_api *api)
{
    static const char *const phases[] = { "Running", "Running", "Crash", "Pending", "Failed" };
    static const char *const parts[] = { "kube-apiserver", "kube-controller-manager",
                                         "kube-scheduler", "etcd" };
    struct prng *r = &api->random;
    int clusters = api->server_count - 1, c = (int)prng_below(r, (size_t)clusters);
    char name[64], other[64], node[16];
    struct fake_object *o;

    snprintf(node, sizeof node, "n%d", (int)prng_below(r, 3));
    switch (prng_below(r, 21)) {
    case 0:
    case 1:
    case 2:
    case 3:
        fake_pod(api, c + 1, parts[prng_below(r, 4)], node, phases[prng_below(r, 5)]);
        break;
    case 4:
        snprintf(name, sizeof name, "%s-%s", parts[prng_below(r, 4)], node);
        if ((o = fake_find(api, c + 1, RESOURCE_PODS, "kube-system", name)))
            fake_delete(api, o);
        break;
    case 5:
        if ((o = fake_find(api, c + 1, RESOURCE_NODES, "", node)))
            fake_delete(api, o);
        else
            fake_node(api, c + 1, node);
        break;
    case 6: /* a Machine comes or goes */
        snprintf(name, sizeof name, "c%d-m%d", c, (int)prng_below(r, 3));
        snprintf(other, sizeof other, "c%d-cp", c);
        if ((o = fake_find(api, 0, RESOURCE_MACHINES, "default", name))) {
            fake_delete(api, o);
        } else {
            char cluster_name[16];
            snprintf(cluster_name, sizeof cluster_name, "c%d", c);
            fake_machine(api, name, cluster_name, other, prng_one_in(r, 4) ? NULL : node)->left =
                true;
        }
        break;
    case 7: /* the Machine moves */
        snprintf(name, sizeof name, "c%d-m0", c);
        snprintf(other, sizeof other, "c%d", (int)prng_below(r, (size_t)clusters));
        if ((o = fake_find(api, 0, RESOURCE_MACHINES, "default", name))) {
            struct fake_object *owner;
            char kcp_name[72];
            snprintf(kcp_name, sizeof kcp_name, "%s-cp", other);
            fake_set(
                &o->labels,
                "\"cluster.x-k8s.io/cluster-name\":\"%s\",\"cluster.x-k8s.io/control-plane\":\"\"",
                other);
            if ((owner = fake_find(api, 0, RESOURCE_KCPS, "default", kcp_name)))
                fake_set(&o->owners,
                         "{\"kind\":\"KubeadmControlPlane\",\"name\":\"%s\",\"uid\":\"%s\","
                         "\"controller\":true}",
                         kcp_name, owner->uid);
            fake_put(api, o);
        }
        break;
    case 8: /* the control plane changes, goes or comes */
        snprintf(name, sizeof name, "c%d-cp", c);
        snprintf(other, sizeof other, "c%d", c);
        if (!(o = fake_find(api, 0, RESOURCE_KCPS, "default", name))) {
            fake_kcp(api, name, other, prng_one_in(r, 2) ? FAKE_EXTERNAL_ETCD : 0)->left = true;
        } else if (prng_one_in(r, 3)) {
            fake_delete(api, o);
        } else {
            o->generation++;
            fake_put(api, o);
        }
        break;
    case 9: /* the Cluster is paused, or not provisioned, or gone */
        snprintf(name, sizeof name, "c%d", c);
        if (!(o = fake_find(api, 0, RESOURCE_CLUSTERS, "default", name))) {
            fake_cluster(api, name);
        } else if (prng_one_in(r, 4)) {
            fake_delete(api, o);
        } else {
            fake_set(&o->spec, "%s\"controlPlaneEndpoint\":{\"host\":\"10.0.0.1\",\"port\":6443}",
                     prng_one_in(r, 3) ? "\"paused\":true," : "");
            fake_set(&o->status, "\"initialization\":{\"infrastructureProvisioned\":%s}",
                     prng_one_in(r, 4) ? "false" : "true");
            fake_put(api, o);
        }
        break;
    case 10: /* the Secret */
        snprintf(name, sizeof name, "c%d", c);
        snprintf(other, sizeof other, "c%d-kubeconfig", c);
        if ((o = fake_find(api, 0, RESOURCE_SECRETS, "default", other)) && prng_one_in(r, 3)) {
            fake_delete(api, o);
        } else {
            snprintf(other, sizeof other, "fake:%d%s", c + 1, prng_one_in(r, 2) ? " " : "");
            fake_secret(api, name, prng_one_in(r, 6) ? "bad" : other);
        }
        break;
    case 11: { /* someone meddles */
        static const char *const statuses[] = { "True", "False", "Unknown" };
        snprintf(name, sizeof name, "c%d-m%d", c, (int)prng_below(r, 3));
        if ((o = fake_find(api, 0, RESOURCE_MACHINES, "default", name))) {
            fake_condition_set(api, o,
                               prng_one_in(r, 2) ? "SchedulerPodHealthy" : "HealthCheckSucceeded",
                               statuses[prng_below(r, 3)], "Meddling", "");
            fake_put(api, o);
        }
        break;
    }
    case 12:
        fake_cut(api, (int)prng_below(r, (size_t)api->server_count),
                 prng_one_in(r, 2) ? "reset" : NULL);
        break;
    case 13:
        fake_expire(api, (int)prng_below(r, (size_t)api->server_count), prng_one_in(r, 2));
        break;
    case 14: {
        struct fake_server *s = &api->servers[prng_below(r, (size_t)api->server_count)];
        if (s->index)
            s->hangs = prng_one_in(r, 3);
        s->refuses = s->index && prng_one_in(r, 4);
        s->without_watchlist = prng_one_in(r, 2);
        s->gone_by_status = prng_one_in(r, 2);
        break;
    }
    case 16:
        fake_jump(api, (int64_t)prng_below(r, 7200 * 1000) - 3600 * 1000);
        break;
    case 17:
        fake_mute(api, (int)prng_below(r, (size_t)api->server_count));
        break;
    case 18: /* leaves its cluster, and comes back */
        snprintf(name, sizeof name, "c%d-cp", c);
        if ((o = fake_find(api, 0, RESOURCE_KCPS, "default", name))) {
            struct fake_object *owner;
            snprintf(other, sizeof other, "c%d", c);
            owner = fake_find(api, 0, RESOURCE_CLUSTERS, "default", other);
            o->left = true;
            fake_set(&o->labels,
                     o->labels[1] == 'x' ? "\"cluster.x-k8s.io/cluster-name\":\"%s\""
                                         : "\"x\":\"%s\"",
                     other);
            if (o->labels[1] != 'x' && owner) {
                fake_set(&o->owners, "{\"kind\":\"Cluster\",\"name\":\"%s\",\"uid\":\"%s\"}", other,
                         owner->uid);
            } else {
                free(o->owners);
                o->owners = NULL;
            }
            fake_put(api, o);
        }
        break;
    case 19: { /* etcd does not answer, or has an alarm */
        struct fake_etcd *etcd = &api->servers[c + 1].etcd;
        etcd->failure =
            prng_one_in(r, 2) ? ETCD_OK : (enum pl_etcd_failure)prng_below(r, ETCD_CANCELLED);
        etcd->error = "some fault";
        etcd->mute = prng_one_in(r, 4);
        etcd->down = prng_one_in(r, 2) ? "n0 n2" : NULL;
        etcd->member_count = prng_one_in(r, 2) ? 2 : 0;
        etcd->members[0] = (struct fake_member){ "n0", 7, prng_one_in(r, 2), 0 };
        etcd->members[1] = (struct fake_member){ "n1", 9, false, (uint32_t)prng_below(r, 3) };
        break;
    }
    case 20: /* the CA is rotated, or gone */
        snprintf(name, sizeof name, "c%d", c);
        snprintf(other, sizeof other, "c%d-etcd", c);
        if ((o = fake_find(api, 0, RESOURCE_SECRETS, "default", other)) && prng_one_in(r, 3))
            fake_delete(api, o);
        else
            fake_etcd_secret(api, name, prng_one_in(r, 3) ? "key" : "another key");
        api->servers[c + 1].etcd.key = prng_one_in(r, 2) ? "key" : NULL;
        break;
    case 15:
        fake_inject(api, (int)prng_below(r, (size_t)api->server_count),
                    (int)prng_below(r, RESOURCE_COUNT),
                    prng_one_in(r, 2) ? "{\"type\":\"ADDED\",\"object\":{\"metadata\":{}}}\n"
                                      : "nonsense\n");
        break;
    }
}

/* Every Cluster has Secrets that work and a control plane that names it, and every server answers. */
static void calm(struct fake_api *api)
{
    char name[32], kubeconfig[32];

    api->chaos_percent = 0;
    for (int i = 0; i < api->server_count; i++) {
        api->servers[i].hangs = api->servers[i].refuses = false;
        api->servers[i].etcd.mute = false;
        api->servers[i].etcd.failure = ETCD_OK;
        api->servers[i].etcd.key = api->servers[i].etcd.down = NULL;
    }
    for (int i = 1; i < api->server_count; i++) {
        snprintf(name, sizeof name, "c%d", i - 1);
        snprintf(kubeconfig, sizeof kubeconfig, "fake:%d", i);
        fake_secret(api, name, kubeconfig);
        fake_etcd_secret(api, name, "key");
        char control_plane[48];
        snprintf(control_plane, sizeof control_plane, "%s-cp", name);
        struct fake_object *o = fake_find(api, 0, RESOURCE_KCPS, "default", control_plane);
        if (o && !strstr(o->labels, "cluster-name")) {
            fake_set(&o->labels, "\"cluster.x-k8s.io/cluster-name\":\"%s\"", name);
            fake_put(api, o);
        }
    }
    fake_run(api, 20 * 60 * 1000);
}

static void test_random(uint64_t from, uint64_t seeds)
{
    CASE("random worlds and faults, then calm: what is stored is what is true")
    uint64_t patches = 0, steps = 0;
    for (uint64_t seed = from; seed < from + seeds; seed++) {
        struct fake_api *api =
            fake_new(&(struct fake_options){ .servers = 3,
                                             .seed = seed,
                                             .latency_ms = (uint32_t)(seed % 60),
                                             .shuffled = true,
                                             .piece_max = seed % 3 ? 1 + seed * 97 % 3000 : 0,
                                             .answers_cancelled_percent = 30 });
        enum pl_profile profile = seed % 5 == 0 ? PL_PROFILE_CLUSTER_API_1_12 : PL_PROFILE_TABLES;
        char name[16];
        for (int i = 0; i < 3; i++) {
            snprintf(name, sizeof name, "c%d", i);
            fake_healthy(api, name, i + 1, 3,
                         (i % 2 ? FAKE_EXTERNAL_ETCD : 0) | (i ? FAKE_WORKERS : 0));
        }
        api->servers[0].without_watchlist = seed % 2;
        api->page_size = seed % 4 == 0 ? 2 : 0;
        api->chaos_percent = (int)(seed % 7) * 3;
        fake_start(api, &(struct pl_controller_options){ .mode = MODE_STATUS, .profile = profile });
        if (seed % 10)
            fake_run(api, 60000);
        for (int i = 0; i < 60 && !api->stopped; i++) {
            mutate(api);
            fake_run(api, prng_one_in(&api->random, 6) ? prng_below(&api->random, 60000)
                                                       : prng_below(&api->random, 100));
        }
        if (!api->stopped) {
            calm(api);
            int differ = fake_disagreements(api, profile, false);
            if (differ) {
                test_fail(__FILE__, __LINE__, "seed %llu: %d differ", (unsigned long long)seed,
                          differ);
                fake_disagreements(api, profile, true);
            }
            uint64_t written = api->patches;
            fake_run(api, 30 * 60 * 1000);
            if (api->patches != written)
                test_fail(__FILE__, __LINE__, "seed %llu: %d writes in calm",
                          (unsigned long long)seed, (int)(api->patches - written));
        }
        if (api->offences)
            test_fail(__FILE__, __LINE__, "seed %llu: %s", (unsigned long long)seed, api->offence);
        patches += api->patches;
        steps += api->steps;
        size_t left = fake_end(api);
        if (left)
            test_fail(__FILE__, __LINE__, "seed %llu: %zu blocks are left",
                      (unsigned long long)seed, left);
        fake_free(api);
    }
    printf("    %llu seeds, %llu writes, %llu steps\n", (unsigned long long)seeds,
           (unsigned long long)patches, (unsigned long long)steps);
}

int main(int argc, char **argv)
{
    if (argc > 2) { /* FROM COUNT: only random worlds */
        test_random(strtoull(argv[1], NULL, 10), strtoull(argv[2], NULL, 10));
        return test_end("controller/controller");
    }
    if (argc > 1) { /* CLUSTERS: only numbers */
        test_many((int)strtol(argv[1], NULL, 10), true);
        return test_end("controller/controller");
    }
    test_writes();
    test_events();
    test_etcd();
    test_kept();
    test_scope();
    test_failures();
    test_flapping();
    test_remote();
    test_down();
    test_bad_kubeconfig();
    test_remote_reads();
    test_clock();
    test_removal();
    test_shutdown();
    test_reading();
    test_reading_some();
    test_many(300, true);
    test_random(1, 300);
    return test_end("controller/controller");
}
