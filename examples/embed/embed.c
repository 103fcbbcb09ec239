/* Embedding plimsoll: reads snapshots from a file and prints what calls for attention, with the row
 * of the table that says so and the evidence for it.
 *
 *     cc embed.c $(pkg-config --cflags --libs plimsoll) -o embed && ./embed snapshot.yaml
 *
 * Exit code 0: all is well, 1: there are findings, 2: the input could not be judged. */
#include <plimsoll.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* malloc with a bill: an embedder that has pools or limits of its own puts them here. */
struct bill {
    size_t allocs, frees;
    size_t held_bytes, peak_bytes;
};

static void *bill_alloc(void *user, size_t size)
{
    struct bill *bill = user;

    bill->allocs++;
    bill->held_bytes += size;
    if (bill->held_bytes > bill->peak_bytes)
        bill->peak_bytes = bill->held_bytes;
    return malloc(size);
}

static void bill_free(void *user, void *ptr, size_t size)
{
    struct bill *bill = user;

    bill->frees++;
    bill->held_bytes -= size;
    free(ptr);
}

static char *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    char *bytes = NULL;
    size_t capacity = 0;

    if (!file)
        return NULL;
    *size = 0;
    do {
        capacity = capacity ? 2 * capacity : 65536;
        char *more = realloc(bytes, capacity);
        if (!more)
            abort();
        bytes = more;
        *size += fread(bytes + *size, 1, capacity - *size, file);
    } while (*size == capacity);
    fclose(file);
    return bytes;
}

/* The rule of the product: a condition calls for attention when it is not True, or, where True is the
 * bad news, when it is not False or says something. */
static int is_finding(const struct pl_verdict *v)
{
    if (v->negative)
        return v->status != PL_STATUS_FALSE || v->message.len > 0;
    return v->status != PL_STATUS_TRUE;
}

static void print_finding(const struct pl_object *o, const struct pl_verdict *v)
{
    printf("%s %.*s/%.*s %s=%s (%.*s), row %s\n", o->kind, (int)o->namespace_.len,
           o->namespace_.ptr, (int)o->name.len, o->name.ptr, v->type, pl_status_name(v->status),
           (int)v->reason.len, v->reason.ptr, v->row);
    if (v->message.len)
        printf("    %.*s\n", (int)v->message.len, v->message.ptr);
    for (size_t i = 0; i < v->evidence_count; i++) {
        const struct pl_evidence *e = &v->evidence[i];
        printf("    - %.*s %.*s = \"%.*s\", %.*s\n", (int)e->object.len, e->object.ptr,
               (int)e->path.len, e->path.ptr, (int)e->value.len, e->value.ptr, (int)e->observed.len,
               e->observed.ptr);
    }
}

static size_t print_report(const struct pl_report *report)
{
    size_t findings = 0;

    for (size_t i = 0; i < report->object_count; i++) {
        const struct pl_object *o = &report->objects[i];
        for (size_t j = 0; j < o->verdict_count; j++) {
            if (!is_finding(&o->verdicts[j]))
                continue;
            print_finding(o, &o->verdicts[j]);
            findings++;
        }
    }
    for (size_t i = 0; i < report->missing_count; i++) {
        const struct pl_missing *m = &report->missing[i];
        printf("%.*s %.*s cannot be judged without %.*s\n", (int)m->object.len, m->object.ptr,
               (int)m->condition.len, m->condition.ptr, (int)m->evidence.len, m->evidence.ptr);
    }
    return findings;
}

int main(int argc, char **argv)
{
    struct bill bill = { 0 };
    const struct pl_allocator allocator = { &bill, bill_alloc, bill_free };
    const struct pl_options options = { .explain = true, .allocator = &allocator };
    const struct pl_report *report;
    size_t size, findings = 0, snapshots = 0;
    int got;

    if (argc != 2) {
        fprintf(stderr, "usage: %s FILE\n", argv[0]);
        return 2;
    }
    char *bytes = read_file(argv[1], &size);
    if (!bytes) {
        perror(argv[1]);
        return 2;
    }
    struct pl_context *ctx = pl_context_new(&options);
    got = pl_context_add(ctx, argv[1], bytes, size);
    while (got >= 0 && (got = pl_context_next(ctx, &report)) > 0) {
        findings += print_report(report);
        snapshots++;
    }
    if (got < 0)
        fprintf(stderr, "%s\n", pl_context_error(ctx));
    pl_context_free(ctx);
    free(bytes);

    printf("plimsoll %s: %zu snapshots, %zu findings\n", pl_version(), snapshots, findings);
    printf("memory: %zu allocations, %zu frees, %zu bytes at most, %zu left\n", bill.allocs,
           bill.frees, bill.peak_bytes, bill.held_bytes);
    if (got < 0)
        return 2;
    return findings ? 1 : 0;
}
