"""Normalization: inputs, then Keras' arguments."""
from words import F, family

layer = family("layer")

layer("BatchNormalization", F(4, 3))
layer("BatchNormalization", F(4, 3)).call(training=True)
layer("BatchNormalization", F(2, 3, 2, 2), momentum=0.7, epsilon=0.01).call(training=True)
layer("BatchNormalization", F(5, 2), center=False, momentum=0.0).call(training=True)
layer("BatchNormalization", F(5, 2), scale=False, epsilon=1e-5).call(training=True)
layer("BatchNormalization", F(5, 2), center=False, scale=False)
