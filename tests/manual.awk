# Makes a program of a page's snippets, of C (-v language=c) or C++ (cpp), which follow each other in
# one function. What a snippet prints is to be what stands behind "//>", line by line; manual --told
# prints that. In C a part that begins with "static" or "typedef" stands before that function, to the
# first line that begins with "}", or to the end of its first line if that ends with ";".
function quoted(s) { gsub(/\\/, "\\\\", s); gsub(/"/, "\\\"", s); return "\"" s "\"" }
function place() { return "#line " FNR " " quoted(FILENAME) "\n" }
$0 == "```" language { inside = moved = 1; n++; next }
/^```$/ { inside = outside = 0; next }
!inside { next }
/^#include/ { head = head $0 "\n"; next }
language == "c" && /^(static|typedef) / { outside = 1; before = before place() }
outside {
    before = before $0 "\n"
    if (/^}/ || /^(static|typedef) .*;$/) { outside = 0; moved = 1 }
    next
}
/\/\/>/ {
    line = $0
    sub(/.*\/\/> ?/, "", line)
    told = told "    puts(" quoted(line) ");\n"
}
{
    if (moved) body = body place()
    moved = 0
    body = body $0 "\n"
}
END {
    if (language == "cpp") print "#include <eddy.hpp>\n#include <cstring>\n#include <iostream>"
    else print "#include <eddy.h>"
    print "#include <stdio.h>\n#include <string.h>\n" head before "static void run(void)\n{\n" body "}"
    print "static void tell(void)\n{\n" told "}"
    print "int main(int n, char **words)\n{\n    if (n > 1 && !strcmp(words[1], \"--told\")) tell();\n    else run();\n    return ed_failed();\n}"
    print "// " n " snippets"
}
