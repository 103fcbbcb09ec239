#!/usr/bin/env bash
# All tests of a build directory, then the end-to-end suite where it can run: test.sh BUILD
#
# The suite needs a kube-apiserver. One that is there (built before, on PATH, or in KUBEBUILDER_ASSETS) is
# used; with CI=true it is built, which takes minutes once; otherwise one line says how to have it.
# The last line is "N passed, N failed", over everything.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2

build=$1
log=$(mktemp "${TMPDIR:-/tmp}/plimsoll-test.XXXXXX")
trap 'rm -f "$log" "$log".*' EXIT
cache=${PLIMSOLL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/plimsoll}

have_apiserver() {
    [ "${CI:-}" = true ] || [ -n "${KUBEBUILDER_ASSETS:-}" ] || command -v kube-apiserver >/dev/null ||
        compgen -G "$cache/kube-apiserver-*" >/dev/null
}

# The groups side by side, each with servers of its own: most of their time is waiting. What one says comes
# when it is done; what they need is built before.
suites() {
    local group pids=()
    tools/e2e-binaries.sh >/dev/null || return 1
    for group in controller etcd acting; do
        PLIMSOLL=$(realpath "$build/plimsoll") python3 tests/e2e/suite.py --retry --group "$group" \
            >"$log.$group" 2>&1 &
        pids+=($!)
    done
    for group in controller etcd acting; do
        wait "${pids[0]}"
        pids=("${pids[@]:1}")
        echo "$group:"
        tee -a "$log" <"$log.$group"
    done
}

tools/run-tests.sh "$build" | tee "$log"
if have_apiserver; then
    echo
    echo "end-to-end suite, on real API servers:"
    suites
else
    echo
    echo "left out: the end-to-end suite on a real kube-apiserver; 'make e2e' builds one (Go, some minutes) and runs it"
fi

# One line of the unit tests, one of each group of the suite; whoever ends without his line has failed.
awk -v e2e="$(have_apiserver && echo 1 || echo 0)" '
    /^[0-9]+ passed, [0-9]+ failed$/ { passed += $1; failed += $3; unit = 1 }
    /^e2e: [0-9]+ passed, [0-9]+ failed$/ { passed += $2; failed += $4; groups++ }
    END {
        if (!unit) failed++
        if (e2e && groups != 3) failed++
        printf "\n%d passed, %d failed\n", passed, failed
        exit failed || !passed
    }' "$log"
