/*
 * Layers: pools.
 *
 * Inputs are [batch, steps, channels] (1d), [batch, height, width, channels] (2d) or [batch, depth,
 * height, width, channels] (3d); with data_format "channels_first" [batch, channels, ...], and so
 * are the outputs. Sizes and strides are one number for all spatial axes, or one for each.
 */
#ifndef EDDY_NN_LAYERS_POOLING_H
#define EDDY_NN_LAYERS_POOLING_H

#include "nn/layers/convolution.h"

#pragma GCC visibility push(default)

/* The largest element or the mean of each window, as of ed_max_pool2d and ed_avg_pool2d: [batch,
 * height, width, channels] -> [batch, height', width', channels]. */
#define ED_LAYER_POOLING_OPTIONS(FIELD, T)                                                         \
    FIELD(T, INTS, pool_size, ED_NO_LIST, ED_AT_LEAST(1), "sizes of the windows; default: 2")      \
    FIELD(T, INTS, strides, ED_NO_LIST, ED_AT_LEAST(1),                                            \
          "from window to window; default: pool_size")                                             \
    FIELD(T, CHOICE, padding, "VALID", ED_ONE_OF("VALID", "SAME"), "as of ed_max_pool2d")          \
    ED_LAYER_DATA_FORMAT(FIELD, T)                                                                 \
    ED_LAYER_COMMON(FIELD, T)
#define ED_LAYER_MAX_POOLING1D_OPTIONS(FIELD, T)     ED_LAYER_POOLING_OPTIONS(FIELD, T)
#define ED_LAYER_MAX_POOLING2D_OPTIONS(FIELD, T)     ED_LAYER_POOLING_OPTIONS(FIELD, T)
#define ED_LAYER_MAX_POOLING3D_OPTIONS(FIELD, T)     ED_LAYER_POOLING_OPTIONS(FIELD, T)
#define ED_LAYER_AVERAGE_POOLING1D_OPTIONS(FIELD, T) ED_LAYER_POOLING_OPTIONS(FIELD, T)
#define ED_LAYER_AVERAGE_POOLING2D_OPTIONS(FIELD, T) ED_LAYER_POOLING_OPTIONS(FIELD, T)
#define ED_LAYER_AVERAGE_POOLING3D_OPTIONS(FIELD, T) ED_LAYER_POOLING_OPTIONS(FIELD, T)
ED_KIND(layer, max_pooling1d, ED_LAYER_MAX_POOLING1D_OPTIONS);
ED_KIND(layer, max_pooling2d, ED_LAYER_MAX_POOLING2D_OPTIONS);
ED_KIND(layer, max_pooling3d, ED_LAYER_MAX_POOLING3D_OPTIONS);
ED_KIND(layer, average_pooling1d, ED_LAYER_AVERAGE_POOLING1D_OPTIONS);
ED_KIND(layer, average_pooling2d, ED_LAYER_AVERAGE_POOLING2D_OPTIONS);
ED_KIND(layer, average_pooling3d, ED_LAYER_AVERAGE_POOLING3D_OPTIONS);

/*
 * The largest element or the mean of each channel: [batch, height, width, channels] -> [batch,
 * channels], with keepdims [batch, 1, 1, channels]. global_average_pooling1d leaves out the steps
 * that the input's mask [batch, steps] says to skip; the mean of none is NaN.
 */
#define ED_LAYER_GLOBAL_POOLING_OPTIONS(FIELD, T)                                                  \
    ED_LAYER_DATA_FORMAT(FIELD, T)                                                                 \
    FIELD(T, BOOL, keepdims, false, ED_ANY, "whether the spatial axes stay, with size 1")          \
    ED_LAYER_COMMON(FIELD, T)
#define ED_LAYER_GLOBAL_MAX_POOLING1D_OPTIONS(FIELD, T) ED_LAYER_GLOBAL_POOLING_OPTIONS(FIELD, T)
#define ED_LAYER_GLOBAL_MAX_POOLING2D_OPTIONS(FIELD, T) ED_LAYER_GLOBAL_POOLING_OPTIONS(FIELD, T)
#define ED_LAYER_GLOBAL_MAX_POOLING3D_OPTIONS(FIELD, T) ED_LAYER_GLOBAL_POOLING_OPTIONS(FIELD, T)
#define ED_LAYER_GLOBAL_AVERAGE_POOLING1D_OPTIONS(FIELD, T)                                        \
    ED_LAYER_GLOBAL_POOLING_OPTIONS(FIELD, T)
#define ED_LAYER_GLOBAL_AVERAGE_POOLING2D_OPTIONS(FIELD, T)                                        \
    ED_LAYER_GLOBAL_POOLING_OPTIONS(FIELD, T)
#define ED_LAYER_GLOBAL_AVERAGE_POOLING3D_OPTIONS(FIELD, T)                                        \
    ED_LAYER_GLOBAL_POOLING_OPTIONS(FIELD, T)
ED_KIND(layer, global_max_pooling1d, ED_LAYER_GLOBAL_MAX_POOLING1D_OPTIONS);
ED_KIND(layer, global_max_pooling2d, ED_LAYER_GLOBAL_MAX_POOLING2D_OPTIONS);
ED_KIND(layer, global_max_pooling3d, ED_LAYER_GLOBAL_MAX_POOLING3D_OPTIONS);
ED_KIND(layer, global_average_pooling1d, ED_LAYER_GLOBAL_AVERAGE_POOLING1D_OPTIONS);
ED_KIND(layer, global_average_pooling2d, ED_LAYER_GLOBAL_AVERAGE_POOLING2D_OPTIONS);
ED_KIND(layer, global_average_pooling3d, ED_LAYER_GLOBAL_AVERAGE_POOLING3D_OPTIONS);

/* Pools to a given size, whatever that of the input: ed_adaptive_avg_pool2d and
 * ed_adaptive_max_pool2d. */
#define ED_LAYER_ADAPTIVE_POOLING_OPTIONS(FIELD, T)                                                \
    FIELD(T, INTS, output_size, ED_NO_LIST, ED_AT_LEAST(1), "sizes of the output")                 \
    ED_LAYER_DATA_FORMAT(FIELD, T)                                                                 \
    ED_LAYER_COMMON(FIELD, T)
#define ED_LAYER_ADAPTIVE_MAX_POOLING1D_OPTIONS(FIELD, T)                                          \
    ED_LAYER_ADAPTIVE_POOLING_OPTIONS(FIELD, T)
#define ED_LAYER_ADAPTIVE_MAX_POOLING2D_OPTIONS(FIELD, T)                                          \
    ED_LAYER_ADAPTIVE_POOLING_OPTIONS(FIELD, T)
#define ED_LAYER_ADAPTIVE_MAX_POOLING3D_OPTIONS(FIELD, T)                                          \
    ED_LAYER_ADAPTIVE_POOLING_OPTIONS(FIELD, T)
#define ED_LAYER_ADAPTIVE_AVERAGE_POOLING1D_OPTIONS(FIELD, T)                                      \
    ED_LAYER_ADAPTIVE_POOLING_OPTIONS(FIELD, T)
#define ED_LAYER_ADAPTIVE_AVERAGE_POOLING2D_OPTIONS(FIELD, T)                                      \
    ED_LAYER_ADAPTIVE_POOLING_OPTIONS(FIELD, T)
#define ED_LAYER_ADAPTIVE_AVERAGE_POOLING3D_OPTIONS(FIELD, T)                                      \
    ED_LAYER_ADAPTIVE_POOLING_OPTIONS(FIELD, T)
ED_KIND(layer, adaptive_max_pooling1d, ED_LAYER_ADAPTIVE_MAX_POOLING1D_OPTIONS, output_size);
ED_KIND(layer, adaptive_max_pooling2d, ED_LAYER_ADAPTIVE_MAX_POOLING2D_OPTIONS, output_size);
ED_KIND(layer, adaptive_max_pooling3d, ED_LAYER_ADAPTIVE_MAX_POOLING3D_OPTIONS, output_size);
ED_KIND(layer, adaptive_average_pooling1d, ED_LAYER_ADAPTIVE_AVERAGE_POOLING1D_OPTIONS,
        output_size);
ED_KIND(layer, adaptive_average_pooling2d, ED_LAYER_ADAPTIVE_AVERAGE_POOLING2D_OPTIONS,
        output_size);
ED_KIND(layer, adaptive_average_pooling3d, ED_LAYER_ADAPTIVE_AVERAGE_POOLING3D_OPTIONS,
        output_size);

#pragma GCC visibility pop
#endif
