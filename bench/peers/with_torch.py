"""PyTorch on the workloads of eddy_bench: eager, gradients only where they are asked for, contiguous results."""
import harness
from harness import CALLS, FILE_ELEMENTS, FILE_VARIABLES, M1, M16, each, repeated, workload
from shapes import (CONVOLUTIONS, EINSUMS, LINE_CONVOLUTIONS, MATRICES, MLP_BATCHES, PARAMETERS, PRODUCTS, RESIZES,
                    operands, same_padding, stored)

args = harness.options()
import torch  # noqa: E402
import torch.nn as nn  # noqa: E402
import torch.nn.functional as F  # noqa: E402

torch.set_num_threads(args.threads)
LAYOUTS = (("nhwc", torch.channels_last), ("nchw", torch.contiguous_format))


def numbers(*shape, dtype=torch.float32):
    return torch.rand(shape, dtype=dtype) * 4 - 2


def gradients(function, *sources):
    """Forward and back from a random gradient."""
    sources = [s.requires_grad_() for s in sources]
    with torch.no_grad():
        y = function()
        dy = numbers(*y.shape)
        if y.dim() == 4 and not y.is_contiguous():
            dy = dy.to(memory_format=torch.channels_last)

    def run():
        function().backward(dy)
        for s in sources:
            s.grad = None
    return run


# ---- Dispatch
def loop(name, op):
    workload(f"dispatch.{name}", CALLS)(lambda: repeated(op()))


def chain(name, size, op, back):
    @workload(f"dispatch.{name}", CALLS)
    def _():
        x, b, times = torch.ones(size, requires_grad=True), torch.ones(size), range(CALLS)

        def run():
            y = x
            for _ in times:
                y = op(y, b)
            if back:
                y.sum().backward()
                x.grad = None
        return run


def binary(size):
    a, b = torch.ones(size), torch.ones(size)
    return lambda: a + b


def in_place(size):
    a, b = torch.ones(size), torch.ones(size)
    return lambda: a.add_(b)


def recorded(size):
    a, b = torch.ones(size, requires_grad=True), torch.ones(size)
    return lambda: a + b


for size in (1, 64):
    loop(f"add_{size}", lambda size=size: binary(size))
    loop(f"assign_add_{size}", lambda size=size: in_place(size))
    loop(f"add_{size}_recorded", lambda size=size: recorded(size))
    chain(f"chain_add_{size}", size, torch.add, False)
    chain(f"chain_add_{size}_grad", size, torch.add, True)
    chain(f"chain_mul_{size}_grad", size, torch.mul, True)
for name, op in (("sum_64", torch.sum), ("exp_64", torch.exp), ("reshape_64", lambda x: x.view(8, 8)),
                 ("slice_64", lambda x: x[3:9]), ("item_64", lambda x: x[0].item())):
    loop(name, lambda op=op: (lambda x: lambda: op(x))(torch.ones(64)))
loop("matmul_8", lambda: (lambda x: lambda: x @ x)(torch.ones(8, 8)))
loop("zeros_64", lambda: lambda: torch.zeros(64))

# ---- Elementwise
UNARY = {"exp": torch.exp, "sin": torch.sin, "erf": torch.erf, "cast_to_double": torch.Tensor.double, "relu": torch.relu,
         "tanh": torch.tanh, "sigmoid": torch.sigmoid, "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
         "silu": F.silu, "softplus": F.softplus}
POSITIVE = {"sqrt": torch.sqrt, "log": torch.log, "pow_2.5": lambda x: torch.pow(x, 2.5)}
SEVERAL = {"add": lambda a, b, c, p, m: a + b, "mul": lambda a, b, c, p, m: a * b, "div": lambda a, b, c, p, m: b / p,
           "mul_add": lambda a, b, c, p, m: a * b + c, "fma": lambda a, b, c, p, m: torch.addcmul(c, a, b),
           "where": lambda a, b, c, p, m: torch.where(m, a, b),
           "greater": lambda a, b, c, p, m: a > b, "assign_add": lambda a, b, c, p, m: c.add_(b)}


def elementwise(size, n):
    for name, op in UNARY.items():
        workload(f"elementwise.{name}_{size}")(lambda op=op: (lambda x: lambda: op(x))(numbers(n)))
    for name, op in POSITIVE.items():
        workload(f"elementwise.{name}_{size}")(lambda op=op: (lambda x: lambda: op(x))(torch.rand(n) + 0.1))
    for name, op in SEVERAL.items():
        @workload(f"elementwise.{name}_{size}")
        def _(op=op):
            a, b, c = numbers(n), numbers(n), numbers(n)
            p, m = a.abs() + 0.1, a > 0
            return lambda: op(a, b, c, p, m)
    for name in ("relu", "tanh", "sigmoid", "gelu", "silu", "softplus"):
        @workload(f"elementwise.{name}_{size}_grad")
        def _(op=UNARY[name]):
            x = numbers(n)
            return gradients(lambda: op(x), x)


elementwise("1M", M1)
elementwise("16M", M16)
for size in (1024, 4096):
    workload(f"elementwise.add_column_row_{size}")(
        lambda n=size: (lambda a, b: lambda: a + b)(numbers(n, 1), numbers(1, n)))
workload("elementwise.bias_add_8192x512")(lambda: (lambda x, b: lambda: x + b)(numbers(8192, 512), numbers(512)))
workload("elementwise.add_transposed_4096")(lambda: (lambda a, b: lambda: a.t() + b)(numbers(4096, 4096), numbers(4096, 4096)))


# ---- Products
def product(name, a_shape, b_shape, ta, tb, double):
    def operand(shape, transposed):
        x = numbers(*stored(shape, transposed), dtype=torch.float64 if double else torch.float32)
        return x.transpose(-1, -2) if transposed else x
    workload(f"product.{name}")(lambda: (lambda a, b: lambda: a @ b)(operand(a_shape, ta), operand(b_shape, tb)))


for name, row in PRODUCTS.items():
    product(name, *row)
for name, (equation, a_shape, b_shape) in EINSUMS.items():
    workload(f"product.{name}")(lambda e=equation, s=a_shape, t=b_shape: (
        lambda a, b: lambda: torch.einsum(e, a, b))(numbers(*s), numbers(*t)))
workload("product.dense_relu_128x784x512")(
    lambda: (lambda x, w, b: lambda: F.relu(F.linear(x, w, b)))(numbers(128, 784), numbers(512, 784), numbers(512)))

METHODS = {"cholesky": torch.linalg.cholesky, "solve": torch.linalg.solve, "inv": torch.linalg.inv, "qr": torch.linalg.qr,
           "svd": lambda x: torch.linalg.svd(x, full_matrices=False), "eigh": torch.linalg.eigh}
for name, row in MATRICES.items():
    workload(f"linalg.{name}")(lambda row=row: (lambda op, xs: lambda: op(*xs))(
        METHODS[row[0]], operands(row, numbers, lambda x: x @ x.mT / x.shape[-1] + torch.eye(x.shape[-1]))))


# ---- Convolution
def convolution(name, batch, size, cin, k, cout, stride, dilation, groups):
    before, behind = same_padding(size, k, stride, dilation)

    def make(layout, back):
        x = numbers(batch, cin, size, size).to(memory_format=layout)
        w = numbers(cout, cin // groups, k, k).to(memory_format=layout)
        b = numbers(cout)

        def call():
            if before == behind:
                return F.conv2d(x, w, b, stride, before, dilation, groups)
            return F.conv2d(F.pad(x, (before, behind) * 2), w, b, stride, 0, dilation, groups)
        return gradients(call, x, w, b) if back else call
    for tag, layout in LAYOUTS:
        workload(f"convolution.{name}_{tag}")(lambda layout=layout: make(layout, False))
        workload(f"convolution.{name}_{tag}_grad")(lambda layout=layout: make(layout, True))


for name, row in CONVOLUTIONS.items():
    convolution(name, *row)


def line_convolution(cin, k, cout, batch, sizes, back):
    x, w = numbers(batch, cin, *sizes), numbers(cout, cin, *(k,) * len(sizes))
    op = {1: F.conv1d, 3: F.conv3d}[len(sizes)]
    return gradients(lambda: op(x, w), x, w) if back else lambda: op(x, w)


for name, row in LINE_CONVOLUTIONS.items():
    workload(f"convolution.{name}")(lambda row=row: line_convolution(*row, False))
    workload(f"convolution.{name}_grad")(lambda row=row: line_convolution(*row, True))


def resize(batch, size, to, channels, back):
    x = numbers(batch, channels, size, size).to(memory_format=torch.channels_last)

    def call():
        return F.interpolate(x, (to, to), mode="bilinear", align_corners=False)
    return gradients(call, x) if back else call


for name, row in RESIZES.items():
    workload(f"image.{name}")(lambda row=row: resize(*row, False))
    workload(f"image.{name}_grad")(lambda row=row: resize(*row, True))


def on_image(name, make_op):
    def make(layout, back):
        x, (op, weights) = numbers(32, 64, 56, 56).to(memory_format=layout), make_op()
        if back:
            return gradients(lambda: op(x), x, *weights)
        return lambda: op(x)
    for tag, layout in LAYOUTS:
        workload(f"convolution.{name}_32x56x56x64_{tag}")(lambda layout=layout: make(layout, False))
        workload(f"convolution.{name}_32x56x56x64_{tag}_grad")(lambda layout=layout: make(layout, True))


def batch_norm():
    gamma, beta, mean, variance = torch.ones(64), torch.zeros(64), torch.zeros(64), torch.ones(64)
    return lambda x: F.batch_norm(x, mean, variance, gamma, beta, True), (gamma, beta)


on_image("max_pool2d", lambda: (lambda x: F.max_pool2d(x, 2), ()))
on_image("avg_pool2d", lambda: (lambda x: F.avg_pool2d(x, 2), ()))
on_image("batch_norm", batch_norm)


# ---- Reductions
MATRIX = {"sum": torch.sum, "max": torch.amax, "variance": lambda x, axis: torch.var(x, axis, unbiased=False),
          "argmax": torch.argmax}
for name, op in MATRIX.items():
    for tag, axis in (("all", None), ("axis0", 0), ("axis1", 1)):
        def make(op=op, axis=axis):
            x = numbers(4096, 4096)
            return lambda: op(x, (0, 1) if axis is None and op is not torch.argmax else axis)
        workload(f"reduction.{name}_{tag}_4096x4096")(make)


def of(op, *shape):
    """Makes op of a tensor of that shape."""
    def make():
        x = numbers(*shape)
        return lambda: op(x)
    return make


each("reduction", {
    "mean_all_4096x4096": of(torch.mean, 4096, 4096),
    "norm_all_4096x4096": of(torch.norm, 4096, 4096),
    "logsumexp_axis1_4096x4096": of(lambda x: torch.logsumexp(x, 1), 4096, 4096),
    "sum_axis0_32x512": of(lambda x: x.sum(0), 32, 512),
    "sum_axis1_32x512": of(lambda x: x.sum(1), 32, 512),
    "argmax_axis1_5000x10": of(lambda x: x.argmax(1), 5000, 10),
    "cumsum_axis0_4096x4096": of(lambda x: x.cumsum(0), 4096, 4096),
    "cumsum_axis1_4096x4096": of(lambda x: x.cumsum(1), 4096, 4096),
    "sort_1M": of(lambda x: x.sort(), M1),
    "sort_axis1_1024x1024": of(lambda x: x.sort(1), 1024, 1024),
    "argsort_gather_1M": of(lambda x: x[x.argsort()], M1),
    "top_10_of_1M": of(lambda x: x.topk(10), M1),
    "top_10_axis1_1024x1024": of(lambda x: x.topk(10, 1), 1024, 1024),
    "softmax_8192x1000_full_cache": of(lambda x: F.softmax(x, 1), 8192, 1000),
})


def both(name, height, width, make_op):
    """make_op() gives what is applied, and its parameters."""
    def make(back):
        x, (op, parameters) = numbers(height, width), make_op()
        return gradients(lambda: op(x), x, *parameters) if back else lambda: op(x)
    workload(f"reduction.{name}_{height}x{width}")(lambda: make(False))
    workload(f"reduction.{name}_{height}x{width}_grad")(lambda: make(True))


def norm(op):
    def make():
        gamma, beta = torch.rand(512) + 0.5, numbers(512)
        return lambda x: op(x, gamma, beta), (gamma, beta)
    return make


def rms_norm():
    gamma = torch.rand(512) + 0.5
    if hasattr(F, "rms_norm"):
        return lambda x: F.rms_norm(x, (512,), gamma, 1e-6), (gamma,)
    return lambda x: x * torch.rsqrt(x.square().mean(1, keepdim=True) + 1e-6) * gamma, (gamma,)


for height, width in ((8192, 1000), (32, 10)):
    both("softmax", height, width, lambda: (lambda x: F.softmax(x, 1), ()))
    both("log_softmax", height, width, lambda: (lambda x: F.log_softmax(x, 1), ()))
    both("cross_entropy", height, width, lambda h=height, w=width: (
        (lambda y: lambda x: F.cross_entropy(x, y))(torch.randint(0, w, (h,))), ()))
both("layer_norm", 8192, 512, norm(lambda x, gamma, beta: F.layer_norm(x, (512,), gamma, beta, 1e-3)))
both("batch_norm", 8192, 512, norm(lambda x, gamma, beta: F.batch_norm(x, None, None, gamma, beta, True)))
both("rms_norm", 8192, 512, rms_norm)


# ---- Copies and indexing
def of_four(op, *shape):
    def make():
        xs = [numbers(*shape) for _ in range(4)]
        return lambda: op(xs)
    return make


def embedding():
    weights = torch.nn.Embedding(100000, 64, sparse=True)
    sgd, rows, dy = torch.optim.SGD(weights.parameters(), 0.5), torch.randint(0, 100000, (16384,)), numbers(16384, 64)

    def run():
        sgd.zero_grad(set_to_none=True)
        weights(rows).backward(dy)
        sgd.step()
    return run


for tag in ("", "_full_cache"):
    workload(f"copy.nchw_to_nhwc_32x64x56x56{tag}")(of(lambda x: x.permute(0, 2, 3, 1).contiguous(), 32, 64, 56, 56))
each("copy", {
    "transpose_4096x4096": of(lambda x: x.t().contiguous(), 4096, 4096),
    "heads_8x128x4x64": of(lambda x: x.transpose(1, 2).contiguous(), 8, 128, 4, 64),
    "zeros_16M": lambda: lambda: torch.zeros(M16),
    "full_16M": lambda: lambda: torch.full((M16,), 1.5),
    "concat_axis0_4x1024x4096": of_four(torch.cat, 1024, 4096),
    "concat_axis1_4x4096x1024": of_four(lambda xs: torch.cat(xs, 1), 4096, 1024),
    "slice_columns_4096x4096": of(lambda x: x[:, 1:2049].contiguous(), 4096, 4096),
    "every_other_column_4096x4096": of(lambda x: x[:, ::2].contiguous(), 4096, 4096),
    "pad_32x64x56x56": of(lambda x: F.pad(x, (1, 1, 1, 1)), 32, 64, 56, 56),
    "tile_4x4_1024x1024": of(lambda x: x.repeat(4, 4), 1024, 1024),
})
each("indexing", {
    "one_hot_65536_of_100": lambda: (lambda i: lambda: F.one_hot(i, 100).float())(torch.randint(0, 100, (65536,))),
    "take_along_axis1_256_of_4096x4096": lambda: (lambda x, i: lambda: x.gather(1, i))(
        numbers(4096, 4096), torch.randint(0, 4096, (4096, 256))),
    "gather_16384_of_100000x64": lambda: (lambda x, i: lambda: x[i])(numbers(100000, 64), torch.randint(0, 100000, (16384,))),
    "boolean_mask_16M": lambda: (lambda x: (lambda m: lambda: x[m])(x > 0))(numbers(M16)),
    "nonzero_16M": lambda: (lambda m: lambda: m.nonzero())(numbers(M16) > 1.6),
    "scatter_add_1M_into_1M": lambda: (lambda x, i, y: lambda: y.scatter_add_(0, i, x))(
        numbers(M1), torch.randint(0, M1, (M1,)), torch.zeros(M1)),
    "embedding_sgd_16384_of_100000x64": embedding,
    "segment_sum_1M_into_100": lambda: (lambda x, i: lambda: torch.zeros(100).index_add_(0, i, x))(
        numbers(M1), torch.randint(0, 100, (M1,))),
    "dynamic_partition_1M_into_8": lambda: (lambda x, i: lambda: [x[i == k] for k in range(8)])(
        numbers(M1), torch.randint(0, 8, (M1,), dtype=torch.int32)),
    "unique_1M_of_10000": lambda: (lambda i: lambda: i.unique(return_inverse=True))(
        torch.randint(0, 10000, (M1,), dtype=torch.int32)),
})


# ---- Training
def training(model, x, y, loss=F.cross_entropy):
    adam = torch.optim.Adam(model.parameters(), 1e-3)

    def run():
        adam.zero_grad(set_to_none=True)
        loss(model(x), y).backward()
        adam.step()
    return run


def labels(batch):
    return torch.randint(0, 10, (batch,))


def mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Dropout(0.2), nn.Linear(512, 10))


def lenet(layout):
    model = nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
                          nn.Flatten(), nn.Linear(1600, 128), nn.ReLU(), nn.Linear(128, 10))
    return training(model.to(memory_format=layout), torch.rand(128, 1, 28, 28).to(memory_format=layout), labels(128))


class LSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.dense = nn.LSTM(28, 128, batch_first=True), nn.Linear(128, 10)

    def forward(self, x):
        return self.dense(self.lstm(x)[0][:, -1])


def transformer():
    block = nn.TransformerEncoderLayer(256, 4, 1024, 0.0, "gelu", batch_first=True)
    return training(block, torch.rand(8, 128, 256), torch.rand(8, 128, 256), F.mse_loss)


def attention(back):
    q, k, v = (torch.rand(8, 4, 128, 64) for _ in range(3))
    fused = getattr(F, "scaled_dot_product_attention", None)

    def call():
        return fused(q, k, v) if fused else torch.softmax(q @ k.transpose(-1, -2) / 8, -1) @ v
    return gradients(call, q, k, v) if back else call


def inference(batch):
    model, x = mlp().eval(), torch.rand(batch, 28, 28)
    return torch.no_grad()(lambda: model(x))


def small():
    model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
    return training(model, torch.rand(4, 2), torch.rand(4, 1), F.mse_loss)


for batch in MLP_BATCHES:
    workload(f"training.mlp_b{batch}")(lambda n=batch: training(mlp(), torch.rand(n, 28, 28), labels(n)))
    workload(f"training.mlp_inference_b{batch}")(lambda n=batch: inference(n))
each("training", {
    "xor_b4": small,
    "lenet_nhwc_b128": lambda: lenet(torch.channels_last),
    "lenet_nchw_b128": lambda: lenet(torch.contiguous_format),
    "lstm_128_of_28_steps_b128": lambda: training(LSTM(), torch.rand(128, 28, 28), labels(128)),
    "transformer_256_b8": transformer,
    "attention_8x4x128x64": lambda: attention(False),
    "attention_8x4x128x64_grad": lambda: attention(True),
})


# ---- Optimizers
def variables(sizes):
    weights = [numbers(n).requires_grad_() for n in sizes]
    for w in weights:
        w.grad = numbers(w.numel())
    return weights


def clipped(weights):
    step = torch.optim.Adam(weights, 1e-3).step

    def run():
        nn.utils.clip_grad_norm_(weights, 1.0)
        step()
    return run


OPTIMIZERS = {"adam": lambda w: torch.optim.Adam(w, 1e-3).step,
              "adamw": lambda w: torch.optim.AdamW(w, 1e-3, weight_decay=0.01).step,
              "adam_global_clipnorm": clipped,
              "sgd": lambda w: torch.optim.SGD(w, 1e-3).step,
              "sgd_momentum": lambda w: torch.optim.SGD(w, 1e-3, 0.9).step,
              "rmsprop": lambda w: torch.optim.RMSprop(w, 1e-3, 0.9, 1e-7).step}
for name, make in OPTIMIZERS.items():
    for tag, sizes in PARAMETERS.items():
        workload(f"optimizer.{name}_{tag}")(lambda make=make, sizes=sizes: make(variables(sizes)))
each("optimizer", {
    "adam_100000_of_1": lambda: torch.optim.Adam(variables([1] * 100000), 1e-3).step,
    "adam_100000_of_1_first": lambda: (lambda w: lambda: torch.optim.Adam(w, 1e-3).step())(variables([1] * 100000)),
    "clip_by_global_norm_10M_in_100": lambda: (lambda w: lambda: nn.utils.clip_grad_norm_(w, 1.0))(
        variables(PARAMETERS["10M_in_100"])),
})

# ---- Random numbers, files, processes
each("random", {
    "uniform_16M": lambda: lambda: torch.rand(M16),
    "normal_16M": lambda: lambda: torch.randn(M16),
    "truncated_normal_16M": lambda: lambda: nn.init.trunc_normal_(torch.empty(M16)),
    "bernoulli_16M": lambda: lambda: torch.empty(M16).bernoulli_(0.8),
    "dropout_16M": of(lambda x: F.dropout(x, 0.2), M16),
    "dropout_16M_grad": lambda: (lambda x: gradients(lambda: F.dropout(x, 0.2), x))(numbers(M16)),
    "dropout_65536": of(lambda x: F.dropout(x, 0.2), 128 * 512),
    "permutation_1M": lambda: lambda: torch.randperm(M1),
})


def saved_tensors():
    tensors = {f"w{i}": torch.rand(FILE_ELEMENTS) for i in range(FILE_VARIABLES)}
    return lambda path: torch.save(tensors, path), torch.load


harness.files(saved_tensors)
harness.first_step(args, lambda: training(mlp(), torch.rand(32, 28, 28), labels(32)))
harness.main(args, "PyTorch", torch.__version__, before=lambda: torch.manual_seed(0))
