/* No bytes break the YAML reader, and what it makes of them is JSON that our own reader takes:
 * one document a line, within the depth that was asked for. */
#include <stdlib.h>

#include "base/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void check_json(struct pl_arena *arena, struct pl_str json, uint32_t depth_max)
{
    struct pl_json j;
    struct pl_error *err = NULL;

    pl__json_init(&j, json, PL_STR("made from YAML"), arena, depth_max, &err);
    while (!pl__json_at_end(&j)) {
        const char *line = j.at;
        require(pl__json_skip(&j) == 0);
        require(j.at < j.end && *j.at == '\n');
        require(!memchr(line, '\n', (size_t)(j.at - line)));
    }
}

static void check_positions(struct pl_str json, struct pl_position_map positions)
{
    for (size_t i = 0; i < positions.count; i++) {
        require(positions.items[i].offset < json.len);
        require(positions.items[i].line > 0 && positions.items[i].column > 0);
        require(i == 0 || positions.items[i - 1].offset <= positions.items[i].offset);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct pl_yaml_limits limits = { .depth_max = 16, .json_bytes_max = 1 << 20 };
    struct pl_arena arena;
    struct pl_str json = { "", 0 };
    struct pl_position_map positions = { NULL, 0 };
    struct pl_error *err = NULL;

    pl__arena_init(&arena, NULL, 0);
    if (pl__yaml_to_json(&arena, (struct pl_str){ (const char *)data, size }, PL_STR("fuzz"),
                         limits, &json, &positions, &err) < 0) {
        require(err && pl__str_starts_with(err->message, PL_STR("fuzz:")));
    } else {
        require(!err);
        check_json(&arena, json, limits.depth_max);
        check_positions(json, positions);
    }
    pl__arena_release(&arena);
    return 0;
}
