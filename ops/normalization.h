/* Normalization. ops.h says what holds for all. */
#ifndef EDDY_OPS_NORMALIZATION_H
#define EDDY_OPS_NORMALIZATION_H

#include "ops/op.h"
#include "tensor/tensor.h"

#pragma GCC visibility push(default)

/*
 * (x - mean) / sqrt(variance + epsilon) gamma + beta, with gamma and beta [channels] along `axis`
 * of x. mean and variance of the batch, over all other axes, go to *mean and *variance ([channels];
 * NULL: not wanted); gradients flow through them too.
 */
#define ED_BATCH_NORM_OPTIONS(FIELD, T)                                                            \
    FIELD(T, AXIS, axis, -1, ED_ANY, "of the channels")                                            \
    FIELD(T, FLOAT, epsilon, 1e-3, ED_FROM(0, 1e30), "added to the variance")
ED_OPTIONS(ed_batch_norm_options, ED_BATCH_NORM_OPTIONS);
ed_tensor *ed_batch_norm_with(ed_tensor *x, ed_tensor *gamma, ed_tensor *beta, ed_tensor **mean,
                              ed_tensor **variance, const ed_batch_norm_options *options);

/*
 * The same with given statistics, [channels] each, as a trained network computes it. gamma and beta
 * may be NULL: 1 and 0; beta without gamma is an error.
 */
ed_tensor *ed_batch_norm_inference_with(ed_tensor *x, ed_tensor *mean, ed_tensor *variance,
                                        ed_tensor *gamma, ed_tensor *beta,
                                        const ed_batch_norm_options *options);

/*
 * Of each slice along the last axes: layer_norm (x - mean) / sqrt(variance + epsilon) gamma + beta,
 * rms_norm x / sqrt(mean of x^2 + epsilon) gamma. gamma and beta have the shape of those axes and
 * may be NULL: 1 and 0; beta without gamma is an error.
 */
#define ED_LAYER_NORM_OPTIONS(FIELD, T)                                                            \
    FIELD(T, AXES, axis, ED_NO_LIST, ED_ANY, "the last axes of x; default: the last one")          \
    FIELD(T, FLOAT, epsilon, 1e-3, ED_FROM(0, 1e30), "added to the variance")
ED_OPTIONS(ed_layer_norm_options, ED_LAYER_NORM_OPTIONS);
ed_tensor *ed_layer_norm_with(ed_tensor *x, ed_tensor *gamma, ed_tensor *beta,
                              const ed_layer_norm_options *options);

/* Divided by the root mean square: x / sqrt(mean of x^2 + epsilon) gamma. */
#define ED_RMS_NORM_OPTIONS(FIELD, T)                                                              \
    FIELD(T, AXES, axis, ED_NO_LIST, ED_ANY, "the last axes of x; default: the last one")          \
    FIELD(T, FLOAT, epsilon, 1e-6, ED_FROM(0, 1e30), "added to the mean of the squares")
ED_OPTIONS(ed_rms_norm_options, ED_RMS_NORM_OPTIONS);
ed_tensor *ed_rms_norm_with(ed_tensor *x, ed_tensor *gamma, const ed_rms_norm_options *options);

/*
 * x [batch, ...]: the channels along `axis` are cut into groups of adjoining ones, and each group
 * of each sample becomes (x - mean) / sqrt(variance + epsilon) gamma + beta, with gamma and beta
 * [channels], which may be NULL. instance_norm: each channel is a group.
 */
#define ED_INSTANCE_NORM_OPTIONS(FIELD, T)                                                         \
    FIELD(T, AXIS, axis, -1, ED_ANY, "of the channels; not the first one")                         \
    FIELD(T, FLOAT, epsilon, 1e-3, ED_FROM(0, 1e30), "added to the variance")
#define ED_GROUP_NORM_OPTIONS(FIELD, T)                                                            \
    FIELD(T, INT, groups, 32, ED_AT_LEAST(1), "number of groups; divides that of the channels")    \
    ED_INSTANCE_NORM_OPTIONS(FIELD, T)
ED_OPTIONS(ed_group_norm_options, ED_GROUP_NORM_OPTIONS);
ED_OPTIONS(ed_instance_norm_options, ED_INSTANCE_NORM_OPTIONS);
ed_tensor *ed_group_norm_with(ed_tensor *x, ed_tensor *gamma, ed_tensor *beta,
                              const ed_group_norm_options *options);
ed_tensor *ed_instance_norm_with(ed_tensor *x, ed_tensor *gamma, ed_tensor *beta,
                                 const ed_instance_norm_options *options);

/* x / (bias + alpha sum)^beta along the last axis, the sum being of x^2 over the elements at most
 * depth_radius away. */
#define ED_LRN_OPTIONS(FIELD, T)                                                                   \
    FIELD(T, INT, depth_radius, 5, ED_AT_LEAST(0), "elements to each side")                        \
    FIELD(T, FLOAT, bias, 1, ED_FINITE, "added to the sum")                                        \
    FIELD(T, FLOAT, alpha, 1, ED_FINITE, "factor of the sum")                                      \
    FIELD(T, FLOAT, beta, 0.5, ED_FINITE, "exponent")
ED_OPTIONS(ed_lrn_options, ED_LRN_OPTIONS);
ed_tensor *ed_local_response_normalization_with(ed_tensor *x, const ed_lrn_options *options);

#pragma GCC visibility pop
#endif
