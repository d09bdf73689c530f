-- Every function and method refuses more arguments than it has, before anything else; except those
-- whose signature has "...", which take any number.
local ed = require "eddy"

local MANY = 40
local numbers = {}
for i = 1, MANY do numbers[i] = i end

local file = folder .. "/a.npz"
ed.save(file, {a = 1.0})
local checkpoint = ed.checkpoint{v = ed.variable(1.0)}
local manager = ed.checkpoint_manager(checkpoint, folder .. "/kept")
local objects = {
    tensor = ed.variable(1.0),
    tape = ed.tape_begin(),
    forward_accumulator = ed.forward_accumulator(ed.tensor(1.0), 1),
    layer = ed.dense(1),
    optimizer = ed.adam(),
    metric = ed.metrics.mean(),
    initializer = ed.initializers.zeros(),
    generator = ed.generator(1),
    dataset = ed.dataset({1}, {1}),
    archive = ed.archive(file),
    checkpoint = checkpoint,
    restoration = checkpoint:restore(manager:save{}),
    checkpoint_manager = manager,
}

-- "scope(f, ...)", "concat({x, ...}, {axis=})": but not "checkpoint{name = object, ...}".
local function takes_any(f)
    local signature = ed.signature(f)
    return signature and signature:find("%(.*%.%.%.") ~= nil
end

local wrong, refused, any = {}, 0, {}
local function try(name, f, object)
    local fine, message = pcall(f, object or 1, table.unpack(numbers, 2))
    message = fine and "no error" or tostring(message)
    local given = message:match("got (%d+) arguments, at most %d+")
    if given and tonumber(given) >= MANY - 1 then
        refused = refused + 1
    elseif takes_any(f) then
        any[name] = true
    else
        wrong[#wrong + 1] = name .. ": " .. message
    end
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

for kind, object in pairs(objects) do
    for name, what in pairs(ed.names(kind)) do
        if what == "method" then try(kind .. ":" .. name, object[name], object) end
    end
end

local mapped = objects.dataset:map(function(x, y) return x, y end)
for name, f in pairs(getmetatable(mapped).__index) do try("mapped:" .. name, f, mapped) end

for _, name in ipairs{"jacobian", "batch_jacobian", "hessian"} do
    try(name .. "(f)", ed[name](function(x) return x end))
end

assert(#wrong == 0, "\n" .. table.concat(wrong, "\n"))
assert(refused > 400, refused .. " functions are too few")
for _, name in ipairs{"scope", "tape", "sequential", "concat", "layer:forward"} do assert(any[name], name) end

-- A surplus nil is one too; the error has the line of the call, and counts without self.
local check = require "check"
check.raises({"surplus.lua:", ": item: got 1 argument, at most 0"}, function() objects.tensor:item(nil) end)
check.raises({"surplus.lua:", ": grad: got 2 arguments, at most 1"}, function() ed.grad(print, nil) end)
check.raises({"surplus.lua:", ": tape: got 2 arguments, at most 1"}, function() ed.tape(nil, 2) end)
check.raises("add: got 3 arguments, at most 2", ed.add, 1, 2, nil)
