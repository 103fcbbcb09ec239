/* Events on transitions: what is sent for which transition. */
#include "test.h"

#include "controller/kevents.h"

static struct pl_arena arena;
static const struct pl_now now = { .mono_ms = 1, .wall_ms = 1794708000123 };

/* The parts of an Event that matter to its readers. */
struct decoded {
    struct pl_str name, namespace_, kind, object_kind, object_api, object_namespace, object_name,
        uid;
    struct pl_str type, reason, message, source, component, instance, event_time;
    struct pl_str first, last;
    int64_t count;
};

static const struct pl_field decoded_fields[] = {
    PL_FIELD("kind", F_STR, struct decoded, kind),
    PL_FIELD("metadata.name", F_STR, struct decoded, name),
    PL_FIELD("metadata.namespace", F_STR, struct decoded, namespace_),
    PL_FIELD("involvedObject.apiVersion", F_STR, struct decoded, object_api),
    PL_FIELD("involvedObject.kind", F_STR, struct decoded, object_kind),
    PL_FIELD("involvedObject.namespace", F_STR, struct decoded, object_namespace),
    PL_FIELD("involvedObject.name", F_STR, struct decoded, object_name),
    PL_FIELD("involvedObject.uid", F_STR, struct decoded, uid),
    PL_FIELD("type", F_STR, struct decoded, type),
    PL_FIELD("reason", F_STR, struct decoded, reason),
    PL_FIELD("message", F_STR, struct decoded, message),
    PL_FIELD("source.component", F_STR, struct decoded, source),
    PL_FIELD("reportingComponent", F_STR, struct decoded, component),
    PL_FIELD("reportingInstance", F_STR, struct decoded, instance),
    PL_FIELD("firstTimestamp", F_STR, struct decoded, first),
    PL_FIELD("lastTimestamp", F_STR, struct decoded, last),
    PL_FIELD("eventTime", F_STR, struct decoded, event_time),
    PL_FIELD("count", F_INT, struct decoded, count),
};
static PL_SHAPE(decoded_shape, struct decoded, decoded_fields);

static struct decoded made(const struct pl_kevent *event)
{
    struct decoded d = { .count = 0 };
    struct pl_json j;
    struct pl_error *err = NULL;

    pl__json_init(&j, pl__kevent_body(event, now, &arena), PL_STR("event"), &arena, 0, &err);
    CHECK(pl__json_decode(&j, &decoded_shape, &d) == 0);
    CHECK(pl__json_at_end(&j));
    return d;
}

static struct pl_kevent sample(void)
{
    return (struct pl_kevent){
        .api_version = "controlplane.cluster.x-k8s.io/v1beta2",
        .kind = "KubeadmControlPlane",
        .namespace_ = PL_STR_INIT("prod"),
        .name = PL_STR_INIT("alpha"),
        .uid = PL_STR_INIT("1b4e28ba-2fa1-11d2-883f-0016d3cca427"),
        .type = "EtcdClusterHealthy",
        .before = PL_STATUS_TRUE,
        .after = PL_STATUS_FALSE,
        .reason = PL_STR_INIT("NotHealthy"),
        .message = PL_STR_INIT("* Machine cp-1: alarm NOSPACE"),
        .row = "EtcdClusterHealthy/5",
        .counter = 7,
    };
}

static void test_whole(void)
{
    struct pl_kevent event = sample();

    CASE("all parts");
    struct decoded d = made(&event);
    CHECK_STR(d.kind, "Event");
    CHECK_STR(d.name, "alpha.18e8156ad6e214c7");
    CHECK_STR(d.namespace_, "prod");
    CHECK_STR(d.object_api, "controlplane.cluster.x-k8s.io/v1beta2");
    CHECK_STR(d.object_kind, "KubeadmControlPlane");
    CHECK_STR(d.object_namespace, "prod");
    CHECK_STR(d.object_name, "alpha");
    CHECK_STR(d.uid, "1b4e28ba-2fa1-11d2-883f-0016d3cca427");
    CHECK_STR(d.type, "Warning");
    CHECK_STR(d.reason, "NotHealthy");
    CHECK_STR(
        d.message,
        "EtcdClusterHealthy True -> False: * Machine cp-1: alarm NOSPACE (EtcdClusterHealthy/5)");
    CHECK_STR(d.source, "plimsoll");
    CHECK_STR(d.component, "plimsoll");
    CHECK_STR(d.instance, "");
    CHECK_STR(d.first, "2026-11-15T02:00:00Z");
    CHECK_STR(d.last, "2026-11-15T02:00:00Z");
    CHECK_STR(d.event_time, "");
    CHECK_INT(d.count, 1);
    CHECK_STR(pl__kevent_path(&event, &arena), "/api/v1/namespaces/prod/events");

    CASE("a cluster-scoped object");
    event.namespace_ = PL_STR("");
    CHECK_STR(pl__kevent_path(&event, &arena), "/api/v1/namespaces/default/events");
    CHECK_STR(made(&event).namespace_, "default");
    CHECK_STR(made(&event).object_namespace, "");
}

static void test_type(void)
{
    static const struct {
        bool negative;
        enum pl_status after;
        const char *type;
    } rows[] = {
        { false, PL_STATUS_TRUE, "Normal" },     { false, PL_STATUS_FALSE, "Warning" },
        { false, PL_STATUS_UNKNOWN, "Warning" }, { true, PL_STATUS_TRUE, "Warning" },
        { true, PL_STATUS_FALSE, "Normal" },     { true, PL_STATUS_UNKNOWN, "Warning" },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pl_kevent event = sample();
        event.negative = rows[i].negative;
        event.after = rows[i].after;
        CASE("type %zu", i);
        CHECK_STR(made(&event).type, rows[i].type);
    }
}

static void test_message(void)
{
    struct pl_kevent event = sample();
    char text[4096];

    CASE("no message, not there before");
    event.message = PL_STR("");
    event.before = PL_STATUS_NONE;
    CHECK_STR(made(&event).message, "EtcdClusterHealthy unset -> False (EtcdClusterHealthy/5)");

    CASE("any length fits, the row stays, no character is cut");
    for (size_t i = 0; i + 2 < sizeof text; i += 3)
        memcpy(text + i, "\xe2\x82\xac", 3);
    for (size_t len = 0; len < 1300; len += 3) {
        event.message = (struct pl_str){ text, len };
        struct pl_str message = made(&event).message;
        CHECK(message.len <= KEVENT_MESSAGE_BYTES_MAX);
        CHECK(pl__str_ends_with(message, PL_STR(" (EtcdClusterHealthy/5)")));
        CHECK(!pl__str_contains(message, PL_STR("\xef\xbf\xbd")));
        CHECK(pl__str_contains(message, PL_STR("... (")) == (len > 966));
    }
}

static void test_name(void)
{
    struct pl_kevent event = sample();
    char name[300];

    CASE("two of one moment differ");
    struct pl_str first = made(&event).name;
    event.counter++;
    CHECK(!pl__str_equal(first, made(&event).name));

    memset(name, 'a', sizeof name);
    for (size_t len = 230; len <= 253; len++) {
        CASE("an object whose name has %zu bytes", len);
        event.name = (struct pl_str){ name, len };
        CHECK(made(&event).name.len <= KEVENT_NAME_BYTES_MAX);
        CHECK_INT(made(&event).object_name.len, len);
    }
    CASE("a cut that would end in a dot or dash");
    memcpy(name + 232, "x.-.-", 5);
    event.name = (struct pl_str){ name, 253 };
    CHECK_INT(made(&event).name.len, 233 + 17);
}

int main(void)
{
    pl__arena_init(&arena, NULL, 0);
    test_whole();
    test_type();
    test_message();
    test_name();
    pl__arena_release(&arena);
    return test_end("kevents");
}
