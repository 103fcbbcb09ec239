#include "base/arena.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pl_arena_chunk {
    struct pl_arena_chunk *next;
    size_t size; /* bytes behind the header */
    alignas(16) char data[];
};

enum { CHUNK_BYTES_DEFAULT = 64 * 1024, ALIGNMENT = 16 };

static void out_of_memory(size_t size)
{
    fprintf(stderr, "plimsoll: out of memory (%zu bytes wanted)\n", size);
    abort();
}

void *pl__heap_alloc(const struct pl_allocator *allocator, size_t size)
{
    void *p = allocator ? allocator->alloc(allocator->user, size) : malloc(size);
    if (!p)
        out_of_memory(size);
    return p;
}

void pl__heap_free(const struct pl_allocator *allocator, void *p, size_t size)
{
    if (allocator)
        allocator->free(allocator->user, p, size);
    else
        free(p);
}

static size_t round_up(size_t size)
{
    if (size > SIZE_MAX - ALIGNMENT)
        out_of_memory(size);
    return (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
}

void pl__arena_init(struct pl_arena *a, const struct pl_allocator *allocator, size_t chunk_bytes)
{
    *a = (struct pl_arena){ .allocator = allocator,
                            .chunk_bytes =
                                chunk_bytes ? round_up(chunk_bytes) : CHUNK_BYTES_DEFAULT };
}

static void chunk_enter(struct pl_arena *a, struct pl_arena_chunk *chunk)
{
    a->current = chunk;
    a->next = chunk->data;
    a->end = chunk->data + chunk->size;
}

void pl__arena_reset(struct pl_arena *a)
{
    a->used_bytes = 0;
    if (a->first)
        chunk_enter(a, a->first);
}

void pl__arena_release(struct pl_arena *a)
{
    struct pl_arena_chunk *chunk = a->first;

    while (chunk) {
        struct pl_arena_chunk *next = chunk->next;
        pl__heap_free(a->allocator, chunk, sizeof *chunk + chunk->size);
        chunk = next;
    }
    pl__arena_init(a, a->allocator, a->chunk_bytes);
}

/* Makes a chunk current that has room for `size`: a kept one behind the current, or a new one.
 * A kept chunk that is too small is stepped over until the next reset. */
static void chunk_advance(struct pl_arena *a, size_t size)
{
    struct pl_arena_chunk *last = a->current;

    while (last && last->next) {
        last = last->next;
        if (last->size >= size) {
            chunk_enter(a, last);
            return;
        }
    }

    size_t chunk_size = size > a->chunk_bytes ? size : a->chunk_bytes;
    struct pl_arena_chunk *chunk = pl__heap_alloc(a->allocator, sizeof *chunk + chunk_size);
    chunk->next = NULL;
    chunk->size = chunk_size;
    a->held_bytes += sizeof *chunk + chunk_size;
    if (last)
        last->next = chunk;
    else
        a->first = chunk;
    chunk_enter(a, chunk);
}

static void *take(struct pl_arena *a, size_t size)
{
    size_t rounded = round_up(size ? size : 1);

    if (rounded > (size_t)(a->end - a->next))
        chunk_advance(a, rounded);
    void *p = a->next;
    a->next += rounded;
    a->used_bytes += rounded;
    return p;
}

void *pl__arena_alloc(struct pl_arena *a, size_t size)
{
    return memset(take(a, size), 0, size);
}

void *pl__arena_grow(struct pl_arena *a, void *p, size_t old_size, size_t new_size)
{
    if (new_size <= old_size)
        return p;

    bool newest = p && (char *)p + round_up(old_size ? old_size : 1) == a->next;
    if (newest && round_up(new_size) <= (size_t)(a->end - (char *)p)) {
        size_t extra = round_up(new_size) - round_up(old_size ? old_size : 1);
        a->next += extra;
        a->used_bytes += extra;
        memset((char *)p + old_size, 0, new_size - old_size);
        return p;
    }
    char *moved = take(a, new_size);
    if (p && old_size)
        memcpy(moved, p, old_size);
    memset(moved + old_size, 0, new_size - old_size);
    return moved;
}

void *pl__arena_array(struct pl_arena *a, size_t count, size_t item_size)
{
    if (item_size && count > SIZE_MAX / item_size)
        out_of_memory(SIZE_MAX);
    return pl__arena_alloc(a, count * item_size);
}
