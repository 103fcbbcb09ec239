/* controller/act_replace.c - makes the replacement of a control plane Machine (semantics section 11).
 *
 *   KCP --> group --> resources --> template --> POST infrastructure --> POST config --> POST Machine --> over
 *                                                  |  409: look whose it is; ours: as if it had been made
 *                                                  |  refused for good: what was made is deleted, last first
 *                                                  +  no answer, or try later: nothing is deleted, for it may
 *                                                     have been made; the next try meets it by its name
 *
 * All names come from the record on the control plane, so it does not matter how often this begins again:
 * the same three objects are asked for. The record itself is dropped by a plan of its own, when the Machine
 * is seen. */
#include "controller/internal.h"

enum { GONE_RETRY_MS = 15 * 1000, LAG_RETRY_MS = 1000 };

enum stage {
    STAGE_KCP,
    STAGE_GROUP,
    STAGE_RESOURCES,
    STAGE_TEMPLATE,
    STAGE_POST,
    STAGE_EXISTING, /* something of that name is there: whose is it */
    STAGE_CLEAN,
};

struct pl_replacing {
    enum stage stage;
    struct pl_replacement r;
    struct pl_str infra_template;  /* JSON */
    enum pl_replace_object object; /* the one that is being made, or deleted */
    struct pl_str uids[REPLACE_COUNT];
    bool made[REPLACE_COUNT];
    struct pl_str failure; /* why what was made is deleted */
};

static void get(struct pl_controller *c, struct pl_work *w, enum stage stage, struct pl_str path)
{
    w->act->replacing->stage = stage;
    pl__act_send(c, w,
                 &(struct pl_act_request){ .phase = ACT_REPLACE, .method = "GET", .path = path });
}

static void failed(struct pl_controller *c, struct pl_work *w, const struct pl_error *err)
{
    pl__act_failed(c, w, 0, pl__error_text(&w->act->arena, err));
}

void pl__act_replace(struct pl_controller *c, struct pl_work *w)
{
    const struct pl_meta *meta = w->item->object;
    const struct pl_resource *r = &pl__resources[RESOURCE_KCPS];

    w->act->replacing = PL_NEW(&w->act->arena, struct pl_replacing, 1);
    get(c, w, STAGE_KCP,
        pl__str_format(&c->scratch, "/apis/%s/%s/namespaces/%.*s/%s/%.*s", r->group, r->version,
                       PL_STR_ARG(meta->namespace_), r->plural, PL_STR_ARG(meta->name)));
}

/* --- cleaning up ---------------------------------------------------------------------------------- */

/* Deletes what was made, the last first; then the failure that led here is told. */
static void clean_next(struct pl_controller *c, struct pl_work *w)
{
    struct pl_replacing *s = w->act->replacing;

    for (int i = REPLACE_COUNT; i-- > 0;) {
        if (!s->made[i])
            continue;
        s->made[i] = false;
        s->stage = STAGE_CLEAN;
        pl__act_send(c, w,
                     &(struct pl_act_request){
                         .phase = ACT_REPLACE,
                         .method = "DELETE",
                         .path = pl__replacement_object_path(&s->r, (enum pl_replace_object)i),
                         .body = pl__delete_body(&w->act->arena, s->uids[i], 0) });
        return;
    }
    pl__act_failed(c, w, 0, s->failure);
}

static void give_up(struct pl_controller *c, struct pl_work *w, struct pl_str why)
{
    w->act->replacing->failure = pl__str_copy(&w->act->arena, why);
    clean_next(c, w);
}

/* --- making --------------------------------------------------------------------------------------- */

/* The Cluster's failure domain with the fewest of the Machines of this control plane. */
static struct pl_str failure_domain(struct pl_controller *c, const struct pl_work *w)
{
    const struct pl_entry *e = w->item->entry;
    const struct pl_kcp *kcp = w->item->object;
    const struct pl_machine **machines;
    size_t room = 0, count = 0;

    for (const struct pl_item *i = e->items[RESOURCE_MACHINES]; i; i = i->next_in_entry)
        room++;
    machines = PL_NEW(&c->scratch, const struct pl_machine *, room);
    for (const struct pl_item *i = e->items[RESOURCE_MACHINES]; i; i = i->next_in_entry) {
        const struct pl_machine *m = i->object;
        const struct pl_owner_reference *owner = pl__controller_of(&m->meta);
        if (m->meta.labels.control_plane && owner &&
            pl__owner_is(owner, PL_STR("KubeadmControlPlane"), &kcp->meta))
            machines[count++] = m;
    }
    if (!e->items[RESOURCE_CLUSTERS])
        return (struct pl_str){ "", 0 };
    return pl__replacement_failure_domain(e->items[RESOURCE_CLUSTERS]->object, machines, count);
}

static int body_make(struct pl_controller *c, const struct pl_work *w, struct pl_str *body,
                     struct pl_error **err)
{
    const struct pl_replacing *s = w->act->replacing;

    switch (s->object) {
    case REPLACE_INFRA:
        return pl__replacement_infra_body(&s->r, s->infra_template, body, err);
    case REPLACE_CONFIG:
        return pl__replacement_config_body(&s->r, body, err);
    default:
        return pl__replacement_machine_body(&s->r, failure_domain(c, w), body, err);
    }
}

static void post(struct pl_controller *c, struct pl_work *w)
{
    struct pl_replacing *s = w->act->replacing;
    struct pl_error *err = NULL;
    struct pl_str body;

    /* Leadership may have been lost, or the object paused, since the plan was made. */
    if (!pl__may_write(c, w, false)) {
        pl__act_later(c, w, LAG_RETRY_MS);
        return;
    }
    if (body_make(c, w, &body, &err) < 0) {
        give_up(c, w, pl__error_text(&w->act->arena, err));
        return;
    }
    s->stage = STAGE_POST;
    pl__act_send(
        c, w,
        &(struct pl_act_request){
            .phase = ACT_REPLACE,
            .method = "POST",
            .path = pl__str_format(&c->scratch, "%.*s?fieldManager=plimsoll",
                                   PL_STR_ARG(pl__replacement_collection_path(&s->r, s->object))),
            .body = body });
}

struct uid_only {
    struct pl_str uid;
};
static const struct pl_field uid_fields[] = {
    PL_FIELD("metadata.uid", F_STR, struct uid_only, uid),
};
static PL_SHAPE(uid_shape, struct uid_only, uid_fields);

/* This one is there: on with the next, or done. */
static void made(struct pl_controller *c, struct pl_work *w, struct pl_str text)
{
    struct pl_replacing *s = w->act->replacing;
    struct uid_only object = { { 0 } };
    struct pl_json j;

    pl__json_init(&j, text, PL_STR("answer"), &w->act->arena, 64, NULL);
    if (pl__json_decode(&j, &uid_shape, &object) == 0) {
        s->uids[s->object] = object.uid;
        s->made[s->object] = object.uid.len > 0;
    }
    if (s->object == REPLACE_MACHINE) {
        pl__act_done(c, w);
        return;
    }
    s->object = (enum pl_replace_object)(s->object + 1);
    post(c, w);
}

/* --- answers -------------------------------------------------------------------------------------- */

/* A refusal that asking again will not change. Anything else may have taken effect. */
static bool is_refusal(int status)
{
    return status >= 400 && status < 500 && status != 408 && status != 409 && status != 429;
}

static void kcp_answer(struct pl_controller *c, struct pl_work *w, struct pl_str body)
{
    struct pl_replacing *s = w->act->replacing;
    struct pl_kcp *kcp = PL_NEW(&w->act->arena, struct pl_kcp, 1);
    struct pl_error *err = NULL;
    struct pl_json j;

    body = pl__str_copy(&w->act->arena, body);
    pl__json_init(&j, body, PL_STR("answer"), &w->act->arena, 64, &err);
    if (pl__object_decode(&j, KIND_KCP, false, kcp) < 0) {
        failed(c, w, err);
        return;
    }
    /* Decided by another version: look at this one first. */
    if (!pl__str_equal(kcp->meta.uid, w->act->uid) ||
        kcp->meta.resource_version != w->act->version) {
        pl__act_later(c, w, kcp->meta.resource_version > w->act->version ? 0 : LAG_RETRY_MS);
        pl__answer_cache(c, RESOURCE_KCPS, body); /* last: it may be the end of `w` */
        return;
    }
    struct pl_str cluster =
        pl__str_copy(&w->act->arena, pl__str(w->item->entry->name)); /* outlives this answer */
    if (pl__replacement_read(&s->r, &w->act->arena, body, cluster, &err) < 0)
        failed(c, w, err);
    else
        get(c, w, STAGE_GROUP, pl__replacement_group_path(&s->r));
}

static void post_answer(struct pl_controller *c, struct pl_work *w, const struct pl_event *e)
{
    struct pl_replacing *s = w->act->replacing;

    if (e->status == 200 || e->status == 201) {
        pl__act_count(c);
        made(c, w, e->body);
    } else if (e->status == 409) {
        get(c, w, STAGE_EXISTING, pl__replacement_object_path(&s->r, s->object));
    } else if (is_refusal(e->status)) {
        give_up(c, w, pl__act_problem(c, e));
    } else {
        pl__act_failed(c, w, e->status, pl__act_problem(c, e));
    }
}

static void existing_answer(struct pl_controller *c, struct pl_work *w, struct pl_str body)
{
    struct pl_replacing *s = w->act->replacing;
    enum pl_existing existing = EXISTING_FOREIGN;
    struct pl_error *err = NULL;

    if (pl__replacement_existing(&s->r, s->object, body, &existing, &err) < 0) {
        failed(c, w, err);
        return;
    }
    switch (existing) {
    case EXISTING_OURS:
        made(c, w, body);
        break;
    case EXISTING_DELETING:
        pl__act_later(c, w, GONE_RETRY_MS);
        break;
    case EXISTING_FOREIGN: {
        struct pl_str why =
            pl__str_format(&c->scratch, "%.*s is there and is not ours",
                           PL_STR_ARG(pl__replacement_object_path(&s->r, s->object)));
        /* A Machine of that name has the other two, made by us or not: they are not ours to delete. */
        if (s->object == REPLACE_MACHINE)
            pl__act_failed(c, w, 0, why);
        else
            give_up(c, w, why);
        break;
    }
    }
}

/* What was read leads on to the next request, or to an error. */
static void read_answer(struct pl_controller *c, struct pl_work *w, struct pl_str body)
{
    struct pl_replacing *s = w->act->replacing;
    struct pl_error *err = NULL;

    switch (s->stage) {
    case STAGE_GROUP:
        if (pl__replacement_take_group(&s->r, body, &err) < 0)
            failed(c, w, err);
        else
            get(c, w, STAGE_RESOURCES, pl__replacement_version_path(&s->r));
        break;
    case STAGE_RESOURCES:
        if (pl__replacement_take_resources(&s->r, body, &err) < 0)
            failed(c, w, err);
        else
            get(c, w, STAGE_TEMPLATE, pl__replacement_template_path(&s->r));
        break;
    case STAGE_TEMPLATE:
        s->infra_template = pl__str_copy(&w->act->arena, body);
        post(c, w);
        break;
    case STAGE_EXISTING:
        existing_answer(c, w, body);
        break;
    default:
        kcp_answer(c, w, body);
        break;
    }
}

void pl__act_replace_answer(struct pl_controller *c, struct pl_work *w, const struct pl_event *e)
{
    const struct pl_replacing *s = w->act->replacing;

    if (s->stage == STAGE_POST)
        post_answer(c, w, e);
    else if (s->stage == STAGE_CLEAN)
        clean_next(c, w); /* what is left of it has our names: the next try meets it */
    else if (e->status == 200)
        read_answer(c, w, e->body);
    else
        pl__act_failed(c, w, e->status == 404 ? 0 : e->status, pl__act_problem(c, e));
}
