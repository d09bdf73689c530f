-- The reference of Lua's side, docs/lua-reference.md, made from what help prints: of ops that is made
-- from their definitions. Examples are left to help, which runs them.
local ed = require "eddy"

local function sorted(t)
    local keys = {}
    for key in pairs(t) do keys[#keys + 1] = key end
    table.sort(keys)
    return keys
end

local lines = {}
local function put(...) for _, line in ipairs {...} do lines[#lines + 1] = line end end

-- What is told of a name, without its example, as a block.
local function block(text)
    put "```"
    for line in text:gmatch "[^\n]*" do
        if line:match "^    > " then break end
        put((line:gsub("%s+$", "")))
    end
    while lines[#lines] == "" do lines[#lines] = nil end
    put("```", "")
end

local function functions(table_, prefix)
    for _, name in ipairs(sorted(table_)) do
        local f, full = table_[name], prefix .. name
        local text = type(f) == "function" and ed.describe(full)
        if text then block(text) end
    end
end

put("# Reference of Lua's side", "",
    "Every function of the module `ed`, then every kind of object with its fields and methods. The same words, with an example",
    "that is run, come from `help(ed.matmul)` or `?matmul` at the prompt. This page is made from them, and a test",
    "compares it; [lua.md](lua.md) is the way through.", "", "## Functions", "")
functions(ed, "")
for _, name in ipairs(sorted(ed)) do
    if type(ed[name]) == "table" then
        put("## ed." .. name, "")
        functions(ed[name], name .. ".")
    end
end
-- Fields and methods; those methods of tensors that are ops stand above.
local function object(kind)
    put("### " .. kind, "")
    local ops = 0
    for _, name in ipairs(sorted(ed.names(kind))) do
        local text = ed.describe(kind .. ":" .. name) or ed.describe(kind .. "." .. name)
        if text and text:match("^" .. kind .. "[:.]") then
            block(text)
        else
            ops = ops + 1
        end
    end
    if kind == "tensor" then put(("And %d functions from above as methods, their first operand before the colon."):format(ops), "") end
end

put("## Objects", "")
for _, kind in ipairs {"tensor", "sparse_tensor", "tape", "forward_accumulator", "layer", "optimizer", "metric", "generator", "dataset", "checkpoint",
    "restoration", "checkpoint_manager", "archive", "trackable"} do
    object(kind)
end
return table.concat(lines, "\n") .. "\n"
