#!/usr/bin/env python3
"""The life of a playground: scaled, stopped, killed at bad moments, started again. playground_test.py PLIMSOLL [-k WORD]...

After each start on its folder the world becomes right again: no Machine too many, every member of etcd one that a Machine has, no process
of a former life. What was there before is the same: Machines by uid, members by id, faults.
"""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

PLIMSOLL = os.path.abspath(sys.argv[1])
CAPI = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default"
KCPS = "/apis/controlplane.cluster.x-k8s.io/v1beta2/namespaces/default/kubeadmcontrolplanes"
FAULT = "sim.plimsoll.dev/fault"
LIMIT_S = 90
PODS = ("APIServerPodHealthy", "ControllerManagerPodHealthy", "SchedulerPodHealthy", "EtcdPodHealthy", "EtcdMemberHealthy")


def wait(what, condition, limit_s=LIMIT_S, pause_s=0.1):
    """What the condition gives, as soon as it is true."""
    deadline, value = time.monotonic() + limit_s, None
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(pause_s)
    raise AssertionError(f"{what}: not in {limit_s} s")


def condition_of(thing, kind):
    return next((c["status"] for c in thing.get("status", {}).get("conditions", []) if c["type"] == kind), None)


class Playground:
    def __init__(self, folder, *options, path=None):
        self.folder, self.options, self.process = folder, options, None
        self.environment = dict(os.environ, PATH=path) if path else None
        self.data = os.path.join(folder, "data")
        self.start()

    def start(self):
        with open(os.path.join(self.folder, "output"), "a", encoding="utf-8") as output:
            self.process = subprocess.Popen([PLIMSOLL, "up", "--data", self.data, "--color", "never", *self.options],
                                            stdout=output, stderr=subprocess.STDOUT, env=self.environment)

    def said(self):
        with open(os.path.join(self.folder, "output"), encoding="utf-8") as file:
            return file.read()

    def connect(self):
        assert self.process.poll() is None, "the playground has ended"
        with open(os.path.join(self.data, "kubeconfig"), encoding="utf-8") as file:
            found = re.search(r"http://127\.0\.0\.1:(\d+)", file.read())
        return http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=10)

    def call(self, method, path, body=None):
        """The answer; None when there is none, or not yet."""
        try:
            connection = self.connect()
            connection.request(method, path, body and json.dumps(body), {"Content-Type": "application/merge-patch+json"})
            answer = connection.getresponse()
            text = answer.read()
            connection.close()
        except (OSError, TypeError, http.client.HTTPException):
            return None
        return json.loads(text) if answer.status < 300 else None

    def items(self, path):
        answer = self.call("GET", path)
        return answer["items"] if answer else []

    def machines(self, cluster):
        return [m for m in self.items(CAPI + "/machines") if m["spec"]["clusterName"] == cluster]

    def control_plane(self, cluster):
        return [m for m in self.machines(cluster) if "cluster.x-k8s.io/control-plane" in m["metadata"]["labels"]]

    def fault(self, machine, fault):
        body = {"metadata": {"annotations": {FAULT: fault}}}
        assert self.call("PATCH", f"{CAPI}/machines/{machine}", body), f"no Machine {machine}"

    def right(self, cluster, replicas=3, workers=1):
        """None, or the uids of its Machines."""
        kcp = self.call("GET", f"{KCPS}/{cluster}-cp")
        machines, own = self.machines(cluster), self.control_plane(cluster)
        if not kcp or len(own) != replicas or len(machines) != replicas + workers:
            return None
        right = all(condition_of(kcp, kind) == "True" for kind in ("Available", "EtcdClusterHealthy", "ControlPlaneComponentsHealthy"))
        right &= condition_of(kcp, "Remediating") == "False"
        right &= all(condition_of(m, kind) == "True" for m in own for kind in PODS)
        right &= all("deletionTimestamp" not in m["metadata"] for m in machines)
        return right and {m["metadata"]["uid"] for m in machines}

    def members(self, cluster):
        """What etcd itself says: id and whether it is a learner, by name."""
        answer = subprocess.run([PLIMSOLL, "etcd", cluster, "-n", "default", "-o", "json", "--kubeconfig",
                                 os.path.join(self.data, "kubeconfig")], capture_output=True, text=True, timeout=60, check=False)
        return {m["name"]: (m["id"], m["isLearner"]) for m in json.loads(answer.stdout)["members"]}

    def processes(self):
        """How many etcd processes are of this folder."""
        count = 0
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    count += f"--data-dir={self.data}/".encode() in file.read()
            except OSError:
                continue
        return count

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(30) == 0, "its exit code"
        assert self.processes() == 0, "processes are left"

    def crash(self):
        self.process.kill()
        self.process.wait()

    def settled(self, *clusters, replicas=3):
        """These are right, and there are no others."""
        for cluster in clusters:
            wait(f"{cluster} is right", lambda cluster=cluster: self.right(cluster, replicas), pause_s=0.3)
            members = self.members(cluster)
            nodes = {m["status"]["nodeRef"]["name"] for m in self.control_plane(cluster)}
            assert set(members) == nodes, f"{cluster}: members {members}, Nodes {nodes}"
            assert not any(learner for _, learner in members.values()), members
        expected = replicas * len(clusters)
        wait(f"{expected} processes", lambda: self.processes() == expected, 20)


def orderly(p):
    """Stopped and started: the same Machines, the same members, and a fault that is still in force."""
    p.settled("demo-1", "demo-2")
    uids, members = p.right("demo-1"), p.members("demo-1")
    p.fault("demo-1-cp-2", "pod-crash:kube-scheduler")
    said = lambda: condition_of(p.call("GET", f"{CAPI}/machines/demo-1-cp-2") or {}, "SchedulerPodHealthy")
    wait("the fault shows", lambda: said() == "False")
    p.call("DELETE", f"{CAPI}/clusters/demo-2")
    wait("demo-2 is gone", lambda: not p.call("GET", f"{CAPI}/clusters/demo-2"))
    p.stop()
    p.start()
    wait("it answers", lambda: p.call("GET", KCPS))
    time.sleep(3)
    assert said() == "False", "the fault was forgotten"
    p.fault("demo-1-cp-2", None)
    p.settled("demo-1")
    assert p.right("demo-1") == uids, "other Machines"
    assert {n: m[0] for n, m in p.members("demo-1").items()} == {n: m[0] for n, m in members.items()}, "other members"
    assert not p.call("GET", f"{CAPI}/clusters/demo-2"), "demo-2 came back"
    assert not p.call("GET", "/clusters/demo-2/api/v1/nodes"), "demo-2's workload cluster is still there"


def killed_making(p):
    """Killed while the first objects are made, and while the first members start."""
    for pause_s in (0.05, 0.4, 1.2, 1.6):
        time.sleep(pause_s)
        p.crash()
        p.start()
    p.settled("demo-1", "demo-2")


def killed_remediating(p):
    """Killed while a Machine is replaced: as it is marked, as it goes, as the next one joins."""
    p.settled("demo-1", "demo-2")
    old = p.right("demo-1")
    p.fault("demo-1-cp-1", "unhealthy")
    wait("it is marked", lambda: condition_of(p.call("GET", f"{CAPI}/machines/demo-1-cp-1") or {}, "OwnerRemediated") == "False")
    p.crash()
    p.start()
    wait("it goes", lambda: any("deletionTimestamp" in m["metadata"] for m in p.machines("demo-1")))
    p.crash()
    p.start()
    wait("the next one comes", lambda: any(m["metadata"]["uid"] not in old and "nodeRef" not in m.get("status", {})
                                           for m in p.control_plane("demo-1")), pause_s=0.02)
    p.crash()
    p.start()
    wait("the next one boots", lambda: any(m["metadata"]["uid"] not in old and m["status"].get("phase") == "Provisioned"
                                           for m in p.control_plane("demo-1")), pause_s=0.02)
    time.sleep(0.3)
    p.crash()
    p.start()
    p.settled("demo-1", "demo-2")
    assert len(p.right("demo-1") & old) == 3, "more than one Machine was replaced"


def scaled(p):
    """Up, Machine by Machine, and down again; without a majority of etcd it is not available."""
    available = lambda: condition_of(p.call("GET", f"{KCPS}/demo-1-cp") or {}, "Available")
    p.settled("demo-1")
    for replicas in (5, 3):
        assert p.call("PATCH", f"{KCPS}/demo-1-cp", {"spec": {"replicas": replicas}})
        p.settled("demo-1", replicas=replicas)
    for fault, wanted in (("etcd-kill", "False"), (None, "True")):
        for machine in [m["metadata"]["name"] for m in p.control_plane("demo-1")][:2]:
            p.fault(machine, fault)
        wait(f"Available is {wanted}", lambda wanted=wanted: available() == wanted)
    cluster = p.call("GET", f"{CAPI}/clusters/demo-1")
    deployment = p.call("GET", f"{CAPI}/machinedeployments/demo-1-md")
    assert condition_of(cluster, "Available") == condition_of(deployment, "Available") == "True"


def without_etcd(p):
    """Says so and what would help; etcd is external then, and not judged."""
    wait("it says so", lambda: re.search(r"there is no etcd program.*apt install etcd-server", " ".join(p.said().split())))
    pods = lambda machine: [condition_of(machine, kind) for kind in PODS]
    own = lambda: p.control_plane("demo-1")
    wait("all Pods run", lambda: len(own()) == 3 and all(pods(m) == ["True", "True", "True", None, None] for m in own()))
    kcp = wait("it is healthy", lambda: next((k for k in p.items(KCPS) if condition_of(k, "ControlPlaneComponentsHealthy") == "True"), None))
    assert "external" in kcp["spec"]["kubeadmConfigSpec"]["clusterConfiguration"]["etcd"]
    assert condition_of(kcp, "Available") == "True" and condition_of(kcp, "EtcdClusterHealthy") is None, kcp["status"]


def few_files():
    """Refused with what to do, when there are not enough even at the most."""
    few = subprocess.run(["bash", "-c", f"ulimit -n 200 && exec {PLIMSOLL} up --clusters 100"], capture_output=True, text=True,
                         timeout=60, check=False)
    assert few.returncode == 2 and "open files" in few.stderr and "ulimit -Hn" in few.stderr, few


# The options it is started with; None: the case starts it itself.
CASES = [(scaled, ["--clusters", "1"]), (orderly, ["--clusters", "2"]), (killed_making, ["--clusters", "2"]),
         (killed_remediating, ["--clusters", "2"]), (without_etcd, ["--clusters", "1"]), (few_files, None)]


def run(case, options):
    if options is None:
        case()
        return
    with tempfile.TemporaryDirectory(prefix="plimsoll-playground.") as folder:
        playground = Playground(folder, *options, path="/nonexistent" if case == without_etcd else None)
        try:
            case(playground)
            playground.stop()
        except AssertionError:
            print("".join(playground.said().splitlines(True)[-40:]))
            raise
        finally:
            if playground.process.poll() is None:
                playground.process.terminate()
                playground.process.wait(30)


def main():
    words = sys.argv[3:] if sys.argv[2:3] == ["-k"] else [""]
    passed = failed = 0
    for case, options in CASES:
        if not any(word in case.__name__ for word in words):
            continue
        begin, reason = time.monotonic(), None
        try:
            run(case, options)
            passed += 1
        except AssertionError as error:
            failed, reason = failed + 1, error
        print(f"{'FAILED' if reason else 'ok    '} {case.__name__} {time.monotonic() - begin:.1f} s"
              + (f": {reason}" if reason else ""), flush=True)
    print(f"playground: {passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
