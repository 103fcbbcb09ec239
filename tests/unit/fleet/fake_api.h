/* tests/unit/fleet/fake_api.h - API servers for the fleet's tests: objects as trees, in one process.
 *
 * Strict where a fleet could get away with less: status is written by its subresource alone, server-side apply
 * keeps who owns which condition, a version in a patch must be the newest, finalizers hold what is deleted. Watch
 * events are queued and delivered by fake_deliver(), never from inside of a call. */
#ifndef PL_TESTS_FAKE_API_H
#define PL_TESTS_FAKE_API_H

#include "fleet/fleet.h"
#include "sim/tree.h"

enum { FAKE_OBJECTS_MAX = 4096, FAKE_EVENTS_MAX = 1 << 16, FAKE_WATCHES_MAX = 256 };

/* There can be no workload cluster of this name. */
#define FAKE_REFUSED "refused"

struct fake_object {
    struct pl_str cluster, plural, ns, name;
    struct pl_tree *last;  /* as it was when it went */
    struct pl_tree *tree;  /* NULL: gone */
    struct pl_tree *owned; /* manager -> [types of conditions] */
};

struct fake_event {
    struct pl_str cluster, line;
};

struct fake_api {
    struct pl_arena arena;
    struct fake_object objects[FAKE_OBJECTS_MAX];
    size_t object_count;
    struct fake_event events[FAKE_EVENTS_MAX];
    size_t event_count, delivered_count;
    struct {
        struct pl_str cluster, plural;
    } watches[FAKE_WATCHES_MAX];
    size_t watch_count;
    uint64_t version;
    struct pl_buf log;  /* every call, a line each */
    struct pl_buf said; /* what the fleet said */
    int removed_clusters;
    const char *refuse; /* calls for this plural are answered with 500 */
};

void fake_init(struct fake_api *fake);
void fake_release(struct fake_api *fake);
struct pl_fleet_api fake_interface(struct fake_api *fake);
void fake_said(void *user, struct pl_str line);

/* Tells the fleet what it has not heard yet. */
void fake_deliver(struct fake_api *fake, struct pl_fleet *fleet);

/* The object, or NULL. `cluster` "": the management cluster; namespaces do not matter here. */
struct pl_tree *fake_get(struct fake_api *fake, const char *cluster, const char *plural,
                         const char *name);
/* The n-th that is there, in the order of creation; NULL: there are not that many. */
struct fake_object *fake_nth(struct fake_api *fake, const char *cluster, const char *plural,
                             size_t n);
size_t fake_count(struct fake_api *fake, const char *cluster, const char *plural);
/* status of a condition, or its reason; "" when it is not there. */
struct pl_str fake_condition(const struct pl_tree *object, const char *type, const char *field);

/* What people and other controllers do. */
void fake_merge(struct fake_api *fake, const char *cluster, const char *plural, const char *name,
                const char *patch);
void fake_fault(struct fake_api *fake, const char *cluster, const char *plural, const char *name,
                const char *fault); /* NULL: none */
void fake_delete(struct fake_api *fake, const char *cluster, const char *plural, const char *name);

#endif
