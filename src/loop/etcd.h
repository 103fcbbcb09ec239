/* loop/etcd.h - the etcd of one workload cluster, over its API server's port-forward or directly.
 *
 * Connections are made when needed and kept warm, at most one per cluster in the long run, closed after
 * `idle_ms`. Several endpoints are tried with a head start each, so that one that hangs costs a second,
 * not the dial timeout; the first whose Status answers wins, a learner only when nobody else does (it
 * refuses the rest). The warm connection is asked first when it leads to one of the endpoints. Before
 * something is changed Status is asked, too, so that it is not sent to the dead. Everything has a
 * deadline: dialling (`dial_timeout_ms`, for all endpoints of a call together: tunnel, TLS, HTTP/2 and
 * Status) and each call (`call_timeout_ms`). The answer to every request is exactly one call of its
 * `done`, never from within pl__etcd_send(). Nothing that is not idempotent is sent twice. */
#ifndef PL_LOOP_ETCD_H
#define PL_LOOP_ETCD_H

#include "loop/kube.h"
#include "proto/etcd.h"

struct pl_etcd;

/* One leg of the way to a member. */
enum pl_etcd_hop_kind {
    ETCD_HOP_CONNECT, /* TCP and TLS to the workload's API server, or TCP to the member itself */
    ETCD_HOP_UPGRADE, /* the API server took the port-forward */
    ETCD_HOP_TLS,     /* TLS with etcd, through the kubelet */
    ETCD_HOP_GRPC,    /* the first reply */
};
struct pl_etcd_hop {
    struct pl_str node;
    enum pl_etcd_hop_kind kind;
    uint64_t took_us;
    bool ok;
    struct pl_str error;
};

struct pl_etcd_options {
    uint32_t dial_timeout_ms; /* 0: 10 s */
    uint32_t call_timeout_ms; /* 0: 15 s */
    uint32_t head_start_ms;   /* before the next endpoint is tried as well; 0: 1 s */
    uint32_t idle_ms;         /* 0: 2 minutes */
    const char *
        direct; /* template of direct endpoints, "https://{address}:2379" ({node}, {address}); NULL:
                           through the tunnel */
    /* What happened on the way to an endpoint, for `plimsoll etcd --trace`; NULL: not of interest. */
    void (*trace)(void *user, const struct pl_etcd_hop *hop);
    void *trace_user;
};

/* Whether the template can work: known placeholders, https, host and port. 0, or -1. */
int pl__etcd_template_check(struct pl_arena *arena, const char *direct, struct pl_error **err);

/* `kube` is the workload's API server, for the tunnel; it must outlive this. NULL with `direct` only. */
struct pl_etcd *pl__etcd_open(struct pl_loop *loop, struct pl_kube *kube,
                              const struct pl_etcd_options *options);

/* Ends everything; each `done` still comes (ETCD_CANCELLED), from the loop. */
void pl__etcd_close(struct pl_etcd *etcd);

/* The CA that Secret <cluster>-etcd holds, PEM: `tls.crt` (one or more certificates) and `tls.key`. Mints our
 * client certificate; the CA's key is not kept. Connections made with other ones are let go. 0, or -1 when they cannot
 * be used. Without credentials every call ends with ETCD_UNTRUSTED. */
int pl__etcd_credentials(struct pl_etcd *etcd, struct pl_str ca_pem, struct pl_str key_pem,
                         int64_t now_ms, struct pl_arena *arena, struct pl_error **err);

struct pl_etcd_request {
    enum pl_etcd_call call;
    const struct pl_etcd_endpoint
        *endpoints; /* in the order to try, at most 16; copied. MOVE_LEADER: the leader's */
    size_t endpoint_count;
    uint64_t member_id;
    struct pl_str peer_url;
    void (*done)(void *user, const struct pl_etcd_answer *answer); /* answer lives for the call */
    void *user;
};

/* The id is never 0. */
uint64_t pl__etcd_send(struct pl_etcd *etcd, const struct pl_etcd_request *request);
void pl__etcd_cancel(struct pl_etcd *etcd, uint64_t id); /* its `done` comes with ETCD_CANCELLED */

/* For metrics. */
struct pl_etcd_counts {
    uint64_t observations, failures, dials, bytes_in, bytes_out;
};
struct pl_etcd_counts pl__etcd_counts(const struct pl_etcd *etcd);

#endif
