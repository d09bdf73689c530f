-- An option that does not exist is an error that names it, in every function and method with options:
-- whatever stands before them.
local ed = require "eddy"

local file = folder .. "/a.npz"
ed.save(file, {a = 1.0})
local checkpoint = ed.checkpoint{v = ed.variable(1.0)}
local manager = ed.checkpoint_manager(checkpoint, folder .. "/kept")
local x = ed.ones{2, 2}
local values = {x, 1, {2}, file, "zeros", {a = x}, function(y) return y end, checkpoint, {x}, ed.sparse_eye(2),
                ed.losses.huber(), ed.schedules.constant(1), ed.dense(1), true, {ed.dense(2)}}
local wrong = {no_such_option = 1}

-- Whether some call of f with so many values and the option is the error; a call that works is none.
local function refuses(f, places, ...)
    local n = select("#", ...)
    if n < places then
        for _, value in ipairs(values) do
            local refused = refuses(f, places, value, ...)
            if refused ~= nil then return refused end
        end
        return nil
    end
    local given = {...}
    given[n + 1] = wrong
    local fine, message = pcall(f, table.unpack(given, 1, n + 1))
    if fine then return false end
    if tostring(message):find("no_such_option", 1, true) then return true end
    return nil
end

-- The number of arguments before the table of options: "(a, {b, ...}, {option=})" has two.
local function places_of(signature)
    local list = signature:match("^[%w_.:]+(%b())")
    if not list then return 0 end
    local _, commas = list:sub(2, -2):gsub("%b{}", ""):gsub(",", "")
    return commas
end

local places = {plot = 1} -- y; its signature is several
local any = {layer = true} -- its fields, of any name, become the layers'

local failed, tried = {}, 0
local function try(name, f)
    local signature = ed.signature(name)
    if not signature or not signature:find("=") or any[name] then return end
    tried = tried + 1
    if not refuses(f, places[name] or places_of(signature)) then failed[#failed + 1] = signature end
end

local function try_all(prefix, t)
    for name, f in pairs(t) do
        if type(f) == "function" then
            try(prefix .. name, f)
        elseif type(f) == "table" then
            try_all(prefix .. name .. ".", f)
        end
    end
end
try_all("", ed)

local objects = {
    tape = ed.tape_begin{persistent = true},
    layer = ed.dense(1),
    checkpoint = checkpoint,
    checkpoint_manager = manager,
}
for kind, object in pairs(objects) do
    for name, what in pairs(ed.names(kind)) do
        if what == "method" then
            try(kind .. ":" .. name, function(...) return object[name](object, ...) end)
        end
    end
end

table.sort(failed)
assert(#failed == 0, "\n" .. table.concat(failed, "\n"))
assert(tried > 60, tried .. " functions are too few")
