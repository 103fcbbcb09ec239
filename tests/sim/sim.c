#include "sim/sim.h"

#include <stdarg.h>
#include <stdlib.h>

#include "base/time.h"

enum {
    FAULTS_MIN_MS = 8 * 60 * 1000,
    FAULTS_MAX_MS = 30 * 60 * 1000,
    SETTLE_MS = 90 * 60 * 1000, /* for everything to be well again */
    LOOK_MS = 10 * 1000,        /* how often it is asked whether it is */
    CALM_MS = 60 * 1000,        /* how long it must stay so */
    AT_ONCE_MAX = 100000,       /* events at one moment: somebody is going in circles */
};

/* --- time -------------------------------------------------------------------------------------------- */

static bool before(const struct due *a, const struct due *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

void sim_at(struct sim *sim, uint64_t at_ms, sim_fn *run, void *what)
{
    struct due due = { at_ms > sim->now.mono_ms ? at_ms : sim->now.mono_ms, ++sim->sequence, run,
                       what };
    size_t i = sim->heap_count++;

    if (i == sim->heap_capacity) {
        size_t capacity = sim->heap_capacity ? 2 * sim->heap_capacity : 1024;
        sim->heap = pl__arena_grow(&sim->arena, sim->heap, sim->heap_capacity * sizeof *sim->heap,
                                   capacity * sizeof *sim->heap);
        sim->heap_capacity = capacity;
    }
    for (; i > 0 && before(&due, &sim->heap[(i - 1) / 2]); i = (i - 1) / 2)
        sim->heap[i] = sim->heap[(i - 1) / 2];
    sim->heap[i] = due;
}

static struct due heap_take(struct sim *sim)
{
    struct due first = sim->heap[0], last = sim->heap[--sim->heap_count];
    size_t i = 0;

    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= sim->heap_count)
            break;
        if (child + 1 < sim->heap_count && before(&sim->heap[child + 1], &sim->heap[child]))
            child++;
        if (!before(&sim->heap[child], &last))
            break;
        sim->heap[i] = sim->heap[child];
        i = child;
    }
    sim->heap[i] = last;
    return first;
}

void sim_after(struct sim *sim, uint64_t ms, sim_fn *run, void *what)
{
    sim_at(sim, sim->now.mono_ms + ms, run, what);
}

uint64_t sim_between(struct sim *sim, uint64_t low, uint64_t high)
{
    return low + prng_below(&sim->random, (size_t)(high - low + 1));
}

bool sim_percent(struct sim *sim, int percent)
{
    return (int)prng_below(&sim->random, 100) < percent;
}

struct pl_str sim_time_text(struct sim *sim, int64_t wall_ms)
{
    struct pl_buf b;

    pl__buf_init(&b, &sim->arena, 64);
    pl__time_add(&b, wall_ms);
    return pl__buf_str(&b);
}

/* --- the log ----------------------------------------------------------------------------------------- */

static void log_line(struct sim *sim, const char *line)
{
    sim->log_hash = pl__str_hash(sim->log_hash, pl__str(line));
    if (sim->options.trace)
        printf("%s\n", line);
}

static int line_start(const struct sim *sim, char *line, size_t size)
{
    return snprintf(line, size, "%6" PRIu64 ".%03u ", sim->now.mono_ms / 1000,
                    (unsigned)(sim->now.mono_ms % 1000));
}

void sim_log(struct sim *sim, const char *format, ...)
{
    char *line = sim->log[sim->log_count++ % LOG_LINES];
    int start = line_start(sim, line, LOG_LINE_BYTES);
    va_list args;

    va_start(args, format);
    vsnprintf(line + start, LOG_LINE_BYTES - (size_t)start, format, args);
    va_end(args);
    log_line(sim, line);
}

void sim_note(struct sim *sim, const char *format, ...)
{
    char line[LOG_LINE_BYTES];
    int start = line_start(sim, line, sizeof line);
    va_list args;

    va_start(args, format);
    vsnprintf(line + start, sizeof line - (size_t)start, format, args);
    va_end(args);
    log_line(sim, line);
}

void sim_violated(struct sim *sim, const char *property, const char *format, ...)
{
    va_list args;

    if (sim->failed)
        return; /* the first one is what counts */
    sim->failed = true;
    snprintf(sim->property, sizeof sim->property, "%s", property);
    va_start(args, format);
    vsnprintf(sim->failure, sizeof sim->failure, format, args);
    va_end(args);
    sim_log(sim, "VIOLATED: %s: %s", property, sim->failure);
}

/* --- the run ----------------------------------------------------------------------------------------- */

/* The process that wants to be woken first. */
static struct process *next_to_wake(struct sim *sim, uint64_t *at)
{
    struct process *next = NULL;

    *at = UINT64_MAX;
    for (int i = 0; i < sim->process_count; i++) {
        struct process *p = sim->processes[i];
        uint64_t wake = p->alive ? process_wake_ms(p) : UINT64_MAX;
        if (wake < *at) {
            *at = wake;
            next = p;
        }
    }
    return next;
}

/* Everything up to that moment happens. */
static void run_until(struct sim *sim, uint64_t end_ms)
{
    int at_once = 0;

    while (!sim->failed) {
        uint64_t wake;
        struct process *p = next_to_wake(sim, &wake);
        uint64_t due = sim->heap_count ? sim->heap[0].at : UINT64_MAX;
        uint64_t next = wake < due ? wake : due;

        if (next > end_ms)
            next = end_ms;
        at_once = next > sim->now.mono_ms ? 0 : at_once + 1;
        if (at_once > AT_ONCE_MAX)
            sim_violated(sim, "no busy waiting", "%d events at one moment", at_once);
        if (next > sim->now.mono_ms) {
            sim->now.wall_ms += (int64_t)(next - sim->now.mono_ms);
            sim->now.mono_ms = next;
        }
        if (due <= sim->now.mono_ms) {
            struct due first = heap_take(sim);
            first.run(sim, first.what);
        } else if (wake <= sim->now.mono_ms) {
            process_step(p, &(struct pl_event){ .type = EVENT_TICK });
        } else {
            return;
        }
        check_always(sim);
    }
}

/* Nothing fails any more: spec and status must meet, and stay so. */
static void settle(struct sim *sim)
{
    uint64_t start = sim->now.mono_ms, calm_since = 0;
    char why[1024] = "";

    while (!sim->failed) {
        people_help(sim);
        run_until(sim, sim->now.mono_ms + LOOK_MS);
        if (sim->failed)
            return;
        if (!check_settled(sim, why, sizeof why))
            calm_since = 0;
        else if (!calm_since)
            calm_since = sim->now.mono_ms;
        if (calm_since && sim->now.mono_ms - calm_since >= CALM_MS) {
            sim->settled_ms = calm_since - start;
            return;
        }
        if (sim->now.mono_ms - start > SETTLE_MS)
            sim_violated(sim, "settles after the faults", "%s", why);
    }
}

bool sim_run(struct sim *sim, const struct sim_options *options)
{
    *sim = (struct sim){ .options = *options,
                         .random = { options->seed },
                         .log_hash = PL_HASH_BEGIN,
                         .now = { .mono_ms = 1000000, .wall_ms = 1794708000000 } };
    pl__arena_init(&sim->arena, NULL, 1 << 20);
    pl__arena_init(&sim->scratch, NULL, 1 << 16);
    for (int i = 0; i <= CLUSTERS_MAX; i++) {
        sim->servers[i] = (struct server){ .sim = sim, .index = i, .version = 100 };
        sim->servers[i].without_watchlist = sim_percent(sim, 20);
    }
    sim->profile = sim_percent(sim, 50) ? PL_PROFILE_TABLES : PL_PROFILE_CLUSTER_API_1_12;
    sim->peace = true; /* while it is built */
    world_build(sim);
    process_start(sim);
    faults_start(sim);
    run_until(sim, sim->now.mono_ms + sim_between(sim, FAULTS_MIN_MS, FAULTS_MAX_MS));
    if (!sim->failed)
        faults_end(sim);
    settle(sim);
    return !sim->failed;
}

void sim_free(struct sim *sim)
{
    for (int i = 0; i < sim->process_count; i++) {
        if (sim->processes[i]->controller)
            pl_controller_free(sim->processes[i]->controller);
    }
    pl__arena_release(&sim->scratch);
    pl__arena_release(&sim->arena);
}
