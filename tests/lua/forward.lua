-- Forward mode.
local check = require "check"

local x, w = ed.tensor{1.0, 2.0}, ed.variable{3.0, 4.0}
local acc = ed.forward_accumulator(x, {10, 100})
local y = x * x
check.near(acc:jvp(y), {20, 400})
check.equal(acc:jvp(w), nil)
check.near(acc:jvp(w, {unconnected_zeros = true}), {0, 0})
local both = acc:jvp{square = y, rest = {w, x}}
check.near(both.square, {20, 400})
check.equal(both.rest[1], false)
check.near(both.rest[2], {10, 100})
acc:stop()
check.equal(acc:jvp(x + 1), nil)
check.raises("it is stopped already", acc.stop, acc)
check.raises("there is no option zeros", acc.jvp, acc, y, {zeros = true})
check.equal(ed.type(acc), "forward_accumulator")

-- Forward over reverse: the Hessian's product.
acc = ed.forward_accumulator({x = x, w = {w}}, {x = ed.ones{2}, w = {0}})
local _, g = ed.value_and_grad(function() return (x ^ 2 * w):sum() end, {x, w})
local products = acc:jvp(g)
acc:stop()
check.near(products[1], {6, 8}, 1e-5)
check.near(products[2], {2, 4}, 1e-5)

-- Of functions; and of grad, the second derivative.
local value, slope = ed.jvp(function(a, b) return a * b end, {x, 3.0 * x}, {{1, 1}, 0})
check.near(value, {3, 12})
check.near(slope, {3, 6})
value, slope = ed.jvp(function(p) return {product = p.a * p.b, sum = p.a + p.b} end, {a = x, b = w}, {a = {1, 0}, b = 2})
check.near(slope.sum, {3, 2})
check.near(slope.product, {5, 4})
value, slope = ed.jvp(ed.grad(function(a) return a ^ 3 end), ed.tensor(2.0), 1)
check.near(value, 12, 1e-5)
check.near(slope, 12, 1e-5)
check.near(select(2, ed.jvp(function(a) return ed.ones{3} end, x, 1)), {0, 0, 0})
check.near(select(2, ed.jvp(ed.custom_gradient(function(a) return a, a * 2 end, function(d, e) return d + e end),
    x, {1, 2})), {1, 2})

-- What is wrong, and that nothing goes on recording.
check.raises("a table of 2 tangents is expected", ed.forward_accumulator, {x, w}, {1})
check.raises("primal 2 is given twice", ed.forward_accumulator, {x, x}, {1, 1})
check.raises("tangent 1 is float32[3], but its primal is float32[2]", ed.forward_accumulator, x, {1.0, 2, 3})
check.raises("float dtype, got int32[1]", ed.forward_accumulator, ed.tensor{1}, 1)
check.raises("a table of 1 tangents is expected", ed.forward_accumulator, {x}, {1, 2})
check.raises("tangents: the entry b is missing", ed.forward_accumulator, {a = x, b = w}, {a = 1})
check.raises("a table of the same form is expected, not 1", ed.forward_accumulator, {a = x, b = {w}}, {a = 1, b = 1})
check.raises("the tangents are nil", ed.jvp, print, x)
check.raises("jvp: expected a function, got a number", ed.jvp, 1, x, 1)
check.raises("jvp: the function must return a tensor, got a number", ed.jvp, function() return 1 end, x, 1)
check.raises("own words", ed.jvp, function() error("own words") end, x, 1)
check.raises("contains floor", ed.jvp, ed.floor, x, 1)
collectgarbage()
local before = ed.memory().live_tensors
for _ = 1, 3 do pcall(ed.jvp, function(a) error(a * a) end, x, 1) end
for _ = 1, 50 do local _ = x * 2 end
collectgarbage()
check.equal(ed.memory().live_tensors, before)
