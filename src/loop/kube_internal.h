/* loop/kube_internal.h - the parts of a pl_kube, for kube.c, kube_lane.c and kube_request.c.
 *
 * A request is in exactly one list: the kube's `queue` (waiting for the rate limit or credentials),
 * its lane's `held` (waiting for the connection) or `open` (libcurl has it), or the kube's `finished` (its `done` is still to be called).
 * All moves happen outside of libcurl's callbacks, in kube_pump() or on the way to it. */
#ifndef PL_LOOP_KUBE_INTERNAL_H
#define PL_LOOP_KUBE_INTERNAL_H

#include <curl/curl.h>

#include "loop/kube.h"
#include "loop/kube_auth.h"
#include "loop/kube_error.h"
#include "loop/multi.h"
#include "loop/ratelimit.h"

enum {
    KUBE_ERROR_BYTES = 512,
    KUBE_COUNT_ROWS_FIRST = 6, /* few servers ever need more; doubled until it is the most */
    KUBE_COUNT_ROWS_MAX = 48,
};

/* A list of requests, both ends known. */
struct kube_list {
    struct kube_request *first, *last;
    uint32_t count;
};

/* A lane is a connection of its own, given no more than `streams_max` requests. (libcurl by itself may
 * open more connections for it when the server speaks only HTTP/1.1 or allows fewer streams.) A
 * retired lane gets no new requests, and its connection is closed with its last. */
struct kube_lane {
    struct kube_lane *next;
    struct pl_kube *kube;
    char key[32]; /* what keeps libcurl from sharing its connection with other lanes */
    struct pl_kube_tls *tls;
    struct kube_list open;      /* without the probe */
    struct kube_list held;      /* waiting for the first one of `open` to be connected */
    struct kube_request *probe; /* our own question to a silent peer */
    uv_timer_t watchdog;
    uint64_t received_ms;    /* the last byte; 0: none yet */
    uint64_t quiet_since_ms; /* that, or when the first request after a pause was sent */
    bool ready;              /* connected, as far as the requests in `open` go */
    bool retired;
};

struct kube_request {
    struct kube_request *next, *prev;
    struct kube_list *list;
    struct pl_kube *kube;
    struct kube_lane *lane; /* while libcurl has it */
    uint64_t id;

    /* What was asked for. */
    char *method, *path, *content_type, *accept;
    char *body;
    size_t body_size, answer_max;
    uint32_t timeout_ms;
    bool stream, probe;
    void (*chunk)(void *user, const char *bytes, size_t size);
    void (*done)(void *user, const struct pl_kube_answer *answer);
    void *user;

    /* On the way. */
    CURL *easy;
    struct pl_transfer transfer;
    struct curl_slist *headers;
    char curl_text[CURL_ERROR_SIZE];
    uint64_t started_ms, deadline_ms; /* 0: none */
    uint64_t auth_generation;
    bool admitted;  /* the rate limit let it go */
    bool retried;   /* once is enough */
    bool cancelled; /* marked from wherever the caller was; kube_pump() sees to it */

    /* The answer. */
    int status, retry_after_s;
    bool headers_done, too_large, counted;
    size_t header_bytes;
    char *answer;
    size_t answer_size, answer_capacity;
    enum pl_kube_failure failure;
    char *error; /* NULL: none */
};

struct pl_kube {
    struct pl_loop *loop;
    struct pl_multi *multi;
    struct pl_arena arena; /* wiped at the end: everything that is copied from the configuration */
    struct pl_kube_config config;
    struct pl_kube_options options;
    struct pl_kube_auth auth;
    struct pl_kube_peer peer;
    bool https;
    const char *base_url;          /* what requests' paths are put behind */
    const char *proxy;             /* NULL: the environment's; "": none */
    struct curl_slist *connect_to; /* where to really connect to when tls-server-name is set */
    struct curl_slist *headers;    /* that all requests have */
    struct pl_ratelimit ratelimit;
    uv_timer_t wake; /* the next deadline */
    uv_idle_t soon;  /* in the next turn of the loop (a timer of 0 could keep it from polling) */
    uint32_t handle_count; /* not closed yet */
    uint64_t id_next;
    uint64_t deadline_next_ms; /* no open request's deadline is before it */
    struct kube_list queue, finished;
    struct kube_lane *lanes;
    bool pumping, closing, cancels; /* cancels: some request is marked */
    struct pl_kube_count *counts;
    size_t count_rows, count_capacity;
};

/* --- kube.c ------------------------------------------------------------------------------------ */

void pl__kube_list_add(struct kube_list *list, struct kube_request *request);
void pl__kube_list_add_first(struct kube_list *list, struct kube_request *request);
void pl__kube_list_remove(struct kube_request *request);

/* Has the loop call kube_pump() soon. Fine from anywhere, libcurl's callbacks included. */
void pl__kube_poke(struct pl_kube *kube);
void pl__kube_pump(struct pl_kube *kube);

/* --- kube_request.c ------------------------------------------------------------------------------ */

struct kube_request *pl__kube_request_new(struct pl_kube *kube,
                                          const struct pl_kube_request *wanted);
void pl__kube_request_free(struct kube_request *request);

/* Tells a libcurl handle how this server is connected to: TLS, proxy, socket. `tls` is not copied. Also for
 * stream.c. */
void pl__kube_easy_connect(struct pl_kube *kube, CURL *easy, const struct pl_kube_tls *tls);

/* Makes the libcurl handle, for this lane. */
void pl__kube_request_prepare(struct kube_request *request, struct kube_lane *lane);

/* Takes it out of libcurl (if it is there) and forgets what was received, to be sent again. */
void pl__kube_request_rewind(struct kube_request *request);

/* Sets its result; the text is ignored without a failure. */
void pl__kube_request_fail(struct kube_request *request, enum pl_kube_failure failure,
                           const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Takes it out of libcurl and puts it in `finished`. A probe ends here. */
void pl__kube_request_finish(struct kube_request *request);

/* --- kube_lane.c --------------------------------------------------------------------------------- */

/* A lane with room that uses the current certificates: an open one or a new one. */
struct kube_lane *pl__kube_lane_pick(struct pl_kube *kube);

/* Hands a request that is in no list to libcurl, or holds it until the lane is connected. */
void pl__kube_lane_start(struct kube_lane *lane, struct kube_request *request);

/* A request timed out: is the peer still there? */
void pl__kube_lane_suspect(struct kube_lane *lane, const struct kube_request *request);

/* Starts what was held back, where the connection is there now. */
void pl__kube_lanes_feed(struct pl_kube *kube);

/* No new requests; its connection is closed with the last one. */
void pl__kube_lane_retire(struct kube_lane *lane);

/* libcurl is done with a request. */
void pl__kube_lane_ended(void *request, CURLcode result);

/* The answer to the probe, or that there was none. */
void pl__kube_lane_probed(struct kube_lane *lane, const struct kube_request *probe);

/* Bytes came. */
void pl__kube_lane_heard(struct kube_lane *lane);

/* Frees lanes that are retired and empty; with `all`, every empty one. */
void pl__kube_lanes_sweep(struct pl_kube *kube, bool all);

#endif
