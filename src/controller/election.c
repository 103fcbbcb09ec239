/* One try of a candidate or leader is a walk through the states:
 *
 *   WAITING --(we hold it)--> RENEWING --200--> WAITING
 *      |                          | anything else
 *      +--------------------> READING --404--> CREATING --201--> WAITING
 *                                 | ours, free or run out
 *                                 +----------> TAKING ---200--> WAITING
 *   resign:                   CHECKING --ours--> GIVING_UP -----> ENDED
 *
 * Whatever does not fit ends the try; the next one comes after the retry period, jittered for those
 * who do not lead so that candidates do not knock in step. */
#include "controller/election.h"

#include <assert.h>

#include "base/time.h"

enum {
    LEASE_DURATION_MS = 60000,
    RENEW_DEADLINE_MS = 40000,
    RETRY_PERIOD_MS = 5000,
    RELEASE_TIMEOUT_MS = 4000, /* the process ends 5 s after it was told to */
    RELEASED_DURATION_S = 1,
    DURATION_S_MAX = 1000000000, /* what somebody else wrote; we only multiply it */
    BODY_BYTES_MAX = 1 << 20,
};

/* --- the Lease on the wire --------------------------------------------------------------------- */

/* Keeps a value as it is written, to send it back unread. */
static int read_raw(struct pl_json *j, void *destination)
{
    struct pl_str *raw = destination;
    const char *start = j->at;

    if (pl__json_skip(j) < 0)
        return -1;
    *raw = (struct pl_str){ start, (size_t)(j->at - start) };
    return 0;
}

static const struct pl_field lease_fields[] = {
    PL_FIELD("metadata.resourceVersion", F_STR, struct pl_lease, resource_version),
    PL_FIELD_CUSTOM("metadata.labels", struct pl_lease, labels, read_raw),
    PL_FIELD_CUSTOM("metadata.annotations", struct pl_lease, annotations, read_raw),
    PL_FIELD_CUSTOM("metadata.ownerReferences", struct pl_lease, owners, read_raw),
    PL_FIELD_CUSTOM("metadata.finalizers", struct pl_lease, finalizers, read_raw),
    PL_FIELD_SKIP("metadata.managedFields"),
    PL_FIELD("spec.holderIdentity", F_STR, struct pl_lease, holder),
    PL_FIELD("spec.leaseDurationSeconds", F_INT, struct pl_lease, duration_s),
    PL_FIELD("spec.acquireTime", F_STR, struct pl_lease, acquire_time),
    PL_FIELD("spec.renewTime", F_STR, struct pl_lease, renew_time),
    PL_FIELD("spec.leaseTransitions", F_INT, struct pl_lease, transitions),
};
static PL_SHAPE(lease_shape, struct pl_lease, lease_fields);

static int decode_lease(struct pl_str body, struct pl_arena *scratch, struct pl_lease *lease)
{
    struct pl_json j;
    struct pl_error *err = NULL;

    *lease = (struct pl_lease){ .duration_s = 0 };
    pl__json_init(&j, body, PL_STR("lease"), scratch, 0, &err);
    if (pl__json_decode(&j, &lease_shape, lease) < 0)
        return -1;
    return lease->resource_version.len ? 0 : -1;
}

/* Those parts of a record that a holder's renewal changes. */
static bool same_record(const struct pl_lease *a, const struct pl_lease *b)
{
    return pl__str_equal(a->holder, b->holder) && pl__str_equal(a->renew_time, b->renew_time) &&
           pl__str_equal(a->acquire_time, b->acquire_time) && a->duration_s == b->duration_s &&
           a->transitions == b->transitions;
}

/* Takes over a Lease that was decoded elsewhere. */
static void remember(struct pl_election *e, const struct pl_lease *lease)
{
    struct pl_lease copy = *lease;
    struct pl_str *texts[] = { &copy.resource_version, &copy.holder,    &copy.acquire_time,
                               &copy.renew_time,       &copy.labels,    &copy.annotations,
                               &copy.owners,           &copy.finalizers };

    pl__arena_reset(&e->memory);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        *texts[i] = pl__str_copy(&e->memory, *texts[i]);
    e->lease = copy;
}

static void forget(struct pl_election *e)
{
    pl__arena_reset(&e->memory);
    e->lease = (struct pl_lease){ .duration_s = 0 };
}

/* A MicroTime: the server takes exactly six digits. */
static struct pl_str micro_time(struct pl_arena *arena, int64_t us)
{
    struct pl_buf b;
    int64_t ms = us / 1000;

    pl__buf_init(&b, arena, 64);
    pl__time_add(&b, ms ? ms : 1);
    assert(b.len > 1 && b.data[b.len - 1] == 'Z');
    b.len--;
    pl__buf_printf(&b, ".%06dZ", (int)(us % 1000000));
    return pl__buf_str(&b);
}

/* The present as MicroTime, never equal to the last renewal: a write that changes nothing does not
 * count as a change, on a clock that stands still too. */
static struct pl_str time_now(const struct pl_election *e, struct pl_now now,
                              struct pl_arena *arena)
{
    int64_t us = (now.wall_ms > 0 ? now.wall_ms : 1) * 1000;
    struct pl_str text = micro_time(arena, us);

    return pl__str_equal(text, e->lease.renew_time) ? micro_time(arena, us + 1) : text;
}

static void write_text(struct pl_json_writer *w, const char *key, struct pl_str text)
{
    pl__json_write_key(w, key);
    pl__json_write_str(w, text);
}

static void write_raw(struct pl_json_writer *w, const char *key, struct pl_str raw)
{
    if (raw.len == 0)
        return;
    pl__json_write_key(w, key);
    pl__buf_add(w->out, raw);
    w->after_key = false;
}

static void write_metadata(struct pl_json_writer *w, const struct pl_election *e)
{
    pl__json_write_key(w, "metadata");
    pl__json_open_object(w);
    write_text(w, "name", pl__str(e->name));
    write_text(w, "namespace", pl__str(e->namespace_));
    if (e->lease.resource_version.len)
        write_text(w, "resourceVersion", e->lease.resource_version);
    write_raw(w, "labels", e->lease.labels);
    write_raw(w, "annotations", e->lease.annotations);
    write_raw(w, "ownerReferences", e->lease.owners);
    write_raw(w, "finalizers", e->lease.finalizers);
    pl__json_close_object(w);
}

static void write_spec(struct pl_json_writer *w, const struct pl_lease *record)
{
    pl__json_write_key(w, "spec");
    pl__json_open_object(w);
    write_text(w, "holderIdentity", record->holder);
    pl__json_write_key(w, "leaseDurationSeconds");
    pl__json_write_int(w, record->duration_s);
    write_text(w, "acquireTime", record->acquire_time);
    write_text(w, "renewTime", record->renew_time);
    pl__json_write_key(w, "leaseTransitions");
    pl__json_write_int(w, record->transitions);
    pl__json_close_object(w);
}

static struct pl_str lease_body(const struct pl_election *e, const struct pl_lease *record,
                                struct pl_arena *arena)
{
    struct pl_buf out;
    struct pl_json_writer w;

    pl__buf_init(&out, arena, BODY_BYTES_MAX);
    pl__json_writer_init(&w, &out, JSON_COMPACT);
    pl__json_open_object(&w);
    write_text(&w, "apiVersion", PL_STR("coordination.k8s.io/v1"));
    write_text(&w, "kind", PL_STR("Lease"));
    write_metadata(&w, e);
    write_spec(&w, record);
    pl__json_close_object(&w);
    return pl__buf_str(&out);
}

/* --- what to write ------------------------------------------------------------------------------ */

static bool is_ours(const struct pl_election *e)
{
    return pl__str_equal(e->lease.holder, pl__str(e->identity));
}

/* Whether a time that we read can be written back: somebody may have left it out. */
static bool is_micro_time(struct pl_str text)
{
    int64_t ms;

    return text.len == sizeof "2026-11-15T02:00:00.000000Z" - 1 && pl__time_parse(text, &ms);
}

/* The record that makes us, or keeps us, the holder. */
static struct pl_lease record_to_hold(const struct pl_election *e, struct pl_now now,
                                      struct pl_arena *arena)
{
    struct pl_str time = time_now(e, now, arena);
    struct pl_lease record = {
        .holder = pl__str(e->identity),
        .duration_s = (int64_t)((e->lease_duration_ms + 999) / 1000),
        .acquire_time = time,
        .renew_time = time,
        .transitions = e->lease.transitions,
    };

    if (e->lease.resource_version.len == 0 || record.transitions < 0)
        record.transitions = 0;
    else if (!is_ours(e) && record.transitions < INT32_MAX)
        record.transitions++;
    if (is_ours(e) && is_micro_time(e->lease.acquire_time))
        record.acquire_time = e->lease.acquire_time;
    return record;
}

static struct pl_lease record_to_release(const struct pl_election *e, struct pl_now now,
                                         struct pl_arena *arena)
{
    struct pl_str time = time_now(e, now, arena);

    return (struct pl_lease){ .duration_s = RELEASED_DURATION_S,
                              .acquire_time = time,
                              .renew_time = time,
                              .transitions = e->lease.transitions };
}

/* --- life --------------------------------------------------------------------------------------- */

static uint64_t or_default(uint32_t ms, uint64_t fallback)
{
    return ms ? ms : fallback;
}

void pl__election_init(struct pl_election *e, const struct pl_controller_options *options,
                       struct pl_now now)
{
    *e = (struct pl_election){
        .namespace_ = options->lease_namespace,
        .name = options->lease_name,
        .identity = options->identity,
        .lease_duration_ms = or_default(options->lease_duration_ms, LEASE_DURATION_MS),
        .renew_deadline_ms = or_default(options->renew_deadline_ms, RENEW_DEADLINE_MS),
        .retry_period_ms = or_default(options->retry_period_ms, RETRY_PERIOD_MS),
        .state = ELECTION_WAITING,
        .due_ms = now.mono_ms,
        .random = options->seed,
    };
    assert(e->namespace_ && e->name && e->identity && e->identity[0]);
    assert(e->lease_duration_ms > e->renew_deadline_ms);
    assert(e->renew_deadline_ms > e->retry_period_ms);
    pl__arena_init(&e->memory, options->allocator, 1024);
}

void pl__election_release(struct pl_election *e)
{
    pl__arena_release(&e->memory);
    e->lease = (struct pl_lease){ .duration_s = 0 };
}

/* splitmix64, of which any start is as good as any other. */
static uint64_t next_random(struct pl_election *e)
{
    uint64_t z = e->random += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static bool in_flight(const struct pl_election *e)
{
    return e->state != ELECTION_WAITING && e->state != ELECTION_ENDED && !e->wants_request;
}

static uint64_t deadline_ms(const struct pl_election *e)
{
    return e->renewed_ms + e->renew_deadline_ms;
}

static void enter(struct pl_election *e, enum pl_election_state state)
{
    e->state = state;
    e->wants_request = state != ELECTION_WAITING && state != ELECTION_ENDED;
}

static void end(struct pl_election *e)
{
    e->leading = false;
    enter(e, ELECTION_ENDED);
}

static void lose(struct pl_election *e)
{
    e->lost = true;
    end(e);
}

static void wait_for_next_try(struct pl_election *e, struct pl_now now)
{
    uint64_t wait_ms = e->retry_period_ms;

    if (!e->leading)
        wait_ms += next_random(e) % (e->retry_period_ms * 6 / 5 + 1);
    e->due_ms = now.mono_ms + wait_ms;
    enter(e, ELECTION_WAITING);
}

static void start_try(struct pl_election *e)
{
    enter(e, e->leading && e->lease.resource_version.len ? ELECTION_RENEWING : ELECTION_READING);
}

/* --- requests ----------------------------------------------------------------------------------- */

static uint32_t request_timeout_ms(const struct pl_election *e)
{
    if (e->state == ELECTION_CHECKING || e->state == ELECTION_GIVING_UP)
        return RELEASE_TIMEOUT_MS;
    return (uint32_t)(e->renew_deadline_ms / 2);
}

static const char *request_method(enum pl_election_state state)
{
    switch (state) {
    case ELECTION_READING:
    case ELECTION_CHECKING:
        return "GET";
    case ELECTION_CREATING:
        return "POST";
    default:
        return "PUT";
    }
}

static void fill_request(const struct pl_election *e, struct pl_now now, struct pl_arena *arena,
                         struct pl_action *out)
{
    bool creates = e->state == ELECTION_CREATING;

    *out = (struct pl_action){ .type = ACTION_REQUEST, .timeout_ms = request_timeout_ms(e) };
    out->method = request_method(e->state);
    out->path = pl__str_format(arena, "/apis/coordination.k8s.io/v1/namespaces/%s/leases%s%s",
                               e->namespace_, creates ? "" : "/", creates ? "" : e->name);
    if (out->method[0] == 'G')
        return;
    struct pl_lease record = e->state == ELECTION_GIVING_UP ? record_to_release(e, now, arena)
                                                            : record_to_hold(e, now, arena);
    out->body = lease_body(e, &record, arena);
}

bool pl__election_next(struct pl_election *e, struct pl_now now, struct pl_arena *arena,
                       struct pl_action *out)
{
    if (e->leading && now.mono_ms >= deadline_ms(e) && !e->lost) {
        e->leading = false;
        e->lost = true;
    }
    if (in_flight(e))
        return false;
    if (e->lost && e->state != ELECTION_ENDED)
        end(e);
    if (e->state == ELECTION_WAITING && now.mono_ms >= e->due_ms)
        start_try(e);
    if (!e->wants_request)
        return false;
    fill_request(e, now, arena, out);
    e->wants_request = false;
    e->sent_ms = now.mono_ms;
    return true;
}

uint64_t pl__election_due_ms(const struct pl_election *e)
{
    uint64_t due = e->leading ? deadline_ms(e) : UINT64_MAX;

    if (e->wants_request)
        return 0;
    if (e->state == ELECTION_WAITING && e->due_ms < due)
        due = e->due_ms;
    return due;
}

/* --- answers ------------------------------------------------------------------------------------ */

/* What a Status says, for people. */
struct status_body {
    struct pl_str message;
};
static const struct pl_field status_fields[] = {
    PL_FIELD("message", F_STR, struct status_body, message),
};
static PL_SHAPE(status_shape, struct status_body, status_fields);

static struct pl_str answer_text(const struct pl_event *event, struct pl_arena *scratch)
{
    struct status_body status = { .message = { "", 0 } };
    struct pl_json j;

    if (event->status == 0)
        return event->error;
    pl__json_init(&j, event->body, PL_STR("status"), scratch, 0, NULL);
    if (event->body.len && pl__json_decode(&j, &status_shape, &status) == 0)
        return status.message;
    return PL_STR("");
}

static void note_problem(struct pl_election *e, const struct pl_event *event,
                         struct pl_arena *scratch)
{
    struct pl_str text = answer_text(event, scratch);
    struct pl_str line = event->status
                             ? pl__str_format(scratch, "lease %s/%s: HTTP %d: %.*s", e->namespace_,
                                              e->name, event->status, PL_STR_ARG(text))
                             : pl__str_format(scratch, "lease %s/%s: %.*s", e->namespace_, e->name,
                                              PL_STR_ARG(text));
    size_t len = line.len < sizeof e->problem - 1 ? line.len : sizeof e->problem - 1;

    memcpy(e->problem, line.ptr, len);
    e->problem[len] = '\0';
    e->problem_status = event->status;
}

/* A write of ours went through: what came back is what everybody sees now. */
static bool take_written(struct pl_election *e, const struct pl_event *event, struct pl_now now,
                         struct pl_arena *scratch)
{
    struct pl_lease lease;

    if (event->status != 200 && event->status != 201)
        return false;
    if (decode_lease(event->body, scratch, &lease) < 0)
        return false;
    remember(e, &lease);
    e->seen_ms = now.mono_ms;
    return true;
}

static void hold(struct pl_election *e, struct pl_now now)
{
    e->problem[0] = '\0';
    if (e->resigning) {
        enter(e, ELECTION_CHECKING);
        return;
    }
    e->renewed_ms = e->sent_ms;
    /* An answer that took longer than the deadline proves nothing any more. */
    e->leading = now.mono_ms < deadline_ms(e);
    wait_for_next_try(e, now);
}

/* While a write was in flight we may have been told to stop. What one without an answer did is not
 * known, so look before the end. */
static void fail_try(struct pl_election *e, struct pl_now now)
{
    if (e->resigning)
        enter(e, ELECTION_CHECKING);
    else
        wait_for_next_try(e, now);
}

static bool has_run_out(const struct pl_election *e, struct pl_now now)
{
    int64_t duration_s = e->lease.duration_s > 0 ? e->lease.duration_s : 0;

    if (duration_s > DURATION_S_MAX)
        duration_s = DURATION_S_MAX;
    return e->lease.holder.len == 0 || now.mono_ms - e->seen_ms >= (uint64_t)duration_s * 1000;
}

/* Reads the Lease and notes the moment when its record differs from what we knew. */
static int observe(struct pl_election *e, const struct pl_event *event, struct pl_now now,
                   struct pl_arena *scratch)
{
    struct pl_lease lease;

    if (event->status != 200 || decode_lease(event->body, scratch, &lease) < 0)
        return -1;
    if (e->lease.resource_version.len == 0 || !same_record(&lease, &e->lease))
        e->seen_ms = now.mono_ms;
    remember(e, &lease);
    return 0;
}

/* About to give it up: only what is ours. */
static void answer_check(struct pl_election *e, const struct pl_event *event, struct pl_now now,
                         struct pl_arena *scratch)
{
    if (observe(e, event, now, scratch) == 0 && is_ours(e))
        enter(e, ELECTION_GIVING_UP);
    else
        end(e);
}

static void answer_read(struct pl_election *e, const struct pl_event *event, struct pl_now now,
                        struct pl_arena *scratch)
{
    if (e->resigning) {
        answer_check(e, event, now, scratch);
        return;
    }
    if (event->status == 404) {
        forget(e);
        enter(e, ELECTION_CREATING);
        return;
    }
    if (observe(e, event, now, scratch) < 0) {
        note_problem(e, event, scratch);
        wait_for_next_try(e, now);
        return;
    }
    e->problem[0] = '\0';
    if (e->leading && e->lease.holder.len && !is_ours(e))
        lose(e);
    else if (is_ours(e) || has_run_out(e, now))
        enter(e, ELECTION_TAKING);
    else
        wait_for_next_try(e, now);
}

static void answer_write(struct pl_election *e, const struct pl_event *event, struct pl_now now,
                         struct pl_arena *scratch)
{
    if (take_written(e, event, now, scratch)) {
        hold(e, now);
        return;
    }
    if (e->state == ELECTION_RENEWING && !e->resigning) {
        enter(e, ELECTION_READING);
        return;
    }
    if (event->status != 409)
        note_problem(e, event, scratch);
    fail_try(e, now);
}

void pl__election_answer(struct pl_election *e, const struct pl_event *event, struct pl_now now,
                         struct pl_arena *scratch)
{
    assert(in_flight(e));
    if (e->leading && now.mono_ms >= deadline_ms(e))
        e->lost = true;
    if (e->lost) {
        end(e);
        return;
    }
    switch (e->state) {
    case ELECTION_READING:
        answer_read(e, event, now, scratch);
        break;
    case ELECTION_RENEWING:
    case ELECTION_CREATING:
    case ELECTION_TAKING:
        answer_write(e, event, now, scratch);
        break;
    case ELECTION_CHECKING:
        answer_check(e, event, now, scratch);
        break;
    default:
        end(e);
    }
}

/* --- questions ---------------------------------------------------------------------------------- */

bool pl__election_is_leader(const struct pl_election *e, struct pl_now now)
{
    return e->leading && !e->lost && now.mono_ms < deadline_ms(e);
}

bool pl__election_lost(const struct pl_election *e, struct pl_now now)
{
    return e->lost || (e->leading && now.mono_ms >= deadline_ms(e));
}

void pl__election_resign(struct pl_election *e)
{
    bool held = e->leading;

    if (e->resigning || e->state == ELECTION_ENDED)
        return;
    e->resigning = true;
    e->leading = false;
    if (in_flight(e))
        return;
    if (held)
        enter(e, ELECTION_CHECKING);
    else
        end(e);
}

bool pl__election_finished(const struct pl_election *e)
{
    return e->state == ELECTION_ENDED || e->lost;
}

struct pl_str pl__election_holder(const struct pl_election *e)
{
    return e->lease.holder;
}

const char *pl__election_problem(const struct pl_election *e, int *status)
{
    *status = e->problem[0] ? e->problem_status : 0;
    return e->problem[0] ? e->problem : NULL;
}
