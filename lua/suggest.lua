-- Suggestions for a name that does not exist: Eddy's name for one of PyTorch, NumPy or TensorFlow, else
-- names with a similar spelling. Run at the first such name.
local ed, names_of = ...
local match, gmatch, sub, byte = string.match, string.gmatch, string.sub, string.byte
local concat, sort, min, abs = table.concat, table.sort, math.min, math.abs
local type, ipairs, pairs, rawget = type, ipairs, pairs, rawget

-- "their names: ours". Ours is a name of the module or of a tensor, or an expression.
local dictionary = [[
array asarray as_tensor from_numpy constant convert_to_tensor: tensor
Variable Parameter: variable
arange: range
empty: zeros
empty_like: zeros_like
full_like fill: full
identity: eye
rand uniform: ed.random.uniform(shape)
randn normal: ed.random.normal(shape)
truncated_normal: ed.random.truncated_normal(shape)
randint: ed.random.uniform(shape, {low = 0, high = 10, dtype = "int32"})
randperm permutation: ed.random.permutation(n)
shuffle: ed.random.shuffle(x)
multinomial: ed.random.categorical(logits, n)
bernoulli: ed.random.bernoulli(probs)
choice: ed.random.choice(x, {n})
seed manual_seed set_random_seed: set_seed
clamp clip_by_value: clip
hardtanh: hard_tanh
hardswish hard_swish: hard_silu
hardshrink: hard_shrink
softshrink: soft_shrink
bitwise_not: invert
bitwise_left_shift: left_shift
bitwise_right_shift: right_shift
divide_no_nan: div_no_nan
multiply_no_nan: mul_no_nan
isclose: is_close
gammaln: lgamma
logcumsumexp: cumulative_logsumexp
accumulate_n: add_n
clamp_min: maximum
clamp_max: minimum
add_: assign_add
sub_: assign_sub
copy_: assign
zero_: v:assign(0)
fill_: v:assign(value)
multiply: mul
divide true_divide: div
subtract: sub
floor_divide: floor_div
mod remainder fmod: floor_mod
power: pow
negative: neg
absolute fabs: abs
arcsin: asin
arccos: acos
arctan: atan
arctan2: atan2
arcsinh: asinh
arccosh: acosh
arctanh: atanh
isnan: is_nan
isinf: is_inf
isfinite: is_finite
eq: equal
ne: not_equal
lt: less
le: less_equal
gt: greater
ge: greater_equal
view ravel: reshape
permute T t mT swapaxes moveaxis: transpose
unsqueeze newaxis: expand_dims
cat concatenate hstack vstack: concat
flip fliplr flipud: reverse
expand: broadcast_to
repeat_interleave: repeat_
index_select take embedding: gather
diagonal: diag_part
diag_embed: diag
digitize: bucketize
intersect1d: set_intersection
union1d: set_union
setdiff1d: set_difference
masked_select: x[mask]
masked_fill: where
mm bmm dot: matmul
amax: max
amin: min
var: variance
average: mean
product: prod
numel: size
dim ndim ndims get_shape: rank
astype to: cast
float: x:cast("float32")
double: x:cast("float64")
int: x:cast("int32")
long: x:cast("int64")
half: x:cast("float16")
bool: x:cast("bool")
tolist numpy: totable
detach: stop_gradient
requires_grad requires_grad_: variable
backward: tape:gradient(loss, variables), or ed.value_and_grad(f, variables)
GradientTape: tape
no_grad: not needed: only ops inside a tape are recorded
step: optimizer:apply_gradients(gradients, variables), or optimizer:minimize(tape, loss, variables)
mse_loss mean_squared_error: (a - b):square():mean()
cross_entropy CrossEntropyLoss: sparse_softmax_cross_entropy
binary_cross_entropy_with_logits: sigmoid_cross_entropy
Linear Dense: dense
Sequential: sequential
Module Layer: layer
BatchNorm1d BatchNorm2d BatchNormalization: batch_normalization
Adam AdamW: adam
SGD: sgd
RMSprop: rmsprop
DataLoader TensorDataset: dataset
parameters: layer:variables()
trainable_variables: layer:trainable()
non_trainable_variables: layer:not_trainable()
load_state_dict: layer:load_weights(path)
state_dict: layer:save_weights(path)
zero_grad: not needed: gradients are returned, not accumulated
scatter: ed.plot(x, y, {points = true})
figure subplots: plot
len: #x
]]

local ours = {}
for line in gmatch(dictionary, "[^\n]+") do
    local theirs, word = match(line, "^(.-): (.*)$")
    for name in gmatch(theirs, "%S+") do ours[name] = word end
end

-- The edit distance of a and b: letters changed, added, removed or swapped with their neighbours;
-- `most` + 1 if it is more than `most`.
local function distance(a, b, most)
    if abs(#a - #b) > most then return most + 1 end
    local before, row, last = {}, {}, {}
    for j = 0, #b do row[j] = j end
    for i = 1, #a do
        before, last, row = last, row, before
        row[0] = i
        for j = 1, #b do
            local same = byte(a, i) == byte(b, j)
            row[j] = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (same and 0 or 1))
            if i > 1 and j > 1 and byte(a, i) == byte(b, j - 1) and byte(a, i - 1) == byte(b, j) then
                row[j] = min(row[j], before[j - 2] + 1)
            end
        end
    end
    return row[#b]
end

-- The nearest names of the table, at most three, and the distance of the first.
local function nearest(name, names)
    local most, found = 1 + #name // 4, {}
    for other in pairs(names) do
        if type(other) == "string" and sub(other, 1, 1) ~= "_" then
            local d = name:lower() == other:lower() and 0 or distance(name, other, most)
            if d <= most then found[#found + 1] = {d, other} end
        end
    end
    sort(found, function(a, b)
        if a[1] ~= b[1] then return a[1] < b[1] end
        return a[2] < b[2]
    end)
    local best = found[1] and found[1][1] or most + 1
    for i, one in ipairs(found) do found[i] = i <= 3 and one[2] or nil end
    return found, best
end

-- The name as an expression: "ed.clip", "x:clip", "x.rank"; nil if it does not exist.
local function written(kind, name)
    local names = names_of(kind)
    local owner = kind == "tensor" and "x" or kind
    if names and names[name] then return owner .. (names[name] == "method" and ":" or ".") .. name end
    if rawget(ed, name) ~= nil then return "ed." .. name end
    if not names and names_of "tensor"[name] then return written("tensor", name) end
end

-- Follows the message that `where` ("ed", "ed.random" or a kind of objects) does not have the name; `at`
-- is the table of names if `where` is not a kind.
local suggest
function suggest(where, name, at)
    local word = ours[name]
    if word then
        local here = written(where, word) or not match(word, "^[%w_]+$") and word
        if here then return (match(here, "^not needed") and "; " or "; Eddy has ") .. here end
    end
    local names = names_of(where)
    if not names and written("tensor", name) then return "; Eddy has " .. written("tensor", name) end
    local found, best = nearest(name, names or at)
    local words, nearer = nearest(name, ours)
    if nearer < best and words[1] ~= name then return suggest(where, words[1], at) end
    if #found == 0 then return "" end
    for i, one in ipairs(found) do found[i] = names and written(where, one) or where .. "." .. one end
    return "; did you mean " .. concat(found, ", "):gsub(", ([^,]*)$", " or %1") .. "?"
end

return suggest
