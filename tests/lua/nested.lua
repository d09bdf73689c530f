-- Sources, targets and output gradients in tables with names and tables within.
local check = require "check"

local w, b, c = ed.tensor{1.0, 2.0}, ed.tensor(3.0), ed.tensor{5.0}
local sources = {layers = {{w = w, b = b}, {}}, c = c}
local y, g = ed.value_and_grad(function() return (w * w * b):sum() end, sources)
check.near(y, 15)
check.near(g.layers[1].w, {6, 12})
check.near(g.layers[1].b, 5)
check.equal(g.c, false)
check.equal(#g.layers, 2)
check.equal(next(g.layers[2]), nil)
check.equal(sources.c, c) -- it stays as it was

local tape, targets = ed.tape(function(tape)
    for _, x in ipairs{w, b} do tape:watch(x) end
    return {square = w * w, others = {b * 2, w:sum()}}
end)
g = tape:gradient(targets, {b, {w}}, {
    output_gradients = {square = ed.tensor{1.0, 10.0}, others = {3, ed.tensor(100.0)}},
    unconnected_zeros = true,
})
check.near(g[1], 6)
check.near(g[2][1], {102, 140})

-- Jacobians.
tape, y = ed.tape(function(tape) tape:watch(w) return w * w end)
check.raises("must be persistent", tape.jacobian, tape, y, w)
tape = ed.tape{persistent = true}
tape:watch(w)
tape:watch(b)
y = w * b
tape:stop()
local j = tape:jacobian(y, {w = w, rest = {b, c}})
check.near(j.w, {{3, 0}, {0, 3}})
check.near(j.rest[1], {1, 2})
check.equal(j.rest[2], false)
check.equal(tape:jacobian(y, c), nil)
check.near(tape:jacobian(y, c, {unconnected_zeros = true}), {{0}, {0}})
check.list(tape:jacobian(y, {c}, {unconnected_zeros = true})[1].shape, {2, 1})
check.raises("there is no option zeros", tape.jacobian, tape, y, c, {zeros = true})
check.near(tape:batch_jacobian(y, {w, other = nil})[1], {3, 3})
check.near(tape:batch_jacobian(y, {x = {w}}).x[1], {3, 3})
check.raises("same size of the first axis", tape.batch_jacobian, tape, y, {x = b})
j = ed.jacobian(function(x) return x.a * x.b[1] end, {a = ed.tensor{1.0, 2.0}, b = {3.0, unused = nil}})
check.near(j.a, {{3, 0}, {0, 3}})
check.near(j.b[1], {1, 2})
check.near(ed.jacobian(function(x) return x * x end, {1, 2}), {{2, 0}, {0, 4}})
check.near(ed.jacobian(function(x) return x[1] * x[2] end)({ed.tensor(2.0), ed.tensor{3.0}})[1], {3})
j = ed.batch_jacobian(function(x) return x.a * x.b end, {a = ed.ones{2, 2}, b = ed.ones{2, 2}})
check.near(j.b, {{{1, 0}, {0, 1}}, {{1, 0}, {0, 1}}})

-- What is no such table.
check.raises("sources: a table has names or is a list, not both", tape.gradient, tape, y, {w, b = b})
check.raises("keys must be strings", tape.gradient, tape, y, {w = w, [true] = b})
check.raises("zero byte", tape.gradient, tape, y, {["w\0"] = w})
check.raises("source 2 must be a tensor, got a number", ed.value_and_grad, function() return w end, {a = w, b = 2})
local cyclic = {}
cyclic.me = cyclic
check.raises("more than 100 deep", ed.value_and_grad, function() return w end, cyclic)
check.raises("more than 100 deep", tape.gradient, tape, cyclic, w)
check.raises("is expected, not the string 'x'", tape.gradient, tape, {a = y, b = "x"}, w)
check.raises("output_gradients must have 1 entries like the targets, got 2", tape.gradient, tape, y, w,
    {output_gradients = {{1}, 2}})
