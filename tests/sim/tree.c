#include "sim/tree.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct pl_tree *tree_format(struct pl_arena *a, const char *format, ...)
{
    char room[8192];
    va_list args;

    va_start(args, format);
    int size = vsnprintf(room, sizeof room, format, args);
    va_end(args);
    struct pl_tree *t = size >= 0 && (size_t)size < sizeof room
                            ? pl__tree_read(a, (struct pl_str){ room, (size_t)size }, NULL)
                            : NULL;
    if (!t) {
        fprintf(stderr, "not JSON: %s\n", room);
        abort();
    }
    return t;
}

struct pl_tree *tree_get(const struct pl_tree *t, const char *key)
{
    return pl__tree_get(t, pl__str(key));
}

struct pl_tree *tree_at(const struct pl_tree *t, ...)
{
    struct pl_tree *at = NULL;
    const char *key;
    va_list args;

    va_start(args, t);
    while ((key = va_arg(args, const char *)) && (at = tree_get(t, key)))
        t = at;
    va_end(args);
    return at;
}

struct pl_str tree_text(const struct pl_tree *t)
{
    return t && t->type == JSON_STRING ? t->text : PL_STR("");
}

int64_t tree_int(const struct pl_tree *t, int64_t otherwise)
{
    return t && t->type == JSON_NUMBER ? strtoll(t->text.ptr, NULL, 10) : otherwise;
}

bool tree_is(const struct pl_tree *t, const char *text)
{
    return t && (t->type == JSON_STRING || t->type == JSON_TRUE || t->type == JSON_FALSE) &&
           pl__str_equal(t->text, pl__str(text));
}
