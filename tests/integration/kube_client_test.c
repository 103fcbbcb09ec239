/* The API client against a server that does everything wrong (hostile/main.go).
 *
 *     kube_client_test DIRECTORY       where the server has put its certificates and "ports"
 *     kube_client_test DIRECTORY bench     measures
 *
 * kube_client_test.sh starts the server. Times are shortened by options; the real ones are checked
 * with `slow` in place of `bench`. */
#include "test.h"

#include <assert.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/secret.h"
#include "loop/files.h"
#include "loop/kube.h"
#include "loop/kube_config.h"

enum { WAIT_MS_MAX = 20 * 1000, EVENTS_MS_MAX = 4 * 1000, ASKS_MAX = 400 };

static const char *directory;
static struct pl_arena arena;
static struct pl_loop *loop;

/* One request and what came of it. */
struct ask {
    struct pl_kube *kube;
    bool *counts_down; /* unused asks are zero */
    enum pl_kube_failure failure;
    int done_count, status, retry_after_s;
    char error[512], content_type[128];
    char *body; /* or what a stream delivered */
    size_t body_size, chunk_count;
    size_t expected; /* bytes of a stream: when no ask lacks any the loop stops */
    uint64_t started_ms, first_ms, done_ms;
    bool close_in_chunk, cancel_in_chunk, again_in_done, within_send, keep_bytes;
    uint64_t id;
};

static int waiting; /* asks without `done` */
static int lacking; /* streams with fewer bytes than `expected` */
static bool timed_out;

static uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* --- driving the loop ------------------------------------------------------------------------------ */

static void too_late(uv_timer_t *timer)
{
    (void)timer;
    timed_out = true;
    pl__loop_stop(loop);
}

static void run_for(uint64_t ms)
{
    uv_timer_t *timer = malloc(sizeof *timer);

    assert(timer);
    uv_timer_init(pl__loop_uv(loop), timer);
    uv_update_time(pl__loop_uv(loop));
    uv_timer_start(timer, too_late, ms, 0);
    timed_out = false;
    pl__loop_run(loop);
    uv_close((uv_handle_t *)timer, (uv_close_cb)(void (*)(void))free);
    uv_run(pl__loop_uv(loop), UV_RUN_NOWAIT);
}

static void run_all(void)
{
    if (waiting > 0)
        run_for(WAIT_MS_MAX);
    if (waiting > 0) {
        test_fail(__FILE__, __LINE__, "%d requests without an end after %d ms", waiting,
                  WAIT_MS_MAX);
        waiting = 0;
    }
}

static void on_chunk(void *user, const char *bytes, size_t size)
{
    struct ask *ask = user;

    if (!ask->first_ms)
        ask->first_ms = now_ms();
    CHECK(ask->done_count == 0);
    ask->chunk_count++;
    ask->body = realloc(ask->body, ask->body_size + size + 1);
    assert(ask->body);
    memcpy(ask->body + ask->body_size, bytes, size);
    ask->body_size += size;
    ask->body[ask->body_size] = '\0';
    if (ask->expected && ask->body_size == ask->expected && --lacking == 0)
        pl__loop_stop(loop);
    if (ask->cancel_in_chunk)
        pl__kube_cancel(ask->kube, ask->id);
    if (ask->close_in_chunk)
        pl__kube_close(ask->kube);
}

static void on_done(void *user, const struct pl_kube_answer *answer)
{
    struct ask *ask = user;

    CHECK(!ask->within_send);
    ask->done_count++;
    ask->done_ms = now_ms();
    ask->failure = answer->failure;
    ask->status = answer->status;
    ask->retry_after_s = answer->retry_after_s;
    snprintf(ask->error, sizeof ask->error, "%.*s", PL_STR_ARG(answer->error));
    snprintf(ask->content_type, sizeof ask->content_type, "%.*s", PL_STR_ARG(answer->content_type));
    if (answer->body.len) {
        free(ask->body);
        ask->body = malloc(answer->body.len + 1);
        assert(ask->body);
        memcpy(ask->body, answer->body.ptr, answer->body.len);
        ask->body[answer->body.len] = '\0';
        ask->body_size = answer->body.len;
    }
    waiting--;
    if (waiting == 0)
        pl__loop_stop(loop);
}

static void send_request(struct ask *ask, struct pl_kube *kube, struct pl_kube_request request)
{
    ask->kube = kube;
    ask->started_ms = now_ms();
    request.chunk = on_chunk;
    request.done = on_done;
    request.user = ask;
    if (!request.method)
        request.method = "GET";
    if (!request.timeout_ms)
        request.timeout_ms = 5000;
    waiting++;
    ask->within_send = true;
    ask->id = pl__kube_send(kube, &request);
    ask->within_send = false;
    CHECK(ask->id != 0);
}

static void ask_release(struct ask *ask)
{
    free(ask->body);
    *ask = (struct ask){ 0 };
}

/* Sends one and waits for its end. */
static void get(struct ask *ask, struct pl_kube *kube, const char *path)
{
    ask_release(ask);
    send_request(ask, kube, (struct pl_kube_request){ .path = path });
    run_all();
    CHECK_INT(ask->done_count, 1);
}

/* --- configuration -------------------------------------------------------------------------------- */

static struct pl_str file_text(const char *name)
{
    struct pl_str text = { "", 0 };
    struct pl_error *err = NULL;
    struct pl_str path = pl__str_format(&arena, "%s/%s", directory, name);

    if (pl__file_read(&arena, path.ptr, (size_t)1 << 20, &text, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", pl__error_text(&arena, err).ptr);
    return text;
}

static void file_put(const char *name, const char *text)
{
    struct pl_str path = pl__str_format(&arena, "%s/%s", directory, name);
    struct pl_str temporary = pl__str_format(&arena, "%s/%s.new", directory, name);
    FILE *file = fopen(temporary.ptr, "w");

    assert(file);
    fputs(text, file);
    fclose(file);
    chmod(temporary.ptr, 0700);
    rename(temporary.ptr, path.ptr);
}

static const char *file_path(const char *name)
{
    return pl__str_format(&arena, "%s/%s", directory, name).ptr;
}

static const char *address(const char *name)
{
    struct pl_str ports = file_text("ports");
    size_t name_len = strlen(name);

    for (const char *line = ports.ptr; line && *line;) {
        const char *end = strchr(line, '\n');
        if (strncmp(line, name, name_len) == 0 && line[name_len] == ' ')
            return pl__str_format(&arena, "%.*s", (int)(end - line - (long)name_len - 1),
                                  line + name_len + 1)
                .ptr;
        line = end ? end + 1 : NULL;
    }
    test_fail(__FILE__, __LINE__, "no server %s", name);
    return "127.0.0.1:1";
}

static struct pl_kube_config config_for(const char *server)
{
    return (struct pl_kube_config){
        .server = pl__str_format(&arena, "https://%s", address(server)),
        .ca_pem = file_text("ca.pem"),
    };
}

static struct pl_kube *open_config(const struct pl_kube_config *config,
                                   const struct pl_kube_options *options)
{
    struct pl_error *err = NULL;
    struct pl_kube *kube = NULL;

    if (pl__kube_open(loop, config, options, &arena, &kube, &err) < 0) {
        test_fail(__FILE__, __LINE__, "open: %s", pl__error_text(&arena, err).ptr);
        exit(test_end("kube_client"));
    }
    return kube;
}

static struct pl_kube *open_server(const char *server, const struct pl_kube_options *options)
{
    struct pl_kube_config config = config_for(server);

    return open_config(&config, options);
}

static void close_now(struct pl_kube *kube)
{
    pl__kube_close(kube);
    run_for(1);
}

static bool has(const struct ask *ask, const char *part)
{
    bool found = ask->body && strstr(ask->body, part);

    if (!found)
        printf("    no %s in %s\n", part, ask->body ? ask->body : "(nothing)");
    return found;
}

static long conn_of(const struct ask *ask)
{
    const char *at = ask->body ? strstr(ask->body, "\"conn\":") : NULL;

    return at ? strtol(at + 7, NULL, 10) : -1;
}

/* In the text wanted, %s stands for the server's address. */
static void check_error(const struct ask *ask, enum pl_kube_failure failure, const char *text,
                        const char *server)
{
    const char *hole = strstr(text, "%s");
    char want[512];

    assert(hole);
    snprintf(want, sizeof want, "%.*s%s%s", (int)(hole - text), text, address(server), hole + 2);
    CHECK_INT(ask->failure, failure);
    CHECK_STR(pl__str(ask->error), want);
}

/* --- the cases ---------------------------------------------------------------------------------------- */

static void test_plain_requests(void)
{
    struct pl_kube *kube = open_server("main", &(struct pl_kube_options){ .user_agent = "test/1" });
    struct ask ask = { 0 };

    CASE("a GET");
    get(&ask, kube, "/hello?a=b%20c");
    CHECK_INT(ask.failure, KUBE_OK);
    CHECK_INT(ask.status, 200);
    CHECK_INT(ask.retry_after_s, -1);
    CHECK_STR(pl__str(ask.content_type), "application/json");
    CHECK(has(&ask, "\"proto\":\"HTTP/2.0\""));
    CHECK(has(&ask, "\"path\":\"/hello\""));
    CHECK(has(&ask, "\"query\":\"a=b%20c\""));
    CHECK(has(&ask, "\"User-Agent\":[\"test/1\"]"));
    CHECK(has(&ask, "\"Accept\":[\"application/json\"]"));
    CHECK(has(&ask, "\"Accept-Encoding\":[\"gzip\"]"));
    CHECK(!strstr(ask.body, "Authorization"));
    CASE("a second one takes the same connection");
    long conn = conn_of(&ask);
    get(&ask, kube, "/again");
    CHECK_INT(conn_of(&ask), conn);

    static const char *const methods[] = { "PATCH", "POST", "PUT", "DELETE" };
    for (size_t i = 0; i < 4; i++) {
        CASE("a %s with a body", methods[i]);
        ask_release(&ask);
        send_request(&ask, kube,
                     (struct pl_kube_request){ .method = methods[i],
                                               .path = "/x",
                                               .body = PL_STR("{\"a\":1}"),
                                               .content_type = "application/apply-patch+yaml" });
        run_all();
        CHECK_INT(ask.status, 200);
        CHECK(has(&ask, "\"body\":\"{\\\"a\\\":1}\""));
        CHECK(has(&ask, pl__str_format(&arena, "\"method\":\"%s\"", methods[i]).ptr));
        CHECK(has(&ask, "\"Content-Type\":[\"application/apply-patch+yaml\"]"));
        CHECK(!strstr(ask.body, "Expect"));
    }
    CASE("a POST and a DELETE without a body");
    ask_release(&ask);
    send_request(&ask, kube, (struct pl_kube_request){ .method = "POST", .path = "/x" });
    run_all();
    CHECK(has(&ask, "\"method\":\"POST\""));
    ask_release(&ask);
    send_request(&ask, kube, (struct pl_kube_request){ .method = "DELETE", .path = "/x" });
    run_all();
    CHECK(has(&ask, "\"method\":\"DELETE\""));
    CASE("a HEAD");
    ask_release(&ask);
    send_request(&ask, kube, (struct pl_kube_request){ .method = "HEAD", .path = "/x" });
    run_all();
    CHECK_INT(ask.status, 200);
    CHECK_INT(ask.body_size, 0);

    CASE("429 with Retry-After");
    get(&ask, kube, "/status?code=429&after=7");
    CHECK_INT(ask.failure, KUBE_OK);
    CHECK_INT(ask.status, 429);
    CHECK_INT(ask.retry_after_s, 7);
    CHECK_STR(pl__str(ask.body), "so it is\n");
    CASE("a Retry-After that is a date or nonsense");
    get(&ask, kube, "/status?code=503&after=Fri,+31+Dec+1999+23:59:59+GMT");
    CHECK_INT(ask.retry_after_s, -1);
    get(&ask, kube, "/status?code=503&after=99999999999999999999");
    CHECK_INT(ask.retry_after_s, 86400);
    CASE("a redirect is an answer, not followed");
    get(&ask, kube, "/redirect");
    CHECK_INT(ask.failure, KUBE_OK);
    CHECK_INT(ask.status, 302);

    CASE("counts");
    size_t count;
    const struct pl_kube_count *rows = pl__kube_counts(kube, &count);
    uint64_t gets = 0, unavailable = 0;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(rows[i].method, "GET") == 0 && rows[i].status == 200)
            gets = rows[i].count;
        if (strcmp(rows[i].method, "GET") == 0 && rows[i].status == 503)
            unavailable = rows[i].count;
    }
    CHECK_INT(gets, 2);
    CHECK_INT(unavailable, 2);
    CHECK_STR(pl__str(pl__kube_host(kube)), address("main"));
    ask_release(&ask);
    close_now(kube);
}

static void test_bodies(void)
{
    struct pl_kube *kube = open_server("main", NULL);
    struct ask ask = { 0 };

    CASE("16 MiB");
    get(&ask, kube, "/big?n=16777216");
    CHECK_INT(ask.failure, KUBE_OK);
    CHECK_INT(ask.body_size, 16777216);
    CASE("gzip");
    get(&ask, kube, "/big?n=5000000&gzip=yes");
    CHECK_INT(ask.body_size, 5000000);
    CHECK(ask.body && memcmp(ask.body + 4999984, "0123456789abcde\n", 16) == 0);
    CASE("broken gzip");
    get(&ask, kube, "/big?n=5000&gzip=broken");
    check_error(&ask, KUBE_CUT, "what %s sent is not compressed as it says", "main");
    CASE("larger than allowed");
    ask_release(&ask);
    send_request(&ask, kube,
                 (struct pl_kube_request){ .path = "/big?n=100000", .body_max = 99999 });
    run_all();
    check_error(&ask, KUBE_TOO_LARGE, "the answer of %s is larger than 99999 bytes", "main");
    CASE("exactly as large as allowed");
    ask_release(&ask);
    send_request(&ask, kube,
                 (struct pl_kube_request){ .path = "/big?n=100000", .body_max = 100000 });
    run_all();
    CHECK_INT(ask.failure, KUBE_OK);
    CHECK_INT(ask.body_size, 100000);
    CASE("a compression bomb");
    ask_release(&ask);
    send_request(
        &ask, kube,
        (struct pl_kube_request){ .path = "/big?n=200000000&gzip=yes", .body_max = 1000000 });
    run_all();
    CHECK_INT(ask.failure, KUBE_TOO_LARGE);
    CASE("large headers");
    get(&ask, kube, "/headers?kb=50");
    CHECK_INT(ask.failure, KUBE_OK);
    CASE("huge headers");
    get(&ask, kube, "/headers?kb=900");
    check_error(&ask, KUBE_TOO_LARGE, "the answer of %s has too many headers", "main");
    get(&ask, kube, "/headers?kb=0&one=50");
    CHECK_INT(ask.failure, KUBE_OK);
    get(&ask, kube, "/headers?kb=0&one=900"); /* nghttp2 drops the connection */
    CHECK(ask.failure == KUBE_TOO_LARGE || ask.failure == KUBE_CUT);
    struct pl_kube *old = open_server("http1", NULL);
    get(&ask, old, "/headers?kb=900");
    check_error(&ask, KUBE_TOO_LARGE, "the answer of %s has too many headers", "http1");
    get(&ask, old, "/headers?kb=0&one=900");
    check_error(&ask, KUBE_TOO_LARGE, "the answer of %s has too many headers", "http1");
    close_now(old);
    CASE("and the client still works");
    get(&ask, kube, "/x");
    CHECK_INT(ask.status, 200);
    ask_release(&ask);
    close_now(kube);

    CASE("compression can be switched off");
    struct pl_kube_config config = config_for("main");
    config.disable_compression = true;
    kube = open_config(&config, NULL);
    get(&ask, kube, "/x");
    CHECK(!strstr(ask.body, "gzip"));
    ask_release(&ask);
    close_now(kube);
}

static void test_streams(void)
{
    struct pl_kube *kube = open_server("main", NULL);
    struct ask ask = { 0 };

    CASE("a stream that ends");
    send_request(&ask, kube,
                 (struct pl_kube_request){ .path = "/watch?n=5&ms=20", .stream = true });
    run_all();
    CHECK_INT(ask.failure, KUBE_OK);
    CHECK_INT(ask.status, 200);
    CHECK(ask.chunk_count >= 4);
    CHECK(has(&ask, "\"i\":4"));
    CHECK(ask.done_ms - ask.first_ms >= 50);
    CASE("a stream outlives its timeout");
    ask_release(&ask);
    send_request(
        &ask, kube,
        (struct pl_kube_request){ .path = "/watch?n=10&ms=60", .stream = true, .timeout_ms = 200 });
    run_all();
    CHECK_INT(ask.failure, KUBE_OK);
    CHECK(has(&ask, "\"i\":9"));
    CASE("a stream whose headers do not come");
    ask_release(&ask);
    send_request(&ask, kube,
                 (struct pl_kube_request){ .path = "/hang", .stream = true, .timeout_ms = 200 });
    run_all();
    check_error(&ask, KUBE_TIMEOUT, "request to %s: no answer within 0.2 s", "main");
    CASE("a stream that is not 200 has a body");
    ask_release(&ask);
    send_request(&ask, kube,
                 (struct pl_kube_request){ .path = "/status?code=403", .stream = true });
    run_all();
    CHECK_INT(ask.status, 403);
    CHECK_INT(ask.chunk_count, 0);
    CHECK_STR(pl__str(ask.body), "so it is\n");
    CASE("a stream that is aborted");
    ask_release(&ask);
    send_request(&ask, kube,
                 (struct pl_kube_request){ .path = "/watch?n=2&end=abort", .stream = true });
    run_all();
    check_error(&ask, KUBE_CUT, "connection to %s was cut", "main");
    CHECK_INT(ask.status, 200);
    CHECK(has(&ask, "\"i\":1"));
    CASE("a stream whose connection is closed");
    ask_release(&ask);
    send_request(&ask, kube,
                 (struct pl_kube_request){ .path = "/watch?n=2&end=cut", .stream = true });
    run_all();
    CHECK_INT(ask.failure, KUBE_CUT);
    CHECK(has(&ask, "\"i\":1"));
    CASE("bytes that drip");
    get(&ask, kube, "/drip?n=20&ms=5");
    CHECK_INT(ask.body_size, 20);
    CASE("bytes that drip too slowly");
    ask_release(&ask);
    send_request(&ask, kube,
                 (struct pl_kube_request){ .path = "/drip?n=1000&ms=20", .timeout_ms = 300 });
    run_all();
    CHECK_INT(ask.failure, KUBE_TIMEOUT);
    CHECK(ask.done_ms - ask.started_ms < 1000);
    CASE("a hang in the middle");
    ask_release(&ask);
    send_request(&ask, kube,
                 (struct pl_kube_request){ .path = "/watch?n=1&end=hang", .timeout_ms = 300 });
    run_all();
    CHECK_INT(ask.failure, KUBE_TIMEOUT);
    CHECK_INT(ask.status, 200);
    ask_release(&ask);
    close_now(kube);
}

/* Around the sizes of pages, of HTTP/2 frames and of the buffers in between. */
static const size_t event_sizes[] = {
    1,     3000,  4095,  4096,  4097,  8192,  9000,   16375,  16383,
    16384, 16385, 20000, 32767, 32768, 32769, 100000, 200000, 1048576,
};

enum { EVENT_SIZES = sizeof event_sizes / sizeof event_sizes[0], EVENT_STREAMS = 4 };

static bool events_intact(const struct ask *ask, const size_t *sizes, size_t count)
{
    const char *at = ask->body;

    if (ask->body_size != ask->expected)
        return false;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k + 1 < sizes[i]; k++)
            if (at[k] != (char)('a' + (k + sizes[i]) % 23))
                return false;
        if (at[sizes[i] - 1] != '\n')
            return false;
        at += sizes[i];
    }
    return true;
}

/* Nothing else happens on the connection, so what libcurl kept for itself would stay there. */
static void events_case(struct pl_kube *kube, const size_t *sizes, size_t count, int streams)
{
    struct ask asks[EVENT_STREAMS] = { 0 };
    char path[256] = "/events?bytes=";
    size_t sum = 0;

    for (size_t i = 0; i < count; i++) {
        size_t len = strlen(path);
        snprintf(path + len, sizeof path - len, "%s%zu", i ? "," : "", sizes[i]);
        sum += sizes[i];
    }
    lacking = streams;
    for (int i = 0; i < streams; i++) {
        asks[i].expected = sum;
        send_request(&asks[i], kube, (struct pl_kube_request){ .path = path, .stream = true });
    }
    run_for(EVENTS_MS_MAX);
    CHECK(!timed_out);
    for (int i = 0; i < streams; i++) {
        CHECK(events_intact(&asks[i], sizes, count));
        pl__kube_cancel(kube, asks[i].id);
    }
    run_all();
    for (int i = 0; i < streams; i++)
        ask_release(&asks[i]);
}

static void test_event_sizes(const char *server)
{
    struct pl_kube *kube = open_server(server, NULL);

    for (size_t i = 0; i < EVENT_SIZES; i++) {
        CASE("%s: an event of %zu bytes is handed over when it comes", server, event_sizes[i]);
        events_case(kube, &event_sizes[i], 1, 1);
    }
    CASE("%s: events of all sizes on several streams", server);
    events_case(kube, event_sizes, EVENT_SIZES, EVENT_STREAMS);
    close_now(kube);
}

static void test_cancel_and_close(void)
{
    struct pl_kube *kube = open_server("main", NULL);
    struct ask ask = { 0 }, other = { 0 };

    CASE("cancelled while it waits for the answer");
    send_request(&ask, kube, (struct pl_kube_request){ .path = "/hang" });
    run_for(100);
    CHECK_INT(ask.done_count, 0);
    pl__kube_cancel(kube, ask.id);
    CHECK_INT(ask.done_count, 0);
    run_all();
    CHECK_INT(ask.done_count, 1);
    CHECK_INT(ask.failure, KUBE_CANCELLED);
    CASE("cancelled before it was sent; unknown ids");
    ask_release(&ask);
    send_request(&ask, kube, (struct pl_kube_request){ .path = "/x" });
    pl__kube_cancel(kube, ask.id);
    pl__kube_cancel(kube, 12345678);
    pl__kube_cancel(kube, 0);
    run_all();
    CHECK_INT(ask.failure, KUBE_CANCELLED);
    pl__kube_cancel(kube, ask.id);
    CASE("cancelled from its own chunk");
    ask_release(&ask);
    ask.cancel_in_chunk = true;
    send_request(&ask, kube,
                 (struct pl_kube_request){ .path = "/watch?n=100&ms=5", .stream = true });
    run_all();
    CHECK_INT(ask.failure, KUBE_CANCELLED);
    CHECK_INT(ask.chunk_count, 1);
    CASE("closed from a chunk: everything open ends, once");
    ask_release(&ask);
    ask.close_in_chunk = true;
    send_request(&other, kube, (struct pl_kube_request){ .path = "/hang" });
    send_request(&ask, kube,
                 (struct pl_kube_request){ .path = "/watch?n=100&ms=5", .stream = true });
    run_all();
    run_for(50);
    CHECK_INT(ask.failure, KUBE_CANCELLED);
    CHECK_INT(ask.done_count, 1);
    CHECK_INT(other.failure, KUBE_CANCELLED);
    CHECK_INT(other.done_count, 1);
    ask_release(&ask);
    ask_release(&other);

    CASE("closed before the loop ever ran");
    kube = open_server("main", NULL);
    send_request(&ask, kube, (struct pl_kube_request){ .path = "/x" });
    pl__kube_close(kube);
    run_all();
    CHECK_INT(ask.failure, KUBE_CANCELLED);
    ask_release(&ask);
    CASE("closed while connecting");
    kube = open_server("mute", NULL);
    send_request(&ask, kube, (struct pl_kube_request){ .path = "/x" });
    run_for(50);
    pl__kube_close(kube);
    run_all();
    CHECK_INT(ask.failure, KUBE_CANCELLED);
    ask_release(&ask);
    CASE("opened and closed");
    close_now(open_server("main", NULL));
}

static void fail_case(const char *name, const char *server, enum pl_kube_failure failure,
                      const char *format)
{
    struct pl_kube *kube = open_server(server, NULL);
    struct ask ask = { 0 };

    CASE("%s", name);
    send_request(&ask, kube, (struct pl_kube_request){ .path = "/x", .timeout_ms = 400 });
    run_all();
    check_error(&ask, failure, format, server);
    CHECK_INT(ask.status, 0);
    CHECK(ask.done_ms - ask.started_ms < 1500);
    ask_release(&ask);
    close_now(kube);
}

static void test_bad_servers(void)
{
    struct pl_kube_config config;
    struct ask ask = { 0 };

    fail_case("refused", "refused", KUBE_UNREACHABLE, "connect to %s: connection refused");
    fail_case("a server that says nothing", "mute", KUBE_TIMEOUT,
              "connect to %s: no answer within 0.4 s");
    fail_case("a server that hangs up", "closer", KUBE_TLS,
              "TLS handshake with %s was cut by the server");
    fail_case("a server that sends garbage", "garbage", KUBE_TLS,
              "TLS handshake with %s failed: the server does not speak TLS");
    fail_case("https to http", "plain", KUBE_TLS,
              "TLS handshake with %s failed: the server does not speak TLS");
    fail_case("a certificate of another CA", "wrongca", KUBE_TLS,
              "certificate of %s is not signed by the given CA");
    fail_case("a certificate for another name", "wrongname", KUBE_TLS,
              "certificate of %s is not for 127.0.0.1");
    fail_case("an expired certificate", "expired", KUBE_TLS, "certificate of %s has expired");

    static const struct {
        const char *name, *server, *error;
        enum pl_kube_failure failure;
    } plain[] = {
        { "plain: garbage", "plaingarbage", "what %s sent is not HTTP", KUBE_CUT },
        { "plain: half a header", "halfheader", "connection to %s was cut", KUBE_CUT },
        { "plain: hangs up", "closer", "%s closed the connection without an answer", KUBE_CUT },
    };
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
        CASE("%s", plain[i].name);
        config = (struct pl_kube_config){ .server = pl__str_format(&arena, "http://%s",
                                                                   address(plain[i].server)) };
        struct pl_kube *kube = open_config(&config, NULL);
        get(&ask, kube, "/x");
        check_error(&ask, plain[i].failure, plain[i].error, plain[i].server);
        close_now(kube);
    }
    CASE("a name that does not exist");
    config = (struct pl_kube_config){ .server = PL_STR("https://nowhere.invalid:6443") };
    struct pl_kube *kube = open_config(&config, NULL);
    get(&ask, kube, "/x");
    CHECK_INT(ask.failure, KUBE_UNREACHABLE);
    CHECK_STR(pl__str(ask.error), "nowhere.invalid:6443: host name not found");
    close_now(kube);
    CASE("a server that resets"); /* when we hear of it is a matter of luck */
    kube = open_server("resetter", NULL);
    get(&ask, kube, "/x");
    CHECK(ask.failure == KUBE_TLS || ask.failure == KUBE_UNREACHABLE);
    CHECK(strstr(ask.error, "cut by the server") || strstr(ask.error, "connection reset by peer"));
    close_now(kube);
    CASE("a server that wants a client certificate"); /* luck again: whether its reason arrives */
    kube = open_server("mutual", NULL);
    get(&ask, kube, "/x");
    CHECK(ask.failure == KUBE_TLS || ask.failure == KUBE_CUT);
    CHECK(strstr(ask.error, "refused our client certificate"));
    close_now(kube);
    CASE("connecting takes too long");
    kube = open_server("mute", &(struct pl_kube_options){ .connect_timeout_ms = 300 });
    get(&ask, kube, "/x");
    CHECK_INT(ask.failure, KUBE_TIMEOUT);
    CHECK(ask.done_ms - ask.started_ms < 1500);
    close_now(kube);
    ask_release(&ask);
}

static void open_fails(const char *name, struct pl_kube_config config, const char *want)
{
    struct pl_error *err = NULL;
    struct pl_kube *kube = NULL;

    CASE("open: %s", name);
    CHECK(pl__kube_open(loop, &config, NULL, &arena, &kube, &err) < 0);
    if (kube)
        close_now(kube);
    if (err)
        CHECK_STR(pl__error_text(&arena, err), want);
}

static void test_open_errors(void)
{
    struct pl_kube_config c = config_for("main");

    c.server = PL_STR("ftp://x");
    open_fails("not http", c, "server: not an http or https URL");
    c = config_for("main");
    c.server = PL_STR("https://");
    open_fails("no host", c, "server: not an http or https URL");
    c = config_for("main");
    c.ca_pem = PL_STR("nothing");
    open_fails("no CA", c, "there is no certificate in the certificate authority's PEM");
    c = config_for("main");
    c.client_cert_pem = file_text("client.pem");
    c.client_key_pem = file_text("client2-key.pem");
    open_fails("wrong key", c, "client certificate: the key does not belong to the certificate");
    c.client_key_pem = PL_STR("x");
    open_fails("no key", c, "client certificate: there is no private key in the key's PEM");
    c.client_key_pem = PL_STR("-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n"
                              "-----END ENCRYPTED PRIVATE KEY-----\n");
    open_fails("encrypted key", c,
               "client certificate: the key is encrypted, which is not supported");
    c = config_for("main");
    c.token = PL_STR("a\r\nX-Evil: 1");
    open_fails("a token of two lines", c,
               "token, user name or password with control characters in it");
    c = config_for("main");
    c.as_user = PL_STR("a\nb");
    open_fails("a user of two lines", c, "Impersonate-User: control characters in the value");
}

static void test_identity(void)
{
    struct pl_kube_config config;
    struct ask ask = { 0 };

    CASE("a bearer token");
    config = config_for("main");
    config.token = PL_STR("s3cret");
    struct pl_kube *kube = open_config(&config, NULL);
    get(&ask, kube, "/x");
    CHECK(has(&ask, "\"Authorization\":[\"Bearer s3cret\"]"));
    close_now(kube);
    CASE("no credentials to plain http");
    config.server = pl__str_format(&arena, "http://%s", address("plain"));
    config.exec.present = true;
    config.exec.command = PL_STR("/nonexistent");
    kube = open_config(&config, NULL);
    get(&ask, kube, "/x");
    CHECK_INT(ask.status, 200);
    CHECK(has(&ask, "\"proto\":\"HTTP/1.1\""));
    CHECK(!strstr(ask.body, "s3cret"));
    close_now(kube);
    CASE("basic auth");
    config = config_for("main");
    config.username = PL_STR("admin");
    config.password = PL_STR("pa:ss");
    kube = open_config(&config, NULL);
    get(&ask, kube, "/x");
    CHECK(has(&ask, "\"Authorization\":[\"Basic YWRtaW46cGE6c3M=\"]"));
    close_now(kube);
    CASE("a client certificate");
    config = config_for("mutual");
    config.client_cert_pem = file_text("client.pem");
    config.client_key_pem = file_text("client-key.pem");
    kube = open_config(&config, NULL);
    get(&ask, kube, "/x");
    CHECK(has(&ask, "\"client\":\"client-one\""));
    close_now(kube);
    CASE("a client certificate of a stranger");
    config.client_cert_pem = file_text("stranger.pem");
    config.client_key_pem = file_text("stranger-key.pem");
    kube = open_config(&config, NULL);
    get(&ask, kube, "/x");
    CHECK(ask.failure == KUBE_TLS || ask.failure == KUBE_CUT);
    CHECK(strstr(ask.error, "refused our client certificate"));
    close_now(kube);
    CASE("impersonation");
    config = config_for("main");
    struct pl_str groups[] = { PL_STR("g1"), PL_STR("g2") };
    struct pl_kube_extra extra[] = { { PL_STR("a.b/c d"), PL_STR("v1") },
                                     { PL_STR("plain"), PL_STR("v2") } };
    config.as_user = PL_STR("jane");
    config.as_uid = PL_STR("u-1");
    config.as_groups.items = groups;
    config.as_groups.count = 2;
    config.as_extra.items = extra;
    config.as_extra.count = 2;
    kube = open_config(&config, NULL);
    get(&ask, kube, "/x");
    CHECK(has(&ask, "\"Impersonate-User\":[\"jane\"]"));
    CHECK(has(&ask, "\"Impersonate-Uid\":[\"u-1\"]"));
    CHECK(has(&ask, "\"Impersonate-Group\":[\"g1\",\"g2\"]"));
    CHECK(has(&ask, "\"Impersonate-Extra-A.b%2fc%20d\":[\"v1\"]"));
    CHECK(has(&ask, "\"Impersonate-Extra-Plain\":[\"v2\"]"));
    close_now(kube);
    ask_release(&ask);
}

static void test_names(void)
{
    struct pl_kube_config config;
    struct ask ask = { 0 };
    char host[128];

    CASE("tls-server-name: SNI and verification");
    config = config_for("main");
    config.tls_server_name = PL_STR("kube.test");
    struct pl_kube *kube = open_config(&config, NULL);
    get(&ask, kube, "/x");
    CHECK_INT(ask.status, 200);
    CHECK(has(&ask, "\"sni\":\"kube.test\""));
    CHECK(has(&ask, "\"proto\":\"HTTP/2.0\""));
    snprintf(host, sizeof host, "\"host\":\"%s\"", address("main"));
    CHECK(has(&ask, host));
    close_now(kube);
    CASE("tls-server-name that the certificate does not have");
    config.tls_server_name = PL_STR("other.test");
    kube = open_config(&config, NULL);
    get(&ask, kube, "/x");
    check_error(&ask, KUBE_TLS, "certificate of %s is not for other.test", "main");
    close_now(kube);
    CASE("tls-server-name makes a wrong name right");
    config = config_for("wrongname");
    config.tls_server_name = PL_STR("elsewhere.test");
    kube = open_config(&config, NULL);
    get(&ask, kube, "/x");
    CHECK_INT(ask.status, 200);
    close_now(kube);
    static const char *const servers[] = { "wrongca", "wrongname", "expired" };
    for (size_t i = 0; i < 3; i++) {
        CASE("insecure-skip-tls-verify: %s", servers[i]);
        config = config_for(servers[i]);
        config.ca_pem = (struct pl_str){ 0 };
        config.insecure_skip_tls_verify = true;
        kube = open_config(&config, NULL);
        get(&ask, kube, "/x");
        CHECK_INT(ask.status, 200);
        close_now(kube);
    }
    CASE("the system's CAs do not know ours");
    config = config_for("main");
    config.ca_pem = (struct pl_str){ 0 };
    kube = open_config(&config, NULL);
    get(&ask, kube, "/x");
    check_error(&ask, KUBE_TLS, "certificate of %s is not signed by a CA that this system trusts",
                "main");
    close_now(kube);
    CASE("a path prefix");
    config = config_for("main");
    config.server = pl__str_format(&arena, "https://%s/k8s/clusters/c-1", address("main"));
    kube = open_config(&config, NULL);
    get(&ask, kube, "/api/v1/nodes?x=1");
    CHECK(has(&ask, "\"path\":\"/k8s/clusters/c-1/api/v1/nodes\""));
    close_now(kube);
    CASE("a proxy");
    config = config_for("main");
    config.proxy_url = pl__str_format(&arena, "http://%s", address("proxy"));
    kube = open_config(&config, NULL);
    get(&ask, kube, "/x");
    CHECK_INT(ask.status, 200);
    CHECK(has(&ask, "\"proto\":\"HTTP/2.0\""));
    CHECK_STR(file_text("proxied"), address("main"));
    close_now(kube);
    CASE("a proxy and tls-server-name");
    config.tls_server_name = PL_STR("kube.test");
    kube = open_config(&config, NULL);
    get(&ask, kube, "/x");
    CHECK_INT(ask.status, 200);
    CHECK_STR(file_text("proxied"), address("main"));
    close_now(kube);
    CASE("a proxy that is not there");
    config.proxy_url = pl__str_format(&arena, "http://%s", address("refused"));
    kube = open_config(&config, NULL);
    get(&ask, kube, "/x");
    CHECK_INT(ask.failure, KUBE_UNREACHABLE);
    close_now(kube);
    ask_release(&ask);
}

static void test_token_file(void)
{
    struct pl_kube_config config = config_for("main");
    struct ask ask = { 0 };

    CASE("a token file");
    file_put("want-token", "first");
    file_put("token", "first\n");
    config.token_file = pl__str(file_path("token"));
    struct pl_kube *kube = open_config(&config, NULL);
    get(&ask, kube, "/token");
    CHECK_INT(ask.status, 200);
    CASE("is not read again at once");
    file_put("token", "second\n");
    get(&ask, kube, "/token");
    CHECK_INT(ask.status, 200);
    CASE("but after a 401");
    file_put("want-token", "second");
    get(&ask, kube, "/token");
    CHECK_INT(ask.status, 401);
    CHECK_INT(ask.failure, KUBE_OK);
    get(&ask, kube, "/token");
    CHECK_INT(ask.status, 200);
    CASE("a read that fails keeps the old token");
    file_put("want-token", "third");
    unlink(file_path("token"));
    get(&ask, kube, "/token");
    CHECK_INT(ask.status, 401);
    get(&ask, kube, "/token");
    CHECK_INT(ask.status, 401);
    CASE("and takes the new one when it comes");
    file_put("token", "third");
    get(&ask, kube, "/token");
    CHECK_INT(ask.status, 200);
    close_now(kube);
    CASE("no token file at the start");
    unlink(file_path("token"));
    kube = open_config(&config, NULL);
    get(&ask, kube, "/token");
    CHECK_INT(ask.failure, KUBE_CREDENTIALS);
    CHECK(strstr(ask.error, "token file ") && strstr(ask.error, "No such file"));
    CASE("an empty one");
    file_put("token", " \n");
    get(&ask, kube, "/token");
    CHECK_INT(ask.failure, KUBE_CREDENTIALS);
    CASE("one of two lines");
    file_put("token", "a\nb\n");
    get(&ask, kube, "/token");
    CHECK_INT(ask.failure, KUBE_CREDENTIALS);
    close_now(kube);
    ask_release(&ask);
}

/* A plugin that writes how often it ran and prints what the test wants. */
static void plugin_put(const char *status)
{
    file_put("plugin", pl__str_format(&arena,
                                      "#!/bin/sh\n"
                                      "printf x >>'%s/plugin-runs'\n"
                                      "printf '%%s' \"$KUBERNETES_EXEC_INFO\" >'%s/plugin-info'\n"
                                      "printf '%%s' \"$EXTRA $1\" >'%s/plugin-args'\n"
                                      "%s\n",
                                      directory, directory, directory, status)
                           .ptr);
}

static const char *plugin_prints(const char *status)
{
    return pl__str_format(&arena,
                          "cat "
                          "<<'END'\n{\"kind\":\"ExecCredential\",\"apiVersion\":\"client."
                          "authentication.k8s.io/v1\","
                          "\"status\":{%s}}\nEND",
                          status)
        .ptr;
}

static size_t plugin_runs(void)
{
    return file_text("plugin-runs").len;
}

static const char *pem_as_json(const char *file)
{
    struct pl_str pem = file_text(file);
    struct pl_buf out;

    pl__buf_init(&out, &arena, 100000);
    for (size_t i = 0; i < pem.len; i++) {
        if (pem.ptr[i] == '\n')
            pl__buf_add_lit(&out, "\\n");
        else
            pl__buf_add_char(&out, pem.ptr[i]);
    }
    return pl__buf_str(&out).ptr;
}

static struct pl_kube_config plugin_config(const char *server)
{
    static struct pl_str args[] = { PL_STR_INIT("--cluster=a") };
    static struct pl_str env[] = { PL_STR_INIT("EXTRA=yes") };
    struct pl_kube_config config = config_for(server);

    config.exec.present = true;
    config.exec.command = pl__str(file_path("plugin"));
    config.exec.api_version = PL_STR("client.authentication.k8s.io/v1");
    config.exec.interactive_mode = PL_STR("Never");
    config.exec.args.items = args;
    config.exec.args.count = 1;
    config.exec.env.items = env;
    config.exec.env.count = 1;
    return config;
}

static void test_plugin(void)
{
    struct pl_kube_config config = plugin_config("main");
    struct ask asks[20] = { 0 }, ask = { 0 };

    CASE("a plugin: twenty requests wait for one run");
    file_put("plugin-runs", "");
    file_put("want-token", "from-plugin");
    plugin_put(
        pl__str_format(&arena, "sleep 0.1\n%s", plugin_prints("\"token\":\"from-plugin\"")).ptr);
    struct pl_kube *kube = open_config(&config, NULL);
    for (size_t i = 0; i < 20; i++)
        send_request(&asks[i], kube, (struct pl_kube_request){ .path = "/token" });
    run_all();
    for (size_t i = 0; i < 20; i++) {
        CHECK_INT(asks[i].status, 200);
        ask_release(&asks[i]);
    }
    CHECK_INT(plugin_runs(), 1);
    CHECK_STR(file_text("plugin-args"), "yes --cluster=a");
    CHECK_STR(file_text("plugin-info"),
              "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\","
              "\"spec\":{\"interactive\":false}}");
    CASE("it runs again after a 401");
    file_put("want-token", "newer");
    plugin_put(plugin_prints("\"token\":\"newer\""));
    get(&ask, kube, "/token");
    CHECK_INT(ask.status, 401);
    run_for(1100);
    get(&ask, kube, "/token");
    CHECK_INT(ask.status, 200);
    CHECK_INT(plugin_runs(), 2);
    close_now(kube);

    CASE("it runs again when its token has expired");
    file_put("plugin-runs", "");
    plugin_put(
        plugin_prints("\"token\":\"newer\",\"expirationTimestamp\":\"2001-01-01T00:00:00Z\""));
    kube = open_config(&config, NULL);
    get(&ask, kube, "/token");
    CHECK_INT(ask.status, 200);
    run_for(1100);
    get(&ask, kube, "/token");
    CHECK_INT(plugin_runs(), 2);
    close_now(kube);

    CASE("certificates from a plugin, and new ones on a new connection");
    config = plugin_config("mutual");
    config.exec.provide_cluster_info = true;
    plugin_put(
        plugin_prints(pl__str_format(&arena,
                                     "\"clientCertificateData\":\"%s\",\"clientKeyData\":\"%s\","
                                     "\"expirationTimestamp\":\"2001-01-01T00:00:00Z\"",
                                     pem_as_json("client.pem"), pem_as_json("client-key.pem"))
                          .ptr));
    kube = open_config(&config, NULL);
    get(&ask, kube, "/x");
    CHECK(has(&ask, "\"client\":\"client-one\""));
    CHECK(strstr(file_text("plugin-info").ptr, "\"cluster\":{\"server\":\"https://127.0.0.1:"));
    long conn = conn_of(&ask);
    plugin_put(plugin_prints(
        pl__str_format(&arena, "\"clientCertificateData\":\"%s\",\"clientKeyData\":\"%s\"",
                       pem_as_json("client2.pem"), pem_as_json("client2-key.pem"))
            .ptr));
    run_for(1100);
    get(&ask, kube, "/x");
    CHECK(has(&ask, "\"client\":\"client-two\""));
    CHECK(conn_of(&ask) != conn);
    close_now(kube);

    static const struct {
        const char *name, *script, *error;
    } bad[] = {
        { "fails", "exit 3", "credential plugin plugin: exited with code 3" },
        { "is killed", "kill -9 $$", "credential plugin plugin: killed by signal 9" },
        { "prints nonsense", "echo s3cret",
          "credential plugin plugin printed something that is not JSON as expected" },
        { "prints nothing", "true",
          "credential plugin plugin printed something that is not JSON as expected" },
        { "prints too much", "yes | head -c 2000000",
          "credential plugin plugin: printed more than 1 MiB" },
        { "hangs, with a child", "sleep 60 & sleep 60",
          "credential plugin plugin: gave no answer in time" },
        { "prints no status",
          "echo '{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\"}'",
          "credential plugin plugin printed an ExecCredential without status" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CASE("a plugin that %s", bad[i].name);
        config = plugin_config("main");
        plugin_put(bad[i].script);
        kube = open_config(&config, &(struct pl_kube_options){ .exec_timeout_ms = 500 });
        get(&ask, kube, "/x");
        CHECK_INT(ask.failure, KUBE_CREDENTIALS);
        CHECK_STR(pl__str(ask.error), bad[i].error);
        get(&ask, kube, "/x");
        CHECK_INT(ask.failure, KUBE_CREDENTIALS);
        close_now(kube);
    }
    CASE("a plugin that is not there");
    config = plugin_config("main");
    config.exec.command = PL_STR("no-such-plugin");
    config.exec.install_hint = PL_STR("get it from example.com");
    kube = open_config(&config, NULL);
    get(&ask, kube, "/x");
    CHECK_INT(ask.failure, KUBE_CREDENTIALS);
    CHECK_STR(pl__str(ask.error),
              "credential plugin no-such-plugin: not found: get it from example.com");
    close_now(kube);
    CASE("closed while a plugin runs");
    config = plugin_config("main");
    plugin_put("sleep 60");
    kube = open_config(&config, NULL);
    ask_release(&ask);
    send_request(&ask, kube, (struct pl_kube_request){ .path = "/x" });
    run_for(100);
    pl__kube_close(kube);
    run_all();
    CHECK_INT(ask.failure, KUBE_CANCELLED);
    CASE("a deadline while a plugin runs");
    ask_release(&ask);
    kube = open_config(&config, NULL);
    send_request(&ask, kube, (struct pl_kube_request){ .path = "/x", .timeout_ms = 200 });
    run_all();
    check_error(&ask, KUBE_TIMEOUT, "no credentials for %s within 0.2 s", "main");
    close_now(kube);
    ask_release(&ask);
}

static void test_certificate_files(void)
{
    struct pl_kube_config config = config_for("mutual");
    struct pl_error *err = NULL;
    struct ask ask = { 0 };

    CASE("certificate files that are renewed");
    file_put("tls.crt", file_text("client.pem").ptr);
    file_put("tls.key", file_text("client-key.pem").ptr);
    config.client_cert_file = pl__str(file_path("tls.crt"));
    config.client_key_file = pl__str(file_path("tls.key"));
    CHECK_INT(pl__kube_config_read_files(&arena, &config, &err), 0);
    struct pl_kube *kube = open_config(&config, NULL);
    get(&ask, kube, "/x");
    CHECK(has(&ask, "\"client\":\"client-one\""));
    file_put("tls.crt", file_text("client2.pem").ptr);
    get(&ask, kube, "/status?code=401");
    CHECK_INT(ask.status, 401);
    CASE("half a renewal changes nothing");
    get(&ask, kube, "/x");
    CHECK(has(&ask, "\"client\":\"client-one\""));
    file_put("tls.key", file_text("client2-key.pem").ptr);
    get(&ask, kube, "/status?code=401");
    CASE("the whole is taken over after a 401");
    get(&ask, kube, "/x");
    CHECK(has(&ask, "\"client\":\"client-two\""));
    close_now(kube);
    ask_release(&ask);
}

static int compare_longs(const void *a, const void *b)
{
    long x = *(const long *)a, y = *(const long *)b;

    return x < y ? -1 : x > y;
}

/* How many different connections, and the largest number of asks on one. */
static size_t conns_of(const struct ask *asks, size_t count, size_t *most)
{
    long numbers[ASKS_MAX];
    size_t distinct = 0, run = 0;

    for (size_t i = 0; i < count; i++)
        numbers[i] = conn_of(&asks[i]);
    qsort(numbers, count, sizeof numbers[0], compare_longs);
    *most = 0;
    for (size_t i = 0; i < count; i++) {
        bool same = i > 0 && numbers[i] == numbers[i - 1];
        distinct += !same;
        run = same ? run + 1 : 1;
        *most = run > *most ? run : *most;
    }
    return distinct;
}

static void test_many(void)
{
    static struct ask asks[ASKS_MAX];
    struct ask ask = { 0 };
    size_t most;

    CASE("200 streams at once, no more than 90 on a connection");
    struct pl_kube *kube = open_server("main", NULL);
    for (size_t i = 0; i < 200; i++)
        send_request(&asks[i], kube,
                     (struct pl_kube_request){ .path = "/watch?n=1&end=hang", .stream = true });
    run_for(1500);
    size_t started = 0;
    for (size_t i = 0; i < 200; i++)
        started += asks[i].chunk_count > 0;
    CHECK_INT(started, 200);
    CHECK_INT(conns_of(asks, 200, &most), 3);
    CHECK_INT(most, 90);
    CASE("and other requests still get through");
    int open = waiting;
    waiting = 0;
    get(&ask, kube, "/x");
    CHECK_INT(ask.status, 200);
    waiting = open;
    for (size_t i = 0; i < 200; i++)
        pl__kube_cancel(kube, asks[i].id);
    run_all();
    for (size_t i = 0; i < 200; i++) {
        CHECK_INT(asks[i].failure, KUBE_CANCELLED);
        CHECK_INT(asks[i].done_count, 1);
        ask_release(&asks[i]);
    }
    CASE("400 requests at once");
    for (size_t i = 0; i < 400; i++)
        send_request(&asks[i], kube, (struct pl_kube_request){ .path = "/slow?ms=50" });
    run_all();
    for (size_t i = 0; i < 400; i++) {
        CHECK_INT(asks[i].status, 200);
        ask_release(&asks[i]);
    }
    close_now(kube);

    static const char *const servers[] = { "few", "http1" };
    for (size_t s = 0; s < 2; s++) {
        CASE("40 streams on a server of few streams or HTTP/1.1: %s", servers[s]);
        kube = open_server(servers[s], NULL);
        for (size_t i = 0; i < 40; i++)
            send_request(&asks[i], kube,
                         (struct pl_kube_request){ .path = "/watch?n=1&end=hang", .stream = true });
        run_for(1500);
        started = 0;
        for (size_t i = 0; i < 40; i++)
            started += asks[i].chunk_count > 0;
        CHECK_INT(started, 40);
        pl__kube_close(kube);
        run_all();
        run_for(1);
        for (size_t i = 0; i < 40; i++)
            ask_release(&asks[i]);
    }
    ask_release(&ask);
}

/* How many connections the server has open. */
static long conns_open(struct pl_kube *kube)
{
    struct ask ask = { 0 };

    get(&ask, kube, "/conns");
    long open = ask.body ? strtol(ask.body, NULL, 10) : -1;
    ask_release(&ask);
    return open;
}

static void test_lanes(void)
{
    struct pl_kube *one = open_server("main", NULL), *two = open_server("main", NULL);
    struct ask ask = { 0 }, watches[5] = { 0 };

    CASE("two clients of one server share no connection");
    get(&ask, one, "/x");
    long conn = conn_of(&ask);
    get(&ask, two, "/x");
    CHECK(conn_of(&ask) > 0 && conn_of(&ask) != conn);
    get(&ask, one, "/x");
    CHECK_INT(conn_of(&ask), conn);
    CASE("a client that is closed closes its connection");
    long before = conns_open(one);
    for (size_t i = 0; i < 5; i++)
        send_request(&watches[i], two,
                     (struct pl_kube_request){ .path = "/watch?n=1&end=hang", .stream = true });
    run_for(200);
    CHECK_INT(conns_of(watches, 5, &(size_t){ 0 }), 1);
    pl__kube_close(two);
    run_all();
    run_for(100);
    CHECK_INT(conns_open(one), before - 1);
    for (size_t i = 0; i < 5; i++)
        ask_release(&watches[i]);
    close_now(one);

    CASE("requests that wait for a connection share its failure");
    one = open_server("refused", NULL);
    for (size_t i = 0; i < 5; i++)
        send_request(&watches[i], one, (struct pl_kube_request){ .path = "/x" });
    run_all();
    for (size_t i = 0; i < 5; i++) {
        check_error(&watches[i], KUBE_UNREACHABLE, "connect to %s: connection refused", "refused");
        CHECK(watches[i].done_ms - watches[i].started_ms < 500);
        ask_release(&watches[i]);
    }
    close_now(one);
    CASE("but each has its own deadline");
    one = open_server("mute", NULL);
    for (size_t i = 0; i < 5; i++)
        send_request(
            &watches[i], one,
            (struct pl_kube_request){ .path = "/x", .timeout_ms = 100 + (uint32_t)i * 100 });
    run_all();
    for (size_t i = 0; i < 5; i++) {
        uint64_t took_ms = watches[i].done_ms - watches[i].started_ms;
        CHECK_INT(watches[i].failure, KUBE_TIMEOUT);
        CHECK(took_ms + 20 >= 100 + i * 100 && took_ms < 200 + i * 100);
        ask_release(&watches[i]);
    }
    close_now(one);
    CASE("the first is cancelled while the others wait for it");
    one = open_server("main", NULL);
    for (size_t i = 0; i < 5; i++)
        send_request(&watches[i], one, (struct pl_kube_request){ .path = "/x" });
    uv_run(pl__loop_uv(loop), UV_RUN_NOWAIT);
    pl__kube_cancel(one, watches[0].id);
    pl__kube_cancel(one, watches[3].id);
    run_all();
    for (size_t i = 0; i < 5; i++) {
        CHECK_INT(watches[i].failure, i % 3 == 0 ? KUBE_CANCELLED : KUBE_OK);
        ask_release(&watches[i]);
    }
    close_now(one);
    ask_release(&ask);
}

static void test_goaway(void)
{
    struct pl_kube *kube = open_server("main", NULL);
    struct ask ask = { 0 }, watch = { 0 }, posts[5] = { 0 };

    CASE("GOAWAY: the next request takes a new connection");
    get(&ask, kube, "/goaway");
    CHECK_INT(ask.status, 200);
    long conn = conn_of(&ask);
    get(&ask, kube, "/x");
    CHECK_INT(ask.status, 200);
    CHECK(conn_of(&ask) != conn);
    CASE("GOAWAY with an open stream: it goes on, new requests of all kinds succeed elsewhere");
    send_request(&watch, kube,
                 (struct pl_kube_request){ .path = "/watch?n=20&ms=50", .stream = true });
    run_for(100);
    CHECK(watch.chunk_count > 0);
    int open = waiting;
    waiting = 0;
    get(&ask, kube, "/goaway");
    conn = conn_of(&ask);
    CHECK_INT(conn_of(&watch), conn);
    run_for(20);
    for (size_t i = 0; i < 5; i++)
        send_request(&posts[i], kube,
                     (struct pl_kube_request){
                         .method = i ? "POST" : "GET", .path = "/x", .body = PL_STR("{}") });
    run_all();
    for (size_t i = 0; i < 5; i++) {
        CHECK_INT(posts[i].failure, KUBE_OK);
        CHECK_INT(posts[i].status, 200);
        CHECK(conn_of(&posts[i]) != conn);
        ask_release(&posts[i]);
    }
    waiting = open;
    run_all();
    CHECK_INT(watch.failure, KUBE_OK);
    CHECK(has(&watch, "\"i\":19"));
    CASE("requests sent together with the one that brings GOAWAY");
    for (size_t i = 0; i < 5; i++)
        send_request(&posts[i], kube,
                     (struct pl_kube_request){ .path = i == 0 ? "/goaway" : "/slow?ms=30" });
    run_all();
    for (size_t i = 0; i < 5; i++) {
        CHECK_INT(posts[i].status, 200);
        ask_release(&posts[i]);
    }
    CASE("a connection that is cut under a request: GET is tried once more, then it is an error");
    get(&ask, kube, "/x");
    get(&ask, kube, "/cut");
    CHECK_INT(ask.failure, KUBE_CUT);
    get(&ask, kube, "/x");
    CHECK_INT(ask.status, 200);
    ask_release(&ask);
    ask_release(&watch);
    close_now(kube);
}

static void test_dead_peer(const struct pl_kube_options *options, uint64_t within_ms)
{
    struct pl_kube *kube = open_server("main", options);
    struct ask watches[3] = { 0 }, ask = { 0 };

    CASE("a silent but living peer is left alone");
    for (size_t i = 0; i < 3; i++)
        send_request(&watches[i], kube,
                     (struct pl_kube_request){ .path = "/watch?n=1&end=hang", .stream = true });
    run_for(within_ms < 10000 ? within_ms * 2 : 100);
    for (size_t i = 0; i < 3; i++)
        CHECK_INT(watches[i].done_count, 0);
    CASE("a dead peer is found, all its streams are cut");
    int open = waiting;
    waiting = 0;
    send_request(&ask, kube, (struct pl_kube_request){ .path = "/freeze", .timeout_ms = 100 });
    run_all();
    CHECK_INT(ask.failure, KUBE_TIMEOUT);
    waiting = open;
    uint64_t frozen_ms = now_ms();
    run_for(within_ms + 5000);
    for (size_t i = 0; i < 3; i++) {
        CHECK_INT(watches[i].failure, KUBE_CUT);
        CHECK_INT(watches[i].done_count, 1);
        CHECK(watches[i].done_ms - frozen_ms <= within_ms);
    }
    printf("    dead peer found after %" PRIu64 " ms (%s)\n", watches[0].done_ms - frozen_ms,
           watches[0].error);
    if (waiting > 0) {
        pl__kube_close(kube);
        run_all();
    } else {
        CASE("and a new connection works");
        get(&ask, kube, "/x");
        CHECK_INT(ask.status, 200);
        close_now(kube);
    }
    for (size_t i = 0; i < 3; i++)
        ask_release(&watches[i]);
    ask_release(&ask);
}

/* Freezes the connection by a stream that never answers, so that no request of ours times out: only
 * silence shows. */
static void test_silent_death(const struct pl_kube_options *options, uint64_t within_ms)
{
    struct pl_kube *kube = open_server("main", options);
    struct ask watch = { 0 }, ask = { 0 };

    CASE("a peer that dies in silence is found");
    send_request(&watch, kube,
                 (struct pl_kube_request){ .path = "/watch?n=1&end=hang", .stream = true });
    run_for(100);
    send_request(&ask, kube, (struct pl_kube_request){ .path = "/freeze", .timeout_ms = 300000 });
    uint64_t frozen_ms = now_ms();
    run_for(within_ms + 5000);
    CHECK_INT(watch.failure, KUBE_CUT);
    CHECK_INT(ask.failure, KUBE_CUT);
    CHECK(watch.done_ms - frozen_ms <= within_ms);
    printf("    silent death found after %" PRIu64 " ms (%s)\n", watch.done_ms - frozen_ms,
           watch.error);
    waiting = 0;
    ask_release(&watch);
    ask_release(&ask);
    close_now(kube);
}

static void test_ratelimit(void)
{
    static struct ask asks[15];
    struct pl_kube *kube = open_server("main", &(struct pl_kube_options){ .qps = 20, .burst = 5 });

    CASE("20 a second, burst 5");
    uint64_t start_ms = now_ms();
    for (size_t i = 0; i < 15; i++)
        send_request(&asks[i], kube, (struct pl_kube_request){ .path = "/x", .timeout_ms = 300 });
    run_all();
    uint64_t took_ms = now_ms() - start_ms;
    CHECK(took_ms >= 450 && took_ms < 1200);
    for (size_t i = 0; i < 15; i++) {
        CHECK_INT(asks[i].status, 200);
        CHECK(i == 0 || asks[i].done_ms + 20 >= asks[i - 1].done_ms);
        ask_release(&asks[i]);
    }
    close_now(kube);
}

/* One bad server must not slow another: both on one loop. */
static void test_neighbours(void)
{
    struct pl_kube *good = open_server("main", NULL), *bad = open_server("mute", NULL);
    struct ask slow[10] = { 0 }, ask = { 0 };

    CASE("a server that hangs slows nobody");
    for (size_t i = 0; i < 10; i++)
        send_request(&slow[i], bad, (struct pl_kube_request){ .path = "/x", .timeout_ms = 1000 });
    int open = waiting;
    waiting = 0;
    for (size_t i = 0; i < 20; i++) {
        get(&ask, good, "/x");
        CHECK_INT(ask.status, 200);
        CHECK(ask.done_ms - ask.started_ms < 200);
    }
    waiting = open;
    run_all();
    for (size_t i = 0; i < 10; i++) {
        CHECK_INT(slow[i].failure, KUBE_TIMEOUT);
        ask_release(&slow[i]);
    }
    ask_release(&ask);
    close_now(good);
    close_now(bad);
}

/* --- measuring ------------------------------------------------------------------------------------ */

struct bench {
    struct pl_kube *kube;
    int left, open;
};

static void bench_done(void *user, const struct pl_kube_answer *answer)
{
    struct bench *bench = user;

    CHECK_INT(answer->status, 200);
    bench->open--;
    if (bench->left > 0) {
        bench->left--;
        bench->open++;
        pl__kube_send(bench->kube,
                      &(struct pl_kube_request){
                          .method = "GET", .path = "/version", .done = bench_done, .user = bench });
    } else if (bench->open == 0) {
        pl__loop_stop(loop);
    }
}

static void bench_requests(int parallel, int total)
{
    struct bench bench = { .kube = open_server("main", NULL),
                           .left = total - parallel,
                           .open = parallel };
    struct rusage before, after;

    CASE("%d requests, %d at once", total, parallel);
    getrusage(RUSAGE_SELF, &before);
    uint64_t start_ms = now_ms();
    for (int i = 0; i < parallel; i++)
        pl__kube_send(bench.kube, &(struct pl_kube_request){ .method = "GET",
                                                             .path = "/version",
                                                             .done = bench_done,
                                                             .user = &bench });
    pl__loop_run(loop);
    uint64_t took_ms = now_ms() - start_ms;
    getrusage(RUSAGE_SELF, &after);
    double cpu_us = (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec) * 1e6 +
                    (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec) +
                    (double)(after.ru_stime.tv_sec - before.ru_stime.tv_sec) * 1e6 +
                    (double)(after.ru_stime.tv_usec - before.ru_stime.tv_usec);
    printf("%d at once: %.0f requests/s, %.1f us CPU each\n", parallel,
           total * 1000.0 / (double)(took_ms ? took_ms : 1), cpu_us / total);
    close_now(bench.kube);
}

static long rss_kb(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    char line[128] = "";

    if (file && !fgets(line, sizeof line, file))
        line[0] = '\0';
    if (file)
        fclose(file);
    const char *space = strchr(line, ' '); /* the second number is what is resident */
    return space ? strtol(space + 1, NULL, 10) * (sysconf(_SC_PAGESIZE) / 1024) : 0;
}

static void bench_memory(int servers)
{
    struct pl_kube **kubes = calloc((size_t)servers, sizeof *kubes);
    struct ask *asks = calloc((size_t)servers * 2, sizeof *asks);
    struct pl_kube_config config = config_for("main");
    long before = rss_kb();

    assert(kubes && asks);
    CASE("memory of %d servers with two watches each", servers);
    for (int i = 0; i < servers; i++) {
        kubes[i] = open_config(&config, NULL);
        for (int w = 0; w < 2; w++)
            send_request(&asks[i * 2 + w], kubes[i],
                         (struct pl_kube_request){
                             .path = "/watch?n=3&end=hang", .stream = true, .timeout_ms = 30000 });
    }
    run_for(4000);
    for (int i = 0; i < servers * 2; i++)
        CHECK(asks[i].chunk_count > 0);
    long after = rss_kb();
    malloc_trim(0);
    printf("%d servers, two watches each: %ld KiB a server, %ld KiB after malloc_trim()\n", servers,
           (after - before) / servers, (rss_kb() - before) / servers);
    for (int i = 0; i < servers; i++)
        pl__kube_close(kubes[i]);
    run_all();
    run_for(10);
    for (int i = 0; i < servers * 2; i++)
        ask_release(&asks[i]);
    free(kubes);
    free(asks);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: kube_client_test DIRECTORY [bench|slow]\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    directory = argv[1];
    pl__arena_init(&arena, NULL, 0);
    loop = pl__loop_new();
    const char *mode = argc > 2 ? argv[2] : "";
    if (strcmp(mode, "memory") == 0) {
        bench_memory(60);
    } else if (strcmp(mode, "bench") == 0) {
        bench_memory(300);
        bench_requests(1, 5000);
        bench_requests(10, 20000);
        bench_requests(80, 20000);
    } else if (strcmp(mode, "slow") == 0) {
        test_dead_peer(NULL, 45000);
        test_silent_death(NULL, 45000);
    } else {
        struct pl_kube_options quick = { .silence_ms = 500, .probe_timeout_ms = 300 };
        test_plain_requests();
        test_bodies();
        test_streams();
        test_event_sizes("main");
        test_event_sizes("http1");
        test_cancel_and_close();
        test_bad_servers();
        test_open_errors();
        test_identity();
        test_names();
        test_token_file();
        test_plugin();
        test_certificate_files();
        test_many();
        test_lanes();
        test_goaway();
        test_dead_peer(&quick, 1500);
        test_silent_death(&quick, 1500);
        test_ratelimit();
        test_neighbours();
    }
    pl__loop_free(loop);
    pl__arena_release(&arena);
    return test_end("kube_client");
}
