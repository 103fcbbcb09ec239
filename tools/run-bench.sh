#!/usr/bin/env bash
# Runs every benchmark of a build directory: run-bench.sh BUILD [ARGS...], e.g. --json.
set -euo pipefail

build=$1
shift
count=0
for bench in "$build"/tests/bench/bench_*; do
    if [ ! -f "$bench" ] || [ ! -x "$bench" ]; then
        continue # a directory of objects
    fi
    count=$((count + 1))
    "$bench" "$@"
done
if [ "$count" -eq 0 ]; then
    echo "no benchmarks in $build/tests/bench" >&2
    exit 1
fi
