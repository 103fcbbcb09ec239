#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>

int pl__str_compare(struct pl_str a, struct pl_str b)
{
    size_t common = a.len < b.len ? a.len : b.len;
    int order = common ? memcmp(a.ptr, b.ptr, common) : 0;

    if (order)
        return order;
    return (a.len > b.len) - (a.len < b.len);
}

bool pl__str_ends_with(struct pl_str s, struct pl_str suffix)
{
    if (s.len < suffix.len)
        return false;
    return suffix.len == 0 || memcmp(s.ptr + s.len - suffix.len, suffix.ptr, suffix.len) == 0;
}

bool pl__str_contains(struct pl_str s, struct pl_str part)
{
    if (part.len == 0)
        return true;
    for (size_t i = 0; i + part.len <= s.len; i++) {
        if (memcmp(s.ptr + i, part.ptr, part.len) == 0)
            return true;
    }
    return false;
}

struct pl_str pl__str_copy(struct pl_arena *a, struct pl_str s)
{
    if (s.len == 0)
        return (struct pl_str){ "", 0 };
    char *copy = pl__arena_alloc(a, s.len + 1);
    memcpy(copy, s.ptr, s.len);
    return (struct pl_str){ copy, s.len };
}

struct pl_str pl__str_format(struct pl_arena *a, const char *format, ...)
{
    char small[256]; /* nearly always enough, and then formatted only once */
    va_list args, again;

    va_start(args, format);
    va_copy(again, args);
    int len = vsnprintf(small, sizeof small, format, args);
    va_end(args);
    if (len < 0) {
        va_end(again);
        return (struct pl_str){ "", 0 };
    }
    char *text = pl__arena_alloc(a, (size_t)len + 1);
    if ((size_t)len < sizeof small)
        memcpy(text, small, (size_t)len);
    else
        vsnprintf(text, (size_t)len + 1, format, again);
    va_end(again);
    return (struct pl_str){ text, (size_t)len };
}

bool pl__str_to_u64(struct pl_str s, uint64_t *value)
{
    uint64_t sum = 0;

    if (s.len == 0)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        unsigned digit = (unsigned)(unsigned char)s.ptr[i] - '0';
        if (digit > 9 || sum > (UINT64_MAX - digit) / 10)
            return false;
        sum = sum * 10 + digit;
    }
    *value = sum;
    return true;
}

struct pl_str pl__str_trim(struct pl_str s)
{
    while (s.len > 0 && (s.ptr[0] == ' ' || s.ptr[0] == '\t')) {
        s.ptr++;
        s.len--;
    }
    while (s.len > 0 && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t'))
        s.len--;
    return s;
}

struct pl_str pl__str_cut(struct pl_str *from, char separator)
{
    struct pl_str part = *from;

    if (part.len == 0)
        return part;
    const char *end = memchr(part.ptr, separator, part.len);
    if (end)
        part.len = (size_t)(end - part.ptr);
    size_t gone = end ? part.len + 1 : part.len;
    from->ptr += gone;
    from->len -= gone;
    return part;
}

uint64_t pl__str_hash(uint64_t hash, struct pl_str s)
{
    for (size_t i = 0; i < s.len; i++)
        hash = (hash ^ (unsigned char)s.ptr[i]) * UINT64_C(0x100000001b3);
    return hash;
}
