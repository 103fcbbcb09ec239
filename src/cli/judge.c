#include "cli/judge.h"

#include <time.h>

#include "base/time.h"

static int64_t clock_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int options_fill(struct pl_cli *cli, struct pl_options *options)
{
    const char *profile = cli->args.value[OPT_PROFILE];
    const char *now = cli->args.value[OPT_NOW];

    if (profile && pl_profile_from_name(profile, &options->profile) < 0)
        return pl__cli_usage(cli, "--profile \"%s\": no such profile", profile);
    if (now && !pl__time_parse(pl__str(now), &options->now_ms))
        return pl__cli_usage(cli, "--now \"%s\": expected a time like 2026-11-15T02:00:00Z", now);
    options->clock_ms = clock_now_ms();
    return 0;
}

static int read_files(struct pl_judge *judge, struct pl_words words)
{
    for (size_t i = 0; i < words.count; i++)
        if (pl__files_add(&judge->files, words.items[i], &judge->cli->err) < 0)
            return -1;
    return 0;
}

/* The context's own words, moved to where main speaks from. */
static int fail(struct pl_judge *judge)
{
    return pl__error(&judge->cli->arena, &judge->cli->err, pl_context_error_code(judge->ctx), "%s",
                     pl_context_error(judge->ctx));
}

static bool takes(const struct pl_cli *cli, enum pl_option_id id)
{
    for (size_t i = 0; i < cli->args.command->option_count; i++) {
        if (cli->args.command->options[i].id == id)
            return true;
    }
    return false;
}

/* An option that means nothing to files is most likely there because -f was not meant to be. */
static int check_files_only(struct pl_cli *cli)
{
    static const struct {
        enum pl_option_id id;
        const char *name;
    } live_options[] = {
        { OPT_LIVE, "live" },         { OPT_KUBECONFIG, "kubeconfig" },
        { OPT_CONTEXT, "context" },   { OPT_ALL_NAMESPACES, "all-namespaces" },
        { OPT_SELECTOR, "selector" }, { OPT_WATCH, "watch" },
    };

    for (size_t i = 0; i < sizeof live_options / sizeof live_options[0]; i++) {
        if (pl__cli_given(cli, live_options[i].id))
            return pl__cli_usage(cli, "--%s is for a live API, and files were given: choose one",
                                 live_options[i].name);
    }
    return 0;
}

static int feed_live(struct pl_judge *judge)
{
    struct pl_buf text;

    pl_context_clear(judge->ctx);
    pl__arena_reset(&judge->live_room);
    pl__buf_init(&text, &judge->live_room, (size_t)1 << 30);
    int changed = pl__live_next(judge->live);
    if (changed < 0 || pl__live_write(judge->live, JSON_COMPACT, &text) < 0)
        return -1;
    judge->count = 0;
    struct pl_str bytes = pl__buf_str(&text);
    if (pl_context_add(judge->ctx, pl__live_name(judge->live), bytes.ptr, bytes.len) < 0)
        return fail(judge);
    return changed;
}

static int open_live(struct pl_judge *judge, const struct pl_live_wanted *wanted)
{
    judge->progress.wanted =
        false; /* reading has its own, and what was read is judged in no time */
    if (pl__live_open(&judge->live, judge->cli, wanted) < 0 || feed_live(judge) < 0)
        return -1;
    pl__live_warn(judge->live);
    return 0;
}

int pl__judge_follow(struct pl_judge *judge)
{
    return feed_live(judge);
}

int pl__judge_open(struct pl_judge *judge, struct pl_cli *cli, struct pl_words more, bool explain,
                   const struct pl_live_wanted *wanted)
{
    struct pl_options options = { .explain = explain };
    bool has_files = cli->args.files.count + more.count > 0;

    *judge = (struct pl_judge){ .cli = cli };
    pl__files_init(&judge->files, &cli->arena);
    pl__arena_init(&judge->live_room, NULL, 0);
    pl__progress_init(&judge->progress);
    if (options_fill(cli, &options) < 0)
        return -1;
    if (!has_files && takes(cli, OPT_LIVE) && !pl__cli_given(cli, OPT_LIVE))
        return pl__cli_usage(cli, "no input, expected -f FILE (or -f - for stdin), or --live");
    if (has_files && check_files_only(cli) < 0)
        return -1;
    judge->ctx = pl_context_new(&options);
    if (!has_files)
        return open_live(judge, wanted);
    if (read_files(judge, cli->args.files) < 0 || read_files(judge, more) < 0)
        return -1;
    for (size_t i = 0; i < judge->files.count; i++) {
        const struct pl_file *file = &judge->files.items[i];
        if (pl_context_add(judge->ctx, file->name.ptr, file->bytes, file->size) < 0)
            return fail(judge);
    }
    return 0;
}

int pl__judge_next(struct pl_judge *judge)
{
    pl__progress_show(&judge->progress, judge->count, judge->files.total_bytes);
    int got = pl_context_next(judge->ctx, &judge->report);
    if (got < 0)
        return fail(judge);
    if (got == 0 && judge->count == 0)
        return pl__error(&judge->cli->arena, &judge->cli->err, PL_NOT_FOUND,
                         "%s: nothing to judge, expected a Snapshot, a List or manifests",
                         judge->live ? pl__live_name(judge->live) : judge->files.items[0].name.ptr);
    judge->count += got > 0;
    return got;
}

int pl__judge_flush(struct pl_judge *judge)
{
    if (judge->cli->out.buf.len == 0)
        return 0;
    if (judge->progress.shares_screen)
        pl__progress_clear(&judge->progress);
    return pl__out_flush(&judge->cli->out, &judge->cli->arena, &judge->cli->err);
}

void pl__judge_close(struct pl_judge *judge)
{
    pl__progress_clear(&judge->progress);
    if (judge->ctx)
        pl_context_free(judge->ctx);
    pl__files_release(&judge->files);
    pl__live_close(judge->live);
    pl__arena_release(&judge->live_room);
}
