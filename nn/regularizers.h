/*
 * Regularizers: penalties on weights or outputs that are added to a loss, as in Keras
 * (nn/regularizers/).
 *
 *     ed_layer *dense = ed_layer_dense(10, .kernel_regularizer = ed_regularizer_l2(1e-4));
 *     ed_tensor *loss = ed_add(ed_mean(...), ed_add_n(ed_layer_losses(dense)));
 */
#ifndef EDDY_NN_REGULARIZERS_H
#define EDDY_NN_REGULARIZERS_H

#include "tensor/schema.h"
#include "tensor/tensor.h"

#pragma GCC visibility push(default)

/* A penalty on a tensor. */
typedef struct ed_regularizer ed_regularizer;

/* The penalty, a scalar of the dtype of x, which is float32 or float64. */
ed_tensor *ed_regularize(ed_regularizer *regularizer, ed_tensor *x);

/* l1 sum(|x|). */
#define ED_REGULARIZER_L1_OPTIONS(FIELD, T)                                                        \
    FIELD(T, FLOAT, l1, 0.01, ED_AT_LEAST(0), "factor of the sum of absolute values")
ED_KIND(regularizer, l1, ED_REGULARIZER_L1_OPTIONS, l1);

/* l2 sum(x^2). */
#define ED_REGULARIZER_L2_OPTIONS(FIELD, T)                                                        \
    FIELD(T, FLOAT, l2, 0.01, ED_AT_LEAST(0), "factor of the sum of squares")
ED_KIND(regularizer, l2, ED_REGULARIZER_L2_OPTIONS, l2);

/* l1 sum(|x|) + l2 sum(x^2). */
#define ED_REGULARIZER_L1_L2_OPTIONS(FIELD, T)                                                     \
    FIELD(T, FLOAT, l1, 0, ED_AT_LEAST(0), "factor of the sum of absolute values")                 \
    FIELD(T, FLOAT, l2, 0, ED_AT_LEAST(0), "factor of the sum of squares")
ED_KIND(regularizer, l1_l2, ED_REGULARIZER_L1_L2_OPTIONS, l1, l2);

/*
 * factor times the mean absolute product of two different rows, or columns, of the matrix x, each
 * scaled to norm 1: 0 if they are orthogonal. Of one row alone it is 0. Brock et al., 2017.
 */
#define ED_REGULARIZER_ORTHOGONAL_OPTIONS(FIELD, T)                                                \
    FIELD(T, FLOAT, factor, 0.01, ED_AT_LEAST(0), "factor of the mean")                            \
    FIELD(T, CHOICE, mode, "rows", ED_ONE_OF("rows", "columns"), "what is to be orthogonal")
ED_KIND(regularizer, orthogonal, ED_REGULARIZER_ORTHOGONAL_OPTIONS);

#pragma GCC visibility pop
#endif
