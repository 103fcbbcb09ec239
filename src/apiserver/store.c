#include "apiserver/store.h"

#include <assert.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

enum query {
    Q_BEGIN,
    Q_COMMIT,
    Q_ROLLBACK,
    Q_LOG,
    Q_LIVE_PUT,
    Q_LIVE_REMOVE,
    Q_OWNED_CLEAR,
    Q_OWNED_PUT,
    Q_GET,
    Q_REVISION,
    Q_LIST_ALL,
    Q_LIST_NS,
    Q_LIST_ALL_AT,
    Q_LIST_NS_AT,
    Q_OLDEST,
    Q_COUNT_ALL,
    Q_COUNT_NS,
    Q_NEXT,
    Q_FIND_UID,
    Q_OWNED,
    Q_IN_NS,
    Q_WORK_ADD,
    Q_WORK_DONE,
    Q_WORK,
    Q_META_PUT,
    Q_SUPERSEDERS,
    Q_FORGET,
    Q_COUNT
};

/* "Behind this place" is written as two cases: so SQLite walks the key in order and reads no more than asked. */
#define LIST_COLUMNS                                                                       \
    "SELECT v.version, v.previous, v.deleted, v.ns, v.name, v.object, l.kind FROM live l " \
    "JOIN log v ON v.version = l.version WHERE l.cluster = ?1 AND l.kind = ?2 "
/* As of version ?7: the revisions that have no later one up to then. Walks the index by key, so that a portion
 * costs what it gives, and nothing is sorted. */
#define AT_COLUMNS                                                                        \
    "SELECT v.version, v.previous, v.deleted, v.ns, v.name, v.object, v.kind FROM log v " \
    "INDEXED BY log_by_key WHERE v.cluster = ?1 AND v.kind = ?2 AND v.version <= ?7 "     \
    "AND v.deleted = 0 AND NOT EXISTS (SELECT 1 FROM log n WHERE n.cluster = v.cluster "  \
    "AND n.kind = v.kind AND n.ns = v.ns AND n.name = v.name AND n.version > v.version "  \
    "AND n.version <= ?7) "

static const char *const texts[Q_COUNT] = {
    [Q_BEGIN] = "BEGIN IMMEDIATE",
    [Q_COMMIT] = "COMMIT",
    [Q_ROLLBACK] = "ROLLBACK",
    [Q_LOG] = "INSERT INTO log(version, cluster, kind, ns, name, previous, deleted, object) "
              "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    [Q_LIVE_PUT] =
        "INSERT INTO live(cluster, kind, ns, name, uid, version) "
        "VALUES(?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO UPDATE SET uid = ?5, version = ?6",
    [Q_LIVE_REMOVE] = "DELETE FROM live WHERE cluster = ?1 AND kind = ?2 AND ns = ?3 AND name = ?4",
    [Q_OWNED_CLEAR] =
        "DELETE FROM owned WHERE cluster = ?1 AND kind = ?2 AND ns = ?3 AND name = ?4",
    [Q_OWNED_PUT] = "INSERT OR IGNORE INTO owned(cluster, kind, ns, name, owner) "
                    "VALUES(?1, ?2, ?3, ?4, ?5)",
    [Q_GET] = LIST_COLUMNS "AND l.ns = ?3 AND l.name = ?4",
    [Q_REVISION] = "SELECT version, previous, deleted, ns, name, object, kind FROM log "
                   "WHERE version = ?1",
    [Q_LIST_ALL] = LIST_COLUMNS "AND (l.ns, l.name) > (?4, ?5) ORDER BY l.ns, l.name LIMIT ?6",
    [Q_LIST_NS] = LIST_COLUMNS "AND l.ns = ?3 AND l.name > ?5 ORDER BY l.name LIMIT ?6",
    [Q_LIST_ALL_AT] = AT_COLUMNS "AND (v.ns, v.name) > (?4, ?5) ORDER BY v.ns, v.name LIMIT ?6",
    [Q_LIST_NS_AT] = AT_COLUMNS "AND v.ns = ?3 AND v.name > ?5 ORDER BY v.name LIMIT ?6",
    [Q_OLDEST] = "SELECT v.version, v.previous, v.deleted, v.ns, v.name, v.object, v.kind "
                 "FROM log v INDEXED BY log_by_kind CROSS JOIN live l ON l.cluster = v.cluster "
                 "AND l.kind = v.kind AND l.ns = v.ns AND l.name = v.name "
                 "AND l.version = v.version WHERE v.cluster = ?1 AND v.kind = ?2 "
                 "AND v.version > ?3 ORDER BY v.version LIMIT 1",
    [Q_COUNT_ALL] = "SELECT count(*) FROM live l WHERE l.cluster = ?1 AND l.kind = ?2 "
                    "AND (l.ns, l.name) > (?4, ?5)",
    [Q_COUNT_NS] = "SELECT count(*) FROM live l WHERE l.cluster = ?1 AND l.kind = ?2 "
                   "AND l.ns = ?3 AND l.name > ?5",
    [Q_NEXT] = "SELECT version, previous, deleted, ns, name, object, kind FROM log "
               "WHERE cluster = ?1 AND kind = ?2 AND version > ?3 ORDER BY version LIMIT 1",
    [Q_FIND_UID] = "SELECT kind, ns, name FROM live WHERE uid = ?2 AND cluster = ?1",
    [Q_OWNED] = "SELECT kind, ns, name FROM owned WHERE owner = ?2 AND cluster = ?1 "
                "AND (kind, ns, name) > (?3, ?4, ?5) ORDER BY kind, ns, name LIMIT 1",
    [Q_IN_NS] = "SELECT kind, ns, name FROM live INDEXED BY live_by_ns WHERE cluster = ?1 "
                "AND ns = ?2 AND (kind, name) > (?3, ?4) ORDER BY kind, name LIMIT 1",
    [Q_WORK_ADD] = "INSERT OR IGNORE INTO work(cluster, uid) VALUES(?1, ?2)",
    [Q_WORK_DONE] = "DELETE FROM work WHERE cluster = ?1 AND uid = ?2",
    [Q_WORK] = "SELECT rowid, cluster, uid FROM work WHERE rowid > ?1 ORDER BY rowid LIMIT 1",
    [Q_META_PUT] = "INSERT INTO meta(key, value) VALUES(?1, ?2) "
                   "ON CONFLICT DO UPDATE SET value = ?2",
    [Q_SUPERSEDERS] = "SELECT version, previous, deleted FROM log WHERE version > ?1 "
                      "AND version <= ?2 ORDER BY version LIMIT ?3",
    [Q_FORGET] = "DELETE FROM log WHERE version = ?1",
};

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS meta(key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS clusters(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);"
    "CREATE TABLE IF NOT EXISTS kinds(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);"
    "CREATE TABLE IF NOT EXISTS log(version INTEGER PRIMARY KEY, cluster INTEGER NOT NULL, "
    "kind INTEGER NOT NULL, ns TEXT NOT NULL, name TEXT NOT NULL, previous INTEGER NOT NULL, "
    "deleted INTEGER NOT NULL, object TEXT NOT NULL);"
    "CREATE INDEX IF NOT EXISTS log_by_key ON log(cluster, kind, ns, name, version);"
    "CREATE INDEX IF NOT EXISTS log_by_kind ON log(cluster, kind, version);"
    "CREATE TABLE IF NOT EXISTS live(cluster INTEGER NOT NULL, kind INTEGER NOT NULL, "
    "ns TEXT NOT NULL, name TEXT NOT NULL, uid TEXT NOT NULL, version INTEGER NOT NULL, "
    "PRIMARY KEY(cluster, kind, ns, name)) WITHOUT ROWID;"
    "CREATE INDEX IF NOT EXISTS live_by_uid ON live(uid);"
    "CREATE INDEX IF NOT EXISTS live_by_ns ON live(cluster, ns);"
    "CREATE TABLE IF NOT EXISTS owned(cluster INTEGER NOT NULL, kind INTEGER NOT NULL, "
    "ns TEXT NOT NULL, name TEXT NOT NULL, owner TEXT NOT NULL, "
    "PRIMARY KEY(cluster, kind, ns, name, owner)) WITHOUT ROWID;"
    "CREATE INDEX IF NOT EXISTS owned_by_owner ON owned(owner);"
    "CREATE TABLE IF NOT EXISTS work(cluster INTEGER NOT NULL, uid TEXT NOT NULL, "
    "UNIQUE(cluster, uid));";

struct pl_store {
    sqlite3 *db;
    sqlite3_stmt *queries[Q_COUNT];
    uint64_t version;
    uint64_t version_before; /* at the start of the transaction */
    uint64_t compacted;
    bool open; /* a transaction is */
};

/* --- statements ---------------------------------------------------------------------------------- */

static void bind_str(sqlite3_stmt *q, int at, struct pl_str s)
{
    sqlite3_bind_text(q, at, s.len ? s.ptr : "", (int)s.len, SQLITE_STATIC);
}

static void bind_key(sqlite3_stmt *q, const struct pl_store_key *key)
{
    sqlite3_bind_int64(q, 1, key->cluster);
    sqlite3_bind_int64(q, 2, key->kind);
    bind_str(q, 3, key->ns);
    bind_str(q, 4, key->name);
}

/* Done with it: what was bound may go away. Whether the last step failed was seen there. */
static void end(sqlite3_stmt *q)
{
    sqlite3_reset(q);
    sqlite3_clear_bindings(q);
}

static int run(sqlite3_stmt *q)
{
    int code = sqlite3_step(q);

    end(q);
    return code == SQLITE_DONE ? 0 : -1;
}

static struct pl_str column_str(struct pl_arena *arena, sqlite3_stmt *q, int column)
{
    const char *text = (const char *)sqlite3_column_text(q, column);
    int size = sqlite3_column_bytes(q, column);

    return pl__str_copy(arena, (struct pl_str){ text, text ? (size_t)size : 0 });
}

/* version, previous, deleted, ns, name, object, kind */
static void read_row(struct pl_arena *arena, sqlite3_stmt *q, int64_t cluster,
                     struct pl_store_row *row)
{
    row->version = (uint64_t)sqlite3_column_int64(q, 0);
    row->previous = (uint64_t)sqlite3_column_int64(q, 1);
    row->deleted = sqlite3_column_int(q, 2) != 0;
    row->key.ns = column_str(arena, q, 3);
    row->key.name = column_str(arena, q, 4);
    row->object = column_str(arena, q, 5);
    row->key.kind = sqlite3_column_int64(q, 6);
    row->key.cluster = cluster;
}

static int read_one(struct pl_arena *arena, sqlite3_stmt *q, int64_t cluster,
                    struct pl_store_row *row)
{
    int code = sqlite3_step(q);

    if (code == SQLITE_ROW)
        read_row(arena, q, cluster, row);
    end(q);
    return code == SQLITE_ROW ? 1 : code == SQLITE_DONE ? 0 : -1;
}

/* kind, ns, name */
static int read_key(struct pl_arena *arena, sqlite3_stmt *q, int64_t cluster,
                    struct pl_store_key *key)
{
    int code = sqlite3_step(q);

    if (code == SQLITE_ROW)
        *key = (struct pl_store_key){ .cluster = cluster,
                                      .kind = sqlite3_column_int64(q, 0),
                                      .ns = column_str(arena, q, 1),
                                      .name = column_str(arena, q, 2) };
    end(q);
    return code == SQLITE_ROW ? 1 : code == SQLITE_DONE ? 0 : -1;
}

/* A statement that is used once. */
static sqlite3_stmt *prepare(struct pl_store *s, const char *text)
{
    sqlite3_stmt *q = NULL;

    return sqlite3_prepare_v2(s->db, text, -1, &q, NULL) == SQLITE_OK ? q : NULL;
}

static int64_t read_number(struct pl_store *s, const char *text)
{
    sqlite3_stmt *q = prepare(s, text);
    int64_t number = -1;

    if (q && sqlite3_step(q) == SQLITE_ROW)
        number = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    return number;
}

/* --- opening ------------------------------------------------------------------------------------- */

const char *pl__api_store_failure(const struct pl_store *s)
{
    return sqlite3_errmsg(s->db);
}

static int setup(struct pl_store *s, const char *file)
{
    /* WAL with FULL: a commit is on the disk when it returns. EXCLUSIVE: two servers on one file would
     * each give out the same versions. */
    static const char pragmas[] = "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL;"
                                  "PRAGMA synchronous = FULL; PRAGMA foreign_keys = OFF;";

    if (file && sqlite3_exec(s->db, pragmas, NULL, NULL, NULL) != SQLITE_OK)
        return -1;
    if (sqlite3_exec(s->db, "BEGIN EXCLUSIVE", NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_exec(s->db, schema, NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
        return -1;
    for (int i = 0; i < Q_COUNT; i++)
        if (sqlite3_prepare_v3(s->db, texts[i], -1, SQLITE_PREPARE_PERSISTENT, &s->queries[i],
                               NULL) != SQLITE_OK)
            return -1;
    int64_t compacted =
        read_number(s, "SELECT coalesce(max(value), 0) FROM meta WHERE key = 'compacted'");
    int64_t floor = read_number(s, "SELECT coalesce(max(value), 0) FROM meta WHERE key = 'floor'");
    int64_t newest = read_number(s, "SELECT coalesce(max(version), 0) FROM log");
    if (compacted < 0 || floor < 0 || newest < 0)
        return -1;
    /* The newest revision may have been a deletion that compaction forgot. */
    s->compacted = (uint64_t)compacted;
    newest = newest < floor ? floor : newest;
    s->version = (uint64_t)(newest < compacted ? compacted : newest);
    return 0;
}

struct pl_store *pl__api_store_open(const char *file, struct pl_arena *arena, struct pl_error **err)
{
    struct pl_store *s = calloc(1, sizeof *s);

    assert(s);
    if (sqlite3_open_v2(file ? file : ":memory:", &s->db,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                        NULL) == SQLITE_OK &&
        setup(s, file) == 0)
        return s;
    int code = sqlite3_errcode(s->db);
    pl__error(arena, err, PL_IO, "%s: %s", file ? file : "database in memory",
              code == SQLITE_BUSY || code == SQLITE_LOCKED ? "another process has it open"
                                                           : sqlite3_errmsg(s->db));
    pl__api_store_close(s);
    return NULL;
}

void pl__api_store_close(struct pl_store *s)
{
    if (!s)
        return;
    for (int i = 0; i < Q_COUNT; i++)
        sqlite3_finalize(s->queries[i]);
    sqlite3_close(s->db);
    free(s);
}

/* The number of `name` in a table of names. */
static int64_t number_of(struct pl_store *s, const char *insert, const char *select,
                         struct pl_str name)
{
    const char *const steps[] = { insert, select };
    int64_t number = -1;

    for (int i = 0; i < 2; i++) {
        sqlite3_stmt *q = prepare(s, steps[i]);
        if (!q)
            return -1;
        bind_str(q, 1, name);
        int code = sqlite3_step(q);
        if (i == 1 && code == SQLITE_ROW)
            number = sqlite3_column_int64(q, 0);
        sqlite3_finalize(q);
        if (code != SQLITE_DONE && code != SQLITE_ROW)
            return -1;
    }
    return number;
}

int64_t pl__api_store_kind(struct pl_store *s, struct pl_str name)
{
    return number_of(s, "INSERT OR IGNORE INTO kinds(name) VALUES(?1)",
                     "SELECT id FROM kinds WHERE name = ?1", name);
}

int64_t pl__api_store_cluster(struct pl_store *s, struct pl_str name)
{
    return number_of(s, "INSERT OR IGNORE INTO clusters(name) VALUES(?1)",
                     "SELECT id FROM clusters WHERE name = ?1", name);
}

int pl__api_store_each_cluster(struct pl_store *s, struct pl_arena *arena,
                               int (*each)(void *context, int64_t id, struct pl_str name),
                               void *context)
{
    sqlite3_stmt *q = prepare(s, "SELECT id, name FROM clusters ORDER BY name");
    int code = SQLITE_ERROR;

    while (q && (code = sqlite3_step(q)) == SQLITE_ROW)
        if (each(context, sqlite3_column_int64(q, 0), column_str(arena, q, 1)) < 0)
            break;
    sqlite3_finalize(q);
    return code == SQLITE_DONE ? 0 : -1;
}

int pl__api_store_drop_cluster(struct pl_store *s, int64_t cluster)
{
    static const char *const steps[] = {
        "DELETE FROM log WHERE cluster = ?1",   "DELETE FROM live WHERE cluster = ?1",
        "DELETE FROM owned WHERE cluster = ?1", "DELETE FROM work WHERE cluster = ?1",
        "DELETE FROM clusters WHERE id = ?1",
    };
    sqlite3_stmt *floor = s->queries[Q_META_PUT];

    assert(s->open);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        sqlite3_stmt *q = prepare(s, steps[i]);
        if (!q)
            return -1;
        sqlite3_bind_int64(q, 1, cluster);
        int code = sqlite3_step(q);
        sqlite3_finalize(q);
        if (code != SQLITE_DONE)
            return -1;
    }
    /* Its revisions may have been the newest; no version is given out twice. */
    bind_str(floor, 1, PL_STR("floor"));
    sqlite3_bind_int64(floor, 2, (sqlite3_int64)s->version);
    return run(floor);
}

/* --- transactions -------------------------------------------------------------------------------- */

int pl__api_store_begin(struct pl_store *s)
{
    assert(!s->open);
    if (run(s->queries[Q_BEGIN]) < 0)
        return -1;
    s->open = true;
    s->version_before = s->version;
    return 0;
}

int pl__api_store_commit(struct pl_store *s)
{
    assert(s->open);
    if (run(s->queries[Q_COMMIT]) < 0)
        return -1;
    s->open = false;
    return 0;
}

void pl__api_store_rollback(struct pl_store *s)
{
    if (!s->open)
        return;
    if (!sqlite3_get_autocommit(s->db)) /* else SQLite itself did it, as when the disk is full */
        run(s->queries[Q_ROLLBACK]);
    s->open = false;
    s->version = s->version_before;
}

uint64_t pl__api_store_version(const struct pl_store *s)
{
    return s->version;
}

uint64_t pl__api_store_compacted(const struct pl_store *s)
{
    return s->compacted;
}

uint64_t pl__api_store_take_version(struct pl_store *s)
{
    assert(s->open);
    return ++s->version;
}

/* --- writing ------------------------------------------------------------------------------------- */

static int add_revision(struct pl_store *s, const struct pl_store_write *w, bool deleted)
{
    sqlite3_stmt *q = s->queries[Q_LOG];

    assert(s->open && w->version == s->version);
    sqlite3_bind_int64(q, 1, (sqlite3_int64)w->version);
    sqlite3_bind_int64(q, 2, w->key.cluster);
    sqlite3_bind_int64(q, 3, w->key.kind);
    bind_str(q, 4, w->key.ns);
    bind_str(q, 5, w->key.name);
    sqlite3_bind_int64(q, 6, (sqlite3_int64)w->previous);
    sqlite3_bind_int(q, 7, deleted);
    bind_str(q, 8, w->object);
    return run(q);
}

static int set_owners(struct pl_store *s, const struct pl_store_write *w)
{
    sqlite3_stmt *clear = s->queries[Q_OWNED_CLEAR], *put = s->queries[Q_OWNED_PUT];

    if (w->previous) {
        bind_key(clear, &w->key);
        if (run(clear) < 0)
            return -1;
    }
    for (size_t i = 0; i < w->owner_count; i++) {
        bind_key(put, &w->key);
        bind_str(put, 5, w->owners[i]);
        if (run(put) < 0)
            return -1;
    }
    return 0;
}

int pl__api_store_put(struct pl_store *s, const struct pl_store_write *w)
{
    sqlite3_stmt *live = s->queries[Q_LIVE_PUT];

    if (add_revision(s, w, false) < 0)
        return -1;
    bind_key(live, &w->key);
    bind_str(live, 5, w->uid);
    sqlite3_bind_int64(live, 6, (sqlite3_int64)w->version);
    return run(live) < 0 ? -1 : set_owners(s, w);
}

int pl__api_store_remove(struct pl_store *s, const struct pl_store_write *w)
{
    sqlite3_stmt *live = s->queries[Q_LIVE_REMOVE], *owned = s->queries[Q_OWNED_CLEAR];

    if (add_revision(s, w, true) < 0)
        return -1;
    bind_key(live, &w->key);
    bind_key(owned, &w->key);
    int failed = run(live) | run(owned);
    return failed ? -1 : 0;
}

/* --- reading ------------------------------------------------------------------------------------- */

int pl__api_store_get(struct pl_store *s, struct pl_arena *arena, const struct pl_store_key *key,
                      struct pl_store_row *row)
{
    sqlite3_stmt *q = s->queries[Q_GET];

    bind_key(q, key);
    return read_one(arena, q, key->cluster, row);
}

int pl__api_store_revision(struct pl_store *s, struct pl_arena *arena, uint64_t version,
                           struct pl_store_row *row)
{
    sqlite3_stmt *q = s->queries[Q_REVISION];

    sqlite3_bind_int64(q, 1, (sqlite3_int64)version);
    return read_one(arena, q, 0, row);
}

static void bind_list(sqlite3_stmt *q, const struct pl_store_list *list)
{
    sqlite3_bind_int64(q, 1, list->cluster);
    sqlite3_bind_int64(q, 2, list->kind);
    bind_str(q, 3, list->ns);
    bind_str(q, 4, list->after_ns);
    bind_str(q, 5, list->after_name);
}

int pl__api_store_list(struct pl_store *s, struct pl_arena *arena, const struct pl_store_list *list,
                       struct pl_store_row *rows, int max)
{
    bool past = list->at && list->at < s->version;
    sqlite3_stmt *q = s->queries[list->ns.len ? (past ? Q_LIST_NS_AT : Q_LIST_NS)
                                              : (past ? Q_LIST_ALL_AT : Q_LIST_ALL)];
    int code, count = 0;

    bind_list(q, list);
    sqlite3_bind_int(q, 6, max);
    if (past)
        sqlite3_bind_int64(q, 7, (sqlite3_int64)list->at);
    while ((code = sqlite3_step(q)) == SQLITE_ROW && count < max)
        read_row(arena, q, list->cluster, &rows[count++]);
    end(q);
    return code == SQLITE_DONE || code == SQLITE_ROW ? count : -1;
}

/* The first row of this kind that a query finds behind a version. */
static int read_after(struct pl_store *s, int query, struct pl_arena *arena, int64_t cluster,
                      int64_t kind, uint64_t version, struct pl_store_row *row)
{
    sqlite3_stmt *q = s->queries[query];

    sqlite3_bind_int64(q, 1, cluster);
    sqlite3_bind_int64(q, 2, kind);
    sqlite3_bind_int64(q, 3, (sqlite3_int64)version);
    return read_one(arena, q, cluster, row);
}

int pl__api_store_oldest(struct pl_store *s, struct pl_arena *arena, int64_t cluster, int64_t kind,
                         uint64_t after, struct pl_store_row *row)
{
    return read_after(s, Q_OLDEST, arena, cluster, kind, after, row);
}

int64_t pl__api_store_list_count(struct pl_store *s, const struct pl_store_list *list)
{
    sqlite3_stmt *q = s->queries[list->ns.len ? Q_COUNT_NS : Q_COUNT_ALL];
    int64_t count = -1;

    bind_list(q, list);
    if (sqlite3_step(q) == SQLITE_ROW)
        count = sqlite3_column_int64(q, 0);
    end(q);
    return count;
}

int pl__api_store_next(struct pl_store *s, struct pl_arena *arena, int64_t cluster, int64_t kind,
                       uint64_t version, struct pl_store_row *row)
{
    return read_after(s, Q_NEXT, arena, cluster, kind, version, row);
}

int pl__api_store_find_uid(struct pl_store *s, struct pl_arena *arena, int64_t cluster,
                           struct pl_str uid, struct pl_store_key *key)
{
    sqlite3_stmt *q = s->queries[Q_FIND_UID];
    struct pl_store_key found;

    sqlite3_bind_int64(q, 1, cluster);
    bind_str(q, 2, uid);
    return read_key(arena, q, cluster, key ? key : &found);
}

int pl__api_store_next_owned(struct pl_store *s, struct pl_arena *arena, int64_t cluster,
                             struct pl_str uid, const struct pl_store_key *after,
                             struct pl_store_key *key)
{
    sqlite3_stmt *q = s->queries[Q_OWNED];

    sqlite3_bind_int64(q, 1, cluster);
    bind_str(q, 2, uid);
    sqlite3_bind_int64(q, 3, after->kind);
    bind_str(q, 4, after->ns);
    bind_str(q, 5, after->name);
    return read_key(arena, q, cluster, key);
}

int pl__api_store_next_in_namespace(struct pl_store *s, struct pl_arena *arena, int64_t cluster,
                                    struct pl_str ns, const struct pl_store_key *after,
                                    struct pl_store_key *key)
{
    sqlite3_stmt *q = s->queries[Q_IN_NS];

    sqlite3_bind_int64(q, 1, cluster);
    bind_str(q, 2, ns);
    sqlite3_bind_int64(q, 3, after->kind);
    bind_str(q, 4, after->name);
    return read_key(arena, q, cluster, key);
}

/* --- the collector's queue ----------------------------------------------------------------------- */

static int change_work(struct pl_store *s, enum query query, int64_t cluster, struct pl_str uid)
{
    sqlite3_stmt *q = s->queries[query];

    assert(s->open);
    sqlite3_bind_int64(q, 1, cluster);
    bind_str(q, 2, uid);
    return run(q);
}

int pl__api_store_work_add(struct pl_store *s, int64_t cluster, struct pl_str uid)
{
    return change_work(s, Q_WORK_ADD, cluster, uid);
}

int pl__api_store_work_done(struct pl_store *s, int64_t cluster, struct pl_str uid)
{
    return change_work(s, Q_WORK_DONE, cluster, uid);
}

int pl__api_store_next_work(struct pl_store *s, struct pl_arena *arena, int64_t after,
                            struct pl_store_work *work)
{
    sqlite3_stmt *q = s->queries[Q_WORK];

    sqlite3_bind_int64(q, 1, after);
    int code = sqlite3_step(q);
    if (code == SQLITE_ROW)
        *work = (struct pl_store_work){ .place = sqlite3_column_int64(q, 0),
                                        .cluster = sqlite3_column_int64(q, 1),
                                        .uid = column_str(arena, q, 2) };
    end(q);
    return code == SQLITE_ROW ? 1 : code == SQLITE_DONE ? 0 : -1;
}

/* --- compaction ---------------------------------------------------------------------------------- */

static int forget(struct pl_store *s, int64_t version)
{
    sqlite3_stmt *q = s->queries[Q_FORGET];

    sqlite3_bind_int64(q, 1, version);
    return run(q);
}

/* Walks the revisions in order: each makes the one before it superfluous, and a deletion itself. */
static int compact_portion(struct pl_store *s, uint64_t version, int max, uint64_t *reached)
{
    sqlite3_stmt *q = s->queries[Q_SUPERSEDERS], *meta = s->queries[Q_META_PUT];
    int code, count = 0, failed = 0;

    sqlite3_bind_int64(q, 1, (sqlite3_int64)s->compacted);
    sqlite3_bind_int64(q, 2, (sqlite3_int64)version);
    sqlite3_bind_int(q, 3, max);
    while ((code = sqlite3_step(q)) == SQLITE_ROW && count < max) {
        int64_t at = sqlite3_column_int64(q, 0), previous = sqlite3_column_int64(q, 1);
        bool deleted = sqlite3_column_int(q, 2) != 0;
        failed = (previous ? forget(s, previous) : 0) | (deleted ? forget(s, at) : 0);
        if (failed)
            break;
        *reached = (uint64_t)at;
        count++;
    }
    end(q);
    if (failed || (code != SQLITE_DONE && code != SQLITE_ROW))
        return -1;
    if (count < max)
        *reached = version;
    bind_str(meta, 1, PL_STR("compacted"));
    sqlite3_bind_int64(meta, 2, (sqlite3_int64)*reached);
    return run(meta) < 0 ? -1 : count == max;
}

int pl__api_store_compact(struct pl_store *s, uint64_t version, int max)
{
    uint64_t reached = s->compacted;

    if (version <= s->compacted)
        return 0;
    if (pl__api_store_begin(s) < 0)
        return -1;
    int more = compact_portion(s, version, max, &reached);
    if (more < 0 || pl__api_store_commit(s) < 0) {
        pl__api_store_rollback(s);
        return -1;
    }
    s->compacted = reached;
    return more;
}
