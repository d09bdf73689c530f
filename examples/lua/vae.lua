-- A variational autoencoder (Kingma and Welling, 2013): the encoder gives for each digit a normal
-- distribution of a few numbers, the decoder makes an image of numbers drawn from it. Numbers drawn
-- from the standard normal distribution then make digits that nobody drew.
--
--     eddy examples/lua/vae.lua ["small"] [file.png]
local ed = require "eddy"
package.path = arg[0]:match("^(.-)[^/]*$") .. "?.lua;" .. package.path
local digits = require "digits"
ed.set_seed(1)
local small, file = arg[1] == "small", arg[2] or "vae.png"
local NUMBERS, PIXELS = 8, 28 * 28

-- (mean, log of the variance) -> numbers drawn; what the distributions differ from the standard
-- normal one (Kullback-Leibler divergence) is added to the loss, by pixel as the loss is.
local Draw = ed.layer{
    name = "draw",
    forward = function(self, mean, log_variance)
        local divergence = (mean ^ 2 + log_variance:exp() - log_variance - 1):sum{axis = 2} / 2
        self:add_loss(divergence:mean() / PIXELS)
        return mean + (log_variance / 2):exp() * ed.random.normal(mean.shape)
    end,
}

local image = ed.input{PIXELS}
local hidden = ed.dense(256, {activation = "relu"})(image)
local mean, log_variance = ed.dense(NUMBERS)(hidden), ed.dense(NUMBERS)(hidden)
local decoder = ed.sequential{
    ed.dense(256, {activation = "relu"}), ed.dense(PIXELS, {activation = "sigmoid"}), name = "decoder",
}
local model = ed.model(image, decoder(Draw()(mean, log_variance)))

local x = digits.draw(small and 2000 or 10000, {noise = 0}):reshape{-1, PIXELS}
local test = digits.draw(500, {noise = 0}):reshape{-1, PIXELS}
model:compile{optimizer = ed.adam(2e-3), loss = "binary_crossentropy"}
local history = model:fit(x, x, {epochs = small and 10 or 40, batch_size = 64, verbose = small and 0 or 2})
print(("loss %.4f, after the first epoch %.4f"):format(history.loss[history.epochs], history.loss[1]))

-- The mean squared difference of images from the closest one that was trained with.
local function distance(images)
    local products = images:matmul(x, {transpose_b = true})
    local squares = (images ^ 2):sum{axis = 2, keepdims = true} - 2 * products + (x ^ 2):sum{axis = 2}
    return squares:min{axis = 2}:mean():item() / PIXELS
end
local answers = ((model:predict(test) - test) ^ 2):mean():item()
local made = decoder(ed.random.normal{64, NUMBERS})
print(("mean squared error of images that come back: %.4f, of their mean: %.4f"):format(
    answers, test:variance{axis = 1}:mean():item()))
local strange = distance(made)
print(("made images: %.4f from the closest digit"):format(strange))

-- 64 images [64, 784] in 8 rows: [224, 224].
local grid = made:reshape{8, 8, 28, 28}:transpose{1, 3, 2, 4}:reshape{8 * 28, 8 * 28}
ed.write_png(file, grid)
print("written to " .. file)
assert(answers < (small and 0.04 or 0.012) and strange < 0.03)
