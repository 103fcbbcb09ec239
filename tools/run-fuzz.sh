#!/usr/bin/env bash
# Builds the fuzz targets (clang, libFuzzer, ASan, UBSan) and runs each: run-fuzz.sh SECONDS [TARGET...]
#
# New inputs go to build-fuzz/found/TARGET, never into the repository; an input worth keeping is
# copied to tests/fuzz/corpus/TARGET by hand. A crash leaves its input in build-fuzz/crashes.
set -euo pipefail

seconds=${1:?usage: run-fuzz.sh SECONDS [TARGET...]}
shift
build=${FUZZ_BUILD:-build-fuzz}

if [ ! -f "$build/build.ninja" ]; then
    CC=clang meson setup "$build" -Dfuzz=true -Db_lundef=false >/dev/null
fi
ninja -C "$build" >/dev/null || ninja -C "$build"

targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
    for path in "$build"/tests/fuzz/fuzz_*; do
        if [ -x "$path" ] && [ -f "$path" ]; then
            targets+=("$(basename "$path" | sed 's/^fuzz_//')")
        fi
    done
fi

mkdir -p "$build/crashes"
passed=0
failed=0
for target in "${targets[@]}"; do
    found=$build/found/$target
    corpus=tests/fuzz/corpus/$target
    log=$build/$target.log
    mkdir -p "$found"
    inputs=("$found")
    case $target in
    # The examples are among their seeds, and the largest must not be cut off.
    snapshot | eval) inputs+=(-dict=tests/fuzz/dictionary.txt -max_len=32768) ;;
    esac
    [ -d "$corpus" ] && inputs+=("$corpus")
    if "$build/tests/fuzz/fuzz_$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
        -max_len=16384 -print_final_stats=1 -artifact_prefix="$build/crashes/$target-" \
        "${inputs[@]}" >"$log" 2>&1; then
        passed=$((passed + 1))
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
        echo "ok     fuzz_$target: ${runs:-?} inputs in $seconds s, no crash"
    else
        failed=$((failed + 1))
        tail -n 40 "$log"
        echo "FAILED fuzz_$target: the input is in $build/crashes/$target-*, the log in $log"
    fi
done
echo "fuzz: $passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
