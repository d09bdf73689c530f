/*
 * Mistakes that C lets pass and Eddy must not: they are errors whose message says what to write.
 * Those that must not even compile are in tests/mistakes.txt.
 */
#include "eddy.h"
#include "tests/asserts.h"
#include <stdlib.h>

static void array_shorter_than_shape(void **state)
{
    (void)state;
    ED_SCOPE;
    const float three[] = {1, 2, 3};
    const double *known = ED_VALUES(double, 1, 2);
    assert_fails(ed_constant(three, ED_SHAPE(2, 2)), ED_INVALID_ARGUMENT,
                 "the array has 3 elements of float32, the shape [2, 2] takes 4");
    assert_fails(ed_constant(ED_VALUES(int, 1, 2), ED_SHAPE(3)), ED_INVALID_ARGUMENT, "takes 3");
    assert_fails(ed_constant(&three[2], ED_SHAPE(2)), ED_INVALID_ARGUMENT, "takes 2");
    assert_fails(ed_constant_within(ED_INT64, three, 12, ED_SHAPE(2)), ED_INVALID_ARGUMENT,
                 "the array has 1 elements of int64");
    assert_non_null(ed_constant(three, ED_SHAPE(3)));
    assert_non_null(ed_constant(three, ED_SHAPE(2))); /* of a longer one, the first */
    assert_non_null(ed_constant(&three[1], ED_SHAPE(2)));
    assert_non_null(ed_constant(three, ED_SHAPE()));
    assert_non_null(ed_constant(known, ED_SHAPE(2)));
    assert_fine();
}

/* Behind a pointer there is as much as the program says. */
static __attribute__((noinline)) ed_tensor *from(const float *values, int64_t n)
{
    return ed_constant(values, ED_SHAPE(n));
}

static void pointers_are_believed(void **state)
{
    (void)state;
    ED_SCOPE;
    enum { N = 100 };
    const volatile size_t n = N;
    float *values = calloc(n, sizeof *values), all[N] = {0};
    assert_non_null(from(values, N));
    assert_non_null(from(all, N));
    assert_non_null(from(all + 10, N - 10));
    assert_non_null(ed_constant(values, ED_SHAPE(N)));
    assert_non_null(ed_constant(values + 1, ED_SHAPE(N - 1)));
    const float *either = n > 50 ? values : all + 50;
    assert_non_null(ed_constant(either, ED_SHAPE(N)));
    free(values);
    assert_fine();
}

static void arrays_of_every_type(void **state)
{
    (void)state;
    ED_SCOPE;
    const struct {
        ed_tensor *made;
        ed_dtype dtype;
    } cases[] = {
        {ed_constant(ED_VALUES(bool, 1), ED_SHAPE(1)), ED_BOOL},
        {ed_constant(ED_VALUES(signed char, -1), ED_SHAPE(1)), ED_INT8},
        {ed_constant(ED_VALUES(int8_t, -1), ED_SHAPE(1)), ED_INT8},
        {ed_constant(ED_VALUES(unsigned char, 1), ED_SHAPE(1)), ED_UINT8},
        {ed_constant(ED_VALUES(int16_t, -1), ED_SHAPE(1)), ED_INT16},
        {ed_constant(ED_VALUES(uint16_t, 1), ED_SHAPE(1)), ED_UINT16},
        {ed_constant(ED_VALUES(int32_t, -1), ED_SHAPE(1)), ED_INT32},
        {ed_constant(ED_VALUES(uint32_t, 1), ED_SHAPE(1)), ED_UINT32},
        {ed_constant(ED_VALUES(int64_t, -1), ED_SHAPE(1)), ED_INT64},
        {ed_constant(ED_VALUES(uint64_t, 1), ED_SHAPE(1)), ED_UINT64},
        {ed_constant(ED_VALUES(long, -1), ED_SHAPE(1)), sizeof(long) == 8 ? ED_INT64 : ED_INT32},
        {ed_constant(ED_VALUES(long long, -1), ED_SHAPE(1)), ED_INT64},
        {ed_constant(ED_VALUES(unsigned long long, 1), ED_SHAPE(1)), ED_UINT64},
        {ed_constant(ED_VALUES(const float, 1), ED_SHAPE(1)), ED_FLOAT32},
        {ed_constant(ED_VALUES(double, 1), ED_SHAPE(1)), ED_FLOAT64},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(ed_dtype_of(cases[i].made), cases[i].dtype);
    assert_fine();
}

static void objects_as_operands(void **state)
{
    (void)state;
    ED_SCOPE;
    void *layer = ed_layer_dense(1), *list = ed_list_of(ed_ones(ED_SHAPE(1))),
         *variable = ed_variable(ed_ones(ED_SHAPE(1))), *tensor = ed_ones(ED_SHAPE(1));
    assert_fails(ed_mul(layer, 2), ED_INVALID_ARGUMENT, "must be a tensor or a number, got layer");
    assert_fails(ed_add(1, list), ED_INVALID_ARGUMENT, "must be a tensor or a number, got list");
    assert_true(ed_item(ed_add(variable, tensor)) == 2);
    assert_fails(ed_mul((void *)NULL, 2), ED_INVALID_ARGUMENT, "NULL");
}

static void numbers_of_every_type(void **state)
{
    (void)state;
    ED_SCOPE;
    enum { TWO = 2 };
    ed_tensor *x = ed_ones(ED_SHAPE(1), .dtype = ED_INT32);
    assert_true(ed_item(ed_mul(x, true)) == 1);
    assert_true(ed_item(ed_mul(x, 'a')) == 'a');
    assert_true(ed_item(ed_mul(x, (signed char)-2)) == -2);
    assert_true(ed_item(ed_mul(x, (unsigned char)2)) == 2);
    assert_true(ed_item(ed_mul(x, (short)-2)) == -2);
    assert_true(ed_item(ed_mul(x, (unsigned short)2)) == 2);
    assert_true(ed_item(ed_mul(x, 2u)) == 2);
    assert_true(ed_item(ed_mul(x, -2l)) == -2);
    assert_true(ed_item(ed_mul(x, (size_t)2)) == 2);
    assert_true(ed_item(ed_mul(x, -2ll)) == -2);
    assert_true(ed_item(ed_mul(x, 2ull)) == 2);
    assert_true(ed_item(ed_mul(x, TWO)) == 2);
    assert_fine();
}

static void number_for_a_list(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_ones(ED_SHAPE(2, 3));
    /* What .axis = 1 comes to; some compilers refuse to write it. */
    const ed_ints one = {(const int64_t *)1, 0}, last = {(const int64_t *)-1, 0};
    assert_fails(ed_reduce_sum(x, .axis = one), ED_INVALID_ARGUMENT,
                 "reduce_sum: axis is a list: write .axis = ED_AXES(1)");
    assert_fails(ed_reduce_max(x, .axis = last), ED_INVALID_ARGUMENT,
                 "reduce_max: axis is a list: write .axis = ED_AXES(-1)");
    assert_fails(ed_reshape(x, one), ED_INVALID_ARGUMENT, "write .shape = ED_INTS(1)");
    assert_non_null(ed_reduce_sum(x, .axis = ED_AXES(1)));
    assert_fine();
}

static void integers_without_a_high(void **state)
{
    (void)state;
    ED_SCOPE;
    assert_fails(ed_random_uniform(ED_SHAPE(3), .dtype = ED_INT32), ED_INVALID_ARGUMENT,
                 "random_uniform: high is required for int32");
    assert_fails(ed_random_uniform(ED_SHAPE(3), .dtype = ED_INT64, .low = -3), ED_INVALID_ARGUMENT,
                 "high is required for int64");
    ed_tensor *x = ed_random_uniform(ED_SHAPE(3), .dtype = ED_INT32, .high = 1);
    assert_true(ed_item(ed_reduce_sum(x)) == 0);
    x = ed_random_uniform(ED_SHAPE(1000), .low = -2);
    assert_true(ed_item(ed_reduce_min(x)) < -1 && ed_item(ed_reduce_max(x)) > 0);
    assert_true(ed_item(ed_reduce_max(x)) < 1);
    assert_fine();
}

#define TEST(name) cmocka_unit_test_teardown(name, check_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(array_shorter_than_shape), TEST(pointers_are_believed), TEST(arrays_of_every_type),
        TEST(objects_as_operands),      TEST(numbers_of_every_type), TEST(number_for_a_list),
        TEST(integers_without_a_high),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
