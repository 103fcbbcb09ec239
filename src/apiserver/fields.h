/* apiserver/fields.h - sets of fields of an object: what managedFields are made of.
 *
 * A set is a tree of steps as FieldsV1 writes them: "f:name" a field, "k:{"type":"Ready"}" an item of a list by
 * its keys, "v:"x"" an item of a set. A node may itself be in the set, or only lead to what is. The
 * steps at one place are sorted. Sets never change once made: operations give new ones.
 *
 * How lists belong together comes from the kind's rules; lists without a rule, and objects that are
 * atomic, are one field. */
#ifndef PL_APISERVER_FIELDS_H
#define PL_APISERVER_FIELDS_H

#include "apiserver/kinds.h"
#include "apiserver/tree.h"

struct pl_fields {
    struct pl_str step;
    bool member;
    struct pl_fields *first;
    struct pl_fields *last;
    struct pl_fields *next;
};

/* All fields of an object: the leaves, and the items of lists. */
struct pl_fields *pl__fields_of(struct pl_arena *a, const struct pl_kind *kind,
                                const struct pl_tree *object);

/* What became different from `old` (NULL: nothing was there) to `new`. What comes or goes counts with all
 * that is inside of it, the places between included. */
struct pl_fields_change {
    struct pl_fields *added;
    struct pl_fields *modified;
    struct pl_fields *removed;
};
struct pl_fields_change pl__fields_compare(struct pl_arena *a, const struct pl_kind *kind,
                                           const struct pl_tree *old, const struct pl_tree *new);

/* FieldsV1; what is not understood there is left out. */
struct pl_fields *pl__fields_read(struct pl_arena *a, const struct pl_tree *fields_v1);
struct pl_tree *pl__fields_write(struct pl_arena *a, const struct pl_fields *set);

struct pl_fields *pl__fields_union(struct pl_arena *a, const struct pl_fields *x,
                                   const struct pl_fields *y);
struct pl_fields *pl__fields_minus(struct pl_arena *a, const struct pl_fields *x,
                                   const struct pl_fields *y);
struct pl_fields *pl__fields_common(struct pl_arena *a, const struct pl_fields *x,
                                    const struct pl_fields *y);
bool pl__fields_empty(const struct pl_fields *set);
bool pl__fields_equal(const struct pl_fields *x, const struct pl_fields *y);
struct pl_fields *pl__fields_child(const struct pl_fields *set, struct pl_str step); /* or NULL */

/* Only what may be written by way of an endpoint: the other one's half is put back, so it has no new owner. */
enum pl_endpoint {
    ENDPOINT_MAIN,
    ENDPOINT_STATUS,
    ENDPOINT_SCALE,
};
struct pl_fields *pl__fields_of_endpoint(struct pl_arena *a, const struct pl_kind *kind,
                                         enum pl_endpoint endpoint, const struct pl_fields *set);

/* What nobody owns taken out: type and name, versions, times that the server sets. */
struct pl_fields *pl__fields_recorded(struct pl_arena *a, const struct pl_fields *set);

/* Each member as a path that people read: .status.conditions[type="Ready"].status. Up to `max` of them, in
 * order; how many there are in all. */
size_t pl__fields_paths(struct pl_arena *a, const struct pl_fields *set, struct pl_str *paths,
                        size_t max);

/* The item's step by the rule ("k:..." or "v:..."), or an empty one when a key is not there or it is null. */
struct pl_str pl__fields_item_step(struct pl_arena *a, const struct pl_merge_rule *rule,
                                   const struct pl_tree *item);
/* The steps of all items of a list, in their order. Who compares items with each other needs these: a step is
 * made anew each time. */
struct pl_str *pl__fields_item_steps(struct pl_arena *a, const struct pl_merge_rule *rule,
                                     const struct pl_tree *list);

#endif
