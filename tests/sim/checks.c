/* What must hold.
 *
 * Safety is asked at three moments. When a write leaves a process (check_handed_out): what did that process
 * know, and may it act on it? When it arrives (check_patched and its like): is the change one that the rules
 * allow in the world as it truly is? After every step (check_always). The rules are written down here once
 * more, from semantics.md and not from the code that they watch.
 *
 * A process knows the world some time late. So what somebody else did binds it only LAG_MS later, while what
 * it did itself, or what any of ours did under its precondition, binds at once. */
#include "sim/sim.h"

#include <stdlib.h>

#include "base/time.h"

/* A deletion waits so long for members that cannot be read; timestamps are of whole seconds. */
enum { GIVE_UP_MS = 10 * 60 * 1000 - 2000 };

/* --- what is on objects ------------------------------------------------------------------------------ */

static struct pl_str annotation(const struct pl_tree *object, const char *name)
{
    return tree_text(tree_at(object, "metadata", "annotations", name, NULL));
}

static bool has_annotation(const struct pl_tree *object, const char *name)
{
    return tree_at(object, "metadata", "annotations", name, NULL) != NULL;
}

static bool has_reason(const struct object *o, const char *type, const char *reason)
{
    const struct pl_tree *c = condition_find(o, type);

    return c && tree_is(tree_get(c, "reason"), reason);
}

/* {machine, timestamp, retryCount}, as both annotations have it. */
struct record {
    bool there;
    struct pl_str machine;
    int64_t at_ms, retries;
};

static struct record record_read(struct sim *sim, struct pl_str text)
{
    struct pl_tree *t = text.len ? pl__tree_read(&sim->arena, text, NULL) : NULL;
    struct record r = { .there = t != NULL,
                        .machine = tree_text(tree_get(t, "machine")),
                        .retries = tree_int(tree_get(t, "retryCount"), -1) };

    if (t && !pl__time_parse(tree_text(tree_get(t, "timestamp")), &r.at_ms))
        r.there = false;
    return r;
}

static bool has_been(const struct sim *sim, uint64_t since_ms)
{
    return since_ms && sim->now.mono_ms - since_ms > LAG_MS;
}

static struct object *kcp_of(struct sim *sim, const struct cluster *cl)
{
    return object_find(&sim->servers[0], K_KCP, pl__str(cl->kcp));
}

/* The profile of the original takes a control plane down in one go. */
static bool in_one_go(const struct sim *sim, const struct cluster *cl)
{
    return cl->deleting && sim->profile == PL_PROFILE_CLUSTER_API_1_12;
}

/* --- when it leaves ----------------------------------------------------------------------------------- */

/* The cluster whose object or etcd it is about, or NULL. */
static struct cluster *cluster_of_call(struct call *call)
{
    struct sim *sim = call->server->sim;

    if (call->type == CALL_ETCD)
        return call->server->cluster;
    for (int kind = K_CLUSTER; kind <= K_MS; kind++) {
        for (struct object *o = sim->servers[0].objects[kind]; o; o = o->next) {
            struct pl_str part =
                pl__str_format(&sim->scratch, "/%s/%.*s", kinds[kind].plural, PL_STR_ARG(o->name));
            const char *at = strstr(call->path.ptr, part.ptr);
            if (at && strchr("/?", at[part.len])) /* the NUL counts, too */
                return cluster_of_object(sim, o);
        }
    }
    return NULL;
}

/* Over what was observed: are enough of the others healthy when this one goes? */
static bool quorum_stays(struct sim *sim, struct cluster *cl, const struct view *v,
                         uint64_t without)
{
    int target = 0, unhealthy = 0;

    for (int i = 0; i < v->count; i++) {
        if (v->ids[i] == without)
            continue;
        const struct member *member = etcd_member(&cl->etcd, v->ids[i]);
        const struct machine *m = machine_by_node(cl, pl__str(member->node));
        target++;
        unhealthy += v->bad[i] || !m || (!m->o && has_been(sim, m->gone_ms));
    }
    return target - unhealthy >= target / 2 + 1;
}

static void check_etcd_write(struct call *call)
{
    struct sim *sim = call->server->sim;
    struct cluster *cl = call->server->cluster;
    const struct view *v = &call->process->views[cl->index];
    const struct member *m = etcd_member(&cl->etcd, call->member_id);

    if (!v->known || !v->readable || v->observed_ms < v->wrote_ms)
        sim_violated(sim, "a fresh look before etcd is changed",
                     "%s: %s, observed %" PRIu64 " ms, changed %" PRIu64 " ms", cl->name,
                     v->known ? "known" : "never observed", v->observed_ms, v->wrote_ms);
    if (call->etcd_call == ETCD_MEMBER_REMOVE && m && call->endpoint_count &&
        pl__str_equal(call->endpoints[0].node, pl__str(m->node)))
        sim_violated(sim, "a member is not asked to remove itself", "%s", m->node);
    if (call->etcd_call != ETCD_MEMBER_REMOVE || !m || cl->deleting)
        return;
    const struct machine *machine = machine_by_node(cl, pl__str(m->node));
    if ((!machine || !machine->o) && !quorum_stays(sim, cl, v, m->id))
        sim_violated(sim, "quorum", "orphan member %s removed without enough healthy ones",
                     m->node);
}

void check_handed_out(struct call *call)
{
    struct process *p = call->process;
    struct sim *sim = p->sim;
    struct cluster *cl = cluster_of_call(call);

    if (!p->lease_sent_ms || sim->now.mono_ms - p->lease_sent_ms >= RENEW_MS)
        sim_violated(sim, "only the leader writes", "%s, last renewal %" PRIu64 " ms ago",
                     p->identity, sim->now.mono_ms - p->lease_sent_ms);
    if (cl && cl->paused && has_been(sim, cl->paused_ms))
        sim_violated(sim, "nothing is written while paused", "%s", cl->name);
    if (call->type == CALL_ETCD)
        check_etcd_write(call);
    /* What a deletion is based on is what was known when it left. */
    if (cl && call->type == CALL_REQUEST)
        call->seen = p->views[cl->index];
}

/* --- conditions ---------------------------------------------------------------------------------------- */

static const char *const our_conditions[K_COUNT][8] = {
    [K_KCP] = { "ControlPlaneComponentsHealthy", "Deleting", "EtcdClusterHealthy", "Remediating" },
    [K_MACHINE] = { "APIServerPodHealthy", "ControllerManagerPodHealthy", "EtcdMemberHealthy",
                    "EtcdPodHealthy", "OwnerRemediated", "SchedulerPodHealthy" },
    [K_MD] = { "Remediating" },
};

static bool is_our_condition(enum kind kind, struct pl_str type)
{
    for (int i = 0; i < 8 && our_conditions[kind][i]; i++) {
        if (pl__str_equal(type, pl__str(our_conditions[kind][i])))
            return true;
    }
    return false;
}

/* The longest that True may outlive the quorum: what is known is kept through the grace period. A process
 * that has just started, or a Cluster that was paused, has as long again. */
enum { CLAIM_MS = (300 + 180) * 1000 };

static void check_claim(struct call *call, const struct object *o, const struct pl_tree *condition)
{
    struct sim *sim = o->server->sim;
    const struct cluster *cl = cluster_of_object(sim, o);

    if (!cl || cl->external_etcd || !tree_is(tree_get(condition, "type"), "EtcdClusterHealthy") ||
        !tree_is(tree_get(condition, "status"), "True"))
        return;
    uint64_t since = cl->etcd.no_quorum_since_ms;
    if (!since)
        return;
    if (since < cl->resumed_ms)
        since = cl->resumed_ms;
    if (since < call->process->started_ms)
        since = call->process->started_ms;
    if (call->sent_ms > since + CLAIM_MS)
        sim_violated(sim, "conditions claim only what evidence shows",
                     "%s: EtcdClusterHealthy is True, without quorum for %" PRIu64 " s", cl->name,
                     (call->sent_ms - since) / 1000);
}

void check_applied(struct call *call, struct object *o, const struct pl_tree *body)
{
    struct sim *sim = o->server->sim;
    const struct pl_tree *list = tree_at(body, "status", "conditions", NULL);
    bool only_conditions = pl__tree_count(tree_get(body, "status")) == 1;

    for (const struct pl_tree *t = body->first; t; t = t->next)
        only_conditions &=
            pl__str_equal(t->key, PL_STR("apiVersion")) || pl__str_equal(t->key, PL_STR("kind")) ||
            pl__str_equal(t->key, PL_STR("metadata")) || pl__str_equal(t->key, PL_STR("status"));
    for (const struct pl_tree *t = tree_at(body, "metadata", NULL)->first; t; t = t->next)
        only_conditions &= pl__str_equal(t->key, PL_STR("name")) ||
                           pl__str_equal(t->key, PL_STR("namespace")) ||
                           pl__str_equal(t->key, PL_STR("uid")) ||
                           pl__str_equal(t->key, PL_STR("resourceVersion"));
    for (const struct pl_tree *c = list ? list->first : NULL; c; c = c->next) {
        only_conditions &= is_our_condition(o->kind, tree_text(tree_get(c, "type")));
        check_claim(call, o, c);
    }
    if (!only_conditions || !list)
        sim_violated(sim, "no write outside our fields", "%.*s: %.*s", PL_STR_ARG(call->path),
                     PL_STR_ARG(call->body));
}

/* --- patches ------------------------------------------------------------------------------------------- */

/* The record is written: before anything that cannot be taken back, and counting right. */
static void check_record_written(struct sim *sim, struct cluster *cl, struct pl_str text)
{
    struct record r = record_read(sim, text);
    struct machine *m = machine_by_name(cl, r.machine);

    if (!r.there || !m || r.retries < 0) {
        sim_violated(sim, "the record of a remediation", "not a record: %.*s", PL_STR_ARG(text));
        return;
    }
    struct record before =
        m->o ? record_read(sim, annotation(m->o->tree, REMEDIATION_FOR)) : (struct record){ 0 };
    /* A record is never older than the youngest Machine; after a jump of the clock that may be ahead. */
    int64_t decided_ms = r.at_ms > sim->now.wall_ms + 5000 ? sim->now.wall_ms : r.at_ms;
    int64_t since_s = (decided_ms - before.at_ms) / 1000;
    bool retry = before.there && since_s < (cl->max_retry >= 0 ? cl->min_healthy_s : 3600);
    int64_t expected = retry ? before.retries + 1 : 0;

    if (r.retries != expected)
        sim_violated(sim, "the retry count is never lost", "%s: %" PRId64 ", should be %" PRId64,
                     m->name, r.retries, expected);
    if (retry && cl->max_retry >= 0 && before.retries >= cl->max_retry)
        sim_violated(sim, "retry limits", "%s: after %" PRId64 " of %" PRId64 " retries", m->name,
                     before.retries, cl->max_retry);
    if (retry && cl->max_retry >= 0 && since_s < cl->retry_period_s)
        sim_violated(sim, "retry limits", "%s: %" PRId64 " s after the last, period %" PRId64 " s",
                     m->name, since_s, cl->retry_period_s);
}

/* The record goes: its Machine was replaced or need not be, or it is stale by rule 5. */
static void check_record_dropped(struct sim *sim, struct cluster *cl, struct pl_str text)
{
    struct record r = record_read(sim, text);
    struct machine *named = machine_by_name(cl, r.machine);
    int staying = 0;

    for (struct machine *m = cl->machines; m; m = m->next) {
        int64_t created_ms = 0;
        if (!m->o || !m->control_plane)
            continue;
        staying += !object_deleting(m->o);
        pl__time_parse(tree_text(tree_at(m->o->tree, "metadata", "creationTimestamp", NULL)),
                       &created_ms);
        if (created_ms > r.at_ms || pl__str_equal(annotation(m->o->tree, REMEDIATION_FOR), text))
            return;
    }
    if (named && named->o && !object_deleting(named->o) &&
        (!named->marked || sim->now.mono_ms - named->ill_ms < LAG_MS))
        return;
    if (named && !named->o && staying >= cl->replicas)
        return; /* fewer are wanted meanwhile: it needs no replacement */
    sim_violated(sim, "the retry count is never lost", "%s: record dropped: %.*s", cl->name,
                 PL_STR_ARG(text));
}

static void check_hook_dropped(struct call *call, struct cluster *cl, struct machine *m)
{
    struct sim *sim = call->server->sim;
    const struct member *member = etcd_member_of(&cl->etcd, pl__str(m->node));

    m->hook_dropped_ms = sim->now.mono_ms;
    if (in_one_go(sim, cl))
        return;
    bool gave_up =
        cl->deleting && (sim->faults.jumps || sim->now.mono_ms - cl->deleting_ms >= GIVE_UP_MS);
    if (m->leaving != AT_HOOK || m->foreign_hook)
        sim_violated(sim, "the hook goes last", "%s is not waiting for it alone", m->name);
    if (!cl->external_etcd && control_plane_count(cl) > 1 && member && member->named && !gave_up)
        sim_violated(sim, "the member goes before the hook", "%s is still a member", member->node);
    for (const struct machine *k = cl->machines; k; k = k->next) {
        if (k != m && k->o && k->control_plane && k->hook_dropped_ms && object_deleting(k->o))
            sim_violated(sim, "one at a time", "%s lost its hook while %s is going", m->name,
                         k->name);
    }
}

static void check_finalizer_dropped(struct sim *sim, struct cluster *cl, const struct object *o)
{
    if (!object_deleting(o))
        sim_violated(sim, "no finalizer dropped early", "%s is not being deleted", cl->kcp);
    for (const struct machine *m = cl->machines; m; m = m->next) {
        if (m->o && (m->control_plane || sim->profile == PL_PROFILE_TABLES))
            sim_violated(sim, "no finalizer dropped early", "%s still has %s", cl->kcp, m->name);
    }
}

/* Our finalizer, and no other, is gone; or nothing changed. */
static bool finalizers_kept(const struct pl_tree *before, const struct pl_tree *after,
                            bool *ours_dropped)
{
    const struct pl_tree *x = tree_at(before, "metadata", "finalizers", NULL);
    const struct pl_tree *y = tree_at(after, "metadata", "finalizers", NULL);
    const struct pl_tree *b = y ? y->first : NULL;

    for (const struct pl_tree *a = x ? x->first : NULL; a; a = a->next) {
        if (b && pl__tree_equal(a, b))
            b = b->next;
        else if (tree_is(a, KCP_FINALIZER))
            *ours_dropped = true;
        else
            return false;
    }
    return !b;
}

static void check_annotation(struct call *call, struct object *o, struct pl_str key,
                             const struct pl_tree *before, const struct pl_tree *after)
{
    struct sim *sim = o->server->sim;
    struct cluster *cl = cluster_of_object(sim, o);

    if (o->kind == K_KCP && pl__str_equal(key, PL_STR(IN_PROGRESS)) && cl) {
        if (before)
            check_record_dropped(sim, cl, tree_text(before));
        if (after)
            check_record_written(sim, cl, tree_text(after));
    } else if (o->kind == K_MACHINE && pl__str_equal(key, PL_STR(OUR_HOOK)) && before && !after) {
        check_hook_dropped(call, cl, o->machine);
    } else {
        sim_violated(sim, "no write outside our fields", "annotation %.*s of %.*s", PL_STR_ARG(key),
                     PL_STR_ARG(o->name));
    }
}

static void check_annotations(struct call *call, struct object *o, const struct pl_tree *before,
                              const struct pl_tree *after)
{
    const struct pl_tree *x = tree_at(before, "metadata", "annotations", NULL);
    const struct pl_tree *y = tree_at(after, "metadata", "annotations", NULL);

    for (const struct pl_tree *a = x ? x->first : NULL; a; a = a->next) {
        const struct pl_tree *b = tree_get(y, a->key.ptr);
        if (!pl__tree_equal(a, b))
            check_annotation(call, o, a->key, a, b);
    }
    for (const struct pl_tree *b = y ? y->first : NULL; b; b = b->next) {
        if (!tree_get(x, b->key.ptr))
            check_annotation(call, o, b->key, NULL, b);
    }
}

/* By rule 1 the mark of a Machine that is well again is removed; a patch does that. */
static void mark_remove(struct pl_tree *object)
{
    struct pl_tree *list = tree_at(object, "status", "conditions", NULL);

    size_t index = 0;

    for (const struct pl_tree *c = list ? list->first : NULL; c; c = c->next, index++) {
        if (tree_is(tree_get(c, "type"), "OwnerRemediated")) {
            pl__tree_take(list, index);
            return;
        }
    }
}

/* Whether nothing else differs. */
static bool rest_equal(struct sim *sim, const struct pl_tree *before, const struct pl_tree *after)
{
    static const char *const allowed[] = { "annotations", "finalizers" };
    struct pl_tree *x = pl__tree_copy(&sim->arena, before), *y = pl__tree_copy(&sim->arena, after);

    for (int i = 0; i < 2; i++) {
        pl__tree_remove(tree_get(x, "metadata"), pl__str(allowed[i]));
        pl__tree_remove(tree_get(y, "metadata"), pl__str(allowed[i]));
    }
    if (tree_is(tree_get(x, "kind"), "Machine")) {
        mark_remove(x);
        mark_remove(y);
    }
    return pl__tree_equal(x, y);
}

void check_patched(struct call *call, struct object *o, const struct pl_tree *before,
                   const struct pl_tree *after)
{
    struct sim *sim = o->server->sim;
    bool finalizer_dropped = false;

    if (!rest_equal(sim, before, after) || !finalizers_kept(before, after, &finalizer_dropped)) {
        sim_violated(sim, "no write outside our fields", "%.*s: %.*s", PL_STR_ARG(call->path),
                     PL_STR_ARG(call->body));
        return;
    }
    check_annotations(call, o, before, after);
    if (finalizer_dropped)
        check_finalizer_dropped(sim, cluster_of_object(sim, o), o);
}

/* --- deletions ----------------------------------------------------------------------------------------- */

static void check_alone(struct sim *sim, const struct machine *m)
{
    for (const struct machine *k = m->cluster->machines; k; k = k->next) {
        if (k == m || !k->o || !k->control_plane || !object_deleting(k->o))
            continue;
        if (k->deleted_by_us || has_been(sim, k->deleting_ms))
            sim_violated(sim, "one at a time", "%s is deleted while %s is going", m->name, k->name);
    }
}

static void check_orderly_deletion(struct sim *sim, struct machine *m)
{
    struct cluster *cl = m->cluster;
    const struct member *member = etcd_member_of(&cl->etcd, pl__str(m->node));

    check_alone(sim, m);
    if (!cl->external_etcd && control_plane_count(cl) > 1 && member && member->named &&
        !sim->faults.jumps && sim->now.mono_ms - cl->deleting_ms < GIVE_UP_MS)
        sim_violated(sim, "the member goes before the Machine", "%s is still a member",
                     member->node);
}

static void check_remediation(struct call *call, struct machine *m)
{
    struct sim *sim = call->server->sim;
    struct cluster *cl = m->cluster;
    const struct view *v = &call->seen;
    const struct member *member = etcd_member_of(&cl->etcd, pl__str(m->node));
    struct record r = record_read(sim, annotation(kcp_of(sim, cl)->tree, IN_PROGRESS));

    if (!r.there || !pl__str_equal(r.machine, pl__str(m->name)))
        sim_violated(sim, "the record is written first", "%s is deleted without it", m->name);
    if (!has_reason(m->o, "OwnerRemediated", "MachineDeleting"))
        sim_violated(sim, "the condition is written first", "%s is deleted without it", m->name);
    if (!m->marked && sim->now.mono_ms - m->ill_ms > LAG_MS + 60000)
        sim_violated(sim, "only what is ill is remediated", "%s is well", m->name);
    if (control_plane_count(cl) <= 1)
        sim_violated(sim, "never the last one", "%s", m->name);
    check_alone(sim, m);
    for (const struct machine *k = cl->machines; k; k = k->next) {
        if (k != m && k->o && k->control_plane && k->phase < PHASE_PROMOTE && !k->ill &&
            !object_deleting(k->o) && has_been(sim, k->born_ms))
            sim_violated(sim, "not while another is being made", "%s", k->name);
    }
    if (cl->external_etcd)
        return;
    if (!v->known || !v->readable || v->observed_ms < v->wrote_ms)
        sim_violated(sim, "a fresh look before a Machine is deleted", "%s", m->name);
    else if (!quorum_stays(sim, cl, v, member ? member->id : 0))
        sim_violated(sim, "quorum", "%s is deleted, and too few of the others are healthy",
                     m->name);
    else if (member && v->leader == member->id)
        sim_violated(sim, "leadership is moved first", "%s leads", m->name);
}

static int in_flight_max(const struct cluster *cl)
{
    int value = atoi(cl->max_in_flight[0] == '"' ? cl->max_in_flight + 1 : cl->max_in_flight);

    return cl->max_in_flight[0] == '"' ? (cl->workers * value + 99) / 100 : value;
}

static void check_worker(struct sim *sim, struct machine *m)
{
    int in_flight = 1;

    for (const struct machine *k = m->cluster->machines; k; k = k->next)
        in_flight += k != m && k->o && !k->control_plane && k->deleted_by_us;
    if (in_flight > in_flight_max(m->cluster))
        sim_violated(sim, "maxInFlight", "%s would be number %d", m->name, in_flight);
    if (!has_reason(m->o, "OwnerRemediated", "MachineDeleting"))
        sim_violated(sim, "the condition is written first", "%s is deleted without it", m->name);
    if (!m->marked && sim->now.mono_ms - m->ill_ms > LAG_MS + 60000)
        sim_violated(sim, "only what is ill is remediated", "%s is well", m->name);
}

/* A remediation that was on its way when somebody deleted the whole control plane: by the rules of the one or
 * of the other, it is right. */
static bool overtaken(struct sim *sim, const struct cluster *cl, const struct machine *m)
{
    struct record r = record_read(sim, annotation(kcp_of(sim, cl)->tree, IN_PROGRESS));

    return !has_been(sim, cl->deleting_ms) && r.there && pl__str_equal(r.machine, pl__str(m->name));
}

void check_deleted(struct call *call, struct object *o, const struct pl_tree *options)
{
    struct sim *sim = call->server->sim;
    struct cluster *cl = cluster_of_object(sim, o);
    struct machine *m = o->machine;

    if (!tree_at(options, "preconditions", "uid", NULL))
        sim_violated(sim, "deletes carry the uid", "%.*s", PL_STR_ARG(call->path));
    if (o->kind != K_MACHINE) {
        bool made = o->kind == K_INFRA || o->kind == K_CONFIG;
        bool owned = o->kind == K_TEMPLATE && cl && cl->deleting && control_plane_count(cl) == 0;
        if (!owned && !(made && !object_find(o->server, K_MACHINE, o->name)))
            sim_violated(sim, "no write outside our fields", "DELETE %.*s", PL_STR_ARG(call->path));
        return;
    }
    sim->deletions++;
    if (object_deleting(o))
        return; /* once more changes nothing */
    if (!m->control_plane)
        check_worker(sim, m);
    else if (!cl->deleting)
        check_remediation(call, m);
    else if (overtaken(sim, cl, m))
        sim_note(sim, "the remediation of %s meets the deletion of %s", m->name, cl->kcp);
    else if (sim->profile == PL_PROFILE_TABLES)
        check_orderly_deletion(sim, m);
    else if (has_annotation(o->tree, OUR_HOOK))
        sim_violated(sim, "the hook goes before a deletion in one go", "%s", m->name);
    m->deleted_by_us = true;
}

/* --- creations ----------------------------------------------------------------------------------------- */

static void check_replacement(struct call *call, const struct pl_tree *body)
{
    struct sim *sim = call->server->sim;
    struct pl_str name = tree_text(tree_at(body, "metadata", "name", NULL));
    struct cluster *cl = NULL;

    for (int i = 0; i < sim->cluster_count; i++) {
        if (tree_is(tree_at(body, "spec", "clusterName", NULL), sim->clusters[i].name))
            cl = &sim->clusters[i];
    }
    struct object *kcp = cl ? kcp_of(sim, cl) : NULL;
    if (!kcp) {
        sim_violated(sim, "a replacement is whole", "%.*s has no control plane", PL_STR_ARG(name));
        return;
    }
    struct pl_str record = annotation(kcp->tree, IN_PROGRESS);
    sim->replacements++;
    if (!record.len || !pl__str_equal(annotation(body, REMEDIATION_FOR), record))
        sim_violated(sim, "the retry count is never lost",
                     "%.*s: remediation-for is %.*s, not %.*s", PL_STR_ARG(name),
                     PL_STR_ARG(annotation(body, REMEDIATION_FOR)), PL_STR_ARG(record));
    if (control_plane_count(cl) >= cl->replicas)
        sim_violated(sim, "one replacement for one Machine", "%.*s would be number %d of %d",
                     PL_STR_ARG(name), control_plane_count(cl) + 1, cl->replicas);
    if (!object_find(call->server, K_INFRA, name) || !object_find(call->server, K_CONFIG, name))
        sim_violated(sim, "a replacement is whole", "%.*s lacks what it refers to",
                     PL_STR_ARG(name));
    if (!has_annotation(body, OUR_HOOK) ||
        !tree_at(body, "metadata", "labels", "cluster.x-k8s.io/control-plane", NULL))
        sim_violated(sim, "a replacement is whole", "%.*s lacks hook or label", PL_STR_ARG(name));
    if (cl->deleting && has_been(sim, cl->deleting_ms))
        sim_violated(sim, "no replacement while deleting", "%.*s", PL_STR_ARG(name));
}

void check_created(struct call *call, enum kind kind, const struct pl_tree *body)
{
    if (kind == K_MACHINE)
        check_replacement(call, body);
    else if (kind != K_INFRA && kind != K_CONFIG && kind != K_LEASE)
        sim_violated(call->server->sim, "no write outside our fields", "POST %.*s",
                     PL_STR_ARG(call->path));
}

/* --- etcd ---------------------------------------------------------------------------------------------- */

void check_member_removed(struct call *call, struct member *m)
{
    struct sim *sim = call->server->sim;
    struct cluster *cl = call->server->cluster;
    const struct machine *machine = machine_by_node(cl, pl__str(m->node));
    bool had = etcd_has_quorum(&cl->etcd);

    if (!m->named)
        sim_violated(sim, "members are removed by name only", "%" PRIx64, m->id);
    if (machine->o && machine->leaving != AT_HOOK && !cl->deleting)
        sim_violated(sim, "no member is removed while its Machine lives", "%s of %s", m->node,
                     machine->name);
    if (in_one_go(sim, cl) && machine->o && machine->leaving != AT_HOOK)
        sim_violated(sim, "no member is removed while its Machine lives", "%s, in one go", m->node);
    for (const struct machine *k = cl->machines; k && !machine->o; k = k->next) {
        if (k->o && k->control_plane && k->phase < PHASE_PROMOTE && has_been(sim, k->born_ms) &&
            !object_deleting(k->o))
            sim_violated(sim, "no orphan is removed while a Machine is being made", "%s", m->node);
    }
    m->listed = false;
    if (had && !etcd_has_quorum(&cl->etcd))
        sim_violated(sim, "quorum", "%s: removing %s leaves %d of %d voters up", cl->name, m->node,
                     etcd_voters_up(&cl->etcd), etcd_voters(&cl->etcd));
    m->listed = true;
}

void check_leader_moved(struct call *call)
{
    struct cluster *cl = call->server->cluster;

    if (in_one_go(call->server->sim, cl) && control_plane_count(cl) == 0)
        sim_violated(call->server->sim, "nothing is done to an etcd without Machines", "%s",
                     cl->name);
}

/* --- always -------------------------------------------------------------------------------------------- */

void check_always(struct sim *sim)
{
    const struct process *leader = NULL;

    for (int i = 0; i < sim->process_count; i++) {
        const struct process *p = sim->processes[i];
        if (!p->alive || !p->lease_sent_ms || sim->now.mono_ms - p->lease_sent_ms >= RENEW_MS ||
            !pl_controller_is_leader(p->controller))
            continue;
        if (leader)
            sim_violated(sim, "one leader", "%s and %s", leader->identity, p->identity);
        leader = p;
    }
    for (int i = 0; i < sim->cluster_count; i++) {
        const struct cluster *cl = &sim->clusters[i];
        int going = 0;
        for (const struct machine *m = cl->machines; m; m = m->next)
            going += m->o && m->control_plane && m->deleted_by_us;
        if (going > 1 && !in_one_go(sim, cl))
            sim_violated(sim, "one at a time", "%s: %d Machines are going", cl->name, going);
    }
}

/* --- in the end ---------------------------------------------------------------------------------------- */

static void objects_add(struct pl_buf *b, const struct server *s, enum kind kind)
{
    for (const struct object *o = s->objects[kind]; o; o = o->next) {
        if (b->data[b->len - 1] != '[')
            pl__buf_add_char(b, ',');
        pl__buf_add(b, o->text);
    }
}

static void etcd_add_view(struct pl_buf *b, struct cluster *cl)
{
    bool first = true;

    pl__buf_printf(b,
                   ",\"etcd\":{\"endpoint\":\"etcd-%s\",\"leader\":\"%" PRIu64 "\",\"errors\":[],"
                   "\"alarms\":[],\"members\":[",
                   etcd_member(&cl->etcd, cl->etcd.leader)->node, cl->etcd.leader);
    for (int i = 0; i < cl->etcd.member_count; i++) {
        const struct member *m = &cl->etcd.members[i];
        if (!m->listed)
            continue;
        pl__buf_printf(b, "%s{\"ID\":\"%" PRIu64 "\",\"name\":\"%s\",\"isLearner\":%s}",
                       first ? "" : ",", m->id, m->named ? m->node : "",
                       m->learner ? "true" : "false");
        first = false;
    }
    pl__buf_add_lit(b, "]}");
}

/* The world as it is, as a Snapshot. */
static struct pl_str truth_text(struct sim *sim)
{
    struct pl_str now = sim_time_text(sim, sim->now.wall_ms);
    struct pl_buf b;

    pl__buf_init(&b, &sim->scratch, SIZE_MAX);
    pl__buf_printf(&b,
                   "{\"apiVersion\":\"plimsoll.dev/v1\",\"kind\":\"Snapshot\",\"now\":\"%s\","
                   "\"objects\":[",
                   now.ptr);
    for (int kind = K_CLUSTER; kind <= K_POOL; kind++)
        objects_add(&b, &sim->servers[0], (enum kind)kind);
    pl__buf_add_lit(&b, "],\"workloads\":[");
    for (int i = 0; i < sim->cluster_count; i++) {
        struct cluster *cl = &sim->clusters[i];
        pl__buf_printf(&b,
                       "%s{\"cluster\":\"" NAMESPACE "/%s\",\"connection\":{\"state\":"
                       "\"Connected\",\"lastProbeSuccessTime\":\"%s\",\"consecutiveFailures\":0},"
                       "\"nodes\":[",
                       i ? "," : "", cl->name, now.ptr);
        objects_add(&b, cl->server, K_NODE);
        pl__buf_add_lit(&b, "],\"pods\":[");
        objects_add(&b, cl->server, K_POD);
        pl__buf_add_lit(&b, "]");
        if (!cl->external_etcd && cl->etcd.leader)
            etcd_add_view(&b, cl);
        pl__buf_add_char(&b, '}');
    }
    pl__buf_add_lit(&b, "]}");
    return pl__buf_str(&b);
}

static bool verdict_stored(const struct object *stored, const struct pl_verdict *v)
{
    const struct pl_tree *c = stored ? condition_find(stored, v->type) : NULL;

    return c && tree_is(tree_get(c, "status"), pl_status_name(v->status)) &&
           pl__str_equal(tree_text(tree_get(c, "reason")), v->reason) &&
           pl__str_equal(tree_text(tree_get(c, "message")), v->message);
}

/* The engine judges the true state afresh: is that what is stored? */
static bool conditions_true(struct sim *sim, char *why, size_t size)
{
    struct pl_context *ctx = pl_context_new(&(struct pl_options){ .profile = sim->profile });
    const struct pl_report *report = NULL;
    bool same = true;

    pl__arena_reset(&sim->scratch);
    struct pl_str text = truth_text(sim);
    pl_context_add(ctx, "truth", text.ptr, text.len);
    if (pl_context_next(ctx, &report) != 1) {
        snprintf(why, size, "the truth cannot be read: %s", pl_context_error(ctx));
        same = false;
    }
    for (size_t i = 0; same && i < report->object_count; i++) {
        const struct pl_object *o = &report->objects[i];
        enum kind kind = strcmp(o->kind, "Machine") == 0               ? K_MACHINE
                         : strcmp(o->kind, "KubeadmControlPlane") == 0 ? K_KCP
                                                                       : K_MD;
        const struct object *stored = object_find(&sim->servers[0], kind, o->name);
        for (size_t k = 0; same && k < o->verdict_count; k++) {
            const struct pl_verdict *v = &o->verdicts[k];
            same = v->kept || verdict_stored(stored, v);
            if (!same)
                snprintf(why, size, "%s %.*s: %s should be %s %.*s \"%.*s\"", o->kind,
                         PL_STR_ARG(o->name), v->type, pl_status_name(v->status),
                         PL_STR_ARG(v->reason), PL_STR_ARG(v->message));
        }
    }
    pl_context_free(ctx);
    return same;
}

static bool machine_well(const struct machine *m)
{
    return m->phase == PHASE_RUN && m->leaving == STAYS && !m->ill && !m->marked;
}

static bool cluster_settled(struct sim *sim, struct cluster *cl, char *why, size_t size)
{
    struct object *kcp = kcp_of(sim, cl);
    int members = 0;

    if (cl->deleting && kcp) {
        snprintf(why, size, "%s is still there", cl->kcp);
        return false;
    }
    for (const struct machine *m = cl->machines; m; m = m->next) {
        if (!m->o)
            continue;
        if (!machine_well(m)) {
            snprintf(why, size, "%s is not well: phase %d, leaving %d, ill %d, marked %d", m->name,
                     (int)m->phase, (int)m->leaving, m->ill, m->marked);
            return false;
        }
    }
    if (cl->deleting)
        return true;
    for (int i = 0; i < cl->etcd.member_count; i++)
        members += cl->etcd.members[i].listed;
    /* One that was deleted by hand may have been replaced all the same, if it was ill before; to have one less
     * is then up to others. */
    int count = control_plane_count(cl), most = cl->replicas + cl->leaving_by_hand;
    if (count < cl->replicas || count > most || (!cl->external_etcd && members != count)) {
        snprintf(why, size, "%s has %d Machines and %d members, wants %d", cl->kcp, count, members,
                 cl->replicas);
        return false;
    }
    if (has_annotation(kcp->tree, IN_PROGRESS)) {
        snprintf(why, size, "%s has a remediation in progress", cl->kcp);
        return false;
    }
    return true;
}

bool check_settled(struct sim *sim, char *why, size_t size)
{
    for (int i = 0; i < sim->cluster_count && sim->options.manage; i++) {
        if (!cluster_settled(sim, &sim->clusters[i], why, size))
            return false;
    }
    return conditions_true(sim, why, size);
}
