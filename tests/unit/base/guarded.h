/* Text that ends where readable memory ends: one byte too far, and the test dies on the spot, with
 * or without a sanitizer. Include it first: it asks for MAP_ANONYMOUS. */
#ifndef PL_TEST_GUARDED_H
#define PL_TEST_GUARDED_H

#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE
#endif
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/str.h"

struct guarded {
    char *pages;
    size_t size; /* readable bytes; a page that is not follows */
    size_t page;
};

static inline void guarded_init(struct guarded *g, size_t size_max)
{
    g->page = (size_t)sysconf(_SC_PAGESIZE);
    g->size = (size_max + g->page - 1) / g->page * g->page;
    g->pages =
        mmap(NULL, g->size + g->page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (g->pages == MAP_FAILED || mprotect(g->pages + g->size, g->page, PROT_NONE) != 0)
        abort();
}

/* A copy of `s` that ends at the last readable byte; the one before it is gone. */
static inline struct pl_str guarded_put(struct guarded *g, struct pl_str s)
{
    if (s.len > g->size)
        abort();
    char *to = g->pages + g->size - s.len;
    if (s.len)
        memmove(to, s.ptr, s.len);
    return (struct pl_str){ to, s.len };
}

static inline void guarded_release(struct guarded *g)
{
    munmap(g->pages, g->size + g->page);
}

#endif
