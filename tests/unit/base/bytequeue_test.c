/* Bytes come out as they went in, whatever the sizes; there is a maximum; secrets are overwritten. */
#include "test.h"

#include "base/bytequeue.h"

static void check_order(void)
{
    struct pl_bytequeue q;
    uint8_t in = 0, out = 0, bytes[97];
    size_t held_max = 0;

    CASE("what goes in comes out, in order")
    pl__bytequeue_init(&q, 10 * 1000);
    for (size_t round = 0; round < 5000; round++) {
        size_t added = round * 7 % sizeof bytes, dropped = round * 11 % sizeof bytes;
        for (size_t i = 0; i < added; i++)
            bytes[i] = in++;
        if (pl__bytequeue_add(&q, bytes, added) < 0)
            in = (uint8_t)(in - added);
        for (size_t i = 0; i < q.len; i++)
            CHECK_INT(pl__bytequeue_bytes(&q)[i], (uint8_t)(out + i));
        dropped = dropped < q.len ? dropped : q.len;
        out = (uint8_t)(out + dropped);
        pl__bytequeue_drop(&q, dropped);
        held_max = q.len > held_max ? q.len : held_max;
    }
    CHECK(held_max > sizeof bytes && held_max <= q.max);
    pl__bytequeue_release(&q);
    CHECK(q.len == 0 && !q.data);
}

static void check_maximum(void)
{
    static const char block[64 * 1024];
    struct pl_bytequeue q;

    CASE("no more than the maximum, and not a part of it")
    pl__bytequeue_init(&q, 100 * 1000);
    CHECK_INT(pl__bytequeue_add(&q, block, sizeof block), 0);
    CHECK_INT(pl__bytequeue_add(&q, block, sizeof block), -1);
    CHECK_INT(q.len, sizeof block);
    CHECK_INT(pl__bytequeue_add(&q, block, q.max - q.len), 0);
    CHECK_INT(pl__bytequeue_add(&q, block, 1), -1);
    CHECK_INT(pl__bytequeue_add(&q, NULL, 0), 0);

    CASE("a large block is given back when it is empty")
    pl__bytequeue_drop(&q, q.len);
    CHECK(!q.data && q.capacity == 0);
    CHECK_INT(pl__bytequeue_add(&q, "x", 1), 0);
    pl__bytequeue_drop(&q, 1);
    CHECK(q.data != NULL);
    pl__bytequeue_release(&q);
}

static void check_secret(void)
{
    struct pl_bytequeue q;

    CASE("what leaves a secret one is overwritten")
    pl__bytequeue_init(&q, 100);
    q.secret = true;
    CHECK_INT(pl__bytequeue_add(&q, "hunter2 rest", 12), 0);
    pl__bytequeue_drop(&q, 8);
    CHECK(q.data[0] == 0 && q.data[7] == 0);
    CHECK(memcmp(pl__bytequeue_bytes(&q), "rest", 4) == 0);
    pl__bytequeue_release(&q);
}

int main(void)
{
    check_order();
    check_maximum();
    check_secret();
    return test_end("base/bytequeue");
}
