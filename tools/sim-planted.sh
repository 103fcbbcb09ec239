#!/usr/bin/env bash
# Builds the simulator with one planted mistake after the other (tests/sim/planted.txt) and runs it until the
# mistake is caught: tools/sim-planted.sh [NAME...]. PLANTED_SEEDS (500) is how long each has; the build goes
# to PLANTED_BUILD (build-planted). The last line is "N passed, N failed".
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2

seeds=${PLANTED_SEEDS:-500}
build=${PLANTED_BUILD:-build-planted}
passed=0
failed=0

mkdir -p "$build/planted"
build=$(cd "$build" && pwd)
header=$build/planted/planted_on.h
: >"$header"
# One build directory for all: only the files that include base/planted.h are compiled again.
if [ ! -f "$build/build.ninja" ]; then
    meson setup "$build" "-Dc_args=-DPL_PLANTED_HEADER=<planted_on.h> -I$build/planted" >"$build/log" 2>&1 ||
        { cat "$build/log"; exit 2; }
fi

if [ $# -gt 0 ]; then
    names=("$@")
else
    mapfile -t names < <(awk '/^[A-Z]/ { print $1 }' tests/sim/planted.txt)
fi
for name in "${names[@]}"; do
    if ! grep -q "define PL_PLANT_$name 0" src/base/planted.h; then
        echo "FAILED $name: src/base/planted.h does not know it"
        failed=$((failed + 1))
        continue
    fi
    echo "#define PL_PLANT_$name 1" >"$header"
    if ! ninja -C "$build" tests/sim/plimsoll-sim >"$build/log" 2>&1; then
        tail -n 30 "$build/log"
        echo "FAILED $name: it does not build"
        failed=$((failed + 1))
        continue
    fi
    if caught=$("$build/tests/sim/plimsoll-sim" --seeds "$seeds" --until-caught); then
        echo "FAILED $name: not caught in $seeds seeds"
        failed=$((failed + 1))
    else
        printf 'ok     %-22s %s\n' "$name" "$(grep -m 1 -E '^seed .* violates|broke' <<<"$caught")"
        passed=$((passed + 1))
    fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
