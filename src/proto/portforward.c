/* The HTTP/1.1 upgrade first, then frames. Servers are not trusted: what is kept of an answer is bounded,
 * and the first rule that is broken closes it for good.
 *
 * wslay's frame interface is used, not its event interface: that one copies every message twice and
 * answers as many pings as a server cares to send before anything bounds them. */
#include "proto/portforward.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <wslay/wslay.h>

#include "base/base64.h"
#include "base/bytequeue.h"
#include "proto/upgrade.h"

enum {
    CHANNEL_DATA = 0, /* of the first port, and there is no second */
    CHANNEL_ERROR = 1,
    CHANNELS = 2,
    CHANNEL_NONE = 256,          /* no message is open, or its first byte has not come */
    PREFIX_BYTES = 2,            /* both channels begin with the port */
    FRAME_BYTES_MAX = 32 * 1024, /* of ours, with the byte for the channel */
    REFUSAL_BYTES_MAX = 4096,    /* what is kept of the body of a refused upgrade */
    CONTROL_BYTES_MAX = 125,
    KEY_BYTES = 16,
    ERROR_BYTES = 512,
    SAID_BYTES = 300, /* of what a server says in words */
};

struct pl_portforward {
    enum pl_portforward_state state;
    bool was_open;
    int status; /* of a refused upgrade */
    uint16_t port;
    void (*random)(void *user, uint8_t *bytes, size_t size);
    void *random_user;
    char accept[32]; /* what Sec-WebSocket-Accept must be */
    char error[ERROR_BYTES];

    struct pl_bytequeue out;     /* for the API server */
    struct pl_bytequeue pod;     /* from the pod */
    size_t out_taken, pod_taken; /* given out by the last call, to be dropped with the next */

    /* While upgrading: the answer so far, its body behind its headers. */
    struct pl_bytequeue answer;
    size_t header_bytes; /* 0: the headers have not ended */
    bool chunked, has_length;
    uint64_t body_length;

    /* Open. */
    wslay_frame_context_ptr frames;
    const uint8_t *input; /* what wslay has not taken yet */
    size_t input_size;
    uint64_t frame_left; /* of the payload of the frame that is being read */
    bool frame_open;     /* its header was read */
    bool message_open;   /* a message goes on in the next frame */
    unsigned channel;    /* of that message */
    uint8_t prefix[CHANNELS][PREFIX_BYTES];
    uint8_t prefix_len[CHANNELS];
    uint8_t control[CONTROL_BYTES_MAX];
    size_t control_len;
    char said[SAID_BYTES]; /* by the error channel */
    size_t said_len;
};

/* --- ends ------------------------------------------------------------------------------------------ */

__attribute__((format(printf, 2, 3))) static int closed(struct pl_portforward *p,
                                                        const char *format, ...)
{
    va_list args;

    if (p->state == PORTFORWARD_CLOSED)
        return -1;
    p->state = PORTFORWARD_CLOSED;
    va_start(args, format);
    vsnprintf(p->error, sizeof p->error, format, args);
    va_end(args);
    return -1;
}

/* Words of a server, fit for a line: no control characters, no spaces at the ends, cut at `room`. */
static void words_copy(char *room, size_t room_size, struct pl_str text)
{
    size_t len = 0;

    for (size_t i = 0; i < text.len && len + 1 < room_size; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        bool blank = c <= ' ' || c == 0x7f;
        if (blank && (len == 0 || room[len - 1] == ' '))
            continue;
        room[len++] = blank ? ' ' : (char)c;
    }
    while (len > 0 && (room[len - 1] == ' '))
        len--;
    room[len] = '\0';
}

/* What the last call gave out was used. */
static void settle(struct pl_portforward *p)
{
    pl__bytequeue_drop(&p->out, p->out_taken);
    pl__bytequeue_drop(&p->pod, p->pod_taken);
    if (p->out_taken > 0 && p->out.len == 0)
        p->out.secret = false; /* the request, with the token in it, is gone */
    p->out_taken = p->pod_taken = 0;
}

/* --- the request --------------------------------------------------------------------------------- */

static void out_text(struct pl_portforward *p, struct pl_str text)
{
    (void)pl__bytequeue_add(&p->out, text.ptr, text.len);
}

static void out_header(struct pl_portforward *p, const char *name, struct pl_str value)
{
    if (value.len == 0)
        return;
    out_text(p, pl__str(name));
    out_text(p, PL_STR(": "));
    out_text(p, value);
    out_text(p, PL_STR("\r\n"));
}

static struct pl_str key_make(struct pl_portforward *p, struct pl_arena *scratch)
{
    uint8_t bytes[KEY_BYTES];

    p->random(p->random_user, bytes, sizeof bytes);
    struct pl_str key = pl__base64_encode(scratch, (struct pl_str){ (char *)bytes, sizeof bytes });
    snprintf(p->accept, sizeof p->accept, "%s", pl__upgrade_accept(scratch, key).ptr);
    return key;
}

static void request_write(struct pl_portforward *p, const struct pl_portforward_options *o)
{
    struct pl_arena scratch;

    pl__arena_init(&scratch, NULL, 1024);
    p->out.secret = true;
    out_text(p, PL_STR("GET "));
    out_text(p, o->path);
    out_text(p, PL_STR(" HTTP/1.1\r\n"));
    out_header(p, "Host", o->host);
    out_header(p, "User-Agent", o->user_agent);
    out_header(p, "Authorization", o->authorization);
    out_text(p, o->headers);
    out_header(p, "Connection", PL_STR("Upgrade"));
    out_header(p, "Upgrade", PL_STR("websocket"));
    out_header(p, "Sec-WebSocket-Version", PL_STR("13"));
    out_header(p, "Sec-WebSocket-Key", key_make(p, &scratch));
    out_header(p, "Sec-WebSocket-Protocol", PL_STR(UPGRADE_PROTOCOL));
    out_text(p, PL_STR("\r\n"));
    pl__arena_release(&scratch);
}

/* --- the answer ----------------------------------------------------------------------------------- */

/* The upgrade was refused, and its body is there, or as much of it as there will be. */
static int refused(struct pl_portforward *p, struct pl_str body)
{
    char words[SAID_BYTES];
    struct pl_arena scratch;

    pl__arena_init(&scratch, NULL, 4096);
    words_copy(words, sizeof words, pl__upgrade_refusal_message(&scratch, body));
    pl__arena_release(&scratch);
    return closed(p, words[0] ? "HTTP %d: %s" : "HTTP %d", p->status, words);
}

/* The body of a refused upgrade, as far as it came. `ended`: no more will come. */
static int refusal_continue(struct pl_portforward *p, bool ended)
{
    const char *bytes = (const char *)pl__bytequeue_bytes(&p->answer);
    struct pl_str raw = { bytes + p->header_bytes, p->answer.len - p->header_bytes };
    struct pl_arena scratch;
    struct pl_buf body;
    int result = 0;

    assert(bytes && p->header_bytes > 0);
    pl__arena_init(&scratch, NULL, 1024);
    pl__buf_init(&body, &scratch, REFUSAL_BYTES_MAX);
    if (p->has_length && raw.len >= p->body_length) {
        raw.len = (size_t)p->body_length;
        ended = true;
    }
    if (p->chunked)
        ended |= pl__upgrade_chunks_join(raw, &body);
    else
        pl__buf_add(&body, raw);
    ended |= raw.len >= REFUSAL_BYTES_MAX;
    if (ended)
        result = refused(p, pl__buf_str(&body));
    pl__arena_release(&scratch);
    return result;
}

static int upgraded(struct pl_portforward *p, const struct pl_upgrade_answer *a)
{
    if (!a->upgrade || !a->connection)
        return closed(p, "the server switched to something other than WebSocket");
    if (!a->accept)
        return closed(p, "the server's Sec-WebSocket-Accept does not answer our key");
    if (!a->protocol)
        return closed(p, "the server does not speak " UPGRADE_PROTOCOL);
    if (a->extensions)
        return closed(p, "the server uses a WebSocket extension that nobody asked for");
    p->state = PORTFORWARD_OPEN;
    p->was_open = true;
    return 0;
}

/* Where the headers end, behind the empty line; 0: not yet. */
static size_t headers_end(const struct pl_bytequeue *answer)
{
    const uint8_t *bytes = pl__bytequeue_bytes(answer);

    for (size_t i = 3; i < answer->len; i++)
        if (bytes[i] == '\n' && bytes[i - 1] == '\r' && bytes[i - 2] == '\n' &&
            bytes[i - 3] == '\r')
            return i + 1;
    return 0;
}

static int headers_complete(struct pl_portforward *p, size_t size)
{
    const char *bytes = (const char *)pl__bytequeue_bytes(&p->answer);
    struct pl_upgrade_answer a = pl__upgrade_answer_read((struct pl_str){ bytes, size - 2 },
                                                         pl__str(p->accept)); /* the empty line */

    if (a.status == 0)
        return closed(p, "what the server sent is not HTTP");
    if (a.status == 101) {
        pl__bytequeue_drop(&p->answer, size);
        return upgraded(p, &a);
    }
    if (a.status < 200)
        return closed(p, "the server answers an upgrade with HTTP %d", a.status);
    p->status = a.status;
    p->header_bytes = size;
    p->chunked = a.chunked;
    p->has_length = a.has_length && !a.chunked;
    p->body_length = a.length;
    return 0;
}

static int frames_receive(struct pl_portforward *p, const uint8_t *bytes, size_t size);

/* What came behind the headers of a 101 is frames already. */
static int frames_begin(struct pl_portforward *p)
{
    int result = frames_receive(p, pl__bytequeue_bytes(&p->answer), p->answer.len);

    pl__bytequeue_release(&p->answer);
    return result;
}

/* Takes what fits; `*size` is lowered by it. */
static void answer_take(struct pl_portforward *p, const uint8_t **bytes, size_t *size)
{
    size_t room = p->answer.max - p->answer.len;
    size_t taken = *size < room ? *size : room;

    (void)pl__bytequeue_add(&p->answer, *bytes, taken);
    *bytes += taken;
    *size -= taken;
}

static int upgrade_receive(struct pl_portforward *p, const uint8_t *bytes, size_t size)
{
    answer_take(p, &bytes, &size);
    if (p->header_bytes == 0) {
        size_t end = headers_end(&p->answer);
        if (end == 0 && p->answer.len >= PORTFORWARD_HEADERS_MAX)
            return closed(p, "the server's answer has too many headers");
        if (end == 0)
            return 0;
        if (headers_complete(p, end) < 0)
            return -1;
    }
    if (p->state != PORTFORWARD_OPEN)
        return refusal_continue(p, false);
    if (frames_begin(p) < 0)
        return -1;
    return frames_receive(p, bytes, size);
}

/* --- frames from the server ------------------------------------------------------------------------ */

static ssize_t on_input(uint8_t *room, size_t size, int flags, void *user)
{
    struct pl_portforward *p = user;
    size_t taken = p->input_size < size ? p->input_size : size;

    (void)flags;
    if (taken == 0)
        return -1; /* "not now" */
    memcpy(room, p->input, taken);
    p->input += taken;
    p->input_size -= taken;
    return (ssize_t)taken;
}

static ssize_t on_output(const uint8_t *bytes, size_t size, int flags, void *user)
{
    struct pl_portforward *p = user;

    (void)flags;
    return pl__bytequeue_add(&p->out, bytes, size) < 0 ? -1 : (ssize_t)size;
}

static int on_mask(uint8_t *room, size_t size, void *user)
{
    struct pl_portforward *p = user;

    p->random(p->random_user, room, size);
    return 0;
}

/* One frame of ours: at most two pieces of payload. The room for it must have been checked before: a
 * frame that is sent by half cannot be taken back. */
static void frame_write(struct pl_portforward *p, uint8_t opcode, struct pl_str first,
                        struct pl_str second)
{
    struct pl_str pieces[] = { first, second };
    struct wslay_frame_iocb frame = {
        .fin = 1, .opcode = opcode, .mask = 1, .payload_length = first.len + second.len
    };

    for (size_t i = 0; i < 2; i++) {
        if (pieces[i].len == 0 && (i > 0 || second.len > 0))
            continue;
        frame.data = (const uint8_t *)pieces[i].ptr;
        frame.data_length = pieces[i].len;
        ssize_t sent = wslay_frame_send(p->frames, &frame);
        assert(sent == (ssize_t)frame.data_length);
        (void)sent;
    }
}

/* An answer to a control frame. With no room the server does not read what we send: it may do without. */
static void control_answer(struct pl_portforward *p, uint8_t opcode)
{
    if (p->out.max - p->out.len < CONTROL_BYTES_MAX + 16)
        return;
    frame_write(p, opcode, (struct pl_str){ (const char *)p->control, p->control_len },
                (struct pl_str){ "", 0 });
}

static int on_close(struct pl_portforward *p)
{
    enum { NORMAL = 1000, GOING_AWAY = 1001 };
    unsigned code = p->control_len >= 2 ? (unsigned)p->control[0] << 8 | p->control[1] : NORMAL;
    char words[SAID_BYTES];

    control_answer(p, WSLAY_CONNECTION_CLOSE);
    if (code == NORMAL || code == GOING_AWAY)
        return closed(p, "%s", "");
    words_copy(words, sizeof words,
               (struct pl_str){ (const char *)p->control + 2, p->control_len - 2 });
    return closed(
        p, words[0] ? "closed by the server with code %u: %s" : "closed by the server with code %u",
        code, words);
}

static int control_end(struct pl_portforward *p, uint8_t opcode)
{
    switch (opcode) {
    case WSLAY_CONNECTION_CLOSE:
        return on_close(p);
    case WSLAY_PING:
        control_answer(p, WSLAY_PONG);
        return 0;
    default:
        return 0; /* a pong */
    }
}

static int prefix_check(struct pl_portforward *p, unsigned channel)
{
    unsigned port = (unsigned)p->prefix[channel][0] | (unsigned)p->prefix[channel][1] << 8;

    if (port != p->port)
        return closed(p, "the server forwards port %u where %u was asked for", port, p->port);
    return 0;
}

static int channel_bytes(struct pl_portforward *p, const uint8_t *bytes, size_t size)
{
    unsigned channel = p->channel;

    if (channel >= CHANNELS)
        return 0; /* of a port that nobody asked for */
    while (size > 0 && p->prefix_len[channel] < PREFIX_BYTES) {
        p->prefix[channel][p->prefix_len[channel]++] = *bytes++;
        size--;
        if (p->prefix_len[channel] == PREFIX_BYTES && prefix_check(p, channel) < 0)
            return -1;
    }
    if (channel == CHANNEL_DATA) {
        if (pl__bytequeue_add(&p->pod, bytes, size) < 0)
            return closed(p, "the pod sends more than anybody takes");
        return 0;
    }
    size_t room = sizeof p->said - p->said_len;
    size_t taken = size < room ? size : room;
    memcpy(p->said + p->said_len, bytes, taken);
    p->said_len += taken;
    return 0;
}

static int message_end(struct pl_portforward *p)
{
    char words[SAID_BYTES];

    p->message_open = false;
    if (p->said_len == 0)
        return 0;
    words_copy(words, sizeof words, (struct pl_str){ p->said, p->said_len });
    return closed(p, "%s", words[0] ? words : "the error channel says nothing readable");
}

static int frame_begin(struct pl_portforward *p, const struct wslay_frame_iocb *f)
{
    if (f->rsv || f->mask)
        return closed(p, "the server sent a frame that no client may be sent");
    if (wslay_is_ctrl_frame(f->opcode)) {
        p->control_len = 0;
        return f->opcode > WSLAY_PONG ? closed(p, "the server sent a frame of an unknown kind") : 0;
    }
    if (f->opcode == WSLAY_CONTINUATION_FRAME)
        return p->message_open ? 0 : closed(p, "the server continues a message that never began");
    if (f->opcode != WSLAY_BINARY_FRAME)
        return closed(p, "the server sent a frame that is not binary");
    if (p->message_open)
        return closed(p, "the server begins a message inside of another");
    p->message_open = true;
    p->channel = CHANNEL_NONE;
    return 0;
}

static int frame_bytes(struct pl_portforward *p, const struct wslay_frame_iocb *f)
{
    const uint8_t *bytes = f->data;
    size_t size = f->data_length;

    if (wslay_is_ctrl_frame(f->opcode)) {
        if (size > sizeof p->control - p->control_len)
            return closed(p, "the server sent a control frame that is too long");
        if (size)
            memcpy(p->control + p->control_len, bytes, size);
        p->control_len += size;
        return 0;
    }
    if (size > 0 && p->channel == CHANNEL_NONE) {
        p->channel = *bytes++;
        size--;
    }
    return size > 0 ? channel_bytes(p, bytes, size) : 0;
}

/* A piece of a frame, as large as wslay had it. */
static int frame_piece(struct pl_portforward *p, const struct wslay_frame_iocb *f)
{
    if (!p->frame_open) {
        p->frame_open = true;
        p->frame_left = f->payload_length;
        if (frame_begin(p, f) < 0)
            return -1;
    }
    if (frame_bytes(p, f) < 0)
        return -1;
    p->frame_left -= f->data_length;
    if (p->frame_left > 0)
        return 0;
    p->frame_open = false;
    if (wslay_is_ctrl_frame(f->opcode))
        return control_end(p, f->opcode);
    return f->fin ? message_end(p) : 0;
}

static int frames_receive(struct pl_portforward *p, const uint8_t *bytes, size_t size)
{
    struct wslay_frame_iocb frame;

    p->input = bytes;
    p->input_size = size;
    for (;;) {
        memset(&frame, 0, sizeof frame);
        ssize_t got = wslay_frame_recv(p->frames, &frame);
        if (got == WSLAY_ERR_WANT_READ)
            return 0;
        if (got < 0)
            return closed(p, "what the server sent is not WebSocket");
        if (frame_piece(p, &frame) < 0)
            return -1;
    }
}

/* --- for callers ----------------------------------------------------------------------------------- */

struct pl_portforward *pl__portforward_new(const struct pl_portforward_options *options)
{
    static const struct wslay_frame_callbacks callbacks = { on_output, on_input, on_mask };
    struct pl_portforward *p = calloc(1, sizeof *p);

    if (!p || wslay_frame_context_init(&p->frames, &callbacks, p) != 0)
        abort();
    p->port = options->port;
    p->random = options->random;
    p->random_user = options->random_user;
    pl__bytequeue_init(&p->out, PORTFORWARD_BUFFER_MAX);
    pl__bytequeue_init(&p->pod, PORTFORWARD_BUFFER_MAX);
    pl__bytequeue_init(&p->answer, PORTFORWARD_HEADERS_MAX + REFUSAL_BYTES_MAX);
    request_write(p, options);
    return p;
}

void pl__portforward_free(struct pl_portforward *p)
{
    if (!p)
        return;
    wslay_frame_context_free(p->frames);
    pl__bytequeue_release(&p->out);
    pl__bytequeue_release(&p->pod);
    pl__bytequeue_release(&p->answer);
    free(p);
}

int pl__portforward_receive(struct pl_portforward *p, const void *bytes, size_t size)
{
    settle(p);
    switch (p->state) {
    case PORTFORWARD_UPGRADING:
        return upgrade_receive(p, bytes, size);
    case PORTFORWARD_OPEN:
        return frames_receive(p, bytes, size);
    case PORTFORWARD_CLOSED:
        break;
    }
    return -1;
}

void pl__portforward_lost(struct pl_portforward *p)
{
    settle(p);
    if (p->state == PORTFORWARD_OPEN)
        closed(p, "the API server cut the connection");
    else if (p->header_bytes > 0 && p->state == PORTFORWARD_UPGRADING)
        (void)refusal_continue(p, true);
    else
        closed(p, "the API server cut the connection without an answer");
}

size_t pl__portforward_send(struct pl_portforward *p, const uint8_t **bytes)
{
    settle(p);
    *bytes = pl__bytequeue_bytes(&p->out);
    p->out_taken = p->out.len;
    return p->out.len;
}

/* With the header of each frame. */
static size_t framed_size(size_t size)
{
    enum { HEADER_BYTES_MAX = 14 };

    return size + (size / (FRAME_BYTES_MAX - 1) + 1) * (HEADER_BYTES_MAX + 1);
}

int pl__portforward_write(struct pl_portforward *p, const void *bytes, size_t size)
{
    static const char channel[] = { CHANNEL_DATA };
    const char *at = bytes;

    settle(p);
    if (p->state != PORTFORWARD_OPEN || size > PORTFORWARD_BUFFER_MAX ||
        framed_size(size) > p->out.max - p->out.len)
        return -1;
    while (size > 0) {
        size_t now = size < FRAME_BYTES_MAX - 1 ? size : FRAME_BYTES_MAX - 1;
        frame_write(p, WSLAY_BINARY_FRAME, (struct pl_str){ channel, sizeof channel },
                    (struct pl_str){ at, now });
        at += now;
        size -= now;
    }
    return 0;
}

size_t pl__portforward_read(struct pl_portforward *p, const uint8_t **bytes)
{
    settle(p);
    *bytes = pl__bytequeue_bytes(&p->pod);
    p->pod_taken = p->pod.len;
    return p->pod.len;
}

void pl__portforward_close(struct pl_portforward *p)
{
    static const uint8_t normal[] = { 1000 >> 8, 1000 & 0xff };

    settle(p);
    if (p->state == PORTFORWARD_OPEN) {
        memcpy(p->control, normal, sizeof normal);
        p->control_len = sizeof normal;
        control_answer(p, WSLAY_CONNECTION_CLOSE);
    }
    closed(p, "%s", "");
}

enum pl_portforward_state pl__portforward_state(const struct pl_portforward *p)
{
    return p->state;
}

bool pl__portforward_was_open(const struct pl_portforward *p)
{
    return p->was_open;
}

int pl__portforward_status(const struct pl_portforward *p)
{
    return p->status;
}

const char *pl__portforward_error(const struct pl_portforward *p)
{
    return p->error;
}
