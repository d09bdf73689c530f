/*
 * Softmax, cross-entropies and batch normalization beyond their values (which tests/test_ops.c
 * checks): large logits, labels out of range, threads, other axes, small classes of long rows.
 */
#include "autodiff/autodiff.h"
#include "ops/kernels/isa.h"
#include "ops/ops.h"
#include "tensor/core.h"
#include "tests/asserts.h"
#include <math.h>

static ed_tensor *numbers(ed_dtype dtype, ed_ints shape, double scale)
{
    static uint32_t seed = 1;
    ed_tensor *x = scope_give(tensor_new(dtype, (int)shape.count, shape.values));
    for (int64_t i = 0; i < x->size; i++) {
        seed = seed * 1664525u + 1013904223u;
        dtype_store(dtype, x->data, i, scale * ((seed >> 8) * 0x1p-23 - 1));
    }
    return x;
}

static ed_tensor *classes(int64_t rows, int64_t n)
{
    return ed_floor_mod(ed_range(0, (double)rows * 7, .delta = 7, .dtype = ED_INT64), (double)n);
}

static void assert_near(ed_tensor *a, ed_tensor *b, double bound)
{
    assert_false(ed_failed());
    assert_int_equal(ed_size(a), ed_size(b));
    const double *x = ed_as_doubles(a), *y = ed_as_doubles(b);
    for (int64_t i = 0; i < ed_size(a); i++)
        if (!(fabs(x[i] - y[i]) <= bound)) fail_msg("element %d: %g, %g", (int)i, x[i], y[i]);
}

static ed_tensor *loss_gradient(ed_tensor *labels, ed_tensor *x, ed_tensor **loss)
{
    ed_tape *tape = ed_tape_begin();
    ed_watch(tape, x);
    *loss = ed_dtype_is_float(labels->dtype) ? ed_softmax_cross_entropy(labels, x)
                                             : ed_sparse_softmax_cross_entropy(labels, x);
    return ed_gradient(tape, ed_reduce_mean(*loss), x);
}

/* float32 against float64, for every length of the tail. */
static void rows_of_all_lengths(void **state)
{
    (void)state;
    int best = isa_level;
    for (int level = 0; level <= isa_best(); level++)
        for (int64_t n = 1; n < 200; n += n < 70 ? 1 : 13) {
            ED_SCOPE;
            isa_set(level);
            ed_tensor *x = numbers(ED_FLOAT64, ED_SHAPE(5, n), 8), *y = ed_cast(x, ED_FLOAT32);
            x = ed_cast(y, ED_FLOAT64);
            assert_near(ed_softmax(y), ed_exp(ed_log_softmax(x)), 3e-7);
            assert_near(ed_log_softmax(y), ed_log_softmax(x), 1e-5);
            assert_near(ed_reduce_sum(ed_softmax(x), .axis = ED_AXES(-1)), ed_ones(ED_SHAPE(5)),
                        1e-14);
            ed_tensor *labels = classes(5, n), *one_hot = ed_one_hot(labels, n), *loss, *loss64;
            ed_tensor *dx = loss_gradient(labels, y, &loss);
            assert_near(dx, loss_gradient(ed_cast(one_hot, ED_FLOAT64), x, &loss64), 1e-7);
            assert_near(loss, loss64, 1e-5);
            assert_near(dx, loss_gradient(one_hot, y, &loss), 1e-7);
        }
    isa_set(best);
}

static void other_axes(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = numbers(ED_FLOAT32, ED_SHAPE(3, 130, 300), 5);
    ed_tensor *t = ed_transpose(x, .perm = ED_INTS(0, 2, 1));
    assert_near(ed_transpose(ed_softmax(x, .axis = 1), .perm = ED_INTS(0, 2, 1)), ed_softmax(t),
                1e-7);
    assert_near(ed_transpose(ed_log_softmax(x, .axis = 1), .perm = ED_INTS(0, 2, 1)),
                ed_log_softmax(t), 2e-6);
}

static void threads_change_nothing(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = numbers(ED_FLOAT32, ED_SHAPE(700, 133), 5), *labels = classes(700, 133);
    ed_tensor *wide = ed_transpose(x), *gamma = ed_ones(ED_SHAPE(133)), *loss, *first[5];
    for (int threads = 1; threads <= 3; threads++) {
        ed_set_num_threads(threads);
        ed_tape *tape = ed_tape_begin();
        ed_watch(tape, x);
        ed_tensor *norm = ed_batch_norm(x, gamma, gamma, NULL, NULL);
        ed_tensor *back = ed_gradient(tape, norm, x, .output_gradients = ed_list_of(x));
        ed_tensor *now[5] = {ed_softmax(x), ed_softmax(wide, .axis = 0),
                             loss_gradient(labels, x, &loss), norm, back};
        if (threads == 1) memcpy(first, now, sizeof now);
        for (int i = 0; i < 5; i++) assert_same_tensor(first[i], now[i]);
        assert_near(ed_transpose(now[1]), now[0], 1e-7);
    }
}

static void large_logits(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_constant(((float[]){1e4, -1e4, 0, 3e38, -3e38, 0}), ED_SHAPE(2, 3));
    assert_near(ed_softmax(x), ed_constant(((float[]){1, 0, 0, 1, 0, 0}), ED_SHAPE(2, 3)), 0);
    ed_tensor *loss, *labels = ed_constant(((int32_t[]){2, 0}), ED_SHAPE(2));
    ed_tensor *dx = loss_gradient(labels, x, &loss);
    assert_near(loss, ed_constant(((float[]){1e4, 0}), ED_SHAPE(2)), 0);
    assert_near(dx, ed_constant(((float[]){0.5, 0, -0.5, 0, 0, 0}), ED_SHAPE(2, 3)), 0);

    /* What is masked by -inf costs nothing where the label is 0. */
    x = ed_constant(((float[]){1, 1, -INFINITY}), ED_SHAPE(3));
    ed_tensor *half = ed_constant(((float[]){0.5, 0.5, 0}), ED_SHAPE(3));
    dx = loss_gradient(half, x, &loss);
    assert_near(loss, ed_scalar(0.69314718), 1e-6);
    assert_near(dx, ed_zeros(ED_SHAPE(3)), 1e-7);

    x = ed_constant(((float[]){100, -100, 50, 0}), ED_SHAPE(4));
    ed_tensor *z = ed_constant(((float[]){1, 0, 1, 0}), ED_SHAPE(4));
    ed_tensor *y = ed_sigmoid_cross_entropy(z, x);
    const double *v = ed_as_doubles(y);
    assert_true(v[0] < 1e-43 && v[0] >= 0 && v[1] < 1e-43 && v[2] > 1e-22 && v[2] < 3e-22);
    assert_true(fabs(v[3] - log(2)) < 1e-7);
}

static void labels_are_checked(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = numbers(ED_FLOAT32, ED_SHAPE(2, 3, 4), 1);
    ed_tensor *labels = ed_constant(((int32_t[]){0, 3, 1, 2, 4, 0}), ED_SHAPE(2, 3));
    assert_fails(ed_sparse_softmax_cross_entropy(labels, x), ED_OUT_OF_RANGE,
                 "sparse_softmax_cross_entropy: label 4 at [1, 1] is out of bounds for 4 classes: "
                 "it must be in 0..3");
    labels = ed_constant(((int64_t[]){0, 3, -1, 2, 0, 0}), ED_SHAPE(2, 3));
    assert_fails(ed_sparse_softmax_cross_entropy(labels, x), ED_OUT_OF_RANGE, "label -1 at [0, 2]");
    assert_fails(ed_sparse_softmax_cross_entropy(ed_reshape(labels, ED_SHAPE(6)), x),
                 ED_INVALID_ARGUMENT, "labels must have shape [2, 3]");
    assert_fails(ed_softmax_cross_entropy(ed_zeros(ED_SHAPE(2, 4)), x), ED_INVALID_ARGUMENT,
                 "labels must have shape [2, 3, 4]");
    assert_fails(ed_softmax(ed_scalar(1.0)), ED_INVALID_ARGUMENT, "axis -1");
    assert_fails(ed_softmax_cross_entropy(NULL, x), ED_INVALID_ARGUMENT, "labels is NULL");
    ed_tensor *none = ed_zeros(ED_SHAPE(0, 4));
    ed_tensor *loss =
        ed_sparse_softmax_cross_entropy(ed_zeros(ED_SHAPE(0), .dtype = ED_INT32), none);
    assert_int_equal(ed_size(loss), 0);
    assert_false(ed_failed());
}

/* Statistics reach the caller, and gradients flow through them as through y. */
static void batch_norm_statistics(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_constant(((float[]){1, 10, 3, 30}), ED_SHAPE(2, 2)), *mean, *variance;
    ed_tensor *one = ed_ones(ED_SHAPE(2)), *zero = ed_zeros(ED_SHAPE(2));
    ed_tape *tape = ed_tape_begin(.persistent = true);
    ed_watch(tape, x);
    ed_tensor *y = ed_batch_norm(x, one, zero, &mean, &variance, .epsilon = 0);
    assert_near(mean, ed_constant(((float[]){2, 20}), ED_SHAPE(2)), 0);
    assert_near(variance, ed_constant(((float[]){1, 100}), ED_SHAPE(2)), 0);
    assert_near(y, ed_constant(((float[]){-1, -1, 1, 1}), ED_SHAPE(2, 2)), 1e-6);
    assert_near(ed_gradient(tape, mean, x), ed_full(ED_SHAPE(2, 2), 0.5), 0);
    assert_near(ed_gradient(tape, variance, x),
                ed_constant(((float[]){-1, -10, 1, 10}), ED_SHAPE(2, 2)), 1e-6);
    assert_fails(ed_batch_norm(x, ed_ones(ED_SHAPE(3)), zero, &mean, &variance),
                 ED_INVALID_ARGUMENT, "gamma is float32[3]");
    assert_null(mean);
    assert_fails(ed_batch_norm(x, one, zero, NULL, NULL, .epsilon = -1), ED_INVALID_ARGUMENT,
                 "epsilon");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_all_lengths),    cmocka_unit_test(other_axes),
        cmocka_unit_test(threads_change_nothing), cmocka_unit_test(large_logits),
        cmocka_unit_test(labels_are_checked),     cmocka_unit_test(batch_norm_statistics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
