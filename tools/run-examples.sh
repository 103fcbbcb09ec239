#!/usr/bin/env bash
# Shows what plimsoll does: judges and explains the snapshots in examples/. run-examples.sh PROGRAM
#
# Most examples are of clusters in trouble, so exit codes 1 (findings) and 3 (evidence missing) are
# what they should give. 2 (an input that cannot be read) or a crash is an error here, too.
set -euo pipefail

program=$1
status=0
count=0

bold='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
    bold=$'\e[1m' plain=$'\e[0m'
fi

for snapshot in examples/*.yaml examples/*.json; do
    [ -e "$snapshot" ] || continue
    count=$((count + 1))
    printf '%s== %s%s\n' "$bold" "$snapshot" "$plain"
    # The comment on top of an example says what is wrong in it.
    sed -n -e '/^#/!q' -e 's/^# \{0,1\}/   /p' "$snapshot"
    printf '\n$ plimsoll eval --explain -f %s\n' "$snapshot"
    code=0
    "$program" eval --explain -f "$snapshot" || code=$?
    case $code in
    0) echo "(exit code 0: all is well)" ;;
    1) echo "(exit code 1: findings, as this example means to show)" ;;
    3) echo "(exit code 3: evidence is missing, and nothing worse was found)" ;;
    *)
        echo "(exit code $code: this should not happen)"
        status=1
        ;;
    esac
    echo
done

if [ "$count" -eq 0 ]; then
    echo "no snapshots in examples/; run this from the root of the repository" >&2
    exit 1
fi
echo "$count examples. Next: $program eval -f YOUR-DUMP.yaml, $program --help"
exit "$status"
