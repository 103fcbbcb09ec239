/* Deleting of a KubeadmControlPlane: the contract is kcp-deleting.md, read with semantics.md section 8.
 *
 * The document has one row for all of a deletion, with the reason of the phase it is in; the phases are
 * rows here, in the order in which the procedure tries them, and share that row's id. The two profiles
 * delete in different ways: one Machine after the other with its etcd member leaving first, or all at
 * once. */
#include "tables/tables.h"

enum {
    DELETING,
    WORKERS,
    MACHINES,
    TEMPLATES,
    MACHINE_DELETING,
    MEMBERS_UNREADABLE,
    MEMBER_LISTED,
};

static const char *const facts[] = {
    [DELETING] = "the KubeadmControlPlane is being deleted",
    [WORKERS] = "worker Machines or MachinePools are left",
    [MACHINES] = "control plane Machines are left",
    [TEMPLATES] = "infrastructure templates of its own are left",
    [MACHINE_DELETING] = "a control plane Machine is deleting",
    [MEMBERS_UNREADABLE] = "the next Machine's member cannot be looked up (for 10 minutes at most)",
    [MEMBER_LISTED] = "the next Machine's member is to be removed first",
};

uint32_t pl__kcp_deleting_facts(const struct pl_deleting_facts *f)
{
    return (uint32_t)f->deleting << DELETING | (uint32_t)f->workers_left << WORKERS |
           (uint32_t)f->machines_left << MACHINES | (uint32_t)f->templates_left << TEMPLATES |
           (uint32_t)f->machine_deleting << MACHINE_DELETING |
           (uint32_t)f->members_unreadable << MEMBERS_UNREADABLE |
           (uint32_t)f->member_listed << MEMBER_LISTED;
}

#define MSG_BLOCKED \
    "KubeadmControlPlane deletion blocked because following objects still exist:<objects>"

/* clang-format off */
static const struct pl_rule rules[] = {
    /*                                                                dele work mach temp del. unre list */
    { "Deleting/1", "deletionTimestamp.IsZero()",
      GUARD(N),                   BOTH(FALSE_, "NotDeleting", ""),                                                                      NEXT_NONE, OVERWRITE, EVERY_PROFILE,    DELETION_NONE },
    { "Deleting/2", "deleting, no control plane Machine left",
      GUARD(Y, x, N),             BOTH(TRUE_, "DeletionCompleted", "Deletion completed"),                                               NEXT_NONE, OVERWRITE, ONLY_CLUSTER_API, DELETION_FINISH },
    { "Deleting/2", "deleting, worker Machines or MachinePools still exist",
      GUARD(Y, Y),                BOTH(TRUE_, "WaitingForWorkersDeletion", MSG_BLOCKED),                                                NEXT_30S,  OVERWRITE, EVERY_PROFILE,    DELETION_WAIT },
    { "Deleting/2", "deleting, control plane Machines still exist",
      GUARD(Y, N, Y),             BOTH(TRUE_, "WaitingForMachineDeletion", "Deleting <count><stale note>"),                             NEXT_30S,  OVERWRITE, ONLY_CLUSTER_API, DELETION_DELETE_ALL },
    { "Deleting/2", "deleting, no control plane Machine left, infrastructure machine templates are",
      GUARD(Y, N, N, Y),          BOTH(TRUE_, "DeletingInfrastructureTemplates", "Deleting <template>"),                                NEXT_NONE, OVERWRITE, ONLY_TABLES,      DELETION_DELETE_TEMPLATES },
    { "Deleting/2", "deleting, nothing left",
      GUARD(Y, N, N, N),          BOTH(TRUE_, "DeletionCompleted", "Deletion completed"),                                               NEXT_NONE, OVERWRITE, ONLY_TABLES,      DELETION_FINISH },
    { "Deleting/2", "deleting, a control plane Machine is already deleting",
      GUARD(Y, N, Y, x, Y),       BOTH(TRUE_, "WaitingForMachineDeletion", "Deleting <count>, <remaining> remaining<stale note>"),      NEXT_30S,  OVERWRITE, ONLY_TABLES,      DELETION_WAIT },
    { "Deleting/2", "deleting, members cannot be read, for less than 10 minutes",
      GUARD(Y, N, Y, x, N, Y),    BOTH(TRUE_, "DeletingEtcdMembers", "Cannot remove the etcd member of Machine <machine>: <error>"),    NEXT_30S,  OVERWRITE, ONLY_TABLES,      DELETION_WAIT },
    { "Deleting/2", "deleting, the next Machine's etcd member is still listed",
      GUARD(Y, N, Y, x, N, N, Y), BOTH(TRUE_, "DeletingEtcdMembers", "Removing etcd member <member> of Machine <machine>"),             NEXT_NONE, OVERWRITE, ONLY_TABLES,      DELETION_REMOVE_MEMBER },
    { "Deleting/2", "deleting, the next Machine can go",
      GUARD(Y, N, Y, x, N, N, N), BOTH(TRUE_, "DeletingMachines", "Deleting Machine <machine>, <remaining> remaining"),                 NEXT_NONE, OVERWRITE, ONLY_TABLES,      DELETION_DELETE_MACHINE },
};
/* clang-format on */

/* The members of the next Machine are looked up or unreadable, not both. */
static bool possible(uint32_t f)
{
    return !((f >> MEMBERS_UNREADABLE & 1) && (f >> MEMBER_LISTED & 1));
}

const struct pl_table pl__kcp_deleting = {
    .name = "Deleting",
    .kind = "KubeadmControlPlane",
    .summary = "Is the control plane being deleted, and how far has it come?",
    PL_TABLE_FACTS(facts),
    PL_TABLE_RULES(rules),
    .possible = possible,
};
