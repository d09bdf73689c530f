-- Digits to learn from: MNIST's from a folder that has its files, or else these, made here from the
-- letters of a display of 5 x 7 dots, somewhere in the image, faint or strong, with noise.
local ed = require "eddy"
local digits = {}

local dots = {
    "01110 10001 10011 10101 11001 10001 01110", "00100 01100 00100 00100 00100 00100 01110",
    "01110 10001 00001 00010 00100 01000 11111", "11111 00010 00100 00010 00001 10001 01110",
    "00010 00110 01010 10010 11111 00010 00010", "11111 10000 11110 00001 00001 10001 01110",
    "00110 01000 10000 11110 10001 10001 01110", "11111 00001 00010 00100 01000 01000 01000",
    "01110 10001 10001 01110 10001 10001 01110", "01110 10001 10001 01111 00001 00010 01100",
}

-- The digit as [21, 15]: every dot becomes 3 x 3 pixels.
local function large(digit)
    local bits = {}
    for bit in dots[digit + 1]:gmatch("[01]") do bits[#bits + 1] = tonumber(bit) end
    local grid = ed.tensor(bits, "float32"):reshape{7, 1, 5, 1}
    return (grid * ed.ones{1, 3, 1, 3}):reshape{21, 15}
end

-- Every digit at every place from the middle by at most shift: [10 * places, 28, 28].
local function every_place(shift)
    local images = {}
    for digit = 0, 9 do
        local image = large(digit)
        for top = 3 - math.min(3, shift), 3 + math.min(4, shift) do
            for left = 6 - math.min(4, shift), 6 + math.min(5, shift) do
                images[#images + 1] = image:pad{before = {top, left}, after = {7 - top, 13 - left}}
            end
        end
    end
    return ed.tensor(images)
end

-- n images [n, 28, 28] from 0 to 1, and their digits [n]. Options: noise, its standard deviation;
-- shift, by how many pixels at most they are away from the middle.
function digits.draw(n, options)
    local images = every_place(options and options.shift or 5)
    local which = ed.random.uniform({n}, {high = #images, dtype = "int32"})
    local strength = ed.random.uniform({n, 1, 1}, {low = 0.3, high = 1})
    local noise = ed.random.normal({n, 28, 28}, {stddev = options and options.noise or 0.25})
    local x = (images:gather(which) * strength + noise):clip{low = 0, high = 1}
    return x, (which // (#images // 10)):cast("int32")
end

-- The datasets to train with and to test with: MNIST, if a folder is given, or n digits drawn here.
function digits.sets(folder, n, batch)
    if folder then
        return ed.mnist("train", {dir = folder, batch = batch, shuffle = true}),
            ed.mnist("test", {dir = folder, batch = 1000})
    end
    local x, y = digits.draw(n)
    local test_x, test_y = digits.draw(n // 4)
    return ed.dataset(x, y, {batch = batch, shuffle = true}),
        ed.dataset(test_x, test_y, {batch = 500})
end

return digits
