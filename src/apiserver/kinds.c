#include "apiserver/kinds.h"

/* clang-format off */
#define CONDITION(type_) ".status.conditions[?(@.type==\"" type_ "\")].status"
#define NAME { "Name", "string", "name", 0, CELL_NAME, NULL, NULL }
#define AGE { "Age", "date", "", 0, CELL_AGE, ".metadata.creationTimestamp", NULL }
#define CORE_AGE { "Age", "string", "", 0, CELL_AGE, ".metadata.creationTimestamp", "<unknown>" }
#define TEXT(name_, path_) { name_, "string", "", 0, CELL_PATH, path_, NULL }
#define WIDE(name_, path_) { name_, "string", "", 10, CELL_PATH, path_, NULL }
#define COUNT(name_, path_) { name_, "integer", "", 0, CELL_PATH, path_, NULL }
#define WIDE_COUNT(name_, path_) { name_, "integer", "", 10, CELL_PATH, path_, NULL }
#define PAUSED WIDE("Paused", CONDITION("Paused"))
/* Of built-in kinds, whose wide columns have priority 1. */
#define CORE_TEXT(name_, path_, missing_) { name_, "string", "", 0, CELL_PATH, path_, missing_ }
#define CORE_WIDE(name_, path_, missing_) { name_, "string", "", 1, CELL_PATH, path_, missing_ }

static const struct pl_column namespace_columns[] = {
    NAME, CORE_TEXT("Status", ".status.phase", ""), CORE_AGE, { NULL },
};
static const struct pl_column node_columns[] = {
    NAME,
    { "Status", "string", "", 0, CELL_NODE_STATUS, NULL, NULL },
    { "Roles", "string", "", 0, CELL_NODE_ROLES, NULL, NULL },
    CORE_AGE,
    CORE_TEXT("Version", ".status.nodeInfo.kubeletVersion", ""),
    CORE_WIDE("Internal-IP", ".status.addresses[?(@.type==\"InternalIP\")].address", "<none>"),
    CORE_WIDE("External-IP", ".status.addresses[?(@.type==\"ExternalIP\")].address", "<none>"),
    CORE_WIDE("OS-Image", ".status.nodeInfo.osImage", "<unknown>"),
    CORE_WIDE("Kernel-Version", ".status.nodeInfo.kernelVersion", "<unknown>"),
    CORE_WIDE("Container-Runtime", ".status.nodeInfo.containerRuntimeVersion", "<unknown>"),
    { NULL },
};
static const struct pl_column pod_columns[] = {
    NAME,
    { "Ready", "string", "", 0, CELL_POD_READY, NULL, NULL },
    { "Status", "string", "", 0, CELL_POD_STATUS, NULL, NULL },
    { "Restarts", "string", "", 0, CELL_POD_RESTARTS, NULL, NULL },
    CORE_AGE,
    CORE_WIDE("IP", ".status.podIP", "<none>"),
    CORE_WIDE("Node", ".spec.nodeName", "<none>"),
    CORE_WIDE("Nominated Node", ".status.nominatedNodeName", "<none>"),
    { "Readiness Gates", "string", "", 1, CELL_POD_GATES, NULL, NULL },
    { NULL },
};
static const struct pl_column secret_columns[] = {
    NAME, CORE_TEXT("Type", ".type", ""),
    { "Data", "string", "", 0, CELL_COUNT, ".data", NULL }, CORE_AGE, { NULL },
};
static const struct pl_column config_map_columns[] = {
    NAME, { "Data", "string", "", 0, CELL_COUNT, ".data+.binaryData", NULL }, CORE_AGE, { NULL },
};
static const struct pl_column event_columns[] = {
    { "Last Seen", "string", "", 0, CELL_EVENT_LAST, NULL, NULL },
    CORE_TEXT("Type", ".type", ""),
    CORE_TEXT("Reason", ".reason", ""),
    { "Object", "string", "", 0, CELL_EVENT_OBJECT, NULL, NULL },
    CORE_WIDE("Subobject", ".involvedObject.fieldPath", ""),
    { "Source", "string", "", 1, CELL_EVENT_SOURCE, NULL, NULL },
    CORE_TEXT("Message", ".message", ""),
    { "First Seen", "string", "", 1, CELL_EVENT_FIRST, NULL, NULL },
    { "Count", "string", "", 1, CELL_EVENT_COUNT, NULL, NULL },
    { "Name", "string", "name", 1, CELL_NAME, NULL, NULL },
    { NULL },
};
static const struct pl_column lease_columns[] = {
    NAME, CORE_TEXT("Holder", ".spec.holderIdentity", ""), CORE_AGE, { NULL },
};
static const struct pl_column cluster_columns[] = {
    NAME,
    TEXT("ClusterClass", ".spec.topology.classRef.name"),
    TEXT("Available", CONDITION("Available")),
    COUNT("CP Desired", ".status.controlPlane.desiredReplicas"),
    WIDE_COUNT("CP Current", ".status.controlPlane.replicas"),
    WIDE_COUNT("CP Ready", ".status.controlPlane.readyReplicas"),
    COUNT("CP Available", ".status.controlPlane.availableReplicas"),
    COUNT("CP Up-to-date", ".status.controlPlane.upToDateReplicas"),
    COUNT("W Desired", ".status.workers.desiredReplicas"),
    WIDE_COUNT("W Current", ".status.workers.replicas"),
    WIDE_COUNT("W Ready", ".status.workers.readyReplicas"),
    COUNT("W Available", ".status.workers.availableReplicas"),
    COUNT("W Up-to-date", ".status.workers.upToDateReplicas"),
    PAUSED,
    TEXT("Phase", ".status.phase"),
    AGE,
    TEXT("Version", ".spec.topology.version"),
    { NULL },
};
static const struct pl_column machine_columns[] = {
    NAME,
    TEXT("Cluster", ".spec.clusterName"),
    TEXT("Node Name", ".status.nodeRef.name"),
    WIDE("Provider ID", ".spec.providerID"),
    TEXT("Ready", CONDITION("Ready")),
    TEXT("Available", CONDITION("Available")),
    TEXT("Up-to-date", CONDITION("UpToDate")),
    WIDE("Internal-IP", ".status.addresses[?(@.type==\"InternalIP\")].address"),
    WIDE("External-IP", ".status.addresses[?(@.type==\"ExternalIP\")].address"),
    WIDE("OS-Image", ".status.nodeInfo.osImage"),
    PAUSED,
    TEXT("Phase", ".status.phase"),
    AGE,
    TEXT("Version", ".spec.version"),
    { NULL },
};
static const struct pl_column machine_set_columns[] = {
    NAME,
    TEXT("Cluster", ".spec.clusterName"),
    COUNT("Desired", ".spec.replicas"),
    COUNT("Current", ".status.replicas"),
    COUNT("Ready", ".status.readyReplicas"),
    COUNT("Available", ".status.availableReplicas"),
    COUNT("Up-to-date", ".status.upToDateReplicas"),
    PAUSED,
    AGE,
    TEXT("Version", ".spec.template.spec.version"),
    { NULL },
};
static const struct pl_column machine_deployment_columns[] = {
    NAME,
    TEXT("Cluster", ".spec.clusterName"),
    TEXT("Available", CONDITION("Available")),
    COUNT("Desired", ".spec.replicas"),
    COUNT("Current", ".status.replicas"),
    COUNT("Ready", ".status.readyReplicas"),
    COUNT("Available", ".status.availableReplicas"),
    COUNT("Up-to-date", ".status.upToDateReplicas"),
    PAUSED,
    TEXT("Phase", ".status.phase"),
    AGE,
    TEXT("Version", ".spec.template.spec.version"),
    { NULL },
};
static const struct pl_column machine_pool_columns[] = {
    NAME,
    TEXT("Cluster", ".spec.clusterName"),
    COUNT("Desired", ".spec.replicas"),
    COUNT("Current", ".status.replicas"),
    COUNT("Ready", ".status.readyReplicas"),
    COUNT("Available", ".status.availableReplicas"),
    COUNT("Up-to-date", ".status.upToDateReplicas"),
    PAUSED,
    TEXT("Phase", ".status.phase"),
    AGE,
    TEXT("Version", ".spec.template.spec.version"),
    { NULL },
};
static const struct pl_column kubeadm_config_columns[] = {
    NAME,
    TEXT("Cluster", ".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']"),
    PAUSED,
    TEXT("Data secret created", ".status.initialization.dataSecretCreated"),
    AGE,
    { NULL },
};
static const struct pl_column machine_health_check_columns[] = {
    NAME,
    TEXT("Cluster", ".spec.clusterName"),
    COUNT("Replicas", ".status.expectedMachines"),
    COUNT("Healthy", ".status.currentHealthy"),
    PAUSED,
    AGE,
    { NULL },
};
static const struct pl_column control_plane_columns[] = {
    NAME,
    TEXT("Cluster", ".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']"),
    TEXT("Available", CONDITION("Available")),
    COUNT("Desired", ".spec.replicas"),
    COUNT("Current", ".status.replicas"),
    COUNT("Ready", ".status.readyReplicas"),
    COUNT("Available", ".status.availableReplicas"),
    COUNT("Up-to-date", ".status.upToDateReplicas"),
    PAUSED,
    { "Initialized", "boolean", "", 0, CELL_PATH, ".status.initialization.controlPlaneInitialized", NULL },
    AGE,
    TEXT("Version", ".spec.version"),
    { NULL },
};
static const struct pl_column age_columns[] = { NAME, AGE, { NULL } };

const struct pl_merge_rule pl__merge_common[] = {
    { "metadata.finalizers", MERGE_SET, NULL },
    { "metadata.ownerReferences", MERGE_MAP, "uid", .whole = true },
    { NULL },
};
static const struct pl_merge_rule namespace_merges[] = {
    { "status.conditions", MERGE_MAP, "type" },
    { NULL },
};
static const struct pl_merge_rule node_merges[] = {
    { "spec.podCIDRs", MERGE_SET, NULL },
    { "status.addresses", MERGE_MAP, "type" },
    { "status.conditions", MERGE_MAP, "type" },
    { NULL },
};
static const struct pl_merge_rule pod_merges[] = {
    { "spec.containers", MERGE_MAP, "name" },
    { "spec.containers.env", MERGE_MAP, "name" },
    { "spec.containers.ports", MERGE_MAP, "containerPort,protocol" },
    { "spec.containers.volumeMounts", MERGE_MAP, "mountPath" },
    { "spec.initContainers", MERGE_MAP, "name" },
    { "spec.initContainers.env", MERGE_MAP, "name" },
    { "spec.initContainers.ports", MERGE_MAP, "containerPort,protocol" },
    { "spec.initContainers.volumeMounts", MERGE_MAP, "mountPath" },
    { "spec.imagePullSecrets", MERGE_MAP, "name" },
    { "spec.hostAliases", MERGE_MAP, "ip" },
    { "spec.volumes", MERGE_MAP, "name" },
    { "spec.nodeSelector", MERGE_ATOMIC, NULL },
    { "status.conditions", MERGE_MAP, "type" },
    { "status.podIPs", MERGE_MAP, "ip" },
    { "status.hostIPs", MERGE_ATOMIC, NULL },
    { NULL },
};
static const struct pl_merge_rule event_merges[] = {
    { "involvedObject", MERGE_ATOMIC, NULL },
    { "related", MERGE_ATOMIC, NULL },
    { NULL },
};
static const struct pl_merge_rule events_event_merges[] = {
    { "regarding", MERGE_ATOMIC, NULL },
    { "related", MERGE_ATOMIC, NULL },
    { NULL },
};
static const struct pl_merge_rule none_merges[] = { { NULL } };
static const struct pl_merge_rule condition_merges[] = {
    { "status.conditions", MERGE_MAP, "type" },
    { NULL },
};
static const struct pl_merge_rule cluster_merges[] = {
    { "spec.availabilityGates", MERGE_MAP, "conditionType" },
    { "status.conditions", MERGE_MAP, "type" },
    { "status.failureDomains", MERGE_MAP, "name" },
    { NULL },
};
static const struct pl_merge_rule machine_merges[] = {
    { "spec.readinessGates", MERGE_MAP, "conditionType" },
    { "status.conditions", MERGE_MAP, "type" },
    { NULL },
};
static const struct pl_merge_rule template_merges[] = {
    { "spec.selector", MERGE_ATOMIC, NULL },
    { "spec.template.spec.readinessGates", MERGE_MAP, "conditionType" },
    { "status.conditions", MERGE_MAP, "type" },
    { NULL },
};
static const struct pl_merge_rule pool_merges[] = {
    { "spec.template.spec.readinessGates", MERGE_MAP, "conditionType" },
    { "status.conditions", MERGE_MAP, "type" },
    { NULL },
};
static const struct pl_merge_rule health_check_merges[] = {
    { "spec.selector", MERGE_ATOMIC, NULL },
    { "status.conditions", MERGE_MAP, "type" },
    { NULL },
};
static const struct pl_merge_rule control_plane_merges[] = {
    { "spec.machineTemplate.spec.readinessGates", MERGE_MAP, "conditionType" },
    { "status.conditions", MERGE_MAP, "type" },
    { NULL },
};

static const char *const namespace_fields[] = { "status.phase", NULL };
static const char *const node_fields[] = { "spec.unschedulable", NULL };
static const char *const pod_fields[] = {
    "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
    "spec.hostNetwork", "status.phase", "status.podIP", "status.nominatedNodeName", NULL,
};
static const char *const secret_fields[] = { "type", NULL };
static const char *const event_fields[] = {
    "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
    "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath",
    "reason", "reportingComponent", "source", "type", NULL,
};
static const char *const events_event_fields[] = {
    "regarding.kind", "regarding.namespace", "regarding.name", "regarding.uid",
    "regarding.apiVersion", "regarding.resourceVersion", "regarding.fieldPath",
    "reason", "reportingController", "type", NULL,
};
static const char *const no_fields[] = { NULL };

#define CLUSTER_API "cluster.x-k8s.io", "v1beta2"
#define CONTROL_PLANE "controlplane.cluster.x-k8s.io", "v1beta2"
#define BOOTSTRAP "bootstrap.cluster.x-k8s.io", "v1beta2"
#define INFRASTRUCTURE "infrastructure.cluster.x-k8s.io", "v1beta2"
#define CUSTOM .category = "cluster-api", .namespaced = true, .custom = true, .selectable = no_fields
#define NAMES(...) .short_names = { __VA_ARGS__ }

/* The row of core Events, which those of events.k8s.io are another face of. */
enum { EVENT_ROW = 1 };

const struct pl_kind pl__kinds[] = {
    { "", "v1", "ConfigMap", "configmaps", "configmap", NAMES("cm"), .namespaced = true,
      .unconditional_put = true, .selectable = no_fields, .merges = none_merges,
      .columns = config_map_columns, .description = "ConfigMap holds configuration data for pods to consume." },
    { "", "v1", "Event", "events", "event", NAMES("ev"), .namespaced = true,
      .unconditional_put = true, .put_creates = true, .selectable = event_fields, .merges = event_merges,
      .columns = event_columns, .description = "Event is a report of an event somewhere in the cluster." },
    { "", "v1", "Namespace", "namespaces", "namespace", NAMES("ns"), .status = true,
      .unconditional_put = true, .delete_answers_object = true, .selectable = namespace_fields,
      .merges = namespace_merges, .columns = namespace_columns,
      .description = "Namespace provides a scope for Names." },
    { "", "v1", "Node", "nodes", "node", NAMES("no"), .status = true, .unconditional_put = true,
      .selectable = node_fields, .merges = node_merges, .columns = node_columns,
      .description = "Node is a worker node in Kubernetes." },
    { "", "v1", "Pod", "pods", "pod", NAMES("po"), .category = "all", .namespaced = true, .status = true,
      .unconditional_put = true, .delete_answers_object = true, .selectable = pod_fields,
      .merges = pod_merges, .columns = pod_columns,
      .description = "Pod is a collection of containers that can run on a host." },
    { "", "v1", "Secret", "secrets", "secret", .namespaced = true, .unconditional_put = true,
      .selectable = secret_fields, .merges = none_merges, .columns = secret_columns,
      .description = "Secret holds secret data of a certain type." },
    { "coordination.k8s.io", "v1", "Lease", "leases", "lease", .namespaced = true, .put_creates = true,
      .selectable = no_fields, .merges = none_merges, .columns = lease_columns,
      .description = "Lease defines a lease concept." },
    { "events.k8s.io", "v1", "Event", "events", "event", NAMES("ev"), .namespaced = true,
      .unconditional_put = true, .put_creates = true, .stored_as = &pl__kinds[EVENT_ROW],
      .selectable = events_event_fields, .merges = events_event_merges, .columns = event_columns,
      .description = "Event is a report of an event somewhere in the cluster." },
    { CLUSTER_API, "Cluster", "clusters", "cluster", NAMES("cl"), CUSTOM, .status = true,
      .merges = cluster_merges, .columns = cluster_columns,
      .description = "Cluster is the Schema for the clusters API." },
    { CLUSTER_API, "MachineDeployment", "machinedeployments", "machinedeployment", NAMES("md"), CUSTOM,
      .status = true, .scale = true, .merges = template_merges, .columns = machine_deployment_columns,
      .description = "MachineDeployment is the Schema for the machinedeployments API." },
    { CLUSTER_API, "MachineHealthCheck", "machinehealthchecks", "machinehealthcheck", NAMES("mhc", "mhcs"),
      CUSTOM, .status = true, .merges = health_check_merges, .columns = machine_health_check_columns,
      .description = "MachineHealthCheck is the Schema for the machinehealthchecks API." },
    { CLUSTER_API, "MachinePool", "machinepools", "machinepool", NAMES("mp"), CUSTOM, .status = true,
      .scale = true, .merges = pool_merges, .columns = machine_pool_columns,
      .description = "MachinePool is the Schema for the machinepools API." },
    { CLUSTER_API, "Machine", "machines", "machine", NAMES("ma"), CUSTOM, .status = true,
      .merges = machine_merges, .columns = machine_columns,
      .description = "Machine is the Schema for the machines API." },
    { CLUSTER_API, "MachineSet", "machinesets", "machineset", NAMES("ms"), CUSTOM, .status = true,
      .scale = true, .merges = template_merges, .columns = machine_set_columns,
      .description = "MachineSet is the Schema for the machinesets API." },
    { CONTROL_PLANE, "KubeadmControlPlane", "kubeadmcontrolplanes", "kubeadmcontrolplane", NAMES("kcp"),
      CUSTOM, .status = true, .scale = true, .merges = control_plane_merges,
      .columns = control_plane_columns,
      .description = "KubeadmControlPlane is the Schema for the kubeadmcontrolplanes API." },
    { BOOTSTRAP, "KubeadmConfig", "kubeadmconfigs", "kubeadmconfig", CUSTOM, .status = true,
      .merges = condition_merges, .columns = kubeadm_config_columns,
      .description = "KubeadmConfig is the Schema for the kubeadmconfigs API." },
    { INFRASTRUCTURE, "DevCluster", "devclusters", "devcluster", CUSTOM, .status = true,
      .merges = condition_merges, .columns = age_columns,
      .description = "DevCluster is the infrastructure of a Cluster of the playground." },
    { INFRASTRUCTURE, "DevMachine", "devmachines", "devmachine", CUSTOM, .status = true,
      .merges = condition_merges, .columns = age_columns,
      .description = "DevMachine is the infrastructure of a Machine of the playground." },
    { INFRASTRUCTURE, "DevMachineTemplate", "devmachinetemplates", "devmachinetemplate", CUSTOM,
      .status = true, .merges = none_merges, .columns = age_columns,
      .description = "DevMachineTemplate is what DevMachines are made from." },
};
/* clang-format on */

const size_t pl__kind_count = sizeof pl__kinds / sizeof pl__kinds[0];

const struct pl_kind *pl__kind_by_plural(struct pl_str group, struct pl_str version,
                                         struct pl_str plural)
{
    for (size_t i = 0; i < pl__kind_count; i++) {
        const struct pl_kind *k = &pl__kinds[i];
        if (pl__str_equal(pl__str(k->plural), plural) && pl__str_equal(pl__str(k->group), group) &&
            pl__str_equal(pl__str(k->version), version))
            return k;
    }
    return NULL;
}

/* "v1" has no group; the group of "a/b" is "a". */
static struct pl_str group_cut(struct pl_str *api_version)
{
    const char *slash = api_version->len ? memchr(api_version->ptr, '/', api_version->len) : NULL;
    struct pl_str group = { api_version->ptr, slash ? (size_t)(slash - api_version->ptr) : 0 };

    if (slash) {
        api_version->ptr += group.len + 1;
        api_version->len -= group.len + 1;
    }
    return group;
}

const struct pl_kind *pl__kind_by_name(struct pl_str api_version, struct pl_str kind)
{
    struct pl_str version = api_version, group = group_cut(&version);

    for (size_t i = 0; i < pl__kind_count; i++) {
        const struct pl_kind *k = &pl__kinds[i];
        if (pl__str_equal(pl__str(k->kind), kind) && pl__str_equal(pl__str(k->group), group) &&
            pl__str_equal(pl__str(k->version), version))
            return k;
    }
    return NULL;
}

bool pl__kind_is_core(const struct pl_kind *kind, const char *plural)
{
    return !kind->group[0] && strcmp(kind->plural, plural) == 0;
}

struct pl_str pl__kind_api_version(struct pl_arena *arena, const struct pl_kind *kind)
{
    if (!kind->group[0])
        return pl__str(kind->version);
    return pl__str_format(arena, "%s/%s", kind->group, kind->version);
}

struct pl_str pl__kind_resource(struct pl_arena *arena, const struct pl_kind *kind)
{
    if (!kind->group[0])
        return pl__str(kind->plural);
    return pl__str_format(arena, "%s.%s", kind->plural, kind->group);
}

const struct pl_merge_rule *pl__kind_merge(const struct pl_kind *kind, struct pl_str path)
{
    for (const struct pl_merge_rule *r = pl__merge_common; r->path; r++)
        if (pl__str_equal(pl__str(r->path), path))
            return r;
    for (const struct pl_merge_rule *r = kind->merges; r->path; r++)
        if (pl__str_equal(pl__str(r->path), path))
            return r;
    return NULL;
}

bool pl__kind_selects(const struct pl_kind *kind, struct pl_str field)
{
    if (pl__str_equal(field, PL_STR("metadata.name")) ||
        (kind->namespaced && pl__str_equal(field, PL_STR("metadata.namespace"))))
        return true;
    for (const char *const *f = kind->selectable; *f; f++)
        if (pl__str_equal(pl__str(*f), field))
            return true;
    return false;
}
