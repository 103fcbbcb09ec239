/* EtcdMemberHealthy of a Machine: what feeds kcp-etcd-cluster-healthy.md (notes 2 to 4), read with
 * semantics.md section 5, whose list numbers are the row ids. */
#include "tables/tables.h"

enum {
    NODES_FAILED,
    DELETING,
    HAS_NODE,
    HAS_PROVIDER_ID,
    NO_CANDIDATE,
    CONNECT_FAILED,
    STATUS_ERRORS,
    MEMBERS_FAILED,
    ALARMS_FAILED,
    FOUND,
    LEARNER,
    ALARM,
};

static const char *const facts[] = {
    [NODES_FAILED] = "listing Nodes failed",
    [DELETING] = "the Machine is deleting",
    [HAS_NODE] = "the Machine has a Node",
    [HAS_PROVIDER_ID] = "the Machine has a providerID",
    [NO_CANDIDATE] = "no Node to ask etcd through (or nobody needs etcd)",
    [CONNECT_FAILED] = "no etcd endpoint could be reached",
    [STATUS_ERRORS] = "the endpoint reports errors",
    [MEMBERS_FAILED] = "listing members failed",
    [ALARMS_FAILED] = "listing alarms failed",
    [FOUND] = "a member is named like its Node",
    [LEARNER] = "that member is a learner",
    [ALARM] = "that member has an alarm",
};

uint32_t pl__member_facts(const struct pl_member_facts *f)
{
    return (uint32_t)f->nodes_failed << NODES_FAILED | (uint32_t)f->deleting << DELETING |
           (uint32_t)f->has_node << HAS_NODE | (uint32_t)f->has_provider_id << HAS_PROVIDER_ID |
           (uint32_t)f->no_candidate << NO_CANDIDATE |
           (uint32_t)f->connect_failed << CONNECT_FAILED |
           (uint32_t)f->status_errors << STATUS_ERRORS |
           (uint32_t)f->members_failed << MEMBERS_FAILED |
           (uint32_t)f->alarms_failed << ALARMS_FAILED | (uint32_t)f->found << FOUND |
           (uint32_t)f->learner << LEARNER | (uint32_t)f->alarm << ALARM;
}

/* clang-format off */
/* Nobody to ask: a failure to connect in the documents' reading, an empty member list in the other. */
#define NOBODY_TO_ASK                                                                        \
    { { UNKNOWN, "InspectionFailed", "Failed to connect to etcd: <error>" },                 \
      { FALSE_, "NotHealthy", "Etcd reports the cluster is composed by [], but the etcd member hosted on this Machine is not included" } }

static const struct pl_rule rules[] = {
    /*                                                    fail dele node prov nobo conn errs memb alar foun lear alar                                                      */
    { "EtcdMemberHealthy/0", "failed to list control plane Nodes",
      GUARD(Y),                                           BOTH(UNKNOWN, "InspectionFailed", "Failed to get the Node hosting the etcd member"),               NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "EtcdMemberHealthy/4", "members were read, none is named like this Machine's Node",
      GUARD(N, x, Y, x, N, N, N, N, N, N),                BOTH(FALSE_,  "NotHealthy",       "Etcd doesn't have an etcd member for Node <node>"),             NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "EtcdMemberHealthy/2", "the Machine is deleting",
      GUARD(N, Y),                                        BOTH(FALSE_,  "Deleting",         MSG_MACHINE_DELETING),                                           NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "EtcdMemberHealthy/1", "no Node yet, spec.providerID is set",
      GUARD(N, N, N, Y),                                  BOTH(UNKNOWN, "InspectionFailed", MSG_WAIT_FOR_NODE),                                              NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "EtcdMemberHealthy/1", "no Node yet, no spec.providerID",
      GUARD(N, N, N, N),                                  BOTH(UNKNOWN, "InspectionFailed", MSG_WAIT_FOR_PROVIDER_ID),                                       NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "EtcdMemberHealthy/3", "no Node with an etcd member to connect to",
      GUARD(N, N, Y, x, Y),                               NOBODY_TO_ASK,                                                                                     NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "EtcdMemberHealthy/3", "failed to connect to any etcd member",
      GUARD(N, N, Y, x, N, Y),                            BOTH(UNKNOWN, "InspectionFailed", "Failed to connect to etcd: <error>"),                           NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "EtcdMemberHealthy/3", "the endpoint answers with status errors",
      GUARD(N, N, Y, x, N, N, Y),                         BOTH(FALSE_,  "NotHealthy",       "Etcd endpoint <endpoint> reports errors: <errors>"),            NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "EtcdMemberHealthy/3", "failed to list members",
      GUARD(N, N, Y, x, N, N, N, Y),                      BOTH(UNKNOWN, "InspectionFailed", "Failed to get etcd members: <error>"),                          NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "EtcdMemberHealthy/3", "failed to list alarms",
      GUARD(N, N, Y, x, N, N, N, N, Y),                   BOTH(UNKNOWN, "InspectionFailed", "Failed to get etcd alarms: <error>"),                           NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "EtcdMemberHealthy/3", "the member is a learner",
      GUARD(N, N, Y, x, N, N, N, N, N, Y, Y),             BOTH(FALSE_,  "NotHealthy",       "Waiting for learner etcd member to be promoted"),               NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "EtcdMemberHealthy/3", "the member has alarms",
      GUARD(N, N, Y, x, N, N, N, N, N, Y, N, Y),          BOTH(FALSE_,  "NotHealthy",       "Etcd reports alarms: <alarms>"),                                NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "EtcdMemberHealthy/3", "the member is healthy",
      GUARD(N, N, Y, x, N, N, N, N, N, Y, N, N),          BOTH(TRUE_,   "Healthy",          ""),                                                             NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
};
/* clang-format on */

const struct pl_table pl__member_healthy = {
    .name = "EtcdMemberHealthy",
    .kind = "Machine",
    .summary = "Is this Machine's etcd member in the cluster, a voter, and free of alarms?",
    PL_TABLE_FACTS(facts),
    PL_TABLE_RULES(rules),
};
