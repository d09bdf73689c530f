#!/bin/sh
# places.sh HEADER...: writes places.h, by which each call of a program says where it stands: for each
# function of the public headers a macro of its name. Functions that keep the address of an argument
# (a definition, a callback's `user`) get none: an argument made within such a call, a compound
# literal, would end with it. Nor do those that have a macro of their name already, which says ED_AT
# by itself.
set -eu
cat << 'END'
/* Made from the headers by tools/places.sh: each call says where it stands (ED_AT, tensor/types.h). */
#ifndef EDDY_PLACES_H
#define EDDY_PLACES_H

END
awk '
# The macros that bear a name of a function.
/^#define ed_[a-z0-9_]*\(/ { own[substr($2, 1, index($2, "(") - 1)] }
# Directives and their next lines.
/^#/ { while (/\\$/ && (getline) > 0); next }
{
    gsub(/\/\*([^*]|\*+[^*\/])*\*+\//, "")
    if (sub(/\/\*.*/, "")) {
        said = said " " $0
        while ((getline) > 0 && !/\*\//);
        sub(/.*\*\//, "")
    }
    said = said " " $0
}
# A whole declaration.
/[;{}] *$/ {
    if (match(said, /ED_KIND\([a-z]+, [a-z0-9_]+/)) {
        name = substr(said, RSTART + 8, RLENGTH - 8)
        sub(/, /, "_", name)
        names[++n] = "ed_" name "_with"
    }
    if (said !~ /typedef|struct [a-z_]* *\{/ && match(said, /[ *]ed_[a-z0-9_]+\(/)) {
        name = substr(said, RSTART + 1, RLENGTH - 2)
        keeps = name ~ /_register$|_$/ || said ~ /[(,] ?void \*(user|self|data)[,)]|ed_(listener|state|[a-z]*_class) \*|_handler handler/
        if (!keeps) names[++n] = name
    }
    said = ""
}
END {
    for (i = 1; i <= n; i++)
        if (!(names[i] in own)) print "#define " names[i] "(...) ED_AT(" names[i] "(__VA_ARGS__))"
}' "$@"
printf '\n#endif\n'
