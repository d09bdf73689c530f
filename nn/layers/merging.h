/*
 * Layers of several inputs: ed_forward_one(ed_layer_add(), ed_list_of(a, b)).
 */
#ifndef EDDY_NN_LAYERS_MERGING_H
#define EDDY_NN_LAYERS_MERGING_H

#include "nn/layer.h"

#pragma GCC visibility push(default)

/*
 * Sum, difference of two, product, mean, largest and smallest, element by element. The inputs are
 * [batch, ...] of one batch size; their other axes broadcast, and inputs of a lower rank get axes
 * of size 1 behind the batch. If all inputs have masks, the output's is true where one of them is.
 * multiply, maximum and minimum leave out elements whose step is masked.
 */
#define ED_LAYER_ADD_OPTIONS(FIELD, T)      ED_LAYER_COMMON(FIELD, T)
#define ED_LAYER_SUBTRACT_OPTIONS(FIELD, T) ED_LAYER_COMMON(FIELD, T)
#define ED_LAYER_MULTIPLY_OPTIONS(FIELD, T) ED_LAYER_COMMON(FIELD, T)
#define ED_LAYER_AVERAGE_OPTIONS(FIELD, T)  ED_LAYER_COMMON(FIELD, T)
#define ED_LAYER_MAXIMUM_OPTIONS(FIELD, T)  ED_LAYER_COMMON(FIELD, T)
#define ED_LAYER_MINIMUM_OPTIONS(FIELD, T)  ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, add, ED_LAYER_ADD_OPTIONS);
ED_KIND(layer, subtract, ED_LAYER_SUBTRACT_OPTIONS);
ED_KIND(layer, multiply, ED_LAYER_MULTIPLY_OPTIONS);
ED_KIND(layer, average, ED_LAYER_AVERAGE_OPTIONS);
ED_KIND(layer, maximum, ED_LAYER_MAXIMUM_OPTIONS);
ED_KIND(layer, minimum, ED_LAYER_MINIMUM_OPTIONS);

/* The inputs joined along an axis, where alone their shapes may differ. Inputs without a mask count
 * as true where others have one. */
#define ED_LAYER_CONCATENATE_OPTIONS(FIELD, T)                                                     \
    FIELD(T, AXIS, axis, -1, ED_ANY, "along which")                                                \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, concatenate, ED_LAYER_CONCATENATE_OPTIONS);

/*
 * For each sample the products of two inputs summed along an axis of each: [batch, 3, 5] and
 * [batch, 10, 3] with axes 1 and 2 -> [batch, 5, 10]; two vectors -> [batch, 1]. normalize: the
 * slices along the axes are divided by their norms first, so that the result is the cosine of their
 * angle.
 */
#define ED_LAYER_DOT_OPTIONS(FIELD, T)                                                             \
    FIELD(T, AXES, axes, ED_NO_LIST, ED_ANY, "one for both inputs, or one for each; not 0")        \
    FIELD(T, BOOL, normalize, false, ED_ANY, "whether slices are divided by their norms")          \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, dot, ED_LAYER_DOT_OPTIONS, axes);

#pragma GCC visibility pop
#endif
