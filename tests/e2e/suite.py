#!/usr/bin/env python3
"""The end-to-end suite: `plimsoll run` on real API servers. suite.py [-k WORD] [--list] [--slow] [--keep]

Each case prints ok or FAILED and its time; the last line is "e2e: N passed, N failed". The program is
build/plimsoll, or $PLIMSOLL; CRD_DIR names other CRDs than deploy/crd (folders joined by colons). API=embedded
runs them on the playground's server, API=mixed with that as the management server only; what needs more is left out.
"""

import argparse
import json
import os
import signal
import sys
import threading
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from acting_suite import TESTS as ACTING_TESTS  # noqa: E402
from etcd_suite import TESTS as ETCD_TESTS  # noqa: E402
from live_commands import TESTS as LIVE_TESTS  # noqa: E402
from rig.client import ApiError, Client  # noqa: E402
from rig.controller import BINARY, Controller, call, fetch  # noqa: E402
from rig.etcd import Etcd  # noqa: E402
from rig.kubelet import Kubelet  # noqa: E402
from rig.proc import LeftOut, free_port, wait_for  # noqa: E402
from rig.servers import API, ROOT, Proxy, Rig, kubeconfig  # noqa: E402
from rig.standin import StandIn  # noqa: E402
from rig.world import World, condition, conditions  # noqa: E402

CASES = []
WITHOUT_PLIMSOLL = ("rig_", "deploy_applies")
PROFILES = ("tables", "cluster-api-1.12")
STATUS = ("--mode", "status", "--all")
POD_CONDITIONS = ("APIServerPodHealthy", "ControllerManagerPodHealthy", "SchedulerPodHealthy")
OURS_ON_KCP = {"ControlPlaneComponentsHealthy", "EtcdClusterHealthy", "Remediating", "Deleting"}
OURS_ON_MACHINE = {*POD_CONDITIONS, "EtcdPodHealthy", "EtcdMemberHealthy"}
FAST_LEASE = ("--leader-elect", "--leader-elect-lease-duration", "6s", "--leader-elect-renew-deadline", "4s",
              "--leader-elect-retry-period", "1s")

# What the embedded server is not: how the case's name begins -> why. It knows one user, and a fixed set of kinds.
NOT_EMBEDDED = {
    "metrics_need_permission": "TokenReview and RBAC",
    "token_expires_and_rotates": "ServiceAccount tokens",
    "certificate_expires_and_rotates": "client certificates",
    "missing_permission": "RBAC",
    "deploy_": "Deployments, RBAC and CRDs",
    "under_its_own_role": "RBAC",
}
WORKLOADS_NOT_EMBEDDED = {
    "workload_certificate_rotates": "client certificates",
    "missing_crd": "way to be without Cluster API's kinds",
    "live_without_crds": "way to be without Cluster API's kinds",
    "etcd_kubelet_faults": "kubelets behind it",
    "etcd_trace_meets_the_kubelet": "kubelets behind it",
}


def left_out(name):
    """Why a case cannot run on these servers; None: it can."""
    rules = {"real": {}, "mixed": NOT_EMBEDDED, "embedded": {**NOT_EMBEDDED, **WORKLOADS_NOT_EMBEDDED}}[API]
    return next((why for word, why in rules.items() if name.startswith(word)), None)


def case(*variants, slow=False):
    """Marks a test; with variants it runs once for each, as its second argument."""
    def mark(function):
        for variant in variants or (None,):
            name = function.__name__ + (f"[{variant}]" if variant is not None else "")
            CASES.append((name, function, variant, slow))
        return function
    return mark


class Case:
    """What one test works with; takes everything down again afterwards."""

    def __init__(self, rig, name):
        self.rig, self.api, self.name = rig, rig.api, name
        self.worlds, self.controllers, self.proxies, self.standins = [], [], [], []
        self.etcds, self.kubelets = [], []

    def world(self, name="prod", server=0, **options):
        workload = None if server is None else self.rig.workloads[server]
        made = World(self.api, name, workload, **options)
        self.worlds.append(made)
        return made

    def controller(self, *args, **options):
        made = Controller(self.rig, *args, **options)
        self.controllers.append(made)
        return made

    def proxy(self, upstream):
        made = Proxy(self.rig, f"proxy-{self.name.split('[')[0]}-{len(self.proxies)}-{time.monotonic_ns()}", upstream)
        self.proxies.append(made)
        return made

    def standin(self, **options):
        made = StandIn(self.rig, f"workloads-{time.monotonic_ns()}", **options)
        self.standins.append(made)
        return made

    def etcd(self, names, **options):
        made = Etcd(self.rig, names, **options)
        self.etcds.append(made)
        return made

    def kubelet(self):
        made = Kubelet(self.rig, f"kubelet-{time.monotonic_ns()}")
        self.kubelets.append(made)
        return made

    def close(self):
        problems = []
        for controller in self.controllers:
            controller.process.resume()
            if controller.process.running():
                code = controller.stop(10)
                if code != 0:
                    problems.append(f"{controller.process.name} ended with {code} after SIGTERM")
            elif controller.process.popen.returncode in (97, -6, -11):
                problems.append(f"{controller.process.name} ended with {controller.process.popen.returncode}")
            self.rig.supervisor.forget(controller.process)
        for server in (self.rig.management, *self.rig.workloads):
            server.process.resume()
            if not server.process.running():
                problems.append(f"{server.name} ended with {server.process.popen.returncode}:\n{server.process.tail()}")
                server.process.start()
            server.ready()
        for other in (*self.proxies, *self.standins, *self.kubelets):
            self.rig.supervisor.forget(other.process)
        for etcd in self.etcds:
            etcd.close()
        for world in self.worlds:
            world.destroy()
        assert not problems, "; ".join(problems)


# --- saying what is expected ------------------------------------------------------------------------


def expect(read, status, reason=None, message=None, timeout=20, what="condition"):
    """Waits until read() gives a condition of this status (and reason, and text in its message)."""
    def probe():
        have = read()
        ok = have is not None and have["status"] == status and (reason is None or have["reason"] == reason) \
            and (message is None or message in have["message"])
        if not ok:
            raise AssertionError(have)
        return have
    return wait_for(f"{what} {status}/{reason}" + (f" with {message!r}" if message else ""), probe, timeout)


def expect_kcp(world, kind, status, reason=None, message=None, **options):
    return expect(lambda: world.kcp_condition(kind), status, reason, message,
                  what=f"KCP {world.kcp_name} {kind}", **options)


def expect_machine(world, index, kind, status, reason=None, message=None, **options):
    machine = world.machines[index] if isinstance(index, int) else index
    return expect(lambda: world.machine_condition(machine, kind), status, reason, message,
                  what=f"Machine {machine} {kind}", **options)


def expect_md(world, kind, status, reason=None, message=None, **options):
    return expect(lambda: world.md_condition(kind), status, reason, message, what=f"MD {world.md_name} {kind}", **options)


def expect_healthy(world, **options):
    expect_kcp(world, "ControlPlaneComponentsHealthy", "True", "Healthy", **options)


def versions(world):
    """Resource versions of everything that we might write."""
    out = {}
    for resource in ("kubeadmcontrolplanes", "machines", "machinedeployments", "machinesets", "clusters", "secrets"):
        for obj in world.api.list(resource, world.namespace):
            out[resource + "/" + obj["metadata"]["name"]] = obj["metadata"]["resourceVersion"]
    return out


def expect_unchanged(world, seconds, what="objects"):
    before = versions(world)
    time.sleep(seconds)
    after = versions(world)
    changed = [name for name in before if after.get(name) != before[name]]
    assert not changed, f"{what} changed within {seconds} s though nothing happened: {changed}"


def flip(world, node=0, component="kube-scheduler", timeout=20):
    """A Pod fails and comes back, and the conditions follow; the proof that a controller works."""
    name = world.nodes[world.machines[node]]
    world.set_pod(component, name, ready=False)
    expect_kcp(world, "ControlPlaneComponentsHealthy", "False", "NotHealthy", timeout=timeout)
    world.set_pod(component, name)
    expect_healthy(world, timeout=timeout)


def pod_reason(profile, word):
    return ("Pod" if profile == "tables" else "") + word


# --- conditions and what moves them -----------------------------------------------------------------


@case(*PROFILES)
def conditions_appear(t, profile):
    w = t.world()
    t.controller(*STATUS, "--profile", profile)
    expect_healthy(w)
    kcp = w.get_kcp()
    have = conditions(kcp)
    assert have["Remediating"]["status"] == "False" and have["Remediating"]["reason"] == "NotRemediating", have["Remediating"]
    assert have["Deleting"]["status"] == "False" and have["Deleting"]["reason"] == "NotDeleting", have["Deleting"]
    assert "EtcdClusterHealthy" not in have, "external etcd has no EtcdClusterHealthy"
    assert {"Initialized", "CertificatesAvailable"} <= set(have), "conditions of others are gone"
    for kind in ("ControlPlaneComponentsHealthy", "Remediating", "Deleting"):
        assert have[kind]["observedGeneration"] == kcp["metadata"]["generation"], have[kind]
        assert have[kind]["message"] == "", have[kind]
    for machine in w.machines:
        for kind in POD_CONDITIONS:
            expect_machine(w, machine, kind, "True", pod_reason(profile, "Running"))
        mine = conditions(w.get_machine(machine))
        assert "EtcdPodHealthy" not in mine and "EtcdMemberHealthy" not in mine, mine
    expect_md(w, "Remediating", "False", "NotRemediating")
    for worker in w.workers:
        assert not OURS_ON_MACHINE & set(conditions(w.get_machine(worker))), "worker machines have no pod conditions"


@case(*PROFILES)
def managed_etcd_pods(t, profile):
    w = t.world(external_etcd=False)
    t.controller(*STATUS, "--profile", profile)
    for machine in w.machines:
        expect_machine(w, machine, "EtcdPodHealthy", "True", pod_reason(profile, "Running"))
    expect_healthy(w)
    w.set_pod("etcd", w.nodes[w.machines[1]], ready=False)
    expect_machine(w, 1, "EtcdPodHealthy", "False", pod_reason(profile, "Provisioning"))
    expect_kcp(w, "ControlPlaneComponentsHealthy", "False", "NotHealthy", "EtcdPodHealthy")


@case()
def large_events(t):
    """An event of any size is handed over when it comes, not when something else happens."""
    w = t.world()
    t.controller(*STATUS)
    expect_healthy(w)
    node = w.nodes[w.machines[0]]
    for size in (3_000, 9_000, 15_000, 17_000, 40_000, 200_000):
        w.inside.patch("pods", "kube-system", f"kube-scheduler-{node}", {"metadata": {"annotations": {"large": "x" * size}}})
        time.sleep(0.2)
        for ready, status in ((False, "False"), (True, "True")):
            w.set_pod("kube-scheduler", node, ready=ready)
            expect_kcp(w, "ControlPlaneComponentsHealthy", status, timeout=4)


@case()
def conditions_shared_with_others(t):
    """Another manager owns parts of conditions that we cannot judge: the rest must not fail for it."""
    w = t.world(external_etcd=False)
    good = t.rig.workloads[0].kubeconfig_text()
    w.set_kcp_conditions(condition("EtcdClusterHealthy", "True", "Healthy"))
    for machine in w.machines:
        w.set_conditions("machines", machine, condition("EtcdMemberHealthy", "True", "Healthy"))
    w.write_kubeconfig("not a kubeconfig")
    t.controller(*STATUS)
    expect_kcp(w, "EtcdClusterHealthy", "Unknown")
    w.write_kubeconfig(good)
    expect_healthy(w, timeout=40)
    # Never claimed without evidence: gone, or Unknown.
    have = w.kcp_condition("EtcdClusterHealthy")
    assert have is None or have["status"] == "Unknown", have
    w.set_pod("kube-scheduler", w.nodes[w.machines[0]], ready=False)
    expect_kcp(w, "ControlPlaneComponentsHealthy", "False", "NotHealthy")


@case(*PROFILES)
def pods_both_ways(t, profile):
    w = t.world()
    t.controller(*STATUS, "--profile", profile)
    expect_healthy(w)
    node = w.nodes[w.machines[0]]
    steps = [
        (dict(ready=False), "False", "Provisioning", "Waiting for startup or readiness probes"),
        (dict(ready=False, waiting="CrashLoopBackOff", last_exit=1), "False", "Failed", "CrashLoopBackOff"),
        (dict(ready=False, waiting="ContainerCreating"), "False", "Provisioning", "ContainerCreating"),
        (dict(ready=False, terminated="OOMKilled"), "False", "Failed", "OOMKilled"),
        (dict(ready=False, phase="Failed"), "False", "Failed", "All the containers have been terminated"),
        (dict(), "True", "Running", ""),
    ]
    for state, status, reason, message in steps:
        w.set_pod("kube-scheduler", node, **state)
        expect_machine(w, 0, "SchedulerPodHealthy", status, pod_reason(profile, reason), message)
        kcp_reason = "Healthy" if status == "True" else "NotHealthy"
        expect_kcp(w, "ControlPlaneComponentsHealthy", status, kcp_reason, message)
    w.delete_pod("kube-apiserver", node)
    expect_machine(w, 0, "APIServerPodHealthy", "False", pod_reason(profile, "DoesNotExist"), "Pod does not exist")
    expect_kcp(w, "ControlPlaneComponentsHealthy", "False", "NotHealthy",
               f"* Machine {w.machines[0]}:\n  * APIServerPodHealthy: Pod does not exist")
    w.create_pod("kube-apiserver", node)
    expect_machine(w, 0, "APIServerPodHealthy", "True", pod_reason(profile, "Running"))
    expect_healthy(w)


@case(*PROFILES)
def nodes_both_ways(t, profile):
    w = t.world()
    t.controller(*STATUS, "--profile", profile)
    expect_healthy(w)
    machine, node = w.machines[2], w.nodes[w.machines[2]]
    reason = pod_reason(profile, "InspectionFailed")
    w.set_node_ready(node, "Unknown")
    expect_machine(w, machine, "APIServerPodHealthy", "Unknown", reason, "Node Ready condition is Unknown, Pod data might be stale")
    expect_kcp(w, "ControlPlaneComponentsHealthy", "Unknown", "HealthUnknown")
    w.set_node_ready(node, "True")
    expect_healthy(w)
    w.taint_node(node, ("node.kubernetes.io/unreachable", "NoExecute"))
    expect_machine(w, machine, "SchedulerPodHealthy", "Unknown", reason, f"Node {node} is unreachable")
    w.taint_node(node)
    expect_healthy(w)
    w.delete_node(node)
    expect_machine(w, machine, "SchedulerPodHealthy", "Unknown", reason, f"Node {node} does not exist")
    w.create_node(node)
    expect_healthy(w)
    w.create_node("orphan")
    expect_kcp(w, "ControlPlaneComponentsHealthy", "False", "NotHealthy", "Control plane Node orphan does not have a corresponding Machine")
    w.delete_node("orphan")
    expect_healthy(w)


@case()
def machine_deleting(t):
    w = t.world()
    t.controller(*STATUS)
    expect_healthy(w)
    w.delete("machines", w.machines[0])
    expect_machine(w, 0, "APIServerPodHealthy", "False", "PodDeleting", "Machine is deleting")
    expect_kcp(w, "ControlPlaneComponentsHealthy", "False", "NotHealthy", "Machine is deleting")
    w.finish("machines", w.machines[0])
    w.delete_node(w.nodes[w.machines[0]])
    expect_healthy(w)


@case(*PROFILES)
def remediating_control_plane(t, profile):
    w = t.world()
    t.controller(*STATUS, "--profile", profile)
    expect_kcp(w, "Remediating", "False", "NotRemediating")
    w.mark_unhealthy(w.machines[0], to_remediate=False)
    suffix = "not to be remediated by KubeadmControlPlane" if profile != "tables" else "not to be remediated"
    expect_kcp(w, "Remediating", "False", "NotRemediating", f"Machine {w.machines[0]} is not healthy ({suffix})")
    w.mark_unhealthy(w.machines[0])
    expect_kcp(w, "Remediating", "True", "Remediating", f"* Machine {w.machines[0]}: Waiting for remediation")
    w.mark_healthy(w.machines[0])
    expect_kcp(w, "Remediating", "False", "NotRemediating")


@case(*PROFILES)
def remediating_deployment(t, profile):
    w = t.world()
    t.controller(*STATUS, "--profile", profile)
    expect_md(w, "Remediating", "False", "NotRemediating")
    w.mark_unhealthy(w.workers[1], to_remediate=False)
    expect_md(w, "Remediating", "False", "NotRemediating",
              f"Machine {w.workers[1]} is not healthy (not to be remediated by MachineDeployment/MachineSet)")
    w.mark_unhealthy(w.workers[1])
    expect_md(w, "Remediating", "True", "Remediating", f"* Machine {w.workers[1]}: Waiting for remediation")
    w.mark_healthy(w.workers[1])
    expect_md(w, "Remediating", "False", "NotRemediating")


@case(*PROFILES)
def control_plane_deleting(t, profile):
    w = t.world()
    t.controller(*STATUS, "--profile", profile)
    expect_kcp(w, "Deleting", "False", "NotDeleting")
    w.delete("kubeadmcontrolplanes", w.kcp_name)
    blocked = expect_kcp(w, "Deleting", "True", "WaitingForWorkersDeletion",
                         "KubeadmControlPlane deletion blocked because following objects still exist:")
    assert "* Machines: " + ", ".join(w.workers) in blocked["message"], blocked
    for worker in w.workers:
        w.delete("machines", worker)
        w.finish("machines", worker)
    after = wait_for("the next phase", lambda: next(
        (c for c in [w.kcp_condition("Deleting")] if c and c["reason"] != "WaitingForWorkersDeletion"), None))
    assert after["status"] == "True", after
    assert after["lastTransitionTime"] == blocked["lastTransitionTime"], "a change of reason alone moved lastTransitionTime"
    assert len([m for m in w.machines if t.api.find("machines", w.namespace, m)]) == 3, "status mode deletes nothing"
    assert "kubeadm.controlplane.cluster.x-k8s.io" in w.get_kcp()["metadata"]["finalizers"], "status mode removes no finalizer"


@case(*PROFILES)
def ladder(t, profile):
    waiting = t.world("fresh", server=None, initialized=False, external_etcd=False, workers=0)
    nowhere = t.world("nowhere", server=None, endpoint=False, workers=0)
    t.controller(*STATUS, "--profile", profile)
    for kind in ("ControlPlaneComponentsHealthy", "EtcdClusterHealthy"):
        expect_kcp(waiting, kind, "Unknown", "InspectionFailed", "Waiting for Cluster control plane to be initialized")
    expect_machine(waiting, 0, "EtcdMemberHealthy", "Unknown", "InspectionFailed")
    expect_kcp(nowhere, "ControlPlaneComponentsHealthy", "Unknown", "InspectionFailed",
               "Waiting for Cluster spec.controlPlaneEndpoint to be set")
    has = nowhere.kcp_condition("EtcdClusterHealthy") is not None
    assert has == (profile != "tables"), "external etcd on the ladder: only cluster-api-1.12 sets EtcdClusterHealthy"
    # And up the ladder: initialized, with an endpoint, but no connection.
    nowhere.api.patch("clusters", "default", "nowhere", {"spec": {"controlPlaneEndpoint": {"host": "127.0.0.1", "port": 6443}}})
    nowhere.set_kcp_conditions(drop=("ControlPlaneComponentsHealthy",))
    expect_kcp(nowhere, "ControlPlaneComponentsHealthy", "Unknown", "ConnectionDown")


# --- who may be touched ------------------------------------------------------------------------------


@case()
def shadow_writes_nothing(t):
    w = t.world()
    p = t.proxy(t.rig.management.url)
    c = t.controller(kubeconfig=t.rig.management.kubeconfig_file(server=p.url, name="shadow"))
    time.sleep(1)
    expect_unchanged(w, 2)
    w.set_pod("kube-scheduler", w.nodes[w.machines[0]], ready=False)
    time.sleep(2)
    assert w.kcp_condition("ControlPlaneComponentsHealthy") is None
    writes = [x for x in p.stats()["writes"] or [] if "reviews" not in x["path"]]
    assert not writes, f"shadow mode sent writes: {writes[:3]}"
    disagreement = [line for line in c.metrics_text()[1].splitlines() if line.startswith("plimsoll_") and "disagree" in line]
    assert disagreement, "no metric reports disagreement with the stored status"


@case()
def dry_run_writes_nothing(t):
    w = t.world()
    t.controller(*STATUS, "--dry-run")
    time.sleep(1)
    expect_unchanged(w, 2)


@case()
def watch_filter(t):
    mine = t.world("mine", labels={"cluster.x-k8s.io/watch-filter": "plimsoll"})
    other = t.world("other", server=1)
    foreign = t.world("foreign", server=None, labels={"cluster.x-k8s.io/watch-filter": "else"}, workers=0)
    t.controller("--mode", "status", "--watch-filter", "plimsoll")
    expect_healthy(mine)
    expect_md(mine, "Remediating", "False")
    for world in (other, foreign):
        assert not OURS_ON_KCP & set(conditions(world.get_kcp())), f"{world.name} does not carry the label"


@case()
def paused(t):
    w = t.world()
    t.controller(*STATUS)
    expect_healthy(w)
    w.pause()
    time.sleep(0.5)
    w.set_pod("kube-scheduler", w.nodes[w.machines[0]], ready=False)
    time.sleep(2)
    assert w.kcp_condition("ControlPlaneComponentsHealthy")["status"] == "True", "written while the Cluster is paused"
    w.pause(False)
    expect_kcp(w, "ControlPlaneComponentsHealthy", "False", "NotHealthy")
    annotate = lambda value: t.api.patch("kubeadmcontrolplanes", "default", w.kcp_name,
                                         {"metadata": {"annotations": {"cluster.x-k8s.io/paused": value}}})
    annotate("")
    time.sleep(0.5)
    w.set_pod("kube-scheduler", w.nodes[w.machines[0]])
    time.sleep(2)
    assert w.kcp_condition("ControlPlaneComponentsHealthy")["status"] == "False", "written while the KCP is paused"
    annotate(None)
    expect_healthy(w)


@case()
def one_namespace(t):
    here = t.world("here", namespace="team-a")
    there = t.world("there", server=1, namespace="team-b")
    t.controller(*STATUS, "--namespace", "team-a")
    expect_healthy(here)
    time.sleep(1)
    assert not OURS_ON_KCP & set(conditions(there.get_kcp())), "another namespace was written"


@case()
def two_clusters_of_one_name(t):
    a = t.world("twin", namespace="team-a")
    b = t.world("twin", server=1, namespace="team-b")
    t.controller(*STATUS)
    expect_healthy(a)
    expect_healthy(b)
    a.set_pod("kube-scheduler", a.nodes[a.machines[0]], ready=False)
    expect_kcp(a, "ControlPlaneComponentsHealthy", "False")
    assert b.kcp_condition("ControlPlaneComponentsHealthy")["status"] == "True"


@case()
def objects_come_and_go(t):
    t.controller(*STATUS)
    w = t.world("late")
    expect_healthy(w)
    w.destroy()
    t.worlds.remove(w)
    again = t.world("late")
    expect_healthy(again)
    flip(again)


# --- what users see ----------------------------------------------------------------------------------


@case()
def kubectl_shows_them(t):
    w = t.world()
    t.controller(*STATUS)
    waited = t.rig.kubectl("wait", "--for=condition=ControlPlaneComponentsHealthy", f"kcp/{w.kcp_name}", "--timeout=20s")
    assert "condition met" in waited.stdout, waited.stdout
    got = t.rig.kubectl("get", "kcp").stdout
    assert "INITIALIZED" in got and w.kcp_name in got, got
    got = t.rig.kubectl("get", "kcp", w.kcp_name, "-o",
                        "jsonpath={.status.conditions[?(@.type=='ControlPlaneComponentsHealthy')].status}").stdout
    assert got == "True", got
    w.set_pod("kube-scheduler", w.nodes[w.machines[0]], ready=False)
    t.rig.kubectl("wait", "--for=condition=ControlPlaneComponentsHealthy=False", f"kcp/{w.kcp_name}", "--timeout=20s")
    described = t.rig.kubectl("describe", "kcp", w.kcp_name).stdout
    assert "ControlPlaneComponentsHealthy" in described and "SchedulerPodHealthy" in described, described
    t.rig.kubectl("wait", "--for=condition=SchedulerPodHealthy=False", f"machine/{w.machines[0]}", "--timeout=20s")


@case()
def events_on_transitions(t):
    w = t.world()
    t.controller(*STATUS)
    expect_healthy(w)
    w.set_pod("kube-scheduler", w.nodes[w.machines[0]], ready=False)
    expect_kcp(w, "ControlPlaneComponentsHealthy", "False")

    def events():
        text = t.rig.kubectl("describe", "kcp", w.kcp_name).stdout
        return text.split("\nEvents:", 1)[1] if "\nEvents:" in text else ""
    shown = wait_for("an Event in kubectl describe", lambda: (e := events()) and "ControlPlaneComponentsHealthy" in e and e, 10, every=0.5)
    assert "Warning" in shown and "plimsoll" in shown, shown
    count = len(t.api.list("events", "default"))
    time.sleep(2)
    assert len(t.api.list("events", "default")) == count, "Events without a transition"


@case()
def only_ours_is_owned(t):
    w = t.world()
    t.controller(*STATUS)
    expect_healthy(w)
    expect_machine(w, 0, "SchedulerPodHealthy", "True")
    expect_md(w, "Remediating", "False")
    for obj, allowed in ((w.get_kcp(), OURS_ON_KCP), (w.get_machine(w.machines[0]), OURS_ON_MACHINE), (w.get_md(), {"Remediating"})):
        entries = [e for e in obj["metadata"]["managedFields"] if e["manager"] == "plimsoll"]
        assert len(entries) == 1, entries
        assert entries[0]["operation"] == "Apply" and entries[0]["subresource"] == "status", entries
        fields = entries[0]["fieldsV1"]
        assert set(fields) == {"f:status"} and set(fields["f:status"]) == {"f:conditions"}, fields
        kinds = {json.loads(key[2:])["type"] for key in fields["f:status"]["f:conditions"] if key.startswith("k:")}
        assert kinds and kinds <= allowed, kinds
    # What others write meanwhile stays, and what they break of ours is put right.
    w.set_kcp_conditions(condition("Custom", "True", "Fine"))
    w.set_kcp_conditions(condition("ControlPlaneComponentsHealthy", "False", "Wrong", "somebody else"))
    expect_healthy(w)
    w.set_kcp_conditions(drop=("ControlPlaneComponentsHealthy",))
    expect_healthy(w)
    assert w.kcp_condition("Custom")["status"] == "True"


@case()
def quiet_when_nothing_changes(t):
    w = t.world()
    p = t.proxy(t.rig.management.url)
    c = t.controller(*STATUS, kubeconfig=t.rig.management.kubeconfig_file(server=p.url, name="quiet"))
    expect_healthy(w)
    expect_md(w, "Remediating", "False")
    time.sleep(1.5)
    p.reset()
    expect_unchanged(w, 6)
    sent = p.stats()
    assert not sent["writes"], f"writes though nothing changed: {sent['writes'][:3]}"
    # A Node's heartbeat and a change of labels are no reason to write either.
    w.set_node_ready(w.nodes[w.machines[0]], "True")
    t.api.patch("machines", "default", w.machines[0], {"metadata": {"labels": {"x": "y"}}})
    time.sleep(1.5)
    assert not p.stats()["writes"], p.stats()["writes"][:3]
    cpu = c.process.cpu_seconds()
    time.sleep(2)
    assert c.process.cpu_seconds() - cpu < 0.2, "busy when idle"


@case()
def last_transition_time(t):
    w = t.world()
    t.controller(*STATUS)
    first = expect_kcp(w, "ControlPlaneComponentsHealthy", "True")
    time.sleep(1.1)
    node = w.nodes[w.machines[0]]
    w.set_pod("kube-scheduler", node, ready=False)
    second = expect_kcp(w, "ControlPlaneComponentsHealthy", "False")
    assert second["lastTransitionTime"] > first["lastTransitionTime"]
    time.sleep(1.1)
    w.set_pod("kube-scheduler", node, ready=False, waiting="CrashLoopBackOff", last_exit=2)
    third = expect_kcp(w, "ControlPlaneComponentsHealthy", "False", message="CrashLoopBackOff")
    assert third["lastTransitionTime"] == second["lastTransitionTime"], "the message alone moved it"


@case()
def health_endpoints(t):
    c = t.controller()
    for path in ("/healthz", "/readyz"):
        code, body = c.health(path)
        assert code == 200, (path, code, body)
    assert c.health("/nothing")[0] == 404


METRICS = ("controller_runtime_reconcile_total", "workqueue_depth", "rest_client_requests_total",
           "leader_election_master_status", "capi_cluster_cache_connection_up", "capi_kubeadmcontrolplane_status_condition")


@case()
def metrics_names(t):
    w = t.world()
    c = t.controller(*STATUS, *FAST_LEASE)
    expect_healthy(w)
    code, text = c.metrics_text()
    assert code == 200, text
    missing = [name for name in METRICS if "\n" + name not in "\n" + text]
    assert not missing, f"missing: {missing}"
    assert "\nplimsoll_" in text
    assert c.metric("capi_kubeadmcontrolplane_status_condition", cluster_name="prod", name=w.kcp_name,
                    namespace="default", type="ControlPlaneComponentsHealthy", status="True") == 1
    assert c.metric("capi_cluster_cache_connection_up") == 1
    for line in text.splitlines():
        assert line.startswith("#") or " " in line, f"not Prometheus text: {line!r}"


@case()
def metrics_need_permission(t):
    t.api.delete("clusterroles", None, "e2e-metrics-reader")
    t.api.create("clusterroles", {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
                                  "metadata": {"name": "e2e-metrics-reader"},
                                  "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]})
    t.rig.bind_user("e2e-metrics-reader", "scraper")
    c = t.controller(insecure=False)
    assert c.metrics_text()[0] == 401, "without a token"
    assert c.metrics_text("no-such-token")[0] == 401, "with a wrong token"
    assert c.metrics_text(t.rig.management.tokens["nobody"])[0] == 403, "without the right"
    code, text = wait_for("permission to reach the server", lambda: (
        answer := c.metrics_text(t.rig.management.tokens["scraper"])) and answer[0] == 200 and answer)
    assert "controller_runtime_reconcile_total" in text
    try:
        plain = fetch(f"http://127.0.0.1:{c.diagnostics_port}/metrics")
    except OSError:
        plain = (0, "")
    assert plain[0] in (0, 400), f"plain HTTP was answered with {plain[0]}"


@case()
def live_commands(t):
    w = t.world()
    t.controller(*STATUS)
    expect_healthy(w)
    live = ("--kubeconfig", t.rig.management.kubeconfig_file(), "-n", "default")
    explained = call("explain", f"kcp/{w.kcp_name}", *live)
    assert explained.returncode in (0, 3) and "ControlPlaneComponentsHealthy" in explained.stdout, explained
    described = call("describe", w.name, *live)
    assert w.kcp_name in described.stdout and w.machines[0] in described.stdout, described
    as_json = call("describe", w.name, *live, "-o", "json")
    json.loads(as_json.stdout)
    captured = call("snapshot", w.name, *live)
    assert captured.returncode == 0, captured
    assert t.rig.workloads[0].tokens["admin"] not in captured.stdout and "BEGIN CERT" not in captured.stdout
    path = t.rig.supervisor.write("captured.yaml", captured.stdout)
    offline = call("eval", "-f", path)
    assert "ControlPlaneComponentsHealthy" in offline.stdout and offline.returncode in (0, 3), offline
    audit = call("eval", "--live", "--diff", *live)
    assert audit.returncode in (0, 3), audit
    w.set_kcp_conditions(condition("Other", "True", "Fine"))
    w.set_pod("kube-scheduler", w.nodes[w.machines[0]], ready=False)
    expect_kcp(w, "ControlPlaneComponentsHealthy", "False")
    assert call("explain", f"kcp/{w.kcp_name}", *live).returncode == 1


# --- what it must survive ----------------------------------------------------------------------------


@case("graceful", "kill -9")
def api_server_restart(t, how):
    w = t.world()
    c = t.controller(*STATUS)
    expect_healthy(w)
    t.rig.management.restart(graceful=how == "graceful")
    w.set_pod("kube-scheduler", w.nodes[w.machines[0]], ready=False)
    t.rig.management.ready()
    expect_kcp(w, "ControlPlaneComponentsHealthy", "False", timeout=60)
    assert c.process.running()
    w.set_pod("kube-scheduler", w.nodes[w.machines[0]])
    expect_healthy(w, timeout=30)


@case()
def workload_server_restart(t):
    w = t.world()
    t.controller(*STATUS)
    expect_healthy(w)
    t.rig.workloads[0].restart()
    t.rig.workloads[0].ready()
    w.set_pod("kube-scheduler", w.nodes[w.machines[0]], ready=False)
    expect_kcp(w, "ControlPlaneComponentsHealthy", "False", timeout=90)


@case()
def controller_killed(t):
    w = t.world()
    c = t.controller(*STATUS)
    for round_ in range(3):
        expect_healthy(w)
        w.set_pod("kube-scheduler", w.nodes[w.machines[0]], ready=False)
        if round_:
            time.sleep(0.02 * round_)
        c.kill()
        w.set_pod("kube-apiserver", w.nodes[w.machines[1]], ready=False)
        c.restart()
        expect_kcp(w, "ControlPlaneComponentsHealthy", "False", message="APIServerPodHealthy")
        w.set_pod("kube-scheduler", w.nodes[w.machines[0]])
        w.set_pod("kube-apiserver", w.nodes[w.machines[1]])


@case()
def compaction(t):
    """Watches that go on from a version which the server has forgotten: 410, and a list."""
    w = t.world()
    p = t.proxy(t.rig.management.url)
    inside = t.proxy(t.rig.workloads[0].url)
    w.write_kubeconfig(t.rig.workloads[0].kubeconfig_text(server=inside.url))
    t.controller(*STATUS, kubeconfig=t.rig.management.kubeconfig_file(server=p.url, name="compaction"))
    expect_healthy(w)
    p.set("refuse")
    inside.set("refuse")
    for i in range(20):
        t.api.patch("machines", "default", w.machines[0], {"metadata": {"annotations": {"count": str(i)}}})
    w.mark_unhealthy(w.workers[0])
    w.delete("machines", w.workers[1])
    w.finish("machines", w.workers[1])
    w.set_pod("kube-scheduler", w.nodes[w.machines[0]], ready=False)
    w.delete_pod("kube-apiserver", w.nodes[w.machines[1]])
    t.rig.compact()
    # The caches of the servers still know; without them, nobody does.
    t.rig.management.restart(graceful=False)
    t.rig.workloads[0].restart(graceful=False)
    t.rig.management.ready()
    t.rig.workloads[0].ready()
    p.set()
    inside.set()
    expect_md(w, "Remediating", "True", timeout=60)
    expect_kcp(w, "ControlPlaneComponentsHealthy", "False", message="APIServerPodHealthy: Pod does not exist", timeout=90)
    expect_machine(w, 0, "SchedulerPodHealthy", "False")
    w.create_pod("kube-apiserver", w.nodes[w.machines[1]])
    w.set_pod("kube-scheduler", w.nodes[w.machines[0]])
    expect_healthy(w)


@case()
def cut_connections(t):
    """Streams that end anywhere, also in the middle of an event, lose and repeat nothing."""
    w = t.world()
    p = t.proxy(t.rig.management.url)
    inside = t.proxy(t.rig.workloads[0].url)
    w.write_kubeconfig(t.rig.workloads[0].kubeconfig_text(server=inside.url))
    t.controller(*STATUS, kubeconfig=t.rig.management.kubeconfig_file(server=p.url, name="cut"))
    expect_healthy(w)
    # Each cut adds to the reader's backoff, which only two quiet minutes take back: few cuts, much time.
    for size in (1, 700, 2500):
        inside.set(rules=[{"method": "GET", "path": "watch=", "cutAfter": size, "count": 1}])
        p.set(rules=[{"method": "GET", "path": "watch=", "cutAfter": size, "count": 2}])
        inside.cut()
        p.cut()
        w.set_pod("kube-scheduler", w.nodes[w.machines[0]], ready=False)
        expect_kcp(w, "ControlPlaneComponentsHealthy", "False", timeout=120)
        inside.set()
        p.set()
        w.set_pod("kube-scheduler", w.nodes[w.machines[0]])
        expect_healthy(w, timeout=120)


STORMS = {
    "409": [{"method": "PATCH|PUT|POST", "path": "", "every": 2, "code": 409}],
    "429": [{"path": "", "every": 3, "code": 429, "retryAfter": 1, "plain": True}],
    "500": [{"path": "", "every": 2, "code": 500}],
    "503": [{"path": "", "every": 2, "code": 503, "retryAfter": 1}],
    "504": [{"method": "PATCH", "path": "", "every": 2, "code": 504}],
    "aborts": [{"path": "", "every": 2, "abort": True}],
    "delays": [{"path": "", "every": 3, "delay": 700}],
    "junk": [{"method": "GET", "path": "", "every": 3, "code": 200, "body": "{\"kind\":\"Li"}],
}


@case(*STORMS)
def storm(t, what):
    w = t.world()
    p = t.proxy(t.rig.management.url)
    c = t.controller(*STATUS, kubeconfig=t.rig.management.kubeconfig_file(server=p.url, name="storm"))
    expect_healthy(w)
    p.set(rules=STORMS[what])
    p.cut()
    for _ in range(3):
        w.set_pod("kube-scheduler", w.nodes[w.machines[0]], ready=False)
        time.sleep(0.7)
        w.set_pod("kube-scheduler", w.nodes[w.machines[0]])
        time.sleep(0.7)
    w.set_pod("kube-scheduler", w.nodes[w.machines[0]], ready=False)
    expect_kcp(w, "ControlPlaneComponentsHealthy", "False", timeout=60)
    requests = sum(p.stats()["requests"].values())
    time.sleep(2)
    hurried = (sum(p.stats()["requests"].values()) - requests) / 2
    assert hurried < 150, f"{hurried:.0f} requests a second in the storm: no backoff"
    p.set()
    w.set_pod("kube-scheduler", w.nodes[w.machines[0]])
    expect_healthy(w, timeout=60)
    assert c.process.running()


@case()
def server_refuses_everything(t):
    """A total outage for seconds, seen as an outage: it goes on trying, without hurry."""
    w = t.world()
    p = t.proxy(t.rig.management.url)
    c = t.controller(*STATUS, kubeconfig=t.rig.management.kubeconfig_file(server=p.url, name="outage"))
    expect_healthy(w)
    p.set(rules=[{"path": "", "code": 503}])
    p.cut()
    time.sleep(1)
    before, cpu = sum(p.stats()["requests"].values()), c.process.cpu_seconds()
    w.set_pod("kube-scheduler", w.nodes[w.machines[0]], ready=False)
    time.sleep(6)
    rate = (sum(p.stats()["requests"].values()) - before) / 6
    assert rate < 50, f"{rate:.0f} requests a second into an outage"
    assert c.process.cpu_seconds() - cpu < 1, "busy during an outage"
    p.set()
    expect_kcp(w, "ControlPlaneComponentsHealthy", "False", timeout=60)


@case()
def token_expires_and_rotates(t):
    w = t.world()
    uid = t.rig.service_account("default", "rotating", "cluster-admin")
    mint = lambda seconds: t.rig.management.signer.token("default", "rotating", uid, seconds)
    path = t.rig.supervisor.write("token", mint(20))
    t.controller(*STATUS, kubeconfig=t.rig.management.kubeconfig_file(name="rotating", tokenFile=path))
    expect_healthy(w)
    # Past its end, and past the 10 s for which the server remembers a good token.
    time.sleep(33)
    assert Client(t.rig.management.url, t.rig.ca.cert, token=open(path, encoding="ascii").read()).raw("GET", "/api")[0] == 401
    w.set_pod("kube-scheduler", w.nodes[w.machines[0]], ready=False)
    time.sleep(1)
    t.rig.supervisor.write("token", mint(3600))
    expect_kcp(w, "ControlPlaneComponentsHealthy", "False", timeout=90)
    w.set_pod("kube-scheduler", w.nodes[w.machines[0]])
    expect_healthy(w)


@case()
def certificate_expires_and_rotates(t):
    w = t.world()
    cert, key = t.rig.ca.issue("short", "/O=system:masters/CN=short", seconds=15)
    copy = lambda source, name: t.rig.supervisor.write(name, open(source, encoding="ascii").read())
    config = t.rig.management.kubeconfig_file(name="short", client_certificate=copy(cert, "tls.crt"), client_key=copy(key, "tls.key"))
    t.controller(*STATUS, kubeconfig=config)
    expect_healthy(w)
    time.sleep(17)
    w.set_pod("kube-scheduler", w.nodes[w.machines[0]], ready=False)
    time.sleep(1)
    fresh, fresh_key = t.rig.ca.issue("fresh", "/O=system:masters/CN=fresh")
    copy(fresh_key, "tls.key")
    copy(fresh, "tls.crt")
    expect_kcp(w, "ControlPlaneComponentsHealthy", "False", timeout=90)
    w.set_pod("kube-scheduler", w.nodes[w.machines[0]])
    expect_healthy(w)


@case()
def workload_certificate_rotates(t):
    """The kubeconfig Secret holds a certificate that ends; its renewal is a new Secret."""
    w = t.world()
    from rig import pki
    def text(seconds):
        cert, key = t.rig.ca.issue("workload", "/O=system:masters/CN=kubernetes-admin", seconds=seconds)
        return t.rig.workloads[0].kubeconfig_text(client_certificate_data=pki.pem_data(cert), client_key_data=pki.pem_data(key))
    w.write_kubeconfig(text(12))
    t.controller(*STATUS)
    expect_healthy(w)
    time.sleep(13)
    w.write_kubeconfig(text(3600))
    w.set_pod("kube-scheduler", w.nodes[w.machines[0]], ready=False)
    expect_kcp(w, "ControlPlaneComponentsHealthy", "False", timeout=60)


@case()
def kubeconfig_replaced(t):
    w = t.world("moving", kubeconfig=kubeconfig(f"https://127.0.0.1:{free_port()}", t.rig.ca.ca_data(), token="x"))
    c = t.controller(*STATUS)
    expect_kcp(w, "ControlPlaneComponentsHealthy", "Unknown", "ConnectionDown")
    w.write_kubeconfig("this: is not a kubeconfig\n")
    time.sleep(1)
    assert c.process.running()
    w.write_kubeconfig(t.rig.workloads[0].kubeconfig_text())
    expect_healthy(w, timeout=60)
    flip(w)


@case()
def hanging_workload_server(t):
    """One workload server stops answering; the other's changes are seen as fast as before."""
    hung, fine = t.world("hung"), t.world("fine", server=1)
    t.controller(*STATUS)
    expect_healthy(hung)
    expect_healthy(fine)
    t.rig.workloads[0].process.pause()
    for _ in range(4):
        start = time.monotonic()
        flip(fine, timeout=3)
        assert time.monotonic() - start < 3
        time.sleep(1)
    assert hung.kcp_condition("ControlPlaneComponentsHealthy")["status"] == "True", "what was known is kept for the grace period"
    t.rig.workloads[0].process.resume()
    hung.set_pod("kube-scheduler", hung.nodes[hung.machines[0]], ready=False)
    expect_kcp(hung, "ControlPlaneComponentsHealthy", "False", timeout=60)


@case()
def bad_neighbours(t):
    """Workload servers that refuse, reset, hang and drip, and a good one among them."""
    fine = t.world("fine")
    s = t.standin(clusters=5)
    bad = {}
    for n, mode in enumerate(("refuse", "reset", "hang", "drip", "freeze")):
        proxy = t.proxy(s.url)
        proxy.set(mode)
        bad[mode] = (t.world(f"c{n}", server=None, workers=0, kubeconfig=s.kubeconfig(n, server=proxy.url)), proxy)
    c = t.controller(*STATUS)
    for world, _ in bad.values():
        expect_kcp(world, "ControlPlaneComponentsHealthy", "Unknown", "ConnectionDown", timeout=40)
    for _ in range(5):
        start = time.monotonic()
        flip(fine, timeout=3)
        assert time.monotonic() - start < 3
        time.sleep(0.5)
    for _, proxy in bad.values():
        proxy.set()
    for world, _ in bad.values():
        expect_kcp(world, "ControlPlaneComponentsHealthy", "True", "Healthy", timeout=120)
    # And the other way: good ones that turn bad keep what they said.
    for mode, (_, proxy) in bad.items():
        proxy.set(mode)
    time.sleep(3)
    flip(fine, timeout=3)
    for mode, (world, _) in bad.items():
        assert world.kcp_condition("ControlPlaneComponentsHealthy")["status"] == "True", mode
    assert c.process.running()


@case(slow=True)
def grace_period(t):
    """More than two minutes without a probe: Unknown, with the time of the last good one."""
    w = t.world()
    t.controller(*STATUS, "--remote-conditions-grace-period", "2m")
    expect_healthy(w)
    t.rig.workloads[0].process.pause()
    time.sleep(60)
    assert w.kcp_condition("ControlPlaneComponentsHealthy")["status"] == "True"
    expect_kcp(w, "ControlPlaneComponentsHealthy", "Unknown", "ConnectionDown", "Last successful probe at 20", timeout=110)
    expect_machine(w, 0, "SchedulerPodHealthy", "Unknown", "PodConnectionDown")
    t.rig.workloads[0].process.resume()
    expect_healthy(w, timeout=120)


# --- who leads ---------------------------------------------------------------------------------------


def writers(*proxies):
    return [len([x for x in p.stats()["writes"] or [] if "/status" in x["path"] and x["code"] < 300]) for p in proxies]


@case("release", "kill -9")
def leader_election(t, how):
    w = t.world()
    p = [t.proxy(t.rig.management.url) for _ in range(2)]
    c = []
    for i in range(2):
        config = t.rig.management.kubeconfig_file(server=p[i].url, name=f"leader-{i}")
        c.append(t.controller(*STATUS, *FAST_LEASE, kubeconfig=config, wait=False))
        if i == 0:
            expect_healthy(w, timeout=30)
    time.sleep(2)
    flip(w)
    first, second = writers(*p)
    assert first > 0 and second == 0, f"both wrote: {first}, {second}"
    assert c[0].metric("leader_election_master_status") == 1 and c[1].metric("leader_election_master_status") == 0
    start = time.monotonic()
    if how == "release":
        assert c[0].stop(6) == 0
        leases = [x for x in t.api.list("leases") if "plimsoll" in x["metadata"]["name"]]
        assert leases, "no Lease named plimsoll"
    else:
        c[0].kill()
    w.set_pod("kube-scheduler", w.nodes[w.machines[0]], ready=False)
    expect_kcp(w, "ControlPlaneComponentsHealthy", "False", timeout=20)
    took = time.monotonic() - start
    if how == "release":
        assert took < 5, f"takeover after release took {took:.1f} s"
    else:
        assert took > 3, f"takeover {took:.1f} s after kill -9: before the lease could be over"
    assert writers(p[1])[0] > 0


@case()
def lost_lease_stops_writing(t):
    """A leader that cannot renew ends; it must not go on writing when another may lead."""
    t.world()
    p = t.proxy(t.rig.management.url)
    c = t.controller(*STATUS, *FAST_LEASE, wait=False,
                     kubeconfig=t.rig.management.kubeconfig_file(server=p.url, name="lost"))
    wait_for("leadership", lambda: c.metric("leader_election_master_status") == 1, 30, every=0.2)
    p.set(rules=[{"path": "/leases", "code": 500}])
    code = c.process.wait(15)
    assert code not in (None, 0), f"still there, or ended with {code}"


@case("busy", "idle", "server gone", "workload hangs")
def sigterm(t, how):
    w = t.world()
    c = t.controller(*STATUS, *FAST_LEASE)
    expect_healthy(w, timeout=30)
    stop = threading.Event()

    def keep_busy():
        while not stop.is_set():
            w.set_pod("kube-scheduler", w.nodes[w.machines[0]], ready=False)
            w.set_pod("kube-scheduler", w.nodes[w.machines[0]])
    worker = threading.Thread(target=keep_busy)
    if how == "busy":
        worker.start()
        time.sleep(0.5)
    if how == "server gone":
        t.rig.management.process.pause()
    if how == "workload hangs":
        t.rig.workloads[0].process.pause()
    start = time.monotonic()
    code = c.stop(10)
    took = time.monotonic() - start
    stop.set()
    if how == "busy":
        worker.join()
    assert code == 0, f"exit code {code} (None: killed)"
    assert took < 5.2, f"took {took:.1f} s"


# --- what is refused ---------------------------------------------------------------------------------


def expect_refused(t, what, *args, word=None, timeout=40):
    # Ports of its own: another group of the suite may try the same at this moment.
    for flag in ("--health-addr", "--diagnostics-address"):
        if flag not in args:
            args += (flag, f"127.0.0.1:{free_port()}")
    done = call(*args, timeout=timeout)
    lines = done.stderr.strip().splitlines()
    assert done.returncode == 2, f"{what}: exit code {done.returncode}: {done.stderr}"
    assert len(lines) == 1 and lines[0].startswith("plimsoll: "), f"{what}: not one clear line: {done.stderr!r}"
    assert not done.stdout, f"{what}: {done.stdout!r} on standard output"
    for w in [word] if isinstance(word, str) else word or ():
        assert w in lines[0], f"{what}: {lines[0]!r} does not say {w!r}"


@case()
def wrong_flags(t):
    run = ("run", "--kubeconfig", t.rig.management.kubeconfig_file())
    expect_refused(t, "unknown flag", *run, "--no-such-flag", word="no-such-flag")
    expect_refused(t, "no value", *run, "--mode", word="mode")
    expect_refused(t, "unknown mode", *run, "--mode", "everything", word="everything")
    expect_refused(t, "manage without a filter", *run, "--mode", "manage", word=("--watch-filter", "--all"))
    expect_refused(t, "status without a filter", *run, "--mode", "status", word=("--watch-filter", "--all"))
    expect_refused(t, "short grace period", *run, "--remote-conditions-grace-period", "1m", word="2m")
    expect_refused(t, "bad duration", *run, "--sync-period", "soon", word="soon")
    expect_refused(t, "bad address", *run, "--health-addr", "nowhere", word="nowhere")
    expect_refused(t, "unknown profile", *run, "--profile", "mine", word="mine")
    expect_refused(t, "lease order", *run, "--leader-elect", "--leader-elect-lease-duration", "5s",
                   "--leader-elect-renew-deadline", "10s", word="renew-deadline")


@case()
def bad_kubeconfig(t):
    write = t.rig.supervisor.write
    expect_refused(t, "missing file", "run", "--kubeconfig", "/nonexistent/config", word="/nonexistent/config")
    expect_refused(t, "not YAML", "run", "--kubeconfig", write("bad/1", "clusters: [\n"), word="bad/1")
    expect_refused(t, "no context", "run", "--kubeconfig", write("bad/2", "apiVersion: v1\nkind: Config\n"), word="bad/2")
    good = json.loads(t.rig.management.kubeconfig_text())
    good["current-context"] = "missing"
    expect_refused(t, "wrong context", "run", "--kubeconfig", write("bad/3", json.dumps(good)), word="missing")
    good["current-context"] = "rig"
    good["clusters"][0]["cluster"]["certificate-authority-data"] = "!!!"
    expect_refused(t, "bad CA", "run", "--kubeconfig", write("bad/4", json.dumps(good)), word="certificate-authority-data")


@case()
def unreachable_server(t):
    text = kubeconfig(f"https://127.0.0.1:{free_port()}", t.rig.ca.ca_data(), token="x")
    expect_refused(t, "nobody there", "run", "--kubeconfig", t.rig.supervisor.write("unreachable", text), word="127.0.0.1")


@case()
def wrong_ca(t):
    from rig import pki
    other = pki.Authority(t.rig.supervisor.path("other-ca"))
    server = t.rig.guarded()
    text = kubeconfig(server.url, other.ca_data(), token=server.tokens["admin"])
    expect_refused(t, "unknown authority", "run", "--kubeconfig", t.rig.supervisor.write("wrong-ca", text), word="certificate")


@case()
def wrong_token(t):
    server = t.rig.guarded()
    text = kubeconfig(server.url, server.ca_data(), token="wrong")
    expect_refused(t, "401", "run", "--kubeconfig", t.rig.supervisor.write("wrong-token", text), word="nauthorized")


@case()
def missing_crd(t):
    # A workload server is an API server without Cluster API.
    expect_refused(t, "no CRDs", "run", "--kubeconfig", t.rig.workloads[1].kubeconfig_file(), word="cluster.x-k8s.io")


@case()
def missing_permission(t):
    expect_refused(t, "403", "run", "--kubeconfig", t.rig.management.kubeconfig_file("nobody"), word="forbidden")


# --- deploy/ -----------------------------------------------------------------------------------------


def apply_deploy(t, overlay):
    rendered = t.rig.kubectl("kustomize", os.path.join(ROOT, "deploy", overlay)).stdout
    t.rig.kubectl("apply", "-f", "-", stdin=rendered)
    wait_for("the namespace", lambda: t.api.find("namespaces", None, "plimsoll-system"))
    account = t.api.get("serviceaccounts", "plimsoll-system", "plimsoll-manager")
    token = t.rig.management.signer.token("plimsoll-system", "plimsoll-manager", account["metadata"]["uid"], 3600)
    return rendered, token


def remove_deploy(t, rendered):
    # Not the namespace: a bare API server has nobody to finish its deletion.
    rendered = "\n---\n".join(d for d in rendered.split("\n---\n") if "\nkind: Namespace\n" not in d)
    t.rig.kubectl("delete", "--ignore-not-found", "--wait=false", "-f", "-", stdin=rendered)


@case("default", "status", "crd")
def deploy_applies(t, overlay):
    rendered = t.rig.kubectl("kustomize", os.path.join(ROOT, "deploy", overlay)).stdout
    if overlay == "crd":
        if not os.environ.get("CRD_DIR"):
            t.rig.kubectl("apply", "--dry-run=server", "--server-side", "--force-conflicts", "-f", "-", stdin=rendered)
        return
    # A dry run cannot put things into a namespace that is not there yet.
    if not t.api.find("namespaces", None, "plimsoll-system"):
        t.api.create("namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "plimsoll-system"}})
    dry = t.rig.kubectl("apply", "--dry-run=server", "--server-side", "--force-conflicts", "-f", "-", stdin=rendered)
    assert "Warning" not in dry.stderr, dry.stderr
    applied = t.rig.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=rendered)
    assert "Warning" not in applied.stderr, applied.stderr
    d = t.api.get("deployments", "plimsoll-system", "plimsoll-controller-manager")
    pod = d["spec"]["template"]["spec"]
    container = pod["containers"][0]
    assert container["name"] == "manager", container
    assert {p["name"]: p["containerPort"] for p in container["ports"]} == {"metrics": 8443, "healthz": 9440}
    assert container["securityContext"]["readOnlyRootFilesystem"] and pod["securityContext"]["runAsNonRoot"]
    assert d["metadata"]["labels"]["cluster.x-k8s.io/provider"] == "control-plane-plimsoll"
    # The Pod that the Deployment would make passes the namespace's own rule: restricted.
    made = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "would-be", "namespace": "plimsoll-system",
                                                            "labels": d["spec"]["template"]["metadata"]["labels"]}, "spec": pod}
    t.api.request("POST", Client.path("pods", "plimsoll-system", dryRun="All"), made)
    remove_deploy(t, rendered)


@case()
def deploy_arguments(t):
    """The arguments in the Deployments are ones that the program takes."""
    for overlay in ("default", "status"):
        rendered, _ = apply_deploy(t, overlay)
        deployment = t.api.get("deployments", "plimsoll-system", "plimsoll-controller-manager")
        args = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
        remove_deploy(t, rendered)
        args = [a for a in args if not a.startswith(("--health-addr", "--diagnostics-address"))]
        assert args[0] == "run"
        c = t.controller(*args[1:], wait=False)
        c.wait_ready(30)
        assert c.stop(10) == 0


@case("shadow", "status", "status with election")
def under_its_own_role(t, mode):
    """Least privilege: under the roles of deploy/rbac nothing is refused."""
    w = t.world(labels={"cluster.x-k8s.io/watch-filter": "plimsoll"})
    rendered, token = apply_deploy(t, "default" if mode == "shadow" else "status")
    p = t.proxy(t.rig.management.url)
    # Outside of a Pod the Lease goes where the kubeconfig's context points.
    config = t.rig.management.kubeconfig_file(server=p.url, name="role", namespace="plimsoll-system", token=token)
    args = () if mode == "shadow" else ("--mode", "status", "--watch-filter", "plimsoll")
    if "election" in mode:
        args += FAST_LEASE
    c = t.controller(*args, kubeconfig=config, insecure=False, wait=False)
    c.wait_ready()
    if mode == "shadow":
        time.sleep(2)
        assert not OURS_ON_KCP & set(conditions(w.get_kcp()))
    else:
        expect_healthy(w, timeout=30)
        flip(w)
        time.sleep(0.5)
        assert t.api.list("events", "default", fieldSelector=f"involvedObject.name={w.kcp_name}"), "no Events"
    assert c.metrics_text()[0] == 401
    # TokenReviews work under it, too: a known user without the right is a 403, not an error.
    assert c.metrics_text(t.rig.management.tokens["nobody"])[0] == 403
    refused = p.stats()["codes"].get("403", 0)
    assert refused == 0, f"{refused} requests were forbidden"
    assert c.stop(10) == 0
    remove_deploy(t, rendered)


# --- the rig itself (needs no plimsoll) --------------------------------------------------------------


@case()
def rig_fixtures(t):
    """The world is valid under these CRDs, and Server-Side Apply of a condition works on it."""
    w = t.world("fixture", external_etcd=False, namespace="fixtures")
    body = {"apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlane",
            "metadata": {"name": w.kcp_name},
            "status": {"conditions": [condition("ControlPlaneComponentsHealthy", "True", "Healthy")]}}
    t.api.apply("kubeadmcontrolplanes", w.namespace, w.kcp_name, body, "rig", sub="status")
    assert w.kcp_condition("Initialized")["status"] == "True"
    body["status"]["conditions"][0].pop("message")
    try:
        t.api.apply("kubeadmcontrolplanes", w.namespace, w.kcp_name, body, "rig", sub="status")
        raise SystemExit("a condition without message was accepted")
    except ApiError as error:
        assert error.code == 422, error
    shown = t.rig.kubectl("get", "kcp,md,ms,ma,cl", "-n", w.namespace).stdout
    assert w.kcp_name in shown and "UP-TO-DATE" in shown
    assert t.rig.kubectl("get", "cluster-api", "-n", w.namespace).stdout.count(w.name) > 5, "category cluster-api"
    assert t.rig.kubectl("get", "kcp", "--subresource=scale", w.kcp_name, "-n", w.namespace).returncode == 0


# --- running them ------------------------------------------------------------------------------------


def run(rig, name, function, variant, verbose):
    """True: passed; False: failed; None: left out, for something that it needs cannot be had here."""
    start = time.monotonic()
    t = Case(rig, name)
    error = None
    try:
        if why := left_out(name):
            raise LeftOut(f"the embedded server has no {why}")
        function(t) if variant is None else function(t, variant)
    except KeyboardInterrupt:
        raise
    except LeftOut as reason:
        t.close()
        print(f"left out {name}: {reason}", flush=True)
        return None
    except BaseException:  # a case must not end the suite
        error = traceback.format_exc()
        logs = [(c.process.name, c.process.tail(verbose)) for c in t.controllers]
    try:
        t.close()
    except KeyboardInterrupt:
        raise
    except BaseException:
        if error is None:
            logs = [(c.process.name, c.process.tail(verbose)) for c in t.controllers]
            error = traceback.format_exc()
    took = time.monotonic() - start
    print(f"{'ok    ' if error is None else 'FAILED'} {name} ({took:.1f} s)", flush=True)
    if error is not None:
        print(error)
        for process, tail in logs:
            print(f"--- {process}\n{tail}")
        sys.stdout.flush()
    return error is None


for live_test in LIVE_TESTS:
    case()(live_test)
for test, variants in (*ETCD_TESTS, *ACTING_TESTS):
    case(*variants)(test)


def group_of(name):
    """Each group has a rig of its own when they run side by side; most of their time is waiting."""
    return next((group for group in ("etcd", "acting") if name.startswith(f"{group}_")), "controller")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-k", metavar="WORD", action="append", default=[], help="only cases whose name has one of these words")
    parser.add_argument("--group", choices=("controller", "etcd", "acting"), help="only the cases of this group")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    parser.add_argument("--slow", action="store_true", help="also the cases that wait for minutes")
    parser.add_argument("--keep", action="store_true", help="keep the folder with logs")
    parser.add_argument("--tail", type=int, default=40, help="lines of the controller's log to show for a failure")
    parser.add_argument("--retry", action="store_true", help="try a case that failed once more, and say so")
    parser.add_argument("-v", type=int, default=0, help="-v of every controller")
    options = parser.parse_args()
    Controller.verbosity = options.v
    chosen = [c for c in CASES if (not options.k and (options.slow or not c[3])) or any(k in c[0] for k in options.k)]
    chosen = [c for c in chosen if options.group in (None, group_of(c[0]))]
    if options.list:
        print("\n".join(name for name, *_ in chosen))
        return 0
    if not os.access(BINARY, os.X_OK) and any(not c[0].startswith(WITHOUT_PLIMSOLL) for c in chosen):
        print(f"e2e: no program at {BINARY}: make build, or set PLIMSOLL", file=sys.stderr)
        return 2
    rig = Rig(workloads=2, tokens=("nobody", "scraper"), keep=options.keep, need=("workloads", "kubelet"))
    if options.keep:
        print(f"logs: {rig.supervisor.path('logs')}", flush=True)
    passed = failed = 0
    second = []
    try:
        for name, function, variant, _ in chosen:
            # Machines that build and test at once are slow at times, and most cases wait for something. A
            # case that fails is tried once more; that it did is counted and told, never hidden.
            done = run(rig, name, function, variant, options.tail)
            if done is None:
                continue
            if done:
                passed += 1
            elif options.retry and run(rig, name, function, variant, options.tail):
                passed += 1
                second.append(name)
            else:
                failed += 1
        for trouble in rig.end():
            failed += 1
            print(f"FAILED {trouble}")
    except KeyboardInterrupt:
        failed += 1
    finally:
        rig.close()
    if second:
        print(f"passed only on the second try: {', '.join(second)}")
    print(f"e2e: {passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(main())
