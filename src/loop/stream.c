/* Both kinds of stream are a socket that is watched with uv_poll; they differ in how it gets connected and
 * in the two functions that move bytes. */
#include "loop/stream.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytequeue.h"
#include "loop/kube_internal.h"

enum {
    READ_BYTES =
        16 * 1024,        /* a whole TLS record: nothing stays behind in OpenSSL, unseen by poll */
    READ_ROUNDS_MAX = 16, /* then others have their turn */
    AUTH_AGAIN_MS = 50,   /* a credential plugin runs: look again */
    ADDRESSES_MAX = 8,
    ERROR_BYTES = 256,
};

enum state {
    STREAM_PREPARING, /* credentials, or the name is looked up */
    STREAM_CONNECTING,
    STREAM_OPEN,
    STREAM_ENDED, /* `ended` was called */
};

struct pl_stream {
    struct pl_loop *loop;
    struct pl_stream_handlers handlers;
    void *user;
    enum state state;
    bool closing;
    uint32_t handle_count; /* not closed yet */
    uint64_t deadline_ms;  /* of connecting */
    uv_timer_t timer;
    uv_poll_t poll;
    int fd; /* -1: none. Ours to close. */
    int events;
    struct pl_bytequeue out;
    struct pl_stream_counts counts;

    /* To an API server. */
    struct pl_kube *kube; /* NULL: plain TCP */
    struct pl_kube_tls *tls;
    struct pl_multi *multi; /* the API server's */
    CURL *easy;             /* while it is in there */
    struct pl_transfer transfer;
    char curl_text[CURL_ERROR_SIZE];

    /* Plain TCP. */
    char *host;
    uint16_t port;
    uv_getaddrinfo_t lookup;
    bool looking_up;
    struct sockaddr_storage addresses[ADDRESSES_MAX];
    size_t address_count, address_next;
};

/* --- ends ------------------------------------------------------------------------------------------ */

static void maybe_free(struct pl_stream *s)
{
    if (!s->closing || s->handle_count > 0 || s->looking_up)
        return;
    pl__bytequeue_release(&s->out);
    free(s->host);
    pl__loop_drop(s->loop);
    free(s);
}

static void handle_closed(uv_handle_t *handle)
{
    struct pl_stream *s = handle->data;

    s->handle_count--;
    maybe_free(s);
}

/* Stopping takes the descriptor out of epoll at once, so it may be closed before the handle is. */
static void socket_close(struct pl_stream *s, uv_close_cb closed)
{
    if (s->fd < 0)
        return;
    uv_poll_stop(&s->poll);
    uv_close((uv_handle_t *)&s->poll, closed);
    close(s->fd);
    s->fd = -1;
}

static void curl_close(struct pl_stream *s)
{
    if (s->easy) {
        pl__multi_remove(s->multi, s->easy);
        curl_easy_cleanup(s->easy);
    }
    s->easy = NULL;
    pl__kube_tls_unref(s->tls);
    s->tls = NULL;
}

static void release(struct pl_stream *s)
{
    uv_timer_stop(&s->timer);
    socket_close(s, handle_closed);
    curl_close(s);
}

static void end(struct pl_stream *s, enum pl_kube_failure failure, const char *error)
{
    if (s->state == STREAM_ENDED || s->closing)
        return;
    s->state = STREAM_ENDED;
    release(s);
    s->handlers.ended(s->user, failure, error);
}

void pl__stream_close(struct pl_stream *s)
{
    if (!s)
        return;
    assert(!s->closing);
    s->closing = true;
    release(s);
    if (s->looking_up)
        (void)uv_cancel((uv_req_t *)&s->lookup);
    uv_close((uv_handle_t *)&s->timer, handle_closed);
}

/* --- bytes ----------------------------------------------------------------------------------------- */

/* Moves bytes; 0: not now, -1: it has ended or broken, and `error` is set unless it ended properly. */
static ssize_t socket_receive(struct pl_stream *s, uint8_t *room, size_t size, const char **error)
{
    size_t curl_got = 0;

    if (s->easy) {
        CURLcode code = curl_easy_recv(s->easy, room, size, &curl_got);
        if (code == CURLE_AGAIN)
            return 0;
        if (code == CURLE_OK && curl_got > 0)
            return (ssize_t)curl_got;
        *error = code == CURLE_OK ? NULL : "the connection to the API server broke";
        return -1;
    }
    ssize_t got = recv(s->fd, room, size, 0);
    if (got > 0)
        return got;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return 0;
    *error = got == 0 ? NULL : "the connection broke";
    return -1;
}

static ssize_t socket_send(struct pl_stream *s, const uint8_t *bytes, size_t size,
                           const char **error)
{
    size_t curl_sent = 0;

    if (s->easy) {
        CURLcode code = curl_easy_send(s->easy, bytes, size, &curl_sent);
        if (code == CURLE_OK || code == CURLE_AGAIN)
            return (ssize_t)curl_sent;
        *error = "the connection to the API server broke";
        return -1;
    }
    ssize_t sent = send(s->fd, bytes, size, MSG_NOSIGNAL);
    if (sent >= 0)
        return sent;
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
        return 0;
    *error = "the connection broke";
    return -1;
}

static void poll_event(uv_poll_t *poll, int status, int events);

static void poll_for(struct pl_stream *s, int events)
{
    if (s->events == events)
        return;
    s->events = events;
    (void)uv_poll_start(&s->poll, events, poll_event);
}

/* 0, or -1: broken; the stream is as it was. */
static int flush(struct pl_stream *s, const char **error)
{
    ssize_t sent = 1;

    while (s->out.len > 0 && sent > 0) {
        sent = socket_send(s, pl__bytequeue_bytes(&s->out), s->out.len, error);
        if (sent < 0)
            return -1;
        pl__bytequeue_drop(&s->out, (size_t)sent);
        s->counts.bytes_out += (uint64_t)sent;
        s->counts.writes += sent > 0;
    }
    return 0;
}

static void receive(struct pl_stream *s)
{
    uint8_t room[READ_BYTES];
    const char *error = NULL;

    for (int round = 0; round < READ_ROUNDS_MAX && s->state == STREAM_OPEN && !s->closing;
         round++) {
        ssize_t got = socket_receive(s, room, sizeof room, &error);
        if (got == 0)
            return;
        if (got < 0) {
            end(s, error ? KUBE_CUT : KUBE_OK, error ? error : "");
            return;
        }
        s->counts.bytes_in += (uint64_t)got;
        s->counts.reads++;
        s->handlers.received(s->user, room, (size_t)got);
    }
}

static void open_event(struct pl_stream *s, int status, int events)
{
    const char *error = NULL;

    /* With a fault there is something to read, too: at least what it was. */
    if (status < 0 || (events & UV_READABLE)) {
        if (status < 0)
            s->events = 0; /* libuv has stopped */
        receive(s);
    }
    if (s->state != STREAM_OPEN || s->closing)
        return;
    if (flush(s, &error) < 0) {
        end(s, KUBE_CUT, error);
        return;
    }
    poll_for(s, s->out.len > 0 ? UV_READABLE | UV_WRITABLE : UV_READABLE);
}

int pl__stream_write(struct pl_stream *s, const void *bytes, size_t size)
{
    const char *error = NULL;

    if (pl__bytequeue_add(&s->out, bytes, size) < 0)
        return -1;
    /* A fault is told from the loop: the descriptor is writable then, too. */
    if (s->state == STREAM_OPEN && (flush(s, &error) < 0 || s->out.len > 0))
        poll_for(s, UV_READABLE | UV_WRITABLE);
    return 0;
}

/* Takes over a descriptor to watch. -1: the system refuses. */
static int watch(struct pl_stream *s, int fd, int events)
{
    if (uv_poll_init_socket(pl__loop_uv(s->loop), &s->poll, fd) < 0) {
        close(fd);
        return -1;
    }
    s->poll.data = s;
    s->handle_count++;
    s->fd = fd;
    s->events = 0;
    poll_for(s, events);
    return 0;
}

static void opened(struct pl_stream *s)
{
    uv_timer_stop(&s->timer);
    s->state = STREAM_OPEN;
    poll_for(s, s->out.len > 0 ? UV_READABLE | UV_WRITABLE : UV_READABLE);
    s->handlers.connected(s->user);
}

/* --- to an API server ------------------------------------------------------------------------------- */

static void curl_ended(void *user, CURLcode result)
{
    struct pl_stream *s = user;
    char text[ERROR_BYTES];
    curl_socket_t socket = CURL_SOCKET_BAD;

    if (result != CURLE_OK) {
        enum pl_kube_failure failure =
            pl__kube_failure(s->easy, result, s->curl_text, &s->kube->peer, text, sizeof text);
        if (failure == KUBE_TLS)
            pl__kube_auth_recheck(&s->kube->auth);
        if (failure == KUBE_TIMEOUT) /* libcurl's text has the time in it */
            pl__stream_late_text(s, text, sizeof text);
        end(s, failure, text);
        return;
    }
    curl_easy_getinfo(s->easy, CURLINFO_ACTIVESOCKET, &socket);
    int fd = socket == CURL_SOCKET_BAD ? -1 : fcntl(socket, F_DUPFD_CLOEXEC, 0);
    if (fd < 0 || watch(s, fd, UV_READABLE) < 0) {
        end(s, KUBE_UNREACHABLE, "no descriptor left for the connection");
        return;
    }
    opened(s);
}

static CURLcode on_ssl_context(CURL *easy, void *context, void *user)
{
    (void)easy;
    (void)user;
    /* libcurl asks for buffers that come and go with every record; giving them back (loop/sparse.h) cost
     * a third of an observation. */
    SSL_CTX_clear_mode(context, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    return CURLE_OK;
}

static void curl_set(CURL *easy, CURLoption option, long value)
{
    if (curl_easy_setopt(easy, option, value) != CURLE_OK)
        abort();
}

static void curl_start(struct pl_stream *s)
{
    struct pl_kube *kube = s->kube;

    s->state = STREAM_CONNECTING;
    s->easy = curl_easy_init();
    if (!s->easy)
        abort();
    s->tls = pl__kube_tls_ref(kube->auth.tls);
    pl__kube_easy_connect(kube, s->easy, s->tls);
    curl_set(s->easy, CURLOPT_CONNECT_ONLY, 1);
    curl_set(s->easy, CURLOPT_FRESH_CONNECT, 1);
    curl_set(s->easy, CURLOPT_HTTPPROXYTUNNEL, 1); /* also to a plain http server */
    curl_set(s->easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    /* The timer is ours: libcurl counts each address by itself. */
    curl_set(s->easy, CURLOPT_CONNECTTIMEOUT_MS, INT_MAX / 2);
    s->transfer = (struct pl_transfer){ .ended = curl_ended, .user = s, .stays = true };
    if (curl_easy_setopt(s->easy, CURLOPT_URL, kube->base_url) != CURLE_OK ||
        curl_easy_setopt(s->easy, CURLOPT_SSL_CTX_FUNCTION, on_ssl_context) != CURLE_OK ||
        curl_easy_setopt(s->easy, CURLOPT_ERRORBUFFER, s->curl_text) != CURLE_OK ||
        curl_easy_setopt(s->easy, CURLOPT_PRIVATE, &s->transfer) != CURLE_OK)
        abort();
    pl__multi_add(s->multi, s->easy);
}

static void timer_fired(uv_timer_t *timer);

static void timer_start(struct pl_stream *s, uint64_t at_most_ms)
{
    uint64_t now_ms = pl__loop_mono_ms(s->loop);
    uint64_t left_ms = s->deadline_ms > now_ms ? s->deadline_ms - now_ms : 0;

    uv_timer_start(&s->timer, timer_fired, left_ms < at_most_ms ? left_ms : at_most_ms, 0);
}

static void kube_prepare(struct pl_stream *s)
{
    switch (pl__kube_auth_prepare(&s->kube->auth)) {
    case KUBE_AUTH_READY:
        timer_start(s, UINT64_MAX);
        curl_start(s);
        return;
    case KUBE_AUTH_WAIT:
        timer_start(s, AUTH_AGAIN_MS);
        return;
    case KUBE_AUTH_FAILED:
        end(s, KUBE_CREDENTIALS, s->kube->auth.error);
        return;
    }
}

/* --- plain TCP ---------------------------------------------------------------------------------------- */

static void tcp_failed(struct pl_stream *s, int reason)
{
    char text[ERROR_BYTES];

    end(s, KUBE_UNREACHABLE, pl__errno_text(reason, text, sizeof text));
}

/* Begins to connect to the next address. 0, or an errno. */
static int tcp_connect(struct pl_stream *s)
{
    const struct sockaddr *address = (struct sockaddr *)&s->addresses[s->address_next++];
    socklen_t size =
        address->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int one = 1;

    if (fd < 0)
        return errno;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(fd, address, size) < 0 && errno != EINPROGRESS) {
        int reason = errno;
        close(fd);
        return reason;
    }
    return watch(s, fd, UV_WRITABLE) < 0 ? EMFILE : 0;
}

static void tcp_start(struct pl_stream *s)
{
    int reason = EHOSTUNREACH;

    s->state = STREAM_CONNECTING;
    while (s->address_next < s->address_count) {
        reason = tcp_connect(s);
        if (reason == 0)
            return;
    }
    tcp_failed(s, reason);
}

static void poll_closed_next(uv_handle_t *handle)
{
    struct pl_stream *s = handle->data;

    s->handle_count--;
    if (s->closing)
        maybe_free(s);
    else if (s->state == STREAM_CONNECTING)
        tcp_start(s);
}

/* An address did not work. The watcher's handle can be used for the next one when it is closed. */
static void tcp_next(struct pl_stream *s, int reason)
{
    if (s->address_next == s->address_count) {
        tcp_failed(s, reason);
        return;
    }
    socket_close(s, poll_closed_next);
}

static void connecting_event(struct pl_stream *s)
{
    int reason = 0;
    socklen_t size = sizeof reason;

    if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &reason, &size) < 0)
        reason = errno;
    if (reason == 0)
        opened(s);
    else
        tcp_next(s, reason);
}

static void poll_event(uv_poll_t *poll, int status, int events)
{
    struct pl_stream *s = poll->data;

    if (s->state == STREAM_CONNECTING)
        connecting_event(s);
    else if (s->state == STREAM_OPEN)
        open_event(s, status, events);
}

static void looked_up(uv_getaddrinfo_t *lookup, int status, struct addrinfo *found)
{
    struct pl_stream *s = lookup->data;

    s->looking_up = false;
    for (struct addrinfo *at = found; at && s->address_count < ADDRESSES_MAX; at = at->ai_next)
        if ((at->ai_family == AF_INET || at->ai_family == AF_INET6) &&
            at->ai_addrlen <= sizeof s->addresses[0])
            memcpy(&s->addresses[s->address_count++], at->ai_addr, at->ai_addrlen);
    uv_freeaddrinfo(found);
    if (s->closing)
        maybe_free(s);
    else if (s->state == STREAM_PREPARING && (status < 0 || s->address_count == 0))
        end(s, KUBE_UNREACHABLE, "host name not found");
    else if (s->state == STREAM_PREPARING)
        tcp_start(s);
}

static void tcp_prepare(struct pl_stream *s)
{
    static const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
    char service[8];

    if (uv_ip4_addr(s->host, s->port, (struct sockaddr_in *)&s->addresses[0]) == 0 ||
        uv_ip6_addr(s->host, s->port, (struct sockaddr_in6 *)&s->addresses[0]) == 0) {
        s->address_count = 1;
        tcp_start(s);
        return;
    }
    snprintf(service, sizeof service, "%u", s->port);
    s->lookup.data = s;
    if (uv_getaddrinfo(pl__loop_uv(s->loop), &s->lookup, looked_up, s->host, service, &hints) < 0)
        end(s, KUBE_UNREACHABLE, "host name not found");
    else
        s->looking_up = true;
}

/* --- for callers ------------------------------------------------------------------------------------ */

void pl__stream_late_text(const struct pl_stream *s, char *room, size_t size)
{
    if (!s->kube)
        snprintf(room, size, "no answer");
    else if (s->state == STREAM_PREPARING)
        snprintf(room, size, "no credentials for %s in time", s->kube->peer.host);
    else
        snprintf(room, size, "no answer from %s", s->kube->peer.host);
}

static void too_late(struct pl_stream *s)
{
    char text[ERROR_BYTES];

    pl__stream_late_text(s, text, sizeof text);
    end(s, KUBE_TIMEOUT, text);
}

/* The first time it is what starts it, outside of the caller's call. */
static void timer_fired(uv_timer_t *timer)
{
    struct pl_stream *s = timer->data;

    if (pl__loop_mono_ms(s->loop) >= s->deadline_ms) {
        too_late(s);
    } else if (s->state == STREAM_PREPARING && s->kube) {
        kube_prepare(s);
    } else if (s->state == STREAM_PREPARING && !s->looking_up) {
        timer_start(s, UINT64_MAX);
        tcp_prepare(s);
    }
}

static struct pl_stream *stream_new(struct pl_loop *loop, uint32_t timeout_ms,
                                    const struct pl_stream_handlers *handlers, void *user)
{
    struct pl_stream *s = calloc(1, sizeof *s);

    if (!s)
        abort();
    s->loop = loop;
    s->handlers = *handlers;
    s->user = user;
    s->fd = -1;
    s->deadline_ms = pl__loop_mono_ms(loop) + timeout_ms;
    pl__bytequeue_init(&s->out, STREAM_WAITING_BYTES_MAX);
    uv_timer_init(pl__loop_uv(loop), &s->timer);
    s->timer.data = s;
    s->handle_count = 1;
    pl__loop_hold(loop);
    uv_timer_start(&s->timer, timer_fired, 0, 0);
    return s;
}

struct pl_stream *pl__stream_open_kube(struct pl_loop *loop, struct pl_kube *kube,
                                       uint32_t timeout_ms,
                                       const struct pl_stream_handlers *handlers, void *user)
{
    struct pl_stream *s = stream_new(loop, timeout_ms, handlers, user);

    s->kube = kube;
    s->multi = kube->multi;
    s->out.secret = true; /* a token goes through it */
    return s;
}

struct pl_stream *pl__stream_open_tcp(struct pl_loop *loop, const char *host, uint16_t port,
                                      uint32_t timeout_ms,
                                      const struct pl_stream_handlers *handlers, void *user)
{
    struct pl_stream *s = stream_new(loop, timeout_ms, handlers, user);

    s->host = strdup(host);
    if (!s->host)
        abort();
    s->port = port;
    return s;
}

struct pl_stream_counts pl__stream_counts(const struct pl_stream *s)
{
    return s->counts;
}
