/* base/str.h - a view of bytes that someone else owns.
 *
 * Not NUL-terminated. An empty view and a missing one are the same thing: length 0. */
#ifndef PL_BASE_STR_H
#define PL_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"

/* struct pl_str itself is in plimsoll.h: results carry it. */

/* For use as `printf("%.*s", PL_STR_ARG(s))`. */
#define PL_STR_ARG(s) (int)(s).len, (s).ptr

/* A view of a string literal. */
#define PL_STR(literal) ((struct pl_str){ "" literal, sizeof(literal) - 1 })
#define PL_STR_INIT(literal)            \
    {                                   \
        "" literal, sizeof(literal) - 1 \
    }

static inline struct pl_str pl__str(const char *text)
{
    return (struct pl_str){ text, text ? strlen(text) : 0 };
}

static inline bool pl__str_equal(struct pl_str a, struct pl_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* Byte order, a prefix before what it is a prefix of: <0, 0, >0. */
int pl__str_compare(struct pl_str a, struct pl_str b);

static inline bool pl__str_starts_with(struct pl_str s, struct pl_str prefix)
{
    return s.len >= prefix.len && (prefix.len == 0 || memcmp(s.ptr, prefix.ptr, prefix.len) == 0);
}

bool pl__str_ends_with(struct pl_str s, struct pl_str suffix);
bool pl__str_contains(struct pl_str s, struct pl_str part);

/* Without the spaces and tabs at its ends. */
struct pl_str pl__str_trim(struct pl_str s);

/* Cuts off what stands before the next `separator`, all when there is none; what is behind it is left in
 * `*from`. For loops over lists: while (list.len > 0) item = pl__str_cut(&list, ','); */
struct pl_str pl__str_cut(struct pl_str *from, char separator);

/* A copy that lives in the arena, with a NUL behind it that the length does not count. */
struct pl_str pl__str_copy(struct pl_arena *a, struct pl_str s);

/* The same, from a printf format. */
struct pl_str pl__str_format(struct pl_arena *a, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* FNV-1a, of one text or of several in a row; the first begins with PL_HASH_BEGIN. Whoever chooses the texts can
 * choose equal hashes. */
#define PL_HASH_BEGIN UINT64_C(0xcbf29ce484222325)
uint64_t pl__str_hash(uint64_t hash, struct pl_str s);

/* A whole unsigned decimal number that fits 64 bits, nothing before or behind it. */
bool pl__str_to_u64(struct pl_str s, uint64_t *value);

#endif
