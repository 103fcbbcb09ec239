/* The numbers of the fields are those of Kubernetes' generated.proto, which never change. */
#include "apiserver/protobuf.h"

#include "apiserver/tree.h"
#include "base/base64.h"
#include "base/time.h"

enum { DEPTH_MAX = 8, WIRE_VARINT = 0, WIRE_BYTES = 2 };

static const int64_t timestamp_seconds_max = INT64_C(253402300799); /* the end of the year 9999 */

enum field_type {
    TYPE_STRING,
    TYPE_STRINGS,     /* repeated */
    TYPE_INT,         /* left out when 0, as Go leaves it out */
    TYPE_INT_POINTER, /* 0 is a value */
    TYPE_BOOL,
    TYPE_TIME,
    TYPE_MESSAGE,
    TYPE_MESSAGES,    /* repeated */
    TYPE_MAP_STRINGS, /* repeated entries {1: key, 2: value} */
    TYPE_MAP_BYTES,   /* the same, values in base64 */
};

struct field {
    uint32_t number; /* 0: the end */
    const char *name;
    enum field_type type;
    const struct field *message;
};

/* clang-format off */
static const struct field owner_fields[] = {
    { 1, "kind", TYPE_STRING, NULL }, { 3, "name", TYPE_STRING, NULL }, { 4, "uid", TYPE_STRING, NULL },
    { 5, "apiVersion", TYPE_STRING, NULL }, { 6, "controller", TYPE_BOOL, NULL },
    { 7, "blockOwnerDeletion", TYPE_BOOL, NULL }, { 0 },
};
static const struct field meta_fields[] = {
    { 1, "name", TYPE_STRING, NULL }, { 2, "generateName", TYPE_STRING, NULL },
    { 3, "namespace", TYPE_STRING, NULL }, { 4, "selfLink", TYPE_STRING, NULL }, { 5, "uid", TYPE_STRING, NULL },
    { 6, "resourceVersion", TYPE_STRING, NULL }, { 7, "generation", TYPE_INT, NULL },
    { 8, "creationTimestamp", TYPE_TIME, NULL }, { 11, "labels", TYPE_MAP_STRINGS, NULL },
    { 12, "annotations", TYPE_MAP_STRINGS, NULL }, { 13, "ownerReferences", TYPE_MESSAGES, owner_fields },
    { 14, "finalizers", TYPE_STRINGS, NULL }, { 0 },
};
static const struct field namespace_spec_fields[] = { { 1, "finalizers", TYPE_STRINGS, NULL }, { 0 } };
static const struct field namespace_status_fields[] = { { 1, "phase", TYPE_STRING, NULL }, { 0 } };
static const struct field namespace_fields[] = {
    { 1, "metadata", TYPE_MESSAGE, meta_fields }, { 2, "spec", TYPE_MESSAGE, namespace_spec_fields },
    { 3, "status", TYPE_MESSAGE, namespace_status_fields }, { 0 },
};
static const struct field config_map_fields[] = {
    { 1, "metadata", TYPE_MESSAGE, meta_fields }, { 2, "data", TYPE_MAP_STRINGS, NULL },
    { 3, "binaryData", TYPE_MAP_BYTES, NULL }, { 4, "immutable", TYPE_BOOL, NULL }, { 0 },
};
static const struct field secret_fields[] = {
    { 1, "metadata", TYPE_MESSAGE, meta_fields }, { 2, "data", TYPE_MAP_BYTES, NULL },
    { 3, "type", TYPE_STRING, NULL }, { 4, "stringData", TYPE_MAP_STRINGS, NULL },
    { 5, "immutable", TYPE_BOOL, NULL }, { 0 },
};
static const struct field precondition_fields[] = {
    { 1, "uid", TYPE_STRING, NULL }, { 2, "resourceVersion", TYPE_STRING, NULL }, { 0 },
};
static const struct field delete_fields[] = {
    { 1, "gracePeriodSeconds", TYPE_INT_POINTER, NULL }, { 2, "preconditions", TYPE_MESSAGE, precondition_fields },
    { 3, "orphanDependents", TYPE_BOOL, NULL }, { 4, "propagationPolicy", TYPE_STRING, NULL },
    { 5, "dryRun", TYPE_STRINGS, NULL }, { 0 },
};
static const struct field resource_fields[] = {
    { 1, "namespace", TYPE_STRING, NULL }, { 2, "verb", TYPE_STRING, NULL }, { 3, "group", TYPE_STRING, NULL },
    { 4, "version", TYPE_STRING, NULL }, { 5, "resource", TYPE_STRING, NULL },
    { 6, "subresource", TYPE_STRING, NULL }, { 7, "name", TYPE_STRING, NULL }, { 0 },
};
static const struct field no_resource_fields[] = {
    { 1, "path", TYPE_STRING, NULL }, { 2, "verb", TYPE_STRING, NULL }, { 0 },
};
static const struct field access_spec_fields[] = {
    { 1, "resourceAttributes", TYPE_MESSAGE, resource_fields },
    { 2, "nonResourceAttributes", TYPE_MESSAGE, no_resource_fields }, { 0 },
};
static const struct field access_status_fields[] = {
    { 1, "allowed", TYPE_BOOL, NULL }, { 2, "reason", TYPE_STRING, NULL },
    { 3, "evaluationError", TYPE_STRING, NULL }, { 4, "denied", TYPE_BOOL, NULL }, { 0 },
};
static const struct field access_fields[] = {
    { 1, "metadata", TYPE_MESSAGE, meta_fields }, { 2, "spec", TYPE_MESSAGE, access_spec_fields },
    { 3, "status", TYPE_MESSAGE, access_status_fields }, { 0 },
};
static const struct field user_fields[] = {
    { 1, "username", TYPE_STRING, NULL }, { 2, "uid", TYPE_STRING, NULL }, { 3, "groups", TYPE_STRINGS, NULL }, { 0 },
};
static const struct field self_status_fields[] = { { 1, "userInfo", TYPE_MESSAGE, user_fields }, { 0 } };
static const struct field self_fields[] = {
    { 1, "metadata", TYPE_MESSAGE, meta_fields }, { 2, "status", TYPE_MESSAGE, self_status_fields }, { 0 },
};
/* clang-format on */

static const struct {
    const char *kind;
    const struct field *fields;
} kinds[] = {
    { "Namespace", namespace_fields },
    { "ConfigMap", config_map_fields },
    { "Secret", secret_fields },
    { "DeleteOptions", delete_fields },
    { "SelfSubjectAccessReview", access_fields },
    { "SelfSubjectReview", self_fields },
};

/* --- the wire --------------------------------------------------------------------------------------- */

static bool varint_read(struct pl_str *from, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 64 && from->len > 0; shift += 7) {
        unsigned char c = (unsigned char)from->ptr[0];
        from->ptr++;
        from->len--;
        *value |= (uint64_t)(c & 0x7f) << shift;
        if (!(c & 0x80))
            return true;
    }
    return false;
}

/* One field: its number, and either a number or bytes. */
struct wire {
    uint64_t field;
    bool is_bytes;
    uint64_t value;
    struct pl_str bytes;
};

static bool wire_read(struct pl_str *from, struct wire *w)
{
    uint64_t tag, size;

    *w = (struct wire){ 0 };
    if (!varint_read(from, &tag))
        return false;
    w->field = tag >> 3;
    if ((tag & 7) == WIRE_VARINT)
        return varint_read(from, &w->value);
    if ((tag & 7) != WIRE_BYTES || !varint_read(from, &size) || size > from->len)
        return false;
    w->is_bytes = true;
    w->bytes = (struct pl_str){ from->ptr, (size_t)size };
    from->ptr += size;
    from->len -= (size_t)size;
    return true;
}

/* --- to a tree --------------------------------------------------------------------------------------- */

static bool message_read(struct pl_arena *a, const struct field *fields, struct pl_str bytes,
                         unsigned depth, struct pl_tree *object);

static struct pl_tree *list_of(struct pl_arena *a, struct pl_tree *object, struct pl_str name)
{
    struct pl_tree *list = pl__tree_get(object, name);

    if (!list) {
        list = pl__tree_new(a, JSON_ARRAY);
        pl__tree_set(object, name, list);
    }
    return list;
}

static bool entry_read(struct pl_arena *a, struct pl_str bytes, bool binary, struct pl_tree *map)
{
    struct pl_str key = { 0 }, value = { 0 };
    struct wire w;

    while (bytes.len > 0) {
        if (!wire_read(&bytes, &w) || !w.is_bytes || (w.field != 1 && w.field != 2))
            return false;
        *(w.field == 1 ? &key : &value) = w.bytes;
    }
    /* A key that comes twice is refused as in JSON, or the map's bound would not bound the work. */
    if (pl__tree_count(map) >= PL_OBJECT_MEMBERS_MAX || pl__tree_get(map, key))
        return false;
    struct pl_tree *entry = pl__tree_str(a, binary ? pl__base64_encode(a, value) : value);
    entry->key = pl__str_copy(a, key);
    pl__tree_append(map, entry);
    return true;
}

/* {1: seconds, 2: nanoseconds}; empty: no time. */
static bool time_read(struct pl_arena *a, struct pl_str bytes, struct pl_str name,
                      struct pl_tree *object)
{
    int64_t seconds = 0;
    struct pl_buf text;
    struct wire w;

    while (bytes.len > 0) {
        if (!wire_read(&bytes, &w) || w.is_bytes)
            return false;
        if (w.field == 1)
            seconds = (int64_t)w.value;
    }
    if (seconds <= 0 || seconds > timestamp_seconds_max)
        return seconds == 0;
    pl__buf_init(&text, a, 64);
    pl__time_add(&text, seconds * 1000);
    pl__tree_set(object, name, pl__tree_str(a, pl__buf_str(&text)));
    return true;
}

static bool bytes_read(struct pl_arena *a, const struct field *f, struct pl_str bytes,
                       unsigned depth, struct pl_tree *object)
{
    struct pl_str name = pl__str(f->name);
    struct pl_tree *inner;

    switch (f->type) {
    case TYPE_STRING:
        if (bytes.len > 0)
            pl__tree_set(object, name, pl__tree_str(a, bytes));
        return true;
    case TYPE_STRINGS:
        pl__tree_append(list_of(a, object, name), pl__tree_str(a, bytes));
        return true;
    case TYPE_TIME:
        return time_read(a, bytes, name, object);
    case TYPE_MAP_STRINGS:
    case TYPE_MAP_BYTES:
        return entry_read(a, bytes, f->type == TYPE_MAP_BYTES, pl__tree_make(a, object, name));
    case TYPE_MESSAGE:
        return message_read(a, f->message, bytes, depth + 1, pl__tree_make(a, object, name));
    case TYPE_MESSAGES:
        inner = pl__tree_new(a, JSON_OBJECT);
        pl__tree_append(list_of(a, object, name), inner);
        return message_read(a, f->message, bytes, depth + 1, inner);
    case TYPE_INT:
    case TYPE_INT_POINTER:
    case TYPE_BOOL:
        break;
    }
    return false;
}

static bool number_read(struct pl_arena *a, const struct field *f, uint64_t value,
                        struct pl_tree *object)
{
    struct pl_str name = pl__str(f->name);

    if (f->type == TYPE_BOOL)
        pl__tree_set(object, name, pl__tree_bool(a, value != 0));
    else if (f->type == TYPE_INT_POINTER || (f->type == TYPE_INT && value != 0))
        pl__tree_set(object, name, pl__tree_int(a, (int64_t)value));
    else if (f->type != TYPE_INT)
        return false;
    return true;
}

static bool message_read(struct pl_arena *a, const struct field *fields, struct pl_str bytes,
                         unsigned depth, struct pl_tree *object)
{
    struct wire w;

    if (depth > DEPTH_MAX)
        return false;
    while (bytes.len > 0) {
        const struct field *f = fields;
        if (!wire_read(&bytes, &w))
            return false;
        while (f->number && f->number != w.field)
            f++;
        if (!f->number || !(w.is_bytes ? bytes_read(a, f, w.bytes, depth, object)
                                       : number_read(a, f, w.value, object)))
            return false;
    }
    return true;
}

/* --- the envelope ------------------------------------------------------------------------------------- */

/* {1: {1: apiVersion, 2: kind}, 2: the object, 3: contentEncoding, 4: contentType} */
static bool envelope_read(struct pl_str body, struct pl_str *api_version, struct pl_str *kind,
                          struct pl_str *raw)
{
    struct pl_str type = { 0 };
    struct wire w;

    while (body.len > 0) {
        if (!wire_read(&body, &w) || !w.is_bytes)
            return false;
        if (w.field == 1)
            type = w.bytes;
        else if (w.field == 2)
            *raw = w.bytes;
    }
    while (type.len > 0) {
        if (!wire_read(&type, &w) || !w.is_bytes)
            return false;
        if (w.field == 1)
            *api_version = w.bytes;
        else if (w.field == 2)
            *kind = w.bytes;
    }
    return kind->len > 0;
}

bool pl__protobuf_to_json(struct pl_arena *arena, struct pl_str body, struct pl_str *json)
{
    static const struct pl_str magic = { "k8s\0", 4 };
    struct pl_str api_version = { 0 }, kind = { 0 }, raw = { 0 };
    struct pl_tree *object = pl__tree_new(arena, JSON_OBJECT);

    if (!pl__str_starts_with(body, magic))
        return false;
    body.ptr += magic.len;
    body.len -= magic.len;
    if (!envelope_read(body, &api_version, &kind, &raw))
        return false;
    pl__tree_set(object, PL_STR("apiVersion"), pl__tree_str(arena, api_version));
    pl__tree_set(object, PL_STR("kind"), pl__tree_str(arena, kind));
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (!pl__str_equal(pl__str(kinds[i].kind), kind))
            continue;
        if (!message_read(arena, kinds[i].fields, raw, 0, object))
            return false;
        *json = pl__tree_text(arena, object);
        return true;
    }
    return false;
}
