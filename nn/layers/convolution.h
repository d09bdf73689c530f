/*
 * Layers: convolutions.
 *
 * Inputs are [batch, steps, channels] (1d), [batch, height, width, channels] (2d) or [batch, depth,
 * height, width, channels] (3d); with data_format "channels_first" [batch, channels, ...], and so
 * are the outputs. kernel_size, strides and dilations are one number for all spatial axes, or one
 * for each: ed_layer_conv2d(32, ED_INTS(3), .strides = ED_INTS(2, 1)). ops/convolution.h has the
 * sizes of the outputs.
 */
#ifndef EDDY_NN_LAYERS_CONVOLUTION_H
#define EDDY_NN_LAYERS_CONVOLUTION_H

#include "nn/layer.h"

#pragma GCC visibility push(default)

/* Options that several have. */
#define ED_LAYER_DATA_FORMAT(FIELD, T)                                                             \
    FIELD(T, CHOICE, data_format, "channels_last", ED_ONE_OF("channels_last", "channels_first"),   \
          "where the axis of the channels is")
#define ED_LAYER_FILTERS(FIELD, T)                                                                 \
    FIELD(T, INT, filters, 0, ED_AT_LEAST(1), "number of output channels")                         \
    FIELD(T, INTS, kernel_size, ED_NO_LIST, ED_AT_LEAST(1), "sizes of the kernel")
#define ED_LAYER_CONV_WINDOWS(FIELD, T)                                                            \
    FIELD(T, INTS, strides, ED_NO_LIST, ED_AT_LEAST(1), "from window to window; default: 1")       \
    FIELD(T, CHOICE, padding, "VALID", ED_ONE_OF("VALID", "SAME"), "as of ed_conv2d")              \
    ED_LAYER_DATA_FORMAT(FIELD, T)                                                                 \
    FIELD(T, INTS, dilations, ED_NO_LIST, ED_AT_LEAST(1), "from cell to cell; default: 1")
#define ED_LAYER_CONV_RESULT(FIELD, T)                                                             \
    FIELD(T, ACTIVATION, activation, NULL, ED_ANY, "of the result, by name; default: linear")      \
    ED_LAYER_BIAS(FIELD, T)                                                                        \
    ED_LAYER_ACTIVITY(FIELD, T)                                                                    \
    ED_LAYER_COMMON(FIELD, T)
#define ED_LAYER_DEPTHWISE(FIELD, T)                                                               \
    FIELD(T, INT, depth_multiplier, 1, ED_AT_LEAST(1), "number of outputs of each channel")        \
    FIELD(T, INITIALIZER, depthwise_initializer, NULL, ED_OTHERWISE("glorot_uniform"),             \
          "of the kernel of each channel")                                                         \
    FIELD(T, REGULARIZER, depthwise_regularizer, NULL, ED_ANY, "of that kernel")                   \
    FIELD(T, CONSTRAINT, depthwise_constraint, NULL, ED_ANY, "of that kernel")

/*
 * y = activation(ed_conv2d(x, kernel) + bias): [batch, height, width, in] -> [batch, height',
 * width', filters]; in one and three dimensions likewise. Weights: kernel [kernel height, kernel
 * width, in / groups, filters], bias [filters]. Group g of the filters sees group g of the channels
 * alone. CAUSAL, of conv1d: zeros before the first step, so that no output depends on later steps.
 */
#define ED_LAYER_CONV1D_OPTIONS(FIELD, T)                                                          \
    ED_LAYER_FILTERS(FIELD, T)                                                                     \
    FIELD(T, INTS, strides, ED_NO_LIST, ED_AT_LEAST(1), "from window to window; default: 1")       \
    FIELD(T, CHOICE, padding, "VALID", ED_ONE_OF("VALID", "SAME", "CAUSAL"),                       \
          "as of ed_conv1d; CAUSAL: zeros before the first step")                                  \
    ED_LAYER_DATA_FORMAT(FIELD, T)                                                                 \
    FIELD(T, INTS, dilations, ED_NO_LIST, ED_AT_LEAST(1), "from cell to cell; default: 1")         \
    FIELD(T, INT, groups, 1, ED_AT_LEAST(1), "number of groups of channels")                       \
    ED_LAYER_KERNEL(FIELD, T)                                                                      \
    ED_LAYER_CONV_RESULT(FIELD, T)
#define ED_LAYER_CONV2D_OPTIONS(FIELD, T)                                                          \
    ED_LAYER_FILTERS(FIELD, T)                                                                     \
    ED_LAYER_CONV_WINDOWS(FIELD, T)                                                                \
    FIELD(T, INT, groups, 1, ED_AT_LEAST(1), "number of groups of channels")                       \
    ED_LAYER_KERNEL(FIELD, T)                                                                      \
    ED_LAYER_CONV_RESULT(FIELD, T)
#define ED_LAYER_CONV3D_OPTIONS(FIELD, T) ED_LAYER_CONV2D_OPTIONS(FIELD, T)
ED_KIND(layer, conv1d, ED_LAYER_CONV1D_OPTIONS, filters, kernel_size);
ED_KIND(layer, conv2d, ED_LAYER_CONV2D_OPTIONS, filters, kernel_size);
ED_KIND(layer, conv3d, ED_LAYER_CONV3D_OPTIONS, filters, kernel_size);

/*
 * y = activation(ed_conv2d_transpose(x, kernel) + bias): [batch, height, width, in] -> [batch,
 * height', width', filters]. Weights: kernel [kernel height, kernel width, filters, in], bias
 * [filters].
 */
#define ED_LAYER_CONV1D_TRANSPOSE_OPTIONS(FIELD, T)                                                \
    ED_LAYER_FILTERS(FIELD, T)                                                                     \
    ED_LAYER_CONV_WINDOWS(FIELD, T)                                                                \
    FIELD(T, INTS, output_padding, ED_NO_LIST, ED_AT_LEAST(0),                                     \
          "cells more after each spatial axis, below the stride; default: what fits the padding")  \
    ED_LAYER_KERNEL(FIELD, T)                                                                      \
    ED_LAYER_CONV_RESULT(FIELD, T)
#define ED_LAYER_CONV2D_TRANSPOSE_OPTIONS(FIELD, T) ED_LAYER_CONV1D_TRANSPOSE_OPTIONS(FIELD, T)
#define ED_LAYER_CONV3D_TRANSPOSE_OPTIONS(FIELD, T) ED_LAYER_CONV1D_TRANSPOSE_OPTIONS(FIELD, T)
ED_KIND(layer, conv1d_transpose, ED_LAYER_CONV1D_TRANSPOSE_OPTIONS, filters, kernel_size);
ED_KIND(layer, conv2d_transpose, ED_LAYER_CONV2D_TRANSPOSE_OPTIONS, filters, kernel_size);
ED_KIND(layer, conv3d_transpose, ED_LAYER_CONV3D_TRANSPOSE_OPTIONS, filters, kernel_size);

/*
 * Each channel by itself, y = activation(ed_depthwise_conv2d(x, kernel) + bias): [batch, height,
 * width, in] -> [batch, height', width', in depth_multiplier]. Weights: kernel [kernel height,
 * kernel width, in, depth_multiplier], bias [in depth_multiplier].
 */
#define ED_LAYER_DEPTHWISE_CONV1D_OPTIONS(FIELD, T)                                                \
    FIELD(T, INTS, kernel_size, ED_NO_LIST, ED_AT_LEAST(1), "sizes of the kernel")                 \
    ED_LAYER_CONV_WINDOWS(FIELD, T)                                                                \
    ED_LAYER_DEPTHWISE(FIELD, T)                                                                   \
    ED_LAYER_CONV_RESULT(FIELD, T)
#define ED_LAYER_DEPTHWISE_CONV2D_OPTIONS(FIELD, T) ED_LAYER_DEPTHWISE_CONV1D_OPTIONS(FIELD, T)
ED_KIND(layer, depthwise_conv1d, ED_LAYER_DEPTHWISE_CONV1D_OPTIONS, kernel_size);
ED_KIND(layer, depthwise_conv2d, ED_LAYER_DEPTHWISE_CONV2D_OPTIONS, kernel_size);

/*
 * Each channel by itself, and then all channels of each pixel: y =
 * activation(ed_separable_conv2d(x, depthwise_kernel, pointwise_kernel) + bias). Weights:
 * depthwise_kernel [kernel height, kernel width, in, depth_multiplier], pointwise_kernel [1, 1, in
 * depth_multiplier, filters], bias [filters].
 */
#define ED_LAYER_SEPARABLE_CONV1D_OPTIONS(FIELD, T)                                                \
    ED_LAYER_FILTERS(FIELD, T)                                                                     \
    ED_LAYER_CONV_WINDOWS(FIELD, T)                                                                \
    ED_LAYER_DEPTHWISE(FIELD, T)                                                                   \
    FIELD(T, INITIALIZER, pointwise_initializer, NULL, ED_OTHERWISE("glorot_uniform"),             \
          "of pointwise_kernel")                                                                   \
    FIELD(T, REGULARIZER, pointwise_regularizer, NULL, ED_ANY, "of pointwise_kernel")              \
    FIELD(T, CONSTRAINT, pointwise_constraint, NULL, ED_ANY, "of pointwise_kernel")                \
    ED_LAYER_CONV_RESULT(FIELD, T)
#define ED_LAYER_SEPARABLE_CONV2D_OPTIONS(FIELD, T) ED_LAYER_SEPARABLE_CONV1D_OPTIONS(FIELD, T)
ED_KIND(layer, separable_conv1d, ED_LAYER_SEPARABLE_CONV1D_OPTIONS, filters, kernel_size);
ED_KIND(layer, separable_conv2d, ED_LAYER_SEPARABLE_CONV2D_OPTIONS, filters, kernel_size);

#pragma GCC visibility pop
#endif
