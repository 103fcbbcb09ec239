#!/usr/bin/env bash
# Makes sure that what a task needs is installed: install-deps.sh [build|test|lint|fuzz|all].
#
# Asking is cheap (no package manager is run when all is there), so the Makefile calls it every
# time. On Debian and Ubuntu, as root or with passwordless sudo, it installs what is missing;
# elsewhere it names the packages and stops.
set -euo pipefail

missing=()

# need PACKAGE PROBE...: adds the package when the probe fails.
need() {
    local package=$1
    shift
    "$@" >/dev/null 2>&1 || missing+=("$package")
}

has_fuzzer() {
    local dir
    dir=$(clang -print-runtime-dir) && compgen -G "$dir/libclang_rt.fuzzer*.a"
}

# The package with clang's run-time libraries carries its version.
clang_rt() {
    local major
    major=$(clang -dumpversion 2>/dev/null | cut -d. -f1 || true)
    if [ -z "$major" ]; then
        major=$(apt-cache depends clang 2>/dev/null | sed -n 's/.*Depends: clang-\([0-9]*\)$/\1/p' || true)
    fi
    echo "libclang-rt-${major:-14}-dev"
}

need_build() {
    need gcc command -v gcc
    need libc6-dev test -e /usr/include/stdio.h
    need meson command -v meson
    need ninja-build command -v ninja
    need pkg-config command -v pkg-config
    need libyaml-dev pkg-config --exists yaml-0.1
    need libuv1-dev pkg-config --exists libuv
    # The flavour matters: certificates are handed over in memory, and looked at with OpenSSL.
    need libcurl4-openssl-dev pkg-config --exists libcurl
    need libssl-dev pkg-config --exists openssl
    need libmicrohttpd-dev pkg-config --exists libmicrohttpd
    need libnghttp2-dev pkg-config --exists libnghttp2
    need libprotobuf-c-dev pkg-config --exists libprotobuf-c
    need protobuf-c-compiler command -v protoc-c
    need libsqlite3-dev pkg-config --exists sqlite3
    need libwslay-dev test -e /usr/include/wslay/wslay.h
}

need_test() {
    need_build
    need python3 command -v python3
    need g++ command -v g++ # the public header must compile as C++, too
    need openssl command -v openssl
    need etcd-server command -v etcd
    need etcd-client command -v etcdctl
}

need_fuzz() {
    need_build
    need clang command -v clang
    need "$(clang_rt)" has_fuzzer
}

need_lint() {
    need_build
    need clang command -v clang
    need clang-tidy command -v clang-tidy
    need clang-format command -v clang-format
    need cppcheck command -v cppcheck
    need shellcheck command -v shellcheck
}

need_all() {
    need_test
    need_fuzz
    need_lint
    need valgrind command -v valgrind
    # Valgrind wants the symbols of the dynamic loader.
    need libc6-dbg test -d /usr/lib/debug/.build-id
}

case ${1:-build} in
build | test | fuzz | lint | all) "need_${1:-build}" ;;
*)
    echo "usage: tools/install-deps.sh [build|test|lint|fuzz|all]" >&2
    exit 2
    ;;
esac

if [ ${#missing[@]} -eq 0 ]; then
    exit 0
fi
mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sort -u)

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    as_root=(sudo -n)
fi
if ! command -v apt-get >/dev/null || ! "${as_root[@]}" true 2>/dev/null; then
    {
        echo "plimsoll needs packages that are not installed. Debian and Ubuntu call them:"
        echo "    ${missing[*]}"
        echo "Install them (as root: apt-get install ${missing[*]}), then run make again."
    } >&2
    exit 1
fi

echo "installing: ${missing[*]}" >&2
apt_install() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
}
# The lists of a fresh machine are empty or old: fetch them only when installing fails without.
if ! apt_install 2>/dev/null; then
    "${as_root[@]}" apt-get update -qq >&2
    apt_install
fi
