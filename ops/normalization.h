/* Normalization. ops.h says what holds for all. */
#ifndef EDDY_OPS_NORMALIZATION_H
#define EDDY_OPS_NORMALIZATION_H

#include "ops/op.h"
#include "tensor/tensor.h"

#pragma GCC visibility push(default)

/*
 * (x - mean) / sqrt(variance + epsilon) gamma + beta over all axes but the last, with x [...,
 * channels], gamma and beta [channels]. mean and variance of the batch go to *mean and *variance
 * ([channels]; NULL: not wanted); gradients flow through them too.
 */
ed_tensor *ed_batch_norm(ed_tensor *x, ed_tensor *gamma, ed_tensor *beta, double epsilon,
                         ed_tensor **mean, ed_tensor **variance);

#pragma GCC visibility pop
#endif
