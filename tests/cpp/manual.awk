# Makes a program of a page's C++ snippets, which follow each other in one function. What a snippet
# prints is to be what stands behind "//>", line by line; manual --told prints that.
function quoted(s) { gsub(/\\/, "\\\\", s); gsub(/"/, "\\\"", s); return "\"" s "\"" }
/^```cpp$/ { inside = 1; body = body "#line " FNR + 1 " " quoted(FILENAME) "\n"; n++; next }
/^```$/ { inside = 0; next }
!inside { next }
/^#include/ { head = head $0 "\n"; next }
/\/\/>/ {
    line = $0
    sub(/.*\/\/> ?/, "", line)
    told = told "    std::cout << " quoted(line) " \"\\n\";\n"
}
{ body = body $0 "\n" }
END {
    print "#include <eddy.hpp>\n#include <cstring>\n#include <iostream>\n" head "static void run()\n{\n" body "}"
    print "static void tell()\n{\n" told "}"
    print "int main(int n, char **words)\n{\n    if (n > 1 && !std::strcmp(words[1], \"--told\")) tell();\n    else run();\n    return ed_failed();\n}"
    print "// " n " snippets"
}
