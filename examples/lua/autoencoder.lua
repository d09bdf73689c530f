-- Digits through a bottleneck of 32 numbers and back: the network learns to give its input without
-- the noise. Writes an image with examples above and its answers below.
--
--     eddy examples/lua/autoencoder.lua [steps or "small"] [file.png]
local ed = require "eddy"
package.path = arg[0]:match("^(.-)[^/]*$") .. "?.lua;" .. package.path
local digits = require "digits"
ed.set_seed(1)
local steps = arg[1] == "small" and 100 or tonumber(arg[1] or 1000)
local file = arg[2] or "autoencoder.png"

local encoder = ed.sequential{ed.flatten(), ed.dense(128, {activation = "relu"}), ed.dense(32)}
local decoder = ed.sequential{ed.dense(128, {activation = "relu"}), ed.dense(28 * 28)}
local adam = ed.adam{learning_rate = 2e-3}

local function answer(x) return decoder(encoder(x)):reshape{-1, 28, 28} end

local clean = digits.draw(4000, {noise = 0})
local train = ed.dataset(clean, clean, {batch = 64, shuffle = true})

local function noisy(x) return (x + ed.random.normal(x.shape, {stddev = 0.25})):clip{low = 0, high = 1} end

local step = 0
while step < steps do
    for x in train:batches() do
        step = step + 1
        local tape = ed.tape()
        local loss = ed.sigmoid_cross_entropy(x, answer(noisy(x))):mean()
        adam:minimize(tape, loss, tape:watched())
        if step % (steps // 5) == 0 then print(("step %d: loss %.4f"):format(step, loss:item())) end
        if step == steps then break end
    end
end

local x = digits.draw(10, {noise = 0})
local seen = noisy(x)
local said = answer(seen):sigmoid()
print(("mean squared error: of the noise %.4f, of the answers %.4f"):format(
    ((seen - x) ^ 2):mean():item(), ((said - x) ^ 2):mean():item()))

-- [10, 28, 28] side by side: [28, 280].
local function row(images) return images:transpose{2, 1, 3}:reshape{28, -1} end
ed.imshow(ed.concat({row(seen), row(said)}, {axis = 1}), {file = file, width = 840})
print("written to " .. file)
