/* plimsoll snapshot - captures a cluster into a file that everything else reads. */
#include "cli/commands.h"
#include "cli/data.h"
#include "cli/judge.h"
#include "lib/context.h"

static const char *const formats[] = { "yaml", "json", NULL };

static const struct pl_option options[] = {
    /* clang-format off */
    PL_OPTION_FILE,
    { .id = OPT_OUTPUT,
      .name = "output",
      .letter = 'o',
      .argument = "FORMAT",
      .choices = formats,
      .fallback = "yaml",
      .help = "how to print; json is one line per snapshot" },
    PL_OPTION_NOW,
    PL_OPTION_NAMESPACE,
    PL_OPTIONS_LIVE,
    PL_OPTION_HELP,
    /* clang-format on */
};

static const struct pl_argument arguments[] = {
    { .name = "CLUSTER",
      .complete = COMPLETE_NOTHING,
      .help = "the Cluster, by name or namespace/name; default: every one of the namespace" },
};

static const struct pl_example examples[] = {
    { "plimsoll snapshot prod > prod.yaml", "capture a live cluster" },
    { "plimsoll snapshot prod | plimsoll explain -f -",
      "the same as plimsoll explain, in two steps" },
    { "kubectl get cl,kcp,ma,md,ms,no -A -o json | plimsoll snapshot -f -",
      "only what plimsoll reads of a dump, to be given away" },
};

/* A live cluster: what was read is written as it is. */
static int capture(struct pl_cli *cli)
{
    const struct pl_words *words = &cli->args.words;
    struct pl_live_wanted wanted = { .cluster = { "", 0 } };
    struct pl_live *live = NULL;

    if (words->count > 1)
        return pl__cli_usage(cli, "\"%s\": expected one CLUSTER", words->items[1]);
    if (pl__cli_given(cli, OPT_NOW))
        return pl__cli_usage(cli, "--now is for files: a live cluster is captured as it is now");
    if (words->count)
        wanted.cluster = pl__str(words->items[0]);
    int result = pl__live_open(&live, cli, &wanted);
    if (result == 0)
        result = pl__live_next(live) < 0 ? -1 : 0;
    if (result == 0)
        result = pl__live_write(live, pl__cli_output_is(cli, "json") ? JSON_COMPACT : JSON_AS_YAML,
                                &cli->out.buf);
    if (result == 0)
        pl__live_warn(live);
    pl__live_close(live);
    return result;
}

/* Files: what they hold, as Snapshots. */
static int convert(struct pl_cli *cli)
{
    struct pl_judge judge;
    struct pl_json_writer w;
    bool yaml = pl__cli_output_is(cli, "yaml");
    int result = pl__judge_open(&judge, cli, cli->args.words, false, NULL);

    while (result == 0 && (result = pl__judge_next(&judge)) > 0) {
        if (yaml && judge.count > 1)
            pl__buf_add_lit(&cli->out.buf, "---\n");
        pl__json_writer_init(&w, &cli->out.buf, yaml ? JSON_AS_YAML : JSON_COMPACT);
        pl__snapshot_write(&w, pl__context_snapshot(judge.ctx));
        pl__buf_add_char(&cli->out.buf, '\n');
        result = pl__judge_flush(&judge);
    }
    pl__judge_close(&judge);
    return result;
}

static int run(struct pl_cli *cli)
{
    return cli->args.files.count ? convert(cli) : capture(cli);
}

const struct pl_command pl__command_snapshot = {
    .name = "snapshot",
    .summary = "capture a live cluster into a file that eval reads",
    .synopsis = "[CLUSTER] [OPTIONS] [-f FILE...]",
    .description =
        "Prints a Snapshot of a Cluster: its management objects, how its workload cluster could be "
        "reached, and the control plane Nodes and static Pods in it. Every reading command takes "
        "that with -f and gives the same answer as from the live cluster.\n"
        "Secrets never leave: only the fields that the transition tables read are kept, so there "
        "is "
        "no Secret, no annotation of others, no managedFields, no environment and no argument of a "
        "container in it. Messages of conditions are kept as they are. Objects are written in "
        "v1beta2 form.\n"
        "With -f it does the same to files: a dump becomes a Snapshot without the rest.\n"
        "The exit code is 0 when everything was read, 3 when a workload cluster could not be: the "
        "Snapshot then says so.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .arguments = arguments,
    .argument_count = sizeof arguments / sizeof arguments[0],
    .examples = examples,
    .example_count = sizeof examples / sizeof examples[0],
    .run = run,
};
