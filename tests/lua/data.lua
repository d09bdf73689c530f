local check = require "check"

-- Generators: their state is read, set, and drawn from.
-- tf.random.Generator.from_seed(-5).state: [-5, -1, -1]
check.list(ed.generator(-5).state, {-5, -1, -1})
local g = ed.generator(1234)
check.list(g.state, {1234, 0, 0})
local first = ed.random.uniform({5}, {generator = g})
local later = g.state
assert(table.concat(later, " ") ~= "1234 0 0")
g.state = {1234, 0, 0}
check.near(ed.random.uniform{5, generator = g}, first)
check.list(g.state, later)
g.state = {-1, 2, math.mininteger}
check.list(g.state, {-1, 2, math.mininteger})
check.raises("state alone can be set", function() g.seed = 1 end)
check.raises("three integers", function() g.state = {1, 2} end)
check.raises("three integers", function() g.state = {"1", "2", "3"} end)
check.raises("no field or method 'stat'", function() return g.stat end)
check.raises("generator: seed is missing", ed.generator)
check.raises("the default generator has no such state", function() return ed.default_generator().state end)

-- The process's source is a generator too, and the one that is used where none is given.
ed.set_seed(3)
local a = ed.random.normal{4}
ed.set_seed(3)
check.near(ed.random.normal({4}, {generator = ed.default_generator()}), a)

-- Options of draws.
local function draw(kind, options)
    options[1], options.generator = 10000, ed.generator(5)
    return ed.random[kind](options)
end
local u = draw("uniform", {low = 3, high = 5})
assert(u:min():item() >= 3 and u:min():item() < 3.01 and u:max():item() < 5 and u:max():item() > 4.99)
local whole = draw("uniform", {low = -2, high = 3, dtype = "int32"})
check.equal(whole.dtype, "int32")
check.near({whole:min():item(), whole:max():item()}, {-2, 2})
local n = draw("normal", {mean = 10, stddev = 2, dtype = "float64"})
check.equal(n.dtype, "float64")
check.near({n:mean():item(), n:std():item()}, {10, 2}, 0.1)
local t = draw("truncated_normal", {mean = 1, stddev = 0.5})
assert(t:max():item() < 2 and t:min():item() > 0 and t:max():item() > 1.98)
check.list(ed.random.uniform{2, 3}.shape, {2, 3})
check.list(ed.random.uniform(4).shape, {4})
check.list(ed.random.uniform({}).shape, {})
local s = ed.random.shuffle({1, 2, 3, 4, 5, 6, 7, 8}, {generator = ed.generator(1)})
check.equal(s:sum():item(), 36)
check.near(s, ed.random.shuffle({1, 2, 3, 4, 5, 6, 7, 8}, {generator = ed.generator(1)}))
local d = ed.dropout(ed.ones(1000), 0.75, {generator = ed.generator(2)})
check.equal(d:max():item(), 4.0)
check.near(d, ed.dropout{ed.ones(1000), 0.75, generator = ed.generator(2)})
check.raises("uniform: there is no option mean", ed.random.uniform, {2, mean = 3})
check.raises("dropout: rate is missing", ed.dropout, ed.ones(3))

-- Datasets: an epoch is a loop.
local x, y = ed.range(0, 10):reshape{5, 2}, ed.range(0, 5)
local set = ed.dataset(x, y, {batch = 2})
check.equal(#set, 3)
check.equal(set:rows(), 5)
local sizes = {}
for bx, by in set:batches() do
    sizes[#sizes + 1] = #bx
    check.near(bx[1], {2 * by[1]:item(), 2 * by[1]:item() + 1})
end
check.list(sizes, {2, 2, 1})
check.near(set:x(), x)
check.near(set:y(), y)

-- Every loop begins an epoch, also after one that was left; next goes on where the set stands.
for _, by in set:batches() do check.near(by, {0, 1}) break end
local _, label = set:next()
check.near(label, {0, 1})
_, label = set:next()
check.near(label, {2, 3})
for _, by in set:batches() do check.near(by, {0, 1}) break end
pcall(function() for _ in set:batches() do error "left" end end)
_, label = set:next()
check.near(label, {0, 1})
set:rewind()

-- Loops within loops need two sets.
check.raises({"data.lua:", "a loop over this dataset inside this loop"}, function()
    for _ in set:batches() do for _ in set:batches() do end end
end)
local pairs_seen = 0
for _ in set:batches() do for _ in ed.dataset(x, y):batches() do pairs_seen = pairs_seen + 1 end end
check.equal(pairs_seen, 3)

-- What was saved within a loop goes on there, once; what was saved after a loop that was left does
-- not.
do
    local function labels(from)
        local all = {}
        for _, by in from:batches() do for _, label in ipairs(by:totable()) do all[#all + 1] = label end end
        return table.concat(all, " ")
    end
    local shuffled = ed.dataset(x, y, {batch = 2, shuffle = true, seed = 3})
    local checkpoint = ed.checkpoint{data = shuffled}
    local rest = {}
    for _, by in shuffled:batches() do
        if rest[1] then for _, label in ipairs(by:totable()) do rest[#rest + 1] = label end end
        if not rest[1] then
            checkpoint:write(folder .. "/within")
            rest[1] = ""
        end
    end
    local following = labels(shuffled)
    for _ in shuffled:batches() do break end
    checkpoint:write(folder .. "/left")
    local third = labels(shuffled)
    checkpoint:read(folder .. "/within")
    check.equal(" " .. labels(shuffled), table.concat(rest, " "))
    check.equal(labels(shuffled), following)
    checkpoint:read(folder .. "/left")
    check.equal(labels(shuffled), third)
    for _ in shuffled:batches() do checkpoint:read(folder .. "/within") break end
    check.equal(" " .. labels(shuffled), table.concat(rest, " "))
end

-- Batches as a function makes them.
do
    local doubled = set:map(function(bx, by) return bx * 2, by + 1 end)
    local sums, n = doubled:map(function(bx, by) return bx:sum(), by end), 0
    check.equal(#sums, 3)
    check.equal(sums:rows(), 5)
    for total, by in sums:batches() do
        if n == 0 then check.near(total, 12) check.near(by, {1, 2}) end
        n = n + 1
    end
    check.equal(n, 3)
    for _ in sums:batches() do break end
    check.near(doubled:next(), {{0, 2}, {4, 6}})
    check.equal(doubled:rewind(), doubled)
    local message = check.raises("b is nil", function()
        for _ in set:map(function(bx) return bx + nothing end):batches() do end
    end)
    assert(message:find("data.lua:%d+: "), message)
    check.raises("map: the function must return a batch, got nothing", set:map(function() end).next, set:map(function() end))
    check.raises("function expected", set.map, set, 3)
    local checkpoint = ed.checkpoint{data = doubled}
    doubled:rewind()
    doubled:next()
    checkpoint:write(folder .. "/mapped")
    doubled:next()
    checkpoint:read(folder .. "/mapped")
    for bx in doubled:batches() do check.near(bx, {{8, 10}, {12, 14}}) break end
end

-- Every option arrives.
check.equal(#ed.dataset(x, y, {batch = 2, drop_remainder = true}), 2)
check.equal(#ed.dataset{x, y}, 1)
local function order(options)
    local all = {}
    options.shuffle, options.batch = true, 1
    local shuffled = ed.dataset(x, y, options)
    for _, by in shuffled:batches() do all[#all + 1] = by[1]:item() end
    return table.concat(all)
end
check.equal(order{seed = 4}, order{seed = 4})
local different = false
for seed = 5, 8 do different = different or order{seed = seed} ~= order{seed = 4} end
assert(different)
local pixels = ed.dataset(ed.tensor({{0, 255}}, "uint8"), {1}, {pixels = true})
check.near(pixels:x(), {{0, 1}})
check.raises("same number of rows", ed.dataset, x, {1})
check.raises("dataset: y is missing", ed.dataset, x)
check.raises("dataset: y is missing", ed.dataset, x, {batch = 3})
check.raises("batch must be at least 1, got 0", ed.dataset, x, y, {batch = 0})
check.raises("mnist: batch must be at least 1, got 0", ed.mnist, "train", {dir = folder, batch = 0})
check.raises("no option batches", ed.dataset, x, y, {batches = 3})
check.raises("dataset expected", set.next, x)

-- Batches outlive the loop that lent them.
local kept = {}
for bx in ed.dataset(x, y, {batch = 1, shuffle = true}):batches() do kept[#kept + 1] = bx end
check.equal(ed.concat(kept):sum():item(), 45)

-- MNIST, where it is.
check.raises("mnist: dir, the folder of the files, is not given", ed.mnist, "train")
check.raises("got \"both\"", ed.mnist, "both", {dir = folder})
check.raises("No such file", ed.mnist, "test", {dir = folder})
local data = os.getenv("EDDY_DATA")
if data then
    local test = ed.mnist("test", {dir = data .. "/mnist", batch = 100})
    check.equal(#test, 100)
    local bx, by = test:next()
    check.list(bx.shape, {100, 28, 28})
    check.equal(by[1]:item(), 7)
    check.list(ed.read_idx(data .. "/mnist/t10k-labels-idx1-ubyte").shape, {10000})
end

-- Functions that are no ops.
local six = ed.range(0, 6):reshape{2, 3}
check.near(six:split(3, {axis = 2})[3], {{2}, {5}})
check.near(ed.split(six, {1, -1}, {axis = -1})[2], {{1, 2}, {4, 5}})
check.near(six:split_sizes({1, -1}, 2)[2], {{1, 2}, {4, 5}})
check.near(ed.unstack(six)[2], {3, 4, 5})
check.equal(#six:unstack{axis = 2}, 3)
check.equal(#ed.unstack(ed.zeros{0, 2}), 0)
local ones = {}
for i = 1, 300 do ones[i] = 1 end
check.near(ed.range(0, 300):split(ones)[300], {299})
check.raises("shape must have 0 to 8 entries, got 300", ed.zeros, ones)
local tape <close> = ed.tape()
local x = tape:watch(ed.tensor{{1.0, 2}, {3, 4}, {5, 6}})
local rows = ed.unstack(x)
check.near(tape:gradient((rows[1] * rows[3]):sum(), x), {{5, 6}, {0, 0}, {1, 2}})
check.near(six:flatten_tensor(), {0, 1, 2, 3, 4, 5})
check.near(ed.bias_add(ed.ones{2, 2}, {1.0, 2}), {{2, 3}, {2, 3}})
check.equal(six:zeros_like().dtype, "int32")
check.near(ed.ones_like{{1.5}}, {{1}})
check.equal(ed.dtype_size("float64"), 8)
assert(ed.dtype_is_float("bfloat16") and not ed.dtype_is_float("bool"))
check.raises("'float' is not a dtype", ed.dtype_size, "float")
check.raises("can't be split", six.split, six, 2, {axis = 2})
ed.memory_set_cache_limit(1 << 20)
ed.memory_reset_peak()
assert(ed.memory_trim() >= 0 and ed.memory().peak_bytes >= ed.memory().live_bytes)
ed.memory_set_cache_limit(1 << 30)

-- CSV files.
local csv = os.tmpname()
local function write_csv(text)
    local f = assert(io.open(csv, "w"))
    f:write(text)
    f:close()
end
write_csv('age,"a, b",job\n1,2.5,x\n3,NA,y\n')
local table_, names = ed.read_csv(csv, {columns = {"a, b", "age"}, missing = -1})
check.near(table_, {{2.5, 1}, {-1, 3}})
check.list(names, {"a, b", "age"})
check.near(ed.read_csv(csv, {columns = "age", dtype = "int64"}), {{1}, {3}})
check.raises('line 2: column "job": "x" is not a number', ed.read_csv, csv)
check.raises("2.5 is no value of bool", ed.read_csv, csv, {columns = {"a, b"}, dtype = "bool"})
check.raises("no value; int32 has no NaN, so set missing = 0", function()
    write_csv("n\n1\nNA\n")
    ed.read_csv(csv, {dtype = "int32"})
end)
write_csv("age,job,town\n1,baker,Elm\n2,clerk,Aar\n3,baker,\n")
local jobs, towns = ed.read_csv_words(csv, {columns = {"job", "town"}})
check.list(jobs, {"baker", "clerk", "baker"})
check.list(towns, {"Elm", "Aar", ""})
check.list(ed.vocabulary(jobs), {"baker", "clerk"})
check.list(ed.vocabulary(jobs, {max_tokens = 1}), {"baker"})
check.near(ed.string_lookup({"clerk", "x", "baker"}, ed.vocabulary(jobs)), {2, 0, 1})
check.near(ed.string_lookup("clerk", {"baker", "clerk"}, {num_oov_indices = 0}), {1})
check.list(ed.split_words("The Cat, sat."), {"the", "cat", "sat"})
check.raises('the vocabulary has no "x"', ed.string_lookup, "x", {"y"}, {num_oov_indices = 0})
check.raises("words must be strings", ed.vocabulary, {1})
check.raises('has no column "jobs"', ed.read_csv_words, csv, {columns = "jobs"})
write_csv("age,job\n1,x\n")
check.raises('has no column "aeg"; did you mean "age"?', ed.read_csv, csv, {columns = "aeg"})
check.raises("columns[1] is no string", ed.read_csv, csv, {columns = {3}})
check.raises("there is no option column; there are columns", ed.read_csv, csv, {column = "age"})
os.remove(csv)
