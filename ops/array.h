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

/* The kinds of subscripts. */
typedef enum ed_subscript_kind {
    ED_SUBSCRIPT_INDEX,    /* begin is the index */
    ED_SUBSCRIPT_RANGE,    /* begin, end and step */
    ED_SUBSCRIPT_ELLIPSIS, /* as many whole axes as there are */
    ED_SUBSCRIPT_NEW_AXIS  /* an axis of size 1 */
} ed_subscript_kind;

/* What stands for an axis in ed_strided_slice. */
typedef struct ed_subscript {
    ed_subscript_kind kind;   /* of subscript */
    int64_t begin, end, step; /* as the kind has them */
} ed_subscript;

/* Initializers of subscripts: ED_INDEX(i), ED_RANGE(begin, end) or ED_RANGE(begin, end, step), a
 * whole axis, as many whole axes as there are, a new axis. */
/* clang-format off */
#define ED_INDEX(i)   {ED_SUBSCRIPT_INDEX, i, 0, 0}
#define ED_RANGE(...) ED_RANGE_(__VA_ARGS__, 1, )
#define ED_ALL        {ED_SUBSCRIPT_RANGE, ED_END, ED_END, 1}
#define ED_ELLIPSIS   {ED_SUBSCRIPT_ELLIPSIS, 0, 0, 0}
#define ED_NEW_AXIS   {ED_SUBSCRIPT_NEW_AXIS, 0, 0, 0}
#define ED_RANGE_(begin, end, step, ...) {ED_SUBSCRIPT_RANGE, begin, end, step}
/* clang-format on */

/* An array of subscripts, and how many it has: two arguments of the functions with _of. */
#define ED_SUBSCRIPTS_(...)                                                                        \
    ((const ed_subscript[]){{ED_SUBSCRIPT_INDEX, 0, 0, 0}, __VA_ARGS__} + 1),                      \
        ((int64_t)(sizeof((const ed_subscript[]){{ED_SUBSCRIPT_INDEX, 0, 0, 0}, __VA_ARGS__}) /    \
                   sizeof(ed_subscript)) -                                                         \
         1)

/*
 * x[1, :, ..., None, 0:10:2] as Python has it:
 *
 *     ed_strided_slice(x, ED_INDEX(1), ED_ALL, ED_ELLIPSIS, ED_NEW_AXIS, ED_RANGE(0, 10, 2))
 *
 * An index, negative from the end, removes its axis and must be within it; ranges are those of
 * ed_slice, with a step of 1 if it is left out; an ellipsis, at most one, stands for all axes that
 * no other subscript is for, and so does the end of the list. A view.
 */
ed_tensor *ed_strided_slice_of(ed_tensor *x, const ed_subscript *subscripts, int64_t count);
/* The same, as it is called. */
#define ed_strided_slice(x, ...) ED_AT(ed_strided_slice_of(x, ED_SUBSCRIPTS_(__VA_ARGS__)))

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

/* The shape to which tensors of both shapes broadcast, in memory of the scope's; its values are
 * NULL if they don't, which is an error. */
ed_ints ed_broadcast_shapes(ed_ints a, ed_ints b);

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

/* Each slice of x along an axis so many times in a row as `repeats` says: one number for all, or
 * int32 or int64 [x.shape[axis]]. Without an axis x is flattened first. */
#define ED_REPEAT_OPTIONS(FIELD, T)                                                                \
    FIELD(T, AXES, axis, ED_NO_LIST, ED_ANY, "along which one; default: x is flattened")
ED_OPTIONS(ed_repeat_options, ED_REPEAT_OPTIONS);
ed_tensor *ed_repeat_with(ed_tensor *x, ed_tensor_like *repeats, const ed_repeat_options *options);

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

/* Of each sequence along seq_axis the first seq_lengths[i] elements in reverse order, the others as
 * they are, i being the index along batch_axis; int32 or int64 [x.shape[batch_axis]]. */
#define ED_REVERSE_SEQUENCE_OPTIONS(FIELD, T)                                                      \
    FIELD(T, AXIS, seq_axis, 1, ED_ANY, "along which sequences lie")                               \
    FIELD(T, AXIS, batch_axis, 0, ED_ANY, "along which they are counted")
ED_OPTIONS(ed_reverse_sequence_options, ED_REVERSE_SEQUENCE_OPTIONS);
ed_tensor *ed_reverse_sequence_with(ed_tensor *x, ed_tensor *seq_lengths,
                                    const ed_reverse_sequence_options *options);

/* 1, or true, where the index along a new last axis of size maxlen is less than the length, else 0:
 * shape lengths.shape + [maxlen]. No gradient. */
#define ED_SEQUENCE_MASK_OPTIONS(FIELD, T)                                                         \
    FIELD(T, INT, maxlen, -1, ED_AT_LEAST(-1),                                                     \
          "size of the axis; default, -1: the largest length")                                     \
    FIELD(T, DTYPE, dtype, ED_BOOL, ED_ANY, "of the result")
ED_OPTIONS(ed_sequence_mask_options, ED_SEQUENCE_MASK_OPTIONS);
ed_tensor *ed_sequence_mask_with(ed_tensor *lengths, const ed_sequence_mask_options *options);

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
 * x [batch, ...]: the elements at one position of the blocks of block_shape, along the axes behind
 * the first, become a batch of their own, those of the first position first. Before that before[i]
 * and after[i] zeros are added around the i-th of these axes. / And back, and then so many elements
 * are cut off.
 */
#define ED_BLOCK_OPTIONS(FIELD, T)                                                                 \
    FIELD(T, INTS, before, ED_NO_LIST, ED_ANY, "elements before each blocked axis; default: none") \
    FIELD(T, INTS, after, ED_NO_LIST, ED_ANY, "elements after each blocked axis; default: none")
ED_OPTIONS(ed_block_options, ED_BLOCK_OPTIONS);
ed_tensor *ed_space_to_batch_with(ed_tensor *x, ed_ints block_shape,
                                  const ed_block_options *options);
ed_tensor *ed_batch_to_space_with(ed_tensor *x, ed_ints block_shape,
                                  const ed_block_options *options);

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

/*
 * Diagonals of matrices x [..., rows, columns]. Diagonal k holds the elements [i, i + k], 0 is the
 * main one. k: one diagonal, or the lowest and the highest of several, as rows of a new axis, the
 * highest first. Rows are as long as the longest diagonal; align says at which end shorter ones
 * above and below the main one stand ("RIGHT_LEFT": above at the right end), padding_value fills
 * the rest. diag_part takes them, [..., longest] or [..., number, longest]; one diagonal is a view.
 * diag makes matrices of them, square ones by default; set_diag puts them into x.
 */
#define ED_DIAG_ALIGNMENTS ED_ONE_OF("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")
#define ED_DIAG_PART_OPTIONS(FIELD, T)                                                             \
    FIELD(T, INTS, k, ED_NO_LIST, ED_ANY,                                                          \
          "the diagonal, or the lowest and the highest; default: 0")                               \
    FIELD(T, FLOAT, padding_value, 0, ED_ANY, "behind or before shorter diagonals")                \
    FIELD(T, CHOICE, align, "RIGHT_LEFT", ED_DIAG_ALIGNMENTS,                                      \
          "where shorter ones above, and below, the main one stand")
ED_OPTIONS(ed_diag_part_options, ED_DIAG_PART_OPTIONS);
ed_tensor *ed_diag_part_with(ed_tensor *x, const ed_diag_part_options *options);
#define ED_DIAG_OPTIONS(FIELD, T)                                                                  \
    FIELD(T, INTS, k, ED_NO_LIST, ED_ANY,                                                          \
          "the diagonal, or the lowest and the highest; default: 0")                               \
    FIELD(T, INT, num_rows, -1, ED_AT_LEAST(-1), "of the matrices; default, -1: as few as can be") \
    FIELD(T, INT, num_cols, -1, ED_AT_LEAST(-1), "likewise; if neither is given: square")          \
    FIELD(T, FLOAT, padding_value, 0, ED_ANY, "of the other elements")                             \
    FIELD(T, CHOICE, align, "RIGHT_LEFT", ED_DIAG_ALIGNMENTS,                                      \
          "where shorter ones above, and below, the main one stand")
ED_OPTIONS(ed_diag_options, ED_DIAG_OPTIONS);
ed_tensor *ed_diag_with(ed_tensor *x, const ed_diag_options *options);
#define ED_SET_DIAG_OPTIONS(FIELD, T)                                                              \
    FIELD(T, INTS, k, ED_NO_LIST, ED_ANY,                                                          \
          "the diagonal, or the lowest and the highest; default: 0")                               \
    FIELD(T, CHOICE, align, "RIGHT_LEFT", ED_DIAG_ALIGNMENTS,                                      \
          "where shorter ones above, and below, the main one stand")
ED_OPTIONS(ed_set_diag_options, ED_SET_DIAG_OPTIONS);
ed_tensor *ed_set_diag_with(ed_tensor *x, ed_tensor *diagonal, const ed_set_diag_options *options);

/* y[i, ..., i, ...] = x[i, ...], 0 elsewhere: twice the rank of x; and back, x[i, ..., i, ...]. */
ed_tensor *ed_tensor_diag(ed_tensor *x);
ed_tensor *ed_tensor_diag_part(ed_tensor *x);

/* The sum of the main diagonal of each matrix x [..., rows, columns]; shape [...]. */
ed_tensor *ed_trace(ed_tensor *x);

#pragma GCC visibility pop
#endif
