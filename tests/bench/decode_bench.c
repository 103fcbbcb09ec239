/* How fast the input is read: a list of 3,000 Machines with managedFields, into typed structs. */
#include "bench.h"

#include "base/yaml.h"
#include "fleet.h"
#include "model/snapshot.h"

enum { MACHINE_COUNT = 3000, YAML_MACHINE_COUNT = 300, QUICK_MACHINE_COUNT = 30 };

enum form { COMPACT, INDENTED, YAML };

/* The input of a benchmark; lives in its arena. */
struct input {
    struct pl_arena arena;
    struct pl_buf text;
    int machine_count;
};

static void input_init(struct input *in, const struct bench_run *r, enum form form)
{
    struct pl_buf json;

    pl__arena_init(&in->arena, NULL, (size_t)1 << 20);
    in->machine_count = r->quick       ? QUICK_MACHINE_COUNT
                        : form == YAML ? YAML_MACHINE_COUNT
                                       : MACHINE_COUNT;
    pl__buf_init(&json, &in->arena, SIZE_MAX / 2);
    pl__buf_init(&in->text, &in->arena, SIZE_MAX / 2);
    fleet_machine_list(&json, in->machine_count);
    switch (form) {
    case COMPACT:
        in->text = json;
        break;
    case INDENTED:
        fleet_indent(&in->text, pl__buf_str(&json));
        break;
    case YAML:
        fleet_yaml(&in->text, pl__buf_str(&json));
        break;
    }
}

static void input_release(struct input *in)
{
    pl__arena_release(&in->arena);
}

static void read_json(struct pl_arena *arena, struct pl_str text, size_t machine_count)
{
    struct pl_snapshot *s = PL_NEW(arena, struct pl_snapshot, 1);
    struct pl_error *err = NULL;
    struct pl_json j;

    s->objects.count_max = machine_count;
    pl__json_init(&j, text, PL_STR("bench"), arena, 64, &err);
    if (pl__document_read(&j, DOCUMENT_OBJECTS, s) < 0 || !pl__json_at_end(&j))
        bench_fail("decode: %s", err ? err->message.ptr : "text left over");
    if (s->objects.machines.count != machine_count)
        bench_fail("decode: %u Machines", s->objects.machines.count);
}

static void decode_json(struct bench_run *r, enum form form, bool cold)
{
    struct pl_arena arena;
    struct input in;

    input_init(&in, r, form);
    pl__arena_init(&arena, bench_allocator(r), (size_t)1 << 20);
    while (bench_next(r)) {
        if (cold)
            pl__arena_release(&arena);
        else
            pl__arena_reset(&arena);
        read_json(&arena, pl__buf_str(&in.text), (size_t)in.machine_count);
    }
    bench_bytes(r, in.text.len);
    bench_counter(r, "MB", (double)in.text.len / 1e6);
    bench_counter(r, "bytes/Machine", (double)in.text.len / in.machine_count);
    pl__arena_release(&arena);
    input_release(&in);
}

static void decode_compact(struct bench_run *r)
{
    decode_json(r, COMPACT, false);
}

/* Each time with memory fresh from the system, as in a program that runs once. */
static void decode_compact_cold(struct bench_run *r)
{
    decode_json(r, COMPACT, true);
}

static void decode_indented(struct bench_run *r)
{
    decode_json(r, INDENTED, false);
}

static void decode_yaml(struct bench_run *r)
{
    struct pl_yaml_limits limits = { 64, (size_t)1 << 30 };
    struct pl_arena arena;
    struct input in;

    input_init(&in, r, YAML);
    pl__arena_init(&arena, bench_allocator(r), (size_t)1 << 20);
    while (bench_next(r)) {
        struct pl_position_map positions;
        struct pl_error *err = NULL;
        struct pl_str json;
        pl__arena_reset(&arena);
        if (pl__yaml_to_json(&arena, pl__buf_str(&in.text), PL_STR("bench"), limits, &json,
                             &positions, &err) < 0)
            bench_fail("yaml: %s", err->message.ptr);
        read_json(&arena, json, (size_t)in.machine_count);
    }
    bench_bytes(r, in.text.len);
    bench_counter(r, "MB", (double)in.text.len / 1e6);
    pl__arena_release(&arena);
    input_release(&in);
}

/* One pass of a skip over the whole text. */
static void skip_with(struct bench_run *r, struct pl_str text, int (*skip)(struct pl_json *))
{
    struct pl_arena arena;

    pl__arena_init(&arena, NULL, 0);
    while (bench_next(r)) {
        struct pl_json j;
        pl__json_init(&j, text, PL_STR("bench"), &arena, 64, NULL);
        if (skip(&j) < 0)
            bench_fail("skip failed");
        bench_use(j.at);
    }
    bench_bytes(r, text.len);
    pl__arena_release(&arena);
}

static void skip_checked(struct bench_run *r)
{
    struct input in;

    input_init(&in, r, COMPACT);
    skip_with(r, pl__buf_str(&in.text), pl__json_skip);
    input_release(&in);
}

/* managedFields and nothing else, as many as in the list, each as hot in cache as there. */
static void skip_managed_fields(struct bench_run *r)
{
    int count = r->quick ? QUICK_MACHINE_COUNT : MACHINE_COUNT;
    struct pl_arena arena;
    struct pl_buf text;

    pl__arena_init(&arena, NULL, (size_t)1 << 20);
    pl__buf_init(&text, &arena, SIZE_MAX / 2);
    pl__buf_add_char(&text, '[');
    for (int i = 0; i < count; i++) {
        if (i)
            pl__buf_add_char(&text, ',');
        fleet_managed_fields(&text, FLEET_WORKER);
    }
    pl__buf_add_char(&text, ']');
    skip_with(r, pl__buf_str(&text), pl__json_skip_fast);
    bench_counter(r, "bytes/Machine", (double)text.len / count);
    pl__arena_release(&arena);
}

/* What the memory gives: a sum over the same bytes, eight at a time. */
static void read_only(struct bench_run *r)
{
    struct input in;
    uint64_t sum = 0;

    input_init(&in, r, COMPACT);
    while (bench_next(r)) {
        for (size_t i = 0; i + sizeof sum <= in.text.len; i += sizeof sum) {
            uint64_t word;
            memcpy(&word, in.text.data + i, sizeof word);
            sum += word;
        }
        bench_use(&sum);
    }
    bench_bytes(r, in.text.len);
    input_release(&in);
}

const struct bench decode_benches[] = {
    { "decode/machines:3000/compact", decode_compact },
    { "decode/machines:3000/compact/cold", decode_compact_cold },
    { "decode/machines:3000/indented", decode_indented },
    { "decode/machines:300/yaml", decode_yaml },
    { "skip/managedFields", skip_managed_fields },
    { "skip/checked/compact", skip_checked },
    { "memory/read", read_only },
    { NULL, NULL },
};
