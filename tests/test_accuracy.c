/*
 * Accuracy of the elementwise functions in ULP, for every instruction set of the machine: their
 * loops are taken from the ops' definitions.
 *
 * The error of a result is its distance to the true value in units of the last place that the true
 * value has in the result's type (a correctly rounded result has at most 0.5). The true value comes
 * from the C library: in double for float32, in long double (64 bits of mantissa on x86-64) for
 * float64, where a type that has no more bits than double leaves nothing to compare with.
 *
 * The points: special values, numbers of random bits (all magnitudes alike, NaN and denormals among
 * them), and numbers evenly spread over the range where the function is interesting.
 *
 * EDDY_VERBOSE=1 prints the table. EDDY_EXHAUSTIVE=1 takes all 2^32 numbers for float32 functions
 * of one argument, EDDY_EXHAUSTIVE=exp does it for exp alone.
 */
#include "ops/elementwise.h"
#include "tests/skip.h"
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { CHUNK = 4096, POINTS_F32 = 1 << 20, POINTS_F64 = 1 << 17 };

/* A function: its range of interest, the most ULP allowed for float32 and float64, and its true
 * value. */
typedef struct rule {
    const char *name;
    double low, high;
    double bound32, bound64;
    double (*f32)(double, double);
    long double (*f64)(long double, long double);
} rule;

#define TRUE1(name, expression32, expression64)                                                    \
    static double name##_true32(double x, double y)                                                \
    {                                                                                              \
        return (void)y, expression32;                                                              \
    }                                                                                              \
    static long double name##_true64(long double x, long double y)                                 \
    {                                                                                              \
        return (void)y, expression64;                                                              \
    }
#define TRUE_LIBM1(name) TRUE1(name, name(x), name##l(x))

TRUE_LIBM1(exp)
TRUE_LIBM1(expm1)
TRUE_LIBM1(log)
TRUE_LIBM1(log1p)
TRUE_LIBM1(log2)
TRUE_LIBM1(log10)
TRUE_LIBM1(exp2)
TRUE_LIBM1(cbrt)
TRUE_LIBM1(trunc)
TRUE1(rint, nearbyint(x), nearbyintl(x))
TRUE_LIBM1(sin)
TRUE_LIBM1(cos)
TRUE_LIBM1(tan)
TRUE_LIBM1(asin)
TRUE_LIBM1(acos)
TRUE_LIBM1(atan)
TRUE_LIBM1(sinh)
TRUE_LIBM1(cosh)
TRUE_LIBM1(tanh)
TRUE_LIBM1(asinh)
TRUE_LIBM1(acosh)
TRUE_LIBM1(atanh)
TRUE_LIBM1(erf)
TRUE_LIBM1(erfc)
TRUE_LIBM1(sqrt)
TRUE_LIBM1(floor)
TRUE_LIBM1(ceil)
TRUE1(round, nearbyint(x), nearbyintl(x))
TRUE1(rsqrt, 1 / sqrt(x), 1 / sqrtl(x))
TRUE1(abs, fabs(x), fabsl(x))
TRUE1(sigmoid, x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x)),
      x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x)))
TRUE1(softplus,
      (x > 0    ? x
       : x == x ? 0
                : x) +
          log1p(exp(-fabs(x))),
      (x > 0    ? x
       : x == x ? 0
                : x) +
          log1pl(expl(-fabsl(x))))
TRUE1(silu, x < 0 ? x * exp(x) / (1 + exp(x)) : x / (1 + exp(-x)),
      x < 0 ? x * expl(x) / (1 + expl(x)) : x / (1 + expl(-x)))
TRUE1(hard_sigmoid, x<-3 ? 0 : x> 3 ? 1 : (x + 3) / 6, x<-3 ? 0 : x> 3 ? 1 : (x + 3) / 6)
TRUE1(pow, pow(x, y), powl(x, y))
TRUE1(lgamma, lgamma(x), lgammal(x))
TRUE1(hypot, hypot(x, y), hypotl(x, y))
TRUE1(atan2, atan2(x, y), atan2l(x, y))
TRUE1(maximum, x > y || x != x ? x : y, x > y || x != x ? x : y)
TRUE1(minimum, x < y || x != x ? x : y, x < y || x != x ? x : y)

/*
 * gelu, gelu_tanh and their slopes. Rounding an exponent of 745 costs digits in long double too: it
 * is taken in two parts, and so are the constants in it. Below -50 the functions are 0.
 */
#define ROOT_HALF       0.707106781186547524381894L
#define ROOT_HALF_LOW   1.895032558893257079655062e-20L
#define ROOT_8_BY_PI    1.595769121605730711706272L
#define ROOT_8_LOW      5.351177755720478292013163e-20L
#define CUBIC           0.07135481627260024877721376L /* 0.044715 sqrt(8 / pi) */
#define CUBIC_LOW       -8.750062144008984958247768e-22L
#define TWO_BY_ROOT_PI  1.128379167095512573896159L
#define ONE_BY_ROOT_2PI 0.3989422804014326779399461L

/* erfc(-x / sqrt 2) / 2: the rest of the argument times erfc' is added. */
static long double normal_below(long double x)
{
    const long double t = -ROOT_HALF * x, rest = fmal(-ROOT_HALF, x, -t) - ROOT_HALF_LOW * x;
    return 0.5L * (erfcl(t) - rest * TWO_BY_ROOT_PI * expl(-t * t));
}

/* e^(-x^2/2) / sqrt(2 pi) */
static long double normal_density(long double x)
{
    const long double square = x * x, rest = fmal(x, x, -square);
    return ONE_BY_ROOT_2PI * expl(-0.5L * square) * (1 - 0.5L * rest);
}

/* e^-(c x + c d x^3) */
static long double gelu_tanh_power(long double x)
{
    const long double square = x * x, rest = fmal(x, x, -square), cube = CUBIC * square;
    const long double factor = ROOT_8_BY_PI + cube, u = x * factor;
    long double low = fmal(CUBIC, square, -cube) + CUBIC * rest + CUBIC_LOW * square + ROOT_8_LOW;
    low += cube > ROOT_8_BY_PI ? ROOT_8_BY_PI - (factor - cube) : cube - (factor - ROOT_8_BY_PI);
    return expl(-u) * (1 - (fmal(x, factor, -u) + x * low));
}

static long double gelu_tanh_slope(long double x)
{
    const long double e = gelu_tanh_power(x), s = 1 / (1 + e), rest = e / (1 + e);
    return s * (1 + x * rest * (ROOT_8_BY_PI + 3 * CUBIC * x * x));
}

TRUE1(gelu, x < -50 ? -0.0 : 0.5 * x * erfc((double)-ROOT_HALF * x),
      x<-50 ? -0.0L : x> 50 ? x : x *normal_below(x))
TRUE1(gelu_tanh,
      x < -50 ? -0.0 : x / (1 + exp(-x * ((double)ROOT_8_BY_PI + (double)CUBIC * x * x))),
      x<-50 ? -0.0L : x> 50 ? x : x / (1 + gelu_tanh_power(x)))
TRUE1(gelu_gradient, x *(double)(normal_below(y) + y * normal_density(y)),
      x *(normal_below(y) + y * normal_density(y)))
TRUE1(gelu_tanh_gradient, x *(double)gelu_tanh_slope(y), x *gelu_tanh_slope(y))

/* SLEEF's bounds; on machines without it libm takes its place, whose functions have some more. */
#if defined(__x86_64__) || defined(__aarch64__)
#define MARGIN 0
#else
#define MARGIN 2
#endif
#define RULE(name, low, high, bound32, bound64)                                                    \
    {                                                                                              \
#name, low, high, bound32 + MARGIN, bound64 + MARGIN, name##_true32, name##_true64         \
    }

/* Of gelu and gelu_tanh the second range is where only float64 is not 0. */
static const rule rules[] = {
    RULE(exp, -104, 89, 1.1, 1.0),       RULE(expm1, -20, 89, 1.1, 1.0),
    RULE(log, 0, 3, 1.0, 1.0),           RULE(log1p, -1, 3, 1.0, 1.1),
    RULE(log2, 0, 3, 1.0, 1.0),          RULE(sin, -100, 100, 1.0, 1.0),
    RULE(cos, -100, 100, 1.0, 1.0),      RULE(tan, -100, 100, 1.0, 1.0),
    RULE(asin, -1, 1, 1.0, 1.0),         RULE(acos, -1, 1, 1.0, 1.0),
    RULE(atan, -4, 4, 1.0, 1.0),         RULE(sinh, -90, 90, 1.1, 1.5),
    RULE(cosh, -90, 90, 1.1, 1.5),       RULE(tanh, -10, 10, 1.6, 1.1),
    RULE(asinh, -100, 100, 1.1, 1.1),    RULE(acosh, 1, 100, 1.0, 1.1),
    RULE(atanh, -1, 1, 1.1, 1.1),        RULE(erf, -4, 4, 1.7, 1.1),
    RULE(erfc, -4, 10, 2.1, 1.5),        RULE(sigmoid, -104, 20, 2.0, 2.0),
    RULE(softplus, -104, 20, 1.7, 1.7),  RULE(sqrt, 0, 100, 0.5, 0.5),
    RULE(rsqrt, 0, 100, 1.5, 1.5),       RULE(floor, -100, 100, 0, 0),
    RULE(ceil, -100, 100, 0, 0),         RULE(round, -100, 100, 0, 0),
    RULE(gelu, -15, 8, 4.2, 4.0),        RULE(gelu, -39, -13, 4.2, 4.0),
    RULE(gelu_tanh, -11, 8, 4.0, 4.0),   RULE(gelu_tanh, -22, -9, 4.0, 4.0),
    RULE(hard_sigmoid, -4, 4, 2.0, 2.0), RULE(abs, -100, 100, 0, 0),
    RULE(pow, 0, 20, 1.0, 2.0),          RULE(atan2, -4, 4, 1.6, 1.5),
    RULE(log10, 0, 3, 1.0, 1.0),         RULE(exp2, -150, 128, 1.0, 1.0),
    RULE(cbrt, -8, 8, 1.0, 1.0),         RULE(hypot, -4, 4, 1.3, 1.0),
    RULE(trunc, -100, 100, 0, 0),        RULE(rint, -100, 100, 0, 0),
    RULE(maximum, -4, 4, 0, 0),          RULE(minimum, -4, 4, 0, 0),
    RULE(silu, -120, 20, 4.0, 4.0),      RULE(lgamma, 0.1, 30, 1.0, 3.0),
};

/* The worst case of one function, type and instruction set. */
typedef struct worst {
    double ulp, x, y, got;
} worst;

/* Infinite where the kind is wrong (NaN, inf, the sign of an exact zero). Digits and exponent are
 * the type's. */
static double distance(long double got, long double want, int digits, int lowest, int highest)
{
    if (isnan(want) || isnan(got)) return isnan(want) && isnan(got) ? 0 : INFINITY;
    if (want == 0) return got == 0 && !signbit(got) == !signbit(want) ? 0 : INFINITY;
    long double top = ldexpl(1, highest);
    if (isinf(want)) return got == want ? 0 : INFINITY;
    if (fabsl(want) > top)
        want = copysignl(top, want); /* to be rounded to inf, which counts as the next number */
    if (isinf(got)) got = copysignl(top, got);
    int exponent = ilogbl(want);
    if (exponent >= highest) exponent = highest - 1;
    if (exponent < lowest) exponent = lowest;
    return (double)(fabsl(got - want) / ldexpl(1, exponent - digits + 1));
}

/* The same by hand for the many: nothing special, no overflow near. */
static double distance32(float got, double want)
{
    double size = fabs(want);
    if (got == want && want != 0) return 0;
    if (!(size > 0 && size < (double)FLT_MAX && fabsf(got) <= FLT_MAX))
        return distance(got, want, FLT_MANT_DIG, FLT_MIN_EXP - 1, FLT_MAX_EXP);
    if (size < (double)FLT_MIN) return fabs(got - want) * 0x1p149;
    uint64_t bits; /* 2^(23 - exponent of want), by its bits */
    memcpy(&bits, &size, sizeof bits);
    bits = ((uint64_t)(2 * 1023 + FLT_MANT_DIG - 1) << 52) - (bits & (uint64_t)0x7ff << 52);
    double per_ulp;
    memcpy(&per_ulp, &bits, sizeof per_ulp);
    return fabs(got - want) * per_ulp;
}

static double distance64(double got, long double want)
{
    return distance(got, want, DBL_MANT_DIG, DBL_MIN_EXP - 1, DBL_MAX_EXP);
}

static const double specials[] = {
    0.0,         -0.0,
    INFINITY,    -INFINITY,
    NAN,         1,
    -1,          0.5,
    -0.5,        1.5,
    -1.5,        2,
    -2,          2.5,
    3,           -3,
    0.75,        0.25,
    -0.25,       -0.75,
    0x1p-149,    -0x1p-149,
    0x1.8p-148,  0x1p-127,
    -0x1p-127,   0x1p-126,
    -0x1p-126,   0x1.fffffep-127,
    FLT_MAX,     -FLT_MAX,
    0x1p-1074,   -0x1p-1074,
    0x1p-1022,   -0x1p-1022,
    DBL_MAX,     -DBL_MAX,
    88.72283,    88.7229,
    -87.33655,   -88,
    -103.97,     -103.98,
    -104,        104,
    709.78,      709.79,
    -745.13,     -745.14,
    -708.4,      88.5,
    89,          89.4,
    89.5,        -16.7,
    -17.4,       9.01,
    9.02,        10,
    19,          20,
    3.9,         4,
    0x1p23,      0x1p24,
    -0x1p23,     8388607.5,
    0x1p52,      0x1p53,
    0x1p63,      4503599627370495.5,
    3.14159274,  1.57079637,
    6.28318548,  6144,
    6144.5,      65536,
    65537,       1e10,
    1e22,        1e30,
    1e38,        1e300,
    0.99999994,  1.00000012,
    -0.99999994, 0x1.fffffffffffffp-1,
    1e-3,        1e-4,
    -1e-4,       1e-8,
    -1e-8,       1e-20,
    -1e-20,      1e-40,
    1e-310,      -14.3,
    -14.4,       -38.5,
    -38.6,       -10.2,
    -10.3,       -21,
    -21.5,
};
enum { SPECIALS = sizeof specials / sizeof *specials };

/* splitmix64 */
static uint64_t random_bits(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static double spread(const rule *r, uint64_t *state)
{
    return r->low + (r->high - r->low) * (double)(random_bits(state) >> 11) * 0x1p-53;
}

/* Chunk c of a function's points: the first holds the specials (every pair of them), then bits and
 * range in turn. */
static void points32(const rule *r, long c, float *x, float *y)
{
    uint64_t state = (uint64_t)c << 20;
    for (long i = 0; i < CHUNK; i++) {
        uint64_t bits = random_bits(&state);
        uint32_t half[2] = {(uint32_t)bits, (uint32_t)(bits >> 32)};
        memcpy(x + i, half, 4), memcpy(y + i, half + 1, 4);
        if (c & 1) x[i] = (float)spread(r, &state), y[i] = (float)spread(r, &state);
        long special = c * CHUNK + i;
        if (special < SPECIALS * SPECIALS) {
            x[i] = (float)specials[special % SPECIALS];
            y[i] = (float)specials[special / SPECIALS];
        }
    }
}

static void points64(const rule *r, long c, double *x, double *y)
{
    uint64_t state = (uint64_t)c << 20;
    for (long i = 0; i < CHUNK; i++) {
        uint64_t bits[2] = {random_bits(&state), random_bits(&state)};
        memcpy(x + i, bits, 8), memcpy(y + i, bits + 1, 8);
        if (c & 1) x[i] = spread(r, &state), y[i] = spread(r, &state);
        long special = c * CHUNK + i;
        if (special < SPECIALS * SPECIALS) {
            x[i] = specials[special % SPECIALS];
            y[i] = specials[special / SPECIALS];
        }
    }
}

/* Runs the op's loop of an instruction set; steps 1. */
static void run(const char *name, int isa, ed_dtype dtype, void *to, const void *x, const void *y,
                int64_t n)
{
    const elementwise_table *table = ed_op_find(name)->extra;
    (*table)[isa][dtype](n, (const void *const[]){x, y}, (const int[]){1, 1}, to, NULL);
}

static int arguments(const char *name)
{
    return ed_op_find(name)->operands[1].name ? 2 : 1;
}

static void keep_worst(worst *w, double ulp, double x, double y, double got)
{
    if (ulp > w->ulp) *w = (worst){ulp, x, y, got};
}

static void chunk32(const rule *r, const float *x, const float *y, worst *w)
{
    float got[CHUNK];
    double want[CHUNK];
    for (int i = 0; i < CHUNK; i++) want[i] = r->f32(x[i], y[i]);
    for (int isa = 0; isa <= isa_best(); isa++) {
        run(r->name, isa, ED_FLOAT32, got, x, y, CHUNK);
        for (int i = 0; i < CHUNK; i++)
            keep_worst(w + isa, distance32(got[i], want[i]), x[i], y[i], got[i]);
    }
}

static void chunk64(const rule *r, const double *x, const double *y, worst *w)
{
    static _Thread_local double got[CHUNK];
    static _Thread_local long double want[CHUNK];
    for (int i = 0; i < CHUNK; i++) want[i] = r->f64(x[i], y[i]);
    for (int isa = 0; isa <= isa_best(); isa++) {
        run(r->name, isa, ED_FLOAT64, got, x, y, CHUNK);
        for (int i = 0; i < CHUNK; i++)
            keep_worst(w + isa, distance64(got[i], want[i]), x[i], y[i], got[i]);
    }
}

/* All floats in order; a NULL rule's y is 0. */
static void all32(const rule *r, long c, float *x, float *y)
{
    (void)r;
    for (long i = 0; i < CHUNK; i++) {
        uint32_t bits = (uint32_t)(c * CHUNK + i);
        memcpy(x + i, &bits, 4);
        y[i] = 0;
    }
}

/* Prints a row of the table when asked for, and fails or not. */
static int judge(const rule *r, const char *type, double bound, const worst *w)
{
    int bad = 0;
    for (int isa = 0; isa <= isa_best(); isa++) {
        int over = !(w[isa].ulp <= bound);
        if (over || getenv("EDDY_VERBOSE"))
            print_message("%-9s %s %-8s %7.4f ULP of %.1f at %a (%.9g), %a: %.17g%s\n", r->name,
                          type, isa_name(isa), w[isa].ulp, bound, w[isa].x, w[isa].x, w[isa].y,
                          w[isa].got, over ? "  TOO MUCH" : "");
        bad += over;
    }
    return bad;
}

static int measure32(const rule *r)
{
    const char *exhaustive = getenv("EDDY_EXHAUSTIVE");
    bool all = exhaustive && arguments(r->name) == 1 &&
               (!strcmp(exhaustive, "1") || !strcmp(exhaustive, r->name));
    long chunks = all ? (1L << 32) / CHUNK : POINTS_F32 / CHUNK;
    worst w[ISA_COUNT] = {0};
#pragma omp parallel for schedule(dynamic, 16)
    for (long c = 0; c < chunks; c++) {
        float x[CHUNK], y[CHUNK];
        worst mine[ISA_COUNT] = {0};
        (all ? all32 : points32)(r, c, x, y);
        chunk32(r, x, y, mine);
#pragma omp critical
        for (int i = 0; i < ISA_COUNT; i++)
            keep_worst(w + i, mine[i].ulp, mine[i].x, mine[i].y, mine[i].got);
    }
    return judge(r, "float32", r->bound32, w);
}

static int measure64(const rule *r)
{
    worst w[ISA_COUNT] = {0};
#pragma omp parallel for schedule(dynamic, 1)
    for (long c = 0; c < POINTS_F64 / CHUNK; c++) {
        static _Thread_local double x[CHUNK], y[CHUNK];
        worst mine[ISA_COUNT] = {0};
        points64(r, c, x, y);
        chunk64(r, x, y, mine);
#pragma omp critical
        for (int i = 0; i < ISA_COUNT; i++)
            keep_worst(w + i, mine[i].ulp, mine[i].x, mine[i].y, mine[i].got);
    }
    return judge(r, "float64", r->bound64, w);
}

/* Gradients, operands dy = 1 and x, below the zero of the slope. */
static const rule slopes[] = {
    RULE(gelu_gradient, -14, -2, 5.0, 5.0),
    RULE(gelu_gradient, -39, -13, 5.0, 5.0),
    RULE(gelu_tanh_gradient, -10, -2, 7.0, 7.0),
    RULE(gelu_tanh_gradient, -22, -9, 7.0, 7.0),
};

/* On chunks of the range: those of odd number, from the first that has no specials. */
static int measure_slope(const rule *r)
{
    _Static_assert(SPECIALS * SPECIALS <= 3 * CHUNK, "specials end in chunk 2");
    worst w32[ISA_COUNT] = {0}, w64[ISA_COUNT] = {0};
    for (long c = 3; c < 35; c += 2) {
        static float one32[CHUNK], x32[CHUNK];
        static double one64[CHUNK], x64[CHUNK];
        points32(r, c, one32, x32), points64(r, c, one64, x64);
        for (int i = 0; i < CHUNK; i++) one64[i] = one32[i] = 1;
        chunk32(r, one32, x32, w32);
        if (LDBL_MANT_DIG > DBL_MANT_DIG) chunk64(r, one64, x64, w64);
    }
    return judge(r, "float32", r->bound32, w32) + judge(r, "float64", r->bound64, w64);
}

enum { RULES = sizeof rules / sizeof *rules };

static void float32_is_accurate(void **state)
{
    (void)state;
    int bad = 0;
    for (int i = 0; i < RULES; i++) bad += measure32(rules + i);
    assert_int_equal(bad, 0);
}

static void float64_is_accurate(void **state)
{
    (void)state;
    if (LDBL_MANT_DIG <= DBL_MANT_DIG) skip_since("long double is double");
    int bad = 0;
    for (int i = 0; i < RULES; i++) bad += measure64(rules + i);
    assert_int_equal(bad, 0);
}

static void slopes_are_accurate(void **state)
{
    (void)state;
    int bad = 0;
    for (size_t i = 0; i < sizeof slopes / sizeof *slopes; i++) bad += measure_slope(slopes + i);
    assert_int_equal(bad, 0);
}

/* 0 and 1 at infinity, also where the factor of the power of e is infinite; NaN for NaN. */
static void slopes_have_limits(void **state)
{
    (void)state;
    static const char *const names[] = {"gelu_gradient", "gelu_tanh_gradient"};
    const float one32[] = {1, 1, 1, 1, 1}, x32[] = {-INFINITY, -FLT_MAX, FLT_MAX, INFINITY, NAN};
    const double one64[] = {1, 1, 1, 1, 1}, x64[] = {-INFINITY, -DBL_MAX, DBL_MAX, INFINITY, NAN};
    for (int isa = 0; isa <= isa_best(); isa++)
        for (int k = 0; k < 2; k++) {
            float y32[5];
            double y64[5];
            run(names[k], isa, ED_FLOAT32, y32, one32, x32, 5);
            run(names[k], isa, ED_FLOAT64, y64, one64, x64, 5);
            for (int i = 0; i < 4; i++) assert_true(y32[i] == i / 2 && y64[i] == i / 2);
            assert_true(isnan(y32[4]) && isnan(y64[4]));
        }
}

/*
 * The same number gives the same bits in every lane, whatever stands beside it (slow paths
 * included), and in a partial vector.
 */
static void place_does_not_matter(void **state)
{
    (void)state;
    enum { WIDE = 16 };
    uint64_t random = 1;
    for (int isa = 0; isa <= isa_best(); isa++)
        for (int r = 0; r < RULES; r++)
            for (int s = 0; s < SPECIALS; s++) {
                float first = 0, x[WIDE], y[WIDE], got[WIDE];
                for (int lane = 0; lane < WIDE; lane++) {
                    for (int i = 0; i < WIDE; i++) {
                        uint64_t bits = lane ? random_bits(&random) : 0;
                        memcpy(x + i, &bits, 4), memcpy(y + i, (char *)&bits + 4, 4);
                    }
                    x[lane] = (float)specials[s], y[lane] = 1.25f;
                    run(rules[r].name, isa, ED_FLOAT32, got, x, y, lane % 2 ? WIDE : lane + 1);
                    if (lane == 0) first = got[0];
                    assert_true(isnan(first) ? isnan(got[lane]) : !memcmp(&first, got + lane, 4));
                }
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(place_does_not_matter), cmocka_unit_test(float32_is_accurate),
        cmocka_unit_test(float64_is_accurate),   cmocka_unit_test(slopes_are_accurate),
        cmocka_unit_test(slopes_have_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
