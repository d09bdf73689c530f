/* Linear algebra. ops.h says what holds for all. */
#ifndef EDDY_OPS_LINALG_H
#define EDDY_OPS_LINALG_H

#include "ops/op.h"
#include "tensor/tensor.h"

#pragma GCC visibility push(default)

/*
 * y[..., i, j] = sum over k of a[..., i, k] b[..., k, j]; float32, float64. Ranks of at least 2;
 * leading dimensions broadcast. With transpose_a or transpose_b the last two dimensions of that
 * operand change places first. Views of any strides go without a copy where the product can read
 * them. k = 0 gives zeros.
 */
#define ED_MATMUL_OPTIONS(FIELD, T)                                                                \
    FIELD(T, BOOL, transpose_a, false, ED_ANY, "swap the last two axes of a")                      \
    FIELD(T, BOOL, transpose_b, false, ED_ANY, "swap the last two axes of b")
ED_OPTIONS(ed_matmul_options, ED_MATMUL_OPTIONS);
ed_tensor *ed_matmul_with(ed_tensor *a, ed_tensor *b, const ed_matmul_options *options);

/*
 * activation(x w + bias): x [..., in], w [in, out], bias [out] or NULL, activation "" or "relu"
 * (NULL: none). One pass; what a dense layer computes.
 */
ed_tensor *ed_linear(ed_tensor *x, ed_tensor *w, ed_tensor *bias, const char *activation);

/* x + bias along the last axis: x [..., n], bias [n]. */
ed_tensor *ed_bias_add(ed_tensor *x, ed_tensor *bias);

/* x / max(its Euclidean norm along the axes, sqrt(epsilon)). A slice of zeros stays zeros, with the
 * gradient dy / sqrt(epsilon). */
#define ED_L2_NORMALIZE_OPTIONS(FIELD, T)                                                          \
    FIELD(T, AXES, axis, ED_NO_LIST, ED_ANY, "along which; default: all")                          \
    FIELD(T, FLOAT, epsilon, 1e-12, ED_AT_LEAST(0), "of the squared norm at least")
ED_OPTIONS(ed_l2_normalize_options, ED_L2_NORMALIZE_OPTIONS);
ed_tensor *ed_l2_normalize_with(ed_tensor *x, const ed_l2_normalize_options *options);

#pragma GCC visibility pop
#endif
