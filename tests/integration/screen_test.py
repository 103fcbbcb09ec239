#!/usr/bin/env python3
"""What plimsoll up shows on a terminal: screen_test.py PLIMSOLL

It runs in a pseudo terminal whose screen is kept here. What must be read fits 80 columns and 24 lines, the Cluster in
trouble comes first, a window may be resized, and Ctrl-C at any time leaves nothing.
"""
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

PROGRAM = sys.argv[1]
results = []


def check(name, fine, more=""):
    results.append(bool(fine))
    if not fine:
        print(f"FAILED {name}\n{more}")


class Terminal:
    """A terminal as far as the program uses one: home, clear to the end of line and screen, colours, newlines."""

    def __init__(self, columns, rows, term, *arguments):
        self.folder = tempfile.mkdtemp()
        self.bytes = b""
        self.lines = [""]
        self.row = self.column = 0
        env = {**os.environ, "TERM": term, "TMPDIR": self.folder, "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
        env.pop("COLUMNS", None)
        env.pop("NO_COLOR", None)
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(PROGRAM, [PROGRAM, *arguments], env)
        self.resize(columns, rows)

    def resize(self, columns, rows):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.columns, self.rows = columns, rows

    def take(self, text):
        for part in re.split(r"(\x1b\[[0-9;?]*[A-Za-z]|[\r\n])", text):
            if part == "\r":
                self.column = 0
            elif part == "\n":
                self.row += 1
            elif part == "\x1b[H":
                self.row = self.column = 0
            elif part in ("\x1b[2J", "\x1b[J"):
                del self.lines[self.row if part == "\x1b[J" else 0:]
            elif not part.startswith("\x1b"):
                self.lines += [""] * (self.row + 1 - len(self.lines))
                line = self.lines[self.row].ljust(self.column)
                self.lines[self.row] = line[:self.column] + part + line[self.column + len(part):]
                self.column += len(part)
            elif part == "\x1b[K" and self.row < len(self.lines):
                self.lines[self.row] = self.lines[self.row][:self.column]

    def read(self, seconds):
        """What comes within so many seconds; False at the end."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if not select.select([self.fd], [], [], 0.1)[0]:
                continue
            try:
                chunk = os.read(self.fd, 65536)
            except OSError:
                return False
            if not chunk:
                return False
            self.bytes += chunk
            self.take(chunk.decode(errors="replace"))
        return True

    def until(self, text, seconds):
        end = time.monotonic() + seconds
        while text not in self.text() and time.monotonic() < end:
            if not self.read(0.2):
                break
        return text in self.text()

    def text(self):
        return "\n".join(self.lines)

    def leave(self, presses=1):
        """Ctrl-C; the exit code, and what is left in the folder."""
        for _ in range(presses):
            os.write(self.fd, b"\x03")
            self.read(0.2)
        end = time.monotonic() + 30
        while self.read(0.5) and time.monotonic() < end:
            pass
        if time.monotonic() >= end:
            os.kill(self.pid, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        left = os.listdir(self.folder)
        shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self.fd)
        return code, left


def screen():
    t = Terminal(80, 24, "xterm", "up", "--clusters", "3")
    check("the fleet comes up", t.until("3 Clusters, 12 of 12 Machines run, 9 etcd processes; Ctrl-C ends it", 60), t.text())
    kubeconfig = re.search(r"export KUBECONFIG=(\S+)", t.text()).group(1)
    t.read(1)
    check("a tree, and how many have no room", "KubeadmControlPlane/demo-1-cp" in t.text() and
          "... and 2 more Clusters, all healthy" in t.text(), t.text())
    broken = subprocess.run([PROGRAM, "fault", "pod-crash:kube-scheduler", "machine/demo-3-cp-1", "--kubeconfig", kubeconfig],
                            capture_output=True, text=True)
    check("a fault is put there", broken.returncode == 0, broken.stderr)
    check("its transition", t.until("SchedulerPodHealthy True -> False", 20), t.text())
    t.read(1)
    lines = t.lines
    check("no more lines than the screen has", len(lines) <= 24, t.text())
    check("none is wider", max(map(len, lines)) <= 80, t.text())
    head = [i for i, line in enumerate(lines) if line.startswith("NAME")]
    check("who is in trouble comes first", head and lines[head[0] + 1].startswith("Cluster/demo-3"), t.text())
    check("how many are not shown", "... and 2 more Clusters, all healthy" in t.text(), t.text())
    # Of what was stored between two looks, as happens on a busy machine, the delay is not known.
    delay = r"(, stored after \d+ ms)?"
    for words in (r"machine/demo-3-cp-1 SchedulerPodHealthy True -> False$", rf"^ +PodFailed \(PodHealthy/6{delay}\): \S",
                  r"kcp/demo-3-cp ControlPlaneComponentsHealthy True -> False$",
                  rf"^ +NotHealthy \(ControlPlaneComponentsHealthy/8{delay}\)"):
        check(f"whole in 80 columns: {words}", re.search(words, t.text(), re.M), t.text())
    t.resize(140, 50)
    check("a larger window shows more", t.until("  kubectl get kubeadmcontrolplanes -w", 5), t.text())
    t.read(1)
    check("the other Clusters have lines there", re.search(r"^Cluster/demo-1 ", t.text(), re.M), t.text())
    code, left = t.leave()
    check("Ctrl-C ends it with 0", code == 0, t.text())
    check("and leaves nothing", not left, left)
    check("and says so", "Stopped: controller, API server, 9 etcd processes. Nothing is left behind." in t.text(), t.text())


def dumb():
    t = Terminal(80, 24, "dumb", "up", "--clusters", "1")
    check("a dumb terminal gets lines", t.until("KubeadmControlPlane/demo-1-cp EtcdClusterHealthy", 30), t.text())
    code, left = t.leave(2)
    check("without escapes", b"\x1b" not in t.bytes, t.bytes[:200])
    check("Ctrl-C twice", code == 0 and not left, (code, left))


def early():
    for seconds in (0.02, 0.3, 1.0):
        t = Terminal(80, 24, "xterm", "up", "--tour")
        t.read(seconds)
        code, left = t.leave()
        # Before the program has set up anything the signal kills it; then there is nothing to leave.
        check(f"Ctrl-C after {seconds} s", code in (1, -signal.SIGINT) and not left, (code, left, t.text()))


screen()
dumb()
early()
print(f"screen: {sum(results)} passed, {len(results) - sum(results)} failed")
sys.exit(not all(results))
