#include "apiserver/internal.h"

struct cursor {
    struct pl_arena *arena;
    struct pl_str text;
    size_t at;
};

static void skip_spaces(struct cursor *c)
{
    while (c->at < c->text.len && c->text.ptr[c->at] == ' ')
        c->at++;
}

static bool take(struct cursor *c, const char *token)
{
    size_t len = strlen(token);

    skip_spaces(c);
    if (c->text.len - c->at < len || memcmp(c->text.ptr + c->at, token, len) != 0)
        return false;
    c->at += len;
    return true;
}

static bool at_end(struct cursor *c)
{
    skip_spaces(c);
    return c->at == c->text.len;
}

/* What keys and values of labels are made of; more than they may be, which matches nothing. */
static struct pl_str word(struct cursor *c)
{
    skip_spaces(c);
    size_t start = c->at;
    while (c->at < c->text.len && !strchr(" ,=!()<>", c->text.ptr[c->at]))
        c->at++;
    return (struct pl_str){ c->text.ptr + start, c->at - start };
}

static int wrong(struct cursor *c, struct pl_str *message, const char *expected)
{
    struct pl_str found = word(c);

    if (found.len == 0 && c->at < c->text.len)
        found = (struct pl_str){ c->text.ptr + c->at, 1 };
    *message = pl__str_format(c->arena, "unable to parse requirement: found '%.*s', expected: %s",
                              PL_STR_ARG(found), expected);
    return -1;
}

static struct pl_str *new_values(struct cursor *c, struct requirement *r)
{
    struct pl_str *values = PL_NEW(c->arena, struct pl_str, VALUES_MAX);

    r->values = values;
    r->value_count = 0;
    return values;
}

/* "(a,b)" */
static int read_set(struct cursor *c, struct requirement *r, struct pl_str *message)
{
    struct pl_str *values = new_values(c, r);

    if (!take(c, "("))
        return wrong(c, message, "'('");
    do {
        if (r->value_count == VALUES_MAX)
            return wrong(c, message, "fewer values");
        values[r->value_count++] = word(c);
    } while (take(c, ","));
    return take(c, ")") ? 0 : wrong(c, message, "',' or ')'");
}

static int read_requirement(struct cursor *c, struct requirement *r, struct pl_str *message)
{
    bool missing = take(c, "!");

    r->key = word(c);
    if (r->key.len == 0)
        return wrong(c, message, "identifier");
    r->operator_ = missing ? SELECT_MISSING : SELECT_EXISTS;
    skip_spaces(c);
    if (missing || at_end(c) || c->text.ptr[c->at] == ',')
        return 0;
    bool negated = take(c, "!=");
    if (negated || take(c, "==") || take(c, "=")) {
        r->operator_ = negated ? SELECT_NOT_IN : SELECT_IN;
        new_values(c, r)[0] = word(c);
        r->value_count = 1;
        return 0;
    }
    struct pl_str name = word(c);
    r->operator_ = pl__str_equal(name, PL_STR("notin")) ? SELECT_NOT_IN : SELECT_IN;
    if (!pl__str_equal(name, PL_STR("in")) && r->operator_ == SELECT_IN)
        return wrong(c, message, "in, notin, =, ==, !=");
    return read_set(c, r, message);
}

typedef int (*requirement_reader)(struct cursor *c, struct requirement *r, struct pl_str *message);

/* Requirements with a comma between them. */
static int read_list(struct cursor *c, requirement_reader read_one, struct selector *s,
                     struct pl_str *message)
{
    s->count = 0;
    if (at_end(c))
        return 0;
    s->items = PL_NEW(c->arena, struct requirement, REQUIREMENTS_MAX);
    do {
        if (s->count == REQUIREMENTS_MAX)
            return wrong(c, message, "fewer requirements");
        if (read_one(c, &s->items[s->count++], message) < 0)
            return -1;
    } while (take(c, ","));
    return 0;
}

static int read_label(struct cursor *c, struct requirement *r, struct pl_str *message)
{
    bool behind = c->at > 0 && c->text.ptr[c->at - 1] == ',';

    if (behind && c->at < c->text.len && c->text.ptr[c->at] == ',') {
        *message = PL_STR("found ',', expected: identifier after ','");
        return -1;
    }
    return read_requirement(c, r, message);
}

int pl__selector_read_labels(struct pl_arena *a, struct pl_str text, struct selector *s,
                             struct pl_str *message)
{
    struct cursor c = { a, text, 0 };

    if (read_list(&c, read_label, s, message) < 0)
        return -1;
    return at_end(&c) ? 0 : wrong(&c, message, "',' or end of string");
}

/* Up to an unescaped ',' or (in keys) an operator. */
static struct pl_str field_term(struct cursor *c, bool key)
{
    char *out = PL_NEW(c->arena, char, c->text.len - c->at + 1);
    size_t len = 0;

    for (; c->at < c->text.len; c->at++) {
        char x = c->text.ptr[c->at];
        if (x == ',' || (key && (x == '=' || x == '!')))
            break;
        if (x == '\\' && c->at + 1 < c->text.len)
            x = c->text.ptr[++c->at];
        out[len++] = x;
    }
    return (struct pl_str){ out, len };
}

static int read_field(struct cursor *c, struct requirement *r, struct pl_str *message)
{
    r->key = field_term(c, true);
    bool negated = take(c, "!=");
    if (!negated && !take(c, "==") && !take(c, "=")) {
        *message = pl__str_format(c->arena, "invalid selector: '%.*s'; can't understand '%.*s'",
                                  PL_STR_ARG(c->text), PL_STR_ARG(r->key));
        return -1;
    }
    r->operator_ = negated ? SELECT_NOT_IN : SELECT_IN;
    new_values(c, r)[0] = field_term(c, false);
    r->value_count = 1;
    return 0;
}

int pl__selector_read_fields(struct pl_arena *a, struct pl_str text, struct selector *s,
                             struct pl_str *message)
{
    struct cursor c = { a, text, 0 };

    return read_list(&c, read_field, s, message);
}

struct selector pl__selector_copy(struct pl_arena *a, const struct selector *s)
{
    struct selector copy = { PL_NEW(a, struct requirement, s->count), s->count };

    for (size_t i = 0; i < s->count; i++) {
        const struct requirement *r = &s->items[i];
        struct pl_str *values = PL_NEW(a, struct pl_str, r->value_count);
        for (size_t k = 0; k < r->value_count; k++)
            values[k] = pl__str_copy(a, r->values[k]);
        copy.items[i] = *r;
        copy.items[i].key = pl__str_copy(a, r->key);
        copy.items[i].values = values;
    }
    return copy;
}

static bool holds(const struct requirement *r, const struct pl_tree *value, struct pl_str text)
{
    bool among = false;

    for (size_t i = 0; i < r->value_count && !among; i++)
        among = pl__str_equal(r->values[i], text);
    switch (r->operator_) {
    case SELECT_EXISTS:
        return value != NULL;
    case SELECT_MISSING:
        return value == NULL;
    case SELECT_IN:
        return value && among;
    case SELECT_NOT_IN:
        return !value || !among;
    }
    return false;
}

/* A field that is not there reads as empty: "spec.nodeName=" finds what has no node. */
static bool field_holds(const struct requirement *r, const struct pl_tree *object)
{
    static const struct pl_tree absent = { .type = JSON_STRING };
    const struct pl_tree *value = object;
    struct pl_str path = r->key;

    while (value && path.len) {
        const char *dot = memchr(path.ptr, '.', path.len);
        size_t len = dot ? (size_t)(dot - path.ptr) : path.len;
        value = pl__tree_get(value, (struct pl_str){ path.ptr, len });
        path.ptr += len + (dot != NULL);
        path.len -= len + (dot != NULL);
    }
    if (pl__str_equal(r->key, PL_STR("source")))
        value = pl__tree_at(value, "component");
    else if (pl__str_equal(r->key, PL_STR("spec.unschedulable")) && !value)
        return holds(r, &absent, PL_STR("false"));
    return holds(r, value ? value : &absent, value ? value->text : absent.text);
}

bool pl__selector_matches(const struct selector *labels, const struct selector *fields,
                          const struct pl_tree *object)
{
    const struct pl_tree *there = pl__tree_at(object, "metadata.labels");

    for (size_t i = 0; i < labels->count; i++) {
        const struct pl_tree *value = pl__tree_get(there, labels->items[i].key);
        if (!holds(&labels->items[i], value, value ? value->text : (struct pl_str){ 0 }))
            return false;
    }
    for (size_t i = 0; i < fields->count; i++)
        if (!field_holds(&fields->items[i], object))
            return false;
    return true;
}
