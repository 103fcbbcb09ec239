"""Managed etcd, for real: members with TLS, reached through an API server and a stand-in kubelet.

Each test gets what a case of suite.py gets, and suite.py calls them, once for each variant:
`for test, variants in TESTS: case(*variants)(test)`. What the conditions must say stands in
../../../shared/tables (rows) and spec/semantics.md (texts), for both profiles.
"""

import json
import os
import re
import subprocess
import time

from rig.controller import call
from rig.proc import free_port, optional_binary, wait_for
from rig.tunnel import Tunnel

TESTS = []
PROFILES = ("tables", "cluster-api-1.12")
STATUS = ("--mode", "status", "--all")
DIAL_TIMEOUT, PERIOD = 10, 30  # seconds: the default of --etcd-dial-timeout-duration; between two looks at etcd
FINDINGS = 1  # the exit code of a command that found something wrong
CONDITION, MEMBER = "EtcdClusterHealthy", "EtcdMemberHealthy"
REASONS = {"tables": {"True": "EtcdClusterHealthy", "False": "EtcdClusterNotHealthy", "Unknown": "HealthUnknown"},
           "cluster-api-1.12": {"True": "Healthy", "False": "NotHealthy", "Unknown": "HealthUnknown"}}


def etcd_test(*variants):
    def mark(function):
        TESTS.append((function, variants))
        return function
    return mark


class Setting:
    """A Cluster whose control plane Nodes have a real etcd member each, and what is expected of its conditions."""

    def __init__(self, t, profile="tables", version=None, secret=True, hosts=None, server=None, machines=3, rsa=False):
        self.t, self.profile = t, profile
        self.poking = True  # whoever waits for a condition also gives the controller a reason to look
        binary = optional_binary(version) if version else None
        self.nodes = [f"prod-node-{i}" for i in range(machines)]
        self.kubelet = None if hosts else t.kubelet()
        self.etcd = t.etcd(self.nodes, binary=binary, hosts=hosts, rsa=rsa)
        kubeconfig = t.rig.workloads[0].kubeconfig_text(server=server) if server else None
        self.world = t.world(external_etcd=False, workers=0, machines=machines, kubelet=self.kubelet, addresses=hosts,
                             kubeconfig=kubeconfig)
        if self.kubelet:
            for node in self.nodes:
                self.aim(node)
        if secret:
            self.world.write_etcd_ca(self.etcd.ca)
        self.controller = None

    def aim(self, node):
        """The kubelet learns where this Node's member is now."""
        self.kubelet.target(node, self.etcd[node].address)

    def run(self, *args):
        self.controller = self.t.controller(*STATUS, "--profile", self.profile, *args)
        return self.controller

    def poke(self):
        """A Node changes, though in nothing that matters: etcd is asked at once, not after half a minute."""
        node = self.nodes[0]
        self.world.inside.patch("nodes", None, node, {"metadata": {"annotations": {"e2e/poke": str(time.monotonic_ns())}}})

    def expect(self, status, text, row=None, reason=None, timeout=20):
        """The KCP's condition is exactly this; then a command that reads live says the same, by this row.

        text: of this profile, or a dict with the text of each; a compiled pattern must match the whole."""
        text = text[self.profile] if isinstance(text, dict) else text
        reason = reason or REASONS[self.profile][status]
        have = self._wait(lambda: self.world.kcp_condition(CONDITION), status, reason, text, timeout, self.world.kcp_name)
        if row is not None:
            judged = self.judged()
            assert judged["row"] == f"{CONDITION}/{row}", f"expected row {row}: {judged}"
            assert judged["status"] == status and judged["reason"] == reason and matches(text, judged["message"]), judged
        return have

    def expect_member(self, index, status, reason, text="", timeout=20):
        machine = self.world.machines[index]
        return self._wait(lambda: self.world.machine_condition(machine, MEMBER), status, reason, text, timeout, machine)

    def _wait(self, read, status, reason, text, timeout, who):
        def probe():
            have = read()
            if not (have and have["status"] == status and have["reason"] == reason and matches(text, have["message"])):
                raise AssertionError(have)
            return have
        if self.poking:
            self.poke()
        shown = text.pattern if isinstance(text, re.Pattern) else text
        return wait_for(f"{who} to say {status}/{reason} {shown!r}", probe, timeout)

    def expect_good(self, timeout=20):
        return self.expect("True", "", timeout=timeout)

    def live(self, *args, timeout=60):
        return call(*args, "--kubeconfig", self.t.rig.management.kubeconfig_file(), timeout=timeout)

    def judged(self):
        """What `eval --live` makes of it: the KCP's condition, with its row."""
        done = self.live("eval", "--live", "-o", "json", "--profile", self.profile)
        assert done.stdout, done
        for obj in json.loads(done.stdout)["objects"]:
            if obj["kind"] == "KubeadmControlPlane":
                for have in obj["conditions"]:
                    if have["type"] == CONDITION:
                        return have
        return {"row": None, "status": None, "reason": None, "message": done.stdout}

    def answering(self):
        """The Nodes that a tunnel is open to."""
        return [node for node, counts in self.kubelet.stats().items() if counts["open"]]

    def turn(self):
        return self.controller.metric("plimsoll_loop_turn_seconds_max") * 1e3


def matches(text, have):
    return text.fullmatch(have) is not None if isinstance(text, re.Pattern) else text == have


def block(text, *machines):
    """What several Machines with the same trouble look like in the KCP's message."""
    noun = "Machine" if len(machines) == 1 else "Machines"
    return f"* {noun} {', '.join(machines)}:\n  * {MEMBER}: {text}"


def pattern(*parts):
    """Plain texts, with one of our Nodes between each two."""
    return re.compile(r"etcd-prod-node-\d".join(re.escape(part) for part in parts))


def both(tables, original):
    return {"tables": tables, "cluster-api-1.12": original}


# --- every row ---------------------------------------------------------------------------------------


@etcd_test(*PROFILES, "tables etcd-3.5", "cluster-api-1.12 etcd-3.6")
def etcd_walks_the_table(t, variant):
    """EtcdClusterHealthy goes through the rows that a running controller can meet, there and back."""
    profile, _, version = variant.partition(" ")
    s = Setting(t, profile, version)
    w, e, k = s.world, s.etcd, s.kubelet
    a, b, c = w.machines
    s.run()
    s.expect("True", "", 4)
    for i in range(3):
        s.expect_member(i, "True", "Healthy")

    # 5: an alarm, by a real quota. Everybody's Status repeats it; one profile blames everybody for it.
    e.fill(s.nodes[1])
    number = e.member_id(s.nodes[1])
    everybody = pattern(block("Etcd endpoint ", a, b, c), f" reports errors: memberID:{number} alarm:NOSPACE ")
    s.expect("False", both(block("Etcd reports alarms: NOSPACE", b), everybody), 5)
    if profile == "tables":
        s.expect_member(0, "True", "Healthy")
        s.expect_member(1, "False", "NotHealthy", "Etcd reports alarms: NOSPACE")
    else:
        s.expect_member(0, "False", "NotHealthy", pattern("Etcd endpoint ", f" reports errors: memberID:{number} alarm:NOSPACE "))
    e.clear_alarms()
    s.expect_good()

    # 7: a member nobody has a Machine for, first without a name, then with one, at last a Machine without member.
    e.add_unstarted("ghost", learner=True)
    label = f"{e.unnamed()} (Name not yet assigned)"
    s.expect("False", both(f"Etcd members do not match Machines: etcd member {label} has no Machine",
                           f"* Etcd member {label} does not have a corresponding Machine"), 7)
    e.remove("ghost", e.unnamed())
    s.expect_good()
    e.add("stray", learner=True)
    s.expect("False", both("Etcd members do not match Machines: etcd member stray has no Machine",
                           "* Etcd member stray does not have a corresponding Machine"), 7)
    e.remove("stray")
    s.expect_good()
    e.remove(s.nodes[2])
    s.expect("False", both(f"Etcd members do not match Machines: Machine {c} has no etcd member",
                           block(f"Etcd doesn't have an etcd member for Node {s.nodes[2]}", c)), None if profile != "tables" else 7)
    s.expect_member(2, "False", "NotHealthy", f"Etcd doesn't have an etcd member for Node {s.nodes[2]}")

    # 5 again, on the way back: the member joins as kubeadm lets it join.
    e.add(s.nodes[2], learner=True)
    s.aim(s.nodes[2])
    waiting = "Waiting for learner etcd member to be promoted"
    s.expect("False", block(waiting, c), 5)
    s.expect_member(2, "False", "NotHealthy", waiting)

    # 6: nobody but the learner can be reached, and it does not answer for the cluster.
    k.fault("refuse", *s.nodes[:2])
    k.cut()
    refusal = re.compile(re.escape(block("Failed to get etcd members: ", a, b, c)) + ".*rpc not supported for learner")
    s.expect("Unknown", refusal, 6, timeout=40)
    k.fault("")
    e.promote(s.nodes[2])
    s.expect_good(timeout=40)

    # 6: a Machine that has no Node yet.
    w.add_machine("prod-cp-3")
    s.expect("Unknown", block("Waiting for a Node with spec.providerID dev:///prod-node-3 to exist", "prod-cp-3"), 6)
    w.remove_machine("prod-cp-3")
    s.expect_good()

    # 8: a Node without a Machine.
    w.create_node("prod-node-9")
    text = "Control plane Node prod-node-9 does not have a corresponding Machine"
    s.expect("False", both(text, "* " + text), 8)
    w.delete_node("prod-node-9")
    s.expect_good()

    # 5: no quorum. Whoever is left answers, and says so.
    e.kill(*s.nodes[1:])
    s.expect("False", pattern(block("Etcd endpoint ", a, b, c), " reports errors: etcdserver: no leader"), 5, timeout=40)
    # 3: nobody is left.
    e.kill(s.nodes[0])
    refused = "Failed to connect to etcd: nothing listens on the Pod's etcd port"
    s.expect("Unknown", both(refused, block(refused, a, b, c)), 3, timeout=40)
    for i in range(3):
        s.expect_member(i, "Unknown", "InspectionFailed", refused)
    for node in s.nodes:
        e[node].again()
    e.wait_healthy()
    s.expect_good(timeout=60)
    print(f"       longest turn {s.turn():.1f} ms, {k.total('opened')} tunnels")


@etcd_test(*PROFILES)
def etcd_rows_without_members(t, profile):
    """Rows 1, 2 and 0: external etcd, Nodes that cannot be listed, and no Machine at all."""
    w = t.world("ext")
    c = t.controller(*STATUS, "--profile", profile)
    wait_for("conditions", lambda: w.kcp_condition("ControlPlaneComponentsHealthy"), 20)
    assert w.kcp_condition(CONDITION) is None, "external etcd is not ours to judge"
    assert c.stop() == 0
    w.destroy()
    t.worlds.remove(w)

    p = t.proxy(t.rig.workloads[0].url)
    p.set(rules=[{"method": "GET", "path": "/api/v1/nodes", "code": 500}])
    s = Setting(t, profile, server=p.url)
    s.run()
    s.expect("Unknown", "Failed to get Nodes hosting the etcd cluster", 2, reason="InspectionFailed", timeout=30)
    s.expect_member(0, "Unknown", "InspectionFailed", "Failed to get the Node hosting the etcd member")
    assert s.kubelet.total("asked") == 0, "etcd was asked without a Node to ask through"
    p.set()
    s.expect("True", "", 4, timeout=40)
    s.poking = False  # what happens next is a reason by itself, and takes the Nodes along
    for machine in list(s.world.machines):
        s.world.remove_machine(machine)
    s.expect("Unknown", "No Machines reporting etcd member status", 0)


@etcd_test(*PROFILES)
def etcd_machines(t, profile):
    """What happens to a Machine while its member stays: CORRUPT, deletion, a Node that is gone."""
    s = Setting(t, profile, rsa=True)  # and a CA as Cluster API makes it
    w, e = s.world, s.etcd
    s.run()
    s.expect_good()
    e.raise_alarm(s.nodes[0], "CORRUPT")
    if profile == "tables":
        s.expect_member(0, "False", "NotHealthy", "Etcd reports alarms: CORRUPT")
        s.expect_member(1, "True", "Healthy")
    else:
        number = e.member_id(s.nodes[0])
        s.expect_member(1, "False", "NotHealthy", pattern("Etcd endpoint ", f" reports errors: memberID:{number} alarm:CORRUPT "))
    e.clear_alarms()
    s.expect_good()
    w.delete("machines", w.machines[2])
    s.expect_member(2, "False", "Deleting", "Machine is deleting")
    s.expect("False", block("Machine is deleting", w.machines[2]), 5)
    # Its member is removed behind our back: now it lacks one as well.
    e.remove(s.nodes[2])
    s.expect_member(2, "False", "NotHealthy", f"Etcd doesn't have an etcd member for Node {s.nodes[2]}")
    w.remove_machine(w.machines[2])
    s.expect("True", "", 4)
    s.poking = False  # what happens next is a reason by itself
    for machine in w.machines:
        w.delete_node(w.nodes[machine])
    nobody = "Failed to connect to etcd: no Node with an etcd member to connect to"
    s.expect(*(("Unknown", nobody) if profile == "tables" else ("False", block(
        "Etcd reports the cluster is composed by [], but the etcd member hosted on this Machine is not included", *w.machines))))


# --- members that do not answer ----------------------------------------------------------------------


def judged_within(s, member):
    """Seconds from an alarm of `member` to the condition that says so, and back."""
    start = time.monotonic()
    s.etcd.raise_alarm(member, "NOSPACE")
    s.expect("False", block("Etcd reports alarms: NOSPACE", f"prod-cp-{member[-1]}"), timeout=2 * DIAL_TIMEOUT)
    took = time.monotonic() - start
    s.etcd.clear_alarms()
    s.expect_good()
    return took


@etcd_test("etcd", "etcd-3.5", "etcd-3.6")
def etcd_one_member_stopped(t, version):
    """SIGSTOP on the member that answers: TCP connects, nothing else. The others are judged in time; no turn is long."""
    s = Setting(t, version=version if "-" in version else None)
    s.run()
    s.expect_good()
    stopped = (s.answering() or s.nodes)[0]
    leads = s.etcd.leader() == stopped
    s.etcd.pause(stopped)
    others = [n for n in s.nodes if n != stopped]
    wait_for("the others to have a leader", lambda: s.etcd.leader(others) in others, 15)
    took = judged_within(s, others[0])
    again = judged_within(s, others[1])
    print(f"       stopped {stopped} ({'the leader' if leads else 'a follower'}): another judged after {took:.2f} s, "
          f"then {again:.2f} s; longest turn {s.turn():.1f} ms")
    assert took <= DIAL_TIMEOUT, f"judged after {took:.1f} s"
    done = s.live("etcd", s.world.name)
    assert done.returncode == 0 and all(node in done.stdout for node in s.nodes), done
    s.etcd.resume(stopped)
    s.expect_good()
    assert s.turn() < 100, f"a turn of the loop took {s.turn():.0f} ms"


@etcd_test()
def etcd_dead_leader(t):
    """The leader is killed while it is the one that answers; a second later somebody else does. It comes back."""
    s = Setting(t)
    s.run()
    s.expect_good()
    asked = (s.answering() or s.nodes)[0]
    s.etcd.move_leader(asked)
    s.etcd.kill(asked)
    others = [n for n in s.nodes if n != asked]
    wait_for("a new leader", lambda: s.etcd.leader(others) in others, 15)
    took = judged_within(s, others[0])
    print(f"       killed {asked}, the leader: another judged after {took:.2f} s; longest turn {s.turn():.1f} ms")
    assert took <= DIAL_TIMEOUT
    s.etcd.restart(asked)
    s.expect_good()
    assert s.etcd.leader() in others


@etcd_test()
def etcd_asked_without_events(t):
    """Nothing in the API changes; an alarm is seen all the same, within the period."""
    s = Setting(t)
    s.run()
    s.expect_good()
    s.poking = False
    time.sleep(2)
    start = time.monotonic()
    s.etcd.raise_alarm(s.nodes[1], "NOSPACE")
    s.expect("False", block("Etcd reports alarms: NOSPACE", "prod-cp-1"), timeout=PERIOD + 5)
    print(f"       seen after {time.monotonic() - start:.1f} s")
    assert s.kubelet.total("opened") == 1, f"one warm tunnel was enough: {s.kubelet.stats()}"


# --- the way there -----------------------------------------------------------------------------------


def break_all_tunnels(s, *faults):
    """Each fault in turn, of all Nodes: the condition says it in these words, and heals."""
    k = s.kubelet
    s.run("--etcd-dial-timeout-duration", "3s", "--etcd-call-timeout-duration", "4s")
    s.expect_good()
    for kind, text in faults:
        k.fault(kind)
        if kind != "freeze":
            k.cut()
        start = time.monotonic()
        s.expect("Unknown", re.compile("Failed to connect to etcd: " + text), timeout=25)
        print(f"       {kind}: after {time.monotonic() - start:.1f} s")
        k.fault("")
        k.cut()
        s.expect_good(timeout=40)


def break_one_tunnel(s, kind):
    """A Node with this fault costs a head start, not the dial timeout."""
    s.kubelet.fault(kind, s.nodes[0])
    s.kubelet.cut()
    s.etcd.raise_alarm(s.nodes[2], "NOSPACE")
    start = time.monotonic()
    s.expect("False", block("Etcd reports alarms: NOSPACE", "prod-cp-2"), timeout=25)
    print(f"       {kind}, one of three: after {time.monotonic() - start:.1f} s")
    s.etcd.clear_alarms()
    s.kubelet.fault("")
    s.expect_good()


@etcd_test()
def etcd_tunnel_faults(t):
    """Tunnels that are cut, refused, frozen and slow."""
    s = Setting(t)
    break_all_tunnels(s, ("refuse", "nothing listens on the Pod's etcd port"), ("freeze", "no answer in the TLS handshake"))
    break_one_tunnel(s, "freeze")
    s.kubelet.cut()
    s.expect_good()
    s.kubelet.fault("", delay=50)
    s.expect_good()
    assert s.turn() < 100, f"a turn of the loop took {s.turn():.0f} ms"


@etcd_test()
def etcd_kubelet_faults(t):
    """A kubelet that knows no such Pod, hangs, and is gone, as a real API server passes it on."""
    s = Setting(t)
    k = s.kubelet
    break_all_tunnels(s, (
        "missing", 'prod-node-0: HTTP 404: unable to forward port because pod is not found: "etcd-prod-node-0"; .*'),
        ("hang", "the API server does not answer the port-forward"))
    break_one_tunnel(s, "hang")
    k.kill()
    s.expect("Unknown", re.compile("Failed to connect to etcd: .*error dialing backend: .*connection refused"), timeout=25)
    k.restart()
    s.expect_good(timeout=40)
    assert s.turn() < 100, f"a turn of the loop took {s.turn():.0f} ms"


@etcd_test()
def etcd_secret_and_rotation(t):
    """The CA's Secret is missing, comes, is rubbish, and at last changes together with the members."""
    s = Setting(t, secret=False)
    w = s.world
    s.run()
    s.expect("Unknown", "Failed to connect to etcd: Secret default/prod-etcd: not found", timeout=30)
    w.write_etcd_ca(s.etcd.ca)
    s.expect_good(timeout=40)
    s.etcd.rotate()
    s.expect("Unknown", "Failed to connect to etcd: the server's certificate is not signed by the cluster's etcd CA", timeout=30)
    w.write_etcd_ca(s.etcd.ca)
    s.expect_good(timeout=40)
    t.api.patch("secrets", w.namespace, w.name + "-etcd", {"data": {"tls.crt": "bm9uc2Vuc2U=", "tls.key": "bm9uc2Vuc2U="}})
    s.expect("Unknown", "Failed to connect to etcd: etcd CA: there is no certificate in the PEM of tls.crt", timeout=30)
    w.write_etcd_ca(s.etcd.ca)
    s.expect_good(timeout=40)
    log = s.controller.process.output()
    assert "PRIVATE KEY" not in log, "a key in the log"


@etcd_test()
def etcd_direct_endpoints(t):
    """--etcd-endpoints: no tunnel, each member at its Node's address."""
    hosts = {f"prod-node-{i}": f"127.0.1.{i + 1}" for i in range(3)}
    s = Setting(t, hosts=hosts)
    port = s.etcd[s.nodes[0]].port
    template = f"https://{{address}}:{port}"
    s.run("--etcd-endpoints", template)
    s.expect_good()
    s.etcd.raise_alarm(s.nodes[1], "NOSPACE")
    s.expect("False", block("Etcd reports alarms: NOSPACE", "prod-cp-1"))
    s.etcd.clear_alarms()
    s.expect_good()
    done = s.live("etcd", s.world.name, "--etcd-endpoints", template)
    assert done.returncode == 0 and all(node in done.stdout for node in s.nodes), done
    s.etcd.kill(*s.nodes)
    s.expect("Unknown", re.compile("Failed to connect to etcd: .+"), timeout=40)
    bad = call("run", "--etcd-endpoints", "http://{addr}", "--kubeconfig", t.rig.management.kubeconfig_file())
    assert bad.returncode not in (0, -6, -11) and "etcd-endpoints" in bad.stderr, bad


# --- commands ----------------------------------------------------------------------------------------


@etcd_test()
def etcd_seen_by_live_commands(t):
    """Without a controller: describe, snapshot, eval, explain and etcd look for themselves."""
    s = Setting(t)
    w = s.world
    captured = s.live("snapshot", w.name, "-o", "json")
    assert captured.returncode == 0 and captured.stderr == "", captured
    seen = json.loads(captured.stdout)["workloads"][0]["etcd"]
    assert seen["endpoint"] in [f"etcd-{node}" for node in s.nodes], seen
    assert sorted(m["name"] for m in seen["members"]) == s.nodes and seen["alarms"] == [], seen
    assert "PRIVATE KEY" not in captured.stdout
    done = s.live("describe", w.name)
    assert done.returncode == 0 and "3 voters, quorum 2" in done.stdout and all(f"Member/{n}" in done.stdout for n in s.nodes), done
    done = s.live("explain", "kcp/" + w.kcp_name, CONDITION)
    assert done.returncode == 0 and f"{CONDITION}/4" in done.stdout, done
    assert s.judged()["row"] == f"{CONDITION}/4"
    s.etcd.add_unstarted("ghost", learner=True)
    s.etcd.raise_alarm(s.nodes[1], "NOSPACE")
    done = s.live("etcd", w.name)
    assert re.search(rf"^{s.etcd.leader()} +[0-9a-f]+ +leader ", done.stdout, re.M), done
    assert re.search(rf"^{s.nodes[1]} .* NOSPACE +prod-cp-1$", done.stdout, re.M), done
    assert re.search(rf"^\(no name yet\) +{s.etcd.unnamed():x} +unstarted .*\(none\)$", done.stdout, re.M), done
    assert "Quorum: 2 of 3 voters needed" in done.stdout, done
    done = s.live("etcd", w.name, "-o", "json")
    assert done.returncode == FINDINGS and done.stderr == "", done
    shown = json.loads(done.stdout)
    assert [m["alarms"] for m in shown["members"] if m["name"] == s.nodes[1]] == ["NOSPACE"], shown
    assert shown["quorum"]["voters"] == 3 and shown["quorum"]["tolerance"] == 0, shown
    assert shown["membersWithoutMachine"] == [f"{s.etcd.unnamed()} (Name not yet assigned)"], shown
    assert w.kcp_condition(CONDITION) is None, "a command that reads has written"


def trace(s):
    """The exit code of `etcd --trace` and its hops as {(Node or "", hop): what stands in the line before it}."""
    done = s.live("etcd", s.world.name, "--trace")
    hops, node = {}, ""
    for line in (done.stdout + done.stderr).splitlines():
        if line.strip().startswith("Node "):
            node = line.split()[1]
        found = re.match(r" +(ok|FAIL) +[\d.]+ m?s +(\w[\w ]*?\w)(?:  |$)", line)
        if found:
            hops[node, found.group(2)] = found.group(1)
    assert hops, done
    return done.returncode, hops, done.stdout


def expect_trace(s, hop, words, at=None):
    """It fails at that hop alone, of these Nodes (of all of them), with these words and a guess."""
    code, hops, text = trace(s)
    failed = [key for key, verdict in hops.items() if verdict == "FAIL"]
    assert code != 0 and failed == [(node, hop) for node in at or s.nodes] and words in text, text
    assert "likely:" in text, text


@etcd_test()
def etcd_trace_meets_the_kubelet(t):
    """The connection doctor: a kubelet that is gone, and one that knows no such Pod."""
    s = Setting(t)
    s.kubelet.kill()
    expect_trace(s, "kubelet tunnel", "cannot reach the kubelet")
    s.kubelet.restart()
    s.kubelet.fault("missing")
    expect_trace(s, "kubelet tunnel", "404")
    s.kubelet.fault("")
    assert trace(s)[0] == 0


@etcd_test()
def etcd_trace_names_the_hop(t):
    """The connection doctor: every hop is good, and then each in turn is not."""
    s = Setting(t)
    w = s.world
    first, last = ("", "management API"), (s.nodes[2], "etcd gRPC")
    code, hops, text = trace(s)
    assert code == 0 and set(hops.values()) == {"ok"} and first in hops and last in hops, text
    print("\n".join("       | " + line for line in text.splitlines()))

    s.etcd.kill(s.nodes[1])
    code, hops, text = trace(s)
    assert [key[0] for key, verdict in hops.items() if verdict == "FAIL"] == [s.nodes[1]] and hops[last] == "ok", text
    s.etcd.restart(s.nodes[1])
    stranger = s.etcd.ca
    s.etcd.rotate()
    expect_trace(s, "etcd TLS", "not signed by")
    w.write_etcd_ca(s.etcd.ca)
    assert stranger is not s.etcd.ca and trace(s)[0] == 0
    t.api.delete("secrets", w.namespace, w.name + "-etcd")
    expect_trace(s, "etcd CA Secret", "prod-etcd", at=[""])
    w.write_etcd_ca(s.etcd.ca)
    w.write_kubeconfig(t.rig.workloads[0].kubeconfig_text(server=f"https://127.0.0.1:{free_port()}"))
    expect_trace(s, "workload API", "refused", at=[""])
    t.api.delete("secrets", w.namespace, w.name + "-kubeconfig")
    expect_trace(s, "kubeconfig Secret", "prod-kubeconfig", at=[""])
    done = s.live("etcd", "nobody")
    assert done.returncode != 0 and "nobody" in done.stderr, done


# --- the rig itself (needs no plimsoll) --------------------------------------------------------------


@etcd_test("etcd", "etcd-3.5", "etcd-3.6")
def rig_etcd_tunnel(t, version):
    """etcdctl through the tunnel of this rig: API server, kubelet, a member with TLS; and what refuses, refuses."""
    s = Setting(t, version=version if "-" in version else None)
    tunnel = Tunnel(t.rig.workloads[0], f"etcd-{s.nodes[0]}")
    def members():
        return subprocess.run([t.rig.bin["etcdctl"], "--endpoints", f"https://localhost:{tunnel.port}", "--cacert", s.etcd.ca.cert,
                               "--cert", s.etcd.client[0], "--key", s.etcd.client[1], "--command-timeout", "2s", "member", "list"],
                              capture_output=True, text=True, timeout=20, check=False, env=dict(os.environ, ETCDCTL_API="3"))
    done = members()
    assert done.returncode == 0 and all(node in done.stdout for node in s.nodes), done
    counts = s.kubelet.stats(s.nodes[0])
    assert counts["opened"] == 1 and counts["trips"] >= 3, counts
    s.kubelet.fault("refuse", s.nodes[0])
    assert members().returncode != 0
    assert any("connection refused" in error for error in tunnel.errors), tunnel.errors
    tunnel.close()
