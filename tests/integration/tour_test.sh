#!/usr/bin/env bash
# The guided tour of the playground, in both profiles at once: tour_test.sh PLIMSOLL
#
# It must end by itself in less than five minutes, miss no row, and leave neither a process nor a folder behind; so must
# a playground that is interrupted. The first of them is what `make run` starts, so no other stage needs to wait for it.
set -uo pipefail

program=$1
passed=0 failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

check() { # NAME COMMAND...
    local name=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED $name"
    fi
}

# Processes whose command line names our folder.
left_running() {
    local line
    for line in /proc/[0-9]*/cmdline; do
        { tr '\0' ' ' <"$line"; } 2>/dev/null | grep -qF -- "$work/" && echo "$line"
    done
}

nothing_left() { [ -z "$(ls -A "$1")" ] && [ -z "$(left_running)" ]; }

tour=(up --tour --clusters 2)
profiles=(tables cluster-api-1.12)
more=("" "--profile=cluster-api-1.12")
pids=()
for i in "${!profiles[@]}"; do
    profile=${profiles[$i]}
    mkdir "$work/$profile"
    # shellcheck disable=SC2086  # empty is no argument
    TMPDIR=$work/$profile timeout 290 "$program" "${tour[@]}" ${more[$i]} >"$work/$profile.out" 2>&1 &
    pids+=($!)
done
make_runs_it() { make -n run BUILD=the-build | grep -qFx -- "the-build/plimsoll ${tour[*]}"; }
check "make run is another tour than this" make_runs_it
for i in "${!profiles[@]}"; do
    profile=${profiles[$i]}
    wait "${pids[$i]}"
    code=$?
    check "the tour in profile $profile ends with $code" [ "$code" -eq 0 ]
    [ "$code" -eq 0 ] || grep -E 'MISSED|NOT HEALED|FAILED|^plimsoll|^profile' "$work/$profile.out"
    check "profile $profile misses no row" grep -qE "^profile $profile: .* 0 missed; scenes missed: 0;" "$work/$profile.out"
done
for profile in "${profiles[@]}"; do
    check "profile $profile leaves nothing" nothing_left "$work/$profile"
done

# Interrupted while it comes up.
mkdir "$work/interrupted"
TMPDIR=$work/interrupted timeout 60 "$program" up --clusters 1 >"$work/interrupted.out" 2>&1 &
pid=$!
for _ in $(seq 100); do
    grep -q KUBECONFIG "$work/interrupted.out" && break
    sleep 0.1
done
sleep 1
kill -INT "$(ps -o pid= --ppid "$pid" | tr -d ' ')"
wait "$pid"
code=$?
check "an interrupted playground ends with $code" [ "$code" -eq 0 ]
check "an interrupted playground leaves nothing" nothing_left "$work/interrupted"

echo "tour: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
