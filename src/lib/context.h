/* lib/context.h - what our own program may ask of a context beyond plimsoll.h. */
#ifndef PL_LIB_CONTEXT_H
#define PL_LIB_CONTEXT_H

#include "model/snapshot.h"

/* The snapshot that pl_context_next() judged last, settled; NULL when there is none. Lives as long as
 * its report. */
const struct pl_snapshot *pl__context_snapshot(const struct pl_context *ctx);

#endif
