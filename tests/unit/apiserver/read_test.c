/* Lists and watches of much: what they cost, that they show the right version, and that everybody gets a turn. */
#include <sqlite3.h>

#include "apiserver/internal.h"

#include "drive.h"

/* --- queries ------------------------------------------------------------------------------------- */

static sqlite3 *database; /* the one that was opened last */

static int note_database(sqlite3 *db, const char **message, const struct sqlite3_api_routines *api)
{
    (void)message;
    (void)api;
    database = db;
    return SQLITE_OK;
}

/* Nothing that is asked for while requests are answered may sort, or read a whole table. */
static void check_plan(const char *sql)
{
    struct pl_str text = pl__str_format(&arena, "EXPLAIN QUERY PLAN %s", sql);
    sqlite3_stmt *plan = NULL;

    CHECK_INT(sqlite3_prepare_v2(database, text.ptr, -1, &plan, NULL), SQLITE_OK);
    while (sqlite3_step(plan) == SQLITE_ROW) {
        struct pl_str detail = pl__str((const char *)sqlite3_column_text(plan, 3));
        if (pl__str_contains(detail, PL_STR("TEMP B-TREE")) ||
            pl__str_starts_with(detail, PL_STR("SCAN")))
            test_fail(__FILE__, __LINE__, "%.*s of %s", PL_STR_ARG(detail), sql);
    }
    sqlite3_finalize(plan);
}

static void test_plans(void)
{
    int count = 0;

    CASE("queries walk indexes")
    for (sqlite3_stmt *q = sqlite3_next_stmt(database, NULL); q; q = sqlite3_next_stmt(database, q))
        if (strstr(sqlite3_sql(q), " FROM ")) {
            check_plan(sqlite3_sql(q));
            count++;
        }
    CHECK(count > 10);
}

/* --- lists --------------------------------------------------------------------------------------- */

static void change(int i, const char *value)
{
    char body[64];

    snprintf(body, sizeof body, "{\"data\":{\"a\":\"%s\"}}", value);
    CHECK_INT(ask_of(body, "MERGE " CONFIGMAPS "/x%02d", i), 200);
}

/* All items of a list in pages of `limit`, as one text. */
static struct pl_str read_pages(const char *path, int limit, const char *version)
{
    struct pl_str token = { 0 };
    struct pl_buf all;

    pl__buf_init(&all, &arena, SIZE_MAX / 2);
    do {
        CHECK_INT(ask_of("", "GET %s?limit=%d&%s%.*s", path, limit,
                         token.len ? "continue=" : version, PL_STR_ARG(token)),
                  200);
        struct pl_str items = field("items");
        if (items.len > 2) {
            pl__buf_add(&all, (struct pl_str){ items.ptr + 1, items.len - 2 });
            pl__buf_add_char(&all, ',');
        }
        token = field("metadata.continue");
    } while (answer.status == 200 && token.len && !pl__str_equal(token, PL_STR("<none>")));
    return pl__buf_str(&all);
}

static void test_past(void)
{
    char name[16], version[64];

    open_with((struct pl_apiserver_options){ 0 });
    CASE("a list of the past, in pages, shows what was there")
    for (int i = 0; i < 50; i++) {
        snprintf(name, sizeof name, "x%02d", i);
        make(CONFIGMAPS, "ConfigMap", name, "");
        change(i, "1");
        if (i % 5 == 0)
            CHECK_INT(ask_of("", "DELETE " CONFIGMAPS "/x%02d", i), 200);
        if (i % 10 == 0)
            make(CONFIGMAPS, "ConfigMap", name, "");
    }
    snprintf(version, sizeof version, "resourceVersionMatch=Exact&resourceVersion=%llu",
             (unsigned long long)pl_apiserver_version(server));
    struct pl_str then = read_pages(CONFIGMAPS, 100, "");
    struct pl_str everywhere = read_pages("/api/v1/configmaps", 100, "");
    for (int i = 1; i < 50; i++) {
        snprintf(name, sizeof name, "x%02d", i);
        if (i % 10 == 5)
            make(CONFIGMAPS, "ConfigMap", name, ""); /* was not there */
        else if (i % 3 == 0)
            CHECK_INT(ask_of("", "DELETE " CONFIGMAPS "/%s", name), 200);
        else
            change(i, "2");
    }
    CHECK(!pl__str_equal(read_pages(CONFIGMAPS, 100, ""), then));
    CHECK_STR(read_pages(CONFIGMAPS, 7, version), then.ptr);
    CHECK_STR(read_pages("/api/v1/configmaps", 7, version), everywhere.ptr);
}

/* 400 ConfigMaps of 4 KB, the last of them labelled. */
static void make_large(void)
{
    static char data[4200];
    char name[16];

    open_with((struct pl_apiserver_options){ 0 });
    int len = snprintf(data, sizeof data, "},\"data\":{\"a\":\"");
    memset(data + len, 'x', 4096);
    data[len + 4096] = '"';
    for (int i = 0; i < 400; i++) {
        snprintf(name, sizeof name, "c%03d", i);
        make(CONFIGMAPS, "ConfigMap", name, data);
    }
    CHECK_INT(ask("MERGE " CONFIGMAPS "/c399", "{\"metadata\":{\"labels\":{\"k\":\"v\"}}}"), 200);
    pl__arena_release(&arena);
}

static void test_selected(void)
{
    make_large();
    CASE("a list by label holds what matches, not what it has passed over")
    CHECK_INT(ask("GET " CONFIGMAPS "?labelSelector=k%3Dv", ""), 200);
    CHECK(pl__str_contains(answer.body, PL_STR("\"c399\"")));
    CHECK(!pl__str_contains(answer.body, PL_STR("\"c398\"")));
    CHECK(arena.held_bytes < 256 * 1024);

    CASE("in another form, too")
    struct pl_api_request table = { .cluster = PL_STR("management"),
                                    .method = PL_STR("GET"),
                                    .path = PL_STR(CONFIGMAPS),
                                    .query = PL_STR("labelSelector=k%3Dv"),
                                    .accept =
                                        PL_STR("application/json;as=Table;v=v1;g=meta.k8s.io") };
    pl__arena_release(&arena);
    pl_apiserver_handle(server, &table, now_ms, &arena, &answer);
    CHECK_STR(field("kind"), "Table");
    CHECK_INT(pl__tree_count(pl__tree_at(pl__tree_read(&arena, answer.body, NULL), "rows")), 1);
    CHECK_STR(field("metadata.continue"), "<none>");
    CHECK(arena.held_bytes < 256 * 1024);
}

/* --- watches ------------------------------------------------------------------------------------- */

static void count_wake(void *context)
{
    (*(int *)context)++;
}

static struct pl_api_watch *watch(const char *query, int *wakes)
{
    CHECK_INT(ask_of("", "GET " CONFIGMAPS "?watch=true&%s", query), 200);
    if (!answer.watch)
        exit(1);
    pl_api_watch_own(answer.watch, (struct pl_api_watch_owner){ count_wake, wakes });
    return answer.watch;
}

/* The name of what the next event is about; "" when there is none now. */
static struct pl_str next_name(struct pl_api_watch *w)
{
    struct pl_str line;

    if (pl_api_watch_next(w, now_ms, &arena, &line) != PL_WATCH_MORE)
        return (struct pl_str){ 0 };
    return pl__tree_get_str(pl__tree_read(&arena, line, NULL), "object.metadata.name");
}

/* Reads whenever it is woken, until there is something; how many times it had to wait. */
static int wait_for(struct pl_api_watch *w, int *wakes, const char *name)
{
    int waits = 0;

    for (; waits < 100; waits++) {
        *wakes = 0;
        struct pl_str got = next_name(w);
        if (got.len) {
            CHECK_STR(got, name);
            return waits;
        }
        if (pl_apiserver_wake_at_ms(server) <= now_ms)
            pl_apiserver_step(server, now_ms);
        if (!*wakes)
            break;
    }
    test_fail(__FILE__, __LINE__, "%s did not come", name);
    return waits;
}

static void test_turns(void)
{
    int wakes = 0, other_wakes = 0;

    make_large();
    step_while_due();
    CASE("a watch that selects little of much lets others go first")
    struct pl_api_watch *w = watch("resourceVersion=4&labelSelector=k%3Dv", &wakes);
    CHECK_INT(next_name(w).len, 0);
    CHECK(pl_apiserver_wake_at_ms(server) <= now_ms);
    struct pl_api_watch *other = watch("fieldSelector=metadata.name%3Dc001", &other_wakes);
    CHECK_INT(wait_for(other, &other_wakes, "c001"), 0);
    wakes = 0;
    pl_apiserver_step(server, now_ms);
    CHECK_INT(wakes, 1);
    wait_for(w, &wakes, "c399");
    CHECK_INT(next_name(w).len, 0);
    step_while_due();
    pl_api_watch_close(w);

    CASE("and so does one whose initial list has nothing for it")
    w = watch("labelSelector=k%3Dv&resourceVersion=0", &wakes);
    CHECK(wait_for(w, &wakes, "c399") > 0);
    CHECK_INT(next_name(w).len, 0);
    step_while_due();
    CHECK_INT(ask("MERGE " CONFIGMAPS "/c000", "{\"metadata\":{\"labels\":{\"k\":\"v\"}}}"), 200);
    CHECK_STR(next_name(w), "c000");
    pl_api_watch_close(w);
    pl_api_watch_close(other);

    CASE("memory of what was passed over is used again")
    CHECK(server->scratch.held_bytes < 2 * 1024 * 1024);
}

/* Revisions of 2 MB: two of them are enough for one turn, and what reading them took is given back. */
static void test_large(void)
{
    static char body[2 * 1024 * 1024 + 64];
    int wakes = 0;

    open_with((struct pl_apiserver_options){ 0 });
    CASE("memory of uncommonly large objects is given back")
    make(CONFIGMAPS, "ConfigMap", "x", "");
    step_while_due();
    for (int i = 0; i < 4; i++) {
        size_t len = (size_t)snprintf(body, sizeof body, "{\"data\":{\"a\":\"%d", i);
        memset(body + len, 'x', sizeof body - len);
        memcpy(body + sizeof body - 4, "\"}}", 4);
        CHECK_INT(ask("MERGE " CONFIGMAPS "/x", body), 200);
        pl__arena_release(&arena);
    }
    struct pl_api_watch *w = watch("resourceVersion=4&labelSelector=k%3Dv", &wakes);
    CHECK_INT(next_name(w).len, 0);
    CHECK(pl_apiserver_wake_at_ms(server) <= now_ms);
    CHECK_INT(next_name(w).len, 0);
    step_while_due();
    pl_api_watch_close(w);
    CHECK(server->scratch.held_bytes <= 16 * 1024 * 1024);
}

/* --- what the query says ------------------------------------------------------------------------- */

static void test_query(void)
{
    static const struct {
        const char *value;
        bool yes;
    } booleans[] = {
        { "true", true },   { "1", true },      { "yes", true },    { "no", true }, { "", true },
        { "false", false }, { "False", false }, { "FALSE", false }, { "0", false },
    };
    int wakes = 0;

    open_with((struct pl_apiserver_options){ 0 });
    make(CONFIGMAPS, "ConfigMap", "x", "");
    for (size_t i = 0; i < sizeof booleans / sizeof booleans[0]; i++) {
        CASE("watch=%s", booleans[i].value)
        CHECK_INT(ask_of("", "GET " CONFIGMAPS "?watch=%s", booleans[i].value), 200);
        CHECK_INT(answer.watch != NULL, booleans[i].yes);
        pl_api_watch_close(answer.watch);
    }

    CASE("orphanDependents=1")
    CHECK_INT(ask("DELETE " CONFIGMAPS "/x?orphanDependents=1", ""), 200);
    CHECK_STR(field("metadata.finalizers"), "[\"orphan\"]");

    static const char *const far[] = { "9223372036854775807", "9223372036854775808",
                                       "18446744073709551615" };
    for (size_t i = 0; i < sizeof far / sizeof far[0]; i++) {
        CASE("a watch from version %s is told nothing of the past", far[i])
        struct pl_api_watch *w =
            watch(pl__str_format(&arena, "resourceVersion=%s", far[i]).ptr, &wakes);
        CHECK_INT(next_name(w).len, 0);
        pl_api_watch_close(w);
        CHECK_INT(ask_of("", "GET " CONFIGMAPS "?resourceVersion=%s", far[i]), 504);
    }
}

int main(void)
{
    sqlite3_auto_extension((void (*)(void))note_database);
    pl__arena_init(&arena, NULL, 0);
    open_with((struct pl_apiserver_options){ 0 });
    test_plans();
    test_past();
    test_selected();
    test_turns();
    test_large();
    test_query();
    pl_apiserver_close(server);
    pl__arena_release(&arena);
    return test_end("read");
}
