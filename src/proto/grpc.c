/* proto/grpc.c - see grpc.h.
 *
 * nghttp2 does HTTP/2; what is here is one unary call on one stream: its request, what came of its
 * reply, and what that means. A call is in one of two lists: `open`, or `ended` with its `done` to come.
 * The `done` functions run when nghttp2 has returned, so that they may start and cancel calls.
 *
 * A call ends as soon as it can be told what came of it: with the peer's END_STREAM, with a reset, or
 * when the reply breaks a rule. It is found by its stream's id among those that are open, so whatever
 * else comes on the stream of an ended call concerns nobody. */
#include "proto/grpc.h"

#include <assert.h>
#include <nghttp2/nghttp2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    PREFIX_BYTES = 5,           /* before a message: one byte of flags, four of length */
    HEADER_OVERHEAD_BYTES = 32, /* what HTTP/2 counts for each header besides its bytes */
    BODY_BYTES_MIN = 512,       /* of what is asked from the heap for a reply */
    TEXT_BYTES_MAX = 256,       /* of our own words */
    QUOTE_BYTES_MAX = 64,       /* of the peer's words within ours */
    ACKS_MAX = 64,              /* PINGs and SETTINGS unanswered because nobody sends */
    TIMEOUT_DIGITS_MAX = 99999999,
    STATUS_NONE = -1,
};

struct call {
    struct call *next;
    int32_t stream_id; /* the id for the caller, too */
    pl_grpc_done_fn *done;
    void *user;

    uint8_t *request; /* framed */
    size_t request_size, request_sent;
    bool left_us; /* its headers were given out to be sent */

    size_t header_bytes;
    int http_status;    /* 0: no headers yet */
    int grpc_status;    /* STATUS_NONE: none yet */
    char *grpc_message; /* as it came; NULL: none */
    char content_type[QUOTE_BYTES_MAX];
    uint8_t prefix[PREFIX_BYTES];
    size_t prefix_size;
    uint8_t *body;
    size_t body_size, body_capacity;

    /* Once it has ended. */
    int code;
    bool from_peer, unprocessed;
    char words[TEXT_BYTES_MAX]; /* ours; the peer's are in grpc_message */
};

struct pl_grpc {
    nghttp2_session *session;
    struct call *open, *ended; /* each oldest first */
    uint32_t open_count;
    bool settings_came; /* so it is HTTP/2 */
    bool goaway_came;
    bool broken;
    char error[TEXT_BYTES_MAX];
    char authority[];
};

const char *pl__grpc_code_name(int code)
{
    static const char *const names[] = {
        "OK",
        "Canceled",
        "Unknown",
        "InvalidArgument",
        "DeadlineExceeded",
        "NotFound",
        "AlreadyExists",
        "PermissionDenied",
        "ResourceExhausted",
        "FailedPrecondition",
        "Aborted",
        "OutOfRange",
        "Unimplemented",
        "Internal",
        "Unavailable",
        "DataLoss",
        "Unauthenticated",
    };

    return code >= 0 && (size_t)code < sizeof names / sizeof names[0] ? names[code] : "?";
}

static void *must(void *piece)
{
    if (!piece)
        abort();
    return piece;
}

/* --- texts of the peer -------------------------------------------------------------------------- */

/* They are printed and logged: no control characters. */
static char clean(uint8_t byte)
{
    return (char)(byte < 0x20 || byte == 0x7f ? ' ' : byte);
}

/* As much of it as fits, with a NUL. */
static void quote(char *room, size_t size, struct pl_str text)
{
    size_t length = text.len < size ? text.len : size - 1;

    for (size_t i = 0; i < length; i++)
        room[i] = clean((uint8_t)text.ptr[i]);
    room[length] = '\0';
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Undoes percent-encoding in place, it can only get shorter. What is no escape is kept as it is. */
static size_t percent_decode(char *text)
{
    size_t length = 0;

    for (const char *at = text; *at; at++) {
        int high = at[0] == '%' ? hex_digit(at[1]) : -1;
        int low = high >= 0 ? hex_digit(at[2]) : -1;
        text[length++] = clean(low >= 0 ? (uint8_t)(high << 4 | low) : (uint8_t)*at);
        if (low >= 0)
            at += 2;
    }
    text[length] = '\0';
    return length;
}

/* --- the life of a call ------------------------------------------------------------------------- */

static struct call *list_find(struct call *list, int32_t stream_id)
{
    while (list && list->stream_id != stream_id)
        list = list->next;
    return list;
}

static void list_add(struct call **list, struct call *call)
{
    while (*list)
        list = &(*list)->next;
    call->next = NULL;
    *list = call;
}

static bool list_remove(struct call **list, const struct call *call)
{
    for (struct call **at = list; *at; at = &(*at)->next) {
        if (*at == call) {
            *at = call->next;
            return true;
        }
    }
    return false;
}

static void call_free(struct call *call)
{
    free(call->request);
    free(call->grpc_message);
    free(call->body);
    free(call);
}

/* From open to ended: code and words, or the peer's words with `from_peer`. */
__attribute__((format(printf, 4, 5))) static void call_end(struct pl_grpc *g, struct call *call,
                                                           int code, const char *format, ...)
{
    va_list args;
    bool was_open = list_remove(&g->open, call);

    assert(was_open);
    g->open_count--;
    call->code = code;
    va_start(args, format);
    vsnprintf(call->words, sizeof call->words, format, args);
    va_end(args);
    list_add(&g->ended, call);
}

/* Tells the peer that we are no longer interested. */
static void stream_stop(struct pl_grpc *g, const struct call *call)
{
    nghttp2_submit_rst_stream(g->session, NGHTTP2_FLAG_NONE, call->stream_id, NGHTTP2_CANCEL);
}

static void ended_deliver(struct pl_grpc *g)
{
    struct call *call;

    while ((call = g->ended)) {
        g->ended = call->next;
        struct pl_grpc_reply reply = { .code = call->code,
                                       .from_peer = call->from_peer,
                                       .unprocessed = call->unprocessed,
                                       .message = pl__str(call->words) };
        if (call->from_peer && call->grpc_message)
            reply.message =
                (struct pl_str){ call->grpc_message, percent_decode(call->grpc_message) };
        if (call->code == GRPC_OK)
            reply.body =
                (struct pl_str){ call->body ? (const char *)call->body : "", call->body_size };
        call->done(call->user, &reply);
        call_free(call);
    }
}

/* The end of the connection for us. What is open ends, though nothing is delivered yet. */
static void session_break(struct pl_grpc *g, int code, struct pl_str reason)
{
    if (!g->broken)
        quote(g->error, sizeof g->error, reason);
    g->broken = true;
    while (g->open) {
        g->open->unprocessed = !g->open->left_us;
        call_end(g, g->open, code, "%s", g->error);
    }
}

/* --- what a reply means (reference 1) ----------------------------------------------------------- */

static int code_of_http(int status)
{
    switch (status) {
    case 400:
        return GRPC_INTERNAL;
    case 401:
        return GRPC_UNAUTHENTICATED;
    case 403:
        return GRPC_PERMISSION_DENIED;
    case 404:
        return GRPC_UNIMPLEMENTED;
    case 429:
    case 502:
    case 503:
    case 504:
        return GRPC_UNAVAILABLE;
    default:
        return GRPC_UNKNOWN;
    }
}

static int code_of_reset(uint32_t error)
{
    switch (error) {
    case NGHTTP2_REFUSED_STREAM:
        return GRPC_UNAVAILABLE;
    case NGHTTP2_CANCEL:
        return GRPC_CANCELLED;
    case NGHTTP2_ENHANCE_YOUR_CALM:
        return GRPC_RESOURCE_EXHAUSTED;
    case NGHTTP2_INADEQUATE_SECURITY:
        return GRPC_PERMISSION_DENIED;
    default:
        return GRPC_INTERNAL;
    }
}

static uint32_t message_size(const struct call *call)
{
    return (uint32_t)call->prefix[1] << 24 | (uint32_t)call->prefix[2] << 16 |
           (uint32_t)call->prefix[3] << 8 | call->prefix[4];
}

static bool has_whole_message(const struct call *call)
{
    return call->prefix_size == PREFIX_BYTES && call->body_size == message_size(call);
}

/* "application/grpc", "application/grpc+proto", "application/grpc; ...". A peer that gives a status and
 * no type is taken at its word. */
static bool is_grpc(const struct call *call)
{
    struct pl_str type = pl__str(call->content_type), want = PL_STR("application/grpc");

    if (type.len == 0)
        return call->grpc_status != STATUS_NONE;
    return pl__str_starts_with(type, want) &&
           (type.len == want.len || type.ptr[want.len] == '+' || type.ptr[want.len] == ';');
}

/* All of the reply has come. */
static void reply_judge(struct pl_grpc *g, struct call *call)
{
    if (!is_grpc(call)) {
        call_end(g, call, code_of_http(call->http_status),
                 "the answer is not gRPC: HTTP status %d, content type \"%s\"", call->http_status,
                 call->content_type);
    } else if (call->grpc_status == STATUS_NONE) {
        call_end(g, call, code_of_http(call->http_status),
                 "the answer has no grpc-status: HTTP status %d", call->http_status);
    } else if (call->grpc_status == GRPC_OK && !has_whole_message(call)) {
        call_end(g, call, GRPC_INTERNAL, "the answer is OK but has no whole message");
    } else {
        call->from_peer = true;
        call_end(g, call, call->grpc_status, "%s", "");
    }
}

/* --- what comes --------------------------------------------------------------------------------- */

/* 0 to 16; anything else is a status nobody knows. */
static int grpc_status_parse(struct pl_str value)
{
    uint64_t status;

    return pl__str_to_u64(value, &status) && status <= GRPC_UNAUTHENTICATED ? (int)status
                                                                            : GRPC_UNKNOWN;
}

static void header_take(struct call *call, struct pl_str name, struct pl_str value)
{
    uint64_t status;

    if (pl__str_equal(name, PL_STR(":status"))) {
        /* The first of a block; after "100 Continue" there is another. nghttp2 checked the digits. */
        call->http_status = pl__str_to_u64(value, &status) ? (int)status : 0;
        call->grpc_status = STATUS_NONE;
        call->content_type[0] = '\0';
    } else if (pl__str_equal(name, PL_STR("content-type"))) {
        quote(call->content_type, sizeof call->content_type, value);
    } else if (pl__str_equal(name, PL_STR("grpc-status"))) {
        call->grpc_status = grpc_status_parse(value);
    } else if (pl__str_equal(name, PL_STR("grpc-message"))) {
        free(call->grpc_message);
        call->grpc_message = must(malloc(value.len + 1));
        memcpy(call->grpc_message, value.ptr, value.len);
        call->grpc_message[value.len] = '\0';
    }
}

static int header_came(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                       size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
                       void *user)
{
    struct pl_grpc *g = user;
    struct call *call = list_find(g->open, frame->hd.stream_id);

    (void)session;
    (void)flags;
    if (!call)
        return 0;
    call->header_bytes += name_size + value_size + HEADER_OVERHEAD_BYTES;
    if (call->header_bytes > GRPC_HEADER_BYTES_MAX) {
        /* A reset would not end the block that is coming: the connection has to go. */
        session_break(g, GRPC_RESOURCE_EXHAUSTED, PL_STR("the headers of the answer are too long"));
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    header_take(call, (struct pl_str){ (const char *)name, name_size },
                (struct pl_str){ (const char *)value, value_size });
    return 0;
}

/* Why a message that begins like this is not taken; NULL: it is. */
static const char *prefix_fault(const struct call *call)
{
    if (call->prefix[0] != 0)
        return "the answer is compressed, which nobody asked for";
    if (message_size(call) > GRPC_REPLY_BYTES_MAX)
        return "the answer is too long";
    return NULL;
}

static void body_reserve(struct call *call, size_t extra)
{
    size_t capacity = call->body_capacity ? call->body_capacity : BODY_BYTES_MIN;

    while (capacity < call->body_size + extra)
        capacity *= 2; /* ends: what is asked for is within GRPC_REPLY_BYTES_MAX */
    if (capacity == call->body_capacity)
        return;
    call->body = must(realloc(call->body, capacity));
    call->body_capacity = capacity;
}

static int data_came(nghttp2_session *session, uint8_t flags, int32_t stream_id,
                     const uint8_t *bytes, size_t size, void *user)
{
    struct pl_grpc *g = user;
    struct call *call = list_find(g->open, stream_id);

    (void)session;
    (void)flags;
    if (!call)
        return 0;
    while (size > 0 && call->prefix_size < PREFIX_BYTES) {
        call->prefix[call->prefix_size++] = *bytes++;
        size--;
    }
    if (call->prefix_size < PREFIX_BYTES)
        return 0;
    const char *fault = prefix_fault(call);
    if (!fault && size > message_size(call) - call->body_size)
        fault = "the answer has more than one message";
    if (fault) {
        stream_stop(g, call);
        call_end(g, call,
                 message_size(call) > GRPC_REPLY_BYTES_MAX && call->prefix[0] == 0
                     ? GRPC_RESOURCE_EXHAUSTED
                     : GRPC_INTERNAL,
                 "%s", fault);
        return 0;
    }
    if (size > 0) {
        body_reserve(call, size);
        memcpy(call->body + call->body_size, bytes, size);
        call->body_size += size;
    }
    return 0;
}

/* Headers or data of a call are complete as a frame. */
static void reply_frame_came(struct pl_grpc *g, const nghttp2_frame *frame)
{
    struct call *call = list_find(g->open, frame->hd.stream_id);

    if (!call)
        return;
    if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) {
        /* An early refusal: the rest of the request is of no use to anybody. */
        if (nghttp2_session_get_stream_local_close(g->session, call->stream_id) == 0)
            stream_stop(g, call);
        reply_judge(g, call);
    } else if (frame->hd.type == NGHTTP2_HEADERS && call->http_status >= 200 && !is_grpc(call)) {
        /* A page of HTML, maybe an endless one. */
        stream_stop(g, call);
        reply_judge(g, call);
    }
}

static void goaway_came(struct pl_grpc *g, const nghttp2_goaway *goaway)
{
    char debug[QUOTE_BYTES_MAX];

    g->goaway_came = true;
    quote(debug, sizeof debug,
          (struct pl_str){ (const char *)goaway->opaque_data, goaway->opaque_data_len });
    if (goaway->error_code == NGHTTP2_NO_ERROR)
        snprintf(g->error, sizeof g->error, "the server is going away");
    else
        snprintf(g->error, sizeof g->error, "the server ends the connection: %s%s%s",
                 nghttp2_http2_strerror(goaway->error_code), debug[0] ? ", " : "", debug);
}

static int frame_came(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct pl_grpc *g = user;

    (void)session;
    switch (frame->hd.type) {
    case NGHTTP2_SETTINGS:
        g->settings_came = true;
        break;
    case NGHTTP2_HEADERS:
    case NGHTTP2_DATA:
        reply_frame_came(g, frame);
        break;
    case NGHTTP2_GOAWAY:
        goaway_came(g, &frame->goaway);
        break;
    default:
        break;
    }
    return 0;
}

/* Without END_STREAM, for then the call would not be open: a reset, of theirs or, by nghttp2, of ours. */
static int stream_closed(nghttp2_session *session, int32_t stream_id, uint32_t error, void *user)
{
    struct pl_grpc *g = user;
    struct call *call = list_find(g->open, stream_id);

    (void)session;
    if (!call)
        return 0;
    call->unprocessed = error == NGHTTP2_REFUSED_STREAM;
    if (call->unprocessed && g->goaway_came)
        call_end(g, call, GRPC_UNAVAILABLE, "%s", g->error);
    else
        call_end(g, call, code_of_reset(error), "the call was reset: %s",
                 nghttp2_http2_strerror(error));
    return 0;
}

/* --- what goes ---------------------------------------------------------------------------------- */

static int frame_going(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct pl_grpc *g = user;
    struct call *call;

    (void)session;
    if (frame->hd.type == NGHTTP2_HEADERS && (call = list_find(g->open, frame->hd.stream_id)))
        call->left_us = true;
    /* We send none: nghttp2 does, when a rule was broken after the peer's own GOAWAY. */
    if (frame->hd.type == NGHTTP2_GOAWAY)
        session_break(g, GRPC_UNAVAILABLE, PL_STR("the server broke the rules of HTTP/2"));
    return 0;
}

/* A call that waited for its turn, and a GOAWAY came first. */
static int frame_not_going(nghttp2_session *session, const nghttp2_frame *frame, int error,
                           void *user)
{
    struct pl_grpc *g = user;
    struct call *call =
        frame->hd.type == NGHTTP2_HEADERS ? list_find(g->open, frame->hd.stream_id) : NULL;

    (void)session;
    if (call) {
        call->unprocessed = true;
        call_end(g, call, GRPC_UNAVAILABLE, "%s",
                 g->goaway_came ? g->error : nghttp2_strerror(error));
    }
    return 0;
}

static ssize_t request_read(nghttp2_session *session, int32_t stream_id, uint8_t *room, size_t size,
                            uint32_t *flags, nghttp2_data_source *source, void *user)
{
    struct pl_grpc *g = user;
    struct call *call = list_find(g->open, stream_id);

    (void)session;
    (void)source;
    if (!call)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    size_t left = call->request_size - call->request_sent;
    if (size >= left) {
        size = left;
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    }
    memcpy(room, call->request + call->request_sent, size);
    call->request_sent += size;
    return (ssize_t)size;
}

/* --- the session -------------------------------------------------------------------------------- */

static nghttp2_session_callbacks *callbacks_new(void)
{
    nghttp2_session_callbacks *callbacks = NULL;

    if (nghttp2_session_callbacks_new(&callbacks) != 0)
        abort();
    nghttp2_session_callbacks_set_on_header_callback(callbacks, header_came);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, data_came);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, frame_came);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, stream_closed);
    nghttp2_session_callbacks_set_before_frame_send_callback(callbacks, frame_going);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, frame_not_going);
    return callbacks;
}

/* Hundreds of sessions wait for their next call most of the time: no table of headers that were sent, no
 * memory of closed streams. The peer's table stays at its default of 4 KiB: to forbid it saves a twentieth
 * of a session, and ends the connection with every peer that forgets to acknowledge that in HPACK. */
static nghttp2_option *option_new(void)
{
    nghttp2_option *option = NULL;

    if (nghttp2_option_new(&option) != 0)
        abort();
    nghttp2_option_set_max_deflate_dynamic_table_size(option, 0);
    nghttp2_option_set_no_closed_streams(option, 1);
    nghttp2_option_set_max_reserved_remote_streams(option, 0); /* pushed before our SETTINGS came */
    nghttp2_option_set_max_outbound_ack(option, ACKS_MAX);
    return option;
}

struct pl_grpc *pl__grpc_new(const char *authority)
{
    static const nghttp2_settings_entry settings[] = {
        { NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
        { NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, GRPC_HEADER_BYTES_MAX },
    };
    size_t size = strlen(authority) + 1;
    struct pl_grpc *g = must(calloc(1, sizeof *g + size));
    nghttp2_session_callbacks *callbacks = callbacks_new();
    nghttp2_option *option = option_new();

    memcpy(g->authority, authority, size);
    if (nghttp2_session_client_new2(&g->session, callbacks, g, option) != 0 ||
        nghttp2_submit_settings(g->session, NGHTTP2_FLAG_NONE, settings,
                                sizeof settings / sizeof settings[0]) != 0)
        abort();
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    return g;
}

void pl__grpc_free(struct pl_grpc *g)
{
    if (!g)
        return;
    session_break(g, GRPC_CANCELLED, PL_STR("the connection was closed by us"));
    ended_deliver(g);
    nghttp2_session_del(g->session);
    free(g);
}

int pl__grpc_receive(struct pl_grpc *g, const void *bytes, size_t size)
{
    if (g->broken)
        return -1;
    ssize_t taken = nghttp2_session_mem_recv(g->session, bytes, size);
    /* When a rule was broken nghttp2 means to say GOAWAY, and takes no more requests. */
    bool ending = !g->goaway_came && !nghttp2_session_check_request_allowed(g->session);
    if (taken < 0 || ending)
        session_break(g, GRPC_UNAVAILABLE,
                      g->settings_came ? PL_STR("the server broke the rules of HTTP/2")
                                       : PL_STR("the answer is not HTTP/2"));
    ended_deliver(g);
    return g->broken ? -1 : 0;
}

size_t pl__grpc_send(struct pl_grpc *g, const uint8_t **bytes)
{
    const uint8_t *next = NULL;

    if (g->broken)
        return 0;
    ssize_t size = nghttp2_session_mem_send(g->session, &next);
    if (size < 0)
        session_break(g, GRPC_UNAVAILABLE, pl__str(nghttp2_strerror((int)size)));
    ended_deliver(g);
    if (size <= 0 || g->broken)
        return 0;
    *bytes = next;
    return (size_t)size;
}

void pl__grpc_lost(struct pl_grpc *g, struct pl_str reason)
{
    session_break(g, GRPC_UNAVAILABLE, reason);
    ended_deliver(g);
}

/* --- calls -------------------------------------------------------------------------------------- */

static nghttp2_nv header(const char *name, struct pl_str value)
{
    /* nghttp2 copies both, and only forgot to say const. */
    return (nghttp2_nv){ .name = (uint8_t *)(uintptr_t)name,
                         .value = (uint8_t *)(uintptr_t)value.ptr,
                         .namelen = strlen(name),
                         .valuelen = value.len,
                         .flags = NGHTTP2_NV_FLAG_NONE };
}

/* At most eight digits. */
static void timeout_format(char *room, size_t size, uint32_t timeout_ms)
{
    if (timeout_ms <= TIMEOUT_DIGITS_MAX)
        snprintf(room, size, "%um", (unsigned)timeout_ms);
    else
        snprintf(room, size, "%uS", (unsigned)(timeout_ms / 1000));
}

static int32_t request_submit(struct pl_grpc *g, const char *path, uint32_t timeout_ms)
{
    char timeout[16];
    nghttp2_nv headers[8];
    size_t count = 0;
    nghttp2_data_provider provider = { .read_callback = request_read };

    timeout_format(timeout, sizeof timeout, timeout_ms);
    headers[count++] = header(":method", PL_STR("POST"));
    headers[count++] = header(":scheme", PL_STR("https"));
    headers[count++] = header(":path", pl__str(path));
    headers[count++] = header(":authority", pl__str(g->authority));
    headers[count++] = header("content-type", PL_STR("application/grpc"));
    headers[count++] = header("te", PL_STR("trailers"));
    headers[count++] = header("user-agent", PL_STR("grpc-c-plimsoll/" PL_VERSION));
    if (timeout_ms)
        headers[count++] = header("grpc-timeout", pl__str(timeout));
    return nghttp2_submit_request(g->session, NULL, headers, count, &provider, NULL);
}

static void request_frame(struct call *call, struct pl_str message)
{
    uint32_t size = (uint32_t)message.len;
    uint8_t prefix[PREFIX_BYTES] = { 0, (uint8_t)(size >> 24), (uint8_t)(size >> 16),
                                     (uint8_t)(size >> 8), (uint8_t)size };

    call->request_size = PREFIX_BYTES + message.len;
    call->request = must(malloc(call->request_size));
    memcpy(call->request, prefix, PREFIX_BYTES);
    if (message.len)
        memcpy(call->request + PREFIX_BYTES, message.ptr, message.len);
}

uint32_t pl__grpc_call(struct pl_grpc *g, const char *path, struct pl_str message,
                       uint32_t timeout_ms, pl_grpc_done_fn *done, void *user)
{
    if (!pl__grpc_usable(g) || g->open_count >= GRPC_CALLS_MAX ||
        message.len > GRPC_REQUEST_BYTES_MAX)
        return 0;
    int32_t stream_id = request_submit(g, path, timeout_ms);
    if (stream_id <= 0)
        return 0;
    struct call *call = must(calloc(1, sizeof *call));
    call->stream_id = stream_id;
    call->done = done;
    call->user = user;
    call->grpc_status = STATUS_NONE;
    request_frame(call, message);
    list_add(&g->open, call);
    g->open_count++;
    return (uint32_t)stream_id;
}

void pl__grpc_cancel(struct pl_grpc *g, uint32_t id)
{
    struct call *call = list_find(g->open, (int32_t)id);

    if (call) {
        stream_stop(g, call);
        list_remove(&g->open, call);
        g->open_count--;
        call_free(call);
        return;
    }
    call = list_find(g->ended, (int32_t)id);
    if (call) {
        list_remove(&g->ended, call);
        call_free(call);
    }
}

/* --- questions ---------------------------------------------------------------------------------- */

bool pl__grpc_usable(const struct pl_grpc *g)
{
    return !g->broken && !g->goaway_came && nghttp2_session_check_request_allowed(g->session);
}

uint32_t pl__grpc_open_calls(const struct pl_grpc *g)
{
    return g->open_count;
}

const char *pl__grpc_error(const struct pl_grpc *g)
{
    return g->error;
}
