/* EtcdClusterHealthy: the contract is kcp-etcd-cluster-healthy.md, read with semantics.md sections 3, 5
 * and 6. The ladder comes first; the document has no rows for it.
 *
 * Order: what is False comes before what is Unknown, and both before True; among equals the lower
 * number decides. A Machine that merely lacks its member is row 7's, not row 5's, and one that is
 * unknown only because connecting failed is row 3's, not row 6's. */
#include "tables/tables.h"

enum { EXTERNAL, NODES_FAILED, BAD, MISMATCH, ORPHAN_NODE, UNKNOWN_MEMBER, CONNECT_FAILED, GOOD };

static const char *const facts[] = {
    [EXTERNAL] = "etcd is external",
    [NODES_FAILED] = "listing Nodes failed",
    [BAD] = "a Machine's member is not healthy",
    [MISMATCH] = "members and Machines do not match",
    [ORPHAN_NODE] = "a control plane Node has no Machine, and none is provisioning",
    [UNKNOWN_MEMBER] = "a Machine with providerID has a member of unknown health",
    [CONNECT_FAILED] = "no etcd member could be reached",
    [GOOD] = "a Machine reports a healthy member or is provisioning",
};

uint32_t pl__etcd_facts(const struct pl_etcd_facts *f)
{
    return (uint32_t)f->external << EXTERNAL | (uint32_t)f->nodes_failed << NODES_FAILED |
           (uint32_t)f->bad << BAD | (uint32_t)f->mismatch << MISMATCH |
           (uint32_t)f->orphan_node << ORPHAN_NODE | (uint32_t)f->unknown << UNKNOWN_MEMBER |
           (uint32_t)f->connect_failed << CONNECT_FAILED | (uint32_t)f->good << GOOD;
}

/* clang-format off */
#define NOT_HEALTHY { { FALSE_, "EtcdClusterNotHealthy", "<issues>" }, { FALSE_, "NotHealthy", "<aggregated issues>" } }
#define HEALTH_UNKNOWN { { UNKNOWN, "HealthUnknown", "<issues>" }, { UNKNOWN, "HealthUnknown", "<aggregated issues>" } }

static const struct pl_rule rules[] = {
    /*                                                                  extern failed bad mism orph unkn conn good */
    { "EtcdClusterHealthy/1", "etcd is external (not managed by KCP)",
      GUARD(Y),                      NOTHING,                                                                                NEXT_NONE, LEAVE,     EVERY_PROFILE, 0 },
    { "EtcdClusterHealthy/2", "failed to list control plane Nodes",
      GUARD(N, Y),                   BOTH(UNKNOWN, "InspectionFailed", "Failed to get Nodes hosting the etcd cluster"),      NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "EtcdClusterHealthy/5", "any etcd member unhealthy or has alarms",
      GUARD(N, N, Y),                NOT_HEALTHY,                                                                            NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "EtcdClusterHealthy/7", "etcd members don't match machines",
      GUARD(N, N, x, Y),             NOT_HEALTHY,                                                                            NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "EtcdClusterHealthy/8", "control plane Node without corresponding Machine",
      GUARD(N, N, x, x, Y),          NOT_HEALTHY,                                                                            NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "EtcdClusterHealthy/3", "failed to connect to any etcd member",
      GUARD(N, N, x, x, x, x, Y),    HEALTH_UNKNOWN,                                                                         NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "EtcdClusterHealthy/6", "any etcd member status unknown",
      GUARD(N, N, x, x, x, Y),       HEALTH_UNKNOWN,                                                                         NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "EtcdClusterHealthy/4", "all etcd members healthy && members match machines",
      GUARD(N, N, N, N, N, N, N, Y), { { TRUE_, "EtcdClusterHealthy", "" }, { TRUE_, "Healthy", "" } },                      NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "EtcdClusterHealthy/0", "no Machine reports a member",
      GUARD(N, N, N, N, N, N, N, N), BOTH(UNKNOWN, "HealthUnknown", "No Machines reporting etcd member status"),             NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
};

static const char *const ladder_ids[RUNG_COUNT] = {
    [RUNG_L00] = "Ladder/L00", [RUNG_L0] = "Ladder/L0", [RUNG_L1] = "Ladder/L1", [RUNG_L2] = "Ladder/L2",
    [RUNG_L3]  = "Ladder/L3",  [RUNG_L4] = "Ladder/L4", [RUNG_L5] = "Ladder/L5", [RUNG_PASSED] = "Ladder/passed",
};
/* clang-format on */

const struct pl_table pl__etcd_healthy = {
    .name = "EtcdClusterHealthy",
    .kind = "KubeadmControlPlane",
    .summary = "Is every etcd member healthy, and do members and Machines match?",
    PL_TABLE_FACTS(facts),
    PL_TABLE_RULES(rules),
    .front = &pl__ladder,
    .front_ids = ladder_ids,
};
