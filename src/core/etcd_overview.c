#include "core/etcd_overview.h"

#include "core/control_plane.h"

struct pl_str pl__etcd_alarms_of(struct pl_arena *arena, const struct pl_etcd_view *etcd,
                                 uint64_t member_id)
{
    struct pl_buf text;

    pl__buf_init(&text, arena, SIZE_MAX);
    for (uint32_t i = 0; i < etcd->alarms.count; i++) {
        const struct pl_etcd_alarm *a = &etcd->alarms.items[i];
        if (a->member_id != member_id || pl__str_equal(a->alarm, PL_STR("NONE")))
            continue;
        if (text.len)
            pl__buf_add_lit(&text, ", ");
        pl__buf_add(&text, a->alarm);
    }
    return pl__buf_str(&text);
}

static bool is_member(const struct pl_etcd_view *etcd, uint64_t id)
{
    for (uint32_t i = 0; i < etcd->members.count; i++) {
        if (etcd->members.items[i].id == id)
            return true;
    }
    return false;
}

static bool has_member(const struct pl_etcd_view *etcd, struct pl_str node)
{
    for (uint32_t i = 0; i < etcd->members.count; i++) {
        if (pl__str_equal(etcd->members.items[i].name, node))
            return true;
    }
    return false;
}

static void rows_fill(struct pl_arena *arena, const struct pl_control_plane *cp,
                      struct pl_etcd_overview *o)
{
    const struct pl_etcd_view *etcd = o->view;
    struct pl_etcd_row *rows = PL_NEW(arena, struct pl_etcd_row, etcd->members.count);
    struct pl_str *stray = PL_NEW(arena, struct pl_str, etcd->members.count);

    for (uint32_t i = 0; i < etcd->members.count; i++) {
        const struct pl_etcd_member *m = &etcd->members.items[i];
        const struct pl_machine_state *host = pl__machine_on_node(cp, m->name);
        struct pl_etcd_row *row = &rows[i];
        row->member = m;
        row->label = pl__member_label(arena, m);
        row->alarms = pl__etcd_alarms_of(arena, etcd, m->id);
        row->leads = etcd->leader && etcd->leader == m->id;
        if (host) {
            row->machine = host->machine->meta.name;
            row->healthy = host->verdicts[COND_ETCD_MEMBER].status;
        } else {
            stray[o->stray_member_count++] = row->label;
        }
    }
    o->rows = rows;
    o->row_count = etcd->members.count;
    o->stray_members = stray;
    o->quorum = pl__quorum_of_members(cp);
}

static void strays_fill(struct pl_arena *arena, const struct pl_control_plane *cp,
                        struct pl_etcd_overview *o)
{
    const struct pl_workload *w = cp->workload;
    struct pl_str *machines = PL_NEW(arena, struct pl_str, cp->machine_count);
    struct pl_str *nodes = PL_NEW(arena, struct pl_str, w->nodes.count);
    struct pl_etcd_alarm *alarms = PL_NEW(arena, struct pl_etcd_alarm, o->view->alarms.count);

    for (size_t i = 0; i < cp->machine_count; i++) {
        const struct pl_machine *m = cp->machines[i].machine;
        if (m->node_name.len && !has_member(o->view, m->node_name))
            machines[o->bare_machine_count++] = m->meta.name;
    }
    for (uint32_t i = 0; i < w->nodes.count; i++) {
        if (!pl__machine_on_node(cp, w->nodes.items[i].name))
            nodes[o->bare_node_count++] = w->nodes.items[i].name;
    }
    for (uint32_t i = 0; i < o->view->alarms.count; i++) {
        if (!is_member(o->view, o->view->alarms.items[i].member_id))
            alarms[o->stray_alarm_count++] = o->view->alarms.items[i];
    }
    o->bare_machines = machines;
    o->bare_nodes = nodes;
    o->stray_alarms = alarms;
}

int pl__etcd_overview(const struct pl_snapshot *s, const struct pl_kcp *kcp,
                      struct pl_evaluate_options options, struct pl_arena *arena,
                      struct pl_etcd_overview *o, struct pl_error **err)
{
    struct pl_pass p = { .arena = arena, .snapshot = s, .profile = options.profile };
    struct pl_control_plane *cp = PL_NEW(arena, struct pl_control_plane, 1);
    struct pl_deletion deletion = { 0 };
    bool deletes = false;

    if (pl__control_plane_gather(&p, kcp, cp, err) < 0)
        return -1;
    pl__control_plane_judge(&p, cp, &deletion, &deletes);
    *o = (struct pl_etcd_overview){ .namespace_ = kcp->meta.namespace_,
                                    .cluster = cp->cluster_name,
                                    .control_plane = kcp->meta.name,
                                    .managed = kcp->etcd_managed,
                                    .verdict = &cp->etcd };
    if (!o->managed)
        return 0;
    o->unknown = pl__etcd_unknown(&p, cp, &o->missing);
    if (!cp->workload || !cp->workload->etcd.present)
        return 0;
    o->view = &cp->workload->etcd;
    if (o->unknown.len)
        return 0;
    rows_fill(arena, cp, o);
    strays_fill(arena, cp, o);
    return 0;
}
