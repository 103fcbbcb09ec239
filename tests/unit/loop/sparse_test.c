/* Buffers that cost what is used of them: that they are memory like any other, and what is resident. */
#define _DEFAULT_SOURCE /* mincore() */
#include "test.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "loop/sparse.h"

enum { LARGE = PL_SPARSE_BYTES_MIN, THREADS = 4, ROUNDS = 2000, HELD = 16 };

static size_t resident_pages(void *start, size_t size)
{
    unsigned char marks[64];
    size_t page = (size_t)sysconf(_SC_PAGESIZE), count = 0;

    if (size / page > sizeof marks || mincore(start, size, marks) != 0)
        return SIZE_MAX;
    for (size_t i = 0; i < size / page; i++)
        count += marks[i] & 1;
    return count;
}

static void test_sizes(void)
{
    CASE("small and very large ones are libc's");
    void *small = pl__sparse_malloc(LARGE - 1);
    void *huge = pl__sparse_malloc(PL_SPARSE_BYTES_MAX + 1);
    CHECK(small && huge);
    CHECK_INT(pl__sparse_taken(), 0);
    pl__sparse_free(small);
    pl__sparse_free(huge);
    pl__sparse_free(NULL);
    CASE("the others have a slot each");
    char *a = pl__sparse_malloc(LARGE), *b = pl__sparse_malloc(PL_SPARSE_BYTES_MAX);
    CHECK_INT(pl__sparse_taken(), 2);
    memset(a, 'a', LARGE);
    memset(b, 'b', PL_SPARSE_BYTES_MAX);
    CHECK(a[0] == 'a' && a[LARGE - 1] == 'a' && b[0] == 'b');
    pl__sparse_free(a);
    CHECK_INT(pl__sparse_taken(), 1);
    CASE("a freed slot is taken again, and what was in it is gone");
    char *again = pl__sparse_malloc(LARGE + 1);
    CHECK(again == a);
    CHECK(again[0] == 0 && again[LARGE - 1] == 0);
    CHECK(b[0] == 'b' && b[PL_SPARSE_BYTES_MAX - 1] == 'b');
    pl__sparse_free(again);
    pl__sparse_free(b);
    CHECK_INT(pl__sparse_taken(), 0);
}

static void test_realloc(void)
{
    CASE("realloc of nothing");
    char *p = pl__sparse_realloc(NULL, LARGE);
    CHECK_INT(pl__sparse_taken(), 1);
    memset(p, 'x', LARGE);
    CASE("realloc within the slot");
    char *q = pl__sparse_realloc(p, PL_SPARSE_BYTES_MAX);
    CHECK(q == p);
    memset(q, 'y', PL_SPARSE_BYTES_MAX);
    CASE("realloc beyond the slot");
    p = pl__sparse_realloc(q, PL_SPARSE_BYTES_MAX * 3);
    CHECK_INT(pl__sparse_taken(), 0);
    CHECK(p != q && p[0] == 'y' && p[PL_SPARSE_BYTES_MAX - 1] == 'y');
    pl__sparse_free(p);
    CASE("realloc to nothing");
    p = pl__sparse_malloc(LARGE);
    CHECK(pl__sparse_realloc(p, 0) == NULL);
    CHECK_INT(pl__sparse_taken(), 0);
    CASE("realloc of what is libc's");
    p = pl__sparse_malloc(10);
    memcpy(p, "123456789", 10);
    p = pl__sparse_realloc(p, LARGE);
    CHECK_STR(pl__str(p), "123456789");
    pl__sparse_free(p);
    CHECK_INT(pl__sparse_taken(), 0);
}

static void test_resident(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *p = pl__sparse_malloc(PL_SPARSE_BYTES_MAX);

    CASE("only pages that are written to are resident");
    CHECK_INT(resident_pages(p, PL_SPARSE_BYTES_MAX), 0);
    p[0] = p[3 * page] = 'x';
    CHECK_INT(resident_pages(p, PL_SPARSE_BYTES_MAX), 2);
    CASE("forgetting takes whole pages only, and no byte outside");
    memset(p, 'x', 5 * page);
    pl__sparse_forget(p + 1, 3 * page);
    CHECK_INT(resident_pages(p, PL_SPARSE_BYTES_MAX), 3);
    CHECK(p[page - 1] == 'x' && p[page] == 0 && p[3 * page - 1] == 0 && p[3 * page] == 'x');
    memset(p, 'x', 5 * page);
    pl__sparse_forget(p, page - 1);
    pl__sparse_forget(p + 1, page);
    pl__sparse_forget(p + 5, 0);
    CHECK_INT(resident_pages(p, PL_SPARSE_BYTES_MAX), 5);
    CHECK(memchr(p, 0, 5 * page) == NULL);
    CASE("forgetting a whole buffer, and one that is not from here");
    pl__sparse_forget(p, PL_SPARSE_BYTES_MAX);
    CHECK_INT(resident_pages(p, PL_SPARSE_BYTES_MAX), 0);
    char *other = malloc(PL_SPARSE_BYTES_MAX * 2);
    memset(other, 'x', PL_SPARSE_BYTES_MAX * 2);
    pl__sparse_forget(other, PL_SPARSE_BYTES_MAX * 2);
    CHECK(memchr(other, 0, PL_SPARSE_BYTES_MAX * 2) == NULL);
    free(other);
    pl__sparse_free(p);
}

static void test_used_up(void)
{
    void **all = calloc(PL_SPARSE_SLOTS + 2, sizeof *all);

    CASE("when the slots are used up libc helps out");
    for (int i = 0; i < PL_SPARSE_SLOTS + 2; i++) {
        all[i] = pl__sparse_malloc(LARGE);
        CHECK(all[i]);
    }
    CHECK_INT(pl__sparse_taken(), PL_SPARSE_SLOTS);
    memset(all[PL_SPARSE_SLOTS + 1], 'x', LARGE);
    for (int i = 0; i < PL_SPARSE_SLOTS + 2; i++)
        pl__sparse_free(all[i]);
    CHECK_INT(pl__sparse_taken(), 0);
    free(all);
}

/* Every block carries its owner's mark; a slot that two own would show. */
static void *thread_run(void *user)
{
    unsigned char mark = (unsigned char)(uintptr_t)user;
    unsigned char *held[HELD] = { NULL };
    uintptr_t faults = 0;

    for (int i = 0; i < ROUNDS; i++) {
        int at = (i * 7 + mark) % HELD;
        if (held[at]) {
            faults += held[at][0] != mark || held[at][LARGE] != mark;
            pl__sparse_free(held[at]);
        }
        held[at] = pl__sparse_malloc(LARGE + 1);
        held[at][0] = held[at][LARGE] = mark;
    }
    for (int i = 0; i < HELD; i++)
        pl__sparse_free(held[i]);
    return (void *)faults;
}

static void test_threads(void)
{
    pthread_t threads[THREADS];

    CASE("several threads");
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, thread_run, (void *)(i + 1)), 0);
    for (int i = 0; i < THREADS; i++) {
        void *faults = NULL;
        pthread_join(threads[i], &faults);
        CHECK(faults == NULL);
    }
    CHECK_INT(pl__sparse_taken(), 0);
}

int main(void)
{
    test_sizes();
    test_realloc();
    test_resident();
    test_used_up();
    test_threads();
    return test_end("sparse");
}
