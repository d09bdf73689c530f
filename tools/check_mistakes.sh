#!/bin/sh
# check_mistakes.sh HEADERS: compiles the lines of tests/mistakes.txt against the headers in a folder:
# what stands before the bar must be refused, what stands behind it not even warned of.
set -u
include=$1
bad=0
compiles() {                                    # compiles STATEMENT FLAG...
    statement=$1
    shift
    printf '#include <eddy.h>\n%s\n{\n    (void)(%s);\n}\n' "$try" "$statement" |
        ${CC:-cc} -std=gnu11 -fsyntax-only -I"$include" "$@" -x c - > /dev/null 2>&1
}
try=$(sed -n 's/^    //p' tests/mistakes.txt)
count=0
while IFS='|' read -r mistake right; do
    [ -n "$right" ] || continue
    count=$((count + 1))
    compiles "$mistake" -w && bad=1 && echo "check: this mistake compiles: $mistake" >&2
    compiles "$right" -Wall -Wextra -Werror -Wno-unused-parameter || { bad=1 && echo "check: this does not compile: $right" >&2; }
done < tests/mistakes.txt
[ $bad -eq 0 ] && [ $count -gt 0 ] && echo "check: $count mistakes do not compile, what is right in their place does"
exit $bad
