/*
 * Initializers, which create the initial values of weights, as in Keras (nn/initializers/).
 */
#ifndef EDDY_NN_INITIALIZERS_H
#define EDDY_NN_INITIALIZERS_H

#include "tensor/schema.h"
#include "tensor/tensor.h"

#pragma GCC visibility push(default)

/*
 * An initializer creates a weight's initial value. fan_in and fan_out are counted as in Keras: of
 * the shape [..., in, out], fan_in = product(...) in, fan_out = product(...) out; of the shape [n]
 * both are n. A truncated normal distribution draws values again that are more than 2 standard
 * deviations from the mean; stddev is that before truncation, a variance that after it.
 */
typedef struct ed_initializer ed_initializer;

/* A new tensor of the shape and dtype (float32 or float64) with values of the initializer. A second
 * call draws other random values. */
ed_tensor *ed_initialize(ed_initializer *initializer, ed_ints shape, ed_dtype dtype);

/*
 * Where random numbers come from. With a seed from 0 on, each call gives the same numbers, those of
 * Keras' initializer with that integer as seed; -1: from the generator.
 */
#define ED_INITIALIZER_SOURCE(FIELD, T)                                                            \
    FIELD(T, INT, seed, -1, ED_BETWEEN(-1, 2147483647), "of the numbers; -1: the generator")       \
    FIELD(T, GENERATOR, generator, NULL, ED_ANY, "draws the random numbers; default: the process's")

/* All elements 0. */
#define ED_INITIALIZER_ZEROS_OPTIONS(FIELD, T)
ED_KIND(initializer, zeros, ED_INITIALIZER_ZEROS_OPTIONS);

/* All elements 1. */
#define ED_INITIALIZER_ONES_OPTIONS(FIELD, T)
ED_KIND(initializer, ones, ED_INITIALIZER_ONES_OPTIONS);

/* All elements `value`: ed_initializer_constant(0.1). */
#define ED_INITIALIZER_CONSTANT_OPTIONS(FIELD, T)                                                  \
    FIELD(T, FLOAT, value, 0, ED_FINITE, "value of each element")
ED_KIND(initializer, constant, ED_INITIALIZER_CONSTANT_OPTIONS, value);

/* Uniform in [minval, maxval). */
#define ED_INITIALIZER_RANDOM_UNIFORM_OPTIONS(FIELD, T)                                            \
    FIELD(T, FLOAT, minval, -0.05, ED_FINITE, "lower limit, included")                             \
    FIELD(T, FLOAT, maxval, 0.05, ED_FINITE, "upper limit, excluded")                              \
    ED_INITIALIZER_SOURCE(FIELD, T)
ED_KIND(initializer, random_uniform, ED_INITIALIZER_RANDOM_UNIFORM_OPTIONS);

/* Normal. */
#define ED_INITIALIZER_RANDOM_NORMAL_OPTIONS(FIELD, T)                                             \
    FIELD(T, FLOAT, mean, 0, ED_FINITE, "mean of the distribution")                                \
    FIELD(T, FLOAT, stddev, 0.05, ED_AT_LEAST(0), "standard deviation")                            \
    ED_INITIALIZER_SOURCE(FIELD, T)
ED_KIND(initializer, random_normal, ED_INITIALIZER_RANDOM_NORMAL_OPTIONS);

/* Normal, truncated at 2 standard deviations from the mean. */
#define ED_INITIALIZER_TRUNCATED_NORMAL_OPTIONS ED_INITIALIZER_RANDOM_NORMAL_OPTIONS
ED_KIND(initializer, truncated_normal, ED_INITIALIZER_TRUNCATED_NORMAL_OPTIONS);

/* Mean 0, variance scale / fan; "uniform" is uniform in +-sqrt(3 scale / fan). */
#define ED_INITIALIZER_VARIANCE_SCALING_OPTIONS(FIELD, T)                                          \
    FIELD(T, FLOAT, scale, 1, ED_ABOVE(0), "variance = scale / fan")                               \
    FIELD(T, CHOICE, mode, "fan_in", ED_ONE_OF("fan_in", "fan_out", "fan_avg"),                    \
          "fan that is used; avg: the mean of both")                                               \
    FIELD(T, CHOICE, distribution, "truncated_normal",                                             \
          ED_ONE_OF("truncated_normal", "untruncated_normal", "uniform"),                          \
          "distribution of the values")                                                            \
    ED_INITIALIZER_SOURCE(FIELD, T)
ED_KIND(initializer, variance_scaling, ED_INITIALIZER_VARIANCE_SCALING_OPTIONS);

/* Uniform in +-sqrt(6 / (fan_in + fan_out)). */
#define ED_INITIALIZER_GLOROT_UNIFORM_OPTIONS(FIELD, T) ED_INITIALIZER_SOURCE(FIELD, T)
ED_KIND(initializer, glorot_uniform, ED_INITIALIZER_GLOROT_UNIFORM_OPTIONS);

/* Truncated normal, variance 2 / (fan_in + fan_out). */
#define ED_INITIALIZER_GLOROT_NORMAL_OPTIONS ED_INITIALIZER_GLOROT_UNIFORM_OPTIONS
ED_KIND(initializer, glorot_normal, ED_INITIALIZER_GLOROT_NORMAL_OPTIONS);

/* Uniform in +-sqrt(6 / fan_in). */
#define ED_INITIALIZER_HE_UNIFORM_OPTIONS ED_INITIALIZER_GLOROT_UNIFORM_OPTIONS
ED_KIND(initializer, he_uniform, ED_INITIALIZER_HE_UNIFORM_OPTIONS);

/* Truncated normal, variance 2 / fan_in. */
#define ED_INITIALIZER_HE_NORMAL_OPTIONS ED_INITIALIZER_GLOROT_UNIFORM_OPTIONS
ED_KIND(initializer, he_normal, ED_INITIALIZER_HE_NORMAL_OPTIONS);

/* Uniform in +-sqrt(3 / fan_in). */
#define ED_INITIALIZER_LECUN_UNIFORM_OPTIONS ED_INITIALIZER_GLOROT_UNIFORM_OPTIONS
ED_KIND(initializer, lecun_uniform, ED_INITIALIZER_LECUN_UNIFORM_OPTIONS);

/* Truncated normal, variance 1 / fan_in. */
#define ED_INITIALIZER_LECUN_NORMAL_OPTIONS ED_INITIALIZER_GLOROT_UNIFORM_OPTIONS
ED_KIND(initializer, lecun_normal, ED_INITIALIZER_LECUN_NORMAL_OPTIONS);

/*
 * An orthogonal matrix times gain: the rows of [rows, columns], or the columns if there are fewer,
 * are orthogonal, each of norm gain. Of higher rank, all axes but the last are the rows. Saxe et
 * al., 2014.
 */
#define ED_INITIALIZER_ORTHOGONAL_OPTIONS(FIELD, T)                                                \
    FIELD(T, FLOAT, gain, 1, ED_FINITE, "factor of the matrix")                                    \
    ED_INITIALIZER_SOURCE(FIELD, T)
ED_KIND(initializer, orthogonal, ED_INITIALIZER_ORTHOGONAL_OPTIONS);

/* The identity matrix times gain; rank 2. */
#define ED_INITIALIZER_IDENTITY_OPTIONS(FIELD, T)                                                  \
    FIELD(T, FLOAT, gain, 1, ED_FINITE, "factor of the matrix")
ED_KIND(initializer, identity, ED_INITIALIZER_IDENTITY_OPTIONS);

#pragma GCC visibility pop
#endif
