/* Reading a command line against a table of options, GNU style: -o json, -ojson, --output json,
 * --output=json, options and other words in any order, -- ends the options. */
#include "base/time.h"
#include "cli/command.h"

const char *const pl__profile_choices[] = { "tables", "cluster-api-1.12", NULL };
const char *const pl__color_choices[] = { "auto", "always", "never", NULL };
const char *const pl__read_formats[] = { "table", "wide", "json", "yaml", "name", NULL };

/* The letters or the name of an option as the user wrote it. */
struct spelling {
    struct pl_str name; /* of a long option */
    char letter;        /* of a short one */
    const char *value;  /* glued to it, or NULL */
};

static bool is_option(const char *word)
{
    return word[0] == '-' && word[1] != '\0';
}

static struct spelling spell(const char *word)
{
    if (word[1] != '-') {
        /* "-o=json" is what many tools take, too. */
        const char *value = word[2] == '=' ? word + 3 : word + 2;
        return (struct spelling){ .letter = word[1], .value = word[2] ? value : NULL };
    }
    const char *equals = strchr(word, '=');
    size_t len = equals ? (size_t)(equals - word) : strlen(word);
    return (struct spelling){ .name = { word + 2, len - 2 }, .value = equals ? equals + 1 : NULL };
}

static const struct pl_option *option_find(const struct pl_command *command, struct spelling s)
{
    for (size_t i = 0; i < command->option_count; i++) {
        const struct pl_option *option = &command->options[i];
        if (s.letter ? option->letter == s.letter : pl__str_equal(pl__str(option->name), s.name))
            return option;
    }
    return NULL;
}

/* Before the command is known, any command's option will do: a name means the same in all. */
static const struct pl_option *option_find_anywhere(struct spelling s)
{
    const struct pl_option *found = NULL;
    size_t count;
    const struct pl_command *const *commands = pl__commands(&count);

    for (size_t i = 0; i < count && !found; i++)
        found = option_find(commands[i], s);
    return found;
}

int pl__args_find_command(char **argv, int argc)
{
    for (int i = 1; i < argc; i++) {
        if (!is_option(argv[i]))
            return i;
        if (strcmp(argv[i], "--") == 0)
            return i + 1 < argc ? i + 1 : -1;
        struct spelling s = spell(argv[i]);
        const struct pl_option *option = option_find_anywhere(s);
        if (option && option->argument && !s.value)
            i++;
    }
    return -1;
}

static int unknown_option(struct pl_cli *cli, const struct pl_command *command, const char *word)
{
    struct spelling s = spell(word);
    struct pl_str name = pl__str_copy(&cli->arena, s.name);
    struct pl_near near = { .wanted = name.ptr };

    if (s.letter)
        return pl__cli_usage(cli, "unknown option \"-%c\"; plimsoll %s --help lists them", s.letter,
                             command->name);
    for (size_t i = 0; i < command->option_count; i++)
        if (!command->options[i].hidden)
            pl__near_offer(&near, command->options[i].name);
    if (near.best)
        return pl__cli_usage(cli, "unknown option \"--%s\", did you mean \"--%s\"?", name.ptr,
                             near.best);
    return pl__cli_usage(cli, "unknown option \"--%s\"; plimsoll %s --help lists them", name.ptr,
                         command->name);
}

static int check_choice(struct pl_cli *cli, const struct pl_option *option, const char *value)
{
    struct pl_buf list;

    if (!option->choices)
        return 0;
    pl__buf_init(&list, &cli->arena, 1024);
    for (const char *const *choice = option->choices; *choice; choice++) {
        if (strcmp(*choice, value) == 0)
            return 0;
        pl__buf_printf(&list, "%s%s", list.len ? ", " : "", *choice);
    }
    return pl__cli_usage(cli, "--%s \"%s\": expected one of %.*s", option->name, value,
                         PL_STR_ARG(pl__buf_str(&list)));
}

static int take_option(struct pl_cli *cli, const struct pl_option *option, const char *value)
{
    struct pl_args *args = &cli->args;

    if (check_choice(cli, option, value) < 0)
        return -1;
    args->value[option->id] = value;
    if (option->id == OPT_FILE)
        args->files.items[args->files.count++] = value;
    return 0;
}

/* An option without an argument. Programs that write command lines like --name=true and =false, which
 * Go's tools take. */
static int take_switch(struct pl_cli *cli, const struct pl_option *option, struct spelling s)
{
    if (!s.value || (!s.letter && strcmp(s.value, "true") == 0))
        return take_option(cli, option, "");
    if (s.letter)
        return pl__cli_usage(cli, "--%s takes no value", option->name);
    if (strcmp(s.value, "false") != 0)
        return pl__cli_usage(cli, "--%s \"%s\": expected true or false", option->name, s.value);
    cli->args.value[option->id] = NULL;
    return 0;
}

/* Reads the option at argv[*at] and moves `at` over its value when that stands by itself. */
static int parse_option(struct pl_cli *cli, char **argv, int argc, int *at)
{
    const char *word = argv[*at];
    struct spelling s = spell(word);
    const struct pl_option *option = option_find(cli->args.command, s);

    if (!option)
        return unknown_option(cli, cli->args.command, word);
    if (!option->argument)
        return take_switch(cli, option, s);
    if (s.value)
        return take_option(cli, option, s.value);
    if (++*at >= argc)
        return pl__cli_usage(cli, "--%s: expected %s behind it", option->name, option->argument);
    return take_option(cli, option, argv[*at]);
}

int pl__args_parse(struct pl_cli *cli, const struct pl_command *command, char **argv, int argc,
                   int command_at)
{
    struct pl_args *args = &cli->args;
    bool options_ended = false;

    *args = (struct pl_args){ .command = command };
    args->files.items = PL_NEW(&cli->arena, const char *, (size_t)argc);
    args->words.items = PL_NEW(&cli->arena, const char *, (size_t)argc);
    for (size_t i = 0; i < command->option_count; i++)
        args->value[command->options[i].id] = command->options[i].fallback;

    for (int i = 1; i < argc; i++) {
        if (i == command_at)
            continue;
        if (options_ended || !is_option(argv[i]))
            args->words.items[args->words.count++] = argv[i];
        else if (strcmp(argv[i], "--") == 0)
            options_ended = true;
        else if (parse_option(cli, argv, argc, &i) < 0)
            return -1;
    }
    return 0;
}

int pl__cli_blame(struct pl_cli *cli)
{
    if (!cli->args.command)
        return -1;
    return pl__fail(&cli->arena, &cli->err, cli->err, "%s", cli->args.command->name);
}

bool pl__cli_given(const struct pl_cli *cli, enum pl_option_id id)
{
    return cli->args.value[id] != NULL;
}

bool pl__cli_output_is(const struct pl_cli *cli, const char *format)
{
    return cli->args.value[OPT_OUTPUT] && strcmp(cli->args.value[OPT_OUTPUT], format) == 0;
}

void pl__cli_note(struct pl_cli *cli, enum pl_outcome outcome)
{
    cli->outcome = pl__outcome_worst(cli->outcome, outcome);
}

static const char *name_of(const struct pl_command *command, enum pl_option_id id)
{
    size_t at = 0;

    while (command->options[at].id != id)
        at++;
    return command->options[at].name;
}

int pl__cli_seconds(struct pl_cli *cli, enum pl_option_id id, uint32_t max, const char *max_text,
                    uint32_t *seconds)
{
    struct pl_str text = pl__str(cli->args.value[id]);
    const char *name = name_of(cli->args.command, id);
    int64_t value = 0;

    if (!pl__duration_parse(text, &value))
        return pl__cli_usage(cli, "--%s \"%s\": expected a duration such as 90s, 5m or 1h30m", name,
                             text.ptr);
    if (strpbrk(text.ptr, ".nu\xc2\xce") || pl__str_contains(text, PL_STR("ms")))
        return pl__cli_usage(cli, "--%s \"%s\": expected whole seconds, minutes and hours", name,
                             text.ptr);
    if (value < 1 || value > max)
        return pl__cli_usage(cli, "--%s \"%s\": expected between 1s and %s", name, text.ptr,
                             max_text);
    *seconds = (uint32_t)value;
    return 0;
}

void pl__cli_cluster(const struct pl_cli *cli, struct pl_str *namespace_, struct pl_str *cluster)
{
    const struct pl_words *words = &cli->args.words;

    if (pl__cli_given(cli, OPT_NAMESPACE))
        *namespace_ = pl__str(cli->args.value[OPT_NAMESPACE]);
    if (words->count == 0)
        return;
    const char *slash = strchr(words->items[0], '/');
    *cluster = pl__str(slash ? slash + 1 : words->items[0]);
    if (slash)
        *namespace_ = (struct pl_str){ words->items[0], (size_t)(slash - words->items[0]) };
}
