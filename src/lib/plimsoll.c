/* lib/plimsoll.c - the public library: contexts around the pure core. */
#include "plimsoll.h"

#include <stdlib.h>

#include "base/json.h"
#include "base/yaml.h"
#include "core/evaluate.h"
#include "core/plan.h"
#include "lib/context.h"
#include "tables/tables.h"

#ifndef PL_VERSION
#define PL_VERSION "0.0.0"
#endif

enum { DEPTH_MAX_DEFAULT = 64, OBJECTS_MAX_DEFAULT = 1000000 };
static const size_t bytes_max_default = (size_t)1 << 30;

/* One input, borrowed from the caller. */
struct source {
    struct source *next;
    struct pl_str name;
    struct pl_str text;
    bool opened;
    struct pl_json json;
    struct pl_position_map positions;
};

struct pl_context {
    struct pl_options options;
    struct pl_arena inputs;  /* sources, and JSON made from YAML; until all is read */
    struct pl_arena loose;   /* objects outside any Snapshot; until all is read */
    struct pl_arena work;    /* one snapshot and its report */
    struct pl_arena failure; /* the last error */
    struct source *first, *last;
    struct pl_snapshot loose_objects;
    const struct source *loose_last; /* the source that gave the last of them */
    size_t loose_source_count;
    bool has_loose;
    struct pl_snapshot *judged; /* the snapshot of the last report */
    struct pl_error *error;
    struct pl_str error_text;
};

const char *pl_version(void)
{
    return PL_VERSION;
}

static const char *const profile_names[PL_PROFILE_COUNT] = {
    [PL_PROFILE_TABLES] = "tables",
    [PL_PROFILE_CLUSTER_API_1_12] = "cluster-api-1.12",
};

const char *pl_profile_name(enum pl_profile profile)
{
    return profile_names[profile];
}

int pl_profile_from_name(const char *name, enum pl_profile *profile)
{
    for (int i = 0; i < PL_PROFILE_COUNT; i++) {
        if (strcmp(name, profile_names[i]) == 0) {
            *profile = (enum pl_profile)i;
            return 0;
        }
    }
    return -1;
}

const char *pl_status_name(enum pl_status status)
{
    static const char *const names[] = { [PL_STATUS_NONE] = "",
                                         [PL_STATUS_TRUE] = "True",
                                         [PL_STATUS_FALSE] = "False",
                                         [PL_STATUS_UNKNOWN] = "Unknown" };
    return names[status];
}

/* --- contexts -------------------------------------------------------------------------------- */

struct pl_context *pl_context_new(const struct pl_options *options)
{
    static const struct pl_options defaults = { 0 };
    const struct pl_options *o = options ? options : &defaults;
    struct pl_context *ctx =
        o->allocator ? o->allocator->alloc(o->allocator->user, sizeof *ctx) : malloc(sizeof *ctx);

    if (!ctx)
        abort();
    memset(ctx, 0, sizeof *ctx);
    ctx->options = *o;
    if (!ctx->options.depth_max)
        ctx->options.depth_max = DEPTH_MAX_DEFAULT;
    if (!ctx->options.bytes_max)
        ctx->options.bytes_max = bytes_max_default;
    if (!ctx->options.objects_max)
        ctx->options.objects_max = OBJECTS_MAX_DEFAULT;
    pl__arena_init(&ctx->inputs, o->allocator, 4096);
    pl__arena_init(&ctx->loose, o->allocator, 0);
    pl__arena_init(&ctx->work, o->allocator, 0);
    pl__arena_init(&ctx->failure, o->allocator, 4096);
    ctx->loose_objects.objects.count_max = ctx->options.objects_max;
    return ctx;
}

void pl_context_free(struct pl_context *ctx)
{
    if (!ctx)
        return;
    const struct pl_allocator *allocator = ctx->options.allocator;

    pl__arena_release(&ctx->inputs);
    pl__arena_release(&ctx->loose);
    pl__arena_release(&ctx->work);
    pl__arena_release(&ctx->failure);
    if (allocator)
        allocator->free(allocator->user, ctx, sizeof *ctx);
    else
        free(ctx);
}

static void input_forget(struct pl_context *ctx)
{
    pl__arena_reset(&ctx->inputs);
    pl__arena_reset(&ctx->loose);
    ctx->first = ctx->last = NULL;
    memset(&ctx->loose_objects, 0, sizeof ctx->loose_objects);
    ctx->loose_objects.objects.count_max = ctx->options.objects_max;
    ctx->has_loose = false;
}

void pl_context_clear(struct pl_context *ctx)
{
    input_forget(ctx);
    pl__arena_reset(&ctx->work);
    pl__arena_reset(&ctx->failure);
    ctx->judged = NULL;
    ctx->error = NULL;
    ctx->error_text = (struct pl_str){ 0 };
}

const char *pl_context_error(const struct pl_context *ctx)
{
    return ctx->error_text.ptr ? ctx->error_text.ptr : "";
}

enum pl_code pl_context_error_code(const struct pl_context *ctx)
{
    return ctx->error ? ctx->error->code : PL_OK;
}

/* Keeps a failure beyond the arena it arose in, which may be that of failures; returns -1. */
static int failed(struct pl_context *ctx, const struct pl_error *e)
{
    struct pl_arena *a = &ctx->failure;
    struct pl_str text = pl__error_text(&ctx->work, e);
    enum pl_code code = e->code;

    pl__arena_reset(a);
    ctx->error_text = pl__str_copy(a, text);
    ctx->error = PL_NEW(a, struct pl_error, 1);
    ctx->error->code = code;
    ctx->error->message = ctx->error_text;
    return -1;
}

/* --- reading --------------------------------------------------------------------------------- */

int pl_context_add(struct pl_context *ctx, const char *name, const void *bytes, size_t size)
{
    struct pl_error *e = NULL;

    if (size > ctx->options.bytes_max) {
        pl__error(&ctx->failure, &e, PL_LIMIT, "%s: %zu bytes, at most %zu can be read", name, size,
                  ctx->options.bytes_max);
        return failed(ctx, e);
    }
    struct source *s = PL_NEW(&ctx->inputs, struct source, 1);
    s->name = pl__str_copy(&ctx->inputs, pl__str(name));
    s->text = (struct pl_str){ bytes, size };
    if (ctx->last)
        ctx->last->next = s;
    else
        ctx->first = s;
    ctx->last = s;
    return 0;
}

/* JSON starts with a brace or a bracket; everything else is YAML, of which JSON is nearly a part. */
static bool looks_like_json(struct pl_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (!strchr(" \t\r\n", text.ptr[i]) || text.ptr[i] == '\0')
            return text.ptr[i] == '{' || text.ptr[i] == '[';
    }
    return true;
}

static int source_open(struct pl_context *ctx, struct source *s, struct pl_error **err)
{
    struct pl_str text = s->text;

    s->opened = true;
    if (!looks_like_json(text)) {
        struct pl_yaml_limits limits = { ctx->options.depth_max, ctx->options.bytes_max };
        if (pl__yaml_to_json(&ctx->inputs, s->text, s->name, limits, &text, &s->positions, err) < 0)
            return -1;
    }
    pl__json_init(&s->json, text, s->name, &ctx->work, ctx->options.depth_max, err);
    if (text.ptr != s->text.ptr)
        s->json.positions = &s->positions;
    return 0;
}

/* Adds the objects of one document to those that stand outside any Snapshot. */
static int loose_read(struct pl_context *ctx, struct source *s)
{
    if (!ctx->has_loose) {
        ctx->loose_objects.source = pl__str_copy(&ctx->loose, s->name);
        ctx->loose_last = s;
        ctx->loose_source_count = 1;
    }
    ctx->has_loose = true;
    ctx->loose_source_count += ctx->loose_last != s;
    ctx->loose_last = s;
    s->json.arena = &ctx->loose;
    return pl__document_read(&s->json, DOCUMENT_OBJECTS, &ctx->loose_objects);
}

/* Reads documents until one is a Snapshot: 1. 0 when the sources are used up. */
static int next_snapshot(struct pl_context *ctx, struct pl_snapshot *snapshot,
                         struct pl_error **err)
{
    for (; ctx->first; ctx->first = ctx->first->next) {
        struct source *s = ctx->first;
        if (!s->opened && source_open(ctx, s, err) < 0)
            return -1;
        s->json.err = err;
        while (!pl__json_at_end(&s->json)) {
            s->json.arena = &ctx->work;
            int document = pl__document_peek(&s->json);
            if (document < 0)
                return -1;
            if (document == DOCUMENT_OBJECTS) {
                if (loose_read(ctx, s) < 0)
                    return -1;
                continue;
            }
            snapshot->source = s->name;
            return pl__document_read(&s->json, (enum pl_document)document, snapshot) < 0 ? -1 : 1;
        }
    }
    ctx->last = NULL;
    return 0;
}

static int judge(struct pl_context *ctx, struct pl_snapshot *snapshot,
                 const struct pl_report **report, struct pl_error **err)
{
    struct pl_evaluate_options options = { ctx->options.profile, ctx->options.explain };

    if (pl__snapshot_settle(snapshot, &ctx->work, ctx->options.now_ms, ctx->options.clock_ms, err) <
        0)
        return -1;
    ctx->judged = snapshot;
    return pl__evaluate(snapshot, options, &ctx->work, report, err) < 0 ? -1 : 1;
}

int pl_context_next(struct pl_context *ctx, const struct pl_report **report)
{
    struct pl_error *e = NULL;

    pl__arena_reset(&ctx->work);
    ctx->judged = NULL;
    struct pl_snapshot *snapshot = PL_NEW(&ctx->work, struct pl_snapshot, 1);
    snapshot->objects.count_max = ctx->options.objects_max;
    int got = next_snapshot(ctx, snapshot, &e);
    if (got == 0 && ctx->has_loose) {
        *snapshot = ctx->loose_objects;
        if (ctx->loose_source_count > 1)
            snapshot->source =
                pl__str_format(&ctx->work, "%.*s (and %zu more)", PL_STR_ARG(snapshot->source),
                               ctx->loose_source_count - 1);
        ctx->has_loose = false;
        got = 1;
    }
    if (got > 0)
        got = judge(ctx, snapshot, report, &e);
    if (got < 0)
        failed(ctx, e);
    if (got <= 0)
        input_forget(ctx);
    return got;
}

const struct pl_snapshot *pl__context_snapshot(const struct pl_context *ctx)
{
    return ctx->judged;
}

/* --- answers --------------------------------------------------------------------------------- */

struct pl_str pl_report_json(struct pl_context *ctx, const struct pl_report *report)
{
    struct pl_buf text;
    struct pl_json_writer w;

    pl__buf_init(&text, &ctx->work, SIZE_MAX);
    pl__json_writer_init(&w, &text, JSON_COMPACT);
    pl__report_write(&w, report);
    return pl__buf_str(&text);
}

int pl_what_if_remove(struct pl_context *ctx, const char *machine, const struct pl_what_if **answer)
{
    struct pl_evaluate_options options = { ctx->options.profile, ctx->options.explain };
    struct pl_error *e = NULL;

    if (!ctx->judged) {
        pl__error(&ctx->work, &e, PL_USAGE, "no snapshot has been judged");
        return failed(ctx, e);
    }
    if (pl__what_if_remove(ctx->judged, options, pl__str(machine), &ctx->work, answer, &e) < 0)
        return failed(ctx, e);
    return 0;
}

static const struct pl_next_step *plan_of(const struct pl_plans *plans, struct pl_str wanted)
{
    for (size_t i = 0; i < plans->count; i++) {
        const struct pl_next_step *shown = &plans->items[i].shown;
        struct pl_str namespace_ = shown->namespace_;
        if (wanted.len == namespace_.len + 1 + shown->name.len &&
            pl__str_starts_with(wanted, namespace_) && wanted.ptr[namespace_.len] == '/' &&
            pl__str_ends_with(wanted, shown->name))
            return shown;
    }
    return NULL;
}

int pl_plan(struct pl_context *ctx, const char *control_plane, const struct pl_next_step **answer)
{
    struct pl_plans plans = { .etcd_stale = false };
    struct pl_evaluate_options options = { .profile = ctx->options.profile, .plans = &plans };
    const struct pl_report *report = NULL;
    struct pl_error *e = NULL;

    if (!ctx->judged) {
        pl__error(&ctx->work, &e, PL_USAGE, "no snapshot has been judged");
        return failed(ctx, e);
    }
    if (pl__evaluate(ctx->judged, options, &ctx->work, &report, &e) < 0)
        return failed(ctx, e);
    *answer = plan_of(&plans, pl__str(control_plane));
    if (!*answer) {
        pl__error(&ctx->work, &e, PL_NOT_FOUND, "no KubeadmControlPlane %s in the snapshot",
                  control_plane);
        return failed(ctx, e);
    }
    return 0;
}

/* --- tables ---------------------------------------------------------------------------------- */

size_t pl_table_count(void)
{
    return pl__table_count;
}

/* Rows of the table in front, but for the one that passes on to this table. */
static size_t front_count(const struct pl_table *t)
{
    return t->front ? t->front->rule_count - 1 : 0;
}

struct pl_table_info pl_table_info(size_t table_index)
{
    const struct pl_table *t = pl__tables[table_index];

    return (struct pl_table_info){ .name = t->name,
                                   .kind = t->kind,
                                   .summary = t->summary,
                                   .row_count = front_count(t) + t->rule_count };
}

struct pl_row pl_table_row(size_t table_index, size_t row_index)
{
    static const char *const next[] = { [NEXT_NONE] = "none",
                                        [NEXT_ERROR] = "requeue (error)",
                                        [NEXT_30S] = "requeue after 30s",
                                        [NEXT_15S] = "requeue after 15s" };
    static const char *const mode[] = {
        [OVERWRITE] = "overwrite", [KEEP_IF_SET] = "keep if set", [LEAVE] = "leave"
    };
    const struct pl_table *t = pl__tables[table_index];
    bool front = row_index < front_count(t);
    const struct pl_rule *rule =
        front ? &t->front->rules[row_index] : &t->rules[row_index - front_count(t)];
    struct pl_row row = { .id = front ? t->front_ids[row_index] : rule->id,
                          .guard = rule->when,
                          .next = next[rule->next],
                          .mode = mode[rule->mode] };

    for (int i = 0; i < PL_PROFILE_COUNT; i++) {
        bool here = rule->profiles == EVERY_PROFILE || (rule->profiles & 1u << i);
        row.outcome[i] = (struct pl_row_outcome){
            .status = here ? pl_status_name(rule->says[i].status) : "",
            .reason = here ? rule->says[i].reason : "",
            .message = here ? rule->says[i].message : "",
        };
    }
    return row;
}
