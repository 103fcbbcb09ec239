/* plimsoll help, and the text of --help. */
#include "cli/help.h"

#include "cli/commands.h"
#include "cli/text.h"

enum { HELP_WIDTH = 80, OPTION_WIDTH = 28 };

static const struct pl_option options[] = {
    { .id = OPT_MAN, .name = "man", .help = "as roff, for man(1)", .hidden = true },
    PL_OPTION_HELP,
};

static const struct pl_argument arguments[] = {
    { .name = "COMMAND",
      .complete = COMPLETE_COMMANDS,
      .help = "the command; default: an overview" },
};

/* Two columns: what, and its meaning wrapped beside it, or below when the first is too long. */
static void add_entry(struct pl_buf *out, struct pl_str what, struct pl_str meaning)
{
    struct pl_str left = pl__str_format(out->arena, "%*s", OPTION_WIDTH, "");
    struct pl_str first = left;

    if (what.len + 3 > OPTION_WIDTH)
        pl__buf_printf(out, "  %.*s\n", PL_STR_ARG(what));
    else
        first = pl__str_format(out->arena, "  %-*.*s", OPTION_WIDTH - 2, PL_STR_ARG(what));
    pl__text_wrap(out, meaning, (struct pl_wrap){ first, left, HELP_WIDTH });
}

static void add_paragraphs(struct pl_buf *out, const char *text)
{
    while (*text) {
        const char *newline = strchr(text, '\n');
        size_t len = newline ? (size_t)(newline - text) : strlen(text);
        pl__buf_add_char(out, '\n');
        pl__text_block(out, (struct pl_str){ text, len }, 0, HELP_WIDTH);
        text += len + (newline != NULL);
    }
}

static void add_option_help(struct pl_buf *text, const struct pl_option *option)
{
    pl__buf_add(text, pl__str(option->help));
    for (const char *const *choice = option->choices; choice && *choice; choice++)
        pl__buf_printf(text, "%s%s", choice == option->choices ? "; one of " : ", ", *choice);
    if (option->fallback)
        pl__buf_printf(text, " (default %s)", option->fallback);
}

static void add_option(struct pl_buf *out, const struct pl_option *option)
{
    struct pl_arena arena;
    struct pl_buf what, meaning;

    if (option->hidden)
        return;
    pl__arena_init(&arena, NULL, 1024);
    pl__buf_init(&what, &arena, 256);
    pl__buf_init(&meaning, &arena, 4096);
    if (option->letter)
        pl__buf_printf(&what, "-%c, ", option->letter);
    else
        pl__buf_add_lit(&what, "    ");
    pl__buf_printf(&what, "--%s%s%s", option->name, option->argument ? " " : "",
                   option->argument ? option->argument : "");
    add_option_help(&meaning, option);
    add_entry(out, pl__buf_str(&what), pl__buf_str(&meaning));
    pl__arena_release(&arena);
}

static void add_exit_codes(struct pl_buf *out)
{
    const char *meaning;
    int code;

    pl__buf_add_lit(out, "\nExit codes:\n");
    for (size_t i = 0; (meaning = pl__exit_meaning(i, &code)); i++) {
        struct pl_str first = pl__str_format(out->arena, "  %d  ", code);
        pl__text_wrap(out, pl__str(meaning),
                      (struct pl_wrap){ first, PL_STR("     "), HELP_WIDTH });
    }
}

void pl__help_overview(struct pl_buf *out)
{
    size_t count;
    const struct pl_command *const *commands = pl__commands(&count);

    pl__buf_add_lit(out, "plimsoll judges the health of Cluster API control planes, and says why.\n"
                         "\nUsage: plimsoll COMMAND [OPTIONS]\n\nCommands:\n");
    for (size_t i = 0; i < count; i++)
        pl__buf_printf(out, "  %-11s %s\n", commands[i]->name, commands[i]->summary);
    pl__buf_add_lit(out, "\nTry plimsoll eval -f FILE, and plimsoll COMMAND --help.\n");
}

/* Only what judges has more to say than yes and no. */
static bool reads_input(const struct pl_command *command)
{
    for (size_t i = 0; i < command->option_count; i++)
        if (command->options[i].id == OPT_FILE)
            return true;
    return false;
}

void pl__help_command(struct pl_buf *out, const struct pl_command *command)
{
    struct pl_str usage =
        pl__str_format(out->arena, "Usage: plimsoll %s %s", command->name, command->synopsis);

    pl__text_block(out, usage, 0, HELP_WIDTH);
    add_paragraphs(out, command->description);
    if (command->argument_count)
        pl__buf_add_lit(out, "\nArguments:\n");
    for (size_t i = 0; i < command->argument_count; i++)
        add_entry(out, pl__str(command->arguments[i].name), pl__str(command->arguments[i].help));
    pl__buf_add_lit(out, "\nOptions:\n");
    for (size_t i = 0; i < command->option_count; i++)
        add_option(out, &command->options[i]);
    if (command->example_count)
        pl__buf_add_lit(out, "\nExamples:\n");
    for (size_t i = 0; i < command->example_count; i++)
        pl__buf_printf(out, "  # %s\n  %s\n", command->examples[i].what, command->examples[i].line);
    if (reads_input(command))
        add_exit_codes(out);
}

static int run(struct pl_cli *cli)
{
    const struct pl_words *words = &cli->args.words;
    const struct pl_command *command = words->count ? pl__command_find(words->items[0]) : NULL;

    if (words->count > 1)
        return pl__cli_usage(cli, "\"%s\": expected at most one command", words->items[1]);
    if (words->count && !command)
        return pl__command_unknown(cli, words->items[0]);
    if (pl__cli_given(cli, OPT_MAN))
        pl__man_page(&cli->out.buf, command);
    else if (command)
        pl__help_command(&cli->out.buf, command);
    else
        pl__help_overview(&cli->out.buf);
    return 0;
}

const struct pl_command pl__command_help = {
    .name = "help",
    .summary = "help on a command",
    .synopsis = "[COMMAND]",
    .description = "Prints an overview, or the same as plimsoll COMMAND --help.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .arguments = arguments,
    .argument_count = sizeof arguments / sizeof arguments[0],
    .run = run,
};
