"""Losses: labels, predictions, W(sample weights), then Keras' arguments. One case for each reduction."""
from words import B, F, I, V, W, family

loss = family("loss")


def P(*shape):
    """Probabilities."""
    return F(*shape, low=0.05, high=0.95)


# Errors.
for name in "MeanSquaredError", "MeanAbsoluteError", "CosineSimilarity", "Huber", "LogCosh":
    loss(name, F(3, 4), F(3, 4))
    loss(name, F(2, 3, 4), F(2, 3, 4), W(F(2, 3, low=0)))
    loss(name, F(2, 3, 4), F(2, 3, 4), W(F(2, 3, low=0))).call(mask=B(2, 3))
loss("MeanSquaredError", F(3, 4), F(3, 4), reduction="mean")
loss("MeanSquaredError", I(3, 1, below=9), F(3, 1))
loss("MeanSquaredError", F(3), F(3, 1))
loss("MeanSquaredError", F(3, 4), F(3, 4), W(F(3, 1, low=0)))
loss("MeanSquaredError", F(2, 3, 4), F(2, 3, 4), W(F(2, 1, low=0)))
loss("MeanSquaredError", F(3, 4), F(3, 4), W(V(0.5)))
loss("MeanSquaredError", F(3, 4), F(3, 4), W(V([0.0, 0.0, 0.0])))
loss("MeanSquaredError", F(3, 4), F(3, 4)).call(mask=B(3))
loss("MeanSquaredError", F(3, 4), F(3, 4)).call(mask=V([False, False, False]))
loss("CosineSimilarity", F(3, 4), F(3, 4), axis=0)
loss("Huber", F(3, 4, high=5), F(3, 4), delta=0.25)
loss("LogCosh", F(3, 4, low=-90, high=90), F(3, 4))
loss("MeanAbsolutePercentageError", F(3, 4, low=0.25), F(3, 4))
loss("MeanAbsolutePercentageError", V([[0.0, 1.0], [-2.0, 4.0]]), F(2, 2), W(F(2, low=0)))
loss("MeanSquaredLogarithmicError", F(3, 4, low=0.1, high=9), F(3, 4, low=0.1, high=9))
loss("MeanSquaredLogarithmicError", F(3, 4, high=9), F(3, 4, low=0.1, high=9), W(F(3, low=0)))
loss("Poisson", I(3, 4, below=5), F(3, 4, low=0.1, high=5))
loss("Poisson", I(3, 4, below=5), F(3, 4, low=0.1, high=5), W(F(3, low=0)))
loss("KLDivergence", P(3, 4), P(3, 4))
loss("KLDivergence", F(3, 4, low=0), P(3, 4), W(F(3, low=0)))

# Margins.
for name in "Hinge", "SquaredHinge":
    loss(name, V([[1, -1, 1], [-1, -1, 1]]), F(2, 3, low=-2, high=2))
    loss(name, B(4, 3), F(4, 3, low=-2, high=2), W(F(4, low=0)))
    loss(name, I(2, 3, 4, below=2), F(2, 3, 4)).call(mask=B(2, 3))
loss("CategoricalHinge", V([[1, 0, 0], [0, 0, 1]]), F(2, 3, low=-2, high=2))
loss("CategoricalHinge", V([[1, 0, 0], [0, 0, 1]]), F(2, 3, low=-2, high=2), W(F(2, low=0)))

# Cross entropies.
for name in "BinaryCrossentropy", "BinaryFocalCrossentropy":
    loss(name, I(3, 4, below=2), P(3, 4))
    loss(name, I(3, 4, below=2), F(3, 4, low=-2, high=2), from_logits=True)
    loss(name, I(3, 4, below=2), P(3, 4), W(F(3, low=0)), label_smoothing=0.2)
    loss(name, I(3, 4, below=2), F(3, 4), from_logits=True, label_smoothing=0.2, axis=0)
    loss(name, I(2, 3, 4, below=2), P(2, 3, 4), axis=1).call(mask=B(2, 4))
loss("BinaryCrossentropy", I(3, 4, below=2), F(3, 4, low=-90, high=90), from_logits=True)
loss("BinaryFocalCrossentropy", I(3, 4, below=2), P(3, 4), apply_class_balancing=True, alpha=0.4, gamma=1.5)
loss("BinaryFocalCrossentropy", I(3, 4, below=2), F(3, 4), apply_class_balancing=True, from_logits=True)
one_hot = V([[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1]])
for name in "CategoricalCrossentropy", "CategoricalFocalCrossentropy":
    loss(name, one_hot, P(3, 4))
    loss(name, one_hot, F(3, 4, low=-2, high=2), from_logits=True)
    loss(name, one_hot, P(3, 4), W(F(3, low=0)), label_smoothing=0.2)
    loss(name, V([[1, 0, 0, 1], [0, 0, 1, 0], [0, 1, 0, 0]]), F(3, 4), from_logits=True, axis=0)
    loss(name, F(2, 3, 4, low=0), P(2, 3, 4), axis=1).call(mask=B(2, 4))
loss("CategoricalCrossentropy", one_hot, F(3, 4, low=-90, high=90), from_logits=True)
loss("CategoricalFocalCrossentropy", one_hot, P(3, 4), alpha=0.4, gamma=1.5)
loss("SparseCategoricalCrossentropy", I(3, below=4), P(3, 4))
loss("SparseCategoricalCrossentropy", I(3, 1, below=4), F(3, 4, low=-9, high=9), W(F(3, low=0)), from_logits=True)
loss("SparseCategoricalCrossentropy", I(2, 3, below=4), F(2, 3, 4), from_logits=True).call(mask=B(2, 3))
loss("SparseCategoricalCrossentropy", I(4, 3, below=3), F(4, 3, 3), from_logits=True, ignore_class=1)
loss("SparseCategoricalCrossentropy", V([[0, -1, 2], [-1, 1, 0]]), P(2, 3, 3), W(F(2, 3, low=0)), ignore_class=-1)
loss("SparseCategoricalCrossentropy", I(2, 3, below=4), P(2, 3, 4), axis=2)
loss("CategoricalGeneralizedCrossEntropy", I(3, below=4), P(3, 4))
loss("CategoricalGeneralizedCrossEntropy", I(3, below=4), P(3, 4), W(F(3, low=0)), q=0.8)

# Sequences and regions.
# TensorFlow computes it in float32.
loss("CTC", V([[1, 2, 0], [2, 2, 1]]), F(2, 6, 4, low=-2, high=2)).only("float32")
loss("CTC", V([[1, 2, 3], [2, 1, 0]]), F(2, 5, 4, low=-2, high=2), W(F(2, low=0))).only("float32")
for name in "Dice", "Tversky":
    loss(name, F(2, 3, 4, low=0), F(2, 3, 4, low=0))
    loss(name, I(2, 3, 4, below=2), P(2, 3, 4), W(F(2, low=0)), axis=(1, 2))
    loss(name, I(2, 3, 4, below=2), P(2, 3, 4), axis=(1,)).call(mask=B(2, 4))
loss("Tversky", F(2, 3, low=0), F(2, 3, low=0), alpha=0.25, beta=0.75)

# Embeddings.
unit = V([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0], [-0.8, 0.6], [0.8, 0.6]])
loss("Circle", V([0, 1, 1, 0, 2]), unit)
loss("Circle", V([0, 1, 1, 0, 0]), unit, W(F(5, low=0)), gamma=2.0, margin=0.2, remove_diagonal=False)
