/* Packed objects: equal to what they were made from, and on their own. */
#include "base/pack.h"

#include <stdlib.h>

#include "base/intern.h"
#include "model/objects.h"
#include "test.h"

/* An allocator that remembers where the source's memory was. */
enum { RANGES_MAX = 64 };
struct ranges {
    struct pl_allocator allocator;
    struct {
        uintptr_t start, end;
    } items[RANGES_MAX];
    int count;
    size_t held_bytes;
};

static void *ranges_alloc(void *user, size_t size)
{
    struct ranges *r = user;
    void *p = malloc(size);

    if (!p || r->count == RANGES_MAX)
        abort();
    r->items[r->count].start = (uintptr_t)p;
    r->items[r->count++].end = (uintptr_t)p + size;
    r->held_bytes += size;
    return p;
}

static void ranges_free(void *user, void *p, size_t size)
{
    struct ranges *r = user;

    r->held_bytes -= size;
    free(p);
}

static void ranges_init(struct ranges *r)
{
    *r = (struct ranges){ .allocator = { r, ranges_alloc, ranges_free } };
}

/* Whether some word of the block is an address inside of what the allocator gave out. */
static bool points_into(const struct ranges *r, const void *block, size_t size)
{
    for (size_t at = 0; at + sizeof(uintptr_t) <= size; at += sizeof(uintptr_t)) {
        uintptr_t word;
        memcpy(&word, (const char *)block + at, sizeof word);
        for (int i = 0; i < r->count; i++) {
            if (word >= r->items[i].start && word < r->items[i].end)
                return true;
        }
    }
    return false;
}

/* --- deep equality, by the table of fields ----------------------------------------------------- */

static bool shapes_equal(const struct pl_shape *shape, const char *a, const char *b);

static bool strings_equal(const char *a, const char *b)
{
    const struct pl_str *x = (const void *)a, *y = (const void *)b;

    /* Strings end with a NUL that is not counted; empty ones may be nowhere. */
    return pl__str_equal(*x, *y) && (x->len == 0 || x->ptr[x->len] == '\0');
}

static bool lists_equal(const struct pl_field *f, const char *a, const char *b)
{
    size_t size = f->kind == F_STRINGS ? sizeof(struct pl_str) : f->shape->size;
    struct pl_list x, y;

    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    if (x.count != y.count || x.present != y.present)
        return false;
    for (uint32_t i = 0; i < x.count; i++) {
        const char *item = (const char *)x.items + i * size,
                   *other = (const char *)y.items + i * size;
        if (f->kind == F_STRINGS ? !strings_equal(item, other)
                                 : !shapes_equal(f->shape, item, other))
            return false;
    }
    return true;
}

static bool fields_equal(const struct pl_field *f, const char *a, const char *b)
{
    switch (f->kind) {
    case F_STR:
        return strings_equal(a, b);
    case F_BOOL:
    case F_PRESENT:
        return *(const bool *)a == *(const bool *)b;
    case F_INT:
    case F_TIME:
        return memcmp(a, b, sizeof(int64_t)) == 0;
    case F_OBJECT:
    case F_MAP:
        return shapes_equal(f->shape, a, b);
    case F_LIST:
    case F_STRINGS:
        return lists_equal(f, a, b);
    case F_CUSTOM:
        return !f->shape || shapes_equal(f->shape, a, b);
    default:
        return true;
    }
}

static bool shapes_equal(const struct pl_shape *shape, const char *a, const char *b)
{
    for (uint32_t i = 0; i < shape->field_count; i++) {
        const struct pl_field *f = &shape->fields[i];
        if (!fields_equal(f, a + f->offset, b + f->offset)) {
            printf("field %s differs\n", f->path);
            return false;
        }
    }
    return true;
}

/* --- one object of each kind, with all that it can have ----------------------------------------- */

#define META                                                                                      \
    "\"metadata\":{\"name\":\"prod-7x2kp\",\"namespace\":\"team-a\",\"uid\":"                     \
    "\"5aa4ddac-5e89-4b74-aaff-5aef36fad313\",\"generation\":7,"                                  \
    "\"creationTimestamp\":\"2026-10-21T08:03:10Z\",\"deletionTimestamp\":\"2026-11-21T08:03:"    \
    "10Z\","                                                                                      \
    "\"ownerReferences\":[{\"kind\":\"KubeadmControlPlane\",\"name\":\"prod\",\"uid\":\"k-1\","   \
    "\"controller\":true},{\"kind\":\"Elsewhere\",\"name\":\"prod-7x2kp\",\"uid\":\"e-1\"}],"     \
    "\"labels\":{\"cluster.x-k8s.io/cluster-name\":\"prod\",\"cluster.x-k8s.io/"                  \
    "control-plane\":\"\","                                                                       \
    "\"cluster.x-k8s.io/watch-filter\":\"w\",\"node-role.kubernetes.io/control-plane\":\"\"},"    \
    "\"annotations\":{\"controlplane.cluster.x-k8s.io/remediation-for\":\"{\\\"machine\\\":1}\"," \
    "\"controlplane.cluster.x-k8s.io/remediation-in-progress\":\"{\\\"retryCount\\\":2}\","       \
    "\"cluster.x-k8s.io/paused\":\"\"},\"managedFields\":[{\"a\":{}}]}"
#define CONDITIONS                                                                                 \
    "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\",\"reason\":\"Ready\",\"message\":"    \
    "\"\","                                                                                        \
    "\"lastTransitionTime\":\"2026-10-21T08:08:10Z\",\"observedGeneration\":7},{\"type\":"         \
    "\"EtcdMemberHealthy\",\"status\":\"False\",\"reason\":\"NotYetKnownHere\",\"message\":"       \
    "\"* said \\u00fcber \\\"it\\\"\"},{\"type\":\"Available\",\"status\":\"Unknown\",\"reason\":" \
    "\"NotYetKnownHere\",\"message\":\"* said \\u00fcber \\\"it\\\"\"}]"

static const char *const objects[KIND_COUNT] = {
    [KIND_CLUSTER] = "{" META ",\"spec\":{\"controlPlaneEndpoint\":{\"host\":\"10.0.0.1\",\"port\":"
                     "6443},\"topology\":{\"version\":\"v1.34.2\"},\"paused\":true},\"status\":{"
                     "\"initialization\":{\"infrastructureProvisioned\":true}}}",
    [KIND_KCP] = "{" META ",\"spec\":{\"version\":\"v1.34.2\",\"remediation\":{\"maxRetry\":3,"
                 "\"retryPeriodSeconds\":60,\"minHealthyPeriodSeconds\":70},\"kubeadmConfigSpec\":{"
                 "\"clusterConfiguration\":{\"etcd\":{\"external\":{\"endpoints\":["
                 "\"https://10.0.0.9:2379\",\"https://10.0.0.8:2379\"]}}}}},\"status\":{"
                 "\"initialization\":{\"controlPlaneInitialized\":true}," CONDITIONS "}}",
    [KIND_MACHINE] =
        "{" META ",\"spec\":{\"providerID\":\"vsphere://f0664fc7\","
        "\"infrastructureRef\":{\"kind\":\"VSphereMachine\"}},\"status\":{\"nodeRef\":{"
        "\"name\":\"prod-7x2kp\"},\"deletion\":{\"nodeDrainStartTime\":"
        "\"2026-11-21T08:03:10Z\"}," CONDITIONS "}}",
    [KIND_MACHINE_DEPLOYMENT] = "{" META ",\"status\":{" CONDITIONS "}}",
    [KIND_MACHINE_SET] = "{" META "}",
    [KIND_MACHINE_HEALTH_CHECK] = "{" META ",\"spec\":{\"clusterName\":\"prod\"}}",
    [KIND_MACHINE_POOL] = "{" META ",\"spec\":{\"clusterName\":\"prod\"}}",
    [KIND_NODE] = "{" META ",\"spec\":{\"taints\":[{\"key\":\"node.kubernetes.io/unreachable\","
                  "\"effect\":\"NoExecute\"},{\"key\":\"own\",\"effect\":\"Own\"}]},"
                  "\"status\":{" CONDITIONS "}}",
    [KIND_POD] =
        "{\"metadata\":{\"name\":\"etcd-prod-7x2kp\",\"namespace\":\"kube-system\"},"
        "\"status\":{\"phase\":\"Running\"," CONDITIONS ",\"containerStatuses\":[{\"state\":{"
        "\"waiting\":{\"reason\":\"CrashLooping\"}},\"lastState\":{\"terminated\":{"
        "\"exitCode\":137}}},{\"state\":{\"terminated\":{\"reason\":\"OutOfLuck\"}}}]}}",
};

/* The object of that kind, decoded into the arena. */
static void *decoded(struct pl_arena *arena, enum pl_model_kind kind, const char *text,
                     bool v1beta1)
{
    void *object = pl__arena_alloc(arena, pl__kind_shape(kind)->size);
    struct pl_error *err = NULL;
    struct pl_json j;

    pl__json_init(&j, pl__str(text), PL_STR("test"), arena, 0, &err);
    if (pl__object_decode(&j, kind, v1beta1, object) < 0)
        test_fail(__FILE__, __LINE__, "%.*s", PL_STR_ARG(err->message));
    return object;
}

static void every_kind(enum pl_model_kind kind)
{
    const struct pl_shape *shape = pl__kind_shape(kind);
    struct pl_arena source, other;
    struct ranges ranges, blocks;
    size_t size = 0, again_size = 0;

    ranges_init(&ranges);
    ranges_init(&blocks);
    pl__arena_init(&source, &ranges.allocator, 0);
    pl__arena_init(&other, NULL, 0);
    void *packed =
        pl__pack(shape, decoded(&source, kind, objects[kind], false), &blocks.allocator, &size);
    const void *want = decoded(&other, kind, objects[kind], false);

    CASE("%s: nothing points back", pl__kind_name(kind))
    CHECK(!points_into(&ranges, packed, size));
    pl__arena_release(&source);

    CASE("%s: equal when its source is gone", pl__kind_name(kind))
    CHECK(shapes_equal(shape, packed, want));

    CASE("%s: one block, of the size told", pl__kind_name(kind))
    CHECK_INT(blocks.count, 1);
    CHECK_INT(blocks.held_bytes, size);
    CHECK(size < other.used_bytes);

    CASE("%s: packing what is packed changes nothing", pl__kind_name(kind))
    void *again = pl__pack(shape, packed, NULL, &again_size);
    CHECK_INT(again_size, size);
    CHECK(shapes_equal(shape, again, want));
    pl__pack_free(again, NULL, again_size);

    pl__pack_free(packed, &blocks.allocator, size);
    CHECK_INT(blocks.held_bytes, 0);
    pl__arena_release(&other);
}

static void strings_are_shared(void)
{
    struct pl_arena arena;
    size_t size;

    pl__arena_init(&arena, NULL, 0);
    const struct pl_machine *m =
        pl__pack(&pl__machine_shape, decoded(&arena, KIND_MACHINE, objects[KIND_MACHINE], false),
                 NULL, &size);
    pl__arena_release(&arena);

    CASE("equal strings of an object are stored once")
    CHECK(m->node_name.ptr == m->meta.name.ptr);
    CHECK(m->meta.owners.items[1].name.ptr == m->meta.name.ptr);
    CHECK(m->conditions.items[1].message.ptr == m->conditions.items[2].message.ptr);
    CHECK_STR(m->conditions.items[1].message, "* said \xc3\xbc"
                                              "ber \"it\"");

    CASE("strings that everybody has are not in the block")
    CHECK(m->conditions.items[0].reason.ptr == pl__intern(PL_STR("Ready")).ptr);
    CHECK(m->meta.owners.items[0].kind.ptr == pl__intern(PL_STR("KubeadmControlPlane")).ptr);
    CHECK(m->infrastructure_kind.ptr == pl__intern(PL_STR("VSphereMachine")).ptr);

    CASE("lists stay in order and keep their count")
    CHECK_INT(m->conditions.count, 3);
    CHECK_INT(m->conditions.items[2].type, COND_AVAILABLE);
    CHECK_INT(m->meta.owners.count, 2);
    CHECK(m->meta.owners.items[0].controller);
    void *own; /* a packed object is read-only to all but its owner */
    memcpy(&own, &m, sizeof own);
    pl__pack_free(own, NULL, size);
}

/* The v1beta1 form keeps conditions elsewhere; they must not be held twice. */
static void older_form(void)
{
    static const char text[] = "{" META ",\"status\":{\"v1beta2\":{" CONDITIONS "}}}";
    static const enum pl_model_kind kinds[] = { KIND_KCP, KIND_MACHINE, KIND_MACHINE_DEPLOYMENT };
    struct pl_arena arena;

    pl__arena_init(&arena, NULL, 0);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const struct pl_shape *shape = pl__kind_shape(kinds[i]);
        size_t size, empty_size;
        void *empty =
            pl__pack(shape, decoded(&arena, kinds[i], "{" META "}", true), NULL, &empty_size);
        void *packed = pl__pack(shape, decoded(&arena, kinds[i], text, true), NULL, &size);

        CASE("%s of v1beta1: its conditions are held once", pl__kind_name(kinds[i]))
        CHECK(size > empty_size + 3 * sizeof(struct pl_condition));
        CHECK(size < empty_size + 4 * sizeof(struct pl_condition));
        pl__pack_free(packed, NULL, size);
        pl__pack_free(empty, NULL, empty_size);
    }
    pl__arena_release(&arena);
}

static void nothing_at_all(void)
{
    struct pl_machine machine = { 0 };
    size_t size;
    struct pl_machine *packed = pl__pack(&pl__machine_shape, &machine, NULL, &size);

    CASE("an object without anything is its struct")
    CHECK_INT(size, sizeof machine);
    CHECK_INT(packed->meta.name.len, 0);
    CHECK(!packed->conditions.items);
    pl__pack_free(packed, NULL, size);

    CASE("freeing nothing is fine")
    pl__pack_free(NULL, NULL, 0);
}

static void more_strings_than_are_compared(void)
{
    enum { COUNT = 200 };
    struct pl_external_etcd etcd = { .present = true };
    const struct pl_shape *shape = NULL;
    struct pl_arena arena;
    size_t size;

    for (uint32_t i = 0; i < pl__kcp_shape.field_count; i++) {
        if (pl__kcp_shape.fields[i].offset == offsetof(struct pl_kcp, external))
            shape = pl__kcp_shape.fields[i].shape;
    }
    CASE("a long list of strings")
    CHECK(shape);
    if (!shape)
        return;
    pl__arena_init(&arena, NULL, 0);
    etcd.endpoints.items = PL_NEW(&arena, struct pl_str, COUNT);
    etcd.endpoints.count = COUNT;
    for (uint32_t i = 0; i < COUNT; i++)
        etcd.endpoints.items[i] = pl__str_format(&arena, "https://10.0.0.%u:2379", i % 150);
    struct pl_external_etcd *packed = pl__pack(shape, &etcd, NULL, &size);
    CHECK(shapes_equal(shape, (const char *)packed, (const char *)&etcd));
    pl__arena_release(&arena);
    CHECK_STR(packed->endpoints.items[199], "https://10.0.0.49:2379");
    pl__pack_free(packed, NULL, size);
}

static void interned(void)
{
    CASE("the table of known strings ascends")
    for (size_t i = 1; i < pl__intern_count(); i++)
        CHECK(pl__str_compare(pl__intern_at(i - 1), pl__intern_at(i)) < 0);

    CASE("each of them is found, and is itself")
    for (size_t i = 0; i < pl__intern_count(); i++) {
        char copy[64];
        struct pl_str known = pl__intern_at(i);
        memcpy(copy, known.ptr, known.len);
        CHECK(pl__intern((struct pl_str){ copy, known.len }).ptr == known.ptr);
        CHECK(known.ptr[known.len] == '\0');
    }

    CASE("nothing else is")
    CHECK(!pl__intern(PL_STR("Read")).ptr);
    CHECK(!pl__intern(PL_STR("Readyy")).ptr);
    CHECK(!pl__intern(PL_STR("0")).ptr);
    CHECK(!pl__intern(PL_STR("~")).ptr);
    CHECK(pl__intern((struct pl_str){ NULL, 0 }).ptr);
}

int main(void)
{
    for (int kind = 0; kind < KIND_COUNT; kind++)
        every_kind((enum pl_model_kind)kind);
    strings_are_shared();
    older_form();
    nothing_at_all();
    more_strings_than_are_compared();
    interned();
    return test_end("pack");
}
