#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>

enum { CAPACITY_MIN = 111 };

void pl__buf_init(struct pl_buf *b, struct pl_arena *arena, size_t max)
{
    *b = (struct pl_buf){ .arena = arena, .max = max };
}

void pl__buf_clear(struct pl_buf *b)
{
    b->len = 0;
    b->overflowed = false;
}

char *pl__buf_reserve(struct pl_buf *b, size_t extra)
{
    if (b->overflowed || extra > b->max - b->len) {
        b->overflowed = true;
        return NULL;
    }
    if (!b->data || extra > b->capacity - b->len) {
        size_t wanted = b->len + extra;
        size_t capacity = b->capacity ? b->capacity : CAPACITY_MIN;
        while (capacity < wanted)
            capacity = capacity > b->max / 2 ? b->max : capacity * 2;
        b->data = pl__arena_grow(b->arena, b->data, b->data ? b->capacity + 1 : 0, capacity + 1);
        b->capacity = capacity;
    }
    return b->data + b->len;
}

void pl__buf_add(struct pl_buf *b, struct pl_str s)
{
    if (s.len == 0)
        return;
    char *room = pl__buf_reserve(b, s.len);
    if (room) {
        memcpy(room, s.ptr, s.len);
        b->len += s.len;
    }
}

void pl__buf_add_char(struct pl_buf *b, char c)
{
    char *room = pl__buf_reserve(b, 1);

    if (room) {
        *room = c;
        b->len++;
    }
}

void pl__buf_add_u64(struct pl_buf *b, uint64_t value)
{
    char digits[20];
    size_t start = sizeof digits;

    do {
        digits[--start] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    pl__buf_add(b, (struct pl_str){ digits + start, sizeof digits - start });
}

void pl__buf_add_i64(struct pl_buf *b, int64_t value)
{
    if (value < 0)
        pl__buf_add_char(b, '-');
    pl__buf_add_u64(b, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void pl__buf_printf(struct pl_buf *b, const char *format, ...)
{
    va_list args, again;

    va_start(args, format);
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *room = len < 0 ? NULL : pl__buf_reserve(b, (size_t)len);
    if (room) {
        vsnprintf(room, (size_t)len + 1, format, again);
        b->len += (size_t)len;
    }
    va_end(again);
}
