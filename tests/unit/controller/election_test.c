/* Leader election against a Lease in memory: candidates, crashes, clocks, conflicts, slow answers. */
#include "test.h"

#include "base/time.h"
#include "controller/election.h"

static struct pl_arena arena;

/* --- the server: one Lease, optimistic concurrency, six digits or 400 ----------------------------- */

struct record {
    struct pl_str name, namespace_, version, holder, acquired, renewed, label;
    int64_t duration, transitions;
};

static const struct pl_field record_fields[] = {
    PL_FIELD("metadata.name", F_STR, struct record, name),
    PL_FIELD("metadata.namespace", F_STR, struct record, namespace_),
    PL_FIELD("metadata.resourceVersion", F_STR, struct record, version),
    PL_FIELD("metadata.labels.team", F_STR, struct record, label),
    PL_FIELD("spec.holderIdentity", F_STR, struct record, holder),
    PL_FIELD("spec.leaseDurationSeconds", F_INT, struct record, duration),
    PL_FIELD("spec.acquireTime", F_STR, struct record, acquired),
    PL_FIELD("spec.renewTime", F_STR, struct record, renewed),
    PL_FIELD("spec.leaseTransitions", F_INT, struct record, transitions),
};
static PL_SHAPE(record_shape, struct record, record_fields);

static struct {
    bool exists;
    uint64_t version;
    struct record record;
    int writes;
    int down; /* HTTP status for everything; -1: no answer */
} server;

static bool is_micro(struct pl_str text)
{
    int64_t ms;

    return text.len == 27 && text.ptr[19] == '.' && pl__time_parse(text, &ms);
}

static void server_reset(void)
{
    memset(&server, 0, sizeof server);
    server.version = 100;
}

static struct pl_event answer_status(int status, const char *message)
{
    return (struct pl_event){
        .type = EVENT_ANSWER,
        .status = status,
        .retry_after_s = -1,
        .body = pl__str_format(&arena, "{\"kind\":\"Status\",\"message\":\"%s\",\"code\":%d}",
                               message, status),
    };
}

static struct pl_event answer_lease(int status)
{
    const struct record *r = &server.record;
    struct pl_event event = { .type = EVENT_ANSWER, .status = status, .retry_after_s = -1 };

    event.body = pl__str_format(
        &arena,
        "{\"kind\":\"Lease\",\"apiVersion\":\"coordination.k8s.io/v1\",\"metadata\":{\"name\":"
        "\"plimsoll\",\"namespace\":\"sys\",\"uid\":\"u\",\"resourceVersion\":\"%" PRIu64
        "\",\"labels\":{\"team\":\"%.*s\"},\"managedFields\":[{\"manager\":\"x\"}]},\"spec\":{"
        "\"holderIdentity\":\"%.*s\",\"leaseDurationSeconds\":%" PRId64
        ",\"acquireTime\":\"%.*s\",\"renewTime\":\"%.*s\",\"leaseTransitions\":%" PRId64 "}}",
        server.version, PL_STR_ARG(r->label), PL_STR_ARG(r->holder), r->duration,
        PL_STR_ARG(r->acquired), PL_STR_ARG(r->renewed), r->transitions);
    return event;
}

static struct pl_event server_write(const struct pl_action *a)
{
    struct record r = { .duration = 0 };
    struct pl_json j;
    struct pl_error *err = NULL;
    bool creates = strcmp(a->method, "POST") == 0;
    uint64_t version = 0;

    pl__json_init(&j, a->body, PL_STR("body"), &arena, 0, &err);
    CHECK(pl__json_decode(&j, &record_shape, &r) == 0);
    CHECK_STR(r.name, "plimsoll");
    CHECK_STR(r.namespace_, "sys");
    if (!is_micro(r.acquired) || !is_micro(r.renewed) || r.duration <= 0)
        return answer_status(400, "not a MicroTime");
    if (creates && server.exists)
        return answer_status(409, "already exists");
    if (creates && r.version.len)
        return answer_status(500, "resourceVersion should not be set");
    if (!creates && (!pl__str_to_u64(r.version, &version) || version != server.version))
        return answer_status(409, "the object has been modified");
    server.exists = true;
    /* What changes nothing is not written. */
    bool same = pl__str_equal(r.renewed, server.record.renewed) &&
                pl__str_equal(r.holder, server.record.holder);
    CHECK(!same);
    server.version++;
    server.record = r;
    server.writes++;
    return answer_lease(creates ? 201 : 200);
}

static struct pl_event server_do(const struct pl_action *a)
{
    CHECK(a->type == ACTION_REQUEST && a->server == 0 && a->timeout_ms > 0);
    if (server.down > 0)
        return answer_status(server.down, "down");
    if (server.down < 0)
        return (struct pl_event){ .type = EVENT_ANSWER, .error = PL_STR("connect: refused") };
    if (strcmp(a->method, "POST") == 0) {
        CHECK_STR(a->path, "/apis/coordination.k8s.io/v1/namespaces/sys/leases");
        return server_write(a);
    }
    CHECK_STR(a->path, "/apis/coordination.k8s.io/v1/namespaces/sys/leases/plimsoll");
    if (!server.exists)
        return answer_status(404, "not found");
    return strcmp(a->method, "GET") == 0 ? answer_lease(200) : server_write(a);
}

/* --- candidates ----------------------------------------------------------------------------------- */

struct candidate {
    struct pl_election e;
    int64_t wall_offset_ms;
    uint64_t latency_ms; /* half before, half after the server acted */
    bool dead;
    bool cut; /* what it sends arrives; no answer comes back, nor anything after its timeout */
    /* In flight. */
    bool busy, acted;
    uint64_t acts_at, answers_at, times_out_at;
    struct pl_action action;
    struct pl_event answer;
    int requests;
};

static uint64_t mono;

static struct pl_now now_of(const struct candidate *c)
{
    return (struct pl_now){ mono, 1794708000000 + (int64_t)mono + c->wall_offset_ms };
}

static void candidate_init(struct candidate *c, const char *identity, uint64_t seed)
{
    struct pl_controller_options options = { .lease_namespace = "sys",
                                             .lease_name = "plimsoll",
                                             .identity = identity,
                                             .lease_duration_ms = 15000,
                                             .renew_deadline_ms = 10000,
                                             .retry_period_ms = 2000,
                                             .seed = seed };

    memset(c, 0, sizeof *c);
    pl__election_init(&c->e, &options, now_of(c));
}

static void candidate_send(struct candidate *c)
{
    if (c->busy || !pl__election_next(&c->e, now_of(c), &arena, &c->action))
        return;
    c->requests++;
    c->busy = true;
    c->acted = false;
    c->acts_at = mono + c->latency_ms / 2;
    c->answers_at = mono + c->latency_ms;
    c->times_out_at = mono + c->action.timeout_ms;
}

static void candidate_receive(struct candidate *c)
{
    struct pl_event timeout = { .type = EVENT_ANSWER, .error = PL_STR("timed out") };

    if (!c->busy)
        return;
    if (!c->acted && mono >= c->acts_at) {
        c->answer = server_do(&c->action);
        c->acted = true;
    }
    bool answered = c->acted && !c->cut && mono >= c->answers_at;
    if (!answered && mono < c->times_out_at)
        return;
    c->busy = false;
    pl__election_answer(&c->e, answered ? &c->answer : &timeout, now_of(c), &arena);
}

static void candidate_turn(struct candidate *c)
{
    if (c->dead)
        return;
    candidate_receive(c);
    candidate_send(c);
    candidate_receive(c);
    CHECK(c->busy || pl__election_due_ms(&c->e) > mono || pl__election_due_ms(&c->e) == 0);
}

static bool leads(const struct candidate *c)
{
    return !c->dead && pl__election_is_leader(&c->e, now_of(c));
}

/* Lets time pass, in steps of 10 ms; never may two lead. */
static void run(struct candidate *cs, size_t count, uint64_t ms)
{
    for (uint64_t end = mono + ms; mono < end; mono += 10) {
        size_t leaders = 0;
        for (size_t i = 0; i < count; i++)
            candidate_turn(&cs[i]);
        for (size_t i = 0; i < count; i++)
            leaders += leads(&cs[i]);
        if (leaders > 1)
            test_fail(__FILE__, __LINE__, "%zu leaders at %" PRIu64, leaders, mono);
    }
}

/* Until this one leads; the time it took, or -1 after a minute and a half. */
static int64_t run_until_leads(struct candidate *cs, size_t count, size_t which)
{
    uint64_t start = mono;

    while (!leads(&cs[which]) && mono - start < 90000)
        run(cs, count, 10);
    return leads(&cs[which]) ? (int64_t)(mono - start) : -1;
}

static void done(struct candidate *cs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        pl__election_release(&cs[i].e);
}

static void start_two(struct candidate *cs)
{
    server_reset();
    mono += 1000;
    candidate_init(&cs[0], "host-a_1", 1);
    candidate_init(&cs[1], "host-b_2", 2);
    run(cs, 1, 100);
    CHECK(leads(&cs[0]));
}

/* --- cases ----------------------------------------------------------------------------------------- */

static void test_alone(void)
{
    struct candidate c;

    CASE("nobody there: created, leading at once");
    server_reset();
    candidate_init(&c, "host-a_1", 1);
    CHECK(!leads(&c) && pl__election_due_ms(&c.e) <= mono);
    run(&c, 1, 50);
    CHECK(leads(&c));
    CHECK_INT(c.requests, 2); /* GET, POST */
    CHECK_STR(server.record.holder, "host-a_1");
    CHECK_INT(server.record.transitions, 0);
    CHECK_INT(server.record.duration, 15);
    CHECK_STR(pl__election_holder(&c.e), "host-a_1");

    CASE("renewed every retry period with one request, acquireTime kept");
    struct pl_str acquired = server.record.acquired;
    run(&c, 1, 20000);
    CHECK(leads(&c));
    CHECK_INT(c.requests, 12);
    CHECK(pl__str_equal(acquired, server.record.acquired));
    CHECK(!pl__str_equal(acquired, server.record.renewed));
    CHECK_INT(server.record.transitions, 0);

    CASE("labels of others stay");
    server.record.label = PL_STR("blue");
    server.version++; /* so the next renewal meets a 409, reads and goes on */
    run(&c, 1, 5000);
    CHECK(leads(&c));
    CHECK_STR(server.record.label, "blue");
    run(&c, 1, 5000);
    CHECK_STR(server.record.label, "blue");
    CHECK_INT(server.record.transitions, 0);
    done(&c, 1);
}

static void test_two(void)
{
    struct candidate cs[2];

    CASE("the second waits as long as the first renews");
    start_two(cs);
    run(cs, 2, 120000);
    CHECK(leads(&cs[0]) && !leads(&cs[1]));
    CHECK(cs[1].requests >= 120 * 10 / 44 && cs[1].requests <= 120 / 2 + 1);
    CHECK_STR(pl__election_holder(&cs[1].e), "host-a_1");

    CASE("crash: taken over after one duration without change");
    cs[0].dead = true;
    int64_t took = run_until_leads(cs, 2, 1);
    CHECK(took >= 15000 - 2000 - 10 && took <= 15000 + 4400 + 100);
    CHECK_INT(server.record.transitions, 1);
    CHECK(pl__str_equal(server.record.acquired, server.record.renewed));
    done(cs, 2);

    CASE("a newcomer waits a full duration though renewTime is old");
    start_two(cs);
    run(cs, 1, 5000);
    cs[0].dead = true;
    mono += 3600 * 1000;
    candidate_init(&cs[1], "host-b_2", 2);
    took = run_until_leads(cs, 2, 1);
    CHECK(took >= 15000 && took <= 15000 + 4400 + 100);
    done(cs, 2);

    CASE("two at the same moment: one gets it");
    server_reset();
    candidate_init(&cs[0], "host-a_1", 1);
    candidate_init(&cs[1], "host-b_2", 2);
    cs[0].latency_ms = cs[1].latency_ms = 40;
    run(cs, 2, 1000);
    CHECK(leads(&cs[0]) != leads(&cs[1]));
    int status;
    CHECK(!pl__election_problem(&cs[0].e, &status) && !pl__election_problem(&cs[1].e, &status));
    run(cs, 2, 60000);
    CHECK(leads(&cs[0]) != leads(&cs[1]));
    done(cs, 2);

    CASE("candidates do not knock in step");
    server_reset();
    server.exists = true;
    server.record = (struct record){ .holder = PL_STR("other"), .duration = 3600 };
    candidate_init(&cs[0], "host-a_1", 1);
    candidate_init(&cs[1], "host-b_2", 2);
    run(cs, 2, 50);
    CHECK(pl__election_due_ms(&cs[0].e) != pl__election_due_ms(&cs[1].e));
    done(cs, 2);
}

static void test_clocks(void)
{
    static const int64_t jumps_ms[] = { 3600000, -3600000, 400000000000, -1794708000000 };
    struct candidate cs[2];

    for (size_t i = 0; i < sizeof jumps_ms / sizeof jumps_ms[0]; i++) {
        CASE("the leader's wall clock jumps by %" PRId64, jumps_ms[i]);
        start_two(cs);
        run(cs, 2, 30000);
        cs[0].wall_offset_ms = jumps_ms[i];
        run(cs, 2, 60000);
        CHECK(leads(&cs[0]) && !leads(&cs[1]));
        done(cs, 2);

        CASE("the candidate's wall clock jumps by %" PRId64, jumps_ms[i]);
        start_two(cs);
        run(cs, 2, 30000);
        cs[1].wall_offset_ms = jumps_ms[i];
        run(cs, 2, 60000);
        CHECK(leads(&cs[0]) && !leads(&cs[1]));
        cs[0].dead = true;
        CHECK(run_until_leads(cs, 2, 1) >= 12000);
        done(cs, 2);
    }

    CASE("a wall clock that stands still still renews");
    start_two(cs);
    for (int i = 0; i < 6000; i++) {
        cs[0].wall_offset_ms = -(int64_t)mono;
        run(cs, 2, 10);
    }
    CHECK(leads(&cs[0]) && !leads(&cs[1]));
    done(cs, 2);
}

static void test_faults(void)
{
    struct candidate cs[2];
    int status;

    CASE("a short outage is survived");
    start_two(cs);
    run(cs, 2, 4000);
    server.down = 503;
    run(cs, 2, 7000);
    CHECK(leads(&cs[0]));
    CHECK(pl__election_problem(&cs[0].e, &status) && status == 503);
    server.down = 0;
    run(cs, 2, 3000);
    CHECK(leads(&cs[0]) && !pl__election_problem(&cs[0].e, &status));
    CHECK_INT(server.record.transitions, 0);

    CASE("a long one ends leadership at the deadline");
    server.down = 500;
    run(cs, 2, 9990 - 2000);
    CHECK(leads(&cs[0]));
    run(cs, 2, 2100);
    CHECK(!leads(&cs[0]) && pl__election_lost(&cs[0].e, now_of(&cs[0])));
    CHECK(pl__election_finished(&cs[0].e));
    int sent = cs[0].requests;
    server.down = 0;
    CHECK(run_until_leads(cs, 2, 1) > 0);
    CHECK_INT(cs[0].requests, sent);
    CHECK_INT(server.record.transitions, 1);
    done(cs, 2);

    CASE("nobody answers");
    start_two(cs);
    server.down = -1;
    run(cs, 2, 12100);
    CHECK(pl__election_lost(&cs[0].e, now_of(&cs[0])));
    done(cs, 2);

    CASE("throttled and refused are failed tries");
    static const int refusals[] = { 429, 400, 401, 403, 422 };
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        server_reset();
        server.down = refusals[i];
        candidate_init(&cs[0], "host-a_1", 1);
        run(cs, 1, 30000);
        CHECK(!leads(&cs[0]) && !pl__election_lost(&cs[0].e, now_of(&cs[0])));
        CHECK(cs[0].requests >= 6 && cs[0].requests <= 15);
        CHECK(pl__election_problem(&cs[0].e, &status) && status == refusals[i]);
        server.down = 0;
        CHECK(run_until_leads(cs, 1, 0) >= 0);
        done(cs, 1);
    }

    CASE("the Lease is deleted under the leader");
    start_two(cs);
    run(cs, 2, 5000);
    server.exists = false;
    server.version += 10;
    run(cs, 2, 5000);
    CHECK(server.exists);
    CHECK(leads(&cs[0]) != leads(&cs[1]) || pl__election_lost(&cs[0].e, now_of(&cs[0])));
    done(cs, 2);

    CASE("someone else is written in by hand: the leader stops when it reads that");
    start_two(cs);
    run(cs, 1, 5000);
    server.record.holder = PL_STR("host-b_2");
    server.version++;
    run(cs, 1, 2100);
    CHECK(!leads(&cs[0]) && pl__election_lost(&cs[0].e, now_of(&cs[0])));
    done(cs, 2);

    CASE("an answer that is no Lease");
    server_reset();
    candidate_init(&cs[0], "host-a_1", 1);
    candidate_send(&cs[0]);
    struct pl_event html = { .type = EVENT_ANSWER, .status = 200, .body = PL_STR("<html>") };
    pl__election_answer(&cs[0].e, &html, now_of(&cs[0]), &arena);
    CHECK(!leads(&cs[0]) && pl__election_due_ms(&cs[0].e) > mono);
    CHECK(pl__election_problem(&cs[0].e, &status) != NULL);
    done(cs, 1);
}

static void test_odd_records(void)
{
    static const struct {
        const char *what, *body;
        bool taken;
    } rows[] = {
        { "no spec", "{\"metadata\":{\"resourceVersion\":\"7\"}}", true },
        { "no duration",
          "{\"metadata\":{\"resourceVersion\":\"7\"},\"spec\":{\"holderIdentity\":\"x\"}}", true },
        { "nulls",
          "{\"metadata\":{\"resourceVersion\":\"7\",\"labels\":null},\"spec\":{\"holderIdentity\":"
          "null,"
          "\"acquireTime\":null}}",
          true },
        { "absurd numbers",
          "{\"metadata\":{\"resourceVersion\":\"7\"},\"spec\":{\"holderIdentity\":\"x\","
          "\"leaseDurationSeconds\":9223372036854775807,\"leaseTransitions\":9223372036854775807}}",
          false },
        { "negative numbers",
          "{\"metadata\":{\"resourceVersion\":\"7\"},\"spec\":{\"holderIdentity\":\"x\","
          "\"leaseDurationSeconds\":-5,\"leaseTransitions\":-5}}",
          true },
        { "no resourceVersion", "{\"metadata\":{},\"spec\":{}}", false },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct candidate c;
        struct pl_event got = { .type = EVENT_ANSWER,
                                .status = 200,
                                .body = pl__str(rows[i].body) };

        CASE("record with %s", rows[i].what);
        candidate_init(&c, "host-a_1", 1);
        candidate_send(&c);
        pl__election_answer(&c.e, &got, now_of(&c), &arena);
        bool sent = pl__election_next(&c.e, now_of(&c), &arena, &c.action);
        CHECK_INT(sent, rows[i].taken);
        if (sent) {
            CHECK(strcmp(c.action.method, "PUT") == 0);
            CHECK(pl__str_contains(c.action.body, PL_STR("\"resourceVersion\":\"7\"")));
        }
        done(&c, 1);
    }
}

static void test_slow(void)
{
    struct candidate cs[2];

    CASE("slow answers: leading counts from the sending");
    start_two(cs);
    cs[0].latency_ms = 3500;
    run(cs, 2, 60000);
    CHECK(leads(&cs[0]));
    done(cs, 2);

    CASE("answers slower than the timeout cost leadership, never two leaders");
    start_two(cs);
    run(cs, 2, 3000);
    cs[0].cut = true; /* writes arrive, their answers do not */
    run(cs, 2, 12100);
    CHECK(pl__election_lost(&cs[0].e, now_of(&cs[0])));
    CHECK(run_until_leads(cs, 2, 1) >= 0);
    done(cs, 2);

    CASE("a creation whose answer is lost is found again");
    server_reset();
    candidate_init(&cs[0], "host-a_1", 1);
    candidate_send(&cs[0]);
    candidate_receive(&cs[0]);
    candidate_send(&cs[0]);
    CHECK(strcmp(cs[0].action.method, "POST") == 0);
    cs[0].cut = true;
    run(cs, 1, 5010);
    CHECK(!leads(&cs[0]) && server.exists);
    cs[0].cut = false;
    CHECK(run_until_leads(cs, 1, 0) >= 0);
    CHECK_INT(server.record.transitions, 0);
    done(cs, 1);

    CASE("an answer after the deadline does not make a leader");
    server_reset();
    candidate_init(&cs[0], "host-a_1", 1);
    candidate_send(&cs[0]);
    candidate_receive(&cs[0]);
    candidate_send(&cs[0]);
    struct pl_event late = server_do(&cs[0].action);
    mono += 10000;
    pl__election_answer(&cs[0].e, &late, now_of(&cs[0]), &arena);
    CHECK(!leads(&cs[0]));
    cs[0].busy = false;
    CHECK(run_until_leads(cs, 1, 0) >= 0);
    done(cs, 1);

    CASE("the fence holds without being asked to look");
    start_two(cs);
    struct pl_now later = now_of(&cs[0]);
    later.mono_ms += 9800;
    CHECK(pl__election_is_leader(&cs[0].e, later));
    later.mono_ms += 300;
    CHECK(!pl__election_is_leader(&cs[0].e, later) && pl__election_lost(&cs[0].e, later));
    done(cs, 2);
}

static void test_release(void)
{
    struct candidate cs[2];

    CASE("released: the next one need not wait");
    start_two(cs);
    run(cs, 2, 9000);
    pl__election_resign(&cs[0].e);
    CHECK(!leads(&cs[0]) && !pl__election_finished(&cs[0].e));
    run(cs, 2, 50);
    CHECK(pl__election_finished(&cs[0].e) && !pl__election_lost(&cs[0].e, now_of(&cs[0])));
    int64_t took = run_until_leads(cs, 2, 1);
    CHECK(took >= 0 && took <= 4500);
    CHECK_INT(server.record.transitions, 1);
    done(cs, 2);

    CASE("what is written then");
    start_two(cs);
    pl__election_resign(&cs[0].e);
    run(cs, 1, 50);
    CHECK_STR(server.record.holder, "");
    CHECK_INT(server.record.duration, 1);
    CHECK_INT(server.record.transitions, 0);
    CHECK(pl__str_equal(server.record.acquired, server.record.renewed));
    done(cs, 2);

    CASE("who never led has nothing to release");
    start_two(cs);
    run(cs, 2, 5000);
    int sent = server.writes;
    pl__election_resign(&cs[1].e);
    run(cs + 1, 1, 50);
    CHECK(pl__election_finished(&cs[1].e));
    CHECK_INT(server.writes, sent);
    done(cs, 2);

    CASE("asked while a renewal is in flight");
    start_two(cs);
    cs[0].latency_ms = 200;
    while (!cs[0].busy)
        run(cs, 1, 10);
    pl__election_resign(&cs[0].e);
    run(cs, 1, 1000);
    CHECK(pl__election_finished(&cs[0].e));
    CHECK_STR(server.record.holder, "");
    done(cs, 2);

    CASE("asked while the first write is in flight");
    server_reset();
    candidate_init(&cs[0], "host-a_1", 1);
    cs[0].latency_ms = 200;
    while (cs[0].requests < 2)
        run(cs, 1, 10);
    pl__election_resign(&cs[0].e);
    run(cs, 1, 1000);
    CHECK(pl__election_finished(&cs[0].e));
    CHECK_STR(server.record.holder, "");
    done(cs, 1);

    CASE("asked while the leader reads after a 409");
    start_two(cs);
    run(cs, 1, 500);
    cs[0].latency_ms = 200;
    server.version++;
    sent = cs[0].requests;
    while (cs[0].requests < sent + 2)
        run(cs, 1, 10);
    pl__election_resign(&cs[0].e);
    run(cs, 1, 1000);
    CHECK(pl__election_finished(&cs[0].e));
    CHECK_STR(server.record.holder, "");
    done(cs, 2);

    CASE("what is no longer ours is left alone");
    start_two(cs);
    server.record.holder = PL_STR("host-b_2");
    server.version++;
    sent = server.writes;
    pl__election_resign(&cs[0].e);
    run(cs, 1, 50);
    CHECK(pl__election_finished(&cs[0].e));
    CHECK_INT(server.writes, sent);
    done(cs, 2);

    CASE("a server that is gone does not hold up the end");
    start_two(cs);
    server.down = -1;
    pl__election_resign(&cs[0].e);
    run(cs, 1, 50);
    CHECK(pl__election_finished(&cs[0].e));
    done(cs, 2);

    CASE("before the first try");
    candidate_init(&cs[0], "host-a_1", 1);
    pl__election_resign(&cs[0].e);
    CHECK(pl__election_finished(&cs[0].e));
    CHECK(!pl__election_next(&cs[0].e, now_of(&cs[0]), &arena, &cs[0].action));
    CHECK(pl__election_due_ms(&cs[0].e) == UINT64_MAX);
    done(cs, 1);
}

/* Three candidates, latency, outages and crashes from a seed; run() checks that never two lead. */
static void test_storm(uint64_t seed)
{
    struct candidate cs[3];
    uint64_t r = seed * 2654435761u + 1;
    static const char *const names[] = { "a_1", "b_2", "c_3" };

    CASE("storm %" PRIu64, seed);
    pl__arena_reset(&arena);
    server_reset();
    for (size_t i = 0; i < 3; i++)
        candidate_init(&cs[i], names[i], seed + i);
    for (int i = 0; i < 200; i++) {
        r = r * UINT64_C(6364136223846793005) + 1442695040888963407;
        struct candidate *c = &cs[(r >> 33) % 3];
        c->latency_ms = (r >> 40) % 8 == 0 ? (r >> 20) % 9000 : (r >> 20) % 300;
        c->wall_offset_ms = (int64_t)((r >> 13) % 1000000) - 500000;
        c->cut = (r >> 50) % 16 == 0;
        server.down = (r >> 56) % 16 == 0 ? 503 : (r >> 56) % 16 == 1 ? -1 : 0;
        run(cs, 3, (r >> 45) % 4000);
        for (size_t k = 0; k < 3; k++) {
            if (!pl__election_lost(&cs[k].e, now_of(&cs[k])))
                continue;
            pl__election_release(&cs[k].e);
            candidate_init(&cs[k], names[k], r);
        }
    }
    server.down = 0;
    for (size_t i = 0; i < 3; i++) {
        cs[i].latency_ms = 10;
        cs[i].cut = false;
    }
    run(cs, 3, 60000);
    CHECK_INT(leads(&cs[0]) + leads(&cs[1]) + leads(&cs[2]), 1);
    done(cs, 3);
}

int main(void)
{
    pl__arena_init(&arena, NULL, 0);
    mono = 5000;
    test_alone();
    test_two();
    test_clocks();
    test_faults();
    test_odd_records();
    test_slow();
    test_release();
    for (uint64_t seed = 1; seed <= 40; seed++)
        test_storm(seed);
    pl__arena_release(&arena);
    return test_end("election");
}
