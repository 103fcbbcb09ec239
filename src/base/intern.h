/* base/intern.h - strings that everybody has.
 *
 * Kinds, reasons and namespaces of Cluster API objects come from a short list. An object that is
 * kept points at the one static copy in place of its own. The table is fixed when the program is
 * built and never grows by input; what is not in it stays with whoever has it. */
#ifndef PL_BASE_INTERN_H
#define PL_BASE_INTERN_H

#include "base/str.h"

/* The static string with these bytes (with a NUL behind it, as always), or one with ptr NULL. The
 * empty string is always known. */
struct pl_str pl__intern(struct pl_str s);

/* All of them, ascending; for tests. */
size_t pl__intern_count(void);
struct pl_str pl__intern_at(size_t index);

#endif
