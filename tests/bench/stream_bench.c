/* Many snapshots, one behind the other in one input: time and memory must not depend on how many. */
#include "bench.h"

#include "fleet.h"

enum { QUICK_SNAPSHOT_COUNT = 20, DISTINCT_COUNT = 100 };

/* The first hundred differ, then they repeat: making them takes longer than judging them. */
static void stream_make(struct pl_buf *b, int snapshot_count)
{
    for (int i = 0; i < snapshot_count && i < DISTINCT_COUNT; i++) {
        fleet_snapshot(b, i);
        pl__buf_add_char(b, '\n');
    }
    size_t round = b->len;
    for (int i = DISTINCT_COUNT; i < snapshot_count; i += DISTINCT_COUNT) {
        char *room = pl__buf_reserve(b, round);
        if (!room)
            bench_fail("stream: too large");
        memcpy(room, b->data, round);
        b->len += round;
    }
}

static void stream_judge(struct pl_context *ctx, struct pl_str text, int snapshot_count)
{
    const struct pl_report *report;
    int got, count = 0;

    if (pl_context_add(ctx, "stream", text.ptr, text.len) < 0)
        bench_fail("stream: %s", pl_context_error(ctx));
    while ((got = pl_context_next(ctx, &report)) > 0) {
        count++;
        bench_use(pl_report_json(ctx, report).ptr);
    }
    if (got < 0 || count != snapshot_count)
        bench_fail("stream: %d snapshots, %s", count, pl_context_error(ctx));
}

static void stream_with(struct bench_run *r, int snapshot_count)
{
    struct pl_context *ctx =
        pl_context_new(&(struct pl_options){ .allocator = bench_allocator(r) });
    struct pl_arena arena;
    struct pl_buf text;

    if (r->quick)
        snapshot_count = QUICK_SNAPSHOT_COUNT;
    pl__arena_init(&arena, NULL, (size_t)1 << 20);
    pl__buf_init(&text, &arena, (size_t)1 << 30);
    stream_make(&text, snapshot_count);
    while (bench_next(r))
        stream_judge(ctx, pl__buf_str(&text), snapshot_count);
    bench_bytes(r, text.len);
    bench_per_item(r, "ns/snapshot", snapshot_count);
    bench_counter(r, "peak-heap-KiB", (double)r->heap.peak_bytes / 1024);
    pl_context_free(ctx);
    pl__arena_release(&arena);
}

static void stream_1000(struct bench_run *r)
{
    stream_with(r, 1000);
}

static void stream_10000(struct bench_run *r)
{
    stream_with(r, 10000);
}

static void stream_20000(struct bench_run *r)
{
    stream_with(r, 20000);
}

const struct bench stream_benches[] = {
    { "stream/snapshots:1000", stream_1000 },
    { "stream/snapshots:10000", stream_10000 },
    { "stream/snapshots:20000", stream_20000 },
    { NULL, NULL },
};
