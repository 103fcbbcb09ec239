/* base/arena.h - memory that ends all at once.
 *
 * An arena hands out zeroed, 16-byte aligned pieces of large chunks. Nothing is freed singly:
 * pl__arena_reset() makes all of it reusable and keeps the chunks, so work that repeats (one
 * reconcile, one snapshot) stops asking the heap once it has seen its largest case.
 *
 * When the allocator fails the process aborts: every input is bounded before it gets here, so
 * the honest answer to an empty heap is "restart and look again". */
#ifndef PL_BASE_ARENA_H
#define PL_BASE_ARENA_H

#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>

#include "plimsoll.h"

/* What is not in an arena comes from here: `size` bytes, not zeroed, of an allocator, or of malloc when it is
 * NULL. Never NULL: aborts as above. */
void *pl__heap_alloc(const struct pl_allocator *allocator, size_t size);
void pl__heap_free(const struct pl_allocator *allocator, void *p, size_t size);

struct pl_arena_chunk;

struct pl_arena {
    const struct pl_allocator *allocator; /* NULL: malloc and free */
    struct pl_arena_chunk *first;         /* oldest chunk; reset starts over here */
    struct pl_arena_chunk *current;
    char *next;         /* where the next piece starts */
    char *end;          /* end of the current chunk */
    size_t used_bytes;  /* handed out since the last reset, padding included */
    size_t held_bytes;  /* taken from the allocator */
    size_t chunk_bytes; /* size of the next ordinary chunk */
};

/* An empty arena. It takes its first chunk when it is first used. `chunk_bytes` 0 means 64 KiB. */
void pl__arena_init(struct pl_arena *a, const struct pl_allocator *allocator, size_t chunk_bytes);

/* Forgets everything handed out; keeps the chunks. */
void pl__arena_reset(struct pl_arena *a);

/* Gives all chunks back. The arena is then as after init. */
void pl__arena_release(struct pl_arena *a);

/* `size` zeroed bytes. Never NULL; size 0 gives a valid pointer. */
void *pl__arena_alloc(struct pl_arena *a, size_t size);

/* Grows the piece at `p` from `old_size` to `new_size`, in place when it is the newest; the new
 * part is zeroed. `p` may be NULL with `old_size` 0. */
void *pl__arena_grow(struct pl_arena *a, void *p, size_t old_size, size_t new_size);

/* `count` zeroed items of a type. */
#define PL_NEW(arena, type, count) ((type *)pl__arena_array((arena), (count), sizeof(type)))
void *pl__arena_array(struct pl_arena *a, size_t count, size_t item_size);

#endif
