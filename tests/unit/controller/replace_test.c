/* What replaces a control plane Machine: names, paths, bodies, and everything that must be refused.
 *
 * The bodies are written out here as they must be: what Cluster API v1.12.10 makes of the same objects
 * (controlplane/kubeadm/internal/desiredstate, controllers/external), byte for byte as we write it. */
#include "test.h"

#include "controller/replace.h"

static struct pl_arena arena;

/* --- the world ---------------------------------------------------------------------------------- */

#define RECORD "{\"machine\":\"cp-1\",\"timestamp\":\"2026-11-15T02:00:00Z\",\"retryCount\":2}"
#define RECORD_QUOTED                                                                 \
    "\"{\\\"machine\\\":\\\"cp-1\\\",\\\"timestamp\\\":\\\"2026-11-15T02:00:00Z\\\"," \
    "\\\"retryCount\\\":2}\""
#define UID "3f1c2d8e-0000-4000-8000-000000000001"

/* The parts of a KubeadmControlPlane that cases change; NULL: as it usually is, "": left out. */
struct kcp_parts {
    const char *api_version, *name, *namespace_, *uid, *annotations, *version, *naming;
    const char *template_metadata, *ref, *gates, *deletion, *config;
};

static const char *or_else(const char *part, const char *usual)
{
    return part ? part : usual;
}

/* A member with a comma in front, or nothing. */
static struct pl_str member(const char *key, const char *value)
{
    return *value ? pl__str_format(&arena, ",\"%s\":%s", key, value) : PL_STR("");
}

static struct pl_str kcp_text(const struct kcp_parts *p)
{
    struct pl_buf b;

    pl__buf_init(&b, &arena, SIZE_MAX);
    pl__buf_printf(&b, "{\"apiVersion\":\"%s\",\"kind\":\"KubeadmControlPlane\"",
                   or_else(p->api_version, "controlplane.cluster.x-k8s.io/v1beta2"));
    pl__buf_printf(&b, ",\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\"",
                   or_else(p->name, "cp"), or_else(p->namespace_, "default"));
    pl__buf_add(&b, member("uid", or_else(p->uid, "\"" UID "\"")));
    pl__buf_add(
        &b, member("annotations", or_else(p->annotations,
                                          "{\"controlplane.cluster.x-k8s.io/remediation-in-progress"
                                          "\":" RECORD_QUOTED "}")));
    pl__buf_add_lit(&b, ",\"managedFields\":[{\"f:spec\":{}}]}");
    pl__buf_printf(&b, ",\"spec\":{\"replicas\":3,\"version\":\"%s\"",
                   or_else(p->version, "v1.33.1"));
    pl__buf_add(&b, member("machineNaming", or_else(p->naming, "")));
    pl__buf_add_lit(&b, ",\"machineTemplate\":{\"x\":0");
    pl__buf_add(&b, member("metadata", or_else(p->template_metadata, "")));
    pl__buf_printf(&b, ",\"spec\":{\"infrastructureRef\":%s",
                   or_else(p->ref, "{\"apiGroup\":\"infrastructure.cluster.x-k8s.io\","
                                   "\"kind\":\"DockerMachineTemplate\",\"name\":\"cp-template\"}"));
    pl__buf_add(&b, member("readinessGates", or_else(p->gates, "")));
    pl__buf_add(&b, member("deletion", or_else(p->deletion, "")));
    pl__buf_add_lit(&b, "}}");
    pl__buf_add(&b, member("kubeadmConfigSpec", or_else(p->config, "")));
    pl__buf_add_lit(&b, "},\"status\":{\"replicas\":2}}");
    return pl__buf_str(&b);
}

static struct pl_replacement read_parts(const struct kcp_parts *p)
{
    struct pl_replacement r;
    struct pl_error *err = NULL;

    if (pl__replacement_read(&r, &arena, kcp_text(p), PL_STR("alpha"), &err) < 0)
        test_fail(__FILE__, __LINE__, "%.*s", PL_STR_ARG(pl__error_text(&arena, err)));
    return r;
}

/* The error of a KubeadmControlPlane that must be refused. */
static struct pl_str read_error(const struct kcp_parts *p)
{
    struct pl_replacement r;
    struct pl_error *err = NULL;

    if (pl__replacement_read(&r, &arena, kcp_text(p), PL_STR("alpha"), &err) == 0)
        return PL_STR("");
    return pl__error_text(&arena, err);
}

static void discovered(struct pl_replacement *r)
{
    r->infra_version = PL_STR("v1beta2");
    r->template_plural = PL_STR("dockermachinetemplates");
    r->infra_plural = PL_STR("dockermachines");
}

#define OWNER                                                                         \
    "\"ownerReferences\":[{\"apiVersion\":\"controlplane.cluster.x-k8s.io/v1beta2\"," \
    "\"kind\":\"KubeadmControlPlane\",\"name\":\"cp\",\"uid\":\"" UID "\"}]"
#define CONTROLLER                                                                    \
    "\"ownerReferences\":[{\"apiVersion\":\"controlplane.cluster.x-k8s.io/v1beta2\"," \
    "\"kind\":\"KubeadmControlPlane\",\"name\":\"cp\",\"uid\":\"" UID                 \
    "\",\"controller\":true,\"blockOwnerDeletion\":true}]"
#define OUR_LABELS                                                                         \
    "\"cluster.x-k8s.io/cluster-name\":\"alpha\",\"cluster.x-k8s.io/control-plane\":\"\"," \
    "\"cluster.x-k8s.io/control-plane-name\":\"cp\""
#define NAME "cp-RANDOM"

/* The expected text, with the name filled in. */
static struct pl_str expected(const struct pl_replacement *r, const char *text)
{
    struct pl_buf b;

    pl__buf_init(&b, &arena, SIZE_MAX);
    for (const char *at = text; *at;) {
        const char *name = strstr(at, NAME);
        size_t len = name ? (size_t)(name - at) : strlen(at);
        pl__buf_add(&b, (struct pl_str){ at, len });
        if (name)
            pl__buf_add(&b, r->name);
        at += len + (name ? sizeof NAME - 1 : 0);
    }
    return pl__buf_str(&b);
}

#define CHECK_BODY(r, got, want) CHECK_STR(got, expected(&(r), want).ptr)

/* --- the name ----------------------------------------------------------------------------------- */

static void test_names(void)
{
    CASE("the name is the control plane's and five characters")
    struct pl_replacement r = read_parts(&(struct kcp_parts){ 0 });
    /* Written down: another derivation would make a second machine after an upgrade in between. */
    CHECK_STR(r.name, "cp-5sj5n");

    CASE("the same again gives the same")
    CHECK(pl__str_equal(read_parts(&(struct kcp_parts){ 0 }).name, r.name));

    CASE("another control plane of that name gives another")
    CHECK(!pl__str_equal(read_parts(&(struct kcp_parts){ .uid = "\"other\"" }).name, r.name));

    CASE("another remediation gives another")
    const char *later =
        "{\"controlplane.cluster.x-k8s.io/remediation-in-progress\":"
        "\"{\\\"machine\\\":\\\"cp-1\\\",\\\"timestamp\\\":\\\"2026-11-15T02:00:01Z\\\"}\"}";
    CHECK(!pl__str_equal(read_parts(&(struct kcp_parts){ .annotations = later }).name, r.name));

    CASE("a record that is written otherwise is the same record")
    const char *spaced = "{\"controlplane.cluster.x-k8s.io/remediation-in-progress\":"
                         "\"{ \\\"timestamp\\\": \\\"2026-11-15T03:00:00+01:00\\\" }\"}";
    CHECK(pl__str_equal(read_parts(&(struct kcp_parts){ .annotations = spaced }).name, r.name));

    CASE("characters: Kubernetes' alphabet, spread over all of it")
    bool seen[256] = { false };
    for (int i = 0; i < 500; i++) {
        struct pl_str uid = pl__str_format(&arena, "\"uid-%d\"", i);
        struct pl_str name = read_parts(&(struct kcp_parts){ .uid = uid.ptr }).name;
        CHECK_INT(name.len, 8);
        for (size_t k = 3; k < name.len; k++) {
            CHECK(strchr("bcdfghjklmnpqrstvwxz2456789", name.ptr[k]));
            seen[(unsigned char)name.ptr[k]] = true;
        }
    }
    int different = 0;
    for (int i = 0; i < 256; i++)
        different += seen[i];
    CHECK_INT(different, 27);
}

static void test_naming_template(void)
{
    struct pl_str random = read_parts(&(struct kcp_parts){ 0 }).name;
    random = (struct pl_str){ random.ptr + 3, 5 };
    const struct {
        const char *template_, *want;
    } rows[] = {
        { "{{ .random }}", "%.5s" },
        { "{{.random}}", "%.5s" },
        { "m-{{ .cluster.name }}-{{ .kubeadmControlPlane.name }}-{{\\t.random }}",
          "m-alpha-cp-%.5s" },
        { "{{ .random }}x{{ .random }}", "%.5sx%.5s" },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CASE("naming template %s", rows[i].template_)
        struct pl_str naming = pl__str_format(&arena, "{\"template\":\"%s\"}", rows[i].template_);
        struct pl_replacement r = read_parts(&(struct kcp_parts){ .naming = naming.ptr });
        struct pl_buf want;
        pl__buf_init(&want, &arena, 1024);
        for (const char *at = rows[i].want; *at;) {
            if (strncmp(at, "%.5s", 4) == 0) {
                pl__buf_add(&want, random);
                at += 4;
            } else {
                pl__buf_add_char(&want, *at++);
            }
        }
        CHECK_STR(r.name, pl__buf_str(&want).ptr);
    }

    static const struct {
        const char *template_, *error;
    } refused[] = {
        { "{{ .cluster.name }}", "{{ .random }} is missing" },
        { "fixed", "{{ .random }} is missing" },
        { "{{ .cluster.uid }}-{{ .random }}", "not \".cluster.uid\"" },
        { "{{ .machineSet.name }}{{ .random }}", "not \".machineSet.name\"" },
        { "{{- .random }}", "not \"- .random\"" },
        { "{{ .random | upper }}", "not \".random | upper\"" },
        { "x-{{ .random ", "not \".random\"" },
        { "{{ .random }}{{", "not \"\"" },
        { "{{ }}{{ .random }}", "not \"\"" },
        { "UPPER-{{ .random }}", "expected a name of lower case letters" },
        { "{{ .random }}-", "expected a name of lower case letters" },
        { "../{{ .random }}", "expected a name of lower case letters" },
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        CASE("naming template %s is refused", refused[i].template_)
        struct pl_str naming =
            pl__str_format(&arena, "{\"template\":\"%s\"}", refused[i].template_);
        struct pl_str error = read_error(&(struct kcp_parts){ .naming = naming.ptr });
        CHECK(pl__str_contains(error, PL_STR("spec.machineNaming.template")));
        if (!pl__str_contains(error, pl__str(refused[i].error)))
            CHECK_STR(error, refused[i].error);
    }
}

static void test_long_names(void)
{
    static const char name57[] = "a23456789012345678901234567890123456789012345678901234567";
    static const char name58[] = "a234567890123456789012345678901234567890123456789012345678";
    struct pl_replacement r;

    CASE("57 characters and the random part just fit")
    r = read_parts(&(struct kcp_parts){ .name = name57 });
    CHECK_INT(r.name.len, 63);
    CHECK(pl__str_starts_with(
        r.name, PL_STR("a23456789012345678901234567890123456789012345678901234567-")));

    CASE("58 do not: cut, and the random part behind it")
    r = read_parts(&(struct kcp_parts){ .name = name58 });
    CHECK_INT(r.name.len, 63);
    CHECK(pl__str_starts_with(r.name, pl__str(name58)));
    CHECK(r.name.ptr[58] != '-');

    CASE("a name of 253 still gives a name, and a label that is a hash")
    char long_name[254];
    memset(long_name, 'a', sizeof long_name - 1);
    long_name[253] = '\0';
    r = read_parts(&(struct kcp_parts){ .name = long_name });
    CHECK_INT(r.name.len, 63);
    struct pl_str body;
    CHECK_INT(pl__replacement_config_body(&r, &body, NULL), 0);
    CHECK(pl__str_contains(body,
                           PL_STR("\"cluster.x-k8s.io/control-plane-name\":\"hash_3x91kA_z\"")));

    CASE("a name of 64 is a hash, too; of 63 it is not")
    long_name[64] = '\0';
    r = read_parts(&(struct kcp_parts){ .name = long_name });
    CHECK_INT(pl__replacement_config_body(&r, &body, NULL), 0);
    CHECK(pl__str_contains(body, PL_STR("control-plane-name\":\"hash_")));
    long_name[63] = '\0';
    r = read_parts(&(struct kcp_parts){ .name = long_name });
    CHECK_INT(pl__replacement_config_body(&r, &body, NULL), 0);
    CHECK(pl__str_contains(body, pl__str_format(&arena, "control-plane-name\":\"%s\"", long_name)));
}

/* --- what is refused ---------------------------------------------------------------------------- */

static void test_refused(void)
{
#define REF(group, kind, name) \
    "{\"apiGroup\":\"" group "\",\"kind\":\"" kind "\",\"name\":\"" name "\"}"
#define INFRA "infrastructure.cluster.x-k8s.io"
    static const struct {
        const char *name, *error;
        struct kcp_parts parts;
    } rows[] = {
        { "v1beta1",
          "expected a KubeadmControlPlane of controlplane.cluster.x-k8s.io/v1beta2",
          { .api_version = "controlplane.cluster.x-k8s.io/v1beta1" } },
        { "no record", "no remediation is in progress", { .annotations = "" } },
        { "an empty record",
          "no remediation is in progress",
          { .annotations = "{\"controlplane.cluster.x-k8s.io/remediation-in-progress\":\"\"}" } },
        { "a record that is no JSON",
          "read the record of the remediation in progress",
          { .annotations = "{\"controlplane.cluster.x-k8s.io/remediation-in-progress\":\"x\"}" } },
        { "a record and more",
          "something follows the object",
          { .annotations =
                "{\"controlplane.cluster.x-k8s.io/remediation-in-progress\":\"{} {}\"}" } },
        { "a record without time",
          "has no timestamp",
          { .annotations = "{\"controlplane.cluster.x-k8s.io/remediation-in-progress\":\"{}\"}" } },
        { "no uid", "metadata.uid", { .uid = "" } },
        { "a name that is a path", "metadata.name", { .name = "a/b" } },
        { "a namespace that is a path", "metadata.namespace", { .namespace_ = ".." } },
        { "no namespace", "metadata.namespace", { .namespace_ = "" } },
        { "no reference", "infrastructureRef.apiGroup", { .ref = "{}" } },
        { "a group that is a path",
          "infrastructureRef.apiGroup",
          { .ref = REF("apis/v1", "XTemplate", "t") } },
        { "a name with a query",
          "infrastructureRef.name",
          { .ref = REF(INFRA, "XTemplate", "t?watch=1") } },
        { "a name with an escape",
          "infrastructureRef.name",
          { .ref = REF(INFRA, "XTemplate", "t%2fx") } },
        { "no template's name", "infrastructureRef.name", { .ref = REF(INFRA, "XTemplate", "") } },
        { "not a template", "ends with Template", { .ref = REF(INFRA, "DockerMachine", "t") } },
        { "a template of nothing", "ends with Template", { .ref = REF(INFRA, "Template", "t") } },
        { "a kind that is a path",
          "ends with Template",
          { .ref = REF(INFRA, "../XTemplate", "t") } },
        { "config of another type", "spec.kubeadmConfigSpec", { .config = "[]" } },
        { "labels of another type",
          "spec.machineTemplate.metadata.labels",
          { .template_metadata = "{\"labels\":{\"a\":1}}" } },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CASE("refused: %s", rows[i].name)
        struct pl_str error = read_error(&rows[i].parts);
        if (!pl__str_contains(error, pl__str(rows[i].error)))
            CHECK_STR(error, rows[i].error);
    }

    CASE("refused: another kind")
    struct pl_replacement r;
    struct pl_error *err = NULL;
    struct pl_str text = kcp_text(&(struct kcp_parts){ 0 });
    char *copy = pl__arena_alloc(&arena, text.len);
    memcpy(copy, text.ptr, text.len);
    char *kind = strstr(copy, "KubeadmControlPlane");
    kind[0] = 'X';
    CHECK(pl__replacement_read(&r, &arena, (struct pl_str){ copy, text.len }, PL_STR("alpha"),
                               &err) < 0);

    CASE("refused: a text that is cut off, anywhere")
    for (size_t len = 0; len < text.len; len++)
        CHECK(pl__replacement_read(&r, &arena, (struct pl_str){ text.ptr, len }, PL_STR("alpha"),
                                   NULL) < 0);

    CASE("refused: a Cluster's name that is a path")
    CHECK(pl__replacement_read(&r, &arena, text, PL_STR("a/b"), NULL) < 0);

    CASE("refused: more labels than anybody has")
    struct pl_buf b;
    pl__buf_init(&b, &arena, SIZE_MAX);
    pl__buf_add_lit(&b, "{\"labels\":{");
    for (int i = 0; i < 1001; i++)
        pl__buf_printf(&b, "%s\"k%d\":\"\"", i ? "," : "", i);
    pl__buf_add_lit(&b, "}}");
    struct pl_str error =
        read_error(&(struct kcp_parts){ .template_metadata = pl__buf_str(&b).ptr });
    CHECK(pl__str_contains(error, PL_STR("more than 1000")));
}

/* --- discovery and paths ------------------------------------------------------------------------ */

static void test_discovery(void)
{
    struct pl_replacement r = read_parts(&(struct kcp_parts){ 0 });
    struct pl_error *err = NULL;

    CASE("the group is asked for its preferred version")
    CHECK_STR(pl__replacement_group_path(&r), "/apis/infrastructure.cluster.x-k8s.io");
    CHECK_INT(pl__replacement_take_group(
                  &r,
                  PL_STR("{\"kind\":\"APIGroup\",\"apiVersion\":\"v1\",\"name\":\"infrastructure."
                         "cluster.x-k8s.io\",\"versions\":[{\"groupVersion\":\"infrastructure."
                         "cluster.x-k8s.io/v1beta2\",\"version\":\"v1beta2\"},{\"groupVersion\":"
                         "\"infrastructure.cluster.x-k8s.io/v1beta1\",\"version\":\"v1beta1\"}],"
                         "\"preferredVersion\":{\"groupVersion\":\"infrastructure.cluster.x-k8s."
                         "io/v1beta2\",\"version\":\"v1beta2\"}}"),
                  &err),
              0);
    CHECK_STR(r.infra_version, "v1beta2");

    CASE("that version for the plurals, subresources left aside")
    CHECK_STR(pl__replacement_version_path(&r), "/apis/infrastructure.cluster.x-k8s.io/v1beta2");
    CHECK_INT(
        pl__replacement_take_resources(
            &r,
            PL_STR("{\"kind\":\"APIResourceList\",\"groupVersion\":\"infrastructure.cluster.x-k8s."
                   "io/v1beta2\",\"resources\":[{\"name\":\"dockermachines/"
                   "status\",\"namespaced\":true,\"kind\":\"DockerMachine\"},{\"name\":"
                   "\"dockermachines\",\"singularName\":\"dockermachine\",\"namespaced\":true,"
                   "\"kind\":\"DockerMachine\",\"verbs\":[\"get\"]},{\"name\":"
                   "\"dockermachinetemplates\",\"namespaced\":true,\"kind\":"
                   "\"DockerMachineTemplate\"}]}"),
            &err),
        0);
    CHECK_STR(r.infra_plural, "dockermachines");
    CHECK_STR(r.template_plural, "dockermachinetemplates");

    CASE("paths")
    CHECK_STR(pl__replacement_template_path(&r),
              "/apis/infrastructure.cluster.x-k8s.io/v1beta2/namespaces/default/"
              "dockermachinetemplates/cp-template");
    CHECK_STR(pl__replacement_collection_path(&r, REPLACE_INFRA),
              "/apis/infrastructure.cluster.x-k8s.io/v1beta2/namespaces/default/dockermachines");
    CHECK_STR(pl__replacement_collection_path(&r, REPLACE_CONFIG),
              "/apis/bootstrap.cluster.x-k8s.io/v1beta2/namespaces/default/kubeadmconfigs");
    CHECK_STR(pl__replacement_collection_path(&r, REPLACE_MACHINE),
              "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines");
    CHECK_BODY(
        r, pl__replacement_object_path(&r, REPLACE_INFRA),
        "/apis/infrastructure.cluster.x-k8s.io/v1beta2/namespaces/default/dockermachines/" NAME);
    CHECK_BODY(r, pl__replacement_object_path(&r, REPLACE_MACHINE),
               "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines/" NAME);

    static const struct {
        const char *name, *group, *error;
    } groups[] = {
        { "another group", "{\"name\":\"x\",\"preferredVersion\":{\"version\":\"v1\"}}",
          "expected the API group" },
        { "no version", "{\"name\":\"infrastructure.cluster.x-k8s.io\"}", "preferredVersion" },
        { "a version that is a path",
          "{\"name\":\"infrastructure.cluster.x-k8s.io\",\"preferredVersion\":{\"version\":\"a/"
          "b\"}}",
          "preferredVersion" },
        { "no object", "[]", "APIGroup" },
        { "a Status", "{\"kind\":\"Status\",\"code\":404}", "expected the API group" },
    };
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        CASE("a group that is refused: %s", groups[i].name)
        err = NULL;
        CHECK(pl__replacement_take_group(&r, pl__str(groups[i].group), &err) < 0);
        CHECK(pl__str_contains(pl__error_text(&arena, err), pl__str(groups[i].error)));
        CHECK_STR(r.infra_version, "v1beta2"); /* what was known stays */
    }

#define LIST(resources) \
    "{\"groupVersion\":\"infrastructure.cluster.x-k8s.io/v1beta2\",\"resources\":[" resources "]}"
#define TEMPLATE \
    "{\"name\":\"dockermachinetemplates\",\"namespaced\":true,\"kind\":\"DockerMachineTemplate\"}"
    static const struct {
        const char *name, *list, *error;
    } lists[] = {
        { "of another version", "{\"groupVersion\":\"infrastructure.cluster.x-k8s.io/v1\"}",
          "expected the resources of" },
        { "without the template", LIST(""), "serve a namespaced DockerMachineTemplate" },
        { "without the machine", LIST(TEMPLATE), "serve a namespaced DockerMachine" },
        { "with one that is not namespaced",
          LIST(TEMPLATE ",{\"name\":\"dockermachines\",\"kind\":\"DockerMachine\"}"),
          "serve a namespaced DockerMachine" },
        { "with a plural that is a path",
          LIST(TEMPLATE ",{\"name\":\"../x\",\"namespaced\":true,\"kind\":\"DockerMachine\"}"),
          "serve a namespaced DockerMachine" },
    };
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        CASE("a list that is refused: %s", lists[i].name)
        err = NULL;
        CHECK(pl__replacement_take_resources(&r, pl__str(lists[i].list), &err) < 0);
        CHECK(pl__str_contains(pl__error_text(&arena, err), pl__str(lists[i].error)));
    }
}

/* --- the infrastructure machine ----------------------------------------------------------------- */

#define DOCKER(spec)                                     \
    "{\"apiVersion\":\"infrastructure.cluster.x-k8s.io/" \
    "v1beta2\",\"kind\":\"DockerMachineTemplate\","      \
    "\"metadata\":{\"name\":\"cp-template\",\"labels\":{\"not\":\"carried\"}}" spec "}"
#define CLONED                                               \
    "\"cluster.x-k8s.io/cloned-from-name\":\"cp-template\"," \
    "\"cluster.x-k8s.io/cloned-from-groupkind\":"            \
    "\"DockerMachineTemplate.infrastructure.cluster.x-k8s.io\""
#define DOCKER_MACHINE                                                                        \
    "{\"apiVersion\":\"infrastructure.cluster.x-k8s.io/v1beta2\",\"kind\":\"DockerMachine\"," \
    "\"metadata\":{\"name\":\"" NAME "\",\"namespace\":\"default\","

static struct pl_str infra_body(struct pl_replacement *r, const char *template_,
                                struct pl_error **err)
{
    struct pl_str body = { 0 };

    discovered(r);
    if (pl__replacement_infra_body(r, pl__str(template_), &body, err) < 0)
        return (struct pl_str){ 0 };
    return body;
}

static void test_infra(void)
{
    struct pl_replacement r = read_parts(&(struct kcp_parts){ 0 });
    struct pl_error *err = NULL;

    CASE("a clone of a DockerMachineTemplate")
    CHECK_BODY(r,
               infra_body(&r,
                          DOCKER(",\"spec\":{\"template\":{\"spec\":{\"extraMounts\":[{"
                                 "\"containerPath\":\"/var/run/docker.sock\"}]}}}"),
                          &err),
               DOCKER_MACHINE "\"labels\":{" OUR_LABELS "},\"annotations\":{" CLONED "}," OWNER
                              "},\"spec\":{\"extraMounts\":[{\"containerPath\":"
                              "\"/var/run/docker.sock\"}]}}");

    CASE("what nobody here knows goes over byte for byte")
#define ODD                                                                          \
    "{\"z\":1,\"a\":[1e400,123456789012345678901234567890,-0.10,1E+2],\"\\u00e9\":"  \
    "\"\\ud83d\\ude00 \xf0\x9f\x98\x80 \\/ \\u0041\",\"n\":null,\"e\":{},\"l\":[ ]," \
    "\"b\": [true ,\n false]}"
    CHECK_BODY(r,
               infra_body(&r,
                          DOCKER(",\"spec\":{\"other\":1,\"template\":{\"spec\":" ODD
                                 ",\"new\":" ODD "}}"),
                          &err),
               DOCKER_MACHINE "\"labels\":{" OUR_LABELS "},\"annotations\":{" CLONED "}," OWNER
                              "},\"spec\":" ODD ",\"new\":" ODD "}");

    CASE("labels and annotations: the template's, over them the control plane's, over them ours")
    struct pl_replacement labelled = read_parts(&(struct kcp_parts){
        .template_metadata =
            "{\"labels\":{\"b\":\"kcp\",\"cluster.x-k8s.io/cluster-name\":\"no\"},"
            "\"annotations\":{\"y\":\"kcp\",\"cluster.x-k8s.io/cloned-from-name\":\"no\"}}" });
    CHECK_BODY(
        labelled,
        infra_body(&labelled,
                   DOCKER(",\"spec\":{\"template\":{\"metadata\":{\"labels\":{\"a\":"
                          "\"template\",\"b\":\"template\",\"cluster.x-k8s.io/"
                          "control-plane\":\"no\"},\"annotations\":{\"x\":\"\\\"q\\\"\","
                          "\"y\":\"template\"},\"name\":\"no\",\"finalizers\":[\"no\"],"
                          "\"ownerReferences\":[]},\"kind\":\"No\",\"apiVersion\":\"no/v1\""
                          ",\"spec\":{}}}"),
                   &err),
        DOCKER_MACHINE
        "\"labels\":{\"a\":\"template\",\"b\":\"kcp\",\"cluster.x-k8s.io/control-plane\":"
        "\"\",\"cluster.x-k8s.io/cluster-name\":\"alpha\",\"cluster.x-k8s.io/"
        "control-plane-name\":\"cp\"},\"annotations\":{\"x\":\"\\\"q\\\"\",\"y\":\"kcp\"," CLONED
        "}," OWNER "},\"spec\":{}}");

    CASE("a template without settings")
    CHECK_BODY(r, infra_body(&r, DOCKER(",\"spec\":{}"), &err),
               DOCKER_MACHINE "\"labels\":{" OUR_LABELS "},\"annotations\":{" CLONED "}," OWNER
                              "}}");
    CHECK_BODY(r, infra_body(&r, DOCKER(",\"spec\":{\"template\":null}"), &err),
               DOCKER_MACHINE "\"labels\":{" OUR_LABELS "},\"annotations\":{" CLONED "}," OWNER
                              "}}");

    static const struct {
        const char *name, *text, *error;
    } refused[] = {
        { "no JSON", "x", "template" },
        { "cut off", "{\"spec\":{", "template" },
        { "another kind",
          "{\"apiVersion\":\"infrastructure.cluster.x-k8s.io/v1beta2\",\"kind\":\"Secret\"}",
          "expected a DockerMachineTemplate" },
        { "another version",
          "{\"apiVersion\":\"infrastructure.cluster.x-k8s.io/v1\",\"kind\":\"DockerMachineTemplate"
          "\"}",
          "expected a DockerMachineTemplate" },
        { "a template that is no object", DOCKER(",\"spec\":{\"template\":[]}"), "spec.template" },
        { "a label that is no string",
          DOCKER(",\"spec\":{\"template\":{\"metadata\":{\"labels\":{\"a\":{}}}}}"),
          "metadata.labels" },
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        CASE("a template that is refused: %s", refused[i].name)
        err = NULL;
        CHECK_STR(infra_body(&r, refused[i].text, &err), "");
        struct pl_str text = err ? pl__error_text(&arena, err) : PL_STR("");
        if (!pl__str_contains(text, pl__str(refused[i].error)))
            CHECK_STR(text, refused[i].error);
    }

    CASE("a template that is too large for any API server")
    char *large = pl__arena_alloc(&arena, 3 * 1024 * 1024 + 1);
    memset(large, 'a', 3 * 1024 * 1024);
    struct pl_str text =
        pl__str_format(&arena, DOCKER(",\"spec\":{\"template\":{\"spec\":\"%s\"}}"), large);
    err = NULL;
    CHECK_STR(infra_body(&r, text.ptr, &err), "");
    CHECK(err && err->code == PL_LIMIT);
}

/* --- the KubeadmConfig -------------------------------------------------------------------------- */

#define CONFIG                                                                              \
    "{\"apiVersion\":\"bootstrap.cluster.x-k8s.io/v1beta2\",\"kind\":\"KubeadmConfig\","    \
    "\"metadata\":{\"name\":\"" NAME "\",\"namespace\":\"default\",\"labels\":{" OUR_LABELS \
    "}," OWNER "},\"spec\":"
#define GATE "\"featureGates\":{\"ControlPlaneKubeletLocalMode\":true}"

static struct pl_str config_body(const char *config, const char *version, struct pl_error **err)
{
    struct pl_replacement r =
        read_parts(&(struct kcp_parts){ .config = config, .version = version });
    struct pl_str body = { 0 };

    return pl__replacement_config_body(&r, &body, err) < 0 ? (struct pl_str){ 0 } : body;
}

static void test_config(void)
{
    struct pl_replacement r = read_parts(&(struct kcp_parts){ 0 });
    struct pl_error *err = NULL;
    static const struct {
        const char *name, *version, *config, *want;
    } rows[] = {
        { "no settings at all", "v1.33.1", "",
          "{\"joinConfiguration\":{\"controlPlane\":{}},\"clusterConfiguration\":{" GATE "}}" },
        { "initConfiguration goes, the rest stays in place", "v1.33.1",
          "{\"a\":1,\"initConfiguration\":{\"nodeRegistration\":{}},\"clusterConfiguration\":{"
          "\"apiServer\":{}},\"joinConfiguration\":{\"nodeRegistration\":{\"name\":\"n\"}},"
          "\"z\":[]}",
          "{\"a\":1,\"clusterConfiguration\":{\"apiServer\":{}," GATE "},\"joinConfiguration\":{"
          "\"nodeRegistration\":{\"name\":\"n\"},\"controlPlane\":{}},\"z\":[]}" },
        { "controlPlane that is there stays as it is", "v1.30.9",
          "{\"joinConfiguration\":{\"controlPlane\":{\"localAPIEndpoint\":{\"bindPort\":6443},"
          "\"new\":1e99},\"x\":1}}",
          "{\"joinConfiguration\":{\"controlPlane\":{\"localAPIEndpoint\":{\"bindPort\":6443},"
          "\"new\":1e99},\"x\":1}}" },
        { "null is as good as absent", "v1.33.1",
          "{\"joinConfiguration\":{\"controlPlane\":null},\"clusterConfiguration\":{"
          "\"featureGates\":null},\"initConfiguration\":null}",
          "{\"joinConfiguration\":{\"controlPlane\":{}},\"clusterConfiguration\":{" GATE "}}" },
        { "the feature gate joins the others", "v1.31.0",
          "{\"clusterConfiguration\":{\"featureGates\":{\"A\":false},\"b\":0},"
          "\"joinConfiguration\":{\"controlPlane\":{}}}",
          "{\"clusterConfiguration\":{\"featureGates\":{\"A\":false,"
          "\"ControlPlaneKubeletLocalMode\":true},\"b\":0},\"joinConfiguration\":{"
          "\"controlPlane\":{}}}" },
        { "the feature gate that is set stays", "v1.35.4",
          "{\"clusterConfiguration\":{\"featureGates\":{\"ControlPlaneKubeletLocalMode\":false}},"
          "\"joinConfiguration\":{\"controlPlane\":{}}}",
          "{\"clusterConfiguration\":{\"featureGates\":{\"ControlPlaneKubeletLocalMode\":false}},"
          "\"joinConfiguration\":{\"controlPlane\":{}}}" },
        { "1.30 has no such gate", "v1.30.14", "",
          "{\"joinConfiguration\":{\"controlPlane\":{}}}" },
        { "1.31 has, its prereleases too", "v1.31.0-alpha.0", "",
          "{\"joinConfiguration\":{\"controlPlane\":{}},\"clusterConfiguration\":{" GATE "}}" },
        { "1.35 has", "1.35.99+build", "",
          "{\"joinConfiguration\":{\"controlPlane\":{}},\"clusterConfiguration\":{" GATE "}}" },
        { "1.36 needs it no more, nor its prereleases", "v1.36.0-rc.0", "",
          "{\"joinConfiguration\":{\"controlPlane\":{}}}" },
        { "unknown fields, odd numbers, unicode", "v1.36.0",
          "{\"files\":" ODD ",\"joinConfiguration\":{\"o\":" ODD ",\"controlPlane\":{}}}",
          "{\"files\":" ODD ",\"joinConfiguration\":{\"o\":" ODD ",\"controlPlane\":{}}}" },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CASE("KubeadmConfig: %s", rows[i].name)
        struct pl_str want = pl__str_format(&arena, CONFIG "%s}", rows[i].want);
        CHECK_BODY(r, config_body(rows[i].config, rows[i].version, &err), want.ptr);
    }

    CASE("KubeadmConfig: labels and annotations of the control plane's Machines")
    r = read_parts(&(struct kcp_parts){
        .version = "v1.36.0",
        .template_metadata = "{\"labels\":{\"l\":\"1\"},\"annotations\":{\"a\":\"2\"}}" });
    struct pl_str body;
    CHECK_INT(pl__replacement_config_body(&r, &body, &err), 0);
    CHECK_BODY(r, body,
               "{\"apiVersion\":\"bootstrap.cluster.x-k8s.io/v1beta2\",\"kind\":\"KubeadmConfig\","
               "\"metadata\":{\"name\":\"" NAME "\",\"namespace\":\"default\",\"labels\":{\"l\":"
               "\"1\"," OUR_LABELS "},\"annotations\":{\"a\":\"2\"}," OWNER
               "},\"spec\":{\"joinConfiguration\":{\"controlPlane\":{}}}}");

    static const struct {
        const char *name, *version, *config, *error;
    } refused[] = {
        { "no version", "", "", "spec.version" },
        { "a version of no kind", "latest", "", "not \"latest\"" },
        { "joinConfiguration of another type", "v1.33.1", "{\"joinConfiguration\":[]}",
          "spec.kubeadmConfigSpec" },
        { "feature gates of another type", "v1.33.1",
          "{\"clusterConfiguration\":{\"featureGates\":\"x\"}}", "spec.kubeadmConfigSpec" },
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        CASE("KubeadmConfig refused: %s", refused[i].name)
        err = NULL;
        CHECK_STR(config_body(refused[i].config, refused[i].version, &err), "");
        struct pl_str text = err ? pl__error_text(&arena, err) : PL_STR("");
        if (!pl__str_contains(text, pl__str(refused[i].error)))
            CHECK_STR(text, refused[i].error);
    }
}

/* --- the Machine -------------------------------------------------------------------------------- */

#define MACHINE                                                           \
    "{\"apiVersion\":\"cluster.x-k8s.io/"                                 \
    "v1beta2\",\"kind\":\"Machine\",\"metadata\":{\"name\":\"" NAME "\"," \
    "\"namespace\":\"default\","
#define HOOKS                                                          \
    "\"controlplane.cluster.x-k8s.io/remediation-for\":" RECORD_QUOTED \
    ",\"pre-terminate.delete.hook.machine.cluster.x-k8s.io/kcp-cleanup\":\"\""
#define REFS                                                                              \
    "\"bootstrap\":{\"configRef\":{\"apiGroup\":\"bootstrap.cluster.x-k8s.io\",\"kind\":" \
    "\"KubeadmConfig\",\"name\":\"" NAME "\"}},\"infrastructureRef\":{\"apiGroup\":"      \
    "\"infrastructure.cluster.x-k8s.io\",\"kind\":\"DockerMachine\",\"name\":\"" NAME "\"}"
#define GATES_OF_PODS                                                 \
    "{\"conditionType\":\"APIServerPodHealthy\"},{\"conditionType\":" \
    "\"ControllerManagerPodHealthy\"},{\"conditionType\":\"SchedulerPodHealthy\"}"
#define GATES_OF_ETCD \
    ",{\"conditionType\":\"EtcdPodHealthy\"},{\"conditionType\":\"EtcdMemberHealthy\"}"

static void test_machine(void)
{
    struct pl_replacement r = read_parts(&(struct kcp_parts){ 0 });
    struct pl_error *err = NULL;
    struct pl_str body = { 0 };

    CASE("a Machine as it usually is")
    CHECK_INT(pl__replacement_machine_body(&r, PL_STR(""), &body, &err), 0);
    CHECK_BODY(r, body,
               MACHINE "\"labels\":{" OUR_LABELS "},\"annotations\":{" HOOKS "}," CONTROLLER
                       "},\"spec\":{\"clusterName\":\"alpha\",\"version\":\"v1.33.1\"," REFS
                       ",\"readinessGates\":[" GATES_OF_PODS GATES_OF_ETCD "]}}");

    CASE("with everything that a template can ask for")
    r = read_parts(&(struct kcp_parts){
        .template_metadata =
            "{\"labels\":{\"team\":\"\xc3\xa9\",\"cluster.x-k8s.io/control-plane-name\":\"no\"},"
            "\"annotations\":{\"note\":\"two\\nlines\",\"pre-terminate.delete.hook.machine.cluster."
            "x-k8s.io/kcp-cleanup\":\"no\",\"controlplane.cluster.x-k8s.io/remediation-for\":"
            "\"no\"}}",
        .gates = "[{\"conditionType\":\"Storage\",\"polarity\":\"Negative\",\"new\":1.50},"
                 "{\"conditionType\":\"EtcdPodHealthy\",\"polarity\":\"Positive\"},"
                 "{\"conditionType\":\"Storage\"}]",
        .deletion = "{\"nodeDrainTimeoutSeconds\":600,\"nodeVolumeDetachTimeoutSeconds\":0,"
                    "\"nodeDeletionTimeoutSeconds\":10,\"new\":1.50}",
    });
    CHECK_INT(pl__replacement_machine_body(&r, PL_STR("zone-b"), &body, &err), 0);
    CHECK_BODY(r, body,
               MACHINE
               "\"labels\":{\"team\":\"\xc3\xa9\",\"cluster.x-k8s.io/control-plane-name\":\"cp\","
               "\"cluster.x-k8s.io/cluster-name\":\"alpha\",\"cluster.x-k8s.io/control-plane\":"
               "\"\"},\"annotations\":{\"note\":\"two\\nlines\",\"pre-terminate.delete.hook."
               "machine.cluster.x-k8s.io/kcp-cleanup\":\"\",\"controlplane.cluster.x-k8s.io/"
               "remediation-for\":" RECORD_QUOTED "}," CONTROLLER
               "},\"spec\":{\"clusterName\":\"alpha\",\"version\":\"v1.33.1\",\"failureDomain\":"
               "\"zone-b\"," REFS ",\"deletion\":{\"nodeDrainTimeoutSeconds\":600,"
               "\"nodeVolumeDetachTimeoutSeconds\":0,\"nodeDeletionTimeoutSeconds\":10,"
               "\"new\":1.50},\"readinessGates\":[" GATES_OF_PODS GATES_OF_ETCD
               ",{\"conditionType\":\"Storage\",\"polarity\":\"Negative\",\"new\":1.50}]}}");

    CASE("external etcd: no gates of etcd")
    r = read_parts(&(struct kcp_parts){
        .config = "{\"clusterConfiguration\":{\"etcd\":{\"external\":{\"endpoints\":[\"https://e\"]"
                  "}}}}" });
    CHECK_INT(pl__replacement_machine_body(&r, PL_STR(""), &body, &err), 0);
    CHECK(pl__str_contains(body, PL_STR("\"readinessGates\":[" GATES_OF_PODS "]}}")));

    CASE("external etcd without endpoints is none")
    r = read_parts(&(struct kcp_parts){
        .config = "{\"clusterConfiguration\":{\"etcd\":{\"external\":{\"endpoints\":[]}}}}" });
    CHECK_INT(pl__replacement_machine_body(&r, PL_STR(""), &body, &err), 0);
    CHECK(pl__str_contains(body, PL_STR("EtcdMemberHealthy")));

    CASE("timeouts that are none")
    r = read_parts(&(struct kcp_parts){ .deletion = "{}" });
    CHECK_INT(pl__replacement_machine_body(&r, PL_STR(""), &body, &err), 0);
    CHECK(!pl__str_contains(body, PL_STR("\"deletion\"")));

    static const struct {
        const char *name, *error;
        struct kcp_parts parts;
    } refused[] = {
        { "gates that are no list", "readinessGates", { .gates = "{}" } },
        { "a gate that is no object", "readinessGates", { .gates = "[1]" } },
        { "timeouts that are no object", "deletion", { .deletion = "[]" } },
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        CASE("a Machine refused: %s", refused[i].name)
        r = read_parts(&refused[i].parts);
        err = NULL;
        CHECK(pl__replacement_machine_body(&r, PL_STR(""), &body, &err) < 0);
        CHECK(err && pl__str_contains(pl__error_text(&arena, err), pl__str(refused[i].error)));
    }

    CASE("a Machine refused: more gates than the API takes by far")
    struct pl_buf b;
    pl__buf_init(&b, &arena, SIZE_MAX);
    for (int i = 0; i < 70; i++)
        pl__buf_printf(&b, "%s{\"conditionType\":\"G%d\"}", i ? "," : "[", i);
    pl__buf_add_char(&b, ']');
    r = read_parts(&(struct kcp_parts){ .gates = pl__buf_str(&b).ptr });
    err = NULL;
    CHECK(pl__replacement_machine_body(&r, PL_STR(""), &body, &err) < 0);
    CHECK(err && err->code == PL_LIMIT);
}

/* --- the failure domain ------------------------------------------------------------------------- */

/* Domains by name, those in capitals for workers only; Machines by their domain, one letter each, in
 * capitals those that are being deleted, '-' for none. */
static struct pl_str domain_of(const char *domains, const char *machines)
{
    struct pl_cluster cluster = { 0 };
    struct pl_machine all[16] = { 0 };
    const struct pl_machine *list[16];
    size_t count = strlen(machines);

    cluster.failure_domains.list.count = (uint32_t)strlen(domains);
    cluster.failure_domains.list.items =
        PL_NEW(&arena, struct pl_failure_domain, strlen(domains) + 1);
    for (size_t i = 0; domains[i]; i++)
        cluster.failure_domains.list.items[i] = (struct pl_failure_domain){
            .name = pl__str_format(&arena, "%c", domains[i] | 0x20),
            .control_plane = domains[i] >= 'a',
        };
    for (size_t i = 0; i < count; i++) {
        if (machines[i] != '-')
            all[i].failure_domain = pl__str_format(&arena, "%c", machines[i] | 0x20);
        all[i].meta.deleted_ms = machines[i] >= 'A' && machines[i] <= 'Z';
        list[i] = &all[i];
    }
    return pl__replacement_failure_domain(&cluster, list, count);
}

static void test_failure_domain(void)
{
    static const struct {
        const char *domains, *machines, *want;
    } rows[] = {
        { "", "", "" },        { "", "ab", "" },      { "abc", "", "a" },    { "abc", "ab", "c" },
        { "abc", "aab", "c" }, { "abc", "abc", "a" }, { "ab", "a", "b" },    { "cba", "", "c" },
        { "Abc", "bc", "b" },  { "A", "b", "" },      { "ab", "zzza", "b" }, { "ab", "---", "a" },
        { "ab", "aB", "b" },   { "ab", "AA", "b" },   { "ab", "AAAb", "a" },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CASE("failure domain: of %s with Machines in %s", rows[i].domains, rows[i].machines)
        CHECK_STR(domain_of(rows[i].domains, rows[i].machines), rows[i].want);
    }

    CASE("failure domains of a Cluster, in v1beta2 and in v1beta1")
    static const char *const texts[] = {
        "{\"metadata\":{\"name\":\"c\"},\"status\":{\"failureDomains\":[{\"name\":\"a\","
        "\"controlPlane\":true,\"attributes\":{\"x\":\"y\"}},{\"name\":\"b\"}]}}",
        "{\"metadata\":{\"name\":\"c\"},\"status\":{\"failureDomains\":{\"a\":{\"controlPlane\":"
        "true,\"attributes\":{\"x\":\"y\"}},\"b\":{}}}}",
    };
    for (int i = 0; i < 2; i++) {
        struct pl_cluster cluster = { 0 };
        struct pl_json j;
        struct pl_error *err = NULL;
        pl__json_init(&j, pl__str(texts[i]), PL_STR("t"), &arena, 0, &err);
        CHECK_INT(pl__object_decode(&j, KIND_CLUSTER, i == 1, &cluster), 0);
        CHECK_INT(cluster.failure_domains.list.count, 2);
        if (cluster.failure_domains.list.count != 2)
            continue;
        CHECK_STR(cluster.failure_domains.list.items[0].name, "a");
        CHECK(cluster.failure_domains.list.items[0].control_plane);
        CHECK_STR(cluster.failure_domains.list.items[1].name, "b");
        CHECK(!cluster.failure_domains.list.items[1].control_plane);
    }
}

/* --- what is there already ---------------------------------------------------------------------- */

static void test_existing(void)
{
    struct pl_replacement r = read_parts(&(struct kcp_parts){ 0 });
    enum { BROKEN = -1 };
#define META(rest) "{\"kind\":\"X\",\"metadata\":{\"name\":\"" NAME "\"" rest "}}"
#define FOR ",\"annotations\":{\"controlplane.cluster.x-k8s.io/remediation-for\":" RECORD_QUOTED "}"
#define GOING ",\"deletionTimestamp\":\"2026-11-15T02:01:00Z\""
#define OWNED_BY(kind, name, uid, more)                                                           \
    ",\"ownerReferences\":[{\"kind\":\"" kind "\",\"name\":\"" name "\",\"uid\":\"" uid "\"" more \
    "}]"
    static const struct {
        const char *name;
        enum pl_replace_object object;
        const char *text;
        int want;
    } rows[] = {
        { "our infrastructure machine", REPLACE_INFRA, META("," OWNER), EXISTING_OURS },
        { "our KubeadmConfig", REPLACE_CONFIG, META("," OWNER), EXISTING_OURS },
        { "our Machine", REPLACE_MACHINE, META("," CONTROLLER FOR), EXISTING_OURS },
        { "a Machine that we do not control", REPLACE_MACHINE, META("," OWNER FOR),
          EXISTING_FOREIGN },
        { "a Machine of another remediation", REPLACE_MACHINE,
          META("," CONTROLLER ",\"annotations\":{\"controlplane.cluster.x-k8s.io/remediation-for\":"
               "\"{}\"}"),
          EXISTING_FOREIGN },
        { "a Machine of no remediation", REPLACE_MACHINE, META("," CONTROLLER), EXISTING_FOREIGN },
        { "the infrastructure machine of the new Machine", REPLACE_INFRA,
          META(OWNED_BY("Machine", NAME, "u", ",\"controller\":true")), EXISTING_OURS },
        { "that of another Machine", REPLACE_INFRA,
          META(OWNED_BY("Machine", "other", "u", ",\"controller\":true")), EXISTING_FOREIGN },
        { "that of another KubeadmControlPlane of that name", REPLACE_INFRA,
          META(OWNED_BY("KubeadmControlPlane", "cp", "other", "")), EXISTING_FOREIGN },
        { "nobody's", REPLACE_CONFIG, META(""), EXISTING_FOREIGN },
        { "ours, being deleted", REPLACE_INFRA, META("," OWNER GOING), EXISTING_DELETING },
        { "our Machine, being deleted", REPLACE_MACHINE, META("," CONTROLLER FOR GOING),
          EXISTING_DELETING },
        { "nobody's, being deleted", REPLACE_CONFIG, META(GOING), EXISTING_FOREIGN },
        { "no object", REPLACE_CONFIG, "[]", BROKEN },
        { "cut off", REPLACE_CONFIG, "{", BROKEN },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CASE("existing: %s", rows[i].name)
        enum pl_existing existing = EXISTING_FOREIGN;
        struct pl_str text = expected(&r, rows[i].text);
        int failed = pl__replacement_existing(&r, rows[i].object, text, &existing, NULL);
        CHECK_INT(failed, rows[i].want == BROKEN ? -1 : 0);
        if (rows[i].want != BROKEN)
            CHECK_INT(existing, rows[i].want);
    }
}

int main(void)
{
    pl__arena_init(&arena, NULL, 0);
    test_names();
    test_naming_template();
    test_long_names();
    test_refused();
    test_discovery();
    test_infra();
    test_config();
    test_machine();
    test_failure_domain();
    test_existing();
    pl__arena_release(&arena);
    return test_end("replace");
}
