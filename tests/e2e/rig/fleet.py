"""Many clusters at once on the management server, their workload sides played by the stand-in."""

import random
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from .proc import wait_for
from .world import World, conditions

POD_CONDITIONS = ("APIServerPodHealthy", "ControllerManagerPodHealthy", "SchedulerPodHealthy")


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


class Fleet:
    """Clusters c<0> ... c<n-1> with external etcd and three control plane Machines each."""

    def __init__(self, rig, standin, namespace="fleet", prepare=None):
        self.rig, self.standin, self.namespace, self.worlds = rig, standin, namespace, {}
        self.prepare = prepare  # called with each new World

    def _make(self, n):
        world = World(self.rig.api, f"c{n}", namespace=self.namespace, machines=3, workers=0, bare=True,
                      owns_kubeconfig=False, kubeconfig=self.standin.kubeconfig(n))
        if self.prepare:
            self.prepare(world)
        return n, world

    def grow(self, count):
        """Up to `count` clusters; returns the seconds it took."""
        start = time.monotonic()
        missing = [n for n in range(count) if n not in self.worlds]
        if missing and not self.worlds:
            n, world = self._make(missing.pop(0))  # and the namespace
            self.worlds[n] = world
        with ThreadPoolExecutor(4) as pool:
            self.worlds.update(pool.map(self._make, missing))
        return time.monotonic() - start

    def shrink(self, count):
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda n: self.worlds.pop(n).destroy(), [n for n in self.worlds if n >= count]))

    def wait_written(self, timeout, started, process):
        """Until every KCP and Machine has its conditions, or the process is gone; (seconds, done, of)."""
        want = {("KubeadmControlPlane", w.kcp_name): {"ControlPlaneComponentsHealthy"} for w in self.worlds.values()}
        want.update({("Machine", m): set(POD_CONDITIONS) for w in self.worlds.values() for m in w.machines})
        total = len(want)
        deadline = started + timeout
        last = time.time()
        watches = []
        for resource in ("kubeadmcontrolplanes", "machines"):
            watches.append(self.rig.api.watch(resource, self.namespace))
            for obj in self.rig.api.list(resource, self.namespace):
                self._tick_off(want, obj)
        looked = time.time()
        while want and time.time() < deadline and process.running():
            busy = False
            for watch in watches:
                for at, kind, obj in watch.drain():
                    busy = True
                    if obj and kind in ("ADDED", "MODIFIED") and self._tick_off(want, obj):
                        last = looked = at
            if busy:
                continue
            time.sleep(0.02)
            if time.time() - looked > 5:  # our own watch may have ended
                looked = time.time()
                for resource in ("kubeadmcontrolplanes", "machines"):
                    for obj in self.rig.api.list(resource, self.namespace):
                        if self._tick_off(want, obj):
                            last = looked
        for watch in watches:
            watch.close()
        if want:
            print(f"without conditions: {', '.join('/'.join(key) for key in sorted(want)[:5])} ...", file=sys.stderr)
        return (last if not want else time.time()) - started, total - len(want), total

    @staticmethod
    def _tick_off(want, obj):
        key = (obj["kind"], obj["metadata"]["name"])
        if key not in want:
            return False
        have = conditions(obj)
        if all(have.get(kind, {}).get("status") == "True" for kind in want[key]):
            del want[key]
            return True
        return False

    def latency(self, samples, pause=0.05, timeout=60.0, seed=1):
        """Seconds from a Pod's change at the stand-in to the patched KCP in a watch; and how many never came."""
        random_ = random.Random(seed)
        names = sorted(self.worlds)
        random_.shuffle(names)
        watch = self.rig.api.watch("kubeadmcontrolplanes", self.namespace)
        taken, lost = [], 0
        for i in range(samples):
            n = names[i % len(names)]
            ready = bool((i // len(names)) % 2)
            watch.drain()
            wanted = "True" if ready else "False"
            name = self.worlds[n].kcp_name
            at = self.standin.set_pod(n, ready=ready)
            seen = watch.until(lambda kind, obj: obj["metadata"]["name"] == name and conditions(obj).get(
                "ControlPlaneComponentsHealthy", {}).get("status") == wanted, timeout)
            if seen is None:
                lost += 1
            else:
                taken.append(seen[0] - at)
            time.sleep(pause)
        watch.close()
        for n in names:
            self.standin.set_pod(n, ready=True)
        return taken, lost

    def latency_at_once(self, rounds, timeout, gap=0.02):
        """The same, but every cluster's Pod changes within a moment: for controllers that take long."""
        watch = self.rig.api.watch("kubeadmcontrolplanes", self.namespace)
        taken, lost = [], 0
        for i in range(rounds):
            ready = bool(i % 2)
            watch.drain()
            open_ = {}
            for n, world in self.worlds.items():
                open_[world.kcp_name] = self.standin.set_pod(n, ready=ready)
                time.sleep(gap)
            deadline = time.time() + timeout
            while open_ and time.time() < deadline:
                seen = watch.until(lambda kind, obj: True, deadline - time.time())
                if seen is None:
                    break
                at, _, obj = seen
                name = obj["metadata"]["name"]
                status = conditions(obj).get("ControlPlaneComponentsHealthy", {}).get("status")
                if name in open_ and status == str(ready):
                    taken.append(at - open_.pop(name))
            lost += len(open_)
        watch.close()
        for n in self.worlds:
            self.standin.set_pod(n, ready=True)
        return taken, lost

    def settle(self, timeout=60):
        """Until every KCP says True again."""
        wait_for("the fleet to be healthy", lambda: all(
            conditions(k).get("ControlPlaneComponentsHealthy", {}).get("status") == "True"
            for k in self.rig.api.list("kubeadmcontrolplanes", self.namespace)), timeout, every=0.5)

    def floor(self, samples=50):
        """The least that can be measured here: seconds from a status patch by us to our watch."""
        name = next(iter(self.worlds.values())).kcp_name
        watch = self.rig.api.watch("kubeadmcontrolplanes", self.namespace)
        taken = []
        for i in range(samples):
            at = time.time()
            self.rig.api.patch("kubeadmcontrolplanes", self.namespace, name, {"status": {"observedGeneration": 1 + i % 2}}, sub="status")
            seen = watch.until(lambda kind, obj: obj["metadata"]["name"] == name, 5)
            if seen:
                taken.append(seen[0] - at)
        watch.close()
        return statistics.median(taken)


def idle_cpu(process, seconds=10.0):
    """Share of one core that the process uses while nothing happens."""
    before, start = process.cpu_seconds(), time.monotonic()
    time.sleep(seconds)
    return (process.cpu_seconds() - before) / (time.monotonic() - start)


def table(title, rows, columns):
    """rows: (label, {column: text})."""
    widths = [max([len(c)] + [len(r[1].get(c, "")) for r in rows]) for c in columns]
    first = max([len(title)] + [len(r[0]) for r in rows])
    lines = [title.ljust(first) + "  " + "  ".join(c.rjust(w) for c, w in zip(columns, widths))]
    for label, cells in rows:
        lines.append(label.ljust(first) + "  " + "  ".join(cells.get(c, "").rjust(w) for c, w in zip(columns, widths)))
    return "\n".join(lines)
