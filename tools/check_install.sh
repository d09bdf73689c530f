#!/bin/sh
# Installs into a folder of its own and builds programs against that as a user would: C with the
# shared library and with the archive, C++. $1 is the make command with the settings of the build.
set -eu
make=$1
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
$make install PREFIX="$place" > "$place/log" 2>&1 || { cat "$place/log" >&2; exit 1; }
export PKG_CONFIG_PATH="$place/lib/pkgconfig"
cflags="$(pkg-config --cflags eddy) -Wall -Wextra -Werror"

cat > "$place/first.cc" << 'END'
#include <eddy.h>
int main()
{
    float numbers[] = {1, 2, 3, 4};
    int64_t shape[] = {2, 2};
    ed_scope scope = ed_scope_open();
    ed_tensor *x = ed_constant_of(ED_FLOAT32, numbers, ed_ints{shape, 2});
    bool right = ed_item((ed_reduce_sum_with)((ed_add)(x, x), nullptr)) == 20;
    ed_scope_close(&scope);
    return !right;
}
END
try() {                                         # try WHAT COMMAND...: whether it does what is expected
    what=$1
    shift
    "$@" > "$place/log" 2>&1 || { echo "check: $what:" >&2; cat "$place/log" >&2; exit 1; }
}
# shellcheck disable=SC2046,SC2086  # lists of words on purpose
{
    try "a C program with libeddy.so" ${CC:-cc} -std=c11 $cflags examples/first.c $(pkg-config --libs eddy) -o "$place/shared"
    try "it runs" env LD_LIBRARY_PATH="$place/lib" "$place/shared"
    try "a C program with libeddy.a" ${CC:-cc} $cflags examples/first.c "$place/lib/libeddy.a" \
        $(pkg-config --libs --static eddy | sed 's/-leddy//') -o "$place/static"
    try "it runs" "$place/static"
    if command -v "${CXX:-c++}" > /dev/null; then
        try "a C++ program" ${CXX:-c++} $cflags "$place/first.cc" $(pkg-config --libs eddy) -o "$place/plus"
        try "it runs" env LD_LIBRARY_PATH="$place/lib" "$place/plus"
    fi
}
echo "check: programs build against what make install installs, and run"
