/* The manual pages: the rows of the commands as roff. No date: equal sources give equal pages. */
#include <ctype.h>

#include "cli/help.h"

static const struct {
    const char *name;
    const char *meaning;
} environment[] = {
    { "NO_COLOR", "when it is set and not empty, --color auto means never" },
    { "COLUMNS", "the width to wrap at; default: the terminal's, or 80" },
    { "LC_ALL, LC_CTYPE, LANG", "the first one set chooses Unicode or ASCII lines for trees" },
};

const char *pl__environment(size_t index, const char **meaning)
{
    if (index >= sizeof environment / sizeof environment[0])
        return NULL;
    *meaning = environment[index].meaning;
    return environment[index].name;
}

/* Text of ours for roff: hyphens stay hyphens that one can copy, a newline starts a paragraph. */
static void add_text(struct pl_buf *out, const char *text)
{
    for (bool line_start = true; *text; text++) {
        if (*text == '\n') {
            pl__buf_add_lit(out, "\n.PP\n");
            line_start = true;
            continue;
        }
        if (line_start && (*text == '.' || *text == '\''))
            pl__buf_add_lit(out, "\\&");
        if (*text == '-' || *text == '\\')
            pl__buf_add_char(out, '\\');
        pl__buf_add_char(out, *text == '\\' ? 'e' : *text);
        line_start = false;
    }
}

static void add_line(struct pl_buf *out, const char *before, const char *text, const char *after)
{
    pl__buf_add(out, pl__str(before));
    add_text(out, text);
    pl__buf_add(out, pl__str(after));
    pl__buf_add_char(out, '\n');
}

static void add_title(struct pl_buf *out, const char *command)
{
    pl__buf_add_lit(out, ".\\\" Made by plimsoll help --man; do not edit.\n.TH \"PLIMSOLL");
    if (*command)
        pl__buf_add_lit(out, "\\-");
    for (; *command; command++)
        pl__buf_add_char(out, (char)toupper((unsigned char)*command));
    pl__buf_printf(out, "\" \"1\" \"\" \"plimsoll %s\" \"User Commands\"\n", pl_version());
}

static void add_option(struct pl_buf *out, const struct pl_option *option)
{
    if (option->hidden)
        return;
    pl__buf_add_lit(out, ".TP\n");
    if (option->letter)
        pl__buf_printf(out, "\\fB\\-%c\\fR, ", option->letter);
    add_line(out, "\\fB\\-\\-", option->name, "\\fR");
    if (option->argument) {
        out->len--; /* the value belongs on the same line */
        pl__buf_printf(out, " \\fI%s\\fR\n", option->argument);
    }
    add_text(out, option->help);
    for (const char *const *choice = option->choices; choice && *choice; choice++) {
        pl__buf_add(out, choice == option->choices ? PL_STR("; one of \\fB") : PL_STR(", \\fB"));
        add_text(out, *choice);
        pl__buf_add_lit(out, "\\fR");
    }
    if (option->fallback) {
        pl__buf_add_lit(out, " (default \\fB");
        add_text(out, option->fallback);
        pl__buf_add_lit(out, "\\fR)");
    }
    pl__buf_add_char(out, '\n');
}

static void add_exit_codes(struct pl_buf *out)
{
    const char *meaning;
    int code;

    pl__buf_add_lit(out, ".SH EXIT STATUS\n");
    for (size_t i = 0; (meaning = pl__exit_meaning(i, &code)); i++) {
        pl__buf_printf(out, ".TP\n\\fB%d\\fR\n", code);
        add_line(out, "", meaning, "");
    }
    add_line(out, ".PP\n",
             "Over several inputs 2 beats 1 beats 3 beats 0. --exit-zero turns 1 and 3 into 0.",
             "");
}

static void add_environment(struct pl_buf *out)
{
    const char *meaning, *name;

    pl__buf_add_lit(out, ".SH ENVIRONMENT\n");
    for (size_t i = 0; (name = pl__environment(i, &meaning)); i++) {
        pl__buf_printf(out, ".TP\n\\fB%s\\fR\n", name);
        add_line(out, "", meaning, "");
    }
}

static void add_examples(struct pl_buf *out, const struct pl_command *command)
{
    if (command->example_count)
        pl__buf_add_lit(out, ".SH EXAMPLES\n");
    for (size_t i = 0; i < command->example_count; i++) {
        add_line(out, ".PP\n", command->examples[i].what, ":");
        add_line(out, ".PP\n.RS 4\n.nf\n", command->examples[i].line, "\n.fi\n.RE");
    }
}

static void add_other_pages(struct pl_buf *out, const struct pl_command *self)
{
    size_t count;
    const struct pl_command *const *commands = pl__commands(&count);

    pl__buf_add_lit(out, ".SH SEE ALSO\n");
    if (self)
        pl__buf_add_lit(out, "\\fBplimsoll\\fR(1)");
    for (size_t i = 0; i < count; i++) {
        if (commands[i] == self)
            continue;
        pl__buf_add(out, i || self ? PL_STR(",\n") : PL_STR(""));
        pl__buf_add_lit(out, "\\fBplimsoll\\-");
        add_text(out, commands[i]->name);
        pl__buf_add_lit(out, "\\fR(1)");
    }
    pl__buf_add_char(out, '\n');
}

static void command_page(struct pl_buf *out, const struct pl_command *command)
{
    add_title(out, command->name);
    pl__buf_add_lit(out, ".SH NAME\nplimsoll\\-");
    add_text(out, command->name);
    add_line(out, " \\- ", command->summary, "");
    add_line(out, ".SH SYNOPSIS\n\\fBplimsoll ", command->name, "\\fR");
    add_line(out, "", command->synopsis, "");
    add_line(out, ".SH DESCRIPTION\n", command->description, "");
    if (command->argument_count)
        pl__buf_add_lit(out, ".SH ARGUMENTS\n");
    for (size_t i = 0; i < command->argument_count; i++) {
        add_line(out, ".TP\n\\fI", command->arguments[i].name, "\\fR");
        add_line(out, "", command->arguments[i].help, "");
    }
    pl__buf_add_lit(out, ".SH OPTIONS\n");
    for (size_t i = 0; i < command->option_count; i++)
        add_option(out, &command->options[i]);
    add_exit_codes(out);
    add_examples(out, command);
    add_other_pages(out, command);
}

static void overview_page(struct pl_buf *out)
{
    size_t count;
    const struct pl_command *const *commands = pl__commands(&count);

    add_title(out, "");
    add_line(out, ".SH NAME\nplimsoll \\- ", "judge the health of Cluster API control planes", "");
    add_line(out, ".SH SYNOPSIS\n\\fBplimsoll\\fR ", "COMMAND [OPTIONS]", "");
    add_line(
        out, ".SH DESCRIPTION\n",
        "plimsoll computes the health, remediation and deletion conditions of "
        "KubeadmControlPlanes and MachineDeployments from evidence (Machines, Nodes, static "
        "Pods, etcd members and alarms, connection probes) and says for each of them which row "
        "of which transition table decided, and on what evidence.\n"
        "Results go to standard output, everything else to standard error.",
        "");
    pl__buf_add_lit(out, ".SH COMMANDS\n");
    for (size_t i = 0; i < count; i++) {
        add_line(out, ".TP\n\\fB", commands[i]->name, "\\fR");
        add_line(out, "", commands[i]->summary, "");
    }
    add_exit_codes(out);
    add_environment(out);
    add_other_pages(out, NULL);
}

void pl__man_page(struct pl_buf *out, const struct pl_command *command)
{
    if (command)
        command_page(out, command);
    else
        overview_page(out);
}
