/* core/ladder.c - how far the ladder of semantics section 3 is climbed. */
#include "core/pass.h"

enum { FEW_FAILURES_MAX = 5 };

/* Whether both the last success and the initialization are further back than the grace period. */
static bool grace_over(const struct pl_pass *p, const struct pl_control_plane *cp,
                       const struct pl_connection *connection)
{
    const struct pl_condition *initialized =
        pl__condition_find(&cp->kcp->conditions, COND_INITIALIZED);
    int64_t since = connection->last_probe_success_ms;

    if (initialized && initialized->last_transition_ms > since)
        since = initialized->last_transition_ms;
    return p->snapshot->now_ms - since > p->snapshot->grace_period_s * 1000;
}

int pl__ladder_climb(struct pl_pass *p, struct pl_control_plane *cp, uint32_t *held,
                     struct pl_str *lacking)
{
    const struct pl_kcp *kcp = cp->kcp;
    const struct pl_cluster *cluster = cp->cluster;
    struct pl_ladder_facts f = {
        .deleting = kcp->meta.deleted_ms != 0,
        .initialized = kcp->initialized &&
                       pl__condition_is(&kcp->conditions, COND_INITIALIZED, PL_STATUS_TRUE),
    };

    /* Evidence is asked for rung by rung: what an earlier rung decides without must not be missed. */
    if (!cluster && !f.deleting) {
        *lacking = pl__str_format(p->arena, "Cluster/%.*s/%.*s", PL_STR_ARG(kcp->meta.namespace_),
                                  PL_STR_ARG(cp->cluster_name));
        return -1;
    }
    if (cluster) {
        f.infrastructure_provisioned = cluster->infrastructure_provisioned;
        f.endpoint_set = cluster->endpoint_host.len && cluster->endpoint_port > 0;
    }
    const struct pl_connection *connection =
        cp->workload && cp->workload->connection.present ? &cp->workload->connection : NULL;
    if (connection) {
        f.never_probed = connection->last_probe_success_ms == 0;
        f.few_failures = connection->consecutive_failures < FEW_FAILURES_MAX;
        f.grace_over = grace_over(p, cp, connection);
        f.down = connection->state == CONNECTION_DOWN;
        f.failed = connection->state == CONNECTION_FAILED;
    }

    struct pl_judgement j = pl__judge(&pl__ladder, pl__ladder_facts(&f), p->profile);
    int rung = (int)(j.rule - pl__ladder.rules);
    if (!connection && rung > RUNG_L1) {
        *lacking = pl__missing_workload(p, cp, "connection");
        return -1;
    }
    *held = connection ? j.held : j.held & ((1u << (RUNG_L1 + 1)) - 1);
    /* Passing is what happens when no rung decides, not one more rung that held. */
    if (rung != RUNG_PASSED)
        *held &= ~(1u << RUNG_PASSED);
    return rung;
}
