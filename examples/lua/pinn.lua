-- A network that solves Burgers' equation u_t + u u_x = nu u_xx for x in [-1, 1] and t in [0, 1], from
-- u = -sin(pi x) at t = 0 and u = 0 at both ends: it is trained on the equation alone (Raissi et al.,
-- 2019). Derivatives by x and t are computed in forward mode, those by the weights by a tape.
--
--     eddy examples/lua/pinn.lua [steps or "small"]
local ed = require "eddy"
ed.set_seed(1)
local small = arg[1] == "small"
local steps = small and 1500 or tonumber(arg[1] or 4000)
local NU = 0.05

local net = ed.sequential{
    ed.dense(32, {activation = "tanh"}), ed.dense(32, {activation = "tanh"}),
    ed.dense(32, {activation = "tanh"}), ed.dense(1),
}
-- Whatever the network says, u is right at t = 0 and at both ends.
local function u(x, t)
    return t * (1 - x ^ 2) * net(ed.concat({x, t}, {axis = 2})) - (math.pi * x):sin()
end

-- How much the equation is wrong at points x and t, [n, 1] both.
local function residual(x, t)
    local ones = ed.ones_like(x)
    local function first(x)
        local y, y_x = ed.jvp(function(x) return u(x, t) end, x, ones)
        return {y, y_x}
    end
    local value, slope = ed.jvp(first, x, ones)
    local _, by_t = ed.jvp(function(t) return u(x, t) end, t, ones)
    local y, by_x, by_xx = value[1], value[2], slope[2]
    return by_t + y * by_x - NU * by_xx
end

local adam = ed.adam{learning_rate = 5e-3}
for step = 1, steps do
    adam.learning_rate = 5e-3 * (1 - step / steps) + 1e-5
    local x, t = ed.random.uniform({128, 1}, {low = -1, high = 1}), ed.random.uniform{128, 1}
    local tape = ed.tape()
    local loss = (residual(x, t) ^ 2):mean()
    adam:minimize(tape, loss, net)
    if step % (steps // 5) == 0 then print(("step %4d: residual %.2g"):format(step, loss:item())) end
end

-- The solution, a mean over normal distributions (Hopf, 1950; Cole, 1951).
local function solution(x, t)
    local z = ed.linspace(-6, 6, 400)
    local from = x - (4 * NU * t):sqrt() * z
    local weight = (-(math.pi * from):cos() / (2 * math.pi * NU) - z ^ 2):exp()
    return -((math.pi * from):sin() * weight):sum{axis = 2, keepdims = true}
        / weight:sum{axis = 2, keepdims = true}
end

local x = ed.linspace(-1, 1, 60):reshape{-1, 1}
local curves, worst = {}, 0
for i, now in ipairs{0, 0.25, 0.5, 1} do
    local t = ed.full({60, 1}, now)
    local error = (u(x, t) - solution(x, t)):abs():max():item()
    print(("t = %.2f: largest error %.2g"):format(now, error))
    worst, curves[i] = math.max(worst, error), u(x, t):reshape{-1}
end
ed.plot(x:reshape{-1}, curves, {title = "u at t = 0, 0.25, 0.5, 1", width = 60, height = 12})
assert(worst < (small and 0.1 or 0.02))
