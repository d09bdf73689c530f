/* Matrices with few diagonals: tridiagonal_solve, tridiagonal_matmul, banded_triangular_solve. */
#include "ops/matrices.h"
#include "ops/ops.h"
#include "tensor/typed.h"
#include <math.h>
#include <string.h>

/* A triangular matrix [n, n] of so many bands. */
typedef struct banded {
    bool lower, adjoint;
    int64_t bands, n;
} banded;

/* Column - row of the elements of band q. */
static int64_t offset_of(banded s, int64_t q)
{
    return s.lower ? -q : s.bands - 1 - q;
}

#define TYPE f32
#include "ops/banded.typed.h"
#define TYPE f64
#include "ops/banded.typed.h"

/* ---- Rows, made of public ops ---------------------------------------------------------------- */

/* Rows first .. first + count - 1 of x's matrices. */
static ed_tensor *rows_from(ed_tensor *x, int64_t first, int64_t count)
{
    int64_t begin[ED_MAX_RANK] = {0}, end[ED_MAX_RANK];
    if (!x) return NULL;
    const int rank = ed_rank(x);
    for (int d = 0; d < rank; d++) end[d] = ED_END;
    begin[rank - 2] = first;
    end[rank - 2] = first + count;
    return ed_slice(x, .begin = {begin, rank}, .end = {end, rank});
}

/* x with rows of zeros above and below. */
static ed_tensor *surround(ed_tensor *x, int64_t above, int64_t below)
{
    int64_t before[ED_MAX_RANK] = {0}, after[ED_MAX_RANK] = {0};
    if (!x || above + below == 0) return x;
    const int rank = ed_rank(x);
    before[rank - 2] = above;
    after[rank - 2] = below;
    return ed_pad(x, .before = {before, rank}, .after = {after, rank});
}

/* Row i is u[i] v[i + offset], or 0 where v has no such row; u and v [..., n, k]. */
static ed_tensor *row_products(ed_tensor *u, ed_tensor *v, int64_t offset, bool summed)
{
    if (!u || !v) return NULL;
    const int64_t n = ed_dim(u, -2), far = offset < 0 ? -offset : offset;
    const int64_t count = far < n ? n - far : 0, first = offset < 0 && count ? far : 0;
    const int64_t other = offset > 0 && count ? far : 0;
    ed_tensor *y = ed_mul(rows_from(u, first, count), rows_from(v, other, count));
    if (summed) y = ed_reduce_sum(y, .axis = ED_AXES(-1), .keepdims = true);
    return surround(y, first, n - count - first);
}

/* The gradient of bands: of band q, -(the sums of u[i] v[i + offset of q]), [..., bands, n]. */
static ed_tensor *bands_gradient(ed_tensor *u, ed_tensor *v, int64_t bands, const int64_t *offsets)
{
    ed_list *list = ed_list_make(NULL, 0);
    for (int64_t q = 0; list && q < bands; q++) {
        ed_tensor *column = row_products(u, v, offsets[q], true);
        list = column ? ed_list_concat(list, ed_list_of(column)) : NULL;
    }
    return list ? ed_neg(matrix_transpose(ed_concat(list, .axis = -1))) : NULL;
}

/* ---- tridiagonal_solve ----------------------------------------------------------------------- */

static bool check_diagonals(const ed_call *call)
{
    const ed_tensor *d = call->inputs[0];
    return (d->rank >= 2 && matrix_rows(d) == 3) ||
           ed_call_fail(call, ED_INVALID_ARGUMENT,
                        "diagonals is %s; it must be [..., 3, m]: above, on and below the main "
                        "diagonal",
                        text_of_tensor(d).s);
}

/* The dimensions of one right side: 1 where b has one dimension less than the diagonals. */
static int inner_of(const ed_tensor *d, const ed_tensor *b)
{
    return b->rank == d->rank - 1 ? 1 : 2;
}

static bool tridiagonal_infer(ed_call *call)
{
    const ed_tensor *d = call->inputs[0], *b = call->inputs[1];
    int64_t shape[ED_MAX_RANK];
    int rank;
    if (!check_diagonals(call)) return false;
    const int inner = inner_of(d, b);
    if (b->rank < inner || b->shape[b->rank - inner] != matrix_columns(d))
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "diagonals must be [..., 3, m] and b [..., m, k] or [..., m]: "
                            "diagonals is %s, b is %s",
                            text_of_tensor(d).s, text_of_tensor(b).s);
    if (!ops_broadcast(d->rank - 2, d->shape, b->rank - inner, b->shape, &rank, shape))
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "leading dimensions don't broadcast: diagonals is %s, b is %s",
                            text_of_tensor(d).s, text_of_tensor(b).s);
    memcpy(shape + rank, b->shape + b->rank - inner, (size_t)inner * sizeof *shape);
    return ed_call_output(call, 0, d->dtype, rank + inner, shape);
}

/* The header of a vector as that of a matrix of one column. */
static ed_tensor as_matrix(const ed_tensor *x, int inner)
{
    ed_tensor y = *x;
    if (inner == 1) y.shape[y.rank++] = 1;
    return y;
}

/* Matrix i of the result, with b's in it; its columns. */
static void *begin_with_right(const ed_call *call, int64_t i, int64_t *k)
{
    const int inner = inner_of(call->inputs[0], call->inputs[1]);
    const ed_tensor b = as_matrix(call->inputs[1], inner), y = as_matrix(call->outputs[0], inner);
    const int64_t size = matrix_rows(&y) * (*k = matrix_columns(&y));
    return memcpy(matrix_at(&y, i), matrix_of(&b, &y, i), (size_t)size * dtype_size(y.dtype));
}

/* Row `row` of the diagonals that belong to matrix i of the result. */
static void *diagonal_of(const ed_call *call, int64_t i, int64_t row)
{
    const ed_tensor *d = call->inputs[0];
    const ed_tensor y = as_matrix(call->outputs[0], inner_of(d, call->inputs[1]));
    return (char *)matrix_of(d, &y, i) + (size_t)(row * matrix_columns(d)) * dtype_size(d->dtype);
}

static int64_t tridiagonal_one(const ed_call *call, int64_t i)
{
    const ed_tensor *d = call->inputs[0];
    const int64_t n = matrix_columns(d);
    const size_t size = dtype_size(d->dtype);
    int64_t k;
    void *x = begin_with_right(call, i, &k);
    char *room = memory_alloc((size_t)(4 * n) * size);
    if (!room) return MATRIX_NO_MEMORY;
    memcpy(room, diagonal_of(call, i, 0), (size_t)(3 * n) * size);
    memset(room + (size_t)(n - 1) * size, 0, size); /* what is not used */
    memset(room + (size_t)(2 * n) * size, 0, size);
    int64_t code = MATRIX_NOT_FINITE;
    if (matrix_is_finite(d->dtype, room, 3 * n) && matrix_is_finite(d->dtype, x, n * k))
        code = d->dtype == ED_FLOAT32 ? solve_tridiagonal_f32(n, (float *)room, k, x)
                                      : solve_tridiagonal_f64(n, (double *)room, k, x);
    memory_free(room);
    if (code != MATRIX_DONE) return code;
    return matrix_is_finite(d->dtype, x, n * k) ? MATRIX_DONE : MATRIX_OVERFLOWS;
}

static bool tridiagonal_kernel(ed_call *call)
{
    const ed_tensor *y = call->outputs[0];
    const int inner = inner_of(call->inputs[0], call->inputs[1]);
    const int64_t n = y->shape[y->rank - inner], k = inner == 1 ? 1 : matrix_columns(y);
    return matrices_run(call, 0, inner,
                        (matrix_task){tridiagonal_one, "is singular", .work = n * (10 + 6 * k)});
}

/* The diagonals of the transpose. */
static ed_tensor *transposed_diagonals(ed_tensor *d)
{
    ed_list *rows = d ? ed_unstack(d, .axis = -2) : NULL;
    if (!rows) return NULL;
    ed_tensor *above = ed_roll(ed_list_get(rows, 2), ED_INTS(-1), ED_AXES(-1));
    ed_tensor *below = ed_roll(ed_list_get(rows, 0), ED_INTS(1), ED_AXES(-1));
    if (!above || !below) return NULL;
    return ed_stack(ed_list_of(above, ed_list_get(rows, 1), below), .axis = -2);
}

/* db = T^-T dx, and of the diagonals -db x^T. */
static bool tridiagonal_gradient(const ed_gradient_call *g)
{
    static const int64_t offsets[] = {1, 0, -1};
    ed_tensor *db = ed_tridiagonal_solve(transposed_diagonals(g->inputs[0]), g->dy[0]);
    ed_tensor *x = g->outputs[0];
    if (!db) return false;
    if (g->needs[1]) g->dx[1] = ops_sum_to(db, g->shapes[1]);
    if (!g->needs[0]) return true;
    if (g->shapes[1].count == g->shapes[0].count - 1) {
        db = ed_expand_dims(db, -1);
        x = ed_expand_dims(x, -1);
    }
    ed_tensor *dd = bands_gradient(db, x, 3, offsets);
    if (dd) g->dx[0] = ops_sum_to(dd, g->shapes[0]);
    return true;
}

/* Rows `top` and `low` [length] turned so that low[0] becomes 0. */
static void turn_rows(const double turn[2], int64_t length, double *top, double *low)
{
    const double c = turn[0], s = turn[1];
    for (int64_t j = 0; j < length; j++) {
        const double x = top[j], y = low[j];
        top[j] = c * x + s * y;
        low[j] = c * y - s * x;
    }
}

/* By Givens' rotations of neighbouring rows: r [n, 3] has the main diagonal and two above it. */
static void rotate_plain(int64_t n, const double *d, double *r, int64_t k, double *x)
{
    for (int64_t i = 0; i < n; i++) {
        double *row = r + 3 * i, next[3] = {0}, turn[2];
        if (i == 0) memcpy(row, (double[]){d[n], n > 1 ? d[0] : 0, 0}, 3 * sizeof *row);
        if (i + 1 == n) break;
        memcpy(next, (double[]){d[2 * n + i + 1], d[n + i + 1], i + 2 < n ? d[i + 1] : 0},
               sizeof next);
        const double length = hypot(row[0], next[0]);
        turn[0] = length > 0 ? row[0] / length : 1;
        turn[1] = length > 0 ? next[0] / length : 0;
        turn_rows(turn, 3, row, next);
        turn_rows(turn, k, x + i * k, x + (i + 1) * k);
        memcpy(row + 3, (double[]){next[1], next[2], 0}, 3 * sizeof *row);
    }
    for (int64_t i = n - 1; i >= 0; i--)
        for (int64_t j = 0; j < k; j++) {
            double sum = x[i * k + j];
            for (int64_t q = 1; q < 3 && i + q < n; q++) sum -= r[3 * i + q] * x[(i + q) * k + j];
            x[i * k + j] = sum / r[3 * i];
        }
}

static bool tridiagonal_reference(const ed_call *call)
{
    const int64_t n = matrix_columns(call->inputs[0]), y_size = call->outputs[0]->size;
    ed_tensor *room = scope_give(tensor_new(ED_FLOAT64, 1, &(int64_t){3 * n}));
    int64_t k;
    for (int64_t i = 0, done = 0; room && done < y_size; i++, done += n * k) {
        double *x = begin_with_right(call, i, &k);
        rotate_plain(n, diagonal_of(call, i, 0), (double *)room->data, k, x);
    }
    return room;
}

/* tridiagonal_solve: x = T^-1 b */
ED_OP(tridiagonal_solve) = {
    .name = "tridiagonal_solve",
    .doc = "x with T x = b, T tridiagonal",
    .operands = {{"diagonals", ED_SET_FLOAT, 'T', .saved = true}, {"b", ED_SET_FLOAT, 'T'}},
    .results = ED_RESULTS({.name = "x", .saved = true}),
    .flags = ED_OP_CONTIGUOUS,
    .infer = tridiagonal_infer,
    .batch = ed_batch_axes,
    .kernel = tridiagonal_kernel,
    .gradient = tridiagonal_gradient,
    .reference = tridiagonal_reference,
    .samples = ED_SAMPLES({.inputs = {ED_DIAGONALS_IN(3, 4), ED_SAMPLE_IN(-1, 1, 4, 2)}},
                          {.inputs = {ED_DIAGONALS_IN(2, 3, 5), ED_SAMPLE_IN(-1, 1, 2, 5)}},
                          {.inputs = {ED_DIAGONALS_IN(2, 1, 3, 4),
                                      ED_SAMPLE_IN(-1, 1, 1, 5, 4, 1)}},
                          {.inputs = {ED_SAMPLE_IN(0.5, 2, 3, 4), ED_SAMPLE_IN(-1, 1, 4, 2)}}),
};

ed_tensor *ed_tridiagonal_solve(ed_tensor *diagonals, ed_tensor *b)
{
    return CALL_OP(tridiagonal_solve, NULL, diagonals, b);
}

/* ---- tridiagonal_matmul ---------------------------------------------------------------------- */

static bool tridiagonal_matmul_compose(ed_call *call)
{
    ed_tensor *d = call->inputs[0], *b = call->inputs[1];
    if (!check_diagonals(call) || !matrix_check(call, 1)) return false;
    if (ed_dim(d, -1) != ed_dim(b, -2))
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "diagonals must be [..., 3, m] and b [..., m, k]: diagonals is %s, b "
                            "is %s",
                            text_of_tensor(d).s, text_of_tensor(b).s);
    ed_tensor *columns = matrix_transpose(d), *y = NULL; /* [..., m, 3] */
    ed_list *parts = columns ? ed_split(columns, 3, .axis = -1) : NULL;
    for (int q = 0; parts && q < 3; q++) {
        ed_tensor *term = row_products(ed_list_get(parts, q), b, 1 - q, false);
        y = q ? ed_add(y, term) : term;
    }
    return parts && ed_call_result(call, 0, y);
}

static bool tridiagonal_matmul_reference(const ed_call *call)
{
    const ed_tensor *d = call->inputs[0], *b = call->inputs[1], *y = call->outputs[0];
    const int64_t n = matrix_columns(d), k = matrix_columns(y);
    for (int64_t i = 0; y->size && i < matrix_count(y); i++) {
        const double *a = matrix_of(d, y, i), *x = matrix_of(b, y, i);
        double *to = matrix_at(y, i);
        for (int64_t r = 0; r < n; r++)
            for (int64_t j = 0; j < k; j++) {
                to[r * k + j] = a[n + r] * x[r * k + j];
                if (r + 1 < n) to[r * k + j] += a[r] * x[(r + 1) * k + j];
                if (r > 0) to[r * k + j] += a[2 * n + r] * x[(r - 1) * k + j];
            }
    }
    return true;
}

ED_OP(tridiagonal_matmul) = {
    .name = "tridiagonal_matmul",
    .doc = "y = T b, T tridiagonal",
    .operands = {{"diagonals", ED_SET_FLOAT, 'T'}, {"b", ED_SET_FLOAT, 'T'}},
    .compose = tridiagonal_matmul_compose,
    .reference = tridiagonal_matmul_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4), ED_SAMPLE_IN(-1, 1, 4, 2)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 1, 3, 4),
                                      ED_SAMPLE_IN(-1, 1, 5, 4, 1)}}),
};

ed_tensor *ed_tridiagonal_matmul(ed_tensor *diagonals, ed_tensor *b)
{
    return CALL_OP(tridiagonal_matmul, NULL, diagonals, b);
}

/* ---- banded_triangular_solve ----------------------------------------------------------------- */

static banded banded_of(const void *attrs, int64_t bands, int64_t n)
{
    const ed_triangular_solve_options *o = attrs;
    return (banded){o->lower, o->adjoint, bands, n};
}

static bool banded_infer(ed_call *call)
{
    const ed_tensor *a = call->inputs[0], *b = call->inputs[1];
    int64_t shape[ED_MAX_RANK];
    int rank;
    if (!matrix_check(call, 0) || !matrix_check(call, 1)) return false;
    if (matrix_columns(a) != matrix_rows(b))
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "bands must be [..., k, m] and b [..., m, n]: bands is %s, b is %s",
                            text_of_tensor(a).s, text_of_tensor(b).s);
    if (matrix_rows(a) < 1 || (matrix_rows(a) > matrix_columns(a) && matrix_columns(a) > 0))
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "bands is %s; it must have 1 to m rows, one for each diagonal",
                            text_of_tensor(a).s);
    if (!matrix_broadcast(call, &rank, shape)) return false;
    shape[rank] = matrix_rows(b);
    shape[rank + 1] = matrix_columns(b);
    return ed_call_output(call, 0, a->dtype, rank + 2, shape);
}

/* Whether what is used of the bands is finite. */
static bool bands_are_finite(ed_dtype dtype, banded s, const char *bands)
{
    const size_t size = dtype_size(dtype);
    bool finite = true;
    for (int64_t q = 0; q < s.bands; q++) {
        const int64_t offset = offset_of(s, q), from = offset < 0 ? -offset : 0;
        const int64_t used = s.n - (offset < 0 ? -offset : offset);
        finite &= matrix_is_finite(dtype, bands + (size_t)(q * s.n + from) * size, used);
    }
    return finite;
}

static int64_t banded_one(const ed_call *call, int64_t i)
{
    const ed_tensor *a = call->inputs[0], *b = call->inputs[1], *y = call->outputs[0];
    const int64_t n = matrix_rows(y), k = matrix_columns(y);
    const banded s = banded_of(call->attrs, matrix_rows(a), n);
    const void *bands = matrix_of(a, y, i);
    void *x = memcpy(matrix_at(y, i), matrix_of(b, y, i), (size_t)(n * k) * dtype_size(y->dtype));
    if (!bands_are_finite(y->dtype, s, bands) || !matrix_is_finite(y->dtype, x, n * k))
        return MATRIX_NOT_FINITE;
    const int64_t code = y->dtype == ED_FLOAT32 ? solve_banded_f32(s, bands, k, x)
                                                : solve_banded_f64(s, bands, k, x);
    if (code != MATRIX_DONE) return code;
    return matrix_is_finite(y->dtype, x, n * k) ? MATRIX_DONE : MATRIX_OVERFLOWS;
}

static bool banded_kernel(ed_call *call)
{
    const ed_tensor *a = call->inputs[0], *y = call->outputs[0];
    const int64_t work = matrix_rows(a) * matrix_rows(y) * matrix_columns(y);
    return matrices_run(call, 0, 2, (matrix_task){banded_one, "is singular", .work = work});
}

/* db = A^-T dx, dA = -db x^T, or -x db^T where A^T was solved. */
static bool banded_gradient(const ed_gradient_call *g)
{
    const ed_triangular_solve_options *o = g->attrs;
    ed_tensor *bands = g->inputs[0], *x = g->outputs[0];
    ed_tensor *db =
        ed_banded_triangular_solve(bands, g->dy[0], .lower = o->lower, .adjoint = !o->adjoint);
    if (!db) return false;
    if (g->needs[1]) g->dx[1] = ops_sum_to(db, g->shapes[1]);
    if (!g->needs[0]) return true;
    const banded s = banded_of(o, ed_dim(bands, -2), ed_dim(bands, -1));
    int64_t *offsets = memory_alloc((size_t)s.bands * sizeof *offsets);
    for (int64_t q = 0; offsets && q < s.bands; q++) offsets[q] = offset_of(s, q);
    ed_tensor *da = !offsets     ? NULL
                    : o->adjoint ? bands_gradient(x, db, s.bands, offsets)
                                 : bands_gradient(db, x, s.bands, offsets);
    memory_free(offsets);
    if (da) g->dx[0] = ops_sum_to(da, g->shapes[0]);
    return da;
}

/* Element [i, j] of the matrix that is solved, from bands [q, n]. */
static double banded_element(const ed_triangular_solve_options *o, int64_t q, int64_t n,
                             const double *bands, int64_t i, int64_t j)
{
    const int64_t row = o->adjoint ? j : i, column = o->adjoint ? i : j;
    const int64_t band = o->lower ? row - column : q - 1 - (column - row);
    return band >= 0 && band < q ? bands[band * n + row] : 0;
}

/* Each unknown that is found is taken out of the equations that are left. */
static bool banded_reference(const ed_call *call)
{
    const ed_tensor *bands = call->inputs[0], *y = call->outputs[0];
    const int64_t n = matrix_rows(y), k = matrix_columns(y), q = matrix_rows(bands);
    const ed_triangular_solve_options *o = call->attrs;
    const int64_t way = o->lower != o->adjoint ? 1 : -1;
    for (int64_t m = 0; y->size && m < matrix_count(y); m++) {
        const double *a = matrix_of(bands, y, m), *b = matrix_of(call->inputs[1], y, m);
        double *x = memcpy(matrix_at(y, m), b, (size_t)(n * k) * sizeof *x);
        for (int64_t j = way > 0 ? 0 : n - 1; j >= 0 && j < n; j += way)
            for (int64_t c = 0; c < k; c++) {
                x[j * k + c] /= banded_element(o, q, n, a, j, j);
                for (int64_t i = j + way; i >= 0 && i < n && way * (i - j) < q; i += way)
                    x[i * k + c] -= banded_element(o, q, n, a, i, j) * x[j * k + c];
            }
    }
    return true;
}

#define BANDED(...) ED_ATTRS(ED_TRIANGULAR_SOLVE_OPTIONS, ed_triangular_solve_options, __VA_ARGS__)

/* banded_triangular_solve: x = A^-1 b */
ED_OP(banded_triangular_solve) = {
    .name = "banded_triangular_solve",
    .doc = "x with A x = b, A triangular with few diagonals",
    .operands = {{"bands", ED_SET_FLOAT, 'T', .saved = true}, {"b", ED_SET_FLOAT, 'T'}},
    .results = ED_RESULTS({.name = "x", .saved = true}),
    .flags = ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(ED_TRIANGULAR_SOLVE_OPTIONS, ed_triangular_solve_options),
    .infer = banded_infer,
    .batch = ed_batch_broadcast,
    .kernel = banded_kernel,
    .gradient = banded_gradient,
    .reference = banded_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(1, 2, 2, 4), ED_SAMPLE_IN(-1, 1, 4, 3)}},
                          {.inputs = {ED_SAMPLE_IN(1, 2, 2, 4), ED_SAMPLE_IN(-1, 1, 3, 4, 1)},
                           .attrs = BANDED(.lower = false)},
                          {.inputs = {ED_SAMPLE_IN(1, 2, 2, 2, 4), ED_SAMPLE_IN(-1, 1, 4, 1)},
                           .attrs = BANDED(.adjoint = true)},
                          {.inputs = {ED_SAMPLE_IN(1, 2, 3, 4), ED_SAMPLE_IN(-1, 1, 4, 2)},
                           .attrs = BANDED(.lower = false, .adjoint = true)}),
};

ed_tensor *ed_banded_triangular_solve_with(ed_tensor *bands, ed_tensor *b,
                                           const ed_triangular_solve_options *options)
{
    return CALL_OP(banded_triangular_solve, options, bands, b);
}
