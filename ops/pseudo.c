/* What singular values give: pinv, lstsq, matrix_rank, cond. */
#include "ops/kernels/gemm.h"
#include "ops/kernels/lapack.h"
#include "ops/kernels/spectral.h"
#include "ops/matrices.h"
#include "ops/ops.h"
#include <float.h>
#include <math.h>
#include <string.h>

static double epsilon_of(ed_dtype dtype)
{
    return dtype == ED_FLOAT32 ? FLT_EPSILON : DBL_EPSILON;
}

/* ---- pinv ------------------------------------------------------------------------------------ */

static bool pinv_infer(ed_call *call)
{
    const ed_tensor *a = call->inputs[0];
    int64_t shape[ED_MAX_RANK];
    if (!matrix_check(call, 0) || !matrix_check_lapack(call)) return false;
    memcpy(shape, a->shape, sizeof shape);
    shape[a->rank - 2] = matrix_columns(a);
    shape[a->rank - 1] = matrix_rows(a);
    return ed_call_output(call, 0, a->dtype, a->rank, shape);
}

/* The share of the largest singular value up to which others count as 0. */
static double cut_of(const ed_call *call)
{
    const ed_pinv_options *o = call->attrs;
    const ed_tensor *a = call->inputs[0];
    const int64_t m = matrix_rows(a), n = matrix_columns(a);
    return o->rcond < 0 ? 10 * (double)(m > n ? m : n) * epsilon_of(a->dtype) : o->rcond;
}

/* The columns of V [n, k] divided by s; 0 where s is not above cut times the largest. */
static void divide_columns(ed_dtype dtype, int64_t n, int64_t k, const void *s, double cut, void *v)
{
    const double least = cut * dtype_load(dtype, s, 0);
    for (int64_t e = 0; e < n * k; e++) {
        const double value = dtype_load(dtype, s, e % k), factor = value > least ? 1 / value : 0;
        dtype_store(dtype, v, e, factor == 0 ? 0 : dtype_load(dtype, v, e) * factor);
    }
}

/* V diag(1 / s) U^T. */
static int64_t pinv_one(const ed_call *call, int64_t i)
{
    const ed_tensor *a = call->inputs[0], *y = call->outputs[0];
    const int64_t m = matrix_rows(a), n = matrix_columns(a), k = m < n ? m : n;
    const size_t size = dtype_size(a->dtype);
    const void *from = matrix_at(a, i);
    const int64_t wrong = matrix_check_norm(a->dtype, from, m * n, m + n);
    if (wrong != MATRIX_DONE) return wrong;
    char *room = memory_alloc((size_t)(k * (m + n + 1)) * size);
    if (!room) return MATRIX_NO_MEMORY;
    void *v = room, *u = room + (size_t)(n * k) * size, *s = room + (size_t)((m + n) * k) * size;
    void *to = matrix_at(y, i);
    const bool narrow = a->dtype == ED_FLOAT32;
    int64_t code = matrix_lapack_code(narrow ? spectral_svd_f32(false, m, n, from, s, u, v)
                                             : spectral_svd_f64(false, m, n, from, s, u, v));
    if (code == MATRIX_DONE) divide_columns(a->dtype, n, k, s, cut_of(call), v);
    if (code == MATRIX_DONE && !(narrow ? gemm_f32(n, m, k, v, k, 1, u, 1, k, to, m, NULL)
                                        : gemm_f64(n, m, k, v, k, 1, u, 1, k, to, m, NULL)))
        code = MATRIX_NO_MEMORY;
    memory_free(room);
    if (code != MATRIX_DONE) return code;
    return matrix_is_finite(a->dtype, to, m * n) ? MATRIX_DONE : MATRIX_INFINITE;
}

static bool pinv_kernel(ed_call *call)
{
    const ed_tensor *a = call->inputs[0];
    const int64_t m = matrix_rows(a), n = matrix_columns(a), most = m > n ? m : n;
    return matrices_run(
        call, 0, 2,
        (matrix_task){pinv_one, .work = 22 * m * n * most, .alone = most > LAPACK_SMALL});
}

/* da = -y^T dy y^T + (1 - a y) dy^T y y^T + y^T y dy^T (1 - y a), of matrices whose rank does not
 * change (Golub and Pereyra, 1973). */
static bool pinv_gradient(const ed_gradient_call *g)
{
    ed_tensor *a = g->inputs[0], *y = g->outputs[0], *dy = g->dy[0];
    ed_tensor *left = ed_matmul(ed_matmul(dy, y, .transpose_a = true), y, .transpose_b = true);
    ed_tensor *right = ed_matmul(y, ed_matmul(y, dy, .transpose_b = true), .transpose_a = true);
    ed_tensor *inside = ed_matmul(ed_matmul(y, dy, .transpose_a = true), y, .transpose_b = true);
    ed_tensor *outside = ed_sub(left, ed_matmul(a, ed_matmul(y, left)));
    ed_tensor *beside = ed_sub(right, ed_matmul(ed_matmul(right, y), a));
    g->dx[0] = ed_sub(ed_add(outside, beside), inside);
    return true;
}

/* V (A V)^T with its terms divided by the squares of the singular values, of matrix i of a; memory
 * of the scope. */
static double *pinv_plain(const ed_tensor *a, int64_t i, double cut)
{
    const int64_t m = matrix_rows(a), n = matrix_columns(a), k = m < n ? m : n;
    const int64_t longer = m < n ? n : m, size = k * (k + longer + 1) + m * n;
    const double *x = matrix_at(a, i);
    ed_tensor *room = scope_give(tensor_new(ED_FLOAT64, 1, &size));
    if (!room) return NULL;
    double *to = (double *)room->data, *v = to + m * n, *s = v + k * k, *tall = s + k;
    for (int64_t e = 0; e < k * longer; e++) tall[e] = m < n ? x[e % k * n + e / k] : x[e];
    const double largest = matrix_singular(longer, k, tall, v, s);
    memset(to, 0, (size_t)(m * n) * sizeof *to);
    for (int64_t r = 0; r < k; r++) {
        double square = 0;
        for (int64_t p = 0; p < longer; p++) square += tall[p * k + r] * tall[p * k + r];
        if (!(sqrt(square) * largest > cut * s[0])) continue;
        for (int64_t e = 0; e < m * n; e++) {
            const int64_t p = m < n ? e / m : e % m, q = m < n ? e % m : e / m;
            to[e] += v[q * k + r] * tall[p * k + r] / square / largest;
        }
    }
    return to;
}

static bool pinv_reference(const ed_call *call)
{
    const ed_tensor *y = call->outputs[0];
    const int64_t each = matrix_rows(y) * matrix_columns(y);
    for (int64_t i = 0; y->size && i < matrix_count(y); i++) {
        const double *x = pinv_plain(call->inputs[0], i, cut_of(call));
        if (!x) return false;
        memcpy(matrix_at(y, i), x, (size_t)each * sizeof *x);
    }
    return true;
}

#define PINV(...) ED_ATTRS(ED_PINV_OPTIONS, ed_pinv_options, __VA_ARGS__)

/* pinv: y = v diag(1 / s) u^T */
ED_OP(pinv) = {
    .name = "pinv",
    .doc = "pseudo-inverses, by singular values",
    .operands = {{"a", ED_SET_FLOAT, 'T', .saved = true}},
    SAVES_Y,
    .flags = ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(ED_PINV_OPTIONS, ed_pinv_options),
    .infer = pinv_infer,
    .batch = ed_batch_axes,
    .kernel = pinv_kernel,
    .gradient = pinv_gradient,
    .reference = pinv_reference,
    .samples = ED_SAMPLES({.inputs = {ED_MATRICES_IN(3, 2)}}, {.inputs = {ED_MATRICES_IN(2, 2, 3)}},
                          {.inputs = {ED_MATRICES_IN(3, 3)}, .attrs = PINV(.rcond = 1e-3)}),
};

ed_tensor *ed_pinv_with(ed_tensor *a, const ed_pinv_options *options)
{
    return CALL_OP(pinv, options, a);
}

/* ---- lstsq ----------------------------------------------------------------------------------- */

/* x + factor times the identity, of square x. */
static ed_tensor *add_to_diagonal(ed_tensor *x, double factor)
{
    if (!x || factor == 0) return x;
    return ed_add(x, ed_mul(matrix_eye(ed_dim(x, -1), x), factor));
}

/* What x leaves of the normal equations: a^T (b - a x) - l2 x, or b - a a^T x - l2 x. */
static ed_tensor *rest_of(ed_tensor *a, ed_tensor *b, ed_tensor *x, double l2, bool wide)
{
    ed_tensor *product = ed_matmul(a, wide ? ed_matmul(a, x, .transpose_a = true) : x);
    ed_tensor *rest = ed_sub(b, product);
    if (!wide) rest = ed_matmul(a, rest, .transpose_a = true);
    return l2 == 0 || !rest ? rest : ed_sub(rest, ed_mul(x, l2));
}

/*
 * By the normal equations: (a^T a + l2) x = a^T b, or x = a^T w with (a a^T + l2) w = b. Their
 * condition number is the square of a's; one step of refinement, whose residual knows a itself,
 * wins back the digits that this costs (Bjorck, Numerical Methods for Least Squares Problems, 1996,
 * 2.9.3).
 */
static ed_tensor *solve_normal(ed_tensor *a, ed_tensor *b, double l2)
{
    const bool wide = ed_dim(a, -2) < ed_dim(a, -1);
    ed_tensor *square = ed_matmul(a, a, .transpose_a = !wide, .transpose_b = wide);
    ed_tensor *l = ed_cholesky(add_to_diagonal(square, l2));
    ed_tensor *right = wide ? b : ed_matmul(a, b, .transpose_a = true);
    ed_tensor *x = ed_cholesky_solve(l, right);
    x = x ? ed_add(x, ed_cholesky_solve(l, rest_of(a, b, x, l2, wide))) : NULL;
    return wide ? ed_matmul(a, x, .transpose_a = true) : x;
}

/* x with n rows below: `rows` [n, columns], for each matrix. */
static ed_tensor *put_below(ed_tensor *x, ed_tensor *rows)
{
    int64_t shape[ED_MAX_RANK];
    if (!x || !rows) return NULL;
    const int rank = ed_rank(x);
    for (int d = 0; d < rank; d++) shape[d] = d < rank - 2 ? ed_dim(x, d) : ed_dim(rows, d - rank);
    ed_tensor *all = ed_broadcast_to(rows, (ed_ints){shape, rank});
    return ed_concat(ed_list_of(x, all), .axis = -2);
}

/* By the pseudo-inverse, of a with root(l2) times the identity below it. */
static ed_tensor *solve_orthogonal(ed_tensor *a, ed_tensor *b, double l2)
{
    const int64_t n = ed_dim(a, -1), k = ed_dim(b, -1);
    if (l2 > 0) {
        a = put_below(a, ed_mul(matrix_eye(n, a), sqrt(l2)));
        b = put_below(b, ed_zeros(ED_SHAPE(n, k), .dtype = ed_dtype_of(b)));
        if (!a || !b) return NULL;
    }
    const int64_t m = ed_dim(a, -2);
    const double rcond = (double)(m > n ? m : n) * epsilon_of(ed_dtype_of(a));
    return ed_matmul(ed_pinv(a, .rcond = rcond), b);
}

/* Whether all of x is finite; fails if not. */
static bool check_finite(const ed_call *call, ed_tensor *x)
{
    ed_tensor *all = ed_reduce_all(ed_is_finite(x));
    if (!all) return false;
    return ed_item(all) != 0 ||
           ed_call_fail(call, ED_INVALID_ARGUMENT, "b has a NaN or an infinity");
}

static bool lstsq_compose(ed_call *call)
{
    const ed_lstsq_options *o = call->attrs;
    ed_tensor *a = call->inputs[0], *b = call->inputs[1];
    if (!matrix_check(call, 0) || !matrix_check(call, 1)) return false;
    if (ed_dim(a, -2) != ed_dim(b, -2))
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "a must be [..., m, n] and b [..., m, k]: a is %s, b is %s",
                            text_of_tensor(a).s, text_of_tensor(b).s);
    if (!check_finite(call, b)) return false;
    return ed_call_result(call, 0,
                          o->fast ? solve_normal(a, b, o->l2_regularizer)
                                  : solve_orthogonal(a, b, o->l2_regularizer));
}

/*
 * One system of equations with the residual r = a x - b: of tall matrices -r + a x = b, a^T r + l2
 * x = 0; of wide ones x = a^T w, a x + l2 w = b. The unknowns are those of the first m or n rows,
 * then the others.
 */
static void fill_system(int64_t m, int64_t n, const double *a, double l2, double *system)
{
    const int64_t size = m + n, first = m < n ? n : m;
    memset(system, 0, (size_t)(size * size) * sizeof *system);
    for (int64_t e = 0; e < first; e++) system[e * (size + 1)] = m < n ? 1 : -1;
    for (int64_t e = first; e < size; e++) system[e * (size + 1)] = l2;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            const int64_t row = m < n ? first + i : i, column = m < n ? j : first + j;
            system[row * size + column] = a[i * n + j];
            system[column * size + row] = m < n ? -a[i * n + j] : a[i * n + j];
        }
}

/* x [n, k] by that system. */
static bool least_squares_plain(int64_t m, int64_t n, const double *a, double l2, int64_t k,
                                const double *b, double *x)
{
    const int64_t size = m + n;
    ed_tensor *room = scope_give(tensor_new(ED_FLOAT64, 1, &(int64_t){size * (size + k)}));
    if (!room) return false;
    double *system = (double *)room->data, *right = system + size * size, largest = DBL_MIN;
    fill_system(m, n, a, l2, system);
    for (int64_t e = 0; e < m * k; e++) largest = fmax(largest, fabs(b[e]));
    memset(right, 0, (size_t)(size * k) * sizeof *right);
    for (int64_t e = 0; e < m * k; e++) right[(m < n ? n * k : 0) + e] = b[e] / largest;
    matrix_eliminate(size, system, k, right, NULL);
    for (int64_t e = 0; e < n * k; e++) x[e] = right[(m < n ? 0 : m * k) + e] * largest;
    return true;
}

/* The shortest x of any a without a regularizer by the pseudo-inverse. */
static bool shortest_plain(const ed_tensor *a, int64_t i, int64_t k, const double *b, double *x)
{
    const int64_t m = matrix_rows(a), n = matrix_columns(a);
    const double *inverse = pinv_plain(a, i, (double)(m > n ? m : n) * DBL_EPSILON);
    for (int64_t e = 0; inverse && e < n * k; e++) {
        x[e] = 0;
        for (int64_t p = 0; p < m; p++) x[e] += inverse[e / k * m + p] * b[p * k + e % k];
    }
    return inverse;
}

/* Of the samples a has all leading dimensions where it goes by the pseudo-inverse. */
static bool lstsq_reference(const ed_call *call)
{
    const ed_lstsq_options *o = call->attrs;
    const ed_tensor *a = call->inputs[0], *b = call->inputs[1], *y = call->outputs[0];
    const int64_t m = matrix_rows(a), n = matrix_columns(a), k = matrix_columns(b);
    for (int64_t i = 0; y->size && i < matrix_count(y); i++) {
        const double *right = matrix_of(b, y, i);
        double *x = matrix_at(y, i);
        if (o->fast || o->l2_regularizer > 0
                ? !least_squares_plain(m, n, matrix_of(a, y, i), o->l2_regularizer, k, right, x)
                : !shortest_plain(a, i, k, right, x))
            return false;
    }
    return true;
}

#define LSTSQ(...) ED_ATTRS(ED_LSTSQ_OPTIONS, ed_lstsq_options, __VA_ARGS__)

ED_OP(lstsq) = {
    .name = "lstsq",
    .doc = "x that makes a x - b shortest",
    .operands = {{"a", ED_SET_FLOAT, 'T', .early = true}, {"b", ED_SET_FLOAT, 'T', .early = true}},
    ED_OP_ATTRS(ED_LSTSQ_OPTIONS, ed_lstsq_options),
    .compose = lstsq_compose,
    .reference = lstsq_reference,
    .samples = ED_SAMPLES({.inputs = {ED_MATRICES_IN(3, 2), ED_SAMPLE_IN(-1, 1, 3, 2)}},
                          {.inputs = {ED_MATRICES_IN(2, 3), ED_SAMPLE_IN(-1, 1, 2, 2, 1)},
                           .attrs = LSTSQ(.l2_regularizer = 0.5)},
                          {.inputs = {ED_MATRICES_IN(2, 3), ED_SAMPLE_IN(-1, 1, 2, 2)},
                           .attrs = LSTSQ(.fast = false)},
                          {.inputs = {ED_MATRICES_IN(2, 3, 2), ED_SAMPLE_IN(-1, 1, 3, 1)},
                           .attrs = LSTSQ(.l2_regularizer = 0.5, .fast = false)}),
};

ed_tensor *ed_lstsq_with(ed_tensor *a, ed_tensor *b, const ed_lstsq_options *options)
{
    return CALL_OP(lstsq, options, a, b);
}

/* ---- matrix_rank ----------------------------------------------------------------------------- */

static bool matrix_rank_compose(ed_call *call)
{
    const ed_matrix_rank_options *o = call->attrs;
    ed_tensor *a = call->inputs[0];
    if (!matrix_check(call, 0)) return false;
    const int64_t m = ed_dim(a, -2), n = ed_dim(a, -1), most = m > n ? m : n;
    ed_tensor *s = ed_svdvals(a), *counted;
    if (!s) return false;
    if (o->tol >= 0 || ed_dim(s, -1) == 0)
        counted = ed_greater(s, o->tol);
    else
        counted = ed_greater(s, ed_mul(ed_reduce_max(s, .axis = ED_AXES(-1), .keepdims = true),
                                       (double)most * epsilon_of(ed_dtype_of(a))));
    return ed_call_result(call, 0, ed_reduce_sum(ed_cast(counted, ED_INT32), .axis = ED_AXES(-1)));
}

/* The singular values of matrix i of a, in memory of the scope. */
static double *singular_of(const ed_tensor *a, int64_t i)
{
    const int64_t m = matrix_rows(a), n = matrix_columns(a), k = m < n ? m : n;
    ed_tensor *room = scope_give(tensor_new(ED_FLOAT64, 1, &(int64_t){m * n + k}));
    if (!room) return NULL;
    const double *x = matrix_at(a, i);
    double *tall = (double *)room->data + k;
    for (int64_t e = 0; e < m * n; e++) tall[e] = m < n ? x[e % m * n + e / m] : x[e];
    (void)matrix_singular(m < n ? n : m, k, tall, NULL, (double *)room->data);
    return (double *)room->data;
}

static bool matrix_rank_reference(const ed_call *call)
{
    const ed_matrix_rank_options *o = call->attrs;
    const ed_tensor *a = call->inputs[0];
    const int64_t m = matrix_rows(a), n = matrix_columns(a), most = m > n ? m : n;
    double *y = (double *)call->outputs[0]->data;
    for (int64_t i = 0; i < call->outputs[0]->size; i++) {
        const double *s = singular_of(a, i);
        if (!s) return false;
        y[i] = 0;
        for (int64_t j = 0; j < (m < n ? m : n); j++)
            y[i] += s[j] > (o->tol < 0 ? (double)most * DBL_EPSILON * s[0] : o->tol);
    }
    return true;
}

ED_OP(matrix_rank) = {
    .name = "matrix_rank",
    .doc = "ranks: how many singular values are above tol",
    .operands = {{"a", ED_SET_FLOAT, 'T'}},
    ED_OP_ATTRS(ED_MATRIX_RANK_OPTIONS, ed_matrix_rank_options),
    .compose = matrix_rank_compose,
    .no_gradient = "a rank does not change gradually",
    .reference = matrix_rank_reference,
    .samples = ED_SAMPLES({.inputs = {ED_MATRICES_IN(3, 2)}},
                          {.inputs = {ED_SAMPLE_IN(-1, 1, 2, 3, 3)},
                           .attrs = ED_ATTRS(ED_MATRIX_RANK_OPTIONS, ed_matrix_rank_options,
                                             .tol = 0.75)}),
};

ed_tensor *ed_matrix_rank_with(ed_tensor *a, const ed_matrix_rank_options *options)
{
    return CALL_OP(matrix_rank, options, a);
}

/* ---- cond ------------------------------------------------------------------------------------ */

/* a / b, infinite where b is 0. */
static ed_tensor *ratio(ed_tensor *a, ed_tensor *b)
{
    if (!a || !b) return NULL;
    ed_tensor *zero = ed_equal(b, ed_zeros_like(b));
    return ed_where(zero, INFINITY, ed_div(a, ed_where(zero, 1, b)));
}

static ed_tensor *cond_by_values(ed_tensor *a, bool inverse)
{
    ed_tensor *s = ed_svdvals(a);
    ed_tensor *largest = ed_reduce_max(s, .axis = ED_AXES(-1));
    ed_tensor *smallest = ed_reduce_min(s, .axis = ED_AXES(-1));
    return inverse ? ratio(smallest, largest) : ratio(largest, smallest);
}

/* In place of singular matrices the identity is inverted. */
static ed_tensor *cond_by_inverse(ed_tensor *a, double p)
{
    ed_tensor *pivots = matrix_diagonal(ed_lu(a, NULL));
    if (!pivots) return NULL;
    ed_tensor *singular =
        ed_reduce_any(ed_equal(pivots, ed_zeros_like(pivots)), .axis = ED_AXES(-1));
    ed_tensor *each = ed_expand_dims(ed_expand_dims(singular, -1), -1);
    ed_tensor *safe = ed_where(each, matrix_eye(ed_dim(a, -1), a), a);
    ed_tensor *norm = ed_norm(safe, .ord = p, .axis = ED_AXES(-2, -1));
    ed_tensor *of_inverse = ed_norm(ed_inv(safe), .ord = p, .axis = ED_AXES(-2, -1));
    return ed_where(singular, INFINITY, ed_mul(norm, of_inverse));
}

static bool cond_compose(ed_call *call)
{
    const ed_cond_options *o = call->attrs;
    ed_tensor *a = call->inputs[0];
    const bool by_values = fabs(o->p) == 2;
    if (!by_values && fabs(o->p) != 1 && !isinf(o->p) && !isnan(o->p))
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "p must be 2, -2, 1, -1, inf, -inf or NaN (Frobenius), got %g", o->p);
    if (!(by_values ? matrix_check(call, 0) : matrix_check_square(call, 0))) return false;
    if (ed_dim(a, -2) == 0 || ed_dim(a, -1) == 0)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "a is %s; its matrices must not be empty",
                            text_of_tensor(a).s);
    return ed_call_result(call, 0,
                          by_values ? cond_by_values(a, o->p < 0) : cond_by_inverse(a, o->p));
}

/* The norm of order p of a [n, n]: 1, -1, inf, -inf, NaN. */
static double norm_plain(int64_t n, const double *a, double p)
{
    double y = isnan(p) || p > 0 ? 0 : INFINITY;
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t j = 0; j < n; j++) {
            const double x = fabs(a[fabs(p) == 1 ? j * n + i : i * n + j]);
            sum += isnan(p) ? x * x : x;
        }
        y = isnan(p) ? y + sum : p > 0 ? fmax(y, sum) : fmin(y, sum);
    }
    return isnan(p) ? sqrt(y) : y;
}

static bool cond_reference(const ed_call *call)
{
    const double p = ((const ed_cond_options *)call->attrs)->p;
    const ed_tensor *a = call->inputs[0];
    const int64_t m = matrix_rows(a), n = matrix_columns(a), k = m < n ? m : n;
    double *y = (double *)call->outputs[0]->data;
    for (int64_t i = 0; i < call->outputs[0]->size; i++) {
        const double *s = singular_of(a, i);
        double *copy = matrix_copied(a, a, i), *inverse = matrix_copied(a, a, i);
        if (!s || !copy || !inverse) return false;
        if (fabs(p) == 2) {
            const double least = s[k - 1], most = s[0];
            y[i] = p > 0 ? (least == 0 ? INFINITY : most / least)
                         : (most == 0 ? INFINITY : least / most);
            continue;
        }
        y[i] = norm_plain(n, copy, p);
        for (int64_t e = 0; e < n * n; e++) inverse[e] = e / n == e % n;
        const double det = matrix_eliminate(n, copy, n, inverse, NULL);
        y[i] = det == 0 ? INFINITY : y[i] * norm_plain(n, inverse, p);
    }
    return true;
}

#define COND(...) ED_ATTRS(ED_COND_OPTIONS, ed_cond_options, __VA_ARGS__)

ED_OP(cond) = {
    .name = "cond",
    .doc = "condition numbers: norm of a times norm of its inverse",
    .operands = {{"a", ED_SET_FLOAT, 'T'}},
    ED_OP_ATTRS(ED_COND_OPTIONS, ed_cond_options),
    .compose = cond_compose,
    .reference = cond_reference,
    .samples = ED_SAMPLES({.inputs = {ED_MATRICES_IN(3, 2)}},
                          {.inputs = {ED_MATRICES_IN(2, 2, 3)}, .attrs = COND(.p = -2)},
                          {.inputs = {ED_MATRICES_IN(2, 3, 3)}, .attrs = COND(.p = 1)},
                          {.inputs = {ED_MATRICES_IN(3, 3)}, .attrs = COND(.p = -INFINITY)},
                          {.inputs = {ED_MATRICES_IN(3, 3)},
                           .attrs = COND(.p = __builtin_nan(""))}),
};

ed_tensor *ed_cond_with(ed_tensor *a, const ed_cond_options *options)
{
    return CALL_OP(cond, options, a);
}
