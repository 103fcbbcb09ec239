/* The arena: zeroed, aligned, kept over a reset, given back on release. */
#include "test.h"

#include <stdlib.h>

#include "base/arena.h"

/* An allocator that counts, and that hands out bytes which are not zero. */
struct counts {
    size_t allocs;
    size_t frees;
    size_t bytes; /* held now */
};

static void *counting_alloc(void *user, size_t size)
{
    struct counts *c = user;
    void *p = malloc(size);

    if (p)
        memset(p, 0xa5, size);
    c->allocs++;
    c->bytes += size;
    return p;
}

static void counting_free(void *user, void *ptr, size_t size)
{
    struct counts *c = user;

    c->frees++;
    c->bytes -= size;
    free(ptr);
}

static struct counts counts;
static const struct pl_allocator counting = { &counts, counting_alloc, counting_free };

static bool all_zero(const char *p, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (p[i])
            return false;
    }
    return true;
}

static void test_alloc(void)
{
    struct pl_arena a;

    CASE("an unused arena holds nothing");
    counts = (struct counts){ 0 };
    pl__arena_init(&a, &counting, 1024);
    CHECK_INT(counts.allocs, 0);
    pl__arena_release(&a);
    CHECK_INT(counts.frees, 0);

    CASE("pieces are zeroed, aligned and apart");
    char *last = NULL;
    size_t last_size = 0;
    for (size_t size = 0; size < 300; size++) {
        char *p = pl__arena_alloc(&a, size);
        CHECK(p && (uintptr_t)p % 16 == 0 && all_zero(p, size));
        CHECK(!last || p < last || p >= last + last_size);
        memset(p, 0xff, size);
        last = p;
        last_size = size;
    }
    CHECK(counts.allocs > 10);
    CHECK_INT(a.held_bytes, counts.bytes);
    CHECK(a.used_bytes >= 300 * 299 / 2 && a.used_bytes <= a.held_bytes);

    CASE("a piece larger than a chunk");
    char *large = pl__arena_alloc(&a, 100000);
    CHECK(all_zero(large, 100000));
    memset(large, 0xff, 100000);

    CASE("release gives all back, and the arena works again");
    pl__arena_release(&a);
    CHECK_INT(counts.bytes, 0);
    CHECK_INT(counts.allocs, counts.frees);
    CHECK_INT(a.held_bytes, 0);
    CHECK(all_zero(pl__arena_alloc(&a, 10), 10));
    pl__arena_release(&a);
    CHECK_INT(counts.bytes, 0);
}

static void fill(struct pl_arena *a)
{
    static const size_t sizes[] = { 1, 700, 16, 5000, 100, 900, 900, 3000 };

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char *p = pl__arena_alloc(a, sizes[i]);
        CHECK(all_zero(p, sizes[i]));
        memset(p, 0xff, sizes[i]);
    }
}

static void test_reset(void)
{
    struct pl_arena a;

    CASE("the same work again asks the heap for nothing");
    counts = (struct counts){ 0 };
    pl__arena_init(&a, &counting, 1024);
    fill(&a);
    size_t used = a.used_bytes, allocs = counts.allocs;
    for (int i = 0; i < 5; i++) {
        pl__arena_reset(&a);
        CHECK_INT(a.used_bytes, 0);
        fill(&a);
        CHECK_INT(a.used_bytes, used);
        CHECK_INT(counts.allocs, allocs);
    }
    CASE("reset of an unused arena");
    pl__arena_release(&a);
    pl__arena_reset(&a);
    fill(&a);
    pl__arena_release(&a);
    CHECK_INT(counts.bytes, 0);
}

static void test_grow(void)
{
    struct pl_arena a;

    pl__arena_init(&a, &counting, 4096);
    CASE("grow from nothing");
    char *p = pl__arena_grow(&a, NULL, 0, 10);
    CHECK(p && all_zero(p, 10));
    memset(p, 'x', 10);
    CASE("the newest grows in place");
    char *q = pl__arena_grow(&a, p, 10, 200);
    CHECK(q == p);
    CHECK(memcmp(q, "xxxxxxxxxx", 10) == 0 && all_zero(q + 10, 190));
    CASE("less is no change");
    CHECK(pl__arena_grow(&a, q, 200, 50) == q);
    CASE("an older one moves");
    memset(q, 'y', 200);
    char *other = pl__arena_alloc(&a, 1);
    char *moved = pl__arena_grow(&a, q, 200, 300);
    CHECK(moved != q && moved != other);
    CHECK(moved[0] == 'y' && moved[199] == 'y' && all_zero(moved + 200, 100));
    CASE("past the chunk it moves");
    memset(moved, 'z', 300);
    char *far = pl__arena_grow(&a, moved, 300, 20000);
    CHECK(far != moved && far[299] == 'z' && all_zero(far + 300, 19700));
    CASE("in place over what was used before the last reset");
    pl__arena_reset(&a);
    memset(pl__arena_alloc(&a, 2000), 0xff, 2000);
    pl__arena_reset(&a);
    p = pl__arena_alloc(&a, 20);
    q = pl__arena_grow(&a, p, 20, 1000);
    CHECK(p == q && all_zero(q, 1000));
    CASE("what follows does not overlap");
    memset(q, 'q', 1000);
    memset(pl__arena_alloc(&a, 64), 0, 64);
    CHECK(q[999] == 'q');
    pl__arena_release(&a);
}

static void test_array(void)
{
    struct pl_arena a;

    CASE("arrays of a type");
    pl__arena_init(&a, NULL, 0);
    int64_t *numbers = PL_NEW(&a, int64_t, 1000);
    CHECK(all_zero((const char *)numbers, 1000 * sizeof *numbers));
    numbers[999] = 7;
    CHECK(PL_NEW(&a, int64_t, 0) != NULL);
    CHECK_INT(numbers[999], 7);
    pl__arena_release(&a);
}

int main(void)
{
    test_alloc();
    test_reset();
    test_grow();
    test_array();
    return test_end("arena");
}
