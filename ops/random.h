/* Random numbers: Philox 4x32-10 with TensorFlow's streams. ops.h says what holds for all. */
#ifndef EDDY_OPS_RANDOM_H
#define EDDY_OPS_RANDOM_H

#include "ops/op.h"
#include "tensor/tensor.h"

#pragma GCC visibility push(default)

/* A source of random numbers: a counter and a key, which every draw advances. */
typedef struct ed_generator ed_generator;

/* TensorFlow's Generator.from_seed: the same seed gives the same numbers there and here. */
ed_generator *ed_generator_from_seed(uint64_t seed);

/* The state, [counter low, counter high, key], as TensorFlow's checkpoints hold it / setting it. */
void ed_generator_state(const ed_generator *generator, uint64_t state[3]);
bool ed_generator_set_state(ed_generator *generator, const uint64_t state[3]);

/*
 * The process's default source as an object, for a checkpoint to hold: restored, it goes on with
 * the draws that would have come next. As a generator it is the same as none given.
 */
ed_generator *ed_default_generator(void);

/*
 * The seed of this process's default source, which is used where no generator is given: from here
 * on the draws repeat. Without it the first draw takes a seed from the system. Draws are what
 * tf.random.* give after tf.random.set_seed.
 */
void ed_set_seed(int64_t seed);

/* Where the random numbers of a call come from. */
#define ED_GENERATOR_OPTIONS(FIELD, T)                                                             \
    FIELD(T, GENERATOR, generator, NULL, ED_ANY, "of the numbers; default: the process's source")

/* For high: 1 for floats; integers need one. */
#define ED_NOT_GIVEN (-__DBL_MAX__)

/*
 * Uniform numbers, low <= x < high: floats, or integers of int32 and int64.
 */
#define ED_RANDOM_UNIFORM_VALUES(FIELD, T)                                                         \
    FIELD(T, DTYPE, dtype, ED_FLOAT32, ED_ANY, "of the result")                                    \
    FIELD(T, FLOAT, low, 0, ED_FINITE, "smallest value")                                           \
    FIELD(T, FLOAT, high, ED_NOT_GIVEN, ED_FINITE, "above the largest value; default for floats 1")
#define ED_RANDOM_UNIFORM_OPTIONS(FIELD, T)                                                        \
    ED_RANDOM_UNIFORM_VALUES(FIELD, T) ED_GENERATOR_OPTIONS(FIELD, T)
ED_OPTIONS(ed_random_uniform_options, ED_RANDOM_UNIFORM_OPTIONS);
ed_tensor *ed_random_uniform_with(ed_ints shape, const ed_random_uniform_options *options);

/* Normal numbers, floats / normal numbers of which those 2 stddev or more off the mean are drawn
 * again. */
#define ED_RANDOM_NORMAL_VALUES(FIELD, T)                                                          \
    FIELD(T, DTYPE, dtype, ED_FLOAT32, ED_ANY, "of the result")                                    \
    FIELD(T, FLOAT, mean, 0, ED_FINITE, "mean")                                                    \
    FIELD(T, FLOAT, stddev, 1, ED_AT_LEAST(0), "standard deviation")
#define ED_RANDOM_NORMAL_OPTIONS(FIELD, T)                                                         \
    ED_RANDOM_NORMAL_VALUES(FIELD, T) ED_GENERATOR_OPTIONS(FIELD, T)
ED_OPTIONS(ed_random_normal_options, ED_RANDOM_NORMAL_OPTIONS);
ed_tensor *ed_random_normal_with(ed_ints shape, const ed_random_normal_options *options);
ed_tensor *ed_random_truncated_normal_with(ed_ints shape, const ed_random_normal_options *options);

ED_OPTIONS(ed_generator_options, ED_GENERATOR_OPTIONS);

/* x in a random order along its first axis. */
ed_tensor *ed_random_shuffle_with(ed_tensor *x, const ed_generator_options *options);

/* x / (1 - rate) where a uniform number >= rate, else 0; 0 <= rate < 1. The gradient draws the same
 * numbers again and stores no mask. */
ed_tensor *ed_dropout_with(ed_tensor *x, double rate, const ed_generator_options *options);

#pragma GCC visibility pop
#endif
