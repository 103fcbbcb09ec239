#!/usr/bin/env python3
"""Servers for etcd_client_test.c: an API server with port-forward, and members that misbehave.

    servers.py DIRECTORY     certificates are there; "ports" is written there, a line "NAME PORT" each

Standard library only; a thread a connection. Every server closes what it has when this process ends."""
import base64
import hashlib
import os
import re
import select
import socket
import ssl
import struct
import sys
import threading
import time

WORK = sys.argv[1]
GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
TOKEN = "Bearer correct-horse"


def path(name):
    return os.path.join(WORK, name)


def context(name, alpn=None):
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(path(name + ".crt"), path(name + ".key"))
    if alpn:
        made.set_alpn_protocols(alpn)
    return made


def serve(name, handle, tls=None):
    """Listens on a free port of 127.0.0.1; handle(connection) has it in a thread."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)

    def one(connection):
        try:
            connection.settimeout(60)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if tls:
                connection = tls.wrap_socket(connection, server_side=True)
            handle(connection)
        except (OSError, ValueError):
            pass
        finally:
            connection.close()

    def accept():
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=one, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return f"{name} {listener.getsockname()[1]}\n"


# --- members that misbehave -------------------------------------------------------------------------

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def header(name, value):
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value


SETTINGS = frame(4, 0, 0, b"")
SETTINGS_ACK = frame(4, 1, 0, b"")
GRPC = b"\x88" + header(b"content-type", b"application/grpc")


def has_call(got):
    """Whether a HEADERS frame is among these."""
    while len(got) >= 9:
        if got[3] == 1:
            return True
        got = got[9 + int.from_bytes(got[:3], "big"):]
    return False


def request(connection):
    """Reads until the first call of the client is there."""
    got = b""
    while not has_call(got[len(PREFACE):]):
        more = connection.recv(65536)
        if not more:
            raise OSError("gone")
        got += more
    connection.sendall(SETTINGS + SETTINGS_ACK)


def hold(connection):
    while connection.recv(65536):
        pass


def garbage(connection):
    connection.sendall(bytes(range(256)) * 64)
    hold(connection)


def huge_message(connection):
    request(connection)
    connection.sendall(frame(1, 4, 1, GRPC) + frame(0, 0, 1, b"\x00\xff\xff\xff\xff" + b"x" * 1000))
    hold(connection)


def endless_message(connection):
    request(connection)
    connection.sendall(frame(1, 4, 1, GRPC))
    connection.sendall(frame(0, 0, 1, b"\x00\x00\x0f\xff\xff"))
    while True:
        connection.sendall(frame(0, 0, 1, b"x" * 16000))


def endless_headers(connection):
    request(connection)
    connection.sendall(frame(1, 0, 1, GRPC))
    while True:
        connection.sendall(frame(9, 0, 1, header(b"x-more", b"y" * 100) * 100))


def many_headers(connection):
    request(connection)
    connection.sendall(frame(1, 0, 1, GRPC + header(b"x-more", b"y" * 120) * 100))
    connection.sendall(frame(9, 4, 1, header(b"x-more", b"y" * 120) * 100))
    hold(connection)


def wrong_type(connection):
    request(connection)
    page = b"<html>hello</html>"
    connection.sendall(frame(1, 4, 1, b"\x88" + header(b"content-type", b"text/html")) + frame(0, 1, 1, page))
    hold(connection)


def half_closed(connection):
    request(connection)
    connection.sendall(frame(1, 4, 1, GRPC))
    connection.unwrap()


def bad_protobuf(connection):
    request(connection)
    connection.sendall(frame(1, 4, 1, GRPC) + frame(0, 0, 1, b"\x00\x00\x00\x00\x04\xff\xff\xff\xff") +
                       frame(1, 5, 1, header(b"grpc-status", b"0")))
    hold(connection)


def drip(connection):
    request(connection)
    for byte in frame(1, 4, 1, GRPC) + frame(0, 0, 1, b"\x00\x00\x00\xff\xff") + frame(0, 0, 1, b"x" * 5000):
        connection.sendall(bytes([byte]))
        time.sleep(0.02)


def goodbye(connection):
    request(connection)
    connection.sendall(frame(7, 0, 0, struct.pack(">II", 0, 0)))
    hold(connection)


def reset(connection):
    request(connection)
    connection.sendall(frame(3, 0, 1, struct.pack(">I", 2)))
    hold(connection)


def plain(connection):
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def at_once(connection):
    connection.close()


# --- an API server, and the kubelet and runtime behind it ----------------------------------------------

def read_head(connection):
    got = b""
    while b"\r\n\r\n" not in got:
        more = connection.recv(4096)
        if not more or len(got) > 65536:
            raise OSError("no request")
        got += more
    head, rest = got.split(b"\r\n\r\n", 1)
    lines = head.decode("latin-1").split("\r\n")
    return lines[0], {k.lower(): v.strip() for k, v in (line.split(":", 1) for line in lines[1:])}, rest


def refuse(connection, status, body):
    connection.sendall(f"HTTP/1.1 {status} x\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())


def ws_frame(payload, opcode=2):
    size = len(payload)
    head = bytes([0x80 | opcode]) + (bytes([size]) if size < 126 else b"\x7e" + struct.pack(">H", size)
                                     if size < 65536 else b"\x7f" + struct.pack(">Q", size))
    return head + payload


def upgrade(connection, headers):
    accept = base64.b64encode(hashlib.sha1((headers["sec-websocket-key"] + GUID).encode()).digest()).decode()
    connection.sendall(("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                        f"Sec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Protocol: v4.channel.k8s.io\r\n\r\n").encode())
    for channel in (0, 1):
        connection.sendall(ws_frame(bytes([channel]) + struct.pack("<H", 2379)))


class Reader:
    """Whole frames of a client: masked, not fragmented, as the runtimes' library wants them."""

    def __init__(self, connection):
        self.connection, self.got = connection, b""

    def take(self, size):
        while len(self.got) < size:
            more = self.connection.recv(65536)
            if not more:
                raise OSError("gone")
            self.got += more
        taken, self.got = self.got[:size], self.got[size:]
        return taken

    def frame(self):
        first, second = self.take(2)
        assert first & 0x80 and second & 0x80, f"not whole, or not masked: {first:02x} {second:02x}"
        size = second & 0x7f
        if size == 126:
            size, = struct.unpack(">H", self.take(2))
        elif size == 127:
            size, = struct.unpack(">Q", self.take(8))
        assert size <= 32 * 1024
        mask, payload = self.take(4), self.take(size)
        key = int.from_bytes((mask * (size // 4 + 1))[:size], "big")
        return first & 0x0f, (int.from_bytes(payload, "big") ^ key).to_bytes(size, "big")


class Locked:
    """Python's TLS sockets are not for two threads at once; here reads wait without holding the lock."""

    def __init__(self, connection):
        self.connection, self.lock = connection, threading.Lock()
        connection.setblocking(False)

    def recv(self, size):
        while True:
            with self.lock:
                try:
                    return self.connection.recv(size)
                except (ssl.SSLWantReadError, ssl.SSLWantWriteError, BlockingIOError):
                    pass
            select.select([self.connection], [], [], 60)

    def sendall(self, data):
        while data:
            with self.lock:
                try:
                    data = data[self.connection.send(data):]
                    continue
                except (ssl.SSLWantReadError, ssl.SSLWantWriteError, BlockingIOError):
                    pass
            time.sleep(0.001)

    def shutdown(self):
        try:
            # Not the TLS socket's own, which would let the reader go on with encrypted bytes.
            socket.socket.shutdown(self.connection, socket.SHUT_RDWR)
        except OSError:
            pass


class Gathered:
    """What is sent goes out as one piece at the end, as from a server that knows its answer at once."""

    def __init__(self, connection):
        self.connection, self.pieces = connection, b""

    def sendall(self, data):
        self.pieces += data

    def flush(self):
        self.connection.sendall(self.pieces)


def nobody_listens(connection):
    connection.sendall(ws_frame(b"\x01error forwarding port 2379 to pod 6f1c, uid : dial tcp4: connection refused"))
    connection.sendall(ws_frame(struct.pack(">H", 1000), 8))


def relay(connection, headers, target):
    connection = Locked(connection)
    upgrade(connection, headers)
    try:
        pod = socket.create_connection(target, 5)
    except OSError:
        nobody_listens(connection)
        return
    pod.settimeout(None)
    pod.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def from_pod():
        try:
            while True:
                data = pod.recv(32 * 1024 - 1)
                if not data:
                    break
                connection.sendall(ws_frame(b"\x00" + data))
            connection.sendall(ws_frame(struct.pack(">H", 1000), 8))
        except OSError:
            pass
        connection.shutdown()

    threading.Thread(target=from_pod, daemon=True).start()
    reader = Reader(connection)
    try:
        while True:
            opcode, payload = reader.frame()
            if opcode == 8:
                break
            if payload[:1] == b"\x00":
                pod.sendall(payload[1:])
    except (OSError, AssertionError) as fault:
        if isinstance(fault, AssertionError):
            with open(path("complaints"), "a", encoding="ascii") as out:
                print(fault, file=out)
    try:
        pod.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    pod.close()


STATUS = '{"kind":"Status","apiVersion":"v1","status":"Failure","message":"%s","code":%d}'


def api_server(connection):
    line, headers, _ = read_head(connection)
    asked = re.fullmatch(r"GET /prefix/api/v1/namespaces/kube-system/pods/etcd-([a-z0-9-]+)/portforward\?ports=2379 "
                         r"HTTP/1\.1", line)
    if headers.get("authorization") != TOKEN:
        refuse(connection, 401, STATUS % ("Unauthorized", 401))
    elif not asked or headers.get("sec-websocket-protocol") != "v4.channel.k8s.io" or \
            headers.get("impersonate-user") != "somebody":
        refuse(connection, 400, "bad request: " + line)
    elif asked[1] == "missing":
        refuse(connection, 404, STATUS % ('pods \\"etcd-missing\\" not found', 404))
    elif asked[1] == "unreachable":
        refuse(connection, 500, "error dialing backend: read tcp 10.0.0.1:%d->10.0.0.2:10250: i/o timeout"
               % connection.getpeername()[1])
    elif asked[1] == "hang":
        hold(connection)
    elif asked[1] == "hang-pod":
        upgrade(connection, headers)
        hold(connection)
    elif asked[1] == "text":
        upgrade(connection, headers)
        connection.sendall(ws_frame(b"\x00hello", 1))
        hold(connection)
    elif asked[1] == "cut":
        upgrade(connection, headers)
    elif asked[1] == "no-listener-at-once":
        gathered = Gathered(connection)
        upgrade(gathered, headers)
        nobody_listens(gathered)
        gathered.flush()
    elif asked[1] == "no-listener":
        relay(connection, headers, ("127.0.0.1", 1))
    else:
        with open(path("etcd-port"), encoding="ascii") as port:
            relay(connection, headers, ("127.0.1." + asked[1][1:], int(port.read())))


def proxy(connection):
    """CONNECT, and nothing else."""
    line, _, rest = read_head(connection)
    asked = re.fullmatch(r"CONNECT ([0-9.]+):([0-9]+) HTTP/1\.[01]", line)
    if not asked:
        refuse(connection, 405, "only CONNECT")
        return
    target = socket.create_connection((asked[1], int(asked[2])), 5)
    target.settimeout(60)
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    target.sendall(rest)

    def copy(source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    threading.Thread(target=copy, args=(target, connection), daemon=True).start()
    copy(connection, target)


def main():
    h2 = context("n1", ["h2"])
    lines = [serve("api", api_server, context("apiserver", ["http/1.1"]))]
    for handle in (garbage, huge_message, endless_message, endless_headers, many_headers, wrong_type, half_closed,
                   bad_protobuf, drip, goodbye, reset):
        lines.append(serve(handle.__name__, handle, h2))
    lines.append(serve("hang_tls", hold, h2))
    lines.append(serve("no_alpn", hold, context("n1")))
    lines.append(serve("wrong_ca", hold, context("impostor", ["h2"])))
    lines.append(serve("hang_tcp", hold))
    lines.append(serve("plain", plain))
    lines.append(serve("at_once", at_once))
    lines.append(serve("proxy", proxy))
    with open(path("ports.new"), "w", encoding="ascii") as out:
        out.writelines(lines)
    os.rename(path("ports.new"), path("ports"))
    threading.Event().wait()


main()
