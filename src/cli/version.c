/* plimsoll version. */
#include "cli/commands.h"
#include "cli/data.h"

static const char *const formats[] = { "table", "json", "yaml", NULL };

static const struct pl_option options[] = {
    PL_OPTION_OUTPUT(formats),
    PL_OPTION_HELP,
};

static void print_data(struct pl_cli *cli)
{
    struct pl_data data;

    pl__data_open(&data, cli, true);
    pl__data_text(&data, "version", pl_version());
    pl__data_array(&data, "profiles");
    for (size_t i = 0; i < PL_PROFILE_COUNT; i++)
        pl__json_write_str(&data.json, pl__str(pl_profile_name((enum pl_profile)i)));
    pl__data_end_array(&data);
    pl__data_close(&data);
}

static int run(struct pl_cli *cli)
{
    if (cli->args.words.count)
        return pl__cli_usage(cli, "\"%s\": expected no argument", cli->args.words.items[0]);
    if (pl__cli_output_is(cli, "table"))
        pl__buf_printf(&cli->out.buf, "plimsoll %s\n", pl_version());
    else
        print_data(cli);
    return 0;
}

const struct pl_command pl__command_version = {
    .name = "version",
    .summary = "print the version",
    .synopsis = "[OPTIONS]",
    .description = "Prints the version; with -o json or yaml also the profiles it knows.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run,
};
