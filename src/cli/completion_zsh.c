/* Completion for zsh, in the language of its _arguments. */
#include "cli/completion.h"

/* Text inside '...[text]': brackets and colons mean something there, and a quote ends it. */
static void add_text(struct pl_buf *out, struct pl_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '\'') {
            pl__buf_add_lit(out, "'\\''");
            continue;
        }
        if (strchr("[]:\\", text.ptr[i]))
            pl__buf_add_char(out, '\\');
        pl__buf_add_char(out, text.ptr[i]);
    }
}

/* 'what:...' with its values. */
static void add_action(struct pl_buf *out, const struct pl_argument *argument)
{
    switch (argument->complete) {
    case COMPLETE_FILES:
        pl__buf_add_lit(out, "_files");
        break;
    case COMPLETE_NOTHING:
        pl__buf_add_char(out, ' ');
        break;
    default:
        pl__buf_add_char(out, '(');
        pl__completion_words(out, argument);
        pl__buf_add_char(out, ')');
    }
}

static void add_value(struct pl_buf *out, const struct pl_option *option)
{
    struct pl_argument argument = { .choices = option->choices };

    if (!option->argument)
        return;
    if (option->choices)
        argument.complete = COMPLETE_CHOICES;
    else if (option->files)
        argument.complete = COMPLETE_FILES;
    pl__buf_printf(out, ":%s:", option->argument);
    add_action(out, &argument);
}

/* '(-o --output)'{-o+,--output=}'[how to print]:FORMAT:(table json)' */
static void add_option(struct pl_buf *out, const struct pl_option *option)
{
    const char *sign[] = { option->argument ? "+" : "", option->argument ? "=" : "" };

    if (option->hidden)
        return;
    pl__buf_add_lit(out, " \\\n      ");
    if (option->files)
        pl__buf_add_lit(out, "'*'");
    else if (option->letter)
        pl__buf_printf(out, "'(-%c --%s)'", option->letter, option->name);
    if (option->letter)
        pl__buf_printf(out, "{-%c%s,--%s%s}", option->letter, sign[0], option->name, sign[1]);
    else
        pl__buf_printf(out, "--%s%s", option->name, sign[1]);
    pl__buf_add_lit(out, "'[");
    add_text(out, pl__completion_hint(option->help));
    pl__buf_add_char(out, ']');
    add_value(out, option);
    pl__buf_add_char(out, '\'');
}

static void add_command(struct pl_buf *out, const struct pl_command *command)
{
    pl__buf_printf(out, "  %s)\n    _arguments -s -S", command->name);
    for (size_t i = 0; i < command->option_count; i++)
        add_option(out, &command->options[i]);
    for (size_t i = 0; i < command->argument_count; i++) {
        const struct pl_argument *argument = &command->arguments[i];
        if (i + 1 == command->argument_count && argument->complete == COMPLETE_FILES)
            pl__buf_add_lit(out, " \\\n      '*:");
        else
            pl__buf_printf(out, " \\\n      '%zu:", i + 1);
        add_text(out, pl__str(argument->name));
        pl__buf_add_char(out, ':');
        add_action(out, argument);
        pl__buf_add_char(out, '\'');
    }
    pl__buf_add_lit(out, "\n    ;;\n");
}

void pl__completion_zsh(struct pl_buf *out)
{
    size_t count;
    const struct pl_command *const *commands = pl__commands(&count);

    pl__buf_add_lit(out, "#compdef plimsoll\n"
                         "# zsh completion for plimsoll; made by plimsoll completion zsh\n"
                         "_plimsoll() {\n"
                         "  local curcontext=$curcontext state line\n"
                         "  local -a commands=(\n");
    for (size_t i = 0; i < count; i++) {
        pl__buf_printf(out, "    '%s:", commands[i]->name);
        add_text(out, pl__str(commands[i]->summary));
        pl__buf_add_lit(out, "'\n");
    }
    pl__buf_add_lit(out, "  )\n"
                         "  _arguments -C '1: :->command' '*:: :->arguments'\n"
                         "  if [[ $state == command ]]; then\n"
                         "    _describe command commands\n"
                         "    return\n"
                         "  fi\n"
                         "  case $words[1] in\n");
    for (size_t i = 0; i < count; i++)
        add_command(out, commands[i]);
    pl__buf_add_lit(out, "  esac\n}\n\nif [[ $funcstack[1] == _plimsoll ]]; then\n"
                         "  _plimsoll \"$@\"\nelse\n  compdef _plimsoll plimsoll\nfi\n");
}
