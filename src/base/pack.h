/* base/pack.h - a decoded object, compact: one block that holds all of it.
 *
 * Decoding leaves an object in an arena, spread and rounded up. What is kept for long (the cache of
 * a live controller) is packed: the struct, then its lists, then its strings, in one block of the
 * exact size. Strings that everybody has (base/intern.h) are not copied, equal ones inside the
 * object are stored once. The block never changes and is freed as a whole.
 *
 * The table of fields that decoded the object also says where its pointers are. So whatever a
 * struct points at must have a row: F_STR, F_LIST, F_STRINGS, or F_CUSTOM with a shape. */
#ifndef PL_BASE_PACK_H
#define PL_BASE_PACK_H

#include "base/json.h"

/* A packed copy of `object`, whose shape that is; `*size` is that of its block. Nothing in it points
 * back at `object`. `allocator` NULL: malloc. Never NULL. */
void *pl__pack(const struct pl_shape *shape, const void *object,
               const struct pl_allocator *allocator, size_t *size);

/* Gives the block back; `size` and `allocator` as they were with pl__pack(). NULL is fine. */
void pl__pack_free(void *packed, const struct pl_allocator *allocator, size_t size);

#endif
