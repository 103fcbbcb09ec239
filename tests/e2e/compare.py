#!/usr/bin/env python3
"""Cluster API's own KCP manager and plimsoll on the same servers, one after the other, in one table.

compare.py [--clusters 30] [--rounds 2] [--json]. External-etcd control planes, each with three
Machines; the workload API servers are a stand-in of ours (tests/e2e/workloads), the management side is a
real kube-apiserver. Each controller starts on a fleet that has none of its conditions. Both run with
the defaults of their flags.
"""

import argparse
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from rig import pki  # noqa: E402
from rig.controller import BINARY, Controller  # noqa: E402
from rig.fleet import Fleet, idle_cpu, percentile, table  # noqa: E402
from rig.proc import free_port  # noqa: E402
from rig.servers import E2E, Rig  # noqa: E402
from rig.standin import StandIn  # noqa: E402


class Manager:
    """Cluster API's kubeadm control plane manager."""

    def __init__(self, rig):
        s = rig.supervisor
        cert, key = rig.serving_cert
        for source, name in ((cert, "tls.crt"), (key, "tls.key")):
            with open(source, encoding="ascii") as f:
                s.write(f"webhook/{name}", f.read())
        self.health = free_port()
        self.process = s.run("capi-manager", [
            rig.bin["capi-manager"], "--kubeconfig", rig.management.kubeconfig_file(), "--leader-elect=false",
            "--webhook-port", free_port(), "--webhook-cert-dir", s.path("webhook"),
            "--diagnostics-address", f"127.0.0.1:{free_port()}", "--insecure-diagnostics",
            "--health-addr", f"127.0.0.1:{self.health}", "--skip-crd-migration-phases", "StorageVersionMigration,CleanupManagedFields"])

    def stop(self):
        return self.process.stop(30)


class Preparation:
    """What Cluster API's manager wants to find beside a Cluster, so that it has nothing to make or mend."""

    def __init__(self, rig):
        authority = pki.Authority(rig.supervisor.path("cluster-pki"), "kubernetes")
        client = authority.issue("etcd-client", "/CN=etcd-client")
        pair = {"tls.crt": pki.pem_data(authority.cert), "tls.key": pki.pem_data(authority.key)}
        account = pki.TokenSigner(rig.supervisor.path("cluster-sa"))
        self.secrets = {
            "ca": pair, "proxy": pair, "etcd": {"tls.crt": pair["tls.crt"]},
            "sa": {"tls.crt": pki.pem_data(account.public), "tls.key": pki.pem_data(account.key)},
            "apiserver-etcd-client": {"tls.crt": pki.pem_data(client[0]), "tls.key": pki.pem_data(client[1])},
        }

    def __call__(self, world):
        for purpose, data in self.secrets.items():
            world.api.create("secrets", {
                "apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret",
                "metadata": world.meta(f"{world.name}-{purpose}"), "data": data})
        world.api.create("devmachinetemplates", {
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "DevMachineTemplate",
            "metadata": world.meta(world.name), "spec": {"template": {"spec": {}}}})
        world.api.patch("kubeadmcontrolplanes", world.namespace, world.kcp_name, {"metadata": {"annotations": {
            "controlplane.cluster.x-k8s.io/skip-coredns": "", "controlplane.cluster.x-k8s.io/skip-kube-proxy": ""}}})


def measure(name, start, fleet, options, say):
    """Cold start, idle CPU, latency and memory of one controller on a fresh fleet."""
    say(f"{name}: making {options.clusters} clusters")
    fleet.grow(options.clusters)
    say(f"{name}: cold start")
    began = time.time()
    controller = start()
    seconds, done, total = fleet.wait_written(options.timeout, began, controller.process)
    out = {"cold_start_s": seconds, "written": done, "of": total, "cold_cpu_s": controller.process.cpu_seconds()}
    if done == 0:
        raise SystemExit(f"compare: {name} wrote nothing in {seconds:.0f} s:\n{controller.process.tail()}")
    time.sleep(options.rest)
    out["idle_cpu_percent"] = idle_cpu(controller.process, options.idle) * 100
    say(f"{name}: latency")
    taken, lost = fleet.latency_at_once(options.rounds, options.wait)
    # What was not seen in time counts as the time waited.
    bounded = taken + [options.wait] * lost
    out.update(samples=len(bounded), lost=lost, p50_ms=percentile(bounded, 0.5) * 1e3,
               p99_ms=percentile(bounded, 0.99) * 1e3, max_ms=max(bounded) * 1e3)
    out["rss_mib"] = controller.process.memory_kib() / 1024
    out["rss_peak_mib"] = controller.process.memory_kib("VmHWM") / 1024
    out["requests"] = fleet.standin.stats()["requests"]
    controller.stop()
    fleet.shrink(0)
    return out


def row(label, key, results, form):
    return label, {name: form(r) if key in r else "-" for name, r in results.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clusters", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=2, help="how often a Pod of every cluster changes")
    parser.add_argument("--idle", type=float, default=15, help="seconds to watch idle CPU")
    parser.add_argument("--rest", type=float, default=10, help="seconds of rest before that")
    parser.add_argument("--timeout", type=float, default=900, help="seconds for a cold start")
    parser.add_argument("--wait", type=float, default=120, help="seconds to wait for one condition")
    parser.add_argument("--only", choices=("plimsoll", "cluster-api"))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    if options.only != "cluster-api" and not os.access(BINARY, os.X_OK):
        print(f"compare: no program at {BINARY}: make build, or set PLIMSOLL", file=sys.stderr)
        return 2
    with open(os.path.join(E2E, "capi-manager", "go.mod"), encoding="ascii") as f:
        version = next(line.split()[-1] for line in f if line.startswith("require sigs.k8s.io/cluster-api "))
    say = (lambda text: None) if options.json else (lambda text: print(f"... {text}", file=sys.stderr, flush=True))
    need = ("workloads",) + (("capi-manager",) if options.only != "plimsoll" else ())
    # Cluster API's manager reads fields that our minimal CRDs do not name but keep.
    rig = Rig(workloads=0, keep=options.keep, need=need)
    results = {}
    try:
        prepare = Preparation(rig)
        ours = lambda: Controller(rig, "--mode", "status", "--all", "--profile", "cluster-api-1.12", wait=False)
        for name, start in ((f"Cluster API {version}", lambda: Manager(rig)), ("plimsoll", ours)):
            if options.only and not name.lower().replace(" ", "-").startswith(options.only):
                continue
            standin = StandIn(rig, f"workloads-{len(results)}", clusters=options.clusters)
            fleet = Fleet(rig, standin, namespace=f"fleet-{len(results)}", prepare=prepare)
            results[name] = measure(name, start, fleet, options, say)
            rig.supervisor.forget(standin.process)
    finally:
        rig.close()
    if options.json:
        print(json.dumps(results, indent=1))
        return 0
    def milliseconds(key):
        def form(r):
            if r[key] >= options.wait * 1e3:
                return f"> {options.wait:g} s"
            return f"{r[key]:.0f} ms" if r[key] < 10000 else f"{r[key] / 1000:.1f} s"
        return form
    print(table(f"{options.clusters} clusters, stand-in workload servers", [
        row("cold start to all conditions written", "cold_start_s", results,
            lambda r: f"{r['cold_start_s']:.1f} s" + ("" if r["written"] == r["of"] else f" ({r['written']} of {r['of']})")),
        row("  CPU time for it", "cold_cpu_s", results, lambda r: f"{r['cold_cpu_s']:.1f} s"),
        row("Pod changed -> KCP condition seen, p50", "p50_ms", results, milliseconds("p50_ms")),
        row("  p99", "p99_ms", results, milliseconds("p99_ms")),
        row("  max", "max_ms", results, milliseconds("max_ms")),
        row(f"  not within {options.wait:g} s", "lost", results, lambda r: f"{r['lost']} of {r['samples']}"),
        row("RSS", "rss_mib", results, lambda r: f"{r['rss_mib']:.1f} MiB"),
        row("  peak", "rss_peak_mib", results, lambda r: f"{r['rss_peak_mib']:.1f} MiB"),
        row("CPU when idle", "idle_cpu_percent", results, lambda r: f"{r['idle_cpu_percent']:.2f} %"),
    ], list(results)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
