/* One request: what libcurl is told, and what its callbacks do with what comes. */
#include "loop/kube_internal.h"

#include <assert.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/secret.h"
#include "loop/sparse.h"

enum {
    ANSWER_BYTES_MAX_DEFAULT = 64 * 1024 * 1024,
    STREAM_ERROR_BYTES_MAX = 1024 * 1024, /* the body of a stream that is not 200 */
    HEADER_BYTES_MAX = 256 * 1024,
    TIMEOUT_MS_DEFAULT = 30 * 1000,
    RETRY_AFTER_S_MAX = 24 * 60 * 60,
    TCP_IDLE_S = 30,    /* keep-alive after so much silence, */
    TCP_INTERVAL_S = 5, /* so often, */
    TCP_COUNT = 3,      /* so many times */
    TCP_USER_TIMEOUT_MS = 40 * 1000,
    SEND_BYTES = 16 * 1024, /* the least that libcurl takes */
};

static void *must_alloc(void *p)
{
    if (!p)
        abort();
    return p;
}

static char *text_copy(const char *text)
{
    return text ? must_alloc(strdup(text)) : NULL;
}

struct kube_request *pl__kube_request_new(struct pl_kube *kube,
                                          const struct pl_kube_request *wanted)
{
    struct kube_request *r = must_alloc(calloc(1, sizeof *r));

    r->kube = kube;
    r->id = kube->id_next++;
    r->method = text_copy(wanted->method ? wanted->method : "GET");
    r->path = text_copy(wanted->path);
    r->content_type = text_copy(wanted->content_type ? wanted->content_type : "application/json");
    r->accept = text_copy(wanted->accept ? wanted->accept : "application/json");
    if (wanted->body.len) {
        r->body = must_alloc(malloc(wanted->body.len));
        memcpy(r->body, wanted->body.ptr, wanted->body.len);
        r->body_size = wanted->body.len;
    }
    r->timeout_ms = wanted->timeout_ms ? wanted->timeout_ms : TIMEOUT_MS_DEFAULT;
    r->stream = wanted->stream;
    r->answer_max = wanted->body_max ? wanted->body_max : ANSWER_BYTES_MAX_DEFAULT;
    if (r->stream && r->answer_max > STREAM_ERROR_BYTES_MAX)
        r->answer_max = STREAM_ERROR_BYTES_MAX;
    r->chunk = wanted->chunk;
    r->done = wanted->done;
    r->user = wanted->user;
    r->retry_after_s = -1;
    return r;
}

/* The list has the token in it. */
static void headers_free(struct curl_slist *headers)
{
    for (struct curl_slist *at = headers; at; at = at->next)
        pl__secret_wipe(at->data, strlen(at->data));
    curl_slist_free_all(headers);
}

static void easy_free(struct kube_request *r)
{
    if (r->easy)
        curl_easy_cleanup(r->easy);
    r->easy = NULL;
    headers_free(r->headers);
    r->headers = NULL;
}

static void answer_free(struct kube_request *r)
{
    /* It may be a Secret. */
    pl__secret_wipe(r->answer, r->answer_size);
    free(r->answer);
    r->answer = NULL;
    r->answer_size = r->answer_capacity = 0;
}

void pl__kube_request_free(struct kube_request *r)
{
    assert(!r->lane && !r->list);
    easy_free(r);
    answer_free(r);
    pl__secret_wipe(r->body, r->body_size);
    free(r->body);
    free(r->method);
    free(r->path);
    free(r->content_type);
    free(r->accept);
    free(r->error);
    free(r);
}

/* --- what comes ---------------------------------------------------------------------------------- */

static bool starts_with_nocase(const char *bytes, size_t size, const char *prefix)
{
    size_t len = strlen(prefix);

    return size >= len && strncasecmp(bytes, prefix, len) == 0;
}

/* "HTTP/2 200 ": a new answer begins (there may be 1xx ones before the real). */
static void read_status_line(struct kube_request *r, const char *bytes, size_t size)
{
    const char *space = memchr(bytes, ' ', size);
    size_t left = space ? size - (size_t)(space - bytes) : 0;

    r->status = 0;
    r->retry_after_s = -1;
    for (size_t i = 1; i < left && i <= 3 && space[i] >= '0' && space[i] <= '9'; i++)
        r->status = r->status * 10 + (space[i] - '0');
}

/* A number of seconds; a date, which HTTP allows too, is not used by Kubernetes. */
static void read_retry_after(struct kube_request *r, const char *bytes, size_t size)
{
    int64_t seconds = 0;
    size_t i = strlen("retry-after:");

    while (i < size && (bytes[i] == ' ' || bytes[i] == '\t'))
        i++;
    size_t digits = i;
    while (i < size && bytes[i] >= '0' && bytes[i] <= '9' && seconds <= RETRY_AFTER_S_MAX)
        seconds = seconds * 10 + (bytes[i++] - '0');
    if (i > digits)
        r->retry_after_s = (int)(seconds > RETRY_AFTER_S_MAX ? RETRY_AFTER_S_MAX : seconds);
}

static bool count_row_room(struct pl_kube *kube)
{
    if (kube->count_rows < kube->count_capacity)
        return true;
    if (kube->count_rows == KUBE_COUNT_ROWS_MAX)
        return false;
    kube->count_capacity = kube->count_capacity ? kube->count_capacity * 2 : KUBE_COUNT_ROWS_FIRST;
    kube->counts = must_alloc(realloc(kube->counts, kube->count_capacity * sizeof kube->counts[0]));
    return true;
}

static void count_answer(struct kube_request *r)
{
    struct pl_kube *kube = r->kube;

    if (r->counted || r->probe)
        return;
    r->counted = true;
    for (size_t i = 0; i < kube->count_rows; i++) {
        struct pl_kube_count *row = &kube->counts[i];
        if (row->status == r->status && strcmp(row->method, r->method) == 0) {
            row->count++;
            return;
        }
    }
    if (!count_row_room(kube))
        return;
    kube->counts[kube->count_rows++] = (struct pl_kube_count){
        .method = pl__str_copy(&kube->arena, pl__str(r->method)).ptr,
        .status = r->status,
        .count = 1,
    };
}

static void headers_complete(struct kube_request *r)
{
    if (r->status < 200)
        return;
    r->headers_done = true;
    if (r->stream && r->status == 200)
        r->deadline_ms = 0; /* from here on the watchdog of the lane watches over it */
    if (r->status == 401)
        pl__kube_auth_refused(&r->kube->auth, r->auth_generation);
    count_answer(r);
}

static size_t on_header(char *bytes, size_t one, size_t size, void *user)
{
    struct kube_request *r = user;

    (void)one;
    pl__kube_lane_heard(r->lane);
    r->header_bytes += size;
    if (r->header_bytes > HEADER_BYTES_MAX) {
        r->too_large = true;
        return 0;
    }
    if (starts_with_nocase(bytes, size, "HTTP/"))
        read_status_line(r, bytes, size);
    else if (starts_with_nocase(bytes, size, "retry-after:"))
        read_retry_after(r, bytes, size);
    else if (size <= 2 && (bytes[0] == '\r' || bytes[0] == '\n'))
        headers_complete(r);
    return size;
}

static bool answer_add(struct kube_request *r, const char *bytes, size_t size)
{
    if (size > r->answer_max - r->answer_size)
        return false;
    if (size > r->answer_capacity - r->answer_size) {
        size_t capacity = r->answer_capacity ? r->answer_capacity * 2 : 4096;
        while (capacity - r->answer_size < size)
            capacity *= 2;
        r->answer = must_alloc(realloc(r->answer, capacity + 1)); /* a NUL behind it */
        r->answer_capacity = capacity;
    }
    memcpy(r->answer + r->answer_size, bytes, size);
    r->answer_size += size;
    r->answer[r->answer_size] = '\0';
    return true;
}

static size_t on_body(char *bytes, size_t one, size_t size, void *user)
{
    struct kube_request *r = user;

    (void)one;
    pl__kube_lane_heard(r->lane);
    if (r->cancelled || r->kube->closing)
        return size;
    if (r->stream && r->status == 200) {
        if (r->chunk)
            r->chunk(r->user, bytes, size);
        /* libcurl does not look at them again, and the next event may be hours away. */
        pl__sparse_forget(bytes, size);
        return size;
    }
    if (answer_add(r, bytes, size))
        return size;
    r->too_large = true;
    return 0;
}

/* --- what libcurl is told ----------------------------------------------------------------------- */

/* A peer that does not acknowledge what we send, or our keep-alives, is gone: the kernel's own
 * patience is a quarter of an hour. */
static int on_socket(void *user, curl_socket_t fd, curlsocktype purpose)
{
    static const struct {
        int level, name, value;
    } options[] = {
        { SOL_SOCKET, SO_KEEPALIVE, 1 },
        { IPPROTO_TCP, TCP_KEEPIDLE, TCP_IDLE_S },
        { IPPROTO_TCP, TCP_KEEPINTVL, TCP_INTERVAL_S },
        { IPPROTO_TCP, TCP_KEEPCNT, TCP_COUNT },
        { IPPROTO_TCP, TCP_USER_TIMEOUT, TCP_USER_TIMEOUT_MS },
    };

    (void)user;
    (void)purpose;
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        (void)setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(int));
    return CURL_SOCKOPT_OK;
}

/* The connection is there, the request is about to be sent. */
/* NOLINTNEXTLINE(readability-non-const-parameter): the type is libcurl's */
static int on_connected(void *user, char *ip, char *local_ip, int port, int local_port)
{
    struct kube_request *r = user;

    (void)ip;
    (void)local_ip;
    (void)port;
    (void)local_port;
    r->lane->ready = true;
    if (r->lane->held.count > 0)
        pl__kube_poke(r->kube);
    return CURL_PREREQFUNC_OK;
}

/* Most connections are silent most of the time; they need not hold 32 KiB of buffers for that. */
static CURLcode on_ssl_context(CURL *easy, void *context, void *user)
{
    (void)easy;
    (void)user;
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    return CURLE_OK;
}

static void set_ok(CURLcode code)
{
    if (code == CURLE_OK)
        return;
    fprintf(stderr, "plimsoll: libcurl: %s\n", curl_easy_strerror(code));
    abort();
}

#define SET(easy, option, value) set_ok(curl_easy_setopt((easy), (option), (value)))

static void set_blob(CURL *easy, CURLoption option, struct pl_str pem)
{
    /* Not copied: the lane holds the set of certificates as long as the handle is in it. */
    struct curl_blob blob = { .data = (void *)(uintptr_t)pem.ptr,
                              .len = pem.len,
                              .flags = CURL_BLOB_NOCOPY };

    if (pem.len)
        set_ok(curl_easy_setopt(easy, option, &blob));
}

static void set_tls(struct pl_kube *kube, CURL *easy, const struct pl_kube_tls *tls)
{
    bool verify = !kube->config.insecure_skip_tls_verify;

    SET(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(easy, CURLOPT_SSL_VERIFYPEER, verify ? 1L : 0L);
    SET(easy, CURLOPT_SSL_VERIFYHOST, verify ? 2L : 0L);
    SET(easy, CURLOPT_SSL_SESSIONID_CACHE, 0L);
    SET(easy, CURLOPT_SSL_CTX_FUNCTION, on_ssl_context);
    set_blob(easy, CURLOPT_CAINFO_BLOB, tls->ca_pem);
    if (!tls->cert_pem.len)
        return;
    SET(easy, CURLOPT_SSLCERTTYPE, "PEM");
    SET(easy, CURLOPT_SSLKEYTYPE, "PEM");
    set_blob(easy, CURLOPT_SSLCERT_BLOB, tls->cert_pem);
    set_blob(easy, CURLOPT_SSLKEY_BLOB, tls->key_pem);
}

void pl__kube_easy_connect(struct pl_kube *kube, CURL *easy, const struct pl_kube_tls *tls)
{
    SET(easy, CURLOPT_NOSIGNAL, 1L);
    SET(easy, CURLOPT_QUICK_EXIT, 1L); /* do not wait for a name that nobody wants any more */
    SET(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    SET(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)kube->options.connect_timeout_ms);
    SET(easy, CURLOPT_TCP_NODELAY, 1L);
    SET(easy, CURLOPT_SOCKOPTFUNCTION, on_socket);
    if (kube->proxy)
        SET(easy, CURLOPT_PROXY, kube->proxy);
    if (kube->connect_to)
        SET(easy, CURLOPT_CONNECT_TO, kube->connect_to);
    if (kube->https)
        set_tls(kube, easy, tls);
}

static void set_transport(struct kube_request *r, const struct kube_lane *lane)
{
    struct pl_kube *kube = r->kube;
    CURL *easy = r->easy;

    pl__kube_easy_connect(kube, easy, lane->tls);
    SET(easy, CURLOPT_FOLLOWLOCATION, 0L); /* a redirect could carry the token anywhere */
    SET(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    SET(easy, CURLOPT_HTTP09_ALLOWED, 0L);
    /* Rather wait for the connection than open another. Without TLS there is only HTTP/1.1, and who waits
     * for a connection with a watch on it waits for ever. */
    SET(easy, CURLOPT_PIPEWAIT, (long)kube->https);
    /* libcurl sends even a GET's headers through this buffer and keeps it until the handle goes: with a
     * watch, for ever. By default 64 KiB of which each needs a few hundred bytes. */
    SET(easy, CURLOPT_UPLOAD_BUFFERSIZE, (long)SEND_BYTES);
    /* The read buffer stays at its 16 KiB, a whole HTTP/2 frame: of a frame that does not fit libcurl
     * 7.88 hands over the rest only when something else happens on that connection, seconds later. */
    /* A folder that does not exist: see kube_lane.c. Not where it would hide the system's only one. */
    if (kube->https && (lane->tls->ca_pem.len || curl_version_info(CURLVERSION_NOW)->cainfo))
        SET(easy, CURLOPT_CAPATH, lane->key);
    if (lane->retired)
        SET(easy, CURLOPT_FORBID_REUSE, 1L);
}

static void header_add(struct kube_request *r, const char *name, const char *value)
{
    size_t size = strlen(name) + strlen(value) + 3;
    char *line = must_alloc(malloc(size));

    snprintf(line, size, "%s: %s", name, value);
    r->headers = must_alloc(curl_slist_append(r->headers, line));
    free(line);
}

static void set_headers(struct kube_request *r)
{
    struct pl_kube *kube = r->kube;

    for (struct curl_slist *at = kube->headers; at; at = at->next)
        r->headers = must_alloc(curl_slist_append(r->headers, at->data));
    header_add(r, "Accept", r->accept);
    if (r->body)
        header_add(r, "Content-Type", r->content_type);
    r->headers = must_alloc(curl_slist_append(r->headers, "Expect:"));
    if (kube->auth.header)
        r->headers = must_alloc(curl_slist_append(r->headers, kube->auth.header));
    r->auth_generation = kube->auth.generation;
    SET(r->easy, CURLOPT_HTTPHEADER, r->headers);
    SET(r->easy, CURLOPT_USERAGENT, kube->options.user_agent);
    /* Watches are never compressed; asking would only make libcurl hold a decoder for each. */
    if (!kube->config.disable_compression && !r->stream)
        SET(r->easy, CURLOPT_ACCEPT_ENCODING, "gzip");
}

static void set_request(struct kube_request *r)
{
    struct pl_kube *kube = r->kube;
    size_t size = strlen(kube->base_url) + strlen(r->path) + 1;
    char *url = must_alloc(malloc(size));

    snprintf(url, size, "%s%s", kube->base_url, r->path);
    SET(r->easy, CURLOPT_URL, url);
    free(url);
    SET(r->easy, CURLOPT_PATH_AS_IS, 1L);
    if (strcmp(r->method, "HEAD") == 0) {
        SET(r->easy, CURLOPT_NOBODY, 1L);
    } else if (r->body || strcmp(r->method, "GET") != 0) {
        SET(r->easy, CURLOPT_CUSTOMREQUEST, r->method);
        if (r->body || strcmp(r->method, "DELETE") != 0) {
            SET(r->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body_size);
            SET(r->easy, CURLOPT_POSTFIELDS, r->body ? r->body : "");
        }
    }
    SET(r->easy, CURLOPT_HEADERFUNCTION, on_header);
    SET(r->easy, CURLOPT_HEADERDATA, r);
    SET(r->easy, CURLOPT_WRITEFUNCTION, on_body);
    SET(r->easy, CURLOPT_WRITEDATA, r);
    SET(r->easy, CURLOPT_PREREQFUNCTION, on_connected);
    SET(r->easy, CURLOPT_PREREQDATA, r);
    SET(r->easy, CURLOPT_ERRORBUFFER, r->curl_text);
    r->transfer = (struct pl_transfer){ .ended = pl__kube_lane_ended, .user = r };
    SET(r->easy, CURLOPT_PRIVATE, &r->transfer);
}

void pl__kube_request_prepare(struct kube_request *r, struct kube_lane *lane)
{
    assert(!r->easy);
    r->easy = must_alloc(curl_easy_init());
    set_transport(r, lane);
    set_request(r);
    set_headers(r);
}

/* --- how it ends ---------------------------------------------------------------------------------- */

static void leave_lane(struct kube_request *r)
{
    if (!r->lane)
        return;
    pl__multi_remove(r->kube->multi, r->easy);
    r->lane = NULL;
}

void pl__kube_request_rewind(struct kube_request *r)
{
    leave_lane(r);
    easy_free(r);
    answer_free(r);
    r->status = 0;
    r->retry_after_s = -1;
    r->header_bytes = 0;
    r->headers_done = false;
    r->curl_text[0] = '\0';
}

void pl__kube_request_fail(struct kube_request *r, enum pl_kube_failure failure, const char *format,
                           ...)
{
    char text[KUBE_ERROR_BYTES];
    va_list args;

    r->failure = failure;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    free(r->error);
    r->error = text_copy(text);
}

void pl__kube_request_finish(struct kube_request *r)
{
    struct kube_lane *lane = r->lane;

    leave_lane(r);
    if (r->list)
        pl__kube_list_remove(r);
    if (r->probe) {
        pl__kube_lane_probed(lane, r);
        pl__kube_request_free(r);
        return;
    }
    if (r->failure != KUBE_OK && r->failure != KUBE_CANCELLED)
        count_answer(r);
    pl__kube_list_add(&r->kube->finished, r);
}
