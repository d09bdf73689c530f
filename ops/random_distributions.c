/*
 * Samples of distributions from a generator; permutations and choices, which are made of them.
 */
#include "ops/distributions.h"
#include "ops/execute.h"
#include <math.h>

/* ---- Distributions --------------------------------------------------------------------------- */

#define DRAWN(low, high, key)                                                                      \
    {                                                                                              \
        .drawn = true, .state = { low, high, key }                                                 \
    }
#define GAMMA(...) .attrs = ED_ATTRS(GAMMA_ATTRS, gamma_attrs, .draw = DRAWN(1, 2, 3), __VA_ARGS__)
#define COUNT(...) .attrs = ED_ATTRS(COUNT_ATTRS, count_attrs, .draw = DRAWN(1, 2, 3), __VA_ARGS__)

/* An op of one parameter and its public function. */
#define RANDOM(symbol, of, parameter, low, high, LIST, T, INFER, SAMPLE, OPTIONS, options_type,    \
               VALUES, text, ...)                                                                  \
    ED_OP(symbol) = {.name = #symbol,                                                              \
                     .doc = text,                                                                  \
                     .operands = {{#parameter, ED_SET_FLOAT, 'T', .saved = true}},                 \
                     .results = ED_RESULTS({"y", .saved = true}),                                  \
                     ED_OP_ATTRS(LIST, T),                                                         \
                     .infer = INFER,                                                               \
                     .kernel = distribution_kernel,                                                \
                     __VA_ARGS__,                                                                  \
                     .reference = distribution_reference,                                          \
                     .extra = &of,                                                                 \
                     .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(low, high, 3, 4)}, SAMPLE()},  \
                                           {.inputs = {ED_SAMPLE_IN(low, high, 3)},                \
                                            SAMPLE(.shape = ED_SAMPLE_INTS(4, 2, 3))})};           \
    ed_tensor *ed_##symbol##_with(ed_tensor *parameter, const options_type *options)               \
    {                                                                                              \
        options = OPTIONS_OR_DEFAULTS(OPTIONS, options);                                           \
        return CALL_OP(symbol, ED_OPTIONS_FROM(VALUES, options, T, .draw = {options->generator}),  \
                       parameter);                                                                 \
    }
#define RANDOM_GAMMA(symbol, of, parameter, low, high, text, ...)                                  \
    RANDOM(symbol, of, parameter, low, high, GAMMA_ATTRS, gamma_attrs, distribution_infer, GAMMA,  \
           ED_RANDOM_GAMMA_OPTIONS, ed_random_gamma_options, ED_STATELESS_GAMMA_OPTIONS, text,     \
           __VA_ARGS__)
#define RANDOM_COUNT(symbol, of, parameter, low, high, text)                                       \
    RANDOM(symbol, of, parameter, low, high, COUNT_ATTRS, count_attrs, distribution_infer_counts,  \
           COUNT, ED_RANDOM_COUNT_OPTIONS, ed_random_count_options, ED_STATELESS_COUNT_OPTIONS,    \
           text, .flags = ED_OP_CONTIGUOUS, .no_gradient = "its numbers are counts")

RANDOM_GAMMA(random_gamma, distribution_gamma, alpha, 0.3, 5,
             "numbers of the gamma distribution with concentration alpha and rate 1",
             .flags = ED_OP_CONTIGUOUS | ED_OP_LAW_GRADIENT,
             .gradient = distribution_gamma_gradient)
RANDOM_GAMMA(random_exponential, distribution_exponential, rate, 0.3, 5,
             "numbers of the exponential distribution of a rate", .flags = ED_OP_CONTIGUOUS,
             .gradient = distribution_exponential_gradient)
RANDOM_COUNT(random_poisson, distribution_poisson, lam, 0, 20,
             "numbers of the Poisson distribution with mean lam")
RANDOM_COUNT(random_bernoulli, distribution_bernoulli, probs, 0, 1,
             "1 with these probabilities, else 0")

ED_OP(random_binomial) = {
    .name = "random_binomial",
    .doc = "successes of so many trials with these probabilities",
    .operands = {{"counts", ED_SET_FLOAT, 'T'}, {"probs", ED_SET_FLOAT, 'T'}},
    .flags = ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(COUNT_ATTRS, count_attrs),
    .infer = distribution_infer_counts,
    .kernel = distribution_kernel,
    .no_gradient = "its numbers are counts",
    .draws = distribution_binomial_draws,
    .reference = distribution_reference,
    .extra = &distribution_binomial,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 60, 3, 4), ED_SAMPLE_IN(0, 1, 4)}, COUNT()},
                          {.inputs = {ED_SAMPLE_IN(0, 60, 3, 1), ED_SAMPLE_IN(0, 1, 4)},
                           COUNT(.shape = ED_SAMPLE_INTS(5, 3, 4), .dtype = ED_INT64)}),
};

ed_tensor *ed_random_binomial_with(ed_tensor *counts, ed_tensor *probs,
                                   const ed_random_count_options *options)
{
    options = OPTIONS_OR_DEFAULTS(ED_RANDOM_COUNT_OPTIONS, options);
    return CALL_OP(random_binomial,
                   ED_OPTIONS_FROM(ED_STATELESS_COUNT_OPTIONS, options, count_attrs,
                                   .draw = {options->generator}),
                   counts, probs);
}

/* ---- Permutations and choices ---------------------------------------------------------------- */

ed_tensor *ed_random_permutation_with(int64_t n, const ed_generator_options *options)
{
    options = OPTIONS_OR_DEFAULTS(ED_GENERATOR_OPTIONS, options);
    if (n < 0)
        return ed_fail(ED_INVALID_ARGUMENT, "random_permutation: n must be >= 0, got %lld",
                       (long long)n);
    return ed_call_op(
        &ed_op_random_permutation, NULL, 0,
        ED_ATTRS(PERMUTATION_ATTRS, permutation_attrs, .count = n, .draw = {options->generator}));
}

/* The weights [n] in float64, checked; *positive: how many are not 0. NULL with an error. */
static ed_tensor *choice_weights(ed_tensor *weights, int64_t n, int64_t *positive)
{
    const ed_tensor *given = tensor_read(weights);
    *positive = 0;
    if (!ed_dtype_is_float(given->dtype) || given->rank != 1 || given->shape[0] != n)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "random_choice: weights must be floats [%lld], one for each slice of x; "
                       "got %s",
                       (long long)n, text_of_tensor(given).s);
    ed_tensor *w = scope_give(tensor_contiguous(ed_cast(weights, ED_FLOAT64)));
    for (int64_t i = 0; w && i < n; i++) {
        const double v = ((const double *)w->data)[i];
        if (!(v >= 0 && v < INFINITY))
            return ed_fail(ED_INVALID_ARGUMENT,
                           "random_choice: weights[%lld] is %g; it must be >= 0 and finite",
                           (long long)i, v);
        *positive += v > 0;
    }
    return w;
}

/* The numbers of `count` slices of n, int64; `left`: how many slices can be chosen. */
static ed_tensor *choose(int64_t n, int64_t count, ed_tensor *w, const ed_random_choice_options *o)
{
    if (!w && o->replace)
        return ed_random_uniform(ED_INTS(count), .dtype = ED_INT64, .high = (double)n,
                                 .generator = o->generator);
    if (!w)
        return ed_slice(ed_random_permutation(n, .generator = o->generator), .end = ED_INTS(count));
    if (o->replace)
        return ed_reshape(ed_random_categorical(ed_reshape(ed_log(w), ED_INTS(1, n)), count,
                                                .generator = o->generator),
                          ED_INTS(count));
    /* The first of events at the rates of the weights. */
    ed_tensor *unit = ed_random_uniform(ED_INTS(n), .dtype = ED_FLOAT64, .generator = o->generator);
    ed_tensor *times = ed_div(ed_neg(ed_log1p(ed_neg(unit))), w);
    times = ed_where(ed_equal(w, 0), INFINITY, times);
    return ed_slice(ed_argsort(times), .end = ED_INTS(count));
}

ed_tensor *ed_random_choice_with(ed_tensor *x, ed_tensor *weights, ed_ints shape,
                                 const ed_random_choice_options *options)
{
    int64_t all[2 * ED_MAX_RANK], count = 1, choices;
    ED_SCOPE;
    options = OPTIONS_OR_DEFAULTS(ED_RANDOM_CHOICE_OPTIONS, options);
    if (!x || ed_rank(x) == 0)
        return ed_fail(ED_INVALID_ARGUMENT, "random_choice: x must have rank >= 1, got %s",
                       x ? text_of_tensor(tensor_read(x)).s : "NULL");
    const int most = ED_MAX_RANK - ed_rank(x) + 1;
    if (!shape.values) return ed_fail(ED_INVALID_ARGUMENT, "random_choice: shape is required");
    if (shape.count < 0 || shape.count > most)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "random_choice: shape must have 0 to %d entries with x %s, got %lld", most,
                       text_of_tensor(tensor_read(x)).s, (long long)shape.count);
    for (int64_t d = 0; d < shape.count; d++)
        if (shape.values[d] < 0 || __builtin_mul_overflow(count, shape.values[d], &count))
            return ed_fail(ED_INVALID_ARGUMENT, "random_choice: shape is %s",
                           text_of_ints(shape.values, shape.count).s);
    const int64_t n = choices = ed_dim(x, 0);
    ed_tensor *w = weights ? choice_weights(weights, n, &choices) : NULL;
    if (weights && !w) return NULL;
    if (count && (choices == 0 || (!options->replace && count > choices)))
        return ed_fail(ED_INVALID_ARGUMENT,
                       "random_choice: %lld slices of x %s with weights that are not 0: can't "
                       "choose %lld%s",
                       (long long)choices, text_of_tensor(tensor_read(x)).s, (long long)count,
                       options->replace ? "" : " without replacement");
    for (int64_t d = 0; d < shape.count; d++) all[d] = shape.values[d];
    for (int d = 1; d < ed_rank(x); d++) all[shape.count + d - 1] = ed_dim(x, d);
    ed_tensor *numbers =
        count ? choose(n, count, w, options) : ed_zeros(ED_INTS(0), .dtype = ED_INT64);
    return ed_keep(
        ed_reshape(ed_gather(x, numbers), ((ed_ints){all, shape.count + ed_rank(x) - 1})));
}
