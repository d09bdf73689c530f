-- A small network that reads digits, saved after every epoch: stopped and run again, it goes on.
--
--     eddy examples/lua/mnist_mlp.lua [folder of MNIST's files, or "small"] [folder to save in]
--
-- Without a folder it makes its own digits (digits.lua), which are less varied than people's.
local ed = require "eddy"
package.path = arg[0]:match("^(.-)[^/]*$") .. "?.lua;" .. package.path
local digits = require "digits"
ed.set_seed(1)

local small = arg[1] == "small"
local train, test = digits.sets(not small and arg[1] or nil, small and 2000 or 8000, 32)
local folder = arg[2] or (arg[1] and "save/lua_mnist" or "save/lua_drawn")
local epochs = small and 1 or 5

local model = ed.sequential{
    ed.flatten(), ed.dense(128, {activation = "relu"}), ed.layers.dropout(0.2), ed.dense(10),
}
local adam = ed.adam()
local state = {epoch = 0}
local checkpoint = ed.checkpoint{
    model = model, optimizer = adam, data = train, state = state, random = ed.default_generator(),
}
local manager = ed.checkpoint_manager(checkpoint, folder, {max_to_keep = 2})

local function train_epoch()
    local loss, accuracy = ed.metrics.mean(), ed.sparse_categorical_accuracy()
    for x, y in train:batches() do
        local tape = ed.tape()
        local logits = model(x, {training = true})
        local cost = ed.sparse_softmax_cross_entropy(y, logits):mean()
        adam:minimize(tape, cost, model)
        loss:update(cost)
        accuracy:compare(y, logits)
    end
    return loss:result(), accuracy:result()
end

local function test_accuracy()
    local accuracy = ed.sparse_categorical_accuracy()
    for x, y in test:batches() do accuracy:compare(y, model(x)) end
    return accuracy:result()
end

local restored = manager:restore_or_initialize()
if restored then print("goes on from " .. restored) end
while state.epoch < epochs do
    state.epoch = state.epoch + 1
    print(("epoch %d: loss %.4f, accuracy %.4f"):format(state.epoch, train_epoch()))
    manager:save()
end
print(("accuracy on %d other digits: %.2f %%"):format(test:rows(), 100 * test_accuracy()))
print(model:summary())
