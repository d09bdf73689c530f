/* Metrics that are means of a loss's values, and those of regression. */
#include "nn/metrics/metric.h"
#include "ops/ops.h"

/* Two samples: y_true and y_pred in these ranges. */
#define PAIRS(low_true, high_true, low_pred, high_pred)                                            \
    ED_SAMPLES({.inputs = {ED_SAMPLE_IN(low_true, high_true, 3, 4),                                \
                           ED_SAMPLE_IN(low_pred, high_pred, 3, 4)}},                              \
               {.inputs = {ED_SAMPLE_IN(low_true, high_true, 5, 2, 3),                             \
                           ED_SAMPLE_IN(low_pred, high_pred, 5, 2, 3)}})

PLAIN_METRIC(mean_squared_error, MEAN_SQUARED_ERROR, "mean of (y_pred - y_true)^2",
             PAIRS(-2, 2, -2, 2), ed_mean_squared_error(y_true, y_pred), .kind.short_name = "mse")
PLAIN_METRIC(mean_absolute_error, MEAN_ABSOLUTE_ERROR, "mean of |y_pred - y_true|",
             PAIRS(-2, 2, -2, 2), ed_mean_absolute_error(y_true, y_pred), .kind.short_name = "mae")
PLAIN_METRIC(mean_absolute_percentage_error, MEAN_ABSOLUTE_PERCENTAGE_ERROR,
             "mean of 100 |y_pred - y_true| / |y_true|", PAIRS(1, 2, -2, 2),
             ed_mean_absolute_percentage_error(y_true, y_pred), .kind.short_name = "mape")
PLAIN_METRIC(mean_squared_logarithmic_error, MEAN_SQUARED_LOGARITHMIC_ERROR,
             "mean of (log(y_pred + 1) - log(y_true + 1))^2", PAIRS(0, 2, 0, 2),
             ed_mean_squared_logarithmic_error(y_true, y_pred), .kind.short_name = "msle")
PLAIN_METRIC(log_cosh_error, LOG_COSH_ERROR, "mean of log cosh(y_pred - y_true)",
             PAIRS(-2, 2, -2, 2), ed_log_cosh(y_true, y_pred), .kind.short_name = "logcosh")
PLAIN_METRIC(poisson, POISSON, "mean of y_pred - y_true log y_pred", PAIRS(0, 3, 0.3, 3),
             ed_poisson(y_true, y_pred))
PLAIN_METRIC(kl_divergence, KL_DIVERGENCE, "mean of the sums of y_true log(y_true / y_pred)",
             PAIRS(0, 1, 0, 1), ed_kl_divergence(y_true, y_pred), .kind.short_name = "kld")
PLAIN_METRIC(hinge, HINGE, "mean of max(1 - y_true y_pred, 0)", PAIRS(-1.5, 1.5, -2, 2),
             ed_hinge(y_true, y_pred))
PLAIN_METRIC(squared_hinge, SQUARED_HINGE, "mean of max(1 - y_true y_pred, 0)^2",
             PAIRS(-1.5, 1.5, -2, 2), ed_squared_hinge(y_true, y_pred))
PLAIN_METRIC(categorical_hinge, CATEGORICAL_HINGE,
             "mean of max(1 + largest of (1 - y_true) y_pred - sum of y_true y_pred, 0)",
             PAIRS(0, 1, -2, 2), ed_categorical_hinge(y_true, y_pred))

/* ---- Cross entropies ------------------------------------------------------------------------- */

#define LOGITS(SYMBOL, symbol)                                                                     \
    ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 1, 3, 4), ED_SAMPLE_IN(0.1, 1, 3, 4)}},                 \
               {.inputs = {ED_SAMPLE_IN(0, 1, 3, 4), ED_SAMPLE_IN(-2, 2, 3, 4)},                   \
                .attrs = ED_ATTRS(ED_METRIC_##SYMBOL##_OPTIONS, ed_metric_##symbol##_options,      \
                                  .from_logits = true, .label_smoothing = 0.1)})

MEAN_METRIC(binary_crossentropy, BINARY_CROSSENTROPY, "mean of -y log p - (1 - y) log(1 - p)",
            .samples = LOGITS(BINARY_CROSSENTROPY, binary_crossentropy), .kind.short_name = "bce")
{
    const binary_crossentropy_options *o = options;
    return loss_binary_crossentropy(y_true, y_pred, o->from_logits, o->label_smoothing, o->axis);
}

MEAN_METRIC(categorical_crossentropy, CATEGORICAL_CROSSENTROPY, "mean of -sum y_true log p",
            .samples = LOGITS(CATEGORICAL_CROSSENTROPY, categorical_crossentropy))
{
    const categorical_crossentropy_options *o = options;
    return loss_categorical_crossentropy(y_true, y_pred, o->from_logits, o->label_smoothing,
                                         o->axis);
}

/* Two samples of labels and logits, in one of which 2 is ignored. */
#define LABELS(SYMBOL, symbol, ignored)                                                            \
    ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 3, 3), ED_SAMPLE_IN(0.1, 1, 3, 4)}},                    \
               {.inputs = {ED_SAMPLE_IN(0, 3, 5, 2), ED_SAMPLE_IN(-2, 2, 5, 2, 4)},                \
                .attrs = ED_ATTRS(ED_METRIC_##SYMBOL##_OPTIONS, ed_metric_##symbol##_options,      \
                                  .from_logits = true, .ignored = ED_SAMPLE_INTS(2))})

static bool not_ignored(const void *options, ed_tensor *y_true, ed_tensor *values, ed_tensor **mask)
{
    (void)values;
    const ed_metric_sparse_categorical_crossentropy_options *o = options;
    return loss_labels_that_count(y_true, o->ignore_class, mask);
}

MEAN_METRIC(sparse_categorical_crossentropy, SPARSE_CATEGORICAL_CROSSENTROPY,
            "mean of -log of the probability of the class that y_true names",
            .operands = LOSS_CLASSES, .counts = not_ignored,
            .samples = LABELS(SPARSE_CATEGORICAL_CROSSENTROPY, sparse_categorical_crossentropy,
                              ignore_class))
{
    const sparse_categorical_crossentropy_options *o = options;
    return loss_sparse_categorical_crossentropy(y_true, y_pred, o->from_logits, o->ignore_class,
                                                o->axis);
}

/* ---- Perplexity ------------------------------------------------------------------------------ */

static bool perplexity_increments(metric_call *call)
{
    const ed_metric_perplexity_options *o = call->options;
    ed_tensor *values = metric_float64(loss_sparse_categorical_crossentropy(
        call->y_true, call->y_pred, o->from_logits, o->mask_token_id, -1));
    ed_tensor *counts;
    if (!values || !loss_labels_that_count(call->y_true, o->mask_token_id, &counts)) return false;
    ed_tensor *weight = call->weight ? metric_spread(call, values) : ed_ones_like(values);
    if (counts) weight = ed_mul(weight, metric_float64(counts));
    call->increments[0] = ed_reduce_sum(ed_mul(values, weight));
    return call->increments[0] && (call->increments[1] = ed_reduce_sum(weight));
}

static ed_tensor *perplexity_result(const void *options, ed_tensor *const *variables)
{
    (void)options;
    return ed_exp(ed_div_no_nan(variables[0], variables[1]));
}

METRIC(perplexity, PERPLEXITY, 0, "e ^ mean of the cross entropy of labels", .compares = true,
       .operands = LOSS_CLASSES, .variables = {"aggregate_crossentropy", "number_of_samples"},
       .increments = perplexity_increments, .result = perplexity_result,
       .samples = LABELS(PERPLEXITY, perplexity, mask_token_id))

/* ---- Others ---------------------------------------------------------------------------------- */

static ed_tensor *root(const void *options, ed_tensor *const *variables)
{
    (void)options;
    return ed_sqrt(ed_div_no_nan(variables[0], variables[1]));
}

MEAN_METRIC(root_mean_squared_error, ROOT_MEAN_SQUARED_ERROR,
            "root of the mean of (y_pred - y_true)^2", .result = root,
            .samples = PAIRS(-2, 2, -2, 2))
{
    (void)options;
    return ed_squared_difference(y_pred, y_true);
}

static bool has_normalizer(const char *who, const void *options)
{
    return ((const ed_metric_mean_relative_error_options *)options)->normalizer.count > 0 ||
           ed_fail(ED_INVALID_ARGUMENT, "%s: normalizer has no number", who);
}

MEAN_METRIC(mean_relative_error, MEAN_RELATIVE_ERROR, "mean of |y_pred - y_true| / normalizer",
            .check = has_normalizer,
            .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 5, 3), ED_SAMPLE_IN(-2, 2, 5, 3)},
                                   .attrs = ED_ATTRS(ED_METRIC_MEAN_RELATIVE_ERROR_OPTIONS,
                                                     ed_metric_mean_relative_error_options,
                                                     .normalizer = {(const double[]){1, 0, 2},
                                                                    3})}))
{
    const ed_floats normalizer = ((const mean_relative_error_options *)options)->normalizer;
    const int64_t n = y_pred->shape[y_pred->rank - 1];
    if (normalizer.count != 1 && normalizer.count != n)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "mean_relative_error: normalizer has %lld numbers, y_pred is %s; expected "
                       "one or as many as its last axis has",
                       (long long)normalizer.count, text_of_tensor(y_pred).s);
    ed_tensor *divisor = ed_constant_of(ED_FLOAT64, normalizer.values, ED_SHAPE(normalizer.count));
    ed_tensor *error = ed_abs(ed_sub(y_pred, y_true));
    return ed_div_no_nan(error, ed_cast(divisor, y_pred->dtype));
}

MEAN_METRIC(cosine_similarity, COSINE_SIMILARITY, "mean of the cosine between y_true and y_pred",
            .samples = PAIRS(-2, 2, -2, 2))
{
    return loss_cosine(y_true, y_pred, ((const cosine_similarity_options *)options)->axis);
}

/* x minus its mean along the axis. */
static ed_tensor *centred(ed_tensor *x, int64_t axis)
{
    return ed_sub(x, ed_reduce_mean(x, .axis = ED_AXES(axis), .keepdims = true));
}

static ed_tensor *mean_along(ed_tensor *x, int64_t axis)
{
    return ed_reduce_mean(x, .axis = ED_AXES(axis));
}

MEAN_METRIC(pearson_correlation, PEARSON_CORRELATION, "mean of Pearson's correlation",
            .samples = PAIRS(-2, 2, -2, 2))
{
    const int64_t axis = ((const pearson_correlation_options *)options)->axis;
    ed_tensor *a = centred(y_true, axis), *b = centred(y_pred, axis);
    ed_tensor *spread =
        ed_sqrt(ed_mul(mean_along(ed_square(a), axis), mean_along(ed_square(b), axis)));
    return ed_div(mean_along(ed_mul(a, b), axis), spread);
}

MEAN_METRIC(concordance_correlation, CONCORDANCE_CORRELATION,
            "mean of Lin's concordance correlation", .samples = PAIRS(-2, 2, -2, 2))
{
    const int64_t axis = ((const concordance_correlation_options *)options)->axis;
    ed_tensor *a = centred(y_true, axis), *b = centred(y_pred, axis);
    ed_tensor *variances = ed_add(mean_along(ed_square(a), axis), mean_along(ed_square(b), axis));
    ed_tensor *shift = ed_squared_difference(mean_along(y_true, axis), mean_along(y_pred, axis));
    ed_tensor *norm = ed_add(ed_add(variances, shift), LOSS_EPSILON);
    return ed_div(ed_mul(mean_along(ed_mul(a, b), axis), 2), norm);
}
