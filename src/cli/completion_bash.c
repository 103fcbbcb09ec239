/* Completion for bash 4 and later. */
#include "cli/completion.h"

/* bash cuts words at "=", so --output=json arrives as three of them. `arguments` counts the words
 * behind the command that are neither options nor values. */
static const char head[] =
    "# bash completion for plimsoll; made by plimsoll completion bash\n"
    "_plimsoll_words() {\n"
    "    mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$cur\")\n"
    "    [[ ${COMPREPLY[0]} == */ ]] && compopt -o nospace\n"
    "    return 0\n"
    "}\n"
    "\n"
    "_plimsoll() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
    "    local command='' arguments=0 i\n"
    "    COMPREPLY=()\n"
    "    if [[ $cur == = ]]; then\n"
    "        cur=''\n"
    "    elif [[ $prev == = ]]; then\n"
    "        prev=${COMP_WORDS[COMP_CWORD-2]}\n"
    "    fi\n"
    "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
    "        case ${COMP_WORDS[i]} in\n";

static const char count_words[] =
    "            [[ ${COMP_WORDS[i+1]} == = ]] && ((i++))\n"
    "            ((i++)) ;;\n"
    "        -?*) ;;\n"
    "        *)\n"
    "            if [[ -z $command ]]; then command=${COMP_WORDS[i]}; else ((arguments++)); fi ;;\n"
    "        esac\n"
    "    done\n"
    "    case $command in\n";

static void add_spelling(struct pl_buf *out, const struct pl_option *option, const char *separator)
{
    if (option->letter)
        pl__buf_printf(out, "-%c%s", option->letter, separator);
    pl__buf_printf(out, "--%s", option->name);
}

/* Every option of any command that takes a value: the word behind it is no argument. */
static void add_value_options(struct pl_buf *out)
{
    bool seen[OPT_COUNT] = { false };
    size_t count;
    const struct pl_command *const *commands = pl__commands(&count);
    const char *separator = "        ";

    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < commands[i]->option_count; k++) {
            const struct pl_option *option = &commands[i]->options[k];
            if (!option->argument || seen[option->id])
                continue;
            seen[option->id] = true;
            pl__buf_printf(out, "%s", separator);
            add_spelling(out, option, "|");
            separator = "|";
        }
    }
    pl__buf_add_lit(out, ")\n");
}

/* What may stand behind an option. */
static void add_values(struct pl_buf *out, const struct pl_option *option)
{
    if (!option->argument)
        return;
    pl__buf_add_lit(out, "        ");
    add_spelling(out, option, "|");
    pl__buf_add_lit(out, ") ");
    if (option->choices) {
        pl__buf_add_lit(out, "_plimsoll_words '");
        pl__completion_choices(out, option->choices);
        pl__buf_add_lit(out, "'; ");
    } else if (option->files) {
        pl__buf_add_lit(out, "compopt -o default; ");
    }
    pl__buf_add_lit(out, "return ;;\n");
}

static void add_option_names(struct pl_buf *out, const struct pl_command *command)
{
    pl__buf_add_lit(out, "        if [[ $cur == -* ]]; then\n            _plimsoll_words '");
    for (size_t i = 0; i < command->option_count; i++) {
        if (command->options[i].hidden)
            continue;
        pl__buf_add(out, i ? PL_STR(" ") : PL_STR(""));
        add_spelling(out, &command->options[i], " ");
    }
    pl__buf_add_lit(out, "'\n            return\n        fi\n");
}

static void add_arguments(struct pl_buf *out, const struct pl_command *command)
{
    if (command->argument_count)
        pl__buf_add_lit(out, "        case $arguments in\n");
    for (size_t i = 0; i < command->argument_count; i++) {
        const struct pl_argument *argument = &command->arguments[i];
        if (i + 1 == command->argument_count)
            pl__buf_add_lit(out, "        *) ");
        else
            pl__buf_printf(out, "        %zu) ", i);
        if (argument->complete == COMPLETE_FILES) {
            pl__buf_add_lit(out, "compopt -o default");
        } else if (argument->complete == COMPLETE_NOTHING) {
            pl__buf_add_lit(out, ":");
        } else {
            pl__buf_add_lit(out, "_plimsoll_words '");
            pl__completion_words(out, argument);
            pl__buf_add_lit(out, "'");
        }
        pl__buf_add_lit(out, " ;;\n");
    }
    if (command->argument_count)
        pl__buf_add_lit(out, "        esac\n");
}

static void add_command(struct pl_buf *out, const struct pl_command *command)
{
    pl__buf_printf(out, "    %s)\n        case $prev in\n", command->name);
    for (size_t i = 0; i < command->option_count; i++)
        add_values(out, &command->options[i]);
    pl__buf_add_lit(out, "        esac\n");
    add_option_names(out, command);
    add_arguments(out, command);
    pl__buf_add_lit(out, "        ;;\n");
}

void pl__completion_bash(struct pl_buf *out)
{
    size_t count;
    const struct pl_command *const *commands = pl__commands(&count);

    pl__buf_add(out, pl__str(head));
    add_value_options(out);
    pl__buf_add(out, pl__str(count_words));
    pl__buf_add_lit(out, "    '') _plimsoll_words '");
    for (size_t i = 0; i < count; i++)
        pl__buf_printf(out, "%s ", commands[i]->name);
    pl__buf_add_lit(out, "--help --version' ;;\n");
    for (size_t i = 0; i < count; i++)
        add_command(out, commands[i]);
    pl__buf_add_lit(out, "    esac\n}\ncomplete -F _plimsoll plimsoll\n");
}
