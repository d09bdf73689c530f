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

enum { LAWS_MOST = 128, LAWS_UNIT = 8 };

/* How many steps of the counter a sample has / one of a binomial distribution with a mean below
 * LAWS_FEW. */
enum { LAWS_STEPS = 256, LAWS_FEW_STEPS = 42, LAWS_FEW = 10 };

/* What Stirling's formula lacks of log k!, k up to 9. */
extern const double laws_stirling[10];

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

/*
 * Classes: the sums of e^(logit - largest) up to each of n classes, of float64 logits (wide) or
 * float32; the last sum, 0 if no logit is finite. One that is not counts as e^-inf. `sums` has room
 * for a multiple of LAWS_UNIT. Each sum differs from what adding up one by one gives by no more
 * than LAWS_SUM_SLACK(n) of the last.
 */
#define LAWS_SUM_SLACK(n) (1e-13 + 1.5e-16 * (double)(n))
ISA_DECLARE(double, laws_classes, bool wide, int64_t n, const void *logits, double *sums);

#endif
