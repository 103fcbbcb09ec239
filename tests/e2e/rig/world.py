"""A Cluster, its control plane, its workers, and what they look like from inside, on real servers."""

import time

from .client import ApiError
from .pki import pem_data
from .servers import encode

COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
PODS = {"kube-apiserver": "APIServerPodHealthy", "kube-controller-manager": "ControllerManagerPodHealthy",
        "kube-scheduler": "SchedulerPodHealthy", "etcd": "EtcdPodHealthy"}
VERSION = "v1.34.2"
CAPI, KCP, INFRA = "cluster.x-k8s.io", "controlplane.cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io"


def stamp(ago=0):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - ago))


def condition(kind, status, reason, message="", ago=3600):
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": stamp(ago)}


def conditions(obj):
    return {c["type"]: c for c in (obj or {}).get("status", {}).get("conditions", [])}


def owner(obj, controller=True):
    reference = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": obj["metadata"]["name"],
                 "uid": obj["metadata"]["uid"]}
    if controller:
        reference.update(controller=True, blockOwnerDeletion=True)
    return reference


def ready_status(components=("c",), ready=True, waiting=None, last_exit=None, terminated=None, phase="Running"):
    """The status of a Pod whose containers are in this state."""
    containers = []
    for name in components:
        state = {"running": {"startedAt": stamp(3600)}}
        if waiting:
            state = {"waiting": {"reason": waiting}}
        elif terminated:
            state = {"terminated": {"exitCode": 1, "reason": terminated}}
        last = {}
        if last_exit is not None:
            last = {"terminated": {"exitCode": last_exit, "reason": "Error"}}
        containers.append({"name": name, "ready": ready, "restartCount": 0 if last_exit is None else 5,
                           "image": "registry.k8s.io/" + name, "imageID": "", "state": state, "lastState": last})
    flag = lambda b: "True" if b else "False"
    return {"phase": phase, "conditions": [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp(3600)},
        {"type": "Initialized", "status": flag(phase != "Pending"), "lastTransitionTime": stamp(3600)},
        {"type": "Ready", "status": flag(ready), "lastTransitionTime": stamp()},
        {"type": "ContainersReady", "status": flag(ready), "lastTransitionTime": stamp()},
    ], "containerStatuses": containers}


class World:
    """One Cluster. The workload side is a real API server, or another URL that plays one."""

    def __init__(self, api, name, workload=None, namespace="default", machines=3, workers=2, external_etcd=True,
                 labels=None, kubeconfig=None, initialized=True, endpoint=True, bare=False, owns_kubeconfig=True,
                 kubelet=None, addresses=None, nodes=None):
        self.api, self.name, self.namespace, self.workload = api, name, namespace, workload
        self.inside = workload.admin if workload else None
        self.labels = dict(labels or {})
        self.external_etcd = external_etcd
        self.owns_kubeconfig = owns_kubeconfig
        self.kubelet, self.addresses = kubelet, addresses or {}
        self.kcp_name = name + "-cp"
        self.md_name = name + "-md"
        self.machines = [f"{name}-cp-{i}" for i in range(machines)]
        self.nodes = dict(zip(self.machines, nodes)) if nodes else {m: m.replace("-cp-", "-node-") for m in self.machines}
        self.workers = [f"{name}-md-{i}" for i in range(workers)]
        self.components = COMPONENTS + (() if external_etcd else ("etcd",))
        self._namespace()
        self._cluster(initialized, endpoint)
        self._infrastructure(bare)
        self._control_plane(initialized)
        text = kubeconfig or (workload.kubeconfig_text() if workload else None)
        if text:
            self.write_kubeconfig(text)
        if self.inside:
            for machine in self.machines:
                self.create_node(self.nodes[machine])
                for component in self.components:
                    self.create_pod(component, self.nodes[machine])
        for machine in self.machines:
            self.api.create("machines", self._control_plane_machine(machine, self.nodes[machine]))
        if workers:
            self._deployment()

    # --- making it

    def meta(self, name, owner_of=None, **labels):
        meta = {"name": name, "namespace": self.namespace,
                "labels": {"cluster.x-k8s.io/cluster-name": self.name, **self.labels, **labels}}
        if owner_of:
            meta["ownerReferences"] = [owner(owner_of)]
        return meta

    def _namespace(self):
        if not self.api.find("namespaces", None, self.namespace):
            self.api.create("namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}})

    def _cluster(self, initialized, endpoint):
        spec = {"controlPlaneRef": {"apiGroup": KCP, "kind": "KubeadmControlPlane", "name": self.kcp_name},
                "infrastructureRef": {"apiGroup": INFRA, "kind": "DevCluster", "name": self.name}}
        if endpoint:
            spec["controlPlaneEndpoint"] = {"host": "127.0.0.1", "port": 6443}
        meta = self.meta(self.name)
        meta["labels"].pop("cluster.x-k8s.io/cluster-name")
        if not meta["labels"]:
            del meta["labels"]
        self.cluster = self.api.create("clusters", {
            "apiVersion": CAPI + "/v1beta2", "kind": "Cluster", "metadata": meta, "spec": spec,
            "status": {"phase": "Provisioned", "initialization": {
                "infrastructureProvisioned": True, "controlPlaneInitialized": bool(initialized)},
                "conditions": [condition("InfrastructureReady", "True", "Ready"),
                               condition("ControlPlaneInitialized", "True" if initialized else "False",
                                         "Initialized" if initialized else "NotInitialized")]}})

    def _infrastructure(self, bare):
        if bare:
            return
        self.api.create("devclusters", {"apiVersion": INFRA + "/v1beta2", "kind": "DevCluster",
                                        "metadata": self.meta(self.name, self.cluster), "spec": {}})
        self.api.create("devmachinetemplates", {
            "apiVersion": INFRA + "/v1beta2", "kind": "DevMachineTemplate", "metadata": self.meta(self.name),
            "spec": {"template": {"spec": {}}}})

    def _control_plane(self, initialized):
        etcd = {"external": {"endpoints": ["https://10.0.0.1:2379"], "caFile": "/etc/kubernetes/pki/etcd/ca.crt",
                             "certFile": "/etc/kubernetes/pki/apiserver-etcd-client.crt",
                             "keyFile": "/etc/kubernetes/pki/apiserver-etcd-client.key"}} \
            if self.external_etcd else {"local": {"dataDir": "/var/lib/etcd"}}
        status = {"replicas": len(self.machines), "version": VERSION, "conditions": [
            condition("CertificatesAvailable", "True", "Available"),
            condition("Initialized", "True" if initialized else "False",
                      "Initialized" if initialized else "NotInitialized")]}
        if initialized:
            status["initialization"] = {"controlPlaneInitialized": True}
        self.kcp = self.api.create("kubeadmcontrolplanes", {
            "apiVersion": KCP + "/v1beta2", "kind": "KubeadmControlPlane",
            "metadata": dict(self.meta(self.kcp_name, self.cluster),
                             finalizers=["kubeadm.controlplane.cluster.x-k8s.io"]),
            "spec": {"replicas": len(self.machines), "version": VERSION,
                     "machineTemplate": {"spec": {"infrastructureRef": {
                         "apiGroup": INFRA, "kind": "DevMachineTemplate", "name": self.name}}},
                     "kubeadmConfigSpec": {"clusterConfiguration": {"etcd": etcd}}},
            "status": status})

    def _machine_body(self, name, meta, node, provider_id, extra=()):
        return {"apiVersion": CAPI + "/v1beta2", "kind": "Machine",
                "metadata": dict(meta, finalizers=["machine.cluster.x-k8s.io"]),
                "spec": {"clusterName": self.name, "version": VERSION, "providerID": provider_id,
                         "bootstrap": {"dataSecretName": name + "-bootstrap"},
                         "infrastructureRef": {"apiGroup": INFRA, "kind": "DevMachine", "name": name}},
                "status": {"phase": "Running", "nodeRef": {"name": node}, "initialization": {
                    "infrastructureProvisioned": True, "bootstrapDataSecretCreated": True},
                    "conditions": [condition("InfrastructureReady", "True", "Ready"),
                                   condition("BootstrapConfigReady", "True", "Ready"), *extra]}}

    def _control_plane_machine(self, name, node):
        meta = self.meta(name, self.kcp, **{"cluster.x-k8s.io/control-plane": "",
                                            "cluster.x-k8s.io/control-plane-name": self.kcp_name})
        return self._machine_body(name, meta, node, f"dev:///{self.nodes[name]}")

    def _deployment(self):
        match = {"cluster.x-k8s.io/deployment-name": self.md_name}
        template = {"metadata": {"labels": match}, "spec": {
            "clusterName": self.name, "version": VERSION, "bootstrap": {"dataSecretName": "x"},
            "infrastructureRef": {"apiGroup": INFRA, "kind": "DevMachineTemplate", "name": self.name}}}
        spec = {"clusterName": self.name, "replicas": len(self.workers), "selector": {"matchLabels": match},
                "template": template}
        counters = {k: len(self.workers) for k in ("replicas", "readyReplicas", "availableReplicas", "upToDateReplicas")}
        self.md = self.api.create("machinedeployments", {
            "apiVersion": CAPI + "/v1beta2", "kind": "MachineDeployment",
            "metadata": dict(self.meta(self.md_name, self.cluster), annotations={
                "machinedeployment.clusters.x-k8s.io/revision": "1"}),
            "spec": spec, "status": dict(counters, phase="Running")})
        self.ms = self.api.create("machinesets", {
            "apiVersion": CAPI + "/v1beta2", "kind": "MachineSet",
            "metadata": dict(self.meta(self.md_name + "-1", self.md, **match), annotations={
                "machinedeployment.clusters.x-k8s.io/revision": "1"}),
            "spec": spec, "status": counters})
        for name in self.workers:
            meta = self.meta(name, self.ms, **match, **{"cluster.x-k8s.io/set-name": self.md_name + "-1"})
            self.api.create("machines", self._machine_body(name, meta, name, f"dev:///{name}"))

    def write_kubeconfig(self, text):
        """Makes or replaces the Secret that leads to the workload cluster."""
        self._write_secret(self.name + "-kubeconfig", {"value": encode(text)})

    def write_etcd_ca(self, authority):
        """Makes or replaces the Secret with the CA of the cluster's etcd."""
        self._write_secret(self.name + "-etcd", {"tls.crt": pem_data(authority.cert), "tls.key": pem_data(authority.key)})

    def _write_secret(self, name, data):
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": self.meta(name, self.kcp if self.owns_kubeconfig else None),
                "type": "cluster.x-k8s.io/secret", "data": data}
        if self.api.find("secrets", self.namespace, name):
            self.api.patch("secrets", self.namespace, name, {"data": body["data"]})
        else:
            self.api.create("secrets", body)

    # --- inside the workload cluster

    def create_node(self, name):
        status = {"conditions": [self._node_ready("True", "KubeletReady")]}
        if self.kubelet or self.addresses:
            status["addresses"] = [{"type": "InternalIP", "address": self.addresses.get(name, "127.0.0.1")}]
        if self.kubelet:
            port = self.kubelet.door if self.workload.embedded else self.kubelet.port
            status["daemonEndpoints"] = {"kubeletEndpoint": {"Port": port}}
        self.inside.create("nodes", {
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {"node-role.kubernetes.io/control-plane": "",
                                                  "kubernetes.io/hostname": name}},
            "spec": {"providerID": f"dev:///{name}"}, "status": status})

    @staticmethod
    def _node_ready(status, reason):
        return {"type": "Ready", "status": status, "reason": reason, "message": "", "lastHeartbeatTime": stamp(),
                "lastTransitionTime": stamp()}

    def create_pod(self, component, node, **state):
        self.inside.create("pods", {
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": f"{component}-{node}", "namespace": "kube-system",
                         "labels": {"component": component, "tier": "control-plane"},
                         "annotations": {"kubernetes.io/config.mirror": "0123456789abcdef"}},
            "spec": {"nodeName": node, "hostNetwork": True, "enableServiceLinks": False,
                     "containers": [{"name": component, "image": "registry.k8s.io/" + component}]},
            "status": ready_status((component,), **state)})

    def set_pod(self, component, node, **state):
        """state as in ready_status: ready=False, waiting="CrashLoopBackOff", last_exit=1, phase="Failed" ..."""
        return self.inside.patch("pods", "kube-system", f"{component}-{node}",
                                 {"status": ready_status((component,), **state)}, sub="status")

    def delete_pod(self, component, node):
        self.inside.delete("pods", "kube-system", f"{component}-{node}", gracePeriodSeconds=0)

    def set_node_ready(self, node, status="True", reason=None):
        reason = reason or {"True": "KubeletReady", "False": "KubeletNotReady"}.get(status, "NodeStatusUnknown")
        self.inside.patch("nodes", None, node, {"status": {"conditions": [self._node_ready(status, reason)]}}, sub="status")

    def taint_node(self, node, *taints):
        """taints: (key, effect) pairs; none removes all."""
        self.inside.patch("nodes", None, node, {"spec": {"taints": [
            {"key": key, "effect": effect} for key, effect in taints] or None}})

    def delete_node(self, node):
        self.inside.delete("nodes", None, node)

    # --- on the management side

    def get_kcp(self):
        return self.api.get("kubeadmcontrolplanes", self.namespace, self.kcp_name)

    def get_md(self):
        return self.api.get("machinedeployments", self.namespace, self.md_name)

    def get_machine(self, name):
        return self.api.get("machines", self.namespace, name)

    def kcp_condition(self, kind):
        return conditions(self.get_kcp()).get(kind)

    def machine_condition(self, machine, kind):
        return conditions(self.get_machine(machine)).get(kind)

    def md_condition(self, kind):
        return conditions(self.get_md()).get(kind)

    def set_conditions(self, resource, name, *new, drop=()):
        """What another controller would write: whole list, guarded by the resource version."""
        for _ in range(20):
            obj = self.api.get(resource, self.namespace, name)
            have = conditions(obj)
            for kind in drop:
                have.pop(kind, None)
            have.update({c["type"]: c for c in new})
            try:
                return self.api.patch(resource, self.namespace, name, {
                    "metadata": {"resourceVersion": obj["metadata"]["resourceVersion"]},
                    "status": {"conditions": list(have.values())}}, sub="status")
            except ApiError as error:
                if error.code != 409:
                    raise
        raise AssertionError("20 conflicts in a row")

    def set_kcp_conditions(self, *new, drop=()):
        return self.set_conditions("kubeadmcontrolplanes", self.kcp_name, *new, drop=drop)

    def add_machine(self, name, node=None):
        """One more control plane Machine; without a Node it is still being provisioned."""
        self.machines.append(name)
        self.nodes[name] = name.replace("-cp-", "-node-")
        body = self._control_plane_machine(name, node)
        if node is None:
            del body["status"]["nodeRef"]
            body["status"]["phase"] = "Provisioning"
        self.api.create("machines", body)

    def add_worker(self, name):
        """A Machine that belongs to the Cluster and to nobody else."""
        self.api.create("machines", self._machine_body(name, self.meta(name, self.cluster), name, f"dev:///{name}"))

    def remove_machine(self, name):
        """The Machine and, where there are any, its Node and Pods."""
        self.delete("machines", name)
        self.finish("machines", name)
        self.machines.remove(name)
        node = self.nodes.pop(name)
        if self.inside:
            for component in self.components:
                self.delete_pod(component, node)
            self.delete_node(node)

    def mark_unhealthy(self, machine, to_remediate=True, message="Node is gone"):
        new = [condition("HealthCheckSucceeded", "False", "UnhealthyNode", message, ago=60)]
        if to_remediate:
            new.append(condition("OwnerRemediated", "False", "WaitingForRemediation", "Waiting for remediation", ago=60))
        self.set_conditions("machines", machine, *new, drop=() if to_remediate else ("OwnerRemediated",))

    def mark_healthy(self, machine):
        self.set_conditions("machines", machine, condition("HealthCheckSucceeded", "True", "HealthCheckSucceeded", ago=0),
                            drop=("OwnerRemediated",))

    def pause(self, paused=True):
        self.api.patch("clusters", self.namespace, self.name, {"spec": {"paused": paused or None}})

    def delete(self, resource, name):
        """Starts the deletion; the finalizers keep the object."""
        self.api.delete(resource, self.namespace, name)

    def finish(self, resource, name):
        """Takes the finalizers off, and with them the object, if it is still there."""
        try:
            self.api.patch(resource, self.namespace, name, {"metadata": {"finalizers": None}})
        except ApiError as error:
            if error.code != 404:
                raise

    def destroy(self):
        """Everything of this cluster, on both sides."""
        api, ns = self.api, self.namespace
        selector = f"cluster.x-k8s.io/cluster-name={self.name}"
        for resource in ("machines", "machinesets", "machinedeployments", "machinehealthchecks", "machinepools",
                         "kubeadmcontrolplanes", "kubeadmconfigs", "devclusters", "devmachines", "devmachinetemplates",
                         "secrets"):
            for obj in api.list(resource, ns, labelSelector=selector):
                name = obj["metadata"]["name"]
                api.delete(resource, ns, name)
                if obj["metadata"].get("finalizers"):
                    self.finish(resource, name)
        api.delete("clusters", ns, self.name)
        self.finish("clusters", self.name)
        if self.inside:
            for node in set(self.nodes.values()):
                for component in self.components:
                    self.delete_pod(component, node)
                self.delete_node(node)
