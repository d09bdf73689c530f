-- What can stand for a tensor: numbers, tables, and what of them is refused.
local ed = require "eddy"
local check = require "check"
local raises = check.raises

local function is(x, dtype, numbers)
    check.equal(x.dtype, dtype)
    check.near(x, numbers)
end

-- Tables that contain themselves, or are too deep.
local x = ed.ones {2}
local own = {x}
own[2] = own
raises("more than 8 deep", ed.tensor, own)
raises("more than 8 deep", ed.checkpoint, {a = own})
local numbers = {}
numbers[1] = numbers
raises("more than 8 deep", ed.tensor, numbers)
is(ed.tensor {{x, x}, {x, x}}, "float32", {1, 1, 1, 1, 1, 1, 1, 1})

-- A number is what it was, or is refused.
raises("element [1] is 300, which can't be an element of uint8", ed.tensor, {300}, "uint8")
raises("element [1] is -1, which can't be", ed.tensor, {-1}, "uint8")
raises("element [2][1] is 1099511627776, which can't", ed.tensor, {{1}, {1 << 40}}, "int32")
raises("3000000000, which can't be an element of int32", ed.tensor, {3000000000}, "int32")
raises("1.5, which can't", ed.tensor, {1, 1.5}, "int64")
raises("nan, which can't", ed.tensor, {0 / 0}, "int32")
raises("9.2233720368548e+18", ed.tensor, {2 ^ 63}, "int64")
raises("1.844674407371e+19", ed.tensor, {2 ^ 64}, "uint64")
raises("-1, which can't", ed.tensor, {-1}, "uint64")
raises("2, which can't be an element of bool", ed.tensor, {2}, "bool")
is(ed.tensor({1.0, 2.0}, "int32"), "int32", {1, 2})
is(ed.tensor({2 ^ 31}, "int64"), "int64", {1 << 31})
is(ed.tensor({math.maxinteger, math.mininteger}, "int64"), "int64", {math.maxinteger, math.mininteger})
is(ed.tensor({math.maxinteger, 2 ^ 63}, "uint64"), "uint64", {math.maxinteger, 2 ^ 63})
is(ed.tensor({1, 0}, "bool"), "bool", {true, false})
is(ed.tensor {{}}, "float32", {})

-- Holes, mixtures, uneven tables.
raises("some are nil", ed.tensor, {1, nil, 3})
raises("element [3], but not all", ed.tensor, {[1] = 1, [3] = 2})
raises("2.5 as a key", ed.tensor, {1, [2.5] = 2})
raises("the name 'a' among the numbers of element [1]", ed.tensor, {{1, a = 2}})
raises("element [2] is the text 'a'", ed.tensor, {1, "a"})
raises("numbers and booleans", ed.tensor, {1, true})
raises("element [2] is 2; a table of 1 elements", ed.tensor, {{1}, 2})
raises("element [2] has 2 elements; 1 are expected", ed.tensor, {{1}, {2, 3}})
raises("element [2][1] is a table; a number", ed.tensor, {{1}, {{2}}})
