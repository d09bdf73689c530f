#!/bin/sh
# Finds what Eddy is built from and writes the compiler's view of it to the file named in $1 (a makefile).
# Packages that are missing are named and installed through apt, with sudo where that is needed; where that
# can't be done, one line says what to install, and the build stops there.
set -eu
out=$1

missing=
need() {                                        # need PACKAGE TEST...: remembers PACKAGE when TEST fails
    package=$1
    shift
    "$@" > /dev/null 2>&1 || missing="$missing $package"
}
look() {
    missing=
    need gcc sh -c 'command -v "${CC:-gcc}"'
    need libc6-dev sh -c 'echo "#include <math.h>" | ${CC:-gcc} -E - '
    need pkg-config command -v pkg-config
    need libopenblas-openmp-dev pkg-config --exists openblas
    need libsleef-dev sh -c 'echo "#include <sleef.h>" | ${CC:-gcc} -E - '
    need libxxhash-dev pkg-config --exists libxxhash
    need zlib1g-dev pkg-config --exists zlib
    need libcmocka-dev pkg-config --exists cmocka
}

look
if [ -n "$missing" ]; then
    echo "eddy: missing packages:$missing" >&2
    root=
    [ "$(id -u)" = 0 ] || root=sudo
    if command -v apt-get > /dev/null && { [ -z "$root" ] || command -v sudo > /dev/null; }; then
        echo "eddy: installing them:${root:+ $root} apt-get install -y$missing" >&2
        export DEBIAN_FRONTEND=noninteractive
        $root apt-get update -qq || true
        # shellcheck disable=SC2086  # a list of words on purpose
        $root apt-get install -y -qq $missing > /dev/null || true
    fi
    look
    if [ -n "$missing" ]; then
        echo "eddy: please install$missing (Debian's names) and run make again" >&2
        exit 1
    fi
fi

mkdir -p "$(dirname "$out")"
{
    echo "DEPS_CFLAGS := $(pkg-config --cflags openblas libxxhash zlib)"
    echo "DEPS_LIBS := $(pkg-config --libs openblas) -lsleef $(pkg-config --libs libxxhash zlib)"
    echo "CMOCKA_CFLAGS := $(pkg-config --cflags cmocka)"
    echo "CMOCKA_LIBS := $(pkg-config --libs cmocka)"
} > "$out.new"
mv "$out.new" "$out"
