/* Any bytes as a reply of etcd: one byte for the method, the rest the message.
 *
 * Holds for all input: failing sets an error and leaves the answer alone, lists are sorted, all of their
 * text can be read, and the memory is a small multiple of the input. */
#include <stdlib.h>

#include "proto/etcd_messages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition) \
    do {                   \
        if (!(condition))  \
            abort();       \
    } while (0)

enum { ARENA_BYTES = 4096, FIXED_BYTES = 64 * 1024, PER_BYTE_MAX = 24 };

/* Reads every byte, for the sanitizer to see. */
static size_t touch(struct pl_str text)
{
    size_t sum = 0;

    for (size_t i = 0; i < text.len; i++)
        sum += (uint8_t)text.ptr[i];
    return sum;
}

static size_t check_answer(const struct pl_etcd_answer *answer)
{
    size_t sum = touch(answer->version);

    for (size_t i = 0; i < answer->error_count; i++)
        sum += touch(answer->errors[i]);
    for (size_t i = 0; i < answer->member_count; i++) {
        const struct pl_etcd_member_info *m = &answer->members[i];
        REQUIRE(i == 0 || m[-1].id <= m->id);
        sum += touch(m->name) + touch(m->peer_url) + touch(m->client_url);
    }
    for (size_t i = 1; i < answer->alarm_count; i++)
        REQUIRE(answer->alarms[i - 1].member_id <= answer->alarms[i].member_id);
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pl_etcd_answer answer = { .leader = 42 };
    struct pl_error *err = NULL;
    struct pl_arena arena;

    if (size == 0)
        return 0;
    pl__arena_init(&arena, NULL, ARENA_BYTES);
    if (pl__etcd_reply_decode(&arena, (enum pl_etcd_method)(data[0] % ETCD_METHOD_COUNT),
                              (struct pl_str){ (const char *)data + 1, size - 1 }, &answer,
                              &err) < 0)
        REQUIRE(err && err->message.len && answer.leader == 42 && answer.member_count == 0);
    else
        REQUIRE(!err && check_answer(&answer) < SIZE_MAX);
    REQUIRE(arena.held_bytes <= FIXED_BYTES + PER_BYTE_MAX * size);
    pl__arena_release(&arena);
    return 0;
}
