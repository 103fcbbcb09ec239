/* Any object and any patch of it: the first line is the object, the second another, the rest the patch.
 *
 * Holds for all input: nothing is read out of bounds, results are no deeper than bodies may be, what is
 * written reads back as the same, a JSON merge patch and an apply done twice do no more than once, and what was
 * applied is owned. */
#include <stdlib.h>

#include "apiserver/managed.h"
#include "apiserver/patch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition) \
    do {                   \
        if (!(condition))  \
            abort();       \
    } while (0)

static struct pl_str take_line(struct pl_str *rest)
{
    const char *end = rest->len ? memchr(rest->ptr, '\n', rest->len) : NULL;
    struct pl_str line = { rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len };

    rest->ptr += line.len + (end != NULL);
    rest->len -= line.len + (end != NULL);
    return line;
}

static void check_result(struct pl_arena *a, const struct pl_tree *t)
{
    struct pl_tree_size size = { 0 };

    REQUIRE(pl__tree_depth(t, &size) <= PL_TREE_DEPTH_MAX);
    struct pl_tree *back = pl__tree_read(a, pl__tree_text(a, t), NULL);
    REQUIRE(back && pl__tree_equal(t, back));
}

static void check_apply(struct pl_arena *a, const struct pl_kind *kind, const struct pl_tree *live,
                        const struct pl_tree *config)
{
    struct pl_manager manager = { PL_STR("fuzz"), ENDPOINT_MAIN, PL_STR("2026-01-01T00:00:00Z") };
    struct pl_conflicts *conflicts = PL_NEW(a, struct pl_conflicts, 1);
    struct pl_tree *once, *twice;
    struct pl_str message;

    if (pl__managed_check(a, kind, config, &message) < 0)
        return;
    REQUIRE(pl__managed_apply(a, kind, &manager, true, live, config, &once, conflicts) == 0);
    REQUIRE(pl__managed_apply(a, kind, &manager, true, once, config, &twice, conflicts) == 0);
    /* An object that nobody owns anything of is one of before the first apply: the next one notes that. */
    REQUIRE(!pl__tree_at(once, "metadata.managedFields") || pl__tree_equal(once, twice));
    pl__managed_apply(a, kind, &manager, false, live, config, &twice, conflicts);
    manager.endpoint = ENDPOINT_STATUS;
    REQUIRE(pl__managed_apply(a, kind, &manager, true, live, config, &twice, conflicts) == 0);
}

static void check_kind(struct pl_arena *a, const struct pl_kind *kind, const struct pl_tree *object,
                       const struct pl_tree *other, const struct pl_tree *patch)
{
    struct pl_manager manager = { PL_STR("fuzz"), ENDPOINT_MAIN, PL_STR("2026-01-01T00:00:00Z") };
    struct pl_str message;

    if (object->type != JSON_OBJECT)
        return;
    struct pl_tree *target = pl__tree_copy(a, object);
    if (pl__patch_strategic(a, kind, target, patch, &message) == PATCH_DONE)
        check_result(a, target);
    if (other->type == JSON_OBJECT) {
        pl__managed_update(a, kind, &manager, object, pl__tree_copy(a, other));
        check_apply(a, kind, object, other);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pl_str rest = { (const char *)data, size };
    struct pl_arena a;
    struct pl_str message;

    pl__arena_init(&a, NULL, 4096);
    struct pl_tree *object = pl__tree_read(&a, take_line(&rest), NULL);
    struct pl_tree *other = pl__tree_read(&a, take_line(&rest), NULL);
    struct pl_tree *patch = pl__tree_read(&a, rest, NULL);
    if (object && other && patch) {
        struct pl_tree *target = pl__tree_copy(&a, object);
        if (pl__patch_json(&a, &target, patch, &message) == PATCH_DONE)
            check_result(&a, target);
        target = pl__patch_merge(&a, pl__tree_copy(&a, object), patch);
        check_result(&a, target);
        REQUIRE(pl__tree_equal(target, pl__patch_merge(&a, pl__tree_copy(&a, target), patch)));
        check_kind(&a, pl__kind_by_plural(PL_STR(""), PL_STR("v1"), PL_STR("nodes")), object, other,
                   patch);
        check_kind(
            &a,
            pl__kind_by_plural(PL_STR("cluster.x-k8s.io"), PL_STR("v1beta2"), PL_STR("machines")),
            object, other, patch);
    }
    pl__arena_release(&a);
    return 0;
}
