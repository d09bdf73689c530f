local check = require "check"

local Scale = ed.layer{
    name = "scale",
    init = function(self, factor) self.factor = factor end,
    build = function(self, x)
        self.gain = self:weight("gain", {x.shape[x.rank]}, {initializer = "ones"})
        self.count = self:weight("count", {}, {initializer = "zeros", trainable = false, dtype = "float64"})
    end,
    forward = function(self, x, options)
        if options.training then self.count:assign_add(ed.tensor(1, "float64")) end
        return self:times(x * self.gain)
    end,
    times = function(self, x) return x * self.factor end,
}

-- Each layer has its own fields; the description's functions are everybody's.
local model = ed.sequential{Scale(2), Scale(3, {name = "third"}), Scale(1)}
check.near(model{{1.0, 2}}, {{6, 12}})
model(ed.ones{1, 2}, {training = true})
check.equal(check.names(model:trainable()), "sequential/scale/gain sequential/third/gain sequential/scale_1/gain")
check.equal(model[1].count:item(), 1.0)
check.equal(model[2].factor, 3)
check.equal(model[1].kind, "scale")
check.equal(model[1].nothing, nil)
model[2].factor = 5
check.near(model{{1.0, 2}}, {{10, 20}})

-- Gradients pass, and an optimizer trains it.
local loss, gradients = ed.value_and_grad(function() return model(ed.ones{1, 2}):sum() end, model:trainable())
check.near(gradients[1], {10, 10})
ed.sgd{learning_rate = 0.1}:apply_gradients(gradients, model)
check.near(model[1].gain:value(), {0, 0})

-- A layer in a field is a child; so is one that is added.
local Block = ed.layer{
    name = "block",
    init = function(self, units)
        self.first = ed.dense(units, {kernel_initializer = "ones"})
        self.rest = {}
        for i = 1, 2 do self.rest[i] = self:add(ed.dense(1, {kernel_initializer = "ones"})) end
    end,
    forward = function(self, x, options)
        x = self.first(x, options)
        for _, layer in ipairs(self.rest) do x = layer(x, options) end
        return x
    end,
}
local block = Block(3)
check.equal(#block, 3)
check.near(block{{1.0, 1}}, {{6}})
check.equal(check.names(block:variables()), "block/dense/kernel block/dense/bias block/dense_1/kernel " ..
    "block/dense_1/bias block/dense_2/kernel block/dense_2/bias")
assert(block[1] == block.first)

-- A failed build is taken back and tried again.
local tries = 0
local Late = ed.layer{
    name = "late",
    build = function(self)
        self.w = self:weight("w", {1}, {initializer = "ones"})
        tries = tries + 1
        if tries == 1 then error("not yet") end
    end,
    forward = function(self, x) return x * self.w end,
}
local late = Late()
local message = check.raises("not yet", late, ed.ones(1))
assert(message:find("own_layers.lua:%d+: not yet"), message)
check.near(late(ed.ones(1)), {1})
check.equal(#late:variables(), 1)

-- Errors inside carry the Lua line, and say in which layer.
local Broken = ed.layer{name = "broken", forward = function(self, x) return x:matmul(x) .. "" end}
message = check.raises("sequential/broken", ed.sequential{Broken()}, ed.ones{2, 3})
assert(message:find("own_layers.lua:%d+: matmul"), message)
check.raises("broken: forward returned a nil", ed.layer{name = "broken", forward = function() end}(), 1.0)
local thrown = {}
local fine, caught = pcall(ed.layer{forward = function() error(thrown) end}(), 1.0)
assert(not fine and caught == thrown)
check.raises("layer: forward is a nil; a function", ed.layer, {build = print})
check.raises("layer: build is a number", ed.layer, {forward = print, build = 3})
check.raises("every layer has a 'name' already", function() block.name = "x" end)
check.raises("every layer has a 'weight' already", function() block.weight = 3 end)
check.raises("no name", ed.layer{forward = print}, {name = ""})

-- Layers within coroutines; layers that call themselves end as an error, not as a crash.
local inside = coroutine.wrap(function() return model{{1.0, 2}} end)
check.list(inside().shape, {1, 2})
local Loop = ed.layer{name = "loop", forward = function(self, x) return self(x) end}
assert(not pcall(Loop(), 1.0))

-- What runs may be closed from within.
do
    local input, whole = ed.ones(1)
    local Closing = ed.layer{
        name = "closing",
        build = function()
            do local a <close> = whole; local b <close> = input end
            collectgarbage()
        end,
        forward = function(self, v) return v + 1 end,
    }
    whole = ed.sequential{Closing(), ed.activation_layer("relu")}
    check.near(whole(input), {2})
    check.raises("closed", whole, 1.0)

    local tape, optimizer = ed.tape(), ed.sgd()
    local v = ed.variable(1.0)
    local loss
    local closing = ed.custom_gradient(function(a) return a * 1 end, function(dy)
        do local a <close> = tape; local b <close> = optimizer; local c <close> = loss end
        collectgarbage()
        return dy
    end)
    loss = closing(v)
    optimizer:minimize(tape, loss, {v})
    check.near(v:value(), 0.99, 1e-6)
end

-- Finalizers run within calls too: what they close is closed, and stays until the call is over.
for _ = 1, 20 do
    local v = ed.ones(100)
    setmetatable({}, {__gc = function() local c <close> = v end})
    local fine, message
    for _ = 1, 20000 do
        fine, message = pcall(function() return v[3] end)
        if not fine then break end
    end
    assert(not fine and message:find "the tensor was closed")
end

-- A kind may go before its layers.
local last
do
    local Kind = ed.layer{name = "kind", forward = function(self, x) return x + 1 end}
    last = ed.sequential{Kind()}
end
collectgarbage()
collectgarbage()
check.near(last(ed.ones(1)), {2})
check.equal(last[1].kind, "kind")
