#include "cli/progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "cli/text.h"

enum { FIRST_MS = 1000, EVERY_MS = 100 };

static uint64_t monotonic_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void pl__progress_init(struct pl_progress *progress)
{
    *progress = (struct pl_progress){
        .wanted = isatty(STDERR_FILENO),
        .shares_screen = isatty(STDOUT_FILENO),
        .next_ms = monotonic_ms() + FIRST_MS,
    };
}

static bool is_due(const struct pl_progress *progress)
{
    return progress->wanted && monotonic_ms() >= progress->next_ms;
}

void pl__progress_say(struct pl_progress *progress, struct pl_str line)
{
    if (!is_due(progress))
        return;
    fprintf(stderr, "\r\x1b[K%.*s", PL_STR_ARG(line));
    progress->shown = true;
    progress->next_ms = monotonic_ms() + EVERY_MS;
}

void pl__progress_show(struct pl_progress *progress, size_t snapshot_count, size_t bytes)
{
    struct pl_arena arena;
    struct pl_buf line;

    if (!is_due(progress))
        return;
    pl__arena_init(&arena, NULL, 256);
    pl__buf_init(&line, &arena, 128);
    pl__text_count(&line, snapshot_count);
    pl__buf_add_lit(&line, " snapshots judged, ");
    pl__text_count(&line, bytes / 1000000);
    pl__buf_add_lit(&line, " MB of input ...");
    pl__progress_say(progress, pl__buf_str(&line));
    pl__arena_release(&arena);
}

void pl__progress_clear(struct pl_progress *progress)
{
    if (progress->shown)
        fputs("\r\x1b[K", stderr);
    progress->shown = false;
}
