"""Metrics: for each update the values, or labels and predictions, then Keras' arguments."""
from words import B, F, I, V, W, family

metric = family("metric")

metric("Mean", (F(5),), (F(3),), (F(),))
metric("Mean", (F(2, 3),), (F(4, 3),))
metric("Mean", (I(4, below=9),), (I(3, below=9, low=-9),))
metric("Mean", (F(0),), (F(3),))
metric("Mean", (F(3, high=1000),), (V([1e-3, 1e3]),), name="loss")

metric("Accuracy", (I(7, below=2), I(7, below=2)), (I(3, below=3), I(3, below=3)))
metric("Accuracy", (I(2, 5, below=3), I(2, 5, below=3)), (I(3, 5, below=3), I(3, 5, below=3)))
metric("Accuracy", (I(6, 1, below=2), I(6, 1, below=2)))
metric("Accuracy", (B(9), B(9)), (B(2), B(2)))

metric("SparseCategoricalAccuracy", (I(6, below=3), F(6, 3)), (I(4, below=3), F(4, 3)))
metric("SparseCategoricalAccuracy", (I(6, 1, below=4), F(6, 4)))
metric("SparseCategoricalAccuracy", (I(2, 5, below=3), F(2, 5, 3)), (I(1, 5, below=3), F(1, 5, 3)))
metric("SparseCategoricalAccuracy", (V([0, 1, 2], "int64"), V([[0.5, 0.5, 0.0], [0.2, 0.4, 0.4], [1.0, 1.0, 1.0]])))
