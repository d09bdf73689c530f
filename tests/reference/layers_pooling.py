"""Pooling: inputs, then Keras' arguments."""
from words import F, family

layer = family("layer")

layer("MaxPooling2D", F(1, 5, 6, 2))
layer("MaxPooling2D", F(1, 5, 6, 2), padding="same")
layer("MaxPooling2D", F(2, 5, 5, 1), pool_size=3, strides=1, padding="valid")
layer("MaxPooling2D", F(1, 5, 6, 2), pool_size=(3, 2), strides=(1, 2), padding="same")

layer("GlobalAveragePooling2D", F(2, 3, 4, 2))
layer("GlobalAveragePooling2D", F(1, 1, 5, 3))
