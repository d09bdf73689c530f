#!/bin/sh
# Finds what Eddy is built from and writes the compiler's view of it to the file named in $1 (a
# makefile). Packages that are missing are named and installed through apt, with sudo where that is
# needed; where that can't be done, one line says what to install, and the build stops there.
set -eu
out=$1
CC=${CC:-gcc}

missing=
need() {                                        # need PACKAGE TEST...: remembers PACKAGE when TEST fails
    package=$1
    shift
    "$@" > /dev/null 2>&1 || missing="$missing $package"
}
links() {                                       # links HEADER FLAG: whether a program with both can be made
    dir=$(mktemp -d)
    printf '#include <%s>\nint main(void) { return 0; }\n' "$1" > "$dir/try.c"
    code=0
    $CC "$dir/try.c" -o "$dir/try" "$2" || code=1
    rm -rf "$dir"
    return $code
}
compiler() {                                    # the package of the compiler that was asked for
    case $(basename "${CC%% *}") in
    *clang*) echo clang ;;
    *) echo gcc ;;
    esac
}
look() {
    missing=
    need "$(compiler)" command -v "${CC%% *}"
    need binutils command -v objcopy
    need libc6-dev links math.h -lm
    need pkg-config command -v pkg-config
    need libsleef-dev links sleef.h -lsleef
    need zlib1g-dev pkg-config --exists zlib
    need libbz2-dev links bzlib.h -lbz2
    need liblzma-dev pkg-config --exists liblzma
    need libxxhash-dev pkg-config --exists libxxhash
    need liblua5.4-dev pkg-config --exists lua5.4
    need libedit-dev pkg-config --exists libedit
    need libopenblas-dev pkg-config --exists openblas
    need libcmocka-dev pkg-config --exists cmocka
    [ "$(compiler)" = gcc ] || need libomp-dev links stdio.h -fopenmp # some tests and benches; gcc brings its own
}
install() {                                     # through apt, as the administrator
    root=
    [ "$(id -u)" = 0 ] || root=sudo
    command -v apt-get > /dev/null || return 0
    [ -z "$root" ] || command -v sudo > /dev/null || return 0
    echo "eddy: installing what is missing:${root:+ $root} apt-get install$missing" >&2
    $root apt-get update -qq || true
    # shellcheck disable=SC2086  # a list of words on purpose
    $root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $missing > /dev/null || true
}

look
if [ -n "$missing" ]; then
    install
    look
fi
if [ -n "$missing" ]; then
    echo "eddy: please install$missing (Debian's names) and run make again" >&2
    exit 1
fi

mkdir -p "$(dirname "$out")"
{
    echo "DEPS_CFLAGS := $(pkg-config --cflags zlib liblzma libxxhash)"
    echo "DEPS_LIBS := -lsleef $(pkg-config --libs openblas zlib liblzma libxxhash) -lbz2"
    echo "BLAS_CFLAGS := $(pkg-config --cflags openblas)"
    echo "LUA_CFLAGS := $(pkg-config --cflags lua5.4) $(pkg-config --cflags libedit)"
    echo "LUA_LIBS := $(pkg-config --libs lua5.4) $(pkg-config --libs libedit) -ldl"
    echo "CMOCKA_CFLAGS := $(pkg-config --cflags cmocka)"
    echo "CMOCKA_LIBS := $(pkg-config --libs cmocka)"
} > "$out.new"
mv "$out.new" "$out"
