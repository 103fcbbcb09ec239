/* tests/test.h - the whole test framework.
 *
 *     int main(void)
 *     {
 *         CASE("empty input")
 *             CHECK(parse("") < 0);
 *         CASE("row %d", i)
 *             CHECK_STR(got, "want");
 *         return test_end("json");
 *     }
 *
 * A case passes when none of its checks fails; it ends where the next begins. The last line of
 * output is "N passed, N failed", which the CI adds up. */
#ifndef PL_TEST_H
#define PL_TEST_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

static struct {
    int passed, failed;
    bool open, bad;
    char name[256];
} test_state __attribute__((unused));

static void test_close(void)
{
    if (test_state.open) {
        if (test_state.bad)
            test_state.failed++;
        else
            test_state.passed++;
    }
    test_state.open = false;
}

__attribute__((format(printf, 1, 2))) static inline void test_open(const char *format, ...)
{
    va_list args;

    test_close();
    va_start(args, format);
    vsnprintf(test_state.name, sizeof test_state.name, format, args);
    va_end(args);
    test_state.open = true;
    test_state.bad = false;
}

__attribute__((format(printf, 3, 4))) static inline void test_fail(const char *file, int line,
                                                                   const char *format, ...)
{
    va_list args;

    test_state.bad = true;
    printf("%s:%d: FAILED %s: ", file, line, test_state.name);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
}

static inline void test_str(const char *file, int line, const char *what, struct pl_str got,
                            struct pl_str want)
{
    if (!pl__str_equal(got, want))
        test_fail(file, line, "%s\n    got  \"%.*s\"\n    want \"%.*s\"", what, PL_STR_ARG(got),
                  PL_STR_ARG(want));
}

static inline int test_end(const char *suite)
{
    test_close();
    printf("%s: %d passed, %d failed\n", suite, test_state.passed, test_state.failed);
    return test_state.failed || !test_state.passed;
}

#define CASE(...) test_open(__VA_ARGS__);
#define CHECK(condition)                                     \
    do {                                                     \
        if (!(condition))                                    \
            test_fail(__FILE__, __LINE__, "%s", #condition); \
    } while (0)
#define CHECK_INT(got, want)                                                                \
    do {                                                                                    \
        int64_t got_ = (int64_t)(got), want_ = (int64_t)(want);                             \
        if (got_ != want_)                                                                  \
            test_fail(__FILE__, __LINE__, "%s: got %" PRId64 ", want %" PRId64, #got, got_, \
                      want_);                                                               \
    } while (0)
#define CHECK_STR(got, want) test_str(__FILE__, __LINE__, #got, (got), pl__str(want))

#endif
