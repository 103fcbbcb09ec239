/* Instants, durations and ages: a line of text in, a line out. */
#include "test.h"

#include "base/time.h"

static struct pl_arena arena;

#define BAD_TIME INT64_MIN

static const struct {
    const char *text;
    int64_t ms; /* BAD_TIME: refused */
} time_rows[] = {
    { "1970-01-01T00:00:00Z", 0 },
    { "1970-01-01T00:00:01Z", 1000 },
    { "1969-12-31T23:59:59Z", -1000 },
    { "1969-12-31T23:59:59.999Z", -1 },
    { "2026-11-15T02:00:00Z", 1794708000000 },
    { "2026-11-15t02:00:00z", 1794708000000 },
    { "2026-11-15T02:00:00.5Z", 1794708000500 },
    { "2026-11-15T02:00:00.123456789Z", 1794708000123 },
    { "2026-11-15T02:00:00.9999999999999999999999999Z", 1794708000999 },
    { "2026-11-15T02:00:00.001Z", 1794708000001 },
    { "2026-11-15T02:00:00.0009Z", 1794708000000 },
    { "2026-11-15T02:00:00+00:00", 1794708000000 },
    { "2026-11-15T02:00:00-00:00", 1794708000000 },
    { "2026-11-15T04:30:00+02:30", 1794708000000 },
    { "2026-11-14T21:00:00-05:00", 1794708000000 },
    { "2026-11-15T02:00:00.25+23:59", 1794708000250 - 86340000 },
    { "2000-02-29T00:00:00Z", 951782400000 },
    { "2024-02-29T12:00:00Z", 1709208000000 },
    { "2100-02-28T23:59:59Z", 4107542399000 },
    { "2001-09-09T01:46:40Z", 1000000000000 },
    { "0001-01-01T00:00:00Z", -62135596800000 },
    { "9999-12-31T23:59:59.999Z", 253402300799999 },
    { "0001-01-01T01:00:00+01:00", -62135596800000 },
    { "1600-03-01T00:00:00Z", -11670912000000 },

    { "", BAD_TIME },
    { "2026", BAD_TIME },
    { "2026-11-15", BAD_TIME },
    { "2026-11-15T02:00Z", BAD_TIME },
    { "2026-11-15T02:00:00", BAD_TIME },
    { "2026-11-15 02:00:00Z", BAD_TIME },
    { "2026-11-15T02:00:00Z ", BAD_TIME },
    { " 2026-11-15T02:00:00Z", BAD_TIME },
    { "2026-11-15T02:00:00ZZ", BAD_TIME },
    { "2026-11-15T02:00:00.Z", BAD_TIME },
    { "2026-11-15T02:00:00,5Z", BAD_TIME },
    { "2026-11-15T02:00:60Z", BAD_TIME },
    { "2026-11-15T02:60:00Z", BAD_TIME },
    { "2026-11-15T24:00:00Z", BAD_TIME },
    { "2026-00-15T02:00:00Z", BAD_TIME },
    { "2026-13-15T02:00:00Z", BAD_TIME },
    { "2026-11-00T02:00:00Z", BAD_TIME },
    { "2026-11-31T02:00:00Z", BAD_TIME },
    { "2026-04-31T02:00:00Z", BAD_TIME },
    { "2026-02-29T02:00:00Z", BAD_TIME },
    { "2100-02-29T02:00:00Z", BAD_TIME },
    { "1900-02-29T02:00:00Z", BAD_TIME },
    { "2024-02-30T02:00:00Z", BAD_TIME },
    { "0000-01-01T00:00:00Z", BAD_TIME },
    { "10000-01-01T00:00:00Z", BAD_TIME },
    { "-2026-11-15T02:00:00Z", BAD_TIME },
    { "+2026-11-15T02:00:00Z", BAD_TIME },
    { "2026-1-15T02:00:00Z", BAD_TIME },
    { "2026-11-15T2:00:00Z", BAD_TIME },
    { "2026-11-15T02:00:00+0100", BAD_TIME },
    { "2026-11-15T02:00:00+01", BAD_TIME },
    { "2026-11-15T02:00:00+24:00", BAD_TIME },
    { "2026-11-15T02:00:00+01:60", BAD_TIME },
    { "2026-11-15T02:00:00+-1:00", BAD_TIME },
    { "0001-01-01T00:00:00+00:01", BAD_TIME },
    { "9999-12-31T23:59:59-00:01", BAD_TIME },
    { "2026-11-15T02:00:0", BAD_TIME },
    { "20261115T020000Z", BAD_TIME },
};

static void test_time_parse(void)
{
    for (size_t i = 0; i < sizeof time_rows / sizeof time_rows[0]; i++) {
        int64_t ms = BAD_TIME;
        CASE("time \"%s\"", time_rows[i].text);
        CHECK_INT(pl__time_parse(pl__str(time_rows[i].text), &ms), time_rows[i].ms != BAD_TIME);
        CHECK_INT(ms, time_rows[i].ms);
    }
    CASE("a time cut short anywhere");
    {
        struct pl_str whole = PL_STR("2026-11-15T02:00:00.250+01:00");
        for (size_t len = 0; len < whole.len; len++) {
            int64_t ms;
            CHECK(!pl__time_parse((struct pl_str){ whole.ptr, len }, &ms));
        }
    }
}

typedef void (*add_fn)(struct pl_buf *b, int64_t value);

static struct pl_str printed(add_fn add, int64_t value)
{
    struct pl_buf b;

    pl__arena_reset(&arena);
    pl__buf_init(&b, &arena, 64);
    add(&b, value);
    return pl__buf_str(&b);
}

static const struct {
    int64_t ms;
    const char *text;
} time_add_rows[] = {
    { 0, "" },
    { 1, "1970-01-01T00:00:00Z" },
    { -1, "1969-12-31T23:59:59Z" },
    { 999, "1970-01-01T00:00:00Z" },
    { 1794708000999, "2026-11-15T02:00:00Z" },
    { 951782400000, "2000-02-29T00:00:00Z" },
    { 951868800000, "2000-03-01T00:00:00Z" },
    { -62135596800000, "0001-01-01T00:00:00Z" },
    { 253402300799999, "9999-12-31T23:59:59Z" },
    { INT64_MIN, "0001-01-01T00:00:00Z" },
    { INT64_MAX, "9999-12-31T23:59:59Z" },
};

static void test_time_add(void)
{
    for (size_t i = 0; i < sizeof time_add_rows / sizeof time_add_rows[0]; i++) {
        CASE("print time %" PRId64, time_add_rows[i].ms);
        CHECK_STR(printed(pl__time_add, time_add_rows[i].ms), time_add_rows[i].text);
    }
    CASE("days of 9999 years, there and back");
    for (int64_t day = -719162; day <= 2932896; day += 1 + (day % 7 == 0 ? 30 : 0)) {
        int64_t ms = day * 86400000 + 43200000, back = 0;
        if (!pl__time_parse(printed(pl__time_add, ms), &back) || back != ms) {
            test_fail(__FILE__, __LINE__, "day %" PRId64, day);
            break;
        }
    }
}

static const struct {
    int64_t seconds;
    const char *text;
} duration_add_rows[] = {
    { 0, "0s" },
    { 1, "1s" },
    { 45, "45s" },
    { 60, "1m0s" },
    { 90, "1m30s" },
    { 600, "10m0s" },
    { 3599, "59m59s" },
    { 3600, "1h0m0s" },
    { 7261, "2h1m1s" },
    { 360000, "100h0m0s" },
    { -90, "-1m30s" },
    { INT64_MIN, "-2562047788015215h30m8s" },
    { INT64_MAX, "2562047788015215h30m7s" },
};

#define BAD_DURATION INT64_MIN

static const struct {
    const char *text;
    int64_t seconds;
} duration_rows[] = {
    { "0", 0 },
    { "-0", 0 },
    { "+0", 0 },
    { "0s", 0 },
    { "45s", 45 },
    { "10m0s", 600 },
    { "10m", 600 },
    { "2h30m", 9000 },
    { "1h0m0s", 3600 },
    { "1.5s", 1 },
    { "1.5h", 5400 },
    { "0.1h", 360 },
    { ".5m", 30 },
    { "5.s", 5 },
    { "-1.5m", -90 },
    { "+90s", 90 },
    { "-1.9s", -1 },
    { "999ms", 0 },
    { "1000ms", 1 },
    { "1500000us", 1 },
    { "2000000\xc2\xb5s", 2 },
    { "2000000\xce\xbcs", 2 },
    { "3000000000ns", 3 },
    { "1s500ms500ms", 2 },
    { "30m1h", 5400 },
    { "1.0000000000000000000000000000001s", 1 },
    { "2562047h47m16.854775807s", 9223372036 },
    { "-2562047h47m16.854775807s", -9223372036 },

    { "", BAD_DURATION },
    { "-", BAD_DURATION },
    { "1", BAD_DURATION },
    { "00", BAD_DURATION },
    { "s", BAD_DURATION },
    { ".s", BAD_DURATION },
    { ".", BAD_DURATION },
    { "1d", BAD_DURATION },
    { "1S", BAD_DURATION },
    { "1 s", BAD_DURATION },
    { " 1s", BAD_DURATION },
    { "1s ", BAD_DURATION },
    { "1h-5m", BAD_DURATION },
    { "--1s", BAD_DURATION },
    { "1h30", BAD_DURATION },
    { "1.2.3s", BAD_DURATION },
    { "1\xc2s", BAD_DURATION },
    { "1e3s", BAD_DURATION },
    { "2562047h47m16.854775808s", BAD_DURATION },
    { "2562048h", BAD_DURATION },
    { "9223372036854775808ns", BAD_DURATION },
    { "99999999999999999999999999s", BAD_DURATION },
};

static void test_durations(void)
{
    for (size_t i = 0; i < sizeof duration_add_rows / sizeof duration_add_rows[0]; i++) {
        CASE("print duration %" PRId64, duration_add_rows[i].seconds);
        CHECK_STR(printed(pl__duration_add, duration_add_rows[i].seconds),
                  duration_add_rows[i].text);
    }
    for (size_t i = 0; i < sizeof duration_rows / sizeof duration_rows[0]; i++) {
        int64_t seconds = BAD_DURATION;
        CASE("duration \"%s\"", duration_rows[i].text);
        CHECK_INT(pl__duration_parse(pl__str(duration_rows[i].text), &seconds),
                  duration_rows[i].seconds != BAD_DURATION);
        CHECK_INT(seconds, duration_rows[i].seconds);
    }
    CASE("durations there and back");
    for (int64_t s = 0; s < 400000; s += 1 + s / 50) {
        int64_t back = -1;
        CHECK(pl__duration_parse(printed(pl__duration_add, s), &back) && back == s);
    }
}

#define S INT64_C(1000)
#define M (60 * S)
#define H (60 * M)
#define D (24 * H)
#define Y (365 * D)

/* The rows of the test of HumanDuration in k8s.io/apimachinery, and the edges between them. */
static const struct {
    int64_t ms;
    const char *text;
} age_rows[] = {
    { -10 * S, "<invalid>" },
    { -2 * S, "<invalid>" },
    { -2 * S + 1, "0s" },
    { -1, "0s" },
    { 0, "0s" },
    { 999, "0s" },
    { S, "1s" },
    { 70 * S, "70s" },
    { 119 * S + 999, "119s" },
    { 2 * M, "2m" },
    { 190 * S, "3m10s" },
    { 10 * M - S, "9m59s" },
    { 10 * M, "10m" },
    { 47 * M + 30 * S, "47m" },
    { 70 * M, "70m" },
    { 3 * H - S, "179m" },
    { 3 * H, "3h" },
    { 3 * H + 10 * M, "3h10m" },
    { 8 * H - S, "7h59m" },
    { 8 * H, "8h" },
    { 9 * H + 10 * M, "9h" },
    { 30 * H, "30h" },
    { 48 * H - S, "47h" },
    { 2 * D, "2d" },
    { 2 * D + 2 * H, "2d2h" },
    { 8 * D - S, "7d23h" },
    { 8 * D, "8d" },
    { 70 * D, "70d" },
    { 2 * Y - S, "729d" },
    { 2 * Y, "2y" },
    { 2 * Y + 71 * D, "2y71d" },
    { 8 * Y - S, "7y364d" },
    { 8 * Y, "8y" },
    { 8 * Y + 300 * D, "8y" },
    { 1234 * Y, "1234y" },
    { INT64_MAX, "292471208y" },
    { INT64_MIN, "<invalid>" },
};

static void test_ages(void)
{
    for (size_t i = 0; i < sizeof age_rows / sizeof age_rows[0]; i++) {
        CASE("age of %" PRId64 " ms", age_rows[i].ms);
        CHECK_STR(printed(pl__age_add, age_rows[i].ms), age_rows[i].text);
    }
}

int main(void)
{
    pl__arena_init(&arena, NULL, 0);
    test_time_parse();
    test_time_add();
    test_durations();
    test_ages();
    pl__arena_release(&arena);
    return test_end("time");
}
