#include "loop/tunnel.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>

#include "proto/portserve.h"
#include "proto/upgrade.h"

enum {
    CHUNK_BYTES = 64 * 1024,
    POD_BYTES_MAX = 256 * 1024, /* wait for the pod: more is not read from the client */
    KEY_BYTES_MAX = 80,
    REFUSAL_BYTES_MAX = 256,
    LINGER_MS = 2000, /* for the client to take the last words */
};

#define ONLY_V4                                                                                 \
    "port-forward is served by WebSocket with " UPGRADE_PROTOCOL " only; kubectl speaks SPDY, " \
    "and has to be done without here"

struct pl_tunnel {
    struct pl_loop *loop;
    struct pl_tunnel_options options;
    char host[64], refuse[REFUSAL_BYTES_MAX];
    struct pl_portserve *proto;
    struct pl_server_socket *socket; /* NULL: HTTP has it still, or it was given back */
    int fd;
    uv_poll_t client;
    uv_tcp_t pod;
    uv_timer_t delay;
    uv_connect_t connect;
    uv_write_t write;
    char *writing; /* what uv_write() has; NULL: nothing is under way */
    int holds;     /* handles that are not closed yet, and HTTP until it has let go */
    bool connected, reading, ended, lingering, finished;
    char chunk[CHUNK_BYTES];
};

/* --- its end ---------------------------------------------------------------------------------------- */

static void tunnel_free(struct pl_tunnel *t)
{
    struct pl_loop *loop = t->loop;

    pl__portserve_free(t->proto);
    free(t->writing);
    free(t);
    pl__loop_drop(loop);
}

static void release(struct pl_tunnel *t)
{
    if (--t->holds == 0)
        tunnel_free(t);
}

static void handle_closed(uv_handle_t *handle)
{
    release(handle->data);
}

static void finish(struct pl_tunnel *t)
{
    if (t->finished)
        return;
    t->finished = t->ended = true;
    if (t->options.closed)
        t->options.closed(t->options.user, t);
    if (t->socket) {
        uv_poll_stop(&t->client); /* before the descriptor goes */
        pl__server_socket_close(t->socket);
        t->socket = NULL;
        uv_close((uv_handle_t *)&t->client, handle_closed);
    }
    uv_close((uv_handle_t *)&t->pod, handle_closed);
    uv_close((uv_handle_t *)&t->delay, handle_closed);
}

/* Says why on the error channel; it is over when that was sent. */
static void end(struct pl_tunnel *t, const char *why)
{
    t->ended = true;
    pl__portserve_end(t->proto, pl__str(why));
}

/* --- moving bytes ------------------------------------------------------------------------------------- */

static void pump(struct pl_tunnel *t);

static void pod_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct pl_tunnel *t = handle->data;
    size_t room = pl__portserve_room(t->proto);

    (void)suggested;
    *buf = uv_buf_init(t->chunk, (unsigned)(room < sizeof t->chunk ? room : sizeof t->chunk));
}

static void pod_said(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    struct pl_tunnel *t = stream->data;

    if (t->finished || count == 0)
        return;
    if (count > 0)
        pl__portserve_write(t->proto, buf->base, (size_t)count);
    else
        end(t, ""); /* by its own will or not: v4 has no way to tell */
    pump(t);
}

static void pod_wrote(uv_write_t *request, int status)
{
    struct pl_tunnel *t = request->data;

    free(t->writing);
    t->writing = NULL;
    if (t->finished)
        return;
    if (status < 0)
        end(t, "");
    pump(t);
}

static void pod_write(struct pl_tunnel *t)
{
    const uint8_t *bytes;
    size_t size = pl__portserve_read(t->proto, &bytes);

    if (!t->connected || t->writing || size == 0)
        return;
    t->writing = malloc(size);
    if (!t->writing)
        abort();
    memcpy(t->writing, bytes, size);
    pl__portserve_took(t->proto, size);
    uv_buf_t buf = uv_buf_init(t->writing, (unsigned)size);
    t->write.data = t;
    if (uv_write(&t->write, (uv_stream_t *)&t->pod, &buf, 1, pod_wrote) < 0) {
        free(t->writing);
        t->writing = NULL;
        end(t, "");
    }
}

/* Reads from the pod only while the client takes it. */
static void pod_listen(struct pl_tunnel *t)
{
    bool want = t->connected && !t->ended && pl__portserve_room(t->proto) >= CHUNK_BYTES;

    if (want == t->reading)
        return;
    t->reading = want;
    if (want)
        uv_read_start((uv_stream_t *)&t->pod, pod_alloc, pod_said);
    else
        uv_read_stop((uv_stream_t *)&t->pod);
}

/* 0, or -1 when the client is gone. */
static int client_send(struct pl_tunnel *t)
{
    const uint8_t *bytes;
    size_t size;

    while ((size = pl__portserve_send(t->proto, &bytes)) > 0) {
        ssize_t sent = send(t->fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? 0 : -1;
        pl__portserve_sent(t->proto, (size_t)sent);
    }
    return 0;
}

static int client_read(struct pl_tunnel *t)
{
    ssize_t got = recv(t->fd, t->chunk, sizeof t->chunk, MSG_DONTWAIT);

    if (got < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? 0 : -1;
    if (got == 0)
        return -1;
    if (!t->ended && pl__portserve_receive(t->proto, t->chunk, (size_t)got) < 0)
        t->ended = true;
    return 0;
}

static void client_ready(uv_poll_t *poll, int status, int events)
{
    struct pl_tunnel *t = poll->data;

    if (t->finished)
        return;
    if (status < 0 || (events & UV_DISCONNECT) || ((events & UV_READABLE) && client_read(t) < 0))
        finish(t);
    else
        pump(t);
}

static void client_watch(struct pl_tunnel *t)
{
    const uint8_t *bytes;
    bool read = t->ended || pl__portserve_read(t->proto, &bytes) < POD_BYTES_MAX;
    int events = read ? UV_READABLE : UV_DISCONNECT; /* one that leaves is readable, too */

    if (pl__portserve_send(t->proto, &bytes) > 0)
        events |= UV_WRITABLE;
    uv_poll_start(&t->client, events, client_ready);
}

static void linger_over(uv_timer_t *timer)
{
    finish(timer->data);
}

/* By TLS the descriptor leads to libmicrohttpd, not to the client. */
static bool is_direct(const struct pl_tunnel *t)
{
    struct sockaddr_storage address;
    socklen_t len = sizeof address;

    return getsockname(t->fd, (struct sockaddr *)&address, &len) == 0 &&
           address.ss_family != AF_UNIX;
}

/* It has ended: what waits is sent, and what still comes is thrown away until the client has left, for a while.
 * Closed at once, with bytes of the client on their way, the kernel would take back what was sent: why it
 * ended. */
static void linger(struct pl_tunnel *t)
{
    const uint8_t *bytes;

    if (!t->lingering)
        uv_timer_start(&t->delay, linger_over, LINGER_MS, 0);
    t->lingering = true;
    if (pl__portserve_send(t->proto, &bytes) > 0)
        return;
    if (!is_direct(t))
        finish(t);
    else
        (void)shutdown(t->fd, SHUT_WR);
}

/* What can be moved is, and then it waits for what cannot. */
static void pump(struct pl_tunnel *t)
{
    pod_write(t);
    pod_listen(t);
    if (client_send(t) < 0) {
        finish(t);
        return;
    }
    if (t->ended)
        linger(t);
    if (!t->finished)
        client_watch(t);
}

/* --- its beginning -------------------------------------------------------------------------------------- */

static void refuse(struct pl_tunnel *t, const char *why)
{
    char text[REFUSAL_BYTES_MAX + 64];

    snprintf(text, sizeof text, "error forwarding port %u to pod: %s", t->options.port, why);
    end(t, text);
    pump(t);
}

static void pod_connected(uv_connect_t *request, int status)
{
    struct pl_tunnel *t = request->data;

    if (t->finished || t->ended)
        return;
    if (status < 0) {
        refuse(t, uv_strerror(status));
        return;
    }
    uv_tcp_nodelay(&t->pod, 1);
    t->connected = true;
    pump(t);
}

static void dial(uv_timer_t *timer)
{
    struct pl_tunnel *t = timer->data;
    struct sockaddr_storage address;
    int result;

    if (t->finished)
        return;
    result = uv_ip4_addr(t->host, t->options.host_port, (struct sockaddr_in *)&address);
    if (result < 0)
        result = uv_ip6_addr(t->host, t->options.host_port, (struct sockaddr_in6 *)&address);
    t->connect.data = t;
    if (result == 0)
        result =
            uv_tcp_connect(&t->connect, &t->pod, (const struct sockaddr *)&address, pod_connected);
    if (result < 0)
        refuse(t, uv_strerror(result));
}

static void upgraded(void *user, struct pl_server_socket *socket, int fd, struct pl_str early)
{
    struct pl_tunnel *t = user;

    t->fd = fd;
    t->client.data = t;
    if (t->finished || uv_poll_init(pl__loop_uv(t->loop), &t->client, fd) < 0) {
        pl__server_socket_close(socket);
        finish(t);
        release(t);
        return;
    }
    t->socket = socket; /* HTTP's hold is now that of the handle */
    if (early.len > 0 && pl__portserve_receive(t->proto, early.ptr, early.len) < 0)
        t->ended = true;
    if (t->options.refuse)
        refuse(t, t->refuse);
    else
        uv_timer_start(&t->delay, dial, t->options.delay_ms, 0);
    if (!t->finished)
        pump(t);
}

static void server_closing(void *user, struct pl_server_socket *socket)
{
    finish(user);
    if (!socket)
        release(user); /* HTTP's */
}

void pl__tunnel_cut(struct pl_tunnel *tunnel)
{
    finish(tunnel);
}

static bool header_is(const struct pl_server_call *call, const char *name, const char *value)
{
    const char *got = pl__server_header(call, name);

    return got && strcasecmp(got, value) == 0;
}

/* Is `word` one of the list's? */
static bool header_has(const struct pl_server_call *call, const char *name, const char *word)
{
    const char *at = pl__server_header(call, name);
    size_t len = strlen(word);

    while (at && *at) {
        at += strspn(at, " \t,");
        size_t item = strcspn(at, " \t,");
        if (item == len && strncasecmp(at, word, len) == 0)
            return true;
        at += item;
    }
    return false;
}

bool pl__tunnel_wanted(const struct pl_server_call *call, const char **why)
{
    const char *key = pl__server_header(call, "Sec-WebSocket-Key");

    if (!pl__server_header(call, "Upgrade") || !header_has(call, "Connection", "upgrade")) {
        *why = "Upgrade request required";
        return false;
    }
    if (!header_is(call, "Upgrade", "websocket")) {
        *why = ONLY_V4;
        return false;
    }
    if (!header_is(call, "Sec-WebSocket-Version", "13") || !key || strlen(key) > KEY_BYTES_MAX) {
        *why = "not a WebSocket handshake of version 13";
        return false;
    }
    if (!header_has(call, "Sec-WebSocket-Protocol", UPGRADE_PROTOCOL)) {
        *why = ONLY_V4;
        return false;
    }
    return true;
}

struct pl_tunnel *pl__tunnel_open(struct pl_loop *loop, struct pl_server_call *call,
                                  const struct pl_tunnel_options *options)
{
    struct pl_tunnel *t = calloc(1, sizeof *t);
    struct pl_arena arena;

    if (!t)
        abort();
    t->loop = loop;
    t->options = *options;
    snprintf(t->host, sizeof t->host, "%s", options->host ? options->host : "");
    snprintf(t->refuse, sizeof t->refuse, "%s", options->refuse ? options->refuse : "");
    t->proto = pl__portserve_new(options->port);
    pl__loop_hold(loop);
    uv_tcp_init(pl__loop_uv(loop), &t->pod);
    uv_timer_init(pl__loop_uv(loop), &t->delay);
    t->pod.data = t->delay.data = t;
    t->holds = 3;
    pl__arena_init(&arena, NULL, 1024);
    struct pl_str key = pl__str(pl__server_header(call, "Sec-WebSocket-Key"));
    pl__server_answer_header(call, "Sec-WebSocket-Accept", pl__upgrade_accept(&arena, key));
    pl__server_answer_header(call, "Sec-WebSocket-Protocol", PL_STR(UPGRADE_PROTOCOL));
    pl__arena_release(&arena);
    pl__server_upgrade(call, "websocket",
                       &(struct pl_server_upgrade){ upgraded, server_closing, t });
    return t;
}
