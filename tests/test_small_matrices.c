/* Batches of small matrices, a vector of them at a time: sizes up to and beyond what the vectors'
 * loops take, batches that fill vectors and that do not, matrices that are left to others. */
#include "ops/ops.h"
#include "tests/asserts.h"
#include <math.h>

static const int64_t sides[] = {1, 2, 7, 8, 9, 16, 17, 30, 32, 33}, counts[] = {1, 7, 8, 21};
enum { SIDES = sizeof sides / sizeof *sides, COUNTS = sizeof counts / sizeof *counts };

/* Numbers [count, rows, columns] without a pattern. */
static ed_tensor *numbers(ed_dtype dtype, int64_t count, int64_t rows, int64_t columns)
{
    ed_tensor *x = ed_range(0, (double)(count * rows * columns), .dtype = ED_FLOAT64);
    return ed_cast(ed_reshape(ed_sin(ed_mul(x, x)), ED_SHAPE(count, rows, columns)), dtype);
}

static ed_tensor *definite(ed_dtype dtype, int64_t count, int64_t n)
{
    ed_tensor *x = numbers(dtype, count, n, n);
    return ed_add(ed_matmul(x, x, .transpose_b = true), ed_eye(n, .dtype = dtype));
}

static void assert_near(ed_tensor *got, ed_tensor *want, ed_dtype dtype)
{
    const double tolerance = dtype == ED_FLOAT64 ? 1e-10 : 2e-3;
    assert_fine();
    assert_true(ed_all_close(got, want, tolerance, tolerance, NULL));
}

/* l l^T = a, with zeros above the diagonal. */
static void check_cholesky(ed_dtype dtype, int64_t count, int64_t n)
{
    ED_SCOPE;
    ed_tensor *a = definite(dtype, count, n), *l = ed_cholesky(a);
    assert_near(ed_matmul(l, l, .transpose_b = true), a, dtype);
    assert_true(ed_all_close(ed_tril(l), l, 0, 0, NULL));
}

/* q r = a, q^T q = 1, zeros below r's diagonal; the matrix in the middle is of rank 1. */
static void check_qr(ed_dtype dtype, int64_t count, int64_t m, int64_t n, bool full)
{
    ED_SCOPE;
    ed_tensor *a = numbers(dtype, count, m, n), *r;
    ed_tensor *middle = ed_one_hot(ed_constant_of(ED_INT64, &(int64_t){count / 2}, ED_SHAPE(1)),
                                   count, .dtype = dtype);
    a = ed_where(ed_cast(ed_reshape(middle, ED_SHAPE(count, 1, 1)), ED_BOOL), 3, a);
    ed_tensor *q = ed_qr(a, &r, .full_matrices = full);
    const int64_t k = full || m < n ? m : n;
    assert_near(ed_matmul(q, r), a, dtype);
    assert_near(ed_matmul(q, q, .transpose_a = true),
                ed_broadcast_to(ed_eye(k, .dtype = dtype), ED_SHAPE(count, k, k)), dtype);
    assert_true(ed_all_close(ed_triu(r), r, 0, 0, NULL));
}

/* a x = b, a^T x = b; of a with its rows turned around, so that they must be exchanged. */
static void check_solve(ed_dtype dtype, int64_t count, int64_t n, int64_t columns)
{
    ED_SCOPE;
    ed_tensor *a = definite(dtype, count, n), *b = numbers(dtype, count, n, columns);
    a = ed_reverse(a, ED_AXES(1));
    assert_near(ed_matmul(a, ed_solve(a, b)), b, dtype);
    assert_near(ed_matmul(a, ed_solve(a, b, .adjoint = true), .transpose_a = true), b, dtype);
}

static void test_sizes(void **state)
{
    (void)state;
    for (int wide = 0; wide < 2; wide++)
        for (int side = 0; side < SIDES; side++)
            for (int count = 0; count < COUNTS; count++) {
                const ed_dtype dtype = wide ? ED_FLOAT64 : ED_FLOAT32;
                check_cholesky(dtype, counts[count], sides[side]);
                check_qr(dtype, counts[count], sides[side], sides[side], false);
                check_qr(dtype, counts[count], sides[side], 5, side % 2);
                check_qr(dtype, counts[count], 5, sides[side], false);
                check_solve(dtype, counts[count], sides[side], 1);
                check_solve(dtype, counts[count], sides[side], 9);
            }
}

/* Only the matrix that is singular fails, and it is named. */
static void test_left(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *one = ed_reshape(
        ed_one_hot(ed_constant_of(ED_INT32, (int32_t[]){5}, ED_SHAPE(1)), 9), ED_SHAPE(9, 1, 1));
    for (int side = 0; side < SIDES; side++) {
        ed_tensor *a = ed_mul(definite(ED_FLOAT32, 9, sides[side]), ed_sub(1, one));
        assert_null(ed_cholesky(a));
        failed_with(ED_INVALID_ARGUMENT, "cholesky: a[5] is not positive definite (pivot 0)");
        assert_null(ed_solve(a, numbers(ED_FLOAT32, 9, sides[side], 1)));
        failed_with(ED_INVALID_ARGUMENT, "solve: a[5] is singular (pivot 0)");
    }
    assert_fine();
}

/* Numbers whose squares are not floats: Q and R are those of the same matrices of a usual size. */
static void test_extreme_qr(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *a = numbers(ED_FLOAT32, 3, 6, 4), *r, *scaled_r;
    ed_tensor *scales =
        ed_constant_of(ED_FLOAT32, (float[]){0x1p-90f, 1, 0x1p90f}, ED_SHAPE(3, 1, 1));
    ed_tensor *q = ed_qr(a, &r), *scaled_q = ed_qr(ed_mul(a, scales), &scaled_r);
    assert_near(scaled_q, q, ED_FLOAT32);
    assert_near(ed_div(scaled_r, scales), r, ED_FLOAT32);
    /* ... or are so below the first column alone. */
    ed_tensor *b =
        ed_constant_of(ED_FLOAT32, (float[]){1, 1, 0, 0x1p-90f, 0, 0x1p-90f}, ED_SHAPE(3, 2));
    q = ed_qr(b, &r);
    assert_near(ed_matmul(q, q, .transpose_a = true), ed_eye(2), ED_FLOAT32);
    assert_near(ed_mul(ed_slice(r, .begin = ED_INTS(1, 1)), 0x1p90),
                ed_constant(ED_VALUES(float, -0x1.6a09e6p+0), ED_SHAPE(1, 1)), ED_FLOAT32);
    assert_fine();
}

/* Any number of threads gives the same bits. */
static void test_threads(void **state)
{
    (void)state;
    ED_SCOPE;
    const int before = ed_num_threads();
    ed_tensor *a = definite(ED_FLOAT32, 200, 32), *b = numbers(ED_FLOAT32, 200, 32, 3), *l[3],
              *x[3], *q[3], *r[3];
    for (int threads = 1; threads <= 3; threads++) {
        ed_set_num_threads(threads);
        l[threads - 1] = ed_cholesky(a);
        x[threads - 1] = ed_solve(a, b);
        q[threads - 1] = ed_qr(numbers(ED_FLOAT32, 200, 9, 16), &r[threads - 1]);
    }
    ed_set_num_threads(before);
    for (int i = 1; i < 3; i++)
        assert_true(ed_all_close(l[0], l[i], 0, 0, NULL) && ed_all_close(x[0], x[i], 0, 0, NULL) &&
                    ed_all_close(q[0], q[i], 0, 0, NULL) && ed_all_close(r[0], r[i], 0, 0, NULL));
    assert_fine();
}

/* Matrices so wide that columns are copied to be factored: every row is exchanged, and infinities
 * and NaN are found wherever they are. */
static void test_wide(void **state)
{
    (void)state;
    static const int64_t wide[] = {128, 129, 131, 200, 256};
    for (int i = 0; i < 10; i++) {
        ED_SCOPE;
        const int64_t n = wide[i / 2];
        const ed_dtype dtype = i % 2 ? ED_FLOAT64 : ED_FLOAT32;
        ed_tensor *x = ed_mul(numbers(dtype, 1, n, n), 0.01), *p;
        ed_tensor *a = ed_reverse(ed_add(x, ed_eye(n, .dtype = dtype)), ED_AXES(1));
        ed_tensor *lu = ed_lu(a, &p);
        assert_near(ed_lu_reconstruct(lu, p), a, dtype);
        assert_fine();
        for (int64_t k = 0; k < n; k++)
            assert_int_equal(((const int32_t *)ed_data(p))[k], n - 1 - k);
        check_solve(dtype, 1, n, 3);
        ed_tensor *one =
            ed_reshape(ed_one_hot(ed_constant_of(ED_INT64, &(int64_t){n * n - 1 - i}, ED_SHAPE(1)),
                                  n * n, .dtype = dtype),
                       ED_SHAPE(n, n));
        const double wrong = i % 3 ? (double)NAN : (double)INFINITY;
        ed_tensor *spoiled = ed_where(ed_cast(one, ED_BOOL), wrong, x);
        assert_fails(ed_inv(spoiled), ED_INVALID_ARGUMENT, "inv: a[0] has a NaN or an infinity");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),   cmocka_unit_test(test_wide),
        cmocka_unit_test(test_left),    cmocka_unit_test(test_extreme_qr),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
