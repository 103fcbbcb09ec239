/* cli/progress.h - one line on stderr for people who wait longer than a second. */
#ifndef PL_CLI_PROGRESS_H
#define PL_CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct pl_progress {
    bool wanted;        /* stderr is a terminal */
    bool shares_screen; /* and stdout, too: results would run into the line */
    bool shown;         /* the line stands there now */
    uint64_t next_ms;
};

void pl__progress_init(struct pl_progress *progress);

/* Rewrites the line when it is time to. */
void pl__progress_show(struct pl_progress *progress, size_t snapshot_count, size_t bytes);

/* The same with a line of the caller's. */
void pl__progress_say(struct pl_progress *progress, struct pl_str line);

/* Takes the line away, before anything else is printed. */
void pl__progress_clear(struct pl_progress *progress);

#endif
