/* The token bucket, with time from outside. */
#include "test.h"

#include "loop/ratelimit.h"

int main(void)
{
    struct pl_ratelimit r;

    CASE("no limit");
    pl__ratelimit_init(&r, 0, 0, 5);
    for (int i = 0; i < 1000; i++)
        CHECK_INT(pl__ratelimit_take(&r, 5), 0);
    CASE("a burst, then one every 100 ms");
    pl__ratelimit_init(&r, 10, 3, 1000);
    for (int i = 0; i < 3; i++)
        CHECK_INT(pl__ratelimit_take(&r, 1000), 0);
    uint64_t wait_ms = pl__ratelimit_take(&r, 1000);
    CHECK(wait_ms >= 100 && wait_ms <= 101);
    CHECK(pl__ratelimit_take(&r, 1050) > 0);
    CHECK_INT(pl__ratelimit_take(&r, 1000 + wait_ms), 0);
    CHECK(pl__ratelimit_take(&r, 1000 + wait_ms) > 0);
    CASE("what was not used is kept up to the burst");
    for (int i = 0; i < 3; i++)
        CHECK_INT(pl__ratelimit_take(&r, 100000), 0);
    CHECK(pl__ratelimit_take(&r, 100000) > 0);
    CASE("a clock that stands still or goes back");
    CHECK(pl__ratelimit_take(&r, 99000) > 0);
    CASE("a burst below one");
    pl__ratelimit_init(&r, 0.5, 0, 0);
    CHECK_INT(pl__ratelimit_take(&r, 0), 0);
    CHECK(pl__ratelimit_take(&r, 0) >= 2000);
    CHECK_INT(pl__ratelimit_take(&r, 2001), 0);
    CASE("the wait is enough, for many rates");
    for (int qps = 1; qps < 2000; qps += 7) {
        uint64_t now_ms = 50;
        pl__ratelimit_init(&r, qps, 1, now_ms);
        for (int i = 0; i < 20; i++) {
            uint64_t more = pl__ratelimit_take(&r, now_ms);
            if (more) {
                now_ms += more;
                CHECK_INT(pl__ratelimit_take(&r, now_ms), 0);
            }
        }
    }
    return test_end("ratelimit");
}
