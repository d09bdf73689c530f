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
check.equal(check.names(block:variables()), "block/first/kernel block/first/bias block/dense/kernel " ..
    "block/dense/bias block/dense_1/kernel block/dense_1/bias")
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
assert(message:find("custom_layers.lua:%d+: not yet"), message)
check.near(late(ed.ones(1)), {1})
check.equal(#late:variables(), 1)

-- Errors inside carry the Lua line, and say in which layer.
local Broken = ed.layer{name = "broken", forward = function(self, x) return x:matmul(x) .. "" end}
message = check.raises("sequential/broken", ed.sequential{Broken()}, ed.ones{2, 3})
assert(message:find("custom_layers.lua:%d+: matmul"), message)
check.raises("broken: forward must return a tensor, got nil", ed.layer{name = "broken", forward = function() end}(), 1.0)
local thrown = {}
local fine, caught = pcall(ed.layer{forward = function() error(thrown) end}(), 1.0)
assert(not fine and caught == thrown)
check.raises("layer: forward must be a function, got nil", ed.layer, {build = print})
check.raises("layer: build must be a function, got 3", ed.layer, {forward = print, build = 3})
check.raises("layer: name contains a zero byte", ed.layer{forward = print}, {name = "a\0b"})
check.raises("layer: name must be a string, got 3", ed.layer, {forward = print, name = 3})
check.raises("zero byte", function() block["a\0b"] = 1 end)
check.raises("'name' is a method or property of all layers", function() block.name = "x" end)
check.raises("'weight' is a method or property of all layers", function() block.weight = 3 end)
check.raises("invalid name", ed.layer{forward = print}, {name = ""})

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
    whole = ed.sequential{Closing(), ed.layers.activation("relu")}
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

-- Variables in fields are weights named like them, layers and variables in tables are parts too.
do
    local shared = ed.dense(2)
    shared(ed.ones{1, 2})
    local Parts = ed.layer{
        name = "parts",
        init = function(self)
            self.v = ed.variable(2.0)
            self.list = {ed.dense(2), ed.dense(2), more = {ed.variable({1.0, 2}, {trainable = false})}}
            self.empty = {}
            self.tied = shared:variables()[1]
            self.up = self
            self.tables = {}
            self.tables[1] = self.tables
        end,
        build = function(self, x)
            self.empty[1] = ed.batch_normalization()
            self.late = ed.variable(3.0)
        end,
        forward = function(self, x) return self.empty[1](self.list[2](self.list[1](x))) * self.v * self.late end,
    }
    local parts = Parts()
    check.equal(check.names(parts:variables()), "parts/v parts/list_more_1")
    local model = ed.sequential{parts}
    model(ed.ones{1, 2})
    check.equal(check.names(model:trainable()), "sequential/parts/v sequential/parts/late " ..
        "sequential/parts/list_1/kernel sequential/parts/list_1/bias sequential/parts/list_2/kernel " ..
        "sequential/parts/list_2/bias sequential/parts/empty_1/gamma sequential/parts/empty_1/beta")
    check.equal(#model:variables(), 11)
    parts.after = ed.variable(1.0)
    check.equal(#model:variables(), 12)

    -- Parts stay: another value, or none, would be a part too many.
    check.raises("parts: the field 'v' holds a child or weight", function() parts.v = ed.variable(3.0) end)
    check.raises("parts: the field 'v' holds a child or weight", function() parts.v = nil end)
    parts.v = parts.v
    parts.up = 3
    local Twice = ed.layer{init = function(self) self.a = ed.dense(2); self.a = ed.dense(3) end, forward = print}
    check.raises("layer: the field 'a' holds a child or weight", Twice)
    check.raises("layer/w: the layer already has a weight of this name", ed.layer{forward = print, init = function(self)
        self.w = ed.variable(1.0)
        self:weight("w", {1})
    end})

    -- A table that is refused leaves the layer as it was.
    local plain = ed.layer{forward = print}()
    local function put(name, value) return function() plain[name] = value end end
    check.raises("layer: two layers are named a", put("p", {ed.dense(1, {name = "a"}), ed.dense(1, {name = "a"})}))
    check.raises("layer: two layers are named p_1", put("p", {ed.dense(1), ed.dense(1, {name = "p_1"})}))
    check.raises("layer: two weights are named p_1", put("p", {ed.variable(1.0), ["0"] = ed.variable(2.0)}))
    check.raises("layer: invalid name 'p_a/b'", put("p", {ed.variable(1.0), ["a/b"] = ed.variable(2.0)}))
    check.equal(plain.p, nil)
    check.equal(#plain, 0)
    put("p", {ed.dense(1), ed.dense(1, {name = "a"}), ed.dense(1)})()
    check.equal(plain[1].name .. plain[2].name .. plain[3].name, "p_1ap_3")
    check.raises("layer: two layers are named a", put("q", {ed.flatten(), ed.dense(1, {name = "a"})}))
    check.equal(#plain, 3)

    -- Checkpoints have them where they are as fields, as Keras has them.
    local Fields = ed.layer{
        name = "fields",
        init = function(self)
            self.first = ed.dense(2)
            self.blocks = {ed.dense(2), ed.dense(2, {name = "own"}), {deep = ed.dense(2)}}
            self.scales = {ed.variable(1.0), ed.variable(2.0)}
        end,
        forward = function(self, x)
            x = self.blocks[3].deep(self.blocks[2](self.blocks[1](self.first(x))))
            return x * self.scales[1] * self.scales[2]
        end,
    }
    local fields, x = Fields(), ed.ones{1, 3}
    fields(x)
    fields.scales[2]:assign(3)
    check.equal(check.names(fields:variables()), "fields/scales_1 fields/scales_2 fields/first/kernel fields/first/bias " ..
        "fields/blocks_1/kernel fields/blocks_1/bias fields/own/kernel fields/own/bias " ..
        "fields/blocks_3_deep/kernel fields/blocks_3_deep/bias")
    local path = ed.checkpoint{m = fields}:write(folder .. "/fields")
    local names = {}
    for _, name in ipairs(ed.archive(path):names()) do names[#names + 1] = name:match("^m/(.*)/.ATTRIBUTES") or name:match("^m/(.*)") end
    names = " " .. table.concat(names, " ")
    for name in ("first/kernel blocks/0/kernel blocks/1/bias blocks/2/deep/kernel scales/1"):gmatch("%S+") do
        assert(names:find(" " .. name, 1, true), name .. " is not among" .. names)
    end
    for built = 0, 1 do
        local other = Fields()
        if built == 1 then other(x) end
        ed.checkpoint{m = other}:read(path)
        check.near(other(x), fields(x), 0)
    end

    -- They are saved, and wait for their layer like others.
    local checkpoint = ed.checkpoint{model = model}
    parts.v:assign(7)
    parts.late:assign(8)
    checkpoint:write(folder .. "/parts")
    local again = Parts()
    local restoration = ed.checkpoint{model = ed.sequential{again}}:read(folder .. "/parts", {partial = true})
    check.equal(again.v:item(), 7.0)
    again(ed.ones{1, 2})
    check.equal(again.late:item(), 8.0)
end

-- The children of a layer, as pairs and ipairs give them.
do
    local places = {}
    for i, layer in pairs(ed.sequential{ed.flatten(), ed.dense(1)}) do places[#places + 1] = i .. layer.name end
    check.list(places, {"1flatten", "2dense"})
end

-- Fields stay as long as the layer is anywhere, and what leads back to it does not keep it.
do
    local function live()
        for _ = 1, 4 do collectgarbage() end
        return ed.memory().live_tensors
    end
    local Circle = ed.layer{
        init = function(self)
            self.w = self:weight("w", {10})
            self.me, self.get = self, function() return self end
        end,
        forward = function(self, x) return x end,
    }
    local Parent = ed.layer{
        init = function(self)
            self.child = Circle()
            self.child.owner = self
            self.list = {Circle()}
            self.list[1].owner = self
            self:add(Circle()).owner = self
        end,
        forward = function(self, x) return self.child(x) end,
    }
    local before = live()
    for _, Kind in ipairs{Circle, Parent} do
        for i = 1, 20 do
            local layer = Kind()
            if i % 2 == 0 then layer(1.0) end
            local model = i > 10 and ed.sequential{layer}
            layer = nil
            if i % 3 == 0 then live() end
            if model then
                model(1.0)
                local inside = model[1]
                assert(Kind == Parent and inside[3].owner.child.owner == inside or inside.me.get() == inside)
            end
        end
        check.equal(live(), before)
    end
    local kept
    do
        local model = ed.sequential{Parent()}
        live()
        kept = model[1].child
    end
    live()
    assert(kept.owner.child == kept)
    kept(1.0)
    kept = nil
    check.equal(live(), before)
    local alone = Circle()
    do local closed <close> = alone end
    check.raises("closed", alone, 1.0)
    alone = nil
    local Back = ed.layer{forward = function(self, x) return x * self.model[2].w:sum() * 0 + x end}
    local model = ed.sequential{Back(), Circle()}
    model[1].model = model
    live()
    check.equal(model(1.0):item(), 1.0)
    do local closed <close> = model[2] end
    check.equal(model(1.0):item(), 1.0)
    model = nil
    check.equal(live(), before)
    model = ed.scope(function() return ed.sequential{ed.sequential{Parent()}}[1] end)
    assert(model[1].child.owner == model[1])
    model(1.0)
    model = nil
    check.equal(live(), before)
end

-- What fields hold stays open, whenever garbage is collected.
do
    local Kind = ed.layer{
        init = function(self) self.first, self.more = ed.dense(2), {ed.dense(2)} end,
        build = function(self) self.gain = self:weight("gain", {2}) end,
        forward = function(self, x) return self.more[1](self.first(x)) * self.gain end,
    }
    for _ = 1, 10 do
        local model = ed.sequential{Kind(), ed.sequential{Kind()}}
        for _ = 1, 3 do
            model(ed.ones{1, 2})
            collectgarbage()
        end
    end
end

-- A layer that a checkpoint alone has outlives its kind.
local gone = ed.layer{name = "gone", forward = function(self, x) return x end}()
gone(1.0)
local last_one = ed.checkpoint{layer = gone}
gone = nil
for _ = 1, 3 do collectgarbage() end
last_one:write(folder .. "/last")
last_one = nil
collectgarbage()
