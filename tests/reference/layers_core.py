"""Layers of general use: inputs, then Keras' arguments."""
from words import F, Layer, family

layer = family("layer")

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
