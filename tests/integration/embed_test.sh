#!/usr/bin/env bash
# The library as others use it: header, symbols, both kinds of linking, the two examples, threads.
#
#     embed_test.sh PROGRAM        with PL_SOURCE_ROOT and PL_BUILD_ROOT set, as Meson does
set -uo pipefail

root=${PL_SOURCE_ROOT:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${PL_BUILD_ROOT:-$root/build}
work=$(mktemp -d "${TMPDIR:-/tmp}/plimsoll-embed.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$root" || exit 2
passed=0
failed=0

# check NAME COMMAND...: its output shows only when it fails.
check() {
    local name=$1
    shift
    if "$@" >"$work/log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED $name"
        sed 's/^/    /' "$work/log"
    fi
}

# What links with a sanitized library must be sanitized the same way, by the same compiler.
shared=$build/libplimsoll.so
cc=gcc
flags=()
if readelf -p .comment "$shared" | grep -q clang; then
    cc=clang
fi
if nm -D "$shared" | grep -q __asan_; then
    flags+=("-fsanitize=address,undefined")
fi
if nm -D "$shared" | grep -q __tsan_; then
    flags+=(-fsanitize=thread)
fi
strict=(-Wall -Wextra -Werror)

# --- the header --------------------------------------------------------------------------------

header_alone() {
    local compiler=$1 standard=$2 language=$3
    echo '#include "plimsoll.h"' |
        "$compiler" -std="$standard" "${strict[@]}" -Wpedantic -Iinclude -x "$language" -fsyntax-only -
}
check "plimsoll.h stands alone as C17" header_alone "$cc" c17 c
for compiler in g++ clang++; do
    if command -v "$compiler" >/dev/null; then
        check "plimsoll.h stands alone as C++17 ($compiler)" header_alone "$compiler" c++17 c++
    fi
done

includes_only_libc() {
    ! grep -E '^ *# *include' include/plimsoll.h | grep -vE '<(stdbool|stddef|stdint)\.h>'
}
check "plimsoll.h includes no internals" includes_only_libc

# --- symbols -----------------------------------------------------------------------------------

exports_what_is_promised() {
    tr '\n' ' ' <include/plimsoll.h | grep -oE 'PL_API [^;(]*\(' | grep -oE 'pl_[a-z0-9_]+ *\(' |
        tr -d ' (' | sort -u >"$work/promised"
    nm -D --defined-only "$shared" | awk '{ print $NF }' | grep -v '^__odr_asan' | sort -u >"$work/exported"
    [ -s "$work/promised" ] && diff -u "$work/promised" "$work/exported"
}
check "libplimsoll.so exports what plimsoll.h declares PL_API, and nothing else" exports_what_is_promised

# --- C -----------------------------------------------------------------------------------------

embed_source=examples/embed/embed.c
check "embed.c compiles and links, shared" "$cc" -std=c17 "${strict[@]}" "${flags[@]}" -Iinclude \
    "$embed_source" -o "$work/embed-shared" -L"$build" -lplimsoll "-Wl,-rpath,$build"
check "embed.c compiles and links, static" "$cc" -std=c17 "${strict[@]}" "${flags[@]}" -Iinclude \
    "$embed_source" -o "$work/embed-static" "$build/libplimsoll.a" -lyaml

# runs CODE TEXT COMMAND...: exits with CODE, and says TEXT somewhere.
runs() {
    local code=$1 text=$2 got=0
    shift 2
    "$@" >"$work/out" 2>&1 || got=$?
    cat "$work/out"
    [ "$got" -eq "$code" ] && grep -qF -- "$text" "$work/out"
}
freed() {
    sed -n 's/^memory: \([0-9]*\) allocations, \([0-9]*\) frees, .*, \([0-9]*\) left$/\1 \2 \3/p' "$work/out" |
        awk 'END { exit !(NR == 1 && $1 > 0 && $1 == $2 && $3 == 0) }'
}
printf '{"kind": "Snapshot",' >"$work/broken.json"
for kind in shared static; do
    embed=$work/embed-$kind
    check "embed.c ($kind): nothing to find" runs 0 ": 1 snapshots, 0 findings" "$embed" examples/healthy.yaml
    check "embed.c ($kind): every allocation is freed" freed
    check "embed.c ($kind): a finding with its row" runs 1 "row EtcdClusterHealthy/" "$embed" examples/alarm.yaml
    check "embed.c ($kind): and its evidence" grep -q '^    - etcd/default/' "$work/out"
    check "embed.c ($kind): every allocation is freed with findings" freed
    check "embed.c ($kind): an error with its place" runs 2 "broken.json:1:21: " "$embed" "$work/broken.json"
    check "embed.c ($kind): every allocation is freed after an error" freed
done

# --- Python ------------------------------------------------------------------------------------

if [ ${#flags[@]} -gt 0 ]; then
    echo "skipped: embed.py, for Python is not built with sanitizers"
elif ! command -v python3 >/dev/null; then
    echo "skipped: embed.py, for there is no python3"
else
    python=(python3 -B examples/embed/embed.py "$shared")
    check "embed.py: nothing to find" runs 0 ": 1 snapshots, 0 findings" "${python[@]}" examples/healthy.yaml
    check "embed.py: a finding with its row" runs 1 "row EtcdClusterHealthy/" "${python[@]}" examples/alarm.yaml
    check "embed.py: an error with its place" runs 2 "broken.json:1:21: " "${python[@]}" "$work/broken.json"

    same_findings() {
        local example
        for example in examples/*.yaml; do
            "${python[@]}" "$example" | grep ' row ' | sort >"$work/python"
            "$work/embed-shared" "$example" | grep ', row ' | sort >"$work/c"
            diff -u "$work/c" "$work/python" || return 1
        done
    }
    check "embed.py finds what embed.c finds, in every example" same_findings
fi

# --- threads -----------------------------------------------------------------------------------

# Two contexts in two threads, with ThreadSanitizer watching; built from the sources, since all of
# them must be instrumented.
tsan_compiler=
for compiler in clang gcc; do
    if echo 'int main(void) { return 0; }' |
        "$compiler" -fsanitize=thread -x c - -o "$work/probe" 2>/dev/null && "$work/probe" 2>/dev/null; then
        tsan_compiler=$compiler
        break
    fi
done
if [ -z "$tsan_compiler" ]; then
    echo "skipped: ThreadSanitizer, which does not run here"
else
    build_for_threads() {
        "$tsan_compiler" -std=c17 -D_POSIX_C_SOURCE=200809L -O1 -g -fsanitize=thread -pthread -Iinclude -Isrc \
            -Itests tests/unit/lib/threads_test.c src/base/*.c src/model/*.c src/tables/*.c src/core/*.c \
            src/lib/*.c -lyaml -o "$work/threads"
    }
    check "threads_test.c builds with ThreadSanitizer" build_for_threads
    check "two threads with a context each do not race" env TSAN_OPTIONS=halt_on_error=1 "$work/threads"
fi

echo "embed: $passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
