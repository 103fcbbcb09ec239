/* The small server: answers at once and later, over TLS and without, and what it refuses. The client
 * side is our own API client where that can say it, and raw sockets where it cannot. */
#include "test.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "loop/kube.h"
#include "loop/kube_tls.h"
#include "loop/server.h"

static struct pl_arena arena;
static struct pl_loop *loop;
static struct pl_server_call *later; /* a call that waits for its answer */
static int gone_count, handled_count;
static char seen_authorization[256];

static void on_gone(void *user, struct pl_server_call *call)
{
    (void)user;
    CHECK(call == later);
    CHECK_INT(*(int *)pl__server_call_get(call), 42);
    later = NULL;
    gone_count++;
}

static void on_request(void *user, struct pl_server_call *call,
                       const struct pl_server_request *request)
{
    static int data = 42;

    (void)user;
    handled_count++;
    snprintf(seen_authorization, sizeof seen_authorization, "%s",
             request->authorization ? request->authorization : "(none)");
    if (strcmp(request->path, "/healthz") == 0) {
        pl__server_answer(call, 200, NULL, PL_STR("ok"));
    } else if (strcmp(request->path, "/later") == 0) {
        later = call;
        pl__server_call_set(call, &data);
    } else if (strcmp(request->path, "/large") == 0) {
        static char large[1000 * 1000];
        memset(large, 'x', sizeof large);
        pl__server_answer(call, 200, "text/x-large", (struct pl_str){ large, sizeof large });
    } else if (strcmp(request->path, "/empty") == 0) {
        pl__server_answer(call, 204, NULL, (struct pl_str){ 0 });
    } else {
        pl__server_answer(call, 404, NULL, PL_STR("no such page\n"));
    }
}

/* --- driving the loop -------------------------------------------------------------------------------- */

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

struct got {
    int done_count, status;
    enum pl_kube_failure failure;
    char error[256], content_type[64], body[256];
    size_t body_size;
};

static void on_done(void *user, const struct pl_kube_answer *answer)
{
    struct got *got = user;

    got->done_count++;
    got->status = answer->status;
    got->failure = answer->failure;
    got->body_size = answer->body.len;
    snprintf(got->error, sizeof got->error, "%.*s", PL_STR_ARG(answer->error));
    snprintf(got->content_type, sizeof got->content_type, "%.*s", PL_STR_ARG(answer->content_type));
    snprintf(got->body, sizeof got->body, "%.*s", PL_STR_ARG(answer->body));
    pl__loop_stop(loop);
}

static void start(struct got *got, struct pl_kube *kube, const char *method, const char *path,
                  const char *body)
{
    *got = (struct got){ 0 };
    pl__kube_send(kube, &(struct pl_kube_request){ .method = method,
                                                   .path = path,
                                                   .body = pl__str(body),
                                                   .timeout_ms = 5000,
                                                   .done = on_done,
                                                   .user = got });
}

static void get(struct got *got, struct pl_kube *kube, const char *method, const char *path,
                const char *body)
{
    start(got, kube, method, path, body);
    run_for(6000);
    CHECK_INT(got->done_count, 1);
    if (got->failure != KUBE_OK)
        test_fail(__FILE__, __LINE__, "%s %s: %s", method, path, got->error);
}

static struct pl_server *open_server(struct pl_server_options options)
{
    struct pl_server *server = NULL;
    struct pl_error *err = NULL;

    options.handle = on_request;
    options.gone = on_gone;
    if (!options.listen)
        options.listen = "127.0.0.1:0";
    if (pl__server_open(loop, &options, &arena, &server, &err) < 0) {
        test_fail(__FILE__, __LINE__, "%s", pl__error_text(&arena, err).ptr);
        exit(test_end("server"));
    }
    CHECK(pl__server_port(server) > 0);
    return server;
}

static struct pl_kube *open_client(const struct pl_server *server, bool tls, struct pl_str ca)
{
    struct pl_kube_config config = {
        .server = pl__str_format(&arena, "%s://127.0.0.1:%u", tls ? "https" : "http",
                                 pl__server_port(server)),
        .ca_pem = ca,
        .insecure_skip_tls_verify = tls && ca.len == 0,
        .token = PL_STR("t0ken"),
    };
    struct pl_error *err = NULL;
    struct pl_kube *kube = NULL;

    CHECK_INT(pl__kube_open(loop, &config, NULL, &arena, &kube, &err), 0);
    assert(kube);
    return kube;
}

static void test_answers(bool tls, struct pl_str cert, struct pl_str key)
{
    const char *how = !tls ? "plain" : cert.len ? "TLS, own certificate" : "TLS, self-signed";
    struct pl_server *server =
        open_server((struct pl_server_options){ .tls = tls, .cert_pem = cert, .key_pem = key });
    struct pl_kube *kube = open_client(server, tls, cert);
    struct got got, second;

    CASE("%s: an answer at once", how);
    get(&got, kube, "GET", "/healthz", NULL);
    CHECK_INT(got.status, 200);
    CHECK_STR(pl__str(got.body), "ok");
    CHECK_STR(pl__str(got.content_type), "text/plain; charset=utf-8");
    CHECK_STR(pl__str(seen_authorization), tls ? "Bearer t0ken" : "(none)");
    CASE("%s: not found, empty, large, HEAD", how);
    get(&got, kube, "GET", "/nothing?x=/healthz", NULL);
    CHECK_INT(got.status, 404);
    get(&got, kube, "GET", "/empty", NULL);
    CHECK_INT(got.status, 204);
    get(&got, kube, "GET", "/large", NULL);
    CHECK_INT(got.body_size, 1000000);
    CHECK_STR(pl__str(got.content_type), "text/x-large");
    get(&got, kube, "HEAD", "/healthz", NULL);
    CHECK_INT(got.status, 200);
    CASE("%s: a body is refused", how);
    get(&got, kube, "POST", "/healthz", "{}");
    CHECK_INT(got.status, 413);
    CASE("%s: an answer later, others go on meanwhile", how);
    start(&got, kube, "GET", "/later", NULL);
    run_for(100);
    CHECK_INT(got.done_count, 0);
    CHECK(later != NULL);
    get(&second, kube, "GET", "/healthz", NULL);
    CHECK_INT(second.status, 200);
    if (later)
        pl__server_answer(later, 201, "text/later", PL_STR("here it is"));
    later = NULL;
    run_for(3000);
    CHECK_INT(got.status, 201);
    CHECK_STR(pl__str(got.body), "here it is");
    CASE("%s: closed with a call open", how);
    gone_count = 0;
    start(&got, kube, "GET", "/later", NULL);
    run_for(100);
    CHECK(later != NULL);
    pl__server_close(server);
    run_for(300);
    CHECK_INT(gone_count, 1);
    CHECK_INT(got.done_count, 1);
    pl__kube_close(kube);
    run_for(10);
}

static void test_expiry(void)
{
    struct pl_server *server = open_server((struct pl_server_options){ .answer_timeout_ms = 200 });
    struct pl_kube *kube = open_client(server, false, (struct pl_str){ 0 });
    struct got got, second;

    CASE("an answer that does not come in time");
    gone_count = 0;
    get(&got, kube, "GET", "/later", NULL);
    CHECK_INT(got.status, 503);
    CHECK_INT(gone_count, 1);
    CHECK(later == NULL);
    CASE("and the server goes on");
    get(&second, kube, "GET", "/healthz", NULL);
    CHECK_INT(second.status, 200);
    pl__kube_close(kube);
    pl__server_close(server);
    run_for(10);
}

/* --- raw sockets ---------------------------------------------------------------------------------- */

static int dial(uint16_t port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert(fd >= 0);
    CHECK(connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

/* What came so far: bytes, 0 for a closed connection, -1 for nothing. */
static ssize_t look(int fd, char *room, size_t size)
{
    ssize_t got = recv(fd, room, size - 1, 0);

    room[got > 0 ? got : 0] = '\0';
    return got < 0 && errno != EAGAIN ? 0 : got;
}

static void test_hostile_clients(void)
{
    struct pl_server *server =
        open_server((struct pl_server_options){ .timeout_s = 1, .connections_max = 5 });
    uint16_t port = pl__server_port(server);
    char room[512];

    CASE("garbage");
    int fd = dial(port);
    CHECK(send(fd, "\x16\x03\x01 nonsense\r\n\r\n", 15, MSG_NOSIGNAL) > 0);
    run_for(100);
    ssize_t got = look(fd, room, sizeof room);
    CHECK(got == 0 || strstr(room, " 400 "));
    close(fd);
    CASE("a client that says nothing is hung up on");
    fd = dial(port);
    run_for(2500);
    CHECK_INT(look(fd, room, sizeof room), 0);
    close(fd);
    CASE("headers without end");
    fd = dial(port);
    CHECK(send(fd, "GET /healthz HTTP/1.1\r\nHost: x\r\n", 32, MSG_NOSIGNAL) > 0);
    for (int i = 0; i < 200; i++) {
        char line[1024];
        memset(line, 'h', sizeof line);
        memcpy(line, "X: ", 3);
        memcpy(line + sizeof line - 2, "\r\n", 2);
        (void)send(fd, line, sizeof line, MSG_NOSIGNAL);
        if (i % 20 == 0)
            run_for(5);
    }
    run_for(100);
    got = look(fd, room, sizeof room);
    CHECK(got == 0 || strstr(room, " 431 ") || strstr(room, " 414 ") || strstr(room, " 413 "));
    close(fd);
    CASE("too many connections");
    int fds[12], open = 0;
    for (size_t i = 0; i < 12; i++) {
        fds[i] = dial(port);
        (void)send(fds[i], "GET /later HTTP/1.1\r\nHost: x\r\n", 31, MSG_NOSIGNAL);
        run_for(5);
    }
    run_for(100);
    for (size_t i = 0; i < 12; i++)
        open += look(fds[i], room, sizeof room) != 0;
    printf("    %d of 12 connections are held\n", open);
    for (size_t i = 0; i < 12; i++)
        close(fds[i]);
    run_for(50);
    CASE("and the server goes on");
    struct pl_kube *kube = open_client(server, false, (struct pl_str){ 0 });
    struct got answer;
    get(&answer, kube, "GET", "/healthz", NULL);
    CHECK_INT(answer.status, 200);
    pl__kube_close(kube);
    pl__server_close(server);
    run_for(10);
}

static void open_fails(const char *listen, const char *want)
{
    struct pl_server_options options = { .listen = listen, .handle = on_request };
    struct pl_server *server = NULL;
    struct pl_error *err = NULL;

    CASE("listen on %s", listen);
    CHECK(pl__server_open(loop, &options, &arena, &server, &err) < 0);
    if (err)
        CHECK_STR(pl__error_text(&arena, err), want);
}

static void test_listen(void)
{
    struct pl_server *server = open_server((struct pl_server_options){ .listen = ":0" });
    struct pl_kube *kube = open_client(server, false, (struct pl_str){ 0 });
    struct got got;

    CASE("all addresses");
    get(&got, kube, "GET", "/healthz", NULL);
    CHECK_INT(got.status, 200);
    const char *taken = pl__str_format(&arena, ":%u", pl__server_port(server)).ptr;
    open_fails(taken, pl__str_format(&arena, "listen on %s: Address already in use", taken).ptr);
    open_fails("8443", "listen on 8443: not HOST:PORT");
    open_fails(":70000", "listen on :70000: not HOST:PORT");
    open_fails("x:", "listen on x:: not HOST:PORT");
    open_fails("nowhere.invalid:1", "listen on nowhere.invalid:1: no such address");
    pl__kube_close(kube);
    pl__server_close(server);
    run_for(10);

    CASE("a certificate that cannot be used");
    struct pl_server_options options = { .listen = "127.0.0.1:0",
                                         .tls = true,
                                         .handle = on_request,
                                         .cert_pem = PL_STR("x"),
                                         .key_pem = PL_STR("y") };
    struct pl_error *err = NULL;
    CHECK(pl__server_open(loop, &options, &arena, &server, &err) < 0);
    CHECK(err && pl__str_starts_with(pl__error_text(&arena, err), PL_STR("serving certificate: ")));
}

int main(void)
{
    struct pl_str cert, key;
    struct pl_error *err = NULL;

    setvbuf(stdout, NULL, _IOLBF, 0);
    pl__arena_init(&arena, NULL, 0);
    loop = pl__loop_new();
    CASE("a self-signed certificate");
    CHECK_INT(pl__tls_self_signed(&arena, &cert, &key, &err), 0);
    CHECK_INT(pl__tls_check_pair(cert, key, &arena, &err), 0);
    test_answers(false, (struct pl_str){ 0 }, (struct pl_str){ 0 });
    test_answers(true, (struct pl_str){ 0 }, (struct pl_str){ 0 });
    test_answers(true, cert, key);
    test_expiry();
    test_hostile_clients();
    test_listen();
    CASE("the loop ends");
    pl__loop_free(loop);
    pl__arena_release(&arena);
    return test_end("server");
}
