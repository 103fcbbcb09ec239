/* apiserver/validate.h - objects of custom kinds against the schema of their CRD, as a real server does it.
 *
 * Understood is what the CRDs in deploy/crd say: types, required, enum, bounds of numbers, strings, lists and objects,
 * patterns, date-time, lists that are maps. Built-in kinds are not checked. */
#ifndef PL_APISERVER_VALIDATE_H
#define PL_APISERVER_VALIDATE_H

#include "apiserver/internal.h"

/* Takes away what the schema does not know, unless it wants to keep that; metadata stays. By the request's
 * fieldValidation that is told in a warning (as by default), or refused: -1 with an answer. */
int pl__validate_prune(struct call *c, struct pl_tree *object);

/* Adds what is wrong to `f`. What was the same in `old` (NULL: nothing) is let pass, so that an object that
 * became invalid by a newer CRD can still be changed. */
void pl__validate_object(struct call *c, const struct pl_tree *old, const struct pl_tree *object,
                         struct faults *f);

#endif
