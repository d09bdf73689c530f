-- A policy that learns to balance a pole on a cart, by its own trials (REINFORCE, Williams 1992;
-- the cart and its pole as Barto, Sutton and Anderson describe them, 1983).
--
--     eddy examples/lua/cartpole.lua [rounds or "small"]
local ed = require "eddy"
ed.set_seed(1)
local rounds = arg[1] == "small" and 40 or tonumber(arg[1] or 80)
local TRIALS, MOST_STEPS, DISCOUNT = 8, 200, 0.99 -- trials of a round

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

-- A trial, as the policy's chances have it: its states, its actions, and what each earned from then
-- on are added to the lists. How long the pole stood.
local function try(states, actions, earned)
    local draws = ed.random.uniform({MOST_STEPS}):totable()
    local s, before = ed.random.uniform({4}, {low = -0.05, high = 0.05}):totable(), #states
    local steps, standing = 0, true
    while standing and steps < MOST_STEPS do
        steps = steps + 1
        local chances = policy({s}):softmax():totable()[1]
        local right = draws[steps] < chances[2]
        states[before + steps], actions[before + steps] = s, right and 1 or 0
        s, standing = push(s, right)
    end
    local sum = 0
    for t = steps, 1, -1 do
        sum = 1 + DISCOUNT * sum
        earned[before + t] = sum
    end
    return steps
end

for round = 1, rounds do
    local states, actions, earned, stood = {}, {}, {}, 0
    for _ = 1, TRIALS do stood = stood + try(states, actions, earned) / TRIALS end

    -- What did better than the round's mean becomes likelier, what did worse less likely.
    local r = ed.tensor(earned, "float32")
    local advantage = (r - r:mean()) / (r:std() + 1e-6)
    local tape = ed.tape()
    local surprise = ed.sparse_softmax_cross_entropy(ed.tensor(actions), policy(ed.tensor(states, "float32")))
    adam:minimize(tape, (surprise * advantage):mean(), policy)
    if round % (rounds // 10) == 0 then print(("round %d: stood for %.0f steps"):format(round, stood)) end
end
