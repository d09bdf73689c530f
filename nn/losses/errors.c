/* Losses by the difference of y_true and y_pred. */
#include "nn/losses/loss.h"
#include "ops/ops.h"

/* Two samples: y_true and y_pred in these ranges. */
#define PAIRS(low_true, high_true, low_pred, high_pred)                                            \
    ED_SAMPLES({.inputs = {ED_SAMPLE_IN(low_true, high_true, 3, 4),                                \
                           ED_SAMPLE_IN(low_pred, high_pred, 3, 4)}},                              \
               {.inputs = {ED_SAMPLE_IN(low_true, high_true, 5),                                   \
                           ED_SAMPLE_IN(low_pred, high_pred, 5, 1)}})

PLAIN_LOSS(mean_squared_error, MEAN_SQUARED_ERROR, "mean of (y_pred - y_true)^2",
           PAIRS(-2, 2, -2, 2), ed_mean_squared_error(y_true, y_pred), .kind.short_name = "mse")
PLAIN_LOSS(mean_absolute_error, MEAN_ABSOLUTE_ERROR, "mean of |y_pred - y_true|",
           PAIRS(-2, -1, 0, 2), ed_mean_absolute_error(y_true, y_pred), .kind.short_name = "mae")
PLAIN_LOSS(mean_absolute_percentage_error, MEAN_ABSOLUTE_PERCENTAGE_ERROR,
           "mean of 100 |y_pred - y_true| / |y_true|", PAIRS(1, 2, 3, 4),
           ed_mean_absolute_percentage_error(y_true, y_pred), .kind.short_name = "mape")
PLAIN_LOSS(mean_squared_logarithmic_error, MEAN_SQUARED_LOGARITHMIC_ERROR,
           "mean of (log(y_pred + 1) - log(y_true + 1))^2", PAIRS(0.1, 2, 0.1, 2),
           ed_mean_squared_logarithmic_error(y_true, y_pred), .kind.short_name = "msle")
PLAIN_LOSS(log_cosh, LOG_COSH, "mean of log cosh(y_pred - y_true)", PAIRS(-2, 2, -2, 2),
           ed_log_cosh(y_true, y_pred), .kind.short_name = "logcosh")
PLAIN_LOSS(poisson, POISSON, "mean of y_pred - y_true log y_pred", PAIRS(0, 3, 0.3, 3),
           ed_poisson(y_true, y_pred))
PLAIN_LOSS(kl_divergence, KL_DIVERGENCE, "sum of y_true log(y_true / y_pred)",
           PAIRS(0.1, 0.9, 0.1, 0.9), ed_kl_divergence(y_true, y_pred), .kind.short_name = "kld")
PLAIN_LOSS(absolute, ABSOLUTE, "mean of |y_pred - y_true|", PAIRS(-2, -1, 0, 2),
           ed_mean_absolute_error(y_true, y_pred))
PLAIN_LOSS(square, SQUARE, "mean of (y_pred - y_true)^2", PAIRS(-2, 2, -2, 2),
           ed_mean_squared_error(y_true, y_pred))

LOSS(huber, HUBER, 0, "mean of d^2 / 2 where |d| <= delta, else delta |d| - delta^2 / 2",
     .samples = ED_SAMPLES(
         {.inputs = {ED_SAMPLE_IN(-0.4, 0.4, 3, 4), ED_SAMPLE_IN(-0.4, 0.4, 3, 4)}},
         {.inputs = {ED_SAMPLE_IN(-2, -1, 5), ED_SAMPLE_IN(1, 2, 5)},
          .attrs = ED_ATTRS(ED_LOSS_HUBER_OPTIONS, ed_loss_huber_options, .delta = 0.3)}))
{
    return ed_huber(y_true, y_pred, .delta = ((const huber_options *)options)->delta);
}

/* Lengths below 1e-7 count as 1e-7, as in Keras. */
ed_tensor *loss_cosine(ed_tensor *y_true, ed_tensor *y_pred, int64_t axis)
{
    ed_tensor *a = ed_l2_normalize(y_true, .axis = ED_AXES(axis), .epsilon = 1e-14);
    ed_tensor *b = ed_l2_normalize(y_pred, .axis = ED_AXES(axis), .epsilon = 1e-14);
    return ed_reduce_sum(ed_mul(a, b), .axis = ED_AXES(axis));
}

LOSS(cosine_similarity, COSINE_SIMILARITY, 0, "minus the cosine between y_true and y_pred",
     .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4), ED_SAMPLE_IN(-2, 2, 3, 4)}},
                           {.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4), ED_SAMPLE_IN(-2, 2, 3, 4)},
                            .attrs = ED_ATTRS(ED_LOSS_COSINE_SIMILARITY_OPTIONS,
                                              ed_loss_cosine_similarity_options, .axis = 0)}))
{
    return ed_neg(loss_cosine(y_true, y_pred, ((const cosine_similarity_options *)options)->axis));
}
