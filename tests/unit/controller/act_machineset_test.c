/* Remediation of a MachineDeployment's Machines, carried out: which requests, in which order, what happens
 * when they fail, and what a controller finds that starts again after any of them.
 *
 * The API server here is five objects and knows four requests; everything it is asked for is written down
 * in a few letters: "mark w0:MachineDeleting", "delete w0", "unmark w1". */
#include "test.h"

#include "controller/internal.h"

enum { MACHINES = 4 };

struct machine {
    bool there, healthy, marked, deleting;
    char reason[64], message[256]; /* of the mark, as they stand in JSON */
    uint64_t version;
};

struct api {
    struct pl_arena arena;
    struct machine machines[MACHINES]; /* w0 ..., the higher the newer */
    uint64_t version;
    const char *max_in_flight; /* JSON; NULL: none */
    bool md_paused, v1beta1_only;
    const char *control_plane; /* its status.version; NULL: there is none, "-": only a reference */
    char md_status[4096];      /* as it was applied: "status":{...}; empty: none */
    uint64_t md_version;
    char calls[1024];
    int fail_from, fail_count,
        fail_status; /* of the calls that change something; status 0: no answer */
    bool fail_after; /* ... though it was done, as the watch tells later */
    int untold;      /* the Machine of which it has to tell; -1: none */
    uint64_t untold_ms, machines_watch;
    int writes_together; /* most at once */
    struct pl_controller *controller;
    struct pl_now now;
};

static void note(struct api *api, const char *what, int machine, const char *detail)
{
    size_t len = strlen(api->calls);

    snprintf(api->calls + len, sizeof api->calls - len, "%s%s w%d%s%s", len ? ", " : "", what,
             machine, *detail ? ":" : "", detail);
}

/* --- the objects ------------------------------------------------------------------------------ */

#define META(name, version)                                                             \
    "\"metadata\":{\"name\":\"" name "\",\"namespace\":\"default\",\"uid\":\"uid-" name \
    "\",\"resourceVersion\":\"" version                                                 \
    "\",\"generation\":1,\"labels\":{\"cluster.x-k8s.io/cluster-name\":\"alpha\"}"

static void machine_put(struct pl_buf *b, const struct api *api, int i)
{
    const struct machine *m = &api->machines[i];

    pl__buf_printf(
        b,
        "{\"apiVersion\":\"cluster.x-k8s.io/v1beta2\",\"kind\":\"Machine\",\"metadata\":{"
        "\"name\":\"w%d\",\"namespace\":\"default\",\"uid\":\"uid-w%d\","
        "\"resourceVersion\":\"%llu\",\"creationTimestamp\":\"2026-11-15T00:0%d:00Z\","
        "\"labels\":{\"cluster.x-k8s.io/cluster-name\":\"alpha\","
        "\"cluster.x-k8s.io/deployment-name\":\"md\"},\"ownerReferences\":[{\"kind\":"
        "\"MachineSet\",\"name\":\"ms\",\"uid\":\"uid-ms\",\"controller\":true}]%s},"
        "\"status\":{\"conditions\":[{\"type\":\"HealthCheckSucceeded\",\"status\":\"%s\","
        "\"reason\":\"R\",\"message\":\"\",\"lastTransitionTime\":\"2026-11-15T01:00:00Z\"}",
        i, i, (unsigned long long)m->version, i,
        m->deleting ? ",\"deletionTimestamp\":\"2026-11-15T01:30:00Z\"" : "",
        m->healthy ? "True" : "False");
    if (m->marked)
        pl__buf_printf(b,
                       ",{\"type\":\"OwnerRemediated\",\"status\":\"False\",\"reason\":\"%s\","
                       "\"message\":\"%s\",\"lastTransitionTime\":\"2026-11-15T01:00:00Z\"}",
                       m->reason, m->message);
    pl__buf_add_lit(b, "]}}");
}

static void deployment_put(struct pl_buf *b, const struct api *api)
{
    pl__buf_printf(b,
                   "{\"apiVersion\":\"cluster.x-k8s.io/v1beta2\",\"kind\":\"MachineDeployment\","
                   "\"metadata\":{\"name\":\"md\",\"namespace\":\"default\",\"uid\":\"uid-md\","
                   "\"resourceVersion\":\"%llu\",\"generation\":1,\"labels\":{"
                   "\"cluster.x-k8s.io/cluster-name\":\"alpha\"},\"annotations\":{%s"
                   "\"machinedeployment.clusters.x-k8s.io/revision\":\"7\"}},\"spec\":{"
                   "\"replicas\":4",
                   (unsigned long long)api->md_version,
                   api->md_paused ? "\"cluster.x-k8s.io/paused\":\"\"," : "");
    if (api->max_in_flight)
        pl__buf_printf(b, ",\"remediation\":{\"maxInFlight\":%s}", api->max_in_flight);
    pl__buf_printf(b, "}%s%s}", api->md_status[0] ? "," : "", api->md_status);
}

static void items_put(struct pl_buf *b, const struct api *api, const char *path)
{
    if (strstr(path, "/clusters?")) {
        pl__buf_printf(
            b, "{" META("alpha", "1") "},\"spec\":{%s}}",
            api->control_plane
                ? "\"controlPlaneRef\":{\"kind\":\"KubeadmControlPlane\",\"name\":\"cp\"}"
                : "");
    } else if (strstr(path, "/kubeadmcontrolplanes?") && api->control_plane &&
               strcmp(api->control_plane, "-") != 0) {
        pl__buf_printf(b,
                       "{" META("cp", "4") ",\"annotations\":{\"cluster.x-k8s.io/paused\":\"\"}},"
                                           "\"spec\":{\"version\":\"v1.33.1\"},\"status\":{"
                                           "\"version\":\"%s\"}}",
                       api->control_plane);
    } else if (strstr(path, "/machinedeployments?")) {
        deployment_put(b, api);
    } else if (strstr(path, "/machinesets?")) {
        pl__buf_add_lit(
            b, "{" META("ms", "3") ",\"annotations\":{\"machinedeployment.clusters."
                                   "x-k8s.io/revision\":\"7\"},\"ownerReferences\":[{"
                                   "\"kind\":\"MachineDeployment\",\"name\":\"md\",\"uid\":"
                                   "\"uid-md\",\"controller\":true}]}}");
    } else if (strstr(path, "/machines?")) {
        bool first = true;
        for (int i = 0; i < MACHINES; i++) {
            if (!api->machines[i].there)
                continue;
            if (!first)
                pl__buf_add_char(b, ',');
            machine_put(b, api, i);
            first = false;
        }
    }
}

/* --- answering -------------------------------------------------------------------------------- */

struct answer {
    int status;
    struct pl_str body;
};

static struct answer list_answer(struct api *api, const char *path)
{
    struct pl_buf b;

    if (api->v1beta1_only && !strstr(path, "/v1beta1/") && strstr(path, "cluster.x-k8s.io/"))
        return (struct answer){ 404, PL_STR("404 page not found") };
    pl__buf_init(&b, &api->arena, SIZE_MAX);
    pl__buf_printf(&b, "{\"metadata\":{\"resourceVersion\":\"%llu\"},\"items\":[",
                   (unsigned long long)api->version);
    items_put(&b, api, path);
    pl__buf_add_lit(&b, "]}");
    return (struct answer){ 200, pl__buf_str(&b) };
}

static struct answer machine_answer(struct api *api, int i)
{
    struct pl_buf b;

    pl__buf_init(&b, &api->arena, SIZE_MAX);
    machine_put(&b, api, i);
    return (struct answer){ 200, pl__buf_str(&b) };
}

/* What a body says of that key, as it stands there. */
static void text_of(const char *body, const char *key, char *to, size_t size)
{
    const char *at = strstr(body, key);
    size_t len = 0;

    to[0] = '\0';
    if (!at)
        return;
    at += strlen(key);
    while (at[len] && at[len] != '"')
        len += at[len] == '\\' ? 2 : 1;
    snprintf(to, size, "%.*s", (int)len, at);
}

static void machine_change(struct api *api, int i, const char *method, const char *body)
{
    struct machine *m = &api->machines[i];

    m->version = ++api->version;
    if (strcmp(method, "DELETE") == 0) {
        m->deleting = true;
    } else if (body[0] == '[') {
        m->marked = false;
    } else {
        m->marked = true;
        text_of(body, "\"reason\":\"", m->reason, sizeof m->reason);
        text_of(body, "\"message\":\"", m->message, sizeof m->message);
    }
}

static struct answer write_answer(struct api *api, int i, const char *method, const char *body)
{
    char reason[64] = "", uid[64], version[32];
    struct machine *m = &api->machines[i];
    bool applies = body[0] == '{' && strcmp(method, "PATCH") == 0;
    bool deletes = strcmp(method, "DELETE") == 0;

    if (applies)
        text_of(body, "\"reason\":\"", reason, sizeof reason);
    note(api, deletes ? "delete" : applies ? "mark" : "unmark", i, reason);
    bool fails = api->fail_from-- <= 0 && api->fail_count-- > 0;
    if (fails && !api->fail_after)
        return (struct answer){ api->fail_status, PL_STR("{}") };
    if (deletes) {
        text_of(body, "\"uid\":\"", uid, sizeof uid);
        text_of(body, "\"resourceVersion\":\"", version, sizeof version);
        CHECK(strncmp(uid, "uid-w", 5) == 0 && uid[5] == '0' + i); /* the precondition */
        uint64_t insists = 0;
        if (pl__str_to_u64(pl__str(version), &insists) && insists != m->version)
            return (struct answer){ 409, PL_STR("{}") };
    }
    machine_change(api, i, method, body);
    if (fails) {
        api->untold = i;
        api->untold_ms = api->now.mono_ms + 200;
    }
    return fails ? (struct answer){ api->fail_status, PL_STR("{}") } : machine_answer(api, i);
}

/* Its conditions are applied. */
static struct answer deployment_answer(struct api *api, const char *body)
{
    const char *status = strstr(body, "\"status\":{");
    struct pl_buf b;

    CHECK(status != NULL);
    if (status)
        snprintf(api->md_status, sizeof api->md_status, "%.*s", (int)strlen(status) - 1, status);
    api->md_version = ++api->version;
    pl__buf_init(&b, &api->arena, SIZE_MAX);
    deployment_put(&b, api);
    return (struct answer){ 200, pl__buf_str(&b) };
}

static struct answer answer(struct api *api, const struct pl_action *a)
{
    const char *machine = strstr(a->path.ptr, "/namespaces/default/machines/w");

    if (machine) {
        int i = machine[strlen("/namespaces/default/machines/w")] - '0';
        if (!api->machines[i].there)
            return (struct answer){ 404, PL_STR("{}") };
        if (strcmp(a->method, "GET") == 0)
            return machine_answer(api, i);
        return write_answer(api, i, a->method, a->body.ptr);
    }
    if (strstr(a->path.ptr, "/events"))
        return (struct answer){ 201, PL_STR("{}") };
    if (strcmp(a->method, "PATCH") == 0)
        return deployment_answer(api, a->body.ptr);
    return list_answer(api, a->path.ptr);
}

/* --- driving ---------------------------------------------------------------------------------- */

static bool is_write(const struct pl_action *a)
{
    return strcmp(a->method, "GET") != 0 && strstr(a->path.ptr, "/machines/") != NULL;
}

/* Hands out what is asked for and answers it: all that is there, then the answers. */
static bool round_trip(struct api *api)
{
    enum { ROUND_MAX = 64 };
    struct {
        uint64_t id;
        struct answer answer;
    } answers[ROUND_MAX];
    size_t count = 0;
    int writes = 0;
    const struct pl_action *a;

    while ((a = pl_controller_next_action(api->controller)) != NULL) {
        if (a->type == ACTION_WATCH && !strstr(a->path.ptr, "sendInitialEvents")) {
            if (strstr(a->path.ptr, "/machines?"))
                api->machines_watch = a->id;
            continue; /* nothing ever changes but by our writes */
        }
        if (a->type != ACTION_REQUEST && a->type != ACTION_WATCH)
            continue;
        CHECK(count < ROUND_MAX);
        if (count == ROUND_MAX)
            return false;
        writes += is_write(a);
        answers[count].id = a->id;
        answers[count++].answer =
            a->type == ACTION_WATCH
                ? (struct answer){ 422, PL_STR("{\"message\":\"sendInitialEvents"
                                               ": Forbidden\"}") }
                : answer(api, a);
    }
    if (writes > api->writes_together)
        api->writes_together = writes;
    api->now.mono_ms += 5;
    api->now.wall_ms += 5;
    for (size_t i = 0; i < count; i++)
        pl_controller_step(api->controller,
                           &(struct pl_event){ .type = EVENT_ANSWER,
                                               .id = answers[i].id,
                                               .status = answers[i].answer.status,
                                               .retry_after_s = -1,
                                               .body = answers[i].answer.body },
                           api->now);
    return count > 0;
}

/* The watch says what became of a call whose answer was lost. */
static void tell_untold(struct api *api)
{
    struct pl_buf b;

    if (api->untold < 0 || api->now.mono_ms < api->untold_ms)
        return;
    pl__buf_init(&b, &api->arena, SIZE_MAX);
    pl__buf_add_lit(&b, "{\"type\":\"MODIFIED\",\"object\":");
    machine_put(&b, api, api->untold);
    pl__buf_add_lit(&b, "}\n");
    api->untold = -1;
    pl_controller_step(api->controller,
                       &(struct pl_event){ .type = EVENT_BYTES,
                                           .id = api->machines_watch,
                                           .body = pl__buf_str(&b) },
                       api->now);
}

static void run(struct api *api, uint64_t ms)
{
    uint64_t end = api->now.mono_ms + ms;

    for (int turns = 0; api->now.mono_ms < end; turns++) {
        CHECK(turns < 10000);
        if (turns == 10000)
            break;
        tell_untold(api);
        pl_controller_step(api->controller, &(struct pl_event){ .type = EVENT_TICK }, api->now);
        if (round_trip(api))
            continue;
        uint64_t wake = pl_controller_wake_at_ms(api->controller);
        uint64_t to = wake < end ? wake : end;
        if (to <= api->now.mono_ms)
            to = api->now.mono_ms + 1;
        api->now.wall_ms += (int64_t)(to - api->now.mono_ms);
        api->now.mono_ms = to;
    }
}

static void start(struct api *api, const struct pl_controller_options *options)
{
    api->controller = pl_controller_new(options, api->now);
}

static void stop(struct api *api)
{
    pl_controller_free(api->controller);
    api->controller = NULL;
}

static const struct pl_controller_options manage = { .mode = MODE_MANAGE },
                                          dry_run = { .mode = MODE_MANAGE, .dry_run = true },
                                          status_mode = { .mode = MODE_STATUS },
                                          shadow = { .mode = MODE_SHADOW };

/* Machines in letters: '.' healthy, 'h' healthy and marked, 'u' unhealthy and marked, '-' none. */
static struct api *api_new(const char *machines)
{
    static struct api api;

    memset(&api, 0, sizeof api);
    pl__arena_init(&api.arena, NULL, 0);
    api.version = 100;
    api.md_version = 2;
    api.untold = -1;
    api.now = (struct pl_now){ 1000, 1794708000000 };
    for (int i = 0; i < MACHINES && machines[i]; i++) {
        api.machines[i] = (struct machine){ .there = machines[i] != '-',
                                            .healthy = machines[i] != 'u',
                                            .marked = machines[i] == 'u' || machines[i] == 'h',
                                            .reason = "WaitingForRemediation",
                                            .version = ++api.version };
    }
    return &api;
}

static void finish(struct api *api)
{
    stop(api);
    CHECK(api->writes_together <= 1); /* one call at a time */
    pl__arena_release(&api->arena);
}

static const char *calls_of(const char *machines, const struct pl_controller_options *options,
                            void (*arrange)(struct api *))
{
    static char calls[sizeof(((struct api *)0)->calls)];
    struct api *api = api_new(machines);

    if (arrange)
        arrange(api);
    start(api, options);
    run(api, 120 * 1000);
    memcpy(calls, api->calls, sizeof calls);
    finish(api);
    return calls;
}

/* --- the cases -------------------------------------------------------------------------------- */

#define CALLS(machines, options, arrange, want) \
    CHECK_STR(pl__str(calls_of(machines, options, arrange)), want)

static void one_in_flight(struct api *api)
{
    api->max_in_flight = "1";
}

static void paused(struct api *api)
{
    api->md_paused = true;
}

static void old_api(struct api *api)
{
    api->v1beta1_only = true;
}

static void control_plane_gone(struct api *api)
{
    api->control_plane = "-";
}

static void control_plane_upgrading(struct api *api)
{
    api->control_plane = "v1.32.0";
}

static void control_plane_ready(struct api *api)
{
    api->control_plane = "v1.33.1";
}

static void conflict(struct api *api)
{
    api->fail_status = 409;
    api->fail_count = 1;
}

static void mark_lost(struct api *api)
{
    api->fail_count = 1;
    api->fail_after = true;
}

static void deletion_lost(struct api *api)
{
    api->fail_from = 1;
    api->fail_count = 1;
    api->fail_after = true;
}

static void refused(struct api *api)
{
    api->fail_status = 500;
    api->fail_count = 3;
}

static void test_calls(void)
{
    CASE("nobody is marked: nothing is done")
    CALLS("....", &manage, NULL, "");

    CASE("one: the mark, then the deletion, each once")
    CALLS("..u.", &manage, NULL, "mark w2:MachineDeleting, delete w2");

    CASE("two: the marks, then the deletions, the newest first")
    CALLS("u.u.", &manage, NULL,
          "mark w2:MachineDeleting, mark w0:MachineDeleting, delete w2, delete w0");

    CASE("no more than maxInFlight")
    CALLS("u.uu", &manage, one_in_flight,
          "mark w3:MachineDeleting, mark w2:RemediationDeferred, mark w0:RemediationDeferred, "
          "delete w3");

    CASE("healthy again: the mark is taken out")
    CALLS("h...", &manage, NULL, "unmark w0");

    CASE("the control plane is not ready: the mark says so, once")
    CALLS("u...", &manage, control_plane_gone, "mark w0:RemediationDeferred");
    CALLS("u...", &manage, control_plane_upgrading, "mark w0:RemediationDeferred");

    CASE("the control plane is ready")
    CALLS("u...", &manage, control_plane_ready, "mark w0:MachineDeleting, delete w0");

    CASE("paused: nothing")
    CALLS("u...", &manage, paused, "");

    CASE("only in mode manage")
    CALLS("u...", &status_mode, NULL, "");
    CALLS("u...", &shadow, NULL, "");

    CASE("a dry run does nothing")
    CALLS("u...", &dry_run, NULL, "");

    CASE("a server that has v1beta1 only: nothing")
    CALLS("u...", &manage, old_api, "");

    CASE("overtaken: looked at again")
    CALLS("u...", &manage, conflict, "mark w0:MachineDeleting, mark w0:MachineDeleting, delete w0");

    CASE("the answer to the deletion is lost: it is not asked for again when the watch has told")
    CALLS("u...", &manage, deletion_lost, "mark w0:MachineDeleting, delete w0");

    CASE("the answer to the mark is lost: the watch tells, and it goes on")
    CALLS("u...", &manage, mark_lost, "mark w0:MachineDeleting, delete w0");

    CASE("a server that fails is asked again, later")
    CALLS("u...", &manage, refused,
          "mark w0:MachineDeleting, mark w0:MachineDeleting, mark w0:MachineDeleting, "
          "mark w0:MachineDeleting, delete w0");
}

/* Whatever the moment of its end: the next controller goes on, and in the end all is as if there had been
 * one. No Machine goes without being told why, and never one more than allowed. */
static void test_crashes(void)
{
    for (uint32_t after = 1; after <= 4; after++) {
        CASE("a crash after step %u", (unsigned)after)
        struct api *api = api_new("u.uu");
        api->max_in_flight = "1";
        struct pl_controller_options first = manage;
        first.stop_after_step = after;
        start(api, &first);
        run(api, 20 * 1000);
        stop(api);
        start(api, &manage);
        run(api, 60 * 1000);
        CHECK(api->machines[3].deleting);
        CHECK(!api->machines[2].deleting && !api->machines[0].deleting);
        CHECK_STR(pl__str(api->machines[3].reason), "MachineDeleting");
        CHECK_STR(pl__str(api->machines[2].reason), "RemediationDeferred");
        CHECK_STR(pl__str(api->machines[0].reason), "RemediationDeferred");
        CHECK_STR(pl__str(api->calls), "mark w3:MachineDeleting, mark w2:RemediationDeferred, mark "
                                       "w0:RemediationDeferred, delete w3");

        CASE("... and when that one is gone, the next follows")
        stop(api);
        api->machines[3].there = false;
        api->calls[0] = '\0';
        start(api, &manage);
        run(api, 60 * 1000);
        CHECK_STR(pl__str(api->calls), "mark w2:MachineDeleting, delete w2");
        finish(api);
    }
}

int main(void)
{
    test_calls();
    test_crashes();
    return test_end("act_machineset");
}
