-- Two networks against each other (Goodfellow et al., 2014): the maker makes images of random numbers,
-- the judge tells them from digits, and each learns from the other.
--
--     eddy examples/lua/gan.lua [steps or "small"] [file.png]
local ed = require "eddy"
package.path = arg[0]:match("^(.-)[^/]*$") .. "?.lua;" .. package.path
local digits = require "digits"
ed.set_seed(1)
local small = arg[1] == "small"
local steps, file = small and 600 or tonumber(arg[1] or 4000), arg[2] or "gan.png"
local NUMBERS, BATCH, PIXELS = 16, 64, 28 * 28
local training = {training = true}

local maker = ed.sequential{
    ed.dense(128, {activation = "relu"}), ed.batch_normalization(0.8),
    ed.dense(PIXELS, {activation = "sigmoid"}), name = "maker",
}
local judge = ed.sequential{
    ed.dense(128), ed.layers.leaky_relu(0.2), ed.layers.dropout(0.3), ed.dense(1), name = "judge",
}
local maker_adam = ed.adam{learning_rate = 1e-3, beta_1 = 0.5}
local judge_adam = ed.adam{learning_rate = 5e-4, beta_1 = 0.5}

local function make(n) return maker(ed.random.normal{n, NUMBERS}, training) end

-- How far the judge is from `answer` for all images: 1, they are digits, or 0, they were made. It sees
-- them through noise, or it would soon know all digits by heart and the maker learn nothing.
local noise = 0.2
local function cost(images, answer)
    local scores = judge(images + ed.random.normal(images.shape, {stddev = noise}), training)
    return ed.sigmoid_cross_entropy(ed.full(scores.shape, answer), scores):mean()
end

local function train_step(real)
    local images = make(#real)
    local tape = ed.tape()
    local judge_loss = cost(real, 0.9) + cost(images, 0.0)
    judge_adam:minimize(tape, judge_loss, judge)

    tape = ed.tape()
    local maker_loss = cost(make(#real), 1.0)
    maker_adam:minimize(tape, maker_loss, maker)
    return judge_loss:item(), maker_loss:item()
end

-- The mean squared difference of images from the closest digit; how many different digits these are.
local x, which = digits.draw(4000, {noise = 0, shift = 0})
x = x:reshape{-1, PIXELS}
local function compare(images)
    local products = images:matmul(x, {transpose_b = true})
    local squares = (images ^ 2):sum{axis = 2, keepdims = true} - 2 * products + (x ^ 2):sum{axis = 2}
    local closest = which:gather(squares:argmin{axis = 2})
    return squares:min{axis = 2}:mean():item() / PIXELS, ed.unique(closest).size
end

local step = 0
local set = ed.dataset(x, which, {batch = BATCH, shuffle = true, drop_remainder = true})
while step < steps do
    for real in set:batches() do
        step = step + 1
        noise = 0.2 - 0.15 * step / steps
        local judge_loss, maker_loss = train_step(real)
        if step % (steps // 5) == 0 then
            print(("step %d: losses of the judge %.3f, of the maker %.3f"):format(
                step, judge_loss, maker_loss))
        end
        if step == steps then break end
    end
end

local images = make(64)
local difference, kinds = compare(images)
print(("made images: %.4f from the closest digit; %d different digits"):format(difference, kinds))
local grid = images:reshape{8, 8, 28, 28}:transpose{1, 3, 2, 4}:reshape{8 * 28, 8 * 28}
ed.write_png(file, grid)
print("written to " .. file)
assert(difference < (small and 0.04 or 0.02) and kinds >= 4)
