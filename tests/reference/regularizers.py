"""Regularizers: the tensor, then Keras' arguments."""
from words import F, family

regularizer = family("regularizer")

regularizer("L2", F(3, 4))
regularizer("L2", F(2, 1, 3), l2=0.3)
regularizer("L2", F())

regularizer("L1", F(3, 2))
regularizer("L1", F(3, 2), l1=0.3)
regularizer("L1L2", F(3, 2), l1=0.3, l2=0.2)
regularizer("OrthogonalRegularizer", F(4, 3))
regularizer("OrthogonalRegularizer", F(4, 3), factor=0.5, mode="columns")
