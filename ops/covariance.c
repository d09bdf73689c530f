/*
 * cov: y = d d^T / (n - ddof), d = x - mean of x; corrcoef: y[i, j] = cov[i, j] / sqrt(cov[i, i]
 * cov[j, j]). Compositions.
 */
#include "ops/execute.h"
#include "ops/ops.h"
#include <math.h>

/* The last two axes change places. */
static ed_tensor *swapped(ed_tensor *x)
{
    int64_t perm[ED_MAX_RANK];
    if (!x) return NULL;
    const int rank = ed_rank(x);
    for (int d = 0; d < rank; d++) perm[d] = d < rank - 2 ? d : 2 * rank - 3 - d;
    return ed_transpose(x, .perm = {perm, rank});
}

/* x as [..., variables, observations]; of rank 1 [1, observations]. NULL with an error. */
static ed_tensor *variables(const ed_call *call, bool rowvar)
{
    ed_tensor *x = call->inputs[0];
    const int rank = ed_rank(x);
    if (rank == 0)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "x must have rank >= 1, got %s",
                            text_of_tensor(tensor_read(x)).s),
               NULL;
    if (rank == 1) return ed_reshape(x, ED_INTS(1, ed_dim(x, 0)));
    return rowvar ? x : swapped(x);
}

/* [..., variables, variables]: sums of products of differences to the mean. */
static ed_tensor *products(ed_tensor *x)
{
    ed_tensor *d = ed_sub(x, ed_reduce_mean(x, .axis = ED_AXES(-1), .keepdims = true));
    return ed_matmul(d, d, .transpose_b = true);
}

/* A matrix of one variable of rank 1 as a number. */
static ed_tensor *as_given(const ed_call *call, ed_tensor *y)
{
    return ed_rank(call->inputs[0]) == 1 ? ed_reshape(y, ED_SHAPE()) : y;
}

static bool cov_compose(ed_call *call)
{
    const ed_cov_options *o = call->attrs;
    ed_tensor *x = variables(call, o->rowvar);
    if (!x) return false;
    const double n = (double)(ed_dim(x, -1) - o->ddof);
    return ed_call_result(call, 0, as_given(call, ed_div(products(x), n > 0 ? n : 0)));
}

static bool corrcoef_compose(ed_call *call)
{
    const ed_corrcoef_options *o = call->attrs;
    ed_tensor *x = variables(call, o->rowvar);
    if (!x) return false;
    ed_tensor *d = ed_sub(x, ed_reduce_mean(x, .axis = ED_AXES(-1), .keepdims = true));
    ed_tensor *sums = ed_reduce_sum_square(d, .axis = ED_AXES(-1), .keepdims = true);
    ed_tensor *lengths = ed_sqrt(sums), *across = swapped(lengths);
    ed_tensor *y = ed_div(ed_div(ed_matmul(d, d, .transpose_b = true), lengths), across);
    return ed_call_result(call, 0, as_given(call, ed_clip(y, -1, 1)));
}

/* One product a time; corr: over the roots of both own ones. */
static bool covariances(const ed_call *call, bool rowvar, double ddof, bool corr)
{
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    const int64_t rows = x->rank > 1 ? x->shape[x->rank - 2] : 1, columns = x->shape[x->rank - 1];
    const bool flip = x->rank > 1 && !rowvar;
    const int64_t v = flip ? columns : rows, n = flip ? rows : columns, by = flip ? v : 1,
                  next = flip ? 1 : n;
    for (int64_t o = 0; o < y->size; o++) {
        const double *all = (const double *)x->data + o / (v * v) * v * n;
        const double *a = all + o / v % v * next, *b = all + o % v * next;
        double mean_a = 0, mean_b = 0, ab = 0, aa = 0, bb = 0;
        for (int64_t i = 0; i < n; i++)
            mean_a += a[i * by] / (double)n, mean_b += b[i * by] / (double)n;
        for (int64_t i = 0; i < n; i++) {
            const double p = a[i * by] - mean_a, q = b[i * by] - mean_b;
            ab += p * q, aa += p * p, bb += q * q;
        }
        const double r = ab / sqrt(aa) / sqrt(bb);
        ((double *)y->data)[o] = !corr   ? ab / fmax((double)n - ddof, 0)
                                 : r > 1 ? 1
                                         : (r < -1 ? -1 : r);
    }
    return true;
}

static bool cov_reference(const ed_call *call)
{
    const ed_cov_options *o = call->attrs;
    return covariances(call, o->rowvar, (double)o->ddof, false);
}

static bool corrcoef_reference(const ed_call *call)
{
    return covariances(call, ((const ed_corrcoef_options *)call->attrs)->rowvar, 0, true);
}

ED_OP(cov) = {
    .name = "cov",
    .doc = "covariance of variables with each other",
    .operands = {{"x", ED_SET_FLOAT, 'T'}},
    ED_OP_ATTRS(ED_COV_OPTIONS, ed_cov_options),
    .compose = cov_compose,
    .reference = cov_reference,
    .samples =
        ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 5)}}, {.inputs = {ED_SAMPLE_IN(-2, 2, 7)}},
                   {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 6, 3)},
                    .attrs = ED_ATTRS(ED_COV_OPTIONS, ed_cov_options, .rowvar = false, .ddof = 0)}),
};

ed_tensor *ed_cov_with(ed_tensor *x, const ed_cov_options *options)
{
    return CALL_OP(cov, options, x);
}

ED_OP(corrcoef) = {
    .name = "corrcoef",
    .doc = "correlation of variables with each other, -1 to 1",
    .operands = {{"x", ED_SET_FLOAT, 'T'}},
    ED_OP_ATTRS(ED_CORRCOEF_OPTIONS, ed_corrcoef_options),
    .compose = corrcoef_compose,
    .reference = corrcoef_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 5)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 6, 3)},
                           .attrs = ED_ATTRS(ED_CORRCOEF_OPTIONS, ed_corrcoef_options,
                                             .rowvar = false)}),
};

ed_tensor *ed_corrcoef_with(ed_tensor *x, const ed_corrcoef_options *options)
{
    return CALL_OP(corrcoef, options, x);
}
