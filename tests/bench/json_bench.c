/* How fast JSON is read: a made-up list of Machines with managedFields, as kubectl get -o json gives
 * it, compact (the API server) and indented (a dump).
 *
 *     json_bench [machines] [seconds]
 *
 * Prints a line a benchmark: name, time a pass, passes, MB/s. The best of the passes counts, since
 * whatever else runs on the machine only ever adds. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/json.h"

struct label {
    struct pl_str cluster;
    struct pl_str control_plane;
};

struct owner {
    struct pl_str kind;
    struct pl_str name;
    bool controller;
};

struct condition {
    struct pl_str type;
    struct pl_str status;
    struct pl_str reason;
    struct pl_str message;
    int64_t transition_ms;
    int64_t generation;
};

struct machine {
    struct pl_str kind;
    struct pl_str namespace_;
    struct pl_str name;
    struct pl_str uid;
    int64_t generation;
    int64_t created_ms;
    int64_t deleted_ms;
    struct label labels;
    PL_LIST(struct owner) owners;
    PL_LIST(struct pl_str) finalizers;
    struct pl_str cluster_name;
    struct pl_str version;
    struct pl_str provider_id;
    struct pl_str node_name;
    struct pl_str phase;
    PL_LIST(struct condition) conditions;
};

struct machine_list {
    struct pl_str kind;
    PL_LIST(struct machine) items;
};

static const struct pl_field label_fields[] = {
    PL_FIELD("cluster.x-k8s.io/cluster-name", F_STR, struct label, cluster),
    PL_FIELD("cluster.x-k8s.io/control-plane-name", F_STR, struct label, control_plane),
};
static PL_SHAPE(label_shape, struct label, label_fields);

static const struct pl_field owner_fields[] = {
    PL_FIELD("kind", F_STR, struct owner, kind),
    PL_FIELD("name", F_STR, struct owner, name),
    PL_FIELD("controller", F_BOOL, struct owner, controller),
};
static PL_SHAPE(owner_shape, struct owner, owner_fields);

static const struct pl_field condition_fields[] = {
    PL_FIELD("type", F_STR, struct condition, type),
    PL_FIELD("status", F_STR, struct condition, status),
    PL_FIELD("reason", F_STR, struct condition, reason),
    PL_FIELD("message", F_STR, struct condition, message),
    PL_FIELD("lastTransitionTime", F_TIME, struct condition, transition_ms),
    PL_FIELD("observedGeneration", F_INT, struct condition, generation),
};
static PL_SHAPE(condition_shape, struct condition, condition_fields);

static const struct pl_field machine_fields[] = {
    PL_FIELD("kind", F_STR, struct machine, kind),
    PL_FIELD_SKIP("metadata.managedFields"),
    PL_FIELD("metadata.namespace", F_STR, struct machine, namespace_),
    PL_FIELD("metadata.name", F_STR, struct machine, name),
    PL_FIELD("metadata.uid", F_STR, struct machine, uid),
    PL_FIELD("metadata.generation", F_INT, struct machine, generation),
    PL_FIELD("metadata.creationTimestamp", F_TIME, struct machine, created_ms),
    PL_FIELD("metadata.deletionTimestamp", F_TIME, struct machine, deleted_ms),
    PL_FIELD_SHAPE("metadata.labels", F_MAP, struct machine, labels, &label_shape),
    PL_FIELD_SHAPE("metadata.ownerReferences", F_LIST, struct machine, owners, &owner_shape),
    PL_FIELD("metadata.finalizers", F_STRINGS, struct machine, finalizers),
    PL_FIELD("spec.clusterName", F_STR, struct machine, cluster_name),
    PL_FIELD("spec.version", F_STR, struct machine, version),
    PL_FIELD("spec.providerID", F_STR, struct machine, provider_id),
    PL_FIELD("status.nodeRef.name", F_STR, struct machine, node_name),
    PL_FIELD("status.phase", F_STR, struct machine, phase),
    PL_FIELD_SHAPE("status.conditions", F_LIST, struct machine, conditions, &condition_shape),
};
static PL_SHAPE(machine_shape, struct machine, machine_fields);

static const struct pl_field list_fields[] = {
    PL_FIELD("kind", F_STR, struct machine_list, kind),
    PL_FIELD_SHAPE("items", F_LIST, struct machine_list, items, &machine_shape),
};
static PL_SHAPE(list_shape, struct machine_list, list_fields);

/* --- the input --------------------------------------------------------------------------------- */

/* The skeleton is written with ' for ", which reads better in C; put_json() turns them. */
static void put_json(struct pl_buf *b, const char *text)
{
    for (; *text; text++)
        pl__buf_add_char(b, *text == '\'' ? '"' : *text);
}

static const char *const condition_types[] = {
    "Available",
    "Ready",
    "UpToDate",
    "BootstrapConfigReady",
    "InfrastructureReady",
    "NodeReady",
    "NodeHealthy",
    "Deleting",
    "APIServerPodHealthy",
    "ControllerManagerPodHealthy",
    "SchedulerPodHealthy",
    "EtcdPodHealthy",
    "EtcdMemberHealthy",
};
enum { CONDITION_COUNT = sizeof condition_types / sizeof condition_types[0] };

static void put_managed_fields(struct pl_buf *b)
{
    put_json(b, "'managedFields':[{'apiVersion':'cluster.x-k8s.io/v1beta2','fieldsType':'FieldsV1',"
                "'fieldsV1':{'f:metadata':{'f:annotations':{"
                "'f:controlplane.cluster.x-k8s.io/kubeadm-cluster-configuration':{},"
                "'f:pre-terminate.delete.hook.machine.cluster.x-k8s.io/kcp-cleanup':{}},"
                "'f:labels':{'f:cluster.x-k8s.io/cluster-name':{},"
                "'f:cluster.x-k8s.io/control-plane':{},"
                "'f:cluster.x-k8s.io/control-plane-name':{}},'f:ownerReferences':{"
                "'k:{\\'uid\\':\\'0b7a5d0e-6c9f-4c39-9d0e-2f4a7e1c1f35\\'}':{}}},'f:spec':{"
                "'f:bootstrap':{'f:configRef':{'f:apiGroup':{},'f:kind':{},'f:name':{}}},"
                "'f:clusterName':{},'f:deletion':{'f:nodeDeletionTimeoutSeconds':{}},"
                "'f:infrastructureRef':{'f:apiGroup':{},'f:kind':{},'f:name':{}},"
                "'f:readinessGates':{'k:{\\'conditionType\\':\\'APIServerPodHealthy\\'}':"
                "{'.':{},'f:conditionType':{}},"
                "'k:{\\'conditionType\\':\\'EtcdMemberHealthy\\'}':{'.':{},'f:conditionType':{}}},"
                "'f:version':{}}},'manager':'capi-kubeadmcontrolplane','operation':'Apply',"
                "'time':'2026-11-14T09:12:31Z'},{'apiVersion':'cluster.x-k8s.io/v1beta2',"
                "'fieldsType':'FieldsV1','fieldsV1':{'f:metadata':{'f:finalizers':{'.':{},"
                "'v:\\'machine.cluster.x-k8s.io\\'':{}}},'f:spec':{'f:providerID':{}},"
                "'f:status':{'.':{},'f:addresses':{},'f:conditions':{'.':{}");
    for (int i = 0; i < CONDITION_COUNT; i++) {
        put_json(b, ",'k:{\\'type\\':\\'");
        put_json(b, condition_types[i]);
        put_json(b, "\\'}':{'.':{},'f:lastTransitionTime':{},'f:message':{},"
                    "'f:observedGeneration':{},'f:reason':{},'f:status':{},'f:type':{}}");
    }
    put_json(b, "},'f:initialization':{'f:bootstrapDataSecretCreated':{},"
                "'f:infrastructureProvisioned':{}},'f:lastUpdated':{},'f:nodeInfo':{},"
                "'f:nodeRef':{},'f:observedGeneration':{},'f:phase':{}}},'manager':'manager',"
                "'operation':'Update','subresource':'status','time':'2026-11-14T09:15:02Z'}]");
}

static void put_metadata(struct pl_buf *b, int n)
{
    put_json(b, "'metadata':{'annotations':{"
                "'pre-terminate.delete.hook.machine.cluster.x-k8s.io/kcp-cleanup':''},"
                "'creationTimestamp':'2026-11-14T09:12:31Z',"
                "'finalizers':['machine.cluster.x-k8s.io'],'generation':3,'labels':{"
                "'cluster.x-k8s.io/cluster-name':'alpha','cluster.x-k8s.io/control-plane':'',"
                "'cluster.x-k8s.io/control-plane-name':'alpha-cp'},");
    put_managed_fields(b);
    pl__buf_printf(b, ",\"name\":\"alpha-cp-%05d\"", n);
    put_json(b, ",'namespace':'default','ownerReferences':[{"
                "'apiVersion':'controlplane.cluster.x-k8s.io/v1beta2','blockOwnerDeletion':true,"
                "'controller':true,'kind':'KubeadmControlPlane','name':'alpha-cp',"
                "'uid':'0b7a5d0e-6c9f-4c39-9d0e-2f4a7e1c1f35'}],");
    pl__buf_printf(b, "\"resourceVersion\":\"%d\",\"uid\":\"5c1d7c8e-11aa-4f3e-8d57-%012d\"}",
                   1000000 + n, n);
}

static void put_spec(struct pl_buf *b, int n)
{
    put_json(b, "'spec':{'bootstrap':{'configRef':{'apiGroup':'bootstrap.cluster.x-k8s.io',"
                "'kind':'KubeadmConfig','name':'alpha-cp-config'},"
                "'dataSecretName':'alpha-cp-config'},'clusterName':'alpha','deletion':{"
                "'nodeDeletionTimeoutSeconds':10},'infrastructureRef':{"
                "'apiGroup':'infrastructure.cluster.x-k8s.io','kind':'DockerMachine',"
                "'name':'alpha-cp-infra'},");
    pl__buf_printf(b, "\"providerID\":\"docker:////alpha-cp-%05d\"", n);
    put_json(b, ",'readinessGates':[{'conditionType':'APIServerPodHealthy'},"
                "{'conditionType':'EtcdMemberHealthy'}],'version':'v1.33.4'}");
}

static void put_status(struct pl_buf *b, int n)
{
    put_json(b, "'status':{'addresses':[{'address':'172.18.0.4','type':'InternalIP'},"
                "{'address':'172.18.0.4','type':'ExternalIP'}],'conditions':[");
    for (int i = 0; i < CONDITION_COUNT; i++) {
        put_json(b, i ? ",{" : "{");
        put_json(b, "'lastTransitionTime':'2026-11-14T09:15:02Z','message':'");
        put_json(b, i % 4 == 1 ? "* NodeHealthy: \\u2265 1 of the checks failed\\n* retrying" : "");
        put_json(b, "','observedGeneration':3,'reason':'");
        put_json(b, condition_types[i]);
        put_json(b, "','status':'True','type':'");
        put_json(b, condition_types[i]);
        put_json(b, "'}");
    }
    put_json(b, "],'initialization':{'bootstrapDataSecretCreated':true,"
                "'infrastructureProvisioned':true},'lastUpdated':'2026-11-14T09:15:02Z',"
                "'nodeInfo':{'architecture':'amd64','bootID':'9f3e1c2a',"
                "'containerRuntimeVersion':'containerd://2.1.3','kernelVersion':'6.1.0-37-amd64',"
                "'kubeProxyVersion':'','kubeletVersion':'v1.33.4','machineID':'c3d1',"
                "'operatingSystem':'linux','osImage':'Debian GNU/Linux 12 (bookworm)',"
                "'systemUUID':'d6f6'},");
    pl__buf_printf(b, "\"nodeRef\":{\"name\":\"alpha-cp-%05d\"},", n);
    put_json(b, "'observedGeneration':3,'phase':'Running'}");
}

static void put_list(struct pl_buf *b, int machine_count)
{
    put_json(b, "{'apiVersion':'cluster.x-k8s.io/v1beta2','kind':'MachineList','items':[");
    for (int n = 0; n < machine_count; n++) {
        put_json(b, n ? ",{" : "{");
        put_json(b, "'apiVersion':'cluster.x-k8s.io/v1beta2','kind':'Machine',");
        put_metadata(b, n);
        pl__buf_add_char(b, ',');
        put_spec(b, n);
        pl__buf_add_char(b, ',');
        put_status(b, n);
        pl__buf_add_char(b, '}');
    }
    put_json(b, "],'metadata':{'resourceVersion':'123456'}}");
}

static void put_line(struct pl_buf *b, int depth)
{
    pl__buf_add_char(b, '\n');
    for (int i = 0; i < depth * 4; i++)
        pl__buf_add_char(b, ' ');
}

/* The same text with kubectl's indentation of four. */
static void indent_json(struct pl_buf *b, struct pl_str text)
{
    bool in_string = false;
    int depth = 0;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool empty = i + 1 < text.len && (text.ptr[i + 1] | 0x20) == '}';
        if (in_string || c == '"') {
            pl__buf_add_char(b, c);
            if (c == '\\')
                pl__buf_add_char(b, text.ptr[++i]);
            else if (c == '"')
                in_string = !in_string;
            continue;
        }
        if ((c | 0x20) == '}') {
            depth--;
            if ((text.ptr[i - 1] | 0x20) != '{')
                put_line(b, depth);
        }
        pl__buf_add_char(b, c);
        if ((c | 0x20) == '{') {
            depth++;
            if (!empty)
                put_line(b, depth);
        } else if (c == ',') {
            put_line(b, depth);
        } else if (c == ':') {
            pl__buf_add_char(b, ' ');
        }
    }
}

/* --- measuring --------------------------------------------------------------------------------- */

typedef int (*read_fn)(struct pl_json *j);

static int read_typed(struct pl_json *j)
{
    struct machine_list list = { 0 };

    return pl__json_decode(j, &list_shape, &list);
}

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double pass(struct pl_arena *arena, struct pl_str text, read_fn read)
{
    struct pl_error *err = NULL;
    struct pl_json j;
    double start = now_s();

    pl__json_init(&j, text, PL_STR("bench"), arena, 64, &err);
    if (read(&j) < 0 || !pl__json_at_end(&j)) {
        struct pl_str why = err ? pl__error_text(arena, err) : PL_STR("text left over");
        fprintf(stderr, "%.*s\n", PL_STR_ARG(why));
        exit(1);
    }
    return now_s() - start;
}

/* `cold`: each pass takes its memory from the system anew, as a program does that runs once. */
static void run(const char *name, struct pl_str text, read_fn read, bool cold, double seconds)
{
    struct pl_arena arena;
    double best = 1e9, stop = now_s() + seconds;
    int passes = 0;

    pl__arena_init(&arena, NULL, (size_t)1 << 20);
    pass(&arena, text, read);
    do {
        if (cold)
            pl__arena_release(&arena);
        else
            pl__arena_reset(&arena);
        double took = pass(&arena, text, read);
        best = took < best ? took : best;
        passes++;
    } while (now_s() < stop);
    printf("%-24s %10.3f ms %8d %10.1f MB/s\n", name, best * 1e3, passes,
           (double)text.len / best / 1e6);
    pl__arena_release(&arena);
}

static double argument(int argc, char **argv, int index, double otherwise)
{
    return argc > index ? strtod(argv[index], NULL) : otherwise;
}

int main(int argc, char **argv)
{
    int machine_count = (int)argument(argc, argv, 1, 3000);
    double seconds = argument(argc, argv, 2, 1);
    struct pl_arena arena;
    struct pl_buf compact, indented;

    pl__arena_init(&arena, NULL, (size_t)1 << 20);
    pl__buf_init(&compact, &arena, (size_t)1 << 32);
    pl__buf_init(&indented, &arena, (size_t)1 << 34);
    put_list(&compact, machine_count);
    indent_json(&indented, pl__buf_str(&compact));

    printf("# %d Machines, %zu bytes compact, %zu indented\n", machine_count, compact.len,
           indented.len);
    run("json/decode/compact", pl__buf_str(&compact), read_typed, false, seconds);
    run("json/decode/compact/cold", pl__buf_str(&compact), read_typed, true, seconds);
    run("json/decode/indented", pl__buf_str(&indented), read_typed, false, seconds);
    run("json/skip/compact", pl__buf_str(&compact), pl__json_skip, false, seconds);
    run("json/skip/indented", pl__buf_str(&indented), pl__json_skip, false, seconds);
    run("json/skip_fast/compact", pl__buf_str(&compact), pl__json_skip_fast, false, seconds);
    run("json/skip_fast/indented", pl__buf_str(&indented), pl__json_skip_fast, false, seconds);
    pl__arena_release(&arena);
    return 0;
}
