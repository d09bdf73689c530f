-- What of the module is written in Lua itself, on the functions that C provides. Run once, when the
-- module is loaded, with the module's table and functions that only it needs.
local ed, native = ...

-- Errors of arguments are the caller's: of what called the function that checks.
local function check_callable(f, what)
    local kind = type(f)
    if kind == "function" or kind == "userdata" or kind == "table" then return end
    error(what .. ": a function is expected, not a " .. kind, 3)
end

local function check_table(x, what)
    if type(x) ~= "table" then error(what .. " are a table of tensors, not a " .. (ed.type(x) or type(x)), 3) end
end

-- Takes what x is or holds out of the set of what a scope closes.
local function keep(made, x, seen)
    if made[x] then
        made[x] = nil
        if made.outer then made.outer[x] = true end
    elseif type(x) == "table" and not seen[x] then
        seen[x] = true
        for key, value in next, x do
            keep(made, key, seen)
            keep(made, value, seen)
        end
    end
end

-- scope(f, ...): calls f; what was made meanwhile is closed at its end, but for what f returns and
-- what is in tables that it returns.
function ed.scope(f, ...)
    check_callable(f, "scope")
    local made <close> = native.scope()
    local results = table.pack(f(...))
    local seen = {}
    for i = 1, results.n do
        if results[i] ~= nil then keep(made, results[i], seen) end
    end
    return table.unpack(results, 1, results.n)
end

-- Calls f(tape, ...) while a new tape records; it stops however f ends. Returns the tape and what f
-- returned.
local stopping = {__close = native.stop_tape} -- in C, which Ctrl-C does not interrupt

local function record(options, f, ...)
    local tape = ed.tape_begin(options)
    local guard <close> = setmetatable({tape}, stopping)
    return tape, f(tape, ...)
end

-- tape(): a tape that records from now on. tape(f, ...): f(tape, ...) while it records; then it is
-- stopped. Returns the tape and what f returned.
function ed.tape(f, ...)
    if f == nil or type(f) == "table" then return ed.tape_begin(f) end
    check_callable(f, "tape")
    return record(nil, f, ...)
end

local function check_result(y, what)
    if ed.type(y) == "tensor" then return end
    error(what .. ": the function returned a " .. (ed.type(y) or type(y)) ..
        "; a tensor is expected", 3)
end

-- value_and_grad(f, {sources}): f() and its gradients by the sources, variables or tensors; of a
-- layer, by its trainable variables. One source, not in a table, gives one gradient.
function ed.value_and_grad(f, sources)
    check_callable(f, "value_and_grad")
    local list = ed.type(sources) == "tensor" and {sources} or sources
    if ed.type(list) ~= "layer" and (type(list) ~= "table" or next(list) ~= nil and #list == 0) then
        error("value_and_grad: the sources are a tensor, a table of tensors or a layer, not a " ..
            (type(list) == "table" and "table with names" or ed.type(list) or type(list)), 2)
    end
    local tape, y = record(nil, function(tape)
        if type(list) == "table" then
            for i, source in ipairs(list) do
                if ed.type(source) ~= "tensor" then
                    error("value_and_grad: source " .. i .. " is a " ..
                        (ed.type(source) or type(source)) .. "; a tensor is expected", 4)
                end
                tape:watch(source)
            end
        end
        return f()
    end)
    check_result(y, "value_and_grad")
    if ed.type(list) == "layer" then sources = list:trainable() end
    return y, tape:gradient(y, sources)
end

local function as_float(x)
    x = ed.tensor(x)
    local d = x.dtype
    return (d == "int32" or d == "int64" or d == "uint8") and x:cast("float32") or x
end

-- grad(f): a function of the same arguments that gives the gradient of f by its first one; of a
-- result of several elements that of their sum. grad(grad(f)) is the second derivative.
function ed.grad(f)
    check_callable(f, "grad")
    return function(x, ...)
        if x == nil then error("grad: an argument to differentiate by is missing", 2) end
        x = as_float(x)
        local tape, y = record(nil, function(tape, ...)
            tape:watch(x)
            return f(x, ...)
        end, ...)
        check_result(y, "grad")
        return tape:gradient(y, x, {unconnected_zeros = true})
    end
end

-- What f makes of x on a tape that may be asked often.
local function recorded(f, x)
    return record({persistent = true}, function(tape)
        tape:watch(x)
        return f(x)
    end)
end

-- What compute makes of f and x; without an x, the function of x that does.
local function of(compute, f, ...)
    if select("#", ...) > 0 then return compute(f, ...) end
    return function(x) return compute(f, x) end
end

local function jacobian(f, x)
    x = as_float(x)
    local tape, y = recorded(f, x)
    check_result(y, "jacobian")
    local shape = table.move(x.shape, 1, x.rank, y.rank + 1, y.shape)
    return tape:jacobian(y, x) or ed.zeros(shape, {dtype = x.dtype})
end

local function batch_jacobian(f, x)
    x = as_float(x)
    local tape, y = recorded(f, x)
    check_result(y, "batch_jacobian")
    return tape:batch_jacobian(y, x)
end

local function hessian(f, x) return jacobian(ed.grad(f), x) end

-- jacobian(f, x): d f(x)[i] / d x[j], of shape f(x).shape .. x.shape. jacobian(f): a function of x.
function ed.jacobian(f, ...)
    check_callable(f, "jacobian")
    return of(jacobian, f, ...)
end

-- batch_jacobian(f, x): the same row by row, d f(x)[n][i] / d x[n][j].
function ed.batch_jacobian(f, ...)
    check_callable(f, "batch_jacobian")
    return of(batch_jacobian, f, ...)
end

-- hessian(f, x): the second derivatives of a scalar f(x), of shape x.shape .. x.shape. hessian(f):
-- a function of x.
function ed.hessian(f, ...)
    check_callable(f, "hessian")
    return of(hessian, f, ...)
end

-- Functions with gradients take tensors: numbers become some.
local function tensors(...)
    local list = {...}
    for i, x in ipairs(list) do
        if type(x) == "number" then list[i] = ed.tensor(x + 0.0) end
    end
    return list
end

-- custom_gradient(forward, gradient): a function; forward(inputs...) gives its value,
-- gradient(dy, output, inputs...) what flows back to each input. custom_gradient(forward), where
-- forward returns its value and a function of dy: the same.
function ed.custom_gradient(forward, gradient)
    check_callable(forward, "custom_gradient")
    if gradient ~= nil then
        check_callable(gradient, "custom_gradient")
        local held = {forward = forward, gradient = gradient}
        return function(...) return native.custom_gradient(held, tensors(...)) end
    end
    return function(...)
        local back
        return native.custom_gradient({
            forward = function(...)
                local y
                y, back = forward(...)
                check_callable(back, "custom_gradient: what forward returns beside its value")
                return y
            end,
            gradient = function(dy) return back(dy) end,
        }, tensors(...))
    end
end

-- recompute(f): the same function, whose inside is computed again on the way back, not kept.
function ed.recompute(f)
    check_callable(f, "recompute")
    local held = {forward = f}
    return function(...) return native.recompute(held, tensors(...)) end
end

-- check_gradient(f, {inputs}, {second_order = , rtol = , ...}): whether the tape's gradients of
-- f(inputs...) at the inputs, float64, agree with finite differences; then a report.
function ed.check_gradient(f, inputs, options)
    check_callable(f, "check_gradient")
    check_table(inputs, "check_gradient: the inputs")
    return native.check_gradient({forward = f}, inputs, options)
end

-- hessian_vector_product(f, {inputs}, {vectors}): the product of the Hessian of f(inputs...) with
-- the vectors, of the inputs' shapes; f gives a scalar.
function ed.hessian_vector_product(f, inputs, vectors)
    check_callable(f, "hessian_vector_product")
    check_table(inputs, "hessian_vector_product: the inputs")
    check_table(vectors, "hessian_vector_product: the vectors")
    return native.hessian_vector_product({forward = f}, inputs, vectors)
end

-- ---- Timing -------------------------------------------------------------------------------------

local function seconds(s)
    if s < 1e-3 then return ("%.3g us"):format(s * 1e6) end
    return s < 1 and ("%.3g ms"):format(s * 1e3) or ("%.3g s"):format(s)
end

local timing = {__tostring = function(t)
    return ("%s a call at best, %s on average (%d rounds of %d calls)"):format(seconds(t.best), seconds(t.mean),
        t.rounds, t.calls)
end}

-- timeit(f, n): the seconds that f() takes: a table of best and mean, over rounds of n calls; without n
-- as many as take a tenth of a second together. What f returns is dropped.
function ed.timeit(f, n)
    check_callable(f, "timeit")
    if n ~= nil and (math.type(n) ~= "integer" or n < 1) then
        error("timeit: n is " .. tostring(n) .. "; an integer from 1 on is expected", 2)
    end
    local function round(calls)
        local start = native.clock()
        for _ = 1, calls do f() end
        return native.clock() - start
    end
    local calls, took = n or 1, round(n or 1)
    while not n and took < 0.1 do
        calls = took < 0.01 and calls * 10 or math.ceil(calls * 0.11 / took)
        took = round(calls)
    end
    local result = {best = took, mean = took, calls = calls, rounds = took < 1 and 5 or 1}
    for _ = 2, result.rounds do
        took = round(calls)
        result.best, result.mean = math.min(result.best, took), result.mean + took
    end
    result.best, result.mean = result.best / calls, result.mean / calls / result.rounds
    return setmetatable(result, timing)
end

-- counter(n): a variable that counts, int64 and not trainable: a step_counter, an epoch.
function ed.counter(n)
    return ed.variable(ed.tensor(n or 0, "int64"), {name = "counter", trainable = false})
end
