-- Names that are not there are errors that tell what might be meant; comparisons say what to write.
local x = ed.ones{2, 3}

local function refused(f, expected)
    local fine, message = pcall(f)
    assert(not fine, expected)
    assert(message:find("suggest.lua:%d+: "), message)
    assert(message:find(expected, 1, true), message .. "\n" .. expected)
end

-- of the module
refused(function() return ed.softmx end, "there is no ed.softmx; did you mean ed.softmax?")
refused(function() return ed.adma() end, "there is no ed.adma; did you mean ed.adam, ed.adamax or ed.adamw?")
refused(function() return ed.random.nomal end, "there is no ed.random.nomal; did you mean ed.random.normal?")
refused(function() return ed.xyzzyx end, "there is no ed.xyzzyx")
refused(function() return ed[3] end, "there is no ed.3")

-- of objects
refused(function() return x:reshap{6} end, "a tensor has no field or method 'reshap'; did you mean x:reshape?")
refused(function() return x.shap end, "; did you mean x.shape?")
refused(function() return ed.dense(1):sumary() end, "a layer has no field or method 'sumary'; did you mean layer:summary?")
refused(function() return ed.adam().iteration end, "; did you mean optimizer.iterations?")
refused(function() return x.qwertz end, "a tensor has no field or method 'qwertz'")

-- other libraries' words, and what is near one of them
refused(function() return ed.clamp end, "there is no ed.clamp; Eddy has ed.clip")
refused(function() return x:clamp(0, 1) end, "; Eddy has x:clip")
refused(function() return x.T end, "; Eddy has x:transpose")
refused(function() return x.ndim end, "; Eddy has x.rank")
refused(function() return ed.ndim end, "; Eddy has x.rank")
refused(function() return ed.arange(3) end, "; Eddy has ed.range")
refused(function() return ed.randn(3) end, "; Eddy has ed.random.normal(shape)")
refused(function() return ed.nrom(x) end, "there is no ed.nrom; did you mean ed.norm")
refused(function() return x:Detach() end, "; Eddy has x:stop_gradient")
refused(function() return ed.totable(x) end, "; Eddy has x:totable")
refused(function() return ed.no_grad end, "; not needed: only ops inside a tape are recorded")

-- every word that is suggested is there
local source <close> = assert(io.open "lua/suggest.lua")
local dictionary, words = source:read("a"):match("dictionary = %[%[\n(.-)%]%]"), 0
for theirs in dictionary:gmatch("([^\n]-): [^\n]*\n") do
    for name in theirs:gmatch("[^:%s]+") do
        if rawget(ed, name) == nil then
            local _, message = pcall(function() return ed[name] end)
            assert(message:find("; Eddy has ", 1, true) or message:find("; not needed", 1, true), message)
            words = words + 1
        end
    end
end
assert(words > 100)

-- a program may ask what there is
assert(rawget(ed, "clamp") == nil and rawget(ed, "clip") == ed.clip)
assert(ed.names(x).clamp == nil and ed.names(x).clip == "method")
ed.clamp = ed.clip
assert(ed.clamp(x, 0, 0.5):max():item() == 0.5)
ed.clamp = nil

-- Lua's comparisons
local y = ed.zeros{2, 3}
refused(function() return x > 3 end, "element by element, use x:greater(3)")
refused(function() return x < 3 end, "use x:less(3)")
refused(function() return 3 >= x end, "use x:less_equal(3)")
refused(function() return x <= y end, "use x:less_equal(y)")
