"""A small JSON client for a Kubernetes API server, with watches."""

import http.client
import json
import queue
import socket
import ssl
import threading
import time
from urllib.parse import quote, urlencode, urlsplit

GROUPS = {
    "clusters": "apis/cluster.x-k8s.io/v1beta2",
    "machines": "apis/cluster.x-k8s.io/v1beta2",
    "machinesets": "apis/cluster.x-k8s.io/v1beta2",
    "machinedeployments": "apis/cluster.x-k8s.io/v1beta2",
    "machinehealthchecks": "apis/cluster.x-k8s.io/v1beta2",
    "machinepools": "apis/cluster.x-k8s.io/v1beta2",
    "kubeadmcontrolplanes": "apis/controlplane.cluster.x-k8s.io/v1beta2",
    "kubeadmconfigs": "apis/bootstrap.cluster.x-k8s.io/v1beta2",
    "devclusters": "apis/infrastructure.cluster.x-k8s.io/v1beta2",
    "devmachines": "apis/infrastructure.cluster.x-k8s.io/v1beta2",
    "devmachinetemplates": "apis/infrastructure.cluster.x-k8s.io/v1beta2",
    "leases": "apis/coordination.k8s.io/v1",
    "clusterroles": "apis/rbac.authorization.k8s.io/v1",
    "clusterrolebindings": "apis/rbac.authorization.k8s.io/v1",
    "roles": "apis/rbac.authorization.k8s.io/v1",
    "rolebindings": "apis/rbac.authorization.k8s.io/v1",
    "customresourcedefinitions": "apis/apiextensions.k8s.io/v1",
    "deployments": "apis/apps/v1",
}


class ApiError(AssertionError):
    def __init__(self, method, path, code, body):
        self.code = code
        self.body = body
        self.reason = body.get("reason") if isinstance(body, dict) else None
        message = body.get("message") if isinstance(body, dict) else str(body)[:300]
        super().__init__(f"{method} {path}: {code} {message}")


class Client:
    """One server, one credential. A connection per thread; a broken one is opened anew once."""

    def __init__(self, server, ca_file, token=None, cert=None, timeout=30):
        parts = urlsplit(server)
        self.server = server
        self.host, self.port, self.prefix = parts.hostname, parts.port, parts.path.rstrip("/")
        self.token = token
        self.timeout = timeout
        self.context = ssl.create_default_context(cafile=ca_file) if parts.scheme == "https" else None
        if cert:
            self.context.load_cert_chain(*cert)
        self.local = threading.local()

    def _connect(self, timeout=None):
        if self.context:
            connection = http.client.HTTPSConnection(self.host, self.port, context=self.context,
                                                     timeout=timeout or self.timeout)
        else:
            connection = http.client.HTTPConnection(self.host, self.port, timeout=timeout or self.timeout)
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def _headers(self, content_type=None):
        headers = {"User-Agent": "plimsoll-e2e/1", "Accept": "application/json"}
        if self.token:
            headers["Authorization"] = "Bearer " + self.token
        if content_type:
            headers["Content-Type"] = content_type
        return headers

    def raw(self, method, path, body=None, content_type="application/json"):
        """(status, headers, bytes) of one request."""
        data = None if body is None else (body if isinstance(body, bytes) else json.dumps(body).encode())
        for attempt in (1, 2):
            connection = getattr(self.local, "connection", None)
            fresh = connection is None
            try:
                if fresh:
                    connection = self.local.connection = self._connect()
                connection.request(method, self.prefix + path, body=data,
                                   headers=self._headers(content_type if data is not None else None))
                answer = connection.getresponse()
                return answer.status, answer.headers, answer.read()
            except (OSError, http.client.HTTPException):
                if connection is not None:
                    connection.close()
                self.local.connection = None
                if fresh or attempt == 2:
                    raise
        raise AssertionError("not reached")

    def request(self, method, path, body=None, content_type="application/json"):
        code, headers, data = self.raw(method, path, body, content_type)
        if "json" in headers.get("Content-Type", ""):
            answer = json.loads(data)
        else:
            answer = data.decode(errors="replace")
        if code >= 400:
            raise ApiError(method, path, code, answer)
        return answer

    @staticmethod
    def path(resource, namespace=None, name=None, sub=None, **query):
        base = "/" + GROUPS.get(resource, "api/v1")
        if namespace:
            base += "/namespaces/" + namespace
        base += "/" + resource
        if name:
            base += "/" + quote(name)
        if sub:
            base += "/" + sub
        if query:
            base += "?" + urlencode(query)
        return base

    def get(self, resource, namespace, name):
        return self.request("GET", self.path(resource, namespace, name))

    def find(self, resource, namespace, name):
        try:
            return self.get(resource, namespace, name)
        except ApiError as error:
            if error.code == 404:
                return None
            raise

    def list(self, resource, namespace=None, **query):
        return self.request("GET", self.path(resource, namespace, **query))["items"]

    def create(self, resource, body, namespace=None, status=True):
        """POST, then the status, which a create drops."""
        namespace = namespace or body["metadata"].get("namespace")
        made = self.request("POST", self.path(resource, namespace), body)
        if status and body.get("status"):
            made = self.patch(resource, namespace, body["metadata"]["name"],
                              {"status": body["status"]}, sub="status")
        return made

    def patch(self, resource, namespace, name, body, sub=None, kind="merge"):
        types = {"merge": "application/merge-patch+json", "json": "application/json-patch+json",
                 "strategic": "application/strategic-merge-patch+json"}
        return self.request("PATCH", self.path(resource, namespace, name, sub), body, types[kind])

    def apply(self, resource, namespace, name, body, manager, sub=None):
        return self.request("PATCH", self.path(resource, namespace, name, sub, fieldManager=manager, force="true"),
                            body, "application/apply-patch+yaml")

    def replace(self, resource, namespace, name, body, sub=None):
        return self.request("PUT", self.path(resource, namespace, name, sub), body)

    def delete(self, resource, namespace, name, **options):
        try:
            return self.request("DELETE", self.path(resource, namespace, name), options or None)
        except ApiError as error:
            if error.code == 404:
                return None
            raise

    def watch(self, resource, namespace=None, **query):
        return Watch(self, resource, namespace, query)


class Watch:
    """Events of one collection as (wall-clock time of arrival, type, object), from now on."""

    def __init__(self, client, resource, namespace, query):
        listed = client.request("GET", client.path(resource, namespace, **query))
        self.events = queue.Queue()
        self.connection = client._connect(timeout=3600)
        query = dict(query, watch="true", resourceVersion=listed["metadata"]["resourceVersion"],
                     timeoutSeconds="3500")
        self.connection.request("GET", client.prefix + client.path(resource, namespace, **query),
                                headers=client._headers())
        self.answer = self.connection.getresponse()
        if self.answer.status != 200:
            raise ApiError("WATCH", resource, self.answer.status, self.answer.read().decode())
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        try:
            for line in self.answer:
                now = time.time()
                event = json.loads(line)
                self.events.put((now, event["type"], event["object"]))
        except (OSError, ValueError, http.client.HTTPException, AttributeError):
            pass
        self.events.put((time.time(), "END", None))

    def until(self, wanted, timeout):
        """The first event for which wanted(type, object) holds; None when the time is over."""
        deadline = time.monotonic() + timeout
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            try:
                at, kind, obj = self.events.get(timeout=left)
            except queue.Empty:
                return None
            if kind == "END":
                return None
            if wanted(kind, obj):
                return at, kind, obj

    def drain(self):
        out = []
        while True:
            try:
                out.append(self.events.get_nowait())
            except queue.Empty:
                return out

    def close(self):
        try:
            if self.connection.sock:
                self.connection.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.connection.close()
