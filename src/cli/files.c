#include "cli/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DIRECTORY_DEPTH_MAX = 16, FILE_COUNT_MAX = 1000000, READ_BYTES_MIN = 64 * 1024 };
#define FILE_BYTES_MAX ((size_t)1 << 30)

static const char stdin_name[] = "<stdin>";
static const char too_large[] = "larger than 1 GiB, expected it in smaller files";

void pl__files_init(struct pl_files *files, struct pl_arena *arena)
{
    *files = (struct pl_files){ .arena = arena };
}

void pl__files_release(struct pl_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        free(files->items[i].bytes);
    pl__files_init(files, files->arena);
}

static int fail_errno(struct pl_files *files, struct pl_error **err, const char *path, int reason)
{
    return pl__error(files->arena, err, PL_IO, "%s: %s", path, strerror(reason));
}

static int fail_limit(struct pl_files *files, struct pl_error **err, const char *path,
                      const char *what)
{
    return pl__error(files->arena, err, PL_LIMIT, "%s: %s", path, what);
}

static struct pl_file *file_new(struct pl_files *files, struct pl_str name)
{
    if (files->count == files->capacity) {
        size_t wanted = files->capacity ? files->capacity * 2 : 16;
        files->items =
            pl__arena_grow(files->arena, files->items, files->capacity * sizeof *files->items,
                           wanted * sizeof *files->items);
        files->capacity = wanted;
    }
    struct pl_file *file = &files->items[files->count++];
    *file = (struct pl_file){ .name = pl__str_copy(files->arena, name) };
    return file;
}

/* Room for at least one byte more than is there, so that the end of the file is seen. */
static void file_grow(struct pl_file *file, size_t *capacity)
{
    if (file->size < *capacity)
        return;
    *capacity *= 2;
    file->bytes = realloc(file->bytes, *capacity);
    if (!file->bytes)
        abort();
}

static int file_read(struct pl_files *files, struct pl_file *file, int fd, size_t expected,
                     struct pl_error **err)
{
    size_t capacity = expected < READ_BYTES_MIN ? READ_BYTES_MIN : expected + 1;

    file->bytes = malloc(capacity);
    if (!file->bytes)
        abort();
    for (;;) {
        file_grow(file, &capacity);
        ssize_t got = read(fd, file->bytes + file->size, capacity - file->size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail_errno(files, err, file->name.ptr, errno);
        if (got == 0)
            break;
        file->size += (size_t)got;
        if (file->size > FILE_BYTES_MAX)
            return fail_limit(files, err, file->name.ptr, too_large);
    }
    files->total_bytes += file->size;
    return 0;
}

static int add_file(struct pl_files *files, const char *path, struct pl_error **err)
{
    struct stat about;

    if (files->count >= FILE_COUNT_MAX)
        return fail_limit(files, err, path, "more than 1,000,000 files");
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return fail_errno(files, err, path, errno);
    size_t expected = 0;
    if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0)
        expected = (size_t)about.st_size;
    int result = expected > FILE_BYTES_MAX
                     ? fail_limit(files, err, path, too_large)
                     : file_read(files, file_new(files, pl__str(path)), fd, expected, err);
    close(fd);
    return result;
}

static int add_stdin(struct pl_files *files, struct pl_error **err)
{
    for (size_t i = 0; i < files->count; i++)
        if (pl__str_equal(files->items[i].name, pl__str(stdin_name)))
            return pl__error(files->arena, err, PL_USAGE, "-: stdin can be read only once");
    return file_read(files, file_new(files, pl__str(stdin_name)), STDIN_FILENO, 0, err);
}

static bool looks_like_manifest(struct pl_str name)
{
    static const char *const endings[] = { ".yaml", ".yml", ".json", ".ndjson" };

    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
        if (pl__str_ends_with(name, pl__str(endings[i])))
            return true;
    return false;
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Hidden entries are left out: mounted ConfigMaps keep their older selves there. */
static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int add_directory(struct pl_files *files, const char *path, unsigned depth,
                         struct pl_error **err);

/* A link to a file counts as the file; a link to a directory is not followed, it may be a loop. */
static int add_entry(struct pl_files *files, const char *path, unsigned depth,
                     struct pl_error **err)
{
    struct stat link, target;

    if (lstat(path, &link) < 0 || stat(path, &target) < 0)
        return errno == ENOENT ? 0 : fail_errno(files, err, path, errno);
    if (S_ISDIR(link.st_mode))
        return add_directory(files, path, depth + 1, err);
    if (!S_ISREG(target.st_mode) || !looks_like_manifest(pl__str(path)))
        return 0;
    return add_file(files, path, err);
}

static int add_directory(struct pl_files *files, const char *path, unsigned depth,
                         struct pl_error **err)
{
    struct dirent **entries = NULL;
    int result = 0;

    if (depth > DIRECTORY_DEPTH_MAX)
        return fail_limit(files, err, path, "directories nested more than 16 deep");
    int count = scandir(path, &entries, is_visible, by_bytes);
    if (count < 0)
        return fail_errno(files, err, path, errno);
    const char *slash = pl__str_ends_with(pl__str(path), PL_STR("/")) ? "" : "/";
    for (int i = 0; i < count; i++) {
        if (result == 0)
            result = add_entry(
                files, pl__str_format(files->arena, "%s%s%s", path, slash, entries[i]->d_name).ptr,
                depth, err);
        free(entries[i]);
    }
    free(entries);
    return result;
}

int pl__files_add(struct pl_files *files, const char *path, struct pl_error **err)
{
    struct stat about;
    size_t before = files->count;

    if (strcmp(path, "-") == 0)
        return add_stdin(files, err);
    if (stat(path, &about) < 0)
        return fail_errno(files, err, path, errno);
    if (!S_ISDIR(about.st_mode))
        return add_file(files, path, err);
    if (add_directory(files, path, 1, err) < 0)
        return -1;
    if (files->count == before)
        return pl__error(files->arena, err, PL_NOT_FOUND,
                         "%s: no *.yaml, *.yml, *.json or *.ndjson file below this directory",
                         path);
    return 0;
}
