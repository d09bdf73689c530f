/*
 * Layers: convolutions.
 */
#ifndef EDDY_NN_LAYERS_CONVOLUTION_H
#define EDDY_NN_LAYERS_CONVOLUTION_H

#include "nn/layer.h"

#pragma GCC visibility push(default)

/*
 * y = activation(ed_conv2d(x, kernel) + bias): [batch, height, width, in] -> [batch, height',
 * width', filters]; ops/ops.h has the sizes. Weights: kernel [kernel height, kernel width, in,
 * filters], bias [filters]. kernel_size, strides and dilations are one number for both axes, or
 * two: ed_layer_conv2d(32, ED_INTS(3), .strides = ED_INTS(2, 1)).
 */
#define ED_LAYER_CONV2D_OPTIONS(FIELD, T)                                                          \
    FIELD(T, INT, filters, 0, ED_AT_LEAST(1), "number of output channels")                         \
    FIELD(T, INTS, kernel_size, ED_NO_LIST, ED_AT_LEAST(1), "height and width of the kernel")      \
    FIELD(T, INTS, strides, ED_NO_LIST, ED_AT_LEAST(1), "height and width; default: 1")            \
    FIELD(T, CHOICE, padding, "VALID", ED_ONE_OF("VALID", "SAME"), "as of ed_conv2d")              \
    FIELD(T, INTS, dilations, ED_NO_LIST, ED_AT_LEAST(1), "height and width; default: 1")          \
    FIELD(T, ACTIVATION, activation, NULL, ED_ANY, "of the result, by name; default: linear")      \
    ED_LAYER_KERNEL(FIELD, T)                                                                      \
    ED_LAYER_BIAS(FIELD, T)                                                                        \
    ED_LAYER_ACTIVITY(FIELD, T)                                                                    \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, conv2d, ED_LAYER_CONV2D_OPTIONS, filters, kernel_size);

#pragma GCC visibility pop
#endif
