/* A machine's Node and static Pods, as its kubelet and the cluster's node controller keep them. A silent kubelet
 * writes nothing: the Pods stay as they were last seen, and after a while the node controller calls the Node lost. */
#include "fleet/internal.h"

#include "base/time.h"

enum pod_state { POD_RUNS = 1, POD_CRASHES, POD_PENDS, POD_HANGS };

enum { MIRROR_MS = 400 }; /* until the kubelet makes a Pod again that somebody deleted */

static const char *component_name(struct pl_fleet *fleet, int component)
{
    struct pl_str name = pl__static_pods[component];

    name.len--; /* its '-' */
    return pl__str_copy(&fleet->scratch, name).ptr;
}

/* --- the Node ------------------------------------------------------------------------------------------ */

static const char *node_address(const struct machine *m)
{
    return m->member ? m->member->host : "127.0.0.1";
}

/* All but the status. */
static struct pl_str node_text(struct machine *m)
{
    struct pl_fleet *fleet = m->cluster->fleet;
    struct pl_buf b = pl__text(fleet);

    pl__object_open(&b, fleet, "v1", "Node", m->node, false);
    pl__buf_printf(&b,
                   ",\"labels\":{\"kubernetes.io/hostname\":\"%s\",\"kubernetes.io/os\":"
                   "\"linux\"%s}",
                   m->node,
                   m->control_plane ? ",\"node-role.kubernetes.io/control-plane\":\"\"" : "");
    pl__buf_printf(&b,
                   ",\"annotations\":{\"cluster.x-k8s.io/cluster-name\":\"%s\","
                   "\"cluster.x-k8s.io/cluster-namespace\":\"%s\",\"cluster.x-k8s.io/machine\":"
                   "\"%s\"}},\"spec\":{\"providerID\":\"dev:///%s\"",
                   m->cluster->name, fleet->options.ns, m->name, m->node);
    if (m->leave >= DRAINS)
        pl__buf_add_lit(&b, ",\"unschedulable\":true");
    /* kubeadm's; whoever takes it off later means it. */
    if (m->control_plane && !m->node_made)
        pl__buf_add_lit(&b, ",\"taints\":[{\"key\":\"node-role.kubernetes.io/control-plane\","
                            "\"effect\":\"NoSchedule\"}]");
    pl__buf_add_lit(&b, "}}");
    return pl__buf_str(&b);
}

static void node_condition_add(struct pl_buf *b, const struct machine *m, const char *type,
                               const char *status, const char *reason, bool last)
{
    pl__buf_printf(b,
                   "{\"type\":\"%s\",\"status\":\"%s\",\"reason\":\"%s\",\"message\":\"%s\","
                   "\"lastHeartbeatTime\":\"",
                   type, status, reason, m->lost ? "Kubelet stopped posting node status." : "");
    pl__time_add(b, m->node_changed_ms);
    pl__buf_add_lit(b, "\",\"lastTransitionTime\":\"");
    pl__time_add(b, m->node_changed_ms);
    pl__buf_printf(b, "\"}%s", last ? "" : ",");
}

static struct pl_str node_status_text(struct machine *m)
{
    struct pl_fleet *fleet = m->cluster->fleet;
    struct pl_buf b = pl__text(fleet);
    const char *lost = m->lost ? "NodeStatusUnknown" : NULL, *unknown = m->lost ? "Unknown" : NULL;

    pl__buf_printf(&b,
                   "{\"status\":{\"addresses\":[{\"type\":\"InternalIP\",\"address\":\"%s\"},"
                   "{\"type\":\"Hostname\",\"address\":\"%s\"}],\"nodeInfo\":{"
                   "\"kubeletVersion\":\"%s\",\"osImage\":\"plimsoll playground\"},"
                   "\"conditions\":[",
                   node_address(m), m->node, fleet->options.version);
    node_condition_add(&b, m, "MemoryPressure", unknown ? unknown : "False",
                       lost ? lost : "KubeletHasSufficientMemory", false);
    node_condition_add(&b, m, "DiskPressure", unknown ? unknown : "False",
                       lost ? lost : "KubeletHasNoDiskPressure", false);
    node_condition_add(&b, m, "Ready", unknown ? unknown : "True", lost ? lost : "KubeletReady",
                       true);
    pl__buf_add_lit(&b, "]}}");
    return pl__buf_str(&b);
}

static void node_delete(struct machine *m)
{
    if (!m->node_there)
        return;
    int status = pl__call(m->cluster->fleet, m->cluster,
                          (struct pl_fleet_call){ .verb = FLEET_DELETE,
                                                  .group_version = "v1",
                                                  .plural = "nodes",
                                                  .name = pl__str(m->node) });
    if (status < 300 || status == 404)
        m->node_there = false;
    m->node_hash = m->node_status_hash = 0;
}

/* As the node controller does it: two of the taints are its own. Refused when others have changed the Node since it
 * was seen; that is seen next. */
static void node_taint(struct machine *m)
{
    struct pl_buf b = pl__text(m->cluster->fleet);

    if (m->node_tainted == m->lost)
        return;
    pl__buf_printf(&b, "{\"metadata\":{\"resourceVersion\":\"%llu\"},\"spec\":{\"taints\":[%s",
                   (unsigned long long)m->node_version, m->taints ? m->taints : "");
    if (m->lost)
        pl__buf_printf(&b,
                       "%s{\"key\":\"" TAINT_UNREACHABLE "\",\"effect\":\"NoSchedule\"},"
                       "{\"key\":\"" TAINT_UNREACHABLE "\",\"effect\":\"NoExecute\"}",
                       m->taints ? "," : "");
    pl__buf_add_lit(&b, "]}}");
    pl__call(m->cluster->fleet, m->cluster,
             (struct pl_fleet_call){ .verb = FLEET_MERGE,
                                     .group_version = "v1",
                                     .plural = "nodes",
                                     .name = pl__str(m->node),
                                     .manager = PL_STR("node-controller"),
                                     .body = pl__buf_str(&b) });
}

static void node_register(struct machine *m)
{
    struct pl_fleet_call call = { .verb = FLEET_CREATE,
                                  .group_version = "v1",
                                  .plural = "nodes",
                                  .name = pl__str(m->node),
                                  .manager = PL_STR("kubelet"),
                                  .body = node_text(m) };
    int status = pl__call(m->cluster->fleet, m->cluster, call);

    if (status >= 300 && status != 409)
        return;
    m->node_made = m->node_there = true;
    m->node_hash = m->node_status_hash = 0;
}

static void node_keep(struct machine *m)
{
    struct pl_fleet_call call = { .verb = FLEET_MERGE,
                                  .group_version = "v1",
                                  .plural = "nodes",
                                  .name = pl__str(m->node),
                                  .manager = PL_STR("kubelet") };

    if (m->faults.flags & FAULT_NODE_GONE) {
        node_delete(m);
        m->node_made = false;
        return;
    }
    if (!m->node_made && !m->silent)
        node_register(m);
    if (!m->node_there)
        return;
    if (m->lost != m->node_shown_lost || !m->node_changed_ms) {
        m->node_shown_lost = m->lost;
        m->node_changed_ms = pl__loop_wall_ms();
    }
    call.body = node_text(m);
    pl__call_changed(m->cluster->fleet, m->cluster, call, &m->node_hash);
    node_taint(m);
    call.body = node_status_text(m);
    call.subresource = "status";
    pl__call_changed(m->cluster->fleet, m->cluster, call, &m->node_status_hash);
}

/* --- Pods ------------------------------------------------------------------------------------------------ */

static enum pod_state pod_state(const struct machine *m, int component)
{
    int bit = 1 << component;

    if (m->faults.pod_pending & bit)
        return POD_PENDS;
    if (m->faults.pod_crash & bit ||
        (component == POD_ETCD && m->member && !pl__member_runs(m->member)))
        return POD_CRASHES;
    /* It runs, and its readiness probe gets no answer. */
    if (component == POD_ETCD && m->faults.flags & FAULT_ETCD_STOP)
        return POD_HANGS;
    return POD_RUNS;
}

static void pod_create(struct machine *m, int component, struct pl_fleet_call call)
{
    struct pl_fleet *fleet = m->cluster->fleet;
    const char *name = component_name(fleet, component);
    struct pl_buf b = pl__text(fleet);

    pl__buf_printf(&b,
                   "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%.*s\","
                   "\"namespace\":\"kube-system\",\"labels\":{\"component\":\"%s\",\"tier\":"
                   "\"control-plane\"},\"annotations\":{\"kubernetes.io/config.mirror\":"
                   "\"%016llx\",\"kubernetes.io/config.source\":\"file\"",
                   PL_STR_ARG(call.name), name, (unsigned long long)++fleet->number);
    if (component == POD_ETCD)
        pl__buf_printf(&b,
                       ",\"kubeadm.kubernetes.io/etcd.advertise-client-urls\":"
                       "\"https://%s:%d\"",
                       node_address(m), (int)fleet->client_port);
    pl__buf_printf(
        &b,
        "},\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"%s\","
        "\"uid\":\"%s\",\"controller\":true}]},\"spec\":{",
        m->node, m->node_uid);
    pl__buf_printf(&b,
                   "\"nodeName\":\"%s\",\"hostNetwork\":true,\"priorityClassName\":"
                   "\"system-node-critical\",\"containers\":[{\"name\":\"%s\",\"image\":"
                   "\"registry.k8s.io/%s:playground\"}]}}",
                   m->node, name, name);
    call.verb = FLEET_CREATE;
    call.body = pl__buf_str(&b);
    int status = pl__call(fleet, m->cluster, call);
    m->pod_there[component] = status < 300 || status == 409;
    m->pod_hash[component] = 0;
}

static struct pl_str pod_status_text(struct machine *m, int component, enum pod_state state)
{
    static const char *const flags[] = { "False", "True" };
    struct pl_fleet *fleet = m->cluster->fleet;
    const char *name = component_name(fleet, component);
    struct pl_buf b = pl__text(fleet), time = pl__text(fleet);
    bool ready = state == POD_RUNS;

    pl__time_add(&time, m->pod_changed_ms[component]);
    const char *at = pl__buf_str(&time).ptr;
    pl__buf_printf(&b,
                   "{\"status\":{\"phase\":\"%s\",\"hostIP\":\"%s\",\"podIP\":\"%s\","
                   "\"startTime\":\"%s\",\"conditions\":[",
                   state == POD_PENDS ? "Pending" : "Running", node_address(m), node_address(m),
                   at);
    pl__buf_printf(&b,
                   "{\"type\":\"PodScheduled\",\"status\":\"True\",\"lastTransitionTime\":"
                   "\"%s\"},{\"type\":\"Initialized\",\"status\":\"%s\","
                   "\"lastTransitionTime\":\"%s\"},",
                   at, flags[state != POD_PENDS], at);
    pl__buf_printf(&b,
                   "{\"type\":\"ContainersReady\",\"status\":\"%s\",\"lastTransitionTime\":"
                   "\"%s\"},{\"type\":\"Ready\",\"status\":\"%s\",\"lastTransitionTime\":"
                   "\"%s\"}],",
                   flags[ready], at, flags[ready], at);
    pl__buf_printf(&b,
                   "\"containerStatuses\":[{\"name\":\"%s\",\"image\":"
                   "\"registry.k8s.io/%s:playground\",\"imageID\":\"\",\"ready\":%s,"
                   "\"restartCount\":%d,",
                   name, name, ready ? "true" : "false", state == POD_CRASHES ? 5 : 0);
    if (ready || state == POD_HANGS)
        pl__buf_printf(&b, "\"state\":{\"running\":{\"startedAt\":\"%s\"}},\"lastState\":{}", at);
    else if (state == POD_CRASHES)
        pl__buf_add_lit(&b, "\"state\":{\"waiting\":{\"reason\":\"CrashLoopBackOff\"}},"
                            "\"lastState\":{\"terminated\":{\"exitCode\":1,\"reason\":\"Error\"}}");
    else
        pl__buf_add_lit(&b, "\"state\":{\"waiting\":{\"reason\":\"ContainerCreating\"}},"
                            "\"lastState\":{}");
    pl__buf_add_lit(&b, "}]}}");
    return pl__buf_str(&b);
}

static struct pl_fleet_call pod_call(struct machine *m, int component)
{
    struct pl_str name = pl__str_format(&m->cluster->fleet->scratch, "%.*s%s",
                                        PL_STR_ARG(pl__static_pods[component]), m->node);

    return (struct pl_fleet_call){ .verb = FLEET_MERGE,
                                   .group_version = "v1",
                                   .plural = "pods",
                                   .ns = PL_STR("kube-system"),
                                   .name = name,
                                   .manager = PL_STR("kubelet") };
}

static void pod_delete(struct machine *m, int component)
{
    struct pl_fleet_call call = pod_call(m, component);

    if (!m->pod_there[component])
        return;
    call.verb = FLEET_DELETE;
    int status = pl__call(m->cluster->fleet, m->cluster, call);
    if (status < 300 || status == 404)
        m->pod_there[component] = false;
    m->pod_hash[component] = 0;
}

static void pod_keep(struct machine *m, int component, uint64_t now_ms, uint64_t *due_ms)
{
    struct pl_fleet_call call = pod_call(m, component);
    enum pod_state state = pod_state(m, component);
    uint64_t back_ms = m->pod_missing_ms[component] + MIRROR_MS;

    if (m->faults.pod_gone & 1 << component) {
        pod_delete(m, component);
        return;
    }
    if (!m->pod_there[component] && m->pod_missing_ms[component] && now_ms < back_ms) {
        pl__due(due_ms, back_ms);
        return;
    }
    /* It belongs to the Node: without one the kubelet cannot make it. */
    if (!m->pod_there[component] && m->node_there && m->node_uid[0])
        pod_create(m, component, call);
    if (state != m->pod_shown[component]) {
        m->pod_shown[component] = (uint8_t)state;
        m->pod_changed_ms[component] = pl__loop_wall_ms();
    }
    call.subresource = "status";
    call.body = pod_status_text(m, component, state);
    if (m->pod_there[component])
        pl__call_changed(m->cluster->fleet, m->cluster, call, &m->pod_hash[component]);
}

/* --- both ----------------------------------------------------------------------------------------------------- */

static int pod_count(const struct machine *m)
{
    if (!m->control_plane)
        return 0;
    return pl__cluster_has_own_etcd(m->cluster) ? POD_COUNT : POD_ETCD;
}

void pl__node_step(struct machine *m, uint64_t now_ms, uint64_t *due_ms)
{
    uint64_t lost_ms = m->silent_ms + m->cluster->fleet->options.silence_ms;
    bool silent = m->faults.flags & (FAULT_KUBELET_DOWN | FAULT_NETWORK_CUT);

    if (silent && !m->silent) {
        m->silent_ms = now_ms;
        lost_ms = now_ms + m->cluster->fleet->options.silence_ms;
    }
    m->silent = silent;
    m->lost = silent && now_ms >= lost_ms;
    if (silent && !m->lost)
        pl__due(due_ms, lost_ms);
    node_keep(m);
    for (int i = 0; i < pod_count(m) && !silent; i++)
        pod_keep(m, i, now_ms, due_ms);
}

void pl__node_remove(struct machine *m)
{
    for (int i = 0; i < POD_COUNT; i++)
        pod_delete(m, i);
    node_delete(m);
}
