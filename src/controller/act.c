/* controller/act.c - carries out what the plan says, one call at a time.
 *
 * A reconcile in mode manage ends here, with the plan (core/plan.h): one step, or a wait. While the call of
 * a step is under way no second reconcile of that control plane starts (`in_flight`), and its answer goes
 * into the cache before the next plan is made. Nothing is remembered that matters: after a crash anywhere
 * the next plan is made from what is stored, so it goes on or waits, and never repeats.
 *
 * What is true after each step, and so what a newcomer finds:
 *
 *   step                     stored afterwards                                    the next plan
 *   ------------------------ ---------------------------------------------------- ----------------------
 *   move leadership          etcd has another leader                              record
 *   write the record         KCP: remediation-in-progress names the Machine and   mark, of that Machine
 *                            the retry count                                      and of no other
 *   set OwnerRemediated      Machine: False/MachineDeleting                       delete
 *   delete the Machine       Machine: deletionTimestamp                           wait for the drain
 *   remove the member        etcd does not list it                                hook
 *   drop the hook            Machine: no kcp-cleanup annotation                   wait until it is gone
 *   create the replacement   infrastructure machine; KubeadmConfig; Machine with  record is dropped
 *                            remediation-for = the record, names derived from it
 *   drop the record          KCP: no remediation-in-progress                      nothing to do
 *
 *             GO (steps 2-8 hold)                               its turn: drained, waits for the hook
 *   HEALTHY ---------------------> RECORDED --> MARKED --> DELETING ----------> WITHOUT MEMBER --> WITHOUT HOOK
 *      ^                            |  the Machine recovered                                            |
 *      |<---------------------------+                                                                   | gone
 *      |            the record is dropped                         all sound, etcd has quorum            v
 *      +<------------------------------------------- REPLACED <------------------------------------ MISSING
 *
 * Deletion of the control plane, `tables`: for one Machine after the other, newest first, leader last:
 * member removed -> Machine deleted -> drained -> hook dropped -> gone; the last one without etcd; then its
 * templates, then the finalizer. `cluster-api-1.12`: hook dropped and Machine deleted for all of them.
 *
 * What others do while our cache lags cannot be overtaken, so every write insists on what it was decided
 * by: patches and deletions of an object carry its resourceVersion and uid, calls to etcd the member's id,
 * and steps that rest on the absence of other Machines read all of them again first (`confirm`): when the
 * list knows more or less than the cache does, the cache is waited for. */
#include "controller/internal.h"

#include <assert.h>
#include <inttypes.h>

#include "base/planted.h"
#include "controller/kevents.h"

enum {
    STEP_TIMEOUT_MS =
        10 * 1000, /* a leader that is replaced has ended all of them before its Lease does */
    CONFIRMED_MS = 5 * 1000,
    BACKOFF_BASE_MS = 1000,
    BACKOFF_MAX_MS = 60 * 1000,
    CONFLICT_RETRY_MS = 200,
    CONFLICTS_MAX = 8,   /* in a row, before they count as any failure */
    LAG_RETRY_MS = 1000, /* the cache lags behind what a list said */
    NOTHING_LEFT_MS = 30 * 1000,
    TOLD_AGAIN_MS = 10 * 60 * 1000,
    PROBLEM_BYTES_MAX = 300,
    BODY_BYTES_MAX = 64 * 1024,
};

static const char in_progress[] = "controlplane.cluster.x-k8s.io/remediation-in-progress";
static const char cleanup_hook[] = "pre-terminate.delete.hook.machine.cluster.x-k8s.io/kcp-cleanup";
static const char finalizer[] = "kubeadm.controlplane.cluster.x-k8s.io";

/* --- life --------------------------------------------------------------------------------------- */

struct pl_act *pl__act_of(struct pl_controller *c, struct pl_work *w)
{
    if (!w->act) {
        w->act = pl__alloc(c, sizeof *w->act);
        pl__arena_init(&w->act->arena, c->options.allocator, 4096);
        pl__arena_init(&w->act->kept, c->options.allocator, 1024);
    }
    return w->act;
}

void pl__act_release(struct pl_controller *c, struct pl_work *w)
{
    struct pl_entry *e = w->item ? w->item->entry : NULL;

    if (e && e->remote.etcd.actor == w)
        pl__remote_etcd_act_over(e, c->now);
    if (!w->act)
        return;
    pl__arena_release(&w->act->arena);
    pl__arena_release(&w->act->kept);
    pl__free(c, w->act, sizeof *w->act);
    w->act = NULL;
}

bool pl__acts(const struct pl_controller *c, const struct pl_work *w)
{
    return c->options.mode == MODE_MANAGE &&
           (w->resource == RESOURCE_KCPS || w->resource == RESOURCE_MACHINE_DEPLOYMENTS);
}

/* v1beta1 keeps what we write elsewhere: there nothing is done. */
static bool may_act(const struct pl_controller *c, const struct pl_work *w, bool paused)
{
    const struct pl_informer *own = &c->world.informers[w->resource];
    const struct pl_informer *machines = &c->world.informers[RESOURCE_MACHINES];

    return pl__may_write(c, w, paused) && own->preferred && !own->on_fallback &&
           machines->preferred && !machines->on_fallback;
}

/* --- telling ------------------------------------------------------------------------------------- */

static struct pl_str work_label(struct pl_controller *c, const struct pl_work *w)
{
    const struct pl_meta *meta = w->item->object;

    return pl__str_format(&c->scratch, "%.*s/%.*s", PL_STR_ARG(meta->namespace_),
                          PL_STR_ARG(meta->name));
}

/* Whether this was not said a while ago. */
static bool is_news(struct pl_controller *c, struct pl_act *a, struct pl_str text)
{
    uint64_t hash = pl__hash(PL_STR("told"), text);

    for (size_t i = 0; i < ACT_TOLD_MAX; i++) {
        if (a->told[i].hash == hash && c->now.mono_ms - a->told[i].ms < TOLD_AGAIN_MS)
            return false;
    }
    a->told[a->told_next].hash = hash;
    a->told[a->told_next].ms = c->now.mono_ms;
    a->told_next = (a->told_next + 1) % ACT_TOLD_MAX;
    return true;
}

static void tell(struct pl_controller *c, const struct pl_work *w, const char *reason,
                 struct pl_str text, bool warning)
{
    struct pl_kevent e = { .reason = pl__str(reason), .message = text, .warning = warning };

    pl__event_send(c, w->resource, w->item->object, &e, STEP_TIMEOUT_MS);
}

/* What is not done, and why. */
static void tell_notes(struct pl_controller *c, struct pl_work *w, const struct pl_plan *plan)
{
    for (size_t i = 0; i < plan->shown.note_count; i++) {
        const struct pl_note *n = &plan->shown.notes[i];
        if (!is_news(c, w->act, n->text))
            continue;
        PL_LOG(c, PL_LOG_INFO, "Not acting", { pl__resources[w->resource].kind, work_label(c, w) },
               { "reason", pl__str(n->reason) }, { "why", n->text });
        if (!c->options.dry_run)
            tell(c, w, n->reason, n->text, true);
    }
}

/* --- requests and their end ---------------------------------------------------------------------- */

void pl__act_send(struct pl_controller *c, struct pl_work *w, const struct pl_act_request *r)
{
    w->act->phase = r->phase;
    w->in_flight++;
    c->writes_in_flight++;
    pl__request(c, &(struct pl_request){ .type = ACTION_REQUEST,
                                         .method = r->method,
                                         .path = r->path,
                                         .content_type = r->content_type,
                                         .body = r->body,
                                         .timeout_ms = STEP_TIMEOUT_MS,
                                         .waiter = WAITER_ACT,
                                         .owner = w });
}

static void answered(struct pl_controller *c, struct pl_work *w)
{
    w->act->phase = ACT_IDLE;
    w->in_flight--;
    w->again = false; /* the next plan comes in any case */
    c->writes_in_flight--;
}

void pl__act_later(struct pl_controller *c, struct pl_work *w, uint64_t delay_ms)
{
    w->act->retry_ms = c->now.mono_ms + delay_ms;
    pl__queue_add(c, w, w->act->retry_ms);
}

void pl__act_count(struct pl_controller *c)
{
    c->counts.steps++;
    if (c->options.stop_after_step && c->counts.steps == c->options.stop_after_step)
        pl__stop(c, pl__str_format(&c->scratch, PL_STOPPED_AFTER_STEP ": %u",
                                   (unsigned)c->options.stop_after_step));
}

/* Members or Machines are others than before: what is known of etcd is of the past. Workers have none. */
static bool changes_members(const struct pl_work *w)
{
    enum pl_step_kind step = w->act->step;

    return w->resource == RESOURCE_KCPS &&
           (step == STEP_MOVE_LEADERSHIP || step == STEP_REMOVE_MEMBER ||
            step == STEP_DELETE_MACHINE || step == STEP_DROP_HOOK ||
            step == STEP_CREATE_REPLACEMENT);
}

void pl__act_done(struct pl_controller *c, struct pl_work *w)
{
    struct pl_act *a = w->act;

    a->failures = 0;
    a->api_failed = false;
    a->confirmed_ms = 0;
    if (a->step == STEP_DELETE_TEMPLATE)
        a->templates_read = false;
    if (changes_members(w))
        pl__remote_etcd_acted(w->item->entry, c->now);
    PL_LOG(c, PL_LOG_INFO, "Step done", { pl__resources[w->resource].kind, work_label(c, w) },
           { "step", a->words });
    tell(c, w, pl__step_reason(a->step), a->words, false);
    pl__act_later(c, w, 0);
}

void pl__act_failed(struct pl_controller *c, struct pl_work *w, int status, struct pl_str why)
{
    struct pl_act *a = w->act;
    struct pl_str text =
        pl__str_format(&c->scratch, "%.*s: %.*s", PL_STR_ARG(a->words), PL_STR_ARG(why));

    c->counts.step_errors++;
    a->confirmed_ms = 0;
    /* Something changed in between: that is what the precondition is for. But not time after time. */
    if ((status == 409 || status == 422) && a->failures < CONFLICTS_MAX) {
        PL_LOG(c, PL_LOG_DEBUG, "A step was overtaken, will look again",
               { pl__resources[w->resource].kind, work_label(c, w) }, { "error", text });
        pl__act_later(c, w, pl__backoff_ms(c, a->failures++, CONFLICT_RETRY_MS, BACKOFF_MAX_MS));
        return;
    }
    a->api_failed = a->step != STEP_MOVE_LEADERSHIP && a->step != STEP_REMOVE_MEMBER;
    PL_LOG(c, PL_LOG_INFO, "A step failed, will try again",
           { pl__resources[w->resource].kind, work_label(c, w) }, { "error", text });
    if (is_news(c, a, text))
        tell(c, w, "StepFailed", text, true);
    pl__act_later(c, w, pl__backoff_ms(c, a->failures++, BACKOFF_BASE_MS, BACKOFF_MAX_MS));
    pl__queue_add(c, w, c->now.mono_ms); /* a deletion says in its condition that it is held up */
}

struct pl_str pl__act_problem(struct pl_controller *c, const struct pl_event *e)
{
    if (e->status == 0)
        return e->error.len ? e->error : PL_STR("no answer");
    return pl__str_format(&c->scratch, "the API server answered %d: %.*s", e->status,
                          PL_STR_ARG(pl__text_cut(e->body, PROBLEM_BYTES_MAX)));
}

/* --- bodies --------------------------------------------------------------------------------------- */

static void str_write(struct pl_json_writer *w, const char *key, struct pl_str value)
{
    pl__json_write_key(w, key);
    pl__json_write_str(w, value);
}

static struct pl_str version_text(struct pl_arena *arena, uint64_t version)
{
    return pl__str_format(arena, "%" PRIu64, version);
}

struct pl_str pl__delete_body(struct pl_arena *arena, struct pl_str uid, uint64_t version)
{
    struct pl_buf body;
    struct pl_json_writer w;

    pl__buf_init(&body, arena, BODY_BYTES_MAX);
    pl__json_writer_init(&w, &body, JSON_COMPACT);
    pl__json_open_object(&w);
    str_write(&w, "kind", PL_STR("DeleteOptions"));
    str_write(&w, "apiVersion", PL_STR("v1"));
    pl__json_write_key(&w, "preconditions");
    pl__json_open_object(&w);
    if (!PL_PLANTED(UID_UNCHECKED))
        str_write(&w, "uid", uid);
    if (version)
        str_write(&w, "resourceVersion", version_text(arena, version));
    pl__json_close_object(&w);
    pl__json_close_object(&w);
    return pl__buf_str(&body);
}

/* A merge patch of one annotation, for this version of the object only. `value` NULL: it goes. */
static struct pl_str annotation_body(struct pl_arena *arena, const struct pl_meta *meta,
                                     const char *key, const struct pl_str *value)
{
    struct pl_buf body;
    struct pl_json_writer w;

    pl__buf_init(&body, arena, BODY_BYTES_MAX);
    pl__json_writer_init(&w, &body, JSON_COMPACT);
    pl__json_open_object(&w);
    pl__json_write_key(&w, "metadata");
    pl__json_open_object(&w);
    str_write(&w, "uid", meta->uid);
    if (!PL_PLANTED(VERSION_UNCHECKED))
        str_write(&w, "resourceVersion", version_text(arena, meta->resource_version));
    pl__json_write_key(&w, "annotations");
    pl__json_open_object(&w);
    pl__json_write_key(&w, key);
    if (value)
        pl__json_write_str(&w, *value);
    else
        pl__json_write_null(&w);
    pl__json_close_object(&w);
    pl__json_close_object(&w);
    pl__json_close_object(&w);
    return pl__buf_str(&body);
}

static void operation_write(struct pl_json_writer *w, const char *op, struct pl_str path,
                            const struct pl_str *value)
{
    pl__json_open_object(w);
    str_write(w, "op", pl__str(op));
    str_write(w, "path", path);
    if (value)
        str_write(w, "value", *value);
    pl__json_close_object(w);
}

/* A JSON patch that takes one item out of a list, if it and the whole object are as they were read. */
static struct pl_str removal_body(struct pl_arena *arena, const struct pl_act *a,
                                  struct pl_str item, struct pl_str tested, struct pl_str value)
{
    struct pl_str version = version_text(arena, a->version);
    struct pl_buf body;
    struct pl_json_writer w;

    pl__buf_init(&body, arena, BODY_BYTES_MAX);
    pl__json_writer_init(&w, &body, JSON_COMPACT);
    pl__json_open_array(&w);
    operation_write(&w, "test", PL_STR("/metadata/uid"), &a->uid);
    operation_write(&w, "test", PL_STR("/metadata/resourceVersion"), &version);
    operation_write(&w, "test", tested, &value);
    operation_write(&w, "remove", item, NULL);
    pl__json_close_array(&w);
    return pl__buf_str(&body);
}

/* --- where things are ----------------------------------------------------------------------------- */

static struct pl_str object_path(struct pl_controller *c, enum pl_resource_id resource,
                                 struct pl_str namespace_, struct pl_str name, const char *behind)
{
    const struct pl_resource *r = &pl__resources[resource];

    return pl__str_format(&c->scratch, "/apis/%s/%s/namespaces/%.*s/%s/%.*s%s", r->group,
                          r->version, PL_STR_ARG(namespace_), r->plural, PL_STR_ARG(name), behind);
}

static struct pl_str kcp_path(struct pl_controller *c, const struct pl_work *w, const char *behind)
{
    const struct pl_meta *meta = w->item->object;

    return object_path(c, RESOURCE_KCPS, meta->namespace_, meta->name, behind);
}

static struct pl_str machine_path(struct pl_controller *c, const struct pl_work *w,
                                  const char *behind)
{
    const struct pl_meta *meta = w->item->object;

    return object_path(c, RESOURCE_MACHINES, meta->namespace_, w->act->machine, behind);
}

/* Whether the step is about the Machine; else it is about the control plane. */
static bool is_of_machine(enum pl_step_kind step)
{
    return step == STEP_CLEAR_OWNER_REMEDIATED || step == STEP_SET_OWNER_REMEDIATED ||
           step == STEP_DROP_HOOK || step == STEP_DELETE_MACHINE;
}

/* --- the Machines, read again ---------------------------------------------------------------------- */

static bool is_counted(const struct pl_item *item)
{
    return ((const struct pl_meta *)item->object)->labels.control_plane;
}

static void confirm_send(struct pl_controller *c, struct pl_work *w)
{
    const struct pl_resource *r = &pl__resources[RESOURCE_MACHINES];
    const struct pl_entry *e = w->item->entry;

    pl__act_send(
        c, w,
        &(struct pl_act_request){
            .phase = ACT_CONFIRM,
            .method = "GET",
            .path = pl__str_format(&c->scratch,
                                   "/apis/%s/%s/namespaces/%s/%s?labelSelector="
                                   "cluster.x-k8s.io%%2Fcluster-name%%3D%s%%2C"
                                   "cluster.x-k8s.io%%2Fcontrol-plane",
                                   r->group, r->version, e->namespace_, r->plural, e->name) });
}

/* One Machine of the list. False: the cache does not know it, or as another one of that name. Only the
 * watch says that there is an object: one that ended after the list was made must not come back. */
static bool listed_take(struct pl_controller *c, const struct pl_machine *m)
{
    const struct pl_item *known =
        pl__store_find(&c->world.stores[RESOURCE_MACHINES], m->meta.namespace_, m->meta.name);

    if (!known || !pl__str_equal(((const struct pl_meta *)known->object)->uid, m->meta.uid))
        return false;
    pl__world_put(c, RESOURCE_MACHINES, m, 0, false);
    return true;
}

/* How many control plane Machines of the cluster the list has; -1: it cannot be read, or has unknown ones. */
static int listed_count(struct pl_controller *c, const struct pl_entry *e, struct pl_str body)
{
    struct pl_json j;
    struct pl_str key;
    int count = 0, more;

    pl__arena_reset(&c->reading);
    pl__json_init(&j, body, PL_STR("list"), &c->reading, 64, NULL);
    for (more = pl__json_object(&j); (more = pl__json_key(&j, &key)) > 0;) {
        if (!pl__str_equal(key, PL_STR("items"))) {
            if (pl__json_skip(&j) < 0)
                return -1;
            continue;
        }
        for (more = pl__json_array(&j); (more = pl__json_item(&j)) > 0;) {
            struct pl_machine *m = PL_NEW(&c->reading, struct pl_machine, 1);
            if (pl__object_decode(&j, KIND_MACHINE, false, m) < 0)
                return -1;
            if (!m->meta.labels.control_plane ||
                !pl__str_equal(m->meta.labels.cluster_name, pl__str(e->name)))
                continue;
            if (!listed_take(c, m))
                return -1;
            count++;
        }
        if (more < 0)
            return -1;
    }
    return more < 0 ? -1 : count;
}

static void confirm_answer(struct pl_controller *c, struct pl_work *w, const struct pl_event *e)
{
    const struct pl_entry *entry = w->item->entry;
    int known = 0;

    if (e->status != 200) {
        pl__act_failed(c, w, e->status, pl__act_problem(c, e));
        return;
    }
    int listed = listed_count(c, entry, e->body);
    for (const struct pl_item *i = entry->items[RESOURCE_MACHINES]; i; i = i->next_in_entry)
        known += is_counted(i);
    if (listed != known) {
        PL_LOG(c, PL_LOG_DEBUG, "The cache lags behind, waiting for it",
               { pl__resources[w->resource].kind, work_label(c, w) });
        pl__act_later(c, w, LAG_RETRY_MS);
        return;
    }
    w->act->confirmed_ms = c->now.mono_ms;
    pl__act_later(c, w, 0);
}

/* --- taking an item out of a list ------------------------------------------------------------------- */

struct typed {
    struct pl_str type;
};
static const struct pl_field typed_fields[] = {
    PL_FIELD("type", F_STR, struct typed, type),
};
static PL_SHAPE(typed_shape, struct typed, typed_fields);

/* Of an object, what a removal needs to know. */
struct found {
    struct pl_str uid;
    struct pl_str version;
    PL_LIST(struct pl_str) finalizers;
    PL_LIST(struct typed) conditions;
};
static const struct pl_field found_fields[] = {
    PL_FIELD("metadata.uid", F_STR, struct found, uid),
    PL_FIELD("metadata.resourceVersion", F_STR, struct found, version),
    PL_FIELD("metadata.finalizers", F_STRINGS, struct found, finalizers),
    PL_FIELD_SHAPE("status.conditions", F_LIST, struct found, conditions, &typed_shape),
};
static PL_SHAPE(found_shape, struct found, found_fields);

static void find_send(struct pl_controller *c, struct pl_work *w)
{
    bool machine = is_of_machine(w->act->step);

    pl__act_send(
        c, w,
        &(struct pl_act_request){ .phase = ACT_FIND,
                                  .method = "GET",
                                  .path = machine ? machine_path(c, w, "") : kcp_path(c, w, "") });
}

static void item_remove_send(struct pl_controller *c, struct pl_work *w, const struct found *f)
{
    struct pl_act *a = w->act;
    bool condition = a->step == STEP_CLEAR_OWNER_REMEDIATED;
    struct pl_str wanted = condition ? PL_STR("OwnerRemediated") : pl__str(finalizer);
    uint32_t count = condition ? f->conditions.count : f->finalizers.count, at = 0;

    while (at < count && !pl__str_equal(wanted, condition ? f->conditions.items[at].type
                                                          : f->finalizers.items[at]))
        at++;
    if (at == count) { /* it is gone already, and somebody else's keeps the object */
        a->failures = 0;
        pl__act_later(c, w, NOTHING_LEFT_MS);
        return;
    }
    struct pl_str item =
        pl__str_format(&c->scratch, "%s/%u",
                       condition ? "/status/conditions" : "/metadata/finalizers", (unsigned)at);
    struct pl_str tested =
        pl__str_format(&c->scratch, "%.*s%s", PL_STR_ARG(item), condition ? "/type" : "");
    pl__act_send(c, w,
                 &(struct pl_act_request){
                     .phase = ACT_CALL,
                     .method = "PATCH",
                     .path = condition ? machine_path(c, w, "/status?fieldManager=plimsoll")
                                       : kcp_path(c, w, "?fieldManager=plimsoll"),
                     .content_type = "application/json-patch+json",
                     .body = removal_body(&c->scratch, a, item, tested, wanted) });
}

static void find_answer(struct pl_controller *c, struct pl_work *w, const struct pl_event *e)
{
    struct pl_act *a = w->act;
    struct found f = { { 0 }, { 0 } };
    uint64_t version = 0;
    struct pl_json j;

    if (e->status != 200) {
        pl__act_failed(c, w, e->status, pl__act_problem(c, e));
        return;
    }
    pl__json_init(&j, e->body, PL_STR("answer"), &c->scratch, 64, NULL);
    if (pl__json_decode(&j, &found_shape, &f) < 0 || !pl__str_to_u64(f.version, &version)) {
        pl__act_failed(c, w, 0, PL_STR("what the API server answered cannot be read"));
        return;
    }
    /* Decided by another version: look at this one first. */
    if (!pl__str_equal(f.uid, a->uid) || version != a->version) {
        enum pl_resource_id resource = is_of_machine(a->step) ? RESOURCE_MACHINES : RESOURCE_KCPS;
        pl__act_later(c, w, version > a->version ? 0 : LAG_RETRY_MS);
        pl__answer_cache(c, resource, e->body); /* last: it may be the end of `w` */
        return;
    }
    if (!may_act(c, w, false)) {
        pl__act_later(c, w, LAG_RETRY_MS);
        return;
    }
    item_remove_send(c, w, &f);
}

/* --- the steps -------------------------------------------------------------------------------------- */

static void annotation_send(struct pl_controller *c, struct pl_work *w, const char *key,
                            const struct pl_str *value)
{
    bool machine = is_of_machine(w->act->step);
    struct pl_meta meta = { .uid = w->act->uid, .resource_version = w->act->version };

    pl__act_send(
        c, w,
        &(struct pl_act_request){ .phase = ACT_CALL,
                                  .method = "PATCH",
                                  .path = machine ? machine_path(c, w, "?fieldManager=plimsoll")
                                                  : kcp_path(c, w, "?fieldManager=plimsoll"),
                                  .content_type = "application/merge-patch+json",
                                  .body = annotation_body(&c->scratch, &meta, key, value) });
}

static void etcd_send(struct pl_controller *c, struct pl_work *w, const struct pl_step *step)
{
    enum pl_etcd_call call =
        step->kind == STEP_MOVE_LEADERSHIP ? ETCD_MOVE_LEADER : ETCD_MEMBER_REMOVE;

    if (!pl__remote_etcd_act(w->item->entry, w, call, step->ask, step->ask_count, step->member_id,
                             c->now))
        return; /* its end wakes us */
    w->act->phase = ACT_CALL;
    w->in_flight++;
    c->writes_in_flight++;
}

/* Remembers what the step is about: the plan ends with this reconcile. */
static void step_keep(struct pl_work *w, const struct pl_plan *plan)
{
    const struct pl_step *step = &plan->step;
    const struct pl_meta *meta = w->item->object;
    struct pl_act *a = w->act;

    if (is_of_machine(step->kind)) {
        assert(step->machine); /* core/plan.c never makes such a step without */
        meta = &step->machine->meta;
    }
    pl__arena_reset(&a->arena);
    a->step = step->kind;
    a->words = pl__str_copy(&a->arena, plan->shown.step);
    a->machine = step->machine ? pl__str_copy(&a->arena, step->machine->meta.name)
                               : (struct pl_str){ "", 0 };
    a->uid = pl__str_copy(&a->arena, meta->uid);
    a->version = meta->resource_version;
}

static void template_send(struct pl_controller *c, struct pl_work *w,
                          const struct pl_infra_template *t)
{
    pl__act_send(c, w,
                 &(struct pl_act_request){ .phase = ACT_CALL,
                                           .method = "DELETE",
                                           .path = t->path,
                                           .body = pl__delete_body(&c->scratch, t->uid, 0) });
}

static void step_do(struct pl_controller *c, struct pl_work *w, const struct pl_report *report,
                    const struct pl_plan *plan)
{
    const struct pl_step *step = &plan->step;
    struct pl_act *a = w->act;

    step_keep(w, plan);
    switch (step->kind) {
    case STEP_CLEAR_OWNER_REMEDIATED:
    case STEP_DROP_FINALIZER:
        find_send(c, w);
        break;
    case STEP_SET_OWNER_REMEDIATED:
        if (!pl__mark_apply(c, w, report, step))
            pl__act_later(c, w, LAG_RETRY_MS);
        break;
    case STEP_WRITE_RECORD:
        annotation_send(c, w, in_progress, &step->record);
        break;
    case STEP_DROP_RECORD:
        annotation_send(c, w, in_progress, NULL);
        break;
    case STEP_DROP_HOOK:
        annotation_send(c, w, cleanup_hook, NULL);
        break;
    case STEP_DELETE_MACHINE:
        pl__act_send(
            c, w,
            &(struct pl_act_request){ .phase = ACT_CALL,
                                      .method = "DELETE",
                                      .path = machine_path(c, w, ""),
                                      .body = pl__delete_body(&c->scratch, a->uid, a->version) });
        break;
    case STEP_DELETE_TEMPLATE:
        template_send(c, w, step->infra_template);
        break;
    case STEP_MOVE_LEADERSHIP:
    case STEP_REMOVE_MEMBER:
        etcd_send(c, w, step);
        break;
    case STEP_CREATE_REPLACEMENT:
        pl__act_replace(c, w);
        break;
    case STEP_NONE:
        break;
    }
}

void pl__act(struct pl_controller *c, struct pl_work *w, const struct pl_report *report,
             const struct pl_plan *plan)
{
    struct pl_act *a = pl__act_of(c, w);
    uint64_t now_ms = c->now.mono_ms;

    if (!may_act(c, w, plan->shown.paused))
        return;
    tell_notes(c, w, plan);
    if (plan->wants_etcd)
        pl__remote_etcd_want(w->item->entry, c->now);
    if (plan->shown.retry_after_ms)
        pl__queue_add(c, w, now_ms + (uint64_t)plan->shown.retry_after_ms);
    if (plan->step.kind == STEP_NONE) {
        a->api_failed = false;
        return;
    }
    if (c->options.dry_run) {
        if (is_news(c, a, plan->shown.step))
            PL_LOG(c, PL_LOG_INFO, "Would act (dry run)",
                   { pl__resources[w->resource].kind, work_label(c, w) },
                   { "step", plan->shown.step });
        return;
    }
    if (a->retry_ms > now_ms) {
        pl__queue_add(c, w, a->retry_ms);
        return;
    }
    if (plan->step.confirm && (!a->confirmed_ms || now_ms - a->confirmed_ms > CONFIRMED_MS)) {
        step_keep(w, plan); /* for what is said when it fails */
        confirm_send(c, w);
        return;
    }
    step_do(c, w, report, plan);
}

/* --- answers ----------------------------------------------------------------------------------------- */

static void call_answer(struct pl_controller *c, struct pl_work *w, const struct pl_event *e)
{
    struct pl_act *a = w->act;
    enum pl_step_kind step = a->step;
    bool deletes = step == STEP_DELETE_MACHINE || step == STEP_DELETE_TEMPLATE;
    bool gone = e->status == 404;
    bool ok = e->status == 200 || e->status == 201 || e->status == 202 || gone;

    if (!ok) {
        /* A deletion whose answer is lost may have happened. */
        if (e->status == 0 && changes_members(w))
            pl__remote_etcd_acted(w->item->entry, c->now);
        pl__act_failed(c, w, e->status, pl__act_problem(c, e));
        return;
    }
    pl__act_count(c);
    if (gone && !deletes) { /* the object ended before us; the watch will say so */
        a->failures = 0;
        pl__act_later(c, w, LAG_RETRY_MS);
        return;
    }
    pl__act_done(c, w);
    if (gone)
        pl__act_later(c, w, LAG_RETRY_MS);
    else if (step != STEP_DELETE_TEMPLATE)
        pl__answer_cache(c, is_of_machine(step) ? RESOURCE_MACHINES : RESOURCE_KCPS,
                         e->body); /* last: it may be the end of `w` */
}

void pl__act_answer(struct pl_controller *c, struct pl_work *w, const struct pl_event *e)
{
    enum pl_act_phase phase = w->act->phase;

    answered(c, w);
    switch (phase) {
    case ACT_CONFIRM:
        confirm_answer(c, w, e);
        break;
    case ACT_FIND:
        find_answer(c, w, e);
        break;
    case ACT_CALL:
        call_answer(c, w, e);
        break;
    case ACT_REPLACE:
        pl__act_replace_answer(c, w, e);
        break;
    case ACT_TEMPLATES:
        pl__act_templates_answer(c, w, e);
        break;
    case ACT_IDLE:
        break;
    }
}

/* etcd says that the member is not there: somebody else was faster. */
static bool is_gone_already(const struct pl_etcd_answer *a)
{
    return a->failure == ETCD_REFUSED && pl__str_contains(a->error, PL_STR("member not found"));
}

void pl__act_etcd_answer(struct pl_controller *c, struct pl_work *w, const struct pl_etcd_answer *a)
{
    static const struct pl_etcd_answer none = { .failure = ETCD_CUT };
    struct pl_entry *e = w->item->entry;

    if (!a)
        a = &none;
    answered(c, w);
    e->remote.etcd.renew |= a->failure == ETCD_UNTRUSTED;
    pl__remote_etcd_act_over(e, c->now);
    w->act->etcd_refusals++;
    if (a->failure == ETCD_OK || (w->act->step == STEP_REMOVE_MEMBER && is_gone_already(a))) {
        w->act->etcd_refusals = 0;
        pl__act_count(c);
        pl__act_done(c, w);
        return;
    }
    pl__act_failed(c, w, 0, a->error.len ? a->error : PL_STR("no answer from etcd"));
}
