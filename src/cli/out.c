#include "cli/out.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

void pl__out_init(struct pl_out *out)
{
    *out = (struct pl_out){ .own_fd = -1 };
    pl__arena_init(&out->arena, NULL, 0);
    pl__buf_init(&out->buf, &out->arena, SIZE_MAX / 4);
}

void pl__out_release(struct pl_out *out)
{
    if (out->own_fd >= 0)
        close(out->own_fd);
    pl__arena_release(&out->arena);
}

static int write_failed(struct pl_out *out, int reason, struct pl_arena *arena,
                        struct pl_error **err)
{
    pl__buf_clear(&out->buf);
    out->closed = reason == EPIPE;
    return pl__error(arena, err, PL_IO, "write standard output: %s", strerror(reason));
}

/* Keeps in `buf` what the reader does not take within `wait_ms`; -1 waits for ever. */
static int hand_over(struct pl_out *out, int fd, int wait_ms, struct pl_arena *arena,
                     struct pl_error **err)
{
    struct pollfd reader = { .fd = fd, .events = POLLOUT };
    struct pl_buf *buf = &out->buf;
    size_t done = 0;

    while (done < buf->len && !out->closed) {
        ssize_t written = write(fd, buf->data + done, buf->len - done);
        if (written < 0 && errno == EAGAIN && poll(&reader, 1, wait_ms) <= 0 && wait_ms >= 0)
            break;
        if (written < 0 && errno != EINTR && errno != EAGAIN)
            return write_failed(out, errno, arena, err);
        done += written > 0 ? (size_t)written : 0;
    }
    if (out->closed)
        done = buf->len;
    if (done)
        memmove(buf->data, buf->data + done, buf->len - done);
    buf->len -= done;
    return 0;
}

int pl__out_flush(struct pl_out *out, struct pl_arena *arena, struct pl_error **err)
{
    return hand_over(out, STDOUT_FILENO, -1, arena, err);
}

/* O_NONBLOCK belongs to what was opened, and that we share with the shell: so it is opened once more. Files
 * need it not, and sockets cannot: those are written to as they are. */
static int offer_fd(struct pl_out *out)
{
    struct stat kind;

    if (out->own_fd < 0 && fstat(STDOUT_FILENO, &kind) == 0 &&
        (S_ISFIFO(kind.st_mode) || S_ISCHR(kind.st_mode)))
        out->own_fd = open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return out->own_fd >= 0 ? out->own_fd : STDOUT_FILENO;
}

int pl__out_offer(struct pl_out *out, int wait_ms, struct pl_arena *arena, struct pl_error **err)
{
    return hand_over(out, offer_fd(out), wait_ms, arena, err);
}

size_t pl__out_drop(struct pl_out *out)
{
    struct pl_buf *buf = &out->buf;
    size_t lines = 0;

    for (size_t i = buf->len; i-- > 0;) {
        if (buf->data[i] == '\n') {
            buf->len = i + 1;
            lines++;
        }
    }
    return lines ? lines - 1 : 0;
}
