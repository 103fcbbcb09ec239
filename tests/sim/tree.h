/* tests/sim/tree.h - JSON that can be changed: what the simulated API servers keep and patch.
 *
 * The product reads JSON into structs and keeps none of it; a server has to keep fields that nobody here
 * knows and to merge patches into them. Nodes live in an arena until the simulation ends; nothing is freed. */
#ifndef PL_SIM_TREE_H
#define PL_SIM_TREE_H

#include "base/buf.h"
#include "base/json.h"

struct tree {
    enum pl_json_type type;
    struct pl_str key;  /* inside of an object */
    struct pl_str text; /* a string's bytes; a number as it was written */
    struct tree *first; /* of what is inside */
    struct tree *next;
};

/* NULL when it is not JSON. */
struct tree *tree_parse(struct pl_arena *a, struct pl_str text);
/* For texts that this program makes itself: aborts when it is not JSON. */
struct tree *tree_format(struct pl_arena *a, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
struct tree *tree_string(struct pl_arena *a, struct pl_str text);
struct tree *tree_copy(struct pl_arena *a, const struct tree *t);
void tree_render(struct pl_buf *b, const struct tree *t);
bool tree_equal(const struct tree *x, const struct tree *y);

/* The member of an object, or NULL. `t` may be NULL or no object. */
struct tree *tree_get(const struct tree *t, const char *key);
/* The same through several objects; ends with NULL. */
struct tree *tree_at(const struct tree *t, ...) __attribute__((sentinel));
/* The member as an object, made if it is not there. */
struct tree *tree_make(struct pl_arena *a, struct tree *t, const char *key);
/* Sets a member (key copied). */
void tree_set(struct pl_arena *a, struct tree *t, struct pl_str key, struct tree *value);
void tree_remove(struct tree *t, struct pl_str key);
void tree_append(struct tree *array, struct tree *value);
size_t tree_count(const struct tree *t);

/* The text of a string; empty for everything else. */
struct pl_str tree_text(const struct tree *t);
int64_t tree_int(const struct tree *t, int64_t otherwise);
bool tree_is(const struct tree *t, const char *text);

/* RFC 7386. */
struct tree *tree_merge(struct pl_arena *a, struct tree *target, const struct tree *patch);
/* RFC 6902: add, replace, remove and test. 0; -1: the patch is not valid; -2: a test failed or the place is
 * not there. `*root` may be half changed then: work on a copy. */
int tree_patch(struct pl_arena *a, struct tree **root, const struct tree *operations);

#endif
