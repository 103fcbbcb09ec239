/* The collector: dependents, namespaces, Events, history; many of each, and on a disk that is full. */
#include <errno.h>
#include <sqlite3.h>
#include <sys/types.h>
#include <unistd.h>

#include "drive.h"

/* More than what a step looks at. */
enum { MANY = 300 };

/* How many of `d000`... have a deletionTimestamp. */
static int count_marked(const char *path, int count)
{
    int marked = 0;

    for (int i = 0; i < count; i++) {
        CHECK_INT(ask_of("", "GET %s/d%03d", path, i), 200);
        marked += pl__str_contains(answer.body, PL_STR("\"deletionTimestamp\""));
    }
    return marked;
}

static const char *owned_by(struct pl_str uid, const char *more)
{
    return pl__str_format(&arena,
                          ",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\","
                          "\"name\":\"o\",\"uid\":\"%.*s\"}]%s",
                          PL_STR_ARG(uid), more)
        .ptr;
}

/* An owner and MANY dependents, all with a finalizer; the owner is deleted. */
static void delete_owner_of_many(const char *options)
{
    char name[16];

    open_with((struct pl_apiserver_options){ 0 });
    make(CONFIGMAPS, "ConfigMap", "owner", "");
    const char *metadata = owned_by(field("metadata.uid"), ",\"finalizers\":[\"a.b/c\"]");
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "d%03d", i);
        make(CONFIGMAPS, "ConfigMap", name, metadata);
    }
    step_while_due();
    CHECK_INT(ask("DELETE " CONFIGMAPS "/owner", options), 200);
    CHECK(step_while_due() > 1); /* in portions */
}

static void test_dependents(void)
{
    static const char *const policies[] = { "{\"propagationPolicy\":\"Background\"}",
                                            "{\"propagationPolicy\":\"Foreground\"}" };

    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
        CASE("all dependents are deleted, %s", policies[i])
        delete_owner_of_many(policies[i]);
        CHECK_INT(count_marked(CONFIGMAPS, MANY), MANY);
        CHECK_INT(ask("GET " CONFIGMAPS "/owner", ""), 404);
    }

    CASE("all dependents lose an owner that leaves them behind")
    delete_owner_of_many("{\"propagationPolicy\":\"Orphan\"}");
    CHECK_INT(count_marked(CONFIGMAPS, MANY), 0);
    for (int i = 0; i < MANY; i++) {
        ask_of("", "GET " CONFIGMAPS "/d%03d", i);
        CHECK_STR(field("metadata.ownerReferences"), "<none>");
    }
}

static void test_two_owners(void)
{
    open_with((struct pl_apiserver_options){ 0 });
    CASE("an owner that is being deleted in the background still is one")
    make(CONFIGMAPS, "ConfigMap", "a", "");
    struct pl_str a = field("metadata.uid");
    make(CONFIGMAPS, "ConfigMap", "b", ",\"finalizers\":[\"a.b/c\"]");
    struct pl_str b = field("metadata.uid");
    make(CONFIGMAPS, "ConfigMap", "d",
         pl__str_format(&arena,
                        ",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\","
                        "\"name\":\"a\",\"uid\":\"%.*s\"},{\"apiVersion\":\"v1\",\"kind\":"
                        "\"ConfigMap\",\"name\":\"b\",\"uid\":\"%.*s\"}]",
                        PL_STR_ARG(a), PL_STR_ARG(b))
             .ptr);
    CHECK_INT(ask("DELETE " CONFIGMAPS "/b", "{\"propagationPolicy\":\"Background\"}"), 200);
    CHECK_INT(ask("DELETE " CONFIGMAPS "/a", ""), 200);
    step_while_due();
    CHECK_INT(ask("GET " CONFIGMAPS "/d", ""), 200);
    CHECK(!pl__str_contains(field("metadata.ownerReferences"), a));
    CHECK(pl__str_contains(field("metadata.ownerReferences"), b));

    CASE("until it is gone")
    CHECK_INT(ask("MERGE " CONFIGMAPS "/b", "{\"metadata\":{\"finalizers\":null}}"), 200);
    step_while_due();
    CHECK_INT(ask("GET " CONFIGMAPS "/d", ""), 404);
}

static void test_namespaces(void)
{
    char name[16], path[64];

    open_with((struct pl_apiserver_options){ 0 });
    CASE("everything in a namespace is deleted at once, whatever waits")
    make("/api/v1/namespaces", "Namespace", "n", "");
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "d%03d", i);
        make("/api/v1/namespaces/n/configmaps", "ConfigMap", name, ",\"finalizers\":[\"a.b/c\"]");
    }
    make("/api/v1/namespaces/n/secrets", "Secret", "z", "");
    CHECK_INT(ask("DELETE /api/v1/namespaces/n", ""), 200);
    step_while_due();
    CHECK_INT(count_marked("/api/v1/namespaces/n/configmaps", MANY), MANY);
    CHECK_INT(ask("GET /api/v1/namespaces/n/secrets/z", ""), 404);
    CHECK_INT(ask("GET /api/v1/namespaces/n", ""), 200);
    for (int i = 0; i < MANY; i++)
        ask_of("{\"metadata\":{\"finalizers\":null}}",
               "MERGE /api/v1/namespaces/n/configmaps/d%03d", i);
    step_while_due();
    CHECK_INT(ask("GET /api/v1/namespaces/n", ""), 404);

    CASE("those that wait keep nobody from ending")
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "n%03d", i);
        make("/api/v1/namespaces", "Namespace", name, "");
        snprintf(path, sizeof path, "/api/v1/namespaces/%s/configmaps", name);
        make(path, "ConfigMap", "x", ",\"finalizers\":[\"a.b/c\"]");
        CHECK_INT(ask_of("", "DELETE /api/v1/namespaces/%s", name), 200);
    }
    step_while_due();
    make("/api/v1/namespaces", "Namespace", "empty", "");
    CHECK_INT(ask("DELETE /api/v1/namespaces/empty", ""), 200);
    step_while_due();
    CHECK_INT(ask("GET /api/v1/namespaces/empty", ""), 404);
    CHECK_INT(ask("GET /api/v1/namespaces/n000", ""), 200);
    CHECK_INT(
        ask("MERGE /api/v1/namespaces/n299/configmaps/x", "{\"metadata\":{\"finalizers\":null}}"),
        200);
    step_while_due();
    CHECK_INT(ask("GET /api/v1/namespaces/n299", ""), 404);

    CASE("a cluster goes in the middle of it")
    pl_apiserver_cluster_add(server, PL_STR("other"), now_ms);
    CHECK_INT(ask("DELETE /api/v1/namespaces/n298", ""), 200);
    CHECK_INT(
        ask("MERGE /api/v1/namespaces/n298/configmaps/x", "{\"metadata\":{\"finalizers\":null}}"),
        200);
    pl_apiserver_step(server, now_ms);
    CHECK_INT(pl_apiserver_cluster_remove(server, PL_STR("other")), 0);
    step_while_due();
    CHECK_INT(ask("GET /api/v1/namespaces/n298", ""), 404);
}

static void make_event(const char *name)
{
    make("/api/v1/namespaces/default/events", "Event", name,
         "},\"involvedObject\":{\"namespace\":\"default\"");
}

static void test_events(void)
{
    char name[16];

    open_with((struct pl_apiserver_options){ 0 });
    CASE("old Events go, however many there are and whatever they are called")
    for (int i = 0; i < 2 * MANY; i++) {
        snprintf(name, sizeof name, "z%03d", i);
        make_event(name);
    }
    make_event("changed");
    now_ms += 3000 * 1000;
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "a%03d", i);
        make_event(name);
    }
    CHECK_INT(ask("MERGE /api/v1/namespaces/default/events/changed", "{\"count\":2}"), 200);
    now_ms += 700 * 1000;
    CHECK(step_while_due() > 1);
    CHECK_INT(ask("GET /api/v1/namespaces/default/events", ""), 200);
    CHECK_INT(pl__tree_count(pl__tree_at(pl__tree_read(&arena, answer.body, NULL), "items")),
              MANY + 1);
    CHECK_INT(ask("GET /api/v1/namespaces/default/events/z599", ""), 404);

    CASE("a change gives an Event its time anew")
    CHECK_INT(ask("GET /api/v1/namespaces/default/events/changed", ""), 200);
    now_ms += 3000 * 1000;
    step_while_due();
    CHECK_INT(ask("GET /api/v1/namespaces/default/events/changed", ""), 404);
    CHECK(pl_apiserver_wake_at_ms(server) <= now_ms + 60 * 1000);
}

static void test_history(void)
{
    char body[64];

    open_with((struct pl_apiserver_options){ .history_max = 100 });
    CASE("history that is too long is due, though nothing else is")
    make(CONFIGMAPS, "ConfigMap", "x", "");
    step_while_due();
    for (int i = 0; i < 400; i++) {
        snprintf(body, sizeof body, "{\"data\":{\"a\":\"%d\"}}", i);
        CHECK_INT(ask("MERGE " CONFIGMAPS "/x", body), 200);
        step_while_due();
        uint64_t newest = pl_apiserver_version(server);
        CHECK(newest < 152 ||
              ask_of("", "GET " CONFIGMAPS "?resourceVersionMatch=Exact&resourceVersion=%llu",
                     (unsigned long long)newest - 151) == 410);
    }
}

/* --- a disk without room ------------------------------------------------------------------------- */

static bool disk_full;

static ssize_t full_pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
    if (disk_full) {
        errno = ENOSPC;
        return -1;
    }
    return pwrite(fd, bytes, size, offset);
}

static void set_call(const char *name, sqlite3_syscall_ptr call)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);

    vfs->xSetSystemCall(vfs, name, call);
}

static void test_full_disk(void)
{
    char folder[64] = "/tmp/plimsoll-full-XXXXXX", file[80], name[96];

    if (!mkdtemp(folder))
        exit(1);
    snprintf(file, sizeof file, "%s/db", folder);
    set_call("pwrite", (sqlite3_syscall_ptr)full_pwrite);
    set_call("pwrite64", (sqlite3_syscall_ptr)full_pwrite);
    open_with((struct pl_apiserver_options){ .file = file });
    make("/api/v1/namespaces", "Namespace", "n", "");
    make("/api/v1/namespaces/n/configmaps", "ConfigMap", "x", "");
    pl_apiserver_cluster_add(server, PL_STR("other"), now_ms);
    step_while_due();

    CASE("a full disk is called that")
    disk_full = true;
    CHECK_INT(ask("MERGE /api/v1/namespaces/n/configmaps/x", "{\"data\":{\"a\":\"b\"}}"), 500);
    CHECK_STR(field("message"), "Internal error occurred: database: database or disk is full");
    disk_full = false;
    CHECK_INT(ask("MERGE /api/v1/namespaces/n/configmaps/x", "{\"data\":{\"a\":\"b\"}}"), 200);

    CASE("the collector tries again in a second, not at once")
    step_while_due();
    CHECK_INT(ask("DELETE /api/v1/namespaces/n", ""), 200);
    disk_full = true;
    CHECK(step_while_due() <= 2);
    CHECK_INT(pl_apiserver_wake_at_ms(server), now_ms + 1000);
    now_ms += 1000;
    CHECK_INT(step_while_due(), 1);
    CHECK_INT(pl_apiserver_wake_at_ms(server), now_ms + 1000);
    disk_full = false;
    now_ms += 1000;
    step_while_due();
    CHECK_INT(ask("GET /api/v1/namespaces/n", ""), 404);

    CASE("a cluster that could not be removed is still there")
    disk_full = true;
    CHECK_INT(pl_apiserver_cluster_remove(server, PL_STR("other")), -1);
    CHECK(pl_apiserver_has_cluster(server, PL_STR("other")));
    disk_full = false;
    CHECK_INT(pl_apiserver_cluster_remove(server, PL_STR("other")), 0);
    CHECK(!pl_apiserver_has_cluster(server, PL_STR("other")));

    CASE("history and Events wait for room, too")
    open_with((struct pl_apiserver_options){ .file = file, .history_max = 4 });
    make_event("e");
    for (int i = 0; i < 8; i++)
        make(CONFIGMAPS, "ConfigMap", pl__str_format(&arena, "c%d", i).ptr, "");
    disk_full = true;
    CHECK(step_while_due() <= 2);
    CHECK_INT(pl_apiserver_wake_at_ms(server), now_ms + 1000);
    now_ms += 3700 * 1000;
    CHECK(step_while_due() <= 2);
    CHECK_INT(pl_apiserver_wake_at_ms(server), now_ms + 1000);
    disk_full = false;
    now_ms += 1000;
    step_while_due();
    CHECK_INT(ask("GET /api/v1/namespaces/default/events/e", ""), 404);

    pl_apiserver_close(server);
    server = NULL;
    for (int i = 0; i < 3; i++) {
        static const char *const endings[] = { "", "-wal", "-shm" };
        snprintf(name, sizeof name, "%s%s", file, endings[i]);
        unlink(name);
    }
    CHECK_INT(rmdir(folder), 0);
}

int main(void)
{
    pl__arena_init(&arena, NULL, 0);
    test_dependents();
    test_two_owners();
    test_namespaces();
    test_events();
    test_history();
    test_full_disk();
    pl_apiserver_close(server);
    pl__arena_release(&arena);
    return test_end("collect");
}
