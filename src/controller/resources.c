#include "controller/internal.h"

/* clang-format off */
static const struct pl_field secret_fields[] = {
    PL_FIELD_SHAPE("metadata", F_OBJECT, struct pl_secret, meta, &pl__meta_shape),
    PL_FIELD("data.value", F_STR, struct pl_secret, value),
};
/* clang-format on */
static PL_SHAPE(secret_shape, struct pl_secret, secret_fields);

#define CLUSTER_API "cluster.x-k8s.io", "v1beta2", "v1beta1"
#define CONTROL_PLANE "controlplane.cluster.x-k8s.io", "v1beta2", "v1beta1"
#define CORE "", "v1", NULL

/* clang-format off */
const struct pl_resource pl__resources[RESOURCE_COUNT] = {
    /*                                   plural                 kind                   group, version, fallback  selector                           namespace      shape                            kind                       scoped optional */
    [RESOURCE_CLUSTERS]              = { "clusters",             "Cluster",             CLUSTER_API,   NULL,                                       NULL,          &pl__cluster_shape,              KIND_CLUSTER,              false, false },
    [RESOURCE_KCPS]                  = { "kubeadmcontrolplanes", "KubeadmControlPlane", CONTROL_PLANE, NULL,                                       NULL,          &pl__kcp_shape,                  KIND_KCP,                  false, false },
    [RESOURCE_MACHINES]              = { "machines",             "Machine",             CLUSTER_API,   NULL,                                       NULL,          &pl__machine_shape,              KIND_MACHINE,              false, false },
    [RESOURCE_MACHINE_DEPLOYMENTS]   = { "machinedeployments",   "MachineDeployment",   CLUSTER_API,   NULL,                                       NULL,          &pl__machine_deployment_shape,   KIND_MACHINE_DEPLOYMENT,   false, false },
    [RESOURCE_MACHINE_SETS]          = { "machinesets",          "MachineSet",          CLUSTER_API,   NULL,                                       NULL,          &pl__machine_set_shape,          KIND_MACHINE_SET,          false, false },
    [RESOURCE_MACHINE_HEALTH_CHECKS] = { "machinehealthchecks",  "MachineHealthCheck",  CLUSTER_API,   NULL,                                       NULL,          &pl__machine_health_check_shape, KIND_MACHINE_HEALTH_CHECK, false, true },
    [RESOURCE_MACHINE_POOLS]         = { "machinepools",         "MachinePool",         CLUSTER_API,   NULL,                                       NULL,          &pl__machine_pool_shape,         KIND_MACHINE_POOL,         false, true },
    [RESOURCE_SECRETS]               = { "secrets",              "Secret",              CORE,          "cluster.x-k8s.io%2Fcluster-name",          NULL,          &secret_shape,                   -1,                        false, false },
    [RESOURCE_NODES]                 = { "nodes",                "Node",                CORE,          "node-role.kubernetes.io%2Fcontrol-plane",  NULL,          &pl__node_shape,                 KIND_NODE,                 true,  false },
    [RESOURCE_PODS]                  = { "pods",                 "Pod",                 CORE,          "tier%3Dcontrol-plane",                     "kube-system", &pl__pod_shape,                  KIND_POD,                  false, false },
};
/* clang-format on */
