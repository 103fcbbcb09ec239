/* apiserver/schema.h - the OpenAPI v3 schemas of the kinds: of a custom kind, what its CRD in deploy/crd/
 * says; of a built-in one the part of Kubernetes' own that matters here (schemas/builtin.yaml). */
#ifndef PL_APISERVER_SCHEMA_H
#define PL_APISERVER_SCHEMA_H

#include "apiserver/kinds.h"
#include "apiserver/tree.h"

/* The schema of the kind's objects, a tree of the caller's own. Never NULL. It reads YAML each time: keep
 * what is asked for often. */
struct pl_tree *pl__schema_of_kind(struct pl_arena *arena, const struct pl_kind *kind);

/* The same by name; NULL: none. ("meta.k8s.io", "ObjectMeta") is there for discovery. */
struct pl_tree *pl__schema_find(struct pl_arena *arena, struct pl_str group, struct pl_str kind);

#endif
