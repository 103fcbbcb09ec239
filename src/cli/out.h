/* cli/out.h - standard output: gathered in memory, written when a piece is whole.
 *
 * A result reaches the reader as soon as it is there, a failing disk is noticed at the write that
 * failed, and a line of progress on stderr can be taken away first. */
#ifndef PL_CLI_OUT_H
#define PL_CLI_OUT_H

#include "base/error.h"

struct pl_out {
    struct pl_arena arena;
    struct pl_buf buf; /* add to this */
    bool closed;       /* nobody reads any more */
    int own_fd;        /* standard output once more, for pl__out_offer(); -1: none */
};

void pl__out_init(struct pl_out *out);
void pl__out_release(struct pl_out *out);

/* Writes what was gathered. 0, or -1 with an error; with `closed` set when the reader went away. */
int pl__out_flush(struct pl_out *out, struct pl_arena *arena, struct pl_error **err);

/* For a loop that must go on whether or not anybody reads (a pager, a terminal after Ctrl-S): writes what the
 * reader takes within `wait_ms`; the rest stays in `buf`. Returns as above. */
int pl__out_offer(struct pl_out *out, int wait_ms, struct pl_arena *arena, struct pl_error **err);

/* Gives up on what waits in `buf`, but for the end of the line that the reader has begun. How many lines. */
size_t pl__out_drop(struct pl_out *out);

#endif
