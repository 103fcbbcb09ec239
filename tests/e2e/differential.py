#!/usr/bin/env python3
"""Random API calls to two servers; their answers must be the same. differential.py [--seeds N] [--seed N] [--self]

One seed decides a sequence of calls. It goes to a real kube-apiserver and to the embedded server (with --self to
a second kube-apiserver, which shows that the comparison itself is sound), step by step.
Compared are the HTTP status, the reason of a Status, and every object, all less what must differ:

- a uid becomes the name of its object and which one of that name it is, so that a recreated object is told from a kept one
- a resourceVersion becomes a count of the changes of its object, so that a write that should not have been one shows
- times of today become <time> (or <microtime>); generated names and tokens of lists become placeholders

What a Status says beyond its reason (message, details) is wording: differences are counted, and shown with --wording.
Differences that are accepted are in KNOWN below, and described in docs/internals/apiserver.md; --known prints them. The last line is
"differential: N calls, N worded differently, N known differences, N differences". The embedded server is
build/tests/e2e_apiserver, or $APISERVER.
"""

import argparse
import base64
import concurrent.futures
import copy
import http.client
import json
import random
import re
import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from urllib.parse import urlencode

import os
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from rig.servers import EmbeddedServer, Rig  # noqa: E402

CAPI, KCP, INFRA = "cluster.x-k8s.io", "controlplane.cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io"
JSON, MERGE, PATCH = "application/json", "application/merge-patch+json", "application/json-patch+json"
STRATEGIC, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"
OLD = "2025-03-01T10:00:00Z"
MANAGERS = ("alpha", "beta")


# --- calls, and what becomes of them on one side -------------------------------------------------------


@dataclass
class Step:
    """One call. {{uid PATH}}, {{rv PATH}}, {{name N}} and {{continue}} stand for what this side knows of them."""
    what: str
    method: str
    path: str
    query: dict = field(default_factory=dict)
    body: object = None  # bytes are sent as they are
    content_type: str = JSON
    accept: str = "application/json"
    edit: object = None  # a function: GET first, change the object by it, send that
    generated: int = 0   # remember the name under this number
    watch: bool = False

    def url(self):
        return self.path + ("?" + urlencode(self.query) if self.query else "")


@dataclass
class Answer:
    code: int
    body: object
    sent: str = ""


class Side:
    """One server, what it said so far, and its answers made comparable."""

    def __init__(self, name, client):
        self.name, self.client = name, client
        self.start = time.time()
        self.objects = {}    # path -> the newest object
        self.uids = {}       # uid -> its symbol
        self.count = Counter()
        self.versions = {}   # uid -> {resourceVersion: how many before}
        self.names = {}      # generated name -> its symbol
        self.continues = ""

    def _fill(self, text):
        def known(match):
            what, _, rest = match.group(1).partition(" ")
            meta = self.objects.get(rest, {}).get("metadata", {})
            if what == "uid":
                return meta.get("uid", "00000000-0000-4000-8000-000000000000")
            if what == "rv":
                return meta.get("resourceVersion", "1")
            if what == "continue":
                return self.continues
            return next((name for name, symbol in self.names.items() if symbol == f"<name {rest}>"), "none")
        return re.sub(r"\{\{([^}]*)\}\}", known, text)

    def send(self, step):
        body = step.body
        if step.edit:
            code, _, data = self._request("GET", step.path.removesuffix("/status"), None, JSON, JSON)
            body = json.loads(data) if code == 200 else body
            step.edit(body)
        if body is not None and not isinstance(body, bytes):
            body = self._fill(json.dumps(body)).encode()
        path = step.path
        query = {key: self._fill(value) for key, value in step.query.items()}
        path = self._fill(path) + ("?" + urlencode(query) if query else "")
        if step.watch:
            return Answer(200, self._watch(path), "")
        code, _, data = self._request(step.method, path, body, step.content_type, step.accept)
        try:
            answer = json.loads(data)
        except ValueError:
            answer = {"text": data.decode(errors="replace")}
        self._learn(step, code, answer)
        return Answer(code, self.normal(answer), f"{path} {body.decode(errors='replace') if body else ''}")

    def _request(self, method, path, body, content_type, accept):
        for attempt in (1, 2):
            connection = getattr(self, "connection", None) or self.client._connect()
            self.connection = connection
            headers = dict(self.client._headers(), Accept=accept)
            if body is not None and content_type:
                headers["Content-Type"] = content_type
            try:
                connection.request(method, path, body=body, headers=headers)
                answer = connection.getresponse()
                return answer.status, answer.headers, answer.read()
            except (OSError, http.client.HTTPException):
                self.connection = None
                if attempt == 2:
                    raise
        raise AssertionError("not reached")

    def _watch(self, path):
        """The events of a watch that ends by itself after a second."""
        connection = self.client._connect(timeout=20)
        connection.request("GET", path, headers=self.client._headers())
        answer = connection.getresponse()
        if answer.status != 200:
            return {"code": answer.status, "body": self.normal(json.loads(answer.read()))}
        events = []
        for line in answer:
            event = json.loads(line)
            last = event["object"].get("metadata", {}).get("annotations", {})
            if event["type"] == "BOOKMARK" and "k8s.io/initial-events-end" not in last:
                continue  # they come when they come
            self._number(event["object"])
            events.append([event["type"], self.normal(event["object"])])
        connection.close()
        return events

    def _learn(self, step, code, answer):
        if code >= 400 or not isinstance(answer, dict) or "dryRun" in step.query or '"dryRun"' in json.dumps(
                step.body if not isinstance(step.body, bytes) else ""):
            return
        if step.generated and code == 201:
            self.names[answer["metadata"]["name"]] = f"<name {step.generated}>"
        if answer.get("metadata", {}).get("uid"):
            path = step.path if step.method != "POST" else step.path + "/" + answer["metadata"]["name"]
            self.objects[self._fill(path.removesuffix("/status"))] = answer
            self._number(answer)
        for item in answer.get("items", []) if isinstance(answer.get("items"), list) else []:
            self._number(item)
        if "continue" in answer.get("metadata", {}):
            self.continues = answer["metadata"]["continue"]

    def _number(self, obj):
        meta = obj.get("metadata", {}) if isinstance(obj, dict) else {}
        uid, version = meta.get("uid"), meta.get("resourceVersion")
        if not uid:
            return
        if uid not in self.uids:
            key = f"{meta.get('namespace', '')}/{self.names.get(meta['name'], meta['name'])}"
            self.count[key] += 1
            self.uids[uid] = f"<uid {key} {self.count[key]}>"
        seen = self.versions.setdefault(uid, {})
        seen.setdefault(version, len(seen) + 1)

    def normal(self, value, key=None, uid=None):
        if isinstance(value, dict):
            here = value.get("uid") if key == "metadata" else None
            out = {self._text(k): self.normal(v, k, here) for k, v in value.items()}
            if key == "metadata" and isinstance(out.get("managedFields"), list):
                # By manager: the order in the list is that of time, which a second's turn decides.
                out["managedFields"] = {" ".join(m.pop(k, "") for k in ("manager", "operation", "subresource")).strip(): m
                                        for m in out["managedFields"]}
            if key == "details" and isinstance(out.get("causes"), list):
                out["causes"].sort(key=lambda c: json.dumps(c, sort_keys=True))  # managers come in no order
            return out
        if isinstance(value, list):
            return [self.normal(v, None) for v in value]
        if not isinstance(value, str):
            return value
        if key == "resourceVersion":
            return f"<version {self.versions[uid][value]}>" if value in self.versions.get(uid, {}) else "<version>"
        if key == "continue":
            return "<continue>" if value else ""
        value = self._text(value)
        if key == "message" and value.startswith("Apply failed"):
            value = "\n".join(sorted(value.split("\n")))
        return value

    def _text(self, value):
        for name, symbol in self.names.items():
            value = value.replace(name, symbol)
        value = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
                       lambda m: self.uids.get(m.group(), "<uid>" if not m.group().startswith("00000000") else m.group()), value)

        value = re.sub(r"\b(\d\dBad_)[a-z0-9]{5}\b", r"\1<generated>", value)
        value = re.sub(r"in record \(\d+\)", "in record (<version>)", value)
        value = re.sub(r"Key: /[^/]*/", "Key: /<prefix>/", value)
        value = re.sub(r'(\\*"resourceVersion\\*":\\*")\d+', r"\1<version>", value)

        def today(match):
            at = time.mktime(time.strptime(match.group(1), "%Y-%m-%dT%H:%M:%S")) - time.timezone
            if abs(at - time.time()) > 86400:
                return match.group()
            return "<microtime>" if match.group(2) else "<time>"
        return re.sub(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?Z", today, value)


# --- the kinds -----------------------------------------------------------------------------------------


def condition(kind, status, reason="Because", message="", **more):
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": OLD, **more}


def ref(kind, name):
    return {"apiGroup": INFRA, "kind": kind, "name": name}


def machine_spec(r):
    return {"clusterName": r.choice(("one", "two")), "version": "v1.34.2", "bootstrap": {"dataSecretName": "x"},
            "infrastructureRef": ref("DevMachine", "m")}


def machine_template(r):
    return {"clusterName": "one", "replicas": r.randint(0, 3), "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": machine_spec(r)}}


def pod_spec(r):
    """With all that a real server would fill in, which is no part of what is compared."""
    return {"containers": [{"name": "main", "image": r.choice(("image:1", "image:2")), "imagePullPolicy": "IfNotPresent",
                            "resources": {}, "terminationMessagePath": "/dev/termination-log",
                            "terminationMessagePolicy": "File"}],
            "dnsPolicy": "ClusterFirst", "enableServiceLinks": True, "nodeName": "somewhere", "preemptionPolicy": "PreemptLowerPriority",
            "priority": 0, "restartPolicy": "Always", "schedulerName": "default-scheduler", "securityContext": {},
            "terminationGracePeriodSeconds": 0,
            "tolerations": [{"effect": "NoExecute", "key": "node.kubernetes.io/" + what, "operator": "Exists",
                             "tolerationSeconds": 300} for what in ("not-ready", "unreachable")]}


def node_spec(r):
    return {"providerID": "dev:///x", "taints": [{"effect": "NoSchedule", "key": "node.kubernetes.io/not-ready"}]}


@dataclass
class Kind:
    plural: str
    kind: str
    group: str
    version: str
    make: object            # a function of the random numbers: what the object has besides its metadata
    change: object          # a function: (path, value) of a change, as a list of steps and what to set
    namespaced: bool = True
    status: object = None   # a function: a status to write
    patches: tuple = (MERGE, PATCH)

    @property
    def api_version(self):
        return f"{self.group}/{self.version}" if self.group else self.version

    def collection(self, namespace):
        base = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        return base + (f"/namespaces/{namespace}" if self.namespaced and namespace else "") + "/" + self.plural


def capi_conditions(r):
    return [condition(kind, r.choice(("True", "False", "Unknown")), r.choice(("Because", "Other")))
            for kind in r.sample(("Ready", "Available", "Paused"), r.randint(1, 3))]


KINDS = [
    Kind("configmaps", "ConfigMap", "", "v1", lambda r: {"data": {"a": str(r.randint(0, 3)), "b": "x"}},
         lambda r: (["data", r.choice("abc")], str(r.randint(0, 9))), patches=(MERGE, PATCH, STRATEGIC)),
    Kind("secrets", "Secret", "", "v1", lambda r: {"type": "Opaque", "data": {"a": base64.b64encode(bytes([r.randint(0, 9)])).decode()}},
         lambda r: (["data", r.choice("abc")], base64.b64encode(b"new").decode()), patches=(MERGE, PATCH, STRATEGIC)),
    Kind("pods", "Pod", "", "v1", lambda r: {"spec": pod_spec(r)},
         lambda r: (["metadata", "annotations"], {"note": str(r.randint(0, 3))}), patches=(MERGE, PATCH, STRATEGIC),
         status=lambda r: {"phase": r.choice(("Pending", "Running", "Failed")), "conditions": [
             {"type": "Ready", "status": r.choice(("True", "False")), "lastTransitionTime": OLD, "lastProbeTime": None}],
             "qosClass": "BestEffort"}),
    Kind("nodes", "Node", "", "v1", lambda r: {"spec": node_spec(r)},
         lambda r: (["spec", "unschedulable"], True), namespaced=False, patches=(MERGE, PATCH, STRATEGIC),
         status=lambda r: {"conditions": [{
             "type": r.choice(("Ready", "DiskPressure")), "status": r.choice(("True", "False", "Unknown")), "reason": "Kubelet",
             "message": "", "lastHeartbeatTime": OLD, "lastTransitionTime": OLD}]}),
    Kind("leases", "Lease", "coordination.k8s.io", "v1",
         lambda r: {"spec": {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2025-03-01T10:00:00.123456Z"}},
         lambda r: (["spec", "leaseTransitions"], r.randint(0, 3)), patches=(MERGE, PATCH, STRATEGIC)),
    Kind("events", "Event", "", "v1",
         lambda r: {"involvedObject": {"kind": "Pod", "name": "p", "namespace": "{ns}"}, "reason": "Why", "message": "so",
                    "type": "Normal", "source": {"component": "x"}, "reportingComponent": "", "reportingInstance": "",
                    "firstTimestamp": OLD, "lastTimestamp": OLD, "eventTime": None, "count": 1},
         lambda r: (["count"], r.randint(1, 5)), patches=(MERGE, PATCH, STRATEGIC)),
    Kind("machines", "Machine", CAPI, "v1beta2", lambda r: {"spec": machine_spec(r)},
         lambda r: (["spec", "providerID"], f"dev:///{r.randint(0, 3)}"),
         status=lambda r: {"phase": r.choice(("Pending", "Running")), "conditions": capi_conditions(r)}),
    Kind("clusters", "Cluster", CAPI, "v1beta2",
         lambda r: {"spec": {"controlPlaneEndpoint": {"host": "h", "port": r.randint(1, 9)}}},
         lambda r: (["spec", "paused"], r.choice((True, False))),
         status=lambda r: {"phase": "Provisioned", "conditions": capi_conditions(r)}),
    Kind("machinedeployments", "MachineDeployment", CAPI, "v1beta2", lambda r: {"spec": machine_template(r)},
         lambda r: (["spec", "replicas"], r.randint(0, 5)),
         status=lambda r: {"replicas": r.randint(0, 3), "conditions": capi_conditions(r)}),
    Kind("kubeadmcontrolplanes", "KubeadmControlPlane", KCP, "v1beta2",
         lambda r: {"spec": {"replicas": r.randint(1, 3), "version": "v1.34.2",
                             "machineTemplate": {"spec": {"infrastructureRef": ref("DevMachineTemplate", "t")}}}},
         lambda r: (["spec", "replicas"], r.choice((1, 3, 5))),
         status=lambda r: {"replicas": r.randint(1, 3), "conditions": capi_conditions(r)}),
    Kind("devmachines", "DevMachine", INFRA, "v1beta2", lambda r: {"spec": {"providerID": "dev:///1"}},
         lambda r: (["spec", "providerID"], f"dev:///{r.randint(0, 3)}"),
         status=lambda r: {"conditions": capi_conditions(r)}),
]
BY_PLURAL = {k.plural: k for k in KINDS}


# --- the generator -------------------------------------------------------------------------------------


def put_in(obj, path, value):
    for name in path[:-1]:
        obj = obj.setdefault(name, {})
    obj[path[-1]] = value


class Generator:
    """Calls from one seed. It knows nothing of the answers: names are few, so that calls meet."""

    def __init__(self, seed):
        self.r = random.Random(seed)
        self.tag = f"s{seed}"
        self.namespaces = [f"{self.tag}-a", f"{self.tag}-b"]
        self.generated = self.scaled = 0
        self.weights = [(function, weight) for function, weight in (
            (self.forget_owners, 2), (self.take_over, 3), (self.owner_reference, 3), (self.scale, 3), (self.odd_metadata, 3),
            (self.odd_options, 2),
            (self.create, 30), (self.get, 8), (self.listing, 8), (self.pages, 2), (self.update, 10), (self.merge, 10),
            (self.json_patch, 7), (self.strategic, 4), (self.apply, 14), (self.write_status, 12), (self.delete, 10),
            (self.finalizer, 6), (self.generate, 3), (self.collection, 1), (self.watch, 1), (self.malformed, 6),
            (self.strange, 6), (self.invalid, 6), (self.precondition, 5), (self.dry_run, 5), (self.list_options, 3),
            (self.namespace, 2))]

    def steps(self, count):
        for namespace in self.namespaces:
            yield Step("namespace", "POST", "/api/v1/namespaces", body={
                "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        made = 2
        while made < count:
            function = self.r.choices([f for f, _ in self.weights], [w for _, w in self.weights])[0]
            for step in function():
                step.what = step.what or function.__name__
                yield step
                made += 1
        yield from self.namespace_deletion()

    # Small choices

    def kind(self, status=False):
        # Every seed concentrates on a few, so that sequences on one object get long.
        kinds = [k for k in random.Random(self.tag).sample(KINDS, 4) if not status or k.status]
        return self.r.choice(kinds or [BY_PLURAL["machines"]])

    def place(self, kind):
        """(collection, namespace) of a kind."""
        namespace = self.r.choice(self.namespaces[:1] * 5 + self.namespaces[1:])
        return kind.collection(namespace), namespace

    def name(self, kind):
        name = self.r.choice("xxxyyz")
        return name if kind.namespaced else f"{self.tag}-{name}"

    def labels(self):
        return {"run": self.tag, self.r.choice(("color", "size")): self.r.choice(("red", "blue", ""))}

    def body(self, kind, namespace, name=None):
        meta = {"labels": self.labels()}
        if name:
            meta["name"] = name
        if kind.namespaced and self.r.random() < 0.5:
            meta["namespace"] = namespace
        if self.r.random() < 0.25:
            meta["finalizers"] = self.r.sample(("example.com/a", "example.com/b"), self.r.randint(1, 2))
        if self.r.random() < 0.2:
            meta["annotations"] = {"example.com/note": self.r.choice(("", "x", "ü€"))}
        body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta}
        body.update(json.loads(json.dumps(kind.make(self.r)).replace("{ns}", namespace)))
        if kind.status and self.r.random() < 0.2 and kind.plural not in ("nodes", "pods"):
            body["status"] = kind.status(self.r)  # a create drops it
        return body

    def manager(self):
        return {"fieldManager": self.r.choice(MANAGERS)} if self.r.random() < 0.4 else {}

    def one(self, kind=None):
        kind = kind or self.kind()
        where, namespace = self.place(kind)
        name = self.name(kind)
        return kind, where, namespace, name, f"{where}/{name}"

    # Calls

    def create(self):
        kind, where, namespace, name, _ = self.one()
        yield Step("", "POST", where, self.manager(), self.body(kind, namespace, name))

    def get(self):
        kind, _, _, _, path = self.one()
        yield Step("", "GET", path + (self.r.choice(("", "/status")) if kind.status else ""))

    def selector(self):
        wanted = f"run={self.tag}"
        more = self.r.choice(("", "color", "!color", "color=red", "color!=red", "color in (red,blue)", "color notin (red)",
                              "size=", "color==blue,size!=red", "color in (red", "=x", "color=red,,"))
        return {"labelSelector": f"{wanted},{more}" if more else wanted}

    def listing(self):
        kind, where, namespace, name, _ = self.one()
        if self.r.random() < 0.3:
            where = kind.collection(None)
        query = self.selector()
        if self.r.random() < 0.3:
            query["fieldSelector"] = self.r.choice((f"metadata.name={name}", f"metadata.namespace={namespace}", f"metadata.name!={name}",
                                                    "spec.nothing=1", "metadata.name", f"metadata.name={name},metadata.namespace={namespace}",
                                                    "spec.nodeName=somewhere", "type=Opaque", "involvedObject.name=p"))
        yield Step("", "GET", where, query)

    def pages(self):
        kind = self.kind()
        where = kind.collection(self.namespaces[0])
        query = {"limit": str(self.r.randint(1, 2)), "labelSelector": f"run={self.tag}"}
        yield Step("", "GET", where, dict(query))
        for _ in range(2):
            yield Step("", "GET", where, dict(query, **{"continue": "{{continue}}"}))
        yield Step("", "GET", where, dict(query, **{"continue": "nonsense"}))

    def list_options(self):
        kind, where, *_ = self.one()
        # Nodes of other sequences have names that were generated.
        mine = {} if kind.namespaced else {"labelSelector": f"run={self.tag}"}
        yield Step("", "GET", where, dict(mine, **self.r.choice((
            {"resourceVersion": "0"}, {"resourceVersion": "abc"}, {"resourceVersion": "-1"}, {"resourceVersionMatch": "Exact"},
            {"resourceVersion": "0", "resourceVersionMatch": "Exact"}, {"resourceVersion": "1", "resourceVersionMatch": "Sideways"},
            {"sendInitialEvents": "true"}, {"limit": "-1"}, {"limit": "x"}, {"resourceVersion": "0", "resourceVersionMatch": "NotOlderThan"},
            {"watch": "true", "resourceVersion": "abc"}, {"watch": "1", "sendInitialEvents": "true"},
            {"watch": "1", "resourceVersionMatch": "NotOlderThan", "timeoutSeconds": "1"}, {"continue": "x", "resourceVersion": "5"}))))

    def change(self, kind):
        """A function that changes an object, as a controller would."""
        path, value = kind.change(self.r)
        label = self.r.choice(("red", "blue"))
        which = self.r.random()

        def edit(obj):
            if which < 0.6:
                put_in(obj, path, value)
            if which > 0.4:
                put_in(obj, ["metadata", "labels", "color"], label)
            if which > 0.9:
                obj["metadata"].pop("resourceVersion", None)
            elif which > 0.85:
                obj["metadata"]["resourceVersion"] = "1"
            elif which > 0.82:
                obj["metadata"]["uid"] = "00000000-0000-4000-8000-000000000000"
            elif which < 0.05:
                obj["metadata"].pop("managedFields", None)
        return edit

    def update(self):
        kind, where, namespace, name, path = self.one()
        fresh = self.body(kind, namespace, name)
        if self.r.random() < 0.2:
            yield Step("put whole", "PUT", path, self.manager(), fresh)
        else:
            yield Step("", "PUT", path, self.manager(), fresh, edit=self.change(kind))

    def merge(self):
        kind, _, _, _, path = self.one()
        where, value = kind.change(self.r)
        patch = {}
        if self.r.random() < 0.7:
            put_in(patch, where, self.r.choice((value, value, value, None)))
        if self.r.random() < 0.5:
            put_in(patch, ["metadata", "labels", "color"], self.r.choice(("red", None)))
        if self.r.random() < 0.1:
            put_in(patch, ["metadata", "resourceVersion"], self.r.choice(("1", "{{rv %s}}" % path)))
        if self.r.random() < 0.1:
            put_in(patch, ["metadata", "uid"], "00000000-0000-4000-8000-000000000000")
        if self.r.random() < 0.1:
            put_in(patch, ["metadata", "generation"], 77)
        if self.r.random() < 0.1:
            put_in(patch, ["metadata", "name"], "other")
        yield Step("", "PATCH", path, self.manager(), patch, MERGE)

    def json_patch(self):
        kind, _, _, name, path = self.one()
        where, value = kind.change(self.r)
        pointer = "/" + "/".join(where)
        operations = self.r.choice((
            [{"op": "add", "path": pointer, "value": value}],
            [{"op": "replace", "path": pointer, "value": value}],
            [{"op": "remove", "path": pointer}],
            [{"op": "test", "path": "/metadata/name", "value": name}, {"op": "add", "path": pointer, "value": value}],
            [{"op": "test", "path": "/metadata/name", "value": "no"}, {"op": "add", "path": pointer, "value": value}],
            [{"op": "add", "path": "/metadata/labels/example.com~1x", "value": "1"}],
            [{"op": "copy", "from": "/metadata/labels/run", "path": "/metadata/labels/copied"}],
            [{"op": "move", "from": "/metadata/labels/run", "path": "/metadata/labels/moved"},
             {"op": "add", "path": "/metadata/labels/run", "value": self.tag}],
            [{"op": "test", "path": "/metadata/uid", "value": "{{uid %s}}" % path}, {"op": "add", "path": pointer, "value": value}],
            [{"op": "remove", "path": "/metadata/finalizers/0"}],
            [{"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/c"}],
            [{"op": "copy", "from": "/metadata/labels/nothing", "path": "/metadata/labels/copied"}],
            [{"op": "copy", "from": pointer, "path": "/metadata/labels/copied"}],
            [{"op": "move", "from": "/metadata/labels/nothing", "path": "/metadata/labels/moved"}],
            [{"op": "remove", "path": "/metadata/finalizers/-1"}], [{"op": "add", "path": "/metadata/finalizers/-2", "value": "example.com/c"}],
            [{"op": "replace", "path": "/metadata/finalizers/+0", "value": "example.com/d"}], [{"op": "add", "path": pointer}],
            [{"op": "replace", "path": "/metadata/labels", "value": {"run": self.tag, "color": None}}],
            [{"op": "test", "path": pointer, "value": None}], [{"op": "replace", "path": "", "value": 5}], [{"op": 5}], [None], [{"path": "/a"}],
            [{"op": "jump", "path": "/a"}], [{"op": "add", "path": "/nowhere/at/all", "value": 1}],
            {"op": "add"}, [], [{"op": "replace", "path": "/kind", "value": "Other"}]))
        yield Step("", "PATCH", path, self.manager(), operations, PATCH)

    def strategic(self):
        kind = self.r.choice([k for k in KINDS if k.kind in ("Pod", "Node", "ConfigMap", "Secret", "Machine")])
        kind, _, _, _, path = self.one(kind)
        patch = {"metadata": {"labels": {"color": self.r.choice(("red", None))}}}
        sub = ""
        if kind.kind == "Node" and self.r.random() < 0.7:
            sub, patch = "/status", {"status": kind.status(self.r)}
            if self.r.random() < 0.3:
                patch["status"]["conditions"] = [{"$patch": "delete", "type": "Ready"}]
        elif kind.kind == "Pod":
            patch["spec"] = {"containers": [{"name": "main", "image": "image:3"}]}
        elif kind.kind == "ConfigMap":
            patch["data"] = self.r.choice(({"a": None}, {"$patch": "replace", "only": "this"}, {"n": "1"}))
        yield Step("", "PATCH", path + sub, {}, patch, STRATEGIC)

    def applied(self, kind, name):
        """What one manager of two wants of an object: overlapping, so that they meet."""
        manager = self.r.choice(MANAGERS)
        body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}}
        if self.r.random() < 0.7:
            body["metadata"]["labels"] = {k: self.r.choice(("1", "2")) for k in self.r.sample(("run", manager, "color"), 2)}
            body["metadata"]["labels"]["run"] = self.tag
        if self.r.random() < 0.3:
            body["metadata"]["finalizers"] = [f"example.com/{manager}"]
        if self.r.random() < 0.8 or kind.kind in ("Pod", "Node"):  # these are not checked for what they lack
            body.update(json.loads(json.dumps(kind.make(self.r)).replace("{ns}", self.namespaces[0])))
        if self.r.random() < 0.5:
            put_in(body, *kind.change(self.r))
        query = {"fieldManager": manager}
        if self.r.random() < 0.5:
            query["force"] = "true"
        return query, body

    def apply(self):
        kind, _, _, name, path = self.one(self.r.choice([k for k in KINDS if k.kind != "Event"]) if self.r.random() < 0.3 else None)
        if kind.kind == "Event":
            return
        if kind.status and self.r.random() < 0.5:
            query, body = self.applied(kind, name)
            body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}, "status": kind.status(self.r)}
            if self.r.random() < 0.1:
                del body["status"]
            yield Step("apply status", "PATCH", path + "/status", query, body, APPLY)
            return
        query, body = self.applied(kind, name)
        which = self.r.random()
        if which < 0.04:
            del query["fieldManager"]
        elif which < 0.08:
            body["kind"] = "Other"
        elif which < 0.12:
            body["metadata"]["managedFields"] = [{"manager": "x"}]
        elif which < 0.16:
            body["metadata"]["uid"] = self.r.choice(("00000000-0000-4000-8000-000000000000", "{{uid %s}}" % path))
        elif which < 0.20:
            body["metadata"]["resourceVersion"] = self.r.choice(("1", "{{rv %s}}" % path))
        elif which < 0.22:
            body["metadata"]["name"] = "other"
        elif which < 0.24:
            del body["apiVersion"]
        yield Step("", "PATCH", path, query, body, APPLY)

    def forget_owners(self):
        """managedFields that clients write themselves."""
        kind, _, _, _, path = self.one()
        entry = {"manager": "by-hand", "operation": "Update", "apiVersion": kind.api_version, "fieldsType": "FieldsV1",
                 "fieldsV1": {"f:metadata": {"f:labels": {"f:color": {}}}}}
        fields = self.r.choice(([{}], [{}], [], [entry], [dict(entry, operation="Other")], [dict(entry, fieldsType="")], None))
        sub = self.r.choice(("", "", "/status")) if kind.status else ""
        yield Step("", "PATCH", path + sub, {}, {"metadata": {"managedFields": fields}}, MERGE)

    def take_over(self):
        """kubectl: client-side apply first, then server-side."""
        kind, where, namespace, name, path = self.one()
        body = self.body(kind, namespace, name)
        body["metadata"].setdefault("annotations", {})["kubectl.kubernetes.io/last-applied-configuration"] = json.dumps(
            body, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n"
        body["metadata"].pop("finalizers", None)
        yield Step("client-side apply", "POST", where, {"fieldManager": "kubectl-client-side-apply"}, body)
        if kind.kind == "Event":
            return
        _, wanted = self.applied(kind, name)
        if self.r.random() < 0.5:
            wanted.update({k: v for k, v in body.items() if k == "spec"})
            put_in(wanted, *kind.change(self.r))
        yield Step("server-side apply", "PATCH", path, {"fieldManager": "kubectl"}, wanted, APPLY)

    def owner_reference(self):
        kind, _, _, name, path = self.one()
        owner = "{{uid %s}}" % self.one(kind)[4]
        reference = {"apiVersion": kind.api_version, "kind": kind.kind, "name": "y", "uid": owner}
        if self.r.random() < 0.5:
            reference["controller"] = self.r.choice((True, False))
        body = {"metadata": {"ownerReferences": self.r.choice(([reference], [reference], [], None, [dict(reference, name="")],
                                                              [dict(reference, extra=1)]))}}
        if self.r.random() < 0.4 and "." in kind.group and isinstance(body["metadata"]["ownerReferences"], list):
            body["metadata"]["ownerReferences"] = [reference]
            body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name, **body["metadata"]}}
            yield Step("own by apply", "PATCH", path, {"fieldManager": self.r.choice(MANAGERS), "dryRun": "All"}, body, APPLY)
        else:
            yield Step("", "PATCH", path, {"dryRun": "All"}, body, MERGE)  # the embedded server collects garbage

    def scale(self):
        _, _, _, name, path = self.one(BY_PLURAL[self.r.choice(("machinedeployments", "kubeadmcontrolplanes"))])
        body = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": name}, "spec": {"replicas": 10 + self.scaled}}
        self.scaled += 1  # always another: a real server turns no change into two owners of one name
        yield self.r.choice((
            Step("", "GET", path + "/scale"), Step("", "PATCH", path + "/scale", self.manager(), {"spec": body["spec"]}, MERGE),
            Step("", "PATCH", path + "/scale", self.manager(), {"spec": {"replicas": -1}}, MERGE),
            Step("", "PATCH", path + "/scale", {}, {"metadata": {"resourceVersion": "1"}, "spec": body["spec"]}, MERGE),
            Step("", "PUT", path + "/scale", self.manager(), body),
            Step("", "PUT", path + "/scale", {}, dict(body, metadata={"name": "other"}))))
        yield Step("scaled", "GET", path)

    def odd_metadata(self):
        kind, _, _, name, path = self.one()
        odd = self.r.choice(({"labels": {"color": None, "size": ""}}, {"labels": 5}, {"unknown": 1}, {"annotations": {"a": None}},
                             {"generation": 0}, {"deletionTimestamp": OLD}, {"deletionGracePeriodSeconds": 5}, {"creationTimestamp": None},
                             {"resourceVersion": "x"}, {"resourceVersion": "0"}, {"name": ""}, {"finalizers": [None]}))
        query = self.r.choice(({}, {"fieldValidation": "Strict"}))
        if self.r.random() < 0.3 and "." in kind.group and not any(key.startswith("deletion") for key in odd):
            body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": dict({"name": name}, **odd)}
            yield Step("odd apply", "PATCH", path, {"fieldManager": "alpha", "force": "true"}, body, APPLY)
        elif self.r.random() < 0.5:
            yield Step("", "PATCH", path, query, [{"op": "add", "path": "/metadata/" + key, "value": value} for key, value in odd.items()], PATCH)
        else:
            yield Step("", "PATCH", path, query, {"metadata": odd}, MERGE)
        yield Step("after", "GET", path)

    def odd_options(self):
        kind, where, _, _, path = self.one()
        yield self.r.choice((
            Step("", "DELETE", path, {}, b"5"), Step("", "DELETE", path, {}, {"kind": "Other"}), Step("", "DELETE", path, {}, {"gracePeriodSeconds": "x"}),
            Step("", "GET", path, {"resourceVersion": "x"}), Step("", "GET", where, {"watch": "1", "resourceVersion": "x"}),
            Step("", "HEAD", where), Step("", "POST", path, {}, {}), Step("", "PUT", where, {}, {}), Step("", "PATCH", where, {}, {}, MERGE)))

    def write_status(self):
        kind = self.kind(status=True)
        kind, _, namespace, name, path = self.one(kind)
        status = kind.status(self.r)
        which = self.r.random()
        if which < 0.5:
            patch = {"status": status}
            if self.r.random() < 0.3:
                put_in(patch, *kind.change(self.r))
                put_in(patch, ["metadata", "labels", "dropped"], "yes")
            yield Step("patch status", "PATCH", path + "/status", self.manager(), patch, MERGE)
        elif which < 0.7:
            def edit(obj):
                obj["status"] = status
                put_in(obj, ["metadata", "labels", "dropped"], "yes")
            yield Step("put status", "PUT", path + "/status", self.manager(), self.body(kind, namespace, name), edit=edit)
        elif which < 0.8:
            yield Step("status on main", "PATCH", path, self.manager(), {"status": status}, MERGE)
        elif which < 0.9 and status.get("conditions"):
            yield Step("json patch status", "PATCH", path + "/status", {}, [
                {"op": "replace", "path": "/status/conditions/0/status", "value": "False"}], PATCH)
        elif "." in kind.group:  # built-in kinds are not checked
            bad = copy.deepcopy(status)
            if bad.get("conditions"):
                bad["conditions"][0].pop(self.r.choice(("status", "type")))
            yield Step("bad status", "PATCH", path + "/status", {}, {"status": bad}, MERGE)

    def delete(self):
        kind, _, _, _, path = self.one()
        options = self.r.choice((None, None, {}, {"gracePeriodSeconds": 0}, {"propagationPolicy": "Background"},
                                 {"kind": "DeleteOptions", "apiVersion": "v1"}, {"propagationPolicy": "Sometimes"}))
        yield Step("", "DELETE", path, {}, options)

    def precondition(self):
        kind, _, _, _, path = self.one()
        wrong = "00000000-0000-4000-8000-000000000000"
        options = self.r.choice(({"uid": wrong}, {"uid": "{{uid %s}}" % path}, {"resourceVersion": "1"},
                                 {"resourceVersion": "{{rv %s}}" % path}))
        yield Step("", "DELETE", path, {}, {"preconditions": options})

    def finalizer(self):
        kind, _, _, _, path = self.one()
        yield Step("", "PATCH", path, {}, {"metadata": {"finalizers": self.r.choice((
            None, [], ["example.com/a"], ["example.com/a", "example.com/b"], ["bad"], ["example.com/new"]))}}, MERGE)

    def generate(self):
        kind, where, namespace, _, _ = self.one()
        body = self.body(kind, namespace)
        self.generated += 1  # in front, so that lists of both have them in the same order
        body["metadata"]["generateName"] = f"{self.generated:02}" + self.r.choice(("gen-", "gen", "long-" * 12, "Bad_"))
        yield Step("", "POST", where, {}, body, generated=self.generated)
        yield Step("", "GET", where + "/{{name %d}}" % self.generated)

    def collection(self):
        kind = self.kind()
        where, _ = self.place(kind)
        selector = {"labelSelector": f"run={self.tag}," + self.r.choice(("color=red", "color", "size"))}
        yield Step("", "DELETE", where, selector)
        yield Step("after", "GET", where, {"labelSelector": f"run={self.tag}"})

    def watch(self):
        """List, a few writes, then what a watch since that list tells."""
        kind, where, namespace, _, _ = self.one()
        name = self.name(kind)
        query = {"labelSelector": f"run={self.tag}" + self.r.choice(("", ",color=red"))}
        yield Step("watch: create", "POST", where, {}, self.body(kind, namespace, name))
        yield Step("watch: get", "GET", f"{where}/{name}")
        for function in self.r.choices((self.create, self.merge, self.delete, self.finalizer), k=4):
            yield from function()
        for color in ("red", "blue"):
            yield Step("watch: label", "PATCH", f"{where}/{name}", {}, {"metadata": {"labels": {"color": color}}}, MERGE)
        yield Step("watch: delete", "DELETE", f"{where}/{name}")
        yield Step("watch", "GET", where, dict(query, watch="true", timeoutSeconds="1", resourceVersion="{{rv %s/%s}}" % (where, name)), watch=True)
        if self.r.random() < 0.5:
            more = self.r.choice(({}, {"resourceVersion": "0"}, {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan",
                                                                 "allowWatchBookmarks": "true"}))
            yield Step("watch all", "GET", where, dict(query, watch="true", timeoutSeconds="1", **more), watch=True)

    def malformed(self):
        kind, where, namespace, name, path = self.one()
        good = json.dumps(self.body(kind, namespace, name)).encode()
        yield self.r.choice((
            Step("", "POST", where, {}, good[:-3]), Step("", "POST", where, {}, b""), Step("", "POST", where, {}, b"[]"),
            Step("", "POST", where, {}, b"null"), Step("", "POST", where, {}, b'"text"'), Step("", "POST", where, {}, b"{}"),
            Step("", "POST", where, {}, b"\xff\xfe"), Step("", "POST", where, {}, good, "text/plain"),
            Step("", "POST", where, {}, good, "application/xml"), Step("", "PATCH", path, {}, b"{}", JSON),
            Step("", "PATCH", path, {}, b"{", MERGE), Step("", "PATCH", path, {}, b"[]", MERGE), Step("", "PATCH", path, {}, b"{}", PATCH),
            Step("", "PATCH", path, {}, b"[{", PATCH), Step("", "PATCH", path, {"fieldManager": "alpha"}, b"{", APPLY),
            Step("", "PATCH", path, {}, b"{}", "text/plain"), Step("", "PUT", path, {}, b"{"), Step("", "PUT", path, {}, b""),
            Step("", "DELETE", path, {}, b"{"), Step("", "GET", path, accept="text/html"),
            Step("", "GET", path, accept="application/json;as=Unknown;v=v1;g=meta.k8s.io"),
            Step("yaml", "POST", where, {}, good, "application/yaml"),
        ))

    def strange(self):
        kind, where, namespace, name, path = self.one()
        body = self.body(kind, namespace, name)
        yield self.r.choice((
            Step("", "GET", "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/nothings"), Step("", "GET", "/apis/nowhere.io/v1/things"),
            Step("", "GET", "/api/v2/pods"), Step("", "GET", "/nowhere"),
            # A custom kind's server takes this for a create.
            Step("", "POST" if "." not in kind.group else "GET", path, {}, body), Step("", "PUT", where, {}, body),
            Step("", "PATCH", where, {}, {}, MERGE), Step("", "GET", path + "/nothing"), Step("", "PATCH", path + "/nothing", {}, {}, MERGE),
            Step("", "DELETE", path + "/status"), Step("", "GET", "/api/v1/namespaces/absent/pods"),
            Step("", "POST", f"/api/v1/namespaces/{self.tag}-absent/configmaps", {}, {
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}),
            Step("", "POST", where, {}, dict(body, kind="Other")), Step("", "POST", where, {}, dict(body, apiVersion="other/v1")),
            Step("", "PUT", path, {}, dict(body, kind="Other")), Step("", "GET", "/apis/cluster.x-k8s.io/v1beta2/machines/x"),
            Step("", "HEAD", path), Step("", "OPTIONS", path)))

    def invalid(self):
        kind, where, namespace, _, path = self.one()
        body = self.body(kind, namespace, "bad")
        meta = body["metadata"]
        which = self.r.randint(4 if kind.kind == "Event" else 0, 12)  # an Event's name may be anything
        if which < 4:
            meta["name"] = ("Upper", "a_b", "x" * 260, "-a")[which]
        elif which == 4:
            del meta["name"]
        elif which == 5:
            meta["labels"]["bad key!"] = "x"
        elif which == 6:
            meta["labels"]["color"] = "not a value"
        elif which == 7:
            meta["namespace"] = "elsewhere"
        elif which == 8:
            meta["resourceVersion"] = "5"
        elif which == 9:
            meta["finalizers"] = ["nodomain"]
        elif which == 10:
            meta["labels"] = "text"
        elif which == 11:
            meta["annotations"] = {"a": 1}
        else:
            meta["ownerReferences"] = [{"apiVersion": "v1", "kind": "Namespace", "name": "default"}]
        yield Step("", "POST", where, {}, body)
        custom = self.r.choice([k for k in KINDS if "." in k.group and k.status])
        wrong = self.body(custom, self.namespaces[0], "wrong")
        change = self.r.choice(("spec", "type", "unknown", "empty", "number"))
        if change == "spec":
            wrong.pop("spec")
        elif change == "type":
            wrong["spec"] = "text"
        elif change == "unknown":
            wrong["spec"]["neverHeardOf"] = {"a": 1}
            wrong["outside"] = 1
        elif change == "empty":
            wrong["spec"]["clusterName"] = ""
        else:
            wrong["spec"]["replicas"] = self.r.choice((-1, "three", 1.5))
        query = self.r.choice(({}, {"fieldValidation": "Strict"}, {"fieldValidation": "Ignore"}, {"fieldValidation": "Maybe"}))
        yield Step("wrong object", "POST", custom.collection(self.namespaces[0]), query, wrong)
        yield Step("and away", "DELETE", custom.collection(self.namespaces[0]) + "/wrong")

    def dry_run(self):
        kind, where, namespace, name, path = self.one()
        dry = {"dryRun": self.r.choice(("All", "All", "All", "Some"))}
        change = {}
        put_in(change, *kind.change(self.r))
        yield self.r.choice((
            Step("", "POST", where, dry, self.body(kind, namespace, name)), Step("", "PATCH", path, dry, change, MERGE),
            Step("", "DELETE", path, dry), Step("", "DELETE", path, {}, {"dryRun": ["All"], "propagationPolicy": self.r.choice(("Foreground", "Orphan"))}),
            Step("", "PATCH", path, dict(self.applied(kind, name)[0], **dry), self.applied(kind, name)[1],
                 APPLY if kind.kind != "Event" else MERGE)))
        yield Step("after", "GET", path)

    def namespace(self):
        name = f"{self.tag}-{self.r.choice('cd')}"
        path = "/api/v1/namespaces/" + name
        yield self.r.choice((
            Step("", "POST", "/api/v1/namespaces", {}, {"apiVersion": "v1", "kind": "Namespace", "metadata": {
                "name": name, "labels": {"run": self.tag}}}),
            Step("", "GET", path), Step("", "PATCH", path, {}, {"metadata": {"labels": {"x": self.r.choice(("1", None))}}}, MERGE),
            Step("", "PATCH", path, {}, {"metadata": {"labels": {"kubernetes.io/metadata.name": "other"}}}, MERGE),
            Step("", "GET", "/api/v1/namespaces", {"labelSelector": f"run={self.tag}"}),
            Step("", "DELETE", "/api/v1/namespaces/kube-system"), Step("", "DELETE", "/api/v1/namespaces/default", {"dryRun": "All"}),
            Step("", "POST", "/api/v1/namespaces", {}, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "Bad"}})))

    def namespace_deletion(self):
        """Last: a bare kube-apiserver never finishes one, the embedded server does."""
        yield Step("namespace held", "POST", f"/api/v1/namespaces/{self.namespaces[1]}/configmaps", {}, {
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held", "finalizers": ["example.com/held"]}})
        yield Step("namespace deletion", "DELETE", f"/api/v1/namespaces/{self.namespaces[1]}")
        yield Step("in a namespace that ends", "POST", f"/api/v1/namespaces/{self.namespaces[1]}/configmaps", {}, {
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "late"}})


# --- comparing -----------------------------------------------------------------------------------------


def is_status(body):
    return isinstance(body, dict) and body.get("kind") == "Status"


def differences(left, right, path=""):
    """The places where two values differ, as (path, left, right)."""
    if isinstance(left, dict) and isinstance(right, dict):
        out = []
        for key in sorted({*left, *right}):
            if key not in left or key not in right:
                out.append((f"{path}.{key}", left.get(key, "(absent)"), right.get(key, "(absent)")))
            else:
                out += differences(left[key], right[key], f"{path}.{key}")
        return out
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        return [d for i, (a, b) in enumerate(zip(left, right)) for d in differences(a, b, f"{path}[{i}]")]
    return [] if left == right else [(path, left, right)]


def of_cache(answer):
    """Is it how a real server on etcd 3.4 refuses a watch from its cache?"""
    events = answer.body
    return isinstance(events, list) and len(events) > 0 and events[-1][0] == "ERROR" and (
        events[-1][1].get("code") == 504 or "RequestWatchProgress" in events[-1][1].get("message", ""))


# Differences that are accepted: which places of which answers, no more than that. What they are and why they are accepted is
# written once, under the same name, in docs/internals/apiserver.md.
KNOWN = {
    "watches from a cache": lambda step, left, right, path, *_: step.watch and of_cache(left),
    "lists from a cache": lambda step, left, right, path, *_: (
        step.method == "GET" and step.query.get("resourceVersion") == "0" and left.code == right.code == 200 and
        path.startswith(".body.items")),
    "wording": lambda step, left, right, path, *_: (
        is_status(left.body) and is_status(right.body) and path.startswith((".body.message", ".body.details"))),
}
PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/internals/apiserver.md")


def known_texts():
    """name -> text of the known differences, from the page; the two must have the same names."""
    with open(PAGE, encoding="utf-8") as page:
        texts = {name: " ".join(text.split()) for name, text in re.findall(r"^- \*\*(.+?)\*\*: (.*?)(?=^- |^$)", page.read(), re.M | re.S)}
    if set(texts) != set(KNOWN):
        sys.exit(f"differential.py: {sorted(set(texts) ^ set(KNOWN))}: known differences must be in KNOWN and in {os.path.relpath(PAGE)}")
    return texts


def compare(step, left, right):
    """(differences that are not known, names of known ones that were met)."""
    found = differences({"code": left.code, "body": left.body}, {"code": right.code, "body": right.body})
    met, left_over = set(), []
    for difference in found:
        known = next((name for name, covers in KNOWN.items() if covers(step, left, right, *difference)), None)
        if known:
            met.add(known)
        else:
            left_over.append(difference)
    return left_over, met


def short(value):
    text = json.dumps(value, sort_keys=True, ensure_ascii=False) if not isinstance(value, str) else value
    return text if len(text) < 400 else text[:400] + " ..."


def run_seed(seed, count, clients, options, totals):
    sides = [Side(name, client) for name, client in clients]
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for number, step in enumerate(Generator(seed).steps(count)):
            # Both run the same edit, one after the other knows nothing of the first.
            left, right = pool.map(lambda side, s=step: side.send(s), sides)
            totals["calls"] += 1
            totals[f"code {left.code}"] += 1
            left_over, met = compare(step, left, right)
            for name in met:
                totals["known " + name] += 1
            totals["wording"] += "wording" in met
            totals["known"] += bool(met - {"wording"})
            if options.verbose:
                print(f"{seed}.{number} {step.what}: {step.method} {step.url()}: {left.code}", flush=True)
            if not left_over:
                continue
            bad += 1
            print(f"seed {seed} step {number} ({step.what}): {step.method} {step.url()} {step.content_type}")
            print(f"  sent {short(left.sent)}")
            for where, ours, theirs in left_over[:8]:
                print(f"  {where or '.'}\n    {sides[0].name}: {short(ours)}\n    {sides[1].name}: {short(theirs)}")
            if left.code != right.code or is_status(left.body) != is_status(right.body):
                print(f"  answers: {left.code} {short(left.body)}\n           {right.code} {short(right.body)}")
            sys.stdout.flush()
            if bad >= options.max:
                print(f"seed {seed}: {bad} differences, given up")
                break
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10, help="how many sequences")
    parser.add_argument("--seed", type=int, default=1, help="the first of them")
    parser.add_argument("--calls", type=int, default=200, help="calls in a sequence")
    parser.add_argument("--self", action="store_true", help="two real servers: shows that the comparison is sound")
    parser.add_argument("--max", type=int, default=20, help="differences after which a sequence is given up")
    parser.add_argument("--known", action="store_true", help="print the known differences and stop")
    parser.add_argument("--wording", action="store_true", help="differences in wording count, too")
    parser.add_argument("--keep", action="store_true", help="keep the folder with logs")
    parser.add_argument("-v", "--verbose", action="store_true", help="name every call")
    options = parser.parse_args()
    texts = known_texts()
    if options.wording:
        del KNOWN["wording"]
    if options.known:
        print("\n".join(f"{name}: {text}" for name, text in texts.items()))
        return 0
    rig = Rig(workloads=1 if options.self else 0, keep=options.keep, api="real")
    totals = Counter()
    bad = 0
    try:
        if options.self:
            other = rig.workloads[0]
            rig.apply_crds(other)
        else:
            other = EmbeddedServer(rig, "embedded").ready()
        clients = [("real", rig.api), ("real too" if options.self else "ours", other.admin)]
        for seed in range(options.seed, options.seed + options.seeds):
            bad += run_seed(seed, options.calls, clients, options, totals)
    finally:
        rig.close()
    for key in sorted(k for k in totals if k.startswith(("code ", "known "))):
        print(f"{totals[key]:6} {key}")
    print(f"differential: {totals['calls']} calls, {totals['wording']} worded differently, {totals['known']} known differences, {bad} differences")
    return 1 if bad else 0


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(main())
