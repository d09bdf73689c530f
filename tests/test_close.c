/* Comparing tensors for tests of users' own: ed_all_close, ed_golden_check. */
#include "eddy.h"
#include "tests/asserts.h"
#include "tests/folders.h"
#include <math.h>
#include <stdlib.h>

static ed_tensor *floats(int64_t count, const float *values)
{
    return ed_constant_of(ED_FLOAT32, values, ED_SHAPE(count));
}

static void close_ones(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_close_report r;
    ed_tensor *a = floats(3, (float[]){1, NAN, INFINITY});
    assert_true(ed_all_close(a, a, 0, 0, &r));
    assert_int_equal(r.size, 3);
    assert_int_equal(r.different, 0);
    assert_int_equal(r.worst, -1);
    assert_string_equal(r.text, "");
    assert_true(ed_all_close(floats(2, (float[]){1, 100}), floats(2, (float[]){1.01f, 101}), .011,
                             0, NULL));
    ed_tensor *large = ed_full(ED_SHAPE(1), 1e308, .dtype = ED_FLOAT64), *least = ed_neg(large);
    assert_true(ed_all_close(large, least, 0, INFINITY, NULL));
    assert_true(ed_all_close(large, least, INFINITY, 0, NULL));
    assert_false(ed_all_close(large, least, 1, 0, NULL));
    assert_true(ed_all_close(ed_ones(ED_SHAPE(0, 3)), ed_ones(ED_SHAPE(0, 3)), 0, 0, &r));
    assert_true(
        ed_all_close(ed_ones(ED_SHAPE(2), .dtype = ED_INT32), ed_ones(ED_SHAPE(2)), 0, 0, &r));
    assert_true(ed_all_close(ed_variable(3.0), ed_scalar(3.0), 0, 0, &r));
    assert_fine();
}

static void different_ones(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_close_report r;
    ed_tensor *a = ed_reshape(floats(6, (float[]){1, 2, 3, 4, 5, 6}), ED_SHAPE(2, 3));
    ed_tensor *b = ed_reshape(floats(6, (float[]){1, 2, 3, 4.5f, 5.25f, 6}), ED_SHAPE(2, 3));
    assert_false(ed_all_close(a, b, 0, .1, &r));
    assert_int_equal(r.different, 2);
    assert_int_equal(r.worst, 3);
    assert_true(r.a == 4 && r.b == 4.5 && r.max_absolute == .5);
    assert_true(fabs(r.max_relative - .5 / 4.5) < 1e-15);
    assert_string_equal(r.text, "2 of 6 elements differ by more than 0.1 + 0 |b|; the worst, at "
                                "[1, 0]: 4 and 4.5, which differ by 0.5, relative 0.111");
    /* Views are compared element by element. */
    assert_false(ed_all_close(ed_transpose(a), ed_transpose(b), 0, .3, &r));
    assert_int_equal(r.different, 1);
    assert_int_equal(r.worst, 1);
    assert_false(ed_all_close(a, ed_transpose(a), 1, 1, &r));
    assert_string_equal(r.text, "the shapes differ: [2, 3] and [3, 2]");
    assert_fine();
}

/* What is infinite or NaN on one side is beyond any tolerance, and neighbours among large integers
 * are two. */
static void exact(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_close_report r;
    const float odd[] = {NAN, INFINITY, -INFINITY, INFINITY, 0};
    const float other[] = {1, 1, INFINITY, NAN, -0.f};
    assert_false(ed_all_close(floats(5, odd), floats(5, other), 1e30, 1e30, &r));
    assert_int_equal(r.different, 4);
    assert_false(ed_all_close(floats(5, other), floats(5, odd), 1e30, 1e30, &r));
    assert_int_equal(r.different, 4);
    const int64_t large[] = {INT64_MAX, INT64_MIN, -1}, next[] = {INT64_MAX - 1, INT64_MIN, 1};
    ed_tensor *x = ed_constant_of(ED_INT64, large, ED_SHAPE(3));
    ed_tensor *y = ed_constant_of(ED_INT64, next, ED_SHAPE(3));
    assert_false(ed_all_close(x, y, 0, 0, &r));
    assert_int_equal(r.different, 2);
    assert_int_equal(r.worst, 2);
    assert_true(r.max_absolute == 2);
    assert_true(ed_all_close(x, y, 0, 2, &r));
}

static void refused(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_close_report r;
    ed_tensor *x = ed_ones(ED_SHAPE(2));
    assert_false(ed_all_close(x, NULL, 0, 0, &r));
    failed_with(ED_INVALID_ARGUMENT, "all_close: b is NULL");
    assert_false(ed_all_close(x, x, -1, 0, &r));
    failed_with(ED_INVALID_ARGUMENT, "all_close: rtol must be >= 0, got -1");
    assert_false(ed_all_close(x, x, 0, NAN, &r));
    failed_with(ED_INVALID_ARGUMENT, "all_close: atol must be >= 0");
}

static void golden(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_close_report r;
    const char *path = in_folder("golden.npy");
    ed_tensor *x = floats(3, (float[]){1, 2, 3});
    unsetenv("EDDY_GOLDEN");
    assert_false(ed_golden_check(path, x, 0, 0, &r));
    failed_with(ED_NOT_FOUND, "EDDY_GOLDEN=write");
    setenv("EDDY_GOLDEN", "write", 1);
    assert_true(ed_golden_check(path, x, 0, 0, &r));
    unsetenv("EDDY_GOLDEN");
    assert_true(ed_golden_check(path, x, 0, 0, &r));
    assert_true(ed_golden_check(path, ed_add(x, 1e-6), 0, 1e-5, &r));
    assert_false(ed_golden_check(path, ed_add(x, 1), 0, 1e-5, &r));
    assert_int_equal(r.different, 3);
    assert_fine();
    assert_false(ed_golden_check(path, NULL, 0, 0, NULL));
    failed_with(ED_INVALID_ARGUMENT, "golden_check: x is NULL");
    /* what can't be reached is not to be written */
    char inside[300];
    snprintf(inside, sizeof inside, "%s/x.npy", path);
    assert_false(ed_golden_check(inside, x, 0, 0, NULL));
    assert_null(strstr(ed_error(), "EDDY_GOLDEN"));
    failed_with(ED_NOT_FOUND, "x.npy: file not found");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(close_ones), cmocka_unit_test(different_ones), cmocka_unit_test(exact),
        cmocka_unit_test(refused),    cmocka_unit_test(golden),
    };
    return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
