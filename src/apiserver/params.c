#include "apiserver/internal.h"

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool pl__percent_decode(struct pl_arena *a, struct pl_str text, bool plus, struct pl_str *decoded)
{
    char *out = PL_NEW(a, char, text.len + 1);
    size_t len = 0;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '%') {
            int high = i + 2 < text.len ? hex_digit(text.ptr[i + 1]) : -1;
            int low = i + 2 < text.len ? hex_digit(text.ptr[i + 2]) : -1;
            if (high < 0 || low < 0)
                return false;
            c = (char)(high * 16 + low);
            i += 2;
        } else if (c == '+' && plus) {
            c = ' ';
        }
        if (c == '\0')
            return false;
        out[len++] = c;
    }
    *decoded = (struct pl_str){ out, len };
    return true;
}

/* As a real server reads it: whatever is said means yes, except "0" and "false". */
static bool is_true(struct pl_str value)
{
    static const char no[] = "false";
    bool is_no = value.len == sizeof no - 1;

    for (size_t i = 0; is_no && i < value.len; i++)
        is_no = (value.ptr[i] | 0x20) == no[i];
    return !is_no && !pl__str_equal(value, PL_STR("0"));
}

/* What clients say and is of no consequence here (pretty, timeout, gracePeriodSeconds ...) has no row. */
static const struct {
    const char *name;
    enum { BOOL, NUMBER, TEXT } type;
    size_t offset;
    size_t presence; /* of a bool that tells that it was said; 0: nobody asks */
} rows[] = {
    { "watch", BOOL, offsetof(struct params, watch), 0 },
    { "allowWatchBookmarks", BOOL, offsetof(struct params, bookmarks), 0 },
    { "force", BOOL, offsetof(struct params, force), 0 },
    { "sendInitialEvents", BOOL, offsetof(struct params, initial_events),
      offsetof(struct params, has_initial_events) },
    { "timeoutSeconds", NUMBER, offsetof(struct params, timeout_s),
      offsetof(struct params, has_timeout) },
    { "limit", NUMBER, offsetof(struct params, limit), 0 },
    { "continue", TEXT, offsetof(struct params, continue_), 0 },
    { "resourceVersion", TEXT, offsetof(struct params, version), 0 },
    { "resourceVersionMatch", TEXT, offsetof(struct params, version_match), 0 },
    { "fieldValidation", TEXT, offsetof(struct params, field_validation), 0 },
    { "fieldManager", TEXT, offsetof(struct params, field_manager), 0 },
    { "propagationPolicy", TEXT, offsetof(struct params, propagation), 0 },
    { "orphanDependents", BOOL, offsetof(struct params, orphan), 0 },
    { "uid", TEXT, offsetof(struct params, precondition_uid), 0 },
    { "includeObject", TEXT, offsetof(struct params, include_object), 0 },
    { "labelSelector", TEXT, offsetof(struct params, label_selector), 0 },
    { "fieldSelector", TEXT, offsetof(struct params, field_selector), 0 },
};

static int take(struct call *c, struct pl_str name, struct pl_str value)
{
    char *params = (char *)&c->params;

    if (pl__str_equal(name, PL_STR("dryRun")) && value.len) {
        if (!pl__str_equal(value, PL_STR("All")))
            return pl__fail_status(c, 422, "Invalid",
                                   " \"\" is invalid: dryRun: Unsupported value: \"%.*s\": "
                                   "supported values: \"All\"",
                                   PL_STR_ARG(value));
        c->params.dry_run = true;
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (!pl__str_equal(name, pl__str(rows[i].name)))
            continue;
        void *at = params + rows[i].offset;
        if (rows[i].presence)
            *(bool *)(void *)(params + rows[i].presence) = true;
        if (rows[i].type == BOOL)
            *(bool *)at = is_true(value);
        else if (rows[i].type == TEXT)
            *(struct pl_str *)at = value;
        else if (value.len > 1 && value.ptr[0] == '-' &&
                 pl__str_to_u64((struct pl_str){ value.ptr + 1, value.len - 1 }, (uint64_t *)at))
            *(uint64_t *)at = 0; /* less than nothing is as if it was not said */
        else if (value.len && !pl__str_to_u64(value, (uint64_t *)at))
            return pl__fail_status(c, 400, "BadRequest",
                                   "strconv.ParseInt: parsing \"%.*s\": invalid syntax",
                                   PL_STR_ARG(value));
    }
    return 0;
}

/* What it asks for is done by validate.c. */
static int check_validation(struct call *c)
{
    static const char *const known[] = { "", "Ignore", "Strict", "Warn" };
    struct pl_str method = c->request->method, value = c->params.field_validation;
    struct faults f = { 0 };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (pl__str_equal(value, pl__str(known[i])))
            return 0;
    pl__fault(c, &f, "FieldValueNotSupported", PL_STR("fieldValidation"),
              "Unsupported value: \"%.*s\": supported values: \"\", \"Ignore\", \"Strict\", "
              "\"Warn\"",
              PL_STR_ARG(value));
    return pl__fail_options(c,
                            pl__str_equal(method, PL_STR("POST"))  ? "CreateOptions"
                            : pl__str_equal(method, PL_STR("PUT")) ? "UpdateOptions"
                                                                   : "PatchOptions",
                            &f);
}

static int check_field(struct call *c, struct pl_str field)
{
    if (pl__kind_selects(c->shown, field))
        return 0;
    return pl__fail_status(c, 400, "BadRequest", "field label not supported: %.*s",
                           PL_STR_ARG(field));
}

static int read_selectors(struct call *c)
{
    struct params *p = &c->params;
    struct pl_str message;

    if (pl__selector_read_labels(c->arena, p->label_selector, &p->labels, &message) < 0 ||
        pl__selector_read_fields(c->arena, p->field_selector, &p->fields, &message) < 0)
        return pl__fail_status(c, 400, "BadRequest", "%.*s", PL_STR_ARG(message));
    for (size_t i = 0; i < p->fields.count; i++)
        if (check_field(c, p->fields.items[i].key) < 0)
            return -1;
    return 0;
}

int pl__params_read(struct call *c)
{
    struct pl_str rest = c->request->query;

    while (rest.len) {
        const char *end = memchr(rest.ptr, '&', rest.len);
        struct pl_str pair = { rest.ptr, end ? (size_t)(end - rest.ptr) : rest.len };
        rest.ptr += pair.len + (end != NULL);
        rest.len -= pair.len + (end != NULL);
        const char *equals = pair.len ? memchr(pair.ptr, '=', pair.len) : NULL;
        size_t name_len = equals ? (size_t)(equals - pair.ptr) : pair.len;
        size_t skip = name_len + (equals != NULL);
        struct pl_str name = { pair.ptr, name_len };
        struct pl_str value = { pair.ptr + skip, pair.len - skip };
        if (!pl__percent_decode(c->arena, name, true, &name) ||
            !pl__percent_decode(c->arena, value, true, &value))
            return pl__fail_status(c, 400, "BadRequest", "the query is not percent-encoded");
        if (take(c, name, value) < 0)
            return -1;
    }
    return check_validation(c) < 0 ? -1 : read_selectors(c);
}
