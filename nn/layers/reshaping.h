/*
 * Layers: shapes. They take any dtype, but for up_sampling2d with an interpolation.
 */
#ifndef EDDY_NN_LAYERS_RESHAPING_H
#define EDDY_NN_LAYERS_RESHAPING_H

#include "nn/layers/convolution.h"

#pragma GCC visibility push(default)

/* [batch, ...] -> [batch, product of the other sizes]; a view where strides allow it. With
 * "channels_first" the channels, axis 1, become the last axis first. */
#define ED_LAYER_FLATTEN_OPTIONS(FIELD, T)                                                         \
    ED_LAYER_DATA_FORMAT(FIELD, T)                                                                 \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, flatten, ED_LAYER_FLATTEN_OPTIONS);

/* [batch, ...] -> [batch, target_shape...]. */
#define ED_LAYER_RESHAPE_OPTIONS(FIELD, T)                                                         \
    FIELD(T, INTS, target_shape, ED_NO_LIST, ED_AT_LEAST(-1),                                      \
          "without the batch; one size may be -1: whatever is left")                               \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, reshape, ED_LAYER_RESHAPE_OPTIONS, target_shape);

/* The axes but the first in another order: ED_AXES(2, 1) swaps those of [batch, a, b]. A view. */
#define ED_LAYER_PERMUTE_OPTIONS(FIELD, T)                                                         \
    FIELD(T, AXES, dims, ED_NO_LIST, ED_ANY, "the axes from 1 on in their new order")              \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, permute, ED_LAYER_PERMUTE_OPTIONS, dims);

/* [batch, features] -> [batch, n, features]. */
#define ED_LAYER_REPEAT_VECTOR_OPTIONS(FIELD, T)                                                   \
    FIELD(T, INT, n, 0, ED_AT_LEAST(1), "how often")                                               \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, repeat_vector, ED_LAYER_REPEAT_VECTOR_OPTIONS, n);

/*
 * Zeros around the spatial axes of [batch, steps, channels] (1d), [batch, height, width, channels]
 * (2d), [batch, depth, height, width, channels] (3d). One number is for all sides, one for each
 * axis for both its sides; two for each axis are before and after it: [top, bottom, left, right].
 */
#define ED_LAYER_ZERO_PADDING1D_OPTIONS(FIELD, T)                                                  \
    FIELD(T, INTS, padding, ED_NO_LIST, ED_AT_LEAST(0), "cells added; default: 1")                 \
    ED_LAYER_DATA_FORMAT(FIELD, T)                                                                 \
    ED_LAYER_COMMON(FIELD, T)
#define ED_LAYER_ZERO_PADDING2D_OPTIONS(FIELD, T) ED_LAYER_ZERO_PADDING1D_OPTIONS(FIELD, T)
#define ED_LAYER_ZERO_PADDING3D_OPTIONS(FIELD, T) ED_LAYER_ZERO_PADDING1D_OPTIONS(FIELD, T)
ED_KIND(layer, zero_padding1d, ED_LAYER_ZERO_PADDING1D_OPTIONS);
ED_KIND(layer, zero_padding2d, ED_LAYER_ZERO_PADDING2D_OPTIONS);
ED_KIND(layer, zero_padding3d, ED_LAYER_ZERO_PADDING3D_OPTIONS);

/* The same cells cut off: a view. Something must remain. */
#define ED_LAYER_CROPPING1D_OPTIONS(FIELD, T)                                                      \
    FIELD(T, INTS, cropping, ED_NO_LIST, ED_AT_LEAST(0), "cells cut off; default: 1")              \
    ED_LAYER_COMMON(FIELD, T)
#define ED_LAYER_CROPPING2D_OPTIONS(FIELD, T)                                                      \
    FIELD(T, INTS, cropping, ED_NO_LIST, ED_AT_LEAST(0), "cells cut off; default: 0")              \
    ED_LAYER_DATA_FORMAT(FIELD, T)                                                                 \
    ED_LAYER_COMMON(FIELD, T)
#define ED_LAYER_CROPPING3D_OPTIONS(FIELD, T)                                                      \
    FIELD(T, INTS, cropping, ED_NO_LIST, ED_AT_LEAST(0), "cells cut off; default: 1")              \
    ED_LAYER_DATA_FORMAT(FIELD, T)                                                                 \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, cropping1d, ED_LAYER_CROPPING1D_OPTIONS);
ED_KIND(layer, cropping2d, ED_LAYER_CROPPING2D_OPTIONS);
ED_KIND(layer, cropping3d, ED_LAYER_CROPPING3D_OPTIONS);

/* Each cell `size` times along the spatial axes; one number, or one for each axis. up_sampling2d
 * can interpolate instead, as ed_resize. */
#define ED_LAYER_UP_SAMPLING1D_OPTIONS(FIELD, T)                                                   \
    FIELD(T, INTS, size, ED_NO_LIST, ED_AT_LEAST(1), "how often; default: 2")                      \
    ED_LAYER_COMMON(FIELD, T)
#define ED_LAYER_UP_SAMPLING2D_OPTIONS(FIELD, T)                                                   \
    FIELD(T, INTS, size, ED_NO_LIST, ED_AT_LEAST(1), "how often; default: 2")                      \
    ED_LAYER_DATA_FORMAT(FIELD, T)                                                                 \
    FIELD(T, CHOICE, interpolation, "nearest",                                                     \
          ED_ONE_OF("nearest", "bilinear", "bicubic", "lanczos3", "lanczos5"), "between cells")    \
    ED_LAYER_COMMON(FIELD, T)
#define ED_LAYER_UP_SAMPLING3D_OPTIONS(FIELD, T)                                                   \
    FIELD(T, INTS, size, ED_NO_LIST, ED_AT_LEAST(1), "how often; default: 2")                      \
    ED_LAYER_DATA_FORMAT(FIELD, T)                                                                 \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, up_sampling1d, ED_LAYER_UP_SAMPLING1D_OPTIONS);
ED_KIND(layer, up_sampling2d, ED_LAYER_UP_SAMPLING2D_OPTIONS);
ED_KIND(layer, up_sampling3d, ED_LAYER_UP_SAMPLING3D_OPTIONS);

#pragma GCC visibility pop
#endif
