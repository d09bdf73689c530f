/*
 * The elementwise driver and what the families promise beyond their values: every layout gives the
 * bits that contiguous operands give, in every instruction set; integers wrap; whole division by 0
 * is refused; casts round once and stay within the type.
 */
#include "ops/elementwise.h"
#include "ops/ops.h"
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

/* ---- Layouts --------------------------------------------------------------------------------- */

/* A small generator of whole numbers: 0..n-1. */
static int64_t pick(uint64_t *state, int64_t n)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((*state >> 33) % (uint64_t)n);
}

/* x of `dtype` and `size` elements between -4 and 4, with a few special ones among floats. */
static ed_tensor *numbers(ed_dtype dtype, int64_t size, uint64_t *state)
{
    ed_tensor *x = scope_give(tensor_new(dtype, 1, &size));
    static const double special[] = {NAN, INFINITY, -INFINITY, -0.0, 1e-40, 0};
    for (int64_t i = 0; i < size; i++) {
        double value = (double)(pick(state, 8001) - 4000) / 1000;
        if (dtype == ED_BOOL) value = value > 0;
        if (!dtype_holds(dtype, -1)) value = fabs(value);
        if (ed_dtype_is_float(dtype) && pick(state, 20) == 0) value = special[pick(state, 6)];
        dtype_store(dtype, x->data, i, value);
    }
    return x;
}

/*
 * A view of the given shape in a layout drawn at random: dimensions broadcast, in another order in
 * memory, with gaps, backwards.
 */
static ed_tensor *view(ed_dtype dtype, int rank, const int64_t *shape, uint64_t *state)
{
    int64_t strides[ED_MAX_RANK] = {0}, offset = 0, size = 1;
    bool done[ED_MAX_RANK] = {0};
    for (int left = rank; left > 0; left--) {
        int d = pick(state, 3) ? rank - 1 : 0;
        while (done[d]) d = (int)pick(state, rank);
        done[d] = true;
        if (pick(state, 5) == 0) continue;
        int64_t gap = pick(state, 4) == 0 ? 2 : 1;
        strides[d] = size * gap;
        size *= shape[d] * gap;
        if (pick(state, 6) == 0) {
            offset += strides[d] * (shape[d] - 1);
            strides[d] = -strides[d];
        }
    }
    return scope_give(tensor_view(numbers(dtype, size, state), rank, shape, strides, offset));
}

/* The same in row-major order. */
static ed_tensor *packed(const ed_tensor *x)
{
    ed_tensor *y = scope_give(tensor_new(x->dtype, x->rank, x->shape));
    tensor_pack(x, y->data);
    return y;
}

static void same_bits(const ed_tensor *a, const ed_tensor *b)
{
    assert_int_equal(a->size, b->size);
    assert_memory_equal(a->data, b->data, (size_t)a->size * dtype_size(a->dtype));
}

static const int64_t shapes[][4] = {
    {1, 1, 1, 1},     {1, 1, 1, 7},    {1, 1, 1, 100},  {1, 1, 3, 5},     {1, 1, 70, 3},
    {1, 1, 33, 90},   {2, 3, 4, 5},    {1, 5, 40, 70},  {1, 1, 700, 3},   {1, 9, 1, 130},
    {1, 1, 200, 200}, {3, 1, 200, 65}, {20, 30, 10, 8}, {1, 1, 1, 40001}, {2, 2, 2, 5000},
};

/* The op on views drawn at random, against the op on packed operands of the full shape. */
static void check_layouts(const ed_op *op, ed_dtype dtype, uint64_t *state)
{
    int n = op->operands[2].name ? 3 : op->operands[1].name ? 2 : 1;
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        ED_SCOPE;
        int skip = (int)pick(state, 2) ? 0 : 2;
        if (shapes[s][0] * shapes[s][1] != 1) skip = 0;
        ed_tensor *views[3], *full[3];
        for (int i = 0; i < n; i++) {
            ed_dtype own = op->operands[i].type == 'C' ? ED_BOOL : dtype;
            views[i] = view(own, 4 - skip, shapes[s] + skip, state);
            full[i] = packed(views[i]);
        }
        same_bits(packed(ed_call_op(op, views, n, NULL)), ed_call_op(op, full, n, NULL));
        assert_false(ed_failed());
    }
}

static void layouts_do_not_matter(void **state)
{
    (void)state;
    static const char *const names[] = {"add", "maximum", "where", "less",
                                        "exp", "sin",     "pow",   "cast"};
    uint64_t random = 7;
    for (int isa = 0; isa <= isa_best(); isa++) {
        isa_set(isa);
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            const ed_op *op = ed_op_find(names[i]);
            static const ed_dtype dtypes[] = {ED_FLOAT32, ED_FLOAT64, ED_UINT8, ED_FLOAT16,
                                              ED_INT64,   ED_INT16,   ED_UINT32};
            unsigned set = op->operands[op->operands[1].name ? 1 : 0].dtypes;
            if (!strcmp(op->name, "pow"))
                set &= ED_SET_FLOAT; /* integers have no negative powers */
            for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
                if (set & 1u << dtypes[d]) check_layouts(op, dtypes[d], &random);
        }
    }
    isa_set(isa_best());
}

/* An operand of one element, of rank 0 or more, stands for all; shapes that
 * don't fit are refused. */
static void shapes_broadcast(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *a = ed_constant(((float[]){1, 2, 3, 4, 5, 6}), ED_SHAPE(2, 3));
    ed_tensor *b = ed_constant(((float[]){10, 20}), ED_SHAPE(2, 1));
    ed_tensor *y = ed_add(a, b);
    float got[6];
    assert_true(ed_copy_to(y, got, 6));
    assert_memory_equal(got, ((float[]){11, 12, 13, 24, 25, 26}), sizeof got);
    assert_int_equal(ed_rank(ed_add(a, ed_constant(((float[]){1}), ED_SHAPE(1, 1, 1)))), 3);
    assert_int_equal(ed_size(ed_add(ed_constant((float *)NULL, ED_SHAPE(0, 3)), a)), 0);
    ed_clear_error();
    assert_null(ed_add(a, ed_constant(((float[]){1, 2}), ED_SHAPE(2))));
    assert_string_equal(ed_error(), "add: shapes [2, 3] and [2] don't broadcast");
    ed_clear_error();
}

/* ---- Integers -------------------------------------------------------------------------------- */

static int32_t of_int32(ed_tensor *(*f)(ed_tensor *, ed_tensor *), int32_t a, int32_t b)
{
    ED_SCOPE;
    int32_t y = 0;
    ed_copy_to(f(ed_constant(&a, ED_SHAPE()), ed_constant(&b, ED_SHAPE())), &y, 1);
    return y;
}

static void integers_wrap(void **state)
{
    (void)state;
    assert_int_equal(of_int32(ed_add, INT32_MAX, 1), INT32_MIN);
    assert_int_equal(of_int32(ed_sub, INT32_MIN, 1), INT32_MAX);
    assert_int_equal(of_int32(ed_mul, 65536, 65536), 0);
    assert_int_equal(of_int32(ed_floor_div, INT32_MIN, -1), INT32_MIN);
    assert_int_equal(of_int32(ed_floor_mod, INT32_MIN, -1), 0);
    ED_SCOPE;
    int32_t least = INT32_MIN, y;
    assert_true(ed_copy_to(ed_abs(ed_constant(&least, ED_SHAPE())), &y, 1) && y == INT32_MIN);
    assert_true(ed_copy_to(ed_neg(ed_constant(&least, ED_SHAPE())), &y, 1) && y == INT32_MIN);
    uint8_t byte = 200, sum;
    assert_true(ed_copy_to(ed_add(ed_constant(&byte, ED_SHAPE()), 100), &sum, 1) && sum == 44);
}

static void whole_division_rounds_down(void **state)
{
    (void)state;
    for (int32_t a = -7; a <= 7; a++)
        for (int32_t b = -3; b <= 3; b++) {
            if (b == 0) continue;
            int32_t q = (int32_t)floor((double)a / b);
            assert_int_equal(of_int32(ed_floor_div, a, b), q);
            assert_int_equal(of_int32(ed_floor_mod, a, b), a - q * b);
        }
    ED_SCOPE;
    ed_tensor *a = ed_constant(((int64_t[]){1, 2, 3}), ED_SHAPE(3));
    assert_null(ed_floor_div(a, ed_constant(((int64_t[]){1, 0, 3}), ED_SHAPE(3))));
    assert_string_equal(ed_error(), "floor_div: division by 0: element 1 of b, int64[3], is 0");
    ed_clear_error();
    assert_null(ed_floor_mod(a, 0));
    ed_clear_error();
    float y;
    assert_true(ed_copy_to(ed_floor_mod(ed_constant(((float[]){-1e-3f}), ED_SHAPE()), 3), &y, 1));
    assert_float_equal(y, 2.999, 1e-6);
    assert_true(ed_copy_to(ed_floor_mod(ed_constant(((float[]){1e10f}), ED_SHAPE()), 3), &y, 1));
    assert_true(y == 1);
}

static void clips(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_constant(((int32_t[]){-5, 0, 3, 9}), ED_SHAPE(4));
    int32_t y[4];
    assert_true(ed_copy_to(ed_clip(x, -0.5, 3.7), y, 4));
    assert_memory_equal(y, ((int32_t[]){0, 0, 3, 3}), sizeof y);
    assert_true(ed_copy_to(ed_clip(x, -INFINITY, 1e300), y, 4));
    assert_memory_equal(y, ((int32_t[]){-5, 0, 3, 9}), sizeof y);
    assert_null(ed_clip(x, 2, 1));
    assert_string_equal(ed_error(),
                        "clip: low must not be above high, nor NaN: low is 2, high is 1");
    ed_clear_error();
    assert_null(ed_clip(x, NAN, 1));
    ed_clear_error();
    float z;
    assert_true(ed_copy_to(ed_clip(ed_scalar(NAN), 0, 1), &z, 1) && isnan(z));
}

/* ---- NaN ------------------------------------------------------------------------------------- */

static void nan_passes(void **state)
{
    (void)state;
    for (int isa = 0; isa <= isa_best(); isa++) {
        ED_SCOPE;
        isa_set(isa);
        ed_tensor *nan = ed_scalar(NAN);
        assert_true(isnan(ed_item(ed_maximum(nan, 1))) && isnan(ed_item(ed_maximum(1.0, nan))));
        assert_true(isnan(ed_item(ed_minimum(nan, 1))) && isnan(ed_item(ed_minimum(1.0, nan))));
        assert_true(isnan(ed_item(ed_relu(nan))) && isnan(ed_item(ed_relu6(nan))));
        assert_true(isnan(ed_item(ed_sign(nan))) && isnan(ed_item(ed_hard_sigmoid(nan))));
        assert_true(ed_item(ed_equal(nan, nan)) == 0 && ed_item(ed_not_equal(nan, nan)) == 1);
    }
    isa_set(isa_best());
}

/* ---- Casts ----------------------------------------------------------------------------------- */

static double cast_one(ed_dtype from, double x, ed_dtype to)
{
    ED_SCOPE;
    ed_tensor *t = scope_give(tensor_new(from, 0, NULL));
    dtype_store(from, t->data, 0, x);
    return ed_item(ed_cast(t, to));
}

/* The slopes of silu and the gelus are 0 and 1 where their functions end, also where a factor is
 * infinite and the other 0. */
static void slopes_end(void **state)
{
    (void)state;
    static const char *const names[] = {"silu_gradient", "gelu_gradient", "gelu_tanh_gradient"};
    for (int k = 0; k < 6; k++) {
        ED_SCOPE;
        const ed_dtype dtype = k < 3 ? ED_FLOAT32 : ED_FLOAT64;
        const double ends[] = {-INFINITY, -1e30, 1e30, INFINITY, NAN};
        ed_tensor *x = ed_cast(ed_constant(ends, ED_SHAPE(5)), dtype), *dy = ed_ones_like(x);
        ed_tensor *dx = ed_call_op(ed_op_find(names[k % 3]), (ed_tensor *[]){dy, x}, 2, NULL);
        for (int i = 0; i < 4; i++)
            assert_true(ed_dtype_load(dtype, ed_data(dx), i) == (i < 2 ? 0 : 1));
        assert_true(isnan(ed_dtype_load(dtype, ed_data(dx), 4)));
    }
}

static void casts_stay_within_the_type(void **state)
{
    (void)state;
    for (int isa = 0; isa <= isa_best(); isa++) {
        isa_set(isa);
        static const ed_dtype floats[] = {ED_FLOAT32, ED_FLOAT64};
        for (int f = 0; f < 2; f++) {
            ed_dtype from = floats[f];
            assert_true(cast_one(from, NAN, ED_INT32) == 0 && cast_one(from, NAN, ED_BOOL) == 1);
            assert_true(cast_one(from, 1e10, ED_INT32) == INT32_MAX);
            assert_true(cast_one(from, -1e10, ED_INT32) == INT32_MIN);
            assert_true(cast_one(from, -INFINITY, ED_INT64) == (double)INT64_MIN);
            assert_true(cast_one(from, 1e30, ED_INT64) == (double)INT64_MAX);
            assert_true(cast_one(from, -3, ED_UINT8) == 0 && cast_one(from, 300, ED_UINT8) == 255);
            assert_true(cast_one(from, -1.9, ED_INT32) == -1 && cast_one(from, 1.9, ED_INT64) == 1);
        }
        assert_true(cast_one(ED_INT64, 300, ED_UINT8) == 44);
        assert_true(cast_one(ED_INT64, 4294967297.0, ED_INT32) == 1);
    }
    isa_set(isa_best());
    ED_SCOPE;
    assert_null(ed_cast(ed_scalar(1), (ed_dtype)99));
    ed_clear_error();
}

/*
 * To a 16-bit float rounds once: numbers a hair beside the middle of two neighbours, which float32
 * would take for the middle.
 */
static void casts_round_once(void **state)
{
    (void)state;
    for (int isa = 0; isa <= isa_best(); isa++) {
        isa_set(isa);
        assert_true(cast_one(ED_FLOAT64, 1 + 0x1p-11 + 0x1p-40, ED_FLOAT16) == 1 + 0x1p-10);
        assert_true(cast_one(ED_FLOAT64, 1 + 0x1p-11 - 0x1p-40, ED_FLOAT16) == 1);
        assert_true(cast_one(ED_FLOAT64, 1 + 0x1p-11, ED_FLOAT16) == 1);
        assert_true(cast_one(ED_FLOAT64, -1 - 0x1p-8 - 0x1p-40, ED_BFLOAT16) == -1 - 0x1p-7);
        assert_true(cast_one(ED_INT64, 0x1.01p40 + 1, ED_BFLOAT16) == 0x1.02p40);
        assert_true(cast_one(ED_INT64, 0x1.01p40, ED_BFLOAT16) == 0x1.00p40);
        assert_true(cast_one(ED_INT32, 0x101000 + 1, ED_BFLOAT16) == 0x102000);
        assert_true(cast_one(ED_FLOAT64, 65519.999999, ED_FLOAT16) == 65504);
        assert_true(isinf(cast_one(ED_FLOAT64, 65520, ED_FLOAT16)));
        assert_true(cast_one(ED_FLOAT64, 0x1p-25 + 0x1p-60, ED_FLOAT16) == 0x1p-24);
        assert_true(isnan(cast_one(ED_FLOAT32, NAN, ED_BFLOAT16)));
        assert_true(isnan(cast_one(ED_FLOAT16, NAN, ED_FLOAT64)));
        assert_true(isinf(cast_one(ED_FLOAT64, -1e300, ED_BFLOAT16)));
    }
    isa_set(isa_best());
}

/* All 2^16 numbers of both types and back, through strips, and against the scalar conversion. */
static void halves_survive(void **state)
{
    (void)state;
    for (int isa = 0; isa <= isa_best(); isa++)
        for (ed_dtype dtype = ED_FLOAT16; dtype <= ED_BFLOAT16; dtype++) {
            ED_SCOPE;
            isa_set(isa);
            int64_t size = 65536 - 3;
            ed_tensor *x = scope_give(tensor_new(dtype, 1, &size));
            for (int64_t i = 0; i < size; i++) ((uint16_t *)x->data)[i] = (uint16_t)i;
            ed_tensor *wide = ed_cast(x, ED_FLOAT32), *back = ed_cast(wide, dtype);
            for (int64_t i = 0; i < size; i++) {
                double want = dtype_load(dtype, x->data, i), got = ((float *)wide->data)[i];
                assert_true(want == got || (isnan(want) && isnan(got)));
                assert_true(isnan(want) || ((uint16_t *)back->data)[i] == i);
            }
        }
    isa_set(isa_best());
}

static ed_tensor *some_rows(ed_tensor *x, int64_t first, int64_t n)
{
    return ed_slice(x, .begin = ED_INTS(first), .end = ED_INTS(first + n));
}

/* Results that go past the caches, of flat operands and of a row for all rows, have the bits of the
 * same ones computed by parts that don't, with any number of threads. */
static void large_results_have_the_same_bits(void **state)
{
    (void)state;
    enum { PARTS = 3, ROWS = 2900 };
    static const int64_t widths[] = {1024, 1007};
    const int threads = ed_num_threads();
    for (int isa = 0; isa < ISA_COUNT; isa++)
        for (int w = 0; w < 2 && isa_set(isa); w++) {
            ED_SCOPE;
            const ed_ints all = ED_SHAPE(PARTS * ROWS, widths[w]);
            ed_tensor *x = ed_random_uniform(all, .low = -2, .high = 2);
            ed_tensor *row = ed_random_uniform(ED_SHAPE(widths[w]), .low = -2, .high = 2);
            ed_set_num_threads(1 + isa % 3);
            ed_tensor *y = ed_add(x, row), *z = ed_exp(x);
            for (int i = 0; i < PARTS; i++) {
                ED_SCOPE;
                ed_tensor *part = some_rows(x, i * ROWS, ROWS);
                same_bits(some_rows(y, i * ROWS, ROWS), ed_add(part, row));
                same_bits(some_rows(z, i * ROWS, ROWS), ed_exp(part));
            }
        }
    ed_set_num_threads(threads);
    isa_set(isa_best());
}

/* A cast to the dtype it has is a view. */
static void a_cast_to_itself_copies_nothing(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_constant(((float[]){1, 2}), ED_SHAPE(2));
    assert_ptr_equal(ed_cast(x, ED_FLOAT32)->data, x->data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts_do_not_matter),
        cmocka_unit_test(shapes_broadcast),
        cmocka_unit_test(integers_wrap),
        cmocka_unit_test(whole_division_rounds_down),
        cmocka_unit_test(clips),
        cmocka_unit_test(nan_passes),
        cmocka_unit_test(slopes_end),
        cmocka_unit_test(casts_stay_within_the_type),
        cmocka_unit_test(casts_round_once),
        cmocka_unit_test(halves_survive),
        cmocka_unit_test(large_results_have_the_same_bits),
        cmocka_unit_test(a_cast_to_itself_copies_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
