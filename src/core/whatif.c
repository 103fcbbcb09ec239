/* core/whatif.c - what removing one control plane Machine would mean. */
#include "core/control_plane.h"
#include "core/evaluate.h"

static struct pl_quorum quorum_of(uint32_t members, uint32_t voters, uint32_t healthy)
{
    uint32_t quorum = voters / 2 + 1;

    return (struct pl_quorum){ .members = members,
                               .voters = voters,
                               .healthy = healthy,
                               .quorum = quorum,
                               .tolerance = (int32_t)healthy - (int32_t)quorum };
}

static bool is_healthy_voter(const struct pl_control_plane *cp, const struct pl_etcd_member *m)
{
    const struct pl_machine_state *host = pl__machine_on_node(cp, m->name);

    return !m->is_learner && host && host->verdicts[COND_ETCD_MEMBER].status == PL_STATUS_TRUE;
}

struct pl_quorum pl__quorum_of_members(const struct pl_control_plane *cp)
{
    const struct pl_etcd_view *etcd = &cp->workload->etcd;
    uint32_t voters = 0, healthy = 0;

    for (uint32_t i = 0; i < etcd->members.count; i++) {
        voters += !etcd->members.items[i].is_learner;
        healthy += is_healthy_voter(cp, &etcd->members.items[i]);
    }
    return quorum_of(etcd->members.count, voters, healthy);
}

/* Counts the members, with and without the one on `node`. */
static void arithmetic(const struct pl_control_plane *cp, struct pl_str node, struct pl_what_if *w)
{
    const struct pl_etcd_view *etcd = &cp->workload->etcd;
    struct pl_quorum all = pl__quorum_of_members(cp);
    uint32_t gone = 0, gone_voter = 0, gone_healthy = 0;

    for (uint32_t i = 0; i < etcd->members.count; i++) {
        const struct pl_etcd_member *m = &etcd->members.items[i];
        if (!node.len || !pl__str_equal(m->name, node))
            continue;
        w->member = m->name;
        w->member_is_leader = etcd->leader && etcd->leader == m->id;
        gone++;
        gone_voter += !m->is_learner;
        gone_healthy += is_healthy_voter(cp, m);
    }
    w->before = all;
    w->after = quorum_of(all.members - gone, all.voters - gone_voter, all.healthy - gone_healthy);
    w->keeps_quorum = w->after.tolerance >= 0;
}

struct pl_str pl__etcd_unknown(struct pl_pass *p, const struct pl_control_plane *cp, bool *missing)
{
    const struct pl_workload *w = cp->workload;

    *missing = true;
    if (!w || !w->etcd.present)
        return pl__missing_workload(p, cp, "etcd");
    *missing = false;
    if (w->etcd.connect_error.len)
        return w->etcd.connect_error;
    if (w->etcd.members.present)
        return (struct pl_str){ "", 0 };
    if (w->etcd.members_error.len)
        return w->etcd.members_error;
    *missing = true;
    return pl__missing_workload(p, cp, "etcd.members");
}

/* What remediation would say of it in one profile, were it marked for it. */
static int rule_ask(const struct pl_snapshot *s, const struct pl_kcp *kcp,
                    const struct pl_machine *machine, enum pl_profile profile,
                    struct pl_arena *arena, struct pl_what_if *w, bool fills, struct pl_error **err)
{
    struct pl_pass p = { .arena = arena, .snapshot = s, .profile = profile };
    struct pl_control_plane cp = { 0 };
    struct pl_deletion deletion = { 0 };
    struct pl_remediation step = { 0 };
    struct pl_what_if_rule *rule = &w->rules[profile];
    bool deletes = false;

    if (pl__control_plane_gather(&p, kcp, &cp, err) < 0)
        return -1;
    pl__control_plane_judge(&p, &cp, &deletion, &deletes);
    rule->profile = profile;
    if (fills) {
        w->etcd_managed = kcp->etcd_managed;
        bool missing;
        w->etcd_unknown = pl__etcd_unknown(&p, &cp, &missing);
        if (w->etcd_managed && !w->etcd_unknown.len)
            arithmetic(&cp, machine->node_name, w);
    }
    if (kcp->meta.deleted_ms) {
        rule->row = "Deleting/2";
        rule->guard = "the KubeadmControlPlane is being deleted";
        rule->reason = pl__str(deletion.phase ? deletion.phase : "");
        rule->message = PL_STR("the whole control plane is being deleted; nothing is remediated");
        return 0;
    }
    if (cp.rung == RUNG_L00 || cp.rung == RUNG_L0 || cp.asks_for_error) {
        const struct pl_rule *rung = &pl__ladder.rules[cp.rung];
        rule->row = rung->id;
        rule->guard = rung->when;
        rule->reason = pl__str(rung->says[profile].reason);
        rule->message =
            PL_STR("remediation is not reached while the control plane cannot be inspected");
        return 0;
    }
    if (cp.rung < 0 || !pl__remediation_judge(&p, &cp, machine, &step)) {
        const struct pl_missing *missing = p.missing.items;
        rule->row = "";
        rule->guard = "";
        rule->reason = PL_STR("EvidenceMissing");
        rule->message = p.missing.count ? missing[p.missing.count - 1].evidence : PL_STR("");
        return 0;
    }
    rule->row = step.row;
    rule->guard = step.guard;
    rule->allowed = step.deleted.len > 0 && pl__str_equal(step.deleted, machine->meta.name);
    if (fills && rule->allowed && w->member_is_leader)
        w->leadership_to = step.leadership_forwarded_to;
    for (size_t i = 0; !rule->allowed && i < step.owner_remediated_count; i++) {
        if (pl__str_equal(step.owner_remediated[i].machine, step.machine)) {
            rule->reason = step.owner_remediated[i].reason;
            rule->message = step.owner_remediated[i].message;
        }
    }
    if (!rule->allowed && !rule->reason.len)
        rule->reason = PL_STR("Waiting");
    return 0;
}

static bool name_matches(const struct pl_machine *m, struct pl_str wanted)
{
    const char *slash = wanted.len ? memchr(wanted.ptr, '/', wanted.len) : NULL;

    if (!slash)
        return pl__str_equal(m->meta.name, wanted);
    struct pl_str namespace_ = { wanted.ptr, (size_t)(slash - wanted.ptr) };
    struct pl_str name = { slash + 1, wanted.len - namespace_.len - 1 };
    return pl__str_equal(m->meta.namespace_, namespace_) && pl__str_equal(m->meta.name, name);
}

/* The control plane that owns the Machine, or NULL. */
static const struct pl_kcp *owner_of(const struct pl_snapshot *s, const struct pl_machine *m)
{
    const struct pl_owner_reference *controller = pl__controller_of(&m->meta);

    for (uint32_t i = 0; controller && i < s->objects.kcps.count; i++) {
        const struct pl_kcp *kcp = &s->objects.kcps.items[i];
        if (pl__str_equal(kcp->meta.namespace_, m->meta.namespace_) &&
            m->meta.labels.control_plane &&
            pl__owner_is(controller, PL_STR("KubeadmControlPlane"), &kcp->meta))
            return kcp;
    }
    return NULL;
}

int pl__what_if_remove(const struct pl_snapshot *s, struct pl_evaluate_options options,
                       struct pl_str wanted, struct pl_arena *arena,
                       const struct pl_what_if **answer, struct pl_error **err)
{
    const struct pl_machine *machine = NULL;
    bool several = false;

    for (uint32_t i = 0; i < s->objects.machines.count; i++) {
        if (!name_matches(&s->objects.machines.items[i], wanted))
            continue;
        several = machine != NULL;
        machine = &s->objects.machines.items[i];
    }
    if (!machine)
        return pl__error(arena, err, PL_NOT_FOUND, "%.*s: no Machine \"%.*s\"",
                         PL_STR_ARG(s->source), PL_STR_ARG(wanted));
    if (several)
        return pl__error(arena, err, PL_USAGE,
                         "%.*s: several Machines are called \"%.*s\", say namespace/name",
                         PL_STR_ARG(s->source), PL_STR_ARG(wanted));
    const struct pl_kcp *kcp = owner_of(s, machine);
    if (!kcp)
        return pl__error(arena, err, PL_NOT_FOUND,
                         "%.*s: Machine \"%.*s\" belongs to no KubeadmControlPlane of the input",
                         PL_STR_ARG(s->source), PL_STR_ARG(wanted));

    struct pl_what_if *w = PL_NEW(arena, struct pl_what_if, 1);
    w->machine = machine->meta.name;
    w->namespace_ = machine->meta.namespace_;
    w->control_plane = kcp->meta.name;
    for (int profile = 0; profile < PL_PROFILE_COUNT; profile++) {
        if (rule_ask(s, kcp, machine, (enum pl_profile)profile, arena, w,
                     (enum pl_profile)profile == options.profile, err) < 0)
            return -1;
    }
    *answer = w;
    return 0;
}
