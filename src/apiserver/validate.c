#include "apiserver/validate.h"

#include <regex.h>
#include <stdlib.h>

#include "apiserver/schema.h"
#include "apiserver/shape.h"
#include "base/time.h"

enum { PATTERN_TEXT_MAX = 4096, UNKNOWN_BYTES_MAX = 4096 };

/* The kind's schema, kept by the server: it is read from YAML once. NULL: the kind is not checked. */
static const struct pl_tree *schema_of(struct call *c)
{
    size_t index = (size_t)(c->kind - pl__kinds);
    struct pl_arena *kept = &c->s->schema_arena, reading;

    if (!c->kind->custom)
        return NULL;
    if (!c->s->schemas[index]) {
        /* Reading takes all CRDs; what stays is one schema, as text and as a tree. */
        pl__arena_init(&reading, NULL, 0);
        struct pl_str text = pl__tree_text(kept, pl__schema_of_kind(&reading, c->kind));
        pl__arena_release(&reading);
        c->s->schemas[index] = pl__tree_read(kept, text, NULL);
    }
    return c->s->schemas[index];
}

static struct pl_str join(struct call *c, struct pl_str path, struct pl_str key)
{
    return pl__str_format(c->arena, "%.*s%s%.*s", PL_STR_ARG(path), path.len ? "." : "",
                          PL_STR_ARG(key));
}

/* --- pruning ------------------------------------------------------------------------------------- */

static void add_unknown(struct pl_buf *unknown, struct pl_str path)
{
    pl__buf_printf(unknown, "%sunknown field \"%.*s\"", unknown->len ? ", " : "", PL_STR_ARG(path));
}

/* `unknown` gets the paths of what goes, as messages name them. */
static void prune(struct call *c, const struct pl_tree *schema, struct pl_tree *value,
                  struct pl_str path, struct pl_buf *unknown)
{
    const struct pl_tree *properties = pl__tree_get(schema, PL_STR("properties"));
    const struct pl_tree *others = pl__tree_get(schema, PL_STR("additionalProperties"));
    bool keep = pl__tree_get_true(schema, "x-kubernetes-preserve-unknown-fields");

    if (value->type == JSON_ARRAY) {
        const struct pl_tree *items = pl__tree_get(schema, PL_STR("items"));
        size_t index = 0;
        for (struct pl_tree *item = value->first; items && item; item = item->next, index++)
            prune(c, items, item, pl__str_format(c->arena, "%.*s[%zu]", PL_STR_ARG(path), index),
                  unknown);
    }
    if (value->type != JSON_OBJECT)
        return;
    for (struct pl_tree *member = value->first, *next; member; member = next) {
        const struct pl_tree *known = pl__tree_get(properties, member->key);
        const struct pl_tree *inside = known ? known : others;
        next = member->next;
        if (path.len == 0 && pl__str_equal(member->key, PL_STR("metadata")))
            continue;
        if (inside && member->type == JSON_NULL && !pl__tree_get_true(inside, "nullable"))
            pl__tree_remove(value, member->key); /* as if it had not been said */
        else if (inside)
            prune(c, inside, member, join(c, path, member->key), unknown);
        else if (!keep) {
            add_unknown(unknown, join(c, path, member->key));
            pl__tree_remove(value, member->key);
        }
    }
}

static void find_unknown_metadata(struct call *c, const struct pl_tree *object,
                                  struct pl_buf *unknown)
{
    const struct pl_tree *metadata = pl__tree_get(object, PL_STR("metadata"));

    for (const struct pl_tree *m = metadata ? metadata->first : NULL; m; m = m->next)
        if (!pl__shape_knows_metadata(m->key))
            add_unknown(unknown, join(c, PL_STR("metadata"), m->key));
    const struct pl_tree *owners = pl__tree_get(metadata, PL_STR("ownerReferences"));
    size_t index = 0;
    for (const struct pl_tree *o = owners ? owners->first : NULL; o; o = o->next, index++)
        for (const struct pl_tree *m = o->first; m; m = m->next)
            if (!pl__shape_knows_owner(m->key))
                add_unknown(unknown, pl__str_format(c->arena, "metadata.ownerReferences[%zu].%.*s",
                                                    index, PL_STR_ARG(m->key)));
}

int pl__validate_prune(struct call *c, struct pl_tree *object)
{
    const struct pl_tree *schema = schema_of(c);
    struct pl_str mode = c->params.field_validation;
    struct pl_buf b;

    pl__buf_init(&b, c->arena, UNKNOWN_BYTES_MAX);
    find_unknown_metadata(c, object, &b);
    if (schema)
        prune(c, schema, object, PL_STR(""), &b);
    struct pl_str unknown = pl__buf_str(&b);
    if (unknown.len && c->applies)
        return pl__fail_status(c, 500, "",
                               "failed to create typed patch object: %.*s: field not declared in "
                               "schema",
                               PL_STR_ARG(unknown));
    if (unknown.len == 0 || pl__str_equal(mode, PL_STR("Ignore")))
        return 0;
    if (!pl__str_equal(mode, PL_STR("Strict"))) {
        c->answer->warning = unknown;
        return 0;
    }
    if (pl__str_equal(c->request->method, PL_STR("PATCH")))
        return pl__fail_status(c, 422, "Invalid",
                               "%s \"%.*s\" is invalid: patch: strict decoding error: %.*s",
                               c->kind->kind, PL_STR_ARG(c->name), PL_STR_ARG(unknown));
    return pl__fail_status(c, 400, "BadRequest",
                           "%s in version \"%s\" cannot be handled as a %s: strict decoding error: "
                           "%.*s",
                           c->kind->kind, c->kind->version, c->kind->kind, PL_STR_ARG(unknown));
}

/* --- checking ------------------------------------------------------------------------------------ */

struct check {
    struct call *c;
    struct faults *f;
};

static void check_value(struct check *k, const struct pl_tree *schema, const struct pl_tree *old,
                        const struct pl_tree *value, struct pl_str path);

/* The name that messages give to what a value is. */
static const char *type_name(const struct pl_tree *value)
{
    switch (value->type) {
    case JSON_OBJECT:
        return "object";
    case JSON_ARRAY:
        return "array";
    case JSON_STRING:
        return "string";
    case JSON_NUMBER:
        for (size_t i = 0; i < value->text.len; i++)
            if (strchr(".eE", value->text.ptr[i]))
                return "number";
        return "integer";
    case JSON_TRUE:
    case JSON_FALSE:
        return "boolean";
    default:
        return "null";
    }
}

static bool has_type(const struct pl_tree *schema, const struct pl_tree *value)
{
    struct pl_str wanted = pl__tree_get_str(schema, "type");
    const char *have = type_name(value);

    if (pl__tree_get_true(schema, "x-kubernetes-int-or-string"))
        return strcmp(have, "integer") == 0 || strcmp(have, "string") == 0;
    if (wanted.len == 0 || pl__str_equal(wanted, pl__str(have)))
        return true;
    return pl__str_equal(wanted, PL_STR("number")) && strcmp(have, "integer") == 0;
}

/* Of a string: characters, not bytes. */
static int64_t length_of(struct pl_str text)
{
    int64_t count = 0;

    for (size_t i = 0; i < text.len; i++)
        count += ((unsigned char)text.ptr[i] & 0xc0) != 0x80;
    return count;
}

static bool pattern_matches(struct check *k, struct pl_str pattern, struct pl_str text)
{
    regex_t compiled;

    if (text.len > PATTERN_TEXT_MAX || (text.len && memchr(text.ptr, '\0', text.len)))
        return false;
    if (regcomp(&compiled, pl__str_copy(k->c->arena, pattern).ptr, REG_EXTENDED | REG_NOSUB) != 0)
        return true; /* one of the CRDs' own, which the tests would have found */
    bool matches = regexec(&compiled, pl__str_copy(k->c->arena, text).ptr, 0, NULL, 0) == 0;
    regfree(&compiled);
    return matches;
}

static void check_string(struct check *k, const struct pl_tree *schema, const struct pl_tree *value,
                         struct pl_str path)
{
    int64_t least = pl__tree_get_int(schema, "minLength", 0);
    int64_t most = pl__tree_get_int(schema, "maxLength", INT64_MAX);
    struct pl_str pattern = pl__tree_get_str(schema, "pattern");
    struct pl_str shown = pl__tree_text(k->c->arena, value);
    int64_t ms;

    if (length_of(value->text) > most)
        pl__fault(k->c, k->f, "FieldValueTooLong", path,
                  "Too long: may not be more than %lld bytes", (long long)most);
    if (length_of(value->text) < least)
        pl__fault(k->c, k->f, "FieldValueInvalid", path,
                  "Invalid value: %.*s: %.*s in body should be at least %lld chars long",
                  PL_STR_ARG(shown), PL_STR_ARG(path), (long long)least);
    if (pattern.len && !pattern_matches(k, pattern, value->text))
        pl__fault(k->c, k->f, "FieldValueInvalid", path,
                  "Invalid value: %.*s: %.*s in body should match '%.*s'", PL_STR_ARG(shown),
                  PL_STR_ARG(path), PL_STR_ARG(pattern));
    if (pl__str_equal(pl__tree_get_str(schema, "format"), PL_STR("date-time")) &&
        !pl__time_parse(value->text, &ms))
        pl__fault(k->c, k->f, "FieldValueInvalid", path,
                  "Invalid value: %.*s: %.*s in body must be of type date-time: %.*s",
                  PL_STR_ARG(shown), PL_STR_ARG(path), PL_STR_ARG(shown));
}

static void check_number(struct check *k, const struct pl_tree *schema, const struct pl_tree *value,
                         struct pl_str path)
{
    const struct pl_tree *least = pl__tree_get(schema, PL_STR("minimum"));
    const struct pl_tree *most = pl__tree_get(schema, PL_STR("maximum"));
    double number = strtod(pl__str_copy(k->c->arena, value->text).ptr, NULL);

    if (least && number < strtod(pl__str_copy(k->c->arena, least->text).ptr, NULL))
        pl__fault(k->c, k->f, "FieldValueInvalid", path,
                  "Invalid value: %.*s: %.*s in body should be greater than or equal to %.*s",
                  PL_STR_ARG(value->text), PL_STR_ARG(path), PL_STR_ARG(least->text));
    if (most && number > strtod(pl__str_copy(k->c->arena, most->text).ptr, NULL))
        pl__fault(k->c, k->f, "FieldValueInvalid", path,
                  "Invalid value: %.*s: %.*s in body should be less than or equal to %.*s",
                  PL_STR_ARG(value->text), PL_STR_ARG(path), PL_STR_ARG(most->text));
}

static void check_object(struct check *k, const struct pl_tree *schema, const struct pl_tree *old,
                         const struct pl_tree *value, struct pl_str path)
{
    const struct pl_tree *properties = pl__tree_get(schema, PL_STR("properties"));
    const struct pl_tree *others = pl__tree_get(schema, PL_STR("additionalProperties"));
    const struct pl_tree *required = pl__tree_get(schema, PL_STR("required"));
    int64_t least = pl__tree_get_int(schema, "minProperties", 0);

    for (const struct pl_tree *m = value->first; m; m = m->next) {
        const struct pl_tree *known = pl__tree_get(properties, m->key);
        if (path.len == 0 && pl__str_equal(m->key, PL_STR("metadata")))
            continue; /* meta.c knows more about that */
        if (known || others)
            check_value(k, known ? known : others, pl__tree_get(old, m->key), m,
                        join(k->c, path, m->key));
    }
    for (const struct pl_tree *r = required ? required->first : NULL; r; r = r->next)
        if (!pl__tree_get(value, r->text))
            pl__fault(k->c, k->f, "FieldValueRequired", join(k->c, path, r->text),
                      "Required value");
    if ((int64_t)pl__tree_count(value) < least)
        pl__fault(k->c, k->f, "FieldValueInvalid", path,
                  "Invalid value: %zu: %.*s in body should have at least %lld properties",
                  pl__tree_count(value), PL_STR_ARG(path), (long long)least);
}

/* Do two items of a list that is a map have the same keys? */
static bool same_keys(const struct pl_tree *keys, const struct pl_tree *x, const struct pl_tree *y)
{
    for (const struct pl_tree *key = keys->first; key; key = key->next) {
        const struct pl_tree *a = pl__tree_get(x, key->text), *b = pl__tree_get(y, key->text);
        if (!a || !b || !pl__tree_equal(a, b))
            return false;
    }
    return true;
}

static const struct pl_tree *item_like(const struct pl_tree *keys, const struct pl_tree *list,
                                       const struct pl_tree *item, const struct pl_tree *end)
{
    for (const struct pl_tree *i = keys && list ? list->first : NULL; i && i != end; i = i->next)
        if (same_keys(keys, i, item))
            return i;
    return NULL;
}

static void duplicate(struct check *k, const struct pl_tree *keys, const struct pl_tree *item,
                      struct pl_str path)
{
    struct pl_tree *shown = pl__tree_new(k->c->arena, JSON_OBJECT);

    for (const struct pl_tree *key = keys->first; key; key = key->next)
        pl__tree_set(shown, key->text, pl__tree_copy(k->c->arena, pl__tree_get(item, key->text)));
    struct pl_str text = pl__tree_text(k->c->arena, shown);
    pl__fault(k->c, k->f, "FieldValueDuplicate", path, "Duplicate value: %.*s", PL_STR_ARG(text));
}

static void check_array(struct check *k, const struct pl_tree *schema, const struct pl_tree *old,
                        const struct pl_tree *value, struct pl_str path)
{
    const struct pl_tree *items = pl__tree_get(schema, PL_STR("items"));
    const struct pl_tree *keys = pl__tree_get(schema, PL_STR("x-kubernetes-list-map-keys"));
    int64_t least = pl__tree_get_int(schema, "minItems", 0);
    int64_t most = pl__tree_get_int(schema, "maxItems", INT64_MAX);
    int64_t count = (int64_t)pl__tree_count(value);
    size_t index = 0;

    if (count > most) {
        /* Items past the bound are not looked at one by one. */
        pl__fault(k->c, k->f, "FieldValueTooMany", path,
                  "Too many: %lld: must have at most %lld items", (long long)count,
                  (long long)most);
        return;
    }
    if (count < least)
        pl__fault(k->c, k->f, "FieldValueInvalid", path,
                  "Invalid value: %lld: %.*s in body should have at least %lld items",
                  (long long)count, PL_STR_ARG(path), (long long)least);
    for (const struct pl_tree *item = value->first; item; item = item->next, index++) {
        struct pl_str place = pl__str_format(k->c->arena, "%.*s[%zu]", PL_STR_ARG(path), index);
        if (items)
            check_value(k, items, item_like(keys, old, item, NULL), item, place);
        if (item_like(keys, value, item, item))
            duplicate(k, keys, item, place);
    }
}

static void check_enum(struct check *k, const struct pl_tree *values, const struct pl_tree *value,
                       struct pl_str path)
{
    struct pl_buf b;

    pl__buf_init(&b, k->c->arena, 1024);
    for (const struct pl_tree *v = values->first; v; v = v->next) {
        if (pl__tree_equal(v, value))
            return;
        pl__buf_printf(&b, "%s", v == values->first ? "" : ", ");
        pl__tree_write(&b, v);
    }
    struct pl_str shown = pl__tree_text(k->c->arena, value), all = pl__buf_str(&b);
    pl__fault(k->c, k->f, "FieldValueNotSupported", path,
              "Unsupported value: %.*s: supported values: %.*s", PL_STR_ARG(shown),
              PL_STR_ARG(all));
}

static void check_value(struct check *k, const struct pl_tree *schema, const struct pl_tree *old,
                        const struct pl_tree *value, struct pl_str path)
{
    const struct pl_tree *values = pl__tree_get(schema, PL_STR("enum"));

    if (old && pl__tree_equal(old, value))
        return;
    if (!has_type(schema, value)) {
        struct pl_str wanted = pl__tree_get_str(schema, "type");
        pl__fault(k->c, k->f, "FieldValueTypeInvalid", path,
                  "Invalid value: \"%s\": %.*s in body must be of type %.*s: \"%s\"",
                  type_name(value), PL_STR_ARG(path), PL_STR_ARG(wanted), type_name(value));
        return;
    }
    if (value->type == JSON_OBJECT)
        check_object(k, schema, old, value, path);
    else if (value->type == JSON_ARRAY)
        check_array(k, schema, old, value, path);
    else if (value->type == JSON_STRING)
        check_string(k, schema, value, path);
    else if (value->type == JSON_NUMBER)
        check_number(k, schema, value, path);
    if (values)
        check_enum(k, values, value, path);
}

void pl__validate_object(struct call *c, const struct pl_tree *old, const struct pl_tree *object,
                         struct faults *f)
{
    const struct pl_tree *schema = schema_of(c);
    struct check k = { c, f };

    if (schema)
        check_value(&k, schema, old, object, PL_STR(""));
    /* Whatever the schema says: the scale subresource shows it. */
    int64_t replicas = pl__tree_get_int(object, "spec.replicas", 0);
    if (c->kind->scale && replicas < 0)
        pl__fault(c, f, "FieldValueInvalid", PL_STR(".spec.replicas"),
                  "Invalid value: %lld: should be a non-negative integer", (long long)replicas);
}
