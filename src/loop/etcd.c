/* The etcd of one workload cluster: its jobs, its links, and the pump that moves both. */
#include "loop/etcd_internal.h"

#include <assert.h>
#include <stdlib.h>

enum {
    DIAL_TIMEOUT_MS_DEFAULT = 10 * 1000,
    CALL_TIMEOUT_MS_DEFAULT = 15 * 1000,
    HEAD_START_MS_DEFAULT = 1000,
    IDLE_MS_DEFAULT = 2 * 60 * 1000,
};

/* --- the pump --------------------------------------------------------------------------------------- */

static void pump(struct pl_etcd *etcd);

static void wake_fired(uv_timer_t *timer)
{
    pump(timer->data);
}

static void soon_fired(uv_idle_t *idle)
{
    uv_idle_stop(idle);
    pump(idle->data);
}

void pl__etcd_poke(struct pl_etcd *etcd)
{
    if (!uv_is_closing((uv_handle_t *)&etcd->soon))
        uv_idle_start(&etcd->soon, soon_fired);
}

static void jobs_step(struct pl_etcd *etcd, uint64_t now_ms, uint64_t *wake_ms)
{
    for (struct etcd_job *job = etcd->jobs; job; job = job->next) {
        if (job->phase == JOB_FINISHED)
            continue;
        if (job->cancelled || etcd->closing)
            pl__etcd_job_fail(job, ETCD_CANCELLED, PL_STR("cancelled"));
        else
            pl__etcd_job_step(job, now_ms, wake_ms);
    }
}

/* Sends what the jobs have made, and frees what nobody needs any more. */
static void links_tend(struct pl_etcd *etcd, uint64_t now_ms, uint64_t *wake_ms)
{
    for (struct etcd_link *link = etcd->links, *next; link; link = next) {
        next = link->next;
        pl__etcd_link_send(link);
        if (link->users > 0)
            continue;
        uint64_t idle_at_ms = link->used_ms + etcd->options.idle_ms;
        if (link != etcd->warm || etcd->closing || !pl__etcd_link_usable(link) ||
            now_ms >= idle_at_ms)
            pl__etcd_link_free(link);
        else if (idle_at_ms < *wake_ms)
            *wake_ms = idle_at_ms;
    }
}

static void count(struct pl_etcd *etcd, const struct etcd_job *job)
{
    if (job->answer.failure == ETCD_CANCELLED)
        return;
    etcd->counts.observations += job->call == ETCD_OBSERVE;
    etcd->counts.failures += job->answer.failure != ETCD_OK;
}

/* Tells callers, who may send, cancel and close from there. */
static void jobs_deliver(struct pl_etcd *etcd)
{
    struct etcd_job **at = &etcd->jobs;

    while (*at) {
        struct etcd_job *job = *at;
        if (job->phase != JOB_FINISHED) {
            at = &job->next;
            continue;
        }
        *at = job->next;
        count(etcd, job);
        job->done(job->user, &job->answer);
        pl__etcd_job_free(job);
    }
}

static void handle_closed(uv_handle_t *handle)
{
    struct pl_etcd *etcd = handle->data;

    if (--etcd->handle_count > 0)
        return;
    pl__etcd_cert_free(etcd->cert);
    pl__loop_drop(etcd->loop);
    free(etcd->direct);
    free(etcd);
}

static void handles_close(struct pl_etcd *etcd)
{
    assert(!etcd->links);
    uv_close((uv_handle_t *)&etcd->wake, handle_closed);
    uv_close((uv_handle_t *)&etcd->soon, handle_closed);
}

static void pump(struct pl_etcd *etcd)
{
    uint64_t now_ms = pl__loop_mono_ms(etcd->loop), wake_ms = UINT64_MAX;

    jobs_step(etcd, now_ms, &wake_ms);
    links_tend(etcd, now_ms, &wake_ms);
    jobs_deliver(etcd);
    if (etcd->closing && !etcd->jobs && !etcd->links) {
        handles_close(etcd);
        return;
    }
    if (etcd->closing)
        pl__etcd_poke(etcd); /* told to close by a `done` just now */
    if (wake_ms != UINT64_MAX)
        uv_timer_start(&etcd->wake, wake_fired, wake_ms > now_ms ? wake_ms - now_ms : 1, 0);
    else
        uv_timer_stop(&etcd->wake);
}

/* --- for callers ------------------------------------------------------------------------------------ */

static void options_set(struct pl_etcd *etcd, const struct pl_etcd_options *options)
{
    struct pl_etcd_options *o = &etcd->options;

    if (options)
        *o = *options;
    if (!o->dial_timeout_ms)
        o->dial_timeout_ms = DIAL_TIMEOUT_MS_DEFAULT;
    if (!o->call_timeout_ms)
        o->call_timeout_ms = CALL_TIMEOUT_MS_DEFAULT;
    if (!o->head_start_ms)
        o->head_start_ms = HEAD_START_MS_DEFAULT;
    if (!o->idle_ms)
        o->idle_ms = IDLE_MS_DEFAULT;
    if (o->direct && !(etcd->direct = strdup(o->direct)))
        abort();
    o->direct = etcd->direct;
}

struct pl_etcd *pl__etcd_open(struct pl_loop *loop, struct pl_kube *kube,
                              const struct pl_etcd_options *options)
{
    struct pl_etcd *etcd = calloc(1, sizeof *etcd);

    if (!etcd)
        abort();
    etcd->loop = loop;
    etcd->kube = kube;
    etcd->id_next = 1;
    options_set(etcd, options);
    assert(etcd->kube || etcd->direct);
    uv_timer_init(pl__loop_uv(loop), &etcd->wake);
    uv_idle_init(pl__loop_uv(loop), &etcd->soon);
    etcd->wake.data = etcd->soon.data = etcd;
    etcd->handle_count = 2;
    pl__loop_hold(loop);
    return etcd;
}

void pl__etcd_close(struct pl_etcd *etcd)
{
    if (!etcd || etcd->closing)
        return;
    etcd->closing = true;
    pl__etcd_poke(etcd);
}

int pl__etcd_credentials(struct pl_etcd *etcd, struct pl_str ca_pem, struct pl_str key_pem,
                         int64_t now_ms, struct pl_arena *arena, struct pl_error **err)
{
    struct pl_etcd_cert *cert = NULL;

    if (etcd->cert && pl__etcd_cert_is_from(etcd->cert, ca_pem, key_pem) &&
        now_ms < pl__etcd_cert_renew_at_ms(etcd->cert))
        return 0;
    if (pl__etcd_cert_mint(ca_pem, key_pem, now_ms, arena, &cert, err) < 0)
        return -1;
    pl__etcd_cert_free(etcd->cert);
    etcd->cert = cert;
    for (struct etcd_link *link = etcd->links; link; link = link->next)
        link->retired = true;
    etcd->warm = NULL;
    pl__etcd_poke(etcd);
    return 0;
}

uint64_t pl__etcd_send(struct pl_etcd *etcd, const struct pl_etcd_request *request)
{
    struct etcd_job *job = pl__etcd_job_new(etcd, request, etcd->id_next++);
    struct etcd_job **end = &etcd->jobs;

    while (*end)
        end = &(*end)->next;
    *end = job;
    pl__etcd_poke(etcd);
    return job->id;
}

void pl__etcd_cancel(struct pl_etcd *etcd, uint64_t id)
{
    for (struct etcd_job *job = etcd->jobs; job; job = job->next)
        if (job->id == id)
            job->cancelled = true;
    pl__etcd_poke(etcd);
}

struct pl_etcd_counts pl__etcd_counts(const struct pl_etcd *etcd)
{
    struct pl_etcd_counts counts = etcd->counts;

    for (const struct etcd_link *link = etcd->links; link; link = link->next) {
        if (!link->stream)
            continue;
        struct pl_stream_counts now = pl__stream_counts(link->stream);
        counts.bytes_in += now.bytes_in;
        counts.bytes_out += now.bytes_out;
    }
    return counts;
}
