#!/usr/bin/env bash
# Runs the etcd client against real etcd and against servers that misbehave: etcd_client_test.sh PROGRAM [MODE]
#
# Makes the certificates (openssl), starts the bad servers (etcd/servers.py), and ends everything by its
# process id whatever happens; the etcd members are the program's own children, which it ends itself.
set -euo pipefail

program=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
shm=/dev/shm # members sync their logs all the time
[ -w "$shm" ] || shm=${TMPDIR:-/tmp}
work=$(mktemp -d "$shm/plimsoll-etcd.XXXXXX")
servers=

finish() {
    if [ -n "$servers" ]; then
        kill "$servers" 2>/dev/null || true
        wait "$servers" 2>/dev/null || true
    fi
    if [ -f "$work/pids" ]; then
        # Only what is left when the program was killed.
        while read -r pid; do
            [ "$(readlink "/proc/$pid/cwd" 2>/dev/null)" = "$work" ] && kill -9 "$pid" 2>/dev/null
        done <"$work/pids"
    fi
    rm -rf "$work"
}
trap finish EXIT

authority() { # NAME
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj "/CN=$1" \
        -keyout "$work/$1.key" -out "$work/$1.crt" -addext keyUsage=critical,keyCertSign,digitalSignature
}

certificate() { # NAME AUTHORITY SANS
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$1" -keyout "$work/$1.key" \
        -out "$work/$1.csr"
    openssl x509 -req -in "$work/$1.csr" -CA "$work/$2.crt" -CAkey "$work/$2.key" -days 30 -out "$work/$1.crt" \
        -extfile <(printf 'subjectAltName=%s\nextendedKeyUsage=serverAuth,clientAuth\nkeyUsage=digitalSignature\n' "$3")
}

{
    for name in ca other api; do authority $name; done
    for i in 1 2 3 4 5; do certificate "n$i" ca "DNS:n$i,DNS:localhost,IP:127.0.1.$i,IP:127.0.0.1"; done
    certificate impostor other "DNS:n1,IP:127.0.0.1"
    certificate apiserver api "DNS:localhost,IP:127.0.0.1"
} >"$work/openssl.log" 2>&1 || { cat "$work/openssl.log"; exit 1; }
cat "$work/other.crt" "$work/ca.crt" >"$work/both.crt"

python3 "$here/etcd/servers.py" "$work" </dev/null &
servers=$!
for _ in $(seq 100); do
    [ -f "$work/ports" ] && break
    kill -0 "$servers" || exit 1
    sleep 0.1
done
# shellcheck disable=SC2086  # WRAP is words: valgrind and its options
timeout --foreground "${TEST_SECONDS:-240}" ${WRAP:-} "$program" "$work" "$@"
