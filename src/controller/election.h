/* controller/election.h - who may write: leader election by Lease.
 *
 * A state machine without clock or socket. It hands out at most one request at a time
 * (pl__election_next), takes its answer (pl__election_answer), and says when it wants to be asked
 * again (pl__election_due_ms). It behaves as client-go's elector does, with two differences that only
 * make it stricter: the renew deadline counts from the moment the last successful renewal was *sent*,
 * and a leader that reads another holder stops at once.
 *
 * What always holds:
 *  1. Whether a Lease has run out is judged by how long we saw no change of it, on the monotonic
 *     clock. The times inside a Lease are written for people and never compared with a clock, so
 *     neither our wall clock nor that of another candidate can cost or give leadership.
 *  2. Leading ends `renew_deadline_ms` after the last successful renewal was sent, whatever is in
 *     flight; others wait `lease_duration_ms`, which is longer, from the moment they saw it.
 *  3. Every write carries the resourceVersion that was read: of two that want it, one gets a 409.
 *  4. Labels, annotations, owners and finalizers that others put on the Lease stay. */
#ifndef PL_CONTROLLER_ELECTION_H
#define PL_CONTROLLER_ELECTION_H

#include "base/error.h"
#include "controller/controller.h"

/* How the text of ACTION_STOP begins when leadership was lost: the program exits with 1, not 2. */
#define PL_ELECTION_LOST "leader election lost"

/* The Lease as last read or written. Everything in it lives in the election's own arena. */
struct pl_lease {
    struct pl_str resource_version;
    struct pl_str holder;
    struct pl_str acquire_time,
        renew_time; /* as text: compared and written back, never computed with */
    int64_t duration_s;
    int64_t transitions;
    struct pl_str labels, annotations, owners,
        finalizers; /* JSON as it stood there; empty: absent */
};

enum pl_election_state {
    ELECTION_WAITING,   /* for the next try */
    ELECTION_RENEWING,  /* PUT in flight, with the Lease we know */
    ELECTION_READING,   /* GET in flight */
    ELECTION_CREATING,  /* POST in flight */
    ELECTION_TAKING,    /* PUT in flight, with the Lease just read */
    ELECTION_CHECKING,  /* GET in flight, to give it up */
    ELECTION_GIVING_UP, /* PUT in flight, to give it up */
    ELECTION_ENDED,     /* lost or given up: no more requests */
};

struct pl_election {
    const char *namespace_, *name, *identity; /* borrowed from the options */
    uint64_t lease_duration_ms, renew_deadline_ms, retry_period_ms;
    enum pl_election_state state;
    bool wants_request; /* the state's request has not been handed out yet */
    bool leading;
    bool lost;
    bool resigning;
    uint64_t due_ms;     /* WAITING: the next try */
    uint64_t sent_ms;    /* when the request in flight was handed out */
    uint64_t renewed_ms; /* when the last successful write was sent */
    uint64_t seen_ms;    /* when we last saw the record change */
    uint64_t random;     /* for jitter */
    struct pl_arena memory;
    struct pl_lease lease; /* all empty: none was ever seen, or it is gone */
    int problem_status;
    char problem[256];
};

/* Ready for its first try. Strings of `options` are borrowed; what is 0 there means 60 s, 40 s, 5 s. */
void pl__election_init(struct pl_election *e, const struct pl_controller_options *options,
                       struct pl_now now);

/* Drops the memory it holds. Not the Lease: that is pl__election_resign(). */
void pl__election_release(struct pl_election *e);

/* When to ask pl__election_next() again though no answer came; UINT64_MAX: never. */
uint64_t pl__election_due_ms(const struct pl_election *e);

/* True with the next request in `out` (type, method, path, body, timeout; server 0; no id), whose
 * strings are in `arena`. Its answer must come to pl__election_answer() before another is handed out.
 * False: nothing to ask now. Notices a passed renew deadline. */
bool pl__election_next(struct pl_election *e, struct pl_now now, struct pl_arena *arena,
                       struct pl_action *out);

/* The answer to the request handed out last. `scratch` is for reading it. */
void pl__election_answer(struct pl_election *e, const struct pl_event *event, struct pl_now now,
                         struct pl_arena *scratch);

/* Whether we may write at this moment. Ask just before each write: it is the fence. */
bool pl__election_is_leader(const struct pl_election *e, struct pl_now now);

/* We led, and do not any more: end the process. */
bool pl__election_lost(const struct pl_election *e, struct pl_now now);

/* Shutdown: stop leading now, then give the Lease back so that the next one need not wait. Call it
 * when all guarded work has ended. */
void pl__election_resign(struct pl_election *e);

/* Nothing is left to send or to wait for, after pl__election_resign() or a loss. */
bool pl__election_finished(const struct pl_election *e);

/* Who holds the Lease as far as we know; empty: nobody, or not known. For logs. Until the next answer. */
struct pl_str pl__election_holder(const struct pl_election *e);

/* Why the last try failed for another reason than that somebody else leads, for people: "lease
 * default/plimsoll: 403: ..."; NULL when it did not. `*status` is the HTTP status, 0 without one. */
const char *pl__election_problem(const struct pl_election *e, int *status);

#endif
