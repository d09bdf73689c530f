-- Ranges in all directions, and what lies outside.
local ed = require "eddy"

local x = ed.range(1, 7, 1, {dtype = "int32"}) -- 1 ... 6
local function is(got, wanted)
    got = table.concat(got:totable(), " ")
    assert(got == wanted, ("'%s', not '%s'"):format(got, wanted))
end

is(x["2:4"], "2 3 4")
is(x["4:2:-1"], "4 3 2")
is(x["::-1"], "6 5 4 3 2 1")
is(x["::2"], "1 3 5")
is(x[{{-2, -1}}], "5 6")
is(x[{{-1, 1, -1}}], "6 5 4 3 2 1")
is(x[{{1, -1, 2}}], "1 3 5")
is(x[{{6, 1, -5}}], "6 1")
is(x[{{}}], "1 2 3 4 5 6")

-- Ranges are held within the tensor.
is(x[{{-10, 2}}], "1 2")
is(x[{{5, 99}}], "5 6")
is(x[{{9, 4, -2}}], "6 4")
is(x[{{-10, 1, -1}}], "")
is(x[{{3, 2}}], "")
is(x[{{2, 4, -1}}], "")

-- Places are not.
for _, i in ipairs {0, 7, -7, 1.5, 0 / 0, math.huge, 2 ^ 53} do
    assert(not pcall(function() return x[i] end), tostring(i))
end
for _, key in ipairs {"1:2:0", "0:2", "1:2:3:4", "1,2", "a"} do
    assert(not pcall(function() return x[key] end), key)
end

-- One place takes its axis away, a range keeps it; a mask gives a row.
local m = ed.tensor {{1, 2, 3}, {4, 5, 6}}
assert(m[{2, 3}]:item() == 6 and m[-1][1]:item() == 4)
assert(#m[{{1, 1}, {}}].shape == 2 and #m[{1, {}}].shape == 1)
is(m[{{}, 2}], "2 5")
is(m["2, ::-1"], "6 5 4")
is(m[m:greater(3)], "4 5 6")

-- The rows end wherever the next one is asked for.
local next_row, of = m:rows()
assert(select("#", next_row(of, 2)) == 0 and select("#", next_row(of, math.maxinteger)) == 0)

-- The gradient of a part flows back to that part.
local v = ed.variable {1.0, 2.0, 3.0}
local _, g = ed.value_and_grad(function() return (v[{{2, 3}}] ^ 2):sum() end, v)
is(g, "0.0 4.0 6.0")

-- Variables are written in place.
v[2] = 7
v[{{2, 3}}] = v[{{2, 3}}] * 2
is(v, "1.0 14.0 6.0")
assert(not pcall(function() x[1] = 1 end))
assert(not pcall(function() v[9] = 1 end))
