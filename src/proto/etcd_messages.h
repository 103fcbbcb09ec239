/* proto/etcd_messages.h - etcd's protobuf messages, by protobuf-c from our own minimal etcd.proto.
 *
 * Requests are encoded into an arena without the five bytes of gRPC framing; replies are decoded into
 * struct pl_etcd_answer, everything copied into the arena. Hostile bytes give an error, never a crash
 * and never more memory than a small multiple of their size. */
#ifndef PL_PROTO_ETCD_MESSAGES_H
#define PL_PROTO_ETCD_MESSAGES_H

#include "base/arena.h"
#include "base/error.h"
#include "proto/etcd.h"

/* The single calls that a pl_etcd_call is made of. */
enum pl_etcd_method {
    ETCD_METHOD_STATUS,
    ETCD_METHOD_MEMBER_LIST, /* linearizable */
    ETCD_METHOD_ALARM_LIST,
    ETCD_METHOD_MOVE_LEADER,
    ETCD_METHOD_MEMBER_REMOVE,
    ETCD_METHOD_MEMBER_ADD,
    ETCD_METHOD_MEMBER_ADD_LEARNER,
    ETCD_METHOD_MEMBER_PROMOTE,
    ETCD_METHOD_NOSPACE_RAISE,
    ETCD_METHOD_NOSPACE_CLEAR,
    ETCD_METHOD_COUNT,
};

/* "/etcdserverpb.Maintenance/Status". */
const char *pl__etcd_method_path(enum pl_etcd_method method);

/* Whether sending it twice does no more than sending it once. */
bool pl__etcd_method_is_idempotent(enum pl_etcd_method method);

struct pl_etcd_arguments {
    uint64_t member_id;
    struct pl_str peer_url;
};

struct pl_str pl__etcd_request_encode(struct pl_arena *arena, enum pl_etcd_method method,
                                      const struct pl_etcd_arguments *arguments);

/* Adds what the reply says to `*answer`: lists of members and alarms take the place of what was there,
 * the header's ids are taken from whichever reply has one. 0, or -1: "Status reply: ..."; then
 * `*answer` is as it was. */
int pl__etcd_reply_decode(struct pl_arena *arena, enum pl_etcd_method method, struct pl_str bytes,
                          struct pl_etcd_answer *answer, struct pl_error **err);

#endif
