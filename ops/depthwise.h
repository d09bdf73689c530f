/* Depthwise convolution of images [batch, height, width, in] with a kernel [kh, kw, in,
 * multiplier]: each channel by itself. */
#ifndef EDDY_OPS_DEPTHWISE_H
#define EDDY_OPS_DEPTHWISE_H

#include "ops/ops.h"
#include "ops/window.h"

/* y [batch, h', w', in * multiplier] = act(x * kernel + bias): two of x, kernel and y are given,
 * the third is computed. All are contiguous, those three not empty, of the same dtype, float32 or
 * float64. */
typedef struct depthwise_call {
    window w;
    int64_t multiplier;
    const ed_tensor *x, *kernel, *y;
    const ed_tensor *bias; /* of the forward pass, or NULL */
    bool relu;             /* likewise: act is relu */
    bool stream;           /* y goes past the caches; set by whoever computes it */
} depthwise_call;

/* Computes y; x, y being the gradient of the output; the kernel, likewise. The number of threads
 * changes no bit. false, with an error, without memory. */
bool depthwise_forward(const depthwise_call *call);
bool depthwise_gradient_input(const depthwise_call *call);
bool depthwise_gradient_kernel(const depthwise_call *call);

/* The same of images [batch, in, height, width], y being [batch, in * multiplier, h', w'], if the
 * windows fit: they are not too large and not too far dilated. */
bool depthwise_planes_fit(const depthwise_call *call);
bool depthwise_planes_forward(const depthwise_call *call);
bool depthwise_planes_gradient_input(const depthwise_call *call);
bool depthwise_planes_gradient_kernel(const depthwise_call *call);

/* depthwise_conv2d's infer, kernel and reference, which depthwise_conv2d_bias has too, with a third
 * operand; the reference knows nothing of that. */
bool depthwise_infer(ed_call *call);
bool depthwise_kernel(ed_call *call);
bool depthwise_reference(const ed_call *call);

/* The gradients of depthwise_conv2d, which have those shapes, as calls that tapes record. */
ed_tensor *depthwise_transposed(const ed_depthwise_conv2d_options *o, ed_tensor *dy,
                                ed_tensor *kernel, ed_ints shape);
ed_tensor *depthwise_kernel_gradient(const ed_depthwise_conv2d_options *o, ed_tensor *x,
                                     ed_tensor *dy, ed_ints shape);

/* Adds up `pieces` kernels of n numbers, one behind the other, pairwise, into the first. */
void depthwise_join(ed_dtype dtype, char *sums, int64_t pieces, int64_t n);

#endif
