/* The fleet: opening, looking at each cluster when it is due, what the front asks, stopping. */
#include "fleet/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "loop/files.h"

enum {
    MANAGEMENT_FEEDS = 5, /* kinds that are watched there, and in a workload cluster */
    CLUSTER_FEEDS = 2,
    TURN_NS_MAX = 5 * 1000 * 1000, /* the controller, on the same loop, is not kept waiting */
    KILL_AFTER_MS = 3000,
    LINE_BYTES = 512,
};

/* --- small things ------------------------------------------------------------------------------------------ */

void pl__fleet_enter(struct pl_fleet *fleet)
{
    fleet->depth++;
}

void pl__fleet_leave(struct pl_fleet *fleet)
{
    if (--fleet->depth == 0)
        pl__arena_reset(&fleet->scratch);
}

void pl__fleet_say(struct pl_fleet *fleet, const char *format, ...)
{
    char line[LINE_BYTES];
    va_list args;

    if (!fleet->options.said)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    fleet->options.said(fleet->options.said_user, pl__str(line));
}

static struct cluster **bucket_of(struct pl_fleet *fleet, uint64_t hash)
{
    return &fleet->buckets[hash % CLUSTER_BUCKETS];
}

struct cluster *pl__cluster_find(const struct pl_fleet *fleet, struct pl_str name)
{
    uint64_t hash = pl__str_hash(PL_HASH_BEGIN, name);
    struct cluster *c = fleet->buckets[hash % CLUSTER_BUCKETS];

    while (c && (c->hash != hash || !pl__str_equal(name, pl__str(c->name))))
        c = c->next_in_bucket;
    return c;
}

/* Said once, not with every event of it and of its Machines. */
static void cluster_refuse(struct pl_fleet *fleet, struct pl_str name)
{
    uint64_t hash = pl__str_hash(PL_HASH_BEGIN, name);

    if (fleet->refused_hash != hash)
        pl__fleet_say(fleet, "Cluster %.*s: the playground can have none of that name, or no more",
                      PL_STR_ARG(name));
    fleet->refused_hash = hash;
}

struct cluster *pl__cluster_add(struct pl_fleet *fleet, struct pl_str name)
{
    const struct pl_fleet_api *api = &fleet->options.api;
    struct cluster *c;

    if (fleet->cluster_count == FLEET_CLUSTERS_MAX || name.len >= NAME_BYTES ||
        !api->cluster_add(api->user, name)) {
        cluster_refuse(fleet, name);
        return NULL;
    }
    if (fleet->cluster_count == fleet->cluster_capacity) {
        fleet->cluster_capacity = fleet->cluster_capacity ? 2 * fleet->cluster_capacity : 16;
        fleet->clusters =
            realloc(fleet->clusters, fleet->cluster_capacity * sizeof *fleet->clusters);
    }
    c = calloc(1, sizeof *c);
    if (!c || !fleet->clusters)
        abort();
    c->fleet = fleet;
    c->hash = pl__str_hash(PL_HASH_BEGIN, name);
    c->made_ms = pl__loop_wall_ms();
    c->feeds_left = fleet->options.keep ? CLUSTER_FEEDS : 0;
    c->empty_ms = pl__loop_mono_ms(fleet->loop) + FLEET_SETTLE_MS;
    NAME_SET(c->name, name);
    fleet->clusters[fleet->cluster_count++] = c;
    c->next_in_bucket = *bucket_of(fleet, c->hash);
    *bucket_of(fleet, c->hash) = c;
    api->watch(api->user, pl__str(c->name), "v1", "nodes");
    api->watch(api->user, pl__str(c->name), "v1", "pods");
    return c;
}

static void cluster_drop(struct pl_fleet *fleet, uint32_t index)
{
    struct cluster *c = fleet->clusters[index], **at = bucket_of(fleet, c->hash);

    while (*at != c)
        at = &(*at)->next_in_bucket;
    *at = c->next_in_bucket;
    pl__fleet_say(fleet, "Cluster %s is gone", c->name);
    fleet->options.api.cluster_remove(fleet->options.api.user, pl__str(c->name));
    fleet->cluster_count--;
    memmove(fleet->clusters + index, fleet->clusters + index + 1,
            (fleet->cluster_count - index) * sizeof *fleet->clusters);
    pl__fleet_enter(fleet);
    pl__cluster_free(c);
    pl__fleet_leave(fleet);
}

/* --- looking ------------------------------------------------------------------------------------------------- */

static void timer_fired(uv_timer_t *timer);

void pl__fleet_wake(struct pl_fleet *fleet, uint64_t at_ms)
{
    uint64_t now_ms = pl__loop_mono_ms(fleet->loop);

    if (fleet->freeing || at_ms >= fleet->timer_ms)
        return;
    fleet->timer_ms = at_ms;
    uv_timer_start(&fleet->timer, timer_fired, at_ms > now_ms ? at_ms - now_ms : 0, 0);
}

void pl__cluster_poke(struct cluster *c)
{
    c->due_ms = 0;
    c->counted = false;
    if (!c->fleet->stepping)
        pl__fleet_wake(c->fleet, pl__loop_mono_ms(c->fleet->loop));
}

void pl__ensemble_poke(struct ensemble *e, bool everybody)
{
    struct pl_fleet *fleet = e->fleet;

    if (e->is_shared) {
        fleet->shared_due_ms = e->next_call_ms;
        pl__fleet_wake(fleet, e->next_call_ms);
    }
    for (uint32_t i = 0; i < fleet->cluster_count; i++)
        if (fleet->clusters[i]->etcd == e || (e->is_shared && everybody))
            pl__cluster_poke(fleet->clusters[i]);
}

static struct pl_str made_path(struct pl_fleet *fleet)
{
    return pl__str_format(&fleet->scratch, "%s/made", fleet->options.directory);
}

/* Who was killed before makes those again that are missing; who was killed later finds what people made of them. */
static void made_keep(struct pl_fleet *fleet)
{
    if (!fleet->options.keep || fleet->made_count <= fleet->made_before)
        return;
    pl__fleet_enter(fleet);
    pl__file_write(made_path(fleet).ptr, pl__str_format(&fleet->scratch, "%u", fleet->made_count),
                   &fleet->scratch, NULL);
    pl__fleet_leave(fleet);
}

static void made_find(struct pl_fleet *fleet)
{
    struct pl_str text = { "", 0 };
    uint64_t count = 0;

    if (fleet->options.keep &&
        pl__file_read(&fleet->scratch, made_path(fleet).ptr, LINE_BYTES, &text, NULL) == 0 &&
        pl__str_to_u64(text, &count) && count <= FLEET_CLUSTERS_MAX)
        fleet->made_before = (uint32_t)count;
}

/* The first clusters, some a turn. */
static void first_make(struct pl_fleet *fleet)
{
    bool under_way = fleet->made_count < fleet->options.cluster_count;
    uint64_t end_ns = uv_hrtime() + TURN_NS_MAX;

    while (fleet->made_count < fleet->options.cluster_count && uv_hrtime() < end_ns) {
        pl__fleet_enter(fleet);
        struct pl_str name =
            pl__str_format(&fleet->scratch, "%s-%u", fleet->options.prefix, ++fleet->made_count);
        struct cluster *c = pl__cluster_find(fleet, name);
        bool made = fleet->made_count <= fleet->made_before;
        if (!c && !made)
            c = pl__cluster_add(fleet, name);
        if (c)
            c->ours = true;
        if (c && !made)
            pl__cluster_make(c);
        pl__fleet_leave(fleet);
    }
    if (under_way && fleet->made_count == fleet->options.cluster_count)
        made_keep(fleet);
}

static void clusters_step(struct pl_fleet *fleet, uint64_t now_ms, uint64_t *due_ms)
{
    uint64_t end_ns = uv_hrtime() + TURN_NS_MAX;

    for (uint32_t seen = 0; seen < fleet->cluster_count; seen++) {
        uint32_t index = (fleet->cluster_next + seen) % fleet->cluster_count;
        struct cluster *c = fleet->clusters[index];
        if (c->feeds_left)
            continue;
        if (c->due_ms <= now_ms && uv_hrtime() >= end_ns) {
            fleet->cluster_next = index;
            *due_ms = now_ms;
            return;
        }
        if (c->due_ms <= now_ms) {
            c->counted = false;
            pl__fleet_enter(fleet);
            pl__cluster_step(c, now_ms);
            pl__fleet_leave(fleet);
        }
        bool empty = pl__cluster_is_empty(c);
        if (empty && now_ms < c->empty_ms)
            pl__due(due_ms, c->empty_ms); /* kinds are told one after the other */
        else if (empty) {
            cluster_drop(fleet, index);
            *due_ms = now_ms; /* the order has changed: begin again */
            return;
        }
        pl__due(due_ms, c->due_ms);
    }
}

/* A process has started: the Pods of every cluster have not heard of it yet. */
static void shared_pods_poke(struct pl_fleet *fleet, uint64_t *due_ms)
{
    for (uint32_t i = 0; i < fleet->cluster_count; i++)
        pl__cluster_poke(fleet->clusters[i]);
    *due_ms = 0;
}

static void stopping_step(struct pl_fleet *fleet, uint64_t now_ms);

static void timer_fired(uv_timer_t *timer)
{
    struct pl_fleet *fleet = timer->data;
    uint64_t now_ms = pl__loop_mono_ms(fleet->loop), due_ms = UINT64_MAX;

    fleet->timer_ms = UINT64_MAX;
    if (fleet->stopping) {
        stopping_step(fleet, now_ms);
        return;
    }
    fleet->stepping = true;
    if (!fleet->feeds_left) {
        first_make(fleet);
        if (fleet->made_count < fleet->options.cluster_count)
            due_ms = now_ms;
        clusters_step(fleet, now_ms, &due_ms);
    }
    if (fleet->shared && fleet->shared_due_ms <= now_ms) {
        uint32_t processes = fleet->process_count;
        fleet->shared_due_ms = UINT64_MAX;
        pl__fleet_enter(fleet);
        pl__ensemble_step(fleet->shared, now_ms, &fleet->shared_due_ms);
        pl__fleet_leave(fleet);
        if (fleet->process_count != processes)
            shared_pods_poke(fleet, &due_ms);
    }
    pl__due(&due_ms, fleet->shared_due_ms);
    fleet->stepping = false;
    /* At once would keep the loop from polling. */
    pl__fleet_wake(fleet, due_ms <= now_ms ? now_ms + 1 : due_ms);
}

/* --- opening ---------------------------------------------------------------------------------------------------- */

static const char *text_keep(struct pl_fleet *fleet, const char *text, const char *otherwise)
{
    if (!text && !otherwise)
        return NULL;
    return pl__str_copy(&fleet->strings, pl__str(text ? text : otherwise)).ptr;
}

static void options_keep(struct pl_fleet *fleet, const struct pl_fleet_options *options)
{
    struct pl_fleet_options *o = &fleet->options;

    *o = *options;
    /* Absolute: processes are known by it. */
    char *absolute = realpath(options->directory, NULL);
    o->directory = text_keep(fleet, absolute, options->directory);
    free(absolute);
    o->ns = text_keep(fleet, options->ns, "default");
    o->version = text_keep(fleet, options->version, "v1.34.2");
    o->prefix = text_keep(fleet, options->prefix, "demo");
    o->watch_filter = text_keep(fleet, options->watch_filter, NULL);
    o->etcd = NULL;
    o->replicas = o->replicas ? o->replicas : 3;
    o->boot_ms = o->boot_ms ? o->boot_ms : 800;
    o->drain_ms = o->drain_ms ? o->drain_ms : 500;
    o->silence_ms = o->silence_ms ? o->silence_ms : 1500;
    o->patience_ms = o->patience_ms ? o->patience_ms : 2500;
}

/* The first "etcd" of PATH that can be run; NULL: none. */
static char *program_find(struct pl_fleet *fleet, const char *wanted)
{
    const char *path = getenv("PATH");
    struct pl_str rest = pl__str(path ? path : "/usr/local/bin:/usr/bin:/bin");

    if (wanted)
        return wanted[0] && access(wanted, X_OK) == 0 ? strdup(wanted) : NULL;
    while (rest.len) {
        size_t len = 0;
        while (len < rest.len && rest.ptr[len] != ':')
            len++;
        struct pl_str candidate = pl__str_format(&fleet->scratch, "%.*s/etcd", (int)len, rest.ptr);
        if (access(candidate.ptr, X_OK) == 0)
            return strdup(candidate.ptr);
        len += len < rest.len;
        rest = (struct pl_str){ rest.ptr + len, rest.len - len };
    }
    return NULL;
}

static int options_check(const struct pl_fleet_options *o, struct pl_arena *arena,
                         struct pl_error **err)
{
    if (!o->directory)
        return pl__error(arena, err, PL_INVALID, "the fleet needs a directory");
    if (o->cluster_count > FLEET_CLUSTERS_MAX)
        return pl__error(arena, err, PL_LIMIT, "at most %d clusters", FLEET_CLUSTERS_MAX);
    if (o->replicas > FLEET_REPLICAS_MAX)
        return pl__error(arena, err, PL_LIMIT, "at most %d replicas", FLEET_REPLICAS_MAX);
    if (o->workers > FLEET_WORKERS_MAX)
        return pl__error(arena, err, PL_LIMIT, "at most %d workers", FLEET_WORKERS_MAX);
    return 0;
}

static int directory_take(struct pl_fleet *fleet, struct pl_arena *arena, struct pl_error **err)
{
    const char *directory = fleet->options.directory;
    struct pl_str lock = pl__str_format(&fleet->scratch, "%s/fleet.lock", directory);
    struct pl_str etcd = pl__str_format(&fleet->scratch, "%s/etcd", directory);

    fleet->lock = open(lock.ptr, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fleet->lock < 0)
        return pl__error(arena, err, PL_IO, "%s: %s", lock.ptr, strerror(errno));
    if (flock(fleet->lock, LOCK_EX | LOCK_NB) < 0) {
        close(fleet->lock);
        fleet->lock = -1; /* nothing in there is ours, so nothing of it is removed */
        return pl__error(arena, err, PL_IO, "%s: another playground runs in this directory",
                         directory);
    }
    uint32_t left = pl__fleet_end_left(directory);
    if (left)
        pl__fleet_say(fleet, "%u etcd processes of a playground that crashed: ended", left);
    if (!fleet->options.keep)
        pl__folder_remove(etcd.ptr);
    made_find(fleet);
    return pl__folder_make(etcd.ptr, arena, err);
}

static int shared_open(struct pl_fleet *fleet, struct pl_arena *arena, struct pl_error **err)
{
    struct pl_error *cause = NULL;

    if (!fleet->options.shared_etcd || !fleet->etcd)
        return 0;
    fleet->shared = pl__ensemble_new(fleet, "shared", true, &cause);
    for (uint32_t i = 1; fleet->shared && i <= fleet->options.replicas; i++) {
        struct pl_str name = pl__str_format(&fleet->scratch, "cp-%u", i);
        if (!pl__ensemble_member(fleet->shared, name.ptr))
            return pl__error(arena, err, PL_IO, "the etcd that all clusters share cannot be made");
    }
    if (!fleet->shared)
        return pl__error(arena, err, PL_IO, "%s", pl__error_text(&fleet->scratch, cause).ptr);
    if (!fleet->shared->has_started)
        pl__ensemble_start(fleet->shared);
    return 0;
}

static void etcd_find(struct pl_fleet *fleet, const char *wanted)
{
    fleet->etcd = program_find(fleet, wanted);
    if (fleet->etcd)
        pl__etcd_port_find(fleet);
    if (!fleet->etcd)
        snprintf(fleet->why_not, sizeof fleet->why_not,
                 "there is no etcd program%s%s: control planes say that their etcd is external. "
                 "To have it, install it (Debian and Ubuntu: apt install etcd-server)",
                 wanted && wanted[0] ? " at " : "", wanted ? wanted : "");
    else if (!fleet->client_port)
        snprintf(fleet->why_not, sizeof fleet->why_not,
                 "no port for etcd is free (2379, 12379 ...): control planes say that their etcd "
                 "is external");
    if (fleet->etcd && !fleet->client_port) {
        free(fleet->etcd);
        fleet->etcd = NULL;
    }
}

static void watch_begin(struct pl_fleet *fleet)
{
    static const struct {
        const char *group_version, *plural;
    } kinds[MANAGEMENT_FEEDS] = { { CAPI, "clusters" },
                                  { CONTROLPLANE, "kubeadmcontrolplanes" },
                                  { CAPI, "machinedeployments" },
                                  { CAPI, "machinesets" },
                                  { CAPI, "machines" } };

    for (size_t i = 0; i < MANAGEMENT_FEEDS; i++)
        fleet->options.api.watch(fleet->options.api.user, PL_STR(""), kinds[i].group_version,
                                 kinds[i].plural);
}

int pl__fleet_open(struct pl_loop *loop, const struct pl_fleet_options *options,
                   struct pl_arena *arena, struct pl_fleet **out, struct pl_error **err)
{
    struct pl_fleet *fleet;

    if (options_check(options, arena, err) < 0)
        return -1;
    fleet = calloc(1, sizeof *fleet);
    if (!fleet)
        abort();
    fleet->loop = loop;
    fleet->lock = -1;
    fleet->timer_ms = fleet->shared_due_ms = UINT64_MAX;
    pl__arena_init(&fleet->strings, NULL, 4096);
    pl__arena_init(&fleet->scratch, NULL, 0);
    pl__arena_init(&fleet->answer, NULL, 0);
    uv_timer_init(pl__loop_uv(loop), &fleet->timer);
    fleet->timer.data = fleet;
    pl__loop_hold(loop);
    pl__fleet_enter(fleet);
    options_keep(fleet, options);
    int result = directory_take(fleet, arena, err);
    if (result == 0) {
        etcd_find(fleet, options->etcd);
        result = shared_open(fleet, arena, err);
    }
    pl__fleet_leave(fleet);
    if (result < 0) {
        pl__fleet_free(fleet);
        return -1;
    }
    *out = fleet;
    fleet->feeds_left = fleet->options.keep ? MANAGEMENT_FEEDS : 0;
    if (fleet->shared)
        fleet->shared_due_ms = 0;
    watch_begin(fleet);
    pl__fleet_wake(fleet, pl__loop_mono_ms(loop));
    return 0;
}

void pl__fleet_told(struct pl_fleet *fleet, struct pl_str cluster)
{
    struct cluster *c = cluster.len ? pl__cluster_find(fleet, cluster) : NULL;
    uint32_t *left = c ? &c->feeds_left : &fleet->feeds_left;

    if ((cluster.len && !c) || *left == 0)
        return;
    --*left;
    pl__fleet_wake(fleet, pl__loop_mono_ms(fleet->loop));
}

const char *pl__fleet_without_etcd(const struct pl_fleet *fleet)
{
    return fleet->etcd ? NULL : fleet->why_not;
}

/* --- stopping ------------------------------------------------------------------------------------------------------ */

static void ensembles_free(struct pl_fleet *fleet)
{
    pl__fleet_enter(fleet);
    for (uint32_t i = 0; i < fleet->cluster_count; i++) {
        for (struct machine *m = fleet->clusters[i]->machines; m; m = m->next)
            m->member = NULL;
        pl__ensemble_free(fleet->clusters[i]->etcd);
        fleet->clusters[i]->etcd = NULL;
    }
    pl__ensemble_free(fleet->shared);
    fleet->shared = NULL;
    pl__fleet_leave(fleet);
}

static void stopping_step(struct pl_fleet *fleet, uint64_t now_ms)
{
    void (*stopped)(void *user) = fleet->stopped;

    if (fleet->process_count && now_ms < fleet->kill_ms) {
        pl__fleet_wake(fleet, fleet->kill_ms);
        return;
    }
    if (fleet->process_count) {
        for (struct process *p = fleet->processes; p; p = p->next)
            pl__process_signal(p, SIGKILL);
        return; /* each that ends wakes us */
    }
    ensembles_free(fleet);
    fleet->stopped = NULL;
    if (stopped)
        stopped(fleet->stopped_user);
}

void pl__fleet_stop(struct pl_fleet *fleet, void (*done)(void *user), void *user)
{
    fleet->stopping = true;
    fleet->stopped = done;
    fleet->stopped_user = user;
    for (struct process *p = fleet->processes; p; p = p->next) {
        p->member = NULL;
        pl__process_signal(p, SIGTERM);
        pl__process_signal(p, SIGCONT); /* one that is stopped ends only when it goes on */
    }
    for (uint32_t i = 0; i < fleet->cluster_count; i++)
        for (int k = 0; fleet->clusters[i]->etcd && k < MEMBERS_MAX; k++)
            fleet->clusters[i]->etcd->members[k].process = NULL;
    for (int k = 0; fleet->shared && k < MEMBERS_MAX; k++)
        fleet->shared->members[k].process = NULL;
    fleet->kill_ms = pl__loop_mono_ms(fleet->loop) + KILL_AFTER_MS;
    fleet->timer_ms = UINT64_MAX;
    pl__fleet_wake(fleet, pl__loop_mono_ms(fleet->loop));
}

static void fleet_release(struct pl_fleet *fleet)
{
    struct pl_loop *loop = fleet->loop;

    if (!fleet->freeing || !fleet->timer_closed || fleet->process_count)
        return;
    pl__arena_release(&fleet->strings);
    pl__arena_release(&fleet->scratch);
    pl__arena_release(&fleet->answer);
    free(fleet->clusters);
    free(fleet->etcd);
    free(fleet);
    pl__loop_drop(loop);
}

void pl__fleet_process_ended(struct pl_fleet *fleet)
{
    if (fleet->freeing)
        fleet_release(fleet);
    else if (fleet->stopping && fleet->process_count == 0)
        pl__fleet_wake(fleet, 0);
}

static void timer_closed(uv_handle_t *handle)
{
    struct pl_fleet *fleet = handle->data;

    fleet->timer_closed = true;
    fleet_release(fleet);
}

void pl__fleet_free(struct pl_fleet *fleet)
{
    if (!fleet)
        return;
    fleet->stopping = true;
    ensembles_free(fleet);
    for (uint32_t i = 0; i < fleet->cluster_count; i++)
        pl__cluster_free(fleet->clusters[i]);
    fleet->cluster_count = 0;
    memset((void *)fleet->buckets, 0, sizeof fleet->buckets);
    pl__processes_kill_all(fleet);
    pl__processes_close(fleet);
    if (fleet->lock >= 0) {
        struct pl_str etcd = pl__str_format(&fleet->scratch, "%s/etcd", fleet->options.directory);
        if (!fleet->options.keep)
            pl__folder_remove(etcd.ptr);
        close(fleet->lock);
    }
    fleet->freeing = true;
    uv_close((uv_handle_t *)&fleet->timer, timer_closed);
}

/* --- what the front asks --------------------------------------------------------------------------------------------- */

struct pl_fleet_gate pl__fleet_gate(const struct pl_fleet *fleet, struct pl_str cluster)
{
    const struct cluster *c = pl__cluster_find(fleet, cluster);

    if (!c)
        return (struct pl_fleet_gate){ 0 };
    return (struct pl_fleet_gate){
        .cut = c->faults.flags & FAULT_NETWORK_CUT,
        .nodes_forbidden = c->faults.flags & FAULT_NODES_REFUSED,
        .delay_ms = c->faults.slow_ms,
    };
}

const char *pl__fleet_tunnel(const struct pl_fleet *fleet, struct pl_str cluster, struct pl_str pod,
                             uint16_t port, struct pl_fleet_target *target)
{
    const struct cluster *c = pl__cluster_find(fleet, cluster);
    struct pl_str prefix = pl__static_pods[POD_ETCD];
    const struct machine *m = c ? c->machines : NULL;

    if (fleet->stopping)
        return "the playground is ending";
    if (!pl__str_starts_with(pod, prefix) || port != 2379)
        return "nothing listens there: only port 2379 of etcd Pods can be reached";
    struct pl_str node = { pod.ptr + prefix.len, pod.len - prefix.len };
    while (m && !pl__str_equal(node, pl__str(m->node)))
        m = m->next;
    if (!m || !m->member || m->leave == ENDS || !m->pod_there[POD_ETCD])
        return "the Pod does not exist";
    if (m->faults.flags & (FAULT_KUBELET_DOWN | FAULT_NETWORK_CUT))
        return "error dialing backend: the kubelet does not answer";
    *target = (struct pl_fleet_target){ .port = fleet->client_port, .delay_ms = m->faults.slow_ms };
    memcpy(target->host, m->member->host, sizeof target->host);
    return NULL;
}

uint16_t pl__fleet_etcd_port(const struct pl_fleet *fleet)
{
    return fleet->client_port;
}

static void cluster_count(struct cluster *c)
{
    int32_t own = 0;
    bool settled = c->there && c->furnished && !c->deleting && c->due_ms != 0;

    c->running = 0;
    for (const struct machine *m = c->machines; m; m = m->next) {
        c->running += m->phase == MACHINE_RUNS && !m->deleting;
        settled &= m->phase == MACHINE_RUNS && !m->deleting;
        settled &= !m->member || m->member->state == MEMBER_VOTES;
        own += m->control_plane;
    }
    for (int i = 0; i < SETS_MAX && settled; i++) {
        const struct set *set = &c->sets[i];
        int32_t count = 0;
        for (const struct machine *m = c->machines; m; m = m->next)
            count += strcmp(m->set, set->name) == 0;
        settled &= !set->there || set->is_deployment || count == set->replicas;
    }
    c->settled = settled && c->kcp_there && own == c->kcp_replicas && c->kcp_initialized;
    c->counted = true;
}

struct pl_fleet_counts pl__fleet_counts(const struct pl_fleet *fleet)
{
    struct pl_fleet_counts counts = { .clusters = fleet->cluster_count,
                                      .processes = fleet->process_count,
                                      .settled =
                                          fleet->made_count == fleet->options.cluster_count };

    for (uint32_t i = 0; i < fleet->cluster_count; i++) {
        struct cluster *c = fleet->clusters[i];
        if (!c->counted)
            cluster_count(c);
        counts.machines += c->machine_count;
        counts.running += c->running;
        counts.settled &= c->settled;
    }
    return counts;
}
