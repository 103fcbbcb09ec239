/* apiserver/store.h - the log of revisions, in SQLite.
 *
 * Every write of an object adds a revision with the next version; nothing is changed in place. Beside the log
 * stand two indexes that could be made from it: the newest revision of each object that is there
 * (`live`), and who is owned by whom. All that one request writes is one transaction: it is on the disk when
 * pl__api_store_commit() returns 0, or was never there.
 *
 * Compaction forgets the revisions that are not the newest of their object at some version; older versions
 * cannot be asked for from then on.
 *
 * This is the only file that knows SQLite. Functions return 0, or -1 when the database failed; then
 * pl__api_store_failure() says how, and the transaction has to be rolled back. */
#ifndef PL_APISERVER_STORE_H
#define PL_APISERVER_STORE_H

#include "base/error.h"

struct pl_store;

/* Where an object lives. `kind` and `cluster` are numbers that the store gave out. */
struct pl_store_key {
    int64_t cluster;
    int64_t kind;
    struct pl_str ns;
    struct pl_str name;
};

struct pl_store_row {
    struct pl_store_key key;
    uint64_t version;
    uint64_t previous; /* the object's revision before; 0: none */
    bool deleted;      /* `object` is then what it was last, with the version of the deletion */
    struct pl_str object;
};

/* NULL: memory. */
struct pl_store *pl__api_store_open(const char *file, struct pl_arena *arena,
                                    struct pl_error **err);
void pl__api_store_close(struct pl_store *s);
const char *pl__api_store_failure(const struct pl_store *s);

/* The number of a name, given out at its first use. -1: failed. */
int64_t pl__api_store_kind(struct pl_store *s, struct pl_str name);
int64_t pl__api_store_cluster(struct pl_store *s, struct pl_str name);
/* All clusters there are, by name. */
int pl__api_store_each_cluster(struct pl_store *s, struct pl_arena *arena,
                               int (*each)(void *context, int64_t id, struct pl_str name),
                               void *context);
/* Forgets all of a cluster; in a transaction. */
int pl__api_store_drop_cluster(struct pl_store *s, int64_t cluster);

int pl__api_store_begin(struct pl_store *s);
int pl__api_store_commit(struct pl_store *s);
void pl__api_store_rollback(struct pl_store *s); /* also takes back pl__api_store_version() */

uint64_t pl__api_store_version(const struct pl_store *s);
uint64_t pl__api_store_compacted(
    const struct pl_store *s); /* what is before this cannot be asked for */

/* Takes the next version, for the object that will carry it. In a transaction. */
uint64_t pl__api_store_take_version(struct pl_store *s);

/* Adds a revision. `version` was taken just before. */
struct pl_store_write {
    struct pl_store_key key;
    uint64_t version;
    uint64_t previous;
    struct pl_str uid;
    struct pl_str object;
    const struct pl_str *owners; /* uids */
    size_t owner_count;
};
int pl__api_store_put(struct pl_store *s, const struct pl_store_write *write);
int pl__api_store_remove(struct pl_store *s, const struct pl_store_write *write);

/* The object as it is now: 1, or 0 when there is none, or -1. */
int pl__api_store_get(struct pl_store *s, struct pl_arena *arena, const struct pl_store_key *key,
                      struct pl_store_row *row);
/* One revision, if it is still there. */
int pl__api_store_revision(struct pl_store *s, struct pl_arena *arena, uint64_t version,
                           struct pl_store_row *row);

/* A portion of a list, by namespace and name: up to `max` rows behind (after_ns, after_name), as of version
 * `at` (0: now). How many, or -1. `rows` has room for `max`. */
struct pl_store_list {
    int64_t cluster;
    int64_t kind;
    struct pl_str ns; /* empty: all */
    uint64_t at;
    struct pl_str after_ns;
    struct pl_str after_name;
};
int pl__api_store_list(struct pl_store *s, struct pl_arena *arena, const struct pl_store_list *list,
                       struct pl_store_row *rows, int max);
/* Of the objects of a kind that are there, the one that was written (made or changed) first behind version
 * `after`: 1, 0, -1. */
int pl__api_store_oldest(struct pl_store *s, struct pl_arena *arena, int64_t cluster, int64_t kind,
                         uint64_t after, struct pl_store_row *row);
/* How many there would be in all behind that place. -1: failed. */
int64_t pl__api_store_list_count(struct pl_store *s, const struct pl_store_list *list);

/* The first revision of that kind behind `version`: 1, 0 or -1. */
int pl__api_store_next(struct pl_store *s, struct pl_arena *arena, int64_t cluster, int64_t kind,
                       uint64_t version, struct pl_store_row *row);

/* Is an object with this uid there? 1, 0, -1; where, in `key` (may be NULL). */
int pl__api_store_find_uid(struct pl_store *s, struct pl_arena *arena, int64_t cluster,
                           struct pl_str uid, struct pl_store_key *key);
/* The first object behind `after` that names this uid as owner, by kind, namespace and name: 1, 0, -1. An empty
 * `after` is before all; the cluster in it does not matter. */
int pl__api_store_next_owned(struct pl_store *s, struct pl_arena *arena, int64_t cluster,
                             struct pl_str uid, const struct pl_store_key *after,
                             struct pl_store_key *key);
/* The same of the objects of a namespace, of any kind. */
int pl__api_store_next_in_namespace(struct pl_store *s, struct pl_arena *arena, int64_t cluster,
                                    struct pl_str ns, const struct pl_store_key *after,
                                    struct pl_store_key *key);

/* What the garbage collector still has to look at survives a crash: a queue of uids. In a transaction. */
int pl__api_store_work_add(struct pl_store *s, int64_t cluster, struct pl_str uid);
int pl__api_store_work_done(struct pl_store *s, int64_t cluster, struct pl_str uid);
/* The first of them behind a place in the queue (0: the start): 1, 0, -1. Each is there once; what is added comes
 * to the end, or takes the place of the last one that was done. */
struct pl_store_work {
    int64_t place;
    int64_t cluster;
    struct pl_str uid;
};
int pl__api_store_next_work(struct pl_store *s, struct pl_arena *arena, int64_t after,
                            struct pl_store_work *work);

/* Forgets what is superseded up to `version`, at most `max` revisions in one go. 1: more remains. In a
 * transaction of its own making. */
int pl__api_store_compact(struct pl_store *s, uint64_t version, int max);

#endif
