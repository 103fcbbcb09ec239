/* APIServerPodHealthy, ControllerManagerPodHealthy, SchedulerPodHealthy and EtcdPodHealthy of a Machine:
 * the pod status mapping of kcp-control-plane-components-healthy.md (note 3), read with semantics.md
 * section 4, whose list numbers are the row ids. Number 6 is a table of its own there, so several rows
 * share that id. */
#include "tables/tables.h"

enum {
    NODES_FAILED,
    HAS_NODE,
    HAS_PROVIDER_ID,
    NODE_LISTED,
    DELETING,
    UNREACHABLE,
    READY_UNKNOWN,
    READ_FAILED,
    FOUND,
    PENDING,
    RUNNING,
    ENDED,
    PHASE_IS_UNKNOWN,
    SCHEDULED,
    INITIALIZED,
    READY,
    WAITING,
    CRASHED,
    TERMINATED,
};

static const char *const facts[] = {
    [NODES_FAILED] = "listing Nodes failed",
    [HAS_NODE] = "the Machine has a Node",
    [HAS_PROVIDER_ID] = "the Machine has a providerID",
    [NODE_LISTED] = "its Node is in the list",
    [DELETING] = "the Machine is deleting",
    [UNREACHABLE] = "its Node has the unreachable taint",
    [READY_UNKNOWN] = "its Node's Ready is Unknown",
    [READ_FAILED] = "reading the Pod failed",
    [FOUND] = "the Pod exists",
    [PENDING] = "the Pod is Pending",
    [RUNNING] = "the Pod is Running",
    [ENDED] = "the Pod Succeeded or Failed",
    [PHASE_IS_UNKNOWN] = "the Pod's phase is Unknown",
    [SCHEDULED] = "PodScheduled is True",
    [INITIALIZED] = "Initialized is True",
    [READY] = "Ready is True",
    [WAITING] = "a container is waiting",
    [CRASHED] = "a container's last exit code was not 0",
    [TERMINATED] = "a container is terminated",
};

uint32_t pl__pod_facts(const struct pl_pod_facts *f)
{
    return (uint32_t)f->nodes_failed << NODES_FAILED | (uint32_t)f->has_node << HAS_NODE |
           (uint32_t)f->has_provider_id << HAS_PROVIDER_ID |
           (uint32_t)f->node_listed << NODE_LISTED | (uint32_t)f->deleting << DELETING |
           (uint32_t)f->unreachable << UNREACHABLE | (uint32_t)f->ready_unknown << READY_UNKNOWN |
           (uint32_t)f->read_failed << READ_FAILED | (uint32_t)f->found << FOUND |
           (uint32_t)(f->phase == PHASE_PENDING) << PENDING |
           (uint32_t)(f->phase == PHASE_RUNNING) << RUNNING |
           (uint32_t)(f->phase == PHASE_ENDED) << ENDED |
           (uint32_t)(f->phase == PHASE_UNKNOWN) << PHASE_IS_UNKNOWN |
           (uint32_t)f->scheduled << SCHEDULED | (uint32_t)f->initialized << INITIALIZED |
           (uint32_t)f->ready << READY | (uint32_t)f->waiting << WAITING |
           (uint32_t)f->crashed << CRASHED | (uint32_t)f->terminated << TERMINATED;
}

/* The documents' reasons are Cluster API's with "Pod" in front. */
#define POD(status, reason, message)       \
    {                                      \
        { status, "Pod" reason, message }, \
        {                                  \
            status, reason, message        \
        }                                  \
    }

/* clang-format off */
static const struct pl_rule rules[] = {
    /*                                                           fail node prov list dele unre unkn read foun pend run  end  unk  sche init redy wait cras term */
    { "PodHealthy/0", "failed to list control plane Nodes in workload cluster",
      GUARD(Y),                                                  POD(UNKNOWN, "InspectionFailed", "Failed to get the Node hosting the Pod: <error>"),          NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "PodHealthy/1", "no Node yet, spec.providerID is set",
      GUARD(N, N, Y),                                            POD(UNKNOWN, "InspectionFailed", MSG_WAIT_FOR_NODE),                                          NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "PodHealthy/1", "no Node yet, no spec.providerID",
      GUARD(N, N, N),                                            POD(UNKNOWN, "InspectionFailed", MSG_WAIT_FOR_PROVIDER_ID),                                   NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "PodHealthy/2", "its Node does not exist",
      GUARD(N, Y, x, N),                                         POD(UNKNOWN, "InspectionFailed", "Node <node> does not exist"),                               NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "PodHealthy/3", "the Machine is deleting",
      GUARD(N, Y, x, Y, Y),                                      POD(FALSE_,  "Deleting",         MSG_MACHINE_DELETING),                                       NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "PodHealthy/4", "Node unreachable taint",
      GUARD(N, Y, x, Y, N, Y),                                   POD(UNKNOWN, "InspectionFailed", "Node <node> is unreachable"),                               NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "PodHealthy/5", "Node Ready=Unknown",
      GUARD(N, Y, x, Y, N, N, Y),                                POD(UNKNOWN, "InspectionFailed", "Node Ready condition is Unknown, Pod data might be stale"), NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "PodHealthy/6", "reading the Pod failed",
      GUARD(N, Y, x, Y, N, N, N, Y),                             POD(UNKNOWN, "InspectionFailed", MSG_SEE_LOGS),                                               NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "PodHealthy/6", "Pod not found",
      GUARD(N, Y, x, Y, N, N, N, N, N),                          POD(FALSE_,  "DoesNotExist",     "Pod does not exist"),                                       NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "PodHealthy/6", "Pending, PodScheduled not True",
      GUARD(N, Y, x, Y, N, N, N, N, Y, Y, x, x, x, N),           POD(FALSE_,  "Provisioning",     "Waiting to be scheduled"),                                  NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "PodHealthy/6", "Pending, Initialized not True",
      GUARD(N, Y, x, Y, N, N, N, N, Y, Y, x, x, x, Y, N),        POD(FALSE_,  "Provisioning",     "Running init containers"),                                  NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "PodHealthy/6", "Pending otherwise",
      GUARD(N, Y, x, Y, N, N, N, N, Y, Y, x, x, x, Y, Y),        POD(FALSE_,  "Provisioning",     ""),                                                         NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "PodHealthy/6", "Running phase + PodReady=True",
      GUARD(N, Y, x, Y, N, N, N, N, Y, N, Y, x, x, x, x, Y),     POD(TRUE_,   "Running",          ""),                                                         NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "PodHealthy/6", "Running, a container waiting, one has crashed",
      GUARD(N, Y, x, Y, N, N, N, N, Y, N, Y, x, x, x, x, N, Y, Y), POD(FALSE_, "Failed",          "<waiting reasons>"),                                        NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "PodHealthy/6", "Running, a container waiting",
      GUARD(N, Y, x, Y, N, N, N, N, Y, N, Y, x, x, x, x, N, Y, N), POD(FALSE_, "Provisioning",    "<waiting reasons>"),                                        NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "PodHealthy/6", "Running, a container terminated",
      GUARD(N, Y, x, Y, N, N, N, N, Y, N, Y, x, x, x, x, N, N, x, Y), POD(FALSE_, "Failed",       "<terminated reasons>"),                                     NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "PodHealthy/6", "Running otherwise",
      GUARD(N, Y, x, Y, N, N, N, N, Y, N, Y, x, x, x, x, N, N, x, N), POD(FALSE_, "Provisioning", "Waiting for startup or readiness probes"),                  NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "PodHealthy/6", "Failed/Succeeded phase",
      GUARD(N, Y, x, Y, N, N, N, N, Y, N, N, Y),                 POD(FALSE_,  "Failed",           "All the containers have been terminated"),                  NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "PodHealthy/6", "Unknown phase",
      GUARD(N, Y, x, Y, N, N, N, N, Y, N, N, N, Y),              POD(UNKNOWN, "InspectionFailed", "Pod is reporting Unknown status"),                          NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "PodHealthy/6", "any other or empty phase",
      GUARD(N, Y, x, Y, N, N, N, N, Y, N, N, N, N),              NOTHING,                                                                                      NEXT_NONE, LEAVE,     EVERY_PROFILE, 0 },
};
/* clang-format on */

/* A Pod is in at most one phase. */
static bool possible(uint32_t f)
{
    uint32_t phases =
        (f >> PENDING & 1) + (f >> RUNNING & 1) + (f >> ENDED & 1) + (f >> PHASE_IS_UNKNOWN & 1);
    return phases <= 1;
}

const struct pl_table pl__pod_healthy = {
    .name = "PodHealthy",
    .kind = "Machine",
    .summary =
        "APIServerPodHealthy, ControllerManagerPodHealthy, SchedulerPodHealthy and EtcdPodHealthy: "
        "does the static Pod of that component run and is it ready?",
    PL_TABLE_FACTS(facts),
    PL_TABLE_RULES(rules),
    .possible = possible,
};
