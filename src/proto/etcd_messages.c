#include "proto/etcd_messages.h"

#include <assert.h>
#include <stdlib.h>

#include "proto/etcd.pb-c.h"

/* protobuf-c makes a struct of each part of a message, so that two bytes can become a hundred. An honest
 * reply needs about five times its size. */
enum { DECODED_PER_BYTE_MAX = 16, DECODED_BYTES_MIN = 16 * 1024 };

/* --- the methods -------------------------------------------------------------------------------- */

struct method {
    const char *name;
    const char *path;
    bool is_idempotent;
    const ProtobufCMessageDescriptor *reply;
};

static const struct method methods[ETCD_METHOD_COUNT] = {
    [ETCD_METHOD_STATUS] = { "Status", "/etcdserverpb.Maintenance/Status", true,
                             &etcdserverpb__status_response__descriptor },
    [ETCD_METHOD_MEMBER_LIST] = { "MemberList", "/etcdserverpb.Cluster/MemberList", true,
                                  &etcdserverpb__members_response__descriptor },
    [ETCD_METHOD_ALARM_LIST] = { "Alarm", "/etcdserverpb.Maintenance/Alarm", true,
                                 &etcdserverpb__alarm_response__descriptor },
    [ETCD_METHOD_MOVE_LEADER] = { "MoveLeader", "/etcdserverpb.Maintenance/MoveLeader", false,
                                  &etcdserverpb__move_leader_response__descriptor },
    [ETCD_METHOD_MEMBER_REMOVE] = { "MemberRemove", "/etcdserverpb.Cluster/MemberRemove", false,
                                    &etcdserverpb__members_response__descriptor },
    [ETCD_METHOD_MEMBER_ADD] = { "MemberAdd", "/etcdserverpb.Cluster/MemberAdd", false,
                                 &etcdserverpb__member_add_response__descriptor },
    [ETCD_METHOD_MEMBER_ADD_LEARNER] = { "MemberAdd", "/etcdserverpb.Cluster/MemberAdd", false,
                                         &etcdserverpb__member_add_response__descriptor },
    [ETCD_METHOD_MEMBER_PROMOTE] = { "MemberPromote", "/etcdserverpb.Cluster/MemberPromote", false,
                                     &etcdserverpb__members_response__descriptor },
    [ETCD_METHOD_NOSPACE_RAISE] = { "Alarm", "/etcdserverpb.Maintenance/Alarm", false,
                                    &etcdserverpb__alarm_response__descriptor },
    [ETCD_METHOD_NOSPACE_CLEAR] = { "Alarm", "/etcdserverpb.Maintenance/Alarm", false,
                                    &etcdserverpb__alarm_response__descriptor },
};

const char *pl__etcd_method_path(enum pl_etcd_method method)
{
    return methods[method].path;
}

bool pl__etcd_method_is_idempotent(enum pl_etcd_method method)
{
    return methods[method].is_idempotent;
}

/* --- requests ----------------------------------------------------------------------------------- */

static struct pl_str pack(struct pl_arena *arena, const ProtobufCMessage *message)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = pl__arena_alloc(arena, size);

    protobuf_c_message_pack(message, bytes);
    return (struct pl_str){ (const char *)bytes, size };
}

static struct pl_str pack_id(struct pl_arena *arena, uint64_t id)
{
    Etcdserverpb__IdRequest request = ETCDSERVERPB__ID_REQUEST__INIT;

    request.id = id;
    return pack(arena, &request.base);
}

static struct pl_str pack_member_add(struct pl_arena *arena, struct pl_str peer_url,
                                     bool is_learner)
{
    Etcdserverpb__MemberAddRequest request = ETCDSERVERPB__MEMBER_ADD_REQUEST__INIT;
    uint8_t *bytes = pl__arena_alloc(arena, peer_url.len); /* protobuf-c knows no const */

    if (peer_url.len)
        memcpy(bytes, peer_url.ptr, peer_url.len);
    ProtobufCBinaryData url = { .len = peer_url.len, .data = bytes };
    request.n_peerurls = 1;
    request.peerurls = &url;
    request.islearner = is_learner;
    return pack(arena, &request.base);
}

static struct pl_str pack_nospace(struct pl_arena *arena, uint64_t member_id, bool raise)
{
    enum { ACTIVATE = 1, DEACTIVATE = 2, NOSPACE = 1 };
    Etcdserverpb__AlarmRequest request = ETCDSERVERPB__ALARM_REQUEST__INIT;

    request.action = raise ? ACTIVATE : DEACTIVATE;
    request.memberid = member_id;
    request.alarm = NOSPACE;
    return pack(arena, &request.base);
}

struct pl_str pl__etcd_request_encode(struct pl_arena *arena, enum pl_etcd_method method,
                                      const struct pl_etcd_arguments *arguments)
{
    Etcdserverpb__MemberListRequest list = ETCDSERVERPB__MEMBER_LIST_REQUEST__INIT;

    switch (method) {
    case ETCD_METHOD_STATUS:
    case ETCD_METHOD_ALARM_LIST:
        return PL_STR("");
    case ETCD_METHOD_MEMBER_LIST:
        /* Without it etcd 3.5 and later answer from their own copy, quorum or not. */
        list.linearizable = true;
        return pack(arena, &list.base);
    case ETCD_METHOD_MOVE_LEADER:
    case ETCD_METHOD_MEMBER_REMOVE:
    case ETCD_METHOD_MEMBER_PROMOTE:
        return pack_id(arena, arguments->member_id);
    case ETCD_METHOD_MEMBER_ADD:
        return pack_member_add(arena, arguments->peer_url, false);
    case ETCD_METHOD_MEMBER_ADD_LEARNER:
        return pack_member_add(arena, arguments->peer_url, true);
    case ETCD_METHOD_NOSPACE_RAISE:
    case ETCD_METHOD_NOSPACE_CLEAR:
        return pack_nospace(arena, arguments->member_id, method == ETCD_METHOD_NOSPACE_RAISE);
    case ETCD_METHOD_COUNT:
        break;
    }
    assert(method != ETCD_METHOD_COUNT);
    return PL_STR("");
}

/* --- replies ------------------------------------------------------------------------------------ */

/* The arena, up to a limit. protobuf-c takes a refusal well: it gives up. */
struct budget {
    struct pl_arena *arena;
    size_t left;
    bool exceeded;
};

static void *budget_alloc(void *user, size_t size)
{
    struct budget *budget = user;

    if (size > budget->left) {
        budget->exceeded = true;
        return NULL;
    }
    budget->left -= size;
    return pl__arena_alloc(budget->arena, size);
}

static void budget_free(void *user, void *piece)
{
    (void)user;
    (void)piece;
}

static struct pl_str text(ProtobufCBinaryData bytes)
{
    return (struct pl_str){ bytes.data ? (const char *)bytes.data : "", bytes.len };
}

static struct pl_str first_text(const ProtobufCBinaryData *items, size_t count)
{
    return count ? text(items[0]) : PL_STR("");
}

static void take_header(struct pl_etcd_answer *answer, const Etcdserverpb__ResponseHeader *header)
{
    if (!header)
        return;
    answer->cluster_id = header->cluster_id;
    answer->member_id = header->member_id;
    answer->raft_term = header->raft_term;
}

static int member_order(const void *a, const void *b)
{
    uint64_t left = ((const struct pl_etcd_member_info *)a)->id;
    uint64_t right = ((const struct pl_etcd_member_info *)b)->id;

    return (left > right) - (left < right);
}

static int alarm_order(const void *a, const void *b)
{
    const struct pl_etcd_alarm_info *left = a, *right = b;

    if (left->member_id != right->member_id)
        return left->member_id < right->member_id ? -1 : 1;
    return (left->alarm > right->alarm) - (left->alarm < right->alarm);
}

static void take_members(struct pl_arena *arena, struct pl_etcd_answer *answer,
                         Etcdserverpb__Member *const *members, size_t count)
{
    struct pl_etcd_member_info *infos = PL_NEW(arena, struct pl_etcd_member_info, count);

    for (size_t i = 0; i < count; i++)
        infos[i] = (struct pl_etcd_member_info){
            .id = members[i]->id,
            .name = text(members[i]->name),
            .is_learner = members[i]->islearner,
            .peer_url = first_text(members[i]->peerurls, members[i]->n_peerurls),
            .client_url = first_text(members[i]->clienturls, members[i]->n_clienturls),
        };
    qsort(infos, count, sizeof *infos, member_order);
    answer->members = infos;
    answer->member_count = count;
}

static void take_status(struct pl_arena *arena, struct pl_etcd_answer *answer,
                        const Etcdserverpb__StatusResponse *reply)
{
    struct pl_str *errors = PL_NEW(arena, struct pl_str, reply->n_errors);

    for (size_t i = 0; i < reply->n_errors; i++)
        errors[i] = text(reply->errors[i]);
    take_header(answer, reply->header);
    answer->leader = reply->leader;
    answer->raft_term = reply->raftterm;
    answer->raft_index = reply->raftindex;
    answer->db_size = reply->dbsize;
    answer->db_size_in_use = reply->dbsizeinuse;
    answer->version = text(reply->version);
    answer->is_learner = reply->islearner;
    answer->errors = errors;
    answer->error_count = reply->n_errors;
}

static void take_alarms(struct pl_arena *arena, struct pl_etcd_answer *answer,
                        const Etcdserverpb__AlarmResponse *reply)
{
    struct pl_etcd_alarm_info *alarms = PL_NEW(arena, struct pl_etcd_alarm_info, reply->n_alarms);

    for (size_t i = 0; i < reply->n_alarms; i++)
        alarms[i] = (struct pl_etcd_alarm_info){ .member_id = reply->alarms[i]->memberid,
                                                 .alarm = reply->alarms[i]->alarm };
    qsort(alarms, reply->n_alarms, sizeof *alarms, alarm_order);
    take_header(answer, reply->header);
    answer->alarms = alarms;
    answer->alarm_count = reply->n_alarms;
}

static void take_reply(struct pl_arena *arena, enum pl_etcd_method method,
                       struct pl_etcd_answer *answer, const void *message)
{
    const Etcdserverpb__MembersResponse *members = message;
    const Etcdserverpb__MemberAddResponse *added = message;
    const Etcdserverpb__MoveLeaderResponse *moved = message;

    switch (method) {
    case ETCD_METHOD_STATUS:
        take_status(arena, answer, message);
        break;
    case ETCD_METHOD_ALARM_LIST:
    case ETCD_METHOD_NOSPACE_RAISE:
    case ETCD_METHOD_NOSPACE_CLEAR:
        take_alarms(arena, answer, message);
        break;
    case ETCD_METHOD_MOVE_LEADER:
        take_header(answer, moved->header);
        break;
    case ETCD_METHOD_MEMBER_LIST:
    case ETCD_METHOD_MEMBER_REMOVE:
    case ETCD_METHOD_MEMBER_PROMOTE:
        take_header(answer, members->header);
        take_members(arena, answer, members->members, members->n_members);
        break;
    case ETCD_METHOD_MEMBER_ADD:
    case ETCD_METHOD_MEMBER_ADD_LEARNER:
        take_header(answer, added->header);
        take_members(arena, answer, added->members, added->n_members);
        break;
    case ETCD_METHOD_COUNT:
        break;
    }
}

int pl__etcd_reply_decode(struct pl_arena *arena, enum pl_etcd_method method, struct pl_str bytes,
                          struct pl_etcd_answer *answer, struct pl_error **err)
{
    struct budget budget = { .arena = arena,
                             .left = bytes.len * DECODED_PER_BYTE_MAX + DECODED_BYTES_MIN };
    ProtobufCAllocator allocator = { budget_alloc, budget_free, &budget };

    ProtobufCMessage *message = protobuf_c_message_unpack(methods[method].reply, &allocator,
                                                          bytes.len, (const uint8_t *)bytes.ptr);
    if (!message)
        return pl__error(arena, err, budget.exceeded ? PL_LIMIT : PL_INVALID, "%s reply: %s",
                         methods[method].name,
                         budget.exceeded ? "too many parts for its size"
                                         : "not the protobuf message it should be");
    take_reply(arena, method, answer, message);
    return 0;
}
