/*
 * Distributions whose parameters are tensors: what the ops with a seed (distributions.c) and those
 * with a generator (random_distributions.c) share.
 */
#ifndef EDDY_OPS_DISTRIBUTIONS_H
#define EDDY_OPS_DISTRIBUTIONS_H

#include "ops/kernels/laws.h"
#include "ops/ops.h"
#include "ops/random_attrs.h"

/* Sample k of a law with these parameters. */
typedef double law(const philox *p, int64_t k, const double *parameters);

/* What a parameter must be. */
typedef struct range_of {
    bool above_low;
    double low, high;
    const char *text;
} range_of;

/* What an op's kernel needs to know: its parameters come first; behind them the seed, if it has
 * one. `extra` of the definition. */
typedef struct distribution {
    law *sample;
    laws_many *many[ISA_COUNT]; /* the same for many samples, of each instruction set */
    bool counts;                /* else `many` is right for float32 only */
    void (*held)(ed_dtype dtype, int n, double *values); /* into its range */
    int n;
    range_of ranges[4];
} distribution;

extern const distribution distribution_gamma, distribution_exponential, distribution_poisson,
    distribution_bernoulli, distribution_binomial, distribution_truncated;

/* Attributes of ops with a generator, which begin as those of ops with a seed. */
#define GAMMA_ATTRS(FIELD, T) ED_STATELESS_GAMMA_OPTIONS(FIELD, T) DRAW_ATTR(FIELD, T)
#define COUNT_ATTRS(FIELD, T) ED_STATELESS_COUNT_OPTIONS(FIELD, T) DRAW_ATTR(FIELD, T)
ED_OPTIONS(gamma_attrs, GAMMA_ATTRS);
ED_OPTIONS(count_attrs, COUNT_ATTRS);

/* The shape to which the parameters broadcast, the plan of a call: the output's shape ends with it.
 * size: 0 if the output is empty. */
typedef struct distribution_batch {
    int rank;
    int64_t shape[ED_MAX_RANK];
    int64_t size;
} distribution_batch;

/* One output of the first parameter's dtype / of the option's. */
bool distribution_infer(ed_call *call);
bool distribution_infer_counts(ed_call *call);

bool distribution_kernel(ed_call *call);

/* Fails, in the name of the call, unless each parameter is in its range. */
bool distribution_check(const ed_call *call);

/* What a parameter is for element i of the batch. */
double distribution_parameter(const ed_tensor *x, const distribution_batch *b, int64_t i);

/* By how many elements TensorFlow's generator moves on for binomial numbers: 50 for each of them,
 * and 150 for each set of parameters. */
int64_t distribution_binomial_draws(const ed_call *call);

bool distribution_reference(const ed_call *call);

/* Of samples by their parameter, at the same probability: by random_gamma_slope, -y / rate. */
bool distribution_gamma_gradient(const ed_gradient_call *g);
bool distribution_exponential_gradient(const ed_gradient_call *g);

#endif
