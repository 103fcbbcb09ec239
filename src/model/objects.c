#include "model/objects.h"

#include "base/time.h"

/* clang-format off */

static const struct pl_field owner_fields[] = {
    PL_FIELD("kind",       F_STR,  struct pl_owner_reference, kind),
    PL_FIELD("name",       F_STR,  struct pl_owner_reference, name),
    PL_FIELD("uid",        F_STR,  struct pl_owner_reference, uid),
    PL_FIELD("controller", F_BOOL, struct pl_owner_reference, controller),
};
static PL_SHAPE(owner_shape, struct pl_owner_reference, owner_fields);

static const struct pl_field label_fields[] = {
    PL_FIELD("cluster.x-k8s.io/cluster-name",         F_STR,     struct pl_labels, cluster_name),
    PL_FIELD("cluster.x-k8s.io/control-plane",        F_PRESENT, struct pl_labels, control_plane),
    PL_FIELD("cluster.x-k8s.io/deployment-name",      F_STR,     struct pl_labels, deployment_name),
    PL_FIELD("cluster.x-k8s.io/watch-filter",         F_STR,     struct pl_labels, watch_filter),
    PL_FIELD("node-role.kubernetes.io/control-plane", F_PRESENT, struct pl_labels, node_control_plane),
};
static PL_SHAPE(labels_shape, struct pl_labels, label_fields);

static const struct pl_field annotation_fields[] = {
    PL_FIELD("cluster.x-k8s.io/paused",            F_PRESENT, struct pl_annotations, paused),
    PL_FIELD("cluster.x-k8s.io/remediate-machine", F_PRESENT, struct pl_annotations, remediate_machine),
    PL_FIELD("controlplane.cluster.x-k8s.io/remediation-for",         F_STR, struct pl_annotations, remediation_for),
    PL_FIELD("controlplane.cluster.x-k8s.io/remediation-in-progress", F_STR, struct pl_annotations, remediation_in_progress),
    PL_FIELD("machinedeployment.clusters.x-k8s.io/revision",          F_STR, struct pl_annotations, revision),
    PL_FIELD("machineset.cluster.x-k8s.io/skip-preflight-checks",     F_STR, struct pl_annotations, skip_preflight_checks),
    PL_FIELD("topology.internal.cluster.x-k8s.io/upgrade-step",       F_STR, struct pl_annotations, upgrade_step),
    PL_FIELD("pre-terminate.delete.hook.machine.cluster.x-k8s.io/kcp-cleanup", F_PRESENT, struct pl_annotations, kcp_cleanup_hook),
    PL_FIELD("pre-terminate.delete.hook.machine.cluster.x-k8s.io",             F_PREFIX,  struct pl_annotations, other_terminate_hook),
};
static PL_SHAPE(annotations_shape, struct pl_annotations, annotation_fields);

static int read_resource_version(struct pl_json *j, void *destination);
static bool write_resource_version(struct pl_json_writer *w, const void *value);

static const struct pl_field meta_fields[] = {
    PL_FIELD("name",              F_STR,  struct pl_meta, name),
    PL_FIELD("namespace",         F_STR,  struct pl_meta, namespace_),
    PL_FIELD("uid",               F_STR,  struct pl_meta, uid),
    PL_FIELD("generation",        F_INT,  struct pl_meta, generation),
    PL_FIELD_BOTH("resourceVersion",      struct pl_meta, resource_version, read_resource_version, write_resource_version),
    PL_FIELD("creationTimestamp", F_TIME, struct pl_meta, created_ms),
    PL_FIELD("deletionTimestamp", F_TIME, struct pl_meta, deleted_ms),
    PL_FIELD_SHAPE("ownerReferences", F_LIST, struct pl_meta, owners,      &owner_shape),
    PL_FIELD_SHAPE("labels",          F_MAP,  struct pl_meta, labels,      &labels_shape),
    PL_FIELD_SHAPE("annotations",     F_MAP,  struct pl_meta, annotations, &annotations_shape),
    PL_FIELD_SKIP("managedFields"),
};
PL_SHAPE(pl__meta_shape, struct pl_meta, meta_fields);

#define METADATA(type) PL_FIELD_SHAPE("metadata", F_OBJECT, type, meta, &pl__meta_shape)

static const struct pl_field failure_domain_fields[] = {
    PL_FIELD("name",         F_STR,  struct pl_failure_domain, name),
    PL_FIELD("controlPlane", F_BOOL, struct pl_failure_domain, control_plane),
};
static PL_SHAPE(failure_domain_shape, struct pl_failure_domain, failure_domain_fields);
static const struct pl_field failure_domains_fields[] = {
    PL_FIELD_SHAPE("list", F_LIST, struct pl_failure_domains, list, &failure_domain_shape),
};
static PL_SHAPE(failure_domains_shape, struct pl_failure_domains, failure_domains_fields);
static int read_failure_domains(struct pl_json *j, void *destination);
static bool write_failure_domains(struct pl_json_writer *w, const void *value);

static const struct pl_field cluster_fields[] = {
    METADATA(struct pl_cluster),
    PL_FIELD("spec.controlPlaneEndpoint.host", F_STR,  struct pl_cluster, endpoint_host),
    PL_FIELD("spec.controlPlaneEndpoint.port", F_INT,  struct pl_cluster, endpoint_port),
    PL_FIELD("spec.controlPlaneRef.kind",      F_STR,  struct pl_cluster, control_plane_kind),
    PL_FIELD("spec.controlPlaneRef.name",      F_STR,  struct pl_cluster, control_plane_name),
    PL_FIELD("spec.topology.version",          F_STR,  struct pl_cluster, topology_version),
    PL_FIELD("spec.paused",                    F_BOOL, struct pl_cluster, paused),
    PL_FIELD("status.initialization.infrastructureProvisioned", F_BOOL, struct pl_cluster, infrastructure_provisioned),
    PL_FIELD("status.infrastructureReady",                      F_BOOL, struct pl_cluster, v1beta1_infrastructure_ready),
    PL_FIELD_BOTH_SHAPE("status.failureDomains", struct pl_cluster, failure_domains, read_failure_domains, write_failure_domains, &failure_domains_shape),
    PL_FIELD_SHAPE("status.conditions",         F_LIST, struct pl_cluster, conditions,         &pl__condition_shape),
    PL_FIELD_SHAPE("status.v1beta2.conditions", F_LIST, struct pl_cluster, v1beta1_conditions, &pl__condition_shape),
};
PL_SHAPE(pl__cluster_shape, struct pl_cluster, cluster_fields);

/* Absent and zero mean different things here; the rows below see -1 when the key is absent. */
static int read_optional_int(struct pl_json *j, void *destination);
static bool write_optional_int(struct pl_json_writer *w, const void *value);
static int read_external_etcd(struct pl_json *j, void *destination);
static bool write_external_etcd(struct pl_json_writer *w, const void *value);
static int read_count(struct pl_json *j, void *destination);
static bool write_count(struct pl_json_writer *w, const void *value);

#define COUNT(path, type, member) PL_FIELD_BOTH(path, type, replicas.member, read_count, write_count)

/* v1beta1 keeps the counts of v1beta2 elsewhere, as it does with conditions; its own ones of the same
 * name stand before them in an object from the API, where keys are sorted, and give way. */
#define REPLICA_COUNTS(type)                                        \
    COUNT("status.replicas", type, current),                        \
    COUNT("status.readyReplicas", type, ready),                     \
    COUNT("status.availableReplicas", type, available),             \
    COUNT("status.upToDateReplicas", type, up_to_date),             \
    PL_FIELD_CUSTOM("status.v1beta2.readyReplicas", type, replicas.ready, read_count),         \
    PL_FIELD_CUSTOM("status.v1beta2.availableReplicas", type, replicas.available, read_count), \
    PL_FIELD_CUSTOM("status.v1beta2.upToDateReplicas", type, replicas.up_to_date, read_count)

static const struct pl_field external_etcd_fields[] = {
    PL_FIELD("endpoints", F_STRINGS, struct pl_external_etcd, endpoints),
};
static PL_SHAPE(external_etcd_shape, struct pl_external_etcd, external_etcd_fields);

static const struct pl_field kcp_fields[] = {
    METADATA(struct pl_kcp),
    PL_FIELD("spec.version", F_STR, struct pl_kcp, version),
    COUNT("spec.replicas", struct pl_kcp, desired),
    PL_FIELD_BOTH("spec.remediation.minHealthyPeriodSeconds", struct pl_kcp, min_healthy_period_s, read_optional_int, write_optional_int),
    PL_FIELD_BOTH("spec.remediation.retryPeriodSeconds",      struct pl_kcp, retry_period_s,       read_optional_int, write_optional_int),
    PL_FIELD_BOTH("spec.remediation.maxRetry",                struct pl_kcp, max_retry,            read_optional_int, write_optional_int),
    PL_FIELD("spec.remediationStrategy.minHealthyPeriod", F_STR, struct pl_kcp, v1beta1_min_healthy_period),
    PL_FIELD("spec.remediationStrategy.retryPeriod",      F_STR, struct pl_kcp, v1beta1_retry_period),
    PL_FIELD_CUSTOM("spec.remediationStrategy.maxRetry",         struct pl_kcp, max_retry, read_optional_int),
    PL_FIELD_BOTH_SHAPE("spec.kubeadmConfigSpec.clusterConfiguration.etcd.external", struct pl_kcp, external, read_external_etcd, write_external_etcd, &external_etcd_shape),
    PL_FIELD("status.initialization.controlPlaneInitialized", F_BOOL, struct pl_kcp, initialized),
    PL_FIELD("status.initialized",                            F_BOOL, struct pl_kcp, v1beta1_initialized),
    PL_FIELD("status.version",                                F_STR,  struct pl_kcp, status_version),
    PL_FIELD_SHAPE("status.conditions",         F_LIST, struct pl_kcp, conditions,         &pl__condition_shape),
    REPLICA_COUNTS(struct pl_kcp),
    PL_FIELD_SHAPE("status.v1beta2.conditions", F_LIST, struct pl_kcp, v1beta1_conditions, &pl__condition_shape),
};
PL_SHAPE(pl__kcp_shape, struct pl_kcp, kcp_fields);

static const struct pl_field machine_fields[] = {
    METADATA(struct pl_machine),
    PL_FIELD("spec.providerID",             F_STR, struct pl_machine, provider_id),
    PL_FIELD("spec.infrastructureRef.kind", F_STR, struct pl_machine, infrastructure_kind),
    PL_FIELD("spec.failureDomain",          F_STR, struct pl_machine, failure_domain),
    PL_FIELD("status.nodeRef.name",         F_STR, struct pl_machine, node_name),
    PL_FIELD("status.deletion.nodeDrainStartTime", F_TIME, struct pl_machine, drain_started_ms),
    PL_FIELD_SHAPE("status.conditions",         F_LIST, struct pl_machine, conditions,         &pl__condition_shape),
    PL_FIELD_SHAPE("status.v1beta2.conditions", F_LIST, struct pl_machine, v1beta1_conditions, &pl__condition_shape),
};
PL_SHAPE(pl__machine_shape, struct pl_machine, machine_fields);

static const struct pl_field int_or_string_fields[] = {
    PL_FIELD("text", F_STR, struct pl_int_or_string, text),
};
static PL_SHAPE(int_or_string_shape, struct pl_int_or_string, int_or_string_fields);
static int read_int_or_string(struct pl_json *j, void *destination);
static bool write_int_or_string(struct pl_json_writer *w, const void *value);

static const struct pl_field machine_deployment_fields[] = {
    METADATA(struct pl_machine_deployment),
    COUNT("spec.replicas", struct pl_machine_deployment, desired),
    PL_FIELD_BOTH_SHAPE("spec.remediation.maxInFlight", struct pl_machine_deployment, max_in_flight, read_int_or_string, write_int_or_string, &int_or_string_shape),
    PL_FIELD_CUSTOM("spec.strategy.remediation.maxInFlight", struct pl_machine_deployment, max_in_flight, read_int_or_string),
    PL_FIELD_SHAPE("status.conditions",         F_LIST, struct pl_machine_deployment, conditions,         &pl__condition_shape),
    REPLICA_COUNTS(struct pl_machine_deployment),
    PL_FIELD_SHAPE("status.v1beta2.conditions", F_LIST, struct pl_machine_deployment, v1beta1_conditions, &pl__condition_shape),
};
PL_SHAPE(pl__machine_deployment_shape, struct pl_machine_deployment, machine_deployment_fields);

static const struct pl_field machine_set_fields[] = {
    METADATA(struct pl_machine_set),
    PL_FIELD("spec.template.spec.version",                  F_STR, struct pl_machine_set, version),
    PL_FIELD("spec.template.spec.bootstrap.configRef.kind", F_STR, struct pl_machine_set, bootstrap_config_kind),
};
PL_SHAPE(pl__machine_set_shape, struct pl_machine_set, machine_set_fields);

static const struct pl_field machine_health_check_fields[] = {
    METADATA(struct pl_machine_health_check),
    PL_FIELD("spec.clusterName", F_STR, struct pl_machine_health_check, cluster_name),
};
PL_SHAPE(pl__machine_health_check_shape, struct pl_machine_health_check, machine_health_check_fields);

static const struct pl_field machine_pool_fields[] = {
    METADATA(struct pl_machine_pool),
    PL_FIELD("spec.clusterName", F_STR, struct pl_machine_pool, cluster_name),
};
PL_SHAPE(pl__machine_pool_shape, struct pl_machine_pool, machine_pool_fields);

static const struct pl_field taint_fields[] = {
    PL_FIELD("key",    F_STR, struct pl_taint, key),
    PL_FIELD("effect", F_STR, struct pl_taint, effect),
};
static PL_SHAPE(taint_shape, struct pl_taint, taint_fields);

static int read_internal_ip(struct pl_json *j, void *destination);

/* What is left of the list is one string. */
static const struct pl_field node_address_fields[] = {
    { .path = "address", .path_len = sizeof "address" - 1, .kind = F_STR, .offset = 0 },
};
static PL_SHAPE(node_address_shape, struct pl_str, node_address_fields);

static const struct pl_field node_fields[] = {
    PL_FIELD("metadata.name", F_STR, struct pl_node, name),
    PL_FIELD_BOTH("metadata.resourceVersion", struct pl_node, resource_version, read_resource_version, write_resource_version),
    PL_FIELD_SHAPE("metadata.labels", F_MAP, struct pl_node, labels, &labels_shape),
    PL_FIELD_SKIP("metadata.managedFields"),
    PL_FIELD_SHAPE("spec.taints",       F_LIST, struct pl_node, taints,     &taint_shape),
    PL_FIELD_SHAPE("status.conditions", F_LIST, struct pl_node, conditions, &pl__condition_shape),
    PL_FIELD_CUSTOM_SHAPE("status.addresses",   struct pl_node, address, read_internal_ip, &node_address_shape),
};

const struct pl_shape pl__node_shape = {
    .fields = node_fields,
    .field_count = sizeof node_fields / sizeof node_fields[0],
    .size = sizeof(struct pl_node),
    .keep = pl__node_is_control_plane,
};

static int read_container_state(struct pl_json *j, void *destination);
static bool write_container_state(struct pl_json_writer *w, const void *value);

static const struct pl_field container_state_fields[] = {
    PL_FIELD("reason", F_STR, struct pl_container_state, reason),
};
static PL_SHAPE(container_state_shape, struct pl_container_state, container_state_fields);

static const struct pl_field container_status_fields[] = {
    PL_FIELD_BOTH_SHAPE("state.waiting",    struct pl_container_status, waiting,    read_container_state, write_container_state, &container_state_shape),
    PL_FIELD_BOTH_SHAPE("state.terminated", struct pl_container_status, terminated, read_container_state, write_container_state, &container_state_shape),
    PL_FIELD("lastState.terminated.exitCode", F_INT, struct pl_container_status, last_exit_code),
};
static PL_SHAPE(container_status_shape, struct pl_container_status, container_status_fields);

static const struct pl_field pod_fields[] = {
    PL_FIELD("metadata.name",      F_STR, struct pl_pod, name),
    PL_FIELD("metadata.namespace", F_STR, struct pl_pod, namespace_),
    PL_FIELD_BOTH("metadata.resourceVersion", struct pl_pod, resource_version, read_resource_version, write_resource_version),
    PL_FIELD_SKIP("metadata.managedFields"),
    PL_FIELD("status.phase",       F_STR, struct pl_pod, phase),
    PL_FIELD_SHAPE("status.conditions",        F_LIST, struct pl_pod, conditions, &pl__condition_shape),
    PL_FIELD_SHAPE("status.containerStatuses", F_LIST, struct pl_pod, containers, &container_status_shape),
};

const struct pl_shape pl__pod_shape = {
    .fields = pod_fields,
    .field_count = sizeof pod_fields / sizeof pod_fields[0],
    .size = sizeof(struct pl_pod),
    .keep = pl__pod_is_static,
};

#define GROUP_CLUSTER "cluster.x-k8s.io"
#define GROUP_CONTROL_PLANE "controlplane.cluster.x-k8s.io"

static const struct {
    struct pl_str name;
    struct pl_str group; /* empty: the core group, where v1 is the only version */
    const struct pl_shape *shape;
} kinds[KIND_COUNT] = {
    [KIND_CLUSTER]              = { PL_STR_INIT("Cluster"),             PL_STR_INIT(GROUP_CLUSTER),       &pl__cluster_shape },
    [KIND_KCP]                  = { PL_STR_INIT("KubeadmControlPlane"), PL_STR_INIT(GROUP_CONTROL_PLANE), &pl__kcp_shape },
    [KIND_MACHINE]              = { PL_STR_INIT("Machine"),             PL_STR_INIT(GROUP_CLUSTER),       &pl__machine_shape },
    [KIND_MACHINE_DEPLOYMENT]   = { PL_STR_INIT("MachineDeployment"),   PL_STR_INIT(GROUP_CLUSTER),       &pl__machine_deployment_shape },
    [KIND_MACHINE_SET]          = { PL_STR_INIT("MachineSet"),          PL_STR_INIT(GROUP_CLUSTER),       &pl__machine_set_shape },
    [KIND_MACHINE_HEALTH_CHECK] = { PL_STR_INIT("MachineHealthCheck"),  PL_STR_INIT(GROUP_CLUSTER),       &pl__machine_health_check_shape },
    [KIND_MACHINE_POOL]         = { PL_STR_INIT("MachinePool"),         PL_STR_INIT(GROUP_CLUSTER),       &pl__machine_pool_shape },
    [KIND_NODE]                 = { PL_STR_INIT("Node"),                PL_STR_INIT(""),                  &pl__node_shape },
    [KIND_POD]                  = { PL_STR_INIT("Pod"),                 PL_STR_INIT(""),                  &pl__pod_shape },
};

/* clang-format on */

/* Opaque by the letter, a decimal number in practice; anything else reads as none. */
static int read_resource_version(struct pl_json *j, void *destination)
{
    struct pl_str text;

    if (pl__json_string(j, &text) < 0)
        return -1;
    if (!pl__str_to_u64(text, destination))
        *(uint64_t *)destination = 0;
    return 0;
}

static bool write_resource_version(struct pl_json_writer *w, const void *value)
{
    const uint64_t *version = value;

    if (w)
        pl__json_write_str(w, pl__str_format(w->out->arena, "%llu", (unsigned long long)*version));
    return *version != 0;
}

/* A number of Machines, one higher; what cannot be one reads as absent: it is only shown. */
static int read_count(struct pl_json *j, void *destination)
{
    int64_t value;

    if (pl__json_int(j, &value) < 0)
        return -1;
    *(int32_t *)destination = value < 0 || value >= INT32_MAX ? 0 : (int32_t)value + 1;
    return 0;
}

static bool write_count(struct pl_json_writer *w, const void *value)
{
    const int32_t *count = value;

    if (w)
        pl__json_write_int(w, *count - 1);
    return *count != 0;
}

/* Stored one higher, so that a zeroed struct means "not set"; pl__object_settle() shifts it back. */
static int read_optional_int(struct pl_json *j, void *destination)
{
    const char *where = j->at;
    int64_t value;

    if (pl__json_int(j, &value) < 0)
        return -1;
    if (value < 0 || value > INT32_MAX)
        return pl__json_error(j, where, PL_INVALID, "expected a number from 0 to 2147483647");
    *(int64_t *)destination = value + 1;
    return 0;
}

static bool write_optional_int(struct pl_json_writer *w, const void *value)
{
    const int64_t *number = value;

    if (w)
        pl__json_write_int(w, *number);
    return *number >= 0;
}

static int read_external_etcd(struct pl_json *j, void *destination)
{
    struct pl_external_etcd *external = destination;

    external->present = true;
    return pl__json_decode(j, &external_etcd_shape, external);
}

/* v1beta1 had external etcd without endpoints. In v1beta2 it is the endpoints that make it external,
 * so it gets one without a name. */
static bool write_external_etcd(struct pl_json_writer *w, const void *value)
{
    const struct pl_external_etcd *external = value;

    if (!w)
        return external->present;
    pl__json_open_object(w);
    pl__json_write_key(w, "endpoints");
    pl__json_open_array(w);
    for (uint32_t i = 0; i < external->endpoints.count; i++)
        pl__json_write_str(w, external->endpoints.items[i]);
    if (external->endpoints.count == 0)
        pl__json_write_str(w, PL_STR(""));
    pl__json_close_array(w);
    pl__json_close_object(w);
    return true;
}

enum { FAILURE_DOMAINS_MAX = 1000 }; /* the API takes 100 */

/* A list of objects with a name; in v1beta1 the names are the keys of an object. */
static int read_failure_domains(struct pl_json *j, void *destination)
{
    struct pl_failure_domains *domains = destination;
    bool by_name = pl__json_peek(j) == JSON_OBJECT;
    struct pl_str name = { 0 };
    int more = by_name ? pl__json_object(j) : pl__json_array(j);

    domains->list.present = more == 0;
    while ((more = by_name ? pl__json_key(j, &name) : pl__json_item(j)) > 0) {
        uint32_t at = domains->list.count;
        if (at == FAILURE_DOMAINS_MAX)
            return pl__json_error(j, j->at, PL_INVALID, "more than %d failure domains",
                                  FAILURE_DOMAINS_MAX);
        domains->list.items =
            pl__arena_grow(j->arena, domains->list.items, at * sizeof *domains->list.items,
                           (at + 1) * sizeof *domains->list.items);
        if (by_name)
            domains->list.items[at].name = pl__str_copy(j->arena, name);
        if (pl__json_decode(j, &failure_domain_shape, &domains->list.items[at]) < 0)
            return -1;
        domains->list.count++;
    }
    return more;
}

static bool write_failure_domains(struct pl_json_writer *w, const void *value)
{
    const struct pl_failure_domains *domains = value;

    if (!w)
        return domains->list.count > 0;
    pl__json_open_array(w);
    for (uint32_t i = 0; i < domains->list.count; i++)
        pl__json_encode(w, &failure_domain_shape, &domains->list.items[i]);
    pl__json_close_array(w);
    return true;
}

static int read_int_or_string(struct pl_json *j, void *destination)
{
    struct pl_int_or_string *value = destination;

    value->is_number = pl__json_peek(j) == JSON_NUMBER;
    if (!value->is_number)
        return pl__json_string(j, &value->text);
    if (pl__json_int(j, &value->number) < 0)
        return -1;
    value->text = pl__str_format(j->arena, "%lld", (long long)value->number);
    return 0;
}

static bool write_int_or_string(struct pl_json_writer *w, const void *value)
{
    const struct pl_int_or_string *v = value;

    if (w && v->is_number)
        pl__json_write_int(w, v->number);
    else if (w)
        pl__json_write_str(w, v->text);
    return v->text.len > 0;
}

struct address_item {
    struct pl_str type, address;
};
static const struct pl_field address_item_fields[] = {
    PL_FIELD("type", F_STR, struct address_item, type),
    PL_FIELD("address", F_STR, struct address_item, address),
};
static PL_SHAPE(address_item_shape, struct address_item, address_item_fields);

static int read_internal_ip(struct pl_json *j, void *destination)
{
    struct pl_str *address = destination;
    int more = pl__json_array(j);

    while (more >= 0 && (more = pl__json_item(j)) > 0) {
        struct address_item item = { { 0 }, { 0 } };
        if (pl__json_decode(j, &address_item_shape, &item) < 0)
            return -1;
        if (!address->len && pl__str_equal(item.type, PL_STR("InternalIP")))
            *address = item.address;
    }
    return more;
}

static int read_container_state(struct pl_json *j, void *destination)
{
    struct pl_container_state *state = destination;

    state->present = true;
    return pl__json_decode(j, &container_state_shape, state);
}

static bool write_container_state(struct pl_json_writer *w, const void *value)
{
    const struct pl_container_state *state = value;

    if (w)
        pl__json_encode(w, &container_state_shape, state);
    return state->present;
}

const struct pl_str pl__static_pods[POD_COUNT] = {
    PL_STR_INIT("kube-apiserver-"),
    PL_STR_INIT("kube-controller-manager-"),
    PL_STR_INIT("kube-scheduler-"),
    PL_STR_INIT("etcd-"),
};

bool pl__node_is_control_plane(void *node)
{
    return ((const struct pl_node *)node)->labels.node_control_plane;
}

bool pl__pod_is_static(void *pod)
{
    const struct pl_pod *p = pod;

    if (!pl__str_equal(p->namespace_, PL_STR("kube-system")))
        return false;
    for (int i = 0; i < POD_COUNT; i++) {
        if (pl__str_starts_with(p->name, pl__static_pods[i]))
            return true;
    }
    return false;
}

const char *pl__kind_name(enum pl_model_kind kind)
{
    return kind < KIND_COUNT ? kinds[kind].name.ptr : "";
}

const char *pl__kind_group(enum pl_model_kind kind)
{
    return kinds[kind].group.ptr;
}

const struct pl_shape *pl__kind_shape(enum pl_model_kind kind)
{
    return kinds[kind].shape;
}

int pl__kind_find(struct pl_str api_version, struct pl_str kind, bool *v1beta1)
{
    const char *slash = api_version.len ? memchr(api_version.ptr, '/', api_version.len) : NULL;
    struct pl_str group = { api_version.ptr, slash ? (size_t)(slash - api_version.ptr) : 0 };
    struct pl_str version = api_version;

    if (slash) {
        version.ptr = slash + 1;
        version.len = api_version.len - group.len - 1;
    }
    *v1beta1 = false;
    for (int i = 0; i < KIND_COUNT; i++) {
        if (!pl__str_equal(kind, kinds[i].name) || !pl__str_equal(group, kinds[i].group))
            continue;
        if (group.len == 0)
            return pl__str_equal(version, PL_STR("v1")) ? i : -1;
        *v1beta1 = pl__str_equal(version, PL_STR("v1beta1"));
        return *v1beta1 || pl__str_equal(version, PL_STR("v1beta2")) ? i : -1;
    }
    return KIND_OTHER;
}

/* v1beta1 has durations as text; absent stays absent. */
static int settle_period(struct pl_str text, int64_t *seconds)
{
    if (text.len && (!pl__duration_parse(text, seconds) || *seconds < 0))
        return -1;
    return 0;
}

/* Takes the conditions from where v1beta1 keeps them, and leaves nothing there: what an object is
 * packed into would hold it twice. */
static void conditions_settle(struct pl_conditions *conditions, struct pl_conditions *elsewhere,
                              bool v1beta1)
{
    if (v1beta1)
        *conditions = *elsewhere;
    *elsewhere = (struct pl_conditions){ 0 };
}

static int kcp_settle(struct pl_kcp *kcp, bool v1beta1, const char **what)
{
    conditions_settle(&kcp->conditions, &kcp->v1beta1_conditions, v1beta1);
    kcp->min_healthy_period_s--;
    kcp->retry_period_s--;
    kcp->max_retry--;
    kcp->etcd_managed = v1beta1 ? !kcp->external.present : kcp->external.endpoints.count == 0;
    kcp->external.present = !kcp->etcd_managed;
    if (v1beta1) {
        kcp->initialized = kcp->v1beta1_initialized;
        *what = "spec.remediationStrategy.minHealthyPeriod";
        if (settle_period(kcp->v1beta1_min_healthy_period, &kcp->min_healthy_period_s) < 0)
            return -1;
        *what = "spec.remediationStrategy.retryPeriod";
        if (settle_period(kcp->v1beta1_retry_period, &kcp->retry_period_s) < 0)
            return -1;
    }
    kcp->v1beta1_initialized = false;
    kcp->v1beta1_min_healthy_period = kcp->v1beta1_retry_period = (struct pl_str){ 0 };
    return 0;
}

int pl__object_settle(enum pl_model_kind kind, void *object, bool v1beta1, const char **what)
{
    switch (kind) {
    case KIND_CLUSTER: {
        struct pl_cluster *cluster = object;
        conditions_settle(&cluster->conditions, &cluster->v1beta1_conditions, v1beta1);
        if (v1beta1)
            cluster->infrastructure_provisioned = cluster->v1beta1_infrastructure_ready;
        cluster->v1beta1_infrastructure_ready = false;
        return 0;
    }
    case KIND_KCP:
        return kcp_settle(object, v1beta1, what);
    case KIND_MACHINE: {
        struct pl_machine *machine = object;
        conditions_settle(&machine->conditions, &machine->v1beta1_conditions, v1beta1);
        return 0;
    }
    case KIND_MACHINE_DEPLOYMENT: {
        struct pl_machine_deployment *md = object;
        conditions_settle(&md->conditions, &md->v1beta1_conditions, v1beta1);
        return 0;
    }
    default:
        return 0;
    }
}

int pl__object_decode(struct pl_json *j, enum pl_model_kind kind, bool v1beta1, void *object)
{
    const char *where = j->at;
    const char *what = "";

    if (pl__json_decode(j, kinds[kind].shape, object) < 0)
        return -1;
    if (pl__object_settle(kind, object, v1beta1, &what) < 0)
        return pl__json_error(j, where, PL_INVALID, "%s: expected a duration such as 1h30m", what);

    /* Every struct but Pod and Node starts with its metadata; those two start with the name. */
    struct pl_str name = kind == KIND_NODE  ? ((struct pl_node *)object)->name
                         : kind == KIND_POD ? ((struct pl_pod *)object)->name
                                            : ((struct pl_meta *)object)->name;
    if (name.len == 0)
        return pl__json_error(j, where, PL_INVALID, "%s without metadata.name",
                              kinds[kind].name.ptr);
    return 0;
}

bool pl__owner_is(const struct pl_owner_reference *owner, struct pl_str kind,
                  const struct pl_meta *meta)
{
    if (!pl__str_equal(owner->kind, kind))
        return false;
    if (owner->uid.len && meta->uid.len)
        return pl__str_equal(owner->uid, meta->uid);
    return pl__str_equal(owner->name, meta->name);
}

const struct pl_owner_reference *pl__controller_of(const struct pl_meta *meta)
{
    for (uint32_t i = 0; i < meta->owners.count; i++) {
        if (meta->owners.items[i].controller)
            return &meta->owners.items[i];
    }
    return NULL;
}
