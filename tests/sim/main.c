/* plimsoll-sim: runs worlds, one for each seed, and tells of the first that violates a property.
 *
 *     plimsoll-sim [--seeds COUNT] [--first SEED] [--jobs N] [--twice] [--status] [--brief] [--until-caught]
 *     plimsoll-sim --seed SEED [--trace] [--status]
 *
 * --twice runs each seed a second time and compares the logs; --status only reports and does not act; --brief
 * tells a line for each failure; --until-caught ends at the first one.
 *
 * A failure ends with the command that repeats it. The last line is "sim: N passed, N failed". */
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sim/sim.h"

enum { JOBS_MAX = 64, FAILURES_SHOWN = 3 };

struct arguments {
    struct sim_options sim;
    uint64_t count;
    int jobs;
    bool one, twice, brief, until_caught;
};

/* What a child tells its parent. */
struct tally {
    uint64_t passed, failed, first_failed;
    uint64_t steps, deletions, removals, moves, replacements, requests;
    uint64_t slowest_settle_ms;
};

static void tell(const struct sim *sim)
{
    uint64_t first = sim->log_count > LOG_LINES ? sim->log_count - LOG_LINES : 0;

    printf("\nseed %" PRIu64 " violates \"%s\" at step %" PRIu64 ": %s\n", sim->options.seed,
           sim->property, sim->steps, sim->failure);
    for (uint64_t i = first; i < sim->log_count; i++)
        printf("  %s\n", sim->log[i % LOG_LINES]);
    printf("again: plimsoll-sim --seed %" PRIu64 "%s --trace\n", sim->options.seed,
           sim->options.manage ? "" : " --status");
    fflush(stdout);
}

static bool run_seed(const struct arguments *a, uint64_t seed, struct tally *tally)
{
    struct sim_options options = a->sim;
    struct sim sim;

    options.seed = seed;
    bool ok = sim_run(&sim, &options);
    uint64_t hash = sim.log_hash;
    if (!ok && a->brief)
        printf("seed %" PRIu64 " violates \"%s\": %s\n", seed, sim.property, sim.failure);
    else if (!ok && tally->failed < FAILURES_SHOWN)
        tell(&sim);
    tally->steps += sim.steps;
    tally->deletions += sim.deletions;
    tally->removals += sim.removals;
    tally->moves += sim.moves;
    tally->replacements += sim.replacements;
    tally->requests += sim.requests;
    if (sim.settled_ms > tally->slowest_settle_ms)
        tally->slowest_settle_ms = sim.settled_ms;
    sim_free(&sim);
    if (a->one)
        printf("seed %" PRIu64 ": %s, log %016" PRIx64 "\n", seed, ok ? "ok" : "FAILED", hash);
    if (!a->twice)
        return ok;
    sim_run(&sim, &options);
    if (sim.log_hash != hash) {
        printf("seed %" PRIu64 " is not deterministic: %016" PRIx64 ", then %016" PRIx64 "\n", seed,
               hash, sim.log_hash);
        ok = false;
    }
    sim_free(&sim);
    return ok;
}

static struct tally run_share(const struct arguments *a, int job)
{
    struct tally tally = { 0 };

    for (uint64_t i = (uint64_t)job; i < a->count; i += (uint64_t)a->jobs) {
        if (run_seed(a, a->sim.seed + i, &tally)) {
            tally.passed++;
        } else {
            if (!tally.failed++)
                tally.first_failed = a->sim.seed + i;
            if (a->until_caught)
                break;
        }
    }
    return tally;
}

static void tally_add(struct tally *sum, const struct tally *t)
{
    if (t->failed && (!sum->failed || t->first_failed < sum->first_failed))
        sum->first_failed = t->first_failed;
    sum->passed += t->passed;
    sum->failed += t->failed;
    sum->steps += t->steps;
    sum->deletions += t->deletions;
    sum->removals += t->removals;
    sum->moves += t->moves;
    sum->replacements += t->replacements;
    sum->requests += t->requests;
    if (t->slowest_settle_ms > sum->slowest_settle_ms)
        sum->slowest_settle_ms = t->slowest_settle_ms;
}

/* A child for each job: a crash of the code under test costs one share, and is seen. */
static int run_jobs(const struct arguments *a, struct tally *sum)
{
    int pipes[JOBS_MAX], broken = 0;
    pid_t children[JOBS_MAX];

    fflush(stdout);
    for (int i = 0; i < a->jobs; i++) {
        int ends[2];
        if (pipe(ends) < 0 || (children[i] = fork()) < 0) {
            perror("plimsoll-sim");
            exit(2);
        }
        if (children[i] == 0) {
            struct tally tally = run_share(a, i);
            bool told = write(ends[1], &tally, sizeof tally) == (ssize_t)sizeof tally;
            fflush(stdout);
            _exit(told ? 0 : 2);
        }
        close(ends[1]);
        pipes[i] = ends[0];
    }
    for (int i = 0; i < a->jobs; i++) {
        struct tally tally;
        int status = 0;
        bool told = read(pipes[i], &tally, sizeof tally) == (ssize_t)sizeof tally;
        close(pipes[i]);
        if (waitpid(children[i], &status, 0) < 0 || !told || status != 0) {
            printf("job %d broke (status %d): a crash in the code under test?\n", i, status);
            broken++;
            continue;
        }
        tally_add(sum, &tally);
    }
    return broken;
}

static uint64_t number(int argc, char **argv, int *i)
{
    uint64_t value;

    if (*i + 1 >= argc || !pl__str_to_u64(pl__str(argv[*i + 1]), &value)) {
        fprintf(stderr, "plimsoll-sim: %s wants a number\n", argv[*i]);
        exit(2);
    }
    ++*i;
    return value;
}

static struct arguments arguments_read(int argc, char **argv)
{
    struct arguments a = { .sim = { .seed = 1, .manage = true }, .count = 2000, .jobs = 2 };

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--seeds") == 0) {
            a.count = number(argc, argv, &i);
        } else if (strcmp(argv[i], "--first") == 0) {
            a.sim.seed = number(argc, argv, &i);
        } else if (strcmp(argv[i], "--seed") == 0) {
            a.sim.seed = number(argc, argv, &i);
            a.one = true;
            a.count = 1;
        } else if (strcmp(argv[i], "--jobs") == 0) {
            a.jobs = (int)number(argc, argv, &i);
        } else if (strcmp(argv[i], "--trace") == 0) {
            a.sim.trace = true;
        } else if (strcmp(argv[i], "--twice") == 0) {
            a.twice = true;
        } else if (strcmp(argv[i], "--brief") == 0) {
            a.brief = true;
        } else if (strcmp(argv[i], "--until-caught") == 0) {
            a.brief = a.until_caught = true;
        } else if (strcmp(argv[i], "--status") == 0) {
            a.sim.manage = false;
        } else {
            fprintf(stderr, "plimsoll-sim: unknown option %s\n", argv[i]);
            exit(2);
        }
    }
    if (a.jobs < 1 || a.jobs > JOBS_MAX)
        a.jobs = 1;
    return a;
}

int main(int argc, char **argv)
{
    struct arguments a = arguments_read(argc, argv);
    struct tally sum = { 0 };
    struct timespec start, end;
    int broken = 0;

    clock_gettime(CLOCK_MONOTONIC, &start);
    if (a.one)
        return run_seed(&a, a.sim.seed, &sum) ? 0 : 1;
    broken = run_jobs(&a, &sum);
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("seeds %" PRIu64 " to %" PRIu64 " in %.1f s: %" PRIu64 " steps, %" PRIu64
           " requests, %" PRIu64 " Machines deleted, %" PRIu64 " replaced, %" PRIu64
           " members removed, %" PRIu64 " leaders moved, slowest to settle %" PRIu64 " s\n",
           a.sim.seed, a.sim.seed + a.count - 1,
           (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec),
           sum.steps, sum.requests, sum.deletions, sum.replacements, sum.removals, sum.moves,
           sum.slowest_settle_ms / 1000);
    if (sum.failed)
        printf("first failure: seed %" PRIu64 "\n", sum.first_failed);
    printf("sim: %" PRIu64 " passed, %" PRIu64 " failed\n", sum.passed,
           sum.failed + (uint64_t)broken);
    return sum.failed || broken ? 1 : 0;
}
