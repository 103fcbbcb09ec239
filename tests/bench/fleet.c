#include "fleet.h"

#include <stdlib.h>

#include "base/json.h"

/* The skeleton is written with ' for ", which reads better in C. */
static void put(struct pl_buf *b, const char *text)
{
    for (const char *quote; (quote = strchr(text, '\'')); text = quote + 1) {
        pl__buf_add(b, (struct pl_str){ text, (size_t)(quote - text) });
        pl__buf_add_char(b, '"');
    }
    pl__buf_add(b, pl__str(text));
}

/* Looks random, never changes. */
static void put_uid(struct pl_buf *b, const char *kind, int number)
{
    uint64_t h = 14695981039346656037u;

    for (const char *p = kind; *p; p++)
        h = (h ^ (unsigned char)*p) * 1099511628211u;
    h = (h ^ (uint64_t)number) * 0x9e3779b97f4a7c15u;
    h ^= h >> 29;
    pl__buf_printf(b, "%08x-%04x-4%03x-a%03x-%012llx", (unsigned)(h >> 32), (unsigned)(h & 0xffff),
                   (unsigned)(h >> 16 & 0xfff), (unsigned)(h >> 40 & 0xfff),
                   (unsigned long long)(h * 31 & 0xffffffffffff));
}

/* A name as its owner makes it: the owner's and a few characters. */
static void put_name(struct pl_buf *b, enum fleet_role role, int number)
{
    static const char alphabet[] = "bcdfghjklmnpqrstvwxz2456789";
    unsigned h = (unsigned)number * 2654435761u;

    pl__buf_add(b, role == FLEET_CONTROL_PLANE ? PL_STR("prod-control-plane-")
                                               : PL_STR("prod-workers-x7k2p-"));
    for (int i = 0; i < 5; i++)
        pl__buf_add_char(b, alphabet[(h >> (5 * i)) % (sizeof alphabet - 1)]);
    pl__buf_add_u64(b, (uint64_t)number % 10);
}

static const struct {
    const char *type;
    const char *status;
    const char *reason;
} conditions[] = {
    { "Available", "True", "Available" },
    { "Ready", "True", "Ready" },
    { "UpToDate", "True", "UpToDate" },
    { "BootstrapConfigReady", "True", "Ready" },
    { "InfrastructureReady", "True", "Ready" },
    { "NodeHealthy", "True", "NodeHealthy" },
    { "NodeReady", "True", "NodeReady" },
    { "HealthCheckSucceeded", "True", "HealthCheckSucceeded" },
    { "Deleting", "False", "NotDeleting" },
    { "Paused", "False", "NotPaused" },
    { "APIServerPodHealthy", "True", "Running" },
    { "ControllerManagerPodHealthy", "True", "Running" },
    { "SchedulerPodHealthy", "True", "Running" },
    { "EtcdPodHealthy", "True", "Running" },
    { "EtcdMemberHealthy", "True", "Healthy" },
};
enum { CONDITION_COUNT = sizeof conditions / sizeof conditions[0], WORKER_CONDITION_COUNT = 10 };

static const char *const deprecated_conditions[] = {
    "Ready", "BootstrapReady", "HealthCheckSucceeded", "InfrastructureReady", "NodeHealthy",
};
enum { DEPRECATED_COUNT = sizeof deprecated_conditions / sizeof deprecated_conditions[0] };

static int condition_count(enum fleet_role role)
{
    return role == FLEET_CONTROL_PLANE ? CONDITION_COUNT : WORKER_CONDITION_COUNT;
}

void fleet_managed_fields(struct pl_buf *b, enum fleet_role role)
{
    put(b, "[{'apiVersion':'cluster.x-k8s.io/v1beta2','fieldsType':'FieldsV1','fieldsV1':{"
           "'f:metadata':{'f:annotations':{"
           "'f:pre-terminate.delete.hook.machine.cluster.x-k8s.io/kcp-cleanup':{}},'f:labels':{"
           "'f:cluster.x-k8s.io/cluster-name':{},'f:cluster.x-k8s.io/control-plane':{},"
           "'f:cluster.x-k8s.io/control-plane-name':{}},'f:ownerReferences':{"
           "'k:{\\'uid\\':\\'e9cec945-6cdf-483a-a5ce-280d5e5cc0e7\\'}':{}}},'f:spec':{"
           "'f:bootstrap':{'f:configRef':{'f:apiGroup':{},'f:kind':{},'f:name':{}}},"
           "'f:clusterName':{},'f:deletion':{'f:nodeDeletionTimeoutSeconds':{}},"
           "'f:infrastructureRef':{'f:apiGroup':{},'f:kind':{},'f:name':{}},"
           "'f:readinessGates':{'.':{}");
    for (int i = WORKER_CONDITION_COUNT; i < condition_count(role); i++) {
        put(b, ",'k:{\\'conditionType\\':\\'");
        put(b, conditions[i].type);
        put(b, "\\'}':{'.':{},'f:conditionType':{}}");
    }
    put(b, "},'f:version':{}}},'manager':'capi-kubeadmcontrolplane','operation':'Apply',"
           "'time':'2026-11-14T09:12:31Z'},{'apiVersion':'cluster.x-k8s.io/v1beta2',"
           "'fieldsType':'FieldsV1','fieldsV1':{'f:metadata':{'f:finalizers':{'.':{},"
           "'v:\\'machine.cluster.x-k8s.io\\'':{}}},'f:spec':{'f:bootstrap':{"
           "'f:dataSecretName':{}},'f:providerID':{}}},'manager':'manager','operation':'Update',"
           "'time':'2026-11-14T09:14:31Z'},{'apiVersion':'cluster.x-k8s.io/v1beta2',"
           "'fieldsType':'FieldsV1','fieldsV1':{'f:status':{'.':{},'f:addresses':{},"
           "'f:conditions':{'.':{}");
    for (int i = 0; i < condition_count(role); i++) {
        put(b, ",'k:{\\'type\\':\\'");
        put(b, conditions[i].type);
        put(b, "\\'}':{'.':{},'f:lastTransitionTime':{},'f:message':{},"
               "'f:observedGeneration':{},'f:reason':{},'f:status':{},'f:type':{}}");
    }
    put(b, "},'f:deprecated':{'.':{},'f:v1beta1':{'.':{},'f:conditions':{}}},"
           "'f:initialization':{'f:bootstrapDataSecretCreated':{},"
           "'f:infrastructureProvisioned':{}},'f:lastUpdated':{},'f:nodeInfo':{},'f:nodeRef':{},"
           "'f:observedGeneration':{},'f:phase':{}}},'manager':'manager','operation':'Update',"
           "'subresource':'status','time':'2026-11-14T09:15:02Z'}]");
}

static const char *const annotations_and_labels[] = {
    [FLEET_CONTROL_PLANE] =
        "'annotations':{'pre-terminate.delete.hook.machine.cluster.x-k8s.io/kcp-cleanup':''},"
        "'labels':{'cluster.x-k8s.io/cluster-name':'prod','cluster.x-k8s.io/control-plane':'',"
        "'cluster.x-k8s.io/control-plane-name':'prod-control-plane'},",
    [FLEET_WORKER] = "'labels':{'cluster.x-k8s.io/cluster-name':'prod',"
                     "'cluster.x-k8s.io/deployment-name':'prod-workers',"
                     "'cluster.x-k8s.io/set-name':'prod-workers-x7k2p','machine-template-hash':"
                     "'1962053126-x7k2p'},",
};

static const char *const owner_references[] = {
    [FLEET_CONTROL_PLANE] =
        "'ownerReferences':[{'apiVersion':'controlplane.cluster.x-k8s.io/v1beta2',"
        "'blockOwnerDeletion':true,'controller':true,'kind':'KubeadmControlPlane',"
        "'name':'prod-control-plane','uid':'e9cec945-6cdf-483a-a5ce-280d5e5cc0e7'}],",
    [FLEET_WORKER] = "'ownerReferences':[{'apiVersion':'cluster.x-k8s.io/v1beta2',"
                     "'blockOwnerDeletion':true,'controller':true,'kind':'MachineSet',"
                     "'name':'prod-workers-x7k2p','uid':'5b2f3f0a-9f63-4a8e-9d2c-0a3f9be7c1d4'}],",
};

static void put_metadata(struct pl_buf *b, enum fleet_role role, int number, bool managed_fields)
{
    put(b, "'metadata':{'creationTimestamp':'2026-11-14T09:12:31Z',"
           "'finalizers':['machine.cluster.x-k8s.io'],'generation':3,");
    put(b, annotations_and_labels[role]);
    if (managed_fields) {
        put(b, "'managedFields':");
        fleet_managed_fields(b, role);
        pl__buf_add_char(b, ',');
    }
    put(b, "'name':'");
    put_name(b, role, number);
    put(b, "','namespace':'default',");
    put(b, owner_references[role]);
    put(b, "'resourceVersion':'");
    pl__buf_add_u64(b, 81000000 + (uint64_t)number);
    put(b, "','uid':'");
    put_uid(b, "Machine", number);
    put(b, "'}");
}

static void put_spec(struct pl_buf *b, enum fleet_role role, int number)
{
    put(b, "'spec':{'bootstrap':{'configRef':{'apiGroup':'bootstrap.cluster.x-k8s.io',"
           "'kind':'KubeadmConfig','name':'");
    put_name(b, role, number);
    put(b, "'},'dataSecretName':'");
    put_name(b, role, number);
    put(b, "'},'clusterName':'prod','deletion':{'nodeDeletionTimeoutSeconds':10},"
           "'infrastructureRef':{'apiGroup':'infrastructure.cluster.x-k8s.io',"
           "'kind':'VSphereMachine','name':'");
    put_name(b, role, number);
    put(b, "'},'providerID':'vsphere://");
    put_uid(b, "VSphereVM", number);
    put(b, "','readinessGates':[");
    for (int i = WORKER_CONDITION_COUNT; i < condition_count(role); i++) {
        put(b, i > WORKER_CONDITION_COUNT ? ",{'conditionType':'" : "{'conditionType':'");
        put(b, conditions[i].type);
        put(b, "'}");
    }
    put(b, "],'version':'v1.34.2'}");
}

static void put_conditions(struct pl_buf *b, enum fleet_role role)
{
    put(b, "'conditions':[");
    for (int i = 0; i < condition_count(role); i++) {
        put(b, i ? ",{" : "{");
        put(b, "'lastTransitionTime':'2026-11-14T09:15:02Z','message':'','observedGeneration':3,"
               "'reason':'");
        put(b, conditions[i].reason);
        put(b, "','status':'");
        put(b, conditions[i].status);
        put(b, "','type':'");
        put(b, conditions[i].type);
        put(b, "'}");
    }
    put(b, "],'deprecated':{'v1beta1':{'conditions':[");
    for (int i = 0; i < DEPRECATED_COUNT; i++) {
        put(b, i ? ",{" : "{");
        put(b, "'lastTransitionTime':'2026-11-14T09:15:02Z','status':'True','type':'");
        put(b, deprecated_conditions[i]);
        put(b, "'}");
    }
    put(b, "]}}");
}

static void put_status(struct pl_buf *b, enum fleet_role role, int number)
{
    put(b, "'status':{'addresses':[{'address':'10.20.0.31','type':'InternalIP'},"
           "{'address':'10.20.0.31','type':'ExternalIP'},{'address':'");
    put_name(b, role, number);
    put(b, "','type':'InternalDNS'}],");
    put_conditions(b, role);
    put(b, ",'initialization':{'bootstrapDataSecretCreated':true,'infrastructureProvisioned':true},"
           "'lastUpdated':'2026-11-14T09:15:02Z','nodeInfo':{'architecture':'amd64','bootID':'");
    put_uid(b, "boot", number);
    put(b, "','containerRuntimeVersion':'containerd://2.1.3','kernelVersion':'6.1.0-37-amd64',"
           "'kubeProxyVersion':'','kubeletVersion':'v1.34.2','machineID':'");
    put_uid(b, "machine", number);
    put(b, "','operatingSystem':'linux','osImage':'Debian GNU/Linux 12 (bookworm)','systemUUID':'");
    put_uid(b, "system", number);
    put(b, "'},'nodeRef':{'name':'");
    put_name(b, role, number);
    put(b, "'},'observedGeneration':3,'phase':'Running'}");
}

void fleet_machine(struct pl_buf *b, enum fleet_role role, int number, bool managed_fields)
{
    put(b, "{'apiVersion':'cluster.x-k8s.io/v1beta2','kind':'Machine',");
    put_metadata(b, role, number, managed_fields);
    pl__buf_add_char(b, ',');
    put_spec(b, role, number);
    pl__buf_add_char(b, ',');
    put_status(b, role, number);
    pl__buf_add_char(b, '}');
}

void fleet_machine_list(struct pl_buf *b, int machine_count)
{
    put(b, "{'apiVersion':'cluster.x-k8s.io/v1beta2','items':[");
    for (int i = 0; i < machine_count; i++) {
        if (i)
            pl__buf_add_char(b, ',');
        fleet_machine(b, i % 10 ? FLEET_WORKER : FLEET_CONTROL_PLANE, i, true);
    }
    put(b, "],'kind':'MachineList','metadata':{'resourceVersion':'81234567'}}");
}

/* --- a whole control plane --------------------------------------------------------------------- */

static void put_cluster(struct pl_buf *b)
{
    put(b, "{'apiVersion':'cluster.x-k8s.io/v1beta2','kind':'Cluster','metadata':{'name':'prod',"
           "'namespace':'default','uid':'06b2d4b9-1b5c-4eaa-ac20-a1c270f95b3c','generation':2},"
           "'spec':{'controlPlaneEndpoint':{'host':'10.20.0.10','port':6443}},"
           "'status':{'initialization':{'infrastructureProvisioned':true,"
           "'controlPlaneInitialized':true}}}");
}

static void put_control_plane(struct pl_buf *b)
{
    static const char *const own[][3] = {
        { "Initialized", "True", "Initialized" },
        { "ControlPlaneComponentsHealthy", "True", "Healthy" },
        { "EtcdClusterHealthy", "True", "Healthy" },
        { "Remediating", "False", "NotRemediating" },
        { "Deleting", "False", "NotDeleting" },
    };

    put(b, "{'apiVersion':'controlplane.cluster.x-k8s.io/v1beta2','kind':'KubeadmControlPlane',"
           "'metadata':{'name':'prod-control-plane','namespace':'default',"
           "'uid':'e9cec945-6cdf-483a-a5ce-280d5e5cc0e7','generation':4,"
           "'creationTimestamp':'2026-08-02T09:12:31Z','labels':{"
           "'cluster.x-k8s.io/cluster-name':'prod'},'ownerReferences':[{"
           "'apiVersion':'cluster.x-k8s.io/v1beta2','kind':'Cluster','name':'prod',"
           "'uid':'06b2d4b9-1b5c-4eaa-ac20-a1c270f95b3c','controller':true}]},"
           "'spec':{'replicas':3,'version':'v1.34.2','kubeadmConfigSpec':{'clusterConfiguration':{"
           "'etcd':{'local':{'dataDir':'/var/lib/etcd'}}}}},"
           "'status':{'initialization':{'controlPlaneInitialized':true},'conditions':[");
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        put(b, i ? ",{'type':'" : "{'type':'");
        put(b, own[i][0]);
        put(b, "','status':'");
        put(b, own[i][1]);
        put(b, "','reason':'");
        put(b, own[i][2]);
        put(b, "','message':'','observedGeneration':4,"
               "'lastTransitionTime':'2026-08-02T09:18:44Z'}");
    }
    put(b, "]}}");
}

static void put_node(struct pl_buf *b, int number)
{
    put(b, "{'apiVersion':'v1','kind':'Node','metadata':{'name':'");
    put_name(b, FLEET_CONTROL_PLANE, number);
    put(b,
        "','labels':{'kubernetes.io/os':'linux','node-role.kubernetes.io/control-plane':''}},"
        "'spec':{'taints':[{'key':'node-role.kubernetes.io/control-plane',"
        "'effect':'NoSchedule'}]},'status':{'conditions':[{'type':'MemoryPressure',"
        "'status':'False','reason':'KubeletHasSufficientMemory'},{'type':'Ready',"
        "'status':'True','reason':'KubeletReady','message':'kubelet is posting ready status'}]}}");
}

static void put_pod(struct pl_buf *b, const char *component, int number)
{
    put(b, "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'");
    put(b, component);
    pl__buf_add_char(b, '-');
    put_name(b, FLEET_CONTROL_PLANE, number);
    put(b, "','namespace':'kube-system'},'status':{'phase':'Running','conditions':["
           "{'type':'Initialized','status':'True'},{'type':'Ready','status':'True'},"
           "{'type':'ContainersReady','status':'True'},{'type':'PodScheduled','status':'True'}],"
           "'containerStatuses':[{'name':'");
    put(b, component);
    put(b, "','ready':true,'restartCount':0,'state':{'running':{"
           "'startedAt':'2026-11-14T09:13:40Z'}},'lastState':{}}]}}");
}

static void put_workload(struct pl_buf *b, int first, int machine_count)
{
    static const char *const components[] = { "kube-apiserver", "kube-controller-manager",
                                              "kube-scheduler", "etcd" };

    put(b, "{'cluster':'default/prod','connection':{'state':'Connected',"
           "'lastProbeSuccessTime':'2026-11-15T01:59:52Z','consecutiveFailures':0},'nodes':[");
    for (int i = 0; i < machine_count; i++) {
        if (i)
            pl__buf_add_char(b, ',');
        put_node(b, first + i);
    }
    put(b, "],'pods':[");
    for (int i = 0; i < 4 * machine_count; i++) {
        if (i)
            pl__buf_add_char(b, ',');
        put_pod(b, components[i % 4], first + i / 4);
    }
    put(b, "],'etcd':{'endpoint':'etcd-");
    put_name(b, FLEET_CONTROL_PLANE, first);
    put(b, "','members':[");
    for (int i = 0; i < machine_count; i++) {
        put(b, i ? ",{'ID':'" : "{'ID':'");
        pl__buf_add_u64(b, 10276657743932975437u + (uint64_t)i);
        put(b, "','name':'");
        put_name(b, FLEET_CONTROL_PLANE, first + i);
        put(b, "','isLearner':false}");
    }
    put(b, "],'alarms':[],'leader':'10276657743932975437'}}");
}

void fleet_snapshot(struct pl_buf *b, int number)
{
    enum { MACHINE_COUNT = 3 };
    int first = number * MACHINE_COUNT;

    put(b, "{'apiVersion':'plimsoll.dev/v1','kind':'Snapshot','name':'snapshot-");
    pl__buf_add_u64(b, (uint64_t)number);
    put(b, "','now':'2026-11-15T02:00:00Z','objects':[");
    put_cluster(b);
    pl__buf_add_char(b, ',');
    put_control_plane(b);
    for (int i = 0; i < MACHINE_COUNT; i++) {
        pl__buf_add_char(b, ',');
        fleet_machine(b, FLEET_CONTROL_PLANE, first + i, false);
    }
    put(b, "],'workloads':[");
    put_workload(b, first, MACHINE_COUNT);
    put(b, "]}");
}

/* --- other forms of the same ------------------------------------------------------------------- */

static void put_line(struct pl_buf *b, int depth)
{
    pl__buf_add_char(b, '\n');
    for (int i = 0; i < depth * 4; i++)
        pl__buf_add_char(b, ' ');
}

void fleet_indent(struct pl_buf *b, struct pl_str json)
{
    bool in_string = false;
    int depth = 0;

    for (size_t i = 0; i < json.len; i++) {
        char c = json.ptr[i];
        if (in_string || c == '"') {
            pl__buf_add_char(b, c);
            if (c == '\\')
                pl__buf_add_char(b, json.ptr[++i]);
            else if (c == '"')
                in_string = !in_string;
            continue;
        }
        bool opens = c == '{' || c == '[', closes = c == '}' || c == ']';
        char next = i + 1 < json.len ? json.ptr[i + 1] : '\0';
        char before = i ? json.ptr[i - 1] : '\0';
        depth -= closes;
        if (closes && before != '{' && before != '[')
            put_line(b, depth);
        pl__buf_add_char(b, c);
        depth += opens;
        if (c == ',' || (opens && next != '}' && next != ']'))
            put_line(b, depth);
        else if (c == ':')
            pl__buf_add_char(b, ' ');
    }
}

static int copy_value(struct pl_json *j, struct pl_json_writer *w);

static int copy_object(struct pl_json *j, struct pl_json_writer *w)
{
    struct pl_str key;
    int more;

    if (pl__json_object(j) < 0)
        return -1;
    pl__json_open_object(w);
    while ((more = pl__json_key(j, &key)) > 0) {
        pl__json_write_key(w, pl__str_copy(j->arena, key).ptr);
        if (copy_value(j, w) < 0)
            return -1;
    }
    pl__json_close_object(w);
    return more;
}

static int copy_array(struct pl_json *j, struct pl_json_writer *w)
{
    int more;

    if (pl__json_array(j) < 0)
        return -1;
    pl__json_open_array(w);
    while ((more = pl__json_item(j)) > 0) {
        if (copy_value(j, w) < 0)
            return -1;
    }
    pl__json_close_array(w);
    return more;
}

static int copy_value(struct pl_json *j, struct pl_json_writer *w)
{
    struct pl_str text;
    int64_t number;
    bool flag;

    switch (pl__json_peek(j)) {
    case JSON_OBJECT:
        return copy_object(j, w);
    case JSON_ARRAY:
        return copy_array(j, w);
    case JSON_STRING:
        if (pl__json_string(j, &text) < 0)
            return -1;
        pl__json_write_str(w, text);
        return 0;
    case JSON_NUMBER:
        if (pl__json_int(j, &number) < 0)
            return -1;
        pl__json_write_int(w, number);
        return 0;
    default:
        if (pl__json_bool(j, &flag) < 0)
            return -1;
        pl__json_write_bool(w, flag);
        return 0;
    }
}

void fleet_yaml(struct pl_buf *b, struct pl_str json)
{
    struct pl_arena scratch;
    struct pl_json_writer w;
    struct pl_json j;

    pl__arena_init(&scratch, NULL, (size_t)1 << 20);
    pl__json_init(&j, json, PL_STR("fleet"), &scratch, 64, NULL);
    pl__json_writer_init(&w, b, JSON_AS_YAML);
    if (copy_value(&j, &w) < 0)
        abort();
    pl__buf_add_char(b, '\n');
    pl__arena_release(&scratch);
}
