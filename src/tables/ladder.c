/* The ladder in front of EtcdClusterHealthy and ControlPlaneComponentsHealthy: rungs L1 to L5 are rows
 * 1 to 5 of kcp-control-plane-components-healthy.md, read with semantics.md section 3.
 *
 * Where a rung decides, both conditions and every Machine's own get what it says; the conditions'
 * tables are not asked. */
#include "tables/tables.h"

enum {
    DELETING,
    PROVISIONED,
    ENDPOINT,
    INITIALIZED,
    NEVER_PROBED,
    FEW_FAILURES,
    GRACE_OVER,
    DOWN,
    FAILED,
};

static const char *const facts[] = {
    [DELETING] = "the KubeadmControlPlane is being deleted",
    [PROVISIONED] = "the Cluster's infrastructure is provisioned",
    [ENDPOINT] = "the Cluster has a control plane endpoint",
    [INITIALIZED] = "the control plane is initialized and Initialized is True",
    [NEVER_PROBED] = "no probe has ever succeeded",
    [FEW_FAILURES] = "fewer than 5 consecutive probe failures",
    [GRACE_OVER] = "last success and initialization are longer ago than the grace period",
    [DOWN] = "there is no connection",
    [FAILED] = "getting a client failed in another way",
};

uint32_t pl__ladder_facts(const struct pl_ladder_facts *f)
{
    return (uint32_t)f->deleting << DELETING |
           (uint32_t)f->infrastructure_provisioned << PROVISIONED |
           (uint32_t)f->endpoint_set << ENDPOINT | (uint32_t)f->initialized << INITIALIZED |
           (uint32_t)f->never_probed << NEVER_PROBED | (uint32_t)f->few_failures << FEW_FAILURES |
           (uint32_t)f->grace_over << GRACE_OVER | (uint32_t)f->down << DOWN |
           (uint32_t)f->failed << FAILED;
}

#define PROBE "<last probe>" /* "Last successful probe at ...", or nothing */

/* clang-format off */
static const struct pl_rule rules[RUNG_COUNT] = {
    /*                                                     dele infr endp init neve few  grac down fail                                                              */
    [RUNG_L00] = { "Ladder/L00", "Cluster status.initialization.infrastructureProvisioned is not true (not while deleting)",
                   GUARD(N, N),                            BOTH(UNKNOWN, "InspectionFailed", "Waiting for Cluster status.infrastructureReady to be true"), NEXT_NONE,  OVERWRITE,   EVERY_PROFILE, 0 },
    [RUNG_L0]  = { "Ladder/L0",  "Cluster has no valid spec.controlPlaneEndpoint (not while deleting)",
                   GUARD(N, x, N),                         BOTH(UNKNOWN, "InspectionFailed", "Waiting for Cluster spec.controlPlaneEndpoint to be set"),   NEXT_NONE,  OVERWRITE,   EVERY_PROFILE, 0 },
    [RUNG_L1]  = { "Ladder/L1",  "!status.initialization.controlPlaneInitialized OR Initialized condition != True",
                   GUARD(x, x, x, N),                      BOTH(UNKNOWN, "InspectionFailed", "Waiting for Cluster control plane to be initialized"),       NEXT_NONE,  OVERWRITE,   EVERY_PROFILE, 0 },
    [RUNG_L2]  = { "Ladder/L2",  "ClusterCache.LastProbeSuccessTime.IsZero() && ConsecutiveFailures < 5",
                   GUARD(x, x, x, x, Y, Y),                BOTH(UNKNOWN, "ConnectionDown",   "Remote connection not established yet"),                     NEXT_ERROR, KEEP_IF_SET, EVERY_PROFILE, 0 },
    [RUNG_L3]  = { "Ladder/L3",  "time.Since(max(LastProbeSuccessTime, Initialized.LastTransitionTime)) > RemoteConditionsGracePeriod",
                   GUARD(x, x, x, x, x, x, Y),             BOTH(UNKNOWN, "ConnectionDown",   PROBE),                                                       NEXT_ERROR, OVERWRITE,   EVERY_PROFILE, 0 },
    [RUNG_L4]  = { "Ladder/L4",  "workloadCluster connection error (ErrClusterNotConnected)",
                   GUARD(x, x, x, x, x, x, x, Y),          BOTH(UNKNOWN, "ConnectionDown",   PROBE),                                                       NEXT_ERROR, KEEP_IF_SET, EVERY_PROFILE, 0 },
    [RUNG_L5]  = { "Ladder/L5",  "workloadCluster connection error (other error)",
                   GUARD(x, x, x, x, x, x, x, N, Y),       BOTH(UNKNOWN, "InspectionFailed", MSG_SEE_LOGS),                                                NEXT_ERROR, OVERWRITE,   EVERY_PROFILE, 0 },
    [RUNG_PASSED] = { "Ladder/passed", "the workload cluster can be read: the condition's own rows decide",
                   GUARD(x, x, x, Y, x, x, N, N, N),       NOTHING,                                                                                        NEXT_NONE,  LEAVE,       EVERY_PROFILE, 0 },
};

/* The Machines' own reasons, for pods and for the etcd member. L00 and L0 leave Machines alone. */
static const struct { const char *pod[PL_PROFILE_COUNT]; const char *member; } machine_reasons[RUNG_COUNT] = {
    [RUNG_L1] = { { "PodInspectionFailed", "InspectionFailed" }, "InspectionFailed" },
    [RUNG_L2] = { { "PodConnectionDown",   "ConnectionDown"   }, "ConnectionDown" },
    [RUNG_L3] = { { "PodConnectionDown",   "ConnectionDown"   }, "ConnectionDown" },
    [RUNG_L4] = { { "PodConnectionDown",   "ConnectionDown"   }, "ConnectionDown" },
    [RUNG_L5] = { { "PodInspectionFailed", "InspectionFailed" }, "InspectionFailed" },
};
/* clang-format on */

const char *pl__ladder_pod_reason(int rung, enum pl_profile profile)
{
    return machine_reasons[rung].pod[profile];
}

const char *pl__ladder_member_reason(int rung)
{
    return machine_reasons[rung].member;
}

/* A connection is either down or failed, not both. */
static bool possible(uint32_t f)
{
    return !((f >> DOWN & 1) && (f >> FAILED & 1));
}

const struct pl_table pl__ladder = {
    .name = "Ladder",
    .kind = "KubeadmControlPlane",
    .summary =
        "What is asked before EtcdClusterHealthy and ControlPlaneComponentsHealthy: is there a "
        "control plane to inspect, and can it be reached?",
    PL_TABLE_FACTS(facts),
    PL_TABLE_RULES(rules),
    .possible = possible,
};
