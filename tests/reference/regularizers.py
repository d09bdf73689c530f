"""Regularizers: the tensor, then Keras' arguments."""
from words import F, family

regularizer = family("regularizer")

regularizer("L2", F(3, 4))
regularizer("L2", F(2, 1, 3), l2=0.3)
regularizer("L2", F())
