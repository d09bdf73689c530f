/* Convolution of images [batch, height, width, in] with a kernel [kh, kw, in, out] as matrix
 * products. */
#ifndef EDDY_OPS_CONV_H
#define EDDY_OPS_CONV_H

#include "ops/window.h"
#include "tensor/tensor.h"

/* y = x * kernel: two of the tensors are given, the third is computed. All are contiguous and not
 * empty, of the same dtype, float32 or float64. */
typedef struct conv_call {
    const window *w;
    const ed_tensor *x, *kernel, *y;
} conv_call;

/* Computes y. false, with an error, without memory. */
bool conv_forward(const conv_call *call);

/* Computes x: the gradient of the input, y being that of the output. */
bool conv_gradient_input(const conv_call *call);

/* Computes the kernel: its gradient, y being that of the output. */
bool conv_gradient_kernel(const conv_call *call);

#endif
