"""TensorFlow on the workloads of eddy_bench: op by op, or with --function each run compiled by tf.function."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import harness  # noqa: E402
from harness import CALLS, FILE_ELEMENTS, FILE_VARIABLES, M1, M16, each, repeated, workload  # noqa: E402
from shapes import (CONVOLUTIONS, EINSUMS, LINE_CONVOLUTIONS, MATRICES, MLP_BATCHES, PARAMETERS, PRODUCTS, RESIZES,  # noqa: E402
                    operands, stored)  # noqa: E402

args = harness.options("--function")
import tensorflow as tf  # noqa: E402

tf.config.threading.set_intra_op_parallelism_threads(args.threads)
tf.config.threading.set_inter_op_parallelism_threads(args.threads)
L = tf.keras.layers


def numbers(*shape, dtype=tf.float32):
    return tf.random.uniform(shape, -2, 2, dtype)


def indices(n, below, dtype=tf.int32):
    return tf.random.uniform((n,), maxval=below, dtype=dtype)


def compiled(run):
    return tf.function(run) if args.function else run


def of(op, *shapes):
    """Makes op of tensors of those shapes."""
    def make():
        xs = [numbers(*(shape if isinstance(shape, tuple) else (shape,))) for shape in shapes]
        call = compiled(op)
        return lambda: call(*xs)
    return make


def given(op, value):
    """Makes op of a constant that is an argument: of one inside, a compiled function computes the
    result once for all calls."""
    def make():
        x, call = tf.constant(value), compiled(op)
        return lambda: call(x)
    return make


def gradient_of(op, *shapes):
    """The same with the gradients by all of them, from random ones of the result on. The result is
    returned, too: a compiled function leaves out what is computed for nothing."""
    def make():
        xs = [numbers(*(shape if isinstance(shape, tuple) else (shape,))) for shape in shapes]
        dy = numbers(*op(*xs).shape)

        def both(*xs):
            with tf.GradientTape() as tape:
                tape.watch(xs)
                y = op(*xs)
            return y, tape.gradient(y, xs, dy)
        call = compiled(both)
        return lambda: call(*xs)
    return make


# ---- Dispatch, which a compiled function has none of but for the chains
def chain(size, op, back):
    def make():
        x, b = tf.ones(size), tf.ones(size)

        def run():
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = x
                for _ in range(CALLS):
                    y = op(y, b)
            return tape.gradient(y, x) if back else y
        return compiled(run)
    return make


def recorded(size):
    x, b = tf.ones(size), tf.ones(size)
    add = repeated(lambda: x + b)

    def run():
        with tf.GradientTape() as tape:
            tape.watch(x)
            return add()
    return run


for size in (1, 64):
    workload(f"dispatch.chain_add_{size}", CALLS)(chain(size, tf.add, False))
    workload(f"dispatch.chain_add_{size}_grad", CALLS)(chain(size, tf.add, True))
    workload(f"dispatch.chain_mul_{size}_grad", CALLS)(chain(size, tf.multiply, True))
    if not args.function:
        workload(f"dispatch.add_{size}", CALLS)(lambda n=size: (lambda a, b: repeated(lambda: a + b))(tf.ones(n), tf.ones(n)))
        workload(f"dispatch.add_{size}_recorded", CALLS)(lambda n=size: recorded(n))
        workload(f"dispatch.assign_add_{size}", CALLS)(
            lambda n=size: (lambda v, b: repeated(lambda: v.assign_add(b)))(tf.Variable(tf.ones(n)), tf.ones(n)))
if not args.function:
    for name, op in {"sum_64": tf.reduce_sum, "exp_64": tf.exp, "reshape_64": lambda x: tf.reshape(x, (8, 8)),
                     "slice_64": lambda x: x[3:9], "item_64": lambda x: float(x[0]), "zeros_64": lambda x: tf.zeros(64)}.items():
        workload(f"dispatch.{name}", CALLS)(lambda op=op: (lambda x: repeated(lambda: op(x)))(tf.ones(64)))
    workload("dispatch.matmul_8", CALLS)(lambda: (lambda x: repeated(lambda: x @ x))(tf.ones((8, 8))))

# ---- Elementwise
UNARY = {"exp": tf.exp, "sin": tf.sin, "erf": tf.math.erf, "cast_to_double": lambda x: tf.cast(x, tf.float64), "relu": tf.nn.relu,
         "tanh": tf.tanh, "sigmoid": tf.sigmoid, "gelu": tf.nn.gelu, "gelu_tanh": lambda x: tf.nn.gelu(x, True), "silu": tf.nn.silu,
         "softplus": tf.nn.softplus}
POSITIVE = {"sqrt": tf.sqrt, "log": tf.math.log, "pow_2.5": lambda x: tf.pow(x, 2.5)}
SEVERAL = {"add": lambda a, b, c, p, m: a + b, "mul": lambda a, b, c, p, m: a * b, "div": lambda a, b, c, p, m: b / p,
           "mul_add": lambda a, b, c, p, m: a * b + c, "fma": lambda a, b, c, p, m: a * b + c,
           "where": lambda a, b, c, p, m: tf.where(m, a, b),
           "greater": lambda a, b, c, p, m: a > b}


def several(op, n):
    def make():
        a, b, c = numbers(n), numbers(n), numbers(n)
        p, m, call = tf.abs(a) + 0.1, a > 0, compiled(op)
        return lambda: call(a, b, c, p, m)
    return make


def assign_add(n):
    v, b = tf.Variable(numbers(n)), numbers(n)
    return compiled(lambda: v.assign_add(b))


for size, n in (("1M", M1), ("16M", M16)):
    for name, op in UNARY.items():
        workload(f"elementwise.{name}_{size}")(of(op, n))
        if name in ("relu", "tanh", "sigmoid", "gelu", "silu", "softplus"):
            workload(f"elementwise.{name}_{size}_grad")(gradient_of(op, n))
    for name, op in POSITIVE.items():
        def make(op=op, n=n):
            x, call = tf.random.uniform((n,)) + 0.1, compiled(op)
            return lambda: call(x)
        workload(f"elementwise.{name}_{size}")(make)
    for name, op in SEVERAL.items():
        workload(f"elementwise.{name}_{size}")(several(op, n))
    workload(f"elementwise.assign_add_{size}")(lambda n=n: assign_add(n))
for n in (1024, 4096):
    workload(f"elementwise.add_column_row_{n}")(of(tf.add, (n, 1), (1, n)))
workload("elementwise.bias_add_8192x512")(of(tf.nn.bias_add, (8192, 512), (512,)))
workload("elementwise.add_transposed_4096")(of(lambda a, b: tf.transpose(a) + b, (4096, 4096), (4096, 4096)))

# ---- Reductions
for name, op in {"sum": tf.reduce_sum, "max": tf.reduce_max, "variance": tf.math.reduce_variance}.items():
    for tag, axis in (("all", None), ("axis0", 0), ("axis1", 1)):
        workload(f"reduction.{name}_{tag}_4096x4096")(of(lambda x, op=op, axis=axis: op(x, axis), (4096, 4096)))
each("reduction", {
    "argmax_all_4096x4096": of(lambda x: tf.argmax(tf.reshape(x, (-1,))), (4096, 4096)),
    "argmax_axis0_4096x4096": of(lambda x: tf.argmax(x, 0), (4096, 4096)),
    "argmax_axis1_4096x4096": of(lambda x: tf.argmax(x, 1), (4096, 4096)),
    "argmax_axis1_5000x10": of(lambda x: tf.argmax(x, 1), (5000, 10)),
    "mean_all_4096x4096": of(tf.reduce_mean, (4096, 4096)),
    "norm_all_4096x4096": of(tf.norm, (4096, 4096)),
    "logsumexp_axis1_4096x4096": of(lambda x: tf.reduce_logsumexp(x, 1), (4096, 4096)),
    "sum_axis0_32x512": of(lambda x: tf.reduce_sum(x, 0), (32, 512)),
    "sum_axis1_32x512": of(lambda x: tf.reduce_sum(x, 1), (32, 512)),
    "cumsum_axis0_4096x4096": of(lambda x: tf.cumsum(x, 0), (4096, 4096)),
    "cumsum_axis1_4096x4096": of(lambda x: tf.cumsum(x, 1), (4096, 4096)),
    "sort_1M": of(tf.sort, M1),
    "sort_axis1_1024x1024": of(tf.sort, (1024, 1024)),
    "argsort_gather_1M": of(lambda x: tf.gather(x, tf.argsort(x)), M1),
    "top_10_of_1M": of(lambda x: tf.math.top_k(x, 10), M1),
    "top_10_axis1_1024x1024": of(lambda x: tf.math.top_k(x, 10), (1024, 1024)),
})


def layer_norm(x, gamma, beta):
    mean, variance = tf.nn.moments(x, 1, keepdims=True)
    return tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-3)


def batch_norm(x, gamma, beta):
    return tf.squeeze(tf.compat.v1.nn.fused_batch_norm(x[:, None, None], gamma, beta, epsilon=1e-3)[0], (1, 2))


def rms_norm(x, gamma):
    return x * tf.math.rsqrt(tf.reduce_mean(tf.square(x), 1, keepdims=True) + 1e-6) * gamma


def both(group, name, op, *shapes):
    workload(f"{group}.{name}")(of(op, *shapes))
    workload(f"{group}.{name}_grad")(gradient_of(op, *shapes))


for shape in ((8192, 1000), (32, 10)):
    y, tag = indices(*shape), "x".join(map(str, shape))
    both("reduction", f"softmax_{tag}", tf.nn.softmax, shape)
    both("reduction", f"log_softmax_{tag}", tf.nn.log_softmax, shape)
    both("reduction", f"cross_entropy_{tag}",
         lambda x, y=y: tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, x)), shape)
workload("reduction.softmax_8192x1000_full_cache")(of(tf.nn.softmax, (8192, 1000)))
both("reduction", "layer_norm_8192x512", layer_norm, (8192, 512), (512,), (512,))
both("reduction", "batch_norm_8192x512", batch_norm, (8192, 512), (512,), (512,))
both("reduction", "rms_norm_8192x512", rms_norm, (8192, 512), (512,))


# ---- Products and convolutions
def product(a_shape, b_shape, ta, tb, double):
    def make():
        dtype = tf.float64 if double else tf.float32
        a, b = numbers(*stored(a_shape, ta), dtype=dtype), numbers(*stored(b_shape, tb), dtype=dtype)
        call = compiled(lambda a, b: tf.matmul(a, b, ta, tb))
        return lambda: call(a, b)
    return make


for name, row in PRODUCTS.items():
    workload(f"product.{name}")(product(*row))
for name, (equation, a_shape, b_shape) in EINSUMS.items():
    workload(f"product.{name}")(of(lambda a, b, e=equation: tf.einsum(e, a, b), a_shape, b_shape))
workload("product.dense_relu_128x784x512")(
    of(lambda x, w, b: tf.nn.relu(tf.nn.bias_add(x @ w, b)), (128, 784), (784, 512), (512,)))

METHODS = {"cholesky": tf.linalg.cholesky, "solve": tf.linalg.solve, "inv": tf.linalg.inv, "qr": tf.linalg.qr,
           "svd": tf.linalg.svd, "eigh": tf.linalg.eigh}


def positive(x):
    return tf.matmul(x, x, transpose_b=True) / x.shape[-1] + tf.eye(x.shape[-1])


for name, row in MATRICES.items():
    workload(f"linalg.{name}")(lambda row=row: (lambda call, xs: lambda: call(*xs))(
        compiled(METHODS[row[0]]), operands(row, numbers, positive)))


def convolution(stride, dilation, depthwise):
    def call(x, w, b):
        if depthwise:
            return tf.nn.bias_add(tf.nn.depthwise_conv2d(x, w, (1, stride, stride, 1), "SAME"), b)
        return tf.nn.bias_add(tf.nn.conv2d(x, w, stride, "SAME", dilations=dilation), b)
    return call


for name, (batch, size, cin, k, cout, stride, dilation, groups) in CONVOLUTIONS.items():
    depthwise = groups == cin and cin > 1
    kernel = (k, k, cin, 1) if depthwise else (k, k, cin // groups, cout)
    both("convolution", f"{name}_nhwc", convolution(stride, dilation, depthwise), (batch, size, size, cin), kernel, (cout,))
for name, (cin, k, cout, batch, sizes) in LINE_CONVOLUTIONS.items():
    both("convolution", name, lambda x, w, n=len(sizes): (tf.nn.conv1d(x, w, 1, "VALID") if n == 1
                                                          else tf.nn.conv3d(x, w, (1,) * 5, "VALID")),
         (batch, *sizes, cin), (*(k,) * len(sizes), cin, cout))
for name, (batch, size, to, channels) in RESIZES.items():
    both("image", name, lambda x, to=to: tf.image.resize(x, (to, to)), (batch, size, size, channels))
IMAGE = (32, 56, 56, 64)
both("convolution", "max_pool2d_32x56x56x64_nhwc", lambda x: tf.nn.max_pool2d(x, 2, 2, "VALID"), IMAGE)
both("convolution", "avg_pool2d_32x56x56x64_nhwc", lambda x: tf.nn.avg_pool2d(x, 2, 2, "VALID"), IMAGE)
both("convolution", "batch_norm_32x56x56x64_nhwc",
     lambda x, gamma, beta: tf.compat.v1.nn.fused_batch_norm(x, gamma, beta, epsilon=1e-3)[0], IMAGE, (64,), (64,))

# ---- Copies and indexing
IMAGE = (32, 64, 56, 56)
for tag in ("", "_full_cache"):
    workload(f"copy.nchw_to_nhwc_32x64x56x56{tag}")(of(lambda x: tf.transpose(x, (0, 2, 3, 1)), IMAGE))
each("copy", {
    "transpose_4096x4096": of(tf.transpose, (4096, 4096)),
    "heads_8x128x4x64": of(lambda x: tf.transpose(x, (0, 2, 1, 3)), (8, 128, 4, 64)),
    "zeros_16M": given(tf.zeros, [M16]),
    "full_16M": given(lambda value: tf.fill((M16,), value), 1.5),
    "concat_axis0_4x1024x4096": of(lambda *xs: tf.concat(xs, 0), *[(1024, 4096)] * 4),
    "concat_axis1_4x4096x1024": of(lambda *xs: tf.concat(xs, 1), *[(4096, 1024)] * 4),
    "slice_columns_4096x4096": of(lambda x: x[:, 1:2049], (4096, 4096)),
    "every_other_column_4096x4096": of(lambda x: x[:, ::2], (4096, 4096)),
    "pad_32x64x56x56": of(lambda x: tf.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), IMAGE),
    "tile_4x4_1024x1024": of(lambda x: tf.tile(x, (4, 4)), (1024, 1024)),
})


def with_indices(op, shape, n, below, *, reshape=None):
    def make():
        x, i, call = numbers(*shape), indices(n, below), compiled(op)
        i = tf.reshape(i, reshape) if reshape else i
        return lambda: call(x, i)
    return make


def masked(op, above):
    def make():
        x, call = numbers(M16), compiled(op)
        mask = x > above
        return lambda: call(x, mask)
    return make


def scatter_add():
    v, x, i = tf.Variable(tf.zeros(M1)), numbers(M1), indices(M1, M1)
    return compiled(lambda: v.scatter_add(tf.IndexedSlices(x, i)))


def embedding():
    table, rows, dy, sgd = tf.Variable(numbers(100000, 64)), indices(16384, 100000), numbers(16384, 64), tf.keras.optimizers.SGD(0.5)
    sgd.build([table])

    def run():
        with tf.GradientTape() as tape:
            y = tf.gather(table, rows)
        sgd.apply_gradients([(tape.gradient(y, table, dy), table)])
        return y  # which a compiled function would leave out
    return compiled(run)


each("indexing", {
    "one_hot_65536_of_100": with_indices(lambda x, i: tf.one_hot(i, 100), (1,), 65536, 100),
    "take_along_axis1_256_of_4096x4096": with_indices(
        lambda x, i: tf.gather(x, i, batch_dims=1), (4096, 4096), 4096 * 256, 4096, reshape=(4096, 256)),
    "gather_16384_of_100000x64": with_indices(tf.gather, (100000, 64), 16384, 100000),
    "boolean_mask_16M": masked(tf.boolean_mask, 0),
    "nonzero_16M": masked(lambda x, mask: tf.where(mask), 1.6),
    "scatter_add_1M_into_1M": scatter_add,
    "embedding_sgd_16384_of_100000x64": embedding,
    "segment_sum_1M_into_100": with_indices(lambda x, i: tf.math.unsorted_segment_sum(x, i, 100), (M1,), M1, 100),
    "dynamic_partition_1M_into_8": with_indices(lambda x, i: tf.dynamic_partition(x, i, 8), (M1,), M1, 8),
    "unique_1M_of_10000": with_indices(lambda x, i: tf.unique(i), (1,), M1, 10000),
})

# ---- Training
CROSS_ENTROPY = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def training(model, x, y, loss=CROSS_ENTROPY):
    adam = tf.keras.optimizers.Adam(1e-3)
    model(x)
    adam.build(model.trainable_variables)

    def run():
        with tf.GradientTape() as tape:
            value = loss(y, model(x, training=True))
        adam.apply_gradients(zip(tape.gradient(value, model.trainable_variables), model.trainable_variables))
        return value
    return compiled(run)


def labels(batch):
    return indices(batch, 10)


def mlp():
    return tf.keras.Sequential([L.Flatten(), L.Dense(512, activation="relu"), L.Dropout(0.2), L.Dense(10)])


def inference(batch):
    model, x = mlp(), tf.random.uniform((batch, 28, 28))
    model(x)
    call = compiled(lambda: model(x))
    return call


def lenet():
    model = tf.keras.Sequential([L.Conv2D(32, 3, activation="relu"), L.MaxPooling2D(), L.Conv2D(64, 3, activation="relu"),
                                 L.MaxPooling2D(), L.Flatten(), L.Dense(128, activation="relu"), L.Dense(10)])
    return training(model, tf.random.uniform((128, 28, 28, 1)), labels(128))


def transformer():
    x = tf.keras.Input((128, 256))
    h = L.LayerNormalization(epsilon=1e-5)(x + L.MultiHeadAttention(4, 64)(x, x))
    y = L.LayerNormalization(epsilon=1e-5)(h + L.Dense(256)(L.Dense(1024, activation="gelu")(h)))
    return training(tf.keras.Model(x, y), tf.random.uniform((8, 128, 256)), tf.random.uniform((8, 128, 256)),
                    tf.keras.losses.MeanSquaredError())


for batch in MLP_BATCHES:
    workload(f"training.mlp_b{batch}")(lambda n=batch: training(mlp(), tf.random.uniform((n, 28, 28)), labels(n)))
    workload(f"training.mlp_inference_b{batch}")(lambda n=batch: inference(n))
each("training", {
    "xor_b4": lambda: training(tf.keras.Sequential([L.Dense(16, activation="tanh"), L.Dense(1)]), tf.random.uniform((4, 2)),
                               tf.random.uniform((4, 1)), tf.keras.losses.MeanSquaredError()),
    "lenet_nhwc_b128": lenet,
    "lstm_128_of_28_steps_b128": lambda: training(
        tf.keras.Sequential([L.LSTM(128), L.Dense(10)]), tf.random.uniform((128, 28, 28)), labels(128)),
    "transformer_256_b8": transformer,
})
both("training", "attention_8x4x128x64", lambda q, k, v: tf.nn.softmax(tf.matmul(q, k, transpose_b=True) / 8) @ v,
     *[(8, 4, 128, 64)] * 3)

# ---- Optimizers
OPTIMIZERS = {"adam": lambda: tf.keras.optimizers.Adam(1e-3),
              "adamw": lambda: tf.keras.optimizers.AdamW(1e-3, weight_decay=0.01),
              "adam_global_clipnorm": lambda: tf.keras.optimizers.Adam(1e-3, global_clipnorm=1.0),
              "sgd": lambda: tf.keras.optimizers.SGD(1e-3),
              "sgd_momentum": lambda: tf.keras.optimizers.SGD(1e-3, momentum=0.9),
              "rmsprop": lambda: tf.keras.optimizers.RMSprop(1e-3)}


def steps(make, sizes):
    variables, gradients, optimizer = [tf.Variable(numbers(n)) for n in sizes], [numbers(n) for n in sizes], make()
    optimizer.build(variables)
    return compiled(lambda: optimizer.apply_gradients(zip(gradients, variables)))


def clip():
    gradients = [numbers(n) for n in PARAMETERS["10M_in_100"]]
    return compiled(lambda: tf.clip_by_global_norm(gradients, 1.0)[0])


for name, make in OPTIMIZERS.items():
    for tag, sizes in PARAMETERS.items():
        workload(f"optimizer.{name}_{tag}")(lambda make=make, sizes=sizes: steps(make, sizes))
workload("optimizer.clip_by_global_norm_10M_in_100")(clip)


# ---- Random numbers, files, processes
def drawn(op):
    return lambda: compiled(op)


each("random", {
    "uniform_16M": drawn(lambda: tf.random.uniform((M16,))),
    "normal_16M": drawn(lambda: tf.random.normal((M16,))),
    "truncated_normal_16M": drawn(lambda: tf.random.truncated_normal((M16,))),
    "bernoulli_16M": drawn(lambda: tf.cast(tf.random.uniform((M16,)) < 0.8, tf.float32)),
    "dropout_16M": of(lambda x: tf.nn.dropout(x, 0.2), M16),
    "dropout_16M_grad": gradient_of(lambda x: tf.nn.dropout(x, 0.2), M16),
    "dropout_65536": of(lambda x: tf.nn.dropout(x, 0.2), 128 * 512),
    "permutation_1M": drawn(lambda: tf.random.shuffle(tf.range(M1))),
})


def checkpoint():
    saved = tf.train.Checkpoint(model=[tf.Variable(numbers(FILE_ELEMENTS)) for _ in range(FILE_VARIABLES)])
    return saved.write, saved.read


def settle(result):
    """A number is there when it can be read; ops on the processor have ended by then."""
    if tf.is_tensor(result) and result.shape.rank == 0:
        result.numpy()


if not args.function:
    harness.files(checkpoint)
    harness.first_step(args, lambda: training(mlp(), tf.random.uniform((32, 28, 28)), labels(32)))
harness.main(args, "TensorFlow" + (" function" if args.function else ""), tf.__version__, settle, lambda: tf.random.set_seed(0))
