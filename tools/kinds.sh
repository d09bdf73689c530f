#!/bin/sh
# kinds.sh c|cpp HEADER...: writes how programs make the objects that the headers declare by lines
#
#     ED_KIND(layer, conv2d, ED_LAYER_CONV2D_OPTIONS, filters, kernel_size);
#
# c: the macros that take the options behind the list by position, the others by name:
# ed_layer_conv2d(32, ED_INTS(3), .padding = "SAME").
# cpp: kinds.hpp, the same in C++: layers::conv2d(32, {3}, {.padding = "SAME"}).
set -eu
language=$1
shift
echo "/* Made from the lines ED_KIND of the headers by tools/kinds.sh. */"
cat "$@" | awk -v language="$language" '
function c(family, kind, list,    i, name, head, given) {
    name = "ed_" family "_" kind
    for (i = 4; i <= n; i++) {
        head = head word[i] "_, "
        given = given "." word[i] " = " word[i] "_, "
    }
    printf "#define %s(%s...) ED_WITH_OPTIONS(%s_with(&ed_options_), %s, %s_options, %s##__VA_ARGS__)\n",
        name, head, name, list, name, given
}
function cpp(family, kind, list,    i, parameters, assigned) {
    printf "namespace %s\n{\nEDDY_KIND(%s, %s, %s)\n", plural(family), family, kind, list
    for (i = 4; i <= n; i++) {
        parameters = parameters "const decltype(" kind "_options::" word[i] ") &" word[i] "_, "
        assigned = assigned "    options." word[i] " = " word[i] "_;\n"
    }
    if (n > 3)
        printf "inline %s %s(%s%s_options options = {}, detail::place here = EDDY_HERE)\n{\n%s    return %s(static_cast<const %s_options &>(options), here);\n}\n",
            family, kind, parameters, kind, assigned, kind, kind
    print "}"
}
function plural(family) { return family ~ /s$/ ? family "es" : family "s" }
/^ED_KIND\(/ {
    said = $0
    while (said !~ /;/ && (getline) > 0) said = said $0
    sub(/^ED_KIND\(/, "", said)
    sub(/\) *;.*/, "", said)
    n = split(said, word, / *, */)
    if (language == "c") c(word[1], word[2], word[3])
    else cpp(word[1], word[2], word[3])
}'
