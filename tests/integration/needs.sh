#!/usr/bin/env bash
# Runs a test that needs programs of others: needs.sh NAME... -- COMMAND...
#
# They are looked for when the test runs, not when the build was configured: tools/install-deps.sh may have come
# in between. Without them the test is left out (77, and a line that says why); with CI=true it fails.
set -uo pipefail

while [ "$1" != -- ]; do
    if ! command -v "$1" >/dev/null; then
        echo "needs $1 (tools/install-deps.sh test)"
        [ "${CI:-}" = true ] && exit 1
        exit 77
    fi
    shift
done
shift
exec "$@"
