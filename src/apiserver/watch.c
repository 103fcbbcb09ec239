#include "apiserver/internal.h"

#include <assert.h>
#include <stdlib.h>

#include "apiserver/shape.h"

enum {
    PORTION = 32,               /* objects of the initial list that are read in one go */
    PORTION_FIRST = 4,          /* until it is known how large they are */
    PORTION_BYTES = 256 * 1024, /* and an object: all that a client costs that does not read */
    SKIPS_MAX = 256,        /* objects or revisions of no concern, before others get their turn */
    SKIP_BYTES = 16 * 1024, /* of one revision; a larger one counts more than once */
    OWN_ARENA_BYTES = 512,
    STEP_MS = 100,
};

enum phase {
    PHASE_INITIAL, /* what is there, as ADDED */
    PHASE_SYNCED,  /* the bookmark that says so is due */
    PHASE_LIVE,
    PHASE_OVER, /* nothing comes any more; what is queued may still be read */
};

struct pl_api_watch {
    struct pl_apiserver *s;
    struct pl_cluster *cluster; /* NULL: the server or the cluster is gone */
    struct pl_api_watch *next, **link;
    const struct pl_kind *shown;
    int64_t kind;
    struct pl_arena own; /* what the fields below point at */
    struct pl_str ns;
    struct selector labels, fields;
    struct pl_str include_object;
    enum pl_form form;
    bool columns_sent;
    bool bookmarks;
    bool sync_bookmark;
    enum phase phase;
    struct pl_store_list initial;
    struct pl_arena place; /* where the initial list goes on: the names */
    int portion;           /* of the initial list, in objects */
    uint64_t cursor;       /* all up to here was told, or is of no concern */
    bool caught_up;        /* nothing of its kind is behind the cursor */
    bool unfinished;       /* others got their turn: it is woken in the next step */
    int64_t end_at_ms;     /* timeoutSeconds */
    int64_t bookmark_at_ms;
    struct pl_api_watch_owner owner;
    struct pl_bytequeue pending; /* one portion, read in part */
};

/* --- opening ------------------------------------------------------------------------------------- */

static int refuse(struct call *c, const char *field, const char *why)
{
    struct faults f = { 0 };

    pl__fault(c, &f, "FieldValueForbidden", pl__str(field), "Forbidden: %s", why);
    return pl__fail_options(c, "ListOptions", &f);
}

static int check_options(struct call *c, uint64_t *version)
{
    const struct params *p = &c->params;

    if (p->has_initial_events && p->version_match.len == 0)
        return refuse(c, "resourceVersionMatch",
                      "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
    if (p->version_match.len && !p->has_initial_events)
        return refuse(c, "resourceVersionMatch",
                      "resourceVersionMatch is forbidden for watch unless sendInitialEvents is "
                      "provided");
    if (p->version_match.len && !pl__str_equal(p->version_match, PL_STR("NotOlderThan")))
        return refuse(c, "resourceVersionMatch",
                      "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
    if (pl__read_version(c, version) < 0)
        return -1;
    if (p->initial_events && *version > pl__api_store_version(c->s->store))
        return pl__fail_too_large_version(c, *version);
    if (c->s->watch_count >= PL_API_WATCHES_MAX) {
        c->answer->retry_after_s = 1;
        return pl__fail_status(c, 429, "TooManyRequests",
                               "too many watches, please try again later");
    }
    return 0;
}

static void choose_start(struct call *c, struct pl_api_watch *w, uint64_t version)
{
    const struct params *p = &c->params;
    uint64_t newest = pl__api_store_version(c->s->store);
    bool listed = p->has_initial_events ? p->initial_events : version == 0;

    w->initial = (struct pl_store_list){
        .cluster = c->cluster->id, .kind = w->kind, .ns = w->ns, .at = newest
    };
    w->phase = listed ? PHASE_INITIAL : PHASE_LIVE;
    w->cursor = listed || version == 0 ? newest : version;
    if (w->cursor > INT64_MAX) /* beyond what the store can count to: nothing ever comes */
        w->cursor = INT64_MAX;
    w->sync_bookmark = listed && p->bookmarks;
}

int pl__watch_open(struct call *c)
{
    struct pl_apiserver *s = c->s;
    const struct params *p = &c->params;
    uint64_t version = 0;

    if (check_options(c, &version) < 0)
        return -1;
    struct pl_api_watch *w = calloc(1, sizeof *w);
    assert(w);
    pl__arena_init(&w->own, NULL, OWN_ARENA_BYTES);
    pl__arena_init(&w->place, NULL, OWN_ARENA_BYTES);
    w->portion = PORTION_FIRST;
    pl__bytequeue_init(&w->pending, SIZE_MAX / 2);
    w->s = s;
    w->cluster = c->cluster;
    w->shown = c->shown;
    w->kind = pl__kind_id(s, c->shown);
    w->ns = pl__str_copy(&w->own, c->ns);
    w->labels = pl__selector_copy(&w->own, &p->labels);
    w->fields = pl__selector_copy(&w->own, &p->fields);
    w->include_object = pl__str_copy(&w->own, p->include_object);
    w->form = c->form;
    w->bookmarks = p->bookmarks;
    choose_start(c, w, version);
    int64_t timeout_ms = p->has_timeout && p->timeout_s
                             ? (int64_t)(p->timeout_s > 86400 ? 86400 : p->timeout_s) * 1000
                             : (int64_t)(1800 + pl__api_random(s) % 1800) * 1000;
    w->end_at_ms = c->now_ms + timeout_ms;
    w->bookmark_at_ms = c->now_ms + s->options.bookmark_ms;
    w->next = c->cluster->watches;
    w->link = &c->cluster->watches;
    if (w->next)
        w->next->link = &w->next;
    c->cluster->watches = w;
    s->watch_count++;
    int64_t due =
        w->bookmarks && w->bookmark_at_ms < w->end_at_ms ? w->bookmark_at_ms : w->end_at_ms;
    s->next_watch_ms = due < s->next_watch_ms ? due : s->next_watch_ms;
    c->answer->status = 200;
    c->answer->content_type = PL_STR("application/json");
    c->answer->watch = w;
    return 0;
}

void pl_api_watch_own(struct pl_api_watch *w, struct pl_api_watch_owner owner)
{
    w->owner = owner;
}

static void detach(struct pl_api_watch *w)
{
    if (!w->cluster)
        return;
    *w->link = w->next;
    if (w->next)
        w->next->link = w->link;
    w->cluster = NULL;
    w->phase = PHASE_OVER;
    w->s->watch_count--;
}

void pl_api_watch_close(struct pl_api_watch *w)
{
    if (!w)
        return;
    detach(w);
    pl__bytequeue_release(&w->pending);
    pl__arena_release(&w->own);
    pl__arena_release(&w->place);
    free(w);
}

static void wake(struct pl_api_watch *w)
{
    if (w->owner.wake)
        w->owner.wake(w->owner.context);
}

void pl__watch_end_all(struct pl_cluster *cluster)
{
    while (cluster->watches) {
        struct pl_api_watch *w = cluster->watches;
        detach(w);
        wake(w);
    }
}

/* --- events -------------------------------------------------------------------------------------- */

static void queue_text(struct pl_api_watch *w, const char *type, struct pl_str object)
{
    struct pl_buf b;

    pl__buf_init(&b, &w->s->scratch, SIZE_MAX / 2);
    pl__buf_printf(&b, "{\"type\":\"%s\",\"object\":", type);
    pl__buf_add(&b, object);
    pl__buf_add_lit(&b, "}\n");
    struct pl_str line = pl__buf_str(&b);
    pl__bytequeue_add(&w->pending, line.ptr, line.len);
}

static void queue_object(struct pl_api_watch *w, const char *type, struct pl_tree *object,
                         int64_t now_ms)
{
    struct pl_form_options options = { .form = w->form,
                                       .include_object = w->include_object,
                                       .no_columns = w->columns_sent,
                                       .now_ms = now_ms };

    if (w->form != PL_FORM_OBJECT)
        object = pl__form_render(&w->s->scratch, w->shown, &options, object);
    w->columns_sent = true;
    queue_text(w, type, pl__tree_text(&w->s->scratch, object));
}

/* Without any look inside where nothing asks for one. */
static bool is_plain(const struct pl_api_watch *w)
{
    return w->form == PL_FORM_OBJECT && !w->shown->stored_as;
}

static void queue_row(struct pl_api_watch *w, const char *type, const struct pl_store_row *row,
                      struct pl_tree *object, int64_t now_ms)
{
    if (is_plain(w))
        queue_text(w, type, row->object);
    else
        queue_object(w, type, object ? object : pl__read_row(&w->s->scratch, w->shown, row),
                     now_ms);
}

static struct pl_tree *bookmark_of(struct pl_api_watch *w, uint64_t version, bool initial_end)
{
    struct pl_arena *a = &w->s->scratch;
    struct pl_tree *object =
        pl__shape_empty(a, w->shown->stored_as ? w->shown->stored_as : w->shown);

    pl__tree_set(object, PL_STR("kind"), pl__tree_str(a, pl__str(w->shown->kind)));
    pl__tree_set(object, PL_STR("apiVersion"), pl__tree_str(a, pl__kind_api_version(a, w->shown)));
    pl__meta_from_stored(a, w->shown, object);
    struct pl_tree *metadata = pl__tree_make(a, object, PL_STR("metadata"));
    pl__tree_set(metadata, PL_STR("resourceVersion"),
                 pl__tree_str(a, pl__str_format(a, "%llu", (unsigned long long)version)));
    if (initial_end)
        pl__tree_set(pl__tree_make(a, metadata, PL_STR("annotations")),
                     PL_STR("k8s.io/initial-events-end"), pl__tree_str(a, PL_STR("true")));
    return object;
}

static void queue_bookmark(struct pl_api_watch *w, int64_t now_ms, bool initial_end)
{
    queue_object(w, "BOOKMARK", bookmark_of(w, w->cursor, initial_end), now_ms);
    w->bookmark_at_ms = now_ms + w->s->options.bookmark_ms;
}

static void queue_error(struct pl_api_watch *w, int status, const char *reason, struct pl_str why)
{
    struct pl_arena *a = &w->s->scratch;

    queue_text(w, "ERROR", pl__tree_text(a, pl__status_failure(a, status, reason, why)));
    w->phase = PHASE_OVER;
}

static void queue_expired(struct pl_api_watch *w)
{
    queue_error(w, 410, "Expired",
                pl__str_format(&w->s->scratch, "too old resource version: %llu (%llu)",
                               (unsigned long long)w->cursor,
                               (unsigned long long)pl__api_store_compacted(w->s->store)));
}

static void queue_failure(struct pl_api_watch *w)
{
    queue_error(w, 500, "InternalError", pl__str(pl__api_store_failure(w->s->store)));
}

/* --- what comes next ----------------------------------------------------------------------------- */

static bool selects(const struct pl_api_watch *w)
{
    return w->labels.count || w->fields.count;
}

static bool matches(const struct pl_api_watch *w, const struct pl_tree *object)
{
    return pl__selector_matches(&w->labels, &w->fields, object);
}

/* Reads as many objects next time as are about PORTION_BYTES. */
static void portion_fit(struct pl_api_watch *w, const struct pl_store_row *rows, int count)
{
    size_t bytes = 1;

    for (int i = 0; i < count; i++)
        bytes += rows[i].object.len;
    size_t fit = (size_t)count * PORTION_BYTES / bytes;
    w->portion = fit < 1 ? 1 : fit < PORTION ? (int)fit : PORTION;
}

/* How many it has looked at. */
static int queue_initial(struct pl_api_watch *w, int64_t now_ms)
{
    struct pl_store_row *rows = PL_NEW(&w->s->scratch, struct pl_store_row, PORTION);

    if (w->initial.at < pl__api_store_compacted(w->s->store)) {
        queue_expired(w); /* so slow that what it was told is forgotten */
        return 0;
    }
    int count = pl__api_store_list(w->s->store, &w->s->scratch, &w->initial, rows, w->portion);
    if (count < 0) {
        queue_failure(w);
        return 0;
    }
    int used = 0;
    for (; used < count && w->pending.len < PORTION_BYTES; used++) {
        const struct pl_store_row *row = &rows[used];
        struct pl_tree *object = selects(w) ? pl__read_row(&w->s->scratch, w->shown, row) : NULL;
        if (!object || matches(w, object))
            queue_row(w, "ADDED", row, object, now_ms);
    }
    pl__arena_reset(&w->place);
    if (used == count && count < w->portion) {
        pl__arena_release(&w->place);
        w->phase = w->sync_bookmark ? PHASE_SYNCED : PHASE_LIVE;
        return count;
    }
    w->initial.after_ns = pl__str_copy(&w->place, rows[used - 1].key.ns);
    w->initial.after_name = pl__str_copy(&w->place, rows[used - 1].key.name);
    portion_fit(w, rows, count);
    return used;
}

/* Old content with the version of the revision that ended it. */
static void queue_left(struct pl_api_watch *w, struct pl_tree *before, uint64_t version,
                       int64_t now_ms)
{
    struct pl_arena *a = &w->s->scratch;

    pl__tree_set(pl__tree_make(a, before, PL_STR("metadata")), PL_STR("resourceVersion"),
                 pl__tree_str(a, pl__str_format(a, "%llu", (unsigned long long)version)));
    queue_object(w, "DELETED", before, now_ms);
}

static void queue_selected(struct pl_api_watch *w, const struct pl_store_row *row, int64_t now_ms)
{
    struct pl_arena *a = &w->s->scratch;
    struct pl_tree *object = pl__read_row(a, w->shown, row), *before = NULL;
    struct pl_store_row previous;

    if (row->previous && pl__api_store_revision(w->s->store, a, row->previous, &previous) == 1)
        before = pl__read_row(a, w->shown, &previous);
    bool matched = before && matches(w, before);
    bool match = !row->deleted && matches(w, object);
    if (match)
        queue_row(w, matched ? "MODIFIED" : "ADDED", row, object, now_ms);
    else if (matched && row->deleted)
        queue_row(w, "DELETED", row, object, now_ms);
    else if (matched)
        queue_left(w, before, row->version, now_ms);
}

static void queue_revision(struct pl_api_watch *w, const struct pl_store_row *row, int64_t now_ms)
{
    if (w->ns.len && !pl__str_equal(w->ns, row->key.ns))
        return;
    if (selects(w))
        queue_selected(w, row, now_ms);
    else
        queue_row(w,
                  row->deleted    ? "DELETED"
                  : row->previous ? "MODIFIED"
                                  : "ADDED",
                  row, NULL, now_ms);
}

/* How many it has looked at. */
static int queue_live(struct pl_api_watch *w, int skips_max, int64_t now_ms)
{
    struct pl_store *store = w->s->store;
    struct pl_store_row row;
    int looks = 0;

    while (looks < skips_max && !w->caught_up && !w->pending.len) {
        pl__scratch_reset(w->s); /* the one before was passed over: nothing of it is needed */
        if (w->cursor < pl__api_store_compacted(store)) {
            queue_expired(w);
            break;
        }
        int found =
            pl__api_store_next(store, &w->s->scratch, w->initial.cluster, w->kind, w->cursor, &row);
        if (found < 0) {
            queue_failure(w);
            break;
        }
        if (found == 0) {
            uint64_t newest = pl__api_store_version(store);
            w->caught_up = true;
            w->cursor = w->cursor < newest ? newest : w->cursor;
            break;
        }
        w->cursor = row.version;
        queue_revision(w, &row, now_ms);
        looks += 1 + (int)(row.object.len / SKIP_BYTES);
    }
    return looks;
}

/* A silent watch knows no newer version than that of the last thing it was told. */
static void queue_due(struct pl_api_watch *w, int64_t now_ms)
{
    uint64_t newest = pl__api_store_version(w->s->store);
    bool over = now_ms >= w->end_at_ms;

    if (w->bookmarks && w->caught_up && (over || now_ms >= w->bookmark_at_ms)) {
        w->cursor = w->cursor < newest ? newest : w->cursor;
        queue_bookmark(w, now_ms, false);
    }
    if (over)
        w->phase = PHASE_OVER;
}

/* Queues what comes next, if there is something. How many objects or revisions it has looked at, at most about
 * `looks_max`. */
static int fill(struct pl_api_watch *w, int looks_max, int64_t now_ms)
{
    int looks = 0;

    if (w->phase == PHASE_INITIAL) {
        looks = queue_initial(w, now_ms);
    } else if (w->phase == PHASE_SYNCED) {
        w->phase = PHASE_LIVE;
        queue_bookmark(w, now_ms, true);
    } else if (w->phase == PHASE_LIVE) {
        looks = queue_live(w, looks_max, now_ms);
        if (w->phase == PHASE_LIVE && !w->pending.len)
            queue_due(w, now_ms);
    }
    pl__scratch_reset(w->s);
    return looks;
}

/* True when something is queued. A watch that would have to pass over more than others should wait for goes on in the
 * next step, which is due at once. */
static bool ready(struct pl_api_watch *w, int64_t now_ms)
{
    int looks_left = SKIPS_MAX;

    w->unfinished = false;
    while (!w->pending.len && w->phase != PHASE_OVER) {
        enum phase before = w->phase;
        looks_left -= fill(w, looks_left, now_ms);
        if (!w->pending.len && before == PHASE_LIVE && w->caught_up)
            break;
        if (!w->pending.len && w->phase != PHASE_OVER && looks_left <= 0) {
            w->unfinished = true;
            w->s->next_watch_ms = now_ms;
            break;
        }
    }
    return w->pending.len > 0;
}

static enum pl_api_watch_state idle_state(const struct pl_api_watch *w)
{
    return w->phase == PHASE_OVER ? PL_WATCH_END : PL_WATCH_WAIT;
}

enum pl_api_watch_state pl_api_watch_read(struct pl_api_watch *w, int64_t now_ms, char *bytes,
                                          size_t max, size_t *count)
{
    *count = 0;
    if (!ready(w, now_ms))
        return idle_state(w);
    *count = w->pending.len < max ? w->pending.len : max;
    memcpy(bytes, pl__bytequeue_bytes(&w->pending), *count);
    pl__bytequeue_drop(&w->pending, *count);
    return PL_WATCH_MORE;
}

enum pl_api_watch_state pl_api_watch_next(struct pl_api_watch *w, int64_t now_ms,
                                          struct pl_arena *arena, struct pl_str *event)
{
    *event = (struct pl_str){ 0 };
    if (!ready(w, now_ms))
        return idle_state(w);
    const char *bytes = (const char *)pl__bytequeue_bytes(&w->pending);
    const char *end = memchr(bytes, '\n', w->pending.len);
    assert(end); /* whole events are queued, and JSON has no line break inside */
    *event = pl__str_copy(arena, (struct pl_str){ bytes, (size_t)(end - bytes) });
    pl__bytequeue_drop(&w->pending, event->len + 1);
    return PL_WATCH_MORE;
}

/* --- being told ---------------------------------------------------------------------------------- */

void pl__watch_notify(struct pl_apiserver *s, int64_t cluster, int64_t kind, uint64_t version)
{
    struct pl_cluster *there = pl__cluster_of_id(s, cluster);

    for (struct pl_api_watch *w = there ? there->watches : NULL, *next; w; w = next) {
        next = w->next;
        if (w->kind != kind || !w->caught_up || w->cursor >= version)
            continue;
        w->caught_up = false;
        w->cursor = version - 1; /* nothing of its kind came between */
        wake(w);
    }
}

void pl__watch_step(struct pl_apiserver *s, int64_t now_ms)
{
    if (now_ms < s->next_watch_ms)
        return;
    s->next_watch_ms = INT64_MAX;
    for (size_t i = 0; i < s->cluster_count; i++) {
        for (struct pl_api_watch *w = s->clusters[i]->watches; w; w = w->next) {
            int64_t due =
                w->bookmarks && w->bookmark_at_ms < w->end_at_ms ? w->bookmark_at_ms : w->end_at_ms;
            if (due <= now_ms || w->unfinished) {
                wake(w);
                due = now_ms + 1000; /* it has read by then, and knows what is next */
            }
            s->next_watch_ms = due < s->next_watch_ms ? due : s->next_watch_ms;
        }
    }
    /* Of thousands of watches one is always due soon, and nobody minds a bookmark that is a little late. */
    if (s->next_watch_ms < now_ms + STEP_MS)
        s->next_watch_ms = now_ms + STEP_MS;
}
