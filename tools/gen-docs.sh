#!/usr/bin/env bash
# Writes the documents that come from the program itself: gen-docs.sh PROGRAM DIR
#
# One source a fact: the tables are data and the help texts are rows, so the pages about them are
# printed, not written, and the picture in the README is real output. .ci/run fails when what is in
# docs/ is not what this makes.
set -euo pipefail

program=$1
dir=$2

mkdir -p "$dir/man" "$dir/img"
"$program" tables -o md >"$dir/tables.md"
"$program" help --man >"$dir/man/plimsoll.1"
commands=$("$program" help | awk '/^Commands:/ { on = 1; next } /^$/ { on = 0 } on { print $1 }')
for command in $commands; do
    "$program" help --man "$command" >"$dir/man/plimsoll-$command.1"
done

# picture NAME ARGUMENTS...: what this command prints on a terminal of 80 columns.
picture() {
    local name=$1
    shift
    env -u NO_COLOR COLUMNS=80 LC_ALL=C.UTF-8 "$program" "$@" --color always --exit-zero |
        tools/term-svg.py "plimsoll $*" >"$dir/img/$name.svg"
}
picture explain explain -f examples/alarm.yaml
