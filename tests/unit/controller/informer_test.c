/* Informers against servers that cut, forget, lie and come back: nothing is missed, nothing is repeated. */
#include "test.h"

#include "finish.h"

static struct pl_controller_options reading = { .mode = MODE_SHADOW };

static struct fake_api *started(const struct fake_options *options, int clusters)
{
    struct fake_api *api = fake_new(options);
    char name[32];

    for (int i = 0; i < clusters; i++) {
        snprintf(name, sizeof name, "c%d", i);
        fake_cluster(api, name);
    }
    fake_start(api, &reading);
    return api;
}

static uint32_t known(struct fake_api *api, int resource)
{
    return api->controller->world.stores[resource].count;
}

static const struct pl_cluster *cached(struct fake_api *api, const char *name)
{
    struct pl_item *item = pl__store_find(&api->controller->world.stores[RESOURCE_CLUSTERS],
                                          PL_STR("default"), pl__str(name));
    return item ? item->object : NULL;
}

/* Everything in the cache is what the server has, version by version. */
static void check_same(struct fake_api *api)
{
    uint32_t count = 0;

    for (struct fake_object *o = api->servers[0].first; o; o = o->next) {
        if (o->resource != RESOURCE_CLUSTERS)
            continue;
        const struct pl_cluster *c = cached(api, o->name);
        count++;
        CHECK(c != NULL);
        if (c)
            CHECK_INT(c->meta.resource_version, o->version);
    }
    CHECK_INT(known(api, RESOURCE_CLUSTERS), count);
}

static uint64_t events_seen(struct fake_api *api)
{
    return api->controller->counts.watch_events;
}

static void change(struct fake_api *api, const char *name)
{
    fake_put(api, fake_find(api, 0, RESOURCE_CLUSTERS, "default", name));
}

static void test_initial(void)
{
    for (int with = 0; with < 2; with++) {
        CASE("initial sync %s", with ? "by WatchList" : "by LIST")
        struct fake_api *api = fake_new(&(struct fake_options){ .latency_ms = 5 });
        char name[32];
        api->servers[0].without_watchlist = !with;
        for (int i = 0; i < 1700; i++) {
            snprintf(name, sizeof name, "c%d", i);
            fake_cluster(api, name);
        }
        fake_start(api, &reading);
        CHECK(!pl_controller_synced(api->controller));
        fake_run(api, 500);
        CHECK(pl_controller_synced(api->controller));
        check_same(api);
        if (with)
            CHECK_INT(api->pages, 0);
        else
            CHECK_INT(api->pages, 4 + RESOURCE_MANAGEMENT_COUNT - 1); /* 500, 500, 500, 200 */
        CHECK_INT(api->watches, with ? RESOURCE_MANAGEMENT_COUNT : 2 * RESOURCE_MANAGEMENT_COUNT);

        change(api, "c77");
        fake_delete(api, fake_find(api, 0, RESOURCE_CLUSTERS, "default", "c78"));
        fake_cluster(api, "new");
        fake_run(api, 100);
        CHECK(cached(api, "c78") == NULL);
        check_same(api);
        fake_finish(api);
    }
}

static void test_pages_move(void)
{
    CASE("objects come and go between pages of a list")
    struct fake_api *api = started(&(struct fake_options){ .latency_ms = 10 }, 60);
    api->servers[0].without_watchlist = true;
    api->page_size = 10;
    fake_run(api, 75);
    fake_delete(api, fake_find(api, 0, RESOURCE_CLUSTERS, "default", "c0"));
    fake_delete(api, fake_find(api, 0, RESOURCE_CLUSTERS, "default", "c9"));
    fake_cluster(api, "a");
    fake_cluster(api, "z");
    fake_run(api, 1000);
    check_same(api);
    fake_finish(api);

    CASE("the continue token expires in the middle")
    api = started(&(struct fake_options){ .latency_ms = 10 }, 60);
    api->servers[0].without_watchlist = true;
    api->page_size = 10;
    fake_run(api, 75);
    fake_expire(api, 0, false);
    fake_run(api, 5000);
    CHECK(pl_controller_synced(api->controller));
    check_same(api);
    fake_finish(api);
}

static void test_cuts(void)
{
    static const struct {
        const char *name, *error;
        uint64_t wait_ms;
        bool relists;
    } cuts[] = {
        { "clean end", NULL, 200, false },
        { "cut stream", "connection reset", 3000, false },
    };

    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        CASE("%s: goes on where it was", cuts[i].name)
        struct fake_api *api = started(&(struct fake_options){ .latency_ms = 2 }, 20);
        fake_run(api, 2000);
        uint64_t before = events_seen(api);
        uint64_t syncs = api->controller->world.informers[RESOURCE_CLUSTERS].generation;
        change(api, "c1");
        fake_run(api, 10);
        fake_cut(api, 0, cuts[i].error);
        change(api, "c2");
        fake_delete(api, fake_find(api, 0, RESOURCE_CLUSTERS, "default", "c3"));
        fake_cluster(api, "fresh");
        fake_run(api, cuts[i].wait_ms);
        check_same(api);
        /* Each of the four once: neither missed nor repeated. */
        CHECK_INT(events_seen(api) - before, 4);
        CHECK_INT(api->controller->world.informers[RESOURCE_CLUSTERS].generation, syncs);
        fake_finish(api);
    }

    CASE("a clean end at once, again and again: backs off")
    struct fake_api *api = started(&(struct fake_options){ .latency_ms = 0 }, 3);
    fake_run(api, 2000);
    uint64_t watches = api->watches;
    for (int i = 0; i < 3000; i++) {
        fake_cut(api, 0, NULL);
        fake_run(api, 10);
    }
    CHECK(api->watches - watches < 8 * 20);
    fake_run(api, 120000);
    change(api, "c1");
    fake_run(api, 100);
    check_same(api);
    fake_finish(api);
}

static void test_gone(void)
{
    for (int way = 0; way < 3; way++) {
        for (int list = 0; list < 2; list++) {
            CASE("410 %s, %s",
                 way == 0   ? "as an event of a running watch"
                 : way == 1 ? "as an event of a new watch"
                            : "as HTTP status",
                 list ? "then LIST" : "then WatchList")
            struct fake_api *api = fake_new(&(struct fake_options){ .latency_ms = 2 });
            char name[32];
            for (int i = 0; i < 20; i++) {
                snprintf(name, sizeof name, "c%d", i);
                fake_cluster(api, name);
            }
            api->servers[0].without_watchlist = list;
            api->servers[0].gone_by_status = way == 2;
            fake_start(api, &reading);
            fake_run(api, 2000);
            uint64_t syncs = api->controller->world.informers[RESOURCE_CLUSTERS].generation;
            fake_cut(api, 0, "reset");
            fake_run(api, 5);
            fake_delete(api, fake_find(api, 0, RESOURCE_CLUSTERS, "default", "c3"));
            change(api, "c4");
            fake_cluster(api, "fresh");
            fake_expire(api, 0, way == 0);
            fake_run(api, 8000);
            check_same(api);
            CHECK_INT(api->controller->world.informers[RESOURCE_CLUSTERS].generation, syncs + 1);
            CHECK(cached(api, "c3") == NULL);
            fake_finish(api);
        }
    }
}

static void test_pieces(void)
{
    CASE("events in pieces of any size")
    for (uint64_t seed = 0; seed < 30; seed++) {
        struct fake_api *api = started(
            &(struct fake_options){
                .latency_ms = 3, .shuffled = true, .piece_max = 1 + seed * 7, .seed = seed },
            12);
        fake_run(api, 60000);
        change(api, "c3");
        change(api, "c5");
        fake_run(api, 30000);
        check_same(api);
        CHECK_INT(api->offences, 0);
        CHECK_INT(fake_end(api), 0);
        fake_free(api);
    }
}

static void test_garbage(void)
{
    static const char *const texts[] = {
        "garbage\n",
        "{\"type\":\"ADDED\"}\n",
        "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":7}}}\n",
        "{\"type\":\"ADDED\",\"object\":[]}\n",
        "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"x\",\n",
        "{\"type\":\"ERROR\",\"object\":\"what\"}\n",
        "{\"type\":\"ERROR\",\"object\":{\"code\":500,\"message\":\"internal\"}}\n",
        "{\"type\":\"ERROR\",\"object\":{\"code\":429,\"message\":\"slow\"}}\n",
        "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{}}}\n",
        "{\"type\":\"BOOKMARK\",\"object\":7}\n",
        "{\"type\":\"NEWTYPE\",\"object\":{\"metadata\":{\"name\":\"c1\"}}}\n",
        "\n\n\n",
        "{}\n",
        "[]\n",
        "\xff\xfe\n",
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        CASE("garbage on a watch: %zu", i)
        struct fake_api *api = started(&(struct fake_options){ .latency_ms = 1 }, 8);
        fake_run(api, 2000);
        fake_inject(api, 0, RESOURCE_CLUSTERS, texts[i]);
        fake_run(api, 10);
        change(api, "c3");
        fake_delete(api, fake_find(api, 0, RESOURCE_CLUSTERS, "default", "c4"));
        fake_run(api, 8000);
        check_same(api);
        CHECK_INT(api->controller->waiter_count, RESOURCE_MANAGEMENT_COUNT);
        fake_finish(api);
    }

    CASE("an event that is older than what is known changes nothing")
    struct fake_api *old = started(&(struct fake_options){ 0 }, 3);
    fake_run(old, 2000);
    fake_set(&fake_find(old, 0, RESOURCE_CLUSTERS, "default", "c1")->spec, "\"paused\":true");
    change(old, "c1");
    fake_run(old, 10);
    fake_inject(old, 0, RESOURCE_CLUSTERS,
                "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"name\":\"c1\",\"namespace\":"
                "\"default\",\"resourceVersion\":\"50\"}}}\n");
    fake_run(old, 10);
    CHECK(cached(old, "c1")->paused);
    fake_finish(old);

    CASE("object before type")
    struct fake_api *api = started(&(struct fake_options){ 0 }, 3);
    fake_run(api, 2000);
    fake_inject(api, 0, RESOURCE_CLUSTERS,
                "{\"object\":{\"metadata\":{\"name\":\"odd\",\"namespace\":\"default\","
                "\"resourceVersion\":\"104\"}},"
                "\"type\":\"ADDED\"}\n");
    fake_run(api, 10);
    CHECK(cached(api, "odd") != NULL);
    fake_finish(api);

    CASE("an object that cannot be read does not hide the others")
    api = started(&(struct fake_options){ 0 }, 3);
    struct fake_object *bad = fake_find(api, 0, RESOURCE_CLUSTERS, "default", "c1");
    fake_set(&bad->spec, "\"paused\":\"yes, please\"");
    fake_put(api, bad);
    fake_run(api, 60000);
    CHECK(pl_controller_synced(api->controller));
    CHECK(cached(api, "c0") != NULL);
    CHECK(cached(api, "c1") == NULL);
    CHECK(cached(api, "c2") != NULL);
    fake_set(&bad->spec, "\"paused\":true");
    fake_put(api, bad);
    fake_run(api, 10);
    check_same(api);
    fake_finish(api);
}

static void test_refusals(void)
{
    static const int statuses[] = { 429, 500, 503, 504, 0 };

    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        for (int list = 0; list < 2; list++) {
            CASE("answers %d at the start, %s", statuses[i], list ? "LIST" : "WatchList")
            struct fake_api *api = fake_new(&(struct fake_options){ .latency_ms = 1 });
            fake_cluster(api, "c0");
            fake_cluster(api, "c1");
            api->servers[0].without_watchlist = list;
            fake_fail(api,
                      (struct fake_fault){ .server = 0,
                                           .status = statuses[i],
                                           .count = 2,
                                           .part = list ? "clusters?limit" : "clusters?watch" });
            fake_start(api, &reading);
            fake_run(api, 10000);
            CHECK(pl_controller_synced(api->controller));
            CHECK(!api->stopped);
            check_same(api);
            fake_finish(api);

            CASE("answers %d to a watch that goes on, %s", statuses[i], list ? "LIST" : "WatchList")
            api = fake_new(&(struct fake_options){ .latency_ms = 1 });
            fake_cluster(api, "c0");
            fake_cluster(api, "c1");
            api->servers[0].without_watchlist = list;
            fake_start(api, &reading);
            fake_run(api, 2000);
            fake_cut(api, 0, NULL);
            change(api, "c1");
            fake_fail(api,
                      (struct fake_fault){
                          .server = 0, .status = statuses[i], .count = 2, .part = "/clusters?" });
            fake_run(api, 15000);
            check_same(api);
            fake_finish(api);
        }
    }

    CASE("Retry-After is kept")
    struct fake_api *api = started(&(struct fake_options){ 0 }, 2);
    fake_run(api, 2000);
    fake_cut(api, 0, NULL);
    fake_fail(
        api,
        (struct fake_fault){
            .server = 0, .status = 429, .retry_after_s = 20, .count = 1, .part = "/clusters?" });
    fake_run(api, 100);
    change(api, "c1");
    fake_run(api, 19000);
    CHECK(cached(api, "c1")->meta.resource_version !=
          fake_find(api, 0, RESOURCE_CLUSTERS, "default", "c1")->version);
    fake_run(api, 2000);
    check_same(api);
    fake_finish(api);

    CASE("the server was restored from a backup: its versions are lower than ours")
    api = started(&(struct fake_options){ 0 }, 4);
    for (int i = 0; i < 50; i++)
        change(api, "c1");
    fake_run(api, 2000);
    fake_restore(api, 0);
    fake_set(&fake_find(api, 0, RESOURCE_CLUSTERS, "default", "c1")->spec, "\"paused\":true");
    fake_run(api, 120000);
    check_same(api);
    CHECK(cached(api, "c1")->paused);
    change(api, "c2");
    fake_run(api, 100);
    check_same(api);
    fake_finish(api);

    CASE("a list without a resourceVersion is none")
    api = started(&(struct fake_options){ 0 }, 4);
    fake_run(api, 2000);
    api->servers[0].without_watchlist = true;
    fake_expire(api, 0, true);
    fake_fail(api, (struct fake_fault){
                       .server = 0, .status = 200, .count = 3, .part = "/clusters?limit" });
    fake_run(api, 2500);
    CHECK_INT(known(api, RESOURCE_CLUSTERS), 4);
    fake_run(api, 60000);
    check_same(api);
    fake_finish(api);
}

static void test_silence(void)
{
    CASE("a watch that falls silent and does not end is given up")
    struct fake_api *api = started(&(struct fake_options){ 0 }, 4);
    fake_run(api, 2000);
    fake_mute(api, 0);
    change(api, "c1");
    fake_delete(api, fake_find(api, 0, RESOURCE_CLUSTERS, "default", "c2"));
    fake_run(api, (600 + 60 + 5) * 1000);
    check_same(api);
    CHECK_INT(api->controller->world.informers[RESOURCE_CLUSTERS].generation, 1);
    fake_finish(api);

    CASE("a server that takes sendInitialEvents and does not know it: LIST")
    api = fake_new(&(struct fake_options){ 0 });
    api->servers[0].without_end_mark = true;
    fake_cluster(api, "c0");
    fake_start(api, &reading);
    fake_run(api, 125 * 1000);
    CHECK(pl_controller_synced(api->controller));
    change(api, "c0");
    fake_run(api, 10);
    check_same(api);
    fake_finish(api);
}

static void test_versions(void)
{
    CASE("only v1beta1 is served")
    struct fake_api *api = fake_new(&(struct fake_options){ 0 });
    api->servers[0].v1beta1 = true;
    fake_healthy(api, "alpha", 0, 1, FAKE_NO_SECRET);
    fake_start(api, &reading);
    fake_run(api, 100);
    CHECK(pl_controller_synced(api->controller));
    CHECK(!api->stopped);
    check_same(api);
    CHECK(cached(api, "alpha")->infrastructure_provisioned);
    CHECK(api->controller->world.informers[RESOURCE_CLUSTERS].on_fallback);

    CASE("v1beta2 comes with an upgrade and v1beta1 goes")
    api->servers[0].v1beta1 = false;
    fake_cut(api, 0, NULL);
    fake_run(api, 60000);
    CHECK(!api->controller->world.informers[RESOURCE_CLUSTERS].on_fallback);
    change(api, "alpha");
    fake_run(api, 10);
    check_same(api);
    fake_finish(api);

    CASE("a moment of 404 on a server that served v1beta2 does not lead to v1beta1")
    api = started(&(struct fake_options){ 0 }, 2);
    fake_run(api, 2000);
    fake_fail(api,
              (struct fake_fault){ .server = 0, .status = 404, .count = 3, .part = "/clusters?" });
    fake_expire(api, 0, true);
    fake_run(api, 60000);
    CHECK(!api->controller->world.informers[RESOURCE_CLUSTERS].on_fallback);
    check_same(api);
    fake_finish(api);

    CASE("optional kinds that are not there")
    api = fake_new(&(struct fake_options){ 0 });
    api->servers[0].absent[RESOURCE_MACHINE_POOLS] = 404;
    api->servers[0].absent[RESOURCE_MACHINE_HEALTH_CHECKS] = 404;
    fake_start(api, &reading);
    fake_run(api, 100);
    CHECK(pl_controller_synced(api->controller));
    CHECK(!api->stopped);

    CASE("... are found when they come")
    api->servers[0].absent[RESOURCE_MACHINE_POOLS] = 0;
    struct fake_object *pool = fake_make(api, 0, RESOURCE_MACHINE_POOLS, "default", "pool");
    fake_set(&pool->spec, "\"clusterName\":\"alpha\"");
    fake_put(api, pool);
    fake_run(api, 11 * 60000);
    CHECK_INT(known(api, RESOURCE_MACHINE_POOLS), 1);

    CASE("... and when they go again")
    api->servers[0].absent[RESOURCE_MACHINE_POOLS] = 404;
    fake_cut(api, 0, NULL);
    fake_run(api, 60000);
    CHECK_INT(known(api, RESOURCE_MACHINE_POOLS), 0);
    fake_finish(api);
}

static void test_startup(void)
{
    static const struct {
        int resource, status;
        const char *text;
    } cases[] = {
        { RESOURCE_KCPS, 404, "does not know kubeadmcontrolplanes.controlplane.cluster.x-k8s.io" },
        { RESOURCE_MACHINES, 403, "missing permission: machines is forbidden" },
        { RESOURCE_SECRETS, 403, "missing permission" },
        { RESOURCE_CLUSTERS, 401, "does not accept the credentials" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CASE("startup: %d on %s", cases[i].status, pl__resources[cases[i].resource].plural)
        struct fake_api *api = fake_new(&(struct fake_options){ .latency_ms = 1 });
        api->servers[0].absent[cases[i].resource] = cases[i].status;
        fake_start(api, &reading);
        fake_run(api, 5000);
        CHECK(api->stopped);
        CHECK(strstr(api->stop, cases[i].text) != NULL);
        fake_finish(api);
    }

    CASE("startup: unreachable")
    struct fake_api *api = fake_new(&(struct fake_options){ .latency_ms = 1 });
    api->servers[0].refuses = true;
    fake_start(api, &reading);
    fake_run(api, 500);
    CHECK(!api->stopped);
    fake_run(api, 20000);
    CHECK(api->stopped);
    CHECK(strstr(api->stop, "cannot reach the management API server: connection refused") != NULL);
    fake_finish(api);

    CASE("startup: unreachable, and someone waits at a prompt")
    api = fake_new(&(struct fake_options){ .latency_ms = 1 });
    api->servers[0].refuses = true;
    fake_start(api, &(struct pl_controller_options){ .reads_only = true });
    fake_run(api, 100);
    CHECK(api->stopped);
    fake_finish(api);

    CASE("once synced, losing the server stops nothing")
    api = started(&(struct fake_options){ .latency_ms = 1 }, 3);
    fake_run(api, 2000);
    api->servers[0].refuses = true;
    fake_cut(api, 0, "reset");
    fake_run(api, 600000);
    CHECK(!api->stopped);
    change(api, "c1");
    api->servers[0].refuses = false;
    fake_run(api, 61000);
    check_same(api);
    fake_finish(api);
}

static void test_scope(void)
{
    CASE("one namespace")
    struct fake_api *api = fake_new(&(struct fake_options){ 0 });
    fake_cluster(api, "mine");
    fake_put(api, fake_make(api, 0, RESOURCE_CLUSTERS, "other", "theirs"));
    struct pl_controller_options options = reading;
    options.namespace_ = "default";
    fake_start(api, &options);
    fake_run(api, 100);
    CHECK_INT(known(api, RESOURCE_CLUSTERS), 1);
    fake_put(api, fake_make(api, 0, RESOURCE_CLUSTERS, "other", "more"));
    fake_run(api, 100);
    CHECK_INT(known(api, RESOURCE_CLUSTERS), 1);
    fake_finish(api);

    CASE("Secrets that are no kubeconfig are not kept")
    api = fake_new(&(struct fake_options){ 0 });
    fake_cluster(api, "a");
    fake_secret(api, "a", "bad");
    struct fake_object *ca = fake_make(api, 0, RESOURCE_SECRETS, "default", "a-ca");
    fake_set(&ca->labels, "\"cluster.x-k8s.io/cluster-name\":\"a\"");
    fake_set(&ca->data, "\"tls.crt\":\"eA==\",\"value\":\"eA==\"");
    fake_put(api, ca);
    struct fake_object *label = fake_make(api, 0, RESOURCE_SECRETS, "default", "b-kubeconfig");
    fake_set(&label->labels, "\"cluster.x-k8s.io/cluster-name\":\"a\"");
    fake_put(api, label);
    fake_start(api, &reading);
    fake_run(api, 100);
    CHECK_INT(known(api, RESOURCE_SECRETS), 1);
    fake_finish(api);
}

int main(void)
{
    test_initial();
    test_pages_move();
    test_cuts();
    test_gone();
    test_pieces();
    test_garbage();
    test_refusals();
    test_silence();
    test_versions();
    test_startup();
    test_scope();
    return test_end("controller/informer");
}
