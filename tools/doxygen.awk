# Gives doxygen a public header as it wants it: comments become its own kind, and what stands
# directly below a comment, a macro and its plain function for instance, gets the same text.
function escape(s) {
    if (s ~ /^ \*     / || s ~ /^(# |#include)/) return s # code stays as it is
    gsub(/\\/, "\\\\", s)
    gsub(/[<>@#&"]/, "\\\\&", s)
    return s
}
# `int a, b; what they are` as a line for each: the comment is that of both.
function each_alone(    what, names, n, i, type) {
    what = $0
    sub(/^[^;]*;/, "", what)
    if (what !~ /\*\//) what = what " */"
    type = $0
    sub(/;.*/, "", type)
    n = split(type, names, /, /)
    match(names[1], /^ +([a-z_0-9]+ )+/)
    type = substr(names[1], 1, RLENGTH)
    for (i = 1; i < n; i++) print (i > 1 ? type : "") names[i] ";" what
    sub(/^[^;]*;/, type names[n] ";")
}
FNR == 1 { comment = above = ""; inside = depth = open = file = 0 }
/^\/\* clang-format/ || /^#pragma/ { next }
/^\/\* ---- / { print; above = ""; next }

# A comment that begins a line.
/^ *\/\*/ && !inside { inside = 1; comment = ""; indented = /^ / }
inside {
    line = $0
    if (comment == "") sub(/\/\*/, "", line)
    last = sub(/ *\*\/.*/, "", line)
    sub(/^ +\* ?/, " * ", line)
    comment = comment (comment == "" ? "/**" (file++ ? "" : " @file\n *") : "\n") escape(line)
    if (last) {
        inside = 0
        print comment " */"
        above = indented ? above : comment
    }
    next
}
/^ *$/ && !depth { above = "" }

# An option list's structure on two lines.
/^ED_OPTIONS\(/ && !/;/ { line = $0; getline; sub(/^ +/, " "); $0 = line $0 }

# The structure and the function of a kind.
/^ED_KIND\(/ {
    while (!/;/ && (getline line) > 0) $0 = $0 line
    sub(/^ED_KIND\(/, "")
    split($0, word, /[ ,)]+/)
    name = "ed_" word[1] "_" word[2]
    print above " */\ntypedef struct " name "_options;\n" above " */"
    print "ed_" word[1] " *" name "_with(const " name "_options *options);"
    next
}

# A declaration below another one.
/^(#define |[a-z])/ && !depth && !open && above != "" { if (any++) print above " */" }
above == "" { any = 0 }
{
    sub(/^ED_OPTIONS\(/, "typedef struct ")
    if (sub(/^typedef struct [a-z0-9_]+, [A-Z0-9_]+\);/, "&")) sub(/, [A-Z0-9_]+\);/, ";")
    if (!/^#/ && !/\\$/) sub(/ \/\* /, " /**< ")
    if (depth && /^ +[a-z_0-9]+( [a-z_0-9]+)* [^;()]*, [^;()]*; +\/\*\*</) each_alone()
    code = $0
    gsub(/\/\*.*\*\//, "", code)
    depth += gsub(/\{/, "{", code) - gsub(/\}/, "}", code)
    open = code ~ /\\$/ || code !~ /(;|\})$/ && code !~ /^#/ && code !~ /^ *$/ && !(code !~ /\\$/ && was_macro)
    was_macro = code ~ /\\$/ && (was_macro || code ~ /^#/)
    print
}
