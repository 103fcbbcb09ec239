/* base/buf.h - bytes that grow, in an arena.
 *
 * A buffer states its maximum when it is made. Past it the bytes are dropped and `overflowed`
 * is set: the caller checks once, at the end. `capacity` does not count one byte for a NUL. */
#ifndef PL_BASE_BUF_H
#define PL_BASE_BUF_H

#include "base/arena.h"
#include "base/str.h"

struct pl_buf {
    struct pl_arena *arena;
    char *data;
    size_t len;
    size_t capacity;
    size_t max;
    bool overflowed;
};

void pl__buf_init(struct pl_buf *b, struct pl_arena *arena, size_t max);

/* Empties it; keeps its memory and its maximum. */
void pl__buf_clear(struct pl_buf *b);

/* Room for `extra` more bytes behind `len`, or NULL past the maximum. The caller writes there and
 * moves `len`. */
char *pl__buf_reserve(struct pl_buf *b, size_t extra);

void pl__buf_add(struct pl_buf *b, struct pl_str s);
void pl__buf_add_char(struct pl_buf *b, char c);
void pl__buf_add_u64(struct pl_buf *b, uint64_t value);
void pl__buf_add_i64(struct pl_buf *b, int64_t value);
void pl__buf_printf(struct pl_buf *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* For literals. */
#define pl__buf_add_lit(b, literal) pl__buf_add((b), PL_STR(literal))

/* What is in it, with a NUL behind it. Valid until the buffer next grows or is cleared. */
static inline struct pl_str pl__buf_str(const struct pl_buf *b)
{
    if (!b->data)
        return (struct pl_str){ "", 0 };
    b->data[b->len] = '\0'; /* there is always room for it */
    return (struct pl_str){ b->data, b->len };
}

#endif
