#include "nn/layer_core.h"
#include "ops/window.h"
#include "ops/ops.h"

/* y = activation(conv2d(x, kernel) + bias), [batch, height, width, in] ->
 * [batch, h', w', filters]. */

typedef struct conv {
    int64_t size[2], strides[2], dilations[2];
    activation activation;
    ed_tensor *kernel, *bias; /* the layer's */
} conv;

static bool conv2d_init(ed_layer *layer)
{
    const ed_layer_conv2d_options *o = layer_options(layer);
    conv *c = ed_layer_state(layer);
    if (!o->kernel_size.values)
        return ed_fail(
            ED_INVALID_ARGUMENT,
            "conv2d: kernel_size is not given; expected [height, width] or one number for both");
    return window_pair("conv2d", "kernel_size", o->kernel_size, 1, c->size) &&
           window_pair("conv2d", "strides", o->strides, 1, c->strides) &&
           window_pair("conv2d", "dilations", o->dilations, 1, c->dilations) &&
           (c->activation = nn_activation("conv2d", o->activation));
}

static bool conv2d_build(ed_layer *layer, const ed_layer_call *call)
{
    const ed_layer_conv2d_options *o = layer_options(layer);
    conv *c = ed_layer_state(layer);
    const ed_tensor *x = call->inputs[0];
    if (!layer_accepts(layer, x, 4, false)) return false;
    c->kernel = LAYER_ADD_KERNEL(
        layer, o, ED_SHAPE(c->size[0], c->size[1], ed_dim(x, -1), o->filters), x->dtype);
    if (!c->kernel || !o->use_bias) return c->kernel != NULL;
    c->bias = LAYER_ADD_BIAS(layer, o, ED_SHAPE(o->filters), x->dtype);
    return c->bias != NULL;
}

static bool conv2d_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_conv2d_options *o = layer_options(layer);
    const conv *c = ed_layer_state(layer);
    ed_tensor *x = call->inputs[0];
    if (!layer_accepts(layer, x, 4, false) || !layer_same_last(layer, x, c->kernel->shape[2]))
        return false;
    ed_tensor *y = ed_conv2d(x, c->kernel, .strides = {c->strides, 2},
                             .dilations = {c->dilations, 2}, .padding = o->padding);
    if (y && c->bias) y = ed_bias_add(y, c->bias);
    return ed_layer_return(call, y ? c->activation(y) : NULL);
}

LAYER(conv2d, CONV2D, 2, "activation(conv2d(x, kernel) + bias), x [batch, height, width, channels]",
      .state_size = sizeof(conv), .init = conv2d_init, .build = conv2d_build,
      .forward = conv2d_forward,
      .samples = LAYER_SAMPLES(
          {.options = OPTIONS(conv2d, CONV2D, .filters = 3, .kernel_size = ED_SAMPLE_INTS(2, 3),
                              .activation = "tanh"),
           .inputs = {{4, {2, 4, 5, 2}}},
           .n_inputs = 1},
          {.options = OPTIONS(conv2d, CONV2D, .filters = 2, .kernel_size = ED_SAMPLE_INTS(3),
                              .strides = ED_SAMPLE_INTS(2), .padding = "SAME", .use_bias = false),
           .inputs = {{4, {1, 5, 4, 2}}},
           .n_inputs = 1}))
