/* Activations, element by element, and softmax. ops.h says what holds for all. */
#ifndef EDDY_OPS_ACTIVATION_H
#define EDDY_OPS_ACTIVATION_H

#include "ops/op.h"
#include "tensor/tensor.h"

#pragma GCC visibility push(default)

/* ---- Activations (ops/activation.simd.c) ----------------------------------------------------- */

/* max(x, 0) with gradient 0 at 0; min(max(x, 0), 6). NaN stays NaN. Numbers of any arithmetic
 * dtype; gradients for floats. */
ed_tensor *ed_relu(ed_tensor *x);
ed_tensor *ed_relu6(ed_tensor *x);

/* x > 0 ? x : alpha x, floats; alpha's usual value is 0.2. */
ed_tensor *ed_leaky_relu(ed_tensor *x, double alpha);

/* elu: x > 0 ? x : e^x - 1. selu: 1.0507010 (x > 0 ? x : 1.6732632 (e^x - 1)). */
ed_tensor *ed_elu(ed_tensor *x);
ed_tensor *ed_selu(ed_tensor *x);

/* 1 / (1 + e^-x); ln(1 + e^x); x / (1 + |x|); x sigmoid(x). */
ed_tensor *ed_sigmoid(ed_tensor *x);
ed_tensor *ed_softplus(ed_tensor *x);
ed_tensor *ed_softsign(ed_tensor *x);
ed_tensor *ed_silu(ed_tensor *x);

/* ln of the sigmoid, -ln(1 + e^-x), without its underflow. */
ed_tensor *ed_log_sigmoid(ed_tensor *x);

/* x Phi(x) = x (1 + erf(x / sqrt 2)) / 2, and its approximation by tanh. */
ed_tensor *ed_gelu(ed_tensor *x);
ed_tensor *ed_gelu_tanh(ed_tensor *x);

/* min(max(x / 6 + 1/2, 0), 1). */
ed_tensor *ed_hard_sigmoid(ed_tensor *x);

/* ---- As Keras has them (ops/activation_keras.simd.c): floats --------------------------------- */

/* min(x, max_value) where x > threshold, else negative_slope (x - threshold). */
#define ED_BOUNDED_RELU_OPTIONS(FIELD, T)                                                          \
    FIELD(T, FLOAT, max_value, __builtin_inf(), ED_ANY, "of the result")                           \
    FIELD(T, FLOAT, negative_slope, 0, ED_ANY, "for x <= threshold")                               \
    FIELD(T, FLOAT, threshold, 0, ED_ANY, "above which x stays")
ED_OPTIONS(ed_bounded_relu_options, ED_BOUNDED_RELU_OPTIONS);
ed_tensor *ed_bounded_relu_with(ed_tensor *x, const ed_bounded_relu_options *options);

/* x > 0 ? x : alpha x, alpha being learned; it broadcasts with x. */
ed_tensor *ed_prelu(ed_tensor *x, ed_tensor_like *alpha);

/* x > 0 ? x : alpha (e^(x / alpha) - 1). */
#define ED_CELU_OPTIONS(FIELD, T) FIELD(T, FLOAT, alpha, 1, ED_ABOVE(0), "-alpha is the minimum")
ED_OPTIONS(ed_celu_options, ED_CELU_OPTIONS);
ed_tensor *ed_celu_with(ed_tensor *x, const ed_celu_options *options);

/* x tanh(softplus(x)); x hard_sigmoid(x), which is also hard_swish; min(max(x, -1), 1). */
ed_tensor *ed_mish(ed_tensor *x);
ed_tensor *ed_hard_silu(ed_tensor *x);
ed_tensor *ed_hard_tanh(ed_tensor *x);

/* 0 where |x| <= threshold; elsewhere x, and x nearer to 0 by the threshold. */
#define ED_SHRINK_OPTIONS(FIELD, T)                                                                \
    FIELD(T, FLOAT, threshold, 0.5, ED_AT_LEAST(0), "|x| up to which the result is 0")
ED_OPTIONS(ed_shrink_options, ED_SHRINK_OPTIONS);
ed_tensor *ed_hard_shrink_with(ed_tensor *x, const ed_shrink_options *options);
ed_tensor *ed_soft_shrink_with(ed_tensor *x, const ed_shrink_options *options);

/* x - tanh x. */
ed_tensor *ed_tanh_shrink(ed_tensor *x);

/* x > threshold ? x : default_value. */
ed_tensor *ed_threshold(ed_tensor *x, double threshold, double default_value);

/* (x + sqrt(x^2 + b)) / 2. */
#define ED_SQUAREPLUS_OPTIONS(FIELD, T) FIELD(T, FLOAT, b, 4, ED_AT_LEAST(0), "smoothness")
ED_OPTIONS(ed_squareplus_options, ED_SQUAREPLUS_OPTIONS);
ed_tensor *ed_squareplus_with(ed_tensor *x, const ed_squareplus_options *options);

/* 0 up to -1, x from 1 on, (x + 1)^2 / 4 between; its slope: 0, 1, (x + 1) / 2 between. */
ed_tensor *ed_sparse_plus(ed_tensor *x);
ed_tensor *ed_sparse_sigmoid(ed_tensor *x);

/* ---- Softmax (ops/softmax.simd.c): floats ---------------------------------------------------- */

/* e^x / sum e^x along the axis (default -1), and its logarithm, without overflow. Ranks from 1. */
#define ED_SOFTMAX_OPTIONS(FIELD, T) FIELD(T, AXIS, axis, -1, ED_ANY, "along which")
ED_OPTIONS(ed_softmax_options, ED_SOFTMAX_OPTIONS);
ed_tensor *ed_softmax_with(ed_tensor *x, const ed_softmax_options *options);
ed_tensor *ed_log_softmax_with(ed_tensor *x, const ed_softmax_options *options);

/* The nearest point whose elements along the axis are not negative and sum to 1. */
ed_tensor *ed_sparsemax_with(ed_tensor *x, const ed_softmax_options *options);

/* a sigmoid(b) for the halves a and b of x along the axis; relu(x) and relu(-x) joined along it. */
ed_tensor *ed_glu_with(ed_tensor *x, const ed_softmax_options *options);
ed_tensor *ed_crelu_with(ed_tensor *x, const ed_softmax_options *options);

#pragma GCC visibility pop
#endif
