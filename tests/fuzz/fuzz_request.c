/* Requests to the embedded API server: queries, selectors, continue tokens, bodies of all types, managedFields, watches.
 * A request is a line "METHOD TARGET CONTENT-TYPE" and a body; a byte 0x1e ends it.
 *
 * Holds for all input: nothing is read out of bounds; every answer has a status of HTTP, and a body that is JSON; a failure
 * is a Status; what a watch says is JSON, a line each. All inputs meet the same objects. */
#include <stdlib.h>

#include "apiserver/apiserver.h"
#include "apiserver/tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { REQUESTS_MAX = 8, EVENTS_MAX = 100, NOW_MS = 1000000000 };

static struct pl_apiserver *server;

static void require(bool condition)
{
    if (!condition)
        abort();
}

static struct pl_str cut(struct pl_str *from, char at)
{
    const char *end = from->len ? memchr(from->ptr, at, from->len) : NULL;
    struct pl_str piece = { from->ptr, end ? (size_t)(end - from->ptr) : from->len };

    from->ptr += piece.len + (end != NULL);
    from->len -= piece.len + (end != NULL);
    return piece;
}

static void check_watch(struct pl_arena *a, struct pl_api_watch *watch)
{
    struct pl_str line;

    for (int i = 0; i < EVENTS_MAX; i++) {
        if (pl_api_watch_next(watch, NOW_MS, a, &line) != PL_WATCH_MORE)
            break;
        require(pl__tree_read(a, line, NULL) != NULL);
    }
    pl_api_watch_close(watch);
}

static void check_request(struct pl_arena *a, struct pl_str text)
{
    struct pl_str line = cut(&text, '\n');
    struct pl_api_request request = { .cluster = PL_STR("fuzz"), .body = text };
    struct pl_api_answer answer = { 0 };

    request.method = cut(&line, ' ');
    request.query = cut(&line, ' ');
    request.path = cut(&request.query, '?');
    request.content_type = cut(&line, ' ');
    request.accept = line;
    pl_apiserver_handle(server, &request, NOW_MS, a, &answer);
    require(answer.status >= 200 && answer.status < 600);
    if (answer.watch) {
        check_watch(a, answer.watch);
        return;
    }
    if (!pl__str_starts_with(answer.content_type, PL_STR("application/json")))
        return;
    struct pl_tree *body = pl__tree_read(a, answer.body, NULL);
    require(body != NULL);
    if (answer.status >= 400)
        require(pl__str_equal(pl__tree_get_str(body, "kind"), PL_STR("Status")));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pl_str rest = { (const char *)data, size };
    struct pl_arena a;

    pl__arena_init(&a, NULL, 64 * 1024);
    if (!server)
        server = pl_apiserver_open(&(struct pl_apiserver_options){ .seed = 1, .history_max = 1000 },
                                   &a, NULL);
    require(server && pl_apiserver_cluster_add(server, PL_STR("fuzz"), NOW_MS) == 0);
    for (int i = 0; i < REQUESTS_MAX && rest.len > 0; i++) {
        check_request(&a, cut(&rest, '\x1e'));
        pl_apiserver_step(server, NOW_MS);
    }
    pl_apiserver_cluster_remove(server, PL_STR("fuzz"));
    pl__arena_release(&a);
    return 0;
}
