/* One connection to one member: the layers, and how bytes go through them.
 *
 * Inwards each layer is fed and then emptied into the next; outwards link_flush() does it the other way
 * round. The first fault of any layer ends the link: its open calls end, and the pump sees the state. */
#include "loop/etcd_internal.h"

#include <ctype.h>
#include <openssl/rand.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "loop/kube_internal.h"

enum { PLAIN_BYTES = 16 * 1024 }; /* a whole TLS record */

/* --- the trace ------------------------------------------------------------------------------------- */

static uint64_t now_us(void)
{
    return uv_hrtime() / 1000;
}

/* A leg of the way is over; the next begins. */
static void hop(struct etcd_link *link, enum pl_etcd_hop_kind kind, const char *error)
{
    const struct pl_etcd_options *options = &link->etcd->options;
    uint64_t now = now_us();
    struct pl_etcd_hop said = {
        .node = pl__str(link->node),
        .kind = kind,
        .took_us = now - link->hop_started_us,
        .ok = error == NULL,
        .error = pl__str(error),
    };

    link->hop_started_us = now;
    if (options->trace)
        options->trace(options->trace_user, &said);
}

static enum pl_etcd_hop_kind hop_kind(enum etcd_link_state state)
{
    switch (state) {
    case LINK_CONNECTING:
        return ETCD_HOP_CONNECT;
    case LINK_UPGRADING:
        return ETCD_HOP_UPGRADE;
    case LINK_TLS:
        return ETCD_HOP_TLS;
    case LINK_READY:
    case LINK_FAILED:
        break;
    }
    return ETCD_HOP_GRPC;
}

void pl__etcd_link_trace_reply(struct etcd_link *link, const char *error)
{
    /* A link that failed has told where. */
    if (!link->replied && link->state != LINK_FAILED)
        hop(link, hop_kind(link->state), error);
    link->replied = true;
}

/* --- ends ------------------------------------------------------------------------------------------ */

/* What servers say about connections ("read tcp 10.0.0.1:41234->10.0.0.2:10250: ...") has a port of
 * theirs in it that is never the same twice: what stands before an arrow is left out. */
static void text_settle(char *text)
{
    char *arrow;

    while ((arrow = strstr(text, "->"))) {
        char *start = arrow;
        while (start > text && start[-1] != ' ')
            start--;
        memmove(start, arrow + 2, strlen(arrow + 2) + 1);
    }
}

__attribute__((format(printf, 3, 4))) static void link_fail(struct etcd_link *link,
                                                            enum pl_etcd_failure failure,
                                                            const char *format, ...)
{
    va_list args;

    if (link->state == LINK_FAILED)
        return;
    va_start(args, format);
    vsnprintf(link->error, sizeof link->error, format, args);
    va_end(args);
    text_settle(link->error);
    if (!link->replied)
        hop(link, hop_kind(link->state), link->error);
    link->state = LINK_FAILED;
    link->failure = failure;
    if (link->grpc)
        pl__grpc_lost(link->grpc, pl__str(link->error));
    pl__etcd_poke(link->etcd);
}

/* Before the handshake is over it is not etcd that we are connected to. */
static void link_cut(struct etcd_link *link, const char *error)
{
    link_fail(link, link->state == LINK_READY ? ETCD_CUT : ETCD_UNREACHABLE, "%s", error);
}

/* --- outwards ---------------------------------------------------------------------------------------- */

static int stream_send(struct etcd_link *link, const uint8_t *bytes, size_t size)
{
    if (pl__stream_write(link->stream, bytes, size) == 0)
        return 0;
    link_cut(link, "the connection takes no more bytes");
    return -1;
}

static int forward_flush(struct etcd_link *link)
{
    const uint8_t *bytes;
    size_t size;

    while ((size = pl__portforward_send(link->forward, &bytes)) > 0)
        if (stream_send(link, bytes, size) < 0)
            return -1;
    return 0;
}

static int tls_flush(struct etcd_link *link)
{
    const uint8_t *bytes;
    size_t size;

    while ((size = pl__etcd_tls_send(link->tls, &bytes)) > 0) {
        if (!link->forward) {
            if (stream_send(link, bytes, size) < 0)
                return -1;
        } else if (pl__portforward_write(link->forward, bytes, size) == 0) {
            if (forward_flush(link) < 0)
                return -1;
        } else {
            return 0; /* it is closed, which is found out by whoever reads from it */
        }
    }
    return 0;
}

static int tls_take(struct etcd_link *link, const uint8_t *bytes, size_t size)
{
    if (pl__etcd_tls_write(link->tls, bytes, size) == 0)
        return 0;
    if (tls_flush(link) < 0)
        return -1;
    if (pl__etcd_tls_write(link->tls, bytes, size) == 0)
        return 0;
    link_cut(link, "the connection takes no more bytes");
    return -1;
}

/* All of gRPC's frames that are there, as few records and few writes as it takes: three calls are six
 * frames of a few bytes each. */
static void link_flush(struct etcd_link *link)
{
    uint8_t batch[4096];
    const uint8_t *bytes;
    size_t size, filled = 0;

    while (link->state == LINK_READY && (size = pl__grpc_send(link->grpc, &bytes)) > 0) {
        if (filled + size > sizeof batch) {
            if (tls_take(link, batch, filled) < 0)
                return;
            filled = 0;
        }
        if (size > sizeof batch) {
            if (tls_take(link, bytes, size) < 0)
                return;
            continue;
        }
        memcpy(batch + filled, bytes, size);
        filled += size;
    }
    if (filled && link->state == LINK_READY && tls_take(link, batch, filled) < 0)
        return;
    if (link->tls && link->state != LINK_FAILED)
        (void)tls_flush(link);
}

/* --- inwards ----------------------------------------------------------------------------------------- */

static void tls_closed(struct etcd_link *link)
{
    const char *error = pl__etcd_tls_error(link->tls);

    (void)tls_flush(link); /* an alert that says why */
    if (pl__etcd_tls_failure(link->tls) == ETCD_TLS_UNTRUSTED)
        link_fail(link, ETCD_UNTRUSTED, "%s", error);
    else
        link_cut(link, error[0] ? error : "the member closed the connection");
}

/* What was encrypted, to gRPC. */
static void plain_receive(struct etcd_link *link)
{
    uint8_t room[PLAIN_BYTES];
    size_t size;

    while (link->state == LINK_READY &&
           (size = pl__etcd_tls_read(link->tls, room, sizeof room)) > 0)
        if (pl__grpc_receive(link->grpc, room, size) < 0)
            link_cut(link, pl__grpc_error(link->grpc));
}

/* The layers above the port-forward have bytes, or an end. */
static void tls_progress(struct etcd_link *link)
{
    if (link->state == LINK_TLS && pl__etcd_tls_state(link->tls) == ETCD_TLS_OPEN) {
        hop(link, ETCD_HOP_TLS, NULL);
        link->state = LINK_READY;
        link->grpc = pl__grpc_new(link->node);
        pl__etcd_poke(link->etcd);
    }
    plain_receive(link);
    if (link->state != LINK_FAILED && pl__etcd_tls_state(link->tls) == ETCD_TLS_CLOSED)
        tls_closed(link);
    link_flush(link);
}

static void tls_start(struct etcd_link *link)
{
    link->state = LINK_TLS;
    link->tls = pl__etcd_tls_new(link->etcd->cert, link->node);
    /* Whom the kubelet connects us to is the API server's word in any case, and what it connects to is
     * localhost: kubeadm's certificates are for both names, made by others perhaps for one. */
    if (link->forward)
        pl__etcd_tls_also_for(link->tls, "localhost");
    tls_progress(link);
}

static void tls_receive(struct etcd_link *link, const uint8_t *bytes, size_t size)
{
    if (link->state == LINK_FAILED)
        return;
    (void)pl__etcd_tls_receive(link->tls, bytes, size);
    tls_progress(link);
}

/* Text of the error channel or of a refused upgrade: what it means, where we know it. The runtime's own
 * words have the ids of its sandboxes in them, which change with each restart. */
static void forward_closed(struct etcd_link *link)
{
    const char *error = pl__portforward_error(link->forward);
    struct pl_kube *kube = link->etcd->kube;
    bool upgraded = link->state != LINK_UPGRADING;

    (void)forward_flush(link);
    if (pl__portforward_status(link->forward) == 401)
        pl__kube_auth_refused(&kube->auth, link->auth_generation);
    if (!upgraded)
        link_cut(link, error);
    else if (strstr(error, "connection refused"))
        link_cut(link, "nothing listens on the Pod's etcd port");
    else if (error[0])
        link_fail(link, link->state == LINK_READY ? ETCD_CUT : ETCD_UNREACHABLE,
                  "port-forward ended: %s", error);
    else
        link_cut(link, "the port-forward was closed");
}

static void forward_progress(struct etcd_link *link)
{
    const uint8_t *bytes;
    size_t size;

    if (link->state == LINK_UPGRADING && pl__portforward_was_open(link->forward)) {
        hop(link, ETCD_HOP_UPGRADE, NULL);
        tls_start(link);
    }
    while (link->tls && (size = pl__portforward_read(link->forward, &bytes)) > 0)
        tls_receive(link, bytes, size);
    if (link->state == LINK_FAILED)
        return;
    if (pl__portforward_state(link->forward) == PORTFORWARD_CLOSED)
        forward_closed(link);
    else
        (void)forward_flush(link); /* answers to pings */
}

/* --- the stream underneath --------------------------------------------------------------------------- */

static void random_bytes(void *user, uint8_t *bytes, size_t size)
{
    (void)user;
    /* Only an OpenSSL without any randomness fails here; TLS could not have been set up with it. */
    if (RAND_bytes(bytes, (int)size) != 1)
        abort();
}

/* "/prefix" of "https://host:6443/prefix". */
static struct pl_str path_prefix(const struct pl_kube *kube)
{
    const char *host = strstr(kube->base_url, "://") + 3;
    const char *slash = strchr(host, '/');

    return pl__str(slash ? slash : "");
}

/* What all requests have (impersonation), but for Host, which is said by itself. */
static struct pl_str header_lines(struct pl_arena *arena, const struct pl_kube *kube)
{
    enum { LINES_BYTES_MAX = 64 * 1024 };
    struct pl_buf lines;

    pl__buf_init(&lines, arena, LINES_BYTES_MAX);
    for (const struct curl_slist *at = kube->headers; at; at = at->next)
        if (strncmp(at->data, "Host:", 5) != 0)
            pl__buf_printf(&lines, "%s\r\n", at->data);
    return pl__buf_str(&lines);
}

static void upgrade_start(struct etcd_link *link)
{
    static const char scheme[] = "Authorization: ";
    struct pl_kube *kube = link->etcd->kube;
    const char *token = kube->auth.header;
    struct pl_arena scratch;

    pl__arena_init(&scratch, NULL, 1024);
    struct pl_portforward_options options = {
        .host = pl__str(kube->peer.host),
        .path = pl__str_format(
            &scratch, "%.*s/api/v1/namespaces/kube-system/pods/etcd-%s/portforward?ports=%d",
            PL_STR_ARG(path_prefix(kube)), link->node, ETCD_PORT),
        .authorization = pl__str(token ? token + sizeof scheme - 1 : NULL),
        .user_agent = pl__str(kube->options.user_agent),
        .headers = header_lines(&scratch, kube),
        .port = ETCD_PORT,
        .random = random_bytes,
    };
    link->state = LINK_UPGRADING;
    link->auth_generation = kube->auth.generation;
    link->forward = pl__portforward_new(&options);
    pl__arena_release(&scratch);
    (void)forward_flush(link);
}

static void on_connected(void *user)
{
    struct etcd_link *link = user;

    hop(link, ETCD_HOP_CONNECT, NULL);
    if (link->etcd->direct)
        tls_start(link);
    else
        upgrade_start(link);
}

static void on_received(void *user, const uint8_t *bytes, size_t size)
{
    struct etcd_link *link = user;

    if (link->state == LINK_FAILED)
        return;
    if (!link->forward) {
        tls_receive(link, bytes, size);
        return;
    }
    (void)pl__portforward_receive(link->forward, bytes, size);
    forward_progress(link);
}

/* A layer may know better why: the last bytes may have said it. */
static void on_ended(void *user, enum pl_kube_failure failure, const char *error)
{
    struct etcd_link *link = user;

    if (link->state == LINK_FAILED)
        return;
    if (link->state == LINK_CONNECTING) {
        link_fail(link, ETCD_UNREACHABLE, "%s", error);
    } else if (link->forward) {
        pl__portforward_lost(link->forward);
        forward_progress(link);
    } else {
        pl__etcd_tls_receive_end(link->tls);
        tls_progress(link);
    }
    link_cut(link, failure == KUBE_OK ? "the connection was closed" : error);
}

/* --- for jobs ------------------------------------------------------------------------------------------ */

/* It becomes part of a path, and of what a certificate is compared with. */
static bool node_ok(struct pl_str node)
{
    for (size_t i = 0; i < node.len; i++)
        if (!isalnum((unsigned char)node.ptr[i]) && node.ptr[i] != '.' && node.ptr[i] != '-')
            return false;
    return node.len > 0 && node.len <= 253;
}

static void stream_open(struct etcd_link *link, const struct pl_etcd_endpoint *endpoint)
{
    static const struct pl_stream_handlers handlers = { on_connected, on_received, on_ended };
    struct pl_etcd *etcd = link->etcd;
    uint32_t timeout_ms = etcd->options.dial_timeout_ms;
    struct etcd_target target;

    if (!node_ok(endpoint->node)) {
        link_fail(link, ETCD_UNREACHABLE, "no Node can have this name");
        return;
    }
    if (!etcd->direct) {
        link->stream = pl__stream_open_kube(etcd->loop, etcd->kube, timeout_ms, &handlers, link);
        return;
    }
    const char *fault = pl__etcd_template_expand(etcd->direct, endpoint, &target);
    if (fault)
        link_fail(link, ETCD_UNREACHABLE, "%s", fault);
    else
        link->stream =
            pl__stream_open_tcp(etcd->loop, target.host, target.port, timeout_ms, &handlers, link);
}

struct etcd_link *pl__etcd_link_open(struct pl_etcd *etcd, const struct pl_etcd_endpoint *endpoint)
{
    struct etcd_link *link = calloc(1, sizeof *link);

    if (!link || !(link->node = strndup(endpoint->node.ptr, endpoint->node.len)))
        abort();
    link->etcd = etcd;
    link->hop_started_us = now_us();
    link->next = etcd->links;
    etcd->links = link;
    etcd->counts.dials++;
    stream_open(link, endpoint);
    return link;
}

/* Says goodbye in all layers, as far as the peer takes it now. */
static void link_farewell(struct etcd_link *link)
{
    if (link->state == LINK_FAILED || !link->stream)
        return;
    if (link->tls) {
        pl__etcd_tls_close(link->tls);
        (void)tls_flush(link);
    }
    if (link->forward) {
        pl__portforward_close(link->forward);
        (void)forward_flush(link);
    }
}

void pl__etcd_link_free(struct etcd_link *link)
{
    struct pl_etcd *etcd = link->etcd;
    struct etcd_link **at = &etcd->links;

    if (link->grpc)
        pl__grpc_free(link->grpc);
    link_farewell(link);
    if (link->stream) {
        struct pl_stream_counts counts = pl__stream_counts(link->stream);
        etcd->counts.bytes_in += counts.bytes_in;
        etcd->counts.bytes_out += counts.bytes_out;
    }
    pl__stream_close(link->stream);
    pl__portforward_free(link->forward);
    pl__etcd_tls_free(link->tls);
    while (*at != link)
        at = &(*at)->next;
    *at = link->next;
    if (etcd->warm == link)
        etcd->warm = NULL;
    free(link->node);
    free(link);
}

bool pl__etcd_link_usable(const struct etcd_link *link)
{
    return link->state == LINK_READY && !link->retired && pl__grpc_usable(link->grpc);
}

bool pl__etcd_link_is_full(const struct etcd_link *link)
{
    return link->state == LINK_READY && pl__grpc_usable(link->grpc) &&
           pl__grpc_open_calls(link->grpc) >= GRPC_CALLS_MAX;
}

uint32_t pl__etcd_link_call(struct etcd_link *link, enum pl_etcd_method method,
                            const struct pl_etcd_arguments *arguments, uint32_t timeout_ms,
                            pl_grpc_done_fn *done, void *user)
{
    struct pl_arena scratch;

    if (link->state != LINK_READY)
        return 0;
    pl__arena_init(&scratch, NULL, 512);
    struct pl_str message = pl__etcd_request_encode(&scratch, method, arguments);
    uint32_t id =
        pl__grpc_call(link->grpc, pl__etcd_method_path(method), message, timeout_ms, done, user);
    pl__arena_release(&scratch);
    return id;
}

void pl__etcd_link_cancel(struct etcd_link *link, uint32_t call)
{
    if (link->grpc)
        pl__grpc_cancel(link->grpc, call);
}

void pl__etcd_link_send(struct etcd_link *link)
{
    link_flush(link);
}

void pl__etcd_link_waits(const struct etcd_link *link, char *room, size_t size)
{
    switch (link->state) {
    case LINK_CONNECTING:
        pl__stream_late_text(link->stream, room, size);
        return;
    case LINK_UPGRADING:
        snprintf(room, size, "the API server does not answer the port-forward");
        return;
    case LINK_TLS:
        snprintf(room, size, "no answer in the TLS handshake");
        return;
    case LINK_READY:
        snprintf(room, size, "no answer to Status");
        return;
    case LINK_FAILED:
        snprintf(room, size, "%s", link->error);
        return;
    }
}
