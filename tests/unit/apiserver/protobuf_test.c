/* Bodies as kubectl 1.32 sent them, and broken ones. */
#include "test.h"

#include "apiserver/protobuf.h"
#include "apiserver/tree.h"

#define BYTES(literal)               \
    {                                \
        literal, sizeof(literal) - 1 \
    }
#define TYPED(size, kind_size, kind) "k8s\0\x0a" size "\x0a\x02v1\x12" kind_size kind
#define SECRET TYPED("\x0c", "\x06", "Secret")

static const struct {
    const char *name;
    struct pl_str body;
    const char *json; /* NULL: refused */
} cases[] = {
    { "kubectl create namespace foo",
      BYTES(TYPED("\x0f", "\x09",
                  "Namespace") "\x12\x1b\x0a\x13\x0a\x03"
                               "foo\x12\0\x1a\0\x22\0\x2a\0\x32\0\x38\0\x42\0\x12\0\x1a\x02\x0a\0"
                               "\x1a\0\x22\0"),
      "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"foo\"},\"spec\":{},"
      "\"status\":{}}" },
    { "bytes become base64, times text",
      BYTES(SECRET "\x12\x1f\x0a\x0d\x0a\x01s\x42\x06\x08\x80\x92\xb8\xc3\x06\x38\0\x12\x06\x0a\x01"
                   "k\x12\x01v\x1a\x06Opaque"),
      "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":\"s\","
      "\"creationTimestamp\":"
      "\"2025-07-09T06:15:28Z\"},\"data\":{\"k\":\"dg==\"},\"type\":\"Opaque\"}" },
    { "labels and a flag",
      BYTES(TYPED("\x0f", "\x09", "ConfigMap") "\x12\x0e\x0a\x0a\x5a\x08\x0a\x01"
                                               "a\x12\x03xyz\x20\x01"),
      "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"labels\":{\"a\":\"xyz\"}},"
      "\"immutable\":true}" },
    { "how to delete",
      BYTES(TYPED("\x13", "\x0d", "DeleteOptions") "\x12\x07\x08\0\x12\x03\x0a\x01u"),
      "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"gracePeriodSeconds\":0,"
      "\"preconditions\":{\"uid\":\"u\"}}" },
    { "a key twice",
      BYTES(TYPED("\x0f", "\x09", "ConfigMap") "\x12\x0a\x12\x03\x0a\x01"
                                               "a\x12\x03\x0a\x01"
                                               "a"),
      NULL },
    { "nothing", BYTES(""), NULL },
    { "JSON", BYTES("{\"kind\":\"Secret\"}"), NULL },
    { "no type", BYTES("k8s\0"), NULL },
    { "another kind", BYTES(TYPED("\x09", "\x03", "Pod") "\x12\0"), NULL },
    { "cut short", BYTES(SECRET "\x12\x05\x0a\x0d"), NULL },
    { "a length past the end", BYTES(SECRET "\x12\x02\x1a\x7f"), NULL },
    { "an endless number", BYTES(SECRET "\x12\x0b\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
      NULL },
    { "an unknown field", BYTES(SECRET "\x12\x02\x7a\0"), NULL },
    { "a number for a text", BYTES(SECRET "\x12\x02\x18\x01"), NULL },
    { "a text for a flag", BYTES(SECRET "\x12\x02\x2a\0"), NULL },
    { "a group, which nobody uses", BYTES(SECRET "\x12\x01\x0b"), NULL },
};

/* A ConfigMap with so many entries in its data. */
static struct pl_str config_map(struct pl_arena *arena, int entries)
{
    struct pl_buf data, body;

    pl__buf_init(&data, arena, SIZE_MAX / 2);
    for (int i = 0; i < entries; i++)
        pl__buf_printf(&data, "\x12\x08\x0a\x06%06d", i);
    pl__buf_init(&body, arena, SIZE_MAX / 2);
    pl__buf_add(&body, (struct pl_str)BYTES(TYPED("\x0f", "\x09", "ConfigMap") "\x12"));
    size_t len = data.len;
    for (; len >= 128; len >>= 7)
        pl__buf_add_char(&body, (char)((len & 127) | 128));
    pl__buf_add_char(&body, (char)len);
    pl__buf_add(&body, pl__buf_str(&data));
    return pl__buf_str(&body);
}

static void test_entries(struct pl_arena *arena)
{
    struct pl_str json;

    CASE("as many entries as a map may have, and more");
    CHECK(pl__protobuf_to_json(arena, config_map(arena, PL_OBJECT_MEMBERS_MAX), &json));
    CHECK(pl__tree_read(arena, json, NULL));
    CHECK(!pl__protobuf_to_json(arena, config_map(arena, PL_OBJECT_MEMBERS_MAX + 1), &json));
}

int main(void)
{
    struct pl_arena arena;

    pl__arena_init(&arena, NULL, 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pl_str json = { 0 };
        CASE("%s", cases[i].name);
        CHECK(pl__protobuf_to_json(&arena, cases[i].body, &json) == (cases[i].json != NULL));
        CHECK_STR(json, cases[i].json);
        for (size_t len = 0; len < cases[i].body.len;
             len++) /* no read past the end, for the sanitizers */
            (void)pl__protobuf_to_json(
                &arena, pl__str_copy(&arena, (struct pl_str){ cases[i].body.ptr, len }), &json);
    }
    test_entries(&arena);
    pl__arena_release(&arena);
    return test_end("protobuf");
}
