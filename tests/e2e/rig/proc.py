"""Processes that cannot outlive the rig, and the temporary folder that they work in."""

import atexit
import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

_PR_SET_PDEATHSIG = 1


def _die_with_parent():
    """Asks the kernel for SIGKILL when the rig itself is killed, so that nothing is left behind."""
    with contextlib.suppress(OSError):
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def free_port():
    """A port on loopback that is free now. Servers that we start bind it within a second or so."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Process:
    """One child in a process group of its own, with its output in a file."""

    def __init__(self, supervisor, name, argv, env=None, cwd=None, separate_stdout=False):
        self.name = name
        self.argv = [str(a) for a in argv]
        self.env = env
        self.cwd = cwd
        self.supervisor = supervisor
        self.log = os.path.join(supervisor.dir, "logs", name + ".log")
        self.out = os.path.join(supervisor.dir, "logs", name + ".out") if separate_stdout else self.log
        self.popen = None
        self.start()

    def start(self):
        with open(self.log, "ab") as log, open(self.out, "ab") as out:
            environment = dict(os.environ)
            environment.update(self.env or {})
            self.popen = subprocess.Popen(
                self.argv, stdin=subprocess.DEVNULL, stdout=out, stderr=log, env=environment,
                cwd=self.cwd, start_new_session=True, preexec_fn=_die_with_parent)
        return self

    @property
    def pid(self):
        return self.popen.pid

    def running(self):
        return self.popen is not None and self.popen.poll() is None

    def signal(self, number):
        if self.running():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.popen.pid, number)

    def pause(self):
        self.signal(signal.SIGSTOP)

    def resume(self):
        self.signal(signal.SIGCONT)

    def kill(self):
        """kill -9, and wait until it is gone."""
        self.signal(signal.SIGKILL)
        if self.popen is not None:
            self.popen.wait(10)

    def stop(self, timeout=10):
        """SIGTERM; returns the exit code, or None if it had to be killed."""
        self.resume()
        self.signal(signal.SIGTERM)
        return self.wait(timeout)

    def wait(self, timeout):
        try:
            return self.popen.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    def restart(self, stop=True):
        if stop:
            self.stop()
        else:
            self.kill()
        return self.start()

    def output(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()

    def tail(self, lines=40):
        return "\n".join(self.output().splitlines()[-lines:])

    def cpu_seconds(self):
        with open(f"/proc/{self.pid}/stat", encoding="ascii", errors="replace") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def cpu_microseconds(self):
        """The same, finer: what the scheduler counted for its only thread that works."""
        with open(f"/proc/{self.pid}/schedstat", encoding="ascii") as f:
            return int(f.read().split()[0]) / 1e3

    def memory_kib(self, key="VmRSS"):
        with open(f"/proc/{self.pid}/status", encoding="ascii", errors="replace") as f:
            for line in f:
                if line.startswith(key + ":"):
                    return int(line.split()[1])
        return 0


class Supervisor:
    """Owns the folder and the processes. Leaves nothing running, however the rig ends."""

    def __init__(self, keep=False):
        self.dir = tempfile.mkdtemp(prefix="plimsoll-e2e.")
        os.makedirs(os.path.join(self.dir, "logs"))
        self.keep = keep
        self.processes = []
        self.owner = os.getpid()
        atexit.register(self.close)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda n, _frame: sys.exit(128 + n))

    def run(self, name, argv, **options):
        process = Process(self, name, argv, **options)
        self.processes.append(process)
        return process

    def forget(self, process):
        if process.running():
            process.kill()
        if process in self.processes:
            self.processes.remove(process)

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    def write(self, name, text, mode=0o600):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + ".new", "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path + ".new", mode)
        os.replace(path + ".new", path)
        return path

    def close(self):
        if os.getpid() != self.owner:
            return
        for process in reversed(self.processes):
            process.resume()
            process.signal(signal.SIGTERM)
        deadline = time.monotonic() + 5
        for process in reversed(self.processes):
            if process.popen is None:
                continue
            try:
                process.popen.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
        self.processes = []
        if not self.keep:
            shutil.rmtree(self.dir, ignore_errors=True)


def wait_for(what, probe, timeout=30.0, every=0.05):
    """Calls probe until it returns something true; an AssertionError with the last answer if not."""
    deadline = time.monotonic() + timeout
    last = None
    while True:
        try:
            last = probe()
        except (OSError, AssertionError) as error:
            last = error
        else:
            if last:
                return last
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout:g} s for {what}; last: {last!r}")
        time.sleep(every)


_FINDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "tools", "e2e-binaries.sh")


def binaries(*names):
    """Paths by name from tools/e2e-binaries.sh; exits as it does when something cannot be had."""
    done = subprocess.run([_FINDER, *names], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.returncode)
    return dict(line.split("=", 1) for line in done.stdout.split())


class LeftOut(Exception):
    """A case cannot run here, and need not."""


def optional_binary(name):
    """The path of one that most cases do without; LeftOut where it cannot be had. Only CI waits for a build."""
    cached = [] if os.environ.get("CI") == "true" else ["--cached"]
    done = subprocess.run([_FINDER, *cached, name], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode == 77:
        raise LeftOut(f"needs {name}; tools/e2e-binaries.sh {name} builds it")
    if done.returncode != 0:
        raise RuntimeError(f"{_FINDER} {name}: {done.returncode}")
    return done.stdout.strip().split("=", 1)[1]
