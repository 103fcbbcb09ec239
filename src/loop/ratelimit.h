/* loop/ratelimit.h - a token bucket. Time comes in; nothing is queued here. */
#ifndef PL_LOOP_RATELIMIT_H
#define PL_LOOP_RATELIMIT_H

#include <stdbool.h>
#include <stdint.h>

struct pl_ratelimit {
    double qps; /* 0: no limit */
    double burst;
    double tokens;
    uint64_t filled_ms; /* when `tokens` was right */
};

/* Full at the start. A burst below 1 counts as 1. */
void pl__ratelimit_init(struct pl_ratelimit *r, double qps, double burst, uint64_t now_ms);

/* Takes one. 0, or the milliseconds after which asking again is worth it (at least 1). */
uint64_t pl__ratelimit_take(struct pl_ratelimit *r, uint64_t now_ms);

#endif
