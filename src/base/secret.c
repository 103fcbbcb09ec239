#include "base/secret.h"

#include <stdlib.h>
#include <string.h>

void pl__secret_wipe(void *bytes, size_t size)
{
    if (!bytes || size == 0)
        return;
    memset(bytes, 0, size);
    /* Says that the zeros are read, so that they are written though nobody else reads them. */
    __asm__ __volatile__("" : : "r"(bytes) : "memory");
}

static void *secret_alloc(void *user, size_t size)
{
    (void)user;
    return malloc(size);
}

static void secret_free(void *user, void *ptr, size_t size)
{
    (void)user;
    pl__secret_wipe(ptr, size);
    free(ptr);
}

const struct pl_allocator pl__secret_allocator = { .alloc = secret_alloc, .free = secret_free };
