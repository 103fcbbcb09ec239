#include "apiserver/internal.h"

#include "base/time.h"

/* One step does a portion; what remains is done in the next, which is then due at once. */
enum {
    LOOKS_MAX = 256,
    EVENTS_MAX = 256,
    COMPACT_MAX = 2000,
    EXPIRY_MS = 60 * 1000,
    RETRY_MS = 1000,
};

enum outcome {
    WORK_DONE,
    WORK_PROGRESS,   /* something was done; look again */
    WORK_WAITS,      /* for others */
    WORK_UNFINISHED, /* the step has looked at enough; the next goes on from there */
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

/* 1: it was there; 0; -1. */
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
    return pl__write_store(&c, &row, object) < 0 ? -1 : 1;
}

/* --- dependents ---------------------------------------------------------------------------------- */

enum treatment {
    TREAT_COLLECT, /* the owner is gone: those that have no other owner are deleted */
    TREAT_DELETE,  /* the owner waits until its dependents are gone */
    TREAT_ORPHAN,  /* they stay */
    TREAT_CONTENT, /* no dependents: all that is in the namespace */
};

/* Another owner that is there, and is not itself waiting for its dependents to end. One that is being deleted in
 * the background still is an owner. */
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
        if (found && !(pl__tree_at(owner, "metadata.deletionTimestamp") &&
                       pl__has_finalizer(owner, "foregroundDeletion")))
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

/* One entry of the queue, and how it is dealt with in this step. What came of the objects before
 * s->collector.after is noted beside that: something was written (look at all of them again), some have to
 * be waited for, some could not be written. */
struct piece {
    struct pl_apiserver *s;
    struct pl_arena *arena; /* lives as long as this does, unlike the scratch memory */
    struct pl_store_work work;
    struct pl_store_key key; /* of the object with that uid, if there is one */
    enum treatment treatment;
    int64_t now_ms;
    int *looks_left;
};

/* 1: something was written; 0: it is on its way already; -1. */
static int treat(struct piece *p, const struct pl_store_key *key)
{
    struct pl_apiserver *s = p->s;
    struct call c = call_for(s, key, p->now_ms);
    struct pl_store_row row;
    struct pl_tree *object;
    int found = load(s, key, &row, &object);

    if (found <= 0)
        return found;
    const struct pl_tree *owners = pl__tree_at(object, "metadata.ownerReferences");
    for (const struct pl_tree *o = owners ? owners->first : NULL; o; o = o->next)
        if (pl__str_equal(pl__tree_get_str(o, "uid"), p->work.uid))
            s->collector.waits |= pl__tree_get_true(o, "blockOwnerDeletion");
    int other =
        p->treatment == TREAT_ORPHAN ? 1 : has_other_owner(s, key->cluster, object, p->work.uid);
    if (other < 0)
        return -1;
    if (other)
        return drop_owner(&c, &row, object, p->work.uid) < 0 ? -1 : 1;
    if (pl__tree_at(object, "metadata.deletionTimestamp"))
        return 0;
    return pl__write_delete_background(&c, &row) < 0 ? -1 : 1;
}

/* The same of an object in a namespace that ends. The namespace waits for whatever is there. */
static int treat_content(struct piece *p, const struct pl_store_key *key)
{
    struct call c = call_for(p->s, key, p->now_ms);
    struct pl_store_row row;
    struct pl_tree *object;
    int found = load(p->s, key, &row, &object);

    p->s->collector.waits = true;
    if (found <= 0)
        return found;
    if (pl__tree_at(object, "metadata.deletionTimestamp"))
        return 0;
    return pl__write_delete_background(&c, &row) < 0 ? -1 : 1;
}

static int next_object(struct piece *p, struct pl_store_key *key)
{
    const struct pl_store_key *after = &p->s->collector.after;
    int64_t cluster = p->work.cluster;

    return p->treatment == TREAT_CONTENT
               ? pl__api_store_next_in_namespace(p->s->store, &p->s->scratch, cluster, p->key.name,
                                                 after, key)
               : pl__api_store_next_owned(p->s->store, &p->s->scratch, cluster, p->work.uid, after,
                                          key);
}

/* All objects that the piece of work is about, from where the last step ended. DONE: there is nothing to do for any
 * of them any more. One that fails does not keep the others from their turn. */
static enum outcome treat_all(struct piece *p)
{
    struct pl_collector *at = &p->s->collector;
    struct pl_store_key key;
    int found;

    while (*p->looks_left > 0) {
        found = next_object(p, &key);
        if (found <= 0)
            return found < 0 || at->stuck ? WORK_FAILED : at->wrote ? WORK_PROGRESS : WORK_DONE;
        int done = p->treatment == TREAT_CONTENT ? treat_content(p, &key) : treat(p, &key);
        at->wrote |= done > 0;
        at->stuck |= done < 0;
        pl__arena_reset(&at->names);
        at->after = (struct pl_store_key){ .kind = key.kind,
                                           .ns = pl__str_copy(&at->names, key.ns),
                                           .name = pl__str_copy(&at->names, key.name) };
        pl__scratch_reset(p->s);
        (*p->looks_left)--;
    }
    return WORK_UNFINISHED;
}

/* --- what waits ---------------------------------------------------------------------------------- */

/* When nothing is left to wait for, the finalizer goes. The entry stays in the queue for one more look: what came to
 * be meanwhile is found then. */
static enum outcome treat_and_end(struct piece *p, enum treatment treatment, const char *path,
                                  const char *finalizer)
{
    p->treatment = treatment;
    enum outcome outcome = treat_all(p);
    if (outcome != WORK_DONE)
        return outcome;
    if (p->s->collector.waits)
        return WORK_WAITS;
    int removed = remove_finalizer(p->s, &p->key, path, finalizer, p->now_ms);
    return removed < 0 ? WORK_FAILED : removed ? WORK_PROGRESS : WORK_DONE;
}

static enum outcome do_work(struct piece *p)
{
    struct pl_apiserver *s = p->s;
    struct pl_store_row row;
    struct pl_tree *object;
    int found = pl__api_store_find_uid(s->store, p->arena, p->work.cluster, p->work.uid, &p->key);

    if (found > 0)
        found = load(s, &p->key, &row, &object);
    if (found < 0)
        return WORK_FAILED;
    if (found == 0) {
        p->treatment = TREAT_COLLECT;
        return treat_all(p);
    }
    if (!pl__tree_at(object, "metadata.deletionTimestamp"))
        return WORK_DONE;
    if (pl__kind_is_core(pl__kind_of_id(s, p->key.kind), "namespaces"))
        return treat_and_end(p, TREAT_CONTENT, "spec.finalizers", "kubernetes");
    if (pl__has_finalizer(object, "orphan"))
        return treat_and_end(p, TREAT_ORPHAN, "metadata.finalizers", "orphan");
    if (pl__has_finalizer(object, "foregroundDeletion"))
        return treat_and_end(p, TREAT_DELETE, "metadata.finalizers", "foregroundDeletion");
    return WORK_DONE;
}

/* Takes it off the queue. */
static int finish(struct pl_apiserver *s, const struct pl_store_work *work)
{
    if (pl__api_store_begin(s->store) < 0)
        return -1;
    if (pl__api_store_work_done(s->store, work->cluster, work->uid) == 0 &&
        pl__api_store_commit(s->store) == 0)
        return 0;
    pl__api_store_rollback(s->store);
    return -1;
}

/* The next entry is looked at from its first object on. */
static void begin_entry(struct pl_collector *at, int64_t place)
{
    at->place = place;
    at->after = (struct pl_store_key){ 0 };
    at->wrote = at->waits = at->stuck = false;
}

/* Everything that waits was looked at, and what could not be done is tried again later. */
static void end_pass(struct pl_apiserver *s, int64_t now_ms)
{
    struct pl_collector *at = &s->collector;

    if (at->failed) {
        s->work = true;
        at->retry_at_ms = now_ms + RETRY_MS;
    }
    at->passing = at->failed = false;
}

/* What waits for others stays where it is in the queue: only a pass that goes over all of it sees what is
 * behind. Passes go on as long as there are writes in them, or elsewhere, that may matter. */
static void collect(struct pl_apiserver *s, int64_t now_ms)
{
    struct pl_collector *at = &s->collector;
    int found = 1, looks_left = LOOKS_MAX;
    struct pl_arena arena;

    if (!s->work && !at->passing)
        return;
    if (!at->passing) {
        s->work = false;
        at->passing = true;
        begin_entry(at, 0);
    }
    pl__arena_init(&arena, NULL, 0);
    while (looks_left-- > 0) {
        struct piece p = { .s = s, .arena = &arena, .now_ms = now_ms, .looks_left = &looks_left };
        found = pl__api_store_next_work(s->store, &arena, at->place, &p.work);
        if (found <= 0)
            break;
        enum outcome outcome = pl__cluster_of_id(s, p.work.cluster) ? do_work(&p) : WORK_DONE;
        pl__scratch_reset(s);
        if (outcome == WORK_UNFINISHED)
            break;
        if (outcome == WORK_DONE && finish(s, &p.work) < 0)
            outcome = WORK_FAILED;
        s->work |= outcome == WORK_PROGRESS;
        at->failed |= outcome == WORK_FAILED;
        begin_entry(at, p.work.place);
        pl__arena_reset(&arena);
    }
    pl__arena_release(&arena);
    at->failed |= found < 0;
    if (found <= 0)
        end_pass(s, now_ms);
}

void pl__collect_restart(struct pl_apiserver *s)
{
    s->collector.passing = false;
    s->work = true;
}

/* --- Events, history ----------------------------------------------------------------------------- */

/* As in a real server the time that an Event has starts anew with each change. */
static int64_t written_ms(const struct pl_tree *object)
{
    const struct pl_tree *managed = pl__tree_at(object, "metadata.managedFields");
    int64_t newest = 0, time;

    if (pl__time_parse(pl__tree_get_str(object, "metadata.creationTimestamp"), &time))
        newest = time;
    for (const struct pl_tree *m = managed ? managed->first : NULL; m; m = m->next)
        if (pl__time_parse(pl__tree_get_str(m, "time"), &time) && time > newest)
            newest = time;
    return newest;
}

/* Removes the Event of a cluster that was written first: 1; 0 when it is young enough, and so are all behind it; -1. */
static int expire_one(struct pl_apiserver *s, const struct pl_cluster *cluster, int64_t kind,
                      int64_t now_ms)
{
    struct pl_store_row row;
    int found = pl__api_store_oldest(s->store, &s->scratch, cluster->id, kind,
                                     s->collector.expiry_after, &row);

    if (found <= 0)
        return found;
    struct call c = call_for(s, &row.key, now_ms);
    struct pl_tree *object = pl__read_row(&s->scratch, c.kind, &row);
    if (written_ms(object) >= now_ms - s->options.event_ttl_s * 1000)
        return 0;
    if (pl__write_remove(&c, &row, object) < 0)
        return -1;
    s->collector.expiry_after = row.version;
    return 1;
}

static void expire_events(struct pl_apiserver *s, int64_t now_ms)
{
    const struct pl_kind *events = pl__kind_by_plural(PL_STR(""), PL_STR("v1"), PL_STR("events"));
    struct pl_collector *at = &s->collector;

    if (now_ms < s->next_expiry_ms || !events)
        return;
    for (int i = 0; i < EVENTS_MAX && at->expiry_cluster < s->cluster_count; i++) {
        int removed =
            expire_one(s, s->clusters[at->expiry_cluster], pl__kind_id(s, events), now_ms);
        pl__scratch_reset(s);
        if (removed < 0) {
            at->retry_at_ms = now_ms + RETRY_MS;
            return;
        }
        if (removed == 0) {
            at->expiry_cluster++;
            at->expiry_after = 0;
        }
    }
    if (at->expiry_cluster < s->cluster_count)
        return; /* due at once, still */
    at->expiry_cluster = 0;
    s->next_expiry_ms = now_ms + EXPIRY_MS;
}

/* Starts when there is half as much again as is promised, so that it is worth its while. */
static bool is_history_long(const struct pl_apiserver *s)
{
    uint64_t kept = s->options.history_max;

    return pl__api_store_version(s->store) - pl__api_store_compacted(s->store) >= kept + kept / 2;
}

static void compact(struct pl_apiserver *s, int64_t now_ms)
{
    uint64_t newest = pl__api_store_version(s->store), kept = s->options.history_max;

    if (!s->compacting && !is_history_long(s))
        return;
    int more = newest - pl__api_store_compacted(s->store) > kept
                   ? pl__api_store_compact(s->store, newest - kept, COMPACT_MAX)
                   : 0;
    s->compacting = more > 0;
    if (more < 0)
        s->collector.retry_at_ms = now_ms + RETRY_MS;
}

void pl__collect_step(struct pl_apiserver *s, int64_t now_ms)
{
    if (now_ms < s->collector.retry_at_ms)
        return;
    collect(s, now_ms);
    expire_events(s, now_ms);
    compact(s, now_ms);
}

int64_t pl__collect_wake_at_ms(const struct pl_apiserver *s)
{
    bool now = s->work || s->collector.passing || s->compacting || is_history_long(s);
    int64_t due = now ? 0 : s->next_expiry_ms;

    return due > s->collector.retry_at_ms ? due : s->collector.retry_at_ms;
}
