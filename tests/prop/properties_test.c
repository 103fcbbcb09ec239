/* tests/prop/properties_test.c - what holds for every world.
 *
 * Worlds come from a seed: a handful of random words (tests/world.h). A failure prints the words, so
 * that it can become a named case in tests/unit/tables. PROP_SEED and PROP_COUNT choose other worlds
 * and more of them. */
#include "test.h"

#include <stdlib.h>

#include "base/time.h"
#include "prng.h"
#include "world.h"

enum { COUNT_DEFAULT = 1000, WORDS_MAX = 9, COMPLAINTS_MAX = 3, TEXT_MAX = 4096 };
static const uint64_t seed_default = 20261115;

static uint64_t seed;
static uint64_t count;
static int complaints;

/* --- random worlds ------------------------------------------------------------------------------- */

/* %m a Machine, %n a Node, %p a Pod, %c a condition of a Machine, %s a status. */
static const char *const common[] = {
    "alarm=%n:NOSPACE",
    "alarm=%n:CORRUPT",
    "alarm=%n:NONE",
    "learner=%n",
    "no-member=%n",
    "extra-member=ghost",
    "unnamed-member",
    "no-members",
    "leader=%n",
    "no-leader",
    "orphan-node=node-9",
    "no-node=%n",
    "unreachable=%n",
    "ready-unknown=%n",
    "worker-node=worker-node-0",
    "taint=%n:node.kubernetes.io/unreachable:NoSchedule",
    "no-pod=%p",
    "pod=%p:Pending",
    "pod=%p:Pending scheduled=%p",
    "pod=%p:Running",
    "pod=%p:Running waiting=%p:CrashLoopBackOff",
    "pod=%p:Running terminated=%p:Error",
    "pod=%p:Failed",
    "pod=%p:Unknown",
    "pod=%p:Odd",
    "crashed=%p",
    "pod-error=%p:forbidden",
    "machine-deleting=%m:-20m",
    "machine-deleting=%m:-1m",
    "draining=%m:-6m:\"failed to evict Pod\"",
    "provisioning=%m",
    "provisioning=%m no-provider-id=%m",
    "no-provider-id=%m",
    "no-machine=%m",
    "unhealthy=%m",
    "healthy=%m",
    "to-remediate=%m",
    "to-remediate=%m",
    "to-remediate=%m",
    "to-remediate=%m owner-message=%m:\"head\\n* a\\n* b\"",
    "to-remediate=%m owner-message=%m:\"* a\"",
    "owner-at=%m:-5m",
    "owner-status=%m:Unknown",
    "remediate-annotation=%m",
    "in-progress=%m:-5m:2",
    "in-progress=cp-gone:-5m:0",
    "in-progress=%m:-90h:1",
    "in-progress-text=broken",
    "to-remediate=%m remediation-for=%m:-5m:2",
    "to-remediate=%m remediation-for=%m:-5m:2 max-retry=2",
    "to-remediate=%m remediation-for=%m:-5m:2 retry-period=301",
    "remediation-for-text=%m:{}",
    "max-retry=1",
    "retry-period=600",
    "min-healthy=60",
    "topology=v1.35.0",
    "topology=v1.34.0",
    "created=%m:-1m",
    "created=%m:-80h",
    "stored=EtcdClusterHealthy:%s:Old:\"as it was\"",
    "stored=ControlPlaneComponentsHealthy:%s:Old",
    "stored=Remediating:%s:Old",
    "stored=Deleting:%s:Old",
    "machine-stored=%m:%c:%s:Old:\"as it was\"",
    "workers=2",
    "pools=1",
    "deployment=3 to-remediate=md-1",
    "deployment=2 unhealthy=md-0",
    "bystander",
    "paused",
    "no-generation",
};

/* What decides for the whole world, and so comes less often. */
static const char *const sweeping[] = {
    "nodes-error=\"nodes: refused\"",
    "connect-error=\"etcd: refused\"",
    "members-error=\"members: refused\"",
    "alarms-error=\"alarms: refused\"",
    "status-error=\"etcdserver: no leader\"",
    "status-error=\"memberID:1 alarm:NOSPACE\"",
    "state=NotConnected",
    "state=Failed",
    "never-probed initialized-at=-100s",
    "never-probed",
    "failures=7",
    "last-probe=-400s",
    "grace=600",
    "not-initialized",
    "no-initialized-condition",
    "initialized=False",
    "initialized-at=-10s",
    "no-infrastructure",
    "no-endpoint",
    "external-etcd",
    "deleting",
    "deleting",
    "deleting=-11m",
    "missing=workload",
    "missing=connection",
    "missing=nodes",
    "missing=pods",
    "missing=etcd",
    "missing=etcd.members",
    "missing=etcd.alarms",
    "missing=cluster",
};

static void word_fill(struct prng *r, const char *template, size_t machines, char *word,
                      size_t size)
{
    static const char *const pods[] = { "kube-apiserver-", "kube-controller-manager-",
                                        "kube-scheduler-", "etcd-" };
    static const char *const conditions[] = { "APIServerPodHealthy", "ControllerManagerPodHealthy",
                                              "SchedulerPodHealthy", "EtcdPodHealthy",
                                              "EtcdMemberHealthy" };
    static const char *const statuses[] = { "True", "False", "Unknown" };
    size_t index = prng_below(r, machines ? machines : 1), len = 0;
    const char *pod = pods[prng_below(r, 4)]; /* one word is about one Machine and one Pod */

    for (const char *t = template; *t && len + 1 < size; t++) {
        if (*t != '%') {
            word[len++] = *t;
            continue;
        }
        t++;
        int n = 0;
        if (*t == 'm')
            n = snprintf(word + len, size - len, "cp-%zu", index);
        else if (*t == 'n')
            n = snprintf(word + len, size - len, "node-%zu", index);
        else if (*t == 'p')
            n = snprintf(word + len, size - len, "%snode-%zu", pod, index);
        else if (*t == 'c')
            n = snprintf(word + len, size - len, "%s", conditions[prng_below(r, 5)]);
        else if (*t == 's')
            n = snprintf(word + len, size - len, "%s", statuses[prng_below(r, 3)]);
        len += (size_t)n;
    }
    word[len] = '\0';
}

/* The world number `i`; `words` is what it was made of. Words that do not fit it are left out. */
static void world_random(struct world *w, uint64_t i, char *words, size_t size)
{
    static const size_t machine_counts[] = { 3, 3, 3, 3, 1, 2, 4, 5, 5, 7, 0 };
    struct prng r = { seed + i * 1000003 };
    size_t machines =
        machine_counts[prng_below(&r, sizeof machine_counts / sizeof machine_counts[0])];
    size_t word_count = prng_below(&r, WORDS_MAX);
    char word[256];

    snprintf(words, size, "machines=%zu", machines);
    world_reset(w);
    world_say(w, words);
    for (size_t k = 0; k < word_count; k++) {
        bool rare = prng_one_in(&r, 7);
        const char *const *from = rare ? sweeping : common;
        size_t from_count =
            rare ? sizeof sweeping / sizeof sweeping[0] : sizeof common / sizeof common[0];
        word_fill(&r, from[prng_below(&r, from_count)], machines, word, sizeof word);
        if (!world_say(w, word))
            continue;
        size_t len = strlen(words);
        snprintf(words + len, size - len, " %s", word);
    }
}

/* --- judging ------------------------------------------------------------------------------------- */

/* One evaluation, from a copy of exactly the right size: a read past its end shows. */
struct judged {
    struct pl_context *ctx;
    struct pl_context **spare; /* where the context goes afterwards; NULL: it ends */
    char *copy;
    int got;
    const struct pl_report *report;
    struct pl_str json;
};

static struct judged judge_text(struct pl_context *ctx, struct pl_str text)
{
    struct judged j = { .ctx = ctx, .copy = malloc(text.len ? text.len : 1) };

    if (!j.copy)
        abort();
    if (text.len)
        memcpy(j.copy, text.ptr, text.len);
    pl_context_add(ctx, "world", j.copy, text.len);
    j.got = pl_context_next(ctx, &j.report);
    if (j.got == 1)
        j.json = pl_report_json(ctx, j.report);
    return j;
}

/* Contexts are used again and again, as a program would; a few properties make new ones. */
static struct pl_context *spare[PL_PROFILE_COUNT][2][4];

static struct judged judge(struct world *w, enum pl_profile profile, bool explain, uint64_t order)
{
    struct pl_context *ctx = NULL;

    for (size_t i = 0; !ctx && i < 4; i++) {
        ctx = spare[profile][explain][i];
        spare[profile][explain][i] = NULL;
    }
    if (!ctx)
        ctx = pl_context_new(&(struct pl_options){ .profile = profile, .explain = explain });
    struct judged j = judge_text(ctx, world_text(w, JSON_COMPACT, order));
    j.spare = spare[profile][explain];
    return j;
}

static void judged_release(struct judged *j)
{
    free(j->copy);
    for (size_t i = 0; j->spare && i < 4; i++) {
        if (j->spare[i])
            continue;
        pl_context_clear(j->ctx);
        j->spare[i] = j->ctx;
        return;
    }
    pl_context_free(j->ctx);
}

static void spare_release(void)
{
    for (size_t p = 0; p < PL_PROFILE_COUNT; p++) {
        for (size_t i = 0; i < 4; i++) {
            pl_context_free(spare[p][0][i]);
            pl_context_free(spare[p][1][i]);
        }
    }
}

/* Says once what went wrong and in which world. */
__attribute__((format(printf, 3, 4))) static void complain(uint64_t i, const char *words,
                                                           const char *format, ...)
{
    char why[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    test_fail(__FILE__, __LINE__, "%s\n    world %" PRIu64 " of seed %" PRIu64 ": %s", why, i, seed,
              words);
    complaints++;
}

static const struct pl_object *object_find(const struct pl_report *r, const char *kind,
                                           struct pl_str name)
{
    for (size_t i = 0; i < r->object_count; i++) {
        if (strcmp(r->objects[i].kind, kind) == 0 && pl__str_equal(r->objects[i].name, name))
            return &r->objects[i];
    }
    return NULL;
}

static const struct pl_verdict *verdict_find(const struct pl_object *o, const char *type)
{
    for (size_t i = 0; o && i < o->verdict_count; i++) {
        if (strcmp(o->verdicts[i].type, type) == 0)
            return &o->verdicts[i];
    }
    return NULL;
}

static const struct pl_verdict *kcp_verdict(const struct pl_report *r, const char *type)
{
    return verdict_find(object_find(r, "KubeadmControlPlane", PL_STR("cp")), type);
}

static enum pl_status machine_status(const struct pl_report *r, struct pl_str machine,
                                     const char *type)
{
    const struct pl_verdict *v = verdict_find(object_find(r, "Machine", machine), type);
    return v ? v->status : PL_STATUS_NONE;
}

/* What of two verdicts differs, or NULL. */
static const char *verdict_difference(const struct pl_verdict *a, const struct pl_verdict *b)
{
    if (strcmp(a->type, b->type) != 0)
        return "type";
    if (a->status != b->status)
        return "status";
    if (!pl__str_equal(a->reason, b->reason))
        return "reason";
    if (!pl__str_equal(a->message, b->message))
        return "message";
    if (strcmp(a->row, b->row) != 0)
        return "row";
    if (a->has_observed_generation != b->has_observed_generation ||
        a->observed_generation != b->observed_generation)
        return "observedGeneration";
    if (a->last_transition_ms != b->last_transition_ms)
        return "lastTransitionTime";
    if (a->also_held_count != b->also_held_count)
        return "alsoHeld";
    for (size_t i = 0; i < a->also_held_count; i++) {
        if (strcmp(a->also_held[i], b->also_held[i]) != 0)
            return "alsoHeld";
    }
    return NULL;
}

/* What of two reports' conditions differs, or NULL. Whether one is marked as kept is not looked at. */
static const char *conditions_difference(const struct pl_report *a, const struct pl_report *b)
{
    if (a->object_count != b->object_count)
        return "objects";
    for (size_t i = 0; i < a->object_count; i++) {
        const struct pl_object *x = &a->objects[i], *y = &b->objects[i];
        if (!pl__str_equal(x->name, y->name) || x->verdict_count != y->verdict_count ||
            x->requeue_with_error != y->requeue_with_error)
            return "an object";
        for (size_t k = 0; k < x->verdict_count; k++) {
            const char *what = verdict_difference(&x->verdicts[k], &y->verdicts[k]);
            if (what)
                return what;
        }
    }
    return a->missing_count != b->missing_count ? "missing" : NULL;
}

/* --- what the words say, worked out apart from the engine ------------------------------------------ */

static struct world_machine *machine_on(struct world *w, struct pl_str node)
{
    for (size_t i = 0; node.len && i < w->machine_count; i++) {
        if (w->machines[i].role == WORLD_CONTROL_PLANE && pl__str_equal(w->machines[i].node, node))
            return &w->machines[i];
    }
    return NULL;
}

static bool orphan_node(struct world *w)
{
    for (size_t i = 0; i < w->machine_count; i++) {
        if (w->machines[i].role == WORLD_CONTROL_PLANE && !w->machines[i].node.len)
            return false;
    }
    for (size_t i = 0; i < w->node_count; i++) {
        if (!w->nodes[i].worker && !machine_on(w, w->nodes[i].name))
            return true;
    }
    return false;
}

/* Some Machine needs etcd; some such Machine's Node is there to ask through. */
static void etcd_access(struct world *w, bool *needed, bool *candidate)
{
    *needed = *candidate = false;
    for (size_t i = 0; i < w->machine_count; i++) {
        const struct world_machine *m = &w->machines[i];
        if (m->role != WORLD_CONTROL_PLANE || !m->node.len || m->deleted_ms)
            continue;
        *needed = true;
        *candidate |= world_node(w, m->node) != NULL;
    }
}

static bool alarm_among_errors(const struct world *w)
{
    for (size_t i = 0; i < w->error_count; i++) {
        if (pl__str_contains(w->errors[i], PL_STR("alarm:")))
            return true;
    }
    return false;
}

static bool status_errors_count(const struct world *w, enum pl_profile profile)
{
    for (size_t i = 0; i < w->error_count; i++) {
        if (profile == PL_PROFILE_CLUSTER_API_1_12 ||
            !pl__str_contains(w->errors[i], PL_STR("alarm:")))
            return true;
    }
    return false;
}

/* A member without Machine, where members are compared. */
static bool stray_member(struct world *w, enum pl_profile profile)
{
    bool needed, candidate;

    etcd_access(w, &needed, &candidate);
    if (!candidate || w->connect_error.len || w->members_error.len || w->alarms_error.len ||
        status_errors_count(w, profile))
        return false;
    for (size_t i = 0; i < w->member_count; i++) {
        if (!machine_on(w, w->members[i].name))
            return true;
    }
    return false;
}

/* The number of a row of that table; 0 for rows of others. */
static uint64_t row_number(const struct pl_verdict *v, const char *table)
{
    size_t len = strlen(table);
    uint64_t number = 0;

    if (!v || strncmp(v->row, table, len) != 0 || v->row[len] != '/')
        return 0;
    return pl__str_to_u64(pl__str(v->row + len + 1), &number) ? number : 0;
}

/* The step of our control plane, not of a bystander; or NULL. */
static const struct pl_remediation *remediation_of(const struct pl_report *r)
{
    for (size_t i = 0; i < r->remediation_count; i++) {
        if (pl__str_equal(r->remediation[i].name, PL_STR("cp")))
            return &r->remediation[i];
    }
    return NULL;
}

/* --- the properties ------------------------------------------------------------------------------ */

typedef void property_fn(struct world *w, uint64_t i, const char *words, enum pl_profile profile);

/* The order in which objects, Pods, workloads and conditions are listed changes nothing. (Nodes and
 * etcd members keep theirs: findings are told in the order listed.) */
static void order_changes_nothing(struct world *w, uint64_t i, const char *words,
                                  enum pl_profile profile)
{
    struct judged a = judge(w, profile, true, 0);

    for (uint64_t order = 1; order <= 2; order++) {
        struct judged b = judge(w, profile, true, seed + i + order);
        if (a.got != 1 || b.got != 1 || !pl__str_equal(a.json, b.json))
            complain(i, words, "another order, another answer\n    %.*s\n    %.*s",
                     PL_STR_ARG(a.json), PL_STR_ARG(b.json));
        judged_release(&b);
    }
    judged_release(&a);
}

/* Same input, same bytes: in a new context, in one that has judged other things before, in one that
 * has just failed, and in one that was never cleared in between. */
static void same_input_same_bytes(struct world *w, uint64_t i, const char *words,
                                  enum pl_profile profile)
{
    static struct pl_context *dirty[PL_PROFILE_COUNT];
    static const char broken[] =
        "{\"kind\":\"Snapshot\",\"apiVersion\":\"plimsoll.dev/v1\",\"now\":1}";
    struct judged a = judge(w, profile, false, 0);
    struct judged b = judge_text(pl_context_new(&(struct pl_options){ .profile = profile }),
                                 world_text(w, JSON_COMPACT, 0));
    const struct pl_report *report;

    if (!dirty[profile])
        dirty[profile] = pl_context_new(&(struct pl_options){ .profile = profile });
    struct pl_context *ctx = dirty[profile];
    if (i % 3 == 0) {
        pl_context_add(ctx, "broken", broken, sizeof broken - 1);
        if (pl_context_next(ctx, &report) != -1)
            complain(i, words, "a broken snapshot was taken");
    }
    if (i % 3 == 1)
        pl_context_clear(ctx);
    struct judged c = judge_text(ctx, world_text(w, JSON_COMPACT, 0));
    if (!pl__str_equal(a.json, b.json) || !pl__str_equal(a.json, c.json))
        complain(i, words, "the same input gave other bytes");
    if (pl_context_next(ctx, &report) != 0)
        complain(i, words, "there is more after the end");
    free(c.copy);
    judged_release(&a);
    judged_release(&b);
    if (i + 1 == count) {
        pl_context_free(ctx);
        dirty[profile] = NULL;
    }
}

/* YAML is only another way to write it. */
static void yaml_says_the_same(struct world *w, uint64_t i, const char *words,
                               enum pl_profile profile)
{
    if (i % 4)
        return;
    struct judged a = judge(w, profile, true, 0);
    struct judged b =
        judge_text(pl_context_new(&(struct pl_options){ .profile = profile, .explain = true }),
                   world_text(w, JSON_AS_YAML, 0));

    if (b.got != 1 || !pl__str_equal(a.json, b.json))
        complain(i, words, "YAML gave another answer: %s", pl_context_error(b.ctx));
    judged_release(&a);
    judged_release(&b);
}

/* Judging what was judged changes nothing. Our own conditions feed back in one way only: where a rung
 * keeps what is set (L2, L4) the second pass finds the first one's answer and keeps it, so it is marked
 * as kept then; and an unknown Pod phase leaves what is there. Either way the condition reads the same,
 * and the third pass is the second to the byte. */
static void judging_again_changes_nothing(struct world *w, uint64_t i, const char *words,
                                          enum pl_profile profile)
{
    struct judged a = judge(w, profile, false, 0);

    world_store(w, a.report);
    struct judged b = judge(w, profile, false, 0);
    const char *what = conditions_difference(a.report, b.report);
    if (what)
        complain(i, words, "%s changed when judged again\n    %.*s\n    %.*s", what,
                 PL_STR_ARG(a.json), PL_STR_ARG(b.json));
    world_store(w, b.report);
    struct judged c = judge(w, profile, false, 0);
    if (!pl__str_equal(b.json, c.json))
        complain(i, words, "the third pass differs from the second");
    judged_release(&a);
    judged_release(&b);
    judged_release(&c);
}

/* Later on, only a change of status moves lastTransitionTime, and then to that very second. */
static void transitions_follow_status(struct world *w, uint64_t i, const char *words,
                                      enum pl_profile profile)
{
    struct judged a = judge(w, profile, false, 0);

    world_store(w, a.report);
    w->now_ms += 3600500;
    int64_t second = w->now_ms - w->now_ms % 1000;
    struct judged b = judge(w, profile, false, 0);
    for (size_t o = 0; o < b.report->object_count; o++) {
        for (size_t k = 0; k < b.report->objects[o].verdict_count; k++) {
            const struct pl_verdict *v = &b.report->objects[o].verdicts[k];
            bool moved = v->last_transition_ms != v->stored_transition_ms;
            if (moved == (v->status == v->stored_status))
                complain(i, words, "%s: status %s -> %s, lastTransitionTime %s", v->type,
                         pl_status_name(v->stored_status), pl_status_name(v->status),
                         moved ? "moved" : "stayed");
            if (moved && v->last_transition_ms != second)
                complain(i, words, "%s: lastTransitionTime is not now", v->type);
        }
    }
    judged_release(&a);
    judged_release(&b);
}

/* What a Machine's conditions of these types add up to. */
struct sum {
    bool bad, unknown, good;
};

static void sum_add(struct sum *s, enum pl_status status, bool has_provider_id)
{
    s->bad |= status == PL_STATUS_FALSE;
    s->unknown |= status == PL_STATUS_UNKNOWN && has_provider_id;
    s->good |= status == PL_STATUS_TRUE || (status == PL_STATUS_UNKNOWN && !has_provider_id);
}

static enum pl_status sum_status(const struct sum *s, bool finding)
{
    if (s->bad || finding)
        return PL_STATUS_FALSE;
    if (s->unknown || !s->good)
        return PL_STATUS_UNKNOWN;
    return PL_STATUS_TRUE;
}

/* False before Unknown before True, and neither without its cause. */
static void status_precedence(struct world *w, uint64_t i, const char *words,
                              enum pl_profile profile)
{
    static const char *const pods[] = { "APIServerPodHealthy", "ControllerManagerPodHealthy",
                                        "SchedulerPodHealthy", "EtcdPodHealthy" };
    struct judged j = judge(w, profile, false, 0);
    const struct pl_verdict *components = kcp_verdict(j.report, "ControlPlaneComponentsHealthy");
    const struct pl_verdict *etcd = kcp_verdict(j.report, "EtcdClusterHealthy");
    struct sum of_pods = { 0 }, of_members = { 0 };
    bool needed, candidate;

    etcd_access(w, &needed, &candidate);
    for (size_t m = 0; m < w->machine_count; m++) {
        const struct world_machine *machine = &w->machines[m];
        bool provider = machine->provider_id.len > 0;
        if (machine->role != WORLD_CONTROL_PLANE)
            continue;
        for (size_t k = 0; k < (w->external_etcd ? 3 : 4); k++)
            sum_add(&of_pods, machine_status(j.report, machine->name, pods[k]), provider);
        /* The document has a row for a failure to connect, whoever it is told of. */
        bool told = profile == PL_PROFILE_TABLES && machine->node.len && !machine->deleted_ms &&
                    (w->connect_error.len || !candidate);
        sum_add(&of_members, machine_status(j.report, machine->name, "EtcdMemberHealthy"),
                provider || told);
    }
    if (row_number(components, "ControlPlaneComponentsHealthy") > 6 &&
        components->status != sum_status(&of_pods, orphan_node(w)))
        complain(i, words, "ControlPlaneComponentsHealthy is %s",
                 pl_status_name(components->status));
    if ((row_number(etcd, "EtcdClusterHealthy") > 2 ||
         (etcd && strcmp(etcd->row, "EtcdClusterHealthy/0") == 0)) &&
        etcd->status != sum_status(&of_members, orphan_node(w) || stray_member(w, profile)))
        complain(i, words, "EtcdClusterHealthy is %s", pl_status_name(etcd->status));
    judged_release(&j);
}

/* Both profiles tell the same health; they differ in words, but for three readings. */
static void profiles_agree_on_health(struct world *w, uint64_t i, const char *words,
                                     enum pl_profile profile)
{
    static const char *const types[] = { "ControlPlaneComponentsHealthy", "EtcdClusterHealthy" };
    bool needed, candidate, no_provider_id = false;

    if (profile != PL_PROFILE_TABLES)
        return;
    etcd_access(w, &needed, &candidate);
    for (size_t m = 0; m < w->machine_count; m++)
        no_provider_id |= !w->machines[m].provider_id.len && w->machines[m].node.len;
    struct judged a = judge(w, PL_PROFILE_TABLES, false, 0);
    struct judged b = judge(w, PL_PROFILE_CLUSTER_API_1_12, false, 0);
    for (size_t t = 0; t < 2; t++) {
        const struct pl_verdict *x = kcp_verdict(a.report, types[t]);
        const struct pl_verdict *y = kcp_verdict(b.report, types[t]);
        if (t == 1 && ((needed && !candidate)   /* nobody to ask: failed, or an empty list */
                       || alarm_among_errors(w) /* alarms among status errors */
                       || w->external_etcd      /* set on the ladder by one of them */
                       || (w->connect_error.len && no_provider_id))) /* a row of its own, or none */
            continue;
        if ((x ? x->status : PL_STATUS_NONE) != (y ? y->status : PL_STATUS_NONE))
            complain(i, words, "%s is %s and %s", types[t], x ? pl_status_name(x->status) : "none",
                     y ? pl_status_name(y->status) : "none");
    }
    judged_release(&a);
    judged_release(&b);
}

/* Explaining changes no verdict, and every verdict comes with its evidence. */
static void explaining_changes_nothing(struct world *w, uint64_t i, const char *words,
                                       enum pl_profile profile)
{
    struct judged a = judge(w, profile, false, 0), b = judge(w, profile, true, 0);
    const char *what = conditions_difference(a.report, b.report);

    if (what)
        complain(i, words, "%s changed when explained", what);
    for (size_t o = 0; o < a.report->object_count; o++) {
        for (size_t k = 0; k < a.report->objects[o].verdict_count; k++) {
            if (a.report->objects[o].verdicts[k].evidence_count)
                complain(i, words, "evidence that nobody asked for");
        }
    }
    judged_release(&a);
    judged_release(&b);
}

static bool row_exists(const char *row)
{
    for (size_t t = 0; t < pl_table_count(); t++) {
        for (size_t k = 0; k < pl_table_info(t).row_count; k++) {
            if (strcmp(pl_table_row(t, k).id, row) == 0)
                return true;
        }
    }
    return false;
}

/* Every row that is named exists; the others that held are others, and each is named once. */
static void rows_exist(struct world *w, uint64_t i, const char *words, enum pl_profile profile)
{
    struct judged j = judge(w, profile, false, 0);

    for (size_t o = 0; o < j.report->object_count; o++) {
        for (size_t k = 0; k < j.report->objects[o].verdict_count; k++) {
            const struct pl_verdict *v = &j.report->objects[o].verdicts[k];
            if (!row_exists(v->row))
                complain(i, words, "%s: no row %s", v->type, v->row);
            if (v->status == PL_STATUS_NONE)
                complain(i, words, "%s without status", v->type);
            for (size_t h = 0; h < v->also_held_count; h++) {
                if (!row_exists(v->also_held[h]) || strcmp(v->also_held[h], "Ladder/passed") == 0)
                    complain(i, words, "%s: no row %s held", v->type, v->also_held[h]);
                if (strcmp(v->also_held[h], v->row) == 0)
                    complain(i, words, "%s: %s held besides itself", v->type, v->row);
                for (size_t g = 0; g < h; g++) {
                    if (strcmp(v->also_held[h], v->also_held[g]) == 0)
                        complain(i, words, "%s: %s is listed twice", v->type, v->also_held[h]);
                }
            }
        }
    }
    for (size_t k = 0; k < j.report->remediation_count; k++) {
        if (!row_exists(j.report->remediation[k].row))
            complain(i, words, "no row %s", j.report->remediation[k].row);
    }
    judged_release(&j);
}

static bool to_be_remediated(const struct world_machine *m)
{
    bool unhealthy = false, asked = false;

    for (size_t i = 0; i < m->conditions.count; i++) {
        const struct world_condition *c = &m->conditions.items[i];
        bool is_false = pl__str_equal(c->status, PL_STR("False"));
        unhealthy |= is_false && pl__str_equal(c->type, PL_STR("HealthCheckSucceeded"));
        asked |= is_false && pl__str_equal(c->type, PL_STR("OwnerRemediated"));
    }
    return unhealthy && asked;
}

/* Whether the remediation of a Machine costs etcd its quorum. */
static void quorum_check(struct world *w, const struct pl_report *report,
                         const struct pl_remediation *r, uint64_t i, const char *words)
{
    const struct world_machine *m = world_machine(w, r->deleted);
    uint32_t target = 0, healthy = 0;

    for (size_t n = 0; n < w->member_count; n++) {
        if (m->node.len && pl__str_equal(w->members[n].name, m->node))
            continue;
        const struct world_machine *host = machine_on(w, w->members[n].name);
        target++;
        healthy +=
            host && machine_status(report, host->name, "EtcdMemberHealthy") == PL_STATUS_TRUE;
    }
    if (healthy < target / 2 + 1)
        complain(i, words, "quorum lost: %u of %u", healthy, target);
    if (!r->quorum_known || r->healthy_after < r->quorum_after || r->voters_after != target ||
        r->healthy_after != healthy)
        complain(i, words, "quorum of the report: %u of %u", r->healthy_after, r->voters_after);
    if (pl__str_equal(r->leadership_forwarded_to, r->deleted) || !r->leadership_forwarded_to.len)
        complain(i, words, "leadership to \"%.*s\"", PL_STR_ARG(r->leadership_forwarded_to));
}

static void deletion_check(struct world *w, const struct pl_report *report,
                           const struct pl_remediation *r, uint64_t i, const char *words)
{
    const struct world_machine *m = world_machine(w, r->deleted);

    if (!m || m->deleted_ms || m->role != WORLD_CONTROL_PLANE || !to_be_remediated(m)) {
        complain(i, words, "%.*s is not to be remediated", PL_STR_ARG(r->deleted));
        return;
    }
    if (w->kcp_deleted_ms)
        complain(i, words, "remediated while the control plane is deleted");
    if (!r->requeue || !r->in_progress || strcmp(r->row, "Remediation/9") != 0 ||
        !pl__str_equal(r->in_progress_machine, r->deleted))
        complain(i, words, "deleted without a record of it");
    if (w->not_initialized)
        return;
    for (size_t n = 0; n < w->machine_count; n++) {
        if (w->machines[n].role == WORLD_CONTROL_PLANE && w->machines[n].deleted_ms)
            complain(i, words, "a second Machine on its way out");
    }
    if (!w->external_etcd)
        quorum_check(w, report, r, i, words);
}

/* Remediation deletes a Machine that asks for it, never a second one, never at the cost of quorum. */
static void remediation_is_safe(struct world *w, uint64_t i, const char *words,
                                enum pl_profile profile)
{
    struct judged j = judge(w, profile, false, 0);
    const struct pl_remediation *r = remediation_of(j.report);

    if (r && r->deleted.len)
        deletion_check(w, j.report, r, i, words);
    judged_release(&j);
}

/* An orderly deletion takes one thing at a time. */
static void deletion_is_orderly(struct world *w, uint64_t i, const char *words,
                                enum pl_profile profile)
{
    struct judged j = judge(w, profile, false, 0);
    const struct pl_verdict *deleting = kcp_verdict(j.report, "Deleting");
    bool waits = false, others = w->pool_count > 0;
    size_t machines = 0;

    for (size_t k = 0; k < w->machine_count; k++) {
        const struct world_machine *m = &w->machines[k];
        waits |= m->role == WORLD_CONTROL_PLANE && m->deleted_ms;
        others |= m->role != WORLD_CONTROL_PLANE;
        machines += m->role == WORLD_CONTROL_PLANE;
    }
    if (!w->kcp_deleted_ms && (j.report->deletion_count || deleting->status != PL_STATUS_FALSE))
        complain(i, words, "deletes what is not to be deleted");
    if (w->kcp_deleted_ms && deleting && deleting->status != PL_STATUS_TRUE)
        complain(i, words, "deleting, but the condition says %s", pl_status_name(deleting->status));
    if (w->kcp_deleted_ms &&
        (remediation_of(j.report) ||
         object_find(j.report, "KubeadmControlPlane", PL_STR("cp"))->requeue_with_error))
        complain(i, words, "remediation or an error while deleting");
    for (size_t k = 0; k < j.report->deletion_count; k++) {
        const struct pl_deletion *d = &j.report->deletion[k];
        size_t steps = d->deleted_count + (d->member_removed.len > 0);
        if (!deleting || !pl__str_equal(deleting->reason, pl__str(d->phase)))
            complain(i, words, "phase %s is not the condition's reason", d->phase);
        if (others && steps)
            complain(i, words, "workers are left");
        for (size_t n = 0; n < d->deleted_count; n++) {
            const struct world_machine *m = world_machine(w, d->deleted[n]);
            if (!m || m->deleted_ms || m->role != WORLD_CONTROL_PLANE)
                complain(i, words, "deletes %.*s", PL_STR_ARG(d->deleted[n]));
        }
        if (profile != PL_PROFILE_TABLES)
            continue;
        if (steps > 1 || (waits && steps))
            complain(i, words, "%zu steps at once", steps + waits);
        const struct world_member *member = world_member(w, d->member_removed);
        if (d->member_removed.len && (!member || machines < 2 || (member->id == w->leader)))
            complain(i, words, "removes member %.*s", PL_STR_ARG(d->member_removed));
    }
    judged_release(&j);
}

/* What-if answers for every Machine, and its arithmetic adds up. */
static void what_if_adds_up(struct world *w, uint64_t i, const char *words, enum pl_profile profile)
{
    struct judged j = judge(w, profile, false, 0);

    for (size_t k = 0; k < w->machine_count; k++) {
        const struct pl_what_if *a = NULL;
        struct pl_str name = pl__str_copy(&w->arena, w->machines[k].name);
        int got = pl_what_if_remove(j.ctx, name.ptr, &a);
        if ((got == 0) != (w->machines[k].role == WORLD_CONTROL_PLANE)) {
            complain(i, words, "what-if %s: %s", name.ptr, pl_context_error(j.ctx));
            continue;
        }
        if (got < 0 || !a->etcd_managed || a->etcd_unknown.len)
            continue;
        if (a->before.members != w->member_count || a->after.members > a->before.members ||
            a->after.voters > a->before.voters || a->after.healthy > a->before.healthy ||
            a->before.quorum != a->before.voters / 2 + 1 ||
            a->keeps_quorum != (a->after.healthy >= a->after.quorum))
            complain(i, words, "what-if %s: the numbers do not add up", name.ptr);
    }
    judged_release(&j);
}

/* A document cut short is an error, wherever it is cut. */
static void prefixes_are_errors(struct world *w, uint64_t i, const char *words,
                                enum pl_profile profile)
{
    struct prng r = { seed ^ i };

    if (i % 16)
        return;
    struct pl_str json = world_text(w, JSON_COMPACT, 0), yaml = world_text(w, JSON_AS_YAML, 0);
    struct pl_context *ctx = pl_context_new(&(struct pl_options){ .profile = profile });
    for (size_t k = 0; k < 60; k++) {
        size_t len = k < 8 ? k : k < 16 ? json.len - (k - 7) : prng_below(&r, json.len);
        struct judged j = judge_text(ctx, (struct pl_str){ json.ptr, len });
        if (j.got != (len ? -1 : 0))
            complain(i, words, "%zu of %zu bytes were taken", len, json.len);
        if (j.got < 0 && !pl_context_error(ctx)[0])
            complain(i, words, "an error without text");
        free(j.copy);
        pl_context_clear(ctx);
    }
    for (size_t k = 0; k < 6; k++) { /* half a YAML document can be whole: it must only not crash */
        struct judged j = judge_text(ctx, (struct pl_str){ yaml.ptr, prng_below(&r, yaml.len) });
        free(j.copy);
        pl_context_clear(ctx);
    }
    pl_context_free(ctx);
}

/* --- running ------------------------------------------------------------------------------------- */

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    uint64_t value;

    return text && pl__str_to_u64(pl__str(text), &value) ? value : otherwise;
}

static void run(const char *name, property_fn *property)
{
    struct world *w = world_new();
    char words[TEXT_MAX];

    CASE("%s", name)
    complaints = 0;
    for (uint64_t i = 0; i < count && complaints < COMPLAINTS_MAX; i++) {
        for (int profile = 0; profile < PL_PROFILE_COUNT; profile++) {
            world_random(w, i, words, sizeof words);
            property(w, i, words, (enum pl_profile)profile);
        }
    }
    world_free(w);
}

/* That the worlds are worth the trouble: all can be judged, and rows of all tables are met. False: not
 * even the first, and the rest makes no sense. */
static bool worlds_vary(void)
{
    struct world *w = world_new();
    char words[TEXT_MAX];
    static const char *const rows[] = {
        "EtcdClusterHealthy/0",
        "EtcdClusterHealthy/2",
        "EtcdClusterHealthy/3",
        "EtcdClusterHealthy/4",
        "EtcdClusterHealthy/5",
        "EtcdClusterHealthy/6",
        "EtcdClusterHealthy/7",
        "EtcdClusterHealthy/8",
        "Ladder/L00",
        "Ladder/L0",
        "Ladder/L1",
        "Ladder/L2",
        "Ladder/L3",
        "Ladder/L4",
        "Ladder/L5",
        "ControlPlaneComponentsHealthy/7",
        "ControlPlaneComponentsHealthy/11",
        "Deleting/2",
        "Remediating/3",
        "Remediation/9",
        "Remediation/8",
        "Remediation/7",
        "Remediation/6",
        "Remediation/5",
        "Remediation/4",
        "MachineDeployment.Remediating/3",
    };
    enum { ROWS = sizeof rows / sizeof rows[0] };
    bool met[ROWS] = { false };
    char quoted[80];

    CASE("every world can be judged")
    for (uint64_t i = 0; i < count; i++) {
        world_random(w, i, words, sizeof words);
        struct judged j = judge(w, PL_PROFILE_TABLES, false, 0);
        if (j.got != 1)
            complain(i, words, "%s", pl_context_error(j.ctx));
        for (size_t k = 0; k < ROWS && j.got == 1; k++) {
            snprintf(quoted, sizeof quoted, "\"row\":\"%s\"", rows[k]);
            met[k] |= strstr(j.json.ptr, quoted) != NULL;
        }
        judged_release(&j);
    }
    world_free(w);
    if (complaints)
        return false;
    for (size_t k = 0; k < ROWS && count >= COUNT_DEFAULT; k++) {
        CASE("random worlds meet %s", rows[k])
        CHECK(met[k]);
    }
    return true;
}

int main(void)
{
    seed = number_from("PROP_SEED", seed_default);
    count = number_from("PROP_COUNT", COUNT_DEFAULT);
    printf("PROP_SEED=%" PRIu64 " PROP_COUNT=%" PRIu64 "\n", seed, count);
    if (!worlds_vary()) {
        spare_release();
        return test_end("properties");
    }
    run("the order of objects changes nothing", order_changes_nothing);
    run("same input, same bytes", same_input_same_bytes);
    run("YAML says the same as JSON", yaml_says_the_same);
    run("judging again changes nothing", judging_again_changes_nothing);
    run("transitions follow the status", transitions_follow_status);
    run("False before Unknown before True", status_precedence);
    run("both profiles agree on health", profiles_agree_on_health);
    run("explaining changes nothing", explaining_changes_nothing);
    run("rows that are named exist", rows_exist);
    run("remediation is safe", remediation_is_safe);
    run("deletion is orderly", deletion_is_orderly);
    run("what-if adds up", what_if_adds_up);
    run("a document cut short is an error", prefixes_are_errors);
    spare_release();
    return test_end("properties");
}
