/* Remediating of a MachineDeployment: the contract is md-remediating.md, read with semantics.md
 * section 7. */
#include "tables/tables.h"

enum { TO_REMEDIATE, UNHEALTHY, MERGE_FAILED };

static const char *const facts[] = {
    [TO_REMEDIATE] = "a Machine is to be remediated",
    [UNHEALTHY] = "a Machine is unhealthy",
    [MERGE_FAILED] = "merging their conditions failed",
};

uint32_t pl__md_remediating_facts(const struct pl_remediating_facts *f)
{
    return (uint32_t)f->to_remediate << TO_REMEDIATE | (uint32_t)f->unhealthy << UNHEALTHY |
           (uint32_t)f->merge_failed << MERGE_FAILED;
}

/* clang-format off */
static const struct pl_rule rules[] = {
    /*                                                              remed. unhealthy failed */
    { "MachineDeployment.Remediating/4", "len(machinesToBeRemediated) > 0 && aggregation fails",
      GUARD(Y, x, Y), BOTH(UNKNOWN, "InternalError",  MSG_SEE_LOGS),                                                          NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "MachineDeployment.Remediating/3", "len(machinesToBeRemediated) > 0 && aggregation succeeds",
      GUARD(Y, x, N), BOTH(TRUE_,   "Remediating",    "<aggregated remediation status from machines>"),                       NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "MachineDeployment.Remediating/2", "len(machinesToBeRemediated) == 0 && len(unhealthyMachines) > 0",
      GUARD(N, Y),    BOTH(FALSE_,  "NotRemediating", "<machines> not healthy (not to be remediated by MachineDeployment/MachineSet)"), NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "MachineDeployment.Remediating/1", "len(machinesToBeRemediated) == 0 && len(unhealthyMachines) == 0",
      GUARD(N, N),    BOTH(FALSE_,  "NotRemediating", ""),                                                                    NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
};
/* clang-format on */

const struct pl_table pl__md_remediating = {
    .name = "MachineDeployment.Remediating",
    .kind = "MachineDeployment",
    .summary = "Are the MachineSets of this MachineDeployment replacing unhealthy Machines?",
    PL_TABLE_FACTS(facts),
    PL_TABLE_RULES(rules),
};
