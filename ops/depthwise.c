/*
 * depthwise_conv2d and its two gradients, which are linear in each operand and one another's
 * gradients; depthwise.simd.c computes them, depthwise_planes.simd.c where channels come first.
 * separable_conv2d is a composition.
 */
#include "ops/conv.h"
#include "ops/depthwise.h"
#include "ops/ops.h"
#include <string.h>

/* Attributes of the gradients: the convolution's, and the shape that is wanted. */
#define DEPTHWISE_GRADIENT_ATTRS(FIELD, T)                                                         \
    ED_DEPTHWISE_CONV2D_OPTIONS(FIELD, T)                                                          \
    FIELD(T, INTS, shape, ED_NO_LIST, ED_ANY, "of the result")
ED_OPTIONS(depthwise_gradient_attrs, DEPTHWISE_GRADIENT_ATTRS);

static ed_depthwise_conv2d_options depthwise_options(const void *gradient_attrs)
{
    const depthwise_gradient_attrs *a = gradient_attrs;
    return *ED_OPTIONS_FROM(ED_DEPTHWISE_CONV2D_OPTIONS, a, ed_depthwise_conv2d_options);
}

/* The convolution's options begin like the gradients'. */
static bool depthwise_channels_first(const ed_call *call)
{
    return window_channels_first(depthwise_options(call->attrs).data_format);
}

static bool depthwise_rank(const ed_call *call, const ed_tensor *t, const char *name,
                           const char *wanted)
{
    if (t->rank == 4) return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT, "%s must be %s, got %s", name, wanted,
                        text_of_tensor(t).s);
}

static bool depthwise_shape(const ed_call *call, ed_ints shape)
{
    bool ok = shape.count == 4 && shape.values;
    for (int i = 0; ok && i < 4; i++) ok = shape.values[i] >= 0;
    return ok || ed_call_fail(call, ED_INVALID_ARGUMENT, "shape must be 4 sizes >= 0, got %s",
                              text_of_ints(shape.values, shape.values ? shape.count : 0).s);
}

/* The windows over images with a kernel, both of rank 4, and the output's shape. */
static bool depthwise_windows(ed_call *call, const int64_t *images, const int64_t *kernel,
                              int64_t shape[4])
{
    const ed_depthwise_conv2d_options o = depthwise_options(call->attrs);
    const bool first = window_channels_first(o.data_format);
    int64_t last[4], out;
    window_shape_in(first, images, last);
    if (last[3] != kernel[2])
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "channels differ: x is %s, kernel [kh, kw, in, multiplier] is %s",
                            text_of_ints(images, 4).s, text_of_ints(kernel, 4).s);
    if (__builtin_mul_overflow(kernel[2], kernel[3], &out))
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "the kernel %s is too large",
                            text_of_ints(kernel, 4).s);
    const window *w =
        window_make(call, last, WINDOW_OPTIONS_OF(&o, .extent = {kernel[0], kernel[1]}));
    if (!w) return false;
    window_shape_out(first, (const int64_t[]){w->batch, w->out[0], w->out[1], out}, shape);
    return true;
}

static bool depthwise_dy(const ed_call *call, const ed_tensor *dy, const int64_t shape[4])
{
    if (dy->rank == 4 && !memcmp(shape, dy->shape, 4 * sizeof *shape)) return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT,
                        "dy is %s; it must have the shape %s, as the convolution",
                        text_of_ints(dy->shape, dy->rank).s, text_of_ints(shape, 4).s);
}

static const char *images_text(const ed_call *call)
{
    return depthwise_channels_first(call) ? "[batch, in, height, width]"
                                          : "[batch, height, width, in]";
}

bool depthwise_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0], *kernel = call->inputs[1];
    int64_t shape[4];
    return depthwise_rank(call, x, "x", images_text(call)) &&
           depthwise_rank(call, kernel, "kernel", "[kh, kw, in, multiplier]") &&
           depthwise_windows(call, x->shape, kernel->shape, shape) &&
           ed_call_output(call, 0, x->dtype, 4, shape);
}

static bool depthwise_gradient_input_infer(ed_call *call)
{
    const ed_ints wanted = ((const depthwise_gradient_attrs *)call->attrs)->shape;
    const ed_tensor *dy = call->inputs[0], *kernel = call->inputs[1];
    int64_t shape[4];
    return depthwise_shape(call, wanted) &&
           depthwise_rank(call, kernel, "kernel", "[kh, kw, in, multiplier]") &&
           depthwise_windows(call, wanted.values, kernel->shape, shape) &&
           depthwise_dy(call, dy, shape) && ed_call_output(call, 0, dy->dtype, 4, wanted.values);
}

static bool depthwise_gradient_kernel_infer(ed_call *call)
{
    const ed_ints wanted = ((const depthwise_gradient_attrs *)call->attrs)->shape;
    const ed_tensor *x = call->inputs[0], *dy = call->inputs[1];
    int64_t shape[4];
    return depthwise_shape(call, wanted) && depthwise_rank(call, x, "x", images_text(call)) &&
           depthwise_windows(call, x->shape, wanted.values, shape) &&
           depthwise_dy(call, dy, shape) && ed_call_output(call, 0, x->dtype, 4, wanted.values);
}

/* ---- Kernels --------------------------------------------------------------------------------- */

typedef bool (*depthwise_runner)(const depthwise_call *);

static bool run_depthwise(ed_call *call, const depthwise_call *d, depthwise_runner run)
{
    const ed_tensor *result = call->outputs[0];
    if (!result->size) return true;
    if (d->x->size && d->kernel->size && d->y->size) return run(d);
    memset(result->data, 0, (size_t)result->size * dtype_size(result->dtype));
    return true;
}

static depthwise_call forward_call(const ed_call *call)
{
    const bool has_bias = call->n_inputs > 2;
    const ed_depthwise_conv2d_bias_options *o = call->attrs; /* if it has */
    return (depthwise_call){.w = *(const window *)call->plan,
                            .multiplier = call->inputs[1]->shape[3],
                            .x = call->inputs[0],
                            .kernel = call->inputs[1],
                            .y = call->outputs[0],
                            .bias = has_bias ? call->inputs[2] : NULL,
                            .relu = has_bias && conv_is_relu(o->activation)};
}

static depthwise_call gradient_input_call(const ed_call *call)
{
    return (depthwise_call){.w = *(const window *)call->plan,
                            .multiplier = call->inputs[1]->shape[3],
                            .x = call->outputs[0],
                            .kernel = call->inputs[1],
                            .y = call->inputs[0]};
}

static depthwise_call gradient_kernel_call(const ed_call *call)
{
    return (depthwise_call){.w = *(const window *)call->plan,
                            .multiplier = call->outputs[0]->shape[3],
                            .x = call->inputs[0],
                            .kernel = call->outputs[0],
                            .y = call->inputs[1]};
}

static bool forward_last(ed_call *call)
{
    const depthwise_call d = forward_call(call);
    return run_depthwise(call, &d, depthwise_forward);
}

static bool gradient_input_last(ed_call *call)
{
    const depthwise_call d = gradient_input_call(call);
    return run_depthwise(call, &d, depthwise_gradient_input);
}

static bool gradient_kernel_last(ed_call *call)
{
    const depthwise_call d = gradient_kernel_call(call);
    return run_depthwise(call, &d, depthwise_gradient_kernel);
}

bool depthwise_kernel(ed_call *call)
{
    const depthwise_call d = forward_call(call);
    const bool first = depthwise_channels_first(call);
    if (first && depthwise_planes_fit(&d)) return run_depthwise(call, &d, depthwise_planes_forward);
    return window_run_kernel(call, first, 1, true, forward_last);
}

static bool depthwise_gradient_input_kernel(ed_call *call)
{
    const depthwise_call d = gradient_input_call(call);
    const bool first = depthwise_channels_first(call);
    if (first && depthwise_planes_fit(&d))
        return run_depthwise(call, &d, depthwise_planes_gradient_input);
    return window_run_kernel(call, first, 1, true, gradient_input_last);
}

static bool depthwise_gradient_kernel_kernel(ed_call *call)
{
    const depthwise_call d = gradient_kernel_call(call);
    const bool first = depthwise_channels_first(call);
    if (first && depthwise_planes_fit(&d))
        return run_depthwise(call, &d, depthwise_planes_gradient_kernel);
    return window_run_kernel(call, first, 3, false, gradient_kernel_last);
}

/* ---- References ------------------------------------------------------------------------------ */

/* The plain sum: for each x, kernel element and y that meet, one takes in the product of the other
 * two. `which`: x 0, kernel 1, y 2. */
static bool plain_depthwise(const ed_call *call, const ed_tensor *x, const ed_tensor *k,
                            const ed_tensor *y, int which)
{
    const window *w = call->plan;
    const int64_t m = k->shape[3], c = k->shape[2];
    double *result = (double *)call->outputs[0]->data;
    for (int64_t i = 0; i < call->outputs[0]->size; i++) result[i] = 0;
    for (int64_t e = 0; e < y->size; e++)
        for (int64_t tap = 0; tap < w->extent[0] * w->extent[1]; tap++) {
            const int64_t o = e % (c * m), ow = e / (c * m) % w->out[1],
                          oh = e / (c * m) / w->out[1] % w->out[0],
                          n = e / (c * m) / w->out[1] / w->out[0];
            const int64_t h =
                oh * w->stride[0] - w->before[0] + tap / w->extent[1] * w->dilation[0];
            const int64_t v =
                ow * w->stride[1] - w->before[1] + tap % w->extent[1] * w->dilation[1];
            if (h < 0 || h >= w->image[0] || v < 0 || v >= w->image[1]) continue;
            double *const of[] = {
                &((double *)x->data)[((n * w->image[0] + h) * w->image[1] + v) * c + o / m],
                &((double *)k->data)[tap * c * m + o], &((double *)y->data)[e]};
            *of[which] += *of[(which + 1) % 3] * *of[(which + 2) % 3];
        }
    return true;
}

static bool plain_forward(const ed_call *call)
{
    return plain_depthwise(call, call->inputs[0], call->inputs[1], call->outputs[0], 2);
}

static bool plain_gradient_input(const ed_call *call)
{
    return plain_depthwise(call, call->outputs[0], call->inputs[1], call->inputs[0], 0);
}

static bool plain_gradient_kernel(const ed_call *call)
{
    return plain_depthwise(call, call->inputs[0], call->outputs[0], call->inputs[1], 1);
}

bool depthwise_reference(const ed_call *call)
{
    return window_run_reference(call, depthwise_channels_first(call), 1, true, plain_forward);
}

static bool depthwise_gradient_input_reference(const ed_call *call)
{
    return window_run_reference(call, depthwise_channels_first(call), 1, true,
                                plain_gradient_input);
}

static bool depthwise_gradient_kernel_reference(const ed_call *call)
{
    return window_run_reference(call, depthwise_channels_first(call), 3, false,
                                plain_gradient_kernel);
}

/* ---- Gradients ------------------------------------------------------------------------------- */

extern const ed_op ed_op_depthwise_gradient_input, ed_op_depthwise_gradient_kernel;

ed_tensor *depthwise_transposed(const ed_depthwise_conv2d_options *o, ed_tensor *dy,
                                ed_tensor *kernel, ed_ints shape)
{
    return CALL_OP(
        depthwise_gradient_input,
        ED_OPTIONS_FROM(ED_DEPTHWISE_CONV2D_OPTIONS, o, depthwise_gradient_attrs, .shape = shape),
        dy, kernel);
}

ed_tensor *depthwise_kernel_gradient(const ed_depthwise_conv2d_options *o, ed_tensor *x,
                                     ed_tensor *dy, ed_ints shape)
{
    return CALL_OP(
        depthwise_gradient_kernel,
        ED_OPTIONS_FROM(ED_DEPTHWISE_CONV2D_OPTIONS, o, depthwise_gradient_attrs, .shape = shape),
        x, dy);
}

static bool depthwise_gradient(const ed_gradient_call *g)
{
    if (g->needs[0])
        g->dx[0] = depthwise_transposed(g->attrs, g->dy[0], g->inputs[1], g->shapes[0]);
    if (g->needs[1])
        g->dx[1] = depthwise_kernel_gradient(g->attrs, g->inputs[0], g->dy[0], g->shapes[1]);
    return true;
}

static bool depthwise_gradient_input_gradient(const ed_gradient_call *g)
{
    const ed_depthwise_conv2d_options o = depthwise_options(g->attrs);
    if (g->needs[0]) g->dx[0] = ed_depthwise_conv2d_with(g->dy[0], g->inputs[1], &o);
    if (g->needs[1]) g->dx[1] = depthwise_kernel_gradient(&o, g->dy[0], g->inputs[0], g->shapes[1]);
    return true;
}

static bool depthwise_gradient_kernel_gradient(const ed_gradient_call *g)
{
    const ed_depthwise_conv2d_options o = depthwise_options(g->attrs);
    if (g->needs[0]) g->dx[0] = depthwise_transposed(&o, g->inputs[1], g->dy[0], g->shapes[0]);
    if (g->needs[1]) g->dx[1] = ed_depthwise_conv2d_with(g->inputs[0], g->dy[0], &o);
    return true;
}

static ed_list *depthwise_batch(const ed_batch_call *call)
{
    return depthwise_batch_of(call, &(conv_roles){0, 1, -1});
}

static ed_list *depthwise_gradient_input_batch(const ed_batch_call *call)
{
    return depthwise_batch_of(call, &(conv_roles){-1, 1, 0});
}

static ed_list *depthwise_gradient_kernel_batch(const ed_batch_call *call)
{
    return depthwise_batch_of(call, &(conv_roles){0, -1, 1});
}

/* ---- Definitions ----------------------------------------------------------------------------- */

#define OPTIONS(...)                                                                               \
    .attrs = ED_ATTRS(ED_DEPTHWISE_CONV2D_OPTIONS, ed_depthwise_conv2d_options, __VA_ARGS__)
#define WITH(s, ...)                                                                               \
    .attrs = ED_ATTRS(DEPTHWISE_GRADIENT_ATTRS, depthwise_gradient_attrs, .shape = s, __VA_ARGS__)

ED_OP(depthwise_conv2d) = {
    .name = "depthwise_conv2d",
    .doc = "y[n, i, j, c m + q] = sum over the window of x[n, i', j', c] kernel[kh, kw, c, q]",
    .operands = {{"x", ED_SET_FLOAT, 'T'}, {"kernel", ED_SET_FLOAT, 'T'}},
    .flags = ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(ED_DEPTHWISE_CONV2D_OPTIONS, ed_depthwise_conv2d_options),
    .infer = depthwise_infer,
    .batch = depthwise_batch,
    .kernel = depthwise_kernel,
    .gradient = depthwise_gradient,
    SAVES_AB,
    .reference = depthwise_reference,
    .samples =
        ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 2, 5, 8, 3), ED_SAMPLE_IN(-2, 2, 3, 2, 3, 1)},
                    OPTIONS(.padding = "SAME")},
                   {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 6, 5, 2), ED_SAMPLE_IN(-2, 2, 3, 3, 2, 4)},
                    OPTIONS(.strides = ED_SAMPLE_INTS(2, 1), .padding = "EXPLICIT",
                            .explicit_paddings = ED_SAMPLE_INTS(1, 0, 2, 1))},
                   {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 5, 7), ED_SAMPLE_IN(-2, 2, 2, 2, 3, 1)},
                    OPTIONS(.dilations = ED_SAMPLE_INTS(2, 3), .strides = ED_SAMPLE_INTS(1, 2),
                            .data_format = "NCHW")},
                   {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 4, 9, 3), ED_SAMPLE_IN(-2, 2, 2, 5, 3, 1)}}),
};

ED_OP(depthwise_gradient_input) = {
    .name = "depthwise_gradient_input",
    .doc = "the gradient of depthwise_conv2d by x",
    .operands = {{"dy", ED_SET_FLOAT, 'T'}, {"kernel", ED_SET_FLOAT, 'T'}},
    .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL,
    ED_OP_ATTRS(DEPTHWISE_GRADIENT_ATTRS, depthwise_gradient_attrs),
    .infer = depthwise_gradient_input_infer,
    .batch = depthwise_gradient_input_batch,
    .kernel = depthwise_gradient_input_kernel,
    .gradient = depthwise_gradient_input_gradient,
    SAVES_AB,
    .reference = depthwise_gradient_input_reference,
    .samples =
        ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 2, 5, 4, 3), ED_SAMPLE_IN(-2, 2, 3, 2, 3, 1)},
                    WITH(ED_SAMPLE_INTS(2, 5, 4, 3), .padding = "SAME")},
                   {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 2, 3, 4), ED_SAMPLE_IN(-2, 2, 3, 3, 2, 2)},
                    WITH(ED_SAMPLE_INTS(1, 5, 3, 2), .strides = ED_SAMPLE_INTS(2, 1),
                         .padding = "EXPLICIT", .explicit_paddings = ED_SAMPLE_INTS(0, 0, 1, 1))},
                   {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 3, 2), ED_SAMPLE_IN(-2, 2, 2, 2, 3, 1)},
                    WITH(ED_SAMPLE_INTS(2, 3, 5, 6), .dilations = ED_SAMPLE_INTS(2, 3),
                         .strides = ED_SAMPLE_INTS(1, 2), .data_format = "NCHW")}),
};

ED_OP(depthwise_gradient_kernel) = {
    .name = "depthwise_gradient_kernel",
    .doc = "the gradient of depthwise_conv2d by its kernel",
    .operands = {{"x", ED_SET_FLOAT, 'T'}, {"dy", ED_SET_FLOAT, 'T'}},
    .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL,
    ED_OP_ATTRS(DEPTHWISE_GRADIENT_ATTRS, depthwise_gradient_attrs),
    .infer = depthwise_gradient_kernel_infer,
    .batch = depthwise_gradient_kernel_batch,
    .kernel = depthwise_gradient_kernel_kernel,
    .gradient = depthwise_gradient_kernel_gradient,
    SAVES_AB,
    .reference = depthwise_gradient_kernel_reference,
    .samples =
        ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 2, 5, 4, 3), ED_SAMPLE_IN(-2, 2, 2, 5, 4, 3)},
                    WITH(ED_SAMPLE_INTS(3, 5, 3, 1), .padding = "SAME")},
                   {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 5, 3, 2), ED_SAMPLE_IN(-2, 2, 1, 2, 3, 4)},
                    WITH(ED_SAMPLE_INTS(3, 3, 2, 2), .strides = ED_SAMPLE_INTS(2, 1),
                         .padding = "EXPLICIT", .explicit_paddings = ED_SAMPLE_INTS(0, 0, 1, 1))},
                   {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 5, 6), ED_SAMPLE_IN(-2, 2, 2, 3, 3, 2)},
                    WITH(ED_SAMPLE_INTS(2, 2, 3, 1), .dilations = ED_SAMPLE_INTS(2, 3),
                         .strides = ED_SAMPLE_INTS(1, 2), .data_format = "NCHW")}),
};

ed_tensor *ed_depthwise_conv2d_with(ed_tensor *x, ed_tensor *kernel,
                                    const ed_depthwise_conv2d_options *options)
{
    return CALL_OP(depthwise_conv2d, options, x, kernel);
}

/* ---- separable_conv2d ------------------------------------------------------------------------ */

static bool separable_compose(ed_call *call)
{
    const ed_depthwise_conv2d_options *o = call->attrs;
    ed_tensor *y = ed_depthwise_conv2d_with(call->inputs[0], call->inputs[1], o);
    const ed_ints kernel = ed_shape(call->inputs[2]);
    if (y && (kernel.count != 4 || kernel.values[0] != 1 || kernel.values[1] != 1))
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "pointwise_kernel must be [1, 1, in * multiplier, out], got %s",
                            text_of_ints(kernel.values, kernel.count).s);
    return ed_call_result(call, 0,
                          y ? ed_conv2d(y, call->inputs[2], .data_format = o->data_format) : NULL);
}

/* One element after the other, the depthwise sum computed again for each. */
static bool separable_plain(const ed_call *call)
{
    const ed_depthwise_conv2d_options *o = call->attrs;
    const ed_tensor *x = call->inputs[0], *k = call->inputs[1], *p = call->inputs[2];
    const int64_t s0 = o->strides.values ? o->strides.values[0] : 1, c = k->shape[2],
                  m = k->shape[3], out = p->shape[3];
    double *y = (double *)call->outputs[0]->data;
    for (int64_t e = 0; e < call->outputs[0]->size; e++) {
        const int64_t *shape = call->outputs[0]->shape, ow = e / out % shape[2],
                      oh = e / out / shape[2] % shape[1], n = e / out / shape[2] / shape[1];
        y[e] = 0;
        for (int64_t q = 0; q < c * m; q++) {
            double sum = 0;
            for (int64_t tap = 0; tap < k->shape[0] * k->shape[1]; tap++) {
                const int64_t h = oh * s0 + tap / k->shape[1], v = ow * s0 + tap % k->shape[1];
                const int64_t at = ((n * x->shape[1] + h) * x->shape[2] + v) * c + q / m;
                sum += ((double *)x->data)[at] * ((double *)k->data)[tap * c * m + q];
            }
            y[e] += sum * ((double *)p->data)[q * out + e % out];
        }
    }
    return true;
}

static bool separable_reference(const ed_call *call)
{
    return window_run_reference(call, depthwise_channels_first(call), 1, true, separable_plain);
}

/* Samples have one stride and padding VALID, as the reference. */
ED_OP(separable_conv2d) = {
    .name = "separable_conv2d",
    .doc = "conv2d(depthwise_conv2d(x, depthwise_kernel), pointwise_kernel)",
    .operands = {{"x", ED_SET_FLOAT, 'T'},
                 {"depthwise_kernel", ED_SET_FLOAT, 'T'},
                 {"pointwise_kernel", ED_SET_FLOAT, 'T'}},
    ED_OP_ATTRS(ED_DEPTHWISE_CONV2D_OPTIONS, ed_depthwise_conv2d_options),
    .compose = separable_compose,
    .reference = separable_reference,
    .samples =
        ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 2, 4, 5, 3), ED_SAMPLE_IN(-2, 2, 2, 3, 3, 2),
                               ED_SAMPLE_IN(-2, 2, 1, 1, 6, 4)}},
                   {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 2, 5, 4), ED_SAMPLE_IN(-2, 2, 3, 2, 2, 1),
                               ED_SAMPLE_IN(-2, 2, 1, 1, 2, 3)},
                    OPTIONS(.strides = ED_SAMPLE_INTS(2), .data_format = "NCHW")}),
};

ed_tensor *ed_separable_conv2d_with(ed_tensor *x, ed_tensor *depthwise_kernel,
                                    ed_tensor *pointwise_kernel,
                                    const ed_depthwise_conv2d_options *options)
{
    return CALL_OP(separable_conv2d, options, x, depthwise_kernel, pointwise_kernel);
}
