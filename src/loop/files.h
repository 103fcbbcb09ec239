/* loop/files.h - small files, read and written whole, and folders. */
#ifndef PL_LOOP_FILES_H
#define PL_LOOP_FILES_H

#include "base/error.h"

/* The file's bytes, in the arena, with a NUL behind them. 0, or -1: PL_NOT_FOUND when there is none,
 * PL_LIMIT past `bytes_max`, else PL_IO. */
int pl__file_read(struct pl_arena *arena, const char *path, size_t bytes_max, struct pl_str *bytes,
                  struct pl_error **err);

/* Puts a file for us alone (0600) in the place of what was there, at once: who reads meanwhile has the old one or
 * the new one, whole. `arena` is used also without an error. 0, or -1. */
int pl__file_write(const char *path, struct pl_str bytes, struct pl_arena *arena,
                   struct pl_error **err);

/* Makes a folder for us alone (0700); one that is there will do. 0, or -1. */
int pl__folder_make(const char *path, struct pl_arena *arena, struct pl_error **err);

/* Removes a folder with everything in it, a few levels deep; links are removed, not followed. What cannot be
 * removed stays. */
void pl__folder_remove(const char *path);

/* Tells versions of a file apart without reading it; symbolic links are followed. All 0: no file. */
struct pl_file_mark {
    uint64_t device, inode, size;
    int64_t modified_ns;
};
struct pl_file_mark pl__file_mark(const char *path);

#endif
