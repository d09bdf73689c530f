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

/* ---- Softmax (ops/softmax.simd.c): floats ---------------------------------------------------- */

/* e^x / sum e^x along the axis (default -1), and its logarithm, without overflow. Ranks from 1. */
#define ED_SOFTMAX_OPTIONS(FIELD, T) FIELD(T, AXIS, axis, -1, ED_ANY, "along which")
ED_OPTIONS(ed_softmax_options, ED_SOFTMAX_OPTIONS);
ed_tensor *ed_softmax_with(ed_tensor *x, const ed_softmax_options *options);
ed_tensor *ed_log_softmax_with(ed_tensor *x, const ed_softmax_options *options);

#pragma GCC visibility pop
#endif
