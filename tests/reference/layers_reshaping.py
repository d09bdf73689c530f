"""Layers that reshape: inputs, then Keras' arguments."""
from words import F, I, family

layer = family("layer")

layer("Flatten", F(2, 3, 4))
layer("Flatten", F(3, 2, 2, 2))
layer("Flatten", F(4))
layer("Flatten", I(2, 3, 2, below=9))
