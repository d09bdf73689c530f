/*
 * conv2d and its two gradients. Each is a sum of products of the other two tensors, so the three
 * are linear in each operand and one another's gradients. conv_gemm.c computes them.
 */
#include "ops/conv.h"
#include "ops/execute.h"
#include "ops/ops.h"
#include <string.h>

/* Attributes of the gradients: the convolution's, and the shape that is wanted (of x or of the
 * kernel). */
#define CONV2D_GRADIENT_ATTRS(FIELD, T)                                                            \
    ED_CONV2D_OPTIONS(FIELD, T)                                                                    \
    FIELD(T, INTS, shape, ED_NO_LIST, ED_ANY, "of the result")
ED_OPTIONS(conv2d_gradient_attrs, CONV2D_GRADIENT_ATTRS);

static ed_conv2d_options convolution(const void *gradient_attrs)
{
    const conv2d_gradient_attrs *a = gradient_attrs;
    return *ED_OPTIONS_FROM(ED_CONV2D_OPTIONS, a, ed_conv2d_options);
}

static bool is_rank_4(const ed_call *call, const ed_tensor *t, const char *name, const char *wanted)
{
    if (t->rank == 4) return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT, "%s must be %s, got %s", name, wanted,
                        text_of_ints(t->shape, t->rank).s);
}

static bool is_images(const ed_call *call, const ed_tensor *x, bool channels_first)
{
    return is_rank_4(call, x, "x",
                     channels_first ? "[batch, in, height, width]" : "[batch, height, width, in]");
}

static bool is_kernel(const ed_call *call, const ed_tensor *kernel)
{
    const ed_conv2d_options o = convolution(call->attrs);
    return is_rank_4(call, kernel, "kernel",
                     o.groups > 1 ? "[kh, kw, in / groups, out]" : "[kh, kw, in, out]");
}

/* The windows of a convolution of images x, channels last, with a kernel, the plan of a call; both
 * shapes have rank 4. */
static const window *windows(ed_call *call, const ed_conv2d_options *o, const int64_t *x,
                             const int64_t *kernel)
{
    int64_t in;
    if (o->groups < 1 || kernel[3] % o->groups) {
        ed_call_fail(call, ED_INVALID_ARGUMENT,
                     "groups must divide the number of outputs; got %lld groups, kernel %s",
                     (long long)o->groups, text_of_ints(kernel, 4).s);
        return NULL;
    }
    if (!__builtin_mul_overflow(kernel[2], o->groups, &in) && x[3] == in)
        return window_make(call, x, WINDOW_OPTIONS_OF(o, .extent = {kernel[0], kernel[1]}));
    if (o->groups == 1)
        ed_call_fail(call, ED_INVALID_ARGUMENT,
                     "channels differ: x is %s, kernel [kh, kw, in, out] is %s",
                     text_of_ints(x, 4).s, text_of_ints(kernel, 4).s);
    else
        ed_call_fail(call, ED_INVALID_ARGUMENT,
                     "channels differ: x is %s, kernel [kh, kw, in / groups, out] is %s, with %lld "
                     "groups",
                     text_of_ints(x, 4).s, text_of_ints(kernel, 4).s, (long long)o->groups);
    return NULL;
}

/* The shape of the convolution's output. */
static void output_shape(const window *w, int64_t out, const ed_conv2d_options *o, int64_t shape[4])
{
    const int64_t last[] = {w->batch, w->out[0], w->out[1], out};
    window_shape_out(window_channels_first(o->data_format), last, shape);
}

/* Whether dy has the shape that the convolution's output has. */
static bool check_dy(const ed_call *call, const window *w, const ed_conv2d_options *o,
                     const ed_tensor *dy, int64_t out)
{
    int64_t shape[4];
    output_shape(w, out, o, shape);
    if (dy->rank == 4 && !memcmp(shape, dy->shape, sizeof shape)) return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT,
                        "dy is %s; it must have the shape %s, as the convolution",
                        text_of_ints(dy->shape, dy->rank).s, text_of_ints(shape, 4).s);
}

static bool check_shape(const ed_call *call, ed_ints shape)
{
    bool ok = shape.count == 4 && shape.values;
    for (int i = 0; ok && i < 4; i++) ok = shape.values[i] >= 0;
    return ok || ed_call_fail(call, ED_INVALID_ARGUMENT, "shape must be 4 sizes >= 0, got %s",
                              text_of_ints(shape.values, shape.values ? shape.count : 0).s);
}

/* The same for images of a shape in the order of data_format. */
static const window *windows_over(ed_call *call, const ed_conv2d_options *o, const int64_t *images,
                                  const int64_t *kernel)
{
    int64_t last[4];
    window_shape_in(window_channels_first(o->data_format), images, last);
    return windows(call, o, last, kernel);
}

bool conv_infer(ed_call *call)
{
    const ed_conv2d_options *o = call->attrs;
    const ed_tensor *x = call->inputs[0], *kernel = call->inputs[1];
    const window *w;
    int64_t shape[4];
    if (!is_images(call, x, window_channels_first(o->data_format)) || !is_kernel(call, kernel) ||
        !(w = windows_over(call, o, x->shape, kernel->shape)))
        return false;
    output_shape(w, kernel->shape[3], o, shape);
    return ed_call_output(call, 0, x->dtype, 4, shape);
}

static bool conv2d_gradient_input_infer(ed_call *call)
{
    const conv2d_gradient_attrs *o = call->attrs;
    const ed_conv2d_options options = convolution(o);
    const ed_tensor *dy = call->inputs[0], *kernel = call->inputs[1];
    const window *w;
    return check_shape(call, o->shape) && is_kernel(call, kernel) &&
           (w = windows_over(call, &options, o->shape.values, kernel->shape)) &&
           check_dy(call, w, &options, dy, kernel->shape[3]) &&
           ed_call_output(call, 0, dy->dtype, 4, o->shape.values);
}

static bool conv2d_gradient_kernel_infer(ed_call *call)
{
    const conv2d_gradient_attrs *o = call->attrs;
    const ed_conv2d_options options = convolution(o);
    const ed_tensor *x = call->inputs[0], *dy = call->inputs[1];
    const window *w;
    return check_shape(call, o->shape) &&
           is_images(call, x, window_channels_first(o->data_format)) &&
           (w = windows_over(call, &options, x->shape, o->shape.values)) &&
           check_dy(call, w, &options, dy, o->shape.values[3]) &&
           ed_call_output(call, 0, dy->dtype, 4, o->shape.values);
}

static bool is_channels_first(const ed_call *call)
{
    return window_channels_first(convolution(call->attrs).data_format);
}

/* Runs one of the three: the tensors in their roles, of which one is the output. */
static bool run_conv(ed_call *call, const ed_tensor *x, const ed_tensor *kernel, const ed_tensor *y,
                     bool (*run)(const conv_call *))
{
    const ed_tensor *result = call->outputs[0];
    if (!result->size) return true;
    if (x->size && kernel->size && y->size)
        return run(&(conv_call){.w = call->plan,
                                .channels_first = is_channels_first(call),
                                .x = x,
                                .kernel = kernel,
                                .y = y});
    memset(result->data, 0, (size_t)result->size * dtype_size(result->dtype));
    return true;
}

bool conv_kernel(ed_call *call)
{
    if (call->n_inputs == 2)
        return run_conv(call, call->inputs[0], call->inputs[1], call->outputs[0], conv_forward);
    const ed_conv2d_bias_options *o = call->attrs;
    return !call->outputs[0]->size ||
           conv_forward(&(conv_call){.w = call->plan,
                                     .channels_first = is_channels_first(call),
                                     .x = call->inputs[0],
                                     .kernel = call->inputs[1],
                                     .y = call->outputs[0],
                                     .bias = call->inputs[2],
                                     .relu = conv_is_relu(o->activation)});
}

static bool conv2d_gradient_input_kernel(ed_call *call)
{
    return run_conv(call, call->outputs[0], call->inputs[1], call->inputs[0], conv_gradient_input);
}

static bool conv2d_gradient_kernel_kernel(ed_call *call)
{
    return run_conv(call, call->inputs[0], call->outputs[0], call->inputs[1], conv_gradient_kernel);
}

/* The plain sum: for each product of an x, a kernel element and a y, `join` adds two of them to the
 * third. */
static bool plain(const ed_call *call, const ed_tensor *x, const ed_tensor *k, const ed_tensor *y,
                  void (*join)(double *x, double *k, double *y))
{
    const window *w = call->plan;
    double *xs = (double *)x->data, *ks = (double *)k->data, *ys = (double *)y->data;
    double *result = (double *)call->outputs[0]->data;
    int64_t in = k->shape[2], out = k->shape[3], groups = in ? w->channels / in : 1;
    for (int64_t i = 0; i < call->outputs[0]->size; i++) result[i] = 0;
    for (int64_t e = 0; e < y->size; e++)
        for (int64_t p = 0; p < k->size / out; p++) {
            int64_t o = e % out, ow = e / out % w->out[1], oh = e / out / w->out[1] % w->out[0];
            int64_t c = p % in, kw = p / in % w->extent[1], kh = p / in / w->extent[1];
            int64_t h = oh * w->stride[0] - w->before[0] + kh * w->dilation[0];
            int64_t v = ow * w->stride[1] - w->before[1] + kw * w->dilation[1];
            int64_t n = e / out / w->out[1] / w->out[0];
            if (h < 0 || h >= w->image[0] || v < 0 || v >= w->image[1]) continue;
            int64_t pixel = (n * w->image[0] + h) * w->image[1] + v;
            int64_t channel = o / (out / groups) * in + c;
            join(&xs[pixel * w->channels + channel], &ks[p * out + o], &ys[e]);
        }
    return true;
}

static void join_y(double *x, double *k, double *y)
{
    *y += *x * *k;
}

static void join_x(double *x, double *k, double *y)
{
    *x += *y * *k;
}

static void join_k(double *x, double *k, double *y)
{
    *k += *x * *y;
}

static bool conv2d_reference_last(const ed_call *call)
{
    return plain(call, call->inputs[0], call->inputs[1], call->outputs[0], join_y);
}

static bool conv2d_gradient_input_reference_last(const ed_call *call)
{
    return plain(call, call->outputs[0], call->inputs[1], call->inputs[0], join_x);
}

static bool conv2d_gradient_kernel_reference_last(const ed_call *call)
{
    return plain(call, call->inputs[0], call->outputs[0], call->inputs[1], join_k);
}

bool conv_reference(const ed_call *call)
{
    return window_run_reference(call, is_channels_first(call), 1, true, conv2d_reference_last);
}

static bool conv2d_gradient_input_reference(const ed_call *call)
{
    return window_run_reference(call, is_channels_first(call), 1, true,
                                conv2d_gradient_input_reference_last);
}

static bool conv2d_gradient_kernel_reference(const ed_call *call)
{
    return window_run_reference(call, is_channels_first(call), 3, false,
                                conv2d_gradient_kernel_reference_last);
}

extern const ed_op ed_op_conv2d_gradient_input, ed_op_conv2d_gradient_kernel;

ed_tensor *conv_transposed(const ed_conv2d_options *o, ed_tensor *dy, ed_tensor *k, ed_ints shape)
{
    return CALL_OP(conv2d_gradient_input,
                   ED_OPTIONS_FROM(ED_CONV2D_OPTIONS, o, conv2d_gradient_attrs, .shape = shape), dy,
                   k);
}

ed_tensor *conv_kernel_gradient(const ed_conv2d_options *o, ed_tensor *x, ed_tensor *dy,
                                ed_ints shape)
{
    return CALL_OP(conv2d_gradient_kernel,
                   ED_OPTIONS_FROM(ED_CONV2D_OPTIONS, o, conv2d_gradient_attrs, .shape = shape), x,
                   dy);
}

static bool conv2d_gradient(const ed_gradient_call *g)
{
    if (g->needs[0]) g->dx[0] = conv_transposed(g->attrs, g->dy[0], g->inputs[1], g->shapes[0]);
    if (g->needs[1])
        g->dx[1] = conv_kernel_gradient(g->attrs, g->inputs[0], g->dy[0], g->shapes[1]);
    return true;
}

static bool conv2d_gradient_input_gradient(const ed_gradient_call *g)
{
    const ed_conv2d_options o = convolution(g->attrs);
    if (g->needs[0]) g->dx[0] = ed_conv2d_with(g->dy[0], g->inputs[1], &o);
    if (g->needs[1]) g->dx[1] = conv_kernel_gradient(&o, g->dy[0], g->inputs[0], g->shapes[1]);
    return true;
}

static bool conv2d_gradient_kernel_gradient(const ed_gradient_call *g)
{
    const ed_conv2d_options o = convolution(g->attrs);
    if (g->needs[0]) g->dx[0] = conv_transposed(&o, g->inputs[1], g->dy[0], g->shapes[0]);
    if (g->needs[1]) g->dx[1] = ed_conv2d_with(g->inputs[0], g->dy[0], &o);
    return true;
}

static ed_list *conv2d_batch(const ed_batch_call *call)
{
    return conv_batch_of(call, &(conv_roles){0, 1, -1});
}

static ed_list *conv2d_gradient_input_batch(const ed_batch_call *call)
{
    return conv_batch_of(call, &(conv_roles){-1, 1, 0});
}

static ed_list *conv2d_gradient_kernel_batch(const ed_batch_call *call)
{
    return conv_batch_of(call, &(conv_roles){0, -1, 1});
}

#define OPTIONS(...) .attrs = ED_ATTRS(ED_CONV2D_OPTIONS, ed_conv2d_options, __VA_ARGS__)
#define WITH(s, ...)                                                                               \
    .attrs = ED_ATTRS(CONV2D_GRADIENT_ATTRS, conv2d_gradient_attrs, .shape = s, __VA_ARGS__)

/* conv2d: y = x * kernel, dx and dkernel by ops of their own */
ED_OP(conv2d) = {
    .name = "conv2d",
    .doc =
        "y[n, i, j, o] = sum over the window and channels of x[n, i', j', c] kernel[kh, kw, c, o]",
    .operands = {{"x", ED_SET_FLOAT, 'T'}, {"kernel", ED_SET_FLOAT, 'T'}},
    .flags = ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(ED_CONV2D_OPTIONS, ed_conv2d_options),
    .infer = conv_infer,
    .batch = conv2d_batch,
    .kernel = conv_kernel,
    .gradient = conv2d_gradient,
    SAVES_AB,
    .reference = conv_reference,
    .samples = ED_SAMPLES(
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 5, 4, 3), ED_SAMPLE_IN(-2, 2, 3, 2, 3, 2)}},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 5, 6, 2), ED_SAMPLE_IN(-2, 2, 3, 3, 2, 3)},
         OPTIONS(.padding = "SAME")},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 6, 5, 1), ED_SAMPLE_IN(-2, 2, 3, 2, 1, 2)},
         OPTIONS(.padding = "SAME", .strides = ED_SAMPLE_INTS(2, 3))},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 7, 6, 2), ED_SAMPLE_IN(-2, 2, 2, 3, 2, 1)},
         OPTIONS(.strides = ED_SAMPLE_INTS(2, 1), .dilations = ED_SAMPLE_INTS(3, 2))},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 4, 5, 2), ED_SAMPLE_IN(-2, 2, 3, 2, 2, 2)},
         OPTIONS(.padding = "SAME", .strides = ED_SAMPLE_INTS(1, 2),
                 .dilations = ED_SAMPLE_INTS(2, 3))},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 3, 4), ED_SAMPLE_IN(-2, 2, 1, 1, 4, 3)}},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 5, 5, 2), ED_SAMPLE_IN(-2, 2, 1, 1, 2, 3)},
         OPTIONS(.strides = ED_SAMPLE_INTS(3, 2))},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 2, 2, 1), ED_SAMPLE_IN(-2, 2, 3, 3, 1, 1)}},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 4, 3, 4), ED_SAMPLE_IN(-2, 2, 3, 2, 2, 6)},
         OPTIONS(.groups = 2, .padding = "EXPLICIT",
                 .explicit_paddings = ED_SAMPLE_INTS(1, 0, 2, 3))},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 4, 3, 5), ED_SAMPLE_IN(-2, 2, 2, 1, 2, 2)},
         OPTIONS(.groups = 2, .strides = ED_SAMPLE_INTS(2), .data_format = "NCHW")},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 3, 4, 2), ED_SAMPLE_IN(-2, 2, 1, 1, 2, 3)},
         OPTIONS(.padding = "EXPLICIT", .explicit_paddings = ED_SAMPLE_INTS(0, 2, 1, 0))},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 2, 5, 11), ED_SAMPLE_IN(-2, 2, 2, 3, 2, 5)},
         OPTIONS(.padding = "SAME", .data_format = "NCHW")},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 4, 2, 3), ED_SAMPLE_IN(-2, 2, 1, 1, 4, 3)},
         OPTIONS(.data_format = "NCHW")}),
};

/* conv2d_gradient_input: dx = dy * kernel turned over, linear in both */
ED_OP(conv2d_gradient_input) = {
    .name = "conv2d_gradient_input",
    .doc = "the gradient of conv2d by x: dy sent back through the kernel",
    .operands = {{"dy", ED_SET_FLOAT, 'T'}, {"kernel", ED_SET_FLOAT, 'T'}},
    .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL,
    ED_OP_ATTRS(CONV2D_GRADIENT_ATTRS, conv2d_gradient_attrs),
    .infer = conv2d_gradient_input_infer,
    .batch = conv2d_gradient_input_batch,
    .kernel = conv2d_gradient_input_kernel,
    .gradient = conv2d_gradient_input_gradient,
    SAVES_AB,
    .reference = conv2d_gradient_input_reference,
    .samples = ED_SAMPLES(
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 3, 2), ED_SAMPLE_IN(-2, 2, 3, 2, 3, 2)},
         WITH(ED_SAMPLE_INTS(2, 5, 4, 3), .padding = "VALID")},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 2, 2), ED_SAMPLE_IN(-2, 2, 3, 2, 1, 2)},
         WITH(ED_SAMPLE_INTS(2, 6, 5, 1), .padding = "SAME", .strides = ED_SAMPLE_INTS(2, 3))},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 4, 3, 2), ED_SAMPLE_IN(-2, 2, 3, 2, 2, 2)},
         WITH(ED_SAMPLE_INTS(1, 4, 5, 2), .padding = "SAME", .strides = ED_SAMPLE_INTS(1, 2),
              .dilations = ED_SAMPLE_INTS(2, 3))},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 3, 3), ED_SAMPLE_IN(-2, 2, 1, 1, 4, 3)},
         WITH(ED_SAMPLE_INTS(2, 3, 3, 4), .padding = "VALID")},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 4, 2, 4), ED_SAMPLE_IN(-2, 2, 3, 2, 2, 4)},
         WITH(ED_SAMPLE_INTS(2, 4, 3, 4), .padding = "SAME", .groups = 2,
              .strides = ED_SAMPLE_INTS(2, 1), .data_format = "NCHW")},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 2, 3, 4), ED_SAMPLE_IN(-2, 2, 2, 3, 2, 2)},
         WITH(ED_SAMPLE_INTS(1, 2, 3, 8), .padding = "SAME", .strides = ED_SAMPLE_INTS(1, 2),
              .data_format = "NCHW")},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 2, 3), ED_SAMPLE_IN(-2, 2, 1, 1, 4, 3)},
         WITH(ED_SAMPLE_INTS(2, 4, 2, 3), .padding = "VALID", .data_format = "NCHW")},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 15, 2, 2), ED_SAMPLE_IN(-2, 2, 3, 3, 3, 2)},
         WITH(ED_SAMPLE_INTS(1, 30, 3, 3), .padding = "SAME", .strides = ED_SAMPLE_INTS(2))},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 2, 1, 14), ED_SAMPLE_IN(-2, 2, 3, 2, 2, 2)},
         WITH(ED_SAMPLE_INTS(1, 2, 2, 28), .padding = "SAME", .strides = ED_SAMPLE_INTS(2),
              .data_format = "NCHW")}),
};

/* conv2d_gradient_kernel: dkernel = x * dy, linear in both */
ED_OP(conv2d_gradient_kernel) = {
    .name = "conv2d_gradient_kernel",
    .doc = "the gradient of conv2d by its kernel",
    .operands = {{"x", ED_SET_FLOAT, 'T'}, {"dy", ED_SET_FLOAT, 'T'}},
    .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL,
    ED_OP_ATTRS(CONV2D_GRADIENT_ATTRS, conv2d_gradient_attrs),
    .infer = conv2d_gradient_kernel_infer,
    .batch = conv2d_gradient_kernel_batch,
    .kernel = conv2d_gradient_kernel_kernel,
    .gradient = conv2d_gradient_kernel_gradient,
    SAVES_AB,
    .reference = conv2d_gradient_kernel_reference,
    .samples = ED_SAMPLES(
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 5, 4, 3), ED_SAMPLE_IN(-2, 2, 2, 3, 3, 2)},
         WITH(ED_SAMPLE_INTS(3, 2, 3, 2), .padding = "VALID")},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 6, 5, 1), ED_SAMPLE_IN(-2, 2, 2, 3, 2, 2)},
         WITH(ED_SAMPLE_INTS(3, 2, 1, 2), .padding = "SAME", .strides = ED_SAMPLE_INTS(2, 3))},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 4, 5, 2), ED_SAMPLE_IN(-2, 2, 1, 4, 3, 2)},
         WITH(ED_SAMPLE_INTS(3, 2, 2, 2), .padding = "SAME", .strides = ED_SAMPLE_INTS(1, 2),
              .dilations = ED_SAMPLE_INTS(2, 3))},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 3, 4), ED_SAMPLE_IN(-2, 2, 2, 3, 3, 3)},
         WITH(ED_SAMPLE_INTS(1, 1, 4, 3), .padding = "VALID")},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 4, 3, 4), ED_SAMPLE_IN(-2, 2, 2, 3, 4, 4)},
         WITH(ED_SAMPLE_INTS(2, 2, 2, 4), .groups = 2, .padding = "EXPLICIT",
              .explicit_paddings = ED_SAMPLE_INTS(0, 0, 1, 1))},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 4, 3, 3), ED_SAMPLE_IN(-2, 2, 2, 4, 3, 3)},
         WITH(ED_SAMPLE_INTS(1, 1, 2, 4), .groups = 2, .data_format = "NCHW")},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 2, 4, 6), ED_SAMPLE_IN(-2, 2, 1, 3, 4, 6)},
         WITH(ED_SAMPLE_INTS(2, 3, 2, 3), .padding = "SAME", .dilations = ED_SAMPLE_INTS(1, 2),
              .data_format = "NCHW")},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 4, 2, 3), ED_SAMPLE_IN(-2, 2, 2, 3, 2, 3)},
         WITH(ED_SAMPLE_INTS(1, 1, 4, 3), .data_format = "NCHW")}),
};

ed_tensor *ed_conv2d_with(ed_tensor *x, ed_tensor *kernel, const ed_conv2d_options *options)
{
    return CALL_OP(conv2d, options, x, kernel);
}
