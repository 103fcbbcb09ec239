#!/usr/bin/env bash
# All tests of a build directory, then the end-to-end suites where they can run: test.sh BUILD
#
# The suites need a kube-apiserver. One that is there (built before, on PATH, or in KUBEBUILDER_ASSETS) is
# used; with CI=true it is built, which takes minutes once; otherwise one line says how to have it.
# With CI=true the same cases also run on the embedded API server, and both servers get the same random calls.
# The last line is "N passed, N failed", over everything.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2

build=$1
log=$(mktemp "${TMPDIR:-/tmp}/plimsoll-test.XXXXXX")
trap 'rm -f "$log" "$log".*' EXIT
cache=${PLIMSOLL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/plimsoll}
fixed_seeds=10 fresh_seeds=5 # of the differential test

is_ci() { [ "${CI:-}" = true ]; }

have_apiserver() {
    is_ci || [ -n "${KUBEBUILDER_ASSETS:-}" ] || command -v kube-apiserver >/dev/null ||
        compgen -G "$cache/kube-apiserver-*" >/dev/null
}

# One group of the suite: group API NAME
group() {
    API=$1 PLIMSOLL=$program python3 tests/e2e/suite.py --retry --group "$2"
}

# Each run of it is a case. What differs is printed with its seed.
differential() {
    local passed=0 failed=0 first
    for first in 1 $((RANDOM * 32768 + RANDOM + 1000)); do
        echo "seeds from $first:"
        if APISERVER=$(dirname "$program")/tests/e2e_apiserver python3 tests/e2e/differential.py --seed "$first" \
            --seeds "$([ "$first" -eq 1 ] && echo $fixed_seeds || echo $fresh_seeds)"; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            echo "FAILED differential.py --seed $first"
        fi
    done
    echo "e2e: $passed passed, $failed failed"
}

# Side by side, each with servers of its own: most of their time is waiting. What one says comes when it is
# done; what they need is built before.
suites() {
    local i pids=()
    program=$(realpath "$build/plimsoll")
    for i in "${!jobs[@]}"; do
        # shellcheck disable=SC2086  # a job is words
        ${jobs[$i]} >"$log.$i" 2>&1 &
        pids+=($!)
    done
    for i in "${!jobs[@]}"; do
        wait "${pids[$i]}"
        echo
        echo "${jobs[$i]}:"
        tee -a "$log" <"$log.$i"
    done
}

jobs=()
if have_apiserver; then
    jobs=("group real controller" "group real etcd" "group real acting")
fi
if is_ci; then
    jobs+=("group embedded controller" "group embedded etcd" "group embedded acting" differential)
    tools/e2e-binaries.sh kube-apiserver kubectl etcd etcdctl proxy workloads kubelet hostile etcd-3.5 etcd-3.6 >/dev/null
fi

tools/run-tests.sh "$build" | tee "$log"
if [ ${#jobs[@]} -gt 0 ]; then
    echo
    echo "end-to-end suites, side by side (minutes):"
    tools/e2e-binaries.sh >/dev/null && suites
fi
echo
have_apiserver ||
    echo "left out: the end-to-end suite on a real kube-apiserver; 'make e2e' builds one (Go, some minutes) and runs it"
is_ci || echo "left out: the same on the embedded API server, and both compared (tests/e2e/README.md); CI=true runs them, too"

# One line of the unit tests, one of each job; whoever ends without his line has failed.
awk -v jobs="${#jobs[@]}" '
    /^[0-9]+ passed, [0-9]+ failed$/ { passed += $1; failed += $3; unit = 1 }
    /^e2e: [0-9]+ passed, [0-9]+ failed$/ { passed += $2; failed += $4; jobs-- }
    END {
        if (!unit) failed++
        if (jobs != 0) failed++
        printf "\n%d passed, %d failed\n", passed, failed
        exit failed || !passed
    }' "$log"
