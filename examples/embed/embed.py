#!/usr/bin/env python3
"""Embedding plimsoll in Python, with nothing but ctypes: judges snapshots and prints what calls for
attention.

    embed.py LIBRARY FILE...        embed.py ./build/libplimsoll.so examples/alarm.yaml

Exit code 0: all is well, 1: there are findings, 2: the input could not be judged.

Structs are given to the library only as options; results come back as JSON, which is stable and
easier than mirroring every struct. The order of fields below is that of struct pl_options."""
import ctypes
import json
import sys


class Options(ctypes.Structure):
    """struct pl_options of plimsoll.h."""

    _fields_ = [
        ("profile", ctypes.c_int),
        ("explain", ctypes.c_bool),
        ("now_ms", ctypes.c_int64),
        ("clock_ms", ctypes.c_int64),
        ("depth_max", ctypes.c_uint32),
        ("bytes_max", ctypes.c_size_t),
        ("objects_max", ctypes.c_size_t),
        ("allocator", ctypes.c_void_p),
    ]


class Str(ctypes.Structure):
    """struct pl_str of plimsoll.h."""

    _fields_ = [("ptr", ctypes.POINTER(ctypes.c_char)), ("len", ctypes.c_size_t)]

    def text(self):
        return ctypes.string_at(self.ptr, self.len).decode("utf-8")


class Error(Exception):
    """The input could not be judged; the text says where and why."""


class Plimsoll:
    """One context. Use one per thread."""

    def __init__(self, library, profile="tables", explain=False):
        lib = self._lib = ctypes.CDLL(library)
        lib.pl_version.restype = ctypes.c_char_p
        lib.pl_profile_from_name.argtypes = [ctypes.c_char_p, ctypes.POINTER(ctypes.c_int)]
        lib.pl_context_new.argtypes = [ctypes.POINTER(Options)]
        lib.pl_context_new.restype = ctypes.c_void_p
        lib.pl_context_free.argtypes = [ctypes.c_void_p]
        lib.pl_context_free.restype = None
        lib.pl_context_add.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]
        lib.pl_context_next.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)]
        lib.pl_context_error.argtypes = [ctypes.c_void_p]
        lib.pl_context_error.restype = ctypes.c_char_p
        lib.pl_report_json.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        lib.pl_report_json.restype = Str

        number = ctypes.c_int()
        if lib.pl_profile_from_name(profile.encode(), ctypes.byref(number)) < 0:
            raise Error(f"no profile is called {profile!r}")
        self._ctx = lib.pl_context_new(ctypes.byref(Options(profile=number.value, explain=explain)))

    def close(self):
        self._lib.pl_context_free(self._ctx)
        self._ctx = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @property
    def version(self):
        return self._lib.pl_version().decode()

    def evaluate(self, name, data):
        """Yields a report (a dict) for each snapshot in `data` (bytes)."""
        report = ctypes.c_void_p()
        got = self._lib.pl_context_add(self._ctx, name.encode(), data, len(data))
        while got >= 0:
            got = self._lib.pl_context_next(self._ctx, ctypes.byref(report))
            if got <= 0:
                break
            yield json.loads(self._lib.pl_report_json(self._ctx, report).text())
        if got < 0:
            raise Error(self._lib.pl_context_error(self._ctx).decode())


NEGATIVE = {"Deleting", "Remediating"}  # True is the bad news


def findings(report):
    """The conditions that call for attention."""
    for item in report["objects"]:
        for condition in item["conditions"]:
            if condition["type"] in NEGATIVE:
                bad = condition["status"] != "False" or condition["message"]
            else:
                bad = condition["status"] != "True"
            if bad:
                yield item, condition


def main():
    if len(sys.argv) < 3:
        print(f"usage: {sys.argv[0]} LIBRARY FILE...", file=sys.stderr)
        return 2
    count = snapshots = 0
    with Plimsoll(sys.argv[1], explain=True) as plimsoll:
        for path in sys.argv[2:]:
            with open(path, "rb") as file:
                data = file.read()
            try:
                for report in plimsoll.evaluate(path, data):
                    snapshots += 1
                    for item, condition in findings(report):
                        count += 1
                        print(f"{item['kind']} {item['namespace']}/{item['name']} "
                              f"{condition['type']}={condition['status']} ({condition['reason']}), "
                              f"row {condition['row']}")
            except Error as error:
                print(error, file=sys.stderr)
                return 2
        print(f"plimsoll {plimsoll.version}: {snapshots} snapshots, {count} findings")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
