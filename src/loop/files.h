/* loop/files.h - small files, read whole. */
#ifndef PL_LOOP_FILES_H
#define PL_LOOP_FILES_H

#include "base/error.h"

/* The file's bytes, in the arena, with a NUL behind them. 0, or -1: PL_NOT_FOUND when there is none,
 * PL_LIMIT past `bytes_max`, else PL_IO. */
int pl__file_read(struct pl_arena *arena, const char *path, size_t bytes_max, struct pl_str *bytes,
                  struct pl_error **err);

/* Tells versions of a file apart without reading it; symbolic links are followed. All 0: no file. */
struct pl_file_mark {
    uint64_t device, inode, size;
    int64_t modified_ns;
};
struct pl_file_mark pl__file_mark(const char *path);

#endif
