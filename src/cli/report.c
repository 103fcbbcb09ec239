#include "cli/report.h"

#include <ctype.h>

#include "base/time.h"
#include "cli/text.h"

bool pl__verdict_calls(const struct pl_verdict *verdict)
{
    if (!verdict->negative)
        return verdict->status != PL_STATUS_TRUE;
    return verdict->status != PL_STATUS_FALSE || verdict->message.len > 0;
}

bool pl__verdict_differs(const struct pl_verdict *verdict)
{
    if (verdict->kept)
        return false;
    return verdict->status != verdict->stored_status ||
           !pl__str_equal(verdict->reason, verdict->stored_reason) ||
           !pl__str_equal(verdict->message, verdict->stored_message);
}

enum pl_color pl__verdict_color(const struct pl_verdict *verdict)
{
    if (verdict->status == PL_STATUS_UNKNOWN)
        return COLOR_YELLOW;
    return (verdict->status == PL_STATUS_TRUE) == verdict->negative ? COLOR_RED : COLOR_GREEN;
}

/* True for "EtcdClusterHealthy/5" and for "MachineDeployment.Remediating/3". */
static bool row_names_type(struct pl_str row, struct pl_str type)
{
    const char *slash = memchr(row.ptr, '/', row.len);
    struct pl_str table = { row.ptr, slash ? (size_t)(slash - row.ptr) : row.len };

    if (!pl__str_ends_with(table, type))
        return false;
    return table.len == type.len || table.ptr[table.len - type.len - 1] == '.';
}

struct pl_str pl__verdict_label(struct pl_arena *arena, const struct pl_verdict *verdict)
{
    struct pl_str row = pl__str(verdict->row);

    if (row_names_type(row, pl__str(verdict->type)))
        return row;
    return pl__str_format(arena, "%s %s", verdict->type, verdict->row);
}

struct pl_str pl__verdict_age(struct pl_arena *arena, const struct pl_report *report,
                              const struct pl_verdict *verdict)
{
    struct pl_buf text;

    pl__buf_init(&text, arena, 64);
    if (verdict->status != verdict->stored_status)
        pl__buf_add_lit(&text, "new");
    else if (verdict->last_transition_ms && verdict->last_transition_ms <= report->now_ms)
        pl__age_add(&text, report->now_ms - verdict->last_transition_ms);
    return pl__buf_str(&text);
}

bool pl__verdict_feeds(const struct pl_verdict *machine, const struct pl_verdict *control_plane)
{
    struct pl_str type = pl__str(machine->type);

    if (strcmp(control_plane->type, "EtcdClusterHealthy") == 0)
        return pl__str_equal(type, PL_STR("EtcdMemberHealthy"));
    if (strcmp(control_plane->type, "ControlPlaneComponentsHealthy") == 0)
        return pl__str_ends_with(type, PL_STR("PodHealthy"));
    return false;
}

void pl__object_add_name(struct pl_buf *out, const struct pl_object *object)
{
    for (const char *at = object->kind; *at; at++)
        pl__buf_add_char(out, (char)tolower((unsigned char)*at));
    pl__buf_add_char(out, '/');
    pl__text_add(out, object->namespace_);
    pl__buf_add_char(out, '/');
    pl__text_add(out, object->name);
}

void pl__verdict_add_name(struct pl_buf *out, const struct pl_object *object,
                          const struct pl_verdict *verdict)
{
    pl__object_add_name(out, object);
    pl__buf_printf(out, " %s %s %s ", verdict->type, verdict->row, pl_status_name(verdict->status));
    pl__text_add(out, verdict->reason.len ? verdict->reason : PL_STR("-"));
    pl__buf_add_char(out, '\n');
}

enum pl_outcome pl__report_outcome(const struct pl_report *report)
{
    if (report->has_findings)
        return OUTCOME_FINDINGS;
    return report->missing_count ? OUTCOME_MISSING : OUTCOME_HEALTHY;
}

/* True when a name adds nothing: there is none, or the file is called like the snapshot. */
static bool named_like_source(const struct pl_report *report)
{
    struct pl_str file = report->source;

    for (size_t i = file.len; i > 0; i--)
        if (file.ptr[i - 1] == '/') {
            file = (struct pl_str){ file.ptr + i, file.len - i };
            break;
        }
    if (report->name.len == 0)
        return true;
    return pl__str_starts_with(file, report->name) &&
           (file.len == report->name.len || file.ptr[report->name.len] == '.');
}

void pl__report_heading(struct pl_buf *out, struct pl_arena *scratch, const struct pl_term *term,
                        const struct pl_report *report)
{
    struct pl_buf line;

    pl__buf_init(&line, scratch, SIZE_MAX / 4);
    pl__term_add(term, &line, COLOR_BOLD, report->source);
    if (!named_like_source(report)) {
        pl__buf_add_lit(&line, ": ");
        pl__term_add(term, &line, COLOR_BOLD, report->name);
    }
    pl__buf_printf(&line, ", profile %s, at ", pl_profile_name(report->profile));
    pl__time_add(&line, report->now_ms);
    pl__text_wrap(out, pl__buf_str(&line),
                  (struct pl_wrap){ PL_STR(""), PL_STR("  "), term->width });
}
