#include "apiserver/internal.h"

#include <stdarg.h>
#include <stdio.h>

static void set_str(struct pl_arena *a, struct pl_tree *t, struct pl_str key, struct pl_str value)
{
    pl__tree_set(t, key, pl__tree_str(a, value));
}

static struct pl_tree *status_tree(struct pl_arena *a, const char *status)
{
    struct pl_tree *t = pl__tree_new(a, JSON_OBJECT);

    set_str(a, t, PL_STR("kind"), PL_STR("Status"));
    set_str(a, t, PL_STR("apiVersion"), PL_STR("v1"));
    pl__tree_set(t, PL_STR("metadata"), pl__tree_new(a, JSON_OBJECT));
    set_str(a, t, PL_STR("status"), pl__str(status));
    return t;
}

static struct pl_tree *details_of(struct pl_arena *a, const struct pl_kind *kind,
                                  struct pl_str name)
{
    struct pl_tree *details = pl__tree_new(a, JSON_OBJECT);

    if (name.len)
        set_str(a, details, PL_STR("name"), name);
    if (kind && kind->group[0])
        set_str(a, details, PL_STR("group"), pl__str(kind->group));
    if (kind)
        set_str(a, details, PL_STR("kind"), pl__str(kind->plural));
    return details;
}

static struct pl_tree *failure(struct pl_arena *a, int status, const char *reason,
                               struct pl_str message, struct pl_tree *details)
{
    struct pl_tree *t = status_tree(a, "Failure");

    set_str(a, t, PL_STR("message"), message);
    if (reason[0])
        set_str(a, t, PL_STR("reason"), pl__str(reason));
    if (details)
        pl__tree_set(t, PL_STR("details"), details);
    pl__tree_set(t, PL_STR("code"), pl__tree_int(a, status));
    return t;
}

struct pl_tree *pl__status_failure(struct pl_arena *a, int status, const char *reason,
                                   struct pl_str message)
{
    return failure(a, status, reason, message, NULL);
}

struct pl_tree *pl__status_success(struct call *c, struct pl_str name, struct pl_str uid)
{
    struct pl_tree *t = status_tree(c->arena, "Success");
    struct pl_tree *details = details_of(c->arena, c->kind, name);

    set_str(c->arena, details, PL_STR("uid"), uid);
    pl__tree_set(t, PL_STR("details"), details);
    return t;
}

static void answer_tree(struct pl_api_answer *answer, struct pl_arena *a, int status,
                        const struct pl_tree *t)
{
    answer->status = status;
    answer->content_type = PL_STR("application/json");
    answer->body = pl__tree_text(a, t);
    answer->watch = NULL;
}

static int fail(struct call *c, int status, const char *reason, struct pl_str message,
                struct pl_tree *details)
{
    answer_tree(c->answer, c->arena, status, failure(c->arena, status, reason, message, details));
    return -1;
}

void pl_api_answer_failure(struct pl_api_answer *answer, struct pl_arena *arena, int status,
                           const char *reason, struct pl_str message)
{
    *answer = (struct pl_api_answer){ 0 };
    answer_tree(answer, arena, status, failure(arena, status, reason, message, NULL));
}

int pl__fail_status(struct call *c, int status, const char *reason, const char *format, ...)
{
    char text[2048];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return fail(c, status, reason, pl__str(text), NULL);
}

int pl__fail_not_found(struct call *c)
{
    struct pl_str resource = pl__kind_resource(c->arena, c->kind);

    return fail(c, 404, "NotFound",
                pl__str_format(c->arena, "%.*s \"%.*s\" not found", PL_STR_ARG(resource),
                               PL_STR_ARG(c->name)),
                details_of(c->arena, c->kind, c->name));
}

int pl__fail_exists(struct call *c, struct pl_str name, bool deleting)
{
    struct pl_str resource = pl__kind_resource(c->arena, c->kind);

    return fail(c, 409, "AlreadyExists",
                pl__str_format(c->arena, "%s%.*s \"%.*s\" already exists",
                               deleting ? "object is being deleted: " : "", PL_STR_ARG(resource),
                               PL_STR_ARG(name)),
                details_of(c->arena, c->kind, name));
}

int pl__fail_conflict(struct call *c, struct pl_str resource, struct pl_str why)
{
    return fail(c, 409, "Conflict",
                pl__str_format(c->arena, "Operation cannot be fulfilled on %.*s \"%.*s\": %.*s",
                               PL_STR_ARG(resource), PL_STR_ARG(c->name), PL_STR_ARG(why)),
                details_of(c->arena, c->kind, c->name));
}

int pl__fail_modified(struct call *c)
{
    return pl__fail_conflict(c, pl__kind_resource(c->arena, c->kind),
                             PL_STR("the object has been modified; please apply your changes to "
                                    "the latest version and try again"));
}

int pl__fail_method(struct call *c)
{
    return pl__fail_request(
        c, 405, "MethodNotAllowed",
        PL_STR("the server does not allow this method on the requested resource"));
}

static struct pl_tree *add_cause(struct pl_arena *a, struct pl_tree *details, const char *reason,
                                 struct pl_str message, struct pl_str field)
{
    struct pl_tree *causes = pl__tree_get(details, PL_STR("causes"));
    struct pl_tree *cause = pl__tree_new(a, JSON_OBJECT);

    if (!causes) {
        causes = pl__tree_new(a, JSON_ARRAY);
        pl__tree_set(details, PL_STR("causes"), causes);
    }
    set_str(a, cause, PL_STR("reason"), pl__str(reason));
    set_str(a, cause, PL_STR("message"), message);
    if (field.len)
        set_str(a, cause, PL_STR("field"), field);
    pl__tree_append(causes, cause);
    return details;
}

int pl__fail_too_large_version(struct call *c, uint64_t wanted)
{
    struct pl_arena *a = c->arena;
    struct pl_tree *details = pl__tree_new(a, JSON_OBJECT);

    add_cause(a, details, "ResourceVersionTooLarge", PL_STR("Too large resource version"),
              (struct pl_str){ 0 });
    pl__tree_set(details, PL_STR("retryAfterSeconds"), pl__tree_int(a, 1));
    c->answer->retry_after_s = 1;
    return fail(c, 504, "Timeout",
                pl__str_format(a, "Too large resource version: %llu, current: %llu",
                               (unsigned long long)wanted,
                               (unsigned long long)pl__api_store_version(c->s->store)),
                details);
}

int pl__fail_store(struct call *c)
{
    /* Before the rollback, which has an outcome of its own. */
    struct pl_str why = pl__str_copy(c->arena, pl__str(pl__api_store_failure(c->s->store)));

    pl__api_store_rollback(c->s->store);
    return pl__fail_status(c, 500, "InternalError", "Internal error occurred: database: %.*s",
                           PL_STR_ARG(why));
}

int pl__fail_conflicts(struct call *c, const struct pl_conflicts *conflicts)
{
    struct pl_tree *details = pl__tree_new(c->arena, JSON_OBJECT);
    struct pl_str owner = { 0 };
    struct pl_buf b;

    pl__buf_init(&b, c->arena, 16384);
    if (conflicts->count == 1)
        pl__buf_printf(&b, "Apply failed with 1 conflict: conflict with %.*s: %.*s",
                       PL_STR_ARG(conflicts->items[0].owner), PL_STR_ARG(conflicts->items[0].path));
    else
        pl__buf_printf(&b, "Apply failed with %zu conflicts: ", conflicts->count);
    for (size_t i = 0; i < conflicts->count && i < PL_CONFLICTS_MAX; i++) {
        const struct pl_conflict *x = &conflicts->items[i];
        if (conflicts->count > 1 && !pl__str_equal(owner, x->owner))
            pl__buf_printf(&b, "%sconflicts with %.*s:", i ? "\n" : "", PL_STR_ARG(x->owner));
        if (conflicts->count > 1)
            pl__buf_printf(&b, "\n- %.*s", PL_STR_ARG(x->path));
        owner = x->owner;
        add_cause(c->arena, details, "FieldManagerConflict",
                  pl__str_format(c->arena, "conflict with %.*s", PL_STR_ARG(x->owner)), x->path);
    }
    return fail(c, 409, "Conflict", pl__buf_str(&b), details);
}

int pl__fail_expired(struct call *c, struct pl_str message, struct pl_str continue_)
{
    struct pl_tree *t = failure(c->arena, 410, "Expired", message, NULL);

    if (continue_.len)
        set_str(c->arena, pl__tree_get(t, PL_STR("metadata")), PL_STR("continue"), continue_);
    answer_tree(c->answer, c->arena, 410, t);
    return -1;
}

int pl__fail_forbidden(struct call *c, struct pl_str name, struct pl_str why, const char *cause,
                       struct pl_str cause_message)
{
    struct pl_str resource = pl__kind_resource(c->arena, c->kind);
    struct pl_tree *details = details_of(c->arena, c->kind, name);

    if (cause)
        add_cause(c->arena, details, cause, cause_message, PL_STR("metadata.namespace"));
    return fail(c, 403, "Forbidden",
                pl__str_format(c->arena, "%.*s \"%.*s\" is forbidden: %.*s", PL_STR_ARG(resource),
                               PL_STR_ARG(name), PL_STR_ARG(why)),
                details);
}

void pl__fault(struct call *c, struct faults *f, const char *reason, struct pl_str field,
               const char *format, ...)
{
    char text[1024];
    va_list args;

    if (f->count == FAULTS_MAX)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    f->items[f->count].reason = reason;
    f->items[f->count].field = field;
    f->items[f->count++].text = pl__str_copy(c->arena, pl__str(text));
}

static int fail_invalid(struct call *c, struct pl_str kind, struct pl_str name,
                        struct pl_tree *details, const struct faults *f)
{
    struct pl_buf b;

    if (f->count == 0)
        return 0;
    pl__buf_init(&b, c->arena, 16384);
    pl__buf_printf(&b, "%.*s \"%.*s\" is invalid: %s", PL_STR_ARG(kind), PL_STR_ARG(name),
                   f->count > 1 ? "[" : "");
    for (size_t i = 0; i < f->count; i++) {
        pl__buf_printf(&b, "%s%.*s: %.*s", i ? ", " : "", PL_STR_ARG(f->items[i].field),
                       PL_STR_ARG(f->items[i].text));
        add_cause(c->arena, details, f->items[i].reason, f->items[i].text, f->items[i].field);
    }
    if (f->count > 1)
        pl__buf_add_char(&b, ']');
    return fail(c, 422, "Invalid", pl__buf_str(&b), details);
}

int pl__fail_invalid(struct call *c, struct pl_str name, const struct faults *f)
{
    struct pl_tree *details = details_of(c->arena, c->kind, name);

    set_str(c->arena, details, PL_STR("kind"), pl__str(c->kind->kind));
    return fail_invalid(c,
                        pl__str_format(c->arena, "%s%s%s", c->kind->kind,
                                       c->kind->group[0] ? "." : "", c->kind->group),
                        name, details, f);
}

int pl__fail_options(struct call *c, const char *options, const struct faults *f)
{
    struct pl_tree *details = pl__tree_new(c->arena, JSON_OBJECT);

    set_str(c->arena, details, PL_STR("group"), PL_STR("meta.k8s.io"));
    set_str(c->arena, details, PL_STR("kind"), pl__str(options));
    return fail_invalid(c, pl__str_format(c->arena, "%s.meta.k8s.io", options),
                        (struct pl_str){ 0 }, details, f);
}

int pl__fail_request(struct call *c, int status, const char *reason, struct pl_str message)
{
    return fail(c, status, reason, message, pl__tree_new(c->arena, JSON_OBJECT));
}
