/*
 * What can be done with values. What computes is an op (ops/op.h) or made of ops, and takes tensors
 * and variables.
 *
 * Where nothing else is said: operands of one call agree in dtype; the result has that dtype;
 * shapes broadcast as NumPy's do; the result is a new tensor; arithmetic takes float32, float64,
 * int32, int64 and uint8 (integers wrap around), mathematical functions float32 and float64; NaN
 * goes in and comes out; gradients of both orders exist. Functions whose name is also a macro take
 * numbers through the macro: ed_mul(x, 2.0); (ed_mul)(x, y) is the plain function. Options are
 * named: ed_reduce_sum(x, .axis = ED_AXES(-1), .keepdims = true); the plain function ..._with takes
 * a pointer to the options, NULL for the defaults.
 */
#ifndef EDDY_OPS_H
#define EDDY_OPS_H

#include "ops/op.h"
#include "tensor/tensor.h"

#pragma GCC visibility push(default)

/* ---- Making tensors (ops/create.c) ----------------------------------------------------------- */

/* Options of ed_zeros, ed_ones and ed_linspace. */
#define ED_CREATE_OPTIONS(FIELD, T) FIELD(T, DTYPE, dtype, ED_FLOAT32, ED_ANY, "of the result")
ED_OPTIONS(ed_create_options, ED_CREATE_OPTIONS);

/* All 0 / all 1, of any dtype. */
#define ed_zeros(shape, ...)                                                                       \
    ED_WITH_OPTIONS(ed_zeros_with(shape, &ed_options_), ED_CREATE_OPTIONS, ed_create_options,      \
                    ##__VA_ARGS__)
#define ed_ones(shape, ...)                                                                        \
    ED_WITH_OPTIONS(ed_ones_with(shape, &ed_options_), ED_CREATE_OPTIONS, ed_create_options,       \
                    ##__VA_ARGS__)
ed_tensor *ed_zeros_with(ed_ints shape, const ed_create_options *options);
ed_tensor *ed_ones_with(ed_ints shape, const ed_create_options *options);

/* All `value`, a number or a tensor of rank 0. */
#define ED_FULL_OPTIONS(FIELD, T)                                                                  \
    FIELD(T, DTYPE, dtype, ED_DTYPE_NONE, ED_ANY, "default: the value's; of a C number float32")
ED_OPTIONS(ed_full_options, ED_FULL_OPTIONS);
#define ed_full(shape, value, ...)                                                                 \
    ED_WITH_OPTIONS(ed_full_with(shape, ED_TENSOR(value), &ed_options_), ED_FULL_OPTIONS,          \
                    ed_full_options, ##__VA_ARGS__)
ed_tensor *ed_full_with(ed_ints shape, ed_tensor *value, const ed_full_options *options);

/* Zeros / ones of x's shape and dtype. */
ed_tensor *ed_zeros_like(ed_tensor *x);
#define ed_zeros_like(x) ED_AT(ed_zeros_like(ED_TENSOR(x)))
ed_tensor *ed_ones_like(ed_tensor *x);
#define ed_ones_like(x) ED_AT(ed_ones_like(ED_TENSOR(x)))

/* The identity [rows, columns] (columns: default rows), ones on the diagonal. */
#define ED_EYE_OPTIONS(FIELD, T)                                                                   \
    FIELD(T, INT, columns, -1, ED_AT_LEAST(-1), "default, -1: as many as rows")                    \
    FIELD(T, DTYPE, dtype, ED_FLOAT32, ED_ANY, "of the result")
ED_OPTIONS(ed_eye_options, ED_EYE_OPTIONS);
#define ed_eye(rows, ...)                                                                          \
    ED_WITH_OPTIONS(ed_eye_with(rows, &ed_options_), ED_EYE_OPTIONS, ed_eye_options, ##__VA_ARGS__)
ed_tensor *ed_eye_with(int64_t rows, const ed_eye_options *options);

/*
 * start, start + delta, ... up to but without limit, as many as ceil((limit - start) / delta).
 * Default dtype: if all three are integers, int32 or (up to 2^53) int64; else float32. Fails for
 * delta 0, NaN, or more elements than memory holds.
 */
#define ED_RANGE_OPTIONS(FIELD, T)                                                                 \
    FIELD(T, FLOAT, delta, 1, ED_FINITE, "from each number to the next; not 0")                    \
    FIELD(T, DTYPE, dtype, ED_DTYPE_NONE, ED_ANY,                                                  \
          "default: int32 or int64 if all three are integers, else float32")
ED_OPTIONS(ed_range_options, ED_RANGE_OPTIONS);
#define ed_range(start, limit, ...)                                                                \
    ED_WITH_OPTIONS(ed_range_with(start, limit, &ed_options_), ED_RANGE_OPTIONS, ed_range_options, \
                    ##__VA_ARGS__)
ed_tensor *ed_range_with(double start, double limit, const ed_range_options *options);

/* num evenly spaced numbers from start to stop, both included; float32 or float64. num 0 gives an
 * empty tensor. */
#define ed_linspace(start, stop, num, ...)                                                         \
    ED_WITH_OPTIONS(ed_linspace_with(start, stop, num, &ed_options_), ED_CREATE_OPTIONS,           \
                    ed_create_options, ##__VA_ARGS__)
ed_tensor *ed_linspace_with(double start, double stop, int64_t num,
                            const ed_create_options *options);

/* ---- Elementwise arithmetic (ops/arithmetic.simd.c) ------------------------------------------ */

/* a + b, a - b, a * b. */
ed_tensor *ed_add(ed_tensor *a, ed_tensor *b);
ed_tensor *ed_sub(ed_tensor *a, ed_tensor *b);
ed_tensor *ed_mul(ed_tensor *a, ed_tensor *b);
#define ed_add(a, b) ED_AT(ed_add(ED_TENSOR(a), ED_TENSOR(b)))
#define ed_sub(a, b) ED_AT(ed_sub(ED_TENSOR(a), ED_TENSOR(b)))
#define ed_mul(a, b) ED_AT(ed_mul(ED_TENSOR(a), ED_TENSOR(b)))

/* a / b for floats; integers are refused: cast them, or use ed_floor_div. */
ed_tensor *ed_div(ed_tensor *a, ed_tensor *b);
#define ed_div(a, b) ED_AT(ed_div(ED_TENSOR(a), ED_TENSOR(b)))

/*
 * floor(a / b), and a - floor(a / b) * b, whose sign is the divisor's. Integer division by 0 fails;
 * the smallest integer by -1 wraps. floor_div has no gradient.
 */
ed_tensor *ed_floor_div(ed_tensor *a, ed_tensor *b);
ed_tensor *ed_floor_mod(ed_tensor *a, ed_tensor *b);
#define ed_floor_div(a, b) ED_AT(ed_floor_div(ED_TENSOR(a), ED_TENSOR(b)))
#define ed_floor_mod(a, b) ED_AT(ed_floor_mod(ED_TENSOR(a), ED_TENSOR(b)))

/* a to the power of b, floats. da = dy b a^(b-1), db = dy y log a where a > 0, else 0. */
ed_tensor *ed_pow(ed_tensor *a, ed_tensor *b);
#define ed_pow(a, b) ED_AT(ed_pow(ED_TENSOR(a), ED_TENSOR(b)))

/* The larger / the smaller; NaN if either is. On a tie the gradient goes to a. */
ed_tensor *ed_maximum(ed_tensor *a, ed_tensor *b);
ed_tensor *ed_minimum(ed_tensor *a, ed_tensor *b);
#define ed_maximum(a, b) ED_AT(ed_maximum(ED_TENSOR(a), ED_TENSOR(b)))
#define ed_minimum(a, b) ED_AT(ed_minimum(ED_TENSOR(a), ED_TENSOR(b)))

/* (a - b)^2; the angle of the point (x = b, y = a) in -pi..pi, floats. */
ed_tensor *ed_squared_difference(ed_tensor *a, ed_tensor *b);
ed_tensor *ed_atan2(ed_tensor *a, ed_tensor *b);
#define ed_squared_difference(a, b) ED_AT(ed_squared_difference(ED_TENSOR(a), ED_TENSOR(b)))
#define ed_atan2(a, b)              ED_AT(ed_atan2(ED_TENSOR(a), ED_TENSOR(b)))

/* -x (not for uint8); |x| with gradient 0 at 0; -1, 0 or 1 with gradient 0; x^2; 1/x, floats. */
ed_tensor *ed_neg(ed_tensor *x);
ed_tensor *ed_abs(ed_tensor *x);
ed_tensor *ed_sign(ed_tensor *x);
ed_tensor *ed_square(ed_tensor *x);
ed_tensor *ed_reciprocal(ed_tensor *x);

/* Rounding to integers, floats: down, up, to the nearest with ties to even. No gradient. */
ed_tensor *ed_floor(ed_tensor *x);
ed_tensor *ed_ceil(ed_tensor *x);
ed_tensor *ed_round(ed_tensor *x);

/*
 * x held within low..high: minimum(x, high), then maximum with low. The gradient passes where low
 * <= x <= high and is 0 elsewhere (for NaN too); low and high are numbers. Fails if low > high or
 * either is NaN.
 */
ed_tensor *ed_clip(ed_tensor *x, double low, double high);

/* ---- Mathematical functions (ops/math.simd.c): float32 and float64 --------------------------- */

/* e^x, e^x - 1, ln x, ln(1 + x), log2 x; gradients of ln at 0 are infinite. */
ed_tensor *ed_exp(ed_tensor *x);
ed_tensor *ed_expm1(ed_tensor *x);
ed_tensor *ed_log(ed_tensor *x);
ed_tensor *ed_log1p(ed_tensor *x);
ed_tensor *ed_log2(ed_tensor *x);

/* sqrt x, 1/sqrt x; where the upstream gradient is 0, so is theirs, even at 0. */
ed_tensor *ed_sqrt(ed_tensor *x);
ed_tensor *ed_rsqrt(ed_tensor *x);

/* Circular and hyperbolic functions and their inverses, in radians. */
ed_tensor *ed_sin(ed_tensor *x);
ed_tensor *ed_cos(ed_tensor *x);
ed_tensor *ed_tan(ed_tensor *x);
ed_tensor *ed_asin(ed_tensor *x);
ed_tensor *ed_acos(ed_tensor *x);
ed_tensor *ed_atan(ed_tensor *x);
ed_tensor *ed_sinh(ed_tensor *x);
ed_tensor *ed_cosh(ed_tensor *x);
ed_tensor *ed_tanh(ed_tensor *x);
ed_tensor *ed_asinh(ed_tensor *x);
ed_tensor *ed_acosh(ed_tensor *x);
ed_tensor *ed_atanh(ed_tensor *x);

/* The error function, and 1 - erf x. */
ed_tensor *ed_erf(ed_tensor *x);
ed_tensor *ed_erfc(ed_tensor *x);

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

/* ---- Comparisons and logic (ops/compare.simd.c): results are bool, without gradient ---------- */

/* Comparisons of numbers; equal and not_equal take all but 16-bit floats. NaN equals nothing. */
ed_tensor *ed_equal(ed_tensor *a, ed_tensor *b);
ed_tensor *ed_not_equal(ed_tensor *a, ed_tensor *b);
ed_tensor *ed_less(ed_tensor *a, ed_tensor *b);
ed_tensor *ed_less_equal(ed_tensor *a, ed_tensor *b);
ed_tensor *ed_greater(ed_tensor *a, ed_tensor *b);
ed_tensor *ed_greater_equal(ed_tensor *a, ed_tensor *b);
#define ed_equal(a, b)         ED_AT(ed_equal(ED_TENSOR(a), ED_TENSOR(b)))
#define ed_not_equal(a, b)     ED_AT(ed_not_equal(ED_TENSOR(a), ED_TENSOR(b)))
#define ed_less(a, b)          ED_AT(ed_less(ED_TENSOR(a), ED_TENSOR(b)))
#define ed_less_equal(a, b)    ED_AT(ed_less_equal(ED_TENSOR(a), ED_TENSOR(b)))
#define ed_greater(a, b)       ED_AT(ed_greater(ED_TENSOR(a), ED_TENSOR(b)))
#define ed_greater_equal(a, b) ED_AT(ed_greater_equal(ED_TENSOR(a), ED_TENSOR(b)))

/* Logic on bool. */
ed_tensor *ed_logical_and(ed_tensor *a, ed_tensor *b);
ed_tensor *ed_logical_or(ed_tensor *a, ed_tensor *b);
ed_tensor *ed_logical_xor(ed_tensor *a, ed_tensor *b);
ed_tensor *ed_logical_not(ed_tensor *x);

/* Floats: what each element is. */
ed_tensor *ed_is_nan(ed_tensor *x);
ed_tensor *ed_is_inf(ed_tensor *x);
ed_tensor *ed_is_finite(ed_tensor *x);

/* condition ? a : b with broadcasting; condition is bool, a and b of any one dtype. A NaN in the
 * branch not taken poisons no gradient. */
ed_tensor *ed_where(ed_tensor *condition, ed_tensor *a, ed_tensor *b);
#define ed_where(condition, a, b) ED_AT(ed_where(condition, ED_TENSOR(a), ED_TENSOR(b)))

/* ---- Conversion (ops/cast.simd.c) ------------------------------------------------------------ */

/*
 * x in another dtype, any to any. Floats to integers truncate towards 0; NaN becomes 0 and what is
 * out of range the nearest integer there is. Integers to other integers wrap around. Anything
 * but 0 is true. Floats round to nearest, ties to even, once. A view of x if it has that dtype. The
 * gradient is cast back; casts to or from integers and bool carry none.
 */
ed_tensor *ed_cast(ed_tensor *x, ed_dtype dtype);

/* ---- Matrix products (ops/matmul.c) ---------------------------------------------------------- */

/*
 * y[..., i, j] = sum over k of a[..., i, k] b[..., k, j]; float32, float64. Ranks of at least 2;
 * leading dimensions broadcast. With transpose_a or transpose_b the last two dimensions of that
 * operand change places first. Views of any strides go without a copy where the product can read
 * them. k = 0 gives zeros.
 */
#define ED_MATMUL_OPTIONS(FIELD, T)                                                                \
    FIELD(T, BOOL, transpose_a, false, ED_ANY, "swap the last two axes of a")                      \
    FIELD(T, BOOL, transpose_b, false, ED_ANY, "swap the last two axes of b")
ED_OPTIONS(ed_matmul_options, ED_MATMUL_OPTIONS);
#define ed_matmul(a, b, ...)                                                                       \
    ED_WITH_OPTIONS(ed_matmul_with(a, b, &ed_options_), ED_MATMUL_OPTIONS, ed_matmul_options,      \
                    ##__VA_ARGS__)
ed_tensor *ed_matmul_with(ed_tensor *a, ed_tensor *b, const ed_matmul_options *options);

/*
 * activation(x w + bias): x [..., in], w [in, out], bias [out] or NULL, activation "" or "relu"
 * (NULL: none). One pass; what a dense layer computes.
 */
ed_tensor *ed_linear(ed_tensor *x, ed_tensor *w, ed_tensor *bias, const char *activation);

/* x + bias along the last axis: x [..., n], bias [n]. */
ed_tensor *ed_bias_add(ed_tensor *x, ed_tensor *bias);

/* ---- Reductions (ops/reductions.c) ----------------------------------------------------------- */

/* axis: which to reduce, default all; none for ED_AXES(). keepdims: reduced
 * axes stay with size 1. */
#define ED_REDUCE_OPTIONS(FIELD, T)                                                                \
    FIELD(T, AXES, axis, ED_NO_LIST, ED_ANY, "which to reduce; default: all")                      \
    FIELD(T, BOOL, keepdims, false, ED_ANY, "keep reduced axes, with size 1")
ED_OPTIONS(ed_reduce_options, ED_REDUCE_OPTIONS);

/*
 * Sum and product (empty: 0 and 1; integers wrap), mean (floats; of nothing NaN), largest and
 * smallest (of nothing an error; NaN if any is; ties share the gradient equally). Sums are added
 * pairwise: the error grows with the logarithm of the count. The product's gradient is right when
 * elements are 0.
 */
#define ed_reduce_sum(x, ...)                                                                      \
    ED_WITH_OPTIONS(ed_reduce_sum_with(x, &ed_options_), ED_REDUCE_OPTIONS, ed_reduce_options,     \
                    ##__VA_ARGS__)
#define ed_reduce_mean(x, ...)                                                                     \
    ED_WITH_OPTIONS(ed_reduce_mean_with(x, &ed_options_), ED_REDUCE_OPTIONS, ed_reduce_options,    \
                    ##__VA_ARGS__)
#define ed_reduce_prod(x, ...)                                                                     \
    ED_WITH_OPTIONS(ed_reduce_prod_with(x, &ed_options_), ED_REDUCE_OPTIONS, ed_reduce_options,    \
                    ##__VA_ARGS__)
#define ed_reduce_max(x, ...)                                                                      \
    ED_WITH_OPTIONS(ed_reduce_max_with(x, &ed_options_), ED_REDUCE_OPTIONS, ed_reduce_options,     \
                    ##__VA_ARGS__)
#define ed_reduce_min(x, ...)                                                                      \
    ED_WITH_OPTIONS(ed_reduce_min_with(x, &ed_options_), ED_REDUCE_OPTIONS, ed_reduce_options,     \
                    ##__VA_ARGS__)
ed_tensor *ed_reduce_sum_with(ed_tensor *x, const ed_reduce_options *options);
ed_tensor *ed_reduce_mean_with(ed_tensor *x, const ed_reduce_options *options);
ed_tensor *ed_reduce_prod_with(ed_tensor *x, const ed_reduce_options *options);
ed_tensor *ed_reduce_max_with(ed_tensor *x, const ed_reduce_options *options);
ed_tensor *ed_reduce_min_with(ed_tensor *x, const ed_reduce_options *options);

/* Whether any / all of bool elements are true (of nothing: false, true). No gradient. */
#define ed_reduce_any(x, ...)                                                                      \
    ED_WITH_OPTIONS(ed_reduce_any_with(x, &ed_options_), ED_REDUCE_OPTIONS, ed_reduce_options,     \
                    ##__VA_ARGS__)
#define ed_reduce_all(x, ...)                                                                      \
    ED_WITH_OPTIONS(ed_reduce_all_with(x, &ed_options_), ED_REDUCE_OPTIONS, ed_reduce_options,     \
                    ##__VA_ARGS__)
ed_tensor *ed_reduce_any_with(ed_tensor *x, const ed_reduce_options *options);
ed_tensor *ed_reduce_all_with(ed_tensor *x, const ed_reduce_options *options);

/* ln of the sum of e^x without overflow; of nothing -inf. Floats. */
#define ed_reduce_logsumexp(x, ...)                                                                \
    ED_WITH_OPTIONS(ed_reduce_logsumexp_with(x, &ed_options_), ED_REDUCE_OPTIONS,                  \
                    ed_reduce_options, ##__VA_ARGS__)
ed_tensor *ed_reduce_logsumexp_with(ed_tensor *x, const ed_reduce_options *options);

/* Mean of (x - mean)^2, and its root; floats. */
#define ed_reduce_variance(x, ...)                                                                 \
    ED_WITH_OPTIONS(ed_reduce_variance_with(x, &ed_options_), ED_REDUCE_OPTIONS,                   \
                    ed_reduce_options, ##__VA_ARGS__)
#define ed_reduce_std(x, ...)                                                                      \
    ED_WITH_OPTIONS(ed_reduce_std_with(x, &ed_options_), ED_REDUCE_OPTIONS, ed_reduce_options,     \
                    ##__VA_ARGS__)
ed_tensor *ed_reduce_variance_with(ed_tensor *x, const ed_reduce_options *options);
ed_tensor *ed_reduce_std_with(ed_tensor *x, const ed_reduce_options *options);

/* Index (int64) of the largest / smallest along the axis, the first of equals; a NaN is never
 * chosen if there is anything else. Fails where the axis is empty. No gradient. */
#define ED_ARGMAX_OPTIONS(FIELD, T) FIELD(T, AXIS, axis, 0, ED_ANY, "along which")
ED_OPTIONS(ed_argmax_options, ED_ARGMAX_OPTIONS);
#define ed_argmax(x, ...)                                                                          \
    ED_WITH_OPTIONS(ed_argmax_with(x, &ed_options_), ED_ARGMAX_OPTIONS, ed_argmax_options,         \
                    ##__VA_ARGS__)
#define ed_argmin(x, ...)                                                                          \
    ED_WITH_OPTIONS(ed_argmin_with(x, &ed_options_), ED_ARGMAX_OPTIONS, ed_argmax_options,         \
                    ##__VA_ARGS__)
ed_tensor *ed_argmax_with(ed_tensor *x, const ed_argmax_options *options);
ed_tensor *ed_argmin_with(ed_tensor *x, const ed_argmax_options *options);

/* ---- Shapes (ops/shape.c, ops/join.c): every dtype; views where strides can say it ----------- */

/* The same elements in row-major order in another shape, one size of which may be -1: whatever is
 * left. A view where possible. */
ed_tensor *ed_reshape(ed_tensor *x, ed_ints shape);

/* Axes in another order; perm not given reverses them. A view. */
#define ED_TRANSPOSE_OPTIONS(FIELD, T)                                                             \
    FIELD(T, AXES, perm, ED_NO_LIST, ED_ANY, "the axes in their new order; default: reversed")
ED_OPTIONS(ed_transpose_options, ED_TRANSPOSE_OPTIONS);
#define ed_transpose(x, ...)                                                                       \
    ED_WITH_OPTIONS(ed_transpose_with(x, &ed_options_), ED_TRANSPOSE_OPTIONS,                      \
                    ed_transpose_options, ##__VA_ARGS__)
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
#define ed_slice(x, ...)                                                                           \
    ED_WITH_OPTIONS(ed_slice_with(x, &ed_options_), ED_SLICE_OPTIONS, ed_slice_options,            \
                    ##__VA_ARGS__)
ed_tensor *ed_slice_with(ed_tensor *x, const ed_slice_options *options);

/* x[i] along the first axis, which goes; i may be negative. A view. */
ed_tensor *ed_index(ed_tensor *x, int64_t i);

/* A new axis of size 1 at `axis` (0..rank, or negative from the end). A view. */
ed_tensor *ed_expand_dims(ed_tensor *x, int64_t axis);

/* Without the axes of size 1, or without those named, which must have size 1. A view. */
#define ED_SQUEEZE_OPTIONS(FIELD, T)                                                               \
    FIELD(T, AXES, axis, ED_NO_LIST, ED_ANY, "which to remove; default: all of size 1")
ED_OPTIONS(ed_squeeze_options, ED_SQUEEZE_OPTIONS);
#define ed_squeeze(x, ...)                                                                         \
    ED_WITH_OPTIONS(ed_squeeze_with(x, &ed_options_), ED_SQUEEZE_OPTIONS, ed_squeeze_options,      \
                    ##__VA_ARGS__)
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
#define ed_concat(list, ...)                                                                       \
    ED_WITH_OPTIONS(ed_concat_with(list, &ed_options_), ED_CONCAT_OPTIONS, ed_concat_options,      \
                    ##__VA_ARGS__)
#define ed_stack(list, ...)                                                                        \
    ED_WITH_OPTIONS(ed_stack_with(list, &ed_options_), ED_CONCAT_OPTIONS, ed_concat_options,       \
                    ##__VA_ARGS__)
ed_tensor *ed_concat_with(ed_list *list, const ed_concat_options *options);
ed_tensor *ed_stack_with(ed_list *list, const ed_concat_options *options);

/* Cut along an axis (default 0) into `count` equal parts / into parts of the given sizes, one of
 * which may be -1 / into its slices. Views, which the list holds. */
#define ed_split(x, count, ...)                                                                    \
    ED_WITH_OPTIONS(ed_split_with(x, count, &ed_options_), ED_CONCAT_OPTIONS, ed_concat_options,   \
                    ##__VA_ARGS__)
#define ed_split_sizes(x, sizes, ...)                                                              \
    ED_WITH_OPTIONS(ed_split_sizes_with(x, sizes, &ed_options_), ED_CONCAT_OPTIONS,                \
                    ed_concat_options, ##__VA_ARGS__)
#define ed_unstack(x, ...)                                                                         \
    ED_WITH_OPTIONS(ed_unstack_with(x, &ed_options_), ED_CONCAT_OPTIONS, ed_concat_options,        \
                    ##__VA_ARGS__)
ed_list *ed_split_with(ed_tensor *x, int64_t count, const ed_concat_options *options);
ed_list *ed_split_sizes_with(ed_tensor *x, ed_ints sizes, const ed_concat_options *options);
ed_list *ed_unstack_with(ed_tensor *x, const ed_concat_options *options);

/* x repeated multiples[i] times along axis i. */
ed_tensor *ed_tile(ed_tensor *x, ed_ints multiples);

/* before[i] and after[i] elements of `value` around axis i. */
#define ED_PAD_OPTIONS(FIELD, T)                                                                   \
    FIELD(T, INTS, before, ED_NO_LIST, ED_ANY, "elements added before each axis; default: none")   \
    FIELD(T, INTS, after, ED_NO_LIST, ED_ANY, "elements added after each axis; default: none")     \
    FIELD(T, FLOAT, value, 0, ED_ANY, "of the added elements")
ED_OPTIONS(ed_pad_options, ED_PAD_OPTIONS);
#define ed_pad(x, ...)                                                                             \
    ED_WITH_OPTIONS(ed_pad_with(x, &ed_options_), ED_PAD_OPTIONS, ed_pad_options, ##__VA_ARGS__)
ed_tensor *ed_pad_with(ed_tensor *x, const ed_pad_options *options);

/* In reverse order along the axes. A view. */
ed_tensor *ed_reverse(ed_tensor *x, ed_ints axes);

/* ---- Indexing (ops/index.c) ------------------------------------------------------------------ */

/*
 * Slices of x along an axis (default 0) at the indices (int32 or int64 of any shape): shape
 * x.shape[:axis] + indices.shape + x.shape[axis+1:]. An index outside 0..size-1 is an error that
 * names it.
 */
#define ED_GATHER_OPTIONS(FIELD, T) FIELD(T, AXIS, axis, 0, ED_ANY, "along which")
ED_OPTIONS(ed_gather_options, ED_GATHER_OPTIONS);
#define ed_gather(x, indices, ...)                                                                 \
    ED_WITH_OPTIONS(ed_gather_with(x, indices, &ed_options_), ED_GATHER_OPTIONS,                   \
                    ed_gather_options, ##__VA_ARGS__)
ed_tensor *ed_gather_with(ed_tensor *x, ed_tensor *indices, const ed_gather_options *options);

/*
 * Ones where the new last axis (of size depth) equals the index, zeros elsewhere; indices outside
 * 0..depth-1 give all zeros. dtype: default float32. No gradient.
 */
#define ED_ONE_HOT_OPTIONS(FIELD, T) FIELD(T, DTYPE, dtype, ED_FLOAT32, ED_ANY, "of the result")
ED_OPTIONS(ed_one_hot_options, ED_ONE_HOT_OPTIONS);
#define ed_one_hot(indices, depth, ...)                                                            \
    ED_WITH_OPTIONS(ed_one_hot_with(indices, depth, &ed_options_), ED_ONE_HOT_OPTIONS,             \
                    ed_one_hot_options, ##__VA_ARGS__)
ed_tensor *ed_one_hot_with(ed_tensor *indices, int64_t depth, const ed_one_hot_options *options);

/*
 * Zeros of size `count` along the first axis, to which the slices of x are added at their ids
 * (int32 or int64 [x.shape[0]]): what gather's gradient is made of. Ids outside are an error.
 */
ed_tensor *ed_unsorted_segment_sum(ed_tensor *x, ed_tensor *ids, int64_t count);

/* ---- Softmax and cross-entropy (ops/softmax.simd.c, ops/cross_entropy.simd.c): floats -------- */

/* e^x / sum e^x along the axis (default -1), and its logarithm, without overflow. Ranks from 1. */
#define ED_SOFTMAX_OPTIONS(FIELD, T) FIELD(T, AXIS, axis, -1, ED_ANY, "along which")
ED_OPTIONS(ed_softmax_options, ED_SOFTMAX_OPTIONS);
#define ed_softmax(x, ...)                                                                         \
    ED_WITH_OPTIONS(ed_softmax_with(x, &ed_options_), ED_SOFTMAX_OPTIONS, ed_softmax_options,      \
                    ##__VA_ARGS__)
#define ed_log_softmax(x, ...)                                                                     \
    ED_WITH_OPTIONS(ed_log_softmax_with(x, &ed_options_), ED_SOFTMAX_OPTIONS, ed_softmax_options,  \
                    ##__VA_ARGS__)
ed_tensor *ed_softmax_with(ed_tensor *x, const ed_softmax_options *options);
ed_tensor *ed_log_softmax_with(ed_tensor *x, const ed_softmax_options *options);

/* -sum labels log_softmax(logits) along the last axis: labels and logits [..., classes], result
 * [...]. Gradients for both. */
ed_tensor *ed_softmax_cross_entropy(ed_tensor *labels, ed_tensor *logits);

/* The same for labels (int32 or int64 [...]) that name the class; a label outside 0..classes-1 is
 * an error that names it. */
ed_tensor *ed_sparse_softmax_cross_entropy(ed_tensor *labels, ed_tensor *logits);

/* max(x, 0) - x z + log(1 + e^-|x|) for logits x and labels z, element by element. Gradients for
 * both. */
ed_tensor *ed_sigmoid_cross_entropy(ed_tensor *labels, ed_tensor *logits);

/* ---- Convolution and pooling (ops/conv.c, ops/pool.simd.c): float32, float64 ----------------- */

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
#define ed_conv2d(x, kernel, ...)                                                                  \
    ED_WITH_OPTIONS(ed_conv2d_with(x, kernel, &ed_options_), ED_CONV2D_OPTIONS, ed_conv2d_options, \
                    ##__VA_ARGS__)
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
#define ed_max_pool2d(x, ...)                                                                      \
    ED_WITH_OPTIONS(ed_max_pool2d_with(x, &ed_options_), ED_POOL2D_OPTIONS, ed_pool2d_options,     \
                    ##__VA_ARGS__)
#define ed_avg_pool2d(x, ...)                                                                      \
    ED_WITH_OPTIONS(ed_avg_pool2d_with(x, &ed_options_), ED_POOL2D_OPTIONS, ed_pool2d_options,     \
                    ##__VA_ARGS__)
ed_tensor *ed_max_pool2d_with(ed_tensor *x, const ed_pool2d_options *options);
ed_tensor *ed_avg_pool2d_with(ed_tensor *x, const ed_pool2d_options *options);

/* ---- Normalization (ops/norm.simd.c) --------------------------------------------------------- */

/*
 * (x - mean) / sqrt(variance + epsilon) gamma + beta over all axes but the last, with x [...,
 * channels], gamma and beta [channels]. mean and variance of the batch go to *mean and *variance
 * ([channels]; NULL: not wanted); they carry no gradient of their own.
 */
ed_tensor *ed_batch_norm(ed_tensor *x, ed_tensor *gamma, ed_tensor *beta, double epsilon,
                         ed_tensor **mean, ed_tensor **variance);

/* ---- Random numbers (ops/random.c): Philox 4x32-10 with TensorFlow's streams ----------------- */

/* A source of random numbers: a counter and a key, which every draw advances. */
typedef struct ed_generator ed_generator;

/* TensorFlow's Generator.from_seed: the same seed gives the same numbers there and here. */
ed_generator *ed_generator_from_seed(uint64_t seed);

/* The state, [counter low, counter high, key], as TensorFlow's checkpoints hold it / setting it. */
void ed_generator_state(const ed_generator *generator, uint64_t state[3]);
bool ed_generator_set_state(ed_generator *generator, const uint64_t state[3]);

/*
 * The process's default source as an object, for a checkpoint to hold: restored, it goes on with
 * the draws that would have come next. As a generator it is the same as none given.
 */
ed_generator *ed_default_generator(void);

/*
 * The seed of this process's default source, which is used where no generator is given: from here
 * on the draws repeat. Without it the first draw takes a seed from the system. Draws are what
 * tf.random.* give after tf.random.set_seed.
 */
void ed_set_seed(int64_t seed);

/* Where the random numbers of a call come from. */
#define ED_GENERATOR_OPTION(FIELD, T)                                                              \
    FIELD(T, GENERATOR, generator, NULL, ED_ANY, "of the numbers; default: the process's source")

/* For high: 1 for floats; integers need one. */
#define ED_NOT_GIVEN (-__DBL_MAX__)

/*
 * Uniform numbers, low <= x < high: floats, or integers of int32 and int64.
 */
#define ED_RANDOM_UNIFORM_VALUES(FIELD, T)                                                         \
    FIELD(T, DTYPE, dtype, ED_FLOAT32, ED_ANY, "of the result")                                    \
    FIELD(T, FLOAT, low, 0, ED_FINITE, "smallest value")                                           \
    FIELD(T, FLOAT, high, ED_NOT_GIVEN, ED_FINITE, "above the largest value; default for floats 1")
#define ED_RANDOM_UNIFORM_OPTIONS(FIELD, T)                                                        \
    ED_RANDOM_UNIFORM_VALUES(FIELD, T) ED_GENERATOR_OPTION(FIELD, T)
ED_OPTIONS(ed_random_uniform_options, ED_RANDOM_UNIFORM_OPTIONS);
#define ed_random_uniform(shape, ...)                                                              \
    ED_WITH_OPTIONS(ed_random_uniform_with(shape, &ed_options_), ED_RANDOM_UNIFORM_OPTIONS,        \
                    ed_random_uniform_options, ##__VA_ARGS__)
ed_tensor *ed_random_uniform_with(ed_ints shape, const ed_random_uniform_options *options);

/* Normal numbers, floats / normal numbers of which those 2 stddev or more off the mean are drawn
 * again. */
#define ED_RANDOM_NORMAL_VALUES(FIELD, T)                                                          \
    FIELD(T, DTYPE, dtype, ED_FLOAT32, ED_ANY, "of the result")                                    \
    FIELD(T, FLOAT, mean, 0, ED_FINITE, "mean")                                                    \
    FIELD(T, FLOAT, stddev, 1, ED_AT_LEAST(0), "standard deviation")
#define ED_RANDOM_NORMAL_OPTIONS(FIELD, T)                                                         \
    ED_RANDOM_NORMAL_VALUES(FIELD, T) ED_GENERATOR_OPTION(FIELD, T)
ED_OPTIONS(ed_random_normal_options, ED_RANDOM_NORMAL_OPTIONS);
#define ed_random_normal(shape, ...)                                                               \
    ED_WITH_OPTIONS(ed_random_normal_with(shape, &ed_options_), ED_RANDOM_NORMAL_OPTIONS,          \
                    ed_random_normal_options, ##__VA_ARGS__)
#define ed_random_truncated_normal(shape, ...)                                                     \
    ED_WITH_OPTIONS(ed_random_truncated_normal_with(shape, &ed_options_),                          \
                    ED_RANDOM_NORMAL_OPTIONS, ed_random_normal_options, ##__VA_ARGS__)
ed_tensor *ed_random_normal_with(ed_ints shape, const ed_random_normal_options *options);
ed_tensor *ed_random_truncated_normal_with(ed_ints shape, const ed_random_normal_options *options);

ED_OPTIONS(ed_generator_options, ED_GENERATOR_OPTION);

/* x in a random order along its first axis. */
#define ed_random_shuffle(x, ...)                                                                  \
    ED_WITH_OPTIONS(ed_random_shuffle_with(x, &ed_options_), ED_GENERATOR_OPTION,                  \
                    ed_generator_options, ##__VA_ARGS__)
ed_tensor *ed_random_shuffle_with(ed_tensor *x, const ed_generator_options *options);

/* x / (1 - rate) where a uniform number >= rate, else 0; 0 <= rate < 1. The gradient draws the same
 * numbers again and stores no mask. */
#define ed_dropout(x, rate, ...)                                                                   \
    ED_WITH_OPTIONS(ed_dropout_with(x, rate, &ed_options_), ED_GENERATOR_OPTION,                   \
                    ed_generator_options, ##__VA_ARGS__)
ed_tensor *ed_dropout_with(ed_tensor *x, double rate, const ed_generator_options *options);

/* ---- Variables (ops/variable.c) -------------------------------------------------------------- */

/* x; gradients flow through. */
ed_tensor *ed_identity(ed_tensor *x);
#define ed_identity(x) ED_AT(ed_identity(ED_TENSOR(x)))

/* A variable's present value as a tensor, which later assignments leave alone and through which
 * gradients flow to the variable; a tensor is returned as it is. */
ed_tensor *ed_value(ed_tensor *variable);

/* x, of which no gradient flows back. */
ed_tensor *ed_stop_gradient(ed_tensor *x);

/*
 * Writing a variable is not differentiable: tapes see later reads only. All these return the
 * variable. A variable that nobody else holds (a tape that saved its value, a view of it) is
 * changed in place, another gets a buffer of its own.
 */

/* variable = value, of the same shape. Nothing is copied if the value is contiguous. */
ed_tensor *ed_assign(ed_tensor *variable, ed_tensor *value);
#define ed_assign(variable, value) ED_AT(ed_assign(variable, ED_TENSOR(value)))

/* variable += value; value broadcasts to the variable's shape. */
ed_tensor *ed_assign_add(ed_tensor *variable, ed_tensor *value);
#define ed_assign_add(variable, value) ED_AT(ed_assign_add(variable, ED_TENSOR(value)))

/* variable -= value; value broadcasts to the variable's shape. */
ed_tensor *ed_assign_sub(ed_tensor *variable, ed_tensor *value);
#define ed_assign_sub(variable, value) ED_AT(ed_assign_sub(variable, ED_TENSOR(value)))

/* variable[begin : end : step] = value, the slice as in ed_slice; value broadcasts to its shape:
 * ed_assign_slice(v, 0, .begin = ED_INTS(2)). */
#define ed_assign_slice(variable, value, ...)                                                      \
    ED_WITH_OPTIONS(ed_assign_slice_with(variable, ED_TENSOR(value), &ed_options_),                \
                    ED_SLICE_OPTIONS, ed_slice_options, ##__VA_ARGS__)
ed_tensor *ed_assign_slice_with(ed_tensor *variable, ed_tensor *value,
                                const ed_slice_options *options);

/* variable[mask] = value: the mask, bool, has the variable's leading axes; value broadcasts to
 * [n, ...], n being the number of its true elements and ... the axes after it. */
ed_tensor *ed_assign_masked(ed_tensor *variable, ed_tensor *mask, ed_tensor *value);
#define ed_assign_masked(variable, mask, value)                                                    \
    ED_AT(ed_assign_masked(variable, mask, ED_TENSOR(value)))

/* variable = variable momentum + value (1 - momentum), of the same shape; 0 <= momentum <= 1. */
ed_tensor *ed_assign_moving_average(ed_tensor *variable, ed_tensor *value, double momentum);
#define ed_assign_moving_average(variable, value, momentum)                                        \
    ED_AT(ed_assign_moving_average(variable, ED_TENSOR(value), momentum))

/* The same for many variables of one dtype: all of them or, failing, none. */
bool ed_assign_moving_averages(ed_list *variables, ed_list *values, double momentum);

#pragma GCC visibility pop
#endif
