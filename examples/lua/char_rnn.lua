-- A recurrent network that learns a text by heart, letter by letter. Its cell, a gated recurrent unit
-- (Cho et al., 2014), is written here, of ops.
--
--     eddy examples/lua/char_rnn.lua [steps or "small"]
local ed = require "eddy"
ed.set_seed(3)
local steps = arg[1] == "small" and 60 or tonumber(arg[1] or 250)
local UNITS, BATCH, LENGTH = 64, 16, 24

local text = ([[
the sun rose over the hill, and the hill rose over the sea.
the sea sang to the sand, and the sand ran to the tree.
the tree bent over the stone, and the stone said to the sun:
one song is sung by the sea, and the day has begun.
]]):gsub("%s+", " ")

-- Letters as numbers from 0, in the order of their first appearance.
local letters, numbers, codes = {}, {}, {}
for i = 1, #text do
    local c = text:sub(i, i)
    if not numbers[c] then numbers[c], letters[#letters + 1] = #letters, c end
    codes[i] = numbers[c]
end

local Cell = ed.layer{
    name = "gru",
    build = function(self, x) -- x: the letter and the state, side by side
        local inputs = x.shape[2]
        self.gates = self:weight("gates", {inputs, 2 * UNITS}, {initializer = "glorot_uniform"})
        self.bias = self:weight("bias", {2 * UNITS}, {initializer = "zeros"})
        self.kernel = self:weight("kernel", {inputs, UNITS}, {initializer = "glorot_uniform"})
    end,
    forward = function(self, x)
        local letter, state = x[{{}, {1, -UNITS - 1}}], x[{{}, {-UNITS, -1}}]
        local gates = (x:matmul(self.gates) + self.bias):sigmoid():split(2, {axis = 2})
        local reset, keep = gates[1], gates[2]
        local new = ed.concat({letter, reset * state}, {axis = 2}):matmul(self.kernel):tanh()
        return keep * state + (1 - keep) * new
    end,
}
local cell, readout = Cell(), ed.dense(#letters)
local adam = ed.adam{learning_rate = 0.01, global_clipnorm = 1}

local function step(letter, state) -- letter: [batch], state: [batch, UNITS]
    return cell(ed.concat({letter:one_hot(#letters), state}, {axis = 2}))
end

-- BATCH random places of the text: [LENGTH + 1, BATCH].
local function excerpts()
    local start = ed.random.uniform({BATCH}, {high = #text - LENGTH}):floor():cast("int32")
    return ed.tensor(codes):gather(start + ed.range(0, LENGTH + 1):reshape{-1, 1})
end

local function write(n, state)
    local letter, written = ed.tensor{numbers.t}, {"t"}
    for i = 2, n do
        state = step(letter, state)
        letter = readout(state):argmax{axis = 2}
        written[i] = letters[letter[1]:item() + 1]
    end
    return table.concat(written)
end

for i = 1, steps do
    local x, tape = excerpts(), ed.tape()
    local state, loss = ed.zeros{BATCH, UNITS}, 0
    for t = 1, LENGTH do
        state = step(x[t], state)
        loss = loss + ed.sparse_softmax_cross_entropy(x[t + 1], readout(state)):mean() / LENGTH
    end
    adam:minimize(tape, loss, tape:watched())
    if i % (steps // 5) == 0 then print(("step %d: loss %.3f"):format(i, loss:item())) end
end
print(ed.scope(write, 200, ed.zeros{1, UNITS}))
