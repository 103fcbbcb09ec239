/* The embedded API server by itself, for the suites that drive it from outside:
 *
 *     apiserver [--listen 127.0.0.1:0] [--db FILE] [--token TOKEN] [--cluster NAME]... [--gate FILE]
 *
 * Prints "http://127.0.0.1:PORT" when it is ready (with a token "https://...", and the certificate behind it)
 * and runs until SIGTERM or SIGINT; SIGUSR1 compacts. Clusters are "management" and those named. The gate's file
 * says what stands before the clusters other than management: words of "cut", "nodes-forbidden", "delay"; no
 * file: nothing.
 *
 * A port-forward to a Pod of kube-system whose Node has a kubelet (status.daemonEndpoints) leads where that one's door
 * says (kubelet/main.go); any other to the same port of this machine. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "apiserver/apiserver.h"
#include "apiserver/tree.h"
#include "cli/front.h"

enum { DOOR_SECONDS_MAX = 2, DOOR_BYTES_MAX = 256 };

struct program {
    struct pl_loop *loop;
    struct pl_front *front;
    struct pl_apiserver *api;
    const char *gate;
    char refusal[DOOR_BYTES_MAX];
};

static void stop(uv_signal_t *signal, int number)
{
    struct program *p = signal->data;

    (void)number;
    pl__loop_stop(p->loop);
}

static void compact(uv_signal_t *signal, int number)
{
    struct program *p = signal->data;

    (void)number;
    pl_apiserver_compact(p->api);
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

/* --- port-forwards ------------------------------------------------------------------------------------ */

static struct pl_tree *get(struct program *p, struct pl_arena *arena, struct pl_api_call call)
{
    struct pl_api_answer answer = { 0 };

    call.verb = PL_API_GET;
    call.group_version = "v1";
    if (pl_apiserver_call(p->api, &call, pl__loop_wall_ms(), arena, &answer) < 0)
        return NULL;
    return pl__tree_read(arena, answer.body, NULL);
}

/* The port of its kubelet's door, and its name; 0: it has none. */
static uint16_t node_of(struct program *p, struct pl_arena *arena, struct pl_str cluster,
                        struct pl_str pod, struct pl_str *node)
{
    *node = pl__tree_get_str(
        get(p, arena,
            (struct pl_api_call){
                .cluster = cluster, .plural = "pods", .ns = PL_STR("kube-system"), .name = pod }),
        "spec.nodeName");
    if (node->len == 0)
        return 0;
    struct pl_tree *found =
        get(p, arena, (struct pl_api_call){ .cluster = cluster, .plural = "nodes", .name = *node });
    int64_t port = pl__tree_get_int(found, "status.daemonEndpoints.kubeletEndpoint.Port", 0);
    return port > 0 && port <= UINT16_MAX ? (uint16_t)port : 0;
}

/* One line there, one line back, without its newline. Waits: it is another process of the same test, which
 * answers at once, or is gone. 0, or -1. */
static int ask(uint16_t door, struct pl_str line, char *answer, size_t answer_size)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(door),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct timeval limit = { .tv_sec = DOOR_SECONDS_MAX };
    size_t size = 0;
    ssize_t got = -1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
        send(fd, line.ptr, line.len, MSG_NOSIGNAL) == (ssize_t)line.len)
        while (size < answer_size - 1 &&
               (got = recv(fd, answer + size, answer_size - 1 - size, 0)) > 0)
            size += (size_t)got;
    close(fd);
    answer[size] = '\0';
    answer[strcspn(answer, "\n")] = '\0';
    return got == 0 && size > 0 ? 0 : -1;
}

static const char *tunnel(void *user, struct pl_str cluster, struct pl_str pod, uint16_t port,
                          struct pl_fleet_target *target)
{
    struct program *p = user;
    struct pl_arena arena;
    struct pl_str node;
    uint64_t told = port;
    const char *why = NULL;

    if (pl__str_equal(pod, PL_STR("unreachable")))
        return "no route to host";
    pl__arena_init(&arena, NULL, 0);
    uint16_t door = node_of(p, &arena, cluster, pod, &node);
    if (door > 0) {
        struct pl_str line = pl__str_format(&arena, "%.*s\n", PL_STR_ARG(node));
        if (ask(door, line, p->refusal, sizeof p->refusal) < 0)
            why = "error dialing backend: the kubelet does not answer";
        else if (!pl__str_to_u64(pl__str(p->refusal), &told) || told == 0 || told > UINT16_MAX)
            why = p->refusal;
    }
    pl__arena_release(&arena);
    snprintf(target->host, sizeof target->host, "127.0.0.1");
    target->port = (uint16_t)told;
    return why;
}

/* --- its life ----------------------------------------------------------------------------------------- */

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
    static const struct {
        int number;
        uv_signal_cb callback;
    } on[] = { { SIGTERM, stop }, { SIGINT, stop }, { SIGUSR1, compact } };
    enum { SIGNALS = sizeof on / sizeof on[0] };
    uv_signal_t signals[SIGNALS];

    for (size_t i = 0; i < SIGNALS; i++) {
        uv_signal_init(pl__loop_uv(p->loop), &signals[i]);
        signals[i].data = p;
        uv_signal_start(&signals[i], on[i].callback, on[i].number);
    }
    pl__loop_run(p->loop);
    for (size_t i = 0; i < SIGNALS; i++)
        uv_close((uv_handle_t *)&signals[i], NULL);
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
    p.api = api;
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
