/* What a Machine costs while it is kept: packed, one block each, 3,000 of them. */
#include "bench.h"

#include <malloc.h>
#include <stdlib.h>

#include "base/pack.h"
#include "fleet.h"
#include "model/objects.h"

enum { MACHINE_COUNT = 3000, QUICK_MACHINE_COUNT = 30 };

/* malloc's own word in front of each block. */
enum { HEAP_OVERHEAD_BYTES = 8 };

struct kept {
    void *machine;
    size_t size;
};

struct cache {
    struct kept *items;
    int count;
    size_t packed_bytes; /* asked for */
    size_t heap_bytes;   /* what malloc made of it */
};

static void machine_keep(struct cache *c, struct pl_str text, struct pl_arena *arena)
{
    struct pl_machine machine = { 0 };
    struct pl_error *err = NULL;
    struct kept *kept = &c->items[c->count++];
    struct pl_json j;

    pl__json_init(&j, text, PL_STR("bench"), arena, 64, &err);
    if (pl__object_decode(&j, KIND_MACHINE, false, &machine) < 0)
        bench_fail("cache: %s", err->message.ptr);
    kept->machine = pl__pack(&pl__machine_shape, &machine, NULL, &kept->size);
    c->packed_bytes += kept->size;
    c->heap_bytes += malloc_usable_size(kept->machine) + HEAP_OVERHEAD_BYTES;
}

static void cache_fill(struct cache *c, enum fleet_role role, int count)
{
    struct pl_arena texts, scratch;

    pl__arena_init(&texts, NULL, 0);
    pl__arena_init(&scratch, NULL, 0);
    c->items = calloc((size_t)count, sizeof *c->items);
    if (!c->items)
        bench_fail("cache: out of memory");
    for (int i = 0; i < count; i++) {
        struct pl_buf text;
        pl__arena_reset(&texts);
        pl__arena_reset(&scratch);
        pl__buf_init(&text, &texts, SIZE_MAX / 2);
        fleet_machine(&text, role, i, true);
        machine_keep(c, pl__buf_str(&text), &scratch);
    }
    pl__arena_release(&texts);
    pl__arena_release(&scratch);
}

static void cache_release(struct cache *c)
{
    for (int i = 0; i < c->count; i++)
        pl__pack_free(c->items[i].machine, NULL, c->items[i].size);
    free(c->items);
}

/* Measures packing itself, and what all of them hold. */
static void pack_with(struct bench_run *r, enum fleet_role role)
{
    int count = r->quick ? QUICK_MACHINE_COUNT : MACHINE_COUNT;
    struct cache cache = { 0 };

    malloc_trim(0);
    size_t rss_before = bench_rss_bytes();
    cache_fill(&cache, role, count);
    malloc_trim(0);
    size_t rss_after = bench_rss_bytes();

    while (bench_next(r)) {
        size_t size;
        void *copy = pl__pack(&pl__machine_shape, cache.items[0].machine, NULL, &size);
        bench_use(copy);
        pl__pack_free(copy, NULL, size);
    }
    bench_counter(r, "bytes/object", (double)cache.packed_bytes / count);
    bench_counter(r, "heap-bytes/object", (double)cache.heap_bytes / count);
    bench_counter(r, "rss-bytes/object",
                  rss_after > rss_before ? (double)(rss_after - rss_before) / count : 0);
    cache_release(&cache);
}

static void pack_control_plane(struct bench_run *r)
{
    pack_with(r, FLEET_CONTROL_PLANE);
}

static void pack_worker(struct bench_run *r)
{
    pack_with(r, FLEET_WORKER);
}

const struct bench cache_benches[] = {
    { "pack/machine/control-plane", pack_control_plane },
    { "pack/machine/worker", pack_worker },
    { NULL, NULL },
};
