/* YAML to JSON: what comes out, where errors point, and that limits hold. Scalars were compared
 * with sigs.k8s.io/yaml; docs/internals/yaml.md tells where we differ on purpose. */
#include "base/yaml.h"

#include <stdlib.h>

#include "test.h"

static struct pl_arena arena;

/* Converts with small limits. The JSON, or "error: ..." with the message. */
static struct pl_str convert(struct pl_str yaml, struct pl_yaml_limits limits,
                             struct pl_position_map *positions)
{
    struct pl_str json;
    struct pl_error *err = NULL;

    pl__arena_reset(&arena);
    if (pl__yaml_to_json(&arena, yaml, PL_STR("f"), limits, &json, positions, &err) < 0)
        return pl__str_format(&arena, "error: %.*s", PL_STR_ARG(pl__error_text(&arena, err)));
    return json;
}

static const struct pl_yaml_limits small = { .depth_max = 8, .json_bytes_max = 4096 };

/* clang-format off */
static const struct { const char *yaml, *json; } good[] = {
    /* --- shapes */
    { "a: b", "{\"a\":\"b\"}\n" },
    { "a: {b: [1, two, 3.5]}", "{\"a\":{\"b\":[1,\"two\",3.5]}}\n" },
    { "- a\n- - b\n  - c\n-\n", "[\"a\",[\"b\",\"c\"],null]\n" },
    { "a:\nb: {}\nc: []\n", "{\"a\":null,\"b\":{},\"c\":[]}\n" },
    { "{\"json\": [true, null, -1.5e3, \"x\\ny\"]}", "{\"json\":[true,null,-1500,\"x\\ny\"]}\n" },
    { "{}", "{}\n" },
    { "[]", "[]\n" },
    { "text", "\"text\"\n" },
    { "? a\n: b\n", "{\"a\":\"b\"}\n" },
    { "a: &x 1", "{\"a\":1}\n" },
    /* --- documents; empty ones are left out */
    { "", "" },
    { "# only a comment\n", "" },
    { "---\n---\na: 1\n...\n---\n# nothing\n---\nb: 2\n", "{\"a\":1}\n{\"b\":2}\n" },
    { "--- null\n", "null\n" },
    { "--- ''\n", "\"\"\n" },
    { "%YAML 1.1\n---\na: 1\n", "{\"a\":1}\n" },
    { "\xEF\xBB\xBF" "a: 1\n", "{\"a\":1}\n" },
    /* --- strings */
    { "a: 'it''s'", "{\"a\":\"it's\"}\n" },
    { "a: \"q\\\" b\\\\ t\\t n\\n r\\r e\\e u\\u00e9 \\U0001F600\"",
      "{\"a\":\"q\\\" b\\\\ t\\t n\\n r\\u000d e\\u001b u\xC3\xA9 \xF0\x9F\x98\x80\"}\n" },
    { "a: |\n  one\n  two\n", "{\"a\":\"one\\ntwo\\n\"}\n" },
    { "a: >-\n  one\n  two\n", "{\"a\":\"one two\"}\n" },
    { "a: \xC3\xA9\xE2\x82\xAC", "{\"a\":\"\xC3\xA9\xE2\x82\xAC\"}\n" },
    { "a: http://b:80/c", "{\"a\":\"http://b:80/c\"}\n" },
    { "a: 1:30", "{\"a\":\"1:30\"}\n" },
    { "a: -b_c\nb: 50cent_of_dollar\nc: +\nd: '-'\n", "{\"a\":\"-b_c\",\"b\":\"50cent_of_dollar\",\"c\":\"+\",\"d\":\"-\"}\n" },
    { "v: v1.30.0\nip: 10.0.0.1\n", "{\"v\":\"v1.30.0\",\"ip\":\"10.0.0.1\"}\n" },
    { "a: =\nb: '<<'\nc: <<\n", "{\"a\":\"=\",\"b\":\"<<\",\"c\":\"<<\"}\n" },
    /* --- timestamps stay text */
    { "a: 2026-11-15T02:00:00Z\nb: 2026-11-15\nc: !!timestamp 2026-11-15\n",
      "{\"a\":\"2026-11-15T02:00:00Z\",\"b\":\"2026-11-15\",\"c\":\"2026-11-15\"}\n" },
    /* --- null and booleans */
    { "[~, null, Null, NULL, '', 'null', nULL]", "[null,null,null,null,\"\",\"null\",\"nULL\"]\n" },
    { "[true, True, TRUE, yes, Yes, YES, on, On, ON, y, Y]",
      "[true,true,true,true,true,true,true,true,true,true,true]\n" },
    { "[false, False, FALSE, no, No, NO, off, Off, OFF, n, N]",
      "[false,false,false,false,false,false,false,false,false,false,false]\n" },
    { "['true', \"no\", tRUE, yEs, oN, nO]", "[\"true\",\"no\",\"tRUE\",\"yEs\",\"oN\",\"nO\"]\n" },
    /* --- whole numbers: all digits stay; etcd member ids go up to 2^64 - 1 */
    { "[0, 7, -7, +7, -0, 1_000, 00, 08, 0_9]", "[0,7,-7,7,0,1000,0,8,9]\n" },
    { "[18446744073709551615, 9223372036854775808, -9223372036854775808]",
      "[18446744073709551615,9223372036854775808,-9223372036854775808]\n" },
    { "[10276657743932975437, 123456789012345678901234567890]",
      "[10276657743932975437,123456789012345678901234567890]\n" },
    { "[0x1F, 0XfF, 0o17, 017, 0b101, -0x10, +0b11, 0x_0A_74_AE, 02472256]",
      "[31,255,15,15,5,-16,3,685230,685230]\n" },
    { "[0xFFFFFFFFFFFFFFFF, 0b1_0]", "[18446744073709551615,2]\n" },
    { "[0x, 0b102, 0o8, 0xg, 1__, _1]", "[\"0x\",\"0b102\",\"0o8\",\"0xg\",1,\"_1\"]\n" },
    { "[9999999999999999999, 000777777777777777777777777]", "[9999999999999999999,777777777777777777777777]\n" },
    /* --- numbers with a fraction or an exponent */
    { "[1.5, -.5, .5, 5., +1.25, 3.0, 1e3, 1E-3, 685.230_15e+03]",
      "[1.5,-0.5,0.5,5,1.25,3,1000,0.001,685230.15]\n" },
    { "[1e21, 1e20, 1e22, 1.5e300, 1e-6, 1e-7, 12.5e-9]",
      "[1e+21,100000000000000000000,1e+22,1.5e+300,0.000001,1e-7,1.25e-8]\n" },
    { "[0.0, 0e99, 00.50]", "[0,0,0.5]\n" },
    { "[1e308, 1.797693134862315708145274237317043567981e+308]", "[1e+308,1.797693134862315708145274237317043567981e+308]\n" },
    { "[1e309, 1.7976931348623159e308, 1e99999999999]", "[\"1e309\",\"1.7976931348623159e308\",\"1e99999999999\"]\n" },
    { "[., .e3, 1e, 1e+, 1.2.3, ._5, .5_, .5_5]", "[\".\",\".e3\",\"1e\",\"1e+\",\"1.2.3\",\"._5\",\".5_\",0.55]\n" },
    /* --- tags */
    { "[!!str 12, !!int '12', !!bool 'yes', !!null '', !!float 1, !!float '1.5', !!str ]",
      "[\"12\",12,true,null,1,1.5,\"\"]\n" },
    { "a: !!map {b: !!seq [1]}", "{\"a\":{\"b\":[1]}}\n" },
    { "[! test, ! 12, ! yes]", "[\"test\",\"12\",\"yes\"]\n" },
    { "%TAG !y! tag:yaml.org,2002:\n---\nv: !y!int '1'\n", "{\"v\":1}\n" },
    /* --- keys that are not strings */
    { "{1: a, 0x10: b, true: c, 1.50: d, '': e}",
      "{\"1\":\"a\",\"16\":\"b\",\"true\":\"c\",\"1.5\":\"d\",\"\":\"e\"}\n" },
    { "{y: 1, no: 2, 'y': 3}", "{\"true\":1,\"false\":2,\"y\":3}\n" },
    /* --- anchors */
    { "a: &x {b: 1}\nc: *x\nd: [*x, *x]\n", "{\"a\":{\"b\":1},\"c\":{\"b\":1},\"d\":[{\"b\":1},{\"b\":1}]}\n" },
    { "a: &x 1\nb: &x 2\nc: *x\n", "{\"a\":1,\"b\":2,\"c\":2}\n" },
    { "&k key: 1\nother: *k\n", "{\"key\":1,\"other\":\"key\"}\n" },
    { "a: &k name\n*k : 1\n", "{\"a\":\"name\",\"name\":1}\n" },
    { "a: &x 'true'\nb: *x\n", "{\"a\":\"true\",\"b\":\"true\"}\n" },
    { "a: &e\nb: *e\n", "{\"a\":null,\"b\":null}\n" },
    /* --- merging: the mapping's own keys win wherever "<<" stands, then the first source */
    { "b: &b {x: 1, w: 2}\nc:\n  <<: *b\n  x: 3\n", "{\"b\":{\"x\":1,\"w\":2},\"c\":{\"x\":3,\"w\":2}}\n" },
    { "b: &b {x: 1, w: 2}\nc:\n  x: 3\n  <<: *b\n", "{\"b\":{\"x\":1,\"w\":2},\"c\":{\"x\":3,\"w\":2}}\n" },
    { "c: {<<: [{x: 1}, {x: 2, w: 3}], z: 4}\n", "{\"c\":{\"z\":4,\"w\":3,\"x\":1}}\n" },
    { "a: &a {x: 1}\nb: &b {<<: *a, w: 2}\nc: {<<: *b}\n", "{\"a\":{\"x\":1},\"b\":{\"w\":2,\"x\":1},\"c\":{\"w\":2,\"x\":1}}\n" },
    { "c: {<<: {}}\nd: {<<: []}\n", "{\"c\":{},\"d\":{}}\n" },
    { "c: {<<: &n {x: {w: ',}\"'}}}\nd: *n\n", "{\"c\":{\"x\":{\"w\":\",}\\\"\"}},\"d\":{\"x\":{\"w\":\",}\\\"\"}}}\n" },
    { "c: {\"<<\": 1}\n", "{\"c\":{\"<<\":1}}\n" },
    { "c: {!!merge <<: {x: 1}}\n", "{\"c\":{\"x\":1}}\n" },
};

static const struct { const char *yaml, *error; } bad[] = {
    /* --- syntax: libyaml's words, our place */
    { "a: b: c\n", "f:1:5: not valid YAML: mapping values are not allowed in this context" },
    { "a:\n\tb: 1\n", "f:2:1: not valid YAML: found character that cannot start any token: a tab; indent with spaces" },
    { "a: [1, 2\nb: 3\n", "f:2:2: not valid YAML: did not find expected ',' or ']', while parsing a flow sequence that starts on line 1" },
    { "a: 'open\n", "f:2:1: not valid YAML: found unexpected end of stream, while scanning a quoted scalar that starts on line 1" },
    { "a: {b: 1\n", "f:2:1: not valid YAML: did not find expected ',' or '}', while parsing a flow mapping that starts on line 1" },
    { "a: 1\n b: 2\n", "f:2:3: not valid YAML: mapping values are not allowed in this context" },
    { "a: \"\\ud800\"\n", "f:1:7: not valid YAML: found invalid Unicode character escape code" },
    { "a: @b\n", "f:1:4: not valid YAML: found character that cannot start any token" },
    { "a: \xC3\x28\n", "f:1:5: not valid YAML: invalid trailing UTF-8 octet (0x28); expected UTF-8 text" },
    { "a: 1\nb: \xFF\n", "f:2:4: not valid YAML: invalid leading UTF-8 octet (0xFF); expected UTF-8 text" },
    { "a: \x01\n", "f:1:4: not valid YAML: control characters are not allowed (0x01); expected UTF-8 text" },
    { "%YAML 3.0\n---\na: 1\n", "f:1:1: not valid YAML: found incompatible YAML document" },
    /* --- meaning */
    { "a: \"x\\0y\"\n", "f:1:4: a string with a NUL character (\\0) in it" },
    { "a: .inf\n", "f:1:4: .inf has no form in JSON: quote it if it is text" },
    { "a: [1, -.Inf]\n", "f:1:8: -.Inf has no form in JSON: quote it if it is text" },
    { "a: .NaN\n", "f:1:4: .NaN has no form in JSON: quote it if it is text" },
    { "a: !!float .inf\n", "f:1:4: .inf has no form in JSON: quote it if it is text" },
    { "a: 0x10000000000000000\n", "f:1:4: number 0x10000000000000000 does not fit 64 bits: quote it if it is text" },
    { "a: !!int x\n", "f:1:4: \"x\" does not fit its tag !!int" },
    { "a: !!int 1.5\n", "f:1:4: \"1.5\" does not fit its tag !!int" },
    { "a: !!bool 1\n", "f:1:4: \"1\" does not fit its tag !!bool" },
    { "a: !!null x\n", "f:1:4: \"x\" does not fit its tag !!null" },
    { "a: !!binary aGk=\n", "f:1:4: tag !!binary is not supported: leave it out and keep the base64 text" },
    { "a: !mine x\n", "f:1:4: tag !mine is not supported here" },
    { "a: !!set {b}\n", "f:1:4: tag !!set is not supported here" },
    { "a: !mine [x]\n", "f:1:4: tag !mine is not supported here" },
    /* --- keys */
    { "a: 1\nb: 2\na: 3\n", "f:3:1: key \"a\" is in this mapping twice" },
    { "m:\n  b: 1\n  a: 1\n  a: 2\n  b: 2\n", "f:4:3: key \"a\" is in this mapping twice" },
    { "1: a\n'1': b\n", "f:2:1: key \"1\" is in this mapping twice" },
    { "~: a\n", "f:1:1: a mapping key must not be null or empty: write a name before the colon" },
    { "? \n: a\n", "f:1:2: a mapping key must not be null or empty: write a name before the colon" },
    { "{[a]: b}\n", "f:1:2: a mapping key must be a plain value, not a list or a mapping" },
    { "? {a: 1}\n: b\n", "f:1:3: a mapping key must be a plain value, not a list or a mapping" },
    { "a: &x [1]\n*x : b\n", "f:2:1: a mapping key must be a plain value, not a list or a mapping" },
    /* --- anchors and merging */
    { "a: *x\n", "f:1:4: alias *x: no anchor &x before it" },
    { "--- &x a\n--- *x\n", "f:2:5: alias *x: no anchor &x before it" },
    { "a: &x [*x]\n", "f:1:8: alias *x stands inside its own anchor" },
    { "a: &x {b: {c: *x}}\n", "f:1:15: alias *x stands inside its own anchor" },
    { "a: {<<: 1}\n", "f:1:5: the value of << must be a mapping, an alias of one, or a list of those" },
    { "a: {<<: }\n", "f:1:5: the value of << must be a mapping, an alias of one, or a list of those" },
    { "a: {<<: [{b: 1}, 2]}\n", "f:1:5: the value of << must be a mapping, an alias of one, or a list of those" },
    { "a: {<<: {b: 1}, <<: {c: 1}}\n", "f:1:17: key \"<<\" is in this mapping twice" },
    { "a: &a {<<: *a}\n", "f:1:12: alias *a stands inside its own anchor" },
    /* --- limits: eight levels, 4,096 bytes */
    { "[[[[[[[[[1]]]]]]]]]", "f:1:9: nested deeper than 8 levels" },
    { "a: &x [[[[1]]]]\nb: [[[[*x]]]]\n", "f:2:8: nested deeper than 8 levels" },
};
/* clang-format on */

static void test_tables(void)
{
    struct pl_position_map positions;

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        CASE("good %zu: %s", i, good[i].yaml)
        CHECK_STR(convert(pl__str(good[i].yaml), small, &positions), good[i].json);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CASE("bad %zu: %s", i, bad[i].yaml)
        struct pl_str got = convert(pl__str(bad[i].yaml), small, &positions);
        CHECK(pl__str_starts_with(got, PL_STR("error: ")));
        CHECK_STR(((struct pl_str){ got.ptr + 7, got.len - 7 }), bad[i].error);
    }
}

/* The position that belongs to the first place where `part` stands in the JSON. */
static struct pl_position position_of(struct pl_str json, struct pl_position_map map,
                                      const char *part)
{
    struct pl_position found = { 0 };
    const char *at = strstr(json.ptr, part);

    for (size_t i = 0; at && i < map.count && map.items[i].offset <= (size_t)(at - json.ptr); i++)
        found = map.items[i];
    return found;
}

static void test_positions(void)
{
    /* clang-format off */
    static const struct { const char *part; uint32_t line, column; } places[] = {
        { "{\"items\"", 1, 1 },
        { "\"items\"", 1, 1 }, { "[{", 2, 1 },   { "{\"name\"", 2, 3 },
        { "\"cp-0\"", 2, 9 },  { "\"ready\"", 3, 3 }, { "true", 3, 10 },
        { "\"copy\"", 4, 3 },  { "\"deep\"", 4, 10 },
        { "\"own\"", 5, 9 },   { "\"z\"", 5, 17 },
        { "\"second\"", 8, 1 },
    };
    /* clang-format on */
    struct pl_position_map map;
    struct pl_str json = convert(PL_STR("items:\n"
                                        "- name: cp-0\n"
                                        "  ready: yes\n"
                                        "  copy: {deep: 1}\n"
                                        "merge: {own: 1, <<: {z: 2}}\n"
                                        "# a comment\n"
                                        "---\n"
                                        "second: 1\n"),
                                 small, &map);

    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        CASE("position of %s", places[i].part)
        struct pl_position at = position_of(json, map, places[i].part);
        CHECK_INT(at.line, places[i].line);
        CHECK_INT(at.column, places[i].column);
    }
    CASE("positions are sorted by offset")
    for (size_t i = 1; i < map.count; i++)
        CHECK(map.items[i - 1].offset <= map.items[i].offset);
    CASE("the JSON reader's errors point into the YAML")
    struct pl_json j;
    struct pl_error *err = NULL;
    struct pl_str value;
    pl__json_init(&j, json, PL_STR("f"), &arena, 8, &err);
    j.positions = &map;
    CHECK(pl__json_object(&j) == 0 && pl__json_key(&j, &value) == 1);
    CHECK(pl__json_string(&j, &value) < 0);
    CHECK(err && pl__str_starts_with(pl__error_text(&arena, err), PL_STR("f:2:1: ")));
}

static void test_limits(void)
{
    struct pl_position_map positions;
    struct pl_buf yaml;
    struct pl_arena text;

    pl__arena_init(&text, NULL, 0);
    CASE("aliases of aliases end at the byte limit")
    struct pl_str got = convert(PL_STR("a: &a [x,x,x,x,x,x,x,x,x]\n"
                                       "b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
                                       "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
                                       "d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n"
                                       "e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\n"),
                                small, &positions);
    CHECK_STR(
        got, "error: f:4:8: more than 4096 bytes once aliases are replaced by what they stand for");

    CASE("nested anchors count what they keep")
    got = convert(PL_STR("&a [&b [&c [&d [&e ['0123456789012345678901234567890123456789']]]]]"),
                  (struct pl_yaml_limits){ 8, 128 }, &positions);
    CHECK_STR(got, "error: f:1:65: anchors hold more than 128 bytes");

    CASE("a long text past the byte limit")
    pl__buf_init(&yaml, &text, 1 << 20);
    pl__buf_add_lit(&yaml, "a: ");
    for (int i = 0; i < 5000; i++)
        pl__buf_add_char(&yaml, 'x');
    got = convert(pl__buf_str(&yaml), small, &positions);
    CHECK_STR(
        got, "error: f:1:4: more than 4096 bytes once aliases are replaced by what they stand for");

    CASE("more anchors than allowed")
    pl__buf_clear(&yaml);
    for (int i = 0; i < 4097; i++)
        pl__buf_printf(&yaml, "- &a%d x\n", i);
    got = convert(pl__buf_str(&yaml), (struct pl_yaml_limits){ 8, 1 << 20 }, &positions);
    CHECK_STR(got, "error: f:4097:3: more than 4096 anchors in one document");

    CASE("many keys, in falling order, and the last one twice")
    pl__buf_clear(&yaml);
    for (int i = 20000; i > 0; i--)
        pl__buf_printf(&yaml, "k%05d: 1\n", i);
    got = convert(pl__buf_str(&yaml), (struct pl_yaml_limits){ 8, 1 << 20 }, &positions);
    CHECK(pl__str_starts_with(got, PL_STR("{\"k20000\":1,")));
    pl__buf_add_lit(&yaml, "k20000: 2\n");
    got = convert(pl__buf_str(&yaml), (struct pl_yaml_limits){ 8, 1 << 20 }, &positions);
    CHECK_STR(got, "error: f:20001:1: key \"k20000\" is in this mapping twice");

    CASE("deep nesting is refused at once, however deep")
    pl__buf_clear(&yaml);
    for (int i = 0; i < 200000; i++)
        pl__buf_add_char(&yaml, '[');
    got = convert(pl__buf_str(&yaml), (struct pl_yaml_limits){ 0, 1 << 20 }, &positions);
    CHECK_STR(got, "error: f:1:65: nested deeper than 64 levels");

    CASE("a NUL byte, which ends no string here")
    got = convert((struct pl_str){ "a: 1\0b", 6 }, small, &positions);
    CHECK(pl__str_starts_with(got, PL_STR("error: f:1:5: ")));

    CASE("UTF-16 with its byte order mark")
    got = convert((struct pl_str){ "\xFF\xFE\x61\0:\0 \0\xE9\0", 10 }, small, &positions);
    CHECK_STR(got, "{\"a\":\"\xC3\xA9\"}\n");
    pl__arena_release(&text);
}

/* Every prefix of a document is an error or is JSON; memory checkers see the error paths. */
static void test_prefixes(void)
{
    static const char text[] = "a: &x {b: [1, 'two', \"th\\u0072ee\", !!str 4], c: ~}\n"
                               "d:\n  <<: [*x, {e: 1}]\n  f: |\n    text\n"
                               "*x : no\n";
    struct pl_position_map positions;

    CASE("every prefix")
    for (size_t len = 0; len < sizeof text; len++) {
        char *copy = malloc(len ? len : 1); /* exact size: a read past it shows */
        memcpy(copy, text, len);
        struct pl_str got = convert((struct pl_str){ copy, len }, small, &positions);
        free(copy);
        if (pl__str_starts_with(got, PL_STR("error: f:")))
            continue;
        struct pl_json j;
        struct pl_error *err = NULL;
        pl__json_init(&j, got, PL_STR("f"), &arena, 8, &err);
        while (!pl__json_at_end(&j) && pl__json_skip(&j) == 0) {
        }
        CHECK(!err);
    }
}

int main(void)
{
    pl__arena_init(&arena, NULL, 0);
    test_tables();
    test_positions();
    test_limits();
    test_prefixes();
    pl__arena_release(&arena);
    return test_end("base/yaml");
}
