/* apiserver/discovery.h - what the server can do, told to clients: /api, /apis, /openapi, /version; and what they may
 * do, which is everything: SelfSubjectAccessReview and SelfSubjectReview.
 *
 * Pure: it depends on the table of kinds and the request alone. */
#ifndef PL_APISERVER_DISCOVERY_H
#define PL_APISERVER_DISCOVERY_H

#include "apiserver/apiserver.h"

/* Answers a request that is not about objects (`path` is not below a group's version). False when the path is
 * unknown here, too; then nothing was filled. pl_apiserver_handle() calls it. */
bool pl__discovery_handle(const struct pl_api_request *request, struct pl_arena *arena,
                          struct pl_api_answer *answer);

#endif
