/* apiserver/protobuf.h - the few bodies that kubectl sends as protobuf, as JSON.
 *
 * `kubectl create namespace|configmap|secret` and `kubectl auth` do not speak JSON, whatever the server offers;
 * everything else does. An answer in JSON is fine with all of them. */
#ifndef PL_APISERVER_PROTOBUF_H
#define PL_APISERVER_PROTOBUF_H

#include "base/str.h"

#define PL_PROTOBUF_TYPE "application/vnd.kubernetes.protobuf"

/* A body of that type. False: not one, or of a kind or with a field that is not in the tables (415 is right then:
 * nothing is dropped without a word). */
bool pl__protobuf_to_json(struct pl_arena *arena, struct pl_str body, struct pl_str *json);

#endif
