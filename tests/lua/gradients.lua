-- What prelude.lua makes of tapes: gradients of functions, scopes; errors in callbacks.
local check = require "check"

-- The line so many lines below, as messages have it.
local function line(below)
    return "gradients.lua:" .. debug.getinfo(2, "l").currentline + below .. ": "
end

-- Jacobians where nothing leads have the right shape too, and the input's dtype.
local x = ed.ones{2, 3}
check.list(ed.jacobian(function() return ed.ones{4, 5} end, x).shape, {4, 5, 2, 3})
check.list(ed.jacobian(function() return ed.tensor(1.0) end, x).shape, {2, 3})
check.list(ed.hessian(function(x) return x:sum() end, x).shape, {2, 3, 2, 3})
check.equal(ed.jacobian(function() return ed.ones{2} end, x:cast("float64")).dtype, "float64")
local j = ed.jacobian(function(x) return x * x end, ed.tensor{{1.0, 2.0}, {3.0, 4.0}})
check.list(j.shape, {2, 2, 2, 2})
for a = 1, 2 do
    for b = 1, 2 do
        for c = 1, 2 do
            for d = 1, 2 do
                local expected = a == c and b == d and 2 * (2 * a + b - 2) or 0
                check.equal(j[{a, b, c, d}]:item(), expected)
            end
        end
    end
end
local h = ed.hessian(function(x) return (x ^ 3):sum() + x[1] * x[2] end, ed.tensor{1.0, 2.0})
check.near(h, {{6, 1}, {1, 12}}, 1e-5)
check.near(ed.hessian(function(x) return (x ^ 3):sum() end)(ed.tensor{1.0, 2.0}), {{6, 0}, {0, 12}},
    1e-5)
check.near(ed.batch_jacobian(function(x) return x * x end, ed.tensor{{1.0, 2.0}, {3.0, 4.0}}),
    {{{2, 0}, {0, 4}}, {{6, 0}, {0, 8}}})
check.near(ed.grad(ed.grad(ed.grad(function(x) return x ^ 4 end)))(2), 48, 1e-3)

-- What can't be differentiated is said at the line that asked.
check.raises(line(1) .. "grad: expected a function, got a number",
    function() ed.grad(5) end)
check.raises(line(1) .. "value_and_grad: the function must return a tensor, got a number",
    function() ed.value_and_grad(function() return 3 end, {x}) end)
check.raises(line(1) .. "value_and_grad: source 1 must be a tensor, got a number",
    function() ed.value_and_grad(function() end, {5}) end)
check.raises("scope: expected a function, got a tensor", ed.scope, ed.ones{2})
check.raises("tape: expected a function, got a tensor", ed.tape, ed.ones{2})
check.raises("timeit: expected a function, got a table", ed.timeit, setmetatable({}, {}))
check.equal(ed.scope(setmetatable({}, {__call = function() return 7 end})), 7)
check.raises("the function must return a tensor, got a nil", ed.value_and_grad, function() end, {v = x})
check.raises("sources must be a tensor, a table of tensors or a layer, got a number", ed.value_and_grad,
    function() end, 5)
check.raises("jacobian: the function must return a tensor, got a string", ed.jacobian, function() return "a" end, x)
check.raises("the function needs an argument, got none", ed.grad(function(x) return x end))
check.raises("expected a function, got nil", ed.hessian)
check.raises("expected a function, got a number", ed.custom_gradient, 5)

-- A layer stands for its trainable variables.
local dense = ed.dense(1)
dense(x)
local loss, gradients = ed.value_and_grad(function() return (dense(x) ^ 2):sum() end, dense)
check.equal(#gradients, 2)

-- No tape goes on recording when something fails.
local function living()
    collectgarbage()
    collectgarbage()
    return ed.memory().live_tensors
end
local before = living()
for _ = 1, 3 do
    pcall(ed.value_and_grad, function() end, {x, 1})
    pcall(ed.grad(function(x) error("no") end), x)
    pcall(ed.tape, function() error("no") end)
end
for _ = 1, 100 do local _ = x * 2 end
check.equal(living(), before)

-- The one gradient may be asked while ed.tape's function still runs.
local tape, value = ed.tape(function(tape)
    local v = ed.variable(3.0)
    return tape:gradient(v * v, v)
end)
check.near(value, 6)

-- Gradients of one's own: two functions, or one that returns its value and a function of dy.
local double = ed.custom_gradient(function(x) return x * x end, function(dy) return dy * 100 end)
check.near(ed.grad(double)(3.0), 100)
double = ed.custom_gradient(function(x) return x * x, function(dy) return dy * 100 end end)
check.near(ed.grad(double)(3.0), 100)
check.near(double(3), 9)
check.raises("the result of forward after its outputs: expected a function, got nil",
    ed.custom_gradient(function(x) return x end), 1.0)

-- Of several outputs; where nothing flows back, dy is zeros.
local seen
local two = ed.custom_gradient(function(a, b) return a * b, a + b end, function(dp, ds, p, s, a, b)
    seen = {dp:item(), ds:item(), p:item(), s:item()}
    return dp * b * 10 + ds, ds + dp
end)
local twice, sum
tape = ed.tape{persistent = true}
local a, b = ed.tensor(3.0), ed.tensor(5.0)
tape:watch(a)
tape:watch(b)
twice, sum = two(a, b)
check.equal(select("#", two(a, b)), 2)
check.near(twice, 15)
check.near(sum, 8)
check.near(tape:gradient({twice, sum}, a), 51)
check.near(tape:gradient(sum, {a, b})[2], 1)
check.list(seen, {0.0, 1.0, 15.0, 8.0})
two = ed.custom_gradient(function(a, b)
    return a * b, a + b, function(dp, ds, more) return dp * 2, more == nil and ds * 3 end
end)
twice, sum = two(a, b)
check.near(tape:gradient(twice * sum, {x = {a, b}}).x[2], 45)
tape:stop()
check.raises("forward: the function must return tensors, got 2", ed.custom_gradient(function(x) return x, 2 end, print), a)
check.raises("must return a tensor, got nothing", ed.custom_gradient(function() end, print), a)

-- Callbacks' errors come out as the very value, once placed, from coroutines too.
local thrown = {}
local raising = ed.custom_gradient(function() error(thrown) end, print)
local fine, caught = pcall(raising, x)
assert(not fine and caught == thrown)
raising = ed.recompute(function() error("inside") end)
fine, caught = pcall(raising, x)
check.equal(caught, "tests/lua/" .. line(-2) .. "inside")
local resumed = coroutine.wrap(function()
    return pcall(ed.recompute(function(x)
        coroutine.yield()
        return x
    end), x)
end)
fine, caught = resumed()
assert(not fine and caught:find("attempt to yield across a C-call boundary", 1, true), caught)

-- A scope closes what was made in it, but for what is returned, in tables too.
local kept, inner
local results = table.pack(ed.scope(function()
    kept = ed.ones{2}
    inner = ed.scope(function() return {deep = {ed.ones{3}}} end)
    local cyclic = {ed.ones{4}}
    cyclic.me = cyclic
    return inner.deep[1], cyclic, nil
end))
check.equal(results.n, 3)
check.near(results[1], {1, 1, 1})
check.near(results[2][1], {1, 1, 1, 1})
check.near(inner.deep[1], {1, 1, 1})
check.raises("closed", function() return kept + 1 end)
check.raises(line(0) .. "in the scope", ed.scope, function() error("in the scope") end)
check.raises("scope: expected a function, got nil", ed.scope)
local first = coroutine.wrap(function()
    ed.scope(function()
        local t = ed.ones{5}
        coroutine.yield(t)
        return nil
    end)
end)
local in_scope, outside = first(), ed.ones{2}
check.near(in_scope, {1, 1, 1, 1, 1})
first()
check.raises("closed", function() return in_scope + 1 end)
check.near(outside, {1, 1})

-- Loops over large temporaries stay flat: what is dropped goes before something new comes.
local function copies(f)
    local size = 8 * 1024 * 1024 -- 32 MB
    living()
    ed.memory_reset_peak()
    local start = ed.memory().live_bytes
    f(size)
    return (ed.memory().peak_bytes - start) / (4 * size)
end
assert(copies(function(n) for _ = 1, 20 do local _ = ed.ones{n} end end) < 2.6)
assert(copies(function(n)
    local x = ed.ones{n}
    for _ = 1, 20 do x = x + 1 end
end) < 3)
assert(copies(function(n)
    ed.scope(function() for _ = 1, 20 do local _ = ed.ones{n} end end)
end) < 3)
assert(copies(function(n)
    for _ = 1, 10 do
        local layer = ed.dense(n // 1024)
        layer(ed.ones{1, 1024})
    end
end) < 3)

-- Who made what.
check.equal(ed.memory_trace(true), false)
local a, b = ed.ones{1000}, ed.ones{10}
local found
for _, entry in ipairs(ed.memory_lines()) do
    if entry.place .. ": " == "tests/lua/" .. line(-3) then found = entry end
end
check.equal(found.tensors, 2)
check.equal(found.bytes, 4040)
check.equal(ed.memory_trace(false), true)

-- Messages count axes and operands as the program does.
check.raises("axis 2 is out of bounds for rank 1", function() ed.ones{3}:sum{axis = 2} end)
check.raises("axis 1 is named twice in [1, 1]", function() ed.ones{3}:sum{axis = {1, 1}} end)
check.raises("axis -2 is out of bounds", function() ed.ones{3}:sum{axis = -2} end)
check.raises("operand 1 is float32[2, 2], operand 2 is float32[2, 3]; only axis 1 may differ",
    function() ed.concat({ed.ones{2, 2}, ed.ones{2, 3}}, {axis = 1}) end)

-- Options of gradient are known ones.
tape, value = ed.tape(function(tape)
    tape:watch(x)
    return (x * x):sum()
end)
check.raises("there is no option unconected_zeros", tape.gradient, tape, value, x, {unconected_zeros = true})
check.raises("table of options", tape.gradient, tape, value, x, 5)
check.near(tape:gradient(value, x, {output_gradients = 2}), {4, 4, 4, 4, 4, 4})

-- Texts of any length come out of callbacks whole.
local long = ("y"):rep(5000)
fine, caught = pcall(ed.recompute(function() error(long, 0) end), x)
assert(not fine and caught == long)
check.raises("forward: the function must return a tensor, got 3", ed.recompute(function() return 3 end), x)
check.raises("the inputs must be a table of tensors, got a number",
    function() ed.check_gradient(function(x) return x end, 3) end)
check.raises("1 to 64", ed.num_threads, (1 << 32) + 1)

-- A finalizer may end a scope while a call works with what was made in it.
local watching, watched
local function begin_scope()
    return coroutine.wrap(function()
        ed.scope(function()
            watched = ed.tensor{3.0}
            coroutine.yield()
        end)
    end)
end
for round = 1, 60 do
    local resume = begin_scope()
    resume()
    local tape, y = ed.tape(function(tape)
        tape:watch(watched)
        return watched * 2
    end)
    setmetatable({}, {__gc = function() resume() end})
    local fill = {}
    for i = 1, round * 7 do fill[i] = {} end
    local fine, g = pcall(tape.gradient, tape, y, watched)
    if fine then check.near(g, 2) end
end
