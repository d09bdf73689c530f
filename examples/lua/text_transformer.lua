-- A small transformer that learns a text letter by letter and then writes: each position attends to
-- those before it (Vaswani et al., 2017), and says which letter comes next.
--
--     eddy examples/lua/text_transformer.lua ["small"]
local ed = require "eddy"
ed.set_seed(2)
local epochs = arg[1] == "small" and 16 or 30
local LENGTH, WIDTH, HEADS, BLOCKS, BATCH = 32, 48, 4, 2, 16

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
codes = ed.tensor(codes)

-- Letters [batch, length] to vectors [batch, length, width]: what each is, and where it stands.
local Letters = ed.layer{
    name = "letters",
    init = function(self, count, length, width)
        self.length, self.width, self.what = length, width, ed.embedding(count, width)
    end,
    build = function(self)
        self.where = self:weight("where", {self.length, self.width}, {initializer = "random_uniform"})
    end,
    forward = function(self, x) return self.what(x) + self.where end,
}

-- What a position has learned so far, what it finds at those before it, and what follows from both.
local function block(x)
    local seen = ed.layers.layer_normalization()(x)
    x = x + ed.layers.multi_head_attention(HEADS, WIDTH // HEADS, {use_causal_mask = true})(seen, seen)
    local inner = ed.dense(4 * WIDTH, {activation = "gelu"})(ed.layers.layer_normalization()(x))
    return x + ed.dense(WIDTH)(inner)
end

local input = ed.input({LENGTH}, {dtype = "int32"})
local x = Letters(#letters, LENGTH, WIDTH)(input)
for _ = 1, BLOCKS do x = block(x) end
local model = ed.model(input, ed.dense(#letters)(ed.layers.layer_normalization()(x)))
print(("%d letters, %d weights"):format(#text, model:count_params()))

-- Every excerpt of the text, and what follows each of its letters: [excerpts, LENGTH] both.
local starts = ed.range(#text - LENGTH):reshape{-1, 1}
local excerpts = codes:gather(starts + ed.range(LENGTH))
local following = codes:gather(starts + ed.range(1, LENGTH + 1))
model:compile{
    optimizer = ed.adam{learning_rate = 3e-3, global_clipnorm = 1},
    loss = ed.losses.sparse_categorical_crossentropy{from_logits = true},
    metrics = {"accuracy"},
}
local set = ed.dataset(excerpts, following, {batch = BATCH, shuffle = true})
model:fit(set, {epochs = epochs, verbose = 2})

-- Goes on from the text's beginning; the model sees LENGTH letters at most.
local written = {text:byte(1, LENGTH)}
local window = codes["1:" .. LENGTH]
for i = LENGTH + 1, #text do
    local next = model(window:expand_dims{axis = 1})[{1, -1}]:argmax():cast("int32")
    written[i] = letters[next:item() + 1]:byte()
    window = ed.concat({window["2:"], next:reshape{1}}, {axis = 1})
end
print(string.char(table.unpack(written)))

local accuracy = model:evaluate(set).accuracy
print(("accuracy of the next letter: %.1f %%"):format(100 * accuracy))
assert(accuracy > 0.9)
