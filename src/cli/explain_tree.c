/* explain as a tree: object, condition, rows, Machines, evidence. */
#include "cli/explain.h"

#include "cli/report.h"
#include "cli/text.h"
#include "cli/tree.h"
#include "cli/words.h"

static struct pl_buf text_new(struct pl_explain *x)
{
    struct pl_buf text;

    pl__buf_init(&text, x->scratch, SIZE_MAX / 4);
    return text;
}

static struct pl_tree *add(struct pl_explain *x, struct pl_tree *parent, const struct pl_buf *text)
{
    return pl__tree_add(x->scratch, parent, pl__buf_str(text));
}

static bool is_new(const struct pl_verdict *verdict)
{
    return verdict->status != verdict->stored_status;
}

static void add_age(struct pl_explain *x, struct pl_buf *text, const struct pl_verdict *verdict,
                    bool mixed)
{
    struct pl_str age = pl__verdict_age(x->scratch, x->report, verdict);

    if (verdict->kept)
        pl__buf_add_lit(text, ", kept as stored");
    if (is_new(verdict) && verdict->stored_status != PL_STATUS_NONE && !mixed)
        pl__buf_printf(text, ", new (stored: %s)", pl_status_name(verdict->stored_status));
    else if (is_new(verdict))
        pl__buf_add_lit(text, ", new");
    else if (age.len)
        pl__buf_printf(text, ", for %.*s", PL_STR_ARG(age));
}

/* What stands before the status: the condition and its row, or several that say the same. */
struct label {
    struct pl_str text;
    bool mixed; /* what is stored for them is not the same */
};

static struct label label_of(struct pl_explain *x, const struct pl_verdict *verdict)
{
    return (struct label){ .text = pl__verdict_label(x->scratch, verdict) };
}

/* "EtcdClusterHealthy/5 False EtcdClusterNotHealthy, for 4m30s", the message on lines of its own. */
static struct pl_tree *add_verdict(struct pl_explain *x, struct pl_tree *parent,
                                   const struct pl_verdict *verdict, struct label label)
{
    struct pl_buf text = text_new(x);

    pl__buf_add(&text, label.text);
    pl__buf_add_char(&text, ' ');
    pl__term_add(&x->cli->term, &text, pl__verdict_color(verdict),
                 pl__str(pl_status_name(verdict->status)));
    if (verdict->reason.len)
        pl__buf_add_char(&text, ' ');
    pl__text_add(&text, verdict->reason);
    add_age(x, &text, verdict, label.mixed);
    if (verdict->message.len)
        pl__buf_add_char(&text, '\n');
    pl__text_add(&text, verdict->message);
    return add(x, parent, &text);
}

static void add_rows(struct pl_explain *x, struct pl_tree *parent, const struct pl_verdict *verdict)
{
    if (verdict->guard && *verdict->guard)
        pl__tree_add(x->scratch, parent, pl__str_format(x->scratch, "because %s", verdict->guard));
    for (size_t i = 0; i < verdict->also_held_count; i++) {
        const char *row = verdict->also_held[i];
        struct pl_str guard = pl__row_guard(row);
        pl__tree_add(x->scratch, parent,
                     pl__str_format(x->scratch, "also held: %s%s%.*s", row, guard.len ? ", " : "",
                                    PL_STR_ARG(guard)));
    }
}

static void add_evidence(struct pl_explain *x, struct pl_tree *parent,
                         const struct pl_verdict *verdict)
{
    size_t room = pl__tree_room(&x->cli->term, parent);
    struct pl_str words;

    for (size_t at = 0; (words = pl__evidence_next(x->scratch, x->report, verdict, &at, room)).len;)
        pl__tree_add(x->scratch, parent, words);
}

static struct pl_tree *add_object(struct pl_explain *x, struct pl_tree *parent,
                                  const struct pl_object *object)
{
    struct pl_buf text = text_new(x);

    pl__buf_printf(&text, "%s ", object->kind);
    pl__text_add(&text, object->namespace_);
    pl__buf_add_char(&text, '/');
    pl__term_add(&x->cli->term, &text, COLOR_BOLD, object->name);
    if (object->paused)
        pl__buf_add_lit(&text, " (paused)");
    return add(x, parent, &text);
}

static bool same_evidence(const struct pl_verdict *a, const struct pl_verdict *b)
{
    if (a->evidence_count != b->evidence_count)
        return false;
    for (size_t i = 0; i < a->evidence_count; i++)
        if (!pl__str_equal(a->evidence[i].object, b->evidence[i].object) ||
            !pl__str_equal(a->evidence[i].path, b->evidence[i].path) ||
            !pl__str_equal(a->evidence[i].value, b->evidence[i].value))
            return false;
    return true;
}

/* Not since the same time, perhaps, but both since now, or both since the same time. */
static bool same_age(const struct pl_verdict *a, const struct pl_verdict *b)
{
    if (is_new(a) || is_new(b))
        return is_new(a) && is_new(b);
    return a->last_transition_ms == b->last_transition_ms;
}

/* True when nothing but the type differs: a lost Node gives all its Pods the same condition. */
static bool same_verdict(const struct pl_verdict *a, const struct pl_verdict *b)
{
    return a->status == b->status && a->kept == b->kept && same_age(a, b) &&
           strcmp(a->row, b->row) == 0 && pl__str_equal(a->reason, b->reason) &&
           pl__str_equal(a->message, b->message) && same_evidence(a, b);
}

/* Conditions of one Machine that are to be explained. */
struct picked {
    const struct pl_verdict **items;
    size_t count;
};

/* All that are the same as this one; empty when an earlier one has spoken for it. */
static struct label joined_label(struct pl_explain *x, struct picked picked, size_t index)
{
    const struct pl_verdict *verdict = picked.items[index];
    struct pl_buf types = text_new(x);
    struct label label = { .mixed = false };
    size_t count = 0;

    for (size_t i = 0; i < picked.count; i++) {
        const struct pl_verdict *other = picked.items[i];
        if (!same_verdict(other, verdict))
            continue;
        if (i < index)
            return (struct label){ .text = PL_STR("") };
        pl__buf_printf(&types, "%s%s", types.len ? ", " : "", other->type);
        label.mixed |= other->stored_status != verdict->stored_status;
        count++;
    }
    if (count == 1)
        return label_of(x, verdict);
    pl__buf_printf(&types, " %s", verdict->row);
    label.text = pl__buf_str(&types);
    return label;
}

static void add_picked(struct pl_explain *x, struct pl_tree *parent, struct picked picked)
{
    for (size_t i = 0; i < picked.count; i++) {
        struct label label = joined_label(x, picked, i);
        if (label.text.len == 0)
            continue;
        struct pl_tree *condition = add_verdict(x, parent, picked.items[i], label);
        add_rows(x, condition, picked.items[i]);
        add_evidence(x, condition, picked.items[i]);
    }
}

static struct picked picked_new(struct pl_explain *x, const struct pl_object *machine)
{
    return (struct picked){ PL_NEW(x->scratch, const struct pl_verdict *, machine->verdict_count),
                            0 };
}

/* A Machine's part in a condition of its KubeadmControlPlane. */
struct part {
    const struct pl_object *object;
    const struct pl_verdict *verdict;
    const struct pl_object *machine;
};

static void add_machine(struct pl_explain *x, struct pl_tree *parent, const struct part *part)
{
    struct picked picked = picked_new(x, part->machine);

    for (size_t i = 0; i < part->machine->verdict_count; i++) {
        const struct pl_verdict *verdict = &part->machine->verdicts[i];
        if (pl__explain_contributes(part->object, part->verdict, part->machine, verdict))
            picked.items[picked.count++] = verdict;
    }
    if (picked.count)
        add_picked(x, add_object(x, parent, part->machine), picked);
}

/* True when the Machine takes part in the condition and is all right. */
static bool is_fine(const struct part *part)
{
    bool feeds = false;

    if (!pl__explain_owns(part->object, part->machine))
        return false;
    for (size_t i = 0; i < part->machine->verdict_count; i++) {
        const struct pl_verdict *verdict = &part->machine->verdicts[i];
        if (!pl__verdict_feeds(verdict, part->verdict))
            continue;
        if (pl__verdict_calls(verdict))
            return false;
        feeds = true;
    }
    return feeds;
}

static void add_machines(struct pl_explain *x, struct pl_tree *parent,
                         const struct pl_object *object, const struct pl_verdict *verdict)
{
    struct pl_buf fine = text_new(x);

    for (size_t i = 0; i < x->report->object_count; i++) {
        struct part part = { object, verdict, &x->report->objects[i] };
        add_machine(x, parent, &part);
        if (!is_fine(&part))
            continue;
        pl__buf_add(&fine, fine.len ? PL_STR(", ") : PL_STR("healthy on "));
        pl__text_add(&fine, part.machine->name);
    }
    if (fine.len)
        add(x, parent, &fine);
}

static void add_words(struct pl_explain *x, struct pl_tree *parent, struct pl_str words)
{
    if (words.len)
        pl__tree_add(x->scratch, parent, words);
}

/* The step that the controller would take next stands where people look for it. */
static void add_step(struct pl_explain *x, struct pl_tree *parent, const struct pl_object *object,
                     const struct pl_verdict *verdict)
{
    const struct pl_remediation *remediation = pl__explain_remediation(x, object);
    const struct pl_deletion *deletion = pl__explain_deletion(x, object);

    if (remediation && strcmp(verdict->type, "Remediating") == 0)
        add_words(x, parent, pl__remediation_words(x->scratch, remediation));
    if (deletion && strcmp(verdict->type, "Deleting") == 0)
        add_words(x, parent, pl__deletion_words(x->scratch, deletion));
}

static void add_detail(struct pl_explain *x, struct pl_tree *parent, const struct pl_object *object,
                       const struct pl_verdict *verdict)
{
    add_rows(x, parent, verdict);
    add_evidence(x, parent, verdict);
    add_machines(x, parent, object, verdict);
    add_step(x, parent, object, verdict);
}

/* What is well takes a line each, then what is not. */
static void add_machine_conditions(struct pl_explain *x, struct pl_tree *root,
                                   const struct pl_object *machine)
{
    struct picked picked = picked_new(x, machine);

    for (size_t i = 0; i < machine->verdict_count; i++) {
        const struct pl_verdict *verdict = &machine->verdicts[i];
        if (!pl__explain_wants_verdict(x, verdict))
            continue;
        if (pl__explain_wants_detail(x, verdict))
            picked.items[picked.count++] = verdict;
        else
            add_verdict(x, root, verdict, label_of(x, verdict));
    }
    add_picked(x, root, picked);
}

static void add_conditions(struct pl_explain *x, struct pl_tree *root,
                           const struct pl_object *object)
{
    for (size_t i = 0; i < object->verdict_count; i++) {
        const struct pl_verdict *verdict = &object->verdicts[i];
        if (!pl__explain_wants_verdict(x, verdict))
            continue;
        struct pl_tree *condition = add_verdict(x, root, verdict, label_of(x, verdict));
        if (pl__explain_wants_detail(x, verdict))
            add_detail(x, condition, object, verdict);
    }
}

static struct pl_tree *object_tree(struct pl_explain *x, const struct pl_object *object)
{
    struct pl_tree *root = add_object(x, NULL, object);

    if (strcmp(object->kind, "Machine") == 0)
        add_machine_conditions(x, root, object);
    else
        add_conditions(x, root, object);
    pl__explain_plan_tree(x, root, object);
    if (!root->child)
        pl__tree_add(x->scratch, root, PL_STR("not judged: evidence is missing"));
    return root;
}

void pl__explain_tree(struct pl_explain *x)
{
    struct pl_buf *out = &x->cli->out.buf;

    if (!x->first)
        pl__buf_add_char(out, '\n');
    pl__report_heading(out, x->scratch, &x->cli->term, x->report);
    for (size_t i = 0; i < x->report->object_count; i++) {
        if (!pl__explain_wants_object(x, &x->report->objects[i]))
            continue;
        pl__buf_add_char(out, '\n');
        pl__tree_print(out, &x->cli->term, x->scratch, object_tree(x, &x->report->objects[i]));
    }
    if (x->report->missing_count)
        pl__buf_add_char(out, '\n');
    pl__report_missing(out, x->scratch, x->report, x->cli->term.width);
}
