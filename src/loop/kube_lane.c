/* Lanes: connections, how many requests each carries, and whether the other end is still there.
 *
 * libcurl would put any number of requests on one HTTP/2 connection, where those past the server's
 * limit wait in silence; and it sends no PING of its own while a connection is busy. So requests are
 * spread over lanes, and a lane that has open requests and hears nothing for `silence_ms` asks for
 * /version on the same connection. No answer to that within `probe_timeout_ms` means that the peer is
 * dead: all its requests are cut, and new ones take a new connection.
 *
 * While a lane is not connected, only its first request is given to libcurl; the others are held back.
 * (libcurl has an option for that, but gives it up when it knows other connections to that address.)
 *
 * Lanes of several servers are in one multi. libcurl shares a connection between transfers to one address
 * when their TLS options are equal, so each lane gets one that differs: a folder of CA certificates
 * that does not exist, with the lane's number in its name. Nothing is ever found there; certificates
 * are verified with the CA that was given (or the system's bundle) as without it. Plain http has no
 * TLS options, but there every request has a connection of its own while it is open anyway. */
#include "loop/kube_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static bool lane_empty(const struct kube_lane *lane)
{
    return lane->open.count == 0 && lane->held.count == 0 && !lane->probe;
}

void pl__kube_lane_retire(struct kube_lane *lane)
{
    if (lane->retired)
        return;
    lane->retired = true;
    for (struct kube_request *r = lane->open.first; r; r = r->next)
        curl_easy_setopt(r->easy, CURLOPT_FORBID_REUSE, 1L);
    if (lane->probe)
        curl_easy_setopt(lane->probe->easy, CURLOPT_FORBID_REUSE, 1L);
    pl__kube_poke(lane->kube); /* it may be empty already */
}

/* --- transfers that ended ------------------------------------------------------------------------- */

/* A connection may have been told to go away (GOAWAY, idle close) in the moment we used it. Asking
 * again is right when nothing of an answer came and the question changes nothing. */
static bool worth_retrying(const struct kube_request *r)
{
    long connect_count = 1;

    curl_easy_getinfo(r->easy, CURLINFO_NUM_CONNECTS, &connect_count);
    return r->failure == KUBE_CUT && !r->headers_done && !r->retried && !r->probe &&
           !r->cancelled && connect_count == 0 && strcmp(r->method, "GET") == 0;
}

static void result_set(struct kube_request *r, CURLcode result)
{
    struct pl_kube *kube = r->kube;
    char text[KUBE_ERROR_BYTES];

    if (r->too_large && r->header_bytes > r->answer_size)
        pl__kube_request_fail(r, KUBE_TOO_LARGE, "the answer of %s has too many headers",
                              kube->peer.host);
    else if (r->too_large)
        pl__kube_request_fail(r, KUBE_TOO_LARGE, "the answer of %s is larger than %zu bytes",
                              kube->peer.host, r->answer_max);
    else if (result != CURLE_OK) {
        enum pl_kube_failure failure =
            pl__kube_failure(r->easy, result, r->curl_text, &kube->peer, text, sizeof text);
        pl__kube_request_fail(r, failure, "%s", text);
    } else if (!r->headers_done) {
        /* libcurl is content with half a header when the connection is closed behind it. */
        pl__kube_request_fail(r, KUBE_CUT, "connection to %s was cut", kube->peer.host);
    }
}

/* There will be no connection: nobody needs to find that out again. */
static void held_fail(struct kube_lane *lane, const struct kube_request *r)
{
    bool hopeless =
        r->failure == KUBE_UNREACHABLE || r->failure == KUBE_TLS || r->failure == KUBE_TIMEOUT;

    while (hopeless && !lane->ready && lane->held.first) {
        struct kube_request *held = lane->held.first;
        pl__kube_request_fail(held, r->failure, "%s", r->error);
        pl__kube_request_finish(held);
    }
}

void pl__kube_lane_ended(void *request, CURLcode result)
{
    struct kube_request *r = request;
    struct kube_lane *lane = r->lane;

    r->lane = NULL; /* the multi has already let it go */
    result_set(r, result);
    pl__kube_poke(r->kube);
    if (r->failure == KUBE_CUT)
        pl__kube_lane_retire(lane);
    if (r->failure == KUBE_TLS)
        pl__kube_auth_recheck(&r->kube->auth);
    held_fail(lane, r);
    if (r->probe) {
        r->list = NULL;
        pl__kube_lane_probed(lane, r);
        pl__kube_request_free(r);
    } else if (worth_retrying(r)) {
        pl__kube_list_remove(r);
        pl__kube_request_rewind(r);
        r->failure = KUBE_OK;
        r->retried = true;
        pl__kube_list_add_first(&r->kube->queue, r);
    } else {
        pl__kube_request_finish(r);
    }
}

/* --- the watchdog ---------------------------------------------------------------------------------- */

static void watchdog_fired(uv_timer_t *timer);

static void watchdog_start(struct kube_lane *lane, uint64_t after_ms)
{
    uv_timer_start(&lane->watchdog, watchdog_fired, after_ms ? after_ms : 1, 0);
}

static void probe_start(struct kube_lane *lane)
{
    struct pl_kube *kube = lane->kube;
    struct pl_kube_request wanted = {
        .method = "GET",
        .path = "/version",
        .timeout_ms = kube->options.probe_timeout_ms,
    };

    if (lane->probe || kube->closing)
        return;
    struct kube_request *probe = pl__kube_request_new(kube, &wanted);
    probe->probe = true;
    lane->probe = probe;
    pl__kube_lane_start(lane, probe);
    pl__kube_poke(kube); /* there is a new deadline */
}

static void watchdog_fired(uv_timer_t *timer)
{
    struct kube_lane *lane = timer->data;
    struct pl_kube *kube = lane->kube;
    uint64_t quiet_ms = pl__loop_mono_ms(kube->loop) - lane->quiet_since_ms;
    uint32_t silence_ms = kube->options.silence_ms;

    if (lane_empty(lane)) {
        /* The first lane keeps its connection for later; others were there for a peak. */
        if (lane != kube->lanes)
            pl__kube_lane_retire(lane);
        return;
    }
    if (quiet_ms < silence_ms) {
        watchdog_start(lane, silence_ms - quiet_ms);
        return;
    }
    if (lane->ready)
        probe_start(lane);
    watchdog_start(lane, silence_ms);
}

void pl__kube_lane_heard(struct kube_lane *lane)
{
    lane->received_ms = lane->quiet_since_ms = pl__loop_mono_ms(lane->kube->loop);
}

static void lane_cut(struct kube_lane *lane, const char *why)
{
    while (lane->open.first) {
        struct kube_request *r = lane->open.first;
        pl__kube_request_fail(r, KUBE_CUT, "%s: %s", lane->kube->peer.host, why);
        pl__kube_request_finish(r);
    }
    pl__kube_lane_retire(lane);
}

void pl__kube_lane_probed(struct kube_lane *lane, const struct kube_request *probe)
{
    assert(lane->probe == probe);
    lane->probe = NULL;
    if (probe->failure == KUBE_CANCELLED || probe->headers_done)
        return;
    lane_cut(lane, probe->failure == KUBE_TIMEOUT ? "the connection is dead: no sign of life"
                                                  : "the connection was lost");
}

void pl__kube_lane_suspect(struct kube_lane *lane, const struct kube_request *r)
{
    if (lane->received_ms > r->started_ms)
        return; /* others get answers: it is this request that is slow */
    if (!lane->ready || lane->open.count <= 1)
        pl__kube_lane_retire(lane);
    else
        probe_start(lane);
}

/* --- opening and closing ---------------------------------------------------------------------------- */

static struct kube_lane *lane_new(struct pl_kube *kube)
{
    struct kube_lane *lane = calloc(1, sizeof *lane);
    struct kube_lane **end = &kube->lanes;

    if (!lane)
        abort();
    lane->kube = kube;
    snprintf(lane->key, sizeof lane->key, "/dev/null/%" PRIu64, pl__loop_number(kube->loop));
    lane->tls = pl__kube_tls_ref(kube->auth.tls);
    uv_timer_init(pl__loop_uv(kube->loop), &lane->watchdog);
    uv_unref((uv_handle_t *)&lane->watchdog);
    lane->watchdog.data = lane;
    while (*end)
        end = &(*end)->next;
    *end = lane;
    return lane;
}

struct kube_lane *pl__kube_lane_pick(struct pl_kube *kube)
{
    struct kube_lane *found = NULL;

    for (struct kube_lane *lane = kube->lanes; lane; lane = lane->next) {
        if (lane->tls != kube->auth.tls)
            pl__kube_lane_retire(lane); /* renewed certificates need a new connection */
        uint32_t count = lane->open.count + lane->held.count;
        if (!found && !lane->retired && count < kube->options.streams_max)
            found = lane;
    }
    return found ? found : lane_new(kube);
}

/* Gives it to libcurl. */
static void launch(struct kube_lane *lane, struct kube_request *r)
{
    r->lane = lane;
    if (!r->probe)
        pl__kube_list_add(&lane->open, r);
    pl__kube_request_prepare(r, lane);
    pl__multi_add(lane->kube->multi, r->easy);
}

void pl__kube_lane_start(struct kube_lane *lane, struct kube_request *r)
{
    struct pl_kube *kube = lane->kube;
    uint64_t now_ms = pl__loop_mono_ms(kube->loop);

    if (lane->open.count == 0 && lane->held.count == 0)
        lane->quiet_since_ms = now_ms;
    r->started_ms = now_ms;
    if (r->deadline_ms == 0)
        r->deadline_ms = now_ms + r->timeout_ms;
    if (r->deadline_ms < kube->deadline_next_ms)
        kube->deadline_next_ms = r->deadline_ms;
    if (lane->open.count == 0 && !r->probe)
        lane->ready = false; /* a connection that nobody used may be gone */
    if (r->probe || lane->ready || lane->open.count == 0)
        launch(lane, r);
    else
        pl__kube_list_add(&lane->held, r);
    if (!uv_is_active((uv_handle_t *)&lane->watchdog))
        watchdog_start(lane, kube->options.silence_ms);
}

static void lane_feed(struct kube_lane *lane)
{
    while (lane->held.first && lane->retired) {
        struct kube_request *r = lane->held.last;
        pl__kube_list_remove(r);
        pl__kube_list_add_first(&lane->kube->queue, r);
    }
    /* The one that they waited for may have gone without saying how it is. */
    while (lane->held.first && (lane->ready || lane->open.count == 0)) {
        struct kube_request *r = lane->held.first;
        pl__kube_list_remove(r);
        launch(lane, r);
    }
}

void pl__kube_lanes_feed(struct pl_kube *kube)
{
    for (struct kube_lane *lane = kube->lanes; lane; lane = lane->next)
        lane_feed(lane);
}

static void lane_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void lane_free(struct kube_lane *lane)
{
    pl__kube_tls_unref(lane->tls);
    uv_close((uv_handle_t *)&lane->watchdog, lane_closed);
}

void pl__kube_lanes_sweep(struct pl_kube *kube, bool all)
{
    struct kube_lane **at = &kube->lanes;

    while (*at) {
        struct kube_lane *lane = *at;
        if (lane_empty(lane) && (lane->retired || all)) {
            *at = lane->next;
            lane_free(lane);
        } else {
            at = &lane->next;
        }
    }
}
