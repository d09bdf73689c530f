#!/bin/sh
# setup.sh [--install] PART FILE: finds what a part of Eddy is built from and writes the compiler's
# view of it to FILE, a makefile. Parts: library; lua (the module and the prompt); tests. With
# --install missing packages are installed by apt, through sudo where that is needed; else, or where
# that fails, one line names them and the build stops there.
#
# CC may compile for another machine (aarch64-linux-gnu-gcc): then the libraries are that machine's,
# which Debian has for its other architectures, and the build machine's pkg-config is not asked.
#
# From the environment: CC, CXX, PKG_CONFIG; LZMA, BZIP2, HDF5: 0 leaves the library out. Without HDF5
# everything else is built all the same.
set -eu
install=
if [ "$1" = --install ]; then
    install=1
    shift
fi
part=$1
out=$2
CC=${CC:-gcc}
CXX=${CXX:-g++}

stop() {
    echo "eddy: $*" >&2
    exit 1
}

# ---- Looking

links() {                                       # links HEADER FLAG: whether a program with both can be made
    dir=$(mktemp -d)
    printf '#include <stddef.h>\n#include <stdio.h>\n#include <%s>\nint main(void) { return 0; }\n' "$1" > "$dir/try.c"
    code=0
    $CC "$dir/try.c" -o "$dir/try" "$2" || code=1
    rm -rf "$dir"
    return $code
}
compiles_cpp() {                                # whether CXX makes a program with the standard library
    file=$(mktemp)
    code=0
    printf '#include <string>\nint main(int n, char **words) { return std::string(words[0]).size() < size_t(n); }\n' |
        $CXX -x c++ - -o "$file" || code=1
    rm -f "$file"
    return $code
}
program() {                                     # program NAME: the compiler's own linker, archiver, ...
    found=$($CC -print-prog-name="$1" 2> /dev/null || true)
    echo "${found:-$1}"
}
need() {                                        # need PACKAGE TEST...: remembers PACKAGE when TEST fails
    package=$1
    shift
    "$@" > /dev/null 2>&1 || missing="$missing $package"
}
find_hdf5() {                                   # sets hdf5, the name that pkg-config has for it
    for hdf5 in hdf5-serial hdf5; do
        ! "$pkg_config" --exists "$hdf5" || return 0
    done
    hdf5=
    return 1
}
need_compiler() {                               # CC may be "ccache gcc -m64": the words up to options are programs
    for word in $CC; do
        case $word in
        -*) break ;;
        gcc | ccache | clang) need "$word" command -v "$word" ;;
        musl-gcc) need musl-tools command -v "$word" ;;
        *-linux-gnu-gcc) need "gcc-${word%-gcc}" command -v "$word" ;;
        *) command -v "$word" > /dev/null || stop "CC='$CC': there is no program $word" ;;
        esac
    done
    [ -z "$missing" ] || return 0
    pointer=$(echo __SIZEOF_POINTER__ | $CC -E -P - 2> /dev/null | tail -n 1)
    case $pointer in
    8) ;;
    4 | 2) stop "CC='$CC' compiles for $((pointer * 8)) bits; Eddy needs a 64-bit machine" ;;
    *) stop "CC='$CC' is not a C compiler of the family of gcc or clang" ;;
    esac
}
look_at_machine() {                             # sets machine; and for another than this one cross, debian, of
    machine=$($CC -dumpmachine | sed 's/-\(pc\|unknown\)-/-/')
    here=$(uname -m | sed 's/^ppc64le$/powerpc64le/')
    cross='' debian='' of=''
    [ "${machine%%-*}" != "$here" ] || return 0
    cross=1
    case $machine in                            # Debian's name of the architecture
    aarch64-linux-gnu) debian=arm64 ;;
    powerpc64le-linux-gnu) debian=ppc64el ;;
    riscv64-linux-gnu) debian=riscv64 ;;
    esac
    of=${debian:+:$debian}                      # what the names of its packages end in
}
look_for_pkg_config() {
    pkg_config=${PKG_CONFIG:-}
    [ -z "$pkg_config" ] || return 0
    pkg_config=pkg-config
    if command -v "$machine-pkg-config" > /dev/null; then
        pkg_config=$machine-pkg-config
    elif [ -n "$cross" ]; then
        export PKG_CONFIG_LIBDIR="${PKG_CONFIG_LIBDIR:-/usr/lib/$machine/pkgconfig:/usr/share/pkgconfig}"
    fi
}
emulator() {                                    # the program that runs the machine's programs here
    [ -z "$cross" ] || echo "qemu-${machine%%-*}" | sed 's/powerpc/ppc/'
}
runs() {                                        # runs FLAG: whether a program linked with it starts here
    dir=$(mktemp -d)
    code=0
    echo 'int main(void) { return 0; }' | $CC -x c - -o "$dir/try" "$1" || code=1
    # shellcheck disable=SC2046  # no emulator is no word
    [ $code != 0 ] || $(emulator) "$dir/try" || code=1
    rm -rf "$dir"
    return $code
}
look() {
    missing='' wanted=''                        # wanted: what is used if it is there
    need_compiler
    [ -z "$missing" ] || return 0
    look_at_machine
    look_for_pkg_config
    need pkg-config command -v "$pkg_config"
    [ -z "$missing" ] || return 0
    case $part in
    library)
        need binutils command -v "$(program objcopy)"
        need "libc6-dev$of" links math.h -lm
        need "libsleef-dev$of" links sleef.h -lsleef
        need "libopenblas-dev$of" "$pkg_config" --exists openblas
        need "zlib1g-dev$of" links zlib.h -lz
        need "libxxhash-dev$of" links xxhash.h -lxxhash
        [ "${BZIP2:-}" = 0 ] || need "libbz2-dev$of" links bzlib.h -lbz2
        [ "${LZMA:-}" = 0 ] || need "liblzma-dev$of" links lzma.h -llzma
        # Debian's libhdf5-dev of another machine would replace this machine's.
        [ "${HDF5:-}" = 0 ] || find_hdf5 || [ -n "$cross" ] || wanted="libhdf5-dev"
        ;;
    lua)
        need "liblua5.4-dev$of" "$pkg_config" --exists lua5.4
        need "libedit-dev$of" "$pkg_config" --exists libedit
        ;;
    tests)
        need "libcmocka-dev$of" "$pkg_config" --exists cmocka
        case $CXX in
        *-linux-gnu-g++) need "g++-${CXX%-g++}" compiles_cpp ;;
        *clang*) need clang compiles_cpp ;;
        *) need g++ compiles_cpp ;;
        esac
        case $CC in *clang*) need "libomp-dev$of" links stdio.h -fopenmp ;; esac # gcc brings its own
        [ -z "$cross" ] || need gcc command -v cc # for what is built to be run at once
        [ -z "$cross" ] || need qemu-user command -v "$(emulator)"
        [ -z "$cross" ] || need "libgomp1$of" runs -fopenmp
        ;;
    esac
}

# ---- Installing

as_root=
[ "$(id -u)" = 0 ] || as_root=sudo
apt() {                                         # apt-get, which waits for another that is at work
    log=$(mktemp)
    tries=120
    until $as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=600 "$@" > "$log" 2>&1; do
        if ! grep -qi 'could not get lock\|unable to lock' "$log" || [ $tries = 0 ]; then
            cat "$log" >&2
            rm "$log"
            return 1
        fi
        [ $tries != 120 ] || echo "eddy: waiting for another apt to end" >&2
        tries=$((tries - 1))
        sleep 5
    done
    rm "$log"
}
install_missing() {
    command -v apt-get > /dev/null || return 0
    [ -z "$cross" ] || [ -n "$debian" ] || return 0
    [ -z "$as_root" ] || command -v sudo > /dev/null || return 0
    if [ -n "$debian" ] && ! dpkg --print-foreign-architectures | grep -qx "$debian"; then
        echo "eddy: adding an architecture:${as_root:+ $as_root} dpkg --add-architecture $debian" >&2
        $as_root dpkg --add-architecture "$debian" || return 0
    fi
    echo "eddy: installing what is missing:${as_root:+ $as_root} apt-get install$missing" >&2
    apt update || true
    # shellcheck disable=SC2086  # a list of words on purpose
    apt install -y $missing || true
}

cross='' debian='' of='' hdf5=''
look
while [ -n "$missing" ] && [ -n "$install" ]; do # the first round may have brought only the compiler
    before=$missing
    install_missing
    look
    [ "$missing" != "$before" ] || break
done
if [ -n "$missing" ]; then
    [ -z "$install" ] || stop "please install$missing (names of Debian and Ubuntu) for CC='$CC'"
    stop "missing for CC='$CC':$missing (names of Debian and Ubuntu); make deps installs them"
fi

if [ -n "$wanted" ] && [ -n "$install" ]; then
    missing=$wanted
    install_missing
    look
fi

# ---- Writing

write_library() {
    packages='zlib libxxhash'
    [ "${LZMA:-}" = 0 ] || packages="$packages liblzma"
    bzip2=
    [ "${BZIP2:-}" = 0 ] || bzip2=-lbz2
    echo "MACHINE := $($CC -dumpmachine)"
    echo "CLANG := $($CC --version | grep -o clang | head -n 1)"
    echo "LD := $(program ld)"
    echo "AR := $(program ar)"
    echo "STRIP := $(program strip)"
    echo "OBJCOPY := $(program objcopy)"
    echo "BLAS_CFLAGS := $($pkg_config --cflags openblas)"
    [ -z "$hdf5" ] || echo "HDF5_CFLAGS := -DEDDY_HDF5 $($pkg_config --cflags "$hdf5")"
    # shellcheck disable=SC2086  # lists of words on purpose
    {
        echo "DEPS_CFLAGS := $($pkg_config --cflags $packages)"
        echo "DEPS_LIBS := -lsleef $($pkg_config --libs openblas $packages $hdf5) $bzip2"
    }
}
write_lua() {
    echo "LUA_CFLAGS := $($pkg_config --cflags lua5.4)"
    echo "LUA_LIBS := $($pkg_config --libs lua5.4) -ldl"
    echo "EDIT_CFLAGS := $($pkg_config --cflags libedit)"
    echo "EDIT_LIBS := $($pkg_config --libs libedit)"
}
write_tests() {
    echo "CMOCKA_CFLAGS := $($pkg_config --cflags cmocka)"
    [ -z "$cross" ] || echo "HOST_CC := cc"
    echo "EMULATOR := $(emulator)"
    echo "CMOCKA_LIBS := $($pkg_config --libs cmocka)"
}
mkdir -p "$(dirname "$out")"
"write_$part" > "$out.new"
mv "$out.new" "$out"
