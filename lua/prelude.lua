-- What of the module is written in Lua itself, on the functions that C provides. Run once, when the
-- module is loaded, with the module's table.
local ed = ...

-- A list of operands is a table of tensors; one tensor stands for a list of one.
local function is_tensor(x) return type(x) == "userdata" end

-- tape(): a tape that records from now on. tape(f, ...): f(tape, ...) while it records; then it is
-- stopped. Returns the tape and what f returned.
function ed.tape(f, ...)
    if type(f) ~= "function" then return ed.tape_begin(f) end
    local tape = ed.tape_begin()
    local results = table.pack(pcall(f, tape, ...))
    tape:stop()
    if not results[1] then error(results[2], 0) end
    return tape, table.unpack(results, 2, results.n)
end

-- value_and_grad(f, {sources}): f() and its gradients by the sources, variables or tensors; one
-- source, not in a table, gives one gradient.
function ed.value_and_grad(f, sources)
    local tape = ed.tape_begin()
    local list = is_tensor(sources) and {sources} or sources
    for _, source in ipairs(list) do tape:watch(source) end
    local results = table.pack(pcall(f))
    tape:stop()
    if not results[1] then error(results[2], 0) end
    return results[2], tape:gradient(results[2], sources)
end

local function as_float(x)
    x = ed.tensor(x)
    local d = x.dtype
    return (d == "float32" or d == "float64") and x or x:cast("float32")
end

-- grad(f): a function of the same arguments that gives the gradient of f by its first one; of a
-- result of several elements that of their sum. grad(grad(f)) is the second derivative.
function ed.grad(f)
    return function(x, ...)
        x = as_float(x)
        local tape = ed.tape_begin()
        tape:watch(x)
        local results = table.pack(pcall(f, x, ...))
        tape:stop()
        if not results[1] then error(results[2], 0) end
        return tape:gradient(results[2], x, {unconnected_zeros = true})
    end
end

local function jacobian_of(f, x, by_row)
    x = as_float(x)
    local tape = ed.tape_begin{persistent = true}
    tape:watch(x)
    local results = table.pack(pcall(f, x))
    tape:stop()
    if not results[1] then error(results[2], 0) end
    local y = results[2]
    if by_row then return tape:batch_jacobian(y, x) end
    return tape:jacobian(y, x) or ed.zeros{table.unpack(y.shape), table.unpack(x.shape)}
end

-- jacobian(f, x): d f(x)[i] / d x[j], of shape f(x).shape .. x.shape; batch_jacobian: row by row.
function ed.jacobian(f, x) return jacobian_of(f, x, false) end
function ed.batch_jacobian(f, x) return jacobian_of(f, x, true) end

-- hessian(f, x): the second derivatives of a scalar f(x), of shape x.shape .. x.shape.
function ed.hessian(f, x) return ed.jacobian(ed.grad(f), x) end

-- custom_gradient(forward, gradient): a function; forward(inputs...) gives its value,
-- gradient(dy, output, inputs...) what flows back to each input.
function ed.custom_gradient(forward, gradient)
    local held = {forward = forward, gradient = gradient}
    return function(...) return ed.custom_gradient_call(held, {...}) end
end

-- recompute(f): the same function, whose inside is computed again on the way back, not kept.
function ed.recompute(f)
    local held = {forward = f}
    return function(...) return ed.recompute_call(held, {...}) end
end

-- check_gradient(f, {inputs}, {second_order = , rtol = , ...}): whether the tape's gradients of
-- f(inputs...) at the inputs, float64, agree with finite differences; then a report.
function ed.check_gradient(f, inputs, options)
    return ed.check_gradient_call({forward = f}, inputs, options)
end

-- hessian_vector_product(f, {inputs}, {vectors}): the product of the Hessian of f(inputs...) with
-- the vectors, of the inputs' shapes; f gives a scalar.
function ed.hessian_vector_product(f, inputs, vectors)
    return ed.hessian_vector_product_call({forward = f}, inputs, vectors)
end

-- counter(n): a variable that counts, int64 and not trainable: a step_counter, an epoch.
function ed.counter(n)
    return ed.variable(ed.tensor(n or 0, "int64"), {name = "counter", trainable = false})
end
