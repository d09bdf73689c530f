/* Reductions. ops.h says what holds for all. */
#ifndef EDDY_OPS_REDUCTION_H
#define EDDY_OPS_REDUCTION_H

#include "ops/op.h"
#include "tensor/tensor.h"

#pragma GCC visibility push(default)

/* axis: which to reduce, default all; none for ED_AXES(). keepdims: reduced
 * axes stay with size 1. */
#define ED_REDUCE_OPTIONS(FIELD, T)                                                                \
    FIELD(T, AXES, axis, ED_NO_LIST, ED_ANY, "which to reduce; default: all")                      \
    FIELD(T, BOOL, keepdims, false, ED_ANY, "keep reduced axes, with size 1")
ED_OPTIONS(ed_reduce_options, ED_REDUCE_OPTIONS);

/*
 * Sum and product (empty: 0 and 1; integers wrap), mean (of nothing NaN; of integers rounded
 * towards 0, of none an error), largest and smallest (of nothing an error; NaN if any is; ties
 * share the gradient equally). Sums are added pairwise: the error grows with the logarithm of the
 * count. The product's gradient is right when elements are 0.
 */
ed_tensor *ed_reduce_sum_with(ed_tensor *x, const ed_reduce_options *options);
ed_tensor *ed_reduce_mean_with(ed_tensor *x, const ed_reduce_options *options);
ed_tensor *ed_reduce_prod_with(ed_tensor *x, const ed_reduce_options *options);
ed_tensor *ed_reduce_max_with(ed_tensor *x, const ed_reduce_options *options);
ed_tensor *ed_reduce_min_with(ed_tensor *x, const ed_reduce_options *options);

/* Whether any / all of bool elements are true (of nothing: false, true). No gradient. */
ed_tensor *ed_reduce_any_with(ed_tensor *x, const ed_reduce_options *options);
ed_tensor *ed_reduce_all_with(ed_tensor *x, const ed_reduce_options *options);

/* ln of the sum of e^x without overflow; of nothing -inf. Floats. */
ed_tensor *ed_reduce_logsumexp_with(ed_tensor *x, const ed_reduce_options *options);

/*
 * Sum of (x - mean)^2 over n - correction, and its root; floats. Correction 1 gives the variance of
 * a sample, 0 that of all there is.
 */
#define ED_VARIANCE_OPTIONS(FIELD, T)                                                              \
    ED_REDUCE_OPTIONS(FIELD, T)                                                                    \
    FIELD(T, INT, correction, 0, ED_AT_LEAST(0), "what the divisor is less than the count")
ED_OPTIONS(ed_variance_options, ED_VARIANCE_OPTIONS);
ed_tensor *ed_reduce_variance_with(ed_tensor *x, const ed_variance_options *options);
ed_tensor *ed_reduce_std_with(ed_tensor *x, const ed_variance_options *options);

/*
 * Mean, and to *variance the mean of (x - mean)^2, in one pass; floats. Weighted: sums of x and of
 * (x - mean)^2 times the weights, over the sum of the weights, which broadcast against x.
 */
ed_tensor *ed_moments_with(ed_tensor *x, ed_tensor **variance, const ed_reduce_options *options);
ed_tensor *ed_weighted_moments_with(ed_tensor *x, ed_tensor *weights, ed_tensor **variance,
                                    const ed_reduce_options *options);

/*
 * What moments of parts are put together of: the number of elements of x that an output stands for,
 * a number of x's dtype; to *mean_ss and *variance_ss the sums of x - shift and of (x - shift)^2
 * (shift NULL: 0), which are more exact the nearer shift is to the mean. normalize_moments: mean
 * and *variance from such numbers.
 */
ed_tensor *ed_sufficient_statistics_with(ed_tensor *x, ed_tensor *shift, ed_tensor **mean_ss,
                                         ed_tensor **variance_ss, const ed_reduce_options *options);
ed_tensor *ed_normalize_moments(ed_tensor *counts, ed_tensor *mean_ss, ed_tensor *variance_ss,
                                ed_tensor *shift, ed_tensor **variance);

/*
 * Norm of x along the axes; floats. Of one axis, or all elements as one vector: ord not given or 2
 * is the Euclidean norm, INFINITY and -INFINITY the largest and smallest absolute value, another
 * p > 0 the root of order p of the sum of |x|^p. Of two axes, a matrix' rows and columns: not given
 * the Frobenius norm, 1 and -1 the largest and smallest sum of absolute values of a column,
 * INFINITY and -INFINITY of a row, 2 and -2 the largest and smallest singular value; `nuclear`:
 * their sum.
 * reduce_euclidean_norm takes any axes.
 */
#define ED_NORM_OPTIONS(FIELD, T)                                                                  \
    ED_REDUCE_OPTIONS(FIELD, T)                                                                    \
    FIELD(T, FLOAT, ord, __builtin_nan(""), ED_ANY,                                                \
          "order; NaN, the default: Euclidean, Frobenius")                                         \
    FIELD(T, BOOL, nuclear, false, ED_ANY, "of two axes, without ord: the sum of singular values")
ED_OPTIONS(ed_norm_options, ED_NORM_OPTIONS);
ed_tensor *ed_norm_with(ed_tensor *x, const ed_norm_options *options);
ed_tensor *ed_reduce_euclidean_norm_with(ed_tensor *x, const ed_reduce_options *options);

/* The sum of x^2, in one pass over x. */
ed_tensor *ed_reduce_sum_square_with(ed_tensor *x, const ed_reduce_options *options);

/* How many elements are not 0; dtype: default int64. No gradient. */
#define ED_COUNT_OPTIONS(FIELD, T)                                                                 \
    ED_REDUCE_OPTIONS(FIELD, T)                                                                    \
    FIELD(T, DTYPE, dtype, ED_INT64, ED_ANY, "of the result")
ED_OPTIONS(ed_count_options, ED_COUNT_OPTIONS);
ed_tensor *ed_count_nonzero_with(ed_tensor *x, const ed_count_options *options);

/* The share of zeros among the elements of x, a float32 (of nothing NaN). No gradient. */
ed_tensor *ed_zero_fraction(ed_tensor *x);

/* Whether no element of x, in row-major order, is less than the one before / each is larger; of one
 * element or none true. No gradient. */
ed_tensor *ed_is_non_decreasing(ed_tensor *x);
ed_tensor *ed_is_strictly_increasing(ed_tensor *x);

/*
 * Where q (0 to 1; of percentile 0 to 100) of the way lies through the sorted elements along the
 * axes. Between two elements the method decides: linear, lower, higher, midpoint, or nearest (of
 * halves the even one). median: q = 0.5 by midpoint. NaN if any element is; of nothing an error.
 * The gradient goes to the one or two elements that count. Of integers float64.
 */
#define ED_QUANTILE_OPTIONS(FIELD, T)                                                              \
    ED_REDUCE_OPTIONS(FIELD, T)                                                                    \
    FIELD(T, CHOICE, method, "linear",                                                             \
          ED_ONE_OF("linear", "lower", "higher", "midpoint", "nearest"), "between two elements")
ED_OPTIONS(ed_quantile_options, ED_QUANTILE_OPTIONS);
ed_tensor *ed_quantile_with(ed_tensor *x, double q, const ed_quantile_options *options);
ed_tensor *ed_percentile_with(ed_tensor *x, double q, const ed_quantile_options *options);
ed_tensor *ed_median_with(ed_tensor *x, const ed_reduce_options *options);

/*
 * Segments: slices of x with the same id are folded into one slice. ids, int32 or int64 [n], have
 * one id for each slice of x [n, ...]; the result is [last id + 1, ...]. They are sorted: an id
 * that is negative or less than the one before is an error that names the place. A segment without
 * slices is 0, its product 1. Means of floats; sqrt_n: the sum over the root of the number of
 * slices. Gradients as those of reduce_sum, mean, max, min, prod.
 */
ed_tensor *ed_segment_sum(ed_tensor *x, ed_tensor *ids);
ed_tensor *ed_segment_mean(ed_tensor *x, ed_tensor *ids);
ed_tensor *ed_segment_sqrt_n(ed_tensor *x, ed_tensor *ids);
ed_tensor *ed_segment_max(ed_tensor *x, ed_tensor *ids);
ed_tensor *ed_segment_min(ed_tensor *x, ed_tensor *ids);
ed_tensor *ed_segment_prod(ed_tensor *x, ed_tensor *ids);

/*
 * The same for ids in any order, whose shape is the beginning of x's: the result is [num_segments,
 * ...]. Slices with a negative id are left out; an id of num_segments or more is an error that
 * names it. Without slices the maximum is the dtype's lowest finite number and the minimum its
 * largest. sqrt_n: the sum over the root of the number of slices.
 */
ed_tensor *ed_unsorted_segment_sum(ed_tensor *x, ed_tensor *ids, int64_t num_segments);
ed_tensor *ed_unsorted_segment_mean(ed_tensor *x, ed_tensor *ids, int64_t num_segments);
ed_tensor *ed_unsorted_segment_max(ed_tensor *x, ed_tensor *ids, int64_t num_segments);
ed_tensor *ed_unsorted_segment_min(ed_tensor *x, ed_tensor *ids, int64_t num_segments);
ed_tensor *ed_unsorted_segment_prod(ed_tensor *x, ed_tensor *ids, int64_t num_segments);
ed_tensor *ed_unsorted_segment_sqrt_n(ed_tensor *x, ed_tensor *ids, int64_t num_segments);

/*
 * How often each integer from 0 on is in x, int32 or int64, or the sum of its weights, which have
 * the shape of x; NULL: no weights. There are as many bins as the largest integer asks for, at
 * least minlength and at most maxlength; what is beyond is not counted, and a negative integer is
 * an error that names it. The axes from `axis` on are counted together: x.shape[:axis] + [bins].
 * The dtype of weighted sums is that of the weights, for which there is a gradient.
 */
#define ED_BINCOUNT_OPTIONS(FIELD, T)                                                              \
    FIELD(T, INT, minlength, 0, ED_AT_LEAST(0), "number of bins, at least")                        \
    FIELD(T, INT, maxlength, -1, ED_AT_LEAST(-1), "number of bins, at most; -1: no limit")         \
    FIELD(T, DTYPE, dtype, ED_INT32, ED_ANY, "of the counts")                                      \
    FIELD(T, AXIS, axis, 0, ED_ANY, "the first axis that is counted; default: all are")            \
    FIELD(T, BOOL, binary_output, false, ED_ANY, "1 for an integer that is there, not the count")
ED_OPTIONS(ed_bincount_options, ED_BINCOUNT_OPTIONS);
ed_tensor *ed_bincount_with(ed_tensor *x, ed_tensor *weights, const ed_bincount_options *options);

/*
 * How often label i was predicted as j, [num_classes, num_classes], or the sum of the weights;
 * NULL: no weights. All have one shape. A class outside 0..num_classes-1 is an error that names it.
 */
#define ED_CONFUSION_MATRIX_OPTIONS(FIELD, T)                                                      \
    FIELD(T, INT, num_classes, 0, ED_AT_LEAST(0), "of labels; 0: as many as there are")            \
    FIELD(T, DTYPE, dtype, ED_INT32, ED_ANY, "of the result, to which weights are cast")
ED_OPTIONS(ed_confusion_matrix_options, ED_CONFUSION_MATRIX_OPTIONS);
ed_tensor *ed_confusion_matrix_with(ed_tensor *labels, ed_tensor *predictions, ed_tensor *weights,
                                    const ed_confusion_matrix_options *options);

/*
 * In which of nbins bins of equal width from low to high each element is (int32 or int64), and how
 * many elements each bin has: elements below are in the first bin, those above in the last. NaN is
 * an error. TensorFlow's value_range is (low, high).
 */
#define ED_HISTOGRAM_FIXED_WIDTH_OPTIONS(FIELD, T)                                                 \
    FIELD(T, INT, nbins, 100, ED_AT_LEAST(1), "number of bins")                                    \
    FIELD(T, DTYPE, dtype, ED_INT32, ED_ANY, "of the result: int32 or int64")
ED_OPTIONS(ed_histogram_fixed_width_options, ED_HISTOGRAM_FIXED_WIDTH_OPTIONS);
ed_tensor *ed_histogram_fixed_width_with(ed_tensor *x, double low, double high,
                                         const ed_histogram_fixed_width_options *options);
ed_tensor *ed_histogram_fixed_width_bins_with(ed_tensor *x, double low, double high,
                                              const ed_histogram_fixed_width_options *options);

/*
 * How many elements are in each bin between neighbours of the ascending edges [n + 1], as NumPy has
 * it: the lower edge belongs to a bin, to the last one the upper edge too. Elements outside, and
 * NaN, are not counted. int64 [n], or the sums of the weights, which have the shape of x; NULL: no
 * weights. density: over the sum of all and the width of the bin; a float. There is a gradient for
 * the weights.
 */
#define ED_HISTOGRAM_OPTIONS(FIELD, T)                                                             \
    FIELD(T, BOOL, density, false, ED_ANY, "density, whose integral is 1, and not counts")
ED_OPTIONS(ed_histogram_options, ED_HISTOGRAM_OPTIONS);
ed_tensor *ed_histogram_with(ed_tensor *x, ed_tensor *edges, ed_tensor *weights,
                             const ed_histogram_options *options);

/*
 * Covariance of variables with each other, from x [..., variables, observations] the matrices [...,
 * variables, variables]: sums of products of differences to the mean over the number of
 * observations less ddof. rowvar false: x [..., observations, variables]. Of rank 1, one variable:
 * rank 0. Floats.
 */
#define ED_COV_OPTIONS(FIELD, T)                                                                   \
    FIELD(T, BOOL, rowvar, true, ED_ANY, "variables are rows, not columns")                        \
    FIELD(T, INT, ddof, 1, ED_AT_LEAST(0), "what the divisor is less than the count")
ED_OPTIONS(ed_cov_options, ED_COV_OPTIONS);
ed_tensor *ed_cov_with(ed_tensor *x, const ed_cov_options *options);

/* Correlation of variables, -1 to 1: the covariance over both standard deviations. NaN for a
 * variable that is constant. */
#define ED_CORRCOEF_OPTIONS(FIELD, T)                                                              \
    FIELD(T, BOOL, rowvar, true, ED_ANY, "variables are rows, not columns")
ED_OPTIONS(ed_corrcoef_options, ED_CORRCOEF_OPTIONS);
ed_tensor *ed_corrcoef_with(ed_tensor *x, const ed_corrcoef_options *options);

/* Index (int64) of the largest / smallest along the axis, the first of equals; a NaN is never
 * chosen if there is anything else. Fails where the axis is empty. No gradient. */
#define ED_ARGMAX_OPTIONS(FIELD, T) FIELD(T, AXIS, axis, 0, ED_ANY, "along which")
ED_OPTIONS(ed_argmax_options, ED_ARGMAX_OPTIONS);
ed_tensor *ed_argmax_with(ed_tensor *x, const ed_argmax_options *options);
ed_tensor *ed_argmin_with(ed_tensor *x, const ed_argmax_options *options);

/*
 * The y with the least sum of (y - x)^2 whose elements along the axis do not increase, or do not
 * decrease. It consists of segments of equal elements, the means of x there; *segments: their
 * numbers, int32, from 0 on.
 */
#define ED_ISOTONIC_REGRESSION_OPTIONS(FIELD, T)                                                   \
    FIELD(T, BOOL, decreasing, true, ED_ANY, "y does not increase; else it does not decrease")     \
    FIELD(T, AXIS, axis, -1, ED_ANY, "along which")
ED_OPTIONS(ed_isotonic_regression_options, ED_ISOTONIC_REGRESSION_OPTIONS);
ed_tensor *ed_isotonic_regression_with(ed_tensor *x, ed_tensor **segments,
                                       const ed_isotonic_regression_options *options);

#pragma GCC visibility pop
#endif
