/* Any bytes from a gRPC peer. The first byte steers, the second is how many bytes come at a time.
 *
 * Holds for all input: every call ends exactly once, or never when it was cancelled; a message of GRPC_OK
 * is within its limit and can be read; a session that says it is broken has no calls and takes none. */
#include <stdlib.h>

#include "proto/grpc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition) \
    do {                   \
        if (!(condition))  \
            abort();       \
    } while (0)

/* Of the steering byte. */
enum {
    CALLS_MASK = 0x07,
    CALLS_WAIT = 0x08,      /* the first calls are not sent before bytes come */
    CONNECTION_LOST = 0x10, /* at the end, rather than closed by us */
    DONE_STARTS = 0x20,     /* another call */
    CANCEL_ONE = 0x40,      /* half way */
    DONE_CANCELS = 0x80,    /* the first call */
    CALLS_TOTAL_MAX = 32,
};

struct world;

struct call {
    struct world *world;
    uint32_t id;
    bool ended, cancelled;
};

struct world {
    struct pl_grpc *session;
    uint8_t steering;
    struct call calls[CALLS_TOTAL_MAX];
    size_t call_count;
};

static void cancel(struct call *call)
{
    if (call->id && !call->ended) {
        call->cancelled = true;
        pl__grpc_cancel(call->world->session, call->id);
    }
}

static void start(struct world *w);

static void done(void *user, const struct pl_grpc_reply *reply)
{
    struct call *call = user;
    struct world *w = call->world;
    size_t sum = 0;

    REQUIRE(!call->ended && !call->cancelled);
    REQUIRE(reply->code >= 0 && reply->code <= GRPC_UNAUTHENTICATED);
    REQUIRE(reply->code == GRPC_OK ? reply->from_peer : reply->body.len == 0);
    REQUIRE(reply->body.len <= GRPC_REPLY_BYTES_MAX);
    REQUIRE(reply->message.len <= GRPC_HEADER_BYTES_MAX);
    for (size_t i = 0; i < reply->body.len; i++)
        sum += (uint8_t)reply->body.ptr[i];
    for (size_t i = 0; i < reply->message.len; i++)
        REQUIRE((uint8_t)reply->message.ptr[i] >= 0x20);
    REQUIRE(sum < SIZE_MAX);
    call->ended = true;
    if (w->steering & DONE_STARTS)
        start(w);
    if (w->steering & DONE_CANCELS)
        cancel(&w->calls[0]);
}

static void start(struct world *w)
{
    if (w->call_count == CALLS_TOTAL_MAX)
        return;
    struct call *call = &w->calls[w->call_count];
    call->world = w;
    call->id = pl__grpc_call(w->session, "/etcdserverpb.Maintenance/Status", PL_STR("request"),
                             15000, done, call);
    if (call->id)
        w->call_count++;
}

static void drain(struct world *w)
{
    const uint8_t *bytes;
    size_t size, sum = 0;

    while ((size = pl__grpc_send(w->session, &bytes)) > 0)
        for (size_t i = 0; i < size; i++)
            sum += bytes[i];
    REQUIRE(sum < SIZE_MAX);
}

static void feed(struct world *w, const uint8_t *data, size_t size, size_t step)
{
    for (size_t at = 0; at < size; at += step) {
        size_t piece = size - at < step ? size - at : step;
        if (pl__grpc_receive(w->session, data + at, piece) < 0) {
            REQUIRE(!pl__grpc_usable(w->session) && pl__grpc_open_calls(w->session) == 0);
            REQUIRE(pl__grpc_error(w->session)[0] != '\0');
            return;
        }
        if ((w->steering & CANCEL_ONE) && at <= size / 2 && at + step > size / 2)
            cancel(&w->calls[0]);
        drain(w);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct world w = { .session = pl__grpc_new("node-1"), .steering = data[0] };
    for (int i = 0; i < (w.steering & CALLS_MASK); i++)
        start(&w);
    if (!(w.steering & CALLS_WAIT))
        drain(&w);
    feed(&w, data + 2, size - 2, (size_t)data[1] + 1);
    if (w.steering & CONNECTION_LOST)
        pl__grpc_lost(w.session, PL_STR("lost"));
    w.steering &= (uint8_t)~DONE_STARTS;
    pl__grpc_free(w.session);
    for (size_t i = 0; i < w.call_count; i++)
        REQUIRE(w.calls[i].ended != w.calls[i].cancelled);
    return 0;
}
