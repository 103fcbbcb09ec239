#include "core/pass.h"

#include <assert.h>

void pl__verdict_init(struct pl_verdict *v, enum pl_condition_type type,
                      const struct pl_conditions *stored)
{
    const struct pl_condition *c = pl__condition_find(stored, type);

    memset(v, 0, sizeof *v);
    v->type = pl__condition_type_name(type);
    v->negative = pl__condition_type_negative(type);
    if (c) {
        v->stored_status = (enum pl_status)c->status;
        v->stored_reason = c->reason;
        v->stored_message = c->message;
        v->stored_transition_ms = c->last_transition_ms;
    }
}

void pl__verdict_set(struct pl_pass *p, struct pl_verdict *v, const struct pl_meta *meta,
                     enum pl_status status, struct pl_str reason, struct pl_str message)
{
    v->status = status;
    v->reason = reason;
    v->message = message;
    v->kept = false;
    v->has_observed_generation = meta->generation > 0;
    v->observed_generation = meta->generation;
    /* A transition is a change of status; a new reason alone is none. Whole seconds, as the API
     * stores them. */
    if (v->stored_status == status && v->stored_transition_ms)
        v->last_transition_ms = v->stored_transition_ms;
    else
        v->last_transition_ms = p->snapshot->now_ms - p->snapshot->now_ms % 1000;
}

void pl__verdict_keep(struct pl_verdict *v, const struct pl_conditions *stored,
                      enum pl_condition_type type)
{
    const struct pl_condition *c = pl__condition_find(stored, type);

    if (!c)
        return;
    v->kept = true;
    v->status = (enum pl_status)c->status;
    v->reason = c->reason;
    v->message = c->message;
    v->last_transition_ms = c->last_transition_ms;
    v->has_observed_generation = c->observed_generation > 0;
    v->observed_generation = c->observed_generation;
}

void pl__verdict_keep_external(struct pl_verdict *v, const struct pl_conditions *stored,
                               enum pl_condition_type type)
{
    pl__verdict_keep(v, stored, type);
    pl__verdict_by(v, pl__etcd_healthy.rules[0].id, pl__etcd_healthy.rules[0].when);
}

void pl__verdict_also_held(struct pl_pass *p, struct pl_verdict *v, const struct pl_table *table,
                           uint32_t held, const char *const *ids)
{
    const char *others[PL_RULE_COUNT_MAX];
    size_t count = 0;

    if ((held & (held - 1)) == 0) /* the usual case: only the row that decided */
        return;
    for (uint32_t i = 0; i < table->rule_count; i++) {
        const char *id = ids ? ids[i] : table->rules[i].id;
        if (!(held & 1u << i) || strcmp(id, v->row) == 0)
            continue;
        /* Rows may share an id; it is listed once. */
        if (count && strcmp(others[count - 1], id) == 0)
            continue;
        others[count++] = id;
    }
    if (count) {
        const char **copy = PL_NEW(p->arena, const char *, count);
        memcpy(copy, others, count * sizeof *copy);
        v->also_held = copy;
        v->also_held_count = count;
    }
}

void pl__verdict_judge(struct pl_pass *p, struct pl_verdict *v, enum pl_condition_type type,
                       const struct pl_meta *meta, const struct pl_conditions *stored,
                       const struct pl_table *table, struct pl_judgement j,
                       const struct pl_text *texts, size_t text_count)
{
    assert(j.rule);
    const struct pl_outcome *says = &j.rule->says[p->profile];

    if (j.rule->mode == LEAVE)
        pl__verdict_keep(v, stored, type);
    else
        pl__verdict_set(p, v, meta, says->status, pl__str(says->reason),
                        pl__message_fill(p->arena, says->message, texts, text_count));
    pl__verdict_by(v, j.rule->id, j.rule->when);
    pl__verdict_also_held(p, v, table, j.held, NULL);
}
