/* plimsoll eval - judges snapshots and prints every condition. */
#include "cli/eval.h"

#include "cli/commands.h"
#include "cli/report.h"
#include "cli/text.h"

static const struct pl_option options[] = {
    PL_OPTION_FILE,
    { .id = OPT_LIVE, .name = "live", .help = "read the Clusters of a live API in place of files" },
    { .id = OPT_EXPLAIN,
      .name = "explain",
      .help = "add the evidence to every condition: object, path, value, how and when observed" },
    { .id = OPT_DIFF,
      .name = "diff",
      .help = "show only what differs from the stored status; a difference is a finding" },
    PL_OPTION_OUTPUT(pl__read_formats),
    PL_OPTION_PROFILE,
    PL_OPTION_NOW,
    PL_OPTION_NAMESPACE,
    PL_OPTIONS_LIVE,
    PL_OPTION_EXIT_ZERO,
    PL_OPTION_COLOR,
    PL_OPTION_HELP,
};

static const struct pl_argument arguments[] = {
    { .name = "FILE", .complete = COMPLETE_FILES, .help = "more files, as with -f" },
};

static const struct pl_example examples[] = {
    { "plimsoll eval -f dump.yaml", "every condition with the row that decided it" },
    { "kubectl get cl,kcp,ma,md,ms -A -o json | plimsoll eval -f -",
      "what the management cluster alone can tell" },
    { "plimsoll eval -f dumps/ --diff -o name", "audit: where the stored status is wrong" },
    { "plimsoll eval -f dump.yaml --explain -o json | jq .objects", "for programs" },
    { "plimsoll eval --live -A --diff", "audit: where what a live API stores is wrong" },
};

/* How a whole report and its differences are printed in each format. */
static const struct format {
    const char *name;
    void (*whole)(struct pl_eval *eval);
    void (*diff)(struct pl_eval *eval);
    bool for_people; /* a summary stands at the end */
} formats[] = {
    { "table", pl__eval_table, pl__eval_table_diff, true },
    { "wide", pl__eval_table, pl__eval_table_diff, true },
    { "json", pl__eval_json, pl__eval_data_diff, false },
    { "yaml", pl__eval_yaml, pl__eval_data_diff, false },
    { "name", pl__eval_name, pl__eval_name_diff, false },
};

static const struct format *format_find(const struct pl_cli *cli)
{
    size_t at = 0;

    while (!pl__cli_output_is(cli, formats[at].name))
        at++;
    return &formats[at];
}

bool pl__report_differs(const struct pl_report *report)
{
    for (size_t i = 0; i < report->object_count; i++)
        for (size_t k = 0; k < report->objects[i].verdict_count; k++)
            if (pl__verdict_differs(&report->objects[i].verdicts[k]))
                return true;
    return false;
}

/* With --diff a difference is the only finding. */
static enum pl_outcome outcome_of(const struct pl_report *report, bool diff)
{
    if (!diff)
        return pl__report_outcome(report);
    if (pl__report_differs(report))
        return OUTCOME_FINDINGS;
    return report->missing_count ? OUTCOME_MISSING : OUTCOME_HEALTHY;
}

static void add_summary(struct pl_cli *cli, const size_t counts[OUTCOME_COUNT], size_t total)
{
    static const struct {
        enum pl_outcome outcome;
        const char *words[2]; /* plain, with --diff */
    } parts[] = {
        { OUTCOME_HEALTHY, { "healthy", "as stored" } },
        { OUTCOME_FINDINGS, { "with findings", "different" } },
        { OUTCOME_MISSING, { "with evidence missing", "with evidence missing" } },
    };
    struct pl_buf *out = &cli->out.buf;
    const char *separator = ": ";

    pl__text_count(out, total);
    pl__buf_printf(out, " snapshot%s", total == 1 ? "" : "s");
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (counts[parts[i].outcome] == 0)
            continue;
        pl__buf_printf(out, "%s", separator);
        pl__text_count(out, counts[parts[i].outcome]);
        pl__buf_printf(out, " %s", parts[i].words[pl__cli_given(cli, OPT_DIFF)]);
        separator = ", ";
    }
    pl__buf_add_char(out, '\n');
}

static int print_all(struct pl_judge *judge, struct pl_eval *eval)
{
    struct pl_cli *cli = judge->cli;
    const struct format *format = format_find(cli);
    bool diff = pl__cli_given(cli, OPT_DIFF);
    size_t counts[OUTCOME_COUNT] = { 0 };
    int got;

    while ((got = pl__judge_next(judge)) > 0) {
        eval->report = judge->report;
        enum pl_outcome outcome = outcome_of(judge->report, diff);
        pl__cli_note(cli, outcome);
        counts[outcome]++;
        size_t before = cli->out.buf.len;
        (diff ? format->diff : format->whole)(eval);
        eval->first &= cli->out.buf.len == before;
        pl__arena_reset(eval->scratch);
        if (pl__judge_flush(judge) < 0)
            return -1;
    }
    if (got == 0 && format->for_people && (diff || judge->count > 1)) {
        if (!eval->first)
            pl__buf_add_char(&cli->out.buf, '\n');
        add_summary(cli, counts, judge->count);
    }
    return got;
}

static int run(struct pl_cli *cli)
{
    struct pl_judge judge;
    struct pl_arena scratch;
    bool explain = pl__cli_given(cli, OPT_EXPLAIN);

    pl__arena_init(&scratch, NULL, 0);
    int result = pl__judge_open(&judge, cli, cli->args.words, explain,
                                &(struct pl_live_wanted){ .kind = NULL });
    if (result == 0) {
        struct pl_eval eval = { .cli = cli,
                                .ctx = judge.ctx,
                                .scratch = &scratch,
                                .first = true,
                                .wide = pl__cli_output_is(cli, "wide"),
                                .explain = explain };
        result = print_all(&judge, &eval);
    }
    pl__judge_close(&judge);
    pl__arena_release(&scratch);
    return result;
}

const struct pl_command pl__command_eval = {
    .name = "eval",
    .summary = "judge snapshots and print every condition",
    .synopsis = "[OPTIONS] -f FILE... | --live",
    .description =
        "Evaluates Snapshot files, kubectl get -o yaml or json lists, directories of manifests or "
        "standard input, and prints each condition with the row of the transition table that "
        "decided it, its status, reason and message; then what the next remediation or deletion "
        "step would do, and which evidence is missing. With files nothing is contacted. Nothing is "
        "ever guessed: a condition whose evidence is missing is left out and listed.\n"
        "With --live it reads each Cluster of a namespace, or of all with -A, from the management "
        "cluster that the kubeconfig names, and from the workload clusters themselves: what "
        "plimsoll snapshot captures, judged at once.\n"
        "Formats: table fits the terminal; wide adds generation, age and the other rows that held; "
        "json is one compact line per snapshot, in input order; yaml is the same as documents; "
        "name is one line per condition: kind/namespace/name, type, row, status, reason; for one "
        "that could not be judged the row is -, the status Missing, and the missing evidence "
        "follows.\n"
        "A broken document stops the reading; the results before it stand.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .arguments = arguments,
    .argument_count = sizeof arguments / sizeof arguments[0],
    .examples = examples,
    .example_count = sizeof examples / sizeof examples[0],
    .run = run,
};
