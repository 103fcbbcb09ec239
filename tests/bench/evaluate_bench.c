/* One healthy control plane of three Machines: how long judging it takes. */
#include "bench.h"

#include "core/evaluate.h"
#include "fleet.h"

/* A snapshot as text, and read and settled. */
struct world {
    struct pl_arena arena;
    struct pl_buf text;
    struct pl_snapshot snapshot;
};

static void snapshot_read(struct pl_snapshot *s, struct pl_str text, struct pl_arena *arena)
{
    struct pl_error *err = NULL;
    struct pl_json j;

    memset(s, 0, sizeof *s);
    s->objects.count_max = 1000;
    pl__json_init(&j, text, PL_STR("bench"), arena, 64, &err);
    if (pl__document_read(&j, DOCUMENT_SNAPSHOT, s) < 0 ||
        pl__snapshot_settle(s, arena, 0, 0, &err) < 0)
        bench_fail("snapshot: %s", err->message.ptr);
}

static void world_init(struct world *w)
{
    pl__arena_init(&w->arena, NULL, 0);
    pl__buf_init(&w->text, &w->arena, SIZE_MAX / 2);
    fleet_snapshot(&w->text, 0);
    snapshot_read(&w->snapshot, pl__buf_str(&w->text), &w->arena);
}

static void check_healthy(const struct pl_report *report)
{
    if (!report || report->object_count != 4 || report->has_findings || report->missing_count)
        bench_fail("evaluate: not the report of a healthy control plane");
}

static void evaluate_with(struct bench_run *r, struct pl_evaluate_options options)
{
    const struct pl_report *report = NULL;
    struct pl_error *err = NULL;
    struct pl_arena arena;
    struct world w;

    world_init(&w);
    pl__arena_init(&arena, bench_allocator(r), 0);
    while (bench_next(r)) {
        pl__arena_reset(&arena);
        if (pl__evaluate(&w.snapshot, options, &arena, &report, &err) < 0)
            bench_fail("evaluate: %s", err->message.ptr);
        bench_use(report);
    }
    check_healthy(report);
    bench_counter(r, "arena-bytes", (double)arena.used_bytes);
    pl__arena_release(&arena);
    pl__arena_release(&w.arena);
}

static void evaluate_tables(struct bench_run *r)
{
    evaluate_with(r, (struct pl_evaluate_options){ PL_PROFILE_TABLES, false });
}

static void evaluate_cluster_api(struct bench_run *r)
{
    evaluate_with(r, (struct pl_evaluate_options){ PL_PROFILE_CLUSTER_API_1_12, false });
}

static void evaluate_explain(struct bench_run *r)
{
    evaluate_with(r, (struct pl_evaluate_options){ PL_PROFILE_TABLES, true });
}

static void decode_and_settle(struct bench_run *r)
{
    struct pl_snapshot snapshot;
    struct pl_arena arena;
    struct world w;

    world_init(&w);
    pl__arena_init(&arena, bench_allocator(r), 0);
    while (bench_next(r)) {
        pl__arena_reset(&arena);
        snapshot_read(&snapshot, pl__buf_str(&w.text), &arena);
    }
    bench_bytes(r, w.text.len);
    pl__arena_release(&arena);
    pl__arena_release(&w.arena);
}

/* All that an embedder pays for: bytes in, report (and its JSON) out. */
static void end_to_end_with(struct bench_run *r, bool explain, bool json)
{
    struct pl_context *ctx =
        pl_context_new(&(struct pl_options){ .explain = explain, .allocator = bench_allocator(r) });
    const struct pl_report *report = NULL;
    struct world w;

    world_init(&w);
    while (bench_next(r)) {
        if (pl_context_add(ctx, "bench", w.text.data, w.text.len) < 0 ||
            pl_context_next(ctx, &report) <= 0)
            bench_fail("end to end: %s", pl_context_error(ctx));
        bench_use(json ? pl_report_json(ctx, report).ptr : (const char *)report);
        pl_context_clear(ctx);
    }
    bench_bytes(r, w.text.len);
    pl_context_free(ctx);
    pl__arena_release(&w.arena);
}

static void end_to_end(struct bench_run *r)
{
    end_to_end_with(r, false, false);
}

static void end_to_end_json(struct bench_run *r)
{
    end_to_end_with(r, false, true);
}

static void end_to_end_explain_json(struct bench_run *r)
{
    end_to_end_with(r, true, true);
}

const struct bench evaluate_benches[] = {
    { "evaluate/healthy:3/tables", evaluate_tables },
    { "evaluate/healthy:3/cluster-api-1.12", evaluate_cluster_api },
    { "evaluate/healthy:3/tables/explain", evaluate_explain },
    { "decode+settle/healthy:3", decode_and_settle },
    { "decode+evaluate/healthy:3", end_to_end },
    { "decode+evaluate+json/healthy:3", end_to_end_json },
    { "decode+evaluate+json/healthy:3/explain", end_to_end_explain_json },
    { NULL, NULL },
};
