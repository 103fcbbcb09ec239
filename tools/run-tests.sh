#!/usr/bin/env bash
# Runs all tests of a build directory and adds up their cases: run-tests.sh BUILD [MESON TEST ARGS].
# The last line is "N passed, N failed"; fails when a case did, or when there was none.
set -euo pipefail

build=$1
shift

# Meson's own verdict is in the log that is added up; a failed suite must not end the script here.
meson test -C "$build" --no-rebuild --print-errorlogs "$@" || true
exec "$(dirname "$0")/sum-tests.py" "$build/meson-logs/testlog.json"
