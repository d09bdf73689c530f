#include "nn/layers/windows.h"
#include "ops/ops.h"

/* The largest element or the mean of windows, of all, and of as many windows as are asked for. The
 * kinds of a family have one list of options, and read it as that of one of them. */

/* ---- Windows --------------------------------------------------------------------------------- */

typedef struct pool {
    int rank;
    bool channels_first;
    const char *format;
    int64_t window[WINDOW_RANKS], strides[WINDOW_RANKS];
} pool;

static bool pool_init(ed_layer *layer)
{
    const ed_layer_max_pooling2d_options *o = layer_options(layer);
    pool *p = ed_layer_state(layer);
    p->rank = layer_spatial_rank(layer);
    p->channels_first = layer_channels_first(o->data_format);
    p->format = layer_op_format(p->channels_first, p->rank);
    if (!layer_sizes(layer, "pool_size", o->pool_size, 1, 2, p->window)) return false;
    const ed_ints strides = o->strides.values ? o->strides : (ed_ints){p->window, p->rank};
    return layer_sizes(layer, "strides", strides, 1, 1, p->strides);
}

#define WINDOWS_OF(p, o)                                                                           \
    .window = {(p)->window, (p)->rank}, .strides = {(p)->strides, (p)->rank},                      \
    .padding = (o)->padding, .data_format = (p)->format

static bool max_pool_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_max_pooling2d_options *o = layer_options(layer);
    const pool *p = ed_layer_state(layer);
    ed_tensor *x = call->inputs[0];
    if (!layer_accepts(layer, x, p->rank + 2, false)) return false;
    return ed_layer_return(call, p->rank == 1   ? ed_max_pool1d(x, WINDOWS_OF(p, o))
                                 : p->rank == 2 ? ed_max_pool2d(x, WINDOWS_OF(p, o))
                                                : ed_max_pool3d(x, WINDOWS_OF(p, o)));
}

static bool average_pool_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_max_pooling2d_options *o = layer_options(layer);
    const pool *p = ed_layer_state(layer);
    ed_tensor *x = call->inputs[0];
    if (!layer_accepts(layer, x, p->rank + 2, false)) return false;
    return ed_layer_return(call, p->rank == 1   ? ed_avg_pool1d(x, WINDOWS_OF(p, o))
                                 : p->rank == 2 ? ed_avg_pool2d(x, WINDOWS_OF(p, o))
                                                : ed_avg_pool3d(x, WINDOWS_OF(p, o)));
}

/* ---- All elements ---------------------------------------------------------------------------- */

static bool global_init(ed_layer *layer)
{
    const ed_layer_global_max_pooling2d_options *o = layer_options(layer);
    pool *p = ed_layer_state(layer);
    p->rank = layer_spatial_rank(layer);
    p->channels_first = layer_channels_first(o->data_format);
    for (int i = 0; i < p->rank; i++) p->window[i] = layer_spatial_axis(p->channels_first) + i;
    return true;
}

/* The spatial axes. */
#define AXES_OF(p) ((ed_ints){(p)->window, (p)->rank})

static bool global_max_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_global_max_pooling2d_options *o = layer_options(layer);
    const pool *p = ed_layer_state(layer);
    ed_tensor *x = call->inputs[0];
    return layer_accepts(layer, x, p->rank + 2, false) &&
           ed_layer_return(call, ed_reduce_max(x, .axis = AXES_OF(p), .keepdims = o->keepdims));
}

/* The mean over the steps that the mask has as true. */
static ed_tensor *masked_mean(ed_layer *layer, const pool *p, ed_tensor *x, ed_tensor *mask,
                              bool keepdims)
{
    const int steps = layer_spatial_axis(p->channels_first);
    if (mask->dtype != ED_BOOL || mask->rank != 2 || mask->shape[0] != x->shape[0] ||
        mask->shape[1] != x->shape[steps])
        return layer_fail(layer, ED_INVALID_ARGUMENT,
                          "the mask must be bool [batch, steps], got %s for the input %s",
                          text_of_tensor(mask).s, text_of_tensor(x).s);
    ed_tensor *counts = ed_expand_dims(mask, layer_channel_axis(p->channels_first, 1));
    ed_tensor *sum =
        ed_reduce_sum(ed_where(counts, x, 0.0), .axis = ED_AXES(steps), .keepdims = keepdims);
    return ed_div(sum, ed_reduce_sum(ed_cast(counts, x->dtype), .axis = ED_AXES(steps),
                                     .keepdims = keepdims));
}

static bool global_average_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_global_max_pooling2d_options *o = layer_options(layer);
    const pool *p = ed_layer_state(layer);
    ed_tensor *x = call->inputs[0], *mask = call->masks[0];
    if (!layer_accepts(layer, x, p->rank + 2, false)) return false;
    if (mask && p->rank == 1)
        return ed_layer_return(call, masked_mean(layer, p, x, mask, o->keepdims));
    return ed_layer_return(call, ed_reduce_mean(x, .axis = AXES_OF(p), .keepdims = o->keepdims));
}

/* ---- To a size ------------------------------------------------------------------------------- */

static bool adaptive_init(ed_layer *layer)
{
    const ed_layer_adaptive_max_pooling2d_options *o = layer_options(layer);
    pool *p = ed_layer_state(layer);
    p->rank = layer_spatial_rank(layer);
    p->channels_first = layer_channels_first(o->data_format);
    p->format = layer_op_format(p->channels_first, p->rank);
    if (!o->output_size.values)
        return ed_fail(ED_INVALID_ARGUMENT, "%s: output_size is not given",
                       layer->class->kind.name);
    return layer_sizes(layer, "output_size", o->output_size, 1, 1, p->window);
}

#define SIZE_OF(p) .output_size = {(p)->window, (p)->rank}, .data_format = (p)->format

static bool adaptive_max_forward(ed_layer *layer, ed_layer_call *call)
{
    const pool *p = ed_layer_state(layer);
    ed_tensor *x = call->inputs[0];
    if (!layer_accepts(layer, x, p->rank + 2, false)) return false;
    return ed_layer_return(call, p->rank == 1   ? ed_adaptive_max_pool1d(x, SIZE_OF(p))
                                 : p->rank == 2 ? ed_adaptive_max_pool2d(x, SIZE_OF(p))
                                                : ed_adaptive_max_pool3d(x, SIZE_OF(p)));
}

static bool adaptive_average_forward(ed_layer *layer, ed_layer_call *call)
{
    const pool *p = ed_layer_state(layer);
    ed_tensor *x = call->inputs[0];
    if (!layer_accepts(layer, x, p->rank + 2, false)) return false;
    return ed_layer_return(call, p->rank == 1   ? ed_adaptive_avg_pool1d(x, SIZE_OF(p))
                                 : p->rank == 2 ? ed_adaptive_avg_pool2d(x, SIZE_OF(p))
                                                : ed_adaptive_avg_pool3d(x, SIZE_OF(p)));
}

/* ---- The kinds ------------------------------------------------------------------------------- */

#define POOL(symbol, SYMBOL, needed, text, family, call, ...)                                      \
    LAYER(symbol, SYMBOL, needed, text, .state_size = sizeof(pool), .init = family##_init,         \
          .forward = call##_forward, .samples = LAYER_SAMPLES(__VA_ARGS__))
#define SAMPLE(symbol, SYMBOL, input_rank, sizes, ...)                                             \
    {                                                                                              \
        .options = OPTIONS(symbol, SYMBOL, __VA_ARGS__), .inputs = {{input_rank, sizes}},          \
        .n_inputs = 1                                                                              \
    }
#define SIZES(...)                                                                                 \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

POOL(max_pooling1d, MAX_POOLING1D, 0, "the maximum of each window", pool, max_pool,
     SAMPLE(max_pooling1d, MAX_POOLING1D, 3, SIZES(2, 5, 3)),
     SAMPLE(max_pooling1d, MAX_POOLING1D, 3, SIZES(1, 2, 5), .pool_size = ED_SAMPLE_INTS(3),
            .strides = ED_SAMPLE_INTS(1), .padding = "SAME", .data_format = "channels_first"))
POOL(max_pooling2d, MAX_POOLING2D, 0, "the maximum of each window", pool, max_pool,
     SAMPLE(max_pooling2d, MAX_POOLING2D, 4, SIZES(2, 5, 4, 3)),
     SAMPLE(max_pooling2d, MAX_POOLING2D, 4, SIZES(1, 5, 4, 2), .pool_size = ED_SAMPLE_INTS(3),
            .padding = "SAME", .data_format = "channels_first"))
POOL(max_pooling3d, MAX_POOLING3D, 0, "the maximum of each window", pool, max_pool,
     SAMPLE(max_pooling3d, MAX_POOLING3D, 5, SIZES(1, 2, 3, 4, 2)))
POOL(average_pooling1d, AVERAGE_POOLING1D, 0, "the mean of each window", pool, average_pool,
     SAMPLE(average_pooling1d, AVERAGE_POOLING1D, 3, SIZES(2, 5, 3), .padding = "SAME"))
POOL(average_pooling2d, AVERAGE_POOLING2D, 0, "the mean of each window", pool, average_pool,
     SAMPLE(average_pooling2d, AVERAGE_POOLING2D, 4, SIZES(2, 5, 4, 3)),
     SAMPLE(average_pooling2d, AVERAGE_POOLING2D, 4, SIZES(1, 2, 3, 4),
            .pool_size = ED_SAMPLE_INTS(3, 2), .strides = ED_SAMPLE_INTS(1, 2), .padding = "SAME",
            .data_format = "channels_first"))
POOL(average_pooling3d, AVERAGE_POOLING3D, 0, "the mean of each window", pool, average_pool,
     SAMPLE(average_pooling3d, AVERAGE_POOLING3D, 5, SIZES(1, 2, 3, 4, 2)))

POOL(global_max_pooling1d, GLOBAL_MAX_POOLING1D, 0, "the maximum over the steps", global,
     global_max, SAMPLE(global_max_pooling1d, GLOBAL_MAX_POOLING1D, 3, SIZES(2, 3, 2)))
POOL(global_max_pooling2d, GLOBAL_MAX_POOLING2D, 0, "the maximum over height and width", global,
     global_max,
     SAMPLE(global_max_pooling2d, GLOBAL_MAX_POOLING2D, 4, SIZES(2, 3, 2, 2),
            .data_format = "channels_first", .keepdims = true))
POOL(global_max_pooling3d, GLOBAL_MAX_POOLING3D, 0, "the maximum over depth, height and width",
     global, global_max,
     SAMPLE(global_max_pooling3d, GLOBAL_MAX_POOLING3D, 5, SIZES(2, 1, 2, 2, 2)))
POOL(global_average_pooling1d, GLOBAL_AVERAGE_POOLING1D, 0, "the mean over the steps", global,
     global_average, SAMPLE(global_average_pooling1d, GLOBAL_AVERAGE_POOLING1D, 3, SIZES(2, 3, 2)))
POOL(global_average_pooling2d, GLOBAL_AVERAGE_POOLING2D, 0, "the mean over height and width",
     global, global_average,
     SAMPLE(global_average_pooling2d, GLOBAL_AVERAGE_POOLING2D, 4, SIZES(2, 3, 4, 2)),
     SAMPLE(global_average_pooling2d, GLOBAL_AVERAGE_POOLING2D, 4, SIZES(2, 3, 2, 2),
            .data_format = "channels_first", .keepdims = true))
POOL(global_average_pooling3d, GLOBAL_AVERAGE_POOLING3D, 0, "the mean over depth, height and width",
     global, global_average,
     SAMPLE(global_average_pooling3d, GLOBAL_AVERAGE_POOLING3D, 5, SIZES(2, 1, 2, 2, 2)))

POOL(adaptive_max_pooling1d, ADAPTIVE_MAX_POOLING1D, 1, "the maxima of so many windows", adaptive,
     adaptive_max,
     SAMPLE(adaptive_max_pooling1d, ADAPTIVE_MAX_POOLING1D, 3, SIZES(2, 5, 2),
            .output_size = ED_SAMPLE_INTS(2)))
POOL(adaptive_max_pooling2d, ADAPTIVE_MAX_POOLING2D, 1, "the maxima of so many windows", adaptive,
     adaptive_max,
     SAMPLE(adaptive_max_pooling2d, ADAPTIVE_MAX_POOLING2D, 4, SIZES(1, 2, 4, 3),
            .output_size = ED_SAMPLE_INTS(2), .data_format = "channels_first"))
POOL(adaptive_max_pooling3d, ADAPTIVE_MAX_POOLING3D, 1, "the maxima of so many windows", adaptive,
     adaptive_max,
     SAMPLE(adaptive_max_pooling3d, ADAPTIVE_MAX_POOLING3D, 5, SIZES(1, 2, 3, 4, 1),
            .output_size = ED_SAMPLE_INTS(1, 2, 3)))
POOL(adaptive_average_pooling1d, ADAPTIVE_AVERAGE_POOLING1D, 1, "the means of so many windows",
     adaptive, adaptive_average,
     SAMPLE(adaptive_average_pooling1d, ADAPTIVE_AVERAGE_POOLING1D, 3, SIZES(2, 5, 2),
            .output_size = ED_SAMPLE_INTS(2)))
POOL(adaptive_average_pooling2d, ADAPTIVE_AVERAGE_POOLING2D, 1, "the means of so many windows",
     adaptive, adaptive_average,
     SAMPLE(adaptive_average_pooling2d, ADAPTIVE_AVERAGE_POOLING2D, 4, SIZES(1, 2, 4, 3),
            .output_size = ED_SAMPLE_INTS(2), .data_format = "channels_first"))
POOL(adaptive_average_pooling3d, ADAPTIVE_AVERAGE_POOLING3D, 1, "the means of so many windows",
     adaptive, adaptive_average,
     SAMPLE(adaptive_average_pooling3d, ADAPTIVE_AVERAGE_POOLING3D, 5, SIZES(1, 2, 3, 4, 1),
            .output_size = ED_SAMPLE_INTS(1, 2, 3)))
