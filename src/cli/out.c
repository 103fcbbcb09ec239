#include "cli/out.h"

#include <errno.h>
#include <unistd.h>

void pl__out_init(struct pl_out *out)
{
    *out = (struct pl_out){ .closed = false };
    pl__arena_init(&out->arena, NULL, 0);
    pl__buf_init(&out->buf, &out->arena, SIZE_MAX / 4);
}

void pl__out_release(struct pl_out *out)
{
    pl__arena_release(&out->arena);
}

int pl__out_flush(struct pl_out *out, struct pl_arena *arena, struct pl_error **err)
{
    struct pl_str left = pl__buf_str(&out->buf);

    while (left.len && !out->closed) {
        ssize_t written = write(STDOUT_FILENO, left.ptr, left.len);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0) {
            int reason = errno;
            pl__buf_clear(&out->buf);
            out->closed = reason == EPIPE;
            return pl__error(arena, err, PL_IO, "write standard output: %s", strerror(reason));
        }
        left = (struct pl_str){ left.ptr + written, left.len - (size_t)written };
    }
    pl__buf_clear(&out->buf);
    return 0;
}
