/* What explains and checks an object of a custom kind is its CRD, the same file that goes to a real
 * cluster; so the two cannot disagree. It is read anew each time: clients ask for it once. */
#include "apiserver/schema_files.h"

#include <assert.h>

#include "apiserver/kinds.h"
#include "apiserver/schema.h"
#include "base/yaml.h"

enum { SCHEMA_JSON_BYTES_MAX = 1024 * 1024 };

/* The CRDs of one file, one a line. What is in the program was checked by its tests. */
static struct pl_str file_json(struct pl_arena *arena, const struct pl_schema_file *file)
{
    struct pl_yaml_limits limits = { .json_bytes_max = SCHEMA_JSON_BYTES_MAX };
    struct pl_position_map positions;
    struct pl_str json = { 0 };
    struct pl_error *err = NULL;
    int result =
        pl__yaml_to_json(arena, file->yaml, pl__str(file->name), limits, &json, &positions, &err);

    assert(result == 0);
    (void)result;
    return json;
}

/* The CRD's schema, when it is that of the kind. */
static struct pl_tree *schema_of(const struct pl_tree *crd, struct pl_str group, struct pl_str kind)
{
    if (!pl__str_equal(pl__tree_get_str(crd, "spec.group"), group) ||
        !pl__str_equal(pl__tree_get_str(crd, "spec.names.kind"), kind))
        return NULL;
    return pl__tree_at(pl__tree_item(pl__tree_at(crd, "spec.versions"), 0),
                       "schema.openAPIV3Schema");
}

struct pl_tree *pl__schema_find(struct pl_arena *arena, struct pl_str group, struct pl_str kind)
{
    for (size_t i = 0; i < pl__schema_file_count; i++) {
        struct pl_str rest = file_json(arena, &pl__schema_files[i]);
        while (rest.len > 0) {
            const char *end = memchr(rest.ptr, '\n', rest.len);
            struct pl_str line = { rest.ptr, end ? (size_t)(end - rest.ptr) : rest.len };
            struct pl_error *err = NULL;
            rest.ptr += end ? line.len + 1 : line.len;
            rest.len -= end ? line.len + 1 : line.len;
            struct pl_tree *found = schema_of(pl__tree_read(arena, line, &err), group, kind);
            if (found)
                return found;
        }
    }
    return NULL;
}

struct pl_tree *pl__schema_of_kind(struct pl_arena *arena, const struct pl_kind *kind)
{
    struct pl_tree *schema = pl__schema_find(arena, pl__str(kind->group), pl__str(kind->kind));

    assert(schema);
    return schema;
}
