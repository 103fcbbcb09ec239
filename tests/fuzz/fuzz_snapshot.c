/* Any bytes as the documents of an input: read, gathered, settled, and every object packed.
 *
 * Holds for all input: failing sets an error and never reads on; what settles is sorted, without
 * twins and within its limits; a packed object has no pointer back into the arena it came from
 * (ASan would see it, for the arena is released first). */
#include <stdlib.h>

#include "base/pack.h"
#include "base/yaml.h"
#include "model/snapshot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition) \
    do {                   \
        if (!(condition))  \
            abort();       \
    } while (0)

enum { OBJECTS_MAX = 200, PACKED_MAX = 16, DEPTH_MAX = 24 };

/* Objects that outlive the arena they were decoded into. */
struct kept {
    struct {
        const struct pl_shape *shape;
        void *object;
        size_t size;
    } items[PACKED_MAX];
    int count;
};

static void keep(struct kept *kept, const struct pl_shape *shape, const void *items, uint32_t count)
{
    for (uint32_t i = 0; i < count && kept->count < PACKED_MAX; i++) {
        int at = kept->count++;
        kept->items[at].shape = shape;
        kept->items[at].object =
            pl__pack(shape, (const char *)items + i * shape->size, NULL, &kept->items[at].size);
    }
}

/* Packing what is packed already reads all of it, and must give as much again. */
static void kept_check(struct kept *kept)
{
    for (int i = 0; i < kept->count; i++) {
        size_t size;
        void *again = pl__pack(kept->items[i].shape, kept->items[i].object, NULL, &size);
        REQUIRE(size == kept->items[i].size);
        pl__pack_free(again, NULL, size);
        pl__pack_free(kept->items[i].object, NULL, kept->items[i].size);
    }
}

static void objects_check(const struct pl_snapshot *s, struct kept *kept)
{
    const struct pl_objects *o = &s->objects;

    REQUIRE(s->now_ms != 0 && s->grace_period_s > 0 && o->count <= OBJECTS_MAX);
    for (uint32_t i = 1; i < o->kcps.count; i++) {
        const struct pl_meta *a = &o->kcps.items[i - 1].meta, *b = &o->kcps.items[i].meta;
        int order = pl__str_compare(a->namespace_, b->namespace_);
        REQUIRE(order < 0 || (order == 0 && pl__str_compare(a->name, b->name) < 0));
    }
    for (uint32_t i = 0; i < o->machines.count; i++) {
        const struct pl_meta *m = &o->machines.items[i].meta;
        struct pl_range range = pl__snapshot_machines_of(s, m->namespace_, m->labels.cluster_name);
        REQUIRE(range.first <= i && i < range.end);
    }
    for (uint32_t i = 0; i < s->workloads.count; i++) {
        const struct pl_workload *w = &s->workloads.items[i];
        for (uint32_t p = 0; p < w->pods.count; p++)
            REQUIRE(pl__workload_pod(w, w->pods.items[p].name));
        for (uint32_t n = 0; n < w->nodes.count; n++)
            REQUIRE(pl__workload_node(w, w->nodes.items[n].name));
        keep(kept, &pl__node_shape, w->nodes.items, w->nodes.count);
        keep(kept, &pl__pod_shape, w->pods.items, w->pods.count);
    }
    keep(kept, &pl__cluster_shape, o->clusters.items, o->clusters.count);
    keep(kept, &pl__kcp_shape, o->kcps.items, o->kcps.count);
    keep(kept, &pl__machine_shape, o->machines.items, o->machines.count);
    keep(kept, &pl__machine_deployment_shape, o->machine_deployments.items,
         o->machine_deployments.count);
}

/* Reads every document into one snapshot, as loose objects are, and settles it. */
static void documents_read(struct pl_arena *arena, struct pl_str text,
                           const struct pl_position_map *positions, struct kept *kept)
{
    struct pl_snapshot *s = PL_NEW(arena, struct pl_snapshot, 1);
    struct pl_error *err = NULL;
    struct pl_json j;

    s->objects.count_max = OBJECTS_MAX;
    pl__json_init(&j, text, PL_STR("fuzz"), arena, DEPTH_MAX, &err);
    j.positions = positions;
    while (!pl__json_at_end(&j)) {
        int document = pl__document_peek(&j);
        if (document < 0 || pl__document_read(&j, (enum pl_document)document, s) < 0) {
            REQUIRE(err && err->message.len && pl__json_at_end(&j));
            return;
        }
        REQUIRE(!err && j.depth == 0);
    }
    if (pl__snapshot_settle(s, arena, 0, 1794700800000, &err) < 0)
        REQUIRE(err && err->message.len);
    else
        objects_check(s, kept);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pl_str text = { (const char *)data, size }, json;
    struct pl_yaml_limits limits = { DEPTH_MAX, 1 << 20 };
    struct pl_position_map positions = { 0 };
    struct pl_error *err = NULL;
    struct kept kept = { .count = 0 };
    struct pl_arena arena;

    pl__arena_init(&arena, NULL, 4096);
    if (size && (data[0] == '{' || data[0] == '['))
        documents_read(&arena, text, NULL, &kept);
    else if (pl__yaml_to_json(&arena, text, PL_STR("fuzz"), limits, &json, &positions, &err) == 0)
        documents_read(&arena, json, &positions, &kept);
    pl__arena_release(&arena);
    kept_check(&kept);
    return 0;
}
