/*
 * Subscripts, diagonals, repeating, searching, partitions and sets: values that TensorFlow gives,
 * which results are views, what is refused and in which words. What the definitions promise is
 * checked for all ops alike in test_ops.c.
 */
#include "eddy.h"
#include "tensor/core.h"
#include "tests/asserts.h"
#include <math.h>

/* A tensor of that shape with these elements. */
#define GIVES(x, shape, ...)                                                                       \
    gives(x, shape, (const double[]){0, __VA_ARGS__} + 1,                                          \
          sizeof((const double[]){0, __VA_ARGS__}) / sizeof(double) - 1)

static void gives(const ed_tensor *x, ed_ints shape, const double *values, size_t count)
{
    if (!x) fail_msg("%s", ed_error());
    assert_int_equal(ed_rank(x), shape.count);
    for (int i = 0; i < shape.count; i++) assert_int_equal(ed_dim(x, i), shape.values[i]);
    assert_int_equal(ed_size(x), count);
    const double *elements = ed_as_doubles(x);
    for (size_t i = 0; i < count; i++) assert_true(elements[i] == values[i]);
}

#define WRONG(call, words)   assert_fails(call, ED_INVALID_ARGUMENT, words)
#define OUTSIDE(call, words) assert_fails(call, ED_OUT_OF_RANGE, words)

/* 0, 1, 2, ... */
static ed_tensor *counted(ed_ints shape)
{
    int64_t n = 1;
    for (int i = 0; i < shape.count; i++) n *= shape.values[i];
    return ed_reshape(ed_range(0, (double)n, .dtype = ED_FLOAT32), shape);
}

static ed_tensor *whole(const int32_t *values, int64_t n)
{
    return ed_constant_of(ED_INT32, values, ((ed_ints){&n, 1}));
}
#define WHOLE(...)                                                                                 \
    whole((const int32_t[]){__VA_ARGS__}, sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t))

/* ---- Subscripts ------------------------------------------------------------------------------ */

static void subscripts(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = counted(ED_SHAPE(2, 3, 4));
    ed_tensor *y = ed_strided_slice(x, ED_INDEX(1), ED_ALL, ED_RANGE(0, 4, 2));
    GIVES(y, ED_SHAPE(3, 2), 12, 14, 16, 18, 20, 22);
    assert_ptr_equal(y->buffer, x->buffer);
    GIVES(ed_strided_slice(x, ED_ELLIPSIS, ED_INDEX(-1)), ED_SHAPE(2, 3), 3, 7, 11, 15, 19, 23);
    GIVES(ed_strided_slice(x, ED_INDEX(-2), ED_NEW_AXIS, ED_RANGE(1, ED_END), ED_INDEX(0)),
          ED_SHAPE(1, 2), 4, 8);
    GIVES(ed_strided_slice(x, ED_INDEX(0), ED_INDEX(1), ED_RANGE(ED_END, ED_END, -3)), ED_SHAPE(2),
          7, 4);
    GIVES(ed_strided_slice(x, ED_INDEX(1), ED_INDEX(2), ED_INDEX(3), ED_NEW_AXIS), ED_SHAPE(1), 23);
    GIVES(ed_strided_slice(x, ED_RANGE(5, 9), ED_ELLIPSIS, ED_NEW_AXIS), ED_SHAPE(0, 3, 4, 1));
    GIVES(ed_strided_slice(x, ED_RANGE(0, 1), ED_ALL, ED_INDEX(2), ED_ELLIPSIS), ED_SHAPE(1, 3), 2,
          6, 10);
    const ed_subscript last = ED_INDEX(-1);
    gives(ed_strided_slice_of(x, &last, 0), ED_SHAPE(2, 3, 4), ed_as_doubles(x), 24);
    GIVES(ed_strided_slice_of(ed_range(0, 3), &last, 1), ED_SHAPE(), 2);
    assert_fine();
}

static void wrong_subscripts(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = counted(ED_SHAPE(2, 3)), *v = ed_variable(x);
    const ed_subscript odd = {(ed_subscript_kind)9, 0, 0, 0};
    OUTSIDE(ed_strided_slice(x, ED_ALL, ED_INDEX(3)),
            "strided_slice: index 3 is out of bounds for axis 1 of float32[2, 3]");
    OUTSIDE(ed_strided_slice(x, ED_INDEX(-3)), "index -3 is out of bounds for axis 0");
    OUTSIDE(ed_strided_slice(ed_zeros(ED_SHAPE(0)), ED_INDEX(0)), "index 0 is out of bounds");
    WRONG(ed_strided_slice(x, ED_ALL, ED_ALL, ED_ALL),
          "3 subscripts are too many for float32[2, 3]");
    WRONG(ed_strided_slice(x, ED_ELLIPSIS, ED_ELLIPSIS),
          "at most one subscript may be an ellipsis");
    WRONG(ed_strided_slice(x, ED_RANGE(0, 1, 0)), "strided_slice: step must not be 0");
    WRONG(ed_strided_slice(x, ED_NEW_AXIS, ED_NEW_AXIS, ED_NEW_AXIS, ED_NEW_AXIS, ED_NEW_AXIS,
                           ED_NEW_AXIS, ED_NEW_AXIS),
          "rank is larger than the maximum, 8");
    WRONG(ed_strided_slice_of(x, &odd, 1), "subscript 0 has no kind");
    WRONG(ed_strided_slice_of(x, NULL, 1), "the array of subscripts is NULL");
    WRONG(ed_strided_slice_of(x, &odd, -1), "subscripts");
    WRONG(ed_assign_strided_slice(x, 0, ED_INDEX(1)), "assign_slice: variable must be a variable");
    WRONG(ed_assign_strided_slice(v, ed_zeros(ED_SHAPE(4)), ED_INDEX(1)),
          "does not broadcast to [3]");
    OUTSIDE(ed_assign_strided_slice(v, 0, ED_INDEX(7)), "assign_strided_slice: index 7");
    GIVES(v, ED_SHAPE(2, 3), 0, 1, 2, 3, 4, 5);
}

static void assigned_subscripts(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *v = ed_variable(ed_zeros(ED_SHAPE(2, 3)));
    assert_ptr_equal(ed_assign_strided_slice(v, 7, ED_ELLIPSIS, ED_INDEX(-1)), v);
    const char *place = tensor_read(v)->data;
    GIVES(v, ED_SHAPE(2, 3), 0, 0, 7, 0, 0, 7);
    assert_non_null(ed_assign_strided_slice(v, counted(ED_SHAPE(3)), ED_INDEX(1)));
    GIVES(v, ED_SHAPE(2, 3), 0, 0, 7, 0, 1, 2);
    ed_tensor *column = ed_add(counted(ED_SHAPE(2, 1)), 3);
    WRONG(ed_assign_strided_slice(v, column, ED_INDEX(0)), "does not broadcast");
    assert_non_null(ed_assign_strided_slice(v, column, ED_ALL, ED_RANGE(ED_END, ED_END, -2)));
    GIVES(v, ED_SHAPE(2, 3), 3, 0, 3, 4, 1, 4);
    assert_ptr_equal(tensor_read(v)->data, place); /* all of them where it lies */
}

/* The gradient goes where the elements came from, that of the gradient back. */
static void gradient_of_subscripts(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = counted(ED_SHAPE(2, 3)), *dx;
    ed_tape *outer = ed_tape_begin();
    ed_watch(outer, x);
    {
        ed_tape *inner = ed_tape_begin();
        ed_watch(inner, x);
        ed_tensor *part =
            ed_strided_slice(x, ED_INDEX(1), ED_NEW_AXIS, ED_RANGE(ED_END, ED_END, -2));
        dx = ed_gradient(inner, ed_mul(part, ed_square(part)), x);
    }
    GIVES(dx, ED_SHAPE(2, 3), 0, 0, 0, 27, 0, 75);
    GIVES(ed_gradient(outer, dx, x), ED_SHAPE(2, 3), 0, 0, 0, 18, 0, 30);
}

/* ---- Diagonals ------------------------------------------------------------------------------- */

static void diagonals(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_add(counted(ED_SHAPE(3, 4)), 1);
    ed_tensor *main = ed_diag_part(x);
    GIVES(main, ED_SHAPE(3), 1, 6, 11);
    assert_ptr_equal(main->buffer, x->buffer);
    GIVES(ed_diag_part(x, .k = ED_INTS(-1, 2)), ED_SHAPE(4, 3), 0, 3, 8, 2, 7, 12, 1, 6, 11, 5, 10,
          0);
    GIVES(ed_diag_part(x, .k = ED_INTS(-1, 2), .align = "LEFT_RIGHT", .padding_value = 9),
          ED_SHAPE(4, 3), 3, 8, 9, 2, 7, 12, 1, 6, 11, 9, 5, 10);
    GIVES(ed_diag(WHOLE(1, 2), .k = ED_INTS(1)), ED_SHAPE(3, 3), 0, 1, 0, 0, 0, 2, 0, 0, 0);
    GIVES(ed_diag(WHOLE(1, 2), .num_cols = 3, .padding_value = 7), ED_SHAPE(2, 3), 1, 7, 7, 7, 2,
          7);
    GIVES(ed_set_diag(ed_zeros(ED_SHAPE(2, 3), .dtype = ED_INT32), WHOLE(4, 5), .k = ED_INTS(1)),
          ED_SHAPE(2, 3), 0, 4, 0, 0, 0, 5);
    GIVES(ed_trace(x), ED_SHAPE(), 18);
    WRONG(ed_diag_part(x, .k = ED_INTS(4)),
          "diag_part: matrices of 3 rows and 4 columns have no diagonal 4");
    WRONG(ed_diag_part(x, .k = ED_INTS(1, 0)), "the lowest and the highest one, got [1, 0]");
    WRONG(ed_diag_part(WHOLE(1)), "x must have rank >= 2, got int32[1]");
    WRONG(ed_diag_part(ed_zeros(ED_SHAPE(2, 2), .dtype = ED_INT32), .padding_value = 0.5),
          "cannot be represented as int32");
    WRONG(ed_diag(WHOLE(1, 2), .num_rows = 1), "do not fit 1 rows and 2 columns");
    WRONG(ed_diag(WHOLE(1, 2), .num_rows = 3, .num_cols = 3), "do not fit 3 rows and 3 columns");
    WRONG(ed_diag(WHOLE(1, 2), .k = ED_INTS(INT64_MIN)), "diag: k is out of any matrix's bounds");
    WRONG(ed_set_diag(x, ed_zeros(ED_SHAPE(4))), "have shape [3]");
    WRONG(ed_trace(WHOLE(1)), "trace: x must have rank >= 2");
}

/* ---- Repeating, masks, sequences ------------------------------------------------------------- */

static void repeats(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = counted(ED_SHAPE(2, 2));
    GIVES(ed_repeat(x, 2), ED_SHAPE(8), 0, 0, 1, 1, 2, 2, 3, 3);
    GIVES(ed_repeat(x, 2, .axis = ED_AXES(0)), ED_SHAPE(4, 2), 0, 1, 0, 1, 2, 3, 2, 3);
    GIVES(ed_repeat(x, WHOLE(2, 0), .axis = ED_AXES(1)), ED_SHAPE(2, 2), 0, 0, 2, 2);
    WRONG(ed_repeat(x, -1), "repeats must be >= 0, got -1");
    WRONG(ed_repeat(x, WHOLE(1, -2), .axis = ED_AXES(0)), "got -2 at position 1");
    WRONG(ed_repeat(x, WHOLE(1, 2, 3), .axis = ED_AXES(0)), "repeats are int32[3]");
    WRONG(ed_repeat(x, 2, .axis = ED_AXES(0, 1)), "axis must be one axis, got [0, 1]");
    assert_fails(ed_repeat(x, INT64_MAX), ED_OUT_OF_MEMORY, "repeat: ");
    ed_tensor *empty = ed_zeros(ED_SHAPE(0, (int64_t)1 << 40));
    GIVES(ed_repeat(empty, 3, .axis = ED_AXES(0)), ED_SHAPE(0, (int64_t)1 << 40));
}

static void masks(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = counted(ED_SHAPE(3, 2)), *mask = ed_greater(WHOLE(1, 0, 1), 0);
    GIVES(ed_boolean_mask(x, mask), ED_SHAPE(2, 2), 0, 1, 4, 5);
    GIVES(ed_boolean_mask(x, ed_greater(x, 2)), ED_SHAPE(3), 3, 4, 5);
    WRONG(ed_boolean_mask(x, mask, .axis = 1), "the mask is bool[3]");
    WRONG(ed_boolean_mask(x, ed_equal(ed_scalar(1), 1)), "the mask is bool[]");
    GIVES(ed_sequence_mask(WHOLE(1, 3, -4)), ED_SHAPE(3, 3), 1, 0, 0, 1, 1, 1, 0, 0, 0);
    GIVES(ed_sequence_mask(WHOLE(1, 3), .maxlen = 2), ED_SHAPE(2, 2), 1, 0, 1, 1);
    assert_int_equal(ed_dtype_of(ed_sequence_mask(WHOLE(1), .dtype = ED_FLOAT64)), ED_FLOAT64);
    GIVES(ed_reverse_sequence(x, WHOLE(2, 1, 0)), ED_SHAPE(3, 2), 1, 0, 2, 3, 4, 5);
    GIVES(ed_reverse_sequence(x, WHOLE(2, 3), .seq_axis = 0, .batch_axis = 1), ED_SHAPE(3, 2), 2, 5,
          0, 3, 4, 1);
    OUTSIDE(ed_reverse_sequence(x, WHOLE(2, 1, 3)), "the length 3 at position 2 must be in 0..2");
    WRONG(ed_reverse_sequence(x, WHOLE(1, 1)), "seq_lengths are int32[2]");
    WRONG(ed_reverse_sequence(x, WHOLE(1, 1), .seq_axis = -1, .batch_axis = 1), "must differ");
}

static void blocks(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = counted(ED_SHAPE(1, 4));
    GIVES(ed_space_to_batch(x, ED_INTS(2)), ED_SHAPE(2, 2), 0, 2, 1, 3);
    ed_tensor *y = ed_space_to_batch(x, ED_INTS(3), .before = ED_INTS(1), .after = ED_INTS(1));
    GIVES(y, ED_SHAPE(3, 2), 0, 2, 0, 3, 1, 0);
    GIVES(ed_batch_to_space(y, ED_INTS(3), .before = ED_INTS(1), .after = ED_INTS(1)),
          ED_SHAPE(1, 4), 0, 1, 2, 3);
    WRONG(ed_space_to_batch(x, ED_INTS(3)), "must be divisible by the block's size, 3");
    WRONG(ed_space_to_batch(x, ED_INTS(0)), "block_shape [0] must have numbers >= 1");
    WRONG(ed_space_to_batch(x, ED_INTS(1, 1)), "at most one for each axis of x, float32[1, 4]");
    WRONG(ed_space_to_batch(x, ED_INTS(1), .before = ED_INTS(-1)), "before [-1]");
    WRONG(ed_batch_to_space(x, ED_INTS(2)), "must be divisible by the 2 elements of a block");
    WRONG(ed_batch_to_space(y, ED_INTS(3), .before = ED_INTS(4), .after = ED_INTS(3)), "fewer");
    const int64_t huge = (int64_t)1 << 40;
    assert_fails(ed_space_to_batch(ed_zeros(ED_SHAPE(huge, 0)), ED_INTS(huge)), ED_OUT_OF_MEMORY,
                 "space_to_batch: block_shape [1099511627776] is too large");
    assert_fails(ed_batch_to_space(ed_zeros(ED_SHAPE(0, huge)), ED_INTS(huge)), ED_OUT_OF_MEMORY,
                 "batch_to_space: block_shape [1099511627776] is too large");
}

/* More rows than are read at once, and single elements that threads share, by indices of both
 * dtypes and of one number or a matrix: the sums of a plain loop, with any number of threads. */
static void many_scatters(void **state)
{
    (void)state;
    enum { ROWS = 37 };
    static const ed_dtype dtypes[] = {ED_INT32, ED_INT64};
    const int threads = ed_num_threads();
    for (int k = 0; k < 12; k++) {
        ED_SCOPE;
        const int64_t width = k % 2 ? 70 : 1, n = k % 2 ? 1999 : 70001;
        float sums[ROWS * 70] = {0};
        ed_set_num_threads(1 + k / 4);
        ed_tensor *x = ed_mul(counted(ED_SHAPE(n, width)), 0.125f);
        ed_tensor *at = ed_floor_mod(ed_range(0, 7 * n, .delta = 7, .dtype = ED_INT64), ROWS);
        for (int64_t i = 0; i < ed_size(x); i++)
            sums[i / width * 7 % ROWS * width + i % width] += 0.125f * (float)i;
        ed_tensor *v = ed_variable(ed_zeros(ED_SHAPE(ROWS, width)));
        assert_true(ed_scatter_add(v, ed_cast(at, dtypes[k / 2 % 2]), x));
        const float *got = ed_data(ed_value(v));
        for (int64_t i = 0; i < ROWS * width; i++) assert_true(got[i] == sums[i]);
        got = ed_data(ed_scatter_nd(ed_reshape(at, ED_SHAPE(n, 1)), x, ED_SHAPE(ROWS, width)));
        for (int64_t i = 0; i < ROWS * width; i++) assert_true(got[i] == sums[i]);
    }
    ed_set_num_threads(threads);
}

/* ---- Shapes and places ----------------------------------------------------------------------- */

static void shapes(void **state)
{
    (void)state;
    ED_SCOPE;
    const ed_ints shape = ed_broadcast_shapes(ED_SHAPE(3, 1), ED_SHAPE(2, 1, 4));
    assert_int_equal(shape.count, 3);
    for (int i = 0; i < 3; i++) assert_int_equal(shape.values[i], 2 + i);
    assert_int_equal(ed_rank(ed_zeros(ed_broadcast_shapes(ED_SHAPE(), ED_SHAPE()))), 0);
    WRONG(ed_broadcast_shapes(ED_SHAPE(3), ED_SHAPE(2)).values,
          "broadcast_shapes: shapes [3] and [2] don't broadcast");
    WRONG(ed_broadcast_shapes(ED_SHAPE(-1), ED_SHAPE(2)).values, "got [-1]");
    GIVES(ed_unravel_index(WHOLE(5, 0), ED_SHAPE(2, 3)), ED_SHAPE(2, 2), 1, 0, 2, 0);
    OUTSIDE(ed_unravel_index(WHOLE(1, 6), ED_SHAPE(2, 3)), "index 6 at position 1");
    OUTSIDE(ed_unravel_index(WHOLE(0), ED_SHAPE(0, 3)), "index 0 at position 0");
}

static void searches(void **state)
{
    (void)state;
    ED_SCOPE;
    const float rows[] = {0, 1, 1, NAN, 2, 3, 4, 5};
    ed_tensor *sorted = ed_constant(rows, ED_SHAPE(2, 4));
    ed_tensor *values = ed_constant(((const float[]){1, NAN, 9, 2}), ED_SHAPE(2, 2));
    GIVES(ed_searchsorted(sorted, values), ED_SHAPE(2, 2), 1, 3, 4, 0);
    GIVES(ed_searchsorted(sorted, values, .side = "right"), ED_SHAPE(2, 2), 3, 4, 4, 1);
    GIVES(ed_searchsorted(WHOLE(1, 3, 5), 3), ED_SHAPE(), 1);
    WRONG(ed_searchsorted(sorted, 3.0), "sorted_sequence is float32[2, 4], values are float32[]");
    GIVES(ed_bucketize(WHOLE(-5, 10, 150), ed_constant(((const float[]){0, 10, 100}), ED_SHAPE(3))),
          ED_SHAPE(3), 0, 2, 3);
    WRONG(ed_bucketize(1, WHOLE(2, 1)), "boundaries must ascend");
    WRONG(ed_bucketize(1, ed_scalar(2)), "boundaries must have rank 1");
    ed_tensor *p = ed_constant(((const float[]){0.1f, 0.5f, 0.5f, 0.3f}), ED_SHAPE(1, 4));
    GIVES(ed_in_top_k(WHOLE(2), p, 1), ED_SHAPE(1), 1);
    GIVES(ed_in_top_k(WHOLE(3), p, 2), ED_SHAPE(1), 0);
    OUTSIDE(ed_in_top_k(WHOLE(4), p, 2), "index 4 at position 0 is out of bounds");
}

static void partitions(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = WHOLE(7, 2, 9, 2, 5);
    GIVES(ed_partition(x, 2), ED_SHAPE(5), 2, 2, 5, 7, 9);
    GIVES(ed_argpartition(x, 1), ED_SHAPE(5), 1, 3, 0, 2, 4);
    OUTSIDE(ed_partition(x, 5), "kth 5 is out of bounds for axis 0 of x, int32[5]");
    ed_list *parts = ed_dynamic_partition(x, WHOLE(1, 0, 1, 0, 3), 4);
    assert_int_equal(ed_list_size(parts), 4);
    GIVES(ed_list_get(parts, 0), ED_SHAPE(2), 2, 2);
    GIVES(ed_list_get(parts, 2), ED_SHAPE(0));
    ed_list *places = ed_dynamic_partition(WHOLE(0, 1, 2, 3, 4), WHOLE(1, 0, 1, 0, 3), 4);
    GIVES(ed_dynamic_stitch(places, parts), ED_SHAPE(5), 7, 2, 9, 2, 5);
    GIVES(ed_dynamic_stitch(ed_list_of(WHOLE(3, 1), WHOLE(1)), ed_list_of(WHOLE(1, 2), WHOLE(9))),
          ED_SHAPE(4), 0, 9, 0, 1);
    OUTSIDE(ed_dynamic_partition(x, WHOLE(0, 1, 2, 0, 0), 2), "index 2 at position 2");
    WRONG(ed_dynamic_partition(x, WHOLE(0, 1), 2), "partitions is int32[2]");
    OUTSIDE(ed_dynamic_stitch(ed_list_of(WHOLE(-1)), ed_list_of(WHOLE(1))),
            "index -1 at position 0");
    WRONG(ed_dynamic_stitch(ed_list_of(WHOLE(0, 1)), ed_list_of(WHOLE(1))), "data is int32[1]");
    WRONG(ed_dynamic_stitch(ed_list_of(x, x), ed_list_of(x)), "got 2 tensors of indices and 1");
}

/* Slices of more than one piece, of 1 to 8 bytes and of three numbers, in their order. */
static void many_partitions(void **state)
{
    (void)state;
    const int64_t n = 70001;
    const int threads = ed_num_threads();
    for (int t = 1; t <= 3; t++) {
        ED_SCOPE;
        ed_set_num_threads(t);
        ed_tensor *numbers = ed_range(0, (double)n, .dtype = ED_INT32);
        ed_tensor *x[] = {ed_cast(numbers, ED_UINT8), ed_cast(numbers, ED_INT16), numbers,
                          ed_cast(numbers, ED_FLOAT64),
                          ed_stack(ed_list_of(numbers, ed_neg(numbers), numbers), .axis = 1)};
        ed_tensor *partitions = ed_floor_mod(numbers, 3);
        for (size_t i = 0; i < sizeof x / sizeof *x; i++) {
            ed_list *parts = ed_dynamic_partition(x[i], partitions, 4);
            assert_int_equal(ed_list_size(parts), 4);
            for (int k = 0; k < 4; k++) {
                ed_tensor *want = ed_strided_slice(x[i], ED_RANGE(k, k < 3 ? n : k, 3));
                assert_int_equal(ed_size(ed_list_get(parts, k)), ed_size(want));
                assert_true(ed_item(ed_reduce_all(ed_equal(ed_list_get(parts, k), want))));
            }
        }
    }
    ed_set_num_threads(threads);
}

static void partitions_with_strides(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *numbers = WHOLE(1, 0, 0, 0, 1, 0), *x = WHOLE(7, 2, 9, 2, 5, 1);
    ed_list *parts = ed_dynamic_partition(ed_strided_slice(x, ED_RANGE(5, 0, -2)),
                                          ed_strided_slice(numbers, ED_RANGE(0, 6, 2)), 2);
    GIVES(ed_list_get(parts, 0), ED_SHAPE(1), 2);
    GIVES(ed_list_get(parts, 1), ED_SHAPE(2), 1, 2);
}

static void sets(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *a = ed_reshape(WHOLE(3, 1, 3, 5, 5, 5), ED_SHAPE(2, 3)), *counts;
    ed_tensor *b = ed_reshape(WHOLE(1, 2, 4, 6), ED_SHAPE(2, 2));
    GIVES(ed_set_intersection(a, b, &counts), ED_SHAPE(2, 1), 1, 0);
    GIVES(counts, ED_SHAPE(2), 1, 0);
    GIVES(ed_set_union(a, b, &counts), ED_SHAPE(2, 3), 1, 2, 3, 4, 5, 6);
    GIVES(ed_set_difference(a, b, &counts), ED_SHAPE(2, 1), 3, 5);
    GIVES(ed_set_difference(a, a, NULL), ED_SHAPE(2, 0));
    WRONG(ed_set_union(a, WHOLE(1), NULL), "set_union: a is int32[2, 3], b is int32[1]");
    WRONG(ed_set_union(ed_scalar(1), WHOLE(1), NULL), "a must have rank >= 1");
}

/* So many that they go past the caches, some rows at a time; and rows too long for that. */
static void many_ones(void **state)
{
    (void)state;
    static const int64_t depths[] = {67, 5000};
    for (int k = 0; k < 4; k++) {
        ED_SCOPE;
        const int64_t depth = depths[k / 2], n = (17 << 20) / 4 / depth;
        ed_tensor *at = ed_sub(ed_floor_mod(counted(ED_SHAPE(n)), (double)(depth + 5)), 3);
        at = ed_cast(at, k % 2 ? ED_INT64 : ED_INT32);
        const ed_tensor *y = ed_one_hot(at, depth);
        if (!y) fail_msg("%s", ed_error());
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < depth; j++)
                assert_true(((const float *)ed_data(y))[i * depth + j] ==
                            (i % (depth + 5) - 3 == j));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(subscripts, check_end),
        cmocka_unit_test_teardown(wrong_subscripts, check_end),
        cmocka_unit_test_teardown(assigned_subscripts, check_end),
        cmocka_unit_test_teardown(gradient_of_subscripts, check_end),
        cmocka_unit_test_teardown(diagonals, check_end),
        cmocka_unit_test_teardown(repeats, check_end),
        cmocka_unit_test_teardown(masks, check_end),
        cmocka_unit_test_teardown(blocks, check_end),
        cmocka_unit_test_teardown(many_ones, check_end),
        cmocka_unit_test_teardown(many_scatters, check_end),
        cmocka_unit_test_teardown(shapes, check_end),
        cmocka_unit_test_teardown(searches, check_end),
        cmocka_unit_test_teardown(partitions, check_end),
        cmocka_unit_test_teardown(many_partitions, check_end),
        cmocka_unit_test_teardown(partitions_with_strides, check_end),
        cmocka_unit_test_teardown(sets, check_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
