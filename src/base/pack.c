/* The object is walked twice, the same way both times: once to add up what the block must hold, once
 * to fill it. What the first walk finds equal or interned the second does, too, for both see the
 * same fields in the same order. */
#include "base/pack.h"

#include <assert.h>

#include "base/intern.h"

enum {
    SEEN_MAX = 48, /* strings compared with the next ones; those behind are stored again if equal */
    ALIGNMENT = 8, /* of every struct with a shape: they hold pointers and int64_t, nothing wider */
};

/* A string that the block holds. */
struct placed {
    struct pl_str from;
    char *to;
};

struct packer {
    char *block;         /* NULL: only adding up */
    size_t list_bytes;   /* of structs and lists so far */
    size_t string_bytes; /* of strings so far, their NULs included */
    char *strings;       /* where they start in the block: behind the lists */
    size_t seen_count;
    struct placed seen[SEEN_MAX];
};

static size_t round_up(size_t size)
{
    return (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
}

/* The same string outside of `from`'s memory: static, in the block already, or put there now. */
static struct pl_str string_place(struct packer *p, struct pl_str from)
{
    struct pl_str interned = pl__intern(from);

    if (interned.ptr)
        return interned;
    for (size_t i = 0; i < p->seen_count; i++) {
        if (pl__str_equal(p->seen[i].from, from))
            return (struct pl_str){ p->seen[i].to, from.len };
    }
    char *to = NULL;
    if (p->block) {
        to = p->strings + p->string_bytes;
        memcpy(to, from.ptr, from.len);
        to[from.len] = '\0';
    }
    p->string_bytes += from.len + 1;
    if (p->seen_count < SEEN_MAX)
        p->seen[p->seen_count++] = (struct placed){ from, to };
    return (struct pl_str){ to, from.len };
}

/* Room for structs, behind those already there; NULL while only adding up. */
static char *structs_place(struct packer *p, size_t size)
{
    char *to = p->block ? p->block + p->list_bytes : NULL;

    p->list_bytes += round_up(size);
    return to;
}

static void fields_pack(struct packer *p, const struct pl_shape *shape, const char *from, char *to);

/* `to` is NULL while only adding up, here and below. */
static void string_pack(struct packer *p, const void *from, void *to)
{
    struct pl_str placed = string_place(p, *(const struct pl_str *)from);

    if (to)
        *(struct pl_str *)to = placed;
}

static void list_pack(struct packer *p, const struct pl_field *f, const void *from, void *to)
{
    size_t item_size = f->kind == F_STRINGS ? sizeof(struct pl_str) : f->shape->size;
    struct pl_list list; /* by memcpy, for the list there has a type of its own (PL_LIST) */

    memcpy(&list, from, sizeof list);
    const char *items = list.items;
    char *copies = list.count ? structs_place(p, list.count * item_size) : NULL;
    if (copies)
        memcpy(copies, items, list.count * item_size);
    for (uint32_t i = 0; i < list.count; i++) {
        const char *item = items + i * item_size;
        char *copy = copies ? copies + i * item_size : NULL;
        if (f->kind == F_STRINGS)
            string_pack(p, item, copy);
        else
            fields_pack(p, f->shape, item, copy);
    }
    list.items = copies;
    if (to)
        memcpy(to, &list, sizeof list);
}

/* Packs what the fields point at. Fields without pointers came over with their struct. */
static void fields_pack(struct packer *p, const struct pl_shape *shape, const char *from, char *to)
{
    for (uint32_t i = 0; i < shape->field_count; i++) {
        const struct pl_field *f = &shape->fields[i];
        const char *field = from + f->offset;
        char *copy = to ? to + f->offset : NULL;

        switch (f->kind) {
        case F_STR:
            string_pack(p, field, copy);
            break;
        case F_LIST:
        case F_STRINGS:
            list_pack(p, f, field, copy);
            break;
        case F_OBJECT:
        case F_MAP:
            fields_pack(p, f->shape, field, copy);
            break;
        case F_CUSTOM:
            if (f->shape)
                fields_pack(p, f->shape, field, copy);
            break;
        case F_BOOL:
        case F_INT:
        case F_TIME:
        case F_PRESENT:
        case F_PREFIX:
        case F_SKIP_FAST:
            break;
        }
    }
}

/* One walk: the struct itself, then what it points at. */
static void *object_pack(struct packer *p, const struct pl_shape *shape, const void *object)
{
    char *to = structs_place(p, shape->size);

    if (to)
        memcpy(to, object, shape->size);
    fields_pack(p, shape, object, to);
    return to;
}

void *pl__pack(const struct pl_shape *shape, const void *object,
               const struct pl_allocator *allocator, size_t *size)
{
    struct packer sum, fill;

    sum.block = sum.strings = NULL;
    sum.list_bytes = sum.string_bytes = sum.seen_count = 0;
    object_pack(&sum, shape, object);

    *size = sum.list_bytes + sum.string_bytes;
    fill.block = pl__heap_alloc(allocator, *size);
    fill.strings = fill.block + sum.list_bytes;
    fill.list_bytes = fill.string_bytes = fill.seen_count = 0;
    void *packed = object_pack(&fill, shape, object);
    assert(fill.list_bytes == sum.list_bytes && fill.string_bytes == sum.string_bytes);
    return packed;
}

void pl__pack_free(void *packed, const struct pl_allocator *allocator, size_t size)
{
    if (packed)
        pl__heap_free(allocator, packed, size);
}
