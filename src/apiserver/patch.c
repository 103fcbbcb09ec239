#include "apiserver/patch.h"

#include <assert.h>

/* Nodes that one JSON patch may look at while it copies and moves: many times a large object. */
enum { NODES_MAX = 1000000 };

/* --- paths of rules ------------------------------------------------------------------------------ */

size_t pl__rule_path_push(struct pl_rule_path *path, struct pl_str step)
{
    size_t before = path->len, dot = before > 0;

    if (before + dot + step.len > sizeof path->text) {
        path->len = sizeof path->text + 1; /* too long: nothing fits from here on */
        return before;
    }
    if (dot)
        path->text[path->len++] = '.';
    memcpy(path->text + path->len, step.ptr, step.len);
    path->len += step.len;
    return before;
}

const struct pl_merge_rule *pl__rule_path_find(const struct pl_kind *kind,
                                               const struct pl_rule_path *path)
{
    if (path->len > sizeof path->text)
        return NULL;
    return pl__kind_merge(kind, (struct pl_str){ path->text, path->len });
}

/* --- merge patch --------------------------------------------------------------------------------- */

struct pl_tree *pl__patch_merge(struct pl_arena *a, struct pl_tree *target,
                                const struct pl_tree *patch)
{
    if (patch->type != JSON_OBJECT)
        return pl__tree_copy(a, patch);
    if (!target || target->type != JSON_OBJECT)
        target = pl__tree_new(a, JSON_OBJECT);
    for (const struct pl_tree *m = patch->first; m; m = m->next) {
        if (m->type == JSON_NULL) {
            pl__tree_remove(target, m->key);
            continue;
        }
        struct pl_tree *old = pl__tree_get(target, m->key);
        struct pl_tree *merged = pl__patch_merge(a, old, m);
        if (merged != old)
            pl__tree_set(target, m->key, merged);
    }
    return target;
}

/* --- JSON patch ---------------------------------------------------------------------------------- */

struct pointer {
    struct pl_str steps[PL_TREE_DEPTH_MAX];
    size_t count;
};

static int pointer_read(struct pl_arena *a, struct pl_str text, struct pointer *p)
{
    p->count = 0;
    if (text.len == 0)
        return 0;
    if (text.ptr[0] != '/')
        return -1;
    for (size_t i = 0; i < text.len;) {
        char *step = PL_NEW(a, char, text.len - i);
        size_t len = 0;
        for (i++; i < text.len && text.ptr[i] != '/'; i++) {
            char c = text.ptr[i];
            if (c == '~') {
                char escaped = i + 1 < text.len ? text.ptr[++i] : 0;
                if (escaped != '0' && escaped != '1')
                    return -1;
                c = escaped == '0' ? '~' : '/';
            }
            step[len++] = c;
        }
        if (p->count == PL_TREE_DEPTH_MAX)
            return -1;
        p->steps[p->count++] = (struct pl_str){ step, len };
    }
    return 0;
}

/* A place in an array: 0 to `max`. */
static int array_index(struct pl_str step, size_t max, size_t *index)
{
    uint64_t value;

    if (!pl__str_to_u64(step, &value) || (step.len > 1 && step.ptr[0] == '0') || value > max)
        return -1;
    *index = (size_t)value;
    return 0;
}

static struct pl_tree *step_into(const struct pl_tree *t, struct pl_str step)
{
    size_t index;

    if (t->type == JSON_OBJECT)
        return pl__tree_get(t, step);
    if (t->type != JSON_ARRAY || array_index(step, SIZE_MAX - 1, &index) < 0)
        return NULL;
    return pl__tree_item(t, index);
}

static struct pl_tree *walk(struct pl_tree *root, const struct pointer *p, size_t steps)
{
    for (size_t i = 0; i < steps && root; i++)
        root = step_into(root, p->steps[i]);
    return root;
}

struct patching {
    struct pl_arena *arena;
    struct pl_tree *root;
    size_t nodes;
};

/* Every value that is put somewhere comes by here, so the tree never gets deeper than a body may be. */
static int put(struct patching *p, const struct pointer *to, struct pl_tree *value, bool replace)
{
    size_t index;

    if (to->count + pl__tree_depth(value, &p->nodes) > PL_TREE_DEPTH_MAX || p->nodes > NODES_MAX)
        return -1;
    if (to->count == 0) {
        p->root = value;
        return 0;
    }
    struct pl_tree *parent = walk(p->root, to, to->count - 1);
    struct pl_str step = to->steps[to->count - 1];
    if (!parent || (replace && !step_into(parent, step)))
        return -1;
    if (parent->type == JSON_OBJECT) {
        pl__tree_set(parent, step, value);
        return 0;
    }
    if (parent->type != JSON_ARRAY)
        return -1;
    size_t count = pl__tree_count(parent);
    if (pl__str_equal(step, PL_STR("-")))
        index = count;
    else if (array_index(step, count, &index) < 0)
        return -1;
    if (replace)
        pl__tree_take(parent, index);
    pl__tree_insert(parent, index, value);
    return 0;
}

static struct pl_tree *take(struct patching *p, const struct pointer *from)
{
    size_t index;

    if (from->count == 0)
        return NULL;
    struct pl_tree *parent = walk(p->root, from, from->count - 1);
    struct pl_str step = from->steps[from->count - 1];
    if (!parent)
        return NULL;
    if (parent->type == JSON_OBJECT)
        return pl__tree_remove(parent, step);
    if (parent->type != JSON_ARRAY || array_index(step, SIZE_MAX - 1, &index) < 0)
        return NULL;
    return pl__tree_take(parent, index);
}

static bool starts_with(const struct pointer *p, const struct pointer *prefix)
{
    if (p->count < prefix->count)
        return false;
    for (size_t i = 0; i < prefix->count; i++)
        if (!pl__str_equal(p->steps[i], prefix->steps[i]))
            return false;
    return true;
}

static int copy_or_move(struct patching *p, const struct pointer *from, const struct pointer *to,
                        bool move)
{
    struct pl_tree *value = walk(p->root, from, from->count);

    if (!value || (move && starts_with(to, from) && to->count > from->count))
        return -1;
    if (!move) {
        pl__tree_depth(value, &p->nodes);
        return p->nodes > NODES_MAX ? -1 : put(p, to, pl__tree_copy(p->arena, value), false);
    }
    if (from->count == 0)
        return 0; /* the whole onto itself */
    return put(p, to, take(p, from), false);
}

static int test(struct patching *p, const struct pointer *at, const struct pl_tree *value)
{
    const struct pl_tree *there = walk(p->root, at, at->count);

    if (there)
        pl__tree_depth(there, &p->nodes);
    if (p->nodes > NODES_MAX)
        return -1;
    if (!there)
        return value->type == JSON_NULL ? 0 : -1; /* as the library of the real server has it */
    return pl__tree_equal(there, value) ? 0 : -1;
}

static enum pl_patch_result operate(struct patching *p, const struct pl_tree *operation,
                                    struct pl_str *message)
{
    struct pl_str op = pl__tree_get_str(operation, "op");
    const struct pl_tree *value = pl__tree_at(operation, "value");
    const struct pl_tree *path = pl__tree_at(operation, "path");
    const struct pl_tree *source = pl__tree_at(operation, "from");
    bool copy = pl__str_equal(op, PL_STR("copy")), move = pl__str_equal(op, PL_STR("move"));
    bool add = pl__str_equal(op, PL_STR("add")), replace = pl__str_equal(op, PL_STR("replace"));
    bool remove = pl__str_equal(op, PL_STR("remove")), tests = pl__str_equal(op, PL_STR("test"));
    struct pointer at, from;
    int failed = 0;

    if (!(copy || move || add || replace || remove || tests) || !path ||
        path->type != JSON_STRING || ((copy || move) && (!source || source->type != JSON_STRING)) ||
        ((add || replace || tests) && !value)) {
        *message = pl__str_format(p->arena, "Unexpected kind: %.*s", PL_STR_ARG(op));
        return op.len ? PATCH_FAILED : PATCH_MALFORMED;
    }
    if (pointer_read(p->arena, path->text, &at) < 0 ||
        ((copy || move) && pointer_read(p->arena, source->text, &from) < 0))
        failed = -1;
    else if (add || replace)
        failed = put(p, &at, pl__tree_copy(p->arena, value), replace);
    else if (remove)
        failed = take(p, &at) ? 0 : -1;
    else if (tests)
        failed = test(p, &at, value);
    else
        failed = copy_or_move(p, &from, &at, move);
    if (failed)
        *message = pl__str_format(p->arena, "%.*s operation failed at path: %.*s", PL_STR_ARG(op),
                                  PL_STR_ARG(path->text));
    return failed ? PATCH_FAILED : PATCH_DONE;
}

enum pl_patch_result pl__patch_json(struct pl_arena *a, struct pl_tree **root,
                                    const struct pl_tree *operations, struct pl_str *message)
{
    struct patching p = { .arena = a, .root = *root };
    enum pl_patch_result result = PATCH_DONE;

    if (operations->type != JSON_ARRAY) {
        *message = PL_STR("a JSON patch is a list of operations");
        return PATCH_MALFORMED;
    }
    size_t count = pl__tree_count(operations);
    if (count > PL_PATCH_OPERATIONS_MAX) {
        *message =
            pl__str_format(a, "The allowed maximum operations in a JSON patch is %d, got %zu",
                           PL_PATCH_OPERATIONS_MAX, count);
        return PATCH_TOO_MANY;
    }
    for (const struct pl_tree *op = operations->first; op && result == PATCH_DONE; op = op->next)
        result = operate(&p, op, message);
    *root = p.root;
    return result;
}

/* --- strategic merge patch ----------------------------------------------------------------------- */

struct merging {
    struct pl_arena *arena;
    const struct pl_kind *kind;
    struct pl_rule_path path;
};

static bool is_directive(const struct pl_tree *m, const char *name)
{
    return pl__str_equal(m->key, pl__str(name));
}

static struct pl_str directive(const struct pl_tree *object)
{
    const struct pl_tree *m = pl__tree_get(object, PL_STR("$patch"));

    return m && m->type == JSON_STRING ? m->text : (struct pl_str){ 0 };
}

static bool contains(const struct pl_tree *list, const struct pl_tree *value)
{
    for (const struct pl_tree *i = list->first; i; i = i->next)
        if (pl__tree_equal(i, value))
            return true;
    return false;
}

static void merge_object(struct merging *m, struct pl_tree *target, const struct pl_tree *patch);

/* The patch of something that is not there: itself, without directives. */
static struct pl_tree *made_of(struct merging *m, const struct pl_tree *patch)
{
    struct pl_tree *made = pl__tree_new(m->arena, JSON_OBJECT);

    merge_object(m, made, patch);
    return made;
}

static struct pl_tree *find_item(const struct pl_tree *list, struct pl_str key,
                                 const struct pl_tree *value, size_t *index)
{
    *index = 0;
    for (struct pl_tree *i = list->first; i; i = i->next, ++*index)
        if (value && pl__tree_equal(pl__tree_get(i, key), value))
            return i;
    return NULL;
}

static struct pl_str first_key(const struct pl_merge_rule *rule)
{
    return (struct pl_str){ rule->keys, strcspn(rule->keys, ",") };
}

static void merge_list_by_key(struct merging *m, struct pl_tree *target,
                              const struct pl_tree *patch, struct pl_str key)
{
    size_t index;

    for (const struct pl_tree *item = patch->first; item; item = item->next)
        if (pl__str_equal(directive(item), PL_STR("replace")))
            target->first = target->last = NULL;
    for (const struct pl_tree *item = patch->first; item; item = item->next) {
        struct pl_tree *same = find_item(target, key, pl__tree_get(item, key), &index);
        if (pl__str_equal(directive(item), PL_STR("delete"))) {
            if (same)
                pl__tree_take(target, index);
        } else if (same && same->type == JSON_OBJECT) {
            merge_object(m, same, item);
        } else if (pl__tree_count(item) > (directive(item).len > 0)) {
            pl__tree_append(target, item->type == JSON_OBJECT ? made_of(m, item)
                                                              : pl__tree_copy(m->arena, item));
        }
    }
}

static struct pl_tree *merge_list(struct merging *m, struct pl_tree *target,
                                  const struct pl_tree *patch)
{
    const struct pl_merge_rule *rule = pl__rule_path_find(m->kind, &m->path);

    if (!rule || rule->merge == MERGE_ATOMIC)
        return pl__tree_copy(m->arena, patch);
    if (!target || target->type != JSON_ARRAY)
        target = pl__tree_new(m->arena, JSON_ARRAY);
    if (rule->merge == MERGE_MAP) {
        merge_list_by_key(m, target, patch, first_key(rule));
        return target;
    }
    for (const struct pl_tree *item = patch->first; item; item = item->next)
        if (!contains(target, item))
            pl__tree_append(target, pl__tree_copy(m->arena, item));
    return target;
}

static void delete_from_list(struct pl_tree *target, struct pl_str key,
                             const struct pl_tree *values)
{
    struct pl_tree *list = pl__tree_get(target, key);

    if (!list || list->type != JSON_ARRAY || values->type != JSON_ARRAY)
        return;
    size_t index = 0;
    for (struct pl_tree *item = list->first, *next; item; item = next) {
        next = item->next;
        if (contains(values, item))
            pl__tree_take(list, index);
        else
            index++;
    }
}

static void retain_keys(struct pl_tree *target, const struct pl_tree *keys)
{
    for (struct pl_tree *m = target->first, *next; m; m = next) {
        struct pl_tree name = { .type = JSON_STRING, .text = m->key };
        next = m->next;
        if (!contains(keys, &name))
            pl__tree_remove(target, m->key);
    }
}

static void merge_member(struct merging *m, struct pl_tree *target, const struct pl_tree *value)
{
    struct pl_tree *old = pl__tree_get(target, value->key), *merged;

    if (value->type == JSON_NULL) {
        pl__tree_remove(target, value->key);
        return;
    }
    size_t before = pl__rule_path_push(&m->path, value->key);
    if (value->type == JSON_ARRAY) {
        merged = merge_list(m, old, value);
    } else if (value->type != JSON_OBJECT) {
        merged = pl__tree_copy(m->arena, value);
    } else if (old && old->type == JSON_OBJECT) {
        merge_object(m, old, value);
        merged = old;
    } else {
        merged = made_of(m, value);
    }
    m->path.len = before;
    if (merged != old)
        pl__tree_set(target, value->key, merged);
}

static void merge_object(struct merging *m, struct pl_tree *target, const struct pl_tree *patch)
{
    static const struct pl_str deleting = PL_STR_INIT("$deleteFromPrimitiveList/");
    const struct pl_tree *retain = pl__tree_get(patch, PL_STR("$retainKeys"));

    if (directive(patch).len && !pl__str_equal(directive(patch), PL_STR("merge")))
        target->first = target->last = NULL; /* replace and delete */
    if (pl__str_equal(directive(patch), PL_STR("delete")))
        return;
    if (retain)
        retain_keys(target, retain);
    for (const struct pl_tree *value = patch->first; value; value = value->next) {
        if (pl__str_starts_with(value->key, deleting)) {
            struct pl_str key = { value->key.ptr + deleting.len, value->key.len - deleting.len };
            delete_from_list(target, key, value);
        } else if (!is_directive(value, "$patch") && !is_directive(value, "$retainKeys") &&
                   !pl__str_starts_with(value->key, PL_STR("$setElementOrder/"))) {
            merge_member(m, target, value);
        }
    }
}

enum pl_patch_result pl__patch_strategic(struct pl_arena *a, const struct pl_kind *kind,
                                         struct pl_tree *target, const struct pl_tree *patch,
                                         struct pl_str *message)
{
    struct merging m = { .arena = a, .kind = kind };

    assert(target->type == JSON_OBJECT);
    if (patch->type != JSON_OBJECT) {
        *message = PL_STR("a strategic merge patch is an object");
        return PATCH_MALFORMED;
    }
    merge_object(&m, target, patch);
    return PATCH_DONE;
}
