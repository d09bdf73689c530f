/* Cholesky, LU and QR factors of matrices that are taken one by one, and what is solved with them:
 * sizes around the borders of what is cut, residuals beside LAPACK's, any number of threads. */
#include "ops/ops.h"
#include "tensor/core.h"
#include "tests/asserts.h"
#include <cblas.h>
#include <float.h>
#include <math.h>
#include <string.h>

typedef struct shape {
    int64_t m, n;
} shape;

/* Numbers [m, n] without a pattern. */
static ed_tensor *numbers(ed_dtype dtype, int64_t m, int64_t n)
{
    ed_tensor *x = ed_range(1, (double)(m * n + 1), .dtype = ED_FLOAT64);
    return ed_cast(ed_reshape(ed_sin(ed_mul(x, x)), ED_SHAPE(m, n)), dtype);
}

static ed_tensor *definite(ed_dtype dtype, int64_t n)
{
    ed_tensor *x = numbers(dtype, n, n);
    return ed_add(ed_div(ed_matmul(x, x, .transpose_b = true), (double)n),
                  ed_mul(ed_eye(n, .dtype = dtype), 0.01));
}

static ed_tensor *wide(ed_tensor *x)
{
    return ed_cast(x, ED_FLOAT64);
}

/* |x - y| by Frobenius, in float64. */
static double distance(ed_tensor *x, ed_tensor *y)
{
    ed_tensor *norm = ed_norm(ed_sub(wide(x), wide(y)));
    assert_fine();
    return ed_item(norm);
}

static double epsilon_of(ed_dtype dtype)
{
    return dtype == ED_FLOAT32 ? FLT_EPSILON : DBL_EPSILON;
}

/* An error is not much more than LAPACK's of the same matrix, or some roundings of its size. */
static void assert_like(double error, double theirs, double size, ed_dtype dtype, int64_t n)
{
    const double bound = 2 * theirs + 3 * epsilon_of(dtype) * sqrt((double)n + 3) * size;
    if (!(error <= bound))
        fail_msg("error %g, LAPACK's %g, of size %g, n = %lld", error, theirs, size, (long long)n);
}

/* ---- LAPACK ---------------------------------------------------------------------------------- */

#define DECLARE(prefix, type)                                                                      \
    void prefix##potrf_(const char *uplo, const blasint *n, type *a, const blasint *lda,           \
                        blasint *info, size_t);                                                    \
    void prefix##getrf_(const blasint *m, const blasint *n, type *a, const blasint *lda,           \
                        blasint *p, blasint *info);                                                \
    void prefix##getrs_(const char *trans, const blasint *n, const blasint *columns,               \
                        const type *a, const blasint *lda, const blasint *p, type *b,              \
                        const blasint *ldb, blasint *info, size_t)
DECLARE(s, float);
DECLARE(d, double);

/* A tensor of its own with the same numbers, column by column where it is turned. */
static ed_tensor *copied(ed_tensor *x)
{
    ed_tensor *y = ed_add(ed_contiguous(x), 0);
    assert_fine();
    return y;
}

/* L of a; a's lower triangle is the upper one of what LAPACK sees. */
static ed_tensor *lapack_cholesky(ed_tensor *a)
{
    ed_tensor *l = copied(a);
    const blasint n = (blasint)ed_dim(a, 0);
    blasint info;
    if (ed_dtype_of(a) == ED_FLOAT32)
        spotrf_("U", &n, (float *)l->data, &n, &info, 1);
    else
        dpotrf_("U", &n, (double *)l->data, &n, &info, 1);
    assert_int_equal(info, 0);
    return ed_tril(l);
}

/* x with a x = b. */
static ed_tensor *lapack_solve(ed_tensor *a, ed_tensor *b)
{
    ed_tensor *lu = copied(ed_matrix_transpose(a)), *x = copied(ed_matrix_transpose(b));
    const blasint n = (blasint)ed_dim(a, 0), columns = (blasint)ed_dim(b, 1);
    blasint info, p[1024];
    if (ed_dtype_of(a) == ED_FLOAT32) {
        sgetrf_(&n, &n, (float *)lu->data, &n, p, &info);
        sgetrs_("N", &n, &columns, (float *)lu->data, &n, p, (float *)x->data, &n, &info, 1);
    } else {
        dgetrf_(&n, &n, (double *)lu->data, &n, p, &info);
        dgetrs_("N", &n, &columns, (double *)lu->data, &n, p, (double *)x->data, &n, &info, 1);
    }
    assert_int_equal(info, 0);
    return ed_matrix_transpose(x);
}

/* ---- Residuals ------------------------------------------------------------------------------- */

static const int64_t sides[] = {1,  2,  5,  15,  16,  17,  31,  32,  33,  63,
                                64, 65, 96, 127, 129, 200, 257, 320, 500, 641};
enum { SIDES = sizeof sides / sizeof *sides };

static double product_error(ed_tensor *a, ed_tensor *b, ed_tensor *want)
{
    return distance(ed_matmul(wide(a), wide(b)), want);
}

static void check_cholesky(ed_dtype dtype, int64_t n)
{
    ed_tensor *a = definite(dtype, n), *l = ed_cholesky(a), *theirs = lapack_cholesky(a);
    /* What lies above the diagonal is not read. */
    assert_true(
        ed_all_close(ed_cholesky(ed_where(ed_equal(ed_tril(a), a), a, NAN)), l, 0, 0, NULL));
    assert_true(ed_all_close(ed_tril(l), l, 0, 0, NULL));
    assert_like(product_error(l, ed_matrix_transpose(l), a),
                product_error(theirs, ed_matrix_transpose(theirs), a), ed_item(ed_norm(wide(a))),
                dtype, n);
}

/* Rows are exchanged so that no factor of L is above 1. */
static void check_lu(ed_dtype dtype, int64_t n)
{
    ed_tensor *a = numbers(dtype, n, n), *p, *lu = ed_lu(a, &p);
    assert_true(ed_item(ed_reduce_max(ed_abs(ed_tril(lu, .k = -1)))) <= 1);
    ed_tensor *again = ed_lu_reconstruct(wide(lu), p);
    assert_like(distance(again, a), 0, ed_item(ed_norm(wide(a))), dtype, n);
}

static void check_solve(ed_dtype dtype, int64_t n, int64_t columns)
{
    ed_tensor *a = numbers(dtype, n, n), *b = numbers(dtype, n, columns);
    ed_tensor *turned = ed_matrix_transpose(a), *theirs = lapack_solve(a, b);
    const double bound = product_error(a, theirs, b);
    const double size = ed_item(ed_norm(wide(theirs)));
    assert_like(product_error(a, ed_solve(a, b), b), bound, size, dtype, n);
    assert_like(product_error(a, ed_solve(turned, b, .adjoint = true), b), bound, 2 * size, dtype,
                n);
}

static void check_inverse(ed_dtype dtype, int64_t n)
{
    ed_tensor *a = numbers(dtype, n, n), *eye = ed_eye(n, .dtype = dtype);
    ed_tensor *theirs = lapack_solve(a, eye), *y = ed_inv(a), *turned = ed_matrix_transpose(a);
    const double bound = product_error(a, theirs, eye), size = ed_item(ed_norm(wide(theirs)));
    assert_like(product_error(a, y, eye), bound, size, dtype, n);
    assert_like(product_error(a, ed_inv(turned, .adjoint = true), eye), bound, 2 * size, dtype, n);
}

/* T^-1 b for all four kinds of triangle; the other triangle is not read. */
static void check_triangles(ed_dtype dtype, int64_t n, int64_t columns)
{
    ed_tensor *x = ed_add(ed_div(numbers(dtype, n, n), (double)n), ed_eye(n, .dtype = dtype));
    ed_tensor *b = numbers(dtype, n, columns);
    ed_tensor *other = ed_full(ed_shape(x), NAN, .dtype = dtype);
    for (int kind = 0; kind < 4; kind++) {
        const bool lower = kind & 1, adjoint = kind & 2;
        ed_tensor *t = lower ? ed_tril(x) : ed_triu(x);
        ed_tensor *spoiled =
            lower ? ed_add(t, ed_triu(other, .k = 1)) : ed_add(t, ed_tril(other, .k = -1));
        ed_tensor *y = ed_triangular_solve(spoiled, b, .lower = lower, .adjoint = adjoint);
        assert_like(product_error(adjoint ? ed_matrix_transpose(t) : t, y, b), 0,
                    ed_item(ed_norm(wide(b))), dtype, n);
    }
}

static void check_qr(ed_dtype dtype, int64_t m, int64_t n, bool full)
{
    ed_tensor *a = numbers(dtype, m, n), *r, *q = ed_qr(a, &r, .full_matrices = full);
    const int64_t k = full || m < n ? m : n;
    assert_true(ed_all_close(ed_triu(r), r, 0, 0, NULL));
    assert_like(product_error(q, r, a), 0, 2 * ed_item(ed_norm(wide(a))), dtype, m);
    assert_like(product_error(ed_matrix_transpose(q), q, ed_eye(k, .dtype = dtype)), 0,
                2 * sqrt((double)k), dtype, m);
}

static void test_residuals(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * SIDES; i++) {
        ED_SCOPE;
        const ed_dtype dtype = i % 2 ? ED_FLOAT64 : ED_FLOAT32;
        const int64_t n = sides[i / 2];
        check_cholesky(dtype, n);
        check_lu(dtype, n);
        check_solve(dtype, n, 1);
        check_solve(dtype, n, 70);
        check_inverse(dtype, n);
        check_triangles(dtype, n, 3);
        check_triangles(dtype, n, 130);
        check_qr(dtype, n, n, false);
        check_qr(dtype, n, 40, i / 2 % 2);
        check_qr(dtype, 40, n, i / 2 % 2);
        assert_fine();
    }
}

/* ---- Bits ------------------------------------------------------------------------------------ */

enum { RESULTS = 9 };

static void compute(ed_dtype dtype, int64_t n, ed_tensor *y[])
{
    ed_tensor *a = numbers(dtype, n, n), *b = numbers(dtype, n, 150), *p, *r;
    y[0] = ed_cholesky(definite(dtype, n));
    y[1] = ed_lu(a, &p);
    y[2] = p;
    y[3] = ed_solve(a, b);
    y[4] = ed_inv(a);
    y[5] = ed_inv(a, .adjoint = true);
    y[6] = ed_triangular_solve(y[0], b, .adjoint = true);
    y[7] = ed_qr(a, &r);
    y[8] = r;
}

static void test_threads(void **state)
{
    (void)state;
    const int before = ed_num_threads();
    for (int i = 0; i < 6; i++) {
        ED_SCOPE;
        const ed_dtype dtype = i % 2 ? ED_FLOAT64 : ED_FLOAT32;
        const int64_t n = (int64_t[]){130, 333, 700}[i / 2];
        ed_tensor *one[RESULTS], *some[RESULTS];
        ed_set_num_threads(1);
        compute(dtype, n, one);
        for (int threads = 2; threads <= 3; threads++) {
            ed_set_num_threads(threads);
            compute(dtype, n, some);
            assert_fine();
            for (int k = 0; k < RESULTS; k++)
                assert_memory_equal(one[k]->data, some[k]->data,
                                    (size_t)one[k]->size * ed_dtype_size(ed_dtype_of(one[k])));
        }
    }
    ed_set_num_threads(before);
}

/* ---- Errors ---------------------------------------------------------------------------------- */

/* A pivot that fails is named where it is, however deep the matrix was cut. */
static void test_pivots(void **state)
{
    (void)state;
    static const int places[] = {0, 7, 31, 64, 100, 199};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        ED_SCOPE;
        char words[100];
        const int n = 200, at = places[i];
        ed_tensor *place = ed_one_hot(ed_scalar(at, .dtype = ED_INT32), n, .dtype = ED_FLOAT64);
        ed_tensor *a = ed_sub(definite(ED_FLOAT64, n), ed_mul(ed_diag(place), 100));
        assert_null(ed_cholesky(a));
        snprintf(words, sizeof words, "a is not positive definite (pivot %d)", at);
        failed_with(ED_INVALID_ARGUMENT, words);
        /* A column of zeros. */
        ed_tensor *b = ed_mul(numbers(ED_FLOAT64, n, n), ed_sub(1, place));
        assert_null(ed_inv(b));
        snprintf(words, sizeof words, "a is not invertible (pivot %d)", at);
        failed_with(ED_INVALID_ARGUMENT, words);
        assert_true(ed_item(ed_det(b)) == 0);
        ed_tensor *p, *lu = ed_lu(b, &p);
        assert_true(distance(ed_lu_reconstruct(lu, p), b) < 1e-10);
    }
    assert_fine();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_residuals),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_pivots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
