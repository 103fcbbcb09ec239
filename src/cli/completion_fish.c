/* Completion for fish: one line a fact. */
#include "cli/completion.h"

static void add_quoted(struct pl_buf *out, struct pl_str text)
{
    pl__buf_add_char(out, '\'');
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '\'' || text.ptr[i] == '\\')
            pl__buf_add_char(out, '\\');
        pl__buf_add_char(out, text.ptr[i]);
    }
    pl__buf_add_char(out, '\'');
}

static void add_start(struct pl_buf *out, const struct pl_command *command)
{
    pl__buf_printf(out, "complete -c plimsoll -n '__fish_seen_subcommand_from %s'", command->name);
}

static void add_option(struct pl_buf *out, const struct pl_command *command,
                       const struct pl_option *option)
{
    if (option->hidden)
        return;
    add_start(out, command);
    if (option->letter)
        pl__buf_printf(out, " -s %c", option->letter);
    pl__buf_printf(out, " -l %s", option->name);
    if (option->choices) {
        pl__buf_add_lit(out, " -x -a '");
        pl__completion_choices(out, option->choices);
        pl__buf_add_char(out, '\'');
    } else if (option->argument) {
        pl__buf_add(out, option->files ? PL_STR(" -r -F") : PL_STR(" -x"));
    }
    pl__buf_add_lit(out, " -d ");
    add_quoted(out, pl__completion_hint(option->help));
    pl__buf_add_char(out, '\n');
}

static void add_argument(struct pl_buf *out, const struct pl_command *command,
                         const struct pl_argument *argument)
{
    if (argument->complete == COMPLETE_NOTHING)
        return;
    add_start(out, command);
    if (argument->complete == COMPLETE_FILES) {
        pl__buf_add_lit(out, " -F\n");
        return;
    }
    pl__buf_add_lit(out, " -a '");
    pl__completion_words(out, argument);
    pl__buf_add_lit(out, "'\n");
}

void pl__completion_fish(struct pl_buf *out)
{
    size_t count;
    const struct pl_command *const *commands = pl__commands(&count);

    pl__buf_add_lit(out, "# fish completion for plimsoll; made by plimsoll completion fish\n"
                         "complete -c plimsoll -f\n");
    for (size_t i = 0; i < count; i++) {
        pl__buf_printf(out, "complete -c plimsoll -n __fish_use_subcommand -a %s -d ",
                       commands[i]->name);
        add_quoted(out, pl__str(commands[i]->summary));
        pl__buf_add_char(out, '\n');
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < commands[i]->option_count; k++)
            add_option(out, commands[i], &commands[i]->options[k]);
        for (size_t k = 0; k < commands[i]->argument_count; k++)
            add_argument(out, commands[i], &commands[i]->arguments[k]);
    }
}
