/* Trees and the forms of a patch: a line in, a line out. */
#include "apiserver/patch.h"

#include "apiserver/managed.h"
#include "test.h"

static struct pl_arena arena;

static struct pl_tree *tree(const char *text)
{
    return pl__tree_read(&arena, pl__str(text), NULL);
}

static struct pl_str text(const struct pl_tree *t)
{
    return t ? pl__tree_text(&arena, t) : PL_STR("<none>");
}

static void test_trees(void)
{
    static const char *const same[] = {
        "{}",
        "[]",
        "{\"b\":1,\"a\":[true,false,null,\"x\\n\",1.50,-0,12345678901234567890]}",
        "\"\"",
        "{\"\":{\"\":[]}}",
    };
    static const char *const bad[] = { "", "{", "{\"a\":1,\"a\":2}", "{} x", "[1,]", "{\"a\"}" };

    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        CASE("reads and writes %s", same[i])
        CHECK_STR(text(tree(same[i])), same[i]);
        CHECK(pl__tree_equal(tree(same[i]), tree(same[i])));
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct pl_error *err = NULL;
        CASE("refuses %s", bad[i])
        CHECK(!pl__tree_read(&arena, pl__str(bad[i]), &err) && err);
    }
    CASE("a key that comes twice among many")
    char many[4096] = "{";
    size_t len = 1;
    for (int i = 0; i < 100; i++)
        len += (size_t)snprintf(many + len, sizeof many - len, "\"k%d\":%d,", i == 99 ? 3 : i, i);
    snprintf(many + len - 1, sizeof many - len, "}");
    CHECK(!tree(many));

    CASE("equal whatever the order of members, not of items")
    CHECK(pl__tree_equal(tree("{\"a\":1,\"b\":2}"), tree("{\"b\":2,\"a\":1}")));
    CHECK(!pl__tree_equal(tree("[1,2]"), tree("[2,1]")));
    CHECK(!pl__tree_equal(tree("{\"a\":1}"), tree("{\"a\":1,\"b\":2}")));
    CHECK(!pl__tree_equal(tree("\"1\""), tree("1")));
}

static void test_merge(void)
{
    static const struct {
        const char *target, *patch, *result;
    } cases[] = {
        /* Of RFC 7386, its appendix. */
        { "{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}" },
        { "{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}" },
        { "{\"a\":\"b\"}", "{\"a\":null}", "{}" },
        { "{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}" },
        { "{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}" },
        { "{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}" },
        { "{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}" },
        { "{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}" },
        { "{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}" },
        { "[1,2]", "{\"a\":\"b\",\"c\":null}", "{\"a\":\"b\"}" },
        { "{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}" },
        { "{\"a\":\"b\"}", "[\"c\"]", "[\"c\"]" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CASE("merge %s with %s", cases[i].target, cases[i].patch)
        CHECK_STR(text(pl__patch_merge(&arena, tree(cases[i].target), tree(cases[i].patch))),
                  cases[i].result);
    }
}

static void test_json(void)
{
    static const struct {
        const char *target, *patch, *result; /* NULL: it fails */
    } cases[] = {
        { "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/b\",\"value\":2}]", "{\"a\":1,\"b\":2}" },
        { "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/a\",\"value\":2}]", "{\"a\":2}" },
        { "[1,2]", "[{\"op\":\"add\",\"path\":\"/1\",\"value\":9}]", "[1,9,2]" },
        { "[1,2]", "[{\"op\":\"add\",\"path\":\"/-\",\"value\":9}]", "[1,2,9]" },
        { "[1,2]", "[{\"op\":\"add\",\"path\":\"/2\",\"value\":9}]", "[1,2,9]" },
        { "[1,2]", "[{\"op\":\"add\",\"path\":\"/3\",\"value\":9}]", NULL },
        { "[1,2]", "[{\"op\":\"add\",\"path\":\"/01\",\"value\":9}]", "[1,9,2]" },
        { "[1,2]", "[{\"op\":\"add\",\"path\":\"/+1\",\"value\":9}]", "[1,9,2]" },
        { "[1,2]", "[{\"op\":\"add\",\"path\":\"/-1\",\"value\":9}]", "[1,2,9]" },
        { "[1,2]", "[{\"op\":\"add\",\"path\":\"/-3\",\"value\":9}]", "[9,1,2]" },
        { "[1,2]", "[{\"op\":\"add\",\"path\":\"/-4\",\"value\":9}]", NULL },
        { "[1,2]", "[{\"op\":\"remove\",\"path\":\"/-1\"}]", "[1]" },
        { "[1,2]", "[{\"op\":\"remove\",\"path\":\"/-3\"}]", NULL },
        { "[1,2]", "[{\"op\":\"remove\",\"path\":\"/-\"}]", NULL },
        { "[1,2]", "[{\"op\":\"replace\",\"path\":\"/-2\",\"value\":9}]", "[9,2]" },
        { "[1,2]", "[{\"op\":\"copy\",\"from\":\"/2\",\"path\":\"/0\"}]", NULL },
        { "[1,2]", "[{\"op\":\"test\",\"path\":\"/2\",\"value\":null}]", NULL },
        { "[1,2]", "[{\"op\":\"remove\",\"path\":\"/1\"}]", "[1]" },
        { "[1,2]", "[{\"op\":\"remove\",\"path\":\"/2\"}]", NULL },
        { "[1,2]", "[{\"op\":\"replace\",\"path\":\"/1\",\"value\":{}}]", "[1,{}]" },
        { "[1,2]", "[{\"op\":\"replace\",\"path\":\"/-\",\"value\":{}}]", NULL },
        { "{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"/b\",\"value\":2}]", "{\"a\":1,\"b\":2}" },
        { "{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"/b/c\",\"value\":2}]", NULL },
        { "{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"\",\"value\":[]}]", "[]" },
        { "{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"\",\"value\":5}]", "{\"a\":1}" },
        { "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/b/c\",\"value\":2}]", NULL },
        { "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"\",\"value\":[]}]", NULL },
        { "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"x/b\",\"value\":2}]", "{\"a\":1,\"b\":2}" },
        { "{\"a\":null}", "[{\"op\":\"add\",\"path\":\"/a/b\",\"value\":2}]", NULL },
        { "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"b\",\"value\":2}]", NULL },
        { "{\"a/b\":1,\"m~n\":2}",
          "[{\"op\":\"remove\",\"path\":\"/a~1b\"},{\"op\":\"remove\",\"path\":\"/m~0n\"}]", "{}" },
        { "{\"a\":1}", "[{\"op\":\"remove\",\"path\":\"/~2\"}]", NULL },
        { "{\"a\":[1,{\"x\":2}]}", "[{\"op\":\"test\",\"path\":\"/a/1/x\",\"value\":2}]",
          "{\"a\":[1,{\"x\":2}]}" },
        { "{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":2}]", NULL },
        { "{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/b\",\"value\":null}]", "{\"a\":1}" },
        { "{\"a\":{\"b\":1}}", "[{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/c\"}]",
          "{\"a\":{\"b\":1},\"c\":{\"b\":1}}" },
        { "{\"a\":{\"b\":1}}", "[{\"op\":\"move\",\"from\":\"/a/b\",\"path\":\"/c\"}]",
          "{\"a\":{},\"c\":1}" },
        { "{\"a\":{\"b\":1}}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/a/b/c\"}]", NULL },
        { "{\"a\":1}", "[{\"op\":\"nope\",\"path\":\"/a\"}]", NULL },
        { "{\"a\":1}", "[{\"path\":\"/a\"}]", NULL },
        { "{\"a\":1}", "[1]", NULL },
        { "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/a\"}]", "{\"a\":null}" },
        { "{\"a\":1}", "[{\"op\":\"copy\",\"from\":\"/b\",\"path\":\"/c\"}]",
          "{\"a\":1,\"c\":null}" },
        { "{\"a\":1}", "[{\"op\":\"copy\",\"from\":\"/b/d\",\"path\":\"/c\"}]", NULL },
        { "{\"a\":1}", "[{\"op\":\"copy\",\"from\":\"\",\"path\":\"/c\"}]", NULL },
        { "{\"a\":1}", "[{\"op\":\"move\",\"from\":\"/b\",\"path\":\"/c\"}]", NULL },
        { "{\"a\":1}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/a\"}]", "{\"a\":1}" },
        { "{\"a\":1}", "[null]", NULL },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pl_tree *root = tree(cases[i].target);
        struct pl_str message;
        CASE("JSON patch %s of %s", cases[i].patch, cases[i].target)
        enum pl_patch_result result = pl__patch_json(&arena, &root, tree(cases[i].patch), &message);
        if (cases[i].result) {
            CHECK_INT(result, PATCH_DONE);
            CHECK_STR(text(root), cases[i].result);
        } else {
            CHECK(result != PATCH_DONE);
        }
    }

    CASE("what is no patch is told from what cannot be done")
    struct pl_tree *object = tree("{}");
    struct pl_str why;
    CHECK_INT(pl__patch_json(&arena, &object, tree("[1]"), &why), PATCH_MALFORMED);
    CHECK_INT(pl__patch_json(&arena, &object, tree("[{\"op\":1}]"), &why), PATCH_MALFORMED);
    CHECK_INT(pl__patch_json(&arena, &object, tree("{}"), &why), PATCH_MALFORMED);
    CHECK_INT(pl__patch_json(&arena, &object, tree("[{\"path\":\"/a\"}]"), &why), PATCH_FAILED);
    CHECK_INT(pl__patch_json(&arena, &object, tree("[null]"), &why), PATCH_FAILED);

    CASE("copies of copies are bounded")
    struct pl_tree *root = tree("{\"a\":[1,2,3]}"), *operations = tree("[]");
    struct pl_str message;
    for (int i = 0; i < 64; i++)
        pl__tree_append(operations, tree("{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/a/0\"}"));
    CHECK_INT(pl__patch_json(&arena, &root, operations, &message), PATCH_FAILED);

    CASE("so is depth")
    root = tree("{}");
    operations = tree("[]");
    char path[1024] = "";
    for (size_t i = 0; i < PL_TREE_DEPTH_MAX + 10; i++) {
        struct pl_tree *op = tree("{\"op\":\"add\",\"value\":{}}");
        snprintf(path + 2 * i, sizeof path - 2 * i, "/a");
        pl__tree_set(op, PL_STR("path"), pl__tree_str(&arena, pl__str(path)));
        pl__tree_append(operations, op);
    }
    CHECK_INT(pl__patch_json(&arena, &root, operations, &message), PATCH_FAILED);

    CASE("so are bytes that are copied, however few values they are")
    root = tree("{}");
    char *large = PL_NEW(&arena, char, 1 << 20);
    memset(large, 'x', 1 << 20);
    pl__tree_set(root, PL_STR("a"), pl__tree_str(&arena, (struct pl_str){ large, 1 << 20 }));
    operations = tree("[]");
    for (int i = 0; i < 3; i++) {
        CHECK_INT(pl__patch_json(&arena, &root, operations, &message), PATCH_DONE);
        pl__tree_append(operations, tree("{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/b\"}"));
    }
    CHECK_INT(pl__patch_json(&arena, &root, operations, &message), PATCH_FAILED);

    struct pl_tree *list = tree("[]");
    for (int i = 0; i < 100000; i++)
        pl__tree_append(list, pl__tree_new(&arena, JSON_NULL));
    static const char *const far[] = {
        "{\"op\":\"add\",\"path\":\"/a/99999\",\"value\":0}",
        "{\"op\":\"replace\",\"path\":\"/a/-1\",\"value\":0}",
        "{\"op\":\"test\",\"path\":\"/a/9\",\"value\":null}",
        "{\"op\":\"move\",\"from\":\"/a/-1\",\"path\":\"/a/0\"}",
        "{\"op\":\"copy\",\"from\":\"/a/9\",\"path\":\"/b\"}",
        "{\"op\":\"remove\",\"path\":\"/a/9\"}",
    };
    for (size_t i = 0; i < sizeof far / sizeof far[0]; i++) {
        CASE("so is the way of %s", far[i])
        root = tree("{}");
        pl__tree_set(root, PL_STR("a"), pl__tree_copy(&arena, list));
        operations = tree("[]");
        for (int k = 0; k < 10; k++)
            pl__tree_append(operations, tree(far[i]));
        CHECK_INT(pl__patch_json(&arena, &root, operations, &message), PATCH_DONE);
        for (int k = 0; k < 990; k++)
            pl__tree_append(operations, tree(far[i]));
        CHECK_INT(pl__patch_json(&arena, &root, operations, &message), PATCH_FAILED);
    }

    CASE("so is a comparison of members in another order")
    struct pl_tree *map = tree("{}"), *turned = tree("{}");
    for (int i = 0; i < PL_OBJECT_MEMBERS_MAX; i++) {
        struct pl_tree *m = pl__tree_new(&arena, JSON_TRUE);
        m->key = pl__str_format(&arena, "k%d", i);
        pl__tree_append(map, m);
        pl__tree_insert(turned, 0, pl__tree_copy(&arena, m));
    }
    operations = tree("[{\"op\":\"test\",\"path\":\"\"}]");
    pl__tree_set(operations->first, PL_STR("value"), turned);
    CHECK_INT(pl__patch_json(&arena, &map, operations, &message), PATCH_DONE);
    for (int i = 0; i < 9; i++)
        pl__tree_append(operations, pl__tree_copy(&arena, operations->first));
    CHECK_INT(pl__patch_json(&arena, &map, operations, &message), PATCH_FAILED);

    CASE("a long path is not held once for each of its steps")
    char *steps = PL_NEW(&arena, char, (1 << 20) + 1);
    memset(steps, 'x', 1 << 20);
    for (int i = 0; i < PL_TREE_DEPTH_MAX - 10; i++)
        steps[2 * i] = '/';
    struct pl_str deep = { steps, 1 << 20 };
    operations = tree("[{\"op\":\"remove\"}]");
    pl__tree_set(operations->first, PL_STR("path"), pl__tree_str(&arena, deep));
    size_t used = arena.used_bytes;
    CHECK_INT(pl__patch_json(&arena, &map, operations, &message), PATCH_FAILED);
    CHECK(arena.used_bytes - used < 2 << 20);

    CASE("so are operations")
    operations = tree("[]");
    for (int i = 0; i <= PL_PATCH_OPERATIONS_MAX; i++)
        pl__tree_append(operations, tree("{}"));
    CHECK_INT(pl__patch_json(&arena, &root, operations, &message), PATCH_TOO_MANY);
}

static void test_strategic(void)
{
    static const struct {
        const char *target, *patch, *result;
    } cases[] = {
        { "{\"status\":{\"conditions\":[{\"type\":\"A\",\"status\":\"1\",\"x\":1}]}}",
          "{\"status\":{\"conditions\":[{\"type\":\"A\",\"status\":\"2\"},{\"type\":\"B\"}]}}",
          "{\"status\":{\"conditions\":[{\"type\":\"A\",\"status\":\"2\",\"x\":1},{\"type\":\"B\"}]"
          "}}" },
        { "{\"status\":{\"conditions\":[{\"type\":\"A\"},{\"type\":\"B\"},{\"type\":\"C\"}]}}",
          "{\"status\":{\"conditions\":[{\"type\":\"N\"},{\"type\":\"C\"},{\"type\":\"A\"}]}}",
          "{\"status\":{\"conditions\":[{\"type\":\"N\"},{\"type\":\"B\"},{\"type\":\"C\"},"
          "{\"type\":\"A\"}]}}" },
        { "{\"status\":{\"conditions\":[{\"type\":\"A\"},{\"type\":\"B\"}]}}",
          "{\"status\":{\"conditions\":[{\"type\":\"A\",\"$patch\":\"delete\"}]}}",
          "{\"status\":{\"conditions\":[{\"type\":\"B\"}]}}" },
        { "{\"status\":{\"conditions\":[{\"type\":\"A\"}]}}",
          "{\"status\":{\"conditions\":[{\"$patch\":\"replace\"},{\"type\":\"C\"}]}}",
          "{\"status\":{\"conditions\":[{\"type\":\"C\"}]}}" },
        { "{\"metadata\":{\"finalizers\":[\"a\"]}}",
          "{\"metadata\":{\"finalizers\":[\"b\",\"a\"]}}",
          "{\"metadata\":{\"finalizers\":[\"b\",\"a\"]}}" },
        { "{\"metadata\":{\"finalizers\":[\"a\",\"b\"]}}",
          "{\"metadata\":{\"$deleteFromPrimitiveList/finalizers\":[\"a\"],"
          "\"$setElementOrder/finalizers\":[\"b\"]}}",
          "{\"metadata\":{\"finalizers\":[\"b\"]}}" },
        { "{\"spec\":{\"taints\":[{\"key\":\"a\"}]}}", "{\"spec\":{\"taints\":[{\"key\":\"b\"}]}}",
          "{\"spec\":{\"taints\":[{\"key\":\"b\"}]}}" },
        { "{\"metadata\":{\"labels\":{\"a\":\"1\",\"b\":\"2\"}}}",
          "{\"metadata\":{\"labels\":{\"a\":null,\"c\":\"3\"}}}",
          "{\"metadata\":{\"labels\":{\"b\":\"2\",\"c\":\"3\"}}}" },
        { "{\"spec\":{\"a\":1,\"b\":2}}", "{\"spec\":{\"$patch\":\"replace\",\"c\":3}}",
          "{\"spec\":{\"c\":3}}" },
        { "{\"spec\":{\"a\":1,\"b\":2}}", "{\"spec\":{\"$retainKeys\":[\"b\",\"c\"],\"c\":3}}",
          "{\"spec\":{\"b\":2,\"c\":3}}" },
        { "{}", "{\"spec\":{\"x\":{\"$patch\":\"merge\",\"a\":1,\"b\":null}}}",
          "{\"spec\":{\"x\":{\"a\":1}}}" },
    };
    const struct pl_kind *node = pl__kind_by_plural(PL_STR(""), PL_STR("v1"), PL_STR("nodes"));

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pl_tree *target = tree(cases[i].target);
        struct pl_str message;
        CASE("strategic %s of %s", cases[i].patch, cases[i].target)
        CHECK_INT(pl__patch_strategic(&arena, node, target, tree(cases[i].patch), &message),
                  PATCH_DONE);
        CHECK_STR(text(target), cases[i].result);
    }
}

static void test_fields(void)
{
    const struct pl_kind *machine =
        pl__kind_by_plural(PL_STR("cluster.x-k8s.io"), PL_STR("v1beta2"), PL_STR("machines"));
    static const struct {
        const char *object, *fields;
    } cases[] = {
        { "{\"spec\":{\"a\":1,\"b\":{\"c\":[1,2]},\"e\":{}}}",
          "{\"f:spec\":{\"f:a\":{},\"f:b\":{\"f:c\":{}},\"f:e\":{}}}" },
        { "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
          "{\"f:status\":{\"f:conditions\":{\"k:{\\\"type\\\":\\\"Ready\\\"}\":{\".\":{},\"f:"
          "status\":"
          "{},\"f:type\":{}}}}}" },
        { "{\"metadata\":{\"finalizers\":[\"b\",\"a\"]}}",
          "{\"f:metadata\":{\"f:finalizers\":{\"v:\\\"a\\\"\":{},\"v:\\\"b\\\"\":{}}}}" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CASE("fields of %s", cases[i].object)
        struct pl_fields *set = pl__fields_of(&arena, machine, tree(cases[i].object));
        CHECK_STR(text(pl__fields_write(&arena, set)), cases[i].fields);
        CHECK(pl__fields_equal(set, pl__fields_read(&arena, tree(cases[i].fields))));
        CHECK(pl__fields_empty(pl__fields_minus(&arena, set, set)));
        CHECK(pl__fields_equal(set, pl__fields_common(&arena, set, set)));
        CHECK(pl__fields_equal(set, pl__fields_union(&arena, set, set)));
    }
    CASE("members in any order")
    struct pl_fields_change change =
        pl__fields_compare(&arena, machine, tree("{\"spec\":{\"z\":1,\"m\":1,\"a\":1,\"c\":1}}"),
                           tree("{\"spec\":{\"m\":2,\"y\":1,\"c\":1,\"b\":1,\"a\":1}}"));
    CHECK_STR(text(pl__fields_write(&arena, change.modified)), "{\"f:spec\":{\"f:m\":{}}}");
    CHECK_STR(text(pl__fields_write(&arena, change.removed)), "{\"f:spec\":{\"f:z\":{}}}");
    CHECK_STR(text(pl__fields_write(&arena, change.added)), "{\"f:spec\":{\"f:b\":{},\"f:y\":{}}}");

    CASE("what comes counts with the places between")
    change = pl__fields_compare(
        &arena, machine, tree("{\"spec\":{\"a\":1,\"b\":1}}"),
        tree("{\"spec\":{\"a\":2},\"status\":{\"conditions\":[{\"type\":\"A\"}]}}"));
    CHECK_STR(text(pl__fields_write(&arena, change.modified)), "{\"f:spec\":{\"f:a\":{}}}");
    CHECK_STR(text(pl__fields_write(&arena, change.removed)), "{\"f:spec\":{\"f:b\":{}}}");
    CHECK_STR(text(pl__fields_write(&arena, change.added)),
              "{\"f:status\":{\".\":{},\"f:conditions\":{\".\":{},\"k:{\\\"type\\\":\\\"A\\\"}\":"
              "{\".\":{},\"f:type\":{}}}}}");
}

int main(void)
{
    pl__arena_init(&arena, NULL, 0);
    test_trees();
    test_merge();
    test_json();
    test_strategic();
    test_fields();
    pl__arena_release(&arena);
    return test_end("patch");
}
