#include "apiserver/internal.h"

#include <ctype.h>

#include "apiserver/shape.h"
#include "apiserver/validate.h"
#include "base/base64.h"
#include "base/time.h"

enum {
    NAME_MAX_BYTES = 253,
    LABEL_MAX_BYTES = 63,
    GENERATED_BASE_MAX = 58,
    ANNOTATIONS_MAX_BYTES = 256 * 1024,
};

struct pl_str pl__meta_time(struct pl_arena *a, int64_t ms)
{
    struct pl_buf b;

    pl__buf_init(&b, a, 64);
    pl__time_add(&b, ms);
    return pl__buf_str(&b);
}

static void set_str(struct call *c, struct pl_tree *t, const char *key, struct pl_str value)
{
    pl__tree_set(t, pl__str(key), pl__tree_str(c->arena, value));
}

/* --- names --------------------------------------------------------------------------------------- */

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* [a-z0-9]([-a-z0-9]*[a-z0-9])? */
static bool is_dns_label(struct pl_str s)
{
    if (s.len == 0 || !is_name_char(s.ptr[0]) || !is_name_char(s.ptr[s.len - 1]))
        return false;
    for (size_t i = 0; i < s.len; i++)
        if (!is_name_char(s.ptr[i]) && s.ptr[i] != '-')
            return false;
    return true;
}

static bool is_dns_subdomain(struct pl_str s)
{
    do {
        const char *dot = s.len ? memchr(s.ptr, '.', s.len) : NULL;
        size_t len = dot ? (size_t)(dot - s.ptr) : s.len;
        if (!is_dns_label((struct pl_str){ s.ptr, len }))
            return false;
        if (!dot)
            return true;
        s.ptr += len + 1;
        s.len -= len + 1;
    } while (true);
}

/* (([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]) */
static bool is_label_text(struct pl_str s)
{
    if (s.len == 0 || s.len > LABEL_MAX_BYTES || !isalnum((unsigned char)s.ptr[0]) ||
        !isalnum((unsigned char)s.ptr[s.len - 1]))
        return false;
    for (size_t i = 0; i < s.len; i++)
        if (!isalnum((unsigned char)s.ptr[i]) && !strchr("-_.", s.ptr[i]))
            return false;
    return true;
}

/* prefix/name, the prefix a DNS subdomain and not needed */
static bool is_qualified_name(struct pl_str s)
{
    const char *slash = s.len ? memchr(s.ptr, '/', s.len) : NULL;

    if (!slash)
        return is_label_text(s);
    size_t len = (size_t)(slash - s.ptr);
    return len <= NAME_MAX_BYTES && is_dns_subdomain((struct pl_str){ s.ptr, len }) &&
           is_label_text((struct pl_str){ slash + 1, s.len - len - 1 });
}

static void validate_name(struct call *c, struct pl_str name, struct faults *f)
{
    static const char label[] =
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
        "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex "
        "used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
    static const char subdomain[] =
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
        "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex "
        "used "
        "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    bool namespace_ = pl__kind_is_core(c->kind, "namespaces");
    size_t max = namespace_ ? LABEL_MAX_BYTES : NAME_MAX_BYTES;

    /* An Event's name only has to be one step of a path; the path has seen to that. */
    if (strcmp(c->kind->plural, "events") == 0 && name.len <= max &&
        !(name.len && memchr(name.ptr, '/', name.len)))
        return;
    if (name.len > max)
        pl__fault(c, f, "FieldValueInvalid", PL_STR("metadata.name"),
                  "Invalid value: \"%.*s\": must be no more than %zu characters", PL_STR_ARG(name),
                  max);
    else if (!(namespace_ ? is_dns_label(name) : is_dns_subdomain(name)))
        pl__fault(c, f, "FieldValueInvalid", PL_STR("metadata.name"), "Invalid value: \"%.*s\": %s",
                  PL_STR_ARG(name), namespace_ ? label : subdomain);
}

/* --- validation ---------------------------------------------------------------------------------- */

static void validate_labels(struct call *c, const struct pl_tree *labels, struct faults *f)
{
    for (const struct pl_tree *m = labels ? labels->first : NULL; m; m = m->next) {
        if (!is_qualified_name(m->key))
            pl__fault(
                c, f, "FieldValueInvalid", PL_STR("metadata.labels"),
                "Invalid value: \"%.*s\": name part must consist of alphanumeric characters, "
                "'-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
                "'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
                "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
                PL_STR_ARG(m->key));
        if (m->text.len > LABEL_MAX_BYTES)
            pl__fault(c, f, "FieldValueInvalid", PL_STR("metadata.labels"),
                      "Invalid value: \"%.*s\": must be no more than 63 bytes",
                      PL_STR_ARG(m->text));
        else if (m->text.len && !is_label_text(m->text))
            pl__fault(
                c, f, "FieldValueInvalid", PL_STR("metadata.labels"),
                "Invalid value: \"%.*s\": a valid label must be an empty string or consist of "
                "alphanumeric characters, '-', '_' or '.', and must start and end with an "
                "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex "
                "used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
                PL_STR_ARG(m->text));
    }
}

static void validate_annotations(struct call *c, const struct pl_tree *annotations,
                                 struct faults *f)
{
    size_t size = 0;

    for (const struct pl_tree *m = annotations ? annotations->first : NULL; m; m = m->next)
        size += m->key.len + m->text.len;
    if (size > ANNOTATIONS_MAX_BYTES)
        pl__fault(c, f, "FieldValueTooLong", PL_STR("metadata.annotations"),
                  "Too long: may not be more than %d bytes", ANNOTATIONS_MAX_BYTES);
}

static void validate_owners(struct call *c, const struct pl_tree *owners, struct faults *f)
{
    static const char *const needed[] = { "apiVersion", "kind", "name", "uid" };
    size_t controllers = 0;

    for (const struct pl_tree *o = owners ? owners->first : NULL; o; o = o->next) {
        for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
            if (pl__tree_get_str(o, needed[i]).len == 0)
                pl__fault(c, f, "FieldValueInvalid",
                          pl__str_format(c->arena, "metadata.ownerReferences.%s", needed[i]),
                          "Invalid value: \"\": %smust not be empty", i == 0 ? "version " : "");
        if (pl__str_equal(pl__tree_get_str(o, "apiVersion"), PL_STR("v1")) &&
            pl__str_equal(pl__tree_get_str(o, "kind"), PL_STR("Event")))
            pl__fault(c, f, "FieldValueInvalid", PL_STR("metadata.ownerReferences"),
                      "Invalid value: /v1, Kind=Event is disallowed from being an owner");
        controllers += pl__tree_get_true(o, "controller");
    }
    if (controllers > 1)
        pl__fault(c, f, "FieldValueInvalid", PL_STR("metadata.ownerReferences"),
                  "Invalid value: null: Only one reference can have Controller set to true");
}

static bool has_item(const struct pl_tree *list, struct pl_str text)
{
    for (const struct pl_tree *i = list ? list->first : NULL; i; i = i->next)
        if (i->type == JSON_STRING && pl__str_equal(i->text, text))
            return true;
    return false;
}

/* Of the core group's kinds but Events; those of others may be any name. */
static bool is_full_finalizer(struct pl_str name)
{
    static const char *const standard[] = { "foregroundDeletion", "orphan", "kubernetes" };

    for (size_t i = 0; i < sizeof standard / sizeof standard[0]; i++)
        if (pl__str_equal(name, pl__str(standard[i])))
            return true;
    return name.len && memchr(name.ptr, '/', name.len);
}

static void validate_finalizers(struct call *c, const struct pl_tree *old,
                                const struct pl_tree *object, struct faults *f)
{
    const struct pl_tree *before = pl__tree_at(old, "metadata.finalizers");
    const struct pl_tree *list = pl__tree_at(object, "metadata.finalizers");
    bool deleting = pl__tree_at(old, "metadata.deletionTimestamp") != NULL;

    size_t index = 0;

    for (const struct pl_tree *i = list ? list->first : NULL; i; i = i->next, index++) {
        if (!c->kind->group[0] && strcmp(c->kind->plural, "events") != 0 &&
            !is_full_finalizer(i->text))
            pl__fault(
                c, f, "FieldValueInvalid",
                pl__str_format(c->arena, "metadata.finalizers[%zu]", index),
                "Invalid value: \"%.*s\": name is neither a standard finalizer name nor is it "
                "fully qualified",
                PL_STR_ARG(i->text));
        if (!is_qualified_name(i->text))
            pl__fault(c, f, "FieldValueInvalid", PL_STR("metadata.finalizers"),
                      "Invalid value: \"%.*s\": name part must be non-empty", PL_STR_ARG(i->text));
        if (deleting && !has_item(before, i->text))
            pl__fault(c, f, "FieldValueForbidden", PL_STR("metadata.finalizers"),
                      "Forbidden: no new finalizers can be added if the object is being deleted, "
                      "found new finalizers []string{\"%.*s\"}",
                      PL_STR_ARG(i->text));
    }
}

/* Something is not of its type. Which failure that is depends on where a real server finds it. */
static int fail_type(struct call *c, const char *path)
{
    if (c->applies)
        return pl__fail_status(c, 500, "",
                               "failed to create typed patch object (%.*s/%.*s; %s, Kind=%s): "
                               ".%s: another type is expected",
                               PL_STR_ARG(c->ns), PL_STR_ARG(c->name), c->kind->version,
                               c->kind->kind, path);
    if (pl__str_equal(c->request->method, PL_STR("PATCH")))
        return pl__fail_status(c, 422, "Invalid",
                               " \"\" is invalid: patch: Invalid value: cannot unmarshal into Go "
                               "struct field %s.%s",
                               c->kind->kind, path);
    return pl__fail_status(c, 400, "BadRequest",
                           "%s in version \"%s\" cannot be handled as a %s: json: cannot unmarshal "
                           "into Go struct field %s.%s",
                           c->kind->kind, c->kind->version, c->kind->kind, c->kind->kind, path);
}

/* The types that the rest relies on. */
static int check_types(struct call *c, const struct pl_tree *metadata)
{
    static const struct {
        const char *name;
        enum pl_json_type type;
        enum pl_json_type inside;
    } wanted[] = {
        { "labels", JSON_OBJECT, JSON_STRING },    { "annotations", JSON_OBJECT, JSON_STRING },
        { "finalizers", JSON_ARRAY, JSON_STRING }, { "ownerReferences", JSON_ARRAY, JSON_OBJECT },
        { "name", JSON_STRING, JSON_NULL },        { "generateName", JSON_STRING, JSON_NULL },
        { "namespace", JSON_STRING, JSON_NULL },   { "resourceVersion", JSON_STRING, JSON_NULL },
        { "uid", JSON_STRING, JSON_NULL },
    };

    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        const struct pl_tree *m = pl__tree_get(metadata, pl__str(wanted[i].name));
        bool fits = !m || m->type == wanted[i].type || m->type == JSON_NULL;
        for (const struct pl_tree *x = m && fits ? m->first : NULL; x; x = x->next)
            fits = fits && (x->type == wanted[i].inside || x->type == JSON_NULL);
        if (!fits)
            return fail_type(c, pl__str_format(c->arena, "metadata.%s", wanted[i].name).ptr);
    }
    return 0;
}

/* What is stored must be readable again, whatever patches made of it. */
static int check_size(struct call *c, const struct pl_tree *object, const struct pl_tree *metadata)
{
    struct pl_tree_size size = { .widest = pl__tree_count(object) }, managed = { 0 };
    size_t deepest = 0;

    if (pl__tree_count(metadata) > size.widest)
        size.widest = pl__tree_count(metadata);
    for (const struct pl_tree *m = object->first; m; m = m->next) {
        size_t depth = m == metadata ? 0 : pl__tree_depth(m, &size);
        deepest = depth > deepest ? depth : deepest;
    }
    for (const struct pl_tree *m = metadata ? metadata->first : NULL; m; m = m->next) {
        bool owners = pl__str_equal(m->key, PL_STR("managedFields"));
        size_t depth = pl__tree_depth(m, owners ? &managed : &size);
        deepest = !owners && depth > deepest ? depth : deepest;
    }
    if (deepest > PL_OBJECT_DEPTH_MAX)
        return pl__fail_status(c, 400, "BadRequest", "the object is nested too deeply");
    if (size.widest > PL_OBJECT_MEMBERS_MAX || managed.widest > PL_TREE_MEMBERS_MAX)
        return pl__fail_status(c, 413, "RequestEntityTooLarge",
                               "Request entity too large: an object has more than %d fields",
                               PL_OBJECT_MEMBERS_MAX);
    return 0;
}

/* Of Secrets and ConfigMaps: what may not change. */
static void validate_data(struct call *c, const struct pl_tree *old, const struct pl_tree *object,
                          struct faults *f)
{
    static const char *const sealed[] = { "immutable", "data", "binaryData" };
    bool secret = pl__kind_is_core(c->kind, "secrets");

    if (!old || (!secret && !pl__kind_is_core(c->kind, "configmaps")))
        return;
    struct pl_str type = pl__tree_get_str(object, "type");
    if (secret && !pl__str_equal(type, pl__tree_get_str(old, "type")))
        pl__fault(c, f, "FieldValueInvalid", PL_STR("type"),
                  "Invalid value: \"%.*s\": field is immutable", PL_STR_ARG(type));
    for (size_t i = 0; i < 3 && pl__tree_get_true(old, "immutable"); i++)
        if (!pl__tree_equal(pl__tree_at(old, sealed[i]), pl__tree_at(object, sealed[i])))
            pl__fault(c, f, "FieldValueForbidden", pl__str(sealed[i]),
                      "Forbidden: field is immutable when `immutable` is set");
}

/* An Event stands beside its object. One of an object without a namespace is in the namespace default, or, when it
 * has an eventTime as newer clients set it, in kube-system; then a namespace that is told is not looked at. */
static void validate_event(struct call *c, const struct pl_tree *object, struct faults *f)
{
    struct pl_str ns = pl__tree_get_str(object, "involvedObject.namespace");
    bool newer = pl__tree_get_str(object, "eventTime").len > 0;
    bool home = pl__str_equal(c->ns, PL_STR("default")) ||
                (newer && pl__str_equal(c->ns, PL_STR("kube-system")));

    if (!pl__kind_is_core(c->kind, "events") || (ns.len ? newer || pl__str_equal(ns, c->ns) : home))
        return;
    pl__fault(c, f, "FieldValueInvalid", PL_STR("involvedObject.namespace"),
              "Invalid value: \"%.*s\": does not match event.namespace", PL_STR_ARG(ns));
}

int pl__meta_validate(struct call *c, const struct pl_tree *old, const struct pl_tree *object)
{
    const struct pl_tree *metadata = pl__tree_get(object, PL_STR("metadata"));
    struct pl_str name = pl__tree_get_str(metadata, "name");
    struct faults f = { 0 };

    if (check_size(c, object, metadata) < 0)
        return -1;
    if (c->kind->custom && !pl__str_equal(pl__tree_get_str(object, "kind"), pl__str(c->kind->kind)))
        pl__fault(c, &f, "FieldValueInvalid", PL_STR("kind"), "Invalid value: \"%.*s\": must be %s",
                  PL_STR_ARG(pl__tree_get_str(object, "kind")), c->kind->kind);
    validate_name(c, name, &f);
    validate_labels(c, pl__tree_at(metadata, "labels"), &f);
    validate_annotations(c, pl__tree_at(metadata, "annotations"), &f);
    validate_owners(c, pl__tree_at(metadata, "ownerReferences"), &f);
    validate_finalizers(c, old, object, &f);
    validate_data(c, old, object, &f);
    validate_event(c, object, &f);
    pl__validate_object(c, old, object, &f);
    return pl__fail_invalid(c, name, &f);
}

/* --- what the server sets ------------------------------------------------------------------------ */

static struct pl_str new_uid(struct call *c)
{
    uint64_t x = pl__api_random(c->s), y = pl__api_random(c->s);

    return pl__str_format(c->arena, "%08x-%04x-4%03x-%04x-%012llx", (unsigned)(x >> 32),
                          (unsigned)(x >> 16 & 0xffff), (unsigned)(x & 0xfff),
                          (unsigned)(0x8000 | (y >> 48 & 0x3fff)),
                          (unsigned long long)(y & 0xffffffffffff));
}

static struct pl_str new_name(struct call *c, struct pl_str base)
{
    static const char alphabet[] = "bcdfghjklmnpqrstvwxz2456789";
    char end[6] = "";

    for (int i = 0; i < 5; i++)
        end[i] = alphabet[pl__api_random(c->s) % (sizeof alphabet - 1)];
    base.len = base.len > GENERATED_BASE_MAX ? GENERATED_BASE_MAX : base.len;
    return pl__str_format(c->arena, "%.*s%s", PL_STR_ARG(base), end);
}

/* The name that is asked for, or a new one that nobody has. */
static int choose_name(struct call *c, struct pl_tree *metadata)
{
    struct pl_str base = pl__tree_get_str(metadata, "generateName");
    struct pl_store_row row;

    c->name = pl__tree_get_str(metadata, "name");
    if (c->name.len)
        return 0;
    if (base.len == 0) {
        struct faults f = { 0 };
        pl__fault(c, &f, "FieldValueRequired", PL_STR("metadata.name"),
                  "Required value: name or generateName is required");
        return pl__fail_invalid(c, (struct pl_str){ 0 }, &f);
    }
    for (int tries = 0; tries < 8; tries++) {
        c->name = new_name(c, base);
        struct pl_store_key key = pl__call_key(c);
        int found = pl__api_store_get(c->s->store, c->arena, &key, &row);
        if (found < 0)
            return pl__fail_store(c);
        if (found == 0)
            break;
    }
    set_str(c, metadata, "name", c->name);
    return 0;
}

/* Plain text of a Secret becomes part of its data. */
static void encode_string_data(struct call *c, struct pl_tree *object)
{
    struct pl_tree *plain = pl__tree_remove(object, PL_STR("stringData"));

    for (const struct pl_tree *m = plain ? plain->first : NULL; m; m = m->next)
        pl__tree_set(pl__tree_make(c->arena, object, PL_STR("data")), m->key,
                     pl__tree_str(c->arena, pl__base64_encode(c->arena, m->text)));
}

static bool has_generation(const struct pl_kind *kind)
{
    return kind->custom || pl__kind_is_core(kind, "pods");
}

static void set_namespace_label(struct call *c, struct pl_tree *object)
{
    struct pl_tree *metadata = pl__tree_make(c->arena, object, PL_STR("metadata"));
    struct pl_str name = pl__tree_get_str(metadata, "name");

    if (pl__kind_is_core(c->kind, "namespaces") && name.len)
        set_str(c, pl__tree_make(c->arena, metadata, PL_STR("labels")),
                "kubernetes.io/metadata.name", name);
}

/* What the real server fills in, as far as clients look at it. */
static void set_defaults(struct call *c, struct pl_tree *object)
{
    if (pl__kind_is_core(c->kind, "secrets")) {
        encode_string_data(c, object);
        if (!pl__tree_get(object, PL_STR("type")))
            set_str(c, object, "type", PL_STR("Opaque"));
    }
    set_namespace_label(c, object);
}

static void set_new_status(struct call *c, struct pl_tree *object)
{
    struct pl_arena *a = c->arena;

    if (pl__kind_is_core(c->kind, "namespaces")) {
        struct pl_tree *list = pl__tree_new(a, JSON_ARRAY);
        pl__tree_append(list, pl__tree_str(a, PL_STR("kubernetes")));
        pl__tree_set(pl__tree_make(a, object, PL_STR("spec")), PL_STR("finalizers"), list);
        pl__tree_remove(object, PL_STR("status"));
        set_str(c, pl__tree_make(a, object, PL_STR("status")), "phase", PL_STR("Active"));
    } else if (pl__kind_is_core(c->kind, "pods")) {
        pl__tree_remove(object, PL_STR("status"));
        struct pl_tree *status = pl__tree_make(a, object, PL_STR("status"));
        set_str(c, status, "phase", PL_STR("Pending"));
        set_str(c, status, "qosClass", PL_STR("BestEffort"));
    } else if (c->kind->custom && c->kind->status) {
        pl__tree_remove(object, PL_STR("status"));
    }
}

static int check_namespace(struct call *c, const struct pl_tree *metadata)
{
    struct pl_str ns = pl__tree_get_str(metadata, "namespace");

    if (!c->kind->namespaced || ns.len == 0 || pl__str_equal(ns, c->ns))
        return 0;
    return pl__fail_status(c, 400, "BadRequest",
                           "the namespace of the provided object does not match the namespace sent "
                           "on the request");
}

/* The bytes of a Secret or ConfigMap, in base64. */
static int check_bytes(struct call *c, const struct pl_tree *object)
{
    const char *name = pl__kind_is_core(c->kind, "secrets") ? "data" : "binaryData";
    const struct pl_tree *data = pl__tree_get(object, pl__str(name));
    struct pl_str bytes;

    if (!pl__kind_is_core(c->kind, "secrets") && !pl__kind_is_core(c->kind, "configmaps"))
        return 0;
    if (data && data->type != JSON_OBJECT && data->type != JSON_NULL)
        return fail_type(c, name);
    for (const struct pl_tree *m = data ? data->first : NULL; m; m = m->next)
        if (m->type != JSON_NULL &&
            (m->type != JSON_STRING || pl__base64_decode(c->arena, m->text, &bytes) < 0))
            return fail_type(c, name);
    return 0;
}

int pl__meta_decode(struct call *c, struct pl_tree *object)
{
    if (check_types(c, pl__tree_make(c->arena, object, PL_STR("metadata"))) < 0 ||
        check_bytes(c, object) < 0 || pl__validate_prune(c, object) < 0)
        return -1;
    pl__shape(c->arena, c->kind, object);
    set_defaults(c, object);
    return 0;
}

int pl__meta_prepare_create(struct call *c, struct pl_tree *object)
{
    static const char *const dropped[] = { "uid",        "creationTimestamp",
                                           "selfLink",   "deletionTimestamp",
                                           "generation", "deletionGracePeriodSeconds" };
    struct pl_tree *metadata = pl__tree_make(c->arena, object, PL_STR("metadata"));

    if (check_namespace(c, metadata) < 0)
        return -1;
    struct pl_str version = pl__tree_get_str(metadata, "resourceVersion");
    if (version.len && !pl__str_equal(version, PL_STR("0")))
        return pl__fail_status(c, 500, "",
                               "resourceVersion should not be set on objects to be created");
    for (size_t i = 0; i < sizeof dropped / sizeof dropped[0]; i++)
        pl__tree_remove(metadata, pl__str(dropped[i]));
    pl__tree_remove(metadata, PL_STR("resourceVersion"));
    if (c->kind->namespaced)
        set_str(c, metadata, "namespace", c->ns);
    else
        pl__tree_remove(metadata, PL_STR("namespace"));
    if (choose_name(c, metadata) < 0)
        return -1;
    set_str(c, metadata, "uid", new_uid(c));
    set_str(c, metadata, "creationTimestamp", pl__meta_time(c->arena, c->now_ms));
    if (has_generation(c->kind))
        pl__tree_set(metadata, PL_STR("generation"), pl__tree_int(c->arena, 1));
    set_namespace_label(c, object); /* of one whose name was generated */
    set_new_status(c, object);
    return 0;
}

/* --- updates ------------------------------------------------------------------------------------- */

static void keep_member(struct call *c, const struct pl_tree *from, struct pl_tree *to,
                        const char *key)
{
    const struct pl_tree *m = pl__tree_get(from, pl__str(key));

    if (m)
        pl__tree_set(to, pl__str(key), pl__tree_copy(c->arena, m));
    else
        pl__tree_remove(to, pl__str(key));
}

/* Everything but metadata and status. */
static bool content_differs(const struct pl_tree *old, const struct pl_tree *object)
{
    const struct pl_tree *const pair[2] = { old, object };

    for (int i = 0; i < 2; i++)
        for (const struct pl_tree *m = pair[i]->first; m; m = m->next)
            if (!pl__str_equal(m->key, PL_STR("metadata")) &&
                !pl__str_equal(m->key, PL_STR("status")) &&
                !pl__tree_equal(m, pl__tree_get(pair[1 - i], m->key)))
                return true;
    return false;
}

/* On /status of a custom kind all but the status is the old object; of a built-in one, its spec. */
static void keep_for_status(struct call *c, const struct pl_tree *old, struct pl_tree *object)
{
    struct pl_tree *managed =
        pl__tree_remove(pl__tree_get(object, PL_STR("metadata")), PL_STR("managedFields"));
    struct pl_tree *status = pl__tree_remove(object, PL_STR("status"));

    if (!c->kind->custom) {
        keep_member(c, old, object, "spec");
        if (managed)
            pl__tree_set(pl__tree_get(object, PL_STR("metadata")), PL_STR("managedFields"),
                         managed);
    } else {
        object->first = object->last = NULL;
        for (const struct pl_tree *m = old->first; m; m = m->next)
            pl__tree_set(object, m->key, pl__tree_copy(c->arena, m));
        if (managed)
            pl__tree_set(pl__tree_get(object, PL_STR("metadata")), PL_STR("managedFields"),
                         managed);
    }
    if (status)
        pl__tree_set(object, PL_STR("status"), status);
    else
        pl__tree_remove(object, PL_STR("status"));
}

int pl__meta_prepare_update(struct call *c, const struct pl_tree *old, struct pl_tree *object)
{
    static const char *const kept[] = {
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "generation",
        "deletionGracePeriodSeconds",
        "generateName",
    };
    const struct pl_tree *before = pl__tree_get(old, PL_STR("metadata"));
    bool status = pl__str_equal(c->subresource, PL_STR("status"));
    struct pl_tree *metadata = pl__tree_make(c->arena, object, PL_STR("metadata"));

    if (status)
        keep_for_status(c, old, object);
    else if (c->kind->status)
        keep_member(c, old, object, "status");
    metadata = pl__tree_make(c->arena, object, PL_STR("metadata"));
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
        keep_member(c, before, metadata, kept[i]);
    pl__tree_remove(metadata, PL_STR("selfLink"));
    keep_member(c, old, object, "apiVersion");
    if (!pl__tree_get(object, PL_STR("kind")))
        keep_member(c, old, object, "kind");
    if (pl__kind_is_core(c->kind, "namespaces") && !status)
        keep_member(c, old, object, "spec");
    if (has_generation(c->kind) && content_differs(old, object))
        pl__tree_set(metadata, PL_STR("generation"),
                     pl__tree_int(c->arena, pl__tree_get_int(before, "generation", 0) + 1));
    return 0;
}

void pl__meta_order(struct call *c, struct pl_tree *object)
{
    struct pl_tree *metadata = pl__tree_remove(object, PL_STR("metadata"));
    struct pl_str version = pl__kind_api_version(c->arena, c->kind);

    pl__tree_remove(object, PL_STR("apiVersion"));
    pl__tree_remove(object, PL_STR("kind"));
    struct pl_tree *front[] = { pl__tree_str(c->arena, version),
                                pl__tree_str(c->arena, pl__str(c->kind->kind)), metadata };
    static const char *const keys[] = { "apiVersion", "kind", "metadata" };
    for (size_t i = 0; i < 3; i++) {
        front[i]->key = pl__str(keys[i]);
        pl__tree_insert(object, i, front[i]);
    }
}

bool pl__has_finalizer(const struct pl_tree *object, const char *name)
{
    const struct pl_tree *list = pl__tree_at(object, "metadata.finalizers");

    for (const struct pl_tree *i = list ? list->first : NULL; i; i = i->next)
        if (pl__str_equal(i->text, pl__str(name)))
            return true;
    return false;
}

/* It is deleted, and nobody has to do anything more about that. */
bool pl__meta_ends(const struct pl_kind *kind, const struct pl_tree *object)
{
    if (!pl__tree_at(object, "metadata.deletionTimestamp"))
        return false;
    if (pl__tree_count(pl__tree_at(object, "metadata.finalizers")))
        return false;
    return !pl__kind_is_core(kind, "namespaces") ||
           !pl__tree_count(pl__tree_at(object, "spec.finalizers"));
}

/* --- the two faces of Events --------------------------------------------------------------------- */

static const struct {
    const char *core, *events;
} event_names[] = {
    { "involvedObject", "regarding" },
    { "message", "note" },
    { "reportingComponent", "reportingController" },
    { "source", "deprecatedSource" },
    { "firstTimestamp", "deprecatedFirstTimestamp" },
    { "lastTimestamp", "deprecatedLastTimestamp" },
    { "count", "deprecatedCount" },
};

static void rename_members(struct pl_tree *object, bool to_core)
{
    for (struct pl_tree *m = object->first; m; m = m->next)
        for (size_t i = 0; i < sizeof event_names / sizeof event_names[0]; i++) {
            const char *from = to_core ? event_names[i].events : event_names[i].core;
            const char *to = to_core ? event_names[i].core : event_names[i].events;
            if (pl__str_equal(m->key, pl__str(from))) {
                m->key = pl__str(to);
                break;
            }
        }
}

static void turn_face(struct pl_arena *a, const struct pl_kind *to, struct pl_tree *object,
                      bool to_core)
{
    rename_members(object, to_core);
    pl__tree_set(object, PL_STR("apiVersion"), pl__tree_str(a, pl__kind_api_version(a, to)));
}

void pl__meta_to_stored(struct pl_arena *a, const struct pl_kind *kind, struct pl_tree *object)
{
    if (kind->stored_as)
        turn_face(a, kind->stored_as, object, true);
}

void pl__meta_from_stored(struct pl_arena *a, const struct pl_kind *kind, struct pl_tree *object)
{
    static const char *const optional[] = { "reportingController", "reportingInstance" };

    if (!kind->stored_as)
        return;
    turn_face(a, kind, object, false);
    /* The newer face leaves them out where the older one has them empty. */
    for (size_t i = 0; i < sizeof optional / sizeof optional[0]; i++) {
        const struct pl_tree *m = pl__tree_get(object, pl__str(optional[i]));
        if (m && m->type == JSON_STRING && m->text.len == 0)
            pl__tree_remove(object, pl__str(optional[i]));
    }
}
