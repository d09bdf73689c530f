/*
 * Mathematics made of other ops: reciprocal_no_nan, lbeta, zero_fraction, is_non_decreasing,
 * is_strictly_increasing.
 */
#include "ops/execute.h"
#include "ops/ops.h"
#include <math.h>

/* ---- reciprocal_no_nan: y = 1 / x, 0 for 0 --------------------------------------------------- */

static bool reciprocal_no_nan_compose(ed_call *call)
{
    return ed_call_result(call, 0, ed_div_no_nan(1, call->inputs[0]));
}

static bool reciprocal_no_nan_reference(const ed_call *call)
{
    const double *x = (const double *)call->inputs[0]->data;
    for (int64_t i = 0; i < call->outputs[0]->size; i++)
        ((double *)call->outputs[0]->data)[i] = x[i] == 0 ? 0 : 1 / x[i];
    return true;
}

ED_OP(reciprocal_no_nan) = {
    .name = "reciprocal_no_nan",
    .doc = "y = 1 / x, 0 where x is 0",
    .operands = {{"x", ED_SET_FLOAT, 'T'}},
    .compose = reciprocal_no_nan_compose,
    .reference = reciprocal_no_nan_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0.5, 2, 3, 4)}},
                          {.inputs = {ED_SAMPLE_IN(-2, -1)}}),
};

ed_tensor *ed_reciprocal_no_nan(ed_tensor *x)
{
    return CALL_OP(reciprocal_no_nan, NULL, x);
}

/* ---- lbeta: y = sum of ln gamma(x) - ln gamma(sum of x), along the last axis ----------------- */

static bool lbeta_compose(ed_call *call)
{
    ed_tensor *x = call->inputs[0];
    if (ed_rank(x) == 0)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "x must have rank >= 1, got %s",
                            text_of_tensor(tensor_read(x)).s);
    ed_tensor *each = ed_reduce_sum(ed_lgamma(x), .axis = ED_AXES(-1));
    return ed_call_result(call, 0, ed_sub(each, ed_lgamma(ed_reduce_sum(x, .axis = ED_AXES(-1)))));
}

static bool lbeta_reference(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    const int64_t n = x->shape[x->rank - 1];
    for (int64_t o = 0; o < y->size; o++) {
        double each = 0, sum = 0;
        for (int64_t i = o * n; i < (o + 1) * n; i++) {
            each += lgamma(((const double *)x->data)[i]);
            sum += ((const double *)x->data)[i];
        }
        ((double *)y->data)[o] = each - lgamma(sum);
    }
    return true;
}

ED_OP(lbeta) = {
    .name = "lbeta",
    .doc = "y = ln |beta(x)| along the last axis",
    .operands = {{"x", ED_SET_FLOAT, 'T'}},
    .compose = lbeta_compose,
    .reference = lbeta_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0.5, 3, 2, 3)}},
                          {.inputs = {ED_SAMPLE_IN(0.5, 3, 2)}}),
};

ed_tensor *ed_lbeta(ed_tensor *x)
{
    return CALL_OP(lbeta, NULL, x);
}

/* ---- zero_fraction --------------------------------------------------------------------------- */

/* Counts are exact in float64. */
static bool zero_fraction_compose(ed_call *call)
{
    ed_tensor *x = call->inputs[0];
    const double n = (double)ed_size(x);
    ed_tensor *zeros = ed_sub(n, ed_cast(ed_count_nonzero(x), ED_FLOAT64));
    return ed_call_result(call, 0, ed_cast(ed_div(zeros, n), ED_FLOAT32));
}

static bool zero_fraction_reference(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    double zeros = 0;
    for (int64_t i = 0; i < x->size; i++) zeros += ((const double *)x->data)[i] == 0;
    *(double *)call->outputs[0]->data = (float)(zeros / (double)x->size);
    return true;
}

ED_OP(zero_fraction) = {
    .name = "zero_fraction",
    .doc = "the share of zeros among the elements of x, float32",
    .operands = {{"x", ED_SET_NUMBER | ED_SET_BOOL, 'T'}},
    .compose = zero_fraction_compose,
    .no_gradient = "a count does not change gradually",
    .reference = zero_fraction_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 1, 3, 4)}}, {.inputs = {ED_SAMPLE_IN(0, 1)}}),
};

ed_tensor *ed_zero_fraction(ed_tensor *x)
{
    return CALL_OP(zero_fraction, NULL, x);
}

/* ---- is_non_decreasing, is_strictly_increasing ----------------------------------------------- */

/* Whether compare(x[i], x[i + 1]) holds for all neighbours in row-major order. */
static bool compare_neighbours(ed_call *call, ed_tensor *(*compare)(ed_tensor *, ed_tensor *))
{
    const int64_t n = ed_size(call->inputs[0]), rest = n > 0 ? n - 1 : 0;
    ed_tensor *x = ed_reshape(call->inputs[0], ED_INTS(n));
    ed_tensor *before = ed_slice(x, .end = ED_INTS(rest));
    ed_tensor *after = ed_slice(x, .begin = ED_INTS(n - rest));
    return ed_call_result(call, 0, ed_reduce_all(compare(before, after)));
}

static bool is_non_decreasing_compose(ed_call *call)
{
    return compare_neighbours(call, ed_less_equal);
}

static bool is_strictly_increasing_compose(ed_call *call)
{
    return compare_neighbours(call, ed_less);
}

static bool neighbours_reference(const ed_call *call, bool strictly)
{
    const double *x = (const double *)call->inputs[0]->data;
    bool all = true;
    for (int64_t i = 0; i + 1 < call->inputs[0]->size; i++)
        all &= strictly ? x[i] < x[i + 1] : x[i] <= x[i + 1];
    *(double *)call->outputs[0]->data = all;
    return true;
}

static bool is_non_decreasing_reference(const ed_call *call)
{
    return neighbours_reference(call, false);
}

static bool is_strictly_increasing_reference(const ed_call *call)
{
    return neighbours_reference(call, true);
}

#define ORDERED(symbol, text)                                                                      \
    ED_OP(symbol) = {                                                                              \
        .name = #symbol,                                                                           \
        .doc = text,                                                                               \
        .operands = {{"x", ED_SET_NUMBER, 'T'}},                                                   \
        .compose = symbol##_compose,                                                               \
        .no_gradient = "an order does not change gradually",                                       \
        .reference = symbol##_reference,                                                           \
        .samples = ED_SAMPLES(                                                                     \
            {.inputs = {ED_SAMPLE_IN(-2, 2, 3, 2)}}, {.inputs = {ED_SORTED_IN(-2, 2, 7)}},         \
            {.inputs = {ED_SAMPLE_IN(1, 1, 3)}}, {.inputs = {ED_SAMPLE_IN(0, 1)}}),                \
    };                                                                                             \
    ed_tensor *ed_##symbol(ed_tensor *x)                                                           \
    {                                                                                              \
        return CALL_OP(symbol, NULL, x);                                                           \
    }

ORDERED(is_non_decreasing, "whether no element of x is less than the one before")
ORDERED(is_strictly_increasing, "whether each element of x is larger than the one before")
