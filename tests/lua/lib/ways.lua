-- How test_ways calls an op in Lua: as a program does.
local ways = {}

-- Functions that take an op's operands and options in another form: they get the operands and then all
-- options, as the op has them.
local forms = {
    cond = function(x, options) return x:cond(options) end,
    dropout = function(x, options) return ed.dropout(x, options.rate) end,
    full = function(value, options) return ed.full(options.shape, value) end,
    split = function(x, options) return ed.split(x, options.count, {axis = options.axis}) end,
}

local END = math.mininteger

-- Indices from 0, and one behind the last; from 1, and the last one.
function forms.slice(x, options)
    local first, last, step = {}, {}, options.step or {}
    for i, begin in ipairs(options.begin or {}) do
        local up, stop = (step[i] or 1) > 0, options["end"] and options["end"][i] or END
        first[i] = begin ~= END and (begin < 0 and begin or begin + 1) or up and 1 or -1
        last[i] = stop == END and (up and -1 or 1) or (stop < 0 and stop or stop + 1) + (up and -1 or 1)
    end
    return ed.slice(x, {first = first, last = last, step = options.step})
end

-- The function that calls the op; nil without one.
function ways.find(name)
    return forms[name] or rawget(ed, name) or rawget(ed.random, (name:gsub("^random_", "")))
end

-- The results of f and of each that has a seed, the gradients by the sources, false where there is none; f
-- gives tensors or a table of them, and seeds[i] is false or the gradient of result i.
function ways.slopes(f, operands, sources, seeds)
    local tape = ed.tape{persistent = true}
    for _, source in ipairs(sources) do tape:watch(source) end
    local results = table.pack(f(table.unpack(operands)))
    tape:stop()
    if type(results[1]) == "table" then results = results[1] end
    local gradients = {}
    for i, seed in ipairs(seeds) do
        gradients[i] = seed and results[i] and
            tape:gradient(results[i], sources, {output_gradients = {seed}})
    end
    return results, gradients
end

return ways
