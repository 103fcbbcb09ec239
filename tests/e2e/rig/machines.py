"""Everybody that plimsoll leaves work to: infrastructure, bootstrap and Machine controllers, kubeadm, a health check.

They act on one World. A Machine that appears gets its infrastructure, its Node with the static Pods and an etcd
member that joins as kubeadm lets it join; one that is deleted waits for its pre-terminate hooks and ends. A
Machine whose etcd does not run, or that the test calls unhealthy, is marked as a MachineHealthCheck marks it.
"""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from .client import ApiError, Watch
from .proc import wait_for
from .world import INFRA, condition, conditions, owner

HOOK = "pre-terminate.delete.hook.machine.cluster.x-k8s.io"
CLEANUP_HOOK = HOOK + "/kcp-cleanup"
IN_PROGRESS = "controlplane.cluster.x-k8s.io/remediation-in-progress"
REMEDIATION_FOR = "controlplane.cluster.x-k8s.io/remediation-for"
CONTROL_PLANE = "cluster.x-k8s.io/control-plane"
TURN = 0.1  # seconds between two looks
PATIENCE = 1.0  # seconds that a Machine is broken before the health check says so
TASK_TIMEOUT = 150  # seconds that one Machine may take to come or to go
TASKS_MAX = 8


class Stopped(Exception):
    """The test is over; what is under way need not end."""


class Sighting:
    """What the Machine controller found when it first saw that a Machine is deleted, and when its hooks were gone."""

    def __init__(self, machine, event, members, leader, others):
        self.machine, self.event = machine, event
        self.members, self.leader = members, leader  # names, as etcd has them at that moment
        self.others = others  # Machines of the control plane that are deleting besides

    def __repr__(self):
        return f"{self.event} {self.machine}: members {self.members}, leader {self.leader}, also deleting {self.others}"


class Machines:
    """The controllers, as a thread that looks again and again, and a task for each Machine that comes or goes."""

    def __init__(self, world, etcd=None, kubelet=None):
        self.world, self.api, self.etcd, self.kubelet = world, world.api, etcd, kubelet
        self.unhealthy = set()  # Machines that the health check finds broken whatever they are
        self.overlooked = set()  # and those that it does not look at
        self.held = False  # while true, deleted Machines are not drained
        self.sightings = []
        self.problems = []
        self.broken_since, self.down = {}, set()
        self.begun, self.busy = set(), set()
        self.stopping = threading.Event()
        self.membership = threading.Lock()
        self._provide()
        self.pool = ThreadPoolExecutor(TASKS_MAX, "machine")
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def close(self):
        self.stopping.set()
        self.thread.join(30)
        self.pool.shutdown(wait=True)

    def sighting(self, machine, event="deleting"):
        found = [s for s in self.sightings if s.machine == machine and s.event == event]
        if len(found) != 1:
            raise AssertionError(f"Machine {machine} was seen {event} {len(found)} times: {self.sightings}")
        return found[0]

    # --- the loop

    def _run(self):
        while not self.stopping.wait(TURN):
            try:
                self._turn()
            except Exception as error:  # the test is told by `check`
                self.problems.append(error)

    def _turn(self):
        for machine in self._listed():
            if machine["metadata"]["name"] in self.busy:
                continue
            if "deletionTimestamp" in machine["metadata"]:
                self._begin(self._leave, machine)
            elif "nodeRef" not in machine.get("status", {}):
                self._begin(self._join, machine)
            elif CONTROL_PLANE in machine["metadata"]["labels"]:
                self._look_after(machine)

    def _listed(self):
        return self.api.list("machines", self.world.namespace, labelSelector=f"cluster.x-k8s.io/cluster-name={self.world.name}")

    def _begin(self, task, machine):
        """Once for each Machine: what was listed may be older than the end of its task."""
        name = machine["metadata"]["name"]
        key = (machine["metadata"]["uid"], task.__name__)
        if key in self.begun:
            return
        self.begun.add(key)
        self.busy.add(name)
        def run():
            try:
                task(machine)
            except Stopped:
                pass
            except Exception as error:
                self.problems.append(error)
            finally:
                self.busy.remove(name)
        self.pool.submit(run)

    def check(self):
        """Raises if a stand-in failed: then what is waited for cannot come."""
        if self.problems:
            raise RuntimeError(f"a stand-in failed: {self.problems[0]!r}") from self.problems[0]
        return True

    def _until(self, what, probe):
        def unless_over():
            if self.stopping.is_set():
                raise Stopped
            return probe()
        return wait_for(what, unless_over, TASK_TIMEOUT)

    # --- a Machine comes

    def _provide(self):
        """What a control plane that Cluster API made has besides: infrastructure machines and the hook."""
        for name in self.world.machines:
            machine = self.api.patch("machines", self.world.namespace, name, {"metadata": {"annotations": {CLEANUP_HOOK: ""}}})
            self.api.create("devmachines", {
                "apiVersion": INFRA + "/v1beta2", "kind": "DevMachine", "metadata": self.world.meta(name, machine),
                "spec": {"providerID": f"dev:///{self.world.nodes[name]}"}, "status": {"initialization": {"provisioned": True}}})

    def _join(self, machine):
        """Node and member are named like the Machine. kubeadm marks the Node as control plane when the member votes."""
        name, spec, ns = machine["metadata"]["name"], machine["spec"], self.world.namespace
        provider = f"dev:///{name}"
        self.api.patch("machines", ns, name, {"metadata": {"finalizers": ["machine.cluster.x-k8s.io"]}})
        self._provision("devmachines", spec["infrastructureRef"]["name"], machine,
                        {"providerID": provider}, {"initialization": {"provisioned": True}})
        self._provision("kubeadmconfigs", spec["bootstrap"]["configRef"]["name"], machine,
                        {}, {"initialization": {"dataSecretCreated": True}, "dataSecretName": name})
        self.api.patch("machines", ns, name, {"spec": {"providerID": provider, "bootstrap": {"dataSecretName": name}}})
        self._status(name, "Provisioned", {"initialization": {"infrastructureProvisioned": True, "bootstrapDataSecretCreated": True}},
                     condition("InfrastructureReady", "True", "Ready", ago=0), condition("BootstrapConfigReady", "True", "Ready", ago=0))
        with self.membership:
            self.etcd.add(name, learner=True)
            self.etcd.promote(name)
        self.kubelet.target(name, self.etcd[name].address)
        self.world.nodes[name] = name
        self.world.machines.append(name)
        self.world.create_node(name)
        for component in self.world.components:
            self.world.create_pod(component, name)
        self._status(name, "Running", {"nodeRef": {"name": name}}, condition("NodeReady", "True", "NodeReady", ago=0))

    def _provision(self, resource, name, machine, spec, status):
        ns = self.world.namespace
        made = self._until(f"{resource}/{name}", lambda: self.api.find(resource, ns, name))
        # The Machine controller takes over what was made for the Machine, beside whoever made it.
        owners = [*made["metadata"].get("ownerReferences", []), owner(machine)]
        self.api.patch(resource, ns, name, {"metadata": {"ownerReferences": owners}, "spec": spec})
        self.api.patch(resource, ns, name, {"status": status}, sub="status")

    def _status(self, name, phase, status, *new):
        self.api.patch("machines", self.world.namespace, name, {"status": {"phase": phase, **status}}, sub="status")
        self.world.set_conditions("machines", name, *new)

    # --- a Machine goes

    def _leave(self, machine):
        name, ns = machine["metadata"]["name"], self.world.namespace
        self._see(name, "deleting")
        self._until("the hold to end", lambda: not self.held)
        if self._hooks(name):
            hooks = ", ".join(key.partition("/")[2] for key in self._hooks(name))
            self._say(name, condition("Deleting", "True", "WaitingForPreTerminateHook",
                                      f"Waiting for pre-terminate hooks to succeed (hooks: {hooks})", ago=0))
            self._until(f"the hooks of Machine {name} to be gone", lambda: not self._hooks(name))
        self._see(name, "released")
        self.api.delete("devmachines", ns, name)
        self.api.delete("kubeadmconfigs", ns, name)
        if name in self.world.machines:
            self._leave_node(name)
        self.world.finish("machines", name)

    def _hooks(self, name):
        machine = self.api.find("machines", self.world.namespace, name) or {"metadata": {}}
        return [key for key in machine["metadata"].get("annotations", {}) if key.startswith(HOOK)]

    def _say(self, name, *new):
        try:
            self.world.set_conditions("machines", name, *new)
        except ApiError as error:
            if error.code != 404:
                raise

    def _leave_node(self, name):
        """The infrastructure is gone, and with it the member's process and the Node."""
        self.world.machines.remove(name)
        node = self.world.nodes.pop(name)
        if self.etcd:
            with self.membership:
                self.etcd.abandon(node)
        for component in self.world.components:
            self.world.delete_pod(component, node)
        self.world.delete_node(node)

    def _see(self, name, event):
        members, leader = [], None
        if self.etcd and name in self.world.machines:
            with self.membership:
                members, leader = self._members()
        others = [m["metadata"]["name"] for m in self._listed() if "deletionTimestamp" in m["metadata"]
                  and CONTROL_PLANE in m["metadata"]["labels"] and m["metadata"]["name"] != name]
        self.sightings.append(Sighting(name, event, members, leader, others))

    def _members(self):
        """Their names, and the leader's, by the first that answers; nothing when etcd is at its end, too."""
        for voter in self.etcd.voters():
            try:
                status = json.loads(self.etcd.ctl("endpoint", "status", "-w", "json", through=[voter]))[0]["Status"]
                listed = self.etcd.listed([voter])
            except AssertionError:
                continue
            return sorted(n for n, *_ in listed), next((n for n, number, _ in listed if number == status.get("leader")), None)
        return [], None

    # --- a Machine is there

    def _look_after(self, machine):
        name = machine["metadata"]["name"]
        node = self.world.nodes.get(name)
        if node is None:
            return  # it has just gone
        runs = self.etcd is None or self.etcd[node].process.running()
        self._report_pod(node, runs)
        if name in self.overlooked:
            return
        if runs and name not in self.unhealthy:
            self.broken_since.pop(name, None)
            if conditions(machine).get("HealthCheckSucceeded", {}).get("status") != "True":
                self._say(name, condition("HealthCheckSucceeded", "True", "HealthCheckSucceeded", ago=0))
            return
        since = self.broken_since.setdefault(name, time.monotonic())
        if time.monotonic() - since >= PATIENCE:
            self._mark(name, conditions(machine))

    def _report_pod(self, node, runs):
        """What the kubelet says of the etcd Pod."""
        if runs and node in self.down:
            self.world.set_pod("etcd", node)
            self.down.remove(node)
        elif not runs and node not in self.down:
            self.world.set_pod("etcd", node, ready=False, waiting="CrashLoopBackOff", last_exit=1)
            self.down.add(node)

    def _mark(self, name, have):
        """As a MachineHealthCheck does: what the owner wrote about its remediation stays."""
        new = []
        if have.get("HealthCheckSucceeded", {}).get("status") != "False":
            new.append(condition("HealthCheckSucceeded", "False", "UnhealthyNode", "Health check failed", ago=0))
        if have.get("OwnerRemediated", {}).get("status") != "False":
            new.append(condition("OwnerRemediated", "False", "WaitingForRemediation", "Waiting for remediation", ago=0))
        if new:
            self._say(name, *new)


class Chronicle:
    """What happened to a control plane, in the order of the API server: a list of (event, name).

    Events: record, record dropped, marked, deleting, hook dropped, gone, infrastructure, config, machine,
    template gone, kcp deleting, kcp gone. A resource version orders events across kinds, all being in one etcd."""

    KINDS = ("kubeadmcontrolplanes", "machines", "devmachines", "kubeadmconfigs", "devmachinetemplates")

    def __init__(self, world):
        selector = f"cluster.x-k8s.io/cluster-name={world.name}"
        self.before = {(kind, o["metadata"]["name"]): o for kind in self.KINDS
                       for o in world.api.list(kind, world.namespace, labelSelector=selector)}
        self.watches = {kind: Watch(world.api, kind, world.namespace, {"labelSelector": selector}) for kind in self.KINDS}
        self.told = []
        self.records = []  # the values of remediation-in-progress

    def close(self):
        for watch in self.watches.values():
            watch.close()

    def events(self):
        """All of them so far."""
        arrived = [(int(obj["metadata"]["resourceVersion"]), kind, how, obj)
                   for kind, watch in self.watches.items() for _, how, obj in watch.drain() if how != "END"]
        for version, kind, how, obj in sorted(arrived, key=lambda a: a[0]):
            key = (kind, obj["metadata"]["name"])
            for event in self._changes(kind, how, self.before.get(key), obj):
                self.told.append((version, event, obj["metadata"]["name"]))
            if how == "DELETED":
                self.before.pop(key, None)
            else:
                self.before[key] = obj
        # Kinds arrive by themselves: one that came late goes to its place.
        self.told.sort(key=lambda t: t[0])
        return [(event, name) for _, event, name in self.told]

    def _changes(self, kind, how, before, now):
        old, new = (before or {}).get("metadata", {}), now["metadata"]
        had, have = old.get("annotations", {}), new.get("annotations", {})
        if kind == "kubeadmcontrolplanes":
            if have.get(IN_PROGRESS) != had.get(IN_PROGRESS):
                if IN_PROGRESS in have:
                    self.records.append(have[IN_PROGRESS])
                yield "record" if IN_PROGRESS in have else "record dropped"
            if "deletionTimestamp" in new and "deletionTimestamp" not in old:
                yield "kcp deleting"
            if how == "DELETED":
                yield "kcp gone"
        elif kind == "machines":
            if how == "ADDED":
                yield "machine"
            reason = lambda o: conditions(o).get("OwnerRemediated", {}).get("reason")
            if reason(now) != reason(before) and reason(now) == "MachineDeleting":
                yield "marked"
            if "deletionTimestamp" in new and "deletionTimestamp" not in old:
                yield "deleting"
            if CLEANUP_HOOK in had and CLEANUP_HOOK not in have:
                yield "hook dropped"
            if how == "DELETED":
                yield "gone"
        elif kind == "devmachinetemplates":
            if how == "DELETED":
                yield "template gone"
        elif how == "ADDED":
            yield "infrastructure" if kind == "devmachines" else "config"
