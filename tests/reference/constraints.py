"""Constraints: the variable's value, then Keras' arguments."""
from words import F, family

constraint = family("constraint")

constraint("NonNeg", F(3, 4))
constraint("NonNeg", F(2, 1, 3))

constraint("MaxNorm", F(4, 3, low=-3, high=3))
constraint("MaxNorm", F(2, 3, 4, low=-3, high=3), max_value=0.5, axis=[0, 1])
constraint("UnitNorm", F(4, 3))
constraint("UnitNorm", F(4, 3), axis=1)
constraint("MinMaxNorm", F(4, 3, low=-3, high=3))
constraint("MinMaxNorm", F(4, 3, low=-3, high=3), min_value=2.0, max_value=3.0, rate=0.25, axis=-1)
