#include "loop/ratelimit.h"

void pl__ratelimit_init(struct pl_ratelimit *r, double qps, double burst, uint64_t now_ms)
{
    if (burst < 1)
        burst = 1;
    *r = (struct pl_ratelimit){ .qps = qps, .burst = burst, .tokens = burst, .filled_ms = now_ms };
}

uint64_t pl__ratelimit_take(struct pl_ratelimit *r, uint64_t now_ms)
{
    if (r->qps <= 0)
        return 0;
    if (now_ms > r->filled_ms) {
        r->tokens += (double)(now_ms - r->filled_ms) * r->qps / 1000;
        r->filled_ms = now_ms;
        if (r->tokens > r->burst)
            r->tokens = r->burst;
    }
    if (r->tokens >= 1) {
        r->tokens -= 1;
        return 0;
    }
    double wait_ms = (1 - r->tokens) * 1000 / r->qps;
    return wait_ms < 1 ? 1 : wait_ms > 3600000 ? 3600000 : (uint64_t)wait_ms + 1;
}
