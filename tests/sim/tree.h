/* tests/sim/tree.h - apiserver/tree.h for tests: trees that are written down, keys as C strings, texts of what
 * may not be there. */
#ifndef PL_SIM_TREE_H
#define PL_SIM_TREE_H

#include "apiserver/patch.h"
#include "apiserver/tree.h"

/* For texts that this program makes itself: aborts when it is not JSON. */
struct pl_tree *tree_format(struct pl_arena *a, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The member of an object, or NULL. `t` may be NULL or no object. */
struct pl_tree *tree_get(const struct pl_tree *t, const char *key);
/* The same through several objects, with any keys; ends with NULL. */
struct pl_tree *tree_at(const struct pl_tree *t, ...) __attribute__((sentinel));

/* The text of a string; empty for everything else. */
struct pl_str tree_text(const struct pl_tree *t);
int64_t tree_int(const struct pl_tree *t, int64_t otherwise);
/* Is it this string, or this word (true, false)? */
bool tree_is(const struct pl_tree *t, const char *text);

#endif
