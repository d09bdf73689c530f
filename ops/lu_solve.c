/*
 * What the factors of lu are for: lu_solve, lu_matrix_inverse, lu_reconstruct. Compositions. p says
 * which row of a each row of L U is: L U x = b[p], and row i of L U goes to row p[i] of a.
 */
#include "ops/matrices.h"
#include "ops/ops.h"
#include <string.h>

/* Fails unless operands 0 and 1 are factors [..., n, n] and rows [..., n] of the same batch. */
static bool check_factors(const ed_call *call)
{
    const ed_ints lu = ed_shape(call->inputs[0]), p = ed_shape(call->inputs[1]);
    if (!matrix_check_square(call, 0)) return false;
    if (p.count == lu.count - 1 && !memcmp(p.values, lu.values, (size_t)p.count * sizeof *p.values))
        return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT,
                        "lu must be [..., n, n] and p [..., n], got %s and %s",
                        text_of_ints(lu.values, lu.count).s, text_of_ints(p.values, p.count).s);
}

/* L: the lower triangle of the factors, with ones as its diagonal. */
static ed_tensor *lower_of(ed_tensor *lu)
{
    const ed_ints diagonal = {ed_shape(lu).values, ed_rank(lu) - 1};
    return ed_set_diag(ed_tril(lu), ed_ones(diagonal, .dtype = ed_dtype_of(lu)));
}

/* x with L U x = rows. */
static ed_tensor *solve_factored(ed_tensor *lu, ed_tensor *rows)
{
    ed_tensor *y = ed_triangular_solve(lower_of(lu), rows);
    return ed_triangular_solve(lu, y, .lower = false);
}

/* ---- lu_solve -------------------------------------------------------------------------------- */

/* The rows of b that p says, for each matrix of the factors. */
static ed_tensor *permuted(ed_tensor *b, ed_tensor *p)
{
    int64_t shape[ED_MAX_RANK];
    const int rank = ed_rank(p) + 1, missing = rank - ed_rank(b);
    for (int d = 0; d < rank; d++) shape[d] = d < missing ? 1 : ed_dim(b, d - missing);
    if (missing > 0) b = ed_reshape(b, (ed_ints){shape, rank});
    for (int d = 0; d < -missing; d++) p = ed_expand_dims(p, 0);
    return ed_take_along_axis(b, ed_expand_dims(p, -1), .axis = -2);
}

static bool lu_solve_compose(ed_call *call)
{
    ed_tensor *lu = call->inputs[0], *b = call->inputs[2];
    if (!check_factors(call) || !matrix_check(call, 2)) return false;
    if (ed_dim(b, -2) != ed_dim(lu, -1))
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "b must be [..., n, k] for lu [..., n, n]: lu is %s, b is %s",
                            text_of_tensor(tensor_read(lu)).s, text_of_tensor(tensor_read(b)).s);
    return ed_call_result(call, 0, solve_factored(lu, permuted(b, call->inputs[1])));
}

/* x [n, k] of one matrix of the factors, b being columns of the identity where it is NULL. */
static void plain_solve(int64_t n, const double *lu, const double *p, const double *b, int64_t k,
                        double *x)
{
    for (int64_t j = 0; j < k; j++) {
        for (int64_t i = 0; i < n; i++) {
            const int64_t row = (int64_t)p[i];
            double sum = b ? b[row * k + j] : (double)(row == j);
            for (int64_t l = 0; l < i; l++) sum -= lu[i * n + l] * x[l * k + j];
            x[i * k + j] = sum;
        }
        for (int64_t i = n - 1; i >= 0; i--) {
            for (int64_t l = i + 1; l < n; l++) x[i * k + j] -= lu[i * n + l] * x[l * k + j];
            x[i * k + j] /= lu[i * n + i];
        }
    }
}

/* Of the samples the factors have all leading dimensions. */
static bool lu_solve_reference(const ed_call *call)
{
    const ed_tensor *lu = call->inputs[0], *y = call->outputs[0];
    const ed_tensor *b = call->n_inputs > 2 ? call->inputs[2] : NULL;
    const int64_t n = matrix_columns(lu);
    for (int64_t i = 0; y->size && i < matrix_count(y); i++)
        plain_solve(n, matrix_of(lu, y, i), (const double *)call->inputs[1]->data + i * n,
                    b ? matrix_of(b, y, i) : NULL, matrix_columns(y), matrix_at(y, i));
    return true;
}

/* The factors, and rows of them. */
#define LU_OPERANDS                                                                                \
    {"lu", ED_SET_FLOAT, 'T'},                                                                     \
    {                                                                                              \
        "p", ED_SET_INDEX, 'I'                                                                     \
    }

ED_OP(lu_solve) = {
    .name = "lu_solve",
    .doc = "x with a x = b, by the factors of a",
    .operands = {LU_OPERANDS, {"b", ED_SET_FLOAT, 'T'}},
    .compose = lu_solve_compose,
    .reference = lu_solve_reference,
    .samples = ED_SAMPLES(
        {.inputs = {ED_MATRICES_IN(3, 3), ED_SAMPLE_IN(0, 2, 3), ED_SAMPLE_IN(-1, 1, 3, 2)}},
        {.inputs = {ED_MATRICES_IN(2, 2, 2), ED_SAMPLE_IN(0, 1, 2, 2), ED_SAMPLE_IN(-1, 1, 2, 1)}}),
};

ed_tensor *ed_lu_solve(ed_tensor *lu, ed_tensor *p, ed_tensor *b)
{
    return CALL_OP(lu_solve, NULL, lu, p, b);
}

/* ---- lu_matrix_inverse ----------------------------------------------------------------------- */

static bool lu_matrix_inverse_compose(ed_call *call)
{
    ed_tensor *lu = call->inputs[0];
    if (!check_factors(call)) return false;
    ed_tensor *b = matrix_eye(ed_dim(lu, -1), lu);
    return ed_call_result(call, 0, solve_factored(lu, permuted(b, call->inputs[1])));
}

ED_OP(lu_matrix_inverse) = {
    .name = "lu_matrix_inverse",
    .doc = "the inverse of a, by its factors",
    .operands = {LU_OPERANDS},
    .compose = lu_matrix_inverse_compose,
    .reference = lu_solve_reference,
    .samples = ED_SAMPLES({.inputs = {ED_MATRICES_IN(3, 3), ED_SAMPLE_IN(0, 2, 3)}},
                          {.inputs = {ED_MATRICES_IN(2, 2, 2), ED_SAMPLE_IN(0, 1, 2, 2)}}),
};

ed_tensor *ed_lu_matrix_inverse(ed_tensor *lu, ed_tensor *p)
{
    return CALL_OP(lu_matrix_inverse, NULL, lu, p);
}

/* ---- lu_reconstruct -------------------------------------------------------------------------- */

static bool lu_reconstruct_compose(ed_call *call)
{
    ed_tensor *lu = call->inputs[0];
    if (!check_factors(call)) return false;
    ed_tensor *product = ed_matmul(lower_of(lu), ed_triu(lu));
    ed_tensor *rows = ed_expand_dims(call->inputs[1], -1);
    return ed_call_result(call, 0,
                          ed_put_along_axis(ed_zeros_like(product), rows, product, .axis = -2));
}

/* Rows that p does not have are 0. */
static bool lu_reconstruct_reference(const ed_call *call)
{
    const ed_tensor *y = call->outputs[0];
    const int64_t n = y->size ? matrix_columns(y) : 0;
    memset(y->data, 0, (size_t)y->size * sizeof(double));
    for (int64_t e = 0; e < y->size; e++) {
        const int64_t i = e / n % n, j = e % n;
        const double *lu = (const double *)call->inputs[0]->data + e / n / n * n * n;
        const int64_t row = (int64_t)((const double *)call->inputs[1]->data)[e / n];
        double sum = 0;
        for (int64_t k = 0; k < n; k++)
            sum += (k < i ? lu[i * n + k] : (double)(k == i)) * (k <= j ? lu[k * n + j] : 0);
        ((double *)y->data)[(e / n / n * n + row) * n + j] = sum;
    }
    return true;
}

ED_OP(lu_reconstruct) = {
    .name = "lu_reconstruct",
    .doc = "a, from its factors",
    .operands = {LU_OPERANDS},
    .compose = lu_reconstruct_compose,
    .reference = lu_reconstruct_reference,
    .samples = ED_SAMPLES({.inputs = {ED_MATRICES_IN(3, 3), ED_SAMPLE_IN(0, 2, 3)}},
                          {.inputs = {ED_MATRICES_IN(2, 2, 2), ED_SAMPLE_IN(0, 1, 2, 2)}}),
};

ed_tensor *ed_lu_reconstruct(ed_tensor *lu, ed_tensor *p)
{
    return CALL_OP(lu_reconstruct, NULL, lu, p);
}
