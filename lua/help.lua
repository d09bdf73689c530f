-- ed.help, ed.search: help on names, from their definitions: for an op the op table, for a function of
-- the prelude the comment above it, for other functions in C help.txt.
local ed, native, prelude, words = ...
local concat, sort, remove = table.concat, table.sort, table.remove
local format, find, lower = string.format, string.find, string.lower
local match, gmatch, gsub = string.match, string.gmatch, string.gsub
local type, ipairs, pairs, tostring, pcall, load = type, ipairs, pairs, tostring, pcall, load
local rawget, max, no_more = rawget, math.max, native.no_more

-- ---- Sources of help ----------------------------------------------------------------------------

local known = {} -- [name] = {signature = , text = }; methods under "kind:name", properties "kind.name"

local entry
for line in gmatch(words, "[^\n]+") do
    local name = match(line, "^[%w_]+[:.]?[%w_]*")
    if name then
        entry = {signature = line, text = ""}
        known[name] = entry
    elseif entry then
        entry.text = entry.text .. line .. "\n"
    end
end

-- The comment directly above a function of the prelude, or above a group of functions.
local function read_prelude(source)
    local comment, used = "", false
    for line in gmatch(source, "([^\n]*)\n") do
        local name, arguments = match(line, "^function ed%.([%w_]+)(%b())")
        local told = match(line, "^%-%- ?(.*)")
        if name and comment ~= "" then
            local signature, text = match(comment, "^%s*(" .. name .. "%s?%b()): (.*)")
            known[name] = {signature = signature or name .. arguments, text = text and "    " .. text or comment}
            used = true
        elseif told then
            comment, used = (used and "" or comment) .. "    " .. told .. "\n", false
        elseif not name then
            comment = ""
        end
    end
end
read_prelude(prelude)

-- Help on kinds of objects comes from their schemas: dense, layers.dense.
local spaces = {layer = "layers", optimizer = "optimizers", metric = "metrics", initializer = "initializers",
                regularizer = "regularizers", constraint = "constraints", schedule = "schedules", loss = "losses",
                callback = "callbacks"}
local function read_kinds(otherwise)
    for _, kind in ipairs(native.made()) do
        local space = spaces[kind.family]
        local lines = {"    The " .. kind.family .. " " .. kind.name .. ": " .. kind.doc .. "."}
        for _, option in ipairs(kind.options) do
            lines[#lines + 1] = format("    %-20s %s: %s%s", option.name, option.kind, option.doc, otherwise(option))
        end
        local text = concat(lines, "\n") .. "\n"
        local long = space and space .. "." .. kind.name
        if long and rawget(ed, space) then known[long] = {signature = long, text = text} end
        if long and kind.short then
            local short = space .. "." .. kind.short
            known[short] = {signature = short, text = "    Short for " .. long .. ".\n"}
        end
        if long and not known[kind.name] and rawget(ed, kind.name) == rawget(ed, space)[kind.name] then
            known[kind.name] = {signature = kind.name, text = text}
        end
    end
end

-- ---- Ops ----------------------------------------------------------------------------------------

local operators = {
    add = "a + b", sub = "a - b", mul = "a * b", div = "a / b", pow = "a ^ b", floor_div = "a // b",
    floor_mod = "a % b", neg = "-x",
}

local function find_op(name) return native.op(name) or native.op("reduce_" .. name) end

-- "(a, b)", "(a, {option})", "{option}"
local function called(parts, options)
    local braces = "{" .. concat(options, ", ") .. "}"
    if #options == 0 then return "(" .. concat(parts, ", ") .. ")" end
    if #parts == 0 then return braces end
    return "(" .. concat(parts, ", ") .. ", " .. braces .. ")"
end

local function op_signature(op, name, method)
    local parts, options = {}, {}
    for i, operand in ipairs(op.operands) do parts[i] = operand.name end
    if op.variadic then parts[#parts] = "{" .. parts[#parts] .. ", ...}" end
    local self = method and remove(parts, 1)
    for i, attr in ipairs(op.attrs) do options[i] = attr.name .. "=" end
    return (self and self .. ":" or "ed.") .. name .. called(parts, options)
end

local function dtypes_of(op, i)
    local operand = op.operands[i]
    for k = 1, i - 1 do
        if operand.type ~= "" and op.operands[k].type == operand.type then
            return "as " .. op.operands[k].name
        end
    end
    local n = #operand.dtypes
    return n >= 13 and "any dtype" or concat(operand.dtypes, " ")
end

-- A value as it is written in a program.
local function written(v)
    if type(v) == "string" then return format("%q", v) end
    if type(v) ~= "table" then return tostring(v) end
    local items = {}
    for i, item in ipairs(v) do items[i] = written(item) end
    return "{" .. concat(items, ", ") .. "}"
end

-- What an option is where it is not given.
local function otherwise(option)
    local default = option.default
    if option.required then return " (required)" end
    return default ~= nil and default ~= "" and " (" .. written(default) .. ")" or ""
end

read_kinds(otherwise)

-- Nested tables of the shape, with elements from low to high.
local function elements(shape, low, high, make)
    local size, i = 1, 0
    for _, extent in ipairs(shape) do size = size * extent end
    local function level(depth)
        if depth > #shape then
            i = i + 1
            return make(size > 1 and low + (high - low) * (i - 1) / (size - 1) or low)
        end
        local items = {}
        for k = 1, shape[depth] do items[k] = level(depth + 1) end
        return "{" .. concat(items, ", ") .. "}"
    end
    return level(1), size
end

local function has(list, value)
    for _, item in ipairs(list) do
        if item == value then return true end
    end
end

-- A symmetric matrix that is positive definite if it is square: its diagonal rules.
local function regular(shape)
    local rows = {}
    for i = 1, shape[1] do
        rows[i] = {}
        for j = 1, shape[2] do rows[i][j] = i == j and shape[1] + 1.0 or 1.0 end
    end
    return "ed.tensor" .. written(rows)
end

local function example_operand(operand, input)
    local dtypes, shape = operand.dtypes, input.shape
    if input.regular and #shape == 2 then return regular(shape) end
    if has(dtypes, "float32") then
        local text, size = elements(shape, input.low, input.high, function(x) return format("%.1f", x) end)
        if size > 12 then return "ed.ones" .. written(shape) end
        return #shape == 0 and text or "ed.tensor" .. (#shape == 0 and "(" .. text .. ")" or text)
    end
    local whole = has(dtypes, "int32") or has(dtypes, "uint8")
    local text, size = elements(shape, input.low, input.high, function(x)
        return whole and format("%d", x // 1) or tostring(x > (input.low + input.high) / 2)
    end)
    if size > 12 or size == 0 then return nil end
    return #shape == 0 and text or "ed.tensor" .. text
end

-- A call made from the op's first sample, or nil.
local function example_call(op, name, sample)
    local parts, options = {}, {}
    for i, input in ipairs(sample.inputs) do
        local operand = op.operands[i] or op.operands[#op.operands]
        parts[i] = example_operand(operand, input)
        if not parts[i] then return nil end
    end
    if op.variadic then
        local first = #op.operands
        parts[first] = "{" .. concat(parts, ", ", first) .. "}"
        for i = #parts, first + 1, -1 do parts[i] = nil end
    end
    for _, attr in ipairs(op.attrs) do
        local value = sample.attrs[attr.name]
        local plain = attr.default
        if plain == nil then plain = attr.kind == "true or false" and false or nil end
        if value ~= nil and value ~= plain and value ~= "" and written(value) ~= written(plain) then
            options[#options + 1] = attr.name .. " = " .. written(value)
        end
    end
    return "ed." .. name .. called(parts, options)
end

local function shortened(text)
    local lines = {}
    for line in gmatch(text, "[^\n]+") do lines[#lines + 1] = line end
    if #lines > 8 then lines = {lines[1], lines[2], "...", lines[#lines]} end
    return "    " .. concat(lines, "\n    ")
end

-- A list's tensors one below the other.
local function told(result)
    if type(result) ~= "table" then return tostring(result) end
    local parts = {}
    for i, part in ipairs(result) do parts[i] = tostring(part) end
    return concat(parts, "\n")
end

local function example(op, name)
    for _, sample in ipairs(op.samples) do
        local call = example_call(op, name, sample)
        local chunk = call and load("return " .. call, "=example", "t", {ed = ed})
        local fine, result = pcall(chunk or pcall)
        if fine and result ~= nil then
            return "\n    > " .. call .. "\n" .. shortened(told(result))
        end
    end
    return ""
end

local function describe_op(op, name)
    local lines = {op_signature(op, name), "    " .. op.doc, ""}
    local function add(...) lines[#lines + 1] = format(...) end
    local forms = {}
    if #op.operands > 0 and not op.variadic then forms[1] = op_signature(op, name, true) end
    forms[#forms + 1] = operators[name]
    if #forms > 0 then add("    also %s", concat(forms, "    ")) end
    local width = 12
    for _, attr in ipairs(op.attrs) do width = max(width, #attr.name) end
    local row = "    %-" .. width .. "s "
    for i, operand in ipairs(op.operands) do add(row .. "%s", operand.name, dtypes_of(op, i)) end
    for _, attr in ipairs(op.attrs) do
        local doc = attr.doc and ": " .. attr.doc or ""
        add(row .. "%s%s%s", attr.name, attr.kind, doc, otherwise(attr))
    end
    add(row .. "%s", "gradient", op.no_gradient and "none: " .. op.no_gradient or "yes")
    return concat(lines, "\n") .. example(op, name)
end

-- ---- Objects ------------------------------------------------------------------------------------

-- Reductions have two names; the short one is shown.
local function sorted_keys(t)
    local keys = {}
    for key in pairs(t) do
        if type(key) == "string" and not match(key, "^reduce_") then keys[#keys + 1] = key end
    end
    sort(keys)
    return keys
end

-- Names in lines of at most 96 columns.
local function wrapped(names)
    local lines, line = {}, "   "
    for _, name in ipairs(names) do
        if #line + #name > 95 then lines[#lines + 1], line = line, "   " end
        line = line .. " " .. name
    end
    lines[#lines + 1] = line
    return concat(lines, "\n")
end

local function names_of_kind(kind)
    local names = {}
    for name in pairs(known) do
        local field = match(name, "^" .. kind .. "%.(.+)")
        if field then names[field] = "field" end
    end
    for name in pairs(native.methods(kind)) do names[name] = "method" end
    return names
end

local function describe_kind(kind)
    local properties, own, ops = {}, {}, {}
    local names = names_of_kind(kind)
    for _, name in ipairs(sorted_keys(names)) do
        local op = kind == "tensor" and find_op(name) and not known[kind .. ":" .. name]
        local list = names[name] == "field" and properties or op and ops or own
        list[#list + 1] = name
    end
    local text = "a " .. kind
    if #properties > 0 then text = text .. "\n  fields\n" .. wrapped(properties) end
    if #own > 0 then text = text .. "\n  methods\n" .. wrapped(own) end
    if #ops > 0 then text = text .. "\n  ops as methods\n" .. wrapped(ops) end
    return text
end

local function overview()
    local ops, others = {}, {}
    for _, name in ipairs(sorted_keys(ed)) do
        if type(ed[name]) == "function" and not match(name, "^_") then
            local list = find_op(name) and not known[name] and ops or others
            list[#list + 1] = name
        elseif type(ed[name]) == "table" then
            others[#others + 1] = name .. ".*"
        end
    end
    return "Everything is in the table ed. ?name shows help on one name, ed.search \"words\" finds names.\n" ..
               "  functions\n" .. wrapped(others) .. "\n  ops, also methods of tensors\n" ..
               wrapped(ops)
end

-- ---- The functions ------------------------------------------------------------------------------

-- The name of a function: "name", "table.name" or "kind:name".
local function name_of(f)
    local function within(t, prefix)
        for _, name in ipairs(sorted_keys(t)) do
            if t[name] == f then return prefix .. name end
        end
    end
    local name = within(ed, "")
    for _, key in ipairs(name and {} or sorted_keys(ed)) do
        if type(ed[key]) == "table" then name = name or within(ed[key], key .. ".") end
    end
    for _, kind in ipairs(name and {} or native.kinds()) do
        name = name or within(native.methods(kind), kind .. ":")
    end
    return name
end

-- The entry of a name and its key; of an op the name alone.
local function entry_of_method(kind, name)
    if not names_of_kind(kind)[name] then return nil end
    local key = known[kind .. ":" .. name] and kind .. ":" .. name or kind .. "." .. name
    if known[key] then return known[key], key end
    if kind == "sparse_tensor" then name = "sparse_" .. name end -- which is what it is in ed
    return known[name], name
end

-- The same of a name however it is written: ed.sum, sum, x:sum, tensor:item, item(). What is said of
-- no kind is a function before it is a method.
local function entry_of(name)
    name = gsub(gsub(gsub(name, "%s", ""), "%(.*$", ""), "^ed%.", "")
    if known[name] then return known[name], name end
    local first, last = match(name, "^([%w_]*)[:.]?([%w_]-)$")
    if not first then return nil end
    if last == "" then first, last = "", first end
    if has(native.kinds(), first) then return entry_of_method(first, last) end
    if known[last] or find_op(last) then return known[last], last end
    for _, kind in ipairs(native.kinds()) do
        local key = known[kind .. ":" .. last] and kind .. ":" .. last or kind .. "." .. last
        if known[key] then return known[key], key end
    end
    return nil, last
end

-- The arguments that the binding itself tells of a function.
local function arguments_of(key)
    local value = ed
    for part in gmatch(key, "[%w_]+") do value = type(value) == "table" and rawget(value, part) end
    return native.arguments(value)
end

-- What is only named in help.txt has its arguments told by the binding.
local function signature_of(entry, key)
    local arguments = entry.signature == key and arguments_of(key)
    if not arguments then return entry.signature end
    for i, option in ipairs(arguments.options) do arguments.options[i] = option .. "=" end
    return key .. called(arguments.places, arguments.options)
end

-- signature(x): how what has that name, or a function, is called; nil where nothing is known. Of a
-- function with "ed." before it.
function ed.signature(x, ...)
    no_more("signature", 1, ...)
    local name = type(x) == "function" and name_of(x) or x
    if type(name) ~= "string" then return nil end
    local entry, last = entry_of(name)
    local op = not entry and last and find_op(last)
    local text = entry and signature_of(entry, last) or op and op_signature(op, last) or nil
    local bare = text and x ~= name and not find(name, ":") and not match(text, "^ed%.")
    return bare and "ed." .. text or text
end

local function describe_name(name)
    local entry, key = entry_of(name)
    if entry then
        local kind = match(key, "^([%w_]+)[:.]")
        local prefix = kind and has(native.kinds(), kind) and "" or "ed."
        return prefix .. signature_of(entry, key) .. "\n" .. gsub(entry.text, "%s+$", "")
    end
    local last = key
    local op = last and find_op(last)
    if op then return describe_op(op, last) end
    if last == "ed" then return overview() end
    return has(native.kinds(), last) and describe_kind(last) or nil
end

-- names(x): what an object of Eddy's, or one of the kind x names, answers to: "field" or "method"
-- under each name; nil for anything else.
function ed.names(x, ...)
    no_more("names", 1, ...)
    local kind = has(native.kinds(), x) and x or native.kind(x)
    return kind and names_of_kind(kind) or nil
end

-- describe(x): the text that help prints; nil where nothing is known.
function ed.describe(x, ...)
    no_more("describe", 1, ...)
    if x == nil or x == ed then return overview() end
    if type(x) == "string" then return describe_name(x) end
    local kind = native.kind(x)
    if kind then return describe_kind(kind) end
    local name = type(x) == "function" and name_of(x)
    return name and describe_name(name) or nil
end

function ed.help(x, ...)
    no_more("help", 1, ...)
    local text = ed.describe(x)
    if not text and type(x) == "string" then
        print("nothing is called " .. x .. "; names that have it in their description:")
        return ed.search(x)
    end
    print(text or "a " .. type(x))
end

local function first_line(text) return match(text, "^%s*([^\n]*)") end

function ed.search(wanted, ...)
    no_more("search", 1, ...)
    local all = {}
    for name, entry in pairs(known) do all[name] = entry.text end
    for _, name in ipairs(native.ops()) do
        local op = native.op(name)
        name = match(name, "^reduce_(.*)") or name
        all[name] = op.doc
        for _, attr in ipairs(op.attrs) do
            all[name] = all[name] .. "\n" .. attr.name .. " " .. (attr.doc or "")
        end
    end
    local found = 0
    for _, name in ipairs(sorted_keys(all)) do
        local text, fits = lower(name .. " " .. all[name]), true
        for word in gmatch(lower(wanted or ""), "%S+") do fits = fits and find(text, word, 1, true) end
        if fits then
            found = found + 1
            print(format("  %-28s %s", name, first_line(all[name])))
        end
    end
    if found == 0 then print("nothing has all of these words") end
end

-- ---- For the prompt -----------------------------------------------------------------------------

local passed_on = {tape = "tape_begin"} -- functions whose options are another one's

-- The names that may stand before '=' in a call of x, a function, an object or a name; `alone`: in the
-- braces that are all of its arguments, where what has a place has a name too.
return function(x, alone)
    if native.kind(x) == "layer" then x = "layer:forward" end
    local name = type(x) == "string" and x or type(x) == "function" and name_of(x)
    local entry, key = nil, nil
    if name then entry, key = entry_of(passed_on[name] or name) end
    local names = {}
    local arguments = entry and arguments_of(key)
    if arguments then
        names = arguments.options
        for _, place in ipairs(alone and arguments.places or {}) do names[#names + 1] = place end
        return names
    end
    for option in gmatch(key and ed.signature(key) or "", "([%w_]+)%s*=") do names[#names + 1] = option end
    return names
end
