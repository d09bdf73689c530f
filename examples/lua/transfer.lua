-- A network learns the digits 0 to 6. Its layers but the last, frozen, then serve another one, which
-- learns 7 to 9 from a few examples; at the end all of it is trained a little.
--
--     eddy examples/lua/transfer.lua ["small"]
local ed = require "eddy"
package.path = arg[0]:match("^(.-)[^/]*$") .. "?.lua;" .. package.path
local digits = require "digits"
ed.set_seed(1)
local small = arg[1] == "small"
local EXAMPLES = 30 -- of the new digits, together

-- Digits first to last of x and y; labels from 0.
local function only(x, y, first, last)
    local mask = y:greater_equal(first):logical_and(y:less_equal(last))
    return x[mask], y[mask] - first
end
local x, y = digits.draw(small and 2500 or 20000)
local old_x, old_y = only(x, y, 0, 6)
local new_x, new_y = only(x, y, 7, 9)
local test_x, test_y = new_x[{{EXAMPLES + 1, -1}}], new_y[{{EXAMPLES + 1, -1}}]
new_x, new_y = new_x[{{1, EXAMPLES}}], new_y[{{1, EXAMPLES}}]

local function compile(model, rate)
    return model:compile{
        optimizer = ed.adam(rate), loss = ed.losses.sparse_categorical_crossentropy{from_logits = true},
        metrics = {"accuracy"},
    }
end

-- What sees in an image what 64 numbers can say: symbolic tensors of its input and its output.
local function eyes()
    local image = ed.input{28, 28}
    local x = ed.layers.reshape{28, 28, 1}(image)
    for _, filters in ipairs{16, 32} do
        x = ed.layers.max_pooling2d()(ed.layers.conv2d(filters, {3, 3}, {activation = "relu"})(x))
    end
    return image, ed.dense(64, {activation = "relu"})(ed.flatten()(x))
end

local function weights(variables)
    local count = 0
    for _, v in ipairs(variables) do count = count + v.size end
    return count
end

-- Trains with the few examples; the accuracy with the others.
local function learn_new(name, model, epochs, rate)
    compile(model, rate):fit(new_x, new_y, {epochs = epochs, batch_size = 16})
    local accuracy = model:evaluate(test_x, test_y).accuracy
    print(("%-12s %6d weights trained, %.1f %% of %d other digits"):format(name,
        weights(model:trainable()), 100 * accuracy, test_x.shape[1]))
    return accuracy
end

local image, seen = eyes()
local old = compile(ed.model(image, ed.dense(7)(seen)), 1e-3)
old:fit(old_x, old_y, {epochs = small and 5 or 4, batch_size = 32, verbose = small and 0 or 2})

local function head_on(image, seen) return ed.model(image, ed.dense(3)(seen)) end
local alone = learn_new("alone", head_on(eyes()), 30, 1e-3)

-- Two models of the same symbolic tensors share the layers between them.
local new = head_on(image, seen)
local body = ed.model(image, seen)
body:set_trainable(false)
local before = old:predict(old_x[{{1, 10}}])
local frozen = learn_new("frozen", new, 30, 5e-3)
assert(old:predict(old_x[{{1, 10}}]):equal(before):all():item()) -- it has not forgotten the old ones
body:set_trainable(true)
local tuned = learn_new("tuned", new, 15, 2e-4)
assert(frozen > alone and tuned > alone + 0.04)
