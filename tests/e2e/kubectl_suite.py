#!/usr/bin/env python3
"""kubectl, and worse clients, on the embedded API server: kubectl_suite.py [-k WORD]... [--list] [--keep]

Each case prints ok or FAILED and its time; the last line is "kubectl: N passed, N failed". The server is
build/tests/e2e_apiserver, or $APISERVER; kubectl comes from tools/e2e-binaries.sh, and is not built here but with
CI=true: without one the exit code is 77. Every case has a namespace of
its own on one server; those that need other options start another.
"""

import argparse
import base64
import concurrent.futures
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from rig.proc import LeftOut, Supervisor, optional_binary, wait_for  # noqa: E402

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
APISERVER = os.environ.get("APISERVER", os.path.join(ROOT, "build", "tests", "e2e_apiserver"))
CASES = []
CLUSTER_API = "cluster.x-k8s.io/v1beta2"


def case(function):
    CASES.append(function)
    return function


class Server:
    """One embedded API server, and a kubeconfig that leads to it."""

    def __init__(self, supervisor, name, *options, token=None):
        self.supervisor, self.name, self.token = supervisor, name, token
        self.argv = [APISERVER, *options, *(("--token", token) if token else ())]
        self.process = supervisor.run(name, self.argv, separate_stdout=True)
        self.ready()

    def ready(self):
        def first():
            with open(self.process.out, encoding="ascii") as f:
                lines = f.read().splitlines()
            if not self.process.running():
                raise SystemExit(f"{self.name} ended: {self.process.tail()}")
            return lines
        lines = wait_for("the server's address", first, 10)
        self.url = lines[0]
        self.host, self.port = "127.0.0.1", int(self.url.rsplit(":", 1)[1])
        self.certificate = "\n".join(lines[1:]) + "\n" if len(lines) > 1 else None
        self.kubeconfig = self.write_kubeconfig("")

    def write_kubeconfig(self, prefix):
        cluster = {"server": self.url + prefix}
        if self.certificate:
            cluster["certificate-authority-data"] = base64.b64encode(self.certificate.encode()).decode()
            cluster["tls-server-name"] = "localhost"
        return self.supervisor.write(f"{self.name}{prefix.replace('/', '-')}.kubeconfig", json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {"token": self.token} if self.token else {}}]}))

    def connection(self):
        return http.client.HTTPConnection(self.host, self.port, timeout=20)

    def request(self, method, path, body=None, headers=None):
        """Status, object (or text), headers."""
        connection = self.connection()
        try:
            if isinstance(body, (dict, list)):
                body = json.dumps(body)
                headers = {"Content-Type": "application/json", **(headers or {})}
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            data = answer.read()
            is_json = "json" in answer.headers.get("Content-Type", "")
            return answer.status, json.loads(data) if is_json else data.decode(), answer.headers
        finally:
            connection.close()


class Case:
    """What one case works with: a namespace, kubectl in it, the server."""

    kubectl_path = None

    def __init__(self, supervisor, server, name):
        self.supervisor, self.server = supervisor, server
        self.ns = name.replace("_", "-")
        self.children = []
        self.kubectl("create", "namespace", self.ns)

    def argv(self, *args, kubeconfig=None, namespace=None):
        return [self.kubectl_path, "--kubeconfig", kubeconfig or self.server.kubeconfig, "--cache-dir",
                self.supervisor.path("cache"), "-n", namespace or self.ns, *args]

    def run(self, *args, stdin=None, timeout=30, env=None, **options):
        if isinstance(stdin, (dict, list)):
            stdin = json.dumps(stdin)
        return subprocess.run(self.argv(*args, **options), input=stdin or "", capture_output=True, text=True,
                              timeout=timeout, env={**os.environ, **(env or {})}, check=False)

    def kubectl(self, *args, **options):
        """What it says on stdout; it must succeed."""
        done = self.run(*args, **options)
        assert done.returncode == 0, f"kubectl {' '.join(args)}: {done.returncode}: {done.stderr or done.stdout}"
        return done.stdout

    def fails(self, *args, **options):
        """What it says on stderr; it must fail."""
        done = self.run(*args, **options)
        assert done.returncode != 0, f"kubectl {' '.join(args)} succeeded: {done.stdout}"
        return done.stderr

    def json(self, *args, **options):
        return json.loads(self.kubectl(*args, "-o", "json", **options))

    def start(self, *args, **options):
        """In the background; its lines, as they come."""
        child = subprocess.Popen(self.argv(*args, **options), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.children.append(child)
        lines = []
        threading.Thread(target=lambda: lines.extend(iter(child.stdout.readline, "")), daemon=True).start()
        return child, lines

    def apply(self, *objects, **options):
        return self.kubectl("apply", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": list(objects)},
                            **options)

    def machine(self, name="m1", labels=None, **spec):
        return {"apiVersion": CLUSTER_API, "kind": "Machine",
                "metadata": {"name": name, "namespace": self.ns, **({"labels": labels} if labels else {})},
                "spec": {"clusterName": "c1", "bootstrap": {"dataSecretName": "s"},
                         "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachine",
                                               "name": name}, **spec}}

    def config(self, name="c", **data):
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": self.ns}, "data": data}

    def set_status(self, name, conditions, **more):
        patch = {"status": {"conditions": conditions, **more}}
        self.kubectl("patch", "machine", name, "--subresource=status", "--type=merge", "-p", json.dumps(patch))

    def close(self):
        for child in self.children:
            child.kill()
            child.wait()


def condition(kind, status, reason="Because"):
    return {"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}


def has(text, *parts):
    for part in parts:
        assert re.search(part, text), f"no {part!r} in:\n{text}"


# --- reading -----------------------------------------------------------------------------------------

@case
def discovery(t):
    out = t.kubectl("api-resources")
    has(out, r"machines +ma +cluster\.x-k8s\.io/v1beta2 +true +Machine", r"nodes +no +v1 +false +Node",
        r"kubeadmcontrolplanes +kcp +controlplane", r"leases +coordination\.k8s\.io/v1", r"events +ev +events\.k8s\.io/v1")
    has(t.kubectl("api-resources", "--categories=cluster-api", "-o", "name"), r"devmachines\.infrastructure")
    has(t.kubectl("api-versions"), r"^cluster\.x-k8s\.io/v1beta2$" .replace("^", "(?m)^"), r"(?m)^v1$")
    has(t.run("version").stdout, r"Server Version: v1\.34")  # one built from its module cannot compare its own
    has(t.kubectl("get", "--raw", "/"), r"/openapi/v3")
    for path in ("/healthz", "/livez", "/readyz"):
        assert t.kubectl("get", "--raw", path) == "ok"
    has(t.kubectl("get", "--raw", "/readyz?verbose"), r"\[\+\]ping ok")


@case
def explain(t):
    has(t.kubectl("explain", "machines"), "KIND: +Machine", "VERSION: +v1beta2", "spec", "status")
    has(t.kubectl("explain", "machine.spec.clusterName"), "FIELD: clusterName <string>")
    has(t.kubectl("explain", "kcp.status.conditions"), "lastTransitionTime", "reason")
    has(t.kubectl("explain", "pod.spec.containers"), "image", "Container image")
    has(t.kubectl("explain", "node.metadata.ownerReferences"), "blockOwnerDeletion")
    has(t.kubectl("explain", "events", "--api-version=events.k8s.io/v1"), "regarding")
    has(t.kubectl("explain", "mhc", "--recursive"), "unhealthyNodeConditions")
    has(t.fails("explain", "machine.spec.nothing"), "does not exist")


@case
def get(t):
    t.apply(t.machine("m1", {"a": "1"}, version="v1.34.2", providerID="x://1"), t.machine("m2", {"a": "2"}))
    t.set_status("m1", [condition("Ready", "True"), condition("Available", "False")], phase="Running",
                 nodeRef={"name": "n1"})
    out = t.kubectl("get", "machines")
    has(out, r"NAME +CLUSTER +NODE NAME +READY +AVAILABLE +UP-TO-DATE +PHASE +AGE +VERSION",
        r"m1 +c1 +n1 +True +False +Running +\d+s +v1\.34\.2", r"m2 +c1 ")
    has(t.kubectl("get", "ma", "-o", "wide"), "PROVIDER ID", "PAUSED", "x://1")
    assert t.kubectl("get", "machines", "-o", "name") == ("machine.cluster.x-k8s.io/m1\n"
                                                           "machine.cluster.x-k8s.io/m2\n")
    assert t.kubectl("get", "machines", "-o", "jsonpath={.items[*].metadata.name}") == "m1 m2"
    assert len(t.json("get", "machines")["items"]) == 2
    has(t.kubectl("get", "machine", "m1", "-o", "yaml"), r"(?m)^  clusterName: c1$", "kind: Machine")
    has(t.kubectl("get", "machine", "m1", "-o", "yaml", "--show-managed-fields"), "managedFields", "kubectl")
    has(t.kubectl("get", "machines", "--show-labels"), "LABELS", r"a=2")
    has(t.kubectl("get", "machines", "-L", "a"), r"(?m)^m1 .* 1$")
    has(t.kubectl("get", "machines", "-A"), r"(?m)^NAMESPACE", rf"{t.ns} +m1")
    assert t.kubectl("get", "machines", "--no-headers", "-l", "a=2").split()[0] == "m2"
    assert t.kubectl("get", "machines", "--no-headers", "-l", "a notin (2,3)").split()[0] == "m1"
    assert t.kubectl("get", "machines", "--no-headers", "--field-selector", "metadata.name=m2").split()[0] == "m2"
    lines = t.kubectl("get", "machines", "--sort-by=.metadata.labels.a", "--no-headers").splitlines()
    assert [line.split()[0] for line in lines] == ["m1", "m2"]
    has(t.run("get", "machinesets").stderr, "No resources found")
    has(t.fails("get", "machine", "m3"), r'machines\.cluster\.x-k8s\.io "m3" not found')
    has(t.fails("get", "deployments"), "the server doesn't have a resource type")
    has(t.kubectl("get", "machines.v1beta2.cluster.x-k8s.io/m1", "machine/m2"), "(?m)^m2 ")


@case
def get_in_chunks(t):
    t.apply(*(t.config(f"c{i:02}") for i in range(23)))
    names = t.kubectl("get", "configmaps", "--chunk-size=5", "-o", "name").split()
    assert len(names) == 23 and len(set(names)) == 23, names
    assert len(t.kubectl("get", "cm", "--chunk-size=7", "--no-headers").splitlines()) == 23


@case
def get_watch(t):
    t.apply(t.machine("m1"))
    _, lines = t.start("get", "machines", "-w")
    wait_for("the first line", lambda: any("m1" in line for line in lines))
    t.apply(t.machine("m2", version="v9"))
    wait_for("m2", lambda: any(line.startswith("m2") and "v9" in line for line in lines))
    _, events = t.start("get", "machine", "m2", "-w", "--output-watch-events")
    wait_for("the headings of the events", lambda: any(line.startswith("EVENT") for line in events))
    t.set_status("m1", [condition("Ready", "True")])
    wait_for("the condition", lambda: any(line.startswith("m1") and "True" in line for line in lines))
    assert sum("NAME" in line for line in lines) == 1, lines
    t.kubectl("delete", "machine", "m2")
    wait_for("DELETED", lambda: any("DELETED" in line and "m2" in line for line in events))
    assert not any("m1" in line for line in events)


@case
def describe(t):
    t.apply(t.machine("m1"))
    uid = t.json("get", "machine", "m1")["metadata"]["uid"]
    t.kubectl("create", "-f", "-", stdin={
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "m1.1", "namespace": t.ns}, "type": "Warning",
        "reason": "Sad", "message": "it broke", "source": {"component": "suite"}, "count": 1,
        "involvedObject": {"apiVersion": CLUSTER_API, "kind": "Machine", "name": "m1", "namespace": t.ns, "uid": uid},
        "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z"})
    has(t.kubectl("describe", "machine", "m1"), r"Cluster Name: +c1", r"Warning +Sad +.* +suite +it broke")
    has(t.kubectl("get", "events"), r"LAST SEEN +TYPE +REASON +OBJECT +MESSAGE", r"Warning +Sad +machine/m1 +it broke")
    has(t.kubectl("events", "--for", "machine/m1"), "it broke")
    t.kubectl("apply", "-f", "-", stdin={
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": f"{t.ns}-n", "labels": {"node-role.kubernetes.io/control-plane": ""}},
        "spec": {"providerID": "x://n"}})
    t.kubectl("patch", "node", f"{t.ns}-n", "--subresource=status", "-p", json.dumps(
        {"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
                    "nodeInfo": {"kubeletVersion": "v1.34.2"}}}))
    t.kubectl("apply", "-f", "-", stdin={
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": t.ns},
        "spec": {"nodeName": f"{t.ns}-n", "containers": [{"name": "etcd", "image": "etcd:1"}]}})
    has(t.kubectl("describe", "node", f"{t.ns}-n"), r"Roles: +control-plane", "KubeletReady", rf"{t.ns} +p ")
    has(t.kubectl("describe", "pod", "p"), r"Node: +describe-n", r"Image: +etcd:1")
    has(t.kubectl("get", "nodes"), r"describe-n +Ready +control-plane +\d+s +v1\.34\.2")
    has(t.kubectl("get", "pods", "-o", "wide"), r"p +0/1 +Pending +0 +\d+s +<none> +describe-n")
    t.kubectl("delete", "node", f"{t.ns}-n")


# --- writing -----------------------------------------------------------------------------------------

@case
def create(t):
    has(t.kubectl("create", "configmap", "x", "--from-literal=a=b"), "configmap/x created")
    has(t.fails("create", "configmap", "x"), "already exists")
    t.kubectl("create", "secret", "generic", "s", "--from-literal=k=v")
    assert t.json("get", "secret", "s")["data"] == {"k": base64.b64encode(b"v").decode()}
    has(t.kubectl("get", "secret,cm"), r"secret/s +Opaque +1 ", r"configmap/x +1 ")
    made = t.kubectl("create", "-f", "-", "-o", "name", stdin={**t.machine(), "metadata": {"generateName": "gen-"}})
    assert re.fullmatch(r"machine\.cluster\.x-k8s\.io/gen-[a-z0-9]{5}\n", made), made
    has(t.kubectl("create", "-f", "-", "--dry-run=server", stdin=t.machine("dry")), r"created \(server dry run\)")
    t.fails("get", "machine", "dry")
    has(t.fails("create", "-f", "-", stdin=t.machine("Bad_Name")), "Invalid value|is invalid")
    has(t.fails("create", "-f", "-", stdin={**t.machine("m"), "metadata": {"name": "m", "namespace": "elsewhere"}}, namespace="elsewhere"),
        'namespaces "elsewhere" not found')
    has(t.fails("create", "-f", "-", stdin={"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}),
        "no matches for kind")


@case
def apply_client_side(t):
    machine = t.machine("m1", version="v1")
    has(t.apply(machine), "machine.cluster.x-k8s.io/m1 created")
    has(t.apply(machine), "machine.cluster.x-k8s.io/m1 unchanged")
    machine["spec"]["version"] = "v2"
    machine["metadata"]["labels"] = {"x": "y"}
    has(t.apply(machine), "machine.cluster.x-k8s.io/m1 configured")
    del machine["metadata"]["labels"]
    t.apply(machine)
    got = t.json("get", "machine", "m1")
    assert got["spec"]["version"] == "v2" and "labels" not in got["metadata"], got
    assert got["metadata"]["generation"] == 2, got["metadata"]
    config = t.config("c", a="1", b="2")
    has(t.apply(config), "configmap/c created")
    config["data"] = {"a": "1", "c": "3"}
    has(t.apply(config), "configmap/c configured")
    assert t.json("get", "cm", "c")["data"] == {"a": "1", "c": "3"}
    has(t.run("diff", "-f", "-", stdin=t.config("c", a="9")).stdout, r'\+  a: "9"')
    has(t.kubectl("apply", "-f", "-", "--dry-run=server", stdin=t.config("c", a="7")), "server dry run")
    assert t.json("get", "cm", "c")["data"]["a"] == "1"


@case
def apply_server_side(t):
    machine = t.machine("m1", version="v1")
    has(t.kubectl("apply", "--server-side", "-f", "-", stdin=machine), "serverside-applied")
    version = t.json("get", "machine", "m1")["metadata"]["resourceVersion"]
    t.kubectl("apply", "--server-side", "-f", "-", stdin=machine)
    assert t.json("get", "machine", "m1")["metadata"]["resourceVersion"] == version, "an apply of the same wrote"
    machine["spec"]["version"] = "v2"
    has(t.fails("apply", "--server-side", "--field-manager=other", "-f", "-", stdin=machine),
        r'conflict with "kubectl"', r"\.spec\.version")
    t.kubectl("apply", "--server-side", "--field-manager=other", "--force-conflicts", "-f", "-", stdin=machine)
    managers = {m["manager"] for m in t.json("get", "machine", "m1", "--show-managed-fields")["metadata"]["managedFields"]}
    assert {"kubectl", "other"} <= managers, managers
    for manager, kinds in (("one", ["A", "B"]), ("two", ["C"]), ("one", ["B"])):
        t.kubectl("apply", "--server-side", "--subresource=status", f"--field-manager={manager}", "-f", "-", stdin={
            "apiVersion": CLUSTER_API, "kind": "Machine", "metadata": {"name": "m1", "namespace": t.ns},
            "status": {"conditions": [condition(kind, "True") for kind in kinds]}})
    got = [c["type"] for c in t.json("get", "machine", "m1")["status"]["conditions"]]
    assert sorted(got) == ["B", "C"], got
    t.apply(t.config("moved", a="1"))
    has(t.kubectl("apply", "--server-side", "-f", "-", stdin=t.config("moved", a="1", b="2")), "serverside-applied")
    assert t.json("get", "cm", "moved")["data"] == {"a": "1", "b": "2"}


@case
def patch(t):
    t.apply(t.machine("m1", {"a": "1"}), t.config("c", a="1"))
    t.kubectl("patch", "machine", "m1", "--type=merge", "-p", '{"spec":{"version":"v3"},"metadata":{"labels":{"a":null}}}')
    got = t.json("get", "machine", "m1")
    assert got["spec"]["version"] == "v3" and "a" not in got["metadata"].get("labels", {})
    t.kubectl("patch", "machine", "m1", "--type=json", "-p",
              '[{"op":"test","path":"/spec/version","value":"v3"},{"op":"replace","path":"/spec/version","value":"v4"}]')
    has(t.fails("patch", "machine", "m1", "--type=json", "-p", '[{"op":"test","path":"/spec/version","value":"v3"}]'),
        "test|Invalid|invalid")
    has(t.fails("patch", "machine", "m1", "-p", '{"spec":{"version":"v5"}}'), r"strategic-merge-patch\+json is not supported")
    assert t.json("get", "machine", "m1")["spec"]["version"] == "v4"
    t.kubectl("patch", "cm", "c", "-p", '{"data":{"b":"2"}}')
    assert t.json("get", "cm", "c")["data"] == {"a": "1", "b": "2"}
    t.set_status("m1", [condition("Ready", "True")])
    got = t.json("get", "machine", "m1")
    assert got["status"]["conditions"][0]["type"] == "Ready" and got["metadata"]["generation"] == 3, got
    t.kubectl("patch", "machine", "m1", "--type=merge", "-p", '{"status":{"phase":"Failed"}}')
    assert "phase" not in t.json("get", "machine", "m1")["status"], "status was written by the main resource"
    has(t.kubectl("patch", "cm", "c", "-p", "{}"), "no change")


@case
def strategic_lists(t):
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": t.ns},
           "spec": {"containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}]}}
    t.apply(pod)
    t.kubectl("patch", "pod", "p", "-p", '{"spec":{"containers":[{"name":"b","image":"b:2"}]}}')
    assert [c["image"] for c in t.json("get", "pod", "p")["spec"]["containers"]] == ["a:1", "b:2"]
    for status in ("True", "False"):
        t.kubectl("patch", "pod", "p", "--subresource=status", "-p", json.dumps(
            {"status": {"conditions": [{"type": "Ready", "status": status}]}}))
    t.kubectl("patch", "pod", "p", "--subresource=status", "-p", '{"status":{"conditions":[{"type":"X","status":"True"}]}}')
    got = {c["type"]: c["status"] for c in t.json("get", "pod", "p")["status"]["conditions"]}
    assert got == {"Ready": "False", "X": "True"}, got


@case
def edit(t):
    t.apply(t.machine("m1", version="v1"), t.config("c", a="1"))
    editor = t.supervisor.write("editor.sh", '#!/bin/sh\nsed -i "$EDIT" "$1"\n', 0o700)
    env = {"KUBE_EDITOR": editor, "EDIT": "s/version: v1$/version: v2/"}
    has(t.kubectl("edit", "machine", "m1", env=env), "edited")
    assert t.json("get", "machine", "m1")["spec"]["version"] == "v2"
    has(t.run("edit", "machine", "m1", env=env).stderr, "no changes made")
    has(t.kubectl("edit", "cm", "c", env={**env, "EDIT": 's/a: "1"/a: "2"/'}), "edited")
    assert t.json("get", "cm", "c")["data"]["a"] == "2"


@case
def replace(t):
    t.apply(t.config("c", a="1"), t.machine("m1", version="v1"))
    t.kubectl("replace", "-f", "-", stdin=t.config("c", b="2"))
    assert t.json("get", "cm", "c")["data"] == {"b": "2"}
    old = t.json("get", "machine", "m1")
    new = json.loads(json.dumps(old))
    new["spec"]["version"] = "v2"
    t.kubectl("replace", "-f", "-", stdin=new)
    has(t.fails("replace", "-f", "-", stdin={**old, "spec": {**old["spec"], "version": "v3"}}),
        "the object has been modified")
    t.kubectl("replace", "--force", "-f", "-", stdin=t.config("c", c="3"))
    assert t.json("get", "cm", "c")["data"] == {"c": "3"}


@case
def label_and_annotate(t):
    t.apply(t.machine("m1"), t.config("c"))
    for kind, name in (("machine", "m1"), ("configmap", "c")):
        has(t.kubectl("label", kind, name, "k=v"), "labeled")
        has(t.fails("label", kind, name, "k=w"), "already has a value")
        t.kubectl("label", kind, name, "k=w", "--overwrite")
        t.kubectl("annotate", kind, name, "sim.plimsoll.dev/fault=pod-crash:etcd")
        got = t.json("get", kind, name)["metadata"]
        assert got["labels"]["k"] == "w" and got["annotations"]["sim.plimsoll.dev/fault"] == "pod-crash:etcd", got
        t.kubectl("label", kind, name, "k-")
        t.kubectl("annotate", kind, name, "sim.plimsoll.dev/fault-")
        got = t.json("get", kind, name)["metadata"]
        assert "k" not in got.get("labels", {}) and "sim.plimsoll.dev/fault" not in got.get("annotations", {}), got
    assert t.json("get", "machine", "m1")["metadata"]["generation"] == 1
    has(t.fails("label", "machine", "m1", "bad key=v"), "invalid|Invalid")


@case
def delete(t):
    t.apply(t.machine("m1"), t.machine("m2"), t.config("c"))
    has(t.kubectl("delete", "cm", "c"), 'configmap "c" deleted')
    has(t.kubectl("delete", "machine", "m1"), "deleted")
    t.fails("get", "machine", "m1")
    has(t.fails("delete", "machine", "m1"), "not found")
    has(t.kubectl("delete", "machine", "m1", "--ignore-not-found"), "^$")
    t.kubectl("patch", "machine", "m2", "--type=merge", "-p", '{"metadata":{"finalizers":["suite.dev/hold"]}}')
    has(t.kubectl("delete", "machine", "m2", "--wait=false"), "deleted")
    got = t.json("get", "machine", "m2")["metadata"]
    assert got["deletionTimestamp"] and got["generation"] == 2, got
    waiting, _ = t.start("delete", "machine", "m2")
    time.sleep(0.7)
    assert waiting.poll() is None, "delete did not wait for the finalizer"
    t.kubectl("patch", "machine", "m2", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    assert waiting.wait(10) == 0
    t.fails("get", "machine", "m2")


@case
def delete_many(t):
    t.apply(*(t.config(f"c{i}") for i in range(4)))
    t.kubectl("label", "cm", "c0", "c1", "k=v")
    t.kubectl("delete", "cm", "-l", "k=v")
    assert t.kubectl("get", "cm", "-o", "name").split() == ["configmap/c2", "configmap/c3"]
    t.kubectl("delete", "cm", "--all")
    assert t.kubectl("get", "cm", "-o", "name") == ""


@case
def owners(t):
    t.apply(t.machine("owner"), t.machine("other"))
    uid = t.json("get", "machine", "owner")["metadata"]["uid"]

    def child(name):
        return {**t.config(name), "metadata": {"name": name, "namespace": t.ns, "ownerReferences": [
            {"apiVersion": CLUSTER_API, "kind": "Machine", "name": "owner", "uid": uid}]}}
    t.apply(child("a"), child("b"))
    t.kubectl("delete", "machine", "owner")
    wait_for("the garbage collector", lambda: t.kubectl("get", "cm", "-o", "name") == "", 10)
    t.kubectl("get", "machine", "other")
    t.apply(t.machine("owner"))
    uid = t.json("get", "machine", "owner")["metadata"]["uid"]
    t.apply(child("c"))
    t.kubectl("delete", "machine", "owner", "--cascade=orphan")
    time.sleep(0.5)
    assert not t.json("get", "cm", "c")["metadata"].get("ownerReferences")
    t.apply(t.machine("owner"))
    uid = t.json("get", "machine", "owner")["metadata"]["uid"]
    t.apply(child("d"))
    t.kubectl("delete", "machine", "owner", "--cascade=foreground")
    t.fails("get", "cm", "d")


@case
def namespaces(t):
    t.kubectl("create", "namespace", "brief")
    t.kubectl("create", "configmap", "brief-x", namespace="brief")
    has(t.kubectl("get", "ns"), r"brief +Active +\d+s", r"kube-system +Active", r"default +Active")
    t.kubectl("delete", "namespace", "brief", timeout=30)
    t.fails("get", "ns", "brief")
    assert "brief-x" not in t.kubectl("get", "cm", "-A", "-o", "name")
    has(t.fails("create", "configmap", "x", namespace="brief"), 'namespaces "brief" not found')


@case
def waits(t):
    t.apply(t.machine("m1"), t.config("c"))
    has(t.fails("wait", "machine/m1", "--for=condition=Ready", "--timeout=1s"), "timed out")
    waiting, _ = t.start("wait", "machine/m1", "--for=condition=Ready", "--timeout=20s")
    phase, _ = t.start("wait", "machine/m1", "--for=jsonpath={.status.phase}=Running", "--timeout=20s")
    gone, _ = t.start("wait", "cm/c", "--for=delete", "--timeout=20s")
    time.sleep(0.5)
    t.set_status("m1", [condition("Ready", "True")], phase="Running")
    t.kubectl("delete", "cm", "c")
    assert (waiting.wait(20), phase.wait(20), gone.wait(20)) == (0, 0, 0)
    has(t.kubectl("wait", "machine/m1", "--for=condition=Ready"), "condition met")


# --- one server, several clusters; other ways in ----------------------------------------------------------

@case
def clusters(t):
    other = t.server.write_kubeconfig("/clusters/prod")
    t.kubectl("create", "configmap", "here", namespace="default")
    has(t.fails("get", "cm", "here", kubeconfig=other, namespace="default"), "not found")
    t.kubectl("create", "configmap", "there", kubeconfig=other, namespace="default")
    has(t.fails("get", "cm", "there", namespace="default"), "not found")
    has(t.kubectl("explain", "nodes", kubeconfig=other), "KIND: +Node")
    has(t.kubectl("apply", "-f", "-", kubeconfig=other, stdin={**t.config("x"), "metadata": {"name": "x", "namespace": "default"}},
                  namespace="default"), "created")
    status, body, _ = t.server.request("GET", "/clusters/nobody/api/v1/nodes")
    assert status == 404 and body["kind"] == "Status", body


@case
def gate(t):
    path = t.supervisor.write("gate", "")
    server = Server(t.supervisor, "gated", "--cluster", "prod", "--gate", path)
    assert server.request("GET", "/clusters/prod/api/v1/nodes")[0] == 200
    t.supervisor.write("gate", "nodes-forbidden delay")
    begun = time.monotonic()
    status, body, _ = server.request("GET", "/clusters/prod/api/v1/nodes")
    assert (status, body["reason"]) == (403, "Forbidden") and time.monotonic() - begun > 0.25
    assert server.request("GET", "/clusters/prod/api/v1/pods")[0] == 200
    assert server.request("GET", "/api/v1/nodes")[0] == 200
    t.supervisor.write("gate", "")
    connection = server.connection()
    connection.request("GET", "/clusters/prod/api/v1/pods?watch=1")
    stream = connection.getresponse()
    assert stream.status == 200
    t.supervisor.write("gate", "cut")
    try:
        stream.read()
        raise AssertionError("the stream ended as if nothing had happened")
    except (http.client.IncompleteRead, ConnectionError):
        pass
    try:
        server.request("GET", "/clusters/prod/api/v1/pods")
        raise AssertionError("a cut network answered")
    except (http.client.RemoteDisconnected, ConnectionError):
        pass
    assert server.request("GET", "/api/v1/nodes")[0] == 200
    assert server.process.stop() == 0


@case
def token_and_tls(t):
    server = Server(t.supervisor, "tls", token="s3cret")
    has(t.kubectl("get", "ns", kubeconfig=server.kubeconfig), "kube-system")
    _, lines = t.start("get", "ns", "-w", kubeconfig=server.kubeconfig)
    wait_for("the list", lambda: any("kube-system" in line for line in lines))
    t.kubectl("create", "ns", "new", kubeconfig=server.kubeconfig)
    wait_for("the event", lambda: any(line.startswith("new ") for line in lines))
    t.kubectl("run", "p", "--image=i", kubeconfig=server.kubeconfig, namespace="new")
    forwards(server, "new", "p")
    server.token = "wrong"
    has(t.fails("get", "ns", kubeconfig=server.write_kubeconfig("/")), "Unauthorized|must be logged in|provide credentials")
    context = ssl.create_default_context(cadata=server.certificate)
    context.check_hostname = False
    connection = http.client.HTTPSConnection(server.host, server.port, context=context, timeout=10)
    connection.request("GET", "/api")
    assert connection.getresponse().status == 401
    assert server.process.stop() == 0
    refused = subprocess.run([APISERVER, "--listen", "0.0.0.0:0"], capture_output=True, text=True, timeout=10, check=False)
    assert refused.returncode == 2 and "token is needed" in refused.stderr, refused


def frame(payload, opcode=2):
    size = len(payload)
    length = bytes([0x80 | size]) if size < 126 else bytes([0x80 | 126]) + struct.pack(">H", size)
    return bytes([0x80 | opcode]) + length + b"\0\0\0\0" + payload


def read_frame(stream):
    """Opcode and payload of the next frame."""
    first, size = stream.read(2)
    if size == 126:
        size, = struct.unpack(">H", stream.read(2))
    elif size == 127:
        size, = struct.unpack(">Q", stream.read(8))
    return first & 0xf, stream.read(size)


def forwards(server, namespace, pod):
    """A port-forward to something that answers in capitals."""
    echo = socket.create_server(("127.0.0.1", 0))
    port = echo.getsockname()[1]

    def serve():
        connection, _ = echo.accept()
        with connection:
            while data := connection.recv(65536):
                connection.sendall(data.upper())
    threading.Thread(target=serve, daemon=True).start()
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(socket.create_connection((server.host, server.port), timeout=10))
        if server.certificate:
            context = ssl.create_default_context(cadata=server.certificate)
            client = stack.enter_context(context.wrap_socket(client, server_hostname="localhost"))
        client.sendall((f"GET /api/v1/namespaces/{namespace}/pods/{pod}/portforward?ports={port} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                        f"Authorization: Bearer {server.token}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
                        "Sec-WebSocket-Protocol: v4.channel.k8s.io\r\n\r\n").encode())
        stream = client.makefile("rb")
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = stream.readline()
            assert line, head
            head += line
        assert b" 101 " in head and b"ICX+Yqv66kxgM0FcWaLWlFLwTAI=" in head, head
        assert [read_frame(stream) for _ in range(2)] == [(2, struct.pack("<BH", i, port)) for i in range(2)]
        client.sendall(frame(b"\0" + b"abc" * 10000))
        got = b""
        while len(got) < 30000:
            opcode, payload = read_frame(stream)
            assert opcode == 2 and payload[0] == 0, (opcode, payload[:100])
            got += payload[1:]
        assert got == b"ABC" * 10000
        client.sendall(frame(b"\x03\xe8", 8))
        assert read_frame(stream) == (8, b"\x03\xe8") and stream.read() == b""


@case
def port_forward(t):
    t.kubectl("run", "p", "--image=i")
    path = f"/api/v1/namespaces/{t.ns}/pods/p/portforward?ports=1"
    assert t.server.request("GET", path)[0] == 400, "no upgrade"
    assert t.server.request("GET", path.replace("/p/", "/q/"))[0] == 404, "no such Pod"
    for _ in range(3):
        forwards(t.server, t.ns, "p")


# --- bad input ---------------------------------------------------------------------------------------------

@case
def bad_input(t):
    base = f"/apis/{CLUSTER_API}/namespaces/{t.ns}/machines"
    machine = t.machine("m")
    machine_text = json.dumps(machine)
    as_json = {"Content-Type": "application/json"}
    rows = [
        ("POST", base, "{", as_json, 400, "BadRequest"),
        ("POST", base, "", as_json, 400, "BadRequest"),
        ("POST", base, "[]", as_json, 400, "BadRequest"),
        ("POST", base, '{"a":1,"a":2}', as_json, 400, "BadRequest"),
        ("POST", base, '{"a":"\xff"}'.encode("latin-1"), as_json, 400, "BadRequest"),
        ("POST", base, "[" * 5000, as_json, 400, "BadRequest"),
        ("POST", base, json.dumps({**machine, "kind": "Pod"}), as_json, 422, "Invalid"),
        ("POST", base, json.dumps({**machine, "apiVersion": "v1"}), as_json, 400, "BadRequest"),
        ("POST", base, machine_text, {"Content-Type": "text/html"}, 415, "UnsupportedMediaType"),
        ("POST", base, json.dumps({**machine, "metadata": {}}), as_json, 422, "Invalid"),
        ("POST", base + "/m", "{}", as_json, 400, "BadRequest"),
        ("POST", "/api/v1/namespaces/default", "{}", as_json, 405, "MethodNotAllowed"),
        ("BREW", base, "", as_json, 405, "MethodNotAllowed"),
        ("PUT", base, machine_text, as_json, 400, "BadRequest"),
        ("PUT", base + "/m", machine_text, as_json, 404, "NotFound"),
        ("GET", base + "/m/nothing", None, {}, 404, "NotFound"),
        ("GET", base + "?labelSelector=" + "%28", None, {}, 400, "BadRequest"),
        ("GET", base + "?fieldSelector=spec.clusterName%3Dx", None, {}, 400, "BadRequest"),
        ("GET", base + "?continue=nonsense", None, {}, 400, "BadRequest"),
        ("GET", base + "?resourceVersionMatch=Exact", None, {}, 422, "Invalid"),
        ("GET", base, None, {"Accept": "application/xml"}, 406, "NotAcceptable"),
        ("GET", "/api/v1/services", None, {}, 404, "NotFound"),
        ("PATCH", base + "/m", "{}", {"Content-Type": "application/apply-patch+yaml"}, 422, None),
        ("DELETE", base + "/m", "{", as_json, 500, None),
    ]
    for method, path, body, headers, status, reason in rows:
        got, answer, _ = t.server.request(method, path, body, headers)
        what = f"{method} {path} {str(body)[:60]}: {got} {answer}"
        assert got == status, what
        assert answer["kind"] == "Status" and answer["status"] == "Failure" and answer["code"] == status, what
        assert reason is None or answer["reason"] == reason, what
    for path in ("/nothing", "/apis/apps/v1/deployments"):  # no API of this server's own: plain text, as from a real one
        assert t.server.request("GET", path)[0] == 404, path
    t.fails("get", "deployments")
    t.kubectl("get", "ns")


@case
def large_bodies(t):
    path = f"/api/v1/namespaces/{t.ns}/configmaps"
    status, _, _ = t.server.request("POST", path, t.config("fits", a="x" * 900_000))
    assert status == 201
    got = t.json("get", "cm", "fits")
    assert len(got["data"]["a"]) == 900_000
    status, answer, _ = t.server.request("POST", path, t.config("large", a="x" * (3 * 1024 * 1024)))
    assert (status, answer["reason"]) == (413, "RequestEntityTooLarge"), answer
    with socket.create_connection((t.server.host, t.server.port), timeout=10) as client:
        client.sendall(f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 999999999\r\n\r\n".encode())
        assert b" 413 " in client.recv(4096)
    t.fails("get", "cm", "large")


@case
def slow_clients(t):
    t.apply(t.config("c", a="x" * 100_000))
    slow = []
    for i in range(50):
        client = socket.create_connection((t.server.host, t.server.port), timeout=10)
        client.sendall(b"GET /api/v1/namespaces HTTP/1.1\r\nHost" if i % 2 else
                       f"GET /api/v1/namespaces/{t.ns}/configmaps?watch=1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        slow.append(client)
    for i in range(20):
        t.server.request("PATCH", f"/api/v1/namespaces/{t.ns}/configmaps/c", json.dumps({"data": {"b": f"{i}" * 100_000}}),
                         {"Content-Type": "application/merge-patch+json"})
    begun = time.monotonic()
    assert t.server.request("GET", "/api/v1/namespaces")[0] == 200
    assert time.monotonic() - begun < 2, "slow clients held up a quick one"
    for client in slow:
        client.close()


@case
def many_watches(t):
    count = 500
    path = f"/api/v1/namespaces/{t.ns}/configmaps?watch=1"
    streams = []
    for _ in range(count):
        client = socket.create_connection((t.server.host, t.server.port), timeout=20)
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        streams.append(client)
    for client in streams:
        got = b""
        while b"\r\n\r\n" not in got:
            got += client.recv(4096)
        assert b" 200 " in got, got
    t.kubectl("create", "configmap", "seen")

    def sees(client):
        got = b""
        while b'"seen"' not in got:
            piece = client.recv(65536)
            assert piece, "the stream ended"
            got += piece
        return True
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        assert all(pool.map(sees, streams))
    before = len(os.listdir(f"/proc/{t.server.process.pid}/fd"))
    assert before > count
    for client in streams:
        client.close()
    wait_for("the server to let go", lambda: len(os.listdir(f"/proc/{t.server.process.pid}/fd")) < before - count + 20, 10)
    t.kubectl("get", "cm", "seen")


@case
def killed(t):
    """kill -9 while it is written to: what was acknowledged is there."""
    path = t.supervisor.path("crash.db")
    server = Server(t.supervisor, "crashing", "--db", path)
    written = []

    def write():
        for i in range(100000):
            try:
                status, _, _ = server.request("POST", "/api/v1/namespaces/default/configmaps", {
                    "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{i}"}})
            except OSError:
                return
            except http.client.HTTPException:
                return
            assert status == 201
            written.append(f"c{i}")
    writer = threading.Thread(target=write)
    writer.start()
    wait_for("some writes", lambda: len(written) > 50)
    server.process.signal(signal.SIGKILL)
    writer.join(20)
    server.process.wait(5)
    again = Server(t.supervisor, "crashed", "--db", path)
    got = {o["metadata"]["name"] for o in again.request("GET", "/api/v1/namespaces/default/configmaps")[1]["items"]}
    assert set(written) <= got, set(written) - got
    assert again.process.stop() == 0


@case
def auth_can_i(t):
    assert t.kubectl("auth", "can-i", "create", "pods/portforward").strip() == "yes"
    assert "system:anonymous" in t.kubectl("auth", "whoami")


def choose(description, cases):
    """From the command line: the cases to run, and whether logs are kept. Ends by itself when they are only listed."""
    parser = argparse.ArgumentParser(description=description.split("\n\n", maxsplit=1)[0])
    parser.add_argument("-k", action="append", default=[], help="only cases with this in their name")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--keep", action="store_true", help="keep the folder with logs")
    options = parser.parse_args()
    cases = [c for c in cases if not options.k or any(k in c.__name__ for k in options.k)]
    if options.list:
        print("\n".join(c.__name__ for c in cases))
        sys.exit(0)
    return cases, options.keep


def main():
    cases, keep = choose(__doc__, CASES)
    try:
        Case.kubectl_path = optional_binary("kubectl")
    except LeftOut as why:
        print(why)
        return 77
    supervisor = Supervisor(keep)
    server = Server(supervisor, "apiserver", "--cluster", "prod")
    passed = failed = 0
    for function in cases:
        begun = time.monotonic()
        t = None
        try:
            t = Case(supervisor, server, function.__name__)
            function(t)
            assert server.process.running(), "the server is gone: " + server.process.tail()
            passed += 1
            print(f"ok      {function.__name__} ({time.monotonic() - begun:.1f} s)", flush=True)
        except Exception:  # whatever it is, the next case goes on
            failed += 1
            print(f"FAILED  {function.__name__} ({time.monotonic() - begun:.1f} s)\n{traceback.format_exc()}", flush=True)
        finally:
            if t:
                t.close()
    if server.process.stop() != 0:
        failed += 1
        print(f"FAILED  the end of the server\n{server.process.tail()}")
    print(f"kubectl: {passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
