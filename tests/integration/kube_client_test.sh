#!/usr/bin/env bash
# Runs a test program against the hostile server: kube_client_test.sh PROGRAM [MODE]
#
# Builds the server (Go, standard library only), starts it on free ports of this machine, and stops it
# by its process id whatever happens.
set -euo pipefail

program=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/plimsoll-hostile.XXXXXX")
server=

finish() {
    if [ -n "$server" ]; then
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    rm -rf "$work"
}
trap finish EXIT

(cd "$here/hostile" && GOTOOLCHAIN=local GOFLAGS=-mod=mod CGO_ENABLED=0 go build -o "$work/hostile" .)
"$work/hostile" "$work" </dev/null &
server=$!
for _ in $(seq 100); do
    [ -f "$work/ports" ] && break
    kill -0 "$server" || exit 1
    sleep 0.1
done
# shellcheck disable=SC2086  # WRAP is words: valgrind and its options
timeout --foreground "${TEST_SECONDS:-240}" ${WRAP:-} "$program" "$work" "$@"
