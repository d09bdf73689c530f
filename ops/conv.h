/* Convolution of images [batch, height, width, in] or [batch, in, height, width] with a kernel
 * [kh, kw, in, out] as matrix products. */
#ifndef EDDY_OPS_CONV_H
#define EDDY_OPS_CONV_H

#include "ops/ops.h"
#include "ops/window.h"
#include "tensor/tensor.h"

/* Which operand each tensor of a convolution is, of the op or of one of its gradients; -1: its
 * result. */
typedef struct conv_roles {
    int x, kernel, y;
} conv_roles;

/* The batch functions of conv2d and its gradients, and of depthwise_conv2d's. */
ed_list *conv_batch_of(const ed_batch_call *call, const conv_roles *roles);
ed_list *depthwise_batch_of(const ed_batch_call *call, const conv_roles *roles);

/* Whether the activation of conv2d_bias or depthwise_conv2d_bias, linear or relu, is relu. */
static inline bool conv_is_relu(const char *activation)
{
    return activation[0] == 'r';
}

/* y = act(x * kernel + bias): two of x, kernel and y are given, the third is computed. All are
 * contiguous and not empty, of the same dtype, float32 or float64. */
typedef struct conv_call {
    const window *w;
    bool channels_first; /* of x and y */
    const ed_tensor *x, *kernel, *y;
    const ed_tensor *bias; /* of the forward pass, [out], or NULL */
    bool relu;             /* likewise: act is relu */
} conv_call;

/* Computes y; without channels of x, from the bias alone. false, with an error, without memory. */
bool conv_forward(const conv_call *call);

/* conv2d's infer, kernel and reference, which conv2d_bias has too, with a third operand; the
 * reference knows nothing of that. */
bool conv_infer(ed_call *call);
bool conv_kernel(ed_call *call);
bool conv_reference(const ed_call *call);

/* Computes x: the gradient of the input, y being that of the output. */
bool conv_gradient_input(const conv_call *call);

/* Computes the kernel: its gradient, y being that of the output. */
bool conv_gradient_kernel(const conv_call *call);

/* The gradient of conv2d by its input, which has that shape, as a call that tapes record. */
ed_tensor *conv_transposed(const ed_conv2d_options *o, ed_tensor *dy, ed_tensor *kernel,
                           ed_ints shape);

/* The gradient of conv2d by its kernel, which has that shape, likewise. */
ed_tensor *conv_kernel_gradient(const ed_conv2d_options *o, ed_tensor *x, ed_tensor *dy,
                                ed_ints shape);

/* The gradient of extract_patches by its input, which has that shape, likewise. */
ed_tensor *patches_folded(const ed_extract_patches_options *o, ed_tensor *dy, ed_ints shape);

/*
 * One to three spatial axes from an option: one integer for all, or one for each; not given,
 * `otherwise`. Below 2^30, at least `least`. false with an error kept.
 */
bool spatial_numbers(const ed_call *call, const char *option, ed_ints given, int rank,
                     int64_t otherwise, int64_t least, int64_t *to);

/* x with the axis of its channels, the second, last; and back. x itself if `first` is false. */
ed_tensor *spatial_last(ed_tensor *x, bool first);
ed_tensor *spatial_first(ed_tensor *x, bool first);

#endif
