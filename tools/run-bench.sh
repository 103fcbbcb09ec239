#!/usr/bin/env bash
# Runs every benchmark of a build directory: run-bench.sh BUILD [ARGS...], e.g. --json FILE, --quick.
#
# First the engine; then, where there is an etcd, the playground with a thousand Clusters (with --quick 20); then,
# where a kube-apiserver can be had, the live controller on it with a fleet of BENCH_CLUSTERS workload clusters
# (300; with --quick 20), and what looking at a real etcd costs it.
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

root=$(cd "$(dirname "$0")/.." && pwd)
quick=()
case " $* " in *' --quick '*) quick=(--quick) ;; esac
echo
if command -v etcd >/dev/null; then
    PLIMSOLL=$(realpath "$build/plimsoll") python3 "$root/tests/e2e/bench_playground.py" "${quick[@]}"
else
    echo "no etcd in PATH: the playground is not measured (Debian and Ubuntu: apt install etcd-server)"
fi

clusters=${BENCH_CLUSTERS:-300}
observations=1000
case " $* " in *' --quick '*) clusters=${BENCH_CLUSTERS:-20} observations=100 ;; esac
small=$((clusters < 100 ? clusters : 100))
code=0
"$root/tools/e2e-binaries.sh" >/dev/null || code=$?
if [ "$code" -eq 0 ]; then
    echo
    PLIMSOLL=$(realpath "$build/plimsoll") python3 "$root/tests/e2e/bench.py" --clusters "$clusters" --latency-clusters "$small"
    echo
    PLIMSOLL=$(realpath "$build/plimsoll") python3 "$root/tests/e2e/bench_etcd.py" --observations "$observations"
elif [ "$code" -ne 77 ]; then # 77: it has said in a line what would help
    exit "$code"
fi
