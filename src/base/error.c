#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

enum { MESSAGE_BYTES_MAX = 1024 };

__attribute__((format(printf, 4, 0))) static struct pl_error *error_new(
    struct pl_arena *a, enum pl_code code, const struct pl_error *cause, const char *format,
    va_list args)
{
    char text[MESSAGE_BYTES_MAX];
    struct pl_error *e = PL_NEW(a, struct pl_error, 1);

    int len = vsnprintf(text, sizeof text, format, args);
    if (len < 0)
        len = 0;
    if ((size_t)len >= sizeof text) {
        len = (int)sizeof text - 1;
        while (len > 0 && ((unsigned char)text[len] & 0xC0) == 0x80)
            len--; /* not in the middle of a UTF-8 character */
    }
    e->code = code;
    e->message = pl__str_copy(a, (struct pl_str){ text, (size_t)len });
    e->cause = cause;
    return e;
}

int pl__error(struct pl_arena *a, struct pl_error **err, enum pl_code code, const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        *err = error_new(a, code, NULL, format, args);
        va_end(args);
    }
    return -1;
}

int pl__fail(struct pl_arena *a, struct pl_error **err, const struct pl_error *cause,
             const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        *err = error_new(a, cause->code, cause, format, args);
        va_end(args);
    }
    return -1;
}

struct pl_str pl__error_text(struct pl_arena *a, const struct pl_error *e)
{
    struct pl_buf text;

    pl__buf_init(&text, a, (size_t)64 * 1024);
    for (const struct pl_error *at = e; at; at = at->cause) {
        pl__buf_add(&text, at->message);
        if (at->cause)
            pl__buf_add_lit(&text, ": ");
    }
    return pl__buf_str(&text);
}
