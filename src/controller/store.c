#include "controller/internal.h"

#include "base/pack.h"
#include "base/secret.h"

enum { BUCKETS_FIRST = 16 };

/* FNV-1a over both parts with a separator, stirred once more: buckets go by the low bits. */
uint64_t pl__hash(struct pl_str a, struct pl_str b)
{
    uint64_t h = 14695981039346656037u;

    for (size_t i = 0; i < a.len; i++)
        h = (h ^ (unsigned char)a.ptr[i]) * 1099511628211u;
    h = (h ^ '/') * 1099511628211u;
    for (size_t i = 0; i < b.len; i++)
        h = (h ^ (unsigned char)b.ptr[i]) * 1099511628211u;
    return h ^ h >> 32;
}

/* Node and Pod start with their name; all others with their metadata. */
static bool has_meta(const struct pl_shape *shape)
{
    return shape != &pl__node_shape && shape != &pl__pod_shape;
}

struct pl_str pl__object_name(const struct pl_shape *shape, const void *object)
{
    return has_meta(shape) ? ((const struct pl_meta *)object)->name
                           : *(const struct pl_str *)object;
}

struct pl_str pl__object_namespace(const struct pl_shape *shape, const void *object)
{
    return has_meta(shape) ? ((const struct pl_meta *)object)->namespace_
                           : (struct pl_str){ "", 0 };
}

uint64_t pl__object_version(const struct pl_shape *shape, const void *object)
{
    if (shape == &pl__node_shape)
        return ((const struct pl_node *)object)->resource_version;
    if (shape == &pl__pod_shape)
        return ((const struct pl_pod *)object)->resource_version;
    return ((const struct pl_meta *)object)->resource_version;
}

void pl__store_init(struct pl_store *s, const struct pl_shape *shape,
                    const struct pl_allocator *allocator)
{
    *s = (struct pl_store){ .shape = shape, .allocator = allocator };
}

/* Gives an object back; a Secret leaves nothing behind. */
static void object_free(struct pl_store *s, struct pl_item *item)
{
    if (s->shape == pl__resources[RESOURCE_SECRETS].shape)
        pl__secret_wipe(item->object, item->object_size);
    s->object_bytes -= item->object_size;
    pl__pack_free(item->object, s->allocator, item->object_size);
}

static void item_free(struct pl_store *s, struct pl_item *item)
{
    object_free(s, item);
    pl__heap_free(s->allocator, item, sizeof *item);
}

void pl__store_release(struct pl_store *s)
{
    for (uint32_t i = 0; i < s->bucket_count; i++) {
        for (struct pl_item *item = s->buckets[i], *next; item; item = next) {
            next = item->next_in_bucket;
            item_free(s, item);
        }
    }
    if (s->buckets)
        pl__heap_free(s->allocator, s->buckets, s->bucket_count * sizeof(struct pl_item *));
    pl__store_init(s, s->shape, s->allocator);
}

static struct pl_item *find(const struct pl_store *s, uint64_t hash, struct pl_str namespace_,
                            struct pl_str name)
{
    if (!s->bucket_count)
        return NULL;
    for (struct pl_item *item = s->buckets[hash & (s->bucket_count - 1)]; item;
         item = item->next_in_bucket) {
        if (item->hash == hash && pl__str_equal(pl__object_name(s->shape, item->object), name) &&
            pl__str_equal(pl__object_namespace(s->shape, item->object), namespace_))
            return item;
    }
    return NULL;
}

struct pl_item *pl__store_find(const struct pl_store *s, struct pl_str namespace_,
                               struct pl_str name)
{
    return find(s, pl__hash(namespace_, name), namespace_, name);
}

static void grow(struct pl_store *s)
{
    uint32_t bucket_count = s->bucket_count ? 2 * s->bucket_count : BUCKETS_FIRST;
    struct pl_item **buckets = pl__heap_alloc(s->allocator, bucket_count * sizeof *buckets);
    memset(buckets, 0, bucket_count * sizeof *buckets);

    for (uint32_t i = 0; i < s->bucket_count; i++) {
        for (struct pl_item *item = s->buckets[i], *next; item; item = next) {
            next = item->next_in_bucket;
            item->next_in_bucket = buckets[item->hash & (bucket_count - 1)];
            buckets[item->hash & (bucket_count - 1)] = item;
        }
    }
    if (s->buckets)
        pl__heap_free(s->allocator, s->buckets, s->bucket_count * sizeof *buckets);
    s->buckets = buckets;
    s->bucket_count = bucket_count;
}

struct pl_item *pl__store_put(struct pl_store *s, const void *object, bool *is_new)
{
    struct pl_str namespace_ = pl__object_namespace(s->shape, object);
    struct pl_str name = pl__object_name(s->shape, object);
    uint64_t hash = pl__hash(namespace_, name);
    struct pl_item *item = find(s, hash, namespace_, name);

    *is_new = !item;
    if (item) {
        object_free(s, item);
    } else {
        if (s->count >= s->bucket_count)
            grow(s);
        item = pl__heap_alloc(s->allocator, sizeof *item);
        memset(item, 0, sizeof *item);
        item->hash = hash;
        item->next_in_bucket = s->buckets[hash & (s->bucket_count - 1)];
        s->buckets[hash & (s->bucket_count - 1)] = item;
        s->count++;
    }
    item->object = pl__pack(s->shape, object, s->allocator, &item->object_size);
    s->object_bytes += item->object_size;
    return item;
}

void pl__store_remove(struct pl_store *s, struct pl_item *item)
{
    struct pl_item **at = &s->buckets[item->hash & (s->bucket_count - 1)];

    while (*at != item)
        at = &(*at)->next_in_bucket;
    *at = item->next_in_bucket;
    s->count--;
    item_free(s, item);
}

void pl__store_each(struct pl_store *s, void (*visit)(struct pl_item *item, void *user), void *user)
{
    for (uint32_t i = 0; i < s->bucket_count; i++) {
        for (struct pl_item *item = s->buckets[i], *next; item; item = next) {
            next = item->next_in_bucket;
            visit(item, user);
        }
    }
}
