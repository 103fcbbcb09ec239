#include "base/intern.h"

/* Ascending by byte, so that a search can halve; a test sees to it. Reasons are those of Cluster
 * API v1.12 and of the documents' own tables. */
static const struct pl_str known[] = {
    PL_STR_INIT("AWSMachine"),
    PL_STR_INIT("Available"),
    PL_STR_INIT("AzureMachine"),
    PL_STR_INIT("CannotBeRemediated"),
    PL_STR_INIT("Cluster"),
    PL_STR_INIT("Completed"),
    PL_STR_INIT("ConnectionDown"),
    PL_STR_INIT("ContainerCreating"),
    PL_STR_INIT("CrashLoopBackOff"),
    PL_STR_INIT("Deleting"),
    PL_STR_INIT("DeletingEtcdMembers"),
    PL_STR_INIT("DeletingInfrastructureTemplates"),
    PL_STR_INIT("DeletingMachines"),
    PL_STR_INIT("DeletionCompleted"),
    PL_STR_INIT("DevMachine"),
    PL_STR_INIT("DockerMachine"),
    PL_STR_INIT("DoesNotExist"),
    PL_STR_INIT("DrainingNode"),
    PL_STR_INIT("Error"),
    PL_STR_INIT("EtcdClusterNotHealthy"),
    PL_STR_INIT("Failed"),
    PL_STR_INIT("GCPMachine"),
    PL_STR_INIT("HealthCheckSucceeded"),
    PL_STR_INIT("HealthUnknown"),
    PL_STR_INIT("Healthy"),
    PL_STR_INIT("Initialized"),
    PL_STR_INIT("InspectionFailed"),
    PL_STR_INIT("InternalError"),
    PL_STR_INIT("KubeadmControlPlane"),
    PL_STR_INIT("KubeletReady"),
    PL_STR_INIT("Machine"),
    PL_STR_INIT("MachineDeployment"),
    PL_STR_INIT("MachineHealthCheck"),
    PL_STR_INIT("MachinePool"),
    PL_STR_INIT("MachineSet"),
    PL_STR_INIT("Metal3Machine"),
    PL_STR_INIT("NoExecute"),
    PL_STR_INIT("NoSchedule"),
    PL_STR_INIT("NodeHealthy"),
    PL_STR_INIT("NotAvailable"),
    PL_STR_INIT("NotDeleting"),
    PL_STR_INIT("NotHealthy"),
    PL_STR_INIT("NotInitialized"),
    PL_STR_INIT("NotReady"),
    PL_STR_INIT("NotRemediating"),
    PL_STR_INIT("NotUpToDate"),
    PL_STR_INIT("OOMKilled"),
    PL_STR_INIT("OpenStackMachine"),
    PL_STR_INIT("Pending"),
    PL_STR_INIT("PodConnectionDown"),
    PL_STR_INIT("PodDeleting"),
    PL_STR_INIT("PodDoesNotExist"),
    PL_STR_INIT("PodFailed"),
    PL_STR_INIT("PodInspectionFailed"),
    PL_STR_INIT("PodProvisioning"),
    PL_STR_INIT("PodRunning"),
    PL_STR_INIT("Provisioning"),
    PL_STR_INIT("Ready"),
    PL_STR_INIT("ReadyUnknown"),
    PL_STR_INIT("Remediating"),
    PL_STR_INIT("RemediationDeferred"),
    PL_STR_INIT("Running"),
    PL_STR_INIT("Succeeded"),
    PL_STR_INIT("UnhealthyNode"),
    PL_STR_INIT("Unknown"),
    PL_STR_INIT("UpToDate"),
    PL_STR_INIT("UpToDateUnknown"),
    PL_STR_INIT("VSphereMachine"),
    PL_STR_INIT("WaitingForMachineDeletion"),
    PL_STR_INIT("WaitingForRemediation"),
    PL_STR_INIT("WaitingForWorkersDeletion"),
    PL_STR_INIT("default"),
    PL_STR_INIT("kube-system"),
    PL_STR_INIT("node-role.kubernetes.io/control-plane"),
    PL_STR_INIT("node.kubernetes.io/not-ready"),
    PL_STR_INIT("node.kubernetes.io/unreachable"),
};
enum { KNOWN_COUNT = sizeof known / sizeof known[0] };

struct pl_str pl__intern(struct pl_str s)
{
    size_t low = 0, high = KNOWN_COUNT;

    if (s.len == 0)
        return (struct pl_str){ "", 0 };
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = pl__str_compare(known[middle], s);
        if (order == 0)
            return known[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return (struct pl_str){ NULL, 0 };
}

size_t pl__intern_count(void)
{
    return KNOWN_COUNT;
}

struct pl_str pl__intern_at(size_t index)
{
    return known[index];
}
