"""The servers: one etcd, a management API server, and workload API servers of the same binary.

API=embedded makes them the playground's own, on plain HTTP, with no etcd behind; API=mixed only the management server.
"""

import base64
import json
import os
import secrets
import signal
import subprocess
import urllib.error
import urllib.request

from . import pki
from .client import Client
from .proc import Supervisor, binaries, free_port, wait_for

E2E = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(os.path.dirname(E2E))
# One folder, or several joined by colons: Cluster API keeps its CRDs in three.
CRDS = (os.environ.get("CRD_DIR") or os.path.join(ROOT, "deploy", "crd")).split(":")
BINARY = os.environ.get("PLIMSOLL") or os.path.join(ROOT, "build", "plimsoll")
API = os.environ.get("API", "real")
# The embedded API server by itself (apiserver_main.c), built beside the program.
APISERVER = os.environ.get("APISERVER") or os.path.join(os.path.dirname(BINARY), "tests", "e2e_apiserver")
# A sanitizer's report must end the process with a code of its own.
SANITIZERS = {"ASAN_OPTIONS": "exitcode=97:detect_leaks=1", "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}


def kubeconfig(server, ca_data=None, namespace=None, **user):
    """The text of a kubeconfig (JSON is YAML). user: token=, tokenFile=, client_certificate_data= ..."""
    cluster = {"server": server}
    if ca_data:
        cluster["certificate-authority-data"] = ca_data
    context = {"cluster": "rig", "user": "rig"}
    if namespace:
        context["namespace"] = namespace
    return json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "rig",
        "clusters": [{"name": "rig", "cluster": cluster}],
        "contexts": [{"name": "rig", "context": context}],
        "users": [{"name": "rig", "user": {key.replace("_", "-"): value for key, value in user.items()}}],
    }, indent=1)


class Server:
    """What both kinds have: a process that answers at a URL, and an admin."""

    embedded = False

    def ready(self, timeout=90):
        def probe():
            if not self.process.running():
                raise RuntimeError(f"{self.name} ended:\n{self.process.tail()}")
            return self.admin.raw("GET", "/readyz")[0] == 200
        wait_for(f"{self.name} to be ready", probe, timeout, every=0.2)
        for namespace in ("default", "kube-system"):
            wait_for(f"namespace {namespace}", lambda n=namespace: self.admin.find("namespaces", None, n), 30)
        return self

    def restart(self, graceful=True):
        self.process.restart(stop=graceful)
        return self

    def ca_data(self):
        """Whom clients must trust, as a kubeconfig has it."""
        return self.rig.ca.ca_data()

    def kubeconfig_file(self, user="admin", server=None, name=None, namespace=None, **credential):
        return self.rig.supervisor.write(f"kubeconfig/{name or self.name + '-' + user}",
                                         self.kubeconfig_text(user, server, namespace, **credential))


class EmbeddedServer(Server):
    """The playground's server in a process of its own; its objects are in a file, and outlive it. One user: anybody."""

    embedded = True

    def __init__(self, rig, name, tokens=()):
        self.rig, self.name = rig, name
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.tokens = {user: secrets.token_hex(16) for user in ("admin", *tokens)}
        s = rig.supervisor
        os.makedirs(s.path(name), exist_ok=True)
        self.process = s.run(name, [APISERVER, "--listen", f"127.0.0.1:{self.port}", "--db", s.path(name, "objects.db")],
                             env=SANITIZERS)
        self.admin = Client(self.url, None)

    def compact(self):
        """All history is forgotten when this returns."""
        self.process.signal(signal.SIGUSR1)
        old = Client.path("namespaces", resourceVersion="1", resourceVersionMatch="Exact", limit="1")
        wait_for(f"{self.name} to compact", lambda: self.admin.raw("GET", old)[0] == 410, 10)

    def client(self, user):
        assert user in self.tokens, user
        return Client(self.url, None)

    def kubeconfig_text(self, user="admin", server=None, namespace=None, **credential):
        # Over plain HTTP nobody sends a credential; behind one of the rig's proxies it is not looked at.
        url = server or self.url
        credential = credential or {"token": self.tokens[user]}
        return kubeconfig(url, self.rig.ca.ca_data() if url.startswith("https") else None, namespace, **credential)


class GuardedServer(EmbeddedServer):
    """The embedded server as it is for others than this machine: TLS, with a certificate of its own, and a token."""

    def __init__(self, rig, name):
        self.rig, self.name = rig, name
        self.tokens = {"admin": secrets.token_hex(16)}
        self.process = rig.supervisor.run(name, [APISERVER, "--token", self.tokens["admin"]], env=SANITIZERS, separate_stdout=True)
        said = wait_for("its certificate", self._said, 10)
        self.port = int(said[0].rsplit(":", 1)[1])
        self.url = f"https://localhost:{self.port}"
        self.certificate = rig.supervisor.write(f"{name}.crt", "\n".join(said[1:]) + "\n")
        self.admin = Client(self.url, self.certificate, token=self.tokens["admin"])

    def _said(self):
        with open(self.process.out, encoding="ascii") as out:
            lines = out.read().splitlines()
        return lines if lines[-1:] == ["-----END CERTIFICATE-----"] else None

    def ca_data(self):
        return pki.pem_data(self.certificate)


class ApiServer(Server):
    """kube-apiserver with token users: admin (system:masters) and whatever else is asked for."""

    def __init__(self, rig, name, tokens=()):
        self.rig = rig
        self.name = name
        self.port = free_port()
        self.url = f"https://127.0.0.1:{self.port}"
        self.tokens = {"admin": secrets.token_hex(16)}
        lines = [f'{self.tokens["admin"]},admin,admin,"system:masters"']
        for user in tokens:
            self.tokens[user] = secrets.token_hex(16)
            lines.append(f"{self.tokens[user]},{user},{user}")
        s = rig.supervisor
        token_file = s.write(f"{name}/tokens.csv", "\n".join(lines) + "\n")
        self.signer = pki.TokenSigner(s.path(name))
        cert, key = rig.serving_cert
        self.process = s.run(name, [
            rig.bin["kube-apiserver"],
            f"--etcd-servers={rig.etcd_url}", f"--etcd-prefix=/{name}",
            "--bind-address=127.0.0.1", f"--secure-port={self.port}", "--advertise-address=127.0.0.1",
            f"--tls-cert-file={cert}", f"--tls-private-key-file={key}", f"--client-ca-file={rig.ca.cert}",
            f"--service-account-issuer={pki.TokenSigner.issuer}",
            f"--service-account-key-file={self.signer.public}",
            f"--service-account-signing-key-file={self.signer.key}",
            f"--token-auth-file={token_file}", "--authorization-mode=RBAC", "--anonymous-auth=true",
            "--disable-admission-plugins=ServiceAccount", "--endpoint-reconciler-type=none",
            "--service-cluster-ip-range=10.0.0.0/24", "--allow-privileged=true", "--profiling=false",
            f"--cert-dir={s.path(name)}", "--v=1",
        ], env={"GOMEMLIMIT": "700MiB"})
        self.admin = Client(self.url, rig.ca.cert, token=self.tokens["admin"])

    def client(self, user):
        return Client(self.url, self.rig.ca.cert, token=self.tokens[user])

    def kubeconfig_text(self, user="admin", server=None, namespace=None, **credential):
        credential = credential or {"token": self.tokens[user]}
        return kubeconfig(server or self.url, self.rig.ca.ca_data(), namespace, **credential)


class Proxy:
    """A TLS reverse proxy (tests/e2e/proxy) in front of a server, which can be told to misbehave."""

    def __init__(self, rig, name, upstream):
        self.port, self.admin_port = free_port(), free_port()
        self.url = f"https://127.0.0.1:{self.port}"
        cert, key = rig.serving_cert
        self.process = rig.supervisor.run(name, [
            rig.bin["proxy"], "-listen", f"127.0.0.1:{self.port}", "-admin", f"127.0.0.1:{self.admin_port}",
            "-upstream", upstream, "-ca", rig.ca.cert, "-cert", cert, "-key", key])
        wait_for(f"{name} to listen", lambda: self.stats() is not None, 10)

    def _call(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin_port}{path}", data, timeout=5) as answer:
            return json.loads(answer.read() or b"null")

    def set(self, connection="ok", rules=()):
        """connection: ok refuse reset hang freeze drip. rules: see proxy/main.go."""
        self._call("/set", {"connection": connection, "rules": list(rules)})

    def cut(self):
        """Resets all connections that are open now."""
        self._call("/cut", {})

    def reset(self):
        self._call("/reset", {})

    def stats(self):
        try:
            return self._call("/stats")
        except urllib.error.URLError:
            return None


class Rig:
    """etcd, the management server and as many workload servers as asked for, all ready."""

    def __init__(self, workloads=1, tokens=(), keep=False, quiet=False, need=(), api=API):
        assert api in ("real", "mixed", "embedded"), f"API={api}"
        real = () if api == "embedded" else ("kube-apiserver",)
        self.bin = binaries(*real, "kubectl", "etcd", "etcdctl", "proxy", *need)
        self.supervisor = Supervisor(keep)
        self.quiet = quiet
        self._guarded = None
        s = self.supervisor
        self.ca = pki.Authority(s.path("pki"))
        self.serving_cert = self.ca.issue("serving", "/CN=localhost", ("IP:127.0.0.1", "DNS:localhost"),
                                          usage="serverAuth")
        self.etcd = None if api == "embedded" else self._etcd()
        self.management = (ApiServer if api == "real" else EmbeddedServer)(self, "management", tokens)
        workload = EmbeddedServer if api == "embedded" else ApiServer
        self.workloads = [workload(self, f"workload-{i}") for i in range(workloads)]
        self.management.ready()
        for server in self.workloads:
            server.ready()
        self.api = self.management.admin
        if api == "real":
            self.apply_crds(self.management)

    def guarded(self):
        """A server with TLS that asks who one is: the management server, or an embedded one for the purpose."""
        if not self.management.embedded:
            return self.management
        self._guarded = self._guarded or GuardedServer(self, "guarded").ready()
        return self._guarded

    def _etcd(self):
        client, peer = free_port(), free_port()
        self.etcd_url = f"http://127.0.0.1:{client}"
        s = self.supervisor
        return s.run("etcd", [
            self.bin["etcd"], "--data-dir", s.path("etcd"), "--listen-client-urls", self.etcd_url,
            "--advertise-client-urls", self.etcd_url, "--listen-peer-urls", f"http://127.0.0.1:{peer}",
            "--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}",
            "--initial-cluster", f"default=http://127.0.0.1:{peer}", "--unsafe-no-fsync",
            "--quota-backend-bytes", str(4 << 30), "--logger", "zap", "--log-level", "warn"])

    def end(self):
        """Stops the embedded servers; what they think of their own memory is in the code. What is wrong, as texts."""
        servers = [s for s in (self.management, *self.workloads, self._guarded) if s and s.embedded]
        return [f"{s.name} ended with {code} after SIGTERM:\n{s.process.tail()}" for s in servers if (code := s.process.stop()) != 0]

    def close(self):
        self.supervisor.close()

    def etcdctl(self, *args):
        done = subprocess.run([self.bin["etcdctl"], "--endpoints", self.etcd_url, *args], capture_output=True,
                              text=True, env=dict(os.environ, ETCDCTL_API="3"), timeout=30, check=False)
        if done.returncode != 0:
            raise AssertionError(f"etcdctl {' '.join(args)}: {done.stderr}")
        return done.stdout

    def compact(self):
        """Drops all history up to now, as etcd does by itself every few minutes."""
        for server in (self.management, *self.workloads):
            if server.embedded:
                server.compact()
        if not self.etcd:
            return
        revision = json.loads(self.etcdctl("endpoint", "status", "-w", "json"))[0]["Status"]["header"]["revision"]
        self.etcdctl("compact", str(revision))

    def kubectl(self, *args, user="admin", stdin=None, check=True, timeout=60, server=None):
        """Runs kubectl against the management server, or another, and returns the finished process."""
        command = [self.bin["kubectl"], "--kubeconfig", (server or self.management).kubeconfig_file(user),
                   "--cache-dir", self.supervisor.path("kube-cache"), *args]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=timeout, check=False)
        if check and done.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(args)}: {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    def apply_crds(self, server):
        folders = [*CRDS, os.path.join(E2E, "crd")]
        files = [os.path.join(folder, f) for folder in folders for f in sorted(os.listdir(folder))
                 if f.endswith(".yaml") and not f.startswith("kustomiz")]
        self.kubectl("apply", "--server-side", *[a for f in files for a in ("-f", f)], server=server)
        self.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s", server=server)

    def service_account(self, namespace, name, role=None):
        """A ServiceAccount, bound to a ClusterRole if named; returns its uid."""
        made = self.api.find("serviceaccounts", namespace, name) or self.api.create(
            "serviceaccounts", {"apiVersion": "v1", "kind": "ServiceAccount",
                                "metadata": {"name": name, "namespace": namespace}})
        if role:
            self.bind(role, f"{name}-{role}", {"kind": "ServiceAccount", "name": name, "namespace": namespace})
        return made["metadata"]["uid"]

    def bind(self, role, binding, subject):
        body = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                "metadata": {"name": binding},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
                "subjects": [subject]}
        self.api.delete("clusterrolebindings", None, binding)
        self.api.create("clusterrolebindings", body)

    def bind_user(self, role, user):
        self.bind(role, f"{user}-{role}", {"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"})


def encode(text):
    return base64.b64encode(text.encode()).decode()
