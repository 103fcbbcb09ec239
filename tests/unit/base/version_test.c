/* Kubernetes versions: read, printed, compared. */
#include "test.h"

#include "base/version.h"

static struct pl_arena arena;

static struct pl_str printed(const char *text)
{
    struct pl_version v;
    struct pl_buf b;

    if (!pl__version_parse(pl__str(text), &v))
        return PL_STR("no");
    pl__buf_init(&b, &arena, 256);
    pl__version_add(&b, &v);
    return pl__buf_str(&b);
}

static void test_parse(void)
{
    static const char *const rows[][2] = {
        { "v1.31.2", "1.31.2" },
        { "1.31.2", "1.31.2" },
        { "v1.31", "1.31.0" },
        { "v1", "1.0.0" },
        { "v1.32.0-rc.1", "1.32.0-rc.1" },
        { "v1.32.0+vmware.1", "1.32.0+vmware.1" },
        { "v1.32.0-alpha.0.12+a-b.c", "1.32.0-alpha.0.12+a-b.c" },
        { "v18446744073709551615.0.0", "18446744073709551615.0.0" },
        { "v18446744073709551616.0.0", "no" },
        { "", "no" },
        { "v", "no" },
        { "latest", "no" },
        { "v1.", "no" },
        { "v1.x", "no" },
        { "v1.2.3.4", "no" },
        { "v1.2.3-", "no" },
        { "v1.2.3-.a", "no" },
        { "v1.2.3-a..b", "no" },
        { "v1.2.3-a.", "no" },
        { "v1.2.3+", "no" },
        { "v1.2.3+a_b", "no" },
        { "v1.2.3 ", "no" },
        { "vv1.2.3", "no" },
        { "-1.2.3", "no" },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CASE("version %s", rows[i][0])
        CHECK_STR(printed(rows[i][0]), rows[i][1]);
    }
}

static void test_upgrades(void)
{
    /* Each is an upgrade of the one before, and never the other way round. */
    static const char *const ladder[] = {
        "v1.30.9",          "v1.31.0-alpha.1", "v1.31.0-alpha.1.1", "v1.31.0-alpha.2",
        "v1.31.0-alpha.10", "v1.31.0-beta",    "v1.31.0-rc.1",      "v1.31.0",
        "v1.31.0+1",        "v1.31.0+2",       "v1.31.0+10",        "v1.31.0+10.1",
        "v1.31.0+a",        "v1.31.1",         "v1.32.0",           "v2.0.0",
    };
    size_t count = sizeof ladder / sizeof ladder[0];

    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < count; k++) {
            struct pl_version from, to;
            CASE("from %s to %s", ladder[i], ladder[k])
            CHECK(pl__version_parse(pl__str(ladder[i]), &from));
            CHECK(pl__version_parse(pl__str(ladder[k]), &to));
            CHECK_INT(pl__version_upgrades(&from, &to), i < k);
        }
    }

    CASE("builds that cannot be compared: either way is an upgrade")
    struct pl_version a, b;
    CHECK(pl__version_parse(PL_STR("v1.31.0+deadbee"), &a));
    CHECK(pl__version_parse(PL_STR("v1.31.0+c0ffee0"), &b));
    CHECK(pl__version_upgrades(&a, &b));
    CHECK(pl__version_upgrades(&b, &a));
    CHECK(!pl__version_upgrades(&a, &a));
}

static void test_at_least(void)
{
    static const struct {
        const char *text;
        uint64_t minor;
        bool want;
    } rows[] = {
        { "v1.31.0", 31, true }, { "v1.31.0-rc.0", 31, true }, { "v1.30.99", 31, false },
        { "v1.36.0", 31, true }, { "v2.0.0", 31, true },       { "v0.99.0", 31, false },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pl_version v;
        CASE("%s at least 1.%" PRIu64, rows[i].text, rows[i].minor)
        CHECK(pl__version_parse(pl__str(rows[i].text), &v));
        CHECK_INT(pl__version_at_least(&v, rows[i].minor), rows[i].want);
    }
}

int main(void)
{
    pl__arena_init(&arena, NULL, 0);
    test_parse();
    test_upgrades();
    test_at_least();
    pl__arena_release(&arena);
    return test_end("version");
}
