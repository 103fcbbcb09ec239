/* apiserver/patch.h - changes to an object, in the three forms that carry no ownership.
 *
 * All of them are bounded: a patch can make neither a tree deeper than PL_TREE_DEPTH_MAX nor work without end
 * (copies of copies). Patches and what they say end up inside of the result, so they live as long. */
#ifndef PL_APISERVER_PATCH_H
#define PL_APISERVER_PATCH_H

#include "apiserver/kinds.h"
#include "apiserver/tree.h"

enum { PL_PATCH_OPERATIONS_MAX = 10000 };

enum pl_patch_result {
    PATCH_DONE,
    PATCH_MALFORMED, /* it is no patch: 400 */
    PATCH_TOO_MANY,  /* operations: 413 */
    PATCH_FAILED,    /* a test failed, or what it names is not there: 422 */
};

/* RFC 7386. The result stands in place of `target`, which may be NULL and is changed. */
struct pl_tree *pl__patch_merge(struct pl_arena *a, struct pl_tree *target,
                                const struct pl_tree *patch);

/* RFC 6902. `*root` is changed, also when it fails: work on a copy. `*message` says what is wrong. */
enum pl_patch_result pl__patch_json(struct pl_arena *a, struct pl_tree **root,
                                    const struct pl_tree *operations, struct pl_str *message);

/* Kubernetes' strategic merge patch, with the merge keys of the kind and the directives $patch,
 * $deleteFromPrimitiveList and $retainKeys ($setElementOrder is read over). `target` is changed. */
enum pl_patch_result pl__patch_strategic(struct pl_arena *a, const struct pl_kind *kind,
                                         struct pl_tree *target, const struct pl_tree *patch,
                                         struct pl_str *message);

/* A path from an object's root as rules have it (struct pl_merge_rule); shared with fields.c. What is too
 * long for it has no rule. */
struct pl_rule_path {
    char text[256];
    size_t len;
};

/* Adds a step; the length before it, to go back with. */
size_t pl__rule_path_push(struct pl_rule_path *path, struct pl_str step);
const struct pl_merge_rule *pl__rule_path_find(const struct pl_kind *kind,
                                               const struct pl_rule_path *path);

#endif
