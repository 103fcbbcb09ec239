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
# With etcd every row can be reached; a tour that does without it must not pass for one that has it.
beyond=0
command -v etcd >/dev/null || beyond='[0-9]+'

start_tour() { # PROFILE: in a folder of its own; the first is the default, which make run does not name
    local more=(--profile "$1")
    [ "$1" != "${profiles[0]}" ] || more=()
    mkdir -p "$work/$1"
    TMPDIR=$work/$1 exec timeout 290 "$program" "${tour[@]}" "${more[@]}" >"$work/$1.out" 2>&1
}

is_complete() { # PROFILE PID
    wait "$2" && grep -qE "^profile $1: .* $beyond out of reach, 0 missed; scenes missed: 0;" "$work/$1.out" && return 0
    echo "the tour in profile $1:"
    grep -E 'MISSED|NOT HEALED|FAILED|^plimsoll|^profile' "$work/$1.out"
    return 1
}

# Machines that build and test at once are slow at times, and a tour waits for each of its scenes only so long: it
# may try twice, and it is said.
complete_or_again() { # PROFILE PID
    is_complete "$@" && return 0
    start_tour "$1" &
    is_complete "$1" $! || return 1
    echo "passed only on the second try: the tour in profile $1"
}

make_runs_it() { make -n run BUILD=the-build | grep -qFx -- "the-build/plimsoll ${tour[*]}"; }

check "make run is another tour than this" make_runs_it
pids=()
for profile in "${profiles[@]}"; do
    start_tour "$profile" &
    pids+=($!)
done
for i in "${!profiles[@]}"; do
    check "the tour in profile ${profiles[$i]}" complete_or_again "${profiles[$i]}" "${pids[$i]}"
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
