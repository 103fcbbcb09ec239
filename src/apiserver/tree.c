#include "apiserver/tree.h"

#include <stdlib.h>

/* From so many keys on it is quicker to sort them than to compare each with each. */
enum { SORTED_FROM = 16 };

struct pl_tree *pl__tree_new(struct pl_arena *a, enum pl_json_type type)
{
    static const char *const words[] = {
        [JSON_TRUE] = "true", [JSON_FALSE] = "false", [JSON_NULL] = "null"
    };
    struct pl_tree *t = PL_NEW(a, struct pl_tree, 1);

    t->type = type;
    if (type == JSON_TRUE || type == JSON_FALSE || type == JSON_NULL)
        t->text = pl__str(words[type]);
    return t;
}

/* --- reading ------------------------------------------------------------------------------------- */

static int key_order(const void *x, const void *y)
{
    return pl__str_compare((*(const struct pl_tree *const *)x)->key,
                           (*(const struct pl_tree *const *)y)->key);
}

/* A key that comes twice would make it a matter of taste what was said. */
static int check_keys(struct pl_json *j, const struct pl_tree *object, size_t count)
{
    if (count < SORTED_FROM) {
        for (const struct pl_tree *m = object->first; m; m = m->next)
            for (const struct pl_tree *n = m->next; n; n = n->next)
                if (pl__str_equal(m->key, n->key))
                    return pl__json_error(j, j->at, PL_INVALID, "duplicate field \"%.*s\"",
                                          PL_STR_ARG(m->key));
        return 0;
    }
    const struct pl_tree **sorted = PL_NEW(j->arena, const struct pl_tree *, count);
    size_t i = 0;
    for (const struct pl_tree *m = object->first; m; m = m->next)
        sorted[i++] = m;
    qsort(sorted, count, sizeof(struct pl_tree *), key_order);
    for (i = 1; i < count; i++)
        if (pl__str_equal(sorted[i - 1]->key, sorted[i]->key))
            return pl__json_error(j, j->at, PL_INVALID, "duplicate field \"%.*s\"",
                                  PL_STR_ARG(sorted[i]->key));
    return 0;
}

static struct pl_tree *read_value(struct pl_json *j);

static struct pl_tree *read_inside(struct pl_json *j, struct pl_tree *t)
{
    bool object = t->type == JSON_OBJECT;
    size_t count = 0;
    int more;

    if ((object ? pl__json_object(j) : pl__json_array(j)) < 0)
        return NULL;
    for (;;) {
        struct pl_str key = { 0 };
        more = object ? pl__json_key(j, &key) : pl__json_item(j);
        if (more != 1)
            break;
        if (object && count == PL_TREE_MEMBERS_MAX) {
            pl__json_error(j, j->at, PL_INVALID, "an object has more than %d fields",
                           PL_TREE_MEMBERS_MAX);
            return NULL;
        }
        if (object)
            key = pl__str_copy(j->arena, key);
        struct pl_tree *value = read_value(j);
        if (!value)
            return NULL;
        value->key = key;
        pl__tree_append(t, value);
        count++;
    }
    if (more < 0 || (object && check_keys(j, t, count) < 0))
        return NULL;
    return t;
}

/* Its depth is that of the reader, which is bounded. */
static struct pl_tree *read_value(struct pl_json *j)
{
    int type = pl__json_peek(j);

    if (type < 0)
        return NULL;
    struct pl_tree *t = pl__tree_new(j->arena, (enum pl_json_type)type);
    struct pl_str raw;
    switch (t->type) {
    case JSON_OBJECT:
    case JSON_ARRAY:
        return read_inside(j, t);
    case JSON_STRING:
        return pl__json_string(j, &t->text) < 0 ? NULL : t;
    case JSON_NUMBER:
        if (pl__json_raw(j, &raw) < 0)
            return NULL;
        t->text = pl__str_copy(j->arena, raw);
        return t;
    case JSON_TRUE:
    case JSON_FALSE:
    case JSON_NULL:
        return pl__json_skip(j) < 0 ? NULL : t;
    }
    return NULL;
}

struct pl_tree *pl__tree_read(struct pl_arena *a, struct pl_str text, struct pl_error **err)
{
    struct pl_json j;

    pl__json_init(&j, text, PL_STR("body"), a, PL_TREE_DEPTH_MAX, err);
    struct pl_tree *t = read_value(&j);
    if (t && !pl__json_at_end(&j)) {
        pl__json_error(&j, j.at, PL_INVALID, "something follows the JSON value");
        return NULL;
    }
    return t;
}

/* --- writing ------------------------------------------------------------------------------------- */

static void write_string(struct pl_buf *b, struct pl_str s)
{
    struct pl_json_writer w;

    pl__json_writer_init(&w, b, JSON_COMPACT);
    pl__json_write_str(&w, s);
}

void pl__tree_write(struct pl_buf *b, const struct pl_tree *t)
{
    if (t->type == JSON_STRING) {
        write_string(b, t->text);
        return;
    }
    if (t->type != JSON_OBJECT && t->type != JSON_ARRAY) {
        pl__buf_add(b, t->text);
        return;
    }
    pl__buf_add_char(b, t->type == JSON_OBJECT ? '{' : '[');
    for (const struct pl_tree *inside = t->first; inside; inside = inside->next) {
        if (inside != t->first)
            pl__buf_add_char(b, ',');
        if (t->type == JSON_OBJECT) {
            write_string(b, inside->key);
            pl__buf_add_char(b, ':');
        }
        pl__tree_write(b, inside);
    }
    pl__buf_add_char(b, t->type == JSON_OBJECT ? '}' : ']');
}

struct pl_str pl__tree_text(struct pl_arena *a, const struct pl_tree *t)
{
    struct pl_buf b;

    pl__buf_init(&b, a, SIZE_MAX / 2);
    pl__tree_write(&b, t);
    return pl__buf_str(&b);
}

/* --- making -------------------------------------------------------------------------------------- */

struct pl_tree *pl__tree_str(struct pl_arena *a, struct pl_str s)
{
    struct pl_tree *t = pl__tree_new(a, JSON_STRING);

    t->text = pl__str_copy(a, s);
    return t;
}

struct pl_tree *pl__tree_int(struct pl_arena *a, int64_t n)
{
    struct pl_tree *t = pl__tree_new(a, JSON_NUMBER);

    t->text = pl__str_format(a, "%lld", (long long)n);
    return t;
}

struct pl_tree *pl__tree_bool(struct pl_arena *a, bool b)
{
    return pl__tree_new(a, b ? JSON_TRUE : JSON_FALSE);
}

struct pl_tree *pl__tree_copy(struct pl_arena *a, const struct pl_tree *t)
{
    struct pl_tree *copy = pl__tree_new(a, t->type);

    copy->key = t->key;
    copy->text = t->text;
    for (const struct pl_tree *inside = t->first; inside; inside = inside->next)
        pl__tree_append(copy, pl__tree_copy(a, inside));
    return copy;
}

/* --- looking ------------------------------------------------------------------------------------- */

static bool objects_equal(const struct pl_tree *x, const struct pl_tree *y)
{
    if (pl__tree_count(x) != pl__tree_count(y))
        return false;
    /* Most often the order is the same: then each look-up ends at once. */
    const struct pl_tree *other = y->first;
    for (const struct pl_tree *m = x->first; m; m = m->next) {
        const struct pl_tree *same =
            other && pl__str_equal(other->key, m->key) ? other : pl__tree_get(y, m->key);
        if (!same || !pl__tree_equal(m, same))
            return false;
        other = same->next;
    }
    return true;
}

bool pl__tree_equal(const struct pl_tree *x, const struct pl_tree *y)
{
    if (!x || !y)
        return x == y;
    if (x->type != y->type)
        return false;
    if (x->type == JSON_OBJECT)
        return objects_equal(x, y);
    if (x->type != JSON_ARRAY)
        return pl__str_equal(x->text, y->text);
    const struct pl_tree *i = x->first, *k = y->first;
    for (; i && k; i = i->next, k = k->next)
        if (!pl__tree_equal(i, k))
            return false;
    return !i && !k;
}

struct pl_tree *pl__tree_get(const struct pl_tree *t, struct pl_str key)
{
    if (!t || t->type != JSON_OBJECT)
        return NULL;
    for (struct pl_tree *m = t->first; m; m = m->next)
        if (pl__str_equal(m->key, key))
            return m;
    return NULL;
}

struct pl_tree *pl__tree_at(const struct pl_tree *t, const char *path)
{
    struct pl_tree *found = NULL;

    while (*path) {
        size_t len = strcspn(path, ".");
        found = pl__tree_get(t, (struct pl_str){ path, len });
        if (!found)
            return NULL;
        t = found;
        path += len + (path[len] == '.');
    }
    return found;
}

struct pl_str pl__tree_get_str(const struct pl_tree *t, const char *path)
{
    const struct pl_tree *m = pl__tree_at(t, path);

    return m && m->type == JSON_STRING ? m->text : (struct pl_str){ "", 0 };
}

int64_t pl__tree_get_int(const struct pl_tree *t, const char *path, int64_t otherwise)
{
    const struct pl_tree *m = pl__tree_at(t, path);
    uint64_t value;

    if (!m || m->type != JSON_NUMBER || m->text.len == 0)
        return otherwise;
    bool negative = m->text.ptr[0] == '-';
    struct pl_str digits = { m->text.ptr + negative, m->text.len - negative };
    if (!pl__str_to_u64(digits, &value) || value > INT64_MAX)
        return otherwise;
    return negative ? -(int64_t)value : (int64_t)value;
}

bool pl__tree_get_true(const struct pl_tree *t, const char *path)
{
    const struct pl_tree *m = pl__tree_at(t, path);

    return m && m->type == JSON_TRUE;
}

size_t pl__tree_depth(const struct pl_tree *t, struct pl_tree_size *size)
{
    size_t deepest = 0, count = 0;

    size->nodes++;
    size->bytes += t->key.len + t->text.len;
    for (const struct pl_tree *inside = t->first; inside; inside = inside->next, count++) {
        size_t depth = pl__tree_depth(inside, size);
        deepest = depth > deepest ? depth : deepest;
    }
    if (t->type == JSON_OBJECT && count > size->widest)
        size->widest = count;
    return deepest + (t->type == JSON_OBJECT || t->type == JSON_ARRAY);
}

size_t pl__tree_count(const struct pl_tree *t)
{
    size_t count = 0;

    for (const struct pl_tree *inside = t ? t->first : NULL; inside; inside = inside->next)
        count++;
    return count;
}

struct pl_tree *pl__tree_item(const struct pl_tree *t, size_t index)
{
    struct pl_tree *item = t ? t->first : NULL;

    while (item && index-- > 0)
        item = item->next;
    return item;
}

/* --- changing ------------------------------------------------------------------------------------ */

/* Takes out what stands behind `before` (NULL: the first). */
static struct pl_tree *unlink_after(struct pl_tree *t, struct pl_tree *before)
{
    struct pl_tree *gone = before ? before->next : t->first;

    if (before)
        before->next = gone->next;
    else
        t->first = gone->next;
    if (t->last == gone)
        t->last = before;
    gone->next = NULL;
    return gone;
}

static void link_after(struct pl_tree *t, struct pl_tree *before, struct pl_tree *value)
{
    value->next = before ? before->next : t->first;
    if (before)
        before->next = value;
    else
        t->first = value;
    if (t->last == before)
        t->last = value;
}

void pl__tree_append(struct pl_tree *array, struct pl_tree *value)
{
    link_after(array, array->last, value);
}

void pl__tree_set(struct pl_tree *object, struct pl_str key, struct pl_tree *value)
{
    struct pl_tree *before = NULL;

    value->key = key;
    for (struct pl_tree *m = object->first; m; before = m, m = m->next) {
        if (!pl__str_equal(m->key, key))
            continue;
        unlink_after(object, before);
        link_after(object, before, value);
        return;
    }
    link_after(object, object->last, value);
}

struct pl_tree *pl__tree_make(struct pl_arena *a, struct pl_tree *object, struct pl_str key)
{
    struct pl_tree *m = pl__tree_get(object, key);

    if (m && m->type == JSON_OBJECT)
        return m;
    m = pl__tree_new(a, JSON_OBJECT);
    pl__tree_set(object, key, m);
    return m;
}

struct pl_tree *pl__tree_remove(struct pl_tree *object, struct pl_str key)
{
    struct pl_tree *before = NULL;

    if (!object || object->type != JSON_OBJECT)
        return NULL;
    for (struct pl_tree *m = object->first; m; before = m, m = m->next)
        if (pl__str_equal(m->key, key))
            return unlink_after(object, before);
    return NULL;
}

void pl__tree_insert(struct pl_tree *array, size_t index, struct pl_tree *value)
{
    link_after(array, index == 0 ? NULL : pl__tree_item(array, index - 1), value);
}

struct pl_tree *pl__tree_take(struct pl_tree *array, size_t index)
{
    struct pl_tree *before = index == 0 ? NULL : pl__tree_item(array, index - 1);

    if (index > 0 && !before)
        return NULL;
    if (!(before ? before->next : array->first))
        return NULL;
    return unlink_after(array, before);
}
