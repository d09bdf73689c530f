/*
 * gelu, its approximation by tanh, silu and their slopes on vectors: vgelu(x), vgelu_slope(x),
 * vgelu_tanh(x), vgelu_tanh_slope(x), vsilu(x), vsilu_slope(x). They keep their digits where their
 * values are small.
 *
 * All three functions are x P(x) with P(x) + P(-x) = 1. With a = |x|, Q(a) = P(-a) and p = P',
 *
 *     x P(x) = max(x, 0) - a Q(a)
 *     (x P(x))' = Q(a) - a p(a) for x < 0, else 1 - (Q(a) - a p(a))
 *
 * where nothing cancels, but for the slope near its zero. Q has a power of e as a factor. Its
 * exponent, up to 104 in float32 and 745 in float64, is taken in two parts: the relative error of
 * the power is the absolute error of the exponent.
 */
#ifndef EDDY_OPS_KERNELS_GELU_H
#define EDDY_OPS_KERNELS_GELU_H

/* For the plain compilation too: sqrt(1/2), 1 / sqrt(2 pi), sqrt(8 / pi), and the factor of x^3 in
 * gelu_tanh. */
#define ROOT_HALF        0x1.6a09e667f3bcdp-1
#define ONE_BY_ROOT_2_PI 0x1.9884533d43651p-2
#define ROOT_8_BY_PI     0x1.9884533d43651p0
#define CUBIC            0.044715

#ifdef ISA
#include "ops/kernels/vector.h"

/* From these on a Q(a) rounds to 0. */
#define GELU_END          TYPED(gelu_end)
#define gelu_end_f32      15
#define gelu_end_f64      39
#define GELU_TANH_END     TYPED(gelu_tanh_end)
#define gelu_tanh_end_f32 11
#define gelu_tanh_end_f64 22
#define SILU_END          TYPED(silu_end)
#define silu_end_f32      120
#define silu_end_f64      760

/*
 * Q(a) e^(a^2/2) for gelu, that is erfcx(a / sqrt 2) / 2, is u P(t) with u = 1 / (a + 4) and t =
 * 1 - 8 u, for a <= 14.6 and a <= 39; P(t) = GELU_FIRST + GELU_FIRST_LOW + t R(t). R's even and odd
 * powers from t^2 on are two sums that the machine computes side by side.
 */
#define GELU_FIRST         TYPED(gelu_first)
#define GELU_FIRST_LOW     TYPED(gelu_first_low)
#define gelu_first_f32     0x1.82b4bcp-1f
#define gelu_first_low_f32 -0x1.cdac8cp-27f
#define gelu_first_f64     0x1.82b4bb8c94dcep-1
#define gelu_first_low_f64 -0x1.990ea270aca77p-56

VECTOR_INLINE vf32 gelu_polynomial_f32(vf32 t)
{
    const vf32 square = t * t;
    const vf32 even =
        POLYNOMIAL(square, -0x1.7dff4ap-3f, -0x1.ee1e76p-8f, 0x1.ab2fd6p-10f, -0x1.c5bfd4p-13f);
    const vf32 odd =
        POLYNOMIAL(square, 0x1.eec73cp-5f, -0x1.c95072p-9f, 0x1.5abfe8p-13f, -0x1.5d8a5ep-15f);
    return vfma_f32(t, vfma_f32(t, vfma_f32(t, odd, even), vset_f32(0x1.8c6dbcp-2f)),
                    vset_f32(-0x1.373e3ap-1f));
}
VECTOR_INLINE vf64 gelu_polynomial_f64(vf64 t)
{
    const vf64 square = t * t;
    const vf64 even =
        POLYNOMIAL_F64(square, -0x1.7dff2bff68490p-3, -0x1.ee27610438f7ap-8, 0x1.ab825fb0a3ba6p-10,
                       -0x1.e4a421b5afdd9p-13, 0x1.26d0635c7f42ep-15, -0x1.8d49025b71956p-18,
                       0x1.124d70c357c30p-20, -0x1.50472349e6b95p-23, 0x1.1410dc61c94edp-26,
                       -0x1.74d21d00d160ap-32);
    const vf64 odd =
        POLYNOMIAL_F64(square, 0x1.eec4cc3e4439cp-5, -0x1.c81719c95a558p-9, 0x1.17a4a5f93f1c6p-13,
                       -0x1.00110616f0aabp-19, 0x1.7fd982b406295p-21, -0x1.4faabc8b03f35p-21,
                       0x1.1ba21ee60cc59p-22, -0x1.4b9d107be8f93p-24, 0x1.f64b7c01f70c4p-27,
                       -0x1.48e41a0b5d957p-30);
    return vfma_f64(t, vfma_f64(t, vfma_f64(t, odd, even), vset_f64(0x1.8c6dbf2cfc308p-2)),
                    vset_f64(-0x1.373e3a893c28ap-1));
}
#define gelu_polynomial(t) VECTOR_CHOOSE(gelu_polynomial, t)(t)

/* c = sqrt(8 / pi) and c d, d = 0.044715, the factors of gelu_tanh's exponent: the first part of
 * each has half a mantissa. */
#define TANH_C          TYPED(tanh_c)
#define TANH_C_LOW      TYPED(tanh_c_low)
#define TANH_CD         TYPED(tanh_cd)
#define TANH_CD_LOW     TYPED(tanh_cd_low)
#define tanh_c_f32      0x1.988p0f
#define tanh_c_low_f32  0x1.14cf50p-14f
#define tanh_cd_f32     0x1.244p-4f
#define tanh_cd_low_f32 0x1.3ca936p-18f
#define tanh_c_f64      0x1.988453p0
#define tanh_c_low_f64  0x1.ea1b284687e5ap-27
#define tanh_cd_f64     0x1.2444f28p-4
#define tanh_cd_low_f64 0x1.26c5a57a4def1p-31

#define TYPE f32
#include "ops/kernels/gelu.typed.h"
#define TYPE f64
#include "ops/kernels/gelu.typed.h"

/*
 * Where there are pieces, float32 takes a Q and Q - a p of gelu, and silu's slope, from them. Only
 * a vector with a lane beyond their end, where these are less than 1e-6 off 0, computes the powers
 * of e, too.
 */
#if defined(VECTOR_TABLE)
static __attribute__((noinline)) vf32 gelu_far(vf32 x)
{
    return gelu_by_power_f32(x);
}

static __attribute__((noinline)) vf32 gelu_slope_far(vf32 x)
{
    return gelu_slope_by_power_f32(x);
}

VECTOR_INLINE vf32 vgelu_f32(vf32 x)
{
    const vf32 a = gelu_size_f32(x, GELU_TAIL_PIECES_END);
    const vf32 y = gelu_less_f32(x, VPIECE(gelu_tail_pieces, GELU_TAIL_PIECES, a));
    const vi32 near = ~(x < -GELU_TAIL_PIECES_END);
    if (__builtin_expect(vall_i32(near), 1)) return y;
    return vselect_f32(near, y, gelu_far(x));
}

VECTOR_INLINE vf32 vgelu_slope_f32(vf32 x)
{
    const vf32 a = gelu_size_f32(x, GELU_SLOPE_PIECES_END);
    const vf32 low = VPIECE(gelu_slope_pieces, GELU_SLOPE_PIECES, a);
    const vf32 y = vselect_f32(x < 0, low, 1 - low);
    const vi32 near = ~(vabs_f32(x) > GELU_SLOPE_PIECES_END);
    if (__builtin_expect(vall_i32(near), 1)) return y;
    return vselect_f32(near, y, gelu_slope_far(x));
}

/* There 1 + e^x is 1. */
static __attribute__((noinline)) vf32 silu_slope_far(vf32 x)
{
    const vf32 a = gelu_size_f32(x, silu_end_f32);
    vf32 n, m = vexp_parts_f32(-a, vset_f32(0), &n);
    return gelu_scale_f32(1 - a, m, n);
}

VECTOR_INLINE vf32 vsilu_slope_f32(vf32 x)
{
    const vf32 a = gelu_size_f32(x, SILU_SLOPE_PIECES_END);
    const vf32 low = VPIECE(silu_slope_pieces, SILU_SLOPE_PIECES, a);
    const vf32 y = vselect_f32(x < 0, low, 1 - low);
    const vi32 near = ~(x < -SILU_SLOPE_PIECES_END);
    if (__builtin_expect(vall_i32(near), 1)) return y;
    return vselect_f32(near, y, silu_slope_far(x));
}
#else
#define vgelu_f32       gelu_by_power_f32
#define vgelu_slope_f32 gelu_slope_by_power_f32
#define vsilu_slope_f32 silu_slope_by_power_f32
#endif

/*
 * silu and gelu_tanh are x / (1 + e) for e = e^-u = (1 + m) 2^n, which does not overflow for x from
 * -EXP_NEAR and -GELU_TANH_NEAR on; the few below take the longer way. 1 + 2^n is rounded from
 * n = 24 on: what that lost of the 1 is added to m 2^n.
 */
#if defined(VECTOR_FMA)
#define GELU_TANH_NEAR 9
VECTOR_INLINE vf32 gelu_quotient(vf32 x, vf32 m, vf32 power)
{
    const vf32 most = 1 + power, lost = 1 - (most - power);
    return x / (most + vfma_f32(m, power, lost));
}

static __attribute__((noinline)) vf32 silu_far(vf32 x)
{
    return silu_by_power_f32(x);
}

static __attribute__((noinline)) vf32 gelu_tanh_far(vf32 x)
{
    return gelu_tanh_by_power_f32(x);
}

VECTOR_INLINE vf32 vsilu_f32(vf32 x)
{
    vf32 rise, power, m = exp_near(-vlesser_f32(vset_f32(EXP_NONE), x), &rise, &power);
    const vf32 y = gelu_quotient(x, m + rise, power);
    const vi32 near = ~(x < -EXP_NEAR);
    if (__builtin_expect(vall_i32(near), 1)) return y;
    return vselect_f32(near, y, silu_far(x));
}

/* From 7 on e is nothing. The heads' product, less a head of n ln 2, is rounded once. */
VECTOR_INLINE vf32 vgelu_tanh_f32(vf32 x)
{
    const vf32 b = -vlesser_f32(vset_f32(7), x);
    vf32 v, low, power, n;
    gelu_tanh_factor_f32(b, &v, &low);
    n = exp_whole(b * v, &power);
    const vf32 exact = vfma_f32(b, v, n * -LN2_HIGH);
    const vf32 m = exact + exp_rise(exact, vfma_f32(b, low, n * -LN2_LOW));
    const vf32 y = gelu_quotient(x, m, power);
    const vi32 near = ~(x < -GELU_TANH_NEAR);
    if (__builtin_expect(vall_i32(near), 1)) return y;
    return vselect_f32(near, y, gelu_tanh_far(x));
}
#else
#define vsilu_f32      silu_by_power_f32
#define vgelu_tanh_f32 gelu_tanh_by_power_f32
#endif
#define vsilu_f64       silu_by_power_f64
#define vgelu_tanh_f64  gelu_tanh_by_power_f64
#define vgelu_f64       gelu_by_power_f64
#define vgelu_slope_f64 gelu_slope_by_power_f64
#define vsilu_slope_f64 silu_slope_by_power_f64

#define vsilu(x)            VECTOR_CHOOSE(vsilu, x)(x)
#define vsilu_slope(x)      VECTOR_CHOOSE(vsilu_slope, x)(x)
#define vgelu(x)            VECTOR_CHOOSE(vgelu, x)(x)
#define vgelu_slope(x)      VECTOR_CHOOSE(vgelu_slope, x)(x)
#define vgelu_tanh(x)       VECTOR_CHOOSE(vgelu_tanh, x)(x)
#define vgelu_tanh_slope(x) VECTOR_CHOOSE(vgelu_tanh_slope, x)(x)

#endif
#endif
