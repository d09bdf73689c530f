/*
 * Casts of integers: every pair of the eight integer dtypes, floats to each and back, in every
 * instruction set, against arithmetic on 64-bit words and on long double, which holds them all.
 * What floats among themselves promise stands in test_elementwise.c.
 */
#include "eddy.h"
#include "ops/kernels/isa.h"
#include "tensor/core.h"
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

/* ---- Integers as words ----------------------------------------------------------------------- */

typedef struct integer_type {
    ed_dtype dtype;
    int bits;
    bool is_signed;
} integer_type;

static const integer_type integers[] = {
    {ED_INT8, 8, true},   {ED_INT16, 16, true},   {ED_INT32, 32, true},   {ED_INT64, 64, true},
    {ED_UINT8, 8, false}, {ED_UINT16, 16, false}, {ED_UINT32, 32, false}, {ED_UINT64, 64, false},
};
enum { INTEGERS = sizeof integers / sizeof *integers, SIZE = 1003 };

#define EACH_ISA for (int isa = 0; isa_set(isa); isa++)
#define EACH_INTEGER(type)                                                                         \
    for (const integer_type *type = integers; type < integers + INTEGERS; type++)

/* The lowest bits of a word as an element of the type, filled up with the sign or with 0. */
static uint64_t wrapped(const integer_type *type, uint64_t word)
{
    uint64_t low = type->bits == 64 ? word : word & ((UINT64_C(1) << type->bits) - 1);
    bool negative = type->is_signed && low >> (type->bits - 1);
    return negative && type->bits < 64 ? low | UINT64_MAX << type->bits : low;
}

static uint64_t word_at(const integer_type *type, const ed_tensor *x, int64_t i)
{
    uint64_t word = 0;
    size_t size = dtype_size(type->dtype);
    memcpy(&word, x->data + i * (int64_t)size, size); /* little-endian */
    return wrapped(type, word);
}

static long double value_of(const integer_type *type, uint64_t word)
{
    return type->is_signed ? (long double)(int64_t)word : (long double)word;
}

static long double least(const integer_type *type)
{
    return type->is_signed ? -ldexpl(1, type->bits - 1) : 0;
}

static long double most(const integer_type *type)
{
    return ldexpl(1, type->bits - type->is_signed) - 1;
}

/* Number i of those in the middle between two floats of some precision, and a hair above it. */
static uint64_t middle(int64_t i)
{
    static const int precisions[] = {8, 11, 24, 53};
    int top = 63 - (int)(i / 8), below = top - precisions[i / 2 % 4];
    return UINT64_C(1) << top | (below > 0 ? UINT64_C(1) << below : 0) | (i % 2);
}

/* Numbers of all magnitudes, those at the ends of every type's range, and middles. */
static uint64_t some_word(int64_t i, uint64_t *state)
{
    static const int edges[] = {0, 7, 8, 15, 16, 23, 24, 25, 31, 32, 52, 53, 54, 62, 63};
    enum { EDGES = sizeof edges / sizeof *edges, MIDDLES = 8 * 64 };
    if (i < 6 * EDGES) {
        uint64_t edge = (UINT64_C(1) << edges[i / 6]) + (uint64_t)(i % 3) - 1;
        return i % 6 < 3 ? edge : -edge;
    }
    if (i < 6 * EDGES + MIDDLES) return middle(i - 6 * EDGES);
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    uint64_t word = *state ^ *state >> 29;
    return i % 2 ? word >> (word & 63) : (uint64_t)((int64_t)word >> (word & 63));
}

static ed_tensor *words(const integer_type *type)
{
    int64_t size = SIZE;
    uint64_t state = 11;
    ed_tensor *x = scope_give(tensor_new(type->dtype, 1, &size));
    assert_non_null(x);
    for (int64_t i = 0; i < SIZE; i++) {
        uint64_t word = some_word(i, &state);
        memcpy(x->data + i * (int64_t)dtype_size(type->dtype), &word, dtype_size(type->dtype));
    }
    return x;
}

static ed_tensor *cast(ed_tensor *x, ed_dtype dtype)
{
    ed_tensor *y = ed_cast(x, dtype);
    if (!y) fail_msg("%s", ed_error());
    assert_int_equal(ed_dtype_of(y), dtype);
    assert_int_equal(ed_size(y), SIZE);
    return y;
}

/* ---- Among integers -------------------------------------------------------------------------- */

static void integers_keep_their_low_bits(void **state)
{
    (void)state;
    EACH_ISA EACH_INTEGER(from) EACH_INTEGER(to)
    {
        ED_SCOPE;
        ed_tensor *x = words(from), *y = cast(x, to->dtype);
        for (int64_t i = 0; i < SIZE; i++)
            assert_int_equal(word_at(to, y, i), wrapped(to, word_at(from, x, i)));
    }
    isa_set(isa_best());
}

static void bool_is_whether_not_zero(void **state)
{
    (void)state;
    EACH_ISA EACH_INTEGER(type)
    {
        ED_SCOPE;
        ed_tensor *x = words(type), *y = cast(x, ED_BOOL), *back = cast(y, type->dtype);
        for (int64_t i = 0; i < SIZE; i++) {
            assert_int_equal(((const uint8_t *)y->data)[i], word_at(type, x, i) != 0);
            assert_int_equal(word_at(type, back, i), word_at(type, x, i) != 0);
        }
    }
    isa_set(isa_best());
}

/* ---- From floats ----------------------------------------------------------------------------- */

/* Numbers around every bound: just inside and beyond, with and without a
 * fraction, and no numbers. */
static double some_number(int64_t i, uint64_t *state)
{
    static const double odd[] = {NAN,  INFINITY, -INFINITY, 0.0,     -0.0,   0.5,
                                 -0.5, 0.999,    -0.999,    DBL_MAX, 5e-324, -DBL_MAX};
    static const int bounds[] = {7, 8, 15, 16, 31, 32, 63, 64};
    enum { ODD = sizeof odd / sizeof *odd, BOUNDS = sizeof bounds / sizeof *bounds, NEAR = 8 };
    if (i < ODD) return odd[i];
    i -= ODD;
    if (i < BOUNDS * NEAR) {
        double bound = ldexp(i & 1 ? 1 : -1, bounds[i / NEAR]);
        double near[] = {bound, bound - 1, bound + 0.5, nextafter(bound, 0)};
        return near[i % NEAR / 2];
    }
    return (double)(int64_t)some_word(1000 + i, state) / 3;
}

static ed_tensor *numbers(ed_dtype dtype)
{
    int64_t size = SIZE;
    uint64_t state = 5;
    ed_tensor *x = scope_give(tensor_new(dtype, 1, &size));
    assert_non_null(x);
    for (int64_t i = 0; i < SIZE; i++) dtype_store(dtype, x->data, i, some_number(i, &state));
    return x;
}

static long double clamped(const integer_type *type, double x)
{
    if (isnan(x)) return 0;
    long double whole = truncl((long double)x);
    return fminl(fmaxl(whole, least(type)), most(type));
}

static void floats_stay_within_range(void **state)
{
    (void)state;
    static const ed_dtype floats[] = {ED_FLOAT32, ED_FLOAT64, ED_FLOAT16, ED_BFLOAT16};
    EACH_ISA EACH_INTEGER(to) for (int f = 0; f < 4; f++)
    {
        ED_SCOPE;
        ed_tensor *x = numbers(floats[f]), *y = cast(x, to->dtype);
        for (int64_t i = 0; i < SIZE; i++)
            assert_true(value_of(to, word_at(to, y, i)) ==
                        clamped(to, dtype_load(floats[f], x->data, i)));
    }
    isa_set(isa_best());
}

/* ---- To floats ------------------------------------------------------------------------------- */

/* A whole number rounded once to so many significant bits, ties to even. */
static long double to_bits(long double whole, int bits)
{
    int exponent;
    frexpl(whole, &exponent);
    int shift = exponent > bits ? exponent - bits : 0;
    return ldexpl(rintl(ldexpl(whole, -shift)), shift);
}

static void integers_round_once(void **state)
{
    (void)state;
    static const struct {
        ed_dtype dtype;
        int bits;
        long double largest;
    } floats[] = {{ED_FLOAT32, FLT_MANT_DIG, FLT_MAX},
                  {ED_FLOAT64, DBL_MANT_DIG, DBL_MAX},
                  {ED_FLOAT16, 11, 65504},
                  {ED_BFLOAT16, 8, FLT_MAX}};
    EACH_ISA EACH_INTEGER(from) for (int f = 0; f < 4; f++)
    {
        ED_SCOPE;
        ed_tensor *x = words(from), *y = cast(x, floats[f].dtype);
        for (int64_t i = 0; i < SIZE; i++) {
            long double want = to_bits(value_of(from, word_at(from, x, i)), floats[f].bits);
            if (fabsl(want) > floats[f].largest) want = copysignl(INFINITY, want);
            assert_true(dtype_load(floats[f].dtype, y->data, i) == (double)want);
        }
    }
    isa_set(isa_best());
}

/* ---- Equality -------------------------------------------------------------------------------- */

/* No element passes through a float: the lowest bit tells two numbers apart,
 * and no sign is lost. */
static void equality_sees_every_bit(void **state)
{
    (void)state;
    EACH_ISA EACH_INTEGER(type)
    {
        ED_SCOPE;
        ed_tensor *x = words(type), *y = scope_give(tensor_new(type->dtype, 1, &x->size));
        size_t size = dtype_size(type->dtype);
        memcpy(y->data, x->data, SIZE * size);
        for (int64_t i = 0; i < SIZE; i += 3) y->data[i * (int64_t)size] ^= 1;
        const uint8_t *equal = ed_data(ed_equal(x, y)), *not_equal = ed_data(ed_not_equal(x, y));
        if (!equal || !not_equal) fail_msg("%s", ed_error());
        for (int64_t i = 0; i < SIZE; i++) {
            assert_int_equal(equal[i], i % 3 != 0);
            assert_int_equal(not_equal[i], i % 3 == 0);
        }
    }
    isa_set(isa_best());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_keep_their_low_bits), cmocka_unit_test(bool_is_whether_not_zero),
        cmocka_unit_test(floats_stay_within_range),     cmocka_unit_test(integers_round_once),
        cmocka_unit_test(equality_sees_every_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
