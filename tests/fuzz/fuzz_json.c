/* Any bytes into the JSON reader: a shape with every kind of field, both skips, and the writer.
 *
 * Holds for all input: nothing reads out of bounds (libFuzzer gives exact-size buffers), failing
 * sets an error, the fast skip takes what the validating one takes and ends at the same byte, and
 * a string that was read is written back as JSON that reads as the same string. */
#include <stdlib.h>

#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition) \
    do {                   \
        if (!(condition))  \
            abort();       \
    } while (0)

struct inner {
    struct pl_str name;
    int64_t number;
};

struct outer {
    struct pl_str text;
    bool flag;
    int64_t number;
    int64_t time_ms;
    bool has_a;
    struct pl_str deep;
    struct inner object;
    struct inner map;
    PL_LIST(struct inner) list;
    PL_LIST(struct pl_str) strings;
    struct pl_str custom;
};

static const struct pl_field inner_fields[] = {
    PL_FIELD("n", F_STR, struct inner, name),
    PL_FIELD("i", F_INT, struct inner, number),
};
static PL_SHAPE(inner_shape, struct inner, inner_fields);

static const struct pl_field map_fields[] = {
    PL_FIELD("a.b", F_STR, struct inner, name),
    PL_FIELD("i", F_INT, struct inner, number),
};
static PL_SHAPE(map_shape, struct inner, map_fields);

static bool keep_odd(void *item)
{
    return ((const struct inner *)item)->number % 2 != 0;
}
static const struct pl_shape list_shape = { inner_fields, 2, sizeof(struct inner), 8, keep_odd };

/* The last key of an object, or the text of a string. */
static int read_custom(struct pl_json *j, void *destination)
{
    struct pl_str key, *last = destination;
    int more;

    if (pl__json_peek(j) == JSON_STRING)
        return pl__json_string(j, last);
    for (more = pl__json_object(j); (more = pl__json_key(j, &key)) > 0;) {
        *last = pl__str_copy(j->arena, key);
        if (pl__json_skip(j) < 0)
            return -1;
    }
    return more;
}

static const struct pl_field outer_fields[] = {
    PL_FIELD("s", F_STR, struct outer, text),
    PL_FIELD("b", F_BOOL, struct outer, flag),
    PL_FIELD("i", F_INT, struct outer, number),
    PL_FIELD("t", F_TIME, struct outer, time_ms),
    PL_FIELD("a", F_PRESENT, struct outer, has_a),
    PL_FIELD("a.b.c", F_STR, struct outer, deep),
    PL_FIELD_SHAPE("a.o", F_OBJECT, struct outer, object, &inner_shape),
    PL_FIELD_SHAPE("m", F_MAP, struct outer, map, &map_shape),
    PL_FIELD_SHAPE("l", F_LIST, struct outer, list, &list_shape),
    PL_FIELD("w", F_STRINGS, struct outer, strings),
    PL_FIELD_CUSTOM("c", struct outer, custom, read_custom),
    PL_FIELD_SKIP("f"),
};
static PL_SHAPE(outer_shape, struct outer, outer_fields);

enum { DEPTH_MAX = 12 };

static void check_skips(struct pl_arena *arena, struct pl_str text)
{
    struct pl_error *err = NULL;
    struct pl_json strict, fast;

    pl__json_init(&strict, text, PL_STR("fuzz"), arena, DEPTH_MAX, &err);
    pl__json_init(&fast, text, PL_STR("fuzz"), arena, DEPTH_MAX, NULL);
    if (pl__json_skip(&strict) < 0) {
        REQUIRE(err && err->message.len);
        pl__json_skip_fast(&fast);
        return;
    }
    REQUIRE(!err && strict.depth == 0);
    REQUIRE(pl__json_skip_fast(&fast) == 0);
    REQUIRE(fast.at == strict.at);
}

static void check_written(struct pl_arena *arena, struct pl_str s, enum pl_json_format format)
{
    struct pl_json_writer w;
    struct pl_buf out;
    struct pl_str back;
    struct pl_json j;

    pl__buf_init(&out, arena, (size_t)1 << 24);
    pl__json_writer_init(&w, &out, format);
    pl__json_write_str(&w, s);
    if (format == JSON_AS_YAML)
        return;
    pl__json_init(&j, pl__buf_str(&out), PL_STR("written"), arena, 1, NULL);
    REQUIRE(pl__json_string(&j, &back) == 0 && pl__json_at_end(&j));
    REQUIRE(pl__str_equal(s, back));
}

/* Bytes of any kind come out as valid JSON, which reads back as what it says. */
static void check_any_written(struct pl_arena *arena, struct pl_str bytes)
{
    struct pl_json_writer w;
    struct pl_buf out;
    struct pl_str cleaned;
    struct pl_json j;

    pl__buf_init(&out, arena, (size_t)1 << 24);
    pl__json_writer_init(&w, &out, JSON_COMPACT);
    pl__json_write_str(&w, bytes);
    pl__json_init(&j, pl__buf_str(&out), PL_STR("written"), arena, 1, NULL);
    REQUIRE(pl__json_string(&j, &cleaned) == 0 && pl__json_at_end(&j));
    check_written(arena, cleaned, JSON_COMPACT);
    check_written(arena, bytes, JSON_AS_YAML);
}

static void check_decode(struct pl_arena *arena, struct pl_str text)
{
    struct pl_error *err = NULL;
    struct pl_json j;

    pl__json_init(&j, text, PL_STR("fuzz"), arena, DEPTH_MAX, &err);
    while (!pl__json_at_end(&j)) {
        struct outer o = { 0 };
        const char *before = j.at;
        if (pl__json_decode(&j, &outer_shape, &o) < 0) {
            REQUIRE(err && err->message.len);
            REQUIRE(pl__json_at_end(&j) && !j.path);
            return;
        }
        REQUIRE(!err && j.at > before && j.depth == 0 && !j.path);
        REQUIRE(o.list.count <= 8);
        if (o.text.ptr)
            REQUIRE(o.text.ptr[o.text.len] == '\0');
        check_written(arena, o.text, JSON_COMPACT);
        check_written(arena, o.text, JSON_AS_YAML);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pl_str text = { (const char *)data, size };
    struct pl_arena arena;

    pl__arena_init(&arena, NULL, 4096);
    check_skips(&arena, text);
    check_decode(&arena, text);
    check_any_written(&arena, text);
    pl__arena_release(&arena);
    return 0;
}
