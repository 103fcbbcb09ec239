/* controller/replace.c - how a KubeadmControlPlane becomes the three objects of a new Machine.
 *
 * What is made follows Cluster API v1.12 (controlplane/kubeadm/internal/desiredstate), so that its own
 * controller, should it take over again, finds what it would have made. Two things differ on purpose:
 * the random part of the name is derived, not drawn, and among failure domains with as few Machines the
 * first listed wins, not a random one.
 *
 * JSON that is carried over is never taken apart further than needed: an edit copies the members of one
 * object as they stand and changes one of them (members_copy(), path_ensure()). */
#include "controller/replace.h"

#include "base/base64.h"
#include "base/version.h"

enum {
    NAME_BYTES_MAX = 63, /* of a generated name: it becomes a host name and a label's value */
    RANDOM_BYTES = 5,
    LABEL_VALUE_BYTES_MAX = 63,
    DNS_NAME_BYTES_MAX = 253,
    PAIRS_MAX = 1000,                 /* labels or annotations of one object */
    GATES_MAX = 64,                   /* readiness gates; the API takes 32 */
    BODY_BYTES_MAX = 3 * 1024 * 1024, /* what an API server takes */
};

#define KCP_API_VERSION "controlplane.cluster.x-k8s.io/v1beta2"
#define CONFIG_GROUP "bootstrap.cluster.x-k8s.io"
#define CLUSTER_GROUP "cluster.x-k8s.io"

/* --- reading the KubeadmControlPlane ------------------------------------------------------------ */

struct kcp {
    struct pl_str api_version, kind;
    struct pl_meta meta;
    struct pl_str version, naming_template;
    struct pl_pairs labels, annotations;
    struct pl_str infra_group, template_kind, template_name;
    struct pl_str readiness_gates, deletion, config_spec;
};

static int read_raw(struct pl_json *j, void *destination)
{
    return pl__json_raw(j, destination);
}

/* Sets the value of a key, which is there once afterwards. False when there are too many. */
static bool pairs_set(struct pl_arena *arena, struct pl_pairs *pairs, struct pl_str key,
                      struct pl_str value)
{
    for (uint32_t i = 0; i < pairs->count; i++) {
        if (pl__str_equal(pairs->items[i].key, key)) {
            pairs->items[i].value = value;
            return true;
        }
    }
    if (pairs->count == PAIRS_MAX)
        return false;
    if (pairs->count == pairs->capacity) {
        uint32_t capacity = pairs->capacity ? 2 * pairs->capacity : 8;
        pairs->items = pl__arena_grow(arena, pairs->items, pairs->capacity * sizeof *pairs->items,
                                      capacity * sizeof *pairs->items);
        pairs->capacity = capacity;
    }
    pairs->items[pairs->count++] = (struct pl_pair){ key, value };
    return true;
}

static int read_pairs(struct pl_json *j, void *destination)
{
    struct pl_str key, value;
    int more = pl__json_object(j);

    while ((more = pl__json_key(j, &key)) > 0) {
        const char *where = j->at;
        key = pl__str_copy(j->arena, key);
        if (pl__json_string(j, &value) < 0)
            return -1;
        if (!pairs_set(j->arena, destination, key, value))
            return pl__json_error(j, where, PL_LIMIT, "more than %d of them", PAIRS_MAX);
    }
    return more;
}

/* clang-format off */
static const struct pl_field kcp_fields[] = {
    PL_FIELD("apiVersion", F_STR, struct kcp, api_version),
    PL_FIELD("kind",       F_STR, struct kcp, kind),
    PL_FIELD_SHAPE("metadata", F_OBJECT, struct kcp, meta, &pl__meta_shape),
    PL_FIELD("spec.version",                F_STR, struct kcp, version),
    PL_FIELD("spec.machineNaming.template", F_STR, struct kcp, naming_template),
    PL_FIELD_CUSTOM("spec.machineTemplate.metadata.labels",      struct kcp, labels,      read_pairs),
    PL_FIELD_CUSTOM("spec.machineTemplate.metadata.annotations", struct kcp, annotations, read_pairs),
    PL_FIELD("spec.machineTemplate.spec.infrastructureRef.apiGroup", F_STR, struct kcp, infra_group),
    PL_FIELD("spec.machineTemplate.spec.infrastructureRef.kind",     F_STR, struct kcp, template_kind),
    PL_FIELD("spec.machineTemplate.spec.infrastructureRef.name",     F_STR, struct kcp, template_name),
    PL_FIELD_CUSTOM("spec.machineTemplate.spec.readinessGates", struct kcp, readiness_gates, read_raw),
    PL_FIELD_CUSTOM("spec.machineTemplate.spec.deletion",       struct kcp, deletion,        read_raw),
    PL_FIELD_CUSTOM("spec.kubeadmConfigSpec",                   struct kcp, config_spec,     read_raw),
};
static PL_SHAPE(kcp_shape, struct kcp, kcp_fields);

struct record { int64_t timestamp_ms; };
static const struct pl_field record_fields[] = {
    PL_FIELD("timestamp", F_TIME, struct record, timestamp_ms),
};
static PL_SHAPE(record_shape, struct record, record_fields);

struct config { PL_LIST(struct pl_str) etcd_endpoints; };
static const struct pl_field config_fields[] = {
    PL_FIELD("clusterConfiguration.etcd.external.endpoints", F_STRINGS, struct config, etcd_endpoints),
};
static PL_SHAPE(config_shape, struct config, config_fields);
/* clang-format on */

/* Reads a whole text by a table. */
static int decode(struct pl_arena *arena, struct pl_str text, const char *what,
                  const struct pl_shape *shape, void *destination, struct pl_error **err)
{
    struct pl_json j;

    pl__json_init(&j, text, pl__str(what), arena, JSON_DEPTH_LIMIT, err);
    if (pl__json_decode(&j, shape, destination) < 0)
        return -1;
    if (!pl__json_at_end(&j))
        return pl__json_error(&j, j.at, PL_INVALID, "something follows the object");
    return 0;
}

static bool is_lower_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* Lower case letters, digits, '-' and '.', the latter two not at the ends: what names, groups and
 * plurals are made of. Nothing that such a text can hold means anything in a path. */
static bool is_dns_name(struct pl_str s)
{
    if (s.len == 0 || s.len > DNS_NAME_BYTES_MAX || !is_lower_or_digit(s.ptr[0]) ||
        !is_lower_or_digit(s.ptr[s.len - 1]))
        return false;
    for (size_t i = 0; i < s.len; i++) {
        if (!is_lower_or_digit(s.ptr[i]) && s.ptr[i] != '-' && s.ptr[i] != '.')
            return false;
    }
    return true;
}

static int check_name(struct pl_arena *arena, struct pl_str s, const char *what,
                      struct pl_error **err)
{
    if (is_dns_name(s))
        return 0;
    return pl__error(arena, err, PL_INVALID,
                     "%s: expected a name of lower case letters, digits, "
                     "'-' and '.', not \"%.*s\"",
                     what, PL_STR_ARG(s));
}

/* --- the name ----------------------------------------------------------------------------------- */

/* Five characters that only the uid and the time decide. Kubernetes' own alphabet: nothing that spells
 * words or looks like something else. This must never change: it is how a repeat finds what was made. */
static struct pl_str derive_random(struct pl_arena *arena, struct pl_str uid, int64_t timestamp_ms)
{
    static const char alphabet[] = "bcdfghjklmnpqrstvwxz2456789";
    struct pl_str seed =
        pl__str_format(arena, "%.*s/%lld", PL_STR_ARG(uid), (long long)timestamp_ms);
    uint64_t hash = pl__str_hash(PL_HASH_BEGIN, seed); /* FNV-1a ... */
    char text[RANDOM_BYTES];

    hash = (hash ^ hash >> 30) *
           0xbf58476d1ce4e5b9; /* ... and the end of splitmix64, for FNV leaves */
    hash = (hash ^ hash >> 27) * 0x94d049bb133111eb; /* the upper bits poor */
    hash ^= hash >> 31;
    for (int i = 0; i < RANDOM_BYTES; i++) {
        text[i] = alphabet[hash % (sizeof alphabet - 1)];
        hash /= sizeof alphabet - 1;
    }
    return pl__str_copy(arena, (struct pl_str){ text, sizeof text });
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* What stands between the braces of "{{ .cluster.name }}", without the white space around it. */
static struct pl_str trim(struct pl_str s)
{
    while (s.len && is_space(s.ptr[0]))
        s = (struct pl_str){ s.ptr + 1, s.len - 1 };
    while (s.len && is_space(s.ptr[s.len - 1]))
        s.len--;
    return s;
}

/* The offset of `part` in `s` from `from` on; the length when it is not there. */
static size_t find(struct pl_str s, size_t from, const char part[2])
{
    for (size_t i = from; i + 1 < s.len; i++) {
        if (s.ptr[i] == part[0] && s.ptr[i + 1] == part[1])
            return i;
    }
    return s.len;
}

/* Fills in a Go template of which only three variables are known. */
static int name_render(const struct pl_replacement *r, struct pl_str template_,
                       struct pl_str random, struct pl_buf *name, struct pl_error **err)
{
    const struct {
        struct pl_str variable, value;
    } known[] = {
        { PL_STR(".cluster.name"), r->cluster_name },
        { PL_STR(".kubeadmControlPlane.name"), r->kcp_name },
        { PL_STR(".random"), random },
    };
    bool has_random = false;

    for (size_t at = 0; at < template_.len;) {
        size_t open = find(template_, at, "{{");
        pl__buf_add(name, (struct pl_str){ template_.ptr + at, open - at });
        if (open == template_.len)
            break;
        size_t close = find(template_, open + 2, "}}"), i = 0;
        struct pl_str inside = trim((struct pl_str){ template_.ptr + open + 2, close - open - 2 });
        while (i < sizeof known / sizeof known[0] && !pl__str_equal(known[i].variable, inside))
            i++;
        if (close == template_.len || i == sizeof known / sizeof known[0])
            return pl__error(r->arena, err, PL_INVALID,
                             "spec.machineNaming.template: only .cluster.name, "
                             ".kubeadmControlPlane.name and .random can be used, not \"%.*s\"",
                             PL_STR_ARG(inside));
        pl__buf_add(name, known[i].value);
        has_random |= pl__str_equal(inside, PL_STR(".random"));
        at = close + 2;
    }
    if (!has_random)
        return pl__error(r->arena, err, PL_INVALID,
                         "spec.machineNaming.template: {{ .random }} is missing");
    return 0;
}

/* As Cluster API has it: what is too long is cut and gets the random part behind it. */
static int name_make(struct pl_replacement *r, struct pl_str template_, int64_t timestamp_ms,
                     struct pl_error **err)
{
    struct pl_str random = derive_random(r->arena, r->uid, timestamp_ms);
    struct pl_buf name;

    if (template_.len == 0)
        template_ = PL_STR("{{ .kubeadmControlPlane.name }}-{{ .random }}");
    pl__buf_init(&name, r->arena, 64 * 1024);
    if (name_render(r, template_, random, &name, err) < 0)
        return -1;
    if (name.len > NAME_BYTES_MAX) {
        name.len = NAME_BYTES_MAX - RANDOM_BYTES;
        pl__buf_add(&name, random);
    }
    r->name = pl__buf_str(&name);
    return check_name(r->arena, r->name, "the name made by spec.machineNaming.template", err);
}

static bool is_kind(struct pl_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if (!is_lower_or_digit(c) && !(c >= 'A' && c <= 'Z') && c != '-')
            return false;
    }
    return s.len > 0 && s.len <= LABEL_VALUE_BYTES_MAX;
}

/* "DockerMachineTemplate" -> "DockerMachine". */
static int infra_kind_make(struct pl_replacement *r, struct pl_error **err)
{
    const struct pl_str suffix = PL_STR("Template");

    r->infra_kind = r->template_kind;
    if (pl__str_ends_with(r->template_kind, suffix))
        r->infra_kind.len -= suffix.len;
    if (r->infra_kind.len == r->template_kind.len || !is_kind(r->infra_kind))
        return pl__error(r->arena, err, PL_INVALID,
                         "spec.machineTemplate.spec.infrastructureRef.kind: expected a kind that "
                         "ends with Template, not \"%.*s\"",
                         PL_STR_ARG(r->template_kind));
    return 0;
}

static int references_check(struct pl_replacement *r, struct pl_error **err)
{
    const struct {
        struct pl_str value;
        const char *what;
    } names[] = {
        { r->kcp_name, "metadata.name" },
        { r->namespace_, "metadata.namespace" },
        { r->cluster_name, "the name of the Cluster" },
        { r->infra_group, "spec.machineTemplate.spec.infrastructureRef.apiGroup" },
        { r->template_name, "spec.machineTemplate.spec.infrastructureRef.name" },
    };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (check_name(r->arena, names[i].value, names[i].what, err) < 0)
            return -1;
    }
    if (r->uid.len == 0)
        return pl__error(r->arena, err, PL_INVALID, "metadata.uid: expected one");
    return infra_kind_make(r, err);
}

static int record_take(struct pl_replacement *r, int64_t *timestamp_ms, struct pl_error **err)
{
    struct record record = { 0 };
    struct pl_error *cause = NULL;

    if (r->in_progress.len == 0)
        return pl__error(r->arena, err, PL_INVALID, "no remediation is in progress");
    if (decode(r->arena, r->in_progress, "annotation", &record_shape, &record, &cause) < 0)
        return pl__fail(r->arena, err, cause, "read the record of the remediation in progress");
    if (!record.timestamp_ms)
        return pl__error(r->arena, err, PL_INVALID,
                         "the record of the remediation in progress has no timestamp");
    *timestamp_ms = record.timestamp_ms;
    return 0;
}

/* All but the name. */
static int kcp_read(struct pl_replacement *r, struct pl_arena *arena, struct pl_str kcp,
                    struct pl_str cluster_name, struct kcp *read, struct pl_error **err)
{
    struct kcp k = { 0 };
    struct config config = { 0 };

    *r = (struct pl_replacement){ .arena = arena, .cluster_name = cluster_name };
    if (decode(arena, kcp, "KubeadmControlPlane", &kcp_shape, &k, err) < 0)
        return -1;
    if (!pl__str_equal(k.api_version, PL_STR(KCP_API_VERSION)) ||
        !pl__str_equal(k.kind, PL_STR("KubeadmControlPlane")))
        return pl__error(arena, err, PL_INVALID,
                         "expected a KubeadmControlPlane of " KCP_API_VERSION
                         ", not \"%.*s\" of \"%.*s\"",
                         PL_STR_ARG(k.kind), PL_STR_ARG(k.api_version));
    r->kcp_name = k.meta.name;
    r->namespace_ = k.meta.namespace_;
    r->uid = k.meta.uid;
    r->version = k.version;
    r->in_progress = k.meta.annotations.remediation_in_progress;
    r->infra_group = k.infra_group;
    r->template_kind = k.template_kind;
    r->template_name = k.template_name;
    r->labels = k.labels;
    r->annotations = k.annotations;
    r->config_spec = k.config_spec.len ? k.config_spec : PL_STR("{}");
    r->readiness_gates = k.readiness_gates;
    r->deletion = k.deletion;
    if (decode(arena, r->config_spec, "spec.kubeadmConfigSpec", &config_shape, &config, err) < 0 ||
        references_check(r, err) < 0)
        return -1;
    r->etcd_managed = config.etcd_endpoints.count == 0;
    *read = k;
    return 0;
}

int pl__replacement_read(struct pl_replacement *r, struct pl_arena *arena, struct pl_str kcp,
                         struct pl_str cluster_name, struct pl_error **err)
{
    struct kcp k = { 0 };
    int64_t timestamp_ms = 0;

    if (kcp_read(r, arena, kcp, cluster_name, &k, err) < 0 ||
        record_take(r, &timestamp_ms, err) < 0)
        return -1;
    return name_make(r, k.naming_template, timestamp_ms, err);
}

int pl__replacement_read_references(struct pl_replacement *r, struct pl_arena *arena,
                                    struct pl_str kcp, struct pl_str cluster_name,
                                    struct pl_error **err)
{
    struct kcp k = { 0 };

    return kcp_read(r, arena, kcp, cluster_name, &k, err);
}

/* --- discovery ---------------------------------------------------------------------------------- */

struct api_group {
    struct pl_str name, version;
};
static const struct pl_field api_group_fields[] = {
    PL_FIELD("name", F_STR, struct api_group, name),
    PL_FIELD("preferredVersion.version", F_STR, struct api_group, version),
};
static PL_SHAPE(api_group_shape, struct api_group, api_group_fields);

struct api_resource {
    struct pl_str name, kind;
    bool namespaced;
};
struct api_resources {
    struct pl_str group_version;
    PL_LIST(struct api_resource) resources;
};
static const struct pl_field api_resource_fields[] = {
    PL_FIELD("name", F_STR, struct api_resource, name),
    PL_FIELD("kind", F_STR, struct api_resource, kind),
    PL_FIELD("namespaced", F_BOOL, struct api_resource, namespaced),
};
static PL_SHAPE(api_resource_shape, struct api_resource, api_resource_fields);
static const struct pl_field api_resources_fields[] = {
    PL_FIELD("groupVersion", F_STR, struct api_resources, group_version),
    PL_FIELD_SHAPE("resources", F_LIST, struct api_resources, resources, &api_resource_shape),
};
static PL_SHAPE(api_resources_shape, struct api_resources, api_resources_fields);

struct pl_str pl__replacement_group_path(const struct pl_replacement *r)
{
    return pl__str_format(r->arena, "/apis/%.*s", PL_STR_ARG(r->infra_group));
}

int pl__replacement_take_group(struct pl_replacement *r, struct pl_str api_group,
                               struct pl_error **err)
{
    struct api_group group = { 0 };

    if (decode(r->arena, api_group, "APIGroup", &api_group_shape, &group, err) < 0)
        return -1;
    if (!pl__str_equal(group.name, r->infra_group))
        return pl__error(r->arena, err, PL_INVALID, "expected the API group %.*s, not \"%.*s\"",
                         PL_STR_ARG(r->infra_group), PL_STR_ARG(group.name));
    if (check_name(r->arena, group.version, "preferredVersion.version", err) < 0)
        return -1;
    r->infra_version = group.version;
    return 0;
}

struct pl_str pl__replacement_version_path(const struct pl_replacement *r)
{
    return pl__str_format(r->arena, "/apis/%.*s/%.*s", PL_STR_ARG(r->infra_group),
                          PL_STR_ARG(r->infra_version));
}

/* The plural under which a kind is served. Subresources have the kind, too, and a '/' in their name. */
static int plural_find(const struct pl_replacement *r, const struct api_resources *served,
                       struct pl_str kind, struct pl_str *plural, struct pl_error **err)
{
    for (uint32_t i = 0; i < served->resources.count; i++) {
        const struct api_resource *resource = &served->resources.items[i];
        if (!pl__str_equal(resource->kind, kind) || !resource->namespaced ||
            !is_dns_name(resource->name))
            continue;
        *plural = resource->name;
        return 0;
    }
    return pl__error(r->arena, err, PL_NOT_FOUND, "%.*s does not serve a namespaced %.*s",
                     PL_STR_ARG(served->group_version), PL_STR_ARG(kind));
}

int pl__replacement_take_resources(struct pl_replacement *r, struct pl_str api_resource_list,
                                   struct pl_error **err)
{
    struct api_resources served = { 0 };
    struct pl_str wanted = pl__str_format(r->arena, "%.*s/%.*s", PL_STR_ARG(r->infra_group),
                                          PL_STR_ARG(r->infra_version));

    if (decode(r->arena, api_resource_list, "APIResourceList", &api_resources_shape, &served, err) <
        0)
        return -1;
    if (!pl__str_equal(served.group_version, wanted))
        return pl__error(r->arena, err, PL_INVALID, "expected the resources of %.*s, not \"%.*s\"",
                         PL_STR_ARG(wanted), PL_STR_ARG(served.group_version));
    if (plural_find(r, &served, r->template_kind, &r->template_plural, err) < 0)
        return -1;
    return plural_find(r, &served, r->infra_kind, &r->infra_plural, err);
}

/* --- paths -------------------------------------------------------------------------------------- */

struct pl_str pl__replacement_template_path(const struct pl_replacement *r)
{
    return pl__str_format(r->arena, "/apis/%.*s/%.*s/namespaces/%.*s/%.*s/%.*s",
                          PL_STR_ARG(r->infra_group), PL_STR_ARG(r->infra_version),
                          PL_STR_ARG(r->namespace_), PL_STR_ARG(r->template_plural),
                          PL_STR_ARG(r->template_name));
}

struct pl_str pl__replacement_collection_path(const struct pl_replacement *r,
                                              enum pl_replace_object object)
{
    const struct {
        struct pl_str group, version, plural;
    } at[REPLACE_COUNT] = {
        [REPLACE_INFRA] = { r->infra_group, r->infra_version, r->infra_plural },
        [REPLACE_CONFIG] = { PL_STR(CONFIG_GROUP), PL_STR("v1beta2"), PL_STR("kubeadmconfigs") },
        [REPLACE_MACHINE] = { PL_STR(CLUSTER_GROUP), PL_STR("v1beta2"), PL_STR("machines") },
    };

    return pl__str_format(r->arena, "/apis/%.*s/%.*s/namespaces/%.*s/%.*s",
                          PL_STR_ARG(at[object].group), PL_STR_ARG(at[object].version),
                          PL_STR_ARG(r->namespace_), PL_STR_ARG(at[object].plural));
}

struct pl_str pl__replacement_object_path(const struct pl_replacement *r,
                                          enum pl_replace_object object)
{
    struct pl_str collection = pl__replacement_collection_path(r, object);

    return pl__str_format(r->arena, "%.*s/%.*s", PL_STR_ARG(collection), PL_STR_ARG(r->name));
}

/* --- metadata ----------------------------------------------------------------------------------- */

/* A name as the value of a label: as it is, or a hash of it, as Cluster API makes it. */
static struct pl_str label_value(struct pl_arena *arena, struct pl_str name)
{
    uint32_t hash = 0x811c9dc5; /* FNV-1a */

    if (name.len <= LABEL_VALUE_BYTES_MAX)
        return name; /* what may stand in a name may stand in a label */
    for (size_t i = 0; i < name.len; i++)
        hash = (hash ^ (unsigned char)name.ptr[i]) * 0x01000193;
    const char bytes[] = { (char)(hash >> 24), (char)(hash >> 16), (char)(hash >> 8), (char)hash };
    struct pl_str text = pl__base64_encode(arena, (struct pl_str){ bytes, sizeof bytes });
    char url_safe[6]; /* four bytes are six characters and padding, which is left off */
    for (size_t i = 0; i < sizeof url_safe; i++)
        url_safe[i] = text.ptr[i] == '+' ? '-' : text.ptr[i] == '/' ? '_' : text.ptr[i];
    return pl__str_format(arena, "hash_%.6s_z", url_safe);
}

static bool pairs_set_all(struct pl_arena *arena, struct pl_pairs *to, const struct pl_pairs *from)
{
    for (uint32_t i = 0; i < from->count; i++) {
        if (!pairs_set(arena, to, from->items[i].key, from->items[i].value))
            return false;
    }
    return true;
}

/* The labels that everything of a control plane Machine has; ours win over the template's. */
static bool labels_set(const struct pl_replacement *r, struct pl_pairs *labels)
{
    return pairs_set_all(r->arena, labels, &r->labels) &&
           pairs_set(r->arena, labels, PL_STR("cluster.x-k8s.io/cluster-name"), r->cluster_name) &&
           pairs_set(r->arena, labels, PL_STR("cluster.x-k8s.io/control-plane"), PL_STR("")) &&
           pairs_set(r->arena, labels, PL_STR("cluster.x-k8s.io/control-plane-name"),
                     label_value(r->arena, r->kcp_name));
}

static void pairs_write(struct pl_json_writer *w, const char *key, const struct pl_pairs *pairs)
{
    if (pairs->count == 0)
        return;
    pl__json_write_key(w, key);
    pl__json_open_object(w);
    for (uint32_t i = 0; i < pairs->count; i++) {
        pl__json_write_key_str(w, pairs->items[i].key);
        pl__json_write_str(w, pairs->items[i].value);
    }
    pl__json_close_object(w);
}

static void str_write(struct pl_json_writer *w, const char *key, struct pl_str value)
{
    pl__json_write_key(w, key);
    pl__json_write_str(w, value);
}

/* Metadata with the KubeadmControlPlane as owner. Controller of the Machine alone: the other two are
 * the Machine's once its controller has seen them. */
static void metadata_write(const struct pl_replacement *r, struct pl_json_writer *w,
                           const struct pl_pairs *labels, const struct pl_pairs *annotations,
                           bool controller)
{
    pl__json_write_key(w, "metadata");
    pl__json_open_object(w);
    str_write(w, "name", r->name);
    str_write(w, "namespace", r->namespace_);
    pairs_write(w, "labels", labels);
    pairs_write(w, "annotations", annotations);
    pl__json_write_key(w, "ownerReferences");
    pl__json_open_array(w);
    pl__json_open_object(w);
    str_write(w, "apiVersion", PL_STR(KCP_API_VERSION));
    str_write(w, "kind", PL_STR("KubeadmControlPlane"));
    str_write(w, "name", r->kcp_name);
    str_write(w, "uid", r->uid);
    if (controller) {
        pl__json_write_key(w, "controller");
        pl__json_write_bool(w, true);
        pl__json_write_key(w, "blockOwnerDeletion");
        pl__json_write_bool(w, true);
    }
    pl__json_close_object(w);
    pl__json_close_array(w);
    pl__json_close_object(w);
}

static int too_many(const struct pl_replacement *r, struct pl_error **err)
{
    return pl__error(r->arena, err, PL_LIMIT, "more than %d labels or annotations", PAIRS_MAX);
}

/* --- bodies ------------------------------------------------------------------------------------- */

static void body_start(const struct pl_replacement *r, struct pl_buf *body,
                       struct pl_json_writer *w, struct pl_str api_version, struct pl_str kind)
{
    pl__buf_init(body, r->arena, BODY_BYTES_MAX);
    pl__json_writer_init(w, body, JSON_COMPACT);
    pl__json_open_object(w);
    str_write(w, "apiVersion", api_version);
    str_write(w, "kind", kind);
}

static int body_finish(const struct pl_replacement *r, struct pl_buf *out, struct pl_json_writer *w,
                       struct pl_str *body, struct pl_error **err)
{
    pl__json_close_object(w);
    if (out->overflowed)
        return pl__error(r->arena, err, PL_LIMIT, "the object would be larger than %d bytes",
                         BODY_BYTES_MAX);
    *body = pl__buf_str(out);
    return 0;
}

static bool is_one_of(struct pl_str key, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (pl__str_equal(key, pl__str(names[i])))
            return true;
    }
    return false;
}

/* Copies the members of an object, as they stand, into the one that is open; not those of `without`.
 * 0, or -1 with an error of `j`. */
static int members_copy(struct pl_json *j, struct pl_json_writer *w, const char *const *without,
                        size_t without_count)
{
    struct pl_str key, value;
    int more = pl__json_object(j);

    while ((more = pl__json_key(j, &key)) > 0) {
        bool wanted = !is_one_of(key, without, without_count);
        if (wanted)
            pl__json_write_key_str(w, key); /* now: the view of the key does not last */
        if (pl__json_raw(j, &value) < 0)
            return -1;
        if (wanted)
            pl__json_write_raw(w, value);
    }
    return more;
}

/* Writes an object such that what `path` leads to is there: as it stands if it is, else as `value`
 * says. null counts as not there. The objects on the way are copied, or made. */
static int path_ensure(struct pl_json *j, struct pl_json_writer *w, const char *const *path,
                       size_t depth, struct pl_str value)
{
    bool found = false;
    struct pl_str key, raw;

    pl__json_open_object(w);
    int more = pl__json_object(j);
    while ((more = pl__json_key(j, &key)) > 0) {
        bool ours = pl__str_equal(key, pl__str(path[0]));
        if (ours && pl__json_peek(j) == JSON_NULL) {
            if (pl__json_skip(j) < 0)
                return -1;
            continue;
        }
        found |= ours;
        pl__json_write_key_str(w, key);
        if (ours && depth > 1) {
            if (path_ensure(j, w, path + 1, depth - 1, value) < 0)
                return -1;
            continue;
        }
        if (pl__json_raw(j, &raw) < 0)
            return -1;
        pl__json_write_raw(w, raw);
    }
    if (more < 0)
        return -1;
    if (!found) {
        for (size_t i = 0; i < depth; i++) {
            if (i)
                pl__json_open_object(w);
            pl__json_write_key(w, path[i]);
        }
        pl__json_write_raw(w, value);
        for (size_t i = 1; i < depth; i++)
            pl__json_close_object(w);
    }
    pl__json_close_object(w);
    return 0;
}

/* The same, of a text. */
static int text_ensure(const struct pl_replacement *r, struct pl_str *text, const char *const *path,
                       size_t depth, struct pl_str value, struct pl_error **err)
{
    struct pl_buf out;
    struct pl_json_writer w;
    struct pl_json j;

    pl__buf_init(&out, r->arena, BODY_BYTES_MAX);
    pl__json_writer_init(&w, &out, JSON_COMPACT);
    pl__json_init(&j, *text, PL_STR("spec.kubeadmConfigSpec"), r->arena, JSON_DEPTH_LIMIT, err);
    if (path_ensure(&j, &w, path, depth, value) < 0)
        return -1;
    *text = pl__buf_str(&out);
    return 0;
}

/* --- the infrastructure machine ----------------------------------------------------------------- */

struct infra_template {
    struct pl_str api_version, kind, template_;
};
static const struct pl_field infra_template_fields[] = {
    PL_FIELD("apiVersion", F_STR, struct infra_template, api_version),
    PL_FIELD("kind", F_STR, struct infra_template, kind),
    PL_FIELD_CUSTOM("spec.template", struct infra_template, template_, read_raw),
};
static PL_SHAPE(infra_template_shape, struct infra_template, infra_template_fields);

struct template_meta {
    struct pl_pairs labels, annotations;
};
static const struct pl_field template_meta_fields[] = {
    PL_FIELD_CUSTOM("metadata.labels", struct template_meta, labels, read_pairs),
    PL_FIELD_CUSTOM("metadata.annotations", struct template_meta, annotations, read_pairs),
};
static PL_SHAPE(template_meta_shape, struct template_meta, template_meta_fields);

static bool infra_annotations_set(const struct pl_replacement *r, struct pl_pairs *annotations)
{
    struct pl_str group_kind = pl__str_format(r->arena, "%.*s.%.*s", PL_STR_ARG(r->template_kind),
                                              PL_STR_ARG(r->infra_group));

    return pairs_set_all(r->arena, annotations, &r->annotations) &&
           pairs_set(r->arena, annotations, PL_STR("cluster.x-k8s.io/cloned-from-name"),
                     r->template_name) &&
           pairs_set(r->arena, annotations, PL_STR("cluster.x-k8s.io/cloned-from-groupkind"),
                     group_kind);
}

int pl__replacement_infra_body(const struct pl_replacement *r, struct pl_str template_,
                               struct pl_str *body, struct pl_error **err)
{
    static const char *const ours[] = { "apiVersion", "kind", "metadata" };
    struct pl_str wanted = pl__str_format(r->arena, "%.*s/%.*s", PL_STR_ARG(r->infra_group),
                                          PL_STR_ARG(r->infra_version));
    struct infra_template t = { 0 };
    struct template_meta meta = { 0 };
    struct pl_buf out;
    struct pl_json_writer w;
    struct pl_json j;

    if (decode(r->arena, template_, "template", &infra_template_shape, &t, err) < 0)
        return -1;
    if (!pl__str_equal(t.kind, r->template_kind) || !pl__str_equal(t.api_version, wanted))
        return pl__error(r->arena, err, PL_INVALID,
                         "expected a %.*s of %.*s, not \"%.*s\" of \"%.*s\"",
                         PL_STR_ARG(r->template_kind), PL_STR_ARG(wanted), PL_STR_ARG(t.kind),
                         PL_STR_ARG(t.api_version));
    if (t.template_.len == 0)
        t.template_ = PL_STR("{}"); /* a kind without settings */
    if (decode(r->arena, t.template_, "spec.template", &template_meta_shape, &meta, err) < 0)
        return -1;
    if (!labels_set(r, &meta.labels) || !infra_annotations_set(r, &meta.annotations))
        return too_many(r, err);
    body_start(r, &out, &w, wanted, r->infra_kind);
    metadata_write(r, &w, &meta.labels, &meta.annotations, false);
    pl__json_init(&j, t.template_, PL_STR("spec.template"), r->arena, JSON_DEPTH_LIMIT, err);
    if (members_copy(&j, &w, ours, sizeof ours / sizeof ours[0]) < 0)
        return -1;
    return body_finish(r, &out, &w, body, err);
}

/* --- the KubeadmConfig -------------------------------------------------------------------------- */

/* kubeadm has the feature gate from 1.31 on, and needs it no more from 1.36 on. */
static int wants_local_mode(const struct pl_replacement *r, bool *wants, struct pl_error **err)
{
    struct pl_version v;

    if (!pl__version_parse(r->version, &v))
        return pl__error(r->arena, err, PL_INVALID,
                         "spec.version: expected a version such as v1.31.0, not \"%.*s\"",
                         PL_STR_ARG(r->version));
    *wants = pl__version_at_least(&v, 31) && !pl__version_at_least(&v, 36);
    return 0;
}

int pl__replacement_config_body(const struct pl_replacement *r, struct pl_str *body,
                                struct pl_error **err)
{
    static const char *const join[] = { "joinConfiguration", "controlPlane" };
    static const char *const gate[] = { "clusterConfiguration", "featureGates",
                                        "ControlPlaneKubeletLocalMode" };
    static const char *const init[] = { "initConfiguration" };
    struct pl_str spec = r->config_spec;
    struct pl_pairs labels = { 0 }, annotations = { 0 };
    bool local_mode = false;
    struct pl_buf out;
    struct pl_json_writer w;
    struct pl_json j;

    if (wants_local_mode(r, &local_mode, err) < 0 ||
        text_ensure(r, &spec, join, 2, PL_STR("{}"), err) < 0)
        return -1;
    if (local_mode && text_ensure(r, &spec, gate, 3, PL_STR("true"), err) < 0)
        return -1;
    if (!labels_set(r, &labels) || !pairs_set_all(r->arena, &annotations, &r->annotations))
        return too_many(r, err);
    body_start(r, &out, &w, PL_STR(CONFIG_GROUP "/v1beta2"), PL_STR("KubeadmConfig"));
    metadata_write(r, &w, &labels, &annotations, false);
    pl__json_write_key(&w, "spec");
    pl__json_open_object(&w);
    pl__json_init(&j, spec, PL_STR("spec.kubeadmConfigSpec"), r->arena, JSON_DEPTH_LIMIT, err);
    if (members_copy(&j, &w, init, 1) < 0)
        return -1;
    pl__json_close_object(&w);
    return body_finish(r, &out, &w, body, err);
}

/* --- the Machine -------------------------------------------------------------------------------- */

struct gate {
    struct pl_str type;
};
static const struct pl_field gate_fields[] = {
    PL_FIELD("conditionType", F_STR, struct gate, type),
};
static PL_SHAPE(gate_shape, struct gate, gate_fields);

/* Our own conditions first, then what the template asks for, each type once. */
static int gates_write(const struct pl_replacement *r, struct pl_json_writer *w,
                       struct pl_error **err)
{
    const char *known[GATES_MAX];
    size_t count = 0;
    struct pl_json j;
    int more = 0;

    pl__json_write_key(w, "readinessGates");
    pl__json_open_array(w);
    for (int type = 0; type < MACHINE_COND_COUNT; type++) {
        if (!r->etcd_managed && (type == COND_ETCD_POD || type == COND_ETCD_MEMBER))
            continue;
        known[count++] = pl__condition_type_name((enum pl_condition_type)type);
        pl__json_open_object(w);
        str_write(w, "conditionType", pl__str(known[count - 1]));
        pl__json_close_object(w);
    }
    if (r->readiness_gates.len) {
        pl__json_init(&j, r->readiness_gates, PL_STR("spec.machineTemplate.spec.readinessGates"),
                      r->arena, JSON_DEPTH_LIMIT, err);
        more = pl__json_array(&j);
        while ((more = pl__json_item(&j)) > 0) {
            struct gate gate = { 0 };
            struct pl_str raw;
            if (pl__json_raw(&j, &raw) < 0 ||
                decode(r->arena, raw, "readinessGates", &gate_shape, &gate, err) < 0)
                return -1;
            if (is_one_of(gate.type, known, count))
                continue;
            if (count == GATES_MAX)
                return pl__error(r->arena, err, PL_LIMIT, "more than %d readiness gates",
                                 GATES_MAX);
            known[count++] = pl__str_copy(r->arena, gate.type).ptr;
            pl__json_write_raw(w, raw);
        }
    }
    pl__json_close_array(w);
    return more;
}

static void reference_write(const struct pl_replacement *r, struct pl_json_writer *w,
                            const char *key, struct pl_str group, struct pl_str kind)
{
    pl__json_write_key(w, key);
    pl__json_open_object(w);
    str_write(w, "apiGroup", group);
    str_write(w, "kind", kind);
    str_write(w, "name", r->name);
    pl__json_close_object(w);
}

/* The timeouts of drain, volume detachment and Node deletion. The API refuses an empty object. */
static int deletion_write(const struct pl_replacement *r, struct pl_json_writer *w,
                          struct pl_error **err)
{
    struct pl_json j;
    struct pl_str key;

    if (r->deletion.len == 0)
        return 0;
    pl__json_init(&j, r->deletion, PL_STR("spec.machineTemplate.spec.deletion"), r->arena,
                  JSON_DEPTH_LIMIT, err);
    int more = pl__json_object(&j);
    more = pl__json_key(&j, &key);
    if (more > 0) {
        pl__json_write_key(w, "deletion");
        pl__json_write_raw(w, r->deletion);
    }
    return more < 0 ? -1 : 0;
}

static int machine_spec_write(const struct pl_replacement *r, struct pl_json_writer *w,
                              struct pl_str failure_domain, struct pl_error **err)
{
    pl__json_write_key(w, "spec");
    pl__json_open_object(w);
    str_write(w, "clusterName", r->cluster_name);
    str_write(w, "version", r->version);
    if (failure_domain.len)
        str_write(w, "failureDomain", failure_domain);
    pl__json_write_key(w, "bootstrap");
    pl__json_open_object(w);
    reference_write(r, w, "configRef", PL_STR(CONFIG_GROUP), PL_STR("KubeadmConfig"));
    pl__json_close_object(w);
    reference_write(r, w, "infrastructureRef", r->infra_group, r->infra_kind);
    if (deletion_write(r, w, err) < 0 || gates_write(r, w, err) < 0)
        return -1;
    pl__json_close_object(w);
    return 0;
}

int pl__replacement_machine_body(const struct pl_replacement *r, struct pl_str failure_domain,
                                 struct pl_str *body, struct pl_error **err)
{
    struct pl_pairs labels = { 0 }, annotations = { 0 };
    struct pl_buf out;
    struct pl_json_writer w;

    if (!labels_set(r, &labels) || !pairs_set_all(r->arena, &annotations, &r->annotations) ||
        !pairs_set(r->arena, &annotations, PL_STR("controlplane.cluster.x-k8s.io/remediation-for"),
                   r->in_progress) ||
        !pairs_set(r->arena, &annotations,
                   PL_STR("pre-terminate.delete.hook.machine.cluster.x-k8s.io/kcp-cleanup"),
                   PL_STR("")))
        return too_many(r, err);
    body_start(r, &out, &w, PL_STR(CLUSTER_GROUP "/v1beta2"), PL_STR("Machine"));
    metadata_write(r, &w, &labels, &annotations, true);
    if (machine_spec_write(r, &w, failure_domain, err) < 0)
        return -1;
    return body_finish(r, &out, &w, body, err);
}

/* --- where it goes ------------------------------------------------------------------------------ */

/* How many Machines are in a failure domain; each that is not being deleted weighs more than all that
 * are. */
static uint64_t crowding(struct pl_str domain, const struct pl_machine *const *machines,
                         size_t machine_count)
{
    uint64_t staying = 0, all = 0;

    for (size_t i = 0; i < machine_count; i++) {
        if (!pl__str_equal(machines[i]->failure_domain, domain))
            continue;
        all++;
        staying += machines[i]->meta.deleted_ms == 0;
    }
    return staying << 32 | all;
}

struct pl_str pl__replacement_failure_domain(const struct pl_cluster *cluster,
                                             const struct pl_machine *const *machines,
                                             size_t machine_count)
{
    struct pl_str pick = { 0 };
    uint64_t fewest = UINT64_MAX;

    for (uint32_t i = 0; i < cluster->failure_domains.list.count; i++) {
        const struct pl_failure_domain *d = &cluster->failure_domains.list.items[i];
        uint64_t there = crowding(d->name, machines, machine_count);
        if (!d->control_plane || there >= fewest)
            continue;
        pick = d->name;
        fewest = there;
    }
    return pick;
}

/* --- what is there already ---------------------------------------------------------------------- */

struct existing {
    struct pl_meta meta;
};
static const struct pl_field existing_fields[] = {
    PL_FIELD_SHAPE("metadata", F_OBJECT, struct existing, meta, &pl__meta_shape),
};
static PL_SHAPE(existing_shape, struct existing, existing_fields);

static bool owned_by_kcp(const struct pl_replacement *r, const struct pl_meta *meta,
                         bool as_controller)
{
    for (uint32_t i = 0; i < meta->owners.count; i++) {
        const struct pl_owner_reference *o = &meta->owners.items[i];
        if (pl__str_equal(o->kind, PL_STR("KubeadmControlPlane")) &&
            pl__str_equal(o->uid, r->uid) && (o->controller || !as_controller))
            return true;
    }
    return false;
}

static bool taken_over(const struct pl_replacement *r, const struct pl_meta *meta)
{
    const struct pl_owner_reference *o = pl__controller_of(meta);

    return o && pl__str_equal(o->kind, PL_STR("Machine")) && pl__str_equal(o->name, r->name);
}

int pl__replacement_existing(const struct pl_replacement *r, enum pl_replace_object object,
                             struct pl_str text, enum pl_existing *existing, struct pl_error **err)
{
    struct existing e = { 0 };
    bool ours;

    if (decode(r->arena, text, "object", &existing_shape, &e, err) < 0)
        return -1;
    if (object == REPLACE_MACHINE)
        ours = owned_by_kcp(r, &e.meta, true) &&
               pl__str_equal(e.meta.annotations.remediation_for, r->in_progress);
    else
        ours = owned_by_kcp(r, &e.meta, false) || taken_over(r, &e.meta);
    *existing = !ours ? EXISTING_FOREIGN : e.meta.deleted_ms ? EXISTING_DELETING : EXISTING_OURS;
    return 0;
}
