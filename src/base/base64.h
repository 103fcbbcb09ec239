/* base/base64.h - bytes as text and back (RFC 4648, the standard alphabet with padding).
 *
 * Reading is as strict as Go's reader, which is what kubectl uses: line breaks are skipped, anything
 * else outside of the alphabet, missing padding and stray bits behind the last byte are refused. */
#ifndef PL_BASE_BASE64_H
#define PL_BASE_BASE64_H

#include "base/str.h"

/* What `text` stands for, in the arena, with a NUL behind it. 0, or -1 when it is not base64. */
int pl__base64_decode(struct pl_arena *arena, struct pl_str text, struct pl_str *bytes);

struct pl_str pl__base64_encode(struct pl_arena *arena, struct pl_str bytes);

#endif
