/* eigh, eigvalsh, svd, svdvals: small matrices many at a time (small.h), others one by one
 * (spectral.h). */
#include "ops/kernels/lapack.h"
#include "ops/kernels/spectral.h"
#include "ops/matrices.h"
#include "ops/ops.h"
#include "tensor/copy.h"
#include <math.h>
#include <string.h>

/* to [columns, rows] = from [rows, columns] transposed. */
static void transpose_into(ed_dtype dtype, int64_t rows, int64_t columns, const void *from,
                           void *to)
{
    copy_box(dtype_size(dtype), 2, (int64_t[]){columns, rows}, from, (int64_t[]){1, columns}, to,
             (int64_t[]){rows, 1});
}

/* 1 / x, and 0 for 0. */
static ed_tensor *safe_reciprocal(ed_tensor *x)
{
    if (!x) return NULL;
    ed_tensor *zero = ed_equal(x, ed_zeros_like(x));
    return ed_where(zero, 0, ed_reciprocal(ed_where(zero, 1, x)));
}

/* [..., i, j]: w_j - w_i. */
static ed_tensor *differences(ed_tensor *w)
{
    return w ? ed_sub(ed_expand_dims(w, -2), ed_expand_dims(w, -1)) : NULL;
}

/* x with its columns times the elements of w. */
static ed_tensor *scale_columns(ed_tensor *x, ed_tensor *w)
{
    return x && w ? ed_mul(x, ed_expand_dims(w, -2)) : NULL;
}

/* ---- eigh ------------------------------------------------------------------------------------ */

static bool eigh_infer(ed_call *call)
{
    const ed_tensor *a = call->inputs[0];
    return matrix_check_square(call, 0) && matrix_check_lapack(call) &&
           ed_call_output(call, 0, a->dtype, a->rank - 1, a->shape) &&
           (call->n_outputs == 1 || ed_call_output(call, 1, a->dtype, a->rank, a->shape));
}

/* Of the lower triangle. */
static int64_t check_lower(ed_dtype dtype, int64_t n, const char *a)
{
    int64_t wrong = MATRIX_DONE;
    for (int64_t i = 0; i < n && wrong == MATRIX_DONE; i++)
        wrong = matrix_check_norm(dtype, a + (size_t)(i * n) * dtype_size(dtype), i + 1, n + 1);
    return wrong;
}

static int64_t eigh_one(const ed_call *call, int64_t i)
{
    const ed_tensor *a = call->inputs[0], *w = call->outputs[0];
    const int64_t n = matrix_rows(a);
    void *values = w->data + (size_t)(i * n) * dtype_size(a->dtype);
    const int64_t wrong = check_lower(a->dtype, n, matrix_at(a, i));
    if (wrong != MATRIX_DONE) return wrong;
    void *vectors = call->n_outputs > 1 ? matrix_at(call->outputs[1], i) : NULL;
    return matrix_lapack_code(a->dtype == ED_FLOAT32
                                  ? spectral_eigh_f32(n, matrix_at(a, i), values, vectors)
                                  : spectral_eigh_f64(n, matrix_at(a, i), values, vectors));
}

static void eigh_many(const ed_call *call, int64_t i, int64_t count, bool *left, void *room)
{
    (void)room;
    const ed_tensor *a = call->inputs[0], *w = call->outputs[0];
    const int64_t n = matrix_rows(a);
    void *vectors = call->n_outputs > 1 ? matrix_at(call->outputs[1], i) : NULL;
    ISA_CALL(small_eigh)
    (a->dtype == ED_FLOAT64, n, count, matrix_at(a, i),
     w->data + (size_t)(i * n) * dtype_size(a->dtype), vectors, left);
}

static bool eigh_kernel(ed_call *call)
{
    const int64_t n = matrix_rows(call->inputs[0]);
    return matrices_run(call, 0, 1,
                        (matrix_task){.one = eigh_one,
                                      .many = n <= SMALL_SIDE ? eigh_many : NULL,
                                      .work = 9 * n * n * n,
                                      .alone = n > LAPACK_SMALL});
}

/* What depends on the lower triangle alone: dx + dx^T there, the diagonal once. */
static ed_tensor *lower_only(ed_tensor *dx)
{
    ed_tensor *sum = ed_add(dx, matrix_transpose(dx));
    return ed_sub(matrix_band(sum, INT64_MIN, 0), matrix_band(dx, 0, 0));
}

/* da = v (diag(dw) + f v^T dv) v^T, f_ij = 1 / (w_j - w_i), 0 on the diagonal. */
static ed_tensor *eigen_gradient(ed_tensor *w, ed_tensor *v, ed_tensor *dw, ed_tensor *dv)
{
    ed_tensor *right = dw ? scale_columns(v, dw) : NULL;
    if (dv) {
        ed_tensor *f = safe_reciprocal(differences(w));
        ed_tensor *of_v = ed_matmul(v, ed_mul(f, ed_matmul(v, dv, .transpose_a = true)));
        right = right ? ed_add(right, of_v) : of_v;
    }
    return lower_only(ed_matmul(right, v, .transpose_b = true));
}

static bool eigh_gradient(const ed_gradient_call *g)
{
    g->dx[0] = eigen_gradient(g->outputs[0], g->outputs[1], g->dy[0], g->dy[1]);
    return true;
}

static bool eigvalsh_gradient(const ed_gradient_call *g)
{
    ed_tensor *v, *w = ed_eigh(g->inputs[0], &v);
    g->dx[0] = w ? eigen_gradient(w, v, g->dy[0], NULL) : NULL;
    return true;
}

/* Eigenvalues; of the vectors what is unique, a / n. */
static bool eigh_reference(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    const int64_t n = matrix_rows(x);
    for (int64_t m = 0; x->size && m < matrix_count(x); m++) {
        double *a = matrix_copied(x, x, m);
        if (!a) return false;
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < i; j++) a[j * n + i] = a[i * n + j];
        for (int64_t e = 0; call->n_outputs > 1 && e < n * n; e++)
            ((double *)matrix_at(call->outputs[1], m))[e] = a[e] / (double)n;
        matrix_eigenvalues(n, a, (double *)call->outputs[0]->data + m * n);
    }
    return true;
}

/* v diag(w) v^T, whose error goes with the norm, of n elements to one; so all is divided by n. */
static bool eigh_unique(ed_tensor **outputs)
{
    ed_tensor *v = outputs[1];
    const int64_t n = ed_dim(v, -1);
    ed_tensor *w = ed_div(outputs[0], (double)(n > 0 ? n : 1));
    outputs[1] = ed_matmul(scale_columns(v, w), v, .transpose_b = true);
    return outputs[1];
}

#define EIGH_SAMPLES                                                                               \
    ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 3)}}, {.inputs = {ED_SAMPLE_IN(-2, 2, 3, 2, 2)}})

/* eigh: a = v diag(w) v^T */
ED_OP(eigh) = {
    .name = "eigh",
    .doc = "eigenvalues and eigenvectors of symmetric matrices",
    .operands = {{"a", ED_SET_FLOAT, 'T'}},
    .results = ED_RESULTS({.name = "values", .saved = true}, {.name = "vectors", .saved = true}),
    .flags = ED_OP_CONTIGUOUS,
    .infer = eigh_infer,
    .batch = ed_batch_axes,
    .kernel = eigh_kernel,
    .gradient = eigh_gradient,
    .reference = eigh_reference,
    .unique = eigh_unique,
    .samples = EIGH_SAMPLES,
};

ED_OP(eigvalsh) = {
    .name = "eigvalsh",
    .doc = "eigenvalues of symmetric matrices",
    .operands = {{"a", ED_SET_FLOAT, 'T', .saved = true}},
    .flags = ED_OP_CONTIGUOUS,
    .infer = eigh_infer,
    .batch = ed_batch_axes,
    .kernel = eigh_kernel,
    .gradient = eigvalsh_gradient,
    .reference = eigh_reference,
    .samples = EIGH_SAMPLES,
};

ed_tensor *ed_eigh(ed_tensor *a, ed_tensor **vectors)
{
    if (!vectors) return ed_eigvalsh(a);
    return ops_call_into(&ed_op_eigh, &a, 1, NULL, (ed_tensor * *const[]){vectors});
}

ed_tensor *ed_eigvalsh(ed_tensor *a)
{
    return CALL_OP(eigvalsh, NULL, a);
}

/* ---- svd ------------------------------------------------------------------------------------- */

static bool is_full(const ed_call *call)
{
    const ed_svd_options *o = call->attrs;
    return o && o->full_matrices;
}

static bool svd_infer(ed_call *call)
{
    const ed_tensor *a = call->inputs[0];
    int64_t shape[ED_MAX_RANK];
    if (!matrix_check(call, 0) || !matrix_check_lapack(call)) return false;
    const int64_t m = matrix_rows(a), n = matrix_columns(a), k = m < n ? m : n;
    memcpy(shape, a->shape, sizeof shape);
    shape[a->rank - 2] = k;
    if (!ed_call_output(call, 0, a->dtype, a->rank - 1, shape)) return false;
    if (call->n_outputs == 1) return true;
    shape[a->rank - 2] = m;
    shape[a->rank - 1] = is_full(call) ? m : k;
    if (!ed_call_output(call, 1, a->dtype, a->rank, shape)) return false;
    shape[a->rank - 2] = n;
    shape[a->rank - 1] = is_full(call) ? n : k;
    return ed_call_output(call, 2, a->dtype, a->rank, shape);
}

static int64_t svd_one(const ed_call *call, int64_t i)
{
    const ed_tensor *a = call->inputs[0], *s = call->outputs[0];
    const int64_t m = matrix_rows(a), n = matrix_columns(a), k = m < n ? m : n;
    const bool vectors = call->n_outputs > 1, full = is_full(call);
    const int64_t wrong = matrix_check_norm(a->dtype, matrix_at(a, i), m * n, m + n);
    if (wrong != MATRIX_DONE) return wrong;
    void *values = s->data + (size_t)(i * k) * dtype_size(a->dtype);
    void *u = vectors ? matrix_at(call->outputs[1], i) : NULL;
    void *v = vectors ? matrix_at(call->outputs[2], i) : NULL;
    return matrix_lapack_code(a->dtype == ED_FLOAT32
                                  ? spectral_svd_f32(full, m, n, matrix_at(a, i), values, u, v)
                                  : spectral_svd_f64(full, m, n, matrix_at(a, i), values, u, v));
}

/* Of matrices without elements the full ones are the identity. */
static void fill_eye(const ed_tensor *x)
{
    const int64_t n = x->shape[x->rank - 1];
    memset(x->data, 0, (size_t)x->size * dtype_size(x->dtype));
    for (int64_t e = 0; e < x->size; e++)
        if (e / n % n == e % n) dtype_store(x->dtype, x->data, e, 1);
}

static void svd_many(const ed_call *call, int64_t i, int64_t count, bool *left, void *room)
{
    (void)room;
    const ed_tensor *a = call->inputs[0], *s = call->outputs[0];
    const int64_t m = matrix_rows(a), n = matrix_columns(a), k = m < n ? m : n;
    const bool vectors = call->n_outputs > 1;
    ISA_CALL(small_svd)
    (a->dtype == ED_FLOAT64, m, n, count, matrix_at(a, i),
     s->data + (size_t)(i * k) * dtype_size(a->dtype),
     vectors ? matrix_at(call->outputs[1], i) : NULL,
     vectors ? matrix_at(call->outputs[2], i) : NULL, left);
}

static bool svd_kernel(ed_call *call)
{
    const ed_tensor *a = call->inputs[0];
    const int64_t m = matrix_rows(a), n = matrix_columns(a), most = m > n ? m : n;
    if (a->size > 0)
        return matrices_run(call, 0, 1,
                            (matrix_task){.one = svd_one,
                                          .many = most <= SMALL_SIDE && (m == n || !is_full(call))
                                                      ? svd_many
                                                      : NULL,
                                          .work = 20 * m * n * most,
                                          .alone = most > LAPACK_SMALL});
    for (int i = 1; i < call->n_outputs; i++) fill_eye(call->outputs[i]);
    return true;
}

/* (x - x^T) f, twice the antisymmetric part. */
static ed_tensor *turning(ed_tensor *u, ed_tensor *du, ed_tensor *f)
{
    ed_tensor *x = ed_matmul(u, du, .transpose_a = true);
    return ed_mul(f, ed_sub(x, matrix_transpose(x)));
}

/* (1 - u u^T) du / s: what turns u out of the space of its columns. */
static ed_tensor *leaving(ed_tensor *u, ed_tensor *du, ed_tensor *inverse)
{
    ed_tensor *inside = ed_matmul(u, ed_matmul(u, du, .transpose_a = true));
    return scale_columns(ed_sub(du, inside), inverse);
}

static ed_tensor *sum_of(ed_tensor *a, ed_tensor *b)
{
    return a && b ? ed_add(a, b) : a ? a : b;
}

/*
 * da = u (diag(ds) + (f (u^T du - du^T u)) s + s (f (v^T dv - dv^T v))) v^T
 *      + (1 - u u^T) du s^-1 v^T + u s^-1 dv^T (1 - v v^T), f_ij = 1 / (s_j^2 - s_i^2)
 * (Townsend, Differentiating the singular value decomposition, 2016). du and dv may be NULL.
 */
static ed_tensor *svd_backward(ed_tensor *s, ed_tensor *u, ed_tensor *v, ed_tensor *ds,
                               ed_tensor *du, ed_tensor *dv)
{
    ed_tensor *middle = ds ? matrix_of_diagonal(ds) : NULL, *da = NULL;
    if (du || dv) {
        ed_tensor *f = safe_reciprocal(differences(ed_square(s))), *inverse = safe_reciprocal(s);
        if (du) middle = sum_of(middle, scale_columns(turning(u, du, f), s));
        if (dv) middle = sum_of(middle, ed_mul(ed_expand_dims(s, -1), turning(v, dv, f)));
        if (du) da = ed_matmul(leaving(u, du, inverse), v, .transpose_b = true);
        if (dv) da = sum_of(da, ed_matmul(u, leaving(v, dv, inverse), .transpose_b = true));
    }
    if (!middle) return NULL;
    return sum_of(ed_matmul(ed_matmul(u, middle), v, .transpose_b = true), da);
}

static bool svd_gradient(const ed_gradient_call *g)
{
    const ed_svd_options *o = g->attrs;
    const ed_ints shape = g->shapes[0];
    if (o->full_matrices && shape.values[shape.count - 2] != shape.values[shape.count - 1])
        return ed_fail(ED_UNIMPLEMENTED,
                       "svd: no gradient with full_matrices where matrices are not square"),
               false;
    g->dx[0] =
        svd_backward(g->outputs[0], g->outputs[1], g->outputs[2], g->dy[0], g->dy[1], g->dy[2]);
    return true;
}

static bool svdvals_gradient(const ed_gradient_call *g)
{
    ed_tensor *u, *v, *s = ed_svd(g->inputs[0], &u, &v);
    g->dx[0] = s ? svd_backward(s, u, v, g->dy[0], NULL, NULL) : NULL;
    return true;
}

/* Divides n elements by the largest singular value where that is above 1. */
static void relate(double *elements, int64_t n, double largest)
{
    for (int64_t e = 0; largest > 1 && e < n; e++) elements[e] /= largest;
}

/* Singular values; of the vectors what is unique: a a^T, as u diag(s) u^T u diag(s) u^T, and a. The
 * error of what the vectors are put together to goes with the norm of the matrix, the largest
 * singular value; so both are compared relative to that, where it is above 1. */
static bool svd_reference(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    const int64_t m = matrix_rows(x), n = matrix_columns(x), k = m < n ? m : n;
    const bool vectors = call->n_outputs > 1;
    for (int64_t i = 0; x->size && i < matrix_count(x); i++) {
        double *a = matrix_copied(x, x, i), *turned = matrix_copied(x, x, i);
        if (!a || !turned) return false;
        if (m < n) transpose_into(ED_FLOAT64, m, n, a, turned);
        matrix_singular(m < n ? n : m, k, turned, NULL, (double *)call->outputs[0]->data + i * k);
        if (!vectors) continue;
        const double largest = ((double *)call->outputs[0]->data)[i * k];
        relate(a, m * n, largest);
        memcpy(matrix_at(call->outputs[2], i), a, (size_t)(m * n) * sizeof *a);
        double *square = matrix_at(call->outputs[1], i);
        for (int64_t e = 0; e < m * m; e++) {
            square[e] = 0;
            for (int64_t p = 0; p < n; p++) square[e] += a[e / m * n + p] * a[e % m * n + p];
        }
    }
    for (int o = 1; !x->size && o < call->n_outputs; o++)
        memset(call->outputs[o]->data, 0, (size_t)call->outputs[o]->size * sizeof(double));
    return true;
}

/* The singular values over the largest one, where that is above 1. */
static ed_tensor *related(ed_tensor *s)
{
    if (!ed_dim(s, -1)) return s;
    ed_tensor *largest = ed_reduce_max(s, .axis = ED_AXES(-1), .keepdims = true);
    return ed_div(s, ed_maximum(largest, 1.0));
}

static bool svd_unique(ed_tensor **outputs)
{
    ed_tensor *s = related(outputs[0]), *u = outputs[1], *v = outputs[2];
    if (!s) return false;
    const int64_t k = ed_dim(s, -1);
    u = matrix_corner(u, ed_dim(u, -2), k);
    ed_tensor *scaled = scale_columns(u, s);
    outputs[1] = ed_matmul(scaled, scaled, .transpose_b = true);
    outputs[2] = ed_matmul(scaled, matrix_corner(v, ed_dim(v, -2), k), .transpose_b = true);
    return outputs[1] && outputs[2];
}

#define SVD(...) ED_ATTRS(ED_SVD_OPTIONS, ed_svd_options, __VA_ARGS__)

/* svd: a = u diag(s) v^T */
ED_OP(svd) = {
    .name = "svd",
    .doc = "singular values and vectors: a = u diag(s) v^T",
    .operands = {{"a", ED_SET_FLOAT, 'T'}},
    .results = ED_RESULTS({.name = "s", .saved = true}, {.name = "u", .saved = true},
                          {.name = "v", .saved = true}),
    .flags = ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(ED_SVD_OPTIONS, ed_svd_options),
    .infer = svd_infer,
    .batch = ed_batch_axes,
    .kernel = svd_kernel,
    .gradient = svd_gradient,
    .reference = svd_reference,
    .unique = svd_unique,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 2)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 2, 3)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 2)},
                           .attrs = SVD(.full_matrices = true)}),
};

ED_OP(svdvals) = {
    .name = "svdvals",
    .doc = "singular values",
    .operands = {{"a", ED_SET_FLOAT, 'T', .saved = true}},
    .flags = ED_OP_CONTIGUOUS,
    .infer = svd_infer,
    .batch = ed_batch_axes,
    .kernel = svd_kernel,
    .gradient = svdvals_gradient,
    .reference = svd_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 2)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 2, 3)}}),
};

ed_tensor *ed_svd_with(ed_tensor *a, ed_tensor **u, ed_tensor **v, const ed_svd_options *options)
{
    if (!u && !v) return ed_svdvals(a);
    return ops_call_into(&ed_op_svd, &a, 1, options, (ed_tensor * *const[]){u, v});
}

ed_tensor *ed_svdvals(ed_tensor *a)
{
    return CALL_OP(svdvals, NULL, a);
}
