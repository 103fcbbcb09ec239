#!/usr/bin/env python3
"""Measures what looking at etcd costs `plimsoll run`. bench_etcd.py [--observations 1000] [--clusters 40] [--json]

Real kube-apiservers, three real etcd members with TLS behind a stand-in kubelet. One cluster is not asked more
often than every two seconds, so many Clusters share these members: each has Machines for the same Nodes, a
connection and a tunnel of its own. A Node that changes has them all ask at once. What such a change costs by itself is
measured on as many Clusters with external etcd, and subtracted.
"""

import argparse
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from rig.controller import BINARY, Controller  # noqa: E402
from rig.etcd import Etcd  # noqa: E402
from rig.kubelet import Kubelet  # noqa: E402
from rig.proc import wait_for  # noqa: E402
from rig.servers import Rig  # noqa: E402
from rig.world import World  # noqa: E402

# What the project promises (issue 4): name, limit.
LIMITS = {"round_trips": 3, "cpu_us": 200}
SPACING = 2.2  # seconds; the controller leaves two between two looks


class Bench:
    def __init__(self, rig, clusters):
        self.rig, self.clusters, self.pokes = rig, clusters, 0
        self.inside = rig.workloads[0].admin
        self.kubelet = Kubelet(rig)
        # The first world makes Nodes and Pods; the others only refer to them.
        self.first = World(rig.api, "e0", rig.workloads[0], external_etcd=False, workers=0, bare=True, kubelet=self.kubelet)
        self.nodes = list(self.first.nodes.values())
        self.etcd = Etcd(rig, self.nodes)
        for node in self.nodes:
            self.kubelet.target(node, self.etcd[node].address)
        self.worlds = [self.first]
        self.grow("e", False)

    def grow(self, prefix, external):
        """Up to the number of Clusters asked for; returns the new ones."""
        text = self.rig.workloads[0].kubeconfig_text()
        def make(n):
            return World(self.rig.api, f"{prefix}{n}", namespace="default", external_etcd=external, workers=0, bare=True,
                         kubeconfig=text, nodes=self.nodes)
        with ThreadPoolExecutor(4) as pool:
            made = list(pool.map(make, range(0 if external else 1, self.clusters)))
        self.worlds += made
        for world in self.worlds:
            if not world.external_etcd:
                world.write_etcd_ca(self.etcd.ca)
        return made

    def poke(self):
        self.pokes += 1
        self.inside.patch("nodes", None, self.nodes[0], {"metadata": {"annotations": {"bench/poke": str(self.pokes)}}})

    def start(self, kind):
        """A controller that has judged every cluster once."""
        c = Controller(self.rig, "--mode", "status", "--all")
        wait_for("every condition", lambda: all(w.kcp_condition(kind) and w.kcp_condition(kind)["status"] == "True"
                                                for w in self.worlds), 120, every=0.5)
        time.sleep(SPACING)
        return c

    def steady(self, c, rounds):
        """(CPU microseconds, observations, round trips, tunnels opened) of this many changes of a Node."""
        def now():
            return (c.process.cpu_microseconds(), c.metric("plimsoll_etcd_observations_total") or 0,
                    self.kubelet.total("trips"), self.kubelet.total("opened"))
        before = now()
        for _ in range(rounds):
            self.poke()
            time.sleep(SPACING)
        return [b - a for a, b in zip(before, now())]


def stop(controller):
    if controller.stop() != 0:
        raise SystemExit("bench: the controller did not end in order")


def measure(bench, options, say):
    rounds = max(2, -(-options.observations // options.clusters))
    out = {"clusters": options.clusters}
    say(f"{rounds} rounds of {options.clusters} observations")
    c = bench.start("EtcdClusterHealthy")
    bench.steady(c, 2)
    out["rss_before_kib"] = c.process.memory_kib()
    cpu, observations, trips, opened = bench.steady(c, rounds)
    out["rss_after_kib"] = c.process.memory_kib()
    if observations < rounds * options.clusters * 0.9:
        raise SystemExit(f"bench: only {observations:.0f} observations in {rounds} rounds:\n{c.process.tail()}")
    out.update(observations=int(observations), round_trips=trips / observations, new_tunnels=opened,
               turn_ms=c.metric("plimsoll_loop_turn_seconds_max") * 1e3)

    stop(c)
    for world in bench.worlds[1:]:
        world.destroy()
    del bench.worlds[1:]

    # The longest turn is one since the start, and many clusters at once make a long one: here is only one.
    say("one cluster, one member stopped")
    c = bench.start("EtcdClusterHealthy")
    out["turn_one_ms"] = c.metric("plimsoll_loop_turn_seconds_max") * 1e3
    stopped = next(node for node, counts in bench.kubelet.stats().items() if counts["open"])
    bench.etcd.pause(stopped)
    bench.steady(c, 5)
    out["turn_stopped_ms"] = c.metric("plimsoll_loop_turn_seconds_max") * 1e3
    out["failures_stopped"] = c.metric("plimsoll_etcd_observation_failures_total") or 0
    bench.etcd.resume(stopped)
    stop(c)

    say("the same changes with external etcd")
    external = bench.grow("x", True)
    c = bench.start("ControlPlaneComponentsHealthy")
    rounds = max(5, rounds // 3)
    event_cpu, *_ = bench.steady(c, rounds)
    stop(c)
    out["event_us"] = event_cpu / (rounds * len(external))
    out["round_us"] = cpu / observations
    out["cpu_us"] = out["round_us"] - out["event_us"]
    return out


def show(out):
    def line(label, text, limit=None):
        print(f"  {label:<58} {text:>12}" + (f"   (limit {limit})" if limit else ""))
    print(f"plimsoll run, real kube-apiservers, 3 etcd members with TLS, stand-in kubelet, {os.cpu_count()} cores shared by all")
    line(f"CPU of one observation over a warm tunnel ({out['observations']} of them)", f"{out['cpu_us']:.0f} us", "200 us")
    line("  with the change of a Node that led to it", f"{out['round_us']:.0f} us")
    line("  such a change alone, external etcd", f"{out['event_us']:.0f} us")
    line("round trips of one observation", f"{out['round_trips']:.2f}", "3")
    line("tunnels opened meanwhile", f"{out['new_tunnels']:.0f}")
    line(f"RSS before and after, {out['clusters']} clusters", f"{out['rss_before_kib'] / 1024:.1f} / {out['rss_after_kib'] / 1024:.1f} MiB")
    line(f"longest turn of the loop, cold start of {out['clusters']} clusters included", f"{out['turn_ms']:.1f} ms")
    line("  one cluster alone", f"{out['turn_one_ms']:.1f} ms")
    line("  and with the member that answered stopped", f"{out['turn_stopped_ms']:.1f} ms")
    line("  observations that failed meanwhile", f"{out['failures_stopped']:.0f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--observations", type=int, default=1000)
    parser.add_argument("--clusters", type=int, default=40)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    if not os.access(BINARY, os.X_OK):
        print(f"bench: no program at {BINARY}: make build, or set PLIMSOLL", file=sys.stderr)
        return 2
    rig = Rig(workloads=1, keep=options.keep, need=("kubelet",))
    try:
        say = (lambda text: None) if options.json else (lambda text: print(f"... {text}", file=sys.stderr, flush=True))
        out = measure(Bench(rig, options.clusters), options, say)
    finally:
        rig.close()
    if options.json:
        print(json.dumps(out, indent=1))
    else:
        show(out)
    missed = [name for name, limit in LIMITS.items() if out[name] > limit]
    if missed and not options.json:
        print(f"  over the limit: {', '.join(missed)}")
    return 0  # a number is no verdict: machines differ, and so do their neighbours


if __name__ == "__main__":
    sys.exit(main())
