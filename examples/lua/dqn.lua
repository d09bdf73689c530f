-- The way out of a maze, learned by trial and error: a network estimates what each move is worth (deep
-- Q-learning, Mnih et al., 2015). It learns from moves that it remembers, and its aims come from a
-- second network, a copy that is renewed from time to time.
--
--     eddy examples/lua/dqn.lua [moves or "small"]
local ed = require "eddy"
math.randomseed(1)
ed.set_seed(1)
local moves = arg[1] == "small" and 4000 or tonumber(arg[1] or 12000)
local DISCOUNT, BATCH, REMEMBERED, LONGEST, RENEW = 0.95, 64, 5000, 60, 100

local WIDTH = 10
local maze = ("##########" ..
              "#........#" ..
              "#.##.###.#" ..
              "#..#...#.#" ..
              "##.#.#.#.#" ..
              "#....#.#.#" ..
              "#.####.#.#" ..
              "#......#X#" ..
              "##########")
local EXIT = maze:find("X")
local arrows, ways = {"<", ">", "^", "v"}, {-1, 1, -WIDTH, WIDTH}

-- A field is its number in the maze, from 1. Where a move leads: not into a wall.
local function move(field, way)
    local to = field + ways[way]
    return maze:sub(to, to) == "#" and field or to
end

local free = {}
for field in maze:gmatch("()%.") do free[#free + 1] = field end
local function somewhere() return free[math.random(#free)] end

local function network()
    return ed.sequential{ed.dense(64, {activation = "relu"}), ed.dense(#ways)}:build{-1, #maze}
end
local net, aims = network(), network()
local adam = ed.adam(2e-3)
local function seen(fields) return (ed.tensor(fields) - 1):one_hot(#maze) end
local function best(field) return net(seen{field}):argmax{axis = 2}:item() + 1 end

-- One step of training, with BATCH moves from memory. The exit is worth 1, a field before it less.
local function learn(memory)
    local from, way, to, out = {}, {}, {}, {}
    for i = 1, BATCH do
        local m = memory[math.random(#memory)]
        from[i], way[i], to[i], out[i] = m.from, m.way - 1, m.to, m.to == EXIT and 1 or 0
    end
    out = ed.tensor(out, "float32")
    local aim = out + (1 - out) * DISCOUNT * aims(seen(to)):max{axis = 2}
    local tape = ed.tape()
    local worth = (net(seen(from)) * ed.tensor(way):one_hot(#ways)):sum{axis = 2}
    adam:minimize(tape, ((aim - worth) ^ 2):mean(), net)
end

-- From how many fields the network takes the shortest way, whose length is known for each.
local function count_shortest(distance)
    local good = 0
    for _, start in ipairs(free) do
        local field, length = start, 0
        while field ~= EXIT and length < distance[start] do
            field, length = move(field, best(field)), length + 1
        end
        if field == EXIT then good = good + 1 end
    end
    return good
end

-- The length of the shortest way from each field, from the exit on.
local function distances()
    local distance, queue = {[EXIT] = 0}, {EXIT}
    for _, field in ipairs(queue) do
        for way = 1, #ways do
            local to = move(field, way)
            if not distance[to] then distance[to], queue[#queue + 1] = distance[field] + 1, to end
        end
    end
    return distance
end

local memory, distance = {}, distances()
local field, walked = somewhere(), 0
for i = 1, moves do
    -- At first any move, later the best one nine times in ten.
    local explores = math.random() < math.max(0.1, 1 - 2 * i / moves)
    local way = explores and math.random(#ways) or best(field)
    local to = move(field, way)
    memory[(i - 1) % REMEMBERED + 1] = {from = field, way = way, to = to}
    field, walked = to, walked + 1
    if to == EXIT or walked == LONGEST then field, walked = somewhere(), 0 end
    if i > BATCH then learn(memory) end
    if i % RENEW == 0 then aims:set_weights(net:get_weights()) end
    if i % (moves // 5) == 0 then
        print(("move %d: the shortest way is found from %d of %d fields"):format(
            i, count_shortest(distance), #free))
    end
end

for row = 0, #maze // WIDTH - 1 do
    print((maze:sub(row * WIDTH + 1, (row + 1) * WIDTH):gsub("()%.", function(column)
        return arrows[best(row * WIDTH + column)]
    end)))
end
assert(count_shortest(distance) >= 0.9 * #free)
