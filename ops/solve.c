/*
 * Linear equations: solve, inv, triangular_solve, cholesky and what follows from them. The kernels
 * copy a matrix into the result, or into room of their own, and factor it there.
 */
#include "ops/matrices.h"
#include "ops/ops.h"
#include <math.h>
#include <string.h>

/* ---- What kernels share ---------------------------------------------------------------------- */

static bool solve_triangle(ed_dtype dtype, factor_triangle t, const void *a, int64_t columns,
                           void *b)
{
    return dtype == ED_FLOAT32 ? factor_solve_f32(t, a, columns, b, columns, 1)
                               : factor_solve_f64(t, a, columns, b, columns, 1);
}

static bool is_adjoint(const ed_call *call)
{
    return ((const ed_solve_options *)call->attrs)->adjoint;
}

bool matrix_solve_factored(ed_dtype dtype, bool adjoint, int64_t n, const void *lu,
                           const int64_t *swaps, int64_t columns, char *b)
{
    const size_t row = (size_t)columns * dtype_size(dtype);
    const factor_triangle lower = {true, true, n, n, 1}, upper = {false, false, n, n, 1};
    const factor_triangle lower_t = {false, true, n, 1, n}, upper_t = {true, false, n, 1, n};
    for (int64_t i = 0; !adjoint && i < n; i++)
        matrix_exchange(b + (size_t)i * row, b + (size_t)swaps[i] * row, row);
    const bool ok = adjoint ? solve_triangle(dtype, upper_t, lu, columns, b) &&
                                  solve_triangle(dtype, lower_t, lu, columns, b)
                            : solve_triangle(dtype, lower, lu, columns, b) &&
                                  solve_triangle(dtype, upper, lu, columns, b);
    for (int64_t i = n - 1; ok && adjoint && i >= 0; i--)
        matrix_exchange(b + (size_t)i * row, b + (size_t)swaps[i] * row, row);
    return ok;
}

/* X = A^-1, or A^-T, by the same factors. */
static bool invert_factored(ed_dtype dtype, bool adjoint, int64_t n, const void *lu,
                            const int64_t *swaps, void *x)
{
    return dtype == ED_FLOAT32 ? factor_lu_inverse_f32(adjoint, n, lu, swaps, x)
                               : factor_lu_inverse_f64(adjoint, n, lu, swaps, x);
}

/* What is solved in place of X, or the inverse, for which X is not read; from A itself. */
static int64_t solve_matrix(ed_dtype dtype, bool adjoint, int64_t n, const void *a, int64_t columns,
                            void *x, bool inverse)
{
    int64_t *swaps, code;
    void *lu = matrix_lu(dtype, n, a, &swaps, &code);
    if (!lu) return code;
    if (code == MATRIX_DONE &&
        !(inverse ? invert_factored(dtype, adjoint, n, lu, swaps, x)
                  : matrix_solve_factored(dtype, adjoint, n, lu, swaps, columns, x)))
        code = MATRIX_NO_MEMORY;
    memory_free(lu);
    if (code != MATRIX_DONE) return code;
    return matrix_is_finite(dtype, x, n * columns) ? MATRIX_DONE : MATRIX_OVERFLOWS;
}

static void transpose_plain(int64_t n, double *a)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++) {
            const double other = a[i * n + j];
            a[i * n + j] = a[j * n + i];
            a[j * n + i] = other;
        }
}

/* ---- solve ----------------------------------------------------------------------------------- */

static bool solve_infer(ed_call *call)
{
    const ed_tensor *a = call->inputs[0], *b = call->inputs[1];
    int64_t shape[ED_MAX_RANK];
    int rank;
    if (!matrix_check_square(call, 0) || !matrix_check(call, 1)) return false;
    if (matrix_rows(a) != matrix_rows(b))
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "a must be [..., n, n] and b [..., n, k]: a is %s, b is %s",
                            text_of_tensor(a).s, text_of_tensor(b).s);
    if (!matrix_broadcast(call, &rank, shape)) return false;
    shape[rank] = matrix_rows(b);
    shape[rank + 1] = matrix_columns(b);
    return ed_call_output(call, 0, a->dtype, rank + 2, shape);
}

/* Matrix i of the result, with b's in it. */
static void *begin_with_b(const ed_call *call, int64_t i)
{
    const ed_tensor *b = call->inputs[1], *y = call->outputs[0];
    const int64_t n = matrix_rows(y) * matrix_columns(y);
    return memcpy(matrix_at(y, i), matrix_of(b, y, i), (size_t)n * dtype_size(y->dtype));
}

static int64_t solve_one(const ed_call *call, int64_t i)
{
    const ed_tensor *a = call->inputs[0], *y = call->outputs[0];
    const int64_t n = matrix_rows(y), k = matrix_columns(y);
    void *x = begin_with_b(call, i);
    if (!matrix_is_finite(y->dtype, x, n * k)) return MATRIX_NOT_FINITE;
    return solve_matrix(y->dtype, is_adjoint(call), n, matrix_of(a, y, i), k, x, false);
}

/* From right sides that lie in the result. */
static void solve_small(const ed_call *call, int64_t i, int64_t count, bool *left, void *room)
{
    const ed_tensor *a = call->inputs[0], *y = call->outputs[0];
    const void *matrices[SMALL_MANY];
    for (int64_t l = 0; l < count; l++) matrices[l] = matrix_of(a, y, i + l);
    ISA_CALL(small_solve)
    (a->dtype == ED_FLOAT64, is_adjoint(call), matrix_rows(y), matrix_columns(y), count, matrices,
     matrix_at(y, i), NULL, left, room);
}

static void solve_many(const ed_call *call, int64_t i, int64_t count, bool *left, void *room)
{
    for (int64_t l = 0; l < count; l++) (void)begin_with_b(call, i + l);
    solve_small(call, i, count, left, room);
}

static bool solve_kernel(ed_call *call)
{
    const int64_t n = matrix_rows(call->inputs[0]), k = matrix_columns(call->outputs[0]);
    const ed_tensor *y = call->outputs[0];
    const int64_t most =
        y->size && matrix_count(y) >= SMALL_ENOUGH ? SMALL_FACTOR : SMALL_EQUATIONS;
    const bool small = n <= most && k <= SMALL_EQUATIONS;
    return matrices_run(call, 0, 2,
                        (matrix_task){.one = solve_one,
                                      .many = small ? solve_many : NULL,
                                      .room = small_room(n * (n + k)),
                                      .trouble = "is singular",
                                      .work = n * n * (n + k)});
}

/* db = a^-T dy, da = -db x^T. */
static void equation_gradient(const ed_gradient_call *g, ed_tensor *db, bool adjoint,
                              ed_tensor *(*kept)(const void *attrs, ed_tensor *da))
{
    ed_tensor *x = g->outputs[0];
    if (g->needs[1]) g->dx[1] = ops_sum_to(db, g->shapes[1]);
    if (!g->needs[0]) return;
    ed_tensor *da =
        adjoint ? ed_matmul(x, db, .transpose_b = true) : ed_matmul(db, x, .transpose_b = true);
    if (kept) da = kept(g->attrs, da);
    if (da) g->dx[0] = ops_sum_to(ed_neg(da), g->shapes[0]);
}

static bool solve_gradient(const ed_gradient_call *g)
{
    const bool adjoint = ((const ed_solve_options *)g->attrs)->adjoint;
    equation_gradient(g, ed_solve(g->inputs[0], g->dy[0], .adjoint = !adjoint), adjoint, NULL);
    return true;
}

static bool solve_reference(const ed_call *call)
{
    const ed_tensor *y = call->outputs[0];
    const int64_t n = matrix_rows(y), k = matrix_columns(y);
    for (int64_t i = 0; y->size && i < matrix_count(y); i++) {
        double *a = matrix_copied(call->inputs[0], y, i), *b = begin_with_b(call, i);
        if (!a) return false;
        if (is_adjoint(call)) transpose_plain(n, a);
        matrix_eliminate(n, a, k, b, NULL);
    }
    return true;
}

#define SOLVE(...) ED_ATTRS(ED_SOLVE_OPTIONS, ed_solve_options, __VA_ARGS__)

/* solve: x = a^-1 b, db = a^-T dx, da = -db x^T */
ED_OP(solve) = {
    .name = "solve",
    .doc = "x with a x = b",
    .operands = {{"a", ED_SET_FLOAT, 'T', .saved = true}, {"b", ED_SET_FLOAT, 'T'}},
    .results = ED_RESULTS({.name = "x", .saved = true}),
    .flags = ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(ED_SOLVE_OPTIONS, ed_solve_options),
    .infer = solve_infer,
    .batch = ed_batch_broadcast,
    .kernel = solve_kernel,
    .gradient = solve_gradient,
    .reference = solve_reference,
    .samples = ED_SAMPLES({.inputs = {ED_MATRICES_IN(3, 3), ED_SAMPLE_IN(-1, 1, 3, 2)}},
                          {.inputs = {ED_MATRICES_IN(2, 1, 2, 2), ED_SAMPLE_IN(-1, 1, 3, 2, 1)},
                           .attrs = SOLVE(.adjoint = true)}),
};

ed_tensor *ed_solve_with(ed_tensor *a, ed_tensor *b, const ed_solve_options *options)
{
    return CALL_OP(solve, options, a, b);
}

/* ---- inv ------------------------------------------------------------------------------------- */

static bool square_infer(ed_call *call)
{
    return matrix_check_square(call, 0) && ops_infer_like(call);
}

/* Matrix i of the result, with the identity in it. */
static void begin_with_eye(const ed_call *call, int64_t i)
{
    const ed_tensor *y = call->outputs[0];
    const int64_t n = matrix_rows(y);
    void *x = memset(matrix_at(y, i), 0, (size_t)(n * n) * dtype_size(y->dtype));
    for (int64_t k = 0; k < n; k++) dtype_store(y->dtype, x, k * (n + 1), 1);
}

static void inv_many(const ed_call *call, int64_t i, int64_t count, bool *left, void *room)
{
    for (int64_t l = 0; l < count; l++) begin_with_eye(call, i + l);
    solve_small(call, i, count, left, room);
}

static int64_t inv_one(const ed_call *call, int64_t i)
{
    const ed_tensor *y = call->outputs[0];
    const int64_t n = matrix_rows(y);
    return solve_matrix(y->dtype, is_adjoint(call), n, matrix_at(call->inputs[0], i), n,
                        matrix_at(y, i), true);
}

static bool inv_kernel(ed_call *call)
{
    const int64_t n = matrix_rows(call->inputs[0]);
    return matrices_run(call, 0, 2,
                        (matrix_task){.one = inv_one,
                                      .many = n <= SMALL_EQUATIONS ? inv_many : NULL,
                                      .room = small_room(2 * n * n),
                                      .trouble = "is not invertible",
                                      .work = 2 * n * n * n});
}

/* da = -y^T dy y^T. Of the transpose, y = a^-T, it is -y dy^T y. */
static bool inv_gradient(const ed_gradient_call *g)
{
    ed_tensor *y = g->outputs[0], *dy = g->dy[0];
    const bool adjoint = ((const ed_solve_options *)g->attrs)->adjoint;
    ed_tensor *product =
        adjoint ? ed_matmul(y, ed_matmul(dy, y, .transpose_a = true))
                : ed_matmul(y, ed_matmul(dy, y, .transpose_b = true), .transpose_a = true);
    g->dx[0] = ed_neg(product);
    return true;
}

static bool inv_reference(const ed_call *call)
{
    const ed_tensor *y = call->outputs[0];
    const int64_t n = matrix_rows(y);
    for (int64_t i = 0; y->size && i < matrix_count(y); i++) {
        double *a = matrix_copied(call->inputs[0], y, i), *b = matrix_at(y, i);
        if (!a) return false;
        for (int64_t j = 0; j < n * n; j++) b[j] = j / n == j % n;
        matrix_eliminate(n, a, n, b, NULL);
        if (is_adjoint(call)) transpose_plain(n, b);
    }
    return true;
}

/* inv: y = a^-1, da = -y^T dy y^T */
ED_OP(inv) = {
    .name = "inv",
    .doc = "the inverse of a, or its transpose",
    .operands = {{"a", ED_SET_FLOAT, 'T'}},
    SAVES_Y,
    .flags = ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(ED_SOLVE_OPTIONS, ed_solve_options),
    .infer = square_infer,
    .batch = ed_batch_first,
    .kernel = inv_kernel,
    .gradient = inv_gradient,
    .reference = inv_reference,
    .samples = ED_SAMPLES({.inputs = {ED_MATRICES_IN(3, 3)}},
                          {.inputs = {ED_MATRICES_IN(3, 2, 2)}, .attrs = SOLVE(.adjoint = true)}),
};

ed_tensor *ed_inv_with(ed_tensor *a, const ed_solve_options *options)
{
    return CALL_OP(inv, options, a);
}

/* ---- triangular_solve ------------------------------------------------------------------------ */

static int64_t triangular_one(const ed_call *call, int64_t i)
{
    const ed_triangular_solve_options *o = call->attrs;
    const ed_tensor *y = call->outputs[0];
    const int64_t n = matrix_rows(y), k = matrix_columns(y);
    const void *a = matrix_of(call->inputs[0], y, i);
    factor_triangle t = {o->lower, false, n, n, 1};
    if (o->adjoint) t = (factor_triangle){!o->lower, false, n, 1, n};
    void *x = begin_with_b(call, i);
    for (int64_t r = 0; r < n; r++) {
        const double pivot = dtype_load(y->dtype, a, r * (n + 1));
        if (!isfinite(pivot)) return MATRIX_NOT_FINITE;
        if (pivot == 0) return r;
    }
    if (!matrix_is_finite(y->dtype, x, n * k)) return MATRIX_NOT_FINITE;
    if (!solve_triangle(y->dtype, t, a, k, x)) return MATRIX_NO_MEMORY;
    return matrix_is_finite(y->dtype, x, n * k) ? MATRIX_DONE : MATRIX_OVERFLOWS;
}

static bool triangular_kernel(ed_call *call)
{
    const int64_t n = matrix_rows(call->inputs[0]), k = matrix_columns(call->outputs[0]);
    return matrices_run(call, 0, 2,
                        (matrix_task){triangular_one, "is singular", .work = n * n * k});
}

static ed_tensor *kept_triangle(const void *attrs, ed_tensor *da)
{
    const ed_triangular_solve_options *o = attrs;
    return o->lower ? matrix_band(da, INT64_MIN, 0) : matrix_band(da, 0, INT64_MAX);
}

static bool triangular_gradient(const ed_gradient_call *g)
{
    const ed_triangular_solve_options *o = g->attrs;
    ed_tensor *db =
        ed_triangular_solve(g->inputs[0], g->dy[0], .lower = o->lower, .adjoint = !o->adjoint);
    equation_gradient(g, db, o->adjoint, kept_triangle);
    return true;
}

static bool triangular_reference(const ed_call *call)
{
    const ed_triangular_solve_options *o = call->attrs;
    const ed_tensor *y = call->outputs[0];
    const int64_t n = matrix_rows(y), k = matrix_columns(y);
    for (int64_t i = 0; y->size && i < matrix_count(y); i++) {
        double *a = matrix_copied(call->inputs[0], y, i), *x = begin_with_b(call, i);
        if (!a) return false;
        for (int64_t j = 0; j < n * n; j++)
            if (o->lower ? j % n > j / n : j % n < j / n) a[j] = 0;
        if (o->adjoint) transpose_plain(n, a);
        const bool forward = o->lower != o->adjoint;
        for (int64_t s = 0; s < n; s++) {
            const int64_t r = forward ? s : n - 1 - s;
            for (int64_t c = 0; c < k; c++) {
                double sum = x[r * k + c];
                for (int64_t p = forward ? 0 : r + 1; p < (forward ? r : n); p++)
                    sum -= a[r * n + p] * x[p * k + c];
                x[r * k + c] = sum / a[r * n + r];
            }
        }
    }
    return true;
}

#define TRIANGLE(...)                                                                              \
    ED_ATTRS(ED_TRIANGULAR_SOLVE_OPTIONS, ed_triangular_solve_options, __VA_ARGS__)

/* triangular_solve: as solve, da's other triangle 0 */
ED_OP(triangular_solve) = {
    .name = "triangular_solve",
    .doc = "x with a x = b, a triangular",
    .operands = {{"a", ED_SET_FLOAT, 'T', .saved = true}, {"b", ED_SET_FLOAT, 'T'}},
    .results = ED_RESULTS({.name = "x", .saved = true}),
    .flags = ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(ED_TRIANGULAR_SOLVE_OPTIONS, ed_triangular_solve_options),
    .infer = solve_infer,
    .batch = ed_batch_broadcast,
    .kernel = triangular_kernel,
    .gradient = triangular_gradient,
    .reference = triangular_reference,
    .samples = ED_SAMPLES({.inputs = {ED_MATRICES_IN(3, 3), ED_SAMPLE_IN(-1, 1, 3, 2)}},
                          {.inputs = {ED_MATRICES_IN(3, 3), ED_SAMPLE_IN(-1, 1, 2, 3, 2)},
                           .attrs = TRIANGLE(.lower = false)},
                          {.inputs = {ED_MATRICES_IN(3, 3), ED_SAMPLE_IN(-1, 1, 3, 1)},
                           .attrs = TRIANGLE(.adjoint = true)},
                          {.inputs = {ED_MATRICES_IN(2, 2, 2), ED_SAMPLE_IN(-1, 1, 2, 1)},
                           .attrs = TRIANGLE(.lower = false, .adjoint = true)}),
};

ed_tensor *ed_triangular_solve_with(ed_tensor *a, ed_tensor *b,
                                    const ed_triangular_solve_options *options)
{
    return CALL_OP(triangular_solve, options, a, b);
}
