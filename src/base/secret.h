/* base/secret.h - memory that held a credential is overwritten before it is given back.
 *
 * An arena made with pl__secret_allocator wipes every chunk when it is released, so what is decoded,
 * copied and formatted in it leaves nothing behind; pl__secret_wipe() does the same for one piece. */
#ifndef PL_BASE_SECRET_H
#define PL_BASE_SECRET_H

#include "base/arena.h"

extern const struct pl_allocator pl__secret_allocator;

/* Overwrites, in a way that the compiler does not leave out. */
void pl__secret_wipe(void *bytes, size_t size);

#endif
