/*
 * Layers: noise in training, penalties.
 *
 * All return x unless .training = true. A checkpoint saves a generator that was given.
 */
#ifndef EDDY_NN_LAYERS_REGULARIZATION_H
#define EDDY_NN_LAYERS_REGULARIZATION_H

#include "nn/layers/convolution.h"

#pragma GCC visibility push(default)

/* Options of those that draw random numbers. */
#define ED_LAYER_RATE(FIELD, T)                                                                    \
    FIELD(T, FLOAT, rate, 0, ED_FROM(0, 1), "probability that an element becomes 0")
#define ED_LAYER_GENERATOR(FIELD, T)                                                               \
    FIELD(T, GENERATOR, generator, NULL, ED_ANY, "draws the random numbers; default: the process's")

/* Each element becomes 0 with probability rate, the others are divided by 1 - rate (ed_dropout).
 * With noise_shape, which broadcasts with x, one draw is for all elements along axes of size 1; -1
 * stands for the size of x. */
#define ED_LAYER_DROPOUT_OPTIONS(FIELD, T)                                                         \
    ED_LAYER_RATE(FIELD, T)                                                                        \
    FIELD(T, INTS, noise_shape, ED_NO_LIST, ED_AT_LEAST(-1), "of the draws; default: that of x")   \
    ED_LAYER_GENERATOR(FIELD, T)                                                                   \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, dropout, ED_LAYER_DROPOUT_OPTIONS, rate);

/* The same for whole channels: x is [batch, steps, channels] (1d), [batch, height, width, channels]
 * (2d) or [batch, depth, height, width, channels] (3d). */
#define ED_LAYER_SPATIAL_DROPOUT1D_OPTIONS(FIELD, T)                                               \
    ED_LAYER_RATE(FIELD, T)                                                                        \
    ED_LAYER_GENERATOR(FIELD, T)                                                                   \
    ED_LAYER_COMMON(FIELD, T)
#define ED_LAYER_SPATIAL_DROPOUT2D_OPTIONS(FIELD, T)                                               \
    ED_LAYER_RATE(FIELD, T)                                                                        \
    ED_LAYER_DATA_FORMAT(FIELD, T)                                                                 \
    ED_LAYER_GENERATOR(FIELD, T)                                                                   \
    ED_LAYER_COMMON(FIELD, T)
#define ED_LAYER_SPATIAL_DROPOUT3D_OPTIONS(FIELD, T) ED_LAYER_SPATIAL_DROPOUT2D_OPTIONS(FIELD, T)
ED_KIND(layer, spatial_dropout1d, ED_LAYER_SPATIAL_DROPOUT1D_OPTIONS, rate);
ED_KIND(layer, spatial_dropout2d, ED_LAYER_SPATIAL_DROPOUT2D_OPTIONS, rate);
ED_KIND(layer, spatial_dropout3d, ED_LAYER_SPATIAL_DROPOUT3D_OPTIONS, rate);

/* x times normal numbers of mean 1 and standard deviation sqrt(rate / (1 - rate)). */
#define ED_LAYER_GAUSSIAN_DROPOUT_OPTIONS(FIELD, T)                                                \
    FIELD(T, FLOAT, rate, 0, ED_FROM(0, 1), "as of dropout, whose mean and variance this has")     \
    ED_LAYER_GENERATOR(FIELD, T)                                                                   \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, gaussian_dropout, ED_LAYER_GAUSSIAN_DROPOUT_OPTIONS, rate);

/* x plus normal numbers of mean 0. */
#define ED_LAYER_GAUSSIAN_NOISE_OPTIONS(FIELD, T)                                                  \
    FIELD(T, FLOAT, stddev, 0, ED_AT_LEAST(0), "standard deviation of the numbers")                \
    ED_LAYER_GENERATOR(FIELD, T)                                                                   \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, gaussian_noise, ED_LAYER_GAUSSIAN_NOISE_OPTIONS, stddev);

/* Dropout to selu's least value instead of 0, scaled and shifted so that mean 0 and variance 1
 * stay: for networks of selu (Klambauer et al. 2017). */
#define ED_LAYER_ALPHA_DROPOUT_OPTIONS(FIELD, T)                                                   \
    FIELD(T, FLOAT, rate, 0, ED_FROM(0, 1), "probability that an element is dropped")              \
    FIELD(T, INTS, noise_shape, ED_NO_LIST, ED_AT_LEAST(-1), "of the draws; default: that of x")   \
    ED_LAYER_GENERATOR(FIELD, T)                                                                   \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, alpha_dropout, ED_LAYER_ALPHA_DROPOUT_OPTIONS, rate);

/* x itself, and the penalty (l1 sum |x| + l2 sum x^2) / batch in ed_layer_losses. */
#define ED_LAYER_ACTIVITY_REGULARIZATION_OPTIONS(FIELD, T)                                         \
    FIELD(T, FLOAT, l1, 0, ED_AT_LEAST(0), "factor of the sum of absolute values")                 \
    FIELD(T, FLOAT, l2, 0, ED_AT_LEAST(0), "factor of the sum of squares")                         \
    ED_LAYER_COMMON(FIELD, T)
ED_KIND(layer, activity_regularization, ED_LAYER_ACTIVITY_REGULARIZATION_OPTIONS);

#pragma GCC visibility pop
#endif
