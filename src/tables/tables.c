#include "tables/tables.h"

const struct pl_table *const pl__tables[] = {
    &pl__etcd_healthy,    &pl__components_healthy,
    &pl__kcp_deleting,    &pl__kcp_remediating,
    &pl__md_remediating,  &pl__ladder,
    &pl__pod_healthy,     &pl__member_healthy,
    &pl__kcp_remediation, &pl__machine_set_remediation,
};
const size_t pl__table_count = sizeof pl__tables / sizeof pl__tables[0];
