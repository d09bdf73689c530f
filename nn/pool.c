#include "nn/layer.h"
#include "ops/window.h"
#include "ops/ops.h"

typedef struct pool {
    int64_t window[2], strides[2];
    const char *padding;
} pool;

static ed_tensor *forward(ed_layer *layer, ed_tensor *x, const ed_forward_options *options)
{
    (void)options;
    const pool *p = ed_layer_state(layer);
    if (!layer_accepts(layer, x, 4, false)) return NULL;
    return ed_max_pool2d(x, .window = {p->window, 2}, .strides = {p->strides, 2},
                         .padding = p->padding);
}

ed_layer *ed_layer_max_pooling2d_with(const ed_layer_max_pooling2d_options *options)
{
    static const ed_layer_class class = {
        .name = "max_pooling2d", .state_size = sizeof(pool), .forward = forward};
    ed_layer_max_pooling2d_options o = options ? *options : (ed_layer_max_pooling2d_options){0};
    pool p;
    if (!window_pair("max_pool2d", "window", o.window, 2, p.window) ||
        !window_pair("max_pool2d", "strides", o.strides.values ? o.strides : (ed_ints){p.window, 2},
                     2, p.strides) ||
        !(p.padding = nn_padding("max_pool2d", o.padding)))
        return NULL;
    ed_layer *layer = ed_layer_new(&class, o.name);
    if (layer) *(pool *)ed_layer_state(layer) = p;
    return layer;
}

static ed_tensor *global_forward(ed_layer *layer, ed_tensor *x, const ed_forward_options *options)
{
    (void)options;
    return layer_accepts(layer, x, 4, false) ? ed_reduce_mean(x, .axis = ED_AXES(1, 2)) : NULL;
}

ed_layer *ed_layer_global_average_pooling2d_with(const ed_layer_options *options)
{
    static const ed_layer_class class = {.name = "global_average_pooling2d",
                                         .forward = global_forward};
    return ed_layer_new(&class, options ? options->name : NULL);
}
