/* The program: finds the command, runs it, speaks its error, exits with its code. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/help.h"
#include "cli/text.h"

static const struct pl_command *const commands[] = {
    &pl__command_eval,    &pl__command_explain,  &pl__command_describe,   &pl__command_etcd,
    &pl__command_what_if, &pl__command_snapshot, &pl__command_tables,     &pl__command_run,
    &pl__command_up,      &pl__command_fault,    &pl__command_completion, &pl__command_version,
    &pl__command_help,
};

const struct pl_command *const *pl__commands(size_t *count)
{
    *count = sizeof commands / sizeof commands[0];
    return commands;
}

const struct pl_command *pl__command_find(const char *name)
{
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

int pl__command_unknown(struct pl_cli *cli, const char *name)
{
    struct pl_near near = { .wanted = name };

    cli->args.command = NULL;
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        pl__near_offer(&near, commands[i]->name);
    if (near.best)
        return pl__cli_usage(cli, "unknown command \"%s\", did you mean \"%s\"?", name, near.best);
    return pl__cli_usage(cli, "unknown command \"%s\"; plimsoll help lists them", name);
}

/* Without a command: nothing, a question for help, or a mistake. */
static int run_without_command(struct pl_cli *cli, char **argv, int argc)
{
    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        pl__buf_printf(&cli->out.buf, "plimsoll %s\n", pl_version());
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "--help") != 0 && strcmp(argv[1], "-h") != 0)
        return pl__cli_usage(cli, "no command with \"%s\"; plimsoll help lists them", argv[1]);
    pl__help_overview(&cli->out.buf);
    return 0;
}

static int run(struct pl_cli *cli, char **argv, int argc)
{
    int at = pl__args_find_command(argv, argc);
    if (at < 0)
        return run_without_command(cli, argv, argc);

    const struct pl_command *command = pl__command_find(argv[at]);
    if (!command)
        return pl__command_unknown(cli, argv[at]);
    if (pl__args_parse(cli, command, argv, argc, at) < 0)
        return -1;
    if (pl__cli_given(cli, OPT_HELP)) {
        pl__help_command(&cli->out.buf, command);
        return 0;
    }
    pl__term_init(&cli->term, cli->args.value[OPT_COLOR]);
    return command->run(cli);
}

/* Results first, then what went wrong after them. */
static void finish(struct pl_cli *cli, int result)
{
    if (result < 0 && cli->err)
        pl__cli_note(cli, pl__outcome_of_code(cli->err->code));
    if (pl__out_flush(&cli->out, &cli->arena, result < 0 ? NULL : &cli->err) < 0)
        pl__cli_note(cli, OUTCOME_FAILED);
    if (cli->out.closed)
        pl__cli_note(cli, OUTCOME_CLOSED);
}

/* Our errors may quote the input, so they are made safe for a terminal, too. */
static void speak(struct pl_cli *cli)
{
    struct pl_buf text;

    if (!cli->err || cli->out.closed)
        return;
    pl__buf_init(&text, &cli->arena, SIZE_MAX / 4);
    pl__text_add(&text, pl__error_text(&cli->arena, cli->err));
    fprintf(stderr, "plimsoll: %.*s\n", PL_STR_ARG(pl__buf_str(&text)));
}

int main(int argc, char **argv)
{
    struct pl_cli cli = { .outcome = OUTCOME_HEALTHY, .program = argc > 0 ? argv[0] : "plimsoll" };

    pl__arena_init(&cli.arena, NULL, 0);
    pl__out_init(&cli.out);
    finish(&cli, run(&cli, argv, argc));
    speak(&cli);
    int code = pl__outcome_exit(cli.outcome, pl__cli_given(&cli, OPT_EXIT_ZERO));
    pl__out_release(&cli.out);
    pl__arena_release(&cli.arena);
    return code;
}
