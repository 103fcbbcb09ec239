/* What the API servers tell, into our structs. One struct reads all kinds: they share most of what is wanted. */
#include "fleet/internal.h"

#include <stdlib.h>

struct seen_labels {
    struct pl_str cluster, set, deployment;
    bool control_plane;
};

struct seen_annotations {
    struct pl_str fault;
    bool paused, remediate, skip_remediation, in_progress, hooks, drain_hooks;
};

struct seen {
    struct pl_str kind, name, ns, uid, version;
    int64_t deleted_ms;
    PL_LIST(struct pl_str) finalizers;
    struct seen_labels labels;
    struct seen_annotations annotations;
    struct pl_str config, control_plane, infra;
    struct pl_str taints; /* the list as it stands */
    int64_t replicas;
    bool external_etcd, paused, initialized;
    struct pl_str node;
    struct pl_conditions conditions;
};

/* clang-format off */
static const struct pl_field label_fields[] = {
    PL_FIELD("cluster.x-k8s.io/cluster-name",    F_STR,     struct seen_labels, cluster),
    PL_FIELD("cluster.x-k8s.io/control-plane",   F_PRESENT, struct seen_labels, control_plane),
    PL_FIELD("cluster.x-k8s.io/deployment-name", F_STR,     struct seen_labels, deployment),
    PL_FIELD("cluster.x-k8s.io/set-name",        F_STR,     struct seen_labels, set),
};
static PL_SHAPE(labels_shape, struct seen_labels, label_fields);

static const struct pl_field annotation_fields[] = {
    PL_FIELD(FLEET_FAULT_ANNOTATION,               F_STR,     struct seen_annotations, fault),
    PL_FIELD("cluster.x-k8s.io/paused",            F_PRESENT, struct seen_annotations, paused),
    PL_FIELD("cluster.x-k8s.io/remediate-machine", F_PRESENT, struct seen_annotations, remediate),
    PL_FIELD("cluster.x-k8s.io/skip-remediation",  F_PRESENT, struct seen_annotations, skip_remediation),
    PL_FIELD("controlplane.cluster.x-k8s.io/remediation-in-progress", F_PRESENT, struct seen_annotations, in_progress),
    PL_FIELD("pre-terminate.delete.hook.machine.cluster.x-k8s.io",    F_PREFIX,  struct seen_annotations, hooks),
    PL_FIELD("pre-drain.delete.hook.machine.cluster.x-k8s.io",        F_PREFIX,  struct seen_annotations, drain_hooks),
};
static PL_SHAPE(annotations_shape, struct seen_annotations, annotation_fields);

static int read_raw(struct pl_json *j, void *destination)
{
    return pl__json_raw(j, destination);
}
static const struct pl_field seen_fields[] = {
    PL_FIELD("kind",                       F_STR,     struct seen, kind),
    PL_FIELD("metadata.name",              F_STR,     struct seen, name),
    PL_FIELD("metadata.namespace",         F_STR,     struct seen, ns),
    PL_FIELD("metadata.uid",               F_STR,     struct seen, uid),
    PL_FIELD("metadata.resourceVersion",   F_STR,     struct seen, version),
    PL_FIELD("metadata.deletionTimestamp", F_TIME,    struct seen, deleted_ms),
    PL_FIELD("metadata.finalizers",        F_STRINGS, struct seen, finalizers),
    PL_FIELD_SHAPE("metadata.labels",      F_MAP,     struct seen, labels,      &labels_shape),
    PL_FIELD_SHAPE("metadata.annotations", F_MAP,     struct seen, annotations, &annotations_shape),
    PL_FIELD_SKIP("metadata.managedFields"),
    PL_FIELD("spec.replicas",                 F_INT,  struct seen, replicas),
    PL_FIELD("spec.paused",                   F_BOOL, struct seen, paused),
    PL_FIELD("spec.bootstrap.configRef.name", F_STR,  struct seen, config),
    PL_FIELD("spec.controlPlaneRef.name",     F_STR,  struct seen, control_plane),
    PL_FIELD("spec.infrastructureRef.name",   F_STR,  struct seen, infra),
    PL_FIELD_CUSTOM("spec.taints",                    struct seen, taints, read_raw),
    PL_FIELD("spec.kubeadmConfigSpec.clusterConfiguration.etcd.external", F_PRESENT, struct seen, external_etcd),
    PL_FIELD("status.nodeRef.name",           F_STR,  struct seen, node),
    PL_FIELD("status.initialization.controlPlaneInitialized", F_BOOL, struct seen, initialized),
    PL_FIELD_SHAPE("status.conditions",       F_LIST, struct seen, conditions, &pl__condition_shape),
};
static PL_SHAPE(seen_shape, struct seen, seen_fields);

struct event {
    struct pl_str type, object;
};
static const struct pl_field event_fields[] = {
    PL_FIELD("type",                F_STR, struct event, type),
    PL_FIELD_CUSTOM("object",              struct event, object, read_raw),
};
static PL_SHAPE(event_shape, struct event, event_fields);
/* clang-format on */

void pl__name_set(char *room, size_t size, struct pl_str value)
{
    size_t len = value.len < size - 1 ? value.len : size - 1;

    memcpy(room, value.len ? value.ptr : "", len);
    room[len] = '\0';
}

static bool is(struct pl_str s, const char *text)
{
    return pl__str_equal(s, pl__str(text));
}

/* Answers and watches can overtake each other. */
static bool is_old(const struct seen *s, uint64_t *version)
{
    uint64_t now = 0;

    if (!pl__str_to_u64(s->version, &now) || now < *version)
        return true;
    *version = now;
    return false;
}

static void fault_see(struct pl_fleet *fleet, char room[FAULT_BYTES], const struct seen *s,
                      unsigned on)
{
    struct pl_str word = { "", 0 }, fault = s->annotations.fault;

    if (fault.len >= FAULT_BYTES)
        fault.len = FAULT_BYTES - 1; /* as it is kept */
    if (pl__str_equal(fault, pl__str(room)))
        return;
    pl__name_set(room, FAULT_BYTES, fault);
    if (!pl__fleet_fault_check(fault, on, &word))
        pl__fleet_say(fleet, "%.*s %.*s: there is no fault \"%.*s\" for a %.*s",
                      PL_STR_ARG(s->kind), PL_STR_ARG(s->name), PL_STR_ARG(word),
                      PL_STR_ARG(s->kind));
    else
        pl__fleet_say(fleet, "%.*s %.*s: %s%.*s%s", PL_STR_ARG(s->kind), PL_STR_ARG(s->name),
                      fault.len ? "fault " : "no fault", PL_STR_ARG(fault),
                      fleet->shared && pl__str_contains(fault, PL_STR("etcd-"))
                          ? " (the etcd that all clusters share is left alone)"
                          : "");
}

/* Whether ours is there; the others, ready to be written again. */
static bool finalizers_read(struct pl_fleet *fleet, const struct seen *s, const char *ours,
                            char **others)
{
    struct pl_buf text = pl__text(fleet);
    struct pl_json_writer w;
    bool has = false;

    for (uint32_t i = 0; i < s->finalizers.count; i++) {
        if (is(s->finalizers.items[i], ours)) {
            has = true;
            continue;
        }
        if (text.len)
            pl__buf_add_char(&text, ',');
        pl__json_writer_init(&w, &text, JSON_COMPACT);
        pl__json_write_str(&w, s->finalizers.items[i]);
    }
    free(*others);
    *others = text.len ? strdup(pl__buf_str(&text).ptr) : NULL;
    return has;
}

/* --- one kind each ----------------------------------------------------------------------------------- */

static void cluster_see(struct cluster *c, const struct seen *s, bool gone)
{
    if (is_old(s, &c->version))
        return;
    c->there = !gone;
    c->deleting = s->deleted_ms != 0;
    c->has_finalizer = finalizers_read(c->fleet, s, CLUSTER_FINALIZER, &c->finalizers);
    c->paused = s->paused || s->annotations.paused;
    NAME_SET(c->uid, s->uid);
    if (s->control_plane.len)
        NAME_SET(c->kcp, s->control_plane);
    fault_see(c->fleet, c->fault, s, FAULT_ON_CLUSTER);
}

static void kcp_see(struct cluster *c, const struct seen *s, bool gone)
{
    if ((c->kcp[0] && !is(s->name, c->kcp)) || is_old(s, &c->kcp_version))
        return;
    if (gone || !is(s->uid, c->kcp_uid)) {
        /* What was made for the one before goes with it. */
        c->furnished = false;
        c->kcp_status_hash = 0;
        c->initialized_ms = 0;
        c->etcd_old = c->etcd != NULL;
    }
    NAME_SET(c->kcp, s->name);
    NAME_SET(c->kcp_uid, s->uid);
    c->kcp_there = !gone;
    c->kcp_deleting = s->deleted_ms != 0;
    c->kcp_in_progress = s->annotations.in_progress;
    c->kcp_paused = s->annotations.paused;
    c->kcp_external = s->external_etcd;
    c->kcp_initialized = s->initialized;
    c->kcp_replicas = s->replicas > FLEET_REPLICAS_MAX ? FLEET_REPLICAS_MAX : (int32_t)s->replicas;
}

static void set_see(struct cluster *c, const struct seen *s, bool gone, bool is_deployment)
{
    struct set *place = NULL;

    for (int i = SETS_MAX - 1; i >= 0; i--) {
        struct set *set = &c->sets[i];
        if (set->there && set->is_deployment == is_deployment && is(s->name, set->name)) {
            place = set;
            break;
        }
        if (!set->there)
            place = set;
    }
    if (!place || (gone && !place->there))
        return;
    if (gone) {
        *place = (struct set){ 0 };
        return;
    }
    if (!place->there)
        *place = (struct set){ .there = true, .is_deployment = is_deployment };
    if (is_old(s, &place->version))
        return;
    NAME_SET(place->name, s->name);
    NAME_SET(place->uid, s->uid);
    NAME_SET(place->deployment, s->labels.deployment);
    place->deleting = s->deleted_ms != 0;
    place->replicas = s->replicas > FLEET_WORKERS_MAX ? FLEET_WORKERS_MAX : (int32_t)s->replicas;
}

static struct machine *machine_find(const struct cluster *c, struct pl_str name)
{
    for (struct machine *m = c->machines; m; m = m->next)
        if (is(name, m->name))
            return m;
    return NULL;
}

static struct machine *machine_by_node(const struct cluster *c, struct pl_str node)
{
    for (struct machine *m = c->machines; m; m = m->next)
        if (m->node[0] && is(node, m->node))
            return m;
    return NULL;
}

static struct machine *machine_add(struct cluster *c)
{
    struct machine *m = calloc(1, sizeof *m), **end = &c->machines;

    if (!m)
        abort();
    m->cluster = c;
    m->since_ms = pl__loop_mono_ms(c->fleet->loop);
    while (*end)
        end = &(*end)->next;
    *end = m;
    c->machine_count++;
    return m;
}

static void machine_read(struct machine *m, const struct seen *s)
{
    NAME_SET(m->name, s->name);
    NAME_SET(m->uid, s->uid);
    NAME_SET(m->set, s->labels.set);
    NAME_SET(m->config, s->config);
    NAME_SET(m->infra, s->infra);
    if (s->node.len)
        NAME_SET(m->node, s->node);
    m->control_plane = s->labels.control_plane;
    m->deleting = s->deleted_ms != 0;
    m->has_finalizer = finalizers_read(m->cluster->fleet, s, MACHINE_FINALIZER, &m->finalizers);
    m->hooks = s->annotations.hooks;
    m->drain_hooks = s->annotations.drain_hooks;
    m->remediate = s->annotations.remediate;
    m->skip_remediation = s->annotations.skip_remediation;
    m->paused = s->annotations.paused;
    m->health_true = pl__condition_is(&s->conditions, COND_HEALTH_CHECK, PL_STATUS_TRUE);
    m->health_false = pl__condition_is(&s->conditions, COND_HEALTH_CHECK, PL_STATUS_FALSE);
    m->owner_false = pl__condition_is(&s->conditions, COND_OWNER_REMEDIATED, PL_STATUS_FALSE);
    fault_see(m->cluster->fleet, m->fault, s, FAULT_ON_MACHINE);
}

static void machine_see(struct cluster *c, const struct seen *s, bool gone)
{
    struct machine *m = machine_find(c, s->name);

    if (m && !is(s->uid, m->uid)) {
        /* One of the same name: what we knew is gone, or what is told is old. */
        uint64_t version = 0;
        pl__str_to_u64(s->version, &version);
        if (gone || version < m->version || c->fleet->stepping)
            return; /* while somebody walks along the Machines, the watch will tell */
        pl__machine_free(m);
        m = NULL;
    }
    if (gone) {
        if (m)
            pl__machine_free(m);
        return;
    }
    if (!m && c->machine_count == MACHINES_SEEN_MAX) {
        pl__fleet_say(c->fleet, "Machine %.*s is left alone: Cluster %s has %d already",
                      PL_STR_ARG(s->name), c->name, (int)MACHINES_SEEN_MAX);
        return;
    }
    bool met = !m;
    if (!m)
        m = machine_add(c);
    if (!is_old(s, &m->version))
        machine_read(m, s);
    /* It ran in a former life, and had its Node before anybody said so. */
    if (met && c->fleet->options.keep && s->node.len) {
        m->phase = MACHINE_RUNS;
        m->node_made = true;
    }
}

/* The two that say that a Node is lost are told from the others, which are kept as they are. */
static void taints_read(struct machine *m, struct pl_str list)
{
    static const struct pl_field key_fields[] = { PL_FIELD("key", F_STR, struct pl_taint, key) };
    static PL_SHAPE(key_shape, struct pl_taint, key_fields);
    struct pl_fleet *fleet = m->cluster->fleet;
    struct pl_buf others = pl__text(fleet);
    struct pl_error *err = NULL;
    struct pl_json j, one;

    m->node_tainted = false;
    pl__json_init(&j, list, PL_STR("taints"), &fleet->scratch, 0, &err);
    if (list.len && pl__json_array(&j) == 0) {
        struct pl_str item;
        while (pl__json_item(&j) > 0 && pl__json_raw(&j, &item) == 0) {
            struct pl_taint taint = { 0 };
            pl__json_init(&one, item, PL_STR("taint"), &fleet->scratch, 0, &err);
            if (pl__json_decode(&one, &key_shape, &taint) == 0 && is(taint.key, TAINT_UNREACHABLE))
                m->node_tainted = true;
            else
                pl__buf_printf(&others, "%s%.*s", others.len ? "," : "", PL_STR_ARG(item));
        }
    }
    free(m->taints);
    m->taints = others.len ? strdup(pl__buf_str(&others).ptr) : NULL;
}

static void node_see(struct cluster *c, const struct seen *s, bool gone)
{
    struct machine *m = machine_by_node(c, s->name);

    if (!m || is_old(s, &m->node_version))
        return;
    m->node_there = !gone;
    NAME_SET(m->node_uid, s->uid);
    taints_read(m, gone ? PL_STR("") : s->taints);
    /* What was put on a thing ends with it; faults that remove it have moved to the Machine. */
    if (gone)
        m->workload_fault[NODE_FAULT][0] = '\0';
    else
        fault_see(c->fleet, m->workload_fault[NODE_FAULT], s, FAULT_ON_NODE);
}

static void pod_see(struct cluster *c, const struct seen *s, bool gone)
{
    for (int i = 0; i < POD_COUNT; i++) {
        struct pl_str prefix = pl__static_pods[i];
        if (!pl__str_starts_with(s->name, prefix))
            continue;
        struct machine *m = machine_by_node(
            c, (struct pl_str){ s->name.ptr + prefix.len, s->name.len - prefix.len });
        if (!m)
            return;
        m->pod_there[i] = !gone;
        if (gone) {
            m->pod_missing_ms[i] = pl__loop_mono_ms(c->fleet->loop);
            m->workload_fault[i][0] = '\0';
        } else {
            fault_see(c->fleet, m->workload_fault[i], s, FAULT_ON_POD);
        }
        return;
    }
}

/* --- all of them --------------------------------------------------------------------------------------- */

static void management_see(struct pl_fleet *fleet, const struct seen *s, bool gone)
{
    bool is_cluster = is(s->kind, "Cluster");
    struct pl_str name = is_cluster ? s->name : s->labels.cluster;
    struct cluster *c = pl__cluster_find(fleet, name);

    if (name.len == 0 || !is(s->ns, fleet->options.ns))
        return;
    if (!c && (gone || !(c = pl__cluster_add(fleet, name))))
        return;
    if (is_cluster)
        cluster_see(c, s, gone);
    else if (is(s->kind, "KubeadmControlPlane"))
        kcp_see(c, s, gone);
    else if (is(s->kind, "Machine"))
        machine_see(c, s, gone);
    else if (is(s->kind, "MachineSet") || is(s->kind, "MachineDeployment"))
        set_see(c, s, gone, is(s->kind, "MachineDeployment"));
    pl__cluster_poke(c);
}

void pl__fleet_see(struct pl_fleet *fleet, struct pl_str cluster, struct pl_str object, bool gone)
{
    struct seen s = { .replicas = 1 };
    struct pl_json j;
    struct pl_error *err = NULL;

    pl__json_init(&j, object, PL_STR("object"), &fleet->scratch, 0, &err);
    if (pl__json_decode(&j, &seen_shape, &s) < 0) {
        pl__fleet_say(fleet, "%s", pl__error_text(&fleet->scratch, err).ptr);
        return;
    }
    if (cluster.len == 0) {
        management_see(fleet, &s, gone);
        return;
    }
    struct cluster *c = pl__cluster_find(fleet, cluster);
    if (c && is(s.kind, "Node"))
        node_see(c, &s, gone);
    else if (c && is(s.kind, "Pod") && is(s.ns, "kube-system"))
        pod_see(c, &s, gone);
    if (c)
        pl__cluster_poke(c);
}

void pl__fleet_event(struct pl_fleet *fleet, struct pl_str cluster, struct pl_str line)
{
    struct event event = { 0 };
    struct pl_json j;
    struct pl_error *err = NULL;

    if (fleet->stopping)
        return;
    pl__fleet_enter(fleet);
    pl__json_init(&j, line, PL_STR("watch"), &fleet->scratch, 0, &err);
    if (pl__json_decode(&j, &event_shape, &event) < 0)
        pl__fleet_say(fleet, "%s", pl__error_text(&fleet->scratch, err).ptr);
    else if (!is(event.type, "BOOKMARK") && !is(event.type, "ERROR"))
        pl__fleet_see(fleet, cluster, event.object, is(event.type, "DELETED"));
    pl__fleet_leave(fleet);
}
