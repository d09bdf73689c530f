-- A convolutional network that reads digits; shows how sure it is of some.
--
--     eddy examples/lua/mnist_cnn.lua [folder of MNIST's files, or "small"]
--
-- Without a folder it makes its own digits (digits.lua).
local ed = require "eddy"
package.path = arg[0]:match("^(.-)[^/]*$") .. "?.lua;" .. package.path
local digits = require "digits"
ed.set_seed(1)

local small = arg[1] == "small"
local train, test = digits.sets(not small and arg[1] or nil, small and 2000 or 8000, 50)
local epochs = small and 1 or 3

local model = ed.sequential{
    ed.layers.conv2d(8, {5, 5}, {strides = {2, 2}, use_bias = false, padding = "SAME"}),
    ed.batch_normalization{momentum = 0.9}, ed.layers.activation("relu"),
    ed.layers.conv2d(16, {3, 3}, {activation = "relu"}), ed.layers.max_pooling2d(),
    ed.flatten(), ed.dense(10),
}
local adam = ed.adam{learning_rate = 2e-3}

local function image(x) return x:expand_dims{axis = -1} end -- [n, 28, 28, 1]

for epoch = 1, epochs do
    local loss, start = ed.metrics.mean(), os.clock()
    for x, y in train:batches() do
        local tape = ed.tape()
        local cost = ed.sparse_softmax_cross_entropy(y, model(image(x), {training = true})):mean()
        adam:minimize(tape, cost, model)
        loss:update(cost)
    end
    print(("epoch %d: loss %.4f, %.0f images/s"):format(epoch, loss:result(),
        train:rows() / (os.clock() - start)))
end

local accuracy = ed.sparse_categorical_accuracy()
for x, y in test:batches() do accuracy:compare(y, model(image(x))) end
print(("accuracy on %d other digits: %.2f %%"):format(test:rows(), 100 * accuracy:result()))

local x, y = test:next()
local says = model(image(x[{{1, 5}}])):softmax()
for i, row in pairs(says) do
    print(("a %d: it says %d (%.1f %%)"):format(y[i]:item(), row:argmax():item(), 100 * row:max():item()))
end
