/* Remediating of a KubeadmControlPlane: the contract is kcp-remediating.md, read with semantics.md
 * section 7. Row 4 comes first: when merging fails, row 3 holds too. */
#include "tables/tables.h"

enum { TO_REMEDIATE, UNHEALTHY, MERGE_FAILED };

static const char *const facts[] = {
    [TO_REMEDIATE] = "a Machine is to be remediated",
    [UNHEALTHY] = "a Machine is unhealthy",
    [MERGE_FAILED] = "merging their conditions failed",
};

uint32_t pl__kcp_remediating_facts(const struct pl_remediating_facts *f)
{
    return (uint32_t)f->to_remediate << TO_REMEDIATE | (uint32_t)f->unhealthy << UNHEALTHY |
           (uint32_t)f->merge_failed << MERGE_FAILED;
}

/* clang-format off */
#define NOT_HEALTHY                                                                            \
    { { FALSE_, "NotRemediating", "<machines> not healthy (not to be remediated)" },           \
      { FALSE_, "NotRemediating", "<machines> not healthy (not to be remediated by KubeadmControlPlane)" } }

static const struct pl_rule rules[] = {
    /*                                                              remed. unhealthy failed */
    { "Remediating/4", "internal error during aggregation",
      GUARD(Y, x, Y), BOTH(UNKNOWN, "InternalError",  MSG_SEE_LOGS),                        NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "Remediating/3", "len(machinesToBeRemediated) > 0",
      GUARD(Y),       BOTH(TRUE_,   "Remediating",    "<aggregated remediation details>"),  NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "Remediating/2", "len(machinesToBeRemediated) == 0 && len(unhealthyMachines) > 0",
      GUARD(N, Y),    NOT_HEALTHY,                                                          NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
    { "Remediating/1", "len(machinesToBeRemediated) == 0 && len(unhealthyMachines) == 0",
      GUARD(N, N),    BOTH(FALSE_,  "NotRemediating", ""),                                  NEXT_NONE, OVERWRITE, EVERY_PROFILE, 0 },
};
/* clang-format on */

const struct pl_table pl__kcp_remediating = {
    .name = "Remediating",
    .kind = "KubeadmControlPlane",
    .summary = "Is the control plane replacing unhealthy Machines?",
    PL_TABLE_FACTS(facts),
    PL_TABLE_RULES(rules),
};
