#include "loop/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FOLDER_DEPTH_MAX = 8 };

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

int pl__folder_make(const char *path, struct pl_arena *arena, struct pl_error **err)
{
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return fail_errno(arena, err, path, errno);
    return 0;
}

static int write_all(int fd, struct pl_str bytes)
{
    for (size_t done = 0; done < bytes.len;) {
        ssize_t wrote = write(fd, bytes.ptr + done, bytes.len - done);
        if (wrote < 0 && errno != EINTR)
            return -1;
        done += wrote > 0 ? (size_t)wrote : 0;
    }
    return 0;
}

int pl__file_write(const char *path, struct pl_str bytes, struct pl_arena *arena,
                   struct pl_error **err)
{
    const char *made = pl__str_format(arena, "%s.new", path).ptr;

    (void)unlink(made); /* of somebody who was stopped here, or a link laid out for us */
    int fd = open(made, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return fail_errno(arena, err, path, errno);
    int result = write_all(fd, bytes), reason = errno;
    if (close(fd) < 0 && result == 0) {
        result = -1;
        reason = errno;
    }
    if (result == 0 && rename(made, path) < 0) {
        result = -1;
        reason = errno;
    }
    if (result == 0)
        return 0;
    (void)unlink(made);
    return fail_errno(arena, err, path, reason);
}

/* Links are not followed: it goes nowhere but down. */
static void folder_empty(int folder, int depth)
{
    DIR *entries = fdopendir(folder);

    if (!entries) {
        close(folder);
        return;
    }
    for (struct dirent *entry; (entry = readdir(entries));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (unlinkat(dirfd(entries), entry->d_name, 0) == 0 || depth == 0)
            continue;
        int below =
            openat(dirfd(entries), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (below >= 0)
            folder_empty(below, depth - 1);
        unlinkat(dirfd(entries), entry->d_name, AT_REMOVEDIR);
    }
    closedir(entries);
}

void pl__folder_remove(const char *path)
{
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (folder >= 0)
        folder_empty(folder, FOLDER_DEPTH_MAX);
    rmdir(path);
}
