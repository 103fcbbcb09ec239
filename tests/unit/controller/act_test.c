/* Acting: the controller in mode manage against API servers and etcd in memory. What it does is written down
 * as a line for each call that changes something, and compared. */
#include "test.h"

#include <inttypes.h>
#include <stdlib.h>

#include "finish.h"

#define IN_PROGRESS "controlplane.cluster.x-k8s.io/remediation-in-progress"
#define REMEDIATION_FOR "controlplane.cluster.x-k8s.io/remediation-for"
#define HOOK "pre-terminate.delete.hook.machine.cluster.x-k8s.io/kcp-cleanup"
#define GROUP "/apis/infrastructure.cluster.x-k8s.io"

/* The world around: what the fake API server does not know by itself. */
struct world {
    char log[8192]; /* the calls that changed something */
    bool has_finalizer;
    bool infra, config; /* made */
    int infra_status;   /* 0: as it should be */
    int machine_status;
    int templates; /* that the control plane controls */
    int members_removed, leader_moves;
};

static struct world world;

__attribute__((format(printf, 1, 2))) static void did(const char *format, ...)
{
    size_t len = strlen(world.log);
    va_list args;

    va_start(args, format);
    vsnprintf(world.log + len, sizeof world.log - len, format, args);
    va_end(args);
    len = strlen(world.log);
    snprintf(world.log + len, sizeof world.log - len, "\n");
}

__attribute__((format(printf, 2, 3))) static bool answer(char **to, const char *format, ...)
{
    char text[4096];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    *to = strdup(text);
    return true;
}

/* --- metadata ------------------------------------------------------------------------------------- */

struct patch_meta {
    struct pl_str uid, version;
    struct pl_str annotations; /* JSON */
};

static int read_raw(struct pl_json *j, void *destination)
{
    return pl__json_raw(j, destination);
}

static const struct pl_field patch_fields[] = {
    PL_FIELD("metadata.uid", F_STR, struct patch_meta, uid),
    PL_FIELD("metadata.resourceVersion", F_STR, struct patch_meta, version),
    PL_FIELD_CUSTOM("metadata.annotations", struct patch_meta, annotations, read_raw),
};
static PL_SHAPE(patch_shape, struct patch_meta, patch_fields);

/* Sets or removes (null) the one annotation that the patch has. */
static void annotate(struct fake_object *o, struct pl_str patch, struct pl_arena *arena)
{
    struct pl_str old = pl__str_format(arena, "{%s}", o->annotations ? o->annotations : "");
    struct pl_str key, value, name = { 0 };
    struct pl_buf text;
    struct pl_json j;

    pl__buf_init(&text, arena, 65536);
    pl__json_init(&j, patch, PL_STR("patch"), arena, 0, NULL);
    for (pl__json_object(&j); pl__json_key(&j, &key) > 0;) {
        name = pl__str_copy(arena, key);
        pl__json_raw(&j, &value);
        if (!pl__str_equal(value, PL_STR("null")))
            pl__buf_printf(&text, "\"%.*s\":%.*s", PL_STR_ARG(name), PL_STR_ARG(value));
    }
    pl__json_init(&j, old, PL_STR("old"), arena, 0, NULL);
    for (pl__json_object(&j); pl__json_key(&j, &key) > 0;) {
        struct pl_str kept = pl__str_copy(arena, key);
        pl__json_raw(&j, &value);
        if (!pl__str_equal(kept, name))
            pl__buf_printf(&text, "%s\"%.*s\":%.*s", text.len ? "," : "", PL_STR_ARG(kept),
                           PL_STR_ARG(value));
    }
    struct pl_str all = pl__buf_str(&text);
    did("%s %.*s", o->name, PL_STR_ARG(patch));
    fake_set(&o->annotations, "%.*s", PL_STR_ARG(all));
}

static bool merge_patch(struct fake_api *api, struct fake_object *o, const char *body, int *status,
                        char **to)
{
    struct patch_meta p = { .uid = { 0 } };
    struct pl_arena arena;
    struct pl_json j;

    pl__arena_init(&arena, NULL, 0);
    pl__json_init(&j, pl__str(body), PL_STR("patch"), &arena, 0, NULL);
    CHECK(pl__json_decode(&j, &patch_shape, &p) == 0);
    CHECK(p.uid.len && p.version.len);
    bool same = pl__str_equal(p.version, pl__str_format(&arena, "%" PRIu64, o->version)) &&
                pl__str_equal(p.uid, pl__str(o->uid));
    *status = same ? 200 : 409;
    if (same) {
        annotate(o, p.annotations, &arena);
        fake_put(api, o);
    }
    pl__arena_release(&arena);
    if (!same)
        return answer(to, "{\"kind\":\"Status\",\"reason\":\"Conflict\"}");
    return answer(to, "{}");
}

/* The only lists that anything is taken out of: the marks of Machines, the finalizers of the KCP. */
static bool json_patch(struct fake_api *api, struct fake_object *o, const char *body, int *status,
                       char **to)
{
    char version[64];

    snprintf(version, sizeof version, "\"value\":\"%" PRIu64 "\"", o->version);
    CHECK(strstr(body, o->uid) != NULL);
    if (!strstr(body, version)) {
        *status = 422;
        return answer(to, "{}");
    }
    *status = 200;
    if (o->resource == RESOURCE_KCPS) {
        CHECK(strstr(body, "\"/metadata/finalizers/1\"") != NULL);
        world.has_finalizer = false;
        did("%s: finalizer dropped", o->name);
        fake_delete(api, o);
        return answer(to, "{}");
    }
    for (int i = 0; i < o->condition_count; i++) {
        char path[64];
        snprintf(path, sizeof path, "\"remove\",\"path\":\"/status/conditions/%d\"", i);
        if (strstr(body, path) && strcmp(o->conditions[i].type, "OwnerRemediated") == 0) {
            free(o->conditions[i].message);
            memmove(&o->conditions[i], &o->conditions[i + 1],
                    (size_t)(o->condition_count - i - 1) * sizeof o->conditions[0]);
            o->conditions[--o->condition_count] = (struct fake_condition){ .message = NULL };
            did("%s: mark removed", o->name);
            fake_put(api, o);
        }
    }
    return answer(to, "{}");
}

static bool delete (struct fake_api *api, struct fake_object *o, const char *body, int *status,
                    char **to)
{
    char version[64];

    snprintf(version, sizeof version, "\"resourceVersion\":\"%" PRIu64 "\"", o->version);
    CHECK(strstr(body, "preconditions") != NULL);
    if (!strstr(body, o->uid) || !strstr(body, version)) {
        *status = 409;
        return answer(to, "{}");
    }
    did("DELETE %s", o->name);
    *status = 200;
    o->deleted_ms = api->now.wall_ms;
    fake_put(api, o);
    return answer(to, "{}");
}

/* --- infrastructure -------------------------------------------------------------------------------- */

static bool make_machine(struct fake_api *api, const char *body, int *status, char **to)
{
    const char *name = strstr(body, "\"name\":\"") + strlen("\"name\":\"");
    const char *record = strstr(body, "\"" REMEDIATION_FOR "\"");
    char text[128];

    if (world.machine_status) {
        *status = world.machine_status;
        return answer(to, "{\"reason\":\"Forbidden\"}");
    }
    snprintf(text, sizeof text, "%.*s", (int)strcspn(name, "\""), name);
    if (fake_find(api, 0, RESOURCE_MACHINES, "default", text)) {
        *status = 409;
        return answer(to, "{\"reason\":\"AlreadyExists\"}");
    }
    did("POST Machine");
    struct fake_object *o = fake_machine(api, text, "alpha", "alpha-cp", NULL);
    const char *value = record + strlen("\"" REMEDIATION_FOR "\":");
    size_t len = 1;
    while (value[len] != '"' || value[len - 1] == '\\')
        len++;
    fake_set(&o->annotations, "\"" REMEDIATION_FOR "\":%.*s,\"" HOOK "\":\"\"", (int)len + 1,
             value);
    fake_put(api, o);
    *status = 201;
    return answer(to, "{\"metadata\":{\"name\":\"%s\",\"uid\":\"%s\"}}", text, o->uid);
}

static bool make(bool *there, const char *what, int refused, int *status, char **to)
{
    if (refused) {
        *status = refused;
        return answer(to, "{\"reason\":\"Invalid\"}");
    }
    if (*there) {
        *status = 409;
        return answer(to, "{\"reason\":\"AlreadyExists\"}");
    }
    *there = true;
    did("POST %s", what);
    *status = 201;
    return answer(to, "{\"metadata\":{\"uid\":\"uid-%s\"}}", what);
}

static bool existing(struct fake_api *api, bool there, int *status, char **to)
{
    const struct fake_object *kcp = fake_find(api, 0, RESOURCE_KCPS, "default", "alpha-cp");

    *status = there ? 200 : 404;
    return answer(to,
                  "{\"metadata\":{\"name\":\"x\",\"uid\":\"u\",\"ownerReferences\":[{\"kind\":"
                  "\"KubeadmControlPlane\",\"name\":\"alpha-cp\",\"uid\":\"%s\"}]}}",
                  kcp->uid);
}

static bool infrastructure(struct fake_api *api, const struct fake_request *r, int *status,
                           char **to)
{
    const struct fake_object *kcp = fake_find(api, 0, RESOURCE_KCPS, "default", "alpha-cp");
    bool is_post = strcmp(r->method, "POST") == 0;

    *status = 200;
    if (strcmp(r->path, GROUP) == 0)
        return answer(to,
                      "{\"kind\":\"APIGroup\",\"name\":\"infrastructure.cluster.x-k8s.io\","
                      "\"preferredVersion\":{\"groupVersion\":\"infrastructure.cluster.x-k8s.io/"
                      "v1beta1\",\"version\":\"v1beta1\"}}");
    if (strcmp(r->path, GROUP "/v1beta1") == 0)
        return answer(to,
                      "{\"kind\":\"APIResourceList\",\"groupVersion\":\"infrastructure.cluster.x-"
                      "k8s.io/v1beta1\",\"resources\":[{\"name\":\"dockermachines\",\"kind\":"
                      "\"DockerMachine\",\"namespaced\":true},{\"name\":\"dockermachinetemplates\","
                      "\"kind\":\"DockerMachineTemplate\",\"namespaced\":true}]}");
    if (strstr(r->path, "/dockermachinetemplates/own") && strcmp(r->method, "DELETE") == 0) {
        CHECK(strstr(r->body, "uid-of-own") != NULL);
        world.templates--;
        did("DELETE template");
        return answer(to, "{\"kind\":\"Status\",\"status\":\"Success\"}");
    }
    if (strstr(r->path, "/dockermachinetemplates/"))
        return answer(to,
                      "{\"apiVersion\":\"infrastructure.cluster.x-k8s.io/v1beta1\",\"kind\":"
                      "\"DockerMachineTemplate\",\"metadata\":{\"name\":\"alpha\",\"namespace\":"
                      "\"default\"},\"spec\":{\"template\":{\"spec\":{\"x\":1}}}}");
    if (strstr(r->path, "/dockermachinetemplates"))
        return answer(to, "{\"items\":[{\"metadata\":{\"name\":\"foreign\",\"uid\":\"f\"}}%s%s%s]}",
                      world.templates ? ",{\"metadata\":{\"name\":\"own\",\"uid\":\"uid-of-own\","
                                        "\"ownerReferences\":[{\"kind\":\"KubeadmControlPlane\","
                                        "\"name\":\"alpha-cp\",\"controller\":true,\"uid\":\""
                                      : "",
                      world.templates ? kcp->uid : "", world.templates ? "\"}]}}" : "");
    if (strcmp(r->method, "DELETE") == 0) {
        world.infra = false;
        did("DELETE infrastructure");
        return answer(to, "{}");
    }
    if (is_post)
        return make(&world.infra, "infrastructure", world.infra_status, status, to);
    return existing(api, world.infra, status, to);
}

/* --- everything that is not the fake API server's own ---------------------------------------------- */

static bool others(struct fake_api *api, const struct fake_request *r, int *status, char **to)
{
    char path[256], *name, *end;
    struct fake_object *o;

    if (strstr(r->path, "infrastructure.cluster.x-k8s.io"))
        return infrastructure(api, r, status, to);
    if (strstr(r->path, "/kubeadmconfigs")) {
        if (strcmp(r->method, "POST") == 0)
            return make(&world.config, "config", 0, status, to);
        if (strcmp(r->method, "DELETE") == 0) {
            world.config = false;
            did("DELETE config");
            *status = 200;
            return answer(to, "{}");
        }
        return existing(api, world.config, status, to);
    }
    if (world.machine_status == 409 && strcmp(r->method, "GET") == 0 &&
        strstr(r->path, "/machines/alpha-cp-")) {
        *status = 200;
        return answer(to, "{\"metadata\":{\"name\":\"x\",\"uid\":\"theirs\"}}");
    }
    if (strcmp(r->method, "POST") == 0 && strstr(r->path, "/machines"))
        return make_machine(api, r->body, status, to);
    snprintf(path, sizeof path, "%.*s", (int)strcspn(r->path, "?"), r->path);
    if ((end = strstr(path, "/status")))
        *end = '\0';
    name = strrchr(path, '/') + 1;
    o = fake_find(api, 0, strstr(path, "/machines/") ? RESOURCE_MACHINES : RESOURCE_KCPS, "default",
                  name);
    if (!o)
        return false;
    if (strcmp(r->method, "DELETE") == 0)
        return delete (api, o, r->body, status, to);
    if (strcmp(r->method, "PATCH") == 0 && r->body[0] == '[')
        return json_patch(api, o, r->body, status, to);
    if (strcmp(r->method, "PATCH") == 0 && !strstr(r->path, "force=true"))
        return merge_patch(api, o, r->body, status, to);
    if (strcmp(r->method, "PATCH") == 0 && strstr(r->body, "\"OwnerRemediated\"") &&
        !strstr(fake_said(o, "OwnerRemediated"), "MachineDeleting") &&
        strstr(r->body, "\"MachineDeleting\""))
        did("%s: marked", o->name);
    return false;
}

static struct fake_etcd *etcd(struct fake_api *api)
{
    return &api->servers[1].etcd;
}

static int member_at(struct fake_api *api, uint64_t id)
{
    for (int i = 0; i < etcd(api)->member_count; i++) {
        if (etcd(api)->members[i].id == id)
            return i;
    }
    return -1;
}

static void etcd_change(struct fake_api *api, const struct pl_action *a, struct pl_etcd_answer *to)
{
    int at = member_at(api, a->member_id);

    to->leader = etcd(api)->leader;
    if (at < 0) {
        to->failure = ETCD_REFUSED;
        to->error = PL_STR("etcdserver: member not found");
    } else if (a->call == ETCD_MOVE_LEADER) {
        did("leader -> %s (asked %.*s)", etcd(api)->members[at].name,
            PL_STR_ARG(a->endpoints[0].node));
        etcd(api)->leader = a->member_id;
        world.leader_moves++;
    } else {
        struct fake_etcd *e = etcd(api);
        did("remove member %s (asked %.*s)", e->members[at].name, PL_STR_ARG(a->endpoints[0].node));
        CHECK(!pl__str_equal(a->endpoints[0].node, pl__str(e->members[at].name)));
        memmove(&e->members[at], &e->members[at + 1],
                (size_t)(e->member_count - at - 1) * sizeof e->members[0]);
        e->member_count--;
        world.members_removed++;
    }
}

/* --- worlds ---------------------------------------------------------------------------------------- */

static const struct pl_controller_options manage = { .mode = MODE_MANAGE };

static struct fake_object *kcp(struct fake_api *api)
{
    return fake_find(api, 0, RESOURCE_KCPS, "default", "alpha-cp");
}

static struct fake_object *machine(struct fake_api *api, int i)
{
    char name[32];

    snprintf(name, sizeof name, "alpha-m%d", i);
    return fake_find(api, 0, RESOURCE_MACHINES, "default", name);
}

/* Healthy and quiet, with `count` Machines; the member of n0 leads. Nothing is started. */
static struct fake_api *cluster_of(int count, int leader)
{
    struct fake_api *api = fake_new(&(struct fake_options){ .servers = 1, .latency_ms = 2 });

    world = (struct world){ .has_finalizer = true };
    api->others = others;
    api->etcd_change = etcd_change;
    fake_healthy(api, "alpha", 1, count, 0);
    fake_set(&kcp(api)->spec,
             "\"version\":\"v1.34.0\",\"replicas\":%d,\"machineTemplate\":{\"spec\":{"
             "\"infrastructureRef\":{\"apiGroup\":\"infrastructure.cluster.x-k8s.io\",\"kind\":"
             "\"DockerMachineTemplate\",\"name\":\"alpha\"}}},\"kubeadmConfigSpec\":{}",
             count);
    fake_set(&kcp(api)->finalizers, "\"somebody/else\",\"kubeadm.controlplane.cluster.x-k8s.io\"");
    fake_put(api, kcp(api));
    for (int i = 0; i < count; i++) {
        struct fake_member *m = &etcd(api)->members[i];
        m->id = (uint64_t)(i + 1) * 11;
        snprintf(m->name, sizeof m->name, "n%d", i);
        machine(api, i)->created_ms -= (count - i) * 1000000;
        fake_set(&machine(api, i)->annotations, "\"" HOOK "\":\"\"");
        fake_condition_set(api, machine(api, i), "HealthCheckSucceeded", "True", "Ok", "");
        fake_put(api, machine(api, i));
    }
    etcd(api)->member_count = count;
    etcd(api)->leader = etcd(api)->members[leader].id;
    return api;
}

static void mark_unhealthy(struct fake_api *api, int i)
{
    fake_condition_set(api, machine(api, i), "HealthCheckSucceeded", "False", "NodeGone", "gone");
    fake_condition_set(api, machine(api, i), "OwnerRemediated", "False", "WaitingForRemediation",
                       "");
    fake_put(api, machine(api, i));
}

/* What the Machine controller does when a Machine was deleted and is drained. */
static void drained(struct fake_api *api, struct fake_object *m)
{
    fake_condition_set(api, m, "Deleting", "True", "WaitingForPreTerminateHook", "");
    fake_put(api, m);
}

static void gone(struct fake_api *api, struct fake_object *m, const char *node)
{
    static const char *const components[] = { "kube-apiserver", "kube-controller-manager",
                                              "kube-scheduler", "etcd" };
    char pod[96];

    for (int i = 0; i < 4; i++) {
        snprintf(pod, sizeof pod, "%s-%s", components[i], node);
        fake_delete(api, fake_find(api, 1, RESOURCE_PODS, "kube-system", pod));
    }
    fake_delete(api, fake_find(api, 1, RESOURCE_NODES, "", node));
    fake_delete(api, m);
}

static struct fake_object *replacement(struct fake_api *api)
{
    for (struct fake_object *o = api->servers[0].first; o; o = o->next) {
        if (o->resource == RESOURCE_MACHINES && strncmp(o->name, "alpha-cp-", 9) == 0)
            return o;
    }
    return NULL;
}

/* The replacement comes up: a Node, Pods, a member. */
static void joined(struct fake_api *api, struct fake_object *m)
{
    static const char *const components[] = { "kube-apiserver", "kube-controller-manager",
                                              "kube-scheduler", "etcd" };
    struct fake_member *member = &etcd(api)->members[etcd(api)->member_count++];

    fake_node(api, 1, "n9");
    for (int i = 0; i < 4; i++)
        fake_pod(api, 1, components[i], "n9", "Running");
    *member = (struct fake_member){ .id = 999, .name = "n9" };
    fake_set(&m->status, "\"nodeRef\":{\"name\":\"n9\"}");
    fake_condition_set(api, m, "HealthCheckSucceeded", "True", "Ok", "");
    fake_put(api, m);
}

/* --- remediation ------------------------------------------------------------------------------------ */

/* Plays everybody else until nothing happens any more: at most this often. */
static void play(struct fake_api *api, int rounds)
{
    for (int i = 0; i < rounds && !api->stopped; i++) {
        fake_run(api, 40 * 1000);
        for (int k = 0; k < 5; k++) {
            struct fake_object *m = machine(api, k);
            char node[8];
            snprintf(node, sizeof node, "n%d", k);
            if (!m || !m->deleted_ms)
                continue;
            if (strstr(fake_said(m, "Deleting"), "True") == NULL)
                drained(api, m);
            else if (!m->annotations || !strstr(m->annotations, HOOK))
                gone(api, m, node);
        }
        if (replacement(api) && !replacement(api)->status)
            joined(api, replacement(api));
    }
}

static const char remediated[] = "leader -> n2 (asked n0)\n"
                                 "alpha-cp {\"" IN_PROGRESS "\":RECORD}\n"
                                 "alpha-m0: marked\n"
                                 "DELETE alpha-m0\n"
                                 "remove member n0 (asked n2)\n"
                                 "alpha-m0 {\"" HOOK "\":null}\n"
                                 "POST infrastructure\n"
                                 "POST config\n"
                                 "POST Machine\n"
                                 "alpha-cp {\"" IN_PROGRESS "\":null}\n";

/* The log without the record, whose time differs from run to run. */
static struct pl_str plain_log(struct pl_arena *arena)
{
    const char *from = strstr(world.log, "\"{\\\"machine\\\"");
    const char *to = from ? strstr(from, "}\"") : NULL;

    if (!to)
        return pl__str(world.log);
    return pl__str_format(arena, "%.*sRECORD%s", (int)(from - world.log), world.log, to + 2);
}

static void check_remediated(struct fake_api *api)
{
    struct pl_arena arena;

    pl__arena_init(&arena, NULL, 0);
    CHECK_STR(plain_log(&arena), remediated);
    pl__arena_release(&arena);
    CHECK(machine(api, 0) == NULL);
    CHECK(replacement(api) != NULL);
    CHECK(strstr(fake_said(kcp(api), "EtcdClusterHealthy"), "True") != NULL);
    CHECK(strstr(fake_said(kcp(api), "Remediating"), "False NotRemediating") != NULL);
}

static void test_remediation(void)
{
    CASE("three replicas: leadership, record, mark, deletion, member, hook, replacement")
    struct fake_api *api = cluster_of(3, 0);
    fake_start(api, &manage);
    play(api, 1);
    CHECK_STR(pl__str(world.log), "");
    mark_unhealthy(api, 0);
    play(api, 8);
    check_remediated(api);
    CHECK(replacement(api)->annotations &&
          strstr(replacement(api)->annotations, "retryCount\\\":0"));
    fake_finish(api);

    CASE("five replicas, the member does not lead")
    api = cluster_of(5, 1);
    fake_start(api, &manage);
    mark_unhealthy(api, 3);
    play(api, 8);
    CHECK(strstr(world.log, "DELETE alpha-m3\nremove member n3 (asked n1)\n") != NULL);
    CHECK(strstr(world.log, "POST Machine") != NULL);
    CHECK_INT(world.leader_moves, 0);
    fake_finish(api);

    CASE("healthy again before anything was done: the mark goes")
    api = cluster_of(1, 0);
    fake_start(api, &manage);
    mark_unhealthy(api, 0);
    fake_run(api, 20000);
    CHECK(strstr(fake_said(machine(api, 0), "OwnerRemediated"),
                 "False CannotBeRemediated KubeadmControlPlane can't remediate if current "
                 "replicas are less or equal to 1") != NULL);
    fake_condition_set(api, machine(api, 0), "HealthCheckSucceeded", "True", "Ok", "");
    fake_put(api, machine(api, 0));
    fake_run(api, 20000);
    CHECK_STR(pl__str(fake_said(machine(api, 0), "OwnerRemediated")), "-");
    CHECK_STR(pl__str(world.log), "alpha-m0: mark removed\n");
    CHECK(strstr(fake_said(machine(api, 0), "EtcdMemberHealthy"), "True") != NULL);
    fake_finish(api);
}

static void test_refusals(void)
{
    CASE("a second member is down: refused, with the numbers")
    struct fake_api *api = cluster_of(3, 0);
    fake_start(api, &manage);
    fake_pod(api, 1, "etcd", "n1", "Crash");
    etcd(api)->members[1].alarm = 1;
    mark_unhealthy(api, 2);
    fake_run(api, 60000);
    CHECK_STR(pl__str(world.log), "");
    CHECK(strstr(fake_said(machine(api, 2), "OwnerRemediated"),
                 "KubeadmControlPlane can't remediate this Machine because this could result in "
                 "etcd loosing quorum") != NULL);
    uint64_t events = api->events_posted;
    CHECK(events > 0);
    fake_run(api, 300000);
    CHECK_INT(api->events_posted, events);
    fake_finish(api);

    static const struct {
        const char *what;
        struct pl_controller_options options;
        bool paused;
    } idle[] = {
        { "mode status", { .mode = MODE_STATUS }, false },
        { "dry run", { .mode = MODE_MANAGE, .dry_run = true }, false },
        { "another watch filter", { .mode = MODE_MANAGE, .watch_filter = "x" }, false },
        { "paused", { .mode = MODE_MANAGE }, true },
        { "not the leader",
          { .mode = MODE_MANAGE,
            .leader_elect = true,
            .lease_namespace = "default",
            .lease_name = "l",
            .identity = "me" },
          false },
    };
    for (size_t i = 0; i < sizeof idle / sizeof idle[0]; i++) {
        CASE("nothing is done: %s", idle[i].what)
        api = cluster_of(3, 0);
        if (idle[i].paused)
            fake_set(&kcp(api)->annotations, "\"cluster.x-k8s.io/paused\":\"\"");
        fake_put(api, kcp(api));
        fake_start(api, &idle[i].options);
        mark_unhealthy(api, 0);
        fake_run(api, 60000);
        CHECK_STR(pl__str(world.log), "");
        fake_finish(api);
    }
}

/* --- crashes ---------------------------------------------------------------------------------------- */

static void test_crashes(void)
{
    for (uint32_t n = 1; n <= 10; n++) {
        CASE("the controller ends after step %u of a remediation", n)
        struct fake_api *api = cluster_of(3, 0);
        fake_start(api,
                   &(struct pl_controller_options){ .mode = MODE_MANAGE, .stop_after_step = n });
        mark_unhealthy(api, 0);
        play(api, 8);
        CHECK(api->stopped);
        CHECK_INT(fake_crash(api), 0);
        fake_start(api, &manage);
        play(api, 9);
        check_remediated(api);
        fake_finish(api);
    }
}

static void test_faults(void)
{
    CASE("the answer to the deletion is lost")
    struct fake_api *api = cluster_of(3, 0);
    fake_start(api, &manage);
    fake_fail(api,
              (struct fake_fault){
                  .server = 0, .method = "DELETE", .part = "alpha-m0", .count = 1, .after = true });
    mark_unhealthy(api, 0);
    play(api, 8);
    check_remediated(api);
    fake_finish(api);

    CASE("every write fails once before, and once after it took effect")
    api = cluster_of(3, 0);
    fake_start(api, &manage);
    for (int after = 0; after < 2; after++) {
        fake_fail(api, (struct fake_fault){ .method = "PATCH", .count = 2, .after = after });
        fake_fail(api, (struct fake_fault){ .method = "DELETE", .count = 1, .after = after });
        fake_fail(api, (struct fake_fault){
                           .method = "POST", .part = "machine", .count = 1, .after = after });
        fake_fail(api,
                  (struct fake_fault){
                      .method = "POST", .part = "kubeadmconfigs", .count = 1, .after = after });
    }
    mark_unhealthy(api, 0);
    play(api, 14);
    check_remediated(api);
    fake_finish(api);

    CASE("the Machine is refused: what was made for it goes")
    api = cluster_of(3, 0);
    fake_start(api, &manage);
    world.machine_status = 403;
    mark_unhealthy(api, 0);
    play(api, 4);
    CHECK(strstr(world.log,
                 "POST infrastructure\nPOST config\nDELETE config\nDELETE infrastructure\n") !=
          NULL);
    world.machine_status = 0;
    play(api, 5);
    CHECK(replacement(api) != NULL);
    fake_finish(api);

    CASE("a Machine of that name is somebody else's: the other two may be its own, and stay")
    api = cluster_of(3, 0);
    fake_start(api, &manage);
    world.machine_status = 409;
    mark_unhealthy(api, 0);
    play(api, 4);
    CHECK(strstr(world.log, "POST infrastructure\nPOST config\n") != NULL);
    CHECK(strstr(world.log, "DELETE config") == NULL);
    CHECK(strstr(world.log, "DELETE infrastructure") == NULL);
    fake_finish(api);

    CASE("a Machine that the watch has not told of holds everything up")
    api = cluster_of(3, 0);
    fake_start(api, &manage);
    fake_fail(api, (struct fake_fault){
                       .method = "DELETE", .part = "alpha-m0", .status = 500, .count = 3 });
    mark_unhealthy(api, 0);
    fake_run(api, 5000);
    CHECK(strstr(world.log, "marked") != NULL);
    fake_mute(api, 0);
    fake_machine(api, "alpha-m4", "alpha", "alpha-cp", NULL);
    fake_run(api, 30000);
    CHECK(strstr(world.log, "DELETE") == NULL);
    CHECK(api->faults[0].count < 3);
    fake_finish(api);
}

/* --- deletion --------------------------------------------------------------------------------------- */

static void start_deletion(struct fake_api *api)
{
    kcp(api)->deleted_ms = api->now.wall_ms;
    fake_put(api, kcp(api));
}

static const char taken_down[] = "remove member n2 (asked n0)\n"
                                 "DELETE alpha-m2\n"
                                 "alpha-m2 {\"" HOOK "\":null}\n"
                                 "remove member n1 (asked n0)\n"
                                 "DELETE alpha-m1\n"
                                 "alpha-m1 {\"" HOOK "\":null}\n"
                                 "DELETE alpha-m0\n"
                                 "alpha-m0 {\"" HOOK "\":null}\n"
                                 "DELETE template\n"
                                 "alpha-cp: finalizer dropped\n";

static void test_deletion(void)
{
    CASE("tables: one Machine at a time, members first, the last one special, then the templates")
    struct fake_api *api = cluster_of(3, 0);
    world.templates = 1;
    fake_start(api, &manage);
    fake_run(api, 10000);
    start_deletion(api);
    play(api, 12);
    CHECK_STR(pl__str(world.log), taken_down);
    CHECK(kcp(api) == NULL);
    fake_finish(api);

    CASE("tables: an error of the API is said, and taken back")
    api = cluster_of(3, 0);
    fake_start(api, &manage);
    fake_run(api, 10000);
    fake_fail(api, (struct fake_fault){
                       .method = "DELETE", .part = "alpha-m2", .status = 500, .count = 3 });
    start_deletion(api);
    bool said = false;
    for (int i = 0; i < 100; i++) {
        fake_run(api, 100);
        said |= strcmp(fake_said(kcp(api), "Deleting"),
                       "True InternalError Please check controller logs for errors") == 0;
    }
    CHECK(said);
    fake_run(api, 60000);
    CHECK(strstr(fake_said(kcp(api), "Deleting"), "True WaitingForMachineDeletion") != NULL);
    fake_finish(api);

    for (uint32_t n = 1; n <= 9; n++) {
        CASE("tables: the controller ends after step %u", n)
        api = cluster_of(3, 0);
        world.templates = 1;
        start_deletion(api);
        fake_start(api,
                   &(struct pl_controller_options){ .mode = MODE_MANAGE, .stop_after_step = n });
        play(api, 12);
        CHECK(api->stopped);
        CHECK_INT(fake_crash(api), 0);
        fake_start(api, &manage);
        play(api, 14);
        CHECK_STR(pl__str(world.log), taken_down);
        fake_finish(api);
    }

    CASE("cluster-api-1.12: hooks and Machines, all of them")
    api = cluster_of(3, 0);
    world.templates = 1;
    fake_start(api, &(struct pl_controller_options){ .mode = MODE_MANAGE,
                                                     .profile = PL_PROFILE_CLUSTER_API_1_12 });
    start_deletion(api);
    play(api, 5);
    CHECK_STR(pl__str(world.log), "alpha-m0 {\"" HOOK "\":null}\n"
                                  "DELETE alpha-m0\n"
                                  "alpha-m1 {\"" HOOK "\":null}\n"
                                  "DELETE alpha-m1\n"
                                  "alpha-m2 {\"" HOOK "\":null}\n"
                                  "DELETE alpha-m2\n"
                                  "alpha-cp: finalizer dropped\n");
    CHECK(kcp(api) == NULL);
    fake_finish(api);
}

int main(void)
{
    test_remediation();
    test_refusals();
    test_crashes();
    test_faults();
    test_deletion();
    return test_end("controller/act");
}
