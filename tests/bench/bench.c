#include "bench.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const struct bench *const groups[] = { decode_benches, evaluate_benches, cache_benches,
                                              stream_benches };
enum { GROUP_COUNT = sizeof groups / sizeof groups[0] };

/* --- time and memory --------------------------------------------------------------------------- */

static double clock_s(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

double bench_wall_s(void)
{
    return clock_s(CLOCK_MONOTONIC);
}

size_t bench_rss_bytes(void)
{
    char line[128] = "";
    FILE *f = fopen("/proc/self/statm", "r"); /* pages: "total resident ..." */

    if (!f)
        return 0;
    if (!fgets(line, sizeof line, f))
        line[0] = '\0';
    fclose(f);
    const char *resident = strchr(line, ' ');
    return resident ? strtoul(resident, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE) : 0;
}

static void *counted_alloc(void *user, size_t size)
{
    struct bench_heap *heap = user;

    heap->alloc_count++;
    heap->held_bytes += size;
    if (heap->held_bytes > heap->peak_bytes)
        heap->peak_bytes = heap->held_bytes;
    return malloc(size);
}

static void counted_free(void *user, void *ptr, size_t size)
{
    struct bench_heap *heap = user;

    heap->held_bytes -= size;
    free(ptr);
}

const struct pl_allocator *bench_allocator(struct bench_run *r)
{
    r->count_allocs = true;
    r->heap.allocator = (struct pl_allocator){ &r->heap, counted_alloc, counted_free };
    return &r->heap.allocator;
}

void bench_fail(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

/* --- measuring --------------------------------------------------------------------------------- */

static void batch_start(struct bench_run *r)
{
    r->left = r->batch - 1;
    r->alloc_start = r->heap.alloc_count;
    r->cpu_start_s = clock_s(CLOCK_PROCESS_CPUTIME_ID);
    r->wall_start_s = clock_s(CLOCK_MONOTONIC);
}

/* How many operations fill a batch, going by one that was too short; at most ten times as many. */
static uint64_t batch_grown(const struct bench_run *r, double wall_s)
{
    double factor = wall_s > 0 ? 1.4 * r->batch_s_min / wall_s : 10;

    if (factor > 10)
        factor = 10;
    if (factor < 2)
        factor = 2;
    return (uint64_t)((double)r->batch * factor);
}

bool bench_turn(struct bench_run *r)
{
    if (!r->started) {
        r->started = true;
        r->batch = 1;
        batch_start(r);
        return true;
    }
    double wall_s = clock_s(CLOCK_MONOTONIC) - r->wall_start_s;
    double cpu_s = clock_s(CLOCK_PROCESS_CPUTIME_ID) - r->cpu_start_s;
    double batch = (double)r->batch;

    if (r->sample_count == 0 && wall_s < r->batch_s_min) {
        r->batch = batch_grown(r, wall_s);
    } else {
        r->wall_s[r->sample_count] = wall_s / batch;
        r->cpu_s[r->sample_count] = cpu_s / batch;
        r->allocs = (double)(r->heap.alloc_count - r->alloc_start) / batch;
        if (++r->sample_count == r->repetitions)
            return false;
    }
    batch_start(r);
    return true;
}

void bench_bytes(struct bench_run *r, size_t bytes)
{
    r->bytes = (double)bytes;
}

void bench_counter(struct bench_run *r, const char *name, double value)
{
    if (r->counter_count == BENCH_COUNTERS_MAX)
        bench_fail("%s: more than %d counters", r->name, BENCH_COUNTERS_MAX);
    r->counters[r->counter_count].name = name;
    r->counters[r->counter_count++].value = value;
}

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static double median(double *values, unsigned count)
{
    qsort(values, count, sizeof *values, by_value);
    return values[count / 2];
}

void bench_per_item(struct bench_run *r, const char *name, int item_count)
{
    bench_counter(r, name, median(r->cpu_s, r->sample_count) * 1e9 / item_count);
}

/* --- printing ---------------------------------------------------------------------------------- */

static void print_head(FILE *json)
{
    printf("%-44s %14s %14s %12s UserCounters...\n", "Benchmark", "Time", "CPU", "Iterations");
    for (int i = 0; i < 112; i++)
        putchar('-');
    putchar('\n');
    if (!json)
        return;
    fprintf(json,
            "{\n  \"context\": {\"executable\": \"bench_engine\", \"library_version\": \"%s\", "
            "\"num_cpus\": %ld},\n  \"benchmarks\": [",
            pl_version(), sysconf(_SC_NPROCESSORS_ONLN));
}

static void print_run(struct bench_run *r, FILE *json, bool first)
{
    double wall_s = median(r->wall_s, r->sample_count);
    double cpu_s = median(r->cpu_s, r->sample_count);
    uint64_t iterations = r->batch * r->sample_count;

    printf("%-44s %11.0f ns %11.0f ns %12llu", r->name, wall_s * 1e9, cpu_s * 1e9,
           (unsigned long long)iterations);
    if (r->bytes > 0)
        printf(" %.1f MB/s", r->bytes / cpu_s / 1e6);
    if (r->count_allocs)
        printf(" allocs/op=%.4g", r->allocs);
    for (unsigned i = 0; i < r->counter_count; i++)
        printf(" %s=%.6g", r->counters[i].name, r->counters[i].value);
    putchar('\n');
    fflush(stdout);
    if (!json)
        return;
    fprintf(json,
            "%s\n    {\"name\": \"%s\", \"run_type\": \"iteration\", \"repetitions\": %u, "
            "\"iterations\": %llu, \"real_time\": %.1f, \"cpu_time\": %.1f, \"time_unit\": \"ns\"",
            first ? "" : ",", r->name, r->sample_count, (unsigned long long)iterations,
            wall_s * 1e9, cpu_s * 1e9);
    if (r->bytes > 0)
        fprintf(json, ", \"bytes_per_second\": %.0f", r->bytes / cpu_s);
    if (r->count_allocs)
        fprintf(json, ", \"allocs/op\": %.4g", r->allocs);
    for (unsigned i = 0; i < r->counter_count; i++)
        fprintf(json, ", \"%s\": %.10g", r->counters[i].name, r->counters[i].value);
    fputc('}', json);
}

/* --- the program ------------------------------------------------------------------------------- */

struct settings {
    const char *filter;
    const char *json;
    double seconds;
    unsigned repetitions;
    bool quick;
    bool list;
};

static void usage(void)
{
    puts("bench_engine [--filter TEXT] [--json FILE] [--min-time SECONDS] [--repetitions N]\n"
         "             [--quick] [--list]\n\n"
         "  --filter TEXT       only benchmarks with TEXT in their names\n"
         "  --json FILE         the same results as JSON, too\n"
         "  --min-time SECONDS  of each benchmark, all repetitions (1)\n"
         "  --repetitions N     the median of so many is shown (5)\n"
         "  --quick             once, on small inputs: does it run?\n"
         "  --list              names only");
}

static const char *value_of(int argc, char **argv, int *at)
{
    if (*at + 1 >= argc)
        bench_fail("%s: a value is missing", argv[*at]);
    return argv[++*at];
}

static struct settings settings_read(int argc, char **argv)
{
    struct settings s = { .filter = "", .seconds = 1, .repetitions = 5 };

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--filter") == 0) {
            s.filter = value_of(argc, argv, &i);
        } else if (strcmp(argv[i], "--json") == 0) {
            s.json = value_of(argc, argv, &i);
        } else if (strcmp(argv[i], "--min-time") == 0) {
            s.seconds = strtod(value_of(argc, argv, &i), NULL);
        } else if (strcmp(argv[i], "--repetitions") == 0) {
            s.repetitions = (unsigned)strtoul(value_of(argc, argv, &i), NULL, 10);
        } else if (strcmp(argv[i], "--quick") == 0) {
            s.quick = true;
        } else if (strcmp(argv[i], "--list") == 0) {
            s.list = true;
        } else {
            usage();
            exit(strcmp(argv[i], "--help") == 0 ? 0 : 2);
        }
    }
    if (s.quick) {
        s.seconds = 0;
        s.repetitions = 1;
    }
    if (s.repetitions < 1 || s.repetitions > BENCH_REPETITIONS_MAX)
        bench_fail("--repetitions: 1 to %d", BENCH_REPETITIONS_MAX);
    return s;
}

int main(int argc, char **argv)
{
    struct settings s = settings_read(argc, argv);
    FILE *json = NULL;
    bool first = true;

    if (s.json && !(json = fopen(s.json, "w")))
        bench_fail("%s: cannot be written", s.json);
    if (!s.list)
        print_head(json);
    for (int g = 0; g < GROUP_COUNT; g++) {
        for (const struct bench *b = groups[g]; b->name; b++) {
            struct bench_run r = { .name = b->name,
                                   .quick = s.quick,
                                   .repetitions = s.repetitions,
                                   .batch_s_min = s.seconds / s.repetitions };
            if (!strstr(b->name, s.filter))
                continue;
            if (s.list) {
                puts(b->name);
                continue;
            }
            b->run(&r);
            print_run(&r, json, first);
            first = false;
        }
    }
    if (json) {
        fputs("\n  ]\n}\n", json);
        if (fclose(json) != 0)
            bench_fail("%s: cannot be written", s.json);
    }
    return 0;
}
