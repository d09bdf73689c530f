-- A model with two answers about one image: which digit it shows (classes) and how strong it was
-- drawn (a number). Both heads share the layers that look at the image; each has a loss of its own.
--
--     eddy examples/lua/two_heads.lua ["small"]
local ed = require "eddy"
package.path = arg[0]:match("^(.-)[^/]*$") .. "?.lua;" .. package.path
local digits = require "digits"
ed.set_seed(1)
local small = arg[1] == "small"

-- Digits [n, 28, 28] darkened by a factor, their classes, and that factor [n, 1].
local function data(n)
    local x, which = digits.draw(n, {noise = 0})
    local dark = ed.random.uniform({n, 1}, {low = 0.3, high = 1})
    local strongest = x:max{axis = {2, 3}}:reshape{n, 1}
    local seen = x / strongest:reshape{n, 1, 1} * dark:reshape{n, 1, 1}
    return seen + ed.random.normal({n, 28, 28}, {stddev = 0.1}), {which, dark}
end
local x, y = data(small and 2000 or 10000)
local test_x, test_y = data(1000)

local image = ed.input({28, 28}, {name = "image"})
local shared = ed.dense(128, {activation = "relu"})(ed.flatten()(image))
local digit = ed.dense(10, {name = "digit"})(ed.dense(64, {activation = "relu"})(shared))
local strength = ed.dense(1, {name = "strength"})(ed.dense(16, {activation = "relu"})(shared))
local model = ed.model(image, {digit, strength}, {name = "two_heads"})
print(model:summary())

model:compile{
    optimizer = ed.adam(2e-3),
    loss = {ed.losses.sparse_categorical_crossentropy{from_logits = true}, "mse"},
    loss_weights = {1, 10},
    metrics = {{"accuracy"}, {"mae"}},
}
model:fit(x, y, {epochs = small and 8 or 10, batch_size = 32, verbose = small and 0 or 2})

local reached = model:evaluate(test_x, test_y)
print(("on 1000 other images: %.1f %% of the digits right, strength wrong by %.3f"):format(
    100 * reached.digit_accuracy, reached.strength_mae))

local which, how_strong = table.unpack(model:predict(test_x[{{1, 5}}]))
for i = 1, 5 do
    print(("a %d of strength %.2f: it says %d of strength %.2f"):format(
        test_y[1][i]:item(), test_y[2][i]:item(), which[i]:argmax():item(), how_strong[i]:item()))
end
assert(reached.digit_accuracy > 0.95 and reached.strength_mae < 0.06)
