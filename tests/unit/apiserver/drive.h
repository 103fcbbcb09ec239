/* tests/unit/apiserver/drive.h - ask.h, for tests with much of something: made by format, stepped while due. */
#ifndef PL_TEST_APISERVER_DRIVE_H
#define PL_TEST_APISERVER_DRIVE_H

#include "ask.h"

#define CONFIGMAPS "/api/v1/namespaces/default/configmaps"

enum { STEPS_MAX = 20000 };

/* A server in place of the one before; what was in the arena is gone, memory and all. */
static inline void open_with(struct pl_apiserver_options options)
{
    pl_apiserver_close(server);
    pl__arena_release(&arena);
    options.seed = 7;
    start(&options);
}

/* ask() of what a format makes. */
__attribute__((format(printf, 2, 3))) static inline int ask_of(const char *body, const char *format,
                                                               ...)
{
    char what[512];
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return ask(what, body);
}

/* POSTs an object to `path`; `metadata` begins with a comma, if it is not empty. */
static inline void make(const char *path, const char *kind, const char *name, const char *metadata)
{
    struct pl_str body = pl__str_format(&arena,
                                        "{\"apiVersion\":\"v1\",\"kind\":\"%s\",\"metadata\":"
                                        "{\"name\":\"%s\"%s}}",
                                        kind, name, metadata);

    CHECK_INT(ask_of(body.ptr, "POST %s", path), 201);
}

/* Steps as the front does, until nothing is due; how many it took. */
static inline int step_while_due(void)
{
    int steps = 0;

    while (steps < STEPS_MAX && pl_apiserver_wake_at_ms(server) <= now_ms) {
        pl_apiserver_step(server, now_ms);
        steps++;
    }
    CHECK(steps < STEPS_MAX);
    return steps;
}

#endif
