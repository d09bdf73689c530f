/* Reading and writing at indices. ops.h says what holds for all. */
#ifndef EDDY_OPS_INDEXING_H
#define EDDY_OPS_INDEXING_H

#include "ops/op.h"
#include "tensor/tensor.h"

#pragma GCC visibility push(default)

/*
 * Indices are int32 or int64. One outside of what it indexes is an error that names it and its
 * position.
 */

/*
 * Slices of x along an axis at the indices: shape x.shape[:axis] + indices.shape[batch_dims:] +
 * x.shape[axis+1:]. The first batch_dims axes (negative: counted from the end of indices) are the
 * same of both; axis is then at least batch_dims, which is also what 0 means.
 */
#define ED_GATHER_OPTIONS(FIELD, T)                                                                \
    FIELD(T, AXIS, axis, 0, ED_ANY, "along which; 0 means batch_dims")                             \
    FIELD(T, INT, batch_dims, 0, ED_ANY, "leading axes that x and indices share")
ED_OPTIONS(ed_gather_options, ED_GATHER_OPTIONS);
ed_tensor *ed_gather_with(ed_tensor *x, ed_tensor *indices, const ed_gather_options *options);

/*
 * Elements or slices of x: the last axis of indices, [..., k], leads through k axes of x behind the
 * first batch_dims axes, which both share. Shape indices.shape[:-1] + x.shape[batch_dims+k:].
 */
#define ED_GATHER_ND_OPTIONS(FIELD, T)                                                             \
    FIELD(T, INT, batch_dims, 0, ED_AT_LEAST(0), "leading axes that x and indices share")
ED_OPTIONS(ed_gather_nd_options, ED_GATHER_ND_OPTIONS);
ed_tensor *ed_gather_nd_with(ed_tensor *x, ed_tensor *indices, const ed_gather_nd_options *options);

/*
 * Ones where the new last axis (of size depth) equals the index, zeros elsewhere; indices outside
 * 0..depth-1 give all zeros. dtype: default float32. No gradient.
 */
#define ED_ONE_HOT_OPTIONS(FIELD, T) FIELD(T, DTYPE, dtype, ED_FLOAT32, ED_ANY, "of the result")
ED_OPTIONS(ed_one_hot_options, ED_ONE_HOT_OPTIONS);
ed_tensor *ed_one_hot_with(ed_tensor *indices, int64_t depth, const ed_one_hot_options *options);

/*
 * The slices of x where the mask is true; bool, of x's shape from `axis` on for as many axes as it
 * has: shape x.shape[:axis] + [n] + x.shape[axis+mask.rank:].
 */
#define ED_BOOLEAN_MASK_OPTIONS(FIELD, T)                                                          \
    FIELD(T, AXIS, axis, 0, ED_ANY, "the first axis that is masked")
ED_OPTIONS(ed_boolean_mask_options, ED_BOOLEAN_MASK_OPTIONS);
ed_tensor *ed_boolean_mask_with(ed_tensor *x, ed_tensor *mask,
                                const ed_boolean_mask_options *options);

/* The index along each axis of a tensor of that shape of the elements with these numbers in
 * row-major order, each in 0..size-1: shape [rank] + indices.shape. No gradient. */
ed_tensor *ed_unravel_index(ed_tensor *indices, ed_ints shape);

/*
 * Elements of x at indices along an axis, as NumPy has it: y[i, j, k] = x[i, indices[i, j, k], k]
 * along axis 1. Ranks are the same, the other axes broadcast; negative indices count from the end.
 */
#define ED_ALONG_OPTIONS(FIELD, T) FIELD(T, AXIS, axis, -1, ED_ANY, "along which")
ED_OPTIONS(ed_along_options, ED_ALONG_OPTIONS);
ed_tensor *ed_take_along_axis_with(ed_tensor *x, ed_tensor *indices,
                                   const ed_along_options *options);

/*
 * x with values at such indices: y[i, indices[i, j, k], k] = values[i, j, k], the last of values at
 * one place. Indices and values broadcast; x has the shape of the result.
 */
ed_tensor *ed_put_along_axis_with(ed_tensor *x, ed_tensor *indices, ed_tensor_like *values,
                                  const ed_along_options *options);

/*
 * x with elements or slices changed at indices, to which their last axis leads as in ed_gather_nd:
 * updates have the shape indices.shape[:-1] + x.shape[k:], or are one number. Several updates of
 * one place are all added (of update: the last one counts), in the order of the indices. Of maximum
 * and minimum, all that have the result's value share the gradient equally.
 */
ed_tensor *ed_tensor_scatter_update(ed_tensor *x, ed_tensor *indices, ed_tensor_like *updates);
ed_tensor *ed_tensor_scatter_add(ed_tensor *x, ed_tensor *indices, ed_tensor_like *updates);
ed_tensor *ed_tensor_scatter_sub(ed_tensor *x, ed_tensor *indices, ed_tensor_like *updates);
ed_tensor *ed_tensor_scatter_max(ed_tensor *x, ed_tensor *indices, ed_tensor_like *updates);
ed_tensor *ed_tensor_scatter_min(ed_tensor *x, ed_tensor *indices, ed_tensor_like *updates);

/* The same, added to zeros of a shape. */
ed_tensor *ed_scatter_nd(ed_tensor *indices, ed_tensor_like *updates, ed_ints shape);

/*
 * Rows of a variable changed at indices of its first axis: updates have the shape indices.shape +
 * variable.shape[1:], or are one number. Return the variable; scatter_div takes floats.
 */
ed_tensor *ed_scatter_update(ed_tensor *variable, ed_tensor *indices, ed_tensor_like *updates);
ed_tensor *ed_scatter_add(ed_tensor *variable, ed_tensor *indices, ed_tensor_like *updates);
ed_tensor *ed_scatter_sub(ed_tensor *variable, ed_tensor *indices, ed_tensor_like *updates);
ed_tensor *ed_scatter_max(ed_tensor *variable, ed_tensor *indices, ed_tensor_like *updates);
ed_tensor *ed_scatter_min(ed_tensor *variable, ed_tensor *indices, ed_tensor_like *updates);
ed_tensor *ed_scatter_mul(ed_tensor *variable, ed_tensor *indices, ed_tensor_like *updates);
ed_tensor *ed_scatter_div(ed_tensor *variable, ed_tensor *indices, ed_tensor_like *updates);

/* Elements or slices of a variable changed at indices as in ed_tensor_scatter_update. Return the
 * variable. */
ed_tensor *ed_scatter_nd_update(ed_tensor *variable, ed_tensor *indices, ed_tensor_like *updates);
ed_tensor *ed_scatter_nd_add(ed_tensor *variable, ed_tensor *indices, ed_tensor_like *updates);
ed_tensor *ed_scatter_nd_sub(ed_tensor *variable, ed_tensor *indices, ed_tensor_like *updates);

/*
 * x sorted along an axis / the indices (int64) that sort it, those of equal elements in their
 * order. NaN comes last in both directions; to sort, -0 is less than 0. argsort has no gradient.
 */
#define ED_SORT_OPTIONS(FIELD, T)                                                                  \
    FIELD(T, AXIS, axis, -1, ED_ANY, "along which")                                                \
    FIELD(T, CHOICE, direction, "ASCENDING", ED_ONE_OF("ASCENDING", "DESCENDING"), "of the order")
ED_OPTIONS(ed_sort_options, ED_SORT_OPTIONS);
ed_tensor *ed_sort_with(ed_tensor *x, const ed_sort_options *options);
ed_tensor *ed_argsort_with(ed_tensor *x, const ed_sort_options *options);

/*
 * The k largest elements along the last axis, the largest first, and their indices (int64); of
 * equal ones the first. NaN comes after all others.
 */
ed_tensor *ed_top_k(ed_tensor *x, int64_t k, ed_tensor **indices);

/*
 * x in another order along an axis, by element number kth (negative: from the end) of those sorted:
 * first the elements that a stable sort puts before it, then that one, then the others, each part
 * in the order that it had / the indices (int64) that do it. NaN comes last. argpartition has no
 * gradient.
 */
ed_tensor *ed_partition_with(ed_tensor *x, int64_t kth, const ed_along_options *options);
ed_tensor *ed_argpartition_with(ed_tensor *x, int64_t kth, const ed_along_options *options);

/*
 * Whether fewer than k predictions [batch, classes] are greater than that of the target, int32 or
 * int64 [batch]: bool [batch]. So all equal ones are within. Where a prediction is not finite:
 * false. A target outside of 0..classes-1 is an error.
 */
ed_tensor *ed_in_top_k(ed_tensor *targets, ed_tensor *predictions, int64_t k);

/*
 * Where values [..., m] would go into sorted_sequence [..., n], ascending along the last axis:
 * int64 [..., m] in 0..n, before ("left") or behind ("right") equal elements. The leading axes are
 * the same, or sorted_sequence has rank 1 and values any shape. NaN counts as larger than all
 * numbers. No gradient.
 */
#define ED_SEARCHSORTED_OPTIONS(FIELD, T)                                                          \
    FIELD(T, CHOICE, side, "left", ED_ONE_OF("left", "right"), "of equal elements")
ED_OPTIONS(ed_searchsorted_options, ED_SEARCHSORTED_OPTIONS);
ed_tensor *ed_searchsorted_with(ed_tensor *sorted_sequence, ed_tensor_like *values,
                                const ed_searchsorted_options *options);

/* How many boundaries, ascending [n], are not greater than each element of x: int64 in 0..n.
 * Numbers of two dtypes are compared as float64, of two integer ones as int64. No gradient. */
ed_tensor *ed_bucketize(ed_tensor_like *x, ed_tensor *boundaries);

/* The indices (int64 [n, rank]) of the elements that are true or not 0, in row-major order. NaN is
 * not 0. */
ed_tensor *ed_nonzero(ed_tensor *x);

/*
 * The different elements of x [n], in the order in which they come first; for each element of x
 * where it is among them (int64 [n]), and how often each of them comes (int64). -0 is 0, and all
 * NaN are one. No gradient.
 */
ed_tensor *ed_unique(ed_tensor *x, ed_tensor **indices, ed_tensor **counts);

/* y[x[i]] = i for a permutation x of 0..n-1, [n]; anything else is an error. */
ed_tensor *ed_invert_permutation(ed_tensor *x);

/*
 * Element i of the list has the slices of x whose partition is i, in their order; partitions, int32
 * or int64 within 0..num_partitions-1, have x's leading axes, which become one.
 */
ed_list *ed_dynamic_partition(ed_tensor *x, ed_tensor *partitions, int64_t num_partitions);

/*
 * Its opposite: y[indices[i][j, ...]] = data[i][j, ...] for lists of the same size, where data[i]
 * has the shape indices[i].shape + rest and y [1 + the largest index] + rest. Of several slices for
 * one place the last one counts, and alone has a gradient; places without one are 0.
 */
ed_tensor *ed_dynamic_stitch(ed_list *indices, ed_list *data);

/*
 * Sets of numbers along the last axis of a [..., m] and b [..., n]: what is in both / in one at
 * least / in a alone. Each has its different elements in ascending order and, behind them, 0 as far
 * as the largest set of all goes; counts (int64 [...]) say how many are its own. -0 is 0, and all
 * NaN are one. No gradient.
 */
ed_tensor *ed_set_intersection(ed_tensor *a, ed_tensor *b, ed_tensor **counts);
ed_tensor *ed_set_union(ed_tensor *a, ed_tensor *b, ed_tensor **counts);
ed_tensor *ed_set_difference(ed_tensor *a, ed_tensor *b, ed_tensor **counts);

/* ---- Indexed slices (ops/slices.c), as TensorFlow's: float32, float64 ----------------------- */

/*
 * Zeros of `size` slices, to which the slices of values [n, ...] are added at the indices (int32 or
 * int64 [n]), like ed_unsorted_segment_sum; but the elements are made only when somebody reads
 * them. An index outside 0..size-1 is an error that names it.
 *
 * The gradient of ed_gather along the first axis is one. Sums of such gradients, ed_clip_by_norm,
 * ed_clip_by_global_norm and optimizers use the slices alone, so that the step of an embedding
 * costs what the batch touches. For everything else it is a tensor like any other.
 */
ed_tensor *ed_indexed_slices(ed_tensor *values, ed_tensor *indices, int64_t size);

/* Whether x is one; its values [n, ...] and its indices, int64 [n], in which one may come several
 * times. */
bool ed_is_indexed_slices(const ed_tensor *x);
ed_tensor *ed_slices_values(const ed_tensor *x);
ed_tensor *ed_slices_indices(const ed_tensor *x);

#pragma GCC visibility pop
#endif
