/*
 * max_pool2d, and gradients of both orders: the first sends dy to the first largest cell of each
 * window; it is linear in dy, and its own gradient fetches from those cells again
 * (max_pool2d_gather).
 */
#include "ops/batch.h"
#include "ops/ops.h"
#include "ops/pool.h"
#include <math.h>

static bool max_pool2d_kernel(ed_call *call)
{
    pool_run(call, POOL_MAX, call->inputs[0], NULL, call->outputs[0]);
    return true;
}

static bool max_pool2d_gradient_kernel(ed_call *call)
{
    pool_run(call, POOL_MAX_SCATTER, call->inputs[0], call->outputs[0], call->inputs[1]);
    return true;
}

static bool max_pool2d_gather_kernel(ed_call *call)
{
    pool_run(call, POOL_MAX_GATHER, call->inputs[0], call->inputs[1], call->outputs[0]);
    return true;
}

static bool max_pool2d_gradient_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    int64_t shape[4];
    return pool_is_images(call) && pool_plan(call, x->shape, shape) &&
           pool_same_shape(call, "dy", call->inputs[1], shape) &&
           ed_call_output(call, 0, x->dtype, 4, x->shape);
}

static bool max_pool2d_gather_infer(ed_call *call)
{
    return pool_is_images(call) &&
           pool_same_shape(call, "v", call->inputs[1], call->inputs[0]->shape) && pool_infer(call);
}

extern const ed_op ed_op_max_pool2d_gradient, ed_op_max_pool2d_gather;

static bool max_pool2d_gradient(const ed_gradient_call *g)
{
    if (g->needs[0]) g->dx[0] = CALL_OP(max_pool2d_gradient, g->attrs, g->inputs[0], g->dy[0]);
    return true;
}

static bool max_pool2d_gradient_gradient(const ed_gradient_call *g)
{
    if (g->needs[1]) g->dx[1] = CALL_OP(max_pool2d_gather, g->attrs, g->inputs[0], g->dy[0]);
    return true;
}

static bool max_pool2d_gather_gradient(const ed_gradient_call *g)
{
    if (g->needs[1]) g->dx[1] = CALL_OP(max_pool2d_gradient, g->attrs, g->inputs[0], g->dy[0]);
    return true;
}

static void fetch(double *pooled, double *cell)
{
    *pooled = *cell;
}

static void send(double *pooled, double *cell)
{
    *cell += *pooled;
}

/* Calls join for each window and channel with its value and where its largest cell is; without any
 * cell, what is fetched is `none`. */
static bool plain_max(const ed_call *call, double *pooled, double *image, double none,
                      void (*join)(double *pooled, double *cell))
{
    const double *x = (double *)call->inputs[0]->data;
    const window *w = call->plan;
    for (int64_t e = 0; e < w->batch * w->out[0] * w->out[1] * w->channels; e++) {
        int64_t ow = e / w->channels % w->out[1], oh = e / w->channels / w->out[1] % w->out[0];
        int64_t n = e / w->channels / w->out[1] / w->out[0], best = -1;
        int64_t top, bottom, left, right;
        window_clip(w, 0, oh, &top, &bottom);
        window_clip(w, 1, ow, &left, &right);
        for (int64_t i = top; i < bottom; i += w->dilation[0])
            for (int64_t j = left; j < right; j += w->dilation[1]) {
                int64_t at =
                    ((n * w->image[0] + i) * w->image[1] + j) * w->channels + e % w->channels;
                if (best < 0 || x[at] > x[best] || (x[at] != x[at] && x[best] == x[best]))
                    best = at;
            }
        if (best >= 0)
            join(&pooled[e], &image[best]);
        else if (join == fetch)
            pooled[e] = none;
    }
    return true;
}

static bool max_pool2d_plain(const ed_call *call)
{
    return plain_max(call, (double *)call->outputs[0]->data, (double *)call->inputs[0]->data,
                     -INFINITY, fetch);
}

static bool max_pool2d_reference(const ed_call *call)
{
    return window_run_reference(call, pool_channels_first(call), 1, true, max_pool2d_plain);
}

static bool max_pool2d_gradient_plain(const ed_call *call)
{
    double *image = (double *)call->outputs[0]->data;
    for (int64_t i = 0; i < call->outputs[0]->size; i++) image[i] = 0;
    return plain_max(call, (double *)call->inputs[1]->data, image, 0, send);
}

static bool max_pool2d_gradient_reference(const ed_call *call)
{
    return window_run_reference(call, pool_channels_first(call), 3, true,
                                max_pool2d_gradient_plain);
}

static bool max_pool2d_gather_plain(const ed_call *call)
{
    return plain_max(call, (double *)call->outputs[0]->data, (double *)call->inputs[1]->data, 0,
                     fetch);
}

static bool max_pool2d_gather_reference(const ed_call *call)
{
    return window_run_reference(call, pool_channels_first(call), 3, true, max_pool2d_gather_plain);
}

/* max_pool2d: y = the largest of each window, dx = dy at the first largest cell */
ED_OP(max_pool2d) = {
    .name = "max_pool2d",
    .doc = "y = the largest x of each window",
    .operands = {{"x", ED_SET_FLOAT, 'T'}},
    .flags = ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(ED_POOL2D_OPTIONS, ed_pool2d_options),
    .infer = pool_infer,
    .batch = batch_examples,
    .kernel = max_pool2d_kernel,
    .gradient = max_pool2d_gradient,
    SAVES_X,
    .reference = max_pool2d_reference,
    .samples = POOL_SAMPLES(ED_DISTINCT_IN),
};

ED_OP(max_pool2d_gradient) = {
    .name = "max_pool2d_gradient",
    .doc = "dy at the first largest x of each window",
    .operands = {{"x", ED_SET_FLOAT, 'T'}, {"dy", ED_SET_FLOAT, 'T'}},
    .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL,
    ED_OP_ATTRS(ED_POOL2D_OPTIONS, ed_pool2d_options),
    .infer = max_pool2d_gradient_infer,
    .batch = batch_examples,
    .kernel = max_pool2d_gradient_kernel,
    .gradient = max_pool2d_gradient_gradient,
    SAVES_X,
    .reference = max_pool2d_gradient_reference,
    .samples =
        ED_SAMPLES({.inputs = {ED_DISTINCT_IN(-2, 2, 2, 4, 6, 3), ED_SAMPLE_IN(-2, 2, 2, 2, 3, 3)}},
                   {.inputs = {ED_DISTINCT_IN(-2, 2, 1, 6, 5, 2), ED_SAMPLE_IN(-2, 2, 1, 6, 3, 2)},
                    POOL_WITH(.window = ED_SAMPLE_INTS(3, 2), .strides = ED_SAMPLE_INTS(1, 2),
                              .padding = "SAME")},
                   {.inputs = {ED_DISTINCT_IN(-2, 2, 1, 2, 4, 5), ED_SAMPLE_IN(-2, 2, 1, 2, 1, 2)},
                    POOL_WITH(.dilations = ED_SAMPLE_INTS(2), .data_format = "NCHW")}),
};

ED_OP(max_pool2d_gather) = {
    .name = "max_pool2d_gather",
    .doc = "v at the first largest x of each window",
    .operands = {{"x", ED_SET_FLOAT, 'T'}, {"v", ED_SET_FLOAT, 'T'}},
    .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL,
    ED_OP_ATTRS(ED_POOL2D_OPTIONS, ed_pool2d_options),
    .infer = max_pool2d_gather_infer,
    .batch = batch_examples,
    .kernel = max_pool2d_gather_kernel,
    .gradient = max_pool2d_gather_gradient,
    SAVES_X,
    .reference = max_pool2d_gather_reference,
    .samples =
        ED_SAMPLES({.inputs = {ED_DISTINCT_IN(-2, 2, 2, 4, 6, 3), ED_SAMPLE_IN(-2, 2, 2, 4, 6, 3)}},
                   {.inputs = {ED_DISTINCT_IN(-2, 2, 1, 6, 5, 2), ED_SAMPLE_IN(-2, 2, 1, 6, 5, 2)},
                    POOL_WITH(.window = ED_SAMPLE_INTS(3, 2), .strides = ED_SAMPLE_INTS(1, 2),
                              .padding = "SAME")},
                   {.inputs = {ED_DISTINCT_IN(-2, 2, 1, 2, 4, 5), ED_SAMPLE_IN(-2, 2, 1, 2, 4, 5)},
                    POOL_WITH(.dilations = ED_SAMPLE_INTS(2), .data_format = "NCHW")}),
};

ed_tensor *ed_max_pool2d_with(ed_tensor *x, const ed_pool2d_options *options)
{
    return CALL_OP(max_pool2d, options, x);
}
