/*
 * l2_normalize: y = x / max(norm of x, sqrt(epsilon)); normalize: y = x / norm of x.
 * Compositions.
 */
#include "ops/execute.h"
#include "ops/ops.h"
#include <math.h>
#include <string.h>

static bool l2_normalize_compose(ed_call *call)
{
    const ed_l2_normalize_options *o = call->attrs;
    ed_tensor *x = call->inputs[0];
    ed_tensor *sum = ed_reduce_sum_square(x, .axis = o->axis, .keepdims = true);
    return ed_call_result(call, 0, ed_mul(x, ed_rsqrt(ed_maximum(sum, o->epsilon))));
}

/* Samples are normalized along all axes or the last one. */
static bool l2_normalize_reference(const ed_call *call)
{
    const ed_l2_normalize_options *o = call->attrs;
    const ed_tensor *x = call->inputs[0];
    const double *from = (const double *)x->data;
    double *to = (double *)call->outputs[0]->data;
    const int64_t n = o->axis.values ? x->shape[x->rank - 1] : x->size;
    for (int64_t begin = 0; begin < x->size; begin += n) {
        double sum = 0;
        for (int64_t i = begin; i < begin + n; i++) sum += from[i] * from[i];
        for (int64_t i = begin; i < begin + n; i++)
            to[i] = from[i] / sqrt(sum < o->epsilon ? o->epsilon : sum);
    }
    return true;
}

ED_OP(l2_normalize) = {
    .name = "l2_normalize",
    .doc = "y = x / max(norm of x, sqrt(epsilon))",
    .operands = {{"x", ED_SET_FLOAT, 'T'}},
    ED_OP_ATTRS(ED_L2_NORMALIZE_OPTIONS, ed_l2_normalize_options),
    .compose = l2_normalize_compose,
    .reference = l2_normalize_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4)},
                           .attrs = ED_ATTRS(ED_L2_NORMALIZE_OPTIONS, ed_l2_normalize_options,
                                             .axis = ED_SAMPLE_INTS(-1))}),
};

ed_tensor *ed_l2_normalize_with(ed_tensor *x, const ed_l2_normalize_options *options)
{
    return CALL_OP(l2_normalize, options, x);
}

/* ---- normalize ------------------------------------------------------------------------------- */

static bool normalize_compose(ed_call *call)
{
    const ed_normalize_options *o = call->attrs;
    ed_tensor *norm = ed_norm(call->inputs[0], .axis = o->axis, .ord = o->ord, .keepdims = true);
    return ed_call_result(call, 0, ed_div(call->inputs[0], norm)) && ed_call_result(call, 1, norm);
}

/* Samples are Euclidean, or of the order 1 along the last axis. */
static bool normalize_reference(const ed_call *call)
{
    const ed_normalize_options *o = call->attrs;
    const ed_tensor *x = call->inputs[0];
    const double *from = (const double *)x->data;
    const int64_t n = o->axis.values ? x->shape[x->rank - 1] : x->size;
    memset(call->outputs[1]->data, 0, (size_t)call->outputs[1]->size * sizeof(double));
    for (int64_t i = 0; i < x->size; i++) {
        double sum = 0;
        for (int64_t k = i / n * n; k < (i / n + 1) * n; k++)
            sum += o->ord == 1 ? fabs(from[k]) : from[k] * from[k];
        const double norm = o->ord == 1 ? sum : sqrt(sum);
        ((double *)call->outputs[0]->data)[i] = from[i] / norm;
        ((double *)call->outputs[1]->data)[i / n] = norm;
    }
    return true;
}

ED_OP(normalize) = {
    .name = "normalize",
    .doc = "y = x / norm of x, and the norm",
    .operands = {{"x", ED_SET_FLOAT, 'T'}},
    .results = ED_RESULTS({.name = "normalized"}, {.name = "norm"}),
    ED_OP_ATTRS(ED_NORMALIZE_OPTIONS, ed_normalize_options),
    .compose = normalize_compose,
    .reference = normalize_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0.5, 2, 3, 4)}},
                          {.inputs = {ED_SAMPLE_IN(0.5, 2, 3, 4)},
                           .attrs = ED_ATTRS(ED_NORMALIZE_OPTIONS, ed_normalize_options,
                                             .axis = ED_SAMPLE_INTS(-1), .ord = 1)}),
};

ed_tensor *ed_normalize_with(ed_tensor *x, ed_tensor **norm, const ed_normalize_options *options)
{
    return ops_call_into(&ed_op_normalize, &x, 1, options, (ed_tensor * *const[]){norm});
}
