#!/usr/bin/env bash
# Reads the code without running it: clang-tidy, cppcheck, shellcheck, include arrows.
# Each check runs even when one before it failed.
# shellcheck disable=SC2317  # the checks are called by name
set -uo pipefail

build=${LINT_BUILD:-build-lint}
status=0

check() {
    local what=$1
    shift
    if "$@"; then
        echo "ok     $what"
    else
        echo "FAILED $what"
        status=1
    fi
}

# clang-tidy reads the flags of a clang build; of it only a header that protobuf-c writes is needed.
if [ ! -f "$build/build.ninja" ]; then
    CC=clang meson setup "$build" >/dev/null || exit 1
else
    ninja -C "$build" build.ninja >/dev/null || exit 1
fi
ninja -C "$build" src/proto/etcd.pb-c.h >/dev/null || exit 1

# One file a process: clang-tidy 14 carries the state of its va_list checker from one to the next.
tidy() {
    mapfile -t sources < <(find src tests/unit tests/prop tests/bench -name '*.c' | sort)
    printf '%s\0' "${sources[@]}" |
        xargs -0 -P "$(nproc)" -n 1 clang-tidy --quiet -p "$build" 2> >(grep -v 'warnings generated' >&2)
}

run_cppcheck() {
    cppcheck --quiet --std=c11 --error-exitcode=1 --inline-suppr -j "$(nproc)" \
        --enable=warning,performance,portability --suppressions-list=.cppcheck-suppressions \
        -I include -I src -DPL_VERSION='"0"' src
}

scripts() {
    mapfile -t shell < <(grep -lE '^#!.*(ba)?sh$' .ci/* tools/* tests/golden/* 2>/dev/null)
    shellcheck "${shell[@]}"
}

check "include arrows and lists of sources" tools/check-includes.py
check "shellcheck" scripts
check "cppcheck" run_cppcheck
check "clang-tidy" tidy
exit "$status"
