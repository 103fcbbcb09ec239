#include "loop/sparse.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SLOT_BYTES = PL_SPARSE_BYTES_MAX };

/* One range of addresses, cut into slots of one size, so that whose a pointer is can be told from its
 * value. libcurl's hooks have no argument for a context, hence one for the process. */
static struct {
    pthread_mutex_t lock;
    unsigned char *start, *end;
    size_t page_bytes;
    uint32_t fresh;                 /* slots from here on were never taken */
    uint32_t back_count;            /* of those before: how many are free, */
    uint16_t back[PL_SPARSE_SLOTS]; /* and which; the last is taken first */
} pool = { .lock = PTHREAD_MUTEX_INITIALIZER };

_Static_assert(PL_SPARSE_SLOTS <= UINT16_MAX + 1, "a slot's number fits `back`");

/* Where it cannot be had (a limit on address space, pages larger than a slot) everything comes from
 * libc. */
static void pool_open(void)
{
    size_t size = (size_t)PL_SPARSE_SLOTS * SLOT_BYTES;

    pool.page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    if (pool.page_bytes > SLOT_BYTES)
        return; /* giving back one slot would take its neighbours along */
    void *start = mmap(NULL, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED)
        return;
#ifdef MADV_NOHUGEPAGE
    (void)madvise(start, size, MADV_NOHUGEPAGE); /* or the first byte would cost 2 MiB */
#endif
    pool.start = start;
    pool.end = pool.start + size;
}

static void pool_need(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, pool_open);
}

static void *slot_take(void)
{
    void *slot = NULL;

    pool_need();
    pthread_mutex_lock(&pool.lock);
    if (pool.back_count > 0)
        slot = pool.start + (size_t)pool.back[--pool.back_count] * SLOT_BYTES;
    else if (pool.start && pool.fresh < PL_SPARSE_SLOTS)
        slot = pool.start + (size_t)pool.fresh++ * SLOT_BYTES;
    pthread_mutex_unlock(&pool.lock);
    return slot;
}

static bool slot_is(const void *ptr)
{
    uintptr_t at = (uintptr_t)ptr;

    pool_need();
    return at - (uintptr_t)pool.start < (uintptr_t)pool.end - (uintptr_t)pool.start;
}

static void slot_give(void *slot)
{
    size_t number = (size_t)((unsigned char *)slot - pool.start) / SLOT_BYTES;

    (void)madvise(slot, SLOT_BYTES, MADV_DONTNEED);
    pthread_mutex_lock(&pool.lock);
    pool.back[pool.back_count++] = (uint16_t)number;
    pthread_mutex_unlock(&pool.lock);
}

void *pl__sparse_malloc(size_t size)
{
    void *slot = NULL;

    if (size >= PL_SPARSE_BYTES_MIN && size <= PL_SPARSE_BYTES_MAX)
        slot = slot_take();
    return slot ? slot : malloc(size);
}

void *pl__sparse_realloc(void *ptr, size_t size)
{
    if (size == 0) {
        pl__sparse_free(ptr);
        return NULL;
    }
    if (!slot_is(ptr))
        return ptr ? realloc(ptr, size) : pl__sparse_malloc(size);
    if (size <= SLOT_BYTES)
        return ptr;
    void *larger = malloc(size);
    if (!larger)
        return NULL;
    memcpy(larger, ptr, SLOT_BYTES);
    slot_give(ptr);
    return larger;
}

void pl__sparse_free(void *ptr)
{
    if (slot_is(ptr))
        slot_give(ptr);
    else
        free(ptr);
}

void pl__sparse_forget(const void *bytes, size_t size)
{
    if (!slot_is(bytes))
        return;
    size_t page = pool.page_bytes;
    size_t at = (size_t)((const unsigned char *)bytes - pool.start);
    size_t from = (at + page - 1) / page * page, to = (at + size) / page * page;
    if (from < to)
        (void)madvise(pool.start + from, to - from, MADV_DONTNEED);
}

size_t pl__sparse_taken(void)
{
    pthread_mutex_lock(&pool.lock);
    size_t taken = pool.fresh - pool.back_count;
    pthread_mutex_unlock(&pool.lock);
    return taken;
}
