/*
 * Normalization of groups: layer_norm, rms_norm, group_norm and instance_norm are one computation.
 * x is seen as [batch, before, groups, channels, after]; each group of each sample has a mean and a
 * variance, over `before`, `channels` and `after`, and each of the groups * channels channels a
 * gamma and a beta:
 *
 *     y = (x - mean) (gamma r) + beta,   r = 1 / sqrt(variance + epsilon)
 *
 * Not centred, the mean is taken to be 0. layer_norm.c has the ops, layer_norm.simd.c the loops.
 *
 * The gradients, all sums over a group being of n elements:
 *
 *     a = sum gamma dy / n (0 if not centred),   b = r^2 sum gamma dy (x - mean) / n
 *     dx = r (gamma dy - a - (x - mean) b),   dgamma = sum r dy (x - mean),   dbeta = sum dy
 */
#ifndef EDDY_OPS_LAYER_NORM_H
#define EDDY_OPS_LAYER_NORM_H

#include "ops/execute.h"

/* What x is seen as. */
typedef struct norm_groups {
    int64_t batch, before, groups, channels, after;
    double epsilon;
    bool centred;
} norm_groups;

/* Elements of a group of one sample; channels with a gamma each. */
static inline int64_t norm_count(const norm_groups *p)
{
    return p->before * p->channels * p->after;
}
static inline int64_t norm_channels(const norm_groups *p)
{
    return p->groups * p->channels;
}

/* All tensors contiguous, x not empty; gamma and beta may be NULL: 1 and 0. The results depend on
 * the shapes alone, not on the number of threads. false without memory. */
bool norm_forward(const norm_groups *p, const ed_tensor *x, const ed_tensor *gamma,
                  const ed_tensor *beta, const ed_tensor *y);
bool norm_backward(const norm_groups *p, const ed_tensor *x, const ed_tensor *dy,
                   const ed_tensor *gamma, const ed_tensor *dx, const ed_tensor *dgamma,
                   const ed_tensor *dbeta);

/* The gradient of one of the four, x being seen as *p says (norm_gradient.c). */
bool norm_gradient_from(const ed_gradient_call *g, const norm_groups *p);

/* Operand i; NULL if it isn't given. */
static inline const ed_tensor *norm_input(const ed_call *call, int i)
{
    return i < call->n_inputs ? call->inputs[i] : NULL;
}

/* For references. Of a group: the index of element i, and its channel's; its mean, and
 * 1 / sqrt(variance + epsilon). */
int64_t norm_plain_at(const norm_groups *p, int64_t sample, int64_t group, int64_t i, int64_t *c);
double norm_plain_statistics(const norm_groups *p, const double *x, int64_t sample, int64_t group,
                             double *mean);

/* An operand of floats, all of one dtype. */
#define NORM_FLOAT(name, ...)                                                                      \
    {                                                                                              \
        name, ED_SET_FLOAT, 'T', __VA_ARGS__                                                       \
    }

#endif
