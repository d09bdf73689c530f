-- A recurrent network that learns a text by heart, letter by letter. Its cell, a gated recurrent
-- unit (Cho et al., 2014), is a layer of two inputs and two outputs that is written here.
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

-- (x [batch, in], state [batch, units]) -> (scores of what comes next [batch, out], new state)
local GRU = ed.layer{
    name = "gru",
    init = function(self, units, out)
        self.units, self.readout = units, ed.dense(out)
    end,
    build = function(self, x)
        self.kernel = self:weight("kernel", {x.shape[2], 3 * self.units})
        self.recurrent_kernel = self:weight("recurrent_kernel", {self.units, 3 * self.units})
        self.bias = self:weight("bias", {3 * self.units}, {initializer = "zeros"})
    end,
    forward = function(self, x, state)
        local from_x = (x:matmul(self.kernel) + self.bias):split(3, {axis = 2})
        local from_state = state:matmul(self.recurrent_kernel):split(3, {axis = 2})
        local update = (from_x[1] + from_state[1]):sigmoid()
        local reset = (from_x[2] + from_state[2]):sigmoid()
        local candidate = (from_x[3] + reset * from_state[3]):tanh()
        state = update * state + (1 - update) * candidate
        return self.readout(state), state
    end,
}
local gru = GRU(UNITS, #letters)
local adam = ed.adam{learning_rate = 0.01, global_clipnorm = 1}

-- BATCH random excerpts of the text, a column each: [LENGTH + 1, BATCH].
local function excerpts()
    local start = ed.random.uniform({BATCH}, {high = #text - LENGTH}):floor():cast("int32")
    return ed.tensor(codes):gather(start + ed.range(0, LENGTH + 1):reshape{-1, 1})
end

local function write(n, state)
    local letter, written, scores = ed.tensor{numbers.t}, {"t"}
    for i = 2, n do
        scores, state = gru(letter:one_hot(#letters), state)
        letter = scores:argmax{axis = 2}
        written[i] = letters[letter:item() + 1]
    end
    return table.concat(written)
end

for i = 1, steps do
    local x, tape = excerpts(), ed.tape()
    local state, loss, scores = ed.zeros{BATCH, UNITS}, 0
    for t = 1, LENGTH do
        scores, state = gru(x[t]:one_hot(#letters), state)
        loss = loss + ed.sparse_softmax_cross_entropy(x[t + 1], scores):mean() / LENGTH
    end
    adam:minimize(tape, loss, gru)
    if i % (steps // 5) == 0 then print(("step %d: loss %.3f"):format(i, loss:item())) end
end
print(ed.scope(write, 200, ed.zeros{1, UNITS}))
