#!/usr/bin/env bash
# Finds or builds what the end-to-end rig runs: e2e-binaries.sh [--cached] [NAME...]
#
#   NAME: kube-apiserver kubectl etcd etcdctl proxy workloads kubelet
#         hostile capi-manager etcd-3.5 etcd-3.6 (only when named)
#   --cached: build nothing; what is not there yet cannot be had
#
# Prints one line NAME=PATH each on stdout, everything else on stderr. KUBEBUILDER_ASSETS wins over
# PATH, PATH over a build of our own; a kubectl older than 1.32 is passed over. Built ones lie in PLIMSOLL_CACHE (default
# ~/.cache/plimsoll), named by a hash of their sources, so that each is built once.
#
# Exit codes: 0; 1 failed; 77 cannot be had here (one line says what would help). With CI=true it is
# never 77.
set -euo pipefail
cd "$(dirname "$0")/.."

cache=${PLIMSOLL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/plimsoll}
# A Go of our own, when the machine has none or one too old to fetch another (below 1.21): any Go, also
# Debian's, can bring it as a module, and checks its sum as that of every module.
own_go=1.25.4

say() { printf '%s\n' "$*" >&2; }

# What is missing, in one line. Only a server that must test everything takes it for a failure.
give_up() {
    if [ "${CI:-}" = true ]; then
        say "e2e: FAILED: $*"
        exit 1
    fi
    say "e2e: left out: $*"
    exit 77
}

# version_at_least HAVE WANT
version_at_least() {
    [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$2" ]
}

fetch_go() {
    local dir=$cache/go$own_go module=golang.org/toolchain@v0.0.1-go$own_go.linux-amd64 old work
    if [ -x "$dir/bin/go" ]; then
        echo "$dir/bin/go"
        return 0
    fi
    [ "$(uname -sm)" = "Linux x86_64" ] || return 1
    old=$(command -v go) || { apt_package golang-go && old=$(command -v go); } || return 1
    work=$(mktemp -d "$cache/fetch.XXXXXX") || return 1
    say "fetching Go $own_go as a Go module"
    if (cd "$work" && GOTOOLCHAIN=local GOFLAGS='-mod=mod -modcacherw' GOPATH=$work/go timeout 600 "$old" mod download "$module" >&2) &&
        chmod a+x "$work/go/pkg/mod/$module"/bin/* "$work/go/pkg/mod/$module"/pkg/tool/*/* &&
        { rm -rf "$dir"; mv "$work/go/pkg/mod/$module" "$dir"; }; then
        rm -rf "$work"
        echo "$dir/bin/go"
        return 0
    fi
    rm -rf "$work"
    return 1
}

# The path of a Go that builds modules which ask for version $1.
go=
find_go() {
    local want=$1 candidate have
    [ -n "$go" ] && return 0
    mkdir -p "$cache"
    for candidate in "$(command -v go || true)" /usr/local/go/bin/go /usr/lib/go-*/bin/go "$cache/go$own_go/bin/go"; do
        [ -x "$candidate" ] || continue
        have=$(GOTOOLCHAIN=local "$candidate" env GOVERSION 2>/dev/null | sed 's/^go//; s/[^0-9.].*//')
        if version_at_least "${have:-0}" "$want"; then
            go=$candidate
            export GOTOOLCHAIN=local
            return 0
        fi
        # From 1.21 on Go fetches a newer one by itself.
        if version_at_least "${have:-0}" 1.21 && GOTOOLCHAIN=go$own_go "$candidate" version >/dev/null 2>&1; then
            go=$candidate
            export GOTOOLCHAIN=go$own_go
            return 0
        fi
    done
    go=$(fetch_go) && export GOTOOLCHAIN=local && return 0
    give_up "needs Go $want or newer (or KUBEBUILDER_ASSETS, a folder with kube-apiserver, kubectl and etcd)"
}

apt_package() {
    local package=$1 as_root=()
    [ "$(id -u)" -eq 0 ] || as_root=(sudo -n)
    command -v apt-get >/dev/null && "${as_root[@]}" true 2>/dev/null || return 1
    say "installing: $package"
    # A mask keeps the package from starting a server of its own.
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
        apt-get -o DPkg::Lock::Timeout=120 install -y -qq --no-install-recommends "$package" >&2 && return 0
    "${as_root[@]}" apt-get -o DPkg::Lock::Timeout=120 update -qq >&2
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
        apt-get -o DPkg::Lock::Timeout=120 install -y -qq --no-install-recommends "$package" >&2
}

# One that is there already: found NAME.
found() {
    local name=$1 path
    if [ -n "${KUBEBUILDER_ASSETS:-}" ] && [ -x "$KUBEBUILDER_ASSETS/$name" ]; then
        echo "$name=$KUBEBUILDER_ASSETS/$name"
        return 0
    fi
    path=$(command -v "$name") || return 1
    echo "$name=$path"
}

# "Client Version: v1.32.4"
is_new_kubectl() {
    local have
    have=$("$1" version --client 2>/dev/null | sed -n 's/^Client Version: v\([0-9.]*\).*/\1/p')
    version_at_least "${have:-0}" 1.32 && return 0
    say "passing over $1: version ${have:-unknown}, 1.32 is wanted"
    return 1
}

packaged() {
    local name=$1 package=$2
    found "$name" && return 0
    apt_package "$package" && found "$name" && return 0
    give_up "needs $name (Debian and Ubuntu: apt-get install $package)"
}

# built NAME DIR [PACKAGE]: builds the module in DIR once.
built() {
    local name=$1 dir=$2 package=${3:-.} hash path lock
    hash=$(cd "$dir" && find . -maxdepth 1 -type f \( -name '*.go' -o -name 'go.*' \) | sort | xargs cat | sha256sum | cut -c 1-12)
    path=$cache/$name-$hash
    if [ ! -x "$path" ]; then
        [ "$cached" = false ] || give_up "$name was not built yet"
        find_go "$(sed -n 's/^go \([0-9.]*\).*/\1/p' "$dir/go.mod")"
        mkdir -p "$cache"
        # Two builds at a time would each take twice as long.
        lock=$cache/build.lock
        exec 9>"$lock"
        flock 9
        if [ ! -x "$path" ]; then
            say "building $name, once (minutes, the first time)"
            if ! (cd "$dir" && CGO_ENABLED=0 nice -n 10 "$go" build -buildvcs=false -trimpath -ldflags '-s -w' -o "$path.new" "$package" >&2); then
                exec 9>&-
                give_up "$name could not be built (is the Go module proxy within reach?); KUBEBUILDER_ASSETS may name a folder with kube-apiserver, kubectl and etcd"
            fi
            mv "$path.new" "$path"
        fi
        exec 9>&-
    fi
    echo "$name=$path"
}

cached=false
if [ "${1:-}" = --cached ]; then
    cached=true
    shift
fi
[ $# -gt 0 ] || set -- kube-apiserver kubectl etcd etcdctl proxy workloads kubelet
for name in "$@"; do
    case $name in
    kube-apiserver) found "$name" || built "$name" "tests/e2e/$name" ;;
    kubectl)
        line=$(found kubectl || true)
        if [ -n "$line" ] && is_new_kubectl "${line#*=}"; then
            echo "$line"
        else
            built kubectl tests/e2e/kubectl
        fi
        ;;
    etcd) packaged etcd etcd-server ;;
    # KUBEBUILDER_ASSETS has no etcdctl; only one case wants it and says so without.
    etcdctl) packaged etcdctl etcd-client ;;
    proxy | workloads | kubelet | etcd-3.5 | etcd-3.6) built "$name" "tests/e2e/$name" ;;
    hostile) built hostile tests/integration/hostile ;;
    capi-manager) built "$name" tests/e2e/capi-manager sigs.k8s.io/cluster-api/controlplane/kubeadm ;;
    *)
        say "usage: tools/e2e-binaries.sh [--cached] [kube-apiserver|kubectl|etcd|etcdctl|proxy|workloads|kubelet|hostile|capi-manager|etcd-3.5|etcd-3.6]..."
        exit 1
        ;;
    esac
done
