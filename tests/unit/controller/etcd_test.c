/* How the controller asks the etcd of workload clusters: when, whom, with which CA, and what becomes of it. */
#include "test.h"

#include <stdlib.h>

#include "finish.h"

static const struct pl_controller_options status_mode = { .mode = MODE_STATUS };

enum { LATENCY_MS = 2 };

static struct fake_api *prepared(int machines, int flags)
{
    struct fake_api *api =
        fake_new(&(struct fake_options){ .servers = 2, .latency_ms = LATENCY_MS });

    fake_healthy(api, "alpha", 1, machines, flags);
    return api;
}

static struct fake_api *healthy(int machines)
{
    struct fake_api *api = prepared(machines, 0);

    fake_start(api, &status_mode);
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

static struct fake_object *etcd_secret(struct fake_api *api)
{
    return fake_find(api, 0, RESOURCE_SECRETS, "default", "alpha-etcd");
}

static struct pl_entry *entry(struct fake_api *api)
{
    return pl__world_find(&api->controller->world, PL_STR("default"), PL_STR("alpha"));
}

static struct fake_etcd *etcd(struct fake_api *api)
{
    return &api->servers[1].etcd;
}

static const char *member_said(struct fake_api *api, int i)
{
    return fake_said(machine(api, i), "EtcdMemberHealthy");
}

#define SAID(object, type, text) CHECK_STR(pl__str(fake_said((object), (type))), (text))
#define MEMBER_SAID(api, i, text) CHECK_STR(pl__str(member_said((api), (i))), (text))
#define CLUSTER_SAID(api, text) SAID(kcp(api), "EtcdClusterHealthy", text)

/* The view as a reading command would get it; false: none. */
static bool view_of(struct fake_api *api, struct pl_arena *arena, struct pl_etcd_view *view)
{
    struct pl_snapshot s;
    size_t pending;

    *view = (struct pl_etcd_view){ .present = false };
    if (pl_controller_snapshot(api->controller, PL_STR("default"), PL_STR("alpha"), api->now, arena,
                               &s, &pending, NULL) < 0 ||
        s.workloads.count != 1)
        return false;
    *view = s.workloads.items[0].etcd;
    return view->present;
}

/* Runs until etcd has been asked `count` times, `max_ms` at most; how long it took. */
static uint64_t run_until_asked(struct fake_api *api, int count, uint64_t max_ms)
{
    uint64_t start = api->now.mono_ms;

    while (etcd(api)->observations < count && api->now.mono_ms - start < max_ms)
        fake_run(api, 1);
    return api->now.mono_ms - start;
}

/* --- the first look ------------------------------------------------------------------------------- */

static void test_first(void)
{
    struct pl_etcd_view view;
    struct pl_arena arena;

    pl__arena_init(&arena, NULL, 0);
    CASE("the first observation, and what it is good for")
    struct fake_api *api = healthy(3);
    fake_run(api, 100);
    CHECK_INT(etcd(api)->observations, 1);
    CHECK_INT(etcd(api)->trusts, 1);
    CHECK_STR(pl__str(etcd(api)->trusted_key), "key of the CA");
    CHECK_STR(pl__str(etcd(api)->asked), "n0 n1 n2");
    CHECK_STR(pl__str(etcd(api)->address), "10.0.0.0");
    CLUSTER_SAID(api, "True EtcdClusterHealthy");
    for (int i = 0; i < 3; i++)
        MEMBER_SAID(api, i, "True Healthy");
    CHECK_INT(kcp(api)->patches, 1); /* it was waited for */
    CHECK(view_of(api, &arena, &view));
    CHECK_STR(view.endpoint, "etcd-n0");
    CHECK_INT(view.members.count, 3);
    CHECK(view.leader != 0);
    CHECK(api->now.wall_ms - view.observed_ms < 100 && api->now.wall_ms - view.observed_ms > 0);
    CHECK_INT(fake_disagreements(api, PL_PROFILE_TABLES, true), 0);

    CASE("nothing is written when nothing changes, and what is asked adds up")
    uint64_t patches = api->patches, judged = api->controller->counts.reconciles[0][0];
    fake_run(api, 10 * 60 * 1000);
    CHECK_INT(api->patches, patches);
    CHECK(api->controller->counts.reconciles[0][0] <=
          judged + 2);                          /* the same answer wakes nobody */
    CHECK_INT(etcd(api)->observations, 2 + 19); /* the second for our own writes */
    CHECK_INT(etcd(api)->trusts, 1);
    fake_finish(api);

    CASE("until etcd answers there is no view, and nothing is written for it")
    api = prepared(3, 0);
    etcd(api)->mute = true;
    fake_condition_set(api, kcp(api), "EtcdClusterHealthy", "True", "EtcdClusterHealthy", "");
    fake_condition(kcp(api), "EtcdClusterHealthy")->ours = true;
    fake_put(api, kcp(api));
    fake_start(api, &status_mode);
    fake_run(api, 5000);
    CHECK_INT(etcd(api)->observations, 1);
    CHECK(!view_of(api, &arena, &view));
    CHECK_INT(pl_controller_pending(api->controller), 1);
    CHECK_INT(api->patches, 0);
    fake_run(api, 10000);
    SAID(kcp(api), "ControlPlaneComponentsHealthy", "True Healthy");
    CLUSTER_SAID(api, "True EtcdClusterHealthy");
    MEMBER_SAID(api, 0, "-");

    CASE("a client that never answers is given up after two minutes")
    fake_run(api, 104 * 1000);
    CHECK(!view_of(api, &arena, &view));
    CLUSTER_SAID(api, "True EtcdClusterHealthy");
    fake_run(api, 2000);
    CHECK(view_of(api, &arena, &view));
    CHECK_STR(view.connect_error, "no answer from etcd for more than 2 minutes");
    CLUSTER_SAID(api,
                 "Unknown HealthUnknown Failed to connect to etcd: no answer from etcd for more "
                 "than 2 minutes");
    CHECK_INT(pl_controller_pending(api->controller), 0);
    etcd(api)->mute = false; /* the next call went the same way */
    fake_run(api, 155 * 1000);
    CLUSTER_SAID(api, "True EtcdClusterHealthy");
    fake_finish(api);

    CASE("external etcd is never asked, nor its Secret read")
    api = prepared(3, FAKE_EXTERNAL_ETCD);
    fake_etcd_secret(api, "alpha", "key");
    fake_start(api, &status_mode);
    fake_run(api, 5 * 60 * 1000);
    CHECK_INT(etcd(api)->observations + etcd(api)->trusts, 0);
    CHECK_INT(pl_controller_pending(api->controller), 0);
    CLUSTER_SAID(api, "-");
    fake_finish(api);

    CASE("nobody to ask: the profiles say what they make of it, and nothing waits")
    for (int profile = 0; profile < 2; profile++) {
        api = prepared(1, 0);
        fake_delete(api, fake_find(api, 1, RESOURCE_NODES, "", "n0"));
        fake_start(api, &(struct pl_controller_options){ .mode = MODE_STATUS,
                                                         .profile = (enum pl_profile)profile });
        fake_run(api, 60 * 1000);
        CHECK_INT(etcd(api)->observations + etcd(api)->trusts, 0);
        CHECK_INT(pl_controller_pending(api->controller), 0);
        MEMBER_SAID(api, 0,
                    profile
                        ? "False NotHealthy Etcd reports the cluster is composed by [], but the "
                          "etcd member hosted on this Machine is not included"
                        : "Unknown InspectionFailed Failed to connect to etcd: no Node with an "
                          "etcd member to connect to");
        /* A look that finds nobody again lets go what has waited for it. */
        fake_node(api, 1, "stranger");
        fake_run(api, 1000);
        CHECK(strstr(fake_said(kcp(api), "EtcdClusterHealthy"), "Node stranger"));
        fake_delete(api, fake_find(api, 1, RESOURCE_NODES, "", "stranger"));
        fake_run(api, 1000);
        CHECK(!strstr(fake_said(kcp(api), "EtcdClusterHealthy"), "Node stranger"));
        fake_node(api, 1, "n0");
        fake_run(api, 1000);
        CHECK_INT(etcd(api)->observations, 1);
        MEMBER_SAID(api, 0, "True Healthy");
        fake_delete(api, fake_find(api, 1, RESOURCE_NODES, "", "n0"));
        fake_run(api, 5000);
        CHECK(!view_of(api, &arena, &view));
        CHECK(strncmp(member_said(api, 0), profile ? "False" : "Unknown", 5) == 0);
        fake_finish(api);
    }
    pl__arena_release(&arena);
}

/* --- when ------------------------------------------------------------------------------------------- */

static void test_when(void)
{
    CASE("changes are gathered for 100 ms, two seconds apart from the last look")
    struct fake_api *api = healthy(3);
    fake_run(api, 10 * 1000);
    int before = etcd(api)->observations;
    for (int i = 0; i < 10; i++) {
        fake_pod(api, 1, "kube-scheduler", "n1", i % 2 ? "Running" : "Crash");
        fake_run(api, 5);
    }
    CHECK_INT(etcd(api)->observations, before);
    uint64_t took = run_until_asked(api, before + 1, 1000);
    CHECK(took >= 45 && took <= 60);
    fake_pod(api, 1, "kube-scheduler", "n1", "Crash");
    took = run_until_asked(api, before + 2, 10000);
    CHECK(took >= 1990 && took <= 2010);

    CASE("every 30 s without changes")
    fake_run(api, 5000);
    before = etcd(api)->observations;
    uint64_t last = etcd(api)->asked_ms;
    run_until_asked(api, before + 1, 60 * 1000);
    CHECK_INT(etcd(api)->asked_ms - last, 30 * 1000);

    CASE("a Machine, a Node and a control plane that change; not a worker, nor a MachineDeployment")
    for (int i = 0; i < 3; i++) {
        fake_run(api, 3000);
        before = etcd(api)->observations;
        if (i == 0)
            fake_put(api, machine(api, 1));
        else if (i == 1)
            fake_put(api, fake_find(api, 1, RESOURCE_NODES, "", "n1"));
        else
            fake_put(api, kcp(api));
        fake_run(api, 200);
        CHECK_INT(etcd(api)->observations, before + 1);
    }
    fake_run(api, 3000);
    before = etcd(api)->observations;
    fake_worker(api, "alpha-w0", "alpha", "alpha-ms", "alpha-md");
    fake_run(api, 500);
    CHECK_INT(etcd(api)->observations, before);

    CASE("a change while a call is under way is looked at afterwards; one call at a time")
    etcd(api)->slow_ms = 5000;
    run_until_asked(api, before + 1, 60 * 1000);
    fake_run(api, 3000);
    fake_pod(api, 1, "kube-scheduler", "n1", "Running");
    took = run_until_asked(api, before + 2, 60 * 1000);
    CHECK(took >= 2000 && took <= 2200);
    CLUSTER_SAID(api, "True EtcdClusterHealthy");
    fake_finish(api);

    CASE("or as often as it is told to")
    api = prepared(1, 0);
    fake_start(api, &(struct pl_controller_options){ .mode = MODE_STATUS, .etcd_period_s = 5 });
    fake_run(api, 20 * 1000);
    before = etcd(api)->observations;
    last = etcd(api)->asked_ms;
    run_until_asked(api, before + 1, 60 * 1000);
    CHECK_INT(etcd(api)->asked_ms - last, 5 * 1000);
    fake_finish(api);
}

/* --- whom --------------------------------------------------------------------------------------------- */

static void test_whom(void)
{
    CASE("members last known healthy first, then by name; deleting Machines and strangers are not "
         "asked")
    struct fake_api *api = prepared(5, 0);
    fake_condition_set(api, machine(api, 2), "EtcdMemberHealthy", "True", "Healthy", "");
    fake_condition_set(api, machine(api, 4), "EtcdMemberHealthy", "True", "Healthy", "");
    fake_condition_set(api, machine(api, 1), "EtcdMemberHealthy", "False", "NotHealthy", "");
    fake_put(api, machine(api, 1));
    fake_put(api, machine(api, 2));
    fake_put(api, machine(api, 4));
    machine(api, 3)->deleted_ms = api->now.wall_ms;
    fake_put(api, machine(api, 3));
    fake_machine(api, "alpha-other", "alpha", "nobody", "n9");
    fake_node(api, 1, "n9");
    fake_start(api, &(struct pl_controller_options){ .mode = MODE_SHADOW });
    etcd(api)->down = "n2";
    fake_run(api, 200);
    CHECK_STR(pl__str(etcd(api)->asked), "n2 n4 n0 n1");

    CASE("who answered last comes first of all")
    fake_run(api, 31 * 1000);
    CHECK_STR(pl__str(etcd(api)->asked), "n4 n2 n0 n1");
    etcd(api)->down = "n2 n4";
    fake_run(api, 30 * 1000);
    CHECK_STR(pl__str(etcd(api)->asked), "n4 n2 n0 n1");
    fake_run(api, 30 * 1000);
    CHECK_STR(pl__str(etcd(api)->asked), "n0 n2 n4 n1");
    fake_finish(api);
}

/* --- the CA ------------------------------------------------------------------------------------------- */

static void test_secret(void)
{
    CASE("a Secret that cannot be used is told in words, and tried again")
    static const struct {
        const char *what, *said;
    } cases[] = {
        { "gone", "Secret default/alpha-etcd: not found" },
        { "forbidden", "Secret default/alpha-etcd: forbidden; grant get of Secrets with the roles "
                       "in deploy/rbac" },
        { "no key", "Secret default/alpha-etcd: no tls.key" },
        { "no certificate", "Secret default/alpha-etcd: no tls.crt" },
        { "not base64", "Secret default/alpha-etcd: tls.key is not base64" },
        { "refused", "Secret default/alpha-etcd: the API server answered 500" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char said[256];
        struct fake_api *api = prepared(3, 0);
        const char *what = cases[i].what;
        if (strcmp(what, "gone") == 0)
            fake_delete(api, etcd_secret(api));
        else if (strcmp(what, "forbidden") == 0)
            fake_fail(api, (struct fake_fault){ .part = "alpha-etcd", .status = 403, .count = 5 });
        else if (strcmp(what, "refused") == 0)
            fake_fail(api, (struct fake_fault){ .part = "alpha-etcd", .status = 500, .count = 4 });
        else if (strcmp(what, "no key") == 0)
            fake_etcd_secret(api, "alpha", NULL);
        else if (strcmp(what, "no certificate") == 0)
            fake_set(&etcd_secret(api)->data, "\"tls.key\":\"AAAA\"");
        else
            fake_set(&etcd_secret(api)->data, "\"tls.crt\":\"AAAA\",\"tls.key\":\"?\"");
        fake_start(api, &status_mode);
        fake_run(api, 9000);
        CHECK_INT(etcd(api)->observations + etcd(api)->trusts, 0);
        snprintf(said, sizeof said, "Unknown HealthUnknown Failed to connect to etcd: %s",
                 cases[i].said);
        CLUSTER_SAID(api, said);
        CHECK_INT(pl_controller_pending(api->controller), 0);
        fake_etcd_secret(api, "alpha", "key");
        fake_run(api, 60 * 1000);
        CHECK_INT(etcd(api)->trusts, 1);
        CLUSTER_SAID(api, "True EtcdClusterHealthy");
        fake_finish(api);
    }

    CASE("a fault in passing is not told")
    struct fake_api *api = prepared(3, 0);
    fake_fail(api, (struct fake_fault){ .part = "alpha-etcd", .status = 0, .count = 2 });
    fake_start(api, &status_mode);
    fake_run(api, 60);
    CHECK_INT(pl_controller_pending(api->controller), 1);
    fake_run(api, 9000);
    CLUSTER_SAID(api, "True EtcdClusterHealthy");
    CHECK_INT(kcp(api)->patches, 1);
    fake_finish(api);

    CASE("retries back off: in ten minutes not many")
    api = prepared(3, 0);
    fake_delete(api, etcd_secret(api));
    fake_start(api, &status_mode);
    fake_run(api, 1000);
    size_t calls = api->call_count, others = 0;
    uint64_t probes = api->probes, watches = api->watches;
    for (int i = 0; i < 600; i++) { /* however often something changes */
        fake_put(api, fake_find(api, 1, RESOURCE_NODES, "", "n1"));
        fake_run(api, 1000);
    }
    others = (size_t)(api->probes - probes + api->watches - watches);
    CHECK(api->call_count - calls - others >= 7 && api->call_count - calls - others <= 25);
    fake_finish(api);

    CASE("a rotated CA: the Secret is read again, once a minute at most")
    api = healthy(3);
    fake_run(api, 5000);
    etcd(api)->key = "another key";
    fake_run(api, 31 * 1000);
    CLUSTER_SAID(api,
                 "Unknown HealthUnknown Failed to connect to etcd: certificate signed by unknown "
                 "authority");
    fake_run(api, 5 * 60 * 1000);
    CHECK(etcd(api)->trusts >= 5 && etcd(api)->trusts <= 7);
    fake_set(&etcd_secret(api)->labels, "\"x\":\"\""); /* the watch does not see it */
    fake_set(&etcd_secret(api)->data, "%s",
             "\"tls.crt\":\"Y2VydGlmaWNhdGVz\","
             "\"tls.key\":\"YW5vdGhlciBrZXk=\"");
    fake_put(api, etcd_secret(api));
    fake_run(api, 61 * 1000);
    CLUSTER_SAID(api, "True EtcdClusterHealthy");
    CHECK_STR(pl__str(etcd(api)->trusted_key), "another key");

    CASE("a Secret that the watch tells of is read again at once, and only then")
    int told = etcd(api)->trusts;
    fake_etcd_secret(api, "alpha", "a third key");
    etcd(api)->key = "a third key";
    fake_run(api, 3000);
    CHECK_INT(etcd(api)->trusts, told + 1);
    CHECK_STR(pl__str(etcd(api)->trusted_key), "a third key");
    CLUSTER_SAID(api, "True EtcdClusterHealthy");
    fake_expire(api, 0, true); /* everything anew: the same versions */
    fake_run(api, 30 * 1000);
    CHECK_INT(etcd(api)->trusts, told + 1);
    fake_etcd_secret(api, "alpha", "another key");
    etcd(api)->key = "another key";
    fake_run(api, 3000);

    CASE("an old CA is read again after twelve hours, and goes on to be used when that fails")
    int trusts = etcd(api)->trusts;
    fake_run(api, 11 * 3600 * 1000);
    CHECK_INT(etcd(api)->trusts, trusts);
    fake_delete(api, etcd_secret(api));
    uint64_t patches = api->patches;
    fake_run(api, 2 * 3600 * 1000);
    CHECK_INT(etcd(api)->trusts, trusts);
    CHECK_INT(api->patches, patches);
    CLUSTER_SAID(api, "True EtcdClusterHealthy");
    fake_etcd_secret(api, "alpha", "another key");
    fake_run(api, 5 * 60 * 1000);
    CHECK_INT(etcd(api)->trusts, trusts + 1);
    fake_finish(api);

    CASE("no memory that is given back holds the key")
    api = fake_new(&(struct fake_options){ .servers = 1, .piece_max = 300 });
    api->secrets[0] = "key of the CA";
    api->secrets[1] = "a2V5IG9mIHRoZSBDQQ=="; /* the same, base64 */
    fake_healthy(api, "alpha", 1, 3, 0);
    fake_start(api, &status_mode);
    fake_run(api, 60 * 1000);
    CHECK_INT(etcd(api)->trusts, 1);
    fake_finish(api);

    CASE("nor one that nobody took")
    api = prepared(3, 0);
    api->secrets[0] = "key of the CA";
    fake_start(api, &status_mode);
    fake_run(api, 100);
    pl__etcd_trust(api->controller, entry(api)->remote.server, PL_STR("certificates"),
                   PL_STR("key of the CA"));
    fake_finish(api);
}

/* --- what it says --------------------------------------------------------------------------------------- */

static void test_says(void)
{
    struct pl_etcd_view view;
    struct pl_arena arena;

    pl__arena_init(&arena, NULL, 0);
    CASE("another answer wakes: an alarm, a learner, a member that is missing, one too many")
    struct fake_api *api = healthy(3);
    fake_run(api, 5000);
    struct fake_etcd *e = etcd(api);
    e->member_count = 3;
    e->members[0] = (struct fake_member){ "n0", UINT64_MAX, false, 0 };
    e->members[1] = (struct fake_member){ "n1", 2, false, 1 };
    e->members[2] = (struct fake_member){ "n2", 3, true, 0 };
    fake_run(api, 31 * 1000);
    MEMBER_SAID(api, 0, "True Healthy");
    MEMBER_SAID(api, 1, "False NotHealthy Etcd reports alarms: NOSPACE");
    MEMBER_SAID(api, 2, "False NotHealthy Waiting for learner etcd member to be promoted");
    CHECK(strncmp(fake_said(kcp(api), "EtcdClusterHealthy"), "False EtcdClusterNotHealthy ", 28) ==
          0);
    CHECK(view_of(api, &arena, &view));
    CHECK(view.members.count == 3 && view.members.items[2].id == UINT64_MAX);
    CHECK_INT(fake_disagreements(api, PL_PROFILE_TABLES, true), 0);
    e->members[1] = (struct fake_member){ "n1", 2, false, 0 };
    e->members[2] = (struct fake_member){ "gone", 3, false, 0 };
    fake_run(api, 31 * 1000);
    CLUSTER_SAID(api, "False EtcdClusterNotHealthy Etcd members do not match Machines: Machine "
                      "alpha-m2 has no etcd member, etcd member gone has no Machine");

    CASE("the parts that fail alone, and everybody down")
    e->member_count = 0;
    e->members_error = "request timed out";
    fake_run(api, 31 * 1000);
    MEMBER_SAID(api, 0, "Unknown InspectionFailed Failed to get etcd members: request timed out");
    e->members_error = NULL;
    e->alarms_error = "request timed out";
    fake_run(api, 31 * 1000);
    MEMBER_SAID(api, 0, "Unknown InspectionFailed Failed to get etcd alarms: request timed out");
    e->alarms_error = NULL;
    e->status_error = "etcdserver: no leader";
    fake_run(api, 31 * 1000);
    MEMBER_SAID(api, 0,
                "False NotHealthy Etcd endpoint etcd-n0 reports errors: etcdserver: no leader");
    e->status_error = NULL;
    e->down = "n0 n1 n2";
    fake_run(api, 31 * 1000);
    CLUSTER_SAID(api, "Unknown HealthUnknown Failed to connect to etcd: no member answers");
    e->down = NULL;
    fake_run(api, 31 * 1000);
    CLUSTER_SAID(api, "True EtcdClusterHealthy");

    CASE("a call that was cancelled says nothing of etcd")
    uint64_t patches = api->patches;
    e->failure = ETCD_CANCELLED;
    fake_run(api, 31 * 1000);
    CHECK_INT(api->patches, patches);
    e->failure = ETCD_OK;

    CASE("metrics")
    struct pl_buf text;
    pl__buf_init(&text, &arena, SIZE_MAX);
    pl_controller_metrics(api->controller, api->now, &text);
    CHECK(strstr(pl__buf_str(&text).ptr, "plimsoll_etcd_quorum_tolerance{cluster_name=\"alpha\","
                                         "cluster_namespace=\"default\"} 1\n") != NULL);
    CHECK(strstr(pl__buf_str(&text).ptr, "source=\"etcd\"} ") != NULL);
    const char *failures =
        strstr(pl__buf_str(&text).ptr, "\nplimsoll_etcd_observation_failures_total ");
    CHECK(failures != NULL && strtol(strchr(failures, ' ') + 1, NULL, 10) >= 2);

    CASE("the wall clock jumps: how old the view is stays the same")
    CHECK(view_of(api, &arena, &view));
    int64_t age = api->now.wall_ms - view.observed_ms;
    fake_jump(api, 3600 * 1000);
    fake_step(api, &(struct pl_event){ .type = EVENT_TICK });
    CHECK(view_of(api, &arena, &view));
    CHECK_INT(api->now.wall_ms - view.observed_ms, age);
    fake_finish(api);

    CASE("texts and lists of etcd are bounded")
    static struct pl_etcd_member_info many[CONTROL_PLANE_MACHINES_MAX + 1];
    static char long_text[5000];
    memset(long_text, 'x', sizeof long_text);
    api = healthy(3);
    fake_run(api, 5000);
    etcd(api)->mute = true;
    run_until_asked(api, etcd(api)->observations + 1, 60 * 1000);
    fake_run(api, 10);
    struct pl_etcd_answer answer = { .node = PL_STR("n0"),
                                     .members = many,
                                     .member_count = CONTROL_PLANE_MACHINES_MAX + 1,
                                     .alarms_error = { long_text, sizeof long_text } };
    fake_step(api, &(struct pl_event){ .type = EVENT_ETCD,
                                       .id = entry(api)->remote.etcd.call_id,
                                       .etcd = &answer });
    CHECK(view_of(api, &arena, &view));
    CHECK_STR(view.members_error, "more than 1000 members");
    CHECK_INT(view.alarms_error.len, 1024);
    fake_finish(api);
    pl__arena_release(&arena);
}

/* --- connections ---------------------------------------------------------------------------------------- */

static void test_connections(void)
{
    struct pl_etcd_view view;
    struct pl_arena arena;

    pl__arena_init(&arena, NULL, 0);
    CASE("a connection that is lost: what was seen is forgotten, and the next one starts with the "
         "Secret")
    struct fake_api *api = healthy(3);
    fake_run(api, 5000);
    CHECK(view_of(api, &arena, &view));
    api->servers[1].refuses = true;
    fake_run(api, 60 * 1000);
    CHECK(!view_of(api, &arena, &view));
    CHECK(entry(api)->remote.etcd.view == NULL);
    CLUSTER_SAID(api, "Unknown HealthUnknown Failed to connect to etcd: the API server does not "
                      "answer"); /* kept from before it went down */
    uint32_t trusted = etcd(api)->trusted;
    int observations = etcd(api)->observations;
    fake_run(api, 60 * 1000);
    CHECK_INT(etcd(api)->observations, observations);
    api->servers[1].refuses = false;
    fake_run(api, 2 * 60 * 1000);
    CHECK(etcd(api)->trusted != trusted);
    CHECK(etcd(api)->trusts == 2);
    CLUSTER_SAID(api, "True EtcdClusterHealthy");

    CASE("another kubeconfig: the call under way is let go, its late answer goes nowhere")
    etcd(api)->mute = true;
    run_until_asked(api, etcd(api)->observations + 1, 60 * 1000);
    fake_run(api, 10);
    uint64_t id = entry(api)->remote.etcd.call_id;
    CHECK(id != 0);
    etcd(api)->mute = false;
    fake_healthy(api, "beta", 2, 1, FAKE_NO_SECRET);
    fake_secret(api, "alpha", "fake:2");
    fake_run(api, 5000);
    CHECK_INT(api->servers[2].etcd.trusts, 1);
    CLUSTER_SAID(api, fake_said(kcp(api), "EtcdClusterHealthy"));
    struct pl_etcd_answer late = { .failure = ETCD_UNREACHABLE, .error = PL_STR("late") };
    fake_step(api, &(struct pl_event){ .type = EVENT_ETCD, .id = id, .etcd = &late });
    CHECK(view_of(api, &arena, &view));
    CHECK_INT(view.connect_error.len, 0);
    CHECK_INT(view.members.count, 1);
    fake_finish(api);

    CASE("a Cluster that goes while its etcd is asked")
    api = healthy(3);
    fake_run(api, 5000);
    etcd(api)->mute = true;
    run_until_asked(api, etcd(api)->observations + 1, 60 * 1000);
    fake_delete(api, fake_find(api, 0, RESOURCE_CLUSTERS, "default", "alpha"));
    fake_run(api, 1000);
    CHECK(entry(api)->remote.etcd.call_id == 0);
    fake_finish(api);

    CASE("shutdown in the middle of it")
    api = healthy(3);
    etcd(api)->mute = true;
    fake_run(api, 1000);
    fake_step(api, &(struct pl_event){ .type = EVENT_SHUTDOWN });
    CHECK(pl_controller_finished(api->controller));
    fake_finish(api);

    CASE("reading commands get the view, and wait for it")
    api = prepared(3, 0);
    fake_start(api,
               &(struct pl_controller_options){ .reads_only = true, .connect_on_request = true });
    fake_run(api, 1000);
    CHECK_INT(etcd(api)->observations, 0);
    pl_controller_connect(api->controller, PL_STR("default"), PL_STR("alpha"), api->now);
    for (int i = 0; i < 1000 && pl_controller_pending(api->controller); i++)
        fake_run(api, 1);
    CHECK(view_of(api, &arena, &view));
    CHECK_INT(view.members.count, 3);
    CHECK_INT(etcd(api)->observations, 1);
    fake_finish(api);
    pl__arena_release(&arena);
}

int main(void)
{
    test_first();
    test_when();
    test_whom();
    test_secret();
    test_says();
    test_connections();
    return test_end("controller/etcd");
}
