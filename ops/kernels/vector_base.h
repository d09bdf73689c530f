/*
 * Vectors of the instruction set at hand: types, memory, selection, rounding. Only compilations
 * with ISA defined include this (see isa.h); the functions of mathematics are in vector.h, which is
 * what loops include.
 *
 * A vector is VECTOR_BYTES wide: vf32 holds VECTOR_F32 floats, vf64 VECTOR_F64 doubles; GNU C gives
 * them + - * / and comparisons, and numbers mix with them (2 * x). A comparison gives a mask, vi32
 * or vi64, all ones where it holds:
 *
 *     vf32 y = vselect((vi32)(x < 0), x * x, x);
 *
 * What ends in _f32 or _f64 takes one type; the names without it are macros that choose by their
 * argument's type, so that one expression serves both. Nothing here looks at a lane's neighbours.
 *
 * Where the set has fused multiply-add, vfma rounds once; else it is a * b + c. This is the only
 * place where the sets compute differently: the compiler contracts nothing by itself
 * (-ffp-contract=off).
 *
 * VECTOR_PORTABLE makes every machine take the path of those that are not known here.
 */
#ifndef EDDY_OPS_KERNELS_VECTOR_BASE_H
#define EDDY_OPS_KERNELS_VECTOR_BASE_H

#include "tensor/typed.h"
#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && !defined(VECTOR_PORTABLE)
#include <immintrin.h>
#if defined(__AVX512F__) && defined(__AVX512DQ__)
#define VECTOR_AVX512 1
#define VECTOR_BYTES  64
#elif defined(__AVX2__) && defined(__FMA__)
#define VECTOR_AVX2  1
#define VECTOR_BYTES 32
#else
#define VECTOR_SSE2  1
#define VECTOR_BYTES 16
#endif
#elif defined(__aarch64__) && !defined(VECTOR_PORTABLE)
#include "ops/kernels/neon.h"
#define VECTOR_NEON  1
#define VECTOR_BYTES 16
#else
#define VECTOR_BYTES 16
#endif

#if defined(VECTOR_AVX512) || defined(VECTOR_AVX2) || defined(VECTOR_NEON) ||                      \
    defined(__FP_FAST_FMAF)
#define VECTOR_FMA 1
#endif

enum { VECTOR_F32 = VECTOR_BYTES / 4, VECTOR_F64 = VECTOR_BYTES / 8 };

/* Vectors that a loop computes at a time: what the set's registers, 32 or 16, hold of such a chain
 * of operations. */
#if defined(VECTOR_AVX512) || defined(VECTOR_NEON)
enum { VECTOR_TOGETHER = 4 };
#else
enum { VECTOR_TOGETHER = 2 };
#endif

typedef float vf32 __attribute__((vector_size(VECTOR_BYTES)));
typedef double vf64 __attribute__((vector_size(VECTOR_BYTES)));
typedef int32_t vi32 __attribute__((vector_size(VECTOR_BYTES)));
typedef int64_t vi64 __attribute__((vector_size(VECTOR_BYTES)));
typedef uint32_t vu32 __attribute__((vector_size(VECTOR_BYTES)));
typedef uint64_t vu64 __attribute__((vector_size(VECTOR_BYTES)));

/* In templates (tensor/typed.h): a vector of NUMBERs, its mask, the mask's numbers, its bits as
 * numbers that wrap. */
#define VECTOR        TYPED(vector)
#define MASK          TYPED(mask)
#define INTEGER       TYPED(integer)
#define MASK_BITS     TYPED(mask_bits)
#define vector_f32    vf32
#define vector_f64    vf64
#define mask_f32      vi32
#define mask_f64      vi64
#define integer_f32   int32_t
#define integer_f64   int64_t
#define mask_bits_f32 vu32
#define mask_bits_f64 vu64
#define VECTOR_LANES  (VECTOR_BYTES / (int)sizeof(NUMBER))

#define VECTOR_INLINE static inline __attribute__((always_inline))

/* The version of a function for x's type. */
#define VECTOR_CHOOSE(name, x) _Generic((x), vf32 : name##_f32, vf64 : name##_f64)

/* A value in every lane; -0 keeps its sign. vset(like, value): the type of `like`. */
VECTOR_INLINE vf32 vset_f32(float value)
{
    return value - (vf32){0};
}
VECTOR_INLINE vf64 vset_f64(double value)
{
    return value - (vf64){0};
}
#define vset(like, value) VECTOR_CHOOSE(vset, like)(value)

/* VECTOR_F32 or VECTOR_F64 elements from and to memory of any alignment. */
VECTOR_INLINE vf32 vload_f32(const float *from)
{
    vf32 x;
    memcpy(&x, from, sizeof x);
    return x;
}
VECTOR_INLINE vf64 vload_f64(const double *from)
{
    vf64 x;
    memcpy(&x, from, sizeof x);
    return x;
}
VECTOR_INLINE void vstore_f32(float *to, vf32 x)
{
    memcpy(to, &x, sizeof x);
}
VECTOR_INLINE void vstore_f64(double *to, vf64 x)
{
    memcpy(to, &x, sizeof x);
}

/* The first n lanes from and to memory, 0 < n < the lanes of a vector; the
 * others are loaded as 0. */
VECTOR_INLINE vf32 vload_part_f32(const float *from, int64_t n)
{
#if defined(VECTOR_AVX512)
    return (vf32)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), from);
#elif defined(VECTOR_AVX2)
    const vi32 lane = {0, 1, 2, 3, 4, 5, 6, 7};
    return (vf32)_mm256_maskload_ps(from, (__m256i)(lane < (int32_t)n));
#elif defined(VECTOR_NEON)
    if (n == 1) return (vf32)vsetq_lane_f32(*from, vdupq_n_f32(0), 0);
    const float32x4_t two = vcombine_f32(vld1_f32(from), vdup_n_f32(0));
    return (vf32)(n == 2 ? two : vld1q_lane_f32(from + 2, two, 2));
#else
    vf32 x = {0};
    for (int64_t i = 0; i < n; i++) x[i] = from[i];
    return x;
#endif
}
VECTOR_INLINE vf64 vload_part_f64(const double *from, int64_t n)
{
#if defined(VECTOR_AVX512)
    return (vf64)_mm512_maskz_loadu_pd((__mmask8)((1u << n) - 1), from);
#elif defined(VECTOR_AVX2)
    const vi64 lane = {0, 1, 2, 3};
    return (vf64)_mm256_maskload_pd(from, (__m256i)(lane < n));
#elif defined(VECTOR_NEON)
    (void)n;
    return (vf64)vcombine_f64(vld1_f64(from), vdup_n_f64(0));
#else
    vf64 x = {0};
    for (int64_t i = 0; i < n; i++) x[i] = from[i];
    return x;
#endif
}
VECTOR_INLINE void vstore_part_f32(float *to, vf32 x, int64_t n)
{
#if defined(VECTOR_AVX512)
    _mm512_mask_storeu_ps(to, (__mmask16)((1u << n) - 1), (__m512)x);
#elif defined(VECTOR_AVX2)
    const vi32 lane = {0, 1, 2, 3, 4, 5, 6, 7};
    _mm256_maskstore_ps(to, (__m256i)(lane < (int32_t)n), (__m256)x);
#elif defined(VECTOR_NEON)
    if (n == 1) {
        *to = x[0];
        return;
    }
    vst1_f32(to, vget_low_f32((float32x4_t)x));
    if (n == 3) to[2] = x[2];
#else
    for (int64_t i = 0; i < n; i++) to[i] = x[i];
#endif
}
VECTOR_INLINE void vstore_part_f64(double *to, vf64 x, int64_t n)
{
#if defined(VECTOR_AVX512)
    _mm512_mask_storeu_pd(to, (__mmask8)((1u << n) - 1), (__m512d)x);
#elif defined(VECTOR_AVX2)
    const vi64 lane = {0, 1, 2, 3};
    _mm256_maskstore_pd(to, (__m256i)(lane < n), (__m256d)x);
#elif defined(VECTOR_NEON)
    (void)n;
    *to = x[0];
#else
    for (int64_t i = 0; i < n; i++) to[i] = x[i];
#endif
}

#define VECTOR_CHOOSE_FROM(name, from)                                                             \
    _Generic((from), float *: name##_f32, const float *: name##_f32, double *: name##_f64,         \
             const double *: name##_f64)
/* A whole vector to memory aligned to VECTOR_BYTES, past the caches where the set can do that: for
 * results that would not stay there. vstream_end: before other threads read it. */
VECTOR_INLINE void vstream_f32(float *to, vf32 x)
{
#if defined(VECTOR_AVX512)
    _mm512_stream_ps(to, (__m512)x);
#elif defined(VECTOR_AVX2)
    _mm256_stream_ps(to, (__m256)x);
#elif defined(VECTOR_SSE2)
    _mm_stream_ps(to, (__m128)x);
#else
    memcpy(to, &x, sizeof x);
#endif
}
VECTOR_INLINE void vstream_f64(double *to, vf64 x)
{
#if defined(VECTOR_AVX512)
    _mm512_stream_pd(to, (__m512d)x);
#elif defined(VECTOR_AVX2)
    _mm256_stream_pd(to, (__m256d)x);
#elif defined(VECTOR_SSE2)
    _mm_stream_pd(to, (__m128d)x);
#else
    memcpy(to, &x, sizeof x);
#endif
}
VECTOR_INLINE void vstream_end(void)
{
#if defined(VECTOR_AVX512) || defined(VECTOR_AVX2) || defined(VECTOR_SSE2)
    _mm_sfence();
#endif
}

#define vload(from)           VECTOR_CHOOSE_FROM(vload, from)(from)
#define vload_part(from, n)   VECTOR_CHOOSE_FROM(vload_part, from)(from, n)
#define vstore_part(to, x, n) VECTOR_CHOOSE(vstore_part, x)(to, x, n)
#define vstore(to, x)         VECTOR_CHOOSE(vstore, x)(to, x)
#define vstream(to, x)        VECTOR_CHOOSE(vstream, x)(to, x)

/* Lanes of a where the mask is set, of b elsewhere. The mask's lanes are all ones or all zeros. */
VECTOR_INLINE vf32 vselect_f32(vi32 mask, vf32 a, vf32 b)
{
#if defined(VECTOR_AVX2)
    return (vf32)_mm256_blendv_ps((__m256)b, (__m256)a, (__m256)mask);
#elif defined(VECTOR_SSE2)
    __m128 m = (__m128)mask;
    return (vf32)_mm_or_ps(_mm_and_ps(m, (__m128)a), _mm_andnot_ps(m, (__m128)b));
#elif defined(VECTOR_NEON)
    return (vf32)vbslq_f32((uint32x4_t)mask, (float32x4_t)a, (float32x4_t)b);
#else
    return (vf32)((mask & (vi32)a) | (~mask & (vi32)b));
#endif
}
VECTOR_INLINE vf64 vselect_f64(vi64 mask, vf64 a, vf64 b)
{
#if defined(VECTOR_AVX2)
    return (vf64)_mm256_blendv_pd((__m256d)b, (__m256d)a, (__m256d)mask);
#elif defined(VECTOR_SSE2)
    __m128d m = (__m128d)mask;
    return (vf64)_mm_or_pd(_mm_and_pd(m, (__m128d)a), _mm_andnot_pd(m, (__m128d)b));
#elif defined(VECTOR_NEON)
    return (vf64)vbslq_f64((uint64x2_t)mask, (float64x2_t)a, (float64x2_t)b);
#else
    return (vf64)((mask & (vi64)a) | (~mask & (vi64)b));
#endif
}
#define vselect(mask, a, b) VECTOR_CHOOSE(vselect, a)(mask, a, b)

/* Whether a mask is set in every lane. */
VECTOR_INLINE _Bool vall_i64(vi64 mask)
{
#if defined(VECTOR_AVX512)
    return _mm512_movepi64_mask((__m512i)mask) == 0xff;
#elif defined(VECTOR_AVX2)
    return _mm256_movemask_pd((__m256d)mask) == 0xf;
#elif defined(VECTOR_SSE2)
    return _mm_movemask_pd((__m128d)mask) == 0x3;
#elif defined(VECTOR_NEON)
    return vminvq_u32((uint32x4_t)mask) != 0;
#else
    return (mask[0] & mask[1]) != 0;
#endif
}
VECTOR_INLINE _Bool vall_i32(vi32 mask)
{
#if defined(VECTOR_AVX512)
    return _mm512_movepi32_mask((__m512i)mask) == 0xffff;
#elif defined(VECTOR_AVX2)
    return _mm256_movemask_ps((__m256)mask) == 0xff;
#elif defined(VECTOR_SSE2)
    return _mm_movemask_ps((__m128)mask) == 0xf;
#elif defined(VECTOR_NEON)
    return vminvq_u32((uint32x4_t)mask) != 0;
#else
    int32_t all = -1;
    for (int i = 0; i < VECTOR_F32; i++) all &= mask[i];
    return all != 0;
#endif
}
#define vall(mask) _Generic((mask), vi32 : vall_i32, vi64 : vall_i64)(mask)

/* A mask as a bit for each lane. */
VECTOR_INLINE unsigned vbits_i32(vi32 mask)
{
#if defined(VECTOR_AVX512)
    return (unsigned)_mm512_movepi32_mask((__m512i)mask);
#elif defined(VECTOR_AVX2)
    return (unsigned)_mm256_movemask_ps((__m256)mask);
#elif defined(VECTOR_SSE2)
    return (unsigned)_mm_movemask_ps((__m128)mask);
#else
    unsigned bits = 0;
    for (int i = 0; i < VECTOR_F32; i++) bits |= (unsigned)(mask[i] & 1) << i;
    return bits;
#endif
}
VECTOR_INLINE unsigned vbits_i64(vi64 mask)
{
#if defined(VECTOR_AVX512)
    return (unsigned)_mm512_movepi64_mask((__m512i)mask);
#elif defined(VECTOR_AVX2)
    return (unsigned)_mm256_movemask_pd((__m256d)mask);
#elif defined(VECTOR_SSE2)
    return (unsigned)_mm_movemask_pd((__m128d)mask);
#else
    unsigned bits = 0;
    for (int i = 0; i < VECTOR_F64; i++) bits |= (unsigned)(mask[i] & 1) << i;
    return bits;
#endif
}
#define vbits(mask) _Generic((mask), vi32 : vbits_i32, vi64 : vbits_i64)(mask)

/* The first lane in which a mask is set; the number of lanes if there is none. */
VECTOR_INLINE int vfirst_i32(vi32 mask)
{
    return __builtin_ctz(vbits_i32(mask) | 1u << VECTOR_F32);
}
VECTOR_INLINE int vfirst_i64(vi64 mask)
{
    return __builtin_ctz(vbits_i64(mask) | 1u << VECTOR_F64);
}
#define vfirst(mask) _Generic((mask), vi32 : vfirst_i32, vi64 : vfirst_i64)(mask)

/* The lanes in which a and b are equal, as bits; without a mask in between, where the set compares
 * to bits. */
VECTOR_INLINE unsigned vequal_bits_f32(vf32 a, vf32 b)
{
#if defined(VECTOR_AVX512)
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_EQ_OQ);
#else
    return vbits_i32((vi32)(a == b));
#endif
}
VECTOR_INLINE unsigned vequal_bits_f64(vf64 a, vf64 b)
{
#if defined(VECTOR_AVX512)
    return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_EQ_OQ);
#else
    return vbits_i64((vi64)(a == b));
#endif
}
#define vequal_bits(a, b) VECTOR_CHOOSE(vequal_bits, a)(a, b)

/* The first of them; the number of lanes if there is none. */
VECTOR_INLINE int vfirst_equal_f32(vf32 a, vf32 b)
{
    return __builtin_ctz(vequal_bits_f32(a, b) | 1u << VECTOR_F32);
}
VECTOR_INLINE int vfirst_equal_f64(vf64 a, vf64 b)
{
    return __builtin_ctz(vequal_bits_f64(a, b) | 1u << VECTOR_F64);
}
#define vfirst_equal(a, b) VECTOR_CHOOSE(vfirst_equal, a)(a, b)

/* The numbers of a table of VECTOR_TABLE floats at the lanes of an index, of which the lowest bits
 * count; for sets that have an instruction for it. AVX-512 holds the table in two registers, AVX2
 * reads it from memory: in assembly, since gcc loads tables ahead of time into registers that it
 * does not have. */
#if defined(VECTOR_AVX512)
#define VECTOR_TABLE 32
VECTOR_INLINE vf32 vlookup_f32(const float *table, vi32 index)
{
    const vf32 low = vload_f32(table), high = vload_f32(table + VECTOR_F32);
    return (vf32)_mm512_permutex2var_ps((__m512)low, (__m512i)index, (__m512)high);
}
#elif defined(VECTOR_AVX2)
#define VECTOR_TABLE 8
VECTOR_INLINE vf32 vlookup_f32(const float *table, vi32 index)
{
    vf32 y;
    __asm__("vpermps %2, %1, %0" : "=x"(y) : "x"(index), "m"(*(const vf32 *)table));
    return y;
}
#endif

/* |x|, and |x| with the sign of y; both act on the sign bit alone, of NaN too. */
VECTOR_INLINE vf32 vabs_f32(vf32 x)
{
    return (vf32)((vi32)x & 0x7fffffff);
}
VECTOR_INLINE vf64 vabs_f64(vf64 x)
{
    return (vf64)((vi64)x & INT64_MAX);
}
VECTOR_INLINE vf32 vcopysign_f32(vf32 x, vf32 y)
{
    return (vf32)(((vi32)x & INT32_MAX) | ((vi32)y & INT32_MIN));
}
VECTOR_INLINE vf64 vcopysign_f64(vf64 x, vf64 y)
{
    return (vf64)(((vi64)x & INT64_MAX) | ((vi64)y & INT64_MIN));
}
/* vcopysign in fewer steps for an x >= 0 or NaN. */
VECTOR_INLINE vf32 vsign_f32(vf32 x, vf32 y)
{
    return (vf32)((vi32)x | ((vi32)y & INT32_MIN));
}
VECTOR_INLINE vf64 vsign_f64(vf64 x, vf64 y)
{
    return (vf64)((vi64)x | ((vi64)y & INT64_MIN));
}
#define vabs(x)         VECTOR_CHOOSE(vabs, x)(x)
#define vcopysign(x, y) VECTOR_CHOOSE(vcopysign, x)(x, y)
#define vsign(x, y)     VECTOR_CHOOSE(vsign, x)(x, y)

/* a > b ? a : b and a < b ? a : b: one instruction each on x86-64. NEON's own maximum is NaN where
 * either is. */
#if defined(VECTOR_AVX512)
#define VECTOR_MINMAX(name, bits, type) (vf##bits) _mm512_##name((type)a, (type)b)
#define VECTOR_FLOATS                   __m512
#define VECTOR_DOUBLES                  __m512d
#elif defined(VECTOR_AVX2)
#define VECTOR_MINMAX(name, bits, type) (vf##bits) _mm256_##name((type)a, (type)b)
#define VECTOR_FLOATS                   __m256
#define VECTOR_DOUBLES                  __m256d
#elif defined(VECTOR_SSE2)
#define VECTOR_MINMAX(name, bits, type) (vf##bits) _mm_##name((type)a, (type)b)
#define VECTOR_FLOATS                   __m128
#define VECTOR_DOUBLES                  __m128d
#endif
#if defined(VECTOR_MINMAX)
VECTOR_INLINE vf32 vgreater_f32(vf32 a, vf32 b)
{
    return VECTOR_MINMAX(max_ps, 32, VECTOR_FLOATS);
}
VECTOR_INLINE vf64 vgreater_f64(vf64 a, vf64 b)
{
    return VECTOR_MINMAX(max_pd, 64, VECTOR_DOUBLES);
}
VECTOR_INLINE vf32 vlesser_f32(vf32 a, vf32 b)
{
    return VECTOR_MINMAX(min_ps, 32, VECTOR_FLOATS);
}
VECTOR_INLINE vf64 vlesser_f64(vf64 a, vf64 b)
{
    return VECTOR_MINMAX(min_pd, 64, VECTOR_DOUBLES);
}
#else
VECTOR_INLINE vf32 vgreater_f32(vf32 a, vf32 b)
{
    return vselect_f32(a > b, a, b);
}
VECTOR_INLINE vf64 vgreater_f64(vf64 a, vf64 b)
{
    return vselect_f64(a > b, a, b);
}
VECTOR_INLINE vf32 vlesser_f32(vf32 a, vf32 b)
{
    return vselect_f32(a < b, a, b);
}
VECTOR_INLINE vf64 vlesser_f64(vf64 a, vf64 b)
{
    return vselect_f64(a < b, a, b);
}
#endif
#define vgreater(a, b) VECTOR_CHOOSE(vgreater, a)(a, b)
#define vlesser(a, b)  VECTOR_CHOOSE(vlesser, a)(a, b)

/* a where it is NaN, b elsewhere. */
VECTOR_INLINE vf32 vnan_or_f32(vf32 a, vf32 b)
{
#if defined(VECTOR_AVX512)
    const __m512i itself_if_nan = _mm512_set1_epi32(0x11);
    return (vf32)_mm512_fixupimm_ps((__m512)b, (__m512)a, itself_if_nan, 0);
#else
    return vselect_f32(a != a, a, b);
#endif
}
VECTOR_INLINE vf64 vnan_or_f64(vf64 a, vf64 b)
{
#if defined(VECTOR_AVX512)
    const __m512i itself_if_nan = _mm512_set1_epi64(0x11);
    return (vf64)_mm512_fixupimm_pd((__m512d)b, (__m512d)a, itself_if_nan, 0);
#else
    return vselect_f64(a != a, a, b);
#endif
}

/*
 * The larger and the smaller, NaN where either is NaN (so vmax(x, 0) is relu with relu(NaN) = NaN).
 * Of two zeros the result is b.
 */
VECTOR_INLINE vf32 vmax_f32(vf32 a, vf32 b)
{
    return vnan_or_f32(a, vgreater_f32(a, b));
}
VECTOR_INLINE vf64 vmax_f64(vf64 a, vf64 b)
{
    return vnan_or_f64(a, vgreater_f64(a, b));
}
VECTOR_INLINE vf32 vmin_f32(vf32 a, vf32 b)
{
    return vnan_or_f32(a, vlesser_f32(a, b));
}
VECTOR_INLINE vf64 vmin_f64(vf64 a, vf64 b)
{
    return vnan_or_f64(a, vlesser_f64(a, b));
}
#define vmax(a, b) VECTOR_CHOOSE(vmax, a)(a, b)
#define vmin(a, b) VECTOR_CHOOSE(vmin, a)(a, b)

/* x limited to low..high; NaN stays. Needs low <= high, neither NaN. */
VECTOR_INLINE vf32 vclamp_f32(vf32 x, float low, float high)
{
    return vlesser_f32(vset_f32(high), vgreater_f32(vset_f32(low), x));
}
VECTOR_INLINE vf64 vclamp_f64(vf64 x, double low, double high)
{
    return vlesser_f64(vset_f64(high), vgreater_f64(vset_f64(low), x));
}
#define vclamp(x, low, high) VECTOR_CHOOSE(vclamp, x)(x, low, high)

/* a * b + c: see the top of the file. */
VECTOR_INLINE vf32 vfma_f32(vf32 a, vf32 b, vf32 c)
{
#if defined(VECTOR_AVX512)
    return (vf32)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(VECTOR_AVX2)
    return (vf32)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(VECTOR_NEON)
    return (vf32)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#elif defined(VECTOR_FMA)
    vf32 r;
    for (int i = 0; i < VECTOR_F32; i++) r[i] = __builtin_fmaf(a[i], b[i], c[i]);
    return r;
#else
    return a * b + c;
#endif
}
VECTOR_INLINE vf64 vfma_f64(vf64 a, vf64 b, vf64 c)
{
#if defined(VECTOR_AVX512)
    return (vf64)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(VECTOR_AVX2)
    return (vf64)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#elif defined(VECTOR_NEON)
    return (vf64)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
#elif defined(VECTOR_FMA)
    vf64 r;
    for (int i = 0; i < VECTOR_F64; i++) r[i] = __builtin_fma(a[i], b[i], c[i]);
    return r;
#else
    return a * b + c;
#endif
}
#define vfma(a, b, c) VECTOR_CHOOSE(vfma, a)(a, b, c)

/* x with the upper half of its mantissa: 12 bits, 26 bits. Products of two such are exact. */
VECTOR_INLINE vf32 vhead_f32(vf32 x)
{
    return (vf32)((vi32)x & ~0xfff);
}
VECTOR_INLINE vf64 vhead_f64(vf64 x)
{
    return (vf64)((vi64)x & ~(int64_t)0x7ffffff);
}
#define vhead(x) VECTOR_CHOOSE(vhead, x)(x)

/* a * b - p for a p close to a * b: the rest that a rounded product leaves. Without fused
 * multiply-add, Dekker's sum of products of half mantissas. */
VECTOR_INLINE vf32 vrest_f32(vf32 a, vf32 b, vf32 p)
{
#if defined(VECTOR_FMA)
    return vfma_f32(a, b, -p);
#else
    const vf32 a1 = vhead_f32(a), a2 = a - a1, b1 = vhead_f32(b), b2 = b - b1;
    return ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2;
#endif
}
VECTOR_INLINE vf64 vrest_f64(vf64 a, vf64 b, vf64 p)
{
#if defined(VECTOR_FMA)
    return vfma_f64(a, b, -p);
#else
    const vf64 a1 = vhead_f64(a), a2 = a - a1, b1 = vhead_f64(b), b2 = b - b1;
    return ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2;
#endif
}
#define vrest(a, b, p) VECTOR_CHOOSE(vrest, a)(a, b, p)

/* The correctly rounded square root; -0 gives -0, less gives NaN. vrsqrt: 1 / sqrt(x), two
 * roundings. */
VECTOR_INLINE vf32 vsqrt_f32(vf32 x)
{
#if defined(VECTOR_AVX512)
    return (vf32)_mm512_sqrt_ps((__m512)x);
#elif defined(VECTOR_AVX2)
    return (vf32)_mm256_sqrt_ps((__m256)x);
#elif defined(VECTOR_SSE2)
    return (vf32)_mm_sqrt_ps((__m128)x);
#elif defined(VECTOR_NEON)
    return (vf32)vsqrtq_f32((float32x4_t)x);
#else
    for (int i = 0; i < VECTOR_F32; i++) x[i] = sqrtf(x[i]);
    return x;
#endif
}
VECTOR_INLINE vf64 vsqrt_f64(vf64 x)
{
#if defined(VECTOR_AVX512)
    return (vf64)_mm512_sqrt_pd((__m512d)x);
#elif defined(VECTOR_AVX2)
    return (vf64)_mm256_sqrt_pd((__m256d)x);
#elif defined(VECTOR_SSE2)
    return (vf64)_mm_sqrt_pd((__m128d)x);
#elif defined(VECTOR_NEON)
    return (vf64)vsqrtq_f64((float64x2_t)x);
#else
    for (int i = 0; i < VECTOR_F64; i++) x[i] = sqrt(x[i]);
    return x;
#endif
}
VECTOR_INLINE vf32 vrsqrt_f32(vf32 x)
{
    return 1 / vsqrt_f32(x);
}
VECTOR_INLINE vf64 vrsqrt_f64(vf64 x)
{
    return 1 / vsqrt_f64(x);
}
#define vsqrt(x)  VECTOR_CHOOSE(vsqrt, x)(x)
#define vrsqrt(x) VECTOR_CHOOSE(vrsqrt, x)(x)

/*
 * To integers: vrint to the nearest (ties to even), vfloor down, vceil up, vtrunc towards 0. Zeros
 * and what rounds to zero keep the sign. Without instructions for it: adding and subtracting 2^23
 * (2^52) rounds, and from there on all is whole.
 */
#if defined(VECTOR_AVX512)
#define VECTOR_ROUND_F32(x, how) (vf32) _mm512_roundscale_ps((__m512)(x), VECTOR_##how)
#define VECTOR_ROUND_F64(x, how) (vf64) _mm512_roundscale_pd((__m512d)(x), VECTOR_##how)
#elif defined(VECTOR_AVX2)
#define VECTOR_ROUND_F32(x, how) (vf32) _mm256_round_ps((__m256)(x), VECTOR_##how)
#define VECTOR_ROUND_F64(x, how) (vf64) _mm256_round_pd((__m256d)(x), VECTOR_##how)
#elif defined(VECTOR_NEON)
#define VECTOR_ROUND_F32(x, how) (vf32) VECTOR_##how##_F32((float32x4_t)(x))
#define VECTOR_ROUND_F64(x, how) (vf64) VECTOR_##how##_F64((float64x2_t)(x))
#define VECTOR_NEAREST_F32       vrndnq_f32
#define VECTOR_NEAREST_F64       vrndnq_f64
#define VECTOR_DOWN_F32          vrndmq_f32
#define VECTOR_DOWN_F64          vrndmq_f64
#define VECTOR_UP_F32            vrndpq_f32
#define VECTOR_UP_F64            vrndpq_f64
#define VECTOR_INWARDS_F32       vrndq_f32
#define VECTOR_INWARDS_F64       vrndq_f64
#endif
#if defined(VECTOR_AVX512) || defined(VECTOR_AVX2)
#define VECTOR_NEAREST (_MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
#define VECTOR_DOWN    (_MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)
#define VECTOR_UP      (_MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC)
#define VECTOR_INWARDS (_MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)
#endif
#if defined(VECTOR_ROUND_F32)
VECTOR_INLINE vf32 vrint_f32(vf32 x)
{
    return VECTOR_ROUND_F32(x, NEAREST);
}
VECTOR_INLINE vf64 vrint_f64(vf64 x)
{
    return VECTOR_ROUND_F64(x, NEAREST);
}
VECTOR_INLINE vf32 vfloor_f32(vf32 x)
{
    return VECTOR_ROUND_F32(x, DOWN);
}
VECTOR_INLINE vf64 vfloor_f64(vf64 x)
{
    return VECTOR_ROUND_F64(x, DOWN);
}
VECTOR_INLINE vf32 vceil_f32(vf32 x)
{
    return VECTOR_ROUND_F32(x, UP);
}
VECTOR_INLINE vf64 vceil_f64(vf64 x)
{
    return VECTOR_ROUND_F64(x, UP);
}
VECTOR_INLINE vf32 vtrunc_f32(vf32 x)
{
    return VECTOR_ROUND_F32(x, INWARDS);
}
VECTOR_INLINE vf64 vtrunc_f64(vf64 x)
{
    return VECTOR_ROUND_F64(x, INWARDS);
}
#else
VECTOR_INLINE vf32 vrint_f32(vf32 x)
{
    vf32 a = vabs_f32(x);
    return vselect_f32(a < 0x1p23f, vcopysign_f32((a + 0x1p23f) - 0x1p23f, x), x);
}
VECTOR_INLINE vf64 vrint_f64(vf64 x)
{
    vf64 a = vabs_f64(x);
    return vselect_f64(a < 0x1p52, vcopysign_f64((a + 0x1p52) - 0x1p52, x), x);
}
VECTOR_INLINE vf32 vfloor_f32(vf32 x)
{
    vf32 r = vrint_f32(x);
    return r - vselect_f32(r > x, vset_f32(1), vset_f32(0));
}
VECTOR_INLINE vf64 vfloor_f64(vf64 x)
{
    vf64 r = vrint_f64(x);
    return r - vselect_f64(r > x, vset_f64(1), vset_f64(0));
}
VECTOR_INLINE vf32 vceil_f32(vf32 x)
{
    return -vfloor_f32(-x);
}
VECTOR_INLINE vf64 vceil_f64(vf64 x)
{
    return -vfloor_f64(-x);
}
VECTOR_INLINE vf32 vtrunc_f32(vf32 x)
{
    return vcopysign_f32(vfloor_f32(vabs_f32(x)), x);
}
VECTOR_INLINE vf64 vtrunc_f64(vf64 x)
{
    return vcopysign_f64(vfloor_f64(vabs_f64(x)), x);
}
#endif
#define vrint(x)  VECTOR_CHOOSE(vrint, x)(x)
#define vfloor(x) VECTOR_CHOOSE(vfloor, x)(x)
#define vceil(x)  VECTOR_CHOOSE(vceil, x)(x)
#define vtrunc(x) VECTOR_CHOOSE(vtrunc, x)(x)

/* x * 2^n rounded once, for a whole n in -252 .. 254 (what is needed here is -150 .. 128). */
VECTOR_INLINE vf32 vscale_f32(vf32 x, vf32 n)
{
#if defined(VECTOR_AVX512)
    return (vf32)_mm512_scalef_ps((__m512)x, (__m512)n);
#else
    vi32 whole = __builtin_convertvector(n, vi32), half = whole >> 1;
    vf32 a = (vf32)(((vu32)half + 127) << 23), b = (vf32)(((vu32)(whole - half) + 127) << 23);
    return x * a * b;
#endif
}

/* The same for a whole n in -2044 .. 2046; adding 1.5 * 2^52 (2^23 in float32) puts a whole number
 * into the lowest bits. */
VECTOR_INLINE vf64 vscale_f64(vf64 x, vf64 n)
{
#if defined(VECTOR_AVX512)
    return (vf64)_mm512_scalef_pd((__m512d)x, (__m512d)n);
#else
    const double magic = 0x1.8p52, biased = 0x1.8p52 + 1023;
    vf64 half = (0.5 * n + magic) - magic;
    vf64 a = (vf64)((vu64)(half + biased) << 52), b = (vf64)((vu64)(n - half + biased) << 52);
    return x * a * b;
#endif
}
#define vscale(x, n) VECTOR_CHOOSE(vscale, x)(x, n)

/* x, but a zero of its sign where x 2^n surely is one, |x| being at most 2^11 (2^12): a product
 * that comes out denormal or is rounded to 0 takes a hundred times as long as others. */
VECTOR_INLINE vf32 vscaled_away_f32(vf32 x, vf32 n)
{
#if defined(VECTOR_AVX512)
    const __mmask16 away = _mm512_cmp_ps_mask((__m512)n, _mm512_set1_ps(-160), _CMP_LT_OQ);
    const __m512i sign = _mm512_set1_epi32(INT32_MIN);
    return (vf32)_mm512_mask_and_epi32((__m512i)x, away, (__m512i)x, sign);
#else
    return (vf32)((vi32)x & ~((vi32)(n < -160) & INT32_MAX));
#endif
}
VECTOR_INLINE vf64 vscaled_away_f64(vf64 x, vf64 n)
{
#if defined(VECTOR_AVX512)
    const __mmask8 away = _mm512_cmp_pd_mask((__m512d)n, _mm512_set1_pd(-1087), _CMP_LT_OQ);
    const __m512i sign = _mm512_set1_epi64(INT64_MIN);
    return (vf64)_mm512_mask_and_epi64((__m512i)x, away, (__m512i)x, sign);
#else
    return (vf64)((vi64)x & ~((vi64)(n < -1087) & INT64_MAX));
#endif
}

/* x 2^n in fewer steps for a whole n in -190 .. 63 (-1534 .. 511) and an |x| <= 2^11 (2^12). What
 * is far too small for a denormal costs no more than the rest. */
VECTOR_INLINE vf32 vscale_down_f32(vf32 x, vf32 n)
{
    x = vscaled_away_f32(x, n);
#if defined(VECTOR_AVX512)
    return vscale_f32(x, n);
#else
    return x * (vf32)((vu32)(n + (0x1.8p23f + 127 + 64)) << 23) * 0x1p-64f;
#endif
}
VECTOR_INLINE vf64 vscale_down_f64(vf64 x, vf64 n)
{
    x = vscaled_away_f64(x, n);
#if defined(VECTOR_AVX512)
    return vscale_f64(x, n);
#else
    return x * (vf64)((vu64)(n + (0x1.8p52 + 1023 + 512)) << 52) * 0x1p-512;
#endif
}
#define vscale_down(x, n) VECTOR_CHOOSE(vscale_down, x)(x, n)

#endif
