/* Requests that are as large as they may be, and a little larger: answered without much memory, and what was stored
 * can be read again. */
#include "ask.h"

#include <sqlite3.h>
#include <unistd.h>

#define CONFIG_MAPS "/api/v1/namespaces/default/configmaps"
#define CONFIG_MAP(name)                                                                           \
    "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"" name "\"},\"data\":" \
    "{"

enum { TEXT_MAX = 4 * 1024 * 1024, MEMORY_MAX = 64 * 1024 * 1024 };

static char text[TEXT_MAX];

/* `head`, then "k0":"v","k1":"v"..., then `tail`. */
static const char *keys(const char *head, const char *key, int count, const char *tail)
{
    size_t len = (size_t)snprintf(text, sizeof text, "%s", head);

    for (int i = 0; i < count; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%s\"%s%d\":\"v\"", i ? "," : "",
                                key, i);
    snprintf(text + len, sizeof text - len, "%s", tail);
    return text;
}

static void step(int times)
{
    for (int i = 0; i < times; i++)
        pl_apiserver_step(server, now_ms);
}

static void test_members(void)
{
    CASE("as many members as there may be")
    CHECK_INT(ask("POST " CONFIG_MAPS, keys(CONFIG_MAP("x"), "k", PL_OBJECT_MEMBERS_MAX, "}}")),
              201);
    CHECK_INT(ask("MERGE " CONFIG_MAPS "/x", "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}"), 200);
    CHECK_INT(ask("GET " CONFIG_MAPS "?labelSelector=a%3Db", ""), 200);
    CHECK_HAS("\"k8191\"");
    CHECK_INT(ask("JSON " CONFIG_MAPS "/x",
                  "[{\"op\":\"replace\",\"path\":\"/data/k8191\",\"value\":\"w\"}]"),
              200);
    CHECK_HAS("\"f:k8191\"");
    CASE("which can be sent back as they are, and deleted")
    CHECK_INT(ask("PUT " CONFIG_MAPS "/x", answer.body.ptr), 200);
    CHECK_INT(ask("DELETE " CONFIG_MAPS "/x", ""), 200);
    CHECK_INT(ask("GET " CONFIG_MAPS "/x", ""), 404);

    CASE("one more, in each way there is")
    CHECK_INT(ask("POST " CONFIG_MAPS, keys(CONFIG_MAP("x"), "k", PL_OBJECT_MEMBERS_MAX + 1, "}}")),
              413);
    CHECK_FIELD("reason", "RequestEntityTooLarge");
    CHECK_INT(ask("POST " CONFIG_MAPS, keys(CONFIG_MAP("x"), "k", PL_OBJECT_MEMBERS_MAX * 2, "}}")),
              400);
    CHECK_INT(ask("POST " CONFIG_MAPS, keys(CONFIG_MAP("x"), "k", 5000, "}}")), 201);
    static const char *const patches[] = { "MERGE", "STRATEGIC", "APPLY" };
    for (size_t i = 0; i < sizeof patches / sizeof patches[0]; i++) {
        char what[128];
        CASE("5000 more by %s", patches[i])
        snprintf(what, sizeof what, "%s %s/x?fieldManager=a", patches[i], CONFIG_MAPS);
        CHECK_INT(ask(what, keys(CONFIG_MAP("x"), "m", 5000, "}}")), 413);
    }
    CHECK_INT(ask("GET " CONFIG_MAPS "/x", ""), 200);
    CHECK(!pl__str_contains(answer.body, PL_STR("\"m1\"")));
    CHECK_INT(ask("DELETE " CONFIG_MAPS "/x", ""), 200);
    CASE("owners of fields that are not there")
    CHECK_INT(
        ask("POST " CONFIG_MAPS,
            keys("{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"x\","
                 "\"managedFields\":[{\"manager\":\"test\",\"operation\":\"Update\","
                 "\"apiVersion\":\"v1\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:data\":{",
                 "f:n", PL_OBJECT_MEMBERS_MAX, "}}}]},\"data\":{\"a\":\"1\"}}")),
        201);
    CHECK_INT(ask("MERGE " CONFIG_MAPS "/x", keys("{\"data\":{", "k", 5000, "}}")), 200);
    CHECK_INT(ask("DELETE " CONFIG_MAPS "/x", ""), 200);
    pl__arena_reset(&arena);
}

static void remove_file(const char *file)
{
    char name[256];

    unlink(file);
    snprintf(name, sizeof name, "%s-wal", file);
    unlink(name);
    snprintf(name, sizeof name, "%s-shm", file);
    unlink(name);
}

/* Puts something else in place of every object of that name. */
static void damage(const char *file, const char *name)
{
    sqlite3 *db = NULL;
    char query[128];

    CHECK_INT(sqlite3_open(file, &db), SQLITE_OK);
    snprintf(query, sizeof query, "UPDATE log SET object='{' WHERE name='%s'", name);
    CHECK_INT(sqlite3_exec(db, query, NULL, NULL, NULL), SQLITE_OK);
    CHECK(sqlite3_changes(db) > 0);
    sqlite3_close(db);
}

static void test_restart(void)
{
    char file[256];
    const char *folder = getenv("TMPDIR");

    snprintf(file, sizeof file, "%s/plimsoll-limits-%d.db", folder && *folder ? folder : "/tmp",
             (int)getpid());
    remove_file(file);
    struct pl_apiserver_options options = { .seed = 7, .file = file };
    pl_apiserver_close(server);
    start(&options);

    CASE("a namespace with a large object in it goes, also after a restart")
    CHECK_INT(
        ask("POST /api/v1/namespaces",
            "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"large\"}}"),
        201);
    CHECK_INT(ask("POST /api/v1/namespaces/large/configmaps",
                  keys(CONFIG_MAP("x"), "k", PL_OBJECT_MEMBERS_MAX, "}}")),
              201);
    CHECK_INT(ask("DELETE /api/v1/namespaces/large", ""), 200);
    pl_apiserver_close(server);
    start(&options);
    step(8);
    CHECK_INT(ask("GET /api/v1/namespaces/large", ""), 404);

    CASE("an object that the disk has spoiled is not taken for another, and can be deleted")
    CHECK_INT(ask("POST " CONFIG_MAPS, CONFIG_MAP("bad") "\"a\":\"b\"}}"), 201);
    pl_apiserver_close(server);
    damage(file, "bad");
    start(&options);
    CHECK_INT(ask("GET " CONFIG_MAPS "?labelSelector=a%3Db", ""), 200);
    CHECK_INT(ask("DELETE " CONFIG_MAPS "/bad", ""), 200);
    CHECK_INT(ask("GET " CONFIG_MAPS "/bad", ""), 404);
    pl_apiserver_close(server);
    remove_file(file);
    pl__arena_reset(&arena);
    start(&(struct pl_apiserver_options){ .seed = 7 });
}

static void test_copies(void)
{
    enum { VALUE_BYTES = 2 * 1024 * 1024, COPIES = 2000 };

    CASE("copies of a large value, by a small patch")
    size_t len = (size_t)snprintf(text, sizeof text, "%s\"a\":\"", CONFIG_MAP("x"));
    memset(text + len, 'x', VALUE_BYTES);
    snprintf(text + len + VALUE_BYTES, sizeof text - len - VALUE_BYTES, "\"}}");
    CHECK_INT(ask("POST " CONFIG_MAPS, text), 201);
    pl__arena_release(&arena);
    len = (size_t)snprintf(text, sizeof text, "[");
    for (int i = 0; i < COPIES; i++)
        len += (size_t)snprintf(text + len, sizeof text - len,
                                "%s{\"op\":\"copy\",\"from\":\"/data/a\",\"path\":\"/data/b%d\"}",
                                i ? "," : "", i);
    snprintf(text + len, sizeof text - len, "]");
    CHECK_INT(ask("JSON " CONFIG_MAPS "/x", text), 422);
    CHECK(arena.held_bytes < MEMORY_MAX);
    CASE("one copy is allowed, but not an object as large as that")
    CHECK_INT(ask("JSON " CONFIG_MAPS "/x",
                  "[{\"op\":\"copy\",\"from\":\"/data/a\",\"path\":\"/data/b\"}]"),
              413);
    CHECK_INT(ask("GET " CONFIG_MAPS "/x", ""), 200);
    pl__arena_reset(&arena);
}

/* A Pod with `containers`, and `variables` in each. */
static const char *pod(int containers, int variables)
{
    size_t len = (size_t)snprintf(
        text, sizeof text,
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"x\"},\"spec\":{"
        "\"containers\":[");

    for (int i = 0; i < containers; i++) {
        len += (size_t)snprintf(text + len, sizeof text - len,
                                "%s{\"name\":\"c%d\",\"image\":\"i\",\"env\":[", i ? "," : "", i);
        for (int k = 0; k < variables; k++)
            len += (size_t)snprintf(text + len, sizeof text - len, "%s{\"name\":\"e%d\"}",
                                    k ? "," : "", k);
        len += (size_t)snprintf(text + len, sizeof text - len, "]}");
    }
    snprintf(text + len, sizeof text - len, "]}}");
    return text;
}

static void test_apply(void)
{
    static const char apply[] = "APPLY /api/v1/namespaces/default/pods/x?fieldManager=a";

    static const struct {
        const char *what;
        int variables, status;
    } cases[] = {
        { "created", 1024, 201 },
        { "merged", 1024, 200 },
        { "pruned", 1, 200 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CASE("long lists are %s item by item, in little memory", cases[i].what)
        pl__arena_release(&arena);
        CHECK_INT(ask(apply, pod(10, cases[i].variables)), cases[i].status);
        CHECK(arena.held_bytes < MEMORY_MAX);
        CHECK(pl__str_contains(answer.body, PL_STR("\"e1023\"")) == (cases[i].variables == 1024));
        CHECK_HAS("\"e0\"");
    }
    CASE("the same key twice, and none")
    static const struct {
        const char *items, *message;
    } bad[] = {
        { "{\"name\":\"a\"},{\"name\":\"b\"},{\"name\":\"a\"}",
          ".spec.containers: duplicate entries for key {\\\"name\\\":\\\"a\\\"}" },
        { "{\"name\":\"a\"},{\"image\":\"b\"}", ".spec.containers: element 1: associative list" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char body[512];
        snprintf(body, sizeof body,
                 "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"x\"},\"spec\":{"
                 "\"containers\":[%s]}}",
                 bad[i].items);
        CHECK_INT(ask(apply, body), 500);
        CHECK_HAS(bad[i].message);
    }
}

int main(void)
{
    pl__arena_init(&arena, NULL, 0);
    start(&(struct pl_apiserver_options){ .seed = 7 });
    test_members();
    test_restart();
    test_copies();
    test_apply();
    pl_apiserver_close(server);
    pl__arena_release(&arena);
    return test_end("limits");
}
