/*
 * Special functions on vectors, for the loops of ops/special.simd.c: vlgamma(x), ... for vf32 and
 * vf64.
 *
 * All are computed in float64. Those of float32 take the two halves of their vector, have fewer
 * terms, an error below 2^-35, and round once. `whole` says that all digits of float64 are wanted;
 * it is a constant where it matters.
 *
 * Every function has formulas for the lanes of usual numbers. Lanes at the borders (poles,
 * infinities, NaN, denormals) get what ops/special_functions.h makes of them, one by one. A formula
 * that no lane needs is skipped, and which one a lane takes depends on its own number alone.
 *
 * The functions are not inlined: they are long, and the machine overlaps calls that follow each
 * other.
 *
 * The polynomials are minimax in the relative error of what they stand for (Remez exchange in 200
 * bits, coefficients rounded at the end).
 */
#ifndef EDDY_OPS_SPECIAL_VECTORS_H
#define EDDY_OPS_SPECIAL_VECTORS_H

#include "ops/kernels/vector.h"
#include "ops/special_functions.h"
#include <stdbool.h>

#define VECTOR_APART static __attribute__((noinline, unused))

/* Defines v<name> of both types by a function of vf64 and `whole`. */
#define SPECIAL_VECTOR1(name, f)                                                                   \
    VECTOR_APART vf64 v##name##_f64(vf64 x)                                                        \
    {                                                                                              \
        return f(x, true);                                                                         \
    }                                                                                              \
    VECTOR_APART vf32 v##name##_f32(vf32 x)                                                        \
    {                                                                                              \
        return halves_f32(f(half_f64(x, 0), false), f(half_f64(x, 1), false));                     \
    }
#define SPECIAL_VECTOR2(name, f)                                                                   \
    VECTOR_APART vf64 v##name##_f64(vf64 a, vf64 b)                                                \
    {                                                                                              \
        return f(a, b, true);                                                                      \
    }                                                                                              \
    VECTOR_APART vf32 v##name##_f32(vf32 a, vf32 b)                                                \
    {                                                                                              \
        return halves_f32(f(half_f64(a, 0), half_f64(b, 0), false),                                \
                          f(half_f64(a, 1), half_f64(b, 1), false));                               \
    }

/* y, but f(x), f(a, b) in lanes that are not near. */
VECTOR_APART vf64 repaired1(vf64 x, vf64 y, vi64 near, double (*f)(double))
{
    for (int i = 0; i < VECTOR_F64; i++)
        if (!near[i]) y[i] = f(x[i]);
    return y;
}
VECTOR_APART vf64 repaired2(vf64 a, vf64 b, vf64 y, vi64 near, double (*f)(double, double))
{
    for (int i = 0; i < VECTOR_F64; i++)
        if (!near[i]) y[i] = f(a[i], b[i]);
    return y;
}

VECTOR_INLINE vf64 repair1(vf64 x, vf64 y, vi64 near, double (*f)(double))
{
    return __builtin_expect(vall_i64(near), 1) ? y : repaired1(x, y, near, f);
}
VECTOR_INLINE vf64 repair2(vf64 a, vf64 b, vf64 y, vi64 near, double (*f)(double, double))
{
    return __builtin_expect(vall_i64(near), 1) ? y : repaired2(a, b, y, near, f);
}

VECTOR_INLINE bool vnone(vi64 mask)
{
    return vall_i64(~mask);
}

/*
 * ln x of a positive normal number. For float32 x = 2^n m with 0.75 <= m < 1.5 and
 * ln m = 2 artanh(s), s = (m - 1) / (m + 1), with a relative error of 2^-49. Adding half a unit of
 * the exponent carries to it where m is at least 1.5.
 */
VECTOR_INLINE vf64 special_log(vf64 x, const bool whole)
{
    if (whole) return call_log_f64(x);
    const vu64 biased = ((vu64)x + ((uint64_t)1 << 51)) >> 52;
    const vf64 n = (vf64)(biased | (uint64_t)0x433 << 52) - (0x1p52 + 1023);
    const vf64 m = (vf64)((vu64)x - (biased << 52) + ((uint64_t)1023 << 52));
    const vf64 s = (m - 1) / (m + 1);
    const vf64 p = POLYNOMIAL_F64(s * s, 0x1.0000000000007p+1, 0x1.5555555544eb1p-1,
                                  0x1.999999ccb0a85p-2, 0x1.24922b5e6f202p-2, 0x1.c72cedd79dd9fp-3,
                                  0x1.720861a3a0149p-3, 0x1.646400f66c8abp-3);
    return vfma_f64(n, vset_f64(0x1.62e42fefa39efp-1), s * p);
}

/* ---- The gamma function ---------------------------------------------------------------------- */

/* For 0 < x < 2.5: (w - 1) (w - 2) P(w) for w = x, from 0.7 on; below w = x + 1, less ln x. */
VECTOR_INLINE vf64 lgamma_small(vf64 x, const bool whole)
{
    const vi64 below = x < 0.7;
    const vf64 middle = vselect_f64(below, vset_f64(0.5), vset_f64(1.5)), u = x - middle;
    const vf64 past = x - (middle - 0.5); /* w - 1, exact */
#if defined(VECTOR_FMA)
    const vf64 zeros = vfma_f64(past, past, -past);
#else
    const vf64 zeros = vselect_f64(past < 0.5, past * past - past, past * (past - 1));
#endif
    const vf64 p =
        whole
            ? POLYNOMIAL_F64(u, 0x1.eeb95b094c191p-2, -0x1.2aed059bd6082p-3, 0x1.01af62a2929d4p-4,
                             -0x1.007aa83cef9a5p-5, 0x1.133423527bd01p-6, -0x1.34dbda1338fabp-7,
                             0x1.64f0664fc7253p-8, -0x1.a50352c9ab424p-9, 0x1.f814b8da42e63p-10,
                             -0x1.313e776f20b20p-10, 0x1.750ac1ff4230ap-11, -0x1.cb47e6e65006ep-12,
                             0x1.1c775e3325c05p-12, -0x1.6213c36974607p-13, 0x1.bab2375320ff8p-14,
                             -0x1.17241ecaaa063p-14, 0x1.6180f7c0852b5p-15, -0x1.af9391d424ecap-16,
                             0x1.0469619e7bbddp-16, -0x1.8e744729ef894p-17, 0x1.40c647a2e59b5p-17,
                             -0x1.922ee303112d0p-19, -0x1.c5b6047a27f72p-20, -0x1.139f8902d8a58p-19,
                             0x1.83de9eac7b17ap-18, -0x1.ff68c26c1f46ap-20, -0x1.40712571d1e16p-19,
                             0x1.524d0e5a70e9cp-20, 0x1.e86feaedd318fp-21, -0x1.d0cf24ded1096p-21,
                             0x1.9dac8f237a7a8p-23)
            : POLYNOMIAL_F64(u, 0x1.eeb95b0947ebdp-2, -0x1.2aed059c2accbp-3, 0x1.01af62b44b37ep-4,
                             -0x1.007aa7d2fe8cap-5, 0x1.133416d2090ddp-6, -0x1.34dbfd9a0b2dep-7,
                             0x1.64f3d6c30672ap-8, -0x1.a4fec31513551p-9, 0x1.f79996540e04dp-10,
                             -0x1.31554afee1900p-10, 0x1.79f58e01821a8p-11, -0x1.ccd9847004260p-12,
                             0x1.fcc9724362292p-13, -0x1.47fd3b438672bp-13, 0x1.4aa94acc54624p-13,
                             -0x1.ab6fc8fb7d263p-14, -0x1.46a0673982f60p-17, 0x1.8bc6c3f8a3879p-16,
                             0x1.2e7cbe58af61ap-15, -0x1.669406dc07a2ap-15, 0x1.97a270d4bc43dp-17);
    if (vnone(below)) return vfma_f64(zeros, p, vset_f64(0)); /* +0 at both zeros */
    const vf64 ln = special_log(x, whole);
    return vfma_f64(zeros, p, (vf64)((vi64)-ln & below));
}

/* From 2.5 on by Stirling's formula, (x - 1/2) (ln x - 1) + ln(2 pi) / 2 - 1/2 + S(1 / x^2) / x; in
 * float64, where its terms cancel, up to 5 and 10 by (x - 2) P(x). */
VECTOR_INLINE vf64 lgamma_large(vf64 x, const bool whole)
{
    const vf64 r = 1 / x, r2 = r * r, ln = special_log(x, whole);
    const vf64 s =
        whole
            ? POLYNOMIAL_F64(r2, 0x1.5555555555555p-4, -0x1.6c16c16c0bcc6p-9, 0x1.a01a00d6ca069p-11,
                             -0x1.38122e4ea48f7p-11, 0x1.b84ea0d05f97ep-11, -0x1.c8538b73a1b9fp-10)
            : POLYNOMIAL_F64(r2, 0x1.5555555544484p-4, -0x1.6c16bbede7187p-9, 0x1.a010b3fdf749cp-11,
                             -0x1.3691688c7d237p-11, 0x1.9a214b4ba8f52p-11, -0x1.3fb942e35aa87p-10,
                             0x1.42e07e47b0b86p-10);
    const vf64 y = vfma_f64(x - 0.5, ln - 1, vfma_f64(s, r, vset_f64(0x1.acfe390c97d6ap-2)));
    if (!whole || vall_i64(x >= 10)) return y;
    const vf64 u = x - 3.75, v = x - 7.5;
    const vf64 lower =
        POLYNOMIAL_F64(u, 0x1.b2fff0216b630p-1, 0x1.859f17755f47dp-3, -0x1.5fc983b488e67p-6,
                       0x1.c4e8d84fbbb88p-9, -0x1.53d9b44e7dff8p-11, 0x1.15e66416537dap-13,
                       -0x1.e006f1c2c51bcp-16, 0x1.ae716df28b860p-18, -0x1.8c98290c3e933p-20,
                       0x1.74eb27c6d428ep-22, -0x1.643b2a470e781p-24, 0x1.588f061d6f503p-26,
                       -0x1.50121e8129cf6p-28, 0x1.4a59017c6763bp-30, -0x1.4ee8744fb1f5cp-32,
                       0x1.53e6407d8d0b8p-34, -0x1.1413442b92ff1p-36, 0x1.eeff2c161361fp-39,
                       -0x1.19aac4b71dcbcp-39, 0x1.3e0937a7acd0dp-41);
    const vf64 upper =
        POLYNOMIAL_F64(v, 0x1.5eb0be96016e8p+0, 0x1.ad9cf50608ffbp-4, -0x1.901aa12420bbap-8,
                       0x1.035e961ff560fp-11, -0x1.83b0d12d68f6bp-15, 0x1.3a09603c9189cp-18,
                       -0x1.0bf762b3b78f3p-21, 0x1.da4b83a981410p-25, -0x1.af377b569a9a0p-28,
                       0x1.9041a32948f62p-31, -0x1.79ad7bc0c9e7fp-34, 0x1.6923afa3b605ap-37,
                       -0x1.5c978eb3d4493p-40, 0x1.53869fa33b22ep-43, -0x1.54e48a046ee19p-46,
                       0x1.562cac67dc965p-49, -0x1.16208226ebdeep-52, 0x1.fabe1040111f3p-56,
                       -0x1.1671e64d630bap-57, 0x1.33817728627a5p-60);
    return vselect_f64(x < 10, (x - 2) * vselect_f64(x < 5, lower, upper), y);
}

VECTOR_INLINE vf64 lgamma_above(vf64 x, const bool whole)
{
    const vi64 small = x < 2.5;
    if (vall_i64(small)) return lgamma_small(x, whole);
    if (vnone(small)) return lgamma_large(x, whole);
    return vselect_f64(small, lgamma_small(x, whole), lgamma_large(x, whole));
}

/* For x < 0 by gamma(x) gamma(-x) = -pi / (x sin(pi x)), but where the result is near 0; in float64
 * too many digits would cancel. */
VECTOR_INLINE vf64 lgamma_of(vf64 x, const bool whole)
{
    const vf64 size = vabs_f64(x);
    const vi64 normal = (size >= 0x1p-1022) & (size < 0x1p1000), positive = x > 0;
    if (whole || vall_i64(positive))
        return repair1(x, lgamma_above(x, whole), normal & positive, special_lgamma);
    const vf64 rest = x - vrint_f64(x), y = lgamma_above(size, whole);
    const vf64 sine =
        rest * POLYNOMIAL_F64(rest * rest, 0x1.921fb54442b5fp+1, -0x1.4abbce6247ecbp+2,
                              0x1.466bc66dc7f4ap+1, -0x1.32d2c96c668b6p-1, 0x1.5076fea05e7e0p-4,
                              -0x1.e297cffdd225fp-8, 0x1.d4ec6c155be38p-12);
    const vf64 other = 0x1.250d048e7a1bdp+0 - special_log(vabs_f64(sine * x), whole) - y;
    const vi64 near = normal & (positive | ((rest != 0) & (vabs_f64(other) > 0x1p-12)));
    return repair1(x, vselect_f64(positive, y, other), near, special_lgamma);
}
SPECIAL_VECTOR1(lgamma, lgamma_of)
#define vlgamma(x) VECTOR_CHOOSE(vlgamma, x)(x)

/*
 * digamma for x > 0: below 8 that of x + 8 less 1 / x + ... + 1 / (x + 7), which is P'(x) / P(x)
 * for P = x (x + 1) ... (x + 7) = t (t + 6) (t + 10) (t + 12) with t = x (x + 7); from there on
 * ln x - 1 / (2 x) - D(1 / x^2) / x^2.
 */
VECTOR_INLINE vf64 digamma_above(vf64 x, const bool whole)
{
    const vi64 below = x < 8;
    const vf64 t = x * (x + 7), z = vselect_f64(below, x + 8, x);
    const vf64 p = t * POLYNOMIAL_F64(t, 720, 252, 28, 1);
    const vf64 slope = (2 * x + 7) * POLYNOMIAL_F64(t, 720, 504, 84, 4);
    const vf64 r = 1 / z, r2 = r * r, sum = slope / p;
    const vf64 d =
        POLYNOMIAL_F64(r2, 0x1.5555555555535p-4, -0x1.1111110fe7cdcp-7, 0x1.04103a2663f68p-8,
                       -0x1.11099d242b10cp-8, 0x1.eccb3c8c80e1dp-8, -0x1.22537eed38b0cp-6);
    return special_log(z, whole) - (vf64)((vi64)sum & below) - vfma_f64(r2, d, 0.5 * r);
}

/* By reflection for x < 0. Near its zeros only float64 has the digits that float32 wants. */
VECTOR_INLINE vf64 digamma_of(vf64 x, const bool whole)
{
    const double pi = 0x1.921fb54442d18p+1;
    const vf64 size = vabs_f64(x);
    const vi64 negative = x < 0;
    vi64 near = (size > 0x1p-1000) & (size < 0x1p1000);
    vf64 y;
    if (vnone(negative)) {
        y = digamma_above(x, whole);
    } else {
        const vf64 rest = x - vrint_f64(x);
        near &= ~(negative & (rest == 0));
        y = digamma_above(vselect_f64(negative, 1 - x, x), whole);
        y = vselect_f64(negative, -pi / call_tan_f64(pi * rest) + y, y);
    }
    if (!whole) near &= vabs_f64(y) > 0x1p-12;
    return repair1(x, y, near, special_digamma);
}
SPECIAL_VECTOR1(digamma, digamma_of)
#define vdigamma(x) VECTOR_CHOOSE(vdigamma, x)(x)

/* ---- Inverses of erf, erfc and the normal distribution --------------------------------------- */

/* The tails of Wichura's AS 241 (1988): minus the quantile of the normal distribution for a
 * probability tail / 2 <= 0.075. */
VECTOR_APART vf64 quantile_tail(vf64 tail)
{
    const vf64 r = vsqrt_f64(0x1.62e42fefa39efp-1 - call_log_f64(tail)), c = r - 1.6, e = r - 5;
    const vi64 far = r > 5;
    vf64 y = POLYNOMIAL_F64(c, 1.42343711074968357734e0, 4.63033784615654529590e0,
                            5.76949722146069140550e0, 3.64784832476320460504e0,
                            1.27045825245236838258e0, 2.41780725177450611770e-1,
                            2.27238449892691845833e-2, 7.74545014278341407640e-4) /
             POLYNOMIAL_F64(c, 1.0, 2.05319162663775882187e0, 1.67638483018380384940e0,
                            6.89767334985100004550e-1, 1.48103976427480074590e-1,
                            1.51986665636164571966e-2, 5.47593808499534494600e-4,
                            1.05075007164441684324e-9);
    if (vnone(far)) return y;
    const vf64 p = POLYNOMIAL_F64(e, 6.65790464350110377720e0, 5.46378491116411436990e0,
                                  1.78482653991729133580e0, 2.96560571828504891230e-1,
                                  2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                  2.71155556874348757815e-5, 2.01033439929228813265e-7);
    const vf64 q = POLYNOMIAL_F64(e, 1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1,
                                  1.48753612908506148525e-2, 7.86869131145613259100e-4,
                                  1.84631831751005468180e-5, 1.42151175831644588870e-7,
                                  2.04426310338993978564e-15);
    return vselect_f64(far, p / q, y);
}

/*
 * The y with erf y = q for a q whose distance to the nearer of -1 and 1 is `tail`, times 1 or,
 * where `normal` is set, sqrt(2). As Giles does it ("Approximating the erfinv function", 2011):
 * q E(w) for w = -ln(1 - q^2), up to w = 6.25.
 */
VECTOR_INLINE vf64 inverse_of(vf64 q, vf64 tail, const bool normal, const bool whole)
{
    const vf64 both = tail * (2 - tail); /* 1 - q^2 */
    const vi64 near = both > 0x1.fa1p-10;
    const vf64 w = -3.125 - special_log(both, whole);
    const vf64 e =
        whole
            ? POLYNOMIAL_F64(w, 0x1.a755e7c99ae86p+0, 0x1.ebd80d9b13df7p-3, -0x1.8b6c33114ee40p-8,
                             -0x1.8457694834111p-11, 0x1.879c2a20d6becp-13, -0x1.d1d1f7cb080c3p-17,
                             -0x1.6e8a53ee37246p-20, 0x1.c6b4f8af353adp-22, -0x1.f36ce541aad9ep-26,
                             -0x1.1a9eb6f45fadep-28, 0x1.20f4eb2355224p-30, -0x1.dc3dd2a0bebbfp-35,
                             -0x1.c8960c1cbc3fep-37, 0x1.723081da03e25p-39, -0x1.6d8ec747f383dp-44,
                             -0x1.68321c321a8f6p-45, 0x1.db32d1a6b396ap-48, -0x1.8b623630b7ff3p-55,
                             -0x1.2bd9b32653035p-53, 0x1.22b81a09ec2e1p-56, 0x1.51c645b3108f4p-60,
                             -0x1.a6207f59af589p-62, -0x1.310c25237a600p-70, 0x1.fe24ccdd1aff6p-69)
            : POLYNOMIAL_F64(w, 0x1.a755e7c994cd6p+0, 0x1.ebd80d9b0c1ecp-3, -0x1.8b6c32be26417p-8,
                             -0x1.845768e98dab7p-11, 0x1.879c12da831f7p-13, -0x1.d1d2294b115b3p-17,
                             -0x1.6e805621dc80cp-20, 0x1.c6b9e97648e95p-22, -0x1.f47dc83fa2170p-26,
                             -0x1.1b19e23f959ccp-28, 0x1.24ff19260caf4p-30, -0x1.cf70ebd9ec9e1p-35,
                             -0x1.07ad19d133e9ep-36, 0x1.5bae758496c0ap-39, 0x1.5726311e2eee0p-44,
                             -0x1.23009faf9de2fp-45);
    vf64 y = q * e;
    if (normal) y *= 0x1.6a09e667f3bcdp+0;
    if (__builtin_expect(vall_i64(near), 1)) return y;
    vf64 far = vselect_f64(tail > 0, quantile_tail(tail), vset_f64(INFINITY));
    if (!normal) far *= 0x1.6a09e667f3bcdp-1;
    far = vselect_f64(tail >= 0, vcopysign_f64(far, q), vset_f64(NAN));
    return vselect_f64(near, y, far);
}

VECTOR_INLINE vf64 erfinv_of(vf64 x, const bool whole)
{
    return inverse_of(x, 1 - vabs_f64(x), false, whole);
}
VECTOR_INLINE vf64 erfcinv_of(vf64 x, const bool whole)
{
    return inverse_of(1 - x, vselect_f64(x < 1, x, 2 - x), false, whole);
}
VECTOR_INLINE vf64 ndtri_of(vf64 p, const bool whole)
{
    return inverse_of(2 * (p - 0.5), 2 * vselect_f64(p < 0.5, p, 1 - p), true, whole);
}
SPECIAL_VECTOR1(erfinv, erfinv_of)
SPECIAL_VECTOR1(erfcinv, erfcinv_of)
SPECIAL_VECTOR1(ndtri, ndtri_of)
#define verfinv(x)  VECTOR_CHOOSE(verfinv, x)(x)
#define verfcinv(x) VECTOR_CHOOSE(verfcinv, x)(x)
#define vndtri(x)   VECTOR_CHOOSE(vndtri, x)(x)

/* ---- Bessel functions ------------------------------------------------------------------------ */

/* I(z), I(z) / z for order 1, up to 8: a polynomial in t = z^2. */
VECTOR_INLINE vf64 bessel_small(vf64 t, const int order, const bool whole)
{
    if (order)
        return whole ? POLYNOMIAL_F64(
                           t, 0x1.p-1, 0x1.p-4, 0x1.5555555555552p-9, 0x1.c71c71c71c7a1p-15,
                           0x1.6c16c16c160bdp-21, 0x1.845c8a0cf770dp-28, 0x1.27e4fb7658583p-35,
                           0x1.522a441145a31p-43, 0x1.2c9757300ba9dp-51, 0x1.ab82105c315b8p-60,
                           0x1.f17427e369adbp-69, 0x1.e2808965b1f49p-78, 0x1.8ad6af09d3745p-87,
                           0x1.1c186205d1c12p-96, 0x1.26fe3776b6c89p-106, 0x1.17ce3a14d873cp-115)
                     : POLYNOMIAL_F64(
                           t, 0x1.fffffffffcbc3p-2, 0x1.0000000058ebep-4, 0x1.555555499a54fp-9,
                           0x1.c71c72ed4c538p-15, 0x1.6c16b32b1a0fap-21, 0x1.845d534356b91p-28,
                           0x1.27de2931d6b84p-35, 0x1.527626026a2e9p-43, 0x1.2a71f31389e6ap-51,
                           0x1.bf85eaf548befp-60, 0x1.7eb5cf344349cp-69, 0x1.a3f09746938cep-77);
    return whole
               ? POLYNOMIAL_F64(t, 0x1.p+0, 0x1.p-2, 0x1.ffffffffffff3p-7, 0x1.c71c71c71c85cp-12,
                                0x1.c71c71c71a934p-18, 0x1.23456789c5e92p-24, 0x1.02e85c06c9221p-31,
                                0x1.522a4421927acp-39, 0x1.522a412671302p-47, 0x1.0b3153e965cbap-55,
                                0x1.55ff4d637b960p-64, 0x1.69e620802c99ap-73, 0x1.40a5d46c61c68p-82,
                                0x1.f2a3426b439afp-92, 0x1.108ab816b7cf1p-101,
                                0x1.1cb08ee97436ep-110)
               : POLYNOMIAL_F64(t, 0x1.0000000000304p+0, 0x1.fffffffff1eefp-3, 0x1.000000009e3adp-6,
                                0x1.c71c71b2d538dp-12, 0x1.c71c730ca15bfp-18, 0x1.23455bf846c89p-24,
                                0x1.02e8ddc568729p-31, 0x1.5222e7b45ac20p-39, 0x1.527146cdba6bdp-47,
                                0x1.0967932ce50d6p-55, 0x1.65238f20d6cfep-64, 0x1.19d4bd7fba411p-73,
                                0x1.150a95615a651p-81);
}

/* I(z) sqrt(z) e^-z for v = 1 / z - 1/16, from 8 on. */
VECTOR_INLINE vf64 bessel_large(vf64 v, const int order, const bool whole)
{
    if (order)
        return whole ? POLYNOMIAL_F64(
                           v, 0x1.8ebe783a84030p-2, -0x1.3f796198ee60ap-3, -0x1.cbc54df1d4578p-5,
                           -0x1.f89c23093fd17p-5, -0x1.ec8e1260ec3c5p-4, -0x1.76137476c1508p-2,
                           -0x1.ad8b0d58d65e2p+0, -0x1.727e7536c0d2dp+3, -0x1.91e72cac03d56p+6,
                           -0x1.2117835d6b502p+9, 0x1.d688a12f68801p+12, 0x1.e0239e30ddd80p+17,
                           0x1.7ed084064c954p+20, -0x1.00e933b35e8c3p+25, -0x1.dcbdb67a8a2a4p+28,
                           0x1.ae456258d61a2p+31, 0x1.4673435c7bba5p+36, -0x1.2d12087e8d5dcp+38,
                           -0x1.351a64965ec37p+43, 0x1.33a2e678b2c7bp+44, 0x1.70769fc3bee91p+49,
                           -0x1.4435e451fc969p+49, -0x1.9ac56f85a68a7p+54)
                     : POLYNOMIAL_F64(
                           v, 0x1.8ebe783a83e3cp-2, -0x1.3f7961988cf2cp-3, -0x1.cbc54d7e0c43cp-5,
                           -0x1.f89c5ed56ebaap-5, -0x1.ec928f4c6f022p-4, -0x1.75be4b2f09665p-2,
                           -0x1.ab5c345c53a18p+0, -0x1.80091dd5ba1e4p+3, -0x1.b4cd77150d338p+6,
                           -0x1.1efbdf63b576ap+8, 0x1.8e7ec1edce139p+13, 0x1.016ab815dee7ep+17,
                           -0x1.8fa102a33c827p+18, -0x1.c89ada2214b18p+22);
    return whole ? POLYNOMIAL_F64(
                       v, 0x1.9bd428ad249a5p-2, 0x1.b87969bb93aeap-5, 0x1.1daa72b5ce9e7p-5,
                       0x1.75e5ee752fa6dp-5, 0x1.8e513c51ffa20p-4, 0x1.3f499b573212bp-2,
                       0x1.7d0ce4bc8aeefp+0, 0x1.51d3674d9a7acp+3, 0x1.728726160f9edp+6,
                       0x1.030898641f84bp+9, -0x1.d728356cf37b1p+12, -0x1.ca687b6bcfa63p+17,
                       -0x1.58b0c70307766p+20, 0x1.fa5c79692ab38p+24, 0x1.bfb3937789d20p+28,
                       -0x1.b4cc8fd516e46p+31, -0x1.366854740acb5p+36, 0x1.3986ce206d2a4p+38,
                       0x1.2788318b96e53p+43, -0x1.46114da0f8c21p+44, -0x1.613853a11299cp+49,
                       0x1.5b1476362bef0p+49, 0x1.8a51b2c06c670p+54)
                 : POLYNOMIAL_F64(v, 0x1.9bd428ad24b3fp-2, 0x1.b87969ba1e3b2p-5,
                                  0x1.1daa725571ec5p-5, 0x1.75e627f8e44e6p-5, 0x1.8e550833b0ea6p-4,
                                  0x1.3ef7590b51817p-2, 0x1.7b2b2b38a81c1p+0, 0x1.5ef8a1b12d279p+3,
                                  0x1.9141099ebdb43p+6, 0x1.d352424a7a4abp+7,
                                  -0x1.7e96ee23eb09fp+13, -0x1.de3d4a7f1c89dp+16,
                                  0x1.8ff69bd73fd8ap+18, 0x1.b09f199eeb957p+22);
}

/* The modified Bessel function of order 0 or 1; scaled: times e^-|x|. From 720 on, in float64 too,
 * what is not scaled is infinite. */
VECTOR_INLINE vf64 bessel_of(vf64 x, const int order, const bool scaled, const bool whole)
{
    const vf64 size = vabs_f64(x), z = scaled ? size : vlesser_f64(vset_f64(720), size);
    const vi64 small = z <= 8;
    vf64 n, y = bessel_small(z * z, order, whole);
    if (!scaled && __builtin_expect(vall_i64(small), 1)) return order ? y * x : y;
    const vf64 m = vexp_parts_f64(scaled ? -vlesser_f64(vset_f64(8), z) : z, vset_f64(0), &n);
    if (scaled) y = vscale_f64(vfma_f64(y, m, y), n);
    if (order) y *= x;
    if (__builtin_expect(vall_i64(small), 1)) return y;
    const vf64 r = 1 / z;
    vf64 far = bessel_large(r - 0.0625, order, whole) * vsqrt_f64(r);
    if (!scaled) far = vscale_f64(vfma_f64(far, m, far), n);
    if (order) far = vcopysign_f64(far, x);
    if (order && scaled) far = vselect_f64(size == INFINITY, vset_f64(0), far);
    return vselect_f64(small, y, far);
}

VECTOR_INLINE vf64 bessel_i0_of(vf64 x, const bool whole)
{
    return bessel_of(x, 0, false, whole);
}
VECTOR_INLINE vf64 bessel_i1_of(vf64 x, const bool whole)
{
    return bessel_of(x, 1, false, whole);
}
VECTOR_INLINE vf64 bessel_i0e_of(vf64 x, const bool whole)
{
    return bessel_of(x, 0, true, whole);
}
VECTOR_INLINE vf64 bessel_i1e_of(vf64 x, const bool whole)
{
    return bessel_of(x, 1, true, whole);
}
SPECIAL_VECTOR1(bessel_i0, bessel_i0_of)
SPECIAL_VECTOR1(bessel_i1, bessel_i1_of)
SPECIAL_VECTOR1(bessel_i0e, bessel_i0e_of)
SPECIAL_VECTOR1(bessel_i1e, bessel_i1e_of)
#define vbessel_i0(x)  VECTOR_CHOOSE(vbessel_i0, x)(x)
#define vbessel_i1(x)  VECTOR_CHOOSE(vbessel_i1, x)(x)
#define vbessel_i0e(x) VECTOR_CHOOSE(vbessel_i0e, x)(x)
#define vbessel_i1e(x) VECTOR_CHOOSE(vbessel_i1e, x)(x)

/* ---- Zeta and polygamma ---------------------------------------------------------------------- */

/* q^-s: by products where s is 1, ..., 8, which `small` says of lanes. */
VECTOR_INLINE vf64 zeta_power(vf64 q, vf64 s, vi64 small, const bool whole)
{
    vf64 y = q;
    if (!vnone(small)) {
        const vi64 bits = (vi64)(vlesser_f64(vset_f64(8), s) + 0x1p52);
        const vf64 one = vset_f64(1), q2 = q * q, q4 = q2 * q2;
        y = vselect_f64((bits & 1) != 0, q, one) * vselect_f64((bits & 2) != 0, q2, one);
        y = 1 / (y * vselect_f64((bits & 4) != 0, q4, one) *
                 vselect_f64((bits & 8) != 0, q4 * q4, one));
        if (vall_i64(small)) return y;
    }
    if (whole) return vselect_f64(small, y, vpow_f64(q, -s));
    const vf64 t = vclamp_f64(-s * special_log(q, false), -700, 300); /* beyond float32 */
    vf64 n, m = vexp_parts_f64(t, vset_f64(0), &n);
    return vselect_f64(small, y, vscale_down_f64(1 + m, n));
}

/* The sum of (q + k)^-s by some terms and the Euler-Maclaurin formula for the others, as
 * ops/special_functions.c has it. With half of the terms the error stays below 2^-36 for s up to
 * 200. */
VECTOR_INLINE vf64 zeta_near(vf64 s, vf64 q, const bool whole)
{
    /* B(2j) / (2j)! */
    static const double parts[] = {
        0x1.5555555555555p-4,   -0x1.6c16c16c16c17p-10, 0x1.1566abc011567p-15,
        -0x1.bbd779334ef0bp-21, 0x1.66a8f2bf70ebep-26,  -0x1.22805d644267fp-31,
        0x1.d6db2c4e09162p-37,  -0x1.7da4e1f79955cp-42, 0x1.355871d652e9ep-47,
        -0x1.f57d968caacf1p-53, 0x1.967e1f09c376fp-58,  -0x1.497d9033a2b5cp-63};
    const int terms = whole ? 12 : 6;
    const vi64 small = (vi64)(s <= 8) & (vi64)(vfloor_f64(s) == s);
    vf64 y = vset_f64(0), rest = y;
    for (int k = 0; k < terms; k++) y += zeta_power(q + k, s, small, whole);
    q += terms;
    const vf64 last = zeta_power(q, s, small, whole), r = 1 / q;
    vf64 term = s * r;
    for (int j = 0; j < terms; j++) {
        rest += term * parts[j];
        term *= (s + (2 * j + 1)) * r * ((s + (2 * j + 2)) * r);
    }
    return vfma_f64(last, q / (s - 1) + 0.5 + rest, y);
}

VECTOR_INLINE vf64 zeta_of(vf64 s, vf64 q, const bool whole)
{
    vi64 near = (s > 1) & (s <= 200) & (q > 0x1p-100) & (q < 0x1p100);
    if (whole) near &= (q < 32) | ((s <= 24) & (q < 0x1p40)); /* q^-s is a normal number */
    if (vnone(near)) return repaired2(s, q, q, near, special_zeta);
    return repair2(s, q, zeta_near(s, q, whole), near, special_zeta);
}

/* Of orders 1 to 7: -(-1)^n n! zeta(n + 1, x). */
VECTOR_INLINE vf64 polygamma_of(vf64 n, vf64 x, const bool whole)
{
    const vi64 near = (n >= 1) & (n <= 7) & (vfloor_f64(n) == n) & (x > 0x1p-100) & (x < 0x1p100);
    if (vnone(near)) return repaired2(n, x, x, near, special_polygamma);
    vf64 factor = vset_f64(1);
    for (int k = 2; k <= 7; k++) factor = vselect_f64(n >= k, -k * factor, factor);
    return repair2(n, x, factor * zeta_near(n + 1, x, whole), near, special_polygamma);
}
SPECIAL_VECTOR2(zeta, zeta_of)
SPECIAL_VECTOR2(polygamma, polygamma_of)
#define vzeta(s, q)      VECTOR_CHOOSE(vzeta, s)(s, q)
#define vpolygamma(n, x) VECTOR_CHOOSE(vpolygamma, n)(n, x)

/* ---- Incomplete gamma functions -------------------------------------------------------------- */

enum { SPECIAL_MOST_TURNS = 50000 };

/* ln(1 + u) - u for |u| <= 1/2, by the series of artanh, without cancellation. */
VECTOR_INLINE vf64 special_log1p_less(vf64 u, const bool whole)
{
    const vf64 r = u / (2 + u), r2 = r * r;
    const vf64 p =
        whole ? POLYNOMIAL_F64(r2, 0x1.5555555555555p-2, 0x1.9999999999942p-3, 0x1.2492492499ef1p-3,
                               0x1.c71c71bec692ep-4, 0x1.745d1999010e3p-4, 0x1.3b1350a54d7c7p-4,
                               0x1.111accb20111fp-4, 0x1.e0a15b153ec26p-5, 0x1.bc434511513cap-5,
                               0x1.32b0bcd369786p-5, 0x1.404897a3a08cap-4)
              : POLYNOMIAL_F64(r2, 0x1.5555555555144p-2, 0x1.9999999be05d6p-3, 0x1.2492477971e05p-3,
                               0x1.c71d5f8a4b3c4p-4, 0x1.743cbfb018cebp-4, 0x1.3d7258076c3c4p-4,
                               0x1.f1aa6af1e2286p-5, 0x1.6ce3987e82cd7p-4);
    return r * vfma_f64(2 * r2, p, -u);
}

/* e^x for |x| <= 1400. */
VECTOR_INLINE vf64 special_exp(vf64 x)
{
    vf64 n, m = vexp_parts_f64(x, vset_f64(0), &n);
    return vscale_f64(1 + m, n);
}

/* With float32's digits. */
VECTOR_APART vf64 lgamma_apart(vf64 x)
{
    return lgamma_above(x, false);
}

/* x^a e^-x / gamma(a + 1), as ops/incomplete_gamma.c has it: from a = 10 on by Stirling's formula,
 * sqrt(2 pi a) (a / e)^a e^S. */
VECTOR_INLINE vf64 gamma_density_of(vf64 a, vf64 x, const bool whole)
{
    const vi64 small = a < 10;
    vf64 y = a;
    if (!vnone(small)) {
        if (whole)
            y = vpow_f64(x, a) * call_exp_f64(-x) / call_tgamma_f64(a + 1);
        else
            y = special_exp(vclamp_f64(vfma_f64(a, special_log(x, whole), -x) - lgamma_apart(a + 1),
                                       -700, 700));
        if (vall_i64(small)) return y;
    }
    const vf64 r = 1 / a, u = (x - a) / a,
               rest = r * POLYNOMIAL_F64(r * r, 0x1.5555555555555p-4, -0x1.6c16c16c0bcc6p-9,
                                         0x1.a01a00d6ca069p-11, -0x1.38122e4ea48f7p-11,
                                         0x1.b84ea0d05f97ep-11, -0x1.c8538b73a1b9fp-10);
    const vi64 close = vabs_f64(u) <= 0.5;
    vf64 power = a * special_log1p_less(u, whole), factor = vset_f64(1);
    if (!vall_i64(close)) {
        const vf64 ratio = x / a, ln = a * special_log(ratio, whole), off = a - x;
        vf64 far = ln + off;
        if (whole) { /* a power rounds less than the logarithm of one */
            const vi64 finite = ~close & (vabs_f64(ln) < 700) & (off > -700);
            const vf64 pow = vpow_f64(ratio, a) * call_exp_f64(off);
            factor = vselect_f64(finite, pow, factor);
            far = (vf64)((vi64)far & ~finite);
        }
        power = vselect_f64(close, power, far);
    }
    const vf64 root = vsqrt_f64(r * 0x1.45f306dc9c883p-3); /* 1 / sqrt(2 pi a) */
    const vf64 large = special_exp(vclamp_f64(power - rest, -745, 0)) * root * factor;
    return vselect_f64(small, y, large);
}

/* The sum of x^n / ((a + 1) ... (a + n)), two terms a turn, in lanes where `wanted` is set. */
VECTOR_INLINE vf64 gamma_series(vf64 a, vf64 x, vi64 wanted, const bool whole)
{
    const double enough = whole ? 0x1p-56 : 0x1p-42;
    vf64 term = vset_f64(1), sum = term;
    a += 1;
    for (int turn = 0; turn < SPECIAL_MOST_TURNS && !vnone(wanted); turn++, a += 2) {
        const vf64 first = term * x, r = 1 / (a * (a + 1));
        term = first * x * r;
        sum += (vf64)((vi64)vfma_f64(first * (a + 1), r, term) & wanted);
        wanted &= term > enough * sum;
    }
    return sum;
}

/*
 * The continued fraction of the upper function over the density, a / (x + 1 - a - ...): convergents
 * by their recurrence, four a turn, of which the last has a denominator of 1 from the second turn
 * on.
 */
VECTOR_INLINE vf64 gamma_fraction(vf64 a, vf64 x, vi64 wanted, const bool whole)
{
    const double enough = whole ? 0x1p-50 : 0x1p-40;
    vf64 b = x + 1 - a, i = vset_f64(0), y = i;
    vf64 before = i, above = vset_f64(1), below_before = above, below = b;
    for (int turn = 0; turn < SPECIAL_MOST_TURNS && !vnone(wanted); turn++) {
        UNROLL for (int k = 0; k < 4; k++)
        {
            i += 1;
            b += 2;
            const vf64 part = i * (a - i), p = vfma_f64(b, above, part * before),
                       q = vfma_f64(b, below, part * below_before);
            before = above, below_before = below, above = p, below = q;
        }
        const vf64 r = 1 / below;
        before *= r, below_before *= r, above *= r, below = vset_f64(1);
        const vf64 moved = vabs_f64(above - y);
        y = vselect_f64(wanted, above, y);
        wanted &= moved > enough * y;
    }
    return a * y;
}

/* Where x is at most a or a small number the lower function by its series, else the upper one by
 * the fraction. */
VECTOR_INLINE vf64 incomplete_of(vf64 a, vf64 x, const bool upper, const bool whole)
{
    vi64 near = (a >= 0x1p-60) & (a <= 0x1p17) & (x >= 0x1p-60) & (x <= 0x1p17);
    if (whole) near &= (a >= 10) | (x < 700);
    const vi64 series = near & (vi64)(upper ? (x < 1) | (x < a) : (x <= 3) | (x <= a));
    const vi64 fraction = near & ~series;
    const vf64 density = gamma_density_of(a, x, whole);
    vf64 y = a, other;
    if (!vnone(series)) {
        y = vlesser_f64(vset_f64(1), gamma_series(a, x, series, whole) * density);
        if (upper) y = 1 - y;
        if (upper && !whole) near &= ~series | (y > 0.0625); /* digits cancel */
    }
    if (!vnone(fraction)) {
        other = gamma_fraction(a, x, fraction, whole) * density;
        y = vselect_f64(fraction, upper ? other : 1 - other, y);
    }
    return repair2(a, x, y, near, upper ? special_igammac : special_igamma);
}

VECTOR_INLINE vf64 igamma_of(vf64 a, vf64 x, const bool whole)
{
    return incomplete_of(a, x, false, whole);
}
VECTOR_INLINE vf64 igammac_of(vf64 a, vf64 x, const bool whole)
{
    return incomplete_of(a, x, true, whole);
}
SPECIAL_VECTOR2(igamma, igamma_of)
SPECIAL_VECTOR2(igammac, igammac_of)
#define vigamma(a, x)  VECTOR_CHOOSE(vigamma, a)(a, x)
#define vigammac(a, x) VECTOR_CHOOSE(vigammac, a)(a, x)

/* ---- The incomplete beta function ------------------------------------------------------------ */

/* The continued fraction of ops/special_functions.c: convergents by their recurrence, whose
 * denominator is 1 at the end of a turn. */
VECTOR_INLINE vf64 beta_fraction(vf64 a, vf64 b, vf64 x, vi64 wanted, const bool whole)
{
    const double enough = whole ? 0x1p-50 : 0x1p-40;
    const vf64 first = -(a + b) * x / (a + 1);
    vf64 y = vset_f64(0), m = y, before = vset_f64(1), above = before;
    vf64 below_before = before, below = 1 + first;
    for (int turn = 0; turn < SPECIAL_MOST_TURNS && !vnone(wanted); turn++) {
        UNROLL for (int k = 0; k < 2; k++)
        {
            m += 1;
            const vf64 middle = a + 2 * m, upper = middle + 1, lower = middle - 1;
            const vf64 share = x / (lower * middle * upper);
            const vf64 even = m * (b - m) * upper * share;
            const vf64 odd = -(a + m) * (a + b + m) * lower * share;
            before = vfma_f64(even, before, above);
            below_before = vfma_f64(even, below_before, below);
            above = vfma_f64(odd, above, before);
            below = vfma_f64(odd, below, below_before);
        }
        const vf64 r = 1 / below;
        before *= r, below_before *= r, above *= r, below = vset_f64(1);
        const vf64 moved = vabs_f64(above - y);
        y = vselect_f64(wanted, above, y);
        wanted &= moved > enough * vabs_f64(y);
    }
    return y;
}

/* x^a rest^b / (a B(a, b)) for rest = 1 - x and a + b < 170, where gamma is finite. */
VECTOR_INLINE vf64 beta_density_of(vf64 a, vf64 b, vf64 x, vf64 rest, const bool whole)
{
    if (!whole) {
        const vf64 logs = vfma_f64(a, special_log(x, false), b * special_log(rest, false));
        const vf64 part = lgamma_apart(a + b) - lgamma_apart(a + 1) - lgamma_apart(b);
        return special_exp(vclamp_f64(logs + part, -700, 700));
    }
    const vf64 gammas = call_tgamma_f64(a + b) / call_tgamma_f64(a + 1) / call_tgamma_f64(b);
    const vf64 power = vselect_f64(x < 0.5, call_exp_f64(b * vlog1p_f64(-x)), vpow_f64(1 - x, b));
    return vpow_f64(x, a) * power * gammas;
}

VECTOR_APART vf64 betainc_repaired(vf64 a, vf64 b, vf64 x, vf64 y, vi64 near)
{
    for (int i = 0; i < VECTOR_F64; i++)
        if (!near[i]) y[i] = special_betainc(a[i], b[i], x[i]);
    return y;
}

VECTOR_INLINE vf64 betainc_of(vf64 a, vf64 b, vf64 x, const bool whole)
{
    vi64 near = (a > 0x1p-19) & (b > 0x1p-19) & (a + b < 170) & (x > 0x1p-100) & (x < 1);
    const vi64 turned = x >= (a + 1) / (a + b + 2);
    const vf64 first = vselect_f64(turned, b, a), second = vselect_f64(turned, a, b);
    const vf64 other = 1 - x, at = vselect_f64(turned, other, x);
    const vf64 density = beta_density_of(first, second, at, vselect_f64(turned, x, other), whole);
    const vf64 share = density * beta_fraction(first, second, at, near, whole);
    const vf64 y = vselect_f64(turned, 1 - share, share);
    if (!whole) near &= ~turned | (y > 0.0625); /* digits cancel */
    return __builtin_expect(vall_i64(near), 1) ? y : betainc_repaired(a, b, x, y, near);
}

VECTOR_APART vf64 vbetainc_f64(vf64 a, vf64 b, vf64 x)
{
    return betainc_of(a, b, x, true);
}
VECTOR_APART vf32 vbetainc_f32(vf32 a, vf32 b, vf32 x)
{
    return halves_f32(betainc_of(half_f64(a, 0), half_f64(b, 0), half_f64(x, 0), false),
                      betainc_of(half_f64(a, 1), half_f64(b, 1), half_f64(x, 1), false));
}

#endif
