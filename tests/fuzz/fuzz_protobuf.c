/* Whatever is taken as protobuf comes out as JSON that can be read. */
#include <stdlib.h>

#include "apiserver/protobuf.h"
#include "apiserver/tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pl_arena arena;
    struct pl_error *err = NULL;
    struct pl_str json = { 0 };

    pl__arena_init(&arena, NULL, 0);
    if (pl__protobuf_to_json(&arena, (struct pl_str){ (const char *)data, size }, &json) &&
        !pl__tree_read(&arena, json, &err))
        abort();
    pl__arena_release(&arena);
    return 0;
}
