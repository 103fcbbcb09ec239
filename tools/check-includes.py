#!/usr/bin/env python3
"""Keeps the shape of the tree: who may include whom, and nothing left out of the build.

An arrow means "may include"; nothing points back up (docs/ARCHITECTURE.md). Folders that decide
must not open files, read clocks or talk to sockets, so their system headers are listed, too.
Every .c file stands in src/meson.build or tests/**/meson.build."""
import pathlib
import re
import sys

ARROWS = {
    "base": {"base"},
    "model": {"model", "base"},
    "tables": {"tables", "model", "base"},
    "core": {"core", "tables", "model", "base"},
    "lib": {"lib", "core", "tables", "model", "base"},
    "proto": {"proto", "base"},
    "controller": {"controller", "core", "model", "proto", "base"},
    "apiserver": {"apiserver", "model", "proto", "base"},
    "loop": {"loop", "proto", "base"},
    "fleet": {"fleet", "model", "loop", "base"},
}
ARROWS["cli"] = {"cli", *ARROWS}
# Only these may talk to the world outside.
OUTSIDE = {"loop", "fleet", "cli"}
# stdio.h is there for snprintf; what opens files would show in review and in the linker map.
PURE = {"assert.h", "ctype.h", "inttypes.h", "limits.h", "regex.h", "stdalign.h", "stdarg.h", "stdbool.h",
        "stddef.h", "stdint.h", "stdio.h", "stdlib.h", "stdnoreturn.h", "string.h",
        "immintrin.h", "emmintrin.h", "arm_neon.h"}
ONLY_IN = {"yaml.h": {"src/base/yaml.c"}, "wslay/wslay.h": {"src/proto/portforward.c", "src/proto/portserve.c"},
           "nghttp2/nghttp2.h": {"src/proto/grpc.c"},
           "sqlite3.h": {"src/apiserver/store.c"}}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    faults = []

    for path in sorted((root / "src").rglob("*.[ch]")):
        name = path.relative_to(root).as_posix()
        folder = name.split("/")[1]
        if folder not in ARROWS:
            faults.append(f"{name}: folder src/{folder} has no arrows in tools/check-includes.py")
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            found = INCLUDE.match(line)
            if not found:
                continue
            kind, header = found.groups()
            at = f"{name}:{number}"
            if kind == '"':
                target = header.split("/")[0] if "/" in header else None
                if header == "plimsoll.h":
                    continue
                if target is None:
                    faults.append(f'{at}: "{header}": write the folder, too ("{folder}/{header}")')
                elif target not in ARROWS[folder]:
                    allowed = ", ".join(sorted(ARROWS[folder]))
                    faults.append(f'{at}: {folder} may not include "{header}" (only {allowed})')
            elif header in ONLY_IN:
                if name not in ONLY_IN[header]:
                    faults.append(f"{at}: <{header}> belongs in {', '.join(ONLY_IN[header])} only")
            elif folder not in OUTSIDE and header not in PURE:
                faults.append(f"{at}: <{header}>: {folder} does no I/O and reads no clock")

    listed = (root / "src/meson.build").read_text(encoding="utf-8")
    for path in sorted((root / "src").rglob("*.c")):
        if f"'{path.relative_to(root / 'src').as_posix()}'" not in listed:
            faults.append(f"{path.relative_to(root).as_posix()}: not listed in src/meson.build")
    tests = root / "tests"
    listed = "".join(p.read_text(encoding="utf-8") for p in tests.rglob("meson.build"))
    for path in sorted(tests.rglob("*.c")):
        if f"'{path.name}'" not in listed and f"/{path.name}'" not in listed:
            faults.append(f"{path.relative_to(root).as_posix()}: not listed in a meson.build below tests/")

    for fault in faults:
        print(fault, file=sys.stderr)
    sys.exit(1 if faults else 0)


main()
