/* apiserver/apiserver.h - a Kubernetes API server without sockets: requests in, answers out.
 *
 * One server plays several clusters: the management cluster and every workload cluster of the
 * playground. Each has its objects to itself; the counter behind resourceVersion is shared, as one etcd
 * behind several API servers would have it. Which kinds there are is said by the table in kinds.h.
 *
 * It opens no socket and reads no clock: `now_ms` comes with each call, randomness (uids, generated
 * names) from a seed. What it knows is in SQLite, an append-only log of revisions, in memory or in a file. When
 * an answer to a write is given the write is on the disk: kill -9 at any time loses nothing that was
 * answered.
 *
 *   HTTP front --- pl_apiserver_handle() ---+
 *                                           +--> the same code --> SQLite --> watches are woken
 *   fleet, cli --- pl_apiserver_call() -----+
 *
 * One thread. Nothing here calls back but `wake` (struct pl_api_watch_owner), from inside of whatever call made
 * something new to read; it may note that and must not call the server. */
#ifndef PL_APISERVER_APISERVER_H
#define PL_APISERVER_APISERVER_H

#include "base/error.h"

struct pl_kind; /* apiserver/kinds.h */

enum {
    PL_API_BODY_BYTES_MAX = 3 * 1024 * 1024, /* a longer body: 413, also by whoever reads it */
    PL_API_WATCHES_MAX = 20000,              /* one more: 429 */
    PL_API_CLUSTER_NAME_MAX = 128,
};

struct pl_apiserver;

struct pl_apiserver_options {
    const char *file;     /* the database; NULL: in memory */
    uint64_t seed;        /* of uids and generated names; must differ from run to run with a file */
    uint64_t history_max; /* revisions that watches may start behind the newest; 0: 20,000 */
    int64_t event_ttl_s;  /* Events are removed when they are that old; 0: 3600 */
    int64_t bookmark_ms;  /* between bookmarks of a silent watch; 0: 60,000 */
};

/* Opens or makes the database. NULL with an error (in `arena`) when it cannot, or when another process has
 * it open. */
struct pl_apiserver *pl_apiserver_open(const struct pl_apiserver_options *options,
                                       struct pl_arena *arena, struct pl_error **err);

/* Ends all watches (their handles become invalid) and closes the database. NULL is fine. */
void pl_apiserver_close(struct pl_apiserver *s);

/* Makes a cluster, with the namespaces default, kube-system, kube-public and kube-node-lease; nothing
 * happens when it is there. 0, or -1 when the name is empty or too long, or the disk is full. */
int pl_apiserver_cluster_add(struct pl_apiserver *s, struct pl_str name, int64_t now_ms);

/* Forgets a cluster with all its objects; its watches end. 0, also when it is not there; -1 when the disk is full:
 * then it is still there. */
int pl_apiserver_cluster_remove(struct pl_apiserver *s, struct pl_str name);

bool pl_apiserver_has_cluster(const struct pl_apiserver *s, struct pl_str name);

/* Garbage collection, namespaces that end, old Events, compaction, bookmarks and ends of watches: a bounded
 * portion of what is due. Call it when pl_apiserver_wake_at_ms() says so; after writes that may be
 * at once. */
void pl_apiserver_step(struct pl_apiserver *s, int64_t now_ms);

/* When to step next; never later than a minute away. In the past: now. */
int64_t pl_apiserver_wake_at_ms(const struct pl_apiserver *s);

/* The newest resourceVersion. */
uint64_t pl_apiserver_version(const struct pl_apiserver *s);

/* Forgets all revisions that are not the newest of their object, as etcd's compaction does: watches that
 * start before, and lists that go on from before, get 410. For tests and faults; step() does it on its own. */
void pl_apiserver_compact(struct pl_apiserver *s);

/* --- requests ------------------------------------------------------------------------------------ */

struct pl_api_request {
    struct pl_str cluster; /* its name; the front takes it from the path prefix or the port */
    struct pl_str method;  /* GET HEAD POST PUT PATCH DELETE; HEAD like GET, or 405 */
    struct pl_str
        path; /* from "/api" or "/apis" on, as it came (percent-encoded), without "?..." */
    struct pl_str query;        /* as it came, behind the "?"; may be empty */
    struct pl_str content_type; /* headers, as they came; empty when absent */
    struct pl_str accept;
    struct pl_str user_agent;
    struct pl_str body;
};

struct pl_api_watch;

struct pl_api_answer {
    int status;                 /* HTTP */
    struct pl_str content_type; /* static or in the arena of the call */
    struct pl_str body;         /* in the arena of the call; empty when `watch` is set */
    uint32_t retry_after_s;     /* 0: no such header */
    struct pl_str warning;      /* text of a "Warning: 299 - \"...\"" header, or empty */
    struct pl_api_watch *watch; /* the answer is a stream: read it, then close it */
};

/* Answers one request; always fills `answer`. Paths that are about objects are done here, the rest
 * (discovery, OpenAPI, /version) is handed to discovery.h; what nobody knows is 404. Answers in the form of a
 * Table or of metadata alone (Accept) come from table.h.
 *
 * Pods' portforward and the health endpoints are not done here: the front sees them first. */
void pl_apiserver_handle(struct pl_apiserver *s, const struct pl_api_request *request,
                         int64_t now_ms, struct pl_arena *arena, struct pl_api_answer *answer);

/* A failure as the front has to make it itself (413, 401, 500 ...): status, body and type are set.
 * `reason` such as "RequestEntityTooLarge". */
void pl_api_answer_failure(struct pl_api_answer *answer, struct pl_arena *arena, int status,
                           const char *reason, struct pl_str message);

/* --- watches ------------------------------------------------------------------------------------- */

/* A watch is pulled. It keeps a place in the log and at most one event that was read in part, so a slow
 * reader costs no memory; one that is slower than compaction gets the ERROR event with code 410, as with a
 * real server, and the end. */
enum pl_api_watch_state {
    PL_WATCH_MORE, /* bytes were read, there may be more */
    PL_WATCH_WAIT, /* nothing now: `wake` will be called */
    PL_WATCH_END,  /* over; close it */
};

struct pl_api_watch_owner {
    void (*wake)(void *context); /* NULL: nobody is told, reading is tried now and then */
    void *context;
};

/* Whom to wake. Right after the answer, once. */
void pl_api_watch_own(struct pl_api_watch *w, struct pl_api_watch_owner owner);

/* Up to `max` bytes of the stream into `bytes`; how many in `*count`. WAIT and END come with 0 bytes. */
enum pl_api_watch_state pl_api_watch_read(struct pl_api_watch *w, int64_t now_ms, char *bytes,
                                          size_t max, size_t *count);

/* The same for use in the process: the next whole event, one line without the newline, in `arena`. */
enum pl_api_watch_state pl_api_watch_next(struct pl_api_watch *w, int64_t now_ms,
                                          struct pl_arena *arena, struct pl_str *event);

/* Ends it; at any time. NULL is fine. */
void pl_api_watch_close(struct pl_api_watch *w);

/* --- without HTTP -------------------------------------------------------------------------------- */

enum pl_api_verb {
    PL_API_GET,
    PL_API_LIST,
    PL_API_WATCH,
    PL_API_CREATE, /* name from the body */
    PL_API_UPDATE,
    PL_API_MERGE, /* JSON merge patch */
    PL_API_JSON_PATCH,
    PL_API_APPLY, /* server-side apply, by force */
    PL_API_DELETE,
    PL_API_DELETE_COLLECTION,
};

struct pl_api_call {
    struct pl_str cluster;
    enum pl_api_verb verb;
    const char *group_version; /* "v1", "cluster.x-k8s.io/v1beta2" */
    const char *plural;        /* "machines" */
    struct pl_str ns;          /* empty: cluster-scoped, or of all namespaces */
    struct pl_str name;
    const char *subresource; /* "status", or NULL */
    struct pl_str query;     /* more of it, such as "labelSelector=a%3Db"; may be empty */
    struct pl_str manager;   /* fieldManager; empty: "plimsoll-playground" */
    struct pl_str body;
};

/* The same as the request that it stands for. Returns 0 when the status is below 400, else -1; `answer` is
 * filled in both cases. */
int pl_apiserver_call(struct pl_apiserver *s, const struct pl_api_call *call, int64_t now_ms,
                      struct pl_arena *arena, struct pl_api_answer *answer);

#endif
