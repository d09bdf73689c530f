-- docs/lua-reference.md says what help says now.
local made = require "reference"
local file <close> = assert(io.open "docs/lua-reference.md")
assert(made == file:read "a",
    "docs/lua-reference.md is not up to date: eddy -e 'package.path = \"tests/lua/lib/?.lua\" io.write((require \"reference\"))' > docs/lua-reference.md")
