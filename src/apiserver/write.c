#include "apiserver/internal.h"

#include "apiserver/patch.h"
#include "apiserver/validate.h"
#include "base/yaml.h"

enum {
    MANAGER_MAX_BYTES = 128,
    OWNERS_MAX = 64,
    COLLECTION_PORTION = 100,
    COLLECTION_MAX = 100000
};

/* --- bodies -------------------------------------------------------------------------------------- */

static bool media_is(struct pl_str type, const char *name)
{
    const char *end = type.len ? memchr(type.ptr, ';', type.len) : NULL;
    size_t len = end ? (size_t)(end - type.ptr) : type.len;

    while (len && type.ptr[len - 1] == ' ')
        len--;
    return pl__str_equal((struct pl_str){ type.ptr, len }, pl__str(name));
}

static bool looks_like_json(struct pl_str body)
{
    for (size_t i = 0; i < body.len; i++)
        if (!strchr(" \t\r\n", body.ptr[i]))
            return body.ptr[i] == '{' || body.ptr[i] == '[';
    return true;
}

/* The body as a tree; YAML where `yaml` allows it. NULL with an answer. */
static struct pl_tree *read_body(struct call *c, bool yaml)
{
    struct pl_error *err = NULL;
    struct pl_str text = c->request->body;
    struct pl_tree *body = NULL;

    if (yaml && !looks_like_json(text)) {
        struct pl_yaml_limits limits = { .depth_max = PL_OBJECT_DEPTH_MAX,
                                         .json_bytes_max = PL_API_BODY_BYTES_MAX };
        struct pl_position_map positions;
        if (pl__yaml_to_json(c->arena, text, PL_STR("body"), limits, &text, &positions, &err) == 0)
            body = pl__tree_read(c->arena, text, &err);
    } else {
        body = pl__tree_read(c->arena, text, &err);
    }
    if (body)
        return body;
    struct pl_str why = pl__error_text(c->arena, err);
    pl__fail_status(c, 400, "BadRequest",
                    "the object provided is unrecognized (must be of type %s): couldn't get "
                    "version/kind; json parse error: %.*s",
                    c->shown->kind, PL_STR_ARG(why));
    return NULL;
}

static int check_type(struct call *c, const struct pl_tree *object)
{
    struct pl_str version = pl__tree_get_str(object, "apiVersion");
    struct pl_str kind = pl__tree_get_str(object, "kind");
    struct pl_str wanted = pl__kind_api_version(c->arena, c->shown);

    if (object->type != JSON_OBJECT)
        return pl__fail_status(c, 400, "BadRequest",
                               "the object provided is unrecognized (must be of type %s): couldn't "
                               "get version/kind; json parse error: an object is expected",
                               c->shown->kind);
    if (kind.len == 0 && c->kind->custom)
        return pl__fail_status(c, 400, "BadRequest", "Object 'Kind' is missing in '%.*s'",
                               (int)(c->request->body.len > 512 ? 512 : c->request->body.len),
                               c->request->body.ptr);
    if (version.len && !pl__str_equal(version, wanted))
        return pl__fail_status(c, 400, "BadRequest",
                               "the API version in the data (%.*s) does not match the expected API "
                               "version (%.*s)",
                               PL_STR_ARG(version), PL_STR_ARG(wanted));
    /* Objects of custom kinds are read whatever they call themselves, and checked later. */
    if (kind.len && !pl__str_equal(kind, pl__str(c->shown->kind)) &&
        (c->applies || !c->kind->custom))
        return pl__fail_status(c, 400, "BadRequest",
                               "%.*s in version \"%s\" cannot be handled as a %s: the kind in the "
                               "data (%.*s) does not match the expected kind (%s)",
                               PL_STR_ARG(kind), c->shown->version, c->shown->kind,
                               PL_STR_ARG(kind), c->shown->kind);
    return 0;
}

/* An object of the kind, in the face that is stored. */
static struct pl_tree *read_object(struct call *c)
{
    struct pl_str type = c->request->content_type;
    bool yaml = media_is(type, "application/yaml");

    if (type.len && !yaml && !media_is(type, "application/json")) {
        pl__fail_status(c, 415, "UnsupportedMediaType",
                        "the body of the request was in an unknown format - accepted media types "
                        "include: application/json, application/yaml");
        return NULL;
    }
    struct pl_tree *object = read_body(c, yaml);
    if (object && object->type == JSON_NULL)
        object->type = JSON_OBJECT; /* nothing was said */
    if (!object || check_type(c, object) < 0)
        return NULL;
    pl__meta_to_stored(c->arena, c->shown, object);
    return pl__meta_decode(c, object) < 0 ? NULL : object;
}

static struct pl_manager manager_of(struct call *c)
{
    struct pl_str agent = c->request->user_agent, name = c->params.field_manager;

    if (name.len == 0) {
        const char *slash = agent.len ? memchr(agent.ptr, '/', agent.len) : NULL;
        name = (struct pl_str){ agent.ptr, slash ? (size_t)(slash - agent.ptr) : agent.len };
        if (name.len > MANAGER_MAX_BYTES)
            name.len = MANAGER_MAX_BYTES;
    }
    bool scale = pl__str_equal(c->subresource, PL_STR("scale"));
    bool status = pl__str_equal(c->subresource, PL_STR("status"));
    struct pl_str time = { 0 };
    if (!scale) /* what comes by way of a Scale is taken over from there, and the time is lost */
        time = pl__meta_time(c->arena, c->now_ms);
    return (struct pl_manager){
        .name = name.len ? name : PL_STR("unknown"),
        .endpoint = scale    ? ENDPOINT_SCALE
                    : status ? ENDPOINT_STATUS
                             : ENDPOINT_MAIN,
        .time = time,
    };
}

/* --- storing ------------------------------------------------------------------------------------- */

static size_t owner_uids(const struct pl_tree *object, struct pl_str *uids)
{
    const struct pl_tree *owners = pl__tree_at(object, "metadata.ownerReferences");
    size_t count = 0;

    for (const struct pl_tree *o = owners ? owners->first : NULL; o && count < OWNERS_MAX;
         o = o->next)
        uids[count++] = pl__tree_get_str(o, "uid");
    return count;
}

static void set_version(struct call *c, struct pl_tree *object, uint64_t version)
{
    struct pl_str text = pl__str_format(c->arena, "%llu", (unsigned long long)version);

    pl__tree_set(pl__tree_make(c->arena, object, PL_STR("metadata")), PL_STR("resourceVersion"),
                 pl__tree_str(c->arena, text));
}

/* What the collector has to look at because of this revision; in the transaction. */
static int add_work(struct call *c, const struct pl_store_write *w, const struct pl_tree *object)
{
    struct pl_store *store = c->s->store;
    bool waiting =
        pl__tree_at(object, "metadata.deletionTimestamp") &&
        (pl__kind_is_core(c->kind, "namespaces") ||
         pl__has_finalizer(object, "foregroundDeletion") || pl__has_finalizer(object, "orphan"));

    if (waiting) {
        c->s->work = true;
        if (pl__api_store_work_add(store, w->key.cluster, w->uid) < 0)
            return -1;
    }
    for (size_t i = 0; i < w->owner_count; i++) {
        int found = pl__api_store_find_uid(store, c->arena, w->key.cluster, w->owners[i], NULL);
        if (found < 0)
            return -1;
        if (found)
            continue;
        c->s->work = true; /* an owner that is gone, or never was */
        if (pl__api_store_work_add(store, w->key.cluster, w->owners[i]) < 0)
            return -1;
    }
    return 0;
}

/* A removal matters to what it owned, and to owners that wait for it. */
static int add_removal_work(struct call *c, const struct pl_store_write *w,
                            const struct pl_tree *object)
{
    struct pl_store *store = c->s->store;
    const struct pl_tree *owners = pl__tree_at(object, "metadata.ownerReferences");
    struct pl_store_key key;
    int owns = pl__api_store_next_owned(store, c->arena, w->key.cluster, w->uid,
                                        &(struct pl_store_key){ 0 }, &key);

    if (owns < 0 || (owns && pl__api_store_work_add(store, w->key.cluster, w->uid) < 0))
        return -1;
    c->s->work = true; /* its namespace may wait for this, too */
    for (const struct pl_tree *o = owners ? owners->first : NULL; o; o = o->next)
        if (pl__tree_get_true(o, "blockOwnerDeletion") &&
            pl__api_store_work_add(store, w->key.cluster, pl__tree_get_str(o, "uid")) < 0)
            return -1;
    return 0;
}

static int store_revision(struct call *c, const struct pl_store_row *old, struct pl_tree *object,
                          bool remove)
{
    struct pl_store *store = c->s->store;
    struct pl_str owners[OWNERS_MAX];
    struct pl_buf text;
    struct pl_store_write w = {
        .key = pl__call_key(c),
        .previous = old ? old->version : 0,
        .uid = pl__tree_get_str(object, "metadata.uid"),
        .owners = owners,
        .owner_count = owner_uids(object, owners),
    };

    pl__meta_order(c, object);
    if (pl__api_store_begin(store) < 0)
        return pl__fail_store(c);
    w.version = pl__api_store_take_version(store);
    set_version(c, object, w.version);
    pl__buf_init(&text, c->arena, remove ? SIZE_MAX / 2 : PL_API_BODY_BYTES_MAX);
    pl__tree_write(&text, object);
    w.object = pl__buf_str(&text);
    if (text.overflowed) {
        pl__api_store_rollback(store);
        return pl__fail_status(c, 413, "RequestEntityTooLarge",
                               "Request entity too large: limit is %d", PL_API_BODY_BYTES_MAX);
    }
    int failed = remove ? pl__api_store_remove(store, &w) : pl__api_store_put(store, &w);
    if (!failed)
        failed = remove ? add_removal_work(c, &w, object) : add_work(c, &w, object);
    if (failed || pl__api_store_commit(store) < 0)
        return pl__fail_store(c);
    pl__watch_notify(c->s, w.key.cluster, w.key.kind, w.version);
    return 0;
}

int pl__write_remove(struct call *c, const struct pl_store_row *old, struct pl_tree *object)
{
    return c->params.dry_run ? 0 : store_revision(c, old, object, true);
}

int pl__write_store(struct call *c, const struct pl_store_row *old, struct pl_tree *object)
{
    if (old && pl__meta_ends(c->kind, object))
        return pl__write_remove(c, old, object);
    return c->params.dry_run ? 0 : store_revision(c, old, object, false);
}

static int answer(struct call *c, int status, struct pl_tree *object)
{
    pl__meta_from_stored(c->arena, c->shown, object);
    pl__answer_object(c, status, object);
    return 0;
}

/* What is at the call's place: 1 with the row and its object (in the stored face), 0, or -1 with an answer. */
static int find(struct call *c, struct pl_store_row *row, struct pl_tree **object)
{
    struct pl_store_key key = pl__call_key(c);
    int found = pl__api_store_get(c->s->store, c->arena, &key, row);

    if (found < 0) {
        pl__fail_store(c);
        return -1;
    }
    if (found == 0)
        return 0;
    *object = pl__read_row(c->arena, c->kind, row);
    return 1;
}

/* --- create -------------------------------------------------------------------------------------- */

static int check_target_namespace(struct call *c, struct pl_str name)
{
    struct pl_store_key key = { .cluster = c->cluster->id,
                                .kind =
                                    pl__kind_id(c->s, pl__kind_by_plural(PL_STR(""), PL_STR("v1"),
                                                                         PL_STR("namespaces"))),
                                .name = c->ns };
    struct pl_store_row row;

    if (!c->kind->namespaced)
        return 0;
    int found = pl__api_store_get(c->s->store, c->arena, &key, &row);
    if (found < 0)
        return pl__fail_store(c);
    if (found == 0) {
        c->kind = c->shown = pl__kind_of_id(c->s, key.kind);
        c->name = c->ns;
        return pl__fail_not_found(c);
    }
    struct pl_tree *ns = pl__tree_read(c->arena, row.object, NULL);
    if (!pl__tree_at(ns, "metadata.deletionTimestamp"))
        return 0;
    return pl__fail_forbidden(
        c, name,
        pl__str_format(
            c->arena,
            "unable to create new content in namespace %.*s because it is being terminated",
            PL_STR_ARG(c->ns)),
        "NamespaceTerminating",
        pl__str_format(c->arena, "namespace %.*s is being terminated", PL_STR_ARG(c->ns)));
}

/* `object` is complete but for what the server sets; its managedFields are given by an apply. */
static int create_object(struct call *c, struct pl_tree *object, bool applied)
{
    struct pl_store_key key;
    struct pl_store_row row;

    if (check_target_namespace(c, pl__tree_get_str(object, "metadata.name")) < 0)
        return -1;
    if (!applied) {
        struct pl_manager manager = manager_of(c);
        pl__managed_update(c->arena, c->kind, &manager, NULL, object);
    }
    if (pl__meta_prepare_create(c, object) < 0 || pl__meta_validate(c, NULL, object) < 0)
        return -1;
    key = pl__call_key(c);
    int found = pl__api_store_get(c->s->store, c->arena, &key, &row);
    if (found < 0)
        return pl__fail_store(c);
    if (found)
        return pl__fail_exists(
            c, c->name,
            pl__tree_at(pl__read_row(c->arena, c->kind, &row), "metadata.deletionTimestamp"));
    if (pl__write_store(c, NULL, object) < 0)
        return -1;
    pl__meta_order(c, object);
    return answer(c, 201, object);
}

int pl__write_create(struct call *c)
{
    struct pl_tree *object = read_object(c);

    return object ? create_object(c, object, false) : -1;
}

/* --- update -------------------------------------------------------------------------------------- */

enum update_kind {
    UPDATE_PUT,
    UPDATE_PATCH,
    UPDATE_APPLY, /* managedFields are already right */
};

static int check_name(struct call *c, const struct pl_tree *object)
{
    struct pl_str name = pl__tree_get_str(object, "metadata.name");
    struct pl_str ns = pl__tree_get_str(object, "metadata.namespace");

    if (c->kind->namespaced && ns.len && !pl__str_equal(ns, c->ns))
        return pl__fail_status(c, 400, "BadRequest",
                               "the namespace of the provided object does not match the namespace "
                               "sent on the request");
    if (name.len == 0)
        return pl__fail_status(
            c, 400, "BadRequest",
            "the name of the object (%.*s based on URL) was undeterminable: name "
            "must be provided",
            PL_STR_ARG(c->name));
    if (!pl__str_equal(name, c->name))
        return pl__fail_status(c, 400, "BadRequest",
                               "the name of the object (%.*s) does not match the name on the URL "
                               "(%.*s)",
                               PL_STR_ARG(name), PL_STR_ARG(c->name));
    return 0;
}

/* A PUT of another object than the one that is there (NULL: none) is a conflict, told before anything else. */
static int check_same(struct call *c, const struct pl_tree *old, const struct pl_tree *object)
{
    struct pl_str uid = pl__tree_get_str(object, "metadata.uid");
    struct pl_str there = pl__tree_get_str(old, "metadata.uid");

    if (uid.len == 0 || pl__str_equal(uid, there))
        return 0;
    return pl__fail_conflict(
        c, pl__kind_resource(c->arena, c->kind),
        pl__str_format(c->arena,
                       "StorageError: invalid object, Code: 4, Key: %.*s, ResourceVersion: 0, "
                       "AdditionalErrorMsg: Precondition failed: UID in precondition: %.*s, UID "
                       "in object meta: %.*s",
                       PL_STR_ARG(c->name), PL_STR_ARG(uid), PL_STR_ARG(there)));
}

/* What can be set once only: 422 when it is to become something else. */
static int check_immutable(struct call *c, const struct pl_tree *old, const struct pl_tree *object)
{
    static const char *const names[] = { "metadata.uid", "metadata.deletionTimestamp",
                                         "metadata.deletionGracePeriodSeconds" };
    struct faults f = { 0 };

    if (c->kind->custom && pl__str_equal(c->subresource, PL_STR("status")))
        return 0; /* there metadata is not looked at */
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct pl_tree *before = pl__tree_at(old, names[i]);
        const struct pl_tree *wanted = pl__tree_at(object, names[i]);
        bool deletion = i == 1 && before; /* puts itself back */
        if (!wanted || deletion || pl__tree_equal(before, wanted))
            continue;
        struct pl_str shown = pl__tree_text(c->arena, wanted);
        pl__fault(c, &f, "FieldValueInvalid", pl__str(names[i]),
                  "Invalid value: %.*s: field is immutable", PL_STR_ARG(shown));
    }
    return pl__fail_invalid(c, c->name, &f);
}

/* The version that an object says of itself: 0 for none. */
static int read_version(struct call *c, const struct pl_tree *object, uint64_t *number)
{
    struct pl_str version = pl__tree_get_str(object, "metadata.resourceVersion");

    *number = 0;
    if (version.len == 0 || pl__str_to_u64(version, number))
        return 0;
    return pl__fail_status(c, 500, "", "strconv.ParseUint: parsing \"%.*s\": invalid syntax",
                           PL_STR_ARG(version));
}

static int check_version(struct call *c, const struct pl_tree *old, const struct pl_tree *object)
{
    struct pl_str version = pl__tree_get_str(object, "metadata.resourceVersion");
    uint64_t number;

    if (read_version(c, object, &number) < 0)
        return -1;
    if (number)
        return pl__str_equal(version, pl__tree_get_str(old, "metadata.resourceVersion"))
                   ? 0
                   : pl__fail_modified(c);
    if (c->kind->unconditional_put)
        return 0;
    struct pl_str resource = pl__kind_resource(c->arena, c->kind);
    return pl__fail_status(
        c, 422, "Invalid",
        "%.*s \"%.*s\" is invalid: metadata.resourceVersion: Invalid value: 0x0: "
        "must be specified for an update",
        PL_STR_ARG(resource), PL_STR_ARG(c->name));
}

/* `object` is decoded. Checks come in the order of a real server: which fault is told is what clients see. */
static int update_object(struct call *c, const struct pl_store_row *row, struct pl_tree *old,
                         struct pl_tree *object, enum update_kind how)
{
    if (how == UPDATE_PUT ? check_same(c, old, object) < 0 : check_name(c, object) < 0)
        return -1;
    if (how != UPDATE_APPLY) {
        struct pl_manager manager = manager_of(c);
        pl__managed_update(c->arena, c->kind, &manager, old, object);
    }
    if (check_version(c, old, object) < 0 || check_immutable(c, old, object) < 0 ||
        pl__meta_prepare_update(c, old, object) < 0 || pl__meta_validate(c, old, object) < 0)
        return -1;
    set_version(c, object, row->version);
    pl__managed_keep_times(c->arena, old, object);
    /* What changes nothing is not written, nor is the change that ends an object: the last that a watch is told
     * of it is how it was before. */
    if (pl__meta_ends(c->kind, object)) {
        if (pl__write_remove(c, row, pl__tree_copy(c->arena, old)) < 0)
            return -1;
    } else if (!pl__tree_equal(old, object) && pl__write_store(c, row, object) < 0) {
        return -1;
    }
    pl__meta_order(c, object);
    return answer(c, 200, object);
}

/* What a client of this endpoint works on. */
static struct pl_tree *shown_object(struct call *c, const struct pl_tree *old)
{
    struct pl_tree *shown = pl__tree_copy(c->arena, old);

    pl__meta_from_stored(c->arena, c->shown, shown);
    return shown;
}

/* /scale takes one number. */
static int update_scale(struct call *c, const struct pl_store_row *row, struct pl_tree *old,
                        const struct pl_tree *scale)
{
    struct pl_tree *object = pl__tree_copy(c->arena, old);
    int64_t replicas = pl__tree_get_int(scale, "spec.replicas", 0);

    if (replicas < 0) {
        struct faults f = { 0 };
        pl__fault(c, &f, "FieldValueInvalid", PL_STR("spec.replicas"),
                  "Invalid value: %lld: must be greater than or equal to 0", (long long)replicas);
        return pl__fail_invalid(c, c->name, &f);
    }
    struct pl_str version = pl__tree_get_str(scale, "metadata.resourceVersion");
    if (version.len)
        pl__tree_set(pl__tree_get(object, PL_STR("metadata")), PL_STR("resourceVersion"),
                     pl__tree_str(c->arena, version));
    pl__tree_set(pl__tree_make(c->arena, object, PL_STR("spec")), PL_STR("replicas"),
                 pl__tree_int(c->arena, replicas));
    c->form = PL_FORM_OBJECT;
    if (update_object(c, row, old, object, UPDATE_PATCH) < 0)
        return -1;
    return pl__read_get(c);
}

int pl__write_update(struct call *c)
{
    bool scale = pl__str_equal(c->subresource, PL_STR("scale"));
    struct pl_tree *old, *object = scale ? read_body(c, false) : read_object(c);
    struct pl_store_row row;

    if (!object || check_name(c, object) < 0)
        return -1;
    int found = find(c, &row, &old);
    if (found < 0)
        return -1;
    if (found == 0 && c->kind->put_creates && c->subresource.len == 0) {
        if (check_same(c, NULL, object) < 0)
            return -1;
        /* Of what does not exist any version is as good as another. */
        pl__tree_remove(pl__tree_get(object, PL_STR("metadata")), PL_STR("resourceVersion"));
        return create_object(c, object, false);
    }
    if (found == 0)
        return pl__fail_not_found(c);
    return scale ? update_scale(c, &row, old, object)
                 : update_object(c, &row, old, object, UPDATE_PUT);
}

/* --- patch --------------------------------------------------------------------------------------- */

static int refuse_options(struct call *c, const char *field, const char *what)
{
    struct faults f = { 0 };

    pl__fault(c, &f, strcmp(field, "force") == 0 ? "FieldValueForbidden" : "FieldValueRequired",
              pl__str(field), "%s", what);
    return pl__fail_options(c, "PatchOptions", &f);
}

static int check_apply(struct call *c, const struct pl_tree *config)
{
    struct pl_str message;

    if (check_type(c, config) < 0)
        return -1;
    if (pl__tree_get_str(config, "apiVersion").len == 0)
        return pl__fail_status(c, 400, "BadRequest", "apiVersion must be set");
    const struct pl_tree *managed = pl__tree_at(config, "metadata.managedFields");
    if (managed && managed->type != JSON_NULL)
        return pl__fail_status(c, 400, "BadRequest", "metadata.managedFields must be nil");
    if (pl__managed_check(c->arena, c->kind, config, &message) < 0)
        return pl__fail_status(c, 500, "",
                               "failed to create typed patch object (%.*s/%.*s; %s%s%s, Kind=%s): "
                               "%.*s",
                               PL_STR_ARG(c->ns), PL_STR_ARG(c->name), c->shown->group,
                               c->shown->group[0] ? "/" : "", c->shown->version, c->shown->kind,
                               PL_STR_ARG(message));
    return 0;
}

/* An apply of what is not there creates it, unless it says which one it means. */
static int apply_new(struct call *c, struct pl_tree *config)
{
    struct pl_str uid = pl__tree_get_str(config, "metadata.uid");
    struct pl_manager manager = manager_of(c);
    struct pl_conflicts *conflicts = PL_NEW(c->arena, struct pl_conflicts, 1);
    struct pl_tree *object;
    uint64_t version;

    if (c->subresource.len)
        return pl__fail_not_found(c);
    if (uid.len)
        return pl__fail_conflict(c, pl__kind_resource(c->arena, c->kind),
                                 pl__str_format(c->arena,
                                                "uid mismatch: the provided object specified uid "
                                                "%.*s, and no existing object was found",
                                                PL_STR_ARG(uid)));
    if (check_name(c, config) < 0 || read_version(c, config, &version) < 0)
        return -1;
    /* Of what does not exist any version is as good as another. */
    pl__tree_remove(pl__tree_make(c->arena, config, PL_STR("metadata")), PL_STR("resourceVersion"));
    pl__managed_apply(c->arena, c->kind, &manager, true, NULL, config, &object, conflicts);
    return pl__meta_decode(c, object) < 0 ? -1 : create_object(c, object, true);
}

static int apply(struct call *c)
{
    struct pl_conflicts *conflicts = PL_NEW(c->arena, struct pl_conflicts, 1);
    struct pl_manager manager = manager_of(c);
    struct pl_tree *old, *object, *config;
    struct pl_store_row row;

    c->applies = true;
    if (c->params.field_manager.len == 0)
        return refuse_options(c, "fieldManager", "Required value: is required for apply patch");
    config = read_body(c, true);
    if (!config || check_apply(c, config) < 0)
        return -1;
    pl__meta_to_stored(c->arena, c->shown, config);
    int found = find(c, &row, &old);
    if (found <= 0)
        return found < 0 ? -1 : apply_new(c, config);
    if (pl__managed_apply(c->arena, c->kind, &manager, c->params.force, old, config, &object,
                          conflicts) < 0)
        return pl__fail_conflicts(c, conflicts);
    return pl__meta_decode(c, object) < 0 ? -1 : update_object(c, &row, old, object, UPDATE_APPLY);
}

enum patch_kind {
    PATCH_MERGE,
    PATCH_JSON,
    PATCH_STRATEGIC,
};

static int patched(struct call *c, enum patch_kind kind, const struct pl_tree *patch,
                   struct pl_tree **object)
{
    enum pl_patch_result result = PATCH_DONE;
    struct pl_str message = { 0 };

    if (kind == PATCH_JSON)
        result = pl__patch_json(c->arena, object, patch, &message);
    else if (kind == PATCH_STRATEGIC)
        result = pl__patch_strategic(c->arena, c->shown, *object, patch, &message);
    else if (patch->type == JSON_OBJECT)
        *object = pl__patch_merge(c->arena, *object, patch);
    else
        result = PATCH_MALFORMED;
    switch (result) {
    case PATCH_DONE:
        return 0;
    case PATCH_MALFORMED:
        return pl__fail_status(c, 400, "BadRequest", "error decoding patch: %.*s",
                               PL_STR_ARG(message));
    case PATCH_TOO_MANY:
        return pl__fail_status(c, 413, "RequestEntityTooLarge", "%.*s", PL_STR_ARG(message));
    case PATCH_FAILED:
        break;
    }
    return pl__fail_request(
        c, 422, "Invalid",
        PL_STR("the server rejected our request due to an error in our request"));
}

int pl__write_patch(struct call *c)
{
    struct pl_str type = c->request->content_type;
    struct pl_tree *old, *object;
    struct pl_store_row row;
    enum patch_kind kind;

    if (media_is(type, "application/apply-patch+yaml"))
        return apply(c);
    if (c->params.force)
        return refuse_options(c, "force", "Forbidden: may not be specified for non-apply patch");
    if (media_is(type, "application/merge-patch+json"))
        kind = PATCH_MERGE;
    else if (media_is(type, "application/json-patch+json"))
        kind = PATCH_JSON;
    else if (media_is(type, "application/strategic-merge-patch+json") && !c->kind->custom)
        kind = PATCH_STRATEGIC;
    else
        return pl__fail_status(c, 415, "UnsupportedMediaType",
                               "the body of the request was in an unknown format - accepted media "
                               "types include: application/json-patch+json, "
                               "application/merge-patch+json, application/apply-patch+yaml%s",
                               c->kind->custom ? "" : ", application/strategic-merge-patch+json");
    int found = find(c, &row, &old);
    if (found <= 0)
        return found < 0 ? -1 : pl__fail_not_found(c);
    struct pl_error *err = NULL;
    const struct pl_tree *patch = pl__tree_read(c->arena, c->request->body, &err);
    if (!patch)
        return pl__fail_status(c, 400, "BadRequest", "error decoding patch: %.*s",
                               PL_STR_ARG(pl__error_text(c->arena, err)));
    object = shown_object(c, old);
    if (patched(c, kind, patch, &object) < 0)
        return -1;
    if (pl__str_equal(c->subresource, PL_STR("scale")))
        return update_scale(c, &row, old, object);
    if (object->type != JSON_OBJECT)
        return pl__fail_status(c, 400, "BadRequest", "the patch leaves no object");
    pl__meta_to_stored(c->arena, c->shown, object);
    struct pl_str named = pl__tree_get_str(object, "kind");
    if ((named.len || c->kind->custom) && !pl__str_equal(named, pl__tree_get_str(old, "kind")))
        return pl__fail_status(c, 422, "Invalid", " \"\" is invalid: patch: the kind is another");
    return pl__meta_decode(c, object) < 0 ? -1 : update_object(c, &row, old, object, UPDATE_PATCH);
}

/* --- delete -------------------------------------------------------------------------------------- */

struct delete_options {
    struct pl_str propagation;
    struct pl_str uid;
    struct pl_str version;
};

static bool is_delete_options(const struct pl_tree *body)
{
    struct pl_str kind = pl__tree_get_str(body, "kind");
    const struct pl_tree *grace = pl__tree_at(body, "gracePeriodSeconds");

    return body && body->type == JSON_OBJECT &&
           (kind.len == 0 || pl__str_equal(kind, PL_STR("DeleteOptions"))) &&
           (!grace || grace->type == JSON_NUMBER || grace->type == JSON_NULL);
}

static int read_options(struct call *c, struct delete_options *o)
{
    const struct params *p = &c->params;

    *o = (struct delete_options){ p->propagation, p->precondition_uid, p->version };
    if (c->request->body.len) {
        const struct pl_tree *body = pl__tree_read(c->arena, c->request->body, NULL);
        if (!is_delete_options(body))
            return pl__fail_status(c, 500, "", "the body is no DeleteOptions");
        o->propagation = pl__tree_get_str(body, "propagationPolicy");
        o->uid = pl__tree_get_str(body, "preconditions.uid");
        o->version = pl__tree_get_str(body, "preconditions.resourceVersion");
        const struct pl_tree *orphan = pl__tree_at(body, "orphanDependents");
        if (orphan && orphan->type == JSON_TRUE)
            o->propagation = PL_STR("Orphan");
        if (pl__tree_count(pl__tree_at(body, "dryRun")))
            c->params.dry_run = true;
    } else if (p->orphan) {
        o->propagation = PL_STR("Orphan");
    }
    if (o->propagation.len == 0)
        o->propagation = PL_STR("Background");
    static const char *const known[] = { "Background", "Foreground", "Orphan" };
    for (size_t i = 0; i < 3; i++)
        if (pl__str_equal(o->propagation, pl__str(known[i])))
            return 0;
    return pl__fail_status(c, 422, "Invalid",
                           "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: "
                           "Unsupported value: \"%.*s\": supported values: \"Foreground\", "
                           "\"Background\", \"Orphan\", \"nil\"",
                           PL_STR_ARG(o->propagation));
}

static int check_preconditions(struct call *c, const struct delete_options *o,
                               const struct pl_tree *object)
{
    struct pl_str uid = pl__tree_get_str(object, "metadata.uid");
    struct pl_str version = pl__tree_get_str(object, "metadata.resourceVersion");
    struct pl_str kind = pl__str_format(c->arena, "%s%s%s", c->kind->kind,
                                        c->kind->group[0] ? "." : "", c->kind->group);

    if (o->uid.len && !pl__str_equal(o->uid, uid))
        return pl__fail_conflict(
            c, kind,
            pl__str_format(c->arena,
                           "the UID in the precondition (%.*s) does not match the UID in record "
                           "(%.*s). The object might have been deleted and then recreated",
                           PL_STR_ARG(o->uid), PL_STR_ARG(uid)));
    if (o->version.len && !pl__str_equal(o->version, version))
        return pl__fail_conflict(
            c, kind,
            pl__str_format(c->arena,
                           "the ResourceVersion in the precondition (%.*s) does not match the "
                           "ResourceVersion in record (%.*s). The object might have been modified",
                           PL_STR_ARG(o->version), PL_STR_ARG(version)));
    return 0;
}

/* Adds or takes a finalizer; true when that changed something. */
static bool set_finalizer(struct call *c, struct pl_tree *object, const char *name, bool wanted)
{
    struct pl_tree *metadata = pl__tree_get(object, PL_STR("metadata"));
    struct pl_tree *list = pl__tree_get(metadata, PL_STR("finalizers"));

    if (pl__has_finalizer(object, name) == wanted)
        return false;
    if (wanted) {
        if (!list || list->type != JSON_ARRAY) {
            list = pl__tree_new(c->arena, JSON_ARRAY);
            pl__tree_set(metadata, PL_STR("finalizers"), list);
        }
        pl__tree_append(list, pl__tree_str(c->arena, pl__str(name)));
        return true;
    }
    size_t index = 0;
    for (const struct pl_tree *i = list->first; !pl__str_equal(i->text, pl__str(name)); i = i->next)
        index++;
    pl__tree_take(list, index);
    if (!list->first)
        pl__tree_remove(metadata, PL_STR("finalizers"));
    return true;
}

static void mark_deleted(struct call *c, struct pl_tree *object)
{
    struct pl_tree *metadata = pl__tree_get(object, PL_STR("metadata"));
    struct pl_arena *a = c->arena;

    pl__tree_set(metadata, PL_STR("deletionTimestamp"),
                 pl__tree_str(a, pl__meta_time(a, c->now_ms)));
    if (pl__kind_is_core(c->kind, "namespaces")) {
        pl__tree_set(pl__tree_make(a, object, PL_STR("status")), PL_STR("phase"),
                     pl__tree_str(a, PL_STR("Terminating")));
        return;
    }
    pl__tree_set(metadata, PL_STR("deletionGracePeriodSeconds"), pl__tree_int(a, 0));
    if (pl__tree_get(metadata, PL_STR("generation")))
        pl__tree_set(metadata, PL_STR("generation"),
                     pl__tree_int(a, pl__tree_get_int(metadata, "generation", 0) + 1));
}

/* Starts the deletion, or finishes it at once. 1: gone; 0: it is still there; -1 with an answer. */
static int delete_object(struct call *c, const struct pl_store_row *row, struct pl_tree *object,
                         struct pl_str propagation)
{
    bool marked = pl__tree_at(object, "metadata.deletionTimestamp") != NULL;
    bool foreground = pl__str_equal(propagation, PL_STR("Foreground"));
    bool orphan = pl__str_equal(propagation, PL_STR("Orphan"));
    bool changed = false;
    bool collected =
        !pl__kind_is_core(c->kind, "namespaces") && strcmp(c->kind->plural, "events") != 0;
    struct pl_tree *before = pl__tree_copy(c->arena, object);

    if (collected && (!marked || foreground || orphan)) {
        changed = set_finalizer(c, object, "foregroundDeletion", foreground);
        changed |= set_finalizer(c, object, "orphan", orphan);
    }
    if (marked && !changed)
        return 0;
    if (!marked)
        mark_deleted(c, object);
    if (!pl__meta_ends(c->kind, object))
        return pl__write_store(c, row, object);
    /* Without finalizers there was no time in which it was being deleted; except for Pods, which have a grace
     * period, if only of 0 seconds. */
    bool unmarked = !marked && !c->kind->delete_answers_object;
    return pl__write_remove(c, row, unmarked ? before : object) < 0 ? -1 : 1;
}

int pl__write_delete_background(struct call *c, const struct pl_store_row *row)
{
    return delete_object(c, row, pl__read_row(c->arena, c->kind, row), PL_STR("Background"));
}

int pl__write_delete(struct call *c)
{
    struct delete_options o;
    struct pl_store_row row;
    struct pl_tree *object;

    if (read_options(c, &o) < 0)
        return -1;
    int found = find(c, &row, &object);
    if (found <= 0)
        return found < 0 ? -1 : pl__fail_not_found(c);
    if (check_preconditions(c, &o, object) < 0)
        return -1;
    if (pl__kind_is_core(c->kind, "namespaces") && (pl__str_equal(c->name, PL_STR("default")) ||
                                                    pl__str_equal(c->name, PL_STR("kube-system")) ||
                                                    pl__str_equal(c->name, PL_STR("kube-public"))))
        return pl__fail_forbidden(c, c->name, PL_STR("this namespace may not be deleted"), NULL,
                                  (struct pl_str){ 0 });
    int gone = delete_object(c, &row, object, o.propagation);
    if (gone < 0)
        return -1;
    if (gone && !c->kind->delete_answers_object) {
        c->form = PL_FORM_OBJECT;
        pl__answer_object(c, 200,
                          pl__status_success(c, c->name, pl__tree_get_str(object, "metadata.uid")));
        return 0;
    }
    return answer(c, 200, object);
}

int pl__write_delete_collection(struct call *c)
{
    struct pl_store_list list = { .cluster = c->cluster->id,
                                  .kind = pl__kind_id(c->s, c->kind),
                                  .ns = c->ns };
    struct pl_store_row *rows = PL_NEW(c->arena, struct pl_store_row, COLLECTION_PORTION);
    struct delete_options o;
    int count;

    if (read_options(c, &o) < 0)
        return -1;
    c->params.limit = 0;
    c->params.version = (struct pl_str){ 0 };
    if (pl__read_list(c) < 0) /* what it answers: what was there */
        return -1;
    struct pl_api_answer gone = *c->answer;
    struct pl_str ns = c->ns;
    for (int total = 0; total < COLLECTION_MAX; total += count) {
        count = pl__api_store_list(c->s->store, c->arena, &list, rows, COLLECTION_PORTION);
        if (count < 0)
            return pl__fail_store(c);
        for (int i = 0; i < count; i++) {
            struct pl_tree *object = pl__read_row(c->arena, c->kind, &rows[i]);
            list.after_ns = c->ns = rows[i].key.ns;
            list.after_name = c->name = rows[i].key.name;
            if (pl__selector_matches(&c->params.labels, &c->params.fields, object) &&
                delete_object(c, &rows[i], object, o.propagation) < 0)
                return -1;
        }
        if (count < COLLECTION_PORTION)
            break;
    }
    c->ns = ns;
    *c->answer = gone;
    return 0;
}
