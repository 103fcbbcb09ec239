#include "apiserver/internal.h"

#include "base/time.h"

/* One step does a portion; what remains is done in the next, which is then due at once. */
enum {
    WORK_MAX = 64,
    DEPENDENTS_MAX = 64,
    EVENTS_MAX = 256,
    COMPACT_MAX = 2000,
    EXPIRY_MS = 60 * 1000,
};

enum outcome {
    WORK_DONE,
    WORK_PROGRESS, /* something was done; look again */
    WORK_WAITS,    /* for others */
    WORK_FAILED,
};

/* A request that nobody made. */
static struct call call_for(struct pl_apiserver *s, const struct pl_store_key *key, int64_t now_ms)
{
    static const struct pl_api_request nobody = { .user_agent =
                                                      PL_STR_INIT("kube-controller-manager/") };
    const struct pl_kind *kind = pl__kind_of_id(s, key->kind);
    struct pl_api_answer *answer = PL_NEW(&s->scratch, struct pl_api_answer, 1);

    return (struct call){
        .s = s,
        .request = &nobody,
        .answer = answer,
        .arena = &s->scratch,
        .now_ms = now_ms,
        .cluster = pl__cluster_of_id(s, key->cluster),
        .shown = kind,
        .kind = kind,
        .ns = key->ns,
        .name = key->name,
    };
}

/* The object at a key: 1, 0 (also for a kind that we do not know), -1. */
static int load(struct pl_apiserver *s, const struct pl_store_key *key, struct pl_store_row *row,
                struct pl_tree **object)
{
    const struct pl_kind *kind = pl__kind_of_id(s, key->kind);
    int found = kind ? pl__api_store_get(s->store, &s->scratch, key, row) : 0;

    if (found <= 0)
        return found;
    *object = pl__read_row(&s->scratch, kind, row);
    return 1;
}

static bool remove_item(struct pl_tree *list, const char *key, struct pl_str value)
{
    size_t index = 0;

    for (const struct pl_tree *i = list ? list->first : NULL; i; i = i->next, index++) {
        struct pl_str text = key ? pl__tree_get_str(i, key) : i->text;
        if (!pl__str_equal(text, value))
            continue;
        pl__tree_take(list, index);
        return true;
    }
    return false;
}

static int remove_finalizer(struct pl_apiserver *s, const struct pl_store_key *key,
                            const char *path, const char *name, int64_t now_ms)
{
    struct call c = call_for(s, key, now_ms);
    struct pl_store_row row;
    struct pl_tree *object;
    int found = load(s, key, &row, &object);

    if (found <= 0)
        return found;
    struct pl_tree *list = pl__tree_at(object, path);
    if (!remove_item(list, NULL, pl__str(name)))
        return 0;
    return pl__write_store(&c, &row, object);
}

/* --- dependents ---------------------------------------------------------------------------------- */

enum treatment {
    TREAT_COLLECT, /* the owner is gone: those that have no other owner are deleted */
    TREAT_DELETE,  /* the owner waits until its dependents are gone */
    TREAT_ORPHAN,  /* they stay */
};

/* Another owner that is there, and is not itself waiting for its dependents to end. */
static int has_other_owner(struct pl_apiserver *s, int64_t cluster, const struct pl_tree *object,
                           struct pl_str uid)
{
    const struct pl_tree *owners = pl__tree_at(object, "metadata.ownerReferences");
    struct pl_store_key key;
    struct pl_store_row row;
    struct pl_tree *owner;

    for (const struct pl_tree *o = owners ? owners->first : NULL; o; o = o->next) {
        struct pl_str other = pl__tree_get_str(o, "uid");
        if (pl__str_equal(other, uid))
            continue;
        int found = pl__api_store_find_uid(s->store, &s->scratch, cluster, other, &key);
        if (found > 0)
            found = load(s, &key, &row, &owner);
        if (found < 0)
            return -1;
        if (found && !pl__tree_at(owner, "metadata.deletionTimestamp"))
            return 1;
    }
    return 0;
}

static int drop_owner(struct call *c, const struct pl_store_row *row, struct pl_tree *object,
                      struct pl_str uid)
{
    struct pl_tree *metadata = pl__tree_get(object, PL_STR("metadata"));
    struct pl_tree *owners = pl__tree_get(metadata, PL_STR("ownerReferences"));

    remove_item(owners, "uid", uid);
    if (!owners->first)
        pl__tree_remove(metadata, PL_STR("ownerReferences"));
    return pl__write_store(c, row, object);
}

/* 1: something was written; 0: it is on its way already; -1. `*blocks` when the owner has to wait for it. */
static int treat(struct pl_apiserver *s, const struct pl_store_key *key, struct pl_str uid,
                 enum treatment treatment, int64_t now_ms, bool *blocks)
{
    struct call c = call_for(s, key, now_ms);
    struct pl_store_row row;
    struct pl_tree *object;
    int found = load(s, key, &row, &object);

    if (found <= 0)
        return found;
    const struct pl_tree *owners = pl__tree_at(object, "metadata.ownerReferences");
    for (const struct pl_tree *o = owners ? owners->first : NULL; o; o = o->next)
        if (pl__str_equal(pl__tree_get_str(o, "uid"), uid))
            *blocks |= pl__tree_get_true(o, "blockOwnerDeletion");
    int other = treatment == TREAT_ORPHAN ? 1 : has_other_owner(s, key->cluster, object, uid);
    if (other < 0)
        return -1;
    if (other)
        return drop_owner(&c, &row, object, uid) < 0 ? -1 : 1;
    if (pl__tree_at(object, "metadata.deletionTimestamp"))
        return 0;
    return pl__write_delete_background(&c, &row) < 0 ? -1 : 1;
}

static enum outcome treat_all(struct pl_apiserver *s, const struct pl_store_work *work,
                              enum treatment treatment, int64_t now_ms, bool *blocked)
{
    struct pl_store_key *keys = PL_NEW(&s->scratch, struct pl_store_key, DEPENDENTS_MAX);
    int count =
        pl__api_store_owned(s->store, &s->scratch, work->cluster, work->uid, keys, DEPENDENTS_MAX);
    bool progress = false;

    *blocked = false;
    for (int i = 0; i < count; i++) {
        int done = treat(s, &keys[i], work->uid, treatment, now_ms, blocked);
        if (done < 0)
            return WORK_FAILED;
        progress |= done > 0;
    }
    return count < 0 ? WORK_FAILED : progress ? WORK_PROGRESS : WORK_DONE;
}

/* --- what waits ---------------------------------------------------------------------------------- */

static enum outcome end_namespace(struct pl_apiserver *s, const struct pl_store_key *key,
                                  int64_t now_ms)
{
    struct pl_store_key *keys = PL_NEW(&s->scratch, struct pl_store_key, DEPENDENTS_MAX);
    int count = pl__api_store_in_namespace(s->store, &s->scratch, key->cluster, key->name, keys,
                                           DEPENDENTS_MAX);
    bool progress = false;

    for (int i = 0; i < count; i++) {
        struct call c = call_for(s, &keys[i], now_ms);
        struct pl_store_row row;
        struct pl_tree *object;
        int found = load(s, &keys[i], &row, &object);
        if (found < 0)
            return WORK_FAILED;
        if (!found || pl__tree_at(object, "metadata.deletionTimestamp"))
            continue;
        if (pl__write_delete_background(&c, &row) < 0)
            return WORK_FAILED;
        progress = true;
    }
    if (count)
        return count < 0 ? WORK_FAILED : progress ? WORK_PROGRESS : WORK_WAITS;
    if (remove_finalizer(s, key, "spec.finalizers", "kubernetes", now_ms) < 0)
        return WORK_FAILED;
    return WORK_DONE;
}

static enum outcome end_owner(struct pl_apiserver *s, const struct pl_store_work *work,
                              const struct pl_store_key *key, const struct pl_tree *object,
                              int64_t now_ms)
{
    bool orphan = pl__has_finalizer(object, "orphan");
    bool blocked;

    if (!orphan && !pl__has_finalizer(object, "foregroundDeletion"))
        return WORK_DONE;
    enum outcome outcome =
        treat_all(s, work, orphan ? TREAT_ORPHAN : TREAT_DELETE, now_ms, &blocked);
    if (outcome != WORK_DONE)
        return outcome;
    if (blocked)
        return WORK_WAITS;
    if (remove_finalizer(s, key, "metadata.finalizers", orphan ? "orphan" : "foregroundDeletion",
                         now_ms) < 0)
        return WORK_FAILED;
    return WORK_DONE;
}

static enum outcome do_work(struct pl_apiserver *s, const struct pl_store_work *work,
                            int64_t now_ms)
{
    struct pl_store_key key;
    struct pl_store_row row;
    struct pl_tree *object;
    bool blocked;
    int found = pl__api_store_find_uid(s->store, &s->scratch, work->cluster, work->uid, &key);

    if (found > 0)
        found = load(s, &key, &row, &object);
    if (found < 0)
        return WORK_FAILED;
    if (found == 0)
        return treat_all(s, work, TREAT_COLLECT, now_ms, &blocked);
    if (!pl__tree_at(object, "metadata.deletionTimestamp"))
        return WORK_DONE;
    const struct pl_kind *kind = pl__kind_of_id(s, key.kind);
    if (pl__kind_is_core(kind, "namespaces"))
        return end_namespace(s, &key, now_ms);
    return end_owner(s, work, &key, object, now_ms);
}

/* Takes it off the queue, or (when others may be behind it that are not seen) to its end. */
static void finish(struct pl_apiserver *s, const struct pl_store_work *work, bool again)
{
    if (pl__api_store_begin(s->store) < 0)
        return;
    if (pl__api_store_work_done(s->store, work->cluster, work->uid) < 0 ||
        (again && pl__api_store_work_add(s->store, work->cluster, work->uid) < 0) ||
        pl__api_store_commit(s->store) < 0)
        pl__api_store_rollback(s->store);
}

static void collect(struct pl_apiserver *s, int64_t now_ms)
{
    struct pl_arena
        names; /* the queue outlives what each piece of work leaves in the scratch memory */
    struct pl_store_work work[WORK_MAX];

    if (!s->work)
        return;
    pl__arena_init(&names, NULL, 0);
    int count = pl__api_store_work(s->store, &names, work, WORK_MAX);
    s->work = false;
    for (int i = 0; i < count; i++) {
        enum outcome outcome =
            pl__cluster_of_id(s, work[i].cluster) ? do_work(s, &work[i], now_ms) : WORK_DONE;
        if (outcome == WORK_DONE || count == WORK_MAX)
            finish(s, &work[i], outcome != WORK_DONE);
        s->work |= outcome == WORK_PROGRESS || (outcome == WORK_DONE && count == WORK_MAX);
        pl__arena_reset(&s->scratch);
    }
    pl__arena_release(&names);
}

/* --- Events, history ----------------------------------------------------------------------------- */

static void expire_in(struct pl_apiserver *s, const struct pl_cluster *cluster, int64_t kind,
                      int64_t before_ms, int64_t now_ms)
{
    struct pl_store_list list = { .cluster = cluster->id, .kind = kind };
    struct pl_store_row *rows = PL_NEW(&s->scratch, struct pl_store_row, EVENTS_MAX);
    int count = pl__api_store_list(s->store, &s->scratch, &list, rows, EVENTS_MAX);

    for (int i = 0; i < count; i++) {
        struct call c = call_for(s, &rows[i].key, now_ms);
        struct pl_tree *object = pl__read_row(&s->scratch, c.kind, &rows[i]);
        int64_t made;
        if (pl__time_parse(pl__tree_get_str(object, "metadata.creationTimestamp"), &made) &&
            made < before_ms)
            pl__write_remove(&c, &rows[i], object);
    }
    pl__arena_reset(&s->scratch);
}

static void expire_events(struct pl_apiserver *s, int64_t now_ms)
{
    const struct pl_kind *events = pl__kind_by_plural(PL_STR(""), PL_STR("v1"), PL_STR("events"));

    if (now_ms < s->next_expiry_ms || !events)
        return;
    s->next_expiry_ms = now_ms + EXPIRY_MS;
    for (size_t i = 0; i < s->cluster_count; i++)
        expire_in(s, s->clusters[i], pl__kind_id(s, events), now_ms - s->options.event_ttl_s * 1000,
                  now_ms);
}

/* Starts when there is half as much again as is promised, so that it is worth its while. */
static void compact(struct pl_apiserver *s)
{
    uint64_t newest = pl__api_store_version(s->store), kept = s->options.history_max;
    uint64_t behind = newest - pl__api_store_compacted(s->store);

    if (!s->compacting && behind < kept + kept / 2)
        return;
    s->compacting =
        behind > kept && pl__api_store_compact(s->store, newest - kept, COMPACT_MAX) == 1;
}

void pl__collect_step(struct pl_apiserver *s, int64_t now_ms)
{
    collect(s, now_ms);
    expire_events(s, now_ms);
    compact(s);
}
