#include "nn/layer_core.h"
#include "ops/ops.h"

/* y = activation(x kernel + bias); linear and relu are computed in the same pass as the product. */

typedef struct dense {
    activation activation;
    ed_tensor *kernel, *bias; /* the layer's */
} dense;

static bool dense_init(ed_layer *layer)
{
    const ed_layer_dense_options *o = layer_options(layer);
    return (((dense *)ed_layer_state(layer))->activation = nn_activation("dense", o->activation));
}

static bool dense_build(ed_layer *layer, const ed_layer_call *call)
{
    dense *d = ed_layer_state(layer);
    const ed_layer_dense_options *o = layer_options(layer);
    const ed_tensor *x = call->inputs[0];
    if (!layer_accepts(layer, x, 2, true)) return false;
    d->kernel = LAYER_ADD_KERNEL(layer, o, ED_SHAPE(ed_dim(x, -1), o->units), x->dtype);
    if (!d->kernel || !o->use_bias) return d->kernel != NULL;
    d->bias = LAYER_ADD_BIAS(layer, o, ED_SHAPE(o->units), x->dtype);
    return d->bias != NULL;
}

static bool dense_forward(ed_layer *layer, ed_layer_call *call)
{
    const dense *d = ed_layer_state(layer);
    ed_tensor *x = call->inputs[0];
    if (!layer_accepts(layer, x, 2, true) || !layer_same_last(layer, x, d->kernel->shape[0]))
        return false;
    if (d->activation == ed_relu)
        return ed_layer_return(call, ed_linear(x, d->kernel, d->bias, "relu"));
    ed_tensor *y = ed_linear(x, d->kernel, d->bias, NULL);
    return ed_layer_return(call, y ? d->activation(y) : NULL);
}

LAYER(dense, DENSE, 1, "activation(x kernel + bias): [..., in] to [..., units]",
      .state_size = sizeof(dense), .init = dense_init, .build = dense_build,
      .forward = dense_forward, .passes_masks = true,
      .samples = LAYER_SAMPLES({.options = OPTIONS(dense, DENSE, .units = 3, .activation = "tanh"),
                                .inputs = {{2, {4, 2}}},
                                .n_inputs = 1},
                               {.options = OPTIONS(dense, DENSE, .units = 2, .use_bias = false),
                                .inputs = {{3, {2, 3, 4}}},
                                .n_inputs = 1}))
