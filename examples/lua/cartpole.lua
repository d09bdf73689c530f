-- A policy that learns to balance a pole on a cart, by its own trials (REINFORCE, Williams 1992; the
-- cart and its pole as Barto, Sutton and Anderson describe them, 1983).
--
--     eddy examples/lua/cartpole.lua [episodes or "small"]
local ed = require "eddy"
ed.set_seed(1)
local episodes = arg[1] == "small" and 60 or tonumber(arg[1] or 400)
local MOST_STEPS, DISCOUNT = 200, 0.99

-- One step of 20 ms, pushed by 10 N to the left or to the right; whether the pole still stands.
local function push(s, right)
    local gravity, cart, pole, half_length, dt = 9.8, 1.0, 0.1, 0.5, 0.02
    local sin, cos = math.sin(s[3]), math.cos(s[3])
    local f = ((right and 10 or -10) + pole * half_length * s[4] ^ 2 * sin) / (cart + pole)
    local turn = (gravity * sin - cos * f) / (half_length * (4 / 3 - pole * cos ^ 2 / (cart + pole)))
    local move = f - pole * half_length * turn * cos / (cart + pole)
    local new = {s[1] + dt * s[2], s[2] + dt * move, s[3] + dt * s[4], s[4] + dt * turn}
    return new, math.abs(new[1]) < 2.4 and math.abs(new[3]) < math.rad(12)
end

local policy = ed.sequential{ed.dense(32, {activation = "tanh"}), ed.dense(2)}
local adam = ed.adam{learning_rate = 0.01}

-- States and actions of a trial, as the policy's chances have it.
local function try()
    local draws = ed.random.uniform({MOST_STEPS}):totable()
    local s, standing = (ed.random.uniform({4}, {low = -0.05, high = 0.05})):totable(), true
    local states, actions = {}, {}
    while standing and #states < MOST_STEPS do
        local chances = policy({s}):softmax():totable()[1]
        local right = draws[#states + 1] < chances[2]
        states[#states + 1], actions[#actions + 1] = s, right and 1 or 0
        s, standing = push(s, right)
    end
    return states, actions
end

-- What each step earned from then on, around 0 and of size 1.
local function advantages(n)
    local returns, sum = {}, 0
    for t = n, 1, -1 do
        sum = 1 + DISCOUNT * sum
        returns[t] = sum
    end
    local r = ed.tensor(returns, "float32")
    return (r - r:mean()) / (r:std() + 1e-6)
end

local mean = 0
for episode = 1, episodes do
    local states, actions = try()
    local tape = ed.tape()
    local surprise = ed.sparse_softmax_cross_entropy(ed.tensor(actions), policy(ed.tensor(states, "float32")))
    adam:minimize(tape, (surprise * advantages(#states)):mean(), policy)
    mean = mean + (#states - mean) / math.min(episode, 20)
    if episode % (episodes // 8) == 0 then
        print(("episode %d: stood for %d steps, lately %.0f"):format(episode, #states, mean))
    end
end
