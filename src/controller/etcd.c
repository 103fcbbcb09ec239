/* controller/etcd.c - the etcd of a workload cluster: when to ask it, whom, and what it said.
 *
 * Only managed etcd is asked, while the connection is up and some Machine with a Node can be asked through.
 * One thing at a time:
 *
 *            due, no CA or an old one            answer: the CA is handed out
 *   WAITING -------------------------> SECRET ------------------------------> OBSERVING
 *      ^  \__________________________________________________________________^   |
 *      |                          due, the CA is fresh                           |
 *      +-------------------------------------------------------------------------+
 *          answer, or two minutes without one: the view is replaced
 *
 * Due is 100 ms after the first change of a Node, a Pod or a control plane Machine, but not within two
 * seconds of the last look, for reading alarms is a write to etcd's log; without changes every 30 s.
 *
 * The CA's key mints client certificates for all of etcd. So it is not watched and not kept: it is read
 * when needed, into memory that is wiped, and handed out. What was seen belongs to one connection; with
 * the next one everything starts from nothing. */
#include "controller/internal.h"

#include <stdlib.h>

#include "base/base64.h"
#include "base/pack.h"
#include "base/secret.h"

enum {
    COALESCE_MS = 100,
    SPACING_MS = 2000,
    SPREAD_MS = 5, /* for each cluster, at a start: two handshakes and a new key are work ... */
    SPREAD_MS_MAX = 3000, /* ... that must not come in one turn of the loop for all of them */
    FRESH_MS = 10 * 1000, /* what is older is asked for again before anything is done by it */
    SILENCE_MS =
        2 * 60 * 1000, /* the client has deadlines of its own; this is for when they fail */
    SECRET_TIMEOUT_MS = 10 * 1000,
    SECRET_AGAIN_MS = 60 * 1000, /* not sooner, though etcd does not trust what it held */
    SECRET_PERIOD_MS = 12 * 60 * 60 * 1000, /* a rotated CA is noticed by then at the latest */
    SECRET_BACKOFF_MS = 1000,
    SECRET_BACKOFF_MS_MAX = 60 * 1000,
    SECRET_FAILED_MAX = 3, /* in passing, until that is an answer */
    STATUS_ERRORS_MAX = 64,
    NAME_BYTES_MAX = 253, /* of a member; no Node has a longer one */
    ALARMS_MAX = 2 * CONTROL_PLANE_MACHINES_MAX,
};

static void due_set(struct pl_entry *e, uint64_t due_ms)
{
    e->remote.etcd.due_ms = due_ms;
    pl__remote_timer_update(e);
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static struct pl_str cluster_label(struct pl_entry *e)
{
    return pl__str_format(&e->controller->scratch, "%s/%s", e->namespace_, e->name);
}

/* --- the view ----------------------------------------------------------------------------------- */

static void view_drop(struct pl_entry *e)
{
    struct pl_remote_etcd *r = &e->remote.etcd;

    pl__pack_free(r->view, e->controller->options.allocator, r->view_size);
    r->view = NULL;
}

static bool same_members(const struct pl_etcd_view *a, const struct pl_etcd_view *b)
{
    if (a->members.present != b->members.present || a->members.count != b->members.count)
        return false;
    for (uint32_t i = 0; i < a->members.count; i++) {
        const struct pl_etcd_member *x = &a->members.items[i], *y = &b->members.items[i];
        if (x->id != y->id || x->is_learner != y->is_learner || !pl__str_equal(x->name, y->name))
            return false;
    }
    return true;
}

static bool same_alarms(const struct pl_etcd_view *a, const struct pl_etcd_view *b)
{
    if (a->alarms.present != b->alarms.present || a->alarms.count != b->alarms.count)
        return false;
    for (uint32_t i = 0; i < a->alarms.count; i++) {
        const struct pl_etcd_alarm *x = &a->alarms.items[i], *y = &b->alarms.items[i];
        if (x->member_id != y->member_id || !pl__str_equal(x->alarm, y->alarm))
            return false;
    }
    return true;
}

static bool same_errors(const struct pl_etcd_view *a, const struct pl_etcd_view *b)
{
    if (a->errors.count != b->errors.count)
        return false;
    for (uint32_t i = 0; i < a->errors.count; i++) {
        if (!pl__str_equal(a->errors.items[i], b->errors.items[i]))
            return false;
    }
    return true;
}

static bool same_view(const struct pl_etcd_view *a, const struct pl_etcd_view *b)
{
    return a->leader == b->leader && pl__str_equal(a->connect_error, b->connect_error) &&
           pl__str_equal(a->endpoint, b->endpoint) &&
           pl__str_equal(a->members_error, b->members_error) &&
           pl__str_equal(a->alarms_error, b->alarms_error) && same_members(a, b) &&
           same_alarms(a, b) && same_errors(a, b);
}

/* Takes what was seen in place of what was known. Only a difference wakes anybody. */
static void view_set(struct pl_entry *e, const struct pl_etcd_view *view, struct pl_now now)
{
    struct pl_controller *c = e->controller;
    struct pl_remote_etcd *r = &e->remote.etcd;

    r->observed_wall_ms = now.wall_ms;
    if (r->view && same_view(r->view, view))
        return;
    if (view->connect_error.len)
        PL_LOG(c, PL_LOG_INFO, "Asking etcd failed, will try again",
               { "Cluster", cluster_label(e) }, { "error", view->connect_error });
    else
        PL_LOG(c, PL_LOG_DEBUG, "Another answer from etcd", { "Cluster", cluster_label(e) },
               { "endpoint", view->endpoint });
    view_drop(e);
    r->view = pl__pack(&pl__etcd_view_shape, view, c->options.allocator, &r->view_size);
    pl__wake_entry(c, e, now);
}

static void failure_set(struct pl_entry *e, struct pl_str error, struct pl_now now)
{
    struct pl_etcd_view view = { .present = true,
                                 .connect_error = pl__text_cut(error, ERROR_BYTES_MAX) };
    view_set(e, &view, now);
}

static void status_errors_take(const struct pl_etcd_answer *a, struct pl_arena *arena,
                               struct pl_etcd_view *view)
{
    size_t count = a->error_count < STATUS_ERRORS_MAX ? a->error_count : STATUS_ERRORS_MAX;

    view->errors.items = PL_NEW(arena, struct pl_str, count);
    view->errors.count = (uint32_t)count;
    view->errors.present = true;
    for (size_t i = 0; i < count; i++)
        view->errors.items[i] = pl__text_cut(a->errors[i], ERROR_BYTES_MAX);
}

/* A list that is too long is as good as none: half of it would name members as missing that are not. */
static void members_take(const struct pl_etcd_answer *a, struct pl_arena *arena,
                         struct pl_etcd_view *view)
{
    view->members_error = pl__text_cut(a->members_error, ERROR_BYTES_MAX);
    if (!view->members_error.len && a->member_count > CONTROL_PLANE_MACHINES_MAX)
        view->members_error =
            pl__str_format(arena, "more than %d members", CONTROL_PLANE_MACHINES_MAX);
    if (view->members_error.len)
        return;
    view->members.items = PL_NEW(arena, struct pl_etcd_member, a->member_count);
    view->members.count = (uint32_t)a->member_count;
    view->members.present = true;
    for (size_t i = 0; i < a->member_count; i++)
        view->members.items[i] =
            (struct pl_etcd_member){ .id = a->members[i].id,
                                     .name = pl__text_cut(a->members[i].name, NAME_BYTES_MAX),
                                     .is_learner = a->members[i].is_learner };
}

static void alarms_take(const struct pl_etcd_answer *a, struct pl_arena *arena,
                        struct pl_etcd_view *view)
{
    view->alarms_error = pl__text_cut(a->alarms_error, ERROR_BYTES_MAX);
    if (!view->alarms_error.len && a->alarm_count > ALARMS_MAX)
        view->alarms_error = pl__str_format(arena, "more than %d alarms", ALARMS_MAX);
    if (view->alarms_error.len)
        return;
    view->alarms.items = PL_NEW(arena, struct pl_etcd_alarm, a->alarm_count);
    view->alarms.count = (uint32_t)a->alarm_count;
    view->alarms.present = true;
    for (size_t i = 0; i < a->alarm_count; i++)
        view->alarms.items[i] =
            (struct pl_etcd_alarm){ .member_id = a->alarms[i].member_id,
                                    .alarm = pl__etcd_alarm_name(arena, a->alarms[i].alarm) };
}

static void answer_take(struct pl_entry *e, const struct pl_etcd_answer *a, struct pl_now now)
{
    struct pl_controller *c = e->controller;
    struct pl_remote_etcd *r = &e->remote.etcd;
    struct pl_etcd_view view = { .present = true, .leader = a->leader };

    view.endpoint =
        pl__str_format(&c->scratch, "etcd-%.*s", PL_STR_ARG(pl__text_cut(a->node, NAME_BYTES_MAX)));
    status_errors_take(a, &c->scratch, &view);
    members_take(a, &c->scratch, &view);
    alarms_take(a, &c->scratch, &view);
    r->seen_ms = r->looked_ms;
    r->answered_ms = now.mono_ms;
    pl__strfree(c, &r->answered_by);
    r->answered_by = pl__strdup(c, pl__text_cut(a->node, NAME_BYTES_MAX));
    view_set(e, &view, now);
}

/* --- whom to ask -------------------------------------------------------------------------------- */

static bool is_managed(const struct pl_entry *e)
{
    for (const struct pl_item *i = e->items[RESOURCE_KCPS]; i; i = i->next_in_entry) {
        if (((const struct pl_kcp *)i->object)->etcd_managed)
            return true;
    }
    return false;
}

static bool is_member_of_managed(const struct pl_entry *e, const struct pl_machine *m)
{
    const struct pl_owner_reference *owner = pl__controller_of(&m->meta);

    for (const struct pl_item *i = e->items[RESOURCE_KCPS]; owner && i; i = i->next_in_entry) {
        const struct pl_kcp *kcp = i->object;
        if (kcp->etcd_managed && pl__owner_is(owner, PL_STR("KubeadmControlPlane"), &kcp->meta))
            return true;
    }
    return false;
}

struct candidate {
    struct pl_etcd_endpoint endpoint;
    int rank; /* the lower the sooner */
};

static int by_rank(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return pl__str_compare(x->endpoint.node, y->endpoint.node);
}

/* Who answered last has a connection that is warm; a member that was healthy likely still is. */
static int rank_of(const struct pl_entry *e, const struct pl_machine *m)
{
    const struct pl_condition *member = pl__condition_find(&m->conditions, COND_ETCD_MEMBER);
    const char *answered_by = e->remote.etcd.answered_by;

    if (answered_by && pl__str_equal(m->node_name, pl__str(answered_by)))
        return 0;
    return member && member->status == PL_STATUS_TRUE ? 1 : 2;
}

/* The Node that a Machine's member can be asked through, or NULL. */
static const struct pl_node *node_of(const struct pl_entry *e, const struct pl_machine *m)
{
    if (!m->meta.labels.control_plane || m->meta.deleted_ms || !m->node_name.len ||
        !is_member_of_managed(e, m))
        return NULL;
    const struct pl_item *item = pl__store_find(&e->remote.nodes, PL_STR(""), m->node_name);
    return item ? item->object : NULL;
}

static size_t endpoints_find(struct pl_entry *e, struct pl_etcd_endpoint **endpoints)
{
    struct pl_arena *arena = &e->controller->scratch;
    size_t room = 0, count = 0;

    for (const struct pl_item *i = e->items[RESOURCE_MACHINES]; i; i = i->next_in_entry)
        room++;
    if (room > CONTROL_PLANE_MACHINES_MAX)
        room = CONTROL_PLANE_MACHINES_MAX;
    struct candidate *found = PL_NEW(arena, struct candidate, room);
    for (const struct pl_item *i = e->items[RESOURCE_MACHINES]; i && count < room;
         i = i->next_in_entry) {
        const struct pl_machine *m = i->object;
        const struct pl_node *node = node_of(e, m);
        if (node)
            found[count++] = (struct candidate){ { m->node_name, node->address }, rank_of(e, m) };
    }
    if (count > 1)
        qsort(found, count, sizeof *found, by_rank);
    *endpoints = PL_NEW(arena, struct pl_etcd_endpoint, count);
    for (size_t i = 0; i < count; i++)
        (*endpoints)[i] = found[i].endpoint;
    return count;
}

/* --- the CA --------------------------------------------------------------------------------------- */

/* Keys with dots in them: literal, not paths. Base64. */
struct ca_data {
    struct pl_str certificates, key;
};
static const struct pl_field ca_data_fields[] = {
    PL_FIELD("tls.crt", F_STR, struct ca_data, certificates),
    PL_FIELD("tls.key", F_STR, struct ca_data, key),
};
static PL_SHAPE(ca_data_shape, struct ca_data, ca_data_fields);

struct ca_secret {
    struct pl_meta meta;
    struct ca_data data;
};
static const struct pl_field ca_secret_fields[] = {
    PL_FIELD_SHAPE("metadata", F_OBJECT, struct ca_secret, meta, &pl__meta_shape),
    PL_FIELD_SHAPE("data", F_MAP, struct ca_secret, data, &ca_data_shape),
};
static PL_SHAPE(ca_secret_shape, struct ca_secret, ca_secret_fields);

static bool wants_secret(const struct pl_remote_etcd *r, struct pl_now now)
{
    return !r->trusted_ms || r->renew || now.mono_ms - r->trusted_ms >= SECRET_PERIOD_MS;
}

static void secret_read(struct pl_entry *e)
{
    struct pl_controller *c = e->controller;

    due_set(e, UINT64_MAX);
    e->remote.etcd.secret_id = pl__request(
        c, &(struct pl_request){ .type = ACTION_REQUEST,
                                 .method = "GET",
                                 .path = pl__str_format(&c->scratch,
                                                        "/api/v1/namespaces/%s/secrets/%s-etcd",
                                                        e->namespace_, e->name),
                                 .timeout_ms = SECRET_TIMEOUT_MS,
                                 .waiter = WAITER_ETCD_SECRET,
                                 .owner = e });
}

/* Hands the CA out. NULL, or what is wrong with the Secret. Everything that was decoded is in `wiped`. */
static const char *trust_hand_out(struct pl_entry *e, struct pl_str body, struct pl_arena *wiped)
{
    struct ca_secret secret = { .data = { { 0 }, { 0 } } };
    struct pl_str certificates, key;
    struct pl_json j;

    pl__json_init(&j, body, PL_STR("Secret"), wiped, 0, NULL);
    if (pl__json_decode(&j, &ca_secret_shape, &secret) < 0)
        return "what the API server answered cannot be read";
    e->remote.etcd.secret_version = secret.meta.resource_version;
    if (!secret.data.certificates.len)
        return "no tls.crt";
    if (!secret.data.key.len)
        return "no tls.key";
    if (pl__base64_decode(wiped, secret.data.certificates, &certificates) < 0)
        return "tls.crt is not base64";
    if (pl__base64_decode(wiped, secret.data.key, &key) < 0)
        return "tls.key is not base64";
    pl__etcd_trust(e->controller, e->remote.server, certificates, key);
    return NULL;
}

/* The same for an answer of any kind. Empty: the CA was handed out. */
static struct pl_str secret_take(struct pl_entry *e, const struct pl_event *event)
{
    struct pl_arena *scratch = &e->controller->scratch;
    struct pl_arena wiped;

    if (event->status == 404)
        return PL_STR("not found");
    if (event->status == 403)
        return PL_STR("forbidden; grant get of Secrets with the roles in deploy/rbac");
    if (event->status == 0)
        return event->error.len ? event->error : PL_STR("no answer");
    if (event->status != 200)
        return pl__str_format(scratch, "the API server answered %d", event->status);
    pl__arena_init(&wiped, &pl__secret_allocator, 0);
    const char *problem = trust_hand_out(e, event->body, &wiped);
    pl__arena_release(&wiped);
    return pl__str(problem ? problem : "");
}

static void look(struct pl_entry *e, struct pl_now now);
static void act_lost(struct pl_entry *e);

void pl__remote_etcd_secret_answer(struct pl_entry *e, const struct pl_event *event,
                                   struct pl_now now)
{
    struct pl_controller *c = e->controller;
    struct pl_remote_etcd *r = &e->remote.etcd;
    struct pl_str problem = secret_take(e, event);
    bool passing = event->status == 0 || event->status == 429 || event->status >= 500;

    r->secret_id = 0;
    if (!problem.len) {
        r->trusted_ms = now.mono_ms;
        r->renew = false;
        r->secret_failures = 0;
        r->secret_due_ms = now.mono_ms + SECRET_AGAIN_MS;
        look(e, now);
        return;
    }
    r->secret_due_ms = now.mono_ms + pl__backoff_ms(c, r->secret_failures, SECRET_BACKOFF_MS,
                                                    SECRET_BACKOFF_MS_MAX);
    r->secret_failures++;
    problem = pl__str_format(&c->scratch, "Secret %s/%s-etcd: %.*s", e->namespace_, e->name,
                             PL_STR_ARG(problem));
    PL_LOG(c, PL_LOG_DEBUG, "The CA of an etcd could not be read, will try again",
           { "Cluster", cluster_label(e) }, { "error", problem });
    /* What was handed out before may still do. */
    if (!r->trusted_ms && (!passing || r->secret_failures >= SECRET_FAILED_MAX))
        failure_set(e, problem, now);
    look(e, now);
}

void pl__remote_etcd_secret_changed(struct pl_entry *e, uint64_t version, struct pl_now now)
{
    struct pl_remote_etcd *r = &e->remote.etcd;

    if ((version && version == r->secret_version) || (!r->trusted_ms && !r->secret_failures))
        return; /* what was read; or it will be read anyway, when it is needed */
    pl__request_cancel(e->controller, r->secret_id); /* its answer may be the one before */
    r->secret_id = 0;
    r->secret_due_ms = now.mono_ms;
    r->renew = true;
    pl__remote_etcd_changed(e, now);
}

/* --- looking -------------------------------------------------------------------------------------- */

static void observation_send(struct pl_entry *e, const struct pl_etcd_endpoint *endpoints,
                             size_t count, struct pl_now now)
{
    struct pl_controller *c = e->controller;
    struct pl_remote_etcd *r = &e->remote.etcd;

    c->counts.etcd_observations++;
    r->looked_ms = now.mono_ms;
    r->again = false;
    r->call_id = pl__etcd_request(c, &(struct pl_etcd_ask){ .server = e->remote.server,
                                                            .call = ETCD_OBSERVE,
                                                            .endpoints = endpoints,
                                                            .endpoint_count = count,
                                                            .waiter = WAITER_ETCD,
                                                            .owner = e });
    due_set(e, now.mono_ms + SILENCE_MS);
}

/* Nothing to ask until something changes; what was seen is not true of what is there now. */
static void rest(struct pl_entry *e, struct pl_now now)
{
    struct pl_remote_etcd *r = &e->remote.etcd;
    bool news = r->view || !r->nobody || r->held;

    due_set(e, UINT64_MAX);
    r->nobody = true;
    r->held = false;
    if (r->view)
        view_drop(e);
    if (news) /* told once: whoever is woken may ask for a look again */
        pl__wake_entry(e->controller, e, now);
}

static void look(struct pl_entry *e, struct pl_now now)
{
    struct pl_remote_etcd *r = &e->remote.etcd;
    struct pl_etcd_endpoint *endpoints = NULL;
    size_t count = 0;

    if (e->remote.state == REMOTE_UP && e->remote.nodes_informer.synced)
        count = endpoints_find(e, &endpoints);
    r->nobody &= count == 0;
    if (!count)
        rest(e, now);
    else if (wants_secret(r, now) && now.mono_ms >= r->secret_due_ms)
        secret_read(e);
    else if (!r->trusted_ms)
        due_set(e, r->secret_due_ms);
    else
        observation_send(e, endpoints, count, now);
}

/* One cluster alone is asked at once. */
static uint64_t first_look_delay_ms(struct pl_controller *c)
{
    uint64_t spread = (uint64_t)(c->world.entry_count - 1) * SPREAD_MS;

    return spread ? pl__random(c) % (spread < SPREAD_MS_MAX ? spread : SPREAD_MS_MAX) : 0;
}

void pl__remote_etcd_changed(struct pl_entry *e, struct pl_now now)
{
    struct pl_remote_etcd *r = &e->remote.etcd;

    if (e->remote.state != REMOTE_UP || !e->remote.nodes_informer.synced)
        return;
    if (r->call_id || r->act_id) {
        r->again = true;
        return;
    }
    if (r->secret_id || (!r->view && !is_managed(e)))
        return;
    /* The first look of a connection is waited for: at once. */
    uint64_t due = r->looked_ms ? later(now.mono_ms + COALESCE_MS, r->looked_ms + SPACING_MS)
                                : now.mono_ms + first_look_delay_ms(e->controller);
    if (due < r->due_ms)
        due_set(e, due);
}

static uint64_t period_ms(const struct pl_entry *e)
{
    return e->controller->options.etcd_period_s * 1000ull;
}

void pl__remote_etcd_tick(struct pl_entry *e, struct pl_now now)
{
    struct pl_remote_etcd *r = &e->remote.etcd;

    if (now.mono_ms < r->due_ms)
        return;
    if (r->act_id) {
        act_lost(e);
        return;
    }
    if (!r->call_id) {
        look(e, now);
        return;
    }
    pl__request_cancel(e->controller, r->call_id);
    r->call_id = 0;
    e->controller->counts.etcd_failures++;
    failure_set(e, PL_STR("no answer from etcd for more than 2 minutes"), now);
    due_set(e, now.mono_ms + period_ms(e));
}

/* When to look again after an answer. */
static uint64_t next_look_ms(const struct pl_entry *e, struct pl_now now)
{
    const struct pl_remote_etcd *r = &e->remote.etcd;
    uint64_t soonest = later(now.mono_ms + COALESCE_MS, r->looked_ms + SPACING_MS);
    uint64_t next = later(r->looked_ms + period_ms(e), soonest);

    if (r->again)
        return soonest;
    if (r->renew && later(r->secret_due_ms, soonest) < next)
        return later(r->secret_due_ms, soonest);
    return next;
}

void pl__remote_etcd_answer(struct pl_entry *e, const struct pl_event *event, struct pl_now now)
{
    struct pl_remote_etcd *r = &e->remote.etcd;
    const struct pl_etcd_answer none = { .failure = ETCD_UNREACHABLE, .error = event->error };
    const struct pl_etcd_answer *a = event->etcd ? event->etcd : &none;

    r->call_id = 0;
    r->renew |= a->failure == ETCD_UNTRUSTED;
    e->controller->counts.etcd_failures += a->failure != ETCD_OK;
    if (a->failure == ETCD_OK)
        answer_take(e, a, now);
    else if (a->failure != ETCD_CANCELLED) /* that says nothing of etcd */
        failure_set(e, a->error.len ? a->error : PL_STR("no answer from etcd"), now);
    due_set(e, next_look_ms(e, now));
    if (r->awaited) {
        r->awaited = false;
        pl__wake_entry(e->controller, e, now);
    }
}

/* --- acting ------------------------------------------------------------------------------------- */

bool pl__remote_etcd_fresh(const struct pl_entry *e, struct pl_now now)
{
    const struct pl_remote_etcd *r = &e->remote.etcd;

    return r->view && r->seen_ms > r->acted_ms && r->seen_ms >= r->changed_ms &&
           now.mono_ms - r->answered_ms <= FRESH_MS;
}

void pl__remote_etcd_want(struct pl_entry *e, struct pl_now now)
{
    e->remote.etcd.awaited = true;
    pl__remote_etcd_changed(e, now);
}

void pl__remote_etcd_acted(struct pl_entry *e, struct pl_now now)
{
    e->remote.etcd.acted_ms = now.mono_ms;
    pl__remote_etcd_changed(e, now);
}

bool pl__remote_etcd_act(struct pl_entry *e, struct pl_work *actor, enum pl_etcd_call call,
                         const struct pl_str *nodes, size_t node_count, uint64_t member_id,
                         struct pl_now now)
{
    struct pl_remote_etcd *r = &e->remote.etcd;
    struct pl_arena *arena = &e->controller->scratch;
    struct pl_etcd_endpoint *endpoints = PL_NEW(arena, struct pl_etcd_endpoint, node_count);

    if (r->call_id || r->act_id || r->secret_id || !r->trusted_ms || e->remote.state != REMOTE_UP) {
        r->awaited = true;
        return false;
    }
    for (size_t i = 0; i < node_count; i++) {
        const struct pl_item *item = pl__store_find(&e->remote.nodes, PL_STR(""), nodes[i]);
        const struct pl_node *node = item ? item->object : NULL;
        endpoints[i] =
            (struct pl_etcd_endpoint){ nodes[i], node ? node->address : (struct pl_str){ "", 0 } };
    }
    r->actor = actor;
    r->act_id = pl__etcd_request(e->controller, &(struct pl_etcd_ask){ .server = e->remote.server,
                                                                       .call = call,
                                                                       .endpoints = endpoints,
                                                                       .endpoint_count = node_count,
                                                                       .member_id = member_id,
                                                                       .waiter = WAITER_ETCD_ACT,
                                                                       .owner = actor });
    due_set(e, now.mono_ms + SILENCE_MS);
    return true;
}

void pl__remote_etcd_act_over(struct pl_entry *e, struct pl_now now)
{
    struct pl_remote_etcd *r = &e->remote.etcd;

    r->act_id = 0;
    r->actor = NULL;
    due_set(e, later(now.mono_ms + COALESCE_MS, r->looked_ms + SPACING_MS));
    pl__remote_etcd_acted(e, now);
}

/* It may or may not have happened: the next look tells. */
static void act_lost(struct pl_entry *e)
{
    struct pl_work *actor = e->remote.etcd.actor;

    pl__request_cancel(e->controller, e->remote.etcd.act_id);
    pl__act_etcd_answer(e->controller, actor,
                        &(struct pl_etcd_answer){ .failure = ETCD_TIMEOUT,
                                                  .error = PL_STR("no answer from etcd") });
}

/* --- what others want to know ----------------------------------------------------------------- */

void pl__remote_etcd_forget(struct pl_entry *e)
{
    struct pl_remote_etcd *r = &e->remote.etcd;

    uint64_t acted_ms = r->acted_ms;

    if (r->act_id)
        act_lost(e);
    pl__request_cancel(e->controller, r->call_id);
    pl__request_cancel(e->controller, r->secret_id);
    view_drop(e);
    pl__strfree(e->controller, &r->answered_by);
    *r = (struct pl_remote_etcd){ .due_ms = UINT64_MAX, .acted_ms = acted_ms };
}

bool pl__remote_etcd_pending(const struct pl_entry *e)
{
    const struct pl_remote_etcd *r = &e->remote.etcd;

    return e->remote.state == REMOTE_UP && !r->view &&
           (r->due_ms != UINT64_MAX || r->call_id || r->secret_id);
}

void pl__remote_etcd_observe(const struct pl_entry *e, struct pl_etcd_view *view)
{
    const struct pl_remote_etcd *r = &e->remote.etcd;

    if (!r->view)
        return;
    *view = *r->view;
    view->observed_ms = r->observed_wall_ms;
}

int pl__remote_etcd_tolerance(const struct pl_entry *e)
{
    const struct pl_etcd_view *view = e->remote.etcd.view;
    int voters = 0;

    if (!view || !view->members.count)
        return -1;
    for (uint32_t i = 0; i < view->members.count; i++)
        voters += !view->members.items[i].is_learner;
    return voters ? voters - (voters / 2 + 1) : -1;
}
