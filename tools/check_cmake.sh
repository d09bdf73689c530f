#!/bin/sh
# Builds examples/cmake/ against an installation and from the sources. $1 is the make command with
# the settings of the build.
set -eu
make=$1
if ! command -v cmake > /dev/null; then
    echo "check: CMake's files are not tried: cmake is not installed"
    exit 0
fi
unset MAKEFLAGS MAKELEVEL
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
try() {                                         # try WHAT COMMAND...: whether it does what is expected
    what=$1
    shift
    "$@" > "$folder/log" 2>&1 || { echo "check: $what:" >&2; cat "$folder/log" >&2; exit 1; }
}
example() {                                     # example NAME SETTING...: configures, builds, runs
    name=$1
    shift
    try "cmake of $name" cmake -S examples/cmake -B "$folder/$name" "$@"
    try "cmake --build of $name" cmake --build "$folder/$name"
    try "ctest of $name" cmake --build "$folder/$name" --target test
}
try "make install" sh -c "$make install PREFIX='$folder/usr'"
example installed -DCMAKE_PREFIX_PATH="$folder/usr"
grep -q 'Eddy_DIR.*/usr/lib/cmake/Eddy' "$folder/installed/CMakeCache.txt" || { echo "check: cmake found another Eddy" >&2; exit 1; }

# Of another version no installation is found.
for wanted in 0.0.1 0.99 1; do
    printf 'cmake_minimum_required(VERSION 3.16)\nproject(other C)\nfind_package(Eddy %s CONFIG REQUIRED)\n' $wanted > "$folder/CMakeLists.txt"
    if cmake -S "$folder" -B "$folder/other" -DCMAKE_PREFIX_PATH="$folder/usr" > "$folder/log" 2>&1; then
        echo "check: find_package(Eddy $wanted) finds another version" >&2
        exit 1
    fi
done

# Quickly compiled: it is the part of CMake that is tried.
example sources -DCMAKE_DISABLE_FIND_PACKAGE_Eddy=ON "-DEDDY_MAKE_OPTIONS=OPT=-O0;ISAS=baseline;DEBUG=-g0"
[ -f "$folder/sources/_deps/eddy-build/eddy/libeddy.a" ] || { echo "check: the sources were not built" >&2; exit 1; }
echo "check: CMake builds examples/cmake/ against an installation and from the sources"
