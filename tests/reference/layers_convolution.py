"""Convolutions: inputs, then Keras' arguments."""
from words import F, family

layer = family("layer")

layer("Conv2D", F(1, 5, 6, 2), filters=3, kernel_size=3)
layer("Conv2D", F(1, 5, 6, 2), filters=2, kernel_size=(3, 2), padding="same", activation="relu")
layer("Conv2D", F(2, 5, 6, 1), filters=2, kernel_size=(2, 3), strides=2, padding="same", use_bias=False)
layer("Conv2D", F(1, 6, 5, 2), filters=1, kernel_size=2, strides=(2, 1), padding="valid", activation="tanh")
layer("Conv2D", F(1, 6, 7, 1), filters=2, kernel_size=(2, 3), dilation_rate=2, kernel_initializer="ones", bias_initializer="ones")
layer("Conv2D", F(1, 6, 7, 1), filters=2, kernel_size=3, dilation_rate=(1, 2), padding="same")
