#include "nn/layer_core.h"
#include "ops/window.h"
#include "ops/ops.h"

typedef struct pool {
    int64_t window[2], strides[2];
} pool;

static bool max_pooling2d_init(ed_layer *layer)
{
    const ed_layer_max_pooling2d_options *o = layer_options(layer);
    pool *p = ed_layer_state(layer);
    return window_pair("max_pooling2d", "pool_size", o->pool_size, 2, p->window) &&
           window_pair("max_pooling2d", "strides",
                       o->strides.values ? o->strides : (ed_ints){p->window, 2}, 2, p->strides);
}

static bool max_pooling2d_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_max_pooling2d_options *o = layer_options(layer);
    const pool *p = ed_layer_state(layer);
    ed_tensor *x = call->inputs[0];
    if (!layer_accepts(layer, x, 4, false)) return false;
    return ed_layer_return(call, ed_max_pool2d(x, .window = {p->window, 2},
                                               .strides = {p->strides, 2}, .padding = o->padding));
}

LAYER(max_pooling2d, MAX_POOLING2D, 0, "the maximum of each window", .state_size = sizeof(pool),
      .init = max_pooling2d_init, .forward = max_pooling2d_forward,
      .samples = LAYER_SAMPLES({.inputs = {{4, {2, 5, 4, 3}}}, .n_inputs = 1},
                               {.options = OPTIONS(max_pooling2d, MAX_POOLING2D,
                                                   .pool_size = ED_SAMPLE_INTS(3),
                                                   .padding = "SAME"),
                                .inputs = {{4, {1, 5, 4, 2}}},
                                .n_inputs = 1}))

static bool global_average_pooling2d_forward(ed_layer *layer, ed_layer_call *call)
{
    ed_tensor *x = call->inputs[0];
    return layer_accepts(layer, x, 4, false) &&
           ed_layer_return(call, ed_reduce_mean(x, .axis = ED_AXES(1, 2)));
}

LAYER(global_average_pooling2d, GLOBAL_AVERAGE_POOLING2D, 0, "the mean over height and width",
      .forward = global_average_pooling2d_forward,
      .samples = LAYER_SAMPLES({.inputs = {{4, {2, 3, 4, 2}}}, .n_inputs = 1}))
