/* controller/informer.c - list and watch one kind on one server, and recover from everything.
 *
 *            start                    list done / end mark
 *   STOPPED ------> LISTING or WATCHING(initial) ------> WATCHING --+
 *                     ^                                   |  ^      | clean end: watch again
 *                     |  due, relist      due, no relist  |  +------+
 *                     +-------- WAITING <-----------------+ error
 *
 * WatchList is tried first: what exists comes as events and ends with a marked bookmark. A server that
 * refuses it gets LIST in pages, then WATCH. In both ways every object that is still there gets the
 * generation of this sync; whoever has an older one when it ends is gone. So a change is neither missed
 * nor repeated, whatever was cut where: between two syncs the resourceVersion says where to go on, and
 * when the server cannot (410), the next sync finds all differences.
 *
 * The rules for recovery are those of client-go's reflector. */
#include "controller/internal.h"

#include <stdio.h>

#include "base/secret.h"

enum {
    PAGE_SIZE = 500,
    LIST_TIMEOUT_MS = 60 * 1000,
    WATCH_OPEN_TIMEOUT_MS = 30 * 1000,
    WATCH_SECONDS_MIN = 300, /* the server ends the watch after this to twice this ... */
    WATCH_SECONDS_LATE = 60, /* ... and if it is so late, it is not there any more */
    INITIAL_MS_MAX =
        2 * 60 * 1000, /* for what exists; then the server does not know the question */
    BACKOFF_BASE_MS = 800,
    BACKOFF_MAX_MS = 30 * 1000,
    RESUME_BACKOFF_MAX_MS = 5 * 1000,
    BACKOFF_FORGET_MS = 2 * 60 * 1000,
    WATCH_LIVED_MS = 5 * 1000, /* a watch that was good for so long starts with a clean slate */
    RETRY_AFTER_S_MAX = 5 * 60,
    WATCH_RETRIES_MAX = 3, /* of a server's own errors; then all is read anew */
    EVENT_BYTES_MAX = 16 * 1024 * 1024,
    DEPTH_MAX = 64,
};

void pl__informer_init(struct pl_informer *i, struct pl_controller *c, enum pl_resource_id resource,
                       uint32_t server, const struct pl_informer_sink *sink, void *user)
{
    *i = (struct pl_informer){ .controller = c,
                               .resource = &pl__resources[resource],
                               .server = server,
                               .sink = sink,
                               .user = user,
                               .due_ms = UINT64_MAX };
}

static void due_set(struct pl_informer *i, uint64_t due_ms)
{
    i->due_ms = due_ms;
    if (i->sink->due)
        i->sink->due(i->user);
}

bool pl__informer_syncing(const struct pl_informer *i)
{
    return i->initial || i->state == INFORMER_LISTING;
}

/* Among the Secrets that are watched are keys. */
static void partial_free(struct pl_informer *i)
{
    if (!i->partial)
        return;
    if (i->resource == &pl__resources[RESOURCE_SECRETS])
        pl__secret_wipe(i->partial, i->partial_capacity);
    pl__free(i->controller, i->partial, i->partial_capacity);
}

static void partial_clear(struct pl_informer *i)
{
    partial_free(i);
    i->partial = NULL;
    i->partial_len = i->partial_capacity = 0;
}

void pl__informer_stop(struct pl_informer *i)
{
    pl__request_cancel(i->controller, i->request_id);
    i->request_id = 0;
    i->state = INFORMER_STOPPED;
    due_set(i, UINT64_MAX);
    i->initial = false;
    i->failures = 0;
    i->version[0] = '\0';
    pl__strfree(i->controller, &i->page);
    partial_clear(i);
}

void pl__informer_release(struct pl_informer *i)
{
    if (i->controller)
        pl__informer_stop(i);
}

/* --- requests --------------------------------------------------------------------------------- */

/* "/apis/group/version[/namespaces/ns]/plural?labelSelector=..." */
static void path_add(const struct pl_informer *i, struct pl_buf *path)
{
    const struct pl_resource *r = i->resource;
    const char *namespace_ = r->namespace_ ? r->namespace_
                             : i->server   ? NULL
                                           : i->controller->options.namespace_;

    pl__buf_printf(path, "%s%s/%s", r->group[0] ? "/apis/" : "/api", r->group,
                   i->on_fallback ? r->fallback : r->version);
    if (namespace_ && !r->cluster_scoped)
        pl__buf_printf(path, "/namespaces/%s", namespace_);
    pl__buf_printf(path, "/%s?", r->plural);
    const char *selector = r->selector;
    if (r == &pl__resources[RESOURCE_CLUSTERS])
        selector = i->controller->options.cluster_selector;
    if (selector)
        pl__buf_printf(path, "labelSelector=%s&", selector);
}

static void send(struct pl_informer *i, enum pl_action_type type, struct pl_buf *path)
{
    due_set(i, UINT64_MAX);
    i->request_id =
        pl__request(i->controller, &(struct pl_request){
                                       .type = type,
                                       .server = i->server,
                                       .method = "GET",
                                       .path = pl__buf_str(path),
                                       .timeout_ms = type == ACTION_WATCH ? WATCH_OPEN_TIMEOUT_MS
                                                                          : LIST_TIMEOUT_MS,
                                       .waiter = WAITER_INFORMER,
                                       .owner = i,
                                   });
}

/* The token is opaque: it may hold anything. */
static void query_escape(struct pl_buf *path, const char *text)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~";

    for (; *text; text++) {
        if (strchr(plain, *text))
            pl__buf_add_char(path, *text);
        else
            pl__buf_printf(path, "%%%02X", (unsigned char)*text);
    }
}

static void list_send(struct pl_informer *i)
{
    struct pl_buf path;

    pl__buf_init(&path, &i->controller->scratch, 64 * 1024);
    path_add(i, &path);
    pl__buf_printf(&path, "limit=%d", PAGE_SIZE);
    if (i->page) {
        pl__buf_add_lit(&path, "&continue=");
        query_escape(&path, i->page);
    } else {
        i->generation++;
    }
    i->state = INFORMER_LISTING;
    i->controller->counts.lists++;
    send(i, ACTION_REQUEST, &path);
}

static void watch_send(struct pl_informer *i, struct pl_now now)
{
    struct pl_buf path;
    uint64_t seconds = WATCH_SECONDS_MIN + pl__random(i->controller) % WATCH_SECONDS_MIN;

    pl__buf_init(&path, &i->controller->scratch, 4096);
    path_add(i, &path);
    pl__buf_printf(&path, "watch=true&allowWatchBookmarks=true&timeoutSeconds=%llu",
                   (unsigned long long)seconds);
    i->initial = i->version[0] == '\0';
    if (i->initial) {
        i->generation++;
        pl__buf_add_lit(&path, "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
    } else {
        pl__buf_printf(&path, "&resourceVersion=%s", i->version);
    }
    i->state = INFORMER_WATCHING;
    i->watch_started_ms = now.mono_ms;
    i->watch_events = 0;
    i->controller->counts.watches++;
    i->watch_until_ms = now.mono_ms + (seconds + WATCH_SECONDS_LATE) * 1000;
    partial_clear(i);
    send(i, ACTION_WATCH, &path);
    due_set(i, i->initial ? now.mono_ms + INITIAL_MS_MAX : i->watch_until_ms);
}

/* From the beginning: everything that exists, then what changes. */
static void sync_start(struct pl_informer *i, struct pl_now now)
{
    i->version[0] = '\0';
    i->relist = false;
    pl__strfree(i->controller, &i->page);
    if (i->without_watchlist)
        list_send(i);
    else
        watch_send(i, now);
}

/* The same, with the preferred version first: an upgrade may have brought it. */
static void preferred_start(struct pl_informer *i, struct pl_now now)
{
    i->on_fallback = false;
    sync_start(i, now);
}

void pl__informer_start(struct pl_informer *i, struct pl_now now)
{
    if (i->state == INFORMER_STOPPED)
        sync_start(i, now);
}

/* --- failures --------------------------------------------------------------------------------- */

static void wait(struct pl_informer *i, bool relist, uint64_t at_least_ms, struct pl_now now)
{
    if (now.mono_ms > i->failed_ms && now.mono_ms - i->failed_ms > BACKOFF_FORGET_MS)
        i->failures = 0;
    if (i->failures == 0)
        i->failing_since_ms = now.mono_ms;
    /* Going on where we were costs the server little, and until then we are blind: sooner than a list. */
    uint64_t delay = pl__backoff_ms(i->controller, i->failures++, BACKOFF_BASE_MS,
                                    relist ? BACKOFF_MAX_MS : RESUME_BACKOFF_MAX_MS);

    if (delay < at_least_ms)
        delay = at_least_ms;
    i->state = INFORMER_WAITING;
    i->relist = relist || i->version[0] == '\0';
    i->failed_ms = now.mono_ms + delay;
    due_set(i, now.mono_ms + delay);
    i->request_id = 0;
    i->initial = false;
    partial_clear(i);
}

static void failed(struct pl_informer *i, bool relist, int status, struct pl_str error,
                   int retry_after_s, struct pl_now now)
{
    if (retry_after_s > RETRY_AFTER_S_MAX)
        retry_after_s = RETRY_AFTER_S_MAX;
    wait(i, relist, retry_after_s > 0 ? (uint64_t)retry_after_s * 1000 : 0, now);
    i->sink->failed(i->user, i, status, error);
}

/* What we broke off ourselves: the request is cancelled, then as any failure. */
static void abandon(struct pl_informer *i, bool relist, int status, struct pl_str error,
                    struct pl_now now)
{
    pl__request_cancel(i->controller, i->request_id);
    failed(i, relist, status, error, -1, now);
}

static void synced(struct pl_informer *i)
{
    i->initial = false;
    i->synced = true;
    i->preferred |= !i->on_fallback;
    i->sink->synced(i->user, i);
}

/* --- reading ---------------------------------------------------------------------------------- */

struct status {
    int64_t code;
    struct pl_str reason;
    struct pl_str message;
};

static const struct pl_field status_fields[] = {
    PL_FIELD("code", F_INT, struct status, code),
    PL_FIELD("reason", F_STR, struct status, reason),
    PL_FIELD("message", F_STR, struct status, message),
};
static PL_SHAPE(status_shape, struct status, status_fields);

struct mark {
    struct pl_str version;
    bool initial_events_end;
};

static const struct pl_field mark_annotations_fields[] = {
    PL_FIELD("k8s.io/initial-events-end", F_PRESENT, struct mark, initial_events_end),
};
static PL_SHAPE(mark_annotations, struct mark, mark_annotations_fields);

static const struct pl_field mark_fields[] = {
    PL_FIELD("metadata.resourceVersion", F_STR, struct mark, version),
    { .path = "metadata.annotations",
      .path_len = sizeof "metadata.annotations" - 1,
      .kind = F_MAP,
      .offset = 0,
      .shape = &mark_annotations },
};
static PL_SHAPE(mark_shape, struct mark, mark_fields);

static void version_set(struct pl_informer *i, struct pl_str version)
{
    if (version.len && version.len < sizeof i->version) {
        memcpy(i->version, version.ptr, version.len);
        i->version[version.len] = '\0';
    }
}

struct identity {
    struct pl_str name, namespace_;
};

static const struct pl_field identity_fields[] = {
    PL_FIELD("metadata.name", F_STR, struct identity, name),
    PL_FIELD("metadata.namespace", F_STR, struct identity, namespace_),
};
static PL_SHAPE(identity_shape, struct identity, identity_fields);

/* One object that is not as it should be must not hide all others: it counts as not there. */
static void object_unreadable(struct pl_informer *i, struct pl_json j, const struct pl_error *error)
{
    struct pl_controller *c = i->controller;
    struct identity id = { 0 };

    j.err = NULL;
    (void)pl__json_decode(&j, &identity_shape, &id);
    PL_LOG(c, PL_LOG_ERROR, "An object cannot be read and is left out",
           { i->resource->kind, pl__str_format(&c->reading, "%.*s/%.*s", PL_STR_ARG(id.namespace_),
                                               PL_STR_ARG(id.name)) },
           { "error", pl__error_text(&c->reading, error) });
    if (id.name.len)
        i->sink->gone(i->user, i, id.namespace_, id.name);
}

/* Reads one object into the reading arena. 1 with `*object`; 0: whole, but unreadable; -1: no JSON. */
static int object_read(struct pl_informer *i, struct pl_json *j, void **object)
{
    const struct pl_resource *r = i->resource;
    struct pl_json start = *j;
    struct pl_error *error = NULL;
    int status;

    *object = pl__arena_alloc(&i->controller->reading, r->shape->size);
    j->err = &error; // cppcheck-suppress autoVariables ; set back below, on every path
    if (r->model_kind >= 0)
        status = pl__object_decode(j, (enum pl_model_kind)r->model_kind, i->on_fallback, *object);
    else
        status = pl__json_decode(j, r->shape, *object);
    if (status == 0) {
        j->err = start.err;
        return 1;
    }
    *j = start;
    if (pl__json_skip(j) < 0)
        return -1;
    object_unreadable(i, start, error);
    return 0;
}

static void object_seen(struct pl_informer *i, const void *object)
{
    if (i->resource->shape->keep) {
        union {
            const void *in;
            void *out;
        } item = { .in = object }; /* `keep` only looks */
        if (!i->resource->shape->keep(item.out)) {
            i->sink->gone(i->user, i, pl__object_namespace(i->resource->shape, object),
                          pl__object_name(i->resource->shape, object));
            return;
        }
    }
    i->sink->object(i->user, i, object);
}

static void version_of(struct pl_informer *i, const void *object)
{
    uint64_t version = pl__object_version(i->resource->shape, object);

    if (version)
        snprintf(i->version, sizeof i->version, "%llu", (unsigned long long)version);
}

/* One event of a watch: {"type": ..., "object": ...}. The type nearly always comes first; if not, the
 * object is read again behind it. */
static int event_split(struct pl_json *j, struct pl_str *type, struct pl_json *object)
{
    struct pl_str key;
    int more;

    if (pl__json_object(j) < 0)
        return -1;
    while ((more = pl__json_key(j, &key)) > 0) {
        if (pl__str_equal(key, PL_STR("type"))) {
            if (pl__json_string(j, type) < 0)
                return -1;
        } else if (pl__str_equal(key, PL_STR("object"))) {
            *object = *j;
            if (type->len)
                return 0; /* the rest is the caller's */
            if (pl__json_skip(j) < 0)
                return -1;
        } else if (pl__json_skip(j) < 0) {
            return -1;
        }
    }
    return more;
}

static void event_error(struct pl_informer *i, struct pl_json *j, struct pl_now now)
{
    struct status s = { 0 };
    bool read = pl__json_decode(j, &status_shape, &s) == 0;
    bool too_many = read && s.code == 429;

    /* A server whose etcd cannot tell progress (before 3.4.25) has sendInitialEvents, starts the stream
     * and then says so here, with 500. As client-go does: whatever it is, a list makes progress. */
    if (i->initial && !too_many && !i->without_watchlist) {
        pl__request_cancel(i->controller, i->request_id);
        i->request_id = 0;
        i->initial = false;
        i->without_watchlist = true;
        sync_start(i, now);
        return;
    }
    abandon(i, !too_many, read ? (int)s.code : 0,
            read ? s.message : PL_STR("unreadable error event"), now);
}

static void event_bookmark(struct pl_informer *i, struct pl_json *j)
{
    struct mark m = { 0 };

    if (pl__json_decode(j, &mark_shape, &m) < 0)
        return;
    version_set(i, m.version);
    if (i->initial && m.initial_events_end) {
        synced(i);
        due_set(i, i->watch_until_ms);
    }
}

/* Handles one line of the stream. False: the watch has ended here. */
static bool event_read(struct pl_informer *i, struct pl_str line, struct pl_now now)
{
    struct pl_arena *arena = &i->controller->reading;
    struct pl_error *error = NULL;
    struct pl_str type = { 0 };
    struct pl_json j, object = { 0 };

    pl__arena_reset(arena);
    pl__json_init(&j, line, PL_STR("watch"), arena, DEPTH_MAX, &error);
    if (event_split(&j, &type, &object) < 0 || !object.start) {
        abandon(i, true, 0, error ? pl__error_text(arena, error) : PL_STR("watch: not an event"),
                now);
        return false;
    }
    i->watch_events++;
    i->controller->counts.watch_events++;
    if (pl__str_equal(type, PL_STR("ERROR"))) {
        event_error(i, &object, now);
        return false;
    }
    if (pl__str_equal(type, PL_STR("BOOKMARK"))) {
        event_bookmark(i, &object);
        return true;
    }
    struct pl_json again = object;
    void *read;
    int readable = object_read(i, &object, &read);
    if (readable < 0) {
        abandon(i, true, 0, pl__error_text(arena, error), now);
        return false;
    }
    if (!readable) {
        struct mark m = { 0 };
        again.err = NULL;
        if (!i->initial && pl__json_decode(&again, &mark_shape, &m) == 0)
            version_set(i, m.version);
        return true;
    }
    if (pl__str_equal(type, PL_STR("DELETED")))
        i->sink->gone(i->user, i, pl__object_namespace(i->resource->shape, read),
                      pl__object_name(i->resource->shape, read));
    else if (pl__str_equal(type, PL_STR("ADDED")) || pl__str_equal(type, PL_STR("MODIFIED")))
        object_seen(i, read);
    /* While what exists still streams in, versions come in no order; the end mark brings the right one. */
    if (!i->initial)
        version_of(i, read);
    return true;
}

static bool partial_add(struct pl_informer *i, const char *bytes, size_t size)
{
    if (i->partial_len + size > EVENT_BYTES_MAX)
        return false;
    if (i->partial_len + size > i->partial_capacity) {
        size_t capacity = i->partial_capacity ? i->partial_capacity : 4096;
        while (capacity < i->partial_len + size)
            capacity *= 2;
        char *roomier = pl__alloc(i->controller, capacity);
        if (i->partial_len)
            memcpy(roomier, i->partial, i->partial_len);
        partial_free(i);
        i->partial = roomier;
        i->partial_capacity = capacity;
    }
    memcpy(i->partial + i->partial_len, bytes, size);
    i->partial_len += size;
    return true;
}

void pl__informer_bytes(struct pl_informer *i, struct pl_str bytes, struct pl_now now)
{
    /* Pieces are cut anywhere. An event ends with a newline, and none has one inside: the server writes
     * compact JSON. Whole events are read where they are; only a rest is copied. */
    while (bytes.len) {
        const char *newline = memchr(bytes.ptr, '\n', bytes.len);
        size_t size = newline ? (size_t)(newline - bytes.ptr) : bytes.len;
        struct pl_str line = { bytes.ptr, size };

        if (!newline || i->partial_len) {
            if (!partial_add(i, bytes.ptr, size)) {
                abandon(i, true, 0, PL_STR("an event of the watch is larger than 16 MiB"), now);
                return;
            }
            line = (struct pl_str){ i->partial, i->partial_len };
        }
        if (!newline)
            return;
        if (line.len && !event_read(i, line, now))
            return;
        if (i->partial_len)
            partial_clear(i);
        bytes.ptr += size + 1;
        bytes.len -= size + 1;
    }
}

/* --- answers ---------------------------------------------------------------------------------- */

/* A page of a list. 0, or -1. */
static int page_read(struct pl_informer *i, struct pl_str body, struct pl_error **error)
{
    struct pl_arena *arena = &i->controller->reading;
    struct pl_json j;
    struct pl_str key, version = { 0 }, next = { 0 };
    int more;

    pl__arena_reset(arena);
    pl__json_init(&j, body, PL_STR("list"), arena, DEPTH_MAX, error);
    if (pl__json_object(&j) < 0)
        return -1;
    while ((more = pl__json_key(&j, &key)) > 0) {
        if (pl__str_equal(key, PL_STR("metadata"))) {
            struct list_meta {
                struct pl_str version, next;
            } meta = { 0 };
            static const struct pl_field fields[] = {
                PL_FIELD("resourceVersion", F_STR, struct list_meta, version),
                PL_FIELD("continue", F_STR, struct list_meta, next),
            };
            static PL_SHAPE(shape, struct list_meta, fields);
            if (pl__json_decode(&j, &shape, &meta) < 0)
                return -1;
            version = meta.version;
            next = meta.next;
        } else if (pl__str_equal(key, PL_STR("items")) && pl__json_peek(&j) == JSON_ARRAY) {
            if (pl__json_array(&j) < 0)
                return -1;
            while ((more = pl__json_item(&j)) > 0) {
                void *object;
                int readable = object_read(i, &j, &object);
                if (readable < 0)
                    return -1;
                if (readable)
                    object_seen(i, object);
            }
            if (more < 0)
                return -1;
        } else if (pl__json_skip(&j) < 0) {
            return -1;
        }
    }
    if (more < 0)
        return -1;
    /* Without one there is nothing to watch from, and it is no list: what is known must not go. */
    if (version.len == 0 || version.len >= sizeof i->version)
        return pl__error(arena, error, PL_INVALID, "list: no metadata.resourceVersion");
    version_set(i, version);
    pl__strfree(i->controller, &i->page);
    if (next.len)
        i->page = pl__strdup(i->controller, next);
    return 0;
}

/* The text of a failed answer: a Status, or whatever came. */
static struct pl_str answer_error(struct pl_informer *i, const struct pl_event *e)
{
    struct pl_arena *arena = &i->controller->reading;
    struct status s = { 0 };
    struct pl_json j;

    if (e->status == 0)
        return e->error;
    pl__arena_reset(arena);
    pl__json_init(&j, e->body, PL_STR("answer"), arena, DEPTH_MAX, NULL);
    if (pl__json_decode(&j, &status_shape, &s) == 0 && s.message.len)
        return s.message;
    return pl__str_format(arena, "the API server answered %d", e->status);
}

static void list_answer(struct pl_informer *i, const struct pl_event *e, struct pl_now now)
{
    struct pl_error *error = NULL;

    if (e->status == 200) {
        if (page_read(i, e->body, &error) < 0) {
            pl__strfree(i->controller, &i->page);
            i->version[0] = '\0';
            failed(i, true, 0, pl__error_text(&i->controller->reading, error), -1, now);
        } else if (i->page) {
            list_send(i);
        } else {
            synced(i);
            watch_send(i, now);
        }
        return;
    }
    pl__strfree(i->controller, &i->page); /* an old token (410) is no use either */
    failed(i, true, e->status, answer_error(i, e), e->retry_after_s, now);
}

static void watch_answer(struct pl_informer *i, const struct pl_event *e, struct pl_now now)
{
    bool lived = now.mono_ms - i->watch_started_ms >= 1000 || i->watch_events > 0;

    if (i->initial && (e->status == 400 || e->status == 422)) {
        i->without_watchlist = true; /* no sendInitialEvents here */
        sync_start(i, now);
        return;
    }
    if (e->status == 200 && !i->initial && e->error.len == 0 && lived) {
        if (i->on_fallback)
            preferred_start(i, now); /* perhaps it is served by now */
        else
            watch_send(i, now); /* its time was over: normal */
        return;
    }
    if (e->status == 200 && e->error.len == 0) {
        failed(i, true, 0, PL_STR("the watch ended at once"), -1, now);
        return;
    }
    /* Cut in the middle, or refused for now: where we were still holds. Otherwise all anew. */
    bool server_error = e->status >= 500 && e->status != 504 && i->failures < WATCH_RETRIES_MAX;
    bool goes_on =
        !i->initial && (e->status == 200 || e->status == 0 || e->status == 429 || server_error);
    uint64_t age_ms = now.mono_ms - i->watch_started_ms;
    if (goes_on &&
        age_ms >= (i->watch_events ? WATCH_LIVED_MS : WATCH_OPEN_TIMEOUT_MS + WATCH_LIVED_MS))
        i->failures = 0;
    failed(i, !goes_on, e->status == 200 ? 0 : e->status,
           e->status == 200 ? e->error : answer_error(i, e), e->retry_after_s, now);
}

void pl__informer_answer(struct pl_informer *i, const struct pl_event *e, struct pl_now now)
{
    i->request_id = 0;
    if (e->status == 404 && i->resource->fallback && !i->on_fallback && !i->preferred) {
        i->on_fallback = true;
        sync_start(i, now);
        return;
    }
    if (e->status == 404 && i->resource->optional) {
        i->generation++;
        i->initial = false;
        i->synced = true; /* none of that kind here; look again now and then */
        i->sink->synced(i->user, i);
        wait(i, true, 5 * 60 * 1000, now);
        return;
    }
    if (i->state == INFORMER_LISTING)
        list_answer(i, e, now);
    else if (i->state == INFORMER_WATCHING)
        watch_answer(i, e, now);
}

void pl__informer_tick(struct pl_informer *i, struct pl_now now)
{
    if (now.mono_ms < i->due_ms)
        return;
    if (i->state == INFORMER_WATCHING) {
        i->without_watchlist |= i->initial;
        abandon(i, i->initial, 0, PL_STR("the watch says nothing and does not end"), now);
        return;
    }
    if (i->state != INFORMER_WAITING)
        return;
    if (i->relist) {
        i->controller->counts.relists++;
        preferred_start(i, now);
    } else {
        watch_send(i, now);
    }
}

uint64_t pl__informer_due_ms(const struct pl_informer *i)
{
    return i->due_ms;
}
