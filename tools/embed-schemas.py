#!/usr/bin/env python3
"""Puts YAML files into a C file: embed-schemas.py OUT.c FILE.yaml...

For src/apiserver/schema.c, which declares what comes out. As numbers, not as a string: ISO C promises no
string literal longer than 4095 bytes, and our warnings are errors."""
import pathlib
import sys


def main():
    out, files = sys.argv[1], sys.argv[2:]
    parts = ['#include "apiserver/schema_files.h"\n']
    rows = []
    for number, name in enumerate(files):
        data = pathlib.Path(name).read_bytes()
        lines = [",".join(str(b) for b in data[i:i + 32]) for i in range(0, len(data), 32)]
        parts.append(f"static const char file_{number}[] = {{\n" + ",\n".join(lines) + "\n};\n")
        rows.append(f'    {{ "{pathlib.Path(name).name}", {{ file_{number}, sizeof file_{number} }} }},\n')
    parts.append("const struct pl_schema_file pl__schema_files[] = {\n" + "".join(rows) + "};\n")
    parts.append(f"const size_t pl__schema_file_count = {len(files)};\n")
    pathlib.Path(out).write_text("\n".join(parts), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
