"""Layers of general use: inputs, then Keras' arguments."""
from words import Constraint, F, I, Layer, Regularizer, V, family

layer = family("layer")


def of(*weights):
    """Initializers, regularizers, constraints of these weights."""
    made = {}
    for i, w in enumerate(weights):
        made |= {w + "_initializer": "he_normal", w + "_regularizer": Regularizer("L2", l2=(i + 1) / 8),
                 w + "_constraint": Constraint("NonNeg")}
    return made


activity = Regularizer("L1", l1=0.5)

layer("Dense", F(2, 4), units=3)
layer("Dense", F(2, 4), units=3, activation="relu")
layer("Dense", F(2, 4), units=3, use_bias=False)
layer("Dense", F(2, 3, 4), units=2, activation="softmax", kernel_initializer="ones", bias_initializer="ones")
layer("Dense", F(1, 40), units=1, activation="tanh")

layer("Activation", F(2, 5, low=-4, high=4), activation="softplus")
layer("Activation", F(2, 3, 4), activation="softmax")
layer("Activation", F(3, low=-4, high=4), activation="gelu")

layer("Sequential", F(2, 4), layers=[Layer("Dense", units=3, activation="relu"), Layer("Dropout", rate=0.5), Layer("Dense", units=2)])
layer("Sequential", F(3, 4), layers=[Layer("Dense", units=3, use_bias=False), Layer("BatchNormalization")]).call(training=True)
layer("Sequential", F(3, 4), layers=[Layer("Dense", units=2), Layer("BatchNormalization")]).call(training=True).loose(
    "the bias changes nothing: its gradient is 0, computed as 1e-8 or 1e-16", magnitude=1)
inner = Layer("Sequential", layers=[Layer("Dense", units=2), Layer("Activation", activation="elu")])
layer("Sequential", F(2, 4, 3), layers=[Layer("BatchNormalization"), Layer("Flatten"), inner])

layer("Embedding", I(2, 3, below=5), input_dim=5, output_dim=2).only("float32")
layer("Embedding", I(2, 4, below=3), input_dim=3, output_dim=2, mask_zero=True).only("float32")
layer("Identity", F(2, 3))
layer("Identity", I(2, 3, 2, below=9))
layer("Masking", F(2, 3, 4))
layer("Masking", V([[[1, 2], [3, 3]], [[3, 1], [0, 0]]]), mask_value=3.0)
layer("EinsumDense", F(2, 3, 4), equation="abc,cde->abde", output_shape=(None, 2, 3), bias_axes="de", activation="tanh").eddy(output_shape=[-1, 2, 3])
layer("EinsumDense", F(2, 3, 4), equation="...x,xy->...y", output_shape=2)
layer("EinsumDense", F(2, 4, 3), equation="ab...,bc->ac...", output_shape=2, bias_axes="c")

layer("Dense", F(2, 4), units=3, activity_regularizer=activity, **of("kernel", "bias") | {"bias_initializer": "ones"}).call(training=True)
layer("Embedding", I(2, 3, below=5), input_dim=5, output_dim=2, **of("embeddings")).only("float32")
layer("EinsumDense", F(2, 4), equation="ab,bc->ac", output_shape=3, bias_axes="c", activity_regularizer=activity,
      **of("kernel", "bias") | {"bias_initializer": "ones"}).call(training=True)
layer("Dense", F(2, 4), units=3, trainable=False, kernel_regularizer="l2")
