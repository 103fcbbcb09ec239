/* proto/etcd.h - what can be asked of an etcd cluster, and what comes back: values only, no bytes on
 * the wire (proto/etcd_messages.h), no connection (loop/etcd.h).
 *
 * Ids use all 64 bits. Everything that an answer points at lives as long as the answer. */
#ifndef PL_PROTO_ETCD_H
#define PL_PROTO_ETCD_H

#include "base/arena.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

/* Whom to ask: the member on a Node. */
struct pl_etcd_endpoint {
    struct pl_str node;    /* its Pod is etcd-<node>, its certificate carries <node> */
    struct pl_str address; /* the Node's InternalIP, for direct endpoints; empty: not known */
};

enum pl_etcd_call {
    ETCD_OBSERVE,     /* Status, MemberList and Alarm, of the first endpoint whose Status answers */
    ETCD_MOVE_LEADER, /* `member_id` leads from now on; only the leader itself does it */
    ETCD_MEMBER_REMOVE, /* `member_id` */
    ETCD_MEMBER_ADD,    /* `peer_url`, as a voter; tests and the playground */
    ETCD_MEMBER_ADD_LEARNER,
    ETCD_MEMBER_PROMOTE,
    ETCD_NOSPACE_RAISE, /* the alarm of `member_id`; the playground */
    ETCD_NOSPACE_CLEAR,
};

/* Why there is no answer. What is not idempotent is never sent twice: after anything but ETCD_OK and
 * ETCD_REFUSED such a call may or may not have happened, and the members have to be read again. */
enum pl_etcd_failure {
    ETCD_OK = 0,
    ETCD_UNREACHABLE, /* no endpoint could be connected to */
    ETCD_UNTRUSTED,   /* TLS: their certificate or ours; new credentials may help */
    ETCD_REFUSED,     /* etcd answered with an error: `grpc_code` */
    ETCD_TIMEOUT,     /* connected, and no answer in time */
    ETCD_CUT,         /* the connection broke, or what came was not gRPC */
    ETCD_CANCELLED,
};

struct pl_etcd_member_info {
    uint64_t id;
    struct pl_str name; /* empty until it has started for the first time */
    bool is_learner;
    struct pl_str peer_url, client_url; /* the first of each; empty: none */
};

struct pl_etcd_alarm_info {
    uint64_t member_id;
    uint32_t alarm; /* 1 NOSPACE, 2 CORRUPT; 0 is none; others are newer than we are */
};

/* "NOSPACE", "CORRUPT", "NONE", or the number, which is then in the arena. */
struct pl_str pl__etcd_alarm_name(struct pl_arena *arena, uint32_t alarm);

struct pl_etcd_answer {
    enum pl_etcd_failure failure;
    int grpc_code; /* with ETCD_REFUSED */
    struct pl_str
        error; /* for people, the same text for the same fault: no times, no addresses of ours */
    struct pl_str node; /* who answered; empty: nobody */

    /* Status of that member (ETCD_OBSERVE). */
    uint64_t cluster_id, member_id, leader; /* leader 0: none known */
    uint64_t raft_term, raft_index;
    int64_t db_size, db_size_in_use;
    struct pl_str version;
    bool is_learner;
    const struct pl_str *errors;
    size_t error_count;

    /* The other two can fail alone; then their text is set and the list is empty. */
    struct pl_str members_error, alarms_error;
    const struct pl_etcd_member_info
        *members; /* sorted by id; of the calls that change them: what is left */
    size_t member_count;
    const struct pl_etcd_alarm_info *alarms;
    size_t alarm_count;
};

#endif
