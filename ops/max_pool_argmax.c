/*
 * max_pool_with_argmax: a composition of max_pool2d and of max_pool2d_gather, which fetches the
 * numbers of the elements (as float64, exact up to 2^53) from where the maxima are.
 */
#include "ops/window.h"
#include "ops/ops.h"
#include <math.h>
#include <string.h>

extern const ed_op ed_op_max_pool2d_gather;

/* The numbers of the elements of x, in its shape; from 0 on in each image, unless `batch`. */
static ed_tensor *element_numbers(ed_tensor *x, bool batch)
{
    const ed_ints shape = ed_shape(x);
    int64_t one[] = {batch ? shape.values[0] : 1, shape.values[1], shape.values[2],
                     shape.values[3]};
    const double n = (double)(one[0] * one[1] * one[2] * one[3]);
    return ed_broadcast_to(ed_reshape(ed_range(0, n, .dtype = ED_FLOAT64), ((ed_ints){one, 4})),
                           shape);
}

static bool max_pool_with_argmax_compose(ed_call *call)
{
    const ed_max_pool_with_argmax_options *o = call->attrs;
    const ed_pool2d_options *pool = ED_OPTIONS_FROM(ED_POOL2D_OPTIONS, o, ed_pool2d_options);
    ed_tensor *x = call->inputs[0], *y = ed_max_pool2d_with(x, pool);
    if (!y) return false;
    ed_tensor *values = ed_stop_gradient(ed_cast(x, ED_FLOAT64));
    ed_tensor *places =
        CALL_OP(max_pool2d_gather, pool, values, element_numbers(x, o->include_batch_in_index));
    return ed_call_result(call, 0, y) && ed_call_result(call, 1, ed_cast(places, ED_INT64));
}

/* One axis of the reference: first cell of window `at`, and the steps between cells. */
typedef struct plain_axis {
    int64_t size, extent, stride, dilation, before;
} plain_axis;

static plain_axis plain_axis_of(const ed_max_pool_with_argmax_options *o, int axis, int64_t size,
                                int64_t out)
{
    const ed_ints list[] = {o->window, o->strides, o->dilations};
    int64_t n[3];
    for (int i = 0; i < 3; i++)
        n[i] = !list[i].values ? -1 : list[i].values[list[i].count > 1 ? axis : 0];
    plain_axis a = {size, n[0] < 0 ? 2 : n[0], n[1], n[2] < 0 ? 1 : n[2], 0};
    if (a.stride < 0) a.stride = a.extent;
    const int64_t covered = (out - 1) * a.stride + (a.extent - 1) * a.dilation + 1;
    if (!strcmp(o->padding, "SAME") && covered > size) a.before = (covered - size) / 2;
    if (!strcmp(o->padding, "EXPLICIT")) a.before = o->explicit_paddings.values[2 * axis];
    return a;
}

/* The number of the largest element of a window, -1 without any. */
static int64_t plain_largest(const double *x, const plain_axis *a, const int64_t *place,
                             int64_t first, const int64_t *steps)
{
    int64_t best = -1;
    for (int64_t i = 0; i < a[0].extent; i++)
        for (int64_t j = 0; j < a[1].extent; j++) {
            const int64_t h = place[0] * a[0].stride - a[0].before + i * a[0].dilation;
            const int64_t w = place[1] * a[1].stride - a[1].before + j * a[1].dilation;
            const int64_t at = first + h * steps[0] + w * steps[1];
            if (h < 0 || h >= a[0].size || w < 0 || w >= a[1].size) continue;
            if (best < 0 || x[at] > x[best] || (isnan(x[at]) && !isnan(x[best]))) best = at;
        }
    return best;
}

static bool max_pool_with_argmax_reference(const ed_call *call)
{
    const ed_max_pool_with_argmax_options *o = call->attrs;
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    const bool first = window_channels_first(o->data_format);
    const int rows = first ? 2 : 1, channels = first ? 1 : 3;
    const plain_axis axes[] = {plain_axis_of(o, 0, x->shape[rows], y->shape[rows]),
                               plain_axis_of(o, 1, x->shape[rows + 1], y->shape[rows + 1])};
    int64_t steps[4] = {0, 0, 0, 1};
    for (int d = 2; d >= 0; d--) steps[d] = steps[d + 1] * x->shape[d + 1];
    for (int64_t e = 0; e < y->size; e++) {
        int64_t at[4], left = e;
        for (int d = 3; d >= 0; left /= y->shape[d--]) at[d] = left % y->shape[d];
        const int64_t best =
            plain_largest((const double *)x->data, axes, at + rows,
                          at[0] * steps[0] + at[channels] * steps[channels], steps + rows);
        const int64_t from = o->include_batch_in_index ? 0 : at[0] * steps[0];
        ((double *)y->data)[e] = best < 0 ? -INFINITY : ((const double *)x->data)[best];
        ((double *)call->outputs[1]->data)[e] = best < 0 ? 0 : (double)(best - from);
    }
    return true;
}

#define POOLED(...)                                                                                \
    .attrs = ED_ATTRS(ED_MAX_POOL_WITH_ARGMAX_OPTIONS, ed_max_pool_with_argmax_options, __VA_ARGS__)

ED_OP(max_pool_with_argmax) = {
    .name = "max_pool_with_argmax",
    .doc = "the largest x of each window, and its number",
    .operands = {{"x", ED_SET_FLOAT, 'T'}},
    .results = ED_RESULTS({.name = "y"}, {.name = "argmax"}),
    ED_OP_ATTRS(ED_MAX_POOL_WITH_ARGMAX_OPTIONS, ed_max_pool_with_argmax_options),
    .compose = max_pool_with_argmax_compose,
    .reference = max_pool_with_argmax_reference,
    .samples = ED_SAMPLES(
        {.inputs = {ED_DISTINCT_IN(-2, 2, 2, 4, 6, 3)}},
        {.inputs = {ED_DISTINCT_IN(-2, 2, 2, 4, 3, 2)}, POOLED(.include_batch_in_index = true)},
        {.inputs = {ED_DISTINCT_IN(-2, 2, 2, 5, 4, 2)},
         POOLED(.window = ED_SAMPLE_INTS(3, 2), .strides = ED_SAMPLE_INTS(2, 1),
                .padding = "SAME")},
        {.inputs = {ED_DISTINCT_IN(-2, 2, 2, 2, 4, 5)},
         POOLED(.dilations = ED_SAMPLE_INTS(2), .data_format = "NCHW")},
        {.inputs = {ED_DISTINCT_IN(-2, 2, 1, 3, 4, 2)},
         POOLED(.window = ED_SAMPLE_INTS(2), .strides = ED_SAMPLE_INTS(2), .padding = "EXPLICIT",
                .explicit_paddings = ED_SAMPLE_INTS(1, 0, 0, 1))}),
};

ed_tensor *ed_max_pool_with_argmax_with(ed_tensor *x, ed_tensor **argmax,
                                        const ed_max_pool_with_argmax_options *options)
{
    return ops_call_into(&ed_op_max_pool_with_argmax, &x, 1, options,
                         (ed_tensor * *const[]){argmax});
}
