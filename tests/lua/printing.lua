local check = require "check"

-- print_options is NumPy's printoptions, for tostring, print and what is joined to texts.
local x = ed.tensor{1 / 3, 2.5, -1}
local before = ed.print_options()
check.equal(before.threshold, 1000)
check.equal(before.edge_items, 3)
check.equal(before.precision, 8)
check.equal(before.width, 75)
check.equal(ed.print_options{precision = 2}.precision, 2)
check.equal(tostring(x), "[ 0.33  2.5  -1.  ]\ntensor float32 [3]")
check.equal(tostring(ed.tensor(1 / 3)):match("[^\n]*"), "0.33333334")
ed.print_options{threshold = 3, edge_items = 1}
check.equal(tostring(ed.range(4)), "[0 ... 3]\ntensor int32 [4]")
ed.print_options{threshold = 1000, width = 10}
check.equal(tostring(ed.range(8)), "[0 1 2 3\n 4 5 6 7]\ntensor int32 [8]")

-- What is wrong changes nothing.
check.raises("print_options: threshold is the string 'all'; an integer is expected", ed.print_options,
    {threshold = "all"})
check.raises("width must be at least 10, got 5", ed.print_options, {precision = 3, width = 5})
check.raises("there is no option prec", ed.print_options, {prec = 3})
check.equal(ed.print_options().precision, 2)
check.equal(ed.print_options(before).precision, 8)
check.equal(ed.print_options{edge_items = math.maxinteger}.edge_items, math.maxinteger)
ed.print_options(before)

-- Layers as trees.
local model = ed.sequential{ed.dense(3), ed.sequential{ed.dense(2), ed.batch_normalization(), name = "inner"}, name = "mlp"}
check.equal(model:tree(), [[
mlp (sequential)
  dense
  inner (sequential)
    dense
    batch_normalization
not built: the first call makes its variables]])
model(ed.ones{4, 2})
check.equal(model:tree(), [[
mlp (sequential)
  dense: kernel [2, 3], bias [3]
  inner (sequential)
    dense: kernel [3, 2], bias [2]
    batch_normalization: gamma [2], beta [2], moving_mean [2] not trainable, moving_variance [2] not trainable
25 parameters]])

-- Weights in a file of their own, taken before and after the first call.
local path = model:save_weights(folder .. "/weights")
check.equal(path, folder .. "/weights")
local function another()
    return ed.sequential{ed.dense(3), ed.sequential{ed.dense(2), ed.batch_normalization(), name = "inner"}, name = "mlp"}
end
local late, built = another(), another()
assert(late:load_weights(path) == late)
built(ed.ones{4, 2})
built:load_weights(path)
local input = ed.random.normal{4, 2}
check.near(late(input), model(input))
check.near(built(input), model(input))
local other = ed.sequential{ed.dense(4), name = "mlp"}
other(ed.ones{4, 2})
check.raises("dense/kernel is float32[2, 4] in the program and float32[2, 3] in the file", other.load_weights, other, path)
check.raises("none/weights", model.load_weights, model, folder .. "/none/weights")

-- timeit counts calls and gives seconds.
local calls = 0
local t = ed.timeit(function() calls = calls + 1 end, 7)
check.equal(calls, t.calls * t.rounds)
check.equal(t.calls, 7)
assert(t.best > 0 and t.best <= t.mean and t.mean < 1)
assert(tostring(t):find("^%S+ [um]?s a call at best, %S+ [um]?s on average %(5 rounds of 7 calls%)$"), tostring(t))
assert(ed.timeit(function() end).calls > 10)
check.raises("timeit: expected a function, got nil", ed.timeit)
check.raises("timeit: n must be an integer of at least 1, got 0", ed.timeit, print, 0)
check.raises("not now", ed.timeit, function() error "not now" end)
