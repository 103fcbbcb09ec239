/* loop/sparse.h - malloc for large buffers that are hardly ever full.
 *
 * libcurl holds 64 KiB of buffers for each server with two watches, and most of the time a few hundred
 * bytes of each are in use. Cut out of the heap they lie on pages that others have written to before,
 * so all of it is resident. Here each buffer starts on fresh pages, and only those that are written to
 * become memory: 25 KiB a server.
 *
 * The functions are those of libc. pl__sparse_free() and pl__sparse_realloc() take what libc gave, too,
 * but libc cannot take what is from here. Any thread may call them (libcurl's resolver does). Sizes
 * that are small or very large come from libc, as does everything when the slots are used up.
 * pl__sparse_realloc() to 0 bytes frees. What is freed goes back to the system at once, and its
 * content is gone. */
#ifndef PL_LOOP_SPARSE_H
#define PL_LOOP_SPARSE_H

#include <stddef.h>

enum {
    PL_SPARSE_BYTES_MIN = 16 * 1024,
    PL_SPARSE_BYTES_MAX = 32 * 1024,
    PL_SPARSE_SLOTS = 16 * 1024, /* at three a server for 5,000 of them; address space only */
};

void *pl__sparse_malloc(size_t size);
void *pl__sparse_realloc(void *ptr, size_t size);
void pl__sparse_free(void *ptr);

/* For a part of a buffer whose content nobody needs any more, though the buffer itself stays: whole
 * pages in there become free (and read as zeros). Does nothing to memory that is not from here. */
void pl__sparse_forget(const void *bytes, size_t size);

/* How many slots are taken. */
size_t pl__sparse_taken(void);

#endif
