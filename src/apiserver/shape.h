/* apiserver/shape.h - what an object looks like once a real server has read it.
 *
 * A real server reads metadata, and all of a built-in kind, into Go's structs and writes those back: what is null
 * or empty there is gone, some fields are there though nobody set them, a text in a map is never null. Clients
 * see that, and who owns which field is told from it; so objects are brought into that form before anything is
 * done with them. Custom kinds keep what they were sent, but for their metadata. */
#ifndef PL_APISERVER_SHAPE_H
#define PL_APISERVER_SHAPE_H

#include "apiserver/kinds.h"
#include "apiserver/tree.h"

/* Brings the object into its form, in place. */
void pl__shape(struct pl_arena *a, const struct pl_kind *kind, struct pl_tree *object);

/* An object of the kind in which nobody has set anything: what a new one is compared with. */
struct pl_tree *pl__shape_empty(struct pl_arena *a, const struct pl_kind *kind);

/* Is there such a field in metadata, or in one of its ownerReferences? */
bool pl__shape_knows_metadata(struct pl_str name);
bool pl__shape_knows_owner(struct pl_str name);

#endif
