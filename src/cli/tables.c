/* plimsoll tables - the transition tables that the engine executes. */
#include <strings.h>

#include "cli/commands.h"
#include "cli/data.h"
#include "cli/text.h"

static const char *const formats[] = { "table", "wide", "md", "json", "yaml", "name", NULL };

static const struct pl_option options[] = {
    PL_OPTION_OUTPUT(formats),
    { .id = OPT_PROFILE,
      .name = "profile",
      .argument = "PROFILE",
      .choices = pl__profile_choices,
      .help = "only the outcomes of this profile; default: both" },
    PL_OPTION_COLOR,
    PL_OPTION_HELP,
};

static const struct pl_argument arguments[] = {
    { .name = "CONDITION",
      .complete = COMPLETE_TABLES,
      .help = "a table, such as EtcdClusterHealthy, or a row, such as EtcdClusterHealthy/5; "
              "default: all" },
};

static const struct pl_example examples[] = {
    { "plimsoll tables EtcdClusterHealthy", "one table" },
    { "plimsoll tables EtcdClusterHealthy/5", "one row: what does this id mean" },
    { "plimsoll tables -o md > tables.md", "all of them as a document" },
};

/* One table, or one of its rows, being printed. */
struct tables {
    struct pl_cli *cli;
    struct pl_buf *out;
    const char *wanted;  /* NULL: all */
    const char *profile; /* NULL: all */
};

static bool wants_table(const struct tables *t, const struct pl_table_info *info, size_t table)
{
    if (!t->wanted || strcasecmp(t->wanted, info->name) == 0)
        return true;
    for (size_t i = 0; i < info->row_count; i++)
        if (strcasecmp(t->wanted, pl_table_row(table, i).id) == 0)
            return true;
    return false;
}

static bool wants_row(const struct tables *t, const struct pl_row *row)
{
    return !t->wanted || !strchr(t->wanted, '/') || strcasecmp(t->wanted, row->id) == 0;
}

static bool wants_profile(const struct tables *t, size_t profile)
{
    return !t->profile || strcmp(t->profile, pl_profile_name((enum pl_profile)profile)) == 0;
}

static bool same_outcome(const struct pl_row_outcome *a, const struct pl_row_outcome *b)
{
    return strcmp(a->status, b->status) == 0 && strcmp(a->reason, b->reason) == 0 &&
           strcmp(a->message, b->message) == 0;
}

/* Both profiles in one line where they agree. */
static bool is_shared(const struct tables *t, const struct pl_row *row)
{
    if (t->profile)
        return false;
    for (size_t i = 1; i < PL_PROFILE_COUNT; i++)
        if (!same_outcome(&row->outcome[0], &row->outcome[i]))
            return false;
    return true;
}

/* --- text -------------------------------------------------------------------------------------- */

static size_t width_of(const struct tables *t)
{
    return pl__cli_output_is(t->cli, "wide") ? SIZE_MAX : t->cli->term.width;
}

/* A message may have lines; here it is one string in quotes. */
static void text_message(struct pl_buf *line, const char *message)
{
    pl__buf_add_lit(line, " \"");
    for (; *message; message++) {
        if (*message == '\n')
            pl__buf_add_lit(line, "\\n");
        else
            pl__buf_add_char(line, *message);
    }
    pl__buf_add_char(line, '"');
}

static void text_outcome(struct tables *t, const char *label, const struct pl_row_outcome *outcome)
{
    struct pl_wrap wrap = { PL_STR("    "), PL_STR("                       "), width_of(t) };
    struct pl_buf line;

    pl__buf_init(&line, &t->cli->arena, SIZE_MAX / 4);
    pl__buf_printf(&line, "%-18s %s", label, *outcome->status ? outcome->status : "not set");
    if (*outcome->reason)
        pl__buf_printf(&line, " %s", outcome->reason);
    if (*outcome->message)
        text_message(&line, outcome->message);
    pl__text_wrap(t->out, pl__buf_str(&line), wrap);
}

static void text_row(struct tables *t, const struct pl_row *row)
{
    pl__buf_add_lit(t->out, "\n  ");
    pl__term_add(&t->cli->term, t->out, COLOR_BOLD, pl__str(row->id));
    pl__buf_add_char(t->out, '\n');
    pl__text_block(t->out, pl__str(row->guard), 4, width_of(t));
    if (is_shared(t, row))
        text_outcome(t, "both profiles", &row->outcome[0]);
    for (size_t i = 0; i < PL_PROFILE_COUNT && !is_shared(t, row); i++)
        if (wants_profile(t, i))
            text_outcome(t, pl_profile_name((enum pl_profile)i), &row->outcome[i]);
    pl__buf_printf(t->out, "    %-18s %s; %s\n", "mode; next", row->mode, row->next);
}

static void text_heading(struct tables *t, const struct pl_table_info *info)
{
    if (t->out->len)
        pl__buf_add_char(t->out, '\n');
    pl__term_add(&t->cli->term, t->out, COLOR_BOLD, pl__str(info->name));
    if (*info->kind)
        pl__buf_printf(t->out, " on %s", info->kind);
    pl__buf_add_char(t->out, '\n');
    pl__text_block(t->out, pl__str(info->summary), 0, width_of(t));
}

/* --- Markdown ---------------------------------------------------------------------------------- */

/* In a cell a bar would end it, a newline the row, and <name> would be taken for HTML. */
static void md_cell(struct tables *t, const char *text)
{
    for (; *text; text++) {
        if (*text == '|' || *text == '<' || *text == '*')
            pl__buf_add_char(t->out, '\\');
        if (*text == '\n')
            pl__buf_add_lit(t->out, "<br>");
        else
            pl__buf_add_char(t->out, *text);
    }
}

static void md_outcome(struct tables *t, const struct pl_row_outcome *outcome)
{
    if (!*outcome->status) {
        pl__buf_add_lit(t->out, "not set");
        return;
    }
    md_cell(t, outcome->status);
    if (*outcome->reason)
        pl__buf_add_char(t->out, ' ');
    md_cell(t, outcome->reason);
    if (!*outcome->message)
        return;
    pl__buf_add_lit(t->out, ", \"");
    md_cell(t, outcome->message);
    pl__buf_add_char(t->out, '"');
}

static void md_row(struct tables *t, const struct pl_row *row)
{
    pl__buf_printf(t->out, "| `%s` | ", row->id);
    md_cell(t, row->guard);
    pl__buf_add_lit(t->out, " | ");
    md_cell(t, row->mode);
    for (size_t i = 0; i < PL_PROFILE_COUNT; i++) {
        if (!wants_profile(t, i))
            continue;
        pl__buf_add_lit(t->out, " | ");
        md_outcome(t, &row->outcome[i]);
    }
    pl__buf_add_lit(t->out, " | ");
    md_cell(t, row->next);
    pl__buf_add_lit(t->out, " |\n");
}

static void md_heading(struct tables *t, const struct pl_table_info *info)
{
    if (t->out->len)
        pl__buf_add_char(t->out, '\n');
    pl__buf_printf(t->out, "## %s", info->name);
    if (*info->kind)
        pl__buf_printf(t->out, " (%s)", info->kind);
    pl__buf_printf(t->out, "\n\n%s\n\n| row | guard | mode |", info->summary);
    for (size_t i = 0; i < PL_PROFILE_COUNT; i++)
        if (wants_profile(t, i))
            pl__buf_printf(t->out, " `%s` |", pl_profile_name((enum pl_profile)i));
    pl__buf_add_lit(t->out, " next |\n|---|---|---|---|");
    for (size_t i = 0; i < PL_PROFILE_COUNT; i++)
        if (wants_profile(t, i))
            pl__buf_add_lit(t->out, "---|");
    pl__buf_add_char(t->out, '\n');
}

/* --- names ------------------------------------------------------------------------------------- */

static void name_row(struct tables *t, const struct pl_row *row)
{
    pl__buf_printf(t->out, "%s\n", row->id);
}

static void name_heading(struct tables *t, const struct pl_table_info *info)
{
    (void)t;
    (void)info;
}

/* --- JSON and YAML ----------------------------------------------------------------------------- */

static void data_row(struct tables *t, struct pl_data *data, const struct pl_row *row)
{
    pl__data_object(data, NULL);
    pl__data_text(data, "row", row->id);
    pl__data_text(data, "guard", row->guard);
    pl__data_text(data, "mode", row->mode);
    pl__data_text(data, "next", row->next);
    pl__data_object(data, "profiles");
    for (size_t i = 0; i < PL_PROFILE_COUNT; i++) {
        if (!wants_profile(t, i))
            continue;
        pl__data_object(data, pl_profile_name((enum pl_profile)i));
        pl__data_text(data, "status", row->outcome[i].status);
        pl__data_text(data, "reason", row->outcome[i].reason);
        pl__data_text(data, "message", row->outcome[i].message);
        pl__data_end_object(data);
    }
    pl__data_end_object(data);
    pl__data_end_object(data);
}

static void data_table(struct tables *t, struct pl_data *data, size_t table)
{
    struct pl_table_info info = pl_table_info(table);

    pl__data_object(data, NULL);
    pl__data_text(data, "name", info.name);
    pl__data_text(data, "kind", info.kind);
    pl__data_text(data, "summary", info.summary);
    pl__data_array(data, "rows");
    for (size_t i = 0; i < info.row_count; i++) {
        struct pl_row row = pl_table_row(table, i);
        if (wants_row(t, &row))
            data_row(t, data, &row);
    }
    pl__data_end_array(data);
    pl__data_end_object(data);
}

static void print_data(struct tables *t)
{
    struct pl_data data;

    pl__data_open(&data, t->cli, true);
    pl__data_array(&data, "tables");
    for (size_t i = 0; i < pl_table_count(); i++) {
        struct pl_table_info info = pl_table_info(i);
        if (wants_table(t, &info, i))
            data_table(t, &data, i);
    }
    pl__data_end_array(&data);
    pl__data_close(&data);
}

/* --- running ----------------------------------------------------------------------------------- */

typedef void heading_fn(struct tables *t, const struct pl_table_info *info);
typedef void row_fn(struct tables *t, const struct pl_row *row);

static void print_lines(struct tables *t, heading_fn *heading, row_fn *print_row)
{
    for (size_t i = 0; i < pl_table_count(); i++) {
        struct pl_table_info info = pl_table_info(i);
        if (!wants_table(t, &info, i))
            continue;
        heading(t, &info);
        for (size_t k = 0; k < info.row_count; k++) {
            struct pl_row row = pl_table_row(i, k);
            if (wants_row(t, &row))
                print_row(t, &row);
        }
    }
}

static void print_md(struct tables *t)
{
    if (!t->wanted)
        pl__buf_add_lit(t->out, "# The transition tables\n\n"
                                "Printed by `plimsoll tables -o md` from the rows that the engine "
                                "executes.\n");
    print_lines(t, md_heading, md_row);
}

static bool is_known(const struct tables *t)
{
    for (size_t i = 0; i < pl_table_count(); i++) {
        struct pl_table_info info = pl_table_info(i);
        if (wants_table(t, &info, i))
            return true;
    }
    return false;
}

static int unknown_table(struct tables *t)
{
    struct pl_near near = { .wanted = t->wanted };

    for (size_t i = 0; i < pl_table_count(); i++)
        pl__near_offer(&near, pl_table_info(i).name);
    if (near.best)
        return pl__cli_usage(t->cli, "no table \"%s\", did you mean \"%s\"?", t->wanted, near.best);
    return pl__cli_usage(t->cli, "no table or row \"%s\"; plimsoll tables -o name lists them",
                         t->wanted);
}

static int run(struct pl_cli *cli)
{
    struct tables t = { .cli = cli, .out = &cli->out.buf, .profile = cli->args.value[OPT_PROFILE] };

    if (cli->args.words.count > 1)
        return pl__cli_usage(cli, "\"%s\": expected at most one table", cli->args.words.items[1]);
    if (cli->args.words.count == 1)
        t.wanted = cli->args.words.items[0];
    if (!is_known(&t))
        return unknown_table(&t);
    if (pl__cli_output_is(cli, "json") || pl__cli_output_is(cli, "yaml"))
        print_data(&t);
    else if (pl__cli_output_is(cli, "md"))
        print_md(&t);
    else if (pl__cli_output_is(cli, "name"))
        print_lines(&t, name_heading, name_row);
    else
        print_lines(&t, text_heading, text_row);
    return 0;
}

const struct pl_command pl__command_tables = {
    .name = "tables",
    .summary = "print the transition tables that the engine executes",
    .synopsis = "[CONDITION] [OPTIONS]",
    .description =
        "Prints each table with its rows: id, guard in words, what it sets in each profile, "
        "whether it overwrites what is stored, and what happens next. Row ids are stable: they "
        "stand in the output of eval and explain, in logs, metrics and events.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .arguments = arguments,
    .argument_count = sizeof arguments / sizeof arguments[0],
    .examples = examples,
    .example_count = sizeof examples / sizeof examples[0],
    .run = run,
};
