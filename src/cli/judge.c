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

int pl__judge_open(struct pl_judge *judge, struct pl_cli *cli, struct pl_words more, bool explain)
{
    struct pl_options options = { .explain = explain };

    *judge = (struct pl_judge){ .cli = cli };
    pl__files_init(&judge->files, &cli->arena);
    pl__progress_init(&judge->progress);
    if (options_fill(cli, &options) < 0)
        return -1;
    if (cli->args.files.count + more.count == 0)
        return pl__cli_usage(cli, "no input, expected -f FILE (or -f - for stdin)");
    if (read_files(judge, cli->args.files) < 0 || read_files(judge, more) < 0)
        return -1;

    judge->ctx = pl_context_new(&options);
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
                         judge->files.items[0].name.ptr);
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
}
