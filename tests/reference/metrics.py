"""Metrics: for each update the values, or labels and predictions, then Keras' arguments."""
import numpy as np

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


def P(*shape):
    """Probabilities."""
    return F(*shape, low=0.05, high=0.95)


def Y(*shape):
    """0 and 1."""
    return I(*shape, below=2)


def weights(*shape):
    return W(F(*shape, low=0))


# Of values.
metric("Mean", (F(4), weights(4)), (F(3), weights(3)), (F(2),))
metric("Mean", (F(4, 3), weights(4)), (F(2, 3), weights(2, 3)), (F(3), W(V(0.5))))
metric("Mean", (F(3), W(V([0.0, 0.0, 0.0]))), (F(2),))
metric("Sum", (F(4),), (F(2, 3),), (F(),))
metric("Sum", (F(4), weights(4)), (F(2, 3), weights(2)), (F(2, 3), weights(2, 3)))

# Accuracies.
metric("Accuracy", (I(6, below=2), I(6, below=2), weights(6)), (I(3, below=2), I(3, below=2)))
metric("BinaryAccuracy", (Y(6), P(6)), (Y(3), P(3), weights(3)))
metric("BinaryAccuracy", (Y(4, 3), P(4, 3), weights(4)), (Y(2, 3), P(2, 3)), threshold=0.7)
metric("CategoricalAccuracy", (F(6, 3), F(6, 3)), (F(4, 3), F(4, 3), weights(4)))
metric("CategoricalAccuracy", (F(2, 5, 3), F(2, 5, 3), weights(2, 5)), (F(1, 5, 3), F(1, 5, 3)))
metric("SparseCategoricalAccuracy", (I(6, below=3), F(6, 3), weights(6)), (I(4, 1, below=3), F(4, 3)))
# TensorFlow finds the k largest in float32 alone.
metric("TopKCategoricalAccuracy", (F(4, 7), F(4, 7)), (F(3, 7), F(3, 7), weights(3))).only("float32")
metric("TopKCategoricalAccuracy", (F(4, 5), F(4, 5)), (F(3, 5), F(3, 5)), k=2).only("float32")
metric("TopKCategoricalAccuracy", (F(2, 3, 5), F(2, 3, 5), weights(2, 3)), k=3).only("float32")
metric("SparseTopKCategoricalAccuracy", (I(4, below=7), F(4, 7)), (I(3, below=7), F(3, 7), weights(3))).only("float32")
metric("SparseTopKCategoricalAccuracy", (I(2, 3, below=5), F(2, 3, 5), weights(2, 3)), k=2).only("float32")
metric("SparseTopKCategoricalAccuracy", (V([3, 1, 0]), V([[3.0, 1.0, 0.0, 2.0], [2.0, 0.0, 3.0, 1.0], [2.0, 0.0, 1.0, 3.0]])), k=2, from_sorted_ids=True).only("float32")

# Means of losses, regression. Correlations of both signs would cancel in the mean.
ramp = np.arange(24.0).reshape(2, 3, 4)
for name in ("MeanSquaredError", "MeanAbsoluteError", "RootMeanSquaredError", "LogCoshError", "CosineSimilarity", "PearsonCorrelation",
             "ConcordanceCorrelation", "MeanAbsolutePercentageError"):
    metric(name, (F(3, 4), F(3, 4)), (F(2, 4), F(2, 4), weights(2)), (F(1, 4), F(1, 4)))
    x, y = (V(ramp), V(ramp**2 / 64)) if "Correlation" in name else (F(2, 3, 4), F(2, 3, 4))
    metric(name, (x, y), (x, y, weights(2, 3)))
metric("RootMeanSquaredError", (F(3), F(3, 1)), (F(4), F(4), weights(4)))
metric("CosineSimilarity", (F(3, 4), F(3, 4)), (F(2, 4), F(2, 4)), axis=0)
metric("PearsonCorrelation", (F(5, 2), F(5, 2)), (F(4, 2), F(4, 2)), axis=0)
metric("ConcordanceCorrelation", (F(5, 2), F(5, 2)), (F(4, 2), F(4, 2)), axis=0)
metric("MeanSquaredLogarithmicError", (F(3, 4, low=0, high=9), F(3, 4, low=0, high=9)), (F(2, 4, low=0), F(2, 4, low=0), weights(2)))
metric("Poisson", (I(3, 4, below=5), F(3, 4, low=0.1, high=5)), (I(2, 4, below=5), F(2, 4, low=0.1), weights(2)))
metric("KLDivergence", (P(3, 4), P(3, 4)), (P(2, 4), P(2, 4), weights(2)))
metric("Hinge", (Y(3, 4), F(3, 4, low=-2)), (Y(2, 4), F(2, 4), weights(2)))
metric("SquaredHinge", (Y(3, 4), F(3, 4, low=-2)), (Y(2, 4), F(2, 4), weights(2)))
metric("CategoricalHinge", (V([[0, 1, 0], [1, 0, 0]]), F(2, 3, low=-2)), (V([[0, 0, 1], [0, 1, 0]]), F(2, 3), weights(2)))
metric("BinaryCrossentropy", (Y(3, 4), P(3, 4)), (Y(2, 4), P(2, 4), weights(2)))
metric("BinaryCrossentropy", (Y(3, 4), F(3, 4, low=-9, high=9)), (Y(2, 4), F(2, 4)), from_logits=True, label_smoothing=0.2)
one_hot = V([[0, 1, 0], [1, 0, 0], [0, 0, 1]])
metric("CategoricalCrossentropy", (one_hot, P(3, 3)), (one_hot, P(3, 3), weights(3)))
metric("CategoricalCrossentropy", (one_hot, F(3, 3, low=-9, high=9)), (one_hot, F(3, 3)), from_logits=True, label_smoothing=0.2)
metric("CategoricalCrossentropy", (one_hot, P(3, 3)), axis=0)
metric("SparseCategoricalCrossentropy", (I(4, below=3), P(4, 3)), (I(2, 1, below=3), P(2, 3), weights(2)))
metric("SparseCategoricalCrossentropy", (I(2, 4, below=3), F(2, 4, 3), weights(2, 4)), (I(2, 4, below=3), F(2, 4, 3), weights(2, 4)),
       from_logits=True, ignore_class=1)
metric("SparseCategoricalCrossentropy", (I(2, 4, below=3), F(2, 4, 3)), (I(5, below=3), F(5, 3)), from_logits=True, ignore_class=1)
metric("SparseCategoricalCrossentropy", (I(2, 4, below=3), P(2, 4, 3)), axis=2)
metric("R2Score", (F(5), F(5, 1)), (F(4, 1), F(4, 1), weights(4)))
metric("R2Score", (F(5, 3), F(5, 3)), (F(4, 3), F(4, 3), weights(4)))
metric("R2Score", (F(5, 3), F(5, 3)), (F(4, 3), F(4, 3)), class_aggregation="variance_weighted_average")
metric("R2Score", (F(5, 3), F(5, 3), weights(5)), (F(4, 3), F(4, 3)), class_aggregation=None).eddy(class_aggregation="none")
metric("R2Score", (F(5, 3), F(5, 3)), (F(4, 3), F(4, 3)), num_regressors=2)

# Positives and negatives.
for name in "TruePositives", "FalsePositives", "TrueNegatives", "FalseNegatives":
    metric(name, (Y(9), P(9)), (Y(4, 2), P(4, 2)))
    metric(name, (Y(5, 2), P(5, 2), weights(5)), (Y(4, 2), P(4, 2), weights(4, 2)), thresholds=0.3).eddy(thresholds=[0.3])
    metric(name, (Y(9), P(9), weights(9)), (Y(4), P(4)), thresholds=[0.2, 0.5, 0.9])
for name in "Precision", "Recall":
    metric(name, (Y(9), P(9)), (Y(4, 2), P(4, 2)))
    metric(name, (Y(9), P(9), weights(9)), (Y(4), P(4)), thresholds=[0.2, 0.5, 0.9])
    metric(name, (Y(4, 5), P(4, 5)), (Y(3, 5), P(3, 5), weights(3)), top_k=2)
    metric(name, (Y(4, 5), P(4, 5)), (Y(3, 5), P(3, 5), weights(3)), class_id=3)
    metric(name, (Y(6, 5), P(6, 5)), top_k=3, class_id=1, thresholds=[0.5]).eddy(thresholds=[0.5])
for name, limit in (("SensitivityAtSpecificity", "specificity"), ("SpecificityAtSensitivity", "sensitivity"),
                    ("PrecisionAtRecall", "recall"), ("RecallAtPrecision", "precision")):
    metric(name, (Y(9), P(9)), (Y(12), P(12)), **{limit: 0.5})
    metric(name, (Y(9), P(9), weights(9)), (Y(5), P(5), weights(5)), num_thresholds=7, **{limit: 0.7})
    metric(name, (Y(9, 3), P(9, 3)), (Y(5, 3), P(5, 3)), class_id=2, **{limit: 0.4})
    metric(name, (Y(9), P(9)), num_thresholds=1, **{limit: 0.2})
for curve in "ROC", "PR", "PRGAIN":
    metric("AUC", (Y(12), P(12)), (Y(8), P(8), weights(8)), curve=curve)
    metric("AUC", (Y(12), P(12)), curve=curve, summation_method="minoring", num_thresholds=9)
    metric("AUC", (Y(12), P(12)), curve=curve, summation_method="majoring", num_thresholds=9)
metric("AUC", (Y(12), P(12)), (Y(8), P(8)), thresholds=[0.7, 0.2, 0.4])
metric("AUC", (Y(12), F(12, low=-4, high=4)), (Y(8), F(8)), from_logits=True)
metric("AUC", (Y(12, 3), P(12, 3)), (Y(8, 3), P(8, 3), weights(8)), multi_label=True, num_labels=3)
metric("AUC", (Y(12, 3), P(12, 3)), (Y(8, 3), P(8, 3)), multi_label=True, label_weights=[0.2, 0.5, 0.3])
metric("AUC", (Y(12, 3), P(12, 3)), label_weights=[0.2, 0.5, 0.3])
for average in None, "micro", "macro", "weighted":
    metric("F1Score", (Y(6, 3), P(6, 3)), (Y(5, 3), P(5, 3), weights(5)), average=average)
    metric("FBetaScore", (Y(6, 3), P(6, 3), weights(6)), (Y(5, 3), P(5, 3)), average=average, beta=2.0, threshold=0.4).eddy("fbeta_score")
metric("F1Score", (Y(6, 3), P(6, 3)), threshold=0.5)

# Confusion matrices. Keras counts in integers: it rounds other weights down; the result is float32.
C = lambda *shape: I(*shape, below=3)
counts = lambda *shape: W(I(*shape, below=4))
metric("MeanIoU", (C(9), C(9)), (C(2, 3), C(2, 3), counts(2, 3)), num_classes=3).only("float32")
metric("MeanIoU", (C(9), C(9)), num_classes=4, ignore_class=1).only("float32")
metric("MeanIoU", (F(9, 3), P(9, 3)), (F(4, 3), P(4, 3)), num_classes=3, sparse_y_true=False, sparse_y_pred=False).only("float32")
metric("MeanIoU", (F(3, 8), F(3, 8)), num_classes=3, sparse_y_true=False, sparse_y_pred=False, axis=0).only("float32")
metric("IoU", (C(9), C(9)), (C(2, 3), C(2, 3), counts(2, 3)), num_classes=3, target_class_ids=[0, 2]).only("float32")
metric("IoU", (C(9), C(9)), num_classes=4, target_class_ids=[0, 3], ignore_class=1).only("float32")
metric("IoU", (F(3, 8), F(3, 8)), num_classes=3, target_class_ids=[1], sparse_y_true=False, sparse_y_pred=False, axis=0).only("float32")
metric("OneHotIoU", (F(9, 3), P(9, 3)), (F(4, 3), P(4, 3), counts(4)), num_classes=3, target_class_ids=[0, 2]).only("float32")
metric("OneHotIoU", (F(9, 3), C(9)), num_classes=3, target_class_ids=[0, 2], ignore_class=2, sparse_y_pred=True).only("float32")
metric("OneHotIoU", (F(3, 8), F(3, 8)), num_classes=3, target_class_ids=[1], axis=0).only("float32")
metric("OneHotMeanIoU", (F(9, 3), P(9, 3)), (F(4, 3), P(4, 3), counts(4)), num_classes=3).only("float32")
metric("OneHotMeanIoU", (F(9, 3), C(9)), num_classes=3, ignore_class=2, sparse_y_pred=True).only("float32")
metric("OneHotMeanIoU", (F(3, 8), F(3, 8)), num_classes=3, axis=0).only("float32")
metric("BinaryIoU", (Y(9), P(9)), (Y(4), P(4), counts(4))).only("float32")
metric("BinaryIoU", (Y(9), P(9)), target_class_ids=[1], threshold=0.3).only("float32")
