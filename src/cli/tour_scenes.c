/* The scenes of the tour, in the order in which they are played. Row ids are those of docs/tables.md.
 *
 * First a control plane that lives, and what can happen to it: that is what people came for. Then the stage, where
 * one comes into being step by step; then the end of one. */
#include "cli/tour.h"

/* clang-format off */

#define LABELLED "\"labels\":{\"cluster.x-k8s.io/cluster-name\":\"{cluster}\"}"
#define OWNED_BY(kind_, version_, name_)                                                       \
    "\"ownerReferences\":[{\"apiVersion\":\"" version_ "\",\"kind\":\"" kind_ "\",\"name\":\"" \
    name_ "\",\"uid\":\"{uid}\",\"controller\":true,\"blockOwnerDeletion\":true}]"
#define CONTROL_PLANE "controlplane.cluster.x-k8s.io/v1beta2"
#define CAPI "cluster.x-k8s.io/v1beta2"
#define INFRASTRUCTURE_REF(kind_) \
    "\"infrastructureRef\":{\"apiGroup\":\"infrastructure.cluster.x-k8s.io\",\"kind\":\"" kind_ "\",\"name\":\"{cluster}\"}"

/* What a healthy control plane of the fleet says, and a MachineDeployment beside it. */
#define HEALTHY                                                            \
    { { "EtcdClusterHealthy/4", NULL, EVERY_TOUR, ROW_ETCD },              \
      { "ControlPlaneComponentsHealthy/10", NULL, EVERY_TOUR, 0 },         \
      { "Remediating/1", NULL, EVERY_TOUR, 0 },                            \
      { "MachineDeployment.Remediating/1", NULL, EVERY_TOUR, 0 } }
/* What the stage says while it can be read and has no Machine. */
#define EMPTY                                                    \
    { { "EtcdClusterHealthy/0", NULL, EVERY_TOUR, 0 },       \
      { "ControlPlaneComponentsHealthy/11", NULL, EVERY_TOUR, 0 } }
#define ROW(id_) { (id_), NULL, EVERY_TOUR, 0 }
#define ETCD_ROW(id_) { (id_), NULL, EVERY_TOUR, ROW_ETCD }

#define MARKED                                                                                                       \
    "\"status\":{\"conditions\":[{\"type\":\"HealthCheckSucceeded\",\"status\":\"False\",\"reason\":"                  \
    "\"UnhealthyNode\",\"message\":\"\",\"lastTransitionTime\":\"{now}\"},{\"type\":\"OwnerRemediated\",\"status\":"     \
    "\"False\",\"reason\":\"WaitingForRemediation\",\"message\":\"{long}\",\"lastTransitionTime\":\"{now}\"}]}"

#define KUBECONFIG(value_) "\"type\":\"cluster.x-k8s.io/secret\",\"data\":{\"value\":\"" value_ "\"}"
#define RENEW(value_)                                                                     \
    { .verb = TOUR_MERGE, .kind = "Secret", .name = "{cluster}-kubeconfig",               \
      .body = "{\"data\":{\"value\":\"" value_ "\"}}" }

#define INITIALIZED                                                                                                     \
    "\"initialization\":{\"controlPlaneInitialized\":true},\"conditions\":[{\"type\":\"Initialized\",\"status\":\"True\"," \
    "\"reason\":\"Initialized\",\"message\":\"\",\"lastTransitionTime\":\"{now}\"}"

/* A finalizer of the tour's own keeps an object that is deleted, so that its last state can be seen. */
#define OUR_FINALIZER "\"kubeadm.controlplane.cluster.x-k8s.io\""
#define HOLD(kind_, name_, others_)                         \
    { .verb = TOUR_MERGE, .kind = (kind_), .name = (name_), \
      .body = "{\"metadata\":{\"finalizers\":[" others_ "\"sim.plimsoll.dev/tour\"]}}" }
#define LET_GO(kind_, name_)                                \
    { .verb = TOUR_MERGE, .kind = (kind_), .name = (name_), \
      .body = "{\"metadata\":{\"finalizers\":null}}" }

const struct pl_scene pl__scenes[] = {
    { .actor = ACTOR_FIRST,
      .title = "a control plane that lives",
      .breaks = "nothing",
      .expect = "everything is True, and nothing is being done",
      .rows = { ETCD_ROW("EtcdClusterHealthy/4"), ROW("ControlPlaneComponentsHealthy/10"), ROW("Deleting/1"), ROW("Remediating/1"),
                ROW("MachineDeployment.Remediating/1") },
      .timeout_s = 60 },
    { .actor = ACTOR_FIRST,
      .title = "a static Pod crashes",
      .breaks = "fault pod-crash:kube-scheduler on Machine {machine}",
      .expect = "the Machine's SchedulerPodHealthy turns False, and the control plane's condition names it",
      .steps = { { .verb = TOUR_FAULT, .kind = "Machine", .name = "{machine}", .body = "pod-crash:kube-scheduler" } },
      .rows = { ROW("ControlPlaneComponentsHealthy/8"),
                { "PodHealthy/6", "Running, a container waiting, one has crashed", EVERY_TOUR, 0 } },
      .heals = "the fault is cleared",
      .undo = { { .verb = TOUR_FAULT, .kind = "Machine", .name = "{machine}" } },
      .healed = HEALTHY,
      .timeout_s = 30 },
    { .actor = ACTOR_FIRST,
      .title = "a static Pod is gone",
      .breaks = "fault pod-gone:kube-controller-manager on Machine {machine}",
      .expect = "the Pod does not exist, and the control plane's condition says so",
      .steps = { { .verb = TOUR_FAULT, .kind = "Machine", .name = "{machine}", .body = "pod-gone:kube-controller-manager" } },
      .rows = { ROW("ControlPlaneComponentsHealthy/8"), { "PodHealthy/6", "Pod not found", EVERY_TOUR, 0 } },
      .heals = "the fault is cleared",
      .undo = { { .verb = TOUR_FAULT, .kind = "Machine", .name = "{machine}" } },
      .healed = HEALTHY,
      .timeout_s = 30 },
    { .actor = ACTOR_FIRST,
      .title = "an etcd member is out of space",
      .breaks = "fault etcd-nospace on Machine {machine}",
      .expect = "etcd raises an alarm, and EtcdClusterHealthy turns False",
      .steps = { { .verb = TOUR_FAULT, .kind = "Machine", .name = "{machine}", .body = "etcd-nospace" } },
      .rows = { ROW("EtcdClusterHealthy/5"),
                { "EtcdMemberHealthy/3", "the member has alarms", ONLY_TABLES_TOUR, 0 } },
      .heals = "the alarm is cleared",
      .undo = { { .verb = TOUR_FAULT, .kind = "Machine", .name = "{machine}" } },
      .healed = HEALTHY,
      .timeout_s = 45, .etcd = 1, .nudges = true },
    { .actor = ACTOR_FIRST,
      .title = "an etcd member that nobody knows",
      .breaks = "fault etcd-ghost on Cluster {cluster}",
      .expect = "members and Machines do not match",
      .steps = { { .verb = TOUR_FAULT, .kind = "Cluster", .name = "{cluster}", .body = "etcd-ghost" } },
      .rows = { ROW("EtcdClusterHealthy/7") },
      .heals = "the member is removed",
      .undo = { { .verb = TOUR_FAULT, .kind = "Cluster", .name = "{cluster}" } },
      .healed = HEALTHY,
      .timeout_s = 45, .etcd = 1, .nudges = true },
    { .actor = ACTOR_FIRST,
      .title = "etcd shows a stranger's certificate",
      .breaks = "fault bad-certificate on Cluster {cluster}",
      .expect = "no member can be asked, and nobody knows how etcd is",
      .steps = { { .verb = TOUR_FAULT, .kind = "Cluster", .name = "{cluster}", .body = "bad-certificate" } },
      .rows = { ROW("EtcdClusterHealthy/3") },
      .heals = "the members have their own again",
      .undo = { { .verb = TOUR_FAULT, .kind = "Cluster", .name = "{cluster}" } },
      .healed = HEALTHY,
      .timeout_s = 60, .etcd = 1, .nudges = true },
    { .actor = ACTOR_FIRST,
      .title = "a cluster is cut off",
      .breaks = "fault network-cut on Cluster {cluster}, and its kubeconfig is renewed",
      .expect = "the conditions stay as they are, for the grace period",
      .steps = { { .verb = TOUR_FAULT, .kind = "Cluster", .name = "{cluster}", .body = "network-cut" }, RENEW("{kubeconfig}") },
      .rows = { ROW("Ladder/L4"), ROW("ControlPlaneComponentsHealthy/4") },
      .timeout_s = 30 },
    { .actor = ACTOR_FIRST,
      .title = "it is back, and lists no Nodes",
      .breaks = "fault nodes-refused on Cluster {cluster} in place of network-cut",
      .expect = "the connection stands, and nothing can be inspected",
      .steps = { { .verb = TOUR_FAULT, .kind = "Cluster", .name = "{cluster}", .body = "nodes-refused" }, RENEW("{kubeconfig}") },
      .rows = { ETCD_ROW("EtcdClusterHealthy/2"), ROW("ControlPlaneComponentsHealthy/6"), ROW("PodHealthy/0") },
      .heals = "Nodes are listed again",
      .undo = { { .verb = TOUR_FAULT, .kind = "Cluster", .name = "{cluster}" }, RENEW("{kubeconfig}") },
      .healed = HEALTHY,
      .timeout_s = 60 },
    { .actor = ACTOR_FIRST,
      .title = "a control plane machine dies",
      .breaks = "faults kubelet-down and etcd-kill on Machine {last}",
      .expect = "its Node turns Unknown, its health check fails, and it is replaced: its etcd member leaves, a new one joins",
      .steps = { { .verb = TOUR_FAULT, .kind = "Machine", .name = "{last}", .body = "kubelet-down,etcd-kill" } },
      .rows = { ROW("ControlPlaneComponentsHealthy/9"), ROW("Remediating/3") },
      .heals = "by itself: the replacement is up",
      .healed = HEALTHY,
      .timeout_s = 90 },
    { .actor = ACTOR_FIRST,
      .title = "a worker dies",
      .breaks = "fault unhealthy on Machine {worker}",
      .expect = "its health check fails, and its MachineSet replaces it",
      .steps = { { .verb = TOUR_FAULT, .kind = "Machine", .name = "{worker}", .body = "unhealthy" } },
      .rows = { ROW("MachineDeployment.Remediating/3") },
      .heals = "by itself: another one is up",
      .healed = HEALTHY,
      .timeout_s = 60 },

    { .actor = ACTOR_STAGE,
      .title = "a Cluster is created",
      .breaks = "nothing: a Cluster and its KubeadmControlPlane are there, their infrastructure is not",
      .expect = "both health conditions are Unknown and wait for the infrastructure",
      .steps = {
          { .verb = TOUR_CREATE, .kind = "Namespace", .name = "stage", .body = "" },
          { .verb = TOUR_CREATE, .kind = "Cluster", .name = "{cluster}",
            .body = "\"spec\":{\"controlPlaneRef\":{\"apiGroup\":\"controlplane.cluster.x-k8s.io\",\"kind\":"
                    "\"KubeadmControlPlane\",\"name\":\"{cluster}-cp\"}," INFRASTRUCTURE_REF("DevCluster") "}" },
          { .verb = TOUR_CREATE, .kind = "KubeadmControlPlane", .name = "{cluster}-cp", .owner = "Cluster/{cluster}",
            .meta = LABELLED "," OWNED_BY("Cluster", CAPI, "{cluster}")
                    ",\"finalizers\":[" OUR_FINALIZER "]",
            .body = "\"spec\":{\"replicas\":3,\"version\":\"v1.34.2\",\"machineTemplate\":{\"spec\":{"
                    INFRASTRUCTURE_REF("DevMachineTemplate") "}},\"kubeadmConfigSpec\":{\"format\":\"cloud-config\"}}" },
          { .verb = TOUR_CREATE, .kind = "DevMachineTemplate", .name = "{cluster}",
            .owner = "KubeadmControlPlane/{cluster}-cp",
            .meta = LABELLED "," OWNED_BY("KubeadmControlPlane", CONTROL_PLANE, "{cluster}-cp"),
            .body = "\"spec\":{\"template\":{\"spec\":{}}}" } },
      .rows = { ROW("Ladder/L00") },
      .timeout_s = 15 },
    { .actor = ACTOR_STAGE,
      .title = "its infrastructure is there",
      .breaks = "nothing: the infrastructure is provisioned, the endpoint is not known yet",
      .expect = "both wait for the endpoint",
      .steps = { { .verb = TOUR_STATUS, .kind = "Cluster", .name = "{cluster}",
                   .body = "\"status\":{\"initialization\":{\"infrastructureProvisioned\":true}}" } },
      .rows = { ROW("Ladder/L0") },
      .timeout_s = 15 },
    { .actor = ACTOR_STAGE,
      .title = "it has an endpoint",
      .breaks = "nothing: no control plane Machine has come up yet",
      .expect = "both wait for the control plane to be initialized",
      .steps = { { .verb = TOUR_MERGE, .kind = "Cluster", .name = "{cluster}",
                   .body = "{\"spec\":{\"controlPlaneEndpoint\":{\"host\":\"127.0.0.1\",\"port\":6443}}}" } },
      .rows = { ROW("Ladder/L1"), ROW("ControlPlaneComponentsHealthy/1") },
      .timeout_s = 15 },
    { .actor = ACTOR_STAGE,
      .title = "it is initialized, and nobody has a kubeconfig",
      .breaks = "there is no Secret to connect with",
      .expect = "the connection is not established yet; what the conditions said stays",
      .steps = { { .verb = TOUR_STATUS, .kind = "KubeadmControlPlane", .name = "{cluster}-cp",
                   .body = "\"status\":{" INITIALIZED "]}" } },
      .rows = { ROW("Ladder/L2"), ROW("ControlPlaneComponentsHealthy/2") },
      .timeout_s = 15 },
    { .actor = ACTOR_STAGE,
      .title = "its kubeconfig is no kubeconfig",
      .breaks = "the Secret holds something else",
      .expect = "an error, and both conditions say so at once",
      .steps = { { .verb = TOUR_CREATE, .kind = "Secret", .name = "{cluster}-kubeconfig", .meta = LABELLED,
                   .body = KUBECONFIG("{garbage}") } },
      .rows = { ROW("Ladder/L5"), ROW("ControlPlaneComponentsHealthy/5") },
      .timeout_s = 15 },
    { .actor = ACTOR_STAGE,
      .title = "and stays that way",
      .breaks = "nothing more; the grace period passes",
      .expect = "both conditions turn to ConnectionDown",
      .rows = { ROW("Ladder/L3"), ROW("ControlPlaneComponentsHealthy/3") },
      .timeout_s = 60 },
    { .actor = ACTOR_STAGE,
      .title = "the right kubeconfig",
      .breaks = "nothing: the cluster can be read, and it is empty",
      .expect = "no Machine reports anything",
      .steps = { RENEW("{kubeconfig}") },
      .rows = EMPTY,
      .timeout_s = 30 },
    { .actor = ACTOR_STAGE,
      .title = "a Node that belongs to no Machine",
      .breaks = "a control plane Node is registered by hand",
      .expect = "both conditions name it",
      .steps = { { .verb = TOUR_CREATE, .workload = true, .kind = "Node", .name = "stranger",
                   .meta = "\"labels\":{\"node-role.kubernetes.io/control-plane\":\"\"}",
                   .body = "\"spec\":{\"providerID\":\"sim:///stranger\"}" } },
      .rows = { ROW("EtcdClusterHealthy/8"), ROW("ControlPlaneComponentsHealthy/7") },
      .heals = "the Node is deleted",
      .undo = { { .verb = TOUR_DELETE, .workload = true, .kind = "Node", .name = "stranger" } },
      .healed = EMPTY,
      .timeout_s = 15 },
    { .actor = ACTOR_STAGE,
      .title = "a Machine whose Node does not come",
      .breaks = "a control plane Machine has a providerID, and no Node has it",
      .expect = "nobody can say how it is",
      .steps = { { .verb = TOUR_CREATE, .kind = "Machine", .name = "{cluster}-cp-1",
                   .owner = "KubeadmControlPlane/{cluster}-cp",
                   .meta = "\"labels\":{\"cluster.x-k8s.io/cluster-name\":\"{cluster}\",\"cluster.x-k8s.io/control-plane\":\"\"},"
                           OWNED_BY("KubeadmControlPlane", CONTROL_PLANE, "{cluster}-cp"),
                   .body = "\"spec\":{\"clusterName\":\"{cluster}\",\"version\":\"v1.34.2\",\"providerID\":\"sim:///nowhere\","
                           "\"bootstrap\":{\"dataSecretName\":\"none\"}," INFRASTRUCTURE_REF("DevMachine") "}" } },
      .rows = { ROW("EtcdClusterHealthy/6"), ROW("ControlPlaneComponentsHealthy/9") },
      .timeout_s = 15 },
    { .actor = ACTOR_STAGE,
      .title = "unhealthy, and nobody asked for a remedy",
      .breaks = "its health check fails, and nothing marks it for remediation",
      .expect = "Remediating stays False and names it",
      .steps = { { .verb = TOUR_STATUS, .kind = "Machine", .name = "{cluster}-cp-1",
                   .body = "\"status\":{\"conditions\":[{\"type\":\"HealthCheckSucceeded\",\"status\":\"False\",\"reason\":"
                           "\"UnhealthyNode\",\"message\":\"\",\"lastTransitionTime\":\"{now}\"}]}" } },
      .rows = { ROW("Remediating/2") },
      .timeout_s = 15 },
    { .actor = ACTOR_STAGE,
      .title = "more was said of it than fits a condition",
      .breaks = "it is marked for remediation, with the longest message there can be",
      .expect = "messages cannot be merged, and Remediating is Unknown until the mark is written anew",
      .steps = { { .verb = TOUR_STATUS, .kind = "Machine", .name = "{cluster}-cp-1", .body = MARKED } },
      .rows = { ROW("Remediating/4") },
      .heals = "the Machine is deleted",
      .undo = { { .verb = TOUR_DELETE, .kind = "Machine", .name = "{cluster}-cp-1" } },
      .healed = EMPTY,
      .timeout_s = 15 },
    { .actor = ACTOR_STAGE,
      .title = "a worker, the same way",
      .breaks = "a Machine of a MachineDeployment is unhealthy, and nothing marks it",
      .expect = "the MachineDeployment's Remediating stays False and names it",
      .steps = {
          { .verb = TOUR_CREATE, .kind = "MachineDeployment", .name = "{cluster}-md", .meta = LABELLED,
            .body = "\"spec\":{\"clusterName\":\"{cluster}\",\"replicas\":1,\"selector\":{\"matchLabels\":{\"a\":\"b\"}},\"template\":{"
                    "\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":{\"clusterName\":\"{cluster}\",\"version\":\"v1.34.2\",\"bootstrap\":{"
                    "\"dataSecretName\":\"none\"}," INFRASTRUCTURE_REF("DevMachineTemplate") "}}}" },
          { .verb = TOUR_CREATE, .kind = "MachineSet", .name = "{cluster}-md-1", .owner = "MachineDeployment/{cluster}-md",
            .meta = LABELLED "," OWNED_BY("MachineDeployment", CAPI, "{cluster}-md"),
            .body = "\"spec\":{\"clusterName\":\"{cluster}\",\"replicas\":1,\"selector\":{\"matchLabels\":{\"a\":\"b\"}},\"template\":{"
                    "\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":{\"clusterName\":\"{cluster}\",\"version\":\"v1.34.2\",\"bootstrap\":{"
                    "\"dataSecretName\":\"none\"}," INFRASTRUCTURE_REF("DevMachineTemplate") "}}}" },
          { .verb = TOUR_CREATE, .kind = "Machine", .name = "{cluster}-md-1-1", .owner = "MachineSet/{cluster}-md-1",
            .meta = LABELLED "," OWNED_BY("MachineSet", CAPI, "{cluster}-md-1"),
            .body = "\"spec\":{\"clusterName\":\"{cluster}\",\"version\":\"v1.34.2\",\"bootstrap\":{\"dataSecretName\":\"none\"},"
                    INFRASTRUCTURE_REF("DevMachine") "}" },
          { .verb = TOUR_STATUS, .kind = "Machine", .name = "{cluster}-md-1-1",
            .body = "\"status\":{\"conditions\":[{\"type\":\"HealthCheckSucceeded\",\"status\":\"False\",\"reason\":"
                    "\"UnhealthyNode\",\"message\":\"\",\"lastTransitionTime\":\"{now}\"}]}" } },
      .rows = { ROW("MachineDeployment.Remediating/2") },
      .timeout_s = 15 },
    { .actor = ACTOR_STAGE,
      .title = "and more was said of the worker than fits",
      .breaks = "it is marked for remediation, with the longest message there can be",
      .expect = "the MachineDeployment's Remediating is Unknown until the mark is written anew",
      .steps = { { .verb = TOUR_STATUS, .kind = "Machine", .name = "{cluster}-md-1-1", .body = MARKED } },
      /* Until plimsoll itself writes why it waits with the remedy, which may be at once. */
      .rows = { { "MachineDeployment.Remediating/4", NULL, EVERY_TOUR, ROW_FLEETING } },
      .heals = "the MachineDeployment is deleted with what belongs to it",
      .undo = { { .verb = TOUR_DELETE, .kind = "Machine", .name = "{cluster}-md-1-1" },
                { .verb = TOUR_DELETE, .kind = "MachineSet", .name = "{cluster}-md-1" },
                { .verb = TOUR_DELETE, .kind = "MachineDeployment", .name = "{cluster}-md" } },
      .healed = EMPTY,
      .timeout_s = 15 },
    { .actor = ACTOR_STAGE,
      .title = "the connection breaks",
      .breaks = "the kubeconfig leads to a port where nobody listens",
      .expect = "what the conditions said stays, for the grace period",
      .steps = { RENEW("{dead}") },
      .rows = { ROW("Ladder/L4"), ROW("ControlPlaneComponentsHealthy/4") },
      .heals = "the kubeconfig is put right",
      .undo = { RENEW("{kubeconfig}") },
      .healed = EMPTY,
      .timeout_s = 30 },
    { .actor = ACTOR_STAGE,
      .title = "etcd is somebody else's",
      .breaks = "nothing: the control plane is told of an external etcd",
      .expect = "EtcdClusterHealthy is not ours any more and stays as it is",
      /* Of what we alone have said, nothing would be left when we say it no more. */
      .steps = { { .verb = TOUR_STATUS, .kind = "KubeadmControlPlane", .name = "{cluster}-cp",
                   .body = "\"status\":{" INITIALIZED ",{\"type\":\"EtcdClusterHealthy\",\"status\":\"Unknown\",\"reason\":"
                           "\"HealthUnknown\",\"message\":\"No Machines reporting etcd member status\",\"lastTransitionTime\":\"{now}\"}]}" },
                 { .verb = TOUR_MERGE, .kind = "KubeadmControlPlane", .name = "{cluster}-cp",
                   .body = "{\"spec\":{\"kubeadmConfigSpec\":{\"clusterConfiguration\":{\"etcd\":{\"external\":{\"endpoints\":["
                           "\"https://127.0.0.1:1\"],\"caFile\":\"/ca\",\"certFile\":\"/crt\",\"keyFile\":\"/key\"}}}}}}" } },
      .rows = { ROW("EtcdClusterHealthy/1") },
      .timeout_s = 15 },
    { .actor = ACTOR_STAGE,
      .title = "a control plane without Machines is deleted",
      .breaks = "kubectl delete kubeadmcontrolplane, while somebody's finalizer holds it",
      .expect = "its templates go, then its deletion is completed",
      .steps = { HOLD("KubeadmControlPlane", "{cluster}-cp", OUR_FINALIZER ","),
                 { .verb = TOUR_DELETE, .kind = "KubeadmControlPlane", .name = "{cluster}-cp" } },
      .rows = { { "Deleting/2", "deleting, no control plane Machine left, infrastructure machine templates are", EVERY_TOUR, ROW_FLEETING },
                { "Deleting/2", "deleting, nothing left", EVERY_TOUR, 0 } },
      .heals = "nobody holds it any more, and it is gone",
      .undo = { LET_GO("KubeadmControlPlane", "{cluster}-cp") },
      .timeout_s = 30, .profiles = ONLY_TABLES_TOUR },
    { .actor = ACTOR_STAGE,
      .title = "a control plane without Machines is deleted",
      .breaks = "kubectl delete kubeadmcontrolplane, while somebody's finalizer holds it",
      .expect = "the deletion is completed",
      .steps = { HOLD("KubeadmControlPlane", "{cluster}-cp", OUR_FINALIZER ","),
                 { .verb = TOUR_DELETE, .kind = "KubeadmControlPlane", .name = "{cluster}-cp" } },
      .rows = { { "Deleting/2", "deleting, no control plane Machine left", EVERY_TOUR, 0 } },
      .heals = "nobody holds it any more, and it is gone",
      .undo = { LET_GO("KubeadmControlPlane", "{cluster}-cp") },
      .timeout_s = 30, .profiles = ONLY_CLUSTER_API_TOUR },

    { .actor = ACTOR_SECOND,
      .title = "a control plane is deleted while it has workers",
      .breaks = "kubectl delete kubeadmcontrolplane {cluster}-cp",
      .expect = "it waits for the workers",
      .steps = { { .verb = TOUR_DELETE, .kind = "KubeadmControlPlane", .name = "{cluster}-cp" } },
      .rows = { { "Deleting/2", "deleting, worker Machines or MachinePools still exist", EVERY_TOUR, 0 } },
      .timeout_s = 30 },
    { .actor = ACTOR_SECOND,
      .title = "the workers go, and etcd cannot be asked",
      .breaks = "fault bad-certificate on Cluster {cluster}; kubectl delete machinedeployment {cluster}-md",
      .expect = "the control plane waits for its members, for ten minutes at most",
      .steps = { { .verb = TOUR_FAULT, .kind = "Cluster", .name = "{cluster}", .body = "bad-certificate" },
                 { .verb = TOUR_DELETE, .kind = "MachineDeployment", .name = "{cluster}-md" } },
      .rows = { { "Deleting/2", "deleting, members cannot be read, for less than 10 minutes", EVERY_TOUR, 0 } },
      .timeout_s = 60, .etcd = 1, .nudges = true, .profiles = ONLY_TABLES_TOUR },
    { .actor = ACTOR_SECOND,
      .title = "the workers go",
      .breaks = "kubectl delete machinedeployment {cluster}-md",
      .expect = "nothing holds the control plane back any more",
      .steps = { { .verb = TOUR_DELETE, .kind = "MachineDeployment", .name = "{cluster}-md" } },
      .rows = { { "Deleting/2", "deleting, the next Machine can go", EVERY_TOUR, ROW_FLEETING } },
      .timeout_s = 60, .etcd = -1, .profiles = ONLY_TABLES_TOUR },
    { .actor = ACTOR_SECOND,
      .title = "and the control plane goes, Machine by Machine",
      .breaks = "the fault is cleared",
      .expect = "member after member leaves and Machine after Machine goes; then it is gone",
      .steps = { { .verb = TOUR_FAULT, .kind = "Cluster", .name = "{cluster}" } },
      .rows = { { "Deleting/2", "deleting, the next Machine's etcd member is still listed", EVERY_TOUR, ROW_ETCD },
                { "Deleting/2", "deleting, the next Machine can go", EVERY_TOUR, ROW_FLEETING },
                { "Deleting/2", "deleting, a control plane Machine is already deleting", EVERY_TOUR, 0 },
                { "Deleting/2", "deleting, nothing left", EVERY_TOUR, ROW_FLEETING } },
      .timeout_s = 90, .nudges = true, .profiles = ONLY_TABLES_TOUR },
    { .actor = ACTOR_SECOND,
      .title = "the workers go, and then the control plane",
      .breaks = "kubectl delete machinedeployment {cluster}-md",
      .expect = "all control plane Machines are deleted, then it is gone",
      .steps = { { .verb = TOUR_DELETE, .kind = "MachineDeployment", .name = "{cluster}-md" } },
      .rows = { { "Deleting/2", "deleting, control plane Machines still exist", EVERY_TOUR, 0 },
                { "Deleting/2", "deleting, no control plane Machine left", EVERY_TOUR, ROW_FLEETING } },
      .timeout_s = 90, .profiles = ONLY_CLUSTER_API_TOUR },
};
const size_t pl__scene_count = sizeof pl__scenes / sizeof pl__scenes[0];

#define WITHOUT_ETCD "there is no etcd to ask: control planes here have an external one"

const struct pl_tour_unreachable pl__unreachable[] = {
    { "EtcdClusterHealthy/2", NULL, WITHOUT_ETCD, true },
    { "EtcdClusterHealthy/3", NULL, WITHOUT_ETCD, true },
    { "EtcdClusterHealthy/4", NULL, WITHOUT_ETCD, true },
    { "EtcdClusterHealthy/5", NULL, WITHOUT_ETCD, true },
    { "EtcdClusterHealthy/7", NULL, WITHOUT_ETCD, true },
    { "Deleting/2", "deleting, members cannot be read, for less than 10 minutes", WITHOUT_ETCD, true },
    { "Deleting/2", "deleting, the next Machine's etcd member is still listed", WITHOUT_ETCD, true },
};
const size_t pl__unreachable_count = sizeof pl__unreachable / sizeof pl__unreachable[0];

/* clang-format on */
