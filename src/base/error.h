/* base/error.h - what went wrong, found once and wrapped on the way up.
 *
 * Success is 0 and leaves `*err` alone; failure is -1 and sets it. An error lives in the arena of
 * the work that failed. Only the top speaks it, with pl__error_text(). */
#ifndef PL_BASE_ERROR_H
#define PL_BASE_ERROR_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"

struct pl_error {
    enum pl_code code;
    struct pl_str message;        /* lower case, no full stop */
    const struct pl_error *cause; /* the error underneath, or NULL */
};

/* Makes an error with this code; always returns -1. `err` may be NULL: nobody wants to know. */
int pl__error(struct pl_arena *a, struct pl_error **err, enum pl_code code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Wraps `cause`, keeping its code, with what the caller was doing; always returns -1. */
int pl__fail(struct pl_arena *a, struct pl_error **err, const struct pl_error *cause,
             const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The whole chain, "outer: inner: innermost". */
struct pl_str pl__error_text(struct pl_arena *a, const struct pl_error *e);

#endif
