/* The etcd client against real etcd members that are stopped, killed and filled up, against members that
 * misbehave, and through a port-forward (etcd/servers.py).
 *
 *     etcd_client_test DIRECTORY          where etcd_client_test.sh has put certificates and "ports"
 *     etcd_client_test DIRECTORY few      fewer observations, for Valgrind
 *     etcd_client_test DIRECTORY old      only: is a tunnel that is older than two minutes still good?
 *
 * Members are n1, n2, ... on 127.0.1.1, 127.0.1.2, ..., all on one port. Lines that begin with "remark:"
 * are measured, not asserted. */
#include "test.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/secret.h"
#include "loop/etcd_internal.h"
#include "loop/files.h"

enum { MEMBERS_MAX = 5, WAIT_MS_MAX = 25 * 1000, ASKS_MAX = 32 };

static const char *directory;
static struct pl_arena arena;
static struct pl_loop *loop;
static int client_port;
static uint32_t patience = 1;          /* with times: under Valgrind we are the slow ones */
static pid_t members[MEMBERS_MAX + 1]; /* by number; 0: does not run */

static uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static const char *in_directory(const char *name)
{
    return pl__str_format(&arena, "%s/%s", directory, name).ptr;
}

static struct pl_str file(const char *name)
{
    struct pl_str bytes = { "", 0 };
    struct pl_error *err = NULL;

    if (pl__file_read(&arena, in_directory(name), 1 << 20, &bytes, &err) < 0) {
        fprintf(stderr, "%s\n", pl__error_text(&arena, err).ptr);
        exit(2);
    }
    return bytes;
}

/* --- members ---------------------------------------------------------------------------------------- */

static bool port_is_free(int port)
{
    bool is_free = true;

    for (int i = 1; i <= MEMBERS_MAX && is_free; i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct sockaddr_in address = { .sin_family = AF_INET,
                                       .sin_port = htons((uint16_t)port),
                                       .sin_addr.s_addr = htonl(0x7f000100u + (uint32_t)i) };
        is_free = bind(fd, (struct sockaddr *)&address, sizeof address) == 0;
        close(fd);
    }
    return is_free;
}

/* Below the ports that the kernel gives to outgoing connections. */
static void ports_choose(void)
{
    client_port = 12000 + (int)(getpid() % 8000) * 2;
    for (int tries = 0; tries < 100; tries++, client_port += 2)
        if (port_is_free(client_port) && port_is_free(client_port + 1))
            break;
    FILE *out = fopen(in_directory("etcd-port"), "w");
    assert(out);
    fprintf(out, "%d", client_port);
    fclose(out);
}

static void pid_note(pid_t pid)
{
    FILE *out = fopen(in_directory("pids"), "a");

    assert(out);
    fprintf(out, "%d\n", (int)pid);
    fclose(out);
}

static void member_exec(int i, const char *cluster, const char *state, const char *quota)
{
    char client[64], peer[64], name[8], data[16], cert[16], key[16], log[16];

    snprintf(name, sizeof name, "n%d", i);
    snprintf(data, sizeof data, "data-%d", i);
    snprintf(cert, sizeof cert, "n%d.crt", i);
    snprintf(key, sizeof key, "n%d.key", i);
    snprintf(log, sizeof log, "etcd-%d.log", i);
    snprintf(client, sizeof client, "https://127.0.1.%d:%d", i, client_port);
    snprintf(peer, sizeof peer, "https://127.0.1.%d:%d", i, client_port + 1);
    int out = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(out, 1);
    dup2(out, 2);
    execlp("etcd", "etcd", "--name", name, "--data-dir", data, "--listen-client-urls", client,
           "--advertise-client-urls", client, "--listen-peer-urls", peer,
           "--initial-advertise-peer-urls", peer, "--initial-cluster", cluster,
           "--initial-cluster-state", state, "--initial-cluster-token", strrchr(directory, '/') + 1,
           "--cert-file", cert, "--key-file", key, "--trusted-ca-file", "ca.crt",
           "--client-cert-auth", "--peer-cert-file", cert, "--peer-key-file", key,
           "--peer-trusted-ca-file", "ca.crt", "--peer-client-cert-auth", "--heartbeat-interval",
           "50", "--election-timeout", "500", "--quota-backend-bytes", quota, "--logger", "zap",
           (char *)NULL);
    _exit(127);
}

static void member_start(int i, const char *cluster, const char *state, const char *quota)
{
    pid_t pid = fork();

    assert(pid >= 0);
    if (pid == 0) {
        if (chdir(directory) == 0)
            member_exec(i, cluster, state, quota);
        _exit(126);
    }
    members[i] = pid;
    pid_note(pid);
}

/* "n1=https://127.0.1.1:PEER,n2=..." */
static const char *cluster_of(int first, int last)
{
    struct pl_buf text;

    pl__buf_init(&text, &arena, 4096);
    for (int i = first; i <= last; i++)
        pl__buf_printf(&text, "%sn%d=https://127.0.1.%d:%d", i > first ? "," : "", i, i,
                       client_port + 1);
    return pl__buf_str(&text).ptr;
}

static void member_kill(int i)
{
    if (!members[i])
        return;
    kill(members[i], SIGKILL);
    waitpid(members[i], NULL, 0);
    members[i] = 0;
}

/* Threads stop one after the other: until all have, it may still answer. */
static void member_stop(int i)
{
    kill(members[i], SIGSTOP);
    waitpid(members[i], NULL, WUNTRACED);
}

/* One that was removed ends by itself. */
static bool member_ends(int i, uint64_t within_ms)
{
    for (uint64_t until = now_ms() + within_ms; now_ms() < until; usleep(20 * 1000)) {
        if (waitpid(members[i], NULL, WNOHANG) == members[i]) {
            members[i] = 0;
            return true;
        }
    }
    return false;
}

/* --- asking ------------------------------------------------------------------------------------------- */

struct member {
    uint64_t id;
    char name[32];
    bool is_learner;
};

/* One request and what came of it. */
struct ask {
    int done_count;
    bool within_send;
    uint64_t id, started_ms, took_ms;
    struct pl_etcd *etcd;
    enum pl_etcd_failure failure;
    int grpc_code;
    char error[1024], node[64], version[32], members_error[512], alarms_error[512],
        status_error[128];
    uint64_t cluster_id, member_id, leader;
    bool is_learner;
    struct member members[8];
    size_t member_count, alarm_count, error_count;
    struct pl_etcd_alarm_info alarm;
    uint32_t again; /* observations that follow this one */
};

static int waiting;

static void text_take(char *room, size_t size, struct pl_str text)
{
    snprintf(room, size, "%.*s", PL_STR_ARG(text));
}

static void ask_take(struct ask *ask, const struct pl_etcd_answer *answer)
{
    ask->failure = answer->failure;
    ask->grpc_code = answer->grpc_code;
    text_take(ask->error, sizeof ask->error, answer->error);
    text_take(ask->node, sizeof ask->node, answer->node);
    text_take(ask->version, sizeof ask->version, answer->version);
    text_take(ask->members_error, sizeof ask->members_error, answer->members_error);
    text_take(ask->alarms_error, sizeof ask->alarms_error, answer->alarms_error);
    ask->cluster_id = answer->cluster_id;
    ask->member_id = answer->member_id;
    ask->leader = answer->leader;
    ask->is_learner = answer->is_learner;
    ask->error_count = answer->error_count;
    if (answer->error_count)
        text_take(ask->status_error, sizeof ask->status_error, answer->errors[0]);
    ask->member_count = answer->member_count;
    for (size_t i = 0; i < answer->member_count && i < 8; i++) {
        ask->members[i].id = answer->members[i].id;
        ask->members[i].is_learner = answer->members[i].is_learner;
        text_take(ask->members[i].name, sizeof ask->members[i].name, answer->members[i].name);
    }
    ask->alarm_count = answer->alarm_count;
    if (answer->alarm_count)
        ask->alarm = answer->alarms[0];
}

static void ask_send(struct ask *ask, struct pl_etcd *etcd, struct pl_etcd_request request);
static struct pl_etcd_endpoint all_three[3];

static void on_done(void *user, const struct pl_etcd_answer *answer)
{
    struct ask *ask = user;

    CHECK(!ask->within_send);
    ask->done_count++;
    ask->took_ms = now_ms() - ask->started_ms;
    ask_take(ask, answer);
    waiting--;
    if (ask->again > 0 && answer->failure == ETCD_OK) {
        uint32_t again = ask->again - 1;
        ask_send(ask, ask->etcd,
                 (struct pl_etcd_request){ .endpoints = all_three, .endpoint_count = 3 });
        ask->again = again;
    }
    if (waiting == 0)
        pl__loop_stop(loop);
}

static void ask_send(struct ask *ask, struct pl_etcd *etcd, struct pl_etcd_request request)
{
    *ask = (struct ask){ .etcd = etcd, .started_ms = now_ms(), .within_send = true };
    request.done = on_done;
    request.user = ask;
    waiting++;
    ask->id = pl__etcd_send(etcd, &request);
    ask->within_send = false;
    CHECK(ask->id != 0);
}

static void too_late(uv_timer_t *timer)
{
    (void)timer;
    pl__loop_stop(loop);
}

static void run_for(uint64_t ms)
{
    uv_timer_t *timer = malloc(sizeof *timer);

    assert(timer);
    uv_timer_init(pl__loop_uv(loop), timer);
    uv_update_time(pl__loop_uv(loop));
    uv_timer_start(timer, too_late, ms, 0);
    pl__loop_run(loop);
    uv_close((uv_handle_t *)timer, (uv_close_cb)(void (*)(void))free);
    uv_run(pl__loop_uv(loop), UV_RUN_NOWAIT);
}

static void run_all(void)
{
    if (waiting > 0)
        run_for(WAIT_MS_MAX);
    if (waiting > 0)
        test_fail(__FILE__, __LINE__, "%d requests without an end", waiting);
    waiting = 0;
}

/* The endpoints "n1", "n2", ... of a text "n2 n1"; every address is 127.0.1.<number>. */
static size_t endpoints_of(const char *text, struct pl_etcd_endpoint *endpoints)
{
    size_t count = 0;

    while (*text) {
        size_t len = strcspn(text, " ");
        struct pl_str node = pl__str_copy(&arena, (struct pl_str){ text, len });
        endpoints[count].node = node;
        endpoints[count++].address = pl__str_format(&arena, "127.0.1.%s", node.ptr + 1);
        text += len + (text[len] == ' ');
    }
    return count;
}

static struct ask ask_for(struct pl_etcd *etcd, const char *nodes, struct pl_etcd_request request)
{
    struct pl_etcd_endpoint endpoints[ETCD_ENDPOINTS_MAX];
    struct ask ask;

    request.endpoint_count = endpoints_of(nodes, endpoints);
    request.endpoints = endpoints;
    ask_send(&ask, etcd, request);
    run_all();
    CHECK_INT(ask.done_count, 1);
    return ask;
}

static struct ask observe(struct pl_etcd *etcd, const char *nodes)
{
    return ask_for(etcd, nodes, (struct pl_etcd_request){ .call = ETCD_OBSERVE });
}

static struct ask change(struct pl_etcd *etcd, const char *nodes, enum pl_etcd_call call,
                         uint64_t id)
{
    return ask_for(etcd, nodes, (struct pl_etcd_request){ .call = call, .member_id = id });
}

static const struct member *member_named(const struct ask *ask, const char *name)
{
    static const struct member nobody;

    for (size_t i = 0; i < ask->member_count; i++)
        if (strcmp(ask->members[i].name, name) == 0)
            return &ask->members[i];
    return &nobody;
}

/* --- clients ------------------------------------------------------------------------------------------ */

static void credentials_give(struct pl_etcd *etcd, const char *ca, const char *key)
{
    struct pl_error *err = NULL;

    if (pl__etcd_credentials(etcd, file(ca), file(key), pl__loop_wall_ms(), &arena, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", pl__error_text(&arena, err).ptr);
}

static struct pl_etcd *client_to(int port, struct pl_etcd_options options, const char *ca,
                                 const char *key)
{
    char direct[64];

    snprintf(direct, sizeof direct, "https://{address}:%d", port);
    options.direct = direct;
    struct pl_etcd *etcd = pl__etcd_open(loop, NULL, &options);
    credentials_give(etcd, ca, key);
    return etcd;
}

static struct pl_etcd *client(struct pl_etcd_options options)
{
    return client_to(client_port, options, "ca.crt", "ca.key");
}

static void turn(void)
{
    for (int i = 0; i < 5; i++)
        uv_run(pl__loop_uv(loop), UV_RUN_NOWAIT);
}

/* --- a healthy cluster ---------------------------------------------------------------------------------- */

static struct ask wait_for_cluster(struct pl_etcd *etcd, const char *nodes, size_t named)
{
    struct ask seen = { 0 };

    for (uint64_t until = now_ms() + 25 * 1000; now_ms() < until; run_for(100)) {
        size_t names = 0;
        seen = observe(etcd, nodes);
        for (size_t i = 0; i < seen.member_count; i++)
            names += seen.members[i].name[0] != '\0';
        if (seen.failure == ETCD_OK && names == named && seen.leader && !seen.alarms_error[0] &&
            !seen.members_error[0])
            return seen;
    }
    test_fail(__FILE__, __LINE__, "no cluster of %zu: %s %s %s", named, seen.error,
              seen.members_error, seen.alarms_error);
    return seen;
}

static void check_healthy(struct pl_etcd *etcd)
{
    CASE("three members")
    struct ask seen = wait_for_cluster(etcd, "n1 n2 n3", 3);
    CHECK_INT(seen.member_count, 3);
    CHECK_INT(seen.alarm_count, 0);
    CHECK_INT(seen.error_count, 0);
    CHECK(strncmp(seen.version, "3.", 2) == 0);
    CHECK(seen.cluster_id && seen.member_id && !seen.is_learner);
    CHECK(seen.members[0].id < seen.members[1].id && seen.members[1].id < seen.members[2].id);
    CHECK(member_named(&seen, seen.node)->id == seen.member_id);

    CASE("the next ones use the same connection")
    struct pl_etcd_counts before = pl__etcd_counts(etcd);
    for (int i = 0; i < 5; i++)
        CHECK_INT(observe(etcd, "n3 n2 n1").failure, ETCD_OK);
    struct pl_etcd_counts after = pl__etcd_counts(etcd);
    CHECK_INT(after.dials, before.dials);
    CHECK_INT(after.observations, before.observations + 5);

    CASE("one that leads elsewhere is not used, and gone afterwards")
    const char *other = strcmp(seen.node, "n3") == 0 ? "n2" : "n3";
    struct ask elsewhere = observe(etcd, other);
    CHECK_STR(pl__str(elsewhere.node), other);
    turn();
    CHECK(etcd->links && !etcd->links->next);

    CASE("several at once")
    struct ask asks[8];
    for (int i = 0; i < 8; i++)
        ask_send(&asks[i], etcd,
                 (struct pl_etcd_request){ .endpoints = all_three, .endpoint_count = 3 });
    run_all();
    for (int i = 0; i < 8; i++) {
        CHECK_INT(asks[i].failure, ETCD_OK);
        CHECK_INT(asks[i].member_count, 3);
    }
}

static void check_ends(void)
{
    struct ask ask, second;

    CASE("idle connections are closed")
    struct pl_etcd *etcd = client((struct pl_etcd_options){ .idle_ms = 100 });
    CHECK_INT(observe(etcd, "n1").failure, ETCD_OK);
    CHECK(etcd->links != NULL);
    run_for(250);
    CHECK(etcd->links == NULL);
    CHECK_INT(observe(etcd, "n1").failure, ETCD_OK);
    CHECK_INT(pl__etcd_counts(etcd).dials, 2);

    CASE("the same credentials change nothing, other ones make a new connection")
    credentials_give(etcd, "ca.crt", "ca.key");
    CHECK_INT(observe(etcd, "n1").failure, ETCD_OK);
    CHECK_INT(pl__etcd_counts(etcd).dials, 2);
    credentials_give(etcd, "both.crt", "ca.key");
    CHECK_INT(observe(etcd, "n1").failure, ETCD_OK);
    CHECK_INT(pl__etcd_counts(etcd).dials, 3);

    CASE("cancelled: one answer, and others go on")
    ask_send(&ask, etcd, (struct pl_etcd_request){ .endpoints = all_three, .endpoint_count = 3 });
    ask_send(&second, etcd,
             (struct pl_etcd_request){ .endpoints = all_three, .endpoint_count = 3 });
    pl__etcd_cancel(etcd, ask.id);
    run_all();
    CHECK_INT(ask.failure, ETCD_CANCELLED);
    CHECK_INT(second.failure, ETCD_OK);

    CASE("closed in the middle of dialling")
    ask_send(&ask, etcd,
             (struct pl_etcd_request){ .endpoints = &all_three[1], .endpoint_count = 1 });
    turn();
    pl__etcd_close(etcd);
    run_all();
    CHECK_INT(ask.failure, ETCD_CANCELLED);
    CHECK_INT(ask.done_count, 1);

    CASE("nobody to ask")
    etcd = client((struct pl_etcd_options){ 0 });
    ask = observe(etcd, "");
    CHECK_INT(ask.failure, ETCD_UNREACHABLE);
    CHECK_STR(pl__str(ask.error), "no Node with an etcd member to connect to");
    pl__etcd_close(etcd);
    turn();
}

/* --- trust ---------------------------------------------------------------------------------------------- */

static void check_trust(void)
{
    struct pl_etcd_options none = { .direct = "https://{address}:1" };

    CASE("no credentials")
    struct pl_etcd *etcd = pl__etcd_open(loop, NULL, &none);
    struct ask ask = observe(etcd, "n1");
    CHECK_INT(ask.failure, ETCD_UNTRUSTED);
    CHECK_STR(pl__str(ask.error), "there are no credentials for etcd");
    pl__etcd_close(etcd);

    CASE("a CA that is not theirs")
    etcd = client_to(client_port, (struct pl_etcd_options){ 0 }, "other.crt", "other.key");
    ask = observe(etcd, "n1 n2 n3");
    CHECK_INT(ask.failure, ETCD_UNTRUSTED);
    CHECK_STR(pl__str(ask.error),
              "the server's certificate is not signed by the cluster's etcd CA");
    CHECK_INT(pl__etcd_counts(etcd).dials, 3);
    pl__etcd_close(etcd);

    CASE("our certificate is not of their CA")
    etcd = client_to(client_port, (struct pl_etcd_options){ 0 }, "both.crt", "other.key");
    ask = observe(etcd, "n1");
    CHECK_INT(ask.failure, ETCD_UNTRUSTED);
    CHECK(strstr(ask.error, "our") != NULL);
    printf("remark: refused client certificate: \"%s\"\n", ask.error);
    pl__etcd_close(etcd);

    CASE("a member that is not who it should be")
    etcd = client((struct pl_etcd_options){ 0 });
    struct pl_etcd_endpoint wrong = { .node = PL_STR("n2"), .address = PL_STR("127.0.1.1") };
    ask_send(&ask, etcd, (struct pl_etcd_request){ .endpoints = &wrong, .endpoint_count = 1 });
    run_all();
    CHECK_INT(ask.failure, ETCD_UNTRUSTED);
    CHECK_STR(pl__str(ask.error), "the server's certificate is not for n2");
    pl__etcd_close(etcd);
    turn();
}

/* --- changes ---------------------------------------------------------------------------------------------- */

static const char *name_of(const struct ask *seen, uint64_t id)
{
    for (size_t i = 0; i < seen->member_count; i++)
        if (seen->members[i].id == id)
            return seen->members[i].name;
    return "";
}

static void check_leadership(struct pl_etcd *etcd)
{
    struct ask seen = observe(etcd, "n1 n2 n3");
    char leader[8], next[8];

    snprintf(leader, sizeof leader, "%s", name_of(&seen, seen.leader));
    snprintf(next, sizeof next, "%s", strcmp(leader, "n1") == 0 ? "n2" : "n1");

    CASE("only the leader moves leadership")
    struct ask moved = change(etcd, next, ETCD_MOVE_LEADER, member_named(&seen, next)->id);
    CHECK_INT(moved.failure, ETCD_REFUSED);
    CHECK_INT(moved.grpc_code, GRPC_FAILED_PRECONDITION);
    CHECK_STR(pl__str(moved.error), "etcdserver: not leader");
    CHECK_STR(pl__str(moved.node), next);

    CASE("leadership moves")
    moved = change(etcd, leader, ETCD_MOVE_LEADER, member_named(&seen, next)->id);
    CHECK_INT(moved.failure, ETCD_OK);
    CHECK_STR(pl__str(moved.error), "");
    seen = observe(etcd, next);
    CHECK_STR(pl__str(name_of(&seen, seen.leader)), next);

    CASE("a member that nobody knows is not removed")
    moved = change(etcd, "n1 n2", ETCD_MEMBER_REMOVE, 42);
    CHECK_INT(moved.failure, ETCD_REFUSED);
    CHECK_STR(pl__str(moved.error), "etcdserver: member not found");
}

/* Connected for five seconds is what etcd wants of everybody before it adds one. */
static struct ask add_learner(struct pl_etcd *etcd)
{
    struct ask added = { 0 };
    struct pl_str url = pl__str_format(&arena, "https://127.0.1.4:%d", client_port + 1);

    for (int tries = 0; tries < 40; tries++) {
        added =
            ask_for(etcd, "n1 n2 n3",
                    (struct pl_etcd_request){ .call = ETCD_MEMBER_ADD_LEARNER, .peer_url = url });
        if (strcmp(added.error, "etcdserver: unhealthy cluster") != 0)
            break;
        run_for(200);
    }
    return added;
}

static struct ask promote(struct pl_etcd *etcd, uint64_t id)
{
    struct ask promoted = { 0 };

    for (int tries = 0; tries < 40; tries++) {
        promoted = change(etcd, "n1 n2 n3", ETCD_MEMBER_PROMOTE, id);
        if (!strstr(promoted.error, "in sync"))
            break;
        run_for(100);
    }
    return promoted;
}

static void check_learner(struct pl_etcd *etcd)
{
    CASE("a learner that has not started has no name")
    struct ask added = add_learner(etcd);
    CHECK_INT(added.failure, ETCD_OK);
    CHECK_STR(pl__str(added.error), "");
    struct ask seen = observe(etcd, "n1 n2 n3");
    CHECK_INT(seen.member_count, 4);
    const struct member *learner = member_named(&seen, "");
    CHECK(learner->id && learner->is_learner);
    uint64_t id = learner->id;

    CASE("a learner that has started")
    member_start(4, cluster_of(1, 4), "existing", "0");
    seen = wait_for_cluster(etcd, "n1 n2 n3", 4);
    CHECK(member_named(&seen, "n4")->is_learner);

    CASE("a learner answers when nobody else does, but not for its members")
    struct pl_etcd *other = client((struct pl_etcd_options){ 0 });
    for (int tries = 0; tries < 50; tries++, run_for(100)) {
        seen = observe(other, "n4");
        if (seen.failure == ETCD_OK)
            break;
    }
    CHECK_INT(seen.failure, ETCD_OK);
    CHECK(seen.is_learner);
    CHECK_STR(pl__str(seen.members_error), "etcdserver: rpc not supported for learner");
    CHECK_STR(pl__str(seen.alarms_error), "etcdserver: rpc not supported for learner");

    CASE("others are preferred to a learner, also to a warm one")
    seen = observe(other, "n4 n1");
    CHECK_STR(pl__str(seen.node), "n1");
    CHECK_INT(seen.member_count, 4);
    CHECK(seen.took_ms < 900 * patience);
    pl__etcd_close(other);
    other = client((struct pl_etcd_options){ 0 });
    seen = observe(other, "n4 n2");
    CHECK_STR(pl__str(seen.node), "n2");
    pl__etcd_close(other);

    CASE("a learner is promoted")
    struct ask promoted = promote(etcd, id);
    CHECK_INT(promoted.failure, ETCD_OK);
    CHECK(!member_named(&promoted, "n4")->is_learner);

    CASE("a member is removed behind our back, and one that is asked for is gone")
    seen = observe(etcd, "n4");
    CHECK_STR(pl__str(seen.node), "n4");
    other = client((struct pl_etcd_options){ 0 });
    struct ask removed = { 0 };
    for (int tries = 0; tries < 40; tries++, run_for(200)) {
        removed = change(other, "n1", ETCD_MEMBER_REMOVE, id);
        if (strcmp(removed.error, "etcdserver: unhealthy cluster") != 0)
            break;
    }
    CHECK_INT(removed.failure, ETCD_OK);
    CHECK_INT(removed.member_count, 3);
    pl__etcd_close(other);
    CHECK(member_ends(4, 8000));
    seen = observe(etcd, "n4 n3");
    CHECK_STR(pl__str(seen.node), "n3");
    CHECK_INT(seen.member_count, 3);
    seen = observe(etcd, "n4");
    CHECK_INT(seen.failure, ETCD_UNREACHABLE);
    CHECK_STR(pl__str(seen.error), "connection refused");
}

/* --- alarms -------------------------------------------------------------------------------------------- */

static void check_full(uint64_t other_cluster_id)
{
    struct pl_etcd *etcd = client((struct pl_etcd_options){ 0 });
    char command[512];

    CASE("a member without space")
    struct ask seen = wait_for_cluster(etcd, "n5", 1);
    CHECK(seen.cluster_id && seen.cluster_id != other_cluster_id);
    snprintf(command, sizeof command,
             "cd %s && for i in 1 2 3; do head -c 40000 /dev/zero | tr '\\0' x | ETCDCTL_API=3 "
             "etcdctl --endpoints=https://127.0.1.5:%d --cacert=ca.crt --cert=n5.crt --key=n5.key "
             "put k >>etcdctl.log 2>&1; done; true",
             directory, client_port);
    /* Its size is what was written to disk, which etcd does ten times a second. */
    for (int tries = 0; tries < 20 && seen.alarm_count == 0; tries++) {
        CHECK_INT(system(command), 0);
        seen = observe(etcd, "n5");
    }
    CHECK_INT(seen.failure, ETCD_OK);
    CHECK_INT(seen.alarm_count, 1);
    CHECK_INT(seen.alarm.alarm, 1);
    CHECK(seen.alarm.member_id == seen.members[0].id);
    CHECK(strstr(seen.status_error, "alarm:NOSPACE") != NULL);
    pl__etcd_close(etcd);
    turn();
    member_kill(5);
}

/* --- members that hang, die, and are too few ------------------------------------------------------------- */

static void check_stopped(struct pl_etcd *etcd)
{
    CASE("the first of three is stopped: a new client finds another after the head start")
    member_stop(1);
    struct pl_etcd *cold = client((struct pl_etcd_options){ 0 });
    struct ask seen = observe(cold, "n1 n2 n3");
    CHECK_STR(pl__str(seen.node), "n2");
    CHECK(seen.took_ms >= 900 && seen.took_ms < 2500 * patience);
    printf("remark: first of three stopped, cold: %d ms\n", (int)seen.took_ms);
    seen = observe(cold, "n1 n2 n3");
    CHECK_STR(pl__str(seen.node), "n2");
    CHECK(seen.took_ms < 1000 * patience);
    pl__etcd_close(cold);

    CASE("stopped and alone")
    cold =
        client((struct pl_etcd_options){ .dial_timeout_ms = 700 * patience, .head_start_ms = 100 });
    seen = observe(cold, "n1");
    CHECK_INT(seen.failure, ETCD_UNREACHABLE);
    CHECK_STR(pl__str(seen.error), "no answer in the TLS handshake");
    CHECK(seen.took_ms >= 600 && seen.took_ms < 1500 * patience);

    CASE("different reasons are told by Node, sorted")
    struct pl_etcd_endpoint mixed[] = {
        { .node = PL_STR("n9"), .address = PL_STR("127.0.1.9") },
        { .node = PL_STR("n1"), .address = PL_STR("127.0.1.1") },
        { .node = PL_STR("n3") },
    };
    ask_send(&seen, cold, (struct pl_etcd_request){ .endpoints = mixed, .endpoint_count = 3 });
    run_all();
    CHECK_INT(seen.failure, ETCD_UNREACHABLE);
    CHECK_STR(
        pl__str(seen.error),
        "n1: no answer in the TLS handshake; n3: the Node has no address; n9: connection refused");
    pl__etcd_close(cold);
    kill(members[1], SIGCONT);

    CASE("the warm one is stopped: another answers after the head start")
    for (int tries = 0; tries < 50; tries++, run_for(50)) {
        seen = observe(etcd, "n2");
        if (seen.failure == ETCD_OK && !seen.alarms_error[0])
            break;
    }
    CHECK_STR(pl__str(seen.node), "n2");
    member_stop(2);
    seen = observe(etcd, "n2 n3 n1");
    CHECK_INT(seen.failure, ETCD_OK);
    CHECK(strcmp(seen.node, "n2") != 0);
    CHECK_INT(seen.member_count, 3);
    CHECK(seen.took_ms < 1900 * patience);
    printf("remark: warm member stopped: %d ms\n", (int)seen.took_ms);

    CASE("a change is not sent to somebody who may be dead")
    kill(members[2], SIGCONT);
    run_for(300);
    CHECK_STR(pl__str(observe(etcd, "n2").node), "n2");
    member_stop(2);
    seen = change(etcd, "n2 n3", ETCD_MEMBER_REMOVE, 42);
    CHECK_INT(seen.failure, ETCD_REFUSED);
    CHECK_STR(pl__str(seen.error), "etcdserver: member not found");
    CHECK_STR(pl__str(seen.node), "n3");
    kill(members[2], SIGCONT);
}

static void check_killed(struct pl_etcd *etcd)
{
    struct ask seen = wait_for_cluster(etcd, "n1 n2 n3", 3);

    CASE("the leader is killed while we are connected to it")
    char leader[8];
    snprintf(leader, sizeof leader, "%s", name_of(&seen, seen.leader));
    seen = observe(etcd, leader);
    CHECK_STR(pl__str(seen.node), leader);
    member_kill(leader[1] - '0');
    seen = observe(etcd, "n1 n2 n3");
    CHECK_INT(seen.failure, ETCD_OK);
    CHECK(strcmp(seen.node, leader) != 0);
    CHECK_INT(seen.member_count, 3);
    CHECK_STR(pl__str(seen.alarms_error), "");
    printf("remark: leader killed, next observation whole after %d ms\n", (int)seen.took_ms);

    CASE("quorum is lost")
    int left = leader[1] == '1' ? 2 : 1;
    for (int i = 1; i <= 3; i++)
        if (i != left)
            member_kill(i);
    run_for(1500); /* until the last one has noticed */
    struct pl_etcd *impatient = client((struct pl_etcd_options){ .call_timeout_ms = 1500 });
    seen = observe(impatient, "n1 n2 n3");
    CHECK_INT(seen.failure, ETCD_OK);
    CHECK_INT(seen.leader, 0);
    CHECK_STR(pl__str(seen.status_error), "etcdserver: no leader");
    CHECK_STR(pl__str(seen.alarms_error), "etcdserver: request timed out");
    CHECK(seen.took_ms < 3000 * patience);
    /* From 3.5 on the list needs quorum, too. */
    if (strncmp(seen.version, "3.4", 3) == 0)
        CHECK_INT(seen.member_count, 3);
    else
        CHECK_STR(pl__str(seen.members_error), "etcdserver: request timed out");

    CASE("quorum is lost: a change may or may not happen")
    seen = change(impatient, "n1 n2 n3", ETCD_MEMBER_REMOVE, member_named(&seen, "n3")->id);
    CHECK(seen.failure == ETCD_TIMEOUT || seen.failure == ETCD_REFUSED);
    printf("remark: removal without quorum: \"%s\" after %d ms\n", seen.error, (int)seen.took_ms);
    CHECK(seen.took_ms < 3000 * patience);
    pl__etcd_close(impatient);

    CASE("all are dead")
    member_kill(left);
    seen = observe(etcd, "n1 n2 n3");
    CHECK_INT(seen.failure, ETCD_UNREACHABLE);
    CHECK_STR(pl__str(seen.error), "connection refused");
    CHECK(seen.took_ms < 500 * patience);
}

/* --- a thousand ----------------------------------------------------------------------------------------- */

/* The sanitizer keeps what was freed. */
#if defined(__SANITIZE_ADDRESS__)
static const bool memory_tells = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
static const bool memory_tells = false;
#else
static const bool memory_tells = true;
#endif
#else
static const bool memory_tells = true;
#endif

static long resident_kib(void)
{
    long pages = 0, resident = 0;
    FILE *in = fopen("/proc/self/statm", "r");

    assert(in);
    if (fscanf(in, "%ld %ld", &pages, &resident) != 2)
        resident = 0;
    fclose(in);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static double cpu_us(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void many(struct pl_etcd *etcd, uint32_t count)
{
    struct ask ask;

    ask_send(&ask, etcd, (struct pl_etcd_request){ .endpoints = all_three, .endpoint_count = 3 });
    ask.again = count - 1;
    run_all();
    CHECK_INT(ask.failure, ETCD_OK);
}

static void check_many(struct pl_etcd *etcd, const char *how, uint32_t count)
{
    CASE("%u observations %s: nothing grows", count, how)
    many(etcd, count / 5 + 1);
    CHECK(etcd->warm != NULL);
    if (!etcd->warm)
        return;
    struct pl_stream_counts stream_before = pl__stream_counts(etcd->warm->stream);
    uint64_t dials = pl__etcd_counts(etcd).dials, started_ms = now_ms();
    long before_kib = resident_kib();
    double before_us = cpu_us();
    many(etcd, count);
    double spent_us = cpu_us() - before_us;
    struct pl_stream_counts stream = pl__stream_counts(etcd->warm->stream);
    CHECK_INT(pl__etcd_counts(etcd).dials, dials);
    if (memory_tells && count >= 1000)
        CHECK(resident_kib() - before_kib < 256);
    printf("remark: warm observation %s: %.0f us of CPU, %.2f writes and %.2f reads, %.0f bytes "
           "out and %.0f in, "
           "%.2f ms; RSS %ld -> %ld KiB over %u\n",
           how, spent_us / count, (double)(stream.writes - stream_before.writes) / count,
           (double)(stream.reads - stream_before.reads) / count,
           (double)(stream.bytes_out - stream_before.bytes_out) / count,
           (double)(stream.bytes_in - stream_before.bytes_in) / count,
           (double)(now_ms() - started_ms) / count, before_kib, resident_kib(), count);
}

/* --- servers that misbehave ------------------------------------------------------------------------------ */

static int port_of(const char *name)
{
    struct pl_str ports = file("ports");
    const char *found = strstr(ports.ptr, pl__str_format(&arena, "%s ", name).ptr);

    return found ? (int)strtol(found + strlen(name), NULL, 10) : 0;
}

struct hostile {
    const char *name;
    enum pl_etcd_failure failure;
    const char *error; /* part of it */
};

static const struct hostile hostiles[] = {
    { "garbage", ETCD_CUT, "" },
    { "huge_message", ETCD_CUT, "" },
    { "endless_message", ETCD_CUT, "" },
    { "endless_headers", ETCD_CUT, "" },
    { "many_headers", ETCD_CUT, "" },
    { "wrong_type", ETCD_CUT, "" },
    { "half_closed", ETCD_CUT, "" },
    { "bad_protobuf", ETCD_CUT, "Status reply" },
    { "goodbye", ETCD_CUT, "" },
    { "reset", ETCD_CUT, "" },
    { "drip", ETCD_TIMEOUT, "no answer to Status" },
    { "hang_tls", ETCD_TIMEOUT, "no answer to Status" },
    { "hang_tcp", ETCD_UNREACHABLE, "no answer in the TLS handshake" },
    { "no_alpn", ETCD_UNREACHABLE, "HTTP/2" },
    { "plain", ETCD_UNREACHABLE, "TLS" },
    { "at_once", ETCD_UNREACHABLE, "" },
    { "wrong_ca", ETCD_UNTRUSTED, "not signed by the cluster's etcd CA" },
};
enum { HOSTILE_COUNT = sizeof hostiles / sizeof hostiles[0] };

static void check_hostile(void)
{
    struct pl_etcd_endpoint endpoint = { .node = PL_STR("n1"), .address = PL_STR("127.0.0.1") };
    struct pl_etcd *clients[HOSTILE_COUNT];
    struct ask asks[HOSTILE_COUNT];

    for (size_t i = 0; i < HOSTILE_COUNT; i++) {
        struct pl_etcd_options options = { .dial_timeout_ms = 2000 * patience };
        clients[i] = client_to(port_of(hostiles[i].name), options, "ca.crt", "ca.key");
        ask_send(&asks[i], clients[i],
                 (struct pl_etcd_request){ .endpoints = &endpoint, .endpoint_count = 1 });
    }
    run_all();
    for (size_t i = 0; i < HOSTILE_COUNT; i++) {
        CASE("hostile: %s", hostiles[i].name)
        printf("remark: %s: %d, \"%s\" after %d ms\n", hostiles[i].name, asks[i].failure,
               asks[i].error, (int)asks[i].took_ms);
        CHECK_INT(asks[i].done_count, 1);
        CHECK_INT(asks[i].failure, hostiles[i].failure);
        CHECK(asks[i].error[0] != '\0');
        if (!strstr(asks[i].error, hostiles[i].error))
            test_fail(__FILE__, __LINE__, "\"%s\" does not say \"%s\"", asks[i].error,
                      hostiles[i].error);
        CHECK(asks[i].took_ms < 3500 * patience);
        pl__etcd_close(clients[i]);
    }
    turn();
}

/* --- the tunnel ---------------------------------------------------------------------------------------- */

static int hops[4][2]; /* by kind: good, bad */

static void on_hop(void *user, const struct pl_etcd_hop *hop)
{
    (void)user;
    hops[hop->kind][hop->ok ? 0 : 1]++;
    CHECK(hop->node.len > 0);
    CHECK(hop->ok == (hop->error.len == 0));
}

static struct pl_kube_config api_config(const char *token)
{
    return (struct pl_kube_config){
        .server = pl__str_format(&arena, "https://127.0.0.1:%d/prefix", port_of("api")),
        .ca_pem = file("api.crt"),
        .token = pl__str(token),
        .as_user = PL_STR("somebody"),
    };
}

static struct pl_kube *api_server(struct pl_kube_config config)
{
    struct pl_kube *kube = NULL;
    struct pl_error *err = NULL;

    if (pl__kube_open(loop, &config, NULL, &arena, &kube, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", pl__error_text(&arena, err).ptr);
    return kube;
}

static struct pl_etcd *tunnel(struct pl_kube *kube, struct pl_etcd_options options)
{
    options.trace = on_hop;
    struct pl_etcd *etcd = pl__etcd_open(loop, kube, &options);

    credentials_give(etcd, "ca.crt", "ca.key");
    return etcd;
}

static void check_tunnel_faults(struct pl_kube *kube)
{
    static const struct {
        const char *node, *error;
        enum pl_etcd_failure failure;
    } rows[] = {
        { "missing", "HTTP 404: pods \"etcd-missing\" not found", ETCD_UNREACHABLE },
        { "unreachable", "HTTP 500: error dialing backend: read tcp 10.0.0.2:10250: i/o timeout",
          ETCD_UNREACHABLE },
        { "no-listener", "nothing listens on the Pod's etcd port", ETCD_UNREACHABLE },
        { "no-listener-at-once", "nothing listens on the Pod's etcd port", ETCD_UNREACHABLE },
        { "text", "port-forward ended: the server sent a frame that is not binary",
          ETCD_UNREACHABLE },
        { "cut", "port-forward ended: the API server cut the connection", ETCD_UNREACHABLE },
        { "hang", "the API server does not answer the port-forward", ETCD_UNREACHABLE },
        { "hang-pod", "no answer in the TLS handshake", ETCD_UNREACHABLE },
        { "Bad/../name", "no Node can have this name", ETCD_UNREACHABLE },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CASE("tunnel: %s", rows[i].node)
        struct pl_etcd *etcd =
            tunnel(kube, (struct pl_etcd_options){ .dial_timeout_ms = 600 * patience });
        struct ask ask = observe(etcd, rows[i].node);
        CHECK_INT(ask.failure, rows[i].failure);
        CHECK_STR(pl__str(ask.error), rows[i].error);
        CHECK(ask.took_ms < 1500 * patience);
        pl__etcd_close(etcd);
    }
    turn();
}

/* One observation over an API server that is reached in some other way. */
static void check_way(struct pl_kube_config config, enum pl_etcd_failure failure, const char *error)
{
    struct pl_kube *kube = api_server(config);
    struct pl_etcd *etcd = tunnel(kube, (struct pl_etcd_options){ .dial_timeout_ms = 3000 });
    struct ask seen = observe(etcd, "n1");

    CHECK_INT(seen.failure, failure);
    if (!strstr(seen.error, error) || (seen.error[0] && !error[0]))
        test_fail(__FILE__, __LINE__, "\"%s\" is not \"%s\"", seen.error, error);
    pl__etcd_close(etcd);
    turn();
    pl__kube_close(kube);
    turn();
}

static void plugin_write(const char *name, const char *script)
{
    FILE *out = fopen(in_directory(name), "w");

    assert(out);
    fprintf(out, "#!/bin/sh\n%s\n", script);
    fchmod(fileno(out), 0700);
    fclose(out);
}

static void check_ways(void)
{
    struct pl_kube_config config = api_config("correct-horse");

    CASE("tunnel: through a proxy")
    config.proxy_url = pl__str_format(&arena, "http://127.0.0.1:%d", port_of("proxy"));
    check_way(config, ETCD_OK, "");

    CASE("tunnel: through a proxy that is not there")
    config.proxy_url = PL_STR("http://127.0.0.1:1");
    check_way(config, ETCD_UNREACHABLE, "connection refused");

    CASE("tunnel: tls-server-name")
    config = api_config("correct-horse");
    config.tls_server_name = PL_STR("localhost");
    check_way(config, ETCD_OK, "");
    config.tls_server_name = PL_STR("elsewhere");
    check_way(config, ETCD_UNREACHABLE, "is not for elsewhere");

    CASE("tunnel: an API server of another CA")
    config = api_config("correct-horse");
    config.ca_pem = file("other.crt");
    check_way(config, ETCD_UNREACHABLE, "is not signed by the given CA");

    CASE("tunnel: nobody listens")
    config = api_config("correct-horse");
    config.server = PL_STR("https://127.0.0.1:1");
    check_way(config, ETCD_UNREACHABLE, "connect to 127.0.0.1:1: connection refused");

    CASE("tunnel: a token from a plugin that takes its time")
    plugin_write("plugin",
                 "sleep 0.2; echo '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":"
                 "\"ExecCredential\",\"status\":{\"token\":\"correct-horse\"}}'");
    config = api_config("");
    config.exec.present = true;
    config.exec.command = pl__str(in_directory("plugin"));
    config.exec.api_version = PL_STR("client.authentication.k8s.io/v1");
    config.exec.interactive_mode = PL_STR("Never");
    check_way(config, ETCD_OK, "");

    CASE("tunnel: a plugin that fails")
    plugin_write("plugin", "exit 3");
    check_way(config, ETCD_UNREACHABLE, "credential plugin");

    CASE("tunnel: a plugin that hangs")
    plugin_write("plugin", "exec sleep 20");
    check_way(config, ETCD_UNREACHABLE, "no credentials for 127.0.0.1");
}

static void check_tunnel(uint32_t count)
{
    struct pl_kube *kube = api_server(api_config("correct-horse"));

    CASE("through the tunnel")
    struct pl_etcd *etcd = tunnel(kube, (struct pl_etcd_options){ 0 });
    struct ask seen = observe(etcd, "n1 n2 n3");
    CHECK_INT(seen.failure, ETCD_OK);
    CHECK_STR(pl__str(seen.error), "");
    CHECK_STR(pl__str(seen.node), "n1");
    CHECK_INT(seen.member_count, 3);
    for (int kind = ETCD_HOP_CONNECT; kind <= ETCD_HOP_GRPC; kind++) {
        CHECK_INT(hops[kind][0], 1);
        CHECK_INT(hops[kind][1], 0);
    }
    check_many(etcd, "through the tunnel", count);

    CASE("one that cannot be tunnelled to does not keep us from the next")
    seen = observe(etcd, "missing n2");
    CHECK_STR(pl__str(seen.node), "n2");
    CHECK(seen.took_ms < 900 * patience);
    seen = observe(etcd, "hang n3");
    CHECK_STR(pl__str(seen.node), "n3");
    CHECK(hops[ETCD_HOP_UPGRADE][1] >= 1);
    pl__etcd_close(etcd);
    check_tunnel_faults(kube);

    CASE("tunnel: a certificate for localhost will do")
    etcd = tunnel(kube, (struct pl_etcd_options){ 0 });
    seen = observe(etcd, "x1");
    CHECK_INT(seen.failure, ETCD_OK);
    CHECK_STR(pl__str(seen.node), "x1");
    pl__etcd_close(etcd);
    turn();
    pl__kube_close(kube);
    check_ways();

    CASE("tunnel: a token that is not good")
    kube = api_server(api_config("wrong"));
    etcd = tunnel(kube, (struct pl_etcd_options){ 0 });
    seen = observe(etcd, "n1 n2");
    CHECK_INT(seen.failure, ETCD_UNREACHABLE);
    CHECK_STR(pl__str(seen.error), "HTTP 401: Unauthorized");
    pl__etcd_close(etcd);
    turn();
    pl__kube_close(kube);
    turn();
}

static int refused;

static void on_refused(void *user, const struct pl_kube_answer *answer)
{
    (void)user;
    refused = answer->status;
}

/* libcurl closes connections that it takes for idle when they are 118 s old: see stream.h. */
static void check_old_tunnel(void)
{
    struct pl_kube *kube = api_server(api_config("correct-horse"));
    struct pl_etcd *old = tunnel(kube, (struct pl_etcd_options){ .idle_ms = 600 * 1000 });
    struct pl_etcd *young = tunnel(kube, (struct pl_etcd_options){ 0 });

    CASE("a tunnel that is older than two minutes")
    CHECK_INT(observe(old, "n1").failure, ETCD_OK);
    run_for(125 * 1000);
    /* New connections beside it: another tunnel, and a request that the server turns down. */
    CHECK_INT(observe(young, "n2").failure, ETCD_OK);
    run_for(1500);
    pl__kube_send(kube, &(struct pl_kube_request){ .path = "/version", .done = on_refused });
    run_for(1500);
    CHECK_INT(refused, 400);
    CHECK_INT(observe(old, "n1").failure, ETCD_OK);
    CHECK_INT(pl__etcd_counts(old).dials, 1);
    pl__etcd_close(old);
    pl__etcd_close(young);
    turn();
    pl__kube_close(kube);
}

/* --- templates --------------------------------------------------------------------------------------------- */

static void check_templates(void)
{
    static const struct {
        const char *direct, *error; /* "": good */
    } rows[] = {
        { "https://{address}:2379", "" },
        { "https://[{address}]:2379", "" },
        { "https://etcd.{node}.example.com:12379/", "" },
        { "http://{address}:2379", "it must begin with https://" },
        { "https://{address}", "it must end with a port, such as :2379" },
        { "https://{address}:0", "it must end with a port, such as :2379" },
        { "https://{address}:70000", "it must end with a port, such as :2379" },
        { "https://{ip}:2379", "only {node} and {address} can be filled in" },
        { "https://:2379", "there is no host in it" },
        { "https://a b:2379", "there is no host in it" },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pl_error *err = NULL;
        CASE("template %s", rows[i].direct)
        int result = pl__etcd_template_check(&arena, rows[i].direct, &err);
        CHECK_INT(result, rows[i].error[0] ? -1 : 0);
        if (err)
            CHECK(pl__str_ends_with(pl__error_text(&arena, err), pl__str(rows[i].error)));
    }
}

int main(int argc, char **argv)
{
    const char *mode = argc > 2 ? argv[2] : "";
    uint32_t count = strcmp(mode, "few") == 0 ? 30 : 1000;

    if (argc < 2)
        return 2;
    directory = argv[1];
    patience = strcmp(mode, "few") == 0 ? 4 : 1;
    pl__arena_init(&arena, &pl__secret_allocator, 0);
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
    loop = pl__loop_new();
    endpoints_of("n1 n2 n3", all_three);
    ports_choose();
    for (int i = 1; i <= 3; i++)
        member_start(i, cluster_of(1, 3), "new", "0");
    struct pl_etcd *etcd = client((struct pl_etcd_options){ 0 });
    if (strcmp(mode, "old") == 0) {
        wait_for_cluster(etcd, "n1 n2 n3", 3);
        check_old_tunnel();
    } else {
        member_start(5, cluster_of(5, 5), "new", "100000");
        check_templates();
        check_hostile();
        check_healthy(etcd);
        check_full(observe(etcd, "n1").cluster_id);
        check_many(etcd, "directly", count);
        check_ends();
        check_trust();
        check_tunnel(count);
        check_leadership(etcd);
        check_learner(etcd);
        check_stopped(etcd);
        check_killed(etcd);
    }
    CASE("the API server has no complaint about our frames")
    CHECK(access(in_directory("complaints"), F_OK) != 0);
    pl__etcd_close(etcd);
    turn();
    pl__loop_free(loop);
    for (int i = 1; i <= MEMBERS_MAX; i++)
        member_kill(i);
    pl__arena_release(&arena);
    return test_end("integration/etcd_client");
}
