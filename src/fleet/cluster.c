/* Clusters, their control planes and their sets of workers, from the first object to the last. */
#include "fleet/internal.h"

#include <stdlib.h>

#include "base/base64.h"

#define CLEANUP_HOOK "pre-terminate.delete.hook.machine.cluster.x-k8s.io/kcp-cleanup"

enum { RETRY_MS = 1000 }; /* after a call that an API server did not take */

/* --- calls ------------------------------------------------------------------------------------------------ */

static int manage(struct cluster *c, enum pl_fleet_verb verb, const char *group_version,
                  const char *plural, const char *name, struct pl_str body)
{
    return pl__call(c->fleet, NULL,
                    (struct pl_fleet_call){ .verb = verb,
                                            .group_version = group_version,
                                            .plural = plural,
                                            .ns = pl__str(c->fleet->options.ns),
                                            .name = pl__str(name),
                                            .manager = PL_STR(BY_CLUSTER),
                                            .body = body });
}

static const char *name_of(struct cluster *c, const char *suffix)
{
    return pl__str_format(&c->fleet->scratch, "%s%s", c->name, suffix).ptr;
}

/* --- the first objects -------------------------------------------------------------------------------------- */

static void cluster_create(struct cluster *c)
{
    struct pl_buf b = pl__text(c->fleet);

    pl__object_open(&b, c->fleet, CAPI, "Cluster", c->name, true);
    pl__labels_add(&b, c->fleet, c->name, "");
    pl__buf_printf(&b,
                   ",\"finalizers\":[\"" CLUSTER_FINALIZER "\"]},\"spec\":{"
                   "\"controlPlaneEndpoint\":{\"host\":\"127.0.0.1\",\"port\":6443},"
                   "\"controlPlaneRef\":{\"apiGroup\":\"controlplane.cluster.x-k8s.io\",\"kind\":"
                   "\"KubeadmControlPlane\",\"name\":\"%s-cp\"},\"infrastructureRef\":{"
                   "\"apiGroup\":\"infrastructure.cluster.x-k8s.io\",\"kind\":\"DevCluster\","
                   "\"name\":\"%s\"}}}",
                   c->name, c->name);
    manage(c, FLEET_CREATE, CAPI, "clusters", c->name, pl__buf_str(&b));
}

static void infrastructure_create(struct cluster *c)
{
    struct pl_buf b = pl__text(c->fleet);

    pl__object_open(&b, c->fleet, INFRASTRUCTURE, "DevCluster", c->name, true);
    pl__labels_add(&b, c->fleet, c->name, "");
    pl__owner_add(&b, CAPI, "Cluster", c->name, c->uid);
    pl__buf_add_lit(&b, "},\"spec\":{}}");
    manage(c, FLEET_CREATE, INFRASTRUCTURE, "devclusters", c->name, pl__buf_str(&b));
    b = pl__text(c->fleet);
    pl__object_open(&b, c->fleet, INFRASTRUCTURE, "DevMachineTemplate", c->name, true);
    pl__labels_add(&b, c->fleet, c->name, "");
    pl__buf_add_lit(&b, "},\"spec\":{\"template\":{\"spec\":{}}}}");
    manage(c, FLEET_CREATE, INFRASTRUCTURE, "devmachinetemplates", c->name, pl__buf_str(&b));
}

static void kcp_create(struct cluster *c)
{
    struct pl_buf b = pl__text(c->fleet);
    const char *name = name_of(c, "-cp");
    /* No etcd, no secrets of its: the control plane says that etcd is somebody else's. */
    const char *etcd = c->fleet->etcd
                           ? "\"local\":{\"dataDir\":\"/var/lib/etcd\"}"
                           : "\"external\":{\"endpoints\":[\"https://127.0.0.1:2379\"],"
                             "\"caFile\":\"/etc/kubernetes/pki/etcd/ca.crt\",\"certFile\":"
                             "\"/etc/kubernetes/pki/apiserver-etcd-client.crt\",\"keyFile\":"
                             "\"/etc/kubernetes/pki/apiserver-etcd-client.key\"}";

    pl__object_open(&b, c->fleet, CONTROLPLANE, "KubeadmControlPlane", name, true);
    pl__labels_add(&b, c->fleet, c->name, "");
    pl__owner_add(&b, CAPI, "Cluster", c->name, c->uid);
    pl__buf_printf(&b,
                   ",\"finalizers\":[\"kubeadm.controlplane.cluster.x-k8s.io\"]},\"spec\":{"
                   "\"replicas\":%u,\"version\":\"%s\",\"machineTemplate\":{\"spec\":{"
                   "\"infrastructureRef\":{\"apiGroup\":\"infrastructure.cluster.x-k8s.io\","
                   "\"kind\":\"DevMachineTemplate\",\"name\":\"%s\"}}},\"kubeadmConfigSpec\":{"
                   "\"clusterConfiguration\":{\"etcd\":{%s}}}}}",
                   c->fleet->options.replicas, c->fleet->options.version, c->name, etcd);
    manage(c, FLEET_CREATE, CONTROLPLANE, "kubeadmcontrolplanes", name, pl__buf_str(&b));
}

/* The "spec" of a template of workers. */
static void worker_spec_add(struct pl_buf *b, const struct cluster *c)
{
    pl__buf_printf(
        b,
        "\"spec\":{\"clusterName\":\"%s\",\"version\":\"%s\",\"bootstrap\":{"
        "\"configRef\":{\"apiGroup\":\"bootstrap.cluster.x-k8s.io\",\"kind\":"
        "\"KubeadmConfigTemplate\",\"name\":\"%s\"}},\"infrastructureRef\":{\"apiGroup\":"
        "\"infrastructure.cluster.x-k8s.io\",\"kind\":\"DevMachineTemplate\",\"name\":"
        "\"%s\"}}",
        c->name, c->fleet->options.version, c->name, c->name);
}

static void deployment_create(struct cluster *c)
{
    struct pl_buf b = pl__text(c->fleet);
    const char *name = name_of(c, "-md");

    if (c->fleet->options.workers == 0)
        return;
    pl__object_open(&b, c->fleet, CAPI, "MachineDeployment", name, true);
    pl__labels_add(&b, c->fleet, c->name, "");
    pl__owner_add(&b, CAPI, "Cluster", c->name, c->uid);
    pl__buf_printf(&b,
                   ",\"annotations\":{\"machinedeployment.clusters.x-k8s.io/revision\":\"1\"}},"
                   "\"spec\":{\"clusterName\":\"%s\",\"replicas\":%u,\"selector\":{"
                   "\"matchLabels\":{\"cluster.x-k8s.io/deployment-name\":\"%s\"}},\"template\":{",
                   c->name, c->fleet->options.workers, name);
    worker_spec_add(&b, c);
    pl__buf_add_lit(&b, "}}}");
    manage(c, FLEET_CREATE, CAPI, "machinedeployments", name, pl__buf_str(&b));
}

static void health_check_create(struct cluster *c)
{
    struct pl_buf b = pl__text(c->fleet);
    const char *name = name_of(c, "-mhc");
    uint32_t seconds = (c->fleet->options.patience_ms + 999) / 1000;

    pl__object_open(&b, c->fleet, CAPI, "MachineHealthCheck", name, true);
    pl__labels_add(&b, c->fleet, c->name, "");
    pl__owner_add(&b, CAPI, "Cluster", c->name, c->uid);
    pl__buf_printf(&b,
                   "},\"spec\":{\"clusterName\":\"%s\",\"selector\":{\"matchLabels\":{"
                   "\"cluster.x-k8s.io/cluster-name\":\"%s\"}},\"checks\":{"
                   "\"unhealthyNodeConditions\":[{\"type\":\"Ready\",\"status\":\"Unknown\","
                   "\"timeoutSeconds\":%u},{\"type\":\"Ready\",\"status\":\"False\","
                   "\"timeoutSeconds\":%u}]}}}",
                   c->name, c->name, seconds, seconds);
    manage(c, FLEET_CREATE, CAPI, "machinehealthchecks", name, pl__buf_str(&b));
}

void pl__cluster_make(struct cluster *c)
{
    cluster_create(c);
    infrastructure_create(c);
    kcp_create(c);
    deployment_create(c);
    health_check_create(c);
}

/* --- Secrets ---------------------------------------------------------------------------------------------------- */

static bool secret_apply(struct cluster *c, const char *suffix, const char *data)
{
    struct pl_buf b = pl__text(c->fleet);
    const char *name = name_of(c, suffix);

    pl__object_open(&b, c->fleet, "v1", "Secret", name, true);
    pl__labels_add(&b, c->fleet, c->name, "");
    pl__owner_add(&b, CONTROLPLANE, "KubeadmControlPlane", c->kcp, c->kcp_uid);
    pl__buf_printf(&b, "},\"type\":\"cluster.x-k8s.io/secret\",\"data\":{%s}}", data);
    return manage(c, FLEET_APPLY, "v1", "secrets", name, pl__buf_str(&b)) < 300;
}

bool pl__cluster_has_own_etcd(const struct cluster *c)
{
    return c->fleet->etcd && !c->kcp_external;
}

struct ensemble *pl__cluster_etcd(struct cluster *c)
{
    struct pl_error *err = NULL;

    if (!pl__cluster_has_own_etcd(c))
        return NULL;
    if (c->fleet->shared)
        return c->fleet->shared;
    if (!c->etcd && !(c->etcd = pl__ensemble_new(c->fleet, c->name, false, &err)))
        pl__fleet_say(c->fleet, "%s", pl__error_text(&c->fleet->scratch, err).ptr);
    return c->etcd;
}

/* What Cluster API keeps beside a control plane: the way in, and the CA of etcd. */
static void furnish(struct cluster *c)
{
    struct pl_fleet *fleet = c->fleet;
    struct pl_arena *a = &fleet->scratch;
    struct pl_str config =
        fleet->options.api.kubeconfig(fleet->options.api.user, pl__str(c->name), a);
    struct ensemble *etcd = pl__cluster_etcd(c);

    c->furnished =
        secret_apply(c, "-kubeconfig",
                     pl__str_format(a, "\"value\":\"%s\"", pl__base64_encode(a, config).ptr).ptr);
    if (!etcd)
        return;
    struct pl_str cert = pl__base64_encode(a, pl__str(etcd->ca_cert));
    struct pl_str key = pl__base64_encode(a, pl__str(etcd->ca_key));
    c->furnished &= secret_apply(
        c, "-etcd",
        pl__str_format(a, "\"tls.crt\":\"%s\",\"tls.key\":\"%s\"", cert.ptr, key.ptr).ptr);
}

/* --- Machines come --------------------------------------------------------------------------------------------------- */

static void machine_parts_create(struct cluster *c, const char *name, const char *uid)
{
    static const struct {
        const char *group_version, *kind, *plural, *spec;
    } parts[] = { { BOOTSTRAP, "KubeadmConfig", "kubeadmconfigs", "\"format\":\"cloud-config\"" },
                  { INFRASTRUCTURE, "DevMachine", "devmachines", "" } };

    for (int i = 0; i < 2; i++) {
        struct pl_buf b = pl__text(c->fleet);
        pl__object_open(&b, c->fleet, parts[i].group_version, parts[i].kind, name, true);
        pl__labels_add(&b, c->fleet, c->name, "");
        pl__owner_add(&b, CAPI, "Machine", name, uid);
        pl__buf_printf(&b, "},\"spec\":{%s}}", parts[i].spec);
        manage(c, FLEET_CREATE, parts[i].group_version, parts[i].plural, name, pl__buf_str(&b));
    }
}

static struct machine *machine_last(struct cluster *c)
{
    struct machine *m = c->machines;

    while (m && m->next)
        m = m->next;
    return m;
}

/* `meta` is what its owner puts into the metadata, behind the name. */
static bool machine_create(struct cluster *c, const char *name, struct pl_str meta)
{
    struct pl_buf b = pl__text(c->fleet);

    if (c->machine_count >= MACHINES_MAX) {
        if (!c->crowded)
            pl__fleet_say(c->fleet, "Cluster %s has %u Machines: no more are made", c->name,
                          c->machine_count);
        c->crowded = true;
        return false;
    }
    pl__object_open(&b, c->fleet, CAPI, "Machine", name, true);
    pl__buf_add(&b, meta);
    pl__buf_printf(&b,
                   ",\"finalizers\":[\"" MACHINE_FINALIZER "\"]},\"spec\":{\"clusterName\":"
                   "\"%s\",\"version\":\"%s\",\"bootstrap\":{\"configRef\":{\"apiGroup\":"
                   "\"bootstrap.cluster.x-k8s.io\",\"kind\":\"KubeadmConfig\",\"name\":\"%s\"}},"
                   "\"infrastructureRef\":{\"apiGroup\":\"infrastructure.cluster.x-k8s.io\","
                   "\"kind\":\"DevMachine\",\"name\":\"%s\"}}}",
                   c->name, c->fleet->options.version, name, name);
    int status = manage(c, FLEET_CREATE, CAPI, "machines", name, pl__buf_str(&b));
    struct machine *made = machine_last(c);
    if (status >= 300 || !made || strcmp(made->name, name) != 0)
        return status == 409; /* the name is taken: the next one will do */
    machine_parts_create(c, name, made->uid);
    return true;
}

static bool control_plane_machine_create(struct cluster *c)
{
    struct pl_buf meta = pl__text(c->fleet);
    const char *name = pl__str_format(&c->fleet->scratch, "%s-%u", c->kcp, ++c->serial).ptr;
    struct pl_str label = pl__str_format(&c->fleet->scratch,
                                         ",\"cluster.x-k8s.io/control-plane\":\"\","
                                         "\"cluster.x-k8s.io/control-plane-name\":\"%s\"",
                                         c->kcp);

    pl__labels_add(&meta, c->fleet, c->name, label.ptr);
    pl__owner_add(&meta, CONTROLPLANE, "KubeadmControlPlane", c->kcp, c->kcp_uid);
    pl__buf_add_lit(&meta, ",\"annotations\":{\"" CLEANUP_HOOK "\":\"\"}");
    return machine_create(c, name, pl__buf_str(&meta));
}

/* Whether all control plane Machines run; how many there are. */
static bool control_plane_runs(const struct cluster *c, int32_t *count)
{
    bool all = true;

    *count = 0;
    for (const struct machine *m = c->machines; m; m = m->next) {
        if (!m->control_plane)
            continue;
        (*count)++;
        all &= m->phase == MACHINE_RUNS && !m->deleting;
    }
    return all;
}

/* The newest goes. Its member leaves etcd before its machine does: the hook is our controller's to take off. */
static void scale_down(struct cluster *c)
{
    const struct machine *newest = NULL;

    for (const struct machine *m = c->machines; m; m = m->next)
        if (m->control_plane)
            newest = m;
    if (newest)
        manage(c, FLEET_DELETE, CAPI, "machines", newest->name, PL_STR(""));
}

/* The half of the control plane's controller that plimsoll leaves to others. Before the control plane is initialized
 * all Machines are made at once; later they come and go one after the other, and none while a replacement is
 * somebody else's. */
static void scale(struct cluster *c, uint64_t now_ms, uint64_t *due_ms)
{
    int32_t count;
    bool all_run = control_plane_runs(c, &count);

    if (!c->kcp_there || c->kcp_deleting || c->kcp_in_progress || c->kcp_paused || c->paused ||
        count == c->kcp_replicas || (c->kcp_initialized && !all_run))
        return;
    if (now_ms < c->settled_ms) {
        pl__due(due_ms, c->settled_ms);
        return;
    }
    if (count > c->kcp_replicas) {
        if (c->kcp_initialized && c->kcp_replicas > 0)
            scale_down(c);
        return;
    }
    int32_t wanted = c->kcp_initialized ? 1 : c->kcp_replicas - count;
    for (int32_t i = 0; i < wanted; i++)
        if (!control_plane_machine_create(c))
            return;
}

/* Of a control plane that was deleted, when the last of its Machines has gone: the next one begins anew. */
static void etcd_end(struct cluster *c)
{
    int32_t count;

    control_plane_runs(c, &count);
    if (!c->etcd_old || count)
        return;
    pl__ensemble_free(c->etcd);
    c->etcd = NULL;
    c->etcd_old = c->furnished = false;
}

/* Members that are there from the beginning are started together, so they are waited for. */
static void etcd_begin(struct cluster *c)
{
    int32_t ready = 0;

    if (!c->etcd || c->etcd->has_started)
        return;
    for (const struct machine *m = c->machines; m; m = m->next) {
        if (!m->control_plane || m->deleting)
            continue;
        if (!m->member)
            return;
        ready++;
    }
    /* A control plane that has run before, and whose etcd is lost, begins with those who are there. */
    if (ready > 0 && (ready >= c->kcp_replicas || c->kcp_initialized))
        pl__ensemble_start(c->etcd);
}

/* Whose Machine went in a former life. */
static void members_sweep(struct cluster *c)
{
    c->etcd->found = false;
    for (int i = 0; i < MEMBERS_MAX; i++) {
        struct member *member = &c->etcd->members[i];
        bool wanted = member->state == MEMBER_NONE || member->is_ghost;
        for (const struct machine *m = c->machines; m && !wanted; m = m->next)
            wanted = strcmp(m->node[0] ? m->node : m->name, member->name) == 0;
        if (!wanted)
            pl__member_abandon(member);
    }
}

/* --- sets of workers ---------------------------------------------------------------------------------------------------- */

static struct set *set_of_deployment(struct cluster *c, const struct set *deployment)
{
    for (int i = 0; i < SETS_MAX; i++)
        if (c->sets[i].there && !c->sets[i].is_deployment &&
            strcmp(c->sets[i].deployment, deployment->name) == 0)
            return &c->sets[i];
    return NULL;
}

static void set_create(struct cluster *c, const struct set *deployment)
{
    struct pl_buf b = pl__text(c->fleet);
    const char *name = pl__str_format(&c->fleet->scratch, "%s-1", deployment->name).ptr;
    struct pl_str label = pl__str_format(
        &c->fleet->scratch, ",\"cluster.x-k8s.io/deployment-name\":\"%s\"", deployment->name);

    pl__object_open(&b, c->fleet, CAPI, "MachineSet", name, true);
    pl__labels_add(&b, c->fleet, c->name, label.ptr);
    pl__owner_add(&b, CAPI, "MachineDeployment", deployment->name, deployment->uid);
    pl__buf_printf(&b,
                   ",\"annotations\":{\"machinedeployment.clusters.x-k8s.io/revision\":\"1\"}},"
                   "\"spec\":{\"clusterName\":\"%s\",\"replicas\":%d,\"selector\":{"
                   "\"matchLabels\":{\"cluster.x-k8s.io/set-name\":\"%s\"}},\"template\":{",
                   c->name, deployment->replicas, name);
    worker_spec_add(&b, c);
    pl__buf_add_lit(&b, "}}}");
    manage(c, FLEET_CREATE, CAPI, "machinesets", name, pl__buf_str(&b));
}

static void deployment_step(struct cluster *c, const struct set *deployment)
{
    struct set *set = set_of_deployment(c, deployment);

    if (deployment->deleting)
        return;
    if (!set)
        set_create(c, deployment);
    else if (set->replicas != deployment->replicas)
        manage(c, FLEET_MERGE, CAPI, "machinesets", set->name,
               pl__str_format(&c->fleet->scratch, "{\"spec\":{\"replicas\":%d}}",
                              deployment->replicas));
}

static bool worker_create(struct cluster *c, const struct set *set)
{
    struct pl_buf meta = pl__text(c->fleet);
    const char *name = pl__str_format(&c->fleet->scratch, "%s-%u", set->name, ++c->serial).ptr;
    struct pl_str label =
        pl__str_format(&c->fleet->scratch,
                       ",\"cluster.x-k8s.io/set-name\":\"%s\",\"cluster.x-k8s.io/deployment-name\":"
                       "\"%s\"",
                       set->name, set->deployment);

    pl__labels_add(&meta, c->fleet, c->name, label.ptr);
    pl__owner_add(&meta, CAPI, "MachineSet", set->name, set->uid);
    return machine_create(c, name, pl__buf_str(&meta));
}

static bool is_worker(const struct machine *m, const struct set *set)
{
    return !m->control_plane && !m->deleting && strcmp(m->set, set->name) == 0;
}

/* As many as are wanted; of too many the newest go. */
static void set_step(struct cluster *c, const struct set *set)
{
    int32_t count = 0;

    if (set->deleting)
        return;
    for (const struct machine *m = c->machines; m; m = m->next)
        count += is_worker(m, set);
    for (; count < set->replicas; count++)
        if (!worker_create(c, set))
            return;
    for (const struct machine *m = c->machines; m && count > set->replicas; m = m->next) {
        bool newest = is_worker(m, set);
        for (const struct machine *later = m->next; later && newest; later = later->next)
            newest = !is_worker(later, set);
        if (!newest)
            continue;
        manage(c, FLEET_DELETE, CAPI, "machines", m->name, PL_STR(""));
        return; /* the next one when it is seen to go */
    }
}

/* --- what it all looks like ----------------------------------------------------------------------------------------------- */

struct tally {
    int32_t all, ready;
};

static struct tally tally(const struct cluster *c, bool control_plane, const struct set *set)
{
    struct tally t = { 0 };

    for (const struct machine *m = c->machines; m; m = m->next) {
        if (set ? strcmp(m->set, set->name) != 0 : m->control_plane != control_plane)
            continue;
        t.all++;
        t.ready += pl__machine_ready(m) && !m->deleting;
    }
    return t;
}

static void replicas_add(struct pl_buf *b, struct tally t)
{
    pl__buf_printf(b,
                   "\"replicas\":%d,\"readyReplicas\":%d,\"availableReplicas\":%d,"
                   "\"upToDateReplicas\":%d",
                   t.all, t.ready, t.ready, t.all);
}

/* A condition Available; `what` are counted when they are not enough. */
static void available_add(struct cluster *c, struct pl_buf *b, struct shown *shown, bool holds,
                          struct tally t, const char *what)
{
    const char *message =
        holds ? ""
              : pl__str_format(&c->fleet->scratch, "%d of %d %s ready", t.ready, t.all, what).ptr;

    pl__condition_show(b, shown, "Available", holds ? 'T' : 'F',
                       holds ? "Available" : "NotAvailable", message);
}

/* An API server answers, and its etcd has a majority. */
static bool control_plane_serves(const struct cluster *c)
{
    int32_t all = 0, serving = 0;

    for (const struct machine *m = c->machines; m; m = m->next) {
        if (!m->control_plane)
            continue;
        all++;
        serving += pl__machine_ready(m) &&
                   (!m->member || (pl__member_runs(m->member) && !m->member->frozen));
    }
    return pl__cluster_has_own_etcd(c) ? serving > all / 2 : serving > 0;
}

static void kcp_status(struct cluster *c)
{
    struct pl_buf b = pl__text(c->fleet);
    struct tally t = tally(c, true, NULL);
    bool initialized = c->kcp_initialized || t.ready > 0;
    bool available = initialized && !c->kcp_deleting && control_plane_serves(c);

    if (!c->kcp_there)
        return;
    if (initialized && !c->initialized_ms)
        c->initialized_ms = pl__loop_wall_ms();
    pl__object_open(&b, c->fleet, CONTROLPLANE, "KubeadmControlPlane", c->kcp, true);
    pl__buf_add_lit(&b, "},\"status\":{");
    replicas_add(&b, t);
    pl__buf_printf(&b,
                   ",\"version\":\"%s\",\"selector\":\"cluster.x-k8s.io/cluster-name=%s,"
                   "cluster.x-k8s.io/control-plane\"",
                   c->fleet->options.version, c->name);
    if (initialized)
        pl__buf_add_lit(&b, ",\"initialization\":{\"controlPlaneInitialized\":true}");
    pl__buf_add_lit(&b, ",\"conditions\":[");
    pl__condition_add(&b, "CertificatesAvailable", 'T', "Available", "", c->made_ms);
    pl__condition_add(&b, "Initialized", initialized ? 'T' : 'F',
                      initialized ? "Initialized" : "NotInitialized", "",
                      initialized ? c->initialized_ms : c->made_ms);
    available_add(c, &b, &c->kcp_available, available, t, "control plane Machines are");
    pl__buf_add_lit(&b, "]}}");
    pl__status_apply(c->fleet, CONTROLPLANE, "kubeadmcontrolplanes", c->kcp, BY_KCP, &b,
                     &c->kcp_status_hash);
}

static void cluster_status(struct cluster *c)
{
    struct pl_buf b = pl__text(c->fleet);
    struct tally own = tally(c, true, NULL), workers = tally(c, false, NULL);
    bool initialized = c->initialized_ms != 0;
    bool available = c->kcp_available.status == 'T' && workers.ready == workers.all && !c->deleting;

    pl__object_open(&b, c->fleet, CAPI, "Cluster", c->name, true);
    pl__buf_printf(&b,
                   "},\"status\":{\"phase\":\"%s\",\"initialization\":{"
                   "\"infrastructureProvisioned\":true,\"controlPlaneInitialized\":%s},"
                   "\"controlPlane\":{\"desiredReplicas\":%d,",
                   c->deleting ? "Deleting" : "Provisioned", initialized ? "true" : "false",
                   c->kcp_replicas);
    replicas_add(&b, own);
    pl__buf_printf(&b, "},\"workers\":{\"desiredReplicas\":%d,", workers.all);
    replicas_add(&b, workers);
    pl__buf_add_lit(&b, "},\"conditions\":[");
    pl__condition_add(&b, "InfrastructureReady", 'T', "Ready", "", c->made_ms);
    pl__condition_add(&b, "ControlPlaneInitialized", initialized ? 'T' : 'F',
                      initialized ? "Initialized" : "NotInitialized", "",
                      initialized ? c->initialized_ms : c->made_ms);
    available_add(c, &b, &c->available, available,
                  (struct tally){ own.all + workers.all, own.ready + workers.ready },
                  "Machines are");
    pl__buf_add_lit(&b, "]}}");
    pl__status_apply(c->fleet, CAPI, "clusters", c->name, BY_CLUSTER, &b, &c->status_hash);
}

static void set_status(struct cluster *c, struct set *set)
{
    struct pl_buf b = pl__text(c->fleet);
    const struct set *counted = set->is_deployment ? set_of_deployment(c, set) : set;
    struct tally t = counted ? tally(c, false, counted) : (struct tally){ 0 };

    pl__object_open(&b, c->fleet, CAPI, set->is_deployment ? "MachineDeployment" : "MachineSet",
                    set->name, true);
    pl__buf_add_lit(&b, "},\"status\":{");
    replicas_add(&b, t);
    if (set->is_deployment) {
        pl__buf_printf(&b, ",\"phase\":\"%s\",\"conditions\":[",
                       t.ready == set->replicas ? "Running" : "ScalingUp");
        available_add(c, &b, &set->available, t.ready >= set->replicas && !set->deleting, t,
                      "Machines are");
        pl__buf_add_lit(&b, "]");
    }
    pl__buf_add_lit(&b, "}}");
    pl__status_apply(c->fleet, CAPI, set->is_deployment ? "machinedeployments" : "machinesets",
                     set->name, BY_SET, &b, &set->status_hash);
}

static void health_check_status(struct cluster *c)
{
    struct pl_buf b = pl__text(c->fleet);
    int32_t healthy = 0;

    if (!c->ours)
        return;
    for (const struct machine *m = c->machines; m; m = m->next)
        healthy += m->health_true;
    pl__object_open(&b, c->fleet, CAPI, "MachineHealthCheck", name_of(c, "-mhc"), true);
    pl__buf_printf(&b, "},\"status\":{\"expectedMachines\":%u,\"currentHealthy\":%d}}",
                   c->machine_count, healthy);
    pl__status_apply(c->fleet, CAPI, "machinehealthchecks", name_of(c, "-mhc"), BY_HEALTH_CHECK, &b,
                     &c->health_status_hash);
}

static void statuses_keep(struct cluster *c)
{
    kcp_status(c);
    if (!c->there)
        return;
    cluster_status(c);
    health_check_status(c);
    for (int i = 0; i < SETS_MAX; i++)
        if (c->sets[i].there)
            set_status(c, &c->sets[i]);
}

/* --- it goes -------------------------------------------------------------------------------------------------------------------- */

/* Workers first, then the control plane, then everything else: as the Cluster controller does it. */
static void cluster_end(struct cluster *c)
{
    bool workers = false;

    for (int i = 0; i < SETS_MAX; i++)
        if (c->sets[i].there && !c->sets[i].deleting)
            manage(c, FLEET_DELETE, CAPI,
                   c->sets[i].is_deployment ? "machinedeployments" : "machinesets", c->sets[i].name,
                   PL_STR(""));
    for (const struct machine *m = c->machines; m; m = m->next) {
        workers |= !m->control_plane;
        if (!m->control_plane && !m->deleting)
            manage(c, FLEET_DELETE, CAPI, "machines", m->name, PL_STR(""));
    }
    if (workers)
        return;
    if (c->kcp_there && !c->kcp_deleting)
        manage(c, FLEET_DELETE, CONTROLPLANE, "kubeadmcontrolplanes", c->kcp, PL_STR(""));
    if (c->kcp_there || c->machine_count || !c->has_finalizer)
        return; /* without it the object is held by others, and all of this is done */
    manage(c, FLEET_DELETE, INFRASTRUCTURE, "devclusters", c->name, PL_STR(""));
    manage(c, FLEET_DELETE, INFRASTRUCTURE, "devmachinetemplates", c->name, PL_STR(""));
    manage(c, FLEET_DELETE, CAPI, "machinehealthchecks", name_of(c, "-mhc"), PL_STR(""));
    manage(c, FLEET_DELETE, "v1", "secrets", name_of(c, "-kubeconfig"), PL_STR(""));
    manage(c, FLEET_DELETE, "v1", "secrets", name_of(c, "-etcd"), PL_STR(""));
    manage(c, FLEET_MERGE, CAPI, "clusters", c->name,
           pl__finalizers_text(c->fleet, c->version, c->finalizers, NULL));
}

bool pl__cluster_is_empty(const struct cluster *c)
{
    bool sets = false;

    for (int i = 0; i < SETS_MAX; i++)
        sets |= c->sets[i].there;
    return !c->there && !c->kcp_there && c->machine_count == 0 && !sets;
}

void pl__cluster_free(struct cluster *c)
{
    for (struct machine *m = c->machines, *next; m; m = next) {
        next = m->next;
        free(m->finalizers);
        free(m->taints);
        free(m);
    }
    free(c->finalizers);
    pl__ensemble_free(c->etcd);
    free(c);
}

/* --- all of it -------------------------------------------------------------------------------------------------------------------- */

void pl__cluster_step(struct cluster *c, uint64_t now_ms)
{
    uint64_t due_ms = UINT64_MAX;
    uint32_t processes = c->fleet->process_count;

    c->fleet->failed = false;
    c->faults = (struct fault_set){ 0 };
    pl__faults_add(&c->faults, pl__str(c->fault), FAULT_ON_CLUSTER, POD_API_SERVER);
    etcd_end(c);
    if (c->there && c->kcp_there && !c->furnished)
        furnish(c);
    if (c->there && c->deleting) {
        cluster_end(c);
    } else if (c->there) {
        scale(c, now_ms, &due_ms);
        for (int i = 0; i < SETS_MAX; i++) {
            if (c->sets[i].there && c->sets[i].is_deployment)
                deployment_step(c, &c->sets[i]);
            else if (c->sets[i].there)
                set_step(c, &c->sets[i]);
        }
    }
    for (struct machine *m = c->machines; m; m = m->next)
        pl__machine_step(m, now_ms, &due_ms);
    etcd_begin(c);
    if (c->etcd && c->etcd->found)
        members_sweep(c);
    if (c->etcd) {
        pl__ensemble_ghost(c->etcd, c->faults.flags & FAULT_ETCD_GHOST);
        pl__ensemble_step(c->etcd, now_ms, &due_ms);
    }
    statuses_keep(c);
    if (c->fleet->process_count != processes)
        pl__due(&due_ms, now_ms + 1); /* its Pod has not heard of it yet */
    if (c->fleet->failed)
        pl__due(&due_ms, now_ms + RETRY_MS);
    /* What was written above has poked us; those events said nothing new. */
    c->due_ms = due_ms;
}
