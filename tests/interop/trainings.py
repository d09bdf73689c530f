"""Trainings begun on one side and gone on with on the other: the same model, optimizer and batches, losses that agree."""
import importlib.util

import keras
import numpy as np
import safetensors.numpy
import tensorflow as tf
from common import check, eddy, part, path_of, skip

BEFORE, ALL, BATCH, CLASSES = 3, 8, 12, 4
TOLERANCE = 1e-5


# ---- Models, by Keras 3 or by Keras 2 (tf_keras): interop.c has the same by the same names


def dense(k):
    layers = [k.layers.Dense(16, activation="relu"), k.layers.BatchNormalization(momentum=0.9), k.layers.Dense(CLASSES)]
    return k.Sequential(layers), k.optimizers.Adam(0.01)


def amsgrad(k):
    return k.Sequential([k.layers.Dense(12, activation="tanh"), k.layers.Dense(CLASSES)]), k.optimizers.Adam(0.01, amsgrad=True)


def conv(k):
    """A functional model."""
    x = inputs = k.Input((9, 8, 3))
    x = k.layers.Conv2D(6, 3, strides=2, padding="same", activation="relu")(x)
    x = k.layers.Dense(CLASSES)(k.layers.GlobalAveragePooling2D()(x))
    return k.Model(inputs, x), k.optimizers.SGD(0.05, momentum=0.9, nesterov=True)


def graph(k):
    """A functional model with a layer that is called twice: Keras counts its layers by depth."""
    x = inputs = k.Input((10,))
    shared = k.layers.Dense(6, activation="tanh")
    both = k.layers.Concatenate()([shared(x), shared(k.layers.Dense(10)(x))])
    x = k.layers.Dense(CLASSES)(k.layers.BatchNormalization(momentum=0.9)(both))
    return k.Model(inputs, x), k.optimizers.Adam(0.01)


def precise(k):
    """A subclassed model in float64, its layers found by attributes."""

    class Two(k.Model):
        def __init__(self):
            super().__init__(dtype="float64")
            self.first = k.layers.Dense(8, activation="tanh", dtype="float64")
            self.second = k.layers.Dense(2, dtype="float64")

        def call(self, x):
            return self.second(self.first(x))

        def build(self, shape):
            self.first.build(shape)
            self.second.build((None, 8))
            self.built = True

    return Two(), k.optimizers.RMSprop(0.003, momentum=0.5, centered=True)


INPUTS = {"dense": (10,), "amsgrad": (10,), "conv": (9, 8, 3), "graph": (10,), "precise": (6,)}
MODELS = {"dense": dense, "amsgrad": amsgrad, "conv": conv, "graph": graph, "precise": precise}


def write_batches(name):
    random = np.random.default_rng(sorted(MODELS).index(name))
    dtype = "float64" if name == "precise" else "float32"
    x = random.standard_normal((ALL, BATCH, *INPUTS[name])).astype(dtype)
    y = random.standard_normal((ALL, BATCH, 2)) if name == "precise" else random.integers(0, CLASSES, (ALL, BATCH), "int32")
    safetensors.numpy.save_file({"x": x, "y": y}, path_of(f"{name}.safetensors"))
    return x, y


# ---- Keras' side


class Training:
    def __init__(self, name, k, built):
        k.backend.set_floatx("float64" if name == "precise" else "float32")  # that of the learning rate
        self.model, self.optimizer = MODELS[name](k)
        self.step = tf.Variable(0, dtype=tf.int64)
        self.checkpoint = tf.train.Checkpoint(model=self.model, optimizer=self.optimizer, step=self.step)
        if built:
            self.model.build((None, *INPUTS[name]))
            self.optimizer.build(self.model.trainable_variables)

    def loss(self, x, y):
        out = self.model(x, training=True)
        if y.dtype == np.int32:
            return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, out))
        return tf.reduce_mean(tf.square(out - y))

    def until(self, end, x, y):
        losses = []
        for i in range(int(self.step), end):
            with tf.GradientTape() as tape:
                loss = self.loss(x[i], y[i])
            variables = self.model.trainable_variables
            self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
            self.step.assign_add(1)
            losses.append(float(loss))
        return losses


def agree(actual, expected, count=ALL - BEFORE):
    actual, expected = np.array(actual), np.array(expected)
    assert len(actual) == len(expected) == count, f"{len(actual)} and {len(expected)} losses"
    worst = np.max(np.abs(actual / expected - 1))
    assert worst <= TOLERANCE, f"losses differ by {worst:.2g}: {actual} and {expected}"
    agree.worst = max(agree.worst, worst)


agree.worst = 0.0


def losses_of(text):
    return [float(line) for line in text.split()]


def eddy_begins(name):
    """Eddy's losses after the checkpoint that it left in eddy-NAME."""
    return losses_of(eddy("train", name, path_of(f"{name}.safetensors"), BEFORE, path_of(f"eddy-{name}")))[BEFORE:]


def to_keras_3(name, x, y):
    expected = eddy_begins(name)
    for built in True, False:
        when = "there" if built else "made later"
        with check(f"training: {name}, Eddy begins, Keras 3 goes on, its weights {when}"):
            training = Training(name, keras, built)
            status = training.checkpoint.read(path_of(f"eddy-{name}"))
            agree(training.until(ALL, x, y), expected)
            assert training.step.numpy() == ALL
            status.assert_existing_objects_matched()
            if built:
                status.assert_consumed()


def to_keras_2(name, tf_keras, x, y):
    """Models only, and those whose weights are there: Keras 2's optimizers number their variables in another way (they don't take Keras 3's
    checkpoints either), and its layers, as long as they have no weights, are numbered from the input layer, which Eddy doesn't have."""
    expected = eddy_begins(name)
    with check(f"training: {name}, Eddy begins, its model is right in Keras 2"):
        training = Training(name, tf_keras, True)
        status = tf.train.Checkpoint(model=training.model, step=training.step).read(path_of(f"eddy-{name}"))
        status.assert_existing_objects_matched()
        agree(training.until(BEFORE + 1, x, y), expected[:1], count=1)


def to_eddy(name, label, k, x, y):
    keras.utils.set_random_seed(3)
    training = Training(name, k, True)
    training.until(BEFORE, x, y)
    path = training.checkpoint.write(path_of(f"{label}-{name}"))
    theirs = training.until(ALL, x, y)
    for option, when in ("built", "there"), ("waiting", "made later"):
        with check(f"training: {name}, {label} begins, Eddy goes on, its weights {when}"):
            agree(losses_of(eddy("go-on", name, path_of(f"{name}.safetensors"), path, option)), theirs)


def run():
    with part("trainings with Keras 3"):
        for name in MODELS:
            x, y = write_batches(name)
            to_keras_3(name, x, y)
            to_eddy(name, "Keras 3", keras, x, y)
    if not importlib.util.find_spec("tf_keras"):
        skip("trainings with Keras 2", "there is no tf_keras")
    else:
        import tf_keras

        with part("trainings with Keras 2"):
            for name in MODELS:
                x, y = write_batches(name)
                to_keras_2(name, tf_keras, x, y)
                to_eddy(name, "Keras 2", tf_keras, x, y)
    print(f"  losses agree to {agree.worst:.1g}")
