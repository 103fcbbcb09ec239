#include "apiserver/fields.h"

#include <stdlib.h>

#include "apiserver/patch.h"

/* More items than this, and a list is one field: merging looks for each item among the others. */
enum { ITEMS_MAX = 4096 };

struct walking {
    struct pl_arena *arena;
    const struct pl_kind *kind;
    struct pl_rule_path path;
};

/* --- nodes --------------------------------------------------------------------------------------- */

static struct pl_fields *new_node(struct pl_arena *a, struct pl_str step, bool member)
{
    struct pl_fields *node = PL_NEW(a, struct pl_fields, 1);

    node->step = step;
    node->member = member;
    return node;
}

/* The child with this step, made where its place is. */
static struct pl_fields *make_child(struct pl_arena *a, struct pl_fields *parent,
                                    struct pl_str step)
{
    struct pl_fields **at = &parent->first;

    /* Most objects have their fields sorted already. */
    if (parent->last && pl__str_compare(parent->last->step, step) < 0)
        at = &parent->last->next;
    int order = 1;
    while (*at && (order = pl__str_compare((*at)->step, step)) < 0)
        at = &(*at)->next;
    if (order == 0)
        return *at;
    struct pl_fields *node = new_node(a, step, false);
    node->next = *at;
    *at = node;
    if (!node->next)
        parent->last = node;
    return node;
}

static void append(struct pl_fields *parent, struct pl_fields *node)
{
    if (parent->last)
        parent->last->next = node;
    else
        parent->first = node;
    parent->last = node;
}

struct pl_fields *pl__fields_child(const struct pl_fields *set, struct pl_str step)
{
    for (struct pl_fields *c = set ? set->first : NULL; c; c = c->next)
        if (pl__str_equal(c->step, step))
            return c;
    return NULL;
}

bool pl__fields_empty(const struct pl_fields *set)
{
    if (!set)
        return true;
    if (set->member)
        return false;
    for (const struct pl_fields *c = set->first; c; c = c->next)
        if (!pl__fields_empty(c))
            return false;
    return true;
}

bool pl__fields_equal(const struct pl_fields *x, const struct pl_fields *y)
{
    if (!x || !y)
        return pl__fields_empty(x) && pl__fields_empty(y);
    if (x->member != y->member)
        return false;
    const struct pl_fields *i = x->first, *k = y->first;
    for (; i && k; i = i->next, k = k->next)
        if (!pl__str_equal(i->step, k->step) || !pl__fields_equal(i, k))
            return false;
    return !i && !k;
}

/* --- of objects ---------------------------------------------------------------------------------- */

static struct pl_str field_step(struct pl_arena *a, struct pl_str name)
{
    return pl__str_format(a, "f:%.*s", PL_STR_ARG(name));
}

/* Keys are written sorted. They come from our own table, where they are few. */
static struct pl_str keys_step(struct pl_arena *a, const char *keys, const struct pl_tree *item)
{
    struct pl_tree *found = pl__tree_new(a, JSON_OBJECT);

    while (*keys) {
        size_t len = strcspn(keys, ",");
        struct pl_str key = { keys, len };
        const struct pl_tree *value = pl__tree_get(item, key);
        if (value && value->type != JSON_OBJECT && value->type != JSON_ARRAY) {
            size_t place = 0;
            for (const struct pl_tree *m = found->first; m && pl__str_compare(m->key, key) < 0;
                 m = m->next)
                place++;
            struct pl_tree *copy = pl__tree_copy(a, value);
            copy->key = key;
            pl__tree_insert(found, place, copy);
        }
        keys += len + (keys[len] == ',');
    }
    if (!found->first)
        return (struct pl_str){ 0 };
    struct pl_str text = pl__tree_text(a, found);
    return pl__str_format(a, "k:%.*s", PL_STR_ARG(text));
}

struct pl_str pl__fields_item_step(struct pl_arena *a, const struct pl_merge_rule *rule,
                                   const struct pl_tree *item)
{
    if (rule->merge == MERGE_MAP)
        return item->type == JSON_OBJECT ? keys_step(a, rule->keys, item) : (struct pl_str){ 0 };
    if (item->type == JSON_OBJECT || item->type == JSON_ARRAY)
        return (struct pl_str){ 0 };
    if (item->type == JSON_NULL)
        return (struct pl_str){ 0 };
    struct pl_str text = pl__tree_text(a, item);
    return pl__str_format(a, "v:%.*s", PL_STR_ARG(text));
}

struct pl_str *pl__fields_item_steps(struct pl_arena *a, const struct pl_merge_rule *rule,
                                     const struct pl_tree *list)
{
    struct pl_str *steps = PL_NEW(a, struct pl_str, pl__tree_count(list) + 1);
    size_t i = 0;

    for (const struct pl_tree *item = list->first; item; item = item->next)
        steps[i++] = pl__fields_item_step(a, rule, item);
    return steps;
}

/* The steps of all items, or NULL when the list has to be taken as one field. */
static struct pl_str *item_steps(struct walking *w, const struct pl_tree *list,
                                 const struct pl_merge_rule *rule)
{
    size_t count = pl__tree_count(list);

    if (count > ITEMS_MAX)
        return NULL;
    struct pl_str *steps = pl__fields_item_steps(w->arena, rule, list);
    for (size_t i = 0; i < count; i++)
        if (steps[i].len == 0)
            return NULL;
    return steps;
}

/* The rule by which the parts of this value are told apart; NULL: it is one field. */
static const struct pl_merge_rule *list_rule(const struct walking *w)
{
    const struct pl_merge_rule *rule = pl__rule_path_find(w->kind, &w->path);

    return rule && rule->merge != MERGE_ATOMIC ? rule : NULL;
}

static bool atomic_object(const struct walking *w)
{
    const struct pl_merge_rule *rule = pl__rule_path_find(w->kind, &w->path);

    return rule && rule->merge == MERGE_ATOMIC;
}

static int key_order(const void *x, const void *y)
{
    return pl__str_compare((*(const struct pl_tree *const *)x)->key,
                           (*(const struct pl_tree *const *)y)->key);
}

/* The members by their keys, NULL behind the last: in the order of steps each finds its place at once, and two
 * objects are compared by going through both. */
static const struct pl_tree **sorted_members(struct walking *w, const struct pl_tree *object)
{
    size_t count = pl__tree_count(object), i = 0;
    const struct pl_tree **members = PL_NEW(w->arena, const struct pl_tree *, count + 1);

    for (const struct pl_tree *m = object->first; m; m = m->next)
        members[i++] = m;
    qsort(members, count, sizeof members[0], key_order);
    return members;
}

/* With `between` the places on the way are members, too. */
static void collect(struct walking *w, struct pl_fields *node, const struct pl_tree *value,
                    bool between)
{
    if (value->type == JSON_OBJECT && value->first && !atomic_object(w)) {
        node->member |= between;
        for (const struct pl_tree **m = sorted_members(w, value); *m; m++) {
            size_t before = pl__rule_path_push(&w->path, (*m)->key);
            collect(w, make_child(w->arena, node, field_step(w->arena, (*m)->key)), *m, between);
            w->path.len = before;
        }
        return;
    }
    const struct pl_merge_rule *rule = value->type == JSON_ARRAY ? list_rule(w) : NULL;
    const struct pl_str *steps = rule ? item_steps(w, value, rule) : NULL;
    node->member |= !steps || between || !value->first;
    if (!steps)
        return;
    for (const struct pl_tree *item = value->first; item; item = item->next) {
        struct pl_fields *child = make_child(w->arena, node, *steps++);
        if (!rule->whole)
            collect(w, child, item, between);
        child->member = true;
    }
}

struct pl_fields *pl__fields_of(struct pl_arena *a, const struct pl_kind *kind,
                                const struct pl_tree *object)
{
    struct walking w = { .arena = a, .kind = kind };
    struct pl_fields *set = new_node(a, (struct pl_str){ 0 }, false);

    if (object && object->first)
        collect(&w, set, object, false);
    set->member = false;
    return set;
}

/* --- comparing ----------------------------------------------------------------------------------- */

struct change_nodes {
    struct pl_fields *added, *modified, *removed;
};

static struct change_nodes step_down(struct walking *w, struct change_nodes at, struct pl_str step)
{
    return (struct change_nodes){ make_child(w->arena, at.added, step),
                                  make_child(w->arena, at.modified, step),
                                  make_child(w->arena, at.removed, step) };
}

static void compare(struct walking *w, struct change_nodes at, const struct pl_tree *old,
                    const struct pl_tree *new);

static void compare_objects(struct walking *w, struct change_nodes at, const struct pl_tree *old,
                            const struct pl_tree *new)
{
    const struct pl_tree **left = sorted_members(w, old), **right = sorted_members(w, new);

    while (*left || *right) {
        int order = !*left ? 1 : !*right ? -1 : pl__str_compare((*left)->key, (*right)->key);
        struct pl_str key = order <= 0 ? (*left)->key : (*right)->key;
        const struct pl_tree *x = order <= 0 ? *left++ : NULL;
        const struct pl_tree *y = order >= 0 ? *right++ : NULL;
        if (x && y && pl__tree_equal(x, y))
            continue;
        size_t before = pl__rule_path_push(&w->path, key);
        compare(w, step_down(w, at, field_step(w->arena, key)), x, y);
        w->path.len = before;
    }
}

static const struct pl_tree *item_with(const struct pl_tree *list, const struct pl_str *steps,
                                       struct pl_str step)
{
    for (const struct pl_tree *item = list->first; item; item = item->next)
        if (pl__str_equal(*steps++, step))
            return item;
    return NULL;
}

static void compare_items(struct walking *w, struct change_nodes at, const struct pl_tree *old,
                          const struct pl_tree *new, bool whole)
{
    if (whole)
        (!old ? at.added : !new ? at.removed : at.modified)->member = true;
    else
        compare(w, at, old, new);
}

static void compare_lists(struct walking *w, struct change_nodes at, const struct pl_tree *old,
                          const struct pl_str *old_steps, const struct pl_tree *new,
                          const struct pl_str *new_steps, bool whole)
{
    const struct pl_str *step = old_steps;

    for (const struct pl_tree *item = old->first; item; item = item->next, step++) {
        const struct pl_tree *other = item_with(new, new_steps, *step);
        if (!other || !pl__tree_equal(item, other))
            compare_items(w, step_down(w, at, *step), item, other, whole);
    }
    step = new_steps;
    for (const struct pl_tree *item = new->first; item; item = item->next, step++)
        if (!item_with(old, old_steps, *step))
            compare_items(w, step_down(w, at, *step), NULL, item, whole);
}

/* null stands for nothing inside of what the other is. */
static const struct pl_tree *or_empty(const struct pl_tree *value, const struct pl_tree *other)
{
    static const struct pl_tree object = { .type = JSON_OBJECT }, array = { .type = JSON_ARRAY };

    if (!value || !other || value->type != JSON_NULL || !other->first)
        return value;
    return other->type == JSON_OBJECT ? &object : &array;
}

/* `old` and `new` differ; one of them may be NULL. */
static void compare(struct walking *w, struct change_nodes at, const struct pl_tree *old,
                    const struct pl_tree *new)
{
    old = or_empty(old, new);
    new = or_empty(new, old);
    if (!old) {
        collect(w, at.added, new, true);
    } else if (!new) {
        collect(w, at.removed, old, true);
    } else if (old->type == JSON_OBJECT && new->type == JSON_OBJECT && !atomic_object(w)) {
        compare_objects(w, at, old, new);
    } else if (old->type == JSON_ARRAY && new->type == JSON_ARRAY) {
        const struct pl_merge_rule *rule = list_rule(w);
        const struct pl_str *old_steps = rule ? item_steps(w, old, rule) : NULL;
        const struct pl_str *new_steps = rule ? item_steps(w, new, rule) : NULL;
        if (old_steps && new_steps)
            compare_lists(w, at, old, old_steps, new, new_steps, rule->whole);
        else
            at.modified->member = true;
    } else {
        at.modified->member = true;
    }
}

static struct pl_fields *compact(struct pl_arena *a, const struct pl_fields *set)
{
    static const struct pl_fields none;

    return pl__fields_union(a, set, &none);
}

struct pl_fields_change pl__fields_compare(struct pl_arena *a, const struct pl_kind *kind,
                                           const struct pl_tree *old, const struct pl_tree *new)
{
    struct walking w = { .arena = a, .kind = kind };
    struct pl_str root = { 0 };
    struct change_nodes at = { new_node(a, root, false), new_node(a, root, false),
                               new_node(a, root, false) };

    if (old || new)
        compare(&w, at, old, new);
    at.added->member = at.removed->member = false;
    return (struct pl_fields_change){ compact(a, at.added), compact(a, at.modified),
                                      compact(a, at.removed) };
}

/* --- as FieldsV1 --------------------------------------------------------------------------------- */

static bool known_step(struct pl_str step)
{
    return step.len > 1 && step.ptr[1] == ':' && strchr("fkvi", step.ptr[0]) != NULL;
}

static void read_node(struct pl_arena *a, struct pl_fields *node, const struct pl_tree *t)
{
    if (!t->first)
        node->member = true;
    for (const struct pl_tree *m = t->first; m; m = m->next) {
        if (pl__str_equal(m->key, PL_STR(".")))
            node->member = true;
        else if (known_step(m->key) && m->type == JSON_OBJECT)
            read_node(a, make_child(a, node, m->key), m);
    }
}

struct pl_fields *pl__fields_read(struct pl_arena *a, const struct pl_tree *fields_v1)
{
    struct pl_fields *set = new_node(a, (struct pl_str){ 0 }, false);

    if (fields_v1 && fields_v1->type == JSON_OBJECT)
        read_node(a, set, fields_v1);
    set->member = false;
    return set;
}

struct pl_tree *pl__fields_write(struct pl_arena *a, const struct pl_fields *set)
{
    struct pl_tree *t = pl__tree_new(a, JSON_OBJECT);

    if (set->member && set->first)
        pl__tree_set(t, PL_STR("."), pl__tree_new(a, JSON_OBJECT));
    for (const struct pl_fields *c = set->first; c; c = c->next) {
        struct pl_tree *inside = pl__fields_write(a, c);
        inside->key = c->step;
        pl__tree_append(t, inside);
    }
    return t;
}

/* --- operations ---------------------------------------------------------------------------------- */

enum operation {
    UNION,
    MINUS,
    COMMON,
};

static bool combine_member(enum operation op, bool x, bool y)
{
    return op == UNION ? x || y : op == MINUS ? x && !y : x && y;
}

/* NULL stands for an empty set, both ways. */
static struct pl_fields *combine(struct pl_arena *a, enum operation op, const struct pl_fields *x,
                                 const struct pl_fields *y)
{
    const struct pl_fields *i = x ? x->first : NULL, *k = y ? y->first : NULL;
    struct pl_fields *node =
        new_node(a, x ? x->step : y->step, combine_member(op, x && x->member, y && y->member));

    while (i || k) {
        int order = !i ? 1 : !k ? -1 : pl__str_compare(i->step, k->step);
        const struct pl_fields *from_x = order <= 0 ? i : NULL, *from_y = order >= 0 ? k : NULL;
        if (from_x)
            i = i->next;
        if (from_y)
            k = k->next;
        if ((op == MINUS && !from_x) || (op == COMMON && (!from_x || !from_y)))
            continue;
        struct pl_fields *child = combine(a, op, from_x, from_y);
        if (child)
            append(node, child);
    }
    return node->member || node->first ? node : NULL;
}

static struct pl_fields *combine_sets(struct pl_arena *a, enum operation op,
                                      const struct pl_fields *x, const struct pl_fields *y)
{
    struct pl_fields *set = x || y ? combine(a, op, x, y) : NULL;

    return set ? set : new_node(a, (struct pl_str){ 0 }, false);
}

struct pl_fields *pl__fields_union(struct pl_arena *a, const struct pl_fields *x,
                                   const struct pl_fields *y)
{
    return combine_sets(a, UNION, x, y);
}

struct pl_fields *pl__fields_minus(struct pl_arena *a, const struct pl_fields *x,
                                   const struct pl_fields *y)
{
    return combine_sets(a, MINUS, x, y);
}

struct pl_fields *pl__fields_common(struct pl_arena *a, const struct pl_fields *x,
                                    const struct pl_fields *y)
{
    return combine_sets(a, COMMON, x, y);
}

/* --- what is recorded ---------------------------------------------------------------------------- */

static bool is_step(struct pl_str step, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (pl__str_equal(step, pl__str(names[i])))
            return true;
    return false;
}

/* A copy of `node` with its children but for those that are named. */
static struct pl_fields *without_children(struct pl_arena *a, const struct pl_fields *node,
                                          const char *const *names, size_t count)
{
    struct pl_fields *copy = new_node(a, node->step, node->member);

    for (const struct pl_fields *c = node->first; c; c = c->next) {
        if (is_step(c->step, names, count))
            continue;
        struct pl_fields *child = new_node(a, c->step, c->member);
        child->first = c->first;
        child->last = c->last;
        append(copy, child);
    }
    return copy;
}

struct pl_fields *pl__fields_of_endpoint(struct pl_arena *a, const struct pl_kind *kind,
                                         enum pl_endpoint endpoint, const struct pl_fields *set)
{
    static const char *const on_main[] = { "f:status" }, *const on_status[] = { "f:spec" };
    static const char *const on_pod[] = { "f:deletionTimestamp", "f:ownerReferences" };

    if (endpoint != ENDPOINT_STATUS)
        return without_children(a, set, on_main, kind->status);
    struct pl_fields *kept = without_children(a, set, on_status, 1);
    if (kind->custom || strcmp(kind->plural, "pods") != 0)
        return kept;
    for (struct pl_fields *c = kept->first; c; c = c->next) {
        if (!pl__str_equal(c->step, PL_STR("f:metadata")))
            continue;
        const struct pl_fields *metadata = without_children(a, c, on_pod, 2);
        c->first = metadata->first;
        c->last = metadata->last;
    }
    return kept;
}

struct pl_fields *pl__fields_recorded(struct pl_arena *a, const struct pl_fields *set)
{
    static const char *const top[] = { "f:apiVersion", "f:kind" };
    static const char *const in_metadata[] = {
        "f:name",       "f:namespace",         "f:uid",      "f:resourceVersion",
        "f:generation", "f:creationTimestamp", "f:selfLink", "f:managedFields",
    };
    struct pl_fields *kept = without_children(a, set, top, 2);

    for (struct pl_fields *c = kept->first; c; c = c->next) {
        if (!pl__str_equal(c->step, PL_STR("f:metadata")))
            continue;
        const struct pl_fields *metadata =
            without_children(a, c, in_metadata, sizeof in_metadata / sizeof in_metadata[0]);
        c->member = false;
        c->first = metadata->first;
        c->last = metadata->last;
    }
    return compact(a, kept);
}

/* --- for people ---------------------------------------------------------------------------------- */

static void add_keys(struct pl_arena *a, struct pl_buf *b, struct pl_str json)
{
    const struct pl_tree *keys = pl__tree_read(a, json, NULL);

    pl__buf_add_char(b, '[');
    for (const struct pl_tree *m = keys ? keys->first : NULL; m; m = m->next) {
        pl__buf_printf(b, "%s%.*s=", m == keys->first ? "" : ",", PL_STR_ARG(m->key));
        pl__tree_write(b, m);
    }
    pl__buf_add_char(b, ']');
}

static void add_step(struct pl_arena *a, struct pl_buf *b, struct pl_str step)
{
    struct pl_str rest = { step.ptr + 2, step.len - 2 };

    switch (step.ptr[0]) {
    case 'f':
        pl__buf_printf(b, ".%.*s", PL_STR_ARG(rest));
        return;
    case 'k':
        add_keys(a, b, rest);
        return;
    case 'v':
        pl__buf_printf(b, "[=%.*s]", PL_STR_ARG(rest));
        return;
    default:
        pl__buf_printf(b, "[%.*s]", PL_STR_ARG(rest));
    }
}

struct listing {
    struct pl_arena *arena;
    struct pl_str *paths;
    size_t max, count;
};

static void list_paths(struct listing *l, const struct pl_fields *node, struct pl_str path)
{
    if (node->member) {
        if (l->count < l->max)
            l->paths[l->count] = path;
        l->count++;
    }
    for (const struct pl_fields *c = node->first; c; c = c->next) {
        struct pl_buf b;
        pl__buf_init(&b, l->arena, 4096);
        pl__buf_add(&b, path);
        add_step(l->arena, &b, c->step);
        list_paths(l, c, pl__buf_str(&b));
    }
}

size_t pl__fields_paths(struct pl_arena *a, const struct pl_fields *set, struct pl_str *paths,
                        size_t max)
{
    struct listing l = { a, paths, max, 0 };

    list_paths(&l, set, (struct pl_str){ "", 0 });
    return l.count;
}
