/* One request of a caller: reach a member, make the calls, put the answer together.
 *
 * Reaching. The warm link first, if it leads to one of the endpoints; then the endpoints in their order. When one
 * fails, or has not answered within the head start, the next is tried as well. The first whose Status answers wins,
 * and the others are let go. A learner answers Status and refuses the rest, so it wins only when nobody else
 * does. (An observation on the warm link sends everything at once: one round trip.)
 *
 * Calling. Each call has its deadline. Member and alarm lists are asked for once more when etcd says that it
 * timed out or is changing its leader: an Alarm that was sent to a dying leader is lost and nobody tells.
 * What changes something is sent once. */
#include "loop/etcd_internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    ARENA_BYTES = 4096,
    GRACE_MS = 250,     /* etcd knows our deadline: its own word that it is over may still arrive */
    RETRY_MS_MIN = 250, /* with less time left a second try cannot succeed */
};

static const struct {
    enum pl_etcd_method methods[ETCD_CALLS_MAX];
    size_t count;
} job_calls[] = {
    [ETCD_OBSERVE] = { { ETCD_METHOD_MEMBER_LIST, ETCD_METHOD_ALARM_LIST }, 2 },
    [ETCD_MOVE_LEADER] = { { ETCD_METHOD_MOVE_LEADER }, 1 },
    [ETCD_MEMBER_REMOVE] = { { ETCD_METHOD_MEMBER_REMOVE }, 1 },
    [ETCD_MEMBER_ADD] = { { ETCD_METHOD_MEMBER_ADD }, 1 },
    [ETCD_MEMBER_ADD_LEARNER] = { { ETCD_METHOD_MEMBER_ADD_LEARNER }, 1 },
    [ETCD_MEMBER_PROMOTE] = { { ETCD_METHOD_MEMBER_PROMOTE }, 1 },
    [ETCD_NOSPACE_RAISE] = { { ETCD_METHOD_NOSPACE_RAISE }, 1 },
    [ETCD_NOSPACE_CLEAR] = { { ETCD_METHOD_NOSPACE_CLEAR }, 1 },
};

static void wake_lower(uint64_t *wake_ms, uint64_t at_ms)
{
    if (at_ms < *wake_ms)
        *wake_ms = at_ms;
}

/* --- links, while a job has them ---------------------------------------------------------------------- */

static void link_take(struct etcd_link *link)
{
    link->users++;
}

static void link_leave(struct etcd_link *link)
{
    assert(link->users > 0);
    link->users--;
    link->used_ms = pl__loop_mono_ms(link->etcd->loop);
    pl__etcd_poke(link->etcd);
}

static void link_retire(struct etcd_link *link)
{
    link->retired = true;
    if (link->etcd->warm == link)
        link->etcd->warm = NULL;
    pl__etcd_poke(link->etcd);
}

/* From now on everybody uses this one. */
static void link_prefer(struct etcd_link *link)
{
    struct pl_etcd *etcd = link->etcd;

    if (etcd->warm == link)
        return;
    if (etcd->warm)
        link_retire(etcd->warm);
    if (!link->retired) /* there may be new credentials since it was dialled */
        etcd->warm = link;
}

/* --- calls ------------------------------------------------------------------------------------------- */

static void call_done(void *user, const struct pl_grpc_reply *reply)
{
    struct etcd_call *call = user;
    struct pl_arena *arena = &call->job->arena;

    call->state = CALL_DONE;
    call->reply = *reply;
    call->reply.message = pl__str_copy(arena, reply->message);
    call->reply.body = pl__str_copy(arena, reply->body);
    pl__etcd_poke(call->job->etcd);
}

/* With too many open on the link it stays CALL_NONE: when one of them ends the job is stepped again. */
static void call_open(struct etcd_call *call, struct etcd_link *link, uint64_t now_ms,
                      uint64_t deadline_ms)
{
    uint32_t left_ms = deadline_ms > now_ms ? (uint32_t)(deadline_ms - now_ms) : 1;

    call->state = CALL_NONE;
    if (pl__etcd_link_is_full(link))
        return;
    call->link = link;
    call->deadline_ms = deadline_ms;
    call->late = false;
    call->state = CALL_OPEN;
    call->id =
        pl__etcd_link_call(link, call->method, &call->job->arguments, left_ms, call_done, call);
    if (call->id != 0)
        return;
    call->state = CALL_DONE;
    call->reply = (struct pl_grpc_reply){ .code = GRPC_UNAVAILABLE,
                                          .message = PL_STR("the connection takes no more calls"),
                                          .unprocessed = true };
}

static void call_cancel(struct etcd_call *call)
{
    if (call->state == CALL_OPEN)
        pl__etcd_link_cancel(call->link, call->id);
    call->state = CALL_NONE;
    call->link = NULL;
}

/* etcd says that it did not manage in time, or that our deadline was over. */
static bool says_timeout(const struct pl_grpc_reply *reply)
{
    return reply->from_peer &&
           (pl__str_starts_with(reply->message, PL_STR("etcdserver: request timed out")) ||
            pl__str_contains(reply->message, PL_STR("context deadline exceeded")) ||
            reply->code == GRPC_DEADLINE_EXCEEDED);
}

/* "MemberList" of "/etcdserverpb.Cluster/MemberList". */
static const char *method_name(enum pl_etcd_method method)
{
    return strrchr(pl__etcd_method_path(method), '/') + 1;
}

/* Why a call that is over has no answer. The text does not depend on which of two clocks was first, nor on
 * what etcd guesses the reason to be. */
static struct pl_str call_error(struct etcd_call *call, enum pl_etcd_failure *failure)
{
    struct pl_arena *arena = &call->job->arena;
    const struct pl_grpc_reply *reply = &call->reply;

    if (call->late) {
        *failure = ETCD_TIMEOUT;
        return pl__str_format(arena, "no answer to %s", method_name(call->method));
    }
    if (says_timeout(reply)) {
        *failure = ETCD_TIMEOUT;
        return PL_STR("etcdserver: request timed out");
    }
    if (reply->from_peer) {
        *failure = ETCD_REFUSED;
        return reply->message.len ? reply->message : pl__str(pl__grpc_code_name(reply->code));
    }
    if (call->link->state == LINK_FAILED) {
        *failure = call->link->failure;
        return pl__str_copy(arena, pl__str(call->link->error));
    }
    *failure = ETCD_CUT;
    return reply->message.len ? reply->message : pl__str(pl__grpc_code_name(reply->code));
}

/* A refusal that is meant (a learner, an unhealthy cluster) is not asked for twice. */
static bool worth_asking_again(const struct etcd_call *call, uint64_t now_ms)
{
    static const struct pl_str changed = PL_STR_INIT("leader changed"),
                               none = PL_STR_INIT("no leader"),
                               stopped = PL_STR_INIT("server stopped");
    const struct pl_grpc_reply *reply = &call->reply;

    if (call->retried || call->late || !reply->from_peer || reply->code == GRPC_OK ||
        !pl__etcd_method_is_idempotent(call->method) || now_ms + RETRY_MS_MIN > call->deadline_ms)
        return false;
    return says_timeout(reply) || pl__str_contains(reply->message, changed) ||
           pl__str_contains(reply->message, none) || pl__str_contains(reply->message, stopped);
}

/* --- attempts ---------------------------------------------------------------------------------------- */

static void attempt_let_go(struct etcd_attempt *a, bool keep_link)
{
    struct etcd_job *job = a->status.job;

    call_cancel(&a->status);
    if (!a->link)
        return;
    for (size_t i = 0; i < job->call_count; i++)
        if (job->calls[i].link == a->link)
            call_cancel(&job->calls[i]);
    if (!keep_link)
        link_retire(a->link);
    link_leave(a->link);
    a->link = NULL;
}

static void attempt_over(struct etcd_attempt *a, enum pl_etcd_failure failure, struct pl_str error)
{
    a->over = true;
    a->failure = failure;
    a->error = error;
    attempt_let_go(a, false);
}

static void attempt_begin(struct etcd_job *job, struct etcd_attempt *a, uint64_t now_ms)
{
    struct pl_etcd *etcd = job->etcd;

    a->begun = true;
    job->next_begin_ms = now_ms + etcd->options.head_start_ms;
    if (a->warm && (!etcd->warm || !pl__etcd_link_usable(etcd->warm))) {
        a->over = true; /* it went while this job waited */
        return;
    }
    a->link = a->warm ? etcd->warm : pl__etcd_link_open(etcd, &a->endpoint);
    link_take(a->link);
}

static void attempt_ask(struct etcd_job *job, struct etcd_attempt *a, uint64_t now_ms)
{
    uint64_t call_deadline_ms = now_ms + job->etcd->options.call_timeout_ms;

    call_open(&a->status, a->link, now_ms, job->dial_deadline_ms);
    if (!a->warm || job->call != ETCD_OBSERVE)
        return;
    for (size_t i = 0; i < job->call_count; i++)
        call_open(&job->calls[i], a->link, now_ms, call_deadline_ms);
}

static bool attempt_runs(const struct etcd_job *job, const struct etcd_attempt *a)
{
    return a->begun && !a->over && a != job->fallback;
}

/* In their order; but while the warm link hangs, a new one to the same member comes last. */
static struct etcd_attempt *attempt_next(struct etcd_job *job)
{
    const struct etcd_attempt *warm = &job->attempts[0];
    struct etcd_attempt *same = NULL;

    for (size_t i = 0; i < job->attempt_count; i++) {
        struct etcd_attempt *a = &job->attempts[i];
        if (a->begun)
            continue;
        if (!attempt_runs(job, warm) || !pl__str_equal(a->endpoint.node, warm->endpoint.node))
            return a;
        same = a;
    }
    return same;
}

/* This member is the one. */
static void attempt_wins(struct etcd_job *job, struct etcd_attempt *winner)
{
    job->link = winner->link;
    winner->link = NULL;
    for (size_t i = 0; i < job->attempt_count; i++)
        attempt_let_go(&job->attempts[i], false);
    link_prefer(job->link);
    job->answer.node = pl__str_copy(&job->arena, pl__str(job->link->node));
    job->phase = JOB_CALLING;
}

/* The Status has come. */
static void attempt_answered(struct etcd_job *job, struct etcd_attempt *a, uint64_t now_ms)
{
    struct pl_etcd_answer answer = { 0 };
    struct pl_error *err = NULL;

    if (pl__etcd_reply_decode(&job->arena, ETCD_METHOD_STATUS, a->status.reply.body, &answer,
                              &err) < 0) {
        struct pl_str text = pl__error_text(&job->arena, err);
        pl__etcd_link_trace_reply(a->link, text.ptr);
        attempt_over(a, ETCD_CUT, text);
        return;
    }
    pl__etcd_link_trace_reply(a->link, NULL);
    if (answer.is_learner && !job->fallback && !a->warm) {
        job->fallback = a;
        job->answer = answer;
        job->next_begin_ms = now_ms + (attempt_next(job) ? 0 : job->etcd->options.head_start_ms);
        return;
    }
    if (answer.is_learner) {
        attempt_over(a, ETCD_REFUSED, PL_STR("a learner"));
        return;
    }
    job->answer = answer;
    attempt_wins(job, a);
}

static void attempt_refused(struct etcd_attempt *a)
{
    enum pl_etcd_failure failure;
    struct pl_str error = call_error(&a->status, &failure);

    a->grpc_code = a->status.reply.code;
    pl__etcd_link_trace_reply(a->link, error.ptr);
    attempt_over(a, failure, error);
}

static void attempt_step(struct etcd_job *job, struct etcd_attempt *a, uint64_t now_ms)
{
    if (!attempt_runs(job, a))
        return;
    if (a->status.state == CALL_NONE && a->link->state == LINK_READY)
        attempt_ask(job, a, now_ms);
    if (a->status.state == CALL_DONE && a->status.reply.code == GRPC_OK)
        attempt_answered(job, a, now_ms);
    else if (a->status.state == CALL_DONE)
        attempt_refused(a);
    else if (a->link->state == LINK_FAILED)
        attempt_over(a, a->link->failure, pl__str_copy(&job->arena, pl__str(a->link->error)));
}

/* The time for reaching anybody is over. */
static void attempt_expire(struct etcd_job *job, struct etcd_attempt *a)
{
    char text[ETCD_ERROR_BYTES];

    if (!attempt_runs(job, a))
        return;
    pl__etcd_link_waits(a->link, text, sizeof text);
    pl__etcd_link_trace_reply(a->link, text);
    attempt_over(a, a->link->state == LINK_READY ? ETCD_TIMEOUT : ETCD_UNREACHABLE,
                 pl__str_copy(&job->arena, pl__str(text)));
}

/* --- nobody answers ---------------------------------------------------------------------------------- */

/* Those that say why, sorted by Node. Of the warm link nothing is said: its member was asked again. */
static size_t failures_sort(struct etcd_job *job, const struct etcd_attempt **failed)
{
    size_t count = 0;

    for (size_t i = 0; i < job->attempt_count; i++) {
        const struct etcd_attempt *a = &job->attempts[i];
        if (!a->over || a->warm)
            continue;
        size_t at = count++;
        while (at > 0 && pl__str_compare(a->endpoint.node, failed[at - 1]->endpoint.node) < 0) {
            failed[at] = failed[at - 1];
            at--;
        }
        failed[at] = a;
    }
    return count;
}

/* One text that stands for all; each with its Node when they differ. */
static struct pl_str failures_text(struct etcd_job *job, const struct etcd_attempt **failed,
                                   size_t count)
{
    enum { TEXT_BYTES_MAX = ETCD_ENDPOINTS_MAX * (ETCD_ERROR_BYTES + 260) };
    struct pl_buf text;
    bool same = true;

    for (size_t i = 1; i < count; i++)
        same &= pl__str_equal(failed[i]->error, failed[0]->error);
    if (same)
        return failed[0]->error;
    pl__buf_init(&text, &job->arena, TEXT_BYTES_MAX);
    for (size_t i = 0; i < count; i++)
        pl__buf_printf(&text, "%s%.*s: %.*s", i ? "; " : "", PL_STR_ARG(failed[i]->endpoint.node),
                       PL_STR_ARG(failed[i]->error));
    return pl__buf_str(&text);
}

/* Trust first, for that is what somebody can mend; else what they all are, or simply out of reach. */
static const struct etcd_attempt *failures_class(const struct etcd_attempt **failed, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (failed[i]->failure == ETCD_UNTRUSTED)
            return failed[i];
    for (size_t i = 1; i < count; i++)
        if (failed[i]->failure != failed[0]->failure)
            return NULL;
    return failed[0];
}

static void job_unreached(struct etcd_job *job)
{
    const struct etcd_attempt *failed[ETCD_ENDPOINTS_MAX];
    size_t count = failures_sort(job, failed);

    if (count == 0) {
        pl__etcd_job_fail(job, ETCD_UNREACHABLE, PL_STR("no endpoint was tried in time"));
        return;
    }
    struct pl_str text = failures_text(job, failed, count);
    const struct etcd_attempt *like = failures_class(failed, count);
    job->answer.grpc_code = like && like->failure == ETCD_REFUSED ? like->grpc_code : 0;
    pl__etcd_job_fail(job, like ? like->failure : ETCD_UNREACHABLE, text);
}

/* --- reaching ------------------------------------------------------------------------------------------ */

static bool anybody_runs(const struct etcd_job *job)
{
    for (size_t i = 0; i < job->attempt_count; i++)
        if (attempt_runs(job, &job->attempts[i]))
            return true;
    return false;
}

static void reach_begin(struct etcd_job *job, uint64_t now_ms)
{
    job->phase = JOB_REACHING;
    job->dial_deadline_ms = now_ms + job->etcd->options.dial_timeout_ms;
    job->next_begin_ms = now_ms;
    job->fallback = NULL;
    if (!job->etcd->cert)
        pl__etcd_job_fail(job, ETCD_UNTRUSTED, PL_STR("there are no credentials for etcd"));
    else if (job->attempt_count == 1)
        pl__etcd_job_fail(job, ETCD_UNREACHABLE,
                          PL_STR("no Node with an etcd member to connect to"));
}

/* Nobody has won yet: who else is to be tried, or is it over? */
static void reach_on(struct etcd_job *job, uint64_t now_ms)
{
    struct etcd_attempt *next = attempt_next(job);
    bool running = anybody_runs(job);

    if (now_ms >= job->dial_deadline_ms) {
        for (size_t i = 0; i < job->attempt_count; i++)
            attempt_expire(job, &job->attempts[i]);
        running = false;
        next = NULL;
    }
    if (next && (!running || now_ms >= job->next_begin_ms))
        attempt_begin(job, next, now_ms);
    else if (!next && job->fallback && (!running || now_ms >= job->next_begin_ms))
        attempt_wins(job, job->fallback);
    else if (!next && !running)
        job_unreached(job);
}

static void reach_step(struct etcd_job *job, uint64_t now_ms, uint64_t *wake_ms)
{
    size_t rounds_max = 2 * (ETCD_ENDPOINTS_MAX + 1) + 1; /* each begins once and ends once */

    while (job->phase == JOB_REACHING && rounds_max-- > 0) {
        for (size_t i = 0; i < job->attempt_count && job->phase == JOB_REACHING; i++)
            attempt_step(job, &job->attempts[i], now_ms);
        if (job->phase == JOB_REACHING)
            reach_on(job, now_ms);
    }
    if (job->phase != JOB_REACHING)
        return;
    wake_lower(wake_ms, job->dial_deadline_ms);
    if (attempt_next(job) || job->fallback)
        wake_lower(wake_ms, job->next_begin_ms);
}

/* --- calling -------------------------------------------------------------------------------------------- */

static void call_step(struct etcd_call *call, uint64_t now_ms, uint64_t *wake_ms)
{
    struct etcd_job *job = call->job;

    if (call->link != job->link)
        call_cancel(call); /* it went out on a link that did not win */
    if (call->state == CALL_DONE && worth_asking_again(call, now_ms)) {
        call->retried = true;
        call_open(call, job->link, now_ms, call->deadline_ms);
    }
    if (call->state == CALL_NONE)
        call_open(call, job->link, now_ms, now_ms + job->etcd->options.call_timeout_ms);
    if (call->state == CALL_OPEN && now_ms >= call->deadline_ms + GRACE_MS) {
        call_cancel(call);
        call->link = job->link;
        call->state = CALL_DONE;
        call->late = true;
    }
    if (call->state == CALL_OPEN)
        wake_lower(wake_ms, call->deadline_ms + GRACE_MS);
}

/* An error of a list alone. */
static struct pl_str list_take(struct etcd_job *job, struct etcd_call *call)
{
    enum pl_etcd_failure failure;
    struct pl_error *err = NULL;

    if (call->late || call->reply.code != GRPC_OK)
        return call_error(call, &failure);
    if (pl__etcd_reply_decode(&job->arena, call->method, call->reply.body, &job->answer, &err) < 0)
        return pl__error_text(&job->arena, err);
    return (struct pl_str){ "", 0 };
}

static void change_take(struct etcd_job *job, struct etcd_call *call)
{
    enum pl_etcd_failure failure;
    struct pl_error *err = NULL;

    if (call->late || call->reply.code != GRPC_OK) {
        struct pl_str error = call_error(call, &failure);
        job->answer.grpc_code = failure == ETCD_REFUSED ? call->reply.code : 0;
        pl__etcd_job_fail(job, failure, error);
    } else if (pl__etcd_reply_decode(&job->arena, call->method, call->reply.body, &job->answer,
                                     &err) < 0) {
        pl__etcd_job_fail(job, ETCD_CUT, pl__error_text(&job->arena, err));
    }
}

static void job_let_go(struct etcd_job *job)
{
    for (size_t i = 0; i < job->call_count; i++)
        call_cancel(&job->calls[i]);
    for (size_t i = 0; i < job->attempt_count; i++)
        attempt_let_go(&job->attempts[i], job->attempts[i].warm);
    if (job->link)
        link_leave(job->link);
    job->link = NULL;
}

static void job_finish(struct etcd_job *job)
{
    if (job->call == ETCD_OBSERVE) {
        job->answer.members_error = list_take(job, &job->calls[0]);
        job->answer.alarms_error = list_take(job, &job->calls[1]);
    } else {
        change_take(job, &job->calls[0]);
    }
    job_let_go(job);
    job->phase = JOB_FINISHED;
}

/* The connection broke in the middle of an observation: others may still answer all of it. */
static void reach_again(struct etcd_job *job)
{
    job_let_go(job);
    job->reached_again = true;
    job->answer = (struct pl_etcd_answer){ 0 };
    for (size_t i = 0; i < job->attempt_count; i++) {
        struct etcd_attempt *a = &job->attempts[i];
        a->begun = a->over = a->warm; /* the warm link is gone */
    }
    job->phase = JOB_NEW;
}

static void calling_step(struct etcd_job *job, uint64_t now_ms, uint64_t *wake_ms)
{
    bool open = false;

    if (job->call == ETCD_OBSERVE && !job->reached_again && job->link->state == LINK_FAILED) {
        reach_again(job);
        return;
    }
    for (size_t i = 0; i < job->call_count; i++) {
        call_step(&job->calls[i], now_ms, wake_ms);
        open |= job->calls[i].state != CALL_DONE;
    }
    if (!open)
        job_finish(job);
}

/* --- jobs ------------------------------------------------------------------------------------------------ */

static void attempt_add(struct etcd_job *job, const struct pl_etcd_endpoint *endpoint)
{
    struct etcd_attempt *a = &job->attempts[job->attempt_count++];

    a->endpoint.node = pl__str_copy(&job->arena, endpoint->node);
    a->endpoint.address = pl__str_copy(&job->arena, endpoint->address);
    a->status = (struct etcd_call){ .job = job, .method = ETCD_METHOD_STATUS };
}

/* The place of the warm link is there from the beginning, and taken by nobody. */
static void attempts_set(struct etcd_job *job, const struct pl_etcd_request *request)
{
    static const struct pl_etcd_endpoint nobody = { { "", 0 }, { "", 0 } };

    attempt_add(job, &nobody);
    job->attempts[0].warm = job->attempts[0].begun = job->attempts[0].over = true;
    for (size_t i = 0; i < request->endpoint_count && i < ETCD_ENDPOINTS_MAX; i++)
        attempt_add(job, &request->endpoints[i]);
}

/* When it starts, not when it is sent: a job before it may have warmed a link. */
static void warm_set(struct etcd_job *job)
{
    const struct etcd_link *warm = job->etcd->warm;

    if (job->reached_again || !warm || !pl__etcd_link_usable(warm))
        return;
    for (size_t i = 1; i < job->attempt_count; i++) {
        if (!pl__str_equal(job->attempts[i].endpoint.node, pl__str(warm->node)))
            continue;
        job->attempts[0].endpoint = job->attempts[i].endpoint;
        job->attempts[0].begun = job->attempts[0].over = false;
        return;
    }
}

struct etcd_job *pl__etcd_job_new(struct pl_etcd *etcd, const struct pl_etcd_request *request,
                                  uint64_t id)
{
    struct etcd_job *job = calloc(1, sizeof *job);

    if (!job)
        abort();
    pl__arena_init(&job->arena, NULL, ARENA_BYTES);
    job->etcd = etcd;
    job->id = id;
    job->call = request->call;
    job->arguments.member_id = request->member_id;
    job->arguments.peer_url = pl__str_copy(&job->arena, request->peer_url);
    job->done = request->done;
    job->user = request->user;
    attempts_set(job, request);
    job->call_count = job_calls[job->call].count;
    for (size_t i = 0; i < job->call_count; i++)
        job->calls[i] = (struct etcd_call){ .job = job, .method = job_calls[job->call].methods[i] };
    return job;
}

void pl__etcd_job_step(struct etcd_job *job, uint64_t now_ms, uint64_t *wake_ms)
{
    enum { TURNS_MAX = 4 }; /* new, reaching, calling, and once more from the beginning */

    for (int turn = 0; turn < TURNS_MAX; turn++) {
        enum etcd_phase before = job->phase;
        if (job->phase == JOB_NEW) {
            warm_set(job);
            reach_begin(job, now_ms);
        }
        if (job->phase == JOB_REACHING)
            reach_step(job, now_ms, wake_ms);
        else if (job->phase == JOB_CALLING)
            calling_step(job, now_ms, wake_ms);
        if (job->phase == before || job->phase == JOB_FINISHED)
            return;
    }
    pl__etcd_poke(job->etcd);
}

void pl__etcd_job_fail(struct etcd_job *job, enum pl_etcd_failure failure, struct pl_str error)
{
    if (job->phase == JOB_FINISHED)
        return;
    job_let_go(job);
    job->answer.failure = failure;
    job->answer.error = error;
    job->phase = JOB_FINISHED;
}

void pl__etcd_job_free(struct etcd_job *job)
{
    assert(!job->link);
    pl__arena_release(&job->arena);
    free(job);
}
