/*
 * conv2d_bias and depthwise_conv2d_bias: act(convolution + bias), the convolution's kernel ending
 * its sums. Their gradients are those of the parts: dz, of what act was given, goes on to the
 * convolution's gradients, and its sum by channels is the bias'.
 */
#include "ops/conv.h"
#include "ops/depthwise.h"
#include "ops/execute.h"
#include "ops/linear.h"
#include "ops/ops.h"

/* Checks the bias of a call whose output is there. */
static bool check_bias(const ed_call *call, const char *data_format)
{
    const ed_tensor *bias = call->inputs[2], *y = call->outputs[0];
    const int64_t channels = y->shape[window_channels_first(data_format) ? 1 : 3];
    if (bias->rank == 1 && bias->shape[0] == channels) return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT,
                        "bias is %s; it must be [%lld], one for each channel of the result",
                        text_of_ints(bias->shape, bias->rank).s, (long long)channels);
}

/* act(y + bias) where the convolution's reference has left y. */
static bool end_reference(const ed_call *call, const char *data_format, const char *activation)
{
    const ed_tensor *bias = call->inputs[2], *y = call->outputs[0];
    const int64_t below = window_channels_first(data_format) ? y->shape[2] * y->shape[3] : 1;
    const bool relu = conv_is_relu(activation);
    double *to = (double *)y->data;
    for (int64_t i = 0; i < y->size; i++) {
        to[i] += ((const double *)bias->data)[i / below % bias->size];
        if (relu && to[i] < 0) to[i] = 0;
    }
    return true;
}

extern const ed_op ed_op_relu_gradient;

/* Returns dz, and sets the bias' gradient if that is wanted. NULL with an error kept. */
static ed_tensor *bias_gradient(const ed_gradient_call *g, const char *data_format,
                                const char *activation)
{
    const bool channels_first = window_channels_first(data_format), relu = conv_is_relu(activation);
    ed_tensor *dz = g->dy[0];
    if (relu && !channels_first) { /* in one pass */
        ed_tensor *dbias;
        dz = ops_relu_backward(g, &dbias);
        if (g->needs[2]) g->dx[2] = dbias;
        return dz;
    }
    if (relu) dz = CALL_OP(relu_gradient, NULL, dz, g->outputs[0]);
    if (g->needs[2])
        g->dx[2] = channels_first ? ed_reduce_sum(dz, .axis = ED_AXES(0, 2, 3))
                                  : ops_sum_to(dz, g->shapes[2]);
    return dz;
}

/* ---- What both share ------------------------------------------------------------------------- */

#define BIASED_OP(symbol, conv, family, LIST)                                                      \
    .name = #symbol, .doc = "y = activation(" #conv "(x, kernel) + bias)",                         \
    .operands = {{"x", ED_SET_FLOAT, 'T'},                                                         \
                 {"kernel", ED_SET_FLOAT, 'T'},                                                    \
                 {"bias", ED_SET_FLOAT, 'T'}},                                                     \
    .flags = ED_OP_CONTIGUOUS, ED_OP_ATTRS(LIST, ed_##symbol##_options), .infer = symbol##_infer,  \
    .kernel = family##_kernel, .gradient = symbol##_gradient, SAVES_AB, SAVES_Y,                   \
    .reference = symbol##_reference

/* ---- conv2d_bias ----------------------------------------------------------------------------- */

static bool conv2d_bias_infer(ed_call *call)
{
    const ed_conv2d_bias_options *o = call->attrs;
    return conv_infer(call) && check_bias(call, o->data_format);
}

static bool conv2d_bias_reference(const ed_call *call)
{
    const ed_conv2d_bias_options *o = call->attrs;
    return conv_reference(call) && end_reference(call, o->data_format, o->activation);
}

static bool conv2d_bias_gradient(const ed_gradient_call *g)
{
    const ed_conv2d_bias_options *o = g->attrs;
    const ed_conv2d_options *windows = ED_OPTIONS_FROM(ED_CONV2D_OPTIONS, o, ed_conv2d_options);
    ed_tensor *dz = bias_gradient(g, o->data_format, o->activation);
    if (g->needs[0]) g->dx[0] = conv_transposed(windows, dz, g->inputs[1], g->shapes[0]);
    if (g->needs[1]) g->dx[1] = conv_kernel_gradient(windows, g->inputs[0], dz, g->shapes[1]);
    return true;
}

#define OPTIONS(...) .attrs = ED_ATTRS(ED_CONV2D_BIAS_OPTIONS, ed_conv2d_bias_options, __VA_ARGS__)
ED_OP(conv2d_bias) = {
    BIASED_OP(conv2d_bias, conv2d, conv, ED_CONV2D_BIAS_OPTIONS),
    .samples = ED_SAMPLES(
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 5, 4, 3), ED_SAMPLE_IN(-2, 2, 3, 2, 3, 2),
                    ED_SAMPLE_IN(-2, 2, 2)}},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 5, 6, 2), ED_SAMPLE_IN(-2, 2, 3, 3, 2, 19),
                    ED_SAMPLE_IN(-2, 2, 19)},
         OPTIONS(.padding = "SAME", .activation = "relu")},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 3, 4), ED_SAMPLE_IN(-2, 2, 1, 1, 2, 6),
                    ED_SAMPLE_IN(-2, 2, 6)},
         OPTIONS(.groups = 2, .activation = "relu")},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 4, 3, 5), ED_SAMPLE_IN(-2, 2, 2, 1, 2, 2),
                    ED_SAMPLE_IN(-2, 2, 2)},
         OPTIONS(.groups = 2, .strides = ED_SAMPLE_INTS(2), .data_format = "NCHW")},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 4, 3, 2), ED_SAMPLE_IN(-2, 2, 1, 1, 4, 3),
                    ED_SAMPLE_IN(-2, 2, 3)},
         OPTIONS(.activation = "relu", .data_format = "NCHW")},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 2, 2, 1), ED_SAMPLE_IN(-2, 2, 2, 2, 1, 3),
                    ED_SAMPLE_IN(-2, 2, 3)},
         OPTIONS(.padding = "EXPLICIT", .explicit_paddings = ED_SAMPLE_INTS(3, 0, 0, 2))}),
};

ed_tensor *ed_conv2d_bias_with(ed_tensor *x, ed_tensor *kernel, ed_tensor *bias,
                               const ed_conv2d_bias_options *options)
{
    return CALL_OP(conv2d_bias, options, x, kernel, bias);
}

/* ---- depthwise_conv2d_bias ------------------------------------------------------------------- */

static bool depthwise_conv2d_bias_infer(ed_call *call)
{
    const ed_depthwise_conv2d_bias_options *o = call->attrs;
    return depthwise_infer(call) && check_bias(call, o->data_format);
}

static bool depthwise_conv2d_bias_reference(const ed_call *call)
{
    const ed_depthwise_conv2d_bias_options *o = call->attrs;
    return depthwise_reference(call) && end_reference(call, o->data_format, o->activation);
}

static bool depthwise_conv2d_bias_gradient(const ed_gradient_call *g)
{
    const ed_depthwise_conv2d_bias_options *o = g->attrs;
    const ed_depthwise_conv2d_options *windows =
        ED_OPTIONS_FROM(ED_DEPTHWISE_CONV2D_OPTIONS, o, ed_depthwise_conv2d_options);
    ed_tensor *dz = bias_gradient(g, o->data_format, o->activation);
    if (g->needs[0]) g->dx[0] = depthwise_transposed(windows, dz, g->inputs[1], g->shapes[0]);
    if (g->needs[1]) g->dx[1] = depthwise_kernel_gradient(windows, g->inputs[0], dz, g->shapes[1]);
    return true;
}

#define DEPTHWISE_OPTIONS(...)                                                                     \
    .attrs =                                                                                       \
        ED_ATTRS(ED_DEPTHWISE_CONV2D_BIAS_OPTIONS, ed_depthwise_conv2d_bias_options, __VA_ARGS__)
ED_OP(depthwise_conv2d_bias) = {
    BIASED_OP(depthwise_conv2d_bias, depthwise_conv2d, depthwise, ED_DEPTHWISE_CONV2D_BIAS_OPTIONS),
    .samples = ED_SAMPLES(
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 5, 8, 19), ED_SAMPLE_IN(-2, 2, 3, 2, 19, 1),
                    ED_SAMPLE_IN(-2, 2, 19)},
         DEPTHWISE_OPTIONS(.padding = "SAME", .activation = "relu")},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 6, 5, 2), ED_SAMPLE_IN(-2, 2, 3, 3, 2, 4),
                    ED_SAMPLE_IN(-2, 2, 8)},
         DEPTHWISE_OPTIONS(.strides = ED_SAMPLE_INTS(2, 1), .activation = "relu")},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 5, 7), ED_SAMPLE_IN(-2, 2, 2, 2, 3, 2),
                    ED_SAMPLE_IN(-2, 2, 6)},
         DEPTHWISE_OPTIONS(.padding = "SAME", .activation = "relu", .data_format = "NCHW")},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 2, 2, 2), ED_SAMPLE_IN(-2, 2, 2, 2, 2, 1),
                    ED_SAMPLE_IN(-2, 2, 2)},
         DEPTHWISE_OPTIONS(.padding = "EXPLICIT", .explicit_paddings = ED_SAMPLE_INTS(3, 0, 0, 2),
                           .data_format = "NCHW")}),
};

ed_tensor *ed_depthwise_conv2d_bias_with(ed_tensor *x, ed_tensor *kernel, ed_tensor *bias,
                                         const ed_depthwise_conv2d_bias_options *options)
{
    return CALL_OP(depthwise_conv2d_bias, options, x, kernel, bias);
}
