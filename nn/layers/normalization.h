/*
 * Layers: normalizations.
 */
#ifndef EDDY_NN_LAYERS_NORMALIZATION_H
#define EDDY_NN_LAYERS_NORMALIZATION_H

#include "nn/layer.h"

#pragma GCC visibility push(default)

/* Options of those that scale and shift their results. */
#define ED_LAYER_GAMMA_BETA(FIELD, T)                                                              \
    FIELD(T, BOOL, center, true, ED_ANY, "whether there is beta")                                  \
    FIELD(T, BOOL, scale, true, ED_ANY, "whether there is gamma")                                  \
    FIELD(T, INITIALIZER, beta_initializer, NULL, ED_OTHERWISE("zeros"), "of beta")                \
    FIELD(T, INITIALIZER, gamma_initializer, NULL, ED_OTHERWISE("ones"), "of gamma")               \
    FIELD(T, REGULARIZER, beta_regularizer, NULL, ED_ANY, "of beta")                               \
    FIELD(T, REGULARIZER, gamma_regularizer, NULL, ED_ANY, "of gamma")                             \
    FIELD(T, CONSTRAINT, beta_constraint, NULL, ED_ANY, "of beta")                                 \
    FIELD(T, CONSTRAINT, gamma_constraint, NULL, ED_ANY, "of gamma")

/*
 * Batch normalization: y = gamma (x - mean) / sqrt(variance + epsilon) + beta, with statistics over
 * all axes but that of the channels; rank at least 2. With .training = true they are those of the
 * batch, without the elements that the mask [batch, ...] (all axes of x but the last) says to skip,
 * and moving = momentum moving + (1 - momentum) batch; otherwise, and in a frozen layer,
 * moving_mean and moving_variance are used. Weights, each [channels]: gamma, beta, moving_mean and
 * moving_variance (not trainable).
 */
#define ED_LAYER_BATCH_NORMALIZATION_OPTIONS(FIELD, T)                                             \
    FIELD(T, FLOAT, momentum, 0.99, ED_BETWEEN(0, 1), "decay of the moving statistics")            \
    FIELD(T, FLOAT, epsilon, 0.001, ED_FROM(0, 1e30), "added to the variance")                     \
    FIELD(T, AXIS, axis, -1, ED_ANY, "of the channels")                                            \
    ED_LAYER_GAMMA_BETA(FIELD, T)                                                                  \
    FIELD(T, INITIALIZER, moving_mean_initializer, NULL, ED_OTHERWISE("zeros"), "of moving_mean")  \
    FIELD(T, INITIALIZER, moving_variance_initializer, NULL, ED_OTHERWISE("ones"),                 \
          "of moving_variance")                                                                    \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, batch_normalization, ED_LAYER_BATCH_NORMALIZATION_OPTIONS);

/*
 * y = gamma (x - mean) / sqrt(variance + epsilon) + beta with the mean and variance of each slice
 * along the axes. Weights: gamma, beta, of the shape of those axes. With rms_scaling, as Keras has
 * it, y = gamma x / sqrt(variance + epsilon), without beta; rms_normalization is what that is meant
 * to be.
 */
#define ED_LAYER_LAYER_NORMALIZATION_OPTIONS(FIELD, T)                                             \
    FIELD(T, AXES, axis, ED_NO_LIST, ED_ANY, "which are normalized; default: the last one")        \
    FIELD(T, FLOAT, epsilon, 0.001, ED_FROM(0, 1e30), "added to the variance")                     \
    ED_LAYER_GAMMA_BETA(FIELD, T)                                                                  \
    FIELD(T, BOOL, rms_scaling, false, ED_ANY, "whether the mean is not subtracted")               \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, layer_normalization, ED_LAYER_LAYER_NORMALIZATION_OPTIONS);

/*
 * The same for groups of adjoining channels, as ed_group_norm: x [batch, ...], weights gamma and
 * beta [channels]. With groups -1 each channel is a group: instance normalization.
 */
#define ED_LAYER_GROUP_NORMALIZATION_OPTIONS(FIELD, T)                                             \
    FIELD(T, INT, groups, 32, ED_AT_LEAST(-1), "number of groups; -1: one for each channel")       \
    FIELD(T, AXIS, axis, -1, ED_ANY, "of the channels; not the first one")                         \
    FIELD(T, FLOAT, epsilon, 0.001, ED_FROM(0, 1e30), "added to the variance")                     \
    ED_LAYER_GAMMA_BETA(FIELD, T)                                                                  \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, group_normalization, ED_LAYER_GROUP_NORMALIZATION_OPTIONS);

/* y = scale x / sqrt(mean of x^2 + epsilon) of each slice along the axes. Weight: scale, of the
 * shape of those axes. */
#define ED_LAYER_RMS_NORMALIZATION_OPTIONS(FIELD, T)                                               \
    FIELD(T, AXES, axis, ED_NO_LIST, ED_ANY, "which are normalized; default: the last one")        \
    FIELD(T, FLOAT, epsilon, 1e-6, ED_FROM(0, 1e30), "added to the mean of the squares")           \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, rms_normalization, ED_LAYER_RMS_NORMALIZATION_OPTIONS);

/* x divided by its Euclidean norm along the axes; a slice of zeros stays zeros. */
#define ED_LAYER_UNIT_NORMALIZATION_OPTIONS(FIELD, T)                                              \
    FIELD(T, AXES, axis, ED_NO_LIST, ED_ANY, "along which; default: the last one")                 \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, unit_normalization, ED_LAYER_UNIT_NORMALIZATION_OPTIONS);

/*
 * A layer whose weight "kernel" or "embeddings" is divided by its spectral norm before each call
 * with .training = true: the weight itself changes. The norm is that of the weight as a matrix
 * [-1, last axis], found by power_iterations steps from vector_u [1, last axis] (a weight, not
 * trainable), which is kept for the next call.
 */
#define ED_LAYER_SPECTRAL_NORMALIZATION_OPTIONS(FIELD, T)                                          \
    FIELD(T, LAYER, layer, NULL, ED_ANY, "whose weight is divided")                                \
    FIELD(T, INT, power_iterations, 1, ED_AT_LEAST(1), "steps in each call")                       \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, spectral_normalization, ED_LAYER_SPECTRAL_NORMALIZATION_OPTIONS, layer);

#pragma GCC visibility pop
#endif
