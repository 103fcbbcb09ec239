/* What goes wrong. The seed picks which kinds of fault a run has at all: a run with everything at once would
 * never get anywhere near the rare combinations of two. */
#include "sim/sim.h"

static struct process *some_process(struct sim *sim)
{
    struct process *alive[PROCESSES_MAX];
    size_t count = 0;

    for (int i = 0; i < sim->process_count; i++) {
        if (sim->processes[i]->alive && !sim->processes[i]->stopping)
            alive[count++] = sim->processes[i];
    }
    return count ? alive[prng_below(&sim->random, count)] : NULL;
}

static struct machine *some_machine(struct sim *sim)
{
    struct cluster *cl = &sim->clusters[prng_below(&sim->random, (size_t)sim->cluster_count)];
    struct machine *found = NULL;
    size_t seen = 0;

    for (struct machine *m = cl->machines; m; m = m->next) {
        if (m->o && m->leaving == STAYS && prng_one_in(&sim->random, ++seen))
            found = m;
    }
    return found;
}

/* --- of our own process ------------------------------------------------------------------------------- */

static void crash(struct sim *sim)
{
    struct process *p = some_process(sim);

    if (p && sim->faults.crashes)
        process_crash(p);
}

static void freeze(struct sim *sim)
{
    struct process *p = some_process(sim);

    if (!p || !sim->faults.freezes)
        return;
    p->frozen_until_ms = sim->now.mono_ms + sim_between(sim, 500, 3 * LEASE_MS);
    sim_log(sim, "%s stands still until %" PRIu64, p->identity, p->frozen_until_ms / 1000);
}

static void hand_over(struct sim *sim)
{
    int alive = 0;

    if (!sim->faults.handovers)
        return;
    for (int i = 0; i < sim->process_count; i++)
        alive += sim->processes[i]->alive;
    if (alive < 2) {
        process_start(sim);
        return;
    }
    struct process *p = some_process(sim);
    if (p && sim_percent(sim, 50))
        process_shut_down(p);
    else if (p)
        p->frozen_until_ms = sim->now.mono_ms + sim_between(sim, LEASE_MS, 2 * LEASE_MS);
}

static void clock_jump(struct sim *sim)
{
    if (!sim->faults.jumps)
        return;
    int64_t by = (int64_t)sim_between(sim, 1, 40 * 60) * 1000;
    /* Never further back than it went ahead: objects must not come from the future for hours. */
    if (sim->jumped_ms > 0 && sim_percent(sim, 60))
        by = -(int64_t)sim_between(sim, 1, (uint64_t)sim->jumped_ms);
    sim->jumped_ms += by;
    sim->now.wall_ms += by;
    sim_log(sim, "the wall clock jumps by %" PRId64 " ms", by);
}

/* --- of the API servers ------------------------------------------------------------------------------- */

static void outage(struct sim *sim)
{
    struct server *s = &sim->servers[prng_below(&sim->random, (size_t)sim->cluster_count + 1)];
    uint64_t until = sim->now.mono_ms + sim_between(sim, 2000, s->index ? 120000 : 30000);

    if (!sim->faults.outages)
        return;
    if (s->index && sim_percent(sim, 20))
        until += 6 * 60 * 1000; /* past the grace period */
    if (sim_percent(sim, 50))
        s->refuses_until_ms = until;
    else
        s->hangs_until_ms = until;
    sim_log(sim, "server %d is out until %" PRIu64, s->index, until / 1000);
}

static void expire(struct sim *sim)
{
    struct server *s = &sim->servers[prng_below(&sim->random, (size_t)sim->cluster_count + 1)];

    if (!sim->faults.expiries)
        return;
    if (sim_percent(sim, 50)) {
        api_compact(s, sim_percent(sim, 50));
        sim_log(sim, "server %d forgets its history", s->index);
    } else {
        watches_cut(s);
        sim_log(sim, "server %d cuts its watches", s->index);
    }
}

/* --- of Machines and etcd ------------------------------------------------------------------------------ */

static void fall_ill(struct sim *sim)
{
    struct machine *m = some_machine(sim);

    if (!m || !sim->faults.disease || m->phase != PHASE_RUN)
        return;
    switch (prng_below(&sim->random, 3)) {
    case 0:
        m->vm_up = false;
        break;
    case 1:
        m->etcd_bad = true;
        break;
    default:
        m->pod_bad = true;
        break;
    }
    m->repaired_ms = sim_percent(sim, 40) ? sim->now.mono_ms + sim_between(sim, 5000, 200000) : 0;
    sim_log(sim, "Machine %s falls ill: vm %d etcd %d pod %d, %s", m->name, m->vm_up, !m->etcd_bad,
            !m->pod_bad, m->repaired_ms ? "for a while" : "for good");
    machine_ill(sim, m);
}

static void unhang(struct sim *sim, void *what)
{
    struct cluster *cl = what;

    for (int i = 0; i < cl->etcd.member_count; i++)
        cl->etcd.members[i].hung = false;
    etcd_settle(sim, cl);
}

static void etcd_trouble(struct sim *sim)
{
    struct cluster *cl = &sim->clusters[prng_below(&sim->random, (size_t)sim->cluster_count)];

    if (!sim->faults.etcd_trouble || !cl->etcd.member_count)
        return;
    struct member *m = &cl->etcd.members[prng_below(&sim->random, (size_t)cl->etcd.member_count)];
    if (!m->listed || !m->up)
        return;
    switch (prng_below(&sim->random, 3)) {
    case 0:
        m->hung = true;
        sim_after(sim, sim_between(sim, 2000, 60000), unhang, cl);
        break;
    case 1:
        m->alarm = !m->alarm;
        break;
    default:
        cl->etcd.leader = 0;
        cl->etcd.election_ms = sim->now.mono_ms;
        break;
    }
    sim_log(sim, "etcd %s: %s hung %d alarm %d; leader %" PRIx64, cl->name, m->node, m->hung,
            m->alarm, cl->etcd.leader);
    etcd_settle(sim, cl);
}

/* --- of people ------------------------------------------------------------------------------------------ */

static void pause_set(struct sim *sim, struct cluster *cl, bool paused)
{
    struct object *o = object_find(&sim->servers[0], K_CLUSTER, pl__str(cl->name));

    if (!o || cl->paused == paused)
        return;
    cl->paused = paused;
    *(paused ? &cl->paused_ms : &cl->resumed_ms) = sim->now.mono_ms;
    pl__tree_set(tree_get(o->tree, "spec"), PL_STR("paused"),
                 tree_format(&sim->arena, paused ? "true" : "false"));
    object_commit(o);
    sim_log(sim, "Cluster %s is %s", cl->name, paused ? "paused" : "resumed");
}

static void somebody_pauses(struct sim *sim)
{
    struct cluster *cl = &sim->clusters[prng_below(&sim->random, (size_t)sim->cluster_count)];

    if (sim->faults.pauses)
        pause_set(sim, cl, !cl->paused);
}

static void one_less(struct sim *sim, void *what)
{
    struct cluster *cl = what;
    struct object *kcp = object_find(&sim->servers[0], K_KCP, pl__str(cl->kcp));

    if (!kcp)
        return;
    cl->replicas--;
    pl__tree_set(tree_get(kcp->tree, "spec"), PL_STR("replicas"),
                 tree_format(&sim->arena, "%d", cl->replicas));
    object_commit(kcp);
    sim_log(sim, "%s wants %d", cl->kcp, cl->replicas);
}

/* Somebody deletes a Machine by hand, and wants one less. The two do not come together: a process that hears
 * of the second alone would take another one's place for filled. */
static void somebody_deletes(struct sim *sim)
{
    struct machine *m = some_machine(sim);

    if (!m || !m->control_plane || !sim->faults.hands || m->cluster->leaving_by_hand ||
        m->cluster->replicas < 3 || m->phase != PHASE_RUN || !sim_percent(sim, 50) ||
        !sim->options.manage)
        return;
    m->cluster->leaving_by_hand = true;
    sim_log(sim, "somebody deletes Machine %s", m->name);
    object_delete(m->o);
    sim_after(sim, LAG_MS, one_less, m->cluster);
}

static void kcp_delete(struct sim *sim, void *what)
{
    struct cluster *cl = what;
    struct object *kcp = object_find(&sim->servers[0], K_KCP, pl__str(cl->kcp));

    cl->deleting = true;
    cl->deleting_ms = sim->now.mono_ms;
    cl->workers_leave = sim_percent(sim, 50);
    sim_log(sim, "somebody deletes KubeadmControlPlane %s", cl->kcp);
    object_delete(kcp);
}

/* --- all of it ------------------------------------------------------------------------------------------ */

static void tick(struct sim *sim, void *what)
{
    static void (*const all[])(struct sim *) = {
        crash,  crash,    freeze,   hand_over,    clock_jump,      outage,
        expire, fall_ill, fall_ill, etcd_trouble, somebody_pauses, somebody_deletes,
    };

    (void)what;
    if (sim->peace)
        return;
    all[prng_below(&sim->random, sizeof all / sizeof all[0])](sim);
    sim_after(sim, sim_between(sim, 500, 30000), tick, NULL);
}

void faults_start(struct sim *sim)
{
    static const uint32_t latencies[] = { 5, 50, 500 }, lags[] = { 20, 500, 4000 };
    struct faults *f = &sim->faults;

    *f = (struct faults){
        .request_percent = sim_percent(sim, 50) ? (int)sim_between(sim, 1, 20) : 0,
        .lost_percent = sim_percent(sim, 50) ? (int)sim_between(sim, 1, 30) : 0,
        .latency_ms = latencies[prng_below(&sim->random, 3)],
        .watch_lag_ms = lags[prng_below(&sim->random, 3)],
        .crashes = sim_percent(sim, 50),
        .freezes = sim_percent(sim, 30),
        .handovers = sim_percent(sim, 40),
        .jumps = sim_percent(sim, 15),
        .expiries = sim_percent(sim, 30),
        .outages = sim_percent(sim, 30),
        .disease = sim_percent(sim, 85),
        .etcd_trouble = sim_percent(sim, 40),
        .pauses = sim_percent(sim, 15),
        .hands = sim_percent(sim, 30),
    };
    sim->peace = false;
    for (int i = 0; i < sim->cluster_count && sim->options.manage; i++) {
        if (sim_percent(sim, 15))
            sim_after(sim, sim_between(sim, 10000, 8 * 60 * 1000), kcp_delete, &sim->clusters[i]);
    }
    sim_after(sim, sim_between(sim, 1000, 30000), tick, NULL);
}

/* How near it is to being replaced, whatever happens to it. */
static int urgency(struct sim *sim, const struct machine *m)
{
    const struct object *kcp = object_find(&sim->servers[0], K_KCP, pl__str(m->cluster->kcp));
    struct pl_str record =
        kcp ? tree_text(tree_at(kcp->tree, "metadata", "annotations", IN_PROGRESS, NULL))
            : PL_STR("");
    struct pl_str name = pl__str_format(&sim->scratch, "\"%s\"", m->name);

    return object_deleting(m->o) ? 3 : pl__str_contains(record, name) ? 2 : m->marked;
}

/* Whether etcd would let another one join, if one has to. */
static bool can_join(const struct cluster *cl)
{
    int voters = etcd_voters(&cl->etcd);
    bool joins = control_plane_count(cl) < cl->replicas;

    for (const struct machine *m = cl->machines; m; m = m->next)
        joins |= m->o && m->control_plane && m->phase < PHASE_PROMOTE;
    return etcd_has_quorum(&cl->etcd) &&
           (!joins || etcd_voters_up(&cl->etcd) >= (voters + 1) / 2 + 1);
}

static void etcd_mend(struct sim *sim, struct cluster *cl)
{
    for (int i = 0; i < cl->etcd.member_count; i++)
        cl->etcd.members[i].hung = cl->etcd.members[i].alarm = false;
    for (struct machine *m = cl->machines; m && !cl->external_etcd; m = m->next) {
        if (m->o && m->control_plane && m->leaving != VM_GONE && !can_join(cl))
            machine_mend(sim, m);
    }
    etcd_settle(sim, cl);
}

/* Whether it cannot be left to us: then it gets well again. */
static bool needs_mending(struct sim *sim, const struct machine *m, int going, int deleted)
{
    const struct cluster *cl = m->cluster;
    int count = control_plane_count(cl);
    bool again = tree_at(m->o->tree, "metadata", "annotations", REMEDIATION_FOR, NULL) != NULL;

    if (m->repaired_ms)
        return true;
    if (!m->control_plane || !machine_is_bad(m))
        return false;
    if (object_deleting(m->o))
        return deleted > 1; /* two that are going would wait for each other */
    return count <= 1 || going >= (count - 1) / 2 || !sim->options.manage ||
           (again && cl->max_retry >= 0);
}

/* What is left ill has to be replaced by us, and may be at all: not the last one, and no more than etcd can
 * do without. Those that are on their way out already come first. */
static void cluster_mend(struct sim *sim, struct cluster *cl)
{
    int going = 0, deleted = 0;

    for (const struct machine *m = cl->machines; m; m = m->next)
        deleted += m->o && m->control_plane && object_deleting(m->o);
    for (int round = 3; round >= 0; round--) {
        for (struct machine *m = cl->machines; m; m = m->next) {
            if (!m->o || urgency(sim, m) != round)
                continue;
            if (needs_mending(sim, m, going, deleted))
                machine_mend(sim, m);
            if (m->control_plane && (round || machine_is_bad(m)))
                going++;
        }
    }
    etcd_mend(sim, cl);
    cl->workers_leave = cl->deleting;
    pause_set(sim, cl, false);
}

void people_help(struct sim *sim)
{
    for (int i = 0; i < sim->cluster_count; i++) {
        struct cluster *cl = &sim->clusters[i];
        bool stuck = false;
        for (const struct machine *m = cl->machines; m; m = m->next)
            stuck |= m->o && m->control_plane && m->leaving == AT_HOOK &&
                     sim->now.mono_ms - m->since_ms > 15 * 60 * 1000;
        for (struct machine *m = cl->machines; m && stuck; m = m->next) {
            if (m->o && m->control_plane && m->leaving == STAYS && machine_is_bad(m))
                machine_mend(sim, m);
        }
    }
}

void faults_end(struct sim *sim)
{
    sim->peace = true;
    sim_log(sim, "peace");
    for (int i = 0; i < sim->process_count; i++) {
        if (sim->processes[i]->frozen_until_ms > sim->now.mono_ms)
            sim->processes[i]->frozen_until_ms = sim->now.mono_ms;
    }
    for (int i = 0; i <= sim->cluster_count; i++)
        sim->servers[i].refuses_until_ms = sim->servers[i].hangs_until_ms = 0;
    for (int i = 0; i < sim->cluster_count; i++)
        cluster_mend(sim, &sim->clusters[i]);
}

bool fault_hits(struct call *call, bool *after)
{
    struct sim *sim = call->server->sim;
    bool changes = call->type == CALL_ETCD ? call->etcd_call != ETCD_OBSERVE
                                           : strcmp(call->method, "GET") != 0;

    *after = false;
    if (sim->peace)
        return false;
    if (changes && sim_percent(sim, sim->faults.lost_percent)) {
        *after = true;
        return true;
    }
    return sim_percent(sim, sim->faults.request_percent);
}
