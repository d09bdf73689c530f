/* eigh_tridiagonal: a composition of eigh, of the whole matrices. */
#include "ops/matrices.h"
#include "ops/ops.h"
#include <string.h>

static bool check_diagonals(const ed_call *call)
{
    const ed_ints alpha = ed_shape(call->inputs[0]), beta = ed_shape(call->inputs[1]);
    const int last = alpha.count - 1;
    if (last >= 0 && beta.count == alpha.count &&
        !memcmp(alpha.values, beta.values, (size_t)last * sizeof *alpha.values) &&
        beta.values[last] == (alpha.values[last] > 0 ? alpha.values[last] - 1 : 0))
        return true;
    return ed_call_fail(
        call, ED_INVALID_ARGUMENT, "alpha must be [..., n] and beta [..., n - 1], got %s and %s",
        text_of_ints(alpha.values, alpha.count).s, text_of_ints(beta.values, beta.count).s);
}

/* The indices of the first and the last eigenvalue, for select "i" alone. */
static bool check_range(const ed_call *call)
{
    const ed_eigh_tridiagonal_options *o = call->attrs;
    const ed_ints range = o->select_range;
    const int64_t n = ed_dim(call->inputs[0], -1);
    if (strcmp(o->select, "i"))
        return !range.values ||
               ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "select_range is for select \"i\", not for \"%s\"", o->select);
    if (range.count == 2 && range.values[0] >= 0 && range.values[1] >= range.values[0] &&
        range.values[1] < n)
        return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT,
                        "select_range must be two indices first <= last in 0..%lld, got %s",
                        (long long)n - 1, text_of_ints(range.values, range.count).s);
}

/* x[..., first : first + count]. */
static ed_tensor *selected(ed_tensor *x, int64_t first, int64_t count)
{
    return ed_strided_slice(x, ED_ELLIPSIS, ED_RANGE(first, first + count));
}

static bool eigh_tridiagonal_compose(ed_call *call)
{
    const ed_eigh_tridiagonal_options *o = call->attrs;
    ed_tensor *alpha = call->inputs[0], *beta = call->inputs[1], *v = NULL;
    if (!check_diagonals(call) || !check_range(call)) return false;
    const int64_t n = ed_dim(alpha, -1);
    ed_tensor *a = ed_diag(alpha);
    if (n > 1) a = ed_add(a, ed_diag(beta, .k = ED_INTS(-1)));
    ed_tensor *w = ed_eigh(a, &v);
    if (!strcmp(o->select, "i")) {
        const int64_t first = o->select_range.values[0];
        const int64_t count = o->select_range.values[1] - first + 1;
        w = selected(w, first, count);
        v = selected(v, first, count);
    }
    return ed_call_result(call, 0, w) && ed_call_result(call, 1, v);
}

/* Of samples with all eigenvalues; of the vectors what is unique, a / n. */
static bool eigh_tridiagonal_reference(const ed_call *call)
{
    const ed_tensor *alpha = call->inputs[0], *v = call->outputs[1];
    const int64_t n = alpha->shape[alpha->rank - 1];
    double *a = memory_alloc((size_t)(n * n) * sizeof *a);
    for (int64_t m = 0; a && v->size && m < matrix_count(v); m++) {
        memset(a, 0, (size_t)(n * n) * sizeof *a);
        for (int64_t i = 0; i < n; i++) a[i * (n + 1)] = ((double *)alpha->data)[m * n + i];
        for (int64_t i = 0; i + 1 < n; i++)
            a[i * (n + 1) + 1] = a[(i + 1) * (n + 1) - 1] =
                ((double *)call->inputs[1]->data)[m * (n - 1) + i];
        for (int64_t e = 0; e < n * n; e++) ((double *)matrix_at(v, m))[e] = a[e] / (double)n;
        matrix_eigenvalues(n, a, (double *)call->outputs[0]->data + m * n);
    }
    memory_free(a);
    return a;
}

/* v diag(w) v^T, over n as for eigh. */
static bool eigh_tridiagonal_unique(ed_tensor **outputs)
{
    ed_tensor *v = outputs[1];
    const int64_t n = ed_dim(v, -1);
    ed_tensor *w = ed_div(outputs[0], (double)(n > 0 ? n : 1));
    outputs[1] = ed_matmul(ed_mul(v, ed_expand_dims(w, -2)), v, .transpose_b = true);
    return outputs[1];
}

ED_OP(eigh_tridiagonal) = {
    .name = "eigh_tridiagonal",
    .doc = "eigenvalues and eigenvectors of symmetric tridiagonal matrices",
    .operands = {{"alpha", ED_SET_FLOAT, 'T'}, {"beta", ED_SET_FLOAT, 'T'}},
    .results = ED_RESULTS({.name = "values"}, {.name = "vectors"}),
    ED_OP_ATTRS(ED_EIGH_TRIDIAGONAL_OPTIONS, ed_eigh_tridiagonal_options),
    .compose = eigh_tridiagonal_compose,
    .reference = eigh_tridiagonal_reference,
    .unique = eigh_tridiagonal_unique,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 4), ED_SAMPLE_IN(0.5, 2, 3)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3), ED_SAMPLE_IN(0.5, 2, 2, 2)}}),
};

ed_tensor *ed_eigh_tridiagonal_with(ed_tensor *alpha, ed_tensor *beta, ed_tensor **vectors,
                                    const ed_eigh_tridiagonal_options *options)
{
    return ops_call_into(&ed_op_eigh_tridiagonal, (ed_tensor *const[]){alpha, beta}, 2, options,
                         (ed_tensor * *const[]){vectors});
}
