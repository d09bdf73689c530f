local check = require "check"
ed.set_seed(1)
local generator = ed.generator(7)
local function noise(shape) shape.generator = generator; return ed.random.normal(shape) end

-- Symbolic tensors have a dtype and a shape, of which sizes may be open, and no elements.
do
    local x = ed.input{28, 28}
    assert(ed.is_symbolic(x) and not ed.is_symbolic(ed.ones{2}) and not ed.is_symbolic(3))
    check.list(x.shape, {-1, 28, 28})
    check.equal(x.size, -1)
    check.equal(tostring(x), "(no elements yet)\ntensor float32 [-1, 28, 28]")
    check.list(ed.layers.flatten()(x).shape, {-1, 784})
    check.list(x:sum().shape, {})
    local ids = ed.input({-1}, {dtype = "int32", name = "ids"})
    check.equal(ids.dtype, "int32")
    check.list(ed.input{3, batch_size = 8}.shape, {8, 3})
    check.list(ed.input(5).shape, {-1, 5})
    local y = ed.layers.conv2d(4, 3, {strides = 2})(ed.input{-1, -1, 3})
    check.list(y.shape, {-1, -1, -1, 4})
    check.list(ed.concat({y, y}, {axis = -1}).shape, {-1, -1, -1, 8})
    check.raises("no elements yet", x.totable, x)
    check.raises("no elements yet", function() return x:sum():item() end)
    check.raises("no elements yet", function() return x:sum():totable() end)
    check.raises("float32[-1, 28, 28] is a symbolic tensor: its number of rows is not known", function() return #x end)
    check.raises("its number of rows is not known", function() for _ in ipairs(x) do end end)
    check.raises("its number of rows is not known", function() for _ in pairs(x) do end end)
    check.raises("no elements yet", ed.variable, x)
    check.raises("changes a variable", function() ed.variable(ed.zeros{13, 28, 28}):assign(x) end)
end

-- Models compute what their layers and ops compute by hand, for any size that is open.
do
    local first, second = ed.dense(5, {activation = "tanh"}), ed.dense(5)
    local a, b = ed.input{4}, ed.input{3}
    local h = first(a)
    local model = ed.model({a, b}, {(-(2 * h - second(b) / 2 + 1)):sigmoid(), h}, {name = "two"})
    check.equal(model.name, "two")
    check.equal(tostring(model), "layer two (functional)")
    check.equal(check.names(model:variables()),
                "two/dense/kernel two/dense/bias two/dense_1/kernel two/dense_1/bias")
    assert(model[1] == first and model[2] == second and #model == 2)
    for batch = 1, 40, 13 do
        local x, z = noise{batch, 4}, noise{batch, 3}
        local y, y_h = model(x, z)
        check.near(y_h, first(x), 0)
        check.near(y, (-(2 * first(x) - second(z) / 2 + 1)):sigmoid(), 0)
    end
    check.equal(#model:inputs(), 2)
    check.list(model:outputs()[2].shape, {-1, 5})
    check.near(ed.model(model:inputs(), model:values("dense_1"))(noise{2, 4}, ed.zeros{2, 3}), ed.zeros{2, 5}, 0)
    check.equal(#ed.model(a, h, {trainable = false}):trainable(), 0)
end

-- Indices count from the beginning of axes that are open.
do
    local x = ed.input{3}
    local model = ed.model(x, {x[2], x["2:3, 1:2"], x["..., 2"], x["2:, -1"], x["::2"], x["3:2"]})
    local data = noise{5, 3}
    local y = {model(data)}
    for i, key in ipairs{2, "2:3, 1:2", "..., 2", "2:, -1", "::2"} do check.near(y[i], data[key], 0) end
    check.list(y[6].shape, {0, 3})
    check.raises("nothing counts from its end", function() return x[-1] end)
    check.raises("nothing counts from its end", function() return x[":-1"] end)
    check.raises("nothing counts from its end", function() return x["::-1"] end)
end

-- Gradients; a variable that an op reads is read again at each call.
do
    local scale, x, dense = ed.variable(2.0), ed.input{3}, ed.dense(2)
    local model, data = ed.model(x, dense(x) * scale), noise{6, 3}
    local _, g = ed.value_and_grad(function() return model(data):sum() end, {dense:variables()[2], scale})
    check.near(g[1], {12, 12})
    check.near(g[2], dense(data):sum(), 1e-5)
    scale:assign(0.0)
    check.near(model(data), ed.zeros{6, 2}, 0)
end

-- Layers that are called twice, models in models, models of the same tensors.
do
    local x, z, tower, head = ed.input{6}, ed.input{6}, ed.dense(4), ed.dense(1)
    local tx = tower(x)
    local model = ed.model({x, z}, head(tx - tower(z)))
    check.equal(#model, 2)
    check.equal(model:count_params(), 6 * 4 + 4 + 4 + 1)
    local encoder = ed.model(x, tx, {name = "encoder"})
    assert(encoder[1] == tower)
    encoder:set_trainable(false)
    check.equal(#model:trainable(), 2)
    local y = ed.input{6}
    local outer, data = ed.model(y, encoder(y) + tower(y)), noise{3, 6}
    check.equal(#outer:variables(), 2)
    check.near(outer(data), tower(data) * 2, 0)
end

-- Layers written in Lua keep their fields through all of it, and go with the models.
local live = setmetatable({}, {__mode = "k"})
local function collect() for _ = 1, 3 do collectgarbage() end end
local Scale = ed.layer{
    name = "scale",
    init = function(self, factor) self.factor, self.me, self.note = factor, self, {}; live[self.note] = true end,
    build = function(self, x) self.gain = self:weight("gain", {x.shape[x.rank]}, {initializer = "ones"}) end,
    forward = function(self, x) return x * self.gain * self.me.factor end,
}
do
    local x = ed.input{2}
    local h = ed.sequential{Scale(2), ed.layers.flatten()}(Scale(3)(x)) + 1
    collect()
    local y = ed.scope(function() return Scale(5)(h * 1) end)
    collect()
    local model = ed.model(x, y)
    collect()
    check.near(model{{1.0, 2}}, {{35, 65}})
    assert(model[1].factor == 3 and model[1].me == model[1] and model[3].factor == 5)
    -- of what is left of it, another model is made
    model = nil
    collect()
    model = ed.model(x, {y, h})
    check.near(model{{1.0, 2}}, {{35, 65}})
    local inputs, values = model:inputs(), model:values("sequential")
    model, x, h, y = nil, nil, nil, nil
    collect()
    model = ed.model(inputs, values)
    inputs, values = nil, nil
    collect()
    check.near(model{{1.0, 2}}, {{6, 12}})
    -- nested in a layer of Lua, and a cycle through fields
    local Outer = ed.layer{
        name = "outer",
        init = function(self, inner) self.inner, self.self = inner, self end,
        forward = function(self, v) return self.inner(v) end,
    }
    local outer, z = Outer(model), ed.input{2}
    local all = ed.model(z, outer(z) * 2)
    outer.model, model[1].model = all, all
    outer, model, z = nil, nil, nil
    collect()
    check.near(all{{1.0, 2}}, {{12, 24}})
    assert(next(live))
end
collect()
assert(not next(live), "fields of layers stay behind")

-- Several inputs and outputs are trained with a loss for each, saved, restored.
do
    local function build()
        local a, b = ed.input({4}, {name = "a"}), ed.input({3}, {name = "b"})
        local h = ed.concat({Scale(1)(a), ed.dense(6, {activation = "relu"})(b)}, {axis = -1})
        local model = ed.model({a, b}, {ed.dense(1, {name = "size"})(h),
                                        ed.dense(2, {activation = "softmax", name = "class"})(h)})
        return model:compile{
            optimizer = ed.adam(0.05), loss = {"mse", "sparse_categorical_crossentropy"},
            loss_weights = {1, 0.5}, metrics = {{"mae"}, {"accuracy"}},
        }
    end
    local model, a, b = build(), noise{64, 4}, noise{64, 3}
    local size, class = a:sum(2, {keepdims = true}), b:sum(2):greater(0):cast("int32")
    local history = model:fit({a, b}, {size, class}, {epochs = 30, batch_size = 16})
    assert(history.loss[30] < history.loss[1] / 2)
    local result = model:evaluate({a, b}, {size, class})
    local p = model:predict{a, b}
    check.equal(#p, 2)
    local mse = ((p[1] - size) ^ 2):mean():item()
    local hit = p[2]:argmax(2):cast("int32"):equal(class):cast("float32"):mean():item()
    local log = 0
    for i = 1, 64 do log = log - math.log(p[2][i][class[i]:item() + 1]:item()) / 64 end
    check.near(result.loss, mse + log / 2, 1e-4)
    local path = model:save_weights(folder .. "/two")
    local other = build():load_weights(path)
    check.near(other(a, b), model(a, b), 0)
    check.equal(check.names(other:variables()), check.names(model:variables()))
    assert(hit > 0.8)
    local checkpoint = ed.checkpoint{model = model, optimizer = model.optimizer}
    path = checkpoint:write(folder .. "/all")
    other = build()
    ed.checkpoint{model = other, optimizer = other.optimizer}:read(path)
    local options = {epochs = 1, shuffle = false}
    check.near(other:fit({a, b}, {size, class}, options).loss, model:fit({a, b}, {size, class}, options).loss, 0)

    -- Transfer: what lies below a layer, frozen, below a new one.
    local base = ed.model(model:inputs(), model:values("dense"), {trainable = false})
    local before = model:find("dense"):get_weights()
    local new = ed.model(model:inputs(), ed.dense(1)(model:values("dense")[1]))
    new:compile{optimizer = "sgd", loss = "mse"}:fit({a, b}, size)
    check.equal(#base:variables(), 2)
    check.equal(#new:trainable(), 2)
    check.near(model:find("dense"):get_weights()[1], before[1], 0)
end

-- Several inputs as arguments or as a table.
do
    local a, b = ed.input{2}, ed.input{2}
    local model = ed.model({a, b}, ed.layers.concatenate(){a, b})
    local x, y = ed.ones{3, 2}, ed.zeros{3, 2}
    check.equal(model{x, y}.shape[2], 4)
    check.near(model({x, y}, {training = true}), model(x, y), 0)
end

-- What can't be described.
do
    local x, z = ed.input({8}, {name = "x"}), ed.input{8}
    local h = ed.dense(2)(x)
    check.raises("not among the inputs: x", ed.model, z, h)
    check.raises("are the same", ed.model, {x, x}, h)
    check.raises("inputs must be a symbolic tensor or a table of them, got 3", ed.model, 3, h)
    check.raises("must be a symbolic tensor", ed.model, x, ed.ones{2})
    check.raises("must be a symbolic tensor", ed.model, {x}, {1.0})
    check.raises("at least one output", ed.model, x, {})
    check.raises("there is no option nam", ed.model, x, h, {nam = "m"})
    check.raises("-1 is one that is open", ed.input, {-2})
    check.raises("invalid name", ed.input, {2, name = "a/b"})
    check.raises("19", function() return x + ed.ones{13, 8} end)
    local model = ed.model(x, h)
    check.raises("input 1 must be float32[-1, 8], got float32[2, 9]", model, ed.ones{2, 9})
    check.raises("got 2 inputs", model, x, x)
    check.raises("nobody", model.values, model, "nobody")
    check.raises("made by ed", ed.dense(2).inputs, ed.dense(2))
    check.raises("two layers are named same", function()
        return ed.model(x, ed.dense(2, {name = "same"})(ed.dense(2, {name = "same"})(x)))
    end)
    local Item = ed.layer{name = "reads", forward = function(_, v) return v * v:sum():item() end}
    check.raises("no elements yet", Item(), x)
end

-- Losses, metrics and data by the names of inputs and outputs; datasets of several of both.
do
    local a, b = ed.input({3}, {name = "a"}), ed.input({2}, {name = "b"})
    local h = ed.dense(8, {activation = "relu"})(ed.concat({a, b}, {axis = 2}))
    local digit = ed.dense(4, {activation = "softmax", name = "digit"})(h)
    local parity = ed.dense(1, {name = "parity"})(h)
    local m = ed.model({a, b}, {digit, parity})
    local xa, xb = ed.ones{32, 3}, ed.ones{32, 2}
    local yd, yp = ed.zeros({32}, {dtype = "int32"}), ed.ones{32, 1}
    local loss = {parity = "mse", digit = "sparse_categorical_crossentropy"}
    m:compile{loss = loss, loss_weights = {parity = 0.5}, metrics = {parity = "mae", digit = {"accuracy"}}}
    local named = m:evaluate({b = xb, a = xa}, {parity = yp, digit = yd})
    check.near({named.loss}, {named.digit_loss + named.parity_loss / 2}, 1e-6)
    assert(named.digit_accuracy and named.parity_mae)
    local listed = m:evaluate({xa, xb}, {yd, yp})
    local set = ed.dataset({xa, xb}, {yd, yp}, {batch = 8, shuffle = true})
    for x, y in set:batches() do
        check.equal(x[2].shape[2], 2)
        check.equal(y[2].shape[1], 8)
    end
    check.near({listed.loss, m:evaluate(set).loss}, {named.loss, named.loss}, 1e-6)
    check.equal(#m:fit(set, {epochs = 2, validation_data = set}).val_parity_loss, 2)
    check.equal(#m:predict(set), 2)
    check.raises("2 tensors x", set.x, set)
    check.raises("no input named 'c'", m.fit, m, {a = xa, c = xb}, {digit = yd})

    -- An output without a loss needs no labels.
    m:compile{loss = {parity = false, digit = loss.digit}, metrics = {digit = "accuracy"}}
    local only = m:fit({xa, xb}, {digit = yd})
    assert(only.digit_accuracy and not only.digit_loss)
    check.raises("no output named 'parit'; its outputs are digit, parity", m.compile, m, {loss = {parit = "mse"}})
    check.raises("1 of the model's 2 outputs", m.compile, m, {loss = {parity = "mse"}})
    check.raises("a loss is required", m.compile, m, {loss = {parity = false, digit = false}})
end
