/*
 * Samples of distributions, a vector of them at a time, for ops/distributions.c, which says one by
 * one what a sample is, in float64 and with the functions of the C library. Here logarithms, powers
 * and angles are approximations with errors below 1e-14. What they decide, a comparison or the
 * float32 to which a number is rounded, they decide alike, unless it hangs on less than 1e-11: such
 * samples, and the few that want many numbers, are left to the caller. So all bits are the C
 * library's, whatever the instruction set.
 *
 * Samples k to k + n - 1 of a call that begins at the state, n <= LAWS_MOST. Each has parameters of
 * its own, which are in their ranges; their arrays, and y, have LAWS_MOST elements, and those
 * behind the n-th hold numbers in the ranges up to a multiple of LAWS_UNIT. The number of samples
 * that are left is returned, which ones are in `left`; their y mean nothing.
 */
#ifndef EDDY_OPS_KERNELS_LAWS_H
#define EDDY_OPS_KERNELS_LAWS_H

#include "ops/kernels/isa.h"
#include "ops/kernels/philox.h"

enum { LAWS_MOST = 256, LAWS_UNIT = 8 };

/* How many steps of the counter a sample has / one of a binomial distribution with a mean below
 * LAWS_FEW. */
enum { LAWS_STEPS = 256, LAWS_FEW_STEPS = 42, LAWS_FEW = 10 };

typedef int laws_many(const philox *p, int64_t k, int n, const double *const *parameters, double *y,
                      int *left);

/* In float64, but right only when rounded to float32. */
ISA_DECLARE(int, laws_gamma, const philox *p, int64_t k, int n, const double *const *parameters,
            double *y, int *left);
ISA_DECLARE(int, laws_exponential, const philox *p, int64_t k, int n,
            const double *const *parameters, double *y, int *left);

/* Counts. */
ISA_DECLARE(int, laws_poisson, const philox *p, int64_t k, int n, const double *const *parameters,
            double *y, int *left);
ISA_DECLARE(int, laws_bernoulli, const philox *p, int64_t k, int n, const double *const *parameters,
            double *y, int *left);
ISA_DECLARE(int, laws_binomial, const philox *p, int64_t k, int n, const double *const *parameters,
            double *y, int *left);

#endif
