"""Layers that regularize; of random ones what is not random: inputs, then Keras' arguments."""
from words import F, family

layer = family("layer")

layer("Dropout", F(2, 5), rate=0.4)
layer("Dropout", F(2, 5), rate=0.0).call(training=True)
