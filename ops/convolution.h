/* Convolution, pooling, patches. ops.h says what holds for all. */
#ifndef EDDY_OPS_CONVOLUTION_H
#define EDDY_OPS_CONVOLUTION_H

#include "ops/op.h"
#include "tensor/tensor.h"

#pragma GCC visibility push(default)

/*
 * x [batch, height, width, in], kernel [kh, kw, in / groups, out] -> [batch, h', w', out]; 1d and
 * 3d likewise. With data_format "NCHW" x and the result are [batch, channels, height, width]; the
 * kernel's shape stays. Group g of the outputs sees group g of the inputs alone. Padding:
 *
 *     VALID     none: h' = ceil((h - (kh - 1) dilation) / stride), 0 where the window is larger
 *               than the image
 *     SAME      h' = ceil(h / stride), zeros around, one more after than before if odd
 *     EXPLICIT  explicit_paddings zeros before and after each axis
 *
 * A kernel of 3x3 with 16 channels or more on both sides, without strides and groups, is multiplied
 * by tiles of 2x2 results (Winograd's F(2x2, 3x3)), as far apart as its dilation says, and so are
 * its gradients. An error is then at most (4 + sqrt(in) / 4) 2^-24, for float64 2^-53, of the sum
 * over channels of (the sum of |x| over the tile's 4x4 cells) (the sum of |kernel| over its taps);
 * small integers stay exact, inf and NaN stay where they are. EDDY_WINOGRAD=0 in the environment
 * turns it off.
 */
#define ED_WINDOW_OPTIONS(FIELD, T)                                                                \
    FIELD(T, INTS, strides, ED_NO_LIST, ED_ANY,                                                    \
          "one for each spatial axis, or one for all; default 1")                                  \
    FIELD(T, INTS, dilations, ED_NO_LIST, ED_ANY,                                                  \
          "one for each spatial axis, or one for all; default 1")                                  \
    FIELD(T, CHOICE, padding, "VALID", ED_ONE_OF("VALID", "SAME", "EXPLICIT"),                     \
          "VALID: none, SAME: zeros around, EXPLICIT: explicit_paddings")                          \
    FIELD(T, INTS, explicit_paddings, ED_NO_LIST, ED_ANY,                                          \
          "before and after each spatial axis: [top, bottom, left, right]")
#define ED_CONV_OPTIONS(FIELD, T)                                                                  \
    ED_WINDOW_OPTIONS(FIELD, T)                                                                    \
    FIELD(T, INT, groups, 1, ED_AT_LEAST(1), "number of groups of channels")
#define ED_CONV1D_OPTIONS(FIELD, T)                                                                \
    ED_CONV_OPTIONS(FIELD, T)                                                                      \
    FIELD(T, CHOICE, data_format, "NWC", ED_ONE_OF("NWC", "NCW"), "the axes of x and y")
#define ED_CONV2D_OPTIONS(FIELD, T)                                                                \
    ED_CONV_OPTIONS(FIELD, T)                                                                      \
    FIELD(T, CHOICE, data_format, "NHWC", ED_ONE_OF("NHWC", "NCHW"), "the axes of x and y")
#define ED_CONV3D_OPTIONS(FIELD, T)                                                                \
    ED_CONV_OPTIONS(FIELD, T)                                                                      \
    FIELD(T, CHOICE, data_format, "NDHWC", ED_ONE_OF("NDHWC", "NCDHW"), "the axes of x and y")
ED_OPTIONS(ed_conv1d_options, ED_CONV1D_OPTIONS);
ED_OPTIONS(ed_conv2d_options, ED_CONV2D_OPTIONS);
ED_OPTIONS(ed_conv3d_options, ED_CONV3D_OPTIONS);
ed_tensor *ed_conv1d_with(ed_tensor *x, ed_tensor *kernel, const ed_conv1d_options *options);
ed_tensor *ed_conv2d_with(ed_tensor *x, ed_tensor *kernel, const ed_conv2d_options *options);
ed_tensor *ed_conv3d_with(ed_tensor *x, ed_tensor *kernel, const ed_conv3d_options *options);

/*
 * activation(ed_conv2d(x, kernel) + bias) in one pass, as ed_layer_conv2d computes it: bias [out],
 * of the dtype of x and kernel, float32 or float64. Fails for a bias of another shape, and for what
 * ed_conv2d refuses.
 */
#define ED_CONV_ACTIVATION(FIELD, T)                                                               \
    FIELD(T, CHOICE, activation, "linear", ED_ONE_OF("linear", "relu"), "of what was summed")
#define ED_CONV2D_BIAS_OPTIONS(FIELD, T)                                                           \
    ED_CONV2D_OPTIONS(FIELD, T)                                                                    \
    ED_CONV_ACTIVATION(FIELD, T)
ED_OPTIONS(ed_conv2d_bias_options, ED_CONV2D_BIAS_OPTIONS);
ed_tensor *ed_conv2d_bias_with(ed_tensor *x, ed_tensor *kernel, ed_tensor *bias,
                               const ed_conv2d_bias_options *options);

/*
 * The transposed convolution, the gradient of the convolution by its input: x [batch, h', w', in],
 * kernel [kh, kw, out, in] -> [batch, h, w, out]. h is h' stride for SAME, h' stride + max(kh -
 * stride, 0) for VALID, kh being the window's size with its dilation, (h' - 1) stride + kh less the
 * paddings for EXPLICIT. With output_padding, as Keras has it, (h' - 1) stride + kh +
 * output_padding for VALID, less 2 (kh / 2) for SAME.
 */
#define ED_CONV_TRANSPOSE_OPTIONS(FIELD, T)                                                        \
    ED_WINDOW_OPTIONS(FIELD, T)                                                                    \
    FIELD(T, INTS, output_padding, ED_NO_LIST, ED_ANY,                                             \
          "cells more after each spatial axis, below the stride; one for all or one each")
#define ED_CONV1D_TRANSPOSE_OPTIONS(FIELD, T)                                                      \
    ED_CONV_TRANSPOSE_OPTIONS(FIELD, T)                                                            \
    FIELD(T, CHOICE, data_format, "NWC", ED_ONE_OF("NWC", "NCW"), "the axes of x and y")
#define ED_CONV2D_TRANSPOSE_OPTIONS(FIELD, T)                                                      \
    ED_CONV_TRANSPOSE_OPTIONS(FIELD, T)                                                            \
    FIELD(T, CHOICE, data_format, "NHWC", ED_ONE_OF("NHWC", "NCHW"), "the axes of x and y")
#define ED_CONV3D_TRANSPOSE_OPTIONS(FIELD, T)                                                      \
    ED_CONV_TRANSPOSE_OPTIONS(FIELD, T)                                                            \
    FIELD(T, CHOICE, data_format, "NDHWC", ED_ONE_OF("NDHWC", "NCDHW"), "the axes of x and y")
ED_OPTIONS(ed_conv1d_transpose_options, ED_CONV1D_TRANSPOSE_OPTIONS);
ED_OPTIONS(ed_conv2d_transpose_options, ED_CONV2D_TRANSPOSE_OPTIONS);
ED_OPTIONS(ed_conv3d_transpose_options, ED_CONV3D_TRANSPOSE_OPTIONS);
ed_tensor *ed_conv1d_transpose_with(ed_tensor *x, ed_tensor *kernel,
                                    const ed_conv1d_transpose_options *options);
ed_tensor *ed_conv2d_transpose_with(ed_tensor *x, ed_tensor *kernel,
                                    const ed_conv2d_transpose_options *options);
ed_tensor *ed_conv3d_transpose_with(ed_tensor *x, ed_tensor *kernel,
                                    const ed_conv3d_transpose_options *options);

/*
 * Each channel by itself: x [batch, height, width, in], kernel [kh, kw, in, multiplier] -> [batch,
 * h', w', in * multiplier], output c * multiplier + m being of channel c. separable_conv2d: that,
 * and then conv2d with pointwise_kernel [1, 1, in * multiplier, out].
 */
#define ED_DEPTHWISE_CONV2D_OPTIONS(FIELD, T)                                                      \
    ED_WINDOW_OPTIONS(FIELD, T)                                                                    \
    FIELD(T, CHOICE, data_format, "NHWC", ED_ONE_OF("NHWC", "NCHW"), "the axes of x and y")
ED_OPTIONS(ed_depthwise_conv2d_options, ED_DEPTHWISE_CONV2D_OPTIONS);
ed_tensor *ed_depthwise_conv2d_with(ed_tensor *x, ed_tensor *kernel,
                                    const ed_depthwise_conv2d_options *options);
ed_tensor *ed_separable_conv2d_with(ed_tensor *x, ed_tensor *depthwise_kernel,
                                    ed_tensor *pointwise_kernel,
                                    const ed_depthwise_conv2d_options *options);

/* activation(ed_depthwise_conv2d(x, kernel) + bias) in one pass, bias [in * multiplier], of the
 * dtype of x and kernel. Fails for a bias of another shape, and for what ed_depthwise_conv2d
 * refuses. */
#define ED_DEPTHWISE_CONV2D_BIAS_OPTIONS(FIELD, T)                                                 \
    ED_DEPTHWISE_CONV2D_OPTIONS(FIELD, T)                                                          \
    ED_CONV_ACTIVATION(FIELD, T)
ED_OPTIONS(ed_depthwise_conv2d_bias_options, ED_DEPTHWISE_CONV2D_BIAS_OPTIONS);
ed_tensor *ed_depthwise_conv2d_bias_with(ed_tensor *x, ed_tensor *kernel, ed_tensor *bias,
                                         const ed_depthwise_conv2d_bias_options *options);

/*
 * Largest / mean of the windows of x [batch, height, width, channels], or with one or three spatial
 * axes. Cells outside do not count; a window without any has the maximum -inf and the mean 0.
 * max_pool: the first of equals in row order gets the gradient; a NaN in a window is its maximum.
 */
#define ED_POOL_OPTIONS(FIELD, T)                                                                  \
    FIELD(T, INTS, window, ED_NO_LIST, ED_ANY,                                                     \
          "one size for each spatial axis, or one for all; default 2")                             \
    FIELD(T, INTS, strides, ED_NO_LIST, ED_ANY, "likewise; default: the window")                   \
    FIELD(T, CHOICE, padding, "VALID", ED_ONE_OF("VALID", "SAME", "EXPLICIT"),                     \
          "VALID: none, SAME: cells around that do not count, EXPLICIT: explicit_paddings")        \
    FIELD(T, INTS, explicit_paddings, ED_NO_LIST, ED_ANY,                                          \
          "cells before and after each spatial axis: [top, bottom, left, right]")                  \
    FIELD(T, INTS, dilations, ED_NO_LIST, ED_ANY,                                                  \
          "one for each spatial axis, or one for all; default 1")
#define ED_POOL1D_OPTIONS(FIELD, T)                                                                \
    ED_POOL_OPTIONS(FIELD, T)                                                                      \
    FIELD(T, CHOICE, data_format, "NWC", ED_ONE_OF("NWC", "NCW"), "the axes of x and y")
#define ED_POOL2D_OPTIONS(FIELD, T)                                                                \
    ED_POOL_OPTIONS(FIELD, T)                                                                      \
    FIELD(T, CHOICE, data_format, "NHWC", ED_ONE_OF("NHWC", "NCHW"), "the axes of x and y")
#define ED_POOL3D_OPTIONS(FIELD, T)                                                                \
    ED_POOL_OPTIONS(FIELD, T)                                                                      \
    FIELD(T, CHOICE, data_format, "NDHWC", ED_ONE_OF("NDHWC", "NCDHW"), "the axes of x and y")
ED_OPTIONS(ed_pool1d_options, ED_POOL1D_OPTIONS);
ED_OPTIONS(ed_pool2d_options, ED_POOL2D_OPTIONS);
ED_OPTIONS(ed_pool3d_options, ED_POOL3D_OPTIONS);
ed_tensor *ed_max_pool1d_with(ed_tensor *x, const ed_pool1d_options *options);
ed_tensor *ed_max_pool2d_with(ed_tensor *x, const ed_pool2d_options *options);
ed_tensor *ed_max_pool3d_with(ed_tensor *x, const ed_pool3d_options *options);
ed_tensor *ed_avg_pool1d_with(ed_tensor *x, const ed_pool1d_options *options);
ed_tensor *ed_avg_pool2d_with(ed_tensor *x, const ed_pool2d_options *options);
ed_tensor *ed_avg_pool3d_with(ed_tensor *x, const ed_pool3d_options *options);

/*
 * ed_max_pool2d, with the numbers of the largest elements, int64: x's elements counted from 0 in
 * their order, in each image, or in all. A window without any cell has 0.
 */
#define ED_MAX_POOL_WITH_ARGMAX_OPTIONS(FIELD, T)                                                  \
    ED_POOL2D_OPTIONS(FIELD, T)                                                                    \
    FIELD(T, BOOL, include_batch_in_index, false, ED_ANY, "count through all images")
ED_OPTIONS(ed_max_pool_with_argmax_options, ED_MAX_POOL_WITH_ARGMAX_OPTIONS);
ed_tensor *ed_max_pool_with_argmax_with(ed_tensor *x, ed_tensor **argmax,
                                        const ed_max_pool_with_argmax_options *options);

/*
 * Pools to a given size: along an axis of n cells window i of m covers the cells from floor(i n /
 * m) to below ceil((i + 1) n / m), so that all cells count, and windows overlap where m does not
 * divide n. x has 1, 2 or 3 spatial axes, none empty.
 */
#define ED_ADAPTIVE_POOL_OPTIONS(FIELD, T)                                                         \
    FIELD(T, INTS, output_size, ED_NO_LIST, ED_ANY,                                                \
          "one size for each spatial axis, or one for all; default 1")
#define ED_ADAPTIVE_POOL1D_OPTIONS(FIELD, T)                                                       \
    ED_ADAPTIVE_POOL_OPTIONS(FIELD, T)                                                             \
    FIELD(T, CHOICE, data_format, "NWC", ED_ONE_OF("NWC", "NCW"), "the axes of x and y")
#define ED_ADAPTIVE_POOL2D_OPTIONS(FIELD, T)                                                       \
    ED_ADAPTIVE_POOL_OPTIONS(FIELD, T)                                                             \
    FIELD(T, CHOICE, data_format, "NHWC", ED_ONE_OF("NHWC", "NCHW"), "the axes of x and y")
#define ED_ADAPTIVE_POOL3D_OPTIONS(FIELD, T)                                                       \
    ED_ADAPTIVE_POOL_OPTIONS(FIELD, T)                                                             \
    FIELD(T, CHOICE, data_format, "NDHWC", ED_ONE_OF("NDHWC", "NCDHW"), "the axes of x and y")
ED_OPTIONS(ed_adaptive_pool1d_options, ED_ADAPTIVE_POOL1D_OPTIONS);
ED_OPTIONS(ed_adaptive_pool2d_options, ED_ADAPTIVE_POOL2D_OPTIONS);
ED_OPTIONS(ed_adaptive_pool3d_options, ED_ADAPTIVE_POOL3D_OPTIONS);
ed_tensor *ed_adaptive_avg_pool1d_with(ed_tensor *x, const ed_adaptive_pool1d_options *options);
ed_tensor *ed_adaptive_avg_pool2d_with(ed_tensor *x, const ed_adaptive_pool2d_options *options);
ed_tensor *ed_adaptive_avg_pool3d_with(ed_tensor *x, const ed_adaptive_pool3d_options *options);
ed_tensor *ed_adaptive_max_pool1d_with(ed_tensor *x, const ed_adaptive_pool1d_options *options);
ed_tensor *ed_adaptive_max_pool2d_with(ed_tensor *x, const ed_adaptive_pool2d_options *options);
ed_tensor *ed_adaptive_max_pool3d_with(ed_tensor *x, const ed_adaptive_pool3d_options *options);

/*
 * Grayscale morphology of x [batch, height, width, channels] by filters [kh, kw, channels]:
 * dilation2d is the maximum over the window of x + filters, erosion2d the minimum of x less the
 * filters turned by 180 degrees. Cells outside do not count.
 */
#define ED_MORPHOLOGY_OPTIONS(FIELD, T)                                                            \
    FIELD(T, INTS, strides, ED_NO_LIST, ED_ANY, "[height, width], or one for both; default 1")     \
    FIELD(T, INTS, dilations, ED_NO_LIST, ED_ANY, "[height, width], or one for both; default 1")   \
    FIELD(T, CHOICE, padding, "VALID", ED_ONE_OF("VALID", "SAME"),                                 \
          "VALID: none, SAME: cells around that do not count")
ED_OPTIONS(ed_morphology_options, ED_MORPHOLOGY_OPTIONS);
ed_tensor *ed_dilation2d_with(ed_tensor *x, ed_tensor *filters,
                              const ed_morphology_options *options);
ed_tensor *ed_erosion2d_with(ed_tensor *x, ed_tensor *filters,
                             const ed_morphology_options *options);

/*
 * The windows of x [batch, height, width, channels] as channels: [batch, h', w', kh * kw *
 * channels] with sizes [kh, kw], windows and padding being those of a convolution with the
 * dilations `rates`.
 */
#define ED_EXTRACT_PATCHES_OPTIONS(FIELD, T)                                                       \
    FIELD(T, INTS, sizes, ED_NO_LIST, ED_ANY, "[height, width], or one for both; default 3")       \
    FIELD(T, INTS, strides, ED_NO_LIST, ED_ANY, "[height, width], or one for both; default 1")     \
    FIELD(T, INTS, rates, ED_NO_LIST, ED_ANY, "[height, width], or one for both; default 1")       \
    FIELD(T, CHOICE, padding, "VALID", ED_ONE_OF("VALID", "SAME", "EXPLICIT"),                     \
          "VALID: none, SAME: zeros around, EXPLICIT: explicit_paddings")                          \
    FIELD(T, INTS, explicit_paddings, ED_NO_LIST, ED_ANY, "[top, bottom, left, right]")
ED_OPTIONS(ed_extract_patches_options, ED_EXTRACT_PATCHES_OPTIONS);
ed_tensor *ed_extract_patches_with(ed_tensor *x, const ed_extract_patches_options *options);

/* The same of volumes x [batch, depth, height, width, channels]. */
#define ED_EXTRACT_VOLUME_PATCHES_OPTIONS(FIELD, T)                                                \
    FIELD(T, INTS, sizes, ED_NO_LIST, ED_ANY, "[depth, height, width], or one for all; default 3") \
    FIELD(T, INTS, strides, ED_NO_LIST, ED_ANY,                                                    \
          "[depth, height, width], or one for all; default 1")                                     \
    FIELD(T, CHOICE, padding, "VALID", ED_ONE_OF("VALID", "SAME"),                                 \
          "VALID: none, SAME: zeros around")
ED_OPTIONS(ed_extract_volume_patches_options, ED_EXTRACT_VOLUME_PATCHES_OPTIONS);
ed_tensor *ed_extract_volume_patches_with(ed_tensor *x,
                                          const ed_extract_volume_patches_options *options);

/*
 * Pooling of x [batch, height, width, channels] by windows of random heights and widths, whose mean
 * is pooling_ratio: floor(height / ratio) of them, each of k or k + 1 cells. To the others go where
 * windows begin along both axes, and the size: int64 [windows + 1]. overlapping: windows share the
 * cell at their border. A seed gives TensorFlow's windows for it, without its global seed.
 */
#define ED_FRACTIONAL_POOL_OPTIONS(FIELD, T)                                                       \
    FIELD(T, FLOATS, pooling_ratio, ED_NO_LIST, ED_ANY,                                            \
          "[height, width], or one for both, at least 1; default 1")                               \
    FIELD(T, BOOL, pseudo_random, false, ED_ANY, "sizes alternate as evenly as they can")          \
    FIELD(T, BOOL, overlapping, false, ED_ANY, "windows share the cell at their border")           \
    FIELD(T, INT, seed, 0, ED_ANY, "of the windows; 0: one from the process's source")
ED_OPTIONS(ed_fractional_pool_options, ED_FRACTIONAL_POOL_OPTIONS);
ed_tensor *ed_fractional_max_pool_with(ed_tensor *x, ed_tensor **row_pooling_sequence,
                                       ed_tensor **col_pooling_sequence,
                                       const ed_fractional_pool_options *options);
ed_tensor *ed_fractional_avg_pool_with(ed_tensor *x, ed_tensor **row_pooling_sequence,
                                       ed_tensor **col_pooling_sequence,
                                       const ed_fractional_pool_options *options);

#pragma GCC visibility pop
#endif
