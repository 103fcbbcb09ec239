#!/usr/bin/env python3
"""Every vector, to the byte: what Cluster API computed (cluster-api/) and our own reading of the
documents (tables/), for the conditions we own, the remediation decisions and the deletion steps.

usage: vectors_test.py PLIMSOLL

In the vectors a list may be null for empty, keys they leave out are not compared, and a remediation
with an error is not compared. Timestamps are not part of them.
"""
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
KCP = {"EtcdClusterHealthy", "ControlPlaneComponentsHealthy", "Deleting", "Remediating"}
MACHINE = {"APIServerPodHealthy", "ControllerManagerPodHealthy", "SchedulerPodHealthy",
           "EtcdPodHealthy", "EtcdMemberHealthy"}


def read(path):
    with open(os.path.join(HERE, path), encoding="utf-8") as lines:
        return {v["name"]: v for v in map(json.loads, lines)}


def evaluate(plimsoll, profile, path):
    run = subprocess.run([plimsoll, "eval", "-o", "json", "--profile", profile, "--exit-zero", "-f",
                          os.path.join(HERE, path)], capture_output=True, text=True, timeout=300)
    if run.returncode != 0:
        sys.exit(f"plimsoll exited with {run.returncode}: {run.stderr}")
    return [json.loads(line) for line in run.stdout.splitlines()]


def owned(conditions, types):
    return {c["type"]: (c["status"], c["reason"], c["message"])
            for c in conditions or [] if c["type"] in types}


def kcp_differences(got, want):
    objects = got["objects"]
    kcp = next(o for o in objects if o["kind"] == "KubeadmControlPlane")
    machines = {o["name"]: owned(o["conditions"], MACHINE) for o in objects if o["kind"] == "Machine"}
    yield "kcp", owned(kcp["conditions"], KCP), owned(want["kcp"], KCP)
    yield "machines", machines, {n: owned(c, MACHINE) for n, c in want["machines"].items()}
    yield "requeueWithError", got["requeueWithError"], want["requeueWithError"]
    yield "missing", got["missing"], []
    for step in ("remediation", "deletion"):
        steps, wanted = got[step], want.get(step)
        if wanted is None:
            yield step, steps, []
        elif "error" not in wanted:
            wanted = {"inProgress": None, **wanted} if step == "remediation" else wanted
            for key, value in wanted.items():
                yield f"{step}.{key}", steps[0][key], [] if key == "deleted" and value is None else value


def md_differences(got, want):
    yield ("machinedeployment", owned(got["objects"][0]["conditions"], {"Remediating"}),
           owned(want["machinedeployment"], {"Remediating"}))


def suite(plimsoll, profile, snapshots, expected, differences):
    passed = failed = 0
    wanted = read(expected)
    results = evaluate(plimsoll, profile, snapshots)
    if [r["name"] for r in results] != list(read(snapshots)):
        print(f"FAILED {snapshots}: not one result for each vector, in order")
        failed += 1
    for got in results:
        wrong = [(what, g, w) for what, g, w in differences(got, wanted[got["name"]]["expect"]) if g != w]
        for what, g, w in wrong[:3]:
            print(f"FAILED {profile} {got['name']} {what}\n    got  {g}\n    want {w}")
        failed += bool(wrong)
        passed += not wrong
    return passed, failed


def main():
    plimsoll = sys.argv[1]
    capi, tables = "cluster-api-1.12", "tables"
    kcp, md = "cluster-api/kubeadmcontrolplane.ndjson", "cluster-api/machinedeployment.ndjson"
    runs = [suite(plimsoll, capi, kcp, kcp, kcp_differences),
            suite(plimsoll, tables, kcp, "tables/kubeadmcontrolplane.ndjson", kcp_differences),
            suite(plimsoll, capi, md, md, md_differences),
            suite(plimsoll, tables, md, md, md_differences)]
    passed, failed = (sum(column) for column in zip(*runs))
    print(f"vectors: {passed} passed, {failed} failed")
    return failed != 0 or passed == 0


if __name__ == "__main__":
    sys.exit(main())
