/* reduce_euclidean_norm, reduce_sum_square; norm and count_nonzero, which are compositions. */
#include "ops/matrices.h"
#include "ops/reductions.h"
#include <math.h>
#include <string.h>

/* ---- Norms ----------------------------------------------------------------------------------- */

/* Of all elements along the axes as one vector; p NaN: Euclidean. */
static ed_tensor *vector_norm(ed_tensor *x, double p, ed_ints axis, bool keepdims)
{
    if (isnan(p) || p == 2) return ed_reduce_euclidean_norm(x, .axis = axis, .keepdims = keepdims);
    x = ed_abs(x);
    if (p == INFINITY) return ed_reduce_max(x, .axis = axis, .keepdims = keepdims);
    if (p == -INFINITY) return ed_reduce_min(x, .axis = axis, .keepdims = keepdims);
    if (p == 1) return ed_reduce_sum(x, .axis = axis, .keepdims = keepdims);
    return ed_pow(ed_reduce_sum(ed_pow(x, p), .axis = axis, .keepdims = keepdims), 1 / p);
}

/* The sums of the absolute values along one of both axes, and the largest or smallest of them. */
static ed_tensor *matrix_norm(ed_tensor *x, double p, const int *axes, bool keepdims)
{
    const bool columns = fabs(p) == 1;
    const int64_t along = axes[!columns], other = axes[columns];
    ed_tensor *sums = ed_reduce_sum(ed_abs(x), .axis = {&along, 1}, .keepdims = true);
    ed_tensor *y = p > 0 ? ed_reduce_max(sums, .axis = {&other, 1}, .keepdims = true)
                         : ed_reduce_min(sums, .axis = {&other, 1}, .keepdims = true);
    return keepdims ? y : ed_squeeze(y, .axis = ED_AXES(along, other));
}

/* The largest or smallest singular value, or the sum of all; p NaN: the sum. */
static ed_tensor *spectral_norm(ed_tensor *x, double p, const int *axes, bool keepdims)
{
    int64_t perm[ED_MAX_RANK];
    const int rank = ed_rank(x), first = axes[0] < axes[1] ? axes[0] : axes[1];
    int n = 0;
    for (int d = 0; d < rank; d++)
        if (d != axes[0] && d != axes[1]) perm[n++] = d;
    perm[rank - 2] = axes[0], perm[rank - 1] = axes[1];
    ed_tensor *s = ed_svdvals(ed_transpose(x, .perm = {perm, rank}));
    ed_tensor *y = isnan(p) ? ed_reduce_sum(s, .axis = ED_AXES(-1))
                   : p > 0  ? ed_reduce_max(s, .axis = ED_AXES(-1))
                            : ed_reduce_min(s, .axis = ED_AXES(-1));
    return keepdims ? ed_expand_dims(ed_expand_dims(y, first), axes[0] + axes[1] - first) : y;
}

static bool norm_compose(ed_call *call)
{
    const ed_norm_options *o = call->attrs;
    ed_tensor *x = call->inputs[0];
    const double p = o->ord;
    if (o->nuclear && (!isnan(p) || !o->axis.values || o->axis.count != 2))
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "nuclear is of two axes, without ord; got axis %s and ord %g",
                            text_of_ints(o->axis.values, o->axis.values ? o->axis.count : 0).s, p);
    if (o->axis.values && o->axis.count == 2 && (!isnan(p) || o->nuclear)) {
        const int rank = ed_rank(x);
        int axes[2];
        unsigned mask;
        if (!ops_axes(call, o->axis, rank, &mask)) return false;
        for (int i = 0; i < 2; i++) axes[i] = tensor_axis(o->axis.values[i], rank);
        if (fabs(p) == 1 || isinf(p))
            return ed_call_result(call, 0, matrix_norm(x, p, axes, o->keepdims));
        if (fabs(p) == 2 || o->nuclear)
            return ed_call_result(call, 0, spectral_norm(x, p, axes, o->keepdims));
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "of two axes ord must be 1, -1, 2, -2, inf, -inf or not given "
                            "(Frobenius), got %g",
                            p);
    }
    if (o->axis.values && o->axis.count > 2 && !isnan(p))
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "axis must name one or two axes, got %s; without ord any number",
                            text_of_places(o->axis.values, o->axis.count).s);
    if (p <= 0 && p != -INFINITY)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "ord must be > 0, inf or -inf, got %g (ed_count_nonzero counts)", p);
    return ed_call_result(call, 0, vector_norm(x, p, o->axis, o->keepdims));
}

static double norm_of(const double *x, int64_t n, double p)
{
    double y = p == -INFINITY ? INFINITY : 0;
    for (int64_t i = 0; i < n; i++) {
        const double a = fabs(x[i]);
        if (isinf(p))
            y = isnan(a) || isnan(y) ? NAN : p > 0 ? fmax(y, a) : fmin(y, a);
        else
            y += isnan(p) || p == 2 ? a * a : pow(a, p);
    }
    return isinf(p) ? y : isnan(p) || p == 2 ? sqrt(y) : pow(y, 1 / p);
}

/* The largest or smallest singular value of x [n, n], for a NaN the sum of all; NaN without
 * memory. */
static double singular_of_group(const double *x, int64_t n, double p)
{
    double *a = memory_alloc((size_t)(n * n + n) * sizeof *a), y = isnan(p) && n == 0 ? 0 : NAN;
    if (!a || !n) goto done;
    memcpy(a, x, (size_t)(n * n) * sizeof *a);
    (void)matrix_singular(n, n, a, NULL, a + n * n);
    y = isnan(p) ? 0 : a[n * n + (p > 0 ? 0 : n - 1)];
    for (int64_t i = 0; isnan(p) && i < n; i++) y += a[n * n + i];
done:
    memory_free(a);
    return y;
}

/* The group is a matrix [rows, columns]; of the samples, square. */
static double norm_of_group(const double *x, int64_t n, const void *attrs)
{
    const ed_norm_options *o = attrs;
    if (!o->nuclear && (!o->axis.values || o->axis.count != 2 || isnan(o->ord)))
        return norm_of(x, n, o->ord);
    const int64_t side = (int64_t)sqrt((double)n), first = fabs(o->ord) == 1;
    const bool turned = o->axis.values[0] > o->axis.values[1];
    double y = o->ord > 0 ? 0 : INFINITY;
    if (fabs(o->ord) == 2 || o->nuclear) return singular_of_group(x, side, o->ord);
    for (int64_t i = 0; i < side; i++) {
        double sum = 0;
        for (int64_t j = 0; j < side; j++)
            sum += fabs(first != turned ? x[j * side + i] : x[i * side + j]);
        y = isnan(sum) || isnan(y) ? NAN : o->ord > 0 ? fmax(y, sum) : fmin(y, sum);
    }
    return y;
}

static bool norm_reference(const ed_call *call)
{
    return reduce_reference(call, norm_of_group);
}

#define NORMED(...) ED_ATTRS(ED_NORM_OPTIONS, ed_norm_options, __VA_ARGS__)

ED_OP(norm) = {
    .name = "norm",
    .doc = "norm of x along the axes: of one or all a vector's, of two a matrix's",
    .operands = X(ED_SET_FLOAT),
    ED_OP_ATTRS(ED_NORM_OPTIONS, ed_norm_options),
    .compose = norm_compose,
    .reference = norm_reference,
    .samples = ED_SAMPLES(
        {.inputs = {ED_DISTINCT_IN(0.5, 2, 3, 4)}},
        {.inputs = {ED_DISTINCT_IN(-2, -0.5, 3, 4)}, .attrs = NORMED(.ord = 1)},
        {.inputs = {ED_DISTINCT_IN(0.5, 2, 3, 4)},
         .attrs = NORMED(.ord = INFINITY, .axis = ED_SAMPLE_INTS(0))},
        {.inputs = {ED_DISTINCT_IN(0.5, 2, 3, 4)},
         .attrs = NORMED(.ord = -INFINITY, .axis = ED_SAMPLE_INTS(-1), .keepdims = true)},
        {.inputs = {ED_DISTINCT_IN(0.5, 2, 4)}, .attrs = NORMED(.ord = 2.5)},
        {.inputs = {ED_DISTINCT_IN(0.5, 2, 2, 3, 3)},
         .attrs = NORMED(.ord = 1, .axis = ED_SAMPLE_INTS(-2, -1))},
        {.inputs = {ED_DISTINCT_IN(0.5, 2, 2, 3, 3)},
         .attrs = NORMED(.ord = -INFINITY, .axis = ED_SAMPLE_INTS(-1, -2), .keepdims = true)},
        {.inputs = {ED_DISTINCT_IN(0.5, 2, 3, 3, 2)},
         .attrs = NORMED(.ord = 2, .axis = ED_SAMPLE_INTS(-2, -3), .keepdims = true)},
        {.inputs = {ED_DISTINCT_IN(0.5, 2, 2, 3, 3)},
         .attrs = NORMED(.ord = -2, .axis = ED_SAMPLE_INTS(-2, -1))},
        {.inputs = {ED_MATRICES_IN(2, 3, 3)},
         .attrs = NORMED(.nuclear = true, .axis = ED_SAMPLE_INTS(-1, -2), .keepdims = true)}),
};

ed_tensor *ed_norm_with(ed_tensor *x, const ed_norm_options *options)
{
    return CALL_OP(norm, options, x);
}

KERNEL(reduce_euclidean_norm, REDUCE_EUCLIDEAN)

/* dx = x dy / y; NaN where y is 0, as in TensorFlow. */
static bool reduce_euclidean_norm_gradient(const ed_gradient_call *g)
{
    ED_SCOPE;
    ed_tensor *share = ed_div(g->dy[0], g->outputs[0]);
    g->dx[0] = ed_keep(ed_mul(g->inputs[0], reduce_kept(g, share)));
    return true;
}

PLAIN(reduce_euclidean_norm, norm_of(x, n, 2))

REDUCTION(reduce_euclidean_norm, "y = root of the sum of x^2 over the axes", ED_SET_FLOAT,
          reduce_infer, SAVES_X, SAVES_Y, .gradient = reduce_euclidean_norm_gradient,
          .samples = SAMPLES(ED_SAMPLE_IN, 0.5, 2))

/* ---- Sum of squares -------------------------------------------------------------------------- */

KERNEL(reduce_sum_square, REDUCE_SQUARES)
PLAIN_LOOP(reduce_sum_square, 0, y + x[i] * x[i])

/* dx = 2 x dy */
static bool reduce_sum_square_gradient(const ed_gradient_call *g)
{
    ED_SCOPE;
    g->dx[0] = ed_keep(ed_mul(g->inputs[0], reduce_kept(g, ed_mul(g->dy[0], 2.0))));
    return true;
}

REDUCTION(reduce_sum_square, "y = sum of x^2 over the axes", ED_SET_FLOAT, reduce_infer, SAVES_X,
          .gradient = reduce_sum_square_gradient, .samples = SAMPLES(ED_SAMPLE_IN, -2, 2))

/* ---- count_nonzero --------------------------------------------------------------------------- */

static bool count_nonzero_compose(ed_call *call)
{
    const ed_count_options *o = call->attrs;
    ed_tensor *x = call->inputs[0];
    const ed_dtype dtype = o->dtype ? o->dtype : ED_INT64;
    const ed_dtype sums = ed_size(x) <= INT32_MAX ? ED_INT32 : ED_INT64; /* half the memory */
    if (ed_dtype_of(x) != ED_BOOL) x = ed_not_equal(x, 0);
    ed_tensor *y = ed_reduce_sum(ed_cast(x, sums), .axis = o->axis, .keepdims = o->keepdims);
    return ed_call_result(call, 0, ed_cast(y, dtype));
}

static double nonzeros_of(const double *x, int64_t n, const void *attrs)
{
    double y = 0;
    for (int64_t i = 0; i < n; i++) y += x[i] != 0;
    return ((const ed_count_options *)attrs)->dtype == ED_BOOL ? y != 0 : y;
}

static bool count_nonzero_reference(const ed_call *call)
{
    return reduce_reference(call, nonzeros_of);
}

#define COUNTING(...) ED_ATTRS(ED_COUNT_OPTIONS, ed_count_options, __VA_ARGS__)

ED_OP(count_nonzero) = {
    .name = "count_nonzero",
    .doc = "how many elements of x over the axes are not 0",
    .operands = X(ED_SET_NUMBER | ED_SET_BOOL),
    ED_OP_ATTRS(ED_COUNT_OPTIONS, ed_count_options),
    .compose = count_nonzero_compose,
    .no_gradient = "a count does not change gradually",
    .reference = count_nonzero_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4)}},
                          {.inputs = {ED_SAMPLE_IN(0, 1, 2, 3, 2)},
                           .attrs = COUNTING(.axis = ED_SAMPLE_INTS(0, -1), .dtype = ED_INT32)},
                          {.inputs = {ED_SAMPLE_IN(0, 1, 3, 4)},
                           .attrs = COUNTING(.axis = ED_SAMPLE_INTS(1), .keepdims = true)}),
};

ed_tensor *ed_count_nonzero_with(ed_tensor *x, const ed_count_options *options)
{
    return CALL_OP(count_nonzero, options, x);
}
