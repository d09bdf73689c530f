-- Loops over slices, while, cond.
local check = require "check"

local x, w = ed.tensor{{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}}, ed.variable{10.0, 20.0, 30.0}

-- Maps.
check.near(ed.map_fn(function(row) return row:sum() end, x), {3, 7, 11})
check.near(ed.map_fn(function(n) return n * 2 end, {1, 2, 3}), {2, 4, 6})
local y = ed.map_fn(function(s) return {double = s.row * s.rest[1], rest = {s.row:sum()}} end, {row = x, rest = {w}})
check.list(y.double.shape, {3, 2})
check.near(y.double, {{10, 20}, {60, 80}, {150, 180}})
check.near(y.rest[1], {3, 7, 11})
local _, g = ed.value_and_grad(function()
    return ed.map_fn(function(s) return s[1] * s[2] end, {x, w}):sum()
end, {x, w})
check.near(g[1], {{10, 10}, {20, 20}, {30, 30}})
check.near(g[2], {3, 7, 11})
check.near(ed.vectorized_map(function(s) return s[1] + s[2] end, {ed.ones{1, 2}, x}), x + 1)
-- All slices at once: f is called once; again for each slice if it reads elements.
local calls
local function counted(f)
    calls = 0
    return function(...)
        calls = calls + 1
        return f(...)
    end
end
local function network(s) return {ed.softmax(s.x:reshape{1, -1}:matmul(w:reshape{1, 3}:tile{2, 1})), {s.y * 2, 1}} end
local both = {x = x, y = w}
local all, one = ed.vectorized_map(counted(network), both), ed.map_fn(network, both)
check.equal(calls, 1)
for k = 1, 2 do check.near(k == 1 and all[1] or all[2][1], k == 1 and one[1] or one[2][1]) end
check.near(all[2][2], {1, 1, 1})
check.near(ed.vectorized_map(counted(function(s) return s * s[1]:item() end), x), {{1, 2}, {9, 12}, {25, 30}})
check.equal(calls, 4)
check.near(ed.vectorized_map(counted(function(s) return s:sum():item() > 5 and s or -s end), x), {{-1, -2}, {3, 4}, {5, 6}})
check.equal(calls, 4)
g = ed.grad(function(a) return ed.vectorized_map(function(s) return (s * s):sum() end, a) end)(x)
check.near(g, x * 2)
check.near(ed.vectorized_map(function(row) return ed.vectorized_map(function(e) return e * e end, row) end, x), x * x)
check.near(ed.vectorized_map(function(n) return n * 2 end, {1, 2, 3}), {2, 4, 6})
local v = ed.variable(0.0)
check.near(ed.vectorized_map(function() v:assign_add(1) return v end, x), {1, 2, 3})
v:assign(0)
check.near(ed.map_fn(function() v:assign_add(1) return v end, x), {1, 2, 3})

-- Folds and scans.
local function horner(s, a) return s * a + 1 end
local c = ed.tensor{2.0, 3.0, 5.0}
check.near(ed.foldl(horner, c, 7), 231)
check.near(ed.foldr(horner, c, ed.tensor(7.0)), 219)
check.near(ed.foldl(horner, c), 36)
check.near(ed.foldr(horner, c), 33)
check.near(ed.scan(horner, c, 7.0), {15, 46, 231})
check.near(ed.scan(horner, c, 7.0, {reverse = true}), {219, 109, 36})
check.near(ed.scan(horner, c), {2, 7, 36})
check.near(ed.scan(horner, c, nil, {reverse = true}), {33, 16, 5})
y = ed.scan(function(s, a) return {n = s.n + 1, sum = s.sum + a} end, x, {n = ed.tensor(0), sum = ed.zeros{2}})
check.near(y.n, {1, 2, 3})
check.near(y.sum, {{1, 2}, {4, 6}, {9, 12}})
local _, slope = ed.value_and_grad(function() return ed.foldl(horner, c, 7.0) end, c)
check.near(slope, {105, 75, 46})
check.near(ed.foldl(horner, ed.zeros{0}, 7.0), 7)

-- While and cond.
local function below(a) return a:less(100) end
local last, base = ed.while_loop(below, function(a, b) return a * b, b end, {ed.tensor(1.0), ed.tensor(3.0)})
check.near(last, 243)
check.near(base, 3)
check.near(ed.while_loop(below, function(a) return {a * 2} end, {ed.tensor(1.0)}, {maximum_iterations = 3}), 8)
check.equal(ed.while_loop(function(i) return i < 5 end, function(i) return i + 1 end, {1}), 5)
check.near(ed.grad(function(b)
    return (ed.while_loop(below, function(a, b) return a * b, b end, {ed.tensor(1.0), b}))
end)(3.0), 405)
check.equal(ed.cond(ed.tensor(3.0):less(4), function() return "yes" end, function() return "no" end), "yes")
check.equal(select("#", ed.cond(false, print, function() return 1, 2 end)), 2)

-- What is wrong.
check.raises("map_fn: expected a function, got a number", ed.map_fn, 1, x)
check.raises("control.lua:", ed.map_fn, function() error("own words") end, x)
check.raises("different sizes: 3 and 2", ed.map_fn, print, {x, ed.ones{2}})
check.raises("tensor 3 is float32[2], but the first axis of others has the size 3", ed.vectorized_map, print,
    {x, ed.ones{1}, ed.ones{2}})
check.raises("control.lua:", ed.vectorized_map, function() error("own words") end, x)
check.raises("vectorized_map: tensor 1 of elems is a scalar", ed.vectorized_map, print, ed.tensor(1))
check.raises("the first axis has the size 0", ed.vectorized_map, print, ed.zeros{0, 2})
check.raises("vectorized_map: the function must return a tensor, got a nil", ed.vectorized_map, function() end, x)
check.raises("tensor 1 of elems is a scalar", ed.map_fn, print, ed.tensor(1))
check.raises("the first axis has the size 0", ed.map_fn, print, ed.zeros{0, 2})
check.raises("map_fn: the function must return a tensor, got a nil", ed.map_fn, function() end, x)
local turn = 0
check.raises("returned 1 tensors, and 2 before", ed.map_fn, function(s)
    turn = turn + 1
    return turn == 1 and {s, s} or s
end, x)
check.raises("stack: ", ed.map_fn, function(s) turn = turn + 1 return ed.ones{turn} end, x)
check.raises("there is no initializer", ed.foldl, horner, ed.zeros{0})
check.raises("foldl: the function must return a tensor, got a string", ed.foldl, function() return "a" end, x)
check.raises("scan: there is no option reversed", ed.scan, horner, c, nil, {reversed = true})
check.raises("a table of options is expected, not a number", ed.scan, horner, c, nil, 1)
check.raises("while_loop: the variables must be a table", ed.while_loop, below, print, 1)
check.raises("the body returned 0 values for 1 variables", ed.while_loop, below, function() end, {ed.tensor(1)})
check.raises("a boolean or a tensor of one element is expected, not a number", ed.while_loop, function() return 1 end,
    print, {ed.tensor(1)})
check.raises("maximum_iterations must be a number", ed.while_loop, below, print, {1}, {maximum_iterations = "a"})
check.raises("cond: expected a function, got nil", ed.cond, true, print)
check.raises("the tensor has 6 elements", ed.cond, x:less(1), print, print)
