#include "apiserver/internal.h"

#include "base/base64.h"

/* Rows are fetched in portions, into scratch memory: what a selector passes over is forgotten with its portion. */
enum { PORTION = 128, CONTINUE_MAX_BYTES = 2048 };

/* For text that is no object, as a disk may leave it: what the row's key says, so that it can be deleted. */
static struct pl_tree *stand_in(struct pl_arena *a, const struct pl_store_row *row)
{
    struct pl_tree *object = pl__tree_new(a, JSON_OBJECT);
    struct pl_tree *metadata = pl__tree_make(a, object, PL_STR("metadata"));

    pl__tree_set(metadata, PL_STR("name"), pl__tree_str(a, row->key.name));
    if (row->key.ns.len)
        pl__tree_set(metadata, PL_STR("namespace"), pl__tree_str(a, row->key.ns));
    return object;
}

struct pl_tree *pl__read_row(struct pl_arena *a, const struct pl_kind *kind,
                             const struct pl_store_row *row)
{
    struct pl_tree *object = pl__tree_read(a, row->object, NULL);

    if (!object || object->type != JSON_OBJECT)
        object = stand_in(a, row);
    pl__meta_from_stored(a, kind, object);
    return object;
}

void pl__answer_object(struct call *c, int status, struct pl_tree *object)
{
    struct pl_form_options options = { .form = c->form,
                                       .include_object = c->params.include_object,
                                       .now_ms = c->now_ms };

    if (c->form != PL_FORM_OBJECT)
        object = pl__form_render(c->arena, c->shown, &options, object);
    c->answer->status = status;
    c->answer->content_type = PL_STR("application/json");
    c->answer->body = pl__tree_text(c->arena, object);
}

int pl__read_version(struct call *c, uint64_t *version)
{
    bool events = !c->kind->custom && strcmp(c->kind->plural, "events") == 0;
    bool list = (c->name.len == 0 || events) && !c->params.watch;

    *version = 0;
    if (c->params.version.len == 0 || pl__str_to_u64(c->params.version, version))
        return 0;
    /* A real server has an answer for this only where it asks no cache. */
    return pl__fail_status(c, list ? 400 : 500, list ? "BadRequest" : "",
                           "%sresourceVersion: Invalid value: \"%.*s\": strconv.ParseUint: "
                           "parsing \"%.*s\": invalid syntax",
                           list ? "invalid resource version: " : "", PL_STR_ARG(c->params.version),
                           PL_STR_ARG(c->params.version));
}

/* --- one object ---------------------------------------------------------------------------------- */

static struct pl_tree *scale_of(struct call *c, const struct pl_tree *object)
{
    static const char *const kept[] = { "name", "namespace", "uid", "resourceVersion",
                                        "creationTimestamp" };
    struct pl_arena *a = c->arena;
    const struct pl_tree *metadata = pl__tree_get(object, PL_STR("metadata"));
    struct pl_tree *scale = pl__tree_new(a, JSON_OBJECT);

    pl__tree_set(scale, PL_STR("kind"), pl__tree_str(a, PL_STR("Scale")));
    pl__tree_set(scale, PL_STR("apiVersion"), pl__tree_str(a, PL_STR("autoscaling/v1")));
    struct pl_tree *meta = pl__tree_make(a, scale, PL_STR("metadata"));
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        const struct pl_tree *m = pl__tree_get(metadata, pl__str(kept[i]));
        if (m)
            pl__tree_set(meta, m->key, pl__tree_copy(a, m));
    }
    pl__tree_set(pl__tree_make(a, scale, PL_STR("spec")), PL_STR("replicas"),
                 pl__tree_int(a, pl__tree_get_int(object, "spec.replicas", 0)));
    struct pl_tree *status = pl__tree_make(a, scale, PL_STR("status"));
    pl__tree_set(status, PL_STR("replicas"),
                 pl__tree_int(a, pl__tree_get_int(object, "status.replicas", 0)));
    struct pl_str selector = pl__tree_get_str(object, "status.selector");
    if (selector.len)
        pl__tree_set(status, PL_STR("selector"), pl__tree_str(a, selector));
    return scale;
}

int pl__read_get(struct call *c)
{
    struct pl_store_key key = pl__call_key(c);
    struct pl_store_row row;
    uint64_t version;

    if (pl__read_version(c, &version) < 0)
        return -1;
    if (version > pl__api_store_version(c->s->store))
        return pl__fail_too_large_version(c, version);
    int found = pl__api_store_get(c->s->store, c->arena, &key, &row);
    if (found < 0)
        return pl__fail_store(c);
    if (found == 0)
        return pl__fail_not_found(c);
    if (pl__str_equal(c->subresource, PL_STR("scale"))) {
        c->form = PL_FORM_OBJECT;
        pl__answer_object(c, 200, scale_of(c, pl__read_row(c->arena, c->shown, &row)));
    } else if (c->form == PL_FORM_OBJECT && !c->shown->stored_as) {
        c->answer->status = 200;
        c->answer->content_type = PL_STR("application/json");
        c->answer->body = row.object;
    } else {
        pl__answer_object(c, 200, pl__read_row(c->arena, c->shown, &row));
    }
    return 0;
}

/* --- lists --------------------------------------------------------------------------------------- */

/* A place to go on from: "version/namespace/name" in base64. Version 0: whatever is there now. */
static struct pl_str continue_token(struct call *c, uint64_t version, struct pl_str ns,
                                    struct pl_str name)
{
    return pl__base64_encode(c->arena,
                             pl__str_format(c->arena, "%llu/%.*s/%.*s", (unsigned long long)version,
                                            PL_STR_ARG(ns), PL_STR_ARG(name)));
}

static bool read_token(struct call *c, struct pl_store_list *list)
{
    struct pl_str text;
    const char *slash[2];

    if (c->params.continue_.len > CONTINUE_MAX_BYTES ||
        pl__base64_decode(c->arena, c->params.continue_, &text) < 0)
        return false;
    slash[0] = text.len ? memchr(text.ptr, '/', text.len) : NULL;
    if (!slash[0])
        return false;
    const char *end = text.ptr + text.len;
    slash[1] = memchr(slash[0] + 1, '/', (size_t)(end - slash[0] - 1));
    if (!slash[1] ||
        !pl__str_to_u64((struct pl_str){ text.ptr, (size_t)(slash[0] - text.ptr) }, &list->at))
        return false;
    list->after_ns = (struct pl_str){ slash[0] + 1, (size_t)(slash[1] - slash[0] - 1) };
    list->after_name = (struct pl_str){ slash[1] + 1, (size_t)(end - slash[1] - 1) };
    return true;
}

static int refuse_match(struct call *c, const char *field, const char *why)
{
    struct faults f = { 0 };

    pl__fault(c, &f, "FieldValueForbidden", pl__str(field), "Forbidden: %s", why);
    return pl__fail_options(c, "ListOptions", &f);
}

static int continue_list(struct call *c, struct pl_store_list *list)
{
    if (c->params.version_match.len)
        return refuse_match(c, "resourceVersionMatch",
                            "resourceVersionMatch is forbidden when continue is provided");
    if (c->params.version.len && !pl__str_equal(c->params.version, PL_STR("0")))
        return pl__fail_status(c, 400, "BadRequest",
                               "specifying resource version is not allowed when using continue");
    if (!read_token(c, list))
        return pl__fail_status(c, 400, "BadRequest", "continue key is not valid");
    if (list->at && list->at < pl__api_store_compacted(c->s->store))
        return pl__fail_expired(
            c,
            PL_STR("The provided continue parameter is too old to display a consistent list "
                   "result. You can start a new list without the continue parameter, or use the "
                   "continue token in this response to retrieve the remainder of the results. "
                   "Continuing with the provided token results in an inconsistent list - objects "
                   "that were created, modified, or deleted between the time the first chunk was "
                   "returned and now may show up in the list."),
            continue_token(c, 0, list->after_ns, list->after_name));
    return 0;
}

/* Which version a list shows; 0: the newest. */
static int choose_version(struct call *c, struct pl_store_list *list)
{
    const struct params *p = &c->params;
    bool exact = pl__str_equal(p->version_match, PL_STR("Exact"));
    uint64_t version;

    if (p->has_initial_events)
        return refuse_match(c, "sendInitialEvents", "sendInitialEvents is forbidden for list");
    if (p->continue_.len)
        return continue_list(c, list);
    if (pl__read_version(c, &version) < 0)
        return -1;
    if (p->version_match.len && p->version.len == 0)
        return refuse_match(c, "resourceVersionMatch",
                            "resourceVersionMatch is forbidden unless resourceVersion is provided");
    if (p->version_match.len && !exact &&
        !pl__str_equal(p->version_match, PL_STR("NotOlderThan"))) {
        struct faults f = { 0 };
        pl__fault(c, &f, "FieldValueNotSupported", PL_STR("resourceVersionMatch"),
                  "Unsupported value: \"%.*s\": supported values: \"Exact\", \"NotOlderThan\"",
                  PL_STR_ARG(p->version_match));
        return pl__fail_options(c, "ListOptions", &f);
    }
    if (exact && version == 0)
        return refuse_match(
            c, "resourceVersionMatch",
            "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
    if (version > pl__api_store_version(c->s->store))
        return pl__fail_too_large_version(c, version);
    if (!exact && !(version && p->limit && !p->version_match.len))
        return 0;
    if (version < pl__api_store_compacted(c->s->store))
        return pl__fail_expired(c, PL_STR("The resourceVersion for the provided list is too old."),
                                (struct pl_str){ 0 });
    list->at = version;
    return 0;
}

struct listing {
    struct pl_str head;      /* how the text of an object of this kind begins */
    struct pl_buf items;     /* texts, when the answer is a plain List */
    struct pl_tree *objects; /* trees, when it gets another form */
    uint64_t count;
    struct pl_str more; /* the token to go on with */
    int64_t remaining;  /* -1: not told */
};

/* Built-in lists show their items without kind and apiVersion, which stand first in what is stored. */
static void add_text(struct call *c, struct listing *l, struct pl_str object)
{
    if (l->count)
        pl__buf_add_char(&l->items, ',');
    if (!c->kind->custom && pl__str_starts_with(object, l->head)) {
        pl__buf_add_char(&l->items, '{');
        object.ptr += l->head.len;
        object.len -= l->head.len;
    }
    pl__buf_add(&l->items, object);
}

/* `row` is in scratch memory; what is shown of it is copied. */
static void add_item(struct call *c, struct listing *l, struct pl_store_row row)
{
    bool select = c->params.labels.count || c->params.fields.count;

    if (select && !pl__selector_matches(&c->params.labels, &c->params.fields,
                                        pl__read_row(&c->s->scratch, c->shown, &row)))
        return;
    if (c->form == PL_FORM_OBJECT && !c->shown->stored_as) {
        add_text(c, l, row.object);
    } else {
        row.object = pl__str_copy(c->arena, row.object);
        pl__tree_append(l->objects, pl__read_row(c->arena, c->shown, &row));
    }
    l->count++;
}

/* The place to go on from outlives the portion that it comes from; of each the space is used again. */
static void go_on_after(struct pl_store_list *list, struct pl_arena *place,
                        const struct pl_store_key *key)
{
    pl__arena_reset(place);
    list->after_ns = pl__str_copy(place, key->ns);
    list->after_name = pl__str_copy(place, key->name);
}

static int gather(struct call *c, struct pl_store_list *list, struct pl_arena *place,
                  struct listing *l)
{
    struct pl_store_row *rows = PL_NEW(c->arena, struct pl_store_row, PORTION);
    struct pl_arena *scratch = &c->s->scratch;
    /* The watch cache of a real server gives everything when any version will do. */
    uint64_t limit = pl__str_equal(c->params.version, PL_STR("0")) && !c->params.continue_.len
                         ? 0
                         : c->params.limit;
    bool select = c->params.labels.count || c->params.fields.count;
    int count;

    do {
        pl__scratch_reset(c->s);
        count = pl__api_store_list(c->s->store, scratch, list, rows, PORTION);
        if (count < 0)
            return pl__fail_store(c);
        for (int i = 0; i < count; i++) {
            if (limit && l->count == limit) {
                l->more =
                    continue_token(c, list->at ? list->at : pl__api_store_version(c->s->store),
                                   list->after_ns, list->after_name);
                l->remaining = select ? -1 : pl__api_store_list_count(c->s->store, list);
                return 0;
            }
            add_item(c, l, rows[i]);
            go_on_after(list, place, &rows[i].key);
        }
    } while (count == PORTION);
    return 0;
}

static struct pl_tree *list_metadata(struct call *c, const struct listing *l, uint64_t version)
{
    struct pl_arena *a = c->arena;
    struct pl_tree *metadata = pl__tree_new(a, JSON_OBJECT);

    pl__tree_set(metadata, PL_STR("resourceVersion"),
                 pl__tree_str(a, pl__str_format(a, "%llu", (unsigned long long)version)));
    if (l->more.len || c->kind->custom)
        pl__tree_set(metadata, PL_STR("continue"), pl__tree_str(a, l->more));
    if (l->more.len && l->remaining >= 0)
        pl__tree_set(metadata, PL_STR("remainingItemCount"), pl__tree_int(a, l->remaining));
    return metadata;
}

int pl__read_list(struct call *c)
{
    struct pl_store_list list = { .cluster = c->cluster->id,
                                  .kind = pl__kind_id(c->s, c->kind),
                                  .ns = c->ns };
    struct listing l = { .objects = pl__tree_new(c->arena, JSON_ARRAY), .remaining = -1 };
    struct pl_arena *a = c->arena;

    if (choose_version(c, &list) < 0)
        return -1;
    uint64_t version = list.at ? list.at : pl__api_store_version(c->s->store);
    l.head = pl__str_format(a, "{\"apiVersion\":\"%s%s%s\",\"kind\":\"%s\",", c->kind->group,
                            c->kind->group[0] ? "/" : "", c->kind->version, c->kind->kind);
    pl__buf_init(&l.items, a, SIZE_MAX / 2);
    struct pl_arena place;
    pl__arena_init(&place, NULL, 1024);
    int gathered = gather(c, &list, &place, &l);
    pl__arena_release(&place);
    pl__scratch_reset(c->s);
    if (gathered < 0)
        return -1;
    struct pl_tree *answer = pl__tree_new(a, JSON_OBJECT);
    pl__tree_set(answer, PL_STR("kind"),
                 pl__tree_str(a, pl__str_format(a, "%sList", c->shown->kind)));
    pl__tree_set(answer, PL_STR("apiVersion"), pl__tree_str(a, pl__kind_api_version(a, c->shown)));
    pl__tree_set(answer, PL_STR("metadata"), list_metadata(c, &l, version));
    if (c->form != PL_FORM_OBJECT || c->shown->stored_as) {
        pl__tree_set(answer, PL_STR("items"), l.objects);
        pl__answer_object(c, 200, answer);
        return 0;
    }
    struct pl_buf body;
    pl__buf_init(&body, a, SIZE_MAX / 2);
    pl__tree_write(&body, answer);
    body.len--; /* the closing brace comes behind the items */
    pl__buf_add_lit(&body, ",\"items\":[");
    pl__buf_add(&body, pl__buf_str(&l.items));
    pl__buf_add_lit(&body, "]}");
    c->answer->status = 200;
    c->answer->content_type = PL_STR("application/json");
    c->answer->body = pl__buf_str(&body);
    return 0;
}
