/* tests/unit/apiserver/ask.h - one server of the test program, requests to it and its answers. */
#ifndef PL_TEST_APISERVER_ASK_H
#define PL_TEST_APISERVER_ASK_H

#include "apiserver/apiserver.h"

#include <stdlib.h>

#include "apiserver/tree.h"
#include "test.h"

static struct pl_arena arena;
static struct pl_apiserver *server;
static int64_t now_ms = 1767225600000; /* 2026-01-01T00:00:00Z */
static struct pl_api_answer answer;

static inline void start(const struct pl_apiserver_options *options)
{
    struct pl_error *err = NULL;

    server = pl_apiserver_open(options, &arena, &err);
    if (!server) {
        printf("open: %.*s\n", PL_STR_ARG(pl__error_text(&arena, err)));
        exit(1);
    }
    pl_apiserver_cluster_add(server, PL_STR("management"), now_ms);
}

static inline void restart(void)
{
    pl_apiserver_close(server);
    pl__arena_reset(&arena);
    start(&(struct pl_apiserver_options){ .seed = 7 });
}

/* "PATCH merge /path?query" and a body; the status. */
static inline int ask_as(const char *agent, const char *what, const char *body)
{
    static const struct {
        const char *word, *method, *type;
    } verbs[] = {
        { "GET", "GET", "" },
        { "HEAD", "HEAD", "" },
        { "POST", "POST", "application/json" },
        { "PUT", "PUT", "application/json" },
        { "DELETE", "DELETE", "application/json" },
        { "MERGE", "PATCH", "application/merge-patch+json" },
        { "JSON", "PATCH", "application/json-patch+json" },
        { "STRATEGIC", "PATCH", "application/strategic-merge-patch+json" },
        { "APPLY", "PATCH", "application/apply-patch+yaml" },
    };
    struct pl_api_request r = { .cluster = PL_STR("management"),
                                .user_agent = pl__str(agent),
                                .body = pl__str(body) };
    size_t len = strcspn(what, " ");

    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        if (strlen(verbs[i].word) == len && memcmp(verbs[i].word, what, len) == 0) {
            r.method = pl__str(verbs[i].method);
            r.content_type = pl__str(verbs[i].type);
        }
    what += len + 1;
    len = strcspn(what, "?");
    r.path = (struct pl_str){ what, len };
    r.query = pl__str(what[len] ? what + len + 1 : "");
    pl_apiserver_handle(server, &r, now_ms, &arena, &answer);
    return answer.status;
}

static inline int ask(const char *what, const char *body)
{
    return ask_as("test/1", what, body);
}

static inline struct pl_str field(const char *path)
{
    struct pl_tree *t = pl__tree_at(pl__tree_read(&arena, answer.body, NULL), path);

    return !t ? PL_STR("<none>") : t->type == JSON_STRING ? t->text : pl__tree_text(&arena, t);
}

#define CHECK_FIELD(path, want) CHECK_STR(field(path), want)
#define CHECK_HAS(part)                                                                    \
    do {                                                                                   \
        if (!pl__str_contains(answer.body, pl__str(part)))                                 \
            test_fail(__FILE__, __LINE__, "no %s in %.*s", part, PL_STR_ARG(answer.body)); \
    } while (0)

#endif
