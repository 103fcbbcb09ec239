/* eval's report as text: a block per object, a line per condition, messages below. */
#include "cli/eval.h"

#include "cli/report.h"
#include "cli/text.h"
#include "cli/words.h"

enum { LABEL_WIDTH = 40, STATUS_WIDTH = 8, REASON_WIDTH = 26, INDENT = 2, MESSAGE_INDENT = 6 };

static size_t width_of(const struct pl_eval *eval)
{
    return eval->wide ? SIZE_MAX : eval->cli->term.width;
}

static void add_status(struct pl_eval *eval, const struct pl_verdict *verdict)
{
    struct pl_buf *out = &eval->cli->out.buf;
    struct pl_str status = pl__str(pl_status_name(verdict->status));

    pl__term_add(&eval->cli->term, out, pl__verdict_color(verdict), status);
    pl__text_spaces(out, STATUS_WIDTH - status.len + 1);
}

static void add_wide_columns(struct pl_eval *eval, const struct pl_verdict *verdict)
{
    struct pl_buf *out = &eval->cli->out.buf;
    struct pl_str age = pl__verdict_age(eval->scratch, eval->report, verdict);
    struct pl_str generation = PL_STR("-");

    if (verdict->has_observed_generation)
        generation = pl__str_format(eval->scratch, "%lld", (long long)verdict->observed_generation);
    pl__buf_add_char(out, ' ');
    pl__text_pad(out, generation, 10);
    pl__buf_add_char(out, ' ');
    pl__text_pad(out, age.len ? age : PL_STR("-"), 8);
    pl__buf_add_char(out, ' ');
    for (size_t i = 0; i < verdict->also_held_count; i++)
        pl__buf_printf(out, "%s%s", i ? "," : "", verdict->also_held[i]);
    if (verdict->also_held_count == 0)
        pl__buf_add_char(out, '-');
}

static void add_evidence(struct pl_eval *eval, const struct pl_verdict *verdict)
{
    struct pl_wrap wrap = { PL_STR("      - "), PL_STR("          "), width_of(eval) };
    size_t room = wrap.width - wrap.first.len;
    struct pl_str words;

    for (size_t at = 0;
         (words = pl__evidence_next(eval->scratch, eval->report, verdict, &at, room)).len;)
        pl__text_wrap(&eval->cli->out.buf, words, wrap);
}

static void add_verdict(struct pl_eval *eval, const struct pl_verdict *verdict)
{
    struct pl_buf *out = &eval->cli->out.buf;

    pl__text_spaces(out, INDENT);
    pl__text_pad(out, pl__verdict_label(eval->scratch, verdict), LABEL_WIDTH);
    pl__buf_add_char(out, ' ');
    add_status(eval, verdict);
    struct pl_str reason = verdict->reason;
    if (verdict->kept)
        reason = pl__str_format(eval->scratch, "%.*s%s(kept)", PL_STR_ARG(reason),
                                reason.len ? " " : "");
    if (eval->wide) {
        pl__text_pad(out, reason, REASON_WIDTH);
        add_wide_columns(eval, verdict);
    } else {
        pl__text_add(out, reason);
    }
    pl__buf_add_char(out, '\n');
    if (verdict->message.len)
        pl__text_block(out, verdict->message, MESSAGE_INDENT, width_of(eval));
    if (eval->explain)
        add_evidence(eval, verdict);
}

static void add_object_heading(struct pl_eval *eval, const struct pl_object *object)
{
    struct pl_buf *out = &eval->cli->out.buf;

    pl__buf_printf(out, "\n%s ", object->kind);
    pl__text_add(out, object->namespace_);
    pl__buf_add_char(out, '/');
    pl__term_add(&eval->cli->term, out, COLOR_BOLD, object->name);
    if (object->paused)
        pl__buf_add_lit(out, " (paused)");
    if (object->requeue_with_error)
        pl__buf_add_lit(out, " (requeue with error)");
    pl__buf_add_char(out, '\n');
}

static void add_snapshot_heading(struct pl_eval *eval)
{
    struct pl_buf *out = &eval->cli->out.buf;

    if (!eval->first)
        pl__buf_add_char(out, '\n');
    pl__report_heading(out, eval->scratch, &eval->cli->term, eval->report);
}

static void add_wide_heading(struct pl_eval *eval)
{
    struct pl_buf *out = &eval->cli->out.buf;

    pl__text_spaces(out, INDENT);
    pl__text_pad(out, PL_STR("CONDITION"), LABEL_WIDTH + 1);
    pl__text_pad(out, PL_STR("STATUS"), STATUS_WIDTH + 1);
    pl__text_pad(out, PL_STR("REASON"), REASON_WIDTH + 1);
    pl__buf_add_lit(out, "GENERATION SINCE    ALSO HELD\n");
}

static void add_next_step(struct pl_eval *eval, struct pl_str words)
{
    struct pl_wrap wrap = { PL_STR(""), PL_STR("  "), width_of(eval) };

    if (words.len == 0)
        return;
    pl__buf_add_char(&eval->cli->out.buf, '\n');
    pl__text_wrap(&eval->cli->out.buf, words, wrap);
}

static void add_missing(struct pl_eval *eval)
{
    if (eval->report->missing_count)
        pl__buf_add_char(&eval->cli->out.buf, '\n');
    pl__report_missing(&eval->cli->out.buf, eval->scratch, eval->report, width_of(eval));
}

void pl__eval_table(struct pl_eval *eval)
{
    const struct pl_report *report = eval->report;

    add_snapshot_heading(eval);
    if (eval->wide && report->object_count)
        add_wide_heading(eval);
    for (size_t i = 0; i < report->object_count; i++) {
        add_object_heading(eval, &report->objects[i]);
        for (size_t k = 0; k < report->objects[i].verdict_count; k++)
            add_verdict(eval, &report->objects[i].verdicts[k]);
        if (report->objects[i].verdict_count == 0)
            pl__buf_add_lit(&eval->cli->out.buf, "  not judged: evidence is missing\n");
    }
    if (report->object_count == 0)
        pl__buf_add_lit(&eval->cli->out.buf, "\nNo KubeadmControlPlane or MachineDeployment.\n");
    for (size_t i = 0; i < report->remediation_count; i++)
        add_next_step(eval, pl__remediation_words(eval->scratch, &report->remediation[i]));
    for (size_t i = 0; i < report->deletion_count; i++)
        add_next_step(eval, pl__deletion_words(eval->scratch, &report->deletion[i]));
    add_missing(eval);
}

/* --- differences ------------------------------------------------------------------------------- */

/* "      reason   Healthy -> NotHealthy", or over several lines when they do not fit into one. */
static void add_change(struct pl_eval *eval, const char *label, struct pl_str stored,
                       struct pl_str computed)
{
    struct pl_buf *out = &eval->cli->out.buf;
    size_t indent = MESSAGE_INDENT + 9;
    bool short_enough = stored.len + computed.len + indent + 4 <= width_of(eval) &&
                        !memchr(stored.ptr, '\n', stored.len) &&
                        !memchr(computed.ptr, '\n', computed.len);

    if (pl__str_equal(stored, computed))
        return;
    pl__text_spaces(out, MESSAGE_INDENT);
    pl__text_pad(out, pl__str(label), 9);
    if (short_enough) {
        pl__text_add(out, stored);
        pl__buf_add_lit(out, " -> ");
        pl__text_add(out, computed);
        pl__buf_add_char(out, '\n');
        return;
    }
    pl__buf_add_lit(out, "stored:\n");
    pl__text_block(out, stored, indent + 2, width_of(eval));
    pl__text_spaces(out, indent);
    pl__buf_add_lit(out, "computed:\n");
    pl__text_block(out, computed, indent + 2, width_of(eval));
}

static struct pl_str or_empty(struct pl_str text)
{
    return text.len ? text : PL_STR("(empty)");
}

static void add_difference(struct pl_eval *eval, const struct pl_verdict *verdict)
{
    struct pl_buf *out = &eval->cli->out.buf;
    bool absent = verdict->stored_status == PL_STATUS_NONE;
    struct pl_str nothing = PL_STR("(absent)");

    pl__text_spaces(out, INDENT);
    pl__text_add(out, pl__verdict_label(eval->scratch, verdict));
    pl__buf_add_char(out, '\n');
    add_change(eval, "status", absent ? nothing : pl__str(pl_status_name(verdict->stored_status)),
               pl__str(pl_status_name(verdict->status)));
    add_change(eval, "reason", absent ? nothing : or_empty(verdict->stored_reason),
               or_empty(verdict->reason));
    add_change(eval, "message", or_empty(verdict->stored_message), or_empty(verdict->message));
}

static void add_object_differences(struct pl_eval *eval, const struct pl_object *object)
{
    bool headed = false;

    for (size_t i = 0; i < object->verdict_count; i++) {
        if (!pl__verdict_differs(&object->verdicts[i]))
            continue;
        if (!headed)
            add_object_heading(eval, object);
        headed = true;
        add_difference(eval, &object->verdicts[i]);
    }
}

void pl__eval_table_diff(struct pl_eval *eval)
{
    if (!pl__report_differs(eval->report) && eval->report->missing_count == 0)
        return;
    add_snapshot_heading(eval);
    for (size_t i = 0; i < eval->report->object_count; i++)
        add_object_differences(eval, &eval->report->objects[i]);
    add_missing(eval);
}
