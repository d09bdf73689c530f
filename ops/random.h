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

/*
 * ---- Without a state (ops/stateless.c, ops/distributions.c) ------------------------------------
 *
 * Numbers that depend on the operands alone: the same seed, int32 or int64 [2], gives the same
 * numbers, those of TensorFlow's tf.random.stateless_*. No gradient but where the text says so.
 */

/* As ed_random_uniform. Integers from the smallest number of the dtype to one beyond the largest
 * are all bits of the stream. */
ED_OPTIONS(ed_stateless_uniform_options, ED_RANDOM_UNIFORM_VALUES);
/* The options of ed_stateless_uniform: those of ed_random_uniform without a generator. */
#define ED_STATELESS_UNIFORM_OPTIONS ED_RANDOM_UNIFORM_VALUES
ed_tensor *ed_stateless_uniform_with(ed_tensor *seed, ed_ints shape,
                                     const ed_stateless_uniform_options *options);

/* As ed_random_normal and ed_random_truncated_normal. */
ED_OPTIONS(ed_stateless_normal_options, ED_RANDOM_NORMAL_VALUES);
/* The options of ed_stateless_normal and ed_stateless_truncated_normal. */
#define ED_STATELESS_NORMAL_OPTIONS ED_RANDOM_NORMAL_VALUES
ed_tensor *ed_stateless_normal_with(ed_tensor *seed, ed_ints shape,
                                    const ed_stateless_normal_options *options);
ed_tensor *ed_stateless_truncated_normal_with(ed_tensor *seed, ed_ints shape,
                                              const ed_stateless_normal_options *options);

/* x in a random order along its first axis. Its gradient exists. */
ed_tensor *ed_stateless_shuffle(ed_tensor *x, ed_tensor *seed);

/*
 * Where each index, 0..max_index, stands in a random order of those numbers, which takes no memory;
 * max_index has the dtype of index, int32 or int64, and both broadcast. The numbers are those of
 * tf.random.experimental.index_shuffle.
 */
ed_tensor *ed_index_shuffle(ed_tensor *index, ed_tensor *seed, ed_tensor *max_index);

/* num new seeds, [num, 2], of the seed's dtype / a new seed from a seed and a number of rank 0,
 * int32 or int64, of whose dtype it is. */
ed_tensor *ed_stateless_split(ed_tensor *seed, int64_t num);
ed_tensor *ed_stateless_fold_in(ed_tensor *seed, ed_tensor *data);

/*
 * Classes, [batch, num_samples], drawn from logits [batch, classes]: class i with a probability
 * proportional to e^logit; a logit that is not finite is never drawn. TensorFlow's numbers for
 * batches that it does not cut among threads.
 */
#define ED_STATELESS_CATEGORICAL_OPTIONS(FIELD, T)                                                 \
    FIELD(T, DTYPE, dtype, ED_INT64, ED_ANY, "of the result: int32 or int64")
ED_OPTIONS(ed_stateless_categorical_options, ED_STATELESS_CATEGORICAL_OPTIONS);
ed_tensor *ed_stateless_categorical_with(ed_tensor *logits, ed_tensor *seed, int64_t num_samples,
                                         const ed_stateless_categorical_options *options);

/*
 * Numbers of distributions whose parameters are tensors: the shape ends with the shape to which
 * they broadcast, and is that one by default. Gamma of concentration alpha > 0 and rate 1 (divide
 * by another one), of alpha's dtype; its gradient by alpha is that of the sample of the same
 * probability. Poisson of the mean lam >= 0; binomial of counts >= 0 trials, each of which succeeds
 * with probability probs, 0..1. Parameters outside are errors.
 */
#define ED_STATELESS_GAMMA_OPTIONS(FIELD, T)                                                       \
    FIELD(T, INTS, shape, ED_NO_LIST, ED_ANY, "of the result; default: the parameters'")
#define ED_STATELESS_COUNT_OPTIONS(FIELD, T)                                                       \
    ED_STATELESS_GAMMA_OPTIONS(FIELD, T)                                                           \
    FIELD(T, DTYPE, dtype, ED_INT32, ED_ANY, "of the result: a float, int32 or int64")
ED_OPTIONS(ed_stateless_gamma_options, ED_STATELESS_GAMMA_OPTIONS);
ED_OPTIONS(ed_stateless_count_options, ED_STATELESS_COUNT_OPTIONS);
ed_tensor *ed_stateless_gamma_with(ed_tensor *alpha, ed_tensor *seed,
                                   const ed_stateless_gamma_options *options);
ed_tensor *ed_stateless_poisson_with(ed_tensor *lam, ed_tensor *seed,
                                     const ed_stateless_count_options *options);
ed_tensor *ed_stateless_binomial_with(ed_tensor *counts, ed_tensor *probs, ed_tensor *seed,
                                      const ed_stateless_count_options *options);

/*
 * Normal numbers of these means and stddevs between minvals and maxvals, of which one may be
 * infinite; all of one float dtype, and the shape as above. They are drawn by rejection from one
 * stream, set of parameters by set: the numbers of tf.random's function of the same name where it
 * runs on one thread. Its threads, if many, begin at places of their own.
 */
ed_tensor *ed_stateless_parameterized_truncated_normal_with(
    ed_tensor_like *means, ed_tensor_like *stddevs, ed_tensor_like *minvals,
    ed_tensor_like *maxvals, ed_tensor *seed, const ed_stateless_gamma_options *options);

/*
 * ---- Distributions with a generator (ops/random_distributions.c) -------------------------------
 *
 * The same distributions with numbers from a generator, as ed_random_uniform takes them; from the
 * process's source those of tf.random.gamma, tf.random.poisson and tf.random.categorical, and from
 * another generator the binomial ones of tf.random.Generator. And exponential numbers of a rate >
 * 0, which have a gradient as those of gamma have, and Bernoulli's, 1 with probability probs, 0..1,
 * else 0.
 */
/* Of ed_random_gamma and ed_random_exponential. */
#define ED_RANDOM_GAMMA_OPTIONS(FIELD, T)                                                          \
    ED_STATELESS_GAMMA_OPTIONS(FIELD, T) ED_GENERATOR_OPTIONS(FIELD, T)
/* Of ed_random_poisson, ed_random_bernoulli and ed_random_binomial. */
#define ED_RANDOM_COUNT_OPTIONS(FIELD, T)                                                          \
    ED_STATELESS_COUNT_OPTIONS(FIELD, T) ED_GENERATOR_OPTIONS(FIELD, T)
/* Of ed_random_categorical. */
#define ED_RANDOM_CATEGORICAL_OPTIONS(FIELD, T)                                                    \
    ED_STATELESS_CATEGORICAL_OPTIONS(FIELD, T) ED_GENERATOR_OPTIONS(FIELD, T)
ED_OPTIONS(ed_random_gamma_options, ED_RANDOM_GAMMA_OPTIONS);
ED_OPTIONS(ed_random_count_options, ED_RANDOM_COUNT_OPTIONS);
ED_OPTIONS(ed_random_categorical_options, ED_RANDOM_CATEGORICAL_OPTIONS);
ed_tensor *ed_random_gamma_with(ed_tensor *alpha, const ed_random_gamma_options *options);
ed_tensor *ed_random_exponential_with(ed_tensor *rate, const ed_random_gamma_options *options);
ed_tensor *ed_random_poisson_with(ed_tensor *lam, const ed_random_count_options *options);
ed_tensor *ed_random_bernoulli_with(ed_tensor *probs, const ed_random_count_options *options);
ed_tensor *ed_random_binomial_with(ed_tensor *counts, ed_tensor *probs,
                                   const ed_random_count_options *options);
ed_tensor *ed_random_categorical_with(ed_tensor *logits, int64_t num_samples,
                                      const ed_random_categorical_options *options);

/* 0 ... n-1 in a random order, int64. */
ed_tensor *ed_random_permutation_with(int64_t n, const ed_generator_options *options);

/*
 * Classes, int64 [num_sampled], of 0..range_max-1, and how often each true class, [batch,
 * num_true], and each of the sampled ones is expected among them (float32): what
 * ed_sampled_softmax_loss and ed_nce_loss take. All classes are equally probable, or class c with
 * log((c + 2) / (c + 1)) / log(range_max + 1), for classes in the order of their frequency. unique:
 * no class comes twice.
 */
#define ED_CANDIDATE_SAMPLER_OPTIONS(FIELD, T)                                                     \
    FIELD(T, BOOL, unique, true, ED_ANY, "no class comes twice")                                   \
    ED_GENERATOR_OPTIONS(FIELD, T)
ED_OPTIONS(ed_candidate_sampler_options, ED_CANDIDATE_SAMPLER_OPTIONS);
ed_tensor *ed_uniform_candidate_sampler_with(ed_tensor *true_classes, int64_t num_sampled,
                                             int64_t range_max, ed_tensor **true_expected_count,
                                             ed_tensor **sampled_expected_count,
                                             const ed_candidate_sampler_options *options);
ed_tensor *ed_log_uniform_candidate_sampler_with(ed_tensor *true_classes, int64_t num_sampled,
                                                 int64_t range_max, ed_tensor **true_expected_count,
                                                 ed_tensor **sampled_expected_count,
                                                 const ed_candidate_sampler_options *options);

/*
 * The same with weights: class num_reserved_ids + i is drawn with a probability proportional to
 * unigrams[i] to the power of distortion, and the first num_reserved_ids classes never are.
 * unigrams [classes - num_reserved_ids] are floats, finite, >= 0 and not all 0.
 */
#define ED_UNIGRAM_SAMPLER_OPTIONS(FIELD, T)                                                       \
    FIELD(T, FLOAT, distortion, 1, ED_FINITE, "the power to which each weight is taken")           \
    FIELD(T, INT, num_reserved_ids, 0, ED_AT_LEAST(0), "first classes, which are never drawn")     \
    ED_CANDIDATE_SAMPLER_OPTIONS(FIELD, T)
ED_OPTIONS(ed_unigram_sampler_options, ED_UNIGRAM_SAMPLER_OPTIONS);
ed_tensor *ed_fixed_unigram_candidate_sampler_with(ed_tensor *true_classes, int64_t num_sampled,
                                                   ed_tensor *unigrams,
                                                   ed_tensor **true_expected_count,
                                                   ed_tensor **sampled_expected_count,
                                                   const ed_unigram_sampler_options *options);

/* The same with weights that are learned: counts, a variable [classes] of floats, which holds 1 for
 * each class at first. After the draw each true class adds 1 to its own. */
ed_tensor *ed_learned_unigram_candidate_sampler_with(ed_tensor *true_classes, int64_t num_sampled,
                                                     ed_tensor *counts,
                                                     ed_tensor **true_expected_count,
                                                     ed_tensor **sampled_expected_count,
                                                     const ed_candidate_sampler_options *options);

/* Without a draw: all classes from 0 to num_sampled-1, each expected once. */
ed_tensor *ed_all_candidate_sampler(ed_tensor *true_classes, int64_t num_sampled,
                                    ed_tensor **true_expected_count,
                                    ed_tensor **sampled_expected_count);

/*
 * Slices of x along its first axis, chosen at random: shape + x.shape[1:]. weights, [x.shape[0]]
 * and >= 0, are to what each slice's probability is proportional; NULL: all are alike. Without
 * replace none is chosen twice.
 */
#define ED_RANDOM_CHOICE_OPTIONS(FIELD, T)                                                         \
    FIELD(T, BOOL, replace, true, ED_ANY, "a slice may be chosen again")                           \
    ED_GENERATOR_OPTIONS(FIELD, T)
ED_OPTIONS(ed_random_choice_options, ED_RANDOM_CHOICE_OPTIONS);
ed_tensor *ed_random_choice_with(ed_tensor *x, ed_tensor *weights, ed_ints shape,
                                 const ed_random_choice_options *options);

#pragma GCC visibility pop
#endif
