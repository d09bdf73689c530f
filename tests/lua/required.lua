-- Help calls an option required where the op's example fails without it, and nowhere else. Without a number
-- or a flag the example may ask for something else that is impossible, so of those only what help calls
-- required is tried.
local ed = require "eddy"

local function described(name)
    local fine, text = pcall(ed.describe, name)
    return fine and text or ""
end

-- The call without the option and the comma beside it; nil if the option isn't in it.
local function without(call, option)
    local item = call:match("[{ ](" .. option .. " = %b{})") or call:match("[{ ](" .. option .. ' = "[^"]*")') or
        call:match("[{ ](" .. option .. " = [^,}]+)")
    if not item then return nil end
    local first, last = call:find(item, 1, true)
    local before, after = call:sub(1, first - 1), call:sub(last + 1)
    if before:find(", $") then return before:sub(1, -3) .. after end
    return ((before .. after:gsub("^, ", "", 1)):gsub(", {}%)$", ")"))
end

local function is_number_or_flag(rest)
    return rest:find("^%s*an? ") or rest:find("^%s*true or false")
end

local wrong, tried, required = {}, 0, 0
for name in pairs(ed) do
    local text = described(name)
    local call = text:match("\n%s*> (ed%.[^\n]*)")
    for option, rest in text:gmatch("\n%s+([%w_]+) ([^\n]*)") do
        local shorter = call and without(call, option)
        if shorter then
            local marked = rest:find("(required)", 1, true) ~= nil
            local fine, message = pcall(assert(load("local ed = ...; return " .. shorter)), ed)
            tried = tried + 1
            if marked then required = required + 1 end
            if fine == marked and (marked or not is_number_or_flag(rest)) then
                wrong[#wrong + 1] = shorter .. ": " .. (fine and "works" or tostring(message))
            end
        end
    end
end
table.sort(wrong)
assert(#wrong == 0, "\n" .. table.concat(wrong, "\n"))
assert(tried > 60 and required > 15, tried .. " options are too few, or " .. required .. " required ones")
