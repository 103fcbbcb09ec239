/* cli/transcode.h - JSON that we wrote ourselves, again as YAML, so that both say the same. */
#ifndef PL_CLI_TRANSCODE_H
#define PL_CLI_TRANSCODE_H

#include "base/buf.h"

/* Adds one JSON document as YAML, with a newline at its end. */
void pl__json_to_yaml(struct pl_buf *out, struct pl_arena *scratch, struct pl_str json);

#endif
