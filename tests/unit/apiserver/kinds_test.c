/* The table of kinds against the CRDs that a real cluster gets: names, scope, subresources, columns, and which
 * lists and objects merge how. */
#include "test.h"

#include "apiserver/kinds.h"
#include "apiserver/schema.h"
#include "apiserver/schema_files.h"
#include "base/yaml.h"

static struct pl_arena arena;

static void check_names(const struct pl_kind *k, const struct pl_tree *crd)
{
    const struct pl_tree *names = pl__tree_at(crd, "spec.names");
    const struct pl_tree *shorts = pl__tree_get(names, PL_STR("shortNames"));
    const struct pl_tree *version = pl__tree_item(pl__tree_at(crd, "spec.versions"), 0);

    CHECK_STR(pl__tree_get_str(version, "name"), k->version);
    CHECK_STR(pl__tree_get_str(names, "plural"), k->plural);
    CHECK_STR(pl__tree_get_str(names, "singular"), k->singular);
    CHECK(k->namespaced ==
          pl__str_equal(pl__tree_get_str(crd, "spec.scope"), PL_STR("Namespaced")));
    CHECK_STR(pl__tree_item(pl__tree_get(names, PL_STR("categories")), 0)->text, k->category);
    for (size_t i = 0; i < KIND_SHORT_NAMES_MAX; i++) {
        const struct pl_tree *name = shorts ? pl__tree_item(shorts, i) : NULL;
        CHECK_STR(name ? name->text : PL_STR(""), k->short_names[i] ? k->short_names[i] : "");
    }
    CHECK_INT(pl__tree_count(shorts) <= KIND_SHORT_NAMES_MAX, true);
    CHECK(k->custom);
    CHECK(k->status == (pl__tree_at(version, "subresources.status") != NULL));
    CHECK(k->scale == (pl__tree_at(version, "subresources.scale") != NULL));
}

/* kinds.h says the name and the age in its own words. */
static void check_columns(const struct pl_kind *k, const struct pl_tree *crd)
{
    const struct pl_tree *version = pl__tree_item(pl__tree_at(crd, "spec.versions"), 0);
    const struct pl_tree *list = pl__tree_get(version, PL_STR("additionalPrinterColumns"));
    const struct pl_column *c = k->columns;

    CHECK_STR(pl__str(c->name), "Name");
    c++;
    for (const struct pl_tree *t = list ? list->first : NULL; t; t = t->next, c++) {
        CHECK(c->name != NULL);
        if (!c->name)
            return;
        CHECK_STR(pl__tree_get_str(t, "name"), c->name);
        CHECK_STR(pl__tree_get_str(t, "type"), c->type);
        CHECK_STR(pl__tree_get_str(t, "jsonPath"), c->path);
        CHECK_INT(pl__tree_get_int(t, "priority", 0), c->priority);
    }
    CHECK(c->name == NULL);
}

/* Every list-map and atomic object of a schema has its rule; how many there are. */
static size_t check_merges(const struct pl_kind *k, const struct pl_tree *schema,
                           struct pl_str path)
{
    const struct pl_merge_rule *rule = pl__kind_merge(k, path);
    struct pl_str list = pl__tree_get_str(schema, "x-kubernetes-list-type");
    bool atomic =
        pl__str_equal(pl__tree_get_str(schema, "x-kubernetes-map-type"), PL_STR("atomic"));
    size_t count = 0;

    if (pl__str_equal(list, PL_STR("map"))) {
        const struct pl_tree *keys = pl__tree_get(schema, PL_STR("x-kubernetes-list-map-keys"));
        CHECK(rule && rule->merge == MERGE_MAP);
        if (rule)
            CHECK_STR(pl__tree_item(keys, 0)->text, rule->keys);
        count++;
    } else if (atomic) {
        CHECK(rule && rule->merge == MERGE_ATOMIC);
        count++;
    } else {
        CHECK(rule == NULL || pl__str_starts_with(path, PL_STR("metadata")));
    }
    if (rule == NULL && (atomic || pl__str_equal(list, PL_STR("map"))))
        test_fail(__FILE__, __LINE__, "%s: no rule for %.*s", k->kind, PL_STR_ARG(path));
    if (atomic)
        return count; /* what is inside of it is not merged */
    const struct pl_tree *items = pl__tree_get(schema, PL_STR("items"));
    const struct pl_tree *properties = pl__tree_get(items ? items : schema, PL_STR("properties"));
    for (const struct pl_tree *t = properties ? properties->first : NULL; t; t = t->next)
        count += check_merges(
            k, t,
            path.len ? pl__str_format(&arena, "%.*s.%.*s", PL_STR_ARG(path), PL_STR_ARG(t->key))
                     : t->key);
    return count;
}

static void check_crd(const struct pl_tree *crd)
{
    struct pl_str group = pl__tree_get_str(crd, "spec.group");
    struct pl_str kind = pl__tree_get_str(crd, "spec.names.kind");
    const struct pl_kind *k =
        pl__kind_by_name(pl__str_format(&arena, "%.*s/v1beta2", PL_STR_ARG(group)), kind);
    size_t rules = 0;

    CASE("%.*s", PL_STR_ARG(kind));
    CHECK(k != NULL);
    if (!k)
        return;
    check_names(k, crd);
    check_columns(k, crd);
    for (const struct pl_merge_rule *r = k->merges; r->path; r++)
        rules++;
    struct pl_tree *schema = pl__schema_of_kind(&arena, k);
    CHECK(pl__tree_at(schema, "properties.spec") != NULL);
    /* Rules for fields that our short CRDs leave out are no mistake, those for wrong paths are: */
    CHECK(check_merges(k, schema, PL_STR("")) <= rules);
}

static void test_crds(void)
{
    size_t found = 0;

    for (size_t i = 0; i < pl__schema_file_count; i++) {
        struct pl_yaml_limits limits = { .json_bytes_max = 1 << 20 };
        struct pl_position_map positions;
        struct pl_error *err = NULL;
        struct pl_str json;
        if (strcmp(pl__schema_files[i].name, "builtin.yaml") == 0)
            continue;
        CHECK_INT(pl__yaml_to_json(&arena, pl__schema_files[i].yaml,
                                   pl__str(pl__schema_files[i].name), limits, &json, &positions,
                                   &err),
                  0);
        check_crd(pl__tree_read(&arena, json, &err));
        found++;
    }
    CASE("every custom kind has a CRD");
    for (size_t i = 0; i < pl__kind_count; i++)
        found -= pl__kinds[i].custom;
    CHECK_INT(found, 0);
}

static void test_table(void)
{
    for (size_t i = 0; i < pl__kind_count; i++) {
        const struct pl_kind *k = &pl__kinds[i];
        CASE("%s/%s is found by its names", k->group, k->kind);
        CHECK(pl__kind_by_plural(pl__str(k->group), pl__str(k->version), pl__str(k->plural)) == k);
        CHECK(pl__kind_by_name(pl__kind_api_version(&arena, k), pl__str(k->kind)) == k);
        CHECK(k->columns && k->merges && k->selectable && k->description);
        CHECK_STR(pl__tree_get_str(pl__schema_of_kind(&arena, k), "type"), "object");
        for (size_t j = i + 1; j < pl__kind_count; j++) /* groups stand together */
            if (strcmp(pl__kinds[j].group, k->group) == 0)
                CHECK_STR(pl__str(pl__kinds[j - 1].group), k->group);
        if (k->stored_as)
            CHECK(strcmp(k->stored_as->kind, k->kind) == 0 && !k->stored_as->group[0]);
    }
    CASE("what is not there");
    CHECK(!pl__kind_by_name(PL_STR("v2"), PL_STR("Pod")));
    CHECK(!pl__kind_by_name(PL_STR("apps/v1"), PL_STR("Pod")));
    CHECK(!pl__kind_by_name(PL_STR(""), PL_STR("")));
    CHECK(!pl__kind_by_plural(PL_STR(""), PL_STR("v1"), PL_STR("services")));
}

static void test_rules(void)
{
    const struct pl_kind *pod = pl__kind_by_name(PL_STR("v1"), PL_STR("Pod"));
    const struct pl_kind *node = pl__kind_by_name(PL_STR("v1"), PL_STR("Node"));

    CASE("merge rules");
    CHECK_STR(pl__str(pl__kind_merge(pod, PL_STR("spec.containers.ports"))->keys),
              "containerPort,protocol");
    CHECK(pl__kind_merge(pod, PL_STR("metadata.finalizers"))->merge == MERGE_SET);
    CHECK(!pl__kind_merge(node, PL_STR("spec.taints")));
    CASE("field selectors");
    CHECK(pl__kind_selects(pod, PL_STR("spec.nodeName")));
    CHECK(pl__kind_selects(pod, PL_STR("metadata.namespace")));
    CHECK(!pl__kind_selects(node, PL_STR("metadata.namespace")));
    CHECK(!pl__kind_selects(node, PL_STR("spec.nodeName")));
    CASE("names for messages");
    CHECK_STR(pl__kind_resource(&arena, pod), "pods");
    CHECK_STR(pl__kind_resource(
                  &arena, pl__kind_by_name(PL_STR("coordination.k8s.io/v1"), PL_STR("Lease"))),
              "leases.coordination.k8s.io");
}

int main(void)
{
    pl__arena_init(&arena, NULL, 0);
    test_crds();
    test_table();
    test_rules();
    pl__arena_release(&arena);
    return test_end("kinds");
}
