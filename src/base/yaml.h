/* base/yaml.h - YAML in, by way of JSON.
 *
 * One decoder reads both: a YAML stream is turned into JSON text, one document a line, with a map
 * from offsets in it back to lines and columns of the YAML, so that errors point at what the user
 * wrote. Scalars resolve as Kubernetes' own reader does it (YAML 1.1 booleans: yes, no, on and off,
 * too; timestamps stay strings), but whole numbers keep all their digits and a key that is there
 * twice is an error. Documents with nothing in them are left out. docs/internals/yaml.md has the
 * rest. */
#ifndef PL_BASE_YAML_H
#define PL_BASE_YAML_H

#include "base/json.h"

struct pl_yaml_limits {
    uint32_t depth_max;    /* 0: 64 */
    size_t json_bytes_max; /* aliases can multiply: this bounds what comes out */
};

/* 0 with `json` and `positions` (both in the arena), or -1 with "source:line:column: ...". */
int pl__yaml_to_json(struct pl_arena *arena, struct pl_str yaml, struct pl_str source,
                     struct pl_yaml_limits limits, struct pl_str *json,
                     struct pl_position_map *positions, struct pl_error **err);

#endif
