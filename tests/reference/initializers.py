"""Initializers: the shape, then Keras' arguments."""
from words import family

initializer = family("initializer")

initializer("Zeros", 3, 2)
initializer("Zeros", 0)
initializer("Ones", 2, 1, 3)
initializer("Constant", 4, value=0.1)
initializer("Constant", 2, 2, value=-3)
initializer("Constant", 3)
