/* Eigenvalues and singular values of matrices that are taken one by one: sizes around the borders
 * of panels, blocks and strips, matrices that are hard to take apart, any number of threads. */
#include "ops/ops.h"
#include "tests/asserts.h"
#include <float.h>
#include <math.h>
#include <string.h>

typedef enum kind {
    PLAIN,
    CLUSTERED,
    GRADED,
    SINKING,
    OF_RANK_2,
    ZERO,
    DIAGONAL,
    CHAIN,
    TINY,
    HUGE,
    KINDS
} kind;

/* Numbers [m, n] without a pattern, in float64. */
static ed_tensor *numbers(int64_t m, int64_t n)
{
    ed_tensor *x = ed_range(1, (double)(m * n + 1), .dtype = ED_FLOAT64);
    return ed_reshape(ed_sin(ed_mul(x, x)), ED_SHAPE(m, n));
}

static ed_tensor *matrix_of(kind k, ed_dtype dtype, int64_t m, int64_t n)
{
    const bool narrow = dtype == ED_FLOAT32;
    ed_tensor *x = numbers(m, n), *row = ed_range(0, (double)n, .dtype = ED_FLOAT64);
    switch (k) {
    case CLUSTERED:
        x = ed_add(ed_mul(x, 1e-9), ed_eye(m, .columns = n, .dtype = ED_FLOAT64));
        break;
    case GRADED: x = ed_mul(x, ed_pow(0.8, row)); break;
    case SINKING: x = ed_mul(x, ed_pow(0x1p-20, row)); break; /* below all normal numbers */
    case OF_RANK_2: x = ed_matmul(numbers(m, 2), numbers(2, n)); break;
    case ZERO: x = ed_zeros_like(x); break;
    case DIAGONAL: x = ed_mul(ed_eye(m, .columns = n, .dtype = ED_FLOAT64), row); break;
    case CHAIN: /* tridiagonal, with eigenvalues of which many differ by few roundings */
        x = ed_triu(ed_tril(ed_add(ed_zeros_like(x), narrow ? 1e-5 : 1e-13), .k = 1), .k = -1);
        x = ed_add(x, ed_eye(m, .columns = n, .dtype = ED_FLOAT64));
        break;
    case TINY: x = ed_mul(x, narrow ? 0x1p-120 : 0x1p-1000); break;
    case HUGE: x = ed_mul(x, narrow ? 0x1p110 : 0x1p1000); break;
    default: break;
    }
    return ed_cast(x, dtype);
}

/* The largest difference is at most some roundings of numbers of that size. */
static void assert_within(ed_tensor *got, ed_tensor *want, double size, ed_dtype dtype, int64_t n)
{
    const double epsilon = dtype == ED_FLOAT32 ? FLT_EPSILON : DBL_EPSILON;
    ed_tensor *most = ed_reduce_max(ed_abs(ed_sub(got, want)));
    assert_fine();
    const double error = ed_item(most);
    if (!(error <= 8 * sqrt((double)n + 16) * epsilon * size))
        fail_msg("error %g of size %g, n = %lld", error, size, (long long)n);
}

/* x^T x = 1. */
static void assert_orthogonal(ed_tensor *x, ed_dtype dtype)
{
    const int64_t n = ed_dim(x, -1), m = ed_dim(x, -2);
    x = ed_cast(x, ED_FLOAT64);
    assert_within(ed_matmul(x, x, .transpose_a = true), ed_eye(n, .dtype = ED_FLOAT64), 1, dtype,
                  m > n ? m : n);
}

/* The largest element, by which what follows can be divided and stays of a usual size. */
static double size_of(ed_tensor *x)
{
    const double size = ed_item(ed_cast(ed_reduce_max(ed_abs(x)), ED_FLOAT64));
    return size > 0 ? size : 1;
}

static ed_tensor *over(ed_tensor *x, double size)
{
    return ed_div(ed_cast(x, ED_FLOAT64), size);
}

/* a v = v diag(w) for what the lower triangle of a says, v^T v = 1, w in order. */
static void check_eigh(ed_tensor *a)
{
    ED_SCOPE;
    const int64_t n = ed_dim(a, -1);
    const ed_dtype dtype = ed_dtype_of(a);
    ed_tensor *v, *w = ed_eigh(a, &v), *alone = ed_eigvalsh(a);
    assert_fine();
    ed_tensor *lower = ed_tril(a);
    ed_tensor *whole = ed_add(lower, ed_transpose(ed_tril(a, .k = -1)));
    const double size = size_of(lower), norm = size_of(over(w, size));
    assert_orthogonal(v, dtype);
    ed_tensor *scaled = ed_mul(ed_cast(v, ED_FLOAT64), over(w, size));
    assert_within(ed_matmul(over(whole, size), ed_cast(v, ED_FLOAT64)), scaled, norm, dtype, n);
    assert_within(over(alone, size), over(w, size), norm, dtype, n);
    assert_true(n < 2 || ed_all_close(ed_sort(w), w, 0, 0, NULL));
}

/* a = u diag(s) v^T, u^T u = v^T v = 1, s in order. */
static void check_svd(ed_tensor *a, bool full)
{
    ED_SCOPE;
    const int64_t m = ed_dim(a, -2), n = ed_dim(a, -1), k = m < n ? m : n, most = m > n ? m : n;
    const ed_dtype dtype = ed_dtype_of(a);
    ed_tensor *u, *v, *s = ed_svd(a, &u, &v, .full_matrices = full), *alone = ed_svdvals(a);
    assert_fine();
    const double size = size_of(a), norm = size_of(over(s, size));
    assert_orthogonal(u, dtype);
    assert_orthogonal(v, dtype);
    u = ed_slice(ed_cast(u, ED_FLOAT64), .end = ED_INTS(m, k));
    v = ed_slice(ed_cast(v, ED_FLOAT64), .end = ED_INTS(n, k));
    assert_within(ed_matmul(ed_mul(u, over(s, size)), v, .transpose_b = true), over(a, size), norm,
                  dtype, most);
    assert_within(over(alone, size), over(s, size), norm, dtype, most);
    assert_true(ed_all_close(ed_neg(ed_sort(ed_neg(s))), s, 0, 0, NULL));
}

static const int64_t sides[] = {1, 2, 3, 15, 16, 17, 31, 32, 33, 34, 63, 65, 97, 130, 257};
enum { SIDES = sizeof sides / sizeof *sides };

static void test_sizes(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * SIDES; i++) {
        ED_SCOPE;
        const int64_t n = sides[i / 2];
        const ed_dtype dtype = i % 2 ? ED_FLOAT64 : ED_FLOAT32;
        check_eigh(matrix_of(PLAIN, dtype, n, n));
        check_svd(matrix_of(PLAIN, dtype, n, n), false);
        check_svd(matrix_of(PLAIN, dtype, n + 19, n), i % 4 < 2);
        check_svd(matrix_of(PLAIN, dtype, n, n + 40), i % 4 < 2);
        check_svd(matrix_of(PLAIN, dtype, 3 * n + 17, n), false);
    }
}

static void test_kinds(void **state)
{
    (void)state;
    for (int i = 0; i < 4 * KINDS; i++) {
        ED_SCOPE;
        const ed_dtype dtype = i % 2 ? ED_FLOAT64 : ED_FLOAT32;
        const int64_t n = i / 2 % 2 ? 51 : 100;
        const kind k = (kind)(i / 4);
        check_eigh(matrix_of(k, dtype, n, n));
        if (n < 100) check_eigh(matrix_of(k, dtype, 10 * n + 5, 10 * n + 5)); /* in four parts */
        check_svd(matrix_of(k, dtype, n, n), false);
        check_svd(matrix_of(k, dtype, n + 9, n), true);
        check_svd(matrix_of(k, dtype, n, 2 * n + 1), false);
    }
}

/* What is above the diagonal does not matter; what is not finite is named. */
static void test_triangle(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *a = matrix_of(PLAIN, ED_FLOAT32, 100, 100), *v, *of_spoiled;
    ed_tensor *spoiled = ed_where(ed_cast(ed_tril(ed_ones_like(a)), ED_BOOL), a, (double)NAN);
    ed_tensor *w = ed_eigh(a, &v);
    assert_true(ed_all_close(ed_eigh(spoiled, &of_spoiled), w, 0, 0, NULL));
    assert_true(ed_all_close(of_spoiled, v, 0, 0, NULL));
    assert_fails(ed_eigvalsh(ed_transpose(spoiled)), ED_INVALID_ARGUMENT,
                 "eigvalsh: a has a NaN or an infinity");
    assert_fails(ed_svdvals(spoiled), ED_INVALID_ARGUMENT, "svdvals: a has a NaN or an infinity");
}

/* Any number of threads gives the same bits. */
static void test_threads(void **state)
{
    (void)state;
    ED_SCOPE;
    const int before = ed_num_threads();
    for (int i = 0; i < 2; i++) {
        const ed_dtype dtype = i ? ED_FLOAT64 : ED_FLOAT32;
        ed_tensor *a = matrix_of(PLAIN, dtype, 530, 530), *b = matrix_of(PLAIN, dtype, 450, 390);
        ed_tensor *w[3], *x[3], *s[3], *u[3], *v[3];
        for (int threads = 1; threads <= 3; threads++) {
            ed_set_num_threads(threads);
            w[threads - 1] = ed_eigh(a, &x[threads - 1]);
            s[threads - 1] = ed_svd(b, &u[threads - 1], &v[threads - 1]);
        }
        ed_set_num_threads(before);
        for (int t = 1; t < 3; t++)
            assert_true(
                ed_all_close(w[0], w[t], 0, 0, NULL) && ed_all_close(x[0], x[t], 0, 0, NULL) &&
                ed_all_close(s[0], s[t], 0, 0, NULL) && ed_all_close(u[0], u[t], 0, 0, NULL) &&
                ed_all_close(v[0], v[t], 0, 0, NULL));
        check_eigh(a);
        check_svd(b, false);
    }
    assert_fine();
}

/* Any allocation may fail: that is an error, and the call after it is fine. */
static void test_memory(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *square = matrix_of(PLAIN, ED_FLOAT32, 70, 70);
    ed_tensor *tall = matrix_of(PLAIN, ED_FLOAT64, 150, 70), *u, *v;
    for (int which = 0; which < 3; which++) {
        bool done = false;
        for (int64_t i = 0; !done; i++) {
            ed_memory_fail_at(i, false);
            ed_tensor *y = which == 0   ? ed_eigh(square, &v)
                           : which == 1 ? ed_svd(square, &u, &v)
                                        : ed_svd(tall, &u, &v);
            done = !ed_memory_has_failed();
            ed_memory_fail_at(-1, false);
            assert_true(done ? y != NULL : !y && ed_failed());
            ed_clear_error();
        }
    }
    check_eigh(square);
    check_svd(tall, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_sizes, check_end),
        cmocka_unit_test_teardown(test_kinds, check_end),
        cmocka_unit_test_teardown(test_triangle, check_end),
        cmocka_unit_test_teardown(test_threads, check_end),
        cmocka_unit_test_teardown(test_memory, check_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
