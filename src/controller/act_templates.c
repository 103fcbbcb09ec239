/* controller/act_templates.c - which infrastructure machine templates go with a control plane (section 8.2).
 *
 *   KCP --> group --> resources --> all templates of that kind in the namespace --> those that it controls
 *
 * Read once, when the deletion of a control plane has come to its end, and again after each that was
 * deleted. A kind that the API server does not know any more has none. */
#include "controller/internal.h"

enum stage { STAGE_KCP, STAGE_GROUP, STAGE_RESOURCES, STAGE_LIST };

struct pl_templates_reading {
    enum stage stage;
    struct pl_replacement r;
};

static void get(struct pl_controller *c, struct pl_work *w, enum stage stage, struct pl_str path)
{
    w->act->templating->stage = stage;
    pl__act_send(c, w,
                 &(struct pl_act_request){ .phase = ACT_TEMPLATES, .method = "GET", .path = path });
}

static bool has_machines(const struct pl_work *w)
{
    for (const struct pl_item *i = w->item->entry->items[RESOURCE_MACHINES]; i;
         i = i->next_in_entry) {
        if (((const struct pl_meta *)i->object)->labels.control_plane)
            return true;
    }
    return false;
}

bool pl__act_templates(struct pl_controller *c, struct pl_work *w)
{
    const struct pl_kcp *kcp = w->item->object;
    const struct pl_resource *r = &pl__resources[RESOURCE_KCPS];

    if (w->resource != RESOURCE_KCPS || !pl__acts(c, w) || c->options.dry_run ||
        c->options.profile != PL_PROFILE_TABLES || !kcp->meta.deleted_ms || has_machines(w) ||
        !pl__may_write(c, w, kcp->meta.annotations.paused))
        return false;
    struct pl_act *a = pl__act_of(c, w);
    if (a->templates_read)
        return false;
    if (a->retry_ms > c->now.mono_ms) {
        pl__queue_add(c, w, a->retry_ms);
        return true;
    }
    pl__arena_reset(&a->arena);
    a->words = PL_STR("read the infrastructure machine templates");
    a->step = STEP_NONE;
    a->templating = PL_NEW(&a->arena, struct pl_templates_reading, 1);
    get(c, w, STAGE_KCP,
        pl__str_format(&c->scratch, "/apis/%s/%s/namespaces/%.*s/%s/%.*s", r->group, r->version,
                       PL_STR_ARG(kcp->meta.namespace_), r->plural, PL_STR_ARG(kcp->meta.name)));
    return true;
}

/* --- the list ------------------------------------------------------------------------------------- */

struct listed {
    struct pl_meta meta;
};
static const struct pl_field listed_fields[] = {
    PL_FIELD_SHAPE("metadata", F_OBJECT, struct listed, meta, &pl__meta_shape),
};
static PL_SHAPE(listed_shape, struct listed, listed_fields);

struct listing {
    PL_LIST(struct listed) items;
};
static const struct pl_field listing_fields[] = {
    PL_FIELD_SHAPE("items", F_LIST, struct listing, items, &listed_shape),
};
static PL_SHAPE(listing_shape, struct listing, listing_fields);

/* Whether it is this control plane's, and nobody has deleted it yet. */
static bool is_left(const struct pl_work *w, const struct pl_meta *meta)
{
    const struct pl_kcp *kcp = w->item->object;
    const struct pl_owner_reference *owner = pl__controller_of(meta);

    return owner && pl__owner_is(owner, PL_STR("KubeadmControlPlane"), &kcp->meta) &&
           meta->uid.len && !meta->deleted_ms;
}

/* The path of the template that the control plane names, up to the last slash: where all of them are. */
static struct pl_str collection(const struct pl_replacement *r)
{
    struct pl_str path = pl__replacement_template_path(r);

    path.len -= r->template_name.len + 1;
    return pl__str_copy(r->arena, path);
}

static void known(struct pl_controller *c, struct pl_work *w)
{
    w->act->failures = 0;
    w->act->templates_read = true;
    pl__act_later(c, w, 0);
}

static void none(struct pl_controller *c, struct pl_work *w)
{
    w->act->templates.count = 0;
    known(c, w);
}

static void list_answer(struct pl_controller *c, struct pl_work *w, struct pl_str body)
{
    struct pl_act *a = w->act;
    const struct pl_replacement *r = &a->templating->r;
    struct listing list = { { 0 } };
    struct pl_error *err = NULL;
    struct pl_json j;

    pl__json_init(&j, body, PL_STR("list"), &a->arena, 0, &err);
    if (pl__json_decode(&j, &listing_shape, &list) < 0) {
        pl__act_failed(c, w, 0, pl__error_text(&a->arena, err));
        return;
    }
    pl__arena_reset(&a->kept);
    a->templates.items = PL_NEW(&a->kept, struct pl_infra_template, list.items.count);
    a->templates.count = 0;
    for (uint32_t i = 0; i < list.items.count; i++) {
        const struct pl_meta *meta = &list.items.items[i].meta;
        if (!is_left(w, meta))
            continue;
        a->templates.items[a->templates.count++] = (struct pl_infra_template){
            .kind = pl__str_copy(&a->kept, r->template_kind),
            .name = pl__str_copy(&a->kept, meta->name),
            .uid = pl__str_copy(&a->kept, meta->uid),
            .path = pl__str_format(&a->kept, "%.*s/%.*s", PL_STR_ARG(collection(r)),
                                   PL_STR_ARG(meta->name)),
        };
    }
    known(c, w);
}

/* --- answers -------------------------------------------------------------------------------------- */

void pl__act_templates_answer(struct pl_controller *c, struct pl_work *w, const struct pl_event *e)
{
    struct pl_templates_reading *s = w->act->templating;
    struct pl_error *err = NULL;

    if (e->status == 404) {
        none(c, w);
        return;
    }
    if (e->status != 200) {
        pl__act_failed(c, w, e->status, pl__act_problem(c, e));
        return;
    }
    switch (s->stage) {
    case STAGE_KCP: {
        struct pl_str kcp = pl__str_copy(&w->act->arena, e->body);
        struct pl_str cluster = pl__str_copy(&w->act->arena, pl__str(w->item->entry->name));
        if (pl__replacement_read_references(&s->r, &w->act->arena, kcp, cluster, &err) < 0)
            none(c, w); /* it names no kind that could have any */
        else
            get(c, w, STAGE_GROUP, pl__replacement_group_path(&s->r));
        break;
    }
    case STAGE_GROUP:
        if (pl__replacement_take_group(&s->r, e->body, &err) < 0)
            none(c, w);
        else
            get(c, w, STAGE_RESOURCES, pl__replacement_version_path(&s->r));
        break;
    case STAGE_RESOURCES:
        if (pl__replacement_take_resources(&s->r, e->body, &err) < 0)
            none(c, w);
        else
            get(c, w, STAGE_LIST, collection(&s->r));
        break;
    case STAGE_LIST:
        list_answer(c, w, e->body);
        break;
    }
}
