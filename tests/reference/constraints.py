"""Constraints: the variable's value, then Keras' arguments."""
from words import F, family

constraint = family("constraint")

constraint("NonNeg", F(3, 4))
constraint("NonNeg", F(2, 1, 3))
