"""A port-forward of the rig's own, to prove the rig's path without the program that is tested."""

import base64
import os
import select
import socket
import ssl
import struct
import threading

LIMIT = 1 << 20  # the largest frame that we take


class Tunnel:
    """Listens on loopback; each connection becomes a WebSocket to a Pod's port, by way of the API server."""

    def __init__(self, server, pod, port=2379):
        self.server, self.pod, self.pod_port = server, pod, port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.errors = []  # what came on the error channel
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                local, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(local,), daemon=True).start()

    def _serve(self, local):
        try:
            with local:
                self._carry(local, self._open())
        except OSError as error:
            self.errors.append(str(error))

    def _open(self):
        admin = self.server.admin
        remote = socket.create_connection((admin.host, admin.port), timeout=10)
        if admin.context:
            remote = admin.context.wrap_socket(remote, server_hostname=admin.host)
        key = base64.b64encode(os.urandom(16)).decode()
        remote.sendall((f"GET /api/v1/namespaces/kube-system/pods/{self.pod}/portforward?ports={self.pod_port} HTTP/1.1\r\n"
                        f"Host: {admin.host}\r\nAuthorization: Bearer {admin.token}\r\nUpgrade: websocket\r\n"
                        f"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n"
                        "Sec-WebSocket-Protocol: v4.channel.k8s.io\r\n\r\n").encode())
        head = b""
        while b"\r\n\r\n" not in head:
            piece = remote.recv(1)  # byte by byte: what follows is frames
            if not piece or len(head) > 16384:
                raise OSError(f"no answer to the upgrade: {head[:200]!r}")
            head += piece
        if b" 101 " not in head.split(b"\r\n", 1)[0]:
            raise OSError(head.split(b"\r\n", 1)[0].decode())
        return remote

    @staticmethod
    def _exactly(remote, count):
        data = b""
        while len(data) < count:
            piece = remote.recv(count - len(data))
            if not piece:
                raise OSError("the tunnel ended")
            data += piece
        return data

    def _frame(self, remote):
        first, length = self._exactly(remote, 2)
        if length == 126:
            length = struct.unpack(">H", self._exactly(remote, 2))[0]
        elif length == 127:
            length = struct.unpack(">Q", self._exactly(remote, 8))[0]
        if length > LIMIT:
            raise OSError("a frame that is too long")
        return first & 15, self._exactly(remote, length)

    @staticmethod
    def _head(length):
        """Of a frame with at most 64 KiB. The length must take as few bytes as it can; a mask of zeros is a mask."""
        if length < 126:
            return struct.pack(">BBL", 0x82, 0x80 | length, 0)
        return struct.pack(">BBHL", 0x82, 0x80 | 126, length, 0)

    def _carry(self, local, remote):
        with remote:
            announced = 0
            while True:
                # What TLS has decrypted already does not show in select().
                ready = [remote] if isinstance(remote, ssl.SSLSocket) and remote.pending() else select.select([local, remote], [], [], 30)[0]
                if not ready:
                    return
                if remote in ready:
                    op, payload = self._frame(remote)
                    if op == 8:
                        return
                    if op == 2 and announced < 2:
                        announced += 1  # the port, on each channel
                    elif op == 2 and payload[0] == 1:
                        self.errors.append(payload[1:].decode(errors="replace"))
                    elif op == 2:
                        local.sendall(payload[1:])
                if local in ready:
                    data = local.recv(16384)
                    if not data:
                        return
                    remote.sendall(self._head(len(data) + 1) + b"\0" + data)

    def close(self):
        self.listener.close()
