#include "apiserver/patch.h"

#include <assert.h>

/* What one JSON patch may do, many times what a large object needs: values put somewhere, bytes copied (as many as
 * real servers allow), and members or items passed on the way to what is meant. */
enum {
    NODES_MAX = 1000000,
    COPIED_BYTES_MAX = 3 * 1024 * 1024,
    PASSED_MAX = 40 * 1024 * 1024,
};

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

/* RFC 6902 as the library reads it that real servers use, for clients were written against those: places of an
 * array may count from its end, replacing a member that is not there adds it, copying one that is not there
 * adds null, and a value that is left out is null. */

struct pointer {
    struct pl_str steps[PL_TREE_DEPTH_MAX];
    size_t count;
};

/* What stands in front of the first slash does not matter; nor does a ~ that escapes nothing. */
static int pointer_read(struct pl_arena *a, struct pl_str text, struct pointer *p)
{
    const char *slash = text.len ? memchr(text.ptr, '/', text.len) : NULL;

    p->count = 0;
    if (!slash)
        return text.len ? -1 : 0;
    char *steps = PL_NEW(a, char, text.len);
    for (size_t i = (size_t)(slash - text.ptr); i < text.len;) {
        char *step = steps;
        size_t len = 0;
        for (i++; i < text.len && text.ptr[i] != '/'; i++) {
            char next = i + 1 < text.len ? text.ptr[i + 1] : 0;
            bool escape = text.ptr[i] == '~' && (next == '0' || next == '1');
            step[len++] = !escape ? text.ptr[i] : next == '0' ? '~' : '/';
            i += escape;
        }
        if (p->count == PL_TREE_DEPTH_MAX)
            return -1;
        p->steps[p->count++] = (struct pl_str){ step, len };
        steps += len;
    }
    return 0;
}

/* A place among `count`, from the front or (-1 is the last) from the end. */
static int array_index(struct pl_str step, size_t count, size_t *index)
{
    bool negative = step.len && step.ptr[0] == '-';
    bool sign = negative || (step.len && step.ptr[0] == '+');
    struct pl_str digits = { step.ptr + sign, step.len - sign };
    uint64_t value;

    if (!pl__str_to_u64(digits, &value) || value > count || (!negative && value == count))
        return -1;
    *index = negative && value ? count - (size_t)value : (size_t)value;
    return *index < count ? 0 : -1;
}

static struct pl_str last_step(const struct pointer *p)
{
    return p->steps[p->count - 1];
}

struct patching {
    struct pl_arena *arena;
    struct pl_tree *root;
    size_t nodes;
    size_t copied_bytes;
    size_t passed;
};

/* How many are inside; all of them may have to be passed. */
static size_t inside(struct patching *p, const struct pl_tree *t)
{
    size_t count = pl__tree_count(t);

    p->passed += count;
    return count;
}

/* NULL: not there, or null, which is the same to the library. */
static struct pl_tree *step_into(struct patching *p, const struct pl_tree *t, struct pl_str step)
{
    struct pl_tree *found = NULL;
    size_t count = inside(p, t), index;

    if (t->type == JSON_OBJECT)
        found = pl__tree_get(t, step);
    else if (t->type == JSON_ARRAY && array_index(step, count, &index) == 0)
        found = pl__tree_item(t, index);
    return found && found->type != JSON_NULL ? found : NULL;
}

/* The object or array that holds the last step; NULL: none, or it took too long to get there. */
static struct pl_tree *holder(struct patching *p, const struct pointer *to)
{
    struct pl_tree *t = p->root;

    if (to->count == 0)
        return NULL;
    for (size_t i = 0; i + 1 < to->count && t; i++)
        t = step_into(p, t, to->steps[i]);
    return t && (t->type == JSON_OBJECT || t->type == JSON_ARRAY) && p->passed <= PASSED_MAX ? t
                                                                                             : NULL;
}

/* Every value that is put somewhere comes by here, so the tree never gets deeper than a body may be. */
static bool fits(struct patching *p, const struct pointer *to, const struct pl_tree *value)
{
    struct pl_tree_size size = { 0 };
    size_t depth = pl__tree_depth(value, &size);

    p->nodes += size.nodes;
    return to->count + depth <= PL_TREE_DEPTH_MAX && p->nodes <= NODES_MAX;
}

static int add(struct patching *p, const struct pointer *to, struct pl_tree *value)
{
    struct pl_tree *parent = holder(p, to);
    size_t index;

    if (!parent || !fits(p, to, value))
        return -1;
    if (parent->type == JSON_ARRAY && pl__str_equal(last_step(to), PL_STR("-"))) {
        pl__tree_append(parent, value);
        return 0;
    }
    size_t places = inside(p, parent) + 1;
    if (parent->type == JSON_OBJECT) {
        pl__tree_set(parent, last_step(to), value);
        return 0;
    }
    if (array_index(last_step(to), places, &index) < 0)
        return -1;
    pl__tree_insert(parent, index, value);
    return 0;
}

static int replace(struct patching *p, const struct pointer *to, struct pl_tree *value)
{
    struct pl_tree *parent = holder(p, to);
    size_t index;

    if (!fits(p, to, value))
        return -1;
    if (to->count == 0) {
        if (value->type == JSON_OBJECT || value->type == JSON_ARRAY)
            p->root = value; /* anything else is read over */
        return 0;
    }
    if (!parent)
        return -1;
    size_t count = inside(p, parent);
    if (parent->type == JSON_OBJECT) {
        pl__tree_set(parent, last_step(to), value);
        return 0;
    }
    if (array_index(last_step(to), count, &index) < 0)
        return -1;
    pl__tree_take(parent, index);
    pl__tree_insert(parent, index, value);
    return 0;
}

static struct pl_tree *take(struct patching *p, const struct pointer *from)
{
    struct pl_tree *parent = holder(p, from);
    size_t index;

    if (!parent)
        return NULL;
    size_t count = inside(p, parent);
    if (parent->type == JSON_OBJECT)
        return pl__tree_remove(parent, last_step(from));
    if (array_index(last_step(from), count, &index) < 0)
        return NULL;
    return pl__tree_take(parent, index);
}

static int copy(struct patching *p, const struct pointer *from, const struct pointer *to)
{
    const struct pl_tree *parent = holder(p, from);
    const struct pl_tree *value = parent ? step_into(p, parent, last_step(from)) : NULL;
    struct pl_tree_size size = { 0 };
    size_t index;

    if (!parent || (parent->type == JSON_ARRAY &&
                    array_index(last_step(from), pl__tree_count(parent), &index) < 0))
        return -1;
    if (!value)
        return add(p, to, pl__tree_new(p->arena, JSON_NULL));
    pl__tree_depth(value, &size);
    p->nodes += size.nodes;
    p->copied_bytes += size.bytes;
    return p->nodes > NODES_MAX || p->copied_bytes > COPIED_BYTES_MAX
               ? -1
               : add(p, to, pl__tree_copy(p->arena, value));
}

static int test(struct patching *p, const struct pointer *at, const struct pl_tree *value)
{
    const struct pl_tree *parent = holder(p, at);
    const struct pl_tree *there = p->root;
    struct pl_tree_size size = { 0 };
    size_t index;

    if (at->count && (!parent || (parent->type == JSON_ARRAY &&
                                  array_index(last_step(at), pl__tree_count(parent), &index) < 0)))
        return -1;
    if (at->count)
        there = step_into(p, parent, last_step(at));
    if (!value || !there)
        return value && value->type == JSON_NULL && !there ? 0 : -1;
    /* When members come in another order each is looked for among all. */
    pl__tree_depth(there, &size);
    p->nodes += size.nodes;
    p->passed += size.nodes * size.widest / 2;
    return p->nodes <= NODES_MAX && p->passed <= PASSED_MAX && pl__tree_equal(there, value) ? 0
                                                                                            : -1;
}

/* The operations are decoded before any of them is done: what has another type is no patch. */
static bool well_formed(const struct pl_tree *operation)
{
    static const char *const texts[] = { "op", "path", "from" };

    if (operation->type == JSON_NULL)
        return true;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const struct pl_tree *m = pl__tree_get(operation, pl__str(texts[i]));
        if (m && m->type != JSON_STRING && m->type != JSON_NULL)
            return false;
    }
    return operation->type == JSON_OBJECT;
}

static int operate(struct patching *p, const struct pl_tree *operation)
{
    struct pl_str op = pl__tree_get_str(operation, "op");
    const struct pl_tree *value = pl__tree_at(operation, "value");
    const struct pl_tree *path = pl__tree_at(operation, "path");
    const struct pl_tree *source = pl__tree_at(operation, "from");
    struct pointer at, from;

    if (!path || path->type != JSON_STRING || pointer_read(p->arena, path->text, &at) < 0)
        return -1;
    if (pl__str_equal(op, PL_STR("test")))
        return test(p, &at, value);
    if (pl__str_equal(op, PL_STR("remove")))
        return take(p, &at) ? 0 : -1;
    struct pl_tree *given =
        value ? pl__tree_copy(p->arena, value) : pl__tree_new(p->arena, JSON_NULL);
    if (pl__str_equal(op, PL_STR("add")))
        return add(p, &at, given);
    if (pl__str_equal(op, PL_STR("replace")))
        return replace(p, &at, given);
    if (!source || source->type != JSON_STRING || pointer_read(p->arena, source->text, &from) < 0)
        return -1;
    if (pl__str_equal(op, PL_STR("copy")))
        return copy(p, &from, &at);
    struct pl_tree *taken = pl__str_equal(op, PL_STR("move")) ? take(p, &from) : NULL;
    return taken ? add(p, &at, taken) : -1;
}

enum pl_patch_result pl__patch_json(struct pl_arena *a, struct pl_tree **root,
                                    const struct pl_tree *operations, struct pl_str *message)
{
    struct patching p = { .arena = a, .root = *root };
    size_t count = pl__tree_count(operations), done = 0;

    for (const struct pl_tree *op = operations->first; op; op = op->next)
        if (operations->type == JSON_ARRAY && !well_formed(op)) {
            *message = PL_STR("an operation is an object, its op, path and from are strings");
            return PATCH_MALFORMED;
        }
    if (operations->type != JSON_ARRAY && operations->type != JSON_NULL) {
        *message = PL_STR("a JSON patch is a list of operations");
        return PATCH_MALFORMED;
    }
    if (count > PL_PATCH_OPERATIONS_MAX) {
        *message =
            pl__str_format(a, "The allowed maximum operations in a JSON patch is %d, got %zu",
                           PL_PATCH_OPERATIONS_MAX, count);
        return PATCH_TOO_MANY;
    }
    for (const struct pl_tree *op = operations->first; op && operate(&p, op) == 0; op = op->next)
        done++;
    if (done < count)
        *message = pl__str_format(a, "operation %zu failed", done);
    *root = p.root;
    return done < count ? PATCH_FAILED : PATCH_DONE;
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

/* Is the item one that the patch names, by the key or (without one) by its value? */
static bool named(const struct pl_tree *patch, struct pl_str key, const struct pl_tree *item)
{
    size_t index;

    return key.len ? find_item(patch, key, pl__tree_get(item, key), &index) != NULL
                   : contains(patch, item);
}

static size_t place_of(const struct pl_tree *list, struct pl_str key, const struct pl_tree *item)
{
    size_t index = 0;

    if (key.len)
        return find_item(list, key, pl__tree_get(item, key), &index) ? index : SIZE_MAX;
    for (const struct pl_tree *i = list->first; i; i = i->next, index++)
        if (pl__tree_equal(i, item))
            return index;
    return SIZE_MAX;
}

/* What the patch names comes in its order, the rest where it was before: an item that only the server has goes in
 * front of the first that stood behind it in `before`. */
static void order_items(struct pl_tree *list, struct pl_str key, const struct pl_tree *patch,
                        const struct pl_tree *before)
{
    struct pl_tree theirs = { .type = JSON_ARRAY }, rest = { .type = JSON_ARRAY };
    struct pl_tree *item;

    while ((item = pl__tree_take(list, 0))) {
        size_t place = 0, at = place_of(patch, key, item);
        if (!named(patch, key, item)) {
            pl__tree_append(&rest, item);
            continue;
        }
        for (const struct pl_tree *t = theirs.first; t && place_of(patch, key, t) <= at;
             t = t->next)
            place++;
        pl__tree_insert(&theirs, place, item);
    }
    while (rest.first || theirs.first) {
        size_t left = rest.first ? place_of(before, key, rest.first) : SIZE_MAX;
        size_t right = theirs.first ? place_of(before, key, theirs.first) : SIZE_MAX;
        bool behind = theirs.first && (left == SIZE_MAX || right == SIZE_MAX || left >= right);
        pl__tree_append(list, pl__tree_take(rest.first && !behind ? &rest : &theirs, 0));
    }
}

static void merge_list_by_key(struct merging *m, struct pl_tree *target,
                              const struct pl_tree *patch, struct pl_str key)
{
    struct pl_tree *wanted = pl__tree_new(m->arena, JSON_ARRAY);
    size_t index;

    for (const struct pl_tree *item = patch->first; item; item = item->next) {
        struct pl_str what = directive(item);
        if (pl__str_equal(what, PL_STR("replace")))
            target->first = target->last = NULL;
        else if (what.len == 0)
            pl__tree_append(wanted, pl__tree_copy(m->arena, item));
        while (pl__str_equal(what, PL_STR("delete")) &&
               find_item(target, key, pl__tree_get(item, key), &index))
            pl__tree_take(target, index);
    }
    const struct pl_tree *before = pl__tree_copy(m->arena, target);
    for (const struct pl_tree *item = wanted->first; item; item = item->next) {
        struct pl_tree *same = find_item(target, key, pl__tree_get(item, key), &index);
        if (same && same->type == JSON_OBJECT)
            merge_object(m, same, item);
        else
            pl__tree_append(target, item->type == JSON_OBJECT ? made_of(m, item)
                                                              : pl__tree_copy(m->arena, item));
    }
    order_items(target, key, wanted, before);
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
    const struct pl_tree *before = pl__tree_copy(m->arena, target);
    for (const struct pl_tree *item = patch->first; item; item = item->next)
        if (!contains(target, item))
            pl__tree_append(target, pl__tree_copy(m->arena, item));
    order_items(target, (struct pl_str){ 0 }, patch, before);
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
