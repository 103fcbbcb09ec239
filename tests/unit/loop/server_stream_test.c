/* The parts of the server that the playground's API needs: bodies, answers that are pulled, clients that go
 * away or do not read, and port-forwards. The clients are raw sockets in the same thread: the loop runs for a
 * moment, then what came is looked at. */
#include "test.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loop/listen.h"
#include "loop/server.h"
#include "loop/tunnel.h"

enum { BODY_MAX = 64 * 1024, HELD_MAX = 4 * BODY_MAX };

static struct pl_arena arena;
static struct pl_loop *loop;
static struct pl_server *server;

/* What the handler last saw. */
static char seen_target[256], seen_method[16];
static size_t seen_body;
static unsigned seen_sum;

/* The stream that is open. */
static struct {
    struct pl_server_call *call;
    struct pl_str text; /* what there is to read */
    bool over, cut;
    int closed_count;
    size_t read_bytes;
    size_t endless; /* bytes that are left to be made up */
} stream;

static struct {
    uint16_t port;
    const char *refuse;
    int closed_count;
    struct pl_tunnel *tunnel;
} forward;

static enum pl_server_stream_state stream_read(void *user, char *bytes, size_t max, size_t *count)
{
    size_t size = stream.text.len < max ? stream.text.len : max;

    (void)user;
    if (stream.cut)
        return SERVER_STREAM_CUT;
    if (stream.endless > 0) {
        memset(bytes, 'e', max);
        *count = max < stream.endless ? max : stream.endless;
        stream.endless -= *count;
        stream.read_bytes += *count;
        return SERVER_STREAM_MORE;
    }
    if (size == 0)
        return stream.over ? SERVER_STREAM_END : SERVER_STREAM_WAIT;
    memcpy(bytes, stream.text.ptr, size);
    stream.text.ptr += size;
    stream.text.len -= size;
    *count = size;
    return SERVER_STREAM_MORE;
}

static void stream_closed(void *user)
{
    (void)user;
    stream.closed_count++;
    stream.call = NULL;
}

static void tunnel_closed(void *user, struct pl_tunnel *tunnel)
{
    (void)user;
    CHECK(tunnel == forward.tunnel);
    forward.tunnel = NULL;
    forward.closed_count++;
}

static void handle_forward(struct pl_server_call *call)
{
    struct pl_tunnel_options options = { .port = 2379,
                                         .refuse = forward.refuse,
                                         .host = "127.0.0.1",
                                         .host_port = forward.port,
                                         .closed = tunnel_closed };
    const char *why = NULL;

    if (!pl__tunnel_wanted(call, &why))
        pl__server_answer(call, 400, NULL, pl__str(why));
    else
        forward.tunnel = pl__tunnel_open(loop, call, &options);
}

static void on_request(void *user, struct pl_server_call *call,
                       const struct pl_server_request *request)
{
    (void)user;
    snprintf(seen_target, sizeof seen_target, "%s", request->target);
    snprintf(seen_method, sizeof seen_method, "%s", request->method);
    seen_body = request->body.len;
    seen_sum = 0;
    for (size_t i = 0; i < request->body.len; i++)
        seen_sum = seen_sum * 31 + (unsigned char)request->body.ptr[i];
    if (strcmp(request->path, "/stream") == 0) {
        stream.call = call;
        pl__server_stream(call, 200, "application/json",
                          &(struct pl_server_stream){ stream_read, stream_closed, NULL });
    } else if (strcmp(request->path, "/forward") == 0) {
        handle_forward(call);
    } else if (strcmp(request->path, "/drop") == 0) {
        pl__server_drop(call);
    } else {
        pl__server_answer_header(call, "Retry-After", PL_STR("7"));
        pl__server_answer(call, 200, "text/x", PL_STR("fine"));
    }
}

static struct pl_str refusal(void *user, int status, struct pl_arena *a, const char **type)
{
    (void)user;
    if (status != 413)
        return PL_STR("not now");
    *type = "text/much";
    return pl__str_copy(a, PL_STR("too much"));
}

/* --- the loop, and clients ----------------------------------------------------------------------------- */

static void stop(uv_timer_t *timer)
{
    (void)timer;
    pl__loop_stop(loop);
}

static void free_timer(uv_handle_t *handle)
{
    free(handle);
}

static void run_for(uint64_t ms)
{
    uv_timer_t *timer = malloc(sizeof *timer);

    assert(timer);
    uv_update_time(pl__loop_uv(loop));
    uv_timer_init(pl__loop_uv(loop), timer);
    uv_timer_start(timer, stop, ms, 0);
    pl__loop_run(loop);
    uv_close((uv_handle_t *)timer, free_timer);
}

static int dial(uint16_t port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK_INT(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static void say(int fd, const char *text)
{
    CHECK_INT(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* All that came, waiting up to two seconds until `part` (nothing: the end) is in it. */
static struct pl_str hear(int fd, const char *part)
{
    static char text[1 << 20];
    size_t len = 0;

    for (int turn = 0; turn < 100; turn++) {
        ssize_t got;
        while ((got = recv(fd, text + len, sizeof text - len, MSG_DONTWAIT)) > 0)
            len += (size_t)got;
        struct pl_str all = { text, len };
        if (part ? pl__str_contains(all, pl__str(part)) : got == 0)
            return all;
        run_for(20);
    }
    test_fail(__FILE__, __LINE__, "waited for %s in \"%.*s\"", part ? part : "the end",
              (int)(len < 300 ? len : 300), text);
    return (struct pl_str){ text, len };
}

#define CHECK_HAS(text, part) CHECK(pl__str_contains((text), PL_STR(part)))

/* --- cases ------------------------------------------------------------------------------------------------ */

static void test_bodies(void)
{
    static char body[BODY_MAX + 1];
    char head[128];
    unsigned sum = 0;
    int fd = dial(pl__server_port(server));

    CASE("a body, the target as it came, a header of the answer");
    say(fd, "PATCH /a%2Fb?x=%20y HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhe");
    run_for(20);
    say(fd, "llo");
    struct pl_str got = hear(fd, "fine");
    CHECK_HAS(got, "Retry-After: 7\r\n");
    CHECK_STR(pl__str(seen_target), "/a%2Fb?x=%20y");
    CHECK_STR(pl__str(seen_method), "PATCH");
    CHECK_INT(seen_body, 5);
    CASE("chunks, on the same connection");
    say(fd, "POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
            "chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
    hear(fd, "fine");
    CHECK_INT(seen_body, 5);
    CASE("as long as it may be");
    for (size_t i = 0; i < sizeof body; i++) {
        body[i] = (char)('a' + i % 26);
        if (i < BODY_MAX)
            sum = sum * 31 + (unsigned char)body[i];
    }
    snprintf(head, sizeof head, "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n",
             BODY_MAX);
    say(fd, head);
    CHECK_INT(send(fd, body, BODY_MAX, 0), BODY_MAX);
    hear(fd, "fine");
    CHECK_INT(seen_body, BODY_MAX);
    CHECK(seen_sum == sum);
    CASE("one byte longer");
    snprintf(head, sizeof head, "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n",
             BODY_MAX + 1);
    seen_body = 0;
    say(fd, head);
    CHECK_INT(send(fd, body, sizeof body, 0), sizeof body);
    got = hear(fd, "too much");
    CHECK_HAS(got, " 413 ");
    CHECK_HAS(got, "text/much");
    CHECK_INT(seen_body, 0);
    CASE("the connection lives on");
    say(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    hear(fd, "fine");
    CASE("far longer: refused before it was sent");
    say(fd, "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n");
    CHECK_HAS(hear(fd, "too much"), " 413 ");
    close(fd);
    CASE("dropped without a word");
    fd = dial(pl__server_port(server));
    say(fd, "GET /drop HTTP/1.1\r\nHost: x\r\n\r\n");
    CHECK_INT(hear(fd, NULL).len, 0);
    close(fd);
}

static void test_bad_requests(void)
{
    static const struct {
        const char *what, *request, *want;
    } cases[] = {
        { "no Host", "GET / HTTP/1.1\r\n\r\n", " 400 " },
        { "no Host, but HTTP/1.0", "GET / HTTP/1.0\r\n\r\n", "fine" },
        { "an encoding that nobody knows",
          "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\nabc", " 501 " },
        { "a chunk that is none",
          "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nabc\r\n",
          " 400 " },
        { "a chunk without end",
          "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
          "chunked\r\n\r\nfffffffffffffffff\r\nabc\r\n",
          " 413 " },
        { "a negative length", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
          " 400 " },
        { "a length that is no number", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n",
          " 400 " },
        { "a version that is none", "GET / HTTP/7.1\r\nHost: x\r\n\r\n", " 505 " },
        { "requests in a row",
          "GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\n",
          "fineHTTP/1.1 200" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int fd = dial(pl__server_port(server));
        CASE("%s", cases[i].what);
        say(fd, cases[i].request);
        hear(fd, cases[i].want);
        close(fd);
    }
    CASE("half of a request, and no more to come");
    int fd = dial(pl__server_port(server));
    say(fd, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{");
    shutdown(fd, SHUT_WR);
    CHECK_INT(hear(fd, NULL).len, 0);
    close(fd);
    CASE("all of it, and no more to come");
    fd = dial(pl__server_port(server));
    say(fd, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}");
    shutdown(fd, SHUT_WR);
    hear(fd, "fine");
    close(fd);
    CASE("chunks without end are taken for a while");
    static char chunk[BODY_MAX + 16];
    snprintf(chunk, sizeof chunk, "%x\r\n%0*d\r\n", BODY_MAX, BODY_MAX, 0);
    fd = dial(pl__server_port(server));
    say(fd, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    int taken = 0;
    while (taken < 1000 && send(fd, chunk, strlen(chunk), MSG_NOSIGNAL | MSG_DONTWAIT) > 0) {
        taken++;
        run_for(1);
    }
    CHECK(taken > 16 && taken < 200);
    close(fd);
}

/* All but the last byte of a body. */
static int body_begin(void)
{
    static char body[BODY_MAX];
    char head[128];
    int fd = dial(pl__server_port(server));

    memset(body, 'b', sizeof body);
    snprintf(head, sizeof head, "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n",
             BODY_MAX);
    say(fd, head);
    CHECK_INT(send(fd, body, BODY_MAX - 1, 0), BODY_MAX - 1);
    return fd;
}

static void test_held(void)
{
    enum { COUNT = HELD_MAX / BODY_MAX };
    int fds[COUNT + 1];

    CASE("as many bodies as may be held, and one more");
    for (int i = 0; i < COUNT + 1; i++) {
        fds[i] = body_begin();
        run_for(20);
    }
    say(fds[COUNT], "!");
    struct pl_str got = hear(fds[COUNT], "not now");
    CHECK_HAS(got, " 429 ");
    CHECK_HAS(got, "Retry-After: 1\r\n");
    CASE("an answer that there is no room for");
    int fd = dial(pl__server_port(server));
    say(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    hear(fd, "not now");
    CASE("what was begun is finished");
    say(fds[0], "!");
    hear(fds[0], "fine");
    CHECK_INT(seen_body, BODY_MAX);
    say(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    hear(fd, "fine");
    close(fd);
    for (int i = 0; i < COUNT + 1; i++)
        close(fds[i]);
    CASE("clients that leave in the middle of a body leave nothing");
    for (int i = 0; i < COUNT; i++)
        close(body_begin()); /* its end comes together with its last bytes */
    run_for(100);
    fd = body_begin();
    run_for(20);
    say(fd, "!");
    hear(fd, "fine");
    close(fd);
}

static int stream_open(void)
{
    int fd = dial(pl__server_port(server));

    memset(&stream, 0, sizeof stream);
    say(fd, "GET /stream?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n");
    CHECK_HAS(hear(fd, "\r\n\r\n"), "Transfer-Encoding: chunked");
    return fd;
}

static void stream_give(struct pl_str text)
{
    stream.text = text;
    if (stream.call)
        pl__server_stream_wake(stream.call);
}

static void test_streams(void)
{
    int fd = stream_open();

    CASE("headers come before there is anything to read");
    CHECK(stream.call != NULL);
    CASE("what comes later");
    stream_give(PL_STR("{\"one\":1}\n"));
    CHECK_HAS(hear(fd, "one"), "\r\n{\"one\":1}\n\r\n");
    run_for(50);
    stream_give(PL_STR("{\"two\":2}\n"));
    hear(fd, "two");
    CASE("a proper end");
    stream.over = true;
    pl__server_stream_wake(stream.call);
    hear(fd, "0\r\n\r\n");
    CHECK_INT(stream.closed_count, 1);
    CASE("and the next request on that connection");
    say(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    hear(fd, "fine");
    close(fd);
    CASE("cut: no proper end");
    fd = stream_open();
    stream.cut = true;
    pl__server_stream_wake(stream.call);
    CHECK(!pl__str_contains(hear(fd, NULL), PL_STR("0\r\n\r\n")));
    CHECK_INT(stream.closed_count, 1);
    close(fd);
    CASE("a client that leaves while nothing is said");
    fd = stream_open();
    run_for(50);
    CHECK_INT(stream.closed_count, 0);
    close(fd);
    run_for(50);
    CHECK_INT(stream.closed_count, 1);
    CASE("a client that does not read holds up only itself");
    fd = stream_open();
    stream.endless = (size_t)1 << 30;
    pl__server_stream_wake(stream.call);
    run_for(100);
    CHECK(stream.read_bytes > 0 && stream.read_bytes < (16 << 20));
    size_t before = stream.read_bytes;
    run_for(50);
    CHECK_INT(stream.read_bytes, before);
    int other = dial(pl__server_port(server));
    say(other, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    hear(other, "fine");
    close(other);
    close(fd);
    run_for(50);
    CHECK_INT(stream.closed_count, 1);
}

static void test_many(void)
{
    enum { COUNT = 200 };
    int fds[COUNT], closed = 0;

    CASE("%d streams at once", COUNT);
    for (int i = 0; i < COUNT; i++) {
        fds[i] = dial(pl__server_port(server));
        memset(&stream, 0, sizeof stream);
        say(fds[i], "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
        run_for(1);
    }
    run_for(100);
    memset(&stream, 0, sizeof stream);
    for (int i = 0; i < COUNT; i++)
        close(fds[i]);
    for (int turn = 0; turn < 50 && stream.closed_count < COUNT; turn++)
        run_for(20);
    closed = stream.closed_count;
    CHECK_INT(closed, COUNT);
}

#define UPGRADE                                                                          \
    "GET /forward HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: keep-alive, " \
    "Upgrade\r\n"                                                                        \
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
#define V4 "Sec-WebSocket-Protocol: v4.channel.k8s.io\r\n\r\n"
#define PORTS "\x82\x03\x00\x4b\x09\x82\x03\x01\x4b\x09"

static struct pl_str frames(struct pl_str got)
{
    for (size_t i = 0; i + 4 <= got.len; i++)
        if (memcmp(got.ptr + i, "\r\n\r\n", 4) == 0)
            return (struct pl_str){ got.ptr + i + 4, got.len - i - 4 };
    return PL_STR("");
}

static void test_tunnel(void)
{
    uint16_t port = 0;
    struct pl_error *err = NULL;
    int pod_listener = pl__listen_open("127.0.0.1:0", &port, &arena, &err);
    static const char hello[] = "\x82\x83\0\0\0\0\0hi", bye[] = "\x88\x80\0\0\0\0";
    int fd = dial(pl__server_port(server));

    CASE("an upgrade that is none");
    say(fd, "GET /forward HTTP/1.1\r\nHost: x\r\n\r\n");
    CHECK_HAS(hear(fd, "Upgrade request required"), " 400 ");
    CASE("another protocol");
    say(fd, UPGRADE "Sec-WebSocket-Protocol: SPDY/3.1+portforward.k8s.io\r\n\r\n");
    CHECK_HAS(hear(fd, "v4.channel.k8s.io"), " 400 ");
    CASE("the handshake, and bytes both ways");
    forward.port = port;
    say(fd, UPGRADE V4);
    struct pl_str got = hear(fd, "\x01\x4b\x09");
    CHECK_HAS(got, "HTTP/1.1 101 ");
    CHECK_HAS(got, "Sec-WebSocket-Accept: ICX+Yqv66kxgM0FcWaLWlFLwTAI=\r\n");
    CHECK_INT(frames(got).len, sizeof PORTS - 1);
    CHECK_INT(send(fd, hello, sizeof hello - 1, 0), sizeof hello - 1);
    run_for(50);
    int pod = accept(pod_listener, NULL, NULL);
    CHECK(pod >= 0);
    CHECK_STR(hear(pod, "hi"), "hi");
    say(pod, "there");
    CHECK_HAS(hear(fd, "there"), "\x82\x06");
    CASE("the client ends it");
    CHECK_INT(send(fd, bye, sizeof bye - 1, 0), sizeof bye - 1);
    CHECK_HAS(hear(fd, NULL), "\x88\x02\x03\xe8");
    CHECK_INT(hear(pod, NULL).len, 0);
    CHECK_INT(forward.closed_count, 1);
    close(fd);
    close(pod);
    CASE("the pod ends it, a large answer is not cut short");
    fd = dial(pl__server_port(server));
    say(fd, UPGRADE V4);
    hear(fd, "\x01\x4b\x09");
    run_for(50);
    pod = accept(pod_listener, NULL, NULL);
    static char large[300 * 1000];
    memset(large, 'L', sizeof large);
    large[sizeof large - 1] = '!';
    for (size_t at = 0; at < sizeof large;) {
        ssize_t sent = send(pod, large + at, sizeof large - at, MSG_DONTWAIT);
        at += sent > 0 ? (size_t)sent : 0;
        run_for(1);
    }
    close(pod);
    got = hear(fd, NULL);
    CHECK_HAS(got, "!");
    CHECK(got.len > sizeof large);
    close(fd);
    CASE("nobody listens");
    close(pod_listener);
    fd = dial(pl__server_port(server));
    say(fd, UPGRADE V4);
    CHECK_HAS(hear(fd, NULL), "error forwarding port 2379 to pod: connection refused");
    close(fd);
    CASE("no way there");
    forward.refuse = "no route to host";
    fd = dial(pl__server_port(server));
    say(fd, UPGRADE V4);
    CHECK_HAS(hear(fd, NULL), "to pod: no route to host");
    close(fd);
    run_for(20);
    CHECK_INT(forward.closed_count, 4);
    CASE("it ends, and the client does not go");
    fd = dial(pl__server_port(server));
    say(fd, UPGRADE V4);
    hear(fd, NULL);
    run_for(500);
    CHECK_INT(forward.closed_count, 4);
    run_for(2000);
    CHECK_INT(forward.closed_count, 5);
    close(fd);
}

/* A pod that does not read, and a client that sends until nobody takes it any more. */
static void test_full_tunnel(void)
{
    enum { FRAME = 60000, FRAMES_MAX = 1000 };
    static char frame[8 + 1 + FRAME] = "\x82\xfe"; /* masked with 0, on channel 0 */
    struct linger at_once = { .l_onoff = 1 };
    uint16_t port = 0;
    struct pl_error *err = NULL;
    int pod_listener = pl__listen_open("127.0.0.1:0", &port, &arena, &err), small = 4096;
    int fd = dial(pl__server_port(server)), before = forward.closed_count, stuck = 0;
    size_t at = 0;

    CASE("a client leaves while nothing can be read from it");
    CHECK_INT(setsockopt(pod_listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof small), 0);
    frame[2] = (char)((FRAME + 1) >> 8);
    frame[3] = (char)((FRAME + 1) & 255);
    forward.refuse = NULL;
    forward.port = port;
    say(fd, UPGRADE V4);
    hear(fd, "\x01\x4b\x09");
    for (size_t sent = 0; sent < sizeof frame * FRAMES_MAX && stuck < 20;) {
        ssize_t took = send(fd, frame + at, sizeof frame - at, MSG_DONTWAIT);
        stuck = took > 0 ? 0 : stuck + 1;
        sent += took > 0 ? (size_t)took : 0;
        at = (at + (took > 0 ? (size_t)took : 0)) % sizeof frame;
        run_for(2);
    }
    CHECK_INT(stuck, 20);
    CHECK_INT(forward.closed_count, before);
    CHECK_INT(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
    close(fd);
    run_for(100);
    CHECK_INT(forward.closed_count, before + 1);
    close(pod_listener);
}

static void test_closing(void)
{
    int fd = stream_open(), ws = dial(pl__server_port(server));
    uint16_t port = 0;
    struct pl_error *err = NULL;
    int pod_listener = pl__listen_open("127.0.0.1:0", &port, &arena, &err);

    CASE("the server closes with a stream and a tunnel open");
    forward.refuse = NULL;
    forward.port = port;
    forward.closed_count = 0;
    say(ws, UPGRADE V4);
    hear(ws, "\x01\x4b\x09");
    pl__server_close(server);
    run_for(100);
    CHECK_INT(stream.closed_count, 1);
    CHECK_INT(forward.closed_count, 1);
    CHECK_INT(hear(fd, NULL).len, 0);
    close(fd);
    close(ws);
    close(pod_listener);
}

static void test_loopback(void)
{
    static const struct {
        const char *text;
        bool loopback;
    } cases[] = {
        { "127.0.0.1:0", true },         { "127.9.9.9:80", true }, { "[::1]:1", true },
        { "localhost:8", true },         { ":8080", false },       { "0.0.0.0:80", false },
        { "127.example.org:80", false }, { "10.0.0.1:1", false },  { "[::]:1", false },
        { "nonsense", false },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CASE("is %s loopback?", cases[i].text);
        CHECK(pl__listen_is_loopback(cases[i].text) == cases[i].loopback);
    }
}

static void test_host(void)
{
    static const struct {
        const char *host;
        bool loopback;
    } cases[] = {
        { "127.0.0.1", true },
        { "127.0.0.1:8080", true },
        { "localhost", true },
        { "LOCALHOST:1", true },
        { "[::1]", true },
        { "[::1]:8080", true },
        { "", false },
        { "example.org", false },
        { "example.org:80", false },
        { "127.0.0.1.nip.io", false },
        { "localhost.evil.example:80", false },
        { "0.0.0.0:80", false },
        { "[::]:80", false },
        { "10.0.0.1", false },
        { "127.0.0.1:x", false },
        { "evil.example:80@127.0.0.1", false },
        { ":80", false },
    };
    char longest[400];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CASE("does Host: %s mean this machine?", cases[i].host);
        CHECK(pl__host_is_loopback(cases[i].host) == cases[i].loopback);
    }
    CASE("a Host without end");
    memset(longest, 'l', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    CHECK(!pl__host_is_loopback(longest));
}

int main(void)
{
    struct pl_server_options options = { .listen = "127.0.0.1:0",
                                         .handle = on_request,
                                         .refusal = refusal,
                                         .body_bytes_max = BODY_MAX,
                                         .held_bytes_max = HELD_MAX,
                                         .connections_max = 300,
                                         .upgrades = true };
    struct pl_error *err = NULL;

    pl__arena_init(&arena, NULL, 0);
    loop = pl__loop_new();
    CASE("opened");
    CHECK_INT(pl__server_open(loop, &options, &arena, &server, &err), 0);
    test_loopback();
    test_host();
    test_bodies();
    test_bad_requests();
    test_held();
    test_streams();
    test_many();
    test_tunnel();
    test_full_tunnel();
    test_closing();
    pl__loop_free(loop);
    pl__arena_release(&arena);
    return test_end("server_stream");
}
