#include "base/bytequeue.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/secret.h"

enum {
    CAPACITY_MIN = 1024,
    CAPACITY_KEPT_MAX = 32 * 1024, /* an empty queue holds no more than this */
};

void pl__bytequeue_init(struct pl_bytequeue *q, size_t max)
{
    *q = (struct pl_bytequeue){ .max = max };
}

static void block_free(struct pl_bytequeue *q)
{
    if (q->secret && q->data)
        pl__secret_wipe(q->data, q->capacity);
    free(q->data);
    q->data = NULL;
    q->capacity = 0;
}

void pl__bytequeue_release(struct pl_bytequeue *q)
{
    block_free(q);
    q->start = q->len = 0;
}

/* realloc() would leave a copy of what may be secret behind. */
static void grow(struct pl_bytequeue *q, size_t needed)
{
    size_t capacity = q->capacity ? q->capacity : CAPACITY_MIN;

    while (capacity < needed)
        capacity *= 2;
    uint8_t *data = malloc(capacity);
    if (!data)
        abort();
    if (q->len)
        memcpy(data, q->data + q->start, q->len);
    block_free(q);
    q->data = data;
    q->start = 0;
    q->capacity = capacity;
}

int pl__bytequeue_add(struct pl_bytequeue *q, const void *bytes, size_t size)
{
    if (size > q->max - q->len)
        return -1;
    if (size == 0)
        return 0;
    if (q->len + size > q->capacity) {
        grow(q, q->len + size);
    } else if (q->start + q->len + size > q->capacity) {
        memmove(q->data, q->data + q->start, q->len);
        q->start = 0;
    }
    memcpy(q->data + q->start + q->len, bytes, size);
    q->len += size;
    return 0;
}

void pl__bytequeue_drop(struct pl_bytequeue *q, size_t size)
{
    assert(size <= q->len);
    if (size == 0)
        return;
    if (q->secret)
        pl__secret_wipe(q->data + q->start, size);
    q->start += size;
    q->len -= size;
    if (q->len > 0)
        return;
    q->start = 0;
    if (q->capacity > CAPACITY_KEPT_MAX)
        block_free(q);
}
