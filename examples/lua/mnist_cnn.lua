-- A convolutional network that reads digits, trained by compile and fit; shows how sure it is of some.
--
--     eddy examples/lua/mnist_cnn.lua [folder of MNIST's files, or "small"]
--
-- On MNIST it comes to 99 % in three epochs. Without a folder it makes its own digits (digits.lua).
local ed = require "eddy"
package.path = arg[0]:match("^(.-)[^/]*$") .. "?.lua;" .. package.path
local digits = require "digits"
ed.set_seed(1)

local small = arg[1] == "small"
local folder = not small and arg[1] or nil
local train, test = digits.sets(folder, small and 3000 or 8000, 64)
local epochs = 3

local model = ed.sequential{
    ed.layers.reshape{28, 28, 1},
    ed.layers.conv2d(16, {3, 3}, {activation = "relu"}), ed.layers.max_pooling2d(),
    ed.layers.conv2d(32, {3, 3}, {activation = "relu"}), ed.layers.max_pooling2d(),
    ed.flatten(), ed.dense(128, {activation = "relu"}), ed.layers.dropout(0.3), ed.dense(10),
}
model:compile{
    optimizer = ed.adam{schedule = ed.schedules.cosine_decay(3e-3, epochs * #train, {alpha = 0.02})},
    loss = ed.losses.sparse_categorical_crossentropy{from_logits = true},
    metrics = {"accuracy"},
}

local start = os.time()
local history = model:fit(train, {epochs = epochs, validation_data = test, verbose = small and 0 or 2})
print(("%d epochs in %d s, loss %.4f"):format(#history.loss, os.time() - start, history.loss[epochs]))

local accuracy = model:evaluate(test).accuracy
print(("accuracy on %d other digits: %.2f %%"):format(test:rows(), 100 * accuracy))

test:rewind()
local x, y = test:next()
local says = model:predict(x[{{1, 5}}]):softmax()
for i, row in pairs(says) do
    print(("a %d: it says %d (%.1f %%)"):format(y[i]:item(), row:argmax():item(), 100 * row:max():item()))
end
assert(accuracy >= (folder and 0.988 or small and 0.8 or 0.95))
