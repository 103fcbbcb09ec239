#!/usr/bin/env python3
"""How `plimsoll up` ends, and what it leaves: up_test.py PLIMSOLL. Needs etcd."""
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

PLIMSOLL = os.path.abspath(sys.argv[1])
SMALL = ["--clusters", "1", "--replicas", "1", "--workers", "0"]
F_SETPIPE_SZ = 1031
passed = failed = 0
root = os.path.realpath(tempfile.mkdtemp(prefix="plimsoll-up-test."))


def check(what, holds, more=""):
    global passed, failed
    passed, failed = passed + bool(holds), failed + (not holds)
    print(("ok     " if holds else "FAILED ") + what + ("" if holds else f": {more}"), flush=True)


def until(condition, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return bool(condition())


def up(*options, size=SMALL, stdout=subprocess.DEVNULL):
    return subprocess.Popen([PLIMSOLL, "up", *size, *options], stdout=stdout, stderr=subprocess.STDOUT,
                            stdin=subprocess.DEVNULL, cwd=root, env={**os.environ, "TMPDIR": root})


def etcds():
    """The etcd processes of playgrounds of this test."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if f"--data-dir={root}/".encode() in file.read():
                    found.append(int(pid))
        except OSError:
            pass
    return found


def ask(folder, path, method="GET", body=None):
    """Status and answer; 0 when there is none."""
    try:
        with open(f"{folder}/kubeconfig", encoding="utf-8") as file:
            url = re.search(r"http://[0-9.:]+", file.read()).group(0)
        request = urllib.request.Request(url + path, method=method, data=body and json.dumps(body).encode(),
                                         headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=5) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()
    except (OSError, AttributeError):
        return 0, b""


def runs(folder):
    status, body = ask(folder, "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines")
    return status == 200 and any(m.get("status", {}).get("phase") == "Running" for m in json.loads(body)["items"])


def ended(process, seconds):
    return until(lambda: process.poll() is not None, seconds)


def clean(what):
    left = [f for f in os.listdir(root) if f.startswith("plimsoll-")]
    check(what, until(lambda: not etcds(), 3) and not left, f"processes {etcds()}, folders {left}")


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_signals():
    first = f"{root}/plimsoll-{os.geteuid()}-1"
    for number in (signal.SIGTERM, signal.SIGHUP):
        process = up()
        check("it comes up", until(lambda: runs(first), 30))
        process.send_signal(number)
        check(f"{number.name} ends it", ended(process, 15) and process.returncode == 0, process.returncode)
        clean(f"{number.name} leaves nothing")
    process = up()
    until(etcds, 30)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    check("a second Ctrl-C does not wait", ended(process, 5))
    clean("a second Ctrl-C leaves nothing")


def test_reader_who_does_not_read():
    first = f"{root}/plimsoll-{os.geteuid()}-1"
    reader, writer = os.pipe()
    fcntl.fcntl(writer, F_SETPIPE_SZ, 4096)
    process = up("--tour", size=["--clusters", "2"], stdout=writer)
    os.close(writer)
    check("it comes up", until(lambda: runs(first), 30))
    time.sleep(6)  # a tour has said more than the pipe holds by then
    check("the API server answers though nobody reads what is told", ask(first, "/healthz")[0] == 200)
    process.send_signal(signal.SIGINT)
    check("Ctrl-C ends it though nobody reads", ended(process, 15))
    clean("it leaves nothing")
    os.close(reader)


def test_killed():
    processes = [up(), up()]
    folders = [f"{root}/plimsoll-{os.geteuid()}-{i}" for i in (1, 2)]
    check("two come up side by side", all(until(lambda f=f: runs(f), 30) for f in folders))
    for process in processes:
        process.kill()
        process.wait()
    check("kill -9 leaves etcd", len(etcds()) == 2, etcds())
    old = set(etcds())
    process = up()
    check("the next one comes up", until(lambda: runs(folders[0]) and not old & set(etcds()), 30))
    check("and has ended what both have left", not old & set(etcds()), etcds())
    process.terminate()
    ended(process, 15)
    clean("nothing is left of any of them")


def test_folder_by_other_names():
    process = up("--data", "kept")
    check("it comes up in a folder", until(lambda: runs(f"{root}/kept"), 30))
    process.kill()
    process.wait()
    old = set(etcds())
    process = up("--data", f"{root}/./kept")
    check("by another name it is the same", until(lambda: runs(f"{root}/kept") and len(etcds()) == 1, 30) and
          old and not old & set(etcds()), f"{old} {etcds()}")
    process.terminate()
    ended(process, 15)
    clean("nothing runs any more")


def test_names_of_clusters():
    first = f"{root}/plimsoll-{os.geteuid()}-1"
    clusters = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/clusters"
    process = up()
    check("it comes up", until(lambda: runs(first), 30))
    for name in ("management", "n" * 200):
        body = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": name},
                "spec": {"controlPlaneEndpoint": {"host": "h", "port": 1}}}
        status, answer = ask(first, clusters, "POST", body)
        check(f"a Cluster {name[:12]} is made", status == 201, answer)
    time.sleep(1)
    before = cpu_seconds(process.pid)
    time.sleep(2)
    check("they keep nobody busy", cpu_seconds(process.pid) - before < 1, cpu_seconds(process.pid) - before)
    for name in ("management", "n" * 200):
        ask(first, f"{clusters}/{name}", "DELETE")
    time.sleep(1)
    check("and go without harm", runs(first))
    process.terminate()
    ended(process, 15)
    clean("nothing is left")


try:
    test_signals()
    test_reader_who_does_not_read()
    test_killed()
    test_folder_by_other_names()
    test_names_of_clusters()
finally:
    for pid in etcds():
        os.kill(pid, signal.SIGKILL)
    shutil.rmtree(root, ignore_errors=True)
print(f"up: {passed} passed, {failed} failed")
sys.exit(1 if failed else 0)
