"""`plimsoll run` as a child of the rig, and one-shot calls of the program."""

import os
import re
import ssl
import subprocess
import urllib.error
import urllib.request

from .proc import free_port, wait_for
from .servers import BINARY, SANITIZERS


def fetch(url, token=None, timeout=5):
    """(code, text) of a GET; certificates are not checked, the diagnostics server signs its own."""
    context = ssl._create_unverified_context() if url.startswith("https") else None
    request = urllib.request.Request(url, headers={"Authorization": "Bearer " + token} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=timeout, context=context) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(errors="replace")


def call(*args, timeout=60, env=None):
    """One run of the program to its end."""
    return subprocess.run([BINARY, *args], capture_output=True, text=True, timeout=timeout, check=False,
                          stdin=subprocess.DEVNULL, env=dict(os.environ, **(env or {})))


class Controller:
    """A running controller. Metrics are served plainly on loopback unless args say otherwise."""

    count = 0
    verbosity = 0  # -v of every controller that is started

    def __init__(self, rig, *args, kubeconfig=None, wait=True, insecure=True, env=None):
        Controller.count += 1
        self.rig = rig
        self.health_port, self.diagnostics_port = free_port(), free_port()
        self.insecure = insecure
        argv = [BINARY, "run", "--kubeconfig", kubeconfig or rig.management.kubeconfig_file(),
                "--health-addr", f"127.0.0.1:{self.health_port}",
                "--diagnostics-address", f"127.0.0.1:{self.diagnostics_port}"]
        if insecure:
            argv.append("--insecure-diagnostics")
        if Controller.verbosity:
            argv += ["-v", str(Controller.verbosity)]
        self.process = rig.supervisor.run(f"plimsoll-{Controller.count}", [*argv, *args], env={**SANITIZERS, **(env or {})})
        if wait:
            self.wait_ready()

    def wait_ready(self, timeout=30):
        def probe():
            if not self.process.running():
                raise RuntimeError(f"plimsoll ended with {self.process.popen.returncode}: {self.process.tail()}")
            return self.health("/readyz")[0] == 200
        wait_for("plimsoll to be ready", probe, timeout)
        return self

    def health(self, path):
        return fetch(f"http://127.0.0.1:{self.health_port}{path}")

    def metrics_text(self, token=None):
        scheme = "http" if self.insecure else "https"
        return fetch(f"{scheme}://127.0.0.1:{self.diagnostics_port}/metrics", token)

    def metric(self, name, /, **labels):
        """The sum over all series of this name with these labels; None if there is none."""
        code, text = self.metrics_text()
        if code != 200:
            raise AssertionError(f"/metrics: {code} {text[:200]}")
        total = None
        for line in text.splitlines():
            match = re.match(r"([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)", line)
            if not match or match.group(1) != name:
                continue
            have = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', match.group(2) or ""))
            if all(have.get(key) == value for key, value in labels.items()):
                total = (total or 0) + float(match.group(3))
        return total

    def stop(self, timeout=10):
        return self.process.stop(timeout)

    def kill(self):
        self.process.kill()

    def restart(self):
        """After kill or stop: the same command line again."""
        self.process.start()
        return self.wait_ready()
