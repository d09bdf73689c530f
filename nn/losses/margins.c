/* Losses by the margin m = y_true y_pred of labels -1 and 1. */
#include "nn/losses/loss.h"
#include "ops/ops.h"

/* Labels and predictions away from where a margin is 1 or 0. */
#define SIGNS                                                                                      \
    ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0.9, 1.1, 3, 4), ED_SAMPLE_IN(0.1, 0.8, 3, 4)}},           \
               {.inputs = {ED_SAMPLE_IN(-1, -0.9, 5), ED_SAMPLE_IN(0.1, 2, 5)}})

/* m, where labels that are all 0 or 1 stand for -1 and 1. */
static ed_tensor *margin(ed_tensor *y, ed_tensor *y_pred)
{
    ed_tensor *binary = ed_reduce_all(ed_logical_or(ed_equal(y, 0), ed_equal(y, 1)));
    return ed_mul(ed_where(binary, ed_sub(ed_mul(y, 2), 1), y), y_pred);
}

static ed_tensor *mean(ed_tensor *each)
{
    return ed_reduce_mean(each, .axis = ED_AXES(-1));
}

PLAIN_LOSS(hinge, HINGE, "mean of max(1 - y_true y_pred, 0)", SIGNS, ed_hinge(y_true, y_pred))
PLAIN_LOSS(squared_hinge, SQUARED_HINGE, "mean of max(1 - y_true y_pred, 0)^2", SIGNS,
           ed_squared_hinge(y_true, y_pred))
PLAIN_LOSS(categorical_hinge, CATEGORICAL_HINGE,
           "max(1 + largest of (1 - y_true) y_pred - sum of y_true y_pred, 0)",
           ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 0.2, 3, 4), ED_DISTINCT_IN(0, 1, 3, 4)}}),
           ed_categorical_hinge(y_true, y_pred))
PLAIN_LOSS(zero_one, ZERO_ONE, "share of y_true y_pred <= 0; it has no gradient", SIGNS,
           mean(ed_cast(ed_less_equal(margin(y_true, y_pred), 0), y_pred->dtype)))
PLAIN_LOSS(exponential, EXPONENTIAL, "mean of exp(-y_true y_pred)", SIGNS,
           mean(ed_exp(ed_neg(margin(y_true, y_pred)))))
PLAIN_LOSS(log, LOG, "mean of log(1 + exp(-y_true y_pred))", SIGNS,
           mean(ed_softplus(ed_neg(margin(y_true, y_pred)))))
