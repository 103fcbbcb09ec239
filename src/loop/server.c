/* libmicrohttpd has an epoll descriptor of its own. The loop polls that one descriptor and a timer,
 * and calls MHD_run() when either speaks; all callbacks come from there. A request whose answer comes
 * later is suspended meanwhile, which takes it out of libmicrohttpd's own time limits, so there is a
 * limit of ours.
 *
 * A stream with nothing to say is suspended, too, and libmicrohttpd does not look at the socket of what is
 * suspended: so the loop watches it for the client's end. The same while a body is awaited: an end that comes
 * together with bytes escapes libmicrohttpd, which would hold the half of a body until its time limit. */
#include "loop/server.h"

#include <assert.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/secret.h"
#include "loop/kube_tls.h"
#include "loop/listen.h"

enum {
    CONNECTIONS_MAX_DEFAULT = 64,
    TIMEOUT_S_DEFAULT = 30,
    ANSWER_TIMEOUT_MS_DEFAULT = 60 * 1000,
    HEADER_BYTES_MAX = 32 * 1024, /* libmicrohttpd's memory for a connection: headers must fit */
    STREAM_BLOCK_BYTES =
        1024, /* not used for chunks, which are read into the connection's memory */
    DISCARD_BYTES_MAX = 1024 * 1024, /* of a body that is too long */
    HELD_BYTES_MAX_DEFAULT = 256 * 1024 * 1024,
    SMALL_BYTES_MAX = 64 * 1024, /* bodies and answers that the last quarter of that is kept for */
    ANSWER_HEADERS_MAX = 5,      /* one of ours */
    LEAVING_MS = 5,
};

struct pl_server {
    struct pl_loop *loop;
    struct pl_server_options options;
    struct pl_arena arena; /* the key is in it: wiped at the end */
    struct MHD_Daemon *daemon;
    uv_poll_t poll;
    uv_timer_t timer;  /* libmicrohttpd's next time limit */
    uv_idle_t soon;    /* it has more to do at once */
    uv_timer_t expiry; /* of the oldest call without an answer */
    int handle_count;  /* not closed yet */
    uint16_t port;
    struct pl_server_call *oldest, *newest; /* suspended without an answer */
    struct pl_server_call *streams;
    struct pl_server_socket *sockets;
    uint32_t leaving;  /* sockets that were given back and that libmicrohttpd has not closed yet */
    size_t held_bytes; /* bodies and answers of all calls */
    bool closing;
};

/* For the client's end, of a stream or in the middle of a body. Outlives the call until the loop has let go of
 * it. */
struct lookout {
    uv_poll_t poll;
    struct pl_server_call *call; /* NULL: it has ended */
};

/* Lives as long as libmicrohttpd's request does. The caller's view of it ends with its answer, or its
 * stream. */
struct pl_server_call {
    struct pl_server_call *next, *prev; /* while suspended without an answer; while a stream */
    struct pl_server *server;
    struct MHD_Connection *connection;
    struct MHD_Response *response;
    int status;
    uint64_t deadline_ms;
    void *data;
    char *target; /* as it came */
    char *body;
    size_t body_len, body_capacity;
    uint64_t body_received;  /* with what was thrown away */
    uint64_t body_announced; /* UINT64_MAX: chunks */
    size_t answer_bytes;
    struct {
        char *name, *value;
    } headers[ANSWER_HEADERS_MAX];
    size_t header_count;
    int refused; /* 413 or 429: the body is thrown away; 501: it cannot be read; 0: not */
    bool begun, is_get, handled, suspended, dropped;

    struct pl_server_stream stream; /* `read` is NULL: none */
    struct lookout *lookout;        /* NULL: not yet, or seen to be gone */
    bool stream_suspended;
    bool stream_lost; /* the client has left */
    bool stream_cut;  /* the server closes */

    struct pl_server_upgrade upgrade; /* `open` is NULL: none, or done */
    bool was_upgraded;
};

struct pl_server_socket {
    struct pl_server_socket *next, *prev;
    struct pl_server *server;
    struct MHD_UpgradeResponseHandle *handle;
    struct pl_server_upgrade upgrade;
};

/* --- calls --------------------------------------------------------------------------------------- */

static void pending_add(struct pl_server *server, struct pl_server_call *call)
{
    call->suspended = true;
    call->next = NULL;
    call->prev = server->newest;
    if (server->newest)
        server->newest->next = call;
    else
        server->oldest = call;
    server->newest = call;
}

static void pending_remove(struct pl_server *server, struct pl_server_call *call)
{
    call->suspended = false;
    if (call->prev)
        call->prev->next = call->next;
    else
        server->oldest = call->next;
    if (call->next)
        call->next->prev = call->prev;
    else
        server->newest = call->prev;
}

static void soon_fired(uv_idle_t *idle);
static void expiry_fired(uv_timer_t *timer);
static void answer_refusal(struct pl_server_call *call);

/* Calls MHD_run() in the next turn of the loop. */
static void server_poke(struct pl_server *server)
{
    uv_idle_start(&server->soon, soon_fired);
}

static void expiry_arm(struct pl_server *server)
{
    uint64_t now_ms = pl__loop_mono_ms(server->loop);

    if (!server->oldest) {
        uv_timer_stop(&server->expiry);
        return;
    }
    uint64_t deadline_ms = server->oldest->deadline_ms;
    uv_timer_start(&server->expiry, expiry_fired, deadline_ms > now_ms ? deadline_ms - now_ms : 1,
                   0);
}

const char *pl__server_header(const struct pl_server_call *call, const char *name)
{
    return MHD_lookup_connection_value(call->connection, MHD_HEADER_KIND, name);
}

/* A copy with a NUL behind it, on the heap. */
static char *text_copy(struct pl_str text)
{
    char *copy = malloc(text.len + 1);

    if (!copy)
        abort();
    if (text.len > 0)
        memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    return copy;
}

void pl__server_answer_header(struct pl_server_call *call, const char *name, struct pl_str value)
{
    assert(call->header_count < ANSWER_HEADERS_MAX && !call->response);
    call->headers[call->header_count].name = text_copy(pl__str(name));
    call->headers[call->header_count++].value = text_copy(value);
}

/* There is an answer: libmicrohttpd takes it from on_request(). */
static void call_settle(struct pl_server_call *call, int status, struct MHD_Response *response)
{
    struct pl_server *server = call->server;

    assert(!call->response && !call->dropped);
    if (!response)
        abort();
    call->response = response;
    call->status = status;
    for (size_t i = 0; i < call->header_count; i++)
        MHD_add_response_header(response, call->headers[i].name, call->headers[i].value);
    if (call->suspended) {
        pending_remove(server, call);
        MHD_resume_connection(call->connection);
        server_poke(server);
        expiry_arm(server);
    }
}

static void type_add(struct MHD_Response *response, const char *content_type)
{
    const char *type = content_type ? content_type : "text/plain; charset=utf-8";

    if (!response)
        return; /* call_settle() aborts */
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
}

/* Whether there is room for so much more. What is small gets through where clients that ask for much, and do
 * not take it, have all the rest. */
static bool may_hold(const struct pl_server *server, size_t size)
{
    size_t max = server->options.held_bytes_max;

    if (size > SMALL_BYTES_MAX)
        max -= max / 4;
    return size <= max && server->held_bytes <= max - size;
}

void pl__server_answer(struct pl_server_call *call, int status, const char *content_type,
                       struct pl_str body)
{
    if (call->is_get && !call->refused && !may_hold(call->server, body.len)) {
        call->refused = MHD_HTTP_TOO_MANY_REQUESTS;
        answer_refusal(call);
        return;
    }
    /* It copies; the cast is for its signature only. */
    struct MHD_Response *response = MHD_create_response_from_buffer(
        body.len, (void *)(uintptr_t)(body.len ? body.ptr : ""), MHD_RESPMEM_MUST_COPY);

    type_add(response, content_type);
    call->answer_bytes = body.len;
    call->server->held_bytes += body.len;
    call_settle(call, status, response);
}

void pl__server_drop(struct pl_server_call *call)
{
    assert(!call->response && !call->dropped);
    call->dropped = true;
    if (call->suspended) {
        pending_remove(call->server, call);
        MHD_resume_connection(call->connection);
        server_poke(call->server);
        expiry_arm(call->server);
    }
}

void pl__server_call_set(struct pl_server_call *call, void *data)
{
    call->data = data;
}

void *pl__server_call_get(const struct pl_server_call *call)
{
    return call->data;
}

/* Ends a suspended call without its handler. */
static void call_drop(struct pl_server_call *call)
{
    struct pl_server *server = call->server;

    if (server->options.gone)
        server->options.gone(server->options.user, call);
    if (!call->response && !call->dropped)
        pl__server_answer(call, MHD_HTTP_SERVICE_UNAVAILABLE, NULL, PL_STR("no answer in time\n"));
}

static void expiry_fired(uv_timer_t *timer)
{
    struct pl_server *server = timer->data;
    uint64_t now_ms = pl__loop_mono_ms(server->loop);

    while (server->oldest && server->oldest->deadline_ms <= now_ms)
        call_drop(server->oldest);
    expiry_arm(server);
}

/* --- streams ---------------------------------------------------------------------------------------- */

static void lookout_closed(uv_handle_t *handle)
{
    struct lookout *lookout = handle->data;

    free(lookout);
}

static void lookout_end(struct pl_server_call *call)
{
    struct lookout *lookout = call->lookout;

    if (!lookout)
        return;
    call->lookout = NULL;
    lookout->call = NULL;
    uv_poll_stop(&lookout->poll);
    uv_close((uv_handle_t *)&lookout->poll, lookout_closed);
}

void pl__server_stream_wake(struct pl_server_call *call)
{
    if (!call->stream_suspended)
        return; /* it is about to be read, or being read: libmicrohttpd asks again */
    call->stream_suspended = false;
    MHD_resume_connection(call->connection);
    server_poke(call->server);
}

static void lookout_saw(uv_poll_t *poll, int status, int events)
{
    struct lookout *lookout = poll->data;
    struct pl_server_call *call = lookout->call;

    (void)status;
    (void)events;
    if (!call)
        return;
    if (!call->handled) {
        /* What was suspended is read from again, whether it seemed worth it or not. libmicrohttpd wants this
         * from its own callbacks only, for the sake of threads that it may have: here it has none and runs inside
         * of MHD_run(), which we are not in, so nothing is under way on any connection. */
        MHD_suspend_connection(call->connection);
        MHD_resume_connection(call->connection);
        server_poke(call->server);
        return;
    }
    call->stream_lost = true;
    lookout_end(call);
    pl__server_stream_wake(call);
}

/* Watches the client while there is nothing to send it, or something to come. Where that fails (no memory in
 * the kernel) the next thing that is sent tells, or the time limit. */
static void lookout_begin(struct pl_server_call *call)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(call->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct lookout *lookout = calloc(1, sizeof *lookout);

    if (!lookout)
        abort();
    if (!info ||
        uv_poll_init(pl__loop_uv(call->server->loop), &lookout->poll, info->connect_fd) != 0) {
        free(lookout);
        return;
    }
    lookout->call = call;
    lookout->poll.data = lookout;
    call->lookout = lookout;
    uv_poll_start(&lookout->poll, UV_DISCONNECT, lookout_saw);
}

static void stream_suspend(struct pl_server_call *call)
{
    if (!call->lookout)
        lookout_begin(call);
    call->stream_suspended = true;
    MHD_suspend_connection(call->connection);
}

static ssize_t stream_read(void *user, uint64_t position, char *bytes, size_t max)
{
    struct pl_server_call *call = user;
    size_t count = 0;

    (void)position;
    if (call->stream_cut)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (call->stream_lost) /* libmicrohttpd lets go when it cannot send the end; after an error, late */
        return MHD_CONTENT_READER_END_OF_STREAM;
    switch (call->stream.read(call->stream.user, bytes, max, &count)) {
    case SERVER_STREAM_MORE:
        assert(count > 0 && count <= max);
        return (ssize_t)count;
    case SERVER_STREAM_WAIT:
        stream_suspend(call);
        return 0;
    case SERVER_STREAM_END:
        return MHD_CONTENT_READER_END_OF_STREAM;
    case SERVER_STREAM_CUT:
        break;
    }
    return MHD_CONTENT_READER_END_WITH_ERROR;
}

void pl__server_stream(struct pl_server_call *call, int status, const char *content_type,
                       const struct pl_server_stream *stream)
{
    struct pl_server *server = call->server;
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, STREAM_BLOCK_BYTES, stream_read, call, NULL);

    type_add(response, content_type);
    call_settle(call, status, response);
    call->stream = *stream;
    call->prev = NULL;
    call->next = server->streams;
    if (server->streams)
        server->streams->prev = call;
    server->streams = call;
}

static void stream_end(struct pl_server_call *call)
{
    struct pl_server *server = call->server;

    if (call->prev)
        call->prev->next = call->next;
    else
        server->streams = call->next;
    if (call->next)
        call->next->prev = call->prev;
    call->stream.close(call->stream.user);
}

/* --- other protocols ---------------------------------------------------------------------------------- */

static void upgraded(void *user, struct MHD_Connection *connection, void *request,
                     const char *extra, size_t extra_size, MHD_socket fd,
                     struct MHD_UpgradeResponseHandle *handle)
{
    struct pl_server_call *call = user;
    struct pl_server *server = call->server;
    struct pl_server_socket *socket = calloc(1, sizeof *socket);

    (void)connection;
    (void)request;
    if (!socket)
        abort();
    socket->server = server;
    socket->handle = handle;
    socket->upgrade = call->upgrade;
    call->upgrade.open = NULL; /* done */
    call->was_upgraded = true;
    socket->next = server->sockets;
    if (server->sockets)
        server->sockets->prev = socket;
    server->sockets = socket;
    socket->upgrade.open(socket->upgrade.user, socket, fd, (struct pl_str){ extra, extra_size });
}

void pl__server_upgrade(struct pl_server_call *call, const char *protocol,
                        const struct pl_server_upgrade *upgrade)
{
    struct MHD_Response *response = MHD_create_response_for_upgrade(upgraded, call);

    if (response)
        MHD_add_response_header(response, MHD_HTTP_HEADER_UPGRADE, protocol);
    call->upgrade = *upgrade;
    call_settle(call, MHD_HTTP_SWITCHING_PROTOCOLS, response);
}

void pl__server_socket_close(struct pl_server_socket *socket)
{
    struct pl_server *server = socket->server;

    if (socket->prev)
        socket->prev->next = socket->next;
    else
        server->sockets = socket->next;
    if (socket->next)
        socket->next->prev = socket->prev;
    MHD_upgrade_action(socket->handle, MHD_UPGRADE_ACTION_CLOSE);
    free(socket);
    server->leaving++;
    server_poke(server);
}

/* --- what libmicrohttpd calls ---------------------------------------------------------------------- */

static void address_text(struct MHD_Connection *connection, char *text, size_t size)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);

    snprintf(text, size, "unknown");
    if (!info || !info->client_addr)
        return;
    socklen_t len = info->client_addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                                             : sizeof(struct sockaddr_in);
    (void)getnameinfo(info->client_addr, len, text, (socklen_t)size, NULL, 0, NI_NUMERICHOST);
}

static void answer_refusal(struct pl_server_call *call)
{
    const struct pl_server_options *o = &call->server->options;
    const char *type = NULL;
    struct pl_str body = PL_STR("this transfer encoding is not understood\n");
    struct pl_arena arena;

    pl__arena_init(&arena, NULL, 1024);
    if (call->refused == MHD_HTTP_TOO_MANY_REQUESTS) {
        body = PL_STR("too many requests, try again later\n");
        pl__server_answer_header(call, MHD_HTTP_HEADER_RETRY_AFTER, PL_STR("1"));
    } else if (call->refused == MHD_HTTP_CONTENT_TOO_LARGE) {
        body = o->body_bytes_max ? PL_STR("the body is too long\n")
                                 : PL_STR("no body is wanted here\n");
    }
    if (o->refusal && call->refused != MHD_HTTP_NOT_IMPLEMENTED)
        body = o->refusal(o->user, call->refused, &arena, &type);
    pl__server_answer(call, call->refused, type, body);
    pl__arena_release(&arena);
}

static void call_handle(struct pl_server_call *call, const char *method, const char *path)
{
    struct pl_server *server = call->server;
    char client[64];
    struct pl_server_request request = {
        .method = method,
        .path = path,
        .target = call->target,
        .authorization = pl__server_header(call, MHD_HTTP_HEADER_AUTHORIZATION),
        .client = client,
        .body = { call->body, call->body_len },
    };

    call->handled = true;
    call->is_get = strcmp(method, MHD_HTTP_METHOD_GET) == 0;
    lookout_end(call);
    address_text(call->connection, client, sizeof client);
    if (!call->refused && !may_hold(server, 0))
        call->refused = MHD_HTTP_TOO_MANY_REQUESTS;
    if (call->refused)
        answer_refusal(call);
    else if (server->closing)
        pl__server_answer(call, MHD_HTTP_SERVICE_UNAVAILABLE, NULL, PL_STR("shutting down\n"));
    else
        server->options.handle(server->options.user, call, &request);
    if (call->response || call->dropped)
        return;
    call->deadline_ms = pl__loop_mono_ms(server->loop) + server->options.answer_timeout_ms;
    MHD_suspend_connection(call->connection);
    pending_add(server, call);
    if (server->oldest == call)
        expiry_arm(server);
}

static void body_release(struct pl_server_call *call)
{
    call->server->held_bytes -= call->body_capacity;
    free(call->body);
    call->body = NULL;
    call->body_len = call->body_capacity = 0;
}

/* False: there is no room for it. */
static bool body_grow(struct pl_server_call *call, size_t wanted)
{
    struct pl_server *server = call->server;
    size_t max = server->options.body_bytes_max;
    size_t capacity = wanted > max / 2 ? max : wanted * 2;

    if (!may_hold(server, capacity - call->body_capacity))
        return false;
    char *body = realloc(call->body, capacity);
    if (!body)
        abort();
    server->held_bytes += capacity - call->body_capacity;
    call->body = body;
    call->body_capacity = capacity;
    return true;
}

/* False: it goes on and on. What is refused is read and thrown away for a while: answered before its end, the
 * client would lose the connection and perhaps the answer. */
static bool body_add(struct pl_server_call *call, const char *bytes, size_t size)
{
    size_t max = call->server->options.body_bytes_max;

    call->body_received += size;
    if (call->body_received > max)
        call->refused = MHD_HTTP_CONTENT_TOO_LARGE;
    else if (!call->refused && call->body_len + size > call->body_capacity &&
             !body_grow(call, call->body_len + size))
        call->refused = MHD_HTTP_TOO_MANY_REQUESTS;
    if (call->refused) {
        body_release(call);
        return call->body_received <= max + DISCARD_BYTES_MAX;
    }
    memcpy(call->body + call->body_len, bytes, size);
    call->body_len += size;
    if (!call->lookout && call->body_received < call->body_announced)
        lookout_begin(call);
    return true;
}

/* What can be refused by the headers alone; 0: nothing. */
static int headers_judge(struct pl_server_call *call)
{
    const char *length = pl__server_header(call, MHD_HTTP_HEADER_CONTENT_LENGTH);
    const char *encoding = pl__server_header(call, MHD_HTTP_HEADER_TRANSFER_ENCODING);

    call->body_announced = UINT64_MAX;
    if (encoding && strcasecmp(encoding, "chunked") != 0)
        return MHD_HTTP_NOT_IMPLEMENTED; /* libmicrohttpd would wait for the connection's end */
    if (!encoding && length && pl__str_to_u64(pl__str(length), &call->body_announced) &&
        call->body_announced > call->server->options.body_bytes_max + DISCARD_BYTES_MAX)
        return MHD_HTTP_CONTENT_TOO_LARGE; /* so long that it is not read at all */
    return 0;
}

/* The request line came. What it returns is the slot of on_request(). */
static void *on_target(void *user, const char *target, struct MHD_Connection *connection)
{
    struct pl_server_call *call = calloc(1, sizeof *call);

    if (!call)
        abort();
    call->server = user;
    call->connection = connection;
    call->target = text_copy(pl__str(target));
    return call;
}

/* Called for the headers, for each piece of a body, for its end, and after each resumption. */
static enum MHD_Result on_request(void *user, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **slot)
{
    struct pl_server_call *call = *slot;

    (void)user;
    (void)version;
    if (!call->begun) {
        call->begun = true;
        call->refused = headers_judge(call);
        if (!call->refused)
            return MHD_YES;
    }
    if (*upload_size > 0) {
        bool goes_on = body_add(call, upload, *upload_size);
        *upload_size = 0;
        return goes_on ? MHD_YES : MHD_NO;
    }
    if (!call->handled)
        call_handle(call, method, path);
    if (call->dropped)
        return MHD_NO;
    if (!call->response)
        return MHD_YES; /* suspended */
    return MHD_queue_response(connection, (unsigned)call->status, call->response);
}

static void on_completed(void *user, struct MHD_Connection *connection, void **slot,
                         enum MHD_RequestTerminationCode why)
{
    struct pl_server_call *call = *slot;

    (void)user;
    (void)connection;
    (void)why;
    if (!call)
        return;
    assert(!call->suspended);
    lookout_end(call);
    if (call->stream.read)
        stream_end(call);
    if (call->upgrade.open)
        call->upgrade.closing(call->upgrade.user, NULL);
    if (call->was_upgraded && call->server->leaving > 0)
        call->server->leaving--;
    if (call->response)
        MHD_destroy_response(call->response);
    for (size_t i = 0; i < call->header_count; i++) {
        free(call->headers[i].name);
        free(call->headers[i].value);
    }
    free(call->target);
    call->server->held_bytes -= call->answer_bytes;
    body_release(call);
    free(call);
    *slot = NULL;
}

/* When there were too many connections, new ones are accepted again only by the next MHD_run() after
 * one has gone, and nothing else would call that. */
static void on_connection(void *user, struct MHD_Connection *connection, void **slot,
                          enum MHD_ConnectionNotificationCode what)
{
    struct pl_server *server = user;

    (void)connection;
    (void)slot;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED && !uv_is_closing((uv_handle_t *)&server->soon))
        server_poke(server);
}

/* --- the loop -------------------------------------------------------------------------------------- */

static void server_free(struct pl_server *server)
{
    struct pl_loop *loop = server->loop;

    pl__arena_release(&server->arena);
    free(server);
    pl__loop_drop(loop);
}

static void handle_closed(uv_handle_t *handle)
{
    struct pl_server *server = handle->data;

    if (--server->handle_count == 0)
        server_free(server);
}

static void server_stop(struct pl_server *server)
{
    while (server->oldest)
        call_drop(server->oldest);
    for (struct pl_server_call *call = server->streams; call; call = call->next) {
        call->stream_cut = true;
        pl__server_stream_wake(call);
    }
    for (struct pl_server_socket *socket = server->sockets, *next; socket; socket = next) {
        next = socket->next;
        socket->upgrade.closing(socket->upgrade.user, socket);
    }
    /* Takes the resumed ones back; stopping with suspended ones is not allowed. */
    MHD_run(server->daemon);
    uv_poll_stop(&server->poll);
    MHD_stop_daemon(server->daemon);
    uv_close((uv_handle_t *)&server->poll, handle_closed);
    uv_close((uv_handle_t *)&server->timer, handle_closed);
    uv_close((uv_handle_t *)&server->soon, handle_closed);
    uv_close((uv_handle_t *)&server->expiry, handle_closed);
}

static void timer_fired(uv_timer_t *timer);

/* libmicrohttpd's descriptor is edge-triggered inside: its timeout, 0 in particular, is part of what
 * it asks for. */
static void server_run(struct pl_server *server)
{
    MHD_UNSIGNED_LONG_LONG timeout_ms = 0;

    if (uv_is_closing((uv_handle_t *)&server->poll))
        return;
    if (server->closing) {
        server_stop(server);
        return;
    }
    uv_timer_stop(&server->timer);
    uv_idle_stop(&server->soon);
    MHD_run(server->daemon);
    bool limited = MHD_get_timeout(server->daemon, &timeout_ms) == MHD_YES;
    if (server->leaving > 0 && (!limited || timeout_ms > LEAVING_MS)) {
        /* By TLS a socket is closed in several turns, and nothing asks for the last ones. */
        limited = true;
        timeout_ms = LEAVING_MS;
    }
    if (server->closing || (limited && timeout_ms == 0))
        server_poke(server);
    else if (limited)
        uv_timer_start(&server->timer, timer_fired, timeout_ms, 0);
}

static void soon_fired(uv_idle_t *idle)
{
    server_run(idle->data);
}

static void timer_fired(uv_timer_t *timer)
{
    server_run(timer->data);
}

static void poll_event(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    server_run(poll->data);
}

void pl__server_close(struct pl_server *server)
{
    if (!server || server->closing)
        return;
    server->closing = true;
    server_poke(server);
}

uint16_t pl__server_port(const struct pl_server *server)
{
    return server->port;
}

struct pl_str pl__server_certificate(const struct pl_server *server)
{
    return server->options.cert_pem;
}

/* --- opening --------------------------------------------------------------------------------------- */

static int certificate_set(struct pl_server *server, struct pl_arena *arena, struct pl_error **err)
{
    struct pl_server_options *o = &server->options;
    struct pl_error *cause = NULL;

    if (!o->tls)
        return 0;
    if (o->cert_pem.len == 0 && o->key_pem.len == 0)
        return pl__tls_self_signed(&server->arena, &o->cert_pem, &o->key_pem, err);
    o->cert_pem = pl__str_copy(&server->arena, o->cert_pem);
    o->key_pem = pl__str_copy(&server->arena, o->key_pem);
    if (pl__tls_check_pair(o->cert_pem, o->key_pem, arena, &cause) < 0)
        return pl__fail(arena, err, cause, "serving certificate");
    return 0;
}

static struct MHD_Daemon *daemon_start(struct pl_server *server, int fd)
{
    const struct pl_server_options *o = &server->options;
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | (o->tls ? MHD_USE_TLS : 0U) |
                     (o->upgrades ? MHD_ALLOW_UPGRADE : 0U);
    struct MHD_OptionItem tls[] = {
        { MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)o->cert_pem.ptr },
        { MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)o->key_pem.ptr },
        { MHD_OPTION_HTTPS_PRIORITIES, 0,
          (void *)(uintptr_t) "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2" },
        { MHD_OPTION_END, 0, NULL },
    };
    struct MHD_OptionItem none[] = { { MHD_OPTION_END, 0, NULL } };

    return MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, server, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_URI_LOG_CALLBACK, on_target, server, MHD_OPTION_NOTIFY_COMPLETED, on_completed,
        server, MHD_OPTION_NOTIFY_CONNECTION, on_connection, server, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)o->connections_max, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)o->timeout_s,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADER_BYTES_MAX, MHD_OPTION_STRICT_FOR_CLIENT,
        1, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_ARRAY, o->tls ? tls : none,
        MHD_OPTION_END);
}

static int server_start(struct pl_server *server, struct pl_arena *arena, struct pl_error **err)
{
    if (certificate_set(server, arena, err) < 0)
        return -1;
    int fd = pl__listen_open(server->options.listen, &server->port, arena, err);
    if (fd < 0)
        return -1;
    server->daemon = daemon_start(server, fd);
    if (!server->daemon) {
        close(fd);
        return pl__error(arena, err, PL_IO, "listen on %s: cannot start the server",
                         server->options.listen);
    }
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    assert(info);
    uv_loop_t *uv = pl__loop_uv(server->loop);
    uv_poll_init(uv, &server->poll, info->epoll_fd);
    uv_timer_init(uv, &server->timer);
    uv_timer_init(uv, &server->expiry);
    uv_idle_init(uv, &server->soon);
    server->poll.data = server->timer.data = server->expiry.data = server->soon.data = server;
    server->handle_count = 4;
    uv_poll_start(&server->poll, UV_READABLE, poll_event);
    return 0;
}

int pl__server_open(struct pl_loop *loop, const struct pl_server_options *options,
                    struct pl_arena *arena, struct pl_server **server, struct pl_error **err)
{
    struct pl_server *s = calloc(1, sizeof *s);

    if (!s)
        abort();
    s->loop = loop;
    s->options = *options;
    pl__arena_init(&s->arena, &pl__secret_allocator, 8192);
    s->options.listen = pl__str_copy(&s->arena, pl__str(options->listen)).ptr;
    if (!s->options.connections_max)
        s->options.connections_max = CONNECTIONS_MAX_DEFAULT;
    if (!s->options.timeout_s)
        s->options.timeout_s = TIMEOUT_S_DEFAULT;
    if (!s->options.held_bytes_max)
        s->options.held_bytes_max = HELD_BYTES_MAX_DEFAULT;
    if (!s->options.answer_timeout_ms)
        s->options.answer_timeout_ms = ANSWER_TIMEOUT_MS_DEFAULT;
    pl__loop_hold(loop);
    if (server_start(s, arena, err) < 0) {
        server_free(s);
        return -1;
    }
    *server = s;
    return 0;
}
