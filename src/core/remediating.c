/* core/remediating.c - the Remediating conditions (semantics section 7). */
#include "core/pass.h"

enum { NAMES_MAX = 3 };

bool pl__machine_unhealthy(const struct pl_machine *m)
{
    return pl__condition_is(&m->conditions, COND_HEALTH_CHECK, PL_STATUS_FALSE);
}

bool pl__machine_to_be_remediated(const struct pl_machine *m)
{
    return pl__machine_unhealthy(m) &&
           pl__condition_is(&m->conditions, COND_OWNER_REMEDIATED, PL_STATUS_FALSE);
}

/* "Machine a is", "Machines a, b are". */
static struct pl_str machines_text(struct pl_pass *p, struct pl_str *names, size_t count)
{
    struct pl_buf text;

    pl__buf_init(&text, p->arena, SIZE_MAX);
    pl__buf_add(&text, count == 1 ? PL_STR("Machine ") : PL_STR("Machines "));
    pl__names_sort(names, count);
    pl__names_add(&text, names, count, NAMES_MAX);
    pl__buf_add(&text, count == 1 ? PL_STR(" is") : PL_STR(" are"));
    return pl__buf_str(&text);
}

static void health_evidence(struct pl_pass *p, struct pl_verdict *v, const struct pl_machine *m)
{
    const struct pl_condition *owner = pl__condition_find(&m->conditions, COND_OWNER_REMEDIATED);
    struct pl_str object = pl__object_ref(p, "Machine", m->meta.namespace_, m->meta.name);

    pl__evidence(p, v, object, "status.conditions[HealthCheckSucceeded].status", PL_STR("False"),
                 SOURCE_LIST);
    pl__evidence(p, v, object, "status.conditions[OwnerRemediated].status",
                 owner ? pl__str(pl_status_name((enum pl_status)owner->status)) : PL_STR(""),
                 SOURCE_LIST);
}

void pl__remediating_judge(struct pl_pass *p, struct pl_verdict *v, const struct pl_table *table,
                           uint32_t (*facts)(const struct pl_remediating_facts *),
                           const struct pl_meta *meta, const struct pl_conditions *stored,
                           const struct pl_machine *const *machines, size_t count)
{
    const struct pl_machine **chosen = NULL;
    struct pl_str *unhealthy = NULL;
    size_t chosen_count = 0, unhealthy_count = 0;
    struct pl_text texts[] = { { "machines", { 0 } },
                               { "aggregated remediation details", { 0 } },
                               { "aggregated remediation status from machines", { 0 } } };

    for (size_t i = 0; i < count; i++) {
        if (!pl__machine_unhealthy(machines[i]))
            continue;
        if (!unhealthy) {
            unhealthy = PL_NEW(p->arena, struct pl_str, count);
            chosen = PL_NEW(p->arena, const struct pl_machine *, count);
        }
        unhealthy[unhealthy_count++] = machines[i]->meta.name;
        health_evidence(p, v, machines[i]);
        if (pl__machine_to_be_remediated(machines[i]))
            chosen[chosen_count++] = machines[i];
    }
    struct pl_remediating_facts f = { .to_remediate = chosen_count > 0,
                                      .unhealthy = unhealthy_count > 0 };
    if (chosen_count) {
        f.merge_failed =
            !pl__merge_conditions(p, chosen, chosen_count, COND_OWNER_REMEDIATED, &texts[1].value);
        texts[2].value = texts[1].value;
    } else if (unhealthy_count) {
        texts[0].value = machines_text(p, unhealthy, unhealthy_count);
    }
    pl__verdict_judge(p, v, COND_REMEDIATING, meta, stored, table,
                      pl__judge(table, facts(&f), p->profile), texts,
                      sizeof texts / sizeof texts[0]);
}
