/* controller/controller.c - events in, actions out. */
#include "controller/internal.h"

#include "base/secret.h"

enum {
    WAITERS_FIRST = 64,
    RECONCILES_PER_STEP = 64,  /* then the loop gets its turn */
    WRITES_IN_FLIGHT_MAX = 32, /* what waits costs memory; the API server is no faster for it */
    SYNC_PERIOD_S_DEFAULT = 600,
    ETCD_PERIOD_S_DEFAULT = 30,
    CLOCK_STEP_MS = 2000, /* what is less is drift */
};

/* --- memory ----------------------------------------------------------------------------------- */

void *pl__alloc(struct pl_controller *c, size_t size)
{
    return memset(pl__heap_alloc(c->options.allocator, size), 0, size);
}

void pl__free(struct pl_controller *c, void *p, size_t size)
{
    pl__heap_free(c->options.allocator, p, size);
}

char *pl__strdup(struct pl_controller *c, struct pl_str s)
{
    char *copy = pl__alloc(c, s.len + 1);

    if (s.len)
        memcpy(copy, s.ptr, s.len);
    return copy;
}

void pl__strfree(struct pl_controller *c, char **s)
{
    if (*s)
        pl__free(c, *s, strlen(*s) + 1);
    *s = NULL;
}

/* splitmix64: small, seeded, the same everywhere. */
uint64_t pl__random(struct pl_controller *c)
{
    uint64_t z = c->random += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint64_t pl__backoff_ms(struct pl_controller *c, uint32_t failures, uint64_t base_ms,
                        uint64_t max_ms)
{
    uint64_t delay = base_ms;

    for (uint32_t i = 0; i < failures && delay < max_ms; i++)
        delay *= 2;
    if (delay > max_ms)
        delay = max_ms;
    return delay + pl__random(c) % (delay + 1);
}

void pl__log(struct pl_controller *c, enum pl_log_level level, const char *message,
             const struct pl_log_pair *pairs, size_t pair_count)
{
    if (c->options.log)
        c->options.log(c->options.log_user, level, message, pairs, pair_count);
}

/* --- who waits for which answer ---------------------------------------------------------------- */

static struct waiter *waiter_slot(struct waiter *table, uint32_t capacity, uint64_t id)
{
    uint32_t at = (uint32_t)(id * 0x9e3779b97f4a7c15u >> 32) & (capacity - 1);

    while (table[at].id && table[at].id != id)
        at = (at + 1) & (capacity - 1);
    return &table[at];
}

static struct waiter *waiter_find(const struct pl_controller *c, uint64_t id)
{
    struct waiter *w = c->waiter_capacity ? waiter_slot(c->waiters, c->waiter_capacity, id) : NULL;
    return w && w->id ? w : NULL;
}

static void waiters_grow(struct pl_controller *c)
{
    uint32_t capacity = c->waiter_capacity ? 2 * c->waiter_capacity : WAITERS_FIRST;
    struct waiter *table = pl__alloc(c, capacity * sizeof *table);

    for (uint32_t i = 0; i < c->waiter_capacity; i++) {
        if (c->waiters[i].id)
            *waiter_slot(table, capacity, c->waiters[i].id) = c->waiters[i];
    }
    if (c->waiters)
        pl__free(c, c->waiters, c->waiter_capacity * sizeof *table);
    c->waiters = table;
    c->waiter_capacity = capacity;
}

static void waiter_add(struct pl_controller *c, struct waiter w)
{
    if (2 * (c->waiter_count + 1) > c->waiter_capacity)
        waiters_grow(c);
    *waiter_slot(c->waiters, c->waiter_capacity, w.id) = w;
    c->waiter_count++;
}

/* Takes the waiter out of the table, closing the gap that would hide those behind it. */
static struct waiter waiter_take(struct pl_controller *c, struct waiter *w)
{
    struct waiter taken = *w;
    uint32_t mask = c->waiter_capacity - 1;
    uint32_t at = (uint32_t)(w - c->waiters);

    *w = (struct waiter){ 0 };
    c->waiter_count--;
    for (at = (at + 1) & mask; c->waiters[at].id; at = (at + 1) & mask) {
        struct waiter moved = c->waiters[at];
        c->waiters[at] = (struct waiter){ 0 };
        *waiter_slot(c->waiters, c->waiter_capacity, moved.id) = moved;
    }
    return taken;
}

static void waiter_clear(struct pl_controller *c, struct waiter *w)
{
    if (w->context)
        pl__free(c, w->context, w->context_len + 1);
    w->context = NULL;
}

void pl__request_disown(struct pl_controller *c, const void *owner)
{
    for (uint32_t i = 0; i < c->waiter_capacity; i++) {
        struct waiter *w = &c->waiters[i];
        if (!w->id || w->owner != owner)
            continue;
        if (w->type == WAITER_WRITE || w->type == WAITER_ACT || w->type == WAITER_ETCD_ACT)
            c->writes_in_flight--;
        w->type = WAITER_NONE;
        w->owner = NULL;
    }
}

/* --- actions ------------------------------------------------------------------------------------ */

static struct pl_str keep_bytes(char **room, struct pl_str s)
{
    struct pl_str kept = { *room, s.len };

    if (s.len)
        memcpy(*room, s.ptr, s.len);
    (*room)[s.len] = '\0';
    *room += s.len + 1;
    return kept;
}

/* The bytes that keep_bytes() needs for these. */
static size_t kept_size(struct pl_str a, struct pl_str b)
{
    return a.len + 1 + b.len + 1;
}

/* The endpoints themselves come first: they alone have to be aligned. */
static const struct pl_etcd_endpoint *keep_endpoints(char **room, const struct pl_action *a)
{
    struct pl_etcd_endpoint *kept = (struct pl_etcd_endpoint *)(void *)*room;

    *room += a->endpoint_count * sizeof *kept;
    for (size_t i = 0; i < a->endpoint_count; i++)
        kept[i] = (struct pl_etcd_endpoint){ keep_bytes(room, a->endpoints[i].node),
                                             keep_bytes(room, a->endpoints[i].address) };
    return kept;
}

static void action_add(struct pl_controller *c, const struct pl_action *a)
{
    size_t size = offsetof(struct pl_action_node, bytes) + kept_size(a->path, a->body) +
                  kept_size(a->error, a->key) + a->endpoint_count * sizeof *a->endpoints;
    for (size_t i = 0; i < a->endpoint_count; i++)
        size += kept_size(a->endpoints[i].node, a->endpoints[i].address);
    struct pl_action_node *node = pl__alloc(c, size);
    char *room = node->bytes;

    node->size = size;
    node->action = *a;
    node->action.endpoints = keep_endpoints(&room, a);
    node->action.path = keep_bytes(&room, a->path);
    node->action.body = keep_bytes(&room, a->body);
    node->action.error = keep_bytes(&room, a->error);
    node->action.key = keep_bytes(&room, a->key);
    if (c->last_action)
        c->last_action->next = node;
    else
        c->first_action = node;
    c->last_action = node;
}

static void action_free(struct pl_controller *c, struct pl_action_node *node)
{
    if (!node)
        return;
    /* A kubeconfig, or a key. */
    if (node->action.type == ACTION_OPEN || node->action.type == ACTION_ETCD_TRUST)
        pl__secret_wipe(node->bytes, node->size - offsetof(struct pl_action_node, bytes));
    pl__free(c, node, node->size);
}

const struct pl_action *pl_controller_next_action(struct pl_controller *c)
{
    action_free(c, c->handed_out);
    c->handed_out = c->first_action;
    if (!c->handed_out)
        return NULL;
    c->first_action = c->handed_out->next;
    if (!c->first_action)
        c->last_action = NULL;
    return &c->handed_out->action;
}

/* A new id, and who waits for its answer. */
static uint64_t await_answer(struct pl_controller *c, enum pl_waiter_type waiter, void *owner,
                             struct pl_str context)
{
    struct waiter w = { .id = ++c->next_id, .type = waiter, .owner = owner };

    if (context.len) {
        w.context = pl__strdup(c, context);
        w.context_len = context.len;
    }
    waiter_add(c, w);
    return w.id;
}

uint64_t pl__request(struct pl_controller *c, const struct pl_request *r)
{
    uint64_t id = await_answer(c, r->waiter, r->owner, r->context);

    action_add(c, &(struct pl_action){ .type = r->type,
                                       .id = id,
                                       .server = r->server,
                                       .method = r->method,
                                       .path = r->path,
                                       .content_type = r->content_type,
                                       .body = r->body,
                                       .timeout_ms = r->timeout_ms });
    return id;
}

uint64_t pl__etcd_request(struct pl_controller *c, const struct pl_etcd_ask *ask)
{
    uint64_t id = await_answer(c, ask->waiter, ask->owner, ask->context);

    action_add(c, &(struct pl_action){ .type = ACTION_ETCD,
                                       .id = id,
                                       .server = ask->server,
                                       .call = ask->call,
                                       .endpoints = ask->endpoints,
                                       .endpoint_count = ask->endpoint_count,
                                       .member_id = ask->member_id });
    return id;
}

void pl__etcd_trust(struct pl_controller *c, uint32_t server, struct pl_str certificates,
                    struct pl_str key)
{
    action_add(c,
               &(struct pl_action){
                   .type = ACTION_ETCD_TRUST, .server = server, .body = certificates, .key = key });
}

bool pl__request_pending(const struct pl_controller *c, uint64_t id)
{
    return id && waiter_find(c, id);
}

void pl__request_cancel(struct pl_controller *c, uint64_t id)
{
    struct waiter *w = id ? waiter_find(c, id) : NULL;

    if (!w)
        return;
    struct waiter taken = waiter_take(c, w);
    waiter_clear(c, &taken);
    action_add(c, &(struct pl_action){ .type = ACTION_CANCEL, .id = id });
}

/* A number is never used again: an answer about a connection that was given up must not be taken for one
 * about the next. */
uint32_t pl__upstream_open(struct pl_controller *c, struct pl_str kubeconfig)
{
    if (++c->last_server == 0)
        c->last_server = 1; /* 0 is the management cluster */
    action_add(c, &(struct pl_action){
                      .type = ACTION_OPEN, .server = c->last_server, .body = kubeconfig });
    return c->last_server;
}

void pl__upstream_close(struct pl_controller *c, uint32_t server)
{
    action_add(c, &(struct pl_action){ .type = ACTION_CLOSE, .server = server });
}

void pl__stop(struct pl_controller *c, struct pl_str error)
{
    if (c->stopped)
        return;
    c->stopped = true;
    action_add(c, &(struct pl_action){ .type = ACTION_STOP, .error = error });
}

/* --- life --------------------------------------------------------------------------------------- */

struct pl_controller *pl_controller_new(const struct pl_controller_options *options,
                                        struct pl_now now)
{
    const struct pl_allocator *a = options->allocator;
    struct pl_controller *c = pl__heap_alloc(a, sizeof *c);

    memset(c, 0, sizeof *c);
    c->options = *options;
    c->random = options->seed;
    c->now = now;
    c->wall_ahead_ms = now.wall_ms - (int64_t)now.mono_ms;
    if (!c->options.grace_period_s)
        c->options.grace_period_s = GRACE_PERIOD_S_DEFAULT;
    if (!c->options.sync_period_s)
        c->options.sync_period_s = SYNC_PERIOD_S_DEFAULT;
    if (!c->options.etcd_period_s)
        c->options.etcd_period_s = ETCD_PERIOD_S_DEFAULT;
    pl__arena_init(&c->scratch, a, 0);
    pl__arena_init(&c->reading, a, 0);
    pl__world_init(c);
    if (options->leader_elect)
        pl__election_init(&c->election, &c->options, now);
    for (int i = 0; i < RESOURCE_MANAGEMENT_COUNT; i++)
        pl__informer_start(&c->world.informers[i], now);
    return c;
}

void pl_controller_free(struct pl_controller *c)
{
    const struct pl_allocator *a = c->options.allocator;

    pl__world_release(c);
    if (c->options.leader_elect)
        pl__election_release(&c->election);
    for (struct pl_action_node *node = c->first_action, *next; node; node = next) {
        next = node->next;
        action_free(c, node);
    }
    action_free(c, c->handed_out);
    for (uint32_t i = 0; i < c->waiter_capacity; i++)
        waiter_clear(c, &c->waiters[i]);
    if (c->waiters)
        pl__free(c, c->waiters, c->waiter_capacity * sizeof *c->waiters);
    pl__timers_release(c, &c->queue);
    pl__arena_release(&c->scratch);
    pl__arena_release(&c->reading);
    pl__heap_free(a, c, sizeof *c);
}

bool pl_controller_synced(const struct pl_controller *c)
{
    for (int i = 0; i < RESOURCE_MANAGEMENT_COUNT; i++) {
        if (!c->world.informers[i].synced)
            return false;
    }
    return true;
}

void pl_controller_connect(struct pl_controller *c, struct pl_str namespace_, struct pl_str cluster,
                           struct pl_now now)
{
    c->now = now;
    pl__arena_reset(&c->scratch);
    if (cluster.len) {
        struct pl_entry *e = pl__world_find(&c->world, namespace_, cluster);
        if (e && !e->remote.requested) {
            e->remote.requested = true;
            pl__remote_update(e, now);
        }
        return;
    }
    c->options.connect_on_request = false;
    for (struct pl_entry *e = c->world.first; e; e = e->next)
        pl__remote_update(e, now);
}

size_t pl_controller_pending(const struct pl_controller *c)
{
    size_t pending = 0;

    for (const struct pl_entry *e = c->world.first; e; e = e->next)
        pending += pl__remote_pending(e) || pl__remote_etcd_pending(e);
    return pending;
}

uint64_t pl_controller_changes(const struct pl_controller *c)
{
    return c->changes;
}

bool pl_controller_is_leader(const struct pl_controller *c)
{
    return !c->options.leader_elect || pl__election_is_leader(&c->election, c->now);
}

bool pl_controller_finished(const struct pl_controller *c)
{
    return c->stopping && c->writes_in_flight == 0 &&
           (!c->options.leader_elect || pl__election_finished(&c->election));
}

/* --- stepping ----------------------------------------------------------------------------------- */

static void election_answer(struct pl_controller *c, const struct pl_event *e)
{
    int status = 0;

    pl__election_answer(&c->election, e, c->now, &c->scratch);
    const char *problem = pl__election_problem(&c->election, &status);
    if (!problem)
        return;
    PL_LOG(c, PL_LOG_INFO, "Leader election failed, will try again", { "error", pl__str(problem) });
    /* Before anybody led, a refusal is a mistake in the setup that waiting will not mend. */
    if (status == 403 && !pl__election_is_leader(&c->election, c->now))
        pl__stop(c,
                 pl__str_format(&c->scratch,
                                "missing permission: %s; grant it with the leader-election-role in "
                                "deploy/rbac",
                                problem));
}

static void answer(struct pl_controller *c, const struct pl_event *e)
{
    struct waiter *found = waiter_find(c, e->id);

    if (!found)
        return; /* cancelled, or its server closed */
    struct waiter w = waiter_take(c, found);
    switch (w.type) {
    case WAITER_INFORMER:
        pl__informer_answer(w.owner, e, c->now);
        break;
    case WAITER_PROBE:
        pl__remote_probe_answer(w.owner, e, c->now);
        break;
    case WAITER_WRITE:
        pl__write_answer(c, w.owner, e, (struct pl_str){ w.context, w.context_len }, c->now);
        break;
    case WAITER_ELECTION:
        election_answer(c, e);
        break;
    case WAITER_ETCD_SECRET:
        pl__remote_etcd_secret_answer(w.owner, e, c->now);
        break;
    case WAITER_ETCD:
        pl__remote_etcd_answer(w.owner, e, c->now);
        break;
    case WAITER_ACT:
        pl__act_answer(c, w.owner, e);
        break;
    case WAITER_ETCD_ACT:
        pl__act_etcd_answer(c, w.owner, e->etcd);
        break;
    case WAITER_EVENT: /* Kubernetes Events are best effort */
    case WAITER_NONE:
        break;
    }
    waiter_clear(c, &w);
}

static void bytes(struct pl_controller *c, const struct pl_event *e)
{
    struct waiter *w = waiter_find(c, e->id);

    if (w && w->type == WAITER_INFORMER)
        pl__informer_bytes(w->owner, e->body, c->now);
}

static void open_failed(struct pl_controller *c, const struct pl_event *e)
{
    for (struct pl_entry *entry = c->world.first; entry && e->server; entry = entry->next) {
        if (entry->remote.server == e->server) {
            pl__remote_open_failed(entry, e->error, c->now);
            return;
        }
    }
}

static void shutdown(struct pl_controller *c)
{
    c->stopping = true;
    for (int i = 0; i < RESOURCE_MANAGEMENT_COUNT; i++)
        pl__informer_stop(&c->world.informers[i]);
    for (struct pl_entry *e = c->world.first; e; e = e->next)
        pl__remote_leave(e);
    while (c->queue.count)
        pl__queue_remove(c, pl__queue_first(c));
}

static void elect(struct pl_controller *c)
{
    struct pl_action a;

    if (!c->options.leader_elect)
        return;
    if (c->stopping && c->writes_in_flight == 0)
        pl__election_resign(&c->election);
    while (pl__election_next(&c->election, c->now, &c->scratch, &a))
        pl__request(c, &(struct pl_request){ .type = ACTION_REQUEST,
                                             .method = a.method,
                                             .path = a.path,
                                             .content_type = a.content_type,
                                             .body = a.body,
                                             .timeout_ms = a.timeout_ms,
                                             .waiter = WAITER_ELECTION });
    if (!c->stopping && pl__election_lost(&c->election, c->now))
        pl__stop(c,
                 PL_STR(PL_ELECTION_LOST
                        ": the lease could not be renewed in time, or another instance holds it"));
}

static void remotes_tick(struct pl_controller *c)
{
    struct pl_timer *first;

    while ((first = pl__timers_first(&c->world.timers)) && first->due_ms <= c->now.mono_ms)
        pl__remote_tick((struct pl_entry *)(void *)first, c->now);
}

/* With many writes on their way the next objects wait for an answer, each of which steps again. */
static bool has_room_to_write(const struct pl_controller *c)
{
    return c->writes_in_flight < WRITES_IN_FLIGHT_MAX;
}

static void reconcile_due(struct pl_controller *c)
{
    struct pl_work *w;

    if (c->stopping || c->stopped || !pl_controller_synced(c))
        return;
    for (int i = 0; i < RECONCILES_PER_STEP && has_room_to_write(c) && (w = pl__queue_first(c)) &&
                    w->timer.due_ms <= c->now.mono_ms;
         i++) {
        pl__queue_remove(c, w);
        if (w->in_flight) {
            w->again = true;
            continue;
        }
        pl__arena_reset(&c->scratch);
        pl__reconcile(c, w, c->now);
    }
}

/* Everybody is looked at again when this instance begins to lead: until then it wrote nothing. */
static void leadership_check(struct pl_controller *c, bool led)
{
    if (led || !pl_controller_is_leader(c) || !pl_controller_synced(c))
        return;
    PL_LOG(c, PL_LOG_INFO, "Became the leader", { "identity", pl__str(c->options.identity) });
    for (struct pl_entry *e = c->world.first; e; e = e->next)
        pl__wake_entry(c, e, c->now);
}

/* The wall clock was set, or the machine slept. How long ago something happened is the same as before:
 * what is remembered by the wall clock moves along, and nobody's grace period ends early or late. */
static void clock_check(struct pl_controller *c, struct pl_now now)
{
    int64_t ahead = now.wall_ms - (int64_t)now.mono_ms, moved = ahead - c->wall_ahead_ms;

    c->wall_ahead_ms = ahead;
    if (moved > -CLOCK_STEP_MS && moved < CLOCK_STEP_MS)
        return;
    PL_LOG(c, PL_LOG_INFO, "The clock was set",
           { "seconds", pl__str_format(&c->scratch, "%lld", (long long)moved / 1000) });
    for (struct pl_entry *e = c->world.first; e; e = e->next) {
        pl__remote_clock_moved(e, moved);
        pl__wake_entry(c, e, now);
    }
}

void pl_controller_step(struct pl_controller *c, const struct pl_event *event, struct pl_now now)
{
    bool led = pl_controller_is_leader(c);

    c->now = now;
    clock_check(c, now);
    pl__arena_reset(&c->scratch);
    switch (event->type) {
    case EVENT_ANSWER:
    case EVENT_ETCD:
        answer(c, event);
        break;
    case EVENT_BYTES:
        bytes(c, event);
        break;
    case EVENT_OPEN_FAILED:
        open_failed(c, event);
        break;
    case EVENT_SHUTDOWN:
        shutdown(c);
        break;
    case EVENT_TICK:
        if (!c->stopping) {
            for (int i = 0; i < RESOURCE_MANAGEMENT_COUNT; i++)
                pl__informer_tick(&c->world.informers[i], now);
            remotes_tick(c);
        }
        break;
    }
    elect(c);
    leadership_check(c, led);
    reconcile_due(c);
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t pl_controller_wake_at_ms(const struct pl_controller *c)
{
    uint64_t at = UINT64_MAX;

    if (c->options.leader_elect)
        at = pl__election_due_ms(&c->election);
    if (c->stopping)
        return at;
    for (int i = 0; i < RESOURCE_MANAGEMENT_COUNT; i++)
        at = sooner(at, pl__informer_due_ms(&c->world.informers[i]));
    if (c->world.timers.count)
        at = sooner(at, pl__timers_first(&c->world.timers)->due_ms);
    if (c->queue.count && !c->stopped && pl_controller_synced(c) && has_room_to_write(c))
        at = sooner(at, pl__timers_first(&c->queue)->due_ms);
    return at;
}
