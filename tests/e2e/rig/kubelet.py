"""The stand-in for a cluster's kubelets (tests/e2e/kubelet), which carries port-forwards to real etcd members.

A real API server talks to `port`, the embedded one asks at the `door`; behind them everything is the same."""

import json
import urllib.request

from .proc import free_port, wait_for


class Kubelet:
    """One process that every Node names as its kubelet. Nodes are told where their etcd is, and their faults."""

    def __init__(self, rig, name="kubelet"):
        self.port, self.door, self.admin_port = free_port(), free_port(), free_port()
        self.nodes = {}
        self.process = rig.supervisor.run(name, [
            rig.bin["kubelet"], "-listen", f"127.0.0.1:{self.port}", "-door", f"127.0.0.1:{self.door}",
            "-admin", f"127.0.0.1:{self.admin_port}"])
        self._wait()

    def _wait(self):
        wait_for("the kubelet to listen", lambda: self.stats() is not None, 10)

    def _call(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin_port}{path}", data, timeout=5) as answer:
            return json.loads(answer.read() or b"null")

    def target(self, node, address):
        """The etcd of this Node listens there."""
        self.nodes[node] = {"target": address}
        self._call("/nodes", self.nodes)

    def fault(self, kind, *nodes, delay=0):
        """kind: "" (none), refuse, freeze, and for real API servers missing, hang; of these Nodes, or of all of them."""
        for node in nodes or self.nodes:
            self.nodes[node] = {"target": self.nodes[node]["target"], "fault": kind, "delay": delay}
        self._call("/nodes", self.nodes)

    def cut(self, node=""):
        """Resets the tunnels that are open now."""
        self._call(f"/cut?node={node}", {})

    def stats(self, node=None):
        """asked, opened, open, in, out and trips of one Node, or of all by name."""
        everything = self._call("/stats")
        if node is None:
            return everything
        return everything.get(node, {"asked": 0, "opened": 0, "open": 0, "in": 0, "out": 0, "trips": 0})

    def total(self, key):
        return sum(counts[key] for counts in self.stats().values())

    def kill(self):
        self.process.kill()

    def restart(self):
        self.process.start()
        self._wait()
        self._call("/nodes", self.nodes)
