#!/usr/bin/env python3
"""The workloads of the bench programs on one of the peers, whichever this interpreter can import.

    peers.py torch|tensorflow|jax|numpy [prefix...]

Prints `workload<TAB>seconds`, the median of one run. torch runs eagerly, tensorflow as tf.function,
jax compiled with donated state, which is how each of them is used for training.
"""
import os
import statistics
import sys
import tempfile
import time


def wanted(name):
    return len(sys.argv) < 3 or any(name.startswith(p) for p in sys.argv[2:])


def measure(name, f):
    if not wanted(name):
        return
    for _ in range(3):
        f()
    begin = time.perf_counter()
    f()
    inner = max(1, int(1e-3 / max(time.perf_counter() - begin, 1e-9)))
    seconds, end = [], time.perf_counter() + 1.0
    while len(seconds) < 5 or (time.perf_counter() < end and len(seconds) < 2000):
        begin = time.perf_counter()
        for _ in range(inner):
            f()
        seconds.append((time.perf_counter() - begin) / inner)
    print(f"{name}\t{statistics.median(seconds):.4e}", flush=True)


def each_file(folder, f):
    for path in [os.path.join(folder, name) for name in os.listdir(folder)] + [folder]:
        descriptor = os.open(path, os.O_RDONLY)
        f(descriptor)
        os.close(descriptor)


def measure_files(save, load):
    """400 MB that save(path) writes and load(path) reads. A save ends when all is on disk, as Eddy's does."""
    seconds = {"save": [], "load_cold": [], "load": []}

    def timed(what, f):
        begin = time.perf_counter()
        f()
        seconds[what].append(time.perf_counter() - begin)

    def save_on_disk(folder):
        save(os.path.join(folder, "saved"))
        each_file(folder, os.fsync)

    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            timed("save", lambda: save_on_disk(folder))
            each_file(folder, lambda d: os.posix_fadvise(d, 0, 0, os.POSIX_FADV_DONTNEED))
            timed("load_cold", lambda: load(os.path.join(folder, "saved")))
            timed("load", lambda: load(os.path.join(folder, "saved")))
    for what, times in seconds.items():
        print(f"K.{what}_400MB\t{statistics.median(times):.4e}", flush=True)


def torch_workloads(threads):
    import torch
    torch.set_num_threads(threads)

    def trainer(batch):
        model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 512), torch.nn.ReLU(),
                                    torch.nn.Dropout(0.2), torch.nn.Linear(512, 10))
        adam, loss = torch.optim.Adam(model.parameters(), 1e-3), torch.nn.CrossEntropyLoss()
        x, y = torch.rand(batch, 28, 28), torch.randint(0, 10, (batch,))

        def step():
            adam.zero_grad(set_to_none=True)
            loss(model(x), y).backward()
            adam.step()
        return step

    def adam(count):
        weights = [torch.rand(10_000_000 // count, requires_grad=True) for _ in range(count)]
        for w in weights:
            w.grad = torch.rand_like(w)
        return torch.optim.Adam(weights, 1e-3).step

    one = torch.ones(1)
    measure("A.add_1_nograd", lambda: one + one)
    for b in (32, 128, 500, 5000):
        measure(f"G.mlp_784_512_10_adam_b{b}", trainer(b))
    for count in (1, 100):
        measure(f"H.adam_10M_in_{count}", adam(count))
    if wanted("K"):
        model = {f"w{i}": torch.rand(12_500_000) for i in range(8)}
        measure_files(lambda path: torch.save(model, path), torch.load)


def tensorflow_workloads(threads):
    import tensorflow as tf
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    layers = tf.keras.layers

    def trainer(batch):
        model = tf.keras.Sequential([tf.keras.Input((28, 28)), layers.Flatten(), layers.Dense(512, activation="relu"),
                                     layers.Dropout(0.2), layers.Dense(10)])
        adam = tf.keras.optimizers.Adam(1e-3)
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        x, y = tf.random.uniform((batch, 28, 28)), tf.random.uniform((batch,), maxval=10, dtype=tf.int32)

        @tf.function
        def step():
            with tf.GradientTape() as tape:
                value = loss(y, model(x, training=True))
            adam.apply_gradients(zip(tape.gradient(value, model.trainable_variables), model.trainable_variables))
            return value
        return lambda: step().numpy()

    one = tf.ones(1)
    measure("A.add_1_nograd", lambda: one + one)
    for b in (32, 128, 500, 5000):
        measure(f"G.mlp_784_512_10_adam_b{b}", trainer(b))
    if wanted("K"):
        checkpoint = tf.train.Checkpoint(model=[tf.Variable(tf.random.uniform((12_500_000,))) for _ in range(8)])
        measure_files(checkpoint.write, checkpoint.read)


def jax_workloads(threads):
    import jax
    import jax.numpy as jnp
    import optax

    def random(*shape):
        return jax.random.uniform(jax.random.key(0), shape)

    def updates(step, *state):
        held = {"state": state}

        def run():
            held["state"] = step(*held["state"])
            jax.block_until_ready(held["state"])
        return run

    def trainer(batch):
        params = [random(784, 512) * 0.1, jnp.zeros(512), random(512, 10) * 0.1, jnp.zeros(10)]
        x, y, adam = random(batch, 784), jax.random.randint(jax.random.key(3), (batch,), 0, 10), optax.adam(1e-3)

        def loss(p, key):
            h = jax.nn.relu(x @ p[0] + p[1])
            h = jnp.where(jax.random.bernoulli(key, 0.8, h.shape), h / 0.8, 0)
            return optax.softmax_cross_entropy_with_integer_labels(h @ p[2] + p[3], y).mean()

        def step(p, o, key):
            key, sub = jax.random.split(key)
            change, o = adam.update(jax.grad(loss)(p, sub), o, p)
            return optax.apply_updates(p, change), o, key
        return updates(jax.jit(step, donate_argnums=(0, 1, 2)), params, adam.init(params), jax.random.key(1))

    def adam(count):
        weights = [random(10_000_000 // count) for _ in range(count)]
        gradients, opt = [random(10_000_000 // count) for _ in range(count)], optax.adam(1e-3)

        def step(p, o):
            change, o = opt.update(gradients, o, p)
            return optax.apply_updates(p, change), o
        return updates(jax.jit(step, donate_argnums=(0, 1)), weights, opt.init(weights))

    one = jnp.ones(1)
    measure("A.add_1_nograd", lambda: one + one)
    for b in (32, 128, 500, 5000):
        measure(f"G.mlp_784_512_10_adam_b{b}", trainer(b))
    for count in (1, 100):
        measure(f"H.adam_10M_in_{count}", adam(count))


def numpy_workloads(threads):
    import numpy as np

    def load(path):
        with np.load(path) as file:
            return [file[name] for name in file]

    def save(path):
        with open(path, "wb") as file:
            np.savez(file, *model)

    if wanted("K"):
        model = [np.random.default_rng(i).random(12_500_000, np.float32) for i in range(8)]
        measure_files(save, load)


if __name__ == "__main__":
    workloads = {"torch": torch_workloads, "tensorflow": tensorflow_workloads, "jax": jax_workloads, "numpy": numpy_workloads}
    workloads[sys.argv[1]](int(os.environ.get("OMP_NUM_THREADS", os.cpu_count())))
