/* apiserver/managed.h - who owns which field: metadata.managedFields, and server-side apply.
 *
 * An owner is a name, a way of writing (Apply or Update) and an endpoint; the same name on two endpoints is two
 * owners. Every write goes through one of the two functions here, which set managedFields on the result. */
#ifndef PL_APISERVER_MANAGED_H
#define PL_APISERVER_MANAGED_H

#include "apiserver/fields.h"

struct pl_manager {
    struct pl_str name;
    enum pl_endpoint endpoint;
    struct pl_str time; /* now, RFC 3339; empty: not told */
};

/* At an ordinary write: `object` is what the client wants, before the server puts back what may not be changed,
 * `live` what is there (NULL: it is created). What changed belongs to the manager from now on. managedFields of
 * `object` itself count when there are any (not by way of status), so that clients can change them; `[{}]`
 * there (in built-in kinds `[]`, too) forgets all owners, and then nobody is recorded any more until somebody applies. */
void pl__managed_update(struct pl_arena *a, const struct pl_kind *kind,
                        const struct pl_manager *manager, const struct pl_tree *live,
                        struct pl_tree *object);

/* A write that changes nothing but times of managers keeps those, too. */
void pl__managed_keep_times(struct pl_arena *a, const struct pl_tree *live, struct pl_tree *object);

enum { PL_CONFLICTS_MAX = 64 };
struct pl_conflict {
    struct pl_str owner; /* "kcp" with subresource "status" using v1 */
    struct pl_str path;
};
struct pl_conflicts {
    struct pl_conflict items[PL_CONFLICTS_MAX];
    size_t count; /* in all; the first ones are in items */
};

/* Server-side apply of `config` onto `live` (NULL: nothing there). Gives the object that is wanted in `*result`, a
 * tree of its own, as pl__managed_update() takes one. 0; -1 when others own what it would change and it is not by force: they are in `conflicts`. */
int pl__managed_apply(struct pl_arena *a, const struct pl_kind *kind,
                      const struct pl_manager *manager, bool force, const struct pl_tree *live,
                      const struct pl_tree *config, struct pl_tree **result,
                      struct pl_conflicts *conflicts);

/* Can it be applied? Lists that are merged by keys need those keys, each once. 0, or -1 with what is wrong. */
int pl__managed_check(struct pl_arena *a, const struct pl_kind *kind, const struct pl_tree *config,
                      struct pl_str *message);

#endif
