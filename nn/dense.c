#include "nn/layer.h"
#include "ops/ops.h"

/* y = activation(x kernel + bias); without an activation, and with relu, all in one pass. */

typedef struct dense {
    int64_t units;
    activation activation;
    bool no_bias;
    ed_initializer kernel_initializer, bias_initializer;
    ed_tensor *kernel, *bias; /* the layer's */
} dense;

static bool build(ed_layer *layer, ed_tensor *x)
{
    dense *d = ed_layer_state(layer);
    if (!layer_accepts(layer, x, 2, true)) return false;
    d->kernel = ed_layer_add_weight(layer, "kernel", ED_SHAPE(ed_dim(x, -1), d->units),
                                    .dtype = x->dtype, .initializer = d->kernel_initializer);
    if (!d->kernel || d->no_bias) return d->kernel != NULL;
    d->bias = ed_layer_add_weight(layer, "bias", ED_SHAPE(d->units), .dtype = x->dtype,
                                  .initializer = d->bias_initializer);
    return d->bias != NULL;
}

static ed_tensor *forward(ed_layer *layer, ed_tensor *x, const ed_forward_options *options)
{
    (void)options;
    const dense *d = ed_layer_state(layer);
    if (!layer_accepts(layer, x, 2, true) || !layer_same_last(layer, x, d->kernel->shape[0]))
        return NULL;
    if (d->activation == ed_relu) return ed_linear(x, d->kernel, d->bias, "relu");
    ed_tensor *y = ed_linear(x, d->kernel, d->bias, NULL);
    return y ? d->activation(y) : NULL;
}

static void destroy(ed_layer *layer)
{
    dense *d = ed_layer_state(layer);
    layer_release_initializer(&d->kernel_initializer);
    layer_release_initializer(&d->bias_initializer);
}

ed_layer *ed_layer_dense_with(int64_t units, const ed_layer_dense_options *options)
{
    static const ed_layer_class class = {.name = "dense",
                                         .state_size = sizeof(dense),
                                         .build = build,
                                         .forward = forward,
                                         .destroy = destroy};
    ed_layer_dense_options o = options ? *options : (ed_layer_dense_options){0};
    if (units <= 0)
        return ed_fail(ED_INVALID_ARGUMENT, "dense: units is %lld; at least 1", (long long)units);
    activation f = nn_activation("dense", o.activation);
    ed_layer *layer = f ? ed_layer_new(&class, o.name) : NULL;
    if (!layer) return NULL;
    if (!o.bias_initializer.kind) o.bias_initializer.kind = ED_INIT_ZEROS;
    *(dense *)ed_layer_state(layer) =
        (dense){.units = units,
                .activation = f,
                .no_bias = o.no_bias,
                .kernel_initializer = layer_hold_initializer(o.kernel_initializer),
                .bias_initializer = layer_hold_initializer(o.bias_initializer)};
    return layer;
}
