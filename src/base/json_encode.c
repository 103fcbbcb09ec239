/* base/json_encode.c - a decoded struct back to JSON, by the very table that decoded it.
 *
 * What is read is what is written, so a field added to a table is in both. A value that decoding
 * would leave as it was (zero, an empty string, an absent list) is left out; an empty list that was
 * there stays. Rows with a custom reader are written when they have a custom writer, too. */
#include "base/json.h"

#include <assert.h>

enum { STEP_BYTES_MAX = 128 };

static bool object_is_empty(const struct pl_shape *shape, const void *object);

static bool list_is_present(const void *list)
{
    struct pl_list any; /* by memcpy, for the list there has a type of its own (PL_LIST) */

    memcpy(&any, list, sizeof any);
    return any.present || any.count > 0;
}

static bool field_is_empty(const struct pl_field *f, const void *value)
{
    switch (f->kind) {
    case F_STR:
        return ((const struct pl_str *)value)->len == 0;
    case F_BOOL:
    case F_PRESENT:
    case F_PREFIX:
        return !*(const bool *)value;
    case F_INT:
    case F_TIME:
        return *(const int64_t *)value == 0;
    case F_OBJECT:
    case F_MAP:
        return object_is_empty(f->shape, value);
    case F_LIST:
    case F_STRINGS:
        return !list_is_present(value);
    case F_CUSTOM:
        return !f->write || !f->write(NULL, value);
    case F_SKIP_FAST:
        break;
    }
    return true;
}

static const void *value_of(const struct pl_field *f, const void *object)
{
    return (const char *)object + f->offset;
}

static bool object_is_empty(const struct pl_shape *shape, const void *object)
{
    for (uint32_t i = 0; i < shape->field_count; i++) {
        if (!field_is_empty(&shape->fields[i], value_of(&shape->fields[i], object)))
            return false;
    }
    return true;
}

/* --- the way to a field ------------------------------------------------------------------------- */

/* Where the last step of a path starts; 0: it has only one. */
static size_t last_step(struct pl_str path)
{
    size_t at = path.len;

    while (at > 0 && path.ptr[at - 1] != '.')
        at--;
    return at;
}

static struct pl_str parent_of(struct pl_str path)
{
    size_t at = last_step(path);

    return (struct pl_str){ path.ptr, at ? at - 1 : 0 };
}

/* The bytes of whole steps that both begin with. */
static size_t common_steps(struct pl_str a, struct pl_str b)
{
    size_t common = 0;

    for (size_t i = 0; i <= a.len && i <= b.len; i++) {
        bool a_ends = i == a.len || a.ptr[i] == '.';
        bool b_ends = i == b.len || b.ptr[i] == '.';
        if (a_ends && b_ends)
            common = i;
        if (i == a.len || i == b.len || a.ptr[i] != b.ptr[i])
            break;
    }
    return common;
}

static void write_step(struct pl_json_writer *w, struct pl_str step)
{
    char key[STEP_BYTES_MAX];

    assert(step.len < sizeof key);
    memcpy(key, step.ptr, step.len);
    key[step.len] = '\0';
    pl__json_write_key(w, key);
}

/* Closes and opens objects so that the members of `parent` come next. Rows that share a step stand
 * together, so no object is opened twice. */
static void move_to(struct pl_json_writer *w, struct pl_str *open, struct pl_str parent)
{
    size_t common = common_steps(*open, parent);

    while (open->len > common) {
        pl__json_close_object(w);
        *open = parent_of(*open);
    }
    for (size_t at = common ? common + 1 : 0; at < parent.len;) {
        const char *dot = memchr(parent.ptr + at, '.', parent.len - at);
        size_t end = dot ? (size_t)(dot - parent.ptr) : parent.len;
        write_step(w, (struct pl_str){ parent.ptr + at, end - at });
        pl__json_open_object(w);
        at = end + 1;
    }
    *open = parent;
}

/* --- values ------------------------------------------------------------------------------------- */

static void fields_write(struct pl_json_writer *w, const struct pl_shape *shape, const void *object,
                         bool literal);

static void object_write(struct pl_json_writer *w, const struct pl_shape *shape, const void *object,
                         bool literal)
{
    pl__json_open_object(w);
    fields_write(w, shape, object, literal);
    pl__json_close_object(w);
}

static void list_write(struct pl_json_writer *w, const struct pl_field *f, const void *value)
{
    struct pl_list list;

    memcpy(&list, value, sizeof list);
    pl__json_open_array(w);
    for (uint32_t i = 0; i < list.count; i++) {
        if (f->kind == F_STRINGS)
            pl__json_write_str(w, ((const struct pl_str *)list.items)[i]);
        else
            object_write(w, f->shape, (const char *)list.items + i * f->shape->size, false);
    }
    pl__json_close_array(w);
}

static void value_write(struct pl_json_writer *w, const struct pl_field *f, const void *value)
{
    switch (f->kind) {
    case F_STR:
        pl__json_write_str(w, *(const struct pl_str *)value);
        break;
    case F_BOOL:
        pl__json_write_bool(w, *(const bool *)value);
        break;
    case F_INT:
        pl__json_write_int(w, *(const int64_t *)value);
        break;
    case F_TIME:
        pl__json_write_time(w, *(const int64_t *)value);
        break;
    case F_PRESENT: /* what stood there was not kept */
    case F_PREFIX:  /* nor was the rest of the name: the beginning alone reads back as the same */
        pl__json_write_str(w, PL_STR(""));
        break;
    case F_OBJECT:
    case F_MAP:
        object_write(w, f->shape, value, f->kind == F_MAP);
        break;
    case F_LIST:
    case F_STRINGS:
        list_write(w, f, value);
        break;
    case F_CUSTOM:
        f->write(w, value);
        break;
    case F_SKIP_FAST:
        break;
    }
}

/* `literal`: keys are names (labels), and dots in them mean nothing. */
static void fields_write(struct pl_json_writer *w, const struct pl_shape *shape, const void *object,
                         bool literal)
{
    struct pl_str open = { 0 };

    for (uint32_t i = 0; i < shape->field_count; i++) {
        const struct pl_field *f = &shape->fields[i];
        struct pl_str path = { f->path, f->path_len };
        size_t at = literal ? 0 : last_step(path);

        if (field_is_empty(f, value_of(f, object)))
            continue;
        if (!literal)
            move_to(w, &open, parent_of(path));
        write_step(w, (struct pl_str){ path.ptr + at, path.len - at });
        value_write(w, f, value_of(f, object));
    }
    move_to(w, &open, PL_STR(""));
}

void pl__json_encode_members(struct pl_json_writer *w, const struct pl_shape *shape,
                             const void *object)
{
    fields_write(w, shape, object, false);
}

void pl__json_encode(struct pl_json_writer *w, const struct pl_shape *shape, const void *object)
{
    object_write(w, shape, object, false);
}
