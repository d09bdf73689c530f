/*
 * Layers: pools.
 */
#ifndef EDDY_NN_LAYERS_POOLING_H
#define EDDY_NN_LAYERS_POOLING_H

#include "nn/layer.h"

#pragma GCC visibility push(default)

/* ed_max_pool2d as a layer: the maximum of each window, [batch, height, width, channels] -> [batch,
 * height', width', channels]. One number for both axes, or two. */
#define ED_LAYER_MAX_POOLING2D_OPTIONS(FIELD, T)                                                   \
    FIELD(T, INTS, pool_size, ED_NO_LIST, ED_AT_LEAST(1), "height and width; default: 2")          \
    FIELD(T, INTS, strides, ED_NO_LIST, ED_AT_LEAST(1), "height and width; default: pool_size")    \
    FIELD(T, CHOICE, padding, "VALID", ED_ONE_OF("VALID", "SAME"), "as of ed_max_pool2d")          \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, max_pooling2d, ED_LAYER_MAX_POOLING2D_OPTIONS);

/* The mean over height and width: [batch, height, width, channels] -> [batch, channels]. */
#define ED_LAYER_GLOBAL_AVERAGE_POOLING2D_OPTIONS(FIELD, T) ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, global_average_pooling2d, ED_LAYER_GLOBAL_AVERAGE_POOLING2D_OPTIONS);

#pragma GCC visibility pop
#endif
