/* tests/world.c - words to a world, a world to a Snapshot. See world.h. */
#include "world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/time.h"
#include "prng.h"

#define NAMESPACE "default"
#define CLUSTER "alpha"
#define KCP "cp"
#define MD "md"

enum { PARTS_MAX = 5, OWN_PODS = 4 };

/* Past 2^63, as real ones often are. */
static const uint64_t first_member_id = 10276657743932975437u;

static const char *const components[OWN_PODS] = { "kube-apiserver-", "kube-controller-manager-",
                                                  "kube-scheduler-", "etcd-" };

/* A word's value, split at colons; the last part a word takes has the rest. */
struct value {
    struct pl_str parts[PARTS_MAX];
    size_t count;
};

__attribute__((format(printf, 2, 3))) static bool refuse(struct world *w, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(w->error, sizeof w->error, format, args);
    va_end(args);
    return false;
}

static bool refuse_name(struct world *w, const char *kind, struct pl_str name)
{
    return refuse(w, "no %s \"%.*s\"", kind, PL_STR_ARG(name));
}

static bool full(struct world *w, const char *what)
{
    return refuse(w, "too many %s", what);
}

/* --- finding things ------------------------------------------------------------------------------ */

struct world_machine *world_machine(struct world *w, struct pl_str name)
{
    for (size_t i = 0; i < w->machine_count; i++) {
        if (pl__str_equal(w->machines[i].name, name))
            return &w->machines[i];
    }
    return NULL;
}

struct world_node *world_node(struct world *w, struct pl_str name)
{
    for (size_t i = 0; i < w->node_count; i++) {
        if (pl__str_equal(w->nodes[i].name, name))
            return &w->nodes[i];
    }
    return NULL;
}

struct world_member *world_member(struct world *w, struct pl_str name)
{
    for (size_t i = 0; i < w->member_count; i++) {
        if (pl__str_equal(w->members[i].name, name))
            return &w->members[i];
    }
    return NULL;
}

static struct world_pod *pod_named(struct world *w, struct pl_str name)
{
    for (size_t i = 0; i < w->pod_count; i++) {
        if (pl__str_equal(w->pods[i].name, name))
            return &w->pods[i];
    }
    return NULL;
}

static struct world_condition *condition_named(struct world_conditions *list, struct pl_str type)
{
    for (size_t i = 0; i < list->count; i++) {
        if (pl__str_equal(list->items[i].type, type))
            return &list->items[i];
    }
    return NULL;
}

/* The condition of that type, made if need be; NULL when there is no room. */
static struct world_condition *condition_of(struct world_conditions *list, struct pl_str type)
{
    struct world_condition *c = condition_named(list, type);

    if (c || list->count == WORLD_CONDITIONS_MAX)
        return c;
    c = &list->items[list->count++];
    *c = (struct world_condition){ .type = type };
    return c;
}

static void condition_drop(struct world_conditions *list, struct pl_str type)
{
    struct world_condition *c = condition_named(list, type);

    if (c)
        *c = list->items[--list->count];
}

/* --- values -------------------------------------------------------------------------------------- */

static bool number(struct world *w, struct pl_str text, int64_t *value)
{
    uint64_t n;

    if (!pl__str_to_u64(text, &n) || n > INT32_MAX)
        return refuse(w, "\"%.*s\" is no number", PL_STR_ARG(text));
    *value = (int64_t)n;
    return true;
}

/* "-20m" and the like, from now; or an RFC 3339 time. */
static bool when(struct world *w, struct pl_str text, int64_t *ms)
{
    static const struct {
        char unit;
        int64_t ms;
    } units[] = { { 's', 1000 }, { 'm', 60000 }, { 'h', 3600000 }, { 'd', 86400000 } };
    uint64_t n;

    if (text.len > 2 && (text.ptr[0] == '-' || text.ptr[0] == '+')) {
        struct pl_str digits = { text.ptr + 1, text.len - 2 };
        for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
            if (text.ptr[text.len - 1] != units[i].unit || !pl__str_to_u64(digits, &n) ||
                n > 100000)
                continue;
            *ms = w->now_ms + (text.ptr[0] == '-' ? -1 : 1) * (int64_t)n * units[i].ms;
            return true;
        }
    } else if (pl__time_parse(text, ms)) {
        return true;
    }
    return refuse(w, "\"%.*s\" is no time", PL_STR_ARG(text));
}

/* --- building ------------------------------------------------------------------------------------ */

static struct pl_str format_name(struct world *w, const char *prefix, size_t n)
{
    return pl__str_format(&w->arena, "%s%zu", prefix, n);
}

static bool node_add(struct world *w, struct pl_str name)
{
    if (w->node_count == WORLD_NODES_MAX)
        return full(w, "Nodes");
    if (world_node(w, name))
        return refuse(w, "Node \"%.*s\" is there already", PL_STR_ARG(name));
    w->nodes[w->node_count++] = (struct world_node){ .name = name };
    return true;
}

static bool member_add(struct world *w, struct pl_str name)
{
    uint64_t id = first_member_id;

    if (w->member_count == WORLD_MEMBERS_MAX)
        return full(w, "members");
    if (name.len && world_member(w, name))
        return refuse(w, "member \"%.*s\" is there already", PL_STR_ARG(name));
    for (size_t i = 0; i < w->member_count; i++)
        id = w->members[i].id >= id ? w->members[i].id + 1 : id;
    w->members[w->member_count++] = (struct world_member){ .id = id, .name = name };
    return true;
}

static bool machine_add(struct world *w, enum world_role role, struct pl_str name,
                        struct pl_str node)
{
    if (w->machine_count == WORLD_MACHINES_MAX)
        return full(w, "Machines");
    if (world_machine(w, name))
        return refuse(w, "Machine \"%.*s\" is there already", PL_STR_ARG(name));
    w->machines[w->machine_count] = (struct world_machine){
        .name = name,
        .node = node,
        .provider_id = pl__str_format(&w->arena, "test:///%.*s", PL_STR_ARG(name)),
        .role = role,
        /* An hour between one and the next, the first three days ago. */
        .created_ms = w->now_ms - (int64_t)(72 - w->machine_count) * 3600000,
        .control_plane_label = role == WORLD_CONTROL_PLANE,
    };
    w->machine_count++;
    return true;
}

static bool pods_add(struct world *w, struct pl_str node)
{
    if (w->pod_count + OWN_PODS > WORLD_PODS_MAX)
        return full(w, "Pods");
    for (size_t i = 0; i < OWN_PODS; i++)
        w->pods[w->pod_count++] = (struct world_pod){
            .name = pl__str_format(&w->arena, "%s%.*s", components[i], PL_STR_ARG(node)),
            .phase = PL_STR("Running"),
            .scheduled = true,
            .initialized = true,
            .ready = true,
        };
    return true;
}

static bool control_plane_fill(struct world *w, size_t count)
{
    w->machine_count = w->node_count = w->pod_count = w->member_count = 0;
    for (size_t i = 0; i < count; i++) {
        struct pl_str node = format_name(w, "node-", i);
        if (!machine_add(w, WORLD_CONTROL_PLANE, format_name(w, KCP "-", i), node) ||
            !node_add(w, node) || !pods_add(w, node) || !member_add(w, node))
            return false;
    }
    w->leader = count ? w->members[0].id : 0;
    return true;
}

void world_reset(struct world *w)
{
    struct pl_arena arena = w->arena;

    pl__arena_reset(&arena);
    memset(w, 0, sizeof *w);
    w->arena = arena;
    pl__time_parse(PL_STR(WORLD_NOW), &w->now_ms);
    w->version = PL_STR("v1.34.0");
    w->max_retry = w->retry_period = w->min_healthy = w->replicas = -1;
    w->state = PL_STR("Connected");
    w->probed_ms = w->now_ms - 5000;
    *condition_of(&w->kcp_conditions, PL_STR("Initialized")) =
        (struct world_condition){ .type = PL_STR("Initialized"),
                                  .status = PL_STR("True"),
                                  .reason = PL_STR("Initialized"),
                                  .since_ms = w->now_ms - 71 * 3600000 };
    control_plane_fill(w, 3);
}

struct world *world_new(void)
{
    struct world *w = calloc(1, sizeof *w);

    if (!w)
        abort();
    pl__arena_init(&w->arena, NULL, 0);
    world_reset(w);
    return w;
}

void world_free(struct world *w)
{
    if (!w)
        return;
    pl__arena_release(&w->arena);
    free(w);
}

/* --- words: the cluster -------------------------------------------------------------------------- */

static bool say_machines(struct world *w, const struct value *v)
{
    int64_t count = 0;

    if (!number(w, v->parts[0], &count))
        return false;
    return control_plane_fill(w, (size_t)count);
}

static bool say_external_etcd(struct world *w, const struct value *v)
{
    (void)v;
    w->external_etcd = true;
    return true;
}

#define FLAG(word, member)                                         \
    static bool say_##word(struct world *w, const struct value *v) \
    {                                                              \
        (void)v;                                                   \
        w->member = true;                                          \
        return true;                                               \
    }
FLAG(bystander, bystander)
FLAG(no_cluster, no_cluster)
FLAG(no_infrastructure, no_infrastructure)
FLAG(no_endpoint, no_endpoint)
FLAG(paused, paused)
FLAG(not_initialized, not_initialized)
FLAG(no_generation, no_generation)
FLAG(control_plane_ref, control_plane_ref)
FLAG(old_revision, old_revision)
FLAG(set_paused, set_paused)
#undef FLAG

#define TEXT(word, member)                                         \
    static bool say_##word(struct world *w, const struct value *v) \
    {                                                              \
        w->member = v->parts[0];                                   \
        return true;                                               \
    }
TEXT(name, name)
TEXT(topology, topology)
TEXT(version, version)
TEXT(max_in_flight, max_in_flight)
TEXT(in_progress_text, in_progress)
TEXT(state, state)
TEXT(state_error, state_error)
TEXT(nodes_error, nodes_error)
TEXT(connect_error, connect_error)
TEXT(members_error, members_error)
TEXT(alarms_error, alarms_error)
#undef TEXT

#define NUMBER(word, member)                                       \
    static bool say_##word(struct world *w, const struct value *v) \
    {                                                              \
        return number(w, v->parts[0], &w->member);                 \
    }
NUMBER(grace, grace_s)
NUMBER(max_retry, max_retry)
NUMBER(retry_period, retry_period)
NUMBER(min_healthy, min_healthy)
NUMBER(replicas, replicas)
NUMBER(failures, failures)
#undef NUMBER

/* --- words: the control plane -------------------------------------------------------------------- */

static bool say_no_initialized_condition(struct world *w, const struct value *v)
{
    (void)v;
    condition_drop(&w->kcp_conditions, PL_STR("Initialized"));
    return true;
}

static bool say_initialized(struct world *w, const struct value *v)
{
    struct world_condition *c = condition_named(&w->kcp_conditions, PL_STR("Initialized"));

    if (!c)
        return refuse(w, "there is no Initialized");
    c->status = v->parts[0];
    return true;
}

static bool say_initialized_at(struct world *w, const struct value *v)
{
    struct world_condition *c = condition_named(&w->kcp_conditions, PL_STR("Initialized"));
    return c ? when(w, v->parts[0], &c->since_ms) : refuse(w, "there is no Initialized");
}

static bool say_deleting(struct world *w, const struct value *v)
{
    if (v->count == 0) {
        w->kcp_deleted_ms = w->now_ms - 60000;
        return true;
    }
    return when(w, v->parts[0], &w->kcp_deleted_ms);
}

static struct pl_str record(struct world *w, struct pl_str machine, int64_t since_ms, int64_t count)
{
    struct pl_buf time;

    pl__buf_init(&time, &w->arena, 64);
    pl__time_add(&time, since_ms);
    return pl__str_format(&w->arena,
                          "{\"machine\":\"%.*s\",\"timestamp\":\"%.*s\",\"retryCount\":%lld}",
                          PL_STR_ARG(machine), PL_STR_ARG(pl__buf_str(&time)), (long long)count);
}

static bool say_in_progress(struct world *w, const struct value *v)
{
    int64_t since_ms = 0, count = 0;

    if (!when(w, v->parts[1], &since_ms) || !number(w, v->parts[2], &count))
        return false;
    w->in_progress = record(w, v->parts[0], since_ms, count);
    return true;
}

static bool condition_say(struct world *w, struct world_conditions *list,
                          const struct pl_str *parts)
{
    struct world_condition *c = condition_of(list, parts[0]);

    if (!c)
        return full(w, "conditions");
    *c = (struct world_condition){ .type = parts[0],
                                   .status = parts[1],
                                   .reason = parts[2],
                                   .message = parts[3],
                                   .since_ms = w->now_ms - 3600000,
                                   .generation = 2 };
    return true;
}

static bool say_stored(struct world *w, const struct value *v)
{
    return condition_say(w, &w->kcp_conditions, v->parts);
}

/* --- words: Machines ----------------------------------------------------------------------------- */

/* The Machine that a word is about, its first part. */
static struct world_machine *machine_of(struct world *w, const struct value *v)
{
    struct world_machine *m = world_machine(w, v->parts[0]);

    if (!m)
        refuse_name(w, "Machine", v->parts[0]);
    return m;
}

static bool say_machine_deleting(struct world *w, const struct value *v)
{
    struct world_machine *m = machine_of(w, v);
    return m && when(w, v->parts[1], &m->deleted_ms);
}

static bool say_created(struct world *w, const struct value *v)
{
    struct world_machine *m = machine_of(w, v);
    return m && when(w, v->parts[1], &m->created_ms);
}

static void node_drop(struct world *w, struct pl_str name)
{
    struct world_node *n = world_node(w, name);

    if (!n)
        return;
    w->node_count--;
    memmove(n, n + 1, (size_t)(&w->nodes[w->node_count] - n) * sizeof *n);
}

static void member_drop(struct world *w, struct pl_str name)
{
    struct world_member *m = world_member(w, name);

    if (!m)
        return;
    w->member_count--;
    memmove(m, m + 1, (size_t)(&w->members[w->member_count] - m) * sizeof *m);
}

static bool say_provisioning(struct world *w, const struct value *v)
{
    struct world_machine *m = machine_of(w, v);

    if (!m)
        return false;
    node_drop(w, m->node);
    member_drop(w, m->node);
    for (size_t i = 0; i < OWN_PODS && m->node.len; i++) {
        struct world_pod *pod =
            pod_named(w, pl__str_format(&w->arena, "%s%.*s", components[i], PL_STR_ARG(m->node)));
        if (pod)
            pod->absent = true;
    }
    m->node = (struct pl_str){ 0 };
    return true;
}

static bool say_no_provider_id(struct world *w, const struct value *v)
{
    struct world_machine *m = machine_of(w, v);

    if (m)
        m->provider_id = (struct pl_str){ 0 };
    return m;
}

static bool say_no_machine(struct world *w, const struct value *v)
{
    struct world_machine *m = machine_of(w, v);

    if (!m)
        return false;
    w->machine_count--;
    memmove(m, m + 1, (size_t)(&w->machines[w->machine_count] - m) * sizeof *m);
    return true;
}

static bool health_say(struct world *w, struct world_machine *m, bool healthy)
{
    struct pl_str parts[] = { PL_STR("HealthCheckSucceeded"),
                              healthy ? PL_STR("True") : PL_STR("False"),
                              healthy ? PL_STR("HealthCheckSucceeded") : PL_STR("UnhealthyNode"),
                              healthy ? PL_STR("") : PL_STR("Health check failed") };
    return m && condition_say(w, &m->conditions, parts);
}

static bool say_unhealthy(struct world *w, const struct value *v)
{
    return health_say(w, machine_of(w, v), false);
}

static bool say_healthy(struct world *w, const struct value *v)
{
    return health_say(w, machine_of(w, v), true);
}

static bool owner_remediated_say(struct world *w, struct world_machine *m, struct pl_str message)
{
    struct pl_str parts[] = { PL_STR("OwnerRemediated"), PL_STR("False"),
                              PL_STR("WaitingForRemediation"), message };
    return m && condition_say(w, &m->conditions, parts);
}

static bool say_to_remediate(struct world *w, const struct value *v)
{
    struct world_machine *m = machine_of(w, v);
    return health_say(w, m, false) && owner_remediated_say(w, m, PL_STR("Waiting for remediation"));
}

static bool say_owner_message(struct world *w, const struct value *v)
{
    return owner_remediated_say(w, machine_of(w, v), v->parts[1]);
}

static bool say_owner_bytes(struct world *w, const struct value *v)
{
    struct world_machine *m = machine_of(w, v);
    int64_t bytes = 0;

    if (!m || !number(w, v->parts[1], &bytes))
        return false;
    char *text = PL_NEW(&w->arena, char, (size_t)bytes + 1);
    memset(text, 'x', (size_t)bytes);
    return owner_remediated_say(w, m, (struct pl_str){ text, (size_t)bytes });
}

static struct world_condition *owner_remediated(struct world *w, const struct value *v)
{
    struct world_machine *m = machine_of(w, v);
    struct world_condition *c =
        m ? condition_named(&m->conditions, PL_STR("OwnerRemediated")) : NULL;

    if (m && !c)
        refuse(w, "Machine %.*s has no OwnerRemediated", PL_STR_ARG(m->name));
    return c;
}

static bool say_owner_status(struct world *w, const struct value *v)
{
    struct world_condition *c = owner_remediated(w, v);

    if (c)
        c->status = v->parts[1];
    return c;
}

static bool say_owner_at(struct world *w, const struct value *v)
{
    struct world_condition *c = owner_remediated(w, v);
    return c && when(w, v->parts[1], &c->since_ms);
}

static bool say_remediate_annotation(struct world *w, const struct value *v)
{
    struct world_machine *m = machine_of(w, v);

    if (m)
        m->remediate_annotation = true;
    return m;
}

static bool say_remediation_for(struct world *w, const struct value *v)
{
    struct world_machine *m = machine_of(w, v);
    int64_t since_ms = 0, count = 0;

    if (!m || !when(w, v->parts[1], &since_ms) || !number(w, v->parts[2], &count))
        return false;
    m->remediation_for = record(w, PL_STR("cp-gone"), since_ms, count);
    return true;
}

static bool say_remediation_for_text(struct world *w, const struct value *v)
{
    struct world_machine *m = machine_of(w, v);

    if (m)
        m->remediation_for = v->parts[1];
    return m;
}

static bool say_draining(struct world *w, const struct value *v)
{
    struct world_machine *m = machine_of(w, v);
    struct pl_str parts[] = { PL_STR("Deleting"), PL_STR("True"), PL_STR("DrainingNode"),
                              v->parts[2] };

    return m && when(w, v->parts[1], &m->drain_started_ms) &&
           condition_say(w, &m->conditions, parts);
}

static bool say_machine_stored(struct world *w, const struct value *v)
{
    struct world_machine *m = machine_of(w, v);
    return m && condition_say(w, &m->conditions, v->parts + 1);
}

static bool say_control_plane_label(struct world *w, const struct value *v)
{
    struct world_machine *m = machine_of(w, v);

    if (m)
        m->control_plane_label = true;
    return m;
}

static bool others_say(struct world *w, const struct value *v, enum world_role role,
                       const char *prefix)
{
    int64_t count = 0;

    if (!number(w, v->parts[0], &count))
        return false;
    for (size_t i = 0; i < (size_t)count; i++) {
        struct pl_str name = format_name(w, prefix, i);
        if (!machine_add(w, role, name,
                         pl__str_format(&w->arena, "node-of-%.*s", PL_STR_ARG(name))))
            return false;
    }
    return true;
}

static bool say_workers(struct world *w, const struct value *v)
{
    return others_say(w, v, WORLD_WORKER, "worker-");
}

static bool say_deployment(struct world *w, const struct value *v)
{
    w->has_deployment = true;
    return others_say(w, v, WORLD_DEPLOYED, MD "-");
}

static bool say_pools(struct world *w, const struct value *v)
{
    int64_t count = 0;

    if (!number(w, v->parts[0], &count))
        return false;
    if (count > WORLD_POOLS_MAX)
        return full(w, "MachinePools");
    w->pool_count = (size_t)count;
    return true;
}

/* --- words: the workload cluster ----------------------------------------------------------------- */

static bool say_never_probed(struct world *w, const struct value *v)
{
    (void)v;
    w->probed_ms = 0;
    return true;
}

static bool say_last_probe(struct world *w, const struct value *v)
{
    return when(w, v->parts[0], &w->probed_ms);
}

static bool say_orphan_node(struct world *w, const struct value *v)
{
    return node_add(w, v->parts[0]);
}

static bool say_no_node(struct world *w, const struct value *v)
{
    if (!world_node(w, v->parts[0]))
        return refuse_name(w, "Node", v->parts[0]);
    node_drop(w, v->parts[0]);
    return true;
}

static struct world_node *node_of(struct world *w, const struct value *v)
{
    struct world_node *n = world_node(w, v->parts[0]);

    if (!n)
        refuse_name(w, "Node", v->parts[0]);
    return n;
}

static bool say_taint(struct world *w, const struct value *v)
{
    struct world_node *n = node_of(w, v);

    if (!n)
        return false;
    n->taint_key = v->parts[1];
    n->taint_effect = v->parts[2];
    return true;
}

static bool say_unreachable(struct world *w, const struct value *v)
{
    struct value taint = {
        { v->parts[0], PL_STR("node.kubernetes.io/unreachable"), PL_STR("NoExecute") }, 3
    };
    return say_taint(w, &taint);
}

static bool say_ready_unknown(struct world *w, const struct value *v)
{
    struct world_node *n = node_of(w, v);

    if (n)
        n->ready_unknown = true;
    return n;
}

static bool say_worker_node(struct world *w, const struct value *v)
{
    if (!node_add(w, v->parts[0]))
        return false;
    w->nodes[w->node_count - 1].worker = true;
    return true;
}

static struct world_pod *pod_of(struct world *w, const struct value *v)
{
    struct world_pod *pod = pod_named(w, v->parts[0]);

    if (!pod)
        refuse_name(w, "Pod", v->parts[0]);
    return pod;
}

static bool say_pod(struct world *w, const struct value *v)
{
    struct world_pod *pod = pod_of(w, v);

    if (pod)
        *pod = (struct world_pod){ .name = pod->name, .phase = v->parts[1] };
    return pod;
}

#define POD_FLAG(word, member)                                     \
    static bool say_##word(struct world *w, const struct value *v) \
    {                                                              \
        struct world_pod *pod = pod_of(w, v);                      \
        if (pod)                                                   \
            pod->member = true;                                    \
        return pod;                                                \
    }
POD_FLAG(no_pod, absent)
POD_FLAG(scheduled, scheduled)
POD_FLAG(initialized_pod, initialized)
POD_FLAG(ready, ready)
POD_FLAG(crashed, crashed)
#undef POD_FLAG

static bool say_waiting(struct world *w, const struct value *v)
{
    struct world_pod *pod = pod_of(w, v);

    if (!pod || pod->waiting_count == WORLD_REASONS_MAX)
        return false;
    pod->waiting[pod->waiting_count++] = v->parts[1];
    return true;
}

static bool say_terminated(struct world *w, const struct value *v)
{
    struct world_pod *pod = pod_of(w, v);

    if (!pod || pod->terminated_count == WORLD_REASONS_MAX)
        return false;
    pod->terminated[pod->terminated_count++] = v->parts[1];
    return true;
}

static bool say_pod_error(struct world *w, const struct value *v)
{
    struct world_pod *pod = pod_of(w, v);

    if (pod)
        pod->error = v->parts[1];
    return pod;
}

static struct world_member *member_of(struct world *w, const struct value *v)
{
    struct world_member *m = world_member(w, v->parts[0]);

    if (!m)
        refuse_name(w, "member", v->parts[0]);
    return m;
}

static bool say_alarm(struct world *w, const struct value *v)
{
    const struct world_member *m = member_of(w, v);

    if (!m)
        return false;
    if (w->alarm_count == WORLD_ALARMS_MAX)
        return full(w, "alarms");
    w->alarms[w->alarm_count++] = (struct world_alarm){ m->id, v->parts[1] };
    return true;
}

static bool say_learner(struct world *w, const struct value *v)
{
    struct world_member *m = member_of(w, v);

    if (m)
        m->learner = true;
    return m;
}

static bool say_no_member(struct world *w, const struct value *v)
{
    if (!member_of(w, v))
        return false;
    member_drop(w, v->parts[0]);
    return true;
}

static bool say_extra_member(struct world *w, const struct value *v)
{
    return member_add(w, v->parts[0]);
}

static bool say_unnamed_member(struct world *w, const struct value *v)
{
    (void)v;
    return member_add(w, (struct pl_str){ 0 });
}

static bool say_no_members(struct world *w, const struct value *v)
{
    (void)v;
    w->member_count = 0;
    return true;
}

static bool say_leader(struct world *w, const struct value *v)
{
    const struct world_member *m = member_of(w, v);

    if (m)
        w->leader = m->id;
    return m;
}

static bool say_no_leader(struct world *w, const struct value *v)
{
    (void)v;
    w->leader = 0;
    return true;
}

static bool say_status_error(struct world *w, const struct value *v)
{
    if (w->error_count == WORLD_ERRORS_MAX)
        return full(w, "status errors");
    w->errors[w->error_count++] = v->parts[0];
    return true;
}

static bool say_missing(struct world *w, const struct value *v)
{
    const struct {
        const char *part;
        bool *flag;
    } parts[] = { { "workload", &w->no_workload },  { "connection", &w->no_connection },
                  { "nodes", &w->no_nodes },        { "pods", &w->no_pods },
                  { "etcd", &w->no_etcd },          { "etcd.members", &w->no_members },
                  { "etcd.alarms", &w->no_alarms }, { "cluster", &w->no_cluster } };

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (pl__str_equal(v->parts[0], pl__str(parts[i].part))) {
            *parts[i].flag = true;
            return true;
        }
    }
    return refuse_name(w, "part", v->parts[0]);
}

/* clang-format off */
static const struct word {
    const char *name;
    size_t parts_min, parts_max;
    bool (*say)(struct world *w, const struct value *v);
} words_known[] = {
    { "machines", 1, 1, say_machines },
    { "external-etcd", 0, 0, say_external_etcd },
    { "bystander", 0, 0, say_bystander },
    { "name", 1, 1, say_name },
    { "no-cluster", 0, 0, say_no_cluster },
    { "no-infrastructure", 0, 0, say_no_infrastructure },
    { "no-endpoint", 0, 0, say_no_endpoint },
    { "paused", 0, 0, say_paused },
    { "control-plane-ref", 0, 0, say_control_plane_ref },
    { "topology", 1, 1, say_topology },
    { "grace", 1, 1, say_grace },
    { "not-initialized", 0, 0, say_not_initialized },
    { "no-initialized-condition", 0, 0, say_no_initialized_condition },
    { "initialized", 1, 1, say_initialized },
    { "initialized-at", 1, 1, say_initialized_at },
    { "deleting", 0, 1, say_deleting },
    { "version", 1, 1, say_version },
    { "max-retry", 1, 1, say_max_retry },
    { "retry-period", 1, 1, say_retry_period },
    { "min-healthy", 1, 1, say_min_healthy },
    { "replicas", 1, 1, say_replicas },
    { "in-progress", 3, 3, say_in_progress },
    { "in-progress-text", 1, 1, say_in_progress_text },
    { "no-generation", 0, 0, say_no_generation },
    { "stored", 3, 4, say_stored },
    { "machine-deleting", 2, 2, say_machine_deleting },
    { "provisioning", 1, 1, say_provisioning },
    { "no-provider-id", 1, 1, say_no_provider_id },
    { "created", 2, 2, say_created },
    { "unhealthy", 1, 1, say_unhealthy },
    { "healthy", 1, 1, say_healthy },
    { "to-remediate", 1, 1, say_to_remediate },
    { "owner-message", 2, 2, say_owner_message },
    { "owner-bytes", 2, 2, say_owner_bytes },
    { "owner-status", 2, 2, say_owner_status },
    { "owner-at", 2, 2, say_owner_at },
    { "remediate-annotation", 1, 1, say_remediate_annotation },
    { "remediation-for", 3, 3, say_remediation_for },
    { "remediation-for-text", 2, 2, say_remediation_for_text },
    { "draining", 3, 3, say_draining },
    { "no-machine", 1, 1, say_no_machine },
    { "machine-stored", 4, 5, say_machine_stored },
    { "control-plane-label", 1, 1, say_control_plane_label },
    { "workers", 1, 1, say_workers },
    { "pools", 1, 1, say_pools },
    { "deployment", 1, 1, say_deployment },
    { "max-in-flight", 1, 1, say_max_in_flight },
    { "old-revision", 0, 0, say_old_revision },
    { "set-paused", 0, 0, say_set_paused },
    { "state", 1, 1, say_state },
    { "state-error", 1, 1, say_state_error },
    { "never-probed", 0, 0, say_never_probed },
    { "failures", 1, 1, say_failures },
    { "last-probe", 1, 1, say_last_probe },
    { "nodes-error", 1, 1, say_nodes_error },
    { "orphan-node", 1, 1, say_orphan_node },
    { "no-node", 1, 1, say_no_node },
    { "unreachable", 1, 1, say_unreachable },
    { "ready-unknown", 1, 1, say_ready_unknown },
    { "taint", 3, 3, say_taint },
    { "worker-node", 1, 1, say_worker_node },
    { "no-pod", 1, 1, say_no_pod },
    { "pod", 2, 2, say_pod },
    { "scheduled", 1, 1, say_scheduled },
    { "initialized-pod", 1, 1, say_initialized_pod },
    { "ready", 1, 1, say_ready },
    { "waiting", 2, 2, say_waiting },
    { "terminated", 2, 2, say_terminated },
    { "crashed", 1, 1, say_crashed },
    { "pod-error", 2, 2, say_pod_error },
    { "alarm", 2, 2, say_alarm },
    { "learner", 1, 1, say_learner },
    { "no-member", 1, 1, say_no_member },
    { "extra-member", 1, 1, say_extra_member },
    { "unnamed-member", 0, 0, say_unnamed_member },
    { "no-members", 0, 0, say_no_members },
    { "leader", 1, 1, say_leader },
    { "no-leader", 0, 0, say_no_leader },
    { "connect-error", 1, 1, say_connect_error },
    { "members-error", 1, 1, say_members_error },
    { "alarms-error", 1, 1, say_alarms_error },
    { "status-error", 1, 1, say_status_error },
    { "missing", 1, 1, say_missing },
};
/* clang-format on */

/* --- reading words ------------------------------------------------------------------------------- */

/* The next word, unquoted, in the arena; NULL at the end. */
static char *next_word(struct world *w, const char **at)
{
    const char *s = *at;
    size_t len = 0;
    bool quoted = false;

    while (*s && strchr(" \t\r\n", *s))
        s++;
    if (!*s)
        return NULL;
    char *word = PL_NEW(&w->arena, char, strlen(s) + 1);
    for (; *s && (quoted || !strchr(" \t\r\n", *s)); s++) {
        if (*s == '"') {
            quoted = !quoted;
        } else if (quoted && *s == '\\' && s[1]) {
            s++;
            word[len++] = *s == 'n' ? '\n' : *s == 't' ? '\t' : *s;
        } else {
            word[len++] = *s;
        }
    }
    *at = s;
    return word;
}

static bool word_apply(struct world *w, const char *word)
{
    const char *equals = strchr(word, '=');
    struct pl_str name = { word, equals ? (size_t)(equals - word) : strlen(word) };
    const struct word *known = NULL;
    struct value v = { 0 };

    for (size_t i = 0; i < sizeof words_known / sizeof words_known[0]; i++) {
        if (pl__str_equal(name, pl__str(words_known[i].name)))
            known = &words_known[i];
    }
    if (!known)
        return refuse(w, "unknown word \"%s\"", word);
    for (const char *rest = equals ? equals + 1 : NULL; rest && v.count < known->parts_max;) {
        const char *colon = v.count + 1 < known->parts_max ? strchr(rest, ':') : NULL;
        v.parts[v.count++] = (struct pl_str){ rest, colon ? (size_t)(colon - rest) : strlen(rest) };
        rest = colon ? colon + 1 : NULL;
    }
    if (v.count < known->parts_min || (equals && known->parts_max == 0))
        return refuse(w, "\"%s\": expected %zu parts", word, known->parts_min);
    if (!known->say(w, &v)) {
        char why[sizeof w->error];
        snprintf(why, sizeof why, "%s", w->error);
        return refuse(w, "%.100s: %.100s", word, why);
    }
    return true;
}

bool world_say(struct world *w, const char *words)
{
    for (char *word; (word = next_word(w, &words));) {
        if (!word_apply(w, word))
            return false;
    }
    return true;
}

/* --- writing ------------------------------------------------------------------------------------- */

struct writer {
    struct world *w;
    struct pl_json_writer json;
    struct prng prng;
    bool shuffles;
};

static void begin(struct writer *o, const char *key)
{
    if (key)
        pl__json_write_key(&o->json, key);
    pl__json_open_object(&o->json);
}

static void end(struct writer *o)
{
    pl__json_close_object(&o->json);
}

static void begin_list(struct writer *o, const char *key)
{
    pl__json_write_key(&o->json, key);
    pl__json_open_array(&o->json);
}

static void end_list(struct writer *o)
{
    pl__json_close_array(&o->json);
}

static void put(struct writer *o, const char *key, struct pl_str value)
{
    pl__json_write_key(&o->json, key);
    pl__json_write_str(&o->json, value);
}

static void put_text(struct writer *o, const char *key, const char *value)
{
    put(o, key, pl__str(value));
}

static void put_some(struct writer *o, const char *key, struct pl_str value)
{
    if (value.len)
        put(o, key, value);
}

static void put_bool(struct writer *o, const char *key, bool value)
{
    pl__json_write_key(&o->json, key);
    pl__json_write_bool(&o->json, value);
}

static void put_int(struct writer *o, const char *key, int64_t value)
{
    pl__json_write_key(&o->json, key);
    pl__json_write_int(&o->json, value);
}

static void put_time(struct writer *o, const char *key, int64_t ms)
{
    if (!ms)
        return;
    pl__json_write_key(&o->json, key);
    pl__json_write_time(&o->json, ms);
}

static void put_id(struct writer *o, const char *key, uint64_t id)
{
    struct pl_buf text;

    pl__buf_init(&text, &o->w->arena, 32);
    pl__buf_add_u64(&text, id);
    put(o, key, pl__buf_str(&text));
}

/* The order in which `count` things are listed. */
static size_t *listing(struct writer *o, size_t count)
{
    size_t *order = PL_NEW(&o->w->arena, size_t, count + 1);

    for (size_t i = 0; i < count; i++)
        order[i] = i;
    for (size_t i = count; o->shuffles && i > 1; i--) {
        size_t other = prng_below(&o->prng, i), last = order[i - 1];
        order[i - 1] = order[other];
        order[other] = last;
    }
    return order;
}

static void put_conditions(struct writer *o, const struct world_conditions *list)
{
    const size_t *order = listing(o, list->count);

    if (!list->count)
        return;
    begin_list(o, "conditions");
    for (size_t i = 0; i < list->count; i++) {
        const struct world_condition *c = &list->items[order[i]];
        begin(o, NULL);
        put(o, "type", c->type);
        put(o, "status", c->status);
        put(o, "reason", c->reason);
        put(o, "message", c->message);
        put_time(o, "lastTransitionTime", c->since_ms);
        if (c->generation)
            put_int(o, "observedGeneration", c->generation);
        end(o);
    }
    end_list(o);
}

static void put_condition(struct writer *o, const char *type, const char *status)
{
    begin(o, NULL);
    put_text(o, "type", type);
    put_text(o, "status", status);
    end(o);
}

static void put_owner(struct writer *o, const char *group, const char *kind, const char *name)
{
    begin_list(o, "ownerReferences");
    begin(o, NULL);
    put(o, "apiVersion", pl__str_format(&o->w->arena, "%s/v1beta2", group));
    put_text(o, "kind", kind);
    put_text(o, "name", name);
    put(o, "uid", pl__str_format(&o->w->arena, "uid-%s", name));
    put_bool(o, "controller", true);
    end(o);
    end_list(o);
}

/* Opens the object and writes its metadata up to what only this kind has. */
static void begin_object(struct writer *o, const char *group, const char *kind, struct pl_str name)
{
    begin(o, NULL);
    put(o, "apiVersion", pl__str_format(&o->w->arena, "%s/v1beta2", group));
    put_text(o, "kind", kind);
    begin(o, "metadata");
    put(o, "name", name);
    put_text(o, "namespace", NAMESPACE);
    put(o, "uid", pl__str_format(&o->w->arena, "uid-%.*s", PL_STR_ARG(name)));
    if (!o->w->no_generation)
        put_int(o, "generation", 3);
}

#define GROUP_CLUSTER "cluster.x-k8s.io"
#define GROUP_CONTROL_PLANE "controlplane.cluster.x-k8s.io"

static void put_cluster(struct writer *o, const char *name)
{
    const struct world *w = o->w;
    bool ours = strcmp(name, CLUSTER) == 0;

    begin_object(o, GROUP_CLUSTER, "Cluster", pl__str(name));
    end(o);
    begin(o, "spec");
    if (!ours || !w->no_endpoint) {
        begin(o, "controlPlaneEndpoint");
        put_text(o, "host", "10.0.0.1");
        put_int(o, "port", 6443);
        end(o);
    }
    if (ours && w->topology.len) {
        begin(o, "topology");
        put(o, "version", w->topology);
        end(o);
    }
    if (ours && w->paused)
        put_bool(o, "paused", true);
    if (ours && w->control_plane_ref) {
        begin(o, "controlPlaneRef");
        put_text(o, "apiGroup", GROUP_CONTROL_PLANE);
        put_text(o, "kind", "KubeadmControlPlane");
        put_text(o, "name", KCP);
        end(o);
    }
    end(o);
    begin(o, "status");
    begin(o, "initialization");
    put_bool(o, "infrastructureProvisioned", !ours || !w->no_infrastructure);
    end(o);
    end(o);
    end(o);
}

static void put_remediation_spec(struct writer *o)
{
    const struct world *w = o->w;

    if (w->max_retry < 0 && w->retry_period < 0 && w->min_healthy < 0)
        return;
    begin(o, "remediation");
    if (w->max_retry >= 0)
        put_int(o, "maxRetry", w->max_retry);
    if (w->retry_period >= 0)
        put_int(o, "retryPeriodSeconds", w->retry_period);
    if (w->min_healthy >= 0)
        put_int(o, "minHealthyPeriodSeconds", w->min_healthy);
    end(o);
}

static void put_kcp(struct writer *o)
{
    const struct world *w = o->w;
    int64_t replicas = 0;

    for (size_t i = 0; i < w->machine_count; i++)
        replicas += w->machines[i].role == WORLD_CONTROL_PLANE;
    begin_object(o, GROUP_CONTROL_PLANE, "KubeadmControlPlane", PL_STR(KCP));
    put_time(o, "deletionTimestamp", w->kcp_deleted_ms);
    put_owner(o, GROUP_CLUSTER, "Cluster", CLUSTER);
    begin(o, "labels");
    put_text(o, "cluster.x-k8s.io/cluster-name", CLUSTER);
    end(o);
    if (w->in_progress.len) {
        begin(o, "annotations");
        put(o, "controlplane.cluster.x-k8s.io/remediation-in-progress", w->in_progress);
        end(o);
    }
    end(o);
    begin(o, "spec");
    put_int(o, "replicas", w->replicas >= 0 ? w->replicas : replicas);
    put(o, "version", w->version);
    put_remediation_spec(o);
    if (w->external_etcd) {
        begin(o, "kubeadmConfigSpec");
        begin(o, "clusterConfiguration");
        begin(o, "etcd");
        begin(o, "external");
        begin_list(o, "endpoints");
        pl__json_write_str(&o->json, PL_STR("https://etcd.example:2379"));
        end_list(o);
        end(o);
        end(o);
        end(o);
        end(o);
    }
    end(o);
    begin(o, "status");
    begin(o, "initialization");
    put_bool(o, "controlPlaneInitialized", !w->not_initialized);
    end(o);
    put_conditions(o, &w->kcp_conditions);
    end(o);
    end(o);
}

static void put_machine(struct writer *o, const struct world_machine *m)
{
    begin_object(o, GROUP_CLUSTER, "Machine", m->name);
    put_time(o, "creationTimestamp", m->created_ms);
    put_time(o, "deletionTimestamp", m->deleted_ms);
    if (m->role == WORLD_CONTROL_PLANE)
        put_owner(o, GROUP_CONTROL_PLANE, "KubeadmControlPlane", KCP);
    else
        put_owner(o, GROUP_CLUSTER, "MachineSet", m->role == WORLD_DEPLOYED ? MD "-1" : "stray");
    begin(o, "labels");
    put_text(o, "cluster.x-k8s.io/cluster-name", CLUSTER);
    if (m->control_plane_label)
        put_text(o, "cluster.x-k8s.io/control-plane", "");
    end(o);
    if (m->remediate_annotation || m->remediation_for.len) {
        begin(o, "annotations");
        if (m->remediate_annotation)
            put_text(o, "cluster.x-k8s.io/remediate-machine", "");
        put_some(o, "controlplane.cluster.x-k8s.io/remediation-for", m->remediation_for);
        end(o);
    }
    end(o);
    begin(o, "spec");
    put_text(o, "clusterName", CLUSTER);
    put_some(o, "providerID", m->provider_id);
    begin(o, "infrastructureRef");
    put_text(o, "kind", "TestMachine");
    put(o, "name", m->name);
    end(o);
    end(o);
    begin(o, "status");
    if (m->node.len) {
        begin(o, "nodeRef");
        put(o, "name", m->node);
        end(o);
    }
    if (m->drain_started_ms) {
        begin(o, "deletion");
        put_time(o, "nodeDrainStartTime", m->drain_started_ms);
        end(o);
    }
    put_conditions(o, &m->conditions);
    end(o);
    end(o);
}

static void put_pool(struct writer *o, size_t i)
{
    begin_object(o, GROUP_CLUSTER, "MachinePool", format_name(o->w, "pool-", i));
    end(o);
    begin(o, "spec");
    put_text(o, "clusterName", CLUSTER);
    end(o);
    end(o);
}

static void put_deployment(struct writer *o)
{
    begin_object(o, GROUP_CLUSTER, "MachineDeployment", PL_STR(MD));
    begin(o, "labels");
    put_text(o, "cluster.x-k8s.io/cluster-name", CLUSTER);
    end(o);
    if (o->w->old_revision) {
        begin(o, "annotations");
        put_text(o, "machinedeployment.clusters.x-k8s.io/revision", "2");
        end(o);
    }
    end(o);
    if (o->w->max_in_flight.len) {
        begin(o, "spec");
        begin(o, "remediation");
        put(o, "maxInFlight", o->w->max_in_flight);
        end(o);
        end(o);
    }
    begin(o, "status");
    put_conditions(o, &o->w->md_conditions);
    end(o);
    end(o);
}

static void put_machine_set(struct writer *o)
{
    begin_object(o, GROUP_CLUSTER, "MachineSet", PL_STR(MD "-1"));
    put_owner(o, GROUP_CLUSTER, "MachineDeployment", MD);
    if (o->w->set_paused) {
        begin(o, "annotations");
        put_text(o, "cluster.x-k8s.io/paused", "");
        end(o);
    }
    end(o);
    end(o);
}

static void put_bystander(struct writer *o)
{
    begin_object(o, GROUP_CONTROL_PLANE, "KubeadmControlPlane", PL_STR("beta-cp"));
    begin(o, "labels");
    put_text(o, "cluster.x-k8s.io/cluster-name", "beta");
    end(o);
    end(o);
    end(o);
}

/* All management objects. */
static void put_objects(struct writer *o)
{
    const struct world *w = o->w;
    enum { FIXED = 6 };
    size_t count = FIXED + w->machine_count + w->pool_count;
    const size_t *order = listing(o, count);

    for (size_t i = 0; i < count; i++) {
        size_t at = order[i];
        if (at == 0 && !w->no_cluster)
            put_cluster(o, CLUSTER);
        else if (at == 1)
            put_kcp(o);
        else if (at == 2 && w->has_deployment)
            put_deployment(o);
        else if (at == 3 && w->has_deployment)
            put_machine_set(o);
        else if (at == 4 && w->bystander)
            put_cluster(o, "beta");
        else if (at == 5 && w->bystander)
            put_bystander(o);
        else if (at >= FIXED && at < FIXED + w->machine_count)
            put_machine(o, &w->machines[at - FIXED]);
        else if (at >= FIXED)
            put_pool(o, at - FIXED - w->machine_count);
    }
}

static void put_node(struct writer *o, const struct world_node *n)
{
    begin(o, NULL);
    put_text(o, "apiVersion", "v1");
    put_text(o, "kind", "Node");
    begin(o, "metadata");
    put(o, "name", n->name);
    begin(o, "labels");
    put(o, "kubernetes.io/hostname", n->name);
    if (!n->worker)
        put_text(o, "node-role.kubernetes.io/control-plane", "");
    end(o);
    end(o);
    if (n->taint_key.len) {
        begin(o, "spec");
        begin_list(o, "taints");
        begin(o, NULL);
        put(o, "key", n->taint_key);
        put(o, "effect", n->taint_effect);
        end(o);
        end_list(o);
        end(o);
    }
    begin(o, "status");
    begin_list(o, "conditions");
    put_condition(o, "MemoryPressure", "False");
    put_condition(o, "Ready", n->ready_unknown ? "Unknown" : "True");
    end_list(o);
    end(o);
    end(o);
}

static void put_container(struct writer *o, const char *state, struct pl_str reason, bool crashed)
{
    begin(o, NULL);
    put_text(o, "name", "main");
    begin(o, "state");
    begin(o, state);
    put_some(o, "reason", reason);
    end(o);
    end(o);
    if (crashed) {
        begin(o, "lastState");
        begin(o, "terminated");
        put_int(o, "exitCode", 1);
        end(o);
        end(o);
    }
    end(o);
}

static void put_pod(struct writer *o, const struct world_pod *pod)
{
    begin(o, NULL);
    put_text(o, "apiVersion", "v1");
    put_text(o, "kind", "Pod");
    begin(o, "metadata");
    put(o, "name", pod->name);
    put_text(o, "namespace", "kube-system");
    end(o);
    begin(o, "status");
    put_some(o, "phase", pod->phase);
    begin_list(o, "conditions");
    put_condition(o, "PodScheduled", pod->scheduled ? "True" : "False");
    put_condition(o, "Initialized", pod->initialized ? "True" : "False");
    put_condition(o, "Ready", pod->ready ? "True" : "False");
    end_list(o);
    begin_list(o, "containerStatuses");
    put_container(o, "running", (struct pl_str){ 0 }, pod->crashed);
    for (size_t i = 0; i < pod->waiting_count; i++)
        put_container(o, "waiting", pod->waiting[i], false);
    for (size_t i = 0; i < pod->terminated_count; i++)
        put_container(o, "terminated", pod->terminated[i], false);
    end_list(o);
    end(o);
    end(o);
}

static void put_pods(struct writer *o)
{
    const struct world *w = o->w;
    const size_t *order = listing(o, w->pod_count);

    for (size_t i = 0; i < w->pod_count; i++) {
        const struct world_pod *pod = &w->pods[order[i]];
        if (!pod->absent && !pod->error.len)
            put_pod(o, pod);
    }
}

static void put_etcd(struct writer *o)
{
    const struct world *w = o->w;

    begin(o, "etcd");
    put_some(o, "connectError", w->connect_error);
    put_text(o, "endpoint", "etcd-node-0");
    begin_list(o, "errors");
    for (size_t i = 0; i < w->error_count; i++)
        pl__json_write_str(&o->json, w->errors[i]);
    end_list(o);
    put_some(o, "membersError", w->members_error);
    put_some(o, "alarmsError", w->alarms_error);
    if (w->leader)
        put_id(o, "leader", w->leader);
    if (!w->no_members) {
        begin_list(o, "members");
        for (size_t i = 0; i < w->member_count; i++) {
            begin(o, NULL);
            put_id(o, "ID", w->members[i].id);
            put_some(o, "name", w->members[i].name);
            put_bool(o, "isLearner", w->members[i].learner);
            end(o);
        }
        end_list(o);
    }
    if (!w->no_alarms) {
        begin_list(o, "alarms");
        for (size_t i = 0; i < w->alarm_count; i++) {
            begin(o, NULL);
            put_id(o, "memberID", w->alarms[i].member_id);
            put(o, "alarm", w->alarms[i].alarm);
            end(o);
        }
        end_list(o);
    }
    end(o);
}

static void put_workload(struct writer *o)
{
    const struct world *w = o->w;

    begin(o, NULL);
    put_text(o, "cluster", NAMESPACE "/" CLUSTER);
    if (!w->no_connection) {
        begin(o, "connection");
        put(o, "state", w->state);
        put_some(o, "error", w->state_error);
        put_time(o, "lastProbeSuccessTime", w->probed_ms);
        put_int(o, "consecutiveFailures", w->failures);
        end(o);
    }
    put_some(o, "nodesError", w->nodes_error);
    if (!w->no_nodes) {
        begin_list(o, "nodes");
        for (size_t i = 0; i < w->node_count; i++)
            put_node(o, &w->nodes[i]);
        end_list(o);
    }
    if (!w->no_pods) {
        begin_list(o, "pods");
        put_pods(o);
        end_list(o);
    }
    begin(o, "podErrors");
    for (size_t i = 0; i < w->pod_count; i++) {
        if (w->pods[i].error.len)
            put(o, pl__str_copy(&o->w->arena, w->pods[i].name).ptr, w->pods[i].error);
    }
    end(o);
    if (!w->no_etcd)
        put_etcd(o);
    end(o);
}

static void put_bystander_workload(struct writer *o)
{
    begin(o, NULL);
    put_text(o, "cluster", NAMESPACE "/beta");
    begin(o, "connection");
    put_text(o, "state", "NotConnected");
    end(o);
    end(o);
}

static struct writer writer_of(struct world *w, struct pl_buf *text, enum pl_json_format format,
                               uint64_t order)
{
    struct writer o = { .w = w, .prng = { order }, .shuffles = order != 0 };

    pl__buf_init(text, &w->arena, SIZE_MAX);
    pl__json_writer_init(&o.json, text, format);
    return o;
}

struct pl_str world_text(struct world *w, enum pl_json_format format, uint64_t order)
{
    struct pl_buf text;
    struct writer o = writer_of(w, &text, format, order);

    begin(&o, NULL);
    put_text(&o, "apiVersion", "plimsoll.dev/v1");
    put_text(&o, "kind", "Snapshot");
    put_some(&o, "name", w->name);
    put_time(&o, "now", w->now_ms);
    if (w->grace_s)
        put_int(&o, "remoteConditionsGracePeriodSeconds", w->grace_s);
    begin_list(&o, "objects");
    put_objects(&o);
    end_list(&o);
    begin_list(&o, "workloads");
    const size_t *listed = listing(&o, 2);
    for (size_t i = 0; i < 2; i++) {
        if (listed[i] == 0 && !w->no_workload)
            put_workload(&o);
        else if (listed[i] == 1 && w->bystander)
            put_bystander_workload(&o);
    }
    end_list(&o);
    end(&o);
    return pl__buf_str(&text);
}

struct pl_str world_list(struct world *w, enum pl_json_format format)
{
    struct pl_buf text;
    struct writer o = writer_of(w, &text, format, 0);

    begin(&o, NULL);
    put_text(&o, "apiVersion", "v1");
    put_text(&o, "kind", "List");
    begin_list(&o, "items");
    put_objects(&o);
    for (size_t i = 0; i < w->node_count; i++)
        put_node(&o, &w->nodes[i]);
    put_pods(&o);
    end_list(&o);
    end(&o);
    return pl__buf_str(&text);
}

/* --- writing back -------------------------------------------------------------------------------- */

static void store(struct world *w, struct world_conditions *list, const struct pl_verdict *v)
{
    struct world_condition *c = condition_of(list, pl__str(v->type));

    if (!c)
        abort(); /* room for every type there is */
    *c = (struct world_condition){ .type = pl__str(v->type),
                                   .status = pl__str(pl_status_name(v->status)),
                                   .reason = pl__str_copy(&w->arena, v->reason),
                                   .message = pl__str_copy(&w->arena, v->message),
                                   .since_ms = v->last_transition_ms,
                                   .generation =
                                       v->has_observed_generation ? v->observed_generation : 0 };
}

void world_store(struct world *w, const struct pl_report *report)
{
    for (size_t i = 0; i < report->object_count; i++) {
        const struct pl_object *object = &report->objects[i];
        struct world_machine *m = world_machine(w, object->name);
        struct world_conditions *list = NULL;
        if (strcmp(object->kind, "Machine") == 0 && m)
            list = &m->conditions;
        else if (strcmp(object->kind, "MachineDeployment") == 0)
            list = &w->md_conditions;
        else if (pl__str_equal(object->name, PL_STR(KCP)))
            list = &w->kcp_conditions;
        for (size_t k = 0; list && k < object->verdict_count; k++)
            store(w, list, &object->verdicts[k]);
    }
}
