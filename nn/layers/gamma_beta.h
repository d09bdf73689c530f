/* Weights of the normalizations that scale and shift. */
#ifndef EDDY_NN_LAYERS_GAMMA_BETA_H
#define EDDY_NN_LAYERS_GAMMA_BETA_H

#include "nn/layer_core.h"

/* Adds gamma and beta of a layer with ED_LAYER_GAMMA_BETA, o being the options; NULL, with an
 * error, on failure. */
#define LAYER_ADD_GAMMA(layer, o, shape, type)                                                     \
    ed_layer_add_weight(layer, "gamma", shape, .dtype = type,                                      \
                        .initializer = (o)->gamma_initializer ?: ed_initializer_ones(),            \
                        .regularizer = (o)->gamma_regularizer,                                     \
                        .constraint = (o)->gamma_constraint)
#define LAYER_ADD_BETA(layer, o, shape, type)                                                      \
    ed_layer_add_weight(layer, "beta", shape, .dtype = type,                                       \
                        .initializer = (o)->beta_initializer ?: ed_initializer_zeros(),            \
                        .regularizer = (o)->beta_regularizer, .constraint = (o)->beta_constraint)

/* The axis counted from 0; -1, with an error, if x has no such axis. */
int layer_axis(const ed_layer *layer, const ed_tensor *x, int64_t axis);

/* Axes of x, counted from 0 and in ascending order; none given: the last one. */
typedef struct layer_axes {
    int64_t axes[ED_MAX_RANK], sizes[ED_MAX_RANK]; /* the axes, and their sizes */
    int count;
    bool last; /* they are the last axes of x */
} layer_axes;
bool layer_find_axes(const ed_layer *layer, const ed_tensor *x, ed_ints given, layer_axes *found);

/* A weight of the shape of those axes, reshaped so that it broadcasts with x. */
ed_tensor *layer_along(const layer_axes *axes, const ed_tensor *x, ed_tensor *weight);

/* Checks that x has the axes that the layer was built for; false, with an error, if not. */
bool layer_same_axes(const ed_layer *layer, const ed_tensor *x, const layer_axes *axes, int rank);

#endif
