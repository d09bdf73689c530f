-- Bytes become a program that calls the module with whatever comes: what fuzz_lua.c runs. As a
-- script it shows the program of an input, which then runs by itself, in an empty folder:
--
--     eddy fuzz/chunk.lua fuzz/corpus/fuzz_lua/NAME > /tmp/found.lua && cd /tmp/empty && eddy /tmp/found.lua
--
-- The vocabulary is asked of the module, so what is new there is called too. An input is cut into
-- records; each begins one statement, wherever it stands, so that a change of a record changes that
-- statement only. What a statement needs beyond its record is drawn from the record's last bytes.
-- Every call stands in a statement of its own, and keeps no more than a few hundred elements of a
-- result: what follows stays fast. Numbers are small, or so large that nothing of that size exists.
local ed = require "eddy"
local concat, format = table.concat, string.format

local RECORD, DIRECT = 12, 10 -- bytes; of which so many are taken as they are
local MOST_STATEMENTS, DEEPEST, VARIABLES = 48, 3, 10

-- ---- Vocabulary ---------------------------------------------------------------------------------

-- What would change the process for inputs to come.
local left_out = {num_threads = true}

-- Places on a circle of 2^16 for every name: a name more moves few others.
local function circle(entries)
    local points = {}
    for _, entry in ipairs(entries) do
        local hash = 5381
        for i = 1, #entry.name do hash = (hash * 33 + entry.name:byte(i)) & 0xffffffff end
        for _ = 1, 16 do
            hash = (hash * 1664525 + 1013904223) & 0xffffffff
            points[#points + 1] = {at = hash >> 16, entry = entry}
        end
    end
    table.sort(points, function(a, b)
        return a.at < b.at or a.at == b.at and a.entry.name < b.entry.name
    end)
    return points
end

-- The first one from there on.
local function at_point(points, at)
    local low, high = 1, #points + 1
    while low < high do
        local middle = (low + high) // 2
        if points[middle].at < at then low = middle + 1 else high = middle end
    end
    return (points[low] or points[1]).entry
end

-- "sum(x, {axis=, keepdims=})" has the place x and two options.
local function read_signature(entry, signature)
    entry.places, entry.options = {}, {}
    local inside = signature:match "%((.-)%)" or signature:match "%b{}" or ""
    for option in inside:gmatch "([%w_]+)%s?=[,}%s]" do entry.options[#entry.options + 1] = option end
    for place in inside:gsub("%b{}", function(t) return t:find "=" and "" or t:sub(2, -2):gsub(",.*", "s") end)
        :gmatch "[%w_]+" do entry.places[#entry.places + 1] = place end
    return entry
end

local functions = {}
local function gather(t, prefix)
    for name, value in pairs(t) do
        if type(value) == "table" then
            gather(value, prefix .. name .. ".")
        elseif not left_out[name] then
            local key = (prefix .. name):gsub("^ed%.", "")
            functions[#functions + 1] = read_signature({name = prefix .. name}, ed.signature(key) or "()")
        end
    end
end
gather(ed, "ed.")
local function by_name(a, b) return a.name < b.name end
table.sort(functions, by_name)

local kinds = {"tensor", "tape", "layer", "optimizer", "metric", "generator", "dataset", "checkpoint", "restoration",
    "checkpoint_manager", "archive", "trackable"}
local members, own = {}, {} -- [kind] = its fields and methods; those that are no ops
for _, kind in ipairs(kinds) do
    own[kind] = {}
    members[kind] = {{name = "close", what = "method", places = {}, options = {}}}
    for name, what in pairs(ed.names(kind)) do
        local signature = ed.signature(kind .. ":" .. name) or kind .. ":"
        local entry = read_signature({name = name, what = what}, signature)
        table.insert(members[kind], entry)
        if signature:find("^" .. kind) then
            table.insert(own[kind], entry)
        else
            table.remove(entry.places, 1) -- of ed.sum(x, {axis=}), x is the object
        end
    end
    members[kind], own[kind] = circle(members[kind]), circle(own[kind])
end

local all_options = {}
for _, entry in ipairs(functions) do
    for _, option in ipairs(entry.options) do all_options[#all_options + 1] = option end
end
functions = circle(functions)

-- What a function makes, if no tensor; what a place wants, if no tensor.
local makes = {
    ["ed.tape"] = "tape", ["ed.tape_begin"] = "tape", ["ed.dense"] = "layer", ["ed.sequential"] = "layer",
    ["ed.layers.conv2d"] = "layer", ["ed.layers.max_pooling2d"] = "layer", ["ed.layers.dropout"] = "layer", ["ed.flatten"] = "layer",
    ["ed.batch_normalization"] = "layer", ["ed.layers.activation"] = "layer", ["ed.adam"] = "optimizer",
    ["ed.global_average_pooling2d"] = "layer", ["ed.sgd"] = "optimizer", ["ed.rmsprop"] = "optimizer",
    ["ed.metrics.mean"] = "metric", ["ed.metrics.accuracy"] = "metric", ["ed.sparse_categorical_accuracy"] = "metric",
    ["ed.generator"] = "generator", ["ed.default_generator"] = "generator", ["ed.dataset"] = "dataset", ["ed.mnist"] = "dataset",
    ["ed.checkpoint"] = "checkpoint", ["ed.checkpoint_manager"] = "checkpoint_manager", ["ed.archive"] = "archive",
    ["ed.trackable"] = "trackable", ["ed.load"] = "table", ["ed.split"] = "table", ["ed.split_sizes"] = "table",
    ["ed.unstack"] = "table",
    ["ed.memory"] = "table", ["ed.names"] = "table", ["ed.grad"] = "function", ["ed.custom_gradient"] = "function",
    ["ed.recompute"] = "function", ["ed.layer"] = "function", restore = "restoration", read = "restoration",
    restoration = "restoration", batches = "function", rows = "function", totable = "table", variables = "table",
    trainable = "table", gradient = "tensor", item = "number",
}
local wants = {}
for kind, names in pairs {
    callback = "f forward gradient initialize build init",
    path = "path folder prefix dir file checkpoint_name",
    list = "shape kernel_size perm begin end step before after multiples window strides dilations axes",
    small = "axis units parts filters depth count batch num i width bins max_to_keep number rows columns",
    number = "n rate norm clip_norm learning_rate seed bytes epsilon momentum low high mean stddev rtol atol limit delta start " ..
        "stop metric beta_1 beta_2 rho alpha value weight_decay checkpoint_interval",
    text = "name words activation initializer dtype split padding best title kernel_initializer bias_initializer",
    truth = "keepdims transpose_a transpose_b persistent unconnected_zeros second_order partial trainable no_bias no_center " ..
        "no_scale amsgrad nesterov centered training shuffle drop_remainder pixels in_background any_step",
    tensors = "xs sources gradients variables vectors inputs tensors output_gradients",
    table = "table renames clip only skip", layer = "layer child", layers = "layers", held = "held", objects = "objects", named = "named",
    checkpoint = "checkpoint", tape = "tape", generator = "generator",
} do
    for name in names:gmatch "%S+" do wants[name] = kind end
end

-- Places that a signature does not tell.
local places_of = {
    ["ed.sequential"] = {"layers"}, ["ed.checkpoint"] = {"objects"}, ["ed.save"] = {"path", "named"},
    ["ed.layer"] = {"held"},
    ["ed.trackable"] = {"objects"},
}

-- ---- Bytes --------------------------------------------------------------------------------------

local bytes, record, used, state -- the input, its next record, what was taken of this one, the rest

local function next_record()
    record, used = record + 1, 0
    state = (bytes:byte(record * RECORD - 1) or 0) << 8 | (bytes:byte(record * RECORD) or 0) | 0x10000
end

local function byte()
    used = used + 1
    if used <= DIRECT then return bytes:byte((record - 1) * RECORD + used) or 0 end
    state = (state * 1103515245 + 12345) & 0xffffffff
    return state >> 16 & 0xff
end

local function below(n) return byte() % n end
local function pick(list) return list[below(#list) + 1] end
local function point(points) return at_point(points, byte() << 8 | byte()) end

-- ---- Values -------------------------------------------------------------------------------------

local depth      -- of functions within functions
local parameters -- names of the innermost function's, if there is one
local kind_of    -- of each variable, as far as is known

local numbers = {"0 / 0", "1 / 0", "-1 / 0", "0.5", "-0.0", "1e300", "-1e-300", "2 ^ 53", "math.maxinteger", "math.mininteger",
    "1 << 48", "-(1 << 48)", "-(1 << 31)", "(1 << 32) + 1", "3.0", "7", "33"}
local texts = {"float32", "float64", "int32", "int64", "uint8", "bool", "float16", "bfloat16", "none", "SAME", "VALID", "relu",
    "tanh", "softmax", "glorot_uniform", "zeros", "a", "v", "dense/kernel", "axis", "", "1:2", "::-1", "..., 1", "1, -1", ":",
    "99999999999999999999", "\\0", "%n%s", "\\xff\\xfe", "train", "test", "matmul", "layer", "step"}
local paths = {"a.npy", "a.npz", "a.safetensors", "saved", "saved-1", "kept", "kept/ckpt-1", "given-1", "given.npz", "a.png",
    "none/at/all", "", "a.index", "given-1.index"}
local fresh = {
    tensor = {"ed.tensor{{1.5, 2}, {3, 4}}", "ed.tensor{0, 1, 1}", "ed.tensor{true, false}", "ed.ones{1, 4, 4, 2}",
        "ed.variable(ed.ones{2, 2})", "ed.zeros{0, 3}", "ed.tensor(2.5)", "ed.tensor({1, 2}, 'float64')", "ed.random.normal{3, 2}",
        "ed.tensor({{1, 2, 3}}, 'uint8')", "ed.ones{2, 3}:transpose()", "ed.ones{2, 2, 2, dtype = 'int64'}",
        "ed.ones{3, dtype = 'float16'}", "ed.tensor{0 / 0, 1 / 0, -1 / 0}", "ed.variable(ed.tensor(3, 'int64'))", "closed"},
    tape = {"ed.tape()", "ed.tape{persistent = true}"},
    layer = {"ed.dense(2)", "ed.sequential{ed.dense(3), ed.layers.dropout(0.5)}", "ed.layers.conv2d(2, 3)", "own()",
        "ed.batch_normalization{}", "ed.flatten{}"},
    optimizer = {"ed.adam{}", "ed.sgd{momentum = 0.9}", "ed.rmsprop{global_clipnorm = 1}"},
    metric = {"ed.metrics.mean()", "ed.metrics.accuracy()", "ed.sparse_categorical_accuracy()"},
    generator = {"ed.generator(3)", "ed.default_generator()"},
    dataset = {"ed.dataset(ed.ones{5, 2}, ed.ones{5}, {batch = 2})", "ed.dataset(ed.ones{3, 2}, ed.ones{3}, {shuffle = true})"},
    checkpoint = {"ed.checkpoint{v = ed.variable(1)}", "ed.checkpoint{model = ed.dense(2), opt = ed.adam{}, t = {n = 1}}"},
    restoration = {"restored()"}, checkpoint_manager = {"ed.checkpoint_manager(ed.checkpoint{v = ed.variable(1)}, 'kept')"},
    archive = {"archived()"}, trackable = {"ed.trackable{n = 1, x = 0.5}"},
    ["function"] = {"ed.grad(function(x) return x ^ 3 end)", "ed.layer{forward = function(self, x) return x end}"},
    coroutine = {"coroutine.wrap(function(...) while true do coroutine.yield(...) end end)", "coroutine.create(print)"},
}
local callbacks = {"function(...) return ... end", "function(x) return (x ^ 2):sum() end", "function(x) return x * 2 end",
    "function(dy, y, x) return dy end", "function(...) error 'from within' end", "function(...) raise(thrown) end",
    "function(...) raise(...) end", "function() raise(nil) end", "function() end", "function(x) return x, x end",
    "function(...) return {...} end", "function(...) return coroutine.yield(...) end",
    "function(x) do local c <close> = x end return x end", "function(x, y, z) collectgarbage() return z or y or x end",
    "function(x) v1 = x return v2 end", "function() return 1 end", "function() return 'text' end", "print", "pcall", "ed.sum",
    "coroutine.yield", "function(a, b) return a * b, b end", "function(...) shut() return ... end"}

local any, call, block -- below

-- A variable, of the kind if there is one, or something new of it.
local function of_kind(kind)
    if parameters and kind == "tensor" and below(3) == 0 then return pick(parameters) end
    local fitting = {}
    for i = 1, VARIABLES do
        if kind_of[i] == kind then fitting[#fitting + 1] = "v" .. i end
    end
    local how = byte()
    if #fitting > 0 and how < 190 then return fitting[how % #fitting + 1] end
    return pick(fresh[kind])
end

local function list_of(one, most)
    local items = {}
    for i = 1, below(most + 1) do items[i] = one() end
    return "{" .. concat(items, ", ") .. "}"
end

local function small() return tostring(below(8) - 2) end
local function number() return below(3) > 0 and small() or pick(numbers) end
local function text() return '"' .. pick(texts) .. '"' end

local draw = {
    small = number, number = number, text = text,
    path = function() return '"' .. pick(paths) .. '"' end,
    truth = function() return pick {"true", "false"} end,
    list = function() return list_of(below(8) == 0 and number or small, 4) end,
    tensors = function() return list_of(function() return of_kind "tensor" end, 3) end,
    table = function()
        return pick {"{}", "{{1, 2}, {3}}", "{1, 'a'}", "circular", "{{}, {}}", "{n = 1, [3] = 4}", "{1, nil, 3}",
            "{{{{{{{{{1}}}}}}}}}", "{0 / 0}", "setmetatable({}, {__index = error})", "{true, 2}", "{[1 << 60] = 1}", "{first = ed.ones{2}, second = 2}",
            "setmetatable({}, {__index = shut})", "sparse", "{only = sparse, skip = sparse}", "{partial = true}"}
    end,
    callback = function()
        if depth >= DEEPEST or below(3) > 0 then return pick(callbacks) end
        return block()
    end,
}

local function one_of_any_kind() return of_kind(pick(kinds)) end

function draw.layers() return list_of(function() return of_kind "layer" end, 3) end
function draw.objects() return format("{a = %s, b = %s, [%s] = %s}", one_of_any_kind(), any(), text(), one_of_any_kind()) end
function draw.named() return format("{a = %s, [%s] = %s}", of_kind "tensor", text(), of_kind "tensor") end
function draw.held() return format("{forward = %s, gradient = %s}", draw.callback(), draw.callback()) end

local function wanted(place)
    if below(6) == 0 then return any() end
    local kind = wants[place] or "tensor"
    return (draw[kind] or of_kind)(kind)
end

function any()
    local how = below(12)
    if how == 0 then return "nil" end
    if how == 1 then return "closed" end
    if how == 2 then return pick {"true", "false", "print", "ed", "io.stdout", "thrown", "''"} end
    if how == 3 then return one_of_any_kind() end
    if how == 4 then return of_kind "coroutine" end
    if how < 8 then return draw[pick {"small", "text", "path", "list", "tensors", "table", "callback"}]() end
    return "v" .. below(VARIABLES) + 1
end

local function options_of(entry)
    local items = {}
    for i = 1, below(4) do
        local name = #entry.options > 0 and below(8) > 0 and pick(entry.options) or pick(all_options)
        items[i] = format("[%q] = %s", name, wanted(name))
    end
    return "{" .. concat(items, ", ") .. "}"
end

-- Mostly as many arguments as there are places, then options; an item more or less at times.
local function arguments_of(entry)
    local items, places = {}, places_of[entry.name] or entry.places
    local n = #places + (below(12) == 0 and below(3) - 1 or 0)
    for i = 1, n do items[i] = wanted(places[i]) end
    if #entry.options > 0 and below(2) == 0 then
        items[#items + 1] = below(12) == 0 and "setmetatable({}, {__index = shut})" or options_of(entry)
    end
    if #items > 0 and below(24) == 0 then items[below(#items) + 1] = any() end
    return concat(items, ", ")
end

-- ---- Statements ---------------------------------------------------------------------------------

local function indented(body) return "    " .. body:gsub("\n", "\n    ") end

local function keep(expression, kind)
    local i = below(VARIABLES) + 1
    kind_of[i] = kind
    return format("v%d = few(%s)", i, expression)
end

local function of_function()
    local entry = point(functions)
    return keep(entry.name .. "(" .. arguments_of(entry) .. ")", makes[entry.name] or "tensor")
end

local function of_member(variable)
    local kind = below(2) == 0 and "tensor" or pick(kinds)
    if variable then kind = members[kind_of[variable]] and kind_of[variable] or "tensor" end
    local object = variable and "v" .. variable or of_kind(kind)
    local entry = point(variable and kind ~= "trackable" and own[kind] or members[kind])
    if below(16) == 0 then object = any() end
    object = object:match "^v%d+$" or "(" .. object .. ")"
    if entry.what == "field" then return keep(object .. "." .. entry.name) end
    return keep(object .. ":" .. entry.name .. "(" .. arguments_of(entry) .. ")", makes[entry.name] or "tensor")
end

local function place()
    local how = below(6)
    if how == 0 then return text() end
    if how == 1 then return number() end
    if how == 2 then return list_of(function() return below(2) == 0 and small() or draw.list() end, 3) end
    if how == 3 then return of_kind "tensor" .. ":greater(1)" end
    return how == 4 and any() or small()
end

local function operand() return below(4) > 0 and of_kind "tensor" or any() end

local function of_operator(a)
    local how = below(20)
    a = a or operand()
    if how < 8 then return keep(format("(%s) %s (%s)", a, pick {"+", "-", "*", "/", "^", "//", "%"}, operand()), "tensor") end
    if how < 14 then return keep(format("(%s)[%s]", a, place()), "tensor") end
    if how < 16 then return format("local at = %s\nat[%s] = %s", a, place(), operand()) end
    return keep(pick {
        format("(%s) %s (%s)", a, pick {"..", "==", "<", "<=", "&", "~="}, any()), "-(" .. a .. ")", "#(" .. a .. ")",
        "tostring(" .. a .. ")", "~(" .. a .. ")",
    })
end

-- Statements inside of something, where those names are. They may catch their errors or not.
local function body_of(names, last)
    local outer = parameters
    parameters, depth = names, depth + 1
    local lines = {}
    for i = 1, 1 + below(3) do
        lines[i] = below(2) == 0 and format("try(function() %s end)", call()) or format("do %s end", call())
    end
    if last then lines[#lines + 1] = format(last, below(4) > 0 and of_kind "tensor" or any()) end
    parameters, depth = outer, depth - 1
    return indented(concat(lines, "\n"))
end

function block()
    next_record()
    return "function(x, y, z)\n" .. body_of({"x", "y", "z"}, "return few(%s)") .. "\nend"
end

local function of_block()
    local f = block()
    local x = of_kind "tensor"
    local how = pick {
        {"ed.scope(%s, %s)"}, {"ed.scope(%s, %s)"}, {"ed.tape(%s, %s)", "tape"}, {"ed.grad(%s)(%s)"}, {"ed.grad(ed.grad(%s))(%s)"},
        {"ed.value_and_grad(%s, %s)"}, {"ed.jacobian(%s, %s)"}, {"ed.hessian(%s, %s)"}, {"ed.batch_jacobian(%s, %s)"},
        {"ed.custom_gradient(%s, function(dy) return dy end)(%s)"}, {"ed.recompute(%s)(%s)"},
        {"ed.custom_gradient(function(x) return x end, %s)(%s)"}, {"ed.check_gradient(%s, {%s})"},
        {"coroutine.wrap(%s)(%s)"}, {"ed.layer{forward = %s}()(%s)", "layer"}, {"(%s)(%s)"},
        {"ed.layer{build = %s, forward = function(self, x) return x end}()(%s)", "layer"},
    }
    return keep(format(how[1], f, x), how[2] or "tensor")
end

local function of_loop()
    local header = pick {"for x, y in pairs(%s) do", "for x, y in (%s):batches() do", "for x, y in (%s):rows() do",
        "for x, y in %s do"}
    local over = below(3) > 0 and of_kind(pick {"tensor", "dataset", "archive"}) or any()
    return format(header, over) .. "\n" .. body_of {"x", "y"} .. "\nend"
end

-- What is called is closed meanwhile.
local function of_bomb()
    local i = below(VARIABLES) + 1
    local one = below(2) == 0 and of_member(i) or of_operator("v" .. i)
    return format("bomb(function() return v%d end)\nfor _ = 1, 200 do\n%s\nend", i, indented(one))
end

local function of_rest()
    local how = below(8)
    if how < 2 then return format("local c <close> = %s\n", one_of_any_kind()) .. of_member() end
    if how == 2 then return pick {"collectgarbage()", "collectgarbage 'step'", "collectgarbage 'generational'", "shut()"} end
    if how == 3 then return format("local o = %s\no[%q] = %s", one_of_any_kind(), pick(all_options), any()) end
    if how == 4 then return keep(format("(%s)(%s, %s)", of_kind "layer", of_kind "tensor", "{training = true}"), "tensor") end
    if how == 5 then return keep(pick(callbacks), "function") end
    return keep(format("(%s)(%s)", of_kind(pick {"function", "coroutine", "layer"}), of_kind "tensor"), "tensor")
end

function call()
    next_record()
    local how = below(20)
    if how < 8 then return of_function() end
    if how < 12 then return of_member() end
    if how < 15 then return of_operator() end
    if how < 17 and depth < DEEPEST then return of_block() end
    if how == 17 and depth < DEEPEST then return of_loop() end
    if how == 18 then return of_bomb() end
    return of_rest()
end

-- ---- The program --------------------------------------------------------------------------------

local beginning = [[
local ed = require "eddy"
ed.set_seed(1)
print = function() end
local check = fuzz_check or function(fine, what) if not fine then error("check: " .. what, 0) end end
local calls = 0
local thrown, raised, circular, sparse, closed = {}, {}, {}, {[math.maxinteger] = "a"}, ed.ones{2}
circular[1] = circular
for i = 62, 0, -1 do sparse[1 << i] = "a" end -- in this order, #sparse is math.maxinteger
do local c <close> = closed end

-- An error is a sentence, or what a function here raised.
local function raise(x) raised[x == nil and thrown or x] = true error(x) end
local function try(f)
    local fine, e = pcall(f)
    collectgarbage("incremental", 150, 400, 13) -- as the module has it
    if calls > 4000 then error("too long", 0) end
    if fine then return check(true, "") end
    if type(e) == "string" then return check(not e:find "an unknown error", "an error without words: " .. e) end
    check(raised[e == nil and thrown or e], "an error that is no text but a " .. type(e))
end

-- Large tensors go no further. Makes no garbage, for that is to come from the calls.
local function size_of(x) return x.rank and x.size end
local function few(...)
    calls = calls + 1
    if calls > 4000 then error "too long" end
    for i = 1, select("#", ...) do
        local x = select(i, ...)
        local fine, size = pcall(size_of, x)
        if fine and type(x) == "userdata" and size and size > 256 then return nil end
    end
    return ...
end

local function restored()
    local c = ed.checkpoint{v = ed.variable(1)}
    return c:restore(c:save "given")
end
local function archived()
    ed.save("given.npz", {a = ed.ones{2}, b = ed.tensor{1, 2}})
    return ed.archive "given.npz"
end
local own = ed.layer{
    name = "own", init = function(self) self.inner = ed.dense(2) end,
    build = function(self, x) self.gain = self:weight("gain", {2}, {initializer = "zeros"}) end,
    forward = function(self, x) return self.inner(x) * self.gain end,
}
]]

local closing = [[

local function shut()
    for _, v in ipairs{%s} do
        pcall(function() local c <close> = v end)
    end
end
-- Closes it wherever Lua happens to collect, which is soon.
local function bomb(get)
    collectgarbage("incremental", 100, 1000, 10) -- a large step for each kilobyte
    collectgarbage()
    setmetatable({}, {__gc = function() local c <close> = get() end})
end
]]

local at_first = {[7] = "layer", [8] = "optimizer", [9] = "dataset", [10] = "checkpoint"} -- the rest are tensors

local function decode(input)
    bytes, record, depth, parameters, kind_of = input, 0, 0, nil, {}
    local names, values = {}, {}
    for i = 1, VARIABLES do
        names[i] = "v" .. i
        kind_of[i] = at_first[i] or "tensor"
        values[i] = fresh[kind_of[i]][kind_of[i] == "tensor" and i or 1]
    end
    local lines = {beginning, "local " .. concat(names, ", ") .. " =\n    " .. concat(values, ", "),
        format(closing, concat(names, ", "))}
    while record * RECORD < #bytes and #lines < MOST_STATEMENTS do
        lines[#lines + 1] = "try(function()\n" .. indented(call()) .. "\nend)"
    end
    return concat(lines, "\n") .. "\n"
end

local path = ...
if not path then return decode end
local file <close> = assert(io.open(path, "rb"))
io.write(decode(file:read "a"))
