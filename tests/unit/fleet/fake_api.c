#include "unit/fleet/fake_api.h"

#include <assert.h>
#include <stdio.h>

static bool is(struct pl_str s, const char *text)
{
    return pl__str_equal(s, pl__str(text));
}

static struct fake_object *find(struct fake_api *f, struct pl_str cluster, const char *plural,
                                struct pl_str name)
{
    for (size_t i = 0; i < f->object_count; i++) {
        struct fake_object *o = &f->objects[i];
        if (o->tree && pl__str_equal(o->cluster, cluster) && is(o->plural, plural) &&
            pl__str_equal(o->name, name))
            return o;
    }
    return NULL;
}

static void tell(struct fake_api *f, const struct fake_object *o, const char *type)
{
    struct pl_buf line;
    bool watched = false;

    for (size_t i = 0; i < f->watch_count; i++)
        watched |= pl__str_equal(f->watches[i].cluster, o->cluster) &&
                   pl__str_equal(f->watches[i].plural, o->plural);
    if (!watched)
        return;
    pl__buf_init(&line, &f->arena, 1 << 20);
    pl__buf_printf(&line, "{\"type\":\"%s\",\"object\":", type);
    pl__tree_write(&line, o->tree);
    pl__buf_add_char(&line, '}');
    assert(f->event_count < FAKE_EVENTS_MAX);
    f->events[f->event_count++] = (struct fake_event){ o->cluster, pl__buf_str(&line) };
}

static void commit(struct fake_api *f, struct fake_object *o, const char *type)
{
    struct pl_tree *meta = pl__tree_make(&f->arena, o->tree, PL_STR("metadata"));

    pl__tree_set(meta, PL_STR("resourceVersion"),
                 tree_format(&f->arena, "\"%llu\"", (unsigned long long)++f->version));
    bool ends =
        tree_get(meta, "deletionTimestamp") && !pl__tree_count(tree_get(meta, "finalizers"));
    tell(f, o, ends ? "DELETED" : type);
    o->last = o->tree;
    if (ends)
        o->tree = NULL;
}

static int create(struct fake_api *f, const struct pl_fleet_call *call, struct fake_object **made)
{
    struct pl_tree *tree = pl__tree_read(&f->arena, call->body, NULL);

    assert(tree);
    struct pl_tree *meta = pl__tree_make(&f->arena, tree, PL_STR("metadata"));
    struct pl_str name = pl__str_copy(&f->arena, tree_text(tree_get(meta, "name")));
    if (find(f, call->cluster, call->plural, name))
        return 409;
    assert(f->object_count < FAKE_OBJECTS_MAX);
    struct fake_object *o = &f->objects[f->object_count++];
    *o = (struct fake_object){ .cluster = pl__str_copy(&f->arena, call->cluster),
                               .plural = pl__str_copy(&f->arena, pl__str(call->plural)),
                               .ns = pl__str_copy(&f->arena, call->ns),
                               .name = name,
                               .tree = tree,
                               .owned = tree_format(&f->arena, "{}") };
    pl__tree_remove(tree, PL_STR("status"));
    pl__tree_set(meta, PL_STR("uid"), tree_format(&f->arena, "\"uid-%zu\"", f->object_count));
    pl__tree_set(meta, PL_STR("creationTimestamp"),
                 tree_format(&f->arena, "\"2026-11-15T00:00:00Z\""));
    commit(f, o, "ADDED");
    *made = o;
    return 201;
}

/* The part of an object that this call may write; NULL: it is no JSON. */
static struct pl_tree *part(struct fake_api *f, const struct pl_fleet_call *call)
{
    struct pl_tree *patch = pl__tree_read(&f->arena, call->body, NULL);

    if (!patch)
        return NULL;
    if (call->subresource) {
        pl__tree_remove(patch, PL_STR("metadata"));
        pl__tree_remove(patch, PL_STR("spec"));
    } else {
        pl__tree_remove(patch, PL_STR("status"));
    }
    return patch;
}

static struct pl_tree *condition_find(const struct pl_tree *list, struct pl_str type)
{
    for (struct pl_tree *t = list ? list->first : NULL; t; t = t->next)
        if (pl__str_equal(tree_text(tree_get(t, "type")), type))
            return t;
    return NULL;
}

static bool owned_by_others(const struct fake_object *o, struct pl_str manager, struct pl_str type)
{
    for (const struct pl_tree *m = o->owned->first; m; m = m->next) {
        if (pl__str_equal(m->key, manager))
            continue;
        for (const struct pl_tree *t = m->first; t; t = t->next)
            if (pl__str_equal(tree_text(t), type))
                return true;
    }
    return false;
}

/* status.conditions as a list-map: what the manager had and leaves out goes, unless another has it, too. */
static void conditions_apply(struct fake_api *f, struct fake_object *o, struct pl_str manager,
                             struct pl_tree *applied)
{
    struct pl_tree *list = tree_format(&f->arena, "[]"), *types = tree_format(&f->arena, "[]");
    const struct pl_tree *stored = tree_at(o->tree, "status", "conditions", NULL);
    char key[128];

    snprintf(key, sizeof key, "%.*s", PL_STR_ARG(manager));
    const struct pl_tree *had = tree_get(o->owned, key);
    for (const struct pl_tree *t = stored ? stored->first : NULL; t; t = t->next) {
        struct pl_str type = tree_text(tree_get(t, "type"));
        bool mine = false;
        for (const struct pl_tree *h = had ? had->first : NULL; h; h = h->next)
            mine |= pl__str_equal(tree_text(h), type);
        if (condition_find(applied, type) || (mine && !owned_by_others(o, manager, type)))
            continue;
        pl__tree_append(list, pl__tree_copy(&f->arena, t));
    }
    for (const struct pl_tree *t = applied ? applied->first : NULL; t; t = t->next) {
        pl__tree_append(list, pl__tree_copy(&f->arena, t));
        pl__tree_append(types, pl__tree_str(&f->arena, tree_text(tree_get(t, "type"))));
    }
    pl__tree_set(o->owned, pl__str_copy(&f->arena, manager), types);
    if (pl__tree_count(list))
        pl__tree_set(pl__tree_make(&f->arena, o->tree, PL_STR("status")), PL_STR("conditions"),
                     list);
}

static int change(struct fake_api *f, const struct pl_fleet_call *call, struct fake_object *o)
{
    struct pl_tree *patch = part(f, call);

    if (!patch)
        return 400;
    struct pl_str seen = tree_text(tree_at(patch, "metadata", "resourceVersion", NULL));
    struct pl_str now = tree_text(tree_at(o->tree, "metadata", "resourceVersion", NULL));
    if (seen.len && !pl__str_equal(seen, now))
        return 409;
    if (call->verb == FLEET_APPLY && call->subresource) {
        struct pl_tree *status = tree_get(patch, "status");
        struct pl_tree *conditions = tree_get(status, "conditions");
        assert(call->manager.len);
        pl__tree_remove(status, PL_STR("conditions"));
        o->tree = pl__patch_merge(&f->arena, o->tree, patch);
        conditions_apply(f, o, call->manager, conditions);
    } else {
        o->tree = pl__patch_merge(&f->arena, o->tree, patch);
    }
    commit(f, o, "MODIFIED");
    return 200;
}

static int delete (struct fake_api *f, struct fake_object *o)
{
    struct pl_tree *meta = tree_get(o->tree, "metadata");

    if (!tree_get(meta, "deletionTimestamp")) {
        pl__tree_set(meta, PL_STR("deletionTimestamp"),
                     tree_format(&f->arena, "\"2026-11-15T00:00:00Z\""));
        commit(f, o, "MODIFIED");
    }
    return 200;
}

static int call(void *user, const struct pl_fleet_call *call, struct pl_arena *arena,
                struct pl_str *body)
{
    static const char *const verbs[] = { "create", "merge", "apply", "delete" };
    struct fake_api *f = user;
    struct fake_object *o = find(f, call->cluster, call->plural, call->name);
    struct pl_buf text;
    int status = 404;

    pl__buf_printf(&f->log, "%s %.*s/%s/%.*s%s%s\n", verbs[call->verb], PL_STR_ARG(call->cluster),
                   call->plural, PL_STR_ARG(call->name), call->subresource ? "/" : "",
                   call->subresource ? call->subresource : "");
    if (f->refuse && strcmp(f->refuse, call->plural) == 0)
        return 500;
    if (call->verb == FLEET_CREATE || (call->verb == FLEET_APPLY && !o && !call->subresource))
        status = create(f, call, &o);
    else if (o && call->verb == FLEET_DELETE)
        status = delete (f, o);
    else if (o)
        status = change(f, call, o);
    if (status >= 300)
        return status;
    pl__buf_init(&text, arena, 1 << 20);
    pl__tree_write(&text, o->tree ? o->tree : o->last);
    *body = pl__buf_str(&text);
    return status;
}

static void watch(void *user, struct pl_str cluster, const char *group_version, const char *plural)
{
    struct fake_api *f = user;

    (void)group_version;
    assert(f->watch_count < FAKE_WATCHES_MAX);
    f->watches[f->watch_count].cluster = pl__str_copy(&f->arena, cluster);
    f->watches[f->watch_count++].plural = pl__str_copy(&f->arena, pl__str(plural));
    for (size_t i = 0; i < f->object_count; i++)
        if (f->objects[i].tree && pl__str_equal(f->objects[i].cluster, cluster) &&
            is(f->objects[i].plural, plural))
            tell(f, &f->objects[i], "ADDED");
}

static bool cluster_add(void *user, struct pl_str cluster)
{
    (void)user;
    return !pl__str_equal(cluster, PL_STR(FAKE_REFUSED));
}

static void cluster_remove(void *user, struct pl_str cluster)
{
    struct fake_api *f = user;

    (void)cluster;
    f->removed_clusters++;
}

static struct pl_str kubeconfig(void *user, struct pl_str cluster, struct pl_arena *arena)
{
    (void)user;
    return pl__str_format(arena, "kubeconfig of %.*s", PL_STR_ARG(cluster));
}

void fake_said(void *user, struct pl_str line)
{
    struct fake_api *f = user;

    pl__buf_add(&f->said, line);
    pl__buf_add_char(&f->said, '\n');
}

void fake_init(struct fake_api *f)
{
    memset(f, 0, sizeof *f);
    pl__arena_init(&f->arena, NULL, 1 << 20);
    pl__buf_init(&f->log, &f->arena, 1 << 24);
    pl__buf_init(&f->said, &f->arena, 1 << 24);
}

void fake_release(struct fake_api *f)
{
    pl__arena_release(&f->arena);
}

struct pl_fleet_api fake_interface(struct fake_api *f)
{
    return (struct pl_fleet_api){ .user = f,
                                  .call = call,
                                  .watch = watch,
                                  .cluster_add = cluster_add,
                                  .cluster_remove = cluster_remove,
                                  .kubeconfig = kubeconfig };
}

void fake_deliver(struct fake_api *f, struct pl_fleet *fleet)
{
    while (f->delivered_count < f->event_count) {
        const struct fake_event *e = &f->events[f->delivered_count++];
        pl__fleet_event(fleet, e->cluster, e->line);
    }
}

struct pl_tree *fake_get(struct fake_api *f, const char *cluster, const char *plural,
                         const char *name)
{
    struct fake_object *o = find(f, pl__str(cluster), plural, pl__str(name));

    return o ? o->tree : NULL;
}

struct fake_object *fake_nth(struct fake_api *f, const char *cluster, const char *plural, size_t n)
{
    for (size_t i = 0; i < f->object_count; i++) {
        struct fake_object *o = &f->objects[i];
        if (o->tree && is(o->cluster, cluster) && is(o->plural, plural) && n-- == 0)
            return o;
    }
    return NULL;
}

size_t fake_count(struct fake_api *f, const char *cluster, const char *plural)
{
    size_t count = 0;

    while (fake_nth(f, cluster, plural, count))
        count++;
    return count;
}

struct pl_str fake_condition(const struct pl_tree *object, const char *type, const char *field)
{
    const struct pl_tree *list = tree_at(object, "status", "conditions", NULL);

    return tree_text(tree_get(condition_find(list, pl__str(type)), field));
}

void fake_merge(struct fake_api *f, const char *cluster, const char *plural, const char *name,
                const char *patch)
{
    struct fake_object *o = find(f, pl__str(cluster), plural, pl__str(name));

    assert(o);
    o->tree = pl__patch_merge(&f->arena, o->tree, pl__tree_read(&f->arena, pl__str(patch), NULL));
    commit(f, o, "MODIFIED");
}

void fake_fault(struct fake_api *f, const char *cluster, const char *plural, const char *name,
                const char *fault)
{
    char patch[400];

    snprintf(patch, sizeof patch, "{\"metadata\":{\"annotations\":{\"%s\":%s%s%s}}}",
             FLEET_FAULT_ANNOTATION, fault ? "\"" : "", fault ? fault : "null", fault ? "\"" : "");
    fake_merge(f, cluster, plural, name, patch);
}

void fake_delete(struct fake_api *f, const char *cluster, const char *plural, const char *name)
{
    struct fake_object *o = find(f, pl__str(cluster), plural, pl__str(name));

    assert(o);
    delete (f, o);
}
