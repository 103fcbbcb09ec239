/* tests/bench/bench.h - how benchmarks are run and printed.
 *
 *     static void sum(struct bench_run *r)
 *     {
 *         ... prepare ...
 *         while (bench_next(r))
 *             total += work();
 *         bench_bytes(r, size);              // a rate: MB/s
 *         bench_counter(r, "objects", 3000); // anything else worth a column
 *     }
 *
 * The loop is run in batches. The batch grows until it takes its share of the minimum time, then
 * is repeated; the median of the repetitions is reported, which a few disturbed ones cannot move.
 * Rates are by CPU time, as in Google Benchmark: other programs on the machine cost wall time. */
#ifndef PL_BENCH_H
#define PL_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plimsoll.h"

enum { BENCH_REPETITIONS_MAX = 16, BENCH_COUNTERS_MAX = 8 };

/* malloc, counted. */
struct bench_heap {
    struct pl_allocator allocator; /* hand this to what is measured */
    uint64_t alloc_count;
    size_t held_bytes;
    size_t peak_bytes;
};

struct bench_run {
    const char *name;
    bool quick; /* a look whether it runs at all: take small inputs */

    /* For bench_next() only. */
    uint64_t left;
    uint64_t batch;
    double batch_s_min;
    unsigned repetitions;
    unsigned sample_count;
    bool started;
    double wall_start_s, cpu_start_s;
    uint64_t alloc_start;
    double wall_s[BENCH_REPETITIONS_MAX], cpu_s[BENCH_REPETITIONS_MAX]; /* an operation's */

    struct bench_heap heap;
    bool count_allocs; /* report heap.alloc_count as allocs/op */
    double allocs;
    double bytes; /* an operation's; 0: no rate */
    struct {
        const char *name;
        double value;
    } counters[BENCH_COUNTERS_MAX];
    unsigned counter_count;
};

struct bench {
    const char *name;
    void (*run)(struct bench_run *r);
};

/* One file of benchmarks each; ends with a NULL name. */
extern const struct bench decode_benches[], evaluate_benches[], cache_benches[], stream_benches[];

bool bench_turn(struct bench_run *r);

/* True while there is more to measure. */
static inline bool bench_next(struct bench_run *r)
{
    if (r->left) {
        r->left--;
        return true;
    }
    return bench_turn(r);
}

void bench_bytes(struct bench_run *r, size_t bytes);
void bench_counter(struct bench_run *r, const char *name, double value);

/* A counter: the CPU time of an operation that handles so many items, an item. After the loop. */
void bench_per_item(struct bench_run *r, const char *name, int item_count);

/* The counting allocator; its calls in the measured loop are reported as allocs/op. */
const struct pl_allocator *bench_allocator(struct bench_run *r);

double bench_wall_s(void);

/* What the system has given this process, in bytes; 0 where it does not tell. */
size_t bench_rss_bytes(void);

/* Makes the compiler believe that `p` is used. */
static inline void bench_use(const void *p)
{
    __asm__ volatile("" : : "g"(p) : "memory");
}

/* Prints the message and exits: a benchmark whose work fails measures nothing. */
void bench_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif
