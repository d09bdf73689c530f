#!/bin/sh
# Installs into a folder of its own and builds programs against that as a user would: C with the
# shared library and with the archive, C++, amid folders of the names of Eddy's. $1 is the make
# command with the settings of the build.
set -eu
make=$1
CC=${CC:-cc}
CXX=${CXX:-c++}
cxx=
for word in $CXX; do case $word in -*) ;; *) cxx=$(command -v "$word" || true) ;; esac done
folder=$(mktemp -d)
place="$folder/a place"                         # a space has to do no harm
trap 'rm -rf "$folder"' EXIT
try() {                                         # try WHAT COMMAND...: whether it does what is expected
    what=$1
    shift
    "$@" > "$folder/log" 2>&1 || { echo "check: $what:" >&2; cat "$folder/log" >&2; exit 1; }
}
build() {                                       # build WHAT COMMAND: a line of the shell: pkg-config and make quote their words
    try "$1" sh -c "$2"
}
build "make install" "$make install PREFIX='$place'"
export PKG_CONFIG_PATH="$place/lib/pkgconfig"
cflags="$(pkg-config --cflags eddy) -Wall -Wextra -Werror"
libs=$(pkg-config --libs eddy)
# The archive in place of the library's name; what it needs itself stays.
archive="'$place/lib/libeddy.a' $(pkg-config --libs --static eddy | sed 's/-leddy//')"

# ---- Programs

cat > "$folder/first.cc" << 'END'
#include <eddy.h>
int main()
{
    float numbers[] = {1, 2, 3, 4};
    int64_t shape[] = {2, 2};
    ed_scope scope = ed_scope_open();
    ed_tensor *x = ed_constant_of(ED_FLOAT32, numbers, ed_ints{shape, 2});
    bool right = ed_item(ed_reduce_sum_with(ed_add(x, x), nullptr)) == 20;
    ed_scope_close(&scope);
    return !right;
}
END
build "a C program with libeddy.so" "$CC -std=c11 $cflags examples/first.c $libs -o '$place/shared'"
try "it runs" env LD_LIBRARY_PATH="$place/lib" "$place/shared"
build "a C program with libeddy.a" "$CC $cflags examples/first.c $archive -o '$place/static'"
try "it runs" "$place/static"
build "the same with --gc-sections" "$CC $cflags examples/first.c $archive -Wl,--gc-sections -o '$place/small'"
try "it runs" "$place/small"
# Ops and kinds stay if the program names them, or all if it looks one up by its name.
for unused in ed_model_load_with ed_model_summary_with ed_archive_open ed_lbfgs_with zip_open ed_op_find ed_kind_find \
    ed_conv2d_with ed_checkpoint_of; do
    nm "$place/static" | grep -q " [Tt] $unused$" || { echo "check: there is no $unused in a static program" >&2; exit 1; }
    ! nm "$place/small" | grep -q " [Tt] $unused$" || { echo "check: --gc-sections leaves $unused" >&2; exit 1; }
done
strip "$place/static" "$place/small"
whole=$(wc -c < "$place/static") used=$(wc -c < "$place/small")
try "--gc-sections drops half of a program of $whole bytes: $used stay" [ $((used * 2)) -lt "$whole" ]
# C++ has no macro of a function's name.
if [ -n "$cxx" ]; then
    build "a C++ program" "$CXX $cflags '$folder/first.cc' $libs -o '$place/plus'"
    try "it runs" env LD_LIBRARY_PATH="$place/lib" "$place/plus"
    build "the macros of eddy.h in C++" "echo '#include <eddy.h>' | $CXX $cflags -dM -E -x c++ - > '$folder/macros'"
    grep -q '^#define ED_SHAPE(' "$folder/macros"
    ! grep '^#define ed_[a-z0-9_]*(' "$folder/macros" || { echo "check: these macros must not be there in C++" >&2; exit 1; }
fi

# eddy.hpp is installed too.
if [ -n "$cxx" ]; then
    build "examples/cpp/first.cc" "$CXX -std=c++17 $cflags examples/cpp/first.cc $libs -o '$place/first_cpp'"
    try "it runs" env LD_LIBRARY_PATH="$place/lib" "$place/first_cpp"
    build "the same with libeddy.a" "$CXX -std=c++17 $cflags examples/cpp/first.cc $archive -o '$place/first_cpp'"
    try "it runs" "$place/first_cpp"
fi

# ---- Headers

# No warning comes from a macro, in any of the languages that the header takes.
compilers=0 # CC is the first
for cc in "$CC" gcc clang; do
    command -v "${cc%% *}" > /dev/null || continue
    [ $compilers = 0 ] || [ "$cc" != "$CC" ] || continue
    compilers=$((compilers + 1))
    for std in c11 gnu11; do
        for example in examples/*.c; do
            build "$cc -std=$std -pedantic $example" \
                "$cc -std=$std -pedantic -D_POSIX_C_SOURCE=200112L $cflags -fsyntax-only -idirafter . $example"
        done
    done
done

# A program's own folders may have the names of Eddy's, and come first or last.
for header in "$place"/include/eddy/*/*.h; do
    name=${header#"$place"/include/eddy/}
    mkdir -p "$folder/own/$(dirname "$name")" "$folder/own/eddy/$(dirname "$name")"
    echo "#define OWN_$(basename "$name" .h)" > "$folder/own/$name"
    echo '#error "a header of the program stands in for one of Eddy"' > "$folder/own/eddy/$name"
done
cat > "$folder/own/own.c" << 'END'
#include <eddy.h>
#include "tensor/tensor.h"
#include "data/data.h"
#if !defined OWN_tensor || !defined OWN_data
#error "a header of Eddy stands in for one of the program"
#endif
int main(void) { return ed_failed(); }
END
build "own folders, before Eddy's" "cd '$folder/own' && $CC -I. $cflags -fsyntax-only own.c"
mkdir "$folder/own/src"
mv "$folder/own/own.c" "$folder/own/src"
build "own folders, behind Eddy's" "cd '$folder/own' && $CC $cflags -I. -fsyntax-only src/own.c"

# A 32-bit machine is refused in words.
if echo | $CC -m32 -E - > /dev/null 2>&1; then
    echo '#include <eddy.h>' > "$folder/small.c"
    build "-m32 is refused" "$CC -m32 $cflags -fsyntax-only '$folder/small.c' 2>&1 | grep -q 'Eddy needs a 64-bit machine'"
fi

# ---- Without debug information

before=$(du -sk "$place/lib" | cut -f 1)
build "make install-strip" "$make install-strip PREFIX='$place'"
after=$(du -sk "$place/lib" | cut -f 1)
try "install-strip makes the libraries smaller: $before to $after KB" [ "$after" -lt "$before" ]
build "a C program with the stripped libeddy.a" "$CC $cflags examples/first.c $archive -o '$place/static'"
try "it runs" "$place/static"
try "the stripped libeddy.so" env LD_LIBRARY_PATH="$place/lib" "$place/shared"

echo "check: programs build against what make install installs, without a warning of $compilers compilers, and run"
