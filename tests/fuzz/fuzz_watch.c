/* What a server says in the watches of the controller: the first byte is the size of the pieces it comes in, the
 * second whether it says so to a list instead. Then each line goes to one watch, by its first byte.
 *
 * Holds for all input: nothing is read out of bounds, what is held stays within its bound, and the controller goes
 * on: it asks again for whatever it gave up. */
#include <stdlib.h>

#include "controller/controller.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CALLS_MAX = 64, STEPS_MAX = 64 };

struct asked {
    uint64_t ids[CALLS_MAX];
    bool watches[CALLS_MAX];
    size_t count;
};

static void take_actions(struct pl_controller *c, struct asked *asked)
{
    const struct pl_action *action;

    while ((action = pl_controller_next_action(c))) {
        if ((action->type != ACTION_WATCH && action->type != ACTION_REQUEST) ||
            asked->count == CALLS_MAX)
            continue;
        asked->ids[asked->count] = action->id;
        asked->watches[asked->count++] = action->type == ACTION_WATCH;
    }
}

static void say(struct pl_controller *c, struct asked *asked, size_t which, struct pl_str bytes,
                size_t piece, struct pl_now now)
{
    struct pl_event event = { .id = asked->ids[which], .status = 200, .retry_after_s = -1 };

    if (!asked->watches[which]) {
        event.type = EVENT_ANSWER;
        event.body = bytes;
        pl_controller_step(c, &event, now);
        take_actions(c, asked);
        return;
    }
    event.type = EVENT_BYTES;
    for (size_t at = 0; at < bytes.len; at += piece) {
        event.body =
            (struct pl_str){ bytes.ptr + at, bytes.len - at < piece ? bytes.len - at : piece };
        pl_controller_step(c, &event, now);
        take_actions(c, asked);
    }
}

static void say_all(struct pl_controller *c, struct asked *asked, struct pl_str text, size_t piece,
                    struct pl_now now)
{
    for (int i = 0; i < STEPS_MAX && text.len > 1 && asked->count > 0; i++) {
        const char *end = memchr(text.ptr, '\n', text.len);
        size_t len = end ? (size_t)(end - text.ptr) + 1 : text.len; /* with the line's end */
        struct pl_str line = { text.ptr + 1, len - 1 };
        say(c, asked, (unsigned char)text.ptr[0] % asked->count, line, piece, now);
        text.ptr += len;
        text.len -= len;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pl_controller_options options = { .mode = MODE_SHADOW, .seed = 1 };
    struct pl_now now = { .mono_ms = 1000, .wall_ms = 1767225600000 };
    struct pl_event tick = { .type = EVENT_TICK };
    struct asked asked = { .count = 0 };

    if (size < 2)
        return 0;
    struct pl_controller *c = pl_controller_new(&options, now);
    pl_controller_step(c, &tick, now);
    take_actions(c, &asked);
    if (data[1] & 1) { /* no WatchList: lists come first */
        size_t first = asked.count;
        for (size_t i = 0; i < first; i++)
            pl_controller_step(
                c,
                &(struct pl_event){
                    .type = EVENT_ANSWER, .id = asked.ids[i], .status = 422, .retry_after_s = -1 },
                now);
        asked.count = 0;
        now.mono_ms += 60 * 1000;
        pl_controller_step(c, &tick, now);
        take_actions(c, &asked);
    }
    say_all(c, &asked, (struct pl_str){ (const char *)data + 2, size - 2 },
            (size_t)1 << (data[0] & 0x0f), now);
    now.mono_ms += 60 * 1000;
    asked.count = 0;
    pl_controller_step(c, &tick, now);
    take_actions(c, &asked);
    pl_controller_free(c);
    return 0;
}
