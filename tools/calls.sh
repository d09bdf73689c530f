#!/bin/sh
# calls.sh c|cpp|table HEADER...: writes how programs call the ops that the headers declare. One
# prototype says all of it:
#
#     ed_tensor *ed_add(ed_tensor_like *a, ed_tensor_like *b);
#     ed_tensor *ed_gather_with(ed_tensor *x, ed_tensor *indices, const ed_gather_options *options);
#
# c: calls.h, the macros that turn numbers into tensors and take options by name:
# ed_add(x, 2), ed_gather(x, indices, .axis = 1). The list of ed_gather_options is ED_GATHER_OPTIONS.
# cpp: calls.hpp, the same functions in C++: add(x, 2), gather(x, indices, {.axis = 1}); results
# beyond the first one, `ed_tensor **indices`, are there `tensor *indices = nullptr`.
# table: for the tests, each function and each structure of options, of whatever headers:
# ed_gather_with as a function of an array of any values, and in a table the types of its parameters.
set -eu
language=$1
shift
if [ "$language" = c ]; then
    echo '/* Made from the headers of ops by tools/calls.sh: calls with numbers and with options by name. */'
elif [ "$language" = cpp ]; then
    echo '/* Made from the headers of ops by tools/calls.sh: the ops in C++. For eddy.hpp alone. */'
fi
awk -v language="$language" '
function upper(type) { return toupper(type) }
# The words of a declaration: result, name, n, types[], names[].
function parse(said,    open, head, list, i, word) {
    open = index(said, "(")
    head = substr(said, 1, open - 1)
    match(head, /ed_[a-z0-9_]+$/)
    name = substr(head, RSTART)
    result = substr(head, 1, RSTART - 1)
    gsub(/^ +| +$/, "", result)
    list = substr(said, open + 1)
    sub(/\) *;.*/, "", list)
    n = split(list, types, / *, */)
    for (i = 1; i <= n; i++) {
        match(types[i], /[a-z_0-9]+$/)
        names[i] = substr(types[i], RSTART)
        types[i] = substr(types[i], 1, RSTART - 1)
        gsub(/^ +| +$/, "", types[i])
    }
    options = ""
    if (name ~ /_with$/ && types[n] ~ /^const ed_[a-z0-9_]+_options \*$/) {
        options = substr(types[n], 7, length(types[n]) - 8)
        n--
    }
}
function macro(    i, call, parameters, numbers) {
    for (i = 1; i <= n; i++) {
        parameters = parameters (i > 1 ? ", " : "") names[i]
        numbers += types[i] ~ /^ed_tensor_like/
        call = call (i > 1 ? ", " : "") (types[i] ~ /^ed_tensor_like/ ? "ED_TENSOR(" names[i] ")" : names[i])
    }
    if (options) {
        short = name
        sub(/_with$/, "", short)
        printf "#define %s(%s%s...) ED_WITH_OPTIONS(%s(%s%s&ed_options_), %s, %s, ##__VA_ARGS__)\n", short,
            parameters, n ? ", " : "", name, call, n ? ", " : "", upper(options), options
    } else if (numbers)
        printf "#define %s(%s) ED_AT(%s(%s))\n", name, parameters, name, call
}
# Whether C++ has these types; plain arrays, other objects and callbacks are written by hand.
function plain(    i) {
    if (name ~ /_of$/ || result !~ /^(ed_(tensor|list|sparse_tensor) \*|bool)$/) return 0
    for (i = 1; i <= n; i++)
        if (types[i] !~ /^((const )?ed_(tensor|tensor_like|list) \*|ed_sparse_tensor \*|ed_tensor \*\*|ed_ints|ed_dtype|int|int64_t|uint64_t|double|bool|const char \*)$/) return 0
    return 1
}
function cpp(    i, bare, parameters, call, f, tail) {
    bare = substr(name, 4)
    if (options) sub(/_with$/, "", bare)
    for (tail = n; tail && types[tail] ~ /^(ed_tensor \*\*|const char \*)$/; tail--);
    for (i = 1; i <= n; i++) {
        parameters = parameters "detail::arg<&" name ", " i - 1 "> " names[i] "_" \
            (i > tail || types[i] == "ed_tensor **" ? " = nullptr" : "") ", "
        call = call ", " names[i] "_"
    }
    if (options) parameters = parameters "const " substr(options, 4) " &options = {}, "
    calls = calls sprintf("inline detail::result<&%s> %s(%sdetail::place here = EDDY_HERE)\n" \
        "{\n    return detail::invoke%s<&%s>(here%s%s);\n}\n", name, bare, parameters,
        options ? "_with" : "", name, options ? ", options" : "", call)
}
# A call with values of an array, whose members are named after what passes a value of the type on;
# nothing for a function of functions, or of any number of arguments.
function member(type) {
    sub(/^const /, "", type)
    return type ~ /\*$/ ? "pointer" : type == "double" ? "number" : type ~ /^ed_(ints|floats|strings|named)$/ ? substr(type, 4) \
        : type ~ /_(function|condition|objective|handler)$/ ? "pointer" : "integer"
}
function table(    i, call, entries) {
    if (said ~ /\(\*|\[|\.\.\./) return
    for (i = 1; i in types; i++)
        if (types[i] != "") {
            call = call (i > 1 ? ", " : "") "a[" i - 1 "]." member(types[i])
            entries = entries (i > 1 ? ", " : "") "\"" types[i] "\""
        }
    printf "static void call_%s(const value *a, outcome *o)\n{\n    (void)a;\n    %s(o, (%s)(%s));\n}\n", name,
        result ~ /\*$/ ? "POINTER" : result == "bool" ? "TRUTH" : result == "void" ? "NOTHING" : "ANYTHING", name, call
    rows = rows sprintf("    {\"%s\", call_%s, {%s}},\n", name, name, entries)
}
# The members of a structure of options that is no list.
function plain_options(    i, n, lines) {
    match($0, /ed_[a-z0-9_]+/)
    T = substr($0, RSTART, RLENGTH)
    body = ""
    while ((getline) > 0 && !/^}/) body = body " " $0
    gsub(/\/\*([^*]|\*+[^*\/])*\*+\//, "", body)
    n = split(body, lines, /;/)
    printf "static const member members_of_%s[] = {\n", T
    for (i = 1; i < n; i++) {
        if (lines[i] ~ /\(/) continue
        match(lines[i], /[a-z_0-9]+$/)
        word = substr(lines[i], RSTART)
        type = substr(lines[i], 1, RSTART - 1)
        gsub(/^ +| +$/, "", type)
        printf "    {\"%s\", \"%s\", offsetof(%s, %s), sizeof((%s){0}.%s)},\n", word, type, T, word, T, word
    }
    print "    {0}};"
    options_rows = options_rows sprintf("    {\"%s\", sizeof(%s), NULL, NULL, members_of_%s},\n", T, T, T)
}
# The text without comments and directives, a declaration at a time.
language == "table" && /^typedef struct ed_[a-z_]+_options {/ { plain_options(); next }
/^ED_OPTIONS\(/ && language == "table" {
    match($0, /ed_[a-z0-9_]+/)
    T = substr($0, RSTART, RLENGTH)
    printf "static const ed_field fields_of_%s[] = ED_FIELDS(%s, %s);\n", T, upper(T), T
    printf "static const %s defaults_of_%s = ED_COMPLETE(%s, %s);\n", T, T, upper(T), T
    options_rows = options_rows sprintf("    {\"%s\", sizeof(%s), fields_of_%s, &defaults_of_%s, NULL},\n", T, T, T, T)
}
/^ED_OPTIONS\(/ && language == "cpp" {
    match($0, /ed_[a-z0-9_]+/)
    type = substr($0, RSTART, RLENGTH)
    print "EDDY_OPTIONS(" substr(type, 4) ", " upper(type) ")"
}
/^#/ { while (/\\$/ && (getline) > 0); next }
/^ED_OPTIONS\(/ { next }
{
    gsub(/\/\*([^*]|\*+[^*\/])*\*+\//, "")
    if (sub(/\/\*.*/, "")) {
        said = said " " $0
        while ((getline) > 0 && !/\*\//);
        sub(/.*\*\//, "")
    }
    said = said " " $0
}
/[;{}] *$/ {
    if (said ~ /^ *[a-z_]+[a-z_0-9 ]* (\*(const \*)?)* *ed_[a-z0-9_]+\(.*\)[^;]*;/ && said !~ /typedef|static|extern|ED_KIND/) {
        for (i in types) delete types[i]
        parse(said)
        if (language == "table") table()
        else if (language == "c") macro()
        else if (plain()) cpp()
    }
    said = ""
}
# Behind the options of all headers, as functions take those of another one too.
END {
    printf "%s", calls
    if (language == "table")
        printf "static const function functions[] = {\n%s};\nstatic const structure structures[] = {\n%s};\n", rows, options_rows
}' "$@"
