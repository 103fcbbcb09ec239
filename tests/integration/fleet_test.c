/* The fleet with real etcd processes, and made-up API servers: members start, are broken in every way, are
 * replaced, and nothing is left behind.
 *
 *     fleet_test ETCD     the program
 */
#include "test.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base64.h"
#include "fleet/internal.h"
#include "loop/files.h"
#include "unit/fleet/fake_api.h"

enum { WAIT_MS_MAX = 40 * 1000 };

static struct pl_loop *loop;
static struct pl_fleet *fleet;
static struct fake_api fake;
static struct pl_arena arena;
static struct pl_etcd *client; /* as plimsoll has one */
static char directory[64];
static const char *etcd_program;

static void nothing(uv_timer_t *timer)
{
    (void)timer;
}

static bool until(bool (*probe)(void))
{
    uv_timer_t tick;
    uint64_t end_ms;
    bool holds = false;

    uv_update_time(pl__loop_uv(loop));
    end_ms = pl__loop_mono_ms(loop) + WAIT_MS_MAX;
    uv_timer_init(pl__loop_uv(loop), &tick);
    uv_timer_start(&tick, nothing, 20, 20);
    while (!(holds = probe()) && pl__loop_mono_ms(loop) < end_ms) {
        fake_deliver(&fake, fleet);
        uv_run(pl__loop_uv(loop), UV_RUN_ONCE);
    }
    uv_close((uv_handle_t *)&tick, NULL);
    uv_run(pl__loop_uv(loop), UV_RUN_NOWAIT);
    if (!holds)
        printf("the fleet said:\n%s", pl__buf_str(&fake.said).ptr);
    return holds;
}

/* --- asking etcd, as plimsoll would ------------------------------------------------------------------------ */

static struct {
    bool asked, done;
    enum pl_etcd_failure failure;
    size_t members, voters, named, alarms;
    uint64_t leader;
    struct {
        char name[64];
        uint64_t id;
        bool learner;
    } list[8];
} seen;

static void answered(void *user, const struct pl_etcd_answer *answer)
{
    (void)user;
    memset(&seen, 0, sizeof seen);
    seen.done = true;
    seen.failure = answer->failure;
    if (answer->failure == ETCD_OK && answer->members_error.len)
        seen.failure = ETCD_CUT;
    seen.leader = answer->leader;
    seen.alarms = answer->alarm_count;
    seen.members = answer->member_count < 8 ? answer->member_count : 8;
    for (size_t i = 0; i < seen.members; i++) {
        seen.voters += !answer->members[i].is_learner;
        seen.named += answer->members[i].name.len > 0;
        seen.list[i].id = answer->members[i].id;
        seen.list[i].learner = answer->members[i].is_learner;
        pl__name_set(seen.list[i].name, sizeof seen.list[i].name, answer->members[i].name);
    }
}

static const char *asked_cluster = "demo-1", *asked_but, *asked_only;

/* Through every Node that is there but `but`; or through one alone. */
static void ask(enum pl_etcd_call call, uint64_t id, const char *cluster, const char *but)
{
    struct pl_etcd_endpoint endpoints[8];
    size_t count = 0;
    struct fake_object *o;

    for (size_t i = 0; count < 8 && (o = fake_nth(&fake, cluster, "nodes", i)); i++) {
        struct pl_tree *addresses = tree_at(o->tree, "status", "addresses", NULL);
        if ((but && pl__str_equal(o->name, pl__str(but))) ||
            (asked_only && !pl__str_equal(o->name, pl__str(asked_only))))
            continue;
        endpoints[count++] = (struct pl_etcd_endpoint){
            .node = o->name,
            .address = tree_text(tree_get(addresses ? addresses->first : NULL, "address"))
        };
    }
    seen.asked = true;
    seen.done = false;
    pl__etcd_send(client, &(struct pl_etcd_request){ .call = call,
                                                     .endpoints = endpoints,
                                                     .endpoint_count = count,
                                                     .member_id = id,
                                                     .done = answered });
}

static bool has_answer(void)
{
    return seen.done;
}

/* What is observed from now on is not older. */
static void forget(void)
{
    CHECK(until(has_answer));
    memset(&seen, 0, sizeof seen);
}

/* True when an observation satisfies the test; asks again until then. */
static bool observed(bool (*holds)(void))
{
    if (!seen.asked || seen.done) {
        bool good = seen.done && seen.failure == ETCD_OK && holds();
        ask(ETCD_OBSERVE, 0, asked_cluster, asked_but);
        return good;
    }
    return false;
}

static uint64_t removed_id;
static bool removing;
static const char *removed_node;

/* etcd refuses while its links are young. */
static bool removed(void)
{
    if (seen.done && removing && seen.failure == ETCD_OK) {
        removing = false;
        return true;
    }
    if (seen.done) {
        removing = true;
        ask(ETCD_MEMBER_REMOVE, removed_id, "demo-1", removed_node);
    }
    return false;
}

static int member_find(const char *name)
{
    for (size_t i = 0; i < seen.members; i++)
        if (strcmp(seen.list[i].name, name) == 0)
            return (int)i;
    return -1;
}

static struct pl_str secret(const char *name, const char *key)
{
    struct pl_str bytes = { "", 0 };

    pl__base64_decode(&arena,
                      tree_text(tree_at(fake_get(&fake, "", "secrets", name), "data", key, NULL)),
                      &bytes);
    return bytes;
}

static void client_open(const char *secret_name)
{
    char direct[64];
    struct pl_error *err = NULL;

    snprintf(direct, sizeof direct, "https://{address}:%d", (int)pl__fleet_etcd_port(fleet));
    client = pl__etcd_open(loop, NULL,
                           &(struct pl_etcd_options){ .direct = direct,
                                                      .dial_timeout_ms = 2000,
                                                      .call_timeout_ms = 3000,
                                                      .head_start_ms = 300 });
    CHECK_INT(pl__etcd_credentials(client, secret(secret_name, "tls.crt"),
                                   secret(secret_name, "tls.key"), pl__loop_wall_ms(), &arena,
                                   &err),
              0);
    memset(&seen, 0, sizeof seen);
}

/* --- probes ------------------------------------------------------------------------------------------------ */

static bool settled(void)
{
    return pl__fleet_counts(fleet).settled && fake.delivered_count == fake.event_count;
}
static bool three_voters(void)
{
    return seen.members == 3 && seen.voters == 3 && seen.named == 3 && seen.leader &&
           seen.alarms == 0;
}
static bool has_three_voters(void)
{
    return observed(three_voters);
}
static bool etcd_pod(const char *status)
{
    return pl__str_equal(
        fake_condition(fake_get(&fake, "demo-1", "pods", "etcd-demo-1-cp-2"), "Ready", "status"),
        pl__str(status));
}
static bool etcd_pod_down(void)
{
    return etcd_pod("False");
}
static bool etcd_pod_up(void)
{
    return etcd_pod("True");
}
static bool alarm_is_raised(void)
{
    return seen.alarms == 1;
}
static bool full(void)
{
    return observed(alarm_is_raised);
}
static bool second_learns(void)
{
    int i = member_find("demo-1-cp-2");
    return seen.members == 3 && i >= 0 && seen.list[i].learner;
}
static bool demoted(void)
{
    return observed(second_learns);
}
static bool ghost_votes(void)
{
    return seen.voters == 4 && member_find("demo-1-ghost") >= 0;
}
static bool haunted(void)
{
    return observed(ghost_votes);
}
static bool waits_at_hook(void)
{
    return pl__str_equal(
        fake_condition(fake_get(&fake, "", "machines", "demo-1-cp-3"), "Deleting", "reason"),
        PL_STR("WaitingForPreTerminateHook"));
}
static bool fourth_votes(void)
{
    return three_voters() && member_find("demo-1-cp-4") >= 0 && member_find("demo-1-cp-3") < 0;
}
static bool replaced(void)
{
    return fake_get(&fake, "", "machines", "demo-1-cp-4") && settled() && observed(fourth_votes);
}

/* --- the tests ----------------------------------------------------------------------------------------------- */

static void begin(bool shared, uint32_t clusters)
{
    struct pl_fleet_options o = { .directory = directory,
                                  .etcd = etcd_program,
                                  .cluster_count = clusters,
                                  .shared_etcd = shared,
                                  .boot_ms = 50,
                                  .drain_ms = 50,
                                  .silence_ms = 200,
                                  .patience_ms = 200,
                                  .api = fake_interface(&fake),
                                  .said = fake_said,
                                  .said_user = &fake };
    struct pl_error *err = NULL;

    fake_init(&fake);
    loop = pl__loop_new();
    if (pl__fleet_open(loop, &o, &arena, &fleet, &err) < 0) {
        printf("%s\n", pl__error_text(&arena, err).ptr);
        exit(1);
    }
}

static void stopped(void *user)
{
    *(bool *)user = true;
}

static bool folder_is_empty(const char *path)
{
    DIR *entries = opendir(path);
    int count = 0;

    while (entries && readdir(entries))
        count++;
    if (entries)
        closedir(entries);
    return count <= 2;
}

/* Nothing is left: no process, no data, no list of processes. */
static void finish(bool orderly)
{
    struct pl_fleet_target target;
    bool done = false;
    int pids[16], count = 0;
    char path[128];

    for (struct process *p = fleet->processes; p && count < 16; p = p->next)
        pids[count++] = p->pid;
    pl__etcd_close(client);
    if (orderly) {
        pl__fleet_stop(fleet, stopped, &done);
        for (int i = 0; i < 100000 && !done; i++)
            uv_run(pl__loop_uv(loop), UV_RUN_ONCE);
        CHECK(done);
        /* The front goes on for a while, and there is nobody to lead to. */
        CHECK(pl__fleet_tunnel(fleet, PL_STR("demo-1"), PL_STR("etcd-demo-1-cp-2"), 2379, &target));
        CHECK_INT(pl__fleet_counts(fleet).processes, 0);
    }
    pl__fleet_free(fleet);
    pl__loop_free(loop);
    CHECK(count >= 3);
    for (int i = 0; i < count; i++)
        CHECK_INT(kill(pids[i], 0), -1);
    snprintf(path, sizeof path, "%s/etcd", directory);
    CHECK(folder_is_empty(path));
    fake_release(&fake);
}

static bool mute(void)
{
    if (!seen.asked || seen.done) {
        bool good = seen.done && (seen.failure == ETCD_TIMEOUT || seen.failure == ETCD_UNREACHABLE);
        ask(ETCD_OBSERVE, 0, "demo-1", NULL);
        return good;
    }
    return false;
}

/* The second one takes connections and says nothing; the others answer. */
static void test_mute(void)
{
    asked_only = "demo-1-cp-2";
    CHECK(until(mute));
    asked_only = NULL;
    forget();
    CHECK(until(has_three_voters));
}

static void test_answers(void)
{
    forget();
    asked_only = "demo-1-cp-2";
    CHECK(until(has_three_voters));
    asked_only = NULL;
    forget();
}

static void test_faults(void)
{
    CASE("etcd is killed, its Pod says so, and it comes back")
    fake_fault(&fake, "demo-1", "pods", "etcd-demo-1-cp-2", "etcd-kill");
    CHECK(until(etcd_pod_down));
    fake_fault(&fake, "demo-1", "pods", "etcd-demo-1-cp-2", NULL);
    CHECK(until(etcd_pod_up));
    CHECK(until(has_three_voters));

    CASE("etcd is stopped: it hangs, and goes on")
    asked_but = NULL;
    fake_fault(&fake, "", "machines", "demo-1-cp-2", "etcd-stop");
    test_mute();
    CHECK(until(etcd_pod_down)); /* not ready: its probe hangs */
    fake_fault(&fake, "", "machines", "demo-1-cp-2", NULL);
    test_answers();
    CHECK(until(etcd_pod_up));

    CASE("a machine is cut off, its etcd with it")
    fake_fault(&fake, "", "machines", "demo-1-cp-2", "network-cut");
    test_mute();
    fake_fault(&fake, "", "machines", "demo-1-cp-2", NULL);
    test_answers();

    CASE("NOSPACE is raised and cleared")
    fake_fault(&fake, "demo-1", "nodes", "demo-1-cp-2", "etcd-nospace");
    CHECK(until(full));
    fake_fault(&fake, "demo-1", "nodes", "demo-1-cp-2", NULL);
    CHECK(until(has_three_voters));

    CASE("a member becomes a learner, and votes again")
    fake_fault(&fake, "", "machines", "demo-1-cp-2", "etcd-learner");
    CHECK(until(demoted));
    fake_fault(&fake, "", "machines", "demo-1-cp-2", NULL);
    CHECK(until(has_three_voters));

    CASE("a ghost joins and is removed")
    fake_fault(&fake, "", "clusters", "demo-1", "etcd-ghost");
    CHECK(until(haunted));
    fake_fault(&fake, "", "clusters", "demo-1", NULL);
    CHECK(until(has_three_voters));
}

static bool untrusted(void)
{
    if (!seen.asked || seen.done) {
        bool good = seen.done && seen.failure == ETCD_UNTRUSTED;
        ask(ETCD_OBSERVE, 0, "demo-1", NULL);
        return good;
    }
    return false;
}

static void test_bad_certificate(void)
{
    CASE("certificates of a stranger are not trusted; its own are")
    fake_fault(&fake, "", "clusters", "demo-1", "bad-certificate");
    CHECK(until(untrusted));
    fake_fault(&fake, "", "clusters", "demo-1", NULL);
    CHECK(until(has_three_voters));
}

static void test_tunnel(void)
{
    struct pl_fleet_target target;

    CASE("where port-forwards lead")
    CHECK(!pl__fleet_tunnel(fleet, PL_STR("demo-1"), PL_STR("etcd-demo-1-cp-2"), 2379, &target));
    CHECK(pl__str_starts_with(pl__str(target.host), PL_STR("127.")));
    CHECK_INT(target.port, pl__fleet_etcd_port(fleet));
    CHECK(pl__fleet_tunnel(fleet, PL_STR("demo-1"), PL_STR("etcd-demo-1-cp-9"), 2379, &target));
    CHECK(pl__fleet_tunnel(fleet, PL_STR("demo-1"), PL_STR("etcd-demo-1-cp-2"), 22, &target));
    CHECK(pl__fleet_tunnel(fleet, PL_STR("demo-9"), PL_STR("etcd-demo-1-cp-2"), 2379, &target));
}

static void test_replacement(void)
{
    CASE("a Machine leaves as plimsoll lets it leave, and its replacement joins")
    fake_delete(&fake, "", "machines", "demo-1-cp-3");
    CHECK(until(waits_at_hook));
    CHECK(until(has_three_voters));
    CHECK(until(has_answer));
    int i = member_find("demo-1-cp-3");
    CHECK(i >= 0);
    removed_id = i >= 0 ? seen.list[i].id : 0;
    removed_node = "demo-1-cp-3";
    CHECK(until(removed));
    fake_merge(&fake, "", "machines", "demo-1-cp-3",
               "{\"metadata\":{\"annotations\":{\"pre-terminate.delete.hook.machine.cluster.x-k8s."
               "io/kcp-cleanup\":null}}}");
    CHECK(until(replaced));
}

static bool four_voters(void)
{
    return seen.voters == 4 && seen.members == 4 && member_find("demo-1-cp-6") >= 0;
}
static bool sixth_votes(void)
{
    return settled() && observed(four_voters);
}
static bool fifth_joins(void)
{
    const struct cluster *c = fleet->clusters[0];

    for (const struct machine *m = c->machines; m; m = m->next)
        if (strcmp(m->name, "demo-1-cp-5") == 0)
            return m->member && m->member->ensemble->busy;
    return false;
}
static bool fifth_gone(void)
{
    return !fake_get(&fake, "", "machines", "demo-1-cp-5");
}

/* A Machine that goes in the middle of its join leaves nothing that keeps others from joining. */
static void test_interrupted_join(void)
{
    CASE("a join that is broken off")
    fake_merge(&fake, "", "kubeadmcontrolplanes", "demo-1-cp", "{\"spec\":{\"replicas\":4}}");
    CHECK(until(fifth_joins));
    fake_merge(&fake, "", "kubeadmcontrolplanes", "demo-1-cp", "{\"spec\":{\"replicas\":3}}");
    fake_merge(&fake, "", "machines", "demo-1-cp-5",
               "{\"metadata\":{\"annotations\":{\"pre-terminate.delete.hook.machine.cluster.x-k8s."
               "io/kcp-cleanup\":null}}}");
    fake_delete(&fake, "", "machines", "demo-1-cp-5");
    CHECK(until(fifth_gone));
    CHECK(until(has_three_voters));
    fake_merge(&fake, "", "kubeadmcontrolplanes", "demo-1-cp", "{\"spec\":{\"replicas\":4}}");
    CHECK(until(sixth_votes));
}

static bool ghost_is_promoted(void)
{
    const struct ensemble *e = fleet->clusters[0]->etcd;

    return e->busy && e->call == ETCD_MEMBER_PROMOTE && e->target && e->target->is_ghost;
}
static bool ghost_is_forgotten(void)
{
    return fleet->clusters[0]->etcd->errand_count == 0 && observed(four_voters);
}

/* The answer to its promotion must not be taken for that to its removal. */
static void test_interrupted_ghost(void)
{
    CASE("a ghost that goes while it is promoted")
    fake_fault(&fake, "", "clusters", "demo-1", "etcd-ghost");
    CHECK(until(ghost_is_promoted));
    fake_fault(&fake, "", "clusters", "demo-1", NULL);
    fake_deliver(&fake, fleet);
    forget();
    CHECK(until(ghost_is_forgotten));
}

static bool machines_gone(void)
{
    return fake_count(&fake, "", "machines") == 0;
}
static bool processes_gone(void)
{
    return pl__fleet_counts(fleet).processes == 0;
}
static bool settled_again(void)
{
    return settled() && pl__fleet_counts(fleet).machines == 3;
}

static void test_anew(void)
{
    struct pl_fleet_api api = fake_interface(&fake);
    struct pl_str body = { "", 0 };
    struct pl_fleet_call call = { .verb = FLEET_CREATE,
                                  .plural = "kubeadmcontrolplanes",
                                  .cluster = PL_STR("") };
    struct fake_object *o;

    CASE("a control plane that is deleted and made anew has an etcd of its own, with a new "
         "authority")
    struct pl_str old_ca = secret("demo-1-etcd", "tls.crt");
    fake_delete(&fake, "", "kubeadmcontrolplanes", "demo-1-cp");
    for (size_t i = 0; (o = fake_nth(&fake, "", "machines", i)); i++) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", PL_STR_ARG(o->name));
        fake_merge(&fake, "", "machines", name,
                   "{\"metadata\":{\"annotations\":{\"pre-terminate.delete.hook.machine.cluster."
                   "x-k8s.io/kcp-cleanup\":null}}}");
        fake_delete(&fake, "", "machines", name);
    }
    CHECK(until(machines_gone));
    fake_merge(&fake, "", "kubeadmcontrolplanes", "demo-1-cp",
               "{\"metadata\":{\"finalizers\":null}}");
    CHECK(until(processes_gone));
    call.body = PL_STR("{\"kind\":\"KubeadmControlPlane\",\"metadata\":{\"name\":\"demo-1-cp\","
                       "\"namespace\":\"default\",\"labels\":{\"cluster.x-k8s.io/cluster-name\":"
                       "\"demo-1\"}},\"spec\":{\"replicas\":3}}");
    CHECK_INT(api.call(&fake, &call, &arena, &body), 201);
    CHECK(until(settled_again));
    CHECK(!pl__str_equal(old_ca, secret("demo-1-etcd", "tls.crt")));
    pl__etcd_close(client);
    client_open("demo-1-etcd");
    CHECK(until(has_three_voters));
}

static void test_own(void)
{
    begin(false, 1);
    CASE("a control plane with three members")
    CHECK(until(settled));
    CHECK(!pl__fleet_without_etcd(fleet));
    CHECK_INT(pl__fleet_counts(fleet).processes, 3);
    CHECK_INT(fake_count(&fake, "demo-1", "pods"), 12);
    client_open("demo-1-etcd");
    CHECK(until(has_three_voters));
    test_tunnel();
    test_faults();
    test_bad_certificate();
    test_replacement();
    test_interrupted_join();
    test_interrupted_ghost();
    test_anew();
    CASE("it stops, and leaves nothing")
    finish(true);
}

static bool cp_2_is_back(void)
{
    return three_voters() && member_find("cp-2") >= 0;
}
static bool is_back(void)
{
    return observed(cp_2_is_back);
}

static bool shared_pod(const char *status)
{
    return pl__str_equal(
        fake_condition(fake_get(&fake, "demo-3", "pods", "etcd-cp-2"), "Ready", "status"),
        pl__str(status));
}
static bool shared_pod_down(void)
{
    return shared_pod("False");
}
static bool shared_pod_up(void)
{
    return shared_pod("True");
}

/* As long as its key is missing its process ends at once. */
static void test_shared_restart(void)
{
    char key[128], away[160];
    const struct member *m = pl__ensemble_member(fleet->shared, "cp-2");

    CASE("a member of all goes down, and all their Pods say so, and that it is back")
    snprintf(key, sizeof key, "%s/etcd/shared/cp-2/server.key", directory);
    snprintf(away, sizeof away, "%s.away", key);
    CHECK_INT(rename(key, away), 0);
    CHECK(m && m->process);
    if (m && m->process)
        kill(m->process->pid, SIGKILL);
    CHECK(until(shared_pod_down));
    CHECK_INT(rename(away, key), 0);
    CHECK(until(shared_pod_up));
}

static void test_shared(void)
{
    begin(true, 3);
    CASE("three clusters share one etcd")
    CHECK(until(settled));
    CHECK_INT(pl__fleet_counts(fleet).processes, 3);
    CHECK(fake_get(&fake, "demo-1", "nodes", "cp-1") && fake_get(&fake, "demo-3", "nodes", "cp-3"));
    client_open("demo-2-etcd");
    asked_cluster = "demo-3";
    CHECK(until(has_three_voters));

    CASE("a member that somebody removes joins again")
    CHECK(until(has_answer));
    int i = member_find("cp-2");
    CHECK(i >= 0);
    removed_id = i >= 0 ? seen.list[i].id : 0;
    removed_node = "cp-2";
    CHECK(until(removed));
    CHECK(until(is_back));
    CHECK(member_find("cp-2") >= 0 && seen.list[member_find("cp-2")].id != removed_id);

    test_shared_restart();
    CASE("freed without being stopped, it leaves nothing either")
    finish(false);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    etcd_program = argv[1];
    pl__arena_init(&arena, NULL, 0);
    snprintf(directory, sizeof directory, "/tmp/plimsoll-fleet.XXXXXX");
    if (!mkdtemp(directory))
        return 1;
    test_own();
    test_shared();
    pl__folder_remove(directory);
    pl__arena_release(&arena);
    return test_end("fleet with etcd");
}
