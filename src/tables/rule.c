#include "tables/rule.h"

#include <assert.h>

struct pl_judgement pl__judge(const struct pl_table *table, uint32_t facts, enum pl_profile profile)
{
    struct pl_judgement j = { 0 };

    assert(table->rule_count <= PL_RULE_COUNT_MAX);
    for (uint32_t i = 0; i < table->rule_count; i++) {
        const struct pl_rule *rule = &table->rules[i];
        if ((facts & rule->guard.care) != rule->guard.want)
            continue;
        if (rule->profiles != EVERY_PROFILE && !(rule->profiles & 1u << profile))
            continue;
        j.held |= 1u << i;
        if (!j.rule)
            j.rule = rule;
    }
    return j;
}

static struct pl_str text_find(const struct pl_text *texts, size_t text_count, struct pl_str name)
{
    for (size_t i = 0; i < text_count; i++) {
        if (pl__str_equal(pl__str(texts[i].name), name))
            return texts[i].value;
    }
    return (struct pl_str){ "", 0 };
}

struct pl_str pl__message_fill(struct pl_arena *arena, const char *message,
                               const struct pl_text *texts, size_t text_count)
{
    struct pl_buf filled;
    const char *open = strchr(message, '<');

    if (!open)
        return pl__str(message);
    pl__buf_init(&filled, arena, SIZE_MAX);
    while (open) {
        const char *close = strchr(open, '>');
        assert(close);
        struct pl_str value =
            text_find(texts, text_count, (struct pl_str){ open + 1, (size_t)(close - open - 1) });
        if (open == message && close[1] == '\0' && filled.len == 0)
            return value;
        pl__buf_add(&filled, (struct pl_str){ message, (size_t)(open - message) });
        pl__buf_add(&filled, value);
        message = close + 1;
        open = strchr(message, '<');
    }
    pl__buf_add(&filled, pl__str(message));
    return pl__buf_str(&filled);
}
