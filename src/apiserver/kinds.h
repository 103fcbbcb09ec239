/* apiserver/kinds.h - the kinds that the embedded API server serves: one row each, as data.
 *
 * Everything that differs between kinds stands here: names and scope for routing and discovery, rules
 * of writing, which lists are merged by key, which fields a selector may ask for, what `kubectl get`
 * prints. The rows of Cluster API's kinds say what deploy/crd/ says (tests/unit/apiserver/kinds_test.c
 * compares them); one version of each is served. */
#ifndef PL_APISERVER_KINDS_H
#define PL_APISERVER_KINDS_H

#include "base/str.h"

enum { KIND_SHORT_NAMES_MAX = 2 };

/* How the items of a list, or the members of an object, belong together: for server-side apply and, in
 * built-in kinds, for strategic merge patches. Lists that have no row are atomic, objects are not. */
enum pl_merge {
    MERGE_MAP,    /* objects, told apart by `keys` */
    MERGE_SET,    /* scalars, each at most once */
    MERGE_ATOMIC, /* an object that is owned and replaced as a whole */
};

struct pl_merge_rule {
    /* From the object's root, steps joined by '.', indexes left out: "spec.containers.env". */
    const char *path;
    enum pl_merge merge;
    /* MERGE_MAP: joined by ','. A strategic merge patch goes by the first alone. */
    const char *keys;
    bool whole; /* MERGE_MAP: an item is owned and replaced as a whole */
};

/* What a cell of a Table is made from. All but the first are computed as kube-apiserver does it for
 * built-in kinds. */
enum pl_cell {
    CELL_PATH, /* a JSONPath of the kind CRDs use: .a.b, ['a\.b'], [?(@.type=="X")] */
    CELL_NAME,
    CELL_AGE,   /* of `path`, a time */
    CELL_COUNT, /* the members of `path` and, with a second path behind '+', of that one */
    CELL_POD_READY,
    CELL_POD_STATUS,
    CELL_POD_RESTARTS,
    CELL_POD_GATES,
    CELL_NODE_STATUS,
    CELL_NODE_ROLES,
    CELL_EVENT_LAST,
    CELL_EVENT_FIRST,
    CELL_EVENT_OBJECT,
    CELL_EVENT_SOURCE,
    CELL_EVENT_COUNT,
};

struct pl_column {
    const char *name;
    const char *type;   /* "string", "integer", "boolean", "date" */
    const char *format; /* "name" for the name; "" */
    int priority;       /* above 0: only with -o wide */
    enum pl_cell cell;
    const char *path;
    const char *missing; /* the cell when nothing is there; NULL: null */
};

struct pl_kind {
    const char *group; /* "": core */
    const char *version;
    const char *kind;
    const char *plural;
    const char *singular;
    const char *short_names[KIND_SHORT_NAMES_MAX]; /* NULL: no more */
    const char *category;                          /* NULL: none */
    bool namespaced;
    bool status; /* has the subresource: `status` is written only there */
    bool scale;  /* has the subresource, by .spec.replicas and .status.replicas */
    bool
        custom; /* as CRDs behave: generation, items of lists with kind and apiVersion, no strategic
                    merge patch, PUT needs a resourceVersion and never creates */
    bool unconditional_put;     /* a PUT without resourceVersion overwrites */
    bool put_creates;           /* a PUT of what does not exist creates it */
    bool delete_answers_object; /* and not a Status, when the object is gone at once */
    /* The kind whose objects these are, under another face; NULL: its own. (events.k8s.io) */
    const struct pl_kind *stored_as;
    const char *const
        *selectable; /* beyond metadata.name and metadata.namespace; NULL-terminated */
    const struct pl_merge_rule *merges; /* beyond pl__merge_common; ends with a NULL path */
    const struct pl_column *columns;    /* ends with a NULL name */
    const char *description;
};

/* All of them: groups stand together, core first. */
extern const struct pl_kind pl__kinds[];
extern const size_t pl__kind_count;

/* metadata.finalizers and metadata.ownerReferences, of every kind. Ends with a NULL path. */
extern const struct pl_merge_rule pl__merge_common[];

/* By the parts of a URL; NULL: not served. */
const struct pl_kind *pl__kind_by_plural(struct pl_str group, struct pl_str version,
                                         struct pl_str plural);

/* By what stands in an object: "v1" or "group/version", and its kind. NULL: not served. */
const struct pl_kind *pl__kind_by_name(struct pl_str api_version, struct pl_str kind);

/* Is it this one of the core group? "namespaces" */
bool pl__kind_is_core(const struct pl_kind *kind, const char *plural);

/* "v1", or "group/version". */
struct pl_str pl__kind_api_version(struct pl_arena *arena, const struct pl_kind *kind);

/* "pods", or "machines.cluster.x-k8s.io": how messages name a resource. */
struct pl_str pl__kind_resource(struct pl_arena *arena, const struct pl_kind *kind);

/* The rule for a path (as in struct pl_merge_rule), common ones included; NULL: none, the default. */
const struct pl_merge_rule *pl__kind_merge(const struct pl_kind *kind, struct pl_str path);

/* May a field selector ask for this? */
bool pl__kind_selects(const struct pl_kind *kind, struct pl_str field);

#endif
