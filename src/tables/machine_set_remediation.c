/* Remediation of a MachineDeployment's Machines, semantics.md section 9, its last paragraph. Asked of each
 * Machine that is marked (OwnerRemediated False) and not being deleted; what it says is written on that
 * Machine. The order is the one of the text: what is pending removal anyway is not counted, what has no
 * room is not checked. */
#include "tables/tables.h"

enum { RECOVERED, SET_IDLE, OLD_REVISION, LIMIT_UNREADABLE, NO_ROOM, PREFLIGHT_FAILED };

static const char *const facts[] = {
    [RECOVERED] = "the Machine is healthy again",
    [SET_IDLE] = "its MachineSet is paused or being deleted, or has no Cluster",
    [OLD_REVISION] = "its MachineSet is not the current revision",
    [LIMIT_UNREADABLE] = "maxInFlight is neither a number nor a percentage",
    [NO_ROOM] = "maxInFlight leaves no room for it",
    [PREFLIGHT_FAILED] = "the control plane is not ready for a new Machine",
};

uint32_t pl__machine_set_remediation_facts(const struct pl_machine_set_facts *f)
{
    return (uint32_t)f->recovered << RECOVERED | (uint32_t)f->set_idle << SET_IDLE |
           (uint32_t)f->old_revision << OLD_REVISION |
           (uint32_t)f->limit_unreadable << LIMIT_UNREADABLE | (uint32_t)f->no_room << NO_ROOM |
           (uint32_t)f->preflight_failed << PREFLIGHT_FAILED;
}

#define TOO_MANY                                                           \
    "Waiting because there are already too many remediations in progress " \
    "(spec.strategy.remediation.maxInFlight is <maxInFlight>)"
#define PENDING_REMOVAL "Machine won't be remediated because it is pending removal due to rollout"

/* clang-format off */
static const struct pl_rule rules[] = {
    /*                                                            good idle old  bad  full pre */
    { "MachineSetRemediation/1", "the MachineSet is paused or being deleted, or has no Cluster",
      GUARD(x, Y),                   NOTHING,                                                    NEXT_NONE, LEAVE,     EVERY_PROFILE, MACHINE_SET_NONE },
    { "MachineSetRemediation/2", "healthy again: OwnerRemediated is removed",
      GUARD(Y, N),                   NOTHING,                                                    NEXT_NONE, OVERWRITE, EVERY_PROFILE, MACHINE_SET_CLEAN },
    { "MachineSetRemediation/3", "the MachineSet is not the MachineDeployment's current revision",
      GUARD(N, N, Y),                BOTH(FALSE_, "CannotBeRemediated", PENDING_REMOVAL),        NEXT_NONE, OVERWRITE, EVERY_PROFILE, MACHINE_SET_REFUSE },
    { "MachineSetRemediation/4", "maxInFlight cannot be read",
      GUARD(N, N, N, Y),             BOTH(FALSE_, "InternalError", MSG_SEE_LOGS),                NEXT_NONE, OVERWRITE, EVERY_PROFILE, MACHINE_SET_REFUSE },
    { "MachineSetRemediation/4", "maxInFlight leaves no room",
      GUARD(N, N, N, N, Y),          BOTH(FALSE_, "RemediationDeferred", TOO_MANY),              NEXT_NONE, OVERWRITE, EVERY_PROFILE, MACHINE_SET_REFUSE },
    { "MachineSetRemediation/5", "the control plane is not ready for it",
      GUARD(N, N, N, N, N, Y),       BOTH(FALSE_, "RemediationDeferred", "<preflight>"),         NEXT_15S,  OVERWRITE, EVERY_PROFILE, MACHINE_SET_REFUSE },
    { "MachineSetRemediation/6", "all checks passed",
      GUARD(N, N, N, N, N, N),       BOTH(FALSE_, "MachineDeleting", MSG_MACHINE_DELETING),      NEXT_NONE, OVERWRITE, EVERY_PROFILE, MACHINE_SET_GO },
};
/* clang-format on */

const struct pl_table pl__machine_set_remediation = {
    .name = "MachineSetRemediation",
    .kind = "MachineDeployment",
    .summary = "Which unhealthy Machines of a MachineDeployment are deleted next, or why not.",
    PL_TABLE_FACTS(facts),
    PL_TABLE_RULES(rules),
};
