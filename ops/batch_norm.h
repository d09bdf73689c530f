/*
 * Batch normalization: how the ops (batch_norm.c) and the loops (batch_norm.simd.c) share the work.
 * x is seen as [before, channels, after], a mean, a variance, a gamma and a beta for each channel:
 *
 *     rows, after = 1         c0 c1 c2 | c0 c1 c2 | ...       channels side by side
 *     lines                   c0 c0 c0 ... | c1 c1 c1 ...     pixels side by side
 *
 *     y = (x - mean) scale + shift,   scale = gamma r, r = 1 / sqrt(variance + epsilon)
 *
 * The gradient, all sums over a channel being of n elements:
 *
 *     a = sum dy / n,   b = r^2 sum dy (x - mean) / n
 *     dx = gamma r (dy - a - (x - mean) b),   dgamma = r sum dy (x - mean),   dbeta = sum dy
 */
#ifndef EDDY_OPS_BATCH_NORM_H
#define EDDY_OPS_BATCH_NORM_H

#include "ops/execute.h"
#include "ops/ops.h"

/* What x is seen as. */
typedef struct batch_norm_view {
    int64_t before, channels, after;
} batch_norm_view;

static inline batch_norm_view batch_norm_view_of(const ed_tensor *x, int axis)
{
    batch_norm_view v = {1, x->shape[axis], 1};
    for (int i = 0; i < axis; i++) v.before *= x->shape[i];
    for (int i = axis + 1; i < x->rank; i++) v.after *= x->shape[i];
    return v;
}

/* All tensors contiguous, x not empty, the others but y, dy and dx [channels]; the results depend
 * on the shapes alone, not on the number of threads. false without memory. */

/* y, and the mean and variance of the batch. */
bool batch_norm_forward(const batch_norm_view *v, const ed_tensor *x, const ed_tensor *gamma,
                        const ed_tensor *beta, double epsilon, const ed_tensor *y,
                        const ed_tensor *mean, const ed_tensor *variance);

/* y = (x - mean) scale + shift; shift NULL: 0. */
bool batch_norm_apply(const batch_norm_view *v, const ed_tensor *x, const ed_tensor *mean,
                      const ed_tensor *scale, const ed_tensor *shift, const ed_tensor *y);

typedef struct batch_norm_back {
    const ed_tensor *x, *gamma, *mean, *variance, *dy, *dx, *dgamma, *dbeta;
    double epsilon;
} batch_norm_back;
bool batch_norm_backward(const batch_norm_view *v, const batch_norm_back *b);

#endif
