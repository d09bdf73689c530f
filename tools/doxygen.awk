# Gives doxygen a public header as it wants it: comments become its own kind, and what stands
# directly below a comment, a macro and its plain function for instance, gets the same text.
function escape(s) {
    if (s ~ /^ \*     / || s ~ /^(# |#include)/) return s # code stays as it is
    gsub(/\\/, "\\\\", s)
    gsub(/[<>@#&"]/, "\\\\&", s)
    return s
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

# A declaration below another one.
/^(#define |[a-z])/ && !depth && !open && above != "" { if (any++) print above " */" }
above == "" { any = 0 }
{
    sub(/^ED_OPTIONS\(/, "typedef struct ")
    if (sub(/^typedef struct [a-z0-9_]+, [A-Z0-9_]+\);/, "&")) sub(/, [A-Z0-9_]+\);/, ";")
    if (!/^#/ && !/\\$/) sub(/ \/\* /, " /**< ")
    code = $0
    gsub(/\/\*.*\*\//, "", code)
    depth += gsub(/\{/, "{", code) - gsub(/\}/, "}", code)
    open = code ~ /\\$/ || code !~ /(;|\})$/ && code !~ /^#/ && code !~ /^ *$/ && !(code !~ /\\$/ && was_macro)
    was_macro = code ~ /\\$/ && (was_macro || code ~ /^#/)
    print
}
