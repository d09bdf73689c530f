/* Convolution and pooling. ops.h says what holds for all. */
#ifndef EDDY_OPS_CONVOLUTION_H
#define EDDY_OPS_CONVOLUTION_H

#include "ops/op.h"
#include "tensor/tensor.h"

#pragma GCC visibility push(default)

/*
 * x [batch, height, width, in], kernel [kh, kw, in, out] -> [batch, h', w', out]. padding "VALID"
 * (h' = ceil((h - (kh-1) dilation) / stride), 0 where the window is larger than the image) or
 * "SAME" (h' = ceil(h / stride), zeros around, one more after than before if odd).
 */
#define ED_CONV2D_OPTIONS(FIELD, T)                                                                \
    FIELD(T, INTS, strides, ED_NO_LIST, ED_ANY, "[height, width], default 1, 1")                   \
    FIELD(T, INTS, dilations, ED_NO_LIST, ED_ANY, "[height, width], default 1, 1")                 \
    FIELD(T, CHOICE, padding, "VALID", ED_ONE_OF("VALID", "SAME"),                                 \
          "VALID: none, SAME: zeros around")
ED_OPTIONS(ed_conv2d_options, ED_CONV2D_OPTIONS);
ed_tensor *ed_conv2d_with(ed_tensor *x, ed_tensor *kernel, const ed_conv2d_options *options);

/*
 * Largest / mean of the windows of x [batch, height, width, channels]. SAME: cells outside do not
 * count. max_pool2d: the first of equals in row order gets the gradient; a NaN in a window is its
 * maximum.
 */
#define ED_POOL2D_OPTIONS(FIELD, T)                                                                \
    FIELD(T, INTS, window, ED_NO_LIST, ED_ANY, "[height, width], default 2, 2")                    \
    FIELD(T, INTS, strides, ED_NO_LIST, ED_ANY, "[height, width]; default: the window")            \
    FIELD(T, CHOICE, padding, "VALID", ED_ONE_OF("VALID", "SAME"),                                 \
          "VALID: none, SAME: cells around that do not count")
ED_OPTIONS(ed_pool2d_options, ED_POOL2D_OPTIONS);
ed_tensor *ed_max_pool2d_with(ed_tensor *x, const ed_pool2d_options *options);
ed_tensor *ed_avg_pool2d_with(ed_tensor *x, const ed_pool2d_options *options);

#pragma GCC visibility pop
#endif
