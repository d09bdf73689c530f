/*
 * Segments and counts beyond their values (which tests/test_ops.c checks): empty segments, what is
 * left out, errors that name the place, many threads, equal elements, NaN and zeros in gradients.
 */
#include "autodiff/autodiff.h"
#include "ops/ops.h"
#include "tensor/core.h"
#include "tests/values.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>

#define IDS(...) OF(int32_t, __VA_ARGS__)

/* As TensorFlow 2.21 has it. */
static void empty_segments(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_constant(ED_VALUES(float, 1, 2, 3, NAN, 5, 6), ED_SHAPE(3, 2));
    ed_tensor *ids = IDS(0, 0, 3), *any = IDS(2, -1, 2);
    const ed_ints shape = ED_SHAPE(4, 2);
    HOLDS(ed_segment_sum(x, ids), shape, 4, NAN, 0, 0, 0, 0, 5, 6);
    HOLDS(ed_segment_mean(x, ids), shape, 2, NAN, 0, 0, 0, 0, 5, 6);
    HOLDS(ed_segment_max(x, ids), shape, 3, NAN, 0, 0, 0, 0, 5, 6);
    HOLDS(ed_segment_min(x, ids), shape, 1, NAN, 0, 0, 0, 0, 5, 6);
    HOLDS(ed_segment_prod(x, ids), shape, 3, NAN, 1, 1, 1, 1, 5, 6);
    const double most = (double)FLT_MAX;
    HOLDS(ed_unsorted_segment_sum(x, any, 4), shape, 0, 0, 0, 0, 6, 8, 0, 0);
    HOLDS(ed_unsorted_segment_mean(x, any, 4), shape, 0, 0, 0, 0, 3, 4, 0, 0);
    HOLDS(ed_unsorted_segment_max(x, any, 4), shape, -most, -most, -most, -most, 5, 6, -most,
          -most);
    HOLDS(ed_unsorted_segment_min(x, any, 4), shape, most, most, most, most, 1, 2, most, most);
    HOLDS(ed_unsorted_segment_prod(x, any, 4), shape, 1, 1, 1, 1, 5, 12, 1, 1);
    HOLDS(ed_unsorted_segment_sqrt_n(x, any, 4), shape, 0, 0, 0, 0, 4.242640972, 5.656854152, 0, 0);
    HOLDS(ed_unsorted_segment_max(FLOATS(-INFINITY), IDS(0), 1), ED_SHAPE(1), -INFINITY);
    HOLDS(ed_unsorted_segment_min(IDS(7), IDS(1), 2), ED_SHAPE(2), INT32_MAX, 7);
    ed_tensor *none = ed_zeros(ED_SHAPE(0, 3)), *no_ids = ed_zeros(ED_SHAPE(0), .dtype = ED_INT64);
    HOLDS(ed_segment_sum(none, no_ids), ED_SHAPE(0, 3), 0);
    HOLDS(ed_unsorted_segment_prod(none, no_ids, 1), ED_SHAPE(1, 3), 1, 1, 1);
}

static void bad_ids(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = FLOATS(1, 2, 3);
    REFUSED(ed_segment_sum(x, IDS(0, 2, 1)), "segment_sum: id 1 at position 2: ids must be >= 0");
    REFUSED(ed_segment_max(x, IDS(-3, 2, 4)), "segment_max: id -3 at position 0");
    REFUSED(ed_segment_prod(x, IDS(0, 1)), "segment_prod: ids are int32[2]; expected one id");
    REFUSED(ed_segment_mean(x, ed_scalar(1)), "ids are int32[]");
    REFUSED(ed_segment_sum(ed_ones(ED_SHAPE(2, 2)), ed_zeros(ED_SHAPE(2, 2), .dtype = ED_INT32)),
            "ids must have rank 1, got int32[2, 2]");
    assert_fails(ed_unsorted_segment_max(x, IDS(0, 5, 1), 4), ED_OUT_OF_RANGE,
                 "unsorted_segment_max: id 5 at position 1 is out of bounds: it must be below 4");
    REFUSED(ed_unsorted_segment_mean(x, IDS(0, 1, 1), -2),
            "num_segments must be at least 0, got -2");
}

/* n rows of numbers whose sums need no rounding, and of others. */
static ed_tensor *numbers(int64_t n, int64_t width, bool exact)
{
    ed_tensor *x = scope_give(tensor_new(ED_FLOAT32, 2, (int64_t[]){n, width}));
    for (int64_t i = 0; i < x->size; i++)
        ((float *)x->data)[i] = exact ? (float)(i % 509) / 512 : 1.0f / (float)(1 + i % 1013);
    return x;
}

static void check_same(const ed_tensor *y, const float *want, int64_t width, int threads)
{
    for (int64_t i = 0; i < y->size; i++)
        if (((float *)y->data)[i] != want[i])
            fail_msg("width %lld, %d threads, element %lld", (long long)width, threads,
                     (long long)i);
}

/* Sorted and not, narrow and wide, ids of both dtypes: the sums of a plain loop where nothing is
 * rounded, and the same bits for any number of threads. */
static void many_threads(void **state)
{
    (void)state;
    static const int64_t widths[] = {1, 3, 70};
    const int threads = ed_num_threads();
    for (int k = 0; k < 12; k++) {
        ED_SCOPE;
        const bool sorted = k & 1;
        const int64_t w = widths[k / 4], n = 200000 / w, segments = sorted ? n / 5 + 1 : 37;
        ed_tensor *ids = scope_give(tensor_new(ED_INT64, 1, &n));
        int64_t *id = (int64_t *)ids->data;
        for (int64_t i = 0; i < n; i++) id[i] = sorted ? i / 5 : i * i % 37;
        ed_tensor *x = numbers(n, w, true), *rounded = numbers(n, w, false);
        float *sums = calloc((size_t)(segments * w), sizeof *sums);
        for (int64_t i = 0; i < x->size; i++) sums[id[i / w] * w + i % w] += ((float *)x->data)[i];
        if (k & 2) ids = ed_cast(ids, ED_INT32);
        const ed_tensor *first = NULL;
        for (int t = 1; t <= 3; t++) {
            ed_set_num_threads(t);
            const ed_tensor *y = ed_unsorted_segment_sum(x, ids, segments);
            if (!y) fail_msg("%s", ed_error());
            check_same(y, sums, w, t);
            y = ed_unsorted_segment_sum(rounded, ids, segments);
            if (!first) first = y;
            check_same(y, (float *)first->data, w, t);
        }
        free(sums);
    }
    ed_set_num_threads(threads);
}

/* Parts of the slices with copies of the results: other folds, and slices that are left out. */
static void folded_parts(void **state)
{
    (void)state;
    ED_SCOPE;
    const int64_t n = 400000;
    ed_tensor *x = ed_floor_mod(ed_range(0, (double)n, .dtype = ED_INT32), 1009);
    ed_tensor *ids = ed_sub(ed_floor_mod(ed_range(0, (double)n, .dtype = ED_INT32), 3), 1);
    HOLDS(ed_unsorted_segment_max(x, ids, 3), ED_SHAPE(3), 1008, 1008, INT32_MIN);
    HOLDS(ed_unsorted_segment_min(ed_cast(x, ED_FLOAT32), ids, 3), ED_SHAPE(3), 0, 0,
          (double)FLT_MAX);
    ed_tensor *ones = ed_ones(ED_SHAPE(n));
    HOLDS(ed_unsorted_segment_prod(ones, ids, 3), ED_SHAPE(3), 1, 1, 1);
    HOLDS(ed_unsorted_segment_sum(ones, ids, 3), ED_SHAPE(3), 133333, 133333, 0);
    HOLDS(ed_unsorted_segment_sum(x, ed_full(ED_SHAPE(n), -1, .dtype = ED_INT32), 0), ED_SHAPE(0),
          0);
}

static ed_tensor *slope(ed_tensor *(*f)(ed_tensor *, ed_tensor *), ed_tensor *x, ed_tensor *ids)
{
    ed_tape *tape = ed_tape_begin();
    ed_watch(tape, x);
    return ed_gradient(tape, f(x, ids), x);
}

static void special_gradients(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = FLOATS(2, 2, 1, 0, 3, 0, 0, 5), *ids = IDS(0, 0, 0, 2, 2, 3, 3, 4);
    const ed_ints shape = ED_SHAPE(8);
    HOLDS(slope(ed_segment_max, x, ids), shape, 0.5, 0.5, 0, 0, 1, 0.5, 0.5, 1);
    HOLDS(slope(ed_segment_min, x, ids), shape, 0, 0, 1, 1, 0, 0.5, 0.5, 1);
    HOLDS(slope(ed_segment_prod, x, ids), shape, 2, 2, 4, 3, 0, 0, 0, 1);
    HOLDS(slope(ed_segment_max, FLOATS(1, NAN, 2), IDS(0, 0, 1)), ED_SHAPE(3), NAN, NAN, 1);
}

/* The second derivative of a product of two zeros is the product of the others. */
static void products_of_zeros(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = FLOATS(0, 0, 3);
    ed_tape *outer = ed_tape_begin(), *inner = ed_tape_begin();
    ed_watch(outer, x);
    ed_watch(inner, x);
    ed_tensor *dx = ed_gradient(inner, ed_segment_prod(x, IDS(0, 0, 0)), x);
    ed_tensor *first = ed_index(dx, 0);
    HOLDS(ed_gradient(outer, first, x), ED_SHAPE(3), 0, 3, 0);
}

static void counts(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = IDS(1, 1, 2, 3, 2, 4, 4, 5), *none = ed_zeros(ED_SHAPE(0), .dtype = ED_INT32);
    HOLDS(ed_bincount(x, NULL), ED_SHAPE(6), 0, 2, 2, 1, 2, 1);
    HOLDS(ed_bincount(x, NULL, .minlength = 8), ED_SHAPE(8), 0, 2, 2, 1, 2, 1, 0, 0);
    HOLDS(ed_bincount(x, NULL, .maxlength = 3), ED_SHAPE(3), 0, 2, 2);
    HOLDS(ed_bincount(x, NULL, .maxlength = 3, .minlength = 5), ED_SHAPE(3), 0, 2, 2);
    HOLDS(ed_bincount(x, ed_cast(x, ED_FLOAT32)), ED_SHAPE(6), 0, 2, 4, 3, 8, 5);
    HOLDS(ed_bincount(none, NULL), ED_SHAPE(0), 0);
    HOLDS(ed_bincount(none, NULL, .minlength = 2), ED_SHAPE(2), 0, 0);
    assert_int_equal(ed_dtype_of(ed_bincount(x, NULL)), ED_INT32);
    ed_tensor *rows = ed_reshape(x, ED_SHAPE(2, 4));
    HOLDS(ed_bincount(rows, NULL, .axis = -1), ED_SHAPE(2, 6), 0, 2, 1, 1, 0, 0, 0, 0, 1, 0, 2, 1);
    HOLDS(ed_bincount(rows, NULL, .axis = -1, .binary_output = true), ED_SHAPE(2, 6), 0, 1, 1, 1, 0,
          0, 0, 0, 1, 0, 1, 1);
    assert_fails(ed_bincount(IDS(1, -2), NULL), ED_OUT_OF_RANGE,
                 "bincount: x[1], counted flat, is -2; it must be >= 0");
    REFUSED(ed_bincount(x, FLOATS(1, 2)), "weights are float32[2]; expected the shape of x");
    HOLDS(ed_confusion_matrix(IDS(1, 2, 4), IDS(2, 2, 4), NULL), ED_SHAPE(5, 5), 0, 0, 0, 0, 0, 0,
          0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1);
    assert_fails(ed_confusion_matrix(IDS(1, 2), IDS(0, 3), NULL, .num_classes = 3), ED_OUT_OF_RANGE,
                 "predictions[1], counted flat, is 3; it must be below 3");
    /* enough for tables of threads */
    const int64_t n = 300001;
    ed_tensor *many = scope_give(tensor_new(ED_INT32, 1, &n));
    for (int64_t i = 0; i < n; i++) ((int32_t *)many->data)[i] = (int32_t)(i % 300);
    const int32_t *got = ed_data(ed_bincount(many, NULL));
    for (int i = 0; i < 300; i++) assert_int_equal(got[i], 1000 + (i < 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(empty_segments, check_end),
        cmocka_unit_test_teardown(bad_ids, check_end),
        cmocka_unit_test_teardown(many_threads, check_end),
        cmocka_unit_test_teardown(folded_parts, check_end),
        cmocka_unit_test_teardown(special_gradients, check_end),
        cmocka_unit_test_teardown(products_of_zeros, check_end),
        cmocka_unit_test_teardown(counts, check_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
