/*
 * Texts of tensors, against what NumPy 2.4 prints (recorded here).
 */
#include "tests/asserts.h"
#include "eddy.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void expect(const ed_tensor *t, const char *expected)
{
    const char *s = ed_to_string(t);
    assert_non_null(s);
    assert_string_equal(s, expected);
}

/* One recorded case: dtype, elements, shape, text. */
#define CASE(dtype, type, shape, text, ...)                                                        \
    expect(ed_constant_of(dtype, (const type[]){__VA_ARGS__}, shape), text)

static void floats(void **state)
{
    (void)state;
    ED_SCOPE;
    CASE(ED_FLOAT64, double, ED_SHAPE(4), /* thirds */
         "[ 0.33333333  0.66666667  1.         -0.33333333]\n"
         "tensor float64 [4]",
         0.3333333333333333, 0.6666666666666666, 1.0, -0.3333333333333333);
    CASE(ED_FLOAT32, float, ED_SHAPE(4), /* thirds in float32 */
         "[ 0.33333334  0.6666667   1.         -0.33333334]\n"
         "tensor float32 [4]",
         3.3333334e-01f, 6.666667e-01f, 1.0e+00f, -3.3333334e-01f);
    CASE(ED_FLOAT64, double, ED_SHAPE(3), /* large ratio */
         "[1.000e-03 1.000e+00 1.001e+03]\n"
         "tensor float64 [3]",
         0.001, 1.0, 1001.0);
    CASE(ED_FLOAT64, double, ED_SHAPE(2), /* ratio of a thousand */
         "[0.001 1.   ]\n"
         "tensor float64 [2]",
         0.001, 1.0);
    CASE(ED_FLOAT64, double, ED_SHAPE(2), /* large */
         "[1.e+08 1.e+00]\n"
         "tensor float64 [2]",
         100000000.0, 1.0);
    CASE(ED_FLOAT32, float, ED_SHAPE(2), /* large in float32 */
         "[1.e+06 1.e+05]\n"
         "tensor float32 [2]",
         1.0e+06f, 1.0e+05f);
    CASE(ED_FLOAT32, float, ED_SHAPE(2), /* small */
         "[1.e-05 2.e-05]\n"
         "tensor float32 [2]",
         1.0e-05f, 2.0e-05f);
    CASE(ED_FLOAT64, double, ED_SHAPE(2), /* least that is fixed */
         "[0.0001 0.0002]\n"
         "tensor float64 [2]",
         0.0001, 0.0002);
    CASE(ED_FLOAT32, float, ED_SHAPE(3), /* exact digits where others need them */
         "[4.7793879e-36 1.2345678e-30 0.0000000e+00]\n"
         "tensor float32 [3]",
         4.779388e-36f, 1.2345678e-30f, 0);
    CASE(ED_FLOAT64, double, ED_SHAPE(3), /* three digits of exponent */
         "[ 1.e-300  1.e+300 -1.e+000]\n"
         "tensor float64 [3]",
         1e-300, 1e+300, -1.0);
    CASE(ED_FLOAT32, float, ED_SHAPE(3), /* not finite */
         "[nan 1.5 inf]\n"
         "tensor float32 [3]",
         NAN, 1.5e+00f, INFINITY);
    CASE(ED_FLOAT32, float, ED_SHAPE(4), /* not finite, negative */
         "[-inf  1.5  nan -2. ]\n"
         "tensor float32 [4]",
         -INFINITY, 1.5e+00f, NAN, -2.0e+00f);
    CASE(ED_FLOAT64, double, ED_SHAPE(2), /* nothing finite */
         "[nan inf]\n"
         "tensor float64 [2]",
         NAN, INFINITY);
    CASE(ED_FLOAT64, double, ED_SHAPE(3), /* negative zero */
         "[-0.  0.  1.]\n"
         "tensor float64 [3]",
         -0.0, 0, 1.0);
    CASE(ED_FLOAT64, double, ED_SHAPE(3), /* cut at eight places */
         "[ 0.12345679 10.5         2.        ]\n"
         "tensor float64 [3]",
         0.123456789123, 10.5, 1.999999999);
    CASE(ED_FLOAT64, double, ED_SHAPE(2), /* tie */
         "[0.00195312 1.        ]\n"
         "tensor float64 [2]",
         0.001953125, 1.0);
    CASE(ED_FLOAT64, double, ED_SHAPE(3), /* power of two */
         "[5.68434189e-014 5.96046448e-008 4.94065646e-324]\n"
         "tensor float64 [3]",
         5.684341886080802e-14, 5.960464477539063e-08, 5e-324);
    CASE(ED_FLOAT32, float, ED_SHAPE(2), /* subnormal */
         "[1.4012985e-45 1.1754944e-38]\n"
         "tensor float32 [2]",
         1.0e-45f, 1.1754944e-38f);
    CASE(ED_FLOAT16, uint16_t, ED_SHAPE(4), /* half */
         "[9.9976e-02 1.5000e+00 1.0005e+03 6.5504e+04]\n"
         "tensor float16 [4]",
         0x2e66, 0x3e00, 0x63d1, 0x7bff);
}

static void others(void **state)
{
    (void)state;
    ED_SCOPE;
    CASE(ED_INT32, int32_t, ED_SHAPE(2, 3), /* ints */
         "[[  1 -20 300]\n"
         " [  4   5   6]]\n"
         "tensor int32 [2, 3]",
         1, -20, 300, 4, 5, 6);
    CASE(ED_INT64, int64_t, ED_SHAPE(3), /* long ints */
         "[-9223372036854775808  9223372036854775807                    0]\n"
         "tensor int64 [3]",
         INT64_MIN, INT64_C(9223372036854775807), INT64_C(0));
    CASE(ED_UINT8, uint8_t, ED_SHAPE(3), /* bytes */
         "[  0   7 255]\n"
         "tensor uint8 [3]",
         0, 7, 255);
    CASE(ED_INT8, int8_t, ED_SHAPE(3), /* signed bytes */
         "[-128    0  127]\n"
         "tensor int8 [3]",
         INT8_MIN, 0, INT8_MAX);
    CASE(ED_INT16, int16_t, ED_SHAPE(3), /* short ints */
         "[-32768     -1  32767]\n"
         "tensor int16 [3]",
         INT16_MIN, -1, INT16_MAX);
    CASE(ED_UINT16, uint16_t, ED_SHAPE(2), /* without sign */
         "[    1 65535]\n"
         "tensor uint16 [2]",
         1, UINT16_MAX);
    CASE(ED_UINT32, uint32_t, ED_SHAPE(2), "[         0 4294967295]\ntensor uint32 [2]", 0,
         UINT32_MAX);
    CASE(ED_UINT64, uint64_t, ED_SHAPE(3),
         "[                   0  9223372036854775809 18446744073709551615]\n"
         "tensor uint64 [3]",
         0, (UINT64_C(1) << 63) + 1, UINT64_MAX);
    CASE(ED_UINT64, uint64_t, ED_SHAPE(), "18446744073709551615\ntensor uint64 []", UINT64_MAX);
    CASE(ED_BOOL, bool, ED_SHAPE(2, 2), /* bools */
         "[[ True False]\n"
         " [ True  True]]\n"
         "tensor bool [2, 2]",
         true, false, true, true);
}

static void scalars(void **state)
{
    (void)state;
    ED_SCOPE;
    CASE(ED_FLOAT32, float, ED_SHAPE(), /* 0-d float32 */
         "0.1\n"
         "tensor float32 []",
         1.0e-01f);
    CASE(ED_FLOAT32, float, ED_SHAPE(), /* 0-d whole */
         "2.0\n"
         "tensor float32 []",
         2.0e+00f);
    CASE(ED_FLOAT32, float, ED_SHAPE(), /* 0-d large */
         "1e+06\n"
         "tensor float32 []",
         1.0e+06f);
    CASE(ED_FLOAT64, double, ED_SHAPE(), /* 0-d small */
         "1e-05\n"
         "tensor float64 []",
         1e-05);
    CASE(ED_FLOAT64, double, ED_SHAPE(), /* 0-d third */
         "0.3333333333333333\n"
         "tensor float64 []",
         0.3333333333333333);
    CASE(ED_FLOAT64, double, ED_SHAPE(), /* 0-d 1e15 */
         "1000000000000000.0\n"
         "tensor float64 []",
         1000000000000000.0);
    CASE(ED_FLOAT64, double, ED_SHAPE(), /* 0-d 1e16 */
         "1e+16\n"
         "tensor float64 []",
         1e+16);
    CASE(ED_FLOAT64, double, ED_SHAPE(), /* 0-d nan */
         "nan\n"
         "tensor float64 []",
         NAN);
    CASE(ED_FLOAT32, float, ED_SHAPE(), /* 0-d -inf */
         "-inf\n"
         "tensor float32 []",
         -INFINITY);
    CASE(ED_INT32, int32_t, ED_SHAPE(), /* 0-d int */
         "-7\n"
         "tensor int32 []",
         -7);
    CASE(ED_BOOL, bool, ED_SHAPE(), /* 0-d bool */
         "True\n"
         "tensor bool []",
         true);
    CASE(ED_FLOAT16, uint16_t, ED_SHAPE(), /* 0-d half */
         "0.1\n"
         "tensor float16 []",
         0x2e66);
}

static void shapes(void **state)
{
    (void)state;
    ED_SCOPE;
    CASE(ED_FLOAT32, float, ED_SHAPE(2, 3), /* short */
         "[[1. 2. 3.]\n"
         " [4. 5. 6.]]\n"
         "tensor float32 [2, 3]",
         1.0e+00f, 2.0e+00f, 3.0e+00f, 4.0e+00f, 5.0e+00f, 6.0e+00f);
    CASE(ED_FLOAT32, float, ED_SHAPE(2, 2), /* mixed places */
         "[[  1.5    -2.25 ]\n"
         " [100.125   0.   ]]\n"
         "tensor float32 [2, 2]",
         1.5e+00f, -2.25e+00f, 1.00125e+02f, 0);
    CASE(ED_FLOAT16, uint16_t, ED_SHAPE(2, 2), /* half, short */
         "[[ 0.5  1. ]\n"
         " [ 2.  -3. ]]\n"
         "tensor float16 [2, 2]",
         0x3800, 0x3c00, 0x4000, 0xc200);
    CASE(ED_INT32, int32_t, ED_SHAPE(2, 3, 2), /* three axes */
         "[[[ 0  1]\n"
         "  [ 2  3]\n"
         "  [ 4  5]]\n"
         "\n"
         " [[ 6  7]\n"
         "  [ 8  9]\n"
         "  [10 11]]]\n"
         "tensor int32 [2, 3, 2]",
         0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
    CASE(ED_FLOAT32, float, ED_SHAPE(2, 1, 2, 2), /* four axes */
         "[[[[0. 1.]\n"
         "   [2. 3.]]]\n"
         "\n"
         "\n"
         " [[[4. 5.]\n"
         "   [6. 7.]]]]\n"
         "tensor float32 [2, 1, 2, 2]",
         0, 1.0e+00f, 2.0e+00f, 3.0e+00f, 4.0e+00f, 5.0e+00f, 6.0e+00f, 7.0e+00f);
    CASE(ED_FLOAT64, double, ED_SHAPE(1, 1, 1), /* one element */
         "[[[3.25]]]\n"
         "tensor float64 [1, 1, 1]",
         3.25);
    CASE(ED_FLOAT32, float, ED_SHAPE(20), /* broken line */
         "[ 0.    1.25  2.5   3.75  5.    6.25  7.5   8.75 10.   11.25 12.5  13.75\n"
         " 15.   16.25 17.5  18.75 20.   21.25 22.5  23.75]\n"
         "tensor float32 [20]",
         0, 1.25e+00f, 2.5e+00f, 3.75e+00f, 5.0e+00f, 6.25e+00f, 7.5e+00f, 8.75e+00f, 1.0e+01f,
         1.125e+01f, 1.25e+01f, 1.375e+01f, 1.5e+01f, 1.625e+01f, 1.75e+01f, 1.875e+01f, 2.0e+01f,
         2.125e+01f, 2.25e+01f, 2.375e+01f);
    CASE(ED_FLOAT64, double, ED_SHAPE(2, 12), /* broken lines of a matrix */
         "[[1.2500000e-01 1.0001250e+03 2.0001250e+03 3.0001250e+03 4.0001250e+03\n"
         "  5.0001250e+03 6.0001250e+03 7.0001250e+03 8.0001250e+03 9.0001250e+03\n"
         "  1.0000125e+04 1.1000125e+04]\n"
         " [1.2000125e+04 1.3000125e+04 1.4000125e+04 1.5000125e+04 1.6000125e+04\n"
         "  1.7000125e+04 1.8000125e+04 1.9000125e+04 2.0000125e+04 2.1000125e+04\n"
         "  2.2000125e+04 2.3000125e+04]]\n"
         "tensor float64 [2, 12]",
         0.125, 1000.125, 2000.125, 3000.125, 4000.125, 5000.125, 6000.125, 7000.125, 8000.125,
         9000.125, 10000.125, 11000.125, 12000.125, 13000.125, 14000.125, 15000.125, 16000.125,
         17000.125, 18000.125, 19000.125, 20000.125, 21000.125, 22000.125, 23000.125);
    CASE(ED_FLOAT64, double, ED_SHAPE(24), /* broken, spaces behind */
         "[1.    2.    3.125 4.    1.    2.    3.125 4.    1.    2.    3.125 4.\n"
         " 1.    2.    3.125 4.    1.    2.    3.125 4.    1.    2.    3.125 4.   ]\n"
         "tensor float64 [24]",
         1.0, 2.0, 3.125, 4.0, 1.0, 2.0, 3.125, 4.0, 1.0, 2.0, 3.125, 4.0, 1.0, 2.0, 3.125, 4.0,
         1.0, 2.0, 3.125, 4.0, 1.0, 2.0, 3.125, 4.0);
}

static void summaries(void **state)
{
    (void)state;
    ED_SCOPE;
    expect(ed_reshape(ed_range(0, 1001, .dtype = ED_INT32), ED_SHAPE(1001)),
           "[   0    1    2 ...  998  999 1000]\n"
           "tensor int32 [1001]");
    expect(ed_reshape(ed_range(0, 1001, .dtype = ED_FLOAT32), ED_SHAPE(1001)),
           "[   0.    1.    2. ...  998.  999. 1000.]\n"
           "tensor float32 [1001]");
    expect(ed_reshape(ed_range(0, 1600, .dtype = ED_FLOAT32), ED_SHAPE(40, 40)),
           "[[0.000e+00 1.000e+00 2.000e+00 ... 3.700e+01 3.800e+01 3.900e+01]\n"
           " [4.000e+01 4.100e+01 4.200e+01 ... 7.700e+01 7.800e+01 7.900e+01]\n"
           " [8.000e+01 8.100e+01 8.200e+01 ... 1.170e+02 1.180e+02 1.190e+02]\n"
           " ...\n"
           " [1.480e+03 1.481e+03 1.482e+03 ... 1.517e+03 1.518e+03 1.519e+03]\n"
           " [1.520e+03 1.521e+03 1.522e+03 ... 1.557e+03 1.558e+03 1.559e+03]\n"
           " [1.560e+03 1.561e+03 1.562e+03 ... 1.597e+03 1.598e+03 1.599e+03]]\n"
           "tensor float32 [40, 40]");
    expect(ed_reshape(ed_range(0, 2002, .dtype = ED_INT64), ED_SHAPE(2, 1001)),
           "[[   0    1    2 ...  998  999 1000]\n"
           " [1001 1002 1003 ... 1999 2000 2001]]\n"
           "tensor int64 [2, 1001]");
    expect(ed_reshape(ed_range(0, 3006, .dtype = ED_INT32), ED_SHAPE(501, 6)),
           "[[   0    1    2    3    4    5]\n"
           " [   6    7    8    9   10   11]\n"
           " [  12   13   14   15   16   17]\n"
           " ...\n"
           " [2988 2989 2990 2991 2992 2993]\n"
           " [2994 2995 2996 2997 2998 2999]\n"
           " [3000 3001 3002 3003 3004 3005]]\n"
           "tensor int32 [501, 6]");
    expect(ed_reshape(ed_range(0, 1400, .dtype = ED_INT32), ED_SHAPE(10, 7, 20)),
           "[[[   0    1    2 ...   17   18   19]\n"
           "  [  20   21   22 ...   37   38   39]\n"
           "  [  40   41   42 ...   57   58   59]\n"
           "  ...\n"
           "  [  80   81   82 ...   97   98   99]\n"
           "  [ 100  101  102 ...  117  118  119]\n"
           "  [ 120  121  122 ...  137  138  139]]\n"
           "\n"
           " [[ 140  141  142 ...  157  158  159]\n"
           "  [ 160  161  162 ...  177  178  179]\n"
           "  [ 180  181  182 ...  197  198  199]\n"
           "  ...\n"
           "  [ 220  221  222 ...  237  238  239]\n"
           "  [ 240  241  242 ...  257  258  259]\n"
           "  [ 260  261  262 ...  277  278  279]]\n"
           "\n"
           " [[ 280  281  282 ...  297  298  299]\n"
           "  [ 300  301  302 ...  317  318  319]\n"
           "  [ 320  321  322 ...  337  338  339]\n"
           "  ...\n"
           "  [ 360  361  362 ...  377  378  379]\n"
           "  [ 380  381  382 ...  397  398  399]\n"
           "  [ 400  401  402 ...  417  418  419]]\n"
           "\n"
           " ...\n"
           "\n"
           " [[ 980  981  982 ...  997  998  999]\n"
           "  [1000 1001 1002 ... 1017 1018 1019]\n"
           "  [1020 1021 1022 ... 1037 1038 1039]\n"
           "  ...\n"
           "  [1060 1061 1062 ... 1077 1078 1079]\n"
           "  [1080 1081 1082 ... 1097 1098 1099]\n"
           "  [1100 1101 1102 ... 1117 1118 1119]]\n"
           "\n"
           " [[1120 1121 1122 ... 1137 1138 1139]\n"
           "  [1140 1141 1142 ... 1157 1158 1159]\n"
           "  [1160 1161 1162 ... 1177 1178 1179]\n"
           "  ...\n"
           "  [1200 1201 1202 ... 1217 1218 1219]\n"
           "  [1220 1221 1222 ... 1237 1238 1239]\n"
           "  [1240 1241 1242 ... 1257 1258 1259]]\n"
           "\n"
           " [[1260 1261 1262 ... 1277 1278 1279]\n"
           "  [1280 1281 1282 ... 1297 1298 1299]\n"
           "  [1300 1301 1302 ... 1317 1318 1319]\n"
           "  ...\n"
           "  [1340 1341 1342 ... 1357 1358 1359]\n"
           "  [1360 1361 1362 ... 1377 1378 1379]\n"
           "  [1380 1381 1382 ... 1397 1398 1399]]]\n"
           "tensor int32 [10, 7, 20]");
    expect(ed_reshape(ed_range(0, 1200, .dtype = ED_FLOAT64), ED_SHAPE(2, 2, 300)),
           "[[[0.000e+00 1.000e+00 2.000e+00 ... 2.970e+02 2.980e+02 2.990e+02]\n"
           "  [3.000e+02 3.010e+02 3.020e+02 ... 5.970e+02 5.980e+02 5.990e+02]]\n"
           "\n"
           " [[6.000e+02 6.010e+02 6.020e+02 ... 8.970e+02 8.980e+02 8.990e+02]\n"
           "  [9.000e+02 9.010e+02 9.020e+02 ... 1.197e+03 1.198e+03 1.199e+03]]]\n"
           "tensor float64 [2, 2, 300]");
    const char *whole = ed_to_string(ed_range(0, 1000));
    assert_non_null(whole);
    assert_null(strstr(whole, "..."));
}

static void empty(void **state)
{
    (void)state;
    ED_SCOPE;
    expect(ed_zeros(ED_SHAPE(0)), "[]\ntensor float32 [0]");
    expect(ed_zeros(ED_SHAPE(2, 0, 3), .dtype = ED_BOOL), "[]\ntensor bool [2, 0, 3]");
}

/* bfloat16, which NumPy has not: the fewest digits that tell it from its neighbours. */
static void bfloat16(void **state)
{
    (void)state;
    ED_SCOPE;
    CASE(ED_BFLOAT16, uint16_t, ED_SHAPE(3), "[ 1.   0.1 -2.5]\ntensor bfloat16 [3]", 0x3f80,
         0x3dcd, 0xc020);
    CASE(ED_BFLOAT16, uint16_t, ED_SHAPE(), "3.14\ntensor bfloat16 []", 0x4049);
}

static void views(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_reshape(ed_range(0, 6), ED_SHAPE(2, 3));
    expect(ed_transpose(x), "[[0 3]\n [1 4]\n [2 5]]\ntensor int32 [3, 2]");
    expect(ed_reverse(x, ED_AXES(1)), "[[2 1 0]\n [5 4 3]]\ntensor int32 [2, 3]");
    expect(ed_broadcast_to(ed_scalar(7), ED_SHAPE(2, 2)), "[[7 7]\n [7 7]]\ntensor int32 [2, 2]");
}

static void variables(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *v = ed_variable(ed_zeros(ED_SHAPE(2)), .name = "mlp/dense/kernel");
    expect(v, "[0. 0.]\nvariable \"mlp/dense/kernel\" float32 [2]");
    ed_assign(v, ed_ones(ED_SHAPE(2)));
    expect(v, "[1. 1.]\nvariable \"mlp/dense/kernel\" float32 [2]");
}

static void files(void **state)
{
    (void)state;
    ED_SCOPE;
    char text[64] = "";
    FILE *f = fmemopen(text, sizeof text, "w");
    assert_non_null(f);
    assert_true(ed_print(f, ed_scalar(3)));
    fclose(f);
    assert_string_equal(text, "3\ntensor int32 []\n");
    f = fopen("/dev/full", "w");
    if (f) {
        setvbuf(f, NULL, _IONBF, 0);
        assert_false(ed_print(f, ed_scalar(3)));
        assert_int_equal(ed_error_kind(), ED_IO);
        ed_clear_error();
        fclose(f);
    }
}

static void refused(void **state)
{
    (void)state;
    assert_null(ed_to_string(NULL));
    assert_int_equal(ed_error_kind(), ED_INVALID_ARGUMENT);
    ed_clear_error();
    assert_false(ed_print(NULL, NULL));
    assert_int_equal(ed_error_kind(), ED_INVALID_ARGUMENT);
    ed_clear_error();
}

static void no_memory(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_range(0, 500);
    ed_scalar(1); /* the scope's stack is there */
    int64_t before = ed_memory_stats().live_bytes;
    for (int n = 0; n < 10000; n++) {
        ED_SCOPE;
        ed_memory_fail_at(n, false);
        const char *s = ed_to_string(x);
        bool failed = ed_memory_has_failed();
        ed_memory_fail_at(-1, false);
        if (!failed) {
            assert_non_null(s);
            return;
        }
        assert_null(s);
        assert_int_equal(ed_error_kind(), ED_OUT_OF_MEMORY);
        ed_clear_error();
        assert_int_equal(ed_memory_stats().live_bytes, before);
    }
    fail();
}

/* As NumPy's printoptions have it. */
static void options(void **state)
{
    (void)state;
    ED_SCOPE;
#define EXPECT(t, text, ...) assert_string_equal(ed_to_string(t, __VA_ARGS__), text)
    ed_tensor *x = ed_constant(ED_VALUES(double, 3.14159265, 2.71828182, -1.5, .1), ED_SHAPE(4));
    EXPECT(x, "[ 3.142  2.718 -1.5    0.1  ]\ntensor float64 [4]", .precision = 3);
    EXPECT(x, "[ 3.1  2.7 -1.5  0.1]\ntensor float64 [4]", .precision = 1);
    EXPECT(x, "[ 3.  3. -2.  0.]\ntensor float64 [4]", .precision = 0);
    ed_tensor *wide = ed_constant(ED_VALUES(double, 1e-9, 1.23456789, 1e6), ED_SHAPE(3));
    EXPECT(wide, "[1.000e-09 1.235e+00 1.000e+06]\ntensor float64 [3]", .precision = 3);
    EXPECT(wide, "[1.e-09 1.e+00 1.e+06]\ntensor float64 [3]", .precision = 0);
    ed_tensor *odd = ed_constant(ED_VALUES(double, NAN, INFINITY, -1.23456), ED_SHAPE(3));
    EXPECT(odd, "[  nan   inf -1.23]\ntensor float64 [3]", .precision = 2);
    ed_tensor *thirds = ed_constant(ED_VALUES(double, 1. / 3, 2. / 3), ED_SHAPE(2));
    EXPECT(thirds, "[0.3333333333333333 0.6666666666666666]\ntensor float64 [2]", .precision = 17);
    EXPECT(ed_scalar(3.14159265, .dtype = ED_FLOAT64), "3.14159265\ntensor float64 []",
           .precision = 3);
    ed_tensor *i = ed_range(0, 12, .dtype = ED_INT32), *rows = ed_reshape(i, ED_SHAPE(4, 3));
    EXPECT(rows, "[[ 0 ...  2]\n ...\n [ 9 ... 11]]\ntensor int32 [4, 3]", .threshold = 0,
           .edge_items = 1);
    EXPECT(i, "[ 0  1  2  3  4  5  6  7  8  9 10 11]\ntensor int32 [12]", .threshold = 12);
    EXPECT(i, "[ 0  1 ... 10 11]\ntensor int32 [12]", .threshold = 11, .edge_items = 2);
    EXPECT(ed_reshape(ed_range(0, 8, .dtype = ED_INT32), ED_SHAPE(2, 2, 2)),
           "[[[0 1]\n  [2 3]]\n\n [[4 5]\n  [6 7]]]\ntensor int32 [2, 2, 2]", .threshold = 1,
           .edge_items = 1);
    EXPECT(ed_reshape(ed_range(0, 27, .dtype = ED_INT32), ED_SHAPE(3, 3, 3)),
           "[[[ 0 ...  2]\n  ...\n  [ 6 ...  8]]\n\n ...\n\n [[18 ... 20]\n  ...\n  [24 ... 26]]]\n"
           "tensor int32 [3, 3, 3]",
           .threshold = 1, .edge_items = 1);
    EXPECT(ed_range(0, 15, .dtype = ED_INT32),
           "[ 0  1  2  3  4  5\n  6  7  8  9 10 11\n 12 13 14]\ntensor int32 [15]", .width = 20);
    EXPECT(ed_div(ed_reshape(ed_range(0, 12, .dtype = ED_FLOAT32), ED_SHAPE(3, 4)), 3.0),
           "[[0.   0.33 0.67\n  1.  ]\n [1.33 1.67 2.\n  2.33]\n [2.67 3.   3.33\n  3.67]]\n"
           "tensor float32 [3, 4]",
           .width = 20, .precision = 2);
    assert_string_equal(ed_to_string_with(x, NULL), ed_to_string(x));
    assert_fails(ed_to_string(x, .threshold = -1), ED_INVALID_ARGUMENT,
                 "to_string: threshold must be at least 0, got -1");
    assert_fails(ed_to_string(x, .edge_items = 0), ED_INVALID_ARGUMENT,
                 "to_string: edge_items must be at least 1, got 0");
    assert_fails(ed_to_string(x, .precision = 101), ED_INVALID_ARGUMENT,
                 "to_string: precision must be in [0, 100], got 101");
    assert_fails(ed_to_string(x, .width = 9), ED_INVALID_ARGUMENT,
                 "to_string: width must be at least 10, got 9");
    assert_fails(ed_to_string_with(x, &(ed_print_options){.precision = 3}), ED_INVALID_ARGUMENT,
                 "incomplete");
    assert_non_null(ed_to_string(ed_reshape(ed_range(0, 1002), ED_SHAPE(2, 501)),
                                 .threshold = INT64_MAX, .edge_items = INT64_MAX, .precision = 100,
                                 .width = INT64_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floats),    cmocka_unit_test(others),    cmocka_unit_test(scalars),
        cmocka_unit_test(shapes),    cmocka_unit_test(summaries), cmocka_unit_test(options),
        cmocka_unit_test(empty),     cmocka_unit_test(bfloat16),  cmocka_unit_test(views),
        cmocka_unit_test(variables), cmocka_unit_test(files),     cmocka_unit_test(refused),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
