"""PyTorch on the workloads of eddy_bench: eager, gradients only where they are asked for, contiguous results."""
import os

import harness
from harness import CALLS, M1, M16, workload

args = harness.options()
import torch  # noqa: E402
import torch.nn as nn  # noqa: E402
import torch.nn.functional as F  # noqa: E402

torch.set_num_threads(args.threads)
LAYOUTS = (("nhwc", torch.channels_last), ("nchw", torch.contiguous_format))


def numbers(*shape, dtype=torch.float32):
    return torch.rand(*shape, dtype=dtype) * 4 - 2


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
    @workload(f"dispatch.{name}", CALLS)
    def _():
        times = range(CALLS)
        call = op()

        def run():
            for _ in times:
                call()
        return run


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
                 ("slice_64", lambda x: x[3:9]), ("item", lambda x: x[0].item())):
    loop(name, lambda op=op: (lambda x: lambda: op(x))(torch.ones(64)))
loop("matmul_8", lambda: (lambda x: lambda: x @ x)(torch.ones(8, 8)))
loop("zeros_64", lambda: lambda: torch.zeros(64))

# ---- Elementwise
UNARY = {"exp": torch.exp, "sin": torch.sin, "erf": torch.erf, "cast_to_double": torch.Tensor.double, "relu": torch.relu,
         "tanh": torch.tanh, "sigmoid": torch.sigmoid, "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
         "silu": F.silu, "softplus": F.softplus}
POSITIVE = {"sqrt": torch.sqrt, "log": torch.log, "pow_2.5": lambda x: torch.pow(x, 2.5)}
SEVERAL = {"add": lambda a, b, c, p, m: a + b, "mul": lambda a, b, c, p, m: a * b, "div": lambda a, b, c, p, m: b / p,
           "mul_add": lambda a, b, c, p, m: a * b + c, "where": lambda a, b, c, p, m: torch.where(m, a, b),
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
def product(name, a_shape, b_shape, ta=False, tb=False, dtype=torch.float32):
    def stored(shape, swapped):
        x = numbers(*shape[:-2], *(shape[:-3:-1] if swapped else shape[-2:]), dtype=dtype)
        return x.transpose(-1, -2) if swapped else x
    workload(f"product.{name}")(lambda: (lambda a, b: lambda: a @ b)(stored(a_shape, ta), stored(b_shape, tb)))


for n in (32, 64, 128, 256, 512, 1024, 2048):
    product(f"mm_{n}", (n, n), (n, n))
for n in (256, 512, 1024):
    product(f"mm_{n}_double", (n, n), (n, n), dtype=torch.float64)
product("mm_512_ta", (512, 512), (512, 512), True)
product("mm_512_tb", (512, 512), (512, 512), False, True)
product("mm_512_ta_tb", (512, 512), (512, 512), True, True)
for m in (1, 32, 128, 5000):
    product(f"mm_{m}x784x512", (m, 784), (784, 512))
    product(f"mm_{m}x784x512_tb", (m, 784), (784, 512), False, True)
product("bmm_64x128x128", (64, 128, 128), (64, 128, 128))
product("bmm_64x128x128_tb", (64, 128, 128), (64, 128, 128), False, True)
product("bmm_1024x16x16", (1024, 16, 16), (1024, 16, 16))
workload("product.einsum_bmm_64x128x128")(
    lambda: (lambda a, b: lambda: torch.einsum("bij,bjk->bik", a, b))(numbers(64, 128, 128), numbers(64, 128, 128)))
workload("product.matvec_4096")(lambda: (lambda a, x: lambda: a @ x)(numbers(4096, 4096), numbers(4096)))
workload("product.matvec_4096_ta")(lambda: (lambda a, x: lambda: a.t() @ x)(numbers(4096, 4096), numbers(4096)))
workload("product.vecmat_4096")(lambda: (lambda a, x: lambda: x @ a)(numbers(4096, 4096), numbers(4096)))
workload("product.dense_relu_128x784x512")(
    lambda: (lambda x, w, b: lambda: F.relu(F.linear(x, w, b)))(numbers(128, 784), numbers(512, 784), numbers(512)))


# ---- Convolution: the paddings of SAME
def convolution(name, batch, size, cin, k, cout, stride=1, dilation=1, groups=1):
    out = -(-size // stride)
    pad = max((out - 1) * stride + (k - 1) * dilation + 1 - size, 0)

    def make(layout, back):
        x = numbers(batch, cin, size, size).to(memory_format=layout)
        w = numbers(cout, cin // groups, k, k).to(memory_format=layout)
        b = numbers(cout)
        # An odd padding has one more behind, which conv2d has no option for; symmetric costs the same.
        call = lambda: F.conv2d(x, w, b, stride, (pad + 1) // 2, dilation, groups)  # noqa: E731
        return gradients(call, x, w, b) if back else call
    for tag, layout in LAYOUTS:
        workload(f"convolution.{name}_{tag}")(lambda layout=layout: make(layout, False))
        workload(f"convolution.{name}_{tag}_grad")(lambda layout=layout: make(layout, True))


convolution("conv2d_3x3_1to32_32x28x28", 32, 28, 1, 3, 32)
convolution("conv2d_3x3_64to64_32x28x28", 32, 28, 64, 3, 64)
convolution("conv2d_3x3_64to64_32x56x56", 32, 56, 64, 3, 64)
convolution("conv2d_3x3_256to256_8x14x14", 8, 14, 256, 3, 256)
convolution("conv2d_3x3_64to128_s2_32x28x28", 32, 28, 64, 3, 128, 2)
convolution("conv2d_3x3_64to64_d2_32x28x28", 32, 28, 64, 3, 64, 1, 2)
convolution("conv2d_3x3_64to64_g4_32x28x28", 32, 28, 64, 3, 64, 1, 1, 4)
convolution("conv2d_5x5_6to16_128x14x14", 128, 14, 6, 5, 16)
convolution("conv2d_7x7_3to64_s2_8x224x224", 8, 224, 3, 7, 64, 2)
convolution("conv2d_1x1_256to256_32x14x14", 32, 14, 256, 1, 256)
convolution("depthwise_3x3_64_32x56x56", 32, 56, 64, 3, 64, groups=64)


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
harness.main(args, "PyTorch", torch.__version__, before=lambda: torch.manual_seed(0))
