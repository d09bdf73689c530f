/* Shapes: views, joining and cutting, padding; every dtype, views where strides can say it. ops.h
 * says what holds for all. */
#ifndef EDDY_OPS_ARRAY_H
#define EDDY_OPS_ARRAY_H

#include "ops/op.h"
#include "tensor/tensor.h"

#pragma GCC visibility push(default)

/* The same elements in row-major order in another shape, one size of which may be -1: whatever is
 * left. A view where possible. */
ed_tensor *ed_reshape(ed_tensor *x, ed_ints shape);

/* Axes in another order; perm not given reverses them. A view. */
#define ED_TRANSPOSE_OPTIONS(FIELD, T)                                                             \
    FIELD(T, AXES, perm, ED_NO_LIST, ED_ANY, "the axes in their new order; default: reversed")
ED_OPTIONS(ed_transpose_options, ED_TRANSPOSE_OPTIONS);
ed_tensor *ed_transpose_with(ed_tensor *x, const ed_transpose_options *options);

/*
 * x[begin : end : step] as Python slices, axis by axis: begin and end may be negative (from the
 * end) and are held within the tensor, steps may be negative but not 0. Lists shorter than the rank
 * leave the last axes whole. ED_END means "as far as there is". A view.
 */
#define ED_END INT64_MIN
#define ED_SLICE_OPTIONS(FIELD, T)                                                                 \
    FIELD(T, INTS, begin, ED_NO_LIST, ED_ANY, "first index of each axis; negative: from the end")  \
    FIELD(T, INTS, end, ED_NO_LIST, ED_ANY, "index before which each axis stops")                  \
    FIELD(T, INTS, step, ED_NO_LIST, ED_ANY, "steps; negative: backwards; default 1")
ED_OPTIONS(ed_slice_options, ED_SLICE_OPTIONS);
ed_tensor *ed_slice_with(ed_tensor *x, const ed_slice_options *options);

/* x[i] along the first axis, which goes; i may be negative. A view. */
ed_tensor *ed_index(ed_tensor *x, int64_t i);

/* A new axis of size 1 at `axis` (0..rank, or negative from the end). A view. */
ed_tensor *ed_expand_dims(ed_tensor *x, int64_t axis);

/* Without the axes of size 1, or without those named, which must have size 1. A view. */
#define ED_SQUEEZE_OPTIONS(FIELD, T)                                                               \
    FIELD(T, AXES, axis, ED_NO_LIST, ED_ANY, "which to remove; default: all of size 1")
ED_OPTIONS(ed_squeeze_options, ED_SQUEEZE_OPTIONS);
ed_tensor *ed_squeeze_with(ed_tensor *x, const ed_squeeze_options *options);

/* x repeated along axes of size 1 (and new leading ones) to `shape`. A view. */
ed_tensor *ed_broadcast_to(ed_tensor *x, ed_ints shape);

/* All elements in one dimension. */
ed_tensor *ed_flatten(ed_tensor *x);

/* The same values in memory of their own in row-major order; x itself if they lie so already. */
ed_tensor *ed_contiguous(ed_tensor *x);

/* Joined along an existing axis (default 0), where alone the shapes may
 * differ / along a new one. */
#define ED_CONCAT_OPTIONS(FIELD, T) FIELD(T, AXIS, axis, 0, ED_ANY, "along which")
ED_OPTIONS(ed_concat_options, ED_CONCAT_OPTIONS);
ed_tensor *ed_concat_with(ed_list *list, const ed_concat_options *options);
ed_tensor *ed_stack_with(ed_list *list, const ed_concat_options *options);

/* Cut along an axis (default 0) into `count` equal parts / into parts of the given sizes, one of
 * which may be -1 / into its slices. Views, which the list holds. */
ed_list *ed_split_with(ed_tensor *x, int64_t count, const ed_concat_options *options);
ed_list *ed_split_sizes_with(ed_tensor *x, ed_ints sizes, const ed_concat_options *options);
ed_list *ed_unstack_with(ed_tensor *x, const ed_concat_options *options);

/* x repeated multiples[i] times along axis i. */
ed_tensor *ed_tile(ed_tensor *x, ed_ints multiples);

/*
 * before[i] and after[i] elements around axis i; shorter lists leave the last axes as they are. By
 * mode they are: CONSTANT value; REFLECT mirrored at the end element, which is not repeated (at
 * most size - 1); SYMMETRIC mirrored behind it (at most size); EDGE the end element.
 */
#define ED_PAD_OPTIONS(FIELD, T)                                                                   \
    FIELD(T, INTS, before, ED_NO_LIST, ED_ANY, "elements added before each axis; default: none")   \
    FIELD(T, INTS, after, ED_NO_LIST, ED_ANY, "elements added after each axis; default: none")     \
    FIELD(T, FLOAT, value, 0, ED_ANY, "of the added elements under CONSTANT")                      \
    FIELD(T, CHOICE, mode, "CONSTANT", ED_ONE_OF("CONSTANT", "REFLECT", "SYMMETRIC", "EDGE"),      \
          "what is added")
ED_OPTIONS(ed_pad_options, ED_PAD_OPTIONS);
ed_tensor *ed_pad_with(ed_tensor *x, const ed_pad_options *options);

/* In reverse order along the axes. A view. */
ed_tensor *ed_reverse(ed_tensor *x, ed_ints axes);

/* Moved on by shift[i] along axis[i], what goes over the end to the front; an axis that is named
 * twice rolls by the sum. */
ed_tensor *ed_roll(ed_tensor *x, ed_ints shift, ed_ints axis);

/* Turned k times by 90 degrees from the first of two axes towards the second. A view. */
#define ED_ROT90_OPTIONS(FIELD, T)                                                                 \
    FIELD(T, INT, k, 1, ED_ANY, "how many times; negative: the other way round")                   \
    FIELD(T, AXES, axes, ED_NO_LIST, ED_ANY, "which two; default: the first ones")
ED_OPTIONS(ed_rot90_options, ED_ROT90_OPTIONS);
ed_tensor *ed_rot90_with(ed_tensor *x, const ed_rot90_options *options);

/*
 * Coordinates on a grid: for each of n tensors of rank 1 one of rank n, the tensor along an axis of
 * its own, repeated along the others. Under "xy" the first tensor lies along axis 1 and the second
 * along axis 0, under "ij" tensor i along axis i. Views, which the list holds.
 */
#define ED_MESHGRID_OPTIONS(FIELD, T)                                                              \
    FIELD(T, CHOICE, indexing, "xy", ED_ONE_OF("xy", "ij"), "order of the first two axes")
ED_OPTIONS(ed_meshgrid_options, ED_MESHGRID_OPTIONS);
ed_list *ed_meshgrid_with(ed_list *list, const ed_meshgrid_options *options);

/* x itself if it has this shape, where -1 stands for any size; else an error. A view. */
ed_tensor *ed_ensure_shape(ed_tensor *x, ed_ints shape);

/*
 * x [batch, height, width, channels], or under "NCHW" [batch, channels, height, width]: each block
 * of block_size by block_size becomes so many times the channels, the block's rows first, and back.
 */
#define ED_DEPTH_OPTIONS(FIELD, T)                                                                 \
    FIELD(T, CHOICE, data_format, "NHWC", ED_ONE_OF("NHWC", "NCHW"), "the order of x's axes")
ED_OPTIONS(ed_depth_options, ED_DEPTH_OPTIONS);
ed_tensor *ed_space_to_depth_with(ed_tensor *x, int64_t block_size,
                                  const ed_depth_options *options);
ed_tensor *ed_depth_to_space_with(ed_tensor *x, int64_t block_size,
                                  const ed_depth_options *options);

/*
 * Of each matrix x [..., rows, columns] some diagonals, and 0 elsewhere: those from num_lower below
 * to num_upper above the main one, negative meaning all / the diagonals up to the k-th (0 is the
 * main one, positive ones lie above) / from the k-th on.
 */
ed_tensor *ed_band_part(ed_tensor *x, int64_t num_lower, int64_t num_upper);
#define ED_TRIANGLE_OPTIONS(FIELD, T) FIELD(T, INT, k, 0, ED_ANY, "the last, or first, diagonal")
ED_OPTIONS(ed_triangle_options, ED_TRIANGLE_OPTIONS);
ed_tensor *ed_tril_with(ed_tensor *x, const ed_triangle_options *options);
ed_tensor *ed_triu_with(ed_tensor *x, const ed_triangle_options *options);

#pragma GCC visibility pop
#endif
