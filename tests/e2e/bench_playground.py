#!/usr/bin/env python3
"""Measures `plimsoll up --shared-etcd`: a whole fleet in one process. bench_playground.py [--clusters 1000] [--quick] [--json]

Prints how long the fleet takes until every condition is right, what it costs in memory and CPU, how long a client waits for
an answer meanwhile, and how long it takes from a fault (an annotation on a Machine or a Pod) to the stored condition that
tells of it, and back. The conditions are read from the API and checked first: a world that does not become right is a failure,
said on the last line, exit code 1. Times are printed, not judged.
"""

import argparse
import http.client
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

BINARY = os.environ.get("PLIMSOLL", "build/plimsoll")
CAPI = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default"
KCPS = "/apis/controlplane.cluster.x-k8s.io/v1beta2/namespaces/default/kubeadmcontrolplanes"
FAULT = "sim.plimsoll.dev/fault"
REPLICAS, WORKERS = 3, 1

KCP_RIGHT = {"Available": "True", "CertificatesAvailable": "True", "ControlPlaneComponentsHealthy": "True",
             "Deleting": "False", "EtcdClusterHealthy": "True", "Initialized": "True", "Remediating": "False"}
MACHINE_RIGHT = {"Deleting": "False", "HealthCheckSucceeded": "True", "NodeHealthy": "True", "Ready": "True"}
MEMBER_RIGHT = {"APIServerPodHealthy": "True", "ControllerManagerPodHealthy": "True", "EtcdMemberHealthy": "True",
                "EtcdPodHealthy": "True", "SchedulerPodHealthy": "True", **MACHINE_RIGHT}

# Where the fault is put, which condition of the Machine tells of it.
FAULTS = [("Machine", "pod-crash:kube-scheduler", "SchedulerPodHealthy"), ("Pod", "pod-crash", "APIServerPodHealthy")]


class Wrong(Exception):
    pass


class Playground:
    def __init__(self, clusters, folder):
        self.clusters, self.started = clusters, time.monotonic()
        environment = dict(os.environ, TMPDIR=folder)
        self.output = open(os.path.join(folder, "output"), "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [BINARY, "up", "--clusters", str(clusters), "--replicas", str(REPLICAS), "--workers", str(WORKERS),
             "--shared-etcd", "--color", "never"], stdout=self.output, stderr=subprocess.STDOUT, env=environment)
        self.port = self.wait_port()

    def wait_port(self):
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and self.process.poll() is None:
            with open(self.output.name, encoding="utf-8") as file:
                found = re.search(r"KUBECONFIG=(\S+)", file.read())
            if found:
                with open(found[1], encoding="utf-8") as file:
                    return int(re.search(r"http://127\.0\.0\.1:(\d+)", file.read())[1])
            time.sleep(0.02)
        raise Wrong("the playground does not come up")

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def call(self, method, path, body=None):
        connection = self.connect()
        connection.request(method, path, body and json.dumps(body), {"Content-Type": "application/merge-patch+json"})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        if answer.status >= 300:
            raise Wrong(f"{method} {path}: {answer.status} {text[:200]!r}")
        return json.loads(text)

    def children(self):
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8") as file:
                    if int(file.read().rsplit(")", 1)[1].split()[1]) == self.process.pid:
                        found.append(int(name))
            except OSError:
                continue
        return found

    def stop(self):
        """What is left behind, in words."""
        children, folder = self.children(), os.path.dirname(self.output.name)
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return ["it did not end"]
        left = [f"process {pid}" for pid in children if os.path.exists(f"/proc/{pid}")]
        return left + [name for name in os.listdir(folder) if name.startswith("plimsoll-")]


def memory(pid):
    """Resident MiB now and at most."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        text = file.read()
    return tuple(int(re.search(rf"{key}:\s+(\d+) kB", text)[1]) / 1024 for key in ("VmRSS", "VmHWM"))


def cpu(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def status_of(thing, kind):
    for condition in thing.get("status", {}).get("conditions", []):
        if condition["type"] == kind:
            return condition["status"]
    return None


def faulty(things, right_of):
    """The first condition that is not right, or None."""
    for thing in things:
        for kind, wanted in right_of(thing).items():
            if status_of(thing, kind) != wanted:
                return f"{thing['kind']} {thing['metadata']['name']}: {kind} is {status_of(thing, kind)}, expected {wanted}"
    return None


def machine_right(thing):
    is_member = "cluster.x-k8s.io/control-plane" in thing["metadata"]["labels"]
    return MEMBER_RIGHT if is_member else MACHINE_RIGHT


def look(playground):
    """What is wrong with the world, or None."""
    things = playground.call("GET", KCPS)["items"]
    if len(things) != playground.clusters:
        return f"{len(things)} of {playground.clusters} control planes are there"
    wrong = faulty(things, lambda thing: KCP_RIGHT)
    if wrong:
        return wrong
    machines = playground.call("GET", CAPI + "/machines")["items"]
    if len(machines) != playground.clusters * (REPLICAS + WORKERS):
        return f"{len(machines)} Machines are there, expected {playground.clusters * (REPLICAS + WORKERS)}"
    return faulty(machines, machine_right)


class Prober(threading.Thread):
    """A client that asks for something small, ten times a second: how long it waits."""

    def __init__(self, playground):
        super().__init__(daemon=True)
        self.playground, self.times, self.over = playground, [], threading.Event()

    def run(self):
        while not self.over.wait(0.1):
            begin = time.monotonic()
            try:
                self.playground.call("GET", "/version")
            except (OSError, Wrong):
                return
            self.times.append(time.monotonic() - begin)

    def stop(self):
        self.over.set()
        self.join()
        return self.times


class MachineWatch:
    """Reads one Machine's events; wait() returns when a condition has a status."""

    def __init__(self, playground, name):
        self.connection = playground.connect()
        self.connection.request("GET", f"{CAPI}/machines?watch=1&fieldSelector=metadata.name%3D{name}")
        self.answer = self.connection.getresponse()

    def wait(self, kind, wanted):
        while True:
            line = self.answer.readline() # its socket gives up after a minute
            if not line:
                raise Wrong(f"a watch ended before {kind} was {wanted}")
            if status_of(json.loads(line)["object"], kind) == wanted:
                return time.monotonic()

    def close(self):
        self.connection.close()


def sample(playground, cluster, member, where, fault, kind):
    """Seconds from the fault to the condition, and back."""
    machine = f"demo-{cluster}-cp-{member}"
    target = f"{CAPI}/machines/{machine}"
    if where == "Pod":
        node = playground.call("GET", target)["status"]["nodeRef"]["name"]
        target = f"/clusters/demo-{cluster}/api/v1/namespaces/kube-system/pods/kube-apiserver-{node}"
    watch = MachineWatch(playground, machine)
    took = []
    watch.wait(kind, "True")
    for value, wanted in ((fault, "False"), (None, "True")):
        begin = time.monotonic()
        playground.call("PATCH", target, {"metadata": {"annotations": {FAULT: value}}})
        took.append(watch.wait(kind, wanted) - begin)
    watch.close()
    return took


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def measure(playground, samples, idle_s, limit_s):
    prober = Prober(playground)
    prober.start()
    wrong = "nothing was looked at"
    while wrong and time.monotonic() - playground.started < limit_s:
        if playground.process.poll() is not None:
            raise Wrong("the playground ended by itself")
        time.sleep(0.5 + playground.clusters / 1000)  # a look costs the playground a list of everything
        wrong = look(playground)
    converged, waits, pid = time.monotonic() - playground.started, prober.stop(), playground.process.pid
    if wrong:
        raise Wrong(f"not right after {limit_s} s: {wrong}")
    children = playground.children()
    figures = {"clusters": playground.clusters, "converged_s": converged, "converged_cpu_s": cpu(pid),
               "answer_p50_s": quantile(waits, 0.5), "answer_p99_s": quantile(waits, 0.99), "answer_max_s": max(waits)}
    before = cpu(pid)
    time.sleep(idle_s)
    figures["idle_cpu"] = (cpu(pid) - before) / idle_s
    pick = random.Random(1)
    for where, fault, kind in FAULTS:
        took = [sample(playground, pick.randint(1, playground.clusters), pick.randint(1, REPLICAS), where, fault, kind)
                for _ in range(samples)]
        for name, values in (("fault", [t[0] for t in took]), ("heal", [t[1] for t in took])):
            figures[f"{name}_{where.lower()}_p50_s"] = quantile(values, 0.5)
            figures[f"{name}_{where.lower()}_p99_s"] = quantile(values, 0.99)
    figures["rss_mib"], figures["rss_max_mib"] = memory(pid)
    figures["etcd_processes"], figures["etcd_rss_mib"] = len(children), sum(memory(child)[0] for child in children)
    wrong = look(playground)
    if wrong:
        raise Wrong(f"not right after the faults were cleared: {wrong}")
    return figures


def show(f, samples):
    ms = {key: f"{value * 1000:.0f}" for key, value in f.items() if key.endswith("_s")}
    print(f"playground, {f['clusters']} Clusters of {REPLICAS} + {WORKERS} Machines, one etcd for all; every condition is right")
    print(f"  to converge              {f['converged_s']:.1f} s, {f['converged_cpu_s']:.1f} s of CPU")
    print(f"  an answer meanwhile      p50 {ms['answer_p50_s']} ms, p99 {ms['answer_p99_s']} ms, max {ms['answer_max_s']} ms")
    print(f"  memory                   {f['rss_mib']:.0f} MiB, at most {f['rss_max_mib']:.0f} MiB; "
          f"{f['etcd_processes']} etcd processes {f['etcd_rss_mib']:.0f} MiB")
    print(f"  CPU when nothing happens {f['idle_cpu'] * 100:.1f} %")
    for where, _, kind in FAULTS:
        name = where.lower()
        print(f"  fault to condition       p50 {ms[f'fault_{name}_p50_s']} ms, p99 {ms[f'fault_{name}_p99_s']} ms; "
              f"healing p50 {ms[f'heal_{name}_p50_s']} ms, p99 {ms[f'heal_{name}_p99_s']} ms "
              f"({samples} times on a {where}, {kind})")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clusters", type=int)
    parser.add_argument("--samples", type=int, help="faults of each kind")
    parser.add_argument("--limit", type=int, default=300, help="seconds to converge")
    parser.add_argument("--quick", action="store_true", help="few clusters, few faults")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    clusters = args.clusters or (20 if args.quick else 1000)
    samples = args.samples or (5 if args.quick else 100)
    with tempfile.TemporaryDirectory(prefix="plimsoll-bench.") as folder:
        playground, figures, wrong = None, None, None
        try:
            playground = Playground(clusters, folder)
            figures = measure(playground, samples, 2 if args.quick else 10, args.limit)
        except (Wrong, OSError, http.client.HTTPException) as reason:
            wrong = reason
        finally:
            left = playground.stop() if playground else []
        if not wrong and left:
            wrong = "left behind: " + ", ".join(left)
    if wrong:
        print(f"playground bench: WRONG: {wrong}")
        return 1
    if args.json:
        print(json.dumps(figures))
    else:
        show(figures, samples)
    return 0


if __name__ == "__main__":
    sys.exit(main())
