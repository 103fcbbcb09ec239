/* cli/files.h - the input: files, directories, stdin, all in memory.
 *
 * Files are read, not mapped: a file that shrinks under a mapping kills the process. */
#ifndef PL_CLI_FILES_H
#define PL_CLI_FILES_H

#include "base/error.h"

struct pl_file {
    struct pl_str name; /* as given, or found below a directory; "<stdin>" */
    char *bytes;
    size_t size;
};

struct pl_files {
    struct pl_arena *arena; /* of names and the list; bytes are on the heap */
    struct pl_file *items;
    size_t count;
    size_t capacity;
    size_t total_bytes;
};

void pl__files_init(struct pl_files *files, struct pl_arena *arena);
void pl__files_release(struct pl_files *files);

/* Reads what `path` names: a file, "-" for stdin, or a directory with all that looks like a
 * manifest below it, sorted by name. 0, or -1 with "path: why". */
int pl__files_add(struct pl_files *files, const char *path, struct pl_error **err);

#endif
