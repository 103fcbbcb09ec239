/* Writing JSON and YAML: what it looks like, and that JSON reads back as what was written. */
#include "guarded.h"

#include "test.h"

#include "base/json.h"
#include "base/time.h"

static struct pl_arena arena;
static struct pl_buf out;

static void writer_start(struct pl_json_writer *w, enum pl_json_format format)
{
    pl__buf_clear(&out);
    pl__json_writer_init(w, &out, format);
}

static struct pl_str write_one(struct pl_str s, enum pl_json_format format)
{
    struct pl_json_writer w;

    writer_start(&w, format);
    pl__json_write_str(&w, s);
    return pl__buf_str(&out);
}

/* --- strings ----------------------------------------------------------------------------------- */

struct string_row {
    struct pl_str text;
    const char *json;
    const char *yaml;
};

#define ROW(text_, json_, yaml_)         \
    {                                    \
        PL_STR_INIT(text_), json_, yaml_ \
    }

/* clang-format off */
static const struct string_row string_rows[] = {
    ROW("",              "\"\"",                 "\"\""),
    ROW("abc",           "\"abc\"",              "abc"),
    ROW("two words",     "\"two words\"",        "two words"),
    ROW("\"\\",          "\"\\\"\\\\\"",         "\"\\\"\\\\\""),
    ROW("a\"b\\c",       "\"a\\\"b\\\\c\"",      "a\"b\\c"),
    ROW("/",             "\"/\"",                "/"),
    ROW("\b\f\n\r\t",    "\"\\b\\f\\n\\r\\t\"",  "\"\\b\\f\\n\\r\\t\""),
    ROW("\x01\x1f",      "\"\\u0001\\u001f\"",   "\"\\u0001\\u001f\""),
    ROW("a\0b",          "\"a\\u0000b\"",        "\"a\\u0000b\""),
    ROW("\x7f",          "\"\x7f\"",             "\"\\u007f\""),
    ROW("a\x7f" "bc\x7f\x7f", "\"a\x7f" "bc\x7f\x7f\"", "\"a\\u007fbc\\u007f\\u007f\""),
    ROW("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"),
    ROW("\xc2\x85",      "\"\xc2\x85\"",         "\"\\u0085\""),
    ROW("\xe2\x80\xa8",  "\"\xe2\x80\xa8\"",     "\"\\u2028\""),
    ROW("\xef\xbb\xbfx", "\"\xef\xbb\xbfx\"",    "\"\\ufeffx\""),
    /* never invalid UTF-8: a U+FFFD for each byte that is none */
    ROW("\xff",          "\"\xef\xbf\xbd\"",     "\"\xef\xbf\xbd\""),
    ROW("a\x80z",        "\"a\xef\xbf\xbdz\"",   "\"a\xef\xbf\xbdz\""),
    ROW("\xc3",          "\"\xef\xbf\xbd\"",     "\"\xef\xbf\xbd\""),
    ROW("\xc0\x80",      "\"\xef\xbf\xbd\xef\xbf\xbd\"", "\"\xef\xbf\xbd\xef\xbf\xbd\""),
    ROW("\xed\xa0\x80",  "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""),
    /* what YAML would read as something else */
    ROW("null", "\"null\"", "\"null\""), ROW("Null", "\"Null\"", "\"Null\""), ROW("~", "\"~\"", "\"~\""),
    ROW("true", "\"true\"", "\"true\""), ROW("FALSE", "\"FALSE\"", "\"FALSE\""),
    ROW("yes", "\"yes\"", "\"yes\""), ROW("No", "\"No\"", "\"No\""), ROW("on", "\"on\"", "\"on\""),
    ROW("OFF", "\"OFF\"", "\"OFF\""), ROW("y", "\"y\"", "\"y\""), ROW("N", "\"N\"", "\"N\""),
    ROW("truely", "\"truely\"", "truely"), ROW("nullable", "\"nullable\"", "nullable"),
    ROW("0", "\"0\"", "\"0\""), ROW("12", "\"12\"", "\"12\""), ROW("-1", "\"-1\"", "\"-1\""),
    ROW("+1", "\"+1\"", "\"+1\""), ROW(".5", "\".5\"", "\".5\""), ROW("1.5", "\"1.5\"", "\"1.5\""),
    ROW("1e3", "\"1e3\"", "\"1e3\""), ROW("0x1F", "\"0x1F\"", "\"0x1F\""), ROW("0o17", "\"0o17\"", "\"0o17\""),
    ROW("1_000", "\"1_000\"", "\"1_000\""), ROW("12:30:45", "\"12:30:45\"", "\"12:30:45\""),
    ROW(".inf", "\".inf\"", "\".inf\""), ROW(".NaN", "\".NaN\"", "\".NaN\""),
    ROW("2026-11-15", "\"2026-11-15\"", "\"2026-11-15\""),
    ROW("2026-11-15T02:00:00Z", "\"2026-11-15T02:00:00Z\"", "\"2026-11-15T02:00:00Z\""),
    ROW("10m0s", "\"10m0s\"", "10m0s"), ROW("v1.33.4", "\"v1.33.4\"", "v1.33.4"),
    ROW("8e9e05c52164694d", "\"8e9e05c52164694d\"", "\"8e9e05c52164694d\""),
    ROW("<<", "\"<<\"", "\"<<\""), ROW("=", "\"=\"", "\"=\""),
    /* what YAML gives a meaning */
    ROW("- a", "\"- a\"", "\"- a\""), ROW("---", "\"---\"", "\"---\""), ROW("...", "\"...\"", "\"...\""),
    ROW("? a", "\"? a\"", "\"? a\""), ROW(":a", "\":a\"", "\":a\""), ROW("#a", "\"#a\"", "\"#a\""),
    ROW("&a", "\"&a\"", "\"&a\""), ROW("*a", "\"*a\"", "\"*a\""), ROW("* a", "\"* a\"", "\"* a\""),
    ROW("!a", "\"!a\"", "\"!a\""), ROW("|", "\"|\"", "\"|\""), ROW(">", "\">\"", "\">\""),
    ROW("'a'", "\"'a'\"", "\"'a'\""), ROW("%a", "\"%a\"", "\"%a\""), ROW("@a", "\"@a\"", "\"@a\""),
    ROW("`a", "\"`a\"", "\"`a\""), ROW("[a", "\"[a\"", "\"[a\""), ROW("{a", "\"{a\"", "\"{a\""),
    ROW("]", "\"]\"", "\"]\""), ROW("}", "\"}\"", "\"}\""), ROW(",", "\",\"", "\",\""),
    ROW("a: b", "\"a: b\"", "\"a: b\""), ROW("a:b", "\"a:b\"", "a:b"), ROW("a:", "\"a:\"", "\"a:\""),
    ROW("a #b", "\"a #b\"", "\"a #b\""), ROW("a#b", "\"a#b\"", "a#b"),
    ROW(" a", "\" a\"", "\" a\""), ROW("a ", "\"a \"", "\"a \""), ROW("a\tb", "\"a\\tb\"", "\"a\\tb\""),
    ROW("a[0], {b}", "\"a[0], {b}\"", "a[0], {b}"), ROW("docker:////x", "\"docker:////x\"", "docker:////x"),
    /* lines */
    ROW("a\nb",          "\"a\\nb\"",            "|-\n  a\n  b"),
    ROW("a\nb\n",        "\"a\\nb\\n\"",         "|\n  a\n  b"),
    ROW("a\nb\n\n",      "\"a\\nb\\n\\n\"",      "|+\n  a\n  b\n"),
    ROW("a\n\nb",        "\"a\\n\\nb\"",         "|-\n  a\n\n  b"),
    ROW("a\n",           "\"a\\n\"",             "|\n  a"),
    ROW("* a: b\n  * c", "\"* a: b\\n  * c\"",   "|-\n  * a: b\n    * c"),
    ROW("\n",            "\"\\n\"",              "\"\\n\""),
    ROW("\na",           "\"\\na\"",             "\"\\na\""),
    ROW(" a\nb",         "\" a\\nb\"",           "\" a\\nb\""),
    ROW("a \nb",         "\"a \\nb\"",           "\"a \\nb\""),
    ROW("a\nb ",         "\"a\\nb \"",           "\"a\\nb \""),
    ROW("a\n \nb",       "\"a\\n \\nb\"",        "\"a\\n \\nb\""),
    ROW("a\r\nb",        "\"a\\r\\nb\"",         "\"a\\r\\nb\""),
    ROW("a\n\tb",        "\"a\\n\\tb\"",         "\"a\\n\\tb\""),
    ROW("a\n\xff",       "\"a\\n\xef\xbf\xbd\"", "\"a\\n\xef\xbf\xbd\""),
};
/* clang-format on */

static void test_strings(void)
{
    for (size_t i = 0; i < sizeof string_rows / sizeof string_rows[0]; i++) {
        const struct string_row *row = &string_rows[i];
        CASE("string row %zu: %.*s", i, PL_STR_ARG(row->text));
        CHECK_STR(write_one(row->text, JSON_COMPACT), row->json);
        CHECK_STR(write_one(row->text, JSON_PRETTY), row->json);
        CHECK_STR(write_one(row->text, JSON_AS_YAML), row->yaml);
    }
}

/* --- documents --------------------------------------------------------------------------------- */

static void write_sample(struct pl_json_writer *w)
{
    pl__json_open_object(w);
    pl__json_write_key(w, "kind");
    pl__json_write_str(w, PL_STR("Thing"));
    pl__json_write_key(w, "a.b/c: d");
    pl__json_write_int(w, INT64_MIN);
    pl__json_write_key(w, "empty");
    pl__json_open_object(w);
    pl__json_close_object(w);
    pl__json_write_key(w, "none");
    pl__json_open_array(w);
    pl__json_close_array(w);
    pl__json_write_key(w, "spec");
    pl__json_open_object(w);
    pl__json_write_key(w, "paused");
    pl__json_write_bool(w, true);
    pl__json_write_key(w, "at");
    pl__json_write_time(w, INT64_C(1794708000500));
    pl__json_write_key(w, "text");
    pl__json_write_str(w, PL_STR("one\ntwo\n"));
    pl__json_close_object(w);
    pl__json_write_key(w, "list");
    pl__json_open_array(w);
    pl__json_open_object(w);
    pl__json_write_key(w, "name");
    pl__json_write_str(w, PL_STR("x"));
    pl__json_write_key(w, "inner");
    pl__json_open_array(w);
    pl__json_write_int(w, 1);
    pl__json_open_array(w);
    pl__json_write_int(w, 2);
    pl__json_write_bool(w, false);
    pl__json_close_array(w);
    pl__json_write_str(w, PL_STR("l1\nl2"));
    pl__json_close_array(w);
    pl__json_close_object(w);
    pl__json_open_object(w);
    pl__json_close_object(w);
    pl__json_open_array(w);
    pl__json_close_array(w);
    pl__json_write_null(w);
    pl__json_close_array(w);
    pl__json_close_object(w);
}

static void test_documents(void)
{
    struct pl_json_writer w;

    CASE("compact");
    writer_start(&w, JSON_COMPACT);
    write_sample(&w);
    CHECK_STR(
        pl__buf_str(&out),
        "{\"kind\":\"Thing\",\"a.b/c: d\":-9223372036854775808,\"empty\":{},\"none\":[],"
        "\"spec\":{\"paused\":true,\"at\":\"2026-11-15T02:00:00Z\",\"text\":\"one\\ntwo\\n\"},"
        "\"list\":[{\"name\":\"x\",\"inner\":[1,[2,false],\"l1\\nl2\"]},{},[],null]}");
    CASE("pretty");
    writer_start(&w, JSON_PRETTY);
    write_sample(&w);
    CHECK_STR(pl__buf_str(&out), "{\n"
                                 "  \"kind\": \"Thing\",\n"
                                 "  \"a.b/c: d\": -9223372036854775808,\n"
                                 "  \"empty\": {},\n"
                                 "  \"none\": [],\n"
                                 "  \"spec\": {\n"
                                 "    \"paused\": true,\n"
                                 "    \"at\": \"2026-11-15T02:00:00Z\",\n"
                                 "    \"text\": \"one\\ntwo\\n\"\n"
                                 "  },\n"
                                 "  \"list\": [\n"
                                 "    {\n"
                                 "      \"name\": \"x\",\n"
                                 "      \"inner\": [\n"
                                 "        1,\n"
                                 "        [\n"
                                 "          2,\n"
                                 "          false\n"
                                 "        ],\n"
                                 "        \"l1\\nl2\"\n"
                                 "      ]\n"
                                 "    },\n"
                                 "    {},\n"
                                 "    [],\n"
                                 "    null\n"
                                 "  ]\n"
                                 "}");
    CASE("YAML");
    writer_start(&w, JSON_AS_YAML);
    write_sample(&w);
    CHECK_STR(pl__buf_str(&out), "kind: Thing\n"
                                 "\"a.b/c: d\": -9223372036854775808\n"
                                 "empty: {}\n"
                                 "none: []\n"
                                 "spec:\n"
                                 "  paused: true\n"
                                 "  at: \"2026-11-15T02:00:00Z\"\n"
                                 "  text: |\n"
                                 "    one\n"
                                 "    two\n"
                                 "list:\n"
                                 "- name: x\n"
                                 "  inner:\n"
                                 "  - 1\n"
                                 "  - - 2\n"
                                 "    - false\n"
                                 "  - |-\n"
                                 "    l1\n"
                                 "    l2\n"
                                 "- {}\n"
                                 "- []\n"
                                 "- null");
}

static void test_tops(void)
{
    static const enum pl_json_format formats[] = { JSON_COMPACT, JSON_PRETTY, JSON_AS_YAML };
    struct pl_json_writer w;

    for (size_t i = 0; i < 3; i++) {
        CASE("a document of one value, format %zu", i);
        writer_start(&w, formats[i]);
        pl__json_open_object(&w);
        pl__json_close_object(&w);
        CHECK_STR(pl__buf_str(&out), "{}");
        writer_start(&w, formats[i]);
        pl__json_open_array(&w);
        pl__json_close_array(&w);
        CHECK_STR(pl__buf_str(&out), "[]");
        writer_start(&w, formats[i]);
        pl__json_write_int(&w, -7);
        CHECK_STR(pl__buf_str(&out), "-7");
        writer_start(&w, formats[i]);
        pl__json_write_null(&w);
        CHECK_STR(pl__buf_str(&out), "null");
    }
    CASE("a list on top, in YAML");
    writer_start(&w, JSON_AS_YAML);
    pl__json_open_array(&w);
    pl__json_write_int(&w, 1);
    pl__json_open_object(&w);
    pl__json_write_key(&w, "yes");
    pl__json_open_array(&w);
    pl__json_write_str(&w, PL_STR("a"));
    pl__json_close_array(&w);
    pl__json_close_object(&w);
    pl__json_close_array(&w);
    CHECK_STR(pl__buf_str(&out), "- 1\n- \"yes\":\n  - a");
    CASE("no time");
    writer_start(&w, JSON_COMPACT);
    pl__json_write_time(&w, 0);
    CHECK_STR(pl__buf_str(&out), "\"\"");
    CASE("as deep as it goes");
    writer_start(&w, JSON_COMPACT);
    for (int i = 0; i < JSON_WRITE_DEPTH_MAX; i++)
        pl__json_open_array(&w);
    for (int i = 0; i < JSON_WRITE_DEPTH_MAX; i++)
        pl__json_close_array(&w);
    CHECK_INT(out.len, 2 * JSON_WRITE_DEPTH_MAX);
}

/* --- round trip -------------------------------------------------------------------------------- */

static uint64_t random_state;

static uint32_t random_below(uint32_t bound)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(random_state >> 33) % bound;
}

static struct pl_str random_string(void)
{
    static const char *const pieces[] = { "a",
                                          "\"",
                                          "\\",
                                          "\n",
                                          "\t",
                                          "\x01",
                                          "\x1f",
                                          "\x7f",
                                          "\xc3\xa9",
                                          "\xe2\x80\xa8",
                                          "\xf0\x9f\x98\x80",
                                          " ",
                                          "[",
                                          "}",
                                          "0123456789abcdef" };
    struct pl_buf b;

    pl__buf_init(&b, &arena, 1000);
    for (uint32_t n = random_below(20); n > 0; n--) {
        if (random_below(20) == 0)
            pl__buf_add_char(&b, '\0');
        pl__buf_add(&b, pl__str(pieces[random_below(sizeof pieces / sizeof pieces[0])]));
    }
    return pl__buf_str(&b);
}

/* Either writes a random document (`w`) or reads it (`j`) and compares: with the same seed, both
 * see the same one. */
struct both {
    struct pl_json_writer *w;
    struct pl_json *j;
};

static void both_value(struct both *b, uint32_t depth);

static void both_string(struct both *b)
{
    struct pl_str want = random_string(), got = { "", 0 };

    if (b->w) {
        pl__json_write_str(b->w, want);
        return;
    }
    CHECK_INT(pl__json_string(b->j, &got), 0);
    CHECK(pl__str_equal(got, want));
}

static void both_int(struct both *b)
{
    int64_t want = (int64_t)(random_state ^ random_state << 31) >> random_below(64), got = 0;

    if (b->w) {
        pl__json_write_int(b->w, want);
        return;
    }
    CHECK_INT(pl__json_int(b->j, &got), 0);
    CHECK_INT(got, want);
}

static void both_bool(struct both *b)
{
    bool want = random_below(2), got = !want;

    if (b->w) {
        pl__json_write_bool(b->w, want);
        return;
    }
    CHECK_INT(pl__json_bool(b->j, &got), 0);
    CHECK(got == want);
}

static void both_array(struct both *b, uint32_t depth)
{
    if (b->w)
        pl__json_open_array(b->w);
    else
        CHECK_INT(pl__json_array(b->j), 0);
    for (uint32_t n = random_below(5); n > 0; n--) {
        if (b->j)
            CHECK_INT(pl__json_item(b->j), 1);
        both_value(b, depth - 1);
    }
    if (b->w)
        pl__json_close_array(b->w);
    else
        CHECK_INT(pl__json_item(b->j), 0);
}

static void both_object(struct both *b, uint32_t depth)
{
    struct pl_str key;

    if (b->w)
        pl__json_open_object(b->w);
    else
        CHECK_INT(pl__json_object(b->j), 0);
    for (uint32_t n = random_below(5); n > 0; n--) {
        char name[8] = { "ab\"\\\n {"[random_below(7)], (char)('a' + n), 0 };
        if (b->w) {
            pl__json_write_key(b->w, name);
        } else {
            CHECK_INT(pl__json_key(b->j, &key), 1);
            CHECK_STR(key, name);
        }
        both_value(b, depth - 1);
    }
    if (b->w)
        pl__json_close_object(b->w);
    else
        CHECK_INT(pl__json_key(b->j, &key), 0);
}

static void both_value(struct both *b, uint32_t depth)
{
    switch (random_below(depth ? 8 : 4)) {
    case 0:
        both_int(b);
        break;
    case 1:
        both_bool(b);
        break;
    case 2:
        if (b->w)
            pl__json_write_null(b->w);
        else
            CHECK(pl__json_peek(b->j) == JSON_NULL && pl__json_skip(b->j) == 0);
        break;
    case 3:
        both_string(b);
        break;
    case 4:
    case 5:
        both_array(b, depth);
        break;
    default:
        both_object(b, depth);
        break;
    }
}

static void test_round_trip(void)
{
    struct guarded guard;

    guarded_init(&guard, (size_t)1 << 20);
    for (uint64_t seed = 1; seed <= 500; seed++) {
        struct pl_error *err = NULL;
        struct pl_json_writer w;
        struct pl_json j;

        CASE("round trip, seed %" PRIu64, seed);
        pl__arena_reset(&arena);
        pl__buf_init(&out, &arena, (size_t)1 << 20);
        writer_start(&w, seed % 2 ? JSON_COMPACT : JSON_PRETTY);
        random_state = seed;
        both_object(&(struct both){ .w = &w }, 5);
        CHECK(!out.overflowed && w.depth == 0);

        pl__json_init(&j, guarded_put(&guard, pl__buf_str(&out)), PL_STR("t"), &arena, 0, &err);
        random_state = seed;
        both_object(&(struct both){ .j = &j }, 5);
        CHECK(pl__json_at_end(&j) && !err);
    }
    guarded_release(&guard);
}

static void test_raw(void)
{
    static const struct pl_str odd = PL_STR_INIT("{\"b\": [ 1e400,\t-0.10 ], \"\\u00e9\":null}");
    static const char *const want[] = {
        [JSON_COMPACT] =
            "{\"a\\\"\":{\"b\": [ 1e400,\t-0.10 ], \"\\u00e9\":null},\"l\":[1,{\"b\": [ "
            "1e400,\t-0.10 ], \"\\u00e9\":null}]}",
        [JSON_PRETTY] =
            "{\n  \"a\\\"\": {\"b\": [ 1e400,\t-0.10 ], \"\\u00e9\":null},\n  \"l\": [\n    "
            "1,\n    {\"b\": [ 1e400,\t-0.10 ], \"\\u00e9\":null}\n  ]\n}",
    };

    for (int format = JSON_COMPACT; format <= JSON_PRETTY; format++) {
        struct pl_json_writer w;
        CASE("bytes that go over as they are, format %d", format)
        writer_start(&w, (enum pl_json_format)format);
        pl__json_open_object(&w);
        pl__json_write_key_str(&w, (struct pl_str){ "a\"b", 2 }); /* a view, not a C string */
        pl__json_write_raw(&w, odd);
        pl__json_write_key(&w, "l");
        pl__json_open_array(&w);
        pl__json_write_int(&w, 1);
        pl__json_write_raw(&w, odd);
        pl__json_close_array(&w);
        pl__json_close_object(&w);
        CHECK_STR(pl__buf_str(&out), want[format]);
    }
}

int main(void)
{
    pl__arena_init(&arena, NULL, 0);
    pl__buf_init(&out, &arena, (size_t)1 << 20);
    test_strings();
    test_documents();
    test_tops();
    test_raw();
    test_round_trip();
    pl__arena_release(&arena);
    return test_end("json_write");
}
