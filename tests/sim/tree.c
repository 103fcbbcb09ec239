#include "sim/tree.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static struct tree *node(struct pl_arena *a, enum pl_json_type type)
{
    struct tree *t = PL_NEW(a, struct tree, 1);

    t->type = type;
    return t;
}

/* --- reading and writing ---------------------------------------------------------------------------- */

static struct tree *read_value(struct pl_json *j);

static struct tree *read_inside(struct pl_json *j, struct tree *t)
{
    struct tree **last = &t->first;
    bool object = t->type == JSON_OBJECT;
    int more;

    if ((object ? pl__json_object(j) : pl__json_array(j)) < 0)
        return NULL;
    for (;;) {
        struct pl_str key = { 0 };
        more = object ? pl__json_key(j, &key) : pl__json_item(j);
        if (more != 1)
            break;
        key = pl__str_copy(j->arena, key);
        struct tree *value = read_value(j);
        if (!value)
            return NULL;
        value->key = key;
        *last = value;
        last = &value->next;
    }
    return more < 0 ? NULL : t;
}

static struct tree *read_value(struct pl_json *j)
{
    int type = pl__json_peek(j);

    if (type < 0)
        return NULL;
    struct tree *t = node(j->arena, (enum pl_json_type)type);
    const char *start = j->at;
    switch (t->type) {
    case JSON_OBJECT:
    case JSON_ARRAY:
        return read_inside(j, t);
    case JSON_STRING:
        return pl__json_string(j, &t->text) < 0 ? NULL : t;
    case JSON_NUMBER:
    case JSON_TRUE:
    case JSON_FALSE:
    case JSON_NULL:
        if (pl__json_skip(j) < 0)
            return NULL;
        t->text = pl__str_copy(j->arena, (struct pl_str){ start, (size_t)(j->at - start) });
        return t;
    }
    return NULL;
}

struct tree *tree_parse(struct pl_arena *a, struct pl_str text)
{
    struct pl_error *error = NULL;
    struct pl_json j;

    pl__json_init(&j, text, PL_STR("request"), a, 0, &error);
    struct tree *t = read_value(&j);
    return t && pl__json_at_end(&j) ? t : NULL;
}

struct tree *tree_format(struct pl_arena *a, const char *format, ...)
{
    struct pl_buf b;
    char room[8192];
    va_list args;

    va_start(args, format);
    int size = vsnprintf(room, sizeof room, format, args);
    va_end(args);
    pl__buf_init(&b, a, SIZE_MAX);
    struct tree *t = size >= 0 && (size_t)size < sizeof room
                         ? tree_parse(a, (struct pl_str){ room, (size_t)size })
                         : NULL;
    if (!t) {
        fprintf(stderr, "not JSON: %s\n", room);
        abort();
    }
    return t;
}

struct tree *tree_string(struct pl_arena *a, struct pl_str text)
{
    struct tree *t = node(a, JSON_STRING);

    t->text = pl__str_copy(a, text);
    return t;
}

struct tree *tree_copy(struct pl_arena *a, const struct tree *t)
{
    struct tree *copy = node(a, t->type), **last = &copy->first;

    copy->key = t->key;
    copy->text = t->text;
    for (const struct tree *child = t->first; child; child = child->next) {
        *last = tree_copy(a, child);
        last = &(*last)->next;
    }
    return copy;
}

static void string_render(struct pl_buf *b, struct pl_str text)
{
    struct pl_json_writer w;

    pl__json_writer_init(&w, b, JSON_COMPACT);
    pl__json_write_str(&w, text);
}

void tree_render(struct pl_buf *b, const struct tree *t)
{
    if (t->type == JSON_STRING) {
        string_render(b, t->text);
        return;
    }
    if (t->type != JSON_OBJECT && t->type != JSON_ARRAY) {
        pl__buf_add(b, t->text);
        return;
    }
    pl__buf_add_char(b, t->type == JSON_OBJECT ? '{' : '[');
    for (const struct tree *child = t->first; child; child = child->next) {
        if (child != t->first)
            pl__buf_add_char(b, ',');
        if (t->type == JSON_OBJECT) {
            string_render(b, child->key);
            pl__buf_add_char(b, ':');
        }
        tree_render(b, child);
    }
    pl__buf_add_char(b, t->type == JSON_OBJECT ? '}' : ']');
}

static struct tree *member(const struct tree *t, struct pl_str key)
{
    if (!t || t->type != JSON_OBJECT)
        return NULL;
    for (struct tree *child = t->first; child; child = child->next) {
        if (pl__str_equal(child->key, key))
            return child;
    }
    return NULL;
}

bool tree_equal(const struct tree *x, const struct tree *y)
{
    if (x == y)
        return true;
    if (!x || !y || x->type != y->type || !pl__str_equal(x->text, y->text) ||
        tree_count(x) != tree_count(y))
        return false;
    const struct tree *b = y->first;
    for (const struct tree *a = x->first; a; a = a->next) {
        if (!tree_equal(a, x->type == JSON_OBJECT ? member(y, a->key) : b))
            return false;
        b = b->next;
    }
    return true;
}

/* --- looking and changing --------------------------------------------------------------------------- */

struct tree *tree_get(const struct tree *t, const char *key)
{
    return member(t, pl__str(key));
}

struct tree *tree_at(const struct tree *t, ...)
{
    const struct tree *at = t;
    const char *key;
    va_list args;

    va_start(args, t);
    while (at && (key = va_arg(args, const char *)))
        at = tree_get(at, key);
    va_end(args);
    return (struct tree *)(uintptr_t)at;
}

void tree_set(struct pl_arena *a, struct tree *t, struct pl_str key, struct tree *value)
{
    struct tree **at = &t->first;

    while (*at && !pl__str_equal((*at)->key, key))
        at = &(*at)->next;
    value->key = pl__str_copy(a, key);
    value->next = *at ? (*at)->next : NULL;
    *at = value;
}

struct tree *tree_make(struct pl_arena *a, struct tree *t, const char *key)
{
    struct tree *child = tree_get(t, key);

    if (child && child->type == JSON_OBJECT)
        return child;
    child = node(a, JSON_OBJECT);
    tree_set(a, t, pl__str(key), child);
    return child;
}

void tree_remove(struct tree *t, struct pl_str key)
{
    struct tree **at = &t->first;

    while (*at && !pl__str_equal((*at)->key, key))
        at = &(*at)->next;
    if (*at)
        *at = (*at)->next;
}

void tree_append(struct tree *array, struct tree *value)
{
    struct tree **at = &array->first;

    while (*at)
        at = &(*at)->next;
    value->next = NULL;
    *at = value;
}

size_t tree_count(const struct tree *t)
{
    size_t count = 0;

    for (const struct tree *child = t ? t->first : NULL; child; child = child->next)
        count++;
    return count;
}

struct pl_str tree_text(const struct tree *t)
{
    return t && t->type == JSON_STRING ? t->text : PL_STR("");
}

int64_t tree_int(const struct tree *t, int64_t otherwise)
{
    return t && t->type == JSON_NUMBER ? strtoll(t->text.ptr, NULL, 10) : otherwise;
}

bool tree_is(const struct tree *t, const char *text)
{
    return t && (t->type == JSON_STRING || t->type == JSON_TRUE || t->type == JSON_FALSE) &&
           pl__str_equal(t->text, pl__str(text));
}

/* --- patches ---------------------------------------------------------------------------------------- */

struct tree *tree_merge(struct pl_arena *a, struct tree *target, const struct tree *patch)
{
    if (patch->type != JSON_OBJECT)
        return tree_copy(a, patch);
    struct tree *result = target && target->type == JSON_OBJECT ? target : node(a, JSON_OBJECT);
    for (const struct tree *p = patch->first; p; p = p->next) {
        if (p->type == JSON_NULL)
            tree_remove(result, p->key);
        else
            tree_set(a, result, p->key, tree_merge(a, member(result, p->key), p));
    }
    return result;
}

/* One step of a JSON pointer, unescaped; `*path` moves behind it. */
static struct pl_str pointer_step(struct pl_arena *a, const char **path)
{
    size_t size = strcspn(*path + 1, "/"), length = 0;
    char *text = pl__arena_alloc(a, size + 1);

    for (size_t i = 0; i < size; i++) {
        char ch = (*path)[1 + i];
        if (ch == '~' && i + 1 < size) {
            i++;
            ch = (*path)[1 + i] == '1' ? '/' : '~';
        }
        text[length++] = ch;
    }
    *path += 1 + size;
    return (struct pl_str){ text, length };
}

/* The place of an array's item: the link that points at it, or that an added one goes into. */
static struct tree **item_link(struct tree *array, struct pl_str step, bool adding)
{
    struct tree **at = &array->first;
    uint64_t index = 0;
    bool last = pl__str_equal(step, PL_STR("-"));

    if (!last && !pl__str_to_u64(step, &index))
        return NULL;
    for (uint64_t i = 0; *at && (last || i < index); i++)
        at = &(*at)->next;
    return *at || (adding && (last || index == tree_count(array))) ? at : NULL;
}

static int operation_apply(struct pl_arena *a, struct tree *root, const struct tree *operation)
{
    const char *path = tree_text(tree_get(operation, "path")).ptr;
    struct pl_str op = tree_text(tree_get(operation, "op"));
    const struct tree *value = tree_get(operation, "value");
    bool add = pl__str_equal(op, PL_STR("add")), replace = pl__str_equal(op, PL_STR("replace"));
    bool test = pl__str_equal(op, PL_STR("test")), drop = pl__str_equal(op, PL_STR("remove"));
    struct tree *at = root;
    struct pl_str step = { 0 };

    if (path[0] != '/' || !(add || replace || test || drop) || (!drop && !value))
        return -1;
    while (at && path[0]) {
        step = pointer_step(a, &path);
        if (!path[0])
            break;
        struct tree **link = at->type == JSON_ARRAY ? item_link(at, step, false) : NULL;
        at = at->type == JSON_ARRAY ? link ? *link : NULL : member(at, step);
    }
    if (!at)
        return -2;
    if (at->type == JSON_ARRAY) {
        struct tree **link = item_link(at, step, add);
        if (!link)
            return -2;
        if (test)
            return tree_equal(*link, value) ? 0 : -2;
        if (!add)
            *link = (*link)->next;
        if (!drop) {
            struct tree *made = tree_copy(a, value);
            made->next = *link;
            *link = made;
        }
        return 0;
    }
    struct tree *there = member(at, step);
    if (test)
        return there && tree_equal(there, value) ? 0 : -2;
    if (!there && !add)
        return -2;
    if (drop)
        tree_remove(at, step);
    else
        tree_set(a, at, step, tree_copy(a, value));
    return 0;
}

int tree_patch(struct pl_arena *a, struct tree **root, const struct tree *operations)
{
    if (operations->type != JSON_ARRAY)
        return -1;
    for (const struct tree *o = operations->first; o; o = o->next) {
        int result = operation_apply(a, *root, o);
        if (result < 0)
            return result;
    }
    return 0;
}
