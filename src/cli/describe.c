/* plimsoll describe - a cluster as a tree: what there is, how it is, and what calls for attention. */
#include "cli/describe.h"

#include <unistd.h>

#include "base/time.h"
#include "cli/commands.h"
#include "cli/judge.h"
#include "cli/report.h"
#include "cli/text.h"
#include "lib/context.h"

static const struct pl_option options[] = {
    /* clang-format off */
    PL_OPTION_FILE,
    { .id = OPT_SHOW_CONDITIONS,
      .name = "show-conditions",
      .help = "all conditions that plimsoll judges below their objects, and every Machine in a line of "
              "its own; default: what calls for attention" },
    { .id = OPT_WATCH,
      .name = "watch",
      .letter = 'w',
      .help = "go on, and show changes of a live API as they come; on a terminal the screen is redrawn, "
              "elsewhere each change is a line" },
    PL_OPTION_OUTPUT(pl__read_formats),
    PL_OPTION_PROFILE,
    PL_OPTION_NOW,
    PL_OPTION_NAMESPACE,
    PL_OPTIONS_LIVE,
    PL_OPTION_EXIT_ZERO,
    PL_OPTION_COLOR,
    PL_OPTION_HELP,
    /* clang-format on */
};

static const struct pl_argument arguments[] = {
    { .name = "CLUSTER",
      .complete = COMPLETE_NOTHING,
      .help = "the Cluster, by name or namespace/name; default: every one" },
    { .name = "FILE", .complete = COMPLETE_FILES, .help = "more files, as with -f" },
};

static const struct pl_example examples[] = {
    { "plimsoll describe prod", "a live cluster" },
    { "plimsoll describe -A -w", "all of them, as they change" },
    { "plimsoll describe -f dump.yaml --show-conditions", "everything in a dump" },
};

/* --- one look ------------------------------------------------------------------------------------ */

/* The exit code speaks of what is shown, and of nothing else. */
static void note_outcome(struct pl_describe *d, const struct pl_describe_node *node)
{
    const struct pl_object *o = node->object;

    for (size_t i = 0; o && i < o->verdict_count; i++) {
        if (pl__verdict_calls(&o->verdicts[i]))
            pl__cli_note(d->cli, OUTCOME_FINDINGS);
    }
    for (const struct pl_describe_node *child = node->child; child; child = child->next)
        note_outcome(d, child);
}

static void print(struct pl_describe *d)
{
    if (pl__cli_output_is(d->cli, "json") || pl__cli_output_is(d->cli, "yaml"))
        pl__describe_data(d);
    else if (pl__cli_output_is(d->cli, "name"))
        pl__describe_names(d);
    else
        pl__describe_table(d);
    d->first = false;
}

/* Builds the tree of the snapshot judged last. False when nothing in it is wanted. */
static bool build(struct pl_describe *d, struct pl_judge *judge)
{
    d->report = judge->report;
    d->snapshot = pl__context_snapshot(judge->ctx);
    pl__describe_build(d);
    for (const struct pl_describe_node *root = d->clusters; root; root = root->next)
        note_outcome(d, root);
    if (d->clusters && d->report->missing_count)
        pl__cli_note(d->cli, OUTCOME_MISSING);
    return d->clusters != NULL;
}

static int describe_all(struct pl_describe *d, struct pl_judge *judge)
{
    int got;

    while ((got = pl__judge_next(judge)) > 0) {
        if (build(d, judge))
            print(d);
        pl__arena_reset(d->scratch);
        if (pl__judge_flush(judge) < 0)
            return -1;
    }
    if (got == 0 && d->first && d->cluster.len)
        return pl__error(
            &d->cli->arena, &d->cli->err, PL_NOT_FOUND,
            "no Cluster %.*s%s%.*s in the input; plimsoll describe -o name lists what is "
            "there",
            PL_STR_ARG(d->namespace_), d->namespace_.len ? "/" : "", PL_STR_ARG(d->cluster));
    if (got == 0 && d->first)
        return pl__error(&d->cli->arena, &d->cli->err, PL_NOT_FOUND,
                         "no Cluster%s%.*s in the input", d->namespace_.len ? " of namespace " : "",
                         PL_STR_ARG(d->namespace_));
    return got;
}

/* --- going on ------------------------------------------------------------------------------------ */

/* What was shown last, to tell what is new. */
struct watch {
    struct pl_arena arenas[2]; /* of the last look and of this one, in turn */
    int turn;
    struct pl_str *lines; /* of the last look, sorted as they came */
    size_t line_count;
    struct pl_str screen;
};

/* It is most often where it was: at `hint`. */
static bool contains(const struct pl_str *lines, size_t count, struct pl_str line, size_t hint)
{
    if (hint < count && pl__str_equal(lines[hint], line))
        return true;
    for (size_t i = 0; i < count; i++) {
        if (pl__str_equal(lines[i], line))
            return true;
    }
    return false;
}

/* One line a condition, without a time: what differs from the last look is new. */
static void add_lines(struct pl_describe *d, const struct pl_describe_node *node,
                      struct pl_buf *out)
{
    const struct pl_object *o = node->object;

    if (node->kind && node->type.len) {
        pl__buf_printf(out, "%s/%.*s/%.*s %.*s %.*s %.*s\n", node->kind,
                       PL_STR_ARG(node->namespace_), PL_STR_ARG(node->name), PL_STR_ARG(node->type),
                       PL_STR_ARG(node->status), PL_STR_ARG(node->reason));
    }
    for (size_t i = 0; o && i < o->verdict_count; i++) {
        const struct pl_verdict *v = &o->verdicts[i];
        pl__buf_printf(out, "%s/%.*s/%.*s %s %s %.*s", o->kind, PL_STR_ARG(o->namespace_),
                       PL_STR_ARG(o->name), v->type, pl_status_name(v->status),
                       PL_STR_ARG(v->reason));
        for (size_t k = 0; k < v->message.len; k++) {
            if (k == 0)
                pl__buf_add_lit(out, ": ");
            pl__buf_add_char(out, v->message.ptr[k] == '\n' ? ' ' : v->message.ptr[k]);
        }
        pl__buf_add_char(out, '\n');
    }
    for (const struct pl_describe_node *child = node->child; child; child = child->next) {
        /* What belongs to an object and is no condition that was judged. */
        if (!child->kind && child->optional && !(child->is_condition && o))
            pl__buf_printf(out, "%.*s of %s/%.*s/%.*s %.*s\n", PL_STR_ARG(child->name), node->kind,
                           PL_STR_ARG(node->namespace_), PL_STR_ARG(node->name),
                           PL_STR_ARG(child->status));
        add_lines(d, child, out);
    }
}

static struct pl_str *split_lines(struct pl_arena *arena, struct pl_str text, size_t *count)
{
    size_t lines = 0;

    for (size_t i = 0; i < text.len; i++)
        lines += text.ptr[i] == '\n';
    struct pl_str *list = PL_NEW(arena, struct pl_str, lines);
    *count = 0;
    for (const char *at = text.ptr; *count < lines;) {
        const char *end = memchr(at, '\n', text.len - (size_t)(at - text.ptr));
        list[(*count)++] = (struct pl_str){ at, (size_t)(end - at) };
        at = end + 1;
    }
    return list;
}

static void print_line(struct pl_buf *out, int64_t now_ms, struct pl_str line, const char *after)
{
    pl__time_add(out, now_ms);
    pl__buf_add_char(out, ' ');
    pl__text_add(out, line);
    pl__buf_printf(out, "%s\n", after);
}

/* Of a line that is gone its object and condition are named, when nothing new is said of them. */
static bool is_replaced(struct pl_str line, const struct pl_str *lines, size_t count)
{
    size_t spaces = 0, len = 0;

    while (len < line.len && (spaces += line.ptr[len] == ' ') < 2)
        len++;
    for (size_t i = 0; i < count; i++) {
        if (lines[i].len > len && memcmp(lines[i].ptr, line.ptr, len) == 0 &&
            lines[i].ptr[len] == ' ')
            return true;
    }
    return false;
}

static int show_lines(struct pl_describe *d, struct pl_judge *judge, struct watch *w)
{
    struct pl_arena *arena = &w->arenas[w->turn ^= 1];
    struct pl_buf *out = &d->cli->out.buf;
    struct pl_buf text;
    int64_t now_ms = 0;
    size_t count;
    int got;

    pl__arena_reset(arena);
    pl__buf_init(&text, arena, SIZE_MAX / 4);
    while ((got = pl__judge_next(judge)) > 0) {
        build(d, judge);
        now_ms = d->report->now_ms;
        for (const struct pl_describe_node *root = d->clusters; root; root = root->next)
            add_lines(d, root, &text);
        pl__arena_reset(d->scratch);
    }
    struct pl_str *lines = split_lines(arena, pl__buf_str(&text), &count);
    for (size_t i = 0; i < count; i++) {
        if (!contains(w->lines, w->line_count, lines[i], i))
            print_line(out, now_ms, lines[i], "");
    }
    for (size_t i = 0; i < w->line_count; i++) {
        if (!contains(lines, count, w->lines[i], i) && !is_replaced(w->lines[i], lines, count))
            print_line(out, now_ms, w->lines[i], " (gone)");
    }
    w->lines = lines;
    w->line_count = count;
    return got < 0 ? got : pl__judge_flush(judge);
}

/* The whole picture again, when it is another one: a new screen, or a new line of JSON. */
static int show_whole(struct pl_describe *d, struct pl_judge *judge, struct watch *w, bool screen)
{
    struct pl_arena *arena = &w->arenas[w->turn ^= 1];
    struct pl_buf *out = &d->cli->out.buf;
    int got;

    pl__arena_reset(arena);
    d->first = true;
    while ((got = pl__judge_next(judge)) > 0) {
        if (build(d, judge))
            print(d);
        pl__arena_reset(d->scratch);
    }
    if (got < 0)
        return got;
    struct pl_str text = pl__str_copy(arena, pl__buf_str(out));
    bool same = pl__str_equal(text, w->screen);
    w->screen = text;
    pl__buf_clear(out);
    if (same)
        return 0;
    /* Home, then every line cleared to its end, then the rest of the screen: nothing flickers. */
    if (screen)
        pl__buf_add_lit(out, "\x1b[H");
    for (size_t i = 0; i < text.len; i++) {
        if (screen && text.ptr[i] == '\n')
            pl__buf_add_lit(out, "\x1b[K");
        pl__buf_add_char(out, text.ptr[i]);
    }
    if (screen)
        pl__buf_add_lit(out, "\x1b[J");
    return pl__judge_flush(judge);
}

static int follow(struct pl_describe *d, struct pl_judge *judge)
{
    struct watch w = { .turn = 0 };
    bool table = pl__cli_output_is(d->cli, "table") || pl__cli_output_is(d->cli, "wide");
    bool screen = table && isatty(STDOUT_FILENO);
    int result = 0;

    pl__arena_init(&w.arenas[0], NULL, 0);
    pl__arena_init(&w.arenas[1], NULL, 0);
    if (screen)
        pl__buf_add_lit(&d->cli->out.buf, "\x1b[H\x1b[2J");
    if (screen)
        pl__judge_flush(judge);
    for (int changed = 1; changed >= 0; changed = result < 0 ? -1 : pl__judge_follow(judge)) {
        result = 0;
        if (table && !screen)
            result = show_lines(d, judge, &w);
        else if (changed || screen)
            result = show_whole(d, judge, &w, screen);
    }
    pl__arena_release(&w.arenas[0]);
    pl__arena_release(&w.arenas[1]);
    return -1; /* it ends only when something fails */
}

/* --- running ------------------------------------------------------------------------------------- */

static int run(struct pl_cli *cli)
{
    const struct pl_words *words = &cli->args.words;
    struct pl_words more = { words->items + 1, words->count ? words->count - 1 : 0 };
    bool watching = pl__cli_given(cli, OPT_WATCH);
    struct pl_arena scratch;
    struct pl_judge judge;
    struct pl_describe d = { .cli = cli,
                             .scratch = &scratch,
                             .first = true,
                             .wide = pl__cli_output_is(cli, "wide"),
                             .show_conditions = pl__cli_given(cli, OPT_SHOW_CONDITIONS) };

    pl__cli_cluster(cli, &d.namespace_, &d.cluster);
    pl__arena_init(&scratch, NULL, 0);
    struct pl_live_wanted wanted = { .cluster = d.cluster,
                                     .namespace_ = d.cluster.len ? d.namespace_ : PL_STR("") };
    int result = pl__judge_open(&judge, cli, more, false, &wanted);
    if (result == 0)
        result = watching ? follow(&d, &judge) : describe_all(&d, &judge);
    pl__judge_close(&judge);
    pl__arena_release(&scratch);
    return result;
}

const struct pl_command pl__command_describe = {
    .name = "describe",
    .summary = "a cluster as a tree, and what in it calls for attention",
    .synopsis = "[CLUSTER] [OPTIONS] [-f FILE...]",
    .description =
        "Prints each Cluster as clusterctl describe does: its control plane with Machines and etcd "
        "members, its MachineDeployments with Machines, and their replicas, as stored; STATUS, "
        "REASON, SINCE and MESSAGE are those of the condition Available (of a Machine: Ready). "
        "Machines of which nothing is to be said share a line. Below an object stand the "
        "conditions "
        "that plimsoll judges, when they call for attention; plimsoll explain says why.\n"
        "Without files it reads from a live API. A workload cluster that cannot be reached is "
        "shown "
        "as such.\n"
        "Where the terminal is too narrow, messages stand below their line and columns are left "
        "out; "
        "wide prints all of them.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .arguments = arguments,
    .argument_count = sizeof arguments / sizeof arguments[0],
    .examples = examples,
    .example_count = sizeof examples / sizeof examples[0],
    .run = run,
};
