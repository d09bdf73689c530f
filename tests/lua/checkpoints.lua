local check = require "check"

local function program()
    local p = {
        model = ed.sequential{ed.dense(3), ed.dense(2), name = "net"},
        adam = ed.adam(0.1),
        data = ed.dataset(ed.range(0, 8):reshape{8, 1}, ed.range(0, 8), {batch = 2, shuffle = true, seed = 1}),
        random = ed.generator(7),
        mean = ed.metrics.mean(),
        step = ed.counter(),
        list = {ed.variable(1.0), ed.variable({2.0, 3.0})},
        state = {epoch = 0, best = 0.5, helper = print},
    }
    p.checkpoint = ed.checkpoint{
        model = p.model, optimizer = p.adam, data = p.data, random = p.random, mean = p.mean,
        step = p.step, list = p.list, state = p.state,
    }
    return p
end

local x = ed.tensor{{1.0, 2, 3}}
local function train(p)
    local tape, loss = ed.tape(function() return (p.model(x) ^ 2):mean() end)
    p.adam:minimize(tape, loss, p.model)
    p.step:assign_add(1)
    p.mean:update(loss)
    p.data:next()
    ed.random.uniform{1, generator = p.random}
    p.state.epoch = p.state.epoch + 1
    p.state.best = p.state.best / 2
    p.list[1]:assign_add(1.0)
end

local function figures(p)
    local all = {p.adam.iterations, p.step:item(), p.mean:result(), p.state.epoch, p.state.best,
                 p.list[1]:item(), p.random.state[1]}
    for _, v in ipairs(p.model:variables()) do all[#all + 1] = v:value():sum():item() end
    for _, v in ipairs(p.adam:variables()) do all[#all + 1] = v:value():sum():item() end
    return all
end

-- Everything is there and back again, and training goes on as it would have.
local one = program()
train(one)
train(one)
local path = one.checkpoint:save(folder .. "/ckpt")
check.equal(path, folder .. "/ckpt-1")
check.equal(one.checkpoint:save_counter(), 1)
check.equal(ed.latest_checkpoint(folder), path)
local two = program()
local restoration = two.checkpoint:restore(path)
assert(#restoration:waiting() > 0 and #restoration:missing() == 0 and #restoration:unexpected() == 0)
check.equal(two.state.epoch, 2)
check.equal(math.type(two.state.epoch), "integer")
two.model(x)
train(one)
train(two)
restoration:assert_consumed():assert_existing_objects_matched():assert_nontrivial_match()
check.equal(#restoration:waiting(), 0)
check.near(figures(two), figures(one))
check.near(({two.data:next()})[2], ({one.data:next()})[2])
check.equal(tostring(restoration), restoration:report())
assert(restoration:report():find(path, 1, true))

-- Options of restoring.
local function fresh(extra)
    local parts = {model = ed.sequential{ed.dense(3), ed.dense(2), name = "net"}}
    parts.model(x)
    for name, part in pairs(extra or {}) do parts[name] = part end
    return ed.checkpoint(parts), parts
end
local checkpoint, parts = fresh{new = ed.variable(9.0)}
check.raises("new", checkpoint.restore, checkpoint, path)
restoration = checkpoint:restore(path, {partial = true})
check.list(restoration:missing(), {"new"})
assert(#restoration:unexpected() > 0)
check.raises("new", restoration.assert_consumed, restoration)
restoration:expect_partial()
checkpoint, parts = fresh()
restoration = checkpoint:restore(path, {only = "model/dense/*"})
check.list(restoration:restored(), {"model/dense/kernel", "model/dense/bias"})
restoration = checkpoint:restore(path, {partial = true, skip = {"model/dense_1/*", "model/dense/bias"}})
local names = table.concat(restoration:restored(), " ")
assert(names:find("model/dense/kernel", 1, true) and not names:find("bias", 1, true), names)
local other = ed.sequential{ed.dense(3), ed.dense(2), name = "other"}
other(x)
restoration = ed.checkpoint{net = other}:restore(path, {partial = true, renames = {net = "model"}})
check.near(other:variables()[1]:value(), parts.model:variables()[1]:value())
check.raises("there is no option onyl", checkpoint.restore, checkpoint, path, {onyl = "x"})
check.raises("only must be strings", checkpoint.restore, checkpoint, path, {only = {3}})
local huge = {[math.maxinteger] = "a"}
for i = 62, 0, -1 do huge[1 << i] = "a" end
check.raises("skip: too many strings", checkpoint.restore, checkpoint, path, {skip = huge})
do -- options are looked at without metamethods
    local brief = fresh()
    local options = setmetatable({partial = true}, {__index = function() local c <close> = brief end})
    check.list(brief:restore(path, options):missing(), {})
end
check.raises("restore: there is no option partail; there are partial, only", checkpoint.restore, checkpoint, path, {partail = true})
check.raises("restore: a table of options is expected, not true", checkpoint.restore, checkpoint, path, true)
check.raises("renames must be strings, got a string with a zero byte", checkpoint.restore, checkpoint, path, {renames = {["a\0"] = "b"}})
check.raises("file not found", checkpoint.restore, checkpoint, folder .. "/none")

-- write and read, under exactly this name.
check.equal(checkpoint:write(folder .. "/exact"), folder .. "/exact")
checkpoint:read(folder .. "/exact"):assert_consumed()

-- Tables: what can't be kept is said; a table within a table is a trackable; a failed restore
-- leaves numbers as they were.
check.raises("'text' is the string 'x'", ed.checkpoint, {state = {text = "x"}})
check.raises("'model' is 3", ed.checkpoint, {model = 3})
check.raises("'inner' is a table", ed.checkpoint, {state = {inner = {a = 1}}})
check.raises("keys must be strings, got true", ed.checkpoint, {state = {a = 1, [true] = 2}})
check.raises("checkpoint: keys must be strings", ed.checkpoint, {one.model})
check.raises("tensor", ed.checkpoint, {x = x})
local inner, outer = {count = 3}, {rate = 1.5}
local shared = ed.trackable(inner)
outer.inner = shared
local tables = ed.checkpoint{outer = outer, again = shared}
tables:write(folder .. "/tables")
local loaded = ed.load(folder .. "/tables")
local count = 0
for key in pairs(loaded) do if key:find("count", 1, true) then count = count + 1 end end
check.equal(count, 1)
inner.count, outer.rate = 0, 0.0
tables:read(folder .. "/tables")
check.near({inner.count, outer.rate}, {3, 1.5})
inner.count, outer.more = 7, 1
check.raises("more", tables.read, tables, folder .. "/tables")
check.equal(inner.count, 7)
outer.more = nil
inner.count = 7.0
tables:read(folder .. "/tables")
check.equal(math.type(inner.count), "float")
check.equal(inner.count, 3.0)

-- Own layers are kept as any others.
local Scale = ed.layer{
    name = "scale",
    build = function(self) self.gain = self:weight("gain", {}, {initializer = "ones"}) end,
    forward = function(self, v) return v * self.gain end,
}
local scale = ed.sequential{Scale()}
scale(x)
scale[1].gain:assign(4)
ed.checkpoint{model = scale}:write(folder .. "/own")
local again = ed.sequential{Scale()}
restoration = ed.checkpoint{model = again}:read(folder .. "/own")
check.equal(#restoration:waiting(), 1)
check.near(again(x), {{4, 8, 12}})
restoration:assert_consumed()
