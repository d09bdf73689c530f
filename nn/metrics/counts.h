/* Counts of true and false positives and negatives for many thresholds. */
#ifndef EDDY_NN_METRICS_COUNTS_H
#define EDDY_NN_METRICS_COUNTS_H

#include "nn/metrics/metric.h"

/* Which predictions count, and how. */
typedef struct counts_wanted {
    ed_floats thresholds;    /* in any order */
    int64_t top_k;           /* only so many of the last axis can be positive; 0: all */
    int64_t class_id;        /* only this one of the last axis; -1: all */
    bool multi_label;        /* predictions are [batch, labels], counts [thresholds, labels] */
    ed_floats label_weights; /* of the last axis */
} counts_wanted;

/* Of each threshold, float64 [thresholds]. */
typedef struct counts {
    ed_tensor *true_positives, *false_positives, *true_negatives, *false_negatives;
} counts;

/* false with an error. */
bool counts_of(const metric_call *call, const counts_wanted *wanted, counts *to);

#endif
