/* base/bytequeue.h - bytes waiting to be taken away: added behind, dropped in front, never more than `max`.
 *
 * For connections, which live long and are mostly silent: memory comes from the heap, not from an arena,
 * and a queue that ran empty gives a large block back. */
#ifndef PL_BASE_BYTEQUEUE_H
#define PL_BASE_BYTEQUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pl_bytequeue {
    uint8_t *data;
    size_t start; /* the first byte that is still there */
    size_t len;   /* bytes that are there */
    size_t capacity;
    size_t max;
    bool secret; /* what leaves it is overwritten */
};

void pl__bytequeue_init(struct pl_bytequeue *q, size_t max);
void pl__bytequeue_release(struct pl_bytequeue *q);

/* 0, or -1 when there would be more than `max`; then nothing was added. */
int pl__bytequeue_add(struct pl_bytequeue *q, const void *bytes, size_t size);

/* Takes the first `size` bytes away; there must be as many. */
void pl__bytequeue_drop(struct pl_bytequeue *q, size_t size);

/* All that is there, until the next add or drop. */
static inline const uint8_t *pl__bytequeue_bytes(const struct pl_bytequeue *q)
{
    return q->data ? q->data + q->start : NULL;
}

#endif
