#!/usr/bin/env bash
# Shows what plimsoll does, an example at a time: run-examples.sh PROGRAM
#
# The comment on top of each snapshot in examples/ says what is wrong in it and, behind "Try:", which
# commands show it. All of them are run; what the first one prints is shown.
# Most examples are of clusters in trouble, so exit codes 1 (findings) and 3 (evidence is missing) are
# what they should give. 2 (an input that cannot be read) or a crash is an error here, too.
set -euo pipefail

program=$1
# The order in which they are best read; whatever else is there comes behind.
order=(healthy alarm learner orphan-node quorum-at-risk connection-down deleting external-etcd)

bold='' dim='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ] && [ "${TERM:-dumb}" != dumb ]; then
    bold=$'\e[1m' dim=$'\e[2m' plain=$'\e[0m'
fi
width=${COLUMNS:-$( (tput cols 2>/dev/null) || echo 80)}
[ "$width" -le 100 ] || width=100

files=()
for name in "${order[@]}"; do
    files+=("examples/$name.yaml")
done
for file in examples/*.yaml examples/*.json; do
    [[ ! -e $file || " ${files[*]} " == *" $file "* ]] || files+=("$file")
done
if [ ! -e "${files[0]}" ]; then
    echo "no snapshots in examples/; run this from the root of the repository" >&2
    exit 1
fi

# The commands behind "Try:" in the comment on top of a file, without the name of the program.
tries() { sed -n -e '/^#/!q' -e 's/^# \(Try:\)\{0,1\} *plimsoll //p' "$1"; }

# The comment itself, as one paragraph.
story() { sed -n -e '/^#/!q' -e '/^#\( Try:\)\{0,1\} *plimsoll /q' -e 's/^# \{0,1\}//p' "$1" |
    tr '\n' ' ' | fold -s -w "$width" | sed 's/ *$//'; echo; }

# Runs a command; fails when it ends with a code that no example should give.
run() {
    local code=0
    # shellcheck disable=SC2086  # the words of a command
    "$program" $1 || code=$?
    case $code in
    0 | 1 | 3) ;;
    *)
        echo "$program $1: exit code $code, this should not happen" >&2
        return 1
        ;;
    esac
}

status=0
number=0
for file in "${files[@]}"; do
    number=$((number + 1))
    name=$(basename "$file")
    mapfile -t commands < <(tries "$file")
    printf '%s%d of %d: %s%s\n' "$bold" "$number" "${#files[@]}" "${name%.*}" "$plain"
    story "$file"
    for i in "${!commands[@]}"; do
        if [ "$i" -eq 0 ]; then
            printf '\n%s$ %s %s%s\n' "$bold" "$program" "${commands[0]}" "$plain"
            run "${commands[0]}" || status=1
            echo
        else
            printf '%sor: %s %s%s\n' "$dim" "$program" "${commands[$i]}" "$plain"
            run "${commands[$i]}" >/dev/null || status=1
        fi
    done
    echo
done

printf '%sAll of them at once%s\n\n%s$ %s eval -f examples/ | tail -n 1%s\n' "$bold" "$plain" "$bold" "$program" "$plain"
run "eval -f examples/" | tail -n 1 || status=1
cat <<END

Exit codes: 0 healthy, 1 findings, 2 bad input, 3 evidence is missing.
Next: $program eval -f YOUR-DUMP.yaml, and $program --help.
END
exit "$status"
