/* apiserver/tree.h - JSON as a tree that can be changed, in an arena.
 *
 * The order of members is kept, numbers keep the digits they came with. A tree belongs to its arena as a
 * whole; nothing is freed singly. A node stands in one place: to use a value twice, copy it. */
#ifndef PL_APISERVER_TREE_H
#define PL_APISERVER_TREE_H

#include "base/json.h"

enum {
    PL_TREE_DEPTH_MAX = 160,  /* of any text that is read */
    PL_OBJECT_DEPTH_MAX = 64, /* of an object that is stored; its managedFields may double that */

    /* Members are looked for one after the other, and merging looks for each: bounded, so that no request can
     * keep the server busy for long. */
    PL_OBJECT_MEMBERS_MAX = 8192, /* of any JSON object inside of one that is stored */
    /* Of any text that is read: what is stored can always be read again, with what the server adds (the "." of
     * managedFields, times of a deletion). */
    PL_TREE_MEMBERS_MAX = PL_OBJECT_MEMBERS_MAX + 16,
};

struct pl_tree {
    enum pl_json_type type;
    struct pl_str key;     /* inside of an object */
    struct pl_str text;    /* a string's bytes; a number, true, false or null as it is written */
    struct pl_tree *first; /* of what is inside */
    struct pl_tree *last;
    struct pl_tree *next;
};

/* Reads one JSON text; NULL with an error when it is none, is past a bound, or a key comes twice in an
 * object. */
struct pl_tree *pl__tree_read(struct pl_arena *a, struct pl_str text, struct pl_error **err);
/* Compact, one line, at the end of `b`. */
void pl__tree_write(struct pl_buf *b, const struct pl_tree *t);
struct pl_str pl__tree_text(struct pl_arena *a, const struct pl_tree *t);

struct pl_tree *pl__tree_new(struct pl_arena *a, enum pl_json_type type); /* empty */
struct pl_tree *pl__tree_str(struct pl_arena *a, struct pl_str s);
struct pl_tree *pl__tree_int(struct pl_arena *a, int64_t n);
struct pl_tree *pl__tree_bool(struct pl_arena *a, bool b);
struct pl_tree *pl__tree_copy(struct pl_arena *a, const struct pl_tree *t);

/* Same value: members in any order, items in the same, numbers by their digits: 1 is not 1.0. */
bool pl__tree_equal(const struct pl_tree *x, const struct pl_tree *y);

/* The member, or NULL; `t` may be NULL or something else than an object. */
struct pl_tree *pl__tree_get(const struct pl_tree *t, struct pl_str key);
/* Through objects, by a path such as "status.nodeRef.name" (no dots inside of a key). */
struct pl_tree *pl__tree_at(const struct pl_tree *t, const char *path);
/* The member's text when it is a string, else empty. */
struct pl_str pl__tree_get_str(const struct pl_tree *t, const char *path);
int64_t pl__tree_get_int(const struct pl_tree *t, const char *path, int64_t otherwise);
bool pl__tree_get_true(const struct pl_tree *t, const char *path);
/* Objects and arrays inside of each other, itself counted; adds up in `*size` what there is. */
struct pl_tree_size {
    size_t nodes;
    size_t bytes;  /* of keys, strings and numbers */
    size_t widest; /* the most members that one object has */
};
size_t pl__tree_depth(const struct pl_tree *t, struct pl_tree_size *size);
size_t pl__tree_count(const struct pl_tree *t);
struct pl_tree *pl__tree_item(const struct pl_tree *t, size_t index);

/* Puts a member, in place of the one with that key or at the end; the key is not copied. */
void pl__tree_set(struct pl_tree *object, struct pl_str key, struct pl_tree *value);
/* The member as an object, made (in place of anything else) when it is none. */
struct pl_tree *pl__tree_make(struct pl_arena *a, struct pl_tree *object, struct pl_str key);
/* Takes the member away; returns it, or NULL. */
struct pl_tree *pl__tree_remove(struct pl_tree *object, struct pl_str key);
void pl__tree_append(struct pl_tree *array, struct pl_tree *value);
/* Puts an item in front of the one at `index`; at the count: behind the last. */
void pl__tree_insert(struct pl_tree *array, size_t index, struct pl_tree *value);
struct pl_tree *pl__tree_take(struct pl_tree *array, size_t index); /* NULL past the end */

#endif
