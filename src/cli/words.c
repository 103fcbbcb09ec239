#include "cli/words.h"

#include <stdlib.h>

#include "base/time.h"
#include "cli/text.h"

/* --- rows -------------------------------------------------------------------------------------- */

struct pl_str pl__row_guard(const char *id)
{
    const char *guard = NULL;

    for (size_t table = 0; table < pl_table_count(); table++) {
        size_t row_count = pl_table_info(table).row_count;
        for (size_t i = 0; i < row_count; i++) {
            struct pl_row row = pl_table_row(table, i);
            if (strcmp(row.id, id) != 0)
                continue;
            if (guard && strcmp(guard, row.guard) != 0)
                return PL_STR("");
            guard = row.guard;
        }
    }
    return guard ? pl__str(guard) : PL_STR("");
}

/* --- evidence ---------------------------------------------------------------------------------- */

/* "list at 2026-11-15T02:00:00Z" without an instant that the reader has before him: the heading
 * names the report's, and a probe's is its value. */
static struct pl_str how_observed(struct pl_arena *arena, const struct pl_report *report,
                                  const struct pl_evidence *evidence)
{
    struct pl_str observed = evidence->observed;
    struct pl_buf now;

    pl__buf_init(&now, arena, 64);
    pl__time_add(&now, report->now_ms);
    const struct pl_str instants[] = { pl__buf_str(&now), evidence->value };
    for (size_t i = 0; i < sizeof instants / sizeof instants[0]; i++) {
        struct pl_str ending = pl__str_format(arena, " at %.*s", PL_STR_ARG(instants[i]));
        if (instants[i].len && pl__str_ends_with(observed, ending))
            return (struct pl_str){ observed.ptr, observed.len - ending.len };
    }
    return observed;
}

static void add_observed(struct pl_buf *text, struct pl_str observed)
{
    if (observed.len == 0)
        return;
    pl__buf_add_lit(text, " (");
    pl__text_add(text, observed);
    pl__buf_add_char(text, ')');
}

/* A list of several lines becomes one: "Machines: md-0; MachinePools: mp-0". */
static void add_value(struct pl_buf *text, struct pl_str value)
{
    size_t start = text->len;

    if (value.len == 0)
        pl__buf_add_lit(text, "(absent)");
    while (value.len) {
        const char *newline = memchr(value.ptr, '\n', value.len);
        struct pl_str line = { value.ptr, newline ? (size_t)(newline - value.ptr) : value.len };
        size_t taken = line.len + (newline != NULL);
        value = (struct pl_str){ value.ptr + taken, value.len - taken };
        if (pl__str_starts_with(line, PL_STR("* ")))
            line = (struct pl_str){ line.ptr + 2, line.len - 2 };
        if (line.len && text->len > start)
            pl__buf_add_lit(text, "; ");
        pl__text_add(text, line);
    }
}

static void add_fact(struct pl_buf *text, const struct pl_evidence *evidence)
{
    pl__text_add(text, evidence->path);
    pl__buf_add_lit(text, " = ");
    add_value(text, evidence->value);
}

/* The facts of one object. */
struct group {
    const struct pl_evidence **items;
    size_t count;
};

static bool shown_before(const struct pl_verdict *verdict, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (pl__str_equal(verdict->evidence[i].object, verdict->evidence[index].object) &&
            !pl__evidence_is_own(&verdict->evidence[i]))
            return true;
    return false;
}

static struct group group_from(struct pl_arena *arena, const struct pl_verdict *verdict,
                               size_t index)
{
    struct group group = {
        PL_NEW(arena, const struct pl_evidence *, verdict->evidence_count - index), 0
    };

    for (size_t i = index; i < verdict->evidence_count; i++)
        if (pl__str_equal(verdict->evidence[i].object, verdict->evidence[index].object) &&
            !pl__evidence_is_own(&verdict->evidence[i]))
            group.items[group.count++] = &verdict->evidence[i];
    return group;
}

/* How it was observed, when that is the same for all; else empty. */
static struct pl_str group_observed(struct pl_arena *arena, const struct pl_report *report,
                                    struct group group)
{
    struct pl_str observed = how_observed(arena, report, group.items[0]);

    for (size_t i = 1; i < group.count; i++)
        if (!pl__str_equal(how_observed(arena, report, group.items[i]), observed))
            return PL_STR("");
    return observed;
}

static struct pl_str group_words(struct pl_arena *arena, const struct pl_report *report,
                                 struct group group, size_t room)
{
    struct pl_str observed = group_observed(arena, report, group);
    struct pl_buf text;

    pl__buf_init(&text, arena, SIZE_MAX / 4);
    pl__text_add(&text, group.items[0]->object);
    add_observed(&text, observed);
    pl__buf_add_char(&text, ':');
    if (group.count == 1) {
        size_t object_len = text.len;
        pl__buf_add_char(&text, ' ');
        add_fact(&text, group.items[0]);
        if (pl__text_width(pl__buf_str(&text)) > room)
            text.data[object_len] = '\n';
        return pl__buf_str(&text);
    }
    for (size_t i = 0; i < group.count; i++) {
        pl__buf_add_char(&text, '\n');
        add_fact(&text, group.items[i]);
        if (observed.len == 0)
            add_observed(&text, how_observed(arena, report, group.items[i]));
    }
    return pl__buf_str(&text);
}

struct pl_str pl__evidence_next(struct pl_arena *arena, const struct pl_report *report,
                                const struct pl_verdict *verdict, size_t *at, size_t room)
{
    for (; *at < verdict->evidence_count; ++*at) {
        if (pl__evidence_is_own(&verdict->evidence[*at]) || shown_before(verdict, *at))
            continue;
        return group_words(arena, report, group_from(arena, verdict, (*at)++), room);
    }
    return PL_STR("");
}

bool pl__evidence_is_own(const struct pl_evidence *evidence)
{
    return pl__str_starts_with(evidence->object, PL_STR("Machine/")) &&
           pl__str_starts_with(evidence->path, PL_STR("status.conditions[")) &&
           (pl__str_ends_with(evidence->path, PL_STR("PodHealthy].status")) ||
            pl__str_ends_with(evidence->path, PL_STR("[EtcdMemberHealthy].status")));
}

/* --- the next step in words -------------------------------------------------------------------- */

static const struct pl_owner_remediated *owner_remediated(const struct pl_remediation *step)
{
    for (size_t i = 0; i < step->owner_remediated_count; i++)
        if (pl__str_equal(step->owner_remediated[i].machine, step->machine))
            return &step->owner_remediated[i];
    return NULL;
}

static void add_quorum(struct pl_buf *text, const struct pl_remediation *step)
{
    if (!step->quorum_known)
        return;
    /* "Members", for the rule counts learners, too. */
    pl__buf_printf(text, ". Without it etcd has %u member%s, %u healthy, and needs %u for quorum",
                   step->voters_after, step->voters_after == 1 ? "" : "s", step->healthy_after,
                   step->quorum_after);
}

static bool is_refusal(const struct pl_owner_remediated *owner)
{
    return pl__str_equal(owner->reason, PL_STR("CannotBeRemediated")) ||
           pl__str_equal(owner->reason, PL_STR("RemediationDeferred")) ||
           pl__str_equal(owner->reason, PL_STR("InternalError"));
}

/* Nothing is done: because a rule says no, or because it is under way already. */
static void add_waiting(struct pl_buf *text, const struct pl_remediation *step)
{
    const struct pl_owner_remediated *owner = owner_remediated(step);

    pl__buf_add_lit(text, "Machine ");
    pl__text_add(text, step->machine);
    pl__buf_add_lit(text, " is left alone");
    if (owner && is_refusal(owner)) {
        pl__buf_add_lit(text, ", ");
        pl__text_add(text, owner->reason);
        pl__buf_add_lit(text, ": ");
        pl__text_add(text, owner->message);
    } else if (step->guard) {
        pl__buf_printf(text, ": %s", step->guard);
    }
}

static void add_removal(struct pl_buf *text, const struct pl_remediation *step)
{
    pl__buf_add_lit(text, "deletes Machine ");
    pl__text_add(text, step->deleted);
    if (step->leadership_forwarded_to.len) {
        pl__buf_add_lit(text, ", etcd leadership goes to ");
        pl__text_add(text, step->leadership_forwarded_to);
    }
    if (step->in_progress)
        pl__buf_printf(text, ", retry count %lld", (long long)step->in_progress_retry_count);
}

struct pl_str pl__remediation_words(struct pl_arena *arena, const struct pl_remediation *step)
{
    struct pl_buf text;

    if (step->machine.len == 0 && step->deleted.len == 0 && !step->stale_annotation_dropped)
        return PL_STR("");
    pl__buf_init(&text, arena, SIZE_MAX / 4);
    pl__buf_add_lit(&text, "Remediation of ");
    pl__text_add(&text, step->name);
    if (step->row)
        pl__buf_printf(&text, " (%s)", step->row);
    pl__buf_add_lit(&text, ": ");
    if (step->stale_annotation_dropped)
        pl__buf_add_lit(&text, "the remediation-in-progress annotation is stale and goes; ");
    if (step->deleted.len)
        add_removal(&text, step);
    else if (step->machine.len)
        add_waiting(&text, step);
    else
        pl__buf_add_lit(&text, "nothing else to do");
    add_quorum(&text, step);
    return pl__buf_str(&text);
}

static void add_deletion_step(struct pl_buf *text, const struct pl_deletion *step)
{
    if (step->member_removed.len) {
        pl__buf_add_lit(text, "removes etcd member ");
        pl__text_add(text, step->member_removed);
    } else if (step->deleted_count == 0) {
        pl__buf_add_lit(text, "starts nothing new");
    }
    for (size_t i = 0; i < step->deleted_count; i++) {
        pl__buf_add(
            text, i ? PL_STR(", ")
                    : pl__str(step->deleted_count > 1 ? "deletes Machines " : "deletes Machine "));
        pl__text_add(text, step->deleted[i]);
    }
}

struct pl_str pl__deletion_words(struct pl_arena *arena, const struct pl_deletion *step)
{
    struct pl_buf text;

    pl__buf_init(&text, arena, SIZE_MAX / 4);
    pl__buf_add_lit(&text, "Deletion of ");
    pl__text_add(&text, step->name);
    pl__buf_printf(&text, " (%s): ", step->phase);
    add_deletion_step(&text, step);
    if (step->gave_up_on_member)
        pl__buf_add_lit(&text, ", giving up on its etcd member");
    if (step->requeue_after_ms) {
        pl__buf_add_lit(&text, "; looks again after ");
        pl__duration_add(&text, step->requeue_after_ms / 1000);
    }
    return pl__buf_str(&text);
}

/* --- missing evidence -------------------------------------------------------------------------- */

static int by_evidence(const void *a, const void *b)
{
    const struct pl_missing *left = *(const struct pl_missing *const *)a;
    const struct pl_missing *right = *(const struct pl_missing *const *)b;
    int order = pl__str_compare(left->evidence, right->evidence);

    if (order)
        return order;
    return left < right ? -1 : left > right; /* the report's own order */
}

/* One piece of evidence: its key, then each object with its conditions that need it. */
static void add_missing(struct pl_buf *out, struct pl_arena *arena,
                        const struct pl_missing **missing, size_t count, size_t width)
{
    struct pl_wrap wrap = { PL_STR("      "), PL_STR("        "), width };
    struct pl_buf line;

    pl__text_block(out, missing[0]->evidence, 2, width);
    pl__buf_init(&line, arena, SIZE_MAX / 4);
    for (size_t i = 0; i < count; i++) {
        bool first = line.len == 0;
        if (first)
            pl__text_add(&line, missing[i]->object);
        pl__buf_add(&line, first ? PL_STR(": ") : PL_STR(", "));
        pl__text_add(&line, missing[i]->condition);
        if (i + 1 < count && pl__str_equal(missing[i]->object, missing[i + 1]->object))
            continue;
        pl__text_wrap(out, pl__buf_str(&line), wrap);
        pl__buf_clear(&line);
    }
}

void pl__report_missing(struct pl_buf *out, struct pl_arena *arena, const struct pl_report *report,
                        size_t width)
{
    size_t count = report->missing_count;
    const struct pl_missing **sorted = PL_NEW(arena, const struct pl_missing *, count);

    if (count == 0)
        return;
    for (size_t i = 0; i < count; i++)
        sorted[i] = &report->missing[i];
    qsort(sorted, count, sizeof(struct pl_missing *), by_evidence);

    pl__text_block(out, PL_STR("Missing evidence, by its key in a Snapshot, and what needs it"), 0,
                   width);
    for (size_t start = 0, i = 1; i <= count; i++) {
        if (i < count && pl__str_equal(sorted[start]->evidence, sorted[i]->evidence))
            continue;
        add_missing(out, arena, sorted + start, i - start, width);
        start = i;
    }
}
