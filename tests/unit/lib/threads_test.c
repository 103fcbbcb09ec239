/* Two threads, a context each: no sharing, the same bytes. ThreadSanitizer sees what this cannot. */
#include "plimsoll.h"

#include <pthread.h>
#include <stdlib.h>

#include "test.h"

enum { THREAD_COUNT = 2, ROUND_COUNT = 50 };

static const char *const paths[] = { "examples/healthy.yaml", "examples/alarm.yaml",
                                     "examples/deleting.yaml", "examples/quorum-at-risk.yaml" };
enum { PATH_COUNT = sizeof paths / sizeof paths[0] };

struct text {
    char *bytes;
    size_t size;
};

static struct text file_read(const char *path)
{
    struct text t = { malloc(1 << 20), 0 };
    FILE *f = fopen(path, "rb");

    if (!f || !t.bytes) {
        fprintf(stderr, "%s: cannot be read\n", path);
        exit(1);
    }
    t.size = fread(t.bytes, 1, 1 << 20, f);
    fclose(f);
    return t;
}

/* What one thread has to do and what came of it. */
struct job {
    const struct text *inputs;
    enum pl_profile profile;
    uint64_t hash; /* of all that was said */
    int report_count;
};

static uint64_t hash_add(uint64_t hash, struct pl_str s)
{
    for (size_t i = 0; i < s.len; i++)
        hash = (hash ^ (unsigned char)s.ptr[i]) * 1099511628211u;
    return hash;
}

static void *work(void *argument)
{
    struct job *job = argument;
    struct pl_context *ctx =
        pl_context_new(&(struct pl_options){ .profile = job->profile, .explain = true });

    for (int i = 0; i < ROUND_COUNT; i++) {
        const struct text *input = &job->inputs[i % PATH_COUNT];
        const struct pl_report *report;
        if (pl_context_add(ctx, paths[i % PATH_COUNT], input->bytes, input->size) < 0)
            break;
        while (pl_context_next(ctx, &report) > 0) {
            job->hash = hash_add(job->hash, pl_report_json(ctx, report));
            job->report_count++;
        }
        /* Errors have their own memory, too. */
        if (pl_context_add(ctx, "bad", "{", 1) == 0 && pl_context_next(ctx, &report) < 0)
            job->hash = hash_add(job->hash, pl__str(pl_context_error(ctx)));
    }
    pl_context_free(ctx);
    return NULL;
}

int main(void)
{
    struct text inputs[PATH_COUNT];

    for (int i = 0; i < PATH_COUNT; i++)
        inputs[i] = file_read(paths[i]);
    for (int profile = 0; profile < PL_PROFILE_COUNT; profile++) {
        struct job alone = { .inputs = inputs, .profile = (enum pl_profile)profile };
        struct job jobs[THREAD_COUNT];
        pthread_t threads[THREAD_COUNT];

        work(&alone);
        CASE("%s: two threads say what one does", pl_profile_name((enum pl_profile)profile))
        for (int i = 0; i < THREAD_COUNT; i++) {
            jobs[i] = (struct job){ .inputs = inputs, .profile = (enum pl_profile)profile };
            CHECK_INT(pthread_create(&threads[i], NULL, work, &jobs[i]), 0);
        }
        for (int i = 0; i < THREAD_COUNT; i++) {
            CHECK_INT(pthread_join(threads[i], NULL), 0);
            CHECK_INT(jobs[i].report_count, ROUND_COUNT);
            CHECK(jobs[i].hash == alone.hash);
        }
    }
    for (int i = 0; i < PATH_COUNT; i++)
        free(inputs[i].bytes);
    return test_end("threads");
}
