/* Elementwise and cumulative ops beyond what their definitions say: values of other libraries,
 * borders, messages. */
#include "autodiff/autodiff.h"
#include "ops/ops.h"
#include "tests/asserts.h"
#include <float.h>
#include <math.h>

/* The tensor has these elements, NaN among them, up to a part in 1e6. */
static void are(ed_tensor *y, int64_t n, const double *wanted)
{
    assert_fine();
    const double *values = ed_as_doubles(y);
    assert_non_null(values);
    assert_int_equal(ed_size(y), n);
    for (int64_t i = 0; i < n; i++) {
        const double v = values[i], w = wanted[i];
        if (isnan(w) ? isnan(v) : v == w || fabs(v - w) <= 1e-6 * fabs(w)) continue;
        fail_msg("element %d is %.9g, not %.9g", (int)i, v, w);
    }
}
#define ARE(y, ...)                                                                                \
    are(y, sizeof((double[]){__VA_ARGS__}) / sizeof(double), (const double[]){__VA_ARGS__})
#define FLOATS(...)                                                                                \
    ed_constant_of(ED_FLOAT32, (const float[]){__VA_ARGS__},                                       \
                   ED_SHAPE(sizeof((float[]){__VA_ARGS__}) / sizeof(float)))
#define DOUBLES(...)                                                                               \
    ed_constant_of(ED_FLOAT64, (const double[]){__VA_ARGS__},                                      \
                   ED_SHAPE(sizeof((double[]){__VA_ARGS__}) / sizeof(double)))
#define INTS(...)                                                                                  \
    ed_constant_of(ED_INT32, (const int32_t[]){__VA_ARGS__},                                       \
                   ED_SHAPE(sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t)))

static void integers(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *a = INTS(7, -7, INT32_MIN), *b = INTS(2, 2, -1);
    ARE(ed_truncatediv(a, b), 3, -3, INT32_MIN);
    ARE(ed_truncatemod(a, b), 1, -1, 0);
    assert_int_equal(ed_dtype_of(ed_truediv(a, b)), ED_FLOAT64);
    assert_int_equal(ed_dtype_of(ed_truediv(ed_cast(a, ED_INT16), ed_cast(b, ED_INT16))),
                     ED_FLOAT32);
    ARE(ed_truediv(INTS(1), INTS(0)), INFINITY);
    ARE(ed_pow(INTS(3, -2, 10), INTS(4, 3, 10)), 81, -8, 1410065408);
    assert_fails(ed_pow(a, b), ED_INVALID_ARGUMENT,
                 "pow: exponents of integers must be >= 0: element 2 of b");
    assert_fails(ed_truncatediv(a, INTS(1, 0, 1)), ED_INVALID_ARGUMENT, "division by 0: element 1");
    assert_fails(ed_truncatemod(a, 0), ED_INVALID_ARGUMENT, "division by 0");
}

/* As TensorFlow: shifts are held within the type, to the right the sign comes in. */
static void bits(void **state)
{
    (void)state;
    ED_SCOPE;
    ARE(ed_left_shift(INTS(1, 1, 3, 5), INTS(4, 40, 31, -2)), 16, INT32_MIN, INT32_MIN, 5);
    ARE(ed_right_shift(INTS(-8, -8, INT32_MAX), INTS(1, 99, 30)), -4, -1, 1);
    ARE(ed_population_count(INTS(-1, 0, 255)), 32, 0, 8);
    ARE(ed_population_count(ed_cast(INTS(-1), ED_INT8)), 8);
    ARE(ed_invert(ed_cast(INTS(1), ED_UINT8)), 254);
    ARE(ed_bitcast(FLOATS(1, -0.0f), ED_INT32), 0x3f800000, INT32_MIN);
    ARE(ed_bitcast(INTS(0x01020304), ED_UINT8), 4, 3, 2, 1);
    assert_fails(ed_bitcast(FLOATS(1, 2, 3), ED_FLOAT64), ED_INVALID_ARGUMENT,
                 "bitcast: x is float32[3]; for float64 its last dimension must be 2");
    assert_fails(ed_bitcast(FLOATS(1), ED_BOOL), ED_INVALID_ARGUMENT, "bool");
    assert_fails(ed_bitwise_and(FLOATS(1), FLOATS(1)), ED_INVALID_ARGUMENT, "bitwise_and");
}

static void borders(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = FLOATS(NAN, INFINITY, -INFINITY, 1);
    ARE(ed_nan_to_num(x), 0, FLT_MAX, -FLT_MAX, 1);
    ARE(ed_nan_to_num(x, .nan = 7, .posinf = INFINITY, .neginf = -2), 7, INFINITY, -2, 1);
    ARE(ed_is_close(FLOATS(1, INFINITY, NAN, 1), FLOATS(1.000001f, INFINITY, NAN, INFINITY)), 1, 1,
        0, 0);
    ARE(ed_is_close(FLOATS(NAN), FLOATS(NAN), .equal_nan = true), 1);
    ARE(ed_div_no_nan(FLOATS(1, NAN), 0), 0, 0);
    ARE(ed_mul_no_nan(FLOATS(INFINITY, NAN), 0), 0, 0);
    ARE(ed_xlogy(0, FLOATS(0, NAN)), 0, 0);
    ARE(ed_hypot(FLOATS(3e38f, 3), FLOATS(0, 4)), 3e38f, 5);
    ARE(ed_logaddexp(FLOATS(-INFINITY, 1000), FLOATS(-INFINITY, 1000)), -INFINITY, 1000.693147);
    ARE(ed_sinc(FLOATS(0, 0.5f, 1)), 1, 0.636619772, 0);
    ARE(ed_nextafter(FLOATS(1), FLOATS(2)), 1.00000012);
}

static void lists(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = FLOATS(1, 2), *one = ed_scalar(1.0), *two = ed_scalar(2.0);
    ARE(ed_add_n(ed_list_make((ed_tensor *[]){x, x, x}, 3)), 3, 6);
    ARE(ed_polyval(ed_list_make((ed_tensor *[]){two, one, one}, 3), x), 4, 11);
    ARE(ed_polyval(ed_list_make(NULL, 0), x), 0, 0);
    assert_fails(ed_add_n(ed_list_make((ed_tensor *[]){x, FLOATS(1)}, 2)), ED_INVALID_ARGUMENT,
                 "add_n: shapes differ: operand 0 is float32[2], operand 1 is float32[1]");
    assert_fails(ed_add_n(NULL), ED_INVALID_ARGUMENT, "list");
}

static void cumulative(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = FLOATS(0, 2, 3);
    ARE(ed_cumsum(x, .exclusive = true, .reverse = true), 5, 3, 0);
    ARE(ed_cumprod(x, .exclusive = true), 1, 0, 0);
    ARE(ed_cumulative_logsumexp(x, .exclusive = true), -INFINITY, 0, 2.12692801);
    ARE(ed_cummax(FLOATS(1, NAN, 3)), 1, NAN, NAN);
    ARE(ed_cummin(INTS(3, 1, 2), .reverse = true), 1, 1, 2);
    /* What overflows stays infinite, as in a plain loop. */
    ed_tensor *most = ed_mul(ed_cast(FLOATS(1, 1, -1, -1), ED_FLOAT64), DBL_MAX);
    ARE(ed_cumsum(most), DBL_MAX, INFINITY, INFINITY, INFINITY);
    /* A million float32 of 0.1, which a sum in float32 misses by a percent. */
    ed_tensor *sum = ed_cumsum(ed_full(ED_SHAPE(1000000), 0.1f));
    ARE(ed_index(sum, -1), 1e6 * (double)0.1f);
    assert_fails(ed_cumsum(x, .axis = 1), ED_INVALID_ARGUMENT, "cumsum");
}

static void activations(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = FLOATS(-2, 0, 0.5f, 1, 3, 7);
    ARE(ed_bounded_relu(x, .negative_slope = 0.1, .max_value = 6, .threshold = 1), -0.3, -0.1,
        -0.05, 0, 3, 6);
    ARE(ed_sparsemax(FLOATS(1, 2, 1.5f)), 0, 0.75, 0.25);
    ARE(ed_sparsemax(FLOATS(1, NAN)), NAN, NAN);
    /* the smallest number there is, not 0: a slope whose factor is beyond 2^11 */
    ed_tensor *far = DOUBLES(-21.588665899999999);
    ed_tape *tape = ed_tape_begin();
    ed_watch(tape, far);
    ARE(ed_gradient(tape, ed_gelu_tanh(far), far), -DBL_TRUE_MIN);
    assert_fails(ed_glu(FLOATS(1, 2, 3)), ED_INVALID_ARGUMENT,
                 "glu: x is float32[3]; axis 0 must have an even size");
    assert_fails(ed_celu(x, .alpha = 0), ED_INVALID_ARGUMENT, "alpha");
}

/* Values of TensorFlow. */
static void special(void **state)
{
    (void)state;
    ED_SCOPE;
    ARE(ed_erfcinv(FLOATS(0, 2, 1, 0.5f)), INFINITY, -INFINITY, 0, 0.47693628);
    ARE(ed_ndtri(FLOATS(0, 1, 0.5f, -1)), -INFINITY, INFINITY, 0, NAN);
    ARE(ed_lgamma(FLOATS(0, -1, -0.5f)), INFINITY, INFINITY, 1.26551212);
    ARE(ed_digamma(FLOATS(0, -1, -0.5f)), NAN, NAN, 0.03648997);
    ARE(ed_polygamma(FLOATS(1, 1, 2, 1.5f), FLOATS(0, -0.5f, -0.5f, 2)), INFINITY, 8.9348022,
        -0.82879664, NAN);
    ARE(ed_zeta(FLOATS(1, 2, 2, 3, 2.5f), FLOATS(2, 0, -0.5f, -0.5f, -0.5f)), INFINITY, INFINITY,
        8.9348022, 0.41439832, NAN);
    ARE(ed_igamma(FLOATS(0, 1, 0, INFINITY, 2), FLOATS(1, 0, 0, 2, INFINITY)), 1, 0, NAN, 0, 1);
    ARE(ed_bessel_i1(FLOATS(-1, 0, 1)), -0.5651591, 0, 0.5651591);
    ARE(ed_bessel_i1e(FLOATS(800)), 0.01409813);
}

/* The derivatives of igamma by a are those of TensorFlow, and igammac's their negatives. */
static void igamma_by_a(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *a = DOUBLES(0.5, 1, 3.5, 10, 50, 0.01, 200, 0.5, 3, 0, 2, 2, INFINITY, -1);
    ed_tensor *x = DOUBLES(0.5, 2, 3, 12, 40, 0.3, 210, 8, 0.01, 1, 0, INFINITY, 1, 1);
    for (int upper = 0; upper < 2; upper++) {
        ed_tape *tape = ed_tape_begin();
        ed_watch(tape, a);
        ed_tensor *y = upper ? ed_igammac(a, x) : ed_igamma(a, x);
        ed_tensor *da = ed_gradient(tape, y, a);
        if (upper) da = ed_neg(da);
        ARE(da, -0.64720035237775386, -0.22082542621185938, -0.22648730679796128,
            -0.097177972037179469, -0.019821892882228898, -0.90874580226854718,
            -0.021619881014597615, -0.00026288467630466457, -9.6968742676774889e-07, NAN, 0, 0, 0,
            NAN);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers), cmocka_unit_test(bits),        cmocka_unit_test(borders),
        cmocka_unit_test(lists),    cmocka_unit_test(cumulative),  cmocka_unit_test(activations),
        cmocka_unit_test(special),  cmocka_unit_test(igamma_by_a),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
