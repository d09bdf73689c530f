/* sufficient_statistics and normalize_moments: moments by sums, which may be added up over parts.
 * Compositions. */
#include "ops/reductions.h"
#include "ops/ops.h"
#include <math.h>

/* ---- sufficient_statistics ------------------------------------------------------------------- */

static bool sufficient_statistics_compose(ed_call *call)
{
    const ed_reduce_options *o = call->attrs;
    ed_tensor *x = call->inputs[0];
    unsigned mask;
    if (!ops_axes(call, o->axis, ed_rank(x), &mask)) return false;
    int64_t count = 1;
    for (int d = 0; d < ed_rank(x); d++) count *= mask >> d & 1 ? ed_dim(x, d) : 1;
    ed_tensor *moved = ed_sub(x, call->inputs[1]);
    if (moved && (ed_rank(moved) != ed_rank(x) || ed_size(moved) != ed_size(x)))
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "shift %s does not broadcast to x %s",
                            text_of_tensor(tensor_read(call->inputs[1])).s,
                            text_of_tensor(tensor_read(x)).s);
    return moved && ed_call_result(call, 0, ed_scalar((double)count, .dtype = ed_dtype_of(x))) &&
           ed_call_result(call, 1,
                          ed_reduce_sum(moved, .axis = o->axis, .keepdims = o->keepdims)) &&
           ed_call_result(call, 2,
                          ed_reduce_sum_square(moved, .axis = o->axis, .keepdims = o->keepdims));
}

/* Samples are reduced along all axes, or the first; a shift is one number. */
static bool sufficient_statistics_reference(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    const ed_reduce_options *options = call->attrs;
    const int64_t n = call->outputs[1]->size, count = options->axis.values ? x->shape[0] : x->size;
    const double shift = *(const double *)call->inputs[1]->data;
    *(double *)call->outputs[0]->data = (double)count;
    for (int64_t o = 0; o < n; o++) {
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < count; i++) {
            const double moved = ((const double *)x->data)[i * n + o] - shift;
            sum += moved, squares += moved * moved;
        }
        ((double *)call->outputs[1]->data)[o] = sum;
        ((double *)call->outputs[2]->data)[o] = squares;
    }
    return true;
}

ED_OP(sufficient_statistics) = {
    .name = "sufficient_statistics",
    .doc = "number, sum and sum of squares of x - shift over the axes",
    .operands = {{"x", ED_SET_FLOAT, 'T'}, {"shift", ED_SET_FLOAT, 'T'}},
    .results = ED_RESULTS({.name = "counts"}, {.name = "mean_ss"}, {.name = "variance_ss"}),
    ED_OP_ATTRS(ED_REDUCE_OPTIONS, ed_reduce_options),
    .compose = sufficient_statistics_compose,
    .reference = sufficient_statistics_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4), ED_SAMPLE_IN(-1, 1)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4), ED_SAMPLE_IN(-1, 1)},
                           .attrs = KEEPING(0)}),
};

ed_tensor *ed_sufficient_statistics_with(ed_tensor *x, ed_tensor *shift, ed_tensor **mean_ss,
                                         ed_tensor **variance_ss, const ed_reduce_options *options)
{
    if (!shift && x) shift = ed_scalar(0.0, .dtype = ed_dtype_of(x));
    return ops_call_into(&ed_op_sufficient_statistics, (ed_tensor *const[]){x, shift}, 2, options,
                         (ed_tensor * *const[]){mean_ss, variance_ss});
}

/* ---- normalize_moments ----------------------------------------------------------------------- */

static bool normalize_moments_compose(ed_call *call)
{
    ed_tensor *counts = call->inputs[0], *mean = ed_div(call->inputs[1], counts);
    ed_tensor *variance = ed_sub(ed_div(call->inputs[2], counts), ed_square(mean));
    return ed_call_result(call, 0, ed_add(mean, call->inputs[3])) &&
           ed_call_result(call, 1, variance);
}

/* The sums of samples have one shape. */
static bool normalize_moments_reference(const ed_call *call)
{
    const double count = *(const double *)call->inputs[0]->data;
    const double shift = *(const double *)call->inputs[3]->data;
    for (int64_t i = 0; i < call->outputs[0]->size; i++) {
        const double mean = ((const double *)call->inputs[1]->data)[i] / count;
        ((double *)call->outputs[0]->data)[i] = mean + shift;
        ((double *)call->outputs[1]->data)[i] =
            ((const double *)call->inputs[2]->data)[i] / count - mean * mean;
    }
    return true;
}

ED_OP(normalize_moments) = {
    .name = "normalize_moments",
    .doc = "mean and variance from number, sum and sum of squares of x - shift",
    .operands = {{"counts", ED_SET_FLOAT, 'T'},
                 {"mean_ss", ED_SET_FLOAT, 'T'},
                 {"variance_ss", ED_SET_FLOAT, 'T'},
                 {"shift", ED_SET_FLOAT, 'T'}},
    .results = ED_RESULTS({.name = "mean"}, {.name = "variance"}),
    .compose = normalize_moments_compose,
    .reference = normalize_moments_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(2, 4), ED_SAMPLE_IN(-2, 2, 3),
                                      ED_SAMPLE_IN(5, 9, 3), ED_SAMPLE_IN(-1, 1)}},
                          {.inputs = {ED_SAMPLE_IN(2, 4), ED_SAMPLE_IN(-2, 2, 2, 3),
                                      ED_SAMPLE_IN(5, 9, 2, 3), ED_SAMPLE_IN(-1, 1)}}),
};

ed_tensor *ed_normalize_moments(ed_tensor *counts, ed_tensor *mean_ss, ed_tensor *variance_ss,
                                ed_tensor *shift, ed_tensor **variance)
{
    if (!shift && counts) shift = ed_scalar(0.0, .dtype = ed_dtype_of(counts));
    return ops_call_into(&ed_op_normalize_moments,
                         (ed_tensor *const[]){counts, mean_ss, variance_ss, shift}, 4, NULL,
                         (ed_tensor * *const[]){variance});
}
