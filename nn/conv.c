#include "nn/layer.h"
#include "ops/window.h"
#include "ops/ops.h"

/* y = activation(conv2d(x, kernel) + bias), [batch, height, width, in] ->
 * [batch, h', w', filters]. */

typedef struct conv {
    int64_t filters, size[2], strides[2], dilations[2];
    const char *padding;
    activation activation;
    bool no_bias;
    ed_initializer kernel_initializer, bias_initializer;
    ed_tensor *kernel, *bias; /* the layer's */
} conv;

static bool build(ed_layer *layer, ed_tensor *x)
{
    conv *c = ed_layer_state(layer);
    if (!layer_accepts(layer, x, 4, false)) return false;
    c->kernel = ed_layer_add_weight(layer, "kernel",
                                    ED_SHAPE(c->size[0], c->size[1], ed_dim(x, -1), c->filters),
                                    .dtype = x->dtype, .initializer = c->kernel_initializer);
    if (!c->kernel || c->no_bias) return c->kernel != NULL;
    c->bias = ed_layer_add_weight(layer, "bias", ED_SHAPE(c->filters), .dtype = x->dtype,
                                  .initializer = c->bias_initializer);
    return c->bias != NULL;
}

static ed_tensor *forward(ed_layer *layer, ed_tensor *x, const ed_forward_options *options)
{
    (void)options;
    const conv *c = ed_layer_state(layer);
    if (!layer_accepts(layer, x, 4, false) || !layer_same_last(layer, x, c->kernel->shape[2]))
        return NULL;
    ed_tensor *y = ed_conv2d(x, c->kernel, .strides = {c->strides, 2},
                             .dilations = {c->dilations, 2}, .padding = c->padding);
    if (y && c->bias) y = ed_bias_add(y, c->bias);
    return y ? c->activation(y) : NULL;
}

static void destroy(ed_layer *layer)
{
    conv *c = ed_layer_state(layer);
    layer_release_initializer(&c->kernel_initializer);
    layer_release_initializer(&c->bias_initializer);
}

/* Everything but the initializers, checked. */
static bool read_options(conv *c, ed_ints kernel_size, const ed_layer_conv2d_options *o)
{
    if (c->filters <= 0)
        return ed_fail(ED_INVALID_ARGUMENT, "conv2d: filters is %lld; at least 1",
                       (long long)c->filters);
    if (!kernel_size.values)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "conv2d: the kernel's size is missing, [height, width]");
    return window_pair("conv2d", "kernel_size", kernel_size, 1, c->size) &&
           window_pair("conv2d", "strides", o->strides, 1, c->strides) &&
           window_pair("conv2d", "dilations", o->dilations, 1, c->dilations) &&
           (c->padding = nn_padding("conv2d", o->padding)) &&
           (c->activation = nn_activation("conv2d", o->activation));
}

ed_layer *ed_layer_conv2d_with(int64_t filters, ed_ints kernel_size,
                               const ed_layer_conv2d_options *options)
{
    static const ed_layer_class class = {.name = "conv2d",
                                         .state_size = sizeof(conv),
                                         .build = build,
                                         .forward = forward,
                                         .destroy = destroy};
    ed_layer_conv2d_options o = options ? *options : (ed_layer_conv2d_options){0};
    conv c = {.filters = filters, .no_bias = o.no_bias};
    if (!read_options(&c, kernel_size, &o)) return NULL;
    ed_layer *layer = ed_layer_new(&class, o.name);
    if (!layer) return NULL;
    if (!o.bias_initializer.kind) o.bias_initializer.kind = ED_INIT_ZEROS;
    c.kernel_initializer = layer_hold_initializer(o.kernel_initializer);
    c.bias_initializer = layer_hold_initializer(o.bias_initializer);
    *(conv *)ed_layer_state(layer) = c;
    return layer;
}
