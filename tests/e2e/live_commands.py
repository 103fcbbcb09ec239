"""The commands that read a live API: snapshot, eval --live, explain, what-if, describe.

Each test gets what a case of suite.py gets (`t`: t.rig, t.api, t.world(), t.proxy()), and suite.py calls
them: `for test in live_commands.TESTS: case()(test)`. No controller runs; nothing may be written.
"""

import json
import os
import queue
import subprocess
import threading
import time

from rig.controller import BINARY, call
from rig.servers import kubeconfig
from rig.world import condition

TESTS = []


def live_test(function):
    TESTS.append(function)
    return function


def live(t, *args, user="admin", **options):
    """One run with the management cluster's kubeconfig."""
    return call(*args, "--kubeconfig", t.rig.management.kubeconfig_file(user), **options)


def expect(done, code, *texts, error=None):
    """The exit code, texts in stdout, and text in stderr (None: stderr is empty)."""
    shown = f"{done.args}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert done.returncode == code, shown
    for text in texts:
        assert text in done.stdout, f"no {text!r} in {shown}"
    if error is None:
        assert done.stderr == "", shown
    else:
        assert error in done.stderr and done.stderr.startswith("plimsoll: "), shown
    return done


class Following:
    """A `describe -w` whose lines can be waited for."""

    def __init__(self, t, *args):
        argv = [BINARY, *args, "--kubeconfig", t.rig.management.kubeconfig_file()]
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                        stdin=subprocess.DEVNULL)
        self.lines = queue.Queue()
        self.seen = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line)

    def until(self, wanted, timeout=10):
        deadline = time.monotonic() + timeout
        while True:
            try:
                line = self.lines.get(timeout=max(0.01, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"no such line within {timeout} s; the last were\n{''.join(self.seen[-20:])}") from None
            self.seen.append(line)
            if wanted(line):
                return line

    def quiet(self, seconds):
        time.sleep(seconds)
        assert self.lines.empty(), self.lines.get()

    def close(self):
        self.process.terminate()
        self.process.wait(10)


def refused(t):
    """The kubeconfig of a workload cluster where nobody listens."""
    return t.rig.workloads[0].kubeconfig_text(server="https://127.0.0.1:1")


@live_test
def live_snapshot_is_what_eval_reads(t):
    w = t.world()
    captured = expect(live(t, "snapshot", w.name, "-o", "json"), 0)
    snapshot = json.loads(captured.stdout)
    assert snapshot["kind"] == "Snapshot" and snapshot["name"] == "default/" + w.name, snapshot["name"]
    assert {o["metadata"]["name"] for o in snapshot["objects"] if o["kind"] == "Machine"} == {*w.machines, *w.workers}
    workload = snapshot["workloads"][0]
    assert workload["connection"]["state"] == "Connected"
    assert len(workload["nodes"]) == 3 and len(workload["pods"]) == 9, workload
    path = t.rig.supervisor.write("captured.json", captured.stdout)
    for args in (("eval", "-o", "json", "--explain"), ("explain", "-o", "json"), ("describe", "-o", "json"),
                 ("what-if", "remove", w.machines[0], "-o", "json")):
        from_file = call(*args, "-f", path)
        assert from_file.returncode == 0 and from_file.stdout, from_file
        extra = ("--live",) if args[0] == "eval" else ()
        from_api = live(t, *args, *extra, "--now", snapshot["now"])
        a, b = json.loads(from_file.stdout), json.loads(from_api.stdout)
        # How and when it was observed differs by seconds; all else is the same.
        assert strip_times(a) == strip_times(b), (a, b)
    yaml = expect(live(t, "snapshot", w.name), 0, "kind: Snapshot\n").stdout
    piped = subprocess.run([BINARY, "eval", "-f", "-", "-o", "name"], input=yaml, capture_output=True, text=True, check=False)
    assert piped.returncode == 0 and piped.stdout == live(t, "eval", "--live", "-o", "name").stdout, piped


def strip_times(value):
    if isinstance(value, dict):
        return {k: strip_times(v) for k, v in value.items() if k not in ("observed", "since", "now", "lastTransitionTime")}
    if isinstance(value, list):
        return [strip_times(v) for v in value]
    return value


@live_test
def live_snapshot_has_no_secrets(t):
    w = t.world()
    token = t.rig.workloads[0].tokens["admin"]
    t.api.patch("kubeadmcontrolplanes", "default", w.kcp_name, {"metadata": {"annotations": {
        "kubectl.kubernetes.io/last-applied-configuration": "hunter2", "example.com/password": "hunter2"}}})
    for args in (("-o", "json"), ("-o", "yaml")):
        text = expect(live(t, "snapshot", w.name, *args), 0).stdout
        for word in ("hunter2", token, "managedFields", "Secret", "certificate"):
            assert word not in text, word


@live_test
def live_reading_writes_nothing(t):
    w = t.world()
    before = w.get_kcp()["metadata"]["resourceVersion"], w.get_machine(w.machines[0])["metadata"]["resourceVersion"]
    for args in (("describe",), ("eval", "--live"), ("explain",), ("snapshot",)):
        expect(live(t, *args), 0)
    after = w.get_kcp()["metadata"]["resourceVersion"], w.get_machine(w.machines[0])["metadata"]["resourceVersion"]
    assert before == after


@live_test
def live_describe(t):
    w = t.world()
    w.set_kcp_conditions(condition("Available", "True", "Available"))
    expect(live(t, "describe", w.name, env={"COLUMNS": "200", "LANG": "C.UTF-8"}), 0,
           "NAME", "REPLICAS", "UP TO DATE", f"Cluster/{w.name}", f"├─ControlPlane - KubeadmControlPlane/{w.kcp_name}",
           "3/3", "Available: True", "3 Machines...", f"See {w.machines[0]}, ", "└─Workers", f"MachineDeployment/{w.md_name}")
    names = expect(live(t, "describe", "-o", "name"), 0).stdout.splitlines()
    assert names[0] == f"cluster/default/{w.name}" and f"machine/default/{w.machines[2]}" in names, names
    tree = json.loads(expect(live(t, "describe", "-o", "json"), 0).stdout)["clusters"][0]
    kcp = next(c for c in tree["children"] if c.get("kind") == "KubeadmControlPlane")
    assert kcp["replicas"]["desired"] == 3 and kcp["state"]["type"] == "Available", kcp
    assert {c["type"]: c["status"] for c in kcp["conditions"]}["ControlPlaneComponentsHealthy"] == "True"

    w.set_pod("kube-scheduler", w.nodes[w.machines[1]], ready=False, waiting="CrashLoopBackOff", last_exit=1)
    expect(live(t, "describe", w.name), 1, "ControlPlaneComponentsHealthy", "2 Machines...", f"Machine/{w.machines[1]}",
           "SchedulerPodHealthy", "CrashLoopBackOff")
    expect(live(t, "explain", f"machine/{w.machines[1]}", "SchedulerPodHealthy"), 1, "CrashLoopBackOff",
           f"Pod/kube-system/kube-scheduler-{w.nodes[w.machines[1]]}")
    expect(live(t, "eval", "--live", "--diff", "-o", "name"), 1, f"machine/default/{w.machines[1]} SchedulerPodHealthy")
    expect(live(t, "eval", "--live", "--exit-zero", "-o", "name"), 0)


@live_test
def live_describe_follows(t):
    w = t.world()
    node = w.nodes[w.machines[0]]
    lines, documents = Following(t, "describe", w.name, "-w"), Following(t, "describe", w.name, "-w", "-o", "json")
    try:
        lines.until(lambda line: "MachineDeployment" in line and "Remediating False" in line)
        documents.until(lambda line: '"SchedulerPodHealthy"' in line)
        lines.quiet(1)
        w.set_pod("etcd" if "etcd" in w.components else "kube-scheduler", node, ready=False, waiting="CrashLoopBackOff", last_exit=1)
        start = time.monotonic()
        lines.until(lambda line: f"Machine/default/{w.machines[0]} " in line and "False PodFailed: CrashLoopBackOff" in line, 5)
        assert time.monotonic() - start < 2
        document = json.loads(documents.until(lambda line: "CrashLoopBackOff" in line, 5))
        assert document["clusters"][0]["name"] == w.name
        w.pause()
        lines.until(lambda line: "Paused of Cluster" in line and "True" in line, 5)
        # Someone else's heartbeat is no change, and neither are our own probes.
        documents.until(lambda line: '"Paused"' in line, 5)
        documents.quiet(12)
    finally:
        lines.close()
        documents.close()


@live_test
def live_selection(t):
    prod, test = t.world(labels={"env": "prod"}), t.world("test", server=None, namespace="team", labels={"env": "test"})
    expect(live(t, "describe", "-o", "name"), 0, f"cluster/default/{prod.name}")
    assert "team" not in live(t, "describe", "-o", "name").stdout
    everything = live(t, "describe", "-A", "-o", "name").stdout
    assert f"cluster/default/{prod.name}" in everything and f"cluster/team/{test.name}" in everything
    assert "default" not in live(t, "describe", "-n", "team", "-o", "name").stdout
    for selector, wanted in (("env=prod", prod), ("env!=prod,env", test), ("env in (test,dev)", test)):
        names = live(t, "describe", "-A", "-l", selector, "-o", "name").stdout
        assert f"/{wanted.name}\n" in names, (selector, names)
        other = test if wanted is prod else prod
        assert f"/{other.name}\n" not in names and other.machines[0] not in names, (selector, names)
    assert live(t, "explain", f"kcp/team/{test.kcp_name}", "-o", "name").stdout.startswith("kubeadmcontrolplane/team/")
    assert live(t, "explain", f"kcp/{test.kcp_name}", "-A", "-o", "name").stdout.startswith("kubeadmcontrolplane/team/")
    expect(live(t, "describe", "nobody"), 2, error="no Cluster default/nobody at " + t.rig.management.url)
    expect(live(t, "explain", "machine/nobody"), 2, error="no Machine default/nobody at " + t.rig.management.url)
    expect(live(t, "what-if", "remove", "team/nobody"), 2, error="no Machine team/nobody at " + t.rig.management.url)
    expect(live(t, "describe", "-n", "kube-system"), 2, error="no Cluster in namespace kube-system")
    expect(live(t, "describe", "-l", "env=nobody"), 2, error="no Cluster with these labels")
    expect(live(t, "describe", "-l", "a b c"), 2, error="unable to parse requirement")


@live_test
def live_unreachable_costs_the_others_nothing(t):
    up = t.world()
    down = t.world("down", server=None, kubeconfig=refused(t))
    start = time.monotonic()
    done = live(t, "describe", "-o", "json")
    assert time.monotonic() - start < 3
    assert done.returncode == 1 and f"Cluster default/{down.name} could not be read" in done.stderr, done
    trees = {json.loads(line)["name"]: json.loads(line) for line in done.stdout.splitlines()}
    states = {name: next(c["state"]["status"] for c in tree["clusters"][0]["children"] if c["name"] == "WorkloadCluster")
              for name, tree in trees.items()}
    assert states == {f"default/{up.name}": "Connected", f"default/{down.name}": "NotConnected"}, states
    expect(live(t, "snapshot", down.name), 3, "state: NotConnected", "connection refused", error="could not be read")
    # Only what is asked for is contacted.
    expect(live(t, "explain", f"kcp/{up.kcp_name}"), 0)

    hanging = t.proxy(t.rig.workloads[0].url)
    hanging.set(connection="hang")
    down.write_kubeconfig(t.rig.workloads[0].kubeconfig_text(server=hanging.url))
    start = time.monotonic()
    expect(live(t, "eval", "--live", "-o", "name"), 1, f"machine/default/{up.machines[0]} APIServerPodHealthy PodHealthy/6 True",
           error=f"Cluster default/{down.name} could not be read")
    assert time.monotonic() - start < 12
    down.write_kubeconfig("not a kubeconfig")
    expect(live(t, "describe", down.name), 1, "Failed", error="could not be read")


def expect_one_line(t, name, text, error):
    """With this kubeconfig there is nothing but one line that says this, soon."""
    start = time.monotonic()
    done = call("describe", "--kubeconfig", t.rig.supervisor.write(f"live-{name}.kubeconfig", text))
    assert done.returncode == 2 and error in done.stderr and done.stderr.count("\n") == 1, (name, done)
    assert done.stdout == "" and time.monotonic() - start < 5, (name, done)


@live_test
def live_without_crds(t):
    """A workload server is an API server without Cluster API."""
    expect_one_line(t, "no-crds", t.rig.workloads[0].kubeconfig_text(), "install Cluster API's CRDs")


@live_test
def live_errors_are_one_line(t):
    t.world()
    management, server = t.rig.management, t.rig.guarded()
    expect_one_line(t, "refused", server.kubeconfig_text(server="https://127.0.0.1:1"),
                    "cannot reach https://127.0.0.1:1: connection refused; check --kubeconfig or --context")
    expect_one_line(t, "token", kubeconfig(server.url, server.ca_data(), token="wrong"), "does not accept the credentials")
    expect_one_line(t, "ca", kubeconfig(server.url, token=server.tokens["admin"]), "is not signed by")
    expect_one_line(t, "garbage", "a: [", "kubeconfig")
    expect(live(t, "describe", "--context", "nobody"), 2, error='no context "nobody"')
    done = call("describe", env={"KUBECONFIG": "", "HOME": "/nonexistent"})
    assert done.returncode == 2 and "no kubeconfig" in done.stderr, done
    if "reader" in management.tokens:
        expect(live(t, "describe", user="reader"), 2, error="missing permission")


def main():
    """On its own: a rig, and every test on it."""
    import suite  # noqa: E402 - it imports this file
    import sys

    rig, failed = suite.Rig(workloads=1, tokens=("reader",)), 0
    try:
        for test in TESTS:
            if len(sys.argv) > 1 and not any(word in test.__name__ for word in sys.argv[1:]):
                continue
            t = suite.Case(rig, test.__name__)
            try:
                try:
                    test(t)
                finally:
                    t.close()
                print(f"ok {test.__name__}", flush=True)
            except Exception:  # noqa: BLE001 - the next test runs all the same
                suite.traceback.print_exc()
                print(f"FAILED {test.__name__}", flush=True)
                failed += 1
    finally:
        rig.close()
    print(f"live_commands: {len(TESTS) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    os.sys.exit(main())
