"""Layers of several inputs: inputs, then Keras' arguments."""
from words import B, F, family

layer = family("layer")

for name in "Add", "Multiply", "Average", "Maximum", "Minimum":
    layer(name, [F(2, 3), F(2, 3), F(2, 3)])
    layer(name, [F(2, 3, 4), F(2, 1, 4)])
    layer(name, [F(2, 3, 4), F(2, 4)])
    layer(name, [F(2, 3, 4), F(2, 3, 4)]).call(masks=[B(2, 3), B(2, 3)])
layer("Subtract", [F(2, 3), F(2, 3)])
layer("Subtract", [F(2, 3, 4), F(2, 4)])
layer("Subtract", [F(2, 3, 4), F(2, 3, 4)]).call(masks=[B(2, 3), B(2, 3)])
for name in "Multiply", "Maximum", "Minimum":
    layer(name, [F(2, 3, 4), F(2, 3, 4), F(2, 3, 4)]).call(masks=[B(2, 3), None, B(2, 3)])

layer("Concatenate", [F(2, 3), F(2, 2)])
layer("Concatenate", [F(2, 3, 2), F(2, 1, 2), F(2, 2, 2)], axis=1)
layer("Concatenate", [F(2, 3, 2), F(2, 3, 1)]).call(masks=[B(2, 3), B(2, 3)])
layer("Concatenate", [F(2, 3, 2), F(2, 2, 2)], axis=1).call(masks=[B(2, 3), None])

layer("Dot", [F(2, 3), F(2, 3)], axes=1)
layer("Dot", [F(2, 3), F(2, 3)], axes=-1, normalize=True)
layer("Dot", [F(2, 3, 5), F(2, 4, 3)], axes=(1, 2))
layer("Dot", [F(2, 3, 4), F(2, 4, 3, 2)], axes=(2, 1))
layer("Dot", [F(2, 3), F(2, 4, 3)], axes=(1, 2), normalize=True)
