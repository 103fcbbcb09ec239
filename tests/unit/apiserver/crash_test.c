/* kill -9 at every write to the disk: what was answered is there afterwards, what was not is there whole or not
 * at all. No version is given out twice, and garbage that was to be collected is collected.
 *
 * A child runs a fixed list of requests on a database file and says after each answer which version it is at. It
 * kills itself at its n-th call that changes a file, until it gets through: before every such call,
 * and in the middle of every fourth. SQLite lets one put functions in place of its system calls. */
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apiserver/apiserver.h"
#include "apiserver/tree.h"
#include "test.h"

/* Three for each Machine, then something that the first owns, then the end of the first. */
enum { MACHINES = 3, MAKE_OWNED = 3 * MACHINES, DELETE_OWNER, REQUESTS };
enum { CALLS_MAX = 2000, STEPS_MAX = 50 };

static const int64_t now_ms = 1767225600000;

/* --- dying on time ------------------------------------------------------------------------------- */

static long calls_left; /* below 0: never */
static bool torn;       /* half of the last write gets through */

static bool dies_now(void)
{
    return calls_left >= 0 && calls_left-- == 0;
}

static void die(void)
{
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

static ssize_t deadly_pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
    if (dies_now()) {
        if (torn && pwrite(fd, bytes, size / 2, offset) < 0)
            _exit(9);
        die();
    }
    return pwrite(fd, bytes, size, offset);
}

static ssize_t deadly_write(int fd, const void *bytes, size_t size)
{
    if (dies_now()) {
        if (torn && write(fd, bytes, size / 2) < 0)
            _exit(9);
        die();
    }
    return write(fd, bytes, size);
}

static int deadly_ftruncate(int fd, off_t size)
{
    if (dies_now())
        die();
    return ftruncate(fd, size);
}

static int deadly_unlink(const char *name)
{
    if (dies_now())
        die();
    return unlink(name);
}

static void set_call(const char *name, sqlite3_syscall_ptr call)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);

    vfs->xSetSystemCall(vfs, name, call);
}

static void arm(void)
{
    set_call("pwrite", (sqlite3_syscall_ptr)deadly_pwrite);
    set_call("pwrite64", (sqlite3_syscall_ptr)deadly_pwrite);
    set_call("write", (sqlite3_syscall_ptr)deadly_write);
    set_call("ftruncate", (sqlite3_syscall_ptr)deadly_ftruncate);
    set_call("unlink", (sqlite3_syscall_ptr)deadly_unlink);
}

/* --- the requests -------------------------------------------------------------------------------- */

static struct pl_str uid_of(struct pl_arena *a, struct pl_apiserver *s, const char *machine)
{
    struct pl_api_call c = { .cluster = PL_STR("management"),
                             .verb = PL_API_GET,
                             .group_version = "cluster.x-k8s.io/v1beta2",
                             .plural = "machines",
                             .ns = PL_STR("default"),
                             .name = pl__str(machine) };
    struct pl_api_answer answer;

    pl_apiserver_call(s, &c, now_ms, a, &answer);
    return pl__tree_get_str(pl__tree_read(a, answer.body, NULL), "metadata.uid");
}

static struct pl_api_call owned_call(struct pl_arena *a, enum pl_api_verb verb, struct pl_str uid)
{
    return (struct pl_api_call){
        .cluster = PL_STR("management"),
        .verb = verb,
        .group_version = "v1",
        .plural = "configmaps",
        .ns = PL_STR("default"),
        .name = PL_STR("owned"),
        .body = pl__str_format(
            a,
            "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"owned\","
            "\"ownerReferences\":[{\"apiVersion\":\"cluster.x-k8s.io/v1beta2\",\"kind\":"
            "\"Machine\",\"name\":\"m0\",\"uid\":\"%.*s\"}]}}",
            PL_STR_ARG(uid)),
    };
}

/* Creates, changes, and deletes every second one. */
static struct pl_api_call request_of(struct pl_arena *a, struct pl_apiserver *s, int k)
{
    if (k == MAKE_OWNED)
        return owned_call(a, PL_API_CREATE, uid_of(a, s, "m0"));
    struct pl_api_call c = { .cluster = PL_STR("management"),
                             .group_version = "cluster.x-k8s.io/v1beta2",
                             .plural = "machines",
                             .ns = PL_STR("default") };

    c.name = pl__str_format(a, "m%d", k == DELETE_OWNER ? 0 : k / 3);
    if (k == DELETE_OWNER || (k % 3 == 2 && k / 3 % 2)) {
        c.verb = PL_API_DELETE;
    } else if (k % 3 == 0) {
        c.verb = PL_API_CREATE;
        c.body = pl__str_format(
            a,
            "{\"apiVersion\":\"cluster.x-k8s.io/v1beta2\",\"kind\":\"Machine\","
            "\"metadata\":{\"name\":\"m%d\"},\"spec\":{\"clusterName\":\"new\",\"bootstrap\":{"
            "\"dataSecretName\":\"b\"},"
            "\"infrastructureRef\":{\"apiGroup\":\"infrastructure.cluster.x-k8s.io\","
            "\"kind\":\"DevMachine\",\"name\":\"i\"}}}",
            k / 3);
    } else {
        c.verb = PL_API_MERGE;
        c.body = pl__str_format(a, "{\"spec\":{\"clusterName\":\"v%d\"}}", k);
    }
    return c;
}

/* What is there when the first `count` were carried out: "m0=v2 m2=new ". */
static struct pl_str state_after(struct pl_arena *a, int count)
{
    struct pl_buf b;

    pl__buf_init(&b, a, 4096);
    for (int i = count > DELETE_OWNER ? 1 : 0; i < MACHINES && i * 3 < count; i++) {
        int last = count - 1 < i * 3 + 2 ? count - 1 : i * 3 + 2;
        if (last % 3 == 2 && i % 2)
            continue;
        if (last % 3 == 0)
            pl__buf_printf(&b, "m%d=new ", i);
        else
            pl__buf_printf(&b, "m%d=v%d ", i, last);
    }
    return pl__buf_str(&b);
}

static struct pl_str state_of(struct pl_arena *a, struct pl_apiserver *s)
{
    struct pl_api_call c = request_of(a, s, 0);
    struct pl_api_answer answer;
    struct pl_buf b;

    c.verb = PL_API_LIST;
    pl_apiserver_call(s, &c, now_ms, a, &answer);
    struct pl_tree *items = pl__tree_at(pl__tree_read(a, answer.body, NULL), "items");
    pl__buf_init(&b, a, 4096);
    for (struct pl_tree *i = items ? items->first : NULL; i; i = i->next)
        pl__buf_printf(&b, "%.*s=%.*s ", PL_STR_ARG(pl__tree_get_str(i, "metadata.name")),
                       PL_STR_ARG(pl__tree_get_str(i, "spec.clusterName")));
    return pl__buf_str(&b);
}

static struct pl_apiserver *open_server(struct pl_arena *a, const char *file)
{
    struct pl_error *err = NULL;
    struct pl_apiserver *s = pl_apiserver_open(
        &(struct pl_apiserver_options){ .file = file, .seed = 1, .history_max = 4 }, a, &err);

    if (!s)
        printf("%.*s\n", PL_STR_ARG(pl__error_text(a, err)));
    return s;
}

/* The child: 0 when it got through. */
static int run_requests(const char *file, int said)
{
    struct pl_api_answer answer;
    struct pl_arena a;

    arm();
    pl__arena_init(&a, NULL, 0);
    struct pl_apiserver *s = open_server(&a, file);
    if (!s || pl_apiserver_cluster_add(s, PL_STR("management"), now_ms) < 0)
        return 1;
    for (int k = 0; k < REQUESTS; k++) {
        struct pl_api_call c = request_of(&a, s, k);
        int failed = pl_apiserver_call(s, &c, now_ms, &a, &answer);
        uint64_t version = pl_apiserver_version(s);
        if (failed || write(said, &version, sizeof version) != sizeof version)
            return 1;
        pl_apiserver_step(s, now_ms); /* compaction, too */
        if (c.verb == PL_API_DELETE)
            pl_apiserver_compact(s); /* the newest revision of all is forgotten */
    }
    pl_apiserver_close(s);
    pl__arena_release(&a);
    return 0;
}

/* --- looking afterwards -------------------------------------------------------------------------- */

/* What the first Machine owned is there as long as it is; behind it the collector goes on where it was killed. */
static void check_owned(struct pl_arena *a, struct pl_apiserver *s, int answered)
{
    struct pl_api_call c = owned_call(a, PL_API_GET, PL_STR(""));
    struct pl_api_answer answer;
    bool owner = uid_of(a, s, "m0").len > 0;

    for (int i = 0; i < STEPS_MAX && pl_apiserver_wake_at_ms(s) <= now_ms; i++)
        pl_apiserver_step(s, now_ms);
    pl_apiserver_call(s, &c, now_ms, a, &answer);
    if (answered > MAKE_OWNED && owner)
        CHECK_INT(answer.status, 200);
    if (!owner)
        CHECK_INT(answer.status, 404);
}

/* `version` is the newest that the child told. */
static void check_after(const char *file, int answered, uint64_t version)
{
    struct pl_api_answer answer;
    struct pl_arena a;

    pl__arena_init(&a, NULL, 0);
    struct pl_apiserver *s = open_server(&a, file);
    CHECK(s != NULL);
    if (s) {
        CHECK(pl_apiserver_version(s) >= version);
        CHECK_INT(pl_apiserver_cluster_add(s, PL_STR("management"), now_ms), 0);
        check_owned(&a, s, answered);
        struct pl_str got = state_of(&a, s);
        if (!pl__str_equal(got, state_after(&a, answered)) &&
            !pl__str_equal(got, state_after(&a, answered + 1)))
            test_fail(__FILE__, __LINE__, "%d answered, but there is \"%.*s\"", answered,
                      PL_STR_ARG(got));
        struct pl_api_call c = request_of(&a, s, 3 * REQUESTS);
        CHECK_INT(pl_apiserver_call(s, &c, now_ms, &a, &answer), 0);
        CHECK(pl_apiserver_version(s) > version);
    }
    pl_apiserver_close(s);
    pl__arena_release(&a);
}

/* True when the child got through without meeting its death. */
static bool round_trip(const char *file, long call, bool half)
{
    int pipe_fds[2], status = 0, answered = 0;
    uint64_t version = 0;
    char name[300];

    for (int i = 0; i < 3; i++) {
        static const char *const endings[] = { "", "-wal", "-shm" };
        snprintf(name, sizeof name, "%s%s", file, endings[i]);
        unlink(name);
    }
    if (pipe(pipe_fds) < 0)
        exit(1);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        close(pipe_fds[0]);
        calls_left = call;
        torn = half;
        _exit(run_requests(file, pipe_fds[1]));
    }
    close(pipe_fds[1]);
    while (read(pipe_fds[0], &version, sizeof version) == sizeof version)
        answered++;
    close(pipe_fds[0]);
    waitpid(child, &status, 0);
    bool through = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    CHECK(through || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
    CHECK(!through || answered == REQUESTS);
    check_after(file, answered, version);
    return through;
}

int main(void)
{
    char folder[64] = "/dev/shm/plimsoll-crash-XXXXXX", file[80], name[96];
    long call = 0;

    /* In memory where that can be had: it is about the order of writes, and a disk only makes it slow. */
    if (!mkdtemp(folder)) {
        snprintf(folder, sizeof folder, "/tmp/plimsoll-crash-XXXXXX");
        if (!mkdtemp(folder))
            return 1;
    }
    snprintf(file, sizeof file, "%s/db", folder);
    for (bool through = false; !through && call < CALLS_MAX; call++) {
        CASE("killed before write %ld", call)
        through = round_trip(file, call, false);
        if (!through && call % 4 == 0) {
            CASE("killed in write %ld", call)
            round_trip(file, call, true);
        }
    }
    CASE("there was something to interrupt")
    CHECK(call > REQUESTS && call < CALLS_MAX);

    CASE("two servers on one file")
    struct pl_arena a;
    struct pl_error *err = NULL;
    pl__arena_init(&a, NULL, 0);
    struct pl_apiserver *s = open_server(&a, file);
    CHECK(!pl_apiserver_open(&(struct pl_apiserver_options){ .file = file }, &a, &err));
    CHECK(err && pl__str_contains(err->message, PL_STR("another process has it open")));
    pl_apiserver_close(s);
    pl__arena_release(&a);

    unlink(file);
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%s%s", file, i ? "-wal" : "-shm");
        unlink(name);
    }
    CHECK_INT(rmdir(folder), 0);
    return test_end("crash");
}
