/*
 * The functions of mathematics on vectors (vector_base.h): vexp(x), vpow(x, y), ... for vf32 and
 * vf64.
 *
 * Two sources. The hot functions of float32 are written here and inlined into the loop that uses
 * them: a called function spills the registers around it and computes the same for one vector at a
 * time. The rest is SLEEF's (1.0 ULP versions) for the set at hand, and libm lane by lane on
 * machines that aren't known here. No function sets errno or looks at a lane's neighbours; a slow
 * path, where there is one, computes the same for a lane whoever takes it.
 *
 * Every function follows C's Annex F at the borders: signed zeros, infinities, NaN, denormals in
 * and out. tests/test_accuracy.c holds the bound of each in ULP and measures it.
 *
 * The polynomials are minimax in the relative error of the function's value (Remez exchange in 160
 * bits, coefficients rounded at the end to the type they are used in).
 */
#ifndef EDDY_OPS_KERNELS_VECTOR_H
#define EDDY_OPS_KERNELS_VECTOR_H

#include "ops/kernels/pieces.h"
#include "ops/kernels/vector_base.h"

/* The called functions: VECTOR_CALL1(exp, u10) defines call_exp_f32 and call_exp_f64. */
#if defined(VECTOR_AVX512) || defined(VECTOR_AVX2) || defined(VECTOR_SSE2) || defined(VECTOR_NEON)
#include <sleef.h>
#if defined(VECTOR_AVX512)
#define VECTOR_CALLED_F32(name, ulp) Sleef_##name##f16_##ulp##avx512f
#define VECTOR_CALLED_F64(name, ulp) Sleef_##name##d8_##ulp##avx512f
#define VECTOR_NATIVE_F32            __m512
#define VECTOR_NATIVE_F64            __m512d
#elif defined(VECTOR_AVX2)
#define VECTOR_CALLED_F32(name, ulp) Sleef_##name##f8_##ulp##avx2
#define VECTOR_CALLED_F64(name, ulp) Sleef_##name##d4_##ulp##avx2
#define VECTOR_NATIVE_F32            __m256
#define VECTOR_NATIVE_F64            __m256d
#elif defined(VECTOR_NEON)
#define VECTOR_CALLED_F32(name, ulp) Sleef_##name##f4_##ulp##advsimd
#define VECTOR_CALLED_F64(name, ulp) Sleef_##name##d2_##ulp##advsimd
#define VECTOR_NATIVE_F32            float32x4_t
#define VECTOR_NATIVE_F64            float64x2_t
#else
#define VECTOR_CALLED_F32(name, ulp) Sleef_##name##f4_##ulp##sse2
#define VECTOR_CALLED_F64(name, ulp) Sleef_##name##d2_##ulp##sse2
#define VECTOR_NATIVE_F32            __m128
#define VECTOR_NATIVE_F64            __m128d
#endif
#define VECTOR_CALL1(name, ulp)                                                                    \
    VECTOR_INLINE vf32 call_##name##_f32(vf32 x)                                                   \
    {                                                                                              \
        return (vf32)VECTOR_CALLED_F32(name, ulp)((VECTOR_NATIVE_F32)x);                           \
    }                                                                                              \
    VECTOR_INLINE vf64 call_##name##_f64(vf64 x)                                                   \
    {                                                                                              \
        return (vf64)VECTOR_CALLED_F64(name, ulp)((VECTOR_NATIVE_F64)x);                           \
    }
#define VECTOR_CALL2(name, ulp)                                                                    \
    VECTOR_INLINE vf32 call_##name##_f32(vf32 x, vf32 y)                                           \
    {                                                                                              \
        return (vf32)VECTOR_CALLED_F32(name, ulp)((VECTOR_NATIVE_F32)x, (VECTOR_NATIVE_F32)y);     \
    }                                                                                              \
    VECTOR_INLINE vf64 call_##name##_f64(vf64 x, vf64 y)                                           \
    {                                                                                              \
        return (vf64)VECTOR_CALLED_F64(name, ulp)((VECTOR_NATIVE_F64)x, (VECTOR_NATIVE_F64)y);     \
    }
#else
VECTOR_INLINE vf32 each1_f32(vf32 x, float (*f)(float))
{
    for (int i = 0; i < VECTOR_F32; i++) x[i] = f(x[i]);
    return x;
}
VECTOR_INLINE vf64 each1_f64(vf64 x, double (*f)(double))
{
    for (int i = 0; i < VECTOR_F64; i++) x[i] = f(x[i]);
    return x;
}
VECTOR_INLINE vf32 each2_f32(vf32 x, vf32 y, float (*f)(float, float))
{
    for (int i = 0; i < VECTOR_F32; i++) x[i] = f(x[i], y[i]);
    return x;
}
VECTOR_INLINE vf64 each2_f64(vf64 x, vf64 y, double (*f)(double, double))
{
    for (int i = 0; i < VECTOR_F64; i++) x[i] = f(x[i], y[i]);
    return x;
}
#define VECTOR_CALL1(name, ulp)                                                                    \
    VECTOR_INLINE vf32 call_##name##_f32(vf32 x)                                                   \
    {                                                                                              \
        return each1_f32(x, name##f);                                                              \
    }                                                                                              \
    VECTOR_INLINE vf64 call_##name##_f64(vf64 x)                                                   \
    {                                                                                              \
        return each1_f64(x, name);                                                                 \
    }
#define VECTOR_CALL2(name, ulp)                                                                    \
    VECTOR_INLINE vf32 call_##name##_f32(vf32 x, vf32 y)                                           \
    {                                                                                              \
        return each2_f32(x, y, name##f);                                                           \
    }                                                                                              \
    VECTOR_INLINE vf64 call_##name##_f64(vf64 x, vf64 y)                                           \
    {                                                                                              \
        return each2_f64(x, y, name);                                                              \
    }
#endif

VECTOR_CALL1(exp, u10)
VECTOR_CALL1(expm1, u10)
VECTOR_CALL1(log, u10)
VECTOR_CALL1(log1p, u10)
VECTOR_CALL1(log2, u10)
VECTOR_CALL1(sin, u10)
VECTOR_CALL1(cos, u10)
VECTOR_CALL1(tan, u10)
VECTOR_CALL1(asin, u10)
VECTOR_CALL1(acos, u10)
VECTOR_CALL1(atan, u10)
VECTOR_CALL1(sinh, u10)
VECTOR_CALL1(cosh, u10)
VECTOR_CALL1(tanh, u10)
VECTOR_CALL1(asinh, u10)
VECTOR_CALL1(acosh, u10)
VECTOR_CALL1(atanh, u10)
VECTOR_CALL1(erf, u10)
VECTOR_CALL1(erfc, u15)
VECTOR_CALL2(pow, u10)
VECTOR_CALL2(atan2, u10)
VECTOR_CALL1(exp2, u10)
VECTOR_CALL1(log10, u10)
VECTOR_CALL1(cbrt, u10)
VECTOR_CALL1(tgamma, u10)
VECTOR_CALL2(hypot, u05)

/* c[0] + c[1] x + ... by Horner's rule; n is a constant wherever this is used. */
VECTOR_INLINE vf32 polynomial(vf32 x, const float *c, int n)
{
    vf32 y = vset_f32(c[n - 1]);
    for (int i = n - 2; i >= 0; i--) y = vfma_f32(y, x, vset_f32(c[i]));
    return y;
}
#define POLYNOMIAL(x, ...)                                                                         \
    polynomial(x, (const float[]){__VA_ARGS__}, sizeof((const float[]){__VA_ARGS__}) / 4)

/* The same in float64. */
VECTOR_INLINE vf64 polynomial_f64(vf64 x, const double *c, int n)
{
    vf64 y = vset_f64(c[n - 1]);
    for (int i = n - 2; i >= 0; i--) y = vfma_f64(y, x, vset_f64(c[i]));
    return y;
}
#define POLYNOMIAL_F64(x, ...)                                                                     \
    polynomial_f64(x, (const double[]){__VA_ARGS__}, sizeof((const double[]){__VA_ARGS__}) / 8)

/*
 * exp: x = n ln 2 + r with |r| <= ln 2 / 2, e^x = 2^n e^r.
 *
 * Adding EXP_MAGIC rounds to integers, and leaves n + 127, the exponent of 2^n, in the lowest bits;
 * all ways to e^x use it, so that a number half-way between two n takes the same one. ln 2 is taken
 * in two parts, the first of twelve bits, so that n * LN2_HIGH is exact and x - n * LN2_HIGH too.
 */
#define EXP_MAGIC (0x1.8p23f + 127)
#define LN2_HIGH  0x1.62ep-1f
#define LN2_LOW   0x1.0bfbe8p-15f

/* (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2. */
VECTOR_INLINE vf32 exp_rest(vf32 r)
{
    return POLYNOMIAL(r, 0x1.fffffep-2f, 0x1.5554b0p-3f, 0x1.555674p-5f, 0x1.122776p-7f,
                      0x1.6bebfep-10f);
}

/*
 * vexp_parts: e^(high + low) = (1 + m) 2^n with -0.3 < m < 0.5, high down to -150 in float32
 * and -1400 in float64, low much nearer to 0: the power of a number that needs two parts. Its
 * product with x is vscale(vfma(x, m, x), n): 1 + m need not be rounded, and the result is rounded
 * once, also to a denormal. What is exact of r is the last to be added to m.
 */
VECTOR_INLINE vf32 vexp_parts_f32(vf32 high, vf32 low, vf32 *n)
{
    vf32 magic = vset_f32(EXP_MAGIC);
    *n = vfma_f32(high + low, vset_f32(0x1.715476p0f), magic) - magic;
    vf32 exact = vfma_f32(*n, vset_f32(-LN2_HIGH), high);
    low = vfma_f32(*n, vset_f32(-LN2_LOW), low);
    vf32 r = exact + low;
    return exact + vfma_f32(r * r, exp_rest(r), low);
}

/* Here n ln 2's first part has 32 bits. */
VECTOR_INLINE vf64 vexp_parts_f64(vf64 high, vf64 low, vf64 *n)
{
    vf64 magic = vset_f64(0x1.8p52);
    *n = vfma_f64(high + low, vset_f64(0x1.71547652b82fep0), magic) - magic;
    vf64 exact = vfma_f64(*n, vset_f64(-0x1.62e42feep-1), high);
    low = vfma_f64(*n, vset_f64(-0x1.a39ef35793c76p-33), low);
    vf64 r = exact + low;
    vf64 p = POLYNOMIAL_F64(r, 0x1.0000000000001p-1, 0x1.555555555554dp-3, 0x1.5555555553d49p-5,
                            0x1.11111111144f3p-7, 0x1.6c16c178971cfp-10, 0x1.a01a018c14645p-13,
                            0x1.a019b8de1a62bp-16, 0x1.71de5a566cdcap-19, 0x1.2891c0467346cp-22,
                            0x1.aeab2dc827379p-26);
    return exact + vfma_f64(r * r, p, low);
}
#define vexp_parts(high, low, n) VECTOR_CHOOSE(vexp_parts, high)(high, low, n)

/* Beyond the limits the result is inf and 0, which costs no more than others; within, 2^n p is
 * rounded once, also to a denormal. */
#define EXP_LEAST (-104)
VECTOR_INLINE vf32 exp_everywhere(vf32 x)
{
#if defined(VECTOR_AVX512)
    /* below EXP_LEAST n and m are anything, NaN too: the mask makes them 0 */
    const __mmask16 some = _mm512_cmp_ps_mask((__m512)x, _mm512_set1_ps(EXP_LEAST), _CMP_NLT_UQ);
    vf32 n, m = vexp_parts_f32(vlesser_f32(vset_f32(89), x), vset_f32(0), &n);
    return (vf32)_mm512_maskz_scalef_ps(some, (__m512)(m + 1), (__m512)n);
#else
    vf32 n, m = vexp_parts_f32(vclamp_f32(x, EXP_LEAST, 89), vset_f32(0), &n);
    return vscale_f32((vf32)((vi32)(m + 1) & ~(vi32)(x < EXP_LEAST)), n);
#endif
}

/*
 * The same for a power e^x that stays a normal number, |x| <= EXP_NEAR, in fewer steps. exp_whole:
 * the whole n next to x / ln 2, and 2^n. What is exact of x - n ln 2 and the low rest of it give
 * e^x = (1 + exact + exp_rise) 2^n.
 */
#define EXP_NEAR 87
/* For 1 / (1 + e^-x), which is 1 from 17 on: x is limited to this, so that products of e^-x with
 * the small rests stay normal. */
#define EXP_NONE 60
VECTOR_INLINE vf32 exp_whole(vf32 x, vf32 *power)
{
    vf32 magic = vset_f32(EXP_MAGIC), t = vfma_f32(x, vset_f32(0x1.715476p0f), magic);
    *power = (vf32)((vu32)t << 23);
    return t - magic;
}

VECTOR_INLINE vf32 exp_rise(vf32 exact, vf32 low)
{
    vf32 r = exact + low;
    return vfma_f32(r * r, exp_rest(r), low);
}

/* The bits of vexp for x <= 40, as of what a maximum was taken from, without a branch: the power is
 * 2^64 times 2^n, which never is denormal, until the end. The lowest bits of EXP_MAGIC + 64 are
 * those of n + 127 + 64. */
VECTOR_INLINE vf32 vexp_down_f32(vf32 x)
{
#if defined(VECTOR_AVX512)
    return exp_everywhere(x);
#else
    vf32 magic = vset_f32(EXP_MAGIC + 64), a = vgreater_f32(vset_f32(EXP_LEAST), x);
    vf32 t = vfma_f32(a, vset_f32(0x1.715476p0f), magic), n = t - magic;
    vf32 exact = vfma_f32(n, vset_f32(-LN2_HIGH), a), rise = exp_rise(exact, n * -LN2_LOW);
    const vf32 some = (vf32)((vi32)(exact + rise + 1) & ~(vi32)(x < EXP_LEAST));
    return some * (vf32)((vu32)t << 23) * 0x1p-64f;
#endif
}

/* x - n ln 2 for an n of some tens. A fused product with all digits of ln 2 is exact. */
VECTOR_INLINE vf32 exp_reduce(vf32 x, vf32 n)
{
#if defined(VECTOR_FMA)
    return vfma_f32(n, vset_f32(-0x1.62e43p-1f), x);
#else
    return (x - n * LN2_HIGH) - n * LN2_LOW;
#endif
}

/* Returns what is exact of x - n ln 2. */
VECTOR_INLINE vf32 exp_near(vf32 x, vf32 *rise, vf32 *power)
{
    vf32 n = exp_whole(x, power), exact = vfma_f32(n, vset_f32(-LN2_HIGH), x);
    *rise = exp_rise(exact, n * -LN2_LOW);
    return exact;
}

static __attribute__((noinline)) vf32 exp_far(vf32 x)
{
    return exp_everywhere(x);
}

/* With AVX-512 the way for all numbers takes as few steps. */
VECTOR_INLINE vf32 vexp_f32(vf32 x)
{
#if defined(VECTOR_AVX512)
    return exp_everywhere(x);
#else
    vf32 rise, power, exact = exp_near(x, &rise, &power), y = (exact + rise + 1) * power;
    const vi32 near = vabs_f32(x) <= EXP_NEAR;
    if (__builtin_expect(vall_i32(near), 1)) return y;
    return exp_far(x);
#endif
}

/*
 * Polynomials in pieces (ops/kernels/pieces.h), where the set looks numbers up. VPIECE: a table's
 * function of 0 <= a <= its end. VPIECE_ODD: of one that is a itself near 0, which is added last.
 */
#if defined(VECTOR_TABLE)
typedef const float piece_table[VECTOR_TABLE];

VECTOR_INLINE vf32 piece_slope(piece_table *table, int degree, vi32 index, vf32 off)
{
    vf32 y = vlookup_f32(table[degree + 1], index);
    for (int k = degree; k > 1; k--) y = vfma_f32(y, off, vlookup_f32(table[k], index));
    return y;
}

VECTOR_INLINE vf32 piece_value(piece_table *table, int degree, vi32 index, vf32 a)
{
    const vf32 off = a - vlookup_f32(table[0], index);
    return vfma_f32(piece_slope(table, degree, index, off), off, vlookup_f32(table[1], index));
}

VECTOR_INLINE vf32 piece_value_odd(piece_table *table, int degree, vi32 index, vf32 a)
{
    const vf32 off = a - vlookup_f32(table[0], index);
    const vi32 itself = (vi32)a & (vi32)(off == a);
    const vf32 most = (vf32)((vi32)vlookup_f32(table[1], index) | itself);
    return vfma_f32(piece_slope(table, degree, index, off), off, most);
}

#define PIECE_INDEX(NAME, a)                                                                       \
    ((vi32)vfma_f32(a, vset_f32(NAME##_IN_1), vset_f32(NAME##_START)) >> NAME##_SHIFT)
#define PIECE_DEGREE(table)    ((int)(sizeof(table) / sizeof *(table)) - 2)
#define VPIECE(table, NAME, a) piece_value(table, PIECE_DEGREE(table), PIECE_INDEX(NAME, a), a)
#define VPIECE_ODD(table, NAME, a)                                                                 \
    piece_value_odd(table, PIECE_DEGREE(table), PIECE_INDEX(NAME, a), a)
#endif

#define TYPE f32
#include "ops/kernels/sigmoid.typed.h"
#define TYPE f64
#include "ops/kernels/sigmoid.typed.h"

/* Where 1 + e^x is 1, below the table's end and -EXP_NEAR, sigmoid(x) is e^x; softplus too. */
#if defined(SIGMOID_PIECES_END)
VECTOR_INLINE vf32 vsigmoid_f32(vf32 x)
{
    const vf32 a = vlesser_f32(vset_f32(SIGMOID_PIECES_END), vabs_f32(x));
    const vf32 q = VPIECE(sigmoid_pieces, SIGMOID_PIECES, a);
    const vf32 y = vselect_f32(x < 0, q, 1 - q);
    const vi32 near = ~(x < -SIGMOID_PIECES_END);
    if (__builtin_expect(vall_i32(near), 1)) return y;
    return vselect_f32(near, y, exp_far(x));
}
#else
/*
 * 1 / (1 + e) for e = e^-x = (1 + m) 2^n. The quotient y by d, the rounded sum, is put right by
 * what is left of 1 - y (1 + e). y 2^n is exact, and so are 1/2 less y and 1/2 less y 2^n, but for
 * a quarter of an ULP.
 */
VECTOR_INLINE vf32 vsigmoid_f32(vf32 x)
{
#if defined(VECTOR_FMA)
    vf32 rise, power, m = exp_near(-vlesser_f32(vset_f32(EXP_NONE), x), &rise, &power);
    vf32 d = vfma_f32(m + rise, power, 1 + power), y = 1 / d, part = y * power;
    vf32 left = vfma_f32(-part, rise, vfma_f32(-part, m, (0.5f - y) + (0.5f - part)));
    y = vfma_f32(y, left, y);
    const vi32 near = ~(x < -EXP_NEAR);
    if (__builtin_expect(vall_i32(near), 1)) return y;
    return vselect_f32(near, y, exp_far(x));
#else
    return sigmoid_by_power_f32(x);
#endif
}
#endif

#if defined(TANH_PIECES_END)
VECTOR_INLINE vf32 vtanh_f32(vf32 x)
{
    const vf32 a = vlesser_f32(vset_f32(TANH_PIECES_END), vabs_f32(x));
    return vsign_f32(VPIECE_ODD(tanh_pieces, TANH_PIECES, a), x);
}
#else
/*
 * tanh: below 0.9 x + x P(x^2), with P around the middle, where its terms are small; from there on
 * 1 - 2 / (e^2|x| + 1), which is 1 from 10 on. The power, (1 + m) 2^n, is rounded after the 1 is
 * added.
 */
VECTOR_INLINE vf32 vtanh_f32(vf32 x)
{
    vf32 a = vlesser_f32(vset_f32(10), vabs_f32(x)), z = vfma_f32(a, a, vset_f32(-0.40625f));
    vf32 p = POLYNOMIAL(z, -0x1.dd4268p-4f, -0x1.f99334p-3f, 0x1.59f694p-4f, -0x1.e07b6ap-6f,
                        0x1.4e4384p-7f, -0x1.e2023ep-9f, 0x1.51950cp-10f);
    vf32 near = vfma_f32(a, p, a), past = a - 0.9f;
    vf32 power, n = exp_whole(2 * a, &power), r = exp_reduce(2 * a, n);
    vf32 m = vfma_f32(r * r, exp_rest(r), r), far = 1 - 2 / vfma_f32(m, power, power + 1);
    return vsign_f32(vselect_f32((vi32)past < 0, near, far), x);
}
#endif

VECTOR_INLINE vf64 vsigmoid_f64(vf64 x)
{
    return sigmoid_by_power_f64(x);
}

/*
 * log: x = 2^n m with 0.75 <= m < 1.5, log x = n ln 2 + log(1 + f), f = m - 1 in -0.25 .. 0.5.
 *
 * t = n LN2_HIGH is exact; what rounding t + f loses (0 where n is) goes to the small part, f^2
 * Q(f) + n LN2_LOW.
 */
VECTOR_INLINE vf32 log_sum(vf32 f, vf32 n)
{
    vf32 q =
        POLYNOMIAL(f, -0x1.p-1f, 0x1.5555a6p-2f, -0x1.000026p-2f, 0x1.996848p-3f, -0x1.54f1e0p-3f,
                   0x1.289824p-3f, -0x1.0d9498p-3f, 0x1.ac05a0p-4f, -0x1.6ff3c0p-5f);
    vf32 t = n * LN2_HIGH, high = t + f, low = f - (high - t);
    return high + vfma_f32(f * f, q, vfma_f32(n, vset_f32(LN2_LOW), low));
}

/* m and n of a positive normal number. */
VECTOR_INLINE vf32 log_split_near(vf32 x, vf32 *n)
{
    const vi32 whole = (vi32)((vu32)x - 0x3f400000) >> 23;
    *n = __builtin_convertvector(whole, vf32);
    return (vf32)((vu32)x - ((vu32)whole << 23));
}

/* m and n of a positive finite x. */
VECTOR_INLINE vf32 log_split(vf32 x, vf32 *n)
{
#if defined(VECTOR_AVX512)
    __m512 m = _mm512_getmant_ps((__m512)x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_src);
    *n = (vf32)_mm512_sub_ps(_mm512_getexp_ps((__m512)x), _mm512_getexp_ps(m));
    return (vf32)m;
#else
    const vi32 tiny = x < 0x1p-126f;
    const vf32 m = log_split_near(vselect_f32(tiny, x * 0x1p24f, x), n);
    *n -= vselect_f32(tiny, vset_f32(24), vset_f32(0));
    return m;
#endif
}

/* log x where it is y for a positive finite x: -inf for 0, NaN for less; inf and NaN stay. */
VECTOR_INLINE vf32 log_border(vf32 x, vf32 y)
{
#if defined(VECTOR_AVX512)
    /* Four bits a kind of x, from the lowest: quiet and signalling NaN, 0, 1, -inf, inf, below 0,
     * above 0. */
    __m512i answers = _mm512_set1_epi32(0x03530422);
    return (vf32)_mm512_fixupimm_ps((__m512)y, (__m512)x, answers, 0);
#else
    vf32 border = vselect_f32(x < 0, vset_f32(NAN), x);
    border = vselect_f32(x == 0, vset_f32(-INFINITY), border);
    return vselect_f32((x > 0) & (x < INFINITY), y, border);
#endif
}

VECTOR_INLINE vf32 log_everywhere(vf32 x)
{
    vf32 n, m = log_split(x, &n);
    return log_border(x, log_sum(m - 1, n));
}

static __attribute__((noinline)) vf32 log_far(vf32 x)
{
    return log_everywhere(x);
}

/* As vexp. Adding 2^31 - 2^23 to the bits of positive normal numbers makes them the smallest signed
 * integers. */
VECTOR_INLINE vf32 vlog_f32(vf32 x)
{
#if defined(VECTOR_AVX512)
    return log_everywhere(x);
#else
    vf32 n, m = log_split_near(x, &n), y = log_sum(m - 1, n);
    const vi32 near = (vi32)((vu32)x + 0x7f800000) < -0x1000000;
    if (__builtin_expect(vall_i32(near), 1)) return y;
    return log_far(x);
#endif
}

/*
 * log1p: log u for u = 1 + x rounded, with what the rounding lost, c, added to f = m - 1 as c 2^-n.
 * For n = 0 that gives back x itself, so small x lose nothing.
 */
VECTOR_INLINE vf32 vlog1p_f32(vf32 x)
{
    vf32 u = 1 + x, n, m = log_split(u, &n);
    vf32 large = vselect_f32(x > 1, x, vset_f32(1)), small = vselect_f32(x > 1, vset_f32(1), x);
    vf32 c = vscale_f32(small - (u - large), -n);
    return vcopysign_f32(log_border(u, log_sum(m - 1 + c, n)), x);
}

/*
 * softplus: log(1 + e^x) = max(x, 0) + log1p(e), e = e^-|x|; log1p as above, but u = 1 + e is in 1
 * .. 2, so that its n is 0 or 1 and no border is near.
 */
#if defined(SOFTPLUS_PIECES_END)
VECTOR_INLINE vf32 vsoftplus_f32(vf32 x)
{
    const vf32 a = vlesser_f32(vset_f32(SOFTPLUS_PIECES_END), vabs_f32(x));
    const vf32 y = vmax_f32(x, vset_f32(0)) + VPIECE(softplus_pieces, SOFTPLUS_PIECES, a);
    const vi32 near = ~(x < -SOFTPLUS_PIECES_END);
    if (__builtin_expect(vall_i32(near), 1)) return y;
    return vselect_f32(near, y, exp_far(x));
}
#else
VECTOR_INLINE vf32 vsoftplus_f32(vf32 x)
{
    vf32 e = vexp_f32(-vabs_f32(x)), u = 1 + e, c = e - (u - 1);
    vi32 upper = u >= 1.5f;
    vf32 f = vselect_f32(upper, (0.5f * u - 1) + 0.5f * c, (u - 1) + c);
    return vmax_f32(x, vset_f32(0)) + log_sum(f, vselect_f32(upper, vset_f32(1), vset_f32(0)));
}
#endif

/*
 * erf: below ERF_BORDER x + x P(x^2), with P around the middle, where its terms are small; from
 * there on 1 - s^2 with s = (c + off Q(off))^2, off = |x| - ERF_BORDER. The border is a number for
 * which c^2, the root of its erfc, is all but a float. At 3.93 it has become 1.
 */
#if defined(ERF_PIECES_END)
VECTOR_INLINE vf32 verf_f32(vf32 x)
{
    const vf32 a = vlesser_f32(vset_f32(ERF_PIECES_END), vabs_f32(x));
    return vsign_f32(VPIECE_ODD(erf_pieces, ERF_PIECES, a), x);
}
#else
#define ERF_BORDER 0x1.1d8p0f
VECTOR_INLINE vf32 verf_f32(vf32 x)
{
    vf32 a = vlesser_f32(vset_f32(4), vabs_f32(x));
#if defined(VECTOR_FMA)
    vf32 z = vfma_f32(a, a, vset_f32(-0.5625f));
#else
    vf32 z = (a - 0.75f) * (a + 0.75f);
#endif
    vf32 p = POLYNOMIAL(z, -0x1.a848b6p-5f, -0x1.15de94p-2f, 0x1.378c7ep-4f, -0x1.1da54p-6f,
                        0x1.b20964p-9f, -0x1.1a1p-11f, 0x1.277f6p-14f);
    vf32 near = vfma_f32(a, p, a), off = a - ERF_BORDER;
    vf32 step =
        off * POLYNOMIAL(off, -0x1.a664a6p-2f, 0x1.60ddf2p-6f, 0x1.8b2d6ap-5f, -0x1.94690ep-8f,
                         -0x1.55cd5ap-8f, 0x1.db79e6p-10f, -0x1.71e4f2p-13f);
    vf32 s = vfma_f32(step, step + 0x1.29ff46p0f, vset_f32(0x1.5ae24ep-2f));
    vf32 far = vfma_f32(-s, s, vset_f32(1));
    return vsign_f32(vselect_f32((vi32)off < 0, near, far), x);
}
#endif

/*
 * sin, cos: x = n pi/2 + r with |r| <= pi/4, then the polynomial of sin or cos by n, its sign too.
 *
 * pi/2 is taken in parts. The products of the first ones (one where multiply-add is fused, else two
 * of twelve bits) are exact and so is what they leave, a multiple of 2^-24 below 1; r and the rest
 * in `low` have some 20 bits more than a float. That holds up to CIRCLE_LIMIT: a vector with a
 * larger lane, inf or NaN in it calls SLEEF, which reduces by as many digits of pi as the number
 * needs.
 */
#if defined(VECTOR_FMA)
#define CIRCLE_LIMIT 0x1p16f
#define CIRCLE_PARTS -0x1.921fb6p0f, 0x1.777a5cp-25f, 0x1.ee59dap-50f
enum { CIRCLE_EXACT = 1 };
#else
#define CIRCLE_LIMIT 0x1.8p12f
#define CIRCLE_PARTS -0x1.92p0f, -0x1.fb4p-12f, -0x1.444p-24f, -0x1.68c234p-39f
enum { CIRCLE_EXACT = 2 };
#endif

/* r, and in *low what is left of x - n pi/2. */
VECTOR_INLINE vf32 circle_reduce(vf32 x, vf32 *low, vi32 *quadrant)
{
    static const float part[] = {CIRCLE_PARTS};
    vf32 magic = vset_f32(0x1.8p23f), t = vfma_f32(x, vset_f32(0x1.45f306p-1f), magic);
    vf32 n = t - magic;
    *quadrant = (vi32)t;
    for (int i = 0; i < CIRCLE_EXACT; i++) x = vfma_f32(n, vset_f32(part[i]), x);
    vf32 next = vset_f32(part[CIRCLE_EXACT]), product = n * next, r = x + product;
    *low = (x - r) + product + vfma_f32(n, next, -product);
    *low = vfma_f32(n, vset_f32(part[CIRCLE_EXACT + 1]), *low);
    return r;
}

/* sin(r + low + quadrant pi/2) */
VECTOR_INLINE vf32 circle(vf32 r, vf32 low, vi32 quadrant)
{
    vf32 z = r * r;
    vf32 s = POLYNOMIAL(z, -0x1.555546p-3f, 0x1.110738p-7f, -0x1.9942d4p-13f);
    s = r + vfma_f32(z * r, s, low);
    vf32 c = POLYNOMIAL(z, 0x1.55554ap-5f, -0x1.6c0c30p-10f, 0x1.99eaa8p-16f);
    vf32 half = 0.5f * z, w = 1 - half;
    c = w + vfma_f32(z * z, c, vfma_f32(-r, low, (1 - w) - half));
    vf32 y = vselect_f32((quadrant & 1) != 0, c, s);
    return (vf32)((vu32)y ^ ((vu32)(quadrant & 2) << 30));
}

VECTOR_INLINE vf32 vsin_f32(vf32 x)
{
    vi32 quadrant, inside = vabs_f32(x) <= CIRCLE_LIMIT;
    vf32 low, r = circle_reduce(x, &low, &quadrant);
    vf32 y = vselect_f32(x == 0, x, circle(r, low, quadrant));
    if (__builtin_expect(vall_i32(inside), 1)) return y;
    return vselect_f32(inside, y, call_sin_f32(x));
}

VECTOR_INLINE vf32 vcos_f32(vf32 x)
{
    vi32 quadrant, inside = vabs_f32(x) <= CIRCLE_LIMIT;
    vf32 low, r = circle_reduce(x, &low, &quadrant);
    vf32 y = circle(r, low, quadrant + 1);
    if (__builtin_expect(vall_i32(inside), 1)) return y;
    return vselect_f32(inside, y, call_cos_f32(x));
}

/* The same formula for float64. */
VECTOR_INLINE vf64 vsoftplus_f64(vf64 x)
{
    return vmax_f64(x, vset_f64(0)) + call_log1p_f64(call_exp_f64(-vabs_f64(x)));
}

/*
 * Where SLEEF's functions end too early (intermediate results overflow or are flushed) another
 * formula takes over: sinh and cosh are e^|x| / 2 for large x, asinh and acosh log 2|x|, log1p x is
 * log x, and log1p x and tan x are x near 0.
 */
VECTOR_INLINE vf32 half_exp_f32(vf32 x)
{
    vf32 n, m = vexp_parts_f32(vclamp_f32(x, 0, 90), vset_f32(0), &n);
    return vscale_f32(1 + m, n - 1);
}
/* e^x / 2 = e^(x - 64 h) e^(64 (h - ln 2)) 2^63 for h near ln 2 with 64 h exact, for x of some
 * hundreds. */
VECTOR_INLINE vf64 half_exp_f64(vf64 x)
{
    vf64 e = call_exp_f64(vclamp_f64(x, 0, 715) - 64 * 0x1.62e42fep-1);
    return vfma_f64(e, vset_f64(-0x1.f473dc81c8119p-24), e) * 0x1p63;
}
/* log 2x for a positive x. */
VECTOR_INLINE vf32 log_double_f32(vf32 x)
{
    vf32 n, m = log_split(x, &n);
    return log_border(x, log_sum(m - 1, n + 1));
}
VECTOR_INLINE vf64 log_double_f64(vf64 x)
{
    return call_log_f64(x) + 0x1.62e42fefa39efp-1;
}

/* Defines v<name>_f<bits> as SLEEF's function, but as `repair` in lanes where `where` holds; both
 * expressions of x. */
#define VECTOR_REPAIR(name, bits, where, repair)                                                   \
    VECTOR_INLINE vf##bits v##name##_f##bits(vf##bits x)                                           \
    {                                                                                              \
        vf##bits y = call_##name##_f##bits(x);                                                     \
        vi##bits broken = where;                                                                   \
        if (__builtin_expect(vall_i##bits(~broken), 1)) return y;                                  \
        return vselect_f##bits(broken, repair, y);                                                 \
    }
VECTOR_REPAIR(sinh, 32, vabs(x) > 20, vcopysign(half_exp_f32(vabs(x)), x))
VECTOR_REPAIR(sinh, 64, vabs(x) > 600, vcopysign(half_exp_f64(vabs(x)), x))
VECTOR_REPAIR(cosh, 32, vabs(x) > 20, half_exp_f32(vabs(x)))
VECTOR_REPAIR(cosh, 64, vabs(x) > 600, half_exp_f64(vabs(x)))
VECTOR_REPAIR(asinh, 32, vabs(x) > 1e10f, vcopysign(log_double_f32(vabs(x)), x))
VECTOR_REPAIR(asinh, 64, vabs(x) > 1e10, vcopysign(log_double_f64(vabs(x)), x))
VECTOR_REPAIR(acosh, 32, x > 1e10f, log_double_f32(x))
VECTOR_REPAIR(acosh, 64, x > 1e10, log_double_f64(x))
VECTOR_REPAIR(log1p, 64, (x > 1e300) | (vabs(x) < 1e-300), vselect_f64(x > 1, call_log_f64(x), x))
VECTOR_REPAIR(tan, 64, vabs(x) < 1e-10, x)

/* The first or the second half of a vector of float32 as float64, and both back. By intrinsics:
 * compilers go through memory, and loading a vector that was just stored in parts waits. */
VECTOR_INLINE vf64 half_f64(vf32 x, const int half)
{
#if defined(VECTOR_AVX512)
    return (vf64)_mm512_cvtps_pd(half ? _mm512_extractf32x8_ps((__m512)x, 1)
                                      : _mm512_castps512_ps256((__m512)x));
#elif defined(VECTOR_AVX2)
    return (vf64)_mm256_cvtps_pd(half ? _mm256_extractf128_ps((__m256)x, 1)
                                      : _mm256_castps256_ps128((__m256)x));
#elif defined(VECTOR_SSE2)
    return (vf64)_mm_cvtps_pd(half ? _mm_movehl_ps((__m128)x, (__m128)x) : (__m128)x);
#else
    vf64 y;
    for (int i = 0; i < VECTOR_F64; i++) y[i] = x[half * VECTOR_F64 + i];
    return y;
#endif
}
VECTOR_INLINE vf32 halves_f32(vf64 first, vf64 second)
{
#if defined(VECTOR_AVX512)
    return (vf32)_mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps((__m512d)first)),
                                    _mm512_cvtpd_ps((__m512d)second), 1);
#elif defined(VECTOR_AVX2)
    return (vf32)_mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps((__m256d)first)),
                                      _mm256_cvtpd_ps((__m256d)second), 1);
#elif defined(VECTOR_SSE2)
    return (vf32)_mm_movelh_ps(_mm_cvtpd_ps((__m128d)first), _mm_cvtpd_ps((__m128d)second));
#else
    vf32 y;
    for (int i = 0; i < VECTOR_F32; i++)
        y[i] = (float)(i < VECTOR_F64 ? first[i] : second[i - VECTOR_F64]);
    return y;
#endif
}

/* The sums up to each lane within a vector; back: from each lane on. */
VECTOR_INLINE vf64 vsums_f64(vf64 v, const bool back)
{
    const vf64 zero = {0};
#if VECTOR_BYTES == 64
    if (back) {
        v += __builtin_shufflevector(v, zero, 1, 2, 3, 4, 5, 6, 7, 8);
        v += __builtin_shufflevector(v, zero, 2, 3, 4, 5, 6, 7, 8, 9);
        return v + __builtin_shufflevector(v, zero, 4, 5, 6, 7, 8, 9, 10, 11);
    }
    v += __builtin_shufflevector(zero, v, 7, 8, 9, 10, 11, 12, 13, 14);
    v += __builtin_shufflevector(zero, v, 6, 7, 8, 9, 10, 11, 12, 13);
    return v + __builtin_shufflevector(zero, v, 4, 5, 6, 7, 8, 9, 10, 11);
#elif VECTOR_BYTES == 32
    vf64 half; /* the sum of the half before, where it is to be added */
    if (back) {
        v += __builtin_shufflevector(v, zero, 1, 5, 3, 7);
        half = __builtin_shufflevector(v, zero, 2, 3, 4, 5);
        return v + __builtin_shufflevector(half, half, 0, 0, 2, 2);
    }
    v += __builtin_shufflevector(zero, v, 0, 4, 2, 6);
    half = __builtin_shufflevector(zero, v, 0, 1, 4, 5);
    return v + __builtin_shufflevector(half, half, 1, 1, 3, 3);
#else
    return v +
           (back ? __builtin_shufflevector(v, zero, 1, 2) : __builtin_shufflevector(zero, v, 0, 2));
#endif
}

#define TYPE f32
#include "ops/kernels/fmod.typed.h"
#define TYPE f64
#include "ops/kernels/fmod.typed.h"

/*
 * (m 2^n)^y for m and n of log_split, in float64: 2^t with t = y (n + log2 m). log2 m = s P(s^2)
 * with s = (m - 1) / (m + 1) has a relative error of 2^-42. t is a whole number, which goes to the
 * exponent, and a rest r; 2^r has a relative error of 2^-34. So nearly all of the error is that of
 * rounding to float32. t is limited to where the result is surely 0 or inf.
 */
VECTOR_INLINE vf64 pow_split(vf64 m, vf64 n, vf64 y)
{
    const vf64 s = (m - 1) / (m + 1), magic = vset_f64(0x1.8p52);
    const vf64 p =
        POLYNOMIAL_F64(s * s, 0x1.71547652b7e9bp+1, 0x1.ec709dcb4edacp-1, 0x1.2776bc593e788p-1,
                       0x1.a61e97e502713p-2, 0x1.46f371ad27f60p-2, 0x1.29c6fb13a40fcp-2);
    const vf64 t = vclamp_f64(y * vfma_f64(s, p, n), -200, 200), whole = t + magic;
    const vf64 power =
        POLYNOMIAL_F64(t - (whole - magic), 0x1.ffffffffabbebp-1, 0x1.62e42ff1162bfp-1,
                       0x1.ebfbe0a4bdd87p-3, 0x1.c6b08aaf30f4fp-5, 0x1.3b29dc40ce43bp-7,
                       0x1.5d8a708050b86p-10, 0x1.446a200eed14bp-13, 0x1.fe17915a79dd0p-17);
    return (vf64)((vu64)power + ((vu64)whole << 52));
}

/* p is |x|^y. A negative x gives it a sign or NaN; for zeros, infinities and NaN the called
 * function's result is taken. */
static __attribute__((noinline)) vf32 pow_border(vf32 x, vf32 y, vf32 p)
{
    const vf32 a = vabs_f32(x), half = 0.5f * y;
    const vf32 below = vselect_f32(vfloor_f32(half) == half, p, -p);
    p = vselect_f32(x < 0, vselect_f32(vfloor_f32(y) == y, below, vset_f32(NAN)), p);
    const vi32 near = (a > 0) & (a < INFINITY) & (vabs_f32(y) < INFINITY);
    return vall_i32(near) ? p : vselect_f32(near, p, call_pow_f32(x, y));
}

VECTOR_INLINE vf32 vpow_f32(vf32 x, vf32 y)
{
    vf32 n, m = log_split(vabs_f32(x), &n);
    const vf32 p = halves_f32(pow_split(half_f64(m, 0), half_f64(n, 0), half_f64(y, 0)),
                              pow_split(half_f64(m, 1), half_f64(n, 1), half_f64(y, 1)));
    /* By their bits: positive and finite, and finite. */
    const vi32 near = ((vu32)x - 1 < 0x7f7fffff) & ((vu32)y << 1 < 0xff000000);
    return __builtin_expect(vall_i32(near), 1) ? p : pow_border(x, y, p);
}
/* Where SLEEF says inf for finite numbers, which it does a little below the largest number,
 * (|x|^(y/2))^2. */
VECTOR_INLINE vf64 vpow_f64(vf64 x, vf64 y)
{
    vf64 p = call_pow_f64(x, y);
    vi64 early =
        (vabs_f64(p) == INFINITY) & (vabs_f64(x) < INFINITY) & (vabs_f64(y) < INFINITY) & (x != 0);
    if (__builtin_expect(vall_i64(~early), 1)) return p;
    vf64 root = call_pow_f64(vabs_f64(x), 0.5 * y);
    return vselect_f64(early, vcopysign_f64(root * root, p), p);
}

VECTOR_INLINE vf64 vexp_down_f64(vf64 x)
{
    return call_exp_f64(x);
}

/* Names for what needs nothing more. */
#define VECTOR_AS_CALLED(name, type)                                                               \
    VECTOR_INLINE v##type v##name##_##type(v##type x)                                              \
    {                                                                                              \
        return call_##name##_##type(x);                                                            \
    }
VECTOR_AS_CALLED(exp, f64)
VECTOR_AS_CALLED(log, f64)
VECTOR_AS_CALLED(sin, f64)
VECTOR_AS_CALLED(cos, f64)
VECTOR_AS_CALLED(tanh, f64)
VECTOR_AS_CALLED(erf, f64)
VECTOR_AS_CALLED(tan, f32)
VECTOR_AS_CALLED(expm1, f32)
VECTOR_AS_CALLED(expm1, f64)
VECTOR_AS_CALLED(log2, f32)
VECTOR_AS_CALLED(log2, f64)
VECTOR_AS_CALLED(asin, f32)
VECTOR_AS_CALLED(asin, f64)
VECTOR_AS_CALLED(acos, f32)
VECTOR_AS_CALLED(acos, f64)
VECTOR_AS_CALLED(atan, f32)
VECTOR_AS_CALLED(atan, f64)
VECTOR_AS_CALLED(atanh, f32)
VECTOR_AS_CALLED(atanh, f64)
VECTOR_AS_CALLED(erfc, f32)
VECTOR_AS_CALLED(erfc, f64)
VECTOR_AS_CALLED(exp2, f32)
VECTOR_AS_CALLED(exp2, f64)
VECTOR_AS_CALLED(log10, f32)
VECTOR_AS_CALLED(log10, f64)
VECTOR_AS_CALLED(cbrt, f32)
VECTOR_AS_CALLED(cbrt, f64)

#define vexp(x)      VECTOR_CHOOSE(vexp, x)(x)
#define vexp_down(x) VECTOR_CHOOSE(vexp_down, x)(x)
#define vexpm1(x)    VECTOR_CHOOSE(vexpm1, x)(x)
#define vlog(x)      VECTOR_CHOOSE(vlog, x)(x)
#define vlog1p(x)    VECTOR_CHOOSE(vlog1p, x)(x)
#define vlog2(x)     VECTOR_CHOOSE(vlog2, x)(x)
#define vlog10(x)    VECTOR_CHOOSE(vlog10, x)(x)
#define vexp2(x)     VECTOR_CHOOSE(vexp2, x)(x)
#define vcbrt(x)     VECTOR_CHOOSE(vcbrt, x)(x)
#define vsin(x)      VECTOR_CHOOSE(vsin, x)(x)
#define vcos(x)      VECTOR_CHOOSE(vcos, x)(x)
#define vtan(x)      VECTOR_CHOOSE(vtan, x)(x)
#define vasin(x)     VECTOR_CHOOSE(vasin, x)(x)
#define vacos(x)     VECTOR_CHOOSE(vacos, x)(x)
#define vatan(x)     VECTOR_CHOOSE(vatan, x)(x)
#define vsinh(x)     VECTOR_CHOOSE(vsinh, x)(x)
#define vcosh(x)     VECTOR_CHOOSE(vcosh, x)(x)
#define vtanh(x)     VECTOR_CHOOSE(vtanh, x)(x)
#define vasinh(x)    VECTOR_CHOOSE(vasinh, x)(x)
#define vacosh(x)    VECTOR_CHOOSE(vacosh, x)(x)
#define vatanh(x)    VECTOR_CHOOSE(vatanh, x)(x)
#define verf(x)      VECTOR_CHOOSE(verf, x)(x)
#define verfc(x)     VECTOR_CHOOSE(verfc, x)(x)
#define vsigmoid(x)  VECTOR_CHOOSE(vsigmoid, x)(x)
#define vsoftplus(x) VECTOR_CHOOSE(vsoftplus, x)(x)
#define vpow(x, y)   VECTOR_CHOOSE(vpow, x)(x, y)
#define vfmod(x, y)  VECTOR_CHOOSE(vfmod, x)(x, y)
#define vatan2(y, x) VECTOR_CHOOSE(call_atan2, y)(y, x)
#define vhypot(x, y) VECTOR_CHOOSE(call_hypot, x)(x, y)

#endif
