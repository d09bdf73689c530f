#!/bin/sh
# The checks that need no run: layout, direction of includes, exported names. $1 is the folder of
# the built library, the others the library's folders, lowest first.
set -u
obj=$1
shift
bad=0
complain() {
    echo "check: $*" >&2
    bad=1
}

# Layout
if command -v clang-format > /dev/null; then
    git ls-files '*.c' '*.h' '*.cc' '*.hpp' | xargs clang-format --dry-run --Werror > /dev/null 2>&1 ||
        complain "sources are not laid out by .clang-format: make format"
else
    complain "clang-format is not installed"
fi

# clang-format leaves comments as they are.
long=$(git ls-files '*.c' '*.h' | xargs awk '/^ *\/?\*/ && length > 100 { print FILENAME ":" FNR }')
[ -z "$long" ] || complain "comment lines of more than 100 columns: $long"

# Includes point down: a folder may include itself and those before it in the Makefile's list.
allowed=
for floor; do
    allowed="${allowed:+$allowed|}$floor"
    up=$(git ls-files "$floor/*.[ch]" | xargs grep -nE '^#include "' | grep -vE "\"(($allowed)/|eddy\.h\")")
    [ -z "$up" ] || complain "includes that do not point down:
$up"
done
upward=$(git ls-files 'examples/*.c' 'examples/*.cc' | xargs grep -nE '^#include "' | grep -v '"examples/')
[ -z "$upward" ] || complain "examples include more than <eddy.h>: $upward"

# The binding for Lua can do no more than one for another language: it includes eddy.h and the
# headers that eddy.h includes.
public=$(sed -n 's/^#include "\(.*\)".*/\1/p' eddy.h | tr '\n' '|')
private=$(git ls-files 'lua/*.[ch]' | xargs grep -nE '^#include "' | grep -vE "\"(lua/[a-z_/]*\.h|${public}eddy\.h)\"")
[ -z "$private" ] || complain "lua/ includes private headers: $private"

# The README's program, its first piece of C, is the one that is built.
awk '/^```c$/ { inside = !n++; next } /^```$/ { inside = 0 } inside' README.md | cmp -s - examples/first.c || complain "the program in README.md is not examples/first.c"
awk '/^```c$/ { inside = ++n == 2; next } /^```$/ { inside = 0 } inside' README.md | grep -vxFf examples/loop.c > /dev/null && complain "the loop in README.md is not that of examples/loop.c"

# Only one file asks the system for memory, a thread's own record apart; nothing ends the process or
# prints by itself.
library=$(git ls-files tensor track io ops autodiff optim nn data train lua | grep '\.[ch]$' | grep -v '^lua/repl/')
gate=$(echo "$library" | grep -v -e '^tensor/memory.c' -e '^tensor/thread.c' |
       xargs grep -nwE '(malloc|calloc|realloc|aligned_alloc|strdup) *\(')
[ -z "$gate" ] || complain "memory that did not come from tensor/memory.c: $gate"
abrupt=$(echo "$library" | xargs grep -nwE '(exit|abort|assert|printf|puts|perror) *\(' |
         grep -v '^tensor/error.c:[0-9]*:    if (wanted.abort) abort();$') # EDDY_ERRORS=abort asks for it
[ -z "$abrupt" ] || complain "the library must not exit, abort or print: $abrupt"

# Names
stray=$({ nm -D --defined-only "$obj/libeddy.so"; nm -g --defined-only "$obj/libeddy.a"; } | awk 'NF == 3 && $3 !~ /^ed_/ { print $3 }' | sort -u)
[ -z "$stray" ] || complain "names exported that do not begin with ed_: $stray"

# C++ has every function of these headers, but for a few that C++ has no use for.
has=$(cat eddy.hpp "$obj/include/eddy/ops/calls.hpp" | grep -vE '^ *(/\*| \*)' | sed -E 's/.*EDDY_CALL[0-9](_WITH)?\((\w+).*/ed_\2 ed_\2_with/' | grep -owE 'ed_[a-z0-9_]+' | sort -u)
useless="ed_interrupt ed_jacobian ed_layer_is_named ed_layer_kind ed_layer_lambda ed_layer_make ed_layer_sequential_with ed_list_itself ed_list_of_one ed_make ed_options_of"
names=$(mktemp -d)
echo "$has" > "$names/has"
nm -D --defined-only "$obj/libeddy.so" | awk '{ print $3 }' | sort -u > "$names/exported"
cat $(git ls-files 'ops/*.h' 'optim/*.h' 'nn/*.h' 'model/*.h' | xargs grep -l 'visibility push(default)' | grep -v 'ops/op.h') autodiff/autodiff.h autodiff/control.h data/data.h | grep -owE 'ed_[a-z0-9_]+' | sort -u | comm -12 - "$names/exported" | comm -23 - "$names/has" > "$names/lacking"
lacking=$(echo "$useless" | tr ' ' '\n' | comm -3 - "$names/lacking" | tr -d '\t')
[ "$(wc -l < "$names/exported")" -gt 300 ] || complain "libeddy.so exports hardly anything"
rm -rf "$names"
[ -z "$lacking" ] || complain "functions that eddy.hpp lacks, or exceptions that are no longer needed: $lacking"

# Private names tell the files apart: no static function has a name that more than three files use.
shared=$(for floor; do git ls-files "$floor/*.[ch]"; done | sort -u | xargs awk '
    /^(__attribute__.*)?static / && /\(/ && !/;$/ && !/=/ {
        s = $0
        gsub(/__attribute__\(\([^;]*\)\)\)? /, "", s)
        if (match(s, /TYPED\([a-z_0-9]+\)/)) s = substr(s, RSTART + 6, RLENGTH - 7) "("
        sub(/\(.*/, "", s)
        sub(/.*[ *]/, "", s)
        if (s != "" && !seen[s, FILENAME]++) files[s]++
    }
    END { for (s in files) if (files[s] > 3) print s }' | sort)
[ -z "$shared" ] || complain "private names that more than three files share: $shared"

# The tables of names for those who come from elsewhere name what there is.
absent=$(grep -ohE '`ed_[a-z0-9_]+' docs/from-*.md | tr -d '`' | sort -u | while read -r name; do
    find "$obj/include/eddy" -name '*.h' -exec grep -lqwE "${name}(_with|_of)?" {} + || echo "$name"
done)
[ -z "$absent" ] || complain "names in docs/from-*.md that no header has: $absent"

[ $bad -eq 0 ] && echo "check: layout, includes, memory gate, exported and private names are as they should be"
exit $bad
