/* Membership, leadership and what is refused are as measured on real servers (etcd 3.4 and 3.5). There is no log and no data: what matters here is who counts and who leads. */
#include <stdlib.h>

#include "sim/sim.h"

static struct pl_str const no_leader = PL_STR_INIT("etcdserver: no leader");
static struct pl_str const timed_out = PL_STR_INIT("etcdserver: request timed out");

static bool votes(const struct member *m)
{
    return m->listed && !m->learner;
}

static bool live(const struct member *m)
{
    return m->up && !m->hung;
}

static int quorum_of(int voters)
{
    return voters / 2 + 1;
}

struct member *etcd_member(struct etcd *e, uint64_t id)
{
    for (int i = 0; i < e->member_count; i++) {
        if (e->members[i].id == id)
            return &e->members[i];
    }
    return NULL;
}

struct member *etcd_member_of(struct etcd *e, struct pl_str node)
{
    for (int i = 0; i < e->member_count; i++) {
        if (e->members[i].listed && pl__str_equal(pl__str(e->members[i].node), node))
            return &e->members[i];
    }
    return NULL;
}

int etcd_voters(const struct etcd *e)
{
    int count = 0;

    for (int i = 0; i < e->member_count; i++)
        count += votes(&e->members[i]);
    return count;
}

int etcd_voters_up(const struct etcd *e)
{
    int count = 0;

    for (int i = 0; i < e->member_count; i++)
        count += votes(&e->members[i]) && live(&e->members[i]);
    return count;
}

bool etcd_has_quorum(const struct etcd *e)
{
    int voters = etcd_voters(e);

    return voters > 0 && etcd_voters_up(e) >= quorum_of(voters);
}

uint64_t etcd_add(struct sim *sim, struct cluster *cl, const char *node, bool learner)
{
    struct etcd *e = &cl->etcd;

    if (e->member_count == MEMBERS_MAX)
        return 0;
    struct member *m = &e->members[e->member_count++];
    *m = (struct member){ .id = prng_next(&sim->random) | 1,
                          .learner = learner,
                          .listed = true,
                          .up_ms = sim->now.mono_ms };
    snprintf(m->node, sizeof m->node, "%s", node);
    sim_log(sim, "etcd %s: member %" PRIx64 " added for %s", cl->name, m->id, node);
    return m->id;
}

bool etcd_add_learner(struct sim *sim, struct cluster *cl, const char *node)
{
    struct etcd *e = &cl->etcd;
    int voters = etcd_voters(e);

    /* Links to a quorum of what would be, itself included; one alone has all that there are. */
    if (!etcd_has_quorum(e) || etcd_voters_up(e) < (voters == 1 ? 1 : quorum_of(voters + 1)))
        return false; /* unhealthy cluster */
    for (int i = 0; i < e->member_count; i++) {
        if (e->members[i].listed && e->members[i].learner)
            return false; /* too many learner members */
    }
    return etcd_add(sim, cl, node, true) != 0;
}

bool etcd_promote(struct sim *sim, struct cluster *cl, const char *node)
{
    struct member *m = etcd_member_of(&cl->etcd, pl__str(node));

    if (!m || !m->learner || !m->named || !live(m) || !etcd_has_quorum(&cl->etcd))
        return false;
    m->learner = false;
    sim_log(sim, "etcd %s: %s promoted", cl->name, node);
    etcd_settle(sim, cl);
    return true;
}

static void removed_stops(struct sim *sim, void *what)
{
    struct cluster *cl = what;

    for (int i = 0; i < cl->etcd.member_count; i++) {
        if (!cl->etcd.members[i].listed)
            cl->etcd.members[i].up = false;
    }
    etcd_settle(sim, cl);
}

static void remove_member(struct sim *sim, struct cluster *cl, struct member *m)
{
    m->listed = false;
    sim->removals++;
    sim_log(sim, "etcd %s: member %s removed, %d voters, %d up", cl->name, m->node,
            etcd_voters(&cl->etcd), etcd_voters_up(&cl->etcd));
    sim_after(sim, 1500, removed_stops, cl);
    etcd_settle(sim, cl);
}

/* --- leading ------------------------------------------------------------------------------------------ */

static void settle_later(struct sim *sim, void *what)
{
    etcd_settle(sim, what);
}

static void elect(struct sim *sim, struct cluster *cl)
{
    struct etcd *e = &cl->etcd;
    size_t pick = prng_below(&sim->random, (size_t)etcd_voters_up(e));

    for (int i = 0; i < e->member_count; i++) {
        if (votes(&e->members[i]) && live(&e->members[i]) && pick-- == 0) {
            e->leader = e->members[i].id;
            sim_log(sim, "etcd %s: %s leads", cl->name, e->members[i].node);
            return;
        }
    }
}

void etcd_settle(struct sim *sim, struct cluster *cl)
{
    struct etcd *e = &cl->etcd;
    const struct member *leader = e->leader ? etcd_member(e, e->leader) : NULL;
    bool quorum = etcd_has_quorum(e);

    if (leader && (!quorum || !votes(leader) || !live(leader))) {
        e->leader = 0;
        e->election_ms = sim->now.mono_ms + sim_between(sim, 1000, 2000);
        sim_at(sim, e->election_ms, settle_later, cl);
    }
    if (quorum && !e->leader && sim->now.mono_ms >= e->election_ms)
        elect(sim, cl);
    if (quorum)
        e->no_quorum_since_ms = 0;
    else if (!e->no_quorum_since_ms)
        e->no_quorum_since_ms = sim->now.mono_ms;
    if (e->pending_removal && e->leader) {
        struct member *m = etcd_member(e, e->pending_removal);
        bool still = m && m->listed && sim->now.mono_ms < e->pending_until_ms;
        e->pending_removal = 0;
        if (still)
            remove_member(sim, cl, m);
    }
}

/* --- calls ------------------------------------------------------------------------------------------- */

static void fail(struct call *call, enum pl_etcd_failure failure, int code, struct pl_str text)
{
    call->etcd.failure = failure;
    call->etcd.grpc_code = code;
    call->etcd.error = text;
}

/* The first endpoint that answers; NULL with the failure set. */
static struct member *asked_member(struct call *call)
{
    struct cluster *cl = call->server->cluster;
    bool hung = false;

    for (size_t i = 0; i < call->endpoint_count; i++) {
        for (int k = 0; k < cl->etcd.member_count; k++) {
            struct member *m = &cl->etcd.members[k];
            if (!m->up || !pl__str_equal(pl__str(m->node), call->endpoints[i].node))
                continue;
            if (live(m))
                return m;
            hung = true;
        }
    }
    if (hung)
        fail(call, ETCD_TIMEOUT, 0, PL_STR("context deadline exceeded"));
    else
        fail(call, ETCD_UNREACHABLE, 0, PL_STR("connection refused"));
    return NULL;
}

static void members_list(struct call *call)
{
    struct sim *sim = call->server->sim;
    struct etcd *e = &call->server->cluster->etcd;
    struct pl_etcd_member_info *list = PL_NEW(&sim->arena, struct pl_etcd_member_info, MEMBERS_MAX);
    size_t count = 0;

    for (int i = 0; i < e->member_count; i++) {
        const struct member *m = &e->members[i];
        size_t at = count;
        if (!m->listed)
            continue;
        while (at > 0 && list[at - 1].id > m->id) {
            list[at] = list[at - 1];
            at--;
        }
        list[at] = (struct pl_etcd_member_info){
            .id = m->id,
            .name = m->named ? pl__str_copy(&sim->arena, pl__str(m->node)) : PL_STR(""),
            .is_learner = m->learner,
            .peer_url = pl__str_format(&sim->arena, "https://%s:2380", m->node),
        };
        count++;
    }
    call->etcd.members = list;
    call->etcd.member_count = count;
}

static void alarms_list(struct call *call)
{
    struct sim *sim = call->server->sim;
    struct etcd *e = &call->server->cluster->etcd;
    struct pl_etcd_alarm_info *list = PL_NEW(&sim->arena, struct pl_etcd_alarm_info, MEMBERS_MAX);
    struct pl_str *errors = PL_NEW(&sim->arena, struct pl_str, MEMBERS_MAX + 1);

    for (int i = 0; i < e->member_count; i++) {
        if (!e->members[i].alarm)
            continue;
        list[call->etcd.alarm_count++] = (struct pl_etcd_alarm_info){ e->members[i].id, 1 };
        errors[call->etcd.error_count++] =
            pl__str_format(&sim->arena, "memberID:%" PRIu64 " alarm:NOSPACE ", e->members[i].id);
    }
    call->etcd.alarms = list;
    call->etcd.errors = errors;
}

/* What the asker may know from it. */
static void view_take(struct call *call)
{
    struct etcd *e = &call->server->cluster->etcd;
    struct view *v = &call->seen;

    *v = (struct view){ .known = true,
                        .observed_ms = call->server->sim->now.mono_ms,
                        .readable = call->etcd.members_error.len == 0,
                        .leader = call->etcd.leader };
    for (size_t i = 0; i < call->etcd.member_count; i++) {
        const struct member *m = etcd_member(e, call->etcd.members[i].id);
        v->ids[v->count] = m->id;
        v->bad[v->count++] = m->learner || m->alarm || !m->named;
    }
}

static void observe(struct call *call, const struct member *m)
{
    struct cluster *cl = call->server->cluster;
    struct pl_etcd_answer *answer = &call->etcd;
    struct pl_arena *a = &call->server->sim->arena;

    answer->node = pl__str_copy(a, pl__str(m->node));
    answer->member_id = m->id;
    answer->leader = cl->etcd.leader;
    answer->version = PL_STR("3.5.21");
    answer->is_learner = m->learner;
    alarms_list(call);
    if (m->learner) {
        answer->members_error = PL_STR("etcdserver: rpc not supported for learner");
    } else if (!cl->etcd.leader) {
        answer->members_error = timed_out;
        ((struct pl_str *)(uintptr_t)answer->errors)[answer->error_count++] = no_leader;
    } else {
        members_list(call);
    }
    answer->alarms_error = answer->members_error;
    if (answer->alarms_error.len)
        answer->alarm_count = 0;
    view_take(call);
}

/* "--strict-reconfig-check", as the asked member sees it. */
static bool removal_refused(struct call *call, const struct member *asked, const struct member *m)
{
    const struct etcd *e = &call->server->cluster->etcd;
    int voters = etcd_voters(e), started = 0, connected = 0;
    uint64_t now = call->server->sim->now.mono_ms;

    if (m->learner)
        return false;
    for (int i = 0; i < e->member_count; i++) {
        const struct member *k = &e->members[i];
        started += votes(k) && k != m && k->named;
        connected += votes(k) && (k == asked || (live(k) && now - k->up_ms >= 5000));
    }
    if (started < quorum_of(voters - 1)) {
        fail(call, ETCD_REFUSED, 2,
             PL_STR("etcdserver: re-configuration failed due to not enough started members"));
        return true;
    }
    if (m != asked && !live(m))
        return false;
    if (connected - 1 >= 1 + (voters - 1) / 2)
        return false;
    fail(call, ETCD_REFUSED, 14, PL_STR("etcdserver: unhealthy cluster"));
    return true;
}

static void member_remove(struct call *call, const struct member *asked)
{
    struct sim *sim = call->server->sim;
    struct cluster *cl = call->server->cluster;
    struct member *m = etcd_member(&cl->etcd, call->member_id);

    if (asked->learner) {
        fail(call, ETCD_REFUSED, 14, PL_STR("etcdserver: rpc not supported for learner"));
    } else if (!m || !m->listed) {
        fail(call, ETCD_REFUSED, 5, PL_STR("etcdserver: member not found"));
    } else if (removal_refused(call, asked, m)) {
        sim_log(sim, "etcd %s: removal of %s refused: %.*s", cl->name, m->node,
                PL_STR_ARG(call->etcd.error));
    } else if (!cl->etcd.leader) {
        fail(call, ETCD_TIMEOUT, 0, PL_STR("context deadline exceeded"));
        check_member_removed(call, m);
        if (sim_percent(sim, 50)) {
            cl->etcd.pending_removal = m->id;
            cl->etcd.pending_until_ms = sim->now.mono_ms + 20000;
        }
    } else {
        check_member_removed(call, m);
        remove_member(sim, cl, m);
        members_list(call);
    }
}

static void move_leader(struct call *call, const struct member *asked)
{
    struct sim *sim = call->server->sim;
    struct cluster *cl = call->server->cluster;
    struct member *m = etcd_member(&cl->etcd, call->member_id);

    if (asked->id != cl->etcd.leader) {
        fail(call, ETCD_REFUSED, 9, PL_STR("etcdserver: not leader"));
    } else if (!m || !votes(m)) {
        fail(call, ETCD_REFUSED, 9, PL_STR("etcdserver: bad leader transferee"));
    } else if (!live(m)) {
        fail(call, ETCD_REFUSED, 2,
             PL_STR("etcdserver: request timed out, leader transfer took too long"));
    } else {
        check_leader_moved(call);
        cl->etcd.leader = m->id;
        sim->moves++;
        sim_log(sim, "etcd %s: leadership moved to %s", cl->name, m->node);
    }
}

void etcd_serve(struct call *call)
{
    struct sim *sim = call->server->sim;
    struct member *asked;

    call->etcd = (struct pl_etcd_answer){ 0 };
    etcd_settle(sim, call->server->cluster);
    if (!(asked = asked_member(call)))
        return;
    switch (call->etcd_call) {
    case ETCD_OBSERVE:
        observe(call, asked);
        break;
    case ETCD_MOVE_LEADER:
        move_leader(call, asked);
        break;
    case ETCD_MEMBER_REMOVE:
        member_remove(call, asked);
        break;
    case ETCD_MEMBER_ADD:
    case ETCD_MEMBER_ADD_LEARNER:
    case ETCD_MEMBER_PROMOTE:
    case ETCD_NOSPACE_RAISE:
    case ETCD_NOSPACE_CLEAR:
        sim_violated(sim, "no write outside our fields", "etcd call %d", (int)call->etcd_call);
        break;
    }
}
