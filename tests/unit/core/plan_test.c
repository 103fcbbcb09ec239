/* What to do next: a control plane in a line, the step in another. */
#include "test.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/evaluate.h"
#include "core/plan.h"
#include "lib/context.h"

/* Machines as words "name:flag,flag" parted by blanks, and the rest of the world as words, too:
 *
 *   bad       its health check fails, and it is to be remediated     well   healthy again, still marked
 *   del       it is being deleted; dried: drained, too; nohook, other: without our hook, with another one
 *   prov      it has no Node      sick     its member has an alarm   learner, nomember, lead, paused
 *   marked    OwnerRemediated says MachineDeleting                   new    newer than the record
 *   dead      its etcd Pod is not ready: etcd lists the member as ever
 *   later     made after now, by a clock that is ahead of ours
 *   heir      its remediation-for is the record                      down   its Node is not ready
 *
 *   replicas=N record=NAME orphan (a member without a Machine) external noleader blind (etcd cannot be read)
 *   uninit going (being deleted) long (for more than 10 minutes) capi (that profile) stale topology old
 *   (Kubernetes 1.30) refused (etcd refused the last change) template worker broken */
#define NOW "2026-11-15T02:00:00Z"
#define RECORD_TIME "2026-11-15T01:50:00Z"
#define HOOKS "pre-terminate.delete.hook.machine.cluster.x-k8s.io"

struct text {
    char bytes[65536];
    size_t len;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *t, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    t->len += (size_t)vsnprintf(t->bytes + t->len, sizeof t->bytes - t->len, format, args);
    va_end(args);
}

/* Whether the word is among those that commas or blanks part. */
static bool has(const char *words, const char *word)
{
    size_t len = strlen(word);

    for (const char *at = words; (at = strstr(at, word)) != NULL; at += len) {
        bool starts = at == words || strchr(" ,:", at[-1]);
        if (starts && (at[len] == '\0' || strchr(" ,=", at[len])))
            return true;
    }
    return false;
}

static void record_text(struct text *t, const char *of)
{
    add(t,
        "\"{\\\"machine\\\":\\\"%.*s\\\",\\\"timestamp\\\":\\\"" RECORD_TIME
        "\\\",\\\"retryCount\\\":2}\"",
        (int)strcspn(of, " "), of);
}

static void condition(struct text *t, const char *type, const char *status, const char *reason)
{
    add(t, ",{\"type\":\"%s\",\"status\":\"%s\",\"reason\":\"%s\",\"message\":\"%s\"}", type,
        status, reason, strcmp(reason, "MachineDeleting") == 0 ? "Machine is deleting" : "");
}

/* The flags of one Machine, and its name. */
struct word {
    char name[32], flags[96];
};

static bool next_word(const char **at, struct word *w)
{
    *at += strspn(*at, " ");
    if (!**at)
        return false;
    size_t len = strcspn(*at, " "), name = strcspn(*at, ": ");
    snprintf(w->name, sizeof w->name, "%.*s", (int)name, *at);
    snprintf(w->flags, sizeof w->flags, "%.*s", name < len ? (int)(len - name - 1) : 0,
             *at + name + (name < len));
    *at += len;
    return true;
}

static void machine(struct text *t, const struct word *w, const char *rest, int i)
{
    const char *record = strstr(rest, "record=");
    const char *f = w->flags;

    add(t,
        ",{\"apiVersion\":\"cluster.x-k8s.io/v1beta2\",\"kind\":\"Machine\",\"metadata\":{\"name\":"
        "\"%s\",\"namespace\":\"default\",\"uid\":\"uid-%s\",\"resourceVersion\":\"7\","
        "\"creationTimestamp\":\"2026-11-15T0%d:%02d:00Z\",\"labels\":{\"cluster.x-k8s.io/"
        "cluster-name\":\"c\",\"cluster.x-k8s.io/control-plane\":\"\"},\"ownerReferences\":[{"
        "\"kind\":\"KubeadmControlPlane\",\"name\":\"cp\",\"controller\":true}],\"annotations\":{",
        w->name, w->name, has(f, "later") ? 2 : 1, has(f, "new") ? 59 : 10 + i);
    add(t, "\"x\":\"\"");
    if (!has(f, "nohook"))
        add(t, ",\"" HOOKS "/kcp-cleanup\":\"\"");
    if (has(f, "other"))
        add(t, ",\"" HOOKS "/mine\":\"\"");
    if (has(f, "paused"))
        add(t, ",\"cluster.x-k8s.io/paused\":\"\"");
    if (has(f, "heir")) {
        add(t, ",\"controlplane.cluster.x-k8s.io/remediation-for\":");
        record_text(t, record + strlen("record="));
    }
    add(t, "}");
    if (has(f, "del") || has(f, "dried"))
        add(t, ",\"deletionTimestamp\":\"2026-11-15T01:5%d:00Z\"", i);
    add(t, "},\"spec\":{\"providerID\":\"p\"},\"status\":{");
    if (!has(f, "prov"))
        add(t, "\"nodeRef\":{\"name\":\"n-%s\"},", w->name);
    add(t, "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\",\"reason\":\"R\",\"message\":"
           "\"\"}");
    if (has(f, "bad"))
        condition(t, "HealthCheckSucceeded", "False", "Broken");
    else
        condition(t, "HealthCheckSucceeded", "True", "Fine");
    if (has(f, "marked"))
        condition(t, "OwnerRemediated", "False", "MachineDeleting");
    else if (has(f, "bad") || has(f, "well"))
        condition(t, "OwnerRemediated", "False", "WaitingForRemediation");
    if (has(f, "dried"))
        condition(t, "Deleting", "True", "WaitingForPreTerminateHook");
    add(t, "]}}");
}

static void workload(struct text *t, const char *machines, const char *rest)
{
    static const char *const pods[] = { "kube-apiserver", "kube-controller-manager",
                                        "kube-scheduler", "etcd" };
    const char *at = machines;
    struct word w;
    uint64_t id = 0, leader = 0;

    add(t, "],\"workloads\":[{\"cluster\":\"default/c\",\"connection\":{\"state\":\"Connected\","
           "\"lastProbeSuccessTime\":\"" NOW "\"},\"nodes\":[");
    for (int i = 0; next_word(&at, &w); i++)
        add(t,
            "%s{\"metadata\":{\"name\":\"n-%s\",\"labels\":{\"node-role.kubernetes.io/"
            "control-plane\":"
            "\"\"}},\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"%s\"}]}}",
            i ? "," : "", w.name, has(w.flags, "down") ? "Unknown" : "True");
    add(t, "],\"pods\":[");
    at = machines;
    for (int i = 0; next_word(&at, &w); i++)
        for (int k = 0; k < 4; k++)
            add(t,
                "%s{\"metadata\":{\"name\":\"%s-n-%s\",\"namespace\":\"kube-system\"},\"status\":{"
                "\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"%s\"}]}}",
                i || k ? "," : "", pods[k], w.name,
                k == 3 && has(w.flags, "dead") ? "False" : "True");
    add(t, "]");
    if (has(rest, "external")) {
        add(t, "}]");
        return;
    }
    if (has(rest, "blind")) {
        add(t, ",\"etcd\":{\"connectError\":\"no route\"}}]");
        return;
    }
    add(t, ",\"etcd\":{\"endpoint\":\"etcd-x\",\"errors\":[],\"members\":[");
    at = machines;
    for (bool first = true; next_word(&at, &w);) {
        id++;
        if (has(w.flags, "lead"))
            leader = id;
        if (has(w.flags, "nomember") || has(w.flags, "prov"))
            continue;
        add(t, "%s{\"ID\":\"%" PRIu64 "\",\"name\":\"n-%s\",\"isLearner\":%s}", first ? "" : ",",
            id, w.name, has(w.flags, "learner") ? "true" : "false");
        first = false;
    }
    if (has(rest, "orphan"))
        add(t, ",{\"ID\":\"77\",\"name\":\"ghost\"}");
    add(t, "],\"alarms\":[");
    at = machines;
    id = 0;
    for (bool first = true; next_word(&at, &w);) {
        id++;
        if (!has(w.flags, "sick"))
            continue;
        add(t, "%s{\"memberID\":\"%" PRIu64 "\",\"alarm\":\"NOSPACE\"}", first ? "" : ",", id);
        first = false;
    }
    add(t, "],\"leader\":\"%" PRIu64 "\"}}]", has(rest, "noleader") ? 0 : leader ? leader : 1);
}

static void snapshot(struct text *t, const char *machines, const char *rest)
{
    const char *record = strstr(rest, "record=");
    const char *replicas = strstr(rest, "replicas=");
    const char *at = machines;
    struct word w;

    t->len = 0;
    add(t,
        "{\"apiVersion\":\"plimsoll.dev/v1\",\"kind\":\"Snapshot\",\"now\":\"" NOW
        "\",\"objects\":[{\"apiVersion\":\"cluster.x-k8s.io/v1beta2\",\"kind\":\"Cluster\","
        "\"metadata\":{\"name\":\"c\",\"namespace\":\"default\"},\"spec\":{%s"
        "\"controlPlaneEndpoint\":{\"host\":\"h\",\"port\":6443}},\"status\":{\"initialization\":{"
        "\"infrastructureProvisioned\":true}}}",
        has(rest, "topology") ? "\"topology\":{\"version\":\"v1.35.0\"}," : "");
    add(t, ",{\"apiVersion\":\"controlplane.cluster.x-k8s.io/v1beta2\",\"kind\":"
           "\"KubeadmControlPlane\",\"metadata\":{\"name\":\"cp\",\"namespace\":\"default\","
           "\"labels\":{"
           "\"cluster.x-k8s.io/cluster-name\":\"c\"}");
    if (has(rest, "going") || has(rest, "long"))
        add(t, ",\"deletionTimestamp\":\"2026-11-15T01:%s:00Z\"", has(rest, "long") ? "30" : "58");
    if (record || has(rest, "broken")) {
        add(t, ",\"annotations\":{\"controlplane.cluster.x-k8s.io/remediation-in-progress\":");
        if (record)
            record_text(t, record + strlen("record="));
        else
            add(t, "\"nonsense\"");
        add(t, "}");
    }
    add(t,
        "},\"spec\":{\"version\":\"v1.%s.0\",\"replicas\":%.1s%s},\"status\":{\"initialization\":{"
        "\"controlPlaneInitialized\":%s},\"conditions\":[{\"type\":\"Initialized\",\"status\":"
        "\"True\",\"reason\":\"I\",\"message\":\"\",\"lastTransitionTime\":"
        "\"2026-11-14T02:00:00Z\"}]}}",
        has(rest, "old") ? "30" : "34", replicas ? replicas + 9 : "3",
        has(rest, "external") ? ",\"kubeadmConfigSpec\":{\"clusterConfiguration\":{\"etcd\":{"
                                "\"external\":{\"endpoints\":[\"https://e\"]}}}}"
                              : "",
        has(rest, "uninit") ? "false" : "true");
    for (int i = 0; next_word(&at, &w); i++)
        machine(t, &w, rest, i);
    if (has(rest, "worker"))
        add(t, ",{\"apiVersion\":\"cluster.x-k8s.io/v1beta2\",\"kind\":\"Machine\",\"metadata\":{"
               "\"name\":\"w\",\"namespace\":\"default\",\"labels\":{\"cluster.x-k8s.io/"
               "cluster-name\":\"c\"}}}");
    workload(t, machines, rest);
    add(t, "}");
}

/* The plan of that world, in the context. NULL when the world is wrong. */
static const struct pl_plan *plan_of(struct pl_context **ctx, struct pl_arena *arena,
                                     const char *machines, const char *rest)
{
    static struct text t;
    struct pl_plans *plans = PL_NEW(arena, struct pl_plans, 1);
    struct pl_snapshot *s = PL_NEW(arena, struct pl_snapshot, 1);
    enum pl_profile profile = has(rest, "capi") ? PL_PROFILE_CLUSTER_API_1_12 : PL_PROFILE_TABLES;
    struct pl_infra_template own = { PL_STR("DockerMachineTemplate"), PL_STR("own"), PL_STR("u"),
                                     PL_STR("/p") };
    const struct pl_report *report;
    struct pl_error *err = NULL;

    snapshot(&t, machines, rest);
    *ctx = pl_context_new(&(struct pl_options){ .profile = profile });
    if (pl_context_add(*ctx, "test", t.bytes, t.len) < 0 || pl_context_next(*ctx, &report) != 1) {
        test_fail(__FILE__, __LINE__, "%s", pl_context_error(*ctx));
        return NULL;
    }
    *s = *pl__context_snapshot(*ctx);
    if (has(rest, "template")) {
        s->templates.items = PL_NEW(arena, struct pl_infra_template, 1);
        s->templates.items[0] = own;
        s->templates.count = 1;
    }
    plans->etcd_stale = has(rest, "stale");
    plans->etcd_refuses = has(rest, "refused");
    if (pl__evaluate(s, (struct pl_evaluate_options){ .profile = profile, .plans = plans }, arena,
                     &report, &err) < 0 ||
        plans->count != 1)
        return NULL;
    return &plans->items[0];
}

static const struct {
    const char *machines, *rest, *step;
} cases[] = {
    /* Nothing to do. */
    { "a b c", "", "wait:" },
    { "a b:bad c", "stale", "wait: a fresh observation of etcd" },

    /* Steps 1 to 9, in the order of writes. */
    { "a b:bad c", "", "record that the remediation of Machine b begins, retry 0" },
    { "a b:bad,lead c", "", "move etcd leadership from n-b to n-c" },
    { "a b:bad,lead c:bad", "", "move etcd leadership from n-b to n-a" },
    { "a:bad b:bad,lead c:bad", "",
      "set OwnerRemediated of Machine a to False, CannotBeRemediated" },
    { "a b:bad c:dead", "", "set OwnerRemediated of Machine b to False, CannotBeRemediated" },
    { "a b:bad,marked c:dead", "record=b",
      "set OwnerRemediated of Machine b to False, CannotBeRemediated" },
    { "a b:bad c d:dead e", "", "record that the remediation of Machine b begins, retry 0" },
    { "a b:bad c", "record=b", "set OwnerRemediated of Machine b to False, MachineDeleting" },
    { "a b:bad,marked c", "record=b", "delete Machine b" },
    { "a b:bad,marked c", "record=b stale", "wait: a fresh observation of etcd" },
    { "a b:bad,marked,lead c", "record=b", "move etcd leadership from n-b to n-c" },
    { "a b:bad,marked c", "record=b noleader", "wait: etcd to have a leader" },
    { "a b:bad,lead c:sick", "", "set OwnerRemediated of Machine b to False, CannotBeRemediated" },
    { "a b:bad,lead c d:sick e", "", "move etcd leadership from n-b to n-e" },
    { "a b:bad,lead c d e:sick", "", "wait: a healthy etcd member on Machine e to lead" },
    { "a b:bad,marked,paused c", "record=b", "wait: Machine b to be no longer paused" },
    { "a:bad b:bad,marked c d e", "record=b", "delete Machine b" },
    { "a:bad", "", "set OwnerRemediated of Machine a to False, CannotBeRemediated" },
    { "a b:bad c", "topology", "set OwnerRemediated of Machine b to False, RemediationDeferred" },
    { "a b:bad c", "external", "record that the remediation of Machine b begins, retry 0" },
    { "a b:bad c", "blind", "set OwnerRemediated of Machine b to False, InternalError" },
    { "a b:well c", "", "remove OwnerRemediated from Machine b, which is healthy again" },
    { "a b:bad,del c", "", "wait: Machine b to be drained" },

    /* Step 5: records. */
    { "a b c", "record=b", "drop the record of the remediation: Machine b has recovered" },
    { "a b:bad c:new", "record=b", "drop the record of the remediation: a newer Machine is there" },
    { "a c d:heir", "record=b",
      "drop the record of the remediation: Machine d is the replacement" },
    { "a c d", "record=b",
      "drop the record of the remediation: Machine b is gone, and no Machine is missing" },
    { "a c d:del", "record=b", "wait: Machine d to be drained" },
    { "a b:bad c", "broken", "set OwnerRemediated of Machine b to False, InternalError" },

    /* Section 11. */
    { "a c", "record=b", "create the replacement of Machine b" },
    { "a c", "", "wait:" },
    { "a c", "record=b stale", "wait: a fresh observation of etcd" },
    { "a c:sick", "record=b", "wait: Machine c to be healthy" },
    { "a c:bad,sick", "record=b",
      "wait: etcd to have quorum: 1 of 2 members are healthy, quorum 2" },
    { "a c:prov", "record=b", "wait: Machine c to be healthy" },
    { "a c d:del", "record=b replicas=5", "wait: Machine d to be drained" },
    { "a c", "record=b topology",
      "wait: version v1.35.0 to be propagated from Cluster.spec.topology" },
    { "a c", "record=b uninit", "wait:" },
    { "a b:bad,del,nohook c", "record=b replicas=5", "wait: Machine b to be gone" },

    /* Step 10. */
    { "a b:bad,dried c", "record=b", "remove etcd member n-b of Machine b" },
    { "a b:bad,dried,lead c", "record=b", "move etcd leadership from n-b to n-c" },
    { "a b:bad,dried,lead c:bad", "record=b", "move etcd leadership from n-b to n-a" },
    { "a b:bad,dried,lead c", "record=b refused", "remove etcd member n-b of Machine b" },
    { "a b:bad,dried c", "record=b stale", "wait: a fresh observation of etcd" },
    { "a b:bad,dried,nomember c", "record=b", "drop the pre-terminate hook of Machine b" },
    { "a b:bad,dried,nomember c", "record=b stale", "wait: a fresh observation of etcd" },
    { "a b:bad,dried c", "record=b external", "drop the pre-terminate hook of Machine b" },
    { "b:dried", "", "drop the pre-terminate hook of Machine b" },
    { "a b:dried c:dried", "", "remove etcd member n-b of Machine b" },
    { "a b:dried c:dried,down", "", "wait: more healthy etcd members" },
    { "a b:dried c:del,nohook", "", "wait: Machine c to be gone" },
    { "a b:dried,other c", "", "wait: other pre-terminate hooks of Machine b to be gone" },
    { "a b:dried,other c", "old", "remove etcd member n-b of Machine b" },
    { "a:sick b:dried c", "", "wait: more healthy etcd members" },
    { "a b:dried c", "blind", "wait: an observation of etcd (no route)" },
    { "a b:dried c:learner", "", "wait: more healthy etcd members" },

    /* Step 11. */
    { "a b c", "orphan", "remove etcd member ghost, which has no Machine" },
    { "a b:sick", "orphan", "wait: more healthy etcd members" },
    { "a b c:prov", "orphan replicas=3", "wait:" },
    { "a b c", "orphan stale", "wait: a fresh observation of etcd" },

    /* Section 8, tables. */
    { "a b c", "going worker",
      "wait: KubeadmControlPlane deletion blocked because following objects still exist:\n* "
      "Machines: w" },
    { "a b c", "going", "remove etcd member n-c of Machine c" },
    { "a b c:lead", "going", "remove etcd member n-b of Machine b" },
    { "a b c:nomember", "going", "delete Machine c" },
    { "a b c:nomember", "going stale", "wait: a fresh observation of etcd" },
    { "a b c:dried,nomember", "going", "drop the pre-terminate hook of Machine c" },
    { "a b c:del", "going", "wait: Machine c to be drained" },
    { "a", "going", "delete Machine a" },
    { "a:dried", "going", "drop the pre-terminate hook of Machine a" },
    { "a:sick b:lead c", "going", "remove etcd member n-a of Machine a" },
    { "a b", "going orphan", "remove etcd member ghost, which has no Machine" },
    { "a:sick b:sick c:sick", "going", "wait: more healthy etcd members" },
    { "a:sick b:sick c:sick", "long", "delete Machine c" },
    { "a b c", "going blind", "wait: Cannot remove the etcd member of Machine c: no route" },
    { "a b c", "long blind", "delete Machine c" },
    { "a b c:dried", "long blind", "drop the pre-terminate hook of Machine c" },
    { "a b c", "going refused", "remove etcd member n-c of Machine c" },
    { "a b c", "long refused", "delete Machine c" },
    { "a b c:dried", "long refused", "drop the pre-terminate hook of Machine c" },
    { "a:lead b:down c", "going", "remove etcd member n-b of Machine b" },
    { "a b c", "going external", "delete Machine c" },
    { "", "going", "drop the finalizer: the deletion is complete" },
    { "", "going template", "delete DockerMachineTemplate own" },
    { "", "going worker",
      "wait: KubeadmControlPlane deletion blocked because following objects still exist:\n* "
      "Machines: w" },

    /* ... and as Cluster API does it. */
    { "a b c", "going capi", "drop the pre-terminate hook of Machine a" },
    { "a:nohook b c", "going capi", "delete Machine a" },
    { "a:del,nohook b c:del,nohook", "going capi", "drop the pre-terminate hook of Machine b" },
    { "a:del,nohook", "going capi", "wait: the control plane Machines to be gone" },
    { "", "going capi", "drop the finalizer: the deletion is complete" },
};

static void test_steps(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pl_context *ctx = NULL;
        struct pl_arena arena;
        CASE("%s / %s", cases[i].machines, cases[i].rest)
        pl__arena_init(&arena, NULL, 0);
        const struct pl_plan *plan = plan_of(&ctx, &arena, cases[i].machines, cases[i].rest);
        CHECK(plan != NULL);
        if (plan) {
            struct pl_str waits =
                pl__str_format(&arena, "wait:%s%.*s", plan->shown.waits_for.len ? " " : "",
                               PL_STR_ARG(plan->shown.waits_for));
            CHECK_STR(plan->step.kind ? plan->shown.step : waits, cases[i].step);
            CHECK((plan->step.kind == STEP_NONE) == (plan->shown.step.len == 0));
        }
        pl_context_free(ctx);
        pl__arena_release(&arena);
    }
}

static void test_details(void)
{
    struct pl_context *ctx = NULL;
    struct pl_arena arena;
    const struct pl_plan *plan;

    pl__arena_init(&arena, NULL, 0);
    CASE("a record is never older than a Machine: it would be taken for one that was served")
    plan = plan_of(&ctx, &arena, "a b:bad c:later", "");
    CHECK_STR(plan->step.record,
              "{\"machine\":\"b\",\"timestamp\":\"2026-11-15T02:12:00Z\",\"retryCount\":0}");
    pl_context_free(ctx);

    CASE("the record that is written, and the retry count that goes on")
    plan = plan_of(&ctx, &arena, "a b:bad c", "");
    CHECK_STR(plan->step.record, "{\"machine\":\"b\",\"timestamp\":\"" NOW "\",\"retryCount\":0}");
    pl_context_free(ctx);

    CASE("leadership is moved by the leader itself, a member removed by the others, the leader "
         "first")
    plan = plan_of(&ctx, &arena, "a b:bad,lead c", "");
    CHECK_INT(plan->step.ask_count, 1);
    CHECK_STR(plan->step.ask[0], "n-b");
    CHECK_INT(plan->step.member_id, 3);
    pl_context_free(ctx);
    plan = plan_of(&ctx, &arena, "a b:dried c:lead d e", "");
    CHECK_INT(plan->step.ask_count, 4);
    CHECK_STR(plan->step.ask[0], "n-c");
    CHECK_INT(plan->step.member_id, 2);
    CHECK(plan->step.confirm);
    pl_context_free(ctx);

    CASE("the arithmetic of a refusal")
    plan = plan_of(&ctx, &arena, "a b:bad c:sick", "");
    CHECK_INT(plan->shown.note_count, 1);
    CHECK_STR(pl__str(plan->shown.notes[0].reason), "CannotBeRemediated");
    CHECK_STR(plan->shown.notes[0].text,
              "not remediating Machine b: removing it would leave 1 of 2 voters healthy, quorum 2");
    pl_context_free(ctx);

    CASE("going on without a member is said")
    plan = plan_of(&ctx, &arena, "a b c", "long blind");
    CHECK_INT(plan->shown.note_count, 1);
    CHECK_STR(plan->shown.notes[0].text,
              "going on without removing the etcd member of Machine c: no route");
    pl_context_free(ctx);

    CASE("the checklist of a remediation")
    plan = plan_of(&ctx, &arena, "a b:bad,marked,dried c", "record=b");
    CHECK_STR(plan->shown.procedure, "remediation of Machine b");
    static const enum pl_line_state states[] = { PL_LINE_DONE, PL_LINE_DONE, PL_LINE_DONE,
                                                 PL_LINE_NOW,  PL_LINE_NEXT, PL_LINE_WAITING,
                                                 PL_LINE_NEXT, PL_LINE_NEXT };
    CHECK_INT(plan->shown.line_count, sizeof states / sizeof states[0]);
    for (size_t i = 0; i < plan->shown.line_count && i < sizeof states / sizeof states[0]; i++)
        CHECK_INT(plan->shown.lines[i].state, states[i]);
    CHECK(plan->shown.lines[0].since_ms != 0);
    pl_context_free(ctx);

    CASE("the public face")
    static struct text t;
    const struct pl_next_step *next = NULL;
    const struct pl_report *report;
    snapshot(&t, "a b:bad c", "");
    ctx = pl_context_new(NULL);
    CHECK(pl_plan(ctx, "default/cp", &next) < 0);
    CHECK(pl_context_add(ctx, "test", t.bytes, t.len) == 0);
    CHECK(pl_context_next(ctx, &report) == 1);
    CHECK(pl_plan(ctx, "default/other", &next) < 0);
    CHECK(pl_plan(ctx, "default/cp", &next) == 0);
    CHECK_STR(next->step, "record that the remediation of Machine b begins, retry 0");
    pl_context_free(ctx);
    pl__arena_release(&arena);
}

int main(void)
{
    test_steps();
    test_details();
    return test_end("core/plan");
}
