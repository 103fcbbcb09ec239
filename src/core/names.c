#include "core/pass.h"

#include <stdlib.h>

static int by_name(const void *a, const void *b)
{
    return pl__str_compare(*(const struct pl_str *)a, *(const struct pl_str *)b);
}

void pl__names_sort(struct pl_str *names, size_t count)
{
    if (count > 1)
        qsort(names, count, sizeof *names, by_name);
}

void pl__names_add(struct pl_buf *b, const struct pl_str *names, size_t count, size_t max)
{
    for (size_t i = 0; i < count && i < max; i++) {
        if (i)
            pl__buf_add_lit(b, ", ");
        pl__buf_add(b, names[i]);
    }
    if (count > max) {
        pl__buf_add_lit(b, ", ... (");
        pl__buf_add_u64(b, count - max);
        pl__buf_add_lit(b, " more)");
    }
}
