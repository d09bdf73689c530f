local check = require "check"

-- Dense: both ways to write it, every option arrives.
local x = ed.tensor{{1.0, -2}, {3, 4}}
for _, dense in ipairs{ed.dense(3, {kernel_initializer = "ones", name = "d"}),
                       ed.dense{3, kernel_initializer = "ones", name = "d"},
                       ed.dense{units = 3, kernel_initializer = "ones", name = "d"}} do
    check.near(dense(x), {{-1, -1, -1}, {7, 7, 7}})
    check.equal(dense.name, "d")
    check.equal(check.names(dense:variables()), "d/kernel d/bias")
end
check.raises("dense: units is given twice", ed.dense, 3, {units = 4})
check.raises("dense: units is given twice", ed.dense, {3, units = 4})
check.raises("normal: shape is given twice", ed.random.normal, {3, shape = {4}})
check.list(ed.random.normal{shape = {4}}.shape, {4})
check.list(ed.random.shuffle{x = {1, 2}}.shape, {2})
local relu = ed.dense(1, {activation = "relu", kernel_initializer = "ones",
                          bias_initializer = ed.initializers.constant(-2)})
check.near(relu(x), {{0}, {5}})
local bare = ed.dense(1, {use_bias = false})
bare(x)
check.equal(#bare:variables(), 1)

-- Initializers draw from the generator that they are given.
local function drawn(seed)
    local dense = ed.dense(4, {kernel_initializer = ed.initializers.he_normal{generator = ed.generator(seed)}})
    dense(x)
    return dense:variables()[1]:value()
end
check.near(drawn(5), drawn(5))
assert(drawn(5):totable()[1][1] ~= drawn(6):totable()[1][1])
check.near(ed.initialize(ed.initializers.constant(3), {2, 2}), {{3, 3}, {3, 3}})
check.equal(ed.initialize("zeros", {2}, {dtype = "float64"}).dtype, "float64")
local most = ed.initialize(ed.initializers.random_uniform{minval = -0.5, maxval = 0.5}, {1000}):abs():max():item()
assert(most > 0.4 and most < 0.5)

-- Convolution, pooling, normalization, dropout, activation.
local image = ed.ones{1, 5, 5, 2}
local conv = ed.layers.conv2d(3, {3, 3}, {kernel_initializer = "ones", padding = "SAME", strides = {2, 2}})
check.list(conv(image).shape, {1, 3, 3, 3})
check.equal(conv(image)[{1, 2, 2, 1}]:item(), 18.0)
check.list(ed.layers.conv2d{2, {2, 2}, dilations = {2, 2}, use_bias = false}(image).shape, {1, 3, 3, 2})
check.list(ed.layers.max_pooling2d()(image).shape, {1, 2, 2, 2})
check.list(ed.layers.max_pooling2d{pool_size = {3, 3}, strides = {1, 1}, padding = "SAME"}(image).shape, {1, 5, 5, 2})
check.list(ed.global_average_pooling2d()(image).shape, {1, 2})
local normalization = ed.batch_normalization{momentum = 0.5, epsilon = 0.25, center = false}
check.near(normalization(ed.tensor{{0.0}, {2.0}}, {training = true}), {{-1 / 1.25 ^ 0.5}, {1 / 1.25 ^ 0.5}}, 1e-6)
check.equal(check.names(normalization:trainable()), "batch_normalization/gamma")
check.equal(#normalization:not_trainable(), 2)
check.near(normalization:not_trainable()[1]:value(), {0.5})
local dropout = ed.layers.dropout(0.5, {generator = ed.generator(1)})
check.near(dropout(ed.ones(100)), ed.ones(100))
local kept = dropout(ed.ones(1000), {training = true}):sum():item()
assert(kept > 800 and kept < 1200 and kept ~= 1000)
check.near(ed.layers.activation("relu")(x), {{1, 0}, {3, 4}})
check.near(ed.activate({-1.0, 2}, "relu"), {0, 2})
check.near(ed.activate({-1.0, 2}, ed.relu), {0, 2})
check.near(ed.layers.activation(ed.exp)({0.0}), {1})
check.near(ed.dense(1, {activation = ed.relu, kernel_initializer = "ones"})(x), {{0}, {7}})
check.raises("activation is a function; an op such as ed.relu", ed.dense, 1, {activation = print})
check.raises("there is no activation 'square'; the activations are linear, relu", ed.dense, 1, {activation = ed.square})

-- One number where two are expected is both.
check.list(ed.layers.conv2d(8, 5)(image).shape, {1, 1, 1, 8})
check.list(ed.layers.conv2d(8, 3, {strides = 2, padding = "SAME"})(image).shape, {1, 3, 3, 8})
check.list(ed.layers.conv2d(8, 2, {dilations = 2})(image).shape, {1, 3, 3, 8})
check.list(ed.layers.max_pooling2d{pool_size = 3, strides = 1}(image).shape, {1, 3, 3, 2})
check.list(ed.layers.max_pooling2d(5)(image).shape, {1, 1, 1, 2})
check.list(ed.layers.max_pooling2d({1, 5}, {name = "p"})(image).shape, {1, 5, 1, 2})
check.raises("kernel_size", ed.layers.conv2d, 8, {3, 3, 3})

-- Layers as tables of their children.
local model = ed.sequential{ed.flatten(), ed.dense(8), ed.dense(2, {name = "logits"}), name = "mlp"}
check.equal(#model, 3)
check.equal(model[2].name, "dense")
check.equal(model[-1].name, "logits")
check.equal(model[4], nil)
assert(model[1] == model[1] and model[1] ~= model[2])
assert(model:find("logits") == model[3])
check.equal(model.name, "mlp")
check.equal(model.kind, "sequential")
check.equal(tostring(model[3]), "layer mlp/logits (dense)")
local names = {}
for _, layer in ipairs(model) do names[#names + 1] = layer.name end
check.list(names, {"flatten", "dense", "logits"})
check.equal(model.built, false)
check.raises("has no variables before", model.variables, model)
check.list(model(ed.ones{3, 2, 2}).shape, {3, 2})
check.equal(check.names(model:variables()), "mlp/dense/kernel mlp/dense/bias mlp/logits/kernel mlp/logits/bias")
assert(model:summary():find("Total params: 58 ", 1, true))
check.near(model:forward(ed.ones{1, 4}), model{{1.0, 1, 1, 1}})

-- Layers in a row.
check.equal(#ed.sequential(ed.flatten(), ed.dense(2)), 2)
check.equal(ed.sequential(ed.flatten(), {name = "net"}).name, "net")
check.equal(ed.sequential({ed.flatten(), ed.dense(2)}, {name = "net"}).name, "net")
check.equal(#ed.sequential({ed.flatten(), ed.dense(2)}, nil), 2)
check.raises("sequential: expected a table of options, got a layer", ed.sequential, {ed.flatten()}, ed.dense(2))
check.raises("sequential: there is no option nmae", ed.sequential, {ed.flatten(), nmae = "x"}, {name = "net"})
check.equal(#ed.sequential(), 0)
check.equal(#ed.sequential{}, 0)
check.equal(#ed.sequential{name = "none"}, 0)
check.raises("sequential: there is no option nmae; there are name", ed.sequential, {ed.flatten(), nmae = "x"})
check.raises("sequential: options have names", ed.sequential, {ed.flatten(), [3] = ed.flatten()})
check.raises("sequential: value 2 must be a layer, got a tensor", ed.sequential, ed.flatten(), x)
check.raises("sequential: options have names", ed.sequential, ed.flatten(), {ed.dense(2)})

-- A parent that is gone leaves its children.
local child
do
    local parent = ed.sequential{ed.flatten(), name = "gone"}
    child = parent[1]
end
collectgarbage()
collectgarbage()
check.equal(tostring(child), "layer flatten (flatten)")
check.list(child(ed.ones{2, 3, 4}).shape, {2, 12})

-- What is wrong is said.
check.raises("dense: there is no option unit; there are units, activation", ed.dense, {3, unit = 1})
check.raises("dense: units is missing", ed.dense)
check.raises("dense: units is the string '3'; an integer is expected", ed.dense, "3")
check.raises("dense: a table of options is expected, not 4", ed.dense, 3, 4)
check.raises("dense: a table of options is expected, not a tensor", ed.dense, 3, x)
check.raises("dense: options have names, as {units = }; there is a key that is 1", ed.dense, 3, {"relu"})
check.raises("dense: got 3 arguments, at most 2", ed.dense, 3, {}, 4)
check.raises('unknown initializer "heh"; there are constant,', ed.dense, 3, {kernel_initializer = "heh"})
check.raises("kernel_initializer is a table; an initializer or the name of one", ed.dense, 3,
             {kernel_initializer = {sort = "ones"}})
check.raises("dense: options have names, as {units = }; there is a key that is true", ed.dense, 1, {[true] = 2, use_bias = false})
check.raises("reduce_sum: options have names, as {axis = }; there is a key that is true", ed.sum, x, {axis = 1, [true] = 2})
check.raises("reduce_sum: there is no option ax; there are axis, keepdims", ed.sum, x, {ax = 1})
check.raises("generator is 3; a generator is expected", ed.layers.dropout, 0.5, {generator = 3})
check.raises("value 2 must be a layer, got 3", ed.sequential, {ed.flatten(), 3})
check.raises("a layer has no field or method 'wights'", function() return model.wights end)
check.raises("a field can be set only in layers written in Lua", function() model.x = 1 end)
check.raises("there is no child named nobody", model.find, model, "nobody")
check.raises("children count from 1", function() return model[0] end)
check.raises("mlp/dense", model, ed.ones{1, 5})
check.raises("already belongs to mlp", ed.sequential, {model[2]})
check.raises("zero byte", ed.dense, 3, {name = "a\0b"})
check.raises("there is no option trainin", model, ed.ones{1, 4}, {trainin = true})
check.raises("flatten: got 2 inputs, expected 1", model, ed.ones{1, 4}, true)
check.raises("flatten: got 2 inputs, expected 1", model, ed.ones{1, 4}, ed.ones{1, 4})

-- Layers of several inputs and outputs.
local Cell = ed.layer{
    name = "cell",
    forward = function(self, x, state, options)
        return x + state, x * state, {mask = options.mask}
    end,
}
local cell = Cell()
local sum, product = cell({1.0, 2}, {3.0, 4})
check.near(sum, {4, 6})
check.near(product, {3, 8})
local mask = ed.tensor{true, false}
local _, _, masks = cell({1.0, 2}, {3.0, 4}, {mask = mask, return_masks = true})
check.equal(masks[1]:any():item(), true)
check.equal(masks[2], false)

-- Objects from their JSON.
local again = ed.from_json(ed.to_json(ed.dense(3, {activation = "relu", name = "d"})))
check.equal(again.name, "d")
check.list(again(ed.ones{2, 2}).shape, {2, 3})
check.raises('unknown layer "dens"; did you mean "dense"?', ed.from_json, '{"module": "layer", "class_name": "dens", "config": {}}')

-- Building without data, weights' values, what is trained, penalties.
do
    local model = ed.sequential{ed.dense(3, {kernel_regularizer = "l2", kernel_constraint = "non_neg"}),
                                ed.layers.batch_normalization(), ed.dense(2, {name = "head"}), name = "m"}
    check.equal(model:build{-1, 4}, model)
    check.equal(model:count_params(), 4 * 3 + 3 + 4 * 3 + 3 * 2 + 2)
    check.equal(#model:get_weights(), 8)
    check.equal(#model:losses(), 1)
    local w = model:get_weights()
    w[1] = {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}}
    model:set_weights(w)
    check.near(model:losses()[1], 0.12, 1e-7)
    check.raises("got 1 weights, the layer has 8", model.set_weights, model, {1})
    check.raises("got 9 weights, the layer has 8", model.set_weights, model, {1, 1, 1, 1, 1, 1, 1, 1, 1})
    model:set_trainable(false, "*head*")
    check.equal(#model:trainable(), 4)
    model:set_trainable(false)
    check.equal(#model:trainable(), 0)
    check.equal(#model:losses(), 0)
    check.equal(model:is_trainable(), false)
    model:set_trainable(true)
    check.equal(#model:trainable(), 6) -- moving statistics stay as they are
    check.raises("no layer and no weight has a path like", model.set_trainable, model, true, "*tail*")
    local double = ed.dense(1, {dtype = "float64", activity_regularizer = ed.regularizers.l2(1), kernel_initializer = "ones"})
    check.equal(double(ed.ones{1, 2}).dtype, "float64")
    check.equal(#double:losses(), 0)
    double(ed.ones{1, 2}, {training = true})
    check.near(double:losses()[1], 4)
    double(ed.ones{1, 2}, {training = true})
    check.equal(#double:losses(), 1)
    check.equal(ed.dense(3, {trainable = false})(ed.ones{1, 2}).shape[2], 3)
end
