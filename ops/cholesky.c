/* cholesky, and what its factor gives: cholesky_solve and logdet. */
#include "ops/matrices.h"
#include "ops/ops.h"
#include "tensor/threads.h"
#include <math.h>
#include <string.h>

/* ---- cholesky -------------------------------------------------------------------------------- */

static bool cholesky_infer(ed_call *call)
{
    return matrix_check_square(call, 0) && ops_infer_like(call);
}

enum { COPIED = HARD(1, 32768) }; /* numbers that a thread copies at a time */

/* A, of which the lower triangle is copied, and the factor. */
typedef struct lower {
    int64_t n;
    size_t size;
    ed_dtype dtype;
    const char *a;
    char *l;
    bool failed; /* a number of it is not finite */
} lower;

static void copy_lower(int64_t first, int64_t last, int worker, void *user)
{
    (void)worker;
    lower *l = user;
    for (int64_t i = first; i < last; i++) {
        const size_t at = (size_t)(i * l->n) * l->size;
        if (!matrix_copy_finite(l->dtype, l->a + at, i + 1, l->l + at))
            __atomic_store_n(&l->failed, true, __ATOMIC_RELAXED);
    }
}

/* What is above the diagonal, and lost until then. */
static void clear_upper(int64_t first, int64_t last, int worker, void *user)
{
    (void)worker;
    const lower *l = user;
    for (int64_t i = first; i < last; i++)
        memset(l->l + (size_t)(i * l->n + i + 1) * l->size, 0, (size_t)(l->n - i - 1) * l->size);
}

static int64_t cholesky_one(const ed_call *call, int64_t i)
{
    const ed_tensor *y = call->outputs[0];
    const int64_t n = matrix_rows(y), rows = COPIED / n + 1;
    void *to = matrix_at(y, i);
    lower l = {n, dtype_size(y->dtype), y->dtype, matrix_at(call->inputs[0], i), to, false};
    threads_run(n, rows, copy_lower, &l);
    if (l.failed) return MATRIX_NOT_FINITE;
    const int64_t code =
        y->dtype == ED_FLOAT32 ? factor_cholesky_f32(n, to, n) : factor_cholesky_f64(n, to, n);
    threads_run(n, rows, clear_upper, &l);
    return code;
}

static void cholesky_many(const ed_call *call, int64_t i, int64_t count, bool *left, void *room)
{
    const ed_tensor *a = call->inputs[0];
    ISA_CALL(small_cholesky)
    (a->dtype == ED_FLOAT64, matrix_rows(a), count, matrix_at(a, i), matrix_at(call->outputs[0], i),
     left, room);
}

static bool cholesky_kernel(ed_call *call)
{
    const ed_tensor *a = call->inputs[0];
    const int64_t n = matrix_rows(a);
    const int64_t most = a->size && matrix_count(a) >= SMALL_ENOUGH ? SMALL_FACTOR : SMALL_SIDE;
    return matrices_run(call, 0, 2,
                        (matrix_task){.one = cholesky_one,
                                      .many = n <= most ? cholesky_many : NULL,
                                      .room = small_room(n * n),
                                      .trouble = "is not positive definite",
                                      .work = n * n * n / 2});
}

/* da = (s + s^T) / 2 with s = L^-T p L^-1, p the lower triangle of L^T dL with half its diagonal
 * (Murray, Differentiation of the Cholesky decomposition, 2016). */
static bool cholesky_gradient(const ed_gradient_call *g)
{
    ed_tensor *l = g->outputs[0];
    ed_tensor *p = ed_matmul(l, g->dy[0], .transpose_a = true);
    ed_tensor *halved = ed_sub(matrix_band(p, INT64_MIN, 0), ed_mul(matrix_band(p, 0, 0), 0.5));
    ed_tensor *left = ed_triangular_solve(l, halved, .adjoint = true);
    ed_tensor *s = ed_triangular_solve(l, matrix_transpose(left), .adjoint = true);
    g->dx[0] = ed_mul(ed_add(s, matrix_transpose(s)), 0.5);
    return true;
}

/* Gauss' elimination of the symmetric matrix: its rows by the roots of the pivots are L^T's. */
static bool cholesky_reference(const ed_call *call)
{
    const ed_tensor *y = call->outputs[0];
    const int64_t n = matrix_rows(y);
    for (int64_t m = 0; y->size && m < matrix_count(y); m++) {
        double *a = matrix_copied(call->inputs[0], y, m), *l = matrix_at(y, m);
        if (!a) return false;
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < i; j++) a[j * n + i] = a[i * n + j];
        for (int64_t k = 0; k < n; k++) {
            for (int64_t j = 0; j < n; j++)
                l[j * n + k] = j < k ? 0 : a[k * n + j] / sqrt(a[k * n + k]);
            for (int64_t i = k + 1; i < n; i++)
                for (int64_t j = k + 1; j < n; j++)
                    a[i * n + j] -= a[i * n + k] / a[k * n + k] * a[k * n + j];
        }
    }
    return true;
}

/* cholesky: a = L L^T */
ED_OP(cholesky) = {
    .name = "cholesky",
    .doc = "lower triangular L with a = L L^T",
    .operands = {{"a", ED_SET_FLOAT, 'T'}},
    .results = ED_RESULTS({.name = "l", .saved = true}),
    .flags = ED_OP_CONTIGUOUS,
    .infer = cholesky_infer,
    .batch = ed_batch_first,
    .kernel = cholesky_kernel,
    .gradient = cholesky_gradient,
    .reference = cholesky_reference,
    .samples = ED_SAMPLES({.inputs = {ED_DEFINITE_IN(3, 3)}},
                          {.inputs = {ED_DEFINITE_IN(3, 2, 2)}}),
};

ed_tensor *ed_cholesky(ed_tensor *a)
{
    return CALL_OP(cholesky, NULL, a);
}

/* ---- cholesky_solve -------------------------------------------------------------------------- */

static bool cholesky_solve_compose(ed_call *call)
{
    ed_tensor *l = call->inputs[0];
    if (!matrix_check_square(call, 0) || !matrix_check(call, 1)) return false;
    return ed_call_result(
        call, 0, ed_triangular_solve(l, ed_triangular_solve(l, call->inputs[1]), .adjoint = true));
}

/* x = l^-1 b, or l^-T b, in place of b. */
static void substitute_plain(int64_t n, int64_t k, const double *l, bool transposed, double *x)
{
    for (int64_t s = 0; s < n; s++)
        for (int64_t j = 0; j < k; j++) {
            const int64_t i = transposed ? n - 1 - s : s;
            for (int64_t p = transposed ? i + 1 : 0; p < (transposed ? n : i); p++)
                x[i * k + j] -= (transposed ? l[p * n + i] : l[i * n + p]) * x[p * k + j];
            x[i * k + j] /= l[i * n + i];
        }
}

static bool cholesky_solve_reference(const ed_call *call)
{
    const ed_tensor *b = call->inputs[1], *y = call->outputs[0];
    const int64_t n = matrix_rows(y), k = matrix_columns(y);
    for (int64_t m = 0; y->size && m < matrix_count(y); m++) {
        const double *l = matrix_of(call->inputs[0], y, m);
        double *x = memcpy(matrix_at(y, m), matrix_of(b, y, m), (size_t)(n * k) * sizeof *x);
        substitute_plain(n, k, l, false, x);
        substitute_plain(n, k, l, true, x);
    }
    return true;
}

ED_OP(cholesky_solve) = {
    .name = "cholesky_solve",
    .doc = "x with l l^T x = b",
    .operands = {{"l", ED_SET_FLOAT, 'T'}, {"b", ED_SET_FLOAT, 'T'}},
    .compose = cholesky_solve_compose,
    .reference = cholesky_solve_reference,
    .samples = ED_SAMPLES({.inputs = {ED_MATRICES_IN(3, 3), ED_SAMPLE_IN(-1, 1, 3, 2)}},
                          {.inputs = {ED_MATRICES_IN(2, 2, 2), ED_SAMPLE_IN(-1, 1, 2, 1)}}),
};

ed_tensor *ed_cholesky_solve(ed_tensor *l, ed_tensor *b)
{
    return CALL_OP(cholesky_solve, NULL, l, b);
}

/* ---- logdet ---------------------------------------------------------------------------------- */

static bool logdet_compose(ed_call *call)
{
    if (!matrix_check_square(call, 0)) return false;
    ed_tensor *diagonal = matrix_diagonal(ed_cholesky(call->inputs[0]));
    return ed_call_result(call, 0, ed_mul(ed_reduce_sum(ed_log(diagonal), .axis = ED_AXES(-1)), 2));
}

/* Of the lower triangle. */
static bool logdet_reference(const ed_call *call)
{
    const ed_tensor *a = call->inputs[0];
    const int64_t n = matrix_rows(a);
    double *y = (double *)call->outputs[0]->data;
    for (int64_t m = 0; m < call->outputs[0]->size; m++) {
        double *copy = matrix_copied(a, a, m);
        if (!copy) return false;
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < i; j++) copy[j * n + i] = copy[i * n + j];
        y[m] = 0;
        matrix_eliminate(n, copy, 0, NULL, &y[m]);
    }
    return true;
}

ED_OP(logdet) = {
    .name = "logdet",
    .doc = "the logarithm of the determinant of a positive definite matrix",
    .operands = {{"a", ED_SET_FLOAT, 'T'}},
    .compose = logdet_compose,
    .reference = logdet_reference,
    .samples = ED_SAMPLES({.inputs = {ED_DEFINITE_IN(3, 3)}},
                          {.inputs = {ED_DEFINITE_IN(3, 2, 2)}}),
};

ed_tensor *ed_logdet(ed_tensor *a)
{
    return CALL_OP(logdet, NULL, a);
}
