#include "apiserver/managed.h"

#include <stdlib.h>

#include "apiserver/patch.h"
#include "apiserver/shape.h"

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

/* False when one of them cannot be understood: then none counts. */
static bool entries_read(struct pl_arena *a, const struct pl_tree *list, struct entries *e)
{
    e->count = 0;
    if (!list || list->type != JSON_ARRAY)
        return true;
    for (const struct pl_tree *t = list->first; t && e->count < ENTRIES_MAX - 2; t = t->next) {
        struct entry entry = {
            .manager = pl__tree_get_str(t, "manager"),
            .operation = pl__tree_get_str(t, "operation"),
            .api_version = pl__tree_get_str(t, "apiVersion"),
            .subresource = pl__tree_get_str(t, "subresource"),
            .time = pl__tree_get_str(t, "time"),
            .set = pl__fields_read(a, pl__tree_at(t, "fieldsV1")),
        };
        if ((!pl__str_equal(entry.operation, PL_STR("Apply")) &&
             !pl__str_equal(entry.operation, PL_STR("Update"))) ||
            entry.api_version.len == 0 ||
            !pl__str_equal(pl__tree_get_str(t, "fieldsType"), PL_STR("FieldsV1"))) {
            e->count = 0;
            return false;
        }
        e->items[e->count++] = entry;
    }
    return true;
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
    if (order == 0)
        order = pl__str_compare(a->api_version, b->api_version);
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
    static const struct pl_str subresources[] = {
        [ENDPOINT_MAIN] = PL_STR_INIT(""),
        [ENDPOINT_STATUS] = PL_STR_INIT("status"),
        [ENDPOINT_SCALE] = PL_STR_INIT("scale"),
    };

    return (struct entry){
        .manager = m->name,
        .operation = operation,
        .api_version = pl__kind_api_version(a, kind),
        .subresource = subresources[m->endpoint],
        .time = m->time,
    };
}

/* --- ordinary writes ----------------------------------------------------------------------------- */

/* "[{}]", and in built-in kinds "[]": forget all owners. */
static bool is_reset(const struct pl_kind *kind, const struct pl_tree *list)
{
    if (!list || list->type != JSON_ARRAY)
        return false;
    if (!list->first)
        return !kind->custom;
    return !list->first->next && list->first->type == JSON_OBJECT && !list->first->first;
}

static struct pl_fields_change change_of(struct pl_arena *a, const struct pl_kind *kind,
                                         enum pl_endpoint endpoint, const struct pl_tree *old,
                                         const struct pl_tree *new)
{
    struct pl_fields_change change = pl__fields_compare(a, kind, old, new);

    change.added = pl__fields_of_endpoint(a, kind, endpoint, change.added);
    change.modified = pl__fields_of_endpoint(a, kind, endpoint, change.modified);
    change.removed = pl__fields_of_endpoint(a, kind, endpoint, change.removed);
    return change;
}

/* What became different belongs to the manager, and to nobody else. */
static void take_changes(struct pl_arena *a, const struct pl_kind *kind,
                         const struct pl_manager *manager, const struct pl_tree *old,
                         const struct pl_tree *new, struct entries *e)
{
    struct pl_fields_change change = change_of(a, kind, manager->endpoint, old, new);
    struct pl_fields *changed = pl__fields_union(a, change.modified, change.added);
    struct pl_fields *lost = pl__fields_union(a, changed, change.removed);
    struct entry mine = entry_of(a, kind, manager, PL_STR("Update"));

    for (size_t i = 0; i < e->count; i++)
        e->items[i].set = pl__fields_minus(a, e->items[i].set, lost);
    mine.set = pl__fields_recorded(a, changed);
    if (!pl__fields_empty(mine.set)) {
        struct entry *there = entry_find(e, &mine);
        mine.set = pl__fields_union(a, there ? there->set : NULL, mine.set);
        if (!there)
            there = &e->items[e->count++];
        *there = mine;
    }
    entries_drop_empty(e);
    qsort(e->items, e->count, sizeof e->items[0], entry_order);
    entries_cap(a, e);
}

void pl__managed_update(struct pl_arena *a, const struct pl_kind *kind,
                        const struct pl_manager *manager, const struct pl_tree *live,
                        struct pl_tree *object)
{
    struct entries *e = PL_NEW(a, struct entries, 1);
    const struct pl_tree *given = managed_fields(object);

    /* Only the object itself can say who owns it, not its status. */
    bool reset = manager->endpoint == ENDPOINT_MAIN && is_reset(kind, given);
    if (manager->endpoint == ENDPOINT_MAIN && !reset)
        entries_read(a, given, e);
    if (e->count == 0 && live && !reset)
        entries_read(a, managed_fields(live), e);
    /* Whoever forgot the owners of an object does not want them back with the next write. */
    if (!live || e->count)
        take_changes(a, kind, manager, live ? without_managed(a, live) : pl__shape_empty(a, kind),
                     without_managed(a, object), e);
    entries_write(a, e, object);
}

void pl__managed_keep_times(struct pl_arena *a, const struct pl_tree *live, struct pl_tree *object)
{
    static const struct pl_str key = PL_STR_INIT("managedFields");
    const struct pl_tree *before = managed_fields(live);
    struct pl_tree *metadata = pl__tree_get(object, PL_STR("metadata"));
    struct pl_tree *now = pl__tree_get(metadata, key);

    if (!before || !now || pl__tree_count(now) != pl__tree_count(before))
        return;
    struct pl_tree *list = pl__tree_copy(a, now);
    const struct pl_tree *old = before->first;
    for (struct pl_tree *entry = list->first; entry; entry = entry->next, old = old->next) {
        const struct pl_tree *time = pl__tree_get(old, PL_STR("time"));
        if (time)
            pl__tree_set(entry, PL_STR("time"), pl__tree_copy(a, time));
        else
            pl__tree_remove(entry, PL_STR("time"));
    }
    if (!pl__tree_equal(list, before))
        return;
    pl__tree_set(metadata, key, list);
    if (!pl__tree_equal(live, object))
        pl__tree_set(metadata, key, now);
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

/* The place of a step among `count`; `count`: none. */
static size_t place_of(const struct pl_str *steps, size_t count, struct pl_str step)
{
    size_t i = 0;

    while (i < count && !pl__str_equal(steps[i], step))
        i++;
    return i;
}

static int check_list(struct applying *p, const struct pl_merge_rule *rule,
                      const struct pl_tree *list, struct pl_str *message)
{
    const struct pl_str *steps = pl__fields_item_steps(p->arena, rule, list);
    size_t count = pl__tree_count(list);

    for (size_t index = 0; index < count; index++) {
        struct pl_str step = steps[index];
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
        if (place_of(steps, index, step) < index) {
            *message =
                pl__str_format(p->arena, ".%.*s: duplicate entries for key %.*s", (int)p->path.len,
                               p->path.text, (int)(step.len - 2), step.ptr + 2);
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

static void emit(struct applying *p, const struct pl_merge_rule *rule, struct pl_tree *target,
                 struct item *theirs)
{
    struct pl_tree *old = theirs->other ? theirs->other->value : NULL;

    theirs->merged = true;
    if (!old || rule->whole)
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
    size_t ours_count, theirs_count, o = 0, t = 0;
    struct item *ours = items_of(p, target, &ours_count);
    struct item *theirs = items_of(p, config, &theirs_count);
    const struct pl_str *our_steps = pl__fields_item_steps(p->arena, rule, target);
    const struct pl_str *their_steps = pl__fields_item_steps(p->arena, rule, config);

    for (size_t i = 0; i < theirs_count; i++) {
        size_t index = place_of(our_steps, ours_count, their_steps[i]);
        if (index == ours_count)
            continue;
        theirs[i].other = &ours[index];
        ours[index].other = &theirs[i];
    }
    target->first = target->last = NULL;
    while (o < ours_count || t < theirs_count) {
        struct item *mine = o < ours_count ? &ours[o] : NULL;
        if (mine && t < theirs_count && mine->other == &theirs[t]) {
            emit(p, rule, target, &theirs[t++]);
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
                emit(p, rule, target, &theirs[t++]);
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
    struct pl_str *steps = rule ? pl__fields_item_steps(p->arena, rule, value) : NULL;
    size_t count = steps ? pl__tree_count(value) : 0;

    for (const struct pl_fields *c = last->first; c; c = c->next) {
        const struct pl_fields *kept = pl__fields_child(keep, c->step);
        struct pl_str name = { c->step.ptr + 2, c->step.len - 2 };
        size_t index = steps ? place_of(steps, count, c->step) : 0, before = p->path.len;
        struct pl_tree *inside = NULL;
        if (value->type == JSON_OBJECT && c->step.ptr[0] == 'f')
            inside = pl__tree_get(value, name);
        else if (index < count)
            inside = pl__tree_item(value, index);
        if (!inside)
            continue;
        if (value->type == JSON_OBJECT)
            pl__rule_path_push(&p->path, name);
        if (c->first)
            prune(p, inside, c, kept);
        p->path.len = before;
        if (kept || (c->first && inside->first))
            continue;
        if (value->type == JSON_OBJECT) {
            pl__tree_remove(value, name);
            continue;
        }
        pl__tree_take(value, index);
        count--;
        memmove(&steps[index], &steps[index + 1], (count - index) * sizeof *steps);
    }
}

/* --- what client-side apply leaves --------------------------------------------------------------- */

static const struct pl_str last_applied_key =
    PL_STR_INIT("kubectl.kubernetes.io/last-applied-configuration");

static struct pl_str last_applied_text(const struct pl_tree *object)
{
    const struct pl_tree *m =
        pl__tree_get(pl__tree_at(object, "metadata.annotations"), last_applied_key);

    return m && m->type == JSON_STRING ? m->text : (struct pl_str){ 0 };
}

static void sort_members(struct pl_tree *t)
{
    struct pl_tree sorted = { .type = t->type }, *m;

    while (t->type == JSON_OBJECT && (m = pl__tree_take(t, 0))) {
        size_t place = 0;
        for (const struct pl_tree *s = sorted.first; s && pl__str_compare(s->key, m->key) < 0;
             s = s->next)
            place++;
        pl__tree_insert(&sorted, place, m);
    }
    if (t->type == JSON_OBJECT)
        t->first = sorted.first, t->last = sorted.last;
    for (struct pl_tree *inside = t->first; inside; inside = inside->next)
        sort_members(inside);
}

/* The annotation keeps telling client-side apply what was applied last. */
static void set_last_applied(struct pl_arena *a, struct pl_tree *object,
                             const struct pl_tree *config)
{
    struct pl_tree *copy = pl__tree_copy(a, config);

    pl__tree_remove(pl__tree_at(copy, "metadata.annotations"), last_applied_key);
    sort_members(copy);
    struct pl_str text = pl__tree_text(a, copy);
    pl__tree_set(pl__tree_at(object, "metadata.annotations"), last_applied_key,
                 pl__tree_str(a, pl__str_format(a, "%.*s\n", PL_STR_ARG(text))));
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
        pl__buf_printf(&b, " using %.*s", PL_STR_ARG(owner->api_version));
    for (size_t i = 0; i < count; i++, conflicts->count++)
        if (conflicts->count < PL_CONFLICTS_MAX)
            conflicts->items[conflicts->count] = (struct pl_conflict){ pl__buf_str(&b), paths[i] };
}

/* What kubectl's client-side apply wrote, and is still as it wrote it: its server-side apply may take that over
 * without force. NULL: nothing. */
static struct pl_fields *last_applied(struct pl_arena *a, const struct pl_kind *kind,
                                      const struct pl_tree *live)
{
    struct pl_str text = last_applied_text(live);
    const struct pl_tree *config = text.len ? pl__tree_read(a, text, NULL) : NULL;

    if (!config ||
        !pl__str_equal(pl__tree_get_str(config, "apiVersion"), pl__kind_api_version(a, kind)))
        return NULL;
    struct pl_fields_change change = pl__fields_compare(a, kind, config, live);
    struct pl_fields *differs =
        pl__fields_union(a, pl__fields_union(a, change.modified, change.added), change.removed);
    return pl__fields_minus(a, pl__fields_of(a, kind, config), differs);
}

/* Takes from the others what changed and what is gone; counts what they would have to give up, but for what is
 * `free` (NULL: nothing). */
static void take_from_others(struct pl_arena *a, struct entries *e, const struct entry *mine,
                             const struct pl_fields_change *change, const struct pl_fields *free,
                             struct pl_conflicts *conflicts)
{
    struct pl_fields *changed = pl__fields_union(a, change->modified, change->added);

    for (size_t i = 0; i < e->count; i++) {
        struct entry *x = &e->items[i];
        if (x == mine)
            continue;
        struct pl_fields *common = pl__fields_common(a, x->set, changed);
        add_conflicts(a, conflicts, x, pl__fields_minus(a, common, free));
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
    const struct pl_tree *before = live ? without_managed(a, live) : pl__shape_empty(a, kind);
    struct pl_manager nobody = { PL_STR("before-first-apply"), manager->endpoint, manager->time };
    struct entry mine = entry_of(a, kind, manager, PL_STR("Apply"));
    bool kubectl = pl__str_equal(manager->name, PL_STR("kubectl"));

    conflicts->count = 0;
    entries_read(a, live ? managed_fields(live) : NULL, e);
    if (live && e->count == 0)
        take_changes(a, kind, &nobody, pl__shape_empty(a, kind), before, e);
    mine.set = pl__fields_recorded(
        a, pl__fields_of_endpoint(a, kind, manager->endpoint,
                                  pl__fields_of(a, kind, without_managed(a, config))));
    struct entry *there = entry_find(e, &mine);
    const struct pl_fields *last = there ? there->set : NULL;
    struct pl_str last_time = there ? there->time : (struct pl_str){ 0 };
    if (!there)
        there = &e->items[e->count++];
    *there = mine;

    struct pl_tree *object = pl__tree_copy(a, before);
    merge_members(&p, object, without_managed(a, config));
    if (last) {
        struct pl_fields *keep = NULL;
        for (size_t i = 0; i < e->count; i++)
            keep = pl__fields_union(a, keep, e->items[i].set);
        prune(&p, object, last, keep);
    }
    if (pl__tree_equal(before, object))
        there->time = last_time; /* the time is that of the last change */
    struct pl_fields_change change = change_of(a, kind, manager->endpoint, before, object);
    take_from_others(a, e, there, &change, kubectl ? last_applied(a, kind, before) : NULL,
                     conflicts);
    if (conflicts->count && !force)
        return -1;
    if (kubectl && last_applied_text(object).len)
        set_last_applied(a, object, config);
    entries_write(a, e, object);
    *result = object;
    return 0;
}
