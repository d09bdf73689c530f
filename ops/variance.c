/*
 * Variance, standard deviation and moments: what one pass over x, by REDUCE_VARIANCE, gives.
 */
#include "ops/reductions.h"
#include <math.h>

/* What the sum of squared deviations is divided by. */
static double divisor_of(double n, const void *attrs)
{
    return fmax(0, n - (double)((const ed_variance_options *)attrs)->correction);
}

/* From a division by n to one by n - correction; deviations by the root of that. */
static void correct(ed_call *call, bool root)
{
    const ed_tensor *x = call->inputs[0];
    ed_tensor *y = call->outputs[0];
    if (!((const ed_variance_options *)call->attrs)->correction || !y->size) return;
    double n = (double)(x->size / y->size), factor = n / divisor_of(n, call->attrs);
    if (root) factor = sqrt(factor);
    for (int64_t i = 0; i < y->size; i++)
        dtype_store(y->dtype, y->data, i, dtype_load(y->dtype, y->data, i) * factor);
}

static bool variance_run(ed_call *call, reduce_kind kind)
{
    if (!reduce_run(kind, call->inputs[0], *(const unsigned *)call->plan, call->outputs[0]->data,
                    NULL))
        return false;
    correct(call, kind == REDUCE_STD);
    return true;
}

static double squares_of(const double *x, int64_t n)
{
    double mean = 0, y = 0;
    for (int64_t i = 0; i < n; i++) mean += x[i] / (double)n;
    for (int64_t i = 0; i < n; i++) y += (x[i] - mean) * (x[i] - mean);
    return y;
}

/* (x - mean) share, share being of the output's shape. */
static ed_tensor *deviations_times(const ed_gradient_call *g, ed_tensor *share)
{
    ed_reduce_options options;
    ed_tensor *mean = ed_reduce_mean_with(g->inputs[0], reduce_keeping(g, &options));
    return ed_mul(ed_sub(g->inputs[0], mean), reduce_kept(g, share));
}

#define CORRECTED(...) ED_ATTRS(ED_VARIANCE_OPTIONS, ed_variance_options, __VA_ARGS__)
#define VARIANCE(symbol, text, ...)                                                                \
    ED_OP(symbol) = {.name = #symbol,                                                              \
                     .doc = text,                                                                  \
                     .operands = X(ED_SET_FLOAT),                                                  \
                     ED_OP_ATTRS(ED_VARIANCE_OPTIONS, ed_variance_options),                        \
                     .infer = reduce_infer,                                                        \
                     .batch = ed_batch_reduction,                                                  \
                     .kernel = symbol##_kernel,                                                    \
                     .gradient = symbol##_gradient,                                                \
                     .reference = plain_##symbol,                                                  \
                     .samples = ED_SAMPLES(                                                        \
                         {.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4)}},                                  \
                         {.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4)},                                   \
                          .attrs = CORRECTED(.axis = ED_SAMPLE_INTS(0), .correction = 1)},         \
                         {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 4)},                                \
                          .attrs = CORRECTED(.axis = ED_SAMPLE_INTS(0, -1), .keepdims = true)}),   \
                     __VA_ARGS__};                                                                 \
    ed_tensor *ed_##symbol##_with(ed_tensor *x, const ed_variance_options *options)                \
    {                                                                                              \
        return CALL_OP(symbol, options, x);                                                        \
    }

/* ---- reduce_variance: y = sum of (x - mean)^2 / (n - correction) ----------------------------- */

static bool reduce_variance_kernel(ed_call *call)
{
    return variance_run(call, REDUCE_VARIANCE);
}

PLAIN(reduce_variance, squares_of(x, n) / divisor_of((double)n, attrs))

static bool reduce_variance_gradient(const ed_gradient_call *g)
{
    ED_SCOPE;
    const double n = divisor_of(reduce_count_of(g), g->attrs);
    g->dx[0] = ed_keep(deviations_times(g, ed_mul(g->dy[0], 2 / n)));
    return true;
}

VARIANCE(reduce_variance, "y = sum of (x - mean of x)^2 over the axes / (n - correction)", SAVES_X)

/* ---- reduce_std: y = sqrt variance, its gradient 0 where dy is, even if y is 0 --------------- */

static bool reduce_std_kernel(ed_call *call)
{
    return variance_run(call, REDUCE_STD);
}

PLAIN(reduce_std, sqrt(squares_of(x, n) / divisor_of((double)n, attrs)))

static bool reduce_std_gradient(const ed_gradient_call *g)
{
    ED_SCOPE;
    ed_tensor *y = ed_where(ed_equal(g->dy[0], 0.0), 1.0, g->outputs[0]);
    const double n = divisor_of(reduce_count_of(g), g->attrs);
    g->dx[0] = ed_keep(deviations_times(g, ed_div(ed_div(g->dy[0], n), y)));
    return true;
}

VARIANCE(reduce_std, "y = root of the variance of x over the axes", SAVES_X, SAVES_Y,
         .flags = ED_OP_READS_DY) /* where it is 0 */

/* ---- moments: mean and variance -------------------------------------------------------------- */

static bool moments_infer(ed_call *call)
{
    const ed_tensor *y;
    return reduce_infer(call) && (y = call->outputs[0]) &&
           ed_call_output(call, 1, y->dtype, y->rank, y->shape);
}

static bool moments_kernel(ed_call *call)
{
    return reduce_run(REDUCE_VARIANCE, call->inputs[0], *(const unsigned *)call->plan,
                      call->outputs[1]->data, call->outputs[0]->data);
}

static bool moments_gradient(const ed_gradient_call *g)
{
    ED_SCOPE;
    const double n = reduce_count_of(g);
    ed_tensor *dx = NULL;
    if (g->dy[1]) dx = deviations_times(g, ed_mul(g->dy[1], 2 / n));
    if (g->dy[0]) {
        ed_tensor *mean = ed_broadcast_to(reduce_kept(g, ed_div(g->dy[0], n)), g->shapes[0]);
        dx = dx ? ed_add(dx, mean) : mean;
    }
    g->dx[0] = ed_keep(dx);
    return true;
}

static double mean_of(const double *x, int64_t n, const void *attrs)
{
    (void)attrs;
    return reduce_plain(false, x, n) / (double)n;
}

static double variance_of(const double *x, int64_t n, const void *attrs)
{
    (void)attrs;
    return squares_of(x, n) / (double)n;
}

/* Of the second output as if it were the first. */
static bool moments_reference(const ed_call *call)
{
    ed_call second = *call;
    second.outputs = call->outputs + 1;
    return reduce_reference(call, mean_of) && reduce_reference(&second, variance_of);
}

ED_OP(moments) = {
    .name = "moments",
    .doc = "mean and variance of x over the axes",
    .operands = X(ED_SET_FLOAT),
    SAVES_X,
    .results = ED_RESULTS({.name = "mean"}, {.name = "variance"}),
    ED_OP_ATTRS(ED_REDUCE_OPTIONS, ed_reduce_options),
    .infer = moments_infer,
    .batch = ed_batch_reduction,
    .kernel = moments_kernel,
    .gradient = moments_gradient,
    .reference = moments_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4)}, .attrs = AXES(0)},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 4)}, .attrs = KEEPING(0, 2)})};

ed_tensor *ed_moments_with(ed_tensor *x, ed_tensor **variance, const ed_reduce_options *options)
{
    return ops_call_into(&ed_op_moments, &x, 1, options, (ed_tensor * *const[]){variance});
}

/* ---- weighted_moments ------------------------------------------------------------------------ */

static bool weighted_moments_compose(ed_call *call)
{
    const ed_reduce_options *o = call->attrs;
    ed_tensor *x = call->inputs[0], *weights = call->inputs[1];
    ed_tensor *total =
        ed_reduce_sum(ed_add(weights, ed_zeros_like(x)), .axis = o->axis, .keepdims = true);
    ed_tensor *mean =
        ed_div(ed_reduce_sum(ed_mul(weights, x), .axis = o->axis, .keepdims = true), total);
    ed_tensor *squares = ed_mul(weights, ed_squared_difference(x, mean));
    ed_tensor *variance = ed_div(ed_reduce_sum(squares, .axis = o->axis, .keepdims = true), total);
    if (!o->keepdims && variance) {
        mean = ed_squeeze(mean, .axis = o->axis);
        variance = ed_squeeze(variance, .axis = o->axis);
    }
    return ed_call_result(call, 0, mean) && ed_call_result(call, 1, variance);
}

/* Options, and all elements of x and the weights, to which a group's numbers are the indices. */
typedef struct weighted {
    ed_reduce_options options;
    const double *x, *weights;
} weighted;

static double weighted_mean_of(const double *at, int64_t n, const void *attrs)
{
    const weighted *all = attrs;
    double sum = 0, total = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += all->x[(int64_t)at[i]] * all->weights[(int64_t)at[i]];
        total += all->weights[(int64_t)at[i]];
    }
    return sum / total;
}

static double weighted_variance_of(const double *at, int64_t n, const void *attrs)
{
    const weighted *all = attrs;
    double mean = weighted_mean_of(at, n, attrs), sum = 0, total = 0;
    for (int64_t i = 0; i < n; i++) {
        const double x = all->x[(int64_t)at[i]], w = all->weights[(int64_t)at[i]];
        sum += w * ((x - mean) * (x - mean));
        total += w;
    }
    return sum / total;
}

static bool weighted_moments_reference(const ed_call *call)
{
    ED_SCOPE;
    const ed_tensor *x = call->inputs[0], *w = call->inputs[1];
    int64_t shape[ED_MAX_RANK];
    int rank;
    if (!ops_broadcast(x->rank, x->shape, w->rank, w->shape, &rank, shape)) return false;
    x = ed_contiguous(ed_broadcast_to(call->inputs[0], (ed_ints){shape, rank}));
    w = ed_contiguous(ed_broadcast_to(call->inputs[1], (ed_ints){shape, rank}));
    ed_tensor *at = ed_zeros(((ed_ints){shape, rank}), .dtype = ED_FLOAT64);
    if (!x || !w || !at) return false;
    for (int64_t i = 0; i < at->size; i++) ((double *)at->data)[i] = (double)i;
    weighted all = {*(const ed_reduce_options *)call->attrs, (double *)x->data, (double *)w->data};
    ed_call over = *call;
    over.attrs = &all;
    over.inputs = &at;
    bool ok = reduce_reference(&over, weighted_mean_of);
    over.outputs = call->outputs + 1;
    return ok && reduce_reference(&over, weighted_variance_of);
}

ED_OP(weighted_moments) = {
    .name = "weighted_moments",
    .doc = "weighted mean and variance of x over the axes",
    .operands = {{"x", ED_SET_FLOAT, 'T'}, {"weights", ED_SET_FLOAT, 'T'}},
    .results = ED_RESULTS({.name = "mean"}, {.name = "variance"}),
    ED_OP_ATTRS(ED_REDUCE_OPTIONS, ed_reduce_options),
    .compose = weighted_moments_compose,
    .reference = weighted_moments_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4), ED_SAMPLE_IN(0.5, 2, 3, 4)},
                           .attrs = AXES(0)},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 2), ED_SAMPLE_IN(0.5, 2, 3, 1)},
                           .attrs = KEEPING(0, -2)},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 5), ED_SAMPLE_IN(0.5, 2, 5)}})};

ed_tensor *ed_weighted_moments_with(ed_tensor *x, ed_tensor *weights, ed_tensor **variance,
                                    const ed_reduce_options *options)
{
    return ops_call_into(&ed_op_weighted_moments, (ed_tensor *const[]){x, weights}, 2, options,
                         (ed_tensor * *const[]){variance});
}
