/* cli/judge.h - what eval, explain, what-if and describe share: the input, from files or a live API,
 * judged snapshot by snapshot. */
#ifndef PL_CLI_JUDGE_H
#define PL_CLI_JUDGE_H

#include "cli/command.h"
#include "cli/files.h"
#include "cli/live.h"
#include "cli/progress.h"

struct pl_judge {
    struct pl_cli *cli;
    struct pl_context *ctx;
    struct pl_files files;
    struct pl_live *live;      /* NULL: files */
    struct pl_arena live_room; /* for what was read from it */
    struct pl_progress progress;
    const struct pl_report *report; /* the one judged last */
    size_t count;                   /* of snapshots so far */
};

/* Reads every file of -f and of `more`; when there is none (a command with --live: when that is given),
 * the Clusters of a live API that are `wanted`. The judge needs closing even after a failure.
 * 0, or -1 with cli->err. */
int pl__judge_open(struct pl_judge *judge, struct pl_cli *cli, struct pl_words more, bool explain,
                   const struct pl_live_wanted *wanted);

/* Waits until something changed at a live API (1), or ten seconds passed (0), and starts over with what
 * is there then. -1 with cli->err. */
int pl__judge_follow(struct pl_judge *judge);

/* Judges the next snapshot: 1, 0 when there is no more, -1 with cli->err. Input that holds nothing
 * to judge is an error: most likely it is the wrong file. */
int pl__judge_next(struct pl_judge *judge);

/* Writes out what the command has printed about this snapshot. 0, or -1 with cli->err. */
int pl__judge_flush(struct pl_judge *judge);

void pl__judge_close(struct pl_judge *judge);

#endif
