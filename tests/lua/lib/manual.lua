-- eddy manual.lua file.md: runs the file's Lua snippets in their order, each a chunk of its own
-- with the same globals, as at the prompt. What a snippet prints is to be what it says behind
-- "-->", line by line; "..." there stands for anything.
local file = assert(io.open(arg[1]))
local manual = file:read("a")
file:close()

local printed
function print(...)
    local parts = table.pack(...)
    for i = 1, parts.n do parts[i] = tostring(parts[i]) end
    for line in (table.concat(parts, "  ") .. "\n"):gmatch("([^\n]*)\n") do
        printed[#printed + 1] = line:gsub("%s+$", "")
    end
end

local function matches(line, told)
    local pattern = told:gsub("%p", "%%%0"):gsub("%%%.%%%.%%%.", ".*")
    return line:find("^" .. pattern .. "$")
end

local function told_in(snippet)
    local told = {}
    for line in snippet:gmatch("%-%-> ?([^\n]*)") do told[#told + 1] = line:gsub("%s+$", "") end
    return told
end

local function complain(place, why)
    io.stderr:write(place, ": ", why, "\nit printed:\n", table.concat(printed, "\n"), "\n")
    os.exit(1)
end

local count, checked = 0, 0
for before, snippet in manual:gmatch("()```lua\n(.-)```") do
    local _, line = manual:sub(1, before):gsub("\n", "")
    local place = arg[1] .. ":" .. line + 1
    printed = {}
    local chunk, why = load(("\n"):rep(line + 1) .. snippet, "=" .. arg[1])
    if not chunk then complain(place, why) end
    local fine, message = pcall(chunk)
    if not fine then complain(place, tostring(message)) end
    local told = told_in(snippet)
    for i, text in ipairs(told) do
        if not printed[i] or not matches(printed[i], text) then
            complain(place, ("line %d should be: %s"):format(i, text))
        end
    end
    if #printed ~= #told then complain(place, ("%d lines are told, %d were printed"):format(#told, #printed)) end
    count, checked = count + 1, checked + #told
end
io.write(count, " snippets, ", checked, " lines of output\n")
