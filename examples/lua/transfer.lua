-- A network learns the digits 0 to 4. Its first layers, frozen, then help another one to learn 5 to 9
-- from a few examples; the last step trains all of it a little.
--
--     eddy examples/lua/transfer.lua ["small" or folder of MNIST's files]
local ed = require "eddy"
package.path = arg[0]:match("^(.-)[^/]*$") .. "?.lua;" .. package.path
local digits = require "digits"
ed.set_seed(1)
local small = arg[1] == "small"
local EXAMPLES = 60 -- of the new digits

-- Digits first to last of x and y; labels from 0.
local function only(x, y, first, last)
    local mask = y:greater_equal(first):logical_and(y:less_equal(last))
    return x[mask], y[mask] - first
end
local x, y = digits.draw(small and 4000 or 20000)
local old_x, old_y = only(x, y, 0, 4)
local new_x, new_y = only(x, y, 5, 9)
local test_x, test_y = new_x[{{EXAMPLES + 1, -1}}], new_y[{{EXAMPLES + 1, -1}}]
new_x, new_y = new_x[{{1, EXAMPLES}}], new_y[{{1, EXAMPLES}}]

local function compile(model, rate)
    return model:compile{
        optimizer = ed.adam(rate), loss = ed.losses.sparse_categorical_crossentropy{from_logits = true},
        metrics = {"accuracy"},
    }
end

-- Layers that look at an image and say what they see in 64 numbers.
local function eyes()
    return ed.sequential{
        ed.layers.reshape{28, 28, 1},
        ed.layers.conv2d(16, {3, 3}, {activation = "relu"}), ed.layers.max_pooling2d(),
        ed.layers.conv2d(32, {3, 3}, {activation = "relu"}), ed.layers.max_pooling2d(),
        ed.flatten(), ed.dense(64, {activation = "relu"}), name = "eyes",
    }
end

local function learn_new(name, base, epochs, rate)
    local model = compile(ed.sequential{base, ed.dense(5)}, rate)
    model:fit(new_x, new_y, {epochs = epochs, batch_size = 16})
    local accuracy = model:evaluate(test_x, test_y).accuracy
    print(("%s: %.1f %% of %d other digits, %d weights trained"):format(name, 100 * accuracy, test_x.shape[1], 0))
    return accuracy, model
end

local base = eyes()
local first = compile(ed.sequential{base, ed.dense(5)}, 1e-3)
first:fit(old_x, old_y, {epochs = small and 3 or 3, batch_size = 32, verbose = 2})
local scratch = learn_new("from the beginning", eyes(), 40, 1e-3)
base:set_trainable(false)
local frozen, model = learn_new("frozen", base, 40, 1e-3)
