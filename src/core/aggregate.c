/* core/aggregate.c - many Machines' conditions as one text (semantics section 6). */
#include "core/pass.h"

#include <stdlib.h>

enum { NAMES_MAX = 3 };

/* Machines that say the same thing. */
struct block {
    struct pl_str text;
    struct pl_str *names; /* ascending, for Machines come sorted */
    size_t count;
};

static bool all_say_the_same(const struct pl_machine_state *s, int first, int end)
{
    const struct pl_verdict *one = NULL;
    size_t count = 0;

    for (int i = first; i < end; i++) {
        const struct pl_verdict *v = &s->verdicts[i];
        if (v->status == PL_STATUS_NONE)
            continue;
        if (one && !pl__str_equal(one->message, v->message))
            return false;
        one = v;
        count++;
    }
    return count > 1;
}

/* The lines of one Machine, "" when it has nothing to say. */
static struct pl_str lines_of(struct pl_pass *p, const struct pl_machine_state *s, int first,
                              int end, struct pl_aggregate *sum)
{
    bool provisioning = s->machine->provider_id.len == 0;
    struct pl_buf text;
    const struct pl_verdict *issue = NULL;

    pl__buf_init(&text, p->arena, SIZE_MAX);
    for (int i = first; i < end; i++) {
        const struct pl_verdict *v = &s->verdicts[i];
        if (v->status == PL_STATUS_NONE)
            continue;
        if (v->status == PL_STATUS_TRUE || (v->status == PL_STATUS_UNKNOWN && provisioning)) {
            sum->good = true;
            continue;
        }
        if (v->status == PL_STATUS_FALSE)
            sum->bad = true;
        else
            sum->unknown = true;
        issue = v;
        pl__buf_add_lit(&text, "\n  * ");
        pl__buf_add(&text, pl__str(v->type));
        pl__buf_add_lit(&text, ": ");
        if (v->message.len) {
            pl__buf_add(&text, v->message);
        } else {
            pl__buf_add_lit(&text, "condition is ");
            pl__buf_add(&text, pl__str(pl_status_name(v->status)));
        }
    }
    if (issue && all_say_the_same(s, first, end)) {
        pl__buf_clear(&text);
        pl__buf_add_lit(&text, "\n  * Control plane components: ");
        pl__buf_add(&text, issue->message);
    }
    return pl__buf_str(&text);
}

static int by_size_then_names(const void *a, const void *b)
{
    const struct block *x = a, *y = b;

    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    /* The order of the comma-joined names: a comma sorts before every character of a name, so
     * comparing name by name is the same. */
    for (size_t i = 0; i < x->count; i++) {
        int order = pl__str_compare(x->names[i], y->names[i]);
        if (order)
            return order;
    }
    return 0;
}

static struct block *block_with(struct block *blocks, size_t count, struct pl_str text)
{
    for (size_t i = 0; i < count; i++) {
        if (pl__str_equal(blocks[i].text, text))
            return &blocks[i];
    }
    return NULL;
}

struct pl_aggregate pl__aggregate(struct pl_pass *p, const struct pl_control_plane *cp, int first,
                                  int end, bool (*leave_out)(const struct pl_machine_state *))
{
    struct pl_aggregate sum = { .blocks = { "", 0 } };
    struct block *blocks = NULL;
    size_t block_count = 0;

    for (size_t i = 0; i < cp->machine_count; i++) {
        const struct pl_machine_state *s = &cp->machines[i];
        if (leave_out && leave_out(s))
            continue;
        struct pl_str text = lines_of(p, s, first, end, &sum);
        if (text.len == 0)
            continue;
        if (!blocks)
            blocks = PL_NEW(p->arena, struct block, cp->machine_count);
        struct block *b = block_with(blocks, block_count, text);
        if (!b) {
            b = &blocks[block_count++];
            b->text = text;
            b->names = PL_NEW(p->arena, struct pl_str, cp->machine_count);
        }
        b->names[b->count++] = s->machine->meta.name;
    }
    if (block_count == 0)
        return sum;
    qsort(blocks, block_count, sizeof *blocks, by_size_then_names);

    struct pl_buf all;
    pl__buf_init(&all, p->arena, SIZE_MAX);
    for (size_t i = 0; i < block_count; i++) {
        if (i)
            pl__buf_add_char(&all, '\n');
        pl__buf_add(&all, blocks[i].count == 1 ? PL_STR("* Machine ") : PL_STR("* Machines "));
        pl__names_add(&all, blocks[i].names, blocks[i].count, NAMES_MAX);
        pl__buf_add_char(&all, ':');
        pl__buf_add(&all, blocks[i].text);
    }
    sum.blocks = pl__buf_str(&all);
    return sum;
}
