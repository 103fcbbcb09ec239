#include "controller/kevents.h"

#include <inttypes.h>

static const char component[] = "plimsoll";

enum {
    REASON_BYTES_MAX = 128,
    INSTANCE_BYTES_MAX = 128,
    BODY_BYTES_MAX = 16384,
    NS_IN_MS = 1000000
};

static struct pl_str namespace_of(const struct pl_kevent *event)
{
    return event->namespace_.len ? event->namespace_ : PL_STR("default");
}

struct pl_str pl__kevent_path(const struct pl_kevent *event, struct pl_arena *arena)
{
    return pl__str_format(arena, "/api/v1/namespaces/%.*s/events", PL_STR_ARG(namespace_of(event)));
}

/* "<object>.<hex>", as client-go names them: there the number is nanoseconds. Ours has milliseconds and
 * a counter in their place, so two Events of one object and moment differ. An object with a very long
 * name lends only its beginning, cut where a name may end. */
static struct pl_str event_name(const struct pl_kevent *event, struct pl_now now,
                                struct pl_arena *arena)
{
    uint64_t ms = now.wall_ms > 0 ? (uint64_t)now.wall_ms : 0;
    struct pl_str suffix =
        pl__str_format(arena, ".%016" PRIx64, ms * NS_IN_MS + event->counter % NS_IN_MS);
    struct pl_str name = event->name;

    if (name.len > KEVENT_NAME_BYTES_MAX - suffix.len)
        name.len = KEVENT_NAME_BYTES_MAX - suffix.len;
    while (name.len && (name.ptr[name.len - 1] == '.' || name.ptr[name.len - 1] == '-'))
        name.len--;
    return pl__str_format(arena, "%.*s%.*s", PL_STR_ARG(name), PL_STR_ARG(suffix));
}

/* The longest beginning of at most `max` bytes that does not end inside a character. */
static struct pl_str cut_text(struct pl_str text, size_t max)
{
    if (text.len <= max)
        return text;
    while (max && ((unsigned char)text.ptr[max] & 0xc0) == 0x80)
        max--;
    return (struct pl_str){ text.ptr, max };
}

static const char *status_word(enum pl_status status)
{
    return status == PL_STATUS_NONE ? "unset" : pl_status_name(status);
}

/* "EtcdClusterHealthy True -> False: etcd member ... (EtcdClusterHealthy/5)". */
static struct pl_str event_message(const struct pl_kevent *event, struct pl_arena *arena)
{
    if (!event->type)
        return cut_text(event->message, KEVENT_MESSAGE_BYTES_MAX);
    struct pl_str head =
        pl__str_format(arena, "%s %s -> %s%s", event->type, status_word(event->before),
                       status_word(event->after), event->message.len ? ": " : "");
    struct pl_str tail = pl__str_format(arena, " (%s)", event->row ? event->row : "no row");
    struct pl_str dots = PL_STR("...");
    size_t room = KEVENT_MESSAGE_BYTES_MAX - head.len - tail.len;
    struct pl_str text = event->message;

    if (text.len <= room)
        dots.len = 0;
    else
        text = cut_text(text, room - dots.len);
    return pl__str_format(arena, "%.*s%.*s%.*s%.*s", PL_STR_ARG(head), PL_STR_ARG(text),
                          PL_STR_ARG(dots), PL_STR_ARG(tail));
}

static bool calls_for_attention(const struct pl_kevent *event)
{
    if (!event->type)
        return event->warning;
    enum pl_status good = event->negative ? PL_STATUS_FALSE : PL_STATUS_TRUE;

    return event->after != good;
}

static void write_text(struct pl_json_writer *w, const char *key, struct pl_str text)
{
    pl__json_write_key(w, key);
    pl__json_write_str(w, text);
}

static void write_metadata(struct pl_json_writer *w, const struct pl_kevent *event,
                           struct pl_str name)
{
    pl__json_write_key(w, "metadata");
    pl__json_open_object(w);
    write_text(w, "name", name);
    write_text(w, "namespace", namespace_of(event));
    pl__json_close_object(w);
}

static void write_involved(struct pl_json_writer *w, const struct pl_kevent *event)
{
    pl__json_write_key(w, "involvedObject");
    pl__json_open_object(w);
    write_text(w, "apiVersion", pl__str(event->api_version));
    write_text(w, "kind", pl__str(event->kind));
    if (event->namespace_.len)
        write_text(w, "namespace", event->namespace_);
    write_text(w, "name", event->name);
    write_text(w, "uid", event->uid);
    pl__json_close_object(w);
}

/* Who says so. The core API's own rules for these are looser when there is no eventTime, so there is
 * none. */
static void write_source(struct pl_json_writer *w, const struct pl_kevent *event)
{
    pl__json_write_key(w, "source");
    pl__json_open_object(w);
    write_text(w, "component", pl__str(component));
    pl__json_close_object(w);
    write_text(w, "reportingComponent", pl__str(component));
    write_text(w, "reportingInstance", cut_text(pl__str(event->instance), INSTANCE_BYTES_MAX));
}

static void write_times(struct pl_json_writer *w, struct pl_now now)
{
    int64_t ms = now.wall_ms > 0 ? now.wall_ms : 1;

    pl__json_write_key(w, "firstTimestamp");
    pl__json_write_time(w, ms);
    pl__json_write_key(w, "lastTimestamp");
    pl__json_write_time(w, ms);
    pl__json_write_key(w, "count");
    pl__json_write_int(w, 1);
}

struct pl_str pl__kevent_body(const struct pl_kevent *event, struct pl_now now,
                              struct pl_arena *arena)
{
    struct pl_buf out;
    struct pl_json_writer w;

    pl__buf_init(&out, arena, BODY_BYTES_MAX);
    pl__json_writer_init(&w, &out, JSON_COMPACT);
    pl__json_open_object(&w);
    write_text(&w, "apiVersion", PL_STR("v1"));
    write_text(&w, "kind", PL_STR("Event"));
    write_metadata(&w, event, event_name(event, now, arena));
    write_involved(&w, event);
    write_text(&w, "type", calls_for_attention(event) ? PL_STR("Warning") : PL_STR("Normal"));
    write_text(&w, "reason", cut_text(event->reason, REASON_BYTES_MAX));
    write_text(&w, "message", event_message(event, arena));
    write_source(&w, event);
    write_times(&w, now);
    pl__json_close_object(&w);
    return pl__buf_str(&out);
}
