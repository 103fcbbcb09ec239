"""The stand-in that plays many workload API servers (tests/e2e/workloads)."""

import json
import urllib.request

from . import pki
from .proc import free_port, wait_for
from .servers import kubeconfig


class StandIn:
    """Cluster n has Nodes c<n>-node-<i> and lives at <url>/c/<n>."""

    def __init__(self, rig, name="workloads", clusters=10, machines=3, watchlist=True):
        self.port, self.admin_port = free_port(), free_port()
        self.url = f"https://127.0.0.1:{self.port}"
        self.ca_data = rig.ca.ca_data()
        client, client_key = rig.ca.issue("standin", "/O=system:masters/CN=kubernetes-admin")
        self.user = {"client_certificate_data": pki.pem_data(client), "client_key_data": pki.pem_data(client_key)}
        cert, key = rig.serving_cert
        self.process = rig.supervisor.run(name, [
            rig.bin["workloads"], "-listen", f"127.0.0.1:{self.port}", "-admin", f"127.0.0.1:{self.admin_port}",
            "-cert", cert, "-key", key, "-clusters", clusters, "-machines", machines,
            f"-watchlist={'true' if watchlist else 'false'}"])
        wait_for(f"{name} to listen", self.stats, 20)

    def kubeconfig(self, n, server=None):
        return kubeconfig(f"{server or self.url}/c/{n}", self.ca_data, **self.user)

    def set_pod(self, n, component="kube-scheduler", node=0, ready=True):
        """Changes a Pod; returns the wall-clock seconds just before its event went out."""
        url = f"http://127.0.0.1:{self.admin_port}/pod?cluster={n}&component={component}&node={node}&ready={str(ready).lower()}"
        with urllib.request.urlopen(url, b"", timeout=10) as answer:
            return json.loads(answer.read())["nanos"] / 1e9

    def stats(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin_port}/stats", timeout=5) as answer:
            return json.loads(answer.read())
