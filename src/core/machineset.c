#include "core/machineset.h"

#include <stdlib.h>

#include "base/planted.h"
#include "base/version.h"
#include "core/plan.h"

enum { MINOR_SKEW_MAX = 3 }; /* how many minor versions a kubelet may be behind the API server */

/* --- preflight ------------------------------------------------------------------------------- */

/* What a MachineSet would join a new Machine to. */
struct preflight {
    struct pl_pass *p;
    const struct pl_cluster *cluster;
    const struct pl_machine_set *set;
    const struct pl_kcp *kcp;
    struct pl_buf lines;
};

/* Whether a check was not switched off by the annotation on the MachineSet. */
static bool check_wanted(const struct preflight *f, const char *check)
{
    struct pl_str list = f->set->meta.annotations.skip_preflight_checks;

    while (list.len) {
        const char *comma = memchr(list.ptr, ',', list.len);
        struct pl_str name = { list.ptr, comma ? (size_t)(comma - list.ptr) : list.len };
        size_t used = name.len + (comma != NULL);
        while (name.len && name.ptr[0] == ' ')
            name = (struct pl_str){ name.ptr + 1, name.len - 1 };
        while (name.len && name.ptr[name.len - 1] == ' ')
            name.len--;
        if (pl__str_equal(name, PL_STR("All")) || pl__str_equal(name, pl__str(check)))
            return false;
        list = (struct pl_str){ list.ptr + used, list.len - used };
    }
    return true;
}

/* Adds "* <what> ("<check>" preflight check failed)", a line of its own. */
static void complain(struct preflight *f, const char *check, struct pl_str what)
{
    if (f->lines.len)
        pl__buf_add_char(&f->lines, '\n');
    pl__buf_printf(&f->lines, "* %.*s (\"%s\" preflight check failed)", PL_STR_ARG(what), check);
}

/* "KubeadmControlPlane default/cp <words>". */
static void complain_control_plane(struct preflight *f, const char *check, struct pl_str words)
{
    const struct pl_cluster *c = f->cluster;

    complain(f, check,
             pl__str_format(f->p->arena, "%.*s %.*s/%.*s %.*s", PL_STR_ARG(c->control_plane_kind),
                            PL_STR_ARG(c->meta.namespace_), PL_STR_ARG(c->control_plane_name),
                            PL_STR_ARG(words)));
}

static const char stable[] = "ControlPlaneIsStable";

/* The topology wants another version than the control plane has been told of. While an upgrade goes through
 * several versions, the one of the current step is as good. */
static bool upgrade_pending(const struct preflight *f, struct pl_str *to)
{
    struct pl_str step = f->cluster->meta.annotations.upgrade_step;

    *to = step.len ? step : f->cluster->topology_version;
    return f->cluster->topology_version.len &&
           !pl__str_equal(f->cluster->topology_version, f->kcp->version) &&
           !pl__str_equal(step, f->kcp->version);
}

static void check_stable(struct preflight *f, const struct pl_version *version)
{
    struct pl_version reached;
    struct pl_str to;

    if (upgrade_pending(f, &to))
        complain_control_plane(
            f, stable,
            pl__str_format(f->p->arena, "has a pending version upgrade to %.*s", PL_STR_ARG(to)));
    else if (f->kcp->status_version.len == 0)
        complain_control_plane(f, stable, PL_STR("is provisioning"));
    else if (!pl__version_parse(f->kcp->status_version, &reached))
        complain_control_plane(f, stable, PL_STR("has a status.version that cannot be read"));
    else if (pl__version_upgrades(&reached, version))
        complain_control_plane(f, stable, PL_STR("is upgrading"));
}

/* "MachineSet version (1.31.0) and ControlPlane version (1.33.1) do not conform to <policy>". */
static void complain_skew(struct preflight *f, const char *check, const struct pl_version *set,
                          const struct pl_version *control_plane, const char *policy)
{
    struct pl_buf text;

    pl__buf_init(&text, f->p->arena, SIZE_MAX);
    pl__buf_add_lit(&text, "MachineSet version (");
    pl__version_add(&text, set);
    pl__buf_add_lit(&text, ") and ControlPlane version (");
    pl__version_add(&text, control_plane);
    pl__buf_printf(&text, ") do not conform to %s", policy);
    complain(f, check, pl__buf_str(&text));
}

static void check_versions(struct preflight *f, const struct pl_version *cp)
{
    static const char kubernetes[] = "KubernetesVersionSkew", kubeadm[] = "KubeadmVersionSkew",
                      topology[] = "ControlPlaneVersionSkew";
    struct pl_version set;

    if (!pl__version_parse(f->set->version, &set)) {
        complain(
            f, kubernetes,
            pl__str_format(f->p->arena, "MachineSet %.*s/%.*s has a version that cannot be read",
                           PL_STR_ARG(f->set->meta.namespace_), PL_STR_ARG(f->set->meta.name)));
        return;
    }
    if (check_wanted(f, kubernetes)) {
        if (set.minor > cp->minor)
            complain_skew(f, kubernetes, &set, cp,
                          "the kubernetes version skew policy as MachineSet version is higher than "
                          "ControlPlane version");
        else if (set.minor + MINOR_SKEW_MAX < cp->minor)
            complain_skew(f, kubernetes, &set, cp,
                          "the kubernetes version skew policy as MachineSet version is more than 3 "
                          "minor versions older than the ControlPlane version");
    }
    if (check_wanted(f, kubeadm) && set.minor != cp->minor &&
        pl__str_equal(f->set->bootstrap_config_kind, PL_STR("KubeadmConfigTemplate")))
        complain_skew(f, kubeadm, &set, cp,
                      "kubeadm version skew policy as kubeadm only supports joining with the same "
                      "major+minor version as the control plane");
    if (check_wanted(f, topology) && f->cluster->topology_version.len &&
        !pl__str_equal(f->set->version, f->kcp->version))
        complain(f, topology,
                 pl__str_format(f->p->arena,
                                "MachineSet version (%.*s) is not yet the same as the ControlPlane "
                                "version (%.*s), waiting for version to be propagated to the "
                                "MachineSet",
                                PL_STR_ARG(f->set->version), PL_STR_ARG(f->kcp->version)));
}

static const struct pl_kcp *kcp_in(const struct pl_kcp *items, uint32_t count,
                                   const struct pl_cluster *cluster)
{
    for (uint32_t i = 0; i < count; i++) {
        if (pl__str_equal(items[i].meta.name, cluster->control_plane_name) &&
            pl__str_equal(items[i].meta.namespace_, cluster->meta.namespace_))
            return &items[i];
    }
    return NULL;
}

static const struct pl_kcp *control_plane_of(const struct pl_snapshot *s,
                                             const struct pl_cluster *cluster)
{
    const struct pl_kcp *kcp = kcp_in(s->objects.kcps.items, s->objects.kcps.count, cluster);

    return kcp ? kcp : kcp_in(s->objects.other_kcps.items, s->objects.other_kcps.count, cluster);
}

/* Why a new Machine could not join now, a line each; empty: it could. Nothing is known of control planes
 * of other kinds, and so nothing against them. */
static struct pl_str preflight(struct pl_pass *p, const struct pl_cluster *cluster,
                               const struct pl_machine_set *set)
{
    struct preflight f = { .p = p, .cluster = cluster, .set = set };
    struct pl_version version;

    pl__buf_init(&f.lines, p->arena, SIZE_MAX);
    if (!check_wanted(&f, "All") ||
        !pl__str_equal(cluster->control_plane_kind, PL_STR("KubeadmControlPlane")))
        return (struct pl_str){ "", 0 };
    f.kcp = control_plane_of(p->snapshot, cluster);
    if (!f.kcp) {
        complain_control_plane(&f, stable, PL_STR("does not exist"));
        return pl__buf_str(&f.lines);
    }
    if (f.kcp->version.len == 0)
        return (struct pl_str){ "", 0 };
    if (!pl__version_parse(f.kcp->version, &version)) {
        complain_control_plane(&f, stable, PL_STR("has a spec.version that cannot be read"));
        return pl__buf_str(&f.lines);
    }
    if (check_wanted(&f, stable))
        check_stable(&f, &version);
    if (set->version.len)
        check_versions(&f, &version);
    return pl__buf_str(&f.lines);
}

/* --- how many ---------------------------------------------------------------------------------- */

/* "20%" of so many, rounded up. */
static bool percentage(struct pl_str text, uint64_t of, int64_t *value)
{
    uint64_t percent;

    if (text.len < 2 || text.ptr[text.len - 1] != '%')
        return false;
    text.len--;
    if (!pl__str_to_u64(text, &percent) || percent > INT32_MAX)
        return false;
    *value = (int64_t)((percent * of + 99) / 100);
    return true;
}

/* How many Machines of a set may be on their way out because of a remediation. False: unreadable. */
static bool limit_read(const struct pl_machine_deployment *md, int64_t *limit)
{
    uint64_t replicas = md->replicas.desired ? (uint64_t)md->replicas.desired - 1 : 1;

    *limit = INT64_MAX;
    if (md->max_in_flight.text.len == 0)
        return true;
    if (!md->max_in_flight.is_number)
        return percentage(md->max_in_flight.text, replicas, limit);
    *limit = md->max_in_flight.number;
    return true;
}

/* Its deletion began because of a remediation and is not over. */
static bool is_in_flight(const struct pl_machine *m)
{
    const struct pl_condition *c = pl__condition_find(&m->conditions, COND_OWNER_REMEDIATED);

    return m->meta.deleted_ms && c && c->status == PL_STATUS_FALSE &&
           pl__str_equal(c->reason, PL_STR("MachineDeleting"));
}

/* --- judging ----------------------------------------------------------------------------------- */

/* By MachineSet; in it those that somebody asked for first, then the newest: what never came up has no
 * work on it. */
static int by_urgency(const void *a, const void *b)
{
    const struct pl_owned_machine *x = a, *y = b;
    const struct pl_meta *m = &x->machine->meta, *n = &y->machine->meta;

    if (x->set != y->set)
        return x->set < y->set ? -1 : 1;
    if (m->annotations.remediate_machine != n->annotations.remediate_machine)
        return m->annotations.remediate_machine ? -1 : 1;
    if (m->created_ms != n->created_ms)
        return m->created_ms > n->created_ms ? -1 : 1;
    return pl__str_compare(m->name, n->name);
}

struct judge {
    struct pl_pass *p;
    const struct pl_machine_deployment *md;
    const struct pl_cluster *cluster;
    struct pl_machine_set_decision *decisions;
    size_t count;
};

static void decide(struct judge *j, const struct pl_owned_machine *o,
                   const struct pl_machine_set_facts *facts, struct pl_str preflight_lines)
{
    struct pl_judgement judged = pl__judge(&pl__machine_set_remediation,
                                           pl__machine_set_remediation_facts(facts), j->p->profile);
    const struct pl_outcome *says = &judged.rule->says[j->p->profile];
    const struct pl_text texts[] = { { "maxInFlight", j->md->max_in_flight.text },
                                     { "preflight", preflight_lines } };

    j->decisions[j->count++] = (struct pl_machine_set_decision){
        .machine = o->machine,
        .action = (enum pl_machine_set_action)judged.rule->action,
        .shown = {
            .namespace_ = j->md->meta.namespace_,
            .machine_deployment = j->md->meta.name,
            .machine_set = o->set->meta.name,
            .machine = o->machine->meta.name,
            .row = judged.rule->id,
            .guard = judged.rule->when,
            .status = says->status,
            .reason = pl__str(says->reason),
            .message = pl__message_fill(j->p->arena, says->message, texts,
                                        sizeof texts / sizeof texts[0]),
            .recovered = judged.rule->action == MACHINE_SET_CLEAN,
            .deleted = judged.rule->action == MACHINE_SET_GO,
            .requeue_after_ms = judged.rule->next == NEXT_15S ? 15 * 1000 : 0,
        },
    };
}

/* One MachineSet: the Machines of `group` are all its own, in the order of remediation. */
static void set_judge(struct judge *j, const struct pl_owned_machine *group, size_t count)
{
    const struct pl_machine_set *set = group[0].set;
    struct pl_machine_set_facts facts = {
        .set_idle = set->meta.deleted_ms || set->meta.annotations.paused || !j->cluster,
        .old_revision =
            !pl__str_equal(set->meta.annotations.revision, j->md->meta.annotations.revision),
    };
    struct pl_str lines = { "", 0 };
    bool checked = false;
    int64_t room = 0;

    facts.limit_unreadable = !limit_read(j->md, &room);
    for (size_t i = 0; i < count; i++)
        room -= is_in_flight(group[i].machine);
    for (size_t i = 0; i < count; i++) {
        const struct pl_machine *m = group[i].machine;
        facts.recovered = pl__machine_recovered(m);
        if (!facts.recovered && (m->meta.deleted_ms || !pl__machine_to_be_remediated(m)))
            continue;
        if (!facts.recovered)
            facts.no_room = room-- <= 0 && !PL_PLANTED(IN_FLIGHT_UNCHECKED);
        if (!facts.recovered && !facts.set_idle && !checked) {
            lines = preflight(j->p, j->cluster, set);
            facts.preflight_failed = lines.len > 0;
            checked = true;
        }
        decide(j, &group[i], &facts, lines);
    }
}

size_t pl__machine_sets_judge(struct pl_pass *p, const struct pl_machine_deployment *md,
                              const struct pl_cluster *cluster,
                              const struct pl_owned_machine *machines, size_t machine_count,
                              const struct pl_machine_set_decision **decisions)
{
    struct judge j = { .p = p, .md = md, .cluster = cluster };
    size_t marked = 0;

    for (size_t i = 0; i < machine_count; i++)
        marked += pl__condition_is(&machines[i].machine->conditions, COND_OWNER_REMEDIATED,
                                   PL_STATUS_FALSE);
    if (marked == 0)
        return 0; /* the usual case: nothing is sorted for it */
    struct pl_owned_machine *sorted = PL_NEW(p->arena, struct pl_owned_machine, machine_count);
    memcpy(sorted, machines, machine_count * sizeof *sorted);
    qsort(sorted, machine_count, sizeof *sorted, by_urgency);
    j.decisions = PL_NEW(p->arena, struct pl_machine_set_decision, marked);
    for (size_t first = 0, end; first < machine_count; first = end) {
        for (end = first; end < machine_count && sorted[end].set == sorted[first].set;)
            end++;
        set_judge(&j, sorted + first, end - first);
    }
    *decisions = j.decisions;
    return j.count;
}

/* --- planning ---------------------------------------------------------------------------------- */

#define FORMAT(p, ...) pl__str_format((p)->arena, __VA_ARGS__)

static bool mark_differs(const struct pl_machine_set_decision *d)
{
    const struct pl_condition *c =
        pl__condition_find(&d->machine->conditions, COND_OWNER_REMEDIATED);

    return !c || c->status != d->shown.status || !pl__str_equal(c->reason, d->shown.reason) ||
           !pl__str_equal(c->message, d->shown.message);
}

/* The call that brings a decision about; STEP_NONE: none is left. */
static struct pl_step step_of(struct pl_pass *p, const struct pl_machine_set_decision *d,
                              struct pl_str *words)
{
    struct pl_str name = d->machine->meta.name;
    struct pl_step step = { .machine = d->machine };

    switch (d->action) {
    case MACHINE_SET_CLEAN:
        step.kind = STEP_CLEAR_OWNER_REMEDIATED;
        *words = FORMAT(p, "remove OwnerRemediated from Machine %.*s, which is healthy again",
                        PL_STR_ARG(name));
        break;
    case MACHINE_SET_REFUSE:
    case MACHINE_SET_GO:
        if (mark_differs(d)) {
            step.kind = STEP_SET_OWNER_REMEDIATED;
            step.reason = d->shown.reason;
            step.message = d->shown.message;
            *words = FORMAT(p, "set OwnerRemediated of Machine %.*s to False, %.*s",
                            PL_STR_ARG(name), PL_STR_ARG(d->shown.reason));
        } else if (d->action == MACHINE_SET_GO) {
            step.kind = STEP_DELETE_MACHINE;
            *words = FORMAT(p, "delete Machine %.*s", PL_STR_ARG(name));
        }
        break;
    case MACHINE_SET_NONE:
        break;
    }
    return step;
}

/* A refusal, for people. */
static void note_fill(struct pl_pass *p, const struct pl_machine_set_decision *d, struct pl_note *n)
{
    n->machine = d->machine->meta.name;
    n->reason = d->shown.reason.ptr;
    n->text = FORMAT(p, "not remediating Machine %.*s: %.*s", PL_STR_ARG(d->machine->meta.name),
                     PL_STR_ARG(d->shown.message));
}

/* Marks come before deletions, of whatever Machine: they say what is going on, and cost nothing. */
static bool comes_first(const struct pl_step *step, const struct pl_step *than)
{
    return than->kind == STEP_NONE ||
           (than->kind == STEP_DELETE_MACHINE && step->kind != STEP_DELETE_MACHINE);
}

void pl__machine_sets_plan(struct pl_pass *p, const struct pl_machine_deployment *md,
                           const struct pl_cluster *cluster,
                           const struct pl_machine_set_decision *decisions, size_t count,
                           struct pl_plan *plan)
{
    struct pl_note *notes = count ? PL_NEW(p->arena, struct pl_note, count) : NULL;

    plan->shown.namespace_ = md->meta.namespace_;
    plan->shown.name = md->meta.name;
    plan->shown.paused = md->meta.annotations.paused || (cluster && cluster->paused);
    plan->shown.notes = notes;
    for (size_t i = 0; i < count; i++) {
        const struct pl_machine_set_decision *d = &decisions[i];
        struct pl_str words = { "", 0 };
        struct pl_step step = step_of(p, d, &words);
        if (d->action == MACHINE_SET_REFUSE)
            note_fill(p, d, &notes[plan->shown.note_count++]);
        if (d->shown.requeue_after_ms)
            plan->shown.retry_after_ms = d->shown.requeue_after_ms;
        if (step.kind == STEP_NONE || d->machine->meta.annotations.paused ||
            !comes_first(&step, &plan->step))
            continue;
        plan->step = step;
        plan->shown.step = words;
    }
}
