/* Reading JSON: what is taken, what is refused, where the error points and what it says. */
#include "guarded.h"

#include "test.h"

#include "base/json.h"

static struct guarded guard;
static struct pl_arena arena;

/* --- texts, by both readers -------------------------------------------------------------------- */

/* `at` NULL: taken. Otherwise where the error is and a part of what it says. */
struct text_row {
    const char *text;
    size_t len;
    const char *at;
    const char *message;
};

#define OK(text_)                              \
    {                                          \
        (text_), sizeof(text_) - 1, NULL, NULL \
    }
#define BAD(text_, at_, message_)                     \
    {                                                 \
        (text_), sizeof(text_) - 1, (at_), (message_) \
    }
#define END "unexpected end of input"

/* clang-format off */
static const struct text_row text_rows[] = {
    /* values */
    OK(""), OK(" \t\r\n"), OK("null"), OK("true"), OK("false"), OK("0"), OK("\"\""), OK("{}"),
    OK("[]"), OK("[[]]"), OK("{\"a\":{}}"), OK("[{}]"), OK("[1,2]"), OK("{\"a\":1,\"b\":2}"),
    OK("[null,true,false,1,\"\",{},[]]"),
    /* several documents */
    OK("{}\n{}\n"), OK("{}{}"), OK("1 2"), OK("[] []\t{}"), OK("null\nnull"),
    BAD("{} }",            "1:4", "expected a value, found '}'"),
    BAD("{}\n]",           "2:1", "expected a value, found ']'"),
    BAD("{}\n\n  x",       "3:3", "expected a value, found 'x'"),
    BAD("{},{}",           "1:3", "expected a value, found ','"),
    /* white space: these four and no other */
    OK(" {\t\"a\"\r:\n1 , \"b\" : [ ] } "), OK("[\n                                  1\n]"),
    OK("[\r\n\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t1\r\n]"),
    BAD("[\v1]",           "1:2", "byte 0x0b"),
    BAD("[\f1]",           "1:2", "byte 0x0c"),
    BAD("[1\b]",           "1:3", "expected ',' or ']', found byte 0x08"),
    BAD("[\xc2\xa0" "1]",  "1:2", "byte 0xc2"),
    BAD("\xe2\x80\xa8" "1", "1:1", "byte 0xe2"),
    BAD("{\"a\"\x1f:1}",   "1:5", "expected ':', found byte 0x1f"),
    BAD("[1\x7f]",         "1:3", "byte 0x7f"),
    /* byte order marks, NUL */
    BAD("\xef\xbb\xbf{}",  "1:1", "byte order mark (BOM)"),
    BAD("\xff\xfe{\0",     "1:1", "byte order mark (BOM) of UTF-16"),
    BAD("\xfe\xff\0{",     "1:1", "byte order mark (BOM) of UTF-16"),
    BAD("{}\xef\xbb\xbf",  "1:3", "byte order mark (BOM)"),
    BAD("\xef\xbb",        "1:1", "byte 0xef"),
    BAD("\0",              "1:1", "NUL byte"),
    BAD("{}\0",            "1:3", "NUL byte"),
    BAD("[1\0]",           "1:3", "NUL byte"),
    BAD("\"a\0b\"",        "1:3", "control character 0x00"),
    OK("\"\xef\xbb\xbf\""), /* inside a string U+FEFF is a character like others */
    /* objects and arrays */
    BAD("{",               "1:2", END), BAD("[", "1:2", END), BAD("{\"", "1:3", END),
    BAD("{\"a",            "1:4", END), BAD("{\"a\"", "1:5", END), BAD("{\"a\":", "1:6", END),
    BAD("{\"a\":1",        "1:7", END), BAD("{\"a\":1,", "1:8", END), BAD("[1", "1:3", END),
    BAD("[1,",             "1:4", END), BAD("[[", "1:3", END), BAD("[{}", "1:4", END),
    BAD("[\n1,\n",         "3:1", END), BAD("{\"a\":{\"b\":[1,{}", "1:16", END),
    BAD("}",               "1:1", "expected a value, found '}'"),
    BAD("]",               "1:1", "expected a value, found ']'"),
    BAD(",",               "1:1", "expected a value, found ','"),
    BAD(":",               "1:1", "expected a value, found ':'"),
    BAD("{]",              "1:2", "expected a key, found ']'"),
    BAD("[}",              "1:2", "expected a value, found '}'"),
    BAD("[1}",             "1:3", "expected ',' or ']', found '}'"),
    BAD("{\"a\":1]",       "1:7", "expected ',' or '}', found ']'"),
    BAD("[1,]",            "1:4", "trailing comma before ']'"),
    BAD("[1, ]",           "1:5", "trailing comma before ']'"),
    BAD("{\"a\":1,}",      "1:8", "trailing comma before '}'"),
    BAD("{\"a\":1,\n}",    "2:1", "trailing comma before '}'"),
    BAD("[,]",             "1:2", "expected a value, found ','"),
    BAD("[,1]",            "1:2", "expected a value, found ','"),
    BAD("[1,,2]",          "1:4", "expected a value, found ','"),
    BAD("{,}",             "1:2", "expected a key, found ','"),
    BAD("{\"a\":1,,}",     "1:8", "expected a key, found ','"),
    BAD("[1 2]",           "1:4", "expected ',' or ']', found a number"),
    BAD("[1 \"a\"]",       "1:4", "expected ',' or ']', found a string"),
    BAD("[{}{}]",          "1:4", "expected ',' or ']', found an object"),
    BAD("[1:2]",           "1:3", "expected ',' or ']', found ':'"),
    BAD("{\"a\" 1}",       "1:6", "expected ':', found a number"),
    BAD("{\"a\"}",         "1:5", "expected ':', found '}'"),
    BAD("{\"a\",1}",       "1:5", "expected ':', found ','"),
    BAD("{\"a\"::1}",      "1:6", "expected a value, found ':'"),
    BAD("{\"a\":}",        "1:6", "expected a value, found '}'"),
    BAD("{\"a\":1 \"b\":2}", "1:8", "expected ',' or '}', found a string"),
    BAD("{\"a\":1;\"b\":2}", "1:7", "found ';'"),
    BAD("{a:1}",           "1:2", "expected a key, found 'a'"),
    BAD("{1:1}",           "1:2", "expected a key, found a number"),
    BAD("{null:1}",        "1:2", "expected a key, found null"),
    BAD("{true:1}",        "1:2", "expected a key, found true"),
    BAD("{[]:1}",          "1:2", "expected a key, found a list"),
    BAD("{'a':1}",         "1:2", "expected a key, found '''"),
    BAD("['a']",           "1:2", "expected a value, found '''"),
    /* comments */
    BAD("// x\n{}",        "1:1", "JSON has no comments"),
    BAD("/* x */{}",       "1:1", "JSON has no comments"),
    BAD("[1 /* x */]",     "1:4", "JSON has no comments"),
    BAD("{\"a\":1} # x",   "1:9", "expected a value, found '#'"),
    /* literals */
    BAD("t",               "1:2", END), BAD("tru", "1:4", END), BAD("fals", "1:5", END),
    BAD("nul",             "1:4", END), BAD("[n", "1:3", END),
    BAD("trux",            "1:1", "bad literal"),
    BAD("[falze]",         "1:2", "bad literal"),
    BAD("[nil]",           "1:2", "bad literal"),
    BAD("True",            "1:1", "found 'T'"), BAD("NULL", "1:1", "found 'N'"),
    BAD("NaN",             "1:1", "found 'N'"), BAD("Infinity", "1:1", "found 'I'"),
    BAD("undefined",       "1:1", "found 'u'"),
    BAD("[truefalse]",     "1:6", "expected ',' or ']', found false"),
    BAD("[nullx]",         "1:6", "found 'x'"),
    /* numbers */
    OK("-0"), OK("-1"), OK("10"), OK("0.0"), OK("-0.0"), OK("1.5"), OK("0e0"), OK("0E+0"),
    OK("0E-0"), OK("1e5"), OK("1.25e-10"), OK("123456789012345678901234567890"), OK("1e999"),
    OK("-0.000000000000000000000000000000000000000000000000001"), OK("9223372036854775808"),
    OK("[0]"), OK("[-1.0E5 ,0]"),
    BAD("-",               "1:2", END), BAD("1.", "1:3", END), BAD("1e", "1:3", END),
    BAD("1e+",             "1:4", END), BAD("[-", "1:3", END), BAD("-1.5E-", "1:7", END),
    BAD("01",              "1:1", "leading zero"),
    BAD("00",              "1:1", "leading zero"),
    BAD("-01",             "1:1", "leading zero"),
    BAD("[012]",           "1:2", "leading zero"),
    BAD("00.5",            "1:1", "leading zero"),
    BAD("+1",              "1:1", "expected a value, found '+'"),
    BAD("--1",             "1:2", "expected a digit, found a number"),
    BAD("[- 1]",           "1:3", "expected a digit, found byte 0x20"),
    BAD("[.5]",            "1:2", "expected a value, found '.'"),
    BAD("[-.5]",           "1:3", "expected a digit, found '.'"),
    BAD("[1.]",            "1:4", "expected a digit, found ']'"),
    BAD("[1.e5]",          "1:4", "expected a digit, found 'e'"),
    BAD("[1e]",            "1:4", "expected a digit, found ']'"),
    BAD("[1e+]",           "1:5", "expected a digit, found ']'"),
    BAD("[1e1.5]",         "1:5", "expected ',' or ']', found '.'"),
    BAD("[1.2.3]",         "1:5", "expected ',' or ']', found '.'"),
    BAD("[0x10]",          "1:3", "found 'x'"),
    BAD("[1_000]",         "1:3", "found '_'"),
    BAD("[1a]",            "1:3", "found 'a'"),
    BAD("[-Infinity]",     "1:3", "expected a digit, found 'I'"),
    BAD("[\xef\xbc\x91]",  "1:2", "byte 0xef"),
    /* strings */
    OK("\"abc\""), OK("\" !#[]{},:\x7f\""), OK("\"0123456789abcdef0123456789abcdef0123456789\""),
    OK("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""), OK("\"\\u0000\""), OK("\"\\u00e9\\u00E9\\uabCD\""),
    OK("\"\\\\\""), OK("\"\\\\\\\"\""), OK("\"'\""), OK("\"\\ud83d\\ude00\""),
    OK("\"\\uDBFF\\uDFFF\""), OK("\"\\uFFFF\\uFFFE\""), OK("[\"a\\\\\",\"b\"]"),
    BAD("\"",              "1:2", END), BAD("\"abc", "1:5", END), BAD("\"abc\\", "1:6", END),
    BAD("\"abc\\\"",       "1:7", END), BAD("\"\\u", "1:4", END), BAD("\"\\u12", "1:6", END),
    BAD("\"\\ud83d",       "1:8", END), BAD("\"\\ud83d\\", "1:9", END),
    BAD("\"\\ud83d\\u",    "1:10", END), BAD("\"\\ud83d\\ude0", "1:13", END),
    BAD("\"0123456789abcdef0123456789abcdef", "1:34", END),
    BAD("\"a\nb\"",        "1:3", "control character 0x0a"),
    BAD("\"a\tb\"",        "1:3", "control character 0x09"),
    BAD("\"a\rb\"",        "1:3", "control character 0x0d"),
    BAD("\"\x01\"",        "1:2", "control character 0x01"),
    BAD("\"\x1f\"",        "1:2", "control character 0x1f"),
    BAD("\"0123456789abcdef\x1f\"", "1:18", "control character 0x1f"),
    BAD("\"\\x41\"",       "1:2", "bad escape"),
    BAD("\"\\a\"",         "1:2", "bad escape"),
    BAD("\"\\'\"",         "1:2", "bad escape"),
    BAD("\"\\0\"",         "1:2", "bad escape"),
    BAD("\"ab\\\n\"",      "1:4", "bad escape"),
    BAD("\"\\U0041\"",     "1:2", "bad escape"),
    BAD("\"\\u004\"",      "1:2", "four hex digits"),
    BAD("\"\\u00g0\"",     "1:2", "four hex digits"),
    BAD("\"\\u 041\"",     "1:2", "four hex digits"),
    BAD("\"\\u-041\"",     "1:2", "four hex digits"),
    BAD("\"x\\ud800\"",    "1:3", "lone surrogate"),
    BAD("\"x\\ud800x\"",   "1:3", "lone surrogate"),
    BAD("\"\\ud800\\n\"",  "1:2", "lone surrogate"),
    BAD("\"\\udc00\"",     "1:2", "lone surrogate"),
    BAD("\"\\udfff\\ud800\"", "1:2", "lone surrogate"),
    BAD("\"\\ud800\\ud800\"", "1:2", "lone surrogate"),
    BAD("\"\\ud800\\u0041\"", "1:2", "lone surrogate"),
    BAD("\"\\ud800\\ue000\"", "1:2", "lone surrogate"),
    BAD("\"\\ud83d\\ude0g\"", "1:8", "four hex digits"),
    BAD("{\"\\ud800\":1}", "1:3", "lone surrogate"),
    BAD("{\"a\nb\":1}",    "1:4", "control character 0x0a"),
    /* UTF-8 */
    OK("\"\xc2\x80\""), OK("\"\xdf\xbf\""), OK("\"\xe0\xa0\x80\""), OK("\"\xed\x9f\xbf\""),
    OK("\"\xee\x80\x80\""), OK("\"\xef\xbf\xbf\""), OK("\"\xf0\x90\x80\x80\""),
    OK("\"\xf4\x8f\xbf\xbf\""), OK("{\"\xc3\xa9\":\"\xe2\x82\xac\xf0\x9f\x98\x80\"}"),
    OK("\"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\""),
    BAD("\"\x80\"",        "1:2", "invalid UTF-8"),
    BAD("\"\xbf\"",        "1:2", "invalid UTF-8"),
    BAD("\"\xc0\x80\"",    "1:2", "invalid UTF-8"), /* overlong */
    BAD("\"\xc1\xbf\"",    "1:2", "invalid UTF-8"),
    BAD("\"\xe0\x80\x80\"", "1:2", "invalid UTF-8"),
    BAD("\"\xe0\x9f\xbf\"", "1:2", "invalid UTF-8"),
    BAD("\"\xf0\x80\x80\x80\"", "1:2", "invalid UTF-8"),
    BAD("\"\xf0\x8f\xbf\xbf\"", "1:2", "invalid UTF-8"),
    BAD("\"\xed\xa0\x80\"", "1:2", "invalid UTF-8"), /* surrogates */
    BAD("\"\xed\xbf\xbf\"", "1:2", "invalid UTF-8"),
    BAD("\"\xf4\x90\x80\x80\"", "1:2", "invalid UTF-8"), /* beyond U+10FFFF */
    BAD("\"\xf5\x80\x80\x80\"", "1:2", "invalid UTF-8"),
    BAD("\"\xfe\"",        "1:2", "invalid UTF-8"), BAD("\"\xff\"", "1:2", "invalid UTF-8"),
    BAD("\"\xc3\"",        "1:2", "invalid UTF-8"), /* cut short by the quote */
    BAD("\"\xe2\x82\"",    "1:2", "invalid UTF-8"),
    BAD("\"\xf0\x9f\x98\"", "1:2", "invalid UTF-8"),
    BAD("\"\xc3\xc3\xa9\"", "1:2", "invalid UTF-8"),
    BAD("\"\xc3",          "1:3", END), BAD("\"\xe2\x82", "1:3", END), /* cut short by the end */
    BAD("\"\xf0\x9f\x98",  "1:3", END),
    BAD("{\"\xff\":1}",    "1:3", "invalid UTF-8"),
    /* columns count characters, lines end at a newline */
    BAD("[\"\xc3\xa9\xe2\x82\xac\", x]", "1:8", "found 'x'"),
    BAD("[\"\xf0\x9f\x98\x80\",\n \"\xc3\xa9\" x]", "2:6", "found 'x'"),
    BAD("[\r\n1,\r\nx]",   "3:1", "found 'x'"),
    BAD("[\r1,\rx]",       "1:6", "found 'x'"),
};
/* clang-format on */

/* Reads any value with the walkers, so that they and the skip check each other. */
static int walk(struct pl_json *j)
{
    struct pl_str text;
    bool flag;
    int more;

    switch (pl__json_peek(j)) {
    case JSON_OBJECT:
        for (more = pl__json_object(j); (more = pl__json_key(j, &text)) > 0;) {
            if (walk(j) < 0)
                return -1;
        }
        return more;
    case JSON_ARRAY:
        for (more = pl__json_array(j); (more = pl__json_item(j)) > 0;) {
            if (walk(j) < 0)
                return -1;
        }
        return more;
    case JSON_STRING:
        return pl__json_string(j, &text);
    case JSON_TRUE:
    case JSON_FALSE:
        return pl__json_bool(j, &flag);
    case JSON_NUMBER:
    case JSON_NULL:
        return pl__json_skip(j);
    default:
        return -1;
    }
}

typedef int (*read_fn)(struct pl_json *j);

/* All documents of a text. What it says on failure, or "" for success. */
static struct pl_str read_all(struct pl_str text, uint32_t depth_max, read_fn read)
{
    struct pl_error *err = NULL;
    struct pl_json j;

    pl__arena_reset(&arena);
    pl__json_init(&j, guarded_put(&guard, text), PL_STR("t.json"), &arena, depth_max, &err);
    while (!pl__json_at_end(&j)) {
        if (read(&j) < 0)
            return err ? pl__error_text(&arena, err) : PL_STR("failed without an error");
        if (err)
            return PL_STR("an error without failing");
        if (j.depth != 0)
            return PL_STR("depth is off");
    }
    return PL_STR("");
}

static void check_text(const struct text_row *row, read_fn read)
{
    struct pl_str got = read_all((struct pl_str){ row->text, row->len }, 64, read);

    if (!row->at) {
        CHECK_STR(got, "");
        return;
    }
    char start[64];
    snprintf(start, sizeof start, "t.json:%s: ", row->at);
    if (!pl__str_starts_with(got, pl__str(start)) || !pl__str_contains(got, pl__str(row->message)))
        test_fail(__FILE__, __LINE__, "got \"%.*s\", want \"%s...%s\"", PL_STR_ARG(got), start,
                  row->message);
}

static void test_texts(void)
{
    for (size_t i = 0; i < sizeof text_rows / sizeof text_rows[0]; i++) {
        const struct text_row *row = &text_rows[i];
        CASE("text row %zu: %.*s", i, (int)row->len, row->text);
        check_text(row, pl__json_skip);
        check_text(row, walk);
    }
}

static int read_raw(struct pl_json *j)
{
    struct pl_str raw;

    return pl__json_raw(j, &raw);
}

/* It takes what the skip takes, says the same errors, and gives the very bytes. */
static void test_raw(void)
{
    static const char *const values[] = { "{}",           "{ \"a\" : [1e400, \"\\u00e9\"] }",
                                          "[ ]",          "-0.10",
                                          "\"a \\\" b\"", "null",
                                          "true",         "123456789012345678901234567890" };

    for (size_t i = 0; i < sizeof text_rows / sizeof text_rows[0]; i++) {
        const struct text_row *row = &text_rows[i];
        CASE("raw text row %zu: %.*s", i, (int)row->len, row->text);
        check_text(row, read_raw);
    }
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        CASE("raw bytes of %s", values[i]);
        struct pl_str text = pl__str_format(&arena, "{\"k\": \n%s\t,\"z\":0}", values[i]);
        struct pl_str key, raw = { 0 };
        struct pl_json j;
        pl__json_init(&j, guarded_put(&guard, text), PL_STR("t"), &arena, 0, NULL);
        CHECK_INT(pl__json_object(&j), 0);
        CHECK_INT(pl__json_key(&j, &key), 1);
        CHECK_INT(pl__json_raw(&j, &raw), 0);
        CHECK_STR(raw, values[i]);
        CHECK_INT(pl__json_key(&j, &key), 1);
        CHECK_STR(key, "z");
    }
}

/* Whatever the validating skip takes, the fast one takes, and ends at the same byte. */
static void test_fast_skip_takes_rows(void)
{
    for (size_t i = 0; i < sizeof text_rows / sizeof text_rows[0]; i++) {
        const struct text_row *row = &text_rows[i];
        if (row->at)
            continue;
        CASE("fast skip of row %zu", i);
        check_text(row, pl__json_skip_fast);
    }
}

/* --- values ------------------------------------------------------------------------------------ */

static void check_string(struct pl_str json, struct pl_str want)
{
    struct pl_error *err = NULL;
    struct pl_str got = { "", 0 };
    struct pl_json j;

    pl__json_init(&j, guarded_put(&guard, json), PL_STR("t"), &arena, 0, &err);
    CHECK(pl__json_string(&j, &got) == 0);
    test_str(__FILE__, __LINE__, json.ptr, got, want);
    CHECK(got.ptr && got.ptr[got.len] == '\0');
    CHECK(j.at == j.end);
}

static void test_strings(void)
{
    CASE("plain string");
    check_string(PL_STR("\"abc\""), PL_STR("abc"));
    CASE("empty string");
    check_string(PL_STR("\"\""), PL_STR(""));
    CASE("white space before");
    check_string(PL_STR(" \n\t\"x\""), PL_STR("x"));
    CASE("each short escape");
    check_string(PL_STR("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""), PL_STR("\"\\/\b\f\n\r\t"));
    CASE("\\u of one to three bytes");
    check_string(PL_STR("\"\\u0041\\u00e9\\u20AC\\uffff\""),
                 PL_STR("A\xc3\xa9\xe2\x82\xac\xef\xbf\xbf"));
    CASE("surrogate pairs");
    check_string(PL_STR("\"\\ud83d\\ude00\\uD800\\uDC00\\udbff\\udfff\""),
                 PL_STR("\xf0\x9f\x98\x80\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"));
    CASE("an escaped NUL is a character");
    check_string(PL_STR("\"a\\u0000b\""), PL_STR("a\0b"));
    CASE("UTF-8 as it is");
    check_string(PL_STR("\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""),
                 PL_STR("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"));
    CASE("escapes amid UTF-8");
    check_string(PL_STR("\"\xc3\xa9\\n\xc3\xa9\""), PL_STR("\xc3\xa9\n\xc3\xa9"));
    CASE("the input may go away");
    {
        struct pl_json j;
        struct pl_str got, text = guarded_put(&guard, PL_STR("\"kept\""));
        pl__json_init(&j, text, PL_STR("t"), &arena, 0, NULL);
        CHECK(pl__json_string(&j, &got) == 0);
        guarded_put(&guard, PL_STR("XXXXXXXXXXXX"));
        CHECK_STR(got, "kept");
    }
}

/* Strings of every length at every distance from the end, with one odd character anywhere. */
static void test_string_lengths(void)
{
    static const struct {
        const char *json, *text;
    } odd[] = {
        { "x", "x" }, { "\\n", "\n" }, { "\xc3\xa9", "\xc3\xa9" }, { "\\u20ac", "\xe2\x82\xac" }
    };

    static const char before[] = "abcdefghijklmnopqrstuvwxyz!#$%&'()*+,-./:;<=>?@[]^_`{|}~ "
                                 "abcdefghijklmnopqrstuvwxyz";
    static const char after[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ!#$%&'()*+,-./:;<=>?@[]^_`{|}~ "
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

    CASE("strings of every length");
    for (size_t len = 0; len < 70; len++) {
        for (size_t at = 0; at <= len; at++) {
            for (size_t k = 0; k < sizeof odd / sizeof odd[0]; k++) {
                char json[160], text[160];
                int json_len = snprintf(json, sizeof json, "\"%.*s%s%.*s\"", (int)at, before,
                                        odd[k].json, (int)(len - at), after);
                int text_len = snprintf(text, sizeof text, "%.*s%s%.*s", (int)at, before,
                                        odd[k].text, (int)(len - at), after);
                pl__arena_reset(&arena);
                check_string((struct pl_str){ json, (size_t)json_len },
                             (struct pl_str){ text, (size_t)text_len });
            }
        }
    }
}

static void test_white_space_lengths(void)
{
    CASE("white space of every length and kind");
    for (size_t len = 0; len < 70; len++) {
        for (size_t at = 0; at < len; at++) {
            char text[80];
            memset(text, ' ', sizeof text);
            text[at] = "\n\t\r"[at % 3];
            text[len] = '7';
            struct pl_json j;
            int64_t value = 0;
            pl__json_init(&j, guarded_put(&guard, (struct pl_str){ text, len + 1 }), PL_STR("t"),
                          &arena, 0, NULL);
            CHECK(pl__json_int(&j, &value) == 0 && value == 7);
            text[at] = '\v';
            pl__json_init(&j, guarded_put(&guard, (struct pl_str){ text, len + 1 }), PL_STR("t"),
                          &arena, 0, NULL);
            CHECK(pl__json_int(&j, &value) == -1);
        }
    }
}

static const struct {
    const char *text;
    bool ok;
    int64_t value;
    const char *message;
} int_rows[] = {
    { "0", true, 0, "" },
    { "-0", true, 0, "" },
    { "1", true, 1, "" },
    { "-1", true, -1, "" },
    { "9223372036854775807", true, INT64_MAX, "" },
    { "-9223372036854775808", true, INT64_MIN, "" },
    { "9223372036854775808", false, 0, "t:1:1: whole number out of range: 9223372036854775808" },
    { "-9223372036854775809", false, 0, "t:1:1: whole number out of range: -9223372036854775809" },
    { "18446744073709551616", false, 0, "t:1:1: whole number out of range: 18446744073709551616" },
    { "99999999999999999999999999999999999999999999999999", false, 0,
      "t:1:1: whole number out of range: 9999999999999999999999999999999999999999" },
    { "1.0", false, 0, "t:1:1: expected a whole number, found 1.0" },
    { "1e3", false, 0, "t:1:1: expected a whole number, found 1e3" },
    { "-1E0", false, 0, "t:1:1: expected a whole number, found -1E0" },
    { "\"1\"", false, 0, "t:1:1: expected a whole number, found a string" },
    { "true", false, 0, "t:1:1: expected a whole number, found true" },
    { "null", false, 0, "t:1:1: expected a whole number, found null" },
    { "{}", false, 0, "t:1:1: expected a whole number, found an object" },
    { "[]", false, 0, "t:1:1: expected a whole number, found a list" },
    { " ", false, 0, "t:1:2: unexpected end of input" },
    { "01", false, 0, "t:1:1: number with a leading zero" },
};

static void test_ints(void)
{
    for (size_t i = 0; i < sizeof int_rows / sizeof int_rows[0]; i++) {
        struct pl_error *err = NULL;
        struct pl_json j;
        int64_t value = 0;

        CASE("whole number %s", int_rows[i].text);
        pl__json_init(&j, guarded_put(&guard, pl__str(int_rows[i].text)), PL_STR("t"), &arena, 0,
                      &err);
        CHECK_INT(pl__json_int(&j, &value), int_rows[i].ok ? 0 : -1);
        CHECK_INT(value, int_rows[i].value);
        CHECK_STR(err ? pl__error_text(&arena, err) : PL_STR(""), int_rows[i].message);
    }
}

/* --- depth and positions ----------------------------------------------------------------------- */

static struct pl_str nested(size_t depth, const char *open, const char *inner, const char *close)
{
    struct pl_buf b;

    pl__buf_init(&b, &arena, (size_t)1 << 20);
    for (size_t i = 0; i < depth; i++)
        pl__buf_add(&b, pl__str(open));
    pl__buf_add(&b, pl__str(inner));
    for (size_t i = 0; i < depth; i++)
        pl__buf_add(&b, pl__str(close));
    return pl__buf_str(&b);
}

static void check_depth(size_t depth, uint32_t depth_max, bool ok)
{
    static const read_fn readers[] = { pl__json_skip, walk };

    for (size_t i = 0; i < 2; i++) {
        struct pl_str text = nested(depth, "[", "1", "]");
        struct pl_str said = read_all(text, depth_max, readers[i]);
        if (ok)
            CHECK_STR(said, "");
        else
            CHECK(pl__str_contains(said, PL_STR("nested deeper than")));
        said = read_all(nested(depth, "{\"a\":[", "", "]}"), depth_max * 2, readers[i]);
        CHECK_INT(said.len == 0, ok || depth_max * 2 > 1024);
    }
}

static void test_depth(void)
{
    CASE("depth up to the limit");
    check_depth(64, 64, true);
    CASE("one deeper");
    check_depth(65, 64, false);
    CASE("a limit of one");
    check_depth(1, 1, true);
    check_depth(2, 1, false);
    CASE("bits of more than one word");
    check_depth(200, 200, true);
    check_depth(201, 200, false);
    CASE("objects and arrays mixed, over more than one word");
    CHECK_STR(read_all(nested(100, "[[{\"a\":", "1", "}]]"), 300, pl__json_skip), "");
    CHECK(read_all(nested(100, "[[{\"a\":", "1", "]}]"), 300, pl__json_skip).len > 0);
    CHECK_STR(read_all(nested(100, "[[{\"a\":", "1", "}, 2], 3]"), 300, walk), "");
    CHECK_STR(read_all(nested(100, "[[{\"a\":", "1", "}, 2], 3]"), 300, pl__json_skip), "");
    CASE("0 means 64");
    CHECK_STR(read_all(nested(64, "[", "", "]"), 0, pl__json_skip), "");
    CHECK_STR(read_all(nested(65, "[", "", "]"), 0, pl__json_skip),
              "t.json:1:65: nested deeper than 64 levels");
    CASE("never more than the limit");
    CHECK_STR(read_all(nested(1024, "[", "", "]"), UINT32_MAX, pl__json_skip), "");
    CHECK_STR(read_all(nested(1025, "[", "", "]"), UINT32_MAX, pl__json_skip),
              "t.json:1:1025: nested deeper than 1024 levels");
    CASE("a flood of brackets");
    CHECK_STR(read_all(nested(100000, "[", "", ""), 64, pl__json_skip),
              "t.json:1:65: nested deeper than 64 levels");
    CASE("a flood of brackets, skipped fast");
    CHECK(pl__str_contains(read_all(nested(100000, "[", "", ""), 64, pl__json_skip_fast),
                           PL_STR("nested deeper than 64 levels")));
    CASE("fast skip takes what just fits");
    for (uint32_t depth = 1; depth < 200; depth++)
        CHECK_STR(read_all(nested(depth, "[", "", "]"), depth, pl__json_skip_fast), "");
    CASE("the code of a limit");
    {
        struct pl_error *err = NULL;
        struct pl_json j;
        pl__json_init(&j, PL_STR("[[]]"), PL_STR("t"), &arena, 1, &err);
        CHECK(pl__json_skip(&j) == -1 && err && err->code == PL_LIMIT);
    }
}

static struct pl_str error_at(struct pl_json *j, size_t offset)
{
    struct pl_error *err = NULL;

    j->failed = false;
    j->err = &err;
    CHECK_INT(pl__json_error(j, j->start + offset, PL_INVALID, "no"), -1);
    return err ? err->message : PL_STR("");
}

static void test_positions(void)
{
    static const struct pl_position items[] = {
        { 2, 10, 3 }, { 5, 11, 1 }, { 5, 12, 7 }, { 9, 20, 2 }
    };
    static const struct pl_position_map map = { items, 4 }, none = { NULL, 0 };
    struct pl_json j;

    CASE("positions of a map");
    pl__json_init(&j, PL_STR("0123456789"), PL_STR("x.yaml"), &arena, 0, NULL);
    j.positions = &map;
    CHECK_STR(error_at(&j, 0), "x.yaml:1:1: no");
    CHECK_STR(error_at(&j, 2), "x.yaml:10:3: no");
    CHECK_STR(error_at(&j, 4), "x.yaml:10:3: no");
    CHECK_STR(error_at(&j, 5), "x.yaml:12:7: no");
    CHECK_STR(error_at(&j, 8), "x.yaml:12:7: no");
    CHECK_STR(error_at(&j, 10), "x.yaml:20:2: no");
    CASE("an empty map");
    j.positions = &none;
    CHECK_STR(error_at(&j, 3), "x.yaml:1:1: no");
    CASE("no source, no map");
    j.positions = NULL;
    j.source = PL_STR("");
    CHECK_STR(error_at(&j, 3), "1:4: no");
}

static void test_first_error_stays(void)
{
    struct pl_error *err = NULL;
    struct pl_str key;
    struct pl_json j;

    CASE("after an error all reads fail and the first error stays");
    pl__json_init(&j, PL_STR("[1] {\"a\":1}"), PL_STR("t"), &arena, 0, &err);
    CHECK_INT(pl__json_object(&j), -1);
    CHECK_INT(pl__json_key(&j, &key), -1);
    CHECK_INT(pl__json_item(&j), -1);
    CHECK_INT(pl__json_skip(&j), -1);
    CHECK_INT(pl__json_skip_fast(&j), -1);
    CHECK_INT(pl__json_peek(&j), -1);
    CHECK(pl__json_at_end(&j));
    CHECK_STR(pl__error_text(&arena, err), "t:1:1: expected an object, found a list");
    CASE("nobody wants to know");
    pl__json_init(&j, PL_STR("x"), PL_STR("t"), &arena, 0, NULL);
    CHECK_INT(pl__json_skip(&j), -1);
    CASE("no bytes at all");
    pl__json_init(&j, (struct pl_str){ NULL, 0 }, PL_STR("t"), &arena, 0, &err);
    CHECK(pl__json_at_end(&j));
    CHECK_INT(pl__json_peek(&j), -1);
}

static void test_peek(void)
{
    static const struct {
        const char *text;
        int type;
    } rows[] = {
        { "{", JSON_OBJECT }, { " [", JSON_ARRAY }, { "\"", JSON_STRING },
        { "-", JSON_NUMBER }, { "0", JSON_NUMBER }, { "9", JSON_NUMBER },
        { "t", JSON_TRUE },   { "f", JSON_FALSE },  { "n", JSON_NULL },
        { "x", -1 },          { "", -1 },           { "}", -1 },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pl_json j;
        CASE("peek at %s", rows[i].text);
        pl__json_init(&j, pl__str(rows[i].text), PL_STR("t"), &arena, 0, NULL);
        CHECK_INT(pl__json_peek(&j), rows[i].type);
    }
}

/* --- field tables ------------------------------------------------------------------------------ */

struct part {
    struct pl_str name;
    int64_t weight;
};

struct thing {
    struct pl_str name;
    bool paused;
    int64_t replicas;
    int64_t deleted_ms;
    bool has_spec;
    bool has_ref;
    struct pl_str ref_name;
    struct pl_str ref_kind;
    struct part part;
    struct {
        struct pl_str dotted;
        struct pl_str plain;
    } labels;
    PL_LIST(struct part) parts;
    PL_LIST(struct part) few;
    PL_LIST(struct part) heavy;
    PL_LIST(struct pl_str) words;
    int64_t sum;
    struct pl_str last;
};

static const struct pl_field part_fields[] = {
    PL_FIELD("name", F_STR, struct part, name),
    PL_FIELD("weight", F_INT, struct part, weight),
};
static PL_SHAPE(part_shape, struct part, part_fields);

static const struct pl_shape few_shape = { part_fields, 2, sizeof(struct part), 3, NULL };

static bool part_is_heavy(void *item)
{
    return ((const struct part *)item)->weight > 10;
}
static const struct pl_shape heavy_shape = { part_fields, 2, sizeof(struct part), 2,
                                             part_is_heavy };

static const struct pl_field label_fields[] = {
    PL_FIELD("a.b/c", F_STR, struct thing, labels.dotted),
    PL_FIELD("a", F_STR, struct thing, labels.plain),
};
static PL_SHAPE(label_shape, struct thing, label_fields);

/* A list of whole numbers, as their sum. */
static int read_sum(struct pl_json *j, void *destination)
{
    int64_t *sum = destination, value;
    int more;

    for (more = pl__json_array(j); (more = pl__json_item(j)) > 0;) {
        if (pl__json_int(j, &value) < 0)
            return -1;
        if (value < 0)
            return pl__json_error(j, j->at, PL_INVALID, "less than nothing");
        *sum += value;
    }
    return more;
}

static const struct pl_field thing_fields[] = {
    PL_FIELD("metadata.name", F_STR, struct thing, name),
    PL_FIELD_SKIP("metadata.managedFields"),
    PL_FIELD("metadata.deletionTimestamp", F_TIME, struct thing, deleted_ms),
    /* At offset 0, since its rows are of struct thing. */
    { .path = "metadata.labels", .path_len = 15, .kind = F_MAP, .shape = &label_shape },
    PL_FIELD("spec", F_PRESENT, struct thing, has_spec),
    PL_FIELD("spec.paused", F_BOOL, struct thing, paused),
    PL_FIELD("spec.replicas", F_INT, struct thing, replicas),
    PL_FIELD("spec.ref", F_PRESENT, struct thing, has_ref),
    PL_FIELD("spec.ref.name", F_STR, struct thing, ref_name),
    PL_FIELD("spec.ref.kind", F_STR, struct thing, ref_kind),
    PL_FIELD_SHAPE("spec.part", F_OBJECT, struct thing, part, &part_shape),
    PL_FIELD_SHAPE("parts", F_LIST, struct thing, parts, &part_shape),
    PL_FIELD_SHAPE("few", F_LIST, struct thing, few, &few_shape),
    PL_FIELD_SHAPE("heavy", F_LIST, struct thing, heavy, &heavy_shape),
    PL_FIELD("words", F_STRINGS, struct thing, words),
    PL_FIELD_CUSTOM("sum", struct thing, sum, read_sum),
    PL_FIELD("last", F_STR, struct thing, last),
};
static PL_SHAPE(thing_shape, struct thing, thing_fields);

/* Returns the error's text, or "". */
static struct pl_str decode(struct pl_str text, struct thing *thing)
{
    struct pl_error *err = NULL;
    struct pl_json j;

    memset(thing, 0, sizeof *thing);
    pl__json_init(&j, guarded_put(&guard, text), PL_STR("t.json"), &arena, 0, &err);
    int result = pl__json_decode(&j, &thing_shape, thing);
    CHECK(!j.path);
    CHECK_INT(result, err ? -1 : 0);
    return err ? pl__error_text(&arena, err) : PL_STR("");
}

static const char whole_thing[] =
    "{\n  \"metadata\": {\"name\": \"x\", \"managedFields\": [{\"a\\\"]\": [1, {}]}],\n"
    "    \"deletionTimestamp\": \"2026-11-15T02:00:00Z\", \"other\": {\"name\": [\"no\", 1e5]},\n"
    "    \"labels\": {\"a.b/c\": \"dotted\", \"a\": \"plain\", \"b\": \"no\"}},\n"
    "  \"spec\": {\"paused\": true, \"replicas\": -3, \"ref\": {\"name\": \"r\", \"kind\": "
    "\"K\\u00e9\"},\n"
    "    \"part\": {\"name\": \"p\", \"weight\": 7}},\n"
    "  \"parts\": [{\"name\": \"a\"}, {}, {\"weight\": 2, \"name\": \"c\"}, {}, {\"name\": "
    "\"e\"}],\n"
    "  \"few\": [], \"heavy\": [{\"weight\": 1}, {\"weight\": 11, \"name\": \"h\"}, {\"weight\": "
    "10}],\n"
    "  \"words\": [\"one\", \"\", \"three\"], \"sum\": [1, 2, 39], \"last\": \"end\"\n}\n";

static void test_decode_all_kinds(void)
{
    struct thing t;

    CASE("every kind of field");
    CHECK_STR(decode(pl__str(whole_thing), &t), "");
    CHECK_STR(t.name, "x");
    CHECK_INT(t.deleted_ms, INT64_C(1794708000000));
    CHECK_STR(t.labels.dotted, "dotted");
    CHECK_STR(t.labels.plain, "plain");
    CHECK(t.paused && t.has_spec && t.has_ref);
    CHECK_INT(t.replicas, -3);
    CHECK_STR(t.ref_name, "r");
    CHECK_STR(t.ref_kind, "K\xc3\xa9");
    CHECK_STR(t.part.name, "p");
    CHECK_INT(t.part.weight, 7);
    CHECK(t.parts.present && t.parts.count == 5);
    CHECK_STR(t.parts.items[0].name, "a");
    CHECK_STR(t.parts.items[1].name, "");
    CHECK_INT(t.parts.items[2].weight, 2);
    CHECK_STR(t.parts.items[4].name, "e");
    CHECK(t.few.present && t.few.count == 0);
    CHECK(t.heavy.count == 1);
    CHECK_STR(t.heavy.items[0].name, "h");
    CHECK(t.words.count == 3);
    CHECK_STR(t.words.items[2], "three");
    CHECK_INT(t.sum, 42);
    CHECK_STR(t.last, "end");
}

static void test_decode_null(void)
{
    struct thing t, zero;

    memset(&zero, 0, sizeof zero);
    CASE("null is absent, for every kind");
    CHECK_STR(decode(PL_STR("{\"metadata\":null,\"spec\":null,\"parts\":null,\"few\":null,"
                            "\"words\":null,\"sum\":null,\"last\":null}"),
                     &t),
              "");
    CHECK(memcmp(&t, &zero, sizeof t) == 0);
    CHECK_STR(decode(PL_STR("{\"metadata\":{\"name\":null,\"managedFields\":null,"
                            "\"deletionTimestamp\":null,\"labels\":null}}"),
                     &t),
              "");
    CHECK(memcmp(&t, &zero, sizeof t) == 0);
    CHECK_STR(decode(PL_STR("{\"spec\":{\"paused\":null,\"replicas\":null,\"ref\":null,"
                            "\"part\":null}}"),
                     &t),
              "");
    CHECK(t.has_spec);
    t.has_spec = false;
    CHECK(memcmp(&t, &zero, sizeof t) == 0);
    CASE("an empty time is absent");
    CHECK_STR(decode(PL_STR("{\"metadata\":{\"deletionTimestamp\":\"\"}}"), &t), "");
    CHECK_INT(t.deleted_ms, 0);
    CASE("a dropped item leaves nothing in the next");
    CHECK_STR(decode(PL_STR("{\"heavy\":[{\"name\":\"light\",\"weight\":1},{\"weight\":11}]}"), &t),
              "");
    CHECK(t.heavy.count == 1 && t.heavy.items[0].name.len == 0);
    CASE("an empty object");
    CHECK_STR(decode(PL_STR("{}"), &t), "");
    CHECK(memcmp(&t, &zero, sizeof t) == 0);
    CASE("present though empty");
    CHECK_STR(decode(PL_STR("{\"spec\":{\"ref\":{}}}"), &t), "");
    CHECK(t.has_spec && t.has_ref);
}

static void test_decode_keys(void)
{
    struct thing t;

    CASE("a key with a dot is no path");
    CHECK_STR(decode(PL_STR("{\"metadata.name\":\"no\",\"spec.ref\":{\"name\":1},\"\":1}"), &t),
              "");
    CHECK_STR(t.name, "");
    CHECK(!t.has_ref);
    CASE("prefixes of names are other names");
    CHECK_STR(decode(PL_STR("{\"meta\":1,\"metadat\":1,\"metadata_\":1,\"la\":1,\"lastt\":2,"
                            "\"spec\":{\"re\":1,\"rep\":2,\"refs\":3}}"),
                     &t),
              "");
    CASE("a key written with escapes");
    CHECK_STR(decode(PL_STR("{\"l\\u0061st\":\"ok\"}"), &t), "");
    CHECK_STR(t.last, "ok");
    CASE("names count at their level only");
    CHECK_STR(decode(PL_STR("{\"name\":1,\"replicas\":\"x\",\"metadata\":{\"metadata\":{}}}"), &t),
              "");
    CASE("unknown keys may repeat");
    CHECK_STR(decode(PL_STR("{\"x\":1,\"x\":2,\"metadata\":{\"x\":1,\"x\":2}}"), &t), "");
}

/* clang-format off */
static const struct text_row decode_rows[] = {
    BAD("[]",                            "1:1", ": expected an object, found a list"),
    BAD("null",                          "1:1", ": expected an object, found null"),
    BAD("",                              "1:1", ": unexpected end of input"),
    BAD("\xef\xbb\xbf{}",                "1:1", ": byte order mark (BOM)"),
    BAD("{\"metadata\":{\"name\":1}}",   "1:21", ": metadata.name: expected a string, found a number"),
    BAD("{\"metadata\":[]}",             "1:13", ": metadata: expected an object, found a list"),
    BAD("{\"spec\":\"x\"}",              "1:9",  ": spec: expected an object, found a string"),
    BAD("{\"spec\":{\"replicas\":\"1\"}}", "1:21", ": spec.replicas: expected a whole number, found a string"),
    BAD("{\"spec\":{\"replicas\":1.5}}", "1:21", ": spec.replicas: expected a whole number, found 1.5"),
    BAD("{\n \"spec\": {\n  \"replicas\": 9223372036854775808}}", "3:15", ": spec.replicas: whole number out of range"),
    BAD("{\"spec\":{\"paused\":\"true\"}}", "1:19", ": spec.paused: expected true or false, found a string"),
    BAD("{\"spec\":{\"paused\":0}}",     "1:19", ": spec.paused: expected true or false, found a number"),
    BAD("{\"spec\":{\"ref\":true}}",     "1:16", ": spec.ref: expected an object, found true"),
    BAD("{\"spec\":{\"ref\":{\"name\":[]}}}", "1:24", ": spec.ref.name: expected a string, found a list"),
    BAD("{\"spec\":{\"part\":3}}",       "1:17", ": spec.part: expected an object, found a number"),
    BAD("{\"spec\":{\"part\":{\"weight\":{}}}}", "1:27", ": spec.part.weight: expected a whole number, found an object"),
    BAD("{\"metadata\":{\"deletionTimestamp\":3}}", "1:34", ": metadata.deletionTimestamp: expected a time, found a number"),
    BAD("{\"metadata\":{\"deletionTimestamp\":\"soon\"}}", "1:34", ": metadata.deletionTimestamp: expected a time like 2026-"),
    BAD("{\"metadata\":{\"labels\":{\"a.b/c\":1}}}", "1:32", ": metadata.labels[a.b/c]: expected a string, found a number"),
    BAD("{\"metadata\":{\"labels\":[]}}",  "1:23", ": metadata.labels: expected an object, found a list"),
    BAD("{\"parts\":{}}",                "1:10", ": parts: expected a list, found an object"),
    BAD("{\"parts\":[{},1]}",            "1:14", ": parts[1]: expected an object, found a number"),
    BAD("{\"parts\":[{},null]}",         "1:14", ": parts[1]: expected an object, found null"),
    BAD("{\"parts\":[{},{},{\"weight\":\"x\"}]}", "1:27", ": parts[2].weight: expected a whole number, found a string"),
    BAD("{\"few\":[{},{},{},{}]}",       "1:18", ": few[3]: more than 3 items"),
    BAD("{\"heavy\":[{},{},{},{\"weight\":11},{},{\"weight\":11},{}]}", "1:51", ": heavy[6]: more than 2 items"),
    BAD("{\"words\":[\"a\",1]}",         "1:15", ": words[1]: expected a string, found a number"),
    BAD("{\"words\":[null]}",            "1:11", ": words[0]: expected a string, found null"),
    BAD("{\"words\":\"a\"}",             "1:10", ": words: expected a list, found a string"),
    BAD("{\"sum\":[1,\"2\"]}",           "1:11", ": sum: expected a whole number, found a string"),
    BAD("{\"sum\":[1,-2]}",              "1:13", ": sum: less than nothing"),
    BAD("{\"last\":\"a\",\"last\":\"b\"}", "1:13", ": duplicate key \"last\""),
    BAD("{\"last\":\"a\", \"l\\u0061st\":\"b\"}", "1:14", ": duplicate key \"last\""),
    BAD("{\"last\":null,\"last\":null}", "1:14", ": duplicate key \"last\""),
    BAD("{\"spec\":{},\n\"spec\":{}}",   "2:1",  ": duplicate key \"spec\""),
    BAD("{\"metadata\":{},\"x\":1,\"metadata\":{}}", "1:22", ": duplicate key \"metadata\""),
    BAD("{\"spec\":{\"ref\":{},\"ref\":{}}}", "1:19", ": spec: duplicate key \"ref\""),
    BAD("{\"spec\":{\"part\":{},\"part\":{}}}", "1:20", ": spec: duplicate key \"part\""),
    BAD("{\"spec\":{\"ref\":{\"name\":\"\",\"name\":\"\"}}}", "1:27", ": spec.ref: duplicate key \"name\""),
    BAD("{\"parts\":[{\"name\":\"\",\"name\":\"\"}]}", "1:22", ": parts[0]: duplicate key \"name\""),
    BAD("{\"metadata\":{\"managedFields\":[],\"managedFields\":[]}}", "1:33", ": metadata: duplicate key \"managedFields\""),
    BAD("{\"metadata\":{\"labels\":{\"a\":\"\",\"a\":\"\"}}}", "1:31", ": metadata.labels: duplicate key \"a\""),
    BAD("{\"metadata\":{\"managedFields\":[{]", "1:33", ": metadata.managedFields: unexpected end of input"),
    /* there brackets only have to balance, so it is metadata that is cut short */
    BAD("{\"metadata\":{\"managedFields\":[{]}", "1:34", ": metadata: unexpected end of input"),
    BAD("{\"metadata\":{\"managedFields\":[\"", "1:32", ": metadata.managedFields: unexpected end of input"),
    BAD("{\"metadata\":{\"managedFields\":x}}", "1:30", ": metadata.managedFields: expected a value, found 'x'"),
    BAD("{\"spec\":{\"x\":[01]}}",       "1:15", ": spec: number with a leading zero"),
    BAD("{\"spec\":nil}",                "1:9",  ": spec: bad literal"),
    BAD("{\"last\":\"a\"",               "1:12", ": unexpected end of input"),
    BAD("{\"last\":\"a",                 "1:11", ": last: unexpected end of input"),
    BAD("{\"last\":\"a\" \"x\":1}",      "1:13", ": expected ',' or '}', found a string"),
    BAD("{\"last\":\"a\",}",             "1:13", ": trailing comma before '}'"),
    BAD("{last:1}",                      "1:2",  ": expected a key, found 'l'"),
};
/* clang-format on */

static void test_decode_errors(void)
{
    for (size_t i = 0; i < sizeof decode_rows / sizeof decode_rows[0]; i++) {
        const struct text_row *row = &decode_rows[i];
        struct thing t;
        char want[256];

        CASE("decode row %zu: %.*s", i, (int)row->len, row->text);
        pl__arena_reset(&arena);
        struct pl_str got = decode((struct pl_str){ row->text, row->len }, &t);
        snprintf(want, sizeof want, "t.json:%s%s", row->at, row->message);
        if (!pl__str_starts_with(got, pl__str(want)))
            test_fail(__FILE__, __LINE__, "got \"%.*s\", want \"%s\"", PL_STR_ARG(got), want);
    }
}

/* Every prefix of a good text is cut short, and the error says so and points at the end. */
static void test_truncation(void)
{
    static const read_fn readers[] = { pl__json_skip, walk, pl__json_skip_fast };
    struct pl_str whole = pl__str(whole_thing);
    struct thing t;

    while (whole.ptr[whole.len - 1] == '\n')
        whole.len--;
    for (size_t len = 1; len < whole.len; len++) {
        struct pl_str cut = { whole.ptr, len };
        char want[64];
        int line = 1, column = 1;

        CASE("cut after %zu bytes", len);
        for (size_t i = 0; i < len; i++) {
            column = cut.ptr[i] == '\n' ? 1 : column + 1;
            line += cut.ptr[i] == '\n';
        }
        snprintf(want, sizeof want, "t.json:%d:%d: ", line, column);
        for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++) {
            struct pl_str got = read_all(cut, 0, readers[i]);
            CHECK(pl__str_starts_with(got, pl__str(want)) && pl__str_ends_with(got, PL_STR(END)));
        }
        pl__arena_reset(&arena);
        struct pl_str got = decode(cut, &t);
        CHECK(pl__str_starts_with(got, pl__str(want)) && pl__str_ends_with(got, PL_STR(END)));
    }
}

static void test_documents(void)
{
    struct pl_str text = PL_STR("{\"last\":\"1\"}\n{\"last\":\"2\"}{\"last\":\"3\"} \n\n");
    struct pl_error *err = NULL;
    struct pl_json j;
    int count = 0;

    CASE("several documents");
    pl__json_init(&j, guarded_put(&guard, text), PL_STR("t"), &arena, 0, &err);
    while (!pl__json_at_end(&j)) {
        struct thing t = { 0 };
        CHECK_INT(pl__json_decode(&j, &thing_shape, &t), 0);
        if (err)
            break;
        count++;
        CHECK(t.last.len == 1 && t.last.ptr[0] == '0' + count);
    }
    CHECK_INT(count, 3);
}

static void test_long_list(void)
{
    struct pl_arena text_arena;
    struct pl_error *err = NULL;
    struct pl_buf text;
    struct pl_json j;
    struct thing t = { 0 };

    CASE("a list of the default maximum, and one more");
    pl__arena_init(&text_arena, NULL, 0);
    pl__buf_init(&text, &text_arena, (size_t)8 << 20);
    pl__buf_add_lit(&text, "{\"words\":[");
    for (int i = 0; i < 100000; i++)
        pl__buf_printf(&text, "\"w%d\",", i);
    text.len--;
    pl__buf_add_lit(&text, "]}");
    pl__json_init(&j, pl__buf_str(&text), PL_STR("t"), &arena, 0, &err);
    CHECK_INT(pl__json_decode(&j, &thing_shape, &t), 0);
    CHECK_INT(t.words.count, 100000);
    CHECK_STR(t.words.items[0], "w0");
    CHECK_STR(t.words.items[99999], "w99999");
    text.len -= 2;
    pl__buf_add_lit(&text, ",\"x\"]}");
    pl__json_init(&j, pl__buf_str(&text), PL_STR("t"), &arena, 0, &err);
    t = (struct thing){ 0 };
    CHECK_INT(pl__json_decode(&j, &thing_shape, &t), -1);
    CHECK(err && err->code == PL_LIMIT);
    pl__arena_release(&text_arena);
}

/* --- fast skip against the validating one ------------------------------------------------------ */

static uint64_t random_state = 1;

static uint32_t random_below(uint32_t bound)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(random_state >> 33) % bound;
}

/* Strings made of all that could fool a skip: brackets, quotes, runs of backslashes. */
static void put_tricky_string(struct pl_buf *b)
{
    static const char *const pieces[] = { "[",    "]",       "{",        "}",        "\\\"",
                                          "\\\\", ",",       ":",        " ",        "a",
                                          "\\n",  "\\u005b", "\xc3\xa9", "\\\\\\\"", "\\\\\\\\" };

    pl__buf_add_char(b, '"');
    for (uint32_t n = random_below(12) * random_below(6); n > 0; n--)
        pl__buf_add(b, pl__str(pieces[random_below(sizeof pieces / sizeof pieces[0])]));
    pl__buf_add_char(b, '"');
}

static void put_space(struct pl_buf *b)
{
    if (random_below(4) == 0) {
        for (uint32_t n = random_below(20); n > 0; n--)
            pl__buf_add_char(b, " \n\t\r"[random_below(4)]);
    }
}

static void put_random_value(struct pl_buf *b, uint32_t depth)
{
    uint32_t kind = random_below(depth ? 8 : 3);

    if (kind < 2) {
        put_tricky_string(b);
    } else if (kind == 2) {
        static const char *const scalars[] = { "1", "-2.5e3", "true", "null", "false", "0" };
        pl__buf_add(b, pl__str(scalars[random_below(6)]));
    } else {
        bool object = kind < 6;
        pl__buf_add_char(b, object ? '{' : '[');
        put_space(b);
        for (uint32_t i = 0, n = random_below(4); i < n; i++) {
            if (i)
                pl__buf_add_char(b, ',');
            put_space(b);
            if (object) {
                put_tricky_string(b);
                put_space(b);
                pl__buf_add_char(b, ':');
                put_space(b);
            }
            put_random_value(b, depth - 1);
            put_space(b);
        }
        pl__buf_add_char(b, object ? '}' : ']');
    }
}

/* Where a reader stops, or -1. */
static ptrdiff_t stop_of(struct pl_str text, read_fn read)
{
    struct pl_json j;

    pl__json_init(&j, text, PL_STR("t"), &arena, 0, NULL);
    return read(&j) < 0 ? -1 : j.at - j.start;
}

/* The random value behind `lead` spaces, so that it meets the blocks at every alignment, with
 * brackets behind it that are not its own. */
static struct pl_str random_text(struct pl_buf *b, uint32_t lead)
{
    pl__buf_clear(b);
    for (uint32_t i = 0; i < lead; i++)
        pl__buf_add_char(b, ' ');
    pl__buf_add_char(b, '[');
    put_random_value(b, 5);
    pl__buf_add_char(b, ']');
    return pl__buf_str(b);
}

static void test_fast_skip_agrees(void)
{
    struct pl_arena text_arena;
    struct pl_buf b;

    pl__arena_init(&text_arena, NULL, 0);
    pl__buf_init(&b, &text_arena, (size_t)64 << 10);
    for (uint32_t round = 0; round < 64 * 20; round++) {
        CASE("fast skip, seed 1, round %u", round);
        pl__arena_reset(&arena);
        struct pl_str text = random_text(&b, round % 64);
        size_t value_len = text.len;
        struct pl_str alone = guarded_put(&guard, text);
        CHECK_INT(stop_of(alone, pl__json_skip), (ptrdiff_t)value_len);
        CHECK_INT(stop_of(alone, pl__json_skip_fast), (ptrdiff_t)value_len);

        pl__buf_add_lit(&b, "]}\"\\\"]}[{");
        struct pl_str followed = guarded_put(&guard, pl__buf_str(&b));
        CHECK_INT(stop_of(followed, pl__json_skip), (ptrdiff_t)value_len);
        CHECK_INT(stop_of(followed, pl__json_skip_fast), (ptrdiff_t)value_len);
    }
    pl__arena_release(&text_arena);
}

static void test_fast_skip_truncated(void)
{
    struct pl_arena text_arena;
    struct pl_buf b;

    pl__arena_init(&text_arena, NULL, 0);
    pl__buf_init(&b, &text_arena, (size_t)64 << 10);
    for (uint32_t round = 0; round < 64; round++) {
        CASE("fast skip cut short, seed 1, round %u", round);
        struct pl_str text = random_text(&b, round);
        for (size_t len = 0; len < text.len; len++) {
            pl__arena_reset(&arena);
            struct pl_str cut = guarded_put(&guard, (struct pl_str){ text.ptr, len });
            CHECK_INT(stop_of(cut, pl__json_skip), -1);
            CHECK_INT(stop_of(cut, pl__json_skip_fast), -1);
        }
    }
    pl__arena_release(&text_arena);
}

/* Runs of backslashes before a quote, across every place where a block can end. */
static void test_fast_skip_backslashes(void)
{
    CASE("runs of backslashes");
    for (size_t lead = 0; lead < 130; lead++) {
        for (size_t run = 0; run < 70; run++) {
            char text[300];
            size_t len = 0;
            text[len++] = '[';
            text[len++] = '"';
            memset(text + len, 'a', lead);
            len += lead;
            memset(text + len, '\\', run);
            len += run;
            text[len++] = '"';
            text[len++] = ']';
            size_t stop = len;
            memcpy(text + len, "\"]", 2);
            len += 2;
            struct pl_str guarded = guarded_put(&guard, (struct pl_str){ text, len });
            ptrdiff_t want = (ptrdiff_t)(run % 2 ? len : stop);
            if (stop_of(guarded, pl__json_skip) != want ||
                stop_of(guarded, pl__json_skip_fast) != want)
                test_fail(__FILE__, __LINE__, "lead %zu, run %zu", lead, run);
        }
    }
}

/* Keys of a map by how they begin. */
struct hooks {
    bool own, others;
};
static const struct pl_field hook_fields[] = {
    PL_FIELD("hook.a.io/own", F_PRESENT, struct hooks, own),
    PL_FIELD("hook.a.io/", F_PREFIX, struct hooks, others),
};
static PL_SHAPE(hooks_shape, struct hooks, hook_fields);
static const struct pl_field hooked_fields[] = {
    PL_FIELD_SHAPE("annotations", F_MAP, struct hooks, own, &hooks_shape),
};
static PL_SHAPE(hooked_shape, struct hooks, hooked_fields);

static void test_prefix(void)
{
    static const struct {
        const char *keys;
        bool own, others;
    } cases[] = {
        { "\"x\":\"\"", false, false },
        { "\"hook.a.io/own\":\"\"", true, false },
        { "\"hook.a.io/mine\":\"\",\"hook.a.io/yours\":{}", false, true },
        { "\"hook.a.io/ow\":1,\"hook.a.io/own\":2,\"hook.a.io/owner\":3", true, true },
        { "\"hook.a.io\":\"\",\"xhook.a.io/mine\":\"\"", false, false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hooks hooks = { false, false };
        struct pl_json j;
        CASE("keys that begin alike: %s", cases[i].keys)
        struct pl_str text = pl__str_format(&arena, "{\"annotations\":{%s}}", cases[i].keys);
        pl__json_init(&j, guarded_put(&guard, text), PL_STR("t.json"), &arena, 0, NULL);
        CHECK(pl__json_decode(&j, &hooked_shape, &hooks) == 0);
        CHECK_INT(hooks.own, cases[i].own);
        CHECK_INT(hooks.others, cases[i].others);
    }
}

int main(void)
{
    pl__arena_init(&arena, NULL, 0);
    guarded_init(&guard, (size_t)1 << 20);
    test_texts();
    test_raw();
    test_fast_skip_takes_rows();
    test_strings();
    test_string_lengths();
    test_white_space_lengths();
    test_ints();
    test_depth();
    test_positions();
    test_first_error_stays();
    test_peek();
    test_decode_all_kinds();
    test_decode_null();
    test_decode_keys();
    test_decode_errors();
    test_truncation();
    test_documents();
    test_long_list();
    test_fast_skip_agrees();
    test_fast_skip_truncated();
    test_fast_skip_backslashes();
    test_prefix();
    guarded_release(&guard);
    pl__arena_release(&arena);
    return test_end("json_read");
}
