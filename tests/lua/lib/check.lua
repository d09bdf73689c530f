-- What the tests say of values.
local check = {}

-- The message of the error that f(...) raises, in which the text, or each of a table's, has to be.
function check.raises(texts, f, ...)
    if type(texts) == "string" then texts = {texts} end
    local fine, message = pcall(f, ...)
    if fine then error("no error, where '" .. texts[1] .. "' was expected", 2) end
    message = tostring(message)
    for _, text in ipairs(texts) do
        if text == "" or not message:find(text, 1, true) then
            error("the error is '" .. message .. "', without '" .. text .. "'", 2)
        end
    end
    return message
end

function check.equal(a, b)
    if a ~= b then error(tostring(a) .. " is not " .. tostring(b), 2) end
end

local function flatten(x, into)
    if type(x) ~= "table" then
        into[#into + 1] = x
        return into
    end
    for _, v in ipairs(x) do flatten(v, into) end
    return into
end

local function numbers(x)
    if type(x) == "userdata" then x = x:totable() end
    return flatten(x, {})
end

-- Elements of tensors, tables or numbers, apart by no more than the tolerance (default: equal).
function check.near(a, b, tolerance)
    a, b = numbers(a), numbers(b)
    if #a ~= #b then error(#a .. " elements where there should be " .. #b, 2) end
    for i = 1, #a do
        local same = a[i] == b[i] or
            type(a[i]) == "number" and math.abs(a[i] - b[i]) <= (tolerance or 0)
        if not same then
            error("element " .. i .. " is " .. tostring(a[i]) .. ", not " .. tostring(b[i]), 2)
        end
    end
end

-- Shapes and other tables of plain values.
function check.list(a, b)
    local a_text, b_text = table.concat(a, " "), table.concat(b, " ")
    if a_text ~= b_text then error("[" .. a_text .. "] is not [" .. b_text .. "]", 2) end
end

function check.names(objects)
    local names = {}
    for i, object in ipairs(objects) do names[i] = object.name end
    return table.concat(names, " ")
end

return check
