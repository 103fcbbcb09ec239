/* explain: what mode manage does next for a control plane, what that waits for, and how far it has come. */
#include "cli/explain.h"

#include "base/time.h"
#include "cli/text.h"
#include "cli/tree.h"

static const char *const state_names[] = {
    [PL_LINE_DONE] = "done",
    [PL_LINE_NOW] = "now",
    [PL_LINE_WAITING] = "waiting",
    [PL_LINE_NEXT] = "next",
};

static bool says_something(const struct pl_next_step *plan)
{
    return plan->step.len || plan->waits_for.len || plan->note_count || plan->line_count;
}

const struct pl_next_step *pl__explain_plan(const struct pl_explain *x,
                                            const struct pl_object *object)
{
    const struct pl_next_step *plan = NULL;
    struct pl_str name = pl__str_format(x->scratch, "%.*s/%.*s", PL_STR_ARG(object->namespace_),
                                        PL_STR_ARG(object->name));

    if (x->condition || strcmp(object->kind, "KubeadmControlPlane") != 0 ||
        pl_plan(x->ctx, name.ptr, &plan) < 0)
        return NULL;
    return says_something(plan) ? plan : NULL;
}

/* --- for people -------------------------------------------------------------------------------- */

static struct pl_buf text_new(struct pl_explain *x)
{
    struct pl_buf text;

    pl__buf_init(&text, x->scratch, SIZE_MAX / 4);
    return text;
}

static void add_wait(struct pl_explain *x, struct pl_tree *parent, const struct pl_next_step *plan)
{
    struct pl_buf text = text_new(x);

    pl__buf_add_lit(&text, "waits for ");
    pl__text_add(&text, plan->waits_for);
    if (plan->retry_after_ms) {
        pl__buf_add_lit(&text, "; looks again after ");
        pl__duration_add(&text, plan->retry_after_ms / 1000);
    }
    pl__tree_add(x->scratch, parent, pl__buf_str(&text));
}

static void add_line(struct pl_explain *x, struct pl_tree *parent,
                     const struct pl_checklist_line *line)
{
    struct pl_buf text = text_new(x);

    pl__buf_printf(&text, "%s: ", state_names[line->state]);
    pl__text_add(&text, line->text);
    if (line->since_ms) {
        pl__buf_add_lit(&text, ", since ");
        pl__age_add(&text, x->report->now_ms - line->since_ms);
    }
    pl__tree_add(x->scratch, parent, pl__buf_str(&text));
}

void pl__explain_plan_tree(struct pl_explain *x, struct pl_tree *root,
                           const struct pl_object *object)
{
    const struct pl_next_step *plan = pl__explain_plan(x, object);
    struct pl_buf text = text_new(x);

    if (!plan)
        return;
    pl__buf_add_lit(&text, "Next in mode manage: ");
    pl__text_add(&text, plan->step.len ? plan->step : PL_STR("nothing"));
    if (plan->paused)
        pl__buf_add_lit(&text, ", once it is no longer paused");
    struct pl_tree *next = pl__tree_add(x->scratch, root, pl__buf_str(&text));
    if (plan->waits_for.len)
        add_wait(x, next, plan);
    for (size_t i = 0; i < plan->note_count; i++) {
        struct pl_buf note = text_new(x);
        pl__text_add(&note, plan->notes[i].text);
        pl__tree_add(x->scratch, next, pl__buf_str(&note));
    }
    if (!plan->line_count)
        return;
    struct pl_buf title = text_new(x);
    pl__text_add(&title, plan->procedure);
    struct pl_tree *list = pl__tree_add(x->scratch, next, pl__buf_str(&title));
    for (size_t i = 0; i < plan->line_count; i++)
        add_line(x, list, &plan->lines[i]);
}

/* --- for programs ------------------------------------------------------------------------------ */

static void write_time(struct pl_data *data, const char *key, int64_t ms)
{
    if (!ms)
        return;
    pl__json_write_key(&data->json, key);
    pl__json_write_time(&data->json, ms);
}

void pl__explain_plan_data(struct pl_explain *x, struct pl_data *data,
                           const struct pl_object *object)
{
    const struct pl_next_step *plan = pl__explain_plan(x, object);

    if (!plan)
        return;
    pl__data_object(data, "next");
    pl__data_str(data, "step", plan->step);
    pl__data_str(data, "waitsFor", plan->waits_for);
    if (plan->retry_after_ms)
        pl__data_int(data, "retryAfterSeconds", plan->retry_after_ms / 1000);
    pl__data_array(data, "notes");
    for (size_t i = 0; i < plan->note_count; i++) {
        pl__data_object(data, NULL);
        pl__data_str(data, "machine", plan->notes[i].machine);
        pl__data_text(data, "reason", plan->notes[i].reason);
        pl__data_str(data, "text", plan->notes[i].text);
        pl__data_end_object(data);
    }
    pl__data_end_array(data);
    pl__data_str(data, "procedure", plan->procedure);
    pl__data_array(data, "checklist");
    for (size_t i = 0; i < plan->line_count; i++) {
        pl__data_object(data, NULL);
        pl__data_text(data, "state", state_names[plan->lines[i].state]);
        pl__data_str(data, "text", plan->lines[i].text);
        write_time(data, "since", plan->lines[i].since_ms);
        pl__data_end_object(data);
    }
    pl__data_end_array(data);
    pl__data_end_object(data);
}
