#!/usr/bin/env bash
# Runs a test program against the hostile server: kube_client_test.sh PROGRAM [MODE]
#
# The server is written in Go, and built once (tools/e2e-binaries.sh); it runs on free ports of this machine, and
# is stopped by its process id whatever happens. Without Go the test is left out (77), but not with CI=true.
set -euo pipefail

program=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
if [ "${CI:-}" != true ] && ! command -v go >/dev/null; then
    echo "needs go"
    exit 77
fi
hostile=$("$here/../../tools/e2e-binaries.sh" hostile)
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

"${hostile#*=}" "$work" </dev/null &
server=$!
for _ in $(seq 100); do
    [ -f "$work/ports" ] && break
    kill -0 "$server" || exit 1
    sleep 0.1
done
# shellcheck disable=SC2086  # WRAP is words: valgrind and its options
timeout --foreground "${TEST_SECONDS:-240}" ${WRAP:-} "$program" "$work" "$@"
