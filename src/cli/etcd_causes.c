#include "cli/etcd_causes.h"

static const char *const hop_names[TRACE_HOP_COUNT] = {
    [TRACE_MANAGEMENT] = "management API",
    [TRACE_CLUSTER] = "Cluster",
    [TRACE_KUBECONFIG] = "kubeconfig Secret",
    [TRACE_WORKLOAD] = "workload API",
    [TRACE_PERMISSION] = "permission",
    [TRACE_CA] = "etcd CA Secret",
    [TRACE_NODES] = "control plane Nodes",
    [TRACE_CONNECT] = "connection",
    [TRACE_KUBELET] = "kubelet tunnel",
    [TRACE_TLS] = "etcd TLS",
    [TRACE_GRPC] = "etcd gRPC",
};

/* In the order to look: what is special first, a row for anything else last. */
/* clang-format off */
static const struct pl_trace_cause causes[] = {
    { TRACE_MANAGEMENT, "refused",     "nothing listens there: the API server is down, or the address is another one",
                                       "check --kubeconfig and --context; kubectl cluster-info" },
    { TRACE_MANAGEMENT, "certificate", "the server's certificate is not of the kubeconfig's CA, or names another host",
                                       "use the kubeconfig of this cluster" },
    { TRACE_MANAGEMENT, "401",         "the credentials expired or are of another cluster",
                                       "renew them; kubectl auth whoami" },
    { TRACE_MANAGEMENT, "",            "the management API server cannot be reached from here",
                                       "check network, proxy and --kubeconfig" },

    { TRACE_CLUSTER,    "404",         "there is no Cluster of that name in this namespace",
                                       "plimsoll describe -A -o name lists them; -n NAMESPACE" },
    { TRACE_CLUSTER,    "403",         "these credentials may not read Clusters",
                                       "use the roles of deploy/rbac" },
    { TRACE_CLUSTER,    "",            "the Cluster could not be read",
                                       "kubectl get clusters -A" },

    { TRACE_KUBECONFIG, "404",         "the control plane is not initialized yet, or the Secret was deleted",
                                       "wait for the first control plane Machine; kubectl get secret" },
    { TRACE_KUBECONFIG, "403",         "these credentials may not read Secrets of this namespace",
                                       "use the roles of deploy/rbac" },
    { TRACE_KUBECONFIG, "",            "the Secret holds no usable kubeconfig",
                                       "look at its key \"value\"; Cluster API renews it when it is deleted" },

    { TRACE_WORKLOAD,   "refused",     "no API server listens at the control plane endpoint",
                                       "check the load balancer and the kube-apiserver Pods' Nodes" },
    { TRACE_WORKLOAD,   "resolve",     "the control plane endpoint's name is not known here",
                                       "check spec.controlPlaneEndpoint of the Cluster, and DNS" },
    { TRACE_WORKLOAD,   "time",        "packets to the control plane endpoint get lost: firewall, routes, or a load balancer without backends",
                                       "try it from the management cluster's network" },
    { TRACE_WORKLOAD,   "certificate", "the kubeconfig's CA is not the workload cluster's",
                                       "the CA was rotated: delete the kubeconfig Secret, Cluster API makes a new one" },
    { TRACE_WORKLOAD,   "401",         "the client certificate in the kubeconfig Secret expired or is of another CA",
                                       "delete the kubeconfig Secret, Cluster API makes a new one" },
    { TRACE_WORKLOAD,   "",            "the workload API server does not answer as it should",
                                       "kubectl --kubeconfig ... get --raw /readyz?verbose" },

    { TRACE_PERMISSION, "not allowed", "the user of the kubeconfig Secret lacks the right to forward ports",
                                       "Cluster API's own kubeconfig is of group system:masters; check what made this one" },
    { TRACE_PERMISSION, "",            "the workload API server could not say what is allowed",
                                       "kubectl --kubeconfig ... auth can-i create pods/portforward -n kube-system" },

    { TRACE_CA,         "404",         "the Secret is not there: etcd is external, or it was deleted",
                                       "with external etcd nothing is asked of it; otherwise restore the CA from a control plane Node (/etc/kubernetes/pki/etcd)" },
    { TRACE_CA,         "tls.key",     "the Secret has no key, as with external etcd",
                                       "with external etcd nothing is asked of it" },
    { TRACE_CA,         "403",         "these credentials may not read Secrets of this namespace",
                                       "use the roles of deploy/rbac" },
    { TRACE_CA,         "",            "certificate and key in the Secret cannot be used together",
                                       "compare them with /etc/kubernetes/pki/etcd/ca.crt and ca.key on a Node" },

    { TRACE_NODES,      "label",       "the Nodes have not joined, or lost the label node-role.kubernetes.io/control-plane",
                                       "kubectl --kubeconfig ... get nodes" },
    { TRACE_NODES,      "",            "Nodes could not be listed",
                                       "kubectl --kubeconfig ... get nodes" },

    { TRACE_CONNECT,    "refused",     "nothing listens at the endpoint",
                                       "check the address, --etcd-endpoints if given, and the member's Pod" },
    { TRACE_CONNECT,    "time",        "packets to the endpoint get lost: firewall or routes",
                                       "check the network between here and the Node" },
    { TRACE_CONNECT,    "",            "the connection could not be made",
                                       "check the network between here and the endpoint" },

    { TRACE_KUBELET,    "403",         "the user may not forward ports to this Pod",
                                       "kubectl auth can-i create pods/portforward -n kube-system" },
    { TRACE_KUBELET,    "404",         "there is no Pod etcd-<node>: the static Pod is gone or never started",
                                       "look at /etc/kubernetes/manifests/etcd.yaml and the kubelet's log on the Node" },
    { TRACE_KUBELET,    "dialing backend", "the API server cannot reach the kubelet (port 10250), or the konnectivity tunnel is down",
                                       "check the Node, its firewall, and konnectivity if it is used" },
    { TRACE_KUBELET,    "refused",     "the kubelet answers, but nothing listens on port 2379 of the Pod: etcd is down or starting",
                                       "kubectl -n kube-system logs etcd-<node>; crictl ps -a on the Node" },
    { TRACE_KUBELET,    "time",        "the API server or the kubelet accepted the tunnel and does not go on: the Node hangs",
                                       "check the kubelet and the container runtime on the Node" },
    { TRACE_KUBELET,    "",            "the tunnel through the kubelet could not be opened",
                                       "kubectl -n kube-system port-forward pod/etcd-<node> 2379 shows the same path" },

    { TRACE_TLS,        "time",        "etcd accepts connections and does not shake hands: it was restarted and waits for quorum, or it is frozen",
                                       "look at the other members first; kubectl -n kube-system logs etcd-<node>" },
    { TRACE_TLS,        "expired",     "etcd's server certificate expired",
                                       "kubeadm certs renew etcd-server on the Node, then restart its etcd Pod" },
    { TRACE_TLS,        "name",        "etcd's certificate does not carry the Node's name",
                                       "renew it with kubeadm certs renew etcd-server" },
    { TRACE_TLS,        "client certificate", "etcd does not take our certificate: its CA is another one than the Secret's",
                                       "compare Secret <cluster>-etcd with /etc/kubernetes/pki/etcd/ca.crt on the Node" },
    { TRACE_TLS,        "sign",        "etcd's certificate is not of the CA in the Secret",
                                       "compare Secret <cluster>-etcd with /etc/kubernetes/pki/etcd/ca.crt on the Node" },
    { TRACE_TLS,        "refused",     "nothing listens on port 2379 of the Pod: etcd is down or starting",
                                       "kubectl -n kube-system logs etcd-<node>; crictl ps -a on the Node" },
    { TRACE_TLS,        "",            "the TLS handshake with etcd failed",
                                       "kubectl -n kube-system logs etcd-<node>" },

    { TRACE_GRPC,       "no leader",   "the member sees no leader: quorum is lost, or an election is under way",
                                       "look at the other members; plimsoll etcd shows the quorum" },
    { TRACE_GRPC,       "alarm",       "an alarm is set",
                                       "plimsoll etcd CLUSTER says on which member, and what to do" },
    { TRACE_GRPC,       "client certificate", "etcd does not take our certificate: its CA is another one than the Secret's",
                                       "compare Secret <cluster>-etcd with /etc/kubernetes/pki/etcd/ca.crt on the Node" },
    { TRACE_GRPC,       "deadline",    "calls that need the quorum get no answer: it is lost",
                                       "bring a majority of the members back; plimsoll etcd shows which are down" },
    { TRACE_GRPC,       "time",        "etcd does not answer in time: quorum is lost, or its disk is too slow",
                                       "look at the other members and at the member's log (slow fdatasync)" },
    { TRACE_GRPC,       "",            "etcd answers with an error",
                                       "kubectl -n kube-system logs etcd-<node>" },
};
/* clang-format on */

const char *pl__trace_hop_name(enum pl_trace_hop hop)
{
    return hop_names[hop];
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool contains(struct pl_str text, struct pl_str sign)
{
    for (size_t i = 0; i + sign.len <= text.len; i++) {
        size_t k = 0;
        while (k < sign.len && lower(text.ptr[i + k]) == sign.ptr[k])
            k++;
        if (k == sign.len)
            return true;
    }
    return false;
}

const struct pl_trace_cause *pl__trace_cause(enum pl_trace_hop hop, struct pl_str error)
{
    for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++) {
        if (causes[i].hop == hop && contains(error, pl__str(causes[i].sign)))
            return &causes[i];
    }
    return NULL;
}

const struct pl_trace_cause *pl__trace_causes(size_t *count)
{
    *count = sizeof causes / sizeof causes[0];
    return causes;
}
