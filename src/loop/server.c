/* libmicrohttpd has an epoll descriptor of its own. The loop polls that one descriptor and a timer,
 * and calls MHD_run() when either speaks; all callbacks come from there. A request whose answer comes
 * later is suspended meanwhile, which takes it out of libmicrohttpd's own time limits, so there is a
 * limit of ours. */
#include "loop/server.h"

#include <assert.h>
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/secret.h"
#include "loop/kube_tls.h"

enum {
    CONNECTIONS_MAX_DEFAULT = 64,
    TIMEOUT_S_DEFAULT = 30,
    ANSWER_TIMEOUT_MS_DEFAULT = 60 * 1000,
    HEADER_BYTES_MAX = 32 * 1024, /* libmicrohttpd's memory for a connection: headers must fit */
    LISTEN_BACKLOG = 128,
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
    struct pl_server_call *oldest, *newest; /* suspended */
    bool closing;
};

/* Lives as long as libmicrohttpd's request does. The caller's view of it ends with its answer. */
struct pl_server_call {
    struct pl_server_call *next, *prev; /* while suspended */
    struct pl_server *server;
    struct MHD_Connection *connection;
    struct MHD_Response *response;
    int status;
    uint64_t deadline_ms;
    void *data;
    bool has_body, handled, suspended;
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

void pl__server_answer(struct pl_server_call *call, int status, const char *content_type,
                       struct pl_str body)
{
    struct pl_server *server = call->server;
    const char *type = content_type ? content_type : "text/plain; charset=utf-8";

    assert(!call->response);
    /* It copies; the cast is for its signature only. */
    call->response = MHD_create_response_from_buffer(
        body.len, (void *)(uintptr_t)(body.len ? body.ptr : ""), MHD_RESPMEM_MUST_COPY);
    if (!call->response)
        abort();
    MHD_add_response_header(call->response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    MHD_add_response_header(call->response, "X-Content-Type-Options", "nosniff");
    call->status = status;
    if (call->suspended) {
        pending_remove(server, call);
        MHD_resume_connection(call->connection);
        server_poke(server);
        expiry_arm(server);
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
    if (!call->response)
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

static void call_handle(struct pl_server_call *call, const char *method, const char *path)
{
    struct pl_server *server = call->server;
    char client[64];
    struct pl_server_request request = {
        .method = method,
        .path = path,
        .authorization = MHD_lookup_connection_value(call->connection, MHD_HEADER_KIND,
                                                     MHD_HTTP_HEADER_AUTHORIZATION),
        .client = client,
    };

    call->handled = true;
    address_text(call->connection, client, sizeof client);
    if (call->has_body)
        pl__server_answer(call, MHD_HTTP_CONTENT_TOO_LARGE, NULL,
                          PL_STR("no body is wanted here\n"));
    else if (server->closing)
        pl__server_answer(call, MHD_HTTP_SERVICE_UNAVAILABLE, NULL, PL_STR("shutting down\n"));
    else
        server->options.handle(server->options.user, call, &request);
    if (call->response)
        return;
    call->deadline_ms = pl__loop_mono_ms(server->loop) + server->options.answer_timeout_ms;
    MHD_suspend_connection(call->connection);
    pending_add(server, call);
    if (server->oldest == call)
        expiry_arm(server);
}

/* Called for the headers, for each piece of a body, for its end, and after each resumption. */
static enum MHD_Result on_request(void *user, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **slot)
{
    struct pl_server_call *call = *slot;

    (void)version;
    (void)upload;
    if (!call) {
        call = calloc(1, sizeof *call);
        if (!call)
            abort();
        call->server = user;
        call->connection = connection;
        *slot = call;
        return MHD_YES;
    }
    if (*upload_size > 0) {
        *upload_size = 0; /* thrown away */
        call->has_body = true;
        return MHD_YES;
    }
    if (!call->handled)
        call_handle(call, method, path);
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
    if (call->response)
        MHD_destroy_response(call->response);
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
    MHD_run(
        server
            ->daemon); /* takes the resumed ones back; stopping with suspended ones is not allowed */
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
    if (!server->closing && MHD_get_timeout(server->daemon, &timeout_ms) != MHD_YES)
        return;
    if (server->closing || timeout_ms == 0)
        server_poke(server);
    else
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

/* --- opening --------------------------------------------------------------------------------------- */

/* Splits "host:port", "[v6]:port" or ":port" into copies. */
static bool listen_split(struct pl_arena *arena, const char *listen, const char **host,
                         const char **port)
{
    const char *colon = strrchr(listen, ':');
    size_t len = colon ? (size_t)(colon - listen) : 0;
    uint64_t number;

    if (!colon || !pl__str_to_u64(pl__str(colon + 1), &number) || number > 65535)
        return false;
    *port = pl__str_copy(arena, pl__str(colon + 1)).ptr;
    if (len >= 2 && listen[0] == '[' && listen[len - 1] == ']') {
        listen++;
        len -= 2;
    }
    *host = len ? pl__str_copy(arena, (struct pl_str){ listen, len }).ptr : NULL;
    return true;
}

static int socket_listen(const struct addrinfo *address)
{
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1, off = 0;

    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (address->ai_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off); /* ":8443" means both */
    if (bind(fd, address->ai_addr, address->ai_addrlen) == 0 && listen(fd, LISTEN_BACKLOG) == 0)
        return fd;
    int reason = errno;
    close(fd);
    errno = reason;
    return -1;
}

/* The first address that can be listened on; without a host, IPv6 first, since it takes IPv4, too. */
static int addresses_listen(const struct addrinfo *addresses)
{
    int reason = EADDRNOTAVAIL;

    for (int family = 0; family < 2; family++) {
        for (const struct addrinfo *a = addresses; a; a = a->ai_next) {
            if ((a->ai_family == AF_INET6) != (family == 0))
                continue;
            int fd = socket_listen(a);
            if (fd >= 0)
                return fd;
            if (errno != EAFNOSUPPORT)
                reason = errno;
        }
    }
    errno = reason;
    return -1;
}

static int listen_open(struct pl_server *server, struct pl_arena *arena, struct pl_error **err)
{
    const char *text = server->options.listen, *host = NULL, *port = NULL;
    struct addrinfo hints = { .ai_family = AF_UNSPEC,
                              .ai_socktype = SOCK_STREAM,
                              .ai_flags = AI_PASSIVE | AI_NUMERICSERV };
    struct addrinfo *addresses = NULL;

    if (!listen_split(&server->arena, text, &host, &port))
        return pl__error(arena, err, PL_USAGE, "listen on %s: not HOST:PORT", text);
    if (getaddrinfo(host, port, &hints, &addresses) != 0)
        return pl__error(arena, err, PL_USAGE, "listen on %s: no such address", text);
    int fd = addresses_listen(addresses);
    int reason = errno;
    freeaddrinfo(addresses);
    if (fd < 0)
        return pl__error(arena, err, PL_IO, "listen on %s: %s", text, strerror(reason));
    struct sockaddr_storage bound;
    socklen_t len = sizeof bound;
    if (getsockname(fd, (struct sockaddr *)&bound, &len) == 0)
        server->port =
            ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
                                              : ((struct sockaddr_in *)&bound)->sin_port);
    return fd;
}

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
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | (o->tls ? MHD_USE_TLS : 0U);
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
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, server, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, server, MHD_OPTION_CONNECTION_LIMIT, (unsigned)o->connections_max,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)o->timeout_s, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)HEADER_BYTES_MAX, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_ARRAY,
        o->tls ? tls : none, MHD_OPTION_END);
}

static int server_start(struct pl_server *server, struct pl_arena *arena, struct pl_error **err)
{
    if (certificate_set(server, arena, err) < 0)
        return -1;
    int fd = listen_open(server, arena, err);
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
