/* core/plan.c - one step at a time, in an order that no crash can turn into an outage.
 *
 * While the control plane lives, every pass asks in this order, and the first answer is the plan:
 *
 *   hook         a Machine on its way out waits for us: its etcd member leaves, then our hook (step 10)
 *   orphan       an etcd member without a Machine (step 11)
 *   recovered    a Machine that is healthy again loses its mark (step 1)
 *   record       a record of a remediation that is over or was given up is dropped (step 5)
 *   remediation  what core/remediation.c decided (steps 2 to 9): leadership away, record, mark, delete
 *   replacement  the Machine that is missing is made (section 11)
 *
 * While it is being deleted: hook, then what core/deletion.c decided (section 8).
 *
 * Whatever touches etcd, and whatever deletes a Machine that may carry a member, rests on an observation of
 * etcd that is newer than the last such thing; with an older one the plan is to wait for the next. */
#include "core/plan.h"

#include "base/planted.h"
#include "base/time.h"
#include "base/version.h"

enum {
    WAIT_MACHINE_MS = 30 * 1000, /* for Machine controllers, as section 8 has it */
    WAIT_PREFLIGHT_MS = 15 * 1000,
    WAIT_ETCD_MS = 5 * 1000,
};

struct planner {
    struct pl_pass *p;
    struct pl_control_plane *cp;
    struct pl_plan *plan;
    bool etcd_stale, etcd_refuses;
    enum pl_record_state record_state;
    struct pl_record record;
    struct pl_machine_state *record_machine; /* the one it names; NULL: gone */
    struct pl_growing lines, notes;
};

const char *pl__step_reason(enum pl_step_kind kind)
{
    static const char *const reasons[] = {
#define X(enumerator, reason) reason,
        PL_STEPS(X)
#undef X
    };
    return reasons[kind];
}

/* --- saying it ------------------------------------------------------------------------------- */

#define FORMAT(pl, ...) pl__str_format((pl)->p->arena, __VA_ARGS__)

/* The first wait is the one that is told; the soonest is when to look again. */
static void wait_for(struct planner *pl, int64_t ms, struct pl_str what)
{
    struct pl_next_step *shown = &pl->plan->shown;

    if (!shown->waits_for.len)
        shown->waits_for = what;
    if (!shown->retry_after_ms || ms < shown->retry_after_ms)
        shown->retry_after_ms = ms;
}

static void note(struct planner *pl, const struct pl_machine *about, const char *reason,
                 struct pl_str text)
{
    struct pl_note *n = pl__growing_add(pl->p, &pl->notes, sizeof *n);

    *n = (struct pl_note){ about ? about->meta.name : (struct pl_str){ "", 0 }, reason, text };
}

/* Takes the step, unless its Machine is paused: then it is as if it were somebody else's. */
static void take(struct planner *pl, struct pl_step step, struct pl_str words)
{
    if (step.machine && step.machine->meta.annotations.paused) {
        wait_for(
            pl, WAIT_MACHINE_MS,
            FORMAT(pl, "Machine %.*s to be no longer paused", PL_STR_ARG(step.machine->meta.name)));
        return;
    }
    pl->plan->step = step;
    pl->plan->shown.step = words;
}

static bool taken(const struct planner *pl)
{
    return pl->plan->step.kind != STEP_NONE;
}

static void add_line(struct planner *pl, enum pl_line_state state, int64_t since_ms,
                     struct pl_str text)
{
    struct pl_checklist_line *line = pl__growing_add(pl->p, &pl->lines, sizeof *line);

    *line = (struct pl_checklist_line){ state, text, since_ms };
}

/* --- etcd ------------------------------------------------------------------------------------ */

/* Why its members cannot be looked at; empty: they can. */
static struct pl_str etcd_unreadable(const struct planner *pl)
{
    const struct pl_workload *w = pl->cp->workload;

    if (pl->cp->rung != RUNG_PASSED || !w)
        return PL_STR("the workload cluster cannot be looked at");
    if (w->nodes_error.len)
        return w->nodes_error;
    if (w->etcd.connect_error.len)
        return w->etcd.connect_error;
    if (w->etcd.members_error.len)
        return w->etcd.members_error;
    return w->etcd.members.present ? (struct pl_str){ "", 0 } : PL_STR("it has not been asked yet");
}

/* Whether etcd's members are known as they are now. If not, the plan is to find out. */
static bool etcd_known(struct planner *pl)
{
    struct pl_str problem = etcd_unreadable(pl);

    if (!problem.len && (!pl->etcd_stale || PL_PLANTED(ETCD_VIEW_STALE)))
        return true;
    pl->plan->wants_etcd = true;
    wait_for(pl, WAIT_ETCD_MS,
             problem.len ? FORMAT(pl, "an observation of etcd (%.*s)", PL_STR_ARG(problem))
                         : PL_STR("a fresh observation of etcd"));
    return false;
}

static bool pod_ready(const struct pl_workload *w, struct pl_str node)
{
    for (uint32_t i = 0; i < w->pods.count; i++) {
        const struct pl_pod *pod = &w->pods.items[i];
        struct pl_str name = pod->name;
        if (!pl__str_starts_with(name, PL_STR("etcd-")))
            continue;
        name.ptr += strlen("etcd-");
        name.len -= strlen("etcd-");
        if (pl__str_equal(name, node))
            return pl__str_equal(pod->phase, PL_STR("Running")) &&
                   pl__condition_is(&pod->conditions, COND_READY, PL_STATUS_TRUE);
    }
    return false;
}

/* A Machine that is being deleted says nothing of its member any more. While our hook holds it, nothing of
 * it has been taken away: its Node and its etcd Pod tell. Without this two Machines that were deleted
 * together would wait for each other for ever. */
static bool held_by_hook_and_up(const struct pl_control_plane *cp, const struct pl_machine *m)
{
    const struct pl_node *node = pl__workload_node(cp->workload, m->node_name);

    return m->meta.deleted_ms && m->meta.annotations.kcp_cleanup_hook && node &&
           pl__condition_is(&node->conditions, COND_READY, PL_STATUS_TRUE) &&
           pod_ready(cp->workload, m->node_name);
}

static bool has_alarm(const struct pl_etcd_view *etcd, uint64_t member_id)
{
    for (uint32_t i = 0; i < etcd->alarms.count; i++) {
        if (etcd->alarms.items[i].member_id == member_id &&
            !pl__str_equal(etcd->alarms.items[i].alarm, PL_STR("NONE")))
            return true;
    }
    return false;
}

static bool member_up(const struct pl_control_plane *cp, const struct pl_etcd_member *member)
{
    const struct pl_machine_state *host = pl__machine_on_node(cp, member->name);

    /* etcd lists a member whose process is dead as before, without any complaint: its Pod tells. */
    if (pl__member_healthy_by_machine(cp, member))
        return !host || host->verdicts[COND_ETCD_POD].status != PL_STATUS_FALSE;
    return host && !member->is_learner && !has_alarm(&cp->workload->etcd, member->id) &&
           held_by_hook_and_up(cp, host->machine);
}

/* The same with its Pod: a member that has just died is listed without an alarm, and so is healthy by its
 * condition. */
static bool member_and_pod_up(const struct pl_control_plane *cp,
                              const struct pl_etcd_member *member)
{
    const struct pl_machine_state *host = pl__machine_on_node(cp, member->name);

    return member_up(cp, member) && (host->machine->meta.deleted_ms ||
                                     host->verdicts[COND_ETCD_POD].status == PL_STATUS_TRUE);
}

static bool is_member(const struct pl_etcd_member *member, const void *who)
{
    return member->id == ((const struct pl_etcd_member *)who)->id;
}

static bool keeps_quorum(const struct pl_control_plane *cp, const struct pl_etcd_member *gone,
                         struct pl_members_left *left)
{
    *left = pl__members_left(cp, is_member, gone, member_up);
    return left->healthy >= left->quorum;
}

/* While the whole control plane goes there is a choice of whom to let go first, so it is made with care. */
static bool surely_keeps_quorum(const struct pl_control_plane *cp,
                                const struct pl_etcd_member *gone, struct pl_members_left *left)
{
    *left = pl__members_left(cp, is_member, gone, member_and_pod_up);
    return left->healthy >= left->quorum;
}

static struct pl_str arithmetic(const struct planner *pl, const struct pl_members_left *left)
{
    return FORMAT(pl, "it would leave %u of %u voters healthy, quorum %u", left->healthy,
                  left->count, left->quorum);
}

/* Whom to ask to remove a member: the leader first, then those that are well; never the member itself. */
static void fill_ask(struct planner *pl, const struct pl_etcd_member *gone, struct pl_step *step)
{
    const struct pl_etcd_view *etcd = &pl->cp->workload->etcd;
    struct pl_str *nodes = PL_NEW(pl->p->arena, struct pl_str, etcd->members.count);

    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < etcd->members.count; i++) {
            const struct pl_etcd_member *m = &etcd->members.items[i];
            bool leads = m->id == etcd->leader;
            if (m->id != gone->id && !m->is_learner && leads == (round == 0) &&
                member_up(pl->cp, m))
                nodes[step->ask_count++] = m->name;
        }
    }
    step->ask = nodes;
}

static void remove_member(struct planner *pl, const struct pl_etcd_member *gone,
                          const struct pl_machine *of)
{
    struct pl_step step = {
        .kind = STEP_REMOVE_MEMBER, .machine = of, .member_id = gone->id, .confirm = true
    };
    struct pl_str label = pl__member_label(pl->p->arena, gone);

    fill_ask(pl, gone, &step);
    if (!step.ask_count) {
        wait_for(pl, WAIT_PREFLIGHT_MS, PL_STR("a healthy etcd member to ask"));
        return;
    }
    take(pl, step,
         of ? FORMAT(pl, "remove etcd member %.*s of Machine %.*s", PL_STR_ARG(label),
                     PL_STR_ARG(of->meta.name))
            : FORMAT(pl, "remove etcd member %.*s, which has no Machine", PL_STR_ARG(label)));
}

/* The newest Machine that could lead in place of `from`'s: not going, its member a healthy voter. One that
 * is ill otherwise only when there is no better: its member may have died unnoticed. */
static const struct pl_machine_state *other_leader(const struct pl_control_plane *cp,
                                                   const struct pl_etcd_member *from)
{
    const struct pl_machine_state *pick = NULL;
    bool pick_sound = false;

    for (size_t i = 0; i < cp->machine_count; i++) {
        const struct pl_machine_state *s = &cp->machines[i];
        const struct pl_etcd_member *member = pl__member_of(cp, s->machine);
        if (!member || member->id == from->id || member->is_learner ||
            s->machine->meta.deleted_ms || !pl__member_healthy_by_machine(cp, member))
            continue;
        bool sound = member_and_pod_up(cp, member) && !pl__machine_unhealthy(s->machine);
        if (!pick || (sound && !pick_sound) ||
            (sound == pick_sound &&
             s->machine->meta.created_ms >= pick->machine->meta.created_ms)) {
            pick = s;
            pick_sound = sound;
        }
    }
    return pick;
}

static void move_leadership(struct planner *pl, const struct pl_etcd_member *from,
                            const struct pl_machine_state *to)
{
    const struct pl_etcd_member *member = pl__member_of(pl->cp, to->machine);
    struct pl_str *ask = PL_NEW(pl->p->arena, struct pl_str, 1);

    if (!member || member->is_learner || !pl__member_healthy_by_machine(pl->cp, member)) {
        note(pl, to->machine, "LeadershipNotMoved",
             FORMAT(pl, "not moving etcd leadership to Machine %.*s: its member is not healthy",
                    PL_STR_ARG(to->machine->meta.name)));
        wait_for(pl, WAIT_PREFLIGHT_MS,
                 FORMAT(pl, "a healthy etcd member on Machine %.*s to lead",
                        PL_STR_ARG(to->machine->meta.name)));
        return;
    }
    *ask = from->name;
    take(pl,
         (struct pl_step){ .kind = STEP_MOVE_LEADERSHIP,
                           .machine = to->machine,
                           .member_id = member->id,
                           .ask = ask,
                           .ask_count = 1 },
         FORMAT(pl, "move etcd leadership from %.*s to %.*s",
                PL_STR_ARG(pl__member_label(pl->p->arena, from)), PL_STR_ARG(member->name)));
}

/* Whether leadership is known to be elsewhere, so that the member may go. If not, what to do about it is
 * planned. `to` NULL: to whoever can; when nobody can, or etcd does not do it, the member goes as the leader,
 * and another is elected. */
static bool leads_not(struct planner *pl, const struct pl_etcd_member *member,
                      const struct pl_machine_state *to)
{
    uint64_t leader = pl->cp->workload->etcd.leader;

    if (!leader) {
        pl->plan->wants_etcd = true;
        wait_for(pl, WAIT_ETCD_MS, PL_STR("etcd to have a leader"));
        return false;
    }
    if (member->id != leader)
        return true;
    if (!to && !pl->etcd_refuses)
        to = other_leader(pl->cp, member);
    if (!to)
        return true;
    move_leadership(pl, member, to);
    return false;
}

/* --- step 10: a Machine on its way out waits for us ------------------------------------------ */

static void drop_hook(struct planner *pl, const struct pl_machine *m)
{
    take(pl, (struct pl_step){ .kind = STEP_DROP_HOOK, .machine = m },
         FORMAT(pl, "drop the pre-terminate hook of Machine %.*s", PL_STR_ARG(m->meta.name)));
}

/* The Machine whose turn it is; NULL: none is, or another one is on its way already. */
static const struct pl_machine *hook_turn(struct planner *pl)
{
    const struct pl_machine *pick = NULL;

    for (size_t i = 0; i < pl->cp->machine_count; i++) {
        const struct pl_machine *m = pl->cp->machines[i].machine;
        if (!m->meta.deleted_ms)
            continue;
        if (!m->meta.annotations.kcp_cleanup_hook) {
            wait_for(pl, WAIT_MACHINE_MS,
                     FORMAT(pl, "Machine %.*s to be gone", PL_STR_ARG(m->meta.name)));
            return NULL;
        }
        if (!pick || m->meta.deleted_ms < pick->meta.deleted_ms)
            pick = m;
    }
    return pick;
}

static bool hook_due(struct planner *pl, const struct pl_machine *m)
{
    const struct pl_condition *c = pl__condition_find(&m->conditions, COND_DELETING);
    struct pl_str reason = c ? c->reason : (struct pl_str){ "", 0 };
    struct pl_version version;

    if (!c || c->status != PL_STATUS_TRUE ||
        (!PL_PLANTED(DRAIN_IGNORED) &&
         !pl__str_equal(reason, PL_STR("WaitingForPreTerminateHook")))) {
        wait_for(pl, WAIT_MACHINE_MS,
                 FORMAT(pl, "Machine %.*s to be drained%s%.*s", PL_STR_ARG(m->meta.name),
                        reason.len ? ": " : "", PL_STR_ARG(reason)));
        return false;
    }
    /* A version that cannot be read is taken for a new one: that waits. */
    if (m->meta.annotations.other_terminate_hook && !PL_PLANTED(OTHER_HOOKS_IGNORED) &&
        (!pl__version_parse(pl->cp->kcp->version, &version) ||
         pl__version_at_least(&version, 31))) {
        wait_for(pl, WAIT_MACHINE_MS,
                 FORMAT(pl, "other pre-terminate hooks of Machine %.*s to be gone",
                        PL_STR_ARG(m->meta.name)));
        return false;
    }
    return true;
}

static void note_without_member(struct planner *pl, const struct pl_machine *m, struct pl_str why)
{
    note(pl, m, "EtcdMemberNotRemoved",
         FORMAT(pl, "going on without removing the etcd member of Machine %.*s: %.*s",
                PL_STR_ARG(m->meta.name), PL_STR_ARG(why)));
}

/* Whether the member is out of the way; if not, what to do about it is planned. */
static bool member_gone(struct planner *pl, const struct pl_machine *m)
{
    const struct pl_etcd_member *member;
    struct pl_members_left left;
    bool deleting = pl->cp->kcp->meta.deleted_ms != 0;
    /* The whole control plane goes, and etcd has not helped for long: better an end than none. */
    bool gave_up = deleting && pl->cp->deletion.gave_up;
    struct pl_str problem = etcd_unreadable(pl);

    if (!pl->cp->kcp->etcd_managed || pl->cp->machine_count <= 1 ||
        (deleting && !pl->cp->kcp->initialized))
        return true;
    if (problem.len && gave_up) {
        note_without_member(pl, m, problem);
        return true;
    }
    if (!etcd_known(pl))
        return false;
    member = pl__member_of(pl->cp, m);
    if (!member)
        return true;
    if (pl->etcd_refuses && gave_up) {
        note_without_member(pl, m, PL_STR("etcd refuses it"));
        return true;
    }
    if (!keeps_quorum(pl->cp, member, &left)) {
        note(pl, m, "EtcdMemberNotRemoved",
             FORMAT(pl, "not removing the etcd member of Machine %.*s: %.*s",
                    PL_STR_ARG(m->meta.name), PL_STR_ARG(arithmetic(pl, &left))));
        wait_for(pl, WAIT_PREFLIGHT_MS, PL_STR("more healthy etcd members"));
        return gave_up;
    }
    if (leads_not(pl, member, NULL))
        remove_member(pl, member, m);
    return false;
}

static void plan_hook(struct planner *pl)
{
    const struct pl_machine *m = hook_turn(pl);

    if (m && hook_due(pl, m) && (PL_PLANTED(HOOK_BEFORE_MEMBER) || member_gone(pl, m)))
        drop_hook(pl, m);
}

/* --- step 11: members without a Machine ------------------------------------------------------ */

/* Any Machine of the cluster counts, whoever owns it: one that was adopted by nobody may be alive. */
static bool some_machine_on(const struct planner *pl, struct pl_str node)
{
    struct pl_range range = pl->cp->cluster_machines;

    for (uint32_t i = range.first; i < range.end; i++) {
        if (pl__str_equal(pl->p->snapshot->objects.machines.items[i].node_name, node))
            return true;
    }
    return false;
}

static void orphan_judge(struct planner *pl, const struct pl_etcd_member *member)
{
    struct pl_members_left left;

    if (!etcd_known(pl))
        return;
    if (keeps_quorum(pl->cp, member, &left)) {
        if (leads_not(pl, member, NULL))
            remove_member(pl, member, NULL);
        return;
    }
    note(pl, NULL, "EtcdMemberNotRemoved",
         FORMAT(pl, "not removing etcd member %.*s, which has no Machine: %.*s",
                PL_STR_ARG(pl__member_label(pl->p->arena, member)),
                PL_STR_ARG(arithmetic(pl, &left))));
    wait_for(pl, WAIT_PREFLIGHT_MS, PL_STR("more healthy etcd members"));
}

static void plan_orphan(struct planner *pl)
{
    const struct pl_control_plane *cp = pl->cp;

    if (!cp->kcp->etcd_managed || !cp->kcp->initialized || cp->machine_count == 0 ||
        cp->etcd.status == PL_STATUS_TRUE || pl__someone_provisioning(cp) ||
        etcd_unreadable(pl).len)
        return;
    for (uint32_t i = 0; i < cp->workload->etcd.members.count && !taken(pl); i++) {
        const struct pl_etcd_member *member = &cp->workload->etcd.members.items[i];
        if (member->name.len && (PL_PLANTED(ORPHAN_MISTAKEN) || !some_machine_on(pl, member->name)))
            orphan_judge(pl, member);
    }
}

/* --- steps 1 and 5 --------------------------------------------------------------------------- */

static void plan_recovered(struct planner *pl)
{
    for (size_t i = 0; i < pl->cp->machine_count && !taken(pl); i++) {
        const struct pl_machine *m = pl->cp->machines[i].machine;
        if (pl__machine_recovered(m))
            take(pl, (struct pl_step){ .kind = STEP_CLEAR_OWNER_REMEDIATED, .machine = m },
                 FORMAT(pl, "remove OwnerRemediated from Machine %.*s, which is healthy again",
                        PL_STR_ARG(m->meta.name)));
    }
}

static const struct pl_machine *replacement_of(const struct pl_control_plane *cp)
{
    struct pl_str record = cp->kcp->meta.annotations.remediation_in_progress;

    for (size_t i = 0; record.len && i < cp->machine_count; i++) {
        if (pl__str_equal(cp->machines[i].machine->meta.annotations.remediation_for, record))
            return cp->machines[i].machine;
    }
    return NULL;
}

/* Whether fewer Machines stay than are wanted: one that is on its way out will be missed. A control plane
 * that does not say how many it wants wants no more. */
static bool machines_lack(const struct pl_control_plane *cp)
{
    int32_t desired = cp->kcp->replicas.desired - 1, staying = 0;

    for (size_t i = 0; i < cp->machine_count; i++)
        staying += !cp->machines[i].machine->meta.deleted_ms;
    return staying < desired;
}

/* A record that is over blocks every later remediation, so it goes even when nothing is to be remediated
 * now. The retry count is safe: the replacement carries it. */
static void plan_record(struct planner *pl)
{
    struct pl_step step = { .kind = STEP_DROP_RECORD };
    const struct pl_machine *replacement = replacement_of(pl->cp);

    if (replacement) {
        take(pl, step,
             FORMAT(pl, "drop the record of the remediation: Machine %.*s is the replacement",
                    PL_STR_ARG(replacement->meta.name)));
    } else if (pl->record_state == RECORD_REPLACED) {
        take(pl, step, PL_STR("drop the record of the remediation: a newer Machine is there"));
    } else if (pl->record_state == RECORD_RECOVERED) {
        take(pl, step,
             FORMAT(pl, "drop the record of the remediation: Machine %.*s has recovered",
                    PL_STR_ARG(pl->record.machine)));
    } else if (pl->record_state == RECORD_WAITS && !pl->record_machine && pl->cp->machine_count &&
               (PL_PLANTED(RECORD_DROPPED) || !machines_lack(pl->cp))) {
        step.confirm = true;
        take(pl, step,
             FORMAT(pl,
                    "drop the record of the remediation: Machine %.*s is gone, and no Machine is "
                    "missing",
                    PL_STR_ARG(pl->record.machine)));
    } else if (pl->record_state == RECORD_BROKEN) {
        note(
            pl, NULL, "InternalError",
            PL_STR("the annotation remediation-in-progress cannot be read: remediation waits until "
                   "it is mended or removed"));
    }
}

/* --- steps 2 to 9 ---------------------------------------------------------------------------- */

static bool mark_differs(const struct planner *pl)
{
    const struct pl_remediation_detail *d = &pl->cp->remediation;
    const struct pl_condition *c =
        pl__condition_find(&d->pick->machine->conditions, COND_OWNER_REMEDIATED);

    return !c || c->status != PL_STATUS_FALSE || !pl__str_equal(c->reason, d->reason) ||
           !pl__str_equal(c->message, d->message);
}

static void set_mark(struct planner *pl)
{
    const struct pl_remediation_detail *d = &pl->cp->remediation;

    take(pl,
         (struct pl_step){ .kind = STEP_SET_OWNER_REMEDIATED,
                           .machine = d->pick->machine,
                           .reason = d->reason,
                           .message = d->message },
         FORMAT(pl, "set OwnerRemediated of Machine %.*s to False, %.*s",
                PL_STR_ARG(d->pick->machine->meta.name), PL_STR_ARG(d->reason)));
}

static bool is_on_node(const struct pl_etcd_member *member, const void *who)
{
    const struct pl_machine *machine = who;
    return member->name.len && pl__str_equal(member->name, machine->node_name);
}

/* Why not, with the numbers where numbers decided. */
static void refuse(struct planner *pl)
{
    const struct pl_remediation_detail *d = &pl->cp->remediation;
    const struct pl_machine *m = d->pick->machine;
    bool quorum = pl__str_contains(d->message, PL_STR("loosing quorum"));
    struct pl_str why = d->message;

    if (quorum) {
        struct pl_members_left left = pl__members_left(pl->cp, is_on_node, m, member_up);
        why = FORMAT(pl, "removing it would leave %u of %u voters healthy, quorum %u", left.healthy,
                     left.count, left.quorum);
    }
    note(pl, m, d->reason.ptr,
         FORMAT(pl, "not remediating Machine %.*s: %.*s", PL_STR_ARG(m->meta.name),
                PL_STR_ARG(why)));
    wait_for(
        pl, WAIT_PREFLIGHT_MS,
        FORMAT(pl, "the remediation of Machine %.*s to be possible", PL_STR_ARG(m->meta.name)));
    if (mark_differs(pl))
        set_mark(pl);
}

static struct pl_str record_text(struct planner *pl, const struct pl_record *r)
{
    struct pl_buf text;
    struct pl_json_writer w;

    pl__buf_init(&text, pl->p->arena, 4096);
    pl__json_writer_init(&w, &text, JSON_COMPACT);
    pl__json_open_object(&w);
    pl__json_write_key(&w, "machine");
    pl__json_write_str(&w, r->machine);
    pl__json_write_key(&w, "timestamp");
    pl__json_write_time(&w, r->timestamp_ms);
    pl__json_write_key(&w, "retryCount");
    pl__json_write_int(&w, r->retry_count);
    pl__json_close_object(&w);
    return pl__buf_str(&text);
}

/* Step 8 once more, now that it counts, and with what Pods tell. If it does not hold, it is refused in the
 * same words. */
static bool others_keep_quorum(struct planner *pl)
{
    struct pl_remediation_detail *d = &pl->cp->remediation;
    struct pl_members_left left = pl__members_left(pl->cp, is_on_node, d->pick->machine, member_up);

    if (left.healthy >= left.quorum || PL_PLANTED(QUORUM_UNCHECKED))
        return true;
    d->reason = PL_STR("CannotBeRemediated");
    d->message =
        PL_STR("KubeadmControlPlane can't remediate this Machine because this could result "
               "in etcd loosing quorum");
    refuse(pl);
    return false;
}

/* All checks of step 8 hold on this very observation. What is first: leadership, for it can be undone; the
 * record, so that whoever comes after us knows of this Machine and of no other; the mark; the deletion. */
static void remediate(struct planner *pl)
{
    const struct pl_remediation_detail *d = &pl->cp->remediation;
    const struct pl_machine *m = d->pick->machine;

    if (pl->cp->kcp->etcd_managed && pl->cp->kcp->initialized) {
        if (!etcd_known(pl))
            return;
        if (!others_keep_quorum(pl))
            return;
        const struct pl_etcd_member *member = pl__member_of(pl->cp, m);
        if (member && !PL_PLANTED(LEADERSHIP_KEPT) && !leads_not(pl, member, d->candidate))
            return;
    }
    if (!d->resuming && !PL_PLANTED(RECORD_FORGOTTEN)) {
        take(pl,
             (struct pl_step){
                 .kind = STEP_WRITE_RECORD, .machine = m, .record = record_text(pl, &d->record) },
             FORMAT(pl, "record that the remediation of Machine %.*s begins, retry %lld",
                    PL_STR_ARG(m->meta.name), (long long)d->record.retry_count));
    } else if (mark_differs(pl) && !PL_PLANTED(MARK_FORGOTTEN)) {
        set_mark(pl);
    } else {
        take(pl, (struct pl_step){ .kind = STEP_DELETE_MACHINE, .machine = m, .confirm = true },
             FORMAT(pl, "delete Machine %.*s", PL_STR_ARG(m->meta.name)));
    }
}

static bool someone_to_remediate(const struct pl_control_plane *cp)
{
    for (size_t i = 0; i < cp->machine_count; i++) {
        if (pl__machine_to_be_remediated(cp->machines[i].machine))
            return true;
    }
    return false;
}

static void plan_remediation(struct planner *pl)
{
    const struct pl_remediation_detail *d = &pl->cp->remediation;

    if (!d->judged) {
        if (someone_to_remediate(pl->cp)) {
            pl->plan->wants_etcd = true;
            wait_for(pl, WAIT_PREFLIGHT_MS,
                     PL_STR("the workload cluster: without it no remediation is decided"));
        }
        return;
    }
    if (d->action == REMEDIATION_GO)
        remediate(pl);
    else if (d->action == REMEDIATION_REFUSE)
        refuse(pl);
    else if (d->pick && (pl->record_machine || pl->record_state == RECORD_NONE))
        wait_for(pl, WAIT_MACHINE_MS,
                 PL_STR("the remediation that is in progress to come to its end"));
}

/* --- section 11: the replacement ------------------------------------------------------------- */

static bool machine_sound(const struct pl_control_plane *cp, const struct pl_machine_state *s)
{
    int count = cp->kcp->etcd_managed ? MACHINE_COND_COUNT : COND_ETCD_POD;

    for (int type = 0; type < count; type++) {
        if (s->verdicts[type].status != PL_STATUS_TRUE)
            return false;
    }
    return s->machine->node_name.len > 0;
}

static bool is_nobody(const struct pl_etcd_member *member, const void *who)
{
    (void)member;
    (void)who;
    return false;
}

/* Why the replacement is not made yet; empty: it is. */
static struct pl_str replacement_held_up(struct planner *pl)
{
    const struct pl_control_plane *cp = pl->cp;

    if (!cp->cluster || cp->rung != RUNG_PASSED)
        return PL_STR("the workload cluster, which cannot be looked at");
    if (cp->cluster->topology_version.len &&
        !pl__str_equal(cp->cluster->topology_version, cp->kcp->version))
        return FORMAT(pl, "version %.*s to be propagated from Cluster.spec.topology",
                      PL_STR_ARG(cp->cluster->topology_version));
    for (size_t i = 0; i < cp->machine_count; i++) {
        const struct pl_machine *m = cp->machines[i].machine;
        if (m->meta.deleted_ms)
            return FORMAT(pl, "Machine %.*s to be gone", PL_STR_ARG(m->meta.name));
        if (!pl__machine_to_be_remediated(m) && !machine_sound(cp, &cp->machines[i]))
            return FORMAT(pl, "Machine %.*s to be healthy", PL_STR_ARG(m->meta.name));
    }
    if (cp->kcp->etcd_managed && !etcd_unreadable(pl).len) {
        struct pl_members_left all = pl__members_left(cp, is_nobody, NULL, member_up);
        if (all.healthy < all.quorum)
            return FORMAT(pl, "etcd to have quorum: %u of %u members are healthy, quorum %u",
                          all.healthy, all.count, all.quorum);
    }
    return (struct pl_str){ "", 0 };
}

static void plan_replacement(struct planner *pl)
{
    const struct pl_control_plane *cp = pl->cp;

    if (!cp->kcp->initialized || cp->machine_count == 0 || !machines_lack(cp) ||
        pl->record_state != RECORD_WAITS || pl->record_machine)
        return;
    struct pl_str held_up = replacement_held_up(pl);
    if (held_up.len) {
        note(pl, NULL, "ReplacementDeferred",
             FORMAT(pl, "not replacing Machine %.*s yet: waiting for %.*s",
                    PL_STR_ARG(pl->record.machine), PL_STR_ARG(held_up)));
        wait_for(pl, WAIT_PREFLIGHT_MS, held_up);
        return;
    }
    if (cp->kcp->etcd_managed && !etcd_known(pl))
        return;
    take(pl, (struct pl_step){ .kind = STEP_CREATE_REPLACEMENT, .confirm = true },
         FORMAT(pl, "create the replacement of Machine %.*s", PL_STR_ARG(pl->record.machine)));
}

/* --- section 8 ------------------------------------------------------------------------------- */

static void delete_machine(struct planner *pl, const struct pl_machine *m, bool confirm)
{
    take(pl, (struct pl_step){ .kind = STEP_DELETE_MACHINE, .machine = m, .confirm = confirm },
         FORMAT(pl, "delete Machine %.*s", PL_STR_ARG(m->meta.name)));
}

/* All at once, as Cluster API does it: each loses its hook first. */
static void delete_all(struct planner *pl)
{
    for (size_t i = 0; i < pl->cp->machine_count && !taken(pl); i++) {
        const struct pl_machine *m = pl->cp->machines[i].machine;
        if (m->meta.annotations.kcp_cleanup_hook)
            drop_hook(pl, m);
        else if (!m->meta.deleted_ms)
            delete_machine(pl, m, false);
    }
    if (!taken(pl))
        wait_for(pl, WAIT_MACHINE_MS, PL_STR("the control plane Machines to be gone"));
}

/* Another Machine can go without costing quorum where the chosen one cannot: with one of three members dead
 * the dead one's leaves two of two. Newest first as ever, the leader's last. */
static const struct pl_machine *other_to_go(const struct pl_control_plane *cp,
                                            const struct pl_machine *than)
{
    const struct pl_machine *pick = NULL;
    struct pl_members_left left;

    for (size_t i = 0; i < cp->machine_count; i++) {
        const struct pl_machine *m = cp->machines[i].machine;
        const struct pl_etcd_member *member = pl__member_of(cp, m);
        if (m == than || m->meta.deleted_ms || (member && !surely_keeps_quorum(cp, member, &left)))
            continue;
        bool leads = pl__hosts_leader(cp, m), pick_leads = pick && pl__hosts_leader(cp, pick);
        if (!pick || (pick_leads && !leads) ||
            (pick_leads == leads && m->meta.created_ms >= pick->meta.created_ms))
            pick = m;
    }
    return pick;
}

static void leave_etcd(struct planner *pl, const struct pl_machine *m)
{
    const struct pl_etcd_member *member = pl__member_of(pl->cp, m);

    if (!member)
        delete_machine(pl, m, true);
    else if (leads_not(pl, member, NULL))
        remove_member(pl, member, m);
}

/* The next Machine's member is listed. It goes first, unless that would cost quorum: then another Machine,
 * or a member without a Machine; and when nothing else has helped for 10 minutes, the Machine without it. */
static void delete_with_member(struct planner *pl)
{
    const struct pl_machine *next = pl->cp->deletion.next;
    struct pl_members_left left;

    if (!etcd_known(pl))
        return;
    if (pl->etcd_refuses && pl->cp->deletion.gave_up) {
        note_without_member(pl, next, PL_STR("etcd refuses it"));
        delete_machine(pl, next, true);
        return;
    }
    if (surely_keeps_quorum(pl->cp, pl__member_of(pl->cp, next), &left)) {
        leave_etcd(pl, next);
        return;
    }
    note(pl, next, "EtcdMemberNotRemoved",
         FORMAT(pl, "not removing the etcd member of Machine %.*s: %.*s",
                PL_STR_ARG(next->meta.name), PL_STR_ARG(arithmetic(pl, &left))));
    const struct pl_machine *other = other_to_go(pl->cp, next);
    if (other)
        leave_etcd(pl, other);
    else
        plan_orphan(pl);
    if (!taken(pl) && pl->cp->deletion.gave_up)
        delete_machine(pl, next, true);
    if (!taken(pl))
        wait_for(pl, WAIT_MACHINE_MS, PL_STR("more healthy etcd members"));
}

static void delete_next(struct planner *pl)
{
    const struct pl_control_plane *cp = pl->cp;

    if (cp->kcp->etcd_managed && cp->kcp->initialized && cp->machine_count > 1) {
        struct pl_str problem = etcd_unreadable(pl);
        if (problem.len && cp->deletion.gave_up)
            note_without_member(pl, cp->deletion.next, problem);
        else if (!etcd_known(pl))
            return;
    }
    delete_machine(pl, cp->deletion.next, true);
}

static void plan_deletion(struct planner *pl)
{
    const struct pl_deletion_detail *d = &pl->cp->deletion;
    struct pl_step step = { 0 };

    if (d->lacking.len) {
        pl->plan->wants_etcd = true;
        wait_for(pl, WAIT_ETCD_MS, FORMAT(pl, "evidence: %.*s", PL_STR_ARG(d->lacking)));
        return;
    }
    switch (d->action) {
    case DELETION_NONE:
        return;
    case DELETION_WAIT:
        wait_for(pl, WAIT_MACHINE_MS, pl->cp->deleting.message);
        return;
    case DELETION_DELETE_ALL:
        delete_all(pl);
        return;
    case DELETION_REMOVE_MEMBER:
        delete_with_member(pl);
        return;
    case DELETION_DELETE_MACHINE:
        delete_next(pl);
        return;
    case DELETION_DELETE_TEMPLATES:
        step.kind = STEP_DELETE_TEMPLATE;
        step.infra_template = &pl->p->snapshot->templates.items[0];
        take(pl, step,
             FORMAT(pl, "delete %.*s %.*s", PL_STR_ARG(step.infra_template->kind),
                    PL_STR_ARG(step.infra_template->name)));
        return;
    case DELETION_FINISH:
        step.kind = STEP_DROP_FINALIZER;
        step.confirm = true;
        take(pl, step, PL_STR("drop the finalizer: the deletion is complete"));
        return;
    }
}

/* --- checklists ------------------------------------------------------------------------------ */

static bool step_is(const struct planner *pl, enum pl_step_kind kind)
{
    return pl->plan->step.kind == kind;
}

/* Done, or the step that is next, or one of those that come after it. */
static void add_task(struct planner *pl, bool done, int64_t since_ms, enum pl_step_kind kind,
                     struct pl_str text)
{
    enum pl_line_state state = done ? PL_LINE_DONE : step_is(pl, kind) ? PL_LINE_NOW : PL_LINE_NEXT;

    add_line(pl, state, done ? since_ms : 0, text);
}

static void add_member_line(struct planner *pl, const struct pl_machine *m)
{
    if (pl->cp->kcp->etcd_managed && pl->cp->machine_count > 1 && m->node_name.len &&
        !etcd_unreadable(pl).len)
        add_task(pl, !pl__member_of(pl->cp, m), 0, STEP_REMOVE_MEMBER,
                 FORMAT(pl, "etcd member %.*s is removed", PL_STR_ARG(m->node_name)));
}

/* A Machine that somebody has to end, and what we have to do for it. When the whole control plane goes its
 * member leaves first, else in the hook. */
static void add_departure(struct planner *pl, const struct pl_machine *m)
{
    bool hook = m->meta.annotations.kcp_cleanup_hook, whole = pl->cp->kcp->meta.deleted_ms != 0;
    struct pl_str name = m->meta.name;

    if (whole)
        add_member_line(pl, m);
    add_task(pl, m->meta.deleted_ms != 0, m->meta.deleted_ms, STEP_DELETE_MACHINE,
             FORMAT(pl, "Machine %.*s is deleted", PL_STR_ARG(name)));
    if (!whole)
        add_member_line(pl, m);
    if (hook || m->meta.deleted_ms)
        add_task(pl, !hook, 0, STEP_DROP_HOOK,
                 FORMAT(pl, "the pre-terminate hook of Machine %.*s is dropped", PL_STR_ARG(name)));
    add_line(pl, m->meta.deleted_ms ? PL_LINE_WAITING : PL_LINE_NEXT, m->meta.deleted_ms,
             FORMAT(pl, "Machine %.*s is gone", PL_STR_ARG(name)));
}

static void remediation_lines(struct planner *pl, struct pl_str machine)
{
    const struct pl_machine_state *state = pl__machine_named(pl->cp, machine);
    const struct pl_machine *replacement = replacement_of(pl->cp);
    const struct pl_condition *mark =
        state ? pl__condition_find(&state->machine->conditions, COND_OWNER_REMEDIATED) : NULL;
    bool recorded = pl__str_equal(pl->record.machine, machine);

    pl->plan->shown.procedure = FORMAT(pl, "remediation of Machine %.*s", PL_STR_ARG(machine));
    add_task(pl, recorded, pl->record.timestamp_ms, STEP_WRITE_RECORD,
             PL_STR("the record is written"));
    if (state) {
        add_task(pl, mark && pl__str_equal(mark->reason, PL_STR("MachineDeleting")), 0,
                 STEP_SET_OWNER_REMEDIATED,
                 FORMAT(pl, "OwnerRemediated of Machine %.*s says MachineDeleting",
                        PL_STR_ARG(machine)));
        add_departure(pl, state->machine);
    } else {
        add_line(pl, PL_LINE_DONE, 0, FORMAT(pl, "Machine %.*s is gone", PL_STR_ARG(machine)));
    }
    add_task(pl, replacement != NULL, replacement ? replacement->meta.created_ms : 0,
             STEP_CREATE_REPLACEMENT, PL_STR("the replacement is created"));
    add_task(pl, false, 0, STEP_DROP_RECORD, PL_STR("the record is dropped"));
}

static void deletion_lines(struct planner *pl)
{
    const struct pl_control_plane *cp = pl->cp;
    bool workers = pl__str_equal(cp->deleting.reason, PL_STR("WaitingForWorkersDeletion"));

    pl->plan->shown.procedure = PL_STR("deletion");
    add_line(pl, workers ? PL_LINE_WAITING : PL_LINE_DONE, workers ? cp->kcp->meta.deleted_ms : 0,
             PL_STR("worker Machines and MachinePools are gone"));
    for (size_t i = 0; i < cp->machine_count; i++) {
        const struct pl_machine *m = cp->machines[i].machine;
        if (m->meta.deleted_ms || m == pl->plan->step.machine || m == cp->deletion.next)
            add_departure(pl, m);
        else
            add_line(pl, PL_LINE_NEXT, 0,
                     FORMAT(pl, "Machine %.*s is gone", PL_STR_ARG(m->meta.name)));
    }
    if (pl->p->snapshot->templates.count)
        add_task(pl, false, 0, STEP_DELETE_TEMPLATE,
                 PL_STR("the infrastructure machine templates are deleted"));
    add_task(pl, false, 0, STEP_DROP_FINALIZER, PL_STR("the finalizer is dropped"));
}

static void plan_lines(struct planner *pl)
{
    const struct pl_remediation_detail *d = &pl->cp->remediation;

    if (pl->cp->kcp->meta.deleted_ms)
        deletion_lines(pl);
    else if (pl->record.machine.len)
        remediation_lines(pl, pl->record.machine);
    else if (d->pick && d->action == REMEDIATION_GO)
        remediation_lines(pl, d->pick->machine->meta.name);
}

/* --- the whole ------------------------------------------------------------------------------- */

static void plan_life(struct planner *pl)
{
    static void (*const parts[])(struct planner *) = { plan_hook,        plan_orphan,
                                                       plan_recovered,   plan_record,
                                                       plan_remediation, plan_replacement };

    for (size_t i = 0; i < sizeof parts / sizeof parts[0] && !taken(pl); i++)
        parts[i](pl);
}

void pl__plan_make(struct pl_pass *p, struct pl_control_plane *cp, const struct pl_plans *asked,
                   struct pl_plan *plan)
{
    struct planner pl = { .p = p,
                          .cp = cp,
                          .plan = plan,
                          .etcd_stale = asked->etcd_stale,
                          .etcd_refuses = asked->etcd_refuses };
    bool all_at_once =
        p->profile == PL_PROFILE_CLUSTER_API_1_12 && cp->deletion.action == DELETION_DELETE_ALL;

    plan->shown.namespace_ = cp->kcp->meta.namespace_;
    plan->shown.name = cp->kcp->meta.name;
    plan->shown.paused = (cp->cluster && cp->cluster->paused) || cp->kcp->meta.annotations.paused;
    pl.record_state = pl__record_judge(p->arena, cp, &pl.record, &pl.record_machine);
    if (!cp->kcp->meta.deleted_ms) {
        plan_life(&pl);
    } else {
        if (!all_at_once)
            plan_hook(&pl);
        if (!taken(&pl))
            plan_deletion(&pl);
    }
    plan_lines(&pl);
    plan->shown.lines = pl.lines.items;
    plan->shown.line_count = pl.lines.count;
    plan->shown.notes = pl.notes.items;
    plan->shown.note_count = pl.notes.count;
}
