"""Activations as layers: inputs, then Keras' arguments."""
from words import B, Constraint, F, Regularizer, family

layer = family("layer")

layer("ReLU", F(3, 5, low=-4, high=4))
layer("ReLU", F(3, 5, low=-4, high=4), max_value=2.5, negative_slope=0.1, threshold=0.75)
layer("ReLU", F(3, 5, low=-4, high=9), max_value=6.0)
layer("LeakyReLU", F(3, 5, low=-4, high=4)).only("float32")  # TensorFlow rounds the slope to float32
layer("LeakyReLU", F(3, 5, low=-4, high=4), negative_slope=0.0625)
layer("ELU", F(3, 5, low=-4, high=4))
layer("ELU", F(3, 5, low=-4, high=4), alpha=0.3)
layer("PReLU", F(3, 5, low=-4, high=4), alpha_initializer="ones", alpha_regularizer=Regularizer("L2", l2=0.1),
      alpha_constraint=Constraint("NonNeg"))
layer("PReLU", F(2, 2, 3, 2, low=-4, high=4), shared_axes=[1, 2])
layer("Softmax", F(3, 5, low=-4, high=4))
layer("Softmax", F(3, 2, 4, low=-4, high=4), axis=1)
layer("Softmax", F(3, 2, 4, low=-4, high=4), axis=[1, 2])
layer("Softmax", F(3, 5, low=-4, high=4)).call(mask=B(3, 5))
layer("Softmax", F(2, 3, 4, low=-4, high=4), axis=[1, 2]).call(mask=B(2, 3, 4))
