/*
 * Losses with one value a sample, along the last axis, as Keras' functions have them: compositions.
 * The references go over the rows of the shape to which both operands broadcast.
 */
#include "ops/keras_losses.h"
#include "ops/execute.h"
#include "ops/ops.h"
#include <math.h>

#define EPSILON 1e-7

/* ---- What they share ------------------------------------------------------------------------- */

static bool has_rows(const ed_call *call)
{
    if (ed_rank(call->inputs[0]) > 0 || ed_rank(call->inputs[1]) > 0) return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT,
                        "y_true or y_pred must have rank >= 1, got %s and %s",
                        text_of_tensor(call->inputs[0]).s, text_of_tensor(call->inputs[1]).s);
}

/* The loss from the value of each element. */
static bool give_mean(ed_call *call, ed_tensor *each)
{
    return ed_call_result(call, 0, ed_reduce_mean(each, .axis = ED_AXES(-1)));
}

static ed_tensor *difference(const ed_call *call)
{
    return ed_sub(call->inputs[1], call->inputs[0]);
}

/* ---- References ------------------------------------------------------------------------------ */

/* Element i, in row-major order, of an operand that was broadcast to the shape. */
static double broadcast_at(const ed_tensor *x, int rank, const int64_t *shape, int64_t i)
{
    int64_t offset = 0, step = 1;
    for (int d = 1; d <= x->rank; d++) {
        const int64_t at = i % shape[rank - d];
        if (x->shape[x->rank - d] > 1) offset += at * step;
        step *= x->shape[x->rank - d];
        i /= shape[rank - d];
    }
    return ((const double *)x->data)[offset];
}

/* The loss of a row of n pairs. */
typedef double row_loss(const double *y_true, const double *y_pred, int64_t n, const void *attrs);

static bool each_row(const ed_call *call, row_loss *loss)
{
    const ed_tensor *a = call->inputs[0], *b = call->inputs[1], *y = call->outputs[0];
    int rank;
    int64_t shape[ED_MAX_RANK];
    if (!ops_broadcast(a->rank, a->shape, b->rank, b->shape, &rank, shape)) return false;
    const int64_t n = shape[rank - 1];
    double *y_true = memory_alloc(2 * (size_t)(n + 1) * sizeof *y_true), *y_pred = y_true + n + 1;
    for (int64_t r = 0; y_true && r < y->size; r++) {
        for (int64_t i = 0; i < n; i++) {
            y_true[i] = broadcast_at(a, rank, shape, r * n + i);
            y_pred[i] = broadcast_at(b, rank, shape, r * n + i);
        }
        ((double *)y->data)[r] = loss(y_true, y_pred, n, call->attrs);
    }
    memory_free(y_true);
    return y_true != NULL;
}

/* The reference of a mean of `expression`, of labels t and predictions p. */
#define MEAN_REFERENCE(name, expression)                                                           \
    static double name##_row(const double *y_true, const double *y_pred, int64_t n,                \
                             const void *attrs)                                                    \
    {                                                                                              \
        (void)attrs;                                                                               \
        double sum = 0;                                                                            \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const double t = y_true[i], p = y_pred[i];                                             \
            sum += expression;                                                                     \
        }                                                                                          \
        return sum / (double)n;                                                                    \
    }                                                                                              \
    REFERENCE(name)
#define REFERENCE(name)                                                                            \
    static bool name##_reference(const ed_call *call)                                              \
    {                                                                                              \
        return each_row(call, name##_row);                                                         \
    }                                                                                              \
    static bool name##_reference(const ed_call *call)

/* ---- Definitions ----------------------------------------------------------------------------- */

#define LOSS_SAMPLES(low_true, high_true, low_pred, high_pred)                                     \
    ED_SAMPLES(                                                                                    \
        {.inputs = {ED_SAMPLE_IN(low_true, high_true, 3, 4),                                       \
                    ED_SAMPLE_IN(low_pred, high_pred, 3, 4)}},                                     \
        {.inputs = {ED_SAMPLE_IN(low_true, high_true, 2, 1, 3),                                    \
                    ED_SAMPLE_IN(low_pred, high_pred, 4, 1)}},                                     \
        {.inputs = {ED_SAMPLE_IN(low_true, high_true), ED_SAMPLE_IN(low_pred, high_pred, 5)}})
#define LOSS(symbol, text, samples_, ...)                                                          \
    ED_OP(symbol) = {.name = #symbol,                                                              \
                     .doc = text,                                                                  \
                     .operands = {{"y_true", ED_SET_FLOAT, 'T'}, {"y_pred", ED_SET_FLOAT, 'T'}},   \
                     .compose = symbol##_compose,                                                  \
                     .reference = symbol##_reference,                                              \
                     .samples = samples_,                                                          \
                     __VA_ARGS__}
#define LOSS_FUNCTION(symbol)                                                                      \
    ed_tensor *ed_##symbol(ed_tensor *y_true, ed_tensor *y_pred)                                   \
    {                                                                                              \
        return CALL_OP(symbol, NULL, y_true, y_pred);                                              \
    }                                                                                              \
    ed_tensor *ed_##symbol(ed_tensor *y_true, ed_tensor *y_pred)

/* ---- huber, log_cosh ------------------------------------------------------------------------- */

/* With c = min(|d|, delta), both branches are c (|d| - c / 2). */
static bool huber_compose(ed_call *call)
{
    const ed_huber_options *o = call->attrs;
    if (!has_rows(call)) return false;
    ed_tensor *d = ed_abs(difference(call)), *c = ed_minimum(d, o->delta);
    return give_mean(call, ed_mul(c, ed_sub(d, ed_mul(c, 0.5))));
}

static double huber_row(const double *y_true, const double *y_pred, int64_t n, const void *attrs)
{
    const double delta = ((const ed_huber_options *)attrs)->delta;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const double d = fabs(y_pred[i] - y_true[i]);
        sum += d <= delta ? d * d / 2 : delta * d - delta * delta / 2;
    }
    return sum / (double)n;
}
REFERENCE(huber);

LOSS(huber, "mean of d^2 / 2 where |d| <= delta, else delta |d| - delta^2 / 2",
     ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4), ED_SAMPLE_IN(-2, 2, 3, 4)}},
                {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 1, 3), ED_SAMPLE_IN(-2, 2, 4, 1)},
                 .attrs = ED_ATTRS(ED_HUBER_OPTIONS, ed_huber_options, .delta = 0.3)}),
     ED_OP_ATTRS(ED_HUBER_OPTIONS, ed_huber_options));

ed_tensor *ed_huber_with(ed_tensor *y_true, ed_tensor *y_pred, const ed_huber_options *options)
{
    return CALL_OP(huber, options, y_true, y_pred);
}

static bool log_cosh_compose(ed_call *call)
{
    return has_rows(call) && give_mean(call, losses_log_cosh(difference(call)));
}

MEAN_REFERENCE(log_cosh, fabs(p - t) + log1p(exp(-2 * fabs(p - t))) - M_LN2);
LOSS(log_cosh, "mean of log cosh(y_pred - y_true)", LOSS_SAMPLES(-2, 2, -2, 2));
LOSS_FUNCTION(log_cosh);

/* ---- Hinges ---------------------------------------------------------------------------------- */

/* max(1 - y_true y_pred, 0), where labels that are all 0 or 1 stand for -1 and 1. */
static ed_tensor *hinges(const ed_call *call)
{
    ed_tensor *y = call->inputs[0];
    ed_tensor *binary = ed_reduce_all(ed_logical_or(ed_equal(y, 0), ed_equal(y, 1)));
    ed_tensor *labels = ed_where(binary, ed_sub(ed_mul(y, 2), 1), y);
    return ed_relu(ed_sub(1, ed_mul(labels, call->inputs[1])));
}

static bool hinge_compose(ed_call *call)
{
    return has_rows(call) && give_mean(call, hinges(call));
}

static bool squared_hinge_compose(ed_call *call)
{
    return has_rows(call) && give_mean(call, ed_square(hinges(call)));
}

static bool all_binary(const ed_tensor *x)
{
    const double *y = (const double *)x->data;
    for (int64_t i = 0; i < x->size; i++)
        if (y[i] != 0 && y[i] != 1) return false;
    return true;
}

static double hinge_at(double t, double p, const void *binary)
{
    if (binary) t = 2 * t - 1;
    return 1 - t * p > 0 || isnan(t * p) ? 1 - t * p : 0;
}

static double hinge_row(const double *y_true, const double *y_pred, int64_t n, const void *binary)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += hinge_at(y_true[i], y_pred[i], binary);
    return sum / (double)n;
}

static double squared_hinge_row(const double *y_true, const double *y_pred, int64_t n,
                                const void *binary)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += pow(hinge_at(y_true[i], y_pred[i], binary), 2);
    return sum / (double)n;
}

/* For rows the attributes say whether all labels are 0 or 1. */
static bool hinge_rows(const ed_call *call, row_loss *loss)
{
    ed_call with = *call;
    with.attrs = all_binary(call->inputs[0]) ? "" : NULL;
    return each_row(&with, loss);
}

static bool hinge_reference(const ed_call *call)
{
    return hinge_rows(call, hinge_row);
}

static bool squared_hinge_reference(const ed_call *call)
{
    return hinge_rows(call, squared_hinge_row);
}

LOSS(hinge, "mean of max(1 - y_true y_pred, 0)", LOSS_SAMPLES(-1.5, 1.5, -2, 2));
LOSS_FUNCTION(hinge);
LOSS(squared_hinge, "mean of max(1 - y_true y_pred, 0)^2", LOSS_SAMPLES(-1.5, 1.5, -2, 2));
LOSS_FUNCTION(squared_hinge);

static bool categorical_hinge_compose(ed_call *call)
{
    if (!has_rows(call)) return false;
    ed_tensor *t = call->inputs[0], *p = call->inputs[1];
    ed_tensor *right = ed_reduce_sum(ed_mul(t, p), .axis = ED_AXES(-1));
    ed_tensor *wrong = ed_reduce_max(ed_mul(ed_sub(1, t), p), .axis = ED_AXES(-1));
    return ed_call_result(call, 0, ed_relu(ed_add(ed_sub(wrong, right), 1)));
}

static double categorical_hinge_row(const double *y_true, const double *y_pred, int64_t n,
                                    const void *attrs)
{
    (void)attrs;
    double right = 0, wrong = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        const double other = (1 - y_true[i]) * y_pred[i];
        right += y_true[i] * y_pred[i];
        if (!(other <= wrong)) wrong = other;
        if (isnan(other)) return NAN;
    }
    return wrong - right + 1 < 0 ? 0 : wrong - right + 1;
}
REFERENCE(categorical_hinge);

LOSS(categorical_hinge, "max(1 + largest of (1 - y_true) y_pred - sum of y_true y_pred, 0)",
     ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 1, 3, 4), ED_DISTINCT_IN(-1, 1, 3, 4)}},
                {.inputs = {ED_SAMPLE_IN(0, 1, 2, 1, 3), ED_DISTINCT_IN(-1, 1, 4, 1)}}));
LOSS_FUNCTION(categorical_hinge);

/* ---- Distributions --------------------------------------------------------------------------- */

static bool kl_divergence_compose(ed_call *call)
{
    if (!has_rows(call)) return false;
    ed_tensor *t = ed_clip(call->inputs[0], EPSILON, 1), *p = ed_clip(call->inputs[1], EPSILON, 1);
    return ed_call_result(call, 0,
                          ed_reduce_sum(ed_mul(t, ed_log(ed_div(t, p))), .axis = ED_AXES(-1)));
}

static double within(double x)
{
    return x < EPSILON ? EPSILON : x > 1 ? 1 : x;
}

static double kl_divergence_row(const double *y_true, const double *y_pred, int64_t n,
                                const void *attrs)
{
    (void)attrs;
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += within(y_true[i]) * log(within(y_true[i]) / within(y_pred[i]));
    return sum;
}
REFERENCE(kl_divergence);

LOSS(kl_divergence, "sum of y_true log(y_true / y_pred)", LOSS_SAMPLES(0.1, 0.9, 0.1, 0.9));
LOSS_FUNCTION(kl_divergence);

static bool poisson_compose(ed_call *call)
{
    if (!has_rows(call)) return false;
    ed_tensor *t = call->inputs[0], *p = call->inputs[1];
    return give_mean(call, ed_sub(p, ed_mul(t, ed_log(ed_add(p, EPSILON)))));
}

MEAN_REFERENCE(poisson, p - t * log(p + EPSILON));
LOSS(poisson, "mean of y_pred - y_true log(y_pred + 1e-7)", LOSS_SAMPLES(0, 3, 0.3, 3));
LOSS_FUNCTION(poisson);

/* ---- Mean errors ----------------------------------------------------------------------------- */

static bool mean_squared_error_compose(ed_call *call)
{
    return has_rows(call) &&
           give_mean(call, ed_squared_difference(call->inputs[1], call->inputs[0]));
}

static bool mean_absolute_error_compose(ed_call *call)
{
    return has_rows(call) && give_mean(call, ed_abs(difference(call)));
}

static bool mean_absolute_percentage_error_compose(ed_call *call)
{
    if (!has_rows(call)) return false;
    ed_tensor *size = ed_maximum(ed_abs(call->inputs[0]), EPSILON);
    return give_mean(call,
                     ed_mul(ed_abs(ed_div(ed_sub(call->inputs[0], call->inputs[1]), size)), 100));
}

static bool mean_squared_logarithmic_error_compose(ed_call *call)
{
    if (!has_rows(call)) return false;
    ed_tensor *p = ed_log(ed_add(ed_maximum(call->inputs[1], EPSILON), 1));
    ed_tensor *t = ed_log(ed_add(ed_maximum(call->inputs[0], EPSILON), 1));
    return give_mean(call, ed_squared_difference(p, t));
}

static double least(double x)
{
    return x < EPSILON ? EPSILON : x;
}

MEAN_REFERENCE(mean_squared_error, (p - t) * (p - t));
MEAN_REFERENCE(mean_absolute_error, fabs(p - t));
MEAN_REFERENCE(mean_absolute_percentage_error, 100 * fabs((t - p) / least(fabs(t))));
MEAN_REFERENCE(mean_squared_logarithmic_error, pow(log(least(p) + 1) - log(least(t) + 1), 2));

LOSS(mean_squared_error, "mean of (y_pred - y_true)^2", LOSS_SAMPLES(-2, 2, -2, 2));
LOSS_FUNCTION(mean_squared_error);
LOSS(mean_absolute_error, "mean of |y_pred - y_true|", LOSS_SAMPLES(-2, 2, -2, 2));
LOSS_FUNCTION(mean_absolute_error);
LOSS(mean_absolute_percentage_error, "mean of 100 |y_pred - y_true| / |y_true|",
     LOSS_SAMPLES(0.5, 2, -2, 2));
LOSS_FUNCTION(mean_absolute_percentage_error);
LOSS(mean_squared_logarithmic_error, "mean of (log(y_pred + 1) - log(y_true + 1))^2",
     LOSS_SAMPLES(0.1, 2, 0.1, 2));
LOSS_FUNCTION(mean_squared_logarithmic_error);
