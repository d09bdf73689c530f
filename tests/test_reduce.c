/*
 * Reductions beyond their values (which tests/test_ops.c checks): the same bits in every layout,
 * with every number of threads and every instruction set; small errors; what happens with nothing,
 * NaN, ties and zeros.
 */
#include "autodiff/autodiff.h"
#include "ops/execute.h"
#include "ops/kernels/isa.h"
#include "ops/ops.h"
#include "tests/asserts.h"
#include <math.h>

#define REDUCING(...) ED_COMPLETE(ED_REDUCE_OPTIONS, ed_reduce_options, __VA_ARGS__)

static ed_tensor *numbers(ed_dtype dtype, ed_ints shape, uint32_t seed)
{
    ed_tensor *x = scope_give(tensor_new(dtype, (int)shape.count, shape.values));
    for (int64_t i = 0; i < x->size; i++) {
        seed = seed * 1664525u + 1013904223u;
        dtype_store(dtype, x->data, i,
                    dtype == ED_UINT8   ? seed >> 24
                    : dtype == ED_INT32 ? (int32_t)seed
                                        : (seed >> 8) * 0x1p-23 - 1);
    }
    return x;
}

static void assert_values(ed_tensor *x, const double *values, int64_t n)
{
    assert_false(ed_failed());
    assert_non_null(x);
    assert_int_equal(ed_size(x), n);
    const double *y = ed_as_doubles(x);
    for (int64_t i = 0; i < n; i++) {
        if (isnan(values[i]))
            assert_true(isnan(y[i]));
        else
            assert_true(fabs(y[i] - values[i]) <= 1e-6 * fabs(values[i]));
    }
}
#define ASSERT_VALUES(x, ...)                                                                      \
    assert_values(x, (const double[]){__VA_ARGS__}, sizeof((const double[]){__VA_ARGS__}) / 8)

typedef ed_tensor *(*reduction)(ed_tensor *x, const ed_reduce_options *options);
static ed_tensor *variance(ed_tensor *x, const ed_reduce_options *options)
{
    return options ? ed_reduce_variance(x, .axis = options->axis) : ed_reduce_variance(x);
}

static ed_tensor *deviation(ed_tensor *x, const ed_reduce_options *options)
{
    return options ? ed_reduce_std(x, .axis = options->axis) : ed_reduce_std(x);
}

static const reduction all[] = {ed_reduce_sum_with,      ed_reduce_prod_with, ed_reduce_max_with,
                                ed_reduce_min_with,      ed_reduce_mean_with, variance,
                                ed_reduce_logsumexp_with};
enum { OF_ALL = 4, KINDS = sizeof all / sizeof *all };

/* ---- The same bits --------------------------------------------------------------------------- */

/* Along axis 0 and along axis 1 of the transposed: the same numbers in the same order. */
static void rows_and_columns_agree(void **state)
{
    (void)state;
    static const int64_t counts[] = {1,  2,  7,   15,  16,  17,   33,   63,
                                     64, 65, 200, 512, 513, 1100, 5000, 33300};
    static const ed_dtype dtypes[] = {ED_FLOAT32, ED_FLOAT64, ED_INT32, ED_UINT8};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (size_t d = 0; d < 4; d++)
            for (int k = 0; k < (d < 2 ? KINDS : OF_ALL); k++) {
                ED_SCOPE;
                ed_tensor *x = numbers(dtypes[d], ED_SHAPE(counts[i], 37), 5);
                ed_tensor *t = ed_transpose(x);
                ed_tensor *packed = scope_give(tensor_new(t->dtype, t->rank, t->shape));
                tensor_pack(t, packed->data);
                const ed_reduce_options first = REDUCING(.axis = ED_AXES(0)),
                                        last = REDUCING(.axis = ED_AXES(1));
                ed_tensor *y = all[k](x, &first);
                assert_same_tensor(y, all[k](t, &last));
                assert_same_tensor(y, all[k](packed, &last));
                assert_same_tensor(ed_index(y, 3), all[k](ed_slice(x, .begin = ED_INTS(0, 3),
                                                                   .end = ED_INTS(counts[i], 4)),
                                                          NULL));
            }
}

/* Many columns, of which more are read at a time than of few, against some of them alone. */
static void wide_rows_agree(void **state)
{
    (void)state;
    static const ed_dtype dtypes[] = {ED_FLOAT32, ED_FLOAT64, ED_INT32, ED_UINT8};
    for (size_t d = 0; d < 4; d++)
        for (int k = 0; k < (d < 2 ? KINDS : OF_ALL); k++) {
            ED_SCOPE;
            ed_tensor *x = numbers(dtypes[d], ED_SHAPE(131, 8237), 5);
            ed_tensor *some = ed_slice(x, .begin = ED_INTS(0, 8100), .end = ED_INTS(131, 8237));
            const ed_reduce_options options = REDUCING(.axis = ED_AXES(0));
            ed_set_num_threads(1 + k % 3);
            assert_same_tensor(ed_slice(all[k](x, &options), .begin = ED_INTS(8100)),
                               all[k](some, &options));
            if (d < 2)
                assert_same_tensor(ed_slice(ed_argmax(x, .axis = 0), .begin = ED_INTS(8100)),
                                   ed_argmax(some, .axis = 0));
        }
    ed_set_num_threads(2);
}

/* Any strides, some axes. */
static void layouts_agree(void **state)
{
    (void)state;
    static const int64_t axes[][2] = {{0, 2}, {1, 3}, {0, 3}, {1, 2}, {2, 3}, {0, 1}};
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++)
        for (int k = 0; k < KINDS; k++) {
            ED_SCOPE;
            ed_tensor *big = numbers(ED_FLOAT32, ED_SHAPE(14, 5, 30, 12), 9);
            ed_tensor *x = ed_slice(big, .step = ED_INTS(2, -1, 3, 1));
            x = ed_transpose(x, .perm = ED_INTS(2, 0, 3, 1));
            ed_tensor *packed = scope_give(tensor_new(x->dtype, x->rank, x->shape));
            tensor_pack(x, packed->data);
            const ed_reduce_options options = REDUCING(.axis = {axes[i], 2});
            assert_same_tensor(all[k](x, &options), all[k](packed, &options));
            assert_same_tensor(ed_argmax(x, .axis = axes[i][0]),
                               ed_argmax(packed, .axis = axes[i][0]));
        }
}

/* sums, products and extremes have one order everywhere; large ones go to threads in pieces. */
static void sets_and_threads_agree(void **state)
{
    (void)state;
    int best = isa_level;
    static const reduction exact[] = {ed_reduce_sum_with, ed_reduce_prod_with, ed_reduce_max_with,
                                      ed_reduce_mean_with, variance};
    for (size_t k = 0; k < sizeof exact / sizeof *exact; k++) {
        ED_SCOPE;
        ed_tensor *x = numbers(ED_FLOAT32, ED_SHAPE(1234, 567), 3);
        const ed_reduce_options options[] = {REDUCING(), REDUCING(.axis = ED_AXES(0)),
                                             REDUCING(.axis = ED_AXES(1))};
        for (int o = 0; o < 3; o++) {
            ed_tensor *y = exact[k](x, &options[o]);
            for (int level = 0; level <= isa_best(); level++)
                for (int threads = 1; threads <= 3; threads++) {
                    isa_set(level);
                    ed_set_num_threads(threads);
                    assert_same_tensor(y, exact[k](x, &options[o]));
                }
            isa_set(best);
        }
    }
}

/* The error of a sum grows with the logarithm of the count. */
static void sums_are_close(void **state)
{
    (void)state;
    ED_SCOPE;
    const int64_t n = 10000000;
    ed_tensor *x = numbers(ED_FLOAT32, ED_SHAPE(n), 1);
    double sum = 0, size = 0;
    for (int64_t i = 0; i < n; i++) {
        double v = ((float *)x->data)[i];
        sum += v;
        size += fabs(v);
    }
    assert_true(fabs(ed_item(ed_reduce_sum(x)) - sum) < 2e-7 * size);
    ed_tensor *tenth = ed_broadcast_to(ed_scalar(0.1), ED_SHAPE(4000, 4000));
    assert_true(fabs(ed_item(ed_reduce_sum(tenth)) - 1.6e6) < 0.5);
    ed_tensor *far = ed_add(x, 1000.0);
    assert_true(fabs(ed_item(ed_reduce_variance(far)) - 1.0 / 3) < 1e-3);
}

/* ---- Borders --------------------------------------------------------------------------------- */

static void nothing(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_zeros(ED_SHAPE(0, 3));
    ASSERT_VALUES(ed_reduce_sum(x), 0);
    assert_false(signbit(ed_item(ed_reduce_sum(x))));
    ASSERT_VALUES(ed_reduce_prod(x, .axis = ED_AXES(0)), 1, 1, 1);
    ASSERT_VALUES(ed_reduce_mean(x, .axis = ED_AXES(0)), NAN, NAN, NAN);
    assert_true(ed_item(ed_reduce_logsumexp(x)) == -INFINITY);
    assert_int_equal(ed_size(ed_reduce_max(x, .axis = ED_AXES(1))), 0);
    assert_fails(ed_reduce_max(x), ED_INVALID_ARGUMENT, "reduce_max: the reduced axes of");
    assert_fails(ed_argmin(x), ED_INVALID_ARGUMENT, "axis 0 of float32[0, 3] is empty");
    ed_tensor *none = ed_cast(x, ED_BOOL);
    ASSERT_VALUES(ed_reduce_any(none), 0);
    ASSERT_VALUES(ed_reduce_all(none), 1);
    assert_fails(ed_reduce_sum(x, .axis = ED_AXES(2)), ED_INVALID_ARGUMENT, "axis 2");
    assert_fails(ed_reduce_sum(x, .axis = ED_AXES(1, -1)), ED_INVALID_ARGUMENT, "twice");
    assert_fails(ed_reduce_mean(ed_cast(x, ED_INT32)), ED_INVALID_ARGUMENT, "reduce_mean");
    assert_fails(ed_reduce_sum((ed_tensor *)NULL), ED_INVALID_ARGUMENT, "NULL");

    ed_tape *tape = ed_tape_begin();
    ed_watch(tape, x);
    ed_tensor *dx = ed_gradient(tape, ed_reduce_mean(x), x);
    assert_int_equal(ed_size(dx), 0);
    assert_int_equal(ed_rank(dx), 2);
}

static void not_a_number(void **state)
{
    (void)state;
    ED_SCOPE;
    for (int64_t n = 1; n < 70; n += 3)
        for (int64_t at = 0; at < n; at++) {
            ED_SCOPE;
            ed_tensor *x = numbers(ED_FLOAT32, ED_SHAPE(n), (uint32_t)n);
            ((float *)x->data)[at] = NAN;
            assert_true(isnan(ed_item(ed_reduce_max(x))));
            assert_true(isnan(ed_item(ed_reduce_min(x))));
            if (n > 1) assert_int_not_equal(ed_item_int64(ed_argmax(x)), at);
        }
    ed_tensor *x = ed_constant(((float[]){NAN, -INFINITY, NAN, -INFINITY}), ED_SHAPE(4));
    assert_int_equal(ed_item_int64(ed_argmax(x)), 1);
    assert_int_equal(ed_item_int64(ed_argmax(ed_expand_dims(x, 1))), 1);
    assert_int_equal(ed_item_int64(ed_argmin(x)), 1);
    x = ed_constant(((float[]){NAN, NAN}), ED_SHAPE(2));
    assert_int_equal(ed_item_int64(ed_argmax(x)), 0);
    x = ed_constant(((float[]){2, 5, 1, 5, 1, 0}), ED_SHAPE(3, 2));
    ASSERT_VALUES(ed_argmax(x), 0, 0);
    ASSERT_VALUES(ed_argmax(x, .axis = 1), 1, 1, 0);
    ASSERT_VALUES(ed_argmin(x, .axis = -1), 0, 0, 1);
}

static ed_tensor *gradient_of(reduction f, ed_tensor *x, const ed_reduce_options *options)
{
    ed_tape *tape = ed_tape_begin();
    ed_watch(tape, x);
    return ed_gradient(tape, f(x, options), x);
}

static void gradients_at_special_points(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_constant(((float[]){3, 1, 3, NAN, 2, 5}), ED_SHAPE(2, 3));
    const ed_reduce_options last = REDUCING(.axis = ED_AXES(1));
    ASSERT_VALUES(gradient_of(ed_reduce_max_with, x, &last), 0.5, 0, 0.5, NAN, NAN, NAN);
    ASSERT_VALUES(gradient_of(ed_reduce_mean_with, x, NULL), 1 / 6., 1 / 6., 1 / 6., 1 / 6., 1 / 6.,
                  1 / 6.);
    x = ed_constant(((float[]){0, 2, 3, 0, 5, 0, 4, 5, 6}), ED_SHAPE(3, 3));
    ASSERT_VALUES(gradient_of(ed_reduce_prod_with, x, &last), 6, 0, 0, 0, 0, 0, 30, 24, 20);
    x = ed_constant(((float[]){2, 2, 2}), ED_SHAPE(3));
    ASSERT_VALUES(gradient_of(deviation, x, NULL), NAN, NAN, NAN);
}

/* The second derivative of x y z at (0, 0, 4) is what is left of the product. */
static void products_of_zeros_twice(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_constant(((double[]){0, 0, 4}), ED_SHAPE(3));
    ed_tape *outer = ed_tape_begin(.persistent = true);
    ed_watch(outer, x);
    ed_tensor *dx = gradient_of(ed_reduce_prod_with, x, NULL);
    ASSERT_VALUES(dx, 0, 0, 0);
    ed_tape_stop(outer);
    ASSERT_VALUES(ed_jacobian(outer, dx, x), 0, 4, 0, 4, 0, 0, 0, 0, 0);
}

static void sums_to_shapes(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = numbers(ED_FLOAT32, ED_SHAPE(2, 3, 4), 1);
    assert_ptr_equal(ops_sum_to(x, ED_SHAPE(2, 3, 4)), x);
    assert_null(ops_sum_to(NULL, ED_SHAPE(2)));
    static const int64_t shapes[][3] = {{2, 3, 1}, {1, 3, 4}, {1, 1, 1}, {2, 1, 4}};
    for (int i = 0; i < 4; i++)
        for (int skip = 0; skip < 3 && (!skip || shapes[i][skip - 1] == 1); skip++) {
            ed_tensor *y = ops_sum_to(x, (ed_ints){shapes[i] + skip, 3 - skip});
            assert_int_equal(ed_rank(y), 3 - skip);
            assert_memory_equal(y->shape, shapes[i] + skip, (size_t)(3 - skip) * sizeof(int64_t));
            assert_true(fabs(ed_item(ed_reduce_sum(y)) - ed_item(ed_reduce_sum(x))) < 1e-5);
        }
}

/* argmax and argmin of rows of n, for both dtypes and all sets, against a plain loop. */
static void check_best(const float *x, int64_t rows, int64_t n)
{
    const int best = isa_best();
    for (int k = 0; k < 2 * (best + 1); k++) {
        ED_SCOPE;
        ed_tensor *t = ed_cast(ed_constant(x, ED_SHAPE(rows, n)), k % 2 ? ED_FLOAT64 : ED_FLOAT32);
        isa_set(k / 2);
        ed_tensor *largest = ed_argmax(t, .axis = 1), *smallest = ed_argmin(t, .axis = 1);
        isa_set(best);
        for (int64_t r = 0; r < rows; r++) {
            int64_t high = -1, low = -1;
            for (int64_t i = 0; i < n; i++) {
                const float v = x[r * n + i];
                if (v != v) continue;
                if (high < 0 || v > x[r * n + high]) high = i;
                if (low < 0 || v < x[r * n + low]) low = i;
            }
            assert_int_equal(((const int64_t *)largest->data)[r], high < 0 ? 0 : high);
            assert_int_equal(((const int64_t *)smallest->data)[r], low < 0 ? 0 : low);
        }
    }
}

/* Rows shorter and longer than a vector, with ties, infinities, and NaN here or everywhere. */
static void best_of_short_rows(void **state)
{
    (void)state;
    static const float values[] = {1, -2, NAN, 3, INFINITY, -INFINITY, NAN, 3, -2, 0};
    enum { ROWS = 150 };
    for (int64_t n = 1; n <= 70; n += n < 20 ? 1 : 7) {
        float x[ROWS * 70];
        for (int64_t i = 0; i < ROWS * n; i++)
            x[i] = i / n == 3 ? NAN : i / n == 5 ? -INFINITY : values[(i * i + i / n) % 10];
        check_best(x, ROWS, n);
    }
}

/* Rows of several blocks: the best and one that is equal in each pair of places. */
static void best_of_long_rows(void **state)
{
    (void)state;
    static const int64_t sizes[] = {100, 511, 1000, 4095, 4096 + 513, 2 * 4096 + 65, 33000};
    enum { ROWS = 40, MOST = 33000 };
    ED_SCOPE;
    float *x = (float *)numbers(ED_FLOAT32, ED_SHAPE(ROWS * MOST), 1)->data;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const int64_t n = sizes[s];
        ED_SCOPE;
        ed_tensor *t = numbers(ED_FLOAT32, ED_SHAPE(ROWS * n), (uint32_t)n);
        memcpy(x, t->data, (size_t)(ROWS * n) * sizeof *x);
        for (int64_t r = 0; r < ROWS; r++) {
            float *row = x + r * n;
            row[r * n / 3 % n] = NAN;
            row[r * n / ROWS] = row[n - 1 - r * r * n / ROWS / ROWS] = r % 2 ? 9 : -9;
            if (r % 5 == 0) row[r * 7919 % n] = r % 2 ? INFINITY : -INFINITY;
        }
        check_best(x, ROWS, n);
    }
}

/* ---- Variables ------------------------------------------------------------------------------- */

/* So many elements that a sample of them is taken, which may be unlike the others. */
static void quantiles_of_many(void **state)
{
    (void)state;
    enum { N = 20000, APART = N / 256 };
    for (int kind = 0; kind < 5; kind++) {
        ED_SCOPE;
        ed_tensor *at = ed_range(0, N), *x = ed_random_uniform(ED_SHAPE(N), .low = -3, .high = 3);
        ed_tensor *sampled = ed_equal(ed_floor_mod(at, APART), 0);
        if (kind == 1) x = ed_where(sampled, 5, x);
        if (kind == 2) x = ed_where(sampled, x, 0);
        if (kind == 3) x = ed_round(x);
        if (kind == 4) x = ed_where(ed_greater(x, 0), INFINITY, -INFINITY);
        x = ed_add(ed_stack(ed_list_of(x, ed_neg(x))), 0); /* -0, which is sorted before 0, is 0 */
        ed_tensor *sorted = ed_sort(x);
        for (int64_t rank = 0; rank < N; rank += 1111) {
            ED_SCOPE;
            ed_tensor *want = ed_gather(sorted, ed_integer(rank), .axis = 1);
            ed_tensor *y =
                ed_quantile(x, (double)rank / (N - 1), .axis = ED_AXES(1), .method = "nearest");
            assert_same_tensor(y, want);
        }
        ed_tensor *middle =
            ed_slice(sorted, .begin = ED_INTS(0, N / 2 - 1), .end = ED_INTS(2, N / 2 + 1));
        if (kind != 4)
            assert_same_tensor(ed_median(x, .axis = ED_AXES(1)),
                               ed_reduce_mean(middle, .axis = ED_AXES(1)));
    }
}

static void variables_change_in_place(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *v = ed_variable(ed_zeros(ED_SHAPE(2, 2)));
    const void *before;
    {
        ED_SCOPE;
        ed_assign_add(v, 1.0);
        before = tensor_read(v)->data;
        ed_tensor *row = ed_constant(((float[]){1, 2}), ED_SHAPE(2));
        assert_ptr_equal(ed_assign_sub(v, row), v);
        assert_ptr_equal(tensor_read(v)->data, before);
        assert_ptr_equal(ed_assign_add(v, v), v); /* reads what it writes: into a fresh buffer */
    }
    ASSERT_VALUES(v, 0, -2, 0, -2);
    ed_tensor *held = ed_value(v);
    ed_assign_add(v, 1.0);
    ASSERT_VALUES(held, 0, -2, 0, -2);
    ASSERT_VALUES(v, 1, -1, 1, -1);
    assert_fails(ed_assign_add(v, ed_ones(ED_SHAPE(3))), ED_INVALID_ARGUMENT, "float32[3]");
    assert_fails(ed_assign_add(v, ed_ones(ED_SHAPE(1, 2, 2))), ED_INVALID_ARGUMENT, "assign_add");
    assert_fails(ed_assign_add(held, 1.0), ED_INVALID_ARGUMENT, "must be a variable");
    assert_fails(ed_assign_sub(v, (ed_tensor *)NULL), ED_INVALID_ARGUMENT, "NULL");
    ASSERT_VALUES(v, 1, -1, 1, -1);
}

/* The loops of add and sub, with and without an end that fills no vector, cut among threads. */
static void variables_change_like_add(void **state)
{
    (void)state;
    static const ed_dtype dtypes[] = {ED_FLOAT32, ED_FLOAT64, ED_INT32, ED_INT64, ED_UINT8};
    static const int64_t sizes[] = {1, 3, 17, 64, 131, 70001};
    for (int k = 0; k < 30; k++) {
        ED_SCOPE;
        const int64_t n = sizes[k % 6];
        ed_tensor *a = ed_cast(ed_random_uniform(ED_SHAPE(n), .low = 1, .high = 99), dtypes[k / 6]);
        ed_tensor *b = ed_cast(ed_random_uniform(ED_SHAPE(n), .low = 1, .high = 99), dtypes[k / 6]);
        for (int threads = 1; threads <= 3; threads++) {
            assert_true(ed_set_num_threads(threads));
            ed_tensor *v = ed_variable(a);
            ed_assign_add(v, b);
            assert_same_tensor(ed_value(v), ed_add(a, b));
            ed_assign_sub(v, ed_slice(b, .end = ED_INTS(1))); /* one number for all */
            assert_same_tensor(ed_value(v), ed_sub(ed_add(a, b), ed_slice(b, .end = ED_INTS(1))));
        }
    }
    ed_set_num_threads(2);
}

static void gradients_stop(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_scalar(3.0);
    ed_tape *tape = ed_tape_begin();
    ed_watch(tape, x);
    ed_tensor *y = ed_mul(x, ed_stop_gradient(ed_square(x)));
    ASSERT_VALUES(y, 27);
    ASSERT_VALUES(ed_gradient(tape, y, x), 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_and_columns_agree),
        cmocka_unit_test(wide_rows_agree),
        cmocka_unit_test(layouts_agree),
        cmocka_unit_test(sets_and_threads_agree),
        cmocka_unit_test(sums_are_close),
        cmocka_unit_test(nothing),
        cmocka_unit_test(not_a_number),
        cmocka_unit_test(gradients_at_special_points),
        cmocka_unit_test(products_of_zeros_twice),
        cmocka_unit_test(sums_to_shapes),
        cmocka_unit_test(best_of_short_rows),
        cmocka_unit_test(best_of_long_rows),
        cmocka_unit_test(quantiles_of_many),
        cmocka_unit_test(variables_change_in_place),
        cmocka_unit_test(variables_change_like_add),
        cmocka_unit_test(gradients_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
