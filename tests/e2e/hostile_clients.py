#!/usr/bin/env python3
"""Clients that mean no good, on the embedded API server and on the playground: hostile_clients.py [-k WORD]... [--list] [--keep]

Raw sockets, for no library sends such things. Each case prints ok or FAILED and its time; the last line is
"hostile: N passed, N failed". The server is build/tests/e2e_apiserver, or $APISERVER, the program build/plimsoll, or
$PLIMSOLL. After each case a plain client must be answered by the same process.
"""

import gzip
import http.client
import json
import os
import re
import resource
import socket
import ssl
import stat
import struct
import subprocess
import sys
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kubectl_suite import APISERVER, ROOT, Server, choose, frame, read_frame  # noqa: E402
from rig.proc import Supervisor, free_port, wait_for  # noqa: E402

PLIMSOLL = os.environ.get("PLIMSOLL", os.path.join(ROOT, "build", "plimsoll"))
MAPS = "/api/v1/namespaces/default/configmaps"
MEBIBYTE = 1 << 20
CASES = []
with open(APISERVER, "rb") as program:
    SLACK = 700 if b"__asan_init" in program.read() else 0  # MiB that a sanitizer keeps of what was freed


def case(function):
    CASES.append(function)
    return function


def config(name, **data):
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})


class Answer:
    """What a raw client got, until the answer was whole or the connection ended."""

    def __init__(self, data):
        head, _, self.body = data.partition(b"\r\n\r\n")
        self.head = head.decode("latin-1")
        words = self.head.split(" ", 2)
        self.status = int(words[1]) if len(words) > 1 else None  # None: closed without a word

    @property
    def reason(self):
        start = self.body.find(b"{")
        return json.JSONDecoder().raw_decode(self.body[start:].decode())[0].get("reason") if start >= 0 else None

    def __repr__(self):
        return f"{self.head.splitlines()[0] if self.head else 'closed'} {self.body[:300]!r}"


def is_whole(got):
    head, end, body = got.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)\r\nContent-Length: (\d+)", head)
    return bool(end and length) and len(body) >= int(length[1]) and b" 100 " not in head[:13]


class Target:
    """One server, and ways to be rude to it."""

    def __init__(self, supervisor, name):
        self.supervisor = supervisor
        self.server = Server(supervisor, name, "--cluster", "prod")

    def dial(self, timeout=20):
        return socket.create_connection((self.server.host, self.server.port), timeout=timeout)

    def open(self, data):
        client = self.dial()
        client.sendall(data if isinstance(data, bytes) else data.encode("latin-1"))
        return client

    def raw(self, data, half_close=False, until_end=False):
        with self.dial() as client:
            try:
                client.sendall(data if isinstance(data, bytes) else data.encode("latin-1"))
                if half_close:
                    client.shutdown(socket.SHUT_WR)
            except (BrokenPipeError, ConnectionResetError):
                pass  # it may have had enough already
            got = b""
            try:
                while (until_end or not is_whole(got)) and (piece := client.recv(MEBIBYTE)):
                    got += piece
            except ConnectionResetError:
                pass
            return Answer(got)

    def ask(self, method, path, body=b"", headers="", host="127.0.0.1", version="HTTP/1.1"):
        if isinstance(body, str):
            body = body.encode()
        length = f"Content-Length: {len(body)}\r\n" if body else ""
        return self.raw(f"{method} {path} {version}\r\nHost: {host}\r\nConnection: close\r\n{length}{headers}\r\n"
                        .encode("latin-1") + body)

    def patch(self, count, name, size):
        """Many writes by one client that keeps its connection."""
        client = http.client.HTTPConnection(self.server.host, self.server.port, timeout=20)
        for i in range(count):
            client.request("PATCH", f"{MAPS}/{name}", json.dumps({"data": {"i": str(i), "text": "y" * size}}),
                           {"Content-Type": "application/merge-patch+json"})
            answer = client.getresponse()
            answer.read()
            assert answer.status == 200, answer.status
        client.close()

    def memory(self):
        return self.server.process.memory_kib() // 1024

    def files(self):
        return len(os.listdir(f"/proc/{self.server.process.pid}/fd"))

    def is_well(self):
        assert self.server.process.running(), "the server is gone: " + self.server.process.tail()
        status = self.server.request("GET", "/api/v1/namespaces/default")[0]  # within 20 s, on any machine
        assert status == 200, status


def expect(answer, status, reason=None):
    assert answer.status == status, f"{answer}, want {status}"
    assert reason is None or answer.reason == reason, f"{answer}, want {reason}"


# --- requests that are wrong -------------------------------------------------------------------------

@case
def queries(t):
    for query, status, reason in (
            ("limit=-1", 200, None), ("limit=x", 400, "BadRequest"), ("limit=99999999999999999999", 400, "BadRequest"),
            ("continue=garbage", 400, "BadRequest"), ("continue=%00", 400, "BadRequest"),
            ("resourceVersion=x", 400, "BadRequest"), ("resourceVersion=-1", 400, "BadRequest"),
            ("resourceVersion=99999999999999999999", 400, "BadRequest"),
            ("watch=1&resourceVersion=1&resourceVersionMatch=Exact", 422, "Invalid"),
            ("resourceVersion=1&resourceVersionMatch=Often", 422, "Invalid"),
            ("labelSelector=a%20b", 400, "BadRequest"), ("labelSelector=a%3D%3D%3D", 400, "BadRequest"),
            ("labelSelector=%28", 400, "BadRequest"), ("fieldSelector=a", 400, "BadRequest"),
            ("fieldSelector=spec.nothing%3D1", 400, "BadRequest"), ("timeoutSeconds=x", 400, "BadRequest"),
            ("timeoutSeconds=99999999999", 200, None), ("timeoutSeconds=-1", 200, None),
            ("limit=1&limit=2", 200, None), ("a=b;c=d&&&=", 200, None)):
        expect(t.ask("GET", f"{MAPS}?{query}"), status, reason)
    expect(t.ask("GET", MAPS + "?labelSelector=" + "a%3Db," * 3000 + "a%3Db"), 400, "BadRequest")


@case
def paths(t):
    for path, status in (
            ("/api/v1//namespaces", 404), ("//api/v1/namespaces", 404), ("/api/v1/namespaces/../nodes", 404),
            ("/api/v1/./namespaces", 404), ("/api/v1/namespaces/default/configmaps/a%2fb", 404),
            ("/api/v1/namespaces/default/configmaps/a%00b", 404), ("/api/v1/namespaces/default/configmaps/%ff", 404),
            ("/api/v1/namespaces/default/configmaps/%22%0a%1b", 404), ("/api/v1/configmaps/c1", 404), ("*", 404),
            ("/clusters/", 404), ("/clusters/%2e%2e/api", 404), ("/clusters//api", 404), ("/clusters/prod%00/api", 404),
            ("/clusters/prod/../management/api", 404), ("/clusters/prod/clusters/management/api", 404),
            ("/clusters/" + "x" * 5000 + "/api", 404), ("/api/v1/namespaces/" + "x" * 5000, 404), ("/%zz", 404)):
        answer = t.ask("GET", path)
        expect(answer, status)
        if path.startswith("/api/"):
            assert answer.reason == "NotFound", answer
            json.loads(answer.body.decode())  # whatever the name was


@case
def methods(t):
    for method in ("OPTIONS", "TRACE", "CONNECT", "BREW", "get", "X" * 100):
        expect(t.ask(method, MAPS), 405, "MethodNotAllowed")
    for path, status in (("/api/v1/namespaces/default", 405), (MAPS, 405), (MAPS + "?watch=1", 405), ("/healthz", 200)):
        answer = t.raw(f"HEAD {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", until_end=True)
        assert answer.status == status and answer.body == b"", answer


@case
def headers(t):
    path = "/api/v1/namespaces/default"
    expect(t.ask("GET", path, headers="X: " + "y" * 40000 + "\r\n"), 431)
    expect(t.ask("GET", path, headers="".join(f"X{i}: y\r\n" for i in range(5000))), 431)
    expect(t.ask("GET", path, headers="no colon\r\n"), 400)
    expect(t.raw(f"GET {path} HTTP/1.1\r\n\r\n"), 400)
    expect(t.ask("GET", path, version="HTTP/9.9"), 505)
    expect(t.ask("GET", path, version="HTTP/1.0"), 200)
    expect(t.ask("GET", MAPS, headers="Accept: ;;;,,,\r\n"), 406, "NotAcceptable")
    expect(t.ask("GET", MAPS, headers="Accept: application/json;as=Poem;g=meta.k8s.io;v=v1\r\n"), 406, "NotAcceptable")
    with t.open(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 50) as client:  # without waiting for answers
        got = b""
        while got.count(b'"kind":"Namespace"') < 50:
            piece = client.recv(MEBIBYTE)
            assert piece, got[-300:]
            got += piece
    expect(t.raw(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", half_close=True), 200)


@case
def bodies(t):
    as_json = "Content-Type: application/json\r\n"
    head = f"POST {MAPS} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n{as_json}"
    chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    expect(t.raw(head + "Content-Length: -5\r\n\r\n{}"), 400)
    expect(t.raw(head + "Content-Length: x\r\n\r\n{}"), 400)
    expect(t.raw(head + "Content-Length: 99999999999999999999999\r\n\r\n{}"), 413)
    expect(t.raw(head + "Content-Length: 1000000000\r\n\r\n{}"), 413, "RequestEntityTooLarge")
    expect(t.raw(head + "Content-Length: 10\r\n\r\n" + config("c")), 400, "BadRequest")  # shorter than it is
    assert t.raw(head + "Content-Length: 5000\r\n\r\n" + config("c"), half_close=True).status is None
    expect(t.raw(head + "Transfer-Encoding: gzip\r\n\r\nabc"), 501)
    for bad in (b"zz\r\nabc\r\n", b"-5\r\nabc\r\n"):
        expect(t.raw(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + bad + b"0\r\n\r\n"), 400)
    chunked = f"{head}Transfer-Encoding: chunked\r\n\r\n".encode()
    expect(t.raw(chunked + chunk * 50 + b"0\r\n\r\n"), 413, "RequestEntityTooLarge")
    assert t.raw(chunked + chunk * 1600).status is None, "100 MiB of chunks were read"
    expect(t.ask("POST", MAPS, gzip.compress(config("c").encode()), as_json + "Content-Encoding: gzip\r\n"), 400, "BadRequest")
    expect(t.ask("POST", MAPS, '{"a":' * 20000 + "1" + "}" * 20000, as_json), 400, "BadRequest")
    expect(t.ask("POST", MAPS, config("c") * 2, as_json), 400, "BadRequest")
    expect(t.ask("POST", MAPS, b"\xef\xbb\xbf" + config("c").encode(), as_json), 400, "BadRequest")
    expect(t.ask("POST", MAPS, config("a\0b"), as_json), 422, "Invalid")
    expect(t.ask("POST", MAPS, b"k8s\0\x0a\xff\xff\xff", "Content-Type: application/vnd.kubernetes.protobuf\r\n"), 415)
    names = ["a: &a [x,x,x,x,x,x,x,x,x]"]
    names += [f"{b}: &{b} [{','.join(['*' + a] * 9)}]" for a, b in zip("abcdefg", "bcdefgh")]
    expect(t.ask("PATCH", MAPS + "/c?fieldManager=m", "\n".join(names), "Content-Type: application/apply-patch+yaml\r\n"), 400,
           "BadRequest")
    expect(t.ask("GET", MAPS + "/c"), 404)


# --- a browser -----------------------------------------------------------------------------------------

@case
def web_pages(t):
    """What a page that somebody looks at on this machine can make the browser send."""
    for host in ("evil.example", "evil.example:80", "127.0.0.1.nip.io", "0.0.0.0", "localhost.evil.example", ":80"):
        expect(t.ask("GET", MAPS, host=host), 403, "Forbidden")
    for header in ("Origin: http://evil.example", "Origin: null", "Origin: http://127.0.0.1:1", "Sec-Fetch-Site: cross-site",
                   "Sec-Fetch-Site: same-site"):
        for method, path, body in (("POST", MAPS, config("page")), ("DELETE", MAPS, ""),
                                   ("GET", "/api/v1/namespaces/default/pods/p/portforward?ports=1", "")):
            expect(t.ask(method, path, body, header + "\r\n"), 403, "Forbidden")
    expect(t.ask("GET", MAPS + "/page"), 404)
    own = f"127.0.0.1:{t.server.port}"
    for host, header in ((own, f"Origin: http://{own}"), (own, "Sec-Fetch-Site: none"), ("localhost", ""), ("[::1]:9", "")):
        expect(t.ask("GET", MAPS, host=host, headers=header + "\r\n" if header else ""), 200)


# --- clients that do not take, or leave ------------------------------------------------------------------

@case
def idle_connections(t):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = min(2000, hard - 200)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count + 200), hard))
    before, files = t.memory(), t.files()
    clients = [t.dial() for _ in range(count)]
    t.is_well()
    wait_for("all of them", lambda: t.files() >= files + count)
    print(f"    {count} connections: {t.memory() - before} MiB", flush=True)
    assert t.memory() - before < 100 + SLACK
    for client in clients:
        client.close()
    wait_for("the server to let go", lambda: t.files() < files + 20)


@case
def deaf_watches(t):
    """They never read while 10,000 events come; those that read later get all of it, or 410."""
    expect(t.ask("POST", MAPS, config("loud"), "Content-Type: application/json\r\n"), 201)
    before, files, count = t.memory(), t.files(), 100
    clients = [t.open(f"GET {MAPS}?watch=1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n") for _ in range(count)]
    t.patch(10000, "loud", 1500)
    grown = t.memory() - before
    print(f"    {count} deaf watches, 10,000 events of 2 KB: {grown} MiB", flush=True)
    assert grown < 100 + SLACK, grown  # the log of revisions has some of it
    got = b""
    while b'"i":"9999"' not in got and b'"type":"ERROR"' not in got:
        piece = clients[0].recv(MEBIBYTE)
        assert piece, got[-300:]
        got = got[-3000:] + piece
    for client in clients:
        client.close()
    wait_for("the server to let go", lambda: t.files() < files + 20)


@case
def large_answers_unread(t):
    for i in range(30):
        expect(t.ask("POST", MAPS, config(f"large-{i}", text="x" * 900_000), "Content-Type: application/json\r\n"), 201)
    before = t.memory()
    watches = [t.open(f"GET {MAPS}?watch=1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n") for _ in range(100)]
    t.is_well()
    grown = t.memory() - before
    print(f"    100 unread watches of 27 MB: {grown} MiB", flush=True)
    assert grown < 250 + SLACK, grown
    lists = [t.open(f"GET {MAPS} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n") for _ in range(20)]
    # Some have their list waiting for them, the others were told to come again; what is small gets through.
    answers = [client.recv(12, socket.MSG_WAITALL) for client in lists]
    assert answers.count(b"HTTP/1.1 200") >= 5 and answers.count(b"HTTP/1.1 429") >= 5, answers
    refused = lists[answers.index(b"HTTP/1.1 429")].recv(MEBIBYTE)
    assert b"Retry-After: 1\r\n" in refused and b'"TooManyRequests"' in refused, refused
    t.is_well()
    for client in watches + lists:
        client.close()
    wait_for("room for a list", lambda: t.ask("GET", MAPS).status == 200)
    expect(t.ask("DELETE", MAPS), 200)


@case
def half_bodies(t):
    before = t.memory()
    head = f"POST {MAPS} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 3000000\r\n\r\n".encode()
    clients = [t.open(head + b"x" * 2_999_000) for _ in range(150)]
    time.sleep(1)  # all that it reads, it has read
    t.is_well()
    grown = t.memory() - before
    print(f"    150 bodies of 3 MB without their end: {grown} MiB", flush=True)
    assert grown < 300 + SLACK, grown
    for client in clients:
        client.close()
    wait_for("room for a body", lambda: t.ask("POST", MAPS, config("later", text="x" * 900_000),
                                              "Content-Type: application/json\r\n").status in (201, 409))


@case
def gone_in_the_middle(t):
    files = t.files()
    pieces = (f"GET {MAPS}?watch=1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", f"GET {MAPS} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
              f"POST {MAPS} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n\r\n" + "x" * 50000)
    for i in range(300):
        client = t.open(pieces[i % 3])
        if i % 2:  # a reset, not an end
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if i % 5 == 0:
            time.sleep(0.005)
        client.close()
    wait_for("the server to let go", lambda: t.files() < files + 10, 10)


# --- port-forward ----------------------------------------------------------------------------------------

UPGRADE = ("Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
           "Sec-WebSocket-Protocol: v4.channel.k8s.io\r\n")


def upgrade(t, port, pod="p", more=b""):
    client = t.open(f"GET /api/v1/namespaces/default/pods/{pod}/portforward?ports={port} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                    f"Connection: Upgrade\r\n{UPGRADE}\r\n".encode() + more)
    stream = client.makefile("rb")
    assert b" 101 " in stream.readline()
    while stream.readline() != b"\r\n":
        pass
    for channel in range(2):
        assert read_frame(stream) == (2, struct.pack("<BH", channel, port))
    return client, stream


@case
def port_forwards(t):
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    expect(t.ask("POST", "/api/v1/namespaces/default/pods", json.dumps(pod), "Content-Type: application/json\r\n"), 201)
    path = "/api/v1/namespaces/default/pods/p/portforward?ports=1"
    for wrong, right in (("websocket", "Websocket2"), ("Version: 13", "Version: 12"), ("v4.channel.k8s.io", "v5.x"),
                         ("Sec-WebSocket-Key: A", "X-Key: A"), ("A==", "A" * 200)):
        expect(t.raw(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\n{UPGRADE.replace(wrong, right)}\r\n",
                     half_close=True), 400, "BadRequest")
    for ports in ("", "ports=0", "ports=65536", "ports=1&ports=2", "ports=x"):
        expect(t.raw(f"GET {path.split('?', 1)[0]}?{ports} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\n{UPGRADE}\r\n",
                     half_close=True), 400, "BadRequest")
    for method in ("DELETE", "PUT"):
        expect(t.ask(method, path), 405, "MethodNotAllowed")
    files = t.files()
    # To a port that nobody listens on, with bytes on their way already: why it ends is told all the same.
    dead = free_port()
    for _ in range(20):
        client, stream = upgrade(t, dead, more=frame(b"\0" + b"hello" * 1000))
        opcode, payload = read_frame(stream)
        assert opcode == 2 and payload[0] == 1 and b"connection refused" in payload, (opcode, payload)
        assert read_frame(stream)[0] == 8
        client.close()
    with socket.create_server(("127.0.0.1", 0), backlog=200) as listener:
        port = listener.getsockname()[1]
        # Against the rules: no mask, a reserved bit, a control frame that is too long, a length without end.
        for bad in (b"\x82\x03\0hi", b"\xf2\x83\0\0\0\0\0hi", b"\x89\xfe\x01\x00" + b"\0" * 300,
                    b"\x82\xff\x7f" + b"\xff" * 7 + b"\0\0\0\0x"):
            client, stream = upgrade(t, port)
            client.sendall(bad)
            assert read_frame(stream) == (8, b"\x03\xea"), bad
            client.close()
        # A pod that does not read: the client is stopped, and others are not.
        client, stream = upgrade(t, port)
        client.settimeout(1)
        sent, message = 0, frame(b"\0" + b"x" * 60000)
        try:
            while sent < 200:
                client.sendall(message)
                sent += 1
        except TimeoutError:
            pass
        assert sent < 200, "12 MB went to a pod that reads nothing"
        t.is_well()
        client.close()
        stream.close()
        # Clients that leave, and others that stay silent.
        silent = [upgrade(t, port) for _ in range(50)]
        for i, (client, stream) in enumerate(silent):
            if i % 2:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            stream.close()
            client.close()
    wait_for("the server to let go", lambda: t.files() < files + 10, 10)


# --- beyond this machine -----------------------------------------------------------------------------------

def everything_in(folder):
    for root, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(root, name)
            yield path, os.lstat(path)


@case
def beyond_loopback(t):
    """An address that others can reach: TLS and a token, and neither is left out; what holds the token is ours alone."""
    token = "correct-horse-battery"
    token_file = t.supervisor.write("token", token + "\n")
    folder, home = t.supervisor.path("data"), t.supervisor.path("home")
    os.makedirs(home)
    os.makedirs(folder, mode=0o755)  # somebody's folder, open to all
    with open(os.path.join(folder, "kubeconfig"), "w", encoding="ascii") as f:
        f.write("# old\n")
    os.chmod(f.name, 0o644)
    for address in ("0.0.0.0", "::", "127.example.org"):
        refused = subprocess.run([PLIMSOLL, "up", "--listen", address, "--clusters", "1"], capture_output=True, text=True, timeout=20,
                                 check=False, env={**os.environ, "TMPDIR": home})
        assert refused.returncode == 2 and "token" in refused.stderr, (address, refused)
    short = t.supervisor.write("short", "abc")
    refused = subprocess.run([PLIMSOLL, "up", "--token-file", short], capture_output=True, text=True, timeout=20, check=False)
    assert refused.returncode == 2 and "at least" in refused.stderr, refused
    port = free_port()
    umask = os.umask(0)
    try:
        up = t.supervisor.run("up", [PLIMSOLL, "up", "--listen", "0.0.0.0", "--port", str(port), "--token-file", token_file, "--data",
                                     folder, "--clusters", "1", "--replicas", "1"], env={"TMPDIR": home})
    finally:
        os.umask(umask)
    try:
        kubeconfig = os.path.join(folder, "kubeconfig")
        wait_for("the kubeconfig", lambda: token in open(kubeconfig, encoding="ascii").read(), 30)

        def ask(path, header=None):
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            client = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=10)
            client.request("GET", path, headers={"Authorization": header} if header else {})
            answer = client.getresponse()
            body = answer.read()
            client.close()
            return answer.status, json.loads(body) if b"kind" in body else body
        assert ask("/api/v1/namespaces", f"Bearer {token}")[0] == 200
        assert ask("/api/v1/namespaces", f"bearer {token}")[0] == 200
        for wrong in (None, "Bearer ", "Bearer x", f"Bearer {token}x", f"Bearer {token[:-1]}", f"Basic {token}", token, "Bearer"):
            for path in ("/api/v1/namespaces", "/clusters/demo-1/api/v1/nodes", "/nothing"):
                status, body = ask(path, wrong)
                assert (status, body["kind"], body["reason"]) == (401, "Status", "Unauthorized"), (wrong, path, status, body)
        with socket.create_connection(("127.0.0.1", port), timeout=10) as plain:
            plain.sendall(f"GET /api HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
            assert b"HTTP/1.1 200" not in plain.recv(4096), "plain HTTP was answered"
        wait_for("the Machine's Node", lambda: ask("/clusters/demo-1/api/v1/nodes", f"Bearer {token}")[1].get("items"), 60)
        with open(f"/proc/{up.pid}/cmdline", "rb") as f:
            assert token.encode() not in f.read()
        shown = [f"{path} {stat.filemode(about.st_mode)}" for path, about in everything_in(folder)
                 if about.st_mode & 0o077 and not stat.S_ISLNK(about.st_mode)]
        assert not shown, shown
        for path, about in everything_in(folder):
            if path.endswith(".log") and stat.S_ISREG(about.st_mode):
                with open(path, "rb") as f:
                    assert token.encode() not in f.read(), path
        assert token not in up.output()
    finally:
        assert up.stop(30) == 0, up.tail()


def main():
    cases, keep = choose(__doc__, CASES)
    supervisor = Supervisor(keep)
    passed = failed = 0
    for function in cases:
        begun = time.monotonic()
        target = None
        try:
            target = Target(supervisor, function.__name__)
            function(target)
            target.is_well()
            assert target.server.process.stop() == 0, "the server ended badly: " + target.server.process.tail()
            passed += 1
            print(f"ok      {function.__name__} ({time.monotonic() - begun:.1f} s)", flush=True)
        except Exception:  # whatever it is, the next case goes on
            failed += 1
            print(f"FAILED  {function.__name__} ({time.monotonic() - begun:.1f} s)\n{traceback.format_exc()}", flush=True)
            if target:
                target.server.process.stop()
    print(f"hostile: {passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
