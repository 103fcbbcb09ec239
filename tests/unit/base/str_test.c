/* Views of bytes. */
#include "test.h"

#include "base/str.h"

static const struct pl_str missing = { NULL, 0 };

static void test_equal(void)
{
    CASE("equal");
    CHECK(pl__str_equal(PL_STR("abc"), PL_STR("abc")));
    CHECK(!pl__str_equal(PL_STR("abc"), PL_STR("abd")));
    CHECK(!pl__str_equal(PL_STR("abc"), PL_STR("ab")));
    CHECK(pl__str_equal(PL_STR("a\0b"), PL_STR("a\0b")));
    CHECK(!pl__str_equal(PL_STR("a\0b"), PL_STR("a\0c")));
    CASE("empty and missing are the same");
    CHECK(pl__str_equal(missing, PL_STR("")));
    CHECK(pl__str_equal(pl__str(NULL), missing));
    CHECK_INT(pl__str("abc").len, 3);
}

static void test_compare(void)
{
    static const struct pl_str sorted[] = {
        PL_STR_INIT(""),     PL_STR_INIT("\0"),   PL_STR_INIT("A"), PL_STR_INIT("a"),
        PL_STR_INIT("a\0"),  PL_STR_INIT("aa"),   PL_STR_INIT("b"), PL_STR_INIT("\x7f"),
        PL_STR_INIT("\x80"), PL_STR_INIT("\xff"),
    };
    const int count = sizeof sorted / sizeof sorted[0];

    CASE("byte order");
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < count; k++) {
            int order = pl__str_compare(sorted[i], sorted[k]);
            CHECK_INT((order > 0) - (order < 0), (i > k) - (i < k));
        }
    }
    CHECK_INT(pl__str_compare(missing, PL_STR("")), 0);
}

static void test_parts(void)
{
    CASE("starts with");
    CHECK(pl__str_starts_with(PL_STR("abc"), PL_STR("ab")));
    CHECK(pl__str_starts_with(PL_STR("abc"), PL_STR("abc")));
    CHECK(!pl__str_starts_with(PL_STR("abc"), PL_STR("abcd")));
    CHECK(!pl__str_starts_with(PL_STR("abc"), PL_STR("b")));
    CHECK(pl__str_starts_with(missing, missing));
    CASE("ends with");
    CHECK(pl__str_ends_with(PL_STR("abc"), PL_STR("bc")));
    CHECK(pl__str_ends_with(PL_STR("abc"), PL_STR("")));
    CHECK(!pl__str_ends_with(PL_STR("abc"), PL_STR("ab")));
    CHECK(!pl__str_ends_with(PL_STR("c"), PL_STR("bc")));
    CHECK(pl__str_ends_with(missing, missing));
    CASE("contains");
    CHECK(pl__str_contains(PL_STR("abc"), PL_STR("b")));
    CHECK(pl__str_contains(PL_STR("abc"), PL_STR("abc")));
    CHECK(pl__str_contains(PL_STR("abc"), PL_STR("")));
    CHECK(pl__str_contains(PL_STR("aab"), PL_STR("ab")));
    CHECK(!pl__str_contains(PL_STR("abc"), PL_STR("ac")));
    CHECK(!pl__str_contains(PL_STR("ab"), PL_STR("abc")));
    CHECK(!pl__str_contains(missing, PL_STR("a")));
}

static void test_copies(void)
{
    struct pl_arena a;
    char text[] = "abc";

    pl__arena_init(&a, NULL, 0);
    CASE("a copy stays, with a NUL behind it");
    struct pl_str copy = pl__str_copy(&a, (struct pl_str){ text, 2 });
    text[0] = 'X';
    CHECK_STR(copy, "ab");
    CHECK(copy.ptr[2] == '\0');
    CASE("a copy of nothing");
    CHECK(pl__str_copy(&a, missing).ptr[0] == '\0');
    CASE("formatted");
    copy = pl__str_format(&a, "%s-%d", "cp", 7);
    CHECK_STR(copy, "cp-7");
    CHECK(copy.ptr[copy.len] == '\0');
    CHECK_STR(pl__str_format(&a, "%s", ""), "");
    CASE("formatted, long");
    copy = pl__str_format(&a, "%0200000d", 1);
    CHECK_INT(copy.len, 200000);
    CHECK(copy.ptr[copy.len - 1] == '1');
    pl__arena_release(&a);
}

static const struct {
    const char *text;
    bool ok;
    uint64_t value;
} number_rows[] = {
    { "0", true, 0 },
    { "7", true, 7 },
    { "007", true, 7 },
    { "18446744073709551615", true, UINT64_MAX },
    { "18446744073709551616", false, 0 },
    { "18446744073709551620", false, 0 },
    { "99999999999999999999", false, 0 },
    { "100000000000000000000", false, 0 },
    { "", false, 0 },
    { "-1", false, 0 },
    { "+1", false, 0 },
    { " 1", false, 0 },
    { "1 ", false, 0 },
    { "1a", false, 0 },
    { "/", false, 0 },
    { ":", false, 0 },
    { "\xb1", false, 0 },
};

static void test_numbers(void)
{
    for (size_t i = 0; i < sizeof number_rows / sizeof number_rows[0]; i++) {
        uint64_t value = 0;
        CASE("number \"%s\"", number_rows[i].text);
        CHECK_INT(pl__str_to_u64(pl__str(number_rows[i].text), &value), number_rows[i].ok);
        CHECK(value == number_rows[i].value);
    }
}

static void test_cuts(void)
{
    struct pl_str rest = PL_STR("a,,b");

    CASE("cut");
    CHECK_STR(pl__str_cut(&rest, ','), "a");
    CHECK_STR(pl__str_cut(&rest, ','), "");
    CHECK_STR(rest, "b");
    CHECK_STR(pl__str_cut(&rest, ','), "b");
    CHECK_INT(rest.len, 0);
    CHECK_STR(pl__str_cut(&rest, ','), "");
    rest = missing;
    CHECK_STR(pl__str_cut(&rest, ','), "");
    CASE("trim");
    CHECK_STR(pl__str_trim(PL_STR(" \ta b\t ")), "a b");
    CHECK_STR(pl__str_trim(PL_STR(" \t")), "");
    CHECK_STR(pl__str_trim(missing), "");
}

static void test_hash(void)
{
    /* From the test suite of FNV's authors. */
    CASE("hash");
    CHECK(pl__str_hash(PL_HASH_BEGIN, missing) == UINT64_C(0xcbf29ce484222325));
    CHECK(pl__str_hash(PL_HASH_BEGIN, PL_STR("a")) == UINT64_C(0xaf63dc4c8601ec8c));
    CHECK(pl__str_hash(PL_HASH_BEGIN, PL_STR("foobar")) == UINT64_C(0x85944171f73967e8));
    CASE("hash of parts");
    CHECK(pl__str_hash(pl__str_hash(PL_HASH_BEGIN, PL_STR("foo")), PL_STR("bar")) ==
          UINT64_C(0x85944171f73967e8));
}

int main(void)
{
    test_equal();
    test_cuts();
    test_compare();
    test_parts();
    test_copies();
    test_numbers();
    test_hash();
    return test_end("str");
}
