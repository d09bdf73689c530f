"""JAX on the workloads of eddy_bench: each run compiled by jax.jit, with donated state; the dispatch of single calls op by op."""
import os

import harness
from harness import CALLS, M1, M16, each, repeated, workload
from shapes import (CONVOLUTIONS, EINSUMS, LINE_CONVOLUTIONS, MATRICES, MLP_BATCHES, PARAMETERS, PRODUCTS, RESIZES,  # noqa: E402
                    operands, stored)

args = harness.options()
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:args.threads])  # its threads are as many as its cores
os.environ.setdefault("JAX_PLATFORMS", "cpu")
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

_keys = iter(range(1 << 30))


def allow_double(so):
    """Only where a workload is about float64: elsewhere it would creep into random numbers and indices."""
    jax.config.update("jax_enable_x64", so)


def uniform(*shape, dtype=jnp.float32, low=0.0, high=1.0):
    return jax.random.uniform(jax.random.key(next(_keys)), shape, dtype, low, high)


def numbers(*shape, dtype=jnp.float32):
    return uniform(*shape, dtype=dtype, low=-2.0, high=2.0)


def indices(n, below):
    return jax.random.randint(jax.random.key(next(_keys)), (n,), 0, below, jnp.int32)


def to_double():
    allow_double(True)
    return jax.jit(lambda x: x.astype(jnp.float64))


def tensors(shapes):
    return [numbers(*(shape if isinstance(shape, tuple) else (shape,))) for shape in shapes]


def of(op, *shapes):
    """Makes the compiled op of arrays of those shapes."""
    def make():
        xs, call = tensors(shapes), jax.jit(op)
        return lambda: call(*xs)
    return make


def gradient_of(op, *shapes):
    """The same with the gradients by all of them, from random ones of the result on. The result is
    returned, too: a compiled function leaves out what is computed for nothing."""
    def make():
        xs = tensors(shapes)
        dy = numbers(*jax.eval_shape(op, *xs).shape)

        def result_and_gradients(dy, *xs):
            y, back = jax.vjp(op, *xs)
            return y, back(dy)
        call = jax.jit(result_and_gradients)
        return lambda: call(dy, *xs)
    return make


def both(group, name, op, *shapes):
    workload(f"{group}.{name}")(of(op, *shapes))
    workload(f"{group}.{name}_grad")(gradient_of(op, *shapes))


# ---- Dispatch
def loop(name, op, *shape):
    workload(f"dispatch.{name}", CALLS)(lambda: (lambda x: repeated(lambda: op(x)))(jnp.ones(shape, jnp.float32)))


for size in (1, 64):
    loop(f"add_{size}", lambda x: x + x, size)
for name, op in {"sum_64": jnp.sum, "exp_64": jnp.exp, "reshape_64": lambda x: x.reshape(8, 8), "slice_64": lambda x: x[3:9],
                 "item_64": lambda x: float(x[0]), "zeros_64": lambda x: jnp.zeros(64)}.items():
    loop(name, op, 64)
loop("matmul_8", lambda x: x @ x, 8, 8)

# ---- Elementwise
UNARY = {"exp": jnp.exp, "sin": jnp.sin, "erf": jax.scipy.special.erf,
         "relu": jax.nn.relu, "tanh": jnp.tanh, "sigmoid": jax.nn.sigmoid, "gelu": lambda x: jax.nn.gelu(x, approximate=False),
         "gelu_tanh": jax.nn.gelu, "silu": jax.nn.silu, "softplus": jax.nn.softplus}
POSITIVE = {"sqrt": jnp.sqrt, "log": jnp.log, "pow_2.5": lambda x: x ** 2.5}
SEVERAL = {"add": lambda a, b, c, p, m: a + b, "mul": lambda a, b, c, p, m: a * b, "div": lambda a, b, c, p, m: b / p,
           "mul_add": lambda a, b, c, p, m: a * b + c, "fma": lambda a, b, c, p, m: a * b + c,
           "where": lambda a, b, c, p, m: jnp.where(m, a, b),
           "greater": lambda a, b, c, p, m: a > b}


def several(op, n):
    def make():
        a, b, c = tensors((n, n, n))
        p, m, call = jnp.abs(a) + 0.1, a > 0, jax.jit(op)
        return lambda: call(a, b, c, p, m)
    return make


def updates(step, *state):
    """step(*state) gives the next state, in the memory of the last."""
    held, call = [state], jax.jit(step, donate_argnums=tuple(range(len(state))))

    def run():
        held[0] = call(*held[0])
        return held[0]
    return run


for size, n in (("1M", M1), ("16M", M16)):
    for name, op in UNARY.items():
        workload(f"elementwise.{name}_{size}")(of(op, n))
        if name in ("relu", "tanh", "sigmoid", "gelu", "silu", "softplus"):
            workload(f"elementwise.{name}_{size}_grad")(gradient_of(op, n))
    for name, op in POSITIVE.items():
        workload(f"elementwise.{name}_{size}")(
            lambda op=op, n=n: (lambda x, call: lambda: call(x))(uniform(n) + 0.1, jax.jit(op)))
    for name, op in SEVERAL.items():
        workload(f"elementwise.{name}_{size}")(several(op, n))
    workload(f"elementwise.cast_to_double_{size}")(
        lambda n=n: (lambda call, x: lambda: call(x))(to_double(), numbers(n)))
    workload(f"elementwise.assign_add_{size}")(lambda n=n: (lambda b: updates(lambda v: (v + b,), numbers(n)))(numbers(n)))
for n in (1024, 4096):
    workload(f"elementwise.add_column_row_{n}")(of(jnp.add, (n, 1), (1, n)))
workload("elementwise.bias_add_8192x512")(of(jnp.add, (8192, 512), (512,)))
workload("elementwise.add_transposed_4096")(of(lambda a, b: a.T + b, (4096, 4096), (4096, 4096)))

# ---- Reductions
for name, op in {"sum": jnp.sum, "max": jnp.max, "variance": jnp.var, "argmax": jnp.argmax}.items():
    for tag, axis in (("all", None), ("axis0", 0), ("axis1", 1)):
        workload(f"reduction.{name}_{tag}_4096x4096")(of(lambda x, op=op, axis=axis: op(x, axis), (4096, 4096)))
each("reduction", {
    "mean_all_4096x4096": of(jnp.mean, (4096, 4096)),
    "norm_all_4096x4096": of(jnp.linalg.norm, (4096, 4096)),
    "logsumexp_axis1_4096x4096": of(lambda x: jax.nn.logsumexp(x, 1), (4096, 4096)),
    "argmax_axis1_5000x10": of(lambda x: jnp.argmax(x, 1), (5000, 10)),
    "sum_axis0_32x512": of(lambda x: x.sum(0), (32, 512)),
    "sum_axis1_32x512": of(lambda x: x.sum(1), (32, 512)),
    "cumsum_axis0_4096x4096": of(lambda x: jnp.cumsum(x, 0), (4096, 4096)),
    "cumsum_axis1_4096x4096": of(lambda x: jnp.cumsum(x, 1), (4096, 4096)),
    "sort_1M": of(jnp.sort, M1),
    "sort_axis1_1024x1024": of(jnp.sort, (1024, 1024)),
    "argsort_gather_1M": of(lambda x: x[jnp.argsort(x)], M1),
    "top_10_of_1M": of(lambda x: jax.lax.top_k(x, 10), M1),
    "top_10_axis1_1024x1024": of(lambda x: jax.lax.top_k(x, 10), (1024, 1024)),
    "softmax_8192x1000_full_cache": of(jax.nn.softmax, (8192, 1000)),
})


def standardized(axis):
    def norm(x, gamma, beta):
        mean, variance = x.mean(axis, keepdims=True), x.var(axis, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(variance + 1e-3) * gamma + beta
    return norm


def rms_norm(x, gamma):
    return x * jax.lax.rsqrt(jnp.square(x).mean(1, keepdims=True) + 1e-6) * gamma


def cross_entropy(logits, y):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], 1).mean()


for shape in ((8192, 1000), (32, 10)):
    y, tag = indices(*shape), "x".join(map(str, shape))
    both("reduction", f"softmax_{tag}", jax.nn.softmax, shape)
    both("reduction", f"log_softmax_{tag}", jax.nn.log_softmax, shape)
    both("reduction", f"cross_entropy_{tag}", lambda x, y=y: cross_entropy(x, y), shape)
both("reduction", "layer_norm_8192x512", standardized(1), (8192, 512), (512,), (512,))
both("reduction", "batch_norm_8192x512", standardized(0), (8192, 512), (512,), (512,))
both("reduction", "rms_norm_8192x512", rms_norm, (8192, 512), (512,))


# ---- Products and convolutions
def product(a_shape, b_shape, ta, tb, double):
    def turned(x, transposed):
        return jnp.swapaxes(x, -1, -2) if transposed else x

    def make():
        allow_double(double)
        dtype = jnp.float64 if double else jnp.float32
        a, b = numbers(*stored(a_shape, ta), dtype=dtype), numbers(*stored(b_shape, tb), dtype=dtype)
        call = jax.jit(lambda a, b: turned(a, ta) @ turned(b, tb))
        return lambda: call(a, b)
    return make


for name, row in PRODUCTS.items():
    workload(f"product.{name}")(product(*row))
for name, (equation, a_shape, b_shape) in EINSUMS.items():
    workload(f"product.{name}")(of(lambda a, b, e=equation: jnp.einsum(e, a, b), a_shape, b_shape))
workload("product.dense_relu_128x784x512")(of(lambda x, w, b: jax.nn.relu(x @ w + b), (128, 784), (784, 512), (512,)))

METHODS = {"cholesky": jnp.linalg.cholesky, "solve": jnp.linalg.solve, "inv": jnp.linalg.inv, "qr": jnp.linalg.qr,
           "svd": lambda x: jnp.linalg.svd(x, full_matrices=False), "eigh": jnp.linalg.eigh}


def positive(x):
    return x @ jnp.swapaxes(x, -1, -2) / x.shape[-1] + jnp.eye(x.shape[-1])


for name, row in MATRICES.items():
    workload(f"linalg.{name}")(lambda row=row: (lambda call, xs: lambda: call(*xs))(
        jax.jit(METHODS[row[0]]), operands(row, numbers, positive)))


def convolve(x, w, b, stride=1, padding="SAME", dilation=1, groups=1):
    return b + jax.lax.conv_general_dilated(x, w, (stride, stride), padding, rhs_dilation=(dilation, dilation),
                                            dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=groups)


def pool(x, least, op):
    return jax.lax.reduce_window(x, least, op, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


for name, (batch, size, cin, k, cout, stride, dilation, groups) in CONVOLUTIONS.items():
    both("convolution", f"{name}_nhwc",
         lambda x, w, b, s=stride, d=dilation, g=groups: convolve(x, w, b, s, "SAME", d, g),
         (batch, size, size, cin), (k, k, cin // groups, cout), (cout,))
AXES = {1: ("NWC", "WIO", "NWC"), 3: ("NDHWC", "DHWIO", "NDHWC")}
for name, (cin, k, cout, batch, sizes) in LINE_CONVOLUTIONS.items():
    both("convolution", name,
         lambda x, w, n=len(sizes): jax.lax.conv_general_dilated(x, w, (1,) * n, "VALID", dimension_numbers=AXES[n]),
         (batch, *sizes, cin), (*(k,) * len(sizes), cin, cout))
for name, (batch, size, to, channels) in RESIZES.items():
    both("image", name, lambda x, s=(batch, to, to, channels): jax.image.resize(x, s, "bilinear", antialias=False),
         (batch, size, size, channels))
IMAGE = (32, 56, 56, 64)
both("convolution", "max_pool2d_32x56x56x64_nhwc", lambda x: pool(x, -jnp.inf, jax.lax.max), IMAGE)
both("convolution", "avg_pool2d_32x56x56x64_nhwc", lambda x: pool(x, 0.0, jax.lax.add) / 4, IMAGE)
both("convolution", "batch_norm_32x56x56x64_nhwc", standardized((0, 1, 2)), IMAGE, (64,), (64,))

# ---- Copies and indexing
for tag in ("", "_full_cache"):
    workload(f"copy.nchw_to_nhwc_32x64x56x56{tag}")(of(lambda x: x.transpose(0, 2, 3, 1), (32, 64, 56, 56)))
each("copy", {
    "transpose_4096x4096": of(jnp.transpose, (4096, 4096)),
    "heads_8x128x4x64": of(lambda x: x.transpose(0, 2, 1, 3), (8, 128, 4, 64)),
    "zeros_16M": of(lambda: jnp.zeros(M16, jnp.float32)),
    "full_16M": of(lambda: jnp.full(M16, 1.5, jnp.float32)),
    "concat_axis0_4x1024x4096": of(lambda *xs: jnp.concatenate(xs), *[(1024, 4096)] * 4),
    "concat_axis1_4x4096x1024": of(lambda *xs: jnp.concatenate(xs, 1), *[(4096, 1024)] * 4),
    "slice_columns_4096x4096": of(lambda x: x[:, 1:2049], (4096, 4096)),
    "every_other_column_4096x4096": of(lambda x: x[:, ::2], (4096, 4096)),
    "pad_32x64x56x56": of(lambda x: jnp.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (32, 64, 56, 56)),
    "tile_4x4_1024x1024": of(lambda x: jnp.tile(x, (4, 4)), (1024, 1024)),
})


def with_indices(op, shape, n, below, reshape=None):
    def make():
        x, i, call = numbers(*shape), indices(n, below), jax.jit(op)
        i = i.reshape(reshape) if reshape else i
        return lambda: call(x, i)
    return make


def embedding():
    """Rows are looked up, too, but from the new table: for those of the old one all of it would be copied."""
    rows, dy, held = indices(16384, 100000), numbers(16384, 64), [numbers(100000, 64)]

    def step(table):
        table = table.at[rows].add(-0.5 * dy)
        return table, table[rows]
    call = jax.jit(step, donate_argnums=0)

    def run():
        held[0], taken = call(held[0])
        return held[0], taken
    return run


each("indexing", {
    "one_hot_65536_of_100": with_indices(lambda x, i: jax.nn.one_hot(i, 100, dtype=jnp.float32), (1,), 65536, 100),
    "take_along_axis1_256_of_4096x4096": with_indices(
        lambda x, i: jnp.take_along_axis(x, i, 1), (4096, 4096), 4096 * 256, 4096, (4096, 256)),
    "gather_16384_of_100000x64": with_indices(lambda x, i: x[i], (100000, 64), 16384, 100000),
    "scatter_add_1M_into_1M": lambda: (lambda x, i: updates(lambda v: (v.at[i].add(x),), jnp.zeros(M1, jnp.float32)))(
        numbers(M1), indices(M1, M1)),
    "embedding_sgd_16384_of_100000x64": embedding,
    "segment_sum_1M_into_100": with_indices(lambda x, i: jax.ops.segment_sum(x, i, 100), (M1,), M1, 100),
})


# ---- Training: Adam as optax has it
def adam(parameters):
    return 0, jax.tree.map(jnp.zeros_like, parameters), jax.tree.map(jnp.zeros_like, parameters)


def adam_step(state, parameters, gradients, rate=1e-3):
    t, m, v = state
    t = t + 1
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, gradients)
    v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, gradients)
    first, second = 1 - 0.9 ** jnp.float32(t), 1 - 0.999 ** jnp.float32(t)
    return (t, m, v), jax.tree.map(lambda p, m, v: p - rate * (m / first) / (jnp.sqrt(v / second) + 1e-8), parameters, m, v)


def training(parameters, model, x, y, loss=cross_entropy):
    def step(state, parameters, key):
        key, draw = jax.random.split(key)
        gradients = jax.grad(lambda p: loss(model(p, x, draw), y))(parameters)
        state, parameters = adam_step(state, parameters, gradients)
        return state, parameters, key
    return updates(step, adam(parameters), parameters, jax.random.key(1))


def weights(*shapes):
    return [0.1 * uniform(*shape) if len(shape) > 1 else jnp.zeros(shape, jnp.float32) for shape in shapes]


def mlp_weights():
    return weights((784, 512), (512,), (512, 10), (10,))


def mlp(p, x, key=None):
    h = jax.nn.relu(x.reshape(x.shape[0], -1) @ p[0] + p[1])
    if key is not None:
        h = jnp.where(jax.random.bernoulli(key, 0.8, h.shape), h / 0.8, 0)
    return h @ p[2] + p[3]


def lenet(p, x, key):
    h = pool(jax.nn.relu(convolve(x, p[0], p[1], padding="VALID")), -jnp.inf, jax.lax.max)
    h = pool(jax.nn.relu(convolve(h, p[2], p[3], padding="VALID")), -jnp.inf, jax.lax.max).reshape(x.shape[0], -1)
    return jax.nn.relu(h @ p[4] + p[5]) @ p[6] + p[7]


def lstm(p, x, key):
    def step(carry, x):
        h, c = carry
        i, f, n, o = jnp.split(x @ p[0] + h @ p[1] + p[2], 4, 1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(n)
        return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None
    zero = jnp.zeros((x.shape[0], 128), jnp.float32)
    return jax.lax.scan(step, (zero, zero), x.transpose(1, 0, 2))[0][0] @ p[3] + p[4]


def attention(q, k, v):
    return jax.nn.softmax(q @ jnp.swapaxes(k, -1, -2) / 8) @ v


def transformer(p, x, key):
    def heads(x):
        return x.reshape(8, 128, 4, 64).transpose(0, 2, 1, 3)
    mixed = attention(*(heads(x @ p[i] + p[i + 1]) for i in (0, 2, 4))).transpose(0, 2, 1, 3).reshape(8, 128, 256)
    h = standardized(-1)(x + mixed @ p[6] + p[7], 1 + p[8], p[9])
    return standardized(-1)(h + jax.nn.gelu(h @ p[10] + p[11], approximate=False) @ p[12] + p[13], 1 + p[14], p[15])


def squared_error(x, y):
    return jnp.square(x - y).mean()


BLOCK = [(256, 256), (256,)] * 4 + [(256,), (256,), (256, 1024), (1024,), (1024, 256), (256,), (256,), (256,)]
for batch in MLP_BATCHES:
    workload(f"training.mlp_b{batch}")(lambda n=batch: training(mlp_weights(), mlp, uniform(n, 28, 28), indices(n, 10)))
    workload(f"training.mlp_inference_b{batch}")(
        lambda n=batch: (lambda p, x, call: lambda: call(p, x))(mlp_weights(), uniform(n, 28, 28), jax.jit(mlp)))
each("training", {
    "xor_b4": lambda: training(weights((2, 16), (16,), (16, 1), (1,)),
                               lambda p, x, key: jnp.tanh(x @ p[0] + p[1]) @ p[2] + p[3], uniform(4, 2), uniform(4, 1), squared_error),
    "lenet_nhwc_b128": lambda: training(weights((3, 3, 1, 32), (32,), (3, 3, 32, 64), (64,), (1600, 128), (128,), (128, 10), (10,)),
                                        lenet, uniform(128, 28, 28, 1), indices(128, 10)),
    "lstm_128_of_28_steps_b128": lambda: training(weights((28, 512), (128, 512), (512,), (128, 10), (10,)), lstm,
                                                  uniform(128, 28, 28), indices(128, 10)),
    "transformer_256_b8": lambda: training(weights(*BLOCK), transformer, uniform(8, 128, 256), uniform(8, 128, 256), squared_error),
})
both("training", "attention_8x4x128x64", attention, *[(8, 4, 128, 64)] * 3)


# ---- Optimizers
def steps(sizes):
    parameters, gradients = tensors(sizes), tensors(sizes)
    call = jax.jit(adam_step, donate_argnums=(0, 1))
    held = [(adam(parameters), parameters)]

    def run():
        held[0] = call(*held[0], gradients)
        return held[0]
    return run


def clip(*gradients):
    norm = jnp.sqrt(sum(jnp.square(g).sum() for g in gradients))
    return [g * jnp.minimum(1, 1 / norm) for g in gradients]


for tag, sizes in PARAMETERS.items():
    workload(f"optimizer.adam_{tag}")(lambda sizes=sizes: steps(sizes))
workload("optimizer.clip_by_global_norm_10M_in_100")(of(clip, *PARAMETERS["10M_in_100"]))


# ---- Random numbers and processes
def drawn(op):
    def make():
        call, key = jax.jit(op), jax.random.key(0)
        return lambda: call(key)
    return make


def dropout(x):
    return jnp.where(jax.random.bernoulli(jax.random.key(0), 0.8, x.shape), x / 0.8, 0)


both("random", "dropout_16M", dropout, M16)
each("random", {
    "uniform_16M": drawn(lambda key: jax.random.uniform(key, (M16,), jnp.float32)),
    "normal_16M": drawn(lambda key: jax.random.normal(key, (M16,), jnp.float32)),
    "truncated_normal_16M": drawn(lambda key: jax.random.truncated_normal(key, -2, 2, (M16,), jnp.float32)),
    "bernoulli_16M": drawn(lambda key: jax.random.bernoulli(key, 0.8, (M16,)).astype(jnp.float32)),
    "dropout_65536": of(dropout, 128 * 512),
    "permutation_1M": drawn(lambda key: jax.random.permutation(key, M1)),
})
harness.first_step(args, lambda: (lambda run: lambda: jax.block_until_ready(run()))(
    training(mlp_weights(), mlp, uniform(32, 28, 28), indices(32, 10))))
harness.main(args, "JAX", jax.__version__, jax.block_until_ready, lambda: allow_double(False))
