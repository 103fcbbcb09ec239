/* gRPC calls against a peer made of raw frames, which can say anything, and against nghttp2's server,
 * which checks that what we say is HTTP/2. */
#include "test.h"

#include <malloc.h>
#include <nghttp2/nghttp2.h>
#include <stdlib.h>

#include "proto/grpc.h"

/* --- what came of a call ------------------------------------------------------------------------ */

struct outcome {
    int count;
    struct pl_grpc_reply reply;
    char message[512];
    size_t body_size;
    uint8_t body_first, body_last;
    struct pl_grpc *start_on; /* start another call from within `done` */
    struct outcome *next;
    uint32_t cancel; /* cancel this one from within `done` */
};

static void done(void *user, const struct pl_grpc_reply *reply)
{
    struct outcome *o = user;

    o->count++;
    o->reply = *reply;
    snprintf(o->message, sizeof o->message, "%.*s", PL_STR_ARG(reply->message));
    o->body_size = reply->body.len;
    if (reply->body.len) {
        o->body_first = (uint8_t)reply->body.ptr[0];
        o->body_last = (uint8_t)reply->body.ptr[reply->body.len - 1];
    }
    if (o->start_on && o->cancel)
        pl__grpc_cancel(o->start_on, o->cancel);
    if (o->start_on && o->next)
        pl__grpc_call(o->start_on, "/a/B", PL_STR(""), 1000, done, o->next);
}

static uint32_t start(struct pl_grpc *g, struct outcome *o)
{
    *o = (struct outcome){ 0 };
    return pl__grpc_call(g, "/etcdserverpb.Maintenance/Status", PL_STR("xyz"), 15000, done, o);
}

/* --- a peer of raw frames ----------------------------------------------------------------------- */

struct frames {
    uint8_t bytes[64 * 1024];
    size_t size;
};

static void put(struct frames *f, const void *bytes, size_t size)
{
    if (size > sizeof f->bytes - f->size)
        abort();
    memcpy(f->bytes + f->size, bytes, size);
    f->size += size;
}

static void put_frame(struct frames *f, uint8_t type, uint8_t flags, uint32_t stream,
                      const void *payload, size_t size)
{
    uint8_t head[9] = { (uint8_t)(size >> 16),
                        (uint8_t)(size >> 8),
                        (uint8_t)size,
                        type,
                        flags,
                        (uint8_t)(stream >> 24),
                        (uint8_t)(stream >> 16),
                        (uint8_t)(stream >> 8),
                        (uint8_t)stream };

    put(f, head, sizeof head);
    put(f, payload, size);
}

enum { DATA = 0, HEADERS = 1, RST = 3, SETTINGS = 4, PUSH = 5, PING = 6, GOAWAY = 7, CONT = 9 };
enum { END_STREAM = 1, END_HEADERS = 4 };

/* Headers from "name: value\n" lines, literal, never indexed. */
static size_t pack_headers(uint8_t *room, const char *lines)
{
    size_t size = 0;

    while (*lines) {
        const char *colon = strchr(lines + 1, ':'), *end = strchr(lines, '\n');
        size_t name = (size_t)(colon - lines), value = (size_t)(end - colon) - 2;
        room[size++] = 0;
        room[size++] = (uint8_t)name;
        memcpy(room + size, lines, name);
        size += name;
        room[size++] = (uint8_t)value;
        memcpy(room + size, colon + 2, value);
        size += value;
        lines = end + 1;
    }
    return size;
}

static void put_headers(struct frames *f, uint32_t stream, bool last, const char *lines)
{
    uint8_t block[4096];
    size_t size = pack_headers(block, lines);

    put_frame(f, HEADERS, (uint8_t)(END_HEADERS | (last ? END_STREAM : 0)), stream, block, size);
}

#define HEAD ":status: 200\ncontent-type: application/grpc\n"

/* A session whose peer said its SETTINGS, with everything sent. */
static struct pl_grpc *session(void)
{
    struct pl_grpc *g = pl__grpc_new("node-1");
    struct frames f = { 0 };
    const uint8_t *bytes;

    put_frame(&f, SETTINGS, 0, 0, "", 0);
    CHECK_INT(pl__grpc_receive(g, f.bytes, f.size), 0);
    while (pl__grpc_send(g, &bytes) > 0)
        ;
    f.size = 0;
    put_frame(&f, SETTINGS, 1, 0, "", 0); /* it took ours */
    CHECK_INT(pl__grpc_receive(g, f.bytes, f.size), 0);
    return g;
}

static void drain(struct pl_grpc *g)
{
    const uint8_t *bytes;

    while (pl__grpc_send(g, &bytes) > 0)
        ;
}

/* One call, sent, and then these frames for stream 1. */
static struct pl_grpc *call_with(struct outcome *o, const struct frames *f, int want)
{
    struct pl_grpc *g = session();

    CHECK_INT(start(g, o), 1);
    drain(g);
    CHECK_INT(pl__grpc_receive(g, f->bytes, f->size), want);
    drain(g);
    return g;
}

struct expected {
    const char *name;
    const char *head; /* headers; NULL: none */
    const char *body; /* hex; NULL: none */
    const char *tail; /* trailers; NULL: none, and END_STREAM stands before */
    int code;
    bool from_peer;
    const char *message;
};

static const struct expected replies[] = {
    { "OK with an empty message", HEAD, "0000000000", "grpc-status: 0\n", 0, true, "" },
    { "an empty grpc-message on success", HEAD, "0000000000", "grpc-status: 0\ngrpc-message: \n", 0,
      true, "" },
    { "a type with a suffix", ":status: 200\ncontent-type: application/grpc+proto\n", "0000000000",
      "grpc-status: 0\n", 0, true, "" },
    { "an error in trailers", HEAD, NULL, "grpc-status: 14\ngrpc-message: etcdserver: no leader\n",
      14, true, "etcdserver: no leader" },
    { "Trailers-Only", HEAD "grpc-status: 12\ngrpc-message: unknown service x\n", NULL, NULL, 12,
      true, "unknown service x" },
    { "the trailer wins", HEAD "grpc-status: 0\n", "0000000000", "grpc-status: 9\n", 9, true, "" },
    { "`trailer: Grpc-Status` is no status", HEAD "trailer: Grpc-Status\n", "0000000000", "a: b\n",
      2, false, "the answer has no grpc-status: HTTP status 200" },
    { "percent-encoding", HEAD, NULL, "grpc-status: 2\ngrpc-message: a%25b%C3%a9%\n", 2, true,
      "a%b\xc3\xa9%" },
    { "what is no escape is kept, what controls terminals is not", HEAD, NULL,
      "grpc-status: 2\ngrpc-message: %4 %zz %0a%1b[2J%7f%00x%2\n", 2, true, "%4 %zz   [2J  x%2" },
    { "100 Continue is not the answer", ":status: 100\n", NULL, NULL, -1, false, NULL },
    { "a status beyond the known", HEAD, NULL, "grpc-status: 17\n", 2, true, "" },
    { "a status that is none", HEAD, NULL, "grpc-status: -1\n", 2, true, "" },
    { "a type that is missing, with a status", ":status: 200\ngrpc-status: 3\n", NULL, NULL, 3,
      true, "" },
    { "OK without a message", HEAD, NULL, "grpc-status: 0\n", 13, false,
      "the answer is OK but has no whole message" },
    { "OK with half a prefix", HEAD, "0000", "grpc-status: 0\n", 13, false,
      "the answer is OK but has no whole message" },
    { "OK with half a message", HEAD, "0000000003 6162", "grpc-status: 0\n", 13, false,
      "the answer is OK but has no whole message" },
    { "END_STREAM without trailers", HEAD, "0000000000", NULL, 2, false,
      "the answer has no grpc-status: HTTP status 200" },
    { "two messages", HEAD, "0000000000 0000000000", "grpc-status: 0\n", 13, false,
      "the answer has more than one message" },
    { "the compressed flag", HEAD, "0100000000", "grpc-status: 0\n", 13, false,
      "the answer is compressed, which nobody asked for" },
    { "a huge length", HEAD, "00ffffffff", "grpc-status: 0\n", 8, false, "the answer is too long" },
    { "one byte too long", HEAD, "0000100001", "grpc-status: 0\n", 8, false,
      "the answer is too long" },
    { "a page of HTML", ":status: 200\ncontent-type: text/html\n", "0000000000", "grpc-status: 0\n",
      2, false, "the answer is not gRPC: HTTP status 200, content type \"text/html\"" },
    { "a type that only begins like it", ":status: 200\ncontent-type: application/grpcx\n", NULL,
      NULL, 2, false,
      "the answer is not gRPC: HTTP status 200, content type \"application/grpcx\"" },
    { "HTTP 404 of the REST side", ":status: 404\ncontent-type: text/plain\n", "00", NULL, 12,
      false, "the answer is not gRPC: HTTP status 404, content type \"text/plain\"" },
    { "HTTP 415, nothing else", ":status: 415\n", NULL, NULL, 2, false,
      "the answer is not gRPC: HTTP status 415, content type \"\"" },
    { "HTTP 400", ":status: 400\n", NULL, NULL, 13, false, NULL },
    { "HTTP 401", ":status: 401\n", NULL, NULL, 16, false, NULL },
    { "HTTP 403", ":status: 403\n", NULL, NULL, 7, false, NULL },
    { "HTTP 429", ":status: 429\n", NULL, NULL, 14, false, NULL },
    { "HTTP 503, but gRPC", ":status: 503\ncontent-type: application/grpc\n", NULL, NULL, 14, false,
      "the answer has no grpc-status: HTTP status 503" },
    { "a malformed answer: no :status", "content-type: application/grpc\n", NULL, NULL, 13, false,
      "the call was reset: PROTOCOL_ERROR" },
    { "a malformed answer: upper case", HEAD "Grpc-Status: 0\n", NULL, NULL, 13, false,
      "the call was reset: PROTOCOL_ERROR" },
};

static size_t unhex(const char *digits, uint8_t *bytes)
{
    size_t count = 0;

    for (; *digits; digits++) {
        int value = *digits >= 'a' ? *digits - 'a' + 10 : *digits - '0';
        if (*digits == ' ')
            continue;
        bytes[count / 2] = (uint8_t)(bytes[count / 2] << 4 | value);
        count++;
    }
    return count / 2;
}

static void build(struct frames *f, const struct expected *e)
{
    uint8_t body[256] = { 0 };

    f->size = 0;
    put_headers(f, 1, !e->body && !e->tail && e->code >= 0, e->head);
    if (e->body)
        put_frame(f, DATA, e->tail ? 0 : END_STREAM, 1, body, unhex(e->body, body));
    if (e->tail)
        put_headers(f, 1, true, e->tail);
}

static void test_replies(void)
{
    struct frames *f = calloc(1, sizeof *f);
    struct outcome o;

    for (size_t i = 0; f && i < sizeof replies / sizeof replies[0]; i++) {
        const struct expected *e = &replies[i];
        CASE("%s", e->name)
        build(f, e);
        struct pl_grpc *g = call_with(&o, f, 0);
        CHECK_INT(o.count, e->code < 0 ? 0 : 1);
        if (e->code >= 0) {
            CHECK_INT(o.reply.code, e->code);
            CHECK_INT(o.reply.from_peer, e->from_peer);
            CHECK(!o.reply.unprocessed);
            if (e->message)
                CHECK_STR(pl__str(o.message), e->message);
            CHECK(pl__grpc_usable(g));
            CHECK_INT(pl__grpc_open_calls(g), 0);
        }
        pl__grpc_free(g);
        CHECK_INT(o.count, 1);

        CASE("%s, a byte at a time", e->name)
        g = session();
        start(g, &o);
        drain(g);
        int result = 0;
        for (size_t at = 0; at < f->size && result == 0; at++) {
            result = pl__grpc_receive(g, f->bytes + at, 1);
            drain(g);
        }
        CHECK_INT(result, 0);
        CHECK_INT(o.count, e->code < 0 ? 0 : 1);
        if (e->code >= 0)
            CHECK_INT(o.reply.code, e->code);
        pl__grpc_free(g);
    }
    free(f);
}

static void test_continue(void)
{
    struct frames f = { 0 };
    struct outcome o;

    CASE("what 100 Continue said is forgotten")
    put_headers(&f, 1, false, ":status: 100\ngrpc-status: 5\n");
    put_headers(&f, 1, false, HEAD);
    put_headers(&f, 1, true, "a: b\n");
    struct pl_grpc *g = call_with(&o, &f, 0);
    CHECK_INT(o.count, 1);
    CHECK_STR(pl__str(o.message), "the answer has no grpc-status: HTTP status 200");
    pl__grpc_free(g);
}

/* --- resets, the end of connections ------------------------------------------------------------- */

static void test_resets(void)
{
    static const struct {
        uint8_t error;
        int code;
        bool unprocessed;
    } resets[] = {
        { 0, 13, false }, { 1, 13, false }, { 2, 13, false }, { 7, 14, true },
        { 8, 1, false },  { 11, 8, false }, { 12, 7, false }, { 99, 13, false },
    };
    struct outcome o;

    for (size_t i = 0; i < sizeof resets / sizeof resets[0]; i++) {
        CASE("RST_STREAM %d", resets[i].error)
        struct frames f = { 0 };
        uint8_t payload[4] = { 0, 0, 0, resets[i].error };
        put_frame(&f, RST, 0, 1, payload, sizeof payload);
        struct pl_grpc *g = call_with(&o, &f, 0);
        CHECK_INT(o.count, 1);
        CHECK_INT(o.reply.code, resets[i].code);
        CHECK_INT(o.reply.unprocessed, resets[i].unprocessed);
        CHECK(!o.reply.from_peer);
        CHECK(pl__grpc_usable(g));
        pl__grpc_free(g);
        CHECK_INT(o.count, 1);
    }
}

static void put_goaway(struct frames *f, uint8_t last_stream, uint8_t error, const char *debug)
{
    uint8_t payload[64] = { 0, 0, 0, last_stream, 0, 0, 0, error };
    size_t size = strlen(debug);

    memcpy(payload + 8, debug, size);
    put_frame(f, GOAWAY, 0, 0, payload, 8 + size);
}

static void test_goaway(void)
{
    struct outcome o, second;
    struct frames f = { 0 };

    CASE("GOAWAY that did not see our call")
    put_goaway(&f, 0, 0, "");
    struct pl_grpc *g = call_with(&o, &f, 0);
    CHECK_INT(o.count, 1);
    CHECK_INT(o.reply.code, 14);
    CHECK(o.reply.unprocessed && !o.reply.from_peer);
    CHECK_STR(pl__str(o.message), "the server is going away");
    CHECK(!pl__grpc_usable(g));
    CHECK_INT(start(g, &second), 0);
    CHECK_INT(second.count, 0);
    pl__grpc_free(g);

    CASE("GOAWAY that saw it: the answer still comes")
    f.size = 0;
    put_goaway(&f, 1, 0, "");
    g = call_with(&o, &f, 0);
    CHECK_INT(o.count, 0);
    CHECK_INT(pl__grpc_open_calls(g), 1);
    CHECK(!pl__grpc_usable(g));
    f.size = 0;
    put_headers(&f, 1, true, HEAD "grpc-status: 5\n");
    CHECK_INT(pl__grpc_receive(g, f.bytes, f.size), 0);
    CHECK_INT(o.count, 1);
    CHECK_INT(o.reply.code, 5);
    pl__grpc_free(g);

    CASE("GOAWAY with words, and a call that never left")
    g = session();
    f.size = 0;
    put_goaway(&f, 0, 11, "too_many\033pings");
    CHECK(start(g, &o) > 0);
    CHECK_INT(pl__grpc_receive(g, f.bytes, f.size), 0);
    drain(g);
    CHECK_INT(o.count, 1);
    CHECK(o.reply.unprocessed);
    CHECK_INT(o.reply.code, 14);
    CHECK_STR(pl__str(pl__grpc_error(g)),
              "the server ends the connection: ENHANCE_YOUR_CALM, too_many pings");
    pl__grpc_free(g);

    CASE("rubbish after GOAWAY")
    f.size = 0;
    put_goaway(&f, 1, 0, "");
    put_frame(&f, SETTINGS, 0, 3, "", 0);
    g = call_with(&o, &f, 0);
    CHECK_INT(o.count, 1);
    CHECK_INT(o.reply.code, 14);
    CHECK_INT(pl__grpc_receive(g, "", 0), -1);
    pl__grpc_free(g);
}

static void test_lost(void)
{
    struct outcome first, second;
    struct pl_grpc *g = session();

    CASE("the connection is lost: what left and what did not")
    start(g, &first);
    drain(g);
    start(g, &second);
    pl__grpc_lost(g, PL_STR("connection reset"));
    CHECK_INT(first.count, 1);
    CHECK_INT(second.count, 1);
    CHECK_INT(first.reply.code, 14);
    CHECK(!first.reply.unprocessed && second.reply.unprocessed);
    CHECK_STR(pl__str(second.message), "connection reset");
    CHECK_STR(pl__str(pl__grpc_error(g)), "connection reset");
    CHECK(!pl__grpc_usable(g));
    CHECK_INT(start(g, &first), 0);
    CHECK_INT(pl__grpc_receive(g, "x", 1), -1);
    pl__grpc_free(g);
    CHECK_INT(second.count, 1);

    CASE("freed: what is open is cancelled")
    g = session();
    start(g, &first);
    first.start_on = g;
    first.next = &second;
    second = (struct outcome){ 0 };
    pl__grpc_free(g);
    CHECK_INT(first.count, 1);
    CHECK_INT(first.reply.code, 1);
    CHECK_INT(second.count, 0);
}

/* --- calls that meddle -------------------------------------------------------------------------- */

static void test_cancel(void)
{
    struct outcome a, b, c;
    struct frames f = { 0 };
    struct pl_grpc *g = session();

    CASE("cancelled before it left, and after")
    uint32_t id = start(g, &a);
    pl__grpc_cancel(g, id);
    CHECK_INT(pl__grpc_open_calls(g), 0);
    drain(g);
    id = start(g, &b);
    drain(g);
    pl__grpc_cancel(g, id);
    drain(g);
    put_headers(&f, id, true, HEAD "grpc-status: 0\n");
    CHECK_INT(pl__grpc_receive(g, f.bytes, f.size), 0);
    pl__grpc_cancel(g, id);
    pl__grpc_cancel(g, 0);
    pl__grpc_cancel(g, UINT32_MAX);
    CHECK(pl__grpc_usable(g));
    pl__grpc_free(g);
    CHECK_INT(a.count + b.count, 0);

    CASE("a `done` starts a call and cancels one that has ended with it")
    g = session();
    start(g, &a);
    id = start(g, &b);
    drain(g);
    a.start_on = g;
    a.next = &c;
    a.cancel = id;
    c = (struct outcome){ 0 };
    f.size = 0;
    put_headers(&f, 1, true, HEAD "grpc-status: 5\n");
    put_headers(&f, id, true, HEAD "grpc-status: 5\n");
    CHECK_INT(pl__grpc_receive(g, f.bytes, f.size), 0);
    CHECK_INT(a.count, 1);
    CHECK_INT(b.count, 0);
    CHECK_INT(pl__grpc_open_calls(g), 1);
    drain(g);
    f.size = 0;
    put_headers(&f, id + 2, true, HEAD "grpc-status: 6\n");
    CHECK_INT(pl__grpc_receive(g, f.bytes, f.size), 0);
    CHECK_INT(c.reply.code, 6);
    pl__grpc_free(g);

    CASE("too many, too long")
    struct outcome many[GRPC_CALLS_MAX + 1];
    static char long_message[GRPC_REQUEST_BYTES_MAX + 1];
    g = session();
    CHECK_INT(
        pl__grpc_call(g, "/a/B", (struct pl_str){ long_message, sizeof long_message }, 1, done, &a),
        0);
    for (int i = 0; i < GRPC_CALLS_MAX; i++)
        CHECK(start(g, &many[i]) != 0);
    CHECK_INT(start(g, &many[GRPC_CALLS_MAX]), 0);
    pl__grpc_free(g);
}

/* --- hostile bytes ------------------------------------------------------------------------------ */

static void expect_broken(const char *name, const struct frames *f, int code, const char *error)
{
    struct outcome o;

    CASE("%s", name)
    struct pl_grpc *g = call_with(&o, f, -1);
    CHECK_INT(o.count, 1);
    CHECK_INT(o.reply.code, code);
    CHECK(!o.reply.from_peer);
    CHECK_STR(pl__str(o.message), error);
    CHECK_STR(pl__str(pl__grpc_error(g)), error);
    CHECK(!pl__grpc_usable(g));
    pl__grpc_free(g);
}

static void test_not_http2(void)
{
    static const struct pl_str answers[] = {
        PL_STR_INIT("HTTP/1.1 400 Bad Request\r\n\r\n"),
        PL_STR_INIT("\x15\x03\x01\x00\x02\x02\x46xxxxxxxxxx"), /* an alert of TLS */
        PL_STR_INIT("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
    };
    struct outcome o;

    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        CASE("not HTTP/2, %zu", i)
        struct pl_grpc *g = pl__grpc_new("node-1");
        start(g, &o);
        drain(g);
        CHECK_INT(pl__grpc_receive(g, answers[i].ptr, answers[i].len), -1);
        CHECK_STR(pl__str(o.message), "the answer is not HTTP/2");
        CHECK_INT(o.reply.code, 14);
        pl__grpc_free(g);
        CHECK_INT(o.count, 1);
    }
}

static void test_hostile(void)
{
    static const char rules[] = "the server broke the rules of HTTP/2";
    struct frames *f = calloc(1, sizeof *f);
    uint8_t block[4096];

    if (!f)
        abort();
    put_frame(f, SETTINGS, 0, 1, "", 0);
    expect_broken("SETTINGS on a stream", f, 14, rules);

    f->size = 0;
    put_frame(f, DATA, 0, 3, "x", 1);
    expect_broken("DATA on an idle stream", f, 14, rules);

    f->size = 0;
    put_frame(f, PUSH, END_HEADERS, 1, "\0\0\0\2\x88", 5);
    expect_broken("a push", f, 14, rules);

    f->size = 0;
    put_frame(f, HEADERS, END_HEADERS, 1, "\xff\xff\xff\xff\xff\xff", 6);
    expect_broken("headers that are no HPACK", f, 14, rules);

    f->size = 0;
    put_frame(f, HEADERS, 0, 1, "\x88", 1);
    put_frame(f, PING, 0, 0, "12345678", 8);
    expect_broken("a block of headers that is interrupted", f, 14, rules);

    f->size = 0;
    put(f, "\xff\xff\xff\0\0\0\0\0\1", 9);
    expect_broken("a frame of 16 MiB", f, 14, rules);

    f->size = 0;
    put_frame(f, HEADERS, 0, 1, "\x88", 1);
    for (int i = 0; i < 1000; i++)
        put_frame(f, CONT, 0, 1, "", 0);
    expect_broken("endless empty CONTINUATION", f, 14, rules);

    f->size = 0;
    memset(block, 'x', sizeof block);
    for (size_t at = 0, value = 200; at + 3 + 4 + value < sizeof block; at += 3 + 4 + value) {
        memcpy(block + at, "\0\4abcd", 6);
        block[at + 6] = 0x7f; /* 127 + 73 */
        block[at + 7] = 73;
        at++;
    }
    size_t used = (sizeof block / 208) * 208;
    put_frame(f, HEADERS, 0, 1, "\x88", 1);
    for (int i = 0; i < 6; i++)
        put_frame(f, CONT, 0, 1, block, used);
    expect_broken("endless headers", f, 8, "the headers of the answer are too long");

    f->size = 0;
    for (int i = 0; i < 2000; i++)
        put_frame(f, PING, 0, 0, "12345678", 8);
    expect_broken("a flood of PINGs", f, 14, rules);
    free(f);
}

/* --- nghttp2's server at the other end ---------------------------------------------------------- */

struct server {
    nghttp2_session *session;
    struct pl_grpc *client;
    char headers[1024];
    uint8_t body[64];
    size_t body_size;
    size_t reply_size, reply_sent; /* framed */
    int requests;
};

static int server_header(nghttp2_session *session_, const nghttp2_frame *frame, const uint8_t *name,
                         size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
                         void *user)
{
    struct server *s = user;
    size_t at = strlen(s->headers);

    (void)session_;
    (void)frame;
    (void)flags;
    snprintf(s->headers + at, sizeof s->headers - at, "%.*s: %.*s\n", (int)name_size,
             (const char *)name, (int)value_size, (const char *)value);
    return 0;
}

static int server_data(nghttp2_session *session_, uint8_t flags, int32_t stream_id,
                       const uint8_t *bytes, size_t size, void *user)
{
    struct server *s = user;

    (void)session_;
    (void)flags;
    (void)stream_id;
    if (size <= sizeof s->body - s->body_size) {
        memcpy(s->body + s->body_size, bytes, size);
        s->body_size += size;
    }
    return 0;
}

static nghttp2_nv nv(const char *name, const char *value)
{
    return (nghttp2_nv){ (uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
                         strlen(value), NGHTTP2_NV_FLAG_NONE };
}

static ssize_t server_body(nghttp2_session *session_, int32_t stream_id, uint8_t *room, size_t size,
                           uint32_t *flags, nghttp2_data_source *source, void *user)
{
    struct server *s = user;
    size_t message = s->reply_size - 5, left = s->reply_size - s->reply_sent;
    uint8_t prefix[5] = { 0, (uint8_t)(message >> 24), (uint8_t)(message >> 16),
                          (uint8_t)(message >> 8), (uint8_t)message };
    nghttp2_nv trailer = nv("grpc-status", "0");

    (void)source;
    if (size > left)
        size = left;
    memset(room, 'm', size);
    if (s->reply_sent == 0 && size >= 5)
        memcpy(room, prefix, 5);
    s->reply_sent += size;
    if (s->reply_sent == s->reply_size) {
        *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
        nghttp2_submit_trailer(session_, stream_id, &trailer, 1);
    }
    return (ssize_t)size;
}

static int server_frame(nghttp2_session *session_, const nghttp2_frame *frame, void *user)
{
    struct server *s = user;
    nghttp2_nv head[] = { nv(":status", "200"), nv("content-type", "application/grpc") };
    nghttp2_data_provider provider = { .read_callback = server_body };

    if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) &&
        (frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS)) {
        s->requests++;
        s->reply_sent = 0;
        nghttp2_submit_response(session_, frame->hd.stream_id, head, 2, &provider);
    }
    return 0;
}

static void server_new(struct server *s, size_t message_size)
{
    nghttp2_session_callbacks *callbacks = NULL;

    *s = (struct server){ .reply_size = message_size + 5, .client = pl__grpc_new("node-1") };
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, server_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, server_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, server_frame);
    nghttp2_session_server_new(&s->session, callbacks, s);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(s->session, NGHTTP2_FLAG_NONE, NULL, 0);
}

static void server_free(struct server *s)
{
    nghttp2_session_del(s->session);
    pl__grpc_free(s->client);
}

/* Carries bytes both ways until there are none. */
static void server_pump(struct server *s)
{
    const uint8_t *bytes = NULL;
    bool moved = true;

    while (moved) {
        size_t size;
        ssize_t back;
        moved = false;
        while ((size = pl__grpc_send(s->client, &bytes)) > 0) {
            CHECK_INT(nghttp2_session_mem_recv(s->session, bytes, size), size);
            moved = true;
        }
        while ((back = nghttp2_session_mem_send(s->session, &bytes)) > 0) {
            CHECK_INT(pl__grpc_receive(s->client, bytes, (size_t)back), 0);
            moved = true;
        }
    }
}

static void test_requests(void)
{
    struct outcome o = { 0 };
    struct server s;

    CASE("a request, as nghttp2's server reads it")
    server_new(&s, 3);
    CHECK_INT(start(s.client, &o), 1);
    server_pump(&s);
    CHECK_STR(pl__str(s.headers), ":method: POST\n:scheme: https\n"
                                  ":path: /etcdserverpb.Maintenance/Status\n:authority: node-1\n"
                                  "content-type: application/grpc\nte: trailers\n"
                                  "user-agent: grpc-c-plimsoll/" PL_VERSION "\n"
                                  "grpc-timeout: 15000m\n");
    CHECK_INT(s.body_size, 8);
    CHECK(memcmp(s.body, "\0\0\0\0\3xyz", 8) == 0);
    CHECK_INT(o.count, 1);
    CHECK_INT(o.reply.code, 0);
    CHECK(o.reply.from_peer);
    CHECK_INT(o.body_size, 3);
    CHECK_INT(o.body_first, 'm');

    CASE("a timeout of more than eight digits, and none")
    s.headers[0] = '\0';
    pl__grpc_call(s.client, "/a/B", PL_STR(""), UINT32_MAX, done, &o);
    server_pump(&s);
    CHECK(strstr(s.headers, "grpc-timeout: 4294967S\n") != NULL);
    s.headers[0] = '\0';
    pl__grpc_call(s.client, "/a/B", PL_STR(""), 0, done, &o);
    server_pump(&s);
    CHECK(strstr(s.headers, "grpc-timeout") == NULL);

    CASE("a thousand calls on one session")
    for (int i = 0; i < 1000; i++) {
        o.count = 0;
        CHECK(pl__grpc_call(s.client, "/a/B", PL_STR(""), 1, done, &o) > 0);
        server_pump(&s);
        CHECK_INT(o.count, 1);
    }
    server_free(&s);

    CASE("the longest reply, by way of flow control")
    server_new(&s, GRPC_REPLY_BYTES_MAX);
    start(s.client, &o);
    server_pump(&s);
    CHECK_INT(o.reply.code, 0);
    CHECK_INT(o.body_size, GRPC_REPLY_BYTES_MAX);
    CHECK_INT(o.body_last, 'm');
    server_free(&s);

    CASE("an early refusal of a request that the window holds back")
    struct frames *f = calloc(1, sizeof *f);
    static char message[1024];
    struct pl_grpc *g = session();
    if (!f)
        abort();
    put_frame(f, SETTINGS, 0, 0, "\0\4\0\0\0\0", 6); /* window 0 */
    CHECK_INT(pl__grpc_receive(g, f->bytes, f->size), 0);
    o = (struct outcome){ 0 };
    pl__grpc_call(g, "/a/B", (struct pl_str){ message, sizeof message }, 1, done, &o);
    drain(g);
    f->size = 0;
    put_headers(f, 1, true, HEAD "grpc-status: 12\n");
    CHECK_INT(pl__grpc_receive(g, f->bytes, f->size), 0);
    CHECK_INT(o.reply.code, 12);
    const uint8_t *bytes = NULL;
    CHECK_INT(pl__grpc_send(g, &bytes), 13);
    CHECK(bytes && bytes[3] == RST && bytes[12] == NGHTTP2_CANCEL);
    pl__grpc_free(g);
    free(f);
}

/* A remark: what a warm session costs between calls. malloc of a sanitizer says nothing. */
static void measure(void)
{
    enum { SESSIONS = 300 };
    static struct server servers[SESSIONS];
    struct outcome o = { 0 };

    for (int i = 0; i < SESSIONS; i++)
        server_new(&servers[i], 500);
    size_t before = mallinfo2().uordblks;
    for (int i = 0; i < SESSIONS; i++) {
        pl__grpc_free(servers[i].client);
        servers[i].client = NULL;
    }
    size_t fresh = before - mallinfo2().uordblks;
    for (int i = 0; i < SESSIONS; i++)
        server_free(&servers[i]);
    for (int i = 0; i < SESSIONS; i++) {
        server_new(&servers[i], 500);
        for (int call = 0; call < 3; call++)
            start(servers[i].client, &o);
        server_pump(&servers[i]);
    }
    before = mallinfo2().uordblks;
    for (int i = 0; i < SESSIONS; i++) {
        pl__grpc_free(servers[i].client);
        servers[i].client = NULL;
    }
    size_t used = before - mallinfo2().uordblks;
    for (int i = 0; i < SESSIONS; i++)
        server_free(&servers[i]);
    if (used)
        printf("remark: an idle session holds %zu bytes of heap, after three calls %zu\n",
               fresh / SESSIONS, used / SESSIONS);
}

int main(void)
{
    CASE("names of codes")
    CHECK_STR(pl__str(pl__grpc_code_name(0)), "OK");
    CHECK_STR(pl__str(pl__grpc_code_name(14)), "Unavailable");
    CHECK_STR(pl__str(pl__grpc_code_name(16)), "Unauthenticated");
    CHECK_STR(pl__str(pl__grpc_code_name(17)), "?");
    CHECK_STR(pl__str(pl__grpc_code_name(-1)), "?");
    test_replies();
    test_continue();
    test_resets();
    test_goaway();
    test_lost();
    test_cancel();
    test_not_http2();
    test_hostile();
    test_requests();
    measure();
    return test_end("grpc");
}
