-- Words as vectors: each word's vector has to say which words stand near it (skip-gram, Mikolov et al.,
-- 2013), so words that are used alike come to lie side by side. Of all the wrong answers a few are
-- drawn at each step (sampled softmax, Jean et al., 2015).
--
--     eddy examples/lua/word2vec.lua [steps or "small"]
local ed = require "eddy"
math.randomseed(2)
ed.set_seed(2)
local steps = arg[1] == "small" and 400 or tonumber(arg[1] or 3000)
local SIZE, BATCH, SAMPLED, NEAR = 24, 256, 12, 2 -- NEAR: so many words before and behind

-- A text is drawn from these kinds of words and patterns of sentences.
local kinds = {
    animal = "cat dog horse cow sheep goat fox bear", person = "anna ben clara david emma felix",
    food = "bread cheese soup rice fish apples honey",
    place = "garden forest village city harbor valley", eats = "eats tastes swallows chews",
    sees = "sees finds follows calls", goes = "runs walks returns wanders",
    color = "white black brown gray",
}
local patterns = {
    "the color animal eats the food", "person eats food in the place", "the color animal goes to the place",
    "person goes to the place with the animal", "person sees the color animal in the place",
}
local kind_of = {}
for kind, words in pairs(kinds) do
    local list = {}
    for word in words:gmatch("%a+") do list[#list + 1], kind_of[word] = word, kind end
    kinds[kind] = list
end

local function draw_text(sentences)
    local text = {}
    for _ = 1, sentences do
        for word in patterns[math.random(#patterns)]:gmatch("%a+") do
            local words = kinds[word]
            text[#text + 1] = words and words[math.random(#words)] or word
        end
    end
    return text
end

-- Words as numbers from 0, the most frequent first, as the sampler wants them.
local text = draw_text(5000)
local words = ed.vocabulary(text)
local codes = ed.string_lookup(text, words, {num_oov_indices = 0})
print(("%d words, %d different ones"):format(#text, #words))

local vectors = ed.variable(ed.random.uniform({#words, SIZE}, {low = -0.5, high = 0.5}), {name = "vectors"})
local weights = ed.variable(ed.random.normal({#words, SIZE}, {stddev = SIZE ^ -0.5}), {name = "weights"})
local biases = ed.variable(ed.zeros{#words}, {name = "biases"})
local adam = ed.adam(1e-2)

-- Words, and for each one that stands near it: [BATCH] and [BATCH, 1].
local function examples()
    local at = ed.random.uniform({BATCH}, {low = NEAR, high = #text - NEAR, dtype = "int64"})
    local by = ed.random.uniform({BATCH}, {low = 1, high = NEAR + 1, dtype = "int64"})
    local side = ed.random.uniform({BATCH}, {high = 2, dtype = "int64"}) * 2 - 1
    return codes:gather(at), codes:gather(at + by * side):reshape{-1, 1}
end

for step = 1, steps do
    local word, near = examples()
    local drawn = ed.random.log_uniform_candidate_sampler(near, SAMPLED, #words, {unique = true})
    local tape = ed.tape()
    local loss = ed.sampled_softmax_loss(weights, biases, near, vectors:gather(word),
        table.unpack(drawn)):mean()
    adam:minimize(tape, loss, {vectors, weights, biases})
    if step % (steps // 5) == 0 then print(("step %4d: loss %.3f"):format(step, loss:item())) end
end

-- For each word the three closest others, by the angle between the vectors.
local unit = ed.l2_normalize(vectors:value(), {axis = 2})
local closeness = unit:matmul(unit, {transpose_b = true}) - 2 * ed.eye(#words)
local _, closest = closeness:top_k{k = 3}
local right, counted = 0, 0
for i, word in ipairs(words) do
    if kind_of[word] then
        local line = {}
        for k = 1, 3 do
            line[k] = words[closest[{i, k}]:item() + 1]
            right, counted = right + (kind_of[line[k]] == kind_of[word] and 1 or 0), counted + 1
        end
        if i % 6 == 0 then print(("%-10s %s"):format(word, table.concat(line, ", "))) end
    end
end
print(("neighbors of the word's kind: %.0f %%"):format(100 * right / counted))
assert(right / counted > 0.8)
