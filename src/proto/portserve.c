#include "proto/portserve.h"

#include <assert.h>
#include <stdlib.h>
#include <wslay/wslay.h>

#include "base/bytequeue.h"

enum {
    CHANNEL_DATA = 0,
    CHANNEL_ERROR = 1,
    FRAME_BYTES_MAX = 32 * 1024,          /* of ours, with the byte for the channel */
    FRAME_OVERHEAD_MAX = 16,              /* header and channel */
    CONTROL_BYTES_MAX = 125,              /* RFC 6455, 5.5 */
    CLIENT_FRAME_BYTES_MAX = 1024 * 1024, /* of the client */
    RESERVE_BYTES = 4096,                 /* of what waits for the client: pongs, errors, the end */
    CLOSE_NORMAL = 1000,
    CLOSE_PROTOCOL_ERROR = 1002,
};

struct pl_portserve {
    wslay_frame_context_ptr frames;
    struct pl_bytequeue out, pod;
    const uint8_t *input; /* what wslay has not taken yet */
    size_t input_size;
    /* The frame that is being read. */
    uint64_t frame_left;
    bool frame_open, first_byte;
    uint8_t opcode, channel;
    uint8_t control[CONTROL_BYTES_MAX];
    size_t control_len;
    bool ended;
};

/* --- to the client ---------------------------------------------------------------------------------- */

static ssize_t on_output(const uint8_t *bytes, size_t size, int flags, void *user)
{
    struct pl_portserve *p = user;

    (void)flags;
    return pl__bytequeue_add(&p->out, bytes, size) == 0 ? (ssize_t)size : -1;
}

/* One frame; there must be room for it. */
static void frame_write(struct pl_portserve *p, uint8_t opcode, const void *bytes, size_t size)
{
    struct wslay_frame_iocb frame = {
        .fin = 1, .opcode = opcode, .payload_length = size, .data = bytes, .data_length = size
    };

    (void)wslay_frame_send(p->frames, &frame);
}

static void message_write(struct pl_portserve *p, uint8_t channel, const void *bytes, size_t size)
{
    uint8_t message[FRAME_BYTES_MAX];

    assert(size < sizeof message);
    message[0] = channel;
    memcpy(message + 1, bytes, size);
    frame_write(p, WSLAY_BINARY_FRAME, message, size + 1);
}

static void close_write(struct pl_portserve *p, unsigned code)
{
    const uint8_t reason[] = { (uint8_t)(code >> 8), (uint8_t)(code & 0xff) };

    if (!p->ended)
        frame_write(p, WSLAY_CONNECTION_CLOSE, reason, sizeof reason);
    p->ended = true;
}

/* --- from the client -------------------------------------------------------------------------------- */

static ssize_t on_input(uint8_t *bytes, size_t size, int flags, void *user)
{
    struct pl_portserve *p = user;
    size_t count = size < p->input_size ? size : p->input_size;

    (void)flags;
    if (count == 0)
        return -1; /* "not now" */
    memcpy(bytes, p->input, count);
    p->input += count;
    p->input_size -= count;
    return (ssize_t)count;
}

static int on_mask(uint8_t *bytes, size_t size, void *user)
{
    (void)user;
    memset(bytes, 0, size); /* never asked: servers do not mask */
    return 0;
}

static int rules_broken(struct pl_portserve *p)
{
    close_write(p, CLOSE_PROTOCOL_ERROR);
    return -1;
}

static int frame_begin(struct pl_portserve *p, const struct wslay_frame_iocb *frame)
{
    bool control = wslay_is_ctrl_frame(frame->opcode) != 0;

    if (!frame->mask || frame->rsv != 0 || frame->payload_length > CLIENT_FRAME_BYTES_MAX ||
        (control && frame->payload_length > CONTROL_BYTES_MAX))
        return rules_broken(p);
    p->frame_open = true;
    p->first_byte = true;
    p->frame_left = frame->payload_length;
    p->opcode = frame->opcode;
    p->control_len = 0;
    return 0;
}

/* A piece of a message: its first byte says for which channel, and only data is for the pod. */
static int message_piece(struct pl_portserve *p, const uint8_t *bytes, size_t size)
{
    if (size > 0 && p->first_byte) {
        p->first_byte = false;
        p->channel = bytes[0];
        bytes++;
        size--;
    }
    if (size == 0 || p->channel != CHANNEL_DATA)
        return 0;
    return pl__bytequeue_add(&p->pod, bytes, size);
}

static int control_end(struct pl_portserve *p)
{
    switch (p->opcode) {
    case WSLAY_PING:
        if (p->out.max - p->out.len > p->control_len + FRAME_OVERHEAD_MAX + RESERVE_BYTES / 2)
            frame_write(p, WSLAY_PONG, p->control, p->control_len);
        return 0;
    case WSLAY_CONNECTION_CLOSE:
        close_write(p, CLOSE_NORMAL);
        return -1;
    default:
        return 0; /* a PONG nobody asked for */
    }
}

static int frame_piece(struct pl_portserve *p, const struct wslay_frame_iocb *frame)
{
    bool control = wslay_is_ctrl_frame(frame->opcode) != 0;

    if (!p->frame_open && frame_begin(p, frame) < 0)
        return -1;
    if (control && frame->data_length > 0) {
        memcpy(p->control + p->control_len, frame->data, frame->data_length);
        p->control_len += frame->data_length;
    } else if (!control && message_piece(p, frame->data, frame->data_length) < 0) {
        return rules_broken(p);
    }
    p->frame_left -= frame->data_length;
    if (p->frame_left > 0)
        return 0;
    p->frame_open = false;
    return control ? control_end(p) : 0;
}

int pl__portserve_receive(struct pl_portserve *p, const void *bytes, size_t size)
{
    if (p->ended)
        return -1;
    p->input = bytes;
    p->input_size = size;
    /* Each turn takes at least a byte of the input, or ends. */
    for (;;) {
        struct wslay_frame_iocb frame = { 0 };
        ssize_t got = wslay_frame_recv(p->frames, &frame);
        if (got == WSLAY_ERR_WANT_READ)
            return 0;
        if (got < 0)
            return rules_broken(p);
        if (frame_piece(p, &frame) < 0)
            return -1;
    }
}

/* --- for callers ------------------------------------------------------------------------------------ */

struct pl_portserve *pl__portserve_new(uint16_t port)
{
    static const struct wslay_frame_callbacks callbacks = { on_output, on_input, on_mask };
    const uint8_t prefix[] = { (uint8_t)(port & 0xff), (uint8_t)(port >> 8) }; /* little-endian */
    struct pl_portserve *p = calloc(1, sizeof *p);

    if (!p || wslay_frame_context_init(&p->frames, &callbacks, p) != 0)
        abort();
    pl__bytequeue_init(&p->out, PORTSERVE_BUFFER_MAX);
    pl__bytequeue_init(&p->pod, PORTSERVE_BUFFER_MAX);
    message_write(p, CHANNEL_DATA, prefix, sizeof prefix);
    message_write(p, CHANNEL_ERROR, prefix, sizeof prefix);
    return p;
}

void pl__portserve_free(struct pl_portserve *p)
{
    if (!p)
        return;
    wslay_frame_context_free(p->frames);
    pl__bytequeue_release(&p->out);
    pl__bytequeue_release(&p->pod);
    free(p);
}

size_t pl__portserve_send(const struct pl_portserve *p, const uint8_t **bytes)
{
    *bytes = pl__bytequeue_bytes(&p->out);
    return p->out.len;
}

void pl__portserve_sent(struct pl_portserve *p, size_t size)
{
    pl__bytequeue_drop(&p->out, size);
}

size_t pl__portserve_read(const struct pl_portserve *p, const uint8_t **bytes)
{
    *bytes = pl__bytequeue_bytes(&p->pod);
    return p->pod.len;
}

void pl__portserve_took(struct pl_portserve *p, size_t size)
{
    pl__bytequeue_drop(&p->pod, size);
}

size_t pl__portserve_room(const struct pl_portserve *p)
{
    size_t free_bytes = p->out.max - p->out.len;
    size_t overhead = RESERVE_BYTES + FRAME_OVERHEAD_MAX * (free_bytes / FRAME_BYTES_MAX + 1);

    return p->ended || free_bytes <= overhead ? 0 : free_bytes - overhead;
}

void pl__portserve_write(struct pl_portserve *p, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;

    assert(size <= pl__portserve_room(p));
    while (size > 0) {
        size_t now = size < FRAME_BYTES_MAX - 1 ? size : FRAME_BYTES_MAX - 1;
        message_write(p, CHANNEL_DATA, at, now);
        at += now;
        size -= now;
    }
}

void pl__portserve_end(struct pl_portserve *p, struct pl_str why)
{
    size_t len = why.len < RESERVE_BYTES / 2 ? why.len : RESERVE_BYTES / 2;

    if (!p->ended && len > 0)
        message_write(p, CHANNEL_ERROR, why.ptr, len);
    close_write(p, CLOSE_NORMAL);
}
