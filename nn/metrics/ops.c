/* The ops of all metrics: one that adds, one that resets. */
#include "nn/metrics/metric.h"
#include "ops/ops.h"
#include <string.h>

/* ---- metric_add ------------------------------------------------------------------------------ */

/* The variables, then what is added to them. */
static bool add_infer(ed_call *call)
{
    const int n = call->n_writes = call->n_inputs / 2;
    if (call->n_inputs % 2)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "got %d operands; expected variables and as many increments",
                            call->n_inputs);
    for (int i = 0; i < n; i++)
        if (!tensor_same_shape(call->inputs[i], call->inputs[n + i]))
            return ed_call_fail(
                call, ED_INVALID_ARGUMENT, "variable %lld is %s, its increment is %s", text_nth(i),
                text_of_tensor(call->inputs[i]).s, text_of_tensor(call->inputs[n + i]).s);
    return true;
}

static bool add_all(const ed_call *call)
{
    const int n = call->n_inputs / 2;
    for (int i = 0; i < n; i++) {
        double *v = (double *)call->inputs[i]->data;
        const double *x = (const double *)call->inputs[n + i]->data;
        for (int64_t k = 0; k < call->inputs[i]->size; k++) v[k] += x[k];
    }
    return true;
}

static bool add_kernel(ed_call *call)
{
    return add_all(call);
}

/* An op of any number of variables. */
#define VARIABLES_OP(symbol, text, ...)                                                            \
    ED_OP(metric_##symbol) = {.name = "metric_" #symbol,                                           \
                              .doc = text,                                                         \
                              .results = ED_NO_RESULTS,                                            \
                              .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL | ED_OP_VARIADIC,         \
                              .no_gradient = "it updates a metric",                                \
                              __VA_ARGS__}

VARIABLES_OP(add, "variable += increment; variables, then their increments",
             .operands = {{"variables", 1 << ED_FLOAT64, 'D', .writes = true}}, .infer = add_infer,
             .kernel = add_kernel, .reference = add_all,
             .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 7), ED_SAMPLE_IN(-2, 2, 7)}},
                                   {.inputs = {ED_SAMPLE_IN(-2, 2), ED_SAMPLE_IN(-2, 2, 2, 5),
                                               ED_SAMPLE_IN(-2, 2), ED_SAMPLE_IN(-2, 2, 2, 5)}}));

/* ---- metric_reset ---------------------------------------------------------------------------- */

static bool reset_infer(ed_call *call)
{
    (void)call;
    return true;
}

static bool reset_all(const ed_call *call)
{
    for (int i = 0; i < call->n_inputs; i++)
        memset(call->inputs[i]->data, 0, (size_t)call->inputs[i]->size * sizeof(double));
    return true;
}

static bool reset_kernel(ed_call *call)
{
    return reset_all(call);
}

VARIABLES_OP(reset, "variables = 0",
             .operands = {{"variables", 1 << ED_FLOAT64, 'D', .writes = true}},
             .infer = reset_infer, .kernel = reset_kernel, .reference = reset_all,
             .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2), ED_SAMPLE_IN(0, 9, 3, 4)}}));

/* ---- For fast ops ---------------------------------------------------------------------------- */

bool metric_add(const ed_call *call, double sum, const ed_tensor *x)
{
    const int64_t samples = x->rank ? x->shape[0] : 1;
    if (!x->size) return true;
    *(double *)call->inputs[0]->data += sum / (double)(x->size / samples);
    *(double *)call->inputs[1]->data += (double)samples;
    return true;
}

bool metric_infer(ed_call *call)
{
    if (call->inputs[0]->rank == 0 && call->inputs[1]->rank == 0) return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT, "total and count must be scalars, got %s and %s",
                        text_of_tensor(call->inputs[0]).s, text_of_tensor(call->inputs[1]).s);
}

/* [...], and the same or [..., 1]. */
static bool is_squeezed(const ed_tensor *x, const ed_tensor *y)
{
    return (y->rank == x->rank || (y->rank == x->rank + 1 && y->shape[x->rank] == 1)) &&
           !memcmp(x->shape, y->shape, (size_t)x->rank * sizeof *x->shape);
}

bool metric_infer_same_shape(ed_call *call)
{
    const ed_tensor *labels = call->inputs[2], *predictions = call->inputs[3];
    if (!metric_infer(call)) return false;
    if (is_squeezed(labels, predictions) || is_squeezed(predictions, labels)) return true;
    return ed_call_fail(
        call, ED_INVALID_ARGUMENT,
        "labels are %s, predictions are %s; they must have the same shape, but for a "
        "last dimension of 1",
        text_of_tensor(labels).s, text_of_tensor(predictions).s);
}

/* ---- Means and sums -------------------------------------------------------------------------- */

ed_tensor *metric_float64(ed_tensor *x)
{
    return x && x->dtype != ED_FLOAT64 ? ed_cast(x, ED_FLOAT64) : x;
}

/* A fold of the axes from `first` on; x itself if there are none. */
typedef ed_tensor *fold(ed_tensor *x, const ed_reduce_options *options);

static ed_tensor *fold_from(ed_tensor *x, int first, fold *f)
{
    static const int64_t axes[] = {0, 1, 2, 3, 4, 5, 6, 7};
    if (!x || x->rank <= first) return x;
    ed_reduce_options options = ED_NEW_OPTIONS(ED_REDUCE_OPTIONS, ed_reduce_options);
    options.axis = (ed_ints){axes + first, x->rank - first};
    return f(x, &options);
}

static bool weight_fails(const metric_call *call, const ed_tensor *weight, const ed_tensor *values)
{
    return ed_fail(ED_INVALID_ARGUMENT,
                   "%s: sample_weight is %s, the samples' values are %s; weights must have the "
                   "values' first axes, with their sizes or 1",
                   call->who, text_of_tensor(weight).s, text_of_tensor(values).s);
}

/* The values of samples times their weights, and these, with one number a sample each. */
static bool to_samples(const metric_call *call, ed_tensor **values, ed_tensor **weight, fold *f)
{
    ed_tensor *v = metric_float64(*values), *w = call->weight;
    if (v && w) {
        if (!loss_same_rank(&v, &w)) return false;
        v = fold_from(v, w->rank, f);
        if (!v) return false;
        if (!loss_broadcasts_to(w, v)) return weight_fails(call, w, v);
        w = ed_broadcast_to(w, ed_shape(v));
        v = ed_mul(v, w);
        w = fold_from(w, 1, f);
        if (!w) return false;
    }
    *weight = w;
    return (*values = fold_from(v, 1, f)) != NULL;
}

bool metric_add_mean(metric_call *call, ed_tensor *values)
{
    ed_tensor *weight;
    if (!to_samples(call, &values, &weight, ed_reduce_mean_with)) return false;
    call->increments[0] = values->rank ? ed_reduce_sum(values) : values;
    call->increments[1] =
        weight ? ed_reduce_sum(weight)
               : ed_scalar(values->rank ? (double)values->size : 1, .dtype = ED_FLOAT64);
    return call->increments[0] && call->increments[1];
}

bool metric_add_sum(metric_call *call, ed_tensor *values)
{
    ed_tensor *weight;
    if (!to_samples(call, &values, &weight, ed_reduce_sum_with)) return false;
    return (call->increments[0] = ed_reduce_sum(values)) != NULL;
}

ed_tensor *metric_spread(const metric_call *call, const ed_tensor *x)
{
    ed_tensor *w = call->weight;
    if (!x) return NULL;
    if (w->rank == x->rank + 1 && w->shape[x->rank] == 1) w = ed_squeeze(w, .axis = ED_AXES(-1));
    while (w && w->rank && w->rank < x->rank) w = ed_expand_dims(w, -1);
    if (!w) return NULL;
    if (!loss_broadcasts_to(w, x)) return weight_fails(call, call->weight, x), NULL;
    return ed_broadcast_to(w, ed_shape(x));
}

bool metric_leave_out(metric_call *call, ed_tensor *mask)
{
    ed_tensor *counts = metric_float64(mask), *w = call->weight;
    if (!counts) return false;
    if (w && w->rank < counts->rank && !(w = metric_spread(call, counts))) return false;
    return (call->weight = loss_join_weights(call->who, w, counts)) != NULL;
}
