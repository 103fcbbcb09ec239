#include "apiserver/managed.h"

#include <stdlib.h>

#include "apiserver/patch.h"

/* Owners by Update beyond this number become one. */
enum { UPDATERS_MAX = 10, ENTRIES_MAX = 256 };

struct entry {
    struct pl_str manager;
    struct pl_str operation; /* Apply, Update */
    struct pl_str api_version;
    struct pl_str subresource;
    struct pl_str time;
    struct pl_fields *set;
};

struct entries {
    struct entry items[ENTRIES_MAX];
    size_t count;
};

/* --- entries ------------------------------------------------------------------------------------- */

static const struct pl_tree *managed_fields(const struct pl_tree *object)
{
    return pl__tree_at(object, "metadata.managedFields");
}

static void entries_read(struct pl_arena *a, const struct pl_tree *list, struct entries *e)
{
    e->count = 0;
    if (!list || list->type != JSON_ARRAY)
        return;
    for (const struct pl_tree *t = list->first; t && e->count < ENTRIES_MAX - 2; t = t->next) {
        struct entry entry = {
            .manager = pl__tree_get_str(t, "manager"),
            .operation = pl__tree_get_str(t, "operation"),
            .api_version = pl__tree_get_str(t, "apiVersion"),
            .subresource = pl__tree_get_str(t, "subresource"),
            .time = pl__tree_get_str(t, "time"),
            .set = pl__fields_read(a, pl__tree_at(t, "fieldsV1")),
        };
        bool known = pl__str_equal(entry.operation, PL_STR("Apply")) ||
                     pl__str_equal(entry.operation, PL_STR("Update"));
        if (known && !pl__fields_empty(entry.set))
            e->items[e->count++] = entry;
    }
}

static struct entry *entry_find(struct entries *e, const struct entry *like)
{
    bool apply = pl__str_equal(like->operation, PL_STR("Apply"));

    for (size_t i = 0; i < e->count; i++) {
        struct entry *x = &e->items[i];
        if (pl__str_equal(x->manager, like->manager) &&
            pl__str_equal(x->operation, like->operation) &&
            pl__str_equal(x->subresource, like->subresource) &&
            (apply || pl__str_equal(x->api_version, like->api_version)))
            return x;
    }
    return NULL;
}

static int entry_order(const void *x, const void *y)
{
    const struct entry *a = x, *b = y;
    int order = pl__str_compare(a->operation, b->operation); /* Apply before Update */

    if (order == 0)
        order = pl__str_compare(a->time, b->time);
    if (order == 0)
        order = pl__str_compare(a->manager, b->manager);
    return order ? order : pl__str_compare(a->subresource, b->subresource);
}

static void entries_drop_empty(struct entries *e)
{
    size_t kept = 0;

    for (size_t i = 0; i < e->count; i++)
        if (!pl__fields_empty(e->items[i].set))
            e->items[kept++] = e->items[i];
    e->count = kept;
}

/* Folds the oldest owners by Update into one when there are too many; `e` is sorted. */
static void entries_cap(struct pl_arena *a, struct entries *e)
{
    size_t first = 0;

    while (first < e->count && pl__str_equal(e->items[first].operation, PL_STR("Apply")))
        first++;
    while (e->count - first > UPDATERS_MAX) {
        struct entry *x = &e->items[first], *y = &e->items[first + 1];
        y->set = pl__fields_union(a, x->set, y->set);
        y->manager = PL_STR("ancient-changes");
        y->subresource = (struct pl_str){ 0 };
        memmove(x, y, (e->count - first - 1) * sizeof *x);
        e->count--;
    }
}

static void set_str(struct pl_arena *a, struct pl_tree *t, struct pl_str key, struct pl_str value)
{
    if (value.len)
        pl__tree_set(t, key, pl__tree_str(a, value));
}

static void entries_write(struct pl_arena *a, struct entries *e, struct pl_tree *object)
{
    struct pl_tree *metadata = pl__tree_make(a, object, PL_STR("metadata"));
    struct pl_tree *list = pl__tree_new(a, JSON_ARRAY);

    entries_drop_empty(e);
    qsort(e->items, e->count, sizeof e->items[0], entry_order);
    entries_cap(a, e);
    for (size_t i = 0; i < e->count; i++) {
        const struct entry *x = &e->items[i];
        struct pl_tree *t = pl__tree_new(a, JSON_OBJECT);
        set_str(a, t, PL_STR("manager"), x->manager);
        set_str(a, t, PL_STR("operation"), x->operation);
        set_str(a, t, PL_STR("apiVersion"), x->api_version);
        set_str(a, t, PL_STR("time"), x->time);
        pl__tree_set(t, PL_STR("fieldsType"), pl__tree_str(a, PL_STR("FieldsV1")));
        pl__tree_set(t, PL_STR("fieldsV1"), pl__fields_write(a, x->set));
        set_str(a, t, PL_STR("subresource"), x->subresource);
        pl__tree_append(list, t);
    }
    if (e->count)
        pl__tree_set(metadata, PL_STR("managedFields"), list);
    else
        pl__tree_remove(metadata, PL_STR("managedFields"));
}

/* A copy without managedFields: they own nothing and are owned by nobody. */
static struct pl_tree *without_managed(struct pl_arena *a, const struct pl_tree *object)
{
    struct pl_tree *copy = pl__tree_copy(a, object);

    pl__tree_remove(pl__tree_get(copy, PL_STR("metadata")), PL_STR("managedFields"));
    return copy;
}

static struct entry entry_of(struct pl_arena *a, const struct pl_kind *kind,
                             const struct pl_manager *m, struct pl_str operation)
{
    return (struct entry){
        .manager = m->name,
        .operation = operation,
        .api_version = pl__kind_api_version(a, kind),
        .subresource = m->endpoint == ENDPOINT_STATUS ? PL_STR("status") : (struct pl_str){ 0 },
        .time = m->time,
    };
}

static struct pl_fields *recorded(struct pl_arena *a, const struct pl_kind *kind,
                                  const struct pl_manager *m, const struct pl_fields *set)
{
    return pl__fields_recorded(a, kind, m->endpoint, set);
}

/* --- ordinary writes ----------------------------------------------------------------------------- */

/* "[{}]" */
static bool is_reset(const struct pl_tree *list)
{
    return list && list->type == JSON_ARRAY && list->first && !list->first->next &&
           list->first->type == JSON_OBJECT && !list->first->first;
}

void pl__managed_update(struct pl_arena *a, const struct pl_kind *kind,
                        const struct pl_manager *manager, const struct pl_tree *live,
                        struct pl_tree *object)
{
    struct entries *e = PL_NEW(a, struct entries, 1);
    const struct pl_tree *given = managed_fields(object);

    if (!is_reset(given)) {
        entries_read(a, given, e);
        if (e->count == 0 && live)
            entries_read(a, managed_fields(live), e);
    }
    struct pl_fields_change change = pl__fields_compare(
        a, kind, live ? without_managed(a, live) : NULL, without_managed(a, object));
    struct pl_fields *taken =
        recorded(a, kind, manager, pl__fields_union(a, change.modified, change.added));
    struct pl_fields *lost = pl__fields_union(a, taken, change.removed);
    for (size_t i = 0; i < e->count; i++)
        e->items[i].set = pl__fields_minus(a, e->items[i].set, lost);
    if (!is_reset(given) && !pl__fields_empty(taken)) {
        struct entry mine = entry_of(a, kind, manager, PL_STR("Update"));
        struct entry *there = entry_find(e, &mine);
        mine.set = pl__fields_union(a, there ? there->set : NULL, taken);
        if (!there)
            there = &e->items[e->count++];
        *there = mine;
    }
    entries_write(a, e, object);
}

/* --- apply --------------------------------------------------------------------------------------- */

struct applying {
    struct pl_arena *arena;
    const struct pl_kind *kind;
    struct pl_rule_path path;
};

static const struct pl_merge_rule *rule_here(const struct applying *p)
{
    return pl__rule_path_find(p->kind, &p->path);
}

static int check_list(struct applying *p, const struct pl_merge_rule *rule,
                      const struct pl_tree *list, struct pl_str *message)
{
    size_t index = 0;

    for (const struct pl_tree *i = list->first; i; i = i->next, index++) {
        struct pl_str step = pl__fields_item_step(p->arena, rule, i);
        if (step.len == 0) {
            *message = pl__str_format(
                p->arena,
                ".%.*s: element %zu: associative list with keys has an element that omits key "
                "field \"%.*s\" (and doesn't have default value)",
                (int)p->path.len, p->path.text, index,
                rule->merge == MERGE_MAP ? (int)strcspn(rule->keys, ",") : 0,
                rule->merge == MERGE_MAP ? rule->keys : "");
            return -1;
        }
        for (const struct pl_tree *k = list->first; k != i; k = k->next)
            if (pl__str_equal(step, pl__fields_item_step(p->arena, rule, k))) {
                *message = pl__str_format(p->arena, ".%.*s: duplicate entries for key %.*s",
                                          (int)p->path.len, p->path.text, (int)(step.len - 2),
                                          step.ptr + 2);
                return -1;
            }
    }
    return 0;
}

static int check(struct applying *p, const struct pl_tree *value, struct pl_str *message)
{
    const struct pl_merge_rule *rule = p->path.len ? rule_here(p) : NULL;

    if (rule && rule->merge == MERGE_ATOMIC)
        return 0;
    if (value->type == JSON_ARRAY) {
        if (!rule)
            return 0;
        if (pl__tree_count(value) > 1024) {
            *message = PL_STR("a list has more than 1024 items to merge");
            return -1;
        }
        if (check_list(p, rule, value, message) < 0)
            return -1;
    }
    for (const struct pl_tree *inside = value->first; inside; inside = inside->next) {
        size_t before = p->path.len;
        if (value->type == JSON_OBJECT)
            pl__rule_path_push(&p->path, inside->key);
        int failed = check(p, inside, message);
        p->path.len = before;
        if (failed)
            return -1;
    }
    return 0;
}

int pl__managed_check(struct pl_arena *a, const struct pl_kind *kind, const struct pl_tree *config,
                      struct pl_str *message)
{
    struct applying p = { .arena = a, .kind = kind };

    return check(&p, config, message);
}

static struct pl_tree *item_with(struct applying *p, const struct pl_merge_rule *rule,
                                 const struct pl_tree *list, struct pl_str step, size_t *index)
{
    *index = 0;
    for (struct pl_tree *i = list->first; i; i = i->next, ++*index)
        if (pl__str_equal(pl__fields_item_step(p->arena, rule, i), step))
            return i;
    return NULL;
}

static void merge_members(struct applying *p, struct pl_tree *target, const struct pl_tree *config);

/* An item of one list, and the one of the other list that it is to be merged with. */
struct item {
    struct pl_tree *value;
    struct item *other; /* NULL: none */
    bool merged;
};

static struct item *items_of(struct applying *p, const struct pl_tree *list, size_t *count)
{
    size_t i = 0;

    *count = pl__tree_count(list);
    struct item *items = pl__arena_alloc(p->arena, (*count + 1) * sizeof *items);
    for (struct pl_tree *v = list->first; v; v = v->next)
        items[i++] = (struct item){ .value = v };
    return items;
}

static void emit(struct applying *p, struct pl_tree *target, struct item *theirs)
{
    struct pl_tree *old = theirs->other ? theirs->other->value : NULL;

    theirs->merged = true;
    if (!old)
        old = pl__tree_copy(p->arena, theirs->value);
    else if (old->type == JSON_OBJECT && theirs->value->type == JSON_OBJECT)
        merge_members(p, old, theirs->value);
    pl__tree_append(target, old);
}

/* The place of the next item, from `at` on, that both lists have; `count`: none. */
static size_t next_shared(const struct item *items, size_t at, size_t count)
{
    while (at < count && !items[at].other)
        at++;
    return at;
}

/* Items that both have come in the order of the configuration, the others near where they were: as
 * structured-merge-diff does it, step by step. */
static void merge_items(struct applying *p, const struct pl_merge_rule *rule,
                        struct pl_tree *target, const struct pl_tree *config)
{
    size_t ours_count, theirs_count, o = 0, t = 0, index;
    struct item *ours = items_of(p, target, &ours_count);
    struct item *theirs = items_of(p, config, &theirs_count);

    for (size_t i = 0; i < theirs_count; i++) {
        struct pl_str step = pl__fields_item_step(p->arena, rule, theirs[i].value);
        if (!item_with(p, rule, target, step, &index))
            continue;
        theirs[i].other = &ours[index];
        ours[index].other = &theirs[i];
    }
    target->first = target->last = NULL;
    while (o < ours_count || t < theirs_count) {
        struct item *mine = o < ours_count ? &ours[o] : NULL;
        if (mine && t < theirs_count && mine->other == &theirs[t]) {
            emit(p, target, &theirs[t++]);
            o++;
        } else if (mine && !mine->other) {
            pl__tree_append(target, mine->value);
            o++;
        } else if (mine && next_shared(theirs, t, theirs_count) < theirs_count &&
                   mine->other != &theirs[next_shared(theirs, t, theirs_count)]) {
            o++; /* it comes, or came, where the configuration has it */
        } else {
            o += mine && mine->other->merged;
            if (t < theirs_count)
                emit(p, target, &theirs[t++]);
        }
    }
}

static void merge_members(struct applying *p, struct pl_tree *target, const struct pl_tree *config)
{
    for (const struct pl_tree *m = config->first; m; m = m->next) {
        struct pl_tree *old = pl__tree_get(target, m->key);
        size_t before = pl__rule_path_push(&p->path, m->key);
        const struct pl_merge_rule *rule = rule_here(p);
        bool atomic = rule && rule->merge == MERGE_ATOMIC;
        if (old && old->type == JSON_OBJECT && m->type == JSON_OBJECT && !atomic)
            merge_members(p, old, m);
        else if (old && old->type == JSON_ARRAY && m->type == JSON_ARRAY && rule && !atomic)
            merge_items(p, rule, old, m);
        else
            pl__tree_set(target, m->key, pl__tree_copy(p->arena, m));
        p->path.len = before;
    }
}

/* What the manager owned and no longer names goes, unless somebody else owns it: `keep` is what anybody
 * owns now. A place that is left empty by that goes, too. */
static void prune(struct applying *p, struct pl_tree *value, const struct pl_fields *last,
                  const struct pl_fields *keep)
{
    const struct pl_merge_rule *rule = value->type == JSON_ARRAY ? rule_here(p) : NULL;

    for (const struct pl_fields *c = last->first; c; c = c->next) {
        const struct pl_fields *kept = pl__fields_child(keep, c->step);
        struct pl_str name = { c->step.ptr + 2, c->step.len - 2 };
        size_t index = 0, before = p->path.len;
        struct pl_tree *inside = NULL;
        if (value->type == JSON_OBJECT && c->step.ptr[0] == 'f')
            inside = pl__tree_get(value, name);
        else if (rule)
            inside = item_with(p, rule, value, c->step, &index);
        if (!inside)
            continue;
        if (value->type == JSON_OBJECT)
            pl__rule_path_push(&p->path, name);
        if (c->first)
            prune(p, inside, c, kept);
        p->path.len = before;
        if (kept || (c->first && inside->first))
            continue;
        if (value->type == JSON_OBJECT)
            pl__tree_remove(value, name);
        else
            pl__tree_take(value, index);
    }
}

/* The part of a configuration that this endpoint takes. */
static struct pl_tree *for_endpoint(struct pl_arena *a, const struct pl_kind *kind,
                                    enum pl_endpoint endpoint, const struct pl_tree *config)
{
    static const char *const identity[] = { "name",       "namespace",         "uid",
                                            "generation", "creationTimestamp", "resourceVersion" };
    struct pl_tree *part = without_managed(a, config);
    struct pl_tree *metadata = pl__tree_get(part, PL_STR("metadata"));

    if (endpoint == ENDPOINT_MAIN && kind->status)
        pl__tree_remove(part, PL_STR("status"));
    if (endpoint == ENDPOINT_STATUS) {
        struct pl_tree *status = pl__tree_remove(part, PL_STR("status"));
        part->first = part->last = NULL;
        if (status)
            pl__tree_set(part, PL_STR("status"), status);
        if (!kind->custom && metadata)
            pl__tree_set(part, PL_STR("metadata"), metadata);
    }
    for (size_t i = 0; i < sizeof identity / sizeof identity[0]; i++)
        pl__tree_remove(metadata, pl__str(identity[i]));
    return part;
}

/* Who owned what before managedFields were kept. */
static void before_first_apply(struct pl_arena *a, const struct pl_kind *kind,
                               const struct pl_manager *manager, const struct pl_tree *live,
                               struct entries *e)
{
    struct pl_manager before = *manager;

    before.name = PL_STR("before-first-apply");
    before.endpoint = ENDPOINT_MAIN;
    struct entry entry = entry_of(a, kind, &before, PL_STR("Update"));
    entry.set = pl__fields_recorded(a, kind, manager->endpoint, pl__fields_of(a, kind, live));
    e->items[e->count++] = entry;
}

static void add_conflicts(struct pl_arena *a, struct pl_conflicts *conflicts,
                          const struct entry *owner, const struct pl_fields *set)
{
    struct pl_str paths[PL_CONFLICTS_MAX];
    size_t count = pl__fields_paths(a, set, paths, PL_CONFLICTS_MAX);
    struct pl_buf b;

    pl__buf_init(&b, a, 1024);
    pl__buf_printf(&b, "\"%.*s\"", PL_STR_ARG(owner->manager));
    if (owner->subresource.len)
        pl__buf_printf(&b, " with subresource \"%.*s\"", PL_STR_ARG(owner->subresource));
    if (pl__str_equal(owner->operation, PL_STR("Update")))
        pl__buf_printf(&b, " using %.*s at %.*s", PL_STR_ARG(owner->api_version),
                       PL_STR_ARG(owner->time));
    for (size_t i = 0; i < count; i++, conflicts->count++)
        if (conflicts->count < PL_CONFLICTS_MAX)
            conflicts->items[conflicts->count] = (struct pl_conflict){ pl__buf_str(&b), paths[i] };
}

/* Takes from the others what changed and what is gone; counts what they would have to give up. */
static void take_from_others(struct pl_arena *a, struct entries *e, const struct entry *mine,
                             const struct pl_fields_change *change, struct pl_conflicts *conflicts)
{
    struct pl_fields *changed = pl__fields_union(a, change->modified, change->added);

    for (size_t i = 0; i < e->count; i++) {
        struct entry *x = &e->items[i];
        if (x == mine)
            continue;
        struct pl_fields *common = pl__fields_common(a, x->set, changed);
        if (!pl__fields_empty(common))
            add_conflicts(a, conflicts, x, common);
        x->set = pl__fields_minus(a, pl__fields_minus(a, x->set, common), change->removed);
    }
}

int pl__managed_apply(struct pl_arena *a, const struct pl_kind *kind,
                      const struct pl_manager *manager, bool force, const struct pl_tree *live,
                      const struct pl_tree *config, struct pl_tree **result,
                      struct pl_conflicts *conflicts)
{
    struct applying p = { .arena = a, .kind = kind };
    struct entries *e = PL_NEW(a, struct entries, 1);
    struct pl_tree *part = for_endpoint(a, kind, manager->endpoint, config);
    const struct pl_tree *before = live ? without_managed(a, live) : NULL;
    struct entry mine = entry_of(a, kind, manager, PL_STR("Apply"));

    conflicts->count = 0;
    entries_read(a, live ? managed_fields(live) : NULL, e);
    if (live && e->count == 0)
        before_first_apply(a, kind, manager, before, e);
    mine.set = recorded(a, kind, manager, pl__fields_of(a, kind, part));
    struct entry *there = entry_find(e, &mine);
    struct pl_fields *last = there ? there->set : NULL;
    if (!there)
        there = &e->items[e->count++];
    *there = mine;

    struct pl_tree *object = before ? pl__tree_copy(a, before) : without_managed(a, config);
    merge_members(&p, object, part);
    if (last) {
        struct pl_fields *keep = NULL;
        for (size_t i = 0; i < e->count; i++)
            keep = pl__fields_union(a, keep, e->items[i].set);
        prune(&p, object, last, keep);
    }
    if (before && last && pl__tree_equal(before, object) && pl__fields_equal(last, mine.set)) {
        *result = pl__tree_copy(a, live); /* nothing changed: not even the time */
        return 0;
    }
    struct pl_fields_change change = pl__fields_compare(a, kind, before, object);
    take_from_others(a, e, there, &change, conflicts);
    if (conflicts->count && !force)
        return -1;
    entries_write(a, e, object);
    *result = object;
    return 0;
}
