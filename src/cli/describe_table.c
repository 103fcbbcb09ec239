/* The tree as a table, in the manner of clusterctl describe.
 *
 * Its columns want some 150 characters. Where there are fewer, messages move below their line, then
 * things go: the counts, the role before a kind, the reason (to its message), the age. What calls for
 * attention (status, message) always stays. */
#include "cli/describe.h"
#include "cli/report.h"
#include "cli/text.h"

enum {
    COLUMN_NAME,
    COLUMN_REPLICAS,
    COLUMN_AVAILABLE,
    COLUMN_READY,
    COLUMN_UP_TO_DATE,
    COLUMN_STATUS,
    COLUMN_REASON,
    COLUMN_SINCE,
    COLUMN_COUNT, /* the message stands behind the last */
};

enum { GAP = 2, MESSAGE_WIDTH_MIN = 50, SEE_NAMES_MAX = 3 };

static const char *const headers[COLUMN_COUNT] = {
    "NAME", "REPLICAS", "AVAILABLE", "READY", "UP TO DATE", "STATUS", "REASON", "SINCE",
};

/* Which columns there are, from roomy to narrow. */
static const struct layout {
    bool message_below;
    bool counts;
    bool role;
    bool reason;
    bool since;
} layouts[] = {
    /* clang-format off */
    /* below  counts role   reason since */
    { false,  true,  true,  true,  true },
    { true,   true,  true,  true,  true },
    { true,   false, true,  true,  true },
    { true,   false, false, true,  true },
    { true,   false, false, false, true },
    { true,   false, false, false, false },
    /* clang-format on */
};
enum { LAYOUT_COUNT = sizeof layouts / sizeof layouts[0] };

struct row {
    struct row *next;
    const struct pl_describe_node *node;
    struct pl_str cells[COLUMN_COUNT]; /* safe text */
    struct pl_str short_name;          /* without its role */
    struct pl_str below;               /* stands before further lines of this row */
    struct pl_str message;
};

struct table {
    struct pl_describe *d;
    struct row *first, *last;
    size_t widths[COLUMN_COUNT];
    size_t short_width; /* of names without roles */
    const struct layout *layout;
};

/* --- cells --------------------------------------------------------------------------------------- */

static struct pl_str count_text(struct table *t, int32_t count)
{
    return count ? pl__str_format(t->d->scratch, "%d", count - 1) : PL_STR("");
}

static struct pl_str replicas_text(struct table *t, const struct pl_describe_node *node)
{
    const struct pl_replicas *r = &node->replicas;

    if (!r->desired)
        return count_text(t, r->current);
    return pl__str_format(t->d->scratch, "%d/%d", r->current ? r->current - 1 : 0, r->desired - 1);
}

static struct pl_str name_text(struct table *t, const struct pl_describe_node *node,
                               struct pl_str prefix, bool role)
{
    struct pl_buf text;

    pl__buf_init(&text, t->d->scratch, SIZE_MAX / 4);
    pl__buf_add(&text, prefix);
    if (node->deleted) {
        pl__term_add(&t->d->cli->term, &text, COLOR_RED, PL_STR("!! DELETED !!"));
        pl__buf_add_char(&text, ' ');
    }
    if (node->role && role)
        pl__buf_printf(&text, "%s - ", node->role);
    if (node->kind)
        pl__buf_printf(&text, "%s/", node->kind);
    pl__text_add(&text, node->name);
    return pl__buf_str(&text);
}

static struct pl_str status_text(struct table *t, const struct pl_describe_node *node)
{
    struct pl_buf text;

    pl__buf_init(&text, t->d->scratch, SIZE_MAX / 4);
    if (node->type.len)
        pl__buf_printf(&text, "%.*s: ", PL_STR_ARG(node->type));
    pl__term_add(&t->d->cli->term, &text, node->color, node->status);
    return pl__buf_str(&text);
}

static struct pl_str safe(struct table *t, struct pl_str from)
{
    struct pl_buf text;

    pl__buf_init(&text, t->d->scratch, SIZE_MAX / 4);
    pl__text_add(&text, from);
    return pl__buf_str(&text);
}

static void add_row(struct table *t, const struct pl_describe_node *node, struct pl_str prefix,
                    struct pl_str below)
{
    struct row *row = PL_NEW(t->d->scratch, struct row, 1);

    row->node = node;
    row->below = below;
    row->cells[COLUMN_NAME] = name_text(t, node, prefix, true);
    row->short_name = name_text(t, node, prefix, false);
    row->cells[COLUMN_REPLICAS] = replicas_text(t, node);
    row->cells[COLUMN_AVAILABLE] = count_text(t, node->replicas.available);
    row->cells[COLUMN_READY] = count_text(t, node->replicas.ready);
    row->cells[COLUMN_UP_TO_DATE] = count_text(t, node->replicas.up_to_date);
    row->cells[COLUMN_STATUS] = status_text(t, node);
    row->cells[COLUMN_REASON] = safe(t, node->reason);
    row->cells[COLUMN_SINCE] = safe(t, node->since);
    row->message = safe(t, node->message);
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        size_t width = pl__text_width(row->cells[i]);
        if (width > t->widths[i])
            t->widths[i] = width;
    }
    if (pl__text_width(row->short_name) > t->short_width)
        t->short_width = pl__text_width(row->short_name);
    if (t->last)
        t->last->next = row;
    else
        t->first = row;
    t->last = row;
}

/* --- which nodes --------------------------------------------------------------------------------- */

static bool is_shown(const struct table *t, const struct pl_describe_node *node)
{
    return !node->optional || node->calls || t->d->show_conditions;
}

/* Machines of which the same is to be said stand together in one line, and so do conditions. */
static bool can_group(const struct table *t, const struct pl_describe_node *node)
{
    return (node->is_machine || node->is_condition) && !node->deleted && !t->d->show_conditions;
}

static bool same_state(const struct pl_describe_node *a, const struct pl_describe_node *b)
{
    return pl__str_equal(a->type, b->type) && pl__str_equal(a->status, b->status) &&
           pl__str_equal(a->message, b->message);
}

static bool same_group(const struct table *t, const struct pl_describe_node *a,
                       const struct pl_describe_node *b)
{
    if (!can_group(t, b) || !is_shown(t, b) || a->is_machine != b->is_machine || !same_state(a, b))
        return false;
    if (!pl__str_equal(a->reason, b->reason))
        return false;
    if (a->is_condition) /* one without a message is best named */
        return a->message.len > 0;
    const struct pl_describe_node *x = a->child, *y = b->child;
    while (x && y && pl__str_equal(x->name, y->name) && pl__str_equal(x->reason, y->reason) &&
           same_state(x, y)) {
        x = x->next;
        y = y->next;
    }
    return !x && !y;
}

/* The group that `leader` stands for, as a node of its own; NULL when it is alone. `leader` is its
 * first member. */
static const struct pl_describe_node *make_group(struct table *t,
                                                 const struct pl_describe_node *leader)
{
    struct pl_describe_node *group = PL_NEW(t->d->scratch, struct pl_describe_node, 1);
    struct pl_replicas sum = { .current = 1, .ready = 1, .available = 1, .up_to_date = 1 };
    int32_t names_max = leader->is_machine ? SEE_NAMES_MAX : INT32_MAX;
    struct pl_buf names;
    int32_t count = 0;

    pl__buf_init(&names, t->d->scratch, SIZE_MAX / 4);
    pl__buf_printf(&names, "%.*s%s", PL_STR_ARG(leader->message), leader->message.len ? "\n" : "");
    *group = *leader;
    for (const struct pl_describe_node *m = leader; m; m = m->next) {
        if (!same_group(t, leader, m))
            continue;
        if (++count <= names_max)
            pl__buf_printf(&names, "%s%.*s", count == 1 ? "See " : ", ", PL_STR_ARG(m->name));
        sum.current++;
        sum.ready += m->replicas.ready > 1;
        sum.available += m->replicas.available > 1;
        sum.up_to_date += m->replicas.up_to_date > 1;
        if (m->since_ms > group->since_ms) {
            group->since_ms = m->since_ms;
            group->since = m->since;
        }
    }
    if (count < 2)
        return NULL;
    if (count > names_max)
        pl__buf_add_lit(&names, ", ...");
    if (leader->is_machine)
        group->replicas = (struct pl_replicas){
            .current = sum.current,
            .ready = leader->replicas.ready ? sum.ready : 0,
            .available = leader->replicas.available ? sum.available : 0,
            .up_to_date = leader->replicas.up_to_date ? sum.up_to_date : 0,
        };
    group->kind = NULL;
    group->name = pl__str_format(t->d->scratch, "%d %s...", count,
                                 leader->is_machine ? "Machines" : "Conditions");
    group->message = pl__buf_str(&names);
    return group;
}

static bool is_grouped_before(const struct table *t, const struct pl_describe_node *first,
                              const struct pl_describe_node *node)
{
    for (const struct pl_describe_node *m = first; m != node; m = m->next) {
        if (can_group(t, m) && same_group(t, m, node))
            return true;
    }
    return false;
}

/* --- the tree ------------------------------------------------------------------------------------ */

static void add_tree(struct table *t, const struct pl_describe_node *node, struct pl_str prefix,
                     struct pl_str below);

/* The children as they are shown: without those that have nothing to say, Machines in groups. */
static size_t shown_children(struct table *t, const struct pl_describe_node *node,
                             const struct pl_describe_node **shown)
{
    size_t count = 0;

    for (const struct pl_describe_node *child = node->child; child; child = child->next) {
        if (!is_shown(t, child) ||
            (can_group(t, child) && is_grouped_before(t, node->child, child)))
            continue;
        const struct pl_describe_node *group = can_group(t, child) ? make_group(t, child) : NULL;
        shown[count++] = group ? group : child;
    }
    return count;
}

static struct pl_str join(struct table *t, struct pl_str left, const char *right)
{
    return pl__str_format(t->d->scratch, "%.*s%s", PL_STR_ARG(left), right);
}

static void add_tree(struct table *t, const struct pl_describe_node *node, struct pl_str prefix,
                     struct pl_str below)
{
    bool utf8 = t->d->cli->term.utf8;
    size_t room = 0;

    for (const struct pl_describe_node *child = node->child; child; child = child->next)
        room++;
    const struct pl_describe_node **shown =
        PL_NEW(t->d->scratch, const struct pl_describe_node *, room);
    size_t count = shown_children(t, node, shown);

    const char *bar = utf8 ? "│ " : "| ";
    add_row(t, node, prefix, join(t, below, count ? bar : "  "));
    for (size_t i = 0; i < count; i++) {
        bool last = i + 1 == count;
        const char *corner = utf8 ? "└─" : "`-";
        const char *fork = utf8 ? "├─" : "|-";
        add_tree(t, shown[i], join(t, below, last ? corner : fork),
                 join(t, below, last ? "  " : bar));
    }
}

/* --- printing ------------------------------------------------------------------------------------ */

static bool has_column(const struct layout *layout, size_t column)
{
    switch (column) {
    case COLUMN_AVAILABLE:
    case COLUMN_READY:
    case COLUMN_UP_TO_DATE:
        return layout->counts;
    case COLUMN_REASON:
        return layout->reason;
    case COLUMN_SINCE:
        return layout->since;
    default:
        return true;
    }
}

/* Where the message would start. */
static size_t message_column(const struct table *t, const struct layout *layout)
{
    size_t width = 0;

    for (size_t i = 0; i < COLUMN_COUNT; i++)
        width += has_column(layout, i) ? t->widths[i] + GAP : 0;
    if (!layout->role)
        width -= t->widths[COLUMN_NAME] - t->short_width;
    return width;
}

static const struct layout *choose_layout(const struct table *t)
{
    size_t width = t->d->cli->term.width;

    for (size_t i = 0; i < LAYOUT_COUNT; i++) {
        size_t needed = message_column(t, &layouts[i]);
        if (t->d->wide || (layouts[i].message_below ? needed <= width + GAP
                                                    : needed + MESSAGE_WIDTH_MIN <= width))
            return &layouts[i];
    }
    return &layouts[LAYOUT_COUNT - 1];
}

static void trim(struct pl_buf *out)
{
    while (out->len && out->data[out->len - 1] == ' ')
        out->len--;
}

static void add_cells(struct table *t, struct pl_buf *line, const struct pl_str *cells,
                      struct pl_str short_name)
{
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        bool is_short = i == COLUMN_NAME && !t->layout->role;
        struct pl_str cell = is_short ? short_name : cells[i];
        size_t width = is_short ? t->short_width : t->widths[i];
        if (!has_column(t->layout, i))
            continue;
        pl__buf_add(line, cell);
        pl__text_spaces(line, width + GAP - pl__text_width(cell));
    }
}

static void print_header(struct table *t)
{
    struct pl_buf *out = &t->d->cli->out.buf;
    struct pl_str cells[COLUMN_COUNT];

    for (size_t i = 0; i < COLUMN_COUNT; i++)
        cells[i] = pl__str(headers[i]);
    add_cells(t, out, cells, cells[COLUMN_NAME]);
    if (!t->layout->message_below)
        pl__buf_add_lit(out, "MESSAGE");
    trim(out);
    pl__buf_add_char(out, '\n');
}

/* A reason without a column stands before its message, where it calls for attention. */
static struct pl_str message_below(struct table *t, const struct row *row)
{
    const struct pl_describe_node *node = row->node;
    struct pl_str reason = row->cells[COLUMN_REASON];

    if (t->layout->reason || node->color == COLOR_GREEN || reason.len == 0 ||
        pl__str_equal(node->reason, node->name))
        return row->message;
    if (row->message.len == 0)
        return reason;
    return pl__str_format(t->d->scratch, "%.*s:%s%.*s", PL_STR_ARG(reason),
                          row->message.ptr[0] == '*' ? "\n" : " ", PL_STR_ARG(row->message));
}

static void print_row(struct table *t, const struct row *row)
{
    struct pl_buf *out = &t->d->cli->out.buf;
    size_t width = t->d->wide ? SIZE_MAX : t->d->cli->term.width;
    struct pl_buf line, rest;

    pl__buf_init(&line, t->d->scratch, SIZE_MAX / 4);
    pl__buf_init(&rest, t->d->scratch, SIZE_MAX / 4);
    add_cells(t, &line, row->cells, row->short_name);
    pl__buf_add(&rest, row->below);
    if (!t->layout->message_below && row->message.len) {
        pl__text_spaces(&rest, message_column(t, t->layout) - pl__text_width(row->below));
        pl__text_wrap(out, row->message,
                      (struct pl_wrap){ pl__buf_str(&line), pl__buf_str(&rest), width });
        return;
    }
    trim(&line);
    pl__buf_add(out, pl__buf_str(&line));
    pl__buf_add_char(out, '\n');
    struct pl_str message = t->layout->message_below ? message_below(t, row) : PL_STR("");
    if (message.len == 0)
        return;
    pl__text_spaces(&rest, GAP);
    pl__text_wrap(out, message, (struct pl_wrap){ pl__buf_str(&rest), pl__buf_str(&rest), width });
}

/* What could not be judged for want of evidence would otherwise show nowhere. */
static void print_missing(struct pl_describe *d)
{
    const struct pl_report *report = d->report;
    struct pl_buf *out = &d->cli->out.buf;
    struct pl_str named[SEE_NAMES_MAX];
    struct pl_buf text;
    size_t count = 0;
    bool more = false;

    pl__buf_init(&text, d->scratch, SIZE_MAX / 4);
    for (size_t i = 0; i < report->missing_count && !more; i++) {
        struct pl_str evidence = report->missing[i].evidence;
        bool again = false;
        for (size_t k = 0; k < count && !again; k++)
            again = pl__str_equal(named[k], evidence);
        more = !again && count == SEE_NAMES_MAX;
        if (again || more)
            continue;
        pl__buf_add(&text, count ? PL_STR(", ") : PL_STR("Missing evidence: "));
        pl__text_add(&text, evidence);
        named[count++] = evidence;
    }
    if (count == 0)
        return;
    if (more)
        pl__buf_add_lit(&text, ", ...");
    pl__buf_add_char(out, '\n');
    pl__text_wrap(
        out, pl__buf_str(&text),
        (struct pl_wrap){ PL_STR(""), PL_STR("  "), d->wide ? SIZE_MAX : d->cli->term.width });
}

void pl__describe_table(struct pl_describe *d)
{
    struct table t = { .d = d };
    struct pl_buf *out = &d->cli->out.buf;

    if (!d->first)
        pl__buf_add_char(out, '\n');
    pl__report_heading(out, d->scratch, &d->cli->term, d->report);
    pl__buf_add_char(out, '\n');
    for (size_t i = 0; i < COLUMN_COUNT; i++)
        t.widths[i] = strlen(headers[i]);
    t.short_width = t.widths[COLUMN_NAME];
    for (const struct pl_describe_node *root = d->clusters; root; root = root->next)
        add_tree(&t, root, PL_STR(""), PL_STR(""));
    t.layout = choose_layout(&t);
    print_header(&t);
    for (const struct row *row = t.first; row; row = row->next)
        print_row(&t, row);
    print_missing(d);
}
