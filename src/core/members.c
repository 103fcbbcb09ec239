/* core/members.c - each Machine's etcd member (semantics section 5). */
#include "core/pass.h"

#include <inttypes.h>

struct pl_machine_state *pl__machine_on_node(const struct pl_control_plane *cp, struct pl_str node)
{
    if (node.len == 0)
        return NULL;
    for (size_t i = 0; i < cp->machine_count; i++) {
        if (pl__str_equal(cp->machines[i].machine->node_name, node))
            return &cp->machines[i];
    }
    return NULL;
}

struct pl_str pl__member_label(struct pl_arena *arena, const struct pl_etcd_member *member)
{
    if (member->name.len)
        return member->name;
    return pl__str_format(arena, "%" PRIu64 " (Name not yet assigned)", member->id);
}

bool pl__someone_provisioning(const struct pl_control_plane *cp)
{
    for (size_t i = 0; i < cp->machine_count; i++) {
        if (cp->machines[i].machine->node_name.len == 0)
            return true;
    }
    return false;
}

struct pl_str pl__etcd_status_errors(const struct pl_pass *p, const struct pl_etcd_view *etcd)
{
    /* etcd repeats every member's alarms among the errors of whichever member is asked. The
     * documents' reading leaves those to the alarm list, which blames the right one. */
    bool skip_alarms = p->profile == PL_PROFILE_TABLES;
    struct pl_buf text;
    bool first = true;

    pl__buf_init(&text, p->arena, SIZE_MAX);
    for (uint32_t i = 0; i < etcd->errors.count; i++) {
        struct pl_str error = etcd->errors.items[i];
        if (skip_alarms && pl__str_contains(error, PL_STR("alarm:")))
            continue;
        if (!first)
            pl__buf_add_lit(&text, ", ");
        first = false;
        pl__buf_add(&text, error);
    }
    return pl__buf_str(&text);
}

/* A Machine that has a Node and is not on its way out: its member must be asked for. */
static bool needs_etcd(const struct pl_machine *m)
{
    return m->node_name.len && !m->meta.deleted_ms;
}

struct etcd_access {
    bool needed;    /* some Machine needs etcd */
    bool candidate; /* and its Node is there to ask through */
};

static struct etcd_access access_of(const struct pl_control_plane *cp)
{
    struct etcd_access a = { 0 };

    for (size_t i = 0; i < cp->machine_count; i++) {
        const struct pl_machine *m = cp->machines[i].machine;
        if (!needs_etcd(m))
            continue;
        a.needed = true;
        a.candidate |= pl__workload_node(cp->workload, m->node_name) != NULL;
    }
    return a;
}

/* What of the etcd view is absent though nothing explains its absence; NULL: nothing. */
static const char *lacking_part(const struct pl_etcd_view *etcd, struct pl_str errors)
{
    if (!etcd->present)
        return "etcd";
    if (etcd->connect_error.len || errors.len)
        return NULL;
    if (!etcd->members.present && !etcd->members_error.len)
        return "etcd.members";
    if (!etcd->members_error.len && !etcd->alarms.present && !etcd->alarms_error.len)
        return "etcd.alarms";
    return NULL;
}

const char *pl__etcd_lacking(const struct pl_pass *p, const struct pl_control_plane *cp)
{
    const struct pl_etcd_view *etcd = &cp->workload->etcd;
    return lacking_part(etcd, pl__etcd_status_errors(p, etcd));
}

bool pl__members_compared(const struct pl_pass *p, const struct pl_control_plane *cp)
{
    const struct pl_etcd_view *etcd = &cp->workload->etcd;
    struct etcd_access access = access_of(cp);
    struct pl_str errors = pl__etcd_status_errors(p, etcd);

    return access.needed && access.candidate && !lacking_part(etcd, errors) && !errors.len &&
           !etcd->connect_error.len && !etcd->members_error.len && !etcd->alarms_error.len;
}

static const struct pl_etcd_member *member_named(const struct pl_etcd_view *etcd,
                                                 struct pl_str name)
{
    for (uint32_t i = 0; i < etcd->members.count; i++) {
        if (pl__str_equal(etcd->members.items[i].name, name))
            return &etcd->members.items[i];
    }
    return NULL;
}

static struct pl_str alarms_of(struct pl_pass *p, const struct pl_etcd_view *etcd,
                               uint64_t member_id)
{
    struct pl_buf text;
    bool first = true;

    pl__buf_init(&text, p->arena, SIZE_MAX);
    for (uint32_t i = 0; i < etcd->alarms.count; i++) {
        const struct pl_etcd_alarm *a = &etcd->alarms.items[i];
        if (a->member_id != member_id || pl__str_equal(a->alarm, PL_STR("NONE")))
            continue;
        if (!first)
            pl__buf_add_lit(&text, ", ");
        first = false;
        pl__buf_add(&text, a->alarm);
    }
    return pl__buf_str(&text);
}

static void member_evidence(struct pl_pass *p, struct pl_control_plane *cp,
                            const struct pl_machine *m, const struct pl_member_facts *f,
                            const struct pl_etcd_member *member, struct pl_str errors,
                            struct pl_str alarms, struct pl_verdict *v)
{
    const struct pl_etcd_view *etcd = &cp->workload->etcd;

    if (!p->explain)
        return;
    struct pl_str machine = pl__object_ref(p, "Machine", m->meta.namespace_, m->meta.name);
    struct pl_str view = pl__object_ref(p, "etcd", cp->kcp->meta.namespace_, cp->cluster_name);
    if (f->nodes_failed) {
        pl__evidence(p, v, pl__object_ref(p, "Cluster", cp->kcp->meta.namespace_, cp->cluster_name),
                     "nodes", cp->workload->nodes_error, SOURCE_LIST);
        return;
    }
    pl__evidence(p, v, machine, "status.nodeRef.name", m->node_name, SOURCE_LIST);
    if (f->deleting)
        pl__evidence(p, v, machine, "metadata.deletionTimestamp", PL_STR("set"), SOURCE_LIST);
    if (!f->has_node)
        pl__evidence(p, v, machine, "spec.providerID", m->provider_id, SOURCE_LIST);
    if (!f->has_node || (f->deleting && f->found))
        return;
    if (f->no_candidate)
        pl__evidence(p, v, pl__object_ref(p, "Node", (struct pl_str){ 0 }, m->node_name), "exists",
                     PL_STR("false"), SOURCE_LIST);
    else if (f->connect_failed)
        pl__evidence(p, v, view, "connectError", etcd->connect_error, SOURCE_ETCD);
    else if (f->status_errors)
        pl__evidence(p, v, view, "errors", errors, SOURCE_ETCD);
    else if (f->members_failed)
        pl__evidence(p, v, view, "membersError", etcd->members_error, SOURCE_ETCD);
    else if (f->alarms_failed)
        pl__evidence(p, v, view, "alarmsError", etcd->alarms_error, SOURCE_ETCD);
    else if (!member)
        pl__evidence(p, v, view, "members[].name", PL_STR(""), SOURCE_ETCD);
    else {
        struct pl_str path = pl__str_format(p->arena, "members[%" PRIu64 "]", member->id);
        pl__evidence(p, v, view, path.ptr,
                     pl__str_format(p->arena, "%.*s, %s", PL_STR_ARG(member->name),
                                    member->is_learner ? "learner" : "voter"),
                     SOURCE_ETCD);
        path = pl__str_format(p->arena, "alarms[%" PRIu64 "]", member->id);
        pl__evidence(p, v, view, path.ptr, alarms, SOURCE_ETCD);
    }
}

static void member_judge(struct pl_pass *p, struct pl_control_plane *cp, struct pl_machine_state *s,
                         struct etcd_access access, struct pl_str errors)
{
    const struct pl_machine *m = s->machine;
    const struct pl_workload *w = cp->workload;
    const struct pl_etcd_view *etcd = &w->etcd;
    struct pl_verdict *v = &s->verdicts[COND_ETCD_MEMBER];
    struct pl_member_facts f = {
        .nodes_failed = w->nodes_error.len > 0,
        .deleting = m->meta.deleted_ms != 0,
        .has_node = m->node_name.len > 0,
        .has_provider_id = m->provider_id.len > 0,
        .no_candidate = !access.candidate,
        .connect_failed = etcd->connect_error.len > 0,
        .status_errors = errors.len > 0,
        .members_failed = etcd->members_error.len > 0,
        .alarms_failed = etcd->alarms_error.len > 0,
    };
    const struct pl_etcd_member *member = NULL;
    struct pl_str alarms = { 0 };
    const char *lacking = lacking_part(etcd, errors);
    /* Deleting Machines look at etcd too, but only to see whether their member is gone already. */
    bool reads_etcd = !f.nodes_failed && f.has_node && access.candidate;

    if (reads_etcd && lacking) {
        s->missing[COND_ETCD_MEMBER] = true;
        pl__missing_add(p, "Machine", &m->meta, v->type, pl__missing_workload(p, cp, lacking));
        return;
    }
    if (f.has_node)
        member = member_named(etcd, m->node_name);
    if (member) {
        alarms = alarms_of(p, etcd, member->id);
        f.found = true;
        f.learner = member->is_learner;
        f.alarm = alarms.len > 0;
    }

    struct pl_text texts[] = {
        { "error", etcd->connect_error },
        { "node", m->node_name },
        { "providerID", m->provider_id },
        { "infrastructure kind", m->infrastructure_kind },
        { "endpoint", etcd->endpoint },
        { "errors", errors },
        { "alarms", alarms },
    };
    if (f.no_candidate)
        texts[0].value = PL_STR("no Node with an etcd member to connect to");
    else if (!f.connect_failed)
        texts[0].value = f.members_failed ? etcd->members_error : etcd->alarms_error;

    member_evidence(p, cp, m, &f, member, errors, alarms, v);
    pl__verdict_judge(p, v, COND_ETCD_MEMBER, &m->meta, &m->conditions, &pl__member_healthy,
                      pl__judge(&pl__member_healthy, pl__member_facts(&f), p->profile), texts,
                      sizeof texts / sizeof texts[0]);
    if (strcmp(v->row, "EtcdMemberHealthy/4") == 0)
        s->lacks_member = true;
    /* Row 3 has this outcome only for a failure to connect, or for nobody to connect to. Cluster API
     * has no such row of its own: there a Machine without providerID counts as good (section 6). */
    else if (!f.deleting && f.has_node && v->status == PL_STATUS_UNKNOWN &&
             (f.no_candidate || f.connect_failed) &&
             (f.has_provider_id || p->profile == PL_PROFILE_TABLES))
        s->connect_failed = true;
}

void pl__members_judge(struct pl_pass *p, struct pl_control_plane *cp)
{
    struct etcd_access access = access_of(cp);
    struct pl_str errors = pl__etcd_status_errors(p, &cp->workload->etcd);

    for (size_t i = 0; i < cp->machine_count; i++)
        member_judge(p, cp, &cp->machines[i], access, errors);
}
