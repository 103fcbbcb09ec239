"""A real etcd cluster as kubeadm makes one: a member per Node, TLS everywhere, client certificates asked for."""

import http.client
import json
import os
import secrets
import shutil
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request

from . import pki
from .proc import free_port, wait_for

SMALL_QUOTA = 100_000  # bytes; a few puts go beyond it


def common_port(hosts):
    """A port that is free on all of these addresses now."""
    for _ in range(50):
        port = free_port()
        try:
            for host in hosts:
                with socket.socket() as s:
                    s.bind((host, port))
            return port
        except OSError:
            continue
    raise RuntimeError("no port is free on all of " + ", ".join(hosts))


class Member:
    """One member: its addresses, certificate and process. The name is that of its Node."""

    def __init__(self, cluster, name, host="127.0.0.1", port=None):
        self.cluster, self.name, self.host = cluster, name, host
        self.port = port or free_port()
        self.peer_port, self.metrics_port = free_port(), free_port()
        self.peer_url = f"https://{host}:{self.peer_port}"
        self.process = None
        self.quota = 0
        self.learner = self.paused = False
        self.issue()

    @property
    def address(self):
        return f"{self.host}:{self.port}"

    def issue(self):
        """What kubeadm puts into etcd/server.crt; etcd reads it anew for every handshake, the CA only at start."""
        names = [f"DNS:{self.name}", "DNS:localhost", "IP:127.0.0.1", "IP:0:0:0:0:0:0:0:1"]
        if self.host != "127.0.0.1":
            names.append(f"IP:{self.host}")
        self.cert, self.key = self.cluster.ca.issue(self.name, f"/CN={self.name}", names, usage="serverAuth,clientAuth")

    def argv(self, state, peers):
        url = f"https://{self.address}"
        tls = []
        for prefix in ("", "peer-"):
            tls += [f"--{prefix}cert-file", self.cert, f"--{prefix}key-file", self.key,
                    f"--{prefix}trusted-ca-file", self.cluster.ca.cert, f"--{prefix}client-cert-auth"]
        return [self.cluster.binary, "--name", self.name, "--data-dir", self.cluster.path(self.name),
                "--listen-client-urls", url, "--advertise-client-urls", url,
                "--listen-peer-urls", self.peer_url, "--initial-advertise-peer-urls", self.peer_url,
                "--initial-cluster", ",".join(f"{name}={peer}" for name, peer in peers),
                "--initial-cluster-state", state, "--initial-cluster-token", self.cluster.token,
                "--listen-metrics-urls", f"http://127.0.0.1:{self.metrics_port}", "--unsafe-no-fsync",
                "--quota-backend-bytes", str(self.quota), "--logger", "zap", "--log-level", "warn", *tls]

    def start(self, state, peers):
        self.process = self.cluster.supervisor.run(f"etcd-{self.cluster.token}-{self.name}", self.argv(state, peers))

    def again(self):
        """A process that has ended is started anew, on its old data, with what holds for it now."""
        self.process.argv = self.argv("existing", [(self.name, self.peer_url)])
        self.process.start()

    def healthy(self):
        """What its own /health says: it serves, and there is a leader. An alarm makes it false."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/health", timeout=3) as answer:
                return json.loads(answer.read())["health"] == "true"
        except (urllib.error.URLError, OSError, ValueError, KeyError):
            return False


class Etcd:
    """The cluster. Whoever makes it says where members live: hosts by name, and one common port for all."""

    def __init__(self, rig, names, binary=None, hosts=None, rsa=False):
        self.rig, self.supervisor = rig, rig.supervisor
        self.binary = binary or rig.bin["etcd"]
        # Ids are hashes of peer addresses and token: a new token keeps worlds apart.
        self.token = secrets.token_hex(6)
        self.ca = self._authority(rsa)
        hosts = hosts or {}
        port = common_port(hosts.values()) if hosts else None
        self.members = {name: Member(self, name, hosts.get(name, "127.0.0.1"), port) for name in names}
        peers = [(m.name, m.peer_url) for m in self.members.values()]
        for member in self.members.values():
            member.start("new", peers)
        try:
            self.wait_healthy()
        except AssertionError:
            self.close()  # nobody else knows of these processes yet
            raise

    def _authority(self, rsa):
        made = pki.Authority(self.path("pki-" + secrets.token_hex(4)), "kubernetes", rsa=rsa)
        self.client = made.issue("client", "/CN=kube-apiserver-etcd-client/O=system:masters")
        return made

    def path(self, *parts):
        return self.supervisor.path("etcd-" + self.token, *parts)

    def __getitem__(self, name):
        return self.members[name]

    def wait_healthy(self, *names, timeout=20):
        for name in names or self.members:
            wait_for(f"etcd member {name} to be healthy", self.members[name].healthy, timeout)

    def close(self):
        for member in self.members.values():
            if member.process:
                self.supervisor.forget(member.process)

    # --- asking it

    def voters(self, but=None):
        """Members that run and can be asked; learners refuse nearly everything."""
        return [m.name for m in list(self.members.values())
                if m.process and m.process.running() and not m.paused and not m.learner and m.name != but]

    def ctl(self, *args, through=None, check=True, timeout=20):
        """etcdctl, through these members (default: all voters that run); its stdout."""
        names = through or self.voters()
        command = [self.rig.bin["etcdctl"], "--endpoints", ",".join(f"https://{self.members[n].address}" for n in names),
                   "--cacert", self.ca.cert, "--cert", self.client[0], "--key", self.client[1], *args]
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False,
                              env=dict(os.environ, ETCDCTL_API="3"))
        if check and done.returncode != 0:
            raise AssertionError(f"etcdctl {' '.join(args)}: {done.stderr.strip()}")
        return done.stdout

    def listed(self, through=None):
        """Members as (name, id, learner), in etcd's order."""
        answer = json.loads(self.ctl("member", "list", "-w", "json", through=through))
        return [(m.get("name", ""), m["ID"], bool(m.get("isLearner"))) for m in answer["members"]]

    def member_id(self, name, through=None):
        for have, number, _ in self.listed(through):
            if have == name:
                return number
        raise AssertionError(f"no member {name!r} in {self.listed(through)}")

    def leader(self, through=None):
        """The leader's name, as a member that runs sees it."""
        def probe():
            for name in through or self.voters():
                status = json.loads(self.ctl("endpoint", "status", "-w", "json", through=[name]))[0]["Status"]
                for have, number, _ in self.listed([name]):
                    if number == status.get("leader"):
                        return have
            return None
        return wait_for("etcd to have a leader", probe, 15)

    # --- changing it

    def _insist(self, *args, through=None, timeout=20):
        """A change that etcd refuses while links are younger than 5 s."""
        return wait_for(f"etcdctl {' '.join(args)}", lambda: self.ctl(*args, through=through) or True, timeout, every=0.5)

    def add_unstarted(self, name, learner=False):
        """MemberAdd alone: a member without a name, which counts for the quorum unless it is a learner."""
        member = Member(self, name)
        self._insist("member", "add", name, f"--peer-urls={member.peer_url}", *(["--learner"] if learner else []))
        member.learner = learner
        self.members[name] = member
        return member

    def add(self, name, learner=False):
        """As kubeadm joins: MemberAdd, then the process."""
        running = [(m.name, m.peer_url) for m in self.members.values()]
        member = self.add_unstarted(name, learner)
        member.start("existing", [*running, (name, member.peer_url)])
        wait_for(f"etcd member {name} to have its name", lambda: any(have == name for have, *_ in self.listed(self.voters(but=name))), 20)
        return member

    def promote(self, name):
        self._insist("member", "promote", f"{self.member_id(name):x}")
        self.members[name].learner = False

    def remove(self, name, number=None):
        """Behind everybody's back. A removed member ends by itself; its process is taken along."""
        others = self.voters(but=name)
        number = number or self.member_id(name, others)
        self._insist("member", "remove", f"{number:x}", through=others)
        self.abandon(name)

    def abandon(self, name):
        """Its machine is gone, and with it process and data; whether others still list it is not asked."""
        member = self.members.pop(name)
        if member.process:
            self.supervisor.forget(member.process)
        shutil.rmtree(self.path(name), ignore_errors=True)  # whoever joins under this name starts empty

    def unnamed(self):
        """The id of the member that has not started yet."""
        return self.member_id("")

    def move_leader(self, name):
        leader = self.leader()
        if leader != name:
            self.ctl("move-leader", f"{self.member_id(name):x}", through=[leader])
            wait_for(f"{name} to lead", lambda: self.leader() == name, 10)

    def pause(self, name):
        """SIGSTOP: TCP still connects, nothing else happens."""
        self.members[name].paused = True
        self.members[name].process.pause()

    def resume(self, name):
        self.members[name].paused = False
        self.members[name].process.resume()

    def kill(self, *names):
        for name in names:
            self.members[name].process.kill()

    def restart(self, *names):
        """Those that were killed come back, on their data."""
        for name in names:
            self.members[name].again()
        self.wait_healthy(*names)

    def rotate(self):
        """A new CA for everybody, and new certificates from it: old clients are strangers afterwards."""
        self.kill(*self.members)
        self.ca = self._authority(rsa=False)
        for member in self.members.values():
            member.issue()
            member.again()
        self.wait_healthy()

    # --- alarms

    def fill(self, name):
        """NOSPACE of this member alone, by a quota that real writes go beyond."""
        member = self.members[name]
        member.quota = SMALL_QUOTA
        member.process.kill()
        member.again()
        self.wait_healthy(name)
        through = self.voters(but=name)
        value = "x" * 40_000
        def full():
            self.ctl("put", f"fill-{time.monotonic_ns()}", value, through=through, check=False)
            return "NOSPACE" in self.alarms()
        wait_for(f"member {name} to be full", full, 20)

    def alarms(self):
        return self.ctl("alarm", "list")

    def raise_alarm(self, name, kind, number=None):
        """Alarm ACTIVATE, which etcdctl does not offer: by the gateway for JSON."""
        self._gateway("/v3/maintenance/alarm", {"action": "ACTIVATE", "alarm": kind,
                                                "memberID": str(number or self.member_id(name))})

    def clear_alarms(self):
        """Gives full members their room back and disarms whatever is set."""
        for member in self.members.values():
            if member.quota:
                member.quota = 0
                member.process.kill()
                member.again()
        wait_for("all alarms to be disarmed", lambda: self.ctl("alarm", "disarm", check=False) is not None
                 and not self.alarms().strip(), 20, every=0.3)
        self.wait_healthy(*self.voters())

    def _gateway(self, path, body):
        member = self.members[self.voters()[0]]
        context = ssl.create_default_context(cafile=self.ca.cert)
        context.load_cert_chain(*self.client)
        connection = http.client.HTTPSConnection(member.host, member.port, context=context, timeout=10)
        try:
            connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        if answer.status != 200:
            raise AssertionError(f"POST {path}: {answer.status} {text}")
        return json.loads(text)
