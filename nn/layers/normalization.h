/*
 * Layers: normalizations.
 */
#ifndef EDDY_NN_LAYERS_NORMALIZATION_H
#define EDDY_NN_LAYERS_NORMALIZATION_H

#include "nn/layer.h"

#pragma GCC visibility push(default)

/*
 * Batch normalization: y = gamma (x - mean) / sqrt(variance + epsilon) + beta, with statistics over
 * all axes but the last; [..., channels] -> the same shape, rank at least 2. With .training = true
 * they are those of the batch, and moving = momentum moving + (1 - momentum) batch; otherwise
 * moving_mean and moving_variance are used. Weights, each [channels]: gamma, beta, moving_mean and
 * moving_variance (not trainable).
 */
#define ED_LAYER_BATCH_NORMALIZATION_OPTIONS(FIELD, T)                                             \
    FIELD(T, FLOAT, momentum, 0.99, ED_BETWEEN(0, 1), "decay of the moving statistics")            \
    FIELD(T, FLOAT, epsilon, 0.001, ED_FROM(0, 1e30), "added to the variance")                     \
    FIELD(T, BOOL, center, true, ED_ANY, "whether there is beta")                                  \
    FIELD(T, BOOL, scale, true, ED_ANY, "whether there is gamma")                                  \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, batch_normalization, ED_LAYER_BATCH_NORMALIZATION_OPTIONS);

#pragma GCC visibility pop
#endif
