-- A network that solves u'' = -u, u(0) = 0, u'(0) = 1 on [0, 3], from the equation alone: it is
-- trained until its second derivative, a gradient of a gradient, is what the equation wants.
--
--     eddy examples/lua/physics.lua [steps or "small"]
local ed = require "eddy"
ed.set_seed(1)
local steps = arg[1] == "small" and 300 or tonumber(arg[1] or 5000)

local net = ed.sequential{
    ed.dense(32, {activation = "tanh"}), ed.dense(32, {activation = "tanh"}), ed.dense(1),
}
-- Whatever the network says, u(0) = 0 and u'(0) = 1.
local function u(t) return t + t ^ 2 * net(t) end
local second = ed.grad(ed.grad(u)) -- row by row: u of a row depends on that row alone

local adam = ed.adam{learning_rate = 5e-3}
for step = 1, steps do
    adam.learning_rate = 5e-3 * (1 - step / steps) + 1e-5
    local t = ed.random.uniform({64, 1}, {high = 3})
    local tape = ed.tape()
    local loss = ((second(t) + u(t)) ^ 2):mean()
    adam:minimize(tape, loss, net)
    if step % (steps // 5) == 0 then print(("step %4d: residual %.2g"):format(step, loss:item())) end
end

print("    t      u(t)    sin(t)")
local t = ed.linspace(0, 3, 7):reshape{-1, 1}
for i, row in pairs(ed.concat({t, u(t), t:sin()}, {axis = 2})) do
    print(("%5.1f  %8.4f  %8.4f"):format(table.unpack(row:totable())))
end
print(("largest error: %.2g"):format((u(t) - t:sin()):abs():max():item()))
