/* A Machine's way from new to gone, a step at a time, and what the health check says of it. */
#include "fleet/internal.h"

#include <stdlib.h>

#include "base/time.h"

enum { MEMBER_RETRY_MS = 1000 }; /* when a member cannot be made */

/* --- faults ----------------------------------------------------------------------------------------------- */

/* The Node and the Pods of "gone" cannot carry the fault: the Machine does from then on. */
static void fault_move(struct machine *m, const char *word)
{
    struct pl_fleet *fleet = m->cluster->fleet;
    struct pl_buf b = pl__text(fleet);
    struct pl_json_writer w;

    if (strlen(m->fault) + strlen(word) + 1 >= FAULT_BYTES) {
        if (!m->fault_full)
            pl__fleet_say(fleet, "Machine %s: its annotation has no room for %s", m->name, word);
        m->fault_full = true;
        return;
    }
    struct pl_str text =
        pl__str_format(&fleet->scratch, "%s%s%s", m->fault, m->fault[0] ? "," : "", word);
    pl__buf_add_lit(&b, "{\"metadata\":{\"annotations\":{\"" FLEET_FAULT_ANNOTATION "\":");
    pl__json_writer_init(&w, &b, JSON_COMPACT);
    pl__json_write_str(&w, text);
    pl__buf_add_lit(&b, "}}}");
    m->fault_full = false;
    pl__call(fleet, NULL,
             (struct pl_fleet_call){ .verb = FLEET_MERGE,
                                     .group_version = CAPI,
                                     .plural = "machines",
                                     .ns = pl__str(fleet->options.ns),
                                     .name = pl__str(m->name),
                                     .manager = PL_STR("faults"),
                                     .body = pl__buf_str(&b) });
}

/* What the annotation of the Machine says. */
static struct fault_set own_faults(const struct machine *m)
{
    struct fault_set set = { 0 };

    pl__faults_add(&set, pl__str(m->fault), FAULT_ON_MACHINE, POD_API_SERVER);
    return set;
}

/* What those of its Node and its Pods say. */
static void workload_faults_add(const struct machine *m, struct fault_set *set)
{
    pl__faults_add(set, pl__str(m->workload_fault[NODE_FAULT]), FAULT_ON_NODE, POD_API_SERVER);
    for (int i = 0; i < POD_COUNT; i++)
        pl__faults_add(set, pl__str(m->workload_fault[i]), FAULT_ON_POD, (enum component)i);
}

static void faults_move(struct machine *m)
{
    struct fault_set set = { 0 };

    workload_faults_add(m, &set);
    if (set.flags & FAULT_NODE_GONE && !(own_faults(m).flags & FAULT_NODE_GONE))
        fault_move(m, "node-gone");
    for (int i = 0; i < POD_COUNT; i++) {
        struct pl_str name = pl__static_pods[i];
        if (set.pod_gone & 1 << i && !(own_faults(m).pod_gone & 1 << i))
            fault_move(m, pl__str_format(&m->cluster->fleet->scratch, "pod-gone:%.*s",
                                         (int)name.len - 1, name.ptr)
                              .ptr);
    }
}

void pl__machine_faults(struct machine *m)
{
    static const uint32_t member_faults = FAULT_ETCD_STOP | FAULT_ETCD_KILL | FAULT_ETCD_NOSPACE |
                                          FAULT_ETCD_LEARNER | FAULT_NETWORK_CUT |
                                          FAULT_BAD_CERTIFICATE;

    faults_move(m);
    struct fault_set own = own_faults(m);
    m->faults = own;
    workload_faults_add(m, &m->faults);
    /* Nothing is removed before what is said of it has moved. */
    m->faults.pod_gone = own.pod_gone;
    m->faults.flags &= ~(uint32_t)FAULT_NODE_GONE | own.flags;
    m->faults.flags |= m->cluster->faults.flags & FAULT_BAD_CERTIFICATE;
    if (m->member && !m->member->ensemble->is_shared)
        m->member->faults = m->faults.flags & member_faults;
}

/* --- its status --------------------------------------------------------------------------------------------- */

struct say {
    const char *type;
    char status; /* 0: not said */
    const char *reason;
    const char *message;
};

static const char *deleting_reason(const struct machine *m)
{
    static const char *const reasons[] = {
        [STAYS] = "DrainingNode",
        [AT_DRAIN_HOOK] = "WaitingForPreDrainHook",
        [DRAINS] = "DrainingNode",
        [AT_HOOK] = "WaitingForPreTerminateHook",
        [ENDS] = "WaitingForInfrastructureDeletion",
    };

    return reasons[m->leave];
}

static const char *machine_phase(const struct machine *m)
{
    if (m->leave != STAYS)
        return "Deleting";
    if (m->phase == MACHINE_RUNS)
        return "Running";
    return m->phase == MACHINE_BOOTS ? "Provisioned" : "Provisioning";
}

static void conditions_add(struct machine *m, struct pl_buf *b)
{
    bool made = m->phase >= MACHINE_BOOTS, runs = m->phase == MACHINE_RUNS,
         ready = pl__machine_ready(m);
    char node = !runs ? 'F' : !m->node_there ? 'F' : m->lost ? 'U' : 'T';
    const char *node_reason = !runs            ? "NodeDoesNotExist"
                              : !m->node_there ? "NodeDeleted"
                              : m->lost        ? "NodeReadyUnknown"
                                               : "NodeReady";
    char leaving = m->leave == STAYS ? 'F' : 'T', all = ready && m->leave == STAYS ? 'T' : 'F';
    const struct say says[MACHINE_CONDITIONS] = {
        { "InfrastructureReady", made ? 'T' : 'F', made ? "Ready" : "NotReady", "" },
        { "BootstrapConfigReady", made ? 'T' : 'F', made ? "Ready" : "NotReady", "" },
        { "NodeReady", node, node_reason, "" },
        { "NodeHealthy", node, node == 'T' ? "NodeHealthy" : node_reason, "" },
        { "Ready", all, all == 'T' ? "Ready" : "NotReady", "" },
        { "Available", all, all == 'T' ? "Available" : "NotReady", "" },
        { "UpToDate", 'T', "UpToDate", "" },
        { "Deleting", leaving, leaving == 'T' ? deleting_reason(m) : "NotDeleting", "" },
    };

    for (int i = 0; i < MACHINE_CONDITIONS; i++)
        pl__condition_show(b, &m->shown[i], says[i].type, says[i].status, says[i].reason,
                           says[i].message);
}

static void status_keep(struct machine *m)
{
    struct pl_fleet *fleet = m->cluster->fleet;
    struct pl_buf b = pl__text(fleet);

    pl__object_open(&b, fleet, CAPI, "Machine", m->name, true);
    pl__buf_printf(&b, "},\"status\":{\"phase\":\"%s\"", machine_phase(m));
    if (m->phase >= MACHINE_BOOTS)
        pl__buf_add_lit(&b, ",\"initialization\":{\"infrastructureProvisioned\":true,"
                            "\"bootstrapDataSecretCreated\":true}");
    if (m->phase == MACHINE_RUNS)
        pl__buf_printf(&b, ",\"nodeRef\":{\"name\":\"%s\"}", m->node);
    if (m->leave >= DRAINS && m->drain_started_ms) {
        pl__buf_add_lit(&b, ",\"deletion\":{\"nodeDrainStartTime\":\"");
        pl__time_add(&b, m->drain_started_ms);
        pl__buf_add_lit(&b, "\"}");
    }
    pl__buf_add_lit(&b, ",\"conditions\":[");
    conditions_add(m, &b);
    pl__buf_add_lit(&b, "]}}");
    pl__status_apply(fleet, CAPI, "machines", m->name, BY_MACHINE, &b, &m->status_hash);
}

static int patch(struct machine *m, const char *group_version, const char *plural, const char *name,
                 const char *subresource, struct pl_str body)
{
    struct pl_fleet *fleet = m->cluster->fleet;

    return pl__call(fleet, NULL,
                    (struct pl_fleet_call){ .verb = FLEET_MERGE,
                                            .group_version = group_version,
                                            .plural = plural,
                                            .ns = pl__str(fleet->options.ns),
                                            .name = pl__str(name),
                                            .subresource = subresource,
                                            .manager = PL_STR(BY_MACHINE),
                                            .body = body });
}

/* --- it comes ------------------------------------------------------------------------------------------------- */

static void enter(struct machine *m, enum machine_phase phase, uint64_t now_ms)
{
    m->phase = phase;
    m->since_ms = now_ms;
}

/* Its Node is named like it; with one etcd for all, like the first of its members that no other Machine of the
 * cluster has. */
static bool node_choose(struct machine *m)
{
    struct ensemble *shared = m->cluster->fleet->shared;

    if (m->node[0])
        return true;
    if (!shared || !m->control_plane || !pl__cluster_has_own_etcd(m->cluster)) {
        NAME_SET(m->node, pl__str(m->name));
        return true;
    }
    for (int i = 0; i < MEMBERS_MAX; i++) {
        const struct member *member = &shared->members[i];
        bool taken = member->state == MEMBER_NONE || member->is_ghost;
        for (struct machine *other = m->cluster->machines; other && !taken; other = other->next)
            taken = strcmp(other->node, member->name) == 0;
        if (!taken) {
            NAME_SET(m->node, pl__str(member->name));
            return true;
        }
    }
    return false;
}

/* What the infrastructure and bootstrap providers say, then the Machine. */
static void provision(struct machine *m, uint64_t now_ms)
{
    struct pl_arena *a = &m->cluster->fleet->scratch;
    struct pl_str provider = pl__str_format(
        a, "{\"spec\":{\"providerID\":\"dev:///%s\",\"bootstrap\":{\"dataSecretName\":\"%s\"}}}",
        m->node, m->name);

    if (m->infra[0]) {
        patch(m, INFRASTRUCTURE, "devmachines", m->infra, NULL,
              pl__str_format(a, "{\"spec\":{\"providerID\":\"dev:///%s\"}}", m->node));
        patch(m, INFRASTRUCTURE, "devmachines", m->infra, "status",
              PL_STR("{\"status\":{\"initialization\":{\"provisioned\":true}}}"));
    }
    if (m->config[0])
        patch(m, BOOTSTRAP, "kubeadmconfigs", m->config, "status",
              pl__str_format(a,
                             "{\"status\":{\"initialization\":{\"dataSecretCreated\":true},"
                             "\"dataSecretName\":\"%s\"}}",
                             m->name));
    if (patch(m, CAPI, "machines", m->name, NULL, provider) < 300)
        enter(m, MACHINE_BOOTS, now_ms);
}

static void come(struct machine *m, uint64_t now_ms, uint64_t *due_ms)
{
    const struct pl_fleet_options *options = &m->cluster->fleet->options;
    uint64_t up_ms = m->since_ms + options->boot_ms;

    if (!m->has_finalizer)
        patch(m, CAPI, "machines", m->name, NULL,
              pl__finalizers_text(m->cluster->fleet, m->version, m->finalizers, MACHINE_FINALIZER));
    if (now_ms < up_ms) {
        pl__due(due_ms, up_ms);
    } else if (node_choose(m)) {
        provision(m, now_ms);
    } else if (!m->waits) {
        m->waits = true;
        pl__fleet_say(m->cluster->fleet,
                      "Machine %s waits: the etcd that all clusters share has a member for %u "
                      "control plane Machines of each",
                      m->name, options->replicas);
    }
}

/* With an etcd of its own, it runs when its member votes: that is when kubeadm is done. */
static void boot(struct machine *m, uint64_t now_ms, uint64_t *due_ms)
{
    struct ensemble *etcd;

    if (m->faults.flags & (FAULT_KUBELET_DOWN | FAULT_NETWORK_CUT))
        return;
    if (m->control_plane && pl__cluster_has_own_etcd(m->cluster)) {
        etcd = pl__cluster_etcd(m->cluster);
        if (etcd && !m->member)
            m->member = pl__ensemble_member(etcd, m->node);
        if (!m->member)
            pl__due(due_ms, now_ms + MEMBER_RETRY_MS);
        if (!m->member || m->member->state != MEMBER_VOTES)
            return;
    }
    enter(m, MACHINE_RUNS, now_ms);
    pl__fleet_say(m->cluster->fleet, "Machine %s runs, Node %s", m->name, m->node);
}

/* --- it goes ---------------------------------------------------------------------------------------------------- */

static void leave(struct machine *m, enum machine_leave to, uint64_t now_ms)
{
    if (m->leave == to)
        return;
    m->leave = to;
    m->since_ms = now_ms;
    pl__fleet_say(m->cluster->fleet, "Machine %s: %s", m->name, deleting_reason(m));
}

/* The machine itself is switched off. Of a shared etcd nothing is. */
static void end(struct machine *m)
{
    struct pl_fleet *fleet = m->cluster->fleet;
    struct pl_fleet_call call = { .verb = FLEET_DELETE, .ns = pl__str(fleet->options.ns) };

    if (m->member && !m->member->ensemble->is_shared)
        pl__member_abandon(m->member);
    m->member = NULL;
    pl__node_remove(m);
    call.group_version = INFRASTRUCTURE;
    call.plural = "devmachines";
    call.name = pl__str(m->infra);
    if (m->infra[0])
        pl__call(fleet, NULL, call);
    call.group_version = BOOTSTRAP;
    call.plural = "kubeadmconfigs";
    call.name = pl__str(m->config);
    if (m->config[0])
        pl__call(fleet, NULL, call);
    int status = patch(m, CAPI, "machines", m->name, NULL,
                       pl__finalizers_text(fleet, m->version, m->finalizers, NULL));
    m->ended = status < 300 || status == 404; /* the object stays until others let go of it */
}

static void go(struct machine *m, uint64_t now_ms, uint64_t *due_ms)
{
    uint64_t drained_ms;

    if (m->leave < DRAINS && m->drain_hooks) {
        leave(m, AT_DRAIN_HOOK, now_ms);
    } else if (m->leave < DRAINS) {
        leave(m, DRAINS, now_ms);
        m->drain_started_ms = pl__loop_wall_ms();
    }
    drained_ms = m->since_ms + m->cluster->fleet->options.drain_ms;
    if (m->leave == DRAINS && now_ms < drained_ms)
        pl__due(due_ms, drained_ms);
    else if (m->leave == DRAINS)
        leave(m, m->hooks ? AT_HOOK : ENDS, now_ms);
    if (m->leave == AT_HOOK && !m->hooks)
        leave(m, ENDS, now_ms);
}

/* --- its health ----------------------------------------------------------------------------------------------------- */

static bool is_ill(const struct machine *m)
{
    if (m->skip_remediation || m->cluster->deleting)
        return false;
    if (m->remediate || m->faults.flags & FAULT_UNHEALTHY)
        return true;
    return m->phase == MACHINE_RUNS ? m->lost || !m->node_there
                                    : m->faults.flags & (FAULT_KUBELET_DOWN | FAULT_NETWORK_CUT);
}

/* What the owner wrote about its remediation stays: only what is missing is said. */
static void health_write(struct machine *m, bool ill)
{
    struct pl_fleet *fleet = m->cluster->fleet;
    struct pl_buf b = pl__text(fleet);
    int64_t now_ms = pl__loop_wall_ms();
    uint64_t none = 0; /* others write these conditions, too: what we wrote last says nothing */
    const char *reason = m->remediate               ? "HasRemediateAnnotation"
                         : m->node_there && m->lost ? "UnhealthyNode"
                         : m->phase != MACHINE_RUNS ? "NodeStartupTimeout"
                         : !m->node_there           ? "NodeDeleted"
                                                    : "UnhealthyMachine";

    pl__object_open(&b, fleet, CAPI, "Machine", m->name, true);
    pl__buf_add_lit(&b, "},\"status\":{\"conditions\":[");
    if (ill) {
        pl__condition_add(&b, "HealthCheckSucceeded", 'F', reason, "Health check failed", now_ms);
        pl__condition_add(&b, "OwnerRemediated", 'F', "WaitingForRemediation",
                          "Waiting for remediation", now_ms);
    } else {
        pl__condition_add(&b, "HealthCheckSucceeded", 'T', "HealthCheckSucceeded", "", now_ms);
    }
    pl__buf_add_lit(&b, "]}}");
    pl__status_apply(fleet, CAPI, "machines", m->name, BY_HEALTH_CHECK, &b, &none);
    if (ill)
        pl__fleet_say(fleet, "Machine %s is unhealthy: %s", m->name, reason);
}

static void health_check(struct machine *m, uint64_t now_ms, uint64_t *due_ms)
{
    bool ill = is_ill(m);
    uint64_t said_ms;

    if (ill && !m->ill)
        m->ill_ms = now_ms;
    m->ill = ill;
    said_ms = m->ill_ms + (m->remediate || m->faults.flags & FAULT_UNHEALTHY
                               ? 0
                               : m->cluster->fleet->options.patience_ms);
    if (!ill) {
        if (!m->health_true && m->phase == MACHINE_RUNS)
            health_write(m, false);
    } else if (now_ms < said_ms) {
        pl__due(due_ms, said_ms);
    } else if (!m->health_false || !m->owner_false) {
        health_write(m, true);
    }
}

/* --- all of it -------------------------------------------------------------------------------------------------------- */

/* After a restart. Who is about to go gets no new member. */
static void member_meet(struct machine *m)
{
    struct ensemble *etcd = pl__cluster_etcd(m->cluster);

    if (!etcd || m->leave == ENDS)
        return;
    m->member = m->deleting || etcd->is_shared ? pl__ensemble_find(etcd, m->node)
                                               : pl__ensemble_member(etcd, m->node);
}

void pl__machine_step(struct machine *m, uint64_t now_ms, uint64_t *due_ms)
{
    /* Pausing is for controllers: the machine itself, its kubelet and its etcd know nothing of it. */
    bool paused = m->paused || m->cluster->paused;

    if (m->ended)
        return;
    if (m->phase == MACHINE_RUNS && m->control_plane && !m->member)
        member_meet(m);
    pl__machine_faults(m);
    if (m->phase == MACHINE_NEW && !m->deleting && !paused)
        come(m, now_ms, due_ms);
    if (m->phase == MACHINE_BOOTS && !m->deleting)
        boot(m, now_ms, due_ms);
    if (m->deleting && !paused)
        go(m, now_ms, due_ms);
    if (m->phase == MACHINE_RUNS && m->leave != ENDS)
        pl__node_step(m, now_ms, due_ms);
    if (!m->deleting && !paused)
        health_check(m, now_ms, due_ms);
    status_keep(m);
    if (m->leave == ENDS)
        end(m);
}

void pl__machine_free(struct machine *m)
{
    struct machine **at = &m->cluster->machines;

    /* Gone without having been seen to go: its finalizer was taken off by somebody. */
    if (m->leave != ENDS) {
        if (m->member && !m->member->ensemble->is_shared)
            pl__member_abandon(m->member);
        pl__node_remove(m);
    }
    while (*at != m)
        at = &(*at)->next;
    *at = m->next;
    m->cluster->machine_count--;
    m->cluster->settled_ms = pl__loop_mono_ms(m->cluster->fleet->loop) + FLEET_SETTLE_MS;
    pl__fleet_say(m->cluster->fleet, "Machine %s is gone", m->name);
    free(m->finalizers);
    free(m->taints);
    free(m);
}
