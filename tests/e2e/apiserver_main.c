/* The embedded API server by itself, for the suites that drive it from outside:
 *
 *     apiserver [--listen 127.0.0.1:0] [--db FILE] [--token TOKEN] [--cluster NAME]... [--gate FILE]
 *
 * Prints "http://127.0.0.1:PORT" when it is ready (with a token "https://...", and the certificate behind it)
 * and runs until SIGTERM or SIGINT. Clusters are "management" and those named. A port-forward leads to the
 * same port of this machine. The gate's file says what stands before the clusters other than management: words of
 * "cut", "nodes-forbidden", "delay"; no file: nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "apiserver/apiserver.h"
#include "cli/front.h"

struct program {
    struct pl_loop *loop;
    struct pl_front *front;
    const char *gate;
};

static void stop(uv_signal_t *signal, int number)
{
    struct program *p = signal->data;

    (void)number;
    pl__loop_stop(p->loop);
}

static struct pl_fleet_gate gate(void *user, struct pl_str cluster)
{
    struct program *p = user;
    char text[64] = "";
    FILE *file = p->gate ? fopen(p->gate, "r") : NULL;

    (void)cluster;
    if (file) {
        if (!fgets(text, sizeof text, file))
            text[0] = '\0';
        fclose(file);
    }
    return (struct pl_fleet_gate){ .cut = strstr(text, "cut") != NULL,
                                   .nodes_forbidden = strstr(text, "nodes-forbidden") != NULL,
                                   .delay_ms = strstr(text, "delay") ? 300 : 0 };
}

static const char *tunnel(void *user, struct pl_str cluster, struct pl_str pod, uint16_t port,
                          struct pl_fleet_target *target)
{
    (void)user;
    (void)cluster;
    if (pl__str_equal(pod, PL_STR("unreachable")))
        return "no route to host";
    snprintf(target->host, sizeof target->host, "127.0.0.1");
    target->port = port;
    return NULL;
}

static int fail(struct pl_arena *arena, const struct pl_error *err)
{
    fprintf(stderr, "apiserver: %s\n", pl__error_text(arena, err).ptr);
    pl__arena_release(arena);
    return 2;
}

static int usage(void)
{
    fputs("usage: apiserver [--listen ADDRESS] [--db FILE] [--token TOKEN] [--cluster NAME]... "
          "[--gate FILE]\n",
          stderr);
    return 2;
}

static void run(struct program *p)
{
    uv_signal_t terminate, interrupt;

    uv_signal_init(pl__loop_uv(p->loop), &terminate);
    uv_signal_init(pl__loop_uv(p->loop), &interrupt);
    terminate.data = interrupt.data = p;
    uv_signal_start(&terminate, stop, SIGTERM);
    uv_signal_start(&interrupt, stop, SIGINT);
    pl__loop_run(p->loop);
    uv_close((uv_handle_t *)&terminate, NULL);
    uv_close((uv_handle_t *)&interrupt, NULL);
    pl__front_close(p->front);
    pl__loop_free(p->loop);
}

int main(int argc, char **argv)
{
    enum { CLUSTERS_MAX = 64 };
    struct pl_apiserver_options options = { .seed = (uint64_t)time(NULL) };
    const char *listen = "127.0.0.1:0", *token = NULL, *clusters[CLUSTERS_MAX] = { "management" };
    size_t cluster_count = 1;
    struct program p = { 0 };
    struct pl_error *err = NULL;
    struct pl_arena arena;

    for (int i = 1; i < argc; i += 2) {
        const char *value = argv[i + 1]; /* argv ends with NULL */
        if (!value)
            return usage();
        if (strcmp(argv[i], "--listen") == 0)
            listen = value;
        else if (strcmp(argv[i], "--db") == 0)
            options.file = value;
        else if (strcmp(argv[i], "--token") == 0)
            token = value;
        else if (strcmp(argv[i], "--gate") == 0)
            p.gate = value;
        else if (strcmp(argv[i], "--cluster") == 0 && cluster_count < CLUSTERS_MAX)
            clusters[cluster_count++] = value;
        else
            return usage();
    }
    pl__arena_init(&arena, NULL, 0);
    struct pl_apiserver *api = pl_apiserver_open(&options, &arena, &err);
    if (!api)
        return fail(&arena, err);
    for (size_t i = 0; i < cluster_count; i++)
        if (pl_apiserver_cluster_add(api, pl__str(clusters[i]), pl__loop_wall_ms()) < 0)
            return usage();
    p.loop = pl__loop_new();
    struct pl_front_options front = { .api = api,
                                      .management = "management",
                                      .listen = listen,
                                      .token = pl__str(token),
                                      .gate = p.gate ? gate : NULL,
                                      .tunnel = tunnel,
                                      .user = &p };
    if (pl__front_open(p.loop, &front, &arena, &p.front, &err) < 0) {
        pl__loop_free(p.loop);
        pl_apiserver_close(api);
        return fail(&arena, err);
    }
    printf("%s://127.0.0.1:%u\n%.*s", token ? "https" : "http", pl__front_port(p.front),
           PL_STR_ARG(pl__front_certificate(p.front)));
    fflush(stdout);
    run(&p);
    pl__front_free(p.front);
    pl_apiserver_close(api);
    pl__arena_release(&arena);
    return 0;
}
