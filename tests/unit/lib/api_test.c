/* The contracts of plimsoll.h: what lives how long, what fails how, what the limits are. */
#include "plimsoll.h"

#include <stdlib.h>

#include "test.h"

/* --- input ------------------------------------------------------------------------------------- */

#define NOW "2026-11-15T02:00:00Z"
#define NOW_MS 1794708000000

#define MACHINE(namespace_, name, owner)                                                       \
    "{\"apiVersion\":\"cluster.x-k8s.io/"                                                      \
    "v1beta2\",\"kind\":\"Machine\",\"metadata\":{\"name\":\"" name                            \
    "\",\"namespace\":\"" namespace_ "\",\"labels\":{\"cluster.x-k8s.io/cluster-name\":\"a\"," \
    "\"cluster.x-k8s.io/control-plane\":\"\"},\"ownerReferences\":[{\"kind\":\"" owner "\","   \
    "\"name\":\"cp\",\"controller\":true}]},\"status\":{\"nodeRef\":{\"name\":\"" name "\"}}}"
#define CONTROL_PLANE(namespace_)                                                                 \
    "{\"apiVersion\":\"cluster.x-k8s.io/"                                                         \
    "v1beta2\",\"kind\":\"Cluster\",\"metadata\":{\"name\":\"a\","                                \
    "\"namespace\":\"" namespace_                                                                 \
    "\"},\"spec\":{\"controlPlaneEndpoint\":{\"host\":\"h\",\"port\":1}},"                        \
    "\"status\":{\"initialization\":{\"infrastructureProvisioned\":true}}},"                      \
    "{\"apiVersion\":\"controlplane.cluster.x-k8s.io/v1beta2\",\"kind\":\"KubeadmControlPlane\"," \
    "\"metadata\":{\"name\":\"cp\",\"namespace\":\"" namespace_ "\",\"labels\":{"                 \
    "\"cluster.x-k8s.io/cluster-name\":\"a\"}},\"status\":{\"initialization\":{"                  \
    "\"controlPlaneInitialized\":true},\"conditions\":[{\"type\":\"Initialized\",\"status\":"     \
    "\"True\","                                                                                   \
    "\"lastTransitionTime\":\"2026-11-01T00:00:00Z\"}]}}"
#define WORKLOAD                                                                                \
    "{\"cluster\":\"default/a\",\"connection\":{\"state\":\"Connected\","                       \
    "\"lastProbeSuccessTime\":\"2026-11-15T01:59:50Z\"},\"nodes\":[],\"pods\":[],\"etcd\":{"    \
    "\"members\":[{\"ID\":\"1\",\"name\":\"m0\"},{\"ID\":\"2\",\"name\":\"m1\"},{\"ID\":\"3\"," \
    "\"name\":"                                                                                 \
    "\"m2\"}],\"alarms\":[],\"leader\":\"1\"}}"
#define SNAPSHOT(name, time, objects, workloads)                                            \
    "{\"apiVersion\":\"plimsoll.dev/v1\",\"kind\":\"Snapshot\",\"name\":\"" name "\"," time \
    "\"objects\":[" objects "],\"workloads\":[" workloads "]}"
#define TIME "\"now\":\"" NOW "\","
#define EMPTY(name) SNAPSHOT(name, TIME, "", "")

static const char three_machines[] = SNAPSHOT(
    "three", TIME,
    CONTROL_PLANE("default") "," MACHINE("default", "m0", "KubeadmControlPlane") "," MACHINE(
        "default", "m1",
        "KubeadmControlPlane") "," MACHINE("default", "m2",
                                           "KubeadmControlPlane") "," MACHINE("default", "worker",
                                                                              "MachineSet"),
    WORKLOAD);

/* Where a report is expected and none came, this shows what is missing. */
static const struct pl_report no_report;

static int add(struct pl_context *ctx, const char *text)
{
    return pl_context_add(ctx, "in", text, strlen(text));
}

/* Adds and judges once: the result of pl_context_next(). */
static int judge(struct pl_context *ctx, const char *text, const struct pl_report **report)
{
    return add(ctx, text) < 0 ? -1 : pl_context_next(ctx, report);
}

#define CHECK_ERROR(ctx, code, text)                       \
    do {                                                   \
        CHECK_INT(pl_context_error_code(ctx), (code));     \
        CHECK_STR(pl__str(pl_context_error(ctx)), (text)); \
    } while (0)

/* --- names and versions ------------------------------------------------------------------------ */

static void names(void)
{
    enum pl_profile profile = PL_PROFILE_TABLES;

    CASE("profiles have names")
    CHECK_STR(pl__str(pl_profile_name(PL_PROFILE_TABLES)), "tables");
    CHECK_STR(pl__str(pl_profile_name(PL_PROFILE_CLUSTER_API_1_12)), "cluster-api-1.12");
    CHECK_INT(pl_profile_from_name("cluster-api-1.12", &profile), 0);
    CHECK_INT(profile, PL_PROFILE_CLUSTER_API_1_12);

    CASE("an unknown profile changes nothing")
    CHECK_INT(pl_profile_from_name("cluster-api", &profile), -1);
    CHECK_INT(profile, PL_PROFILE_CLUSTER_API_1_12);

    CASE("statuses have names")
    CHECK_STR(pl__str(pl_status_name(PL_STATUS_NONE)), "");
    CHECK_STR(pl__str(pl_status_name(PL_STATUS_TRUE)), "True");
    CHECK_STR(pl__str(pl_status_name(PL_STATUS_FALSE)), "False");
    CHECK_STR(pl__str(pl_status_name(PL_STATUS_UNKNOWN)), "Unknown");

    CASE("the version is three numbers")
    CHECK(pl_version()[strspn(pl_version(), "0123456789.")] == '\0' && strchr(pl_version(), '.'));

    CASE("every row of every table can be read")
    for (size_t t = 0; t < pl_table_count(); t++) {
        struct pl_table_info info = pl_table_info(t);
        CHECK(info.name && info.kind && info.summary && info.row_count > 0);
        for (size_t r = 0; r < info.row_count; r++) {
            struct pl_row row = pl_table_row(t, r);
            CHECK(row.id && *row.id && row.guard && row.next && row.mode);
            for (int p = 0; p < PL_PROFILE_COUNT; p++)
                CHECK(row.outcome[p].status && row.outcome[p].reason && row.outcome[p].message);
        }
    }
}

/* --- reading ----------------------------------------------------------------------------------- */

static void order_of_reports(void)
{
    struct pl_context *ctx = pl_context_new(NULL);
    const struct pl_report *report = &no_report;

    CASE("no input, no report, no error")
    CHECK_INT(pl_context_next(ctx, &report), 0);
    CHECK_ERROR(ctx, PL_OK, "");
    CHECK_INT(judge(ctx, "", &report), 0);
    CHECK_INT(judge(ctx, " \n", &report), 0);

    CASE("several snapshots in one source, and several sources: in order")
    CHECK_INT(add(ctx, EMPTY("a") "\n" EMPTY("b")), 0);
    CHECK_INT(pl_context_add(ctx, "second", EMPTY("c"), strlen(EMPTY("c"))), 0);
    CHECK_INT(pl_context_next(ctx, &report), 1);
    CHECK_STR(report->name, "a");
    CHECK_STR(report->source, "in");
    CHECK_INT(pl_context_next(ctx, &report), 1);
    CHECK_STR(report->name, "b");
    CHECK_INT(pl_context_next(ctx, &report), 1);
    CHECK_STR(report->name, "c");
    CHECK_STR(report->source, "second");
    CHECK_INT(pl_context_next(ctx, &report), 0);
    CHECK_INT(pl_context_next(ctx, &report), 0);

    CASE("input that was used up is gone; more can be added")
    CHECK_INT(judge(ctx, EMPTY("d"), &report), 1);
    CHECK_STR(report->name, "d");
    CHECK_INT(add(ctx, EMPTY("e")), 0); /* while the first is not yet at its end */
    CHECK_INT(pl_context_next(ctx, &report), 1);
    CHECK_STR(report->name, "e");
    CHECK_INT(pl_context_next(ctx, &report), 0);
    pl_context_free(ctx);

    CASE("objects outside any Snapshot come last, as one")
    ctx = pl_context_new(&(struct pl_options){ .clock_ms = NOW_MS });
    CHECK_INT(add(ctx, "kind: MachineDeployment\napiVersion: cluster.x-k8s.io/v1beta2\n"
                       "metadata: {name: one}\n"),
              0);
    CHECK_INT(add(ctx, EMPTY("a")), 0);
    CHECK_INT(add(ctx, "kind: MachineDeployment\napiVersion: cluster.x-k8s.io/v1beta2\n"
                       "metadata: {name: two}\n"),
              0);
    CHECK_INT(pl_context_next(ctx, &report), 1);
    CHECK_STR(report->name, "a");
    CHECK_INT(report->object_count, 0);
    CHECK_INT(pl_context_next(ctx, &report), 1);
    CHECK_INT(report->object_count, 2);
    CHECK_STR(report->objects[0].name, "one");
    CHECK_STR(report->objects[1].name, "two");
    CHECK_INT(report->now_ms, NOW_MS);
    CHECK_INT(pl_context_next(ctx, &report), 0);
    pl_context_free(ctx);
}

static void errors(void)
{
    struct pl_context *ctx = pl_context_new(NULL);
    const struct pl_report *report = &no_report;

    CASE("an error has a code, a place and a text")
    CHECK_INT(judge(ctx, "{\"apiVersion\":\"plimsoll.dev/v1\",\"kind\":\"Snapshot\",\n  \"now\":7}",
                    &report),
              -1);
    CHECK_INT(pl_context_error_code(ctx), PL_INVALID);
    CHECK(strncmp(pl_context_error(ctx), "in:2:9: now: ", 13) == 0);

    CASE("after an error the input is forgotten, the error is not")
    CHECK_INT(pl_context_next(ctx, &report), 0);
    CHECK_INT(pl_context_error_code(ctx), PL_INVALID);

    CASE("a good snapshot before a bad one is judged")
    CHECK_INT(judge(ctx, EMPTY("good") "\n{\"kind\":", &report), 1);
    CHECK_STR(report->name, "good");
    CHECK_INT(pl_context_next(ctx, &report), -1);
    CHECK_ERROR(ctx, PL_INVALID, "in:2:9: unexpected end of input");

    CASE("an error in one source forgets the others")
    CHECK_INT(add(ctx, "[1"), 0);
    CHECK_INT(add(ctx, EMPTY("never")), 0);
    CHECK_INT(pl_context_next(ctx, &report), -1);
    CHECK_INT(pl_context_next(ctx, &report), 0);

    CASE("a failed context goes on to work")
    CHECK_INT(judge(ctx, EMPTY("works"), &report), 1);
    CHECK_STR(report->name, "works");

    CASE("clearing takes the error away")
    pl_context_clear(ctx);
    CHECK_ERROR(ctx, PL_OK, "");
    CHECK_INT(pl_context_next(ctx, &report), 0);

    CASE("clearing takes the input away")
    CHECK_INT(add(ctx, EMPTY("gone")), 0);
    pl_context_clear(ctx);
    CHECK_INT(pl_context_next(ctx, &report), 0);

    CASE("YAML errors have their place in the YAML")
    CHECK_INT(judge(ctx, "apiVersion: plimsoll.dev/v1\nkind: Snapshot\nnow: 7\n", &report), -1);
    CHECK(strncmp(pl_context_error(ctx), "in:3:6: now: ", 13) == 0);
    pl_context_free(ctx);

    CASE("freeing nothing is fine")
    pl_context_free(NULL);
}

static void limits(void)
{
    const struct pl_report *report = &no_report;
    struct pl_context *ctx;

    CASE("bytes_max: of one source")
    ctx = pl_context_new(&(struct pl_options){ .bytes_max = sizeof EMPTY("x") - 1 });
    CHECK_INT(judge(ctx, EMPTY("x"), &report), 1);
    CHECK_INT(add(ctx, EMPTY("xy")), -1);
    CHECK_INT(pl_context_error_code(ctx), PL_LIMIT);
    CHECK(strstr(pl_context_error(ctx), "in: ") &&
          strstr(pl_context_error(ctx), "bytes, at most "));
    CHECK_STR(report->name, "x"); /* a failed add leaves the report alone */
    CHECK_INT(add(ctx, EMPTY("xyz")), -1);
    CHECK_INT(pl_context_error_code(ctx), PL_LIMIT);
    pl_context_free(ctx);

    CASE("depth_max")
    ctx = pl_context_new(&(struct pl_options){ .depth_max = 8, .clock_ms = NOW_MS });
    CHECK_INT(judge(ctx, "{\"a\":[[[[[[[1]]]]]]],\"kind\":\"X\",\"apiVersion\":\"v1\"}", &report),
              1);
    pl_context_clear(ctx);
    CHECK_INT(judge(ctx, "{\"a\":[[[[[[[[1]]]]]]]],\"kind\":\"X\",\"apiVersion\":\"v1\"}", &report),
              -1);
    CHECK_INT(pl_context_error_code(ctx), PL_LIMIT);
    pl_context_free(ctx);

    CASE("objects_max: in one snapshot")
    ctx = pl_context_new(&(struct pl_options){ .objects_max = 6 });
    CHECK_INT(judge(ctx, three_machines, &report), 1);
    pl_context_free(ctx);
    ctx = pl_context_new(&(struct pl_options){ .objects_max = 5 });
    CHECK_INT(judge(ctx, three_machines, &report), -1);
    CHECK_INT(pl_context_error_code(ctx), PL_LIMIT);
    CHECK(strstr(pl_context_error(ctx), "more than 5 objects"));
    pl_context_free(ctx);
}

static void time_of_evaluation(void)
{
    static const char no_time[] = SNAPSHOT("x", "", "", "");
    const struct pl_report *report = &no_report;
    struct pl_context *ctx = pl_context_new(NULL);

    CASE("the input's own time")
    CHECK_INT(judge(ctx, EMPTY("x"), &report), 1);
    CHECK_INT(report->now_ms, NOW_MS);

    CASE("no time anywhere is an error")
    CHECK_INT(judge(ctx, no_time, &report), -1);
    CHECK_INT(pl_context_error_code(ctx), PL_INVALID);
    pl_context_free(ctx);

    CASE("clock_ms only where the input has none")
    ctx = pl_context_new(&(struct pl_options){ .clock_ms = 5000 });
    CHECK_INT(judge(ctx, no_time, &report), 1);
    CHECK_INT(report->now_ms, 5000);
    CHECK_INT(judge(ctx, EMPTY("x"), &report), 1);
    CHECK_INT(report->now_ms, NOW_MS);
    pl_context_free(ctx);

    CASE("now_ms in any case")
    ctx = pl_context_new(&(struct pl_options){ .clock_ms = 5000, .now_ms = 7000 });
    CHECK_INT(judge(ctx, no_time, &report), 1);
    CHECK_INT(report->now_ms, 7000);
    CHECK_INT(judge(ctx, EMPTY("x"), &report), 1);
    CHECK_INT(report->now_ms, 7000);
    pl_context_free(ctx);
}

/* --- reports ----------------------------------------------------------------------------------- */

static void report_lifetime(void)
{
    struct pl_context *ctx = pl_context_new(&(struct pl_options){ .explain = true });
    const struct pl_report *report = &no_report;
    size_t size = strlen(three_machines);
    char *bytes = malloc(size), *first;

    if (!bytes)
        abort();
    memcpy(bytes, three_machines, size);
    CASE("a report lives on when its input is used up, through JSON and what-if")
    CHECK_INT(pl_context_add(ctx, "heap", bytes, size), 0);
    CHECK_INT(pl_context_next(ctx, &report), 1);
    struct pl_str json = pl_report_json(ctx, report);
    CHECK_INT(json.ptr[json.len], '\0');
    CHECK_INT(strlen(json.ptr), json.len);
    first = malloc(json.len + 1);
    if (!first)
        abort();
    memcpy(first, json.ptr, json.len + 1);
    const struct pl_what_if *answer = NULL;
    CHECK_INT(pl_what_if_remove(ctx, "m1", &answer), 0);
    CHECK_STR(pl_report_json(ctx, report), first);
    CHECK_STR(json, first);

    CASE("the bytes are borrowed until pl_context_next() says 0")
    CHECK_INT(pl_context_next(ctx, &report), 0);
    memset(bytes, 'x', size);
    free(bytes);
    CHECK_INT(pl_context_next(ctx, &report), 0);

    CASE("the name of a source is copied")
    char name[] = "name";
    CHECK_INT(pl_context_add(ctx, name, three_machines, size), 0);
    memset(name, 'x', sizeof name - 1);
    CHECK_INT(pl_context_next(ctx, &report), 1);
    CHECK_STR(report->source, "name");

    CASE("the same input gives the same bytes, whatever was done before")
    CHECK_INT(pl_context_add(ctx, "heap", three_machines, size), 0);
    CHECK_INT(pl_context_next(ctx, &report), 1);
    CHECK_STR(pl_report_json(ctx, report), first);

    CASE("conditions of an object come by type")
    for (size_t i = 0; i < report->object_count; i++) {
        const struct pl_object *o = &report->objects[i];
        CHECK(o->verdict_count > 1);
        for (size_t v = 1; v < o->verdict_count; v++)
            CHECK(strcmp(o->verdicts[v - 1].type, o->verdicts[v].type) < 0);
    }

    CASE("evidence only with explain")
    CHECK(report->objects[0].verdicts[0].evidence_count > 0);
    pl_context_free(ctx);
    ctx = pl_context_new(NULL);
    CHECK_INT(judge(ctx, three_machines, &report), 1);
    for (size_t i = 0; i < report->object_count; i++) {
        for (size_t v = 0; v < report->objects[i].verdict_count; v++)
            CHECK_INT(report->objects[i].verdicts[v].evidence_count, 0);
    }
    free(first);
    pl_context_free(ctx);
}

static void what_if(void)
{
    struct pl_context *ctx = pl_context_new(NULL);
    const struct pl_report *report = &no_report;
    const struct pl_what_if *answer = NULL;

    CASE("what-if before anything was judged")
    CHECK_INT(pl_what_if_remove(ctx, "m0", &answer), -1);
    CHECK_ERROR(ctx, PL_USAGE, "no snapshot has been judged");

    CASE("what-if about a control plane Machine")
    CHECK_INT(judge(ctx, three_machines, &report), 1);
    CHECK_INT(pl_what_if_remove(ctx, "m0", &answer), 0);
    CHECK_STR(answer->machine, "m0");
    CHECK_STR(answer->control_plane, "cp");
    CHECK_STR(answer->member, "m0");
    CHECK(answer->member_is_leader);
    CHECK_INT(answer->before.voters, 3);
    CHECK_INT(answer->before.quorum, 2);
    CHECK_INT(answer->after.voters, 2);

    CASE("... by namespace and name")
    CHECK_INT(pl_what_if_remove(ctx, "default/m2", &answer), 0);
    CHECK_STR(answer->machine, "m2");
    CHECK(!answer->member_is_leader);

    CASE("... that does not exist")
    CHECK_INT(pl_what_if_remove(ctx, "m9", &answer), -1);
    CHECK_ERROR(ctx, PL_NOT_FOUND, "in: no Machine \"m9\"");
    CHECK_INT(pl_what_if_remove(ctx, "elsewhere/m0", &answer), -1);
    CHECK_INT(pl_context_error_code(ctx), PL_NOT_FOUND);
    CHECK_INT(pl_what_if_remove(ctx, "", &answer), -1);
    CHECK_INT(pl_context_error_code(ctx), PL_NOT_FOUND);

    CASE("... that is no control plane Machine")
    CHECK_INT(pl_what_if_remove(ctx, "worker", &answer), -1);
    CHECK_ERROR(ctx, PL_NOT_FOUND,
                "in: Machine \"worker\" belongs to no KubeadmControlPlane of the input");

    CASE("... of whose name there are several")
    CHECK_INT(
        judge(ctx,
              SNAPSHOT(
                  "two", TIME,
                  CONTROL_PLANE("x") "," CONTROL_PLANE("y") "," MACHINE(
                      "x", "m", "KubeadmControlPlane") "," MACHINE("y", "m", "KubeadmControlPlane"),
                  ""),
              &report),
        1);
    CHECK_INT(pl_what_if_remove(ctx, "m", &answer), -1);
    CHECK_ERROR(ctx, PL_USAGE, "in: several Machines are called \"m\", say namespace/name");
    CHECK_INT(pl_what_if_remove(ctx, "y/m", &answer), 0);
    CHECK_STR(answer->namespace_, "y");

    CASE("a failed what-if leaves the report alone")
    CHECK_STR(report->name, "two");

    CASE("what-if when the last snapshot is gone")
    CHECK_INT(pl_context_next(ctx, &report), 0);
    CHECK_INT(pl_what_if_remove(ctx, "m", &answer), -1);
    CHECK_INT(pl_context_error_code(ctx), PL_USAGE);
    pl_context_free(ctx);
}

/* --- memory ------------------------------------------------------------------------------------ */

enum { BLOCKS_MAX = 256 };
struct ledger {
    struct {
        void *block;
        size_t size;
    } open[BLOCKS_MAX];
    int open_count;
    int alloc_count;
    int fault_count; /* frees that match no allocation */
};

static void *ledger_alloc(void *user, size_t size)
{
    struct ledger *l = user;
    void *block = aligned_alloc(16, (size + 15) & ~(size_t)15);

    if (!block || l->open_count == BLOCKS_MAX)
        abort();
    memset(block, 0xa5, size); /* nobody may count on zeros */
    l->open[l->open_count].block = block;
    l->open[l->open_count++].size = size;
    l->alloc_count++;
    return block;
}

static void ledger_free(void *user, void *block, size_t size)
{
    struct ledger *l = user;

    for (int i = 0; i < l->open_count; i++) {
        if (l->open[i].block == block && l->open[i].size == size) {
            l->open[i] = l->open[--l->open_count];
            free(block);
            return;
        }
    }
    l->fault_count++;
}

static void memory(void)
{
    struct ledger ledger = { .open_count = 0 };
    struct pl_allocator allocator = { &ledger, ledger_alloc, ledger_free };
    struct pl_context *ctx = pl_context_new(
        &(struct pl_options){ .explain = true, .allocator = &allocator, .clock_ms = NOW_MS });
    const struct pl_report *report = &no_report;
    static const char loose[] = "kind: MachineDeployment\napiVersion: cluster.x-k8s.io/v1beta2\n"
                                "metadata: {name: one}\n";
    int after_warm_up = 0;

    CASE("work that repeats stops asking for memory, cleared or not")
    for (int i = 0; i < 200; i++) {
        if (i == 2)
            after_warm_up = ledger.alloc_count;
        CHECK_INT(add(ctx, loose), 0);
        CHECK_INT(add(ctx, three_machines), 0);
        CHECK_INT(add(ctx, "{\"kind\":"), 0);
        CHECK_INT(pl_context_next(ctx, &report), 1);
        pl_report_json(ctx, report);
        CHECK_INT(pl_context_next(ctx, &report), -1);
        CHECK_INT(judge(ctx, loose, &report), 1);
        CHECK_INT(pl_context_next(ctx, &report), 0);
        if (i % 2)
            pl_context_clear(ctx);
    }
    CHECK_INT(ledger.alloc_count, after_warm_up);

    CASE("every allocation is freed, with its own size")
    pl_context_free(ctx);
    CHECK_INT(ledger.open_count, 0);
    CHECK_INT(ledger.fault_count, 0);
    CHECK(ledger.alloc_count > 0);
}

int main(void)
{
    names();
    order_of_reports();
    errors();
    limits();
    time_of_evaluation();
    report_lifetime();
    what_if();
    memory();
    return test_end("api");
}
