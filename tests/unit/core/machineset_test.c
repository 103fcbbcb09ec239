/* Remediation of a MachineDeployment's Machines: who is deleted, who waits and why, in which order of calls.
 *
 * A case is a world in a few words of C; what came out is one line a Machine, in the order of remediation:
 * "a=6 MachineDeleting". Messages are compared in full where they are built (preflight). */
#include "test.h"

#include "core/evaluate.h"
#include "core/plan.h"

static struct pl_arena arena;

/* --- the world ---------------------------------------------------------------------------------- */

/* A Machine: "a" of set 1, created at minute `age` (the higher, the newer). */
struct machine {
    const char *name;
    int set, age;
    const char *health, *owner; /* status of HealthCheckSucceeded; reason of OwnerRemediated */
    bool deleting, asked_for, paused;
    const char *message; /* of OwnerRemediated */
};

struct scene {
    const char *max_in_flight; /* JSON */
    const char *replicas;      /* JSON */
    const char *revision;      /* of the MachineDeployment; sets have "1", "2" */
    const char *topology, *upgrade_step, *version, *status_version, *set_version, *config_kind;
    const char *skip;
    const char *control_plane_kind; /* "": none; NULL: KubeadmControlPlane */
    bool no_kcp, cluster_paused, set_deleting, set_paused, md_paused, no_cluster, kcp_elsewhere;
    struct machine machines[8];
};

static void condition_put(struct pl_buf *b, const char *type, const char *status,
                          const char *reason, const char *message)
{
    pl__buf_printf(b,
                   "%s{\"type\":\"%s\",\"status\":\"%s\",\"reason\":\"%s\",\"message\":\"%s\","
                   "\"lastTransitionTime\":\"2026-11-15T01:00:00Z\"}",
                   b->data[b->len - 1] == '[' ? "" : ",", type, status, reason, message);
}

static void machine_put(struct pl_buf *b, const struct machine *m)
{
    pl__buf_printf(
        b,
        ",{\"apiVersion\":\"cluster.x-k8s.io/v1beta2\",\"kind\":\"Machine\",\"metadata\":"
        "{\"name\":\"%s\",\"namespace\":\"default\",\"uid\":\"uid-%s\","
        "\"creationTimestamp\":\"2026-11-15T00:%02d:00Z\",\"labels\":{"
        "\"cluster.x-k8s.io/cluster-name\":\"alpha\"},\"annotations\":{%s%s%s},"
        "\"ownerReferences\":[{\"kind\":\"MachineSet\",\"name\":\"set-%d\",\"controller\":"
        "true}]",
        m->name, m->name, m->age, m->asked_for ? "\"cluster.x-k8s.io/remediate-machine\":\"\"" : "",
        m->asked_for && m->paused ? "," : "", m->paused ? "\"cluster.x-k8s.io/paused\":\"\"" : "",
        m->set ? m->set : 1);
    if (m->deleting)
        pl__buf_add_lit(b, ",\"deletionTimestamp\":\"2026-11-15T01:30:00Z\"");
    pl__buf_add_lit(b, "},\"status\":{\"conditions\":[");
    condition_put(b, "HealthCheckSucceeded", m->health ? m->health : "False", "R", "");
    if (!m->owner || *m->owner)
        condition_put(b, "OwnerRemediated", "False", m->owner ? m->owner : "WaitingForRemediation",
                      m->message ? m->message : "");
    pl__buf_add_lit(b, "]}}");
}

static void set_put(struct pl_buf *b, const struct scene *s, int number)
{
    pl__buf_printf(b,
                   ",{\"apiVersion\":\"cluster.x-k8s.io/v1beta2\",\"kind\":\"MachineSet\","
                   "\"metadata\":{\"name\":\"set-%d\",\"namespace\":\"default\",\"annotations\":{"
                   "\"machinedeployment.clusters.x-k8s.io/revision\":\"%d\"",
                   number, number);
    if (s->skip)
        pl__buf_printf(b, ",\"machineset.cluster.x-k8s.io/skip-preflight-checks\":\"%s\"", s->skip);
    if (s->set_paused)
        pl__buf_add_lit(b, ",\"cluster.x-k8s.io/paused\":\"\"");
    pl__buf_add_char(b, '}');
    if (s->set_deleting)
        pl__buf_add_lit(b, ",\"deletionTimestamp\":\"2026-11-15T01:30:00Z\"");
    pl__buf_printf(b, ",\"ownerReferences\":[{\"kind\":\"MachineDeployment\",\"name\":\"md\","
                      "\"controller\":true}]},\"spec\":{\"template\":{\"spec\":{");
    if (s->set_version)
        pl__buf_printf(b, "\"version\":\"%s\",", s->set_version);
    pl__buf_printf(b, "\"bootstrap\":{\"configRef\":{\"kind\":\"%s\"}}}}}}",
                   s->config_kind ? s->config_kind : "KubeadmConfigTemplate");
}

static void cluster_put(struct pl_buf *b, const struct scene *s)
{
    pl__buf_add_lit(b, ",{\"apiVersion\":\"cluster.x-k8s.io/v1beta2\",\"kind\":\"Cluster\","
                       "\"metadata\":{\"name\":\"alpha\",\"namespace\":\"default\"");
    if (s->upgrade_step)
        pl__buf_printf(b,
                       ",\"annotations\":{\"topology.internal.cluster.x-k8s.io/upgrade-step\":"
                       "\"%s\"}",
                       s->upgrade_step);
    pl__buf_printf(b, "},\"spec\":{\"paused\":%s", s->cluster_paused ? "true" : "false");
    if (s->topology)
        pl__buf_printf(b, ",\"topology\":{\"version\":\"%s\"}", s->topology);
    if (!s->control_plane_kind || *s->control_plane_kind)
        pl__buf_printf(b, ",\"controlPlaneRef\":{\"kind\":\"%s\",\"name\":\"cp\"}",
                       s->control_plane_kind ? s->control_plane_kind : "KubeadmControlPlane");
    pl__buf_add_lit(b, "}}");
}

static struct pl_str scene_text(const struct scene *s)
{
    struct pl_buf b;

    pl__buf_init(&b, &arena, SIZE_MAX);
    pl__buf_add_lit(&b, "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[");
    pl__buf_printf(&b,
                   "{\"apiVersion\":\"cluster.x-k8s.io/v1beta2\",\"kind\":\"MachineDeployment\","
                   "\"metadata\":{\"name\":\"md\",\"namespace\":\"default\",\"labels\":{"
                   "\"cluster.x-k8s.io/cluster-name\":\"alpha\"},\"annotations\":{%s"
                   "\"machinedeployment.clusters.x-k8s.io/revision\":\"%s\"}},\"spec\":{\"x\":0",
                   s->md_paused ? "\"cluster.x-k8s.io/paused\":\"\"," : "",
                   s->revision ? s->revision : "1");
    if (s->replicas)
        pl__buf_printf(&b, ",\"replicas\":%s", s->replicas);
    if (s->max_in_flight)
        pl__buf_printf(&b, ",\"remediation\":{\"maxInFlight\":%s}", s->max_in_flight);
    pl__buf_add_lit(&b, "}}");
    set_put(&b, s, 1);
    set_put(&b, s, 2);
    if (!s->no_cluster)
        cluster_put(&b, s);
    if (!s->no_kcp)
        pl__buf_printf(
            &b,
            ",{\"apiVersion\":\"controlplane.cluster.x-k8s.io/v1beta2\",\"kind\":"
            "\"KubeadmControlPlane\",\"metadata\":{\"name\":\"cp\",\"namespace\":\"%s\"},"
            "\"spec\":{\"version\":\"%s\"},\"status\":{\"version\":\"%s\"}}",
            s->kcp_elsewhere ? "elsewhere" : "default", s->version ? s->version : "v1.33.1",
            s->status_version ? s->status_version : "v1.33.1");
    for (size_t i = 0; i < 8 && s->machines[i].name; i++)
        machine_put(&b, &s->machines[i]);
    pl__buf_add_lit(&b, "]}");
    return pl__buf_str(&b);
}

struct judged {
    const struct pl_report *report;
    struct pl_plans plans;
};

static struct judged judge(const struct scene *scene)
{
    struct pl_snapshot *s = PL_NEW(&arena, struct pl_snapshot, 1);
    static const struct pl_report nothing; /* after a failure, so that the checks can go on */
    struct judged out = { .report = &nothing };
    struct pl_evaluate_options options = { .plans = &out.plans };
    struct pl_error *err = NULL;
    struct pl_json j;

    s->objects.count_max = 1000;
    pl__json_init(&j, scene_text(scene), PL_STR("scene"), &arena, 0, &err);
    if (pl__document_read(&j, DOCUMENT_OBJECTS, s) < 0 ||
        pl__snapshot_settle(s, &arena, 1794708000000, 0, &err) < 0 ||
        pl__evaluate(s, options, &arena, &out.report, &err) < 0)
        test_fail(__FILE__, __LINE__, "%.*s", PL_STR_ARG(pl__error_text(&arena, err)));
    return out;
}

/* "b=6 a=4": which row decided on whom, in the order of remediation. */
static struct pl_str rows_of(const struct pl_report *r)
{
    struct pl_buf b;

    pl__buf_init(&b, &arena, SIZE_MAX);
    for (size_t i = 0; i < r->machine_set_count; i++) {
        const struct pl_machine_set_step *s = &r->machine_sets[i];
        pl__buf_printf(&b, "%s%.*s=%s", i ? " " : "", PL_STR_ARG(s->machine),
                       strrchr(s->row, '/') + 1);
        CHECK_INT(s->deleted, strcmp(strrchr(s->row, '/'), "/6") == 0);
        CHECK_INT(s->recovered, strcmp(strrchr(s->row, '/'), "/2") == 0);
    }
    return pl__buf_str(&b);
}

/* --- who ---------------------------------------------------------------------------------------- */

static void test_who(void)
{
    static const struct {
        const char *name, *want;
        struct scene scene;
    } rows[] = {
        { "nobody", "", { .machines = { { "a", .health = "True", .owner = "" } } } },
        { "unhealthy, but not marked", "", { .machines = { { "a", .owner = "" } } } },
        { "marked, health not known", "", { .machines = { { "a", .health = "Unknown" } } } },
        { "already deleting", "", { .machines = { { "a", .deleting = true } } } },
        { "healthy again", "a=2", { .machines = { { "a", .health = "True" } } } },
        { "healthy again, but deleting",
          "",
          { .machines = { { "a", .health = "True", .deleting = true } } } },
        { "one", "a=6", { .machines = { { "a" } } } },
        { "without a limit all of them",
          "a=6 b=6 c=6",
          { .machines = { { "a" }, { "b" }, { "c" } } } },
        { "the newest first",
          "c=6 b=6 a=6",
          { .machines = { { "a", .age = 1 }, { "b", .age = 2 }, { "c", .age = 3 } } } },
        { "then by name",
          "b=6 a=6 c=6",
          { .machines = { { "c", .age = 1 }, { "a", .age = 1 }, { "b", .age = 2 } } } },
        { "who was asked for before all others",
          "a=6 c=6 b=6",
          { .machines = { { "a", .age = 1, .asked_for = true },
                          { "b", .age = 2 },
                          { "c", .age = 3 } } } },
        { "a set that is going", "a=1", { .set_deleting = true, .machines = { { "a" } } } },
        { "a set that is paused", "a=1", { .set_paused = true, .machines = { { "a" } } } },
        { "no Cluster", "a=1", { .no_cluster = true, .machines = { { "a" } } } },
        { "an old revision", "a=3", { .revision = "2", .machines = { { "a" } } } },
        { "an old revision beside the current one",
          "a=3 b=6",
          { .revision = "2", .machines = { { "a" }, { "b", .set = 2 } } } },
        { "an old revision: who is healthy again is still unmarked",
          "a=2",
          { .revision = "2", .machines = { { "a", .health = "True" } } } },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CASE("who: %s", rows[i].name)
        CHECK_STR(rows_of(judge(&rows[i].scene).report), rows[i].want);
    }
}

/* --- how many ----------------------------------------------------------------------------------- */

static void test_how_many(void)
{
#define THREE             \
    {                     \
        { "a" }, { "b" }, \
        {                 \
            "c"           \
        }                 \
    }
    static const struct {
        const char *max_in_flight, *replicas, *want;
    } rows[] = {
        { "1", "3", "a=6 b=4 c=4" },
        { "2", "3", "a=6 b=6 c=4" },
        { "3", "3", "a=6 b=6 c=6" },
        { "99", "3", "a=6 b=6 c=6" },
        { "0", "3", "a=4 b=4 c=4" },
        { "-1", "3", "a=4 b=4 c=4" },
        { "\"34%\"", "3", "a=6 b=6 c=4" }, /* 1.02: rounded up */
        { "\"33%\"", "3", "a=6 b=4 c=4" },
        { "\"1%\"", "3", "a=6 b=4 c=4" },
        { "\"0%\"", "3", "a=4 b=4 c=4" },
        { "\"100%\"", "3", "a=6 b=6 c=6" },
        { "\"200%\"", "1", "a=6 b=6 c=4" },
        { "\"50%\"", "4", "a=6 b=6 c=4" },
        { "\"50%\"", "0", "a=4 b=4 c=4" },
        { "\"50%\"", NULL, "a=6 b=4 c=4" }, /* of one */
        { "\"3\"", "3", "a=4 b=4 c=4" },
        { "\"x%\"", "3", "a=4 b=4 c=4" },
        { "\"%\"", "3", "a=4 b=4 c=4" },
        { "\"-5%\"", "3", "a=4 b=4 c=4" },
        { "\"1.5%\"", "3", "a=4 b=4 c=4" },
        { "\"99999999999%\"", "3", "a=4 b=4 c=4" },
        { "\"2147483647%\"", "3", "a=6 b=6 c=6" },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CASE("maxInFlight %s of %s", rows[i].max_in_flight,
             rows[i].replicas ? rows[i].replicas : "unset")
        struct scene scene = { .max_in_flight = rows[i].max_in_flight,
                               .replicas = rows[i].replicas,
                               .machines = THREE };
        CHECK_STR(rows_of(judge(&scene).report), rows[i].want);
    }

    CASE("those on their way out take room")
    struct scene busy = {
        .max_in_flight = "2",
        .machines = { { "a" }, { "b" }, { "x", .owner = "MachineDeleting", .deleting = true } }
    };
    CHECK_STR(rows_of(judge(&busy).report), "a=6 b=4");

    CASE("not those that go for another reason, nor those that were only marked")
    busy.machines[2].owner = "CannotBeRemediated";
    CHECK_STR(rows_of(judge(&busy).report), "a=6 b=6");
    busy.machines[2] = (struct machine){ "x", .owner = "MachineDeleting" };
    CHECK_STR(rows_of(judge(&busy).report), "a=6 b=6 x=4");

    CASE("nor those of another set, nor who is healthy again")
    busy.machines[2] =
        (struct machine){ "x", .set = 2, .owner = "MachineDeleting", .deleting = true };
    CHECK_STR(rows_of(judge(&busy).report), "a=6 b=6");
    busy.machines[2] = (struct machine){ "0", .health = "True" };
    CHECK_STR(rows_of(judge(&busy).report), "0=2 a=6 b=6");

    CASE("more on their way out than allowed")
    busy.max_in_flight = "1";
    busy.machines[2] = (struct machine){ "x", .owner = "MachineDeleting", .deleting = true };
    busy.machines[3] = (struct machine){ "y", .owner = "MachineDeleting", .deleting = true };
    CHECK_STR(rows_of(judge(&busy).report), "a=4 b=4");

    CASE("the limit is told as it was written")
    static const char *const written[][2] = { { "0", "0" }, { "\"0%\"", "0%" } };
    for (int i = 0; i < 2; i++) {
        struct scene scene = { .max_in_flight = written[i][0], .machines = { { "a" } } };
        const struct pl_report *r = judge(&scene).report;
        struct pl_str want =
            pl__str_format(&arena,
                           "Waiting because there are already too many remediations in progress "
                           "(spec.strategy.remediation.maxInFlight is %s)",
                           written[i][1]);
        CHECK_STR(r->machine_sets[0].message, want.ptr);
        CHECK_STR(r->machine_sets[0].reason, "RemediationDeferred");
    }
}

/* --- preflight ---------------------------------------------------------------------------------- */

static void test_preflight(void)
{
#define STABLE(words) \
    "* KubeadmControlPlane default/cp " words " (\"ControlPlaneIsStable\" preflight check failed)"
#define OLDER                                                                                   \
    "* MachineSet version (1.29.0) and ControlPlane version (1.33.1) do not conform to the "    \
    "kubernetes version skew policy as MachineSet version is more than 3 minor versions older " \
    "than the ControlPlane version (\"KubernetesVersionSkew\" preflight check failed)"
#define KUBEADM(version)                                                                      \
    "* MachineSet version (" version ") and ControlPlane version (1.33.1) do not conform to " \
    "kubeadm version skew policy as kubeadm only supports joining with the same major+minor " \
    "version as the control plane (\"KubeadmVersionSkew\" preflight check failed)"
#define PROPAGATE                                                                                \
    "* MachineSet version (v1.33.0) is not yet the same as the ControlPlane version (v1.33.1), " \
    "waiting for version to be propagated to the MachineSet (\"ControlPlaneVersionSkew\" "       \
    "preflight check failed)"
    static const struct {
        const char *name, *want; /* "": it passes */
        struct scene scene;
    } rows[] = {
        { "all is well", "", { .set_version = "v1.33.1" } },
        { "no control plane", "", { .control_plane_kind = "", .no_kcp = true } },
        { "a control plane of another kind", "", { .control_plane_kind = "EKS", .no_kcp = true } },
        { "a control plane that is not there", STABLE("does not exist"), { .no_kcp = true } },
        { "one of that name elsewhere", STABLE("does not exist"), { .kcp_elsewhere = true } },
        { "a control plane without version", "", { .version = "", .status_version = "" } },
        { "a version of no kind",
          STABLE("has a spec.version that cannot be read"),
          { .version = "new" } },
        { "provisioning", STABLE("is provisioning"), { .status_version = "" } },
        { "a status of no kind",
          STABLE("has a status.version that cannot be read"),
          { .status_version = "old" } },
        { "upgrading", STABLE("is upgrading"), { .status_version = "v1.32.9" } },
        { "upgrading by a patch", STABLE("is upgrading"), { .status_version = "v1.33.0" } },
        { "upgrading from a prerelease",
          STABLE("is upgrading"),
          { .status_version = "v1.33.1-rc.1" } },
        { "upgrading to another build",
          STABLE("is upgrading"),
          { .version = "v1.33.1+abc", .status_version = "v1.33.1+abd" } },
        { "the same build", "", { .version = "v1.33.1+abc", .status_version = "v1.33.1+abc" } },
        { "ahead of its spec", "", { .status_version = "v1.34.0" } },
        { "the topology wants more",
          STABLE("has a pending version upgrade to v1.34.0"),
          { .topology = "v1.34.0" } },
        { "the topology is satisfied", "", { .topology = "v1.33.1" } },
        { "the topology goes step by step: this is the step",
          "",
          { .topology = "v1.35.0", .upgrade_step = "v1.33.1" } },
        { "the topology goes step by step: the next is due",
          STABLE("has a pending version upgrade to v1.34.0"),
          { .topology = "v1.35.0", .upgrade_step = "v1.34.0" } },
        { "a set that is three minor versions behind, without kubeadm",
          "",
          { .set_version = "v1.30.0", .config_kind = "X" } },
        { "a set that is four behind, without kubeadm",
          OLDER,
          { .set_version = "v1.29.0", .config_kind = "X" } },
        { "a set that is ahead",
          "* MachineSet version (1.34.0) and ControlPlane version (1.33.1) do not conform to the "
          "kubernetes version skew policy as MachineSet version is higher than ControlPlane "
          "version "
          "(\"KubernetesVersionSkew\" preflight check failed)\n" KUBEADM("1.34.0"),
          { .set_version = "v1.34.0" } },
        { "kubeadm wants the same minor version",
          KUBEADM("1.32.0-rc.1+b"),
          { .set_version = "v1.32.0-rc.1+b" } },
        { "a topology's set must have the very version",
          PROPAGATE,
          { .topology = "v1.33.1", .set_version = "v1.33.0" } },
        { "without a topology it need not", "", { .set_version = "v1.33.0" } },
        { "several at once",
          STABLE("is provisioning") "\n" OLDER "\n" KUBEADM("1.29.0"),
          { .status_version = "", .set_version = "v1.29.0" } },
        { "a set's version of no kind",
          "* MachineSet default/set-1 has a version that cannot be read "
          "(\"KubernetesVersionSkew\" preflight check failed)",
          { .set_version = "old" } },
        { "all checks are switched off", "", { .skip = "All", .status_version = "" } },
        { "all of them, among others", "", { .skip = "X, All ,Y", .no_kcp = true } },
        { "one check is switched off",
          "",
          { .skip = "ControlPlaneIsStable", .status_version = "" } },
        { "several are",
          OLDER,
          { .skip = " ControlPlaneIsStable,KubeadmVersionSkew",
            .status_version = "",
            .set_version = "v1.29.0" } },
        { "and the others",
          KUBEADM("1.29.0"),
          { .skip = "KubernetesVersionSkew", .set_version = "v1.29.0" } },
        { "and the topology's",
          "",
          { .skip = "ControlPlaneVersionSkew", .topology = "v1.33.1", .set_version = "v1.33.0" } },
        { "a check that nobody knows",
          STABLE("is provisioning"),
          { .skip = "ControlPlaneIsStableToo", .status_version = "" } },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CASE("preflight: %s", rows[i].name)
        struct scene scene = rows[i].scene;
        scene.machines[0] = (struct machine){ "a" };
        const struct pl_report *r = judge(&scene).report;
        CHECK_INT(r->machine_set_count, 1);
        if (r->machine_set_count != 1)
            continue;
        const struct pl_machine_set_step *s = &r->machine_sets[0];
        bool passes = *rows[i].want == '\0';
        CHECK_STR(s->message, passes ? "Machine is deleting" : rows[i].want);
        CHECK_STR(s->reason, passes ? "MachineDeleting" : "RemediationDeferred");
        CHECK_INT(s->requeue_after_ms, passes ? 0 : 15000);
        CHECK_STR(pl__str(s->row), passes ? "MachineSetRemediation/6" : "MachineSetRemediation/5");
    }

    CASE("preflight is for those that have room; the rest waits for room")
    struct scene scene = { .status_version = "", .max_in_flight = "1", .machines = THREE };
    CHECK_STR(rows_of(judge(&scene).report), "a=5 b=4 c=4");
}

/* --- the next call ------------------------------------------------------------------------------ */

static const struct pl_plan *plan_of(const struct scene *scene)
{
    struct judged j = judge(scene);

    CHECK_INT(j.plans.deployment_count, 1);
    return &j.plans.deployments[0];
}

static void test_plan(void)
{
    static const char deleting[] = "Machine is deleting";
    const struct pl_plan *p;

    CASE("nothing to do")
    p = plan_of(&(struct scene){ .machines = { { "a", .owner = "" } } });
    CHECK_INT(p->step.kind, STEP_NONE);
    CHECK_STR(p->shown.step, "");
    CHECK_STR(p->shown.name, "md");
    CHECK_INT(p->shown.note_count, 0);
    CHECK(!p->shown.paused);

    CASE("the mark first")
    p = plan_of(&(struct scene){ .machines = { { "a" } } });
    CHECK_INT(p->step.kind, STEP_SET_OWNER_REMEDIATED);
    CHECK_STR(p->step.machine->meta.name, "a");
    CHECK_STR(p->step.reason, "MachineDeleting");
    CHECK_STR(p->step.message, deleting);
    CHECK_STR(p->shown.step, "set OwnerRemediated of Machine a to False, MachineDeleting");

    CASE("the deletion second")
    p = plan_of(&(struct scene){
        .machines = { { "a", .owner = "MachineDeleting", .message = deleting } } });
    CHECK_INT(p->step.kind, STEP_DELETE_MACHINE);
    CHECK_STR(p->step.machine->meta.name, "a");
    CHECK_STR(p->shown.step, "delete Machine a");

    CASE("a mark that says nearly the same is written again")
    p = plan_of(&(struct scene){ .machines = { { "a", .owner = "MachineDeleting" } } });
    CHECK_INT(p->step.kind, STEP_SET_OWNER_REMEDIATED);

    CASE("all marks before any deletion, the most urgent first")
    p = plan_of(&(struct scene){
        .machines = { { "a", .age = 3, .owner = "MachineDeleting", .message = deleting },
                      { "b", .age = 2 },
                      { "c", .age = 1, .health = "True" } } });
    CHECK_INT(p->step.kind, STEP_SET_OWNER_REMEDIATED);
    CHECK_STR(p->step.machine->meta.name, "b");

    CASE("a mark that is not true any more is removed")
    p = plan_of(&(struct scene){ .machines = { { "a", .health = "True" } } });
    CHECK_INT(p->step.kind, STEP_CLEAR_OWNER_REMEDIATED);
    CHECK_STR(p->shown.step, "remove OwnerRemediated from Machine a, which is healthy again");

    CASE("one at a time, of several that may go")
    p = plan_of(&(struct scene){
        .machines = { { "a", .age = 1, .owner = "MachineDeleting", .message = deleting },
                      { "b", .age = 2, .owner = "MachineDeleting", .message = deleting } } });
    CHECK_INT(p->step.kind, STEP_DELETE_MACHINE);
    CHECK_STR(p->step.machine->meta.name, "b");

    CASE("marked for deletion before a restart, and no room any more: it waits, and says so")
    p = plan_of(&(struct scene){
        .max_in_flight = "0",
        .machines = { { "a", .owner = "MachineDeleting", .message = deleting } } });
    CHECK_INT(p->step.kind, STEP_SET_OWNER_REMEDIATED);
    CHECK_STR(p->step.reason, "RemediationDeferred");

    CASE("a refusal that is written: nothing to do, a note, and when to look again")
    p = plan_of(&(struct scene){
        .status_version = "",
        .machines = { { "a", .owner = "RemediationDeferred",
                        .message = "* KubeadmControlPlane default/cp is provisioning "
                                   "(\\\"ControlPlaneIsStable\\\" preflight check failed)" } } });
    CHECK_INT(p->step.kind, STEP_NONE);
    CHECK_INT(p->shown.retry_after_ms, 15000);
    CHECK_INT(p->shown.note_count, 1);
    CHECK_STR(p->shown.notes[0].machine, "a");
    CHECK_STR(pl__str(p->shown.notes[0].reason), "RemediationDeferred");
    CHECK_STR(p->shown.notes[0].text,
              "not remediating Machine a: * KubeadmControlPlane default/cp is provisioning "
              "(\"ControlPlaneIsStable\" preflight check failed)");

    CASE("a paused Machine is passed over")
    p = plan_of(
        &(struct scene){ .machines = { { "a", .age = 2, .paused = true }, { "b", .age = 1 } } });
    CHECK_STR(p->step.machine->meta.name, "b");

    CASE("a set that is idle is left alone")
    p = plan_of(&(struct scene){ .set_paused = true, .machines = { { "a" } } });
    CHECK_INT(p->step.kind, STEP_NONE);

    CASE("paused: the MachineDeployment, the Cluster")
    CHECK(plan_of(&(struct scene){ .md_paused = true, .machines = { { "a" } } })->shown.paused);
    CHECK(
        plan_of(&(struct scene){ .cluster_paused = true, .machines = { { "a" } } })->shown.paused);
}

/* Going on with one call after the other, as a controller does: it ends, each deletion is announced, and
 * never are more on their way out than allowed. */
static void test_walk(void)
{
    struct scene scene = { .max_in_flight = "2",
                           .machines = { { "a", .age = 1 },
                                         { "b", .age = 2 },
                                         { "c", .age = 3 },
                                         { "d", .age = 4, .health = "True" },
                                         { "e", .age = 5 } } };
    struct pl_buf walk;
    int calls = 0;

    CASE("a walk to the end")
    pl__buf_init(&walk, &arena, SIZE_MAX);
    for (; calls < 50; calls++) {
        const struct pl_plan *p = plan_of(&scene);
        int in_flight = 0;
        if (p->step.kind == STEP_NONE)
            break;
        struct machine *m = scene.machines;
        while (!pl__str_equal(pl__str(m->name), p->step.machine->meta.name))
            m++;
        if (p->step.kind == STEP_CLEAR_OWNER_REMEDIATED) {
            m->owner = "";
            pl__buf_printf(&walk, " -%s", m->name);
        } else if (p->step.kind == STEP_SET_OWNER_REMEDIATED) {
            m->owner = pl__str_copy(&arena, p->step.reason).ptr;
            m->message = pl__str_copy(&arena, p->step.message).ptr;
            pl__buf_printf(&walk, " %s:%c", m->name, m->owner[0]);
        } else {
            CHECK_INT(p->step.kind, STEP_DELETE_MACHINE);
            CHECK_STR(pl__str(m->owner), "MachineDeleting");
            m->deleting = true;
            pl__buf_printf(&walk, " x%s", m->name);
        }
        for (int i = 0; i < 5; i++)
            in_flight += scene.machines[i].deleting;
        CHECK(in_flight <= 2);
    }
    CHECK_STR(pl__buf_str(&walk), " e:M -d c:M b:R a:R xe xc");
}

int main(void)
{
    pl__arena_init(&arena, NULL, 0);
    test_who();
    test_how_many();
    test_preflight();
    test_plan();
    test_walk();
    pl__arena_release(&arena);
    return test_end("machineset");
}
