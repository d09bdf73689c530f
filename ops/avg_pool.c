/* avg_pool2d, and its gradient, which shares dy among the cells of each window. */
#include "ops/batch.h"
#include "ops/ops.h"
#include "ops/pool.h"

static bool avg_pool2d_kernel(ed_call *call)
{
    pool_run(call, POOL_MEAN, call->inputs[0], NULL, call->outputs[0]);
    return true;
}

static bool avg_pool2d_gradient_kernel(ed_call *call)
{
    pool_run(call, POOL_MEAN_SCATTER, NULL, call->outputs[0], call->inputs[0]);
    return true;
}

extern const ed_op ed_op_avg_pool2d_gradient;

static bool avg_pool2d_gradient_infer(ed_call *call)
{
    const pool_gradient_attrs *o = call->attrs;
    const ed_tensor *dy = call->inputs[0];
    bool ok = o->shape.values && o->shape.count == 4;
    for (int i = 0; ok && i < 4; i++) ok = o->shape.values[i] >= 0;
    if (!ok)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "shape must be 4 sizes >= 0, got %s",
                            text_of_ints(o->shape.values, o->shape.values ? o->shape.count : 0).s);
    int64_t shape[4];
    return pool_plan(call, o->shape.values, shape) && pool_same_shape(call, "dy", dy, shape) &&
           ed_call_output(call, 0, dy->dtype, 4, o->shape.values);
}

static bool avg_pool2d_gradient(const ed_gradient_call *g)
{
    const ed_pool2d_options *o = g->attrs;
    if (g->needs[0])
        g->dx[0] = CALL_OP(
            avg_pool2d_gradient,
            ED_OPTIONS_FROM(ED_POOL2D_OPTIONS, o, pool_gradient_attrs, .shape = g->shapes[0]),
            g->dy[0]);
    return true;
}

static bool avg_pool2d_gradient_gradient(const ed_gradient_call *g)
{
    const ed_pool2d_options o = pool_options(g->attrs);
    if (g->needs[0]) g->dx[0] = ed_avg_pool2d_with(g->dy[0], &o);
    return true;
}

/* The number of cells of a window along an axis, of which *begin is the first. */
static int64_t cells_along(const window *w, int axis, int64_t o, int64_t *begin)
{
    int64_t end;
    window_clip(w, axis, o, begin, &end);
    return end > *begin ? (end - *begin + w->dilation[axis] - 1) / w->dilation[axis] : 0;
}

/* Calls join for each window, channel and cell, with the number of the window's cells. */
static bool plain_mean(const ed_call *call, double *pooled, double *image,
                       void (*join)(double *pooled, double *cell, double count))
{
    const window *w = call->plan;
    for (int64_t e = 0; e < w->batch * w->out[0] * w->out[1] * w->channels; e++) {
        int64_t ow = e / w->channels % w->out[1], oh = e / w->channels / w->out[1] % w->out[0];
        int64_t n = e / w->channels / w->out[1] / w->out[0], top, left;
        const int64_t rows = cells_along(w, 0, oh, &top), columns = cells_along(w, 1, ow, &left);
        for (int64_t i = 0; i < rows * columns; i++) {
            const int64_t h = top + i / columns * w->dilation[0],
                          v = left + i % columns * w->dilation[1];
            join(&pooled[e],
                 &image[((n * w->image[0] + h) * w->image[1] + v) * w->channels + e % w->channels],
                 (double)(rows * columns));
        }
    }
    return true;
}

static void take_share(double *pooled, double *cell, double count)
{
    *pooled += *cell / count;
}

static void give_share(double *pooled, double *cell, double count)
{
    *cell += *pooled / count;
}

static bool avg_pool2d_plain(const ed_call *call)
{
    double *pooled = (double *)call->outputs[0]->data;
    for (int64_t i = 0; i < call->outputs[0]->size; i++) pooled[i] = 0;
    return plain_mean(call, pooled, (double *)call->inputs[0]->data, take_share);
}

static bool avg_pool2d_reference(const ed_call *call)
{
    return window_run_reference(call, pool_channels_first(call), 1, true, avg_pool2d_plain);
}

static bool avg_pool2d_gradient_plain(const ed_call *call)
{
    double *image = (double *)call->outputs[0]->data;
    for (int64_t i = 0; i < call->outputs[0]->size; i++) image[i] = 0;
    return plain_mean(call, (double *)call->inputs[0]->data, image, give_share);
}

static bool avg_pool2d_gradient_reference(const ed_call *call)
{
    return window_run_reference(call, pool_channels_first(call), 1, true,
                                avg_pool2d_gradient_plain);
}

#define SHAPED(shape_, ...)                                                                        \
    .attrs = ED_ATTRS(POOL_GRADIENT_ATTRS, pool_gradient_attrs, .shape = shape_, __VA_ARGS__)

/* avg_pool2d: y = the mean of each window, dx = dy / count at each of its cells */
ED_OP(avg_pool2d) = {
    .name = "avg_pool2d",
    .doc = "y = the mean x of each window",
    .operands = {{"x", ED_SET_FLOAT, 'T'}},
    .flags = ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(ED_POOL2D_OPTIONS, ed_pool2d_options),
    .infer = pool_infer,
    .batch = batch_examples,
    .kernel = avg_pool2d_kernel,
    .gradient = avg_pool2d_gradient,
    .reference = avg_pool2d_reference,
    .samples = POOL_SAMPLES(ED_SAMPLE_IN),
};

ED_OP(avg_pool2d_gradient) = {
    .name = "avg_pool2d_gradient",
    .doc = "dy / count at each cell of its window",
    .operands = {{"dy", ED_SET_FLOAT, 'T'}},
    .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL,
    ED_OP_ATTRS(POOL_GRADIENT_ATTRS, pool_gradient_attrs),
    .infer = avg_pool2d_gradient_infer,
    .batch = batch_examples,
    .kernel = avg_pool2d_gradient_kernel,
    .gradient = avg_pool2d_gradient_gradient,
    .reference = avg_pool2d_gradient_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 2, 2, 3, 3)},
                           SHAPED(ED_SAMPLE_INTS(2, 4, 6, 3), .padding = "VALID")},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 6, 3, 2)},
                           SHAPED(ED_SAMPLE_INTS(1, 6, 5, 2), .window = ED_SAMPLE_INTS(3, 2),
                                  .strides = ED_SAMPLE_INTS(1, 2), .padding = "SAME")},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 2, 1, 2)},
                           SHAPED(ED_SAMPLE_INTS(1, 2, 4, 5), .dilations = ED_SAMPLE_INTS(2),
                                  .data_format = "NCHW")},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 2, 3, 19)},
                           SHAPED(ED_SAMPLE_INTS(1, 5, 7, 19), .padding = "VALID")},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 3, 3, 2)},
                           SHAPED(ED_SAMPLE_INTS(1, 4, 3, 2), .padding = "EXPLICIT",
                                  .explicit_paddings = ED_SAMPLE_INTS(3, 0, 0, 4))}),
};

ed_tensor *ed_avg_pool2d_with(ed_tensor *x, const ed_pool2d_options *options)
{
    return CALL_OP(avg_pool2d, options, x);
}
