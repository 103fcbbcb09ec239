/* ControlPlaneComponentsHealthy: the contract is kcp-control-plane-components-healthy.md, read with
 * semantics.md section 6. Rows 1 to 5 are the ladder's rungs L1 to L5. */
#include "tables/tables.h"

enum { NODES_FAILED, ORPHAN_NODE, BAD, UNKNOWN_MACHINE, GOOD };

static const char *const facts[] = {
    [NODES_FAILED] = "listing Nodes failed",
    [ORPHAN_NODE] = "a control plane Node has no Machine, and none is provisioning",
    [BAD] = "a Machine has a component condition False",
    [UNKNOWN_MACHINE] = "a Machine with providerID has one Unknown",
    [GOOD] = "a Machine reports True or is provisioning",
};

uint32_t pl__components_facts(const struct pl_components_facts *f)
{
    return (uint32_t)f->nodes_failed << NODES_FAILED | (uint32_t)f->orphan_node << ORPHAN_NODE |
           (uint32_t)f->bad << BAD | (uint32_t)f->unknown << UNKNOWN_MACHINE |
           (uint32_t)f->good << GOOD;
}

/* clang-format off */
static const struct pl_rule rules[] = {
    /*                                                       failed orphan bad unknown good */
    { "ControlPlaneComponentsHealthy/6",  "failed to list control plane Nodes in workload cluster",
      GUARD(Y),             BOTH(UNKNOWN, "InspectionFailed", "Failed to get Nodes hosting control plane components: <error>"), NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "ControlPlaneComponentsHealthy/7",  "node without corresponding Machine exists (and no provisioning machines)",
      GUARD(N, Y),          BOTH(FALSE_,  "NotHealthy",       "<aggregated issues>"),                                           NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "ControlPlaneComponentsHealthy/8",  "at least one Machine has False status for any component condition",
      GUARD(N, x, Y),       BOTH(FALSE_,  "NotHealthy",       "<aggregated issues>"),                                           NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "ControlPlaneComponentsHealthy/9",  "at least one Machine (with ProviderID set) has Unknown status for any component condition AND no False conditions",
      GUARD(N, x, N, Y),    BOTH(UNKNOWN, "HealthUnknown",    "<aggregated issues>"),                                           NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "ControlPlaneComponentsHealthy/10", "all Machines have True status for all component conditions",
      GUARD(N, x, N, N, Y), BOTH(TRUE_,   "Healthy",          ""),                                                              NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "ControlPlaneComponentsHealthy/11", "no Machines exist or no Machines reporting component status",
      GUARD(N, x, N, N, N), BOTH(UNKNOWN, "HealthUnknown",    "No Machines reporting control plane status"),                    NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
};

static const char *const ladder_ids[RUNG_COUNT] = {
    [RUNG_L00] = "Ladder/L00",
    [RUNG_L0]  = "Ladder/L0",
    [RUNG_L1]  = "ControlPlaneComponentsHealthy/1",
    [RUNG_L2]  = "ControlPlaneComponentsHealthy/2",
    [RUNG_L3]  = "ControlPlaneComponentsHealthy/3",
    [RUNG_L4]  = "ControlPlaneComponentsHealthy/4",
    [RUNG_L5]  = "ControlPlaneComponentsHealthy/5",
    [RUNG_PASSED] = "Ladder/passed",
};
/* clang-format on */

const struct pl_table pl__components_healthy = {
    .name = "ControlPlaneComponentsHealthy",
    .kind = "KubeadmControlPlane",
    .summary = "Are the static Pods of the control plane healthy on all its Machines?",
    PL_TABLE_FACTS(facts),
    PL_TABLE_RULES(rules),
    .front = &pl__ladder,
    .front_ids = ladder_ids,
};
