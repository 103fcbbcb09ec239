/* Those who live in a cluster besides us. Each Machine is ticked every few seconds and then takes at most one
 * step: towards a Node while it is new, towards its end while it is being deleted. They read what is true,
 * not a cache: being late is what their ticks are for. */
#include <stdlib.h>

#include "base/base64.h"
#include "sim/sim.h"

#define MACHINE_FINALIZER "machine.cluster.x-k8s.io"

static const char *const components[] = { "kube-apiserver", "kube-controller-manager",
                                          "kube-scheduler", "etcd" };

enum { SHOWN_NODE = 1, SHOWN_LOST = 2, SHOWN_ETCD_BAD = 4, SHOWN_POD_BAD = 8 };

bool machine_is_bad(const struct machine *m)
{
    return !m->vm_up || m->etcd_bad || m->pod_bad || m->never_joins;
}

void machine_mend(struct sim *sim, struct machine *m)
{
    m->repaired_ms = 0;
    m->never_joins = false;
    m->etcd_bad = m->pod_bad = false;
    m->vm_up = m->phase >= PHASE_JOIN && m->leaving != VM_GONE;
    machine_ill(sim, m);
    if (m->marked && !m->ill && !object_deleting(m->o)) {
        m->marked = false;
        condition_set(m->o, "HealthCheckSucceeded", "True", "HealthCheckSucceeded", "");
        object_commit(m->o);
    }
}

bool cluster_api_works(const struct cluster *cl)
{
    return cl->external_etcd || etcd_has_quorum(&cl->etcd);
}

struct machine *machine_by_name(struct cluster *cl, struct pl_str name)
{
    for (struct machine *m = cl->machines; m; m = m->next) {
        if (pl__str_equal(pl__str(m->name), name))
            return m;
    }
    return NULL;
}

struct machine *machine_by_node(struct cluster *cl, struct pl_str node)
{
    for (struct machine *m = cl->machines; m; m = m->next) {
        if (pl__str_equal(pl__str(m->node), node))
            return m;
    }
    return NULL;
}

int control_plane_count(const struct cluster *cl)
{
    int count = 0;

    for (const struct machine *m = cl->machines; m; m = m->next)
        count += m->o && m->control_plane;
    return count;
}

struct cluster *cluster_of_object(struct sim *sim, const struct object *o)
{
    struct pl_str name = o->kind == K_CLUSTER
                             ? o->name
                             : tree_text(tree_at(o->tree, "metadata", "labels",
                                                 "cluster.x-k8s.io/cluster-name", NULL));

    for (int i = 0; i < sim->cluster_count; i++) {
        if (pl__str_equal(name, pl__str(sim->clusters[i].name)))
            return &sim->clusters[i];
    }
    return NULL;
}

/* --- Nodes and static Pods ---------------------------------------------------------------------------- */

static void put(struct server *s, enum kind kind, struct pl_str name, struct pl_tree *tree)
{
    struct object *o = object_find(s, kind, name);

    if (!o) {
        object_create(s, kind, name, tree);
        return;
    }
    pl__tree_remove(tree, PL_STR("metadata"));
    pl__patch_merge(&s->sim->arena, o->tree, tree);
    if (!tree_at(tree, "spec", "taints", NULL) && tree_get(o->tree, "spec"))
        pl__tree_remove(tree_get(o->tree, "spec"), PL_STR("taints"));
    if (!tree_at(tree, "status", "containerStatuses", NULL))
        pl__tree_remove(tree_get(o->tree, "status"), PL_STR("containerStatuses"));
    object_commit(o);
}

static void node_write(struct sim *sim, struct machine *m, bool lost)
{
    struct pl_tree *node = tree_format(
        &sim->arena,
        "{\"metadata\":{\"labels\":{\"node-role.kubernetes.io/control-plane\":\"\"}},"
        "\"spec\":{\"providerID\":\"sim://%s\"%s},\"status\":{\"addresses\":[{\"type\":"
        "\"InternalIP\",\"address\":\"10.0.%d.%d\"}],\"conditions\":[{\"type\":\"Ready\","
        "\"status\":\"%s\",\"reason\":\"Kubelet\",\"message\":\"\",\"lastTransitionTime\":\"%s\"}]"
        "}}",
        m->name,
        lost ? ",\"taints\":[{\"key\":\"node.kubernetes.io/unreachable\",\"effect\":"
               "\"NoExecute\"}]"
             : "",
        m->cluster->index, m->cluster->machine_serial % 250, lost ? "Unknown" : "True",
        sim_time_text(sim, sim->now.wall_ms).ptr);
    put(m->cluster->server, K_NODE, pl__str(m->node), node);
}

static void pod_write(struct sim *sim, struct machine *m, const char *component, bool bad)
{
    struct pl_str name = pl__str_format(&sim->arena, "%s-%s", component, m->node);
    struct pl_tree *pod = tree_format(
        &sim->arena,
        "{\"metadata\":{\"namespace\":\"kube-system\",\"labels\":{\"component\":\"%s\",\"tier\":"
        "\"control-plane\"}},\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":"
        "\"PodScheduled\",\"status\":\"True\"},{\"type\":\"Initialized\",\"status\":\"True\"},{"
        "\"type\":\"Ready\",\"status\":\"%s\"}]%s}}",
        component, bad ? "False" : "True",
        bad ? ",\"containerStatuses\":[{\"state\":{\"waiting\":{\"reason\":\"CrashLoopBackOff\"}},"
              "\"lastState\":{\"terminated\":{\"exitCode\":1}}}]"
            : "");
    put(m->cluster->server, K_POD, name, pod);
}

/* The kubelet and the node controller of the workload cluster write down what is. */
static void node_show(struct sim *sim, struct machine *m)
{
    bool managed = !m->cluster->external_etcd;
    /* A Node is lost after 40 s of silence. */
    bool lost = !m->vm_up && sim->now.mono_ms - m->ill_ms > 40000;
    int show =
        SHOWN_NODE | (lost ? SHOWN_LOST : 0) |
        (m->vm_up ? (m->etcd_bad && managed ? SHOWN_ETCD_BAD : 0) | (m->pod_bad ? SHOWN_POD_BAD : 0)
                  : m->shown & (SHOWN_ETCD_BAD | SHOWN_POD_BAD));

    if (show == m->shown || !m->control_plane || !cluster_api_works(m->cluster))
        return;
    if ((show ^ m->shown) & (SHOWN_NODE | SHOWN_LOST))
        node_write(sim, m, lost);
    for (int i = 0; i < (managed ? 4 : 3); i++) {
        bool bad = i == 3 ? show & SHOWN_ETCD_BAD : i == 2 && (show & SHOWN_POD_BAD);
        if (!(m->shown & SHOWN_NODE) || (i == 3 && (show ^ m->shown) & SHOWN_ETCD_BAD) ||
            (i == 2 && (show ^ m->shown) & SHOWN_POD_BAD))
            pod_write(sim, m, components[i], bad);
    }
    m->shown = show;
}

static void node_remove(struct sim *sim, struct machine *m)
{
    struct object *o = object_find(m->cluster->server, K_NODE, pl__str(m->node));

    if (o)
        object_delete(o);
    for (int i = 0; i < 4; i++) {
        o = object_find(m->cluster->server, K_POD,
                        pl__str_format(&sim->scratch, "%s-%s", components[i], m->node));
        if (o)
            object_delete(o);
    }
    m->shown = 0;
}

/* --- a Machine comes ------------------------------------------------------------------------------------ */

static void enter(struct sim *sim, struct machine *m, enum phase phase)
{
    m->phase = phase;
    m->since_ms = sim->now.mono_ms;
}

static bool member_set_up(struct sim *sim, struct machine *m, bool up)
{
    struct member *member = etcd_member_of(&m->cluster->etcd, pl__str(m->node));

    if (!member || member->up == up)
        return member != NULL;
    member->up = up;
    member->hung = false;
    member->up_ms = sim->now.mono_ms;
    etcd_settle(sim, m->cluster);
    return true;
}

/* Its Node is known from now on. */
static void node_ref_set(struct sim *sim, struct machine *m)
{
    struct pl_tree *status = pl__tree_make(&sim->arena, m->o->tree, PL_STR("status"));

    pl__tree_set(status, PL_STR("nodeRef"), tree_format(&sim->arena, "{\"name\":\"%s\"}", m->node));
    condition_set(m->o, "HealthCheckSucceeded", "True", "HealthCheckSucceeded", "");
    object_commit(m->o);
    sim_log(sim, "Machine %s has Node %s", m->name, m->node);
}

static void step_boot(struct sim *sim, struct machine *m)
{
    bool etcd = m->control_plane && !m->cluster->external_etcd;

    if (m->never_joins || (m->control_plane && !cluster_api_works(m->cluster)))
        return;
    if (etcd && !etcd_add_learner(sim, m->cluster, m->node))
        return;
    m->vm_up = true;
    enter(sim, m, etcd ? PHASE_JOIN : PHASE_RUN);
    if (!etcd) {
        node_show(sim, m);
        node_ref_set(sim, m);
    }
}

static void step_join(struct sim *sim, struct machine *m)
{
    struct member *member = etcd_member_of(&m->cluster->etcd, pl__str(m->node));

    if (!cluster_api_works(m->cluster) || !member)
        return;
    member->named = member->up = true;
    member->up_ms = sim->now.mono_ms;
    etcd_settle(sim, m->cluster);
    node_show(sim, m);
    node_ref_set(sim, m);
    enter(sim, m, PHASE_PROMOTE);
}

static void step_life(struct sim *sim, struct machine *m)
{
    uint64_t age = sim->now.mono_ms - m->since_ms;

    switch (m->phase) {
    case PHASE_NEW:
        if (age < 5000)
            return;
        pl__tree_set(pl__tree_make(&sim->arena, m->o->tree, PL_STR("spec")), PL_STR("providerID"),
                     tree_format(&sim->arena, "\"sim://%s\"", m->name));
        object_commit(m->o);
        enter(sim, m, PHASE_BOOT);
        return;
    case PHASE_BOOT:
        if (age >= 10000)
            step_boot(sim, m);
        return;
    case PHASE_JOIN:
        if (age >= 3000)
            step_join(sim, m);
        return;
    case PHASE_PROMOTE:
        if (age >= 2000 && etcd_promote(sim, m->cluster, m->node))
            enter(sim, m, PHASE_RUN);
        return;
    case PHASE_RUN:
        return;
    }
}

/* --- a Machine goes ------------------------------------------------------------------------------------- */

static void leave(struct sim *sim, struct machine *m, enum leaving to, const char *reason)
{
    m->leaving = to;
    m->since_ms = sim->now.mono_ms;
    if (condition_set(m->o, "Deleting", "True", reason, ""))
        object_commit(m->o);
    sim_log(sim, "Machine %s: %s", m->name, reason);
}

static int hooks_left(const struct machine *m)
{
    const struct pl_tree *all = tree_at(m->o->tree, "metadata", "annotations", NULL);
    int count = 0;

    for (const struct pl_tree *t = all ? all->first : NULL; t; t = t->next)
        count += pl__str_starts_with(t->key, PL_STR(HOOK_PREFIX "/"));
    return count;
}

static void vm_stop(struct sim *sim, struct machine *m)
{
    static const enum kind made[] = { K_INFRA, K_CONFIG };

    m->vm_up = false;
    member_set_up(sim, m, false);
    for (int i = 0; i < 2; i++) {
        struct object *o = object_find(m->o->server, made[i], pl__str(m->name));
        if (o)
            object_delete(o);
    }
    leave(sim, m, VM_GONE, "WaitingForInfrastructureDeletion");
}

static void step_leaving(struct sim *sim, struct machine *m)
{
    uint64_t age = sim->now.mono_ms - m->since_ms;
    struct pl_tree *meta = tree_get(m->o->tree, "metadata");

    switch (m->leaving) {
    case STAYS:
        pl__tree_set(pl__tree_make(&sim->arena, m->o->tree, PL_STR("status")), PL_STR("deletion"),
                     tree_format(&sim->arena, "{\"nodeDrainStartTime\":\"%s\"}",
                                 sim_time_text(sim, sim->now.wall_ms).ptr));
        leave(sim, m, DRAINS, "DrainingNode");
        return;
    case DRAINS:
        if (age >= 8000)
            leave(sim, m, hooks_left(m) ? AT_HOOK : HOOK_GONE,
                  hooks_left(m) ? "WaitingForPreTerminateHook" : "WaitingForVolumeDetach");
        return;
    case AT_HOOK:
        if (m->foreign_hook && age >= 20000) {
            m->foreign_hook = false;
            pl__tree_remove(tree_get(meta, "annotations"), PL_STR(HOOK_PREFIX "/other"));
            object_commit(m->o);
        }
        if (hooks_left(m) == 0)
            leave(sim, m, HOOK_GONE, "WaitingForVolumeDetach");
        return;
    case HOOK_GONE:
        if (age >= 5000)
            vm_stop(sim, m);
        return;
    case VM_GONE:
        if (age < 5000)
            return;
        node_remove(sim, m);
        pl__tree_remove(meta, PL_STR("finalizers"));
        object_commit(m->o);
        return;
    }
}

/* --- health checks -------------------------------------------------------------------------------------- */

static bool is_ill(struct sim *sim, const struct machine *m)
{
    if (m->phase == PHASE_RUN || m->phase == PHASE_PROMOTE)
        return !m->vm_up || m->etcd_bad || m->pod_bad;
    return sim->now.mono_ms - m->since_ms > 5 * 60 * 1000;
}

static void health_check(struct sim *sim, struct machine *m)
{
    bool ill = is_ill(sim, m);
    bool changed;

    if (ill != m->ill) {
        m->ill = ill;
        m->ill_ms = sim->now.mono_ms;
    }
    if (ill == m->marked || sim->now.mono_ms - m->ill_ms < 60000 || object_deleting(m->o))
        return;
    m->marked = ill;
    if (ill) {
        changed = condition_set(m->o, "HealthCheckSucceeded", "False", "UnhealthyNode", "ill");
        const struct pl_tree *owner = condition_find(m->o, "OwnerRemediated");
        if (!owner || !tree_is(tree_get(owner, "status"), "False"))
            changed |= condition_set(m->o, "OwnerRemediated", "False", "WaitingForRemediation",
                                     "Waiting for remediation");
    } else {
        changed = condition_set(m->o, "HealthCheckSucceeded", "True", "HealthCheckSucceeded", "");
    }
    sim_log(sim, "Machine %s is %s", m->name, ill ? "unhealthy" : "healthy");
    if (changed)
        object_commit(m->o);
}

void machine_ill(struct sim *sim, struct machine *m)
{
    bool up = m->vm_up && !m->etcd_bad;

    if (m->control_plane && m->phase >= PHASE_JOIN)
        member_set_up(sim, m, up && m->leaving != VM_GONE);
    if (is_ill(sim, m) != m->ill) {
        m->ill = !m->ill;
        m->ill_ms = sim->now.mono_ms;
    }
}

static void tick(struct sim *sim, void *what)
{
    struct machine *m = what;

    if (!m->o)
        return;
    if (m->repaired_ms && sim->now.mono_ms >= m->repaired_ms && m->leaving != VM_GONE) {
        m->repaired_ms = 0;
        m->vm_up = m->phase >= PHASE_JOIN;
        m->etcd_bad = m->pod_bad = false;
        machine_ill(sim, m);
        sim_log(sim, "Machine %s recovered", m->name);
    }
    if (object_deleting(m->o))
        step_leaving(sim, m);
    else
        step_life(sim, m);
    if (m->o && m->phase >= PHASE_PROMOTE && m->leaving != VM_GONE)
        node_show(sim, m);
    if (m->o)
        health_check(sim, m);
    if (m->o)
        sim_after(sim, sim_between(sim, 1000, 6000), tick, m);
}

/* --- Machines and their sets ---------------------------------------------------------------------------- */

void machine_born(struct sim *sim, struct object *o)
{
    struct cluster *cl = cluster_of_object(sim, o);
    struct machine *m = PL_NEW(&sim->arena, struct machine, 1);

    if (!cl)
        return;
    m->cluster = cl;
    m->o = o;
    m->born_ms = sim->now.mono_ms;
    o->machine = m;
    snprintf(m->name, sizeof m->name, "%.*s", PL_STR_ARG(o->name));
    snprintf(m->node, sizeof m->node, "n%d", cl->machine_serial++);
    m->control_plane =
        tree_at(o->tree, "metadata", "labels", "cluster.x-k8s.io/control-plane", NULL) != NULL;
    if (pl__tree_count(tree_at(o->tree, "metadata", "finalizers", NULL)) == 0)
        pl__tree_set(tree_get(o->tree, "metadata"), PL_STR("finalizers"),
                     tree_format(&sim->arena, "[\"" MACHINE_FINALIZER "\"]"));
    enter(sim, m, PHASE_NEW);
    m->never_joins = !sim->peace && sim->faults.disease && sim_percent(sim, 15);
    struct machine **at = &cl->machines;
    while (*at)
        at = &(*at)->next;
    *at = m;
    sim_after(sim, sim_between(sim, 1000, 6000), tick, m);
}

/* A join that failed leaves a member without a name, which nobody may take for somebody's, and which keeps
 * all others from joining: people remove it in the end. */
static void somebody_tidies(struct sim *sim, void *what)
{
    struct machine *m = what;
    struct member *member = etcd_member_of(&m->cluster->etcd, pl__str(m->node));

    if (!member || member->named)
        return;
    member->listed = false;
    sim_log(sim, "somebody removes the unnamed member of %s", m->name);
    etcd_settle(sim, m->cluster);
}

void machine_died(struct sim *sim, struct machine *m)
{
    sim_after(sim, 5 * 60 * 1000, somebody_tidies, m);
    m->o = NULL;
    m->gone_ms = sim->now.mono_ms;
    m->vm_up = false;
    member_set_up(sim, m, false);
}

static struct object *worker_make(struct sim *sim, struct cluster *cl)
{
    struct object *set =
        object_find(&sim->servers[0], K_MS, pl__str_format(&sim->scratch, "%s-ms", cl->name));
    struct pl_str name = pl__str_format(&sim->arena, "%s-w%d", cl->name, cl->machine_serial);

    return object_create(
        &sim->servers[0], K_MACHINE, name,
        tree_format(&sim->arena,
                    "{\"metadata\":{\"labels\":{\"cluster.x-k8s.io/cluster-name\":\"%s\","
                    "\"cluster.x-k8s.io/deployment-name\":\"%s-md\",\"cluster.x-k8s.io/set-name\":"
                    "\"%s-ms\"},\"ownerReferences\":[{\"apiVersion\":\"cluster.x-k8s.io/v1beta2\","
                    "\"kind\":\"MachineSet\",\"name\":\"%s-ms\",\"uid\":\"%s\",\"controller\":"
                    "true}]},\"spec\":{\"clusterName\":\"%s\",\"infrastructureRef\":{\"kind\":"
                    "\"DockerMachine\"}}}",
                    cl->name, cl->name, cl->name, cl->name, set->uid.ptr, cl->name));
}

/* The MachineSet controller keeps the number of workers; when the cluster goes, they go first. */
static void workers_tick(struct sim *sim, void *what)
{
    struct cluster *cl = what;
    int count = 0;

    for (struct machine *m = cl->machines; m; m = m->next) {
        if (!m->o || m->control_plane)
            continue;
        count++;
        if (cl->workers_leave && !object_deleting(m->o))
            object_delete(m->o);
    }
    if (!cl->deleting && count < cl->workers)
        worker_make(sim, cl);
    sim_after(sim, 15000, workers_tick, cl);
}

/* --- the beginning -------------------------------------------------------------------------------------- */

static void secret_make(struct sim *sim, struct cluster *cl, const char *suffix, const char *data)
{
    object_create(&sim->servers[0], K_SECRET,
                  pl__str_format(&sim->arena, "%s-%s", cl->name, suffix),
                  tree_format(&sim->arena,
                              "{\"metadata\":{\"labels\":{\"cluster.x-k8s.io/cluster-name\":\"%s\"}"
                              "},\"data\":{%s}}",
                              cl->name, data));
}

static struct pl_str base64(struct sim *sim, const char *text)
{
    return pl__base64_encode(&sim->arena, pl__str(text));
}

static void secrets_make(struct sim *sim, struct cluster *cl)
{
    char text[512];

    snprintf(text, sizeof text, "sim:%d", cl->index + 1);
    snprintf(text, sizeof text, "\"value\":\"%s\"",
             base64(sim, pl__str_format(&sim->arena, "sim:%d", cl->index + 1).ptr).ptr);
    secret_make(sim, cl, "kubeconfig", text);
    if (cl->external_etcd)
        return;
    snprintf(text, sizeof text, "\"tls.crt\":\"%s\",\"tls.key\":\"%s\"",
             base64(sim, "-----BEGIN CERTIFICATE-----\nc2lt\n-----END CERTIFICATE-----\n").ptr,
             base64(sim, "-----BEGIN PRIVATE KEY-----\nc2lt\n-----END PRIVATE KEY-----\n").ptr);
    secret_make(sim, cl, "etcd", text);
}

static void kcp_make(struct sim *sim, struct cluster *cl, const struct object *owner)
{
    char remediation[160] = "";
    struct pl_arena *a = &sim->arena;

    if (cl->max_retry >= 0)
        snprintf(remediation, sizeof remediation,
                 ",\"remediation\":{\"maxRetry\":%" PRId64 ",\"retryPeriodSeconds\":%" PRId64
                 ",\"minHealthyPeriodSeconds\":%" PRId64 "}",
                 cl->max_retry, cl->retry_period_s, cl->min_healthy_s);
    struct object *o = object_create(
        &sim->servers[0], K_KCP, pl__str(cl->kcp),
        tree_format(
            a,
            "{\"metadata\":{\"labels\":{\"cluster.x-k8s.io/cluster-name\":\"%s\"},\"finalizers\":["
            "\"" KCP_FINALIZER "\"],\"ownerReferences\":[{\"apiVersion\":"
            "\"cluster.x-k8s.io/v1beta2\",\"kind\":\"Cluster\",\"name\":\"%s\",\"uid\":\"%s\","
            "\"controller\":true}]},\"spec\":{\"replicas\":%d,\"version\":\"v1.34.0\","
            "\"machineTemplate\":{\"spec\":{\"infrastructureRef\":{\"apiGroup\":"
            "\"infrastructure.cluster.x-k8s.io\",\"kind\":\"DockerMachineTemplate\",\"name\":"
            "\"%s-cp\"}}},\"kubeadmConfigSpec\":{\"clusterConfiguration\":{%s},"
            "\"joinConfiguration\":{}}%s},\"status\":{\"initialization\":{"
            "\"controlPlaneInitialized\":true}}}",
            cl->name, cl->name, owner->uid.ptr, cl->replicas, cl->name,
            cl->external_etcd ? "\"etcd\":{\"external\":{\"endpoints\":[\"https://10.9.9.9\"]}}"
                              : "",
            remediation));
    condition_set(o, "Initialized", "True", "Initialized", "");
    object_commit(o);
}

static void template_make(struct sim *sim, struct cluster *cl)
{
    struct object *kcp = object_find(&sim->servers[0], K_KCP, pl__str(cl->kcp));
    struct pl_str owner = PL_STR("");

    if (sim_percent(sim, 30))
        owner = pl__str_format(&sim->arena,
                               ",\"ownerReferences\":[{\"apiVersion\":"
                               "\"controlplane.cluster.x-k8s.io/v1beta2\",\"kind\":"
                               "\"KubeadmControlPlane\",\"name\":\"%s\",\"uid\":\"%s\","
                               "\"controller\":true}]",
                               cl->kcp, kcp->uid.ptr);
    object_create(&sim->servers[0], K_TEMPLATE, pl__str_format(&sim->arena, "%s-cp", cl->name),
                  tree_format(&sim->arena,
                              "{\"metadata\":{\"labels\":{\"cluster.x-k8s.io/cluster-name\":\"%s\"}"
                              "%s},\"spec\":{\"template\":{\"spec\":{\"image\":\"x\",\"n\":"
                              "18446744073709551615}}}}",
                              cl->name, owner.ptr));
}

/* A control plane Machine that has been there for a day. */
static void old_machine_make(struct sim *sim, struct cluster *cl, int number)
{
    struct object *kcp = object_find(&sim->servers[0], K_KCP, pl__str(cl->kcp));
    bool other_hook = sim_percent(sim, 10);
    struct object *o = object_create(
        &sim->servers[0], K_MACHINE, pl__str_format(&sim->arena, "%s-m%d", cl->name, number),
        tree_format(
            &sim->arena,
            "{\"metadata\":{\"creationTimestamp\":\"%s\",\"labels\":{"
            "\"cluster.x-k8s.io/cluster-name\":\"%s\",\"cluster.x-k8s.io/control-plane\":\"\","
            "\"cluster.x-k8s.io/control-plane-name\":\"%s\"},\"annotations\":{\"" OUR_HOOK
            "\":\"\"%s},\"ownerReferences\":[{\"apiVersion\":"
            "\"controlplane.cluster.x-k8s.io/v1beta2\",\"kind\":\"KubeadmControlPlane\",\"name\":"
            "\"%s\",\"uid\":\"%s\",\"controller\":true}]},\"spec\":{\"clusterName\":\"%s\","
            "\"version\":\"v1.34.0\",\"providerID\":\"sim://%s-m%d\",\"infrastructureRef\":{"
            "\"kind\":\"DockerMachine\"}}}",
            sim_time_text(sim, sim->now.wall_ms - 86400000 + number * 60000).ptr, cl->name, cl->kcp,
            other_hook ? ",\"" HOOK_PREFIX "/other\":\"\"" : "", cl->kcp, kcp->uid.ptr, cl->name,
            cl->name, number));
    struct machine *m = o->machine;
    m->foreign_hook = other_hook;
    m->never_joins = false;
    m->vm_up = true;
    enter(sim, m, PHASE_RUN);
    if (!cl->external_etcd) {
        uint64_t id = etcd_add(sim, cl, m->node, false);
        struct member *member = etcd_member(&cl->etcd, id);
        member->named = member->up = true;
        member->up_ms = 0;
    }
}

static void cluster_make(struct sim *sim, struct cluster *cl)
{
    struct pl_arena *a = &sim->arena;
    struct object *o = object_create(
        &sim->servers[0], K_CLUSTER, pl__str(cl->name),
        tree_format(a, "{\"spec\":{\"controlPlaneEndpoint\":{\"host\":\"10.0.0.1\",\"port\":6443}},"
                       "\"status\":{\"initialization\":{\"infrastructureProvisioned\":true}}}"));

    kcp_make(sim, cl, o);
    template_make(sim, cl);
    secrets_make(sim, cl);
    for (int i = 0; i < cl->replicas; i++)
        old_machine_make(sim, cl, i);
    etcd_settle(sim, cl);
    for (struct machine *m = cl->machines; m; m = m->next) {
        node_show(sim, m);
        node_ref_set(sim, m);
    }
    if (cl->workers) {
        struct object *md = object_create(
            &sim->servers[0], K_MD, pl__str_format(a, "%s-md", cl->name),
            tree_format(a,
                        "{\"metadata\":{\"labels\":{\"cluster.x-k8s.io/cluster-name\":\"%s\"},"
                        "\"annotations\":{\"machinedeployment.clusters.x-k8s.io/revision\":\"1\"}},"
                        "\"spec\":{\"clusterName\":\"%s\",\"replicas\":%d,\"remediation\":{"
                        "\"maxInFlight\":%s}}}",
                        cl->name, cl->name, cl->workers, cl->max_in_flight));
        object_create(
            &sim->servers[0], K_MS, pl__str_format(a, "%s-ms", cl->name),
            tree_format(a,
                        "{\"metadata\":{\"labels\":{\"cluster.x-k8s.io/cluster-name\":\"%s\","
                        "\"cluster.x-k8s.io/deployment-name\":\"%s-md\"},\"annotations\":{"
                        "\"machinedeployment.clusters.x-k8s.io/revision\":\"1\"},"
                        "\"ownerReferences\":[{\"apiVersion\":\"cluster.x-k8s.io/v1beta2\","
                        "\"kind\":\"MachineDeployment\",\"name\":\"%s-md\",\"uid\":\"%s\","
                        "\"controller\":true}]},\"spec\":{\"clusterName\":\"%s\",\"replicas\":%d}}",
                        cl->name, cl->name, cl->name, md->uid.ptr, cl->name, cl->workers));
        sim_after(sim, 1000, workers_tick, cl);
    }
}

void world_build(struct sim *sim)
{
    static const int sizes[] = { 1, 3, 3, 3, 5 };
    static const char *const names[] = { "alpha", "beta", "gamma" };
    static const char *const in_flight[] = { "1", "2", "\"50%\"" };

    sim->cluster_count = prng_one_in(&sim->random, 4) ? 2 : prng_one_in(&sim->random, 8) ? 3 : 1;
    for (int i = 0; i < sim->cluster_count; i++) {
        struct cluster *cl = &sim->clusters[i];
        cl->index = i;
        cl->server = &sim->servers[i + 1];
        cl->server->cluster = cl;
        snprintf(cl->name, sizeof cl->name, "%s", names[i]);
        snprintf(cl->kcp, sizeof cl->kcp, "%s-cp", names[i]);
        cl->replicas = sizes[prng_below(&sim->random, sizeof sizes / sizeof sizes[0])];
        cl->external_etcd = sim_percent(sim, 15);
        cl->workers = sim_percent(sim, 30) ? (int)sim_between(sim, 1, 4) : 0;
        snprintf(cl->max_in_flight, sizeof cl->max_in_flight, "%s",
                 in_flight[prng_below(&sim->random, 3)]);
        cl->max_retry = sim_percent(sim, 50) ? (int64_t)sim_between(sim, 1, 3) : -1;
        cl->retry_period_s = (int64_t)sim_between(sim, 0, 4) * 60;
        cl->min_healthy_s = (int64_t)sim_between(sim, 10, 60) * 60;
        cluster_make(sim, cl);
    }
}
