/*
 * Metrics, which add up values over many batches, as in Keras (nn/metrics/).
 */
#ifndef EDDY_NN_METRICS_H
#define EDDY_NN_METRICS_H

#include "tensor/schema.h"
#include "tensor/tensor.h"

#pragma GCC visibility push(default)

/* A metric adds up values over many batches: total (float64) and count (int64). */
typedef struct ed_metric ed_metric;

/* The options of all metrics. */
#define ED_METRIC_COMMON(FIELD, T)                                                                 \
    FIELD(T, STRING, name, NULL, ED_ANY, "used in messages; default: the kind's")

/* The mean of all elements of all updates. */
#define ED_METRIC_MEAN_OPTIONS(FIELD, T) ED_METRIC_COMMON(FIELD, T)
ED_KIND(metric, mean, ED_METRIC_MEAN_OPTIONS);

/* The share of elements with label == prediction; both have the same shape, but one may be
 * [..., 1] where the other one is [...]. Any dtypes. */
#define ED_METRIC_ACCURACY_OPTIONS(FIELD, T) ED_METRIC_COMMON(FIELD, T)
ED_KIND(metric, accuracy, ED_METRIC_ACCURACY_OPTIONS);

/* The share of labels (integers, [...] or [..., 1]) that equal the argmax of predictions (floats,
 * [..., classes]). */
#define ED_METRIC_SPARSE_CATEGORICAL_ACCURACY_OPTIONS(FIELD, T) ED_METRIC_COMMON(FIELD, T)
ED_KIND(metric, sparse_categorical_accuracy, ED_METRIC_SPARSE_CATEGORICAL_ACCURACY_OPTIONS);

/* Adds all elements of a tensor, of any dtype and shape, to a metric of values (mean). Tapes do not
 * record it. false on failure; the metric is then unchanged. */
bool ed_metric_update(ed_metric *metric, ed_tensor *values);

/* Adds a batch to a metric that compares (the accuracies). ED_OUT_OF_RANGE for a label that is not
 * in 0..classes - 1. Otherwise as ed_metric_update. */
bool ed_metric_compare(ed_metric *metric, ed_tensor *labels, ed_tensor *predictions);

/* total / count, 0 before the first update; NaN, with an error, for NULL. */
double ed_metric_result(const ed_metric *metric);

/* Its name: the option's, or else the kind's. Valid as long as the metric. */
const char *ed_metric_name(const ed_metric *metric);

/* Sets total and count to 0. */
bool ed_metric_reset(ed_metric *metric);

#pragma GCC visibility pop
#endif
