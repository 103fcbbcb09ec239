/* plimsoll completion - a script for the shell. */
#include "cli/completion.h"

#include "cli/commands.h"
#include "fleet/fleet.h"

static const char *const shells[] = { "bash", "zsh", "fish", NULL };

static const struct {
    const char *shell;
    void (*print)(struct pl_buf *out);
} scripts[] = {
    { "bash", pl__completion_bash },
    { "zsh", pl__completion_zsh },
    { "fish", pl__completion_fish },
};

static const struct pl_option options[] = {
    PL_OPTION_HELP,
};

static const struct pl_argument arguments[] = {
    { .name = "SHELL",
      .complete = COMPLETE_CHOICES,
      .choices = shells,
      .help = "bash, zsh or fish" },
};

static const struct pl_example examples[] = {
    { "source <(plimsoll completion bash)", "bash, this session" },
    { "plimsoll completion zsh > \"${fpath[1]}/_plimsoll\"", "zsh" },
    { "plimsoll completion fish > ~/.config/fish/completions/plimsoll.fish", "fish" },
};

void pl__completion_choices(struct pl_buf *out, const char *const *choices)
{
    for (const char *const *choice = choices; *choice; choice++)
        pl__buf_printf(out, "%s%s", choice == choices ? "" : " ", *choice);
}

void pl__completion_words(struct pl_buf *out, const struct pl_argument *argument)
{
    size_t count;
    const struct pl_command *const *commands = pl__commands(&count);

    if (argument->complete == COMPLETE_CHOICES)
        pl__completion_choices(out, argument->choices);
    if (argument->complete == COMPLETE_TABLES)
        for (size_t i = 0; i < pl_table_count(); i++)
            pl__buf_printf(out, "%s%s", i ? " " : "", pl_table_info(i).name);
    if (argument->complete == COMPLETE_COMMANDS)
        for (size_t i = 0; i < count; i++)
            pl__buf_printf(out, "%s%s", i ? " " : "", commands[i]->name);
    if (argument->complete == COMPLETE_FAULTS) {
        pl__buf_add_lit(out, "list clear");
        for (size_t i = 0; i < pl__fleet_fault_count; i++)
            pl__buf_printf(out, " %s", pl__fleet_faults[i].name);
    }
}

struct pl_str pl__completion_hint(const char *help)
{
    return (struct pl_str){ help, strcspn(help, ";:") };
}

static int run(struct pl_cli *cli)
{
    const struct pl_words *words = &cli->args.words;

    if (words->count != 1)
        return pl__cli_usage(cli, "expected one of bash, zsh, fish");
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        if (strcmp(scripts[i].shell, words->items[0]) != 0)
            continue;
        scripts[i].print(&cli->out.buf);
        return 0;
    }
    return pl__cli_usage(cli, "\"%s\": expected one of bash, zsh, fish", words->items[0]);
}

const struct pl_command pl__command_completion = {
    .name = "completion",
    .summary = "print a completion script for bash, zsh or fish",
    .synopsis = "bash|zsh|fish",
    .description = "Prints a script that completes commands, options and their values.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .arguments = arguments,
    .argument_count = sizeof arguments / sizeof arguments[0],
    .examples = examples,
    .example_count = sizeof examples / sizeof examples[0],
    .run = run,
};
