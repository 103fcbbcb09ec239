/* tests/prng.h - randomness that a seed repeats, on every machine (splitmix64). */
#ifndef PL_TESTS_PRNG_H
#define PL_TESTS_PRNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct prng {
    uint64_t state;
};

static inline uint64_t prng_next(struct prng *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* From 0 to count - 1. The bias of the remainder is of no concern here. */
static inline size_t prng_below(struct prng *r, size_t count)
{
    return (size_t)(prng_next(r) % count);
}

/* True once in `n` times. */
static inline bool prng_one_in(struct prng *r, size_t n)
{
    return prng_below(r, n) == 0;
}

#endif
