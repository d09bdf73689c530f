-- ed.plot, ed.hist, ed.imshow. In the terminal a character is 2 x 4 dots (braille), eighths of a bar, or
-- two pixels, one above the other; in a file the same is drawn on a canvas of pixels.
local ed, native = ...
local floor, ceil, min, max, abs, huge = math.floor, math.ceil, math.min, math.max, math.abs, math.huge
local log, tointeger = math.log, math.tointeger
local concat, unpack, format, rep, char = table.concat, table.unpack, string.format, string.rep, utf8.char
local type, ipairs, pairs, error, tonumber = type, ipairs, pairs, error, tonumber
local pcall, select, find, match = pcall, select, string.find, string.match

local inks = {34, 31, 32, 33, 35, 36} -- of the terminal
local colours = { -- of a canvas: background, black, grey; then one for each ink
    {255, 255, 255}, {0, 0, 0}, {214, 214, 214},
    {0, 90, 181}, {220, 50, 32}, {0, 135, 90}, {230, 159, 0}, {120, 81, 169}, {0, 158, 170},
}
local GROUND, BLACK, GREY, FIRST = 0, 1, 2, 3

local function inked(text, series, coloured)
    if not coloured or not series then return text end
    return "\27[" .. inks[(series - 1) % #inks + 1] .. "m" .. text .. "\27[0m"
end

-- ---- Errors -------------------------------------------------------------------------------------

-- Raises an error of the arguments; `placed` below adds the line of the call.
local function fail(...) error({text = format(...)}) end

-- ---- Arguments ----------------------------------------------------------------------------------

local function is_tensor(x) return ed.type(x) == "tensor" end

-- "a number", "an optimizer"
local function kind_of(x)
    local kind = ed.type(x) or type(x)
    return (find(kind, "^[aeiou]") and "an " or "a ") .. kind
end

local function numbers(who, x)
    if is_tensor(x) then return x:cast("float64"):reshape{-1}:totable() end
    if type(x) ~= "table" then fail("%s: expected a tensor or a table of numbers, got %s", who, kind_of(x)) end
    for i, v in ipairs(x) do
        if type(v) ~= "number" then fail("%s: element %d must be a number, got %s", who, i, kind_of(v)) end
    end
    return x
end

-- One series, a table of series, or a tensor of rank 2 whose rows are series.
local function series_of(x)
    local list = {}
    if is_tensor(x) and x.rank == 2 then
        for i, row in x:rows() do list[i] = numbers("plot", row) end
    elseif type(x) == "table" and type(x[1]) ~= "number" then
        for i, one in ipairs(x) do list[i] = numbers("plot", one) end
    else
        list[1] = numbers("plot", x)
    end
    return list
end

local function has_names(x)
    if type(x) ~= "table" then return false end
    for key in pairs(x) do
        if type(key) == "string" then return true end
    end
    return false
end

-- The positional arguments, and the options.
local function take(...)
    local given = {...}
    local last = given[#given]
    if not has_names(last) then return given, {} end
    if #last == 0 then given[#given] = nil end
    return given, last
end

local kinds = {title = "string", file = "string", points = "boolean", labels = "table"}
local MOST_COLUMNS, MOST_PIXELS = 1000, 16384

-- Checks that the options are among `names` and have the right types.
local function check(who, o, names)
    for key, value in pairs(o) do
        if type(key) == "string" then
            if not find(" " .. concat(names, " ") .. " ", " " .. key .. " ", 1, true) then
                fail("%s: there is no option %s; the options are %s", who, key, concat(names, ", "))
            end
            if kinds[key] and type(value) ~= kinds[key] then
                fail("%s: %s must be a %s, got %s", who, key, kinds[key], kind_of(value))
            end
        end
    end
    local most = o.file and MOST_PIXELS or MOST_COLUMNS
    for _, key in ipairs{"width", "height"} do
        local value = o[key] == nil or type(o[key]) == "number" and tointeger(o[key])
        if not value or value ~= true and (value < 1 or value > most) then
            fail("%s: %s must be an integer from 1 to %d", who, key, most)
        end
    end
    for i, label in ipairs(o.labels or {}) do
        if type(label) ~= "string" then fail("%s: label %d must be a string, got %s", who, i, kind_of(label)) end
    end
end

-- ---- Scales -------------------------------------------------------------------------------------

local LARGEST = 0x1.fffffffffffffp+1023

local function finite(v) return v == v and v ~= huge and v ~= -huge end

local function range_of(lists)
    local low, high = huge, -huge
    for _, list in ipairs(lists) do
        for _, v in ipairs(list) do
            if finite(v) then low, high = min(low, v), max(high, v) end
        end
    end
    if low > high then return 0, 1 end
    if low == high then
        local room = low == 0 and 1 or max(abs(low) / 2, 1e-300)
        return max(low - room, -LARGEST), min(high + room, LARGEST)
    end
    return low, high
end

-- The position of v from low (0) to high (1), whose difference may overflow.
local function fraction(v, low, high) return (v / 2 - low / 2) / (high / 2 - low / 2) end

-- Round numbers from low to high, at most `most` of them.
local function ticks(low, high, most)
    local rough = max(high / most - low / most, 1e-300)
    local ten = 10.0 ^ floor(log(rough, 10))
    local step = 10 * ten
    for _, k in ipairs{1, 2, 5} do
        if k * ten >= rough then step = k * ten break end
    end
    local list, first = {}, ceil(low / step - 1e-9)
    for i = 0, min(floor(high / step + 1e-9) - first, most) do list[#list + 1] = (first + i) * step end
    return list
end

local function number_text(v)
    local text = format("%.4g", v)
    if #text > 9 then text = format("%.2g", v) end
    return text == "-0" and "0" or text
end

-- Calls visit(column, row) for each pixel of the line from one point to the other.
local function line(x0, y0, x1, y1, visit)
    local steps = max(abs(x1 - x0), abs(y1 - y0), 1)
    for i = 0, steps do
        local t = i / steps
        visit(floor(x0 + (x1 - x0) * t + 0.5), floor(y0 + (y1 - y0) * t + 0.5))
    end
end

-- Calls visit(column, row, series) for each pixel of the curves in an area of width x height pixels.
local function trace(curves, width, height, points, visit)
    for s, y in ipairs(curves.y) do
        local x, was_x, was_y = curves.x[s], nil, nil
        for i = 1, #y do
            local px, py
            if finite(x[i]) and finite(y[i]) then
                px = floor(fraction(x[i], curves.left, curves.right) * (width - 1) + 0.5)
                py = floor(fraction(y[i], curves.top, curves.bottom) * (height - 1) + 0.5)
                local function mark(a, b) visit(a, b, s) end
                if was_x and not points then line(was_x, was_y, px, py, mark) else mark(px, py) end
            end
            was_x, was_y = px, py
        end
    end
end

-- ---- The terminal -------------------------------------------------------------------------------

local dots = {{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}}

local function draw_braille(curves, columns, rows, points)
    local cells, owner = {}, {}
    trace(curves, 2 * columns, 4 * rows, points, function(x, y, s)
        local cell = y // 4 * columns + x // 2
        cells[cell] = (cells[cell] or 0) | dots[x % 2 + 1][y % 4 + 1]
        owner[cell] = s
    end)
    return cells, owner
end

-- What a cell and the frame are drawn with; the second where the terminal is said to lack Unicode.
local marks = {"*", "+", "o", "x", "#", "@"}
local function ascii_mark(s) return marks[(s - 1) % #marks + 1] end
local unicode = {
    cell = function(cell) return char(0x2800 + cell) end, legend = function() return "⣿" end,
    tick = "┤", side = "│", corner = "└", bottom = "─",
}
local ascii = {
    cell = function(_, s) return ascii_mark(s) end, legend = ascii_mark,
    tick = "+", side = "|", corner = "+", bottom = "-",
}

local function print_legend(labels, coloured, pen)
    if not labels then return end
    local parts = {}
    for s, label in ipairs(labels) do parts[s] = inked(pen.legend(s) .. " " .. label, s, coloured) end
    print(rep(" ", 11) .. concat(parts, "   "))
end

local function print_curves(curves, o)
    local most_columns = native.size()
    local columns, rows = o.width or max(min(72, most_columns - 12), 10), o.height or 16
    local coloured, pen = native.coloured(), native.unicode() and unicode or ascii
    local cells, owner = draw_braille(curves, columns, rows, o.points)
    local labels = {}
    for _, v in ipairs(ticks(curves.bottom, curves.top, max(rows // 3, 2))) do
        labels[floor(fraction(v, curves.top, curves.bottom) * (4 * rows - 1) + 0.5) // 4] = number_text(v)
    end
    if o.title then print(rep(" ", 11) .. o.title) end
    for row = 0, rows - 1 do
        local parts = {format("%9s %s", labels[row] or "", labels[row] and pen.tick or pen.side)}
        for column = 0, columns - 1 do
            local cell = row * columns + column
            parts[#parts + 1] = cells[cell] and inked(pen.cell(cells[cell], owner[cell]), owner[cell], coloured) or " "
        end
        print((concat(parts):gsub(" +$", "")))
    end
    print(rep(" ", 10) .. pen.corner .. rep(pen.bottom, columns))
    local left, right = number_text(curves.left), number_text(curves.right)
    print(rep(" ", 11) .. left .. rep(" ", max(columns - #left - #right, 1)) .. right)
    print_legend(o.labels, coloured, pen)
end

-- ---- The canvas ---------------------------------------------------------------------------------

-- Rows of colour numbers, each from index 1.
local function canvas(width, height)
    local rows = {}
    for y = 1, height do
        local row = {}
        for x = 1, width do row[x] = GROUND end
        rows[y] = row
    end
    return rows
end

local function box(rows, x, y, width, height, colour)
    for j = max(y, 1), min(y + height - 1, #rows) do
        local row = rows[j]
        for i = max(x, 1), min(x + width - 1, #row) do row[i] = colour end
    end
end

-- Letters of 3 x 5 dots, drawn as 2 x 2 pixels each: a row is a digit, the leftmost dot counts 4.
local letters = {
    ["0"] = "75557", ["1"] = "26227", ["2"] = "71747", ["3"] = "71717", ["4"] = "55711", ["5"] = "74717",
    ["6"] = "74757", ["7"] = "71222", ["8"] = "75757", ["9"] = "75717", ["."] = "00002", ["-"] = "00700",
    ["+"] = "02720", ["="] = "07070", ["/"] = "11244", [":"] = "02020", ["_"] = "00007", ["("] = "12221",
    [")"] = "42224", [","] = "00024", ["%"] = "51245", ["["] = "64446", ["]"] = "31113", ["*"] = "05250",
    A = "25755", B = "65656", C = "34443", D = "65556", E = "74647", F = "74644", G = "34553", H = "55755",
    I = "72227", J = "11152", K = "55655", L = "44447", M = "57755", N = "57775", O = "25552", P = "65644",
    Q = "25563", R = "65655", S = "34216", T = "72222", U = "55557", V = "55552", W = "55775", X = "55255",
    Y = "55222", Z = "71247",
}

local function write(rows, x, y, text, colour)
    for i = 1, #text do
        local letter = letters[text:sub(i, i):upper()] or "00000"
        for j = 1, 5 do
            local bits = tonumber(letter:sub(j, j))
            for k = 0, 2 do
                if bits & 4 >> k ~= 0 then
                    box(rows, x + 8 * (i - 1) + 2 * k, y + 2 * (j - 1), 2, 2, colour)
                end
            end
        end
    end
end

local function save(rows, path)
    ed.write_png(path, ed.tensor(colours, "uint8"):gather(ed.tensor(rows, "int32")))
end

-- Draws frame, grid, numbers and title; returns the area for the curves.
local function frame(rows, curves, o)
    local width, height = #rows[1], #rows
    local f = {x = 81, y = o.title and 31 or 15, width = width - 101}
    f.height = height - f.y - (o.labels and 49 or 31)
    if f.width < 40 or f.height < 40 then fail("plot: width and height of a file must be at least 160") end
    for _, v in ipairs(ticks(curves.bottom, curves.top, max(f.height // 50, 2))) do
        local y = f.y + floor(fraction(v, curves.top, curves.bottom) * (f.height - 1) + 0.5)
        local text = number_text(v)
        box(rows, f.x, y, f.width, 1, GREY)
        write(rows, f.x - 8 - 8 * #text, y - 5, text, BLACK)
    end
    for _, v in ipairs(ticks(curves.left, curves.right, max(f.width // 90, 2))) do
        local x = f.x + floor(fraction(v, curves.left, curves.right) * (f.width - 1) + 0.5)
        local text = number_text(v)
        box(rows, x, f.y, 1, f.height, GREY)
        write(rows, x - 4 * #text, f.y + f.height + 8, text, BLACK)
    end
    box(rows, f.x, f.y, 1, f.height, BLACK)
    box(rows, f.x, f.y + f.height, f.width, 1, BLACK)
    if o.title then write(rows, f.x, 11, o.title, BLACK) end
    local x = f.x
    for s, label in ipairs(o.labels or {}) do
        box(rows, x, height - 18, 14, 10, FIRST + (s - 1) % #inks)
        write(rows, x + 20, height - 18, label, BLACK)
        x = x + 44 + 8 * #label
    end
    return f
end

local function save_curves(curves, o)
    local rows = canvas(o.width or 640, o.height or 400)
    local f = frame(rows, curves, o)
    local thick = o.points and 3 or 2
    trace(curves, f.width, f.height, o.points, function(x, y, s)
        box(rows, f.x + x - 1, f.y + y - 1, thick, thick, FIRST + (s - 1) % #inks)
    end)
    save(rows, o.file)
end

-- ---- The functions ------------------------------------------------------------------------------

local function plot(...)
    local given, o = take(...)
    if #given == 0 or #given > 2 then fail("plot: expected y, or x and y") end
    check("plot", o, {"title", "width", "height", "points", "labels", "file"})
    local curves = {y = series_of(given[#given]), x = {}}
    local shared = #given == 2 and numbers("plot", given[1])
    for s, y in ipairs(curves.y) do
        local x = shared
        if not x then
            x = {}
            for i = 1, #y do x[i] = i end
        end
        if #x ~= #y then fail("plot: x and y must have the same length: x has %d numbers, y has %d", #x, #y) end
        curves.x[s] = x
    end
    curves.left, curves.right = range_of(curves.x)
    curves.bottom, curves.top = range_of(curves.y)
    if o.file then save_curves(curves, o) else print_curves(curves, o) end
end

local eighths = {[0] = "", "▏", "▎", "▍", "▌", "▋", "▊", "▉"}

-- The lower bound of bar i; that of the first one is the minimum.
local function bound(bars, i)
    local part = i / #bars
    return bars.low * (1 - part) + bars.high * part
end

local function print_bars(bars, o)
    local most, width, coloured = max(1, unpack(bars)), o.width or 50, native.coloured()
    if o.title then print(rep(" ", 11) .. o.title) end
    for i, count in ipairs(bars) do
        local parts = floor(count / most * width * 8 + 0.5)
        local bar = rep("█", parts // 8) .. eighths[parts % 8]
        print(format("%9s │%s %d", number_text(bound(bars, i - 1)), inked(bar, 1, coloured), count))
    end
    print(format("%9s", number_text(bars.high)))
end

local function save_bars(bars, o)
    local rows, n = canvas(o.width or 640, o.height or 400), #bars
    local most = max(1, unpack(bars))
    local f = frame(rows, {left = bars.low, right = bars.high, bottom = 0, top = most}, o)
    for i, count in ipairs(bars) do
        local x0, x1 = f.width * (i - 1) // n, f.width * i // n
        local height = floor(count / most * f.height + 0.5)
        box(rows, f.x + x0 + 1, f.y + f.height - height, x1 - x0 - 1, height, FIRST)
    end
    save(rows, o.file)
end

local function hist(...)
    local given, o = take(...)
    if #given ~= 1 then fail("hist: expected one tensor or table of numbers") end
    check("hist", o, {"bins", "width", "height", "title", "file"})
    local values = numbers("hist", given[1])
    local bins = o.bins == nil and 20 or type(o.bins) == "number" and tointeger(o.bins)
    if not bins or bins < 1 or bins > 200 then fail("hist: bins must be an integer from 1 to 200") end
    local bars, left_out = {}, 0
    bars.low, bars.high = range_of{values}
    for i = 1, bins do bars[i] = 0 end
    for _, v in ipairs(values) do
        if finite(v) then
            local i = min(floor(fraction(v, bars.low, bars.high) * bins) + 1, bins)
            bars[i] = bars[i] + 1
        else
            left_out = left_out + 1
        end
    end
    if o.file then return save_bars(bars, o) end
    print_bars(bars, o)
    if left_out > 0 then print(format("%11s%d are not finite", "", left_out)) end
end

-- The image as float [height, width, channels] from 0 to 1, and the number of elements that are not
-- finite. uint8 is scaled from 0..255, other dtypes from the smallest to the largest finite element.
-- Infinity is as light as the largest, NaN is dark.
local function normalized(image)
    if type(image) == "table" then image = ed.tensor(image) end
    if not is_tensor(image) then fail("imshow: expected a tensor or a table, got %s", kind_of(image)) end
    if image.rank == 2 then image = image:expand_dims{axis = -1} end
    local channels = image.rank == 3 and image.shape[3]
    if channels ~= 1 and channels ~= 3 then
        fail("imshow: the image must be [height, width] or [height, width, 1 or 3], got [%s]", concat(image.shape, ", "))
    end
    if image.size == 0 then fail("imshow: the image is empty") end
    if image.dtype == "uint8" then return image:cast("float32") / 255, 0 end
    local x = image:cast("float64")
    local known = x:is_finite()
    local finite_ones = x[known]
    local left_out = x.size - finite_ones.size
    if finite_ones.size == 0 then return x:greater(0.0):cast("float64"), left_out end
    local low, high = finite_ones:min():item(), finite_ones:max():item()
    if high == low then return x:greater(high):cast("float64"), left_out end
    x = (x / 2 - low / 2) / (high / 2 - low / 2)
    return ed.where(x:equal(x), x, 0.0):clip(0.0, 1.0), left_out
end

-- The terminal's colour of a pixel: one of 24 greys, or of 6 x 6 x 6 colours.
local function code(pixel)
    if #pixel == 1 then
        local grey = floor(pixel[1] * 25 + 0.5)
        return grey == 0 and 16 or grey == 25 and 231 or 231 + grey
    end
    local level = {}
    for i = 1, 3 do level[i] = floor(pixel[i] * 5 + 0.5) end
    return 16 + 36 * level[1] + 6 * level[2] + level[3]
end

local function print_pixels(pixels, height, width)
    for y = 1, height, 2 do
        local parts = {}
        for x = 1, width do
            local below = pixels[y + 1] and format("48;5;%d", code(pixels[y + 1][x])) or "49"
            parts[x] = format("\27[38;5;%d;%sm▀", code(pixels[y][x]), below)
        end
        print(concat(parts) .. "\27[0m")
    end
end

local shades = {"  ", "░░", "▒▒", "▓▓", "██"}

local function print_shades(pixels, height, width)
    for y = 1, height do
        local parts = {}
        for x = 1, width do
            local p = pixels[y][x]
            local light = #p == 1 and p[1] or 0.299 * p[1] + 0.587 * p[2] + 0.114 * p[3]
            parts[x] = shades[min(floor(light * 5), 4) + 1]
        end
        print((concat(parts):gsub(" +$", "")))
    end
end

-- Every k-th row and column, so that they fit; and k.
local function thinned(x, most_rows, most_columns)
    local k = max(ceil(x.shape[1] / most_rows), ceil(x.shape[2] / most_columns), 1)
    return k == 1 and x or x[format("::%d, ::%d", k, k)], k
end

local function enlarged(x, k)
    local h, w, c = unpack(x.shape)
    return x:reshape{h, 1, w, 1, c}:broadcast_to{h, k, w, k, c}:reshape{h * k, w * k, c}
end

-- The numbers of rows and columns of pixels that fit. A width that is given overrides the terminal's.
local function room(o, coloured)
    local columns, rows = native.size()
    local high, wide = coloured and 2 or 1, coloured and 1 or 2
    if o.width then return MOST_COLUMNS, o.width end
    return max((rows - 1) * high, 1), max(columns // wide, 1)
end

local function imshow(...)
    local given, o = take(...)
    if #given ~= 1 then fail("imshow: expected one image") end
    check("imshow", o, {"width", "file"})
    local x, left_out = normalized(given[1])
    if o.file then
        local wanted = o.width or max(x.shape[2], 256)
        return ed.write_png(o.file, enlarged(x, max(wanted // x.shape[2], 1)))
    end
    local coloured = native.coloured()
    local shown, k = thinned(x, room(o, coloured))
    local draw = coloured and print_pixels or print_shades
    draw(shown:totable(), shown.shape[1], shown.shape[2])
    if k > 1 then print(format("  of %d x %d pixels, one in %d each way", x.shape[1], x.shape[2], k)) end
    if left_out > 0 then print(format("  %d elements are not finite", left_out)) end
end

-- ---- Histories ----------------------------------------------------------------------------------

-- The names of a history's values in groups that belong together: a value and that of the validation.
local function groups_of(history)
    local bases, groups = {}, {}
    for name, values in pairs(history) do
        if type(values) == "table" and not find(name, "^val_") then bases[#bases + 1] = name end
    end
    table.sort(bases, function(a, b) return a == "loss" or b ~= "loss" and a < b end)
    for i, base in ipairs(bases) do groups[i] = {base, history["val_" .. base] and "val_" .. base} end
    return groups
end

local function plot_group(history, names, o)
    local curves = {}
    for i, name in ipairs(names) do
        if type(history[name]) ~= "table" then fail("plot: the history has no %s", name) end
        curves[i] = history[name]
    end
    plot(curves, {labels = names, title = o.title, width = o.width, height = o.height or not o.file and 10 or nil,
                  points = o.points, file = o.file})
end

-- Each value with that of the validation; with `names`, or in a file, one plot.
local function plot_history(history, o)
    o = o or {}
    if type(o) ~= "table" then fail("plot: options are a table, got %s", kind_of(o)) end
    check("plot", o, {"names", "title", "width", "height", "points", "file"})
    local groups = type(o.names) == "table" and {o.names} or groups_of(history)
    for i = 1, o.file and 1 or #groups do plot_group(history, groups[i], o) end
end

-- Errors of arguments, and errors with a line of this file, get the line of the call. Other errors keep
-- theirs.
local function placed(f, name, most)
    return function(...)
        native.no_more(name, most, select(most + 1, ...))
        local fine, message = pcall(f, ...)
        if fine then return end
        local text = type(message) == "table" and message.text
        text = text or type(message) == "string" and match(message, "^eddy:%d+: (.*)")
        if text then error(text, 2) end
        error(message, 0)
    end
end

ed.plot, ed.hist = placed(plot, "plot", 3), placed(hist, "hist", 2)
ed.imshow = placed(imshow, "imshow", 2)
native.history.__index = {plot = placed(plot_history, "plot", 2)}
