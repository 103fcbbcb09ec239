/* Any bytes through the whole library, as an embedder uses it: both profiles, with explanation.
 *
 * Holds for all input: either an error with a code and a text, or reports that name a row for every
 * condition and whose JSON our own reader takes; what-if about the first Machine answers or says why
 * not; and the same input gives the same bytes, also in a context that was used before. */
#include <stdlib.h>

#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition) \
    do {                   \
        if (!(condition))  \
            abort();       \
    } while (0)

enum { REPORTS_MAX = 8 };

static uint64_t hash_add(uint64_t hash, struct pl_str s)
{
    for (size_t i = 0; i < s.len; i++)
        hash = (hash ^ (unsigned char)s.ptr[i]) * 1099511628211u;
    return hash;
}

static void verdicts_check(const struct pl_object *o)
{
    for (size_t i = 0; i < o->verdict_count; i++) {
        const struct pl_verdict *v = &o->verdicts[i];
        REQUIRE(v->status != PL_STATUS_NONE && v->row && *v->row);
        REQUIRE(i == 0 || strcmp(o->verdicts[i - 1].type, v->type) < 0);
        for (size_t e = 0; e < v->evidence_count; e++)
            REQUIRE(v->evidence[e].object.len && v->evidence[e].path.len);
    }
}

static void json_check(struct pl_str json)
{
    struct pl_error *err = NULL;
    struct pl_arena arena;
    struct pl_json j;

    REQUIRE(json.ptr[json.len] == '\0');
    pl__arena_init(&arena, NULL, 4096);
    pl__json_init(&j, json, PL_STR("report"), &arena, 16, &err);
    REQUIRE(pl__json_skip(&j) == 0 && pl__json_at_end(&j));
    pl__arena_release(&arena);
}

static void what_if_check(struct pl_context *ctx, const struct pl_report *report)
{
    const struct pl_what_if *answer = NULL;
    const struct pl_object *machine = NULL;

    for (size_t i = 0; i < report->object_count && !machine; i++) {
        if (strcmp(report->objects[i].kind, "Machine") == 0)
            machine = &report->objects[i];
    }
    if (!machine)
        return;
    if (pl_what_if_remove(ctx, machine->name.ptr, &answer) < 0) {
        REQUIRE(pl_context_error_code(ctx) != PL_OK && *pl_context_error(ctx));
        return;
    }
    REQUIRE(answer->after.members <= answer->before.members);
    REQUIRE(answer->after.voters <= answer->before.voters);
    REQUIRE(answer->rules[0].row && answer->rules[1].row);
}

/* Judges all of it; a hash of everything that was said. */
static uint64_t judge(struct pl_context *ctx, const uint8_t *data, size_t size)
{
    const struct pl_report *report = NULL;
    uint64_t hash = 14695981039346656037u;
    int got, count = 0;

    REQUIRE(pl_context_add(ctx, "fuzz", data, size) == 0);
    while (count++ < REPORTS_MAX && (got = pl_context_next(ctx, &report)) != 0) {
        if (got < 0) {
            REQUIRE(pl_context_error_code(ctx) != PL_OK);
            hash = hash_add(hash, pl__str(pl_context_error(ctx)));
            REQUIRE(pl_context_next(ctx, &report) == 0);
            break;
        }
        for (size_t i = 0; i < report->object_count; i++)
            verdicts_check(&report->objects[i]);
        struct pl_str json = pl_report_json(ctx, report);
        json_check(json);
        hash = hash_add(hash, json);
        what_if_check(ctx, report);
    }
    return hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int profile = 0; profile < PL_PROFILE_COUNT; profile++) {
        struct pl_context *ctx = pl_context_new(&(struct pl_options){
            .profile = (enum pl_profile)profile,
            .explain = true,
            .clock_ms = 1794700800000,
            .objects_max = 200,
        });
        uint64_t hash = judge(ctx, data, size);
        pl_context_clear(ctx);
        REQUIRE(judge(ctx, data, size) == hash);
        pl_context_free(ctx);
    }
    return 0;
}
