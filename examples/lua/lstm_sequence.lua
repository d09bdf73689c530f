-- Is "(()())(" balanced? An LSTM (Hochreiter and Schmidhuber, 1997) reads sequences of brackets of
-- different lengths and learns to count; then it judges longer ones than it has seen.
--
--     eddy examples/lua/lstm_sequence.lua ["small"]
local ed = require "eddy"
math.randomseed(1)
ed.set_seed(1)
local small = arg[1] == "small"

-- Pairs of brackets in a random order, each closed after it was opened: a table of 1, "(", and 2, ")".
local function balanced(pairs)
    local sequence, opened, depth = {}, 0, 0
    for i = 1, 2 * pairs do
        local open = depth == 0 or (opened < pairs and math.random() < 0.5)
        opened, depth = opened + (open and 1 or 0), depth + (open and 1 or -1)
        sequence[i] = open and 1 or 2
    end
    return sequence
end

local function is_balanced(sequence)
    local depth = 0
    for _, bracket in ipairs(sequence) do
        depth = depth + (bracket == 1 and 1 or -1)
        if depth < 0 then return false end
    end
    return depth == 0
end

-- n sequences of at most 2 * most brackets, padded by 0: [n, 2 * most]; in half of them two
-- brackets are exchanged, and one may be turned. Which are balanced: [n].
local function sequences(n, least, most)
    local x, y = {}, {}
    for i = 1, n do
        local sequence = balanced(math.random(least, most))
        if i % 2 == 0 then
            local a, b = math.random(#sequence), math.random(#sequence)
            if i % 4 == 0 then sequence[a] = 3 - sequence[a] end
            sequence[a], sequence[b] = sequence[b], sequence[a]
        end
        y[i] = is_balanced(sequence) and 1 or 0
        for place = #sequence + 1, 2 * most do sequence[place] = 0 end
        x[i] = sequence
    end
    return ed.tensor(x), ed.tensor(y, "float32")
end

-- The embedding masks the padding, which the LSTM then passes over.
local model = ed.sequential{
    ed.embedding(3, 8, {mask_zero = true}), ed.layers.lstm(16), ed.dense(1, {activation = "sigmoid"}),
}
model:compile{
    optimizer = ed.adam{learning_rate = 1e-2, global_clipnorm = 1},
    loss = "binary_crossentropy", metrics = {"accuracy"},
}
local x, y = sequences(small and 3000 or 10000, 2, 10)
model:fit(x, y, {epochs = small and 10 or 20, batch_size = 64, verbose = small and 0 or 2})

local accuracy = model:evaluate(sequences(1000, 2, 10)).accuracy
local longer = model:evaluate(sequences(1000, 11, 20)).accuracy
print(("accuracy on others: %.1f %%, on longer ones: %.1f %%"):format(100 * accuracy, 100 * longer))

local codes = {["("] = 1, [")"] = 2}
local function judge(text)
    local sequence = {}
    for bracket in text:gmatch("[()]") do table.insert(sequence, codes[bracket]) end
    return model({sequence}):item()
end
for _, text in ipairs{"()", "(()())", "(()())(", "())(()", "((((()()))))"} do
    print(("%-14s %s, balanced with probability %.3f"):format(text,
        judge(text) > 0.5 and "yes" or "no ", judge(text)))
end
assert(accuracy > 0.95 and longer > 0.85)
