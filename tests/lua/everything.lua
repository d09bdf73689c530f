-- A bit of everything, for memory to be refused in the middle of it.
local Scale = ed.layer{
    name = "scale",
    init = function(self, factor)
        self.factor, self.me = factor, self
        self.shift, self.parts = ed.variable(0.0), {ed.layers.activation(ed.relu6)}
    end,
    build = function(self, x)
        self.gain = self:weight("gain", {x.shape[x.rank]}, {initializer = "ones"})
    end,
    forward = function(self, x) return x * self.gain * self.factor + self.me.shift end,
}

local generator = ed.generator(7)
local x = ed.random.normal{6, 4, generator = generator}
local y = ed.tensor({0, 1, 2, 0, 1, 2}, "int32")
local model = ed.sequential{
    Scale(0.5),
    ed.dense(5, {activation = "relu", kernel_initializer = ed.initializers.he_normal{generator = generator}}),
    ed.dense(3),
    name = "model",
}
local adam = ed.adam{learning_rate = 0.01, global_clipnorm = 1}
local data = ed.dataset(x, y, {batch = 4, shuffle = true, seed = 3})
local accuracy = ed.sparse_categorical_accuracy()
local state = {epoch = 0, best = 0.5}

for bx, by in data:batches() do
    local tape, loss = ed.tape(function()
        return ed.sparse_softmax_cross_entropy(by, model(bx, {training = true})):mean()
    end)
    adam:minimize(tape, loss, model)
    accuracy:compare(by, model(bx))
end
collectgarbage() -- the model's part has no other userdata now
assert(model[1].me == model[1] and #model[1] == 1)
for bx in data:map(function(bx, by) return bx * 2, by end):batches() do break end
state.epoch = state.epoch + 1
local half = ed.custom_gradient(function(a) return a / 2 end, function(dy) return dy / 2 end)
ed.grad(function(a) return (half(a) ^ 2):sum() end)(x)
local clipped, norm = ed.clip_by_global_norm({x, nil, x}, 1)
local text = tostring(norm) .. tostring(model) .. model:summary() .. #ed.split(x, 2)

local image = ed.input{4}
local graph = ed.model(image, Scale(2)(ed.dense(3)(image)) + 1)
text = text .. tostring(graph(x)) .. #ed.model(graph:inputs(), graph:values("dense"))

local sparse, empty = ed.sparse_concat{ed.sparse_eye(2), ed.sparse_eye(3), axis = 2, expand_nonconcat_dims = true}:fill_empty_rows(1)
text = text .. tostring(sparse + sparse * 2) .. #ed.embedding_lookup_sparse({x, x}, sparse:with_values{0, 7, 1, 2, 0}) .. #empty

ed.save(folder .. "/a.npz", {x = x, y = {1, 2, 3}})
local loaded = ed.load(folder .. "/a.npz")
for name, tensor in pairs(ed.archive(folder .. "/a.npz")) do text = text .. name .. #tensor end

local checkpoint = ed.checkpoint{model = model, optimizer = adam, data = data, state = state,
                                 accuracy = accuracy, list = model:variables()}
local manager = ed.checkpoint_manager(checkpoint, folder .. "/kept", {max_to_keep = 2})
if not manager:restore_or_initialize() then manager:save{metric = 1} end
state.epoch = 5
local restoration = checkpoint:restore(manager.latest, {only = {"*"}, skip = "list*"})
text = text .. tostring(restoration) .. #restoration:restored() .. #manager.checkpoints
assert(state.epoch == 1)
