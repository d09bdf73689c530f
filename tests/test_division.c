/* Division and remainders against plain C, bit for bit, for each instruction set: at the borders
 * between the ways that kernels take, with special values, in all sizes of quotients. */
#include "ops/kernels/isa.h"
#include "ops/ops.h"
#include "tests/asserts.h"
#include <math.h>
#include <string.h>

#define EACH_ISA for (int isa = 0; isa_set(isa); isa++)
enum { PAIRS = 1 << 14 };

/* Bits that differ from call to call. */
static uint64_t next_bits(void)
{
    static uint64_t x = 88172645463325252;
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    return x * 0x2545f4914f6cdd1d;
}

static const double specials[] = {0, -0.0, 1, -3, INFINITY, -INFINITY, NAN, 0x1p-1074, 0x1p-149};

/* A pair whose quotient has up to some thousand digits, or is next to a whole number of up to 60,
 * or has a special part. */
static void pair(double *a, double *b, bool narrow)
{
    const uint64_t bits = next_bits();
    const int span = bits & 1 ? 8 : narrow ? 140 : 1000;
    *a = ldexp((double)(next_bits() >> 11), (int)(next_bits() % (2 * (unsigned)span)) - span - 52);
    *b = ldexp((double)(next_bits() >> 11), (int)(next_bits() % (2 * (unsigned)span)) - span - 52);
    if (narrow) *b = (float)*b;
    if (bits & 2) *a = *b * (double)(next_bits() >> (4 + (bits >> 8) % 60));
    if (narrow) *a = (float)*a;
    if (bits & 4) *a = narrow ? nextafterf((float)*a, INFINITY) : nextafter(*a, INFINITY);
    if (bits & 8) *a = -*a;
    if (bits & 16) *b = -*b;
    if ((bits >> 20) % 16 == 0) *a = specials[(bits >> 30) % 9];
    if ((bits >> 24) % 16 == 0) *b = specials[(bits >> 40) % 9];
}

static void is_same(double got, double wanted, double a, double b)
{
    if (isnan(got) && isnan(wanted)) return;
    if (memcmp(&got, &wanted, sizeof got) == 0) return;
    fail_msg("of %a and %a: %a, not %a, with %s", a, b, got, wanted, isa_name(isa_level));
}

static double floor_mod_of(double a, double b, bool narrow)
{
    const double rest = fmod(a, b);
    if (rest == 0) return copysign(0, b);
    if ((rest < 0) == (b < 0)) return rest;
    return narrow ? (float)rest + (float)b : rest + b;
}

static void remainders_of(bool narrow)
{
    static double a[PAIRS], b[PAIRS];
    for (int i = 0; i < PAIRS; i++) pair(&a[i], &b[i], narrow);
    EACH_ISA
    {
        ED_SCOPE;
        const ed_dtype dtype = narrow ? ED_FLOAT32 : ED_FLOAT64;
        ed_tensor *from = ed_cast(ed_constant(a, ED_SHAPE(PAIRS)), dtype);
        ed_tensor *by = ed_cast(ed_constant(b, ED_SHAPE(PAIRS)), dtype);
        const double *truncated = ed_as_doubles(ed_truncatemod(from, by));
        const double *floored = ed_as_doubles(ed_floor_mod(from, by));
        const double *next = ed_as_doubles(ed_nextafter(from, by));
        assert_true(truncated && floored && next);
        for (int i = 0; i < PAIRS; i++) {
            const double x = narrow ? (float)a[i] : a[i], y = narrow ? (float)b[i] : b[i];
            is_same(truncated[i], fmod(x, y), x, y);
            is_same(floored[i], floor_mod_of(x, y, narrow), x, y);
            is_same(next[i], narrow ? nextafterf((float)x, (float)y) : nextafter(x, y), x, y);
        }
    }
    isa_set(isa_best());
}

static void remainders(void **state)
{
    (void)state;
    for (int k = 0; k < 8; k++) remainders_of(k % 2);
}

/* An integer of any size, often next to a power of two or the type's ends. */
static int64_t integer(ed_dtype dtype)
{
    const uint64_t bits = next_bits();
    const int width = dtype == ED_UINT8 ? 8 : dtype == ED_INT32 ? 32 : 64;
    uint64_t x = next_bits() >> (64 - 1 - bits % (unsigned)width);
    if (bits & 256) x = (UINT64_C(1) << bits % (unsigned)width) + (bits >> 16) % 5 - 2;
    if (bits & 512) x = -x;
    return dtype == ED_UINT8 ? (uint8_t)x : dtype == ED_INT32 ? (int32_t)x : (int64_t)x;
}

static void integers_of(ed_dtype dtype)
{
    static int64_t a[PAIRS], b[PAIRS];
    for (int i = 0; i < PAIRS; i++) {
        a[i] = integer(dtype);
        while (!(b[i] = integer(dtype))) continue;
    }
    EACH_ISA
    {
        ED_SCOPE;
        ed_tensor *from = ed_cast(ed_constant(a, ED_SHAPE(PAIRS)), dtype);
        ed_tensor *by = ed_cast(ed_constant(b, ED_SHAPE(PAIRS)), dtype);
        ed_tensor *const y[] = {ed_truncatediv(from, by), ed_truncatemod(from, by),
                                ed_floor_div(from, by), ed_floor_mod(from, by)};
        const int64_t *got[4];
        for (int k = 0; k < 4; k++) got[k] = ed_data(ed_cast(y[k], ED_INT64));
        assert_true(got[0] && got[1] && got[2] && got[3]);
        for (int i = 0; i < PAIRS; i++) {
            const bool wraps = b[i] == -1; /* also what no type can hold */
            const int64_t less = (int64_t)(0 - (uint64_t)a[i]);
            const int64_t minus = dtype == ED_INT32 ? (int32_t)less : less;
            const int64_t q = wraps ? minus : a[i] / b[i], rest = wraps ? 0 : a[i] % b[i];
            const bool down = rest && (rest < 0) != (b[i] < 0);
            const int64_t wanted[] = {q, rest, q - down, down ? rest + b[i] : rest};
            for (int k = 0; k < 4; k++)
                if (got[k][i] != wanted[k])
                    fail_msg("op %d of %lld and %lld: %lld, not %lld, with %s", k, (long long)a[i],
                             (long long)b[i], (long long)got[k][i], (long long)wanted[k],
                             isa_name(isa_level));
        }
    }
    isa_set(isa_best());
}

static void integers(void **state)
{
    static const ed_dtype dtypes[] = {ED_INT32, ED_INT64, ED_UINT8};
    (void)state;
    for (int k = 0; k < 6; k++) integers_of(dtypes[k % 3]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(remainders),
        cmocka_unit_test(integers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
