local check = require "check"
local path = folder .. "/file"
local x, y = ed.tensor{{1.5, 2}, {3, 4}}, ed.tensor({1, 2, 3}, "int64")

-- One tensor.
ed.write_npy(path .. ".npy", x:transpose())
local back = ed.read_npy(path .. ".npy")
check.near(back, {{1.5, 3}, {2, 4}})
check.equal(back.dtype, "float32")
check.near(ed.load(path .. ".npy")[""], back)
check.raises("file not found", ed.read_npy, folder .. "/none.npy")
check.raises("read_npy: path is missing", ed.read_npy)
check.raises("read_npy: path is a tensor", ed.read_npy, x)
check.raises("zero byte", ed.write_npy, "a\0b", x)
check.raises("string expected, got number", ed.write_npy, 3, x)
check.raises("zero byte", ed.read_npy, path .. ".npy\0")

-- Archives of both kinds.
for _, format in ipairs{"npz", "safetensors"} do
    local file = path .. "." .. format
    local function write(file, tensors) ed.save(file, tensors) end
    write(file, {x = x, ["a/b"] = y, names = {1, 2}})
    local tensors, others = ed.load(file)
    check.near(tensors.x, x)
    check.equal(tensors["a/b"].dtype, "int64")
    check.near(tensors.names, {1, 2})
    check.equal(next(others), nil)

    local archive = ed.archive(file)
    check.equal(archive:format(), format)
    check.equal(#archive, 3)
    local names = archive:names()
    table.sort(names)
    check.list(names, {"a/b", "names", "x"})
    check.near(archive.x, x)
    check.near(archive["a/b"], y)
    check.near(archive:tensor("names"), {1, 2}) -- a method has the name
    local at = archive:find("x")
    check.equal(archive:name(at), "x")
    check.near(archive[at], x)
    check.near(archive[-1], archive[3])
    check.equal(archive:find("nobody"), nil)
    check.equal(archive:dtype("x"), "float32")
    check.list(archive:shape("x"), {2, 2})
    check.equal(archive:bytes(at), 16)
    check.equal(#archive:digest("x"), 32)
    check.equal(archive:verify("x"), true)
    local seen = 0
    for name, tensor in pairs(archive) do
        check.near(tensor, tensors[name])
        seen = seen + 1
    end
    check.equal(seen, 3)
    check.raises("the archive has no tensor 'nobody'", function() return archive.nobody end)
    check.raises("index 4 is out of bounds", function() return archive[4] end)
    check.raises("index 0 is out of bounds", function() return archive[0] end)
    check.equal(archive:metadata("nothing"), nil)

    -- The same tensors are the same file.
    local function bytes()
        local f = assert(io.open(file, "rb"))
        local content = f:read("a")
        f:close()
        return content
    end
    local before = bytes()
    write(file, {["a/b"] = y, names = {1, 2}, x = x})
    assert(bytes() == before)

    -- Damage is found, and said.
    local content = bytes()
    local where = content:find(string.pack("<f", 1.5), 1, true)
    local f = assert(io.open(file, "wb"))
    f:write(content:sub(1, where - 1), "zzzz", content:sub(where + 4))
    f:close()
    if format == "npz" then
        local fine, why = ed.archive(file):verify("x")
        assert(not fine and why:find(file, 1, true), why)
        check.raises(file, ed.load, file)
    end
end

-- What finalizers add to a table while it is written stays outside, or is in the file.
for i = 1, 100 do
    local tables = {a = x}
    setmetatable({}, {__gc = function() for k = 1, 100 do tables["k" .. k] = x end end})
    for _ = 1, i do local garbage = {} end
    collectgarbage("step", 1)
    ed.save(path, tables, {format = "npz"})
    assert(ed.load(path).a)
end
check.raises("save: keys must be strings, got 1", ed.save, path, {x})
check.raises("contains a zero byte", ed.save, path .. ".npz", {["a\0"] = x})
check.raises("a tensor, a number", ed.save, path .. ".npz", {a = print})
check.raises("bad argument", ed.save, path .. ".npz", x)
check.raises("archive", ed.archive, folder)
check.raises({"the format is not known from the ending: set format to one of ", "npz"}, ed.save, path .. ".bin", {a = x})
check.raises({"unknown format 'zip': must be one of ", "npz"}, ed.save, path, {a = x}, {format = "zip"})
check.raises("format npy holds one tensor, got 2", ed.save, path .. ".npy", {a = x, b = y})
check.raises("save", ed.save, path .. ".npz", {a = x}, {level = 9})
ed.save(path .. ".npy", {anything = y})
check.near(ed.load(path .. ".npy")[""], y)
ed.save(folder .. "/saved", {["a/b"] = x}, {format = "bundle"})
check.near(ed.load(folder .. "/saved")["a/b"], x)
ed.save(folder .. "/other.index", {["a/b"] = x})
check.near(ed.load(folder .. "/other")["a/b"], x)

-- Tensors stay when their file's object is gone.
local kept
do
    ed.save(path, {a = ed.range(0, 1000)}, {format = "safetensors"})
    kept = ed.archive(path).a
end
collectgarbage()
collectgarbage()
check.equal(kept:sum():item(), 499500)

-- A closed archive is an error, not a crash.
local closed = ed.archive(path)
do local a <close> = closed end
check.raises("the archive was closed", function() return closed:names() end)
check.raises("bad argument #1 to 'for iterator' (the archive was closed)", function()
    local file = ed.archive(path)
    for _ in pairs(file) do local a <close> = file end
end)

-- A bundle: what no tensor can be is named apart.
ed.checkpoint{v = ed.variable(2.5)}:write(folder .. "/bundle")
local tensors, others = ed.load(folder .. "/bundle")
check.equal(tensors["v/.ATTRIBUTES/VARIABLE_VALUE"]:item(), 2.5)
check.equal(others._CHECKPOINTABLE_OBJECT_GRAPH, "string")

-- Comparing: close tensors, golden files.
assert(ed.all_close({1, 2}, {1, 2 + 1e-6}))
local close, why = ed.all_close({1, 2}, {1, 3}, {rtol = 0, atol = 0.5})
assert(not close and why:find("1 of 2 elements differ", 1, true) and why:find("at [2]", 1, true), why)
check.raises("all_close: rtol must be >= 0", ed.all_close, 1, 1, {rtol = -1})
check.raises("EDDY_GOLDEN=write", ed.golden_check, folder .. "/none.npy", x)
ed.write_npy(path .. "_golden.npy", x)
assert(ed.golden_check(path .. "_golden.npy", x))
assert(not ed.golden_check(path .. "_golden.npy", x + 1))
