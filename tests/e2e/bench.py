#!/usr/bin/env python3
"""Measures `plimsoll run` on a real management API server. bench.py [--clusters 300] [--latency-clusters 100] [--json]

The workload API servers are a stand-in of ours (tests/e2e/workloads): TLS and HTTP/2, list and watch
of Nodes and Pods. Everything else is real: kube-apiserver, etcd, our controller, over loopback.
"""

import argparse
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from rig.controller import BINARY, Controller  # noqa: E402
from rig.fleet import Fleet, idle_cpu, percentile  # noqa: E402
from rig.servers import Rig  # noqa: E402
from rig.standin import StandIn  # noqa: E402

# What the project promises (issue 3): name, limit, unit.
LIMITS = {"latency_p50_ms": 50, "latency_p99_ms": 250, "rss_mib": 60}


def measure(rig, standin, options, say):
    fleet = Fleet(rig, standin)
    out = {"clusters": options.clusters, "latency_clusters": options.latency_clusters}
    say(f"making {options.clusters} clusters")
    out["fleet_made_s"] = fleet.grow(options.clusters)
    out["floor_ms"] = fleet.floor() * 1e3

    say("cold start")
    started = time.time()
    c = Controller(rig, "--mode", "status", "--all", wait=False)
    seconds, done, total = fleet.wait_written(options.timeout, started, c.process)
    out.update(cold_start_s=seconds, cold_start_objects=done, cold_start_of=total)
    if done < total:
        raise SystemExit(f"bench: only {done} of {total} objects had conditions after {seconds:.0f} s:\n{c.process.tail()}")
    out["cold_start_cpu_s"] = c.process.cpu_seconds()
    time.sleep(2)
    out["idle_cpu_percent"] = idle_cpu(c.process, options.idle) * 100
    taken, lost = fleet.latency(options.samples)
    out.update(latency_all_p50_ms=percentile(taken, 0.5) * 1e3, latency_all_p99_ms=percentile(taken, 0.99) * 1e3, latency_all_lost=lost)
    out["rss_mib"] = c.process.memory_kib() / 1024
    out["rss_peak_mib"] = c.process.memory_kib("VmHWM") / 1024
    out["stand_in"] = standin.stats()["requests"]
    fleet.settle()
    if c.stop() != 0:
        raise SystemExit("bench: the controller did not end in order")

    if options.latency_clusters < options.clusters:
        say(f"shrinking to {options.latency_clusters}")
        fleet.shrink(options.latency_clusters)
    c = Controller(rig, "--mode", "status", "--all")
    fleet.wait_written(options.timeout, time.time(), c.process)
    time.sleep(2)
    taken, lost = fleet.latency(options.samples)
    out.update(latency_p50_ms=percentile(taken, 0.5) * 1e3, latency_p90_ms=percentile(taken, 0.9) * 1e3,
               latency_p99_ms=percentile(taken, 0.99) * 1e3, latency_max_ms=max(taken) * 1e3, latency_lost=lost,
               samples=len(taken))
    out["rss_small_mib"] = c.process.memory_kib() / 1024
    c.stop()
    if options.latency_clusters < options.clusters:
        out["rss_slope_kib"] = (out["rss_mib"] - out["rss_small_mib"]) * 1024 / (options.clusters - options.latency_clusters)
    return out


def show(out):
    def line(label, text, limit=None):
        print(f"  {label:<58} {text:>12}" + (f"   (limit {limit})" if limit else ""))
    print(f"plimsoll run, real kube-apiserver and etcd, stand-in workload servers, {os.cpu_count()} cores shared by all")
    n, m = out["clusters"], out["latency_clusters"]
    line(f"cold start of {n} clusters to all conditions written", f"{out['cold_start_s']:.2f} s")
    line("  CPU time for it", f"{out['cold_start_cpu_s']:.2f} s")
    line(f"Pod changed -> KCP condition seen, {m} clusters, p50", f"{out['latency_p50_ms']:.1f} ms", "50 ms")
    line("  p90", f"{out['latency_p90_ms']:.1f} ms")
    line("  p99", f"{out['latency_p99_ms']:.1f} ms", "250 ms")
    line("  max", f"{out['latency_max_ms']:.1f} ms")
    line("  never seen", f"{out['latency_lost']} of {out['samples'] + out['latency_lost']}")
    line(f"  the same with {n} clusters, p50 / p99", f"{out['latency_all_p50_ms']:.1f} / {out['latency_all_p99_ms']:.1f} ms")
    line("  the rig's own floor: a patch -> seen in a watch, p50", f"{out['floor_ms']:.1f} ms")
    line(f"RSS with {n} clusters", f"{out['rss_mib']:.1f} MiB", "60 MiB")
    line("  peak", f"{out['rss_peak_mib']:.1f} MiB")
    line(f"RSS with {m} clusters", f"{out['rss_small_mib']:.1f} MiB")
    if "rss_slope_kib" in out:
        line("  slope per cluster", f"{out['rss_slope_kib']:.1f} KiB")
    line(f"CPU when idle, {n} clusters", f"{out['idle_cpu_percent']:.2f} %")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clusters", type=int, default=300)
    parser.add_argument("--latency-clusters", type=int, default=100)
    parser.add_argument("--samples", type=int, default=300)
    parser.add_argument("--idle", type=float, default=10, help="seconds to watch idle CPU")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for the cold start")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    options.latency_clusters = min(options.latency_clusters, options.clusters)
    if not os.access(BINARY, os.X_OK):
        print(f"bench: no program at {BINARY}: make build, or set PLIMSOLL", file=sys.stderr)
        return 2
    rig = Rig(workloads=0, keep=options.keep, need=("workloads",))
    try:
        standin = StandIn(rig, clusters=options.clusters)
        say = (lambda text: None) if options.json else (lambda text: print(f"... {text}", file=sys.stderr, flush=True))
        out = measure(rig, standin, options, say)
    finally:
        rig.close()
    if options.json:
        print(json.dumps(out, indent=1))
    else:
        show(out)
    missed = [name for name, limit in LIMITS.items() if out[name] > limit]
    if missed and not options.json:
        print(f"  over the limit: {', '.join(missed)}")
    return 1 if out["latency_lost"] else 0


if __name__ == "__main__":
    sys.exit(main())
