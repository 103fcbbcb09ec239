/* loop/etcd_internal.h - the parts of a pl_etcd, for etcd.c, etcd_job.c, etcd_link.c and etcd_template.c.
 *
 * A link is one connection to one member, with everything that is stacked on it:
 *
 *     stream (TCP, or TLS to the API server) -> port-forward (WebSocket), unless direct
 *         -> TLS with the member -> gRPC over HTTP/2
 *
 * A job is one request of a caller. It reaches a member first (Status, on the warm link or on new ones, as
 * many as it takes), then makes the calls that it is about. Bytes and replies only mark; all decisions
 * are taken by the pump, from the loop, so nothing here is re-entered. */
#ifndef PL_LOOP_ETCD_INTERNAL_H
#define PL_LOOP_ETCD_INTERNAL_H

#include "loop/etcd.h"
#include "loop/etcd_tls.h"
#include "loop/stream.h"
#include "proto/etcd_messages.h"
#include "proto/grpc.h"
#include "proto/portforward.h"

enum {
    ETCD_ENDPOINTS_MAX = 16, /* of a request: more control plane Nodes than anybody has */
    ETCD_ERROR_BYTES = 400,
    ETCD_CALLS_MAX = 2, /* behind the Status */
    ETCD_PORT = 2379,
};

/* --- links (etcd_link.c) --------------------------------------------------------------------------- */

enum etcd_link_state {
    LINK_CONNECTING,
    LINK_UPGRADING, /* only through the tunnel */
    LINK_TLS,
    LINK_READY, /* takes calls */
    LINK_FAILED,
};

struct etcd_link {
    struct etcd_link *next;
    struct pl_etcd *etcd;
    char *node;
    enum etcd_link_state state;
    enum pl_etcd_failure failure; /* with LINK_FAILED */
    char error[ETCD_ERROR_BYTES];
    uint32_t users; /* jobs that have it */
    bool retired;   /* closed when its last user leaves */
    bool replied;   /* something came as an answer to a call */
    uint64_t used_ms;
    uint64_t hop_started_us;

    struct pl_stream *stream;
    struct pl_portforward *forward; /* NULL: direct, or not upgraded yet */
    uint64_t auth_generation;       /* of the token that the upgrade was asked with */
    struct pl_etcd_tls *tls;
    struct pl_grpc *grpc;
};

/* Begins to connect. One that cannot even begin is LINK_FAILED already. */
struct etcd_link *pl__etcd_link_open(struct pl_etcd *etcd, const struct pl_etcd_endpoint *endpoint);

/* Ends what is open on it (each `done` is called), adds its counts to the etcd's, and frees it. */
void pl__etcd_link_free(struct etcd_link *link);

/* A call; 0 when it cannot take one. */
uint32_t pl__etcd_link_call(struct etcd_link *link, enum pl_etcd_method method,
                            const struct pl_etcd_arguments *arguments, uint32_t timeout_ms,
                            pl_grpc_done_fn *done, void *user);
void pl__etcd_link_cancel(struct etcd_link *link, uint32_t call);

/* Sends what calls and cancels have made; they wait for it, so that what belongs together goes out
 * together. */
void pl__etcd_link_send(struct etcd_link *link);

/* It works, and has as many calls open as it can. */
bool pl__etcd_link_is_full(const struct etcd_link *link);

/* It is ready, and its peer has not said goodbye. */
bool pl__etcd_link_usable(const struct etcd_link *link);

/* What it is waiting for, as the reason why it is given up now. */
void pl__etcd_link_waits(const struct etcd_link *link, char *room, size_t size);

/* The first reply has come, or it was given up: tells the trace. `error` NULL: it came. */
void pl__etcd_link_trace_reply(struct etcd_link *link, const char *error);

/* --- direct endpoints (etcd_template.c) --------------------------------------------------------------- */

struct etcd_target {
    char host[256];
    uint16_t port;
};

/* Where the template leads for this endpoint. NULL, or why there is no such place. */
const char *pl__etcd_template_expand(const char *direct, const struct pl_etcd_endpoint *endpoint,
                                     struct etcd_target *target);

/* --- jobs (etcd_job.c) --------------------------------------------------------------------------------- */

enum etcd_call_state { CALL_NONE, CALL_OPEN, CALL_DONE };

/* One gRPC call of a job. */
struct etcd_call {
    struct etcd_job *job;
    enum pl_etcd_method method;
    enum etcd_call_state state;
    struct etcd_link *link; /* that it went out on */
    uint32_t id;
    uint64_t deadline_ms; /* of all its tries together */
    bool retried;
    bool late;                  /* CALL_DONE because nothing came in time */
    struct pl_grpc_reply reply; /* its strings are in the job's arena */
};

/* One way to one member. */
struct etcd_attempt {
    struct pl_etcd_endpoint endpoint;
    struct etcd_link *link; /* NULL: not begun, or over */
    bool begun, over, warm;
    struct etcd_call status;
    /* With `over`, why. */
    enum pl_etcd_failure failure;
    int grpc_code;
    struct pl_str error;
};

enum etcd_phase {
    JOB_NEW,
    JOB_REACHING,
    JOB_CALLING,
    JOB_FINISHED, /* `done` is still to be called */
};

struct etcd_job {
    struct etcd_job *next;
    struct pl_etcd *etcd;
    uint64_t id;
    struct pl_arena arena;
    enum pl_etcd_call call;
    struct pl_etcd_arguments arguments;
    void (*done)(void *user, const struct pl_etcd_answer *answer);
    void *user;
    bool cancelled;

    enum etcd_phase phase;
    uint64_t dial_deadline_ms, next_begin_ms;
    struct etcd_attempt attempts[ETCD_ENDPOINTS_MAX + 1]; /* the warm link's, then the endpoints' */
    size_t attempt_count;
    struct etcd_attempt *fallback; /* a learner has answered: better than nobody */
    struct etcd_link *link;        /* the one that was reached */
    bool reached_again;            /* it was lost once in the middle */
    struct etcd_call calls[ETCD_CALLS_MAX];
    size_t call_count;
    struct pl_etcd_answer answer;
};

struct etcd_job *pl__etcd_job_new(struct pl_etcd *etcd, const struct pl_etcd_request *request,
                                  uint64_t id);

/* Does what can be done now. Lowers `*wake_ms` to when it wants to be called again at the latest. */
void pl__etcd_job_step(struct etcd_job *job, uint64_t now_ms, uint64_t *wake_ms);

/* Ends it without an answer. */
void pl__etcd_job_fail(struct etcd_job *job, enum pl_etcd_failure failure, struct pl_str error);
void pl__etcd_job_free(struct etcd_job *job);

/* --- all of it (etcd.c) --------------------------------------------------------------------------------- */

struct pl_etcd {
    struct pl_loop *loop;
    struct pl_kube *kube;
    struct pl_etcd_options options;
    char *direct;
    struct pl_etcd_cert *cert; /* NULL: none yet */
    struct etcd_link *links;
    struct etcd_link *warm; /* one of them, or NULL */
    struct etcd_job *jobs;  /* in the order they came */
    uint64_t id_next;
    uv_timer_t wake;
    uv_idle_t soon; /* in the next turn of the loop (a timer of 0 could keep it from polling) */
    uint32_t handle_count;
    bool closing;
    struct pl_etcd_counts counts; /* bytes: of links that are gone */
};

/* Has the loop call the pump soon. Fine from anywhere. */
void pl__etcd_poke(struct pl_etcd *etcd);

#endif
