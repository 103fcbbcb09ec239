/* Buffers that grow, up to the maximum they state; and errors, which are made of them. */
#include "test.h"

#include "base/buf.h"
#include "base/error.h"

static struct pl_arena arena;

static void test_add(void)
{
    struct pl_buf b;

    CASE("an empty buffer");
    pl__buf_init(&b, &arena, 100);
    CHECK_STR(pl__buf_str(&b), "");
    CHECK(pl__buf_str(&b).ptr != NULL);
    CASE("pieces of all kinds");
    pl__buf_add(&b, PL_STR("ab"));
    pl__buf_add(&b, (struct pl_str){ NULL, 0 });
    pl__buf_add_char(&b, '-');
    pl__buf_add_lit(&b, "cd");
    pl__buf_add_u64(&b, 0);
    pl__buf_add_char(&b, ' ');
    pl__buf_add_u64(&b, UINT64_MAX);
    pl__buf_add_char(&b, ' ');
    pl__buf_add_i64(&b, INT64_MIN);
    pl__buf_add_i64(&b, -1);
    pl__buf_printf(&b, "<%s %d>", "x", 5);
    pl__buf_printf(&b, "%s", "");
    CHECK_STR(pl__buf_str(&b), "ab-cd0 18446744073709551615 -9223372036854775808-1<x 5>");
    CHECK(!b.overflowed);
    CASE("cleared");
    pl__buf_clear(&b);
    CHECK_STR(pl__buf_str(&b), "");
    pl__buf_add_lit(&b, "new");
    CHECK_STR(pl__buf_str(&b), "new");
}

static void test_growth(void)
{
    struct pl_buf b;
    char *other = NULL;

    CASE("grows and keeps what it has");
    pl__buf_init(&b, &arena, 100000);
    for (int i = 0; i < 50000; i++) {
        pl__buf_add_char(&b, (char)('a' + i % 26));
        if (i % 1000 == 0)
            other = pl__arena_alloc(&arena, 8); /* it is not the arena's newest any more */
    }
    CHECK(other != NULL);
    CHECK_INT(b.len, 50000);
    for (int i = 0; i < 50000; i++)
        CHECK(b.data[i] == 'a' + i % 26);
}

static void test_maximum(void)
{
    struct pl_buf b;

    CASE("up to the maximum, and no further");
    pl__buf_init(&b, &arena, 10);
    pl__buf_add_lit(&b, "0123456789");
    CHECK(!b.overflowed);
    pl__buf_add_char(&b, 'x');
    CHECK(b.overflowed);
    CHECK_STR(pl__buf_str(&b), "0123456789");
    CASE("once over, nothing fits any more");
    pl__buf_clear(&b);
    CHECK(!b.overflowed);
    pl__buf_add_lit(&b, "0123456789a");
    CHECK(b.overflowed);
    pl__buf_add_char(&b, 'x');
    CHECK_STR(pl__buf_str(&b), "");
    CASE("a maximum of nothing");
    pl__buf_init(&b, &arena, 0);
    pl__buf_add_lit(&b, "");
    CHECK(!b.overflowed);
    pl__buf_add_char(&b, 'x');
    CHECK(b.overflowed);
    CASE("formatted text over the maximum");
    pl__buf_init(&b, &arena, 8);
    pl__buf_printf(&b, "%s", "0123456789");
    CHECK(b.overflowed && b.len == 0);
    CASE("sizes that would wrap");
    pl__buf_init(&b, &arena, 8);
    pl__buf_add_char(&b, 'x');
    CHECK(pl__buf_reserve(&b, SIZE_MAX) == NULL && b.overflowed);
}

static void test_reserve(void)
{
    struct pl_buf b;

    CASE("reserved room is the caller's to fill");
    pl__buf_init(&b, &arena, 1000);
    char *room = pl__buf_reserve(&b, 500);
    CHECK(room != NULL);
    if (room)
        memset(room, 'r', 500);
    CHECK_INT(b.len, 0);
    b.len += 500;
    CHECK_INT(b.data[499], 'r');
    CHECK(pl__buf_reserve(&b, 500) != NULL);
    CHECK(pl__buf_reserve(&b, 501) == NULL);
}

static void test_errors(void)
{
    struct pl_error *inner = NULL, *outer = NULL;

    CASE("an error and its cause");
    CHECK_INT(pl__error(&arena, &inner, PL_IO, "connect %s: refused", "127.0.0.1:2379"), -1);
    CHECK_INT(pl__fail(&arena, &outer, inner, "remove member %d", 7), -1);
    CHECK(outer && outer->code == PL_IO && outer->cause == inner);
    if (outer)
        CHECK_STR(pl__error_text(&arena, outer),
                  "remove member 7: connect 127.0.0.1:2379: refused");
    CASE("nobody wants to know");
    CHECK_INT(pl__error(&arena, NULL, PL_IO, "x"), -1);
    CHECK_INT(pl__fail(&arena, NULL, inner, "x"), -1);
    CASE("a long message is cut");
    CHECK_INT(pl__error(&arena, &inner, PL_LIMIT, "%05000d", 1), -1);
    CHECK_INT(inner->message.len, 1023);
    CHECK(inner->message.ptr[1023] == '\0');
}

static void test_nothing(void)
{
    struct pl_buf b;

    CASE("nothing, formatted into an empty buffer")
    pl__buf_init(&b, &arena, 10);
    pl__buf_printf(&b, "%s", "");
    CHECK_STR(pl__buf_str(&b), "");
    CHECK(!b.overflowed);
}

int main(void)
{
    pl__arena_init(&arena, NULL, 0);
    test_add();
    test_growth();
    test_maximum();
    test_reserve();
    test_errors();
    test_nothing();
    pl__arena_release(&arena);
    return test_end("buf");
}
