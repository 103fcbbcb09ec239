#include "loop/files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail_errno(struct pl_arena *arena, struct pl_error **err, const char *path, int reason)
{
    return pl__error(arena, err, reason == ENOENT || reason == ENOTDIR ? PL_NOT_FOUND : PL_IO,
                     "%s: %s", path, strerror(reason));
}

static int read_all(struct pl_arena *arena, int fd, const char *path, size_t bytes_max,
                    struct pl_str *bytes, struct pl_error **err)
{
    struct pl_buf out;

    pl__buf_init(&out, arena, bytes_max);
    for (;;) {
        size_t wanted = bytes_max - out.len < 4096 ? bytes_max - out.len : 4096;
        char beyond = 0;
        char *room = wanted ? pl__buf_reserve(&out, wanted) : &beyond;
        ssize_t got = read(fd, room, wanted ? wanted : 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail_errno(arena, err, path, errno);
        if (got == 0)
            break;
        if (!wanted)
            return pl__error(arena, err, PL_LIMIT, "%s: larger than %zu bytes", path, bytes_max);
        out.len += (size_t)got;
    }
    *bytes = pl__buf_str(&out);
    return 0;
}

int pl__file_read(struct pl_arena *arena, const char *path, size_t bytes_max, struct pl_str *bytes,
                  struct pl_error **err)
{
    /* Not blocking: a FIFO in the place of a token must not stop the loop. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0)
        return fail_errno(arena, err, path, errno);
    int result = read_all(arena, fd, path, bytes_max, bytes, err);
    close(fd);
    return result;
}

struct pl_file_mark pl__file_mark(const char *path)
{
    struct stat about;

    if (stat(path, &about) < 0)
        return (struct pl_file_mark){ 0 };
    return (struct pl_file_mark){
        .device = (uint64_t)about.st_dev,
        .inode = (uint64_t)about.st_ino,
        .size = (uint64_t)about.st_size,
        .modified_ns = (int64_t)about.st_mtim.tv_sec * 1000000000 + about.st_mtim.tv_nsec,
    };
}
