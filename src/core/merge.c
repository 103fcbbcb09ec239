/* core/merge.c - one condition over many Machines as one text (semantics section 7). */
#include "core/pass.h"

#include <stdlib.h>

enum { GROUPS_MAX = 3, NAMES_MAX = 3, TEXT_BYTES_MAX = 32768 };

enum priority { ISSUE, STATUS_UNKNOWN, INFO };

/* Machines whose conditions carry the same message. */
struct group {
    struct pl_str message;
    enum priority priority; /* the highest seen */
    bool control_plane;     /* one of them is a control plane Machine */
    struct entry *entries;  /* in the order of their transitions */
    size_t count;
};

struct entry {
    const struct pl_machine *machine;
    struct pl_str message;
    int64_t since_ms;
    enum priority priority;
    size_t order; /* among equals: as given */
};

static int by_order(size_t x, size_t y)
{
    return (x > y) - (x < y);
}

static int by_transition(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    if (x->since_ms != y->since_ms)
        return x->since_ms < y->since_ms ? -1 : 1;
    return by_order(x->order, y->order);
}

static int by_message(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = pl__str_compare(x->message, y->message);

    return order ? order : by_order(x->order, y->order);
}

static struct entry entry_of(struct pl_pass *p, const struct pl_machine *m,
                             enum pl_condition_type type, size_t order)
{
    const struct pl_condition *c = pl__condition_find(&m->conditions, type);
    struct entry e = { .machine = m, .order = order };

    if (!c) {
        e.priority = STATUS_UNKNOWN;
        e.message = pl__str_format(p->arena, "Condition %s not yet reported",
                                   pl__condition_type_name(type));
        return e;
    }
    e.message = c->message;
    e.since_ms = c->last_transition_ms;
    e.priority = c->status == PL_STATUS_FALSE     ? ISSUE
                 : c->status == PL_STATUS_UNKNOWN ? STATUS_UNKNOWN
                                                  : INFO;
    return e;
}

/* The names joined by commas, compared without joining. */
static int compare_joined(const struct group *x, const struct group *y)
{
    size_t common = x->count < y->count ? x->count : y->count;

    for (size_t i = 0; i < common; i++) {
        int order =
            pl__str_compare(x->entries[i].machine->meta.name, y->entries[i].machine->meta.name);
        if (order)
            return order;
    }
    return (x->count > y->count) - (x->count < y->count);
}

static int by_importance(const void *a, const void *b)
{
    const struct group *x = a, *y = b;

    if (x->control_plane != y->control_plane)
        return x->control_plane ? -1 : 1;
    if (x->priority != y->priority)
        return x->priority < y->priority ? -1 : 1;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return compare_joined(x, y);
}

static int control_plane_then_name(const void *a, const void *b)
{
    const struct pl_machine *x = ((const struct entry *)a)->machine;
    const struct pl_machine *y = ((const struct entry *)b)->machine;

    if (x->meta.labels.control_plane != y->meta.labels.control_plane)
        return x->meta.labels.control_plane ? -1 : 1;
    return pl__str_compare(x->meta.name, y->meta.name);
}

/* A bullet is an asterisk followed by white space, anywhere. */
static bool has_bullet(struct pl_str s)
{
    for (size_t i = 0; i + 1 < s.len; i++) {
        if (s.ptr[i] == '*' && strchr(" \t\n\v\f\r", s.ptr[i + 1]))
            return true;
    }
    return false;
}

static struct pl_str next_line(struct pl_str *rest)
{
    const char *newline = rest->len ? memchr(rest->ptr, '\n', rest->len) : NULL;
    struct pl_str line = { rest->ptr, newline ? (size_t)(newline - rest->ptr) : rest->len };

    rest->ptr += line.len + (newline ? 1 : 0);
    rest->len -= line.len + (newline ? 1 : 0);
    return line;
}

static size_t line_count(struct pl_str s)
{
    size_t count = 1;

    for (size_t i = 0; i < s.len; i++)
        count += s.ptr[i] == '\n';
    return count;
}

/* The message behind "* Machine a:". Lists stay lists, one level further in. */
static void message_add(struct pl_buf *b, struct pl_str message)
{
    size_t lines = line_count(message);

    if (lines == 1 && !has_bullet(message)) {
        pl__buf_add_char(b, ' ');
        pl__buf_add(b, message);
        return;
    }
    struct pl_str rest = message;
    bool all_bullets = true;
    for (size_t i = 0; i < lines; i++)
        all_bullets &= has_bullet(next_line(&rest));
    rest = message;
    for (size_t i = 0; i < lines; i++) {
        struct pl_str line = next_line(&rest);
        pl__buf_add_char(b, '\n');
        pl__buf_add(b, all_bullets        ? PL_STR("  ")
                       : has_bullet(line) ? PL_STR("    ")
                                          : PL_STR("  * "));
        pl__buf_add(b, line);
    }
}

static void group_add(struct pl_pass *p, struct pl_buf *b, struct group *g)
{
    struct pl_str *names = PL_NEW(p->arena, struct pl_str, g->count);

    qsort(g->entries, g->count, sizeof *g->entries, control_plane_then_name);
    for (size_t i = 0; i < g->count; i++)
        names[i] = g->entries[i].machine->meta.name;
    pl__buf_add(b, g->count == 1 ? PL_STR("* Machine ") : PL_STR("* Machines "));
    pl__names_add(b, names, g->count, NAMES_MAX);
    pl__buf_add_char(b, ':');
    message_add(b, g->message);
}

/* What the groups that were not printed amount to. */
static void rest_add(struct pl_buf *b, const struct group *groups, size_t count)
{
    static const char *const endings[] = { [ISSUE] = " with other issues",
                                           [STATUS_UNKNOWN] = " with status unknown",
                                           [INFO] = " with additional info" };

    for (enum priority priority = ISSUE; priority <= INFO; priority++) {
        size_t machines = 0;
        for (size_t i = 0; i < count; i++)
            machines += groups[i].priority == priority ? groups[i].count : 0;
        if (machines == 0)
            continue;
        pl__buf_add_lit(b, "\nAnd ");
        pl__buf_add_u64(b, machines);
        pl__buf_add(b, machines == 1 ? PL_STR(" Machine") : PL_STR(" Machines"));
        pl__buf_add(b, pl__str(endings[priority]));
    }
}

/* Gathers neighbours with the same message. Returns the number of groups. */
static size_t groups_make(struct entry *entries, size_t count, struct group *groups)
{
    size_t group_count = 0;

    for (size_t i = 0; i < count; i++) {
        struct entry *e = &entries[i];
        if (i == 0 || !pl__str_equal(e->message, groups[group_count - 1].message))
            groups[group_count++] =
                (struct group){ .message = e->message, .priority = INFO, .entries = e };
        struct group *g = &groups[group_count - 1];
        if (e->priority < g->priority)
            g->priority = e->priority;
        g->control_plane |= e->machine->meta.labels.control_plane;
        g->count++;
    }
    return group_count;
}

/* The entries that have a say, in the order of their transitions. Returns their number. */
static size_t entries_make(struct pl_pass *p, const struct pl_machine *const *machines,
                           size_t count, enum pl_condition_type type, struct entry *entries)
{
    bool only_infos = true;
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        entries[i] = entry_of(p, machines[i], type, i);
        only_infos &= entries[i].priority == INFO;
    }
    for (size_t i = 0; i < count; i++) {
        if (entries[i].priority != INFO || (only_infos && entries[i].message.len))
            entries[kept++] = entries[i];
    }
    if (kept)
        qsort(entries, kept, sizeof *entries, by_transition);
    for (size_t i = 0; i < kept; i++)
        entries[i].order = i;
    return kept;
}

bool pl__merge_conditions(struct pl_pass *p, const struct pl_machine *const *machines, size_t count,
                          enum pl_condition_type type, struct pl_str *text)
{
    struct entry *entries = PL_NEW(p->arena, struct entry, count);
    struct group *groups = PL_NEW(p->arena, struct group, count);
    struct pl_buf b;

    count = entries_make(p, machines, count, type, entries);
    if (count)
        qsort(entries, count, sizeof *entries, by_message);
    size_t group_count = groups_make(entries, count, groups);
    if (group_count)
        qsort(groups, group_count, sizeof *groups, by_importance);

    pl__buf_init(&b, p->arena, TEXT_BYTES_MAX);
    for (size_t i = 0; i < group_count && i < GROUPS_MAX; i++) {
        if (i)
            pl__buf_add_char(&b, '\n');
        group_add(p, &b, &groups[i]);
    }
    if (group_count > GROUPS_MAX)
        rest_add(&b, groups + GROUPS_MAX, group_count - GROUPS_MAX);
    *text = pl__buf_str(&b);
    return !b.overflowed;
}
