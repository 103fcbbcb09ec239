/* base/version.h - Kubernetes versions: "v1.31.2", "1.31", "v1.32.0-rc.1+build.7".
 *
 * Semantic versions, read as tolerantly as Cluster API reads them: with or without the v, the patch
 * number may be missing. */
#ifndef PL_BASE_VERSION_H
#define PL_BASE_VERSION_H

#include "base/buf.h"

struct pl_version {
    uint64_t major, minor, patch;
    struct pl_str prerelease; /* "rc.1"; views of the text that was read */
    struct pl_str build;      /* "build.7" */
};

/* False when it is no version. */
bool pl__version_parse(struct pl_str text, struct pl_version *v);

/* "1.31.2-rc.1+build.7": no v, all three numbers. */
void pl__version_add(struct pl_buf *b, const struct pl_version *v);

/* Whether it is 1.`minor` or later, whatever the patch and the prerelease. */
static inline bool pl__version_at_least(const struct pl_version *v, uint64_t minor)
{
    return v->major > 1 || (v->major == 1 && v->minor >= minor);
}

/* Whether going from `from` to `to` is an upgrade: `to` is later, or has a build that is later or that
 * cannot be compared (a commit's hash, say). */
bool pl__version_upgrades(const struct pl_version *from, const struct pl_version *to);

#endif
